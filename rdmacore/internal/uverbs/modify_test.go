//go:build linux && (amd64 || arm64)

package uverbs

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

func (s *side) modify(m uabi.ModifyQP) error {
	m.QPHandle = s.qp.QPHandle
	_, err := write[uabi.None](s.program, uabi.CmdModifyQP, &m)
	return err
}

// to changes to a state, with what an adapter needs for it if the device presents one.
func (s *side) to(state uint8) error {
	m := uabi.ModifyQP{AttrMask: uabi.QPState, QPState: state}
	if s.dev.config.RoCE {
		m = s.whole(state)
	}
	return s.modify(m)
}

// whole is a change to a state as an adapter takes it: from the one before.
func (s *side) whole(state uint8) uabi.ModifyQP {
	m := uabi.ModifyQP{
		AttrMask: uabi.QPState, QPState: state, PortNum: 1, QPAccessFlags: allRights, PathMTU: 3, DestQPNum: s.qp.QPN, MaxRdAtomic: 1, MaxDestRdAtomic: 1,
		Timeout: 14, RetryCnt: 7, RNRRetry: 7, MinRNRTimer: 12,
	}
	m.Dest.DGID, m.Dest.IsGlobal, m.Dest.PortNum = s.gid(), 1, 1
	before := map[uint8]uint8{uabi.QPSInit: uabi.QPSReset, uabi.QPSRTR: uabi.QPSInit, uabi.QPSRTS: uabi.QPSRTR}
	if from, ok := before[state]; ok {
		m.AttrMask |= s.verbs().ways()[way{from, state}].needed
	}
	return m
}

func (s *side) query() uabi.QueryQPResp {
	s.t.Helper()
	return must[uabi.QueryQPResp](s.program, uabi.CmdQueryQP, &uabi.QueryQP{QPHandle: s.qp.QPHandle})
}

// ended is a Connection that counts.
type ended struct{ n int }

func (e *ended) Disconnect() { e.n++ }
func (e *ended) Leaving()    {}

// TestStates: a queue pair without a stream goes where the program says, along the ways there are.
func TestStates(t *testing.T) {
	s := newSide(started(t, Config{RoCE: true}), allRights)
	assert.EqualValues(t, uabi.QPSReset, s.query().QPState)
	for _, c := range []struct {
		to   uint8
		want syscall.Errno
	}{
		{uabi.QPSRTR, syscall.EINVAL}, {uabi.QPSRTS, syscall.EINVAL}, {uabi.QPSInit, 0}, {uabi.QPSInit, 0}, {uabi.QPSSQD, syscall.EINVAL},
		{7, syscall.EINVAL}, {255, syscall.EINVAL}, {uabi.QPSRTR, 0}, {uabi.QPSRTR, syscall.EINVAL}, {uabi.QPSSQD, syscall.EINVAL}, {uabi.QPSErr, 0},
		{uabi.QPSRTS, syscall.EINVAL},
		{uabi.QPSReset, 0}, {uabi.QPSInit, 0},
	} {
		before := s.query().QPState
		assert.Equal(t, c.want, errnoOf(t, s.to(c.to)), "%s to %s", stateName(before), stateName(c.to))
		want := c.to
		if c.want != 0 {
			want = before
		}
		assert.Equal(t, want, s.query().QPState)
	}
	assert.Equal(t, syscall.EINVAL, errnoOf(t, s.modify(uabi.ModifyQP{AttrMask: uabi.QPPort, PortNum: 2})))
	assert.Equal(t, syscall.EOPNOTSUPP, errnoOf(t, s.modify(uabi.ModifyQP{AttrMask: 1 << 30})))
	assert.NoError(t, s.modify(uabi.ModifyQP{}), "rdma_cm asks for nothing in RTR and RTS")
}

// TestAttributes come back as they were set.
func TestAttributes(t *testing.T) {
	s := newSide(started(t, Config{}), allRights)
	m := uabi.ModifyQP{
		AttrMask: attrsLegacy &^ (uabi.QPCurState | uabi.QPCap | uabi.QPDestQPN), QPState: uabi.QPSInit, Qkey: 1, RQPSN: 2, SQPSN: 3, QPAccessFlags: 7, PkeyIndex: 0,
		PathMTU: 5, PathMigState: 1, MaxRdAtomic: 4, MaxDestRdAtomic: 6, MinRNRTimer: 7, PortNum: 1, Timeout: 8, RetryCnt: 6, RNRRetry: 5, AltPortNum: 1, AltTimeout: 2,
	}
	m.Dest.DGID[15], m.Dest.IsGlobal, m.Dest.PortNum = 9, 1, 1
	require.NoError(t, s.modify(m))
	q := s.query()
	assert.Equal(t, m.Dest, q.Dest)
	assert.Equal(t, [5]uint32{1, 2, 3, 7, 0}, [5]uint32{q.Qkey, q.RQPSN, q.SQPSN, q.QPAccessFlags, q.DestQPNum})
	assert.Equal(t, []uint8{5, 1, 4, 6, 7, 1, 8, 6, 5, 1, 2},
		[]uint8{q.PathMTU, q.PathMigState, q.MaxRdAtomic, q.MaxDestRdAtomic, q.MinRNRTimer, q.PortNum, q.Timeout, q.RetryCnt, q.RNRRetry, q.AltPortNum, q.AltTimeout})
	assert.Equal(t, s.qp.MaxSendWR, q.MaxSendWR)
	assert.EqualValues(t, 256, q.MaxInlineData)
}

// TestTake: once, until RESET; and who has taken it is told of the beginning of rdma_disconnect.
func TestTake(t *testing.T) {
	for name, c := range map[string]struct {
		roce                 bool
		to, ending, unjoined uint8
	}{"iwarp": {false, uabi.QPSSQD, uabi.QPSRTS, uabi.QPSInit}, "roce": {true, uabi.QPSErr, uabi.QPSErr, uabi.QPSReset}} {
		t.Run(name, func(t *testing.T) {
			a, _ := pair(t, Config{RoCE: c.roce}, allRights)
			e := &ended{}
			require.NoError(t, a.verbs().Take(e))
			assert.Equal(t, syscall.EINVAL, errnoOf(t, a.verbs().Take(e)))
			assert.EqualValues(t, uabi.QPSRTS, a.query().QPState, "the stream's")
			require.NoError(t, a.to(c.to))
			assert.Equal(t, 1, e.n)
			assert.EqualValues(t, c.ending, a.query().QPState, "while the stream is there still")
			require.NoError(t, a.to(uabi.QPSReset))
			assert.EqualValues(t, c.unjoined, a.query().QPState, "an RNIC tells INIT for RESET")
			assert.NoError(t, a.verbs().Take(e), "after RESET")
		})
	}
}

// TestError: what was posted is flushed, and the peer's stream ends.
func TestError(t *testing.T) {
	a, b := pair(t, Config{}, allRights)
	for i := range uint64(3) {
		_, err := a.recv(i, a.sge(0, 8))
		require.NoError(t, err)
	}
	require.NoError(t, a.to(uabi.QPSErr))
	require.NoError(t, a.to(uabi.QPSErr))
	for i, w := range a.wait(3) {
		assert.Equal(t, [2]uint64{uint64(i), uabi.WCWRFlushErr}, [2]uint64{w.WRID, uint64(w.Status)})
	}
	assert.EqualValues(t, uabi.QPSErr, a.query().QPState)
	<-b.verbs().Verbs().Done()
}
