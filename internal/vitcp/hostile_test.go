package vitcp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// ceSegment is a segment of establishment with changes.
func ceSegment(t segment.Type, change func(*segment.CE)) []byte {
	ce := segment.CE{
		Attributes: segment.WriteEnable.WithLevel(segment.ReliableDelivery), MTU: 1 << 16, ReadWindow: 1,
		Calling: "alice", Called: "bob",
	}
	if change != nil {
		change(&ce)
	}
	return ce.Append(nil, segment.Header{Type: t, Number: 77})
}

// spoiled is b with one octet changed.
func spoiled(b []byte, at int) []byte {
	b[at] ^= 0x40
	return b
}

// short is a segment header with number 1, and what is put behind it.
func short(typ byte, behind ...byte) []byte {
	h := segment.Header{Type: segment.Type(typ & 0x1f), Flags: segment.Flags(typ &^ 0x1f), Number: 1}
	h.Length = uint16(segment.SegmentHeader + len(behind))
	return append(h.Append(nil), behind...)
}

func withCRC(ce *segment.CE) { ce.Options |= segment.OptionCRC }

// What a broken active end sends costs it its connection, and nobody else
// anything.
func TestHostileActive(t *testing.T) {
	is := func(want error) func(*testing.T, error) {
		return func(t *testing.T, err error) { assert.ErrorIs(t, err, want) }
	}
	misfit := func(want vitcp.Reason) func(*testing.T, error) {
		return func(t *testing.T, err error) { mismatch(t, err, want) }
	}
	for _, c := range []struct {
		name   string
		send   []byte
		want   func(*testing.T, error)
		answer segment.Type // if not Send
		reason uint8
	}{
		{name: "other protocol", send: []byte("GET / HTTP/1.1\r\nHost: here\r\n\r\n"), want: is(segment.FaultVersion)},
		{name: "length 0", send: append([]byte{1, 0x85, 0, 0}, make([]byte, 20)...), want: is(segment.FaultFrame)},
		{name: "Send", send: short(0x80), want: is(vitcp.ErrUnexpected)},
		{name: "NOP", send: short(0x84), want: is(vitcp.ErrUnexpected)},
		{name: "unknown type", send: short(0x9f), want: is(vitcp.ErrUnexpected)},
		{name: "ConnectAccept", send: ceSegment(segment.ConnectAccept, nil), want: is(vitcp.ErrUnexpected)},
		{name: "ConnectReject", send: short(0x87), want: is(vitcp.ErrUnexpected)},
		{name: "ConnectNoMatch", send: short(0x88), want: is(vitcp.ErrUnexpected)},
		{name: "request without CE header", send: short(0x85), want: is(segment.FaultLength)},
		{name: "bad CRC", send: spoiled(ceSegment(segment.ConnectRequest, withCRC), 40), want: is(segment.FaultCRC)},
		{name: "discriminator", send: spoiled(ceSegment(segment.ConnectRequest, nil), 27), want: is(segment.FaultDiscriminator)},
		{name: "option", send: spoiled(ceSegment(segment.ConnectRequest, nil), 164), want: is(segment.FaultOption)},
		{name: "no level", send: ceSegment(segment.ConnectRequest, func(c *segment.CE) { c.Attributes = every }),
			want: misfit(vitcp.ReasonLevel), answer: segment.ConnectReject, reason: 1},
		{name: "two levels", send: ceSegment(segment.ConnectRequest, func(c *segment.CE) { c.Attributes |= 5 }),
			want: misfit(vitcp.ReasonLevel), answer: segment.ConnectReject, reason: 1},
		{name: "MTU 0", send: ceSegment(segment.ConnectRequest, func(c *segment.CE) { c.MTU = 0 }),
			want: misfit(vitcp.ReasonMTU), answer: segment.ConnectReject, reason: 3},
		{name: "peer to peer", send: ceSegment(segment.ConnectRequest, func(c *segment.CE) { c.Attributes |= segment.PeerToPeer }),
			want: misfit(vitcp.ReasonPeerToPeer), answer: segment.ConnectReject, reason: 2},
		{name: "nobody", send: ceSegment(segment.ConnectRequest, func(c *segment.CE) { c.Called = "carol"; withCRC(c) }),
			want: is(vitcp.ErrNoMatch), answer: segment.ConnectNoMatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, refused := refusals(vitcp.ListenConfig{})
			l := listen(t, "127.0.0.1", cfg)
			ctx := bounded(t)
			waiting := accepting(ctx, l, "bob", vitcp.Config{Level: segment.ReliableDelivery})
			reachable(t, l, refused)

			nc, err := net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			defer nc.Close()
			_, err = nc.Write(c.send)
			require.NoError(t, err)
			c.want(t, <-refused)
			got, err := io.ReadAll(nc)
			if c.answer == segment.Send {
				require.Empty(t, got, "no answer to what is not understood (%v)", err)
			} else {
				require.NoError(t, err)
				s, fault := segment.Parse(got, false)
				require.Equal(t, segment.FaultNone, fault)
				assert.Equal(t, c.answer, s.Type)
				assert.Equal(t, uint32(77), s.Ack, "the message it is about")
				assert.Equal(t, c.reason, s.Code.IS())
			}

			a, err := vitcp.Dial(ctx, vitcp.Address{}, at(l, "bob"), vitcp.Config{Level: segment.ReliableDelivery})
			require.NoError(t, err, "the waiter still waits")
			p := <-waiting
			require.NoError(t, p.err)
			closeAll(outcome{a, nil}, p)
		})
	}
}

