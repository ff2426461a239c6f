package cases

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// The raw peer of a case: the far end of a stream, played by hand. It numbers its messages, sends
// whole or damaged FPDUs, and compares what comes with what has to come; what goes wrong fails the
// case. The octets are those of octets*.go.
type peer struct {
	rawEnd
	test *conformance.T
	// sends and reads are the MSNs of its last messages on queues 0 and 1; 0 is none yet.
	sends, reads uint32
	// theirs is the startup frame of the other side.
	theirs []byte
	// closes has finished close its half of the stream too, and isShut is that it is closed.
	closes, isShut bool
}

// newPeer makes the raw peer of a connection whose startup is over, or is the case's to play.
// Without a patience of its own it waits for half of the time that the case has left.
func newPeer(t *conformance.T, c net.Conn, f framing) *peer {
	if f.patience == 0 {
		f.patience = patience(t)
	}
	return &peer{rawEnd: *newRawEnd(c, f), test: t}
}

// nextSend is the MSN of its next Send, which it counts.
func (p *peer) nextSend() uint32 {
	p.sends++
	return p.sends
}

// nextRead is the MSN of its next RDMA Read Request, which it counts.
func (p *peer) nextRead() uint32 {
	p.reads++
	return p.reads
}

// raw sends octets.
func (p *peer) raw(b []byte) { require.NoError(p.test, p.Raw(b), "the peer sends") }

// send sends ULPDUs, each in a good FPDU.
func (p *peer) send(ulpdus ...[]byte) {
	for _, u := range ulpdus {
		p.raw(p.Frame(u))
	}
}

// fpdus are ULPDUs framed, one behind the other.
func (p *peer) fpdus(ulpdus ...[]byte) (b []byte) {
	for _, u := range ulpdus {
		b = append(b, p.Frame(u)...)
	}
	return b
}

// sendAtOnce sends ULPDUs in one write of TCP, and sendPieces in writes of at most n octets.
func (p *peer) sendAtOnce(ulpdus ...[]byte) { p.raw(p.fpdus(ulpdus...)) }

func (p *peer) sendPieces(n int, ulpdus ...[]byte) {
	for b := p.fpdus(ulpdus...); len(b) > 0; {
		k := min(n, len(b))
		p.raw(b[:k])
		b = b[k:]
	}
}

// aSend is its next Send, and sendMessage sends it.
func (p *peer) aSend(payload []byte) []byte     { return aSend(p.nextSend(), payload) }
func (p *peer) sendMessage(payload []byte)      { p.send(p.aSend(payload)) }
func (p *peer) twisted(payload []byte, x twist) { p.raw(p.out.twisted(p.aSend(payload), x)) }

// take is the next FPDU, which has to be a good one.
func (p *peer) take() mpaFPDU {
	f, err := p.Take()
	if err != nil {
		p.test.Fatalf("instead of an FPDU: %s", failure(err))
	}
	return f
}

// next is the next ULPDU.
func (p *peer) next() []byte { return p.take().ulpdu }

// expect says that the next ULPDUs are these, to the octet.
func (p *peer) expect(want ...[]byte) {
	for i, w := range want {
		require.Equal(p.test, w, p.next(), "ULPDU %d of %d", i+1, len(want))
	}
}

// segment is the next segment, which has to have that control octet.
func (p *peer) segment(control byte) ddpSegment {
	s := must(parseSegment(p.next()))(p.test, "waiting for control octet %02x", control)
	require.Equal(p.test, control, s.control, "the control octet of what came")
	return s
}

// message is the next message, all its segments.
func (p *peer) message() message { return messageOf(p.test, p.next) }

// taggedMessage is the next message, tagged, with this control octet, STag and first TO; and
// untaggedMessage a Send with this MSN.
func (p *peer) taggedMessage(control byte, stag uint32, to uint64) message {
	m := p.message()
	require.Equal(p.test, message{tagged: true, control: control, stag: stag, to: to}, m.address(), "the message")
	return m
}

func (p *peer) untaggedMessage(control byte, inv, msn uint32) message {
	m := p.message()
	require.Equal(p.test, message{control: control, inv: inv, msn: msn}, m.address(), "the message")
	return m
}

