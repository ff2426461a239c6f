//go:build linux && (amd64 || arm64)

package uabi

// What our preload library (rdmacore/preload) sends as driver_data, behind the structs of these commands, for verbs
// that the kernel's ABI has no command for. Providers of rdma-core send none of it.
type (
	// CreateCQDriver is of an extended completion queue: what of its attributes the command itself has not.
	CreateCQDriver struct {
		CreateCQ
		WCFlags         uint64 // IBV_WC_EX_WITH_
		Flags, AttrMask uint32 // IBV_CREATE_CQ_ATTR_ and IBV_CQ_INIT_ATTR_MASK_
		ParentHandle    Handle
		Reserved2       uint32
	}
	// CreateQPDriver is the same of an extended queue pair.
	CreateQPDriver struct {
		CreateQP
		SendOps               uint64 // IBV_QP_EX_WITH_
		AttrMask, CreateFlags uint32 // IBV_QP_INIT_ATTR_
	}
	// AllocPDDriver makes a parent domain of a protection domain.
	AllocPDDriver struct {
		AllocPD
		ParentHandle Handle
		AttrMask     uint32 // IBV_PARENT_DOMAIN_INIT_ATTR_
	}
)

// Masks and flags of these.
const (
	WCExStandard      = 0x7f // IBV_WC_STANDARD_FLAGS: what a completion has here
	CQFlags           = 1
	CQParent          = 2
	CQSingleThreaded  = 1
	QPAttrPD          = 1
	QPAttrCreateFlags = 1 << 2
	QPAttrSendOps     = 1 << 6
	QPExSend          = 1 << 2
	QPExSendWithImm   = 1 << 3
	// QPExReadAndAtomics are the operations with an answer.
	QPExReadAndAtomics = 7 << 4
	QPExKnown          = 1<<10 - 1 // to IBV_QP_EX_WITH_SEND_WITH_INV
	ParentKnown        = 3         // allocators, and a context for them
)

// SendWhole is a flag of the first of several send requests: all are posted, or none. The kernel's flags end long before.
const SendWhole = 1 << 31

// How a window may be bound (Bind.How): by ibv_bind_mw, or by a request.
const (
	BindByVerb = 1 + iota
	BindByRequest
)

// Bind is what a request to bind a window is about. Its new key is in Ex.
type Bind struct {
	Addr, Length uint64
	Window       Handle
	Access       uint32
	Lkey         uint32
	How          uint32
}

// Bind reads it out of the words of the union that atomics have.
func (w *SendWR) Bind() Bind {
	return Bind{w.RemoteAddr, w.CompareAdd, Handle(w.Swap), uint32(w.Swap >> 32), uint32(w.KeyOf), uint32(w.KeyOf >> 32)}
}

// SetBind is the way back.
func (w *SendWR) SetBind(b Bind) {
	w.RemoteAddr, w.CompareAdd = b.Addr, b.Length
	w.Swap, w.KeyOf = uint64(b.Window)|uint64(b.Access)<<32, uint64(b.Lkey)|uint64(b.How)<<32
}
