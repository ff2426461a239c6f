package cases

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// guardsVerbs are the same of verbs, and of what they come upon.
var guardsVerbs = []conformance.Case{
	apiCase("6.1.3/ird-below-what-waits", onHost(irdBelowWhatWaits), "RV-6.1.3-M10", "RV-6.1.3-M11"),
	apiCase("6.1.3/start-below-what-waits", onHost(startBelowWhatWaits), "RV-6.1.3-M10", "RV-6.1.3-M14"),
	apiCase("6.1.3/rights-of-the-peer", onHost(rightsOfThePeer), "RV-6.1.3-M12"),
	apiCase("6.2.2.2/closes-behind-an-answer", onHost(closesBehindAnAnswer), "RV-6.2.2.2-M7"),
	apiCase("6.2.2.2/closes-behind-a-burst", onHost(closesBehindABurst), "RV-6.2.2.2-M5"),
	apiCase("6.4.3.1/begins-behind-a-look", onHost(beginsBehindALook), "R5042-6.4.3.1-M1"),
	apiCase("6.4.3.1/never-stalls", onHost(neverStalls), "R5042-6.4.3.1-M1"),
	apiCase("6.5/ord-raised-beside-placed-writes", onHost(ordRaisedBesidePlacedWrites), "RV-6.5-M4"),
}

// irdBelowWhatWaits lowers IRD while Reads of the peer's wait for their answers: to as many as those, and not to fewer.
func irdBelowWhatWaits(t *conformance.T, n *host) {
	const waits = 3
	l, source := n.link(verbs.QPConfig{}), n.register(vast, allRights)
	octets := [waits]int{vast, 8, 9} // the first answer fills the sockets
	for _, k := range octets {
		l.fetches(uint32(source.STag()), source.Base(), k)
	}
	eventually(t, func() bool { return l.qp.Stats().InReads.Now == waits }, "the Reads wait for their answers")
	for ird := range waits {
		refuses(t, "fewer than wait", verbs.ErrShrinkFailed, func() error {
			return l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, IRD: ptr(ird), SendDepth: ptr(512), RecvDepth: ptr(512)})
		}, l.shown)
	}
	require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, IRD: ptr(waits)}))
	require.Equal(t, waits, attributes(t, l.qp).IRD)
	for _, k := range octets {
		require.Len(t, l.taggedMessage(opReadResponse, nowhere, nowhereTO).payload, k, "the answer")
	}
	l.settled()
}

// startBelowWhatWaits goes to RTS with queues that are too small for what is posted: nothing has changed, and the stream
// is as good as before.
func startBelowWhatWaits(t *conformance.T, n *host) {
	l := n.idleLink(verbs.QPConfig{SendDepth: 8, RecvDepth: 8})
	for i := range uint64(5) {
		post(t, l.qp, l.aSend(i))
		l.recv(i + 1)
	}
	s, peer := aStream(t)
	for what, m := range named(t, "%s", map[string]verbs.ModifyQP{
		"sends": {SendDepth: ptr(4), RecvDepth: ptr(64)}, "receives": {SendDepth: ptr(64), RecvDepth: ptr(4)},
	}) {
		m.Next, m.Stream = verbs.StateRTS, s
		refuses(t, what, verbs.ErrShrinkFailed, func() error { return l.qp.Modify(m) }, l.shown)
	}
	begin(t, l.qp, *s)
	l.peer = peer
	for i := range uint64(5) {
		l.expect(aSend(uint32(i+1), l.mr.Bytes()[:4]))
		l.says(i + 1)
	}
}

// rightsOfThePeer takes a right from the peer while the stream runs, and gives it back.
func rightsOfThePeer(t *conformance.T, n *host) {
	at := n.mr.Remote(64)
	for what, c := range named(t, "%s", map[string]struct {
		set  func(*verbs.ModifyQP, *bool)
		is   func(verbs.QPAttributes) bool
		asks func(*link) []byte
	}{
		"Reads": {
			func(m *verbs.ModifyQP, v *bool) { m.NoInboundRead = v }, func(a verbs.QPAttributes) bool { return a.NoInboundRead },
			func(l *link) []byte { return l.readOf(uint32(at.STag), at.TO, 8) },
		},
		"Writes": {
			func(m *verbs.ModifyQP, v *bool) { m.NoInboundWrite = v }, func(a verbs.QPAttributes) bool { return a.NoInboundWrite },
			func(*link) []byte { return aWrite(uint32(at.STag), at.TO, []byte{1}) },
		},
	}) {
		l := n.link(verbs.QPConfig{})
		change := func(v bool) {
			m := verbs.ModifyQP{Next: verbs.StateRTS}
			c.set(&m, &v)
			require.NoError(t, l.qp.Modify(m))
			require.Equal(t, v, c.is(attributes(t, l.qp)), "Query, of %s", what)
		}
		change(true)
		change(false)
		l.send(c.asks(l))
		if what == "Reads" {
			require.Len(t, l.taggedMessage(opReadResponse, nowhere, nowhereTO).payload, 8)
		}
		l.settled()
		change(true)
		l.send(c.asks(l))
		reaches(t, l.qp, verbs.StateTerminate)
		l.rest()
		l.closesTo(verbs.StateError)
	}
}

