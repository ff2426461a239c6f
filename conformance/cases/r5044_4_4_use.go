package cases

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// r5044_4_4_use is whether there is a CRC: RFC 5044 1.2, 4.4 and 7.1.1.
var r5044_4_4_use = []conformance.Case{
	upperCase("4.4/crc-by-default", eachRole(crcByDefault), "R5044-1.2-M2", "R5044-4.4-M4"),
	upperCase("4.4/both-without-crc", eachRole(bothWithoutCRC),
		"R5044-4.1-M3", "R5044-4.4-M2", "R5044-4.4-M3", "R5044-4.4-M7", "R5044-4.4-M8", "R5044-7.1.1-M10",
		"R5044-7.1.1-M12"),
	upperCase("4.4/one-asks-for-crc", oneAsksForCRC, "R5044-4.4-M6", "R5044-7.1.1-M11", "R5044-C.1-M2"),
	upperCase("4.4/program-does-not-notice", crcUnnoticed, "R5044-4.4-M5"),
}

// crcByDefault: who says nothing about CRCs has C=1 in its frame, and makes and
// checks CRCs, though the peer's C is 0.
func crcByDefault(t *conformance.T, play conformance.Role) {
	r := mpaOpen(t, mpaSetup{play: play, noCRC: true})
	require.Equal(t, byte(frameC), r.theirs[16], "the flags of its frame")
	require.True(t, r.told.CRC, "what the program is told")
	b := r.region(3000, allRights)
	r.posts(b, 3000)
	r.wholeMessage(aSend(1, nil), b.first)
	r.completions(verbs.Completion{ID: 1, Op: verbs.OpSend})
	buffers := r.recv(1, 8)
	r.twisted([]byte("x"), twist{crc: func(uint32) uint32 { return 0 }})
	r.terminated(0x2002)
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
		r := mpaOpen(t, mpaSetup{play: play, noCRC: true, far: upper.ConnectArgs{NoCRC: true}, quiet: true})
		require.Zero(t, r.theirs[16], "the flags of its frame")
		require.False(t, r.told.CRC, "what the program is told")
		buffers := r.recv(3, 600)
		for i, n := range []int{0, 1, 600} {
			data := upper.Pattern(uint8(i), n)
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
				r := mpaOpen(t, mpaSetup{play: play, noCRC: !x.mine, far: upper.ConnectArgs{NoCRC: !x.its}})
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
				r.terminated(0x2002)
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
		r := mpaOpen(t, mpaSetup{noCRC: !crc, far: upper.ConnectArgs{NoCRC: !crc}})
		require.Equal(t, crc, r.told.CRC)
		b := r.register(upper.RegisterArgs{Len: 256, Access: allRights, Seed: 42})
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
		r.silent()
		r.shut()
		q := r.ended(verbs.StateError)
		require.NotNil(t, q.Terminate)
		var e upper.Events
		require.NoError(t, r.up.Events(upper.EventsArgs{}, &e))
		log += fmt.Sprintf("%v % x %v\n% x\n% x", q.State, q.Terminate.Raw, len(e.Events), b.memory(), u)
		seen = append(seen, log)
	}
	require.Equal(t, seen[0], seen[1], "what the program sees with CRC and without")
	require.Contains(t, seen[0], "Bytes:0x3", "the completions")
}
