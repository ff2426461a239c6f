package qp

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/internal/netpoll"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// graceful is a setup that pauses when no receive is posted, on its own RQ or on
// an S-RQ.
func graceful(c setup, shared *sharedQueue) setup {
	more := c.config
	c.config = func(q *Config) {
		if more != nil {
			more(q)
		}
		q.GracefulReceive = true
		if shared != nil {
			q.SRQ = shared.Queue
		}
	}
	return c
}

// paused waits until the stream is paused.
func (r *rig) paused() {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		return r.s.rx.locked(func(rx *receiver) bool { return rx.in.kept != nil })
	}, patience, time.Millisecond)
}

// gracefulRigs runs a test with a RQ and with an S-RQ, on TCP and on a pipe. post
// posts receives.
func gracefulRigs(t *testing.T, run func(t *testing.T, r *rig, post func(...wr.Recv))) {
	for _, pipe := range []bool{false, true} {
		for _, sharing := range []bool{false, true} {
			t.Run(fmt.Sprintf("pipe=%v,S-RQ=%v", pipe, sharing), func(t *testing.T) {
				var shared *sharedQueue
				if sharing {
					shared = newShared(t, ownPD)
				}
				r := newRig(t, graceful(setup{pipe: pipe}, shared))
				if sharing {
					run(t, r, shared.post)
				} else {
					run(t, r, r.postRecv)
				}
			})
		}
	}
}

