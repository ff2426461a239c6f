package cases

import (
	"runtime"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_1_4 is destroying queue pairs: verbs draft 6.1.4.
var rv6_1_4 = []conformance.Case{
	apiCase("6.1.4/only-by-verb", destroyedByVerbOnly, "RV-6.1.4-M1"),
	apiCase("6.1.4/gives-everything-back", destroyGivesBack, "RV-6.1.4-M2"),
	apiCase("6.1.4/gone-at-return", onNode(destroyedIsGone), "RV-6.1.4-M3", "PV-6.1.4-M1", "PV-6.1.4-M2"),
	apiCase("6.1.4/takes-the-stream", destroyTakesStream, "RV-6.1.4-M4", "RV-6.1.4-M7"),
	apiCase("6.1.4/windows-bound", onNode(destroyWindowsBound), "RV-6.1.4-M5", "RV-6.1.4-M6"),
}

// destroyedByVerbOnly ends a queue pair and forgets it: where there can be only one,
// there can be no other until Destroy.
func destroyedByVerbOnly(t *conformance.T) {
	n := newNode(t, nodeConfig{RNIC: verbs.Config{Limits: verbs.Limits{QPs: 1}}})
	id := n.qp.ID()
	require.NoError(t, n.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
	n.qp = nil
	for range 3 {
		runtime.GC()
	}
	create := func() error { return second(n.nic.CreateQP(n.inNode(verbs.QPConfig{}))) }
	require.ErrorIs(t, create(), verbs.ErrInsufficientResources)
	require.Equal(t, verbs.StateError, n.nic.QP(id).State(), "it is there")
	require.NoError(t, n.nic.QP(id).Destroy())
	require.NoError(t, create())
}

func destroyGivesBack(t *conformance.T) {
	l := small
	l.QPs, l.SharedIRD, l.SharedORD, l.CQs = 2, 4, 4, 64
	n := newNode(t, nodeConfig{RNIC: verbs.Config{Limits: l}, QP: verbs.QPConfig{IRD: 1, ORD: 1}})
	srq, pd := n.newSRQ(verbs.SRQConfig{}), n.newPD()
	sq, rq := n.newCQ(32), n.newCQ(32)
	for i := range 50 {
		q := n.veiledLine(verbs.QPConfig{PD: pd, SRQ: srq, SendCQ: sq, RecvCQ: rq, IRD: 3, ORD: 3})
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
func destroyedIsGone(t *conformance.T, n *node) {
	for range 10 {
		l := n.line(verbs.QPConfig{})
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
		empty(t, l.sq)
		empty(t, l.rq)
		_ = l.peer.Close()
	}
	n.quiet()
}

// settleLater waits until something the peer writes has arrived.
func (l *line) settleLater() {
	run(l.t, l.qp, l.aSend(77), verbs.StatusSuccess)
}

func destroyTakesStream(t *conformance.T) {
	n := newNode(t, nodeConfig{})
	for _, s := range states {
		t.Part("in %v", s)
		l := n.loose(verbs.QPConfig{})
		l.veiled = true
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

func destroyWindowsBound(t *conformance.T, n *node) {
	for _, unbind := range named(t, "%s", map[string]func(*line, *verbs.MW){
		"deallocated": func(_ *line, w *verbs.MW) { require.NoError(t, w.Deallocate()) },
		"invalidated": func(l *line, w *verbs.MW) {
			run(t, l.qp, verbs.Request{ID: 2, Op: verbs.OpInvalidate, Invalidate: w.STag(1)}, verbs.StatusSuccess)
		},
		"deallocated in Error": func(l *line, w *verbs.MW) {
			l.modify(verbs.StateError)
			refuses(t, "in Error", verbs.ErrWindowsBound, l.qp.Destroy, l.shown, queries(w.Query))
			require.NoError(t, w.Deallocate())
		},
	}) {
		l, w := n.line(verbs.QPConfig{}), n.newMW()
		run(t, l.qp, verbs.Request{ID: 1, Op: verbs.OpBind, Bind: w.BindRequest(n.mr, 0, 64, remoteRights, 1)}, verbs.StatusSuccess)
		refuses(t, "in RTS", verbs.ErrWindowsBound, l.qp.Destroy, l.shown, queries(w.Query))
		require.Equal(t, verbs.StateRTS, l.qp.State())
		clear(n.mr.Bytes()[:8])
		l.tell(aWrite(uint32(w.STag(1)), n.mr.Base()+3, []byte{7}))
		l.settle()
		require.Equal(t, byte(7), n.mr.Bytes()[3], "the window still serves")
		unbind(l, w)
		require.NoError(t, l.qp.Destroy())
	}
}
