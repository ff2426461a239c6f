package qp

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/internal/netpoll"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// corkedRig is a rig that lets the first two posts of a series go out at once, and holds
// up to four Sends of 10 octets back. The pause that ends a series is never or always
// there; what is held back has company only if transmitLoop is to see it.
func corkedRig(t *testing.T, pause time.Duration, company bool) *rig {
	c := setup{config: func(c *Config) { c.Tuning = Tuning{Drive: 1, Eager: 2, Hold: 4 * (postWeight + 10)} }}
	return preparedRig(t, c, func(s *session) {
		s.rx.single = false
		s.tx.batching.pause = pause
		if !company {
			s.tx.batching.hold = func(bool) { s.sock.Hold(false) }
			s.tx.batching.linger = time.Hour
		}
	})
}

// preparedRig is newRig over TCP with something done to the session before it starts.
func preparedRig(t *testing.T, c setup, prepare func(*session)) *rig {
	r := newIdleRig(t, c)
	mine, theirs, err := rawpeer.Pair()
	require.NoError(t, err)
	r.peer = rawpeer.New(theirs, rawpeer.Options{Patience: patience})
	r.q.mu.Lock() // as QP.start does
	defer r.q.mu.Unlock()
	r.s, err = r.q.prepare(&Modify{Stream: &mpa.Stream{Conn: mine}})
	require.NoError(t, err)
	prepare(r.s)
	r.q.session.Store(r.s)
	r.q.last.Store(r.s)
	r.q.setState(wr.StateRTS)
	r.s.start()
	return r
}

// never and always are pauses.
const never, always = time.Hour, 0

// postSeries posts two empty Sends, and n of 10 octets with the IDs from 1 on.
func (r *rig) postSeries(n int) {
	r.t.Helper()
	for range 2 {
		r.postSend(wr.Request{Flags: wr.Unsignaled})
	}
	for i := range n {
		r.postSend(wr.Request{ID: uint64(1 + i), SGL: r.full.sgl(0, 10)})
	}
	for msn := range uint32(2) {
		require.Equal(r.t, rawpeer.Send(1+msn, nil).Octets(), r.next(), "the first go out at once")
	}
}

// requireSent reads the Sends of 10 octets.
func (r *rig) requireSent(n int) {
	r.t.Helper()
	for i := range uint32(n) {
		require.Equal(r.t, rawpeer.Send(3+i, r.full.mem()[:10]).Octets(), r.next())
	}
}

// TestHeldBack: requests behind the first few of a series stay on the Send Queue until
// something sends them.
func TestHeldBack(t *testing.T) {
	tests := map[string]func(r *rig){
		"an empty poll": func(r *rig) { r.rcq.Poll(make([]wr.Completion, 1)) },
		"Request":       func(r *rig) { require.NoError(r.t, r.scq.Request(wr.NotifyNext)) },
		"a wait": func(r *rig) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_, err := r.rcq.Wait(ctx, make([]wr.Completion, 1))
			require.Error(r.t, err)
		},
		"Drain":        func(r *rig) { require.NoError(r.t, r.q.Drain(context.Background())) },
		"Modify":       func(r *rig) { ord := 1; require.NoError(r.t, r.q.Modify(Modify{Next: wr.StateRTS, ORD: &ord})) },
		"a good close": func(r *rig) { require.NoError(r.t, r.q.Modify(Modify{Next: wr.StateClosing})) },
	}
	for name, look := range tests {
		t.Run(name, func(t *testing.T) {
			r := corkedRig(t, never, false)
			r.postSeries(2)
			assert.True(t, r.peer.Silent(time.Millisecond))
			assert.Equal(t, uint64(2), r.q.sq.framed.Load())
			look(r)
			r.requireSent(2)
		})
	}
}