// inBackground has the peer send, which may block while the stream is paused.
func (r *rig) inBackground(ulpdus ...[]byte) (done chan error) {
	done = make(chan error, 1)
	go func() {
		for _, u := range ulpdus {
			if err := r.peer.Send(u); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	return done
}

// TestGraceful: a Send that finds no receive waits for one, with everything behind
// it, and what this side sends does not (verbs draft 13.2).
func TestGraceful(t *testing.T) {
	gracefulRigs(t, func(t *testing.T, r *rig, post func(...wr.Recv)) {
		sent := r.inBackground(
			rawpeer.Send(1, filled(9)).Octets(), rawpeer.Send(2, nil).Octets(),
			rawpeer.Write(uint32(r.writable.stag), r.writable.at(0), filled(50)).Octets(),
			rawpeer.Send(3, filled(3)).Octets(),
		)
		r.paused()
		r.postSend(wr.Request{ID: 10, SGL: r.full.sgl(0, 8)})
		require.Equal(t, rawpeer.Send(1, r.full.mem()[:8]).Octets(), r.next())
		require.Equal(t, []comp{{10, 0, 0}}, r.wait(r.scq, 1))
		require.Equal(t, wr.StateRTS, r.q.State())
		require.Empty(t, r.all(r.rcq))

		post(wr.Recv{ID: 1, SGL: r.full.sgl(100, 20)})
		require.Equal(t, []comp{{1, 0, 9}}, r.wait(r.rcq, 1))
		r.paused()
		r.full.expect(100, filled(9))
		r.requireMemory() // the Write behind it waits too
		post(wr.Recv{ID: 2}, wr.Recv{ID: 3, SGL: r.full.sgl(200, 20)})
		require.Equal(t, []comp{{2, 0, 0}, {3, 0, 3}}, r.wait(r.rcq, 2))
		require.NoError(t, <-sent)
		r.writable.expect(0, filled(50))
		r.full.expect(200, filled(3))
		r.requireMemory()
		r.requireEvents()
	})
}

// TestGracefulFaults: what is wrong with the message shows when it is looked at
// again; with the stream, at once.
func TestGracefulFaults(t *testing.T) {
	gracefulRigs(t, func(t *testing.T, r *rig, post func(...wr.Recv)) {
		bad := rawpeer.Send(1, filled(9)).Octets()
		r.send(bad)
		r.paused()
		post(wr.Recv{ID: 1, SGL: r.full.sgl(0, 8)})
		require.Equal(t, terminate(0x1205, echoDDP, bad), r.next())
		require.NoError(t, r.peer.Close())
		r.over()
		require.Equal(t, []comp{{1, wr.StatusBaseBounds, 0}}, r.all(r.rcq))
	})
	gracefulRigs(t, func(t *testing.T, r *rig, _ func(...wr.Recv)) {
		bad := rawpeer.Send(2, nil).Octets()
		r.send(bad)
		require.Equal(t, terminate(0x1203, echoDDP, bad), r.next(), "not the message that is due")
	})
	gracefulRigs(t, func(t *testing.T, r *rig, _ func(...wr.Recv)) {
		r.send(rawpeer.Send(1, nil).Octets())
		r.paused()
		r.postSend(wr.Request{ID: 1, SGL: []wr.SGE{{STag: r.gone, Length: 1}}})
		require.Equal(t, terminate(0, echoNone, nil), r.next(), "this side's own error")
		require.NoError(t, r.peer.Close())
		r.over()
		require.Equal(t, []comp{{1, wr.StatusInvalidSTag, 0}}, r.all(r.scq))
	})
}

// TestGracefulEndings: a queue pair that is paused ends as any other; a message
// that waits makes a close a bad one.
func TestGracefulEndings(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(*rig)
		event []wr.EventID
	}{
		"Destroy":           {func(r *rig) { assert.NoError(r.t, r.q.Destroy()) }, nil},
		"Modify to Error":   {func(r *rig) { assert.NoError(r.t, r.q.Modify(Modify{Next: wr.StateError})) }, nil},
		"Modify to Closing": {func(r *rig) { assert.NoError(r.t, r.q.Modify(Modify{Next: wr.StateClosing})) }, []wr.EventID{wr.EventBadClose}},
		"Modify to Terminate": {func(r *rig) {
			assert.NoError(r.t, r.q.Modify(Modify{Next: wr.StateTerminate}))
			assert.Equal(r.t, terminate(0, echoNone, nil), r.next())
			assert.NoError(r.t, r.peer.Close())
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			gracefulRigs(t, func(t *testing.T, r *rig, _ func(...wr.Recv)) {
				sent := r.inBackground(rawpeer.Send(1, filled(9)).Octets())
				r.paused()
				require.NoError(t, <-sent)
				promptly(t, name, func() { c.do(r) })
				r.over()
				require.Equal(t, wr.StateError, r.q.State())
				r.requireEvents(c.event...)
				require.Empty(t, r.all(r.rcq))
				r.requireMemory()
			})
		})
	}
}

// twoPaused are two queue pairs of an S-RQ whose peers have sent a message each, for which
// there is no receive.
func twoPaused(t *testing.T, set setup) (r, b *rig) {
	r = newRig(t, set)
	b = r.sibling(20)
	for _, q := range []*rig{r, b} {
		q.send(rawpeer.Send(1, nil).Octets())
		q.paused()
	}
	return r, b
}

// TestGracefulSharedFails: a failure of the S-RQ wakes who waits for it.
func TestGracefulSharedFails(t *testing.T) {
	shared := newShared(t, ownPD)
	r, b := twoPaused(t, graceful(setup{}, shared))
	shared.Fail()
	for _, q := range []*rig{r, b} {
		require.Equal(t, terminate(0x0207, echoNone, nil), q.next())
		require.NoError(t, q.peer.Close())
		q.over()
		q.requireEvents(wr.EventSRQError)
	}
}

// TestGracefulForgets: who has ended takes no wake-up and no receive from others.
func TestGracefulForgets(t *testing.T) {
	shared := newShared(t, ownPD)
	r, b := twoPaused(t, graceful(setup{}, shared))
	require.NoError(t, r.q.Destroy())
	shared.post(wr.Recv{ID: 1})
	require.Equal(t, []comp{{1, 0, 0}}, b.wait(b.rcq, 1))
}

// undriven is a setup with an S-RQ in which no poll takes a receive.
func undriven(shared *sharedQueue) setup {
	set := graceful(setup{}, shared)
	config := set.config
	set.config = func(c *Config) {
		config(c)
		c.Tuning.Drive, c.Tuning.Direct = -1, 64
	}
	return set
}

// TestGracefulWokenEnds: a receive is for the first that waits for one. Who ends when
// it was woken leaves it to the next.
func TestGracefulWokenEnds(t *testing.T) {
	shared := newShared(t, ownPD)
	r, b := twoPaused(t, undriven(shared))
	r.s.rx.mu.Lock() // as if it did not get the processor
	shared.post(wr.Recv{ID: 1})
	halted := r.s.halt(cause{fault: faultModifyError})
	r.s.rx.mu.Unlock()
	require.True(t, halted)
	r.over()
	require.Equal(t, []comp{{1, 0, 0}}, b.wait(b.rcq, 1))
	require.Empty(t, r.all(r.rcq))
}

// TestGracefulHalf: a receive does not wait for a message of which only the beginning
// has come, but for one that is whole.
func TestGracefulHalf(t *testing.T) {
	shared := newShared(t, ownPD)
	r := newRig(t, undriven(shared))
	b := r.sibling(20)
	whole := r.peer.Frame(rawpeer.Send(1, filled(600)).Octets())
	require.NoError(t, r.peer.Raw(whole[:100]))
	require.Eventually(t, func() bool {
		return r.s.rx.locked(func(rx *receiver) bool { return rx.in.Buffered() == 100 })
	}, patience, time.Millisecond)
	b.send(rawpeer.Send(1, nil).Octets())
	b.paused()
	shared.post(wr.Recv{ID: 1})
	require.Equal(t, []comp{{1, 0, 0}}, b.wait(b.rcq, 1))
	shared.post(wr.Recv{ID: 2, SGL: r.full.sgl(0, 600)})
	require.NoError(t, r.peer.Raw(whole[100:]))
	require.Equal(t, []comp{{2, 0, 600}}, r.wait(r.rcq, 1))
}

// TestGracefulRests: while it is paused nothing of the session runs, as far as the
// bubble's clock can tell, and a poll drives nothing.
func TestGracefulRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, graceful(setup{pipe: true}, nil))
		list := [][]byte{rawpeer.Send(1, filled(9)).Octets()}
		for range 1 << 15 { // more than is read ahead of the session
			list = append(list, rawpeer.Write(0, 0, nil).Octets())
		}
		sent := r.inBackground(append(list, rawpeer.Send(2, nil).Octets())...)
		synctest.Wait() // returns when every goroutine sleeps
		require.NotNil(t, r.s.rx.in.kept)
		require.Empty(t, sent, "what is behind it is read no further than the buffers reach")
		r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(0, 9)}, wr.Recv{ID: 2})
		require.NoError(t, <-sent)
		require.Equal(t, []comp{{1, 0, 9}, {2, 0, 0}}, r.wait(r.rcq, 2))
		require.NoError(t, r.q.Destroy())
		require.NoError(t, r.peer.Close())
	})
	r := newRig(t, graceful(setup{}, nil))
	r.send(rawpeer.Send(1, nil).Octets(), rawpeer.Send(2, nil).Octets())
	r.paused()
	require.False(t, r.s.rx.drive())
	r.postRecv(wr.Recv{ID: 1})
	require.Equal(t, []comp{{1, 0, 0}}, r.wait(r.rcq, 1))
}

