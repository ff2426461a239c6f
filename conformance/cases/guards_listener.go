package cases

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/admission"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/vipl"
)

// guardsListener are the same of listeners: who goes for others, and how, and what is not waited for.
var guardsListener = []conformance.Case{
	apiCase("6.4.1/reset-for-others", resetForOthers, "R5042-6.4.1-M1"),
	apiCase("4.1/vi-listener-fails", viListenerFails, "VA-4.1-S1"),
	apiCase("6.4.1/places-and-sources", placesAndSources, "R5042-6.4.1-M1"),
	apiCase("6.4.1/evicted-at-work", evictedAtWork, "R5042-6.4.1-M1"),
	apiCase("7.1.2/shutdown-beside-a-silent-peer", shutdownBesideSilent, "R5044-7.1.2-M7"),
}

// resetForOthers has the oldest connection go, and be reset: for another, though a younger host has two, as two of 64
// places are no crowd; and for want of descriptors.
func resetForOthers(t *conformance.T) {
	const most = 64
	from := func(l *cm.Listener, i, held int) net.Conn {
		d := net.Dialer{}
		if runtime.GOOS == "linux" { // elsewhere the loopback has one address
			d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(fmt.Sprintf("127.0.0.%d", i))}
		}
		c := must(d.DialContext(t.Context(), "tcp", l.Addr().String()))(t)
		t.Cleanup(func() { _ = c.Close() })
		comesToHold(t, held, "admission listener: place")
		return c
	}
	wasReset := func(c net.Conn, why string) {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(patience(t))))
		_, err := c.Read(make([]byte, 1))
		if runtime.GOOS == "windows" {
			require.ErrorIs(t, err, syscall.Errno(10054), why)
			return
		}
		require.ErrorIs(t, err, syscall.ECONNRESET, why)
	}
	t.Part("for another")
	l := listens(t, cm.ListenConfig{MaxStartups: most, Timeout: hour})
	oldest := from(l, 1, 1)
	for i := 1; i < most; i++ {
		from(l, 2+i/2*2, i+1) // two of each host
	}
	from(l, 200, most)
	wasReset(oldest, "the oldest")
	require.NoError(t, l.Close())

	t.Part("for want of descriptors")
	given := &lackingListener{Listener: must(net.Listen("tcp", "127.0.0.1:0"))(t), lacks: make(chan struct{}, 1)}
	l = cm.NewListener(given, cm.ListenConfig{Timeout: hour})
	t.Cleanup(func() { _ = l.Close() })
	oldest = from(l, 1, 1)
	other := from(l, 1, 2)
	given.lacks <- struct{}{}
	from(l, 1, 1) // one of three has not been accepted, and one has gone for it
	wasReset(oldest, "the oldest")
	speaks(t, other, "other")
	nextIs(t, l, "other")
}

// lackingListener has no descriptor for the connection that comes next, when it is told so.
type lackingListener struct {
	net.Listener
	lacks chan struct{}
}

func (l *lackingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	select {
	case <-l.lacks:
		if err == nil {
			err = c.Close()
		}
		// accept(2), and that of Windows Sockets
		return nil, errors.Join(err, either(runtime.GOOS == "windows", syscall.Errno(10024), syscall.EMFILE))
	default:
		return c, err
	}
}

// shutdownBesideSilent ends the context of a Shutdown that is about to reject a Request of a peer that takes
// nothing in.
func shutdownBesideSilent(t *conformance.T) {
	nl := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	given := &pipeListener{nl, make(chan net.Conn, 1)}
	given.conns <- near
	l := cm.NewListener(given, cm.ListenConfig{Timeout: hour})
	t.Cleanup(func() { _ = l.Close() })
	require.NoError(t, second(far.Write(requestFrame(frameC, 1, nil))))
	comesToHold(t, 1, "cm listener: request in the backlog")
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Shutdown(ctx) }()
	comesToHold(t, 0, "cm listener: request in the backlog")
	stop()
	require.NoError(t, receive(t, done, "Shutdown waits on for a peer that takes nothing in"), "nothing was handed out")
}

// brokenListener fails for good when it is closed.
type brokenListener struct{ net.Listener }

var errBroken = errors.New("the listener is broken")

func (l brokenListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		err = errBroken
	}
	return c, err
}

