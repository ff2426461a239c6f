package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_2_rts is what is done in RTS: verbs draft 6.2.2 and 6.2.2.1.
var rv6_2_rts = []conformance.Case{
	apiCase("6.2.2/messages-in-rts-only", onNode(messagesInRTSOnly), "RV-6.2.2-M1"),
	apiCase("6.2.2/posted-in-order", onNode(postedInOrder), "RV-6.2.2-M3"),
	upperCase("6.2.2/inbound-processed", onRig(inboundProcessed), "RV-6.2.2-M4"),
	apiCase("6.2.2/not-to-idle", onLine(rtsNotToIdle), "RV-6.2.2-M5"),
	apiCase("6.2.2.1/rts-to-rts", rtsToRTS, "RV-6.2.2.1-M1"),
}

// messagesInRTSOnly has work on the queues in the other states.
func messagesInRTSOnly(t *conformance.T, n *node) {
	for s, end := range map[verbs.State]func(*line){
		verbs.StateClosing: func(l *line) { l.cut() }, // work while closing
		verbs.StateTerminate: func(l *line) {
			l.tell(l.answer(), aSend(1, nil)) // a Read that completed would let others begin
			l.terminated(0x0000, nil, false)
		},
		verbs.StateError: func(l *line) { l.cut() },
	} {
		t.Part("in %v", s)
		l := n.line(verbs.QPConfig{ORD: 1})
		l.recv(1)
		post(t, l.qp, l.aRead(2), l.aRead(3), l.aSend(4))
		l.hear(l.asks(1))
		l.modify(s)
		end(l)
		completes(t, l.rq, l.recvAs(verbs.StatusFlushed, 1)...)
		completes(t, l.sq, l.sentAs(2, verbs.OpRead, verbs.StatusFlushed), l.sentAs(3, verbs.OpRead, verbs.StatusFlushed),
			l.sentAs(4, verbs.OpSend, verbs.StatusFlushed))
	}
	t.Part("in Idle")
	n = newNode(t, nodeConfig{})
	l := n.loose(verbs.QPConfig{})
	post(t, l.qp, l.aSend(1))
	n.quiet()
	empty(t, l.sq)
	t.Part("in RTS")
	l.join()
	l.hear(aSend(1, l.mr.Bytes()[:4]))
	completes(t, l.sq, l.sentAs(1, verbs.OpSend, verbs.StatusSuccess))
}

func postedInOrder(t *conformance.T, n *node) {
	l := n.loose(verbs.QPConfig{SendDepth: 256})
	fill(n.mr.Bytes()[:256], 1)
	one := func(i int) { post(t, l.qp, verbs.Request{ID: uint64(i), SGL: n.mr.SGL(i, 1)}) }
	for i := range 100 {
		one(i)
	}
	l.join()
	for i := 100; i < 200; i++ {
		one(i)
	}
	for i := range 200 {
		l.hear(aSend(uint32(i+1), n.mr.Bytes()[i:i+1]))
	}
	for i := range 200 {
		completes(t, l.sq, l.sentAs(uint64(i), verbs.OpSend, verbs.StatusSuccess))
	}
	one(200) // to an empty queue
	l.hear(aSend(201, n.mr.Bytes()[200:201]))
}

