package cases

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/lab/fault"
	"github.com/softrnic/softrnic/verbs"
)

// rv9_5 is the asynchronous events: verbs draft 9.5.3, figure 37.
var rv9_5 = []conformance.Case{
	apiCase("9.5.3/each-event", onHost(eachEvent),
		"RV-9.5.3-M1", "RV-9.5.3-M2", "PV-9.5.3-M1", "PV-9.5.3-M2", "PV-9.5.3-M3", "PV-9.5.3-M4", "PV-9.5.3-M5",
		"PV-9.5.3-M6", "PV-9.5.3-M9", "PV-9.5.3-M10", "PV-9.5.3-M11", "PV-9.5.3-M12", "PV-9.5.3-M13", "PV-9.5.3-M14"),
	apiCase("9.5.3/cq-overflow-again", onHost(cqOverflowAgain), "RV-8.3.3-M3", "RV-9.5.3-M2"),
	upperCase("9.5.3/markers-and-length", markersDisagree, "RV-9.5.3-M1"),
	apiCase("9.5.3/of-the-rnic", onHost(eventOfRNIC), "RV-9.5.3-M1", "RV-9.5.3-M2"),
	apiCase("9.5.3/whose", whoseEvent, "RV-9.5.3-M2"),
}

// provocation brings an event about, at a queue pair of its own. The event is the
// queue pair's; or what run returns is what is raised.
type provocation struct {
	event verbs.EventID
	qp    verbs.QPConfig
	run   func(*link) []verbs.Event
}

// saying has the peer say something.
func saying(ulpdu func(*link) []byte) func(*link) []verbs.Event {
	return func(l *link) []verbs.Event {
		l.send(ulpdu(l))
		return nil
	}
}

// reading has it ask for octets of a region.
func reading(n uint32, of func(*link) verbs.Remote) func(*link) []verbs.Event {
	return saying(func(l *link) []byte {
		at := of(l)
		return aReadRequest(1, read{nowhere, nowhereTO, n, uint32(at.STag), at.TO})
	})
}

// writing has it write octets to one.
func writing(n int, to func(*link) verbs.Remote) func(*link) []verbs.Event {
	return saying(func(l *link) []byte {
		at := to(l)
		return aWrite(uint32(at.STag), at.TO, make([]byte, n))
	})
}

// octets are what a case has of any line.
func octets(b ...byte) func(*link) []byte { return func(*link) []byte { return b } }

// Regions that a peer may not reach.
func shutRegion(l *link) verbs.Remote {
	return l.register(64, verbs.LocalRead|verbs.LocalWrite).Remote(0)
}

func foreignRegion(l *link) verbs.Remote {
	return l.region(l.newPD(), verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights}).Remote(0)
}

func lastOctet(l *link) verbs.Remote { return l.register(64, allRights).Remote(63) }

func topOfAll(l *link) verbs.Remote { return verbs.Remote{STag: l.mr.STag(), TO: ^uint64(0)} }

func noRegion(*link) verbs.Remote { return verbs.Remote{STag: 0x00F00000} }

func openRegion(l *link) verbs.Remote { return l.mr.Remote(0) }

// provocations are one for each event of a queue pair, CQ and S-RQ.
func provocations() []provocation { return append(provokedByPeer(), provokedHere()...) }

