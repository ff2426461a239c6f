package qp

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// promptly fails the test if f, which nothing the peer does may delay, takes as
// long as the close timeout of a rig, a minute.
func promptly(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(patience):
		require.Fail(t, what+" waits for the peer")
	}
}

// TestStallWithinAWrite: a peer that stops in the middle of an FPDU does not
// delay a deregistration, and what it sends after it is not placed.
func TestStallWithinAWrite(t *testing.T) {
	for _, crc := range []bool{false, true} {
		r := newRig(t, setup{crc: crc})
		bad := rawpeer.Write(uint32(r.writable.stag), r.writable.at(0), filled(2000)).Octets()
		fpdu := r.peer.Frame(bad)
		require.NoError(t, r.peer.Raw(fpdu[:1000]))
		r.untilBuffered(1000)
		if r.inTransit() { // what has come is in its place
			r.writable.expect(0, filled(2000)[:1000-2-14])
		}
		promptly(t, "Deregister", func() { assert.NoError(t, r.tab.Deallocate(r.writable.stag)) })
		require.NoError(t, r.peer.Raw(fpdu[1000:]))
		require.Equal(t, terminate(0x1100, echoDDP, bad), r.next())
		require.NoError(t, r.peer.Close())
		r.over()
		r.requireEvents(wr.EventProtSTag)
		r.requireMemory()
	}
}

// big registers n octets that may be sent and read.
func (r *rig) big(n int) wr.SGE {
	r.t.Helper()
	reg, err := r.tab.Register(stag.RegionConfig{PD: ownPD, Access: wr.LocalRead | wr.RemoteRead, Memory: make([]byte, n)})
	require.NoError(r.t, err)
	return wr.SGE{STag: reg.STag, TO: reg.Base, Length: uint32(n)}
}

// connectNarrow connects through buffers that are soon full.
func (r *rig) connectNarrow() {
	r.t.Helper()
	a, b, err := rawpeer.Pair()
	require.NoError(r.t, err)
	require.NoError(r.t, a.(*net.TCPConn).SetWriteBuffer(64<<10))
	require.NoError(r.t, b.(*net.TCPConn).SetReadBuffer(64<<10))
	r.start(a, b)
}

// stuck waits until no more is sent. That is what has not moved for a while; a
// late move does no harm, as a big message cannot end while nobody reads.
func (r *rig) stuck() {
	r.t.Helper()
	last := uint64(0)
	require.Eventually(r.t, func() bool {
		now := r.s.tx.written.Load()
		stuck := now > 0 && now == last
		last = now
		return stuck
	}, patience, 20*time.Millisecond)
}

// stalled is a rig whose peer does not read: Read 1 is outstanding, Send 2 of a
// large region is on its way and stuck, Send 3 is behind it.
func stalled(t *testing.T, c setup) (*rig, wr.STag) {
	r := newIdleRig(t, c)
	big := r.big(32 << 20)
	r.connectNarrow()
	r.postRecv(wr.Recv{ID: 9})
	r.postSend(
		wr.Request{ID: 1, Op: wr.OpRead, Local: r.full.sge(0, 8), Remote: wr.Remote{STag: 5}},
		wr.Request{ID: 2, SGL: []wr.SGE{big}},
		wr.Request{ID: 3},
	)
	r.stuck()
	return r, big.STag
}

// TestStallWhileSending: no verb waits for a peer that does not read.
func TestStallWhileSending(t *testing.T) {
	t.Run("Deregister", func(t *testing.T) {
		for _, crc := range []bool{false, true} {
			r, s := stalled(t, setup{crc: crc})
			promptly(t, "Deregister", func() { assert.NoError(t, r.tab.Deallocate(s)) })
			_, _, err := r.peer.End() // reads on
			require.NoError(t, err)
			require.NoError(t, r.peer.Close())
			r.over()
			assert.Equal(t, wr.StateError, r.q.State())
			assert.Equal(t, []comp{{1, wr.StatusFlushed, 0}, {2, wr.StatusInvalidSTag, 0}, {3, wr.StatusFlushed, 0}}, r.all(r.scq))
			assert.Equal(t, flushed(9), r.all(r.rcq))
			r.requireReusable()
		}
	})
	t.Run("Destroy", func(t *testing.T) {
		r, _ := stalled(t, setup{})
		promptly(t, "Destroy", func() { assert.NoError(t, r.q.Destroy()) })
		assert.Equal(t, flushed(1, 2, 3), r.all(r.scq))
		r.requireEvents()
	})
	t.Run("Modify to Error", func(t *testing.T) {
		r, _ := stalled(t, setup{})
		promptly(t, "Modify QP", func() { assert.NoError(t, r.q.Modify(Modify{Next: wr.StateError})) })
		assert.Equal(t, flushed(1, 2, 3), r.all(r.scq))
		assert.Equal(t, flushed(9), r.all(r.rcq))
		r.requireEvents()
		r.requireReusable()
	})
	t.Run("Modify to Terminate, then Destroy", func(t *testing.T) {
		r, _ := stalled(t, setup{})
		promptly(t, "Modify QP", func() { assert.NoError(t, r.q.Modify(Modify{Next: wr.StateTerminate})) })
		promptly(t, "Destroy", func() { assert.NoError(t, r.q.Destroy()) })
		assert.Equal(t, flushed(1, 2, 3), r.all(r.scq))
	})
	t.Run("Modify to Closing", func(t *testing.T) {
		r, _ := stalled(t, setup{})
		promptly(t, "Modify QP", func() { assert.NoError(t, r.q.Modify(Modify{Next: wr.StateClosing})) })
		r.over()
		r.requireEvents(wr.EventBadClose)
		assert.Equal(t, flushed(1, 2, 3), r.all(r.scq))
	})
	t.Run("fault, bounded by the close timeout", func(t *testing.T) {
		r, _ := stalled(t, setup{closeTimeout: 50 * time.Millisecond})
		r.send(rawpeer.Send(5, nil).Octets())
		r.over()
		r.requireEvents(wr.EventRQMSNRange)
		assert.Equal(t, flushed(1, 2, 3), r.all(r.scq))
		assert.Equal(t, wr.StateError, r.q.State())
	})
}

// TestAnswerStalls: the region that a peer reads is deregistered in the middle
// of the answer.
func TestAnswerStalls(t *testing.T) {
	r := newIdleRig(t, setup{})
	big := r.big(32 << 20)
	r.connectNarrow()
	r.send(readRequest(1, big.Length, big.STag, big.TO).Octets())
	require.Eventually(t, func() bool { return r.s.tx.written.Load() > 0 }, patience, time.Millisecond)
	r.postSend(wr.Request{ID: 1})
	promptly(t, "Deregister", func() { assert.NoError(t, r.tab.Deallocate(big.STag)) })
	_, _, err := r.peer.End()
	require.NoError(t, err)
	require.NoError(t, r.peer.Close())
	r.over()
	r.requireEvents(wr.EventIRRQSTag)
	assert.Equal(t, flushed(1), r.all(r.scq))
	r.requireReusable()
}

// TestPipeStall: a connection that cannot be written without blocking.
func TestPipeStall(t *testing.T) {
	r := newIdleRig(t, setup{pipe: true})
	big := r.big(1 << 20) // more than is taken ahead of the peer
	r.connect()
	r.postSend(wr.Request{ID: 1, SGL: []wr.SGE{big}})
	promptly(t, "Modify QP", func() { assert.NoError(t, r.q.Modify(Modify{Next: wr.StateError})) })
	assert.Equal(t, flushed(1), r.all(r.scq))
}
