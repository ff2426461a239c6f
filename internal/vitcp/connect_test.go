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

// bounded is a context that ends long after a healthy test does.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// listen is a Listener on ip, closed with the test.
func listen(t testing.TB, ip string, cfg vitcp.ListenConfig) *vitcp.Listener {
	t.Helper()
	l, err := vitcp.Listen(net.JoinHostPort(ip, "0"), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// at is the VI with a discriminator behind a Listener.
func at(l interface{ Addr() net.Addr }, d segment.Discriminator) vitcp.Address {
	return vitcp.Address{Host: netip.MustParseAddrPort(l.Addr().String()), Discriminator: d}
}

// outcome is what one end's part came to.
type outcome struct {
	agreed *vitcp.Agreed
	err    error
}

// in runs one end's part beside the test.
func in(f func() (*vitcp.Agreed, error)) <-chan outcome {
	c := make(chan outcome, 1)
	go func() {
		a, err := f()
		c <- outcome{a, err}
	}()
	return c
}

// closeAll closes what has been established.
func closeAll(outcomes ...outcome) {
	for _, o := range outcomes {
		if o.agreed != nil {
			_ = o.agreed.Conn.Close()
		}
	}
}

// accepting waits for a request to called and accepts it.
func accepting(ctx context.Context, l *vitcp.Listener, called segment.Discriminator, cfg vitcp.Config) <-chan outcome {
	return in(func() (*vitcp.Agreed, error) {
		r, err := l.Wait(ctx, vitcp.Filter{Called: called})
		if err != nil {
			return nil, err
		}
		return r.Accept(ctx, cfg)
	})
}

// patient holds requests until somebody waits for them, so that tests need not
// begin in an order.
var patient = vitcp.ListenConfig{MatchTimeout: 30 * time.Second}

const every = segment.WriteEnable | segment.ReadEnable | segment.FlowControl

func TestEstablish(t *testing.T) {
	for _, c := range []struct {
		name            string
		active, passive vitcp.Config
		want            vitcp.Agreed // of the active end
	}{
		{
			name: "zero values",
			want: vitcp.Agreed{Level: segment.Unreliable, MTU: 1<<32 - 1, ReadWindow: vitcp.DefaultReadWindow, Local: 1, Peer: 1},
		},
		{
			name:    "each end its own attributes",
			active:  vitcp.Config{Level: segment.ReliableDelivery, Enable: segment.WriteEnable | segment.FlowControl, MTU: 1 << 20, ReadWindow: 4, CRC: true, Number: 9, RxPosted: 3},
			passive: vitcp.Config{Level: segment.ReliableDelivery, Enable: segment.ReadEnable, MTU: 1 << 16, ReadWindow: 5, CRC: true, Number: 70, RxPosted: 8},
			want: vitcp.Agreed{Level: segment.ReliableDelivery, MTU: 1 << 16, ReadWindow: 4, CRC: true,
				Local: (segment.WriteEnable | segment.FlowControl).WithLevel(segment.ReliableDelivery),
				Peer:  segment.ReadEnable.WithLevel(segment.ReliableDelivery), LocalNumber: 9, PeerNumber: 70, PeerRxPosted: 8},
		},
		{
			name:    "only the active end wants CRCs; reserved bits are not set",
			active:  vitcp.Config{Level: segment.ReliableReception, Enable: 0xffff, MTU: 1, ReadWindow: 65535, CRC: true},
			passive: vitcp.Config{Level: segment.ReliableReception, Enable: every, MTU: 2, ReadWindow: 65534},
			want: vitcp.Agreed{Level: segment.ReliableReception, MTU: 1, ReadWindow: 65534,
				Local: every.WithLevel(segment.ReliableReception), Peer: every.WithLevel(segment.ReliableReception)},
		},
		{
			name:    "only the passive end wants CRCs",
			passive: vitcp.Config{CRC: true},
			want:    vitcp.Agreed{MTU: 1<<32 - 1, ReadWindow: vitcp.DefaultReadWindow, Local: 1, Peer: 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := listen(t, "127.0.0.1", patient)
			ctx := bounded(t)
			waiting := accepting(ctx, l, "bob", c.passive)
			a, err := vitcp.Dial(ctx, vitcp.Address{Discriminator: "alice"}, at(l, "bob"), c.active)
			require.NoError(t, err)
			p := <-waiting
			require.NoError(t, p.err)
			defer closeAll(outcome{a, nil}, p)

			want := c.want
			want.Active, want.Conn, want.LocalDiscriminator, want.PeerDiscriminator = true, a.Conn, "alice", "bob"
			assert.Equal(t, &want, a)
			want.Active, want.Conn, want.LocalDiscriminator, want.PeerDiscriminator = false, p.agreed.Conn, "bob", "alice"
			want.Local, want.Peer = want.Peer, want.Local
			want.LocalNumber, want.PeerNumber, want.PeerRxPosted = c.passive.Number, c.active.Number, c.active.RxPosted
			assert.Equal(t, &want, p.agreed)
			carries(t, a.Conn, p.agreed.Conn)
		})
	}
}

// carries checks that nothing is left over on a connection, and that it works.
func carries(t testing.TB, a, b net.Conn) {
	t.Helper()
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		sent := make(chan error, 1)
		go func() {
			_, err := pair[0].Write([]byte("ping"))
			sent <- err
		}()
		got := make([]byte, 4)
		_, err := io.ReadFull(pair[1], got)
		require.NoError(t, err)
		require.Equal(t, "ping", string(got))
		require.NoError(t, <-sent)
	}
}

// Both ends over a connection that the caller made, with and without octets in
// between.
func TestEstablishOverPipe(t *testing.T) {
	for _, crc := range []bool{false, true} {
		ours, theirs := net.Pipe()
		ctx := bounded(t)
		waiting := in(func() (*vitcp.Agreed, error) {
			r, err := vitcp.Await(ctx, theirs, vitcp.Filter{Called: "bob"})
			if err != nil {
				return nil, err
			}
			assert.Equal(t, segment.ReliableReception, r.Level())
			assert.Equal(t, segment.Discriminator("alice"), r.CE().Calling)
			return r.Accept(ctx, vitcp.Config{Level: segment.ReliableReception, CRC: true})
		})
		a, err := vitcp.Connect(ctx, ours, "alice", "bob", vitcp.Config{Level: segment.ReliableReception, CRC: crc})
		require.NoError(t, err)
		p := <-waiting
		require.NoError(t, p.err)
		assert.Equal(t, crc, a.CRC)
		assert.Equal(t, crc, p.agreed.CRC)
		carries(t, a.Conn, p.agreed.Conn)
		closeAll(outcome{a, nil}, p)
	}
}

func TestAwaitRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		filter vitcp.Filter
		await  func(t *testing.T, err error)
		active func(t *testing.T, err error)
	}{
		{"another discriminator", vitcp.Filter{Called: "carol"},
			func(t *testing.T, err error) { assert.ErrorIs(t, err, vitcp.ErrNoMatch) },
			func(t *testing.T, err error) { assert.ErrorIs(t, err, vitcp.ErrNoMatch) }},
		{"another caller", vitcp.Filter{Called: "bob", Calling: new(segment.Discriminator)},
			func(t *testing.T, err error) { assert.ErrorIs(t, err, vitcp.ErrNoMatch) },
			func(t *testing.T, err error) { assert.ErrorIs(t, err, vitcp.ErrNoMatch) }},
		{"another host", vitcp.Filter{Called: "bob", From: netip.MustParseAddr("127.0.0.1")}, // a pipe has no address
			func(t *testing.T, err error) { assert.ErrorIs(t, err, vitcp.ErrNoMatch) },
			func(t *testing.T, err error) { assert.ErrorIs(t, err, vitcp.ErrNoMatch) }},
		{"peer to peer", vitcp.Filter{Called: "bob", PeerToPeer: true},
			func(t *testing.T, err error) { mismatch(t, err, vitcp.ReasonPeerToPeer) },
			func(t *testing.T, err error) { rejected(t, err, vitcp.ReasonPeerToPeer) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			ctx := bounded(t)
			waiting := in(func() (*vitcp.Agreed, error) {
				_, err := vitcp.Await(ctx, theirs, c.filter)
				return nil, err
			})
			_, err := vitcp.Connect(ctx, ours, "alice", "bob", vitcp.Config{CRC: true})
			c.active(t, err)
			c.await(t, (<-waiting).err)
			closed(t, ours)
			closed(t, theirs)
		})
	}
}

