package cases

import (
	"fmt"
	"io"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
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
	for x := range inTurn(t, "%s", segmentFaults) {
		if x.code>>12 != 1 {
			continue
		}
		v := newFaultRig(t, twoCQs())
		u := x.ulpdu(v)
		v.send(u)
		v.expect(aTerminate(x.code, x.of(u), x.echo == echoRequest))
		v.state(verbs.StateTerminate)
		require.True(t, v.query().Stream, "the LLP stream while the peer has not closed")
		v.endsAs(endFIN, "FPDUs behind the Terminate Message")
		v.shut()
		v.ended(verbs.StateError)
	}
}

// noPostsBehindClose: with the close begun neither queue takes a request, and nothing
// but the end of the stream leaves.
func noPostsBehindClose(t *conformance.T) {
	r, b := openWith(t, twoCQs(), 8)
	r.post(verbs.Request{ID: 1, SGL: b.sgl(0, 8)})
	r.expect(aSend(1, b.first))
	r.completions(verbs.Completion{ID: 1})
	r.settled()
	r.close()
	for op := range inTurn(t, "%v", []verbs.Op{verbs.OpSend, verbs.OpSendSEInvalidate, verbs.OpWrite, verbs.OpRead}) {
		r.refusesPost(verbs.ErrInvalidState, verbs.Request{ID: 2, Op: op, SGL: b.sgl(0, 8), Local: b.sge(0, 8), Remote: theirs})
	}
	var p uppertester.Posted
	require.ErrorIs(t, r.up.PostRecv(uppertester.PostRecvArgs{QP: r.QP, Recvs: []verbs.Recv{{ID: 3}}}, &p), verbs.ErrInvalidState, "PostRQ")
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
		r := open(t, setup{qp: uppertester.OpenArgs{SendCQ: 1, RecvCQ: 2}})
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
	r, b := openWith(t, setup{narrow: true, qp: uppertester.OpenArgs{SendDepth: count}}, size)
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

// r5041_7 is what the sink checks before it places: RFC 5041 7.
var r5041_7 = []conformance.Case{
	upperCase("7.1/untagged-checks", untaggedChecks, "R5041-7.1-M1", "R5041-7.2-M1"),
	upperCase("7.1/tagged-checks", taggedChecks, "R5041-7.1-M2", "R5041-7.2-M1"),
	upperCase("7.1/placing-ceases", placingCeases, "R5041-7.1-M3"),
	upperCase("7.1/later-segments-dropped", laterDropped, "R5041-7.1-M4"),
	upperCase("7.2/version-numbers", versionNumbers, "R5041-7.2-M1"),
}

// untaggedChecks fails one of the five checks after the other: in the first segment of
// a message, and in the one behind it.
func untaggedChecks(t *conformance.T) {
	at := func(qn, msn, mo uint32, n int) func(*faultRig) []byte {
		return always(untagged(lastUntagged, opSend, 0, qn, msn, mo, uppertester.Pattern(3, n)))
	}
	rejectsEach(t, setup{},
		segmentFault{"queue 3", badQN, at(3, 1, 0, 4)},
		segmentFault{"queue 0xFFFFFFFF", badQN, at(0xFFFFFFFF, 1, 0, 4)},
		segmentFault{"queue 0x100, whose low octet is 0", badQN, at(0x100, 1, 0, 4)},
		segmentFault{"an MSN before the first", badMSN, at(0, 0, 0, 4)},
		segmentFault{"an MSN behind the last receive", badMSN, at(0, 2, 0, 4)},
		segmentFault{"an MO within the receive", badMO, at(0, 1, 8, 4)},
		segmentFault{"an MO at its end", badMO, at(0, 1, faultRigRoom, 4)},
		segmentFault{"an MO beyond it", badMO, at(0, 1, faultRigRoom+1, 4)},
		segmentFault{"one octet too many", tooLong, at(0, 1, 0, faultRigRoom+1)},
		segmentFault{"thousands too many", tooLong, at(0, 1, 0, 5000)},
	)
	for x := range inTurn(t, "the second segment %s", []struct {
		what   string
		qn, mo uint32
		text   string
		peerFault
	}{
		{"one octet too long", 0, 60, "12345", tooLong}, {"to queue 4", 4, 60, "1", badQN}, {"with MO 59", 0, 59, "1", badMO},
	}) {
		v := newFaultRig(t, setup{})
		data := uppertester.Pattern(77, 60)
		v.send(untagged(moreUntagged, opSend, 0, 0, 1, 0, data))
		v.receive.gets(0, data)
		v.rejected(x.peerFault, untagged(lastUntagged, opSend, 0, x.qn, 1, x.mo, []byte(x.text)))
	}
	for n := range inTurn(t, "%d octets and no receive", []int{0, 1, 1000}) {
		r := open(t, setup{})
		u := aSend(1, make([]byte, n))
		r.refuses(0x1202, u, false)
		r.events(verbs.EventRQMSNRange)
	}
	t.Part("an RDMA Read Request beyond IRD")
	r, b := openWith(t, setup{narrow: true, qp: uppertester.OpenArgs{IRD: 1}}, 8<<20)
	r.send(aReadRequest(1, read{nowhere, 0, 8 << 20, b.tag(), b.at(0)}))
	u := aReadRequest(2, read{nowhere, 0, 1, b.tag(), b.at(0)})
	r.send(u)
	r.eventuallyTerminated(0x1202, u, false)
	r.ended(verbs.StateError)
	r.events(verbs.EventIRRQTooMany)
	t.Part("a receive that is filled to the last octet")
	v := newFaultRig(t, setup{})
	data := uppertester.Pattern(5, faultRigRoom)
	v.send(cutUp(opSend, 0, 1, data, faultRigRoom-1, 1)...)
	v.completionsOf(v.RecvCQ, verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: faultRigRoom})
	v.receive.holds(0, data)
}

