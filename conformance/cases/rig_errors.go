package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// Segments and requests that are at fault, and what each entails.

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

// completionError is an error of figure 23: a request that the Send Queue cannot do, or
// a receive that the peer's next message cannot be put into.
type completionError struct {
	what string
	qp   verbs.QPConfig
	req  func(*line) verbs.Request
	sgl  func(*line) []verbs.SGE // of the receive, if req is nil
	says func(*line) []byte      // what the peer sends for it
	want verbs.Status
	// code is the Terminate Message's; with it goes the header of what the peer
	// has sent, if blame is set.
	code  uint16
	blame bool
}

// errs has the error come about: its completion is on the CQ of its queue, of which the
// others are flushed; the Terminate Message has the code, and Query QP shows it as long
// as it has to; no event tells of it.
func (l *line) errs(e *completionError) {
	t := l.t
	var fault []byte
	var sent, received []verbs.Completion
	if e.req != nil {
		req := e.req(l)
		req.ID = 2
		l.recv(4, 5)
		post(t, l.qp, l.aSend(1), req, l.aSend(3))
		l.hear(aSend(1, l.mr.Bytes()[:4]))
		sent = []verbs.Completion{l.sentAs(1, verbs.OpSend, verbs.StatusSuccess), l.sentAs(2, req.Op, e.want), l.sentAs(3, verbs.OpSend, verbs.StatusFlushed)}
		received = l.recvAs(verbs.StatusFlushed, 4, 5)
	} else {
		post(t, l.qp, l.aRead(1))
		l.hear(l.asks(1))
		postRecv(t, l.qp, verbs.Recv{ID: 4, SGL: e.sgl(l)})
		l.recv(5)
		u := e.says(l)
		l.tell(u)
		if e.blame {
			fault = u
		}
		sent = []verbs.Completion{l.sentAs(1, verbs.OpRead, verbs.StatusFlushed)}
		received = append(l.recvAs(e.want, 4), l.recvAs(verbs.StatusFlushed, 5)...)
	}
	message := aTerminate(e.code, fault, false)
	l.hear(message)
	l.finished()
	l.keeps(message, true)
	completes(t, l.sq, sent...)
	completes(t, l.rq, received...)
	l.nothing()
	l.remains(verbs.StateError)
}

// sendQueueErrors are those of Sends, RDMA Writes and RDMA Reads of chapter 6, and a
// total length that no message can have.
func sendQueueErrors() (list []completionError) {
	for _, f := range requestFaults() {
		list = append(list, completionError{what: f.what, qp: f.qp, req: f.req, want: f.want})
	}
	for _, op := range []verbs.Op{verbs.OpSend, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate, verbs.OpWrite} {
		list = append(list, completionError{what: op.String() + ", too long", want: verbs.StatusInvalidLength, req: func(l *line) verbs.Request {
			return verbs.Request{Op: op, Remote: theirs, SGL: []verbs.SGE{{STag: l.mr.STag(), TO: l.mr.Base(), Length: 1<<32 - 1}, l.mr.SGE(0, 1)}}
		}})
	}
	return list
}

// anAlien is a region of another Protection Domain.
func (l *line) anAlien() *verbs.MR {
	return l.region(l.newPD(), verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow})
}

