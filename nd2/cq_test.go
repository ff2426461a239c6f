package nd2_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/nd2"
	"github.com/softrnic/softrnic/verbs"
)

// notify waits for a result in a goroutine; it has asked for it when notify returns.
func notify(t *testing.T, cq *nd2.CompletionQueue, typ nd2.NotifyType) *nd2.Overlapped {
	ov := nd2.Overlap(bounded(t), func(ctx context.Context) error { return cq.Notify(ctx, typ) })
	require.Eventually(t, cq.Armed, time.Minute, time.Millisecond)
	return ov
}

// All who wait are told of one result; none of them takes it away.
func TestNotifyTellsAll(t *testing.T) {
	a, b := pair(t, shape{})
	for range 20 {
		require.NoError(t, b.qp.Receive(1, nil))
		waiting := []*nd2.Overlapped{
			notify(t, b.in, nd2.CQNotifyAny), notify(t, b.in, nd2.CQNotifyAny), notify(t, b.in, nd2.CQNotifyAny),
		}
		require.NoError(t, a.qp.Send(1, nil, nd2.OpFlagSilentSuccess))
		require.NoError(t, waiting[0].GetOverlappedResult(true))
		var r [2]nd2.Result
		require.Equal(t, 1, b.in.GetResults(r[:]))
		for _, w := range waiting[1:] { // the others may not have asked in time
			require.NoError(t, w.CancelOverlappedRequests())
		}
	}
}

// A result that comes when all who asked have gone is told to who asks next.
func TestNotifyAfterAllHaveGone(t *testing.T) {
	a, b := pair(t, shape{})
	for range 5 {
		require.NoError(t, b.qp.Receive(1, nil))
		gone := notify(t, b.in, nd2.CQNotifyAny)
		require.NoError(t, gone.CancelOverlappedRequests())
		require.ErrorIs(t, gone.GetOverlappedResult(true), nd2.ErrCanceled)
		require.False(t, b.in.Armed(), "nobody is left to tell")
		require.NoError(t, a.qp.Send(1, nil, 0))
		a.done(1, nd2.RequestTypeSend, nd2.Success)
		require.NoError(t, b.in.Notify(bounded(t), nd2.CQNotifyAny))
		b.done(1, nd2.RequestTypeReceive, nd2.Success)
	}
}

// listener starts a Notify that waits for the event of verbs, and n more.
func listener(t *testing.T, cq *nd2.CompletionQueue, typ nd2.NotifyType, n int) (first *nd2.Overlapped, others []*nd2.Overlapped) {
	t.Helper()
	wait := func(want int) *nd2.Overlapped {
		ov := nd2.Overlap(bounded(t), func(ctx context.Context) error { return cq.Notify(ctx, typ) })
		require.Eventually(t, func() bool { n, listening := cq.Ears(); return n == want && listening }, time.Minute, time.Millisecond)
		return ov
	}
	first = wait(1)
	for i := range n {
		others = append(others, wait(2+i))
	}
	return first, others
}

// Who listened and goes leaves that to another of those who wait.
func TestNotifyListenerGoes(t *testing.T) {
	a, b := pair(t, shape{})
	for range 20 {
		first, others := listener(t, b.in, nd2.CQNotifyAny, 2)
		require.NoError(t, b.qp.Receive(1, nil))
		require.NoError(t, first.CancelOverlappedRequests())
		require.ErrorIs(t, first.GetOverlappedResult(true), nd2.ErrCanceled)
		require.NoError(t, a.qp.Send(1, nil, nd2.OpFlagSilentSuccess))
		for _, o := range others {
			require.NoError(t, o.GetOverlappedResult(true))
		}
		b.done(1, nd2.RequestTypeReceive, nd2.Success)
	}
}

// An event without a result, of an earlier request say, ends no Notify, and none is missed
// behind it, of the kind that the others wait for.
func TestNotifyAfterAnEarlierEvent(t *testing.T) {
	a, b := pair(t, shape{})
	for range 20 {
		first, _ := listener(t, b.in, nd2.CQNotifySolicited, 0)
		other := notify(t, b.in, nd2.CQNotifyAny)
		require.Eventually(t, func() bool { n, _ := b.in.Ears(); return n == 2 }, time.Minute, time.Millisecond)
		b.in.Verbs().Wake()
		require.Eventually(t, func() bool { return len(b.in.Verbs().Events()) == 0 }, time.Minute, time.Millisecond)
		require.NoError(t, b.qp.Receive(1, nil))
		require.NoError(t, a.qp.Send(1, nil, nd2.OpFlagSilentSuccess))
		require.NoError(t, other.GetOverlappedResult(true))
		require.NoError(t, first.GetOverlappedResult(true))
		b.done(1, nd2.RequestTypeReceive, nd2.Success)
	}
}