// inboundProcessed has the peer send each kind of message.
func inboundProcessed(t *conformance.T, r *rig) {
	bufs := r.recv(4, 64)
	g := r.region(256, allRights)
	inv := r.region(64, allRights)
	r.post(verbs.Request{ID: 9, Op: verbs.OpRead, Local: g.sge(200, 8), Remote: theirs})
	r.expect(aReadRequest(1, read{g.tag(), g.at(200), 8, uint32(theirs.STag), theirs.TO}))
	r.send(
		aSend(1, []byte("send")),
		aWrite(g.tag(), g.at(16), []byte("write")),
		untagged(lastUntagged, opSendSE, 0, 0, 2, 0, []byte("solicited")),
		aReadResponse(g.tag(), g.at(200), []byte("response")),
		aSendInv(3, inv.tag(), []byte("invalidate")),
		untagged(moreUntagged, opSendSE, 0, 0, 4, 0, []byte("two ")),
		untagged(lastUntagged, opSendSE, 0, 0, 4, 4, []byte("segments")),
	)
	got := r.poll(r.SendCQ, 5, r.patience())
	require.Equal(t, []verbs.Completion{
		{ID: 1, QP: r.ID, Op: verbs.OpRecv, Bytes: 4}, {ID: 2, QP: r.ID, Op: verbs.OpRecv, Bytes: 9}, {ID: 9, QP: r.ID, Op: verbs.OpRead},
		{ID: 3, QP: r.ID, Op: verbs.OpRecv, Bytes: 10, Invalidated: inv.STag, HasInvalidated: true},
		{ID: 4, QP: r.ID, Op: verbs.OpRecv, Bytes: 12},
	}, got)
	for i, s := range []string{"send", "solicited", "invalidate", "two segments"} {
		bufs[i].holds(0, []byte(s))
	}
	copy(g.first[200:], "response")
	g.holds(16, []byte("write"))
	require.Equal(t, "write", string(r.fetch(g, 16, 5)))
	r.unharmed()
}

func rtsNotToIdle(t *conformance.T, l *line) {
	for i := range 3 {
		refuses(t, "Idle", verbs.ErrInvalidState, func() error { return l.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle}) }, l.shown)
		run(t, l.qp, l.aSend(1), verbs.StatusSuccess)
		l.hear(aSend(uint32(i+1), l.mr.Bytes()[:4]))
	}
}

func rtsToRTS(t *conformance.T) {
	l := newLine(t, verbs.QPConfig{SendDepth: 4, RecvDepth: 4, IRD: 8, ORD: 8})
	l.modify(verbs.StateRTS)
	require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, ORD: ptr(1), SendDepth: ptr(50), RecvDepth: ptr(60)}))
	a := attributes(t, l.qp)
	require.Equal(t, verbs.StateRTS, a.State)
	require.Equal(t, 1, a.ORD)
	require.GreaterOrEqual(t, a.SendDepth, 50)
	require.GreaterOrEqual(t, a.RecvDepth, 60)
	l.recv(1)
	l.delivers(1, "abc")
	post(t, l.qp, l.aRead(2), l.aRead(3))
	l.hear(l.asks(1))
	l.settle() // the second waits
	l.tell(l.answer())
	l.hear(l.asks(2))
	l.tell(l.answer())
	completes(t, l.sq, l.sentAs(2, verbs.OpRead, verbs.StatusSuccess), l.sentAs(3, verbs.OpRead, verbs.StatusSuccess))
	require.Equal(t, "response", string(l.mr.Bytes()[4096:4104]), "what was read")
}

// rv6_2_faults is what follows from faults: verbs draft 6.2.2.3, 6.2.3 and 6.4.
var rv6_2_faults = []conformance.Case{
	upperCase("6.2.2.3/by-itself", terminatedByItself, "RV-6.2.2.3-M2"),
	upperCase("6.2.2.3/faults-of-segments", faultsOfSegments,
		"RV-6.2.2.3-M3", "RV-6.2.3-M4", "RV-6.4-M2", "RV-6.4-M3", "RV-6.4-M17", "PR-5040-5.3-M1", "PV-9.5.3-M1",
		"PV-9.5.3-M2", "PV-9.5.3-M3", "PV-9.5.3-M4", "PV-9.5.3-M9", "PV-9.5.3-M10", "PV-9.5.3-M11", "PV-9.5.3-M14"),
	apiCase("6.2.2.3/faults-of-requests", onNode(faultsOfRequests),
		"RV-6.2.2.3-M4", "RV-6.2.3-M4", "RV-6.2.3-M14", "RV-6.4-M2", "RV-6.4-M10", "RV-6.4-M11", "PR-5040-4.8-M1",
		"PV-6.4-M2"),
}

