package qp

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

func fromHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// atomicAt is an Atomic Request of a peer.
func atomicAt(msn uint32, h rdmap.AtomicRequestHeader) rawpeer.Segment {
	return rawpeer.Segment{Op: rdmap.AtomicRequest, QN: 1, MSN: msn, Payload: h.Append(nil)}
}

func atomicResponse(msn, id uint32, value uint64) rawpeer.Segment {
	return rawpeer.Segment{
		Op: rdmap.AtomicResponse, QN: 3, MSN: msn, Payload: rdmap.AtomicResponseHeader{RequestID: id, Value: value}.Append(nil),
	}
}

// number is what is at off, in the machine's order.
func (s *slab) number(off int) uint64 { return binary.NativeEndian.Uint64(s.mem()[off:]) }

// expectNumber is expect of one.
func (s *slab) expectNumber(off int, v uint64) {
	s.expect(off, binary.NativeEndian.AppendUint64(nil, v))
}

// TestAtomicOctets are those that go out, and what is made of an answer (RFC 7306 5.2).
func TestAtomicOctets(t *testing.T) {
	for _, c := range []setup{{}, {crc: true}, {crc: true, markers: true}, {pipe: true}} {
		extended(&c)
		r := newRig(t, c)
		at := wr.Remote{STag: 0x100, TO: 0x1008}
		r.postSend(
			wr.Request{ID: 1, Op: wr.OpFetchAdd, Remote: at, Atomic: &wr.AtomicRequest{Data: 1, Mask: 0x80, Compare: 5, CompareMask: 6}},
			wr.Request{ID: 2, Op: wr.OpSwap, Remote: at, Atomic: &wr.AtomicRequest{Data: 2, Mask: 0xFF, Compare: 5, CompareMask: 6}},
			wr.Request{ID: 3, Op: wr.OpCompareSwap, Remote: at, Atomic: wr.CompareSwap(7, 8)},
		)
		const head = "41 4a 00000000 00000001 "
		for _, want := range []string{
			head + "00000001 00000000" + "00000000 00000001 00000100 0000000000001008" +
				"0000000000000001 0000000000000080 0000000000000000 ffffffffffffffff",
			head + "00000002 00000000" + "00000002 00000002 00000100 0000000000001008" +
				"0000000000000002 00000000000000ff 0000000000000000 0000000000000000",
			head + "00000003 00000000" + "00000002 00000003 00000100 0000000000001008" +
				"0000000000000008 ffffffffffffffff 0000000000000007 ffffffffffffffff",
		} {
			require.Equal(t, fromHex(t, want), r.next())
		}
		const answer = "41 4b 00000000 00000003 "
		r.send(fromHex(t, answer+"00000001 00000000 00000001 0000000000000029"),
			fromHex(t, answer+"00000002 00000000 00000002 ffffffffffffffff"))
		var c [4]wr.Completion
		for i, want := range []uint64{41, ^uint64(0)} {
			n, err := r.scq.Wait(t.Context(), c[:1])
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Equal(t, wr.StatusSuccess, c[0].Status)
			require.EqualValues(t, i+1, c[0].ID)
			require.Equal(t, want, c[0].Value)
		}
		r.send(fromHex(t, answer+"00000003 00000000 00000003 0000000000000007"))
		require.Equal(t, []comp{{ID: 3}}, r.wait(r.scq, 1))
		r.requireMemory()
	}
}

