package vitcp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// until waits for a condition that another goroutine brings about.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, 30*time.Second, time.Millisecond, what)
}

// asking is a TCP connection that has sent a request.
func asking(t testing.TB, l *vitcp.Listener, request []byte) *net.TCPConn {
	nc, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { nc.Close() })
	_, err = nc.Write(request)
	require.NoError(t, err)
	return nc.(*net.TCPConn)
}

// A request that has come first is held for its Wait, others are left alone.
func TestHeldRequest(t *testing.T) {
	l := listen(t, "127.0.0.1", patient)
	asking(t, l, ceSegment(segment.ConnectRequest, func(c *segment.CE) { c.Called = "carol" }))
	asking(t, l, ceSegment(segment.ConnectRequest, nil))
	until(t, "both are held", func() bool { return l.Held() == 2 })
	now, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.Wait(now, vitcp.Filter{Called: "dave", PeerToPeer: true})
	require.ErrorIs(t, err, context.Canceled)
	r, err := l.Wait(now, vitcp.Filter{Called: "bob"})
	require.NoError(t, err, "it is there at once, as with a timeout of zero")
	require.NoError(t, r.Close())
	assert.Equal(t, 1, l.Held())
}

// A request that is held and fits a Wait but for the peer-to-peer bit is rejected at once
// (VT-3.3-M2), and the Wait goes on.
func TestHeldWithTheOtherBit(t *testing.T) {
	for _, peerToPeer := range []bool{false, true} {
		cfg, refused := refusals(patient)
		l := listen(t, "127.0.0.1", cfg)
		ask := func(bit bool) *net.TCPConn {
			return asking(t, l, ceSegment(segment.ConnectRequest, func(c *segment.CE) {
				if bit {
					c.Attributes |= segment.PeerToPeer
				}
			}))
		}
		var wrong []*net.TCPConn
		for range 2 {
			wrong = append(wrong, ask(!peerToPeer))
		}
		asking(t, l, ceSegment(segment.ConnectRequest, func(c *segment.CE) { c.Called = "carol" }))
		until(t, "all are held", func() bool { return l.Held() == 3 })
		ctx, waiting := bounded(t), make(chan error, 1)
		go func() {
			r, err := l.Wait(ctx, vitcp.Filter{Called: "bob", PeerToPeer: peerToPeer})
			if err == nil {
				err = r.Close()
			}
			waiting <- err
		}()
		for _, nc := range wrong {
			mismatch(t, <-refused, vitcp.ReasonPeerToPeer)
			got, err := io.ReadAll(nc)
			require.NoError(t, err)
			s, fault := segment.Parse(got, false)
			require.Equal(t, segment.FaultNone, fault)
			require.Equal(t, segment.ConnectReject, s.Type)
			require.Equal(t, vitcp.ReasonPeerToPeer, vitcp.Reason(s.Code.IS()))
		}
		assert.Equal(t, 1, l.Held(), "that of another is left alone")
		ask(peerToPeer)
		require.NoError(t, <-waiting)
	}
}

// A Wait takes a request that fits, and rejects none then.
func TestHeldTheRightOneFirst(t *testing.T) {
	l := listen(t, "127.0.0.1", patient)
	asking(t, l, ceSegment(segment.ConnectRequest, func(c *segment.CE) { c.Attributes |= segment.PeerToPeer }))
	asking(t, l, ceSegment(segment.ConnectRequest, nil))
	until(t, "both are held", func() bool { return l.Held() == 2 })
	for _, peerToPeer := range []bool{false, true} {
		r, err := l.Wait(bounded(t), vitcp.Filter{Called: "bob", PeerToPeer: peerToPeer})
		require.NoError(t, err)
		require.NoError(t, r.Close())
	}
}

// A Wait that ends at the moment when it is given a request returns that.
func TestLastMoment(t *testing.T) {
	r := vitcp.NewPending("x")
	assert.Same(t, r, vitcp.LastMoment(r))
}

// A peer that does not wait for its answer is nobody's request any more: not
// while it is held, and not in Pending Accept.
func TestImpatientPeer(t *testing.T) {
	for _, c := range []struct {
		name string
		stir func(*net.TCPConn)
		want error
	}{
		{"closes", func(nc *net.TCPConn) { nc.Close() }, io.EOF},
		{"sends", func(nc *net.TCPConn) { _, _ = nc.Write([]byte{1}) }, vitcp.ErrUnexpected},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, refused := refusals(patient)
			l := listen(t, "127.0.0.1", cfg)
			nc := asking(t, l, ceSegment(segment.ConnectRequest, nil))
			until(t, "held", func() bool { return l.Held() == 1 })
			c.stir(nc)
			require.ErrorIs(t, <-refused, c.want)
			assert.Zero(t, l.Held())

			nc = asking(t, l, ceSegment(segment.ConnectRequest, nil))
			r, err := l.Wait(bounded(t), vitcp.Filter{Called: "bob"})
			require.NoError(t, err)
			c.stir(nc)
			<-r.Stirred()
			_, err = r.Accept(bounded(t), vitcp.Config{})
			mismatch(t, err, vitcp.ReasonLevel) // that comes first: the request is the caller's
			_, err = r.Accept(bounded(t), vitcp.Config{Level: segment.ReliableDelivery})
			require.ErrorIs(t, err, c.want)
			_, err = r.Accept(bounded(t), vitcp.Config{Level: segment.ReliableDelivery})
			require.ErrorIs(t, err, vitcp.ErrAnswered)
			_, err = nc.Read(make([]byte, 1))
			require.Error(t, err, "closed")
		})
	}
}