// TestShrinksBehindWhatIsHeldBack: what is held back is sent ahead, and not outstanding.
func TestShrinksBehindWhatIsHeldBack(t *testing.T) {
	r := corkedRig(t, never, false)
	r.postSeries(0)
	for range 2 {
		r.postSend(wr.Request{Flags: wr.Unsignaled})
	}
	assert.Equal(t, uint64(2), r.q.sq.framed.Load())
	depth := 1
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateRTS, SendDepth: &depth}))
}

// TestClosesBehindAFlush: who flushes has taken what is held back, or the transmit side too, when the program closes: it is sent, and
// the close is a good one.
func TestClosesBehindAFlush(t *testing.T) {
	for name, closes := range map[string]func(*rig) error{
		"Modify QP":         func(r *rig) error { return r.q.Modify(Modify{Next: wr.StateClosing}) },
		"of the LLP stream": func(r *rig) error { return r.q.LLPStream().Stop(wr.StateClosing) },
	} {
		t.Run(name+", taken", func(t *testing.T) {
			r := corkedRig(t, never, false)
			r.postSeries(2)
			r.s.tx.batching.octets.Store(0)
			require.NoError(t, closes(r))
			r.requireSent(2)
			r.requireEnd(rawpeer.FIN)
		})
		t.Run(name+", under way", func(t *testing.T) {
			r := corkedRig(t, never, false)
			r.postSeries(2)
			r.s.tx.mu.Lock()
			r.s.tx.batching.octets.Store(0)
			begun, closed := make(chan struct{}), make(chan error, 1)
			go func() {
				close(begun)
				closed <- closes(r)
			}()
			<-begun
			for range 1000 { // the close may be made to wait, or not: it shows at the peer
				runtime.Gosched()
			}
			r.s.tx.mu.Unlock()
			require.NoError(t, <-closed)
			r.requireSent(2)
			r.requireEnd(rawpeer.FIN)
		})
	}
}

// TestHeldBackFull: so much is held back and no more.
func TestHeldBackFull(t *testing.T) {
	r := corkedRig(t, never, false)
	r.postSeries(3)
	assert.True(t, r.peer.Silent(time.Millisecond))
	r.postSend(wr.Request{ID: 4, SGL: r.full.sgl(0, 10)})
	r.requireSent(4)
	assert.Len(t, r.wait(r.scq, 4), 4)
	assert.Zero(t, r.s.tx.batching.octets.Load())
	// The poll that found all was no look; an empty one is.
	r.postSend(wr.Request{ID: 5, SGL: r.full.sgl(0, 10)})
	assert.Equal(t, uint64(6), r.q.sq.framed.Load())
	r.all(r.scq)
	assert.Equal(t, uint64(7), r.q.sq.framed.Load())
}

// TestSeries: behind a pause a post goes out at once, with nobody to send it but the
// poster. Behind a series that was held back it is one; the next is held back again.
func TestSeries(t *testing.T) {
	r := corkedRig(t, always, false)
	for i := range uint64(10) {
		r.postSend(wr.Request{Flags: wr.Unsignaled})
		require.Equal(t, 1+i, r.q.sq.framed.Load())
	}
	r.s.tx.batching.pause = never
	for range 4 { // one more at once, and three not
		r.postSend(wr.Request{Flags: wr.Unsignaled})
	}
	require.Equal(t, uint64(11), r.q.sq.framed.Load())
	r.s.tx.looked()
	require.Equal(t, uint64(14), r.q.sq.framed.Load())
	r.s.tx.batching.pause = always
	r.postSend(wr.Request{Flags: wr.Unsignaled})
	require.Equal(t, uint64(15), r.q.sq.framed.Load())
	r.s.tx.batching.pause = never
	r.postSend(wr.Request{Flags: wr.Unsignaled})
	require.Equal(t, uint64(15), r.q.sq.framed.Load())
}

// TestGoesOutByItself: a burst reaches the peer though the poster goes to sleep somewhere
// else, nobody looks at a CQ and no time passes: in a bubble it stands still while somebody
// reads a socket.
func TestGoesOutByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := corkedRig(t, never, true)
		begun := time.Now()
		for n := range uint32(3) {
			r.postThree(3 * n)
		}
		r.s.tx.batching.stream.Store(true)
		r.s.tx.batching.doubt.Store(doubts) // a program that has left something behind
		for n := range uint32(3) {
			r.postThree(9 + 3*n)
		}
		require.Zero(t, time.Since(begun))
	})
}

