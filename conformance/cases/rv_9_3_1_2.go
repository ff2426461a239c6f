package cases

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// rv9_3_1_2 is PostRQ: verbs draft 9.3.1.2.
var rv9_3_1_2 = []conformance.Case{
	apiCase("9.3.1.2/results-of-rq", onHost(postRQResults), "RV-9.3.1.2-M1"),
	apiCase("9.3.1.2/results-of-srq", onHost(postRQResultsOfSRQ), "RV-9.3.1.2-M1"),
	apiCase("9.3.1.2/queue-named", postRQQueue, "RV-9.3.1.2-M2"),
	apiCase("9.3.1.2/id-and-list", onHost(postRQRequired), "RV-9.3.1.2-M3"),
}

// postRQResults has each result of a Receive Queue but Invalid Modifier: verbs.Recv has none.
func postRQResults(t *conformance.T, n *host) {
	for name := range inTurn(t, "%s", []string{"QP", "UserQP"}) {
		for s := range inTurn(t, "in %v", states) {
			l := n.into(s, verbs.QPConfig{RecvDepth: 4, RecvSGE: 2})
			h := handles(t, l.qp)[name]
			post := func(r ...verbs.Recv) func() error {
				return func() error {
					k, err := h.PostRecv(r...)
					require.Zero(t, k, "posted")
					return err
				}
			}
			if s != verbs.StateIdle && s != verbs.StateRTS {
				refuses(t, "a good one", verbs.ErrInvalidState, post(verbs.Recv{}), l.shown)
				continue
			}
			require.Equal(t, 2, must(h.PostRecv(verbs.Recv{ID: 1}, verbs.Recv{ID: 2}))(t))
			refuses(t, "a list", verbs.ErrInvalidSGLLength, post(verbs.Recv{SGL: make([]verbs.SGE, 3)}), l.shown)
			refuses(t, "an element", verbs.ErrInvalidSGLFormat, post(verbs.Recv{SGL: []verbs.SGE{{}, l.mr.SGE(0, -1)}}), l.shown)
			require.NoError(t, second(h.PostRecv(make([]verbs.Recv, attributes(t, l.qp).RecvDepth-2)...)))
			refuses(t, "one too many", verbs.ErrQueueFull, post(verbs.Recv{}), l.shown)
			if s == verbs.StateRTS {
				l.sendMessage(nil)
				l.sendMessage(nil)
				completes(t, l.rq, l.got(1, 0), l.got(2, 0))
			}
			require.NoError(t, l.qp.Destroy())
			require.ErrorIs(t, post(verbs.Recv{})(), verbs.ErrInvalidQP)
		}
	}
	srq := n.newSRQ(verbs.SRQConfig{})
	qp := n.newQP(verbs.QPConfig{SRQ: srq})
	x := newHost(t, hostConfig{})
	for name, h := range handles(t, qp) {
		refuses(t, name, verbs.ErrRQUsesSRQ, func() error { return second(h.PostRecv(verbs.Recv{})) }, snapshotOf(t, qp), queries(srq.Query))
	}
	of := handles(t, x.qp)
	require.NoError(t, x.nic.Close())
	for name, h := range of {
		require.ErrorIs(t, second(h.PostRecv(verbs.Recv{})), verbs.ErrInvalidRNIC, name)
	}
}

func postRQResultsOfSRQ(t *conformance.T, n *host) {
	for user := range inTurn(t, "a user's handle: %v", []bool{false, true}) {
		srq := n.newSRQ(verbs.SRQConfig{Depth: 4, SGE: 2})
		posts := srq.PostRecv
		if user {
			posts = srq.User().PostRecv
		}
		post := func(r ...verbs.Recv) func() error { return func() error { return second(posts(r...)) } }
		depth := queried(t, srq).Depth
		for i := range depth {
			require.Equal(t, 1, must(posts(verbs.Recv{ID: uint64(i)}))(t))
			refuses(t, "a list", verbs.ErrInvalidSGLLength, post(verbs.Recv{SGL: make([]verbs.SGE, 3)}), queries(srq.Query))
			refuses(t, "an element", verbs.ErrInvalidSGLFormat, post(verbs.Recv{SGL: n.mr.SGL(-1, 8)}), queries(srq.Query))
		}
		refuses(t, "one too many", verbs.ErrQueueFull, post(verbs.Recv{}), queries(srq.Query))
		l := n.link(verbs.QPConfig{SRQ: srq})
		for i := range depth {
			l.sendMessage(nil)
			completes(t, l.rq, l.got(uint64(i), 0))
		}
		succeed(t, l.qp.Destroy, srq.Destroy)
		require.ErrorIs(t, post(verbs.Recv{})(), verbs.ErrInvalidSRQ)
	}
	x := newHost(t, hostConfig{})
	srq := x.newSRQ(verbs.SRQConfig{})
	require.NoError(t, x.nic.Close())
	require.ErrorIs(t, second(srq.PostRecv(verbs.Recv{})), verbs.ErrInvalidRNIC)
	require.ErrorIs(t, second(srq.User().PostRecv(verbs.Recv{})), verbs.ErrInvalidRNIC)
}

