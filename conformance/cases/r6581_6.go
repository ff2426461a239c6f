package cases

import (
	"encoding/hex"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r6581_6 is the enhanced startup frame, and what comes before everything else: RFC
// 6581 5, 6, 9.
var r6581_6 = []conformance.Case{
	upperCase("5/rtr-first", rtrFirst, "R6581-5-M1"),
	upperCase("6/reserved-bits-sent", reservedSent, "R6581-6-M1"),
	upperCase("6/reserved-bits-ignored", reservedIgnored, "R6581-6-M2"),
	upperCase("6/enhanced-needs-revision-2", enhancedRevision, "R6581-6-M3"),
	upperCase("6/revision-1-served", revisionOneServed, "R6581-6-M4", "PR-6581-6-M1"),
	upperCase("6/word-before-private-data", wordFirst, "R6581-6-M5", "PR-6581-6-M2"),
	upperCase("9/word-layout", wordLayout, "R6581-9-M1"),
}

// rtrFirst has work posted before the startup is over, and while it ends: the
// ready-to-receive frame comes before it.
func rtrFirst(t *conformance.T) {
	for kind := range inTurn(t, "kind %d", []int{1, 2, 4}) {
		r := dialing(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{P2P: true, RTR: uint8(kind)})
		b := r.region(64, allRights)
		send := func(i int) verbs.Request { return verbs.Request{ID: uint64(i), SGL: b.sgl(i, 3)} }
		const early, late = 8, 24
		for i := range early {
			r.post(send(i))
		}
		r.hears()
		posted := make(chan error, 1)
		go func() {
			for i := early; i < early+late; i++ {
				if _, err := r.tryPost(send(i)); err != nil {
					posted <- err
					return
				}
			}
			posted <- nil
		}()
		first, second := kinds(kind)
		r.raw(replyFrame(frameC|frameS, 2, aWord(flagA|first|16, second|16, "")))
		r.established(withCRC)
		require.Equal(t, kind, rtrKind(r.next()), "the kind of the first FPDU")
		msn := either(kind == 1, 2, uint32(1))
		for i := range early + late {
			r.expect(aSend(msn+uint32(i), b.first[i:i+3]))
		}
		require.NoError(t, <-posted, "PostSQ")
	}
}

// reservedSent looks at the last four bits of octet 16 in every kind of frame.
func reservedSent(t *conformance.T) {
	for far := range inTurn(t, "%+v", []uppertester.ConnectArgs{
		{}, {P2P: true, RTR: 7}, {Markers: true, NoCRC: true}, {Rev: 1}, {Rev: 1, Markers: true},
	}) {
		f := dialing(t, uppertester.OpenArgs{}, far).hears()
		require.Zero(t, f.flags&0x0F, "the Request: % x", f.octets)
		require.Equal(t, far.Rev != 1, f.flags&frameS != 0, "S")
		for _, reject := range []bool{false, true} {
			far.Reject, far.P2P = reject, false
			for _, request := range [][]byte{
				requestFrame(frameC, 1, nil), requestFrame(frameC|frameS, 2, aWord(flagA|4, flagC|flagD|4, "")),
			} {
				if far.Rev == 1 && request[17] == 2 {
					continue
				}
				r := listening(t, uppertester.OpenArgs{}, far)
				r.raw(request)
				f := r.hears()
				require.Zero(t, f.flags&0x0F, "the Reply: % x", f.octets)
			}
		}
	}
}

// reservedIgnored sets those bits: nothing comes out otherwise than with zero.
func reservedIgnored(t *conformance.T) {
	for enhanced := range inTurn(t, "enhanced %v", []bool{true, false}) {
		flags, rev, rest := byte(frameC|frameS), byte(2), aWord(flagA|7, flagC|flagD|9, "pd")
		if !enhanced {
			flags, rev, rest = frameC, 1, []byte("pd")
		}
		var replies []string
		var asked, answered []uppertester.Connection
		for bits := range inTurn(t, "bits %#x", []byte{0, 0x0F, 0x08, 0x01}) {
			r := listening(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{})
			r.raw(requestFrame(flags|bits, rev, rest))
			replies = append(replies, string(r.hears().octets))
			asked = append(asked, r.established(withCRC))
			r.works(1)

			r = dialing(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{Rev: rev, P2P: enhanced, RTR: 2})
			r.hears()
			r.raw(replyFrame(flags|bits, rev, rest))
			answered = append(answered, r.established(withCRC))
			if enhanced {
				require.Equal(t, 2, rtrKind(r.next()))
			}
			r.works(1)
		}
		for i := range replies {
			require.Equal(t, replies[0], replies[i], "the Reply")
			require.Equal(t, asked[0], asked[i], "what a Responder says of it")
			require.Equal(t, answered[0], answered[i], "what an Initiator says of it")
		}
	}
}

// enhancedRevision: S and revision 1 do not go together, in what is sent and in what
// is understood.
func enhancedRevision(t *conformance.T) {
	for _, p2p := range []bool{false, true} {
		f := dialing(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{P2P: p2p}).hears()
		require.NotZero(t, f.flags&frameS)
		require.GreaterOrEqual(t, f.rev, byte(2), "the revision of an enhanced Request")
	}
	for _, reject := range []bool{false, true} {
		r := listening(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{Reject: reject})
		r.raw(requestFrame(frameC|frameS, 2, aWord(4, 4, "")))
		f := r.hears()
		require.NotZero(t, f.flags&frameS)
		require.GreaterOrEqual(t, f.rev, byte(2), "the revision of an enhanced Reply")
	}
	t.Part("peer-to-peer with revision 1")
	r := dialing(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{P2P: true, Rev: 1})
	r.fails()
	r.silent("nothing")
	t.Part("the bit of S in revision 1")
	r = listening(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{PrivateData: []byte("mine")})
	r.raw(requestFrame(frameC|frameS, 1, []byte("\x80\x04\xC0\x04xy")))
	require.Equal(t, replyFrame(frameC, 1, []byte("mine")), r.hears().octets, "the Reply")
	c := r.established(withCRC)
	require.Equal(t, "\x80\x04\xC0\x04xy", string(c.PrivateData), "all is the program's")
	require.Equal(t, []int{-1, -1}, []int{c.PeerIRD, c.PeerORD})
	r.works(1)
}

// revisionOneServed: a Responder of revision 2 takes a Request of revision 1.
func revisionOneServed(t *conformance.T) {
	for _, far := range []uppertester.ConnectArgs{{}, {Rev: 2, IRD: 3, ORD: 3}} {
		r := listening(t, uppertester.OpenArgs{}, far)
		r.raw(requestFrame(frameC, 1, nil))
		require.Equal(t, replyFrame(frameC, 1, nil), r.hears().octets, "the Reply")
		require.EqualValues(t, 1, r.established(withCRC).Rev)
		r.works(1)
	}
}

// Reference frames, worked out by hand: revision 2, C, S, IRD and ORD 4, A; the
// Request offers Write and Read, the Reply takes Read.
const (
	referenceRequest = "4d504120494420526571204672616d65" + "5002" + "0006" + "8004c004" + "7879"
	referenceReply   = "4d504120494420526570204672616d65" + "5002" + "0006" + "80044004" + "7879"
)

// wordFirst compares whole frames: the word stands before the private data.
func wordFirst(t *conformance.T) {
	request := must(hex.DecodeString(referenceRequest))(t)
	reply := must(hex.DecodeString(referenceReply))(t)
	qp := uppertester.OpenArgs{IRD: 4, ORD: 4}

	r := dialing(t, qp, uppertester.ConnectArgs{P2P: true, RTR: 6, PrivateData: []byte("xy")})
	require.Equal(t, request, r.hears().octets, "the Request")
	r.raw(reply)
	require.Equal(t, "xy", string(r.established(withCRC).PrivateData))
	require.Equal(t, 4, rtrKind(r.next()))

	r = listening(t, qp, uppertester.ConnectArgs{RTR: 4, PrivateData: []byte("xy")})
	r.raw(request)
	require.Equal(t, reply, r.hears().octets, "the Reply")
	c := r.established(withCRC)
	require.Equal(t, "xy", string(c.PrivateData))
	require.True(t, c.P2P)
	r.works(1)
}

// wordLayout has depths of up to 14 bits in both fields and both roles.
func wordLayout(t *conformance.T) {
	for _, x := range []struct {
		ird, ord int // of the queue pair
		word     string
	}{
		{1, 2, "\x00\x01\x00\x02"}, {4, 5, "\x00\x04\x00\x05"}, {0x102, 0x0F1, "\x01\x02\x00\xF1"}, {0x1000, 0xFFF, "\x10\x00\x0F\xFF"},
	} {
		t.Part("IRD %#x, ORD %#x", x.ird, x.ord)
		qp := uppertester.OpenArgs{IRD: x.ird, ORD: x.ord}
		require.Equal(t, x.word, string(dialing(t, qp, uppertester.ConnectArgs{}).hears().rest), "the Request")
		r := listening(t, qp, uppertester.ConnectArgs{})
		r.raw(requestFrame(frameC|frameS, 2, []byte("\x3F\xFE\x3F\xFE")))
		require.Equal(t, x.word, string(r.hears().rest), "the Reply")
		r.established(withCRC)
	}
	for word, want := range named(t, "received % x", map[string][]int{
		"\x3F\xFE\x00\x01": {0x3FFE, 1}, "\x00\x00\x3F\xFE": {0, 0x3FFE}, "\x12\x34\x20\x80": {0x1234, 0x2080},
	}) {
		r := listening(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{})
		r.raw(requestFrame(frameC|frameS, 2, []byte(word)))
		r.hears()
		c := r.established(withCRC)
		require.Equal(t, want, []int{c.PeerIRD, c.PeerORD}, "the peer's depths")
	}
}
