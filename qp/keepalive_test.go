package qp

import (
	"bytes"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// nudged is a rig whose Initiator may nudge, in a bubble of its own clock, and when
// that began.
func nudged(t *testing.T, test func(t *testing.T, r *rig, begun time.Time), changes ...func(*mpa.Stream)) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		r := newRig(t, setup{pipe: true, stream: func(s *mpa.Stream) {
			s.Nudge = true
			for _, change := range changes {
				change(s)
			}
		}})
		test(t, r, begun)
		promptly(t, "Destroy", func() { _ = r.q.Destroy() })
		require.NoError(t, r.peer.Close())
	})
}

// arrivals are the ULPDUs that come within d, and when, from begun on.
func (r *rig) arrivals(begun time.Time, d time.Duration) (ulpdus [][]byte, at []time.Duration) {
	until := time.Now().Add(d)
	for !r.peer.Silent(time.Until(until)) {
		ulpdus = append(ulpdus, append([]byte(nil), r.next()...))
		at = append(at, time.Since(begun))
	}
	return ulpdus, at
}

func ms(n ...int) (all []time.Duration) {
	for _, n := range n {
		all = append(all, time.Duration(n)*time.Millisecond)
	}
	return all
}

// aNudge is an empty RDMA Write, as the ready-to-receive frame is.
var aNudge = rawpeer.Write(rtrSTag, 0, nil).Octets()

// TestNudges: a peer that says nothing gets ten in ten seconds, between the messages of
// the program, none before the first of these, and none any more after them.
func TestNudges(t *testing.T) {
	nudged(t, func(t *testing.T, r *rig, begun time.Time) {
		ulpdus, _ := r.arrivals(begun, 25*time.Millisecond)
		require.Empty(t, ulpdus, "before the program has sent anything")
		r.postSend(wr.Request{ID: 1})
		got, at := r.arrivals(begun, 55*time.Millisecond)
		require.Equal(t, [][]byte{rawpeer.Send(1, nil).Octets(), aNudge, aNudge}, got)
		require.Equal(t, ms(25, 35, 75), at)
		r.postSend(wr.Request{ID: 2})
		require.Equal(t, rawpeer.Send(2, nil).Octets(), r.next())
		got, at = r.arrivals(begun, time.Hour)
		require.Len(t, got, 7)
		for _, u := range got {
			assert.Equal(t, aNudge, u)
		}
		require.Equal(t, ms(155, 315, 635, 1275, 2555, 5115, 10235), at)
	})
}

// TestNudgeAwaitsTheAnswer: on a path where an answer takes long the first nudge does not
// come before it could be there, however late the program begins.
func TestNudgeAwaitsTheAnswer(t *testing.T) {
	for _, c := range []struct{ rtt, sent, first, second int }{ // milliseconds
		{0, 0, 10, 30},
		{5, 0, 10, 30},
		{200, 0, 400, 1200},
		{200, 390, 790, 1590},
		{200, 1000, 1400, 3000},
		{200, 1190, 1590, 3190},
	} {
		nudged(t, func(t *testing.T, r *rig, begun time.Time) {
			r.s.tx.mu.Lock()
			r.s.tx.keepalive = newKeepalive(ms(c.rtt)[0], r.s.tx.probe)
			r.s.tx.mu.Unlock()
			time.Sleep(ms(c.sent)[0])
			r.postSend(wr.Request{ID: 1})
			require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
			_, at := r.arrivals(begun, ms(c.second - c.sent + 1)[0])
			require.Equal(t, ms(c.first, c.second), at, "%v", c)
		}, func(s *mpa.Stream) { s.Nudge = false })
	}
}

// TestNudgeOnceHeard: the peer has spoken, but what it has read of what was sent before
// is not known: one more, unless the program has sent something since.
func TestNudgeOnceHeard(t *testing.T) {
	for name, test := range map[string]struct {
		before, after bool // the program sends, seen from the peer's FPDU
		want          []time.Duration
	}{
		"it speaks first":           {},
		"then we do":                {after: true},
		"we spoke before":           {before: true, want: ms(10)},
		"we spoke before and after": {before: true, after: true},
	} {
		t.Run(name, func(t *testing.T) {
			nudged(t, func(t *testing.T, r *rig, begun time.Time) {
				post := func(yes bool, id uint64) {
					if yes {
						r.postSend(wr.Request{ID: id})
						require.Equal(t, rawpeer.Send(uint32(id), nil).Octets(), r.next())
					}
				}
				r.postRecv(wr.Recv{ID: 9})
				post(test.before, 1)
				r.send(rawpeer.Send(1, nil).Octets())
				r.wait(r.rcq, 1)
				n := uint64(1)
				if test.before {
					n = 2
				}
				post(test.after, n)
				got, at := r.arrivals(begun, time.Hour)
				require.Equal(t, test.want, at)
				for _, u := range got {
					assert.Equal(t, aNudge, u)
				}
			})
		})
	}
}

