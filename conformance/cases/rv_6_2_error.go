package cases

import (
	"errors"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_2_4 is the Error state: verbs draft 6.2.4.
var rv6_2_4 = []conformance.Case{
	apiCase("6.2.4/entered", onHost(errorEntered), "RV-6.2.4-M1", "RV-6.2.4-M2", "RV-6.2.4-M12"),
	apiCase("6.2.4/flushes", errorFlushes, "RV-6.2.4-M3", "RV-6.2.4-M4", "PR-5040-5.4-M1", "PV-9.5.2-M1"),
	apiCase("6.2.4/one-is-guilty", errorOneGuilty, "RV-6.2.4-M4", "RV-6.2.4-M5"),
	apiCase("6.2.4/refuses-posts", onHost(errorRefusesPosts), "RV-6.2.4-M6"),
	apiCase("6.2.4/none-lost", errorLosesNone, "RV-6.2.4-M7"),
	apiCase("6.2.4/terminate-message", errorTerminateMessage, "RV-6.2.4-M8", "PV-9.2.5.2-M1"),
	apiCase("6.2.4/windows-stay", onHost(errorWindowsStay), "RV-6.2.4-M9"),
	apiCase("6.2.4/to-idle", errorToIdle, "RV-6.2.4-M10", "RV-6.2.4-M11"),
}

// errorFrom takes a new link to Error from another state.
func (n *host) errorFrom(s verbs.State) *link {
	l := n.into(s, verbs.QPConfig{})
	switch s {
	case verbs.StateClosing: // data ends it badly
		l.send(aSend(1, nil))
	case verbs.StateTerminate:
		l.shut()
	default:
		l.modify(verbs.StateError)
	}
	ends(n.t, l.qp, verbs.StateError)
	return l
}

func errorEntered(t *conformance.T, n *host) {
	for from := range inTurn(t, "from %v", []verbs.State{verbs.StateIdle, verbs.StateRTS, verbs.StateClosing, verbs.StateTerminate}) {
		l := n.errorFrom(from)
		require.Nil(t, l.stream())
		for _, next := range []verbs.State{verbs.StateRTS, verbs.StateClosing, verbs.StateTerminate, verbs.StateError} {
			m := verbs.ModifyQP{Next: next}
			refuses(t, next.String(), verbs.ErrInvalidState, func() error { return l.qp.Modify(m) }, l.shown)
			if next == verbs.StateRTS {
				m.Stream, _ = aStream(t)
				refuses(t, "RTS with a stream", verbs.ErrInvalidState, func() error { return l.qp.Modify(m) }, l.shown)
			}
		}
	}
}

// everyKind posts requests of all kinds to a link whose peer answers nothing: the first
// is an RDMA Read, and with ORD 1 nothing behind the second is processed.
func (l *link) everyKind() (sent []verbs.Completion) {
	w, mr := l.newMW(), l.register(64, allRights)
	at := l.mr.Remote(0)
	reqs := []verbs.Request{
		l.aRead(1), l.aRead(2), l.aSend(3),
		{ID: 4, Op: verbs.OpSendSE, Flags: verbs.Unsignaled},
		{ID: 5, Op: verbs.OpSendInvalidate, Invalidate: 0x77},
		{ID: 6, Op: verbs.OpSendSEInvalidate, Invalidate: 0x77},
		{ID: 7, Op: verbs.OpWrite, SGL: l.mr.SGL(0, 8), Remote: at, Flags: verbs.ReadFence},
		{ID: 8, Op: verbs.OpReadInvalidate, Local: mr.SGE(0, 8), Remote: at},
		{ID: 9, Op: verbs.OpBind, Bind: w.BindRequest(l.mr, 0, 8, remoteRights, 1)},
		{ID: 10, Op: verbs.OpInvalidate, Invalidate: mr.STag(), Flags: verbs.LocalFence},
		{ID: 11, SGL: []verbs.SGE{{STag: 0x00F00000, Length: 1}}}, // never looked at
	}
	post(l.t, l.qp, reqs...)
	for _, r := range reqs {
		sent = append(sent, l.sentAs(r.ID, r.Op, verbs.StatusFlushed))
	}
	l.recv(21, 22, 23)
	return sent
}

func errorFlushes(t *conformance.T) {
	for _, do := range named(t, "%s", map[string]func(*link){
		"by verb":  func(l *link) { l.modify(verbs.StateError) },
		"by fault": func(l *link) { l.send(badSTag); l.expect(aTerminate(0x1100, badSTag, false)); l.shut() },
		"by reset": (*link).reset,
		"closing":  func(l *link) { l.modify(verbs.StateClosing) },
	}) {
		n := newHost(t, hostConfig{})
		l := n.link(verbs.QPConfig{ORD: 1})
		want := l.everyKind()
		l.expect(l.asks(1))
		do(l)
		ends(t, l.qp, verbs.StateError)
		completes(t, l.sq, want...)
		completes(t, l.rq, l.recvAs(verbs.StatusFlushed, 21, 22, 23)...)
		l.noCompletions()
	}
	t.Part("from Idle")
	n := newHost(t, hostConfig{})
	l := n.idleLink(verbs.QPConfig{})
	want := l.everyKind()
	l.modify(verbs.StateError)
	completes(t, l.sq, want...)
	completes(t, l.rq, l.recvAs(verbs.StatusFlushed, 21, 22, 23)...)
}

// errorOneGuilty lines up requests that would fail, on both queues.
func errorOneGuilty(t *conformance.T) {
	bad := []verbs.SGE{{STag: 0x00F00000, Length: 1}}
	for _, receive := range named(t, "%s fault comes first", map[string]bool{"the Send Queue's": false, "the Receive Queue's": true}) {
		l := newLink(t, verbs.QPConfig{ORD: 1})
		for i := range uint64(3) {
			postRecv(t, l.qp, verbs.Recv{ID: 21 + i, SGL: bad})
		}
		if receive { // those of the Send Queue wait
			post(t, l.qp, l.aRead(1), l.aRead(2))
		} else {
			post(t, l.qp, l.aSend(1), l.aSend(2))
		}
		// In one call: the first of them ends RTS, and with it what may be posted.
		var faulty []verbs.Request
		for i := range uint64(3) {
			faulty = append(faulty, verbs.Request{ID: 3 + i, SGL: bad, Flags: verbs.Unsignaled})
		}
		post(t, l.qp, faulty...)
		rs := []verbs.Status{verbs.StatusFlushed, verbs.StatusFlushed, verbs.StatusFlushed}
		if receive {
			l.expect(l.asks(1))
			l.sendMessage([]byte{1})
			l.terminated(0x0000, nil, false)
			rs[0] = verbs.StatusInvalidSTag
			completes(t, l.sq, l.sentAs(1, verbs.OpRead, verbs.StatusFlushed), l.sentAs(2, verbs.OpRead, verbs.StatusFlushed),
				l.sentAs(3, verbs.OpSend, verbs.StatusFlushed), l.sentAs(4, verbs.OpSend, verbs.StatusFlushed), l.sentAs(5, verbs.OpSend, verbs.StatusFlushed))
		} else {
			l.expect(aSend(1, l.mr.Bytes()[:4]), aSend(2, l.mr.Bytes()[:4]))
			l.terminated(0x0000, nil, false)
			completes(t, l.sq, l.sentAs(1, verbs.OpSend, verbs.StatusSuccess), l.sentAs(2, verbs.OpSend, verbs.StatusSuccess),
				l.sentAs(3, verbs.OpSend, verbs.StatusInvalidSTag), l.sentAs(4, verbs.OpSend, verbs.StatusFlushed), l.sentAs(5, verbs.OpSend, verbs.StatusFlushed))
		}
		l.closesWith(verbs.StateError)
		completes(t, l.rq, l.recvAs(rs[0], 21)[0], l.recvAs(rs[1], 22)[0], l.recvAs(rs[2], 23)[0])
		l.noCompletions()
	}
}

func errorRefusesPosts(t *conformance.T, n *host) {
	for from := range inTurn(t, "from %v", []verbs.State{verbs.StateIdle, verbs.StateRTS, verbs.StateClosing, verbs.StateTerminate}) {
		l := n.errorFrom(from)
		l.refusesPosts(verbs.ErrInvalidState)
		l.modify(verbs.StateIdle)
		l.noCompletions()
	}
}

func errorLosesNone(t *conformance.T) {
	for range counted(t, "round %d", 10) {
		l := newLink(t, verbs.QPConfig{SendDepth: 512, RecvDepth: 512})
		var g sync.WaitGroup
		g.Go(func() { _, _, _ = l.peer.End() })
		accepted := l.posting(t.Rand().IntN(50), func() { assert.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateError})) })
		g.Wait()
		l.remains(verbs.StateError)
		l.accounted(accepted)
	}
}

