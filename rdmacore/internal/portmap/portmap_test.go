//go:build linux && (amd64 || arm64)

package portmap

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/test/otheruser"
)

// host is a network's worth of processes: spaces whose mappers share a port of their own.
type host struct {
	t    *testing.T
	port uint16

	mu   sync.Mutex
	said []error
}

// newHost finds a UDP port for mappers, below those that the system gives to sockets that name none: between one mapper's end
// and the next one's beginning no such socket takes it.
func newHost(t *testing.T) *host {
	for {
		port := 20000 + rand.N[uint16](10000)
		u, err := net.ListenUDP("udp4", &net.UDPAddr{Port: int(port)})
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		require.NoError(t, err)
		require.NoError(t, u.Close())
		return &host{t: t, port: port}
	}
}

// process is a space of another process.
func (h *host) process() *Space {
	s := New(func(int) {}, func(err error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.said = append(h.said, err)
	})
	s.port = h.port
	return s
}

func (h *host) reports() []error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said
}

// report has a failure print what was said by then.
type report struct{ *host }

func (r report) String() string { return fmt.Sprint(r.reports()) }

// free is an address with a TCP port that nobody has now, which a listener keeps.
func free(t *testing.T, ip string) netip.AddrPort {
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func take(t *testing.T, s *Space, at netip.AddrPort, tcp uint16) *Claim {
	c, err := s.Take(at, true)
	require.NoError(t, err)
	c.Serve(tcp)
	var once sync.Once
	t.Cleanup(func() {
		once.Do(func() {
			select {
			case <-c.done:
			default:
				c.Close()
			}
		})
	})
	return c
}

func ap(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// TestLocal: who connects on the host finds the port, at each address that the claim covers, until it is closed.
func TestLocal(t *testing.T) {
	h := newHost(t)
	server, client := h.process(), h.process()
	at := free(t, "127.0.0.1")
	assert.Equal(t, at, client.Find(t.Context(), at, at), "nobody has claimed it")
	c := take(t, server, at, 999)
	assert.Equal(t, netip.AddrPortFrom(at.Addr(), 999), client.Find(t.Context(), at, at))
	other := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), at.Port())
	assert.Equal(t, other, client.Find(t.Context(), at, other), "another address")
	c.Close()
	assert.Equal(t, at, client.Find(t.Context(), at, at))

	for _, all := range []string{"0.0.0.0", "::"} {
		c = take(t, server, netip.AddrPortFrom(netip.MustParseAddr(all), at.Port()), 998)
		assert.EqualValues(t, 998, client.Find(t.Context(), at, other).Port(), all)
		c.Close()
	}
}

// TestTakenOnce: a number at an address is one claim's, overlaps counted.
func TestTakenOnce(t *testing.T) {
	h := newHost(t)
	for _, row := range []struct {
		first, second string
		dual, free    bool
	}{
		{first: "127.0.0.1", second: "127.0.0.1"},
		{first: "127.0.0.1", second: "127.0.0.2", free: true},
		{first: "127.0.0.1", second: "0.0.0.0"},
		{first: "0.0.0.0", second: "127.0.0.1"},
		{first: "127.0.0.1", second: "::", dual: true},
		{first: "127.0.0.1", second: "::", free: true},
		{first: "::", second: "0.0.0.0", dual: true},
		{first: "::1", second: "::"},
		{first: "::1", second: "::", dual: true},
		{first: "::1", second: "0.0.0.0", free: true},
		{first: "::ffff:127.0.0.1", second: "127.0.0.1"},
	} {
		t.Run(row.first+" then "+row.second, func(t *testing.T) {
			port := free(t, "127.0.0.1").Port()
			c, err := h.process().Take(netip.AddrPortFrom(netip.MustParseAddr(row.first), port), row.dual)
			require.NoError(t, err)
			defer c.Close()
			again, err := h.process().Take(netip.AddrPortFrom(netip.MustParseAddr(row.second), port), row.dual)
			if row.free {
				require.NoError(t, err)
				again.Close()
				return
			}
			require.ErrorIs(t, err, syscall.EADDRINUSE)
		})
	}
}