// Silent requests complete in verbs now and then, which is an event without a result: the
// next one is told of.
func TestNotifyBehindSilentRequests(t *testing.T) {
	a, b := pair(t, shape{})
	send := func(flags nd2.OpFlags) {
		require.NoError(t, b.qp.Receive(1, nil))
		require.NoError(t, a.qp.Send(1, nil, flags))
		b.done(1, nd2.RequestTypeReceive, nd2.Success)
	}
	for range 20 {
		first, _ := listener(t, a.out, nd2.CQNotifySolicited, 0)
		other := notify(t, a.out, nd2.CQNotifyAny)
		require.Eventually(t, func() bool { n, _ := a.out.Ears(); return n == 2 }, time.Minute, time.Millisecond)
		for range 16 {
			send(nd2.OpFlagSilentSuccess)
		}
		send(0)
		require.NoError(t, first.GetOverlappedResult(true))
		require.NoError(t, other.GetOverlappedResult(true))
		a.done(1, nd2.RequestTypeSend, nd2.Success)
	}
}

// A result that another retrieves is told of all the same.
func TestNotifyOfWhatIsRetrieved(t *testing.T) {
	a, b := pair(t, shape{})
	for range 20 {
		require.NoError(t, b.qp.Receive(1, nil))
		first, others := listener(t, b.in, nd2.CQNotifyAny, 1)
		require.NoError(t, a.qp.Send(1, nil, nd2.OpFlagSilentSuccess))
		b.done(1, nd2.RequestTypeReceive, nd2.Success)
		require.NoError(t, first.GetOverlappedResult(true))
		require.NoError(t, others[0].GetOverlappedResult(true))
	}
}

// What ends the queue ends the wait of who listens and of the others.
func TestNotifyEndsForAll(t *testing.T) {
	for name, end := range map[string]struct {
		want error
		call func(*side) error
	}{
		"queue":   {nd2.ErrCanceled, func(s *side) error { return s.in.Close() }},
		"failure": {nd2.ErrInternalError, func(s *side) error { fault.Provoke(s.in.Verbs()); return nil }},
		"adapter": {nd2.ErrDeviceRemoved, func(s *side) error { return s.a.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSide(t, shape{})
			if name == "queue" {
				require.NoError(t, s.qp.Close())
			}
			first, others := listener(t, s.in, nd2.CQNotifyErrors, 2)
			require.NoError(t, end.call(s))
			for _, o := range append(others, first) {
				require.ErrorIs(t, o.GetOverlappedResult(true), end.want)
			}
		})
	}
}

// A result that was not retrieved notifies once; one that was does not.
func TestNotifyIsOncePerResult(t *testing.T) {
	a, b := pair(t, shape{})
	require.NoError(t, b.qp.Receive(1, nil))
	require.NoError(t, a.qp.Send(1, nil, 0))
	a.done(1, nd2.RequestTypeSend, nd2.Success)
	require.NoError(t, b.in.Notify(bounded(t), nd2.CQNotifyAny), "there, or to come")
	second := notify(t, b.in, nd2.CQNotifyAny)
	require.NoError(t, second.CancelOverlappedRequests())
	require.ErrorIs(t, second.GetOverlappedResult(true), nd2.ErrCanceled)
	b.done(1, nd2.RequestTypeReceive, nd2.Success)
}

// ND-Send-F3: errors satisfy every type; only they CQNotifyErrors.
func TestNotifyErrors(t *testing.T) {
	a, b := pair(t, shape{})
	require.NoError(t, b.qp.Receive(1, nil))
	require.NoError(t, b.qp.Receive(2, nil))
	waiting := notify(t, b.in, nd2.CQNotifyErrors)
	require.NoError(t, a.qp.Send(1, nil, nd2.OpFlagSendAndSolicitEvent|nd2.OpFlagSilentSuccess))
	b.done(1, nd2.RequestTypeReceive, nd2.Success)
	require.ErrorIs(t, waiting.GetOverlappedResult(false), nd2.Pending)
	require.NoError(t, a.conn.Disconnect(bounded(t)))
	require.NoError(t, waiting.GetOverlappedResult(true))
	b.done(2, nd2.RequestTypeReceive, nd2.ErrCanceled)
	require.ErrorIs(t, b.in.Notify(bounded(t), 3), nd2.ErrInvalidParameter1)
}

