//go:build tshark

package tap_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/lab/tap"
	"github.com/softrnic/softrnic/verbs"
)

// certificate is one of its own making.
func certificate(t *testing.T) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, &key.PublicKey, key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestWireshark: what goes over a stream under TLS is decoded by tshark to the last field. `make tshark` runs it.
func TestWireshark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tls.pcapng")
	tp, err := tap.Create(path, tap.Config{})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()

	ends := [2]*verbs.QP{}
	for i := range ends {
		nic, err := verbs.Open(verbs.Config{Tap: tp})
		require.NoError(t, err)
		defer nic.Close()
		ends[i], err = nic.CreateEndpoint(verbs.QPConfig{Extensions: true})
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const all = verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic
	mem := [2]*verbs.MR{}
	for i, q := range ends {
		mem[i], err = q.PD().Register(make([]byte, 1000), all)
		require.NoError(t, err)
		_, err = q.PostRecv(verbs.Recv{SGL: mem[i].All()}, verbs.Recv{SGL: mem[i].All()})
		require.NoError(t, err)
	}
	served := make(chan error, 1)
	go func() {
		nc, err := l.Accept()
		if err == nil {
			var req *cm.Request
			if req, err = cm.Await(ctx, tls.Server(nc, &tls.Config{Certificates: []tls.Certificate{certificate(t)}}), cm.Config{}); err == nil {
				_, err = req.Accept(ctx, ends[1], cm.Config{})
			}
		}
		served <- err
	}()
	nc, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, err)
	conn, err := cm.Connect(ctx, nc, ends[0], cm.Config{PrivateData: []byte("private")})
	require.NoError(t, err)
	require.NoError(t, <-served)

	at := mem[1].SGE(0, 1000)
	far := verbs.Remote{STag: at.STag, TO: at.TO}
	_, err = ends[0].PostSend(
		verbs.Request{SGL: mem[0].All()},
		verbs.Request{Op: verbs.OpWrite, SGL: mem[0].All(), Remote: far},
		verbs.Request{Op: verbs.OpRead, Local: mem[0].SGE(0, 1000), Remote: far},
		verbs.Request{Op: verbs.OpFetchAdd, Local: mem[0].SGE(0, 8), Remote: far, Atomic: &verbs.AtomicRequest{Data: 1}},
	)
	require.NoError(t, err)
	for range 4 {
		_, err := ends[0].SendCQ().WaitOne(ctx)
		require.NoError(t, err)
	}
	_, err = ends[1].PostSend(verbs.Request{Op: verbs.OpWrite, SGL: mem[1].All(), Remote: verbs.Remote{STag: 77}}) // that the peer refuses
	require.NoError(t, err)
	<-conn.Done()
	<-ends[1].LLPStream().Done()
	require.NoError(t, tp.Close())

	out, err := exec.Command("tshark", "-r", path, "-o", "tcp.try_heuristic_first:TRUE", "-V").CombinedOutput()
	require.NoError(t, err, string(out))
	text := string(out)
	for _, want := range []string{
		"ID Req frame", "ID Rep frame", "00000000000000", "FPDU",
		"OpCode: Send", "OpCode: Write", "OpCode: Read Request", "OpCode: Read Response", "OpCode: Terminate",
		"OpCode: Atomic Request", "OpCode: Atomic Response", "Data Sink STag", "Data Source STag", "Terminated DDP Header",
	} {
		assert.Contains(t, text, want)
	}
	for _, wrong := range []string{"Malformed", "Bad CRC", "incorrect", "not captured"} {
		assert.NotContains(t, text, wrong)
	}
	if t.Failed() {
		t.Log(text)
	}
	assert.Greater(t, strings.Count(text, "Good CRC32"), 7)
}