// TestTakenWhileAnswered: what a claim has accepted bears its name, and takes no number.
func TestTakenWhileAnswered(t *testing.T) {
	s := newHost(t).process()
	at := free(t, "127.0.0.1")
	l, err := s.listen(nameOf(at.Addr().String(), at.Port()))
	require.NoError(t, err)
	c, err := s.dial(t.Context(), nameOf(at.Addr().String(), at.Port()))
	require.NoError(t, err)
	defer c.Close()
	accepted, err := l.Accept()
	require.NoError(t, err)
	defer accepted.Close()
	_, err = s.Take(at, false)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.NoError(t, l.Close())
	take(t, s, at, 1)
}

// TestPrivilegedPort: of a port below 1024 only root, and the user himself, say where it is.
func TestPrivilegedPort(t *testing.T) {
	s := newHost(t).process()
	at := ap("127.0.0.77:1023")
	c := take(t, s, at, 999)
	assert.EqualValues(t, 999, s.Find(t.Context(), at, at).Port())
	c.Close()
	var stranger *Claim
	otheruser.Do(t, false, func() (err error) {
		stranger, err = s.Take(at, false)
		return err
	})
	require.NotNil(t, stranger)
	defer stranger.Close()
	stranger.Serve(998)
	assert.Equal(t, at, s.Find(t.Context(), at, at))
}

// remote asks the host's mapper as another host does, from an address that is not the claim's.
func remote(t *testing.T, h *host, dst netip.AddrPort) (uint16, error) {
	return h.process().remote(t.Context(), ap("127.0.0.9:777"), dst)
}

// TestRemote: one claim of the host answers for all; when it ends, the next does.
func TestRemote(t *testing.T) {
	h := newHost(t)
	a, b := free(t, "127.0.0.1"), free(t, "127.0.0.3")
	_, err := remote(t, h, a)
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "no mapper")
	first := take(t, h.process(), a, 1001)
	answers := func(dst netip.AddrPort, want uint16) {
		t.Helper()
		require.Eventually(t, func() bool {
			tcp, err := remote(t, h, dst)
			return err == nil && tcp == want
		}, time.Minute, time.Millisecond, "port %d is not %d; its mapper said: %v", dst.Port(), want, report{h})
	}
	answers(a, 1001)
	second := take(t, h.process(), b, 1002)
	answers(b, 1002)
	first.Close()
	answers(b, 1002)
	answers(a, 0)
	second.Close()
	require.Eventually(t, func() bool {
		_, err := remote(t, h, b)
		return err != nil
	}, time.Minute, time.Millisecond)
	assert.Empty(t, h.reports())
}

// TestMapperTaken: where iwpmd, or another program, has the mapper's port, the owner says so, and has it when that ends.
func TestMapperTaken(t *testing.T) {
	h := newHost(t)
	u, err := net.ListenUDP("udp4", &net.UDPAddr{Port: int(h.port)})
	require.NoError(t, err)
	defer u.Close()
	at := free(t, "127.0.0.1")
	take(t, h.process(), at, 1)
	require.Eventually(t, func() bool { return len(h.reports()) == 1 }, time.Minute, time.Millisecond)
	require.ErrorIs(t, h.reports()[0], syscall.EADDRINUSE)
	require.ErrorContains(t, h.reports()[0], "programs on other hosts do not find the port")
	require.NoError(t, u.Close())
	require.Eventually(t, func() bool {
		tcp, err := remote(t, h, at)
		return err == nil && tcp == 1
	}, time.Minute, time.Millisecond)
	assert.Len(t, h.reports(), 1, "said once")
}