func provokedByPeer() []provocation {
	none := verbs.QPConfig{}
	ofStream := func(do func(*link)) func(*link) []verbs.Event {
		return func(l *link) []verbs.Event {
			l.settled()
			do(l)
			return nil
		}
	}
	return []provocation{
		{verbs.EventLLPCloseComplete, none, ofStream((*link).shut)},
		{verbs.EventTerminateReceived, none, saying(func(*link) []byte { return aTerminate(0x0000, nil, false) })},
		{verbs.EventLLPReset, none, ofStream((*link).reset)},
		{verbs.EventLLPLost, none, ofStream(func(l *link) {
			require.NoError(l.t, l.peer.Raw([]byte{0, 20, lastUntagged}))
			l.shut()
		})},
		{verbs.EventSegmentSize, none, saying(octets(lastTagged, opWrite, 0))},
		{verbs.EventBadCRC, none, ofStream(func(l *link) {
			f := l.peer.Frame(aWrite(0, 0, nil))
			f[len(f)-1] ^= 1
			require.NoError(l.t, l.peer.Raw(f))
		})},
		{verbs.EventBadFPDU, none, ofStream(func(l *link) { require.NoError(l.t, l.peer.Raw([]byte{0xFF, 0xFF, lastUntagged, opSend})) })},
		{verbs.EventDDPVersion, none, saying(func(*link) []byte { return tagged(0xC2, opWrite, 0, 0, nil) })},
		{verbs.EventRDMAPVersion, none, saying(func(*link) []byte { return untagged(lastUntagged, 0x83, 0, 0, 1, 0, nil) })},
		{verbs.EventUnexpectedOpcode, none, saying(func(*link) []byte { return untagged(lastUntagged, 0x4B, 0, 0, 1, 0, nil) })},
		{verbs.EventInvalidQN, none, saying(func(*link) []byte { return untagged(lastUntagged, opSend, 0, 5, 1, 0, nil) })},
		{verbs.EventReadNotEnabled, verbs.QPConfig{NoInboundRead: true}, reading(1, openRegion)},
		{verbs.EventWriteNotEnabled, verbs.QPConfig{NoInboundWrite: true}, writing(1, openRegion)},
		{verbs.EventInvalidReadRequest, none, saying(func(*link) []byte { return untagged(lastUntagged, opReadRequest, 0, 1, 1, 4, read{}.header()) })},
		{verbs.EventNoLBit, none, saying(func(*link) []byte { return untagged(moreUntagged, opReadRequest, 0, 1, 1, 0, read{}.header()) })},
		{verbs.EventProtSTag, none, writing(1, noRegion)},
		{verbs.EventProtBounds, none, writing(2, lastOctet)},
		{verbs.EventProtAccess, none, writing(1, shutRegion)},
		{verbs.EventProtPD, none, writing(1, foreignRegion)},
		{verbs.EventProtWrap, none, writing(2, topOfAll)},
		{verbs.EventRQMSNRange, none, saying(func(*link) []byte { return aSend(1, nil) })},
		{verbs.EventRQMSNGap, none, saying(func(l *link) []byte {
			l.recv(1, 2, 3)
			return aSend(2, nil)
		})},
		{verbs.EventIRRQTooMany, verbs.QPConfig{IRD: 1}, func(l *link) []verbs.Event {
			at := l.register(vast, allRights).Remote(0) // the peer does not read the answer
			l.send(aReadRequest(1, read{nowhere, nowhereTO, vast, uint32(at.STag), at.TO}))
			l.next()
			l.send(aReadRequest(2, read{}))
			return nil
		}},
		{verbs.EventIRRQMSNGap, none, saying(func(*link) []byte { return aReadRequest(2, read{}) })},
		{verbs.EventIRRQMSNRange, none, saying(func(*link) []byte { return aReadRequest(1<<30, read{}) })},
		{verbs.EventIRRQSTag, none, reading(1, noRegion)},
		{verbs.EventIRRQBounds, none, reading(2, lastOctet)},
		{verbs.EventIRRQAccess, none, reading(1, shutRegion)},
		{verbs.EventIRRQPD, none, reading(1, foreignRegion)},
		{verbs.EventIRRQWrap, none, reading(2, topOfAll)},
		{verbs.EventBadClose, none, ofStream(func(l *link) {
			l.modify(verbs.StateClosing)
			l.finished()
			l.send(aWrite(0, 0, nil))
		})},
		{verbs.EventBadLLPClose, none, ofStream(func(l *link) {
			post(l.t, l.qp, l.aRead(1))
			l.expect(l.asks(1))
			l.shut()
		})},
	}
}