// TestNudgeRTR: the ready-to-receive frame is what the peer may have missed.
func TestNudgeRTR(t *testing.T) {
	nudged(t, func(t *testing.T, r *rig, begun time.Time) {
		got, at := r.arrivals(begun, 25*time.Millisecond)
		require.Equal(t, [][]byte{rawpeer.Send(1, nil).Octets(), aNudge}, got)
		require.Equal(t, ms(0, 10), at)
	}, func(s *mpa.Stream) { s.P2P, s.RTR = true, mpa.RTRSend })
}

// TestNudgeNobody: a Responder's peer has spoken first, and a stream may be closed to
// nudges.
func TestNudgeNobody(t *testing.T) {
	for name, change := range map[string]func(*mpa.Stream){
		"Responder":  func(s *mpa.Stream) { s.Role = mpa.Responder },
		"turned off": func(s *mpa.Stream) { s.Nudge = false },
	} {
		t.Run(name, func(t *testing.T) {
			nudged(t, func(t *testing.T, r *rig, begun time.Time) {
				r.send(rawpeer.Write(0, 0, nil).Octets())
				r.postSend(wr.Request{ID: 1})
				require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
				got, _ := r.arrivals(begun, time.Hour)
				require.Empty(t, got)
			}, change)
		})
	}
	// The peer has said nothing at all.
	nudged(t, func(t *testing.T, r *rig, begun time.Time) {
		r.postSend(wr.Request{ID: 1})
		got, _ := r.arrivals(begun, time.Hour)
		require.Equal(t, [][]byte{rawpeer.Send(1, nil).Octets()}, got)
	}, func(s *mpa.Stream) { s.Nudge = false })
}

// TestNudgeEnds: a session that has ended sends none.
func TestNudgeEnds(t *testing.T) {
	nudged(t, func(t *testing.T, r *rig, begun time.Time) {
		r.postSend(wr.Request{ID: 1})
		require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
		require.NoError(t, r.q.Destroy())
		end, fpdus, err := r.peer.End()
		require.NoError(t, err)
		require.Zero(t, fpdus, end)
	})
}

// TestNudgeBehindAnAnswer: the nudge is due while another goroutine sends something to a
// peer that has spoken. None goes out behind that: the peer may close now.
func TestNudgeBehindAnAnswer(t *testing.T) {
	r := newRig(t, setup{})
	tx := &r.s.tx
	r.postSend(wr.Request{ID: 1})
	require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
	tx.mu.Lock()
	tx.keepalive = newKeepalive(0, func() {})
	done := make(chan struct{})
	go func() { tx.probe(); close(done) }()
	require.Eventually(t, func() bool { return locking("(*transmitter).probe") }, patience, time.Millisecond)
	r.s.rx.firstFPDU.Store(tx.written.Load() + 1)
	tx.written.Add(20)
	tx.mu.Unlock()
	<-done
	assert.Equal(t, probeTimes, tx.keepalive.left, "there is to be another one")
	assert.Zero(t, tx.rtr)
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateClosing}))
	end, fpdus, err := r.peer.End()
	require.NoError(t, err)
	require.Zero(t, fpdus, end)
}

// TestEndsBeforeNudges: the stream fails while the queue pair goes to RTS. The end of it has the transmit side by the time that
// the nudges are to begin, and waits for the change of state; the change of state does not wait for it.
func TestEndsBeforeNudges(t *testing.T) {
	var r *rig
	r = newIdleRig(t, setup{
		pipe: true,
		config: func(c *Config) {
			c.Trace = func(rec wr.Record) {
				if rec.Kind != wr.RecordState || rec.Next != wr.StateRTS {
					return
				}
				r.q.session.Load().fail(faultLLPLost)
				for !locking("(*QP).leaveRTS") {
					runtime.Gosched()
				}
			}
		},
		stream: func(s *mpa.Stream) { s.Nudge = true },
	})
	promptly(t, "Modify QP", r.connect)
	<-r.q.Done()
	assert.Equal(t, wr.StateError, r.q.State())
}

// locking reports whether a goroutine waits for a mutex in a function.
func locking(function string) bool {
	stacks := make([]byte, 1<<20)
	for _, g := range bytes.Split(stacks[:runtime.Stack(stacks, true)], []byte("\n\n")) {
		if bytes.Contains(g, []byte("[sync.Mutex.Lock")) && bytes.Contains(g, []byte(function)) {
			return true
		}
	}
	return false
}

// TestDrainBesideANudge: who waits for nothing to be left finds the transmit side taken by a nudge, and hears when that is over.
func TestDrainBesideANudge(t *testing.T) {
	nudged(t, func(t *testing.T, r *rig, _ time.Time) {
		drained := make(chan error, 1)
		r.s.tx.mu.Lock()
		go func() { drained <- r.q.Drain(t.Context()) }()
		synctest.Wait()
		require.Empty(t, drained)
		r.s.tx.mu.Unlock()
		r.s.tx.probe()
		synctest.Wait()
		require.Len(t, drained, 1)
		require.NoError(t, <-drained)
	})
}