// errorTerminateMessage reads the Terminate Message back, sent or received, and once a
// new stream has begun there is none.
func errorTerminateMessage(t *conformance.T) {
	theirs := aTerminate(0x1202, aSend(3, nil), false)
	l := newLink(t, verbs.QPConfig{})
	for _, c := range []struct {
		tell []byte
		sent []byte // nil: the peer's is what counts
	}{{badSTag, aTerminate(0x1100, badSTag, false)}, {theirs, nil}, {aSend(9, nil), aTerminate(0x1203, aSend(9, nil), false)}} {
		require.Nil(t, attributes(t, l.qp).Terminate, "in RTS")
		l.send(c.tell)
		want := c.tell
		if c.sent != nil {
			l.expect(c.sent)
			want = c.sent
		}
		l.finished()
		l.keeps(want, c.sent != nil)
		l.again()
	}
	require.Nil(t, attributes(t, l.qp).Terminate, "in RTS")
}

func errorWindowsStay(t *conformance.T, n *host) {
	l, w := n.link(verbs.QPConfig{}), n.newMW()
	run(t, l.qp, verbs.Request{ID: 1, Op: verbs.OpBind, Bind: w.BindRequest(n.mr, 0, 64, remoteRights, 1)}, verbs.StatusSuccess)
	l.reset()
	ends(t, l.qp, verbs.StateError)
	for range 2 {
		require.True(t, must(w.Query())(t).Valid, "in %v", l.qp.State())
		refuses(t, "Destroy QP", verbs.ErrWindowsBound, l.qp.Destroy, l.shown, queries(w.Query))
		l.modify(verbs.StateIdle)
		l.modify(verbs.StateError)
	}
	require.NoError(t, w.Deallocate())
	require.ErrorIs(t, second(w.Query()), verbs.ErrInvalidSTag)
	require.NoError(t, l.qp.Destroy())
}