// postRQQueue posts to each of two Receive Queues and two S-RQs: messages for the others
// find nothing there.
func postRQQueue(t *conformance.T) {
	for which := range 4 {
		n := newHost(t, hostConfig{})
		srqs := []*verbs.SRQ{n.newSRQ(verbs.SRQConfig{}), n.newSRQ(verbs.SRQConfig{})}
		lines := []*link{
			n.link(verbs.QPConfig{}), n.link(verbs.QPConfig{}), n.link(verbs.QPConfig{SRQ: srqs[0]}), n.link(verbs.QPConfig{SRQ: srqs[1]}),
		}
		posts := lines[which].qp.PostRecv
		if which > 1 {
			posts = srqs[which-2].PostRecv
		}
		require.Equal(t, 3, must(posts(n.aReceive(1), n.aReceive(2), n.aReceive(3)))(t))
		for i, l := range lines {
			t.Part("posted to %d, sent to %d", which, i)
			if i != which {
				l.sendsTooMuch()
				continue
			}
			for id := range uint64(3) {
				l.says(id + 1)
			}
			l.sendsTooMuch()
		}
	}
}

// postRQRequired: the ID comes back, and the list, of none to as many elements as there
// can be, gets the octets.
func postRQRequired(t *conformance.T, n *host) {
	most := queried(t, n.nic).Limits.SGE
	for name, srq := range map[string]*verbs.SRQ{"RQ": nil, "S-RQ": n.newSRQ(verbs.SRQConfig{SGE: most})} {
		l := n.link(verbs.QPConfig{RecvSGE: most, SRQ: srq})
		for i, id := range []uint64{0, 1, 1 << 63, 1<<64 - 1} {
			for _, elements := range []int{0, 1, 2, most} {
				t.Part("%s, ID %d, %d elements", name, id, elements)
				clear(n.mr.Bytes())
				r := verbs.Recv{ID: id}
				total := 0
				want := make([]byte, hostMemory)
				data := fill(make([]byte, 100*most), i)
				for e := range elements { // the last ones first, with gaps
					k := 3 + 7*e%50
					at := 1000 * (elements - e)
					r.SGL = append(r.SGL, n.mr.SGE(at, k))
					copy(want[at:at+k], data[total:])
					total += k
				}
				postRecv(t, receiver(l.qp, srq), r)
				l.sendMessage(data[:total])
				completes(t, l.rq, l.got(id, total))
				same(t, want, n.mr.Bytes(), "the memory")
			}
		}
	}
}

// rv9_3_2 is Poll for Completion and Request Completion Notification: verbs draft 9.3.2.
var rv9_3_2 = []conformance.Case{
	apiCase("9.3.2.1/oldest-first", onHost(pollOldest), "RV-9.3.2.1-M1"),
	apiCase("9.3.2.1/results", onHost(pollResults), "RV-9.3.2.1-M2"),
	apiCase("9.3.2.1/contents", pollContents, "RV-9.3.2.1-M3", "PV-9.3.2.1-M2"),
	apiCase("9.3.2.1/statuses-of-requests", pollStatuses,
		"RV-9.3.2.1-M4", "PV-9.5.2-M4", "PV-9.5.2-M5", "PV-9.5.2-M6", "PV-9.5.2-M7", "PV-9.5.2-M8", "PV-9.5.2-M9",
		"PV-9.5.2-M10", "PV-9.5.2-M11", "PV-9.5.2-M12", "PV-9.5.2-M13", "PV-9.5.2-M14"),
	apiCase("9.3.2.1/statuses-of-ends", onHost(pollStatusesOfEnds), "RV-9.3.2.1-M4", "PV-9.5.2-M3"),
	apiCase("9.3.2.2/results", onHost(notifyResults), "RV-9.3.2.2-M1", "RV-9.3.2.2-M3"),
	apiCase("9.3.2.2/modifiers", onHost(notifyModifiers), "RV-9.3.2.2-M2"),
}

