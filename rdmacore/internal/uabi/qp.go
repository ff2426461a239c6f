//go:build linux && (amd64 || arm64)

package uabi

// GlobalRoute and AHAttr are an address as QPAttr and CreateAH have it.
type (
	GlobalRoute struct {
		DGID                                        GID
		FlowLabel                                   uint32
		SGIDIndex, HopLimit, TrafficClass, Reserved uint8
	}
	AHAttr struct {
		GRH                                                      GlobalRoute
		DLID                                                     uint16
		SL, SrcPathBits, StaticRate, IsGlobal, PortNum, Reserved uint8
	}
)

// QPAttr is what rdma_cm answers to INIT_QP_ATTR.
type QPAttr struct {
	QPAttrMask, QPState, CurQPState, PathMTU, PathMigState      uint32
	Qkey, RQPSN, SQPSN, DestQPNum, QPAccessFlags                uint32
	AHAttr, AltAHAttr                                           AHAttr
	MaxSendWR, MaxRecvWR, MaxSendSGE, MaxRecvSGE, MaxInlineData uint32
	PkeyIndex, AltPkeyIndex                                     uint16
	EnSQDAsyncNotify, SQDraining, MaxRdAtomic, MaxDestRdAtomic  uint8
	MinRNRTimer, PortNum, Timeout, RetryCnt, RNRRetry           uint8
	AltPortNum, AltTimeout                                      uint8
	Reserved                                                    [5]uint8
}

// QPDest is an address as ModifyQP and QueryQP have it.
type QPDest struct {
	DGID                                       GID
	FlowLabel                                  uint32
	DLID, Reserved                             uint16
	SGIDIndex, HopLimit, TrafficClass, SL      uint8
	SrcPathBits, StaticRate, IsGlobal, PortNum uint8
}

// QPConfig are the fields that CreateQP and ExCreateQP have in common.
type QPConfig struct {
	UserHandle                                                  uint64
	PDHandle, SendCQHandle, RecvCQHandle, SRQHandle             Handle
	MaxSendWR, MaxRecvWR, MaxSendSGE, MaxRecvSGE, MaxInlineData uint32
	SQSigAll, QPType, IsSRQ, Reserved                           uint8
}

// CreateQP and the types below are the structs of the commands of their names, and those with Resp
// what the device answers.
type (
	CreateQP struct {
		Response uint64
		QPConfig
	}
	CreateQPResp struct {
		QPHandle                                                    Handle
		QPN                                                         uint32
		MaxSendWR, MaxRecvWR, MaxSendSGE, MaxRecvSGE, MaxInlineData uint32
		Reserved                                                    uint32
	}

	ExCreateQP struct {
		QPConfig
		CompMask, CreateFlags, RwqIndTblHandle, SourceQPN uint32
	}
	ExCreateQPResp struct {
		Base                     CreateQPResp
		CompMask, ResponseLength uint32
	}

	QueryQP struct {
		Response uint64
		QPHandle Handle
		AttrMask uint32
	}
	QueryQPResp struct {
		Dest, AltDest                                               QPDest
		MaxSendWR, MaxRecvWR, MaxSendSGE, MaxRecvSGE, MaxInlineData uint32
		Qkey, RQPSN, SQPSN, DestQPNum, QPAccessFlags                uint32
		PkeyIndex, AltPkeyIndex                                     uint16
		QPState, CurQPState, PathMTU, PathMigState                  uint8
		SQDraining, MaxRdAtomic, MaxDestRdAtomic, MinRNRTimer       uint8
		PortNum, Timeout, RetryCnt, RNRRetry                        uint8
		AltPortNum, AltTimeout, SQSigAll                            uint8
		Reserved                                                    [5]uint8
	}

	ModifyQP struct {
		Dest, AltDest                                               QPDest
		QPHandle                                                    Handle
		AttrMask                                                    uint32
		Qkey, RQPSN, SQPSN, DestQPNum, QPAccessFlags                uint32
		PkeyIndex, AltPkeyIndex                                     uint16
		QPState, CurQPState, PathMTU, PathMigState                  uint8
		EnSQDAsyncNotify, MaxRdAtomic, MaxDestRdAtomic, MinRNRTimer uint8
		PortNum, Timeout, RetryCnt, RNRRetry                        uint8
		AltPortNum, AltTimeout                                      uint8
		Reserved                                                    [2]uint8
	}
	ExModifyQP struct {
		Base                ModifyQP
		RateLimit, Reserved uint32
	}
	ExModifyQPResp struct{ CompMask, ResponseLength uint32 }

	DestroyQP struct {
		Response uint64
		QPHandle Handle
		Reserved uint32
	}
	DestroyQPResp struct{ EventsReported uint32 }
)

// PostSend has WRCount times SendWR behind it, each in WQESize octets, and then SGECount times
// SGE, for all of them in order. PostRecv and PostSRQRecv have RecvWR instead.
type (
	PostSend struct {
		Response                   uint64
		QPHandle                   Handle
		WRCount, SGECount, WQESize uint32
	}
	PostRecv    = PostSend
	PostSRQRecv struct {
		Response                   uint64
		SRQHandle                  Handle
		WRCount, SGECount, WQESize uint32
	}
	// PostResp is what a post that failed answers: the first request that was not posted, counted from 1.
	PostResp struct{ BadWR uint32 }
)

// SGE is a scatter/gather element.
type SGE struct {
	Addr         uint64
	Length, Lkey uint32
}

// SendWR is a send request. Ex is the immediate data, in network order, or the key to invalidate. Of
// the union wr the words are: RemoteAddr and, of RDMA, Rkey in the lower half of the second;
// of atomics CompareAdd, Swap and Rkey in the lower half of the fourth.
type SendWR struct {
	WRID                      uint64
	NumSGE, Opcode, SendFlags uint32
	Ex                        [4]byte
	RemoteAddr                uint64
	CompareAdd, Swap, KeyOf   uint64
}

// RDMARkey is the remote key of an RDMA Write or Read.
func (w *SendWR) RDMARkey() uint32 { return uint32(w.CompareAdd) }

// AtomicRkey is the remote key of an atomic.
func (w *SendWR) AtomicRkey() uint32 { return uint32(w.KeyOf) }

// RecvWR is a receive.
type RecvWR struct {
	WRID             uint64
	NumSGE, Reserved uint32
}

// CreateAH makes an address handle, and DestroyAH, which has no response, ends it.
type (
	CreateAH struct {
		Response, UserHandle uint64
		PDHandle             Handle
		Reserved             uint32
		Attr                 AHAttr
	}
	CreateAHResp struct{ AHHandle Handle }
	DestroyAH    struct{ AHHandle Handle }
)

// UD are, of a send of a UD queue pair, the address handle, and the queue pair and Q_Key there.
func (w *SendWR) UD() (ah Handle, qpn, qkey uint32) {
	return Handle(w.RemoteAddr), uint32(w.RemoteAddr >> 32), uint32(w.CompareAdd)
}

// SetUD is the way back.
func (w *SendWR) SetUD(ah Handle, qpn, qkey uint32) {
	w.RemoteAddr, w.CompareAdd = uint64(ah)|uint64(qpn)<<32, uint64(qkey)
}
