package cases

import (
	"bytes"
	"encoding/binary"

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

// r5044_4_3 is the markers that are sent: RFC 5044 4.2 and 4.3.
var r5044_4_3 = []conformance.Case{
	upperCase("4.3/first-marker", eachRole(firstMarker), "R5044-4.3-M1", "R5044-4.3-M7", "R5044-7.1.1-M6", "R5044-7.1.1-M7"),
	upperCase("4.3/marker-every-512-octets", eachRole(markerEvery512), "R5044-4.2-M1", "R5044-4.2-M2", "R5044-4.2-M3", "R5044-4.3-M2"),
	upperCase("4.3/marker-values", markerValues, "R5044-4.3-M3", "R5044-4.3-M8"),
	upperCase("4.3/markers-among-short-fpdus", eachRole(markersAmongShort), "R5044-4.3-M9", "R5044-4.3-M10"),
	upperCase("7.1.1/marker-bits", markerBits, "R5044-7.1.1-M5", "R5044-7.1.1-M8", "R5044-7.1.1-M9", "R5044-4.3-M1"),
}

// firstMarker: right behind the startup frames, whatever private data they carry,
// come four zeros and then a length field.
func firstMarker(t *conformance.T, play conformance.Role) {
	for private := range inTurn(t, "private data of %d octets", []int{0, 1, 2, 3, 100}) {
		data := uppertester.Pattern(9, private)
		r := beginMPA(t, setup{play: play, far: uppertester.ConnectArgs{PrivateData: data}})
		if play == conformance.Initiator {
			r.raw(requestFrame(frameC|frameM, 1, data))
			require.Equal(t, replyFrame(frameC, 1, data), r.frame(), "the Reply")
		} else {
			require.Equal(t, requestFrame(frameC, 1, data), r.frame(), "the Request")
			r.raw(replyFrame(frameC|frameM, 1, data))
		}
		r.full(frameC | frameM)
		require.True(t, r.told.MarkersOut, "what the program is told")
		if play == conformance.Initiator {
			r.send(aWrite(0, 0, nil))
		}
		b := r.region(1000, allRights)
		r.posts(b, 1, 1000)
		head := []byte{0, 0, 0, 0, 0, 19, 0x41, 0x43}
		require.Equal(t, head, r.octets(8), "the first octets")
		r.early = append(head, r.early...)
		r.expect(aSend(1, b.first[:1]), aSend(2, b.first))
	}
}

// markerEvery512 takes four octets away at each multiple of 512 in the raw stream,
// and reads the rest as if there had been no markers.
func markerEvery512(t *conformance.T, play conformance.Role) {
	r, b := openMPAWith(t, setup{play: play, flags: frameM}, 100<<10)
	r.post(
		verbs.Request{ID: 1, SGL: b.sgl(0, 33)},
		verbs.Request{ID: 2, Op: verbs.OpWrite, SGL: b.sgl(0, 100<<10), Remote: verbs.Remote{STag: 7, TO: 8}},
	)
	const n = 100 << 10 // the Write and its headers are longer
	stream := r.octets(n)
	var plain []byte
	for at := 0; at < n; at += 512 {
		m := stream[at : at+4]
		require.Equal(t, []byte{0, 0}, m[:2], "the reserved half of the marker at %d", at)
		require.Zero(t, m[3]&3, "the low bits of the marker at %d", at)
		plain = append(plain, stream[at+4:at+512]...)
	}
	// The CRCs are over the markers too: those are checked below.
	p := newPeer(t, nil, framing{})
	p.early = plain
	require.Equal(t, aSend(1, b.first[:33]), p.next())
	for off := 0; ; {
		whole := len(p.early) >= 2 && len(p.early) >= 8+int(binary.BigEndian.Uint16(p.early))
		if !whole {
			require.Greater(t, off, 50<<10, "octets of the Write that came in whole FPDUs")
			break
		}
		u := p.next()
		require.Equal(t, byte(0x40), u[1])
		require.True(t, bytes.Equal(b.first[off:off+len(u)-14], u[14:]), "the Write from %d on", off)
		off += len(u) - 14
	}
	r.early = append(append([]byte(nil), stream...), r.early...)
	r.expect(aSend(1, b.first[:33]))
	r.wholeMessage(aWrite(7, 8, nil), b.first)
}

// markerValues has messages begin at many places between two markers. The first is
// of 1454 octets, with three markers, as in the wire reference.
func markerValues(t *conformance.T) {
	for _, play := range bothRoles {
		r, b := openMPAWith(t, setup{play: play, flags: frameM}, 4096)
		var lengths []int
		for i := range 30 {
			lengths = append(lengths, 1436+4*(i%3), i%5)
		}
		r.posts(b, lengths...)
		starts := map[int]bool{}
		for i, n := range lengths {
			t.Part("the peer is the %s, Send %d of %d octets", play, i, n)
			f := r.take()
			require.Equal(t, aSend(uint32(i+1), b.first[:n]), f.ulpdu)
			if i == 0 {
				require.Equal(t, []mpaMarker{{0, 0, 0}, {512, 0, 0x01FC}, {1024, 0, 0x03FC}}, f.marks)
				require.Equal(t, unhexed("00000000 05AE 4143"), f.octets[:8])
			}
			inside := 0
			for _, m := range f.marks {
				if m.at > f.length { // ptr, the earlier markers included, leads back
					require.Equal(t, f.length, m.at-int(m.ptr), "where the marker at %d leads", m.at)
					inside++
				}
			}
			if n > 1400 {
				require.GreaterOrEqual(t, inside, 2, "markers of one FPDU")
				starts[f.length%512] = true
			}
		}
		require.Greater(t, len(starts), 20, "places between two markers where FPDUs began")
	}
}

// markersAmongShort: a marker amid FPDUs of 24 octets leads to the one that it
// stands in, and to nothing if it stands between two.
func markersAmongShort(t *conformance.T, play conformance.Role) {
	r, b := openMPAWith(t, setup{play: play, flags: frameM, qp: uppertester.OpenArgs{SendDepth: 512, CQEntries: 1024}}, 4)
	inside, between := 0, 0
	for i := range 260 { // 24*260 octets, and 13 markers
		r.posts(b, 0)
		f := r.take()
		require.Equal(t, aSend(uint32(i+1), nil), f.ulpdu)
		for _, m := range f.marks {
			if m.at == f.at {
				between++
				require.Zero(t, m.ptr, "a marker ahead of an FPDU, at %d", m.at)
				require.Equal(t, f.at+4, f.length, "the length field behind it")
				continue
			}
			inside++
			require.Less(t, int(m.ptr), 24, "the marker at %d", m.at)
			require.NotZero(t, m.ptr)
		}
	}
	require.Equal(t, [2]int{10, 3}, [2]int{inside, between}, "markers in FPDUs, and between them")
}

// markerBits: markers are in a direction exactly if its receiver has asked for them.
func markerBits(t *conformance.T) {
	for _, play := range bothRoles {
		for i := range 4 {
			mine, its := i&1 != 0, i&2 != 0
			t.Part("the peer is the %s and sets M: %v, the queue pair: %v", play, mine, its)
			var flags byte
			if mine {
				flags = frameM
			}
			r := openMPA(t, setup{play: play, flags: flags, far: uppertester.ConnectArgs{Markers: its}})
			require.Equal(t, its, r.theirs[16]&frameM != 0, "its M")
			require.Equal(t, [2]bool{mine, its}, [2]bool{r.told.MarkersOut, r.told.MarkersIn}, "what the program is told")
			b := r.region(5000, allRights)
			buffers := r.recv(3, 5000)
			for k, n := range []int{5000, 1, 3000} {
				data := uppertester.Pattern(uint8(k), n)
				if n > 1400 { // three segments are enough for some markers
					r.sends++
					r.send(
						untagged(moreUntagged, opSend, 0, 0, r.sends, 0, data[:1000]),
						untagged(moreUntagged, opSend, 0, 0, r.sends, 1000, data[1000:2001]),
						untagged(lastUntagged, opSend, 0, 0, r.sends, 2001, data[2001:]),
					)
				} else {
					r.sendMessage(data)
				}
				r.completions(r.got(uint64(k+1), n))
				buffers[k].holds(0, data)
				// What goes the other way is read with markers, or without.
				r.posts(b, n)
				r.wholeMessage(aSend(uint32(k+1), nil), b.first[:n])
				r.completions(verbs.Completion{ID: 1, Op: verbs.OpSend})
			}
			want := 5000 + 3000
			if mine {
				want += 4 * (want / 512)
			}
			require.GreaterOrEqual(t, r.in.at, want, "octets that came")
		}
	}
}
