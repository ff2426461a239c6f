package cases

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
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
	peer *rawEnd
	// frame is the target's startup frame.
	frame startup
	// theirs is what a client offered with its first Send.
	theirs offered
	numbers
}

// openBlind connects; play is the raw peer's side, Either that which the target
// likes. A case that the target cannot be asked for in that role is skipped.
func openBlind(t *conformance.T, play conformance.Role) *blind {
	if play == conformance.Either {
		play = t.Target().Role()
	}
	b := &blind{t: t, play: play}
	b.connect()
	return b
}

func (b *blind) connect() {
	c, err := b.t.Target().Stream(b.t.Context(), b.play)
	if errors.Is(err, conformance.ErrNoRole) {
		b.t.Skipf("%v", err)
	}
	require.NoError(b.t, err, "a stream to the target")
	b.t.Cleanup(func() { _ = c.Close() })
	b.conn = b.t.Trace().Conn(c)
}

// startBlind is openBlind and start.
func startBlind(t *conformance.T, play conformance.Role, changes ...func(*startup)) *blind {
	b := openBlind(t, play)
	b.start(changes...)
	return b
}

// start is the startup, with the peer's frame as these changes make it. That is a
// Request of revision 2 with CRC and depths, or of revision 1 if the target hangs up
// on it (RFC 6581 10); or a Reply that grants what is asked for. Behind it the peer
// may send: from a client its first Send has come (RFC 5044 7.1.2).
func (b *blind) start(changes ...func(*startup)) {
	var near startup
	if b.play == conformance.Responder {
		b.frame = b.request()
		near = changed(replyTo(b.frame), changes)
		require.NoError(b.t, writeStartup(b.conn, near), "the MPA Reply")
	} else {
		near = b.initiate(changes)
	}
	b.adopt(near)
	if b.play == conformance.Responder {
		b.theirs = b.offers(1)
	}
}

func changed(f startup, changes []func(*startup)) startup {
	for _, change := range changes {
		change(&f)
	}
	return f
}

func (b *blind) initiate(changes []func(*startup)) startup {
	near := changed(startup{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16}, changes)
	f, err := b.asked(near)
	if ended(err) {
		near = changed(startup{CRC: true, Rev: 1}, changes)
		_ = b.conn.Close()
		b.connect()
		f, err = b.asked(near)
	}
	if err != nil {
		b.t.Fatalf("the Request got no Reply: %s", failure(err))
	}
	if f.Reject {
		b.t.Fatalf("the Request was rejected (R=1)")
	}
	b.frame = f
	return near
}

// offers is the buffer that a client names with its Send of that MSN.
func (b *blind) offers(msn uint32) offered {
	m := b.received(msn)
	return offered{binary.BigEndian.Uint32(m[8:]), binary.BigEndian.Uint64(m), binary.BigEndian.Uint32(m[12:])}
}

// works says that the stream is in order: a server plays a round, and a client's
// buffer can be read.
func (b *blind) works() {
	if b.play == conformance.Initiator {
		b.round()
		b.received(b.sends)
		b.offer(ours[1])
		b.expect(aWrite(ours[1].stag, ours[1].to, blindText(64)))
		b.received(b.sends)
		return
	}
	require.Len(b.t, b.read(b.theirs, 0, b.theirs.size, nowhere), int(b.theirs.size))
}

// asked sends a Request and reads the Reply.
func (b *blind) asked(near startup) (startup, error) {
	require.NoError(b.t, writeStartup(b.conn, near), "the MPA Request")
	return readStartup(b.conn)
}

// request reads the target's Request.
func (b *blind) request() startup {
	f := must(readStartup(b.conn))(b.t, "the MPA Request")
	require.False(b.t, f.Reply, "the frame's key is that of a Request")
	return f
}

// adopt makes the peer, from the frames of both sides.
func (b *blind) adopt(near startup) {
	b.peer = newRawEnd(b.conn, framing{
		crc: near.CRC || b.frame.CRC, markersIn: near.Markers, markersOut: b.frame.Markers,
		patience: b.patience(),
	})
}

// patience is how long to wait for the target at most: a part of the case's time, as
// a case has several streams and a foreign target may miss something in one.
func (b *blind) patience() time.Duration { return patience(b.t) / 4 }

// close ends a stream that a case is done with.
func (b *blind) close() { _ = b.conn.Close() }

