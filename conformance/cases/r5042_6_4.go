package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5042_6_4 is what a hostile peer does to others' resources: RFC 5042 3, 6.4, 10.2.
var r5042_6_4 = []conformance.Case{
	upperCase("3/nothing-in-common", withTester(nothingInCommon), "R5042-3-M3"),
	upperCase("6.4.3.1/who-drains-the-pool", whoDrains, "R5042-6.4.3.1-M1"),
	upperCase("6.4.3.3/read-queues-apart", readQueuesApart, "R5042-6.4.3.3-M1", "R5042-10.2-M5"),
	apiCase("6.4.3.3/read-queues-of-one-pool", readQueuesOfPool, "R5042-6.4.3.3-M1"),
	upperCase("6.4.6/overflow", withTester(overflowEnds), "R5042-6.4.6-M1", "R5042-6.4.6-M2"),
}

// neighbour is a stream with a region and receives of its own, which has to notice
// nothing of what befalls others.
type neighbour struct {
	*rig
	b     *buffer
	count int
}

func newNeighbour(t *conformance.T, u uppertester.Tester, qp uppertester.OpenArgs) *neighbour {
	n := &neighbour{rig: openIn(t, u, setup{qp: qp})}
	n.b = n.register(uppertester.RegisterArgs{PD: qp.PD, Len: 256, Access: allRights})
	return n
}

// goesOn sends, writes and reads; every completion and octet is right, and there are
// no events.
func (n *neighbour) goesOn() {
	for range 3 {
		n.count++
		data := uppertester.Pattern(uint8(n.count), 16)
		n.postRecv(verbs.Recv{ID: uint64(n.count), SGL: n.b.sgl(0, 16)})
		n.sendMessage(data)
		n.completionsOf(n.RecvCQ, verbs.Completion{ID: uint64(n.count), Op: verbs.OpRecv, Bytes: 16})
		n.b.gets(0, data)
		n.send(aWrite(n.b.tag(), n.b.at(100), data))
		n.b.gets(100, data)
		same(n.t, n.b.first, n.fetch(n.b, 0, 256), "what the neighbour's peer reads")
		n.post(verbs.Request{ID: uint64(n.count), SGL: n.b.sgl(0, 16)})
		n.expect(aSend(uint32(n.count), data))
		n.completionsOf(n.SendCQ, verbs.Completion{ID: uint64(n.count)})
	}
	n.incomplete()
	n.unharmed()
	n.b.unchanged()
}

// nothingInCommon has streams of one RNIC that the program gave nothing in common:
// what one of them brings about stays with it.
func nothingInCommon(t *conformance.T, u uppertester.Tester) {
	n := newNeighbour(t, u, uppertester.OpenArgs{PD: 1})
	n.goesOn()
	for x := range inTurn(t, "%s", []struct {
		what string
		qp   uppertester.OpenArgs
		send func(r *rig)
		code uint16
	}{
		{"bounds", uppertester.OpenArgs{}, func(r *rig) {
			b := r.register(uppertester.RegisterArgs{PD: 2, Len: 8, Access: allRights})
			r.send(aWrite(b.tag(), b.at(8), []byte("x")))
		}, 0x1101},
		{"no receive", uppertester.OpenArgs{}, func(r *rig) { r.sendMessage([]byte("x")) }, 0x1202},
		{"too many Reads", uppertester.OpenArgs{IRD: 1}, func(r *rig) {
			b := r.register(uppertester.RegisterArgs{PD: 2, Len: 4 << 20, Access: allRights})
			for range 64 {
				if r.peer.Send(aReadRequest(r.nextRead(), read{nowhere, 0, 4 << 20, b.tag(), b.at(0)})) != nil {
					break
				}
			}
		}, 0x1202},
		{"a full CQ", uppertester.OpenArgs{CQEntries: 1, RecvDepth: 64}, func(r *rig) {
			for range 8 {
				r.postRecv(verbs.Recv{})
			}
			for range 8 {
				if r.peer.Send(aSend(r.nextSend(), nil)) != nil {
					break
				}
			}
		}, 0x0207},
		{"the neighbour's STag", uppertester.OpenArgs{}, func(r *rig) {
			r.send(aWrite(n.b.tag(), n.b.at(0), []byte("x")))
		}, 0x1102},
	}) {
		x.qp.PD = 2
		r := openIn(t, u, setup{qp: x.qp})
		x.send(r)
		code := uint16(0)
		for {
			u := r.next()
			if u[1]&0x0F == 7 {
				code = uint16(u[18])<<8 | uint16(u[19])
				break
			}
		}
		require.Equalf(t, x.code, code, "the Terminate Message: %#04x", code)
		r.finishedIn(verbs.StateError)
		n.goesOn()
	}
}