// pollOldest has several queues feed one CQ, one completion at a time: they are polled
// in that order, by one and by more.
func pollOldest(t *conformance.T, n *host) {
	cq := n.newCQ(100)
	var lines []*link
	for range 3 {
		lines = append(lines, n.link(verbs.QPConfig{SendCQ: cq, RecvCQ: cq}))
	}
	for batch := range inTurn(t, "polled by %d", []int{1, 3, 7, 100}) {
		var want []verbs.Completion
		for i := range uint64(40) {
			l := lines[t.Rand().IntN(len(lines))]
			if t.Rand().IntN(2) == 0 {
				l.adds(i)
				want = append(want, l.sentAs(i, verbs.OpSend, verbs.StatusSuccess))
			} else {
				l.recv(i)
				l.sendMessage([]byte{1})
				l.settled()
				want = append(want, l.got(i, 1))
			}
		}
		var got []verbs.Completion
		room := make([]verbs.Completion, batch)
		for len(got) < len(want) {
			k := 1
			if batch == 1 {
				c := must(cq.PollOne())(t)
				room[0] = c
			} else {
				k = cq.Poll(room)
				require.Equal(t, min(batch, len(want)-len(got)), k)
			}
			got = append(got, room[:k]...)
		}
		require.Equal(t, want, got)
		empty(t, cq)
	}
}

func pollResults(t *conformance.T, n *host) {
	cq, user := n.newCQ(4), n.cq.User()
	empty(t, cq)
	require.Zero(t, cq.Poll(make([]verbs.Completion, 3)))
	require.Zero(t, user.Poll(make([]verbs.Completion, 3)))
	require.NoError(t, n.flush(cq, 2).Destroy())
	require.NoError(t, second(cq.PollOne()))
	require.NoError(t, cq.Destroy()) // with one left
	require.ErrorIs(t, second(cq.PollOne()), verbs.ErrInvalidCQ)
	require.Zero(t, cq.Poll(make([]verbs.Completion, 3)))
	require.ErrorIs(t, second(cq.Wait(t.Context(), make([]verbs.Completion, 3))), verbs.ErrInvalidCQ)
	n.flush(n.cq, 1)
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, second(n.cq.PollOne()), verbs.ErrInvalidRNIC)
	require.ErrorIs(t, second(cq.PollOne()), verbs.ErrInvalidRNIC)
	require.Zero(t, n.cq.Poll(make([]verbs.Completion, 3)))
}

// pollContents compares every field of the completions of all eleven operations, of
// several queue pairs on one CQ.
func pollContents(t *conformance.T) {
	w := newOpsMatrix(t, hostPairConfig{})
	for i := range uint64(3) {
		qa, qb := w.connectMore(verbs.QPConfig{Privileged: true}, verbs.QPConfig{})
		w.a.qp, w.b.qp = qa, qb
		sent, received := w.postAll(1000*i, 0)
		for j, op := range []verbs.Op{
			verbs.OpSend, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate, verbs.OpWrite,
			verbs.OpRead, verbs.OpReadInvalidate, verbs.OpBind, verbs.OpFastRegister, verbs.OpInvalidate,
		} {
			require.Equal(t, verbs.Completion{ID: 1000*i + uint64(j), QP: qa.ID(), Op: op}, sent[j], "what is expected")
		}
		require.Equal(t, []bool{false, false, true, true}, []bool{
			received[0].HasInvalidated, received[1].HasInvalidated, received[2].HasInvalidated, received[3].HasInvalidated,
		}, "what is expected")
		completes(t, w.a.cq, sent...)
		completes(t, w.b.cq, received...)
		require.NotEqual(t, received[2].Invalidated, received[3].Invalidated)
	}
}

// pollStatuses provokes the statuses of figure 36 that tell of a request, each with the
// operations for which the figure has it.
func pollStatuses(t *conformance.T) {
	figure36 := map[verbs.Status]bool{}
	n := newHost(t, hostConfig{})
	for _, errors := range []func() []completionError{sendQueueErrors, fastRegisterErrors, bindErrors, invalidateErrors, receiveQueueErrors, remoteInvalidateErrors} {
		for e := range inTurn(t, "%s", errors()) {
			n.link(e.qp).completesInError(&e)
			figure36[e.want] = true
		}
	}
	t.Part("a block's size")
	x := newHost(t, hostConfig{RNIC: verbs.Config{Mode: verbs.BlockMode}})
	p := x.pages(1, 5000)
	list := p.List(0, 10)
	list.Size = 1<<30 + 1
	x.probe(privileged).runs(fastRegister(x.allocated().WithKey(1), list, 0, allRights), verbs.StatusInvalidPhysBufferSize)
	t.Part("")
	for _, s := range []verbs.Status{
		verbs.StatusInvalidSTag, verbs.StatusBaseBounds, verbs.StatusAccess, verbs.StatusInvalidPD, verbs.StatusWrap,
		verbs.StatusInvalidateSTag, verbs.StatusZeroReadResources, verbs.StatusNotPrivileged, verbs.StatusSTagNotInvalid,
		verbs.StatusInvalidPageSize, verbs.StatusInvalidPhysBufferEntry, verbs.StatusInvalidFBO, verbs.StatusInvalidFastRegLength,
		verbs.StatusInvalidAccessRights, verbs.StatusPhysBufferListTooLong, verbs.StatusInvalidVA, verbs.StatusInvalidRegion,
		verbs.StatusInvalidWindow, verbs.StatusInvalidLength,
	} {
		require.True(t, figure36[s], "%v was not provoked", s)
	}
}

