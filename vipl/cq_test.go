package vipl

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCreateCQ(t *testing.T) {
	h := newHost(t, Config{})
	for entries, want := range map[int]Return{
		-1: ErrInvalidParameter, 0: ErrInvalidParameter, 1: Success, 1024: Success,
		maxCQEntries: Success, maxCQEntries + 1: ErrResource,
	} {
		q, err := h.nic.CreateCQ(entries)
		require.Equal(t, want, ReturnOf(err), entries)
		if err == nil {
			require.NoError(t, q.DestroyCQ())
			require.ErrorIs(t, q.DestroyCQ(), ErrInvalidParameter)
		}
	}
}

// TestCQ takes entries through a ring of 1024, in order, over a resize.
func TestCQ(t *testing.T) {
	h := newHost(t, Config{})
	q := h.cq(1024)
	v, w := h.vi(0, q, nil), h.vi(0, nil, q)
	_, _, err := q.CQDone()
	require.ErrorIs(t, err, ErrNotDone)
	sends := func(n int) {
		for range n {
			d := h.desc()
			d.SetSend()
			h.postSend(v, d) // completes at once: not connected
		}
	}
	sends(1000)
	h.postRecv(w)
	require.NoError(t, w.Disconnect()) // completes it
	for range 600 {
		got, recv, err := q.CQDone()
		require.NoError(t, err)
		require.Same(t, v, got)
		require.False(t, recv)
		_, err = v.SendDone()
		require.NoError(t, err)
	}
	sends(500) // around the end
	require.ErrorIs(t, q.ResizeCQ(900), ErrResource)
	require.ErrorIs(t, q.ResizeCQ(0), ErrInvalidParameter)
	require.ErrorIs(t, q.ResizeCQ(maxCQEntries+1), ErrResource)
	require.NoError(t, q.ResizeCQ(901))
	sends(1) // lost, 6.4.1
	for i := range 901 {
		got, recv, err := q.CQDone()
		require.NoError(t, err)
		require.Equal(t, i == 400, recv)
		if recv {
			require.Same(t, w, got)
		} else {
			require.Same(t, v, got)
		}
	}
	_, _, err = q.CQDone()
	require.ErrorIs(t, err, ErrNotDone)
	info, err := h.nic.QuerySystemManagementInfo(SystemInfoUsage)
	require.NoError(t, err)
	require.EqualValues(t, 1, info.(*Usage).Lost)

	sends(2)
	h.postRecv(w)
	require.NoError(t, w.Disconnect())
	for {
		if _, err := v.SendDone(); err != nil {
			break
		}
	}
	require.NoError(t, v.DestroyVi()) // its two entries go with it
	got, recv, err := q.CQDone()
	require.NoError(t, err)
	require.Same(t, w, got)
	require.True(t, recv)
}

func TestCQWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &Nic{vis: map[*Vi]struct{}{}, cqs: map[*CQ]struct{}{}}
		q := newCQ(n, 8)
		n.cqs[q] = struct{}{}
		v := new(Vi)
		got := make(chan error, 3)
		waiting := func() {
			go func() {
				_, _, err := q.CQWait(t.Context())
				got <- err
			}()
		}
		waiting()
		waiting()
		waiting()
		synctest.Wait()
		q.push(entry{v, false})
		q.push(entry{v, true})
		require.NoError(t, <-got)
		require.NoError(t, <-got)
		synctest.Wait()
		require.Empty(t, got, "one for each entry")
		require.Equal(t, 1, q.waitq.waiters)

		zero, cancel := TimeoutContext(t.Context(), 0)
		defer cancel()
		_, _, err := q.CQWait(zero)
		require.ErrorIs(t, err, ErrTimeout)
		brief, cancel := TimeoutContext(t.Context(), 100)
		defer cancel()
		_, _, err = q.CQWait(brief)
		require.ErrorIs(t, err, ErrTimeout)
		given, stop := context.WithCancel(t.Context())
		stop()
		_, _, err = q.CQWait(given)
		require.ErrorIs(t, err, context.Canceled)

		require.NoError(t, q.DestroyCQ())
		require.ErrorIs(t, <-got, ErrInvalidParameter)
	})
}

func TestCQNotify(t *testing.T) {
	h := newHost(t, Config{})
	q := h.cq(8)
	v := h.vi(0, q, nil)
	called := make(chan bool, 8)
	handler := func(n *Nic, w *Vi, recv bool) { called <- n == h.nic && w == v && !recv }
	require.ErrorIs(t, q.CQNotify(nil), ErrInvalidParameter)
	send := func() {
		d := h.desc()
		d.SetSend()
		h.postSend(v, d)
	}
	send()
	require.NoError(t, q.CQNotify(handler)) // there is one already
	require.True(t, <-called)
	_, _, err := q.CQDone()
	require.ErrorIs(t, err, ErrNotDone, "the entry has been removed")
	require.NoError(t, q.CQNotify(handler))
	require.NoError(t, q.CQNotify(handler))
	send()
	require.True(t, <-called)
	send()
	require.True(t, <-called)
	send() // VA-9.6.11-M1: nobody is told
	got, _, err := q.CQDone()
	require.NoError(t, err)
	require.Same(t, v, got)

	require.NoError(t, q.CQNotify(handler))
	for {
		if _, err := v.SendDone(); err != nil {
			break
		}
	}
	require.NoError(t, v.DestroyVi())
	require.NoError(t, q.DestroyCQ()) // cancels it
	h.noError()
	require.Empty(t, called)
}

// TestWaitOfNoTime: a wait that may not take any time looks at the network, as CQDone and RecvDone do. Nobody else does: the test has the
// right to sleep there, and does not.
func TestWaitOfNoTime(t *testing.T) {
	none, cancel := TimeoutContext(t.Context(), 0)
	defer cancel()
	for _, tied := range []bool{true, false} {
		a, b := newHost(t, Config{}), newHost(t, Config{})
		var q *CQ
		if tied {
			q = b.cq(8)
		}
		va, vb := a.vi(ServiceReliableDelivery, nil, nil), b.vi(ServiceReliableDelivery, nil, q)
		want := b.postRecv(vb, b.data(0, 8))
		connect(t, a, va, b, vb)
		require.Eventually(t, vb.group.Claim, long, time.Microsecond)
		d := a.desc()
		d.SetSend(a.data(0, 8))
		a.postSend(va, d)
		look := func() error {
			if tied {
				if _, _, err := q.CQWait(none); err != nil {
					return err
				}
				got, err := vb.RecvDone()
				require.Same(t, want, got)
				return err
			}
			got, err := vb.RecvWait(none)
			if err == nil {
				require.Same(t, want, got)
			}
			return err
		}
		err := look()
		for n := 0; err != nil && n < 100000; n++ { // it may not be here yet
			require.ErrorIs(t, err, ErrTimeout)
			runtime.Gosched()
			err = look()
		}
		require.NoError(t, err)
		vb.group.Leave()
	}
}
