package netpoll

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/tcpsock"
)

// through is a stream over TCP that goes through p, and its peer.
func through(t *testing.T, p *Port) (*echo, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	c, err := l.Accept()
	require.NoError(t, err)
	conn, err := Own(c, nil)
	require.NoError(t, err)
	conn.Through(p)
	e := &echo{conn: conn}
	sock, err := conn.Join(newGroup(t), e)
	require.NoError(t, err)
	conn.Take()
	sock.Begin()
	t.Cleanup(func() {
		_ = peer.Close()
		conn.Reset()
		conn.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		require.NotContains(t, p.conns, conn)
	})
	return e, peer
}

// TestLossIsTheSystems: packets are lost below TCP, which sends them again, of streams that there are and of those that join.
func TestLossIsTheSystems(t *testing.T) {
	var p Port
	before, peer := through(t, &p)
	p.Set(Shape{Loss: 1})
	joined, other := through(t, &p)
	for _, c := range []net.Conn{peer, other} {
		_, err := c.Write([]byte("x"))
		require.NoError(t, err)
	}
	time.Sleep(20 * time.Millisecond)
	require.Zero(t, before.got.Load()+joined.got.Load())
	p.Set(Shape{})
	for _, e := range []*echo{before, joined} {
		require.Eventually(t, func() bool { return e.got.Load() == 1 }, patience, time.Millisecond)
	}
}

// TestDownIsNoWork: what has come for a port that is down does not keep the poller busy, and an end of the peer's is not seen.
func TestDownIsNoWork(t *testing.T) {
	var p Port
	e, peer := through(t, &p)
	p.Set(Shape{Down: true})
	_, err := peer.Write([]byte("xy"))
	require.NoError(t, err)
	time.Sleep(10 * time.Millisecond)
	e.conn.sock.WantOutput(true)
	_, err = e.conn.TryWrite([][]byte{{1}}, 1)
	require.Equal(t, ErrAgain, err)
	_, err = e.conn.TryRead(make([]byte, 1))
	require.Equal(t, ErrAgain, err)
	driven := e.driven.Load()
	time.Sleep(20 * time.Millisecond)
	require.Equal(t, driven, e.driven.Load())
	require.Zero(t, e.got.Load())
	p.Set(Shape{})
	require.Eventually(t, func() bool { return e.got.Load() == 2 }, patience, time.Millisecond)
	n, err := e.conn.TryWrite([][]byte{{1}}, 1)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// TestDownIsSilent: the peer's TCP hears nothing of a port that is down, not even probes of TCP's own, and all that was sent comes when it
// is up again; the close of a stream goes through.
func TestDownIsSilent(t *testing.T) {
	var p Port
	e, peer := through(t, &p)
	raw, err := peer.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	heard := func() (h tcpsock.Heard) {
		require.NoError(t, raw.Control(func(fd uintptr) { h, _ = tcpsock.HeardOf(fd) }))
		return h
	}
	_, _ = e.conn.Heard(true)
	p.Set(Shape{Down: true})
	before := heard().Answers
	_, err = peer.Write([]byte("x"))
	require.NoError(t, err)
	time.Sleep(1500 * time.Millisecond) // e's own TCP would ask by now
	h := heard()
	require.True(t, h.Owes)
	require.Positive(t, h.Tries)
	require.Equal(t, before, h.Answers)
	require.Zero(t, e.got.Load())
	p.Set(Shape{})
	require.Eventually(t, func() bool { return e.got.Load() == 1 && !heard().Owes }, patience, time.Millisecond)
	p.Set(Shape{Down: true})
	_, err = peer.Write([]byte("y"))
	require.NoError(t, err)
	require.NoError(t, e.conn.Close())
	require.NoError(t, peer.SetReadDeadline(time.Now().Add(patience)))
	_, err = peer.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.Eventually(t, func() bool { return !heard().Owes || heard() == tcpsock.Heard{} }, patience, time.Millisecond)
}