// Results that nobody has retrieved are no errors.
func TestNotifyErrorsBehindResults(t *testing.T) {
	a, b := pair(t, shape{})
	require.NoError(t, b.qp.Receive(1, nil))
	require.NoError(t, b.qp.Receive(2, nil))
	require.NoError(t, a.qp.Send(1, nil, nd2.OpFlagSilentSuccess))
	require.Eventually(t, func() bool { return b.in.Verbs().Stats().Queue.Now == 1 }, time.Minute, time.Millisecond)
	waiting := nd2.Overlap(bounded(t), func(ctx context.Context) error { return b.in.Notify(ctx, nd2.CQNotifyErrors) })
	over := func() bool { return !errors.Is(waiting.GetOverlappedResult(false), nd2.Pending) }
	require.Eventually(t, func() bool { return over() || b.in.Armed() }, time.Minute, time.Millisecond)
	require.False(t, over())
	require.NoError(t, a.conn.Disconnect(bounded(t)))
	require.NoError(t, waiting.GetOverlappedResult(true))
}

// The event of the shared receive queue that comes while nobody waits is asked for again by who does.
func TestSRQNotifyAfterAnEvent(t *testing.T) {
	a, b := pair(t, shape{srq: true}) // threshold 2
	receives := func(n int) {
		for range n {
			require.NoError(t, b.srq.Receive(nil, nil))
		}
	}
	events := make(chan verbs.Event, 4)
	require.NoError(t, b.a.OnEvent(func(e verbs.Event) { events <- e }))
	receives(2)
	require.NoError(t, a.qp.Send(nil, nil, nd2.OpFlagSilentSuccess))
	require.Equal(t, verbs.EventSRQLimit, (<-events).ID)
	receives(1)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	low := nd2.Overlap(ctx, b.srq.Notify)
	require.Eventually(t, b.srq.Armed, time.Minute, time.Millisecond)
	require.NoError(t, a.qp.Send(nil, nil, nd2.OpFlagSilentSuccess))
	require.NoError(t, low.GetOverlappedResult(true))
}

// More results than the queue holds: it is unusable then, and says so.
func TestCompletionQueueOverflow(t *testing.T) {
	s := newSide(t, shape{cqDepth: 2})
	for i := range 3 {
		require.NoError(t, s.qp.Receive(i, nil))
	}
	require.NoError(t, s.qp.Flush())
	err := s.in.Notify(bounded(t), nd2.CQNotifyErrors)
	for err == nil { // at first it may be the canceled Receives that are told of
		err = s.in.Notify(bounded(t), nd2.CQNotifyErrors)
	}
	require.ErrorIs(t, err, nd2.ErrBufferOverflow)
}

func TestResize(t *testing.T) {
	s := newSide(t, shape{cqDepth: 4})
	require.ErrorIs(t, s.in.Resize(0), nd2.ErrInvalidParameter)
	require.ErrorIs(t, s.in.Resize(s.a.Query().MaxCompletionQueueDepth+1), nd2.ErrInvalidParameter)
	require.NoError(t, s.in.Resize(16))
	for i := range 10 {
		require.NoError(t, s.qp.Receive(i, nil))
	}
	require.NoError(t, s.qp.Flush())
	require.ErrorIs(t, s.in.Resize(9), nd2.ErrBufferOverflow)
	require.NoError(t, s.in.Notify(bounded(t), nd2.CQNotifyAny))
	require.ErrorIs(t, s.in.Resize(9), nd2.ErrBufferOverflow)
	s.done(0, nd2.RequestTypeReceive, nd2.ErrCanceled)
	require.NoError(t, s.in.Resize(9))
	for i := range 9 {
		s.done(i+1, nd2.RequestTypeReceive, nd2.ErrCanceled)
	}
}

