//go:build conformance

package cases

import (
	"encoding/binary"
	"errors"
	"net"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/internal/wire"
	"github.com/softrnic/softrnic/mpa"
)

// blind is a raw peer and at the other end a program of which is known only that it
// speaks rping's language: the server fetches by RDMA Read what the client's first
// message of a round offers, says go ahead, and writes it by RDMA Write to what the
// second offers. So such a target can be led to use every kind of message but the
// invalidating ones, and nothing can be asked of it but what it sends.
//
//	peer (Initiator: client)              target (server)
//	     Send, 16 octets: a buffer ------>
//	     <--------------- RDMA Read Request for it
//	     RDMA Read Response ------------->
//	     <--------------- Send, 16 octets: go ahead
//	     Send, 16 octets: a buffer ------>
//	     <--------------- RDMA Write to it
//	     <--------------- Send, 16 octets: go ahead
type blind struct {
	t    *conformance.T
	play conformance.Role
	conn net.Conn
	peer *wire.Peer
	// frame is the target's startup frame.
	frame mpa.Startup
	// sends and reads count the peer's next Send and RDMA Read Request.
	sends, reads uint32
}

// openBlind connects; play is the raw peer's side, Either that which the target
// likes. A case that the target cannot be asked for in that role is skipped.
func openBlind(t *conformance.T, play conformance.Role) *blind {
	if play == conformance.Either {
		play = t.Target().Role()
	}
	c, err := t.Target().Stream(t.Context(), play)
	if errors.Is(err, conformance.ErrNoRole) {
		t.Skipf("%v", err)
	}
	require.NoError(t, err, "a stream to the target")
	t.Cleanup(func() { _ = c.Close() })
	return &blind{t: t, play: play, conn: t.Trace().Conn(c), sends: 1, reads: 1}
}

// start is the startup; a zero near is a Request of revision 1 with CRC, which
// every iWARP endpoint speaks, or a Reply that grants what is asked for.
func (b *blind) start(near mpa.Startup) {
	replies, given := b.play == conformance.Responder, near.Rev != 0
	if !given {
		near = mpa.Startup{CRC: true, Rev: 1}
	}
	if !replies {
		require.NoError(b.t, wire.WriteStartup(b.conn, near), "the MPA Request")
	}
	var err error
	b.frame, err = wire.ReadStartup(b.conn)
	require.NoError(b.t, err, "the MPA startup frame")
	require.False(b.t, b.frame.Reject, "the MPA startup was rejected")
	if replies {
		if !given {
			near = replyTo(b.frame)
		}
		near.Reply = true
		require.NoError(b.t, wire.WriteStartup(b.conn, near), "the MPA Reply")
	}
	b.peer = wire.New(b.conn, wire.Options{
		CRC: near.CRC || b.frame.CRC, MarkersIn: near.Markers, MarkersOut: b.frame.Markers, Patience: patience(b.t),
	})
}

// send sends ULPDUs, each in a good FPDU.
func (b *blind) send(ulpdus ...[]byte) {
	for _, u := range ulpdus {
		require.NoError(b.t, b.peer.Send(u), "sending")
	}
}

// next is a copy of the next ULPDU.
func (b *blind) next() []byte {
	u, err := b.peer.Next()
	require.NoError(b.t, err, "waiting for an FPDU")
	return append([]byte(nil), u...)
}

// taken is the buffer that a client offers with its first Send.
func (b *blind) taken() offered {
	m := b.received(1)
	return offered{binary.BigEndian.Uint32(m[8:]), binary.BigEndian.Uint64(m), binary.BigEndian.Uint32(m[12:])}
}

// refused reads on to a Terminate Message, and returns its octets.
func (b *blind) refused() []byte {
	for {
		u := b.next()
		if u[1]&0x0F != 7 {
			continue
		}
		require.GreaterOrEqual(b.t, len(u), 22, "the Terminate Message % x", u)
		return u
	}
}

// expect says that the next ULPDU is this.
func (b *blind) expect(want []byte) { require.Equal(b.t, want, b.next()) }

// offered is a buffer, as rping's message tells it.
type offered struct {
	stag uint32
	to   uint64
	size uint32
}

func (o offered) octets() []byte {
	b := binary.BigEndian.AppendUint64(nil, o.to)
	b = binary.BigEndian.AppendUint32(b, o.stag)
	return binary.BigEndian.AppendUint32(b, o.size)
}

// offer sends the message that names a buffer of the peer's.
func (b *blind) offer(o offered) {
	b.send(aSend(b.sends, o.octets()))
	b.sends++
}

// fetched says that an RDMA Read Request for the whole of a buffer comes, and
// returns its header.
func (b *blind) fetched(o offered) read {
	u := b.next()
	require.Len(b.t, u, 46, "an RDMA Read Request: % x", u)
	require.Equal(b.t, byte(opReadRequest), u[1], "its control octet")
	h := u[18:]
	r := read{
		binary.BigEndian.Uint32(h), binary.BigEndian.Uint64(h[4:]), binary.BigEndian.Uint32(h[12:]),
		binary.BigEndian.Uint32(h[16:]), binary.BigEndian.Uint64(h[20:]),
	}
	require.Equal(b.t, o, offered{r.stag, r.to, r.size}, "what is read")
	return r
}

// received says that a Send of 16 octets comes, in one segment with that MSN, and
// returns the octets.
func (b *blind) received(msn uint32) []byte {
	u := b.next()
	require.Len(b.t, u, 34, "a Send of 16 octets: % x", u)
	require.Equal(b.t, aSend(msn, u[18:]), u, "a Send")
	return u[18:]
}
