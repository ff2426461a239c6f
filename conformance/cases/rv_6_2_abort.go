package cases

import (
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

// rv6_2_abort is RTS to Error: verbs draft 6.2.2.4.
var rv6_2_abort = []conformance.Case{
	upperCase("6.2.2.4/by-verb", abortedByVerb, "RV-6.2.2.4-M1", "RV-6.2.2.4-M2", "RV-6.2.2.4-M4", "RV-6.2.2.4-M7", "PV-6.4-M3"),
	apiCase("6.2.2.4/stops-everything", abortStopsEverything, "RV-6.2.2.4-M3"),
	apiCase("6.2.2.4/socket-released", abortReleases, "RV-6.2.2.4-M5"),
	upperCase("6.2.2.4/llp-failure", llpFails, "RV-6.2.2.4-M2", "RV-6.2.2.4-M6", "RV-6.2.2.4-M7", "PV-8.3.3-M1", "PV-8.3.3-M2"),
}

// abortedByVerb: the stream is reset, and nothing is said.
func abortedByVerb(t *conformance.T) {
	r := open(t, twoCQs())
	r.recv(2, 16)
	r.outstandingRead(9)
	require.NoError(t, r.modify(upper.ModifyArgs{Next: verbs.StateError}))
	q := r.query()
	require.Equal(t, verbs.StateError, q.State)
	require.False(t, q.Stream)
	require.Nil(t, q.Terminate)
	endsAs(t, r.peer, endReset, "a Terminate Message, or whatever")
	r.completionsOf(r.SendCQ, verbs.Completion{ID: 9, Op: verbs.OpRead, Status: verbs.StatusFlushed})
	r.completionsOf(r.RecvCQ, flushedRecvs(1, 2)...)
	r.events()
}

// abortStopsEverything aborts in the middle of Sends, answers to RDMA Reads and inbound
// Writes.
func abortStopsEverything(t *conformance.T) {
	const receives = 4000 // so many that flushing them takes its time
	n := newNode(t, nodeConfig{})
	for range 10 {
		l := n.line(verbs.QPConfig{SendDepth: 64, IRD: 64, RecvDepth: receives, RecvCQ: n.newCQ(receives)})
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
	l := newNode(t, nodeConfig{}).veiledLine(verbs.QPConfig{})
	for range 5 {
		conn := l.stream().Conn
		l.modify(verbs.StateError)
		released(t, conn)
		l.cut()
		l.again()
		run(t, l.qp, l.aSend(1), verbs.StatusSuccess)
		l.hear(aSend(1, l.mr.Bytes()[:4]))
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
