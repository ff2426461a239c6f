package cases

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5044_7_1_2 is the rules of the startup: RFC 5044 7.1.2.
var r5044_7_1_2 = []conformance.Case{
	upperCase("7.1.2/responder-waits", responderWaits, "R5044-7.1.2-M2"),
	upperCase("7.1.2/initiator-waits", initiatorWaits, "R5044-7.1.2-M1", "R5044-7.1.2-M5"),
	upperCase("7.1.2/malformed-request", malformedRequest, "R5044-7.1.2-M3", "R5044-7.1.2-M9"),
	upperCase("7.1.2/malformed-reply", malformedReply, "R5044-7.1.2-M6", "R5044-7.1.2-M9"),
	upperCase("7.1.2/same-role", sameRole, "R5044-7.1.2-M10"),
	upperCase("7.1.2/rejected", rejectedStartup, "R5044-7.1.2-M7"),
	upperCase("7.1.2/responder-sends-second", sendsSecond, "R5044-7.1.2-M8"),
	upperCase("7.1.2/responder-silent-on-bad-first", badFirst, "R5044-7.1.2-M8"),
}

// unconnected says that the startup is not over for the queue pair's program.
func (r *rig) unconnected() {
	var c uppertester.Connection
	require.Error(r.t, r.up.Connected(uppertester.Wait{Of: r.QP, Timeout: shortWait}, &c), "the startup is over: %+v", c)
	r.state(verbs.StateIdle)
}

// responderWaits: without a whole Request there is no octet from a Responder.
func responderWaits(t *conformance.T) {
	frame := requestFrame(frameC|frameM, 1, []byte("private data"))
	for n := range inTurn(t, "%d octets of the Request", []int{0, 1, 16, 19, 20, len(frame) - 1}) {
		r := beginMPA(t, setup{play: conformance.Initiator})
		r.posts(r.region(8, allRights), 8)
		if n > 0 {
			r.raw(frame[:n])
		}
		r.mute()
		r.unconnected()
		r.raw(frame[n:])
		require.Equal(t, replyFrame(frameC, 1, nil), r.frame(), "the Reply")
		r.full(frameC | frameM)
		r.state(verbs.StateRTS)
	}
}

// initiatorWaits: an Initiator sends its Request unasked, and then nothing until it
// has a whole Reply.
func initiatorWaits(t *conformance.T) {
	frame := replyFrame(frameC, 1, []byte("private data"))
	for n := range inTurn(t, "%d octets of the Reply", []int{0, 1, 16, 19, 20, len(frame) - 1}) {
		r := beginMPA(t, setup{play: conformance.Responder})
		b := r.region(8, allRights)
		r.posts(b, 8)
		require.Equal(t, requestFrame(frameC, 1, nil), r.frame(), "the Request")
		if n > 0 {
			r.raw(frame[:n])
		}
		r.mute()
		r.unconnected()
		r.incomplete()
		r.raw(frame[n:])
		r.full(frameC)
		r.state(verbs.StateRTS)
		r.expect(aSend(1, b.first))
	}
}

// noFrame is a startup frame that is none.
type noFrame struct {
	what  string
	frame []byte
	end   bool // the peer closes behind it
	why   string
}

// noFrames are frames that are malformed in every way that the RFCs name.
func noFrames(key string) []noFrame {
	long := make([]byte, 513)
	return []noFrame{
		{"a wrong key", startupFrame("MPA ID Rex Frame", frameC, 1, 0, nil), false, badFrame},
		{"a key in small letters", startupFrame("mpa id req frame", frameC, 1, 0, nil), false, badFrame},
		{"a key of zeros", make([]byte, 20), false, badFrame},
		{"an FPDU", unhexed("0012 4143 00000000 00000000 00000001 00000000 587be8c4"), false, badFrame},
		{"private data that is too long", startupFrame(key, frameC, 1, 513, long), false, badFrame},
		{"revision 0", startupFrame(key, frameC, 0, 0, nil), false, badFrame},
		{"revision 3", startupFrame(key, frameC, 3, 0, nil), false, badFrame},
		{"no room for the enhanced word", startupFrame(key, frameC|frameS, 2, 3, long[:3]), false, badFrame},
		{"nothing", nil, true, lostTCP},
		{"half a key", []byte(key[:8]), true, lostTCP},
		{"half a frame", startupFrame(key, frameC, 1, 0, nil)[:19], true, lostTCP},
		{"half of its private data", startupFrame(key, frameC, 1, 16, long[:8]), true, lostTCP},
	}
}

// malformedRequest: the TCP connection is closed without an answer, and the program
// is told.
func malformedRequest(t *conformance.T) {
	for x := range inTurn(t, "%s", noFrames("MPA ID Req Frame")) {
		r := beginMPA(t, setup{play: conformance.Initiator, far: uppertester.ConnectArgs{Rev: 2}})
		if len(x.frame) > 0 {
			r.raw(x.frame)
		}
		if x.end {
			r.shut()
		}
		r.refused(x.why)
	}
}

