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

// aBadAtomic is a FetchAdd that would be done but for what spoil does to it.
func aBadAtomic(what string, code uint16, event verbs.EventID, spoil func(*faultRig, *atomicOp)) segmentFault {
	return segmentFault{what: what, code: code, event: event, ulpdu: func(v *faultRig) []byte {
		op := v.region.fetchAdd(8, 1, 1, 0)
		spoil(v, &op)
		return anAtomicRequest(1, op)
	}}
}

// aBadSegment is a good FetchAdd in a segment that is not.
func aBadSegment(what string, code uint16, event verbs.EventID, spoil func([]byte) []byte) segmentFault {
	return segmentFault{what: what, code: code, event: event, ulpdu: func(v *faultRig) []byte {
		return spoil(anAtomicRequest(1, v.region.fetchAdd(8, 1, 1, 0)))
	}}
}

// with puts octets into a segment from off on.
func with(off int, octets ...byte) func([]byte) []byte {
	return func(u []byte) []byte {
		copy(u[off:], octets)
		return u
	}
}

// The fields of an untagged segment that cases spoil.
const (
	atQN, atMSN, atMO = 9, 13, 17 // their last octets
)

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
	short := aBadSegment("51 octets", 0x1000, verbs.EventInvalidAtomic, func(u []byte) []byte { return u[:18+51] })
	none := aBadSegment("no header", 0x1000, verbs.EventInvalidAtomic, func(u []byte) []byte { return u[:18] })
	short.bare, none.bare = true, true
	rejectsEach(t, extended(setup{}),
		short, none,
		aBadSegment("53 octets", 0x1205, verbs.EventInvalidAtomic, func(u []byte) []byte { return append(u, 0) }),
		aBadSegment("an MO", 0x1204, verbs.EventInvalidAtomic, with(atMO, 52)),
		aBadSegment("no L", 0x0207, verbs.EventNoLBit, with(0, moreUntagged)),
		aBadSegment("queue 0", 0x1201, verbs.EventInvalidQN, with(atQN, 0)),
		aBadSegment("queue 3", 0x1201, verbs.EventInvalidQN, with(atQN, 3)),
		aBadSegment("MSN 2 first", 0x1203, verbs.EventIRRQMSNGap, with(atMSN, 2)),
		aBadSegment("MSN 0", 0x1203, verbs.EventIRRQMSNRange, with(atMSN, 0)),
		aBadSegment("a tagged segment", 0x0206, verbs.EventUnexpectedOpcode, with(0, lastTagged)),
		aBadSegment("DDP version 2", 0x1206, verbs.EventDDPVersion, with(0, 0x42)),
		aBadSegment("DDP version 0", 0x1206, verbs.EventDDPVersion, with(0, 0x40)),
		aBadSegment("RDMAP version 0", 0x0205, verbs.EventRDMAPVersion, with(1, 0x0A)),
		aBadSegment("RDMAP version 2", 0x0205, verbs.EventRDMAPVersion, with(1, 0x8A)),

		aBadAtomic("STag zero", 0x0100, verbs.EventIRRQSTag, func(_ *faultRig, op *atomicOp) { op.stag = 0 }),
		aBadAtomic("another key", 0x0100, verbs.EventIRRQSTag, func(_ *faultRig, op *atomicOp) { op.stag ^= 1 }),
		aBadAtomic("a region that is gone", 0x0100, verbs.EventIRRQSTag, func(v *faultRig, op *atomicOp) {
			b := v.rig.region(64, atomicRights)
			op.stag, op.to = b.tag(), b.at(8)
			b.deregister()
		}),
		aBadAtomic("below the region", 0x0101, verbs.EventIRRQBounds, func(v *faultRig, op *atomicOp) { op.to = v.region.at(-8) }),
		aBadAtomic("beyond the region", 0x0101, verbs.EventIRRQBounds, func(v *faultRig, op *atomicOp) { op.to = v.region.at(256) }),
		aBadAtomic("half beyond the region", 0x0101, verbs.EventIRRQBounds, func(v *faultRig, op *atomicOp) { op.to = v.region.at(252) }),
		aBadAtomic("a TO that wraps", 0x0104, verbs.EventIRRQWrap, func(_ *faultRig, op *atomicOp) { op.to = 0xFFFFFFFFFFFFFFFC }),
		aBadAtomic("memory to read and write", 0x0102, verbs.EventIRRQAccess, in(uppertester.RegisterArgs{Access: allRights})),
		aBadAtomic("memory to read", 0x0102, verbs.EventIRRQAccess, in(uppertester.RegisterArgs{Access: verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead})),
		aBadAtomic("memory of another PD", 0x0103, verbs.EventIRRQPD, in(uppertester.RegisterArgs{Access: atomicRights, PD: 77})),
		aBadAtomic("memory of another queue pair", 0x0103, verbs.EventIRRQPD, in(uppertester.RegisterArgs{Access: atomicRights, QP: 1})),
	)
	none = aBadSegment("where none is allowed", 0x1201, verbs.EventAtomicNotEnabled, with(0, lastUntagged))
	rejectsEach(t, extended(setup{qp: uppertester.OpenArgs{NoInboundAtomic: true}}), none)
}