// mismatch wants a *MismatchError with a reason.
func mismatch(t testing.TB, err error, want vitcp.Reason) {
	t.Helper()
	var e *vitcp.MismatchError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, want, e.Reason)
}

// rejected wants a *RejectedError with a reason.
func rejected(t testing.TB, err error, want vitcp.Reason) {
	t.Helper()
	var e *vitcp.RejectedError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, want, e.Reason)
	assert.Contains(t, e.Error(), want.String())
}

// closed wants a connection closed by this side.
func closed(t testing.TB, nc net.Conn) {
	t.Helper()
	_, err := nc.Read(make([]byte, 1))
	assert.True(t, errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed), "%v", err)
}

// A VipConnectAccept that does not fit leaves the request as it was, and tells
// the peer nothing (VI Architecture 4.1).
func TestAcceptStandsAfterMismatch(t *testing.T) {
	l := listen(t, "127.0.0.1", patient)
	ctx := bounded(t)
	dialing := in(func() (*vitcp.Agreed, error) {
		return vitcp.Dial(ctx, vitcp.Address{}, at(l, "bob"), vitcp.Config{Level: segment.ReliableDelivery})
	})
	r, err := l.Wait(ctx, vitcp.Filter{Called: "bob"})
	require.NoError(t, err)
	_, err = r.Accept(ctx, vitcp.Config{Level: segment.ReliableReception})
	mismatch(t, err, vitcp.ReasonLevel)
	_, err = r.Accept(ctx, vitcp.Config{Level: 3})
	require.ErrorIs(t, err, vitcp.ErrInvalid)
	p, err := r.Accept(ctx, vitcp.Config{Level: segment.ReliableDelivery})
	require.NoError(t, err)
	a := <-dialing
	require.NoError(t, a.err)
	closeAll(a, outcome{p, nil})

	_, err = r.Accept(ctx, vitcp.Config{})
	require.ErrorIs(t, err, vitcp.ErrAnswered)
	require.ErrorIs(t, r.Reject(ctx, 0), vitcp.ErrAnswered)
	require.NoError(t, r.Close())
}

