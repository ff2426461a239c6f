//go:build linux && (amd64 || arm64)

package uabi

// AsyncEventDesc is what a program reads from the descriptor of asynchronous events: Element
// is the user handle of the object, or the port.
type AsyncEventDesc struct {
	Element             uint64
	EventType, Reserved uint32
}

// CompEventDesc is what a program reads from a completion channel.
type CompEventDesc struct{ CQHandle uint64 }

// Response is all that commands without modifiers have: the address of the response.
type Response struct{ Response uint64 }

// None is the struct of a command, or of a response, that has no fields.
type None struct{}

// GetContext and the types below are the structs of the commands of their names, and those with Resp
// what the device answers.
type (
	GetContext     = Response
	GetContextResp struct{ AsyncFD, NumCompVectors uint32 }

	QueryDevice     = Response
	QueryDeviceResp struct {
		FWVer                  uint64
		NodeGUID, SysImageGUID [8]byte // network order
		MaxMRSize, PageSizeCap uint64
		VendorID, VendorPartID uint32
		HWVer                  uint32
		MaxQP, MaxQPWR         uint32
		DeviceCapFlags         uint32
		MaxSGE, MaxSGERd       uint32
		MaxCQ, MaxCQE          uint32
		MaxMR, MaxPD           uint32
		MaxQPRdAtom            uint32
		MaxEERdAtom            uint32
		MaxResRdAtom           uint32
		MaxQPInitRdAtom        uint32
		MaxEEInitRdAtom        uint32
		AtomicCap              uint32
		MaxEE, MaxRDD, MaxMW   uint32
		MaxRawIPv6QP           uint32
		MaxRawEthyQP           uint32
		MaxMcastGrp            uint32
		MaxMcastQPAttach       uint32
		MaxTotalMcastQPAttach  uint32
		MaxAH                  uint32
		MaxFMR, MaxMapPerFMR   uint32
		MaxSRQ, MaxSRQWR       uint32
		MaxSRQSGE              uint32
		MaxPkeys               uint16
		LocalCAAckDelay        uint8
		PhysPortCnt            uint8
		Reserved               [4]uint8
	}

	ExQueryDevice     struct{ CompMask, Reserved uint32 }
	ExQueryDeviceResp struct {
		Base                     QueryDeviceResp
		CompMask, ResponseLength uint32
		ODPCaps                  ODPCaps
		TimestampMask            uint64
		HCACoreClock             uint64 // kHz
		DeviceCapFlagsEx         uint64
		RSSCaps                  RSSCaps
		MaxWQTypeRQ              uint32
		RawPacketCaps            uint32
		TMCaps                   TMCaps
		CQModerationCaps         CQModerationCaps
		MaxDMSize                uint64
		XRCODPCaps, Reserved     uint32
	}

	QueryPort struct {
		Response uint64
		PortNum  uint8
		Reserved [7]uint8
	}
	QueryPortResp struct {
		PortCapFlags                 uint32
		MaxMsgSz                     uint32
		BadPkeyCntr, QkeyViolCntr    uint32
		GIDTblLen                    uint32
		PkeyTblLen, LID, SMLID       uint16
		State, MaxMTU, ActiveMTU     uint8
		LMC, MaxVLNum, SMSL          uint8
		SubnetTimeout, InitTypeReply uint8
		ActiveWidth, ActiveSpeed     uint8
		PhysState, LinkLayer         uint8
		Flags, Reserved              uint8
	}
)

// ODPCaps, RSSCaps, TMCaps and CQModerationCaps are parts of ExQueryDeviceResp.
type (
	ODPCaps struct {
		GeneralCaps                     uint64
		RCODPCaps, UCODPCaps, UDODPCaps uint32
		Reserved                        uint32
	}
	RSSCaps struct {
		SupportedQPTs                        uint32
		MaxRwqIndirectionTables              uint32
		MaxRwqIndirectionTableSize, Reserved uint32
	}
	TMCaps           struct{ MaxRndvHdrSize, MaxNumTags, Flags, MaxOps, MaxSGE, Reserved uint32 }
	CQModerationCaps struct {
		MaxCQModerationCount, MaxCQModerationPeriod uint16
		Reserved                                    uint32
	}
)