// errorToIdle asks for Idle while the LLP holds up the end of the stream, and then all the time while one ends: once it
// is granted, everything is flushed, and the queue pair is as new.
func errorToIdle(t *conformance.T) {
	for work := range inTurn(t, "with work %v", []verbs.Op{verbs.OpSend, verbs.OpRead, verbs.OpRecv}) {
		l := newIdleLink(t, verbs.QPConfig{})
		far, near := tcpPair(t)
		inside, letGo := make(chan struct{}, 8), make(chan struct{})
		l.joinOver(far, verbs.StreamConfig{Conn: &latch{near, l.qp, inside, letGo}, CRC: true})
		switch work {
		case verbs.OpRead:
			post(t, l.qp, l.aRead(1))
			l.expect(l.asks(1))
		case verbs.OpRecv:
			l.recv(1)
		default: // none
		}
		ended := make(chan error, 1)
		go func() { ended <- l.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}) }()
		receive(t, inside, "the stream was never closed")
		err, state := l.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle}), l.qp.State()
		close(letGo)
		require.ErrorIs(t, err, verbs.ErrStillFlushing)
		require.Equal(t, verbs.StateError, state)
		require.NoError(t, <-ended)
		l.modify(verbs.StateIdle)
	}
	const requests = 200
	for _, end := range named(t, "%s", map[string]func(*link){
		"by verb": func(l *link) { assert.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateError})) },
		"by fault": func(l *link) {
			assert.NoError(t, l.peer.Send(badSTag))
			_, _, _ = l.peer.End()
			assert.NoError(t, l.peer.CloseWrite())
		},
		"by reset": func(l *link) { assert.NoError(t, l.peer.Reset()) },
	}) {
		l := newLink(t, verbs.QPConfig{ORD: 1, SendDepth: 256, RecvDepth: 256})
		for i := range uint64(requests) {
			post(t, l.qp, l.aRead(i))
			postRecv(t, l.qp, verbs.Recv{ID: i})
		}
		l.expect(l.asks(1))
		var g sync.WaitGroup
		g.Go(func() { end(l) })
		for {
			err := l.qp.Modify(verbs.ModifyQP{Next: verbs.StateIdle})
			if err == nil {
				break
			}
			require.NoError(t, t.Context().Err(), "it is never granted: %v", err)
			if !errors.Is(err, verbs.ErrStillFlushing) {
				require.ErrorIs(t, err, verbs.ErrInvalidState)
			}
		}
		require.Equal(t, verbs.StateIdle, l.qp.State())
		c := make([]verbs.Completion, 256)
		require.Equal(t, requests, l.sq.Poll(c), "what is in the send CQ")
		require.Equal(t, requests, l.rq.Poll(c), "what is in the receive CQ")
		g.Wait()
		a := attributes(t, l.qp)
		for range a.SendDepth {
			post(t, l.qp, l.aSend(1))
		}
		for range a.RecvDepth {
			postRecv(t, l.qp, verbs.Recv{ID: 2})
		}
		l.modify(verbs.StateError)
	}
}
