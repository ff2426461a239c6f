package cases

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// Access probes: what may be done with an STag, by a work request's elements here and by a peer
// there, tried again and again (verbs draft 7). Each of the five kinds of access and of the four ways
// to invalidate either takes place or is refused as the case says.

// probe is a link that is put questions. What is refused ends the stream; the next question is then
// put to a new queue pair. Its queues have the CQ of the host unless the case says more.
type probe struct {
	*link
	cfg verbs.QPConfig
}

// onQuietHost is a case on one host. All events have to be read, none more may come.
func onQuietHost(run func(n *host)) func(*conformance.T) {
	return onHost(func(_ *conformance.T, n *host) {
		run(n)
		n.quiet()
	})
}

// onProbe is that with a probe, whose last queue pair no window may be bound to in the end.
func onProbe(c verbs.QPConfig, run func(*host, *probe)) func(*conformance.T) {
	return onQuietHost(func(n *host) {
		s := n.probe(c)
		run(n, s)
		s.disconnect()
	})
}

// probe makes one whose queue pairs are made from c.
func (n *host) probe(c verbs.QPConfig) *probe {
	c = n.withDefaults(c)
	return &probe{n.link(c), c}
}

// connect sees to it that there is a queue pair in RTS.
func (s *probe) connect() {
	if s.peer == nil {
		s.link = s.host.link(s.cfg)
	}
}

// disconnect destroys the queue pair, which no window may be bound to.
func (s *probe) disconnect() {
	if s.peer != nil {
		require.NoError(s.t, s.qp.Destroy(), "Destroy QP")
		s.over()
	}
}

func (s *probe) over() {
	s.drop()
	s.peer = nil
}

// fails says that the next message is a Terminate Message of this layer, type and
// code, that the stream ends behind it and the queue pair in Error.
func (s *probe) fails(code uint16) {
	s.hasCode(s.segment(opTerminate), code)
	s.endsAs(endFIN, "messages behind the Terminate Message")
	s.failed()
	if err := s.qp.Destroy(); err != nil {
		require.ErrorIs(s.t, err, verbs.ErrWindowsBound, "Destroy QP")
	}
}

func (s *probe) hasCode(g ddpSegment, code uint16) {
	require.GreaterOrEqual(s.t, len(g.payload), 4, "the Terminate Message")
	got := uint16(g.payload[0])<<8 | uint16(g.payload[1])
	require.Equalf(s.t, code, got, "Terminate %#04x, to be %#04x", got, code)
}

// failed has the peer close, with which the queue pair is in Error.
func (s *probe) failed() {
	s.over()
	ends(s.t, s.qp, verbs.StateError)
}

// refused says that the peer's last message raised the event, and no completion,
// and ended the stream.
func (s *probe) refused(r peerFault) {
	s.raised(r.event)
	s.fails(r.code)
}

// message is the whole message that the peer gets next.
func (s *probe) message(control byte) []byte {
	m := s.peer.message()
	require.Equal(s.t, control, m.control, "the control octet of what came")
	return m.payload
}

// ask has the peer read, and answer is the whole Read Response that it gets next. The memory is not
// read from any more then.
func (s *probe) ask(at verbs.Remote, n int) { s.fetches(uint32(at.STag), at.TO, n) }

func (s *probe) answer() []byte {
	b := s.message(opReadResponse)
	require.NoError(s.t, s.qp.Drain(s.t.Context()))
	return b
}

// write has the peer write.
func (s *probe) write(at verbs.Remote, b []byte, want peerFault) {
	s.connect()
	s.send(aWrite(uint32(at.STag), at.TO, b))
	if want != allowed {
		s.refused(want)
		return
	}
	s.settled()
}

// writeUnanswered has the peer write, on a queue pair that answers no Reads: a Send behind
// it tells that it is dealt with.
func (s *probe) writeUnanswered(at verbs.Remote, b []byte) {
	s.connect()
	s.send(aWrite(uint32(at.STag), at.TO, b))
	s.scatter(nil, nil, verbs.StatusSuccess)
}

// read has the peer read, and tells what it was sent: nothing if that is refused.
func (s *probe) read(at verbs.Remote, n int, want peerFault) []byte {
	s.connect()
	s.ask(at, n)
	if want != allowed {
		s.refused(want)
		return nil
	}
	b := s.answer()
	require.Len(s.t, b, n, "the answer to the Read")
	return b
}

// runs runs a request on the queue pair. Refused, it ends the stream, of which the
// peer hears nothing else.
func (s *probe) runs(req verbs.Request, want verbs.Status) {
	s.connect()
	run(s.t, s.qp, req, want)
	s.failsUnless(want, 0x0000)
}

func (s *probe) failsUnless(status verbs.Status, code uint16) {
	if status != verbs.StatusSuccess {
		s.fails(code)
	}
}