// postThree posts three empty Sends behind n others, and reads them.
func (r *rig) postThree(n uint32) {
	r.t.Helper()
	for range 3 {
		r.postSend(wr.Request{Flags: wr.Unsignaled})
	}
	for i := range uint32(3) {
		require.Equal(r.t, rawpeer.Send(n+1+i, nil).Octets(), r.next())
	}
}

// TestStreamLeavesNothing: what a program that streams has posted last goes out though it
// looks at no CQ any more, and it is not taken for one that streams again so soon.
func TestStreamLeavesNothing(t *testing.T) {
	r := corkedRig(t, never, false)
	c := &r.s.tx.batching
	r.postSeries(4)
	r.requireSent(4)
	require.True(t, c.stream.Load(), "a batch has come together")
	c.linger = linger
	for i := range uint32(3) {
		r.postSend(wr.Request{Flags: wr.Unsignaled})
		require.Equal(t, rawpeer.Send(7+i, nil).Octets(), r.next())
		require.Eventually(t, func() bool { return !c.stream.Load() }, patience, time.Millisecond)
		require.Equal(t, int32(doubts), c.doubt.Load())
		c.doubt.Store(0)
		c.stream.Store(true)
	}
}

// TestBurstOrStream: a batch that has grown while transmitLoop came is a stream's, and who
// has left something behind is not believed for a while.
func TestBurstOrStream(t *testing.T) {
	r := corkedRig(t, never, false)
	tx := &r.s.tx
	tx.batching.octets.Store(streamEach - 1)
	tx.burst()
	assert.False(t, tx.batching.streams())
	tx.batching.octets.Store(streamEach)
	tx.burst()
	assert.True(t, tx.batching.streams())
	tx.batching.octets.Store(1)
	tx.leftovers()
	assert.False(t, tx.batching.stream.Load())
	tx.batching.octets.Store(1)
	tx.looked()
	assert.True(t, tx.batching.stream.Load(), "it looked because its queue was full")
	for range doubts {
		assert.False(t, tx.batching.streams())
	}
	assert.True(t, tx.batching.streams())
}

// TestNeverHeldBack: where nothing is held back, nothing is.
func TestNeverHeldBack(t *testing.T) {
	for name, set := range map[string]setup{
		"turned off": {config: func(c *Config) { c.Tuning.Eager = -1 }},
		"pipe":       {pipe: true, config: func(c *Config) { c.Tuning.Eager = 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, set)
			for i := range 8 {
				go r.postSend(wr.Request{SGL: r.full.sgl(i, 10)})
				r.next()
			}
			assert.Zero(t, r.s.tx.batching.octets.Load())
		})
	}
}

// TestStalledWhenPollersLeave: what the LLP did not take at once goes out though the
// program polled, and so was to send it, and polls no more.
func TestStalledWhenPollersLeave(t *testing.T) {
	const messages, size = 2048, slabSize // more than the socket takes
	r := newRig(t, setup{config: func(c *Config) { c.SendDepth, c.Tuning.Drive = messages, 1 }})
	r.pollersServe()
	for range messages {
		r.postSend(wr.Request{Flags: wr.Unsignaled, SGL: r.full.sgl(0, size)})
	}
	for got := 0; got < messages*size; {
		s, code := ddp.Parse(r.next())
		require.Equal(t, ddp.CodeOK, code)
		got += s.Size()
	}
}

// pollersServe polls until the group's keeper has stepped aside.
func (r *rig) pollersServe() {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		for range 100 {
			r.rcq.Poll(make([]wr.Completion, 0, 1)[:1])
		}
		return r.rcq.Group().Server() == netpoll.Nobody
	}, patience, 1e5)
}
