//go:build linux && (amd64 || arm64)

package uverbs

import (
	"errors"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// statusOf is the status of a completion: a bind that is refused is a bind error, whatever is wrong with it.
func statusOf(d *verbs.Completion) uint32 {
	s := status(d.Status)
	if d.Op == verbs.OpBind && s == uabi.WCLocProtErr {
		s = uabi.WCMWBindErr
	}
	return s
}

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

// adapterStatus is the status of a RoCE adapter where that is not the one of an RNIC: of a message that does not fit its receive, and of
// the answer that refused a request.
func adapterStatus(d *verbs.Completion) uint32 {
	var why *verbs.Reason
	switch {
	case !errors.As(d.Err(), &why):
	case d.Status == verbs.StatusRemoteTermination && why.ByPeer:
		return remoteStatus(why)
	case d.Status == verbs.StatusBaseBounds && d.Op == verbs.OpRecv && why.Allowed.Known && !why.Allowed.Tagged:
		return uabi.WCLocLenErr
	}
	return statusOf(d)
}

// remoteStatus goes by the code of the peer's Terminate Message (RFC 5040 4.8; IBA 9.9.2.4.2): the memory, the request itself, or the
// peer's own trouble.
func remoteStatus(why *verbs.Reason) uint32 {
	const (
		rdmap, ddp            = 0, 1
		protection, operation = 1, 2 // of layer RDMAP
		tagged, untagged      = 1, 2 // of layer DDP
		stream, global        = 7, 8 // a catastrophe
	)
	switch t := why.Terminate; {
	case t.Layer == rdmap && t.Type == protection, t.Layer == ddp && t.Type == tagged:
		return uabi.WCRemAccessErr
	case t.Layer == ddp && t.Type == untagged, t.Layer == rdmap && t.Type == operation && t.Code != stream && t.Code != global:
		return uabi.WCRemInvReqErr
	}
	return uabi.WCRemOpErr
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
