package cases

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// Tables of faults, each with all that has to follow: segments that have to be refused, requests and
// receives that complete in error, and descriptions of regions that are not registered.

// peerFault is how a queue pair refuses what its peer sends. The zero value: it does not.
type peerFault struct {
	// event is raised; 0 stands for a Completion Error instead, which is status, of the receive.
	event verbs.EventID
	// code is the Terminate Message's layer<<12|type<<8|code, and echo what it has of the segment.
	code   uint16
	echo   echo
	status verbs.Status
}

// echo is what a Terminate Message has of the segment at fault: its length and DDP header, and of an
// RDMA Read Request that header too, or nothing (RFC 5040 4.8 figure 10).
type echo byte

const (
	echoHeader echo = iota
	echoRequest
	echoNothing
)

// The faults of a segment's own fields: codes by RFC 5040 4.8 figure 9, RFC 5041 7.2 and RFC 5044 8,
// events by the verbs draft's figures 24 and 37. Those of access are noSTag and its like.
var (
	allowed      peerFault
	badCRC       = peerFault{event: verbs.EventBadCRC, code: 0x2002, echo: echoNothing}
	badSize      = peerFault{event: verbs.EventSegmentSize, code: 0x1000, echo: echoNothing}
	badDDP       = peerFault{event: verbs.EventDDPVersion, code: 0x1206}
	badTaggedDDP = peerFault{event: verbs.EventDDPVersion, code: 0x1104}
	badQN        = peerFault{event: verbs.EventInvalidQN, code: 0x1201}
	badMSN       = peerFault{event: verbs.EventRQMSNRange, code: 0x1203}
	badMO        = peerFault{event: verbs.EventRQMSNGap, code: 0x1204}
	tooLong      = peerFault{status: verbs.StatusBaseBounds, code: 0x1205}
	badRDMAP     = peerFault{event: verbs.EventRDMAPVersion, code: 0x0205}
	badOpcode    = peerFault{event: verbs.EventUnexpectedOpcode, code: 0x0206}
	noLBit       = peerFault{event: verbs.EventNoLBit, code: 0x0207}
	readTooLong  = peerFault{event: verbs.EventInvalidReadRequest, code: 0x1205}
	readTooShort = peerFault{event: verbs.EventInvalidReadRequest, code: 0x1000, echo: echoNothing}
	readMO       = peerFault{event: verbs.EventInvalidReadRequest, code: 0x1204}
	readMSN      = peerFault{event: verbs.EventIRRQMSNRange, code: 0x1203}
	readMSNGap   = peerFault{event: verbs.EventIRRQMSNGap, code: 0x1203}
	noReadRight  = peerFault{event: verbs.EventReadNotEnabled, code: 0x1201}  // of the queue pair
	noWriteRight = peerFault{event: verbs.EventWriteNotEnabled, code: 0x1100} // of the queue pair
)

// segmentFault is a segment that a queue pair has to refuse.
type segmentFault struct {
	what string
	peerFault
	ulpdu func(*faultRig) []byte
}

// faultRig is what a rejection is tried on: a queue pair in RTS with one receive of
// faultRigRoom octets, an outstanding RDMA Read into sink, and an open region.
type faultRig struct {
	*rig
	receive, sink, region *buffer
}

const faultRigRoom = 64

func newFaultRig(t *conformance.T, s setup) *faultRig {
	s.qp.SendCQ, s.qp.RecvCQ = 1, 2
	v := &faultRig{rig: open(t, s)}
	v.receive = v.recv(1, faultRigRoom)[0]
	v.sink = v.rig.region(faultRigRoom, allRights)
	rights := allRights | verbs.BindWindow
	if s.qp.Extensions {
		rights |= verbs.RemoteAtomic
	}
	v.region = v.rig.region(256, rights)
	if v.play == conformance.Responder {
		v.send(aWrite(0, 0, nil))
	}
	v.post(verbs.Request{ID: 50, Op: verbs.OpRead, Local: v.sink.sge(0, 8), Remote: verbs.Remote{STag: 0x55, TO: 0x66}})
	v.expect(aReadRequest(1, read{v.sink.tag(), v.sink.at(0), 8, 0x55, 0x66}))
	return v
}

