package netpoll

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reader is a Member that keeps what has come, and writes what it is given.
type reader struct {
	conn  *Conn
	sock  *Socket
	got   bytes.Buffer
	count atomic.Int64 // of got
	err   atomic.Pointer[error]
	left  []byte // to write
	calls int
	most  int // octets for one Drive; 0: 1000
	heard chan struct{}
}

func (r *reader) Drive(ready Ready) (did bool) {
	r.calls++
	if ready&Out != 0 && r.sock.WantsOutput() {
		did = r.write()
	}
	b := make([]byte, max(r.most, 1000))
	n, err := r.conn.TryRead(b)
	r.got.Write(b[:n])
	r.count.Add(int64(n))
	if err != nil && !errors.Is(err, ErrAgain) {
		r.err.Store(&err)
		r.sock.Remove()
		close(r.heard)
	}
	return did || n > 0
}

// write writes what is left, and asks for room if some stays.
func (r *reader) write() bool {
	before := len(r.left)
	for len(r.left) > 0 {
		n, err := r.conn.TryWrite([][]byte{r.left}, len(r.left))
		r.left = r.left[n:]
		if err != nil {
			break
		}
	}
	r.sock.WantOutput(len(r.left) > 0)
	return len(r.left) < before
}

func (r *reader) Flush(bool) {}

// pumped is a stream of g over one end of a pipe, and the other end.
func pumped(t *testing.T, g *Group, c net.Conn) *reader {
	t.Helper()
	conn, err := Own(c, nil)
	require.NoError(t, err)
	r := &reader{conn: conn, heard: make(chan struct{})}
	r.sock, err = conn.Join(g, r)
	require.NoError(t, err)
	conn.Take()
	t.Cleanup(func() {
		r.conn.Reset()
		r.conn.Wait()
	})
	return r
}

func piped(t *testing.T, g *Group) (*reader, net.Conn) {
	t.Helper()
	a, b := net.Pipe()
	t.Cleanup(func() { _ = b.Close() })
	return pumped(t, g, a), b
}

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8)
	}
	return b
}

// TestPumpReads: what comes is driven by the background poller, pollers and waiters, in order.
func TestPumpReads(t *testing.T) {
	for name, serve := range map[string]func(*Group, *reader, int){
		"background poller": func(*Group, *reader, int) { synctest.Wait() },
		"pollers": func(g *Group, r *reader, n int) {
			for range 4 * askAfter { // the background poller has stepped aside
				g.Drive()
			}
			for r.count.Load() < int64(n) {
				g.Drive()
				time.Sleep(time.Microsecond)
			}
		},
		"waiter": func(g *Group, r *reader, n int) {
			for !g.Claim() {
			}
			defer g.Leave()
			for r.count.Load() < int64(n) && g.Sleep() {
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newTestGroup(t)
				r, peer := piped(t, g)
				r.sock.Begin()
				want := pattern(3 * pumpOctets)
				go func() {
					for at := 0; at < len(want); {
						n := min(1+at*7%9000, len(want)-at)
						_, _ = peer.Write(want[at : at+n])
						at += n
					}
				}()
				serve(g, r, len(want))
				synctest.Wait()
				require.True(t, bytes.Equal(want, r.got.Bytes()))
				require.NoError(t, peer.Close())
				synctest.Wait()
				time.Sleep(time.Second)
				<-r.heard
				require.ErrorIs(t, *r.err.Load(), io.EOF)
			})
		})
	}
}

func newTestGroup(t *testing.T) *Group {
	g := new(Group)
	t.Cleanup(g.Close)
	return g
}

// TestPumpNotDriven before Begin, and while it is paused; then it reads no more than it may hold.
func TestPumpNotDriven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, peer := piped(t, newTestGroup(t))
		sent := counted(peer, 4*pumpOctets)
		synctest.Wait()
		assert.Zero(t, r.calls)
		assert.LessOrEqual(t, sent.Load(), int64(pumpOctets+fewOctets))
		assert.Greater(t, sent.Load(), int64(pumpOctets/4))
		r.most = 10_000
		r.sock.Pause()
		r.sock.Begin()
		synctest.Wait()
		assert.Zero(t, r.calls)
		r.sock.Resume()
		synctest.Wait()
		assert.Equal(t, sent.Load(), int64(r.got.Len()), "it goes on")
		assert.GreaterOrEqual(t, r.got.Len(), 4*pumpOctets)
	})
}

// counted counts how much of total octets has been written to c.
func counted(c net.Conn, total int) *atomic.Int64 {
	n := new(atomic.Int64)
	go func() {
		b := make([]byte, 1000)
		for n.Load() < int64(total) {
			k, err := c.Write(b)
			n.Add(int64(k))
			if err != nil {
				return
			}
		}
	}()
	return n
}

