package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// extended is a queue pair that speaks RFC 7306.
func extended(c *setup) { c.config = func(c *Config) { c.Extensions = true } }

// TestExtensionsAreOffByDefault: no operation of RFC 7306 is posted to a queue pair that
// does not speak it, and nothing is sent.
func TestExtensionsAreOffByDefault(t *testing.T) {
	r := newRig(t, setup{})
	for op := wr.OpImmediate; op.IsExtension(); op++ {
		n, err := r.q.PostSend(wr.Request{Op: op, Atomic: &wr.AtomicRequest{}})
		require.ErrorIs(t, err, wr.ErrInvalidOp, "%v", op)
		require.ErrorContains(t, err, "QPConfig.Extensions")
		require.Zero(t, n)
	}
	require.False(t, r.q.Query().Extensions)
	r.postSend(wr.Request{ID: 1})
	require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
}

// extensionAttacks are on a queue pair that speaks RFC 7306. What no RFC defines is still
// unexpected there, and so is what it defines where the T flag or the queue is another than
// its figure 2 has.
func extensionAttacks() (all []attack) {
	for op := rdmap.AtomicResponse + 1; op <= 0xF; op++ {
		all = append(all, attack{
			name: "extended, opcode " + op.String(), bad: seg(rawpeer.Segment{Op: op, MSN: 1, Payload: make([]byte, 8)}),
			fault: faultOpcode, code: 0x0206, echo: echoDDP, event: wr.EventUnexpectedOpcode,
		})
	}
	for op := rdmap.Immediate; op <= rdmap.AtomicResponse; op++ {
		all = append(all, attack{
			name: op.String() + " tagged", bad: seg(rawpeer.Segment{Tagged: true, Op: op, Payload: make([]byte, 52)}),
			fault: faultOpcode, code: 0x0206, echo: echoDDP, event: wr.EventUnexpectedOpcode,
		}, attack{
			name: op.String() + " to queue 2", bad: seg(rawpeer.Segment{Op: op, QN: 2, MSN: 1, Payload: make([]byte, 52)}),
			fault: faultQN, code: 0x1201, echo: echoDDP, event: wr.EventInvalidQN,
		})
	}
	all = append(all, immediateAttacks...)
	for i := range all {
		all[i].set = extended
	}
	return all
}

// immediateAttacks are with Immediate Data (RFC 7306 6.3, 8.2), which is of queue 0 and shares
// the numbers of the Sends.
var immediateAttacks = []attack{
	{
		name: "Immediate of 7 octets", bad: seg(rawpeer.Segment{Op: rdmap.Immediate, MSN: 1, Payload: filled(7)}),
		fault: faultImmediateLength, code: 0x0207, echo: echoDDP, event: wr.EventSegmentSize,
	},
	{
		name: "Immediate of 9 octets", bad: seg(rawpeer.Segment{Op: rdmap.Immediate, MSN: 1, Payload: filled(9)}),
		fault: faultImmediateLength, code: 0x0207, echo: echoDDP, event: wr.EventSegmentSize,
	},
	{
		name: "Immediate of 64 octets, as many as the receive has", bad: seg(rawpeer.Segment{Op: rdmap.ImmediateSE, MSN: 1, Payload: filled(64)}),
		fault: faultImmediateLength, code: 0x0207, echo: echoDDP, event: wr.EventSegmentSize,
	},
	{
		name: "empty Immediate", bad: seg(rawpeer.Segment{Op: rdmap.ImmediateSE, MSN: 1}),
		fault: faultImmediateLength, code: 0x0207, echo: echoDDP, event: wr.EventSegmentSize,
	},
	{
		name: "Immediate without L", bad: seg(rawpeer.Segment{More: true, Op: rdmap.Immediate, MSN: 1, Payload: filled(8)}),
		fault: faultNoLBit, code: 0x0207, echo: echoDDP, event: wr.EventNoLBit,
	},
	{
		name: "Immediate with an MO", bad: seg(rawpeer.Segment{Op: rdmap.Immediate, MSN: 1, MO: 8, Payload: filled(8)}),
		fault: faultUntaggedMO, code: 0x1204, echo: echoDDP, event: wr.EventSegmentSize,
	},
	{
		name: "Immediate with MSN 2 first", bad: seg(rawpeer.Immediate(2, 5)),
		fault: faultSendMSNGap, code: 0x1203, echo: echoDDP, event: wr.EventRQMSNGap,
	},
	{
		name: "Immediate with MSN far away", bad: seg(rawpeer.Immediate(0x80000001, 5)),
		fault: faultSendMSNRange, code: 0x1203, echo: echoDDP, event: wr.EventRQMSNRange,
	},
	{
		name: "Immediate with the MSN of a Send before", lead: leads(rawpeer.Send(1, filled(3))), bad: seg(rawpeer.Immediate(1, 5)),
		fault: faultSendMSNRange, code: 0x1203, echo: echoDDP, event: wr.EventRQMSNRange,
		recvs: []comp{{1, wr.StatusSuccess, 3}, {2, wr.StatusFlushed, 0}},
		after: func(r *rig) { received(r, filled(3)) },
	},
	{
		name: "Send with the MSN of an Immediate before", lead: leads(rawpeer.Immediate(1, 5)), bad: seg(rawpeer.Send(1, filled(3))),
		fault: faultSendMSNRange, code: 0x1203, echo: echoDDP, event: wr.EventRQMSNRange,
		recvs: []comp{{1, wr.StatusSuccess, 0}, {2, wr.StatusFlushed, 0}},
	},
	{
		name: "Immediate within a Send", lead: leads(rawpeer.Segment{More: true, Op: rdmap.Send, MSN: 1, Payload: filled(5)}), bad: seg(rawpeer.Immediate(1, 5)),
		fault: faultOpcode, code: 0x0206, echo: echoDDP, event: wr.EventUnexpectedOpcode,
		after: func(r *rig) { received(r, filled(5)) },
	},
	{
		name: "Immediate without a receive", lead: leads(rawpeer.Immediate(1, 5), rawpeer.Send(2, nil)), bad: seg(rawpeer.Immediate(3, 5)),
		fault: faultNoReceive, code: 0x1202, echo: echoDDP, event: wr.EventRQMSNRange,
		recvs: []comp{{1, wr.StatusSuccess, 0}, {2, wr.StatusSuccess, 0}},
	},
}