// elsewhere is a region of another Protection Domain.
func (r *rig) elsewhere() *buffer {
	return r.register(upper.RegisterArgs{PD: 77, Len: 64, Access: allRights})
}

// segmentFaults are segments that may not be taken: codes by RFC 5040 4.8 figure 9,
// RFC 5041 7.2 and RFC 5044 8, events by figures 24 and 37.
var segmentFaults = []rejection{
	{what: "a Write to an invalid STag", code: 0x1100, event: verbs.EventProtSTag, ulpdu: func(*victim) []byte { return badSTag }},
	{what: "a Write out of bounds", code: 0x1101, event: verbs.EventProtBounds, ulpdu: func(v *victim) []byte {
		return aWrite(v.region.tag(), v.region.at(250), make([]byte, 7))
	}},
	{what: "a Write without the right", code: 0x1100, event: verbs.EventProtAccess, ulpdu: func(v *victim) []byte {
		b := v.rig.region(8, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead)
		return aWrite(b.tag(), b.at(0), []byte{1})
	}},
	{what: "a Write to another PD", code: 0x1102, event: verbs.EventProtPD, ulpdu: func(v *victim) []byte {
		b := v.elsewhere()
		return aWrite(b.tag(), b.at(0), []byte{1})
	}},
	{what: "a Write that wraps", code: 0x1103, event: verbs.EventProtWrap, ulpdu: func(v *victim) []byte {
		return aWrite(v.region.tag(), ^uint64(0)-1, []byte{1, 2, 3})
	}},
	{what: "a Read of an invalid STag", code: 0x0100, readToo: true, event: verbs.EventIRRQSTag, ulpdu: func(*victim) []byte {
		return aReadRequest(1, read{nowhere, nowhereTO, 1, 0x00F00000, 0})
	}},
	{what: "a Read out of bounds", code: 0x0101, readToo: true, event: verbs.EventIRRQBounds, ulpdu: func(v *victim) []byte {
		return aReadRequest(1, read{nowhere, nowhereTO, 7, v.region.tag(), v.region.at(250)})
	}},
	{what: "a Read without the right", code: 0x0102, readToo: true, event: verbs.EventIRRQAccess, ulpdu: func(v *victim) []byte {
		b := v.rig.region(8, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteWrite)
		return aReadRequest(1, read{nowhere, nowhereTO, 1, b.tag(), b.at(0)})
	}},
	{what: "a Read of another PD", code: 0x0103, readToo: true, event: verbs.EventIRRQPD, ulpdu: func(v *victim) []byte {
		b := v.elsewhere()
		return aReadRequest(1, read{nowhere, nowhereTO, 1, b.tag(), b.at(0)})
	}},
	{what: "a Read that wraps", code: 0x0104, readToo: true, event: verbs.EventIRRQWrap, ulpdu: func(v *victim) []byte {
		return aReadRequest(1, read{nowhere, nowhereTO, 3, v.region.tag(), ^uint64(0) - 1})
	}},
	{what: "a Read Request that is too long", code: 0x1205, event: verbs.EventInvalidReadRequest, ulpdu: func(*victim) []byte {
		return append(aReadRequest(1, read{}), 0)
	}},
	{what: "a Send to another queue", code: 0x1201, event: verbs.EventInvalidQN, ulpdu: func(*victim) []byte {
		return untagged(lastUntagged, opSend, 0, 5, 1, 0, []byte{1})
	}},
	{what: "a Send that is too long", code: 0x1205, status: verbs.StatusBaseBounds, ulpdu: func(*victim) []byte {
		return aSend(1, make([]byte, victimRoom+1))
	}},
	{what: "an opcode that is none", code: 0x0206, event: verbs.EventUnexpectedOpcode, ulpdu: func(*victim) []byte {
		return untagged(lastUntagged, 0x4B, 0, 0, 1, 0, nil)
	}},
	{what: "a wrong version of RDMAP", code: 0x0205, event: verbs.EventRDMAPVersion, ulpdu: func(*victim) []byte {
		return untagged(lastUntagged, 0x83, 0, 0, 1, 0, nil)
	}},
	{what: "a wrong version of DDP, tagged", code: 0x1104, event: verbs.EventDDPVersion, ulpdu: func(v *victim) []byte {
		return tagged(0xC2, opWrite, v.region.tag(), v.region.at(0), []byte{1})
	}},
	{what: "a wrong version of DDP, untagged", code: 0x1206, event: verbs.EventDDPVersion, ulpdu: func(*victim) []byte {
		return untagged(0x42, opSend, 0, 0, 1, 0, []byte{1})
	}},
	{what: "a ULPDU without headers", code: 0x1000, bare: true, event: verbs.EventSegmentSize, ulpdu: func(*victim) []byte {
		return []byte{lastTagged, opWrite, 0}
	}},
}

