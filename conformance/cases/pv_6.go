package cases

import (
	"bytes"
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// pv6 is what chapter 6 of the verbs draft binds without the keyword.
var pv6 = []conformance.Case{
	apiCase("6.1.4/no-more-completions", onHost(destroyedCompletesNothing), "PV-6.1.4-M2"),
	apiCase("6.2/only-by-modify", onHost(otherVerbsLeaveState), "PV-6.2-M1"),
	upperCase("6.2.1.2/counting-begins-anew", countingBeginsAnew, "PV-6.2.1.2-M1"),
	apiCase("6.2.1.3/what-had-completed", onHost(completedStays), "PV-6.2.1.3-M1"),
	apiCase("6.3.5/invalidation-by-the-pd-of-the-qp", onHost(invalidationBesideSRQ), "PV-6.3.5-M1"),
	apiCase("6.4/placed-and-never-delivered", onHost(placedNotDelivered), "PV-6.4-M1"),
}

// destroyedCompletesNothing destroys a queue pair with work on both queues, begun and not.
// What the peer says then finds nobody, and nothing is added to either CQ.
func destroyedCompletesNothing(t *conformance.T, n *host) {
	for idle := range inTurn(t, "in Idle: %v", []bool{false, true}) {
		l := n.idleLink(verbs.QPConfig{ORD: 1})
		if !idle {
			l.join()
		}
		l.recv(1, 2, 3)
		fill(l.mr.Bytes()[:8192], 1)
		was := string(l.mr.Bytes()[:8192])
		post(t, l.qp, l.aRead(4), l.aRead(5), l.aSend(6))
		if !idle {
			l.expect(l.asks(1))
		}
		require.NoError(t, l.qp.Destroy())
		room := make([]verbs.Completion, 16)
		l.sq.Poll(room)
		l.rq.Poll(room)
		if !idle {
			for _, u := range [][]byte{l.answer(), aSend(1, []byte("late"))} {
				if l.peer.Send(u) != nil {
					break // the stream is gone already
				}
			}
			_, fpdus, err := l.peer.End()
			require.NoError(t, err)
			require.Zero(t, fpdus, "the second Read, or the Send")
		}
		n.quiet()
		l.noCompletions()
		require.Equal(t, was, string(l.mr.Bytes()[:8192]), "the memory of the receives and Reads")
	}
}

// otherVerbsLeaveState calls what is not Modify QP, in each state.
func otherVerbsLeaveState(t *conformance.T, n *host) {
	for _, s := range states {
		l := n.into(s, verbs.QPConfig{})
		posts := s == verbs.StateIdle || s == verbs.StateRTS
		for what, verb := range map[string]func() error{
			"Query QP":                func() error { return second(l.qp.Query()) },
			"Query RNIC":              func() error { return second(n.nic.Query()) },
			"Modify CQ":               func() error { return l.sq.Resize(600) },
			"notification":            func() error { return l.rq.Notify(verbs.NotifyNext) },
			"Register and Deregister": func() error { return n.register(64, allRights).Deregister() },
			"Allocate and Deallocate": func() error { return n.newMW().Deallocate() },
			"Create and Destroy QP":   func() error { return n.newQP(verbs.QPConfig{SendCQ: l.sq, RecvCQ: l.rq}).Destroy() },
			"PostSQ":                  func() error { return second(l.qp.PostSend(l.aSend(1))) },
			"PostRQ":                  func() error { return second(l.qp.PostRecv(verbs.Recv{ID: 2})) },
		} {
			t.Part("%s in %v", what, s)
			err := verb()
			if (what == "PostSQ" || what == "PostRQ") && !posts {
				require.ErrorIs(t, err, verbs.ErrInvalidState)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, s, l.qp.State())
		}
		if s == verbs.StateRTS {
			l.expect(aSend(1, l.mr.Bytes()[:4]))
			l.settled()
			require.Equal(t, s, l.qp.State(), "with its posts done")
		}
	}
	t.Part("")
	n.quiet()
}

// countingBeginsAnew takes one queue pair over several streams with markers both ways, each
// of which ends at an odd place: on the next one MSNs of all queues begin with 1, and the
// markers are where the first octet of that stream says.
func countingBeginsAnew(t *conformance.T) {
	s := setup{
		far:  uppertester.ConnectArgs{Markers: true},
		near: startup{CRC: true, Markers: true, Rev: 2, Enhanced: true, IRD: 64, ORD: 64}, play: conformance.Initiator,
	}
	r := open(t, s)
	for round := range 4 {
		t.Part("stream %d", round+1)
		if round > 0 {
			require.NoError(t, r.modify(uppertester.ModifyArgs{Next: verbs.StateError}))
			r.ended(verbs.StateError)
			require.NoError(t, r.modify(uppertester.ModifyArgs{Next: verbs.StateIdle}))
			r.connect(s)
			r.start(s)
		}
		size := 700 + 52*round // ends 512 octets off and on
		b, bufs := r.region(2*size, allRights), r.recv(1, size)
		r.sendMessage(b.first[:size]) // MSN 1
		r.completions(verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: uint32(size)})
		bufs[0].holds(0, b.first[:size])
		r.settled() // an RDMA Read with MSN 1
		r.post(verbs.Request{ID: 2, SGL: b.sgl(0, size)}, b.aReadOf(3, 0, 8))
		r.expect(aSend(1, b.first[:size]), b.asksFor(1, 0, 8))
		r.send(aReadResponse(b.tag(), b.at(0), []byte("response")))
		r.completions(verbs.Completion{ID: 2}, verbs.Completion{ID: 3, Op: verbs.OpRead})
	}
	t.Part("")
}

