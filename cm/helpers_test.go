package cm_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/verbs"
)

// host is what one program needs before it connects.
type host struct {
	nic *verbs.RNIC
	cq  *verbs.CQ
	qp  *verbs.QP
	mr  *verbs.MR
}

// newHost opens an RNIC. The parts of c that say how to tie things together are
// filled in.
func newHost(t testing.TB, c verbs.QPConfig) *host {
	h := &host{}
	var err error
	h.nic, err = verbs.Open(verbs.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.nic.Close()) })
	c.PD, err = h.nic.AllocatePD()
	require.NoError(t, err)
	h.cq, err = h.nic.CreateCQ(verbs.CQConfig{})
	require.NoError(t, err)
	c.SendCQ, c.RecvCQ = h.cq, h.cq
	if c.CloseTimeout == 0 {
		c.CloseTimeout = time.Minute // no test waits for it
	}
	h.qp, err = h.nic.CreateQP(c)
	require.NoError(t, err)
	const all = verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite
	h.mr, err = c.PD.Register(make([]byte, 1<<20), all)
	require.NoError(t, err)
	return h
}

// next waits for one completion and wants it to be a success.
func (h *host) next(t testing.TB, op verbs.Op, id uint64) {
	t.Helper()
	var c [1]verbs.Completion
	_, err := h.cq.Wait(bounded(t), c[:])
	require.NoError(t, err)
	require.Equal(t, verbs.StatusSuccess, c[0].Status, "%+v", c[0])
	require.Equal(t, op, c[0].Op)
	require.Equal(t, id, c[0].ID)
}

func (h *host) recv(t testing.TB, id uint64) {
	_, err := h.qp.PostRecv(verbs.Recv{ID: id, SGL: h.mr.SGL(0, 1<<10)})
	require.NoError(t, err)
}

func (h *host) send(t testing.TB, w verbs.Request) {
	_, err := h.qp.PostSend(w)
	require.NoError(t, err)
}

// bounded is a context that ends a test which hangs.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// link makes a connected pair.
type link func(testing.TB) (net.Conn, net.Conn)

var links = map[string]link{"TCP": tcpLink, "pipe": pipeLink, "TLS": tlsLink, "wrapped TCP": wrappedLink}

func pipeLink(testing.TB) (net.Conn, net.Conn) { return net.Pipe() }

func tcpLink(t testing.TB) (net.Conn, net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	b, err := l.Accept()
	require.NoError(t, err)
	return a, b
}

// wrappedLink hides everything but the methods of net.Conn.
func wrappedLink(t testing.TB) (net.Conn, net.Conn) {
	a, b := tcpLink(t)
	return struct{ net.Conn }{a}, struct{ net.Conn }{b}
}

// tlsLink leaves the handshake to the first read and write.
func tlsLink(t testing.TB) (net.Conn, net.Conn) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"cm.test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	a, b := tcpLink(t)
	return tls.Client(a, &tls.Config{ServerName: "cm.test", RootCAs: roots}),
		tls.Server(b, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
}

// connect connects two hosts over a link; see is shown the Request.
func connect(t testing.TB, l link, a, b *host, ca, cb cm.Config, see func(*cm.Request)) (*cm.Conn, *cm.Conn) {
	t.Helper()
	for _, c := range []*cm.Config{&ca, &cb} {
		if c.CloseTimeout == 0 {
			c.CloseTimeout = time.Minute // no test waits for it
		}
	}
	na, nb := l(t)
	type result struct {
		c   *cm.Conn
		err error
	}
	accepted := make(chan result, 1)
	go func() {
		r, err := cm.Await(context.Background(), nb, cb)
		if err != nil {
			accepted <- result{nil, err}
			return
		}
		if see != nil {
			see(r)
		}
		c, err := r.Accept(context.Background(), b.qp, cb)
		accepted <- result{c, err}
	}()
	x, err := cm.Connect(bounded(t), na, a.qp, ca)
	require.NoError(t, err)
	y := <-accepted
	require.NoError(t, y.err)
	return x, y.c
}

// exchange moves data both ways by every operation; a speaks first.
func exchange(t testing.TB, a, b *host) {
	t.Helper()
	x, y := a.mr.Bytes(), b.mr.Bytes()
	_, _ = rand.Read(x[1<<10:])
	b.recv(t, 1)
	a.recv(t, 2)
	a.send(t, verbs.Request{ID: 3, Op: verbs.OpWrite, SGL: a.mr.SGL(1<<10, 300_000), Remote: b.mr.Remote(1 << 10)})
	a.next(t, verbs.OpWrite, 3)
	a.send(t, verbs.Request{ID: 4, SGL: a.mr.SGL(1<<10, 1000)})
	a.next(t, verbs.OpSend, 4)
	b.next(t, verbs.OpRecv, 1)
	require.Equal(t, x[1<<10:2024], y[:1000])
	require.Equal(t, x[1<<10:301_024], y[1<<10:301_024])
	b.send(t, verbs.Request{ID: 5, Op: verbs.OpRead, Local: b.mr.SGE(400_000, 300_000), Remote: a.mr.Remote(500_000)})
	b.next(t, verbs.OpRead, 5)
	require.Equal(t, x[500_000:800_000], y[400_000:700_000])
	b.send(t, verbs.Request{ID: 6, Op: verbs.OpSendSE, SGL: b.mr.SGL(1<<10, 77)})
	b.next(t, verbs.OpSendSE, 6)
	a.next(t, verbs.OpRecv, 2)
	require.Equal(t, y[1<<10:1101], x[:77])
}
