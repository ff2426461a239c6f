package cases

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_2_close is how RTS is left in order, and with a message: verbs draft 6.2.2.2 and
// 6.2.2.3.
var rv6_2_close = []conformance.Case{
	upperCase("6.2.2.2/peer-closes", peerCloses, "RV-6.2.2.2-M1", "RV-6.2.2.2-M2", "RV-6.2.2.2-M4"),
	upperCase("6.2.2.2/peer-closes-on-work", peerClosesOnWork, "RV-6.2.2.2-M1", "RV-6.2.2.2-M3", "RV-6.2.2.2-M4", "PV-8.3.3-M3"),
	upperCase("6.2.2.2/by-verb", closedByVerb, "RV-6.2.2.2-M5", "RV-6.2.2.2-M6"),
	upperCase("6.2.2.2/by-verb-with-work", closedWithWork, "RV-6.2.2.2-M7", "PV-6.2.5-M2"),
	apiCase("6.2.2.2/by-verb-while-posting", closedWhilePosting, "RV-6.2.2.2-M7"),
	upperCase("6.2.2.3/by-verb", onTwoCQs(terminatedByVerb), "RV-6.2.2.3-M1", "PR-5040-4.8-M1", "PV-6.2.2.3-M1"),
	upperCase("6.2.2.3/by-the-peer", terminatedByPeer, "RV-6.2.2.3-M5", "RV-6.2.2.3-M6", "RV-6.2.2.3-M7"),
}

// peerCloses: nothing is left to do, so the queue pair closes too, by itself.
func peerCloses(t *conformance.T) {
	for _, play := range []conformance.Role{conformance.Initiator, conformance.Responder} {
		s := twoCQs()
		s.play = play
		r := open(t, s)
		r.recv(3, 16)
		if play == conformance.Initiator { // both queues have been used, and are empty
			r.sendMessage([]byte("abc"))
			r.completionsOf(r.RecvCQ, verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: 3})
			r.settled()
		} else {
			r.send(aSend(1, []byte("abc")))
			r.completionsOf(r.RecvCQ, verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: 3})
		}
		r.shut()
		require.Equal(t, endFIN, r.gone(), "no Terminate Message, no reset")
		q := r.ended(verbs.StateIdle)
		require.False(t, q.Stream)
		require.Nil(t, q.Terminate)
		r.completionsOf(r.RecvCQ, flushedRecvs(2, 3)...)
		r.events(verbs.EventLLPCloseComplete)
		r.incomplete()
	}
}

// peerClosesOnWork: an RDMA Read of this side is not answered, one of the peer's is
// not, or the peer says more than goodbye.
func peerClosesOnWork(t *conformance.T) {
	t.Part("work on the Send Queue")
	r := open(t, twoCQs())
	r.recv(1, 16)
	r.outstandingRead(9)
	r.shut()
	r.terminated(0x0207, nil, false)
	q := r.ended(verbs.StateError)
	require.True(t, q.Terminate != nil && q.Terminate.Sent)
	r.events(verbs.EventBadLLPClose)
	r.completionsOf(r.SendCQ, verbs.Completion{ID: 9, Op: verbs.OpRead, Status: verbs.StatusFlushed})
	r.completionsOf(r.RecvCQ, flushedRecvs(1)...)

	t.Part("work on the IRRQ")
	r = open(t, twoCQs())
	const size = 16 << 20 // more than the sockets hold
	b := r.register(uppertester.RegisterArgs{Len: size, Access: allRights})
	r.send(aReadRequest(1, read{nowhere, nowhereTO, size, b.tag(), b.at(0)}))
	first := r.next()
	require.Equal(t, byte(opReadResponse), first[1])
	r.shut()
	for _, u := range r.eventuallyTerminated(0x0207, nil, false) {
		require.Equal(t, byte(opReadResponse), u[1], "what comes before")
		require.Equal(t, byte(moreTagged), u[0], "it is not the whole answer")
	}
	r.ended(verbs.StateError)
	r.events(verbs.EventBadLLPClose)

	t.Part("a Terminate Message")
	r = open(t, twoCQs())
	r.send(aTerminate(0x0207, nil, false))
	r.finishedIn(verbs.StateError)
	r.events(verbs.EventTerminateReceived)
}

