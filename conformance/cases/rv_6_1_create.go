package cases

import (
	"runtime"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_1 is creating and querying queue pairs: verbs draft 6.1.1 and 6.1.2.
var rv6_1 = []conformance.Case{
	apiCase("6.1.1/incomplete-refused", incompleteQP, "RV-6.1.1-M1", "RV-6.1.1-M6"),
	apiCase("6.1.1/depths", onHost(depthsOfQP), "RV-6.1.1-M2", "RV-6.1.1-M3"),
	apiCase("6.1.1/a-cq-for-each-queue", onHost(cqForEachQueue), "RV-6.1.1-M4"),
	apiCase("6.1.1/privileges", onHost(privilegesOfQP), "RV-6.1.1-M5"),
	apiCase("6.1.1/identifier", onHost(identifierOfQP), "RV-6.1.1-M7", "RV-6.1.1-M9"),
	apiCase("6.1.1/identifiers-unique", onHost(identifiersUnique), "RV-6.1.1-M8"),
	apiCase("6.1.1/no-stream", onIdleLink(createdWithoutStream), "RV-6.1.1-M10"),
	apiCase("6.1.2/attributes", onHost(attributesOfQP), "RV-6.1.2-M1"),
}

// incompleteQP leaves one attribute out after the other, where one queue pair is all
// there can be: what was refused takes no place.
func incompleteQP(t *conformance.T) {
	l := small
	l.QPs, l.PDs = 1, 4
	n := &host{t: t, nic: openRNIC(t, verbs.Config{Limits: l})}
	n.pd, n.cq = n.newPD(), n.newCQ(8)
	dead := n.deadPD()
	lost := n.newCQ(8)
	require.NoError(t, lost.Destroy())
	for _, c := range []struct {
		what  string
		want  error
		spoil func(*verbs.QPConfig)
	}{
		{"no PD", verbs.ErrInvalidPD, func(c *verbs.QPConfig) { c.PD = nil }},
		{"a deallocated PD", verbs.ErrInvalidPD, func(c *verbs.QPConfig) { c.PD = dead }},
		{"no send CQ", verbs.ErrInvalidCQ, func(c *verbs.QPConfig) { c.SendCQ = nil }},
		{"no receive CQ", verbs.ErrInvalidCQ, func(c *verbs.QPConfig) { c.RecvCQ = nil }},
		{"a destroyed CQ", verbs.ErrInvalidCQ, func(c *verbs.QPConfig) { c.RecvCQ = lost }},
		{"a negative send depth", verbs.ErrInvalidModifier, func(c *verbs.QPConfig) { c.SendDepth = -1 }},
		{"a negative receive depth", verbs.ErrInvalidModifier, func(c *verbs.QPConfig) { c.RecvDepth = -1 }},
		{"negative elements of a Send", verbs.ErrInvalidModifier, func(c *verbs.QPConfig) { c.SendSGE = -1 }},
		{"negative elements of a Write", verbs.ErrInvalidModifier, func(c *verbs.QPConfig) { c.WriteSGE = -1 }},
		{"negative elements of a Receive", verbs.ErrInvalidModifier, func(c *verbs.QPConfig) { c.RecvSGE = -1 }},
		{"a negative IRD", verbs.ErrInvalidModifier, func(c *verbs.QPConfig) { c.IRD = -1 }},
		{"a negative ORD", verbs.ErrInvalidModifier, func(c *verbs.QPConfig) { c.ORD = -1 }},
	} {
		q := n.withDefaults(verbs.QPConfig{})
		c.spoil(&q)
		qp, err := n.nic.CreateQP(q)
		require.ErrorIs(t, err, c.want, c.what)
		require.Nil(t, qp, c.what)
	}
	qp := n.newQP(verbs.QPConfig{})
	a := attributes(t, qp)
	require.Same(t, n.pd, a.PD, "the PD")
	require.ErrorIs(t, n.pd.Deallocate(), verbs.ErrPDInUse)
	// Defaults, as documented: what is not said is not missing.
	require.Equal(t, []int{64, 64, 4, 4, 4, 8, 8}, []int{a.SendDepth, a.RecvDepth, a.SendSGE, a.WriteSGE, a.RecvSGE, a.IRD, a.ORD})
}

func depthsOfQP(t *conformance.T, n *host) {
	for _, want := range [][2]int{{3, 200}, {200, 3}, {1, 1}, {7, 33}, {65, 64}, {1, 1000}} {
		qp := n.newQP(verbs.QPConfig{SendDepth: want[0], RecvDepth: want[1]})
		a := attributes(t, qp)
		require.GreaterOrEqual(t, a.SendDepth, want[0], "SQ of %v", want)
		require.GreaterOrEqual(t, a.RecvDepth, want[1], "RQ of %v", want)
		for i := range a.SendDepth {
			post(t, qp, verbs.Request{ID: uint64(i)})
		}
		for i := range a.RecvDepth {
			postRecv(t, qp, verbs.Recv{ID: uint64(i)})
		}
		require.ErrorIs(t, second(qp.PostSend(verbs.Request{})), verbs.ErrQueueFull, "SQ of %v", want)
		require.ErrorIs(t, second(qp.PostRecv(verbs.Recv{})), verbs.ErrQueueFull, "RQ of %v", want)
	}
}

// cqForEachQueue has a queue pair complete Sends and Receives, well and flushed, over
// two streams.
func cqForEachQueue(t *conformance.T, n *host) {
	l := n.link(verbs.QPConfig{})
	for round := range 2 {
		a := attributes(t, l.qp)
		require.Same(t, l.sq, a.SendCQ, "round %d", round)
		require.Same(t, l.rq, a.RecvCQ, "round %d", round)
		l.recv(1, 2)
		l.delivers(1, "abc")
		run(t, l.qp, l.aSend(11), verbs.StatusSuccess)
		post(t, l.qp, l.aRead(12))
		l.modify(verbs.StateError)
		completes(t, l.sq, l.sentAs(12, verbs.OpRead, verbs.StatusFlushed))
		completes(t, l.rq, l.recvAs(verbs.StatusFlushed, 2)...)
		l.noCompletions()
		empty(t, n.cq)
		l.again()
	}
}

func privilegesOfQP(t *conformance.T, n *host) {
	p := n.pages(2, 4096)
	fill(p.Bytes(), 4)
	mr := must(n.pd.AllocateRegion(verbs.AllocateConfig{PBL: 2}))(t)
	for _, privileged := range []bool{false, true} {
		requests := []struct {
			req    verbs.Request
			refuse verbs.Status
		}{
			{fastRegister(mr.STag(), p.List(0, 8192), 1<<20, verbs.LocalRead), verbs.StatusNotPrivileged},
			{verbs.Request{ID: 5, SGL: []verbs.SGE{physical(p, 0, 16)}}, verbs.StatusInvalidSTag},
		}
		for _, r := range requests {
			l := n.link(verbs.QPConfig{Privileged: privileged})
			require.Equal(t, privileged, attributes(t, l.qp).Privileged)
			if privileged {
				r.refuse = verbs.StatusSuccess
			}
			run(t, l.qp, r.req, r.refuse)
			require.NoError(t, l.qp.Destroy())
		}
	}
}

func identifierOfQP(t *conformance.T, n *host) {
	var lines []*link
	for range 2 {
		lines = append(lines, n.link(verbs.QPConfig{SendCQ: n.cq, RecvCQ: n.cq}))
	}
	require.NotEqual(t, lines[0].id, lines[1].id)
	for _, l := range lines {
		require.NotZero(t, l.id)
		require.Equal(t, l.id, attributes(t, l.qp).ID, "Query QP's")
		require.Same(t, l.qp, n.nic.QP(l.id))
		l.recv(1, 2)
		l.sendMessage([]byte("abc"))
		completes(t, n.cq, verbs.Completion{ID: 1, QP: l.id, Op: verbs.OpRecv, Bytes: 3})
		run(t, l.qp, l.aSend(3), verbs.StatusSuccess)
	}
	for _, l := range lines {
		post(t, l.qp, verbs.Request{ID: 4, SGL: []verbs.SGE{{STag: 0x00F00000, Length: 1}}})
		completesAny(t, n.cq, verbs.Completion{ID: 4, QP: l.id, Status: verbs.StatusInvalidSTag},
			verbs.Completion{ID: 2, QP: l.id, Op: verbs.OpRecv, Status: verbs.StatusFlushed})
	}
}

// identifiersUnique creates and destroys queue pairs side by side. One that is taken
// out of the list of the living is destroyed only then.
func identifiersUnique(t *conformance.T, n *host) {
	var (
		mu    sync.Mutex
		alive = map[verbs.QPID]*verbs.QP{n.qp.ID(): n.qp}
		g     sync.WaitGroup
	)
	for range 4 {
		kill := make([]bool, 200)
		for i := range kill {
			kill[i] = t.Rand().IntN(2) == 0
		}
		g.Go(func() {
			var mine []*verbs.QP
			for _, k := range kill {
				if k && len(mine) > 0 {
					qp := mine[0]
					mine = mine[1:]
					mu.Lock()
					delete(alive, qp.ID())
					mu.Unlock()
					assert.NoError(t, qp.Destroy())
					continue
				}
				qp, err := n.nic.CreateQP(n.withDefaults(verbs.QPConfig{SendDepth: 1, RecvDepth: 1}))
				if !assert.NoError(t, err) {
					return
				}
				mine = append(mine, qp)
				mu.Lock()
				assert.Nil(t, alive[qp.ID()], "queue pair %d exists", qp.ID())
				alive[qp.ID()] = qp
				mu.Unlock()
			}
		})
	}
	g.Wait()
	for id, qp := range alive {
		require.Same(t, qp, n.nic.QP(id))
	}
	// Completions and events tell them apart.
	for id, qp := range alive {
		postRecv(t, qp, verbs.Recv{ID: 1})
		fault.Provoke(qp)
		n.events.are(verbs.Event{ID: verbs.EventLocalQPCatastrophic, QP: id})
		completes(t, n.cq, verbs.Completion{ID: 1, QP: id, Op: verbs.OpRecv, Status: verbs.StatusFlushed})
	}
}

func createdWithoutStream(t *conformance.T, l *link) {
	a := attributes(t, l.qp)
	require.Equal(t, verbs.StateIdle, a.State)
	require.Nil(t, a.Stream)
	post(t, l.qp, l.aSend(1))
	select {
	case <-l.qp.Done():
	default:
		t.Fatalf("there is a stream")
	}
	empty(t, l.sq)
	l.join()
	require.NotNil(t, l.stream(), "in RTS")
	l.expect(aSend(1, l.mr.Bytes()[:4]))
	completes(t, l.sq, l.sentAs(1, verbs.OpSend, verbs.StatusSuccess))
}

// attributesOfQP gives a queue pair odd values, and compares all that Query QP tells
// (9.2.5.2) in each state.
func attributesOfQP(t *conformance.T, n *host) {
	other := n.newPD()
	c := verbs.QPConfig{
		PD: other, SendDepth: 13, RecvDepth: 17, SendSGE: 5, WriteSGE: 3, RecvSGE: 7, IRD: 9, ORD: 11,
		NoInboundRead: true, NoInboundWrite: true, NoBind: true, Privileged: true, GracefulReceive: true,
	}
	for _, s := range states {
		l := n.into(s, c)
		a := attributes(t, l.qp)
		require.Equal(t, s, a.State)
		require.Equal(t, []any{l.id, other, l.sq, l.rq, (*verbs.SRQ)(nil)}, []any{a.ID, a.PD, a.SendCQ, a.RecvCQ, a.SRQ}, "in %v", s)
		require.Equal(t, []int{5, 3, 7, 9, 11}, []int{a.SendSGE, a.WriteSGE, a.RecvSGE, a.IRD, a.ORD}, "in %v", s)
		require.GreaterOrEqual(t, a.SendDepth, 13, "in %v", s)
		require.GreaterOrEqual(t, a.RecvDepth, 17, "in %v", s)
		require.Equal(t, []bool{true, true, true, true, true},
			[]bool{a.NoInboundRead, a.NoInboundWrite, a.NoBind, a.Privileged, a.GracefulReceive}, "in %v", s)
		require.Equal(t, s == verbs.StateIdle || s == verbs.StateError, a.Stream == nil, "the stream in %v", s)
		if s == verbs.StateTerminate {
			require.Equal(t, []byte{0, 0, 0, 0}, a.Terminate.Raw, "the Terminate Message")
		} else {
			require.Nil(t, a.Terminate, "in %v", s)
		}
	}
	srq := n.newSRQ(verbs.SRQConfig{Depth: 20})
	a := attributes(t, n.newQP(verbs.QPConfig{SRQ: srq, RQLimit: 6, RecvDepth: 5}))
	require.Same(t, srq, a.SRQ)
	require.Equal(t, []any{6, true}, []any{a.RQLimit, a.RQLimitArmed})
	a = attributes(t, n.qp)
	require.Equal(t, []bool{false, false, false, false, false},
		[]bool{a.NoInboundRead, a.NoInboundWrite, a.NoBind, a.Privileged, a.GracefulReceive}, "by default")
}

// rv6_1_4 is destroying queue pairs: verbs draft 6.1.4.
var rv6_1_4 = []conformance.Case{
	apiCase("6.1.4/only-by-verb", destroyedByVerbOnly, "RV-6.1.4-M1"),
	apiCase("6.1.4/gives-everything-back", destroyGivesBack, "RV-6.1.4-M2"),
	apiCase("6.1.4/gone-at-return", onHost(destroyedIsGone), "RV-6.1.4-M3", "PV-6.1.4-M1", "PV-6.1.4-M2"),
	apiCase("6.1.4/takes-the-stream", destroyTakesStream, "RV-6.1.4-M4", "RV-6.1.4-M7"),
	apiCase("6.1.4/windows-bound", onHost(destroyWindowsBound), "RV-6.1.4-M5", "RV-6.1.4-M6"),
}

// destroyedByVerbOnly ends a queue pair and forgets it: where there can be only one,
// there can be no other until Destroy.
func destroyedByVerbOnly(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{QPs: 1}}})
	id := n.qp.ID()
	require.NoError(t, n.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
	n.qp = nil
	for range 3 {
		runtime.GC()
	}
	create := func() error { return second(n.nic.CreateQP(n.withDefaults(verbs.QPConfig{}))) }
	require.ErrorIs(t, create(), verbs.ErrInsufficientResources)
	require.Equal(t, verbs.StateError, n.nic.QP(id).State(), "it is there")
	require.NoError(t, n.nic.QP(id).Destroy())
	require.NoError(t, create())
}

