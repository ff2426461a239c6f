package cases

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/port"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
	"github.com/softrnic/softrnic/vipl"
)

// guardsVIPort are of a port that several processes share, which a case plays in one.
var guardsVIPort = []conformance.Case{
	apiCase("2.2.2.2.1/vi-port-of-processes", viPortOfProcesses, "VA-4.1-S1"),
	apiCase("2.2.2.2.1/vi-request-passed-on", viRequestPassedOn, "VA-4.1-S1"),
}

// viPort is a port at which processes wait.
type viPort struct {
	t  *conformance.T
	at netip.AddrPort
}

// opens is a Use of a process that has the port.
func (v *viPort) opens(in *port.Ports, within time.Duration) *port.Use {
	u := must(in.Open(v.t.Context(), v.at, port.Config{MatchTimeout: within}))(v.t, "Open")
	v.t.Cleanup(u.Close)
	return u
}

// process is a process that has the port, when the one that accepts knows of its time.
func (v *viPort) process(within time.Duration) *port.Use {
	u := v.opens(port.NewPorts(patience(v.t)), within)
	v.waitEnds(u)
	return u
}

// waitEnds begins to wait at a process that does not accept, and gives up.
func (v *viPort) waitEnds(u *port.Use) {
	ctx, cancel := context.WithCancel(v.t.Context())
	w := viWaitsAt(ctx, u, vitcp.Filter{Called: "server"})
	comesToHold(v.t, 2, "vitcp listener: waiter") // there and at the one that accepts
	cancel()
	require.ErrorIs(v.t, receive(v.t, w, "it waits on").err, context.Canceled)
	comesToHold(v.t, 0, "vitcp listener: waiter")
}

// viFound is what a Wait has come to.
type viFound struct {
	r   *vitcp.Pending
	err error
}

func viWaitsAt(ctx context.Context, u *port.Use, f vitcp.Filter) <-chan viFound {
	found := make(chan viFound, 1)
	go func() {
		r, err := u.Wait(ctx, f)
		found <- viFound{r, err}
	}()
	return found
}

// asks is a peer that asks for a discriminator.
func (v *viPort) asks(called string, change func(*viCE)) (*viPeer, viCE) {
	var d net.Dialer
	p := newVIPeer(v.t, must(d.DialContext(v.t.Context(), "tcp", v.at.String()))(v.t))
	ce := viPeerCE(vipl.ServiceReliableDelivery, called)
	ce.options = viCRCOption // whose octets are passed on too
	if change != nil {
		change(&ce)
	}
	p.asks(ce)
	return p, ce
}

// meets has the Wait find what the peer has asked, and octets pass both ways.
func (v *viPort) meets(p *viPeer, ce viCE, found <-chan viFound) {
	f := receive(v.t, found, "the request is not found")
	require.NoError(v.t, f.err, "Wait")
	got := f.r.CE()
	require.Equal(v.t, []any{ce.calling, ce.called, ce.mtu}, []any{string(got.Calling), string(got.Called), got.MTU})
	a := must(f.r.Accept(v.t.Context(), vitcp.Config{Level: segment.ReliableDelivery, CRC: true}))(v.t)
	defer a.Conn.Close()
	p.accepted(ce)
	require.True(v.t, p.crc)
	p.send("through")
	b := make([]byte, viHeaderLen+len("through")+4)
	require.NoError(v.t, a.Conn.SetReadDeadline(time.Now().Add(patience(v.t))))
	require.NoError(v.t, second(a.Conn.Read(b)))
	require.Equal(v.t, "through", string(b[viHeaderLen:viHeaderLen+7]))
	require.NoError(v.t, a.Conn.Close())
	p.over()
}