// reachable waits until somebody waits for bob at l: until then a request for
// bob with the wrong peer-to-peer bit finds no match.
func reachable(t testing.TB, l *vitcp.Listener, refused <-chan error) {
	t.Helper()
	wrongBit := ceSegment(segment.ConnectRequest, func(c *segment.CE) { c.Attributes |= segment.PeerToPeer })
	for {
		nc, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		_, err = nc.Write(wrongBit)
		require.NoError(t, err)
		_, _ = io.ReadAll(nc)
		nc.Close()
		if err := <-refused; assert.Error(t, err) && !errors.Is(err, vitcp.ErrNoMatch) {
			mismatch(t, err, vitcp.ReasonPeerToPeer)
			return
		}
	}
}

// fakePassive answers each TCP connection with the next script, and closes it.
func fakePassive(t testing.TB, scripts ...func(nc net.Conn, request segment.Segment)) *net.TCPListener {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for _, script := range scripts {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			b := make([]byte, 24+140+2+8)
			n, _ := io.ReadAtLeast(nc, b, 24+140+2)
			s, fault := segment.Parse(b[:n], false)
			assert.Equal(t, segment.FaultNone, fault)
			script(nc, s)
			nc.Close()
		}
	}()
	return l
}

// sendsOctets is a script that sends octets and waits for the peer's close.
func sendsOctets(b []byte) func(net.Conn, segment.Segment) {
	return func(nc net.Conn, _ segment.Segment) {
		_, _ = nc.Write(b)
		_, _ = io.Copy(io.Discard, nc)
	}
}

// hangsUp is a script that sends octets and closes.
func hangsUp(b []byte) func(net.Conn, segment.Segment) {
	return func(nc net.Conn, _ segment.Segment) { _, _ = nc.Write(b) }
}