// rejectsEach tries each of these, and rejects one, on a rig of its own: there is the Terminate
// Message and then the end of the stream; the event or the Completion Error and nothing else; and
// nothing was placed.
func rejectsEach(t *conformance.T, s setup, rejections ...segmentFault) {
	for _, x := range rejections {
		rejects(t, s, x.what, x.peerFault, x.ulpdu)
	}
}

func rejects(t *conformance.T, s setup, what string, f peerFault, ulpdu func(*faultRig) []byte) {
	t.In(what, func() {
		v := newFaultRig(t, s)
		v.rejected(f, ulpdu(v))
	})
}

// rejected sends a segment, because of which the stream ends, and rejects says that it ends so.
func (v *faultRig) rejected(f peerFault, u []byte) {
	v.send(u)
	v.rejects(f, u)
}

func (v *faultRig) rejects(f peerFault, u []byte) {
	v.tornDown(f.code, f.of(u), f.echo == echoRequest)
	if f.event != 0 {
		v.events(f.event)
		f.status = verbs.StatusFlushed
	} else {
		v.events()
	}
	v.completionsOf(v.RecvCQ, verbs.Completion{ID: 1, Op: verbs.OpRecv, Status: f.status})
	v.completionsOf(v.SendCQ, verbs.Completion{ID: 50, Op: verbs.OpRead, Status: verbs.StatusFlushed})
	v.region.unchanged()
	v.sink.unchanged()
	v.receive.unchanged()
	v.refusesPost(verbs.ErrInvalidState, verbs.Request{})
}

// of is what the Terminate Message repeats of a segment.
func (f peerFault) of(u []byte) []byte { return either(f.echo == echoNothing, nil, u) }

// always is a ULPDU that is the same on each rig.
func always(u []byte) func(*faultRig) []byte { return func(*faultRig) []byte { return u } }

// segmentFaults are segments that may not be taken.
var segmentFaults = []segmentFault{
	{"a Write to an invalid STag", noSTag.write, always(badSTag)},
	{"a Write out of bounds", noBounds.write, writeOf(250, make([]byte, 7))},
	{"a Write without the right", noRight.write, func(v *faultRig) []byte {
		b := v.rig.region(8, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead)
		return aWrite(b.tag(), b.at(0), []byte{1})
	}},
	{"a Write to another PD", noPD.write, func(v *faultRig) []byte {
		b := v.register(uppertester.RegisterArgs{PD: 77, Len: 64, Access: allRights})
		return aWrite(b.tag(), b.at(0), []byte{1})
	}},
	{"a Write that wraps", noWrap.write, func(v *faultRig) []byte {
		return aWrite(v.region.tag(), ^uint64(0)-1, []byte{1, 2, 3})
	}},
	{"a Read of an invalid STag", noSTag.read, always(aReadRequest(1, read{nowhere, nowhereTO, 1, noSuchSTag, 0}))},
	{"a Read out of bounds", noBounds.read, func(v *faultRig) []byte {
		return aReadRequest(1, read{nowhere, nowhereTO, 7, v.region.tag(), v.region.at(250)})
	}},
	{"a Read without the right", noRight.read, func(v *faultRig) []byte {
		b := v.rig.region(8, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteWrite)
		return aReadRequest(1, read{nowhere, nowhereTO, 1, b.tag(), b.at(0)})
	}},
	{"a Read of another PD", noPD.read, func(v *faultRig) []byte {
		b := v.register(uppertester.RegisterArgs{PD: 77, Len: 64, Access: allRights})
		return aReadRequest(1, read{nowhere, nowhereTO, 1, b.tag(), b.at(0)})
	}},
	{"a Read that wraps", noWrap.read, func(v *faultRig) []byte {
		return aReadRequest(1, read{nowhere, nowhereTO, 3, v.region.tag(), ^uint64(0) - 1})
	}},
	{"a Read Request that is too long", readTooLong, always(append(aReadRequest(1, read{}), 0))},
	{"a Send to another queue", badQN, always(untagged(lastUntagged, opSend, 0, 5, 1, 0, []byte{1}))},
	{"a Send that is too long", tooLong, always(aSend(1, make([]byte, faultRigRoom+1)))},
	{"an opcode that is none", badOpcode, always(untagged(lastUntagged, 0x4B, 0, 0, 1, 0, nil))},
	{"a wrong version of RDMAP", badRDMAP, always(untagged(lastUntagged, 0x83, 0, 0, 1, 0, nil))},
	{"a wrong version of DDP, tagged", badTaggedDDP, func(v *faultRig) []byte {
		return tagged(0xC2, opWrite, v.region.tag(), v.region.at(0), []byte{1})
	}},
	{"a wrong version of DDP, untagged", badDDP, always(untagged(0x42, opSend, 0, 0, 1, 0, []byte{1}))},
	{"a ULPDU without headers", badSize, always([]byte{lastTagged, opWrite, 0})},
}

