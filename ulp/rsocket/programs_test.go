package rsocket_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ulp/rsocket"
)

// octets are n octets of no pattern.
func octets(n int) []byte {
	b := make([]byte, n)
	_, _ = mrand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

// TestHTTP: a server and a client of net/http, many requests at a time, bodies both ways.
func TestHTTP(t *testing.T) {
	l, err := rsocket.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = w.Write(body)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	transport := &http.Transport{DialContext: rsocket.Config{}.DialContext, MaxIdleConnsPerHost: 16}
	client := &http.Client{Transport: transport}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 8 {
				body := octets(1 + (i*8+j)*4001)
				resp, err := client.Post("http://"+l.Addr().String()+"/", "application/octet-stream", bytes.NewReader(body))
				if !noError(t, err) {
					return
				}
				got, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if !noError(t, err) {
					return
				}
				if !bytes.Equal(body, got) {
					t.Errorf("%d octets came back as other %d", len(body), len(got))
				}
			}
		})
	}
	all.Wait()
	transport.CloseIdleConnections()
	require.NoError(t, server.Shutdown(t.Context()))
	require.ErrorIs(t, <-served, http.ErrServerClosed)
}

func noError(t *testing.T, err error) bool {
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

// TestTLS: crypto/tls on both ends.
func TestTLS(t *testing.T) {
	cert, roots := certificate(t)
	a, b := pair(t, rsocket.Config{})
	server := tls.Server(b, &tls.Config{Certificates: []tls.Certificate{cert}})
	client := tls.Client(a, &tls.Config{RootCAs: roots, ServerName: "softrnic.test"})
	echoed := make(chan error, 1)
	go func() {
		_, err := io.Copy(server, server)
		_ = server.Close()
		echoed <- err
	}()
	exchange(t, client, octets(1<<20), client.CloseWrite)
	require.NoError(t, <-echoed)
}

func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"softrnic.test"}, IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

// exchange sends body, ends its side, and expects body back until the peer ends its side.
func exchange(t *testing.T, c net.Conn, body []byte, end func() error) {
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(c, bytes.NewReader(body))
		if err == nil {
			err = end()
		}
		sent <- err
	}()
	var got bytes.Buffer
	_, err := io.Copy(&got, c)
	require.NoError(t, err)
	require.NoError(t, <-sent)
	require.True(t, bytes.Equal(body, got.Bytes()), "%d octets came back as other %d", len(body), got.Len())
}

// TestCopy: some MB there and back by io.Copy, with writes of all sizes and little room.
func TestCopy(t *testing.T) {
	for name, c := range map[string]rsocket.Config{"default": {}, "small": {RecvBuffer: 1, SendBuffer: 1}, "crc": {CRC: true}, "immediate": {Immediate: true}} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, c)
			echoed := make(chan error, 1)
			go func() {
				_, err := io.Copy(b, b)
				if err == nil {
					err = b.CloseWrite()
				}
				echoed <- err
			}()
			exchange(t, a, octets(5<<20), a.CloseWrite)
			require.NoError(t, <-echoed)
		})
	}
}

// TestSizes: writes of many sizes beside one another, read with another size each time.
func TestSizes(t *testing.T) {
	a, b := pair(t, rsocket.Config{RecvBuffer: 64 << 10, SendBuffer: 16 << 10})
	body := octets(3 << 20)
	sent := make(chan error, 1)
	random := func(seed uint64) func(int) int {
		r := mrand.New(mrand.NewPCG(seed, 1))
		return func(left int) int { return min(left, 1<<r.IntN(19)+r.IntN(100)) }
	}
	go func() {
		size := random(1)
		for p := body; len(p) > 0; {
			n, err := a.Write(p[:size(len(p))])
			if err != nil {
				sent <- err
				return
			}
			p = p[n:]
		}
		sent <- a.Close()
	}()
	size, got := random(2), make([]byte, len(body)+1)
	n := 0
	for {
		k, err := b.Read(got[n:][:size(len(got)-n)])
		n += k
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	require.NoError(t, <-sent)
	require.True(t, bytes.Equal(body, got[:n]), fmt.Sprint(n, " octets came"))
}
