package cases

import (
	"net"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// r6581_10 is how enhanced and plain sides get on: RFC 6581 10.
var r6581_10 = []conformance.Case{
	upperCase("10/enhanced-answered", enhancedAnswered, "R6581-10-M1", "R6581-10-M5"),
	upperCase("10/plain-answered", plainAnswered, "R6581-10-M2", "R6581-10-M6"),
	apiCase("10/reply-of-the-other-format", otherFormat, "R6581-10-M5", "R6581-10-M6"),
	apiCase("10/nothing-enhanced-wanted", nothingWanted, "R6581-10-M3"),
	apiCase("10/plain-after-enhanced", onHost(plainAfterEnhanced), "R6581-10-M4"),
	upperCase("10/responder-of-revision-1", oldResponder, "R6581-10-M7"),
}

// enhancedAnswered: an enhanced Request has an enhanced Reply, whatever it asks for
// and whatever the answer is.
func enhancedAnswered(t *conformance.T) {
	for word := range inTurn(t, "word % x", [][]byte{
		aWord(4, 4, "pd"), aWord(0, 0, ""), aWord(unsaid, unsaid, ""), aWord(flagA|4, flagC|flagD|4, ""),
	}) {
		for reject := range inTurn(t, "reject %v", []bool{false, true}) {
			r := listening(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{Reject: reject, PrivateData: []byte("mine")})
			r.raw(requestFrame(frameC|frameS, 2, word))
			f := r.hears()
			require.NotZero(t, f.flags&frameS, "S of the Reply")
			require.Equal(t, reject, f.flags&frameR != 0, "R of the Reply")
			require.EqualValues(t, 2, f.rev)
			require.Len(t, f.rest, 8, "the word and private data")
			require.Equal(t, "mine", string(f.rest[4:]))
			if !reject {
				r.established(withCRC)
				r.works(1)
			}
		}
	}
}

// plainAnswered: a plain Request has a plain Reply, of either revision.
func plainAnswered(t *conformance.T) {
	for rev := range inTurn(t, "revision %d", []byte{1, 2}) {
		for reject := range inTurn(t, "reject %v", []bool{false, true}) {
			r := listening(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{Reject: reject, PrivateData: []byte("mine")})
			r.raw(requestFrame(frameC, rev, []byte("\x80\x01\xC0\x01 is not a word")))
			flags := byte(frameC)
			if reject {
				flags |= frameR
			}
			require.Equal(t, replyFrame(flags, rev, []byte("mine")), r.hears().octets, "the Reply")
			if reject {
				continue
			}
			c := r.established(withCRC)
			require.Equal(t, "\x80\x01\xC0\x01 is not a word", string(c.PrivateData))
			r.works(1)
		}
	}
}

// initiates starts an MPA Initiator on one end of a connection, and reads its Request
// from the other. What comes of it is in the channel.
func initiates(t *conformance.T, c mpa.Config) (*peer, heardFrame, <-chan error) {
	x, y := tcpPair(t)
	p := newPeer(t, t.Trace().Conn(x), withCRC)
	done := make(chan error, 1)
	go func() { done <- second(mpa.Initiate(t.Context(), y, c)) }()
	f := p.hears(requestKey)
	return p, f, done
}

// otherFormat has a Responder accept in the format that was not asked for: the
// Initiator takes that for no answer and closes.
func otherFormat(t *conformance.T) {
	plain := mpa.Config{KeepIRD: true, KeepORD: true}
	for x := range inTurn(t, "a Reply %s", []struct {
		what   string
		config mpa.Config
		reply  []byte
		good   bool
	}{
		{"enhanced, to an enhanced one", mpa.Config{}, replyFrame(frameC|frameS, 2, aWord(4, 4, "")), true},
		{"plain, to an enhanced one", mpa.Config{}, replyFrame(frameC, 2, aWord(4, 4, "")), false},
		{"of revision 1, to an enhanced one", mpa.Config{}, replyFrame(frameC|frameS, 1, aWord(4, 4, "")), false},
		{"plain, to a plain one", plain, replyFrame(frameC, 2, aWord(4, 4, "")), true},
		{"enhanced, to a plain one", plain, replyFrame(frameC|frameS, 2, aWord(4, 4, "")), false},
	}) {
		p, _, done := initiates(t, x.config)
		p.raw(x.reply)
		err := <-done
		if x.good {
			require.NoError(t, err)
			continue
		}
		var bad *mpa.Error
		require.ErrorAs(t, err, &bad)
		require.EqualValues(t, 0x2004, bad.Code)
		p.silent("the Request")
	}
}

// nothingWanted: an Initiator that wants nothing of the enhanced startup does not use
// it.
func nothingWanted(t *conformance.T) {
	for _, x := range []struct {
		config mpa.Config
		want   []byte
	}{
		{mpa.Config{KeepIRD: true, KeepORD: true}, requestFrame(frameC, 2, nil)},
		{mpa.Config{KeepIRD: true, KeepORD: true, PrivateData: []byte("pd")}, requestFrame(frameC, 2, []byte("pd"))},
		{mpa.Config{KeepIRD: true, KeepORD: true, RTR: mpa.RTRRead}, requestFrame(frameC, 2, nil)},
		{mpa.Config{Rev: 1}, requestFrame(frameC, 1, nil)},
		{mpa.Config{Rev: 1, IRD: 3, ORD: 4, PrivateData: []byte("pd")}, requestFrame(frameC, 1, []byte("pd"))},
		// Each of these is something wanted.
		{mpa.Config{KeepORD: true, IRD: 3}, requestFrame(frameC|frameS, 2, aWord(3, unsaid, ""))},
		{mpa.Config{KeepIRD: true, ORD: 3}, requestFrame(frameC|frameS, 2, aWord(unsaid, 3, ""))},
		{
			mpa.Config{KeepIRD: true, KeepORD: true, P2P: true, RTR: rtrWrite},
			requestFrame(frameC|frameS, 2, aWord(flagA|unsaid, flagC|unsaid, "")),
		},
	} {
		t.Part("%+v", x.config)
		c, f, done := initiates(t, x.config)
		require.Equal(t, x.want, f.octets, "the Request")
		require.NoError(t, c.Close())
		require.Error(t, <-done)
	}
}

// plainAfterEnhanced has one listener take both, in turn.
func plainAfterEnhanced(t *conformance.T, n *host) {
	l := must(cm.Listen("127.0.0.1:0", cm.ListenConfig{}))(t)
	t.Cleanup(func() { _ = l.Close() })
	enhanced := requestFrame(frameC|frameS, 2, aWord(flagA|4, flagC|4, ""))
	for i, request := range [][]byte{
		enhanced, requestFrame(frameC, 1, nil), enhanced, enhanced, requestFrame(frameC, 2, []byte("pd")), requestFrame(frameC, 1, nil),
	} {
		t.Part("connection %d", i)
		var d net.Dialer
		c := must(d.DialContext(t.Context(), "tcp", l.Addr().String()))(t)
		t.Cleanup(func() { _ = c.Close() })
		p := newPeer(t, t.Trace().Conn(c), withCRC)
		p.raw(request)
		req := must(l.Accept(t.Context()))(t)
		qp := n.newQP(verbs.QPConfig{})
		postRecv(t, qp, verbs.Recv{ID: 1, SGL: n.mr.SGL(0, 8)})
		conn := must(req.Accept(t.Context(), qp, cm.Config{}))(t)
		f := p.hears(replyKey)
		require.Equal(t, request[16:18], []byte{f.flags, f.rev}, "flags and revision of the Reply")
		p.send(aSend(1, []byte("received")))
		completes(t, n.cq, verbs.Completion{ID: 1, QP: qp.ID(), Op: verbs.OpRecv, Bytes: 8})
		require.Equal(t, "received", string(n.mr.Bytes()[:8]))
		run(t, qp, verbs.Request{ID: 2, SGL: n.mr.SGL(0, 4)}, verbs.StatusSuccess)
		p.expect(aSend(1, []byte("rece")))
		p.shut()
		<-conn.Done()
		p.silent("the end")
	}
}

// oldResponder is a Responder that speaks revision 1 alone: an enhanced Request costs
// the connection, a plain one does not.
func oldResponder(t *conformance.T) {
	for _, word := range [][]byte{aWord(4, 4, ""), aWord(flagA|4, flagC|flagD|4, "pd")} {
		r := listening(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{Rev: 1})
		r.raw(requestFrame(frameC|frameS, 2, word))
		r.silent("an enhanced Request")
		r.fails()
	}
	r := listening(t, uppertester.OpenArgs{}, uppertester.ConnectArgs{Rev: 1})
	r.raw(requestFrame(frameC, 2, nil))
	require.Equal(t, replyFrame(frameC, 1, nil), r.hears().octets, "the Reply to a plain one")
	r.established(withCRC)
	r.works(1)
}