// TestGracefulEarly: the message came before there was a session.
func TestGracefulEarly(t *testing.T) {
	r := newIdleRig(t, graceful(setup{}, nil))
	f := mpa.NewFramer(false, false)
	early := f.AppendFPDU(f.AppendFPDU(nil, rawpeer.Send(1, filled(9)).Octets()), rawpeer.Send(2, nil).Octets())
	r.set.stream = func(s *mpa.Stream) { s.Early = early }
	r.connect()
	r.paused()
	require.NotZero(t, r.s.rx.locked(func(rx *receiver) bool { return rx.in.Buffered() > len(rx.in.kept) }))
	r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(0, 9)}, wr.Recv{ID: 2})
	require.Equal(t, []comp{{1, 0, 9}, {2, 0, 0}}, r.wait(r.rcq, 2))
}

// TestGracefulEarlyAlone: as long as the message that came early waits, nothing is read into
// the buffer that it lies in.
func TestGracefulEarlyAlone(t *testing.T) {
	r := newIdleRig(t, graceful(setup{}, nil))
	r.set.stream = func(s *mpa.Stream) {
		s.Early = r.peer.Frame(rawpeer.Send(1, filled(90)).Octets())
		r.send(rawpeer.Send(2, make([]byte, 90)).Octets())
	}
	r.connect()
	r.paused()
	r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(0, 90)}, wr.Recv{ID: 2, SGL: r.full.sgl(100, 90)})
	require.Equal(t, []comp{{1, 0, 90}, {2, 0, 90}}, r.wait(r.rcq, 2))
	r.full.expect(0, filled(90))
	r.full.expect(100, make([]byte, 90))
	r.requireMemory()
}