// writeOf is an RDMA Write to the rig's region, from octet off on.
func writeOf(off int, payload []byte) func(*faultRig) []byte {
	return func(v *faultRig) []byte { return aWrite(v.region.tag(), v.region.at(off), payload) }
}

// completionError is an error of figure 23: a request that the Send Queue cannot do, or
// a receive that the peer's next message cannot be put into.
type completionError struct {
	what string
	qp   verbs.QPConfig
	req  func(*link) verbs.Request
	sgl  func(*link) []verbs.SGE // of the receive, if req is nil
	says func(*link) []byte      // what the peer sends for it
	want verbs.Status
	// code is the Terminate Message's; with it goes the header of what the peer
	// has sent, if blame is set.
	code  uint16
	blame bool
}

// completesInError has the error come about: its completion is on the CQ of its queue, of which the
// others are flushed; the Terminate Message has the code, and Query QP shows it as long
// as it has to; no event tells of it.
func (l *link) completesInError(e *completionError) {
	t := l.t
	var fault []byte
	var sent, received []verbs.Completion
	if e.req != nil {
		req := e.req(l)
		req.ID = 2
		l.recv(4, 5)
		post(t, l.qp, l.aSend(1), req, l.aSend(3))
		l.expect(aSend(1, l.mr.Bytes()[:4]))
		sent = []verbs.Completion{l.sentAs(1, verbs.OpSend, verbs.StatusSuccess), l.sentAs(2, req.Op, e.want), l.sentAs(3, verbs.OpSend, verbs.StatusFlushed)}
		received = l.recvAs(verbs.StatusFlushed, 4, 5)
	} else {
		post(t, l.qp, l.aRead(1))
		l.expect(l.asks(1))
		postRecv(t, l.qp, verbs.Recv{ID: 4, SGL: e.sgl(l)})
		l.recv(5)
		u := e.says(l)
		l.send(u)
		if e.blame {
			fault = u
		}
		sent = []verbs.Completion{l.sentAs(1, verbs.OpRead, verbs.StatusFlushed)}
		received = append(l.recvAs(e.want, 4), l.recvAs(verbs.StatusFlushed, 5)...)
	}
	message := aTerminate(e.code, fault, false)
	l.expect(message)
	l.finished()
	l.keeps(message, true)
	completes(t, l.sq, sent...)
	completes(t, l.rq, received...)
	l.noCompletions()
	l.remains(verbs.StateError)
}

// noSuchSTag names nothing.
const noSuchSTag = 0x00F00000