// Receives of one queue for two peers, with a threshold; a Send that finds none waits.
func TestSharedReceiveQueue(t *testing.T) {
	b := newSide(t, shape{srq: true, depth: 8})
	a1, a2 := newSide(t, shape{}), newSide(t, shape{})
	join(t, a1, b, 1)
	second, err := b.a.CreateQueuePairWithSrq(b.in, b.out, b.srq, "second", 4, 1, 0)
	require.NoError(t, err)
	first := b.qp
	b.qp = second
	b.conn, err = b.a.CreateConnector()
	require.NoError(t, err)
	join(t, a2, b, 1)
	require.ErrorIs(t, first.Receive(1, nil), nd2.ErrNotSupported)
	require.ErrorIs(t, b.srq.Receive(1, make([]nd2.SGE, 5)), nd2.ErrDataOverrun)
	require.NoError(t, b.srq.Notify(bounded(t)), "fewer than 2 are there")

	copy(a1.buf, "waits")
	require.NoError(t, a1.qp.Send(1, a1.sge(0, 5), 0)) // nothing is posted
	for i := range 4 {
		require.NoError(t, b.srq.Receive(i, b.sge(10*i, 10)))
	}
	b.qp = first
	r := b.done(0, nd2.RequestTypeReceive, nd2.Success)
	require.Equal(t, "waits", string(b.buf[:r.BytesTransferred]))

	low := nd2.Overlap(bounded(t), b.srq.Notify)
	require.Eventually(t, b.srq.Armed, time.Minute, time.Millisecond)
	require.ErrorIs(t, low.GetOverlappedResult(false), nd2.Pending)
	for i := range 2 {
		require.NoError(t, a2.qp.Send(i, nil, nd2.OpFlagSilentSuccess))
		r := wait(t, b.in)
		require.Equal(t, "second", r.QueuePairContext)
		require.Equal(t, i+1, r.RequestContext)
	}
	require.NoError(t, low.GetOverlappedResult(true))

	for i := range 7 {
		require.NoError(t, b.srq.Receive(10+i, nil))
	}
	require.ErrorIs(t, b.srq.Receive(1, nil), nd2.ErrNoMoreEntries)
	require.ErrorIs(t, b.srq.Modify(7, 0), nd2.ErrBufferOverflow)
	require.ErrorIs(t, b.srq.Modify(9, 10), nd2.ErrInvalidParameter)
	require.NoError(t, b.srq.Modify(9, 3))
	require.NoError(t, b.srq.Receive(17, nil))
	require.ErrorIs(t, b.srq.Receive(1, nil), nd2.ErrNoMoreEntries)
	require.ErrorIs(t, b.srq.Close(), nd2.ErrDeviceBusy)
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
	low = nd2.Overlap(bounded(t), b.srq.Notify)
	require.Eventually(t, b.srq.Armed, time.Minute, time.Millisecond)
	require.NoError(t, b.srq.Close())
	require.ErrorIs(t, low.GetOverlappedResult(true), nd2.ErrCanceled)
	require.ErrorIs(t, b.srq.Receive(1, nil), nd2.ErrInvalidHandle)
}

func TestSharedReceiveQueueParameters(t *testing.T) {
	s := newSide(t, shape{})
	most := s.a.Query().MaxSharedReceiveQueueDepth
	for want, p := range map[nd2.Status][3]int{
		nd2.ErrInvalidParameter3: {most + 1, 1, 0}, nd2.ErrInvalidParameter4: {1, 1 << 10, 0}, nd2.ErrInvalidParameter5: {4, 1, 5},
	} {
		_, err := s.a.CreateSharedReceiveQueue(p[0], p[1], p[2])
		require.ErrorIs(t, err, want)
	}
	srq, err := s.a.CreateSharedReceiveQueue(1, 0, 0)
	require.NoError(t, err)
	require.ErrorIs(t, srq.Notify(bounded(t)), nd2.ErrInvalidDeviceState, "no threshold")
	for want, f := range map[nd2.Status]func() (*nd2.QueuePair, error){
		nd2.ErrInvalidParameter2: func() (*nd2.QueuePair, error) { return s.a.CreateQueuePairWithSrq(nil, s.out, srq, 1, 1, 1, 0) },
		nd2.ErrInvalidParameter3: func() (*nd2.QueuePair, error) { return s.a.CreateQueuePairWithSrq(s.in, nil, srq, 1, 1, 1, 0) },
		nd2.ErrInvalidParameter4: func() (*nd2.QueuePair, error) { return s.a.CreateQueuePairWithSrq(s.in, s.out, nil, 1, 1, 1, 0) },
		nd2.ErrInvalidParameter6: func() (*nd2.QueuePair, error) {
			return s.a.CreateQueuePairWithSrq(s.in, s.out, srq, 1, 1<<20, 1, 0)
		},
		nd2.ErrInvalidParameter7: func() (*nd2.QueuePair, error) {
			return s.a.CreateQueuePairWithSrq(s.in, s.out, srq, 1, 1, 1<<10, 0)
		},
		nd2.ErrInvalidParameter8: func() (*nd2.QueuePair, error) {
			return s.a.CreateQueuePairWithSrq(s.in, s.out, srq, 1, 1, 1, 1<<20)
		},
	} {
		_, err := f()
		require.ErrorIs(t, err, want)
	}
}

