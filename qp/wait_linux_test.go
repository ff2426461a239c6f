package qp

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/cq"
	"github.com/softrnic/softrnic/internal/netpoll"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// sleeper is a goroutine in Wait.
type sleeper struct {
	cancel context.CancelFunc
	ended  chan error
	got    []wr.Completion
}

// sleepOn starts a Wait on q, and returns when it sleeps on the stream.
func (r *rig) sleepOn(q *cq.Queue) *sleeper {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &sleeper{cancel: cancel, ended: make(chan error, 1)}
	r.t.Cleanup(cancel)
	go func() {
		var buf [4]wr.Completion
		n, err := q.Wait(ctx, buf[:])
		s.got = buf[:n]
		s.ended <- err
	}()
	r.untilAsleep()
	return s
}

// untilAsleep waits for a program to sleep in the group.
func (r *rig) untilAsleep() {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.rcq.Group().Server() == netpoll.Waiter }, patience, 1e6)
}

// sleepy is a rig on which programs can sleep, whatever the tuning under test.
func sleepy(t *testing.T, c setup) *rig {
	config := c.config
	c.config = func(conf *Config) {
		conf.Tuning.Drive = 1
		if config != nil {
			config(conf)
		}
	}
	return newRig(t, c)
}

// TestSleeperReceives: who waits is woken by what arrives, and receives it.
func TestSleeperReceives(t *testing.T) {
	r := sleepy(t, setup{})
	r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(0, 16)}, wr.Recv{ID: 2, SGL: r.full.sgl(0, 16)})
	for msn := range uint32(2) { // the keeper makes way once, and stays aside
		s := r.sleepOn(r.rcq)
		r.send(rawpeer.Write(uint32(r.writable.stag), r.writable.at(0), []byte("placed")).Octets())
		r.send(rawpeer.Send(1+msn, []byte("hello")).Octets())
		require.NoError(t, <-s.ended)
		require.Equal(t, []comp{{uint64(1 + msn), wr.StatusSuccess, 5}}, comps(s.got))
		r.writable.expect(0, []byte("placed"))
		r.full.expect(0, []byte("hello"))
	}
	r.requireMemory()
}

// TestSleepEnds: whatever else ends a Wait ends a sleep on a stream.
func TestSleepEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(r *rig, s *sleeper)
		err  error
		want []comp
	}{
		"its context": {end: func(_ *rig, s *sleeper) { s.cancel() }, err: context.Canceled},
		"Close":       {end: func(r *rig, _ *sleeper) { r.rcq.Close() }, err: wr.ErrInvalidCQ},
		"a completion of another": {end: func(r *rig, _ *sleeper) {
			r.rcq.Push(cq.Entry{Completion: wr.Completion{ID: 7}})
		}, want: []comp{{ID: 7}}},
		"Modify to Error": {end: func(r *rig, _ *sleeper) {
			r.postRecv(wr.Recv{ID: 8})
			promptly(r.t, "Modify", func() { assert.NoError(r.t, r.q.Modify(Modify{Next: wr.StateError})) })
		}, want: flushed(8)},
		"the peer's reset": {end: func(r *rig, _ *sleeper) {
			r.postRecv(wr.Recv{ID: 9})
			require.NoError(r.t, r.peer.Reset())
		}, want: flushed(9)},
		"Destroy": {end: func(r *rig, s *sleeper) {
			promptly(r.t, "Destroy", func() { assert.NoError(r.t, r.q.Destroy()) })
			s.cancel()
		}, err: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			r := sleepy(t, setup{})
			s := r.sleepOn(r.rcq)
			c.end(r, s)
			promptly(t, "the sleeper", func() { require.ErrorIs(t, <-s.ended, c.err) })
			require.Equal(t, c.want, comps(s.got))
		})
	}
}

// TestSleepersOfTwoQueues: one sleeps on the stream and receives for the other; when
// it has left, the keeper does.
func TestSleepersOfTwoQueues(t *testing.T) {
	r := sleepy(t, setup{})
	for i := range uint32(3) {
		r.postRecv(wr.Recv{ID: uint64(i), SGL: r.full.sgl(0, 16)})
		first := r.sleepOn(r.scq)
		got := make(chan []comp)
		go func() { got <- r.wait(r.rcq, 1) }()
		require.Eventually(t, r.rcq.Waiting, patience, 1e6)
		if i == 1 { // the one in the group leaves first
			first.cancel()
			require.ErrorIs(t, <-first.ended, context.Canceled)
		}
		r.send(rawpeer.Send(1+i, []byte("hello")).Octets())
		promptly(t, "the other", func() { require.Equal(t, []comp{{uint64(i), wr.StatusSuccess, 5}}, <-got) })
		if i != 1 {
			first.cancel()
			require.ErrorIs(t, <-first.ended, context.Canceled)
		}
	}
}

// TestSleeperGoesAway: who does not come back to sleep leaves the stream to the keeper.
func TestSleeperGoesAway(t *testing.T) {
	r := sleepy(t, setup{})
	s := r.sleepOn(r.rcq)
	s.cancel()
	require.ErrorIs(t, <-s.ended, context.Canceled)
	r.send(rawpeer.Write(uint32(r.writable.stag), r.writable.at(0), []byte("placed")).Octets())
	r.send(readRequest(1, 5, r.readable.stag, r.readable.at(0)).Octets())
	require.Equal(t, rawpeer.ReadResponse(0x5151, 0x6262, r.readable.mem()[:5]).Octets(), r.next(), "nobody polls or waits")
	r.writable.expect(0, []byte("placed"))
	r.requireMemory()
}

// TestSleeperMakesWayForFeed: a stream that a poller pauses while a program sleeps
// there goes on with the next receive.
func TestSleeperMakesWayForFeed(t *testing.T) {
	r := sleepy(t, setup{config: func(c *Config) { c.GracefulReceive = true }})
	s := r.sleepOn(r.scq)
	fpdu := r.peer.Frame(rawpeer.Send(1, []byte("hello")).Octets())
	require.True(t, r.s.rx.locked(func(rx *receiver) bool { // as if a poller had been faster
		rx.in.early(fpdu)
		r.s.rx.deliver()
		return rx.in.kept != nil
	}))
	r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(0, 16)})
	require.Eventually(t, func() bool { return r.rcq.Len() == 1 }, patience, 1e6, "without a poll")
	require.Equal(t, []comp{{1, wr.StatusSuccess, 5}}, r.wait(r.rcq, 1))
	s.cancel()
	require.ErrorIs(t, <-s.ended, context.Canceled)
}

// TestPollersBesideSleeper: the peer's data reaches the one who sleeps though others
// polled, and nothing that came woke anybody for them.
func TestPollersBesideSleeper(t *testing.T) {
	r := sleepy(t, setup{})
	r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(0, 16)})
	r.pollersServe()
	s := r.sleepOn(r.rcq)
	r.send(rawpeer.Send(1, []byte("hello")).Octets())
	promptly(t, "the sleeper", func() { require.NoError(t, <-s.ended) })
	require.Equal(t, []comp{{1, wr.StatusSuccess, 5}}, comps(s.got))
}