// requestFaults has the faults of memory for each operation that uses some (figure 36), those of
// operations on memory, and an RDMA Read without resources.
func requestFaults() (list []completionError) {
	add := func(what string, want verbs.Status, req func(*link) verbs.Request) {
		list = append(list, completionError{what: what, want: want, req: req})
	}
	for _, op := range []verbs.Op{
		verbs.OpSend, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate, verbs.OpWrite, verbs.OpRead, verbs.OpReadInvalidate,
	} {
		reads := op == verbs.OpRead || op == verbs.OpReadInvalidate
		for _, x := range badElements {
			if reads && x.want == verbs.StatusAccess {
				continue // it needs another right, and is refused when the answer comes
			}
			add(op.String()+", "+x.what, x.want, func(l *link) verbs.Request {
				if reads {
					return verbs.Request{Op: op, Remote: theirs, Local: x.sge(l)}
				}
				return verbs.Request{Op: op, Remote: theirs, SGL: []verbs.SGE{l.mr.SGE(0, 4), x.sge(l)}}
			})
		}
	}
	add("Read, ORD 0", verbs.StatusZeroReadResources, func(l *link) verbs.Request { return l.aRead(0) })
	list[len(list)-1].qp = verbs.QPConfig{NoReads: true}
	return slices.Concat(list, bindErrors(), fastRegisterErrors()[:1], invalidateErrors())
}

// badElements are scatter/gather elements of 8 octets that a request cannot use.
var badElements = []struct {
	what string
	want verbs.Status
	sge  func(*link) verbs.SGE
}{
	{"no such STag", verbs.StatusInvalidSTag, func(*link) verbs.SGE { return verbs.SGE{STag: noSuchSTag, Length: 8} }},
	{"bounds", verbs.StatusBaseBounds, func(l *link) verbs.SGE { return l.register(64, allRights).SGE(60, 8) }},
	{"another PD", verbs.StatusInvalidPD, func(l *link) verbs.SGE { return l.foreignRegion().SGE(0, 8) }},
	{"a wrap", verbs.StatusWrap, func(l *link) verbs.SGE { return verbs.SGE{STag: l.mr.STag(), Length: 8, TO: ^uint64(0) - 3} }},
	{"no right to read", verbs.StatusAccess, func(l *link) verbs.SGE { return l.register(64, verbs.LocalWrite).SGE(0, 8) }},
}

// sendQueueErrors are those of Sends, RDMA Writes and RDMA Reads of chapter 6, and a
// total length that no message can have.
func sendQueueErrors() []completionError {
	list := requestFaults()
	for _, op := range []verbs.Op{verbs.OpSend, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate, verbs.OpWrite} {
		list = append(list, completionError{what: op.String() + ", too long", want: verbs.StatusInvalidLength, req: func(l *link) verbs.Request {
			return verbs.Request{Op: op, Remote: theirs, SGL: []verbs.SGE{{STag: l.mr.STag(), TO: l.mr.Base(), Length: 1<<32 - 1}, l.mr.SGE(0, 1)}}
		}})
	}
	return list
}

// foreignRegion is a region of another Protection Domain.
func (l *link) foreignRegion() *verbs.MR {
	return l.region(l.newPD(), verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights | verbs.BindWindow})
}

