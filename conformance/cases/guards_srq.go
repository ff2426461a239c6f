package cases

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// guardsSRQ are the same of shared receive queues.
var guardsSRQ = []conformance.Case{
	apiCase("6.3.8/limit-of-an-empty-queue", onHost(limitOfAnEmptyQueue), "RV-6.3.8-M5"),
	apiCase("6.4.3.1/drips-while-another-waits", onHost(dripsWhileAnotherWaits), "R5042-6.4.3.1-M1"),
	apiCase("6.4.3.1/grace-of-all-who-wait", onHost(graceOfAllWhoWait), "R5042-6.4.3.1-M1"),
	apiCase("9.3.1.2/post-to-a-failed-rnic", onHost(postToAFailedRNIC), "RV-9.3.1.2-M1"),
}

// limitOfAnEmptyQueue has a message find no receive of a queue whose limit is armed: there are fewer than that.
func limitOfAnEmptyQueue(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{Depth: 4, Limit: 2})
	n.paused(verbs.QPConfig{SRQ: s, GracefulReceive: true}, false)
	n.events.are(verbs.Event{ID: verbs.EventSRQLimit, SRQ: s.ID()})
	require.False(t, queried[verbs.SRQAttributes](t, s).Armed, "armed")
	n.receives(s, 1)
	n.quiet()
}

// dripsWhileAnotherWaits has a message go on by an octet now and then, while another stream waits for a receive.
// That is no progress: its stream ends as one that stands still does.
func dripsWhileAnotherWaits(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{StallTimeout: shortly})
	postRecv(t, s, verbs.Recv{ID: 1, SGL: n.mr.SGL(0, 32<<10)})
	drips := n.link(verbs.QPConfig{SRQ: s})
	msn := drips.nextSend()
	drips.send(untagged(moreUntagged, opSend, 0, 0, msn, 0, []byte{1}))
	eventually(t, func() bool { return s.Stats().Taken == 1 }, "the message has the receive")
	waits := n.paused(verbs.QPConfig{SRQ: s, GracefulReceive: true}, false)
	now := time.NewTicker(shortly / 20)
	defer now.Stop()
	for off := uint32(1); drips.qp.State() == verbs.StateRTS; off++ {
		if drips.Raw(drips.Frame(untagged(moreUntagged, opSend, 0, 0, msn, off, []byte{1}))) != nil {
			break // it has ended just now
		}
		receive(t, now.C, "the stream that drips goes on")
	}
	drips.terminated(0x0207, nil, false)
	drips.closesTo(verbs.StateError)
	drips.raised(verbs.EventSRQStalled)
	completes(t, drips.rq, drips.recvAs(verbs.StatusFlushed, 1)...)
	require.Equal(t, verbs.StateRTS, waits.qp.State(), "the stream that waits")
}

// graceOfAllWhoWait has two streams wait for a receive because a third one holds the only one. It stalls, and the
// program posts no other: when the time for that is over both end, not just the one that came first.
func graceOfAllWhoWait(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{StallTimeout: 4 * shortly})
	n.receives(s, 1)
	keeps, a, b := n.link(verbs.QPConfig{SRQ: s}), n.link(verbs.QPConfig{SRQ: s}), n.link(verbs.QPConfig{SRQ: s})
	keeps.send(untagged(moreUntagged, opSend, 0, 0, keeps.nextSend(), 0, []byte{1}))
	eventually(t, func() bool { return s.Stats().Taken == 1 }, "the message has the receive")
	u := a.peer.aSend([]byte{1}) // the first of either
	a.send(u)
	b.send(b.peer.aSend([]byte{1}))
	keeps.terminated(0x0207, nil, false)
	for _, l := range []*link{a, b} {
		l.terminated(0x1202, u, false)
		l.closesTo(verbs.StateError)
	}
	keeps.closesTo(verbs.StateError)
	completes(t, keeps.rq, keeps.recvAs(verbs.StatusFlushed, 1)...)
	want := []verbs.Event{
		{ID: verbs.EventSRQStalled, QP: keeps.id}, {ID: verbs.EventRQMSNRange, QP: a.id}, {ID: verbs.EventRQMSNRange, QP: b.id},
	}
	require.ElementsMatch(t, want, []verbs.Event{n.events.next(), n.events.next(), n.events.next()})
	n.quiet()
}

// postToAFailedRNIC posts receives when the RNIC has failed: to an S-RQ of streams, to one of none, and to a queue pair.
func postToAFailedRNIC(t *conformance.T, n *host) {
	used, unused := n.newSRQ(verbs.SRQConfig{}), n.newSRQ(verbs.SRQConfig{})
	n.link(verbs.QPConfig{SRQ: used})
	n.receives(used, 1)
	fault.Provoke(n.nic)
	for what, queue := range named(t, "%s", map[string]interface {
		PostRecv(reqs ...verbs.Recv) (int, error)
	}{"an S-RQ of a stream": used, "an S-RQ of none": unused, "a queue pair": n.qp}) {
		for range 2 {
			count, err := queue.PostRecv(verbs.Recv{ID: 2}, verbs.Recv{ID: 3})
			require.ErrorIs(t, err, verbs.ErrInvalidRNIC, "PostRQ to %s", what)
			require.Zero(t, count, "posted")
		}
	}
}
