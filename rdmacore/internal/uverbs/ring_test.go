//go:build linux && (amd64 || arm64)

package uverbs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// ringOf is the ring of a side's queue.
func ringOf(t testing.TB, s *side) *ring {
	t.Helper()
	v, err := use(&s.file.cqs, s.cq, "completion queue")
	require.NoError(t, err)
	require.NotNil(t, v.ring)
	return v.ring
}

// sends posts n Sends with numbers from first on, for which b has receives.
func sends(a, b *side, first, n int) {
	for i := range n {
		_, err := b.recv(uint64(first+i), b.sge(0, 64))
		require.NoError(a.t, err)
		a.posted(signaled(uabi.WRSend, first+i), a.sge(0, 8))
	}
}

// TestRing: what completes with a post is in the ring, and comes first and in order, whoever asks.
func TestRing(t *testing.T) {
	a, b := pair(t, Config{}, allRights)
	r := ringOf(t, a)
	sends(a, b, 0, 1)
	a.one()
	for round := range 100 {
		sends(a, b, 1+3*round, 3)
		var got []uabi.WC
		for len(got) < 3 {
			var wcs [2]uabi.WC
			got = append(got, wcs[:r.take(wcs[:])]...) // as the preload library does
			got = append(got, a.poll(1)...)
		}
		for i, w := range got {
			assert.EqualValues(t, 1+3*round+i, w.WRID)
		}
		b.wait(3)
	}
}

// TestRingHasAllWhenArmed: a program that arms its queue and polls once, for more than the ring had, hears of all that came before: for
// those there is no event.
func TestRingHasAllWhenArmed(t *testing.T) {
	p := started(t, Config{})
	a, b := newSide(p, allRights), onChannel(t, p.channel(), p)
	connect(t, a, b)
	sends(b, a, 0, 1) // its completion is in the ring
	a.wait(2 - 1)
	sends(a, b, 1, 3)
	v, err := use(&b.file.cqs, b.cq, "completion queue")
	require.NoError(t, err)
	for verbsinternal.Drive(v.cq) || !allArrived(b, 3) { // and three receives in the core's queue
	}
	b.arm(0)
	var wcs [16]uabi.WC
	require.Equal(t, 4, ringOf(t, b).take(wcs[:]))
	require.Empty(t, b.poll(16))
}

// allArrived reports whether the peer's n messages have.
func allArrived(s *side, n uint64) bool { q := s.verbs().qp.Stats(); return q.In.Sends().Messages >= n }

// TestRingIsBounded: what does not fit is polled from the engine, and not overtaken; nor is there more in the ring than the
// queue is for, which a RESIZE_CQ counts.
func TestRingIsBounded(t *testing.T) {
	a, _ := pair(t, Config{}, allRights)
	v, err := use(&a.file.cqs, a.cq, "completion queue")
	require.NoError(t, err)
	wcs := make([]uabi.WC, ringWCs-ringSpare-10)
	for i := range wcs {
		wcs[i].WRID = uint64(i)
	}
	require.Equal(t, len(wcs), v.add(wcs...))
	require.NoError(t, v.resize(300))
	a.arm(0)
	require.Equal(t, len(wcs), v.ring.len())
	require.Zero(t, v.ring.more.Load())
	more := make([]uabi.WC, 20)
	for i := range more {
		more[i].WRID = uint64(len(wcs) + i)
	}
	v.polls.Lock()
	v.made = append(v.made, more...)
	v.polls.Unlock()
	a.arm(0)
	require.Equal(t, ringWCs-ringSpare, v.ring.len())
	require.NotZero(t, v.ring.more.Load())
	require.Error(t, v.resize(ringWCs-ringSpare))
	for i, w := range a.wait(len(wcs) + len(more)) {
		require.EqualValues(t, i, w.WRID)
	}
	a.arm(0)
	require.Zero(t, v.ring.more.Load())
}

// TestRingEnds: a change to RESET and the end of the queue take completions out; another queue may have the ring then, and who
// read the old one takes nothing of it. Traced, there is none.
func TestRingEnds(t *testing.T) {
	a, b := pair(t, Config{}, allRights)
	r := ringOf(t, a)
	sends(a, b, 0, 1)
	b.wait(1)
	v, _ := use(&a.file.cqs, a.cq, "completion queue")
	v.drop(a.qp.QPN)
	require.Zero(t, r.len())
	require.Empty(t, a.poll(16))

	before := r.taken.Load()
	a.destroy()
	must[uabi.DestroyCQResp](a.program, uabi.CmdDestroyCQ, &uabi.DestroyCQ{CQHandle: a.cq})
	require.Zero(t, r.key.Load())
	require.NotEqual(t, before>>32, r.taken.Load()>>32)

	o := started(t, Config{Trace: func(string) {}})
	c, err := use(&o.file.cqs, o.cq(4, -1), "completion queue")
	require.NoError(t, err)
	require.Nil(t, c.ring)
}
