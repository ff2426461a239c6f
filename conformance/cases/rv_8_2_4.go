package cases

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_2_4 is which completions there are, and how they are had: verbs draft 8.2.3 and
// 8.2.4.
var rv8_2_4 = []conformance.Case{
	apiCase("8.2.3/one-for-each", oneForEach, "RV-8.2.3-M1", "RV-8.2.4-M6", "RV-8.2.4-M7"),
	apiCase("8.2.3/one-for-each-flushed", oneForEachFlushed, "RV-8.2.3-M1", "RV-8.2.4-M6", "RV-8.2.4-M7"),
	apiCase("8.2.4/polled-only", polledOnly, "RV-8.2.4-M1"),
	apiCase("8.2.4/polled-in-any-state", onHost(polledInAnyState), "RV-8.2.4-M2"),
	apiCase("8.2.4/unsignaled", unsignaledSilent, "RV-8.2.4-M3"),
	apiCase("8.2.4/frees-one", onHost(pollFreesOne), "RV-8.2.4-M4"),
	apiCase("8.2.4/left-alone", memoryLeftAlone, "RV-8.2.4-M5"),
	apiCase("8.2.4/left-alone-flushed", memoryLeftAloneFlushed, "RV-8.2.4-M5"),
}

// oneForEach does everything, signaled, and ends with one unsignaled request that fails
// and with receives that nothing comes for.
func oneForEach(t *conformance.T) {
	w := newOpsMatrix(t, hostPairConfig{A: hostConfig{QP: verbs.QPConfig{SendDepth: 256}}, B: hostConfig{QP: verbs.QPConfig{RecvDepth: 256}}})
	var sent, received []verbs.Completion
	for i := range uint64(10) {
		s, r := w.postAll(100*i, 0)
		sent, received = append(sent, s...), append(received, r...)
	}
	completes(t, w.a.cq, sent...)
	completes(t, w.b.cq, received...)
	w.noCompletions()
	postRecv(t, w.b.qp, verbs.Recv{ID: 7001}, verbs.Recv{ID: 7002})
	post(t, w.a.qp, verbs.Request{ID: 8001, Flags: verbs.Unsignaled},
		verbs.Request{ID: 8002, Op: verbs.OpWrite, SGL: []verbs.SGE{{STag: 0x00F00000, Length: 1}}, Flags: verbs.Unsignaled})
	ends(t, w.b.qp, verbs.StateError)
	ends(t, w.a.qp, verbs.StateError)
	completes(t, w.a.cq, verbs.Completion{ID: 8002, QP: w.a.qp.ID(), Op: verbs.OpWrite, Status: verbs.StatusInvalidSTag})
	completes(t, w.b.cq,
		verbs.Completion{ID: 7001, QP: w.b.qp.ID(), Op: verbs.OpRecv},
		verbs.Completion{ID: 7002, QP: w.b.qp.ID(), Op: verbs.OpRecv, Status: verbs.StatusFlushed})
	w.noCompletions()
}

// oneForEachFlushed ends a queue pair in different ways while everything is under way:
// each request that was posted has one completion, if it was not an unsignaled one that
// succeeded, and no request has two.
func oneForEachFlushed(t *conformance.T) {
	for _, end := range named(t, "%s", map[string]func(*link){
		"Modify QP to Error":     func(l *link) { l.modify(verbs.StateError) },
		"Modify QP to Terminate": func(l *link) { l.modify(verbs.StateTerminate); _, _, _ = l.peer.End(); l.shut() },
		"a bad segment":          func(l *link) { l.send(badSTag); _, _, _ = l.peer.End(); l.shut() },
		"a reset":                (*link).reset,
		"a Terminate Message":    func(l *link) { l.send(aTerminate(0x0100, nil, false)); _, _, _ = l.peer.End(); l.shut() },
		"a failure":              func(l *link) { fault.Provoke(l.qp); _, _, _ = l.peer.End(); l.shut() },
	}) {
		l := newLink(t, verbs.QPConfig{ORD: 3, SendDepth: 128})
		var signaled, unsignaled, receives []uint64
		for i := range uint64(20) {
			post(t, l.qp, l.aSend(10*i), l.aRead(10*i+1), verbs.Request{ID: 10*i + 2, Flags: verbs.Unsignaled})
			signaled, unsignaled = append(signaled, 10*i, 10*i+1), append(unsignaled, 10*i+2)
			l.recv(i)
			receives = append(receives, i)
		}
		l.sendMessage([]byte{1})
		l.sendMessage([]byte{2, 2})
		for range 3 { // Read Requests; the first of them answered
			for l.next()[1] != opReadRequest {
			}
		}
		l.send(l.answer())
		l.reads = 0
		end(l)
		ends(t, l.qp, verbs.StateError)
		seen := map[uint64]int{}
		got := make([]verbs.Completion, 200)
		for _, c := range got[:l.sq.Poll(got)] {
			seen[c.ID]++
			if c.ID%10 == 2 {
				require.NotEqual(t, verbs.StatusSuccess, c.Status, "unsignaled %d", c.ID)
			}
		}
		for _, id := range signaled {
			require.Equal(t, 1, seen[id], "completions of %d", id)
		}
		for _, id := range unsignaled {
			require.LessOrEqual(t, seen[id], 1, "completions of %d", id)
		}
		var ids []uint64
		for _, c := range got[:l.rq.Poll(got)] {
			ids = append(ids, c.ID)
		}
		require.Equal(t, receives, ids, "receives")
		empty(t, l.sq)
	}
}

