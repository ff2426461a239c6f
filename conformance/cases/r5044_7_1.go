package cases

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5044_7_1 is the startup frames: RFC 5044 7.1.1.
var r5044_7_1 = []conformance.Case{
	upperCase("7.1.1/request-octets", requestOctets,
		"R5044-7.1.1-M1", "R5044-7.1.1-M5", "R5044-7.1.1-M13", "R5044-7.1.1-M14", "R5044-7.1.1-M17", "R5044-7.1.2-M1",
		"PR-5044-7.1.1-M1", "PR-5044-7.1.1-M2", "PR-6581-6-M1"),
	upperCase("7.1.1/reply-octets", replyOctets,
		"R5044-7.1.1-M3", "R5044-7.1.1-M5", "R5044-7.1.1-M13", "R5044-7.1.1-M14", "R5044-7.1.1-M17", "PR-5044-7.1.1-M2",
		"PR-6581-6-M1"),
	upperCase("7.1.1/wrong-key-in-request", wrongKeyInRequest, "R5044-7.1.1-M2", "R5044-7.1.2-M9"),
	upperCase("7.1.1/wrong-key-in-reply", wrongKeyInReply, "R5044-7.1.1-M4", "R5044-7.1.2-M9"),
	upperCase("7.1.1/reserved-bits-received", reservedBits, "R5044-7.1.1-M13", "PR-5044-7.1.1-M1"),
	upperCase("7.1.1/revision-received", eachRole(revisionReceived), "R5044-7.1.1-M15", "R5044-7.1.1-M16"),
}

// requestOctets: the whole of what an Initiator sends before there is a Reply.
func requestOctets(t *conformance.T) {
	word := func(b ...byte) []byte { return b }
	for x := range inTurn(t, "%s", []struct {
		what string
		far  uppertester.ConnectArgs
		want []byte
	}{
		{"nothing in particular", uppertester.ConnectArgs{Rev: 1}, requestFrame(0x40, 1, nil)},
		{"no CRC", uppertester.ConnectArgs{Rev: 1, NoCRC: true}, requestFrame(0x00, 1, nil)},
		{"markers", uppertester.ConnectArgs{Rev: 1, Markers: true}, requestFrame(0xC0, 1, nil)},
		{"private data", uppertester.ConnectArgs{Rev: 1, PrivateData: []byte("abc")}, requestFrame(0x40, 1, []byte("abc"))},
		{"depths", uppertester.ConnectArgs{Rev: 2}, requestFrame(0x50, 2, word(0, 5, 0, 7))},
		{
			"depths and private data", uppertester.ConnectArgs{Rev: 2, PrivateData: []byte("ab"), Markers: true},
			requestFrame(0xD0, 2, word(0, 5, 0, 7, 'a', 'b')),
		},
		{"peer-to-peer", uppertester.ConnectArgs{Rev: 2, P2P: true}, requestFrame(0x50, 2, word(0x80, 5, 0xC0, 7))},
	}) {
		r := beginMPA(t, setup{play: conformance.Responder, far: x.far, qp: uppertester.OpenArgs{IRD: 5, ORD: 7}})
		require.Equal(t, x.want, r.frame(), "the Request")
		require.Equal(t, "4d504120494420526571204672616d65", fmt.Sprintf("%x", r.theirs[:16]), "its key")
		r.mute()
		r.drop()
		require.NotEmpty(t, r.connected().Failed)
	}
}

