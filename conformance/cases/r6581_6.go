package cases

import (
	"encoding/hex"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
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

// r6581_9_1 is the negotiation of IRD and ORD: RFC 6581 9.1.
var r6581_9_1 = []conformance.Case{
	upperCase("9.1/depths-told", depthsTold, "R6581-9.1-M1", "R6581-9.1-M7"),
	apiCase("9.1/depths-in-query-qp", onHost(depthsInQuery), "R6581-9.1-M1", "R6581-9.1-M7"),
	upperCase("9.1/responder-ord", responderORD, "R6581-9.1-M2"),
	upperCase("9.1/responder-wants-more", responderWantsMore, "R6581-9.1-M3"),
	upperCase("9.1/initiator-adapts", initiatorAdapts, "R6581-9.1-M4", "PR-6581-9.1-M1"),
	upperCase("9.1/insufficient-ird", insufficientIRD, "R6581-9.1-M5", "R6581-9.1-M6", "PR-6581-8-M1"),
	upperCase("9.1/request-without-ord", requestWithoutORD, "R6581-9.1-M8"),
	upperCase("9.1/reply-without-ird", replyWithoutIRD, "R6581-9.1-M9"),
	upperCase("9.1/request-without-ird", requestWithoutIRD, "R6581-9.1-M10"),
	upperCase("9.1/reply-without-ord", replyWithoutORD, "R6581-9.1-M11"),
}

// depthsTold: the program learns what the peer's frame says, of a Request, of an
// accepting and of a rejecting Reply; -1 stands for nothing.
func depthsTold(t *conformance.T) {
	for _, x := range []struct {
		what  string
		frame func(key string, more byte) []byte
		want  []int
		rev   uint8
	}{
		{"both", func(key string, more byte) []byte {
			return aFrame(key, frameC|frameS|more, 2, aWord(7, 9, ""))
		}, []int{7, 9}, 2},
		{"none at all", func(key string, more byte) []byte {
			return aFrame(key, frameC|frameS|more, 2, aWord(0, 0, ""))
		}, []int{0, 0}, 2},
		{"no IRD", func(key string, more byte) []byte {
			return aFrame(key, frameC|frameS|more, 2, aWord(unsaid, 9, ""))
		}, []int{-1, 9}, 2},
		{"no ORD", func(key string, more byte) []byte {
			return aFrame(key, frameC|frameS|more, 2, aWord(7, unsaid, ""))
		}, []int{7, -1}, 2},
		{"a plain frame", func(key string, more byte) []byte {
			return aFrame(key, frameC|more, 1, nil)
		}, []int{-1, -1}, 1},
	} {
		told := func(c uppertester.Connection) {
			require.Equal(t, x.want, []int{c.PeerIRD, c.PeerORD}, "the peer's IRD and ORD")
		}
		t.Part("%s, in a Request", x.what)
		r := listening(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{})
		r.raw(x.frame(requestKey, 0))
		r.hears()
		told(r.established(withCRC))
		t.Part("%s, in an accepting Reply", x.what)
		r = dialing(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{Rev: x.rev})
		r.hears()
		r.raw(x.frame(replyKey, 0))
		told(r.established(withCRC))
		t.Part("%s, in a rejecting Reply", x.what)
		r = dialing(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{Rev: x.rev})
		r.hears()
		r.raw(x.frame(replyKey, frameR))
		c := r.fails()
		require.True(t, c.Rejected)
		told(c)
	}
}

// depthsInQuery: they are in the stream that Query QP returns, too.
func depthsInQuery(t *conformance.T, n *host) {
	x, y := tcpPair(t)
	done := make(chan error, 1)
	go func() { done <- second(cm.Connect(t.Context(), y, n.qp, cm.Config{})) }()
	p := newPeer(t, x, withCRC)
	p.hears(requestKey)
	p.raw(replyFrame(frameC|frameS, 2, aWord(3, 2, "")))
	require.NoError(t, <-done)
	s := attributes(t, n.qp).Stream
	require.Equal(t, []int{3, 2}, []int{s.PeerIRD, s.PeerORD}, "of the Responder")

	qp := n.newQP(verbs.QPConfig{})
	x, y = tcpPair(t)
	require.NoError(t, second(x.Write(requestFrame(frameC|frameS, 2, aWord(7, 9, "")))))
	req := must(cm.Await(t.Context(), y, cm.Config{}))(t)
	require.Equal(t, []int{7, 9}, []int{req.PeerIRD(), req.PeerORD()}, "of the Request, before the answer")
	c := must(req.Accept(t.Context(), qp, cm.Config{}))(t)
	require.Equal(t, []int{7, 9}, []int{c.PeerIRD(), c.PeerORD()})
	s = attributes(t, qp).Stream
	require.Equal(t, []int{7, 9}, []int{s.PeerIRD, s.PeerORD}, "of the Initiator")
}

// responderORD: a Responder reads no more at a time than the Initiator lets it.
func responderORD(t *conformance.T) {
	for _, x := range []struct{ ord, ird, want int }{{16, 2, 2}, {3, 9, 3}, {4, 4, 4}, {1, 1, 1}} {
		t.Part("ORD %d, the Initiator's IRD %d", x.ord, x.ird)
		r := listening(t, uppertester.OpenArgs{ORD: x.ord}, uppertester.ConnectArgs{})
		_, second := r.asks(uint16(x.ird), 4)
		require.EqualValues(t, x.want, second&depthBits, "ORD of the Reply")
		require.Equal(t, x.want, r.query().ORD)
		r.keepsORD(x.want)
	}
	t.Part("the Initiator's IRD 0")
	r := listening(t, uppertester.OpenArgs{ORD: 16}, uppertester.ConnectArgs{})
	_, second := r.asks(0, 4)
	require.Zero(t, second&depthBits, "ORD of the Reply")
	b := r.region(8, allRights)
	r.post(verbs.Request{ID: 5, Op: verbs.OpRead, Local: b.sge(0, 1), Remote: verbs.Remote{STag: 7}})
	r.terminated(0x0000, nil, false) // with no RDMA Read Request before it
	r.completions(verbs.Completion{ID: 5, Op: verbs.OpRead, Status: verbs.StatusZeroReadResources})
}

// responderWantsMore has a Responder refuse: it says how much it would have wanted,
// and an Initiator that lacks the IRD says why it ends the connection.
func responderWantsMore(t *conformance.T) {
	r := listening(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{Reject: true, IRD: 3, ORD: 9})
	r.raw(requestFrame(frameC|frameS, 2, aWord(2, 4, "")))
	f := r.hears()
	require.NotZero(t, f.flags&frameR, "R")
	_, second := f.word()
	require.EqualValues(t, 9, second&depthBits, "the ORD that is wanted")
	r.silent("a rejecting Reply")

	r = dialing(t, uppertester.OpenArgs{IRD: 2}, uppertester.ConnectArgs{})
	r.hears()
	r.raw(replyFrame(frameC|frameS, 2, aWord(16, 9, "")))
	r.setFraming(withCRC)
	r.terminated(0x2006, nil, false)
}

// initiatorAdapts: an accepted Initiator takes as many Reads as the Responder may
// have outstanding, and has no more itself than it was told.
func initiatorAdapts(t *conformance.T) {
	for _, x := range []struct{ ird, ord, want int }{{3, 5, 3}, {16, 8, 8}, {1, 0, 1}, {8, 1, 8}} {
		t.Part("the Responder's IRD %d, ORD %d", x.ird, x.ord)
		r := dialing(t, uppertester.OpenArgs{IRD: 8, ORD: 8}, uppertester.ConnectArgs{})
		a, b := r.answers(uint16(x.ird), uint16(x.ord))
		require.Equal(t, []uint16{8, 8}, []uint16{a, b}, "the Request's word")
		q := r.query()
		require.Equal(t, x.want, q.ORD)
		require.GreaterOrEqual(t, q.IRD, x.ord)
		m := r.region(64, allRights)
		var requests, responses [][]byte
		for i := range x.ord {
			requests = append(requests, aReadRequest(r.nextRead(), read{nowhere + uint32(i), 0, 9, m.tag(), m.at(i)}))
			responses = append(responses, aReadResponse(nowhere+uint32(i), 0, m.first[i:i+9]))
		}
		r.sendAtOnce(requests...)
		r.expect(responses...)
		if x.ird < 8 {
			err := r.modify(uppertester.ModifyArgs{Next: verbs.StateRTS, ORD: ptr(x.ird + 1)})
			require.ErrorIs(t, err, verbs.ErrORDExceeded, "raised above the Responder's IRD")
		}
		r.keepsORD(x.want)
	}
}

// insufficientIRD accepts with an ORD above the Initiator's IRD. The Terminate
// Message is compared as an FPDU of the stream that was agreed upon.
func insufficientIRD(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what     string
		ird, ord int
		far      uppertester.ConnectArgs
		flags    byte
		o        framing
	}{
		{"one too many", 2, 3, uppertester.ConnectArgs{}, frameC, withCRC},
		{"many too many", 1, 0x3FFE, uppertester.ConnectArgs{}, frameC, withCRC},
		{"peer-to-peer", 2, 3, uppertester.ConnectArgs{P2P: true}, frameC, withCRC},
		{"with markers", 2, 3, uppertester.ConnectArgs{}, frameC | frameM, framing{crc: true, markersIn: true}},
		{"without CRC", 2, 3, uppertester.ConnectArgs{NoCRC: true}, 0, framing{}},
	}) {
		r := dialing(t, uppertester.OpenArgs{IRD: x.ird}, x.far)
		first, second := r.hears().word()
		r.raw(replyFrame(x.flags|frameS, 2, aWord(first&flagA|16, second&(flagC|flagD)|uint16(x.ord), "")))
		r.setFraming(x.o)
		r.expect([]byte{0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0x20, 0x06, 0, 0})
		r.finished()
		c := r.fails()
		require.False(t, c.Rejected)
		require.Empty(t, r.query().Terminate, "the stream was never the queue pair's")
	}
	t.Part("just enough")
	r := dialing(t, uppertester.OpenArgs{IRD: 2}, uppertester.ConnectArgs{})
	r.answers(16, 2)
	r.works(1)
}