// polledOnly: nothing but polling has a completion to give, and nothing but polling
// takes one away.
func polledOnly(t *conformance.T) {
	onlyCQsHaveCompletions(t)
	n := newHost(t, hostConfig{})
	called := make(chan *verbs.CQ, 1)
	id := must(n.nic.AddCompletionHandler(func(c *verbs.CQ) { called <- c }))(t)
	cq := must(n.nic.CreateCQ(verbs.CQConfig{Entries: 4, Handler: id}))(t)
	require.NoError(t, cq.Notify(verbs.NotifyNext))
	l := n.link(verbs.QPConfig{SendCQ: cq})
	post(t, l.qp, l.aSend(5))
	l.next()
	receive(t, called, "no notification")
	require.Len(t, cq.Events(), 1)
	<-cq.Events()
	for range 3 {
		queried(t, cq)
		queried(t, l.qp)
		require.NoError(t, cq.Notify(verbs.NotifyNext))
	}
	completes(t, cq, l.sentAs(5, verbs.OpSend, verbs.StatusSuccess))
	empty(t, cq)
}

// polledInAnyState leaves completions on their CQs while the queue pair goes on to each
// of its states.
func polledInAnyState(t *conformance.T, n *host) {
	for way := range inTurn(t, "%v", [][]verbs.State{
		{verbs.StateRTS}, {verbs.StateClosing}, {verbs.StateClosing, verbs.StateIdle}, {verbs.StateTerminate}, {verbs.StateTerminate, verbs.StateError},
		{verbs.StateError}, {verbs.StateError, verbs.StateIdle}, {verbs.StateError, verbs.StateIdle, verbs.StateRTS}, {verbs.StateClosing, verbs.StateIdle, verbs.StateError},
	}) {
		l := n.link(verbs.QPConfig{})
		l.recv(1, 2)
		post(t, l.qp, l.aSend(3), l.aSend(4))
		l.next()
		l.next()
		l.sendMessage([]byte{1})
		l.sendMessage([]byte{1, 2})
		l.settled()
		require.NoError(t, l.qp.Drain(t.Context()))
		for i, s := range way {
			switch {
			case s == verbs.StateRTS && i > 0:
				l.join()
			case s == verbs.StateRTS:
			case i > 0 && way[i-1] == verbs.StateClosing, i > 0 && way[i-1] == verbs.StateTerminate:
				_, _, _ = l.peer.End()
				l.closesTo(s)
			default:
				l.modify(s)
			}
		}
		require.Equal(t, way[len(way)-1], l.qp.State())
		completes(t, l.sq, l.sentAs(3, verbs.OpSend, verbs.StatusSuccess), l.sentAs(4, verbs.OpSend, verbs.StatusSuccess))
		completes(t, l.rq, l.got(1, 1), l.got(2, 2))
	}
}

// unsignaledSilent has many unsignaled requests of each kind that has no need of a peer's
// help between signaled ones.
func unsignaledSilent(t *conformance.T) {
	w := newOpsMatrix(t, hostPairConfig{A: hostConfig{QP: verbs.QPConfig{SendDepth: 256}}})
	for i := range uint64(10) {
		_, received := w.postAll(100*i, verbs.Unsignaled)
		run(t, w.a.qp, verbs.Request{ID: 100*i + 50, Op: verbs.OpWrite}, verbs.StatusSuccess)
		completes(t, w.b.cq, received...) // all ten were done
	}
	run(t, w.a.qp, verbs.Request{ID: 9999, Op: verbs.OpRead}, verbs.StatusSuccess)
	empty(t, w.a.cq)
	require.Equal(t, verbs.StateRTS, w.a.qp.State())
}

// pollFreesOne keeps a CQ full: there is always room for one more behind a poll, and
// never an overflow.
func pollFreesOne(t *conformance.T, n *host) {
	cq := n.newCQ(5)
	e := roomOf(cq)
	l := n.link(verbs.QPConfig{SendCQ: cq, SendDepth: 4 * e})
	done := func(id int) {
		post(t, l.qp, verbs.Request{ID: uint64(id)})
		l.next()
		require.NoError(t, l.qp.Drain(t.Context()))
	}
	for id := range e {
		done(id)
	}
	for id := range 3 * e {
		require.Equal(t, l.sentAs(uint64(id), verbs.OpSend, verbs.StatusSuccess), must(cq.PollOne())(t))
		done(e + id)
	}
	for id := range e {
		completes(t, cq, l.sentAs(uint64(3*e+id), verbs.OpSend, verbs.StatusSuccess))
	}
	empty(t, cq)
	n.quiet()
	require.Equal(t, verbs.StateRTS, l.qp.State())
}