// replyOctets: the whole of what a Responder sends before there is an FPDU, accepting
// and rejecting.
func replyOctets(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what string
		far  uppertester.ConnectArgs
		ask  []byte
		want []byte
	}{
		{"nothing in particular", uppertester.ConnectArgs{Rev: 2}, requestFrame(0x40, 1, nil), replyFrame(0x40, 1, nil)},
		{"no CRC", uppertester.ConnectArgs{NoCRC: true}, requestFrame(0x00, 1, nil), replyFrame(0x00, 1, nil)},
		{"no CRC against one", uppertester.ConnectArgs{NoCRC: true}, requestFrame(0x40, 1, nil), replyFrame(0x00, 1, nil)},
		{"markers", uppertester.ConnectArgs{Markers: true}, requestFrame(0x40, 1, nil), replyFrame(0xC0, 1, nil)},
		{"no markers against some", uppertester.ConnectArgs{}, requestFrame(0xC0, 1, nil), replyFrame(0x40, 1, nil)},
		{"private data", uppertester.ConnectArgs{PrivateData: []byte("abc")}, requestFrame(0x40, 1, []byte("x")), replyFrame(0x40, 1, []byte("abc"))},
		{"refusal", uppertester.ConnectArgs{Reject: true}, requestFrame(0x40, 1, nil), replyFrame(0x60, 1, nil)},
		{
			"refusal with private data", uppertester.ConnectArgs{Reject: true, PrivateData: []byte("no")},
			requestFrame(0x40, 1, []byte("please")), replyFrame(0x60, 1, []byte("no")),
		},
		{
			"depths", uppertester.ConnectArgs{Rev: 2, PrivateData: []byte("abc")},
			requestFrame(0x50, 2, []byte{0, 9, 0, 4}), replyFrame(0x50, 2, []byte{0, 5, 0, 7, 'a', 'b', 'c'}),
		},
	}) {
		r := beginMPA(t, setup{play: conformance.Initiator, far: x.far, qp: uppertester.OpenArgs{IRD: 5, ORD: 7}})
		r.raw(x.ask)
		require.Equal(t, x.want, r.frame(), "the Reply")
		require.Equal(t, "4d504120494420526570204672616d65", fmt.Sprintf("%x", r.theirs[:16]), "its key")
		c := r.connected()
		require.Equal(t, x.far.Reject, c.Rejected)
		if !x.far.Reject {
			require.Empty(t, c.Failed)
			r.mute()
		}
	}
}

// wrongKeyInRequest spoils each octet of the key: the TCP connection is closed, as
// soon as there are 16 octets, without one in answer, and the program is told.
func wrongKeyInRequest(t *conformance.T) {
	good := requestFrame(frameC, 1, nil)
	for i := range counted(t, "octet %d of the key", 16) {
		for n := range inTurn(t, "%d octets", []int{16, 20}) {
			r := beginMPA(t, setup{play: conformance.Initiator})
			bad := append([]byte(nil), good[:n]...)
			bad[i] ^= 0x20
			r.raw(bad)
			r.refused(badFrame)
		}
	}
	t.Part("no frame at all")
	r := beginMPA(t, setup{play: conformance.Initiator})
	r.raw([]byte("GET / HTTP/1.1\r\n"))
	r.refused("the peer speaks HTTP")
}

// wrongKeyInReply is the same for the other role.
func wrongKeyInReply(t *conformance.T) {
	good := replyFrame(frameC, 1, nil)
	for i := range counted(t, "octet %d of the key", 16) {
		for n := range inTurn(t, "%d octets", []int{16, 20}) {
			r := beginMPA(t, setup{play: conformance.Responder})
			b := r.region(8, allRights)
			r.posts(b, 8) // must not go out
			r.frame()
			bad := append([]byte(nil), good[:n]...)
			bad[i] ^= 0x20
			r.raw(bad)
			r.refused(badFrame)
			r.incomplete()
		}
	}
	t.Part("no frame at all")
	r := beginMPA(t, setup{play: conformance.Responder})
	r.frame()
	r.raw([]byte("220 smtp.example"))
	r.refused(badFrame)
}

// reservedBits sets each of the bits of a frame that have no meaning: nothing
// changes.
func reservedBits(t *conformance.T) {
	for play := range inTurn(t, "the peer is the %s", bothRoles) {
		for bits := range inTurn(t, "bits %02x with revision 1", []byte{0x01, 0x02, 0x04, 0x08, 0x0F, frameS, frameS | 0x0F}) {
			r := openMPA(t, setup{play: play, flags: bits})
			require.Equal(t, byte(frameC), r.theirs[16], "the flags of its frame")
			r.settled()
		}
	}
	t.Part("R in a Request") // it has no meaning there
	r := openMPA(t, setup{play: conformance.Initiator, flags: frameR})
	r.settled()
	t.Part("reserved bits with revision 2")
	r = beginMPA(t, setup{play: conformance.Initiator, far: uppertester.ConnectArgs{Rev: 2}})
	r.raw(requestFrame(frameC|frameS|0x0F, 2, []byte{0, 1, 0, 1, 'x'}))
	require.Equal(t, byte(frameC|frameS), r.frame()[16], "the flags of the Reply")
	r.full(frameC)
	require.Equal(t, []byte("x"), r.told.PrivateData)
	r.settled()
}

