package cases

import (
	"bytes"
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

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
