package qp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

func (r *rig) recvDepth(n int) error {
	return r.q.Modify(Modify{Next: r.q.State(), RecvDepth: &n})
}

// TestRQResize changes the depth of the Receive Queue with receives outstanding
// and a message in the middle of one (verbs draft 6.1.3).
func TestRQResize(t *testing.T) {
	r := newIdleRig(t, setup{depth: 4})
	require.NoError(t, r.recvDepth(2))
	require.Equal(t, 2, r.q.Query().RecvDepth)
	require.NoError(t, r.recvDepth(4))
	r.connect()
	full := func() {
		t.Helper()
		_, err := r.q.PostRecv(wr.Recv{})
		require.ErrorIs(t, err, wr.ErrQueueFull)
	}
	post := func(ids ...uint64) {
		t.Helper()
		for _, id := range ids {
			r.postRecv(wr.Recv{ID: id, SGL: r.full.sgl(int(id)*20, 20)})
		}
	}
	post(1, 2, 3, 4)
	full()
	r.send(part(filled(9)))
	require.Eventually(t, func() bool { return r.s.rx.locked(func(rx *receiver) bool { return rx.recv.open }) }, patience, 1e6)
	require.NoError(t, r.recvDepth(7))
	require.Equal(t, 8, r.q.Query().RecvDepth, "as allocated")
	post(5, 6, 7, 8)
	full()
	r.send(rawpeer.Segment{Op: rdmap.Send, MSN: 1, MO: 9, Payload: filled(3)}.Octets(), rawpeer.Send(2, filled(2)).Octets())
	r.full.expect(20, append(filled(9), filled(3)...))
	r.full.expect(40, filled(2))

	require.Eventually(t, func() bool { return r.rcq.Len() == 2 }, patience, 1e6)
	before := r.q.Query()
	require.ErrorIs(t, r.recvDepth(7), wr.ErrShrinkFailed, "8 are outstanding until completions are reaped")
	require.Equal(t, before, r.q.Query())
	full()
	require.Equal(t, []comp{{1, 0, 12}, {2, 0, 2}}, r.wait(r.rcq, 2))
	require.ErrorIs(t, r.recvDepth(5), wr.ErrShrinkFailed)
	require.NoError(t, r.recvDepth(16))
	post(9, 10)
	require.NoError(t, r.recvDepth(8))
	full()
	for msn := uint32(3); msn <= 8; msn++ {
		r.send(rawpeer.Send(msn, filled(int(msn))).Octets())
		r.full.expect(int(msn)*20, filled(int(msn)))
		require.Equal(t, []comp{{uint64(msn), 0, msn}}, r.wait(r.rcq, 1))
	}
	require.NoError(t, r.recvDepth(2))
	full()
	r.requireMemory()
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateError}))
	require.Equal(t, flushed(9, 10), r.all(r.rcq))
	r.requireEvents()
}

// TestRQResizeKeepsCount: completions that wait to be reaped hold their slots
// across a resize (verbs draft 8.2.1).
func TestRQResizeKeepsCount(t *testing.T) {
	r := newRig(t, setup{depth: 4})
	r.postRecv(make([]wr.Recv, 4)...)
	r.send(rawpeer.Send(1, nil).Octets(), rawpeer.Send(2, nil).Octets())
	require.Eventually(t, func() bool { return r.rcq.Len() == 2 }, patience, 1e6)
	for _, depth := range []int{8, 16} {
		require.NoError(t, r.recvDepth(depth))
		r.postRecv(make([]wr.Recv, depth/2)...)
		_, err := r.q.PostRecv(wr.Recv{})
		require.ErrorIs(t, err, wr.ErrQueueFull)
	}
	r.wait(r.rcq, 2)
	r.postRecv(make([]wr.Recv, 2)...)
}

// TestRQResizeUnderTraffic resizes as fast as it can while messages come, receives
// are posted and completions reaped: nothing fails, nothing is lost (RV-6.1.3-M9).
func TestRQResizeUnderTraffic(t *testing.T) {
	const n, lane = 3000, 32
	r := newRig(t, setup{depth: 4, cqe: 64})
	var list [][]byte
	for msn := range uint32(n) {
		list = append(list, rawpeer.Send(msn+1, filled(int(msn%lane))).Octets())
	}
	stop, resized, posted := make(chan struct{}), make(chan error, 1), make(chan error, 1)
	go func() {
		rng := rand.New(rand.NewPCG(5, 6))
		for {
			select {
			case <-stop:
				resized <- nil
				return
			default:
			}
			want := 1 + rng.IntN(40)
			err := r.recvDepth(want)
			if have := r.q.Query().RecvDepth; err == nil && have != ringSize(want) {
				err = fmt.Errorf("depth %d, asked for %d", have, want)
			}
			if err != nil && !errors.Is(err, wr.ErrShrinkFailed) {
				resized <- err
				return
			}
		}
	}()
	// A message is sent when there is a receive for it.
	credits, reaped := make(chan struct{}, n), make(chan struct{}, n)
	go func() {
		for i := 0; i < n; {
			_, err := r.q.PostRecv(wr.Recv{ID: uint64(i), SGL: r.full.sgl(i%100*lane, lane)})
			switch {
			case err == nil:
				i++
				credits <- struct{}{}
			case errors.Is(err, wr.ErrQueueFull):
				<-reaped // there is one on its way: the queue holds 1 at least
			default:
				posted <- err
				return
			}
		}
		posted <- nil
	}()
	sent := make(chan error, 1)
	go func() {
		for _, u := range list {
			<-credits
			if err := r.peer.Send(u); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	for i := range uint64(n) {
		require.Equal(t, []comp{{i, 0, uint32(i % lane)}}, r.wait(r.rcq, 1))
		reaped <- struct{}{}
	}
	close(stop)
	require.NoError(t, <-posted)
	require.NoError(t, <-sent)
	require.NoError(t, <-resized)
	require.Equal(t, wr.StateRTS, r.q.State())
	r.requireEvents()
}