// revisionReceived: revisions 1 and 2 are spoken. Others end the startup.
func revisionReceived(t *conformance.T, play conformance.Role) {
	for rev := range inTurn(t, "revision %d", []byte{0, 1, 2, 3, 4, 0x81, 255}) {
		r := beginMPA(t, setup{play: play})
		send := requestFrame
		if play == conformance.Responder {
			r.frame()
			send = replyFrame
		}
		r.raw(send(frameC, rev, nil))
		if rev != 1 && rev != 2 {
			r.refused(badFrame)
			continue
		}
		if play == conformance.Initiator {
			require.Equal(t, byte(1), r.frame()[17], "the revision of the Reply")
		}
		r.full(frameC)
		r.settled()
		r.state(verbs.StateRTS)
	}
}

// r5044_7_1_private is the private data of startup frames: RFC 5044 7.1.1 and 7.1.2.
var r5044_7_1_private = []conformance.Case{
	upperCase("7.1.1/private-data-carried", privateDataCarried, "R5044-7.1.1-M17", "R5044-7.1.1-M19", "R5044-7.1.2-M12"),
	upperCase("7.1.2/private-data-ends", eachRole(privateDataEnds), "R5044-7.1.2-M13", "R5044-7.1.1-M17", "PR-5044-7.1.1-M2"),
	upperCase("7.1.1/private-data-not-sent", privateDataNotSent, "R5044-7.1.1-M19"),
	upperCase("7.1.2/pd-length-refused", eachRole(pdLengthRefused), "R5044-7.1.1-M18", "R5044-7.1.2-M11", "R5044-7.1.2-M14"),
}

// privateDataCarried has both sides send private data, up to the most there can be,
// with revision 1 and with an enhanced word.
func privateDataCarried(t *conformance.T) {
	word := []byte{0, 9, 0, 9}
	for play := range inTurn(t, "the peer is the %s", bothRoles) {
		for enhanced := range inTurn(t, "enhanced: %v", []bool{false, true}) {
			for n := range inTurn(t, "%d octets", []int{0, 1, 2, 3, 255, 256, 507, 508, 509, 511, 512}) {
				if enhanced && n > 508 {
					continue
				}
				mine, its := uppertester.Pattern(3, n), uppertester.Pattern(4, n)
				far := uppertester.ConnectArgs{PrivateData: its, Rev: 1}
				flags, rev := byte(frameC), byte(1)
				whole := mine
				if enhanced {
					far.Rev, flags, rev = 2, frameC|frameS, 2
					whole = append(append([]byte(nil), word...), mine...)
				}
				r := beginMPA(t, setup{play: play, far: far})
				frame := requestFrame(flags, rev, whole)
				if play == conformance.Responder {
					r.frame()
					frame = replyFrame(flags, rev, whole)
				}
				step := len(frame)
				if n < 4 || n >= 511 {
					step = 1 // octet by octet
				}
				r.cut(frame, func() int { return step })
				if play == conformance.Initiator {
					r.frame()
				}
				got := r.theirs[20:]
				if enhanced {
					got = got[4:]
				}
				same(t, its, got, "what it sends")
				r.full(flags)
				same(t, mine, r.told.PrivateData, "what the program is told")
				r.settled()
			}
		}
	}
}