// binds is does for a Bind, which it returns.
func (s *probe) binds(b *verbs.BindRequest) *verbs.BindRequest {
	s.runs(binds(b), verbs.StatusSuccess)
	return b
}

// invented is a buffer of the peer's.
var invented = verbs.Remote{STag: 0x00FACE01, TO: 16}

// gather runs a Send or RDMA Write of these elements, and tells what the peer got.
func (s *probe) gather(op verbs.Op, sgl []verbs.SGE, want verbs.Status) []byte {
	s.runs(verbs.Request{ID: 0x7A01, Op: op, SGL: sgl, Invalidate: invented.STag, Remote: invented}, want)
	if want != verbs.StatusSuccess {
		return nil
	}
	return s.message(map[verbs.Op]byte{
		verbs.OpSend: opSend, verbs.OpSendSE: opSendSE, verbs.OpWrite: opWrite,
		verbs.OpSendInvalidate: opSendInv, verbs.OpSendSEInvalidate: opSendSEInv,
	}[op])
}

// scatter has the peer send b, into a receive of these elements.
func (s *probe) scatter(sgl []verbs.SGE, b []byte, want verbs.Status) {
	s.connect()
	s.receives(verbs.Recv{ID: 0x7A02, SGL: sgl}, aSend(s.nextSend(), b), verbs.Completion{Status: want, Bytes: uint32(len(b))}, 0x0000)
}

// receives posts to where the queue pair takes its receives from, and has the peer send what
// completes it so. Refused, it ends the stream with this code.
func (s *probe) receives(r verbs.Recv, u []byte, want verbs.Completion, code uint16) {
	postRecv(s.t, receiver(s.qp, s.cfg.SRQ), r)
	s.send(u)
	if want.Status != verbs.StatusSuccess {
		want = verbs.Completion{Status: want.Status}
	}
	want.ID, want.QP, want.Op = r.ID, s.id, verbs.OpRecv
	completes(s.t, s.cq, want)
	s.failsUnless(want.Status, code)
}

// sink runs an RDMA Read into an element, which the peer answers with b. It completes
// with a status of its own before the request goes out, if answered is taken, or when
// the answer comes; or the answer raises an event.
func (s *probe) sink(to verbs.SGE, b []byte, want verbs.Status, answered peerFault) {
	s.connect()
	req := verbs.Request{ID: 0x7A03, Op: verbs.OpRead, Local: to, Remote: invented}
	if want != verbs.StatusSuccess && answered == allowed {
		s.runs(req, want)
		return
	}
	post(s.t, s.qp, req)
	s.segment(opReadRequest)
	s.send(aReadResponse(uint32(to.STag), to.TO, b))
	switch {
	case answered == allowed:
	case want == verbs.StatusSuccess:
		s.refused(answered)
		want = verbs.StatusFlushed
	default:
		s.fails(answered.code)
	}
	completes(s.t, s.cq, s.sentAs(req.ID, req.Op, want))
}

// accessFault is how the kinds of access to a region are refused for one reason
// (verbs draft figures 23 and 24; RFC 5041 7.2 and RFC 5040 4.8 for the codes).
type accessFault struct {
	local verbs.Status // of the request whose element it is; Terminate 0x0000
	write peerFault    // of an inbound RDMA Write
	read  peerFault    // of an inbound RDMA Read Request
	// posted is the status of an RDMA Read into it; answered its Terminate Message if
	// it is refused only when the answer comes.
	posted   verbs.Status
	answered peerFault
}

var (
	noSTag = accessFault{verbs.StatusInvalidSTag, protection(verbs.EventProtSTag, 0x1100), ofRequest(verbs.EventIRRQSTag, 0x0100), verbs.StatusInvalidSTag, allowed}
	noPD   = accessFault{verbs.StatusInvalidPD, protection(verbs.EventProtPD, 0x1102), ofRequest(verbs.EventIRRQPD, 0x0103), verbs.StatusInvalidPD, allowed}
	// noRight: RFC 5041 7.1 and 7.2 have one code for this and a bad STag.
	noRight  = accessFault{verbs.StatusAccess, protection(verbs.EventProtAccess, 0x1100), ofRequest(verbs.EventIRRQAccess, 0x0102), verbs.StatusAccess, peerFault{code: 0x1100}}
	noBounds = accessFault{verbs.StatusBaseBounds, protection(verbs.EventProtBounds, 0x1101), ofRequest(verbs.EventIRRQBounds, 0x0101), verbs.StatusBaseBounds, allowed}
	noWrap   = accessFault{verbs.StatusWrap, protection(verbs.EventProtWrap, 0x1103), ofRequest(verbs.EventIRRQWrap, 0x0104), verbs.StatusWrap, allowed}
)

