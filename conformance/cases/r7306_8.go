package cases

import (
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r7306_8Atomic is what is wrong with Atomics: RFC 7306 8.
var r7306_8Atomic = []conformance.Case{
	upperCase("8.2/bad-atomic-requests", badAtomicRequests, "R7306-8.1-M1", "R7306-8.2-M1", "R7306-8.2-M2", "R7306-8.2-M4", "R7306-8.2-M5"),
	upperCase("8.2/misaligned-atomics", misalignedAtomics,
		"R7306-5.1.1-M1", "R7306-5.1.1-M2", "R7306-5.1.1-M3", "R7306-5.1.1-M4", "R7306-5.1.1-M5",
		"R7306-5.1.2-M2", "R7306-5.1.2-M3", "R7306-5.1.2-M4", "R7306-5.1.2-M5", "R7306-5.1.2-M6",
		"R7306-5.2.1-M2", "R7306-8.1-M1", "R7306-8.2-M5", "R7306-8.2-M6", "R7306-8.2-M7"),
	upperCase("5.2.1/unknown-operations", unknownAtomics, "R7306-5.2.1-M8", "R7306-8.2-M5"),
	upperCase("8.2/undefined-opcodes", undefinedOpcodes, "R7306-8.2-M3"),
	upperCase("8.2/bad-atomic-responses", badAtomicResponses, "R7306-8.1-M1", "R7306-8.2-M1", "R7306-8.2-M2", "R7306-8.2-M4"),
	upperCase("8.1/errors-in-making-atomics", errorsMakingAtomics, "R7306-8.1-M1"),
	upperCase("8.2/atomics-not-offered", atomicsNotOffered, "R7306-5-M2", "R7306-8.2-M3"),
}

// Of an Atomic Request no header but DDP's is repeated (RFC 7306 8.1).
var (
	atomicSTag   = peerFault{event: verbs.EventIRRQSTag, code: 0x0100}
	atomicBounds = peerFault{event: verbs.EventIRRQBounds, code: 0x0101}
	atomicRight  = peerFault{event: verbs.EventIRRQAccess, code: 0x0102}
	atomicPD     = peerFault{event: verbs.EventIRRQPD, code: 0x0103}
	atomicWrap   = peerFault{event: verbs.EventIRRQWrap, code: 0x0104}
)

// invalidAtomic is a request that is not as it has to be.
func invalidAtomic(code uint16) peerFault {
	return peerFault{event: verbs.EventInvalidAtomic, code: code}
}

// aBadAtomic is a FetchAdd that would be done but for what spoil does to it.
func aBadAtomic(what string, f peerFault, spoil func(*faultRig, *atomicOp)) segmentFault {
	return segmentFault{what, f, func(v *faultRig) []byte {
		op := v.region.fetchAdd(8, 1, 1, 0)
		spoil(v, &op)
		return anAtomicRequest(1, op)
	}}
}

// aBadSegment is a good FetchAdd in a segment that is not.
func aBadSegment(what string, f peerFault, spoil func([]byte) []byte) segmentFault {
	return segmentFault{what, f, func(v *faultRig) []byte {
		return spoil(anAtomicRequest(1, v.region.fetchAdd(8, 1, 1, 0)))
	}}
}

// badAtomicRequests: each is refused, as its DDP segment, its RDMAP header or the memory
// that it names has it, and nothing is changed.
func badAtomicRequests(t *conformance.T) {
	in := func(a uppertester.RegisterArgs) func(*faultRig, *atomicOp) {
		return func(v *faultRig, op *atomicOp) {
			if a.Len = 64; a.QP != 0 {
				a.QP = openQP(v.t, v.up, uppertester.OpenArgs{}).QP
			}
			b := v.register(a)
			op.stag, op.to = b.tag(), b.at(8)
		}
	}
	short := peerFault{event: verbs.EventInvalidAtomic, code: 0x1000, echo: echoNothing}
	rejectsEach(t, extended(setup{}),
		aBadSegment("51 octets", short, func(u []byte) []byte { return u[:18+51] }),
		aBadSegment("no header", short, func(u []byte) []byte { return u[:18] }),
		aBadSegment("53 octets", invalidAtomic(0x1205), func(u []byte) []byte { return append(u, 0) }),
		aBadSegment("an MO", invalidAtomic(0x1204), with(atMO, 52)),
		aBadSegment("no L", noLBit, with(0, moreUntagged)),
		aBadSegment("queue 0", badQN, with(atQN, 0)),
		aBadSegment("queue 3", badQN, with(atQN, 3)),
		aBadSegment("MSN 2 first", readMSNGap, with(atMSN, 2)),
		aBadSegment("MSN 0", readMSN, with(atMSN, 0)),
		aBadSegment("a tagged segment", badOpcode, with(0, lastTagged)),
		aBadSegment("DDP version 2", badDDP, with(0, 0x42)),
		aBadSegment("DDP version 0", badDDP, with(0, 0x40)),
		aBadSegment("RDMAP version 0", badRDMAP, with(1, 0x0A)),
		aBadSegment("RDMAP version 2", badRDMAP, with(1, 0x8A)),

		aBadAtomic("STag zero", atomicSTag, func(_ *faultRig, op *atomicOp) { op.stag = 0 }),
		aBadAtomic("another key", atomicSTag, func(_ *faultRig, op *atomicOp) { op.stag ^= 1 }),
		aBadAtomic("a region that is gone", atomicSTag, func(v *faultRig, op *atomicOp) {
			b := v.rig.region(64, atomicRights)
			op.stag, op.to = b.tag(), b.at(8)
			b.deregister()
		}),
		aBadAtomic("below the region", atomicBounds, func(v *faultRig, op *atomicOp) { op.to = v.region.at(-8) }),
		aBadAtomic("beyond the region", atomicBounds, func(v *faultRig, op *atomicOp) { op.to = v.region.at(256) }),
		aBadAtomic("half beyond the region", atomicBounds, func(v *faultRig, op *atomicOp) { op.to = v.region.at(252) }),
		aBadAtomic("a TO that wraps", atomicWrap, func(_ *faultRig, op *atomicOp) { op.to = 0xFFFFFFFFFFFFFFFC }),
		aBadAtomic("memory to read and write", atomicRight, in(uppertester.RegisterArgs{Access: allRights})),
		aBadAtomic("memory to read", atomicRight, in(uppertester.RegisterArgs{Access: verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead})),
		aBadAtomic("memory of another PD", atomicPD, in(uppertester.RegisterArgs{Access: atomicRights, PD: 77})),
		aBadAtomic("memory of another queue pair", atomicPD, in(uppertester.RegisterArgs{Access: atomicRights, QP: 1})),
	)
	rejectsEach(t, extended(setup{qp: uppertester.OpenArgs{NoInboundAtomic: true}}),
		aBadSegment("where none is allowed", peerFault{event: verbs.EventAtomicNotEnabled, code: 0x1201}, with(0, lastUntagged)))
}

// misalignedAtomics: at an address that is not a multiple of eight nothing is done, though
// the Tagged Offset may be one, and the peer is told.
func misalignedAtomics(t *conformance.T) {
	misaligned := func(what string, spoil func(*faultRig, *atomicOp)) {
		rejectsEach(t, extended(setup{}), aBadAtomic(what, invalidAtomic(0x0207), spoil))
	}
	for _, off := range upTo(1, 7) {
		misaligned("FetchAdd", func(_ *faultRig, op *atomicOp) { op.to += off })
		misaligned("CmpSwap", func(v *faultRig, op *atomicOp) {
			*op = v.region.compareSwap(8, 2, 0x5555555555555555, ^uint64(0), 0, 0)
			op.to += off
		})
	}
	misaligned("a TO that is a multiple of eight", func(v *faultRig, op *atomicOp) {
		op.stag = v.register(uppertester.RegisterArgs{Len: 64, Access: atomicRights, VA: 0x1003}).tag()
		op.to = 0x1008
	})
}

// unknownAtomics: the operations that the table does not have.
func unknownAtomics(t *conformance.T) {
	for op := range uint32(16) {
		if op != atomicFetchAdd && op != atomicCmpSwap {
			rejectsEach(t, extended(setup{}), aBadAtomic("an operation that is none", invalidAtomic(0x0206),
				func(_ *faultRig, a *atomicOp) { a.op = op }))
		}
	}
}

// undefinedOpcodes: who speaks RFC 7306 knows no RDMAP opcode beyond it.
func undefinedOpcodes(t *conformance.T) {
	for opcode := byte(0x4C); opcode <= 0x4F; opcode++ {
		rejectsEach(t, extended(setup{}), aBadSegment("an opcode that is none", badOpcode, with(1, opcode)))
	}
}

// badAtomicResponses: each ends the stream, and completes nothing.
func badAtomicResponses(t *conformance.T) {
	good := func(spoil func([]byte) []byte) func(first, second uint32) []byte {
		return func(first, _ uint32) []byte { return spoil(anAtomicResponse(1, first, 7)) }
	}
	for x := range inTurn(t, "%s", []struct {
		what string
		peerFault
		make func(first, second uint32) []byte
	}{
		{"of none of them", badOpcode, func(first, second uint32) []byte { return anAtomicResponse(1, first^second^1<<31, 7) }},
		{"of the second", badOpcode, func(_, second uint32) []byte { return anAtomicResponse(1, second, 7) }},
		{"with the MSN of the second", peerFault{event: verbs.EventUnexpectedOpcode, code: 0x1203}, good(with(atMSN, 2))},
		{"with MSN 0", peerFault{event: verbs.EventUnexpectedOpcode, code: 0x1203}, good(with(atMSN, 0))},
		{"a Read Response", badOpcode, func(_, _ uint32) []byte { return aReadResponse(0, 0, nil) }},
		{"of 11 octets", badSize, good(func(u []byte) []byte { return u[:18+11] })},
		{"of 13 octets", peerFault{event: verbs.EventSegmentSize, code: 0x1205}, good(func(u []byte) []byte { return append(u, 0) })},
		{"with an MO", peerFault{event: verbs.EventSegmentSize, code: 0x1204}, good(with(atMO, 12))},
		{"without L", noLBit, good(with(0, moreUntagged))},
		{"on queue 1", badQN, good(with(atQN, 1))},
		{"on queue 2", badQN, good(with(atQN, 2))},
		{"in a tagged segment", badOpcode, good(with(0, lastTagged))},
		{"of DDP version 2", badDDP, good(with(0, 0x42))},
		{"of RDMAP version 2", badRDMAP, good(with(1, 0x8B))},
	}) {
		a := openAtomics(open(t, extended(setup{})))
		a.post(swapping(1), swapping(2))
		first := binary.BigEndian.Uint32(a.next()[22:])
		u := x.make(first, binary.BigEndian.Uint32(a.next()[22:]))
		a.send(u)
		a.tornDown(x.code, x.of(u), false)
		a.events(x.event)
		a.completions(verbs.Completion{ID: 1, Op: verbs.OpSwap, Status: verbs.StatusFlushed},
			verbs.Completion{ID: 2, Op: verbs.OpSwap, Status: verbs.StatusFlushed})
	}
	rejects(t, extended(setup{}), "in place of a Read Response", peerFault{event: verbs.EventUnexpectedOpcode, code: 0x1202},
		always(anAtomicResponse(1, 1, 7)))
	t.Part("one more than was asked for")
	a := openAtomics(open(t, extended(setup{})))
	a.post(swapping(1))
	id := binary.BigEndian.Uint32(a.next()[22:])
	a.send(a.answer(id, 7))
	a.completions(verbs.Completion{ID: 1, Op: verbs.OpSwap, Value: 7})
	more := a.answer(id, 7)
	a.send(more)
	a.terminated(0x1202, more, false)
	a.events(verbs.EventUnexpectedOpcode)
}

// errorsMakingAtomics: what is wrong before an Atomic Request is sent is told without a
// header.
func errorsMakingAtomics(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what   string
		set    setup
		status verbs.Status
		spoil  func(*verbs.Request)
	}{
		{"no RDMA Read resources", setup{qp: uppertester.OpenArgs{NoReads: true}}, verbs.StatusZeroReadResources, func(*verbs.Request) {}},
		{"STag zero", setup{}, verbs.StatusInvalidSTag, func(r *verbs.Request) { r.Remote.STag = 0 }},
	}) {
		for _, req := range []verbs.Request{adding(5), swapping(5)} {
			a := openAtomics(open(t, extended(x.set)))
			x.spoil(&req)
			a.post(req)
			a.tornDown(0x0000, nil, false)
			a.completions(verbs.Completion{ID: 5, Op: req.Op, Status: x.status})
		}
	}
	t.Part("no modifiers")
	a := openAtomics(open(t, extended(setup{})))
	require.ErrorIs(t, second(a.tryPost(verbs.Request{Op: verbs.OpCompareSwap, Remote: theirs})), verbs.ErrInvalidModifier)
	a.settled()
}

