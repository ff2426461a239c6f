package cases

import (
	"bytes"
	"encoding/hex"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5044_3 is what MPA gives to DDP, and the FPDU: RFC 5044 3 and 4.1.
var r5044_3 = []conformance.Case{
	upperCase("3/one-segment-each", eachRole(oneSegmentEach), "R5044-3-M1"),
	upperCase("3/ulpdus-delivered", eachRole(ulpdusDelivered), "R5044-3-M6", "R5044-4.1-M1"),
	upperCase("3/revision-told", revisionTold, "R5044-3-M7"),
	upperCase("3/largest-ulpdu-received", largestULPDU, "R5044-3-M5"),
	upperCase("4.1/fpdu-octets", fpduOctets, "R5044-4.1-M1", "R5044-4.4-M8", "PR-5044-4.1-M1"),
	upperCase("4.1/pad", padOctets, "R5044-4.1-M2", "PR-5044-4.1-M1"),
}

// unhexed is octets written in hexadecimal, with spaces.
func unhexed(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// oneSegmentEach has Sends, RDMA Writes and RDMA Reads posted in one list. Each FPDU
// holds one DDP segment with its header, and the payloads are what was posted.
func oneSegmentEach(t *conformance.T, play conformance.Role) {
	r, b := openMPAWith(t, setup{play: play}, 200_000)
	remote := verbs.Remote{STag: 0x55, TO: 0x6600}
	r.post(
		verbs.Request{ID: 1, SGL: b.sgl(0, 5)},
		verbs.Request{ID: 2, Op: verbs.OpWrite, SGL: b.sgl(1, 0), Remote: remote},
		verbs.Request{ID: 3, SGL: b.sgl(7, 0)},
		verbs.Request{ID: 4, Op: verbs.OpWrite, SGL: b.sgl(3, 150_001), Remote: remote},
		verbs.Request{ID: 5, Op: verbs.OpRead, Local: b.sge(0, 9), Remote: remote},
		verbs.Request{ID: 6, SGL: b.sgl(0, 150_003)},
	)
	r.expect(aSend(1, b.first[:5]), aWrite(0x55, 0x6600, nil), aSend(2, nil))
	r.wholeMessage(aWrite(0x55, 0x6600, nil), b.first[3:150_004])
	r.expect(aReadRequest(1, read{b.tag(), b.at(0), 9, 0x55, 0x6600}))
	r.wholeMessage(aSend(3, nil), b.first[:150_003])
}

// wholeMessage reads the segments of a message whose header, were it in one, is
// this: each has that with its own TO or MO, and the L bit is in the last.
func (r *rig) wholeMessage(header, want []byte) (lengths []int) {
	var got []byte
	for last := false; !last; {
		u := r.next()
		require.Greater(r.t, len(u), len(header), "a segment of % x", u)
		last = u[0]&0x40 != 0
		h := append([]byte(nil), header...)
		if !last {
			h[0] &^= 0x40
		}
		at := h[len(h)-4:] // the low half of a TO, or an MO
		off := uint32(at[0])<<24 | uint32(at[1])<<16 | uint32(at[2])<<8 | uint32(at[3])
		off += uint32(len(got))
		at[0], at[1], at[2], at[3] = byte(off>>24), byte(off>>16), byte(off>>8), byte(off)
		require.Equal(r.t, h, u[:len(h)], "the header of segment %d", len(lengths))
		got = append(got, u[len(h):]...)
		lengths = append(lengths, len(u))
	}
	same(r.t, want, got, "the message % x", header)
	return lengths
}

// ulpdusDelivered sends messages of each length modulo 4 and more: each receive has
// exactly its octets, and the number of them.
func ulpdusDelivered(t *conformance.T, play conformance.Role) {
	r := openMPA(t, setup{play: play})
	lengths := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 63, 64, 65, 66, 1000, 1397, 1398, 1399, 1400, 1499, 1500}
	buffers := r.recv(len(lengths), 1600)
	for i, n := range lengths {
		data := uppertester.Pattern(uint8(i+1), n)
		r.sendMessage(data)
		r.completions(r.got(uint64(i+1), n))
		buffers[i].holds(0, data)
	}
}

// revisionTold: the program is told the lower revision of the two; the versions of
// DDP and RDMAP in the segments stay what they are.
func revisionTold(t *conformance.T) {
	for _, x := range []struct {
		play           conformance.Role
		far, near, use byte
	}{
		{conformance.Initiator, 1, 1, 1},
		{conformance.Initiator, 2, 1, 1},
		{conformance.Initiator, 1, 2, 1},
		{conformance.Initiator, 2, 2, 2},
		{conformance.Responder, 1, 1, 1},
		{conformance.Responder, 1, 2, 1},
		{conformance.Responder, 2, 2, 2},
	} {
		t.Part("the peer is the %s with revision %d, the queue pair has %d", x.play, x.near, x.far)
		r := beginMPA(t, setup{play: x.play, far: uppertester.ConnectArgs{Rev: x.far}})
		if x.play == conformance.Initiator {
			r.raw(requestFrame(frameC, x.near, nil))
			require.Equal(t, replyFrame(frameC, x.use, nil), r.frame(), "the Reply")
		} else {
			r.frame()
			require.Equal(t, x.far, r.theirs[17], "the revision of the Request")
			if x.far == 2 {
				r.raw(replyFrame(frameC|frameS, x.near, []byte{0, 9, 0, 9}))
			} else {
				r.raw(replyFrame(frameC, x.near, nil))
			}
		}
		r.full(frameC)
		require.Equal(t, x.use, r.told.Rev, "what the program is told")
		r.settled()
		b := r.region(8, allRights)
		r.posts(b, 8)
		r.expect(aSend(1, b.first))
	}
}

// largestULPDU sends FPDUs with ULPDUs of 64768 octets, and ones that say to be
// longer.
func largestULPDU(t *conformance.T) {
	for markers := range inTurn(t, "markers: %v", []bool{false, true}) {
		for longer := range inTurn(t, "then ULPDU_Length 64768+%d", []int{1, 2, 64, 65535 - 64768}) {
			r, b := openMPAWith(t, setup{far: uppertester.ConnectArgs{Markers: markers}}, 64768)
			data := uppertester.Pattern(3, 64768-14)
			r.send(aWrite(b.tag(), b.at(0), data))
			r.settled()
			b.holds(0, data)
			r.raw(r.out.twisted(aWrite(b.tag(), b.at(0), make([]byte, 64768-14)), twist{longer: longer}))
			r.terminated(0x2003, nil, false)
			r.failed(verbs.EventBadFPDU, 0)
			b.unchanged()
		}
	}
}

// fpduOctets compares whole FPDUs with ones whose octets are written down.
func fpduOctets(t *conformance.T) {
	for x := range inTurn(t, "a Send of %q", []struct{ payload, body, crc string }{
		{"", "0012 4143 00000000 00000000 00000001 00000000", "587be8c4"},
		{"a", "0013 4143 00000000 00000000 00000001 00000000 61 000000", ""},
		{"ab", "0014 4143 00000000 00000000 00000001 00000000 6162 0000", ""},
		{"abc", "0015 4143 00000000 00000000 00000001 00000000 616263 00", "447065aa"},
		{"abcd", "0016 4143 00000000 00000000 00000001 00000000 61626364", ""},
	}) {
		for crc := range inTurn(t, "CRC: %v", []bool{true, false}) {
			r, b := openMPAWith(t, setup{noCRC: !crc, far: uppertester.ConnectArgs{NoCRC: !crc}}, 8)
			require.NoError(t, r.up.Fill(uppertester.FillArgs{Region: b.Region.Region, Octets: []byte("abcd")}, &uppertester.None{}))
			r.posts(b, len(x.payload), 4)
			f := r.take()
			body := unhexed(x.body)
			require.Equal(t, body, f.octets[:len(body)], "length, ULPDU and pad")
			require.Len(t, f.octets, len(body)+4, "with four octets behind them")
			if crc && x.crc != "" {
				require.Equal(t, unhexed(x.crc), f.octets[len(body):], "the CRC")
			}
			r.expect(aSend(2, []byte("abcd"))) // begins right behind
		}
	}
}

// padOctets: pads that are sent are zeros (take sees to it); those received may be
// anything, as long as the CRC is over them.
func padOctets(t *conformance.T) {
	r, b := openMPAWith(t, setup{}, 8)
	r.posts(b, 1, 2, 3, 4)
	for i, pad := range []int{3, 2, 1, 0} {
		f := r.take()
		require.Equal(t, aSend(uint32(i+1), b.first[:i+1]), f.ulpdu)
		require.Len(t, f.octets, 2+18+i+1+pad+4)
		require.Equal(t, make([]byte, pad), f.octets[len(f.octets)-4-pad:len(f.octets)-4], "the pad")
	}
	for _, pad := range []byte{0xFF, 0x01, 0x80} {
		for n := range 4 {
			data := bytes.Repeat([]byte{0x33}, n)
			t.Part("%d octets and pads of %02x", n, pad)
			r := openMPA(t, setup{})
			buffers := r.recv(2, 16)
			r.twisted(data, twist{pad: pad})
			r.completions(r.got(1, n))
			buffers[0].holds(0, data)
			if (2+18+n)%4 == 0 {
				continue // there is no pad
			}
			r.twisted(data, twist{pad: pad, blind: true})
			r.tornDown(0x2002, nil, false)
			r.events(verbs.EventBadCRC)
			buffers[1].unchanged()
		}
	}
}