func destroyGivesBack(t *conformance.T) {
	l := small
	l.QPs, l.SharedIRD, l.SharedORD, l.CQs = 2, 4, 4, 64
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: l}, QP: verbs.QPConfig{IRD: 1, ORD: 1}})
	srq, pd := n.newSRQ(verbs.SRQConfig{}), n.newPD()
	sq, rq := n.newCQ(32), n.newCQ(32)
	for i := range 50 {
		q := n.hiddenLink(verbs.QPConfig{PD: pd, SRQ: srq, SendCQ: sq, RecvCQ: rq, IRD: 3, ORD: 3})
		require.Equal(t, []int{3, 3}, []int{attributes(t, q.qp).IRD, attributes(t, q.qp).ORD}, "round %d: all of the pools", i)
		require.ErrorIs(t, pd.Deallocate(), verbs.ErrPDInUse)
		require.ErrorIs(t, sq.Destroy(), verbs.ErrCQInUse)
		require.ErrorIs(t, rq.Destroy(), verbs.ErrCQInUse)
		require.ErrorIs(t, srq.Destroy(), verbs.ErrSRQInUse)
		post(t, q.qp, q.aRead(1))
		conn := q.stream().Conn
		require.NoError(t, q.qp.Destroy())
		released(t, conn)
		_ = q.peer.Close()
	}
	succeed(t, srq.Destroy, sq.Destroy, rq.Destroy, pd.Deallocate)
}