// whoDrains has two queue pairs on one S-RQ, and a peer that floods it with tiny
// Sends: there is an event, once, and every completion says whose it is.
func whoDrains(t *conformance.T) {
	const depth, limit = 16, 4
	u := tester(t)
	shared := uppertester.OpenArgs{SRQ: 1, SRQDepth: depth, SRQLimit: limit}
	greedy, modest := openIn(t, u, setup{qp: shared}), openIn(t, u, setup{qp: shared})
	b := greedy.region(depth, verbs.LocalWrite)
	for i := range depth {
		var p uppertester.Posted
		require.NoError(t, u.PostRecv(uppertester.PostRecvArgs{SRQ: 1, Recvs: []verbs.Recv{{ID: uint64(i), SGL: b.sgl(i, 1)}}}, &p))
	}
	// Events come in the order in which they happened: a marker ends what came before
	// it.
	seen := 0
	happened := func(want ...verbs.EventID) {
		m := openIn(t, u, setup{})
		marker := aWrite(nowhere, 0, []byte("marker"))
		m.refuses(0x1100, marker, false)
		want = append(want, verbs.EventProtSTag)
		var e uppertester.Events
		require.NoError(t, u.Events(uppertester.EventsArgs{N: seen + len(want), Timeout: m.patience()}, &e))
		var got []verbs.EventID
		for _, x := range e.Events[seen:] {
			got = append(got, x.ID)
		}
		require.Equal(t, want, got, "the events")
		seen += len(want)
	}
	modest.sendMessage([]byte{0})
	modest.settled()
	var want []verbs.Completion
	for i := 1; i < depth; i++ {
		greedy.sendMessage([]byte{byte(i)})
		greedy.settled()
		want = append(want, verbs.Completion{ID: uint64(i), Op: verbs.OpRecv, Bytes: 1})
		switch depth - 1 - i { // receives that are left
		case limit:
			happened()
		case limit - 1:
			happened(verbs.EventSRQLimit)
		}
	}
	happened()
	greedy.completions(want...)
	modest.completions(verbs.Completion{ID: 0, Op: verbs.OpRecv, Bytes: 1})
}

// readQueuesApart has a peer fill its queue pair's IRRQ, with answers that it does
// not read, and then overfill that of another: queue pairs of the same PD and CQ have
// every place of their own.
func readQueuesApart(t *conformance.T) {
	const size = 8 << 20
	u := tester(t)
	args := uppertester.OpenArgs{IRD: 2, SendCQ: 1, RecvCQ: 1}
	holds := openIn(t, u, setup{qp: args, narrow: true})
	big := holds.region(size, verbs.LocalRead|verbs.RemoteRead)
	for i := range 2 {
		holds.send(aReadRequest(holds.nextRead(), read{nowhere + uint32(i), 0, size, big.tag(), big.at(0)}))
	}
	works := openIn(t, u, setup{qp: args, narrow: true})
	b := works.region(64, allRights)
	served := func() {
		for range 3 {
			var requests, responses [][]byte
			for i := range 2 {
				requests = append(requests, aReadRequest(works.nextRead(), read{nowhere + uint32(i), 0, 9, b.tag(), b.at(i)}))
				responses = append(responses, aReadResponse(nowhere+uint32(i), 0, b.first[i:i+9]))
			}
			works.sendAtOnce(requests...)
			works.expect(responses...)
		}
		works.unharmed()
	}
	served()
	t.Part("one too many")
	args.SendCQ, args.RecvCQ = 2, 2
	exceeds := openIn(t, u, setup{qp: args, narrow: true})
	exceeds.keepsIRD(2)
	served()
	holds.unharmed()
	t.Part("its own queue pair takes no more than its IRD either")
	more := aReadRequest(works.nextRead(), read{nowhere, 0, size, big.tag(), big.at(0)})
	works.send(more, aReadRequest(works.nextRead(), read{}))
	last := aReadRequest(works.nextRead(), read{})
	works.send(last)
	works.events(verbs.EventIRRQTooMany) // before anything is read
	works.eventuallyTerminated(0x1202, last, false)
	_ = holds.peer.Reset()
}

