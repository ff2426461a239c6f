package rsocket_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ulp/rsocket"
)

func TestHalfClose(t *testing.T) {
	a, b := pair(t, rsocket.Config{})
	_, err := a.Write([]byte("question"))
	require.NoError(t, err)
	require.NoError(t, a.CloseWrite())
	_, err = a.Write([]byte("x"))
	require.ErrorIs(t, err, syscall.EPIPE)
	got, err := io.ReadAll(b)
	require.NoError(t, err)
	require.Equal(t, "question", string(got))
	_, err = b.Write([]byte("answer"))
	require.NoError(t, err)
	require.NoError(t, b.CloseWrite())
	got, err = io.ReadAll(a)
	require.NoError(t, err)
	require.Equal(t, "answer", string(got))
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
}

// TestCloseLeavesData: what was written before Close can be read behind it, and what the peer writes afterwards fails.
func TestCloseLeavesData(t *testing.T) {
	a, b := pair(t, rsocket.Config{})
	body := octets(100 << 10)
	_, err := a.Write(body)
	require.NoError(t, err)
	require.NoError(t, a.Close())
	got, err := io.ReadAll(b)
	require.NoError(t, err)
	require.True(t, bytes.Equal(body, got))
	_, err = b.Write([]byte("x"))
	require.ErrorIs(t, err, syscall.ECONNRESET)
	_, err = a.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	require.ErrorIs(t, a.Close(), net.ErrClosed)
}

// TestCloseWakes: Close ends a Read, and a Write, that wait.
func TestCloseWakes(t *testing.T) {
	a, b := pair(t, rsocket.Config{})
	ended := make(chan error, 2)
	go func() {
		_, err := a.Read(make([]byte, 1))
		ended <- err
	}()
	go func() {
		_, err := a.Write(make([]byte, 4<<20)) // b has no room for all of it
		ended <- err
	}()
	_, err := io.ReadFull(b, make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, a.Close())
	for range 2 {
		require.ErrorIs(t, <-ended, net.ErrClosed)
	}
}

// TestCloseReadWakes: a Read that waits ends with the end of the stream.
func TestCloseReadWakes(t *testing.T) {
	a, _ := pair(t, rsocket.Config{})
	ended := make(chan error, 1)
	go func() {
		_, err := a.Read(make([]byte, 1))
		ended <- err
	}()
	require.NoError(t, a.CloseRead())
	require.ErrorIs(t, <-ended, io.EOF)
}

// TestDeadlines: a deadline that passes ends a Read and a Write, whoever of them waits for completions, and neither spoils the stream.
func TestDeadlines(t *testing.T) {
	a, b := pair(t, rsocket.Config{})
	body := octets(2 << 20)
	type result struct {
		n   int
		err error
	}
	wrote := make(chan result, 1)
	read := make(chan result, 1)
	go func() {
		n, err := a.Read(make([]byte, 10))
		read <- result{n, err}
	}()
	go func() {
		n, err := a.Write(body)
		wrote <- result{n, err}
	}()
	_, err := io.ReadFull(b, make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, a.SetReadDeadline(time.Unix(1, 0)))
	r := <-read
	require.Zero(t, r.n)
	require.ErrorIs(t, r.err, os.ErrDeadlineExceeded)
	var timeout net.Error
	require.True(t, errors.As(r.err, &timeout) && timeout.Timeout())
	require.NoError(t, a.SetWriteDeadline(time.Now().Add(time.Millisecond)))
	w := <-wrote
	require.ErrorIs(t, w.err, os.ErrDeadlineExceeded)
	require.Less(t, w.n, len(body))
	require.NoError(t, a.SetDeadline(time.Time{}))
	go func() {
		_, _ = a.Write(body[w.n:])
		_ = a.CloseWrite()
	}()
	got, err := io.ReadAll(b)
	require.NoError(t, err)
	require.True(t, bytes.Equal(body[1:], got))
	_, err = b.Write([]byte("back"))
	require.NoError(t, err)
	_, err = io.ReadFull(a, make([]byte, 4))
	require.NoError(t, err)
}