// atomicsNotOffered: a queue pair that is not said to speak RFC 7306 has none of it.
func atomicsNotOffered(t *conformance.T) {
	for _, op := range []uint32{atomicFetchAdd, atomicCmpSwap} {
		rejectsEach(t, setup{}, aBadAtomic("an Atomic Request", badOpcode, func(v *faultRig, a *atomicOp) {
			b := v.rig.region(16, atomicRights)
			*a = atomicOp{op: op, stag: b.tag(), to: b.at(8)}
		}))
	}
	rejects(t, setup{}, "an Atomic Response", badOpcode, always(anAtomicResponse(1, 1, 7)))
	r := open(t, setup{})
	for op := range inTurn(t, "%v", []verbs.Op{verbs.OpFetchAdd, verbs.OpSwap, verbs.OpCompareSwap}) {
		r.refusesPost(verbs.ErrInvalidOp, verbs.Request{Op: op, Remote: theirs, Atomic: verbs.FetchAdd(1)})
	}
	r.settled()
}

// extendedWorld is a world whose queue pairs speak RFC 7306.
func extendedWorld(t *conformance.T) *hostPair {
	c := hostConfig{QP: verbs.QPConfig{Extensions: true}}
	return newHostPair(t, hostPairConfig{A: c, B: c})
}