func TestHostilePassive(t *testing.T) {
	accept := func(change func(*segment.CE)) []byte { return ceSegment(segment.ConnectAccept, change) }
	is := func(want error) func(*testing.T, error) {
		return func(t *testing.T, err error) { assert.ErrorIs(t, err, want) }
	}
	misfit := func(want vitcp.Reason) func(*testing.T, error) {
		return func(t *testing.T, err error) { mismatch(t, err, want) }
	}
	for _, c := range []struct {
		name string
		send []byte
		want func(*testing.T, error)
	}{
		{"other protocol", []byte("SSH-2.0-something and more\r\n"), is(segment.FaultVersion)},
		{"Send", short(0x80), is(vitcp.ErrUnexpected)},
		{"ConnectRequest", ceSegment(segment.ConnectRequest, nil), is(vitcp.ErrUnexpected)},
		{"bad CRC", spoiled(accept(withCRC), 170), is(segment.FaultCRC)},
		{"NoMatch with a bad CRC", short(0x88, 0, 0, 0, 0), is(segment.FaultCRC)},
		{"half an Accept", accept(nil)[:24], nil},
		{"nothing", nil, nil},
		{"level", accept(func(c *segment.CE) { c.Attributes = c.Attributes.WithLevel(segment.Unreliable) }), misfit(vitcp.ReasonLevel)},
		{"two levels", accept(func(c *segment.CE) { c.Attributes |= 1 }), misfit(vitcp.ReasonLevel)},
		{"no level", accept(func(c *segment.CE) { c.Attributes = 0 }), misfit(vitcp.ReasonLevel)},
		{"peer to peer", accept(func(c *segment.CE) { c.Attributes |= segment.PeerToPeer }), misfit(vitcp.ReasonPeerToPeer)},
		{"more than proposed", accept(func(c *segment.CE) { c.MTU = 1<<16 + 1 }), misfit(vitcp.ReasonMTU)},
		{"MTU 0", accept(func(c *segment.CE) { c.MTU = 0 }), misfit(vitcp.ReasonMTU)},
		{"CRC not offered", accept(withCRC), misfit(vitcp.ReasonCRC)},
		{"other VI", accept(func(c *segment.CE) { c.Called = "carol" }), misfit(vitcp.ReasonDiscriminator)},
		{"rejected", short(0x87), func(t *testing.T, err error) { rejected(t, err, 0) }},
		{"no match", short(0x88), is(vitcp.ErrNoMatch)},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit := 30 * time.Second
			if c.want == nil { // an answer that never ends: the context does
				limit, c.want = 100*time.Millisecond, is(context.DeadlineExceeded)
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			l := fakePassive(t, sendsOctets(c.send))
			_, err := vitcp.Dial(ctx, vitcp.Address{Discriminator: "alice"}, at(l, "bob"),
				vitcp.Config{Level: segment.ReliableDelivery, MTU: 1 << 16})
			c.want(t, err)
		})
	}
}

// Reserved bits, a smaller MTU and discriminators in the other order are no
// reason to refuse an Accept.
func TestLenientActive(t *testing.T) {
	answer := ceSegment(segment.ConnectAccept, func(c *segment.CE) {
		c.Attributes |= 0xff80
		c.MTU = 1
		c.ReadWindow = 60000
		c.Calling, c.Called = c.Called, c.Calling
		c.Options = segment.OptionUrgent
	})
	l := fakePassive(t, sendsOctets(append(answer, "first data"...)))
	a, err := vitcp.Dial(bounded(t), vitcp.Address{Discriminator: "alice"}, at(l, "bob"), vitcp.Config{Level: segment.ReliableDelivery})
	require.NoError(t, err)
	defer a.Conn.Close()
	assert.Equal(t, uint32(1), a.MTU)
	assert.Equal(t, uint16(vitcp.DefaultReadWindow), a.ReadWindow)
	assert.True(t, a.Urgent)
	assert.Equal(t, uint32(77), a.PeerNumber)
	assert.Equal(t, segment.Discriminator("alice"), a.LocalDiscriminator)
	got := make([]byte, 10)
	_, err = io.ReadFull(a.Conn, got)
	require.NoError(t, err)
	assert.Equal(t, "first data", string(got), "nothing behind the Accept has been read")
}

// TCP that closes in Pending Accept is set up again (figure 4.2), wherever in
// the answer it closed; a new connection makes a new request.
func TestReestablish(t *testing.T) {
	answer := ceSegment(segment.ConnectAccept, nil)
	l := fakePassive(t, hangsUp(nil), hangsUp(answer[:10]), hangsUp(answer[:100]), sendsOctets(answer))
	a, err := vitcp.Dial(bounded(t), vitcp.Address{Discriminator: "alice"}, at(l, "bob"), vitcp.Config{Level: segment.ReliableDelivery})
	require.NoError(t, err)
	require.NoError(t, a.Conn.Close())
}