func fastRegisterErrors() (list []completionError) {
	add := func(what string, want verbs.Status, spoil func(*line, *verbs.FastRegisterRequest)) {
		list = append(list, completionError{what: what, qp: privileged, want: want, req: func(l *line) verbs.Request {
			r := fastRegister(l.allocated().WithKey(1), l.pages(10, 4096).List(0, 4096), 4096, allRights)
			if spoil != nil {
				spoil(l, r.FastRegister)
			}
			return r
		}})
	}
	add("not privileged", verbs.StatusNotPrivileged, nil)
	list[0].qp = verbs.QPConfig{}
	add("no such STag", verbs.StatusInvalidSTag, func(_ *line, f *verbs.FastRegisterRequest) { f.STag = 0x00F00000 })
	add("a window", verbs.StatusInvalidSTag, func(l *line, f *verbs.FastRegisterRequest) { f.STag = l.newMW().STag(1) })
	add("page size", verbs.StatusInvalidPageSize, func(_ *line, f *verbs.FastRegisterRequest) { f.Buffers.Size = 12288 })
	add("list too long", verbs.StatusPhysBufferListTooLong, func(l *line, f *verbs.FastRegisterRequest) { f.Buffers = l.pages(9, 4096).List(0, 9*4096) })
	add("in the Valid state", verbs.StatusSTagNotInvalid, func(l *line, f *verbs.FastRegisterRequest) { f.STag = l.register(8, allRights).STag() })
	add("another PD", verbs.StatusInvalidPD, func(l *line, f *verbs.FastRegisterRequest) {
		mr := must(l.newPD().AllocateRegion(verbs.AllocateConfig{}))(l.t)
		f.STag = mr.WithKey(1)
	})
	add("rights of figure 18", verbs.StatusInvalidAccessRights, func(_ *line, f *verbs.FastRegisterRequest) { f.Access = verbs.RemoteWrite })
	add("no Remote Access Flag", verbs.StatusInvalidAccessRights, func(l *line, f *verbs.FastRegisterRequest) {
		f.STag = l.allocate(verbs.AllocateConfig{PBL: 8}).WithKey(1)
	})
	add("VA and FBO", verbs.StatusInvalidVA, func(_ *line, f *verbs.FastRegisterRequest) { f.VA++ })
	add("FBO", verbs.StatusInvalidFBO, func(_ *line, f *verbs.FastRegisterRequest) { f.Buffers.FBO = 4096 })
	add("length", verbs.StatusInvalidFastRegLength, func(_ *line, f *verbs.FastRegisterRequest) { f.Buffers.Length = 4097 })
	add("buffer entry", verbs.StatusInvalidPhysBufferEntry, func(_ *line, f *verbs.FastRegisterRequest) { f.Buffers.Addresses[0]++ })
	return list
}

func bindErrors() (list []completionError) {
	add := func(what string, want verbs.Status, spoil func(*line, *verbs.BindRequest)) {
		list = append(list, completionError{what: what, want: want, req: func(l *line) verbs.Request {
			b := l.newMW().BindRequest(l.mr, 8, 64, remoteRights, 1)
			spoil(l, b)
			return binds(b)
		}})
	}
	add("no such region", verbs.StatusInvalidRegion, func(_ *line, b *verbs.BindRequest) { b.Region = 0x00F00000 })
	add("a region not in the Valid state", verbs.StatusInvalidRegion, func(l *line, b *verbs.BindRequest) { b.Region = l.allocated().STag() })
	add("no such window", verbs.StatusInvalidWindow, func(_ *line, b *verbs.BindRequest) { b.Window = 0x00F00000 })
	add("bounds", verbs.StatusBaseBounds, func(_ *line, b *verbs.BindRequest) { b.Length = nodeMemory - 7 })
	add("rights of the region", verbs.StatusAccess, func(l *line, b *verbs.BindRequest) {
		mr := l.register(128, verbs.LocalRead|verbs.BindWindow)
		b.Region, b.VA = mr.STag(), mr.Base()
	})
	add("a window in the Valid state", verbs.StatusSTagNotInvalid, func(l *line, b *verbs.BindRequest) {
		bound := *b
		run(l.t, l.qp, binds(&bound), verbs.StatusSuccess)
	})
	add("another PD", verbs.StatusInvalidPD, func(l *line, b *verbs.BindRequest) {
		mr := l.anAlien()
		b.Region, b.VA = mr.STag(), mr.Base()
	})
	add("a wrap", verbs.StatusWrap, func(_ *line, b *verbs.BindRequest) { b.VA = 1<<64 - 8 })
	return list
}