// completedStays has completions of a stream that has ended on the CQs when an Idle queue
// pair goes to Error: what is flushed comes behind them, and they say what they said.
func completedStays(t *conformance.T, n *host) {
	l := n.link(verbs.QPConfig{})
	l.recv(1, 2)
	l.sendMessage([]byte("abc"))
	l.settled()
	l.adds(3)
	post(t, l.qp, verbs.Request{ID: 4, SGL: []verbs.SGE{{STag: 0x00F00000, Length: 1}}})
	l.terminated(0x0000, nil, false)
	l.closesTo(verbs.StateError)
	for id := uint64(5); id < 9; id += 2 {
		l.modify(verbs.StateIdle)
		postRecv(t, l.qp, verbs.Recv{ID: id})
		post(t, l.qp, l.aSend(id+1))
		l.modify(verbs.StateError)
	}
	completes(t, l.rq, append([]verbs.Completion{l.got(1, 3)}, l.recvAs(verbs.StatusFlushed, 2, 5, 7)...)...)
	completes(t, l.sq, l.sentAs(3, verbs.OpSend, verbs.StatusSuccess), l.sentAs(4, verbs.OpSend, verbs.StatusInvalidSTag),
		l.sentAs(6, verbs.OpSend, verbs.StatusFlushed), l.sentAs(8, verbs.OpSend, verbs.StatusFlushed))
	empty(t, l.rq)
	empty(t, l.sq)
}

// invalidationBesideSRQ has an S-RQ in one domain and its queue pair in another: receives
// are the one's, and STags are invalidated as the other's.
func invalidationBesideSRQ(t *conformance.T, n *host) {
	other := n.newPD()
	s := n.newSRQ(verbs.SRQConfig{PD: other})
	in := func(pd *verbs.PD) *verbs.MR {
		return n.region(pd, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights})
	}
	room := in(other)
	for control := range inTurn(t, "control %#x", []byte{opSendInv, opSendSEInv}) {
		l, own, alien := n.link(verbs.QPConfig{SRQ: s}), in(n.pd), in(other)
		postRecv(t, s, verbs.Recv{ID: 1, SGL: room.SGL(0, 8)}, verbs.Recv{ID: 2, SGL: room.SGL(0, 8)})
		l.send(untagged(lastUntagged, control, uint32(own.STag()), 0, 1, 0, []byte("abc")))
		done := l.got(1, 3)
		done.HasInvalidated, done.Invalidated = true, own.STag()
		completes(t, l.rq, done)
		require.False(t, queried(t, own).Valid, "of the queue pair's domain")
		bad := untagged(lastUntagged, control, uint32(alien.STag()), 0, 2, 0, []byte("abc"))
		l.send(bad)
		completes(t, l.rq, l.recvAs(verbs.StatusInvalidateSTag, 2)...)
		l.terminated(0x0109, bad, false)
		require.True(t, queried(t, alien).Valid, "of the S-RQ's domain")
	}
	t.Part("by Invalidate Local STag")
	l, own, alien := n.link(verbs.QPConfig{SRQ: s}), in(n.pd), in(other)
	run(t, l.qp, verbs.Request{ID: 3, Op: verbs.OpInvalidate, Invalidate: own.STag()}, verbs.StatusSuccess)
	run(t, l.qp, verbs.Request{ID: 4, Op: verbs.OpInvalidate, Invalidate: alien.STag()}, verbs.StatusInvalidPD)
	require.Equal(t, []bool{false, true}, []bool{queried(t, own).Valid, queried(t, alien).Valid})
	t.Part("")
}