// The made-up sink of the peer's RDMA Reads.
const (
	nowhere   = 0x00C0FFEE
	nowhereTO = 0x0123456789ABCDEF
)

// asks sends an RDMA Read Request for n octets, and fetches reads the answer too. Nothing else may
// come before it.
func (p *peer) fetches(stag uint32, to uint64, n int) { p.send(p.readOf(stag, to, n)) }

func (p *peer) fetched(stag uint32, to uint64, n int) []byte {
	p.fetches(stag, to, n)
	return p.taggedMessage(opReadResponse, nowhere, nowhereTO).payload
}

func (p *peer) readOf(stag uint32, to uint64, n int) []byte {
	return aReadRequest(p.nextRead(), read{nowhere, nowhereTO, uint32(n), stag, to})
}

// settled waits until the queue pair has processed everything that was sent: the answer to an RDMA
// Read of nothing comes behind it (RFC 5040 5.5). Nothing else may come before.
func (p *peer) settled() {
	require.Empty(p.test, p.fetched(0, 0, 0), "the answer to a Read of nothing")
}

// terminated says that next comes a Terminate Message of this layer, type and code
// (layer<<12|type<<8|code), to the octet, and then the end of the stream. fault is the segment at
// fault that it echoes with its length: the DDP header, and with readToo the RDMA Read Request
// header; nil for none (RFC 5040 4.8 figure 10).
func (p *peer) terminated(code uint16, fault []byte, readToo bool) {
	p.expect(aTerminate(code, fault, readToo))
	p.finished()
}

// eventuallyTerminated is terminated behind other ULPDUs, which it returns.
func (p *peer) eventuallyTerminated(code uint16, fault []byte, readToo bool) (before [][]byte) {
	for {
		u := p.next()
		if u[1]&0x0F == opTerminate&0x0F {
			require.Equal(p.test, aTerminate(code, fault, readToo), u, "the Terminate Message")
			p.finished()
			return before
		}
		before = append(before, u)
	}
}

// terminatedAs reads up to a Terminate Message, which has to have this code, and the end of the
// stream behind it.
func (p *peer) terminatedAs(code uint16) {
	u := p.next()
	for u[1]&0x0F != opTerminate&0x0F {
		u = p.next()
	}
	require.GreaterOrEqual(p.test, len(u), 22, "the Terminate Message")
	require.Equal(p.test, uint32(2), binary.BigEndian.Uint32(u[6:]), "its queue number")
	require.Equalf(p.test, code, binary.BigEndian.Uint16(u[18:]), "its layer, type and code: %#04x", u[18:20])
	require.Error(p.test, second(p.Next()), "the stream behind the Terminate Message")
}

// silent says that the stream ends in order without another octet. With finished the peer closes
// its half then, if it is one that does.
func (p *peer) silent(behind ...any) { require.ErrorIs(p.test, second(p.Next()), io.EOF, behind...) }

func (p *peer) finished() {
	p.silent("after the last FPDU")
	if p.closes && !p.isShut {
		p.isShut = true
		_ = p.CloseWrite()
	}
}

// endsAs says that nothing more comes but this end of the stream.
func (p *peer) endsAs(want streamEnd, why ...any) {
	end, fpdus, err := p.End()
	require.NoError(p.test, err, "the end of the stream")
	require.Equal(p.test, want, end, "the end of the stream")
	require.Zero(p.test, fpdus, why...)
}

// gone reads up to the end of the stream, however that is, and says how it was.
func (p *peer) gone() streamEnd {
	end, _, err := p.End()
	require.NoError(p.test, err, "the end of the stream")
	return end
}

// closed says that the other side ends the stream, in whatever way, without another octet.
func (p *peer) closed() {
	require.Empty(p.test, p.early, "octets")
	err := p.fill()
	require.Error(p.test, err, "octets that came: % x", p.early)
	var late net.Error
	require.False(p.test, errors.As(err, &late) && late.Timeout(), "the connection is still open")
}

// shut ends the peer's half of the stream, reset drops the stream, and drop is done with it.
func (p *peer) shut() {
	if !p.isShut {
		p.isShut = true
		require.NoError(p.test, p.CloseWrite(), "the peer closes")
	}
}

