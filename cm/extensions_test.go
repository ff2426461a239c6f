package cm_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// TestExtensionsIfBothAsk: RFC 7306 is spoken if both programs ask for it, whatever their
// queue pairs are set to; the private data of each is the other's as it was.
func TestExtensionsIfBothAsk(t *testing.T) {
	for bits := range 8 {
		for _, rev := range []uint8{1, 2} {
			t.Run(fmt.Sprintf("%03b, revision %d", bits, rev), func(t *testing.T) {
				conf := verbs.QPConfig{Extensions: bits&4 != 0}
				a, b := newHost(t, conf), newHost(t, conf)
				ca := cm.Config{Extensions: bits&1 != 0, Rev: rev, PrivateData: []byte("ask")}
				cb := cm.Config{Extensions: bits&2 != 0, PrivateData: []byte("RFC7306\x03answer")}
				b.recv(t, 5)
				x, y := connect(t, tcpLink, a, b, ca, cb, func(r *cm.Request) {
					assert.Equal(t, "ask", string(r.PrivateData()))
					assert.Equal(t, ca.Extensions, r.Extensions())
				})
				assert.Equal(t, "ask", string(y.PrivateData()))
				assert.Equal(t, "RFC7306\x03answer", string(x.PrivateData()))
				both := ca.Extensions && cb.Extensions
				for _, c := range []*cm.Conn{x, y} {
					assert.Equal(t, both, c.Extensions())
				}
				assert.Equal(t, both || conf.Extensions && !ca.Extensions, query(t, a).Extensions)
				assert.Equal(t, both || conf.Extensions && !cb.Extensions, query(t, b).Extensions)
				if _, err := a.qp.PostSend(verbs.Request{Op: verbs.OpImmediate, Immediate: 9}); query(t, a).Extensions {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, verbs.ErrInvalidOp)
				}
				if both {
					a.next(t, verbs.OpImmediate, 0)
					b.next(t, verbs.OpRecv, 5)
					require.NoError(t, x.Close())
					require.NoError(t, y.Close())
					assert.Equal(t, conf.Extensions, query(t, a).Extensions, "the next stream begins as configured")
				}
			})
		}
	}
}

func query(t *testing.T, h *host) verbs.QPAttributes {
	a, err := h.qp.Query()
	require.NoError(t, err)
	return a
}

// TestExtensionsNotAgreed: what was posted in Idle in the hope of an agreement fails by itself.
func TestExtensionsNotAgreed(t *testing.T) {
	for _, first := range []verbs.Request{{Op: verbs.OpImmediate}, {Op: verbs.OpWriteImmediate, Flags: verbs.ReadFence}} {
		a, b := newHost(t, verbs.QPConfig{Extensions: true}), newHost(t, verbs.QPConfig{})
		first.ID = 4
		a.send(t, first)
		x, _ := connect(t, tcpLink, a, b, cm.Config{Extensions: true}, cm.Config{}, nil)
		wc, err := a.cq.WaitOne(bounded(t))
		require.ErrorIs(t, err, &verbs.CompletionError{Status: verbs.StatusInvalidWQE})
		require.Equal(t, uint64(4), wc.ID)
		<-x.Done()
	}
}

