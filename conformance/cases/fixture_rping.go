package cases

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
)

// rping is a raw peer and at the other end a program of which is known only that it
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
type rping struct {
	*peer
	t    *conformance.T
	play conformance.Role
	// itsFrame is the target's startup frame, and itsBuffer what a client offered with its first
	// Send.
	itsFrame  startup
	itsBuffer offered
}

// openRping connects; play is the raw peer's side, Either that which the target
// likes. A case that the target cannot be asked for in that role is skipped.
func openRping(t *conformance.T, play conformance.Role) *rping {
	if play == conformance.Either {
		play = t.Target().Role()
	}
	b := &rping{t: t, play: play}
	b.connect()
	return b
}

func (b *rping) connect() {
	c, err := b.t.Target().Stream(b.t.Context(), b.play)
	if errors.Is(err, conformance.ErrNoRole) {
		b.t.Skipf("%v", err)
	}
	require.NoError(b.t, err, "a stream to the target")
	b.t.Cleanup(func() { _ = c.Close() })
	// A case has several streams, and a foreign target may miss something in one.
	b.peer = newPeer(b.t, b.t.Trace().Conn(c), framing{patience: b.patience()})
}

// startRping is openRping and start.
func startRping(t *conformance.T, play conformance.Role, changes ...func(*startup)) *rping {
	b := openRping(t, play)
	b.start(changes...)
	return b
}

// start is the startup, with the peer's frame as these changes make it. That is a
// Request of revision 2 with CRC and depths, or of revision 1 if the target hangs up
// on it (RFC 6581 10); or a Reply that grants what is asked for. Behind it the peer
// may send: from a client its first Send has come (RFC 5044 7.1.2).
func (b *rping) start(changes ...func(*startup)) {
	var near startup
	if b.play == conformance.Responder {
		b.itsFrame = b.request()
		near = changed(replyTo(b.itsFrame), changes)
		b.raw(near.octets())
	} else {
		near = b.initiate(changes)
	}
	b.adopt(near, b.itsFrame)
	if b.play == conformance.Responder {
		b.itsBuffer = b.offers(1)
	}
}

func changed(f startup, changes []func(*startup)) startup {
	for _, change := range changes {
		change(&f)
	}
	return f
}

func (b *rping) initiate(changes []func(*startup)) startup {
	near := changed(startup{CRC: true, Rev: 2, Enhanced: true, IRD: 16, ORD: 16}, changes)
	f, err := b.asked(near)
	if ended(err) {
		near = changed(startup{CRC: true, Rev: 1}, changes)
		_ = b.Conn.Close()
		b.connect()
		f, err = b.asked(near)
	}
	if err != nil {
		b.t.Fatalf("the Request got no Reply: %s", failure(err))
	}
	if f.Reject {
		b.t.Fatalf("the Request was rejected (R=1)")
	}
	b.itsFrame = f
	return near
}

// offers is the buffer that a client names with its Send of that MSN.
func (b *rping) offers(msn uint32) offered {
	m := b.received(msn)
	return offered{binary.BigEndian.Uint32(m[8:]), binary.BigEndian.Uint64(m), binary.BigEndian.Uint32(m[12:])}
}

// works says that the stream is in order: a server plays a round, and a client's
// buffer can be read.
func (b *rping) works() {
	if b.play == conformance.Initiator {
		b.round()
		b.received(b.sends)
		b.offer(ours[1])
		b.expect(aWrite(ours[1].stag, ours[1].to, rpingText(64)))
		b.received(b.sends)
		return
	}
	require.Len(b.t, b.read(b.itsBuffer, 0, b.itsBuffer.size, nowhere), int(b.itsBuffer.size))
}

// asked sends a Request and reads the Reply.
func (b *rping) asked(near startup) (startup, error) {
	b.raw(near.octets())
	return readStartup(b.Conn)
}

// request reads the target's Request.
func (b *rping) request() startup {
	f := must(readStartup(b.Conn))(b.t, "the MPA Request")
	require.False(b.t, f.Reply, "the frame's key is that of a Request")
	return f
}

// patience is how long to wait for the target at most: a part of the case's time.
func (b *rping) patience() time.Duration { return patience(b.t) / 4 }

// refused says that a Terminate Message is next, and returns its octets.
func (b *rping) refused() []byte {
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
func (b *rping) refusedAs(codes ...uint16) []byte {
	u := b.refused()
	b.isRefusal(u, codes...)
	return u
}

// isRefusal is refusedAs for a Terminate Message that was read already.
func (b *rping) isRefusal(u []byte, codes ...uint16) {
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

// finished says that the stream ends, and that nothing more comes before.
func (b *rping) finished() {
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
func (b *rping) offer(o offered) { b.send(aSend(b.nextSend(), o.octets())) }

// fetched says that an RDMA Read Request for the whole of a buffer comes, and
// returns its header.
func (b *rping) fetched(o offered) read {
	r := must(parseRead(b.segment(opReadRequest).payload))(b.t)
	require.Equal(b.t, o, offered{r.stag, r.to, r.size}, "what is read")
	return r
}

// received says that a Send of 16 octets comes, in one segment with that MSN, and
// returns the octets.
func (b *rping) received(msn uint32) []byte {
	u := b.next()
	require.Len(b.t, u, 34, "a Send of 16 octets, but %s", described(u))
	require.Equal(b.t, aSend(msn, u[18:]), u, "a Send")
	return u[18:]
}

// ours are the peer's buffers, in name.
var ours = []offered{{0xABCD1234, 0x1122334455667788, 64}, {0x1234ABCD, 0x99, 64}}

// round plays a client's first half of a round: the target fetches a buffer.
func (b *rping) round() read {
	b.offer(ours[0])
	r := b.fetched(ours[0])
	b.send(aReadResponse(r.sinkSTag, r.sinkTO, rpingText(int(r.size))))
	return r
}

// rpingText is n octets that rping returns all: it stops behind the first zero.
func rpingText(n int) []byte { return append(bytes.Repeat([]byte("x"), max(n-1, 0)), 0)[:n] }

// read reads n octets of a buffer of the target's, and checks the headers of the
// response.
func (b *rping) read(from offered, off, n, sink uint32) []byte {
	b.send(aReadRequest(b.nextRead(), read{sink, nowhereTO, n, from.stag, from.to + uint64(off)}))
	return b.taggedMessage(opReadResponse, sink, nowhereTO).payload
}

// badSegment is a segment that is refused with this code.
type badSegment struct {
	what  string
	ulpdu []byte
	codes []uint16
}

// rpingRefuses tries segments, each on a stream of its own.
func rpingRefuses(t *conformance.T, segments ...badSegment) {
	for x := range inTurn(t, "%s", segments) {
		b := startRping(t, conformance.Either)
		b.send(x.ulpdu)
		b.refusedAs(x.codes...)
		b.drop()
	}
}

// aMessage is one that rping understands, as client or as server.
func aMessage() []byte { return ours[0].octets() }

// onRping is a case of a raw peer against a program that speaks rping's language.
func onRping(play conformance.Role, run func(*conformance.T, *rping)) func(*conformance.T) {
	return func(t *conformance.T) { run(t, startRping(t, play)) }
}