// destroyedIsGone destroys a queue pair while its peer writes: what the program does
// with the memory then is its own business.
func destroyedIsGone(t *conformance.T, n *host) {
	for range 10 {
		l := n.link(verbs.QPConfig{})
		l.recv(1, 2)
		at := l.mr.Remote(8192)
		stop := make(chan struct{})
		go func() {
			defer close(stop)
			for l.peer.Send(aWrite(uint32(at.STag), at.TO, make([]byte, 20000))) == nil {
			}
		}()
		l.settleLater()
		require.NoError(t, l.qp.Destroy())
		kept := fill(make([]byte, 20000), 9)
		copy(l.mr.Bytes()[8192:], kept)
		for what, call := range map[string]func() error{
			"Modify QP": func() error { return l.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}) },
			"Query QP":  func() error { return second(l.qp.Query()) },
			"PostSQ":    func() error { return second(l.qp.PostSend(verbs.Request{})) },
			"PostRQ":    func() error { return second(l.qp.PostRecv(verbs.Recv{})) },
			"Destroy":   l.qp.Destroy,
		} {
			require.ErrorIs(t, call(), verbs.ErrInvalidQP, what)
		}
		require.Nil(t, n.nic.QP(l.id))
		for _, cq := range []*verbs.CQ{l.sq, l.rq} { // there may be some, but no more come
			cq.Poll(make([]verbs.Completion, 8))
		}
		<-stop
		require.Equal(t, kept, l.mr.Bytes()[8192:28192], "what the program wrote after Destroy")
		l.noCompletions()
		_ = l.peer.Close()
	}
	n.quiet()
}

