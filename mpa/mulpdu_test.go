package mpa

import (
	"net"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMULPDU(t *testing.T) {
	const maxInt = int(^uint(0) >> 1)
	for _, tc := range []struct{ emss, plain, marked int }{
		// The table of the project's wire reference, 1.4.
		{536, 530, 522},
		{1220, 1214, 1202},
		{1440, 1434, 1422},
		{1448, 1442, 1430},
		{1460, 1454, 1442},
		{8948, 8942, 8870},
		{8960, 8954, 8882},
		{65483, 64768, 64768},
		// Remainders and bounds.
		{1461, 1454, 1442},
		{1463, 1454, 1442},
		{139, 130, 128},
		{134, 128, 128},
		{127, 128, 128},
		{0, 128, 128},
		{-1, 128, 128},
		{-maxInt - 1, 128, 128},
		{maxInt, 64768, 64768},
	} {
		assert.Equal(t, tc.plain, MULPDU(tc.emss, false), "EMSS %d", tc.emss)
		assert.Equal(t, tc.marked, MULPDU(tc.emss, true), "EMSS %d with markers", tc.emss)
	}
}

// An FPDU of MULPDU octets fits the segment wherever the markers fall.
func TestMULPDUFits(t *testing.T) {
	for emss := 140; emss < 9000; emss += 7 {
		f := NewFramer(true, false)
		require.LessOrEqual(t, f.Size(MULPDU(emss, false)), emss)
		for _, phase := range []uint16{0, 4, 256, 504, 508} {
			f := Framer{crc: true, markers: true, phase: phase}
			if n := MULPDU(emss, true); n > MinMULPDU {
				require.LessOrEqual(t, f.Size(n), emss, "EMSS %d phase %d", emss, phase)
			}
		}
	}
}

func TestEMSS(t *testing.T) {
	assert.Equal(t, DefaultEMSS, EMSS(nil))
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	assert.Equal(t, DefaultEMSS, EMSS(a))

	client, server := tcpPair(t)
	for _, c := range []net.Conn{client, server} {
		if runtime.GOOS == "linux" || runtime.GOOS == "darwin" {
			assert.Greater(t, EMSS(c), DefaultEMSS, "loopback has large segments")
		} else {
			assert.Positive(t, EMSS(c))
		}
	}
	require.NoError(t, client.Close())
	assert.Equal(t, DefaultEMSS, EMSS(client), "closed")
}

func TestStreamMULPDU(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	assert.Equal(t, 1454, (&Stream{Conn: a}).MULPDU())
	assert.Equal(t, 1442, (&Stream{Conn: a, MarkersOut: true}).MULPDU())
	assert.Equal(t, 8954, (&Stream{Conn: a, EMSS: 8960}).MULPDU())
	assert.Equal(t, 1454, (&Stream{}).MULPDU())
}

// pathConn is a connection whose segment size is that of path, or unknown.
type pathConn struct {
	net.Conn
	path syscall.RawConn
}

func (c *pathConn) SyscallConn() (syscall.RawConn, error) { return pathRaw{nil, c}, nil }

type pathRaw struct {
	syscall.RawConn
	c *pathConn
}

func (r pathRaw) Control(f func(uintptr)) error {
	if r.c.path == nil {
		return syscall.EINVAL
	}
	return r.c.path.Control(f)
}

// TestMeter: it follows what the connection says.
func TestMeter(t *testing.T) {
	client, _ := tcpPair(t)
	c := &pathConn{Conn: client}
	s := Stream{Conn: c}
	m := s.Meter()
	for _, path := range []syscall.RawConn{nil, rawConn(client), nil} {
		c.path = path
		want := 1454
		if path != nil {
			want = MULPDU(EMSS(client), false)
		}
		assert.Equal(t, want, m.MULPDU())
		assert.Equal(t, want, s.MULPDU())
	}
	c.path = rawConn(client)
	assert.Zero(t, testing.AllocsPerRun(100, func() { m.MULPDU() }))
	s.EMSS = 536
	m = s.Meter()
	assert.Equal(t, 530, m.MULPDU(), "a size of its own")
}

func tcpPair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	client, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	server, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}