// memoryLeftAlone overwrites a request's memory as soon as it has completed, with
// traffic going on: the octets on the wire are the old ones, what came in does not come
// again.
func memoryLeftAlone(t *conformance.T) {
	const k = 9000
	n := newHost(t, hostConfig{})
	l := n.link(verbs.QPConfig{})
	mine, sink, room := n.register(k, allRights), n.register(k, allRights), n.register(k, allRights)
	pattern := bytes.Repeat([]byte{0xEE}, k)
	for i := range counted(t, "round %d", uint32(30)) {
		data := bytes.Clone(fill(mine.Bytes(), int(i)))
		post(t, l.qp, verbs.Request{ID: 1, SGL: mine.SGL(0, k)}, verbs.Request{ID: 2, Op: verbs.OpWrite, SGL: mine.SGL(0, k), Remote: theirs})
		completes(t, l.sq, l.sentAs(1, verbs.OpSend, verbs.StatusSuccess), l.sentAs(2, verbs.OpWrite, verbs.StatusSuccess))
		copy(mine.Bytes(), pattern) // the peer has read nothing of it yet
		require.Equal(t, data, l.whole(18), "the Send")
		require.Equal(t, data, l.whole(14), "the Write")

		post(t, l.qp, verbs.Request{ID: 3, Op: verbs.OpRead, Local: sink.SGE(0, k), Remote: theirs})
		require.Equal(t, byte(opReadRequest), l.next()[1])
		l.send(segmented(opReadResponse, sink.Remote(0), data, 2000)...)
		postRecv(t, l.qp, verbs.Recv{ID: 4, SGL: room.SGL(0, k)})
		l.sendMessage(data)
		completes(t, l.sq, l.sentAs(3, verbs.OpRead, verbs.StatusSuccess))
		copy(sink.Bytes(), pattern)
		completes(t, l.rq, l.got(4, k))
		copy(room.Bytes(), pattern)
		l.settled()
		require.Equal(t, pattern, sink.Bytes(), "the sink of the Read")
		require.Equal(t, pattern, room.Bytes(), "the buffer of the receive")
	}
}

// whole is the payload of the next message that the peer gets, whose headers have that
// many octets.
func (l *link) whole(header int) (b []byte) {
	for {
		u := l.next()
		b = append(b, u[header:]...)
		if u[0]&0x40 != 0 {
			return b
		}
	}
}

// memoryLeftAloneFlushed: the same of requests that were under way when they were
// flushed. The peer goes on sending for them.
func memoryLeftAloneFlushed(t *conformance.T) {
	const k = 4 << 20
	n := newHost(t, hostConfig{})
	mine, sink, room := n.register(k, allRights), n.register(k, allRights), n.register(k, allRights)
	pattern := bytes.Repeat([]byte{0xEE}, k)
	half := fill(make([]byte, 5000), 1)
	for next := range inTurn(t, "Modify QP to %v", []verbs.State{verbs.StateError, verbs.StateTerminate}) {
		fill(mine.Bytes(), 2)
		clear(sink.Bytes())
		clear(room.Bytes())
		l := n.link(verbs.QPConfig{CloseTimeout: shortly})
		postRecv(t, l.qp, verbs.Recv{ID: 4, SGL: room.SGL(0, k)})
		post(t, l.qp, verbs.Request{ID: 1, Op: verbs.OpRead, Local: sink.SGE(0, k), Remote: theirs})
		require.Equal(t, byte(opReadRequest), l.next()[1])
		l.send(segmented(opReadResponse, sink.Remote(0), make([]byte, 5000), 2000)[:1]...)
		l.send(untagged(moreUntagged, opSend, 0, 0, 1, 0, half))
		l.settled()
		require.Equal(t, half, room.Bytes()[:5000], "so far")
		for range 4 {
			post(t, l.qp, verbs.Request{ID: 2, SGL: mine.SGL(0, k)})
		}
		l.modify(next)
		// All of it is there at this moment, or will be: some is on its way.
		_ = l.peer.Send(untagged(lastUntagged, opSend, 0, 0, 1, 5000, make([]byte, 3000)))
		_ = l.peer.Send(aReadResponse(uint32(sink.STag()), sink.Base()+2000, make([]byte, 3000)))
		ends(t, l.qp, verbs.StateError)
		copy(mine.Bytes(), pattern)
		copy(sink.Bytes(), pattern)
		copy(room.Bytes(), pattern)
		require.Equal(t, l.recvAs(verbs.StatusFlushed, 4), await(t, l.rq, 1))
		require.Equal(t, l.sentAs(1, verbs.OpRead, verbs.StatusFlushed), await(t, l.sq, 5)[0])
		for {
			u, err := l.peer.Next()
			if err != nil {
				break
			}
			require.NotContains(t, string(u), string(pattern[:64]), "what the peer still gets")
		}
		require.NoError(t, l.qp.Destroy())
		require.True(t, bytes.Equal(pattern, sink.Bytes()), "the sink of the Read")
		require.True(t, bytes.Equal(pattern, room.Bytes()), "the buffer of the receive")
	}
}