func (p *peer) reset() { require.NoError(p.test, p.Reset(), "the peer resets") }
func (p *peer) drop()  { _ = p.Close() }

// octets reads n octets, and text a text that is not in FPDUs.
func (p *peer) octets(n int) []byte {
	for len(p.early) < n {
		require.NoError(p.test, p.fill(), "waiting for %d octets; there are % x", n, p.early)
	}
	b := p.early[:n:n]
	p.early = p.early[n:]
	return b
}

func (p *peer) text(want string) { require.Equal(p.test, want, string(p.octets(len(want)))) }

// shortWait is how long mute waits for octets that must not come.
const shortWait = 10 * time.Millisecond

// mute says that there is no octet at this moment, nor for a little while.
func (p *peer) mute() {
	require.Empty(p.test, p.early, "octets")
	_ = p.Conn.SetReadDeadline(time.Now().Add(shortWait))
	b := make([]byte, 1<<10)
	n, err := p.Conn.Read(b)
	require.Zero(p.test, n, "octets before their time: % x", b[:n])
	var late net.Error
	require.True(p.test, errors.As(err, &late) && late.Timeout(), "the connection is open: %v", err)
}

// rest is what came up to the end of a stream: octets of payload and whole messages, the Terminate
// Message, if there was one, behind which nothing may come, and how it ended (io.EOF: in order).
type rest struct {
	octets, messages int
	terminate        []byte
	end              error
}

func (p *peer) rest() (r rest) {
	for {
		u, err := p.Next()
		if err != nil {
			r.end = err
			return r
		}
		require.Nil(p.test, r.terminate, "a segment behind the Terminate Message: % x", u)
		s := must(parseSegment(u))(p.test)
		if s.control == opTerminate {
			r.terminate = u
			continue
		}
		r.octets += len(s.payload)
		if s.last {
			r.messages++
		}
	}
}

// Message builders: messages that are as they have to be, cut into segments, and put together again
// when they come.

// theirs is a buffer of the peer's.
var theirs = verbs.Remote{STag: 0x11223344, TO: 0x0102030405060708}

// badSTag is a segment that names no region.
var badSTag = aWrite(0x00F00000, 0, []byte{1})

// goodMessage is a message that the rig takes.
type goodMessage struct {
	what string
	make func(*faultRig) []byte
}

// but is the message with something wrong.
func (m goodMessage) but(spoil func([]byte) []byte) func(*faultRig) []byte {
	return func(v *faultRig) []byte { return spoil(m.make(v)) }
}

// with puts octets into a segment from off on, and masked leaves what a mask has of one.
func with(off int, octets ...byte) func([]byte) []byte {
	return func(u []byte) []byte {
		copy(u[off:], octets)
		return u
	}
}

func masked(off int, mask, octet byte) func([]byte) []byte {
	return func(u []byte) []byte {
		u[off] = u[off]&mask | octet
		return u
	}
}

// The fields of an untagged segment that cases spoil.
const (
	atQN, atMSN, atMO = 9, 13, 17 // their last octets
)

var goodMessages = []goodMessage{
	goodWrite: {"an RDMA Write", func(v *faultRig) []byte { return aWrite(v.region.tag(), v.region.at(3), []byte("abc")) }},
	goodReadRequest: {"an RDMA Read Request", func(v *faultRig) []byte {
		return aReadRequest(1, read{nowhere, nowhereTO, 5, v.region.tag(), v.region.at(0)})
	}},
	goodReadResponse: {"an RDMA Read Response", func(v *faultRig) []byte { return aReadResponse(v.sink.tag(), v.sink.at(0), []byte("response")) }},
	goodSend:         {"a Send", func(*faultRig) []byte { return aSend(1, []byte("abc")) }},
	goodSendInv:      {"a Send with Invalidate", func(v *faultRig) []byte { return aSendInv(1, v.region.tag(), nil) }},
	goodSendSE:       {"a Send with Solicited Event", func(*faultRig) []byte { return untagged(lastUntagged, opSendSE, 0, 0, 1, 0, []byte("abc")) }},
	goodSendSEInv: {"a Send with Solicited Event and Invalidate", func(v *faultRig) []byte {
		return untagged(lastUntagged, opSendSEInv, v.region.tag(), 0, 1, 0, nil)
	}},
	goodTerminate: {"a Terminate Message", func(*faultRig) []byte { return aTerminate(0x1202, nil, false) }},
}