// taggedChecks is untaggedChecks for RDMA Writes. The regions of this side have guard
// octets around them, of which none changes.
func taggedChecks(t *conformance.T) {
	at := func(off, n int) func(*faultRig) []byte { return writeOf(off, uppertester.Pattern(3, n)) }
	rejectsEach(t, setup{},
		segmentFault{"a region without the right", noRight.write, func(v *faultRig) []byte {
			b := v.rig.region(8, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead)
			return aWrite(b.tag(), b.at(0), []byte("x"))
		}},
		segmentFault{"a TO before the region", noBounds.write, at(-1, 1)},
		segmentFault{"a TO behind the region", noBounds.write, at(256, 1)},
		segmentFault{"a TO far behind the region", noBounds.write, func(v *faultRig) []byte {
			return aWrite(v.region.tag(), v.region.at(0)+1<<40, []byte("x"))
		}},
		segmentFault{"an end behind the region", noBounds.write, at(250, 7)},
		segmentFault{"more than the region", noBounds.write, at(0, 257)},
		segmentFault{"from before it to behind it", noBounds.write, at(-1, 300)},
	)
	for _, x := range foreignSTags {
		if x.what == "one that is Invalid" {
			continue // it uses the requests of the rig: see 4.2/stag-of-the-stream
		}
		rejects(t, setup{}, x.what, x.peerFault, func(v *faultRig) []byte {
			b := x.stag(v)
			return aWrite(b.tag(), b.at(0), []byte("x"))
		})
	}
	for _, x := range []struct {
		to uint64
		n  int
	}{{^uint64(0), 2}, {^uint64(0) - 99, 101}, {^uint64(0), 60_000}} {
		rejects(t, setup{}, fmt.Sprintf("%d octets from %x on", x.n, x.to), noWrap.write, func(v *faultRig) []byte {
			return aWrite(v.region.tag(), x.to, make([]byte, x.n))
		})
	}
	t.Part("up to its end")
	v := newFaultRig(t, setup{})
	v.send(aWrite(v.region.tag(), v.region.at(255), []byte("x")), aWrite(v.region.tag(), v.region.at(0), []byte("y")))
	v.settled()
	v.region.gets(255, []byte("x"))
	v.region.holds(0, []byte("y"))
}

