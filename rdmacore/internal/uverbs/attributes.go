//go:build linux && (amd64 || arm64)

package uverbs

import (
	"math/bits"
	"strings"
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// What RoCE adapters refuse of a MODIFY_QP, with the RoCE presentation: a change without an attribute that it needs, or with
// one that it does not take (ib_modify_qp_is_ok; IBA 11.2.5.2, table 91), and values that are none. An RNIC takes all of it. Queue pairs of
// rdma_cm are left alone once they are an id's: it brings them up.

// attributes are what a change needs, and what it may have beside.
type attributes struct{ needed, allowed uint32 }

// way is a change of state.
type way struct{ from, to uint8 }

var (
	anyTime   = uint32(uabi.QPCurState | uabi.QPAccessFlags | uabi.QPAltPath | uabi.QPPathMigState | uabi.QPMinRNRTimer)
	anyTimeUC = anyTime &^ uabi.QPMinRNRTimer
	waysRC    = map[way]attributes{
		{uabi.QPSReset, uabi.QPSInit}: {uabi.QPPkeyIndex | uabi.QPPort | uabi.QPAccessFlags, 0},
		{uabi.QPSInit, uabi.QPSInit}:  {0, uabi.QPPkeyIndex | uabi.QPPort | uabi.QPAccessFlags},
		{uabi.QPSInit, uabi.QPSRTR}: {
			uabi.QPAV | uabi.QPPathMTU | uabi.QPDestQPN | uabi.QPRQPSN | uabi.QPMaxDestRdAtomic | uabi.QPMinRNRTimer,
			uabi.QPAltPath | uabi.QPAccessFlags | uabi.QPPkeyIndex,
		},
		{uabi.QPSRTR, uabi.QPSRTS}: {uabi.QPTimeout | uabi.QPRetryCnt | uabi.QPRNRRetry | uabi.QPSQPSN | uabi.QPMaxQPRdAtomic, anyTime},
		{uabi.QPSRTS, uabi.QPSRTS}: {0, anyTime},
		{uabi.QPSRTS, uabi.QPSSQD}: {0, uabi.QPEnSQDAsyncNotify},
		{uabi.QPSSQD, uabi.QPSRTS}: {0, anyTime},
		{uabi.QPSSQD, uabi.QPSSQD}: {0, anyTime&^uabi.QPCurState | uabi.QPPort | uabi.QPAV | uabi.QPTimeout | uabi.QPRetryCnt | uabi.QPRNRRetry |
			uabi.QPMaxQPRdAtomic | uabi.QPMaxDestRdAtomic | uabi.QPPkeyIndex},
		{uabi.QPSSQE, uabi.QPSRTS}: {0, uabi.QPCurState | uabi.QPAccessFlags | uabi.QPMinRNRTimer},
	}
	// UC has no acknowledgements, and so no times, retries and Reads.
	waysUC = map[way]attributes{
		{uabi.QPSReset, uabi.QPSInit}: {uabi.QPPkeyIndex | uabi.QPPort | uabi.QPAccessFlags, 0},
		{uabi.QPSInit, uabi.QPSInit}:  {0, uabi.QPPkeyIndex | uabi.QPPort | uabi.QPAccessFlags},
		{uabi.QPSInit, uabi.QPSRTR}:   {uabi.QPAV | uabi.QPPathMTU | uabi.QPDestQPN | uabi.QPRQPSN, uabi.QPAltPath | uabi.QPAccessFlags | uabi.QPPkeyIndex},
		{uabi.QPSRTR, uabi.QPSRTS}:    {uabi.QPSQPSN, anyTimeUC},
		{uabi.QPSRTS, uabi.QPSRTS}:    {0, anyTimeUC},
		{uabi.QPSRTS, uabi.QPSSQD}:    {0, uabi.QPEnSQDAsyncNotify},
		{uabi.QPSSQD, uabi.QPSRTS}:    {0, anyTimeUC},
		{uabi.QPSSQD, uabi.QPSSQD}:    {0, anyTimeUC&^uabi.QPCurState | uabi.QPAV | uabi.QPPkeyIndex},
		{uabi.QPSSQE, uabi.QPSRTS}:    {0, uabi.QPCurState | uabi.QPAccessFlags},
	}
	waysUD = map[way]attributes{
		{uabi.QPSReset, uabi.QPSInit}: {uabi.QPPkeyIndex | uabi.QPPort | uabi.QPQkey, 0},
		{uabi.QPSInit, uabi.QPSInit}:  {0, uabi.QPPkeyIndex | uabi.QPPort | uabi.QPQkey},
		{uabi.QPSInit, uabi.QPSRTR}:   {0, uabi.QPPkeyIndex | uabi.QPQkey},
		{uabi.QPSRTR, uabi.QPSRTS}:    {uabi.QPSQPSN, uabi.QPCurState | uabi.QPQkey},
		{uabi.QPSRTS, uabi.QPSRTS}:    {0, uabi.QPCurState | uabi.QPQkey},
		{uabi.QPSRTS, uabi.QPSSQD}:    {0, uabi.QPEnSQDAsyncNotify},
		{uabi.QPSSQD, uabi.QPSRTS}:    {0, uabi.QPCurState | uabi.QPQkey},
		{uabi.QPSSQD, uabi.QPSSQD}:    {0, uabi.QPPkeyIndex | uabi.QPQkey},
		{uabi.QPSSQE, uabi.QPSRTS}:    {0, uabi.QPCurState | uabi.QPQkey},
	}
)

// attrNames are the bits of attr_mask, of enum ibv_qp_attr_mask.
var attrNames = [...]string{
	"STATE", "CUR_STATE", "EN_SQD_ASYNC_NOTIFY", "ACCESS_FLAGS", "PKEY_INDEX", "PORT", "QKEY", "AV", "PATH_MTU", "TIMEOUT", "RETRY_CNT", "RNR_RETRY", "RQ_PSN",
	"MAX_QP_RD_ATOMIC", "ALT_PATH", "MIN_RNR_TIMER", "SQ_PSN", "MAX_DEST_RD_ATOMIC", "PATH_MIG_STATE", "CAP", "DEST_QPN",
}

func attrs(mask uint32) string {
	var names []string
	for ; mask != 0; mask &= mask - 1 {
		if n := bits.TrailingZeros32(mask); n < len(attrNames) {
			names = append(names, "IBV_QP_"+attrNames[n])
		}
	}
	return strings.Join(names, ", ")
}

// ways are those of the queue pair's type.
func (q *QP) ways() map[way]attributes {
	switch {
	case q.ud != nil:
		return waysUD
	case q.uc != nil:
		return waysUC
	}
	return waysRC
}

// wrongAttributes is what an adapter refuses of m, of a queue pair in a state; nil for nothing.
func (q *QP) wrongAttributes(m *uabi.ModifyQP, now uint8) error {
	mask := m.AttrMask
	to := now
	if mask&uabi.QPState != 0 {
		to = m.QPState
	}
	a := q.ways()[way{now, to}] // of RESET and ERR, to which all lead, none
	if lacks := a.needed &^ mask; lacks != 0 {
		return refuse(syscall.EINVAL, "from %s to %s an adapter needs %s too", stateName(now), stateName(to), attrs(lacks))
	}
	if more := mask &^ (a.needed | a.allowed | uabi.QPState); more != 0 {
		return refuse(syscall.EINVAL, "from %s to %s an adapter takes no %s", stateName(now), stateName(to), attrs(more))
	}
	return q.wrongValues(m)
}

// knownAccess are the access flags there are, and the optional ones. Those that say nothing of a queue pair without the capability, as for
// flushes, are ignored, as by adapters: programs set them beside others.
const knownAccess = (uabi.AccessFlushPersistent<<1 - 1) | uabi.AccessOptional

// wrongValues is what is out of range in m.
func (q *QP) wrongValues(m *uabi.ModifyQP) error {
	const mtu256, mtu4096 = 1, 5
	has := func(bit uint32) bool { return m.AttrMask&bit != 0 }
	switch {
	case has(uabi.QPAV) && m.Dest.IsGlobal == 0:
		return refuse(syscall.EINVAL, "ah_attr.is_global is 0: RoCE's addresses are GIDs, so set it, and grh.dgid (often the option -g 0, or -x 0)")
	case has(uabi.QPAV) && !q.file.dev.hasGID(int(m.Dest.SGIDIndex)):
		return q.file.dev.noGID(int(m.Dest.SGIDIndex))
	case has(uabi.QPPathMTU) && (m.PathMTU < mtu256 || m.PathMTU > mtu4096):
		return refuse(syscall.EINVAL, "path_mtu %d is none: it is one of enum ibv_mtu, IBV_MTU_256 (%d) to IBV_MTU_4096 (%d)", m.PathMTU, mtu256, mtu4096)
	case has(uabi.QPAccessFlags) && m.QPAccessFlags&^knownAccess != 0:
		return refuse(syscall.EINVAL, "qp_access_flags %#x has unknown bits", m.QPAccessFlags)
	case has(uabi.QPPkeyIndex) && m.PkeyIndex != 0:
		return refuse(syscall.EINVAL, "pkey_index %d: the port has 0 alone", m.PkeyIndex)
	case has(uabi.QPMaxQPRdAtomic) && m.MaxRdAtomic > maxReads:
		return refuse(syscall.EINVAL, "max_rd_atomic %d: the device has at most %d (max_qp_init_rd_atom)", m.MaxRdAtomic, maxReads)
	case has(uabi.QPMaxDestRdAtomic) && m.MaxDestRdAtomic > maxReads:
		return refuse(syscall.EINVAL, "max_dest_rd_atomic %d: the device has at most %d (max_qp_rd_atom)", m.MaxDestRdAtomic, maxReads)
	}
	return nil
}
