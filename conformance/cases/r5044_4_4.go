package cases

import (
	"bytes"
	"math/bits"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
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
	first := mpaOpen(t, mpaSetup{play: play, flags: frameM})
	b := first.zeros(512)
	first.posts(b, 24)
	require.Equal(t, unhexed(figure5), first.take().octets, "figure 5")

	r := mpaOpen(t, mpaSetup{play: play, flags: frameM})
	b = r.zeros(512)
	r.posts(b, ahead, 24)
	r.expect(aSend(1, make([]byte, ahead)))
	require.Equal(t, figure6At, r.in.at)
	require.Equal(t, unhexed(figure6), r.take().octets, "figure 6")
}

// zeros is a region of zeros.
func (r *mpaRig) zeros(n int) *buffer {
	b := r.region(n, allRights)
	require.NoError(r.t, r.up.Fill(upper.FillArgs{Region: b.Region.Region, Octets: make([]byte, n)}, &upper.None{}))
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
		r.terminated(0x2002)
		r.failed(verbs.EventBadCRC, 2)
		b[0].unchanged()
	}
}

// mismatchCondemns changes one bit, anywhere behind the length, in FPDUs of each
// kind: nothing of them has an effect, and they are not answered.
func mismatchCondemns(t *conformance.T, play conformance.Role) {
	for _, ulpdu := range named(t, "%s", map[string]func(r *mpaRig, region, sink *buffer) []byte{
		"a Send": func(r *mpaRig, _, _ *buffer) []byte { return r.message([]byte("message")) },
		"a Send with Invalidate": func(_ *mpaRig, region, _ *buffer) []byte {
			return aSendInv(1, region.tag(), []byte("message"))
		},
		"an RDMA Write": func(_ *mpaRig, region, _ *buffer) []byte {
			return aWrite(region.tag(), region.at(0), []byte("written"))
		},
		"an RDMA Read Request": func(_ *mpaRig, region, _ *buffer) []byte {
			return aReadRequest(1, read{nowhere, nowhereTO, 8, region.tag(), region.at(0)})
		},
		"an RDMA Read Response": func(_ *mpaRig, _, sink *buffer) []byte {
			return aReadResponse(sink.tag(), sink.at(0), []byte("response"))
		},
	}) {
		r := mpaOpen(t, mpaSetup{play: play, qp: upper.OpenArgs{SendCQ: 1, RecvCQ: 2}})
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
		r.tornDown(0x2002)
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
			r := mpaOpen(t, mpaSetup{})
			if badCRC {
				r.raw(r.out.twisted(x.ulpdu, twist{crc: func(good uint32) uint32 { return good ^ 0x80 }}))
				r.terminated(0x2002)
				r.failed(verbs.EventBadCRC, 0)
				continue
			}
			fault := either(x.bare, nil, x.ulpdu)
			r.send(x.ulpdu)
			r.terminatedFor(x.code, fault)
			r.failed(x.event, 0)
		}
	}
	// Of a CRC and a marker that are wrong, the CRC counts: pointerElsewhere.
	r, b := marked(t, conformance.Either, 1)
	r.send(aWrite(0, 0, nil))
	r.twisted(bytes.Repeat([]byte{1}, 900), twist{
		pointer: func(uint16) uint16 { return 8 }, crc: func(good uint32) uint32 { return ^good },
	})
	r.terminated(0x2002)
	r.failed(verbs.EventBadCRC, 1)
	b[0].unchanged()
}