// TestPumpWrites: it takes what it may hold of a stream whose peer does not read, and tells of room.
func TestPumpWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, peer := piped(t, newTestGroup(t))
		r.sock.Begin()
		want := pattern(5 * pumpOctets)
		r.left = want
		r.write()
		synctest.Wait()
		assert.Equal(t, 4*pumpOctets, len(r.left), "no more than it may hold")
		calls := r.calls
		time.Sleep(time.Hour)
		assert.Equal(t, calls, r.calls, "nobody is asked without room")
		got := make([]byte, len(want))
		_, err := io.ReadFull(peer, got)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got))
		synctest.Wait()
		require.Empty(t, r.left)
	})
}

// TestPumpPieces: the limit counts, not the pieces.
func TestPumpPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, peer := piped(t, newTestGroup(t))
		n, err := r.conn.TryWrite([][]byte{[]byte("abc"), {}, []byte("defg")}, 5)
		require.NoError(t, err)
		require.Equal(t, 5, n)
		b := make([]byte, 10)
		n, err = io.ReadFull(peer, b[:5])
		require.NoError(t, err)
		require.Equal(t, "abcde", string(b[:n]))
		go func() { _, _ = peer.Write([]byte("0123456789")) }()
		synctest.Wait()
		x, y := make([]byte, 3), make([]byte, 4)
		n, err = r.conn.TryReadPieces([][]byte{x, y})
		require.NoError(t, err)
		require.Equal(t, 7, n)
		require.Equal(t, "0123456", string(x)+string(y))
	})
}

// tcpLike is a pipe with a half-close that the other end sees, and a reset.
type tcpLike struct {
	net.Conn
	fin, rst chan struct{}
	linger   atomic.Int32
}

func (c *tcpLike) CloseWrite() error { close(c.fin); return nil }
func (c *tcpLike) SetLinger(n int) error {
	c.linger.Store(int32(n) + 1)
	return nil
}

func (c *tcpLike) Close() error {
	if c.linger.Load() == 1 {
		select {
		case <-c.rst:
		default:
			close(c.rst)
		}
	}
	return c.Conn.Close()
}

// TestPumpEnds: a half-close comes behind what was taken, as far as the peer reads it by the deadline; nothing comes behind
// a reset; whatever the peer does, nothing is left.
func TestPumpEnds(t *testing.T) {
	for _, held := range []int{0, 10, pumpOctets} { // octets taken and not read
		for _, end := range []string{"half-close", "read all, half-close", "reset", "close"} {
			synctest.Test(t, func(t *testing.T) {
				a, peer := net.Pipe()
				c := &tcpLike{Conn: a, fin: make(chan struct{}), rst: make(chan struct{})}
				r := pumped(t, newTestGroup(t), c)
				r.sock.Begin()
				r.left = pattern(held)
				r.write()
				synctest.Wait()
				began, all := time.Now(), bytes.Buffer{}
				drained := make(chan struct{})
				drain := func() {
					_, _ = io.Copy(&all, peer)
					close(drained)
				}
				switch end {
				case "half-close", "read all, half-close":
					r.conn.HandToRuntime()
					require.NoError(t, r.conn.SetDeadline(time.Now().Add(time.Minute)))
					if end != "half-close" {
						go drain()
					} else {
						close(drained)
					}
					has, err := r.conn.HalfClose()
					require.True(t, has)
					if end == "half-close" && held > 0 {
						require.Error(t, err)
						require.Equal(t, time.Minute, time.Since(began))
					} else {
						require.NoError(t, err)
						require.Zero(t, time.Since(began))
						<-c.fin
					}
					_ = r.conn.Close()
				case "reset":
					r.conn.Reset()
					<-c.rst
					go drain()
				default:
					require.NoError(t, r.conn.Close())
					go drain()
				}
				r.conn.Wait()
				<-drained
				switch {
				case end == "read all, half-close":
					require.Equal(t, held, all.Len())
				case end != "half-close":
					require.Zero(t, all.Len(), "behind a reset")
				}
				_, err := r.conn.TryWrite([][]byte{{1}}, 1)
				require.Error(t, err)
				_ = peer.Close()
			})
		}
	}
}