// closesBehindAnAnswer goes to Closing while the last of an answer to the peer may still wait for room in the sockets.
// Where the close is a good one the peer has all of the answer.
func closesBehindAnAnswer(t *conformance.T, n *host) {
	const step, most = 24 << 10, 24 // a step is less than a batch
	source := n.register(step*most, allRights)
	good := 0
	for i := range counted(t, "answer %d", most) {
		l := n.idleLink(verbs.QPConfig{})
		l.plain(5000)
		size := step * (i + 1)
		l.fetches(uint32(source.STag()), source.Base(), size)
		l.next()
		l.modify(verbs.StateClosing)
		r := l.rest()
		_ = l.CloseWrite() // it may have been reset
		receive(t, l.qp.Done(), "the stream has not ended")
		if l.qp.State() == verbs.StateIdle {
			good++
			require.Greater(t, r.octets+5000, size, "octets of the answer, of which the peer has one segment more")
		}
		require.NoError(t, l.qp.Destroy())
	}
	require.NotZero(t, good, "good closes")
}

// closesBehindABurst posts a burst, part of which is held back for what may follow, and goes to Closing at once: it is
// sent, and the close is a good one.
func closesBehindABurst(t *conformance.T, n *host) {
	const burst = 24
	for what, closes := range named(t, "%s", map[string]func(*verbs.QP) error{
		"Modify QP":         func(qp *verbs.QP) error { return qp.Modify(verbs.ModifyQP{Next: verbs.StateClosing}) },
		"of the LLP stream": func(qp *verbs.QP) error { return qp.LLPStream().Close() },
	}) {
		for range 8 {
			l := n.link(verbs.QPConfig{})
			req, failed := verbs.Request{Flags: verbs.Unsignaled}, error(nil)
			for range burst { // with nothing in between: or it is no burst
				if _, err := l.qp.PostSend(req); err != nil {
					failed = err
				}
			}
			err := closes(l.qp)
			require.NoError(t, failed, "PostSQ")
			require.NoError(t, err, what)
			require.Equal(t, burst, l.rest().messages, "messages ahead of the close by %s", what)
			l.closesTo(verbs.StateIdle)
			l.raised(verbs.EventLLPCloseComplete)
		}
	}
}

// passes lets a time pass, by a clock.
func passes(t *conformance.T, d time.Duration) {
	clock := time.NewTimer(d)
	defer clock.Stop()
	receive(t, clock.C, "the clock stands still")
}

// beginsBehindALook has the watchdog of an S-RQ find nothing to watch, and then a message begin and stall: its stream ends.
func beginsBehindALook(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{StallTimeout: shortly})
	keeps, other := n.link(verbs.QPConfig{SRQ: s}), n.link(verbs.QPConfig{SRQ: s})
	n.receives(s, 1, 2, 3, 4)
	for i := range uint64(2) {
		passes(t, shortly)
		other.says(i + 1)
	}
	keeps.send(untagged(moreUntagged, opSend, 0, 0, keeps.nextSend(), 0, []byte{1}))
	keeps.terminated(0x0207, nil, false)
	keeps.closesTo(verbs.StateError)
	keeps.raised(verbs.EventSRQStalled)
	completes(t, keeps.rq, keeps.recvAs(verbs.StatusFlushed, 3)...)
	other.says(4)
}

// neverStalls has an S-RQ without a StallTimeout: a message may stand still for ever, and nobody waits for what it keeps.
func neverStalls(t *conformance.T, n *host) {
	s := n.newSRQ(verbs.SRQConfig{StallTimeout: -1})
	n.receives(s, 1)
	keeps, other := n.link(verbs.QPConfig{SRQ: s}), n.link(verbs.QPConfig{SRQ: s})
	msn := keeps.nextSend()
	keeps.send(untagged(moreUntagged, opSend, 0, 0, msn, 0, []byte{1}))
	eventually(t, func() bool { return s.Stats().Taken == 1 }, "the message has the receive")
	other.sendsTooMuch()
	keeps.send(untagged(lastUntagged, opSend, 0, 0, msn, 1, []byte{2}))
	completes(t, keeps.rq, keeps.got(1, 2))
	succeed(t, keeps.qp.Destroy, other.qp.Destroy, s.Destroy)
}

// ordRaisedBesidePlacedWrites raises ORD where one more Read is for Writes: there is room for as many as ORD, and that one.
func ordRaisedBesidePlacedWrites(t *conformance.T, n *host) {
	const ord = 4
	l := n.idleLink(verbs.QPConfig{PlacedWrites: true, ORD: 1})
	l.enhanced(4, ord+1)
	require.NoError(t, l.qp.Modify(verbs.ModifyQP{Next: verbs.StateRTS, ORD: ptr(ord)}))
	post(t, l.qp, verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: n.mr.SGL(0, 4), Remote: theirs})
	l.gets1(opWrite)
	answers := [][]byte{l.asksFor(1, 0)}
	for i := range uint32(ord + 1) { // the last one waits
		post(t, l.qp, l.aRead(uint64(2+i)))
		if i < ord {
			answers = append(answers, l.asksFor(2+i, 8))
		}
	}
	l.send(answers...)
	l.send(l.asksFor(ord+2, 8))
	want := []verbs.Completion{l.sentAs(1, verbs.OpWrite, verbs.StatusSuccess)}
	for i := range uint64(ord + 1) {
		want = append(want, l.sentAs(2+i, verbs.OpRead, verbs.StatusSuccess))
	}
	completes(t, l.sq, want...)
}
