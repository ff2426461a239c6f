package qp

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// octetsAside is how much of the stream waits for receives while it is read on.
func (r *rig) octetsAside() (n int) {
	r.s.rx.locked(func(rx *receiver) bool { n = rx.in.aside.octets; return true })
	return n
}

func (r *rig) setsAside() {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.octetsAside() > 0 }, patience, time.Millisecond)
}

// TestAnswerOvertakes: a Write that is placed completes while a Send of the peer, and what is behind that, waits for a receive;
// all of that comes later, in its order, and so does the peer's close.
func TestAnswerOvertakes(t *testing.T) {
	for _, c := range []setup{{}, {crc: true}, {pipe: true}} {
		r := placingRig(t, 3, graceful(c, nil))
		r.write(1, 0)
		r.asked(1)
		r.send(rawpeer.Send(1, filled(9)).Octets())
		r.setsAside()
		r.send(rawpeer.Write(uint32(r.writable.stag), r.writable.at(0), filled(50)).Octets())
		r.send(rawpeer.Send(2, filled(3)).Octets())
		r.answer()
		assert.Equal(t, ok(1), r.wait(r.scq, 1))
		r.requireMemory() // the Write waits with the Send before it
		r.write(2, 0)
		r.asked(2)
		r.answer()
		assert.Equal(t, ok(2), r.wait(r.scq, 1))
		assert.Empty(t, r.all(r.rcq))
		require.NoError(t, r.peer.CloseWrite())

		r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(100, 20)})
		require.Equal(t, []comp{{1, 0, 9}}, r.wait(r.rcq, 1))
		assert.Equal(t, wr.StateRTS, r.q.State(), "the close is behind a Send that waits")
		r.postRecv(wr.Recv{ID: 2, SGL: r.full.sgl(200, 20)})
		require.Equal(t, []comp{{2, 0, 3}}, r.wait(r.rcq, 1))
		r.over()
		r.full.expect(100, filled(9))
		r.full.expect(200, filled(3))
		r.writable.expect(0, filled(50))
		r.requireMemory()
		assert.Equal(t, wr.StateIdle, r.q.State())
		r.requireEvents(wr.EventLLPCloseComplete)
	}
}

// TestAsideIsBounded: behind what is set aside the stream is paused, and nothing is lost.
func TestAsideIsBounded(t *testing.T) {
	r := placingRig(t, 3, graceful(setup{depth: 512}, nil))
	const n, size = 400, 1000
	var all [][]byte
	for i := range uint32(n) {
		all = append(all, rawpeer.Send(i+1, filled(size)).Octets())
	}
	sent := r.inBackground(all...)
	r.paused()
	at := r.octetsAside()
	assert.LessOrEqual(t, at, maxAside)
	assert.Greater(t, at, maxAside-2*size)
	r.full.free = true
	for got := range n {
		r.postRecv(wr.Recv{ID: uint64(got), SGL: r.full.sgl(0, size)})
		require.Equal(t, []comp{{uint64(got), 0, size}}, r.wait(r.rcq, 1))
	}
	require.NoError(t, <-sent)
	assert.Zero(t, r.octetsAside())
}

// TestAside does at random what a plain slice does too: the oldest is handled, or put back, and others come behind.
func TestAside(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var a aside
	var want [][]byte
	for range 20_000 {
		a.past = false
		for range rng.IntN(4) { // receives
			got := a.next()
			if len(want) == 0 {
				require.Nil(t, got)
				require.Nil(t, a.ulpdus, "no array is kept")
				break
			}
			require.Equal(t, want[0], got)
			want = want[1:]
		}
		if u := a.next(); u != nil {
			require.Equal(t, want[0], u)
			require.True(t, a.set(u))
			require.Nil(t, a.next(), "what comes next is behind them")
		}
		for range rng.IntN(4) {
			u := filled(1 + rng.IntN(2000))
			a.first = false
			if a.octets+len(u)+eachAside > maxAside {
				require.False(t, a.set(u))
				continue
			}
			require.True(t, a.set(u))
			want = append(want, u)
		}
		octets, held := 0, 0
		for _, u := range want {
			octets += len(u) + eachAside
		}
		require.Equal(t, octets, a.octets)
		for _, u := range a.ulpdus {
			if u != nil {
				held++
			}
		}
		require.LessOrEqual(t, held, len(want)+1, "what was handled is nobody's")
	}
}

// TestAsideCosts: an arrival behind many that wait costs as much as behind one.
func TestAsideCosts(t *testing.T) {
	var a aside
	for range 1000 {
		require.True(t, a.set([]byte{1}))
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		a.past = false
		a.set(a.next())
	}))
}