// Closing the adapter ends everything that waits.
func TestAdapterClose(t *testing.T) {
	a, b := pair(t, shape{})
	waiting := []*nd2.Overlapped{
		notify(t, b.in, nd2.CQNotifyAny),
		nd2.Overlap(bounded(t), func(ctx context.Context) error {
			_, err := b.out.Wait(ctx, make([]nd2.Result, 1))
			return err
		}),
	}
	require.NoError(t, b.a.Close())
	for _, w := range waiting {
		err := w.GetOverlappedResult(true)
		require.ErrorIs(t, err, nd2.ErrDeviceRemoved)
	}
	a.gone()
	b.gone()
	_, err := b.a.CreateCompletionQueue(1)
	require.ErrorIs(t, err, nd2.ErrDeviceRemoved)
	require.ErrorIs(t, b.qp.Receive(1, nil), nd2.ErrDeviceRemoved)
	assert.ErrorIs(t, b.mr.Deregister(), nd2.ErrDeviceRemoved)
}

// Queues that fail as hardware would say so to who waits.
func TestFailures(t *testing.T) {
	s := newSide(t, shape{srq: true})
	for range 2 {
		require.NoError(t, s.srq.Receive(1, nil))
	}
	waiting := notify(t, s.in, nd2.CQNotifyAny)
	low := nd2.Overlap(bounded(t), s.srq.Notify)
	require.Eventually(t, s.srq.Armed, time.Minute, time.Millisecond)
	require.NoError(t, low.CancelOverlappedRequests())
	require.ErrorIs(t, low.GetOverlappedResult(true), nd2.ErrCanceled)
	low = nd2.Overlap(bounded(t), s.srq.Notify)
	fault.Provoke(s.in.Verbs())
	fault.Provoke(s.srq.Verbs())
	require.ErrorIs(t, waiting.GetOverlappedResult(true), nd2.ErrInternalError)
	require.ErrorIs(t, low.GetOverlappedResult(true), nd2.ErrUnsuccessful)
	require.ErrorIs(t, s.in.Notify(bounded(t), nd2.CQNotifyAny), nd2.ErrInternalError)
	require.ErrorIs(t, s.srq.Notify(bounded(t)), nd2.ErrUnsuccessful)
}

// Queue pairs and shared receive queues that come and go leave nothing behind.
func TestNothingIsKept(t *testing.T) {
	s := newSide(t, shape{srq: true})
	before := s.a.Owners()
	for range 50 {
		srq, err := s.a.CreateSharedReceiveQueue(4, 1, 0)
		require.NoError(t, err)
		qp, err := s.a.CreateQueuePair(s.in, s.out, s, 4, 4, 1, 1, 16)
		require.NoError(t, err)
		pooled, err := s.a.CreateQueuePairWithSrq(s.in, s.out, srq, s, 4, 1, 0)
		require.NoError(t, err)
		require.NoError(t, qp.Receive("r", nil))
		require.NoError(t, srq.Receive("s", nil))
		require.NoError(t, qp.Close())
		require.NoError(t, pooled.Close())
		require.NoError(t, srq.Close())
		s.done("r", nd2.RequestTypeReceive, nd2.ErrCanceled)
		s.none()
	}
	require.Equal(t, before, s.a.Owners())
	info := s.a.Query()
	have, err := s.out.Verbs().Query()
	require.NoError(t, err)
	require.LessOrEqual(t, have.Entries, info.MaxCompletionQueueDepth/1000, "room that is used again")
}