// placedNotDelivered has half of a Send placed when the stream stops. The other half comes,
// and a good Send behind it: neither is looked at.
func placedNotDelivered(t *conformance.T, n *host) {
	for _, c := range named(t, "%s", map[string]struct {
		stop func(*link)
		sent []byte
	}{
		"a fault":   {func(l *link) { l.send(badSTag) }, aTerminate(0x1100, badSTag, false)},
		"Modify QP": {func(l *link) { l.modify(verbs.StateTerminate) }, aTerminate(0x0000, nil, false)},
	}) {
		l := n.link(verbs.QPConfig{})
		clear(l.mr.Bytes()[:256])
		l.recv(1, 2)
		l.send(untagged(moreUntagged, opSend, 0, 0, 1, 0, []byte("half")))
		l.settled()
		require.Equal(t, "half", string(l.mr.Bytes()[64:68]), "placed")
		empty(t, l.rq)
		c.stop(l)
		l.send(untagged(lastUntagged, opSend, 0, 0, 1, 4, []byte("rest")), aSend(2, []byte("next")))
		l.expect(c.sent)
		l.finished()
		l.closesTo(verbs.StateError)
		completes(t, l.rq, l.recvAs(verbs.StatusFlushed, 1, 2)...)
		empty(t, l.rq)
		require.Equal(t, make([]byte, 4), l.mr.Bytes()[68:72], "the rest")
		require.Equal(t, make([]byte, 4), l.mr.Bytes()[128:132], "the next")
	}
}

// pv7 is what chapter 7 of the verbs draft binds without the keyword.
var pv7 = []conformance.Case{
	apiCase("7.2/index-and-key", onHost(indexAndKey), "PV-7.2-M1"),
	apiCase("7.5.1/reads-by-remote-rights", onQuietHost(readsByRemoteRights), "PV-7.5.1-M1"),
	apiCase("7.8/shared-behind-the-data", onHost(sharedBehindData), "PV-7.8-M1"),
	apiCase("7.10.2/overlapping-windows", onQuietHost(overlappingWindows), "PV-7.10.2-M3"),
	apiCase("7.10.6.2/rights-of-the-qp-for-no-octets", onHost(windowQPRightsOfNothing), "PV-7.10.6.2-M2"),
}

// indexAndKey registers one STag with key after key, and looks at the four octets that the
// peer sees of it: the first three stay, the last is the key.
func indexAndKey(t *conformance.T, n *host) {
	l, p, mr := n.link(privileged), n.pages(1, 4096), n.allocated()
	for i := 0; i < 64 && mr.STag()>>24 == 0; i++ { // each of the three octets is to be seen
		mr = n.allocated()
	}
	index := mr.STag().Index()
	require.Less(t, index, uint32(1)<<24)
	first := []byte{byte(index >> 16), byte(index >> 8), byte(index)}
	for i, key := range []uint8{0, 1, 0x5A, 0xFF} {
		t.Part("key %#x", key)
		st := mr.WithKey(key)
		require.Equal(t, binary.BigEndian.Uint32(append(bytes.Clone(first), key)), uint32(st))
		r := fastRegister(st, p.List(0, 64), 4096, allRights)
		post(t, l.qp, r, verbs.Request{ID: 1, Op: verbs.OpRead, Local: verbs.FastRegisterBuffer(r.FastRegister).SGE(0, 8), Remote: theirs})
		u := bytes.Clone(l.next())
		require.Equal(t, aReadRequest(uint32(i+1), read{})[:18], u[:18])
		require.Equal(t, append(bytes.Clone(first), key), u[18:22], "the sink's STag, in the RDMA Read Request")
		l.send(aReadResponse(binary.BigEndian.Uint32(u[18:]), 4096, []byte("response")))
		completes(t, l.sq, l.sentAs(0x7A07, verbs.OpFastRegister, verbs.StatusSuccess), l.sentAs(1, verbs.OpRead, verbs.StatusSuccess))
		run(t, l.qp, verbs.Request{ID: 2, Op: verbs.OpInvalidate, Invalidate: st}, verbs.StatusSuccess)
	}
	t.Part("")
}

