package cases

import (
	"encoding/binary"
	"io"
	"net"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// What shows the enhanced startup: frames as they are on the wire, and what either side makes of
// them (RFC 6581).

// The frames of the enhanced startup, octet by octet (RFC 6581 6, 9):
//
//	key, 16  M C R S 0000  Rev  PD_Length, 2  A B IRD, 2  C D ORD, 2  private data
const (
	requestKey = "MPA ID Req Frame"
	replyKey   = "MPA ID Rep Frame"

	bitMarkers  = 0x80 // octet 16
	bitCRC      = 0x40
	bitReject   = 0x20
	bitEnhanced = 0x10

	flagA, flagB = 0x8000, 0x4000 // of the word's first half
	flagC, flagD = 0x8000, 0x4000 // of its second
	depthBits    = 0x3FFF
	unsaid       = 0x3FFF // a depth that is not negotiated
)

// aFrame is a startup frame: octets 16 and 17, and what PD_Length counts.
func aFrame(key string, flags, rev byte, rest []byte) []byte {
	b := append([]byte(key), flags, rev)
	b = binary.BigEndian.AppendUint16(b, uint16(len(rest)))
	return append(b, rest...)
}

// aWord is the enhanced word, with private data behind it.
func aWord(first, second uint16, private string) []byte {
	b := binary.BigEndian.AppendUint16(nil, first)
	return append(binary.BigEndian.AppendUint16(b, second), private...)
}

// kinds are the flags of a set of ready-to-receive frames: 1 Send, 2 Write, 4 Read.
func kinds(set int) (first, second uint16) {
	for i, f := range []struct{ first, second uint16 }{{flagB, 0}, {0, flagC}, {0, flagD}} {
		if set>>i&1 != 0 {
			first, second = first|f.first, second|f.second
		}
	}
	return first, second
}

// heardFrame is a startup frame of the side under test.
type heardFrame struct {
	t          *conformance.T
	octets     []byte
	flags, rev byte
	rest       []byte // what PD_Length counts
}

// hearFrame reads one startup frame, and no octet more.
func hearFrame(t *conformance.T, c net.Conn, key string) heardFrame {
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience(t))))
	b := make([]byte, 20)
	require.NoError(t, second(io.ReadFull(c, b)), "a startup frame")
	require.Equal(t, key, string(b[:16]), "its key")
	rest := make([]byte, binary.BigEndian.Uint16(b[18:]))
	require.NoError(t, second(io.ReadFull(c, rest)), "its private data")
	return heardFrame{t: t, octets: append(b, rest...), flags: b[16], rev: b[17], rest: rest}
}

// word is the enhanced word.
func (f heardFrame) word() (first, second uint16) {
	require.NotZero(f.t, f.flags&bitEnhanced, "S of % x", f.octets)
	require.GreaterOrEqual(f.t, len(f.rest), 4, "the octets behind PD_Length in % x", f.octets)
	return binary.BigEndian.Uint16(f.rest), binary.BigEndian.Uint16(f.rest[2:])
}

// endsBehind says that the connection ends, in order, with nothing more on it.
func endsBehind(t *conformance.T, c net.Conn, after string) {
	require.NoError(t, c.SetReadDeadline(time.Now().Add(patience(t))))
	b := must(io.ReadAll(c))(t, "the end behind %s", after)
	require.Empty(t, b, "octets behind %s", after)
}

// dialing is a rig whose queue pair is MPA Initiator. Its Request is on its way.
func dialing(t *conformance.T, qp upper.OpenArgs, far upper.ConnectArgs) *rig {
	return open(t, setup{qp: qp, far: far, play: conformance.Responder, raw: true, narrow: true})
}

// listening is a rig whose queue pair is MPA Responder, and waits for a Request.
func listening(t *conformance.T, qp upper.OpenArgs, far upper.ConnectArgs) *rig {
	return open(t, setup{qp: qp, far: far, play: conformance.Initiator, raw: true, narrow: true})
}

// says sends octets, and hears reads the other side's startup frame.
func (r *rig) says(octets []byte) {
	require.NoError(r.t, second(r.conn.Write(octets)), "the startup frame")
}

func (r *rig) hears() heardFrame {
	key := either(r.play == conformance.Initiator, replyKey, requestKey)
	return hearFrame(r.t, r.conn, key)
}

// established says that the startup is over, and begins with FPDUs.
func (r *rig) established(o framing) upper.Connection {
	r.adopt(o)
	c := r.connected()
	require.Empty(r.t, c.Failed, "the startup of the side under test")
	return c
}

