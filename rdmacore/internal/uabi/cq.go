//go:build linux && (amd64 || arm64)

package uabi

// CreateCompChannel and the types below are the structs of the commands of their names, and those with Resp
// what the device answers.
type (
	CreateCompChannel     = Response
	CreateCompChannelResp struct{ FD uint32 }

	CreateCQ struct {
		Response, UserHandle uint64
		CQE, CompVector      uint32
		CompChannel          int32
		Reserved             uint32
	}
	CreateCQResp struct {
		CQHandle Handle
		CQE      uint32
	}

	ExCreateCQ struct {
		UserHandle      uint64
		CQE, CompVector uint32
		CompChannel     int32
		CompMask        uint32
		Flags, Reserved uint32
	}
	ExCreateCQResp struct {
		Base                     CreateCQResp
		CompMask, ResponseLength uint32
	}

	ResizeCQ struct {
		Response uint64
		CQHandle Handle
		CQE      uint32
	}
	ResizeCQResp struct{ CQE, Reserved uint32 }

	// PollCQ is answered by PollCQResp, with Count times WC behind it.
	PollCQ struct {
		Response uint64
		CQHandle Handle
		NE       uint32
	}
	PollCQResp struct{ Count, Reserved uint32 }

	ReqNotifyCQ struct {
		CQHandle      Handle
		SolicitedOnly uint32
	}

	DestroyCQ struct {
		Response uint64
		CQHandle Handle
		Reserved uint32
	}
	DestroyCQResp struct{ CompEventsReported, AsyncEventsReported uint32 }
)

// WC is a completion. Ex is the immediate data, in network order, or the key that was invalidated.
type WC struct {
	WRID               uint64
	Status, Opcode     uint32
	VendorErr, ByteLen uint32
	Ex                 [4]byte
	QPNum, SrcQP       uint32
	WCFlags            uint32
	PkeyIndex, SLID    uint16
	SL, DLIDPathBits   uint8
	PortNum, Reserved  uint8
}