// protection is the fault of a tagged segment, and ofRequest that of what an RDMA Read Request names.
func protection(event verbs.EventID, code uint16) peerFault {
	return peerFault{event: event, code: code}
}

func ofRequest(event verbs.EventID, code uint16) peerFault {
	return peerFault{event: event, code: code, echo: echoRequest}
}

// checks tries the five kinds of access to the octets of a buffer from off on,
// which are mem to the program: those for which a has the right take place, the
// others are refused as why says and move nothing.
func (s *probe) checks(b verbs.TaggedBuffer, off int, mem []byte, a verbs.Access, why accessFault) {
	k, there := len(mem), b.Remote(off)
	here := verbs.SGE{STag: b.STag, TO: there.TO, Length: uint32(k)} // b.SGE makes none with off < 0
	may := func(right verbs.Access) bool { return a&right != 0 }
	local := func(right verbs.Access) verbs.Status {
		return either(may(right), verbs.StatusSuccess, why.local)
	}
	// moves has octets come into mem, if the right is there.
	moves := func(right verbs.Access, seed int, what string, move func(sent []byte)) {
		want, sent := bytes.Clone(fill(mem, 3)), fill(make([]byte, k), seed)
		move(sent)
		require.Equal(s.t, either(may(right), sent, want), mem, "the memory after %s", what)
	}

	was := bytes.Clone(fill(mem, 3))
	if got := s.gather(verbs.OpSend, []verbs.SGE{here}, local(verbs.LocalRead)); may(verbs.LocalRead) {
		require.Equal(s.t, was, got, "what a Send gathered")
	}
	s.peerReads(there, mem, may(verbs.RemoteRead), why)
	require.Equal(s.t, was, mem, "the memory after reading")
	moves(verbs.LocalWrite, 5, "a Receive", func(sent []byte) { s.scatter([]verbs.SGE{here}, sent, local(verbs.LocalWrite)) })
	moves(verbs.RemoteWrite, 6, "an inbound Write", func(sent []byte) {
		s.write(there, sent, either(may(verbs.RemoteWrite), allowed, why.write))
	})
	moves(verbs.RemoteWrite, 7, "an RDMA Read", func(sent []byte) {
		if may(verbs.RemoteWrite) {
			s.sink(here, sent, verbs.StatusSuccess, allowed)
		} else {
			s.sink(here, sent, why.posted, why.answered)
		}
	})
}

// peerReads has the peer read what is mem to the program, if it may.
func (s *probe) peerReads(at verbs.Remote, mem []byte, may bool, why accessFault) {
	was := bytes.Clone(mem)
	if got := s.read(at, len(mem), either(may, allowed, why.read)); may {
		require.Equal(s.t, was, got, "what the peer read")
	}
}

// allAllowed says that all kinds of access to the octets of a buffer from off on take
// place, and are to mem.
func (s *probe) allAllowed(b verbs.TaggedBuffer, off int, mem []byte) {
	s.checks(b, off, mem, allRights, accessFault{})
}

// noneAllowed says that none does. mem stays as it is.
func (s *probe) noneAllowed(b verbs.TaggedBuffer, off int, mem []byte, why accessFault) {
	s.checks(b, off, mem, 0, why)
}

// checksPeer tries an inbound Write and Read of a window or region: checks, without the
// local kinds.
func (s *probe) checksPeer(b verbs.TaggedBuffer, off int, mem []byte, a verbs.Access, why accessFault) {
	was, sent := bytes.Clone(fill(mem, 8)), fill(make([]byte, len(mem)), 9)
	s.peerReads(b.Remote(off), mem, a&verbs.RemoteRead != 0, why)
	may := a&verbs.RemoteWrite != 0
	s.write(b.Remote(off), sent, either(may, allowed, why.write))
	require.Equal(s.t, either(may, sent, was), mem, "the memory after the peer's Write")
}

// flagged says that a region's Remote Access Flag is so: what Fast-Register may
// make of its STag, which is Invalid.
func (s *probe) flagged(mr *verbs.MR, p *verbs.Pages, flag bool) {
	t, mem := s.t, p.Bytes()[10:30]
	const local = verbs.LocalRead | verbs.LocalWrite
	for i, a := range []verbs.Access{verbs.RemoteRead, verbs.RemoteWrite, remoteRights} {
		r := fastRegister(mr.WithKey(uint8(i+1)), p.List(0, 64), 4096, local|a)
		b := verbs.FastRegisterBuffer(r.FastRegister)
		if !flag {
			s.runs(r, verbs.StatusInvalidAccessRights)
			require.False(t, queried(t, mr).Valid, "with %v, after a refused Fast-Register", a)
			s.checksPeer(b, 10, mem, 0, noSTag)
			continue
		}
		s.runs(r, verbs.StatusSuccess)
		require.Equal(t, local|a, queried(t, mr).Access, "Query")
		s.checksPeer(b, 10, mem, a, noRight)
		s.invalidate(invalidations[0], b.STag, invalidates)
	}
	// Local rights alone it always may have; they do not let the peer in.
	r := fastRegister(mr.WithKey(7), p.List(0, 64), 4096, local)
	s.runs(r, verbs.StatusSuccess)
	s.checks(verbs.FastRegisterBuffer(r.FastRegister), 10, mem, local, noRight)
	s.invalidate(invalidations[0], r.FastRegister.STag, invalidates)
}