// The four that follow leave a depth to the programs: 0x3FFF in its place.

func requestWithoutORD(t *conformance.T) {
	for _, ird := range []int{1, 4} {
		r := listening(t, uppertester.OpenArgs{IRD: ird}, uppertester.ConnectArgs{})
		first, second := r.asks(7, unsaid)
		require.EqualValues(t, unsaid, first&depthBits, "IRD of the Reply")
		require.EqualValues(t, 7, second&depthBits, "ORD of the Reply")
		require.Equal(t, ird, r.query().IRD)
		r.keepsIRD(ird)
	}
}

func replyWithoutIRD(t *conformance.T) {
	for _, ord := range []int{1, 5} {
		r := dialing(t, uppertester.OpenArgs{ORD: ord}, uppertester.ConnectArgs{})
		r.answers(unsaid, 3)
		require.Equal(t, ord, r.query().ORD)
		r.keepsORD(ord)
	}
}

func requestWithoutIRD(t *conformance.T) {
	for _, ord := range []int{1, 4} {
		r := listening(t, uppertester.OpenArgs{ORD: ord, IRD: 6}, uppertester.ConnectArgs{})
		first, second := r.asks(unsaid, 7)
		require.EqualValues(t, 6, first&depthBits, "IRD of the Reply")
		require.EqualValues(t, unsaid, second&depthBits, "ORD of the Reply")
		require.Equal(t, ord, r.query().ORD)
		r.keepsORD(ord)
	}
}

func replyWithoutORD(t *conformance.T) {
	for _, ird := range []int{1, 5} {
		r := dialing(t, uppertester.OpenArgs{IRD: ird}, uppertester.ConnectArgs{})
		r.answers(3, unsaid)
		require.Equal(t, ird, r.query().IRD)
		r.keepsIRD(ird)
	}
}
