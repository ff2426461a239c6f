package cases

import (
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// guardsMemory are the same of memory that is named by what it is not, and of what is told of all that happens.
var guardsMemory = []conformance.Case{
	apiCase("7.2.1/beyond-physical-memory", onHost(beyondPhysicalMemory), "RV-7.2.1-M1", "RV-7.2.1-M5"),
	apiCase("7.10.2/bound-as-nothing", onHost(boundAsNothing), "RV-8.3.2-M1"),
	apiCase("8.3.3/rnic-fails-twice", onHost(rnicFailsTwice), "RV-8.3.3-M4"),
	apiCase("6.1.3/counters-of-what-has-ended", onHost(countersOfWhatHasEnded), "RV-6.1.3-M12"),
	apiCase("6.2.2.2/drained-by-an-answer", onHost(drainedByAnAnswer), "RV-6.2.2.2-M5"),
	apiCase("8.2.3/what-a-trace-tells", whatATraceTells, "RV-8.2.3-M1"),
}

// beyondPhysicalMemory sends and receives by the STag of zero from where there is no physical memory: behind the last
// octet, across it, where it was freed, and beyond what a TO can be.
func beyondPhysicalMemory(t *conformance.T, n *host) {
	for range 8 { // so that one that is freed is not much of all
		n.pages(1, 4096)
	}
	p, freed := n.pages(2, 4096), n.pages(1, 4096)
	gone := freed.Address(0)
	require.NoError(t, freed.Deallocate())
	end := p.Address(1) + 4096
	for _, c := range []struct {
		what string
		to   uint64
		want verbs.Status
	}{
		{"the last octets", end - 8, verbs.StatusSuccess},
		{"across the end", end - 7, verbs.StatusBaseBounds},
		{"behind the end", end, verbs.StatusBaseBounds},
		{"before the beginning", p.Address(0) - 1, verbs.StatusBaseBounds},
		{"freed", gone, verbs.StatusBaseBounds},
		{"beyond the last TO", 1<<64 - 7, verbs.StatusWrap},
		{"up to the last TO", 1<<64 - 8, verbs.StatusBaseBounds},
	} {
		t.Part("%s", c.what)
		l := n.link(privileged)
		run(t, l.qp, verbs.Request{ID: 1, SGL: []verbs.SGE{{TO: c.to, Length: 8}}}, c.want)
		if c.want == verbs.StatusSuccess {
			continue
		}
		l.rest()
		l.closesTo(verbs.StateError)
		var why *verbs.StreamError
		require.ErrorAs(t, l.qp.LLPStream().Err(), &why)
		require.NotNil(t, why.Why)
		require.NotEmpty(t, why.Why.What+why.Why.Rule)
		require.NotEmpty(t, why.Why.Remedy, "what to do")
	}
}

// boundAsNothing binds a window to itself, and a region to itself: nothing is bound.
func boundAsNothing(t *conformance.T, n *host) {
	for what, spoil := range named(t, "%s", map[string]func(*verbs.BindRequest){
		"a region as the window": func(b *verbs.BindRequest) { b.Window = b.Region },
		"a window as the region": func(b *verbs.BindRequest) { b.Region = b.Window },
	}) {
		l, mw := n.link(verbs.QPConfig{}), n.newMW()
		b := mw.BindRequest(n.mr, 0, 8, remoteRights, 1)
		spoil(b)
		want := either(what == "a window as the region", verbs.StatusInvalidRegion, verbs.StatusInvalidWindow)
		run(t, l.qp, binds(b), want)
		l.rest()
		l.closesTo(verbs.StateError)
		require.False(t, queried(t, mw).Valid, "bound by %s", what)
		require.Zero(t, queried(t, n.mr).Windows, "windows of the region")
		require.NoError(t, mw.Deallocate())
	}
}

// rnicFailsTwice has an RNIC fail once and once more: one event tells of it.
func rnicFailsTwice(t *conformance.T, n *host) {
	l := n.link(verbs.QPConfig{})
	for range 3 {
		fault.Provoke(n.nic)
	}
	l.rest()
	l.closesTo(verbs.StateError)
	n.events.are(verbs.Event{ID: verbs.EventRNICCatastrophic})
	require.NoError(t, n.nic.Close()) // no handler runs any more
	require.Empty(t, n.events.events, "events behind that")
}

// countersOfWhatHasEnded ends queues with work on them, which the RNIC does not count any more, and streams of which all
// octets count: what was read before them, what came when they ended, and their Terminate Messages, each as what it is.
func countersOfWhatHasEnded(t *conformance.T, n *host) {
	idle, s := n.idleLink(verbs.QPConfig{}), n.newSRQ(verbs.SRQConfig{})
	post(t, idle.qp, idle.aSend(1), idle.aSend(2))
	idle.recv(1, 2, 3)
	n.receives(s, 1, 2)
	now := func() [3]uint64 {
		a := n.nic.Stats()
		return [3]uint64{a.QP.SendQueue.Now, a.QP.RecvQueue.Now, a.SRQ.Queue.Now}
	}
	require.Equal(t, [3]uint64{2, 3, 2}, now(), "work on queues")
	succeed(t, idle.qp.Destroy, s.Destroy)
	require.Zero(t, now(), "work on queues that are gone")

	l := n.idleLink(verbs.QPConfig{})
	config, peer := aStream(t)
	config.Early = peer.Frame(aWrite(1, 0, nil))
	octets := len(config.Early)
	begin(t, l.qp, *config)
	l.peer = peer
	bad := l.Frame(badSTag)
	l.raw(bad)
	l.terminated(0x1100, badSTag, false)
	more := l.Frame(aSend(1, []byte("late")))
	l.raw(more)
	eventually(t, func() bool { return l.qp.State() == verbs.StateTerminate }, "it is closing")
	l.closesTo(verbs.StateError)
	a := l.qp.Stats()
	require.EqualValues(t, octets+len(bad)+len(more), a.InOctets, "octets that came")
	require.EqualValues(t, len(l.Frame(aTerminate(0x1100, badSTag, false))), a.OutOctets, "octets of the Terminate Message")
	require.EqualValues(t, 1, a.Out.Terminate.Messages)
	require.Len(t, a.OutTerminates, 1)
	require.Empty(t, a.InTerminates)

	l = n.link(verbs.QPConfig{})
	l.send(aTerminate(0x1202, nil, false))
	l.closesTo(verbs.StateError)
	a = l.qp.Stats()
	require.EqualValues(t, 1, a.In.Terminate.Messages)
	require.Len(t, a.InTerminates, 1)
	require.Empty(t, a.OutTerminates)
}

// drainedByAnAnswer waits for a stream to have nothing left that has sent a Read to be ready to receive: until that is
// answered, and not longer.
func drainedByAnAnswer(t *conformance.T, n *host) {
	l := n.idleLink(verbs.QPConfig{})
	far, near := tcpPair(t)
	l.joinOver(far, verbs.StreamConfig{Conn: near, CRC: true, P2P: true, RTR: rtrRead})
	s := &scene{t: t, wait: l.qp.Drain}
	a := s.sleeps()
	l.send(l.asksFor(1, 0))
	a.wakes()
}

// whatATraceTells has each thing that happens to a queue pair told once: what is posted, sent, received, placed and
// completed, the states, and the events.
func whatATraceTells(t *conformance.T) {
	var mu sync.Mutex
	var list []verbs.Record
	n := newHost(t, hostConfig{RNIC: verbs.Config{Trace: func(r verbs.Record) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, r)
	}}})
	l := n.link(verbs.QPConfig{SendCQ: n.cq, RecvCQ: n.cq})
	l.settled()
	tells := func(what string, want ...verbs.Record) {
		for i := range want {
			if r := &want[i]; r.Kind != verbs.RecordNotified || r.CQ == 0 {
				r.QP = l.id
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for i := range list {
			require.NotZero(t, list[i].Time)
			list[i].Time = 0
		}
		require.ElementsMatch(t, want, list, what)
		list = nil
	}
	mu.Lock()
	list = nil
	mu.Unlock()
	cq, at := n.cq.ID(), n.mr.Remote(4096)

	l.recv(1)
	tells("a receive", verbs.Record{Kind: verbs.RecordPosted, Name: "Recv", ID: 1, Octets: 64})
	notify(t, n.cq, verbs.NotifyNext)
	run(t, l.qp, l.aSend(2), verbs.StatusSuccess)
	tells("a Send",
		verbs.Record{Kind: verbs.RecordPosted, Name: "Send", ID: 2, Octets: 4},
		verbs.Record{Kind: verbs.RecordSent, Name: "Send", MSN: 1, Octets: 4, Last: true},
		verbs.Record{Kind: verbs.RecordNotified, CQ: cq},
		verbs.Record{Kind: verbs.RecordCompleted, CQ: cq, Name: "Send", ID: 2, Note: "Success"})
	l.expect(aSend(1, n.mr.Bytes()[:4]))
	post(t, l.qp, l.aRead(3))
	l.expect(l.asks(1))
	l.send(l.answer())
	completes(t, n.cq, l.sentAs(3, verbs.OpRead, verbs.StatusSuccess))
	tells("a Read",
		verbs.Record{Kind: verbs.RecordPosted, Name: "Read", ID: 3, Octets: 8, STag: theirs.STag, TO: theirs.TO},
		verbs.Record{Kind: verbs.RecordSent, Name: "ReadRequest", MSN: 1, Last: true},
		verbs.Record{Kind: verbs.RecordReceived, Name: "ReadResponse", Octets: 8, STag: at.STag, TO: at.TO, Last: true},
		verbs.Record{Kind: verbs.RecordPlaced, Name: "ReadResponse", Octets: 8, STag: at.STag, TO: at.TO, Last: true},
		verbs.Record{Kind: verbs.RecordCompleted, CQ: cq, Name: "Read", ID: 3, Octets: 8, Note: "Success"})
	l.sendMessage([]byte("abc"))
	completes(t, n.cq, l.got(1, 3))
	tells("a message",
		verbs.Record{Kind: verbs.RecordReceived, Name: "Send", MSN: 1, Octets: 3, Last: true},
		verbs.Record{Kind: verbs.RecordPlaced, Name: "Send", MSN: 1, Octets: 3, Last: true},
		verbs.Record{Kind: verbs.RecordCompleted, CQ: cq, Name: "Recv", ID: 1, Octets: 3, Note: "Success"})
	l.send(badSTag)
	l.terminated(0x1100, badSTag, false)
	l.closesTo(verbs.StateError)
	l.raised(verbs.EventProtSTag)
	const sent = "Terminate sent"
	tells("the end",
		verbs.Record{Kind: verbs.RecordReceived, Name: "Write", Octets: 1, STag: 0x00F00000, Last: true},
		verbs.Record{Kind: verbs.RecordState, Name: "error, LLP usable", From: verbs.StateRTS, Next: verbs.StateTerminate, Code: 0x1100, Note: sent},
		verbs.Record{Kind: verbs.RecordSent, Name: "Terminate", MSN: 1, Last: true},
		verbs.Record{Kind: verbs.RecordNotified, Name: verbs.EventProtSTag.String()},
		verbs.Record{Kind: verbs.RecordState, Name: "LLP Close complete", From: verbs.StateTerminate, Next: verbs.StateError, Code: 0x1100, Note: sent})
	l.modify(verbs.StateIdle)
	tells("the way back",
		verbs.Record{Kind: verbs.RecordState, Name: "Modify QP -> Idle", From: verbs.StateError, Next: verbs.StateIdle},
		verbs.Record{Kind: verbs.RecordVerb, Name: "Modify QP"})
}