// received is a completion of a receive at a host.
func (n *host) received(id, data uint64) verbs.Completion {
	return verbs.Completion{ID: id, QP: n.qp.ID(), Op: verbs.OpRecv, Value: data, HasImmediate: true}
}

// immediateBetween: twenty of all kinds in a row, in the order of posting at either end.
func immediateBetween(t *conformance.T) {
	w := extendedWorld(t)
	ops := []verbs.Op{verbs.OpImmediate, verbs.OpSend, verbs.OpWriteImmediate, verbs.OpImmediateSE, verbs.OpWriteImmediateSE}
	var sent, received []verbs.Completion
	for i := range uint64(20) {
		op := ops[i%5]
		data := t.Rand().Uint64()
		postRecv(t, w.b.qp, verbs.Recv{ID: 100 + i})
		post(t, w.a.qp, verbs.Request{ID: i, Op: op, Immediate: data})
		sent = append(sent, verbs.Completion{ID: i, QP: w.a.qp.ID(), Op: op})
		c := w.b.received(100+i, data)
		if op == verbs.OpSend {
			c.Value, c.HasImmediate = 0, false
		}
		received = append(received, c)
	}
	completes(t, w.a.cq, sent...)
	completes(t, w.b.cq, received...)
	w.noCompletions()
}

