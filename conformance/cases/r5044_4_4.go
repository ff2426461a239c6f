package cases

import (
	"bytes"
	"fmt"
	"math/bits"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5044_4_4 is the CRC, computed and checked: RFC 5044 4.4 and 6.
var r5044_4_4 = []conformance.Case{
	upperCase("4.4/figures-sent", eachRole(figuresSent), "R5044-4.4-M1", "R5044-4.4-M9", "R5044-4.4-M10", "R5044-4.3-M5"),
	upperCase("4.4/figures-received", eachRole(figuresReceived), "R5044-4.4-M1", "R5044-4.4-M9"),
	upperCase("4.4/mismatch-condemns", eachRole(mismatchCondemns), "R5044-4.4-M12"),
	upperCase("4.4/crc-before-all-else", crcFirst, "R5044-4.4-M11", "R5044-6-M2"),
}

// figure5 and figure6 are the FPDUs that RFC 5044 4.4 shows: Sends of 24 zeros, one
// right behind the first marker, and one with a marker inside.
const (
	figure5 = "00000000 002a 4143 00000000 00000000 00000001 00000000" +
		"000000000000000000000000000000000000000000000000 52239983"
	figure6 = "002a 4143 00000000 00000000 00000002 00000000 00000014" +
		"000000000000000000000000000000000000000000000000 84925898"
	// figure6At is where figure 6 begins in the stream, and ahead what a Send
	// before it has to carry.
	figure6At = 0x1EC
	ahead     = 464
)

// figuresSent has the queue pair send what the figures show.
func figuresSent(t *conformance.T, play conformance.Role) {
	first := openMPA(t, setup{play: play, flags: frameM})
	b := first.zeros(512)
	first.posts(b, 24)
	require.Equal(t, unhexed(figure5), first.take().octets, "figure 5")

	r := openMPA(t, setup{play: play, flags: frameM})
	b = r.zeros(512)
	r.posts(b, ahead, 24)
	r.expect(aSend(1, make([]byte, ahead)))
	require.Equal(t, figure6At, r.in.at)
	require.Equal(t, unhexed(figure6), r.take().octets, "figure 6")
}

// zeros is a region of zeros.
func (r *rig) zeros(n int) *buffer {
	b := r.region(n, allRights)
	require.NoError(r.t, r.up.Fill(uppertester.FillArgs{Region: b.Region.Region, Octets: make([]byte, n)}, &uppertester.None{}))
	clear(b.first)
	return b
}

// figuresReceived sends the figures, and then figure 5 with the CRC in another order
// of octets or bits, or not the other way round: that is refused.
func figuresReceived(t *conformance.T, play conformance.Role) {
	r, b := marked(t, play, 1)
	r.raw(unhexed(figure5))
	r.completions(r.got(1, 24))
	b[0].holds(0, make([]byte, 24))

	r, b = marked(t, play, 2)
	r.sendMessage(make([]byte, ahead))
	r.raw(unhexed(figure6))
	r.completions(r.got(1, ahead), r.got(2, 24))
	b[1].holds(0, make([]byte, 24))

	for _, other := range named(t, "CRC %s", map[string]func(uint32) uint32{
		"octets the other way round": bits.ReverseBytes32,
		"bits the other way round":   bits.Reverse32,
		"the complement":             func(c uint32) uint32 { return ^c },
		"zero":                       func(uint32) uint32 { return 0 },
		"all ones":                   func(uint32) uint32 { return 0xFFFFFFFF },
	}) {
		r, b = marked(t, play, 2)
		r.send(aWrite(0, 0, nil))
		r.twisted(make([]byte, 24), twist{crc: other})
		r.terminated(0x2002, nil, false)
		r.failed(verbs.EventBadCRC, 2)
		b[0].unchanged()
	}
}

// mismatchCondemns changes one bit, anywhere behind the length, in FPDUs of each
// kind: nothing of them has an effect, and they are not answered.
func mismatchCondemns(t *conformance.T, play conformance.Role) {
	for _, ulpdu := range named(t, "%s", map[string]func(r *rig, region, sink *buffer) []byte{
		"a Send": func(r *rig, _, _ *buffer) []byte { return r.aSend([]byte("message")) },
		"a Send with Invalidate": func(_ *rig, region, _ *buffer) []byte {
			return aSendInv(1, region.tag(), []byte("message"))
		},
		"an RDMA Write": func(_ *rig, region, _ *buffer) []byte {
			return aWrite(region.tag(), region.at(0), []byte("written"))
		},
		"an RDMA Read Request": func(_ *rig, region, _ *buffer) []byte {
			return aReadRequest(1, read{nowhere, nowhereTO, 8, region.tag(), region.at(0)})
		},
		"an RDMA Read Response": func(_ *rig, _, sink *buffer) []byte {
			return aReadResponse(sink.tag(), sink.at(0), []byte("response"))
		},
	}) {
		r := openMPA(t, setup{play: play, qp: uppertester.OpenArgs{SendCQ: 1, RecvCQ: 2}})
		receive := r.recv(1, 64)[0]
		region, sink := r.region(64, allRights), r.region(64, allRights)
		r.post(verbs.Request{ID: 50, Op: verbs.OpRead, Local: sink.sge(0, 8), Remote: theirs})
		r.expect(aReadRequest(1, read{sink.tag(), sink.at(0), 8, uint32(theirs.STag), theirs.TO}))
		bad := r.out.fpdu(ulpdu(r, region, sink))
		at := 2 + t.Rand().IntN(len(bad)-2)
		bit := byte(1) << t.Rand().UintN(8)
		t.Logf("bit %02x of octet %d", bit, at)
		bad[at] ^= bit
		r.raw(bad)
		r.tornDown(0x2002, nil, false)
		r.events(verbs.EventBadCRC)
		r.completionsOf(r.RecvCQ, verbs.Completion{ID: 1, Op: verbs.OpRecv, Status: verbs.StatusFlushed})
		r.completionsOf(r.SendCQ, verbs.Completion{ID: 50, Op: verbs.OpRead, Status: verbs.StatusFlushed})
		receive.unchanged()
		region.unchanged()
		sink.unchanged()
		require.True(t, region.query().Valid, "the region")
	}
}

// crcFirst: what else is wrong with an FPDU whose CRC does not match is not looked
// at. With a right CRC it is.
func crcFirst(t *conformance.T) {
	for _, x := range named(t, "%s", map[string]struct {
		ulpdu []byte
		code  uint16
		bare  bool
		event verbs.EventID
	}{
		"an unknown STag":            {aWrite(0x5A5A00, 0, []byte("x")), 0x1100, false, verbs.EventProtSTag},
		"an unknown opcode":          {untagged(lastUntagged, 0x4F, 0, 0, 1, 0, nil), 0x0206, false, verbs.EventUnexpectedOpcode},
		"another DDP version":        {untagged(0x42, opSend, 0, 0, 1, 0, nil), 0x1206, false, verbs.EventDDPVersion},
		"a queue that there is not":  {untagged(lastUntagged, opSend, 0, 9, 1, 0, nil), 0x1201, false, verbs.EventInvalidQN},
		"no header":                  {[]byte{0xC1, opWrite}, 0x1000, true, verbs.EventSegmentSize},
		"a Terminate Message":        {aTerminate(0x1202, nil, false), 0, true, 0},
		"a Send without its receive": {aSend(1, []byte("x")), 0x1202, false, verbs.EventRQMSNRange},
	}) {
		for badCRC := range inTurn(t, "bad CRC: %v", []bool{true, false}) {
			if !badCRC && x.code == 0 {
				continue // it ends the stream
			}
			r := openMPA(t, setup{})
			if badCRC {
				r.raw(r.out.twisted(x.ulpdu, twist{crc: func(good uint32) uint32 { return good ^ 0x80 }}))
				r.terminated(0x2002, nil, false)
				r.failed(verbs.EventBadCRC, 0)
				continue
			}
			fault := either(x.bare, nil, x.ulpdu)
			r.send(x.ulpdu)
			r.terminated(x.code, fault, false)
			r.failed(x.event, 0)
		}
	}
	// Of a CRC and a marker that are wrong, the CRC counts: pointerElsewhere.
	r, b := marked(t, conformance.Either, 1)
	r.send(aWrite(0, 0, nil))
	r.twisted(bytes.Repeat([]byte{1}, 900), twist{
		pointer: func(uint16) uint16 { return 8 }, crc: func(good uint32) uint32 { return ^good },
	})
	r.terminated(0x2002, nil, false)
	r.failed(verbs.EventBadCRC, 1)
	b[0].unchanged()
}

// r5044_4_4_use is whether there is a CRC: RFC 5044 1.2, 4.4 and 7.1.1.
var r5044_4_4_use = []conformance.Case{
	upperCase("4.4/crc-by-default", eachRole(crcByDefault), "R5044-1.2-M2", "R5044-4.4-M4"),
	upperCase("4.4/both-without-crc", eachRole(bothWithoutCRC),
		"R5044-4.1-M3", "R5044-4.4-M2", "R5044-4.4-M3", "R5044-4.4-M7", "R5044-4.4-M8", "R5044-7.1.1-M10",
		"R5044-7.1.1-M12"),
	upperCase("4.4/one-asks-for-crc", oneAsksForCRC, "R5044-4.4-M6", "R5044-7.1.1-M11", "R5044-C.1-M2"),
	upperCase("4.4/program-does-not-notice", crcUnnoticed, "R5044-4.4-M5"),
}

// crcByDefault: a side that says nothing about CRCs has C=1 in its frame, and makes and
// checks CRCs, though the peer's C is 0.
func crcByDefault(t *conformance.T, play conformance.Role) {
	r := openMPA(t, setup{play: play, noCRC: true})
	require.Equal(t, byte(frameC), r.theirs[16], "the flags of its frame")
	require.True(t, r.told.CRC, "what the program is told")
	b := r.region(3000, allRights)
	r.posts(b, 3000)
	r.wholeMessage(aSend(1, nil), b.first)
	r.completions(verbs.Completion{ID: 1, Op: verbs.OpSend})
	buffers := r.recv(1, 8)
	r.twisted([]byte("x"), twist{crc: func(uint32) uint32 { return 0 }})
	r.terminated(0x2002, nil, false)
	r.failed(verbs.EventBadCRC, 1)
	buffers[0].unchanged()
}

// bothWithoutCRC: with C=0 in both frames the CRC field is there, and never looked
// at, from the first FPDU on.
func bothWithoutCRC(t *conformance.T, play conformance.Role) {
	for _, field := range named(t, "CRC fields: %s", map[string]func(uint32) uint32{
		"zeros": func(uint32) uint32 { return 0 },
		"ones":  func(uint32) uint32 { return 0xFFFFFFFF },
		"right": func(good uint32) uint32 { return good },
		"wrong": func(good uint32) uint32 { return good + 1 },
	}) {
		r := openMPA(t, setup{play: play, noCRC: true, far: uppertester.ConnectArgs{NoCRC: true}, quiet: true})
		require.Zero(t, r.theirs[16], "the flags of its frame")
		require.False(t, r.told.CRC, "what the program is told")
		buffers := r.recv(3, 600)
		for i, n := range []int{0, 1, 600} {
			data := uppertester.Pattern(uint8(i), n)
			r.twisted(data, twist{crc: field})
			r.completions(r.got(uint64(i+1), n))
			buffers[i].holds(0, data)
		}
		region := r.region(3000, allRights)
		r.raw(r.out.twisted(aWrite(region.tag(), region.at(1), []byte("written")), twist{crc: field}))
		r.settled()
		region.holds(1, []byte("written"))
		// Four octets are at the end of each FPDU that is sent, too.
		r.posts(region, 0, 1, 3000)
		at := r.in.at
		r.expect(aSend(1, nil), aSend(2, region.first[:1]))
		require.Equal(t, 2+18+0+4+2+18+1+3+4, r.in.at-at)
		r.wholeMessage(aSend(3, nil), region.first)
		r.unharmed()
	}
}

// oneAsksForCRC: C=1 in one frame turns CRCs on in both directions and for good.
func oneAsksForCRC(t *conformance.T) {
	for _, play := range bothRoles {
		for _, x := range []struct{ mine, its bool }{{true, false}, {false, true}, {true, true}} {
			for _, many := range []int{0, 10_000} {
				if many > 0 && (x.its || play == conformance.Responder) {
					continue // once is enough
				}
				t.Part("the peer is the %s with C %v, the queue pair has %v, %d FPDUs", play, x.mine, x.its, many)
				r := openMPA(t, setup{play: play, noCRC: !x.mine, far: uppertester.ConnectArgs{NoCRC: !x.its}})
				require.Equal(t, x.its, r.theirs[16]&frameC != 0, "its C")
				require.True(t, r.told.CRC, "what the program is told")
				b := r.region(64, allRights)
				r.posts(b, 64)
				r.expect(aSend(1, b.first)) // with a right CRC: take sees to it
				r.completions(verbs.Completion{ID: 1, Op: verbs.OpSend})
				const batch = 500
				for range many / batch {
					var all []byte
					for range batch {
						all = append(all, r.out.fpdu(aWrite(b.tag(), b.at(0), b.first[:1]))...)
					}
					r.raw(all)
					r.settled() // its answer has a right CRC
				}
				r.posts(b, 63)
				r.expect(aSend(2, b.first[:63]))
				r.completions(verbs.Completion{ID: 1, Op: verbs.OpSend})
				r.raw(r.out.twisted(aWrite(b.tag(), b.at(0), []byte("x")), twist{crc: func(good uint32) uint32 { return good ^ 1<<31 }}))
				r.terminated(0x2002, nil, false)
				r.failed(verbs.EventBadCRC, 0)
				b.unchanged()
			}
		}
	}
}

// crcUnnoticed has a program do the same things with and without CRC: what it sees
// is the same.
func crcUnnoticed(t *conformance.T) {
	var seen []string
	for crc := range inTurn(t, "CRC: %v", []bool{true, false}) {
		r := openMPA(t, setup{noCRC: !crc, far: uppertester.ConnectArgs{NoCRC: !crc}})
		require.Equal(t, crc, r.told.CRC)
		b := r.register(uppertester.RegisterArgs{Len: 256, Access: allRights, Seed: 42})
		for i := range uint64(3) {
			r.postRecv(verbs.Recv{ID: i, SGL: b.sgl(int(64*i), 64)})
		}
		r.sendMessage([]byte("one"))
		r.send(aSendInv(2, 0, nil)) // of no STag: refused below
		log := ""
		for _, c := range r.poll(r.RecvCQ, 3, r.patience()) {
			c.QP = 0
			log += fmt.Sprintf("%#v\n", c)
		}
		u := r.next()
		r.silent("the end of the stream")
		r.shut()
		q := r.ended(verbs.StateError)
		require.NotNil(t, q.Terminate)
		var e uppertester.Events
		require.NoError(t, r.up.Events(uppertester.EventsArgs{}, &e))
		log += fmt.Sprintf("%v % x %v\n% x\n% x", q.State, q.Terminate.Raw, len(e.Events), b.memory(), u)
		seen = append(seen, log)
	}
	require.Equal(t, seen[0], seen[1], "what the program sees with CRC and without")
	require.Contains(t, seen[0], "Bytes:0x3", "the completions")
}