func fastRegisterErrors() (list []completionError) {
	add := func(what string, want verbs.Status, spoil func(*link, *verbs.FastRegisterRequest)) {
		list = append(list, completionError{what: what, qp: privileged, want: want, req: func(l *link) verbs.Request {
			r := fastRegister(l.allocated().WithKey(1), l.pages(10, 4096).List(0, 4096), 4096, allRights)
			if spoil != nil {
				spoil(l, r.FastRegister)
			}
			return r
		}})
	}
	add("not privileged", verbs.StatusNotPrivileged, nil)
	list[0].qp = verbs.QPConfig{}
	add("no such STag", verbs.StatusInvalidSTag, func(_ *link, f *verbs.FastRegisterRequest) { f.STag = noSuchSTag })
	add("a window", verbs.StatusInvalidSTag, func(l *link, f *verbs.FastRegisterRequest) { f.STag = l.newMW().STag(1) })
	add("page size", verbs.StatusInvalidPageSize, func(_ *link, f *verbs.FastRegisterRequest) { f.Buffers.Size = 12288 })
	add("list too long", verbs.StatusPhysBufferListTooLong, func(l *link, f *verbs.FastRegisterRequest) { f.Buffers = l.pages(9, 4096).List(0, 9*4096) })
	add("in the Valid state", verbs.StatusSTagNotInvalid, func(l *link, f *verbs.FastRegisterRequest) { f.STag = l.register(8, allRights).STag() })
	add("another PD", verbs.StatusInvalidPD, func(l *link, f *verbs.FastRegisterRequest) {
		mr := must(l.newPD().AllocateRegion(verbs.AllocateConfig{}))(l.t)
		f.STag = mr.WithKey(1)
	})
	add("rights of figure 18", verbs.StatusInvalidAccessRights, func(_ *link, f *verbs.FastRegisterRequest) { f.Access = verbs.RemoteWrite })
	add("no Remote Access Flag", verbs.StatusInvalidAccessRights, func(l *link, f *verbs.FastRegisterRequest) {
		f.STag = l.allocate(verbs.AllocateConfig{PBL: 8}).WithKey(1)
	})
	add("VA and FBO", verbs.StatusInvalidVA, func(_ *link, f *verbs.FastRegisterRequest) { f.VA++ })
	add("FBO", verbs.StatusInvalidFBO, func(_ *link, f *verbs.FastRegisterRequest) { f.Buffers.FBO = 4096 })
	add("length", verbs.StatusInvalidFastRegLength, func(_ *link, f *verbs.FastRegisterRequest) { f.Buffers.Length = 4097 })
	add("buffer entry", verbs.StatusInvalidPhysBufferEntry, func(_ *link, f *verbs.FastRegisterRequest) { f.Buffers.Addresses[0]++ })
	return list
}

func bindErrors() (list []completionError) {
	add := func(what string, want verbs.Status, spoil func(*link, *verbs.BindRequest)) {
		list = append(list, completionError{what: what, want: want, req: func(l *link) verbs.Request {
			b := l.newMW().BindRequest(l.mr, 8, 64, remoteRights, 1)
			spoil(l, b)
			return binds(b)
		}})
	}
	add("no such region", verbs.StatusInvalidRegion, func(_ *link, b *verbs.BindRequest) { b.Region = noSuchSTag })
	add("a region not in the Valid state", verbs.StatusInvalidRegion, func(l *link, b *verbs.BindRequest) { b.Region = l.allocated().STag() })
	add("no such window", verbs.StatusInvalidWindow, func(_ *link, b *verbs.BindRequest) { b.Window = noSuchSTag })
	add("bounds", verbs.StatusBaseBounds, func(_ *link, b *verbs.BindRequest) { b.Length = hostMemory - 7 })
	add("rights of the region", verbs.StatusAccess, func(l *link, b *verbs.BindRequest) {
		mr := l.register(128, verbs.LocalRead|verbs.BindWindow)
		b.Region, b.VA = mr.STag(), mr.Base()
	})
	add("a window in the Valid state", verbs.StatusSTagNotInvalid, func(l *link, b *verbs.BindRequest) {
		bound := *b
		run(l.t, l.qp, binds(&bound), verbs.StatusSuccess)
	})
	add("another PD", verbs.StatusInvalidPD, func(l *link, b *verbs.BindRequest) {
		mr := l.foreignRegion()
		b.Region, b.VA = mr.STag(), mr.Base()
	})
	add("a wrap", verbs.StatusWrap, func(_ *link, b *verbs.BindRequest) { b.VA = 1<<64 - 8 })
	return list
}