// terminatedByItself looks at the states that faults lead to, with no verb called.
func terminatedByItself(t *conformance.T) {
	for i := range segmentFaults {
		x := &segmentFaults[i]
		t.Part("%s", x.what)
		v := newVictim(t, twoCQs())
		u := x.ulpdu(v)
		v.send(u)
		require.Equal(t, byte(opTerminate), v.next()[1])
		v.state(verbs.StateTerminate)
		v.finishedIn(verbs.StateError)
	}
	for what, do := range named(t, "%s", map[string]func(*rig){
		"a request that cannot be done": func(r *rig) { r.post(verbs.Request{SGL: []verbs.SGE{{STag: 0x00F00000, Length: 1}}}) },
		"the peer's close on work":      func(r *rig) { r.outstandingRead(1); r.shut() },
	}) {
		r := open(t, twoCQs())
		do(r)
		require.Equal(t, byte(opTerminate), r.next()[1])
		require.Error(t, second(r.peer.Next()))
		if what == "a request that cannot be done" {
			r.state(verbs.StateTerminate)
			r.shut()
		}
		r.ended(verbs.StateError)
	}
}

// faultsOfSegments: the message behind the last whole segment says what was wrong with
// which segment, the stream ends behind it, and there is one event, but for the fault
// that a completion tells of.
func faultsOfSegments(t *conformance.T) { rejected(t, setup{}, segmentFaults...) }

// requestFault is a request that cannot be done, and the status of figure 36.
type requestFault struct {
	what string
	req  func(*line) verbs.Request
	want verbs.Status
	qp   verbs.QPConfig
}

func ofSGE(op verbs.Op, sge func(*line) verbs.SGE) func(*line) verbs.Request {
	return func(l *line) verbs.Request {
		r := verbs.Request{Op: op, Remote: theirs}
		if op == verbs.OpRead || op == verbs.OpReadInvalidate {
			r.Local = sge(l)
		} else {
			r.SGL = []verbs.SGE{l.mr.SGE(0, 4), sge(l)}
		}
		return r
	}
}

