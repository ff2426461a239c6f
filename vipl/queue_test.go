package vipl

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPostUnconnected is chapter 5 for each state without a connection: receives wait,
// sends complete as flushed at once.
func TestPostUnconnected(t *testing.T) {
	h := newHost(t, Config{})
	v := h.vi(ServiceReliableDelivery, nil, nil)
	pending := func() { // 5.2, without anybody to connect to
		_, err := v.begin(t.Context(), EventConnectRequest)
		require.NoError(t, err)
	}
	for _, s := range []ViState{StateIdle, StateConnectPending} {
		if s == StateConnectPending {
			pending()
		}
		recv := h.desc()
		recv.SetRecv(h.data(0, 8))
		recv.Control.Status = StatusDone // an error, told when its turn comes
		h.postRecvOf(v, recv)
		for _, c := range []struct {
			set func(*Descriptor)
			op  Status
		}{
			{func(d *Descriptor) { d.SetSend(h.data(0, 8)) }, StatusOpSend},
			{func(d *Descriptor) { d.SetRdmaWrite(h.at(0)) }, StatusOpRdmaWrite},
			{func(d *Descriptor) { d.SetRdmaRead(h.at(0)) }, StatusOpRdmaRead},
		} {
			d := h.desc()
			c.set(d)
			h.postSend(v, d) // VA-6.2-M1
			require.True(t, d.Done())
			if s == StateIdle && c.op == StatusOpSend {
				idle := h.vi(0, nil, nil)
				d := h.desc()
				d.SetSend()
				h.postSend(idle, d)
				require.ErrorIs(t, idle.DestroyVi(), ErrResource, "a Send is on its queue, VA-3.3-M2")
				wait(t, idle.SendWait, d)
				require.NoError(t, idle.DestroyVi())
			}
			got, err := v.SendDone()
			require.NoError(t, err)
			require.Same(t, d, got)
			require.Equal(t, StatusDone|StatusDescFlushedError|c.op, d.Control.Status)
		}
		_, err := v.RecvDone()
		require.ErrorIs(t, err, ErrNotDone)
		require.False(t, recv.Done())
		require.ErrorIs(t, v.DestroyVi(), ErrResource)
		require.NoError(t, v.Disconnect()) // 5.1, 5.2
		require.Equal(t, StateIdle, state(t, v))
		require.Equal(t, StatusDone|StatusDescFlushedError|StatusOpReceive, recv.status())
		require.ErrorIs(t, v.DestroyVi(), ErrResource, "not dequeued, VA-3.3-M2")
		wait(t, v.RecvWait, recv)
	}
	pending()
	require.ErrorIs(t, v.DestroyVi(), ErrResource) // 5.1: not Idle
	require.ErrorIs(t, v.SetViAttributes(h.attributes(0)), ErrInvalidParameter)
	_, err := v.ConnectRequest(t.Context(), nil, h.address(""))
	require.ErrorIs(t, err, ErrInvalidParameter) // VA-5-M1
	require.NoError(t, v.Disconnect())
	require.NoError(t, v.DestroyVi())
	require.ErrorIs(t, v.DestroyVi(), ErrInvalidParameter)
}

// TestFIFO goes through more Descriptors than a ring begins with.
func TestFIFO(t *testing.T) {
	h := newHost(t, Config{})
	v := h.vi(0, nil, nil)
	var posted []*Descriptor
	for range 100 {
		for range 3 {
			posted = append(posted, h.postRecv(v))
		}
		require.NoError(t, v.Disconnect())
		wait(t, v.RecvWait, posted[0])
		posted = posted[1:]
	}
	for _, d := range posted {
		got, err := v.RecvDone()
		require.NoError(t, err)
		require.Same(t, d, got)
	}
	_, err := v.RecvDone()
	require.ErrorIs(t, err, ErrNotDone)
}

func TestOverrun(t *testing.T) {
	h := newHost(t, Config{MaxDescriptorsPerQueue: 3})
	v := h.vi(ServiceReliableDelivery, nil, nil)
	for range 3 {
		h.postRecv(v)
	}
	require.ErrorIs(t, v.PostRecv(h.desc(), h.dh), ErrResource)
	require.NoError(t, v.Disconnect())
	require.ErrorIs(t, v.PostRecv(h.desc(), h.dh), ErrResource, "they have to be dequeued")
	wait(t, v.RecvWait, nil)
	h.postRecv(v)
	h.noError()

	// 5.1, last paragraph: told when it is to be connected.
	ctx, cancel := TimeoutContext(t.Context(), 0)
	defer cancel()
	_, err := v.ConnectRequest(ctx, nil, h.address("nobody"))
	require.ErrorIs(t, err, ErrTimeout)
	for range 2 {
		e := h.waitError()
		require.NotNil(t, e.DescriptorPtr)
		e.DescriptorPtr = nil
		require.Equal(t, ErrorDescriptor{
			NicHandle: h.nic, ViHandle: v, OpCode: StatusOpReceive, ResourceCode: ResourceVi, ErrorCode: ErrorViOverrun,
		}, e)
	}
	require.Equal(t, StateIdle, state(t, v))
	h.noError()
}