// malformedReply is the same for an Initiator, which sends no FPDU either.
func malformedReply(t *conformance.T) {
	for x := range inTurn(t, "%s", noFrames("MPA ID Rep Frame")) {
		rev := uint8(1) // so that a good Reply is one without the enhanced word
		if len(x.frame) > 16 && x.frame[16]&frameS != 0 {
			rev = 2
		}
		r := beginMPA(t, setup{play: conformance.Responder, far: uppertester.ConnectArgs{Rev: rev}})
		r.posts(r.region(8, allRights), 8)
		r.frame()
		if len(x.frame) > 0 {
			r.raw(x.frame)
		}
		if x.end {
			r.shut()
		}
		r.refused(x.why)
		r.incomplete()
	}
}

// sameRole: each side gets a frame of its own kind.
func sameRole(t *conformance.T) {
	t.Part("two Initiators")
	r := beginMPA(t, setup{play: conformance.Responder})
	r.posts(r.region(8, allRights), 8)
	r.frame()
	r.raw(requestFrame(frameC, 1, nil))
	r.refused("both sides have the same role")

	t.Part("two Responders")
	r = beginMPA(t, setup{play: conformance.Initiator})
	r.raw(replyFrame(frameC, 1, nil))
	r.refused("both sides have the same role")

	t.Part("two Responders, which wait")
	r = beginMPA(t, setup{play: conformance.Initiator, far: uppertester.ConnectArgs{Timeout: 50 * time.Millisecond}})
	r.refused("deadline exceeded")
}

// rejectedStartup refuses an Initiator: its program has the private data, and there
// is no FPDU.
func rejectedStartup(t *conformance.T) {
	for n := range inTurn(t, "private data of %d octets", []int{0, 1, 512}) {
		r := beginMPA(t, setup{play: conformance.Responder})
		r.posts(r.region(8, allRights), 8)
		r.frame()
		data := uppertester.Pattern(5, n)
		r.raw(replyFrame(frameC|frameR, 1, data))
		r.silent() // cm.Dial closes in order: it made the connection
		c := r.connected()
		require.True(t, c.Rejected, "what the program is told: %+v", c)
		same(t, data, c.PrivateData, "the private data")
		r.state(verbs.StateIdle)
		r.incomplete()
	}
}

// sendsSecond: what a Responder has to send waits for a whole good FPDU of any kind. One without CRC and markers
// may be received where its payload belongs, if that is long.
func sendsSecond(t *conformance.T) {
	for flags := range inTurn(t, "flags %02x", []byte{frameC, frameC | frameM, 0, frameM}) {
		for _, message := range named(t, "%s", map[string]func(long *buffer) []byte{
			"an RDMA Write of nothing": func(*buffer) []byte { return aWrite(0, 0, nil) },
			"a Send":                   func(*buffer) []byte { return aSend(1, []byte("hello")) },
			"an RDMA Read of nothing":  func(*buffer) []byte { return aReadRequest(1, read{nowhere, nowhereTO, 0, 0, 0}) },
			"a long RDMA Write":        func(long *buffer) []byte { return aWrite(long.tag(), long.at(0), make([]byte, 20000)) },
		}) {
			r := beginMPA(t, setup{play: conformance.Initiator, far: uppertester.ConnectArgs{NoCRC: flags&frameC == 0}})
			b, first := r.region(8, allRights), message(r.region(20000, allRights))
			r.recv(1, 8)
			r.posts(b, 8) // before there is a stream
			r.raw(requestFrame(flags, 1, nil))
			r.frame()
			r.full(flags)
			r.posts(b, 4) // and in RTS
			r.mute()
			f := r.out.fpdu(first)
			begun := min(60, len(f)/2)
			for _, part := range [][]byte{f[:begun], f[begun : len(f)-1]} {
				r.raw(part)
				r.mute()
			}
			r.raw(f[len(f)-1:])
			var got [][]byte
			for range 2 {
				u := r.next()
				if u[1] == opReadResponse {
					u = r.next()
				}
				got = append(got, u)
			}
			require.Equal(t, [][]byte{aSend(1, b.first), aSend(2, b.first[:4])}, got)
		}
	}
}

// badFirst: a first FPDU that is not good opens nothing: there is no Terminate
// Message either.
func badFirst(t *conformance.T) {
	for _, x := range named(t, "%s", map[string]struct {
		twist twist
		event verbs.EventID
	}{
		"a wrong CRC":      {twist{crc: func(good uint32) uint32 { return good ^ 0x100 }}, verbs.EventBadCRC},
		"a wrong marker":   {twist{pointer: func(uint16) uint16 { return 64 }}, verbs.EventBadFPDU},
		"a length too far": {twist{longer: 65000}, verbs.EventBadFPDU},
	}) {
		for flags := range inTurn(t, "flags %02x", []byte{frameC, frameC | frameM}) {
			r := beginMPA(t, setup{play: conformance.Initiator, far: uppertester.ConnectArgs{Markers: true}})
			r.posts(r.region(8, allRights), 8)
			r.recv(1, 8)
			r.raw(requestFrame(flags, 1, nil))
			r.frame()
			r.full(flags)
			r.twisted([]byte("first"), x.twist)
			r.closed()
			r.shut()
			r.ended(verbs.StateError)
			r.events(x.event)
			all := r.poll(r.SendCQ, 2, r.patience()) // of both queues
			require.Len(t, all, 2)
			for _, c := range all {
				require.Equal(t, verbs.StatusFlushed, c.Status, "%+v", c)
			}
		}
	}
}