func provokedHere() []provocation {
	return []provocation{
		{verbs.EventCQSQOverflow, verbs.QPConfig{}, func(l *link) []verbs.Event {
			cq := l.newCQ(1)
			own := l.link(verbs.QPConfig{SendCQ: cq})
			post(l.t, own.qp, own.aSend(1), own.aSend(2))
			return []verbs.Event{{ID: verbs.EventCQOverflow, CQ: cq.ID()}, {ID: verbs.EventCQSQOverflow, QP: own.id}}
		}},
		{verbs.EventCQRQError, verbs.QPConfig{}, func(l *link) []verbs.Event {
			cq := l.newCQ(1)
			own := l.link(verbs.QPConfig{RecvCQ: cq})
			own.recv(1, 2)
			own.sendMessage(nil)
			own.sendMessage(nil)
			return []verbs.Event{{ID: verbs.EventCQOverflow, CQ: cq.ID()}, {ID: verbs.EventCQRQError, QP: own.id}}
		}},
		{verbs.EventCQOverflow, verbs.QPConfig{}, func(l *link) []verbs.Event {
			cq := l.newCQ(1)
			l.flush(cq, 2) // a queue pair that has ended has no event of its own
			return []verbs.Event{{ID: verbs.EventCQOverflow, CQ: cq.ID()}}
		}},
		{verbs.EventSRQError, verbs.QPConfig{}, func(l *link) []verbs.Event {
			s := l.newSRQ(verbs.SRQConfig{})
			own := l.link(verbs.QPConfig{SRQ: s})
			l.receives(s, 1)
			fault.Provoke(s)
			own.sendMessage(nil)
			return []verbs.Event{{ID: verbs.EventSRQCatastrophic, SRQ: s.ID()}, {ID: verbs.EventSRQError, QP: own.id}}
		}},
		{verbs.EventLocalQPCatastrophic, verbs.QPConfig{}, func(l *link) []verbs.Event {
			fault.Provoke(l.qp)
			return nil
		}},
		{verbs.EventCQOperation, verbs.QPConfig{}, func(l *link) []verbs.Event {
			fault.Provoke(l.sq)
			return []verbs.Event{{ID: verbs.EventCQOperation, CQ: l.sq.ID()}}
		}},
		{verbs.EventSRQLimit, verbs.QPConfig{}, func(l *link) []verbs.Event {
			s := l.newSRQ(verbs.SRQConfig{Depth: 4, Limit: 2})
			own := l.link(verbs.QPConfig{SRQ: s})
			l.receives(s, 1, 2)
			own.sendMessage(nil)
			return []verbs.Event{{ID: verbs.EventSRQLimit, SRQ: s.ID()}}
		}},
		{verbs.EventRQLimit, verbs.QPConfig{}, func(l *link) []verbs.Event {
			s := l.newSRQ(verbs.SRQConfig{})
			own := l.armed(s, 0)
			l.receives(s, 1)
			own.sendMessage(nil)
			return []verbs.Event{{ID: verbs.EventRQLimit, QP: own.id}}
		}},
		{verbs.EventSRQCatastrophic, verbs.QPConfig{}, func(l *link) []verbs.Event {
			s := l.newSRQ(verbs.SRQConfig{})
			fault.Provoke(s)
			return []verbs.Event{{ID: verbs.EventSRQCatastrophic, SRQ: s.ID()}}
		}},
	}
}

// eachEvent provokes them one by one: there is the event, once, with the identifier of
// its resource and no other, and no further event.
func eachEvent(t *conformance.T, n *host) {
	tried := map[verbs.EventID]bool{verbs.EventRNICCatastrophic: true} // see of-the-rnic
	for _, p := range provocations() {
		t.Part("%v", p.event)
		tried[p.event] = true
		l := n.link(p.qp)
		want := p.run(l)
		if want == nil {
			want = []verbs.Event{{ID: p.event, QP: l.id}}
		}
		got := make([]verbs.Event, len(want))
		for i := range got {
			got[i] = n.events.next()
		}
		require.ElementsMatch(t, want, got) // the order of two is not fixed
		n.quiet()
	}
	t.Part("")
	for id := verbs.EventLLPCloseComplete; id <= verbs.EventRNICCatastrophic; id++ {
		assert.True(t, tried[id], "%v was not provoked", id)
	}
	require.Len(t, tried, 42, "rows of figure 37")
}

