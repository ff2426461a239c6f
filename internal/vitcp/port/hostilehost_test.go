//go:build linux

package port

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/ownsock"
	"github.com/softrnic/softrnic/internal/test/leakcheck"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// hostile is a process that has a port, and does not keep to what is agreed on.
type hostile struct {
	t    *testing.T
	at   netip.AddrPort
	nl   *net.TCPListener
	door *net.UnixListener
}

func newHostile(t *testing.T) *hostile { return newHostileAt(t, unused(t)) }

func newHostileAt(t *testing.T, at netip.AddrPort) *hostile {
	h := &hostile{t: t, at: at}
	_, err := ownsock.Make()
	require.NoError(t, err)
	h.nl, err = listen(h.at)
	require.NoError(t, err)
	h.door, err = ownsock.Listen(doorOf(h.at))
	require.NoError(t, err)
	t.Cleanup(h.close)
	return h
}

func (h *hostile) close() { _, _ = h.door.Close(), h.nl.Close() }

// meet is the next process that comes, and has said hello.
func (h *hostile) meet() *net.UnixConn {
	h.t.Helper()
	require.NoError(h.t, h.door.SetDeadline(time.Now().Add(long)))
	c, err := h.door.AcceptUnix()
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = c.Close() })
	require.NoError(h.t, c.SetDeadline(time.Now().Add(long)))
	_, err = io.ReadFull(c, make([]byte, len(hello())))
	require.NoError(h.t, err)
	return c
}

// TestHostileHost: a process that comes to the port is not harmed by the one that has it, and is told.
func TestHostileHost(t *testing.T) {
	other, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer other.Close()
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer udp.Close()
	for name, c := range map[string]struct {
		say   []byte
		files []syscall.Conn
		want  error
		text  string
	}{
		"silence":             {want: ErrStill, text: "does not answer for 200ms: end it"},
		"garbage":             {say: []byte("HTTP/1.1 400 Bad Request\r\n"), want: ownsock.ErrTooLong},
		"a refusal":           {say: octets(msgRefusal, "no\x1b[2J way"), want: ErrInUse, text: "in use: no?[2J way"},
		"no descriptor":       {say: octets(msgWelcome, ""), want: errMessage},
		"not a welcome":       {say: octets(msgLeft, number(1)), files: []syscall.Conn{other}, want: errMessage},
		"several descriptors": {say: octets(msgWelcome, ""), files: []syscall.Conn{other, other}, want: ownsock.ErrDescriptors},
		"of UDP":              {say: octets(msgWelcome, ""), files: []syscall.Conn{udp}, want: errMessage},
		"of another port":     {say: octets(msgWelcome, ""), files: []syscall.Conn{other}, want: errMessage},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHostile(t)
			ledger := leakcheck.Open(t)
			ended := make(chan error, 1)
			go func() {
				_, err := NewPorts(200*time.Millisecond).Open(t.Context(), h.at, Config{})
				ended <- err
			}()
			met := h.meet()
			if c.files != nil {
				passed(t, met, c.say, c.files...)
			} else {
				_, err := met.Write(c.say)
				require.NoError(t, err)
			}
			err := <-ended
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.text)
			_ = met.Close()
			ledger.Settle()
		})
	}
	t.Run("a connection", func(t *testing.T) {
		h := newHostile(t)
		client, err := net.Dial("tcp", h.at.String())
		require.NoError(t, err)
		defer client.Close()
		conn, err := h.nl.AcceptTCP()
		require.NoError(t, err)
		defer conn.Close()
		ledger := leakcheck.Open(t)
		ended := make(chan error, 1)
		go func() {
			u, err := NewPorts(200*time.Millisecond).Open(t.Context(), h.at, Config{})
			if err == nil {
				u.Close()
			}
			ended <- err
		}()
		met := h.meet()
		passed(t, met, octets(msgWelcome, ""), conn)
		require.ErrorIs(t, <-ended, errMessage)
		_ = met.Close()
		ledger.Settle()
	})
	t.Run("it ends at once", func(t *testing.T) {
		h := newHostile(t)
		ended := make(chan error, 1)
		go func() {
			_, err := NewPorts(100*time.Millisecond).Open(t.Context(), h.at, Config{})
			ended <- err
			h.close()
		}()
		for {
			c, err := h.door.AcceptUnix()
			if err != nil {
				break
			}
			_ = c.Close()
		}
		require.ErrorIs(t, <-ended, errSoon)
	})
}

