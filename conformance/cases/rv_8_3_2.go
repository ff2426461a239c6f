package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_3_2 is errors that a completion tells of: verbs draft 8.3.2, figure 23.
var rv8_3_2 = []conformance.Case{
	{Name: "8.3.2/send-queue", Keys: append([]string{"PV-8.3.2-M2"}, figure23Keys...), Need: conformance.NeedAPI, Run: figure23Of(sendQueueErrors)},
	{Name: "8.3.2/fast-register", Keys: figure23Keys, Need: conformance.NeedAPI, Run: figure23Of(fastRegisterErrors)},
	{Name: "8.3.2/bind", Keys: figure23Keys, Need: conformance.NeedAPI, Run: figure23Of(bindErrors)},
	{Name: "8.3.2/invalidate", Keys: figure23Keys, Need: conformance.NeedAPI, Run: figure23Of(invalidateErrors)},
	{Name: "8.3.2/receive-queue", Keys: append([]string{"PV-8.3.2-M1"}, figure23Keys...), Need: conformance.NeedAPI, Run: figure23Of(receiveQueueErrors)},
	{Name: "8.3.2/remote-protection", Keys: figure23Keys, Need: conformance.NeedAPI, Run: figure23Of(remoteInvalidateErrors)},
}

var figure23Keys = []string{"RV-8.3.2-M1", "RV-8.3.2-M2", "RV-8.3.2-M3"}

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

// figure23Of runs errors, each on a line of its own: with a CQ for each of its queues.
func figure23Of(errors func() []completionError) func(*conformance.T) {
	return func(t *conformance.T) {
		n := newNode(t, nodeConfig{})
		for e := range inTurn(t, "%s", errors()) {
			n.line(e.qp).errs(&e)
		}
	}
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
	for _, s := range []verbs.State{verbs.StateTerminate, verbs.StateError} {
		if s == verbs.StateError {
			l.closesTo(s)
		}
		a := attributes(t, l.qp)
		require.Equal(t, s, a.State)
		require.NotNil(t, a.Terminate, "the Terminate Message in %v", s)
		require.Equal(t, message[18:], a.Terminate.Raw, "the Terminate Message in %v", s)
		require.True(t, a.Terminate.Sent)
	}
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