// readQueuesOfPool: also when IRD comes from a pool of the RNIC, what was granted to
// one queue pair is out of reach for another.
func readQueuesOfPool(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Limits: verbs.Limits{QPs: 4, SharedIRD: 4}}, QP: verbs.QPConfig{IRD: 2}})
	fill(n.mr.Bytes(), 5)
	other := n.newQP(verbs.QPConfig{IRD: 2})
	require.Equal(t, []int{2, 2}, []int{attributes(t, n.qp).IRD, attributes(t, other).IRD})
	require.ErrorIs(t, second(n.nic.CreateQP(n.withDefaults(verbs.QPConfig{IRD: 2}))), verbs.ErrInsufficientResources)
	greedy, modest := rawPeer(t, n.qp, asResponder), rawPeer(t, other, asResponder)
	const size = 8 << 20 // more than TCP takes for a peer that does not read
	large := n.register(size, allRights)
	require.NoError(t, greedy.Send(readRequest(1, large.Remote(0), size)))
	require.NoError(t, greedy.Send(readRequest(2, large.Remote(0), size)))
	serve := func(from uint32) {
		for k := range uint32(2) {
			require.NoError(t, modest.Send(readRequest(from+k, n.mr.Remote(int(k)), 9)))
		}
		for k := range 2 {
			require.Equal(t, n.mr.Bytes()[k:k+9], modest.segment(opReadResponse).payload, "what is read")
		}
	}
	serve(1)
	require.NoError(t, greedy.Send(readRequest(3, n.mr.Remote(0), 1)))
	n.events.are(verbs.Event{ID: verbs.EventIRRQTooMany, QP: n.qp.ID()}) // before anything is read
	greedy.terminatedAs(0x1202)
	serve(3)
	require.Equal(t, verbs.StateRTS, other.State())
}

// overflowEnds fills a CQ of four with eight completions, between traffic of a queue
// pair with a CQ of its own.
func overflowEnds(t *conformance.T, u uppertester.Tester) {
	n := newNeighbour(t, u, uppertester.OpenArgs{})
	n.goesOn()
	r := openIn(t, u, setup{qp: uppertester.OpenArgs{CQEntries: 4}})
	buffers := r.recv(8, 16)
	for i := range 4 {
		r.sendMessage([]byte{byte(i + 1)})
	}
	r.settled()
	n.goesOn()
	for i := 4; i < 8; i++ {
		r.sendMessage([]byte{byte(i + 1)})
	}
	n.goesOn()
	r.tornDown(0x0207, nil, false)
	r.events(verbs.EventCQRQError)
	n.goesOn()
	require.NotZero(t, r.once(2, verbs.EventCQOverflow).CQ)
	for i := range 4 {
		r.completions(verbs.Completion{ID: uint64(i + 1), Op: verbs.OpRecv, Bytes: 1})
		buffers[i].holds(0, []byte{byte(i + 1)})
	}
	r.incomplete()
	n.goesOn()
}