// markersDisagree spoils a marker of a stream without CRC: it points elsewhere than to
// where the lengths say that the FPDU begins.
func markersDisagree(t *conformance.T) {
	r := open(t, setup{
		far: uppertester.ConnectArgs{Markers: true, NoCRC: true}, near: startup{Rev: 2, Enhanced: true, IRD: 64, ORD: 64}, play: conformance.Initiator,
	})
	require.True(t, r.itsFrame.Markers, "the queue pair's side wants markers")
	b := r.region(1000, allRights)
	f := r.peer.Frame(aWrite(b.tag(), b.at(0), make([]byte, 900)))
	// The rig's first FPDU has 24 octets, its marker and the place of the CRC included;
	// the next marker is at 512. It tells 16 reserved bits, then how far back the
	// ULPDU_Length is (RFC 5044 4.3).
	const at = 512 - 24
	require.Equal(t, []byte{0, 0, at >> 8, at & 0xFF}, f[at:at+4], "the second marker")
	f[at+3] += 4
	require.NoError(t, r.peer.Raw(f))
	r.tornDown(0x2003, nil, false)
	r.events(verbs.EventBadFPDU)
}

// eventOfRNIC: it names no queue, and nothing comes behind it.
func eventOfRNIC(t *conformance.T, n *host) {
	l := n.link(verbs.QPConfig{})
	s := n.newSRQ(verbs.SRQConfig{})
	fault.Provoke(n.nic)
	n.events.are(verbs.Event{ID: verbs.EventRNICCatastrophic})
	l.terminated(0x0208, nil, false)
	l.closesTo(verbs.StateError)
	fault.Provoke(l.qp)
	fault.Provoke(s)
	fault.Provoke(l.sq)
	require.NoError(t, n.nic.Close()) // waits for handlers
	require.Empty(t, n.events.events, "events behind it")
}

// whoseEvent has several queue pairs, CQs and S-RQs of which one is concerned, each in
// turn. The identifier finds it.
func whoseEvent(t *conformance.T) {
	const each = 4
	n := newHost(t, hostConfig{})
	var lines []*link
	var cqs []*verbs.CQ
	var srqs []*verbs.SRQ
	for range each {
		lines = append(lines, n.link(verbs.QPConfig{}))
		cqs, srqs = append(cqs, n.newCQ(1)), append(srqs, n.newSRQ(verbs.SRQConfig{Depth: 4, Limit: 1}))
	}
	for i := each - 1; i >= 0; i-- {
		t.Part("number %d", i)
		lines[i].send(badSTag)
		e := n.events.next()
		require.Equal(t, verbs.Event{ID: verbs.EventProtSTag, QP: lines[i].id}, e)
		require.Same(t, lines[i].qp, n.nic.QP(e.QP))

		n.flush(cqs[i], 2)
		e = n.events.next()
		require.Equal(t, verbs.Event{ID: verbs.EventCQOverflow, CQ: cqs[i].ID()}, e)
		require.Same(t, cqs[i], n.nic.CQ(e.CQ))

		user := n.link(verbs.QPConfig{SRQ: srqs[i]})
		n.receives(srqs[i], 1)
		user.sendMessage(nil)
		e = n.events.next()
		require.Equal(t, verbs.Event{ID: verbs.EventSRQLimit, SRQ: srqs[i].ID()}, e)
		require.Same(t, srqs[i], n.nic.SRQ(e.SRQ))
		n.quiet()
	}
}

// cqOverflowAgain has queue pairs add too much to a CQ, one after the other: it is told once for all that does not fit,
// and once more when the CQ was polled and is full again.
func cqOverflowAgain(t *conformance.T, n *host) {
	cq := n.newCQ(2)
	for range counted(t, "overflow %d", 3) {
		qp := n.flush(cq, 5)
		n.events.are(verbs.Event{ID: verbs.EventCQOverflow, CQ: cq.ID()})
		more := n.flush(cq, 1)
		n.quiet()
		completes(t, cq, flushed(qp, 1, 2)...)
		empty(t, cq)
		succeed(t, qp.Destroy, more.Destroy)
	}
	for entries := range inTurn(t, "resized to %d", []int{4, 6}) { // which is room again, as a poll is
		require.NoError(t, n.flush(cq, 5).Destroy())
		n.events.are(verbs.Event{ID: verbs.EventCQOverflow, CQ: cq.ID()})
		require.NoError(t, cq.Resize(entries))
	}
	require.NoError(t, n.flush(cq, 5).Destroy())
	n.events.are(verbs.Event{ID: verbs.EventCQOverflow, CQ: cq.ID()})
	n.quiet()
}
