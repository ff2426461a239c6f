package cm_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/verbs"
)

// TestErrOfAGoodClose: nothing to tell, before, during and after.
func TestErrOfAGoodClose(t *testing.T) {
	for name, l := range links {
		t.Run(name, func(t *testing.T) {
			a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
			x, y := connect(t, l, a, b, cm.Config{}, cm.Config{}, nil)
			exchange(t, a, b)
			require.NoError(t, x.Err())
			require.NoError(t, x.Close())
			<-y.Done()
			require.NoError(t, x.Err())
			require.NoError(t, y.Err())
		})
	}
}

// TestErrNamesTheRequest: both sides hear which request was at fault, as far as each
// can know, and the same error comes from Err, Close and the next Err.
func TestErrNamesTheRequest(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	x, y := connect(t, tcpLink, a, b, cm.Config{}, cm.Config{}, nil)
	_, err := b.qp.PostRecv(verbs.Recv{ID: 7, SGL: b.mr.SGL(0, 10)})
	require.NoError(t, err)
	a.send(t, verbs.Request{ID: 8, SGL: a.mr.SGL(0, 11)}) // longer than the receive
	<-x.Done()
	<-y.Done()
	var here, there *verbs.StreamError
	require.ErrorAs(t, y.Err(), &here)
	require.Equal(t, verbs.Completion{ID: 7, QP: b.qp.ID(), Op: verbs.OpRecv, Status: verbs.StatusBaseBounds}, here.Request)
	require.ErrorIs(t, y.Err(), &verbs.CompletionError{Status: verbs.StatusBaseBounds})
	require.True(t, here.Terminate.Sent)
	require.Zero(t, here.Event, "the completion told of it")
	require.ErrorAs(t, x.Close(), &there)
	require.False(t, there.Terminate.Sent)
	require.Equal(t, here.Terminate.Code, there.Terminate.Code)
	require.Equal(t, verbs.EventTerminateReceived, there.Event)
	for _, e := range []error{here, there} {
		require.NotErrorIs(t, e, net.ErrClosed, "the program did not close it")
	}
}

// TestErrOfAbort: the program's own call, and the peer's.
func TestErrOfAbort(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	x, y := connect(t, tcpLink, a, b, cm.Config{}, cm.Config{}, nil)
	require.NoError(t, x.Abort())
	require.ErrorIs(t, x.Err(), net.ErrClosed)
	require.ErrorContains(t, x.Err(), "Modify QP to Error")
	<-y.Done()
	require.ErrorContains(t, y.Err(), "reset by the peer")
	require.NotContains(t, x.Err().Error()+y.Err().Error(), "closed network connection")
}

// TestErrStaysWithItsConnection: the next connection of a queue pair has its own.
func TestErrStaysWithItsConnection(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	x1, y1 := connect(t, tcpLink, a, b, cm.Config{}, cm.Config{}, nil)
	require.NoError(t, x1.Abort())
	<-y1.Done()
	for _, h := range []*host{a, b} {
		require.NoError(t, h.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle}))
	}
	x2, _ := connect(t, tcpLink, a, b, cm.Config{}, cm.Config{}, nil)
	require.Error(t, x1.Err())
	require.Error(t, x1.Close())
	require.NoError(t, x2.Err())
	exchange(t, a, b)
}

// TestCloseContext: the context bounds the wait for the Send Queue, and its cause is
// told.
func TestCloseContext(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	x, y := connect(t, tcpLink, a, b, cm.Config{Model: cm.ClientServer}, cm.Config{}, nil)
	b.send(t, verbs.Request{ID: 4}) // a Responder waits for the Initiator's first FPDU
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, y.CloseContext(ctx), context.Canceled)
	<-x.Done()
	require.Error(t, x.CloseContext(ctx), "over already: the context does not matter")
	require.ErrorIs(t, y.Err(), net.ErrClosed)
}

// hooked is a context that runs something when somebody begins to wait for it.
type hooked struct {
	context.Context
	hook func()
}

func (h *hooked) Done() <-chan struct{} {
	h.hook()
	return nil
}