// requestFaults has the faults of memory for each operation that uses some, and those
// of operations on memory.
func requestFaults() []requestFault {
	foreign := func(l *line) *verbs.MR {
		return l.region(l.newPD(), verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow})
	}
	var list []requestFault
	for _, op := range []verbs.Op{
		verbs.OpSend, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate, verbs.OpWrite, verbs.OpRead, verbs.OpReadInvalidate,
	} {
		add := func(what string, want verbs.Status, sge func(*line) verbs.SGE) {
			list = append(list, requestFault{what: op.String() + ", " + what, want: want, req: ofSGE(op, sge)})
		}
		add("an invalid STag", verbs.StatusInvalidSTag, func(*line) verbs.SGE { return verbs.SGE{STag: 0x00F00000, Length: 8} })
		add("out of bounds", verbs.StatusBaseBounds, func(l *line) verbs.SGE { return l.register(64, allRights).SGE(60, 8) })
		add("another PD", verbs.StatusInvalidPD, func(l *line) verbs.SGE { return foreign(l).SGE(0, 8) })
		add("a wrap", verbs.StatusWrap, func(l *line) verbs.SGE { return verbs.SGE{STag: l.mr.STag(), Length: 8, TO: ^uint64(0) - 3} })
		if op != verbs.OpRead && op != verbs.OpReadInvalidate {
			add("no right", verbs.StatusAccess, func(l *line) verbs.SGE { return l.register(64, verbs.LocalWrite).SGE(0, 8) })
		}
	}
	bind := func(f func(*line, *verbs.BindRequest)) func(*line) verbs.Request {
		return func(l *line) verbs.Request {
			b := l.newMW().BindRequest(l.mr, 0, 64, remoteRights, 1)
			f(l, b)
			return verbs.Request{Op: verbs.OpBind, Bind: b}
		}
	}
	return append(list,
		requestFault{what: "Read, ORD 0", want: verbs.StatusZeroReadResources, qp: verbs.QPConfig{NoReads: true}, req: func(l *line) verbs.Request { return l.aRead(0) }},
		requestFault{what: "Bind, no region", want: verbs.StatusInvalidRegion, req: bind(func(_ *line, b *verbs.BindRequest) { b.Region = 0x00F00000 })},
		requestFault{what: "Bind, no window", want: verbs.StatusInvalidWindow, req: bind(func(_ *line, b *verbs.BindRequest) { b.Window = 0x00F00000 })},
		requestFault{what: "Bind, out of bounds", want: verbs.StatusBaseBounds, req: bind(func(_ *line, b *verbs.BindRequest) { b.Length = nodeMemory + 1 })},
		requestFault{what: "Bind, another PD", want: verbs.StatusInvalidPD, req: bind(func(l *line, b *verbs.BindRequest) {
			mr := foreign(l)
			b.Region, b.VA = mr.STag(), mr.Base()
		})},
		requestFault{what: "Fast-Register, not privileged", want: verbs.StatusNotPrivileged, req: func(l *line) verbs.Request {
			return fastRegister(l.mr.STag(), l.pages(1, 4096).List(0, 4096), 1<<20, verbs.LocalRead)
		}},
		requestFault{what: "Invalidate, an invalid STag", want: verbs.StatusInvalidSTag, req: func(*line) verbs.Request {
			return verbs.Request{Op: verbs.OpInvalidate, Invalidate: 0x00F00000}
		}},
		requestFault{what: "Invalidate, another PD", want: verbs.StatusInvalidPD, req: func(l *line) verbs.Request {
			return verbs.Request{Op: verbs.OpInvalidate, Invalidate: foreign(l).STag()}
		}},
	)
}

// faultsOfRequests has each between two good ones: the first goes out whole, of the
// request at fault and of the one behind it there is nothing, but the Terminate Message
// of figure 12. The completion says what was wrong, so there is no event.
func faultsOfRequests(t *conformance.T, n *node) {
	for f := range inTurn(t, "%s", requestFaults()) {
		l := n.line(f.qp)
		l.recv(4)
		req := f.req(l)
		req.ID = 2
		post(t, l.qp, l.aSend(1), req, l.aSend(3))
		l.hear(aSend(1, l.mr.Bytes()[:4]))
		l.terminated(0x0000, nil, false)
		require.Equal(t, verbs.StateTerminate, l.qp.State())
		l.shut()
		endsAs(t, l.peer, endFIN)
		completes(t, l.sq, l.sentAs(1, verbs.OpSend, verbs.StatusSuccess), l.sentAs(2, req.Op, f.want), l.sentAs(3, verbs.OpSend, verbs.StatusFlushed))
		completes(t, l.rq, l.recvAs(verbs.StatusFlushed, 4)...)
		ends(t, l.qp, verbs.StateError)
	}
	n.quiet()
}