func TestWaits(t *testing.T) {
	h := newHost(t, Config{})
	q := h.cq(4)
	tied, v := h.vi(0, q, q), h.vi(0, nil, nil)
	for _, call := range []func(context.Context) (*Descriptor, error){tied.SendWait, tied.RecvWait} {
		_, err := call(t.Context())
		require.ErrorIs(t, err, ErrResource) // VA-9.6.3-M1, VA-9.6.6-M1
	}
	zero, cancel := TimeoutContext(t.Context(), 0)
	defer cancel()
	for _, call := range []func(context.Context) (*Descriptor, error){v.SendWait, v.RecvWait} {
		_, err := call(zero)
		require.ErrorIs(t, err, ErrTimeout)
		given, stop := context.WithCancel(t.Context())
		stop()
		_, err = call(given)
		require.ErrorIs(t, err, context.Canceled)
	}

	got := make(chan error, 2)
	two := func() {
		for range 2 {
			go func() {
				_, err := v.RecvWait(t.Context())
				got <- err
			}()
		}
		require.Eventually(t, func() bool { v.mu.Lock(); defer v.mu.Unlock(); return v.recv.waitq.waiters == 2 }, long, 1000)
	}
	two()
	h.postRecv(v)
	h.postRecv(v)
	require.NoError(t, v.Disconnect()) // completes both at once
	require.NoError(t, <-got)
	require.NoError(t, <-got)

	// Two wait, one Descriptor comes, then the VI is destroyed.
	two()
	h.postRecv(v)
	require.NoError(t, v.Disconnect())
	require.NoError(t, <-got)
	require.NoError(t, v.DestroyVi())
	require.ErrorIs(t, <-got, ErrInvalidParameter)
}

// TestWakePassesOn: two are about to sleep as two completions come, which leave one token.
// Who takes it wakes the other.
func TestWakePassesOn(t *testing.T) {
	h := newHost(t, Config{})
	q := h.cq(4)
	v, tied := h.vi(0, nil, nil), h.vi(0, nil, q)
	v.recv.waitq.waiters, q.waitq.waiters = 2, 2
	for _, w := range []*Vi{v, tied} {
		h.postRecv(w)
		h.postRecv(w)
		require.NoError(t, w.Disconnect())
	}
	for range 2 {
		require.Len(t, v.recv.waitq.wake, 1)
		<-v.recv.waitq.wake
		_, err := v.RecvDone()
		require.NoError(t, err)
		require.Len(t, q.waitq.wake, 1)
		<-q.waitq.wake
		_, _, err = q.CQDone()
		require.NoError(t, err)
	}
	require.Empty(t, v.recv.waitq.wake)
	require.Empty(t, q.waitq.wake)
}

func TestNotify(t *testing.T) {
	h := newHost(t, Config{})
	q := h.cq(4)
	tied, v := h.vi(0, q, q), h.vi(0, nil, nil)
	none := func(*Nic, *Vi, *Descriptor) {}
	require.ErrorIs(t, tied.SendNotify(none), ErrResource) // VA-9.6.9-M2
	require.ErrorIs(t, tied.RecvNotify(none), ErrResource) // VA-9.6.10-M2
	require.ErrorIs(t, v.SendNotify(nil), ErrInvalidParameter)

	told := make(chan *Descriptor, 4)
	handler := func(n *Nic, w *Vi, d *Descriptor) {
		if n == h.nic && w == v {
			told <- d
		}
	}
	for _, c := range []struct {
		notify func(QueueHandler) error
		done   func() (*Descriptor, error)
		post   func() *Descriptor
	}{
		{v.SendNotify, v.SendDone, func() *Descriptor { d := h.desc(); d.SetSend(); return h.postSend(v, d) }},
		{v.RecvNotify, v.RecvDone, func() *Descriptor { d := h.postRecv(v); require.NoError(t, v.Disconnect()); return d }},
	} {
		d := c.post()
		require.NoError(t, c.notify(handler)) // done already
		require.Same(t, d, <-told)
		_, err := c.done()
		require.ErrorIs(t, err, ErrNotDone, "it has been dequeued")
		require.NoError(t, c.notify(handler))
		require.NoError(t, c.notify(handler))
		d = c.post()
		require.Same(t, d, <-told)
		d = c.post()
		require.Same(t, d, <-told)
		d = c.post() // VA-9.6.9-M1, VA-9.6.10-M1: nobody is told
		got, err := c.done()
		require.NoError(t, err)
		require.Same(t, d, got)
	}
	require.NoError(t, v.RecvNotify(handler))
	require.NoError(t, v.DestroyVi()) // cancels it
	h.noError()
	require.Empty(t, told)
}