// settleLater waits until something the peer writes has arrived.
func (l *link) settleLater() { run(l.t, l.qp, l.aSend(77), verbs.StatusSuccess) }

func destroyTakesStream(t *conformance.T) {
	n := newHost(t, hostConfig{})
	for _, s := range states {
		t.Part("in %v", s)
		l := n.idleLink(verbs.QPConfig{})
		l.hidden = true
		l.into(s)
		if s == verbs.StateIdle || s == verbs.StateRTS {
			l.recv(1, 2, 3)
			post(t, l.qp, l.aSend(4), l.aRead(5), l.aSend(6))
		}
		a := attributes(t, l.qp)
		require.NoError(t, l.qp.Destroy(), "with work outstanding, and a peer that is silent")
		if a.Stream != nil {
			released(t, a.Stream.Conn)
			end, _, err := l.peer.End()
			require.NoError(t, err)
			require.Contains(t, []streamEnd{endFIN, endReset}, end, "what the peer sees")
		}
		require.Nil(t, n.nic.QP(l.id))
	}
}

func destroyWindowsBound(t *conformance.T, n *host) {
	for _, unbind := range named(t, "%s", map[string]func(*link, *verbs.MW){
		"deallocated": func(_ *link, w *verbs.MW) { require.NoError(t, w.Deallocate()) },
		"invalidated": func(l *link, w *verbs.MW) {
			run(t, l.qp, verbs.Request{ID: 2, Op: verbs.OpInvalidate, Invalidate: w.STag(1)}, verbs.StatusSuccess)
		},
		"deallocated in Error": func(l *link, w *verbs.MW) {
			l.modify(verbs.StateError)
			refuses(t, "in Error", verbs.ErrWindowsBound, l.qp.Destroy, l.shown, queries(w.Query))
			require.NoError(t, w.Deallocate())
		},
	}) {
		l, w := n.link(verbs.QPConfig{}), n.newMW()
		run(t, l.qp, verbs.Request{ID: 1, Op: verbs.OpBind, Bind: w.BindRequest(n.mr, 0, 64, remoteRights, 1)}, verbs.StatusSuccess)
		refuses(t, "in RTS", verbs.ErrWindowsBound, l.qp.Destroy, l.shown, queries(w.Query))
		require.Equal(t, verbs.StateRTS, l.qp.State())
		clear(n.mr.Bytes()[:8])
		l.send(aWrite(uint32(w.STag(1)), n.mr.Base()+3, []byte{7}))
		l.settled()
		require.Equal(t, byte(7), n.mr.Bytes()[3], "the window still serves")
		unbind(l, w)
		require.NoError(t, l.qp.Destroy())
	}
}
