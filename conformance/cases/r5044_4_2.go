package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5044_4_2 is the markers that are received: RFC 5044 4.2 and 4.3.
var r5044_4_2 = []conformance.Case{
	upperCase("4.2/reserved-half-received", eachRole(reservedHalf), "R5044-4.2-M2"),
	upperCase("4.2/pointer-low-bits", pointerLowBits, "R5044-4.2-M4", "R5044-4.3-M6"),
	upperCase("4.3/pointer-elsewhere", pointerElsewhere, "R5044-6-M2", "R5044-4.3-M6"),
	upperCase("4.3/leading-marker-under-crc", eachRole(leadingMarker), "R5044-4.3-M5"),
	upperCase("4.4/crc-over-markers", crcOverMarkers, "R5044-4.4-M10"),
	upperCase("4.3/boundaries-kept", eachRole(boundariesKept), "R5044-4.3-M11"),
	upperCase("4.3/ulpdu-alone-goes-up", ulpduAlone, "R5044-4.3-M12", "R5044-3-M6"),
}

// marked is a stream on which the queue pair has asked for markers, with receives of
// 1600 octets.
func marked(t *conformance.T, play conformance.Role, receives int) (*rig, []*buffer) {
	r := openMPA(t, setup{play: play, far: uppertester.ConnectArgs{Markers: true}, quiet: true})
	require.NotZero(t, r.theirs[16]&frameM, "its M")
	buffers := r.recv(receives, 1600)
	return r, buffers
}

// reservedHalf sends markers whose first half is not zero: only the CRC counts it.
func reservedHalf(t *conformance.T, play conformance.Role) {
	for half := range inTurn(t, "reserved %04x", []uint16{0xFFFF, 0x0001, 0x8000}) {
		r, b := marked(t, play, 4)
		data := uppertester.Pattern(5, 1500)
		for i := range 3 {
			r.twisted(data, twist{reserved: half})
			r.completions(r.got(uint64(i+1), 1500))
			b[i].holds(0, data)
		}
		r.twisted(data, twist{reserved: half, blind: true})
		r.tornDown(0x2002, nil, false)
		r.events(verbs.EventBadCRC)
		b[3].unchanged()
	}
}

// pointerLowBits sends markers whose pointers are not multiples of four, ahead of
// an FPDU and within.
func pointerLowBits(t *conformance.T) {
	for _, play := range bothRoles {
		r, b := marked(t, play, 9)
		data := uppertester.Pattern(6, 1500)
		for i := range 9 {
			low := uint16(i%3 + 1)
			t.Part("the peer is the %s, low bits %d", play, low)
			r.twisted(data, twist{pointer: func(ptr uint16) uint16 { return ptr | low }})
			r.completions(r.got(uint64(i+1), 1500))
			b[i].holds(0, data)
		}
	}
}

// pointerElsewhere sends FPDUs of 1500 octets, the first of the stream or another,
// in which one of the markers leads elsewhere. The CRC is right. The same with a
// wrong CRC is that.
func pointerElsewhere(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what  string
		which int // of the markers
		to    func(ptr uint16) uint16
	}{
		{"the leading one four octets back", 0, func(uint16) uint16 { return 4 }},
		{"the first within by four less", 1, func(p uint16) uint16 { return p - 4 }},
		{"the first within by four more", 1, func(p uint16) uint16 { return p + 4 }},
		{"the first within nowhere", 1, func(uint16) uint16 { return 0 }},
		{"the second by four more", 2, func(p uint16) uint16 { return p + 4 }},
		{"the second to the first", 2, func(uint16) uint16 { return 512 }},
		{"the second far away", 2, func(uint16) uint16 { return 0xFFFC }},
	}) {
		for before := range inTurn(t, "%d octets before", []int{0, 200}) { // octets of a good Send before it
			if before > 0 && x.which == 0 {
				continue // no marker leads
			}
			for badCRC := range inTurn(t, "bad CRC: %v", []bool{false, true}) {
				r, b := marked(t, conformance.Either, 2)
				n := 0 // markers of the bad FPDU so far
				if before > 0 {
					r.sendMessage(b[0].first[:before])
					r.completions(r.got(1, before))
					n = 1 // none leads
				}
				bad := twist{pointer: func(p uint16) uint16 {
					n++
					if n-1 == x.which {
						return x.to(p)
					}
					return p
				}}
				code, event := uint16(0x2003), verbs.EventBadFPDU
				if badCRC {
					bad.crc = func(good uint32) uint32 { return good ^ 1 }
					code, event = 0x2002, verbs.EventBadCRC
				}
				r.twisted(uppertester.Pattern(7, 1500), bad)
				if before == 0 && r.play == conformance.Initiator {
					r.silent() // the gate of RFC 5044 7.1.2 is closed
				} else {
					r.terminated(code, nil, false)
				}
				r.shut()
				r.ended(verbs.StateError)
				r.events(event)
				b[0].unchanged()
				b[1].unchanged()
			}
		}
	}
}

