package cm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// failing is a way not to connect, and what the error tells of it but for the address.
type failing struct {
	call func(t *testing.T) error
	want cm.ConnectError // Err, if set, is one that errors.Is finds
	text string          // in the sentence
}

// failed wants err to be a ConnectError that says that.
func (f *failing) failed(t *testing.T, err error) {
	t.Helper()
	var got *cm.ConnectError
	require.ErrorAs(t, err, &got)
	t.Log(err)
	assert.NotEmpty(t, got.Remote)
	if told := got.Cause; told != cm.CauseCanceled && told != cm.CauseLocal && got.Terminate != 0x2006 { // whose details have it
		assert.NotEmpty(t, got.Remedy)
	}
	if f.want.Err != nil {
		require.ErrorIs(t, err, f.want.Err)
	}
	require.ErrorContains(t, err, f.text)
	fits(t, got)
	told := *got
	told.Remote, told.Err, told.Remedy = "", f.want.Err, ""
	assert.Equal(t, f.want, told)
}

// fits wants the sentence to fit a line, and to say nothing twice: no word in a row, nor the peer's address.
func fits(t *testing.T, e *cm.ConnectError) {
	t.Helper()
	assert.LessOrEqual(t, len(e.Error()), 200, e.Error())
	words := strings.Fields(e.Error())
	for i, word := range words[1:] {
		assert.NotEqual(t, words[i], word, e.Error())
	}
	assert.Equal(t, 1, strings.Count(e.Error(), e.Remote), e.Error())
	assert.True(t, strings.HasSuffix(e.Error(), e.Sentence()))
}

// dials has Connect over TCP, against a peer that does something once it has the Request.
func dials(cfg cm.Config, peer func(t *testing.T, nb *net.TCPConn)) func(t *testing.T) error {
	return func(t *testing.T) error {
		na, nb := tcpLink(t)
		defer nb.Close()
		go func() {
			_, err := rawpeer.ReadStartup(nb)
			assert.NoError(t, err)
			peer(t, nb.(*net.TCPConn))
		}()
		_, err := cm.Connect(bounded(t), na, newHost(t, verbs.QPConfig{}).qp, cfg)
		return err
	}
}

func says(octets string) func(t *testing.T, nb *net.TCPConn) {
	return func(t *testing.T, nb *net.TCPConn) {
		_, err := io.WriteString(nb, octets)
		assert.NoError(t, err)
	}
}

func resets(t *testing.T, nb *net.TCPConn) {
	assert.NoError(t, nb.SetLinger(0))
	assert.NoError(t, nb.Close())
}

func closes(t *testing.T, nb *net.TCPConn) { assert.NoError(t, nb.CloseWrite()) }

// awaits has Await over TCP, against a peer that does something.
func awaits(peer func(t *testing.T, nb *net.TCPConn)) func(t *testing.T) error {
	return func(t *testing.T) error {
		na, nb := tcpLink(t)
		defer nb.Close()
		go peer(t, nb.(*net.TCPConn))
		_, err := cm.Await(bounded(t), na, cm.Config{})
		return err
	}
}

// accepts has Accept answer a Request over TCP, behind what prepare does with it.
func accepts(cfg cm.Config, prepare func(t *testing.T, r *cm.Request, q *verbs.QP) context.Context) func(t *testing.T) error {
	return func(t *testing.T) error {
		na, nb := tcpLink(t)
		defer nb.Close()
		require.NoError(t, rawpeer.WriteStartup(nb, mpa.Startup{Rev: 2, CRC: true, Enhanced: true}))
		r, err := cm.Await(bounded(t), na, cm.Config{})
		require.NoError(t, err)
		h := newHost(t, verbs.QPConfig{})
		_, err = r.Accept(prepare(t, r, h.qp), h.qp, cfg)
		_ = r.Reject(nil)
		return err
	}
}

func ruin(t *testing.T, q *verbs.QP) {
	require.NoError(t, q.Modify(verbs.ModifyQP{Next: verbs.StateError}))
}