// invalidateErrors are those of Invalidate Local STag; an RDMA Read with Invalidate has
// its own once the response is there (see 7.8).
func invalidateErrors() (list []completionError) {
	for what, c := range map[string]struct {
		want verbs.Status
		stag func(*line) verbs.STag
	}{
		"no such STag":  {verbs.StatusInvalidSTag, func(*line) verbs.STag { return 0x00F00000 }},
		"another key":   {verbs.StatusInvalidSTag, func(l *line) verbs.STag { return l.register(8, allRights).STag() ^ 0x40 }},
		"another PD":    {verbs.StatusInvalidPD, func(l *line) verbs.STag { return l.anAlien().STag() }},
		"another QP's":  {verbs.StatusInvalidPD, func(l *line) verbs.STag { _, _, b := l.bound(verbs.QPConfig{}, 0, 8, remoteRights); return b.STag }},
		"bound windows": {verbs.StatusInvalidSTag, (*line).withWindow},
		"a shared region": {verbs.StatusInvalidSTag, func(l *line) verbs.STag {
			mr := l.register(8, allRights)
			require.NoError(l.t, second(mr.RegisterShared(nil, verbs.SharedConfig{Access: verbs.LocalRead})))
			return mr.STag()
		}},
	} {
		list = append(list, completionError{what: what, want: c.want, req: func(l *line) verbs.Request {
			return verbs.Request{Op: verbs.OpInvalidate, Invalidate: c.stag(l)}
		}})
	}
	return list
}

// withWindow is a region that a window is bound to, by another queue pair.
func (l *line) withWindow() verbs.STag {
	mr := l.register(64, allRights|verbs.BindWindow)
	run(l.t, l.line(verbs.QPConfig{}).qp, binds(l.newMW().BindRequest(mr, 0, 8, remoteRights, 1)), verbs.StatusSuccess)
	return mr.STag()
}

func receiveQueueErrors() (list []completionError) {
	say := func(*line) []byte { return aSend(1, []byte("12345678")) }
	for what, c := range map[string]struct {
		want verbs.Status
		sge  func(*line) verbs.SGE
	}{
		"no such STag": {verbs.StatusInvalidSTag, func(*line) verbs.SGE { return verbs.SGE{STag: 0x00F00000, Length: 8} }},
		"bounds":       {verbs.StatusBaseBounds, func(l *line) verbs.SGE { return l.register(64, allRights).SGE(60, 8) }},
		"rights":       {verbs.StatusAccess, func(l *line) verbs.SGE { return l.register(64, verbs.LocalRead).SGE(0, 8) }},
		"another PD":   {verbs.StatusInvalidPD, func(l *line) verbs.SGE { return l.anAlien().SGE(0, 8) }},
		"a wrap":       {verbs.StatusWrap, func(l *line) verbs.SGE { return verbs.SGE{STag: l.mr.STag(), Length: 8, TO: ^uint64(0) - 3} }},
	} {
		list = append(list, completionError{what: what, want: c.want, says: say, sgl: func(l *line) []verbs.SGE { return []verbs.SGE{c.sge(l)} }})
	}
	return append(list, completionError{ // RFC 5041 7.2 has the code
		what: "a message too long", want: verbs.StatusBaseBounds, code: 0x1205, blame: true, says: say,
		sgl: func(l *line) []verbs.SGE { return l.mr.SGL(0, 7) },
	})
}

// remoteInvalidateErrors are Sends with Invalidate of what the peer may not invalidate.
func remoteInvalidateErrors() (list []completionError) {
	for what, c := range map[string]struct {
		want verbs.Status
		code uint16 // RFC 5040 4.8, figure 9
		stag func(*line) verbs.STag
	}{
		"no such STag":     {verbs.StatusInvalidSTag, 0x0209, func(*line) verbs.STag { return 0x00F00000 }},
		"no remote rights": {verbs.StatusInvalidateSTag, 0x0109, func(l *line) verbs.STag { return l.register(8, verbs.LocalRead).STag() }},
		"another PD":       {verbs.StatusInvalidateSTag, 0x0109, func(l *line) verbs.STag { return l.anAlien().STag() }},
		"another QP's": {verbs.StatusInvalidateSTag, 0x0109, func(l *line) verbs.STag {
			_, _, b := l.bound(verbs.QPConfig{}, 0, 8, remoteRights)
			return b.STag
		}},
		"bound windows": {verbs.StatusInvalidateSTag, 0x0109, (*line).withWindow},
	} {
		for _, control := range []byte{opSendInv, opSendSEInv} {
			list = append(list, completionError{
				what: what, want: c.want, code: c.code, blame: true, sgl: func(l *line) []verbs.SGE { return l.mr.SGL(0, 8) },
				says: func(l *line) []byte { return untagged(lastUntagged, control, uint32(c.stag(l)), 0, 1, 0, []byte{1}) },
			})
		}
	}
	return list
}