// viListenerFails has a listener fail for good while VIs wait for connections: each wait ends with its error, and so
// does one that begins later.
func viListenerFails(t *conformance.T) {
	given := func() brokenListener { return brokenListener{must(net.Listen("tcp", "127.0.0.1:0"))(t)} }
	dies := func(l net.Listener, want error, wait func(ctx context.Context) error) {
		s := &scene{t: t, wait: wait}
		sleep := []*sleeper{s.sleeps(), s.sleeps()}
		require.NoError(t, l.Close())
		for _, w := range append(sleep, s.waits()) {
			err := w.ends("the listener has failed, and a wait goes on")
			require.ErrorIs(t, err, want)
			require.ErrorIs(t, err, errBroken)
		}
	}
	t.Part("VI/TCP")
	nl := given()
	l := vitcp.NewListener(nl, vitcp.ListenConfig{})
	t.Cleanup(func() { _ = l.Close() })
	dies(nl, errBroken, func(ctx context.Context) error { return second(l.Wait(ctx, vitcp.Filter{Called: "server"})) })

	t.Part("a NIC")
	nl = given()
	h := newVIHost(t, vipl.Config{Listener: nl})
	server := h.address("server")
	dies(nl, vipl.ErrResource, func(ctx context.Context) error { return second(h.nic.ConnectWait(ctx, server)) })
}

// addrText is an address in those words.
type addrText string

func (addrText) Network() string  { return "tcp" }
func (a addrText) String() string { return string(a) }

// connFrom is a connection that says that it comes from there.
type connFrom struct {
	net.Conn
	from net.Addr
}

func (c connFrom) RemoteAddr() net.Addr { return c.from }

// sourcesListener gives connections from where the case says.
type sourcesListener struct {
	net.Listener
	conns chan net.Conn
}

func (l *sourcesListener) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l *sourcesListener) Close() error {
	close(l.conns)
	return l.Listener.Close()
}

func newSources(t *conformance.T) *sourcesListener {
	return &sourcesListener{must(net.Listen("tcp", "127.0.0.1:0"))(t), make(chan net.Conn)}
}

// comes has a connection come from there.
func (l *sourcesListener) comes(t *conformance.T, from net.Addr) {
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	l.conns <- connFrom{near, from}
}

// placesAndSources has connections come from hosts of IPv4 and IPv6, and from nowhere: an IPv4 address is a source,
// however it is written, and so are the addresses of an IPv6 /64, and all that have no address. Closing, the listener
// tells of none of them.
func placesAndSources(t *conformance.T) {
	given, told := newSources(t), make(chan error, 16)
	l := cm.NewListener(given, cm.ListenConfig{Timeout: hour, OnStartupError: func(_ net.Addr, err error) { told <- err }})
	t.Cleanup(func() { _ = l.Close() })
	places := 0
	for _, source := range [][]string{
		{"192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1"}, {"192.0.2.2"},
		{"2001:db8::1", "2001:db8::2", "2001:db8::ffff:ffff:ffff:ffff"}, {"2001:db8:0:1::1"},
		{"fe80::1%a", "fe80::1%b", "fe80::2"},
	} {
		for i, at := range source {
			given.comes(t, addrText(netip.AddrPortFrom(netip.MustParseAddr(at), uint16(1000+i)).String()))
			places++
		}
	}
	given.comes(t, nil)
	given.comes(t, &net.UnixAddr{Name: "here", Net: "unix"})
	comesToHold(t, places+2, "admission listener: place")
	require.Equal(t, 6, t.Held()["admission listener: source"])
	require.NoError(t, l.Close())
	require.Empty(t, told, "it has closed: nothing failed")
}

// evictedAtWork has a connection go for another while it is being served: its context has ended, it finds no place in
// the backlog, and has none to give back. So has the context of each that was served.
func evictedAtWork(t *conformance.T) {
	given, failed := newSources(t), make(chan error, 4)
	served, goOn, over := make(chan *admission.Startup, 4), make(chan struct{}), make(chan error, 4)
	l := admission.New(given, admission.Config{
		Package: "there", MaxStartups: 1, Backlog: 2, Failed: func(_ net.Addr, err error) { failed <- err },
		Serve: func(s *admission.Startup) error {
			served <- s
			select {
			case <-s.Context().Done():
			case <-goOn:
			}
			err := s.Queue()
			over <- err
			return err
		},
	})
	t.Cleanup(func() { _ = l.Close() })
	from := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 7}
	given.comes(t, from)
	first := receive(t, served, "it is not served")
	given.comes(t, from)
	second := receive(t, served, "it is not served")
	require.ErrorIs(t, receive(t, over, "it is served on"), admission.ErrCrowded, "Queue")
	err := receive(t, failed, "the program is not told")
	require.ErrorIs(t, err, admission.ErrCrowded)
	require.ErrorContains(t, err, "there: connection from 192.0.2.1:7: ")
	require.ErrorIs(t, context.Cause(first.Context()), admission.ErrCrowded)
	require.False(t, first.Leave(), "it has no place any more")
	require.Equal(t, 1, l.Held())
	close(goOn)
	require.NoError(t, receive(t, over, "it is served on"), "Queue")
	eventually(t, func() bool { return second.Context().Err() != nil }, "what was served has no context")
	require.Equal(t, 1, l.Held(), "in the backlog")
	require.True(t, second.Leave())
	require.False(t, second.Leave())
	require.Zero(t, l.Held())
	require.Empty(t, failed)
}