// invalidateErrors are those of Invalidate Local STag; an RDMA Read with Invalidate has
// its own once the response is there (see 7.8).
func invalidateErrors() (list []completionError) {
	for what, c := range map[string]struct {
		want verbs.Status
		stag func(*link) verbs.STag
	}{
		"no such STag":  {verbs.StatusInvalidSTag, func(*link) verbs.STag { return noSuchSTag }},
		"another key":   {verbs.StatusInvalidSTag, func(l *link) verbs.STag { return l.register(8, allRights).STag() ^ 0x40 }},
		"another PD":    {verbs.StatusInvalidPD, func(l *link) verbs.STag { return l.foreignRegion().STag() }},
		"another QP's":  {verbs.StatusInvalidPD, func(l *link) verbs.STag { _, _, b := l.bound(verbs.QPConfig{}, 0, 8, remoteRights); return b.STag }},
		"bound windows": {verbs.StatusInvalidSTag, (*link).withWindow},
		"a shared region": {verbs.StatusInvalidSTag, func(l *link) verbs.STag {
			mr := l.register(8, allRights)
			require.NoError(l.t, second(mr.RegisterShared(nil, verbs.SharedConfig{Access: verbs.LocalRead})))
			return mr.STag()
		}},
	} {
		list = append(list, completionError{what: what, want: c.want, req: func(l *link) verbs.Request {
			return verbs.Request{Op: verbs.OpInvalidate, Invalidate: c.stag(l)}
		}})
	}
	return list
}

// withWindow is a region that a window is bound to, by another queue pair.
func (l *link) withWindow() verbs.STag {
	mr := l.register(64, allRights|verbs.BindWindow)
	run(l.t, l.link(verbs.QPConfig{}).qp, binds(l.newMW().BindRequest(mr, 0, 8, remoteRights, 1)), verbs.StatusSuccess)
	return mr.STag()
}

func receiveQueueErrors() (list []completionError) {
	say := func(*link) []byte { return aSend(1, []byte("12345678")) }
	for _, x := range badElements {
		sge := x.sge
		if x.want == verbs.StatusAccess {
			sge = func(l *link) verbs.SGE { return l.register(64, verbs.LocalRead).SGE(0, 8) }
		}
		list = append(list, completionError{what: x.what, want: x.want, says: say, sgl: func(l *link) []verbs.SGE { return []verbs.SGE{sge(l)} }})
	}
	return append(list, completionError{ // RFC 5041 7.2 has the code
		what: "a message too long", want: verbs.StatusBaseBounds, code: 0x1205, blame: true, says: say,
		sgl: func(l *link) []verbs.SGE { return l.mr.SGL(0, 7) },
	})
}

// remoteInvalidateErrors are Sends with Invalidate of what the peer may not invalidate.
func remoteInvalidateErrors() (list []completionError) {
	for what, c := range map[string]struct {
		want verbs.Status
		code uint16 // RFC 5040 4.8, figure 9
		stag func(*link) verbs.STag
	}{
		"no such STag":     {verbs.StatusInvalidSTag, 0x0209, func(*link) verbs.STag { return noSuchSTag }},
		"no remote rights": {verbs.StatusInvalidateSTag, 0x0109, func(l *link) verbs.STag { return l.register(8, verbs.LocalRead).STag() }},
		"another PD":       {verbs.StatusInvalidateSTag, 0x0109, func(l *link) verbs.STag { return l.foreignRegion().STag() }},
		"another QP's": {verbs.StatusInvalidateSTag, 0x0109, func(l *link) verbs.STag {
			_, _, b := l.bound(verbs.QPConfig{}, 0, 8, remoteRights)
			return b.STag
		}},
		"bound windows": {verbs.StatusInvalidateSTag, 0x0109, (*link).withWindow},
	} {
		for _, control := range []byte{opSendInv, opSendSEInv} {
			list = append(list, completionError{
				what: what, want: c.want, code: c.code, blame: true, sgl: func(l *link) []verbs.SGE { return l.mr.SGL(0, 8) },
				says: func(l *link) []byte { return untagged(lastUntagged, control, uint32(c.stag(l)), 0, 1, 0, []byte{1}) },
			})
		}
	}
	return list
}