func TestReject(t *testing.T) {
	for _, reason := range []vitcp.Reason{vitcp.ReasonConsumer, vitcp.ReasonLevel, 200} {
		for _, crc := range []bool{false, true} {
			l := listen(t, "127.0.0.1", patient)
			ctx := bounded(t)
			dialing := in(func() (*vitcp.Agreed, error) {
				return vitcp.Dial(ctx, vitcp.Address{}, at(l, "bob"), vitcp.Config{CRC: crc})
			})
			r, err := l.Wait(ctx, vitcp.Filter{Called: "bob"})
			require.NoError(t, err)
			require.NoError(t, r.Reject(ctx, reason))
			rejected(t, (<-dialing).err, reason)
			require.ErrorIs(t, r.Reject(ctx, 0), vitcp.ErrAnswered)
		}
	}
}

// A request that its holder drops is closed; the active end connects again until
// it has no more time.
func TestCloseRequest(t *testing.T) {
	l := listen(t, "127.0.0.1", patient)
	ctx, cancel := context.WithCancel(bounded(t))
	dialing := in(func() (*vitcp.Agreed, error) {
		return vitcp.Dial(ctx, vitcp.Address{}, at(l, "bob"), vitcp.Config{})
	})
	for range 2 {
		r, err := l.Wait(ctx, vitcp.Filter{Called: "bob"})
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.NoError(t, r.Close())
		_, err = r.Accept(ctx, vitcp.Config{})
		require.ErrorIs(t, err, vitcp.ErrAnswered)
	}
	cancel()
	require.ErrorIs(t, (<-dialing).err, context.Canceled)
}

func TestDialErrors(t *testing.T) {
	l := listen(t, "127.0.0.1", vitcp.ListenConfig{})
	to := at(l, "bob")
	_, err := vitcp.Dial(bounded(t), vitcp.Address{}, to, vitcp.Config{})
	assert.ErrorIs(t, err, vitcp.ErrNoMatch, "nobody waits")

	_, err = vitcp.Dial(bounded(t), vitcp.Address{}, to, vitcp.Config{Level: 3})
	assert.ErrorIs(t, err, vitcp.ErrInvalid)
	long := segment.Discriminator(make([]byte, 65))
	_, err = vitcp.Dial(bounded(t), vitcp.Address{Discriminator: long}, to, vitcp.Config{})
	assert.ErrorIs(t, err, vitcp.ErrInvalid)
	_, err = l.Wait(bounded(t), vitcp.Filter{Called: long})
	assert.ErrorIs(t, err, vitcp.ErrInvalid)
	ours, theirs := net.Pipe()
	_, err = vitcp.Connect(bounded(t), ours, "", long, vitcp.Config{})
	assert.ErrorIs(t, err, vitcp.ErrInvalid)
	closed(t, ours)
	theirs.Close()

	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = vitcp.Dial(gone, vitcp.Address{}, to, vitcp.Config{})
	assert.ErrorIs(t, err, context.Canceled)
	_, err = l.Wait(gone, vitcp.Filter{})
	assert.ErrorIs(t, err, context.Canceled)
	_, err = vitcp.Dial(gone, vitcp.Address{}, vitcp.Address{Host: netip.MustParseAddrPort("127.0.0.1:0")}, vitcp.Config{})
	assert.ErrorContains(t, err, "127.0.0.1:22089", "the default port")

	require.NoError(t, l.Close())
	_, err = l.Wait(bounded(t), vitcp.Filter{})
	assert.ErrorIs(t, err, net.ErrClosed)
	_, err = vitcp.Dial(bounded(t), vitcp.Address{}, to, vitcp.Config{})
	var op *net.OpError
	assert.ErrorAs(t, err, &op, "TCP setup fails")
	assert.NoError(t, l.Close())

	_, err = vitcp.Listen("no such host:1:2", vitcp.ListenConfig{})
	assert.Error(t, err)
}