// Requests that are held go for nobody; who holds as many as there are places
// left gets no other one held, but is served if somebody waits.
func TestCrowdOfRequests(t *testing.T) {
	cfg, refused := refusals(vitcp.ListenConfig{MaxStartups: 1, Backlog: 3, MatchTimeout: time.Minute, IncomingTimeout: time.Minute})
	l := listen(t, "127.0.0.1", cfg)
	for i := range 2 {
		asking(t, l, ceSegment(segment.ConnectRequest, nil))
		until(t, "held", func() bool { return l.Held() == i+1 })
	}
	for range 5 { // of which one has a place
		asking(t, l, nil)
	}
	for range 4 {
		require.ErrorIs(t, <-refused, vitcp.ErrCrowded)
	}
	third := asking(t, l, ceSegment(segment.ConnectRequest, nil))
	for range 2 { // the silent one, and this
		require.ErrorIs(t, <-refused, vitcp.ErrCrowded)
	}
	got, err := io.ReadAll(third)
	require.NoError(t, err)
	s, fault := segment.Parse(got, false)
	require.Equal(t, segment.FaultNone, fault)
	require.Equal(t, segment.ConnectNoMatch, s.Type)
	assert.Equal(t, 2, l.Held())

	waiting := accepting(bounded(t), l, "carol", vitcp.Config{Level: segment.ReliableDelivery})
	until(t, "it waits", func() bool { return l.Waiters("carol") == 1 })
	asking(t, l, ceSegment(segment.ConnectRequest, func(c *segment.CE) { c.Called = "carol" }))
	p := <-waiting
	require.NoError(t, p.err)
	closeAll(p)
}

// Several wait for the same: the first that came is served first.
func TestFirstComeFirstServed(t *testing.T) {
	l := listen(t, "127.0.0.1", vitcp.ListenConfig{})
	ctx := bounded(t)
	var waiting []<-chan outcome
	for i := range 3 {
		waiting = append(waiting, accepting(ctx, l, "x", vitcp.Config{Number: uint32(i)}))
		until(t, "it waits", func() bool { return l.Waiters("x") == i+1 })
	}
	for i := range 3 {
		a, err := vitcp.Dial(ctx, vitcp.Address{}, at(l, "x"), vitcp.Config{})
		require.NoError(t, err)
		assert.Equal(t, uint32(i), a.PeerNumber)
		closeAll(outcome{a, nil}, <-waiting[i])
	}
}

// pipes is a net.Listener whose connections are pipes that claim addresses.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case nc := <-p.conns:
		return nc, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p pipes) Close() error   { close(p.done); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5} }

// muteConn is one such connection; it may be unable to write.
type muteConn struct {
	net.Conn
	mute bool
}

var errMute = errors.New("mute")

func (p muteConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 6} }
func (p muteConn) Write(b []byte) (int, error) {
	if p.mute {
		return 0, errMute
	}
	return p.Conn.Write(b)
}

// If the passive peer's ConnectAccept does not get out, it waits for the active
// one to come again.
func TestPassivePeerWaitsAgain(t *testing.T) {
	nl := pipes{make(chan net.Conn), make(chan struct{})}
	l := vitcp.NewListener(nl, vitcp.ListenConfig{})
	defer l.Close()
	ctx := bounded(t)
	passive := in(func() (*vitcp.Agreed, error) {
		return vitcp.Peer(ctx, l, vitcp.Address{Discriminator: "bob"},
			vitcp.Address{Host: netip.MustParseAddrPort("10.0.0.2:6"), Discriminator: "alice"}, vitcp.Config{Level: segment.ReliableDelivery})
	})
	request := ceSegment(segment.ConnectRequest, func(c *segment.CE) { c.Attributes |= segment.PeerToPeer })
	for _, mute := range []bool{true, false} {
		until(t, "it waits", func() bool { return l.Waiters("bob") == 1 })
		ours, theirs := net.Pipe()
		t.Cleanup(func() { ours.Close() })
		nl.conns <- muteConn{theirs, mute}
		_, err := ours.Write(request)
		require.NoError(t, err)
		got, err := io.ReadAll(io.LimitReader(ours, 166))
		require.NoError(t, err)
		if mute {
			require.Empty(t, got)
			continue
		}
		s, fault := segment.Parse(got, false)
		require.Equal(t, segment.FaultNone, fault)
		require.Equal(t, segment.ConnectAccept, s.Type)
	}
	p := <-passive
	require.NoError(t, p.err)
	closeAll(p)
}