func gone(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

var failings = map[string]failing{
	"nobody listens": {func(t *testing.T) error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, l.Close())
		_, err = cm.Dial(bounded(t), l.Addr().String(), newHost(t, verbs.QPConfig{}).qp, cm.Config{})
		return err
	}, cm.ConnectError{Doing: cm.Dialing, Step: cm.StepTCP, Cause: cm.CauseUnreachable, Err: syscall.ECONNREFUSED}, "is a server listening there?"},
	"TCP canceled": {func(t *testing.T) error {
		_, err := cm.Dial(gone(t.Context()), "127.0.0.1:1", newHost(t, verbs.QPConfig{}).qp, cm.Config{})
		return err
	}, cm.ConnectError{Doing: cm.Dialing, Step: cm.StepTCP, Cause: cm.CauseCanceled, Err: context.Canceled}, "canceled"},
	"rejected in words": {
		dials(cm.Config{}, says("MPA ID Rep Frame\x60\x02\x00\x04full")),
		cm.ConnectError{Doing: cm.Dialing, Step: cm.StepReadReply, Cause: cm.CauseRejected, PrivateData: []byte("full")}, `its program says "full"`,
	},
	"rejected with octets": {
		dials(cm.Config{}, says("MPA ID Rep Frame\x60\x02\x00\x04\x00\x01\x02\x03")),
		cm.ConnectError{Doing: cm.Dialing, Step: cm.StepReadReply, Cause: cm.CauseRejected, PrivateData: []byte{0, 1, 2, 3}}, "ask its program why",
	},
	"a revision that nobody speaks": {
		dials(cm.Config{}, says("MPA ID Rep Frame\x40\x09\x00\x00")),
		cm.ConnectError{Doing: cm.Dialing, Step: cm.StepReadReply, Cause: cm.CauseIncompatible}, "revision 9 is not supported: 1 and 2 are",
	},
	"no MPA": {
		dials(cm.Config{}, says("220 mail.example.org ESMTP Postfix\r\n")),
		cm.ConnectError{Doing: cm.Dialing, Step: cm.StepReadReply, Cause: cm.CauseIncompatible}, `incompatible peer: invalid startup frame: the key is "220 mail.example": is an iWARP program`,
	},
	"a server of HTTP": {
		dials(cm.Config{}, says("HTTP/1.1 400 Bad Request\r\n\r\n")),
		cm.ConnectError{Doing: cm.Dialing, Step: cm.StepReadReply, Cause: cm.CauseIncompatible}, "the peer answered with HTTP: it is no RDMA listener: find the port",
	},
	"a server of TLS": {
		dials(cm.Config{}, says("\x15\x03\x03\x00\x02\x02\x46")),
		cm.ConnectError{Doing: cm.Dialing, Step: cm.StepReadReply, Cause: cm.CauseIncompatible}, "the peer answered with TLS: it is no RDMA listener: if iWARP is behind the TLS",
	},
	"a server of SSH": {
		dials(cm.Config{}, says("SSH-2.0-OpenSSH_9.2p1\r\n")),
		cm.ConnectError{Doing: cm.Dialing, Step: cm.StepReadReply, Cause: cm.CauseIncompatible}, "the peer answered with SSH: it is no RDMA listener: find the port",
	},
	"a client of HTTP": {
		awaits(says("GET / HTTP/1.1\r\n\r\n")),
		cm.ConnectError{Doing: cm.Awaiting, Step: cm.StepReadRequest, Cause: cm.CauseIncompatible}, "the peer speaks HTTP, and this port iWARP: the client has the wrong port",
	},
	"a client of TLS": {
		awaits(says("\x16\x03\x01\x02\x00\x01")),
		cm.ConnectError{Doing: cm.Awaiting, Step: cm.StepReadRequest, Cause: cm.CauseIncompatible}, "the peer speaks TLS, and this port iWARP: let it dial without TLS",
	},
	"a client of SSH": {
		awaits(says("SSH-2.0-OpenSSH_9.2p1\r\n")),
		cm.ConnectError{Doing: cm.Awaiting, Step: cm.StepReadRequest, Cause: cm.CauseIncompatible}, "the peer speaks SSH, and this port iWARP: the client has the wrong port",
	},
	"more IRD than there is, by Terminate": {
		dials(cm.Config{}, says("MPA ID Rep Frame\x50\x02\x00\x04\x00\x10\x3f\xf0")),
		cm.ConnectError{Doing: cm.Dialing, Step: cm.StepReadReply, Cause: cm.CauseIncompatible, Terminate: 0x2006}, "raise Config.IRD",
	},
	"another connection model, by Terminate": {
		dials(cm.Config{Model: cm.ClientServer}, says("MPA ID Rep Frame\x50\x02\x00\x04\x80\x00\x40\x00")),
		cm.ConnectError{Doing: cm.Dialing, Step: cm.StepReadReply, Cause: cm.CauseIncompatible, Terminate: 0x2007}, "connection model",
	},
	"closed for the Reply": {
		dials(cm.Config{}, closes),
		cm.ConnectError{Doing: cm.Dialing, Step: cm.StepReadReply, Cause: cm.CauseClosed, Err: io.EOF}, "the peer closed the TCP connection while this side was reading the MPA Reply",
	},
	"reset for the Reply": {
		dials(cm.Config{}, resets),
		cm.ConnectError{Doing: cm.Dialing, Step: cm.StepReadReply, Cause: cm.CauseReset, Err: syscall.ECONNRESET}, "the peer reset the TCP connection",
	},
	"closed within the Reply": {
		dials(cm.Config{}, func(t *testing.T, nb *net.TCPConn) { says("MPA ID Rep")(t, nb); closes(t, nb) }),
		cm.ConnectError{Doing: cm.Dialing, Step: cm.StepReadReply, Cause: cm.CauseClosed, Err: io.EOF}, "its program has ended",
	},
	"a bad configuration": {func(t *testing.T) error {
		na, nb := tcpLink(t)
		defer nb.Close()
		_, err := cm.Connect(bounded(t), na, newHost(t, verbs.QPConfig{}).qp, cm.Config{Rev: 3})
		return err
	}, cm.ConnectError{Doing: cm.Dialing, Step: cm.StepConfig, Cause: cm.CauseLocal}, "use 1 or 2"},
	"too much private data beside an offer": {func(t *testing.T) error {
		na, nb := tcpLink(t)
		defer nb.Close()
		_, err := cm.Connect(bounded(t), na, newHost(t, verbs.QPConfig{}).qp, cm.Config{Extensions: true, PrivateData: make([]byte, 501)})
		return err
	}, cm.ConnectError{Doing: cm.Dialing, Step: cm.StepConfig, Cause: cm.CauseLocal}, "the limit is 500"},
	"a queue pair in Error": {func(t *testing.T) error {
		na, nb := tcpLink(t)
		defer nb.Close()
		h := newHost(t, verbs.QPConfig{})
		ruin(t, h.qp)
		_, err := cm.Connect(bounded(t), na, h.qp, cm.Config{})
		return err
	}, cm.ConnectError{Doing: cm.Dialing, Step: cm.StepQP, Cause: cm.CauseLocal, Err: verbs.ErrInvalidState}, "the queue pair is in Error, not Idle"},
	"a queue pair that is lost meanwhile, by Terminate": {func(t *testing.T) error {
		na, nb := tcpLink(t)
		defer nb.Close()
		h := newHost(t, verbs.QPConfig{})
		go func() {
			req, err := rawpeer.ReadStartup(nb)
			assert.NoError(t, err)
			assert.NoError(t, h.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
			req.Reply = true
			assert.NoError(t, rawpeer.WriteStartup(nb, req))
		}()
		_, err := cm.Connect(bounded(t), na, h.qp, cm.Config{})
		return err
	}, cm.ConnectError{Doing: cm.Dialing, Step: cm.StepQP, Cause: cm.CauseLocal, Terminate: 0x2005, Err: verbs.ErrInvalidState}, "Modify QP from Error to RTS"},
	"a Request of a revision that nobody speaks": {
		awaits(says("MPA ID Req Frame\x40\x07\x00\x00")),
		cm.ConnectError{Doing: cm.Awaiting, Step: cm.StepReadRequest, Cause: cm.CauseIncompatible}, "revision 7",
	},
	"closed for the Request": {
		awaits(closes),
		cm.ConnectError{Doing: cm.Awaiting, Step: cm.StepReadRequest, Cause: cm.CauseClosed, Err: io.EOF}, "reading the MPA Request",
	},
	"reset for the Request": {
		awaits(resets),
		cm.ConnectError{Doing: cm.Awaiting, Step: cm.StepReadRequest, Cause: cm.CauseReset, Err: syscall.ECONNRESET}, "reset",
	},
	"accept with a queue pair in Error": {
		accepts(cm.Config{}, func(t *testing.T, _ *cm.Request, q *verbs.QP) context.Context { ruin(t, q); return t.Context() }),
		cm.ConnectError{Doing: cm.Accepting, Step: cm.StepQP, Cause: cm.CauseLocal, Err: verbs.ErrInvalidState}, "not Idle",
	},
	"accept, canceled": {
		accepts(cm.Config{}, func(t *testing.T, _ *cm.Request, _ *verbs.QP) context.Context { return gone(t.Context()) }),
		cm.ConnectError{Doing: cm.Accepting, Step: cm.StepWriteReply, Cause: cm.CauseCanceled, Err: context.Canceled}, "writing the MPA Reply",
	},
	"accept with a bad configuration": {
		accepts(cm.Config{PrivateData: make([]byte, 600)}, func(t *testing.T, _ *cm.Request, _ *verbs.QP) context.Context { return t.Context() }),
		cm.ConnectError{Doing: cm.Accepting, Step: cm.StepConfig, Cause: cm.CauseLocal}, "private data of 600 octets",
	},
}

