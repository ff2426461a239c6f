//go:build linux && (amd64 || arm64)

package uverbs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/exhaustion"
	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
)

// twoByHand is a queue pair of each of two devices, as of two hosts, that are connected, and what the first device says.
func twoByHand(t *testing.T, c Config, timeout uint8) (a, b *side, said chan string) {
	t.Helper()
	said = make(chan string, 8)
	c.Report = func(s string) { said <- s }
	p := started(t, c)
	c.Report = nil
	o := started(t, c)
	a, b = newSide(p, allRights), newSide(o, allRights)
	handed(a, b, timeout)
	handed(b, a, timeout)
	warm(a, b)
	a.dev.hand.least.Store(1) // from here on: it is for the time until they are connected, too
	return a, b, said
}

// warm has a request of a answered.
func warm(a, b *side) {
	a.posted(rdma(signaled(uabi.WRRDMARead, 100), b, 0), a.sge(0, 8))
	a.one()
}

// TestSilentPeer: the port of the peer is down, this one's is up. The first request that waits ends with RETRY_EXC_ERR and the others
// flush, of those that TCP has not acknowledged as of those that wait for an answer; a line says so. The peer, which waits for
// nothing, stays until its port is up.
func TestSilentPeer(t *testing.T) {
	for _, acknowledged := range []bool{false, true} {
		a, b, said := twoByHand(t, Config{RoCE: acknowledged}, 16) // 2 x 268 ms
		read := func(id int) { a.posted(rdma(signaled(uabi.WRRDMARead, id), b, 0), a.sge(0, 8)) }
		if acknowledged {
			b.dev.SetLink(Link{Delay: time.Hour})
			read(1)
			read(2)
			time.Sleep(100 * time.Millisecond) // TCP has them
			b.dev.SetLink(Link{Down: true})
		} else {
			b.dev.SetLink(Link{Down: true})
			read(1)
			read(2)
		}
		begun := time.Now()
		got := a.wait(2)
		assert.GreaterOrEqual(t, time.Since(begun), 536*time.Millisecond)
		assert.Equal(t, [4]uint64{1, uabi.WCRetryExcErr, 2, uabi.WCWRFlushErr},
			[4]uint64{got[0].WRID, uint64(got[0].Status), got[1].WRID, uint64(got[1].Status)})
		assert.Contains(t, <-said, "its peer's system acknowledges nothing")
		assert.EqualValues(t, uabi.QPSRTS, b.query().QPState)
	}
}

// TestSilentSend: a Send completes when TCP has it, and the queue pair ends all the same: the next finds out.
func TestSilentSend(t *testing.T) {
	a, b, said := twoByHand(t, Config{}, 16)
	b.dev.SetLink(Link{Down: true})
	a.posted(signaled(uabi.WRSend, 1), a.sge(0, 8))
	a.one()
	<-said // it has ended
	a.posted(signaled(uabi.WRSend, 2), a.sge(0, 8))
	w := a.wait(1)[0]
	assert.Equal(t, [2]uint64{2, uabi.WCRetryExcErr}, [2]uint64{w.WRID, uint64(w.Status)})
}

// TestCableBreaks: both ends find out, each that has requests, and a cable that is whole again in time costs nothing.
func TestCableBreaks(t *testing.T) {
	exhaustion.Alone(t, func() {
		a, b, said := twoByHand(t, Config{RoCE: true}, 17) // 2 x 537 ms
		b.dev.hand.least.Store(int64(time.Nanosecond))
		read := func(s, peer *side, id int) { s.posted(rdma(signaled(uabi.WRRDMARead, id), peer, 0), s.sge(0, 8)) }
		require.NoError(t, exhaustion.Loopback(false))
		read(a, b, 1)
		time.Sleep(700 * time.Millisecond)
		require.NoError(t, exhaustion.Loopback(true))
		a.one()
		require.NoError(t, exhaustion.Loopback(false))
		for _, s := range [][2]*side{{a, b}, {b, a}} {
			read(s[0], s[1], 2)
			read(s[0], s[1], 3)
		}
		for _, s := range []*side{a, b} {
			got := s.wait(2)
			assert.EqualValues(t, []uint32{uabi.WCRetryExcErr, uabi.WCWRFlushErr}, []uint32{got[0].Status, got[1].Status})
		}
		assert.Contains(t, <-said, "its peer's system acknowledges nothing")
		require.NoError(t, exhaustion.Loopback(true))
	})
}