// readsByRemoteRights reads, both ways, where the local rights say one thing and the remote
// ones another: the remote ones count, a window's where there is one.
func readsByRemoteRights(n *host) {
	t, data := n.t, []byte("response")
	const local = verbs.LocalRead | verbs.LocalWrite
	refused := noRight.answered
	for _, c := range []struct {
		region, window verbs.Access // no window: 0
		sink, source   bool
	}{
		{local, 0, false, false},
		{verbs.LocalWrite, 0, false, false},
		{verbs.LocalWrite | verbs.RemoteWrite, 0, true, false},
		{verbs.LocalRead | verbs.RemoteRead, 0, false, true},
		{local, verbs.RemoteWrite, true, false},
		{verbs.LocalWrite, verbs.RemoteWrite, true, false},
		{verbs.LocalRead, verbs.RemoteRead, false, true},
		{allRights, verbs.RemoteRead, false, true},
		{allRights, verbs.RemoteWrite, true, false},
	} {
		for _, sink := range []bool{true, false} {
			t.Logf("region %v, window %v, as sink: %v", c.region, c.window, sink)
			s, mr := n.probe(verbs.QPConfig{}), n.register(64, c.region|verbs.BindWindow)
			b, mw := mr.Buffer(), n.newMW()
			if c.window != 0 {
				bind := s.binds(mw.BindRequest(mr, 0, 64, c.window, 1))
				b = verbs.BindBuffer(bind)
			}
			was := bytes.Clone(mr.Bytes())
			switch {
			case sink && c.sink:
				s.sink(b.SGE(0, 8), data, verbs.StatusSuccess, allowed)
				copy(was, data)
			case sink:
				s.sink(b.SGE(0, 8), data, verbs.StatusAccess, refused)
			case c.source:
				require.Equal(t, was[:8], s.read(b.Remote(0), 8, allowed))
			default:
				s.read(b.Remote(0), 8, noRight.read)
			}
			require.Equal(t, was, mr.Bytes(), "the region")
			require.NoError(t, mw.Deallocate())
			s.disconnect()
		}
	}
}

// sharedBehindData names a Shared region as what is to be invalidated by a message that
// carries data: that is there, then comes the error, and the stream ends.
func sharedBehindData(t *conformance.T, n *host) {
	share := func() *verbs.MR {
		mr := n.register(64, allRights)
		require.NoError(t, second(mr.RegisterShared(nil, verbs.SharedConfig{Access: allRights})))
		return mr
	}
	t.Part("RDMA Read with Invalidate")
	l, mr := n.link(verbs.QPConfig{}), share()
	at := mr.Remote(0)
	post(t, l.qp, verbs.Request{ID: 1, Op: verbs.OpReadInvalidate, Local: mr.SGE(0, 8), Remote: theirs})
	l.expect(aReadRequest(1, read{uint32(at.STag), at.TO, 8, uint32(theirs.STag), theirs.TO}))
	l.send(aReadResponse(uint32(at.STag), at.TO, []byte("response")))
	completes(t, l.sq, l.sentAs(1, verbs.OpReadInvalidate, verbs.StatusInvalidSTag))
	require.Equal(t, "response", string(mr.Bytes()[:8]))
	l.terminated(0x0000, nil, false)
	require.True(t, queried(t, mr).Valid)

	t.Part("Invalidate Local STag")
	l = n.link(verbs.QPConfig{})
	run(t, l.qp, verbs.Request{ID: 2, Op: verbs.OpInvalidate, Invalidate: mr.STag()}, verbs.StatusInvalidSTag)
	l.terminated(0x0000, nil, false)
	require.True(t, queried(t, mr).Valid)

	for control := range inTurn(t, "control %#x", []byte{opSendInv, opSendSEInv}) {
		l, mr := n.link(verbs.QPConfig{}), share()
		clear(l.mr.Bytes()[64:128])
		l.recv(1)
		u := untagged(lastUntagged, control, uint32(mr.STag()), 0, 1, 0, []byte("payload"))
		l.send(u)
		completes(t, l.rq, l.recvAs(verbs.StatusInvalidSTag, 1)...)
		require.Equal(t, "payload", string(l.mr.Bytes()[64:71]))
		l.terminated(0x0109, u, false)
		require.True(t, queried(t, mr).Valid)
	}
}