// viPortOfProcesses has processes come to a port and go, the one that accepts too: each finds what it waits for.
func viPortOfProcesses(t *conformance.T) {
	l, host := takeVIPort(t)
	v := &viPort{t, netip.AddrPortFrom(must(netip.ParseAddr(host))(t), vitcp.DefaultPort)}
	inUse := func() { // somebody's socket for all addresses may have been left behind, and he might come back
		require.ErrorIs(t, second(port.NewPorts(20*time.Millisecond).Open(t.Context(), v.at, port.Config{})), port.ErrInUse)
	}
	inUse()
	require.NoError(t, l.Close())
	first := v.opens(port.NewPorts(patience(t)), -1)
	if runtime.GOOS == "windows" { // it cannot pass sockets on
		inUse()
		return
	}
	ps := port.NewPorts(patience(t))
	guest, another := v.opens(ps, hour), v.opens(ps, -1)
	v.waitEnds(another)
	leaves := viWaitsAt(t.Context(), another, vitcp.Filter{Called: "guest"})
	comesToHold(t, 2, "vitcp listener: waiter")
	another.Close() // and the process stays
	require.ErrorIs(t, receive(t, leaves, "it waits on").err, net.ErrClosed)
	comesToHold(t, 0, "vitcp listener: waiter")
	p, ce := v.asks("guest", nil)
	comesToHold(t, 1, "vitcp listener: request in Matching")
	v.meets(p, ce, viWaitsAt(t.Context(), guest, vitcp.Filter{Called: "guest"}))
	guest.Close()
	eventually(t, func() bool {
		p, _ := v.asks("nobody", nil)
		defer p.conn.Close()
		_ = p.conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		b := make([]byte, 2)
		_, err := io.ReadFull(p.conn, b)
		return err == nil && b[1]&0x1F == viNoMatch
	}, "the one that had time has gone")

	others := []*port.Use{v.process(hour), v.process(hour)}
	all := append([]*port.Use{first}, others...)

	t.Part("each")
	for round := range 3 {
		for i, u := range all {
			called := fmt.Sprint(round, " ", i)
			p, ce := v.asks(called, nil) // it may come before, as they have time
			v.meets(p, ce, viWaitsAt(t.Context(), u, vitcp.Filter{Called: segment.Discriminator(called)}))
		}
	}

	t.Part("waits that end")
	for i := range 8 {
		v.waitEnds(others[0])
		p, ce := v.asks("server", nil)
		v.meets(p, ce, viWaitsAt(t.Context(), all[i%3], vitcp.Filter{Called: "server"}))
	}

	t.Part("filters")
	filter := func(change func(*vitcp.Filter)) vitcp.Filter {
		f := vitcp.Filter{Called: "server"}
		change(&f)
		return f
	}
	one, two := segment.Discriminator("one"), segment.Discriminator("two")
	nowhere := netip.MustParseAddr("192.0.2.1")
	ctx, cancel := context.WithCancel(t.Context())
	none := viWaitsAt(ctx, others[0], filter(func(f *vitcp.Filter) { f.From = nowhere }))
	comesToHold(t, 2, "vitcp listener: waiter")
	waits := []<-chan viFound{
		viWaitsAt(t.Context(), others[1], filter(func(f *vitcp.Filter) { f.Calling = &one })),
		viWaitsAt(t.Context(), others[0], filter(func(f *vitcp.Filter) { f.Calling = &two })),
		viWaitsAt(t.Context(), others[1], filter(func(f *vitcp.Filter) { f.PeerToPeer = true })),
	}
	comesToHold(t, 8, "vitcp listener: waiter")
	for i, change := range []func(*viCE){
		func(c *viCE) { c.calling = "one" },
		func(c *viCE) { c.calling = "two" },
		func(c *viCE) { c.attributes |= viPeerToPeer },
	} {
		p, ce := v.asks("server", change)
		v.meets(p, ce, waits[i])
	}
	cancel()
	require.ErrorIs(t, receive(t, none, "it waits on").err, context.Canceled)

	t.Part("the one that accepts goes")
	ended, end := context.WithCancel(t.Context())
	end()
	for range 1100 { // more than may be under way
		eventually(t, func() bool {
			return errors.Is(second(others[0].Wait(ended, vitcp.Filter{Called: "server"})), context.Canceled)
		}, "a wait that is over leaves its place")
	}
	for i := range others {
		mine := viWaitsAt(t.Context(), all[i], vitcp.Filter{Called: "mine"})
		var waits []<-chan viFound
		called := func(j int) string { return fmt.Sprint("next ", i, " ", j) }
		for j, u := range others[i:] {
			waits = append(waits, viWaitsAt(t.Context(), u, vitcp.Filter{Called: segment.Discriminator(called(j))}))
		}
		comesToHold(t, len(waits)+1+either(i == 0, 2, 1), "vitcp listener: waiter")
		all[i].Close()
		require.ErrorIs(t, receive(t, mine, "it waits on").err, net.ErrClosed)
		for j, w := range waits {
			p, ce := v.asks(called(j), nil)
			v.meets(p, ce, w)
		}
	}
	last := others[1]
	last.Close()
	require.ErrorIs(t, second(last.Wait(t.Context(), vitcp.Filter{})), net.ErrClosed)
	comesToHold(t, 0, "vitcp listener")
	must(net.Listen("tcp", v.at.String()))(t, "the port is free").Close()
}