// TestOpenEndsWithItsContext, and not with the patience for a process that says nothing, or holds the lock; and one who
// waits longer is not harmed by that.
func TestOpenEndsWithItsContext(t *testing.T) {
	attempt := func(ctx context.Context, ps *Ports, at netip.AddrPort) <-chan error {
		ended := make(chan error, 1)
		go func() {
			u, err := ps.Open(ctx, at, Config{})
			if err == nil {
				u.Close()
			}
			ended <- err
		}()
		return ended
	}
	t.Run("silence", func(t *testing.T) {
		h, ps := newHostile(t), NewPorts(time.Hour)
		ledger := leakcheck.Open(t)
		ctx, cancel := context.WithCancel(t.Context())
		brief := attempt(ctx, ps, h.at)
		met := h.meet()
		patient := attempt(t.Context(), ps, h.at)
		require.Eventually(t, func() bool { return ps.openers(h.at) == 2 }, long, time.Millisecond)
		cancel()
		require.ErrorIs(t, <-brief, context.Canceled)
		passed(t, met, octets(msgWelcome, ""), h.nl)
		require.NoError(t, <-patient)
		_ = met.Close()
		ledger.Settle()

		ctx, cancel = context.WithCancel(t.Context())
		brief = attempt(ctx, ps, h.at)
		met = h.meet()
		cancel()
		require.ErrorIs(t, <-brief, context.Canceled)
		over(t, met)
		_ = met.Close()
		ledger.Settle()
	})
	t.Run("the lock", func(t *testing.T) {
		at := unused(t)
		unlock, err := ownsock.Lock(t.Context(), 0)
		require.NoError(t, err)
		ledger := leakcheck.Open(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, <-attempt(ctx, process(), at), context.DeadlineExceeded)
		ledger.Settle()
		unlock()
	})
}

// openers is how many have a port or wait for it.
func (ps *Ports) openers(at netip.AddrPort) int {
	s, fresh := ps.find(at)
	if fresh {
		panic("nobody has it")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uses)
}

// TestHostileAfterWelcome: what the process that accepts sends makes no sense, or it ends; another one takes its place,
// and what was waited for is waited for there.
func TestHostileAfterWelcome(t *testing.T) {
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer file.Close()
	request := func(id uint32) []byte {
		ce := segment.CE{Attributes: segment.Attributes(0).WithLevel(segment.Unreliable), MTU: 1 << 16, Called: "x"}
		return octets(msgRequest, number(id)+string(ce.Append(nil, segment.Header{Type: segment.ConnectRequest})))
	}
	for name, c := range map[string]struct {
		say   []byte
		files int // 0: none, 1: of the connection, 2: of a file, 3: both
		want  error
	}{
		"it ends":                    {},
		"garbage":                    {say: []byte("\x05\x00\x00\x02no")},
		"too long":                   {say: []byte("\x05\xff\x00\x02"), want: ownsock.ErrTooLong},
		"no descriptor":              {say: request(1)},
		"a file":                     {say: request(1), files: 2},
		"several descriptors":        {say: request(1), files: 3, want: ownsock.ErrDescriptors},
		"for nobody":                 {say: request(7), files: 1},
		"no request":                 {say: octets(msgRequest, number(1)+"nothing of VI"), files: 1},
		"half a request":             {say: octets(msgRequest, number(1)+string(request(1)[8:100])), files: 1},
		"an answer to no leave":      {say: octets(msgLeft, number(1))},
		"an answer with descriptors": {say: octets(msgLeft, number(1)), files: 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHostile(t)
			told := make(chan error, 100)
			opened := make(chan *Use, 1)
			go func() {
				u, err := process().Open(t.Context(), h.at, Config{MatchTimeout: long, Failed: func(err error) {
					select {
					case told <- err:
					default:
					}
				}})
				assert.NoError(t, err)
				opened <- u
			}()
			met := h.meet()
			passed(t, met, octets(msgWelcome, ""), h.nl)
			u := <-opened
			require.NotNil(t, u)
			defer u.Close()
			ctx := bounded(t)
			w := waiting4(ctx, u, "x")
			require.Eventually(t, func() bool { return u.s.waiting() == 1 }, long, time.Millisecond)
			_, err := io.ReadFull(met, make([]byte, len(hello())+len(waits(1, "x")))) // a hello with its timeout, and the wait
			require.NoError(t, err)

			client, err := net.Dial("tcp", h.at.String())
			require.NoError(t, err)
			defer client.Close()
			conn, err := h.nl.AcceptTCP()
			require.NoError(t, err)
			h.close() // the other one is to take its place
			switch c.files {
			case 0:
				_, err = met.Write(c.say)
				require.NoError(t, err)
			case 1:
				passed(t, met, c.say, conn)
			case 2:
				passed(t, met, c.say, file)
			case 3:
				passed(t, met, c.say, conn, file)
			}
			_ = conn.Close()
			if c.say == nil {
				_ = met.Close()
			}
			want := c.want
			if want == nil {
				want = errMessage
			}
			if c.say != nil {
				select {
				case err := <-told:
					require.ErrorIs(t, err, want)
				case <-ctx.Done():
					require.Fail(t, "nobody is told")
				}
			}
			over(t, client) // nobody keeps it
			links(t, w, dialling(ctx, h.at, "x")).carries(t)
		})
	}
}

// waiting is how many Waits of this process are under way.
func (s *shared) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waits)
}