// overlappingWindows binds windows to one region that lie in each other, touch, and are
// apart, with different rights, on two queue pairs: each gives what it was bound with.
func overlappingWindows(n *host) {
	t, mem := n.t, n.mr.Bytes()
	places := []struct {
		off, k int
		access verbs.Access
	}{
		{0, 100, verbs.RemoteRead}, {50, 100, verbs.RemoteWrite}, {0, 100, remoteRights}, {60, 10, verbs.RemoteRead},
		{150, 50, verbs.RemoteWrite}, {400, 50, remoteRights},
	}
	for last := range places { // whose refusal ends the stream
		seats := []*probe{n.probe(verbs.QPConfig{}), n.probe(verbs.QPConfig{})}
		var windows []*verbs.MW
		var buffers []verbs.TaggedBuffer
		for i, p := range places {
			mw := n.newMW()
			b := seats[i%2].binds(mw.BindRequest(n.mr, p.off, p.k, p.access, uint8(i)))
			windows, buffers = append(windows, mw), append(buffers, verbs.BindBuffer(b))
		}
		require.Equal(t, len(places), queried(t, n.mr).Windows)
		for i, p := range places {
			t.Logf("octets %d to %d, %v", p.off, p.off+p.k-1, p.access)
			was := bytes.Clone(fill(mem[:512], i))
			if p.access&verbs.RemoteRead != 0 {
				require.Equal(t, mem[p.off:p.off+p.k], seats[i%2].read(buffers[i].Remote(0), p.k, allowed))
			}
			if p.access&verbs.RemoteWrite != 0 {
				sent := bytes.Repeat([]byte{0xEE}, p.k)
				seats[i%2].write(buffers[i].Remote(0), sent, allowed)
				copy(was[p.off:], sent)
			}
			require.Equal(t, was, mem[:512], "the region")
		}
		s, b := seats[last%2], buffers[last]
		if places[last].access == verbs.RemoteRead {
			s.write(b.Remote(0), []byte{1}, noRight.write)
		}
		if places[last].access == verbs.RemoteWrite {
			s.read(b.Remote(0), 1, noRight.read)
		}
		for _, mw := range windows {
			require.NoError(t, mw.Deallocate())
		}
		for _, s := range seats {
			s.disconnect()
		}
	}
}

// windowQPRightsOfNothing has a peer read no octets through a window, of a queue pair that
// answers no Reads: the window is not looked at, the queue pair's right is.
func windowQPRightsOfNothing(t *conformance.T, n *host) {
	for refused := range inTurn(t, "refused: %v", []bool{false, true}) {
		l, mw := n.link(verbs.QPConfig{NoInboundRead: refused}), n.newMW()
		b := mw.BindRequest(n.mr, 0, 64, remoteRights, 1)
		run(t, l.qp, binds(b), verbs.StatusSuccess)
		u := aReadRequest(1, read{nowhere, nowhereTO, 0, uint32(b.Window), b.VA})
		l.send(u)
		if !refused {
			l.expect(aReadResponse(nowhere, nowhereTO, nil))
			continue
		}
		l.terminated(0x1201, u, false)
		l.closesWith(verbs.StateError, verbs.EventReadNotEnabled)
	}
}