// TestAtomicAnswers: what a peer asks for is done, in order with its RDMA Reads, and answered
// with what was there.
func TestAtomicAnswers(t *testing.T) {
	for _, c := range []setup{{}, {crc: true}, {role: mpa.Responder, crc: true, markers: true}, {pipe: true}} {
		extended(&c)
		r := newRig(t, c)
		r.openGate()
		stag, to := uint32(r.full.stag), r.full.at(8)
		was, other := r.full.number(8), r.full.number(16)
		add := fromHex(t, "41 4a 00000000 00000001 00000001 00000000"+"00000000 00000055")
		add = binary.BigEndian.AppendUint32(add, stag)
		add = binary.BigEndian.AppendUint64(add, to)
		add = append(add, fromHex(t, "0000000000000003 0000000000000000 0000000000000000 ffffffffffffffff")...)
		r.send(
			add,
			readRequest(2, 8, r.full.stag, to).Octets(),
			atomicAt(3, rdmap.AtomicRequestHeader{Op: rdmap.CmpSwap, RequestID: 0x56, STag: stag, TO: to + 8, Data: 9, Mask: ^uint64(0)}).Octets(),
			atomicAt(4, rdmap.AtomicRequestHeader{
				Op: rdmap.CmpSwap, RequestID: 0x56, STag: stag, TO: to + 8, Data: 1, Mask: ^uint64(0), Compare: 8, CompareMask: ^uint64(0),
			}).Octets(),
		)
		response := fromHex(t, "41 4b 00000000 00000003 00000001 00000000 00000055")
		require.Equal(t, binary.BigEndian.AppendUint64(response, was), r.next())
		require.Equal(t, rawpeer.ReadResponse(0x5151, 0x6262, binary.NativeEndian.AppendUint64(nil, was+3)).Octets(), r.next())
		require.Equal(t, atomicResponse(2, 0x56, other).Octets(), r.next())
		require.Equal(t, atomicResponse(3, 0x56, 9).Octets(), r.next(), "it compared, and left it")
		r.full.expectNumber(8, was+3)
		r.full.expectNumber(16, 9)
		r.requireMemory()
		require.Equal(t, wr.StateRTS, r.q.State())
	}
}

// TestAtomicsCountAsReads for ORD, and for the Read Fence.
func TestAtomicsCountAsReads(t *testing.T) {
	c := setup{ord: 2}
	extended(&c)
	r := newRig(t, c)
	add := wr.Request{Op: wr.OpFetchAdd, Remote: wr.Remote{STag: 1}, Atomic: wr.FetchAdd(1)}
	read := wr.Request{Op: wr.OpRead, Local: r.full.sge(0, 8), Remote: wr.Remote{STag: 1}}
	r.postSend(add, read, add, wr.Request{ID: 9, Flags: wr.ReadFence})
	opcode := func() rdmap.Opcode { return rdmap.OpcodeOf(r.next()[1]) }
	require.Equal(t, rdmap.AtomicRequest, opcode())
	require.Equal(t, rdmap.ReadRequest, opcode())
	r.send(atomicResponse(1, 1, 0).Octets())
	require.Equal(t, rdmap.AtomicRequest, opcode())
	r.send(rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(0), filled(8)).Octets())
	r.full.expect(0, filled(8))
	r.send(atomicResponse(2, 2, 0).Octets())
	require.Equal(t, rdmap.Send, opcode(), "the fence held it back")
	require.Len(t, r.wait(r.scq, 4), 4)

	r.set.ord = -1
	c.ord = -1
	z := newRig(t, c)
	z.postSend(add)
	require.Equal(t, []comp{{Status: wr.StatusZeroReadResources}}, z.wait(z.scq, 1))
	r.requireMemory()
}

// TestAtomicModifiers: without them an Atomic is refused.
func TestAtomicModifiers(t *testing.T) {
	c := setup{}
	extended(&c)
	r := newRig(t, c)
	_, err := r.q.PostSend(wr.Request{Op: wr.OpFetchAdd})
	require.ErrorIs(t, err, wr.ErrInvalidModifier)
	r.postSend(wr.Request{ID: 1, Op: wr.OpSwap, Atomic: wr.Swap(1)})
	require.Equal(t, []comp{{ID: 1, Status: wr.StatusInvalidSTag}}, r.wait(r.scq, 1), "STag zero is nobody's memory")
}