// TestPumpOfRuntime: after HandToRuntime reads and writes wait until a deadline, and no longer.
func TestPumpOfRuntime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, peer := piped(t, newTestGroup(t))
		r.sock.Begin()
		r.sock.Pause()
		go func() { _, _ = peer.Write([]byte("early")) }()
		synctest.Wait()
		r.conn.HandToRuntime()
		b := make([]byte, 100)
		n, err := r.conn.Read(b)
		require.NoError(t, err)
		require.Equal(t, "early", string(b[:n]))

		began := time.Now()
		require.NoError(t, r.conn.SetReadDeadline(began.Add(time.Minute)))
		_, err = r.conn.Read(b)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(began))
		_, err = r.conn.Read(b)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "still")
		require.NoError(t, r.conn.SetReadDeadline(time.Now().Add(time.Minute)))
		go func() { _, _ = peer.Write([]byte("late")) }()
		n, err = r.conn.Read(b)
		require.NoError(t, err)
		require.Equal(t, "late", string(b[:n]))

		go func() { // another deadline ends a read that sleeps
			time.Sleep(time.Second)
			_ = r.conn.SetReadDeadline(time.Unix(1, 0))
		}()
		began = time.Now()
		_, err = r.conn.Read(b)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))

		require.NoError(t, r.conn.SetWriteDeadline(time.Now().Add(time.Second)))
		n, err = r.conn.Write(make([]byte, 2*pumpOctets))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, pumpOctets, n)
	})
}

// deafConn fails writes, and never reads anything.
type deafConn struct {
	net.Conn
	fail error
}

func (c deafConn) Write([]byte) (int, error) { return 0, c.fail }

// TestPumpFailedWrite: a stream with nothing more to write hears of a write that failed, behind what the peer has said.
func TestPumpFailedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, peer := net.Pipe()
		defer peer.Close()
		r := pumped(t, newTestGroup(t), deafConn{a, syscall.ECONNRESET})
		r.sock.Begin()
		_, err := r.conn.TryWrite([][]byte{{1}}, 1)
		require.NoError(t, err)
		go func() {
			time.Sleep(hearOut / 2)
			_, _ = peer.Write([]byte("why"))
		}()
		began := time.Now()
		<-r.heard
		require.ErrorIs(t, *r.err.Load(), syscall.ECONNRESET)
		require.Equal(t, "why", r.got.String())
		require.Equal(t, hearOut, time.Since(began))
		require.True(t, r.conn.Dropped())
		_, err = r.conn.TryWrite([][]byte{{1}}, 1)
		require.ErrorIs(t, err, syscall.ECONNRESET)
	})
}

// TestPumpNotTaken: until Take the connection is its owner's.
func TestPumpNotTaken(t *testing.T) {
	for name, end := range map[string]func(*Conn){"Close": func(c *Conn) { _ = c.Close() }, "Reset": (*Conn).Reset} {
		synctest.Test(t, func(t *testing.T) {
			a, b := net.Pipe()
			c, err := Own(a, nil)
			require.NoError(t, err)
			_, err = c.Join(newTestGroup(t), new(reader))
			require.NoError(t, err)
			end(c)
			c.Wait()
			go func() { _, _ = b.Write([]byte{1}) }()
			_, err = a.Read(make([]byte, 1))
			require.NoError(t, err, name)
			_, _ = a.Close(), b.Close()
		})
	}
}

// TestPumpIdle: an idle stream has no chunk, though it was busy.
func TestPumpIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, peer := piped(t, newTestGroup(t))
		r.sock.Begin()
		go func() { _, _ = peer.Write(make([]byte, 50_001)) }()
		r.left = make([]byte, 50_001)
		r.write()
		_, err := io.ReadFull(peer, make([]byte, 50_001))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 50_001, r.got.Len())
		p := r.conn.link.(*pump)
		assert.True(t, p.in.empty())
		assert.True(t, p.out.empty())
	})
}

// TestPumpManyMembers: hundreds of streams without a descriptor are served, by whom it may be.
func TestPumpManyMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGroup(t)
		var all []*reader
		for range 300 {
			r, peer := piped(t, g)
			r.sock.Begin()
			all = append(all, r)
			go func() { _, _ = peer.Write(make([]byte, 5000)) }()
		}
		synctest.Wait()
		for _, r := range all {
			require.Equal(t, 5000, r.got.Len())
		}
	})
}

// TestPumpRouse: Rouse ends a sleep in a group without descriptors, as in others.
func TestPumpRouse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newTestGroup(t)
		r, _ := piped(t, g)
		r.sock.Begin()
		require.True(t, g.Claim())
		ctx, cancel := context.WithCancel(t.Context())
		context.AfterFunc(ctx, g.Rouse)
		go func() {
			time.Sleep(time.Minute)
			cancel()
		}()
		for ctx.Err() == nil {
			require.True(t, g.Sleep())
		}
		g.Leave()
	})
}
