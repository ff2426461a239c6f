//go:build linux && (amd64 || arm64)

package uabi

// VerbsABI is the version of the uverbs ABI (IB_USER_VERBS_ABI_VERSION).
const VerbsABI = 6

// Commands of uverbs (enum ib_uverbs_write_cmds).
const (
	CmdGetContext = iota
	CmdQueryDevice
	CmdQueryPort
	CmdAllocPD
	CmdDeallocPD
	CmdCreateAH
	CmdModifyAH
	CmdQueryAH
	CmdDestroyAH
	CmdRegMR
	CmdRegSMR
	CmdReregMR
	CmdQueryMR
	CmdDeregMR
	CmdAllocMW
	CmdBindMW
	CmdDeallocMW
	CmdCreateCompChannel
	CmdCreateCQ
	CmdResizeCQ
	CmdDestroyCQ
	CmdPollCQ
	CmdPeekCQ
	CmdReqNotifyCQ
	CmdCreateQP
	CmdQueryQP
	CmdModifyQP
	CmdDestroyQP
	CmdPostSend
	CmdPostRecv
	CmdAttachMcast
	CmdDetachMcast
	CmdCreateSRQ
	CmdModifySRQ
	CmdQuerySRQ
	CmdDestroySRQ
	CmdPostSRQRecv
	CmdOpenXRCD
	CmdCloseXRCD
	CmdCreateXSRQ
	CmdOpenQP
)

// Extended commands that are not the extended form of one above.
const (
	ExCmdCreateFlow = 50 + iota
	ExCmdDestroyFlow
	ExCmdCreateWQ
	ExCmdModifyWQ
	ExCmdDestroyWQ
	ExCmdCreateRwqIndTbl
	ExCmdDestroyRwqIndTbl
	ExCmdModifyCQ
)

// Bits of CmdHdr.Command.
const (
	CommandMask  = 0xff
	FlagExtended = 0x80000000
)

// CmdHdr begins every command: of a legacy one InWords and OutWords count words of 4 octets,
// the header included; of an extended one words of 8, without the headers.
type CmdHdr struct {
	Command           uint32
	InWords, OutWords uint16
}

// ExCmdHdr follows the CmdHdr of an extended command.
type ExCmdHdr struct {
	Response                          uint64
	ProviderInWords, ProviderOutWords uint16
	CmdHdrReserved                    uint32
}

// Access flags (enum ib_uverbs_access_flags).
const (
	AccessLocalWrite = 1 << iota
	AccessRemoteWrite
	AccessRemoteRead
	AccessRemoteAtomic
	AccessMWBind
	AccessZeroBased
	AccessOnDemand
	AccessHugetlb
	AccessFlushGlobal
	AccessFlushPersistent
	// AccessOptional are those that a device may ignore (IB_ACCESS_OPTIONAL).
	AccessOptional = 0x3ff00000
)

// Flags of ReregMR.
const (
	ReregTrans = 1 << iota
	ReregPD
	ReregAccess
)

// Queue pair types (enum ib_qp_type).
const (
	QPTRC        = 2
	QPTUC        = 3
	QPTUD        = 4
	QPTRawPacket = 8
	QPTXRCIni    = 9
	QPTXRCTgt    = 10
	QPTDriver    = 0xff
)

// States of a queue pair (enum ib_qp_state).
const (
	QPSReset = iota
	QPSInit
	QPSRTR
	QPSRTS
	QPSSQD
	QPSSQE
	QPSErr
)

// Attributes of a queue pair (enum ib_qp_attr_mask).
const (
	QPState = 1 << iota
	QPCurState
	QPEnSQDAsyncNotify
	QPAccessFlags
	QPPkeyIndex
	QPPort
	QPQkey
	QPAV
	QPPathMTU
	QPTimeout
	QPRetryCnt
	QPRNRRetry
	QPRQPSN
	QPMaxQPRdAtomic
	QPAltPath
	QPMinRNRTimer
	QPSQPSN
	QPMaxDestRdAtomic
	QPPathMigState
	QPCap
	QPDestQPN
)

// QPRateLimit is an attribute of the extended ModifyQP alone.
const QPRateLimit = 1 << 25

// Attributes of a shared receive queue (enum ib_srq_attr_mask).
const (
	SRQMaxWR = 1 << iota
	SRQLimit
)

// Operations of a send request (enum ib_uverbs_wr_opcode).
const (
	WRRDMAWrite = iota
	WRRDMAWriteWithImm
	WRSend
	WRSendWithImm
	WRRDMARead
	WRAtomicCmpAndSwp
	WRAtomicFetchAndAdd
	WRLocalInv
	WRBindMW
	WRSendWithInv
	WRTSO
	WRRDMAReadWithInv
	WRMaskedAtomicCmpAndSwp
	WRMaskedAtomicFetchAndAdd
)

// Flags of a send request (enum ib_uverbs_send_flags).
const (
	SendFence = 1 << iota
	SendSignaled
	SendSolicited
	SendInline
	SendIPCsum
)

// Operations of a completion (enum ib_uverbs_wc_opcode, and those of receives).
const (
	WCSend = iota
	WCRDMAWrite
	WCRDMARead
	WCCompSwap
	WCFetchAdd
	WCBindMW
	WCLocalInv
	WCRecv            = 128
	WCRecvRDMAWithImm = 129
)

// Flags of a completion (enum ib_wc_flags).
const (
	WCGRH            = 1
	WCWithImm        = 2
	WCWithInvalidate = 8
)

// Statuses of a completion (enum ib_wc_status).
const (
	WCSuccess = iota
	WCLocLenErr
	WCLocQPOpErr
	WCLocEECOpErr
	WCLocProtErr
	WCWRFlushErr
	WCMWBindErr
	WCBadRespErr
	WCLocAccessErr
	WCRemInvReqErr
	WCRemAccessErr
	WCRemOpErr
	WCRetryExcErr
	WCRNRRetryExcErr
	WCLocRDDViolErr
	WCRemInvRdReqErr
	WCRemAbortErr
	WCInvEECNErr
	WCInvEECStateErr
	WCFatalErr
	WCRespTimeoutErr
	WCGeneralErr
)

// Asynchronous events (enum ib_event_type).
const (
	EventCQErr = iota
	EventQPFatal
	EventQPReqErr
	EventQPAccessErr
	EventCommEst
	EventSQDrained
	EventPathMig
	EventPathMigErr
	EventDeviceFatal
	EventPortActive
	EventPortErr
	EventLIDChange
	EventPkeyChange
	EventSMChange
	EventSRQErr
	EventSRQLimitReached
	EventQPLastWQEReached
	EventClientReregister
	EventGIDChange
)

// DeviceMemMgtExtensions of QueryDeviceResp.DeviceCapFlags: Send with Invalidate, Invalidate Local STag.
const (
	DeviceRCRNRNakGen      = 1 << 12
	DeviceSRQResize        = 1 << 13
	DeviceMemWindow        = 1 << 17
	DeviceMemMgtExtensions = 1 << 21
	DeviceMemWindowType2B  = 1 << 24
)
