package cm_test

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// TestServerSpeaksFirst: the side that accepts sends, and the program that dialled only receives, with nothing
// configured.
func TestServerSpeaksFirst(t *testing.T) {
	for name, l := range links {
		t.Run(name, func(t *testing.T) {
			a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
			a.recv(t, 1)
			quiet := cm.Config{NoNudge: true} // as below: they are closed here, too
			x, y := connect(t, l, a, b, quiet, quiet, nil)
			assert.True(t, x.P2P())
			b.send(t, verbs.Request{ID: 2})
			b.next(t, verbs.OpSend, 2)
			a.next(t, verbs.OpRecv, 1)
			require.NoError(t, y.Close())
			require.NoError(t, x.Close())
		})
	}
}

// TestCloseWithoutAWord: connections that carry nothing close well, either side first, though the ready-to-receive
// frame and its answer are on their way. There are no nudges, which a loaded machine sends: one that crosses a close
// meets Closing, and ends the stream there (draft fig. 11).
func TestCloseWithoutAWord(t *testing.T) {
	for name, l := range links {
		for _, first := range []int{0, 1} {
			t.Run(name, func(t *testing.T) {
				a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
				x, y := connect(t, l, a, b, cm.Config{NoNudge: true}, cm.Config{NoNudge: true}, nil)
				both := []*cm.Conn{x, y}
				require.NoError(t, both[first].Close())
				require.NoError(t, both[1-first].Close())
			})
		}
	}
}

// answers plays a Responder that answers the Request with what change makes of it.
func answers(t *testing.T, nc net.Conn, change func(*mpa.Startup)) {
	t.Helper()
	rep, err := rawpeer.ReadStartup(nc)
	require.NoError(t, err)
	rep.Reply = true
	change(&rep)
	require.NoError(t, rawpeer.WriteStartup(nc, rep))
}

// TestPeerWithoutTheMode: a Responder that answers in the client-server model gets its way, unless peer-to-peer mode was
// asked for by name.
func TestPeerWithoutTheMode(t *testing.T) {
	for model, want := range map[cm.Model]bool{cm.AnyModel: true, cm.PeerToPeer: false} {
		h := newHost(t, verbs.QPConfig{})
		na, nb := tcpLink(t)
		go answers(t, nb, func(rep *mpa.Startup) { rep.P2P, rep.RTR = false, 0 })
		c, err := cm.Connect(bounded(t), na, h.qp, cm.Config{Model: model, NoNudge: true})
		if !want {
			var unfit *cm.IncompatibleError
			require.ErrorAs(t, err, &unfit)
			continue
		}
		require.NoError(t, err)
		assert.False(t, c.P2P())
		require.NoError(t, c.Abort())
	}
}

// TestPeerWithoutOurFrames: Dial connects anew in the client-server model to a Responder that takes only a
// ready-to-receive frame that this side does not send.
func TestPeerWithoutOurFrames(t *testing.T) {
	h := newHost(t, verbs.QPConfig{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var asked []bool // for the mode, by connection
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2 {
			nc, err := l.Accept()
			if !assert.NoError(t, err) {
				return
			}
			answers(t, nc, func(rep *mpa.Startup) {
				asked = append(asked, rep.P2P)
				if rep.P2P {
					rep.RTR = mpa.RTRSend
				}
			})
			if len(asked) == 1 {
				_, _ = io.Copy(io.Discard, nc) // a Terminate, and the end
			}
			t.Cleanup(func() { _ = nc.Close() })
		}
	}()
	c, err := cm.Dial(bounded(t), l.Addr().String(), h.qp, cm.Config{NoNudge: true})
	require.NoError(t, err)
	<-done
	assert.Equal(t, []bool{true, false}, asked)
	require.NoError(t, c.Abort())
}

// TestWhoHasToSpeak: without the mode, the wait of a side that nothing can reach says which side has to speak. The context's
// error stays what it is.
func TestWhoHasToSpeak(t *testing.T) {
	a, b := newHost(t, verbs.QPConfig{}), newHost(t, verbs.QPConfig{})
	a.recv(t, 1)
	x, y := connect(t, tcpLink, a, b, cm.Config{Rev: 1}, cm.Config{}, nil)
	b.send(t, verbs.Request{ID: 2})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var c [1]verbs.Completion
	for h, says := range map[*host]string{a: "this side dialled", b: "this side accepted"} {
		for _, wait := range []func() error{
			func() error { _, err := h.cq.Wait(ended, c[:]); return err },
			func() error { _, err := h.cq.WaitOne(ended); return err },
			func() error { return h.cq.WaitEvent(ended) },
		} {
			err := wait()
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorContains(t, err, says)
			var why *verbs.Reason
			require.ErrorAs(t, err, &why)
			assert.Equal(t, h.qp.ID(), why.QP)
			assert.NotEmpty(t, why.Remedy)
		}
	}
	a.send(t, verbs.Request{ID: 3, Op: verbs.OpWrite})
	b.next(t, verbs.OpSend, 2)
	for range 2 { // of two queues, so in any order
		_, err := a.cq.Wait(bounded(t), c[:])
		require.NoError(t, err)
	}
	for _, h := range []*host{a, b} {
		_, err := h.cq.Wait(ended, c[:])
		require.Equal(t, context.Canceled, err, "once they have spoken it is the context's alone")
	}
	require.NoError(t, x.Close())
	require.NoError(t, y.Close())
}