// send sends ULPDUs, each in a good FPDU.
func (b *blind) send(ulpdus ...[]byte) {
	for _, u := range ulpdus {
		require.NoError(b.t, b.peer.Send(u), "sending")
	}
}

// next is a copy of the next ULPDU.
func (b *blind) next() []byte {
	u, err := b.peer.Next()
	if err != nil {
		b.t.Fatalf("instead of an FPDU: %s", failure(err))
	}
	return append([]byte(nil), u...)
}

// refused says that a Terminate Message is next, and returns its octets.
func (b *blind) refused() []byte {
	u, err := b.peer.Next()
	switch {
	case err != nil:
		b.t.Fatalf("no Terminate Message: %s", failure(err))
	case len(u) < 2 || u[1]&0x0F != 7:
		b.t.Fatalf("no Terminate Message: %s", described(u))
	case len(u) < 22:
		b.t.Fatalf("a Terminate Message of %d octets: % x", len(u), u)
	}
	return append([]byte(nil), u...)
}

// refusedAs says that a Terminate Message of one of these codes is next
// (layer<<12|type<<8|code), whichever half of its control octet is the layer: that
// is for 4.8/blind-terminate-control to judge.
func (b *blind) refusedAs(codes ...uint16) []byte {
	u := b.refused()
	b.isRefusal(u, codes...)
	return u
}

// isRefusal is refusedAs for a Terminate Message that was read already.
func (b *blind) isRefusal(u []byte, codes ...uint16) {
	var want string
	for _, c := range codes {
		hi := byte(c >> 8)
		if u[19] == byte(c) && (u[18] == hi || u[18] == hi<<4|hi>>4) {
			return
		}
		want += " or " + codeName(hi, byte(c))
	}
	b.t.Fatalf("Terminate %s, not %s", codeOf(u), want[len(" or "):])
}

// codeOf is the code of a Terminate Message, as its sender seems to mean it. There
// are no layers above 2; M, D and R stand in the low half of octet 20 if the halves
// are swapped; and in Full Operation RDMAP's codes of type 2 begin at 5 while MPA's
// end at 4 (RFC 5040 figure 9, RFC 5044 8).
func codeOf(u []byte) string {
	hi, code := u[18], u[19]
	if hi>>4 > 2 || u[20]&0x07 != 0 || hi == 0x02 && code < 5 || hi == 0x20 && code >= 5 {
		hi = hi<<4 | hi>>4
	}
	return codeName(hi, code)
}

func codeName(hi, code byte) string { return fmt.Sprintf("%d/%d/%02x", hi>>4, hi&15, code) }

// expect says that the next ULPDU is this.
func (b *blind) expect(want []byte) { require.Equal(b.t, want, b.next()) }

// finished says that the stream ends, and that nothing more comes before.
func (b *blind) finished() {
	u, err := b.peer.Next()
	if err == nil {
		b.t.Fatalf("instead of the end of the stream: %s", described(u))
	}
	if !ended(err) {
		b.t.Fatalf("instead of the end of the stream: %s", failure(err))
	}
}

// ended reports whether an error is the end of a stream, in order or not.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// failure is what an error of the stream means.
func failure(err error) string {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "nothing came in time"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the stream ended within a frame"
	case errors.Is(err, io.EOF):
		return "the stream ended"
	case errors.Is(err, syscall.ECONNRESET):
		return "the stream was reset"
	}
	return err.Error()
}

// described is a ULPDU for a person.
func described(u []byte) string {
	names := [8]string{"RDMA Write", "RDMA Read Request", "RDMA Read Response", "Send", "Send with Invalidate", "Send with SE", "Send with SE and Invalidate", "Terminate"}
	switch {
	case len(u) < 14 || u[1]&0x0F > 7:
		return fmt.Sprintf("came % x", u)
	case u[1]&0x0F == 7 && len(u) >= 22:
		return "came Terminate " + codeOf(u)
	}
	return fmt.Sprintf("came %s of %d octets", names[u[1]&7], len(u))
}

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
func (b *blind) offer(o offered) { b.send(aSend(b.nextSend(), o.octets())) }

// fetched says that an RDMA Read Request for the whole of a buffer comes, and
// returns its header.
func (b *blind) fetched(o offered) read {
	u := b.next()
	require.Len(b.t, u, 46, "an RDMA Read Request, but %s", described(u))
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
	require.Len(b.t, u, 34, "a Send of 16 octets, but %s", described(u))
	require.Equal(b.t, aSend(msn, u[18:]), u, "a Send")
	return u[18:]
}