// pollStatusesOfEnds has those that come from the end of a stream.
func pollStatusesOfEnds(t *conformance.T, n *host) {
	for _, c := range named(t, "%s", map[string]struct {
		end  func(*link)
		want verbs.Status
	}{
		"Modify QP": {func(l *link) { l.modify(verbs.StateError) }, verbs.StatusFlushed},
		"a failure": {func(l *link) { fault.Provoke(l.qp); _, _, _ = l.peer.End(); l.shut() }, verbs.StatusLocalQPCatastrophic},
		"the peer terminates it": {func(l *link) {
			l.send(aTerminate(0x0100, l.asks(2), true))
			_, _, _ = l.peer.End()
			l.shut()
		}, verbs.StatusRemoteTermination},
	}) {
		l := n.link(verbs.QPConfig{})
		l.recv(5)
		post(t, l.qp, l.aSend(1), l.aRead(2), l.aRead(3), l.aSend(4))
		l.expect(aSend(1, n.mr.Bytes()[:4]), l.asks(1), l.asks(2), aSend(2, n.mr.Bytes()[:4]))
		completes(t, l.sq, l.sentAs(1, verbs.OpSend, verbs.StatusSuccess))
		c.end(l)
		ends(t, l.qp, verbs.StateError)
		oldest, second := verbs.StatusFlushed, verbs.StatusFlushed
		if c.want == verbs.StatusRemoteTermination {
			second = c.want // it is the one that the peer's message names
		} else {
			oldest = c.want
		}
		completes(t, l.sq, l.sentAs(2, verbs.OpRead, oldest), l.sentAs(3, verbs.OpRead, second), l.sentAs(4, verbs.OpSend, verbs.StatusFlushed))
		completes(t, l.rq, l.recvAs(verbs.StatusFlushed, 5)...)
	}
}

// notifyResults has each result; a refused call does not arm.
func notifyResults(t *conformance.T, n *host) {
	b := n.cqHandler()
	cq := b.cq(64)
	for name, call := range map[string]func(verbs.NotifyType) error{"CQ": cq.Notify, "UserCQ": cq.User().Notify} {
		for _, none := range []verbs.NotifyType{0, 3, 255} {
			refuses(t, name, verbs.ErrInvalidNotifyType, func() error { return call(none) }, queries(cq.Query))
		}
		require.NoError(t, n.flush(cq, 1).Destroy())
		b.notCalled()
		require.Empty(t, cq.Events())
		for _, k := range []verbs.NotifyType{verbs.NotifyNext, verbs.NotifySolicited} {
			require.NoError(t, call(k), name)
			require.NoError(t, n.flush(cq, 1).Destroy())
			b.calledOnce(cq)
			<-cq.Events()
		}
	}
	user := cq.User()
	require.NoError(t, cq.Destroy())
	require.ErrorIs(t, cq.Notify(verbs.NotifyNext), verbs.ErrInvalidCQ)
	require.ErrorIs(t, user.Notify(verbs.NotifyNext), verbs.ErrInvalidCQ)
	require.NoError(t, n.nic.Close())
	require.ErrorIs(t, n.cq.Notify(verbs.NotifyNext), verbs.ErrInvalidRNIC)
	require.ErrorIs(t, user.Notify(verbs.NotifyNext), verbs.ErrInvalidRNIC)
}

// notifyModifiers: of two CQs the one that was named calls, and what the kind says.
func notifyModifiers(t *conformance.T, n *host) {
	b := n.cqHandler()
	l, cq := n.notified(b)
	x, other := n.notified(b)
	for _, c := range []struct {
		kind    verbs.NotifyType
		control byte
		call    bool
	}{
		{verbs.NotifyNext, opSend, true}, {verbs.NotifyNext, opSendSE, true},
		{verbs.NotifySolicited, opSend, false}, {verbs.NotifySolicited, opSendSE, true},
	} {
		t.Part("kind %d, control %#x", c.kind, c.control)
		notify(t, cq, c.kind)
		x.gets(c.control)
		b.notCalled()
		l.gets(c.control)
		if c.call {
			b.calledOnce(cq)
		} else {
			b.notCalled()
			l.gets(opSendSE)
			b.calledOnce(cq)
		}
		assert.Empty(t, other.Events())
	}
}
