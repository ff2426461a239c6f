package cases

import (
	"io"
	"net"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// r6581_10 is how enhanced and plain sides get on: RFC 6581 10.
var r6581_10 = []conformance.Case{
	upperCase("10/enhanced-answered", enhancedAnswered, "R6581-10-M1", "R6581-10-M5"),
	upperCase("10/plain-answered", plainAnswered, "R6581-10-M2", "R6581-10-M6"),
	apiCase("10/reply-of-the-other-format", otherFormat, "R6581-10-M5", "R6581-10-M6"),
	apiCase("10/nothing-enhanced-wanted", nothingWanted, "R6581-10-M3"),
	apiCase("10/plain-after-enhanced", onNode(plainAfterEnhanced), "R6581-10-M4"),
	upperCase("10/responder-of-revision-1", oldResponder, "R6581-10-M7"),
}

// enhancedAnswered: an enhanced Request has an enhanced Reply, whatever it asks for
// and whatever the answer is.
func enhancedAnswered(t *conformance.T) {
	for word := range inTurn(t, "word % x", [][]byte{
		aWord(4, 4, "pd"), aWord(0, 0, ""), aWord(unsaid, unsaid, ""), aWord(flagA|4, flagC|flagD|4, ""),
	}) {
		for reject := range inTurn(t, "reject %v", []bool{false, true}) {
			r := listening(t, upper.OpenArgs{}, upper.ConnectArgs{Reject: reject, PrivateData: []byte("mine")})
			r.says(aFrame(requestKey, bitCRC|bitEnhanced, 2, word))
			f := r.hears()
			require.NotZero(t, f.flags&bitEnhanced, "S of the Reply")
			require.Equal(t, reject, f.flags&bitReject != 0, "R of the Reply")
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
			r := listening(t, upper.OpenArgs{}, upper.ConnectArgs{Reject: reject, PrivateData: []byte("mine")})
			r.says(aFrame(requestKey, bitCRC, rev, []byte("\x80\x01\xC0\x01 is not a word")))
			flags := byte(bitCRC)
			if reject {
				flags |= bitReject
			}
			require.Equal(t, aFrame(replyKey, flags, rev, []byte("mine")), r.hears().octets, "the Reply")
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
func initiates(t *conformance.T, c mpa.Config) (net.Conn, heardFrame, <-chan error) {
	x, y := tcpPair(t)
	x = t.Trace().Conn(x)
	done := make(chan error, 1)
	go func() { done <- second(mpa.Initiate(t.Context(), y, c)) }()
	return x, hearFrame(t, x, requestKey), done
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
		{"enhanced, to an enhanced one", mpa.Config{}, aFrame(replyKey, bitCRC|bitEnhanced, 2, aWord(4, 4, "")), true},
		{"plain, to an enhanced one", mpa.Config{}, aFrame(replyKey, bitCRC, 2, aWord(4, 4, "")), false},
		{"of revision 1, to an enhanced one", mpa.Config{}, aFrame(replyKey, bitCRC|bitEnhanced, 1, aWord(4, 4, "")), false},
		{"plain, to a plain one", plain, aFrame(replyKey, bitCRC, 2, aWord(4, 4, "")), true},
		{"enhanced, to a plain one", plain, aFrame(replyKey, bitCRC|bitEnhanced, 2, aWord(4, 4, "")), false},
	}) {
		c, _, done := initiates(t, x.config)
		require.NoError(t, second(c.Write(x.reply)))
		err := <-done
		if x.good {
			require.NoError(t, err)
			continue
		}
		var bad *mpa.Error
		require.ErrorAs(t, err, &bad)
		require.EqualValues(t, 0x2004, bad.Code)
		endsBehind(t, c, "the Request")
	}
}

// nothingWanted: an Initiator that wants nothing of the enhanced startup does not use
// it.
func nothingWanted(t *conformance.T) {
	for _, x := range []struct {
		config mpa.Config
		want   []byte
	}{
		{mpa.Config{KeepIRD: true, KeepORD: true}, aFrame(requestKey, bitCRC, 2, nil)},
		{mpa.Config{KeepIRD: true, KeepORD: true, PrivateData: []byte("pd")}, aFrame(requestKey, bitCRC, 2, []byte("pd"))},
		{mpa.Config{KeepIRD: true, KeepORD: true, RTR: mpa.RTRRead}, aFrame(requestKey, bitCRC, 2, nil)},
		{mpa.Config{Rev: 1}, aFrame(requestKey, bitCRC, 1, nil)},
		{mpa.Config{Rev: 1, IRD: 3, ORD: 4, PrivateData: []byte("pd")}, aFrame(requestKey, bitCRC, 1, []byte("pd"))},
		// Each of these is something wanted.
		{mpa.Config{KeepORD: true, IRD: 3}, aFrame(requestKey, bitCRC|bitEnhanced, 2, aWord(3, unsaid, ""))},
		{mpa.Config{KeepIRD: true, ORD: 3}, aFrame(requestKey, bitCRC|bitEnhanced, 2, aWord(unsaid, 3, ""))},
		{
			mpa.Config{KeepIRD: true, KeepORD: true, P2P: true, RTR: rtrWrite},
			aFrame(requestKey, bitCRC|bitEnhanced, 2, aWord(flagA|unsaid, flagC|unsaid, "")),
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
func plainAfterEnhanced(t *conformance.T, n *node) {
	l := must(cm.Listen("127.0.0.1:0", cm.ListenConfig{}))(t)
	t.Cleanup(func() { _ = l.Close() })
	enhanced := aFrame(requestKey, bitCRC|bitEnhanced, 2, aWord(flagA|4, flagC|4, ""))
	for i, request := range [][]byte{
		enhanced, aFrame(requestKey, bitCRC, 1, nil), enhanced, enhanced, aFrame(requestKey, bitCRC, 2, []byte("pd")), aFrame(requestKey, bitCRC, 1, nil),
	} {
		t.Part("connection %d", i)
		var d net.Dialer
		c := must(d.DialContext(t.Context(), "tcp", l.Addr().String()))(t)
		t.Cleanup(func() { _ = c.Close() })
		c = t.Trace().Conn(c)
		require.NoError(t, second(c.Write(request)))
		req := must(l.Accept(t.Context()))(t)
		qp := n.newQP(verbs.QPConfig{})
		postRecv(t, qp, verbs.Recv{ID: 1, SGL: n.mr.SGL(0, 8)})
		conn := must(req.Accept(t.Context(), qp, cm.Config{}))(t)
		f := hearFrame(t, c, replyKey)
		require.Equal(t, request[16:18], []byte{f.flags, f.rev}, "flags and revision of the Reply")
		p := newRawEnd(c, framing{crc: true, patience: patience(t)})
		require.NoError(t, p.Send(aSend(1, []byte("received"))))
		completes(t, n.cq, verbs.Completion{ID: 1, QP: qp.ID(), Op: verbs.OpRecv, Bytes: 8})
		require.Equal(t, "received", string(n.mr.Bytes()[:8]))
		run(t, qp, verbs.Request{ID: 2, SGL: n.mr.SGL(0, 4)}, verbs.StatusSuccess)
		require.Equal(t, aSend(1, []byte("rece")), must(p.Next())(t))
		require.NoError(t, p.CloseWrite())
		<-conn.Done()
		require.ErrorIs(t, second(p.Next()), io.EOF)
	}
}

// oldResponder is a Responder that speaks revision 1 alone: an enhanced Request costs
// the connection, a plain one does not.
func oldResponder(t *conformance.T) {
	for _, word := range [][]byte{aWord(4, 4, ""), aWord(flagA|4, flagC|flagD|4, "pd")} {
		r := listening(t, upper.OpenArgs{}, upper.ConnectArgs{Rev: 1})
		r.says(aFrame(requestKey, bitCRC|bitEnhanced, 2, word))
		endsBehind(t, r.conn, "an enhanced Request")
		r.fails()
	}
	r := listening(t, upper.OpenArgs{}, upper.ConnectArgs{Rev: 1})
	r.says(aFrame(requestKey, bitCRC, 2, nil))
	require.Equal(t, aFrame(replyKey, bitCRC, 1, nil), r.hears().octets, "the Reply to a plain one")
	r.established(withCRC)
	r.works(1)
}