// TestExtensionsOctets has the offer octet for octet, both ways, and a program that has no room
// beside it.
func TestExtensionsOctets(t *testing.T) {
	a := newHost(t, verbs.QPConfig{})
	mine, theirs := tcpLink(t)
	_, err := cm.Connect(bounded(t), mine, a.qp, cm.Config{Extensions: true, PrivateData: make([]byte, 501)})
	require.ErrorContains(t, err, "private data of 501 octets with Config.Extensions: the limit is 500")
	_ = theirs.Close()

	most := bytes.Repeat([]byte{7}, 500)
	mine, theirs = tcpLink(t)
	done := make(chan *cm.Conn)
	go func() {
		c, err := cm.Connect(bounded(t), mine, a.qp, cm.Config{Extensions: true, PrivateData: most})
		assert.NoError(t, err)
		done <- c
	}()
	p, req, err := rawpeer.Respond(theirs, mpa.Startup{Rev: 2, CRC: true, Enhanced: true, IRD: 1, ORD: 1, PrivateData: []byte("RFC7306\x83yes")})
	require.NoError(t, err)
	require.Equal(t, "5246433733303603", hex.EncodeToString(req.PrivateData[:8]))
	require.Equal(t, most, req.PrivateData[8:])
	c := <-done
	require.True(t, c.Extensions())
	require.Equal(t, "yes", string(c.PrivateData()))
	_ = p.Close()
	<-c.Done()

	b := newHost(t, verbs.QPConfig{})
	mine, theirs = tcpLink(t)
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		r, err := cm.Await(bounded(t), mine, cm.Config{})
		if assert.NoError(t, err) {
			_, err := r.Accept(bounded(t), b.qp, cm.Config{Extensions: true, PrivateData: make([]byte, 501)})
			assert.ErrorContains(t, err, "the limit is 500")
			_, err = r.Accept(bounded(t), b.qp, cm.Config{Extensions: true, PrivateData: []byte("x")})
			assert.NoError(t, err, "the Request stands")
		}
	}()
	p, rep, err := rawpeer.Initiate(theirs, mpa.Startup{Rev: 2, CRC: true, Enhanced: true, PrivateData: []byte("RFC7306\x7fz")})
	require.NoError(t, err)
	require.Equal(t, "RFC7306\x83x", string(rep.PrivateData), "reserved bits are zero, and not looked at")
	<-accepted // before the stream ends: an Accept that has sent its Reply and not returned would see that
	_ = p.Close()
}

// TestExtensionsHostile has private data in a Reply and a Request that is not, or is not quite,
// an offer: nothing is agreed, and the program gets it as it came.
func TestExtensionsHostile(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "",
		"RFC7306":            "RFC7306", // cut short
		"RFC730":             "RFC730",
		"rfc7306\x83program": "rfc7306\x83program", // another key
		"RFC7306\x03program": "RFC7306\x03program", // the Request sent back
		"RFC7306\x80program": "program",            // an answer that agrees to nothing
		"RFC7306\x81program": "program",            // to a half
		"RFC7306\x82":        "",
	} {
		a := newHost(t, verbs.QPConfig{Extensions: true})
		mine, theirs := tcpLink(t)
		done := make(chan *cm.Conn)
		go func() {
			c, err := cm.Connect(bounded(t), mine, a.qp, cm.Config{Extensions: true})
			assert.NoError(t, err)
			done <- c
		}()
		p, _, err := rawpeer.Respond(theirs, mpa.Startup{Rev: 2, CRC: true, Enhanced: true, IRD: 1, ORD: 1, PrivateData: []byte(text)})
		require.NoError(t, err)
		c := <-done
		assert.False(t, c.Extensions(), "%q", text)
		assert.False(t, query(t, a).Extensions, "%q", text)
		assert.Equal(t, want, string(c.PrivateData()), "%q", text)
		_ = p.Close()
		<-c.Done()
	}
	for text, want := range map[string]string{
		"RFC7306":         "RFC7306",
		"RFC7306\x83data": "RFC7306\x83data", // an answer is no Request
		"RFC7306\x00data": "data",
		"RFC7306\x01data": "data",
		"RFC7306\x02data": "data",
		"Rfc7306\x03data": "Rfc7306\x03data",
	} {
		b := newHost(t, verbs.QPConfig{})
		mine, theirs := tcpLink(t)
		done := make(chan *cm.Conn)
		go func() {
			r, err := cm.Await(bounded(t), mine, cm.Config{})
			assert.NoError(t, err)
			assert.Equal(t, want, string(r.PrivateData()), "%q", text)
			c, err := r.Accept(bounded(t), b.qp, cm.Config{Extensions: true, PrivateData: []byte("mine")})
			assert.NoError(t, err)
			done <- c
		}()
		p, rep, err := rawpeer.Initiate(theirs, mpa.Startup{Rev: 2, CRC: true, Enhanced: true, PrivateData: []byte(text)})
		require.NoError(t, err)
		assert.Equal(t, "mine", string(rep.PrivateData), "%q", text)
		c := <-done
		assert.False(t, c.Extensions(), "%q", text)
		_ = p.Close()
		<-c.Done()
	}
}