// TestConnectError: each way not to connect is told by its step and cause, and so are the queue pair's refusals.
func TestConnectError(t *testing.T) {
	for name, f := range failings {
		t.Run(name, func(t *testing.T) {
			got := f.call(t)
			f.failed(t, got)
			var why *verbs.Reason
			if f.want.Step == cm.StepQP {
				require.ErrorAs(t, got, &why)
				assert.NotEmpty(t, why.Remedy)
			} else {
				require.False(t, errors.As(got, &why))
			}
		})
	}
}

// TestConnectErrorInTime: as above, of what a peer does not do in time.
func TestConnectErrorInTime(t *testing.T) {
	for name, f := range map[string]failing{
		"the Reply": {func(t *testing.T) error {
			na, nb := net.Pipe()
			defer nb.Close()
			go func() { _, _ = rawpeer.ReadStartup(nb) }()
			_, err := cm.Connect(t.Context(), na, newHost(t, verbs.QPConfig{}).qp, cm.Config{})
			return err
		}, cm.ConnectError{Doing: cm.Dialing, Step: cm.StepReadReply}, "silent"},
		"writing the Request": {func(t *testing.T) error {
			na, nb := net.Pipe()
			defer nb.Close()
			_, err := cm.Connect(t.Context(), na, newHost(t, verbs.QPConfig{}).qp, cm.Config{})
			return err
		}, cm.ConnectError{Doing: cm.Dialing, Step: cm.StepWriteRequest}, "timeout in writing the MPA Request"},
		"the Request": {func(t *testing.T) error {
			na, nb := net.Pipe()
			defer nb.Close()
			_, err := cm.Await(t.Context(), na, cm.Config{})
			return err
		}, cm.ConnectError{Doing: cm.Awaiting, Step: cm.StepReadRequest}, "silent"},
		"writing the Reply": {func(t *testing.T) error {
			na, nb := net.Pipe()
			defer nb.Close()
			go func() { _ = rawpeer.WriteStartup(nb, mpa.Startup{Rev: 2, CRC: true}) }()
			r, err := cm.Await(t.Context(), na, cm.Config{})
			require.NoError(t, err)
			_, err = r.Accept(t.Context(), newHost(t, verbs.QPConfig{}).qp, cm.Config{})
			return err
		}, cm.ConnectError{Doing: cm.Accepting, Step: cm.StepWriteReply}, "timeout in writing the MPA Reply"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f.want.Cause, f.want.Err = cm.CauseTimeout, context.DeadlineExceeded
				err := f.call(t)
				f.failed(t, err)
				var late *cm.TimeoutError
				require.ErrorAs(t, err, &late)
				assert.Equal(t, f.want.Step, late.Step)
			})
		})
	}
}