// immediateBehindWrite: when the Immediate Data has completed, the Write before it is placed, all
// of it, and nothing is in the receive's buffer.
func immediateBehindWrite(t *conformance.T) {
	w := extendedWorld(t)
	const at = 1024
	for i, n := range []int{1, 64, 2048, 50000} {
		want := fill(w.a.mr.Bytes()[:n], i)
		clear(w.b.mr.Bytes())
		id := uint64(i)
		postRecv(t, w.b.qp, verbs.Recv{ID: id, SGL: w.b.mr.SGL(0, 512)})
		post(t, w.a.qp, verbs.Request{
			ID: id, Op: verbs.OpWriteImmediate, SGL: w.a.mr.SGL(0, n), Remote: w.b.mr.Remote(at), Immediate: id << 40,
		})
		completes(t, w.b.cq, w.b.received(id, id<<40))
		require.Equal(t, want, w.b.mr.Bytes()[at:at+n], "what was written")
		require.Equal(t, make([]byte, at), w.b.mr.Bytes()[:at], "the receive's buffer and what is behind it")
		completes(t, w.a.cq, verbs.Completion{ID: id, QP: w.a.qp.ID(), Op: verbs.OpWriteImmediate})
	}
}

// immediateShared: receives come from an S-RQ too, one each.
func immediateShared(t *conformance.T) {
	a, b := newHost(t, hostConfig{QP: verbs.QPConfig{Extensions: true}}), newHost(t, hostConfig{})
	srq := b.newSRQ(verbs.SRQConfig{})
	qp := b.newQP(verbs.QPConfig{SRQ: srq, Extensions: true})
	connect(t, a.qp, qp)
	for id := range uint64(3) {
		postRecv(t, srq, verbs.Recv{ID: id, SGL: b.mr.SGL(0, 8*int(id))}) // the first has room for none
	}
	for id := range uint64(3) {
		run(t, a.qp, verbs.Request{ID: id, Op: verbs.OpImmediate, Immediate: 1 << id}, verbs.StatusSuccess)
		completes(t, b.cq, verbs.Completion{ID: id, QP: qp.ID(), Op: verbs.OpRecv, Value: 1 << id, HasImmediate: true})
	}
	post(t, a.qp, verbs.Request{ID: 9, Op: verbs.OpImmediate})
	ends(t, qp, verbs.StateError)
	require.Equal(t, make([]byte, 16), b.mr.Bytes()[:16], "nothing is in the buffers")
}