// TestMapperOfNobody: a stranger that has the mapper's name, and is none, holds no claim up, nor a processor.
func TestMapperOfNobody(t *testing.T) {
	h := newHost(t)
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(s)
	require.NoError(t, unix.Bind(s, &unix.SockaddrUnix{Name: "@softrnic-portmapper-" + strconv.Itoa(int(h.port))})) // and does not listen
	p := h.process()
	var dialed atomic.Int64
	p.own = func(int) { dialed.Add(1) }
	c := take(t, p, free(t, "127.0.0.1"), 1)
	begun := time.Now()
	require.Eventually(t, func() bool { return dialed.Load() > 8 }, time.Minute, time.Millisecond)
	assert.Greater(t, time.Since(begun), leastRest, "it is asked after pauses")
	c.Close()
}

// TestSilentMapper: a host that drops requests costs a wait once in a while, and is asked several times in it.
func TestSilentMapper(t *testing.T) {
	h := newHost(t)
	u, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 5), Port: int(h.port)})
	require.NoError(t, err)
	defer u.Close()
	s := h.process()
	for range 5 {
		assert.Zero(t, s.elsewhere(t.Context(), ap("127.0.0.9:777"), ap("127.0.0.5:20049")))
	}
	_, err = u.WriteToUDPAddrPort([]byte("the last"), u.LocalAddr().(*net.UDPAddr).AddrPort()) // behind all requests
	require.NoError(t, err)
	asked := 0
	for b := make([]byte, 100); ; asked++ {
		n, _, err := u.ReadFromUDPAddrPort(b)
		require.NoError(t, err)
		if string(b[:n]) == "the last" {
			break
		}
		m, err := decode(b[:n])
		require.NoError(t, err)
		assert.Equal(t, message{kindRequest, m.handle, ap("127.0.0.5:20049"), ap("127.0.0.9:777")}, m)
	}
	assert.Equal(t, tries, asked, "it was asked once, of five times")
}

// TestHostile: a claim whose owner is stopped, and one who sends the mapper nonsense, hold up nobody.
func TestHostile(t *testing.T) {
	h := newHost(t)
	at := free(t, "127.0.0.1")
	stopped, err := h.process().listen(nameOf(at.Addr().String(), at.Port()))
	require.NoError(t, err)
	defer stopped.Close()
	assert.Equal(t, at, h.process().Find(t.Context(), at, at))
	take(t, h.process(), free(t, "127.0.0.1"), 7)
	u, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(h.port)})
	require.NoError(t, err)
	defer u.Close()
	good := message{kind: kindAck, accepting: at, connecting: at}.append(nil)
	for n := range good {
		_, _ = u.Write(good[:n])
	}
	_, _ = u.Write(good)
	require.Eventually(t, func() bool {
		tcp, err := remote(t, h, at)
		return tcp == 0 && err == nil
	}, time.Minute, time.Millisecond, "it answers still; it said: %v", report{h})
}

// TestMessage holds the octets of iwpmd's form.
func TestMessage(t *testing.T) {
	m := message{kindRequest, 0x0102030405060708, ap("10.0.0.2:6379"), ap("10.0.0.1:50000")}
	b := m.append(nil)
	want := make([]byte, 64)
	copy(want, []byte{0x04, 0, 0xc3, 0x50, 0x18, 0xeb, 0xc3, 0x50, 1, 2, 3, 4, 5, 6, 7, 8, 10, 0, 0, 1})
	copy(want[32:], []byte{10, 0, 0, 2})
	copy(want[48:], []byte{10, 0, 0, 1})
	assert.Equal(t, want, b)
	m.kind = kindAccept
	assert.Equal(t, byte(0x14), m.append(nil)[0])
	assert.Len(t, m.append(nil), 48)
}

func FuzzDecode(f *testing.F) {
	f.Add(message{kindRequest, 1, ap("10.0.0.2:6379"), ap("10.0.0.1:50000")}.append(nil))
	f.Add(message{kindReject, 1, ap("[::1]:6379"), ap("[::2]:50000")}.append(nil))
	f.Fuzz(func(t *testing.T, p []byte) {
		m, err := decode(p)
		if err != nil {
			return
		}
		again, err := decode(m.append(nil))
		require.NoError(t, err)
		assert.Equal(t, m, again)
	})
}