// leadingMarker sends an FPDU right behind a marker, at the start of the stream and
// at octet 512: its CRC is over the marker too, or it is wrong. Those that are sent
// are looked at likewise.
func leadingMarker(t *conformance.T, play conformance.Role) {
	r := openMPA(t, setup{play: play, flags: frameM, far: uppertester.ConnectArgs{Markers: true}, quiet: true})
	b := r.recv(3, 512)
	// 4 of the marker, and 508 of an FPDU: 2, 18, 484, no pad, 4.
	whole := make([]byte, 484)
	r.sendMessage(whole)
	require.Equal(t, 512, r.out.at)
	r.completions(r.got(1, 484))
	r.sendMessage([]byte("abc"))
	r.completions(r.got(2, 3))
	b[1].holds(0, []byte("abc"))

	r.posts(b[0], 484, 3)
	for i := range 2 {
		f := r.take() // the CRC is right over all of it
		require.Equal(t, 512*i, f.at)
		require.Equal(t, []mpaMarker{{512 * i, 0, 0}}, f.marks)
	}

	// The same with a CRC that begins at the length field.
	for at := range 2 {
		t.Part("the peer is the %s, without the marker at %d", play, 512*at)
		r, b := marked(t, play, 2)
		if at > 0 {
			r.sendMessage(whole)
			r.completions(r.got(1, 484))
			b[0].gets(0, whole)
		}
		plain := mpaLane{crc: true}
		f := plain.fpdu(aSend(uint32(at+1), []byte("abc")))
		r.raw(append([]byte{0, 0, 0, 0}, f...))
		if at == 0 && play == conformance.Initiator {
			r.silent() // the gate of RFC 5044 7.1.2 is closed
		} else {
			r.terminated(0x2002, nil, false)
		}
		r.shut()
		r.ended(verbs.StateError)
		r.events(verbs.EventBadCRC)
		b[at].unchanged()
	}
}

// crcOverMarkers flips one bit in each part of an FPDU that has a marker ahead of
// it, or inside, or between pad and CRC, or none.
func crcOverMarkers(t *conformance.T) {
	for x := range inTurn(t, "a marker %s", []struct {
		what    string
		before  int // payload of a Send that goes first
		payload int
		marker  int // where in the FPDU, -1 for nowhere
		parts   map[string]int
	}{
		{"ahead", 484, 3, 0, map[string]int{"marker": 2, "header": 8, "payload": 25, "pad": 27, "CRC": 29}},
		{"inside", 440, 41, 44, map[string]int{"header": 3, "payload": 30, "marker": 46, "CRC": 70}},
		{"between pad and CRC", 460, 1, 24, map[string]int{"header": 3, "pad": 22, "marker": 27, "CRC": 28}},
		{"nowhere", 4, 1, -1, map[string]int{"header": 3, "payload": 20, "pad": 23, "CRC": 26}},
	}) {
		for _, off := range named(t, "a bit of the %s", x.parts) {
			r, b := marked(t, conformance.Either, 3)
			data := make([]byte, x.before)
			r.sendMessage(data)
			r.completions(r.got(1, x.before))
			b[0].gets(0, data)
			if at := r.out.at; x.marker >= 0 {
				require.Zero(t, (at+x.marker)%512, "the place of the marker")
			}
			bad := r.out.fpdu(r.aSend(b[1].first[:x.payload]))
			bad[off] ^= 0x10
			r.raw(bad)
			r.tornDown(0x2002, nil, false)
			r.events(verbs.EventBadCRC)
			b[1].unchanged()
		}
	}
}

// boundariesKept packs many FPDUs with markers into one write, and cuts one into
// many: there are as many segments as were sent, each of its length.
func boundariesKept(t *conformance.T, play conformance.Role) {
	r, b := marked(t, play, 21)
	var all []byte
	var want []verbs.Completion
	for i := range 20 {
		n := 37 * i % 300
		all = append(all, r.out.fpdu(r.aSend(uppertester.Pattern(uint8(i), n)))...)
		want = append(want, r.got(uint64(i+1), n))
	}
	r.raw(all)
	r.completions(want...)
	for i := range 20 {
		b[i].holds(0, uppertester.Pattern(uint8(i), 37*i%300))
	}
	data := uppertester.Pattern(77, 1500)
	f := r.out.fpdu(r.aSend(data))
	for len(f) > 0 {
		n := min(len(f), 80)
		r.raw(f[:n])
		f = f[n:]
	}
	r.completions(r.got(21, 1500))
	b[20].holds(0, data)
}

// ulpduAlone sends payloads of up to 2000 octets to a region, at every place
// relative to the markers: there are these octets, and those behind are as before.
func ulpduAlone(t *conformance.T) {
	r, _ := marked(t, conformance.Either, 1)
	b := r.region(2100, allRights)
	places := map[int]bool{}
	for i := range 128 {
		n := (i * 61) % 2001
		t.Part("an RDMA Write of %d octets at stream octet %d", n, r.out.at)
		places[r.out.at%512] = true
		data := uppertester.Pattern(uint8(i+1), n)
		r.send(aWrite(b.tag(), b.at(50), data))
		r.settled()
		b.holds(50, data)
	}
	require.Greater(t, len(places), 60, "places where FPDUs began")
}