// TestCloseNicCancelsHandlers: those that wait for the Descriptors that it flushes too.
func TestCloseNicCancelsHandlers(t *testing.T) {
	h := newHost(t, Config{})
	v := h.vi(0, nil, nil)
	var calls atomic.Int32
	require.NoError(t, v.RecvNotify(func(*Nic, *Vi, *Descriptor) { calls.Add(1) }))
	h.postRecv(v)
	require.NoError(t, h.nic.CloseNic())
	d := &h.nic.dispatch
	require.Eventually(t, func() bool { d.mu.Lock(); defer d.mu.Unlock(); return !d.running }, long, 1000)
	require.Zero(t, calls.Load())
}

// TestHandlersMayCallAnything: a handler runs with no lock held.
func TestHandlersMayCallAnything(t *testing.T) {
	h := newHost(t, Config{})
	v := h.vi(0, nil, nil)
	done := make(chan error)
	require.NoError(t, v.RecvNotify(func(n *Nic, v *Vi, _ *Descriptor) {
		_, err := v.RecvDone()
		if ReturnOf(err) != ErrNotDone {
			done <- err
		}
		done <- n.CloseNic()
	}))
	h.postRecv(v)
	require.NoError(t, v.Disconnect())
	require.NoError(t, <-done)
}

// TestQueuedOnce: the endpoint alone has what is posted while there is a connection; what
// was dequeued by nobody before stays ahead of it, and both count for the limit.
func TestQueuedOnce(t *testing.T) {
	for _, level := range levels {
		a, b := newHost(t, Config{}), newHost(t, Config{MaxDescriptorsPerQueue: 24})
		va, vb := a.vi(level, nil, nil), b.vi(level, nil, nil)
		var posted []*Descriptor
		post := func(n int) {
			for range n {
				posted = append(posted, b.postRecv(vb, b.data(0, 8)))
			}
		}
		where := func(completed, waits, carried int) {
			vb.mu.Lock()
			defer vb.mu.Unlock()
			q := &vb.recv
			require.Equal(t, []int{completed, waits, carried}, []int{int(q.done - q.head), int(q.tail - q.done), q.carried})
			for pos := q.tail; pos != q.head+uint64(len(q.ring)); pos++ {
				require.Zero(t, *q.at(pos), "kept alive")
			}
		}
		post(3)
		where(0, 3, 0)
		require.NoError(t, vb.Disconnect()) // flushes them
		post(19)                            // more than a ring begins with
		where(3, 19, 0)
		connect(t, a, va, b, vb)
		where(3, 0, 19)
		post(2)
		where(3, 0, 21)
		if level == ServiceUnreliable { // else this breaks the connection
			require.ErrorIs(t, vb.PostRecv(b.desc(), b.dh), ErrResource)
		}
		for i := range 3 {
			got, err := vb.RecvDone()
			require.NoError(t, err)
			require.Same(t, posted[i], got)
		}
		where(0, 0, 21)
		post(3)
		where(0, 0, 24)
		for i := range 5 {
			d := a.desc()
			d.SetSend(a.data(0, i))
			a.postSend(va, d)
			wait(t, va.SendWait, d)
			wait(t, vb.RecvWait, posted[3+i])
			require.EqualValues(t, i, posted[3+i].Control.Length)
		}
		require.NoError(t, va.Disconnect())
		waitState(t, vb, StateError)
		for _, d := range posted[8:] {
			wait(t, vb.RecvWait, d)
			require.Equal(t, StatusDone|StatusDescFlushedError|StatusOpReceive, d.Control.Status)
		}
		where(0, 0, 0)
		<-vb.link.endpoint.Done()
		post(1) // completes at once: the endpoint takes none
		got, err := vb.RecvDone()
		require.NoError(t, err)
		require.Same(t, posted[27], got)
		require.Equal(t, StatusDone|StatusDescFlushedError|StatusOpReceive, got.Control.Status)
		require.NoError(t, vb.Disconnect())
		where(0, 0, 0)
		post(1)
		where(0, 1, 0)
	}
}
