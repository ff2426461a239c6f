package mpa

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the ULP has read too far comes first, whatever its extent.
func TestEarlyOctets(t *testing.T) {
	frame := unhex(t, reqHex+"50020006 00100010 7879")
	all := append(bytes.Clone(frame), "FPDU octets"...)
	for n := range len(all) + 1 {
		synctest.Test(t, func(t *testing.T) {
			a, b := pipe(t)
			go send(b, all[n:])
			offer, err := Await(t.Context(), a, Config{Early: all[:n]})
			require.NoError(t, err)
			assert.Equal(t, "xy", string(offer.Request.PrivateData))
			left := max(n-len(frame), 0)
			assert.Equal(t, string(all[n-left:n]), string(offer.Early))
			rest := make([]byte, len(all)-max(n, len(frame)))
			_, err = io.ReadFull(a, rest)
			require.NoError(t, err)
			assert.Equal(t, "FPDU octets", string(offer.Early)+string(rest))
		})
	}
}

func TestEarlyReachesTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe(t)
		go func() { _, _ = io.Copy(io.Discard, b) }()
		offer, err := Await(t.Context(), a, Config{Early: append(unhex(t, reqHex+"40010000"), "more"...)})
		require.NoError(t, err)
		s, err := offer.Accept(Config{})
		require.NoError(t, err)
		assert.Equal(t, "more", string(s.Early))

		s, err = Initiate(t.Context(), a, Config{Rev: 1, Early: append(unhex(t, repHex+"40010000"), "FPDU"...)})
		require.NoError(t, err)
		assert.Equal(t, "FPDU", string(s.Early))

		_, err = Initiate(t.Context(), a, Config{Rev: 1, Early: append(unhex(t, repHex+"60010000"), "ULP"...)})
		var rejected *RejectedError
		require.ErrorAs(t, err, &rejected)
		assert.Equal(t, "ULP", string(rejected.Early))
		a.Close()
	})
}

// Neither side reads past its frame, though more is there: over TCP, behind
// streaming data.
func TestTCPReadsExactly(t *testing.T) {
	client, server := tcpPair(t)
	_, err := client.Write([]byte("streaming data\n"))
	require.NoError(t, err)
	_, err = io.ReadFull(server, make([]byte, 15))
	require.NoError(t, err)

	_, err = client.Write(append(unhex(t, reqHex+"50020005 00040004 70"), "after the Request"...))
	require.NoError(t, err)
	offer, err := Await(t.Context(), server, Config{})
	require.NoError(t, err)
	_, err = offer.Accept(Config{PrivateData: []byte("q")})
	require.NoError(t, err)
	assertNext(t, server, "after the Request")
	assertNext(t, client, string(unhex(t, repHex+"50020005 00100004 71")))

	_, err = server.Write(append(unhex(t, repHex+"50020005 00040004 70"), "after the Reply"...))
	require.NoError(t, err)
	s, err := Initiate(t.Context(), client, Config{})
	require.NoError(t, err)
	assert.Equal(t, "p", string(s.PrivateData))
	assertNext(t, client, "after the Reply")
	assert.Greater(t, s.MULPDU(), MinMULPDU)
}

func assertNext(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	_, err := io.ReadFull(c, got)
	require.NoError(t, err)
	assert.Equal(t, want, string(got))
}

func TestTCPStartup(t *testing.T) {
	client, server := tcpPair(t)
	is, rs := connect(t, client, server, Config{P2P: true, Markers: true}, Config{PrivateData: []byte("x")})
	assert.Equal(t, RTRRead, is.RTR)
	assert.True(t, rs.MarkersOut)

	// The side that opened the TCP connection may be the Responder.
	client, server = tcpPair(t)
	connect(t, server, client, Config{}, Config{})
}

func TestTCPBothInitiators(t *testing.T) { // R5044-7.1.2-M10
	a, b := tcpPair(t)
	done := make(chan error, 2)
	for _, c := range []net.Conn{a, b} {
		go func() {
			_, err := Initiate(t.Context(), c, Config{})
			done <- err
		}()
	}
	// The first to look sees the other's Request; its close may reach the other
	// before the Request does.
	codes := map[Code]bool{}
	for range 2 {
		var e *Error
		require.ErrorAs(t, <-done, &e)
		require.Contains(t, []Code{CodeStartup, CodeLLPLost}, e.Code)
		codes[e.Code] = true
	}
	assert.True(t, codes[CodeStartup])
}

func TestTLSStartup(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	serverConfig := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}}
	clientConfig := &tls.Config{InsecureSkipVerify: true} // the test is not about who the peer is

	client, server := tcpPair(t)
	is, rs := connect(t, tls.Client(client, clientConfig), tls.Server(server, serverConfig), Config{}, Config{})
	assert.Equal(t, 1454, is.MULPDU())
	assert.Equal(t, 1454, rs.MULPDU())
}