// The messages of goodMessages, as the opcodes are numbered.
const (
	goodWrite = iota
	goodReadRequest
	goodReadResponse
	goodSend
	goodSendInv
	goodSendSE
	goodSendSEInv
	goodTerminate
)

// sendTypes are the four Sends.
var sendTypes = []struct {
	op        verbs.Op
	control   byte
	invalid   uint32 // what the Invalidate STag field has
	solicited bool
}{
	{verbs.OpSend, opSend, 0, false},
	{verbs.OpSendInvalidate, opSendInv, 0xAABBCC01, false},
	{verbs.OpSendSE, opSendSE, 0, true},
	{verbs.OpSendSEInvalidate, opSendSEInv, 0xAABBCC02, true},
}

// message is a message that came, put together from its segments.
type message struct {
	tagged   bool
	control  byte   // RsvdULP: RDMAP's control octet
	inv      uint32 // the other 32 bits of an untagged message's
	stag     uint32 // of a tagged message
	to       uint64 // of its first octet
	qn, msn  uint32 // of an untagged message
	payload  []byte
	segments []int // the length of each ULPDU
}

// address is a message without its contents.
func (m message) address() message {
	m.payload, m.segments = nil, nil
	return m
}

// messageOf reads segments up to one with the Last flag. All fields that belong to the message have
// to be the same in each of them, and the offsets have to go on (RFC 5041 4.1 to 4.3, 5.2).
func messageOf(t *conformance.T, next func() []byte) (m message) {
	for {
		u := next()
		s := must(parseSegment(u))(t)
		if m.segments == nil {
			m = message{tagged: s.tagged, control: s.control, inv: s.inv, stag: s.stag, to: s.to, qn: s.qn, msn: s.msn}
		}
		header := untagged(u[0], m.control, m.inv, m.qn, m.msn, uint32(len(m.payload)), nil)
		if m.tagged {
			header = tagged(u[0], m.control, m.stag, m.to+uint64(len(m.payload)), nil)
		}
		require.Equal(t, header, s.header, "segment %d of a message: its header", len(m.segments))
		m.payload = append(m.payload, s.payload...)
		m.segments = append(m.segments, len(u))
		if s.last {
			return m
		}
	}
}

// number is a queue and a number on it.
type number struct{ qn, msn uint32 }

// counter says of untagged messages that their numbers are consecutive, from 1 on
// each queue (RFC 5041 4.3).
type counter map[uint32]uint32

func (c counter) counts(t *conformance.T, p message) {
	if !p.tagged {
		c[p.qn]++
		require.Equal(t, number{p.qn, c[p.qn]}, number{p.qn, p.msn}, "the number of a message on its queue")
	}
}

// cutUp makes an untagged message of segments whose payloads have these lengths, the
// last one with the Last flag.
func cutUp(control byte, inv, msn uint32, payload []byte, lengths ...int) [][]byte {
	var list [][]byte
	mo := 0
	for i, n := range lengths {
		first := either(i == len(lengths)-1, lastUntagged, byte(moreUntagged))
		list = append(list, untagged(first, control, inv, 0, msn, uint32(mo), payload[mo:mo+n]))
		mo += n
	}
	return list
}

// cutTagged is cutUp for a tagged message.
func cutTagged(control byte, stag uint32, to uint64, payload []byte, lengths ...int) [][]byte {
	var list [][]byte
	off := 0
	for i, n := range lengths {
		first := either(i == len(lengths)-1, lastTagged, byte(moreTagged))
		list = append(list, tagged(first, control, stag, to+uint64(off), payload[off:off+n]))
		off += n
	}
	return list
}

// segmented is a message of tagged segments of up to k octets each.
func segmented(control byte, at verbs.Remote, data []byte, k int) [][]byte {
	var lengths []int
	for rest := len(data); rest > 0; rest -= k {
		lengths = append(lengths, min(rest, k))
	}
	return cutTagged(control, uint32(at.STag), at.TO, data, lengths...)
}