// goodAtomic is one that would be done.
func goodAtomic(r *rig) rdmap.AtomicRequestHeader {
	return rdmap.AtomicRequestHeader{RequestID: 1, STag: uint32(r.full.stag), TO: r.full.at(8), Data: 1}
}

func badAtomic(name string, spoil func(*rig, *rdmap.AtomicRequestHeader), f streamFault, code uint16, e wr.EventID) attack {
	return attack{
		name: "Atomic " + name, set: extended, fault: f, code: code, echo: echoDDP, event: e,
		bad: func(r *rig) []byte {
			h := goodAtomic(r)
			spoil(r, &h)
			return atomicAt(1, h).Octets()
		},
	}
}

func badAtomicSegment(name string, spoil func(*rawpeer.Segment), f streamFault, code uint16, echo echo, e wr.EventID) attack {
	return attack{
		name: "Atomic Request " + name, set: extended, fault: f, code: code, echo: echo, event: e,
		bad: func(r *rig) []byte {
			s := atomicAt(1, goodAtomic(r))
			spoil(&s)
			return s.Octets()
		},
	}
}

func badAtomicAnswer(name string, s rawpeer.Segment, f streamFault, code uint16) attack {
	return attack{
		name: "Atomic Response " + name, set: extended, bad: seg(s), fault: f, code: code, echo: echoDDP, event: wr.EventUnexpectedOpcode,
	}
}

type atomicHeader = rdmap.AtomicRequestHeader