// TestLastMoment: a Wait ends while its connection is on the way: the next one has it.
func TestLastMoment(t *testing.T) {
	h := newHostile(t)
	opened := make(chan *Use, 1)
	go func() {
		u, err := process().Open(t.Context(), h.at, Config{MatchTimeout: long})
		assert.NoError(t, err)
		opened <- u
	}()
	met := h.meet()
	passed(t, met, octets(msgWelcome, ""), h.nl)
	u := <-opened
	require.NotNil(t, u)
	defer u.Close()
	_, err := io.ReadFull(met, make([]byte, len(hello()))) // with its timeout: the session has begun
	require.NoError(t, err)
	_, err = u.Wait(past(t), vitcp.Filter{Called: "x"})
	require.ErrorContains(t, err, "context canceled")
	_, err = io.ReadFull(met, make([]byte, len(waits(1, "x"))+len(octets(msgLeave, number(1)))))
	require.NoError(t, err)

	ctx := bounded(t)
	d := dialling(ctx, h.at, "x")
	nc, err := h.nl.Accept()
	require.NoError(t, err)
	r, err := vitcp.Await(ctx, nc, vitcp.Filter{Called: "x"})
	require.NoError(t, err)
	nc, request, err := r.Release()
	require.NoError(t, err)
	_, _, err = r.Release()
	require.ErrorIs(t, err, vitcp.ErrAnswered)
	passed(t, met, octets(msgRequest, number(1)+string(request)), nc.(*net.TCPConn))
	_ = nc.Close()
	links(t, waiting4(ctx, u, "x"), d).carries(t)
}

// past is a context that has ended.
func past(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// TestFolderOfAnother: where the folder is not this user's alone the port is one process's, and the next is told why.
func TestFolderOfAnother(t *testing.T) {
	at := unused(t)
	require.NoError(t, os.Mkdir(ownsock.Folder(), 0o700))
	require.NoError(t, os.Chmod(ownsock.Folder(), 0o755))
	first := open(t, process(), at)
	connects(t, first, "x").carries(t)
	_, err := process().Open(t.Context(), at, Config{})
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, "has to be a folder of this user with mode 0700")
}

// TestLongPath: where the folder has too long a name for sockets in it, likewise.
func TestLongPath(t *testing.T) {
	at := unused(t)
	long := t.TempDir() + "/" + strings.Repeat("x", 108)
	require.NoError(t, os.Mkdir(long, 0o700))
	t.Setenv("XDG_RUNTIME_DIR", long)
	first := open(t, process(), at)
	connects(t, first, "x").carries(t)
	_, err := process().Open(t.Context(), at, Config{})
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, "it cannot be shared: dial unix")
}

// TestForeign: the port is of a program that does not share it.
func TestForeign(t *testing.T) {
	at := unused(t)
	l, err := net.Listen("tcp", at.String())
	require.NoError(t, err)
	defer l.Close()
	_, err = process().Open(t.Context(), at, Config{})
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, "does not share it: end that one, or use another address or port")
	_, err = process().Open(t.Context(), netip.MustParseAddrPort("192.0.2.1:7"), Config{})
	require.Error(t, err)
	require.False(t, errors.Is(err, ErrInUse), "%v", err)
}

// TestWide: a process that has the port at all addresses has others at one of them.
func TestWide(t *testing.T) {
	at := unused(t)
	l, err := net.Listen("tcp", ":0") // a port that is free everywhere
	require.NoError(t, err)
	port := netip.MustParseAddrPort(l.Addr().String()).Port()
	require.NoError(t, l.Close())
	one := netip.AddrPortFrom(at.Addr(), port)
	wide, err := process().Open(t.Context(), netip.AddrPortFrom(netip.IPv6Unspecified(), port), Config{MatchTimeout: long})
	require.NoError(t, err)
	ps := process()
	narrow := open(t, ps, one)
	ctx := bounded(t)
	there := dialling(ctx, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port), "x")
	held(t, wide, 1)
	mine := waiting4(ctx, narrow, "x") // it is not for this address
	links(t, mine, dialling(ctx, one, "x")).carries(t)
	links(t, waiting4(ctx, wide, "x"), there).carries(t)
	wide.Close() // the other one has all addresses now
	same := open(t, ps, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port))
	links(t, waiting4(ctx, same, "y"), dialling(ctx, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port), "y")).carries(t)
}

// TestTooManyWaits of a process at another one.
func TestTooManyWaits(t *testing.T) {
	at := unused(t)
	open(t, process(), at)
	u := open(t, process(), at)
	ctx := bounded(t)
	for range maxWaits {
		waiting4(ctx, u, "x")
	}
	require.Eventually(t, func() bool { return u.s.waiting() == maxWaits }, long, time.Millisecond)
	_, err := u.Wait(ctx, vitcp.Filter{})
	require.ErrorContains(t, err, "1024 waits are under way")
}