// privateDataEnds has FPDUs come in one write with a frame: they are not private
// data. Neither is a FPDU missing.
func privateDataEnds(t *conformance.T, play conformance.Role) {
	for n := range inTurn(t, "private data of %d octets", []int{0, 1, 3, 4, 100, 512}) {
		for fpdus := range inTurn(t, "%d FPDUs behind", []int{1, 3}) {
			private := uppertester.Pattern(8, n)
			r := beginMPA(t, setup{play: play})
			b := r.recv(fpdus, 16)
			frame := requestFrame(frameC, 1, private)
			if play == conformance.Responder {
				r.frame()
				frame = replyFrame(frameC, 1, private)
			}
			r.out.crc = true
			for i := range fpdus {
				frame = append(frame, r.out.fpdu(r.aSend([]byte{byte(i), 2, 3}))...)
			}
			r.raw(frame)
			if play == conformance.Initiator {
				r.frame()
			}
			at := r.out.at
			r.full(frameC)
			r.out.at = at
			same(t, private, r.told.PrivateData, "what the program is told")
			for i := range fpdus {
				r.completions(r.got(uint64(i+1), 3))
				b[i].holds(0, []byte{byte(i), 2, 3})
			}
			r.settled()
		}
	}
}

// privateDataNotSent gives a program's side more than a frame can carry: it is told,
// and no frame is sent.
func privateDataNotSent(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what   string
		play   conformance.Role
		rev    byte
		n      int
		reject bool
		why    string
	}{
		{"Connect", conformance.Responder, 1, 513, false, "private data of 513 octets"},
		{"Connect, enhanced", conformance.Responder, 2, 509, false, "private data of 509 octets"},
		{"Connect, far too much", conformance.Responder, 1, 65536, false, "private data of 65536 octets"},
		{"Accept", conformance.Initiator, 1, 513, false, "private data of 513 octets"},
		{"Accept, enhanced", conformance.Initiator, 2, 509, false, "private data of 509 octets"},
		{"Accept, far too much", conformance.Initiator, 1, 65537, false, "private data of 65537 octets"},
		{"Reject", conformance.Initiator, 1, 513, true, "private data of 513 octets"},
		{"Reject, enhanced", conformance.Initiator, 2, 509, true, "private data of 509 octets"},
	}) {
		r := beginMPA(t, setup{play: x.play, far: uppertester.ConnectArgs{
			Rev: x.rev, PrivateData: make([]byte, x.n), Reject: x.reject,
		}})
		if x.play == conformance.Initiator {
			if x.rev == 2 {
				r.raw(requestFrame(frameC|frameS, 2, []byte{0, 1, 0, 1}))
			} else {
				r.raw(requestFrame(frameC, 1, nil))
			}
		}
		r.closed()
		require.Contains(t, r.connected().Failed, x.why, "what the program is told")
	}
}

// pdLengthRefused sends frames whose PD_Length cannot be, and ones whose private data
// does not come. Nothing behind the length is waited for.
func pdLengthRefused(t *conformance.T, play conformance.Role) {
	for x := range inTurn(t, "PD_Length %s", []struct {
		what       string
		flags, rev byte
		length     int
		private    int // octets that come
		end        bool
		why        string
	}{
		{"513, and none of them", frameC, 1, 513, 0, false, badFrame},
		{"513, and all of them", frameC, 1, 513, 513, false, badFrame},
		{"516", frameC | frameS, 2, 516, 0, false, badFrame},
		{"65535", frameC, 1, 65535, 0, false, badFrame},
		{"1, and the end of the stream", frameC, 1, 1, 0, true, lostTCP},
		{"none for the enhanced word", frameC | frameS, 2, 0, 0, false, badFrame},
		{"1 for the enhanced word", frameC | frameS, 2, 1, 1, false, badFrame},
		{"3 for the enhanced word", frameC | frameS, 2, 3, 3, false, badFrame},
		{"16, and the end of the stream", frameC, 1, 16, 0, true, lostTCP},
		{"16, and the end behind 15", frameC, 1, 16, 15, true, lostTCP},
		{"512, and the end behind 511", frameC, 1, 512, 511, true, lostTCP},
	}) {
		r := beginMPA(t, setup{play: play, far: uppertester.ConnectArgs{Rev: x.rev}})
		key := "MPA ID Req Frame"
		if play == conformance.Responder {
			r.frame()
			key = "MPA ID Rep Frame"
		}
		r.raw(startupFrame(key, x.flags, x.rev, x.length, make([]byte, x.private)))
		if x.end {
			r.shut()
		}
		r.refused(x.why)
	}
}