// notAgreed posts what the peer then turns out not to speak: none of it is sent.
func notAgreed(t *testing.T) {
	for _, op := range []wr.Op{wr.OpImmediate, wr.OpWriteImmediate} {
		c := setup{}
		extended(&c)
		r := newIdleRig(t, c)
		r.modify.Extensions = new(bool)
		r.postSend(wr.Request{ID: 1}, wr.Request{ID: 2, Op: op}, wr.Request{ID: 3})
		require.True(t, r.q.Query().Extensions)
		r.connect()
		require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
		require.Equal(t, terminate(0, echoNone, nil), r.next())
		require.NoError(t, r.peer.Close())
		r.over()
		require.False(t, r.s.extensions)
		require.Equal(t, []comp{{1, wr.StatusSuccess, 0}, {2, wr.StatusInvalidWQE, 0}, {3, wr.StatusFlushed, 0}}, r.all(r.scq))
		require.NoError(t, r.q.Modify(Modify{Next: wr.StateIdle}))
		require.True(t, r.q.Query().Extensions, "as it was configured")
		r.postSend(wr.Request{ID: 4, Op: op})
	}
}

// TestAgreed: a stream may have what the queue pair alone has not, and takes it along.
func TestAgreed(t *testing.T) {
	r := newIdleRig(t, setup{})
	yes := true
	r.modify.Extensions = &yes
	_, err := r.q.PostSend(wr.Request{Op: wr.OpImmediate})
	require.ErrorIs(t, err, wr.ErrInvalidOp)
	r.connect()
	r.postRecv(wr.Recv{ID: 1})
	r.postSend(wr.Request{Op: wr.OpImmediate, Immediate: 3})
	require.Equal(t, rawpeer.Immediate(1, 3).Octets(), r.next())
	r.send(rawpeer.Immediate(1, 4).Octets())
	require.Equal(t, uint64(4), r.reap(r.rcq, 1)[0].Value)
	require.ErrorIs(t, r.q.Modify(Modify{Next: wr.StateRTS, Extensions: &yes}), wr.ErrInvalidModifier, "it does not change under a stream")
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateError}))
	require.False(t, r.q.Query().Extensions)
}

// TestSendImmediate holds the octets of a Send that brings Immediate Data of softrnic's own: a reserved bit of the control octet, and
// the field of the Invalidate STag, in each segment, short or long. A receiver without it sees a plain Send.
func TestSendImmediate(t *testing.T) {
	own := func(c *Config) { c.SendImmediate = true }
	r := newRig(t, setup{config: own})
	for _, n := range []int{0, 1, 100, slabSize} {
		r.postSend(wr.Request{
			Op: wr.OpSendSE, Flags: wr.WithImmediate, Immediate: 0xffffffff_a1b2c3d4, SGL: r.readable.sgl(0, n),
		})
		var got []byte
		for last := false; !last; {
			s, err := r.peer.Segment()
			require.NoError(t, err)
			require.Equal(t, byte(0x40|0x05|0x10), s.RsvdULP())
			require.Equal(t, uint32(0xa1b2c3d4), s.RsvdULP32())
			got, last = append(got, s.Payload()...), s.Last()
		}
		require.Equal(t, r.readable.mem()[:n], append([]byte{}, got...))
	}
	for _, req := range []wr.Request{{Op: wr.OpWrite}, {Op: wr.OpSendInvalidate}, {Op: wr.OpRead}, {Op: wr.OpBind}} {
		req.Flags = wr.WithImmediate
		_, err := r.q.PostSend(req)
		require.ErrorIs(t, err, wr.ErrInvalidModifier, "%v", req.Op)
	}

	brings := rawpeer.Segment{Op: rdmap.Send, MSN: 1, Inv: 7, Payload: []byte("x")}.Octets()
	brings[1] |= 0x10
	for _, c := range []setup{{config: own}, {}} {
		r := newRig(t, c)
		r.postRecv(wr.Recv{ID: 1, SGL: r.writable.sgl(0, 8)})
		r.writable.free = true
		r.send(brings)
		got := r.reap(r.rcq, 1)[0]
		require.EqualValues(t, 1, got.Bytes)
		require.Equal(t, c.config != nil, got.HasImmediate)
		_, err := r.q.PostSend(wr.Request{Flags: wr.WithImmediate})
		require.Equal(t, c.config == nil, err != nil)
	}
}