// TestSilentForAWhile: a port that is up again in time costs nothing, and a timeout of 0 is for ever.
func TestSilentForAWhile(t *testing.T) {
	for _, timeout := range []uint8{0, 18} { // 2 x 1.07 s
		a, b, said := twoByHand(t, Config{RoCE: true}, timeout)
		b.dev.SetLink(Link{Down: true})
		a.posted(rdma(signaled(uabi.WRRDMARead, 1), b, 0), a.sge(0, 8))
		time.Sleep(1800 * time.Millisecond)
		b.dev.SetLink(Link{})
		a.one()
		warm(b, a)
		assert.Empty(t, said)
	}
}

// TestNotSilent: a peer whose program does not read, with a window that is full, is there: its system answers.
func TestNotSilent(t *testing.T) {
	a, b, said := twoByHand(t, Config{RoCE: true}, 12) // 2 x 17 ms
	b.dev.SetLink(Link{Delay: time.Minute})
	const n = 31
	for i := range n { // more than the peer's buffer has room for
		w := rdma(signaled(uabi.WRRDMAWrite, i), b, 0)
		w.SendFlags = 0
		a.posted(w, a.sge(0, sideBytes))
	}
	time.Sleep(4 * time.Second)
	assert.Empty(t, said)
	assert.Empty(t, a.poll(1))
	b.dev.SetLink(Link{})
	a.posted(rdma(signaled(uabi.WRRDMARead, n), b, 0), a.sge(0, 8))
	assert.EqualValues(t, n, a.one().WRID)
}

// TestSilence: what one look after the other makes of what TCP says.
func TestSilence(t *testing.T) {
	const limit = 5 * time.Second
	at := func(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }
	type look struct{ ms, tries, answers int }
	for name, c := range map[string]struct {
		looks []look
		lost  bool // at the last look, and not before
	}{
		"silent":                {[]look{{0, 1, 7}, {5000, 2, 7}, {5500, 2, 7}}, true},
		"the next try is later": {[]look{{0, 1, 7}, {3000, 2, 7}, {5500, 2, 7}, {6200, 2, 7}, {6500, 3, 7}}, false},
		"and comes to nothing":  {[]look{{0, 1, 7}, {3000, 2, 7}, {5500, 2, 7}, {6200, 3, 7}, {6700, 3, 7}}, true},
		"an answer":             {[]look{{0, 1, 7}, {5000, 2, 7}, {5500, 2, 8}, {6000, 2, 8}}, false},
		"acknowledged":          {[]look{{0, 4, 7}, {5000, 5, 7}, {5500, 0, 8}, {6000, 1, 8}, {6500, 1, 8}}, false},
		"old octets alone":      {[]look{{0, 1, 7}, {3000, 3, 7}, {3500, 0, 7}, {5000, 1, 7}, {5500, 1, 7}}, true},
		"nothing is tried":      {[]look{{0, 0, 7}, {5000, 0, 7}, {10000, 0, 7}}, false},
		"tried again and again": {[]look{{0, 1, 7}, {500, 0, 8}, {5500, 1, 8}, {6000, 0, 9}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := silence{answers: 7}
			for i, l := range c.looks {
				lost := s.hears(verbsinternal.Heard{Tries: l.tries, Answers: uint64(l.answers)}, at(l.ms), limit)
				require.Equal(t, c.lost && i == len(c.looks)-1, lost, "%d", i)
			}
		})
	}
}