// closedByVerb: the peer gets what was posted and then the end of the stream; there is
// no event before its own.
func closedByVerb(t *conformance.T) {
	s := twoCQs()
	s.play = conformance.Responder
	r, b := openWith(t, s, 64)
	r.recv(2, 16)
	r.post(verbs.Request{ID: 5, SGL: b.sgl(0, 64)})
	r.completionsOf(r.SendCQ, verbs.Completion{ID: 5})
	r.close()
	r.expect(aSend(1, b.first))
	require.Equal(t, endFIN, r.gone())
	r.state(verbs.StateClosing)
	r.completionsOf(r.RecvCQ, flushedRecvs(1, 2)...)
	r.events()
	r.state(verbs.StateClosing)
	r.shut()
	r.ended(verbs.StateIdle)
	r.events(verbs.EventLLPCloseComplete)
}

// closedWithWork: what was not done is flushed, and the end is a bad one.
func closedWithWork(t *conformance.T) {
	t.Part("on the Send Queue")
	r := open(t, twoCQs())
	r.recv(1, 16)
	r.outstandingRead(9)
	r.close()
	require.Equal(t, endReset, r.gone())
	r.ended(verbs.StateError)
	r.events(verbs.EventBadClose)
	r.completionsOf(r.SendCQ, verbs.Completion{ID: 9, Op: verbs.OpRead, Status: verbs.StatusFlushed})
	r.completionsOf(r.RecvCQ, flushedRecvs(1)...)

	t.Part("on the IRRQ")
	r = open(t, twoCQs())
	const size = 16 << 20
	b := r.register(uppertester.RegisterArgs{Len: size, Access: allRights})
	r.send(aReadRequest(1, read{nowhere, nowhereTO, size, b.tag(), b.at(0)}))
	r.next()
	r.close()
	require.Equal(t, endReset, r.gone())
	r.ended(verbs.StateError)
	r.events(verbs.EventBadClose)
}

// closedWhilePosting has programs that post while another closes: each request was
// refused, or has completed, or is on the queue in Idle.
func closedWhilePosting(t *conformance.T) {
	for range counted(t, "round %d", 10) {
		l := newLink(t, verbs.QPConfig{SendDepth: 512, RecvDepth: 512})
		go func() { // the peer closes when it sees the end
			_, _, _ = l.peer.End()
			_ = l.peer.CloseWrite()
		}()
		accepted := l.posting(t.Rand().IntN(50), func() {
			require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateClosing}))
			<-l.qp.Done()
		})
		s := l.qp.State()
		require.Contains(t, []verbs.State{verbs.StateIdle, verbs.StateError}, s)
		if s == verbs.StateIdle {
			l.raised(verbs.EventLLPCloseComplete)
			l.modify(verbs.StateError) // flushes what was posted then
		} else {
			l.raised(verbs.EventBadClose)
		}
		l.quiet()
		l.accounted(accepted)
	}
}

// terminatedByVerb: the message is that of figure 12, and both programs can look at it.
func terminatedByVerb(t *conformance.T, r *rig) {
	r.recv(1, 16)
	r.outstandingRead(9)
	require.NoError(t, r.modify(uppertester.ModifyArgs{Next: verbs.StateTerminate}))
	q := r.query()
	require.Equal(t, verbs.StateTerminate, q.State)
	u := r.next()
	require.Equal(t, untagged(0x41, 0x47, 0, 2, 1, 0, []byte{0, 0, 0, 0}), u, "RDMA, Local Catastrophic, no headers")
	q = r.finishedIn(verbs.StateError)
	require.NotNil(t, q.Terminate)
	require.True(t, q.Terminate.Sent)
	require.Equal(t, []byte{0, 0, 0, 0}, q.Terminate.Raw)
	r.events()
	r.completionsOf(r.SendCQ, verbs.Completion{ID: 9, Op: verbs.OpRead, Status: verbs.StatusFlushed})
	r.completionsOf(r.RecvCQ, flushedRecvs(1)...)
}