// invalidation is one of the four ways to invalidate an STag (verbs draft 7.8).
type invalidation struct {
	name   string
	remote bool
	run    func(s *probe, st verbs.STag, want verbs.Status, code uint16)
}

var invalidations = []invalidation{
	{"Invalidate Local STag", false, func(s *probe, st verbs.STag, want verbs.Status, _ uint16) {
		s.runs(verbs.Request{ID: 0x7A04, Op: verbs.OpInvalidate, Invalidate: st}, want)
	}},
	{"RDMA Read with Invalidate", false, readInvalidate},
	{"Send with Invalidate", true, func(s *probe, st verbs.STag, want verbs.Status, code uint16) {
		sendInvalidate(s, opSendInv, st, want, code)
	}},
	{"Send with SE and Invalidate", true, func(s *probe, st verbs.STag, want verbs.Status, code uint16) {
		sendInvalidate(s, opSendSEInv, st, want, code)
	}},
}

// readInvalidate reads nothing: the STag is looked at to be invalidated only.
func readInvalidate(s *probe, st verbs.STag, want verbs.Status, _ uint16) {
	s.connect()
	post(s.t, s.qp, verbs.Request{ID: 0x7A05, Op: verbs.OpReadInvalidate, Local: verbs.SGE{STag: st}, Remote: verbs.Remote{STag: 0x00FACE01}})
	s.segment(opReadRequest)
	s.send(aReadResponse(uint32(st), 0, nil))
	completes(s.t, s.cq, s.sentAs(0x7A05, verbs.OpReadInvalidate, want))
	s.failsUnless(want, 0x0000)
}

func sendInvalidate(s *probe, op byte, st verbs.STag, want verbs.Status, code uint16) {
	s.connect()
	into := s.mr.Bytes()[hostMemory-8:] // away from what cases use
	clear(into)
	u := untagged(lastUntagged, op, uint32(st), 0, s.nextSend(), 0, []byte("farewell"))
	s.receives(verbs.Recv{ID: 0x7A06, SGL: s.mr.SGL(hostMemory-8, 8)}, u,
		verbs.Completion{Status: want, Bytes: 8, Invalidated: st, HasInvalidated: true}, code)
	require.Equal(s.t, "farewell", string(into), "the data of the Send")
}

// invalidationFault is how an invalidation is refused: the status of the request if it is
// local; if not, that of the receive, and the Terminate Message's code.
type invalidationFault struct {
	local, remote verbs.Status
	code          uint16
}

var (
	invalidates    = invalidationFault{}
	cannotBe       = invalidationFault{verbs.StatusInvalidSTag, verbs.StatusInvalidSTag, 0x0109}
	isGone         = invalidationFault{verbs.StatusInvalidSTag, verbs.StatusInvalidSTag, 0x0209}
	isForeign      = invalidationFault{verbs.StatusInvalidPD, verbs.StatusInvalidateSTag, 0x0109}
	hasWindows     = invalidationFault{verbs.StatusInvalidSTag, verbs.StatusInvalidateSTag, 0x0109}
	hasNoRemoteUse = invalidationFault{verbs.StatusSuccess, verbs.StatusInvalidateSTag, 0x0109}
)

// invalidate goes one way on a probe's queue pair.
func (s *probe) invalidate(w invalidation, st verbs.STag, want invalidationFault) {
	s.t.Logf("%s of %v", w.name, st)
	w.run(s, st, either(w.remote, want.remote, want.local), want.code)
}

// fastRegister is the request that registers a buffer list under an STag.
func fastRegister(st verbs.STag, b verbs.PhysicalBuffers, va uint64, a verbs.Access) verbs.Request {
	f := &verbs.FastRegisterRequest{STag: st, Buffers: b, VA: va, Access: a}
	if va == 0 {
		f.Addressing = verbs.ZeroBased
	}
	return verbs.Request{ID: 0x7A07, Op: verbs.OpFastRegister, FastRegister: f}
}

// binds is the request that binds a window.
func binds(b *verbs.BindRequest) verbs.Request {
	return verbs.Request{ID: 0x7A08, Op: verbs.OpBind, Bind: b}
}