func TestAddresses(t *testing.T) {
	a, b := pair(t, rsocket.Config{})
	require.Equal(t, a.LocalAddr().String(), b.RemoteAddr().String())
	require.Equal(t, b.LocalAddr().String(), a.RemoteAddr().String())
	require.Equal(t, "tcp", a.LocalAddr().Network())
}

func TestRefusals(t *testing.T) {
	for _, c := range []rsocket.Config{{RecvBuffer: -1}, {SendBuffer: 1 << 30}, {Mapped: -1}, {Mapped: 200}} {
		_, err := c.Listen("tcp", "127.0.0.1:0")
		require.ErrorContains(t, err, "rsocket:")
	}
	_, err := rsocket.Listen("udp", "127.0.0.1:0")
	require.ErrorContains(t, err, "unknown network")
	_, err = rsocket.Dial("unix", "x")
	require.ErrorContains(t, err, "unknown network")
	l, err := rsocket.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, err = l.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = rsocket.Dial("tcp", l.Addr().String())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

// TestCopyFails: ReadFrom and WriteTo, where the other side fails.
func TestCopyFails(t *testing.T) {
	a, b := pair(t, rsocket.Config{})
	n, err := io.Copy(a, io.MultiReader(strings.NewReader("abc"), failing{}))
	require.ErrorIs(t, err, errOops)
	require.EqualValues(t, 3, n)
	n, err = io.Copy(failing{}, b)
	require.ErrorIs(t, err, errOops)
	require.EqualValues(t, 1, n)
	got := make([]byte, 2)
	_, err = io.ReadFull(b, got)
	require.NoError(t, err)
	require.Equal(t, "bc", string(got))
}

var errOops = errors.New("oops")

type failing struct{}

func (failing) Read([]byte) (int, error)  { return 0, errOops }
func (failing) Write([]byte) (int, error) { return 1, errOops }

// wellEnded waits for the end of a connection that both sides have closed: neither has reset it, or sent a Terminate Message.
func wellEnded(t *testing.T, conns ...*rsocket.Conn) {
	for _, c := range conns {
		<-c.Connection().Done()
		require.NoError(t, c.Connection().Err())
	}
}

// TestCloseMeetsGrant: what the peer tells before it knows of the end, which a Read of half the ring makes it do, is no harm to the close.
func TestCloseMeetsGrant(t *testing.T) {
	const ring = 64 << 10
	for i := range 64 {
		a, b := pair(t, rsocket.Config{RecvBuffer: ring})
		talk(t, a, b)
		body := octets(ring/2 + i*512)
		_, err := a.Write(body)
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- a.Close() }()
		got, err := io.ReadAll(b)
		require.NoError(t, err)
		require.True(t, bytes.Equal(body, got))
		require.NoError(t, <-ended)
		require.NoError(t, b.Close())
		wellEnded(t, a, b)
	}
}

// talk has both sides speak, the Initiator first and last: behind that no nudge can cross a close (decision 0014).
func talk(t *testing.T, a, b net.Conn) {
	for _, c := range [][2]net.Conn{{a, b}, {b, a}, {a, b}} {
		_, err := c[0].Write([]byte("x"))
		require.NoError(t, err)
		_, err = io.ReadFull(c[1], make([]byte, 1))
		require.NoError(t, err)
	}
}

// TestCloseOfBoth: two ends that are told to the peer at a time.
func TestCloseOfBoth(t *testing.T) {
	for range 64 {
		a, b := pair(t, rsocket.Config{})
		talk(t, a, b)
		_, err := b.Write(make([]byte, 100<<10))
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- a.Close() }()
		require.NoError(t, b.Close())
		require.NoError(t, <-ended)
		wellEnded(t, a, b)
	}
}

// TestCloseBehindHalfCloses: two half-closes that have met are an end, but who closes then has to say so: the other side waits for it.
func TestCloseBehindHalfCloses(t *testing.T) {
	a, b := pair(t, rsocket.Config{CloseTimeout: time.Hour})
	talk(t, a, b)
	for _, end := range []func() error{a.CloseWrite, b.CloseWrite, a.Close, b.Close} {
		require.NoError(t, end())
	}
	wellEnded(t, a, b)
}