// terminatedByPeer: none is sent back.
func terminatedByPeer(t *conformance.T) {
	for _, m := range [][]byte{
		aTerminate(0x0000, nil, false), aTerminate(0x1202, aSend(7, nil), false), aTerminate(0x0100, aReadRequest(5, read{}), true),
	} {
		r := open(t, twoCQs())
		r.recv(2, 16)
		r.send(m)
		require.ErrorIs(t, second(r.peer.Next()), io.EOF, "this side's half ends, without an FPDU before")
		q := r.query()
		require.Equal(t, verbs.StateTerminate, q.State, "the peer's half is open")
		require.NotNil(t, q.Terminate)
		require.False(t, q.Terminate.Sent)
		require.Equal(t, m[18:], q.Terminate.Raw, "what Query QP returns")
		r.shut()
		r.ended(verbs.StateError)
		r.events(verbs.EventTerminateReceived)
		r.completionsOf(r.RecvCQ, flushedRecvs(1, 2)...)
	}
}

// rv6_2_abort is RTS to Error: verbs draft 6.2.2.4.
var rv6_2_abort = []conformance.Case{
	upperCase("6.2.2.4/by-verb", onTwoCQs(abortedByVerb), "RV-6.2.2.4-M1", "RV-6.2.2.4-M2", "RV-6.2.2.4-M4", "RV-6.2.2.4-M7", "PV-6.4-M3"),
	apiCase("6.2.2.4/stops-everything", abortStopsEverything, "RV-6.2.2.4-M3"),
	apiCase("6.2.2.4/socket-released", abortReleases, "RV-6.2.2.4-M5"),
	upperCase("6.2.2.4/llp-failure", llpFails, "RV-6.2.2.4-M2", "RV-6.2.2.4-M6", "RV-6.2.2.4-M7", "PV-8.3.3-M1", "PV-8.3.3-M2"),
	apiCase("6.2.2.4/llp-times-out", llpTimesOut, "RV-6.2.2.4-M6", "PV-8.3.3-M1"),
}

// abortedByVerb: the stream is reset, and nothing is said.
func abortedByVerb(t *conformance.T, r *rig) {
	r.recv(2, 16)
	r.outstandingRead(9)
	require.NoError(t, r.modify(uppertester.ModifyArgs{Next: verbs.StateError}))
	q := r.query()
	require.Equal(t, verbs.StateError, q.State)
	require.False(t, q.Stream)
	require.Nil(t, q.Terminate)
	r.endsAs(endReset, "a Terminate Message, or whatever")
	r.completionsOf(r.SendCQ, verbs.Completion{ID: 9, Op: verbs.OpRead, Status: verbs.StatusFlushed})
	r.completionsOf(r.RecvCQ, flushedRecvs(1, 2)...)
	r.events()
}

// abortStopsEverything aborts in the middle of Sends, answers to RDMA Reads and inbound
// Writes.
func abortStopsEverything(t *conformance.T) {
	const receives = 4000 // so many that flushing them takes its time
	n := newHost(t, hostConfig{})
	for range 10 {
		l := n.link(verbs.QPConfig{SendDepth: 64, IRD: 64, RecvDepth: receives, RecvCQ: n.newCQ(receives)})
		postRecv(t, l.qp, make([]verbs.Recv, receives)...)
		at, src := l.mr.Remote(32<<10), l.mr.Remote(0)
		var g sync.WaitGroup
		g.Go(func() { // writes, and asks for what nobody fetches
			for i := uint32(1); ; i++ {
				if l.peer.Send(aWrite(uint32(at.STag), at.TO, make([]byte, 16000))) != nil {
					return
				}
				if i <= 8 && l.peer.Send(aReadRequest(i, read{nowhere, nowhereTO, 32 << 10, uint32(src.STag), src.TO})) != nil {
					return
				}
			}
		})
		for i := range uint64(32) {
			post(t, l.qp, verbs.Request{ID: i, SGL: l.mr.SGL(0, 8<<10)})
		}
		for range t.Rand().IntN(10000) {
			_ = l.qp.State()
		}
		require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}))
		c := make([]verbs.Completion, receives)
		require.Equal(t, receives, l.rq.Poll(c), "flushed when the verb returns")
		require.Equal(t, 32, l.sq.Poll(c), "completed or flushed when the verb returns")
		kept := fill(make([]byte, 16000), 5)
		copy(l.mr.Bytes()[32<<10:], kept)
		clear(l.mr.Bytes()[:32<<10]) // a message that began later would show it
		// What the socket had already taken may still arrive: whole segments, and
		// then a reset.
		g.Wait()
		require.Equal(t, kept, l.mr.Bytes()[32<<10:][:16000], "memory, after the verb has returned")
		_, _, _ = l.peer.End()
		_ = l.peer.Close()
		require.NoError(t, l.qp.Destroy())
	}
	n.quiet()
}