// misalignedAtomics: at an address that is not a multiple of eight nothing is done, though
// the Tagged Offset may be one, and the peer is told.
func misalignedAtomics(t *conformance.T) {
	var list []segmentFault
	misaligned := func(what string, spoil func(*faultRig, *atomicOp)) {
		list = append(list, aBadAtomic(what, 0x0207, verbs.EventInvalidAtomic, spoil))
	}
	for off := range uint64(8) {
		if off == 0 {
			continue
		}
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
	rejectsEach(t, extended(setup{}), list...)
}

// unknownAtomics: the operations that the table does not have.
func unknownAtomics(t *conformance.T) {
	var list []segmentFault
	for op := range uint32(16) {
		if op != atomicFetchAdd && op != atomicCmpSwap {
			list = append(list, aBadAtomic("an operation that is none", 0x0206, verbs.EventInvalidAtomic,
				func(_ *faultRig, a *atomicOp) { a.op = op }))
		}
	}
	rejectsEach(t, extended(setup{}), list...)
}

// undefinedOpcodes: who speaks RFC 7306 knows no RDMAP opcode beyond it.
func undefinedOpcodes(t *conformance.T) {
	var list []segmentFault
	for opcode := byte(0x4C); opcode <= 0x4F; opcode++ {
		list = append(list, aBadSegment("an opcode that is none", 0x0206, verbs.EventUnexpectedOpcode, with(1, opcode)))
	}
	rejectsEach(t, extended(setup{}), list...)
}

// badAtomicResponses: each ends the stream, and completes nothing.
func badAtomicResponses(t *conformance.T) {
	good := func(spoil func([]byte) []byte) func(first, second uint32) []byte {
		return func(first, _ uint32) []byte { return spoil(anAtomicResponse(1, first, 7)) }
	}
	for x := range inTurn(t, "%s", []struct {
		what  string
		code  uint16
		bare  bool
		event verbs.EventID
		make  func(first, second uint32) []byte
	}{
		{"of none of them", 0x0206, false, verbs.EventUnexpectedOpcode, func(first, second uint32) []byte { return anAtomicResponse(1, first^second^1<<31, 7) }},
		{"of the second", 0x0206, false, verbs.EventUnexpectedOpcode, func(_, second uint32) []byte { return anAtomicResponse(1, second, 7) }},
		{"with the MSN of the second", 0x1203, false, verbs.EventUnexpectedOpcode, good(with(atMSN, 2))},
		{"with MSN 0", 0x1203, false, verbs.EventUnexpectedOpcode, good(with(atMSN, 0))},
		{"a Read Response", 0x0206, false, verbs.EventUnexpectedOpcode, func(_, _ uint32) []byte { return aReadResponse(0, 0, nil) }},
		{"of 11 octets", 0x1000, true, verbs.EventSegmentSize, good(func(u []byte) []byte { return u[:18+11] })},
		{"of 13 octets", 0x1205, false, verbs.EventSegmentSize, good(func(u []byte) []byte { return append(u, 0) })},
		{"with an MO", 0x1204, false, verbs.EventSegmentSize, good(with(atMO, 12))},
		{"without L", 0x0207, false, verbs.EventNoLBit, good(with(0, moreUntagged))},
		{"on queue 1", 0x1201, false, verbs.EventInvalidQN, good(with(atQN, 1))},
		{"on queue 2", 0x1201, false, verbs.EventInvalidQN, good(with(atQN, 2))},
		{"in a tagged segment", 0x0206, false, verbs.EventUnexpectedOpcode, good(with(0, lastTagged))},
		{"of DDP version 2", 0x1206, false, verbs.EventDDPVersion, good(with(0, 0x42))},
		{"of RDMAP version 2", 0x0205, false, verbs.EventRDMAPVersion, good(with(1, 0x8B))},
	}) {
		a := openAtomics(open(t, extended(setup{})))
		a.post(swapping(1), swapping(2))
		first := binary.BigEndian.Uint32(a.next()[22:])
		u := x.make(first, binary.BigEndian.Uint32(a.next()[22:]))
		a.send(u)
		if x.bare {
			u = nil
		}
		a.tornDown(x.code, u, false)
		a.events(x.event)
		a.completions(verbs.Completion{ID: 1, Op: verbs.OpSwap, Status: verbs.StatusFlushed},
			verbs.Completion{ID: 2, Op: verbs.OpSwap, Status: verbs.StatusFlushed})
	}
	rejectsEach(t, extended(setup{}), segmentFault{
		what: "in place of a Read Response", code: 0x1202, event: verbs.EventUnexpectedOpcode,
		ulpdu: func(*faultRig) []byte { return anAtomicResponse(1, 1, 7) },
	})
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
	var list []segmentFault
	for _, op := range []uint32{atomicFetchAdd, atomicCmpSwap} {
		list = append(list, aBadAtomic("an Atomic Request", 0x0206, verbs.EventUnexpectedOpcode, func(v *faultRig, a *atomicOp) {
			b := v.rig.region(16, atomicRights)
			*a = atomicOp{op: op, stag: b.tag(), to: b.at(8)}
		}))
	}
	rejectsEach(t, setup{}, append(list, segmentFault{
		what: "an Atomic Response", code: 0x0206, event: verbs.EventUnexpectedOpcode,
		ulpdu: func(*faultRig) []byte { return anAtomicResponse(1, 1, 7) },
	})...)
	r := open(t, setup{})
	for _, op := range []verbs.Op{verbs.OpFetchAdd, verbs.OpSwap, verbs.OpCompareSwap} {
		_, err := r.tryPost(verbs.Request{Op: op, Remote: theirs, Atomic: verbs.FetchAdd(1)})
		require.ErrorIs(t, err, verbs.ErrInvalidOp, "%v", op)
	}
	r.settled()
}