// atomicAttacks are on the memory, the header and the answers of Atomics.
func atomicAttacks() []attack {
	in := func(of func(*rig) *slab) func(*rig, *atomicHeader) {
		return func(r *rig, h *atomicHeader) { h.STag, h.TO = uint32(of(r).stag), of(r).at(8) }
	}
	return []attack{
		badAtomic("of no STag", func(r *rig, h *atomicHeader) { h.STag = uint32(r.gone) }, faultReadSTag, 0x0100, wr.EventIRRQSTag),
		badAtomic("of STag zero", func(_ *rig, h *atomicHeader) { h.STag = 0 }, faultReadSTag, 0x0100, wr.EventIRRQSTag),
		badAtomic("with a wrong key", func(_ *rig, h *atomicHeader) { h.STag ^= 1 }, faultReadSTag, 0x0100, wr.EventIRRQSTag),
		badAtomic("one octet below", func(r *rig, h *atomicHeader) { h.TO = r.full.base - 1 }, faultReadBounds, 0x0101, wr.EventIRRQBounds),
		badAtomic("one octet beyond", func(r *rig, h *atomicHeader) { h.TO = r.full.at(slabSize - 7) }, faultReadBounds, 0x0101, wr.EventIRRQBounds),
		badAtomic("that wraps", func(_ *rig, h *atomicHeader) { h.TO = ^uint64(0) - 6 }, faultReadWrap, 0x0104, wr.EventIRRQWrap),
		badAtomic("with read right only", in(func(r *rig) *slab { return r.readable }), faultReadAccess, 0x0102, wr.EventIRRQAccess),
		badAtomic("with write right only", in(func(r *rig) *slab { return r.writable }), faultReadAccess, 0x0102, wr.EventIRRQAccess),
		badAtomic("of a local region", in(func(r *rig) *slab { return r.private }), faultReadAccess, 0x0102, wr.EventIRRQAccess),
		badAtomic("of another PD", in(func(r *rig) *slab { return r.foreign }), faultReadPD, 0x0103, wr.EventIRRQPD),
		badAtomic("of another QP's region", in(func(r *rig) *slab { return r.scoped }), faultReadPD, 0x0103, wr.EventIRRQPD),
		badAtomic("not aligned", func(_ *rig, h *atomicHeader) { h.TO += 4 }, faultAtomicMisaligned, 0x0207, wr.EventInvalidAtomic),
		badAtomic("one octet off", func(_ *rig, h *atomicHeader) { h.TO-- }, faultAtomicMisaligned, 0x0207, wr.EventInvalidAtomic),
		badAtomic("of operation 1", func(_ *rig, h *atomicHeader) { h.Op = 1 }, faultAtomicOpcode, 0x0206, wr.EventInvalidAtomic),
		badAtomic("of operation 15", func(_ *rig, h *atomicHeader) { h.Op = 15 }, faultAtomicOpcode, 0x0206, wr.EventInvalidAtomic),
		badAtomicSegment("of 53 octets", func(s *rawpeer.Segment) { s.Payload = append(s.Payload, 0) },
			faultAtomicLength, 0x1205, echoDDP, wr.EventInvalidAtomic),
		badAtomicSegment("of 51 octets", func(s *rawpeer.Segment) { s.Payload = s.Payload[:51] },
			faultAtomicShort, 0x1000, echoNone, wr.EventInvalidAtomic),
		badAtomicSegment("with an MO", func(s *rawpeer.Segment) { s.MO = 52 }, faultAtomicMO, 0x1204, echoDDP, wr.EventInvalidAtomic),
		badAtomicSegment("without L", func(s *rawpeer.Segment) { s.More = true }, faultNoLBit, 0x0207, echoDDP, wr.EventNoLBit),
		badAtomicSegment("with MSN 2 first", func(s *rawpeer.Segment) { s.MSN = 2 }, faultReadMSNGap, 0x1203, echoDDP, wr.EventIRRQMSNGap),
		badAtomicSegment("with MSN 0 first", func(s *rawpeer.Segment) { s.MSN = 0 }, faultReadMSNRange, 0x1203, echoDDP, wr.EventIRRQMSNRange),
		{
			name: "Atomic where none is allowed", set: func(c *setup) {
				c.config = func(c *Config) { c.Extensions, c.NoInboundAtomic = true, true }
			},
			bad:   func(r *rig) []byte { return atomicAt(1, goodAtomic(r)).Octets() },
			fault: faultAtomicNotEnabled, code: 0x1201, echo: echoDDP, event: wr.EventAtomicNotEnabled,
		},
		{
			name: "Atomic with IRD 0", set: func(c *setup) { extended(c); c.ird = -1 },
			bad:   func(r *rig) []byte { return atomicAt(1, goodAtomic(r)).Octets() },
			fault: faultReadTooMany, code: 0x1202, echo: echoDDP, event: wr.EventIRRQTooMany,
		},
		badAtomicAnswer("in place of a Read Response", atomicResponse(1, 1, 2), faultAtomicAnswer, 0x1202),
		badAtomicAnswer("with MSN 2 first", atomicResponse(2, 1, 2), faultAtomicAnswerMSN, 0x1203),
	}
}

// atomicAnswered: an answer to another Atomic than the oldest, and a Read Response in
// its place, end the stream; the Atomic is flushed.
func atomicAnswered(bad rawpeer.Segment, f streamFault, code uint16) func(t *testing.T) {
	return func(t *testing.T) {
		c := setup{}
		extended(&c)
		r := newRig(t, c)
		r.postSend(
			wr.Request{ID: 1, Op: wr.OpSwap, Remote: wr.Remote{STag: 1}, Atomic: wr.Swap(1)},
			wr.Request{ID: 2, Op: wr.OpSwap, Remote: wr.Remote{STag: 1}, Atomic: wr.Swap(1)},
		)
		r.next()
		r.next()
		r.send(bad.Octets())
		require.Equal(t, terminate(code, echoDDP, bad.Octets()), r.next())
		r.requireEnd(rawpeer.FIN)
		require.NoError(t, r.peer.Close())
		r.requireSettled(wr.StateError, wr.EventUnexpectedOpcode)
		assert.Equal(t, f, r.s.cause.fault)
		assert.Equal(t, flushed(1, 2), r.all(r.scq))
		r.requireReusable()
		r.requireMemory()
	}
}