// TestTerminateOfAnInitiator: an Initiator that cannot do what the Reply asks for says so by a Terminate Message. The
// Responder's connection stands by then: its Err has the message, decoded.
func TestTerminateOfAnInitiator(t *testing.T) {
	na, nb := tcpLink(t)
	defer nb.Close()
	h := newHost(t, verbs.QPConfig{})
	conn := make(chan *cm.Conn)
	go func() {
		r, err := cm.Await(bounded(t), na, cm.Config{})
		if assert.NoError(t, err) {
			c, err := r.Accept(bounded(t), h.qp, cm.Config{})
			assert.NoError(t, err)
			conn <- c
		}
	}()
	p, _, err := rawpeer.Initiate(nb, mpa.Startup{Rev: 2, CRC: true, Enhanced: true, IRD: 1, ORD: 1})
	require.NoError(t, err)
	require.NoError(t, p.Send([]byte{0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0x20, 0x06, 0, 0}))
	require.NoError(t, p.Close())
	c := <-conn
	<-c.Done()
	var end *verbs.StreamError
	require.ErrorAs(t, c.Err(), &end)
	assert.EqualValues(t, 0x2006, end.Terminate.Code)
	assert.False(t, end.Terminate.Sent)
	var why *verbs.Reason
	require.ErrorAs(t, c.Err(), &why)
	assert.True(t, why.ByPeer)
	assert.EqualValues(t, 2, why.Terminate.Layer)
	assert.EqualValues(t, 6, why.Terminate.Code)
	assert.False(t, errors.As(c.Err(), new(*cm.ConnectError)), "it had come about")
}

