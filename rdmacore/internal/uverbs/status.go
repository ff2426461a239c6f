//go:build linux && (amd64 || arm64)

package uverbs

import (
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// status is the status of Linux for one of the core.
func status(s verbs.Status) uint32 {
	switch s {
	case verbs.StatusSuccess:
		return uabi.WCSuccess
	case verbs.StatusFlushed:
		return uabi.WCWRFlushErr
	case verbs.StatusInvalidWQE:
		return uabi.WCLocQPOpErr
	case verbs.StatusInvalidLength, verbs.StatusZeroReadResources:
		return uabi.WCLocLenErr
	case verbs.StatusInvalidSTag, verbs.StatusBaseBounds, verbs.StatusAccess, verbs.StatusInvalidPD, verbs.StatusWrap:
		return uabi.WCLocProtErr
	case verbs.StatusRemoteTermination:
		return uabi.WCRemOpErr
	case verbs.StatusInvalidateSTag:
		return uabi.WCRemInvReqErr
	case verbs.StatusInvalidWindow, verbs.StatusInvalidRegion, verbs.StatusInvalidAccessRights, verbs.StatusInvalidVA, verbs.StatusSTagNotInvalid:
		return uabi.WCMWBindErr
	case verbs.StatusLocalQPCatastrophic:
		return uabi.WCFatalErr
	default:
		return uabi.WCGeneralErr
	}
}

// wcOps are the operations of Linux for those of the core.
var wcOps = [...]uint32{
	verbs.OpSend: uabi.WCSend, verbs.OpSendSE: uabi.WCSend, verbs.OpSendInvalidate: uabi.WCSend, verbs.OpSendSEInvalidate: uabi.WCSend,
	verbs.OpWrite: uabi.WCRDMAWrite, verbs.OpRead: uabi.WCRDMARead, verbs.OpReadInvalidate: uabi.WCRDMARead,
	verbs.OpBind: uabi.WCBindMW, verbs.OpInvalidate: uabi.WCLocalInv, verbs.OpRecv: uabi.WCRecv,
	verbs.OpImmediate: uabi.WCSend, verbs.OpImmediateSE: uabi.WCSend,
	verbs.OpWriteImmediate: uabi.WCRDMAWrite, verbs.OpWriteImmediateSE: uabi.WCRDMAWrite,
	verbs.OpFetchAdd: uabi.WCFetchAdd, verbs.OpCompareSwap: uabi.WCCompSwap,
}
