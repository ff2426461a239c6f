package qp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// tlsOver is TLS over a connection.
func tlsOver(t *testing.T, a, b net.Conn) (net.Conn, net.Conn) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	mine := tls.Client(a, &tls.Config{InsecureSkipVerify: true})
	theirs := tls.Server(b, &tls.Config{
		Certificates:           []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		SessionTicketsDisabled: true, // they are written behind the handshake, and nobody reads
	})
	done := make(chan error, 1)
	go func() { done <- theirs.Handshake() }()
	require.NoError(t, mine.Handshake())
	require.NoError(t, <-done)
	return mine, theirs
}

// TestAbortIsAReset: TLS has none, the connection below it has.
func TestAbortIsAReset(t *testing.T) {
	for name, wrap := range map[string]func(*testing.T, net.Conn, net.Conn) (net.Conn, net.Conn){
		"TCP": func(_ *testing.T, a, b net.Conn) (net.Conn, net.Conn) { return a, b },
		"TLS": tlsOver,
	} {
		r := newIdleRig(t, setup{})
		a, b, err := rawpeer.Pair()
		require.NoError(t, err)
		r.start(wrap(t, a, b))
		require.NoError(t, r.q.Modify(Modify{Next: wr.StateError}))
		_, err = r.peer.Next()
		require.ErrorIs(t, err, syscall.ECONNRESET, name)
	}
}

// plainLinks are connections that are no TCP of this side's own: their writes block.
var plainLinks = []struct {
	name string
	pair func(*testing.T) (net.Conn, net.Conn)
}{
	{"pipe", func(*testing.T) (net.Conn, net.Conn) { return net.Pipe() }},
	{"wrapped pipe", func(*testing.T) (net.Conn, net.Conn) {
		a, b := net.Pipe()
		return struct{ net.Conn }{a}, b
	}},
	{"TLS", func(t *testing.T) (net.Conn, net.Conn) {
		a, b := net.Pipe()
		return tlsOver(t, a, b)
	}},
}

// plainEndings are what ends a stream whose peer does not read.
var plainEndings = []struct {
	name string
	end  func(*rig)
	next wr.State // when end returns; Idle: not looked at
}{
	{"Modify to Closing", func(r *rig) { require.NoError(r.t, r.q.Modify(Modify{Next: wr.StateClosing})) }, wr.StateClosing},
	{"Modify to Terminate", func(r *rig) { require.NoError(r.t, r.q.Modify(Modify{Next: wr.StateTerminate})) }, wr.StateTerminate},
	{"Modify to Error", func(r *rig) { require.NoError(r.t, r.q.Modify(Modify{Next: wr.StateError})) }, wr.StateError},
	{"Fail", func(r *rig) { r.q.Fail() }, wr.StateIdle},
	{"a bad segment", func(r *rig) { r.send(rawpeer.Write(0, 0, filled(1)).Octets()) }, wr.StateIdle},
}

// TestEndsInTime: a peer that does not read delays no verb, and an ending takes one
// close timeout, whatever it finds under way (verbs draft 6.2.3, 6.2.5).
func TestEndsInTime(t *testing.T) {
	for _, link := range plainLinks {
		for _, busy := range []bool{false, true} {
			for _, limit := range []time.Duration{time.Second, 20 * time.Second} { // TLS has 5 s of its own
				for _, e := range plainEndings {
					name := link.name + ", " + map[bool]string{false: "idle", true: "writing"}[busy] + ", " + limit.String() + ", " + e.name
					t.Run(name, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							r := newIdleRig(t, setup{closeTimeout: limit})
							mine, theirs := link.pair(t)
							r.start(mine, theirs)
							r.postRecv(wr.Recv{ID: 1})
							if busy {
								r.postSend(wr.Request{ID: 2, SGL: r.full.sgl(0, slabSize)})
							}
							synctest.Wait()
							start := time.Now()
							e.end(r)
							assert.Zero(t, time.Since(start), "the verb waits for the peer")
							if busy && e.next != wr.StateIdle {
								assert.Equal(t, e.next, r.q.State())
							}
							<-r.s.over
							assert.LessOrEqual(t, time.Since(start), limit, "the ending")
							if busy {
								assert.Equal(t, wr.StateError, r.q.State())
								assert.Equal(t, []uint64{2}, ids(r.all(r.scq)))
							}
						})
					})
				}
			}
		}
	}
}

func ids(list []comp) (out []uint64) {
	for _, c := range list {
		out = append(out, c.ID)
	}
	return out
}