// Why a connection does not come about, as data.
func ExampleConnectError() {
	listener, err := cm.Listen("127.0.0.1:0", cm.ListenConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	go func() {
		request, err := listener.Accept(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		_ = request.Reject([]byte("closed on Mondays"))
	}()
	qp, _, _ := setup(make([]byte, 1), verbs.LocalRead)
	_, err = cm.Dial(context.Background(), listener.Addr().String(), qp, cm.Config{})
	var failed *cm.ConnectError
	if errors.As(err, &failed) {
		fmt.Println(failed.Cause, "in", failed.Step)
		fmt.Printf("the peer's program: %s\n", failed.PrivateData)
	}

	_, err = cm.Dial(context.Background(), listener.Addr().String(), qp, cm.Config{Rev: 3})
	if errors.As(err, &failed) {
		fmt.Println(failed.Cause, "in", failed.Step)
	}

	_ = qp.Destroy()
	_, err = cm.Dial(context.Background(), listener.Addr().String(), qp, cm.Config{})
	var why *verbs.Reason
	if errors.As(err, &failed) && errors.As(err, &why) {
		fmt.Println(failed.Cause, "in", failed.Step)
		fmt.Println("do:", why.Remedy)
	}
	// Output:
	// rejected in reading the MPA Reply
	// the peer's program: closed on Mondays
	// local in the configuration
	// local in the queue pair
	// do: make one with RNIC.CreateQP
}
