package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
)

// receiving starts a receiver, and returns how to reach it, and where its files are.
func receiving(t *testing.T) (dial func() net.Conn, folder string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots.AddCert(cert)
	tl, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	require.NoError(t, err)

	folder = t.TempDir()
	dir, err := os.OpenRoot(folder)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- receiveAll(ctx, cm.NewListener(tl, cm.ListenConfig{}), dir) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, dir.Close())
	})
	return func() net.Conn {
		nc, err := tls.Dial("tcp", tl.Addr().String(), &tls.Config{RootCAs: roots})
		require.NoError(t, err)
		return nc
	}, folder
}

// Files of every awkward size arrive as they were.
func TestCopy(t *testing.T) {
	dial, folder := receiving(t)
	from := t.TempDir()
	for name, size := range map[string]int{"empty": 0, "one": 1, "block": blockSize, "more": blocks*blockSize + 1, "long": 11*blockSize - 7} {
		data := make([]byte, size)
		_, _ = rand.Read(data)
		path := filepath.Join(from, name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		require.NoError(t, send(t.Context(), path, dial()))
		got, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		require.Equal(t, data, got)
	}
}

// A file that cannot be made there is refused, and the sender says so.
func TestRefused(t *testing.T) {
	dial, folder := receiving(t)
	require.NoError(t, os.Mkdir(filepath.Join(folder, "taken"), 0o700))
	path := filepath.Join(t.TempDir(), "taken")
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	require.ErrorContains(t, send(t.Context(), path, dial()), "the file cannot be made")
}