// placingCeases: of a segment that does not fit as a whole, not an octet is placed,
// and its header and length are told.
func placingCeases(t *conformance.T) {
	for _, x := range []struct{ off, n int }{{255, 2}, {200, 57}, {0, 257}, {-1, 2}, {1, 256}} {
		t.Part("%d octets from %d on, of 256", x.n, x.off)
		v := newFaultRig(t, setup{})
		good := aWrite(v.region.tag(), v.region.at(100), []byte("good"))
		bad := aWrite(v.region.tag(), v.region.at(x.off), uppertester.Pattern(0xA5, x.n))
		v.sendAtOnce(good, bad)
		v.region.gets(100, []byte("good"))
		v.rejects(noBounds.write, bad)
		q := v.query()
		require.NotNil(t, q.Terminate)
		require.True(t, q.Terminate.Sent)
		require.EqualValues(t, 0x1101, q.Terminate.Code)
		require.Equal(t, aTerminate(0x1101, bad, false)[18:], q.Terminate.Raw, "what the program can query")
	}
	t.Part("a message whose middle does not fit")
	v := newFaultRig(t, setup{})
	list := cutTagged(opWrite, v.region.tag(), v.region.at(240), uppertester.Pattern(0x5A, 30), 10, 10, 10)
	v.sendAtOnce(list...)
	v.region.gets(240, uppertester.Pattern(0x5A, 10))
	v.rejects(noBounds.write, list[1])
	t.Part("a receive that is too short")
	v = newFaultRig(t, setup{})
	list = cutUp(opSend, 0, 1, uppertester.Pattern(0x5A, 90), 30, 30, 30)
	v.sendAtOnce(list...)
	v.receive.gets(0, uppertester.Pattern(0x5A, 60))
	v.rejects(tooLong, list[2])
}

// laterDropped: behind a bad segment come good ones and bad ones of all kinds, and
// there is no sign of them.
func laterDropped(t *conformance.T) {
	for first := range inTurn(t, "behind bad segment %d", []int{0, 1}) {
		v := newFaultRig(t, setup{})
		bad := [][]byte{
			aWrite(v.region.tag()^1, v.region.at(0), []byte("bad")),
			untagged(lastUntagged, opSend, 0, 7, 1, 0, []byte("bad")),
		}
		all := [][]byte{bad[first]}
		for i := range 10 {
			all = append(all, bad[(first+i)%2], []byte{0xEE}, tagged(0xC0, opWrite, 0, 0, nil))
			all = append(all,
				aWrite(v.region.tag(), v.region.at(i), []byte("good")), aSend(uint32(i+1), []byte("good")),
				aReadResponse(v.sink.tag(), v.sink.at(0), []byte("response")),
				aReadRequest(uint32(i+1), read{nowhere, nowhereTO, 4, v.region.tag(), v.region.at(0)}),
			)
		}
		v.sendAtOnce(all...)
		v.rejects(either(first == 0, noSTag.write, badQN), bad[first])
		v.incomplete()
	}
}

// versionNumbers are the two numbers that no check of 7.1 has.
func versionNumbers(t *conformance.T) {
	rejectsEach(t, setup{},
		segmentFault{"a tagged segment of version 0", badTaggedDDP, func(v *faultRig) []byte {
			return tagged(0xC0, opWrite, v.region.tag(), v.region.at(0), []byte("x"))
		}},
		segmentFault{"an untagged segment of version 3", badDDP, always(untagged(0x43, opSend, 0, 0, 1, 0, []byte("x")))},
		segmentFault{"a tagged segment of version 2 with a wrong STag", badTaggedDDP, func(v *faultRig) []byte {
			return tagged(0xC2, opWrite, v.region.tag()^1, v.region.at(0), []byte("x"))
		}},
	)
}