func abortReleases(t *conformance.T) {
	l := newHost(t, hostConfig{}).hiddenLink(verbs.QPConfig{})
	for range 5 {
		conn := l.stream().Conn
		l.modify(verbs.StateError)
		released(t, conn)
		l.endsAs(endReset, "FPDUs before it")
		l.again()
		run(t, l.qp, l.aSend(1), verbs.StatusSuccess)
		l.expect(aSend(1, l.mr.Bytes()[:4]))
	}
}

// llpFails: the peer resets, or its stream breaks off within an FPDU.
func llpFails(t *conformance.T) {
	for _, c := range named(t, "%s", map[string]struct {
		do    func(*rig)
		event verbs.EventID
	}{
		"a reset": {func(r *rig) { require.NoError(t, r.peer.Reset()) }, verbs.EventLLPReset},
		"the end within an FPDU": {func(r *rig) {
			f := r.peer.Frame(aWrite(0, 0, []byte("abcd")))
			require.NoError(t, r.peer.Raw(f[:len(f)-5]))
			r.shut()
		}, verbs.EventLLPLost},
	}) {
		r := open(t, twoCQs())
		r.recv(2, 16)
		r.outstandingRead(9)
		c.do(r)
		q := r.ended(verbs.StateError)
		require.False(t, q.Stream)
		require.Nil(t, q.Terminate)
		r.events(c.event)
		r.completionsOf(r.SendCQ, verbs.Completion{ID: 9, Op: verbs.OpRead, Status: verbs.StatusFlushed})
		r.completionsOf(r.RecvCQ, flushedRecvs(1, 2)...)
	}
}

// timedOut tells the end of what the peer sends as TCP's time-out.
type timedOut struct{ net.Conn }

func (c timedOut) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if errors.Is(err, io.EOF) {
		err = os.NewSyscallError("read", syscall.ETIMEDOUT)
	}
	return n, err
}

// llpTimesOut: TCP gives up a peer that takes nothing. Where it cannot be told to do so soon, and where the stream is
// no socket of the queue pair's, the connection says that it did.
func llpTimesOut(t *conformance.T) {
	for socket := range inTurn(t, "a socket: %v", []bool{true, false}) {
		l := newIdleLink(t, verbs.QPConfig{})
		far, near := tcpPair(t)
		if socket && !givesUp(near.(*net.TCPConn), 100*time.Millisecond) {
			continue
		}
		if !socket {
			near = timedOut{near}
		}
		l.joinOver(far, verbs.StreamConfig{Conn: near, CRC: true})
		l.recv(2)
		if socket {
			const size = 16 << 20 // more than the sockets hold
			from := l.register(size, allRights).SGL(0, size)
			post(t, l.qp, verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: from, Remote: theirs})
		} else {
			post(t, l.qp, l.aRead(1))
			l.expect(l.asks(1))
			l.shut()
		}
		ends(t, l.qp, verbs.StateError)
		l.raised(verbs.EventLLPLost)
		require.Nil(t, l.stream())
		require.Nil(t, attributes(t, l.qp).Terminate)
		completes(t, l.sq, l.sentAs(1, either(socket, verbs.OpWrite, verbs.OpRead), verbs.StatusFlushed))
		completes(t, l.rq, l.recvAs(verbs.StatusFlushed, 2)...)
		l.noCompletions()
	}
}