// It ends with the context, or when TCP cannot be set up any more.
func TestReestablishEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(bounded(t))
	stop := func(net.Conn, segment.Segment) { cancel() }
	_, err := vitcp.Dial(ctx, vitcp.Address{}, at(fakePassive(t, hangsUp(nil), stop), "bob"), vitcp.Config{})
	require.ErrorIs(t, err, context.Canceled)

	listening := make(chan *net.TCPListener, 1)
	gone := fakePassive(t, func(net.Conn, segment.Segment) { (<-listening).Close() })
	listening <- gone
	_, err = vitcp.Dial(bounded(t), vitcp.Address{}, at(gone, "bob"), vitcp.Config{})
	require.ErrorIs(t, err, io.EOF, "why the first one ended")
	var op *net.OpError
	require.ErrorAs(t, err, &op, "why there is no second one")

	ours, theirs := net.Pipe()
	theirs.Close()
	_, err = vitcp.Connect(bounded(t), ours, "", "bob", vitcp.Config{})
	require.ErrorIs(t, err, net.ErrClosed, "a given connection has no successor")
}

// A peer that neither reads nor writes is left when the context ends; with the
// connection's deadline gone afterwards.
func TestContextEnds(t *testing.T) {
	for name, part := range map[string]func(context.Context, net.Conn) error{
		"active": func(ctx context.Context, nc net.Conn) error {
			_, err := vitcp.Connect(ctx, nc, "", "", vitcp.Config{})
			return err
		},
		"passive": func(ctx context.Context, nc net.Conn) error {
			_, err := vitcp.Await(ctx, nc, vitcp.Filter{})
			return err
		},
		"passive, without deadlines": func(ctx context.Context, nc net.Conn) error {
			_, err := vitcp.Await(ctx, noDeadline{nc}, vitcp.Filter{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := net.Pipe()
			defer theirs.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, part(ctx, ours), context.DeadlineExceeded)
			closed(t, ours)
		})
	}

	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() { _, _ = ours.Write(ceSegment(segment.ConnectRequest, nil)) }()
	r, err := vitcp.Await(bounded(t), theirs, vitcp.Filter{Called: "bob"})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = r.Accept(ctx, vitcp.Config{Level: segment.ReliableDelivery})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, r.Reject(ctx, 0), vitcp.ErrAnswered)
	closed(t, theirs)
}

// noDeadline is a connection that knows no deadlines.
type noDeadline struct{ net.Conn }

func (noDeadline) SetDeadline(time.Time) error { return net.ErrClosed }

// lateEnd is a connection whose context ends when a write has succeeded.
type lateEnd struct {
	net.Conn
	cancel context.CancelFunc
	struck chan struct{} // gets an entry when a deadline has been set
}

func (l lateEnd) Write(b []byte) (int, error) {
	n, err := l.Conn.Write(b)
	l.cancel()
	<-l.struck
	return n, err
}

func (l lateEnd) SetDeadline(t time.Time) error {
	err := l.Conn.SetDeadline(t)
	l.struck <- struct{}{}
	return err
}

// A context that ends too late to matter leaves the connection fit for use.
func TestContextEndsTooLate(t *testing.T) {
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(bounded(t))
	active := in(func() (*vitcp.Agreed, error) {
		return vitcp.Connect(bounded(t), ours, "", "bob", vitcp.Config{})
	})
	r, err := vitcp.Await(ctx, lateEnd{theirs, cancel, make(chan struct{}, 2)}, vitcp.Filter{Called: "bob"})
	require.NoError(t, err)
	p, err := r.Accept(ctx, vitcp.Config{})
	require.NoError(t, err)
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	a := <-active
	require.NoError(t, a.err)
	carries(t, a.agreed.Conn, theirs)
	closeAll(a, outcome{p, nil})
}