// asks is a whole startup with an enhanced Request of this word, and an empty RDMA
// Write behind it. It returns the Reply's word.
func (r *rig) asks(first, second uint16) (a, b uint16) {
	r.says(aFrame(requestKey, bitCRC|bitEnhanced, 2, aWord(first, second, "")))
	f := r.hears()
	require.Zero(r.t, f.flags&bitReject, "the Reply rejects")
	r.established(withCRC)
	r.send(aWrite(0, 0, nil))
	return f.word()
}

// answers is a whole startup with an enhanced Reply of this word. It returns the
// Request's.
func (r *rig) answers(first, second uint16) (a, b uint16) {
	a, b = r.hears().word()
	r.says(aFrame(replyKey, bitCRC|bitEnhanced, 2, aWord(first, second, "")))
	r.established(withCRC)
	return a, b
}

// fails says that the side under test has given the connection up, and that its
// queue pair is as before.
func (r *rig) fails() upper.Connection {
	c := r.connected()
	require.NotEmpty(r.t, c.Failed, "the startup of the side under test: %+v", c)
	r.state(verbs.StateIdle)
	return c
}

// works says that a Send and an RDMA Write or Read go each way. The queue pair's
// next Send has this MSN.
func (r *rig) works(msn uint32) {
	b := r.region(64, allRights)
	mine := func() {
		r.post(verbs.Request{ID: 11, SGL: b.sgl(0, 5)})
		r.expect(aSend(msn, b.first[:5]))
		r.completionsOf(r.SendCQ, verbs.Completion{ID: 11})
	}
	if r.play == conformance.Responder {
		mine()
	}
	r.postRecv(verbs.Recv{ID: 12, SGL: b.sgl(8, 8)})
	r.sendMessage([]byte("received"))
	r.completionsOf(r.RecvCQ, verbs.Completion{ID: 12, Op: verbs.OpRecv, Bytes: 8})
	b.gets(8, []byte("received"))
	r.send(aWrite(b.tag(), b.at(20), []byte("written")))
	b.gets(20, []byte("written"))
	same(r.t, b.first, r.fetch(b, 0, 64), "what the peer reads")
	b.unchanged()
	if r.play == conformance.Initiator {
		mine()
	}
}

// keepsORD posts more RDMA Reads than ord: exactly that many are outstanding at a
// time.
func (r *rig) keepsORD(ord int) {
	b := r.region(64, allRights)
	for i := range ord + 3 {
		r.post(verbs.Request{ID: uint64(i), Op: verbs.OpRead, Local: b.sge(i, 1), Remote: verbs.Remote{STag: 7, TO: uint64(i)}})
	}
	request := func(i int) []byte {
		return aReadRequest(uint32(i+1), read{b.tag(), b.at(i), 1, 7, uint64(i)})
	}
	for i := range ord {
		r.expect(request(i))
	}
	r.settled()
	for i := range 3 {
		r.send(aReadResponse(b.tag(), b.at(i), []byte{0xA0}))
		b.gets(i, []byte{0xA0})
		r.expect(request(ord + i))
		r.settled()
	}
	r.completions(
		verbs.Completion{ID: 0, Op: verbs.OpRead}, verbs.Completion{ID: 1, Op: verbs.OpRead}, verbs.Completion{ID: 2, Op: verbs.OpRead},
	)
	b.unchanged()
}

// keepsIRD sends as many RDMA Read Requests as ird, of which the first cannot be
// answered whole, and one too many: that ends the stream.
func (r *rig) keepsIRD(ird int) {
	const size = 8 << 20 // more than TCP takes for a peer that does not read
	b := r.region(size, allRights)
	for i := range ird {
		n := either(i == 0, size, uint32(0))
		r.send(aReadRequest(r.nextRead(), read{nowhere, 0, n, b.tag(), b.at(0)}))
	}
	more := aReadRequest(r.nextRead(), read{nowhere, 0, 0, 0, 0})
	r.send(more)
	r.events(verbs.EventIRRQTooMany) // before anything is read
	r.eventuallyTerminated(0x1202, more, false)
	r.ended(verbs.StateError)
}

// rtrKind says what kind of ready-to-receive frame a ULPDU is: 1 an empty Send, 2 an
// empty RDMA Write, 4 an RDMA Read Request for nothing; 0 for none.
func rtrKind(u []byte) int {
	switch {
	case len(u) == 18 && string(u) == string(aSend(1, nil)):
		return 1
	case len(u) == 14 && u[0] == lastTagged && u[1] == opWrite:
		return 2
	case len(u) == 46 && string(u[:18]) == string(aReadRequest(1, read{})[:18]) && string(u[30:34]) == "\x00\x00\x00\x00":
		return 4
	}
	return 0
}