// TestCloseSparesTheNext: the queue pair has its next connection while Close waits for
// the Send Queue of the one before.
func TestCloseSparesTheNext(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	x1, y1 := connect(t, tcpLink, a, b, cm.Config{Model: cm.ClientServer}, cm.Config{}, nil)
	b.send(t, verbs.Request{ID: 4}) // a Responder waits for the Initiator's first FPDU
	var x2, y2 *cm.Conn
	var again sync.Once
	require.Error(t, y1.CloseContext(&hooked{t.Context(), func() {
		again.Do(func() {
			require.NoError(t, x1.Abort())
			<-y1.Done()
			var c [1]verbs.Completion
			_, err := b.cq.Wait(bounded(t), c[:])
			require.NoError(t, err)
			for _, h := range []*host{a, b} {
				require.NoError(t, h.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle}))
			}
			x2, y2 = connect(t, tcpLink, a, b, cm.Config{}, cm.Config{}, nil)
		})
	}}))
	require.NoError(t, y1.Abort())
	require.NoError(t, x2.Err())
	require.NoError(t, y2.Err())
	require.Equal(t, verbs.StateRTS, b.qp.State())
	exchange(t, a, b)
}

// TestTimeouts: each step that takes too long is named.
func TestTimeouts(t *testing.T) {
	t.Run("the MPA Reply", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := newHost(t, verbs.QPConfig{})
			na, nb := net.Pipe()
			defer nb.Close()
			go func() { _, _ = rawpeer.ReadStartup(nb) }()
			_, err := cm.Connect(t.Context(), na, a.qp, cm.Config{})
			var late *cm.TimeoutError
			require.ErrorAs(t, err, &late)
			require.Equal(t, cm.StepReadReply, late.Step)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.True(t, late.Timeout())
			require.Equal(t, verbs.StateIdle, a.qp.State())
		})
	})
	t.Run("the MPA Request, and its answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			na, nb := net.Pipe()
			defer nb.Close()
			_, err := cm.Await(t.Context(), na, cm.Config{})
			var late *cm.TimeoutError
			require.ErrorAs(t, err, &late)
			require.Equal(t, cm.StepReadRequest, late.Step)
			na, nb = net.Pipe() // nobody reads
			defer nb.Close()
			_, err = cm.Connect(t.Context(), na, newHost(t, verbs.QPConfig{}).qp, cm.Config{})
			require.ErrorAs(t, err, &late)
			require.Equal(t, cm.StepWriteRequest, late.Step)
		})
	})
	t.Run("TCP", func(t *testing.T) {
		a := newHost(t, verbs.QPConfig{})
		ctx, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
		defer cancel()
		_, err := cm.Dial(ctx, "127.0.0.1:1", a.qp, cm.Config{})
		var late *cm.TimeoutError
		require.ErrorAs(t, err, &late)
		require.Equal(t, cm.StepTCP, late.Step)
	})
}

// TestIncompatible: a peer that will never do is told from one that may.
func TestIncompatible(t *testing.T) {
	answer := func(t *testing.T, octets string) error {
		a := newHost(t, verbs.QPConfig{})
		na, nb := tcpLink(t)
		defer nb.Close()
		go func() { _, _ = nb.Write([]byte(octets)) }()
		_, err := cm.Connect(bounded(t), na, a.qp, cm.Config{})
		require.Error(t, err)
		return err
	}
	var bad *cm.IncompatibleError
	for name, octets := range map[string]string{
		"no MPA":         "HTTP/1.1 400 Bad Request\r\n\r\n",
		"a Request":      "MPA ID Req Frame\x40\x01\x00\x00",
		"revision 9":     "MPA ID Rep Frame\x40\x09\x00\x00",
		"not enhanced":   "MPA ID Rep Frame\x40\x02\x00\x00",
		"IRD beyond all": "MPA ID Rep Frame\x50\x02\x00\x04\x00\x10\x3f\xf0",
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorAs(t, answer(t, octets), &bad)
			require.Equal(t, name == "IRD beyond all", bad.Terminate == 0x2006)
		})
	}
	na, nb := tcpLink(t)
	require.NoError(t, nb.Close())
	_, err := cm.Connect(bounded(t), na, newHost(t, verbs.QPConfig{}).qp, cm.Config{})
	require.NotErrorAs(t, err, &bad)
	require.ErrorContains(t, err, "the peer")
}

// TestNilQP: refused, and the connection closed or the Request left.
func TestNilQP(t *testing.T) {
	na, nb := net.Pipe()
	_, err := cm.Connect(t.Context(), na, nil, cm.Config{})
	require.ErrorIs(t, err, verbs.ErrInvalidQP)
	_, err = nb.Read(make([]byte, 1))
	require.Error(t, err)
}