// viRequestPassedOn has one listener find requests, and another one of them: they are what they were, and nothing of
// them stays.
func viRequestPassedOn(t *conformance.T) {
	from := must(vitcp.Listen("127.0.0.1:0", vitcp.ListenConfig{MatchTimeout: hour}))(t)
	refused := make(chan error, 8)
	to := vitcp.New(vitcp.ListenConfig{MatchTimeout: hour, OnRefused: func(_ net.Addr, err error) { refused <- err }})
	t.Cleanup(func() { _, _ = from.Close(), to.Close() })
	require.Nil(t, to.Addr())
	v := &viPort{t, must(netip.ParseAddrPort(from.Addr().String()))(t)}
	f := vitcp.Filter{Called: "server"}
	finds := func(ctx context.Context, l *vitcp.Listener) <-chan viFound {
		found := make(chan viFound, 1)
		go func() {
			r, err := l.Wait(ctx, f)
			found <- viFound{r, err}
		}()
		return found
	}
	passes := func(waiter *vitcp.Waiter) (*viPeer, viCE) {
		p, ce := v.asks("server", nil)
		r := receive(t, finds(t.Context(), from), "the request is not found")
		require.NoError(t, r.err)
		nc, request, err := r.r.Release()
		require.NoError(t, err)
		require.ErrorIs(t, second(r.r.Accept(t.Context(), vitcp.Config{})), vitcp.ErrAnswered)
		require.NoError(t, to.Offer(nc, request, waiter))
		return p, ce
	}
	t.Part("to one that waits")
	w := finds(t.Context(), to)
	p, ce := passes(nil)
	v.meets(p, ce, w)

	t.Part("to a certain one")
	waiters := []*vitcp.Waiter{must(to.Begin(f))(t), must(to.Begin(f))(t)}
	for _, i := range []int{1, 0} {
		p, ce = passes(waiters[i])
		found := make(chan viFound, 1)
		go func() {
			r, err := waiters[i].Wait(t.Context())
			found <- viFound{r, err}
		}()
		v.meets(p, ce, found)
	}

	t.Part("to one that comes")
	p, ce = passes(nil)
	eventually(t, func() bool { return to.Held() == 1 }, "it is held")
	v.meets(p, ce, finds(t.Context(), to))

	t.Part("that has gone")
	p, _ = passes(nil)
	require.NoError(t, p.conn.Close())
	require.Error(t, receive(t, refused, "nothing is told of it"))
	require.Zero(t, to.Held())

	t.Part("what is none")
	whole := (&viSegment{kind: viRequest, flags: viLast, ce: viPeerCE(0, "server")}).octets(false)
	other := (&viSegment{kind: viNOP, flags: viLast}).octets(false)
	for request := range inTurn(t, "%x", [][]byte{nil, whole[:10], whole[:len(whole)-2], append(whole[:len(whole):len(whole)], 0), other}) {
		near, far := loopbackPair(t)
		require.Error(t, to.Offer(near, request, nil))
		newVIPeer(t, far).over()
	}

	t.Part("to one that is closed")
	require.NoError(t, to.Close())
	near, far := loopbackPair(t)
	require.ErrorIs(t, to.Offer(near, whole, nil), net.ErrClosed)
	newVIPeer(t, far).over()
	near, _ = loopbackPair(t)
	_ = near.Close()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	require.ErrorIs(t, to.Serve(l), net.ErrClosed)
	require.Error(t, second(l.Accept()), "it owned it")
}