// TestGracefulSends: though it is paused, a stream sends what the LLP did not take at once as
// soon as the peer reads (verbs draft 13.2).
func TestGracefulSends(t *testing.T) {
	r := newIdleRig(t, graceful(setup{}, nil))
	big := r.big(8 << 20)
	r.connectNarrow()
	r.postSend(wr.Request{ID: 1, SGL: []wr.SGE{big}})
	r.stuck()
	r.send(rawpeer.Send(1, nil).Octets())
	r.paused()
	require.Len(t, r.gather(rdmap.Send, func(ddp.Segment, int) {}), int(big.Length))
	require.Equal(t, []comp{{1, 0, 0}}, r.wait(r.scq, 1))
	r.postRecv(wr.Recv{ID: 2})
	require.Equal(t, []comp{{2, 0, 0}}, r.wait(r.rcq, 1))
}

// TestLLPWatchedNoMore: a stream that the system has no room to watch is lost.
func TestLLPWatchedNoMore(t *testing.T) {
	r := newRig(t, setup{})
	r.postRecv(wr.Recv{ID: 1})
	require.True(t, r.s.Drive(netpoll.In|netpoll.Out|netpoll.Lost))
	r.over()
	require.Equal(t, wr.StateError, r.q.State())
	require.Equal(t, flushed(1), r.all(r.rcq))
	r.requireEvents(wr.EventLLPLost)
}

// TestGracefulKeepsBuffer: the message lies in the receive buffer, which no other
// stream gets meanwhile.
func TestGracefulKeepsBuffer(t *testing.T) {
	r := newRig(t, graceful(setup{}, nil))
	r.send(rawpeer.Send(1, filled(slabSize)).Octets())
	r.paused()
	require.True(t, r.s.rx.locked(func(rx *receiver) bool { return rx.in.buf != nil }))
	b := newRig(t, setup{})
	for msn := range uint32(20) {
		b.postRecv(wr.Recv{SGL: b.full.sgl(0, slabSize)})
		b.send(rawpeer.Send(msn+1, make([]byte, slabSize)).Octets())
		b.wait(b.rcq, 1)
	}
	r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(0, slabSize)})
	require.Equal(t, []comp{{1, 0, slabSize}}, r.wait(r.rcq, 1))
	r.full.expect(0, filled(slabSize))
	r.requireMemory()
}

// TestGracefulBackPressure: the peer comes to a stop, and what has arrived fits
// into the receive buffer.
func TestGracefulBackPressure(t *testing.T) {
	r := newRig(t, graceful(setup{}, nil))
	const n = 200 // of 60,000 octets: far more than the sockets take
	big := make([]byte, 60000)
	var list [][]byte
	for msn := range uint32(n) {
		list = append(list, rawpeer.Write(0, 0, nil).Octets(), rawpeer.Segment{Op: 3, MSN: msn + 1, Payload: big[:slabSize]}.Octets())
		for range 14 {
			list = append(list, rawpeer.Write(uint32(r.writable.stag), r.writable.at(0), big[:slabSize]).Octets())
		}
	}
	clear(r.writable.want[guard : guard+slabSize])
	sent := r.inBackground(list...)
	r.paused()
	require.Empty(t, sent)
	require.LessOrEqual(t, r.s.rx.in.Buffered(), mpa.RecommendedBuffer)
	clear(r.full.want[guard : guard+slabSize])
	for range n {
		r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(0, slabSize)})
		require.Equal(t, []comp{{1, 0, slabSize}}, r.wait(r.rcq, 1))
	}
	require.NoError(t, <-sent)
	require.NoError(t, r.peer.CloseWrite())
	r.over()
	require.Equal(t, wr.StateIdle, r.q.State())
	r.requireMemory()
}
