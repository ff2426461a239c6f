package cases

import (
	"io"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// r5041_6 is how streams end: RFC 5041 6.2.
var r5041_6 = []conformance.Case{
	upperCase("6.2/ddp-ends-no-stream", ddpEndsNoStream, "R5041-6.2-M1"),
	upperCase("6.2.1/no-posts-behind-close", noPostsBehindClose, "R5041-6.2.1-M1"),
	upperCase("6.2.1/half-closed", halfClosed, "R5041-6.2.1-M3"),
	upperCase("6.2.2/fatal-errors-told", fatalTold, "R5041-6.2.2-M1"),
	upperCase("6.2.2/stream-stays", streamStays, "R5041-6.2.2-M2"),
}

// ddpEndsNoStream: of every fault that DDP finds, RDMAP is told, and it is RDMAP's
// Terminate Message that comes first. The stream ends behind it and in order.
func ddpEndsNoStream(t *conformance.T) {
	for i := range segmentFaults {
		x := &segmentFaults[i]
		if x.code>>12 != 1 {
			continue
		}
		t.Part("%s", x.what)
		v := newVictim(t, twoCQs())
		u := x.ulpdu(v)
		v.send(u)
		if x.bare {
			u = nil
		}
		v.expect(aTerminate(x.code, u, x.readToo))
		v.state(verbs.StateTerminate)
		require.True(t, v.query().Stream, "the LLP stream while the peer has not closed")
		endsAs(t, v.peer, endFIN, "FPDUs behind the Terminate Message")
		v.shut()
		v.ended(verbs.StateError)
	}
}

// noPostsBehindClose: with the close begun neither queue takes a request, and nothing
// but the end of the stream leaves.
func noPostsBehindClose(t *conformance.T) {
	r := open(t, twoCQs())
	b := r.region(8, allRights)
	r.post(verbs.Request{ID: 1, SGL: b.sgl(0, 8)})
	r.expect(aSend(1, b.first))
	r.completions(verbs.Completion{ID: 1})
	r.settled()
	r.close()
	for _, op := range []verbs.Op{verbs.OpSend, verbs.OpSendSEInvalidate, verbs.OpWrite, verbs.OpRead} {
		n, err := r.tryPost(verbs.Request{ID: 2, Op: op, SGL: b.sgl(0, 8), Local: b.sge(0, 8), Remote: theirs})
		require.ErrorIs(t, err, verbs.ErrInvalidState, "%v", op)
		require.Zero(t, n)
	}
	var p upper.Posted
	require.ErrorIs(t, r.up.PostRecv(upper.PostRecvArgs{QP: r.QP, Recvs: []verbs.Recv{{ID: 3}}}, &p), verbs.ErrInvalidState, "PostRQ")
	require.Zero(t, p.N)
	r.finishedIn(verbs.StateIdle)
	r.incomplete()
}

// halfClosed: the peer has ended its half, and this side has nothing left to do. It
// ends its own in the same way.
func halfClosed(t *conformance.T) {
	for play := range inTurn(t, "the peer is the %v", []conformance.Role{conformance.Initiator, conformance.Responder}) {
		s := twoCQs()
		s.play = play
		r := open(t, s)
		r.recv(1, 8)
		r.settled()
		r.shut()
		end, fpdus, err := r.peer.End()
		require.NoError(t, err)
		require.Equal(t, endFIN, end, "no reset")
		require.Zero(t, fpdus)
		r.ended(verbs.StateIdle)
		r.events(verbs.EventLLPCloseComplete)
		r.completionsOf(r.RecvCQ, flushedRecvs(1)...)
	}
}

// fatalTold: each kind of fatal error, and the one event that tells it. A reset can be
// noticed as the loss of what was being sent, so nothing is.
func fatalTold(t *conformance.T) {
	frame := func(r *rig, change func(f []byte)) {
		f := r.peer.Frame(aSend(1, []byte("payload")))
		change(f)
		require.NoError(t, r.peer.Raw(f))
	}
	for x := range inTurn(t, "%s", []struct {
		what  string
		do    func(r *rig)
		event verbs.EventID
	}{
		{"a reset", func(r *rig) { require.NoError(t, r.peer.Reset()) }, verbs.EventLLPReset},
		{"an end within an FPDU", func(r *rig) { require.NoError(t, r.peer.Raw([]byte{0, 20, 0x41})); r.shut() }, verbs.EventLLPLost},
		{"a bad CRC", func(r *rig) { frame(r, func(f []byte) { f[len(f)-1] ^= 1 }) }, verbs.EventBadCRC},
		{"a length that no FPDU has", func(r *rig) { frame(r, func(f []byte) { f[0], f[1] = 0xFF, 0xFF }) }, verbs.EventBadFPDU},
		{"a ULPDU that is no segment", func(r *rig) { r.send([]byte{0x41}) }, verbs.EventSegmentSize},
		{"a wrong version", func(r *rig) { r.send(untagged(0x43, opSend, 0, 0, 1, 0, nil)) }, verbs.EventDDPVersion},
		{"a wrong queue", func(r *rig) { r.send(untagged(0x41, opSend, 0, 3, 1, 0, nil)) }, verbs.EventInvalidQN},
		{"a wrong MSN", func(r *rig) { r.send(aSend(5, nil)) }, verbs.EventRQMSNRange},
		{"a wrong MO", func(r *rig) { r.send(untagged(0x41, opSend, 0, 0, 1, 9, nil)) }, verbs.EventRQMSNGap},
		{"a wrong STag", func(r *rig) { r.send(badSTag) }, verbs.EventProtSTag},
	}) {
		r := open(t, setup{qp: upper.OpenArgs{SendCQ: 1, RecvCQ: 2}})
		r.recv(1, 16)
		r.settled()
		x.do(r)
		if x.event != verbs.EventLLPReset {
			r.gone()
			_ = r.peer.CloseWrite()
		}
		r.ended(verbs.StateError)
		r.events(x.event)
		r.completionsOf(r.RecvCQ, flushedRecvs(1)...)
	}
}

// streamStays: a segment is refused while a long row of messages goes out and the peer
// does not read. The stream is not ended over that: what has been handed to the LLP
// arrives whole, then RDMAP's Terminate Message, and the end comes last.
func streamStays(t *conformance.T) {
	const size, count = 60_000, 200
	r := open(t, setup{narrow: true, qp: upper.OpenArgs{SendDepth: count}})
	b := r.region(size, allRights)
	for i := range count {
		r.post(verbs.Request{ID: uint64(i), SGL: b.sgl(0, size)})
	}
	p := r.message()
	same(t, b.first, p.payload, "the first message")
	bad := aWrite(b.tag()^1, b.at(0), []byte("bad"))
	r.send(bad)
	eventually(t, func() bool { return r.query().State == verbs.StateTerminate }, "the error is told")
	require.True(t, r.query().Stream, "the LLP stream while the peer does not read")
	// Segments come in order, up to the Terminate Message.
	msn, mo, segments := uint32(2), 0, 0
	for {
		u := r.next()
		if u[1] == opTerminate {
			require.Equal(t, aTerminate(0x1100, bad, false), u)
			break
		}
		n := len(u) - 18
		first := either(mo+n == size, lastUntagged, byte(moreUntagged))
		require.Equal(t, untagged(first, opSend, 0, 0, msn, uint32(mo), b.first[mo:mo+n]), u, "segment %d", segments)
		if mo, segments = mo+n, segments+1; mo == size {
			msn, mo = msn+1, 0
		}
	}
	require.NotZero(t, segments, "what was under way")
	require.Less(t, int(msn), count, "there is no socket that takes all")
	require.ErrorIs(t, second(r.peer.Next()), io.EOF)
	r.shut()
	r.ended(verbs.StateError)
	var want []verbs.Completion
	for i := range count {
		c := verbs.Completion{ID: uint64(i)}
		if i+1 >= int(msn) {
			c.Status = verbs.StatusFlushed
		}
		want = append(want, c)
	}
	r.completions(want...)
	r.events(verbs.EventProtSTag)
}
