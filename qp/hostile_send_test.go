package qp

import (
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// received is what Sends 1 and 2 of n octets leave behind in the first receive,
// which is in two pieces.
func received(r *rig, p []byte) {
	r.full.expect(0, p[:min(40, len(p))])
	if len(p) > 40 {
		r.full.expect(512, p[40:])
	}
}

// leads makes a lead of segments.
func leads(s ...rawpeer.Segment) func(*rig) [][]byte {
	return func(*rig) (out [][]byte) {
		for _, x := range s {
			out = append(out, x.Octets())
		}
		return out
	}
}

func sendInvalidate(msn, stag uint32, p []byte) rawpeer.Segment {
	return rawpeer.Segment{Op: rdmap.SendInvalidate, MSN: msn, Inv: stag, Payload: p}
}

// refusedInvalidation is a Send with Invalidate of an STag that the peer may not
// have invalidated. Its payload is delivered first (RFC 5040 5.3), the receive is
// at fault.
func refusedInvalidation(name string, stag func(*rig) wr.STag, f streamFault) attack {
	status, code := wr.StatusInvalidateSTag, uint16(0x0109)
	switch f {
	case faultSendInvGone: // an operation error, draft 7.8
		status, code = wr.StatusInvalidSTag, 0x0209
	case faultSendInvSTag:
		status = wr.StatusInvalidSTag
	}
	return attack{
		name:  "Send with Invalidate of " + name,
		bad:   func(r *rig) []byte { return sendInvalidate(1, uint32(stag(r)), filled(8)).Octets() },
		fault: f, code: code, echo: echoDDP,
		recvs: []comp{{1, status, 0}, {2, wr.StatusFlushed, 0}},
		after: func(r *rig) { received(r, filled(8)) },
	}
}

var sendAttacks = []attack{
	{
		name: "MSN 2 first", bad: seg(rawpeer.Send(2, filled(3))),
		fault: faultSendMSNGap, code: 0x1203, echo: echoDDP, event: wr.EventRQMSNGap,
	},
	{
		name: "MSN 0 first", bad: seg(rawpeer.Send(0, filled(3))),
		fault: faultSendMSNRange, code: 0x1203, echo: echoDDP, event: wr.EventRQMSNRange,
	},
	{
		name: "MSN far away", bad: seg(rawpeer.Send(0x80000001, filled(3))),
		fault: faultSendMSNRange, code: 0x1203, echo: echoDDP, event: wr.EventRQMSNRange,
	},
	{
		name: "MSN of the receive behind the last", bad: seg(rawpeer.Send(3, filled(3))),
		fault: faultSendMSNRange, code: 0x1203, echo: echoDDP, event: wr.EventRQMSNRange,
	},
	{
		name: "empty Send with MSN 2", bad: seg(rawpeer.Send(2, nil)),
		fault: faultSendMSNGap, code: 0x1203, echo: echoDDP, event: wr.EventRQMSNGap,
	},
	{
		name: "MSN repeated", lead: leads(rawpeer.Send(1, filled(3))), bad: seg(rawpeer.Send(1, filled(4))),
		fault: faultSendMSNRange, code: 0x1203, echo: echoDDP, event: wr.EventRQMSNRange,
		recvs: []comp{{1, wr.StatusSuccess, 3}, {2, wr.StatusFlushed, 0}},
		after: func(r *rig) { received(r, filled(3)) },
	},
	{
		name:  "MSN changes within a message",
		lead:  leads(rawpeer.Segment{More: true, Op: rdmap.Send, MSN: 1, Payload: filled(5)}),
		bad:   seg(rawpeer.Segment{Op: rdmap.Send, MSN: 2, MO: 5, Payload: filled(5)}),
		fault: faultSendMSNGap, code: 0x1203, echo: echoDDP, event: wr.EventRQMSNGap,
		after: func(r *rig) { received(r, filled(5)) },
	},
	{
		name: "MO in a first segment", bad: seg(rawpeer.Segment{Op: rdmap.Send, MSN: 1, MO: 1, Payload: filled(5)}),
		fault: faultSendMO, code: 0x1204, echo: echoDDP, event: wr.EventRQMSNGap,
	},
	{
		name: "MO beyond the receive", bad: seg(rawpeer.Segment{Op: rdmap.Send, MSN: 1, MO: 0xFFFFFFFF, Payload: filled(5)}),
		fault: faultSendMO, code: 0x1204, echo: echoDDP, event: wr.EventRQMSNGap,
	},
	{
		name:  "MO with a gap",
		lead:  leads(rawpeer.Segment{More: true, Op: rdmap.Send, MSN: 1, Payload: filled(5)}),
		bad:   seg(rawpeer.Segment{Op: rdmap.Send, MSN: 1, MO: 6, Payload: filled(5)}),
		fault: faultSendMO, code: 0x1204, echo: echoDDP, event: wr.EventRQMSNGap,
		after: func(r *rig) { received(r, filled(5)) },
	},
	{
		name:  "MO repeated",
		lead:  leads(rawpeer.Segment{More: true, Op: rdmap.Send, MSN: 1, Payload: filled(5)}),
		bad:   seg(rawpeer.Segment{Op: rdmap.Send, MSN: 1, MO: 0, Payload: filled(9)}),
		fault: faultSendMO, code: 0x1204, echo: echoDDP, event: wr.EventRQMSNGap,
		after: func(r *rig) { received(r, filled(5)) },
	},
	{
		name:  "opcode changes within a message",
		lead:  leads(rawpeer.Segment{More: true, Op: rdmap.Send, MSN: 1, Payload: filled(5)}),
		bad:   seg(rawpeer.Segment{Op: rdmap.SendSE, MSN: 1, MO: 5, Payload: filled(5)}),
		fault: faultOpcode, code: 0x0206, echo: echoDDP, event: wr.EventUnexpectedOpcode,
		after: func(r *rig) { received(r, filled(5)) },
	},
	{
		name: "Send with no receive left", lead: leads(rawpeer.Send(1, filled(64)), rawpeer.Send(2, nil)), bad: seg(rawpeer.Send(3, filled(1))),
		fault: faultNoReceive, code: 0x1202, echo: echoDDP, event: wr.EventRQMSNRange,
		recvs: []comp{{1, wr.StatusSuccess, 64}, {2, wr.StatusSuccess, 0}},
		after: func(r *rig) { received(r, filled(64)) },
	},
	{
		name: "empty Send with no receive left", lead: leads(rawpeer.Send(1, nil), rawpeer.Send(2, nil)), bad: seg(rawpeer.Send(3, nil)),
		fault: faultNoReceive, code: 0x1202, echo: echoDDP, event: wr.EventRQMSNRange,
		recvs: []comp{{1, wr.StatusSuccess, 0}, {2, wr.StatusSuccess, 0}},
	},
	{
		name: "Send too long by one octet", bad: seg(rawpeer.Send(1, filled(recvSize+1))),
		fault: faultSendTooLong, code: 0x1205, echo: echoDDP,
		recvs: []comp{{1, wr.StatusBaseBounds, 0}, {2, wr.StatusFlushed, 0}},
	},
	{
		name:  "Send too long in its last segment",
		lead:  leads(rawpeer.Segment{More: true, Op: rdmap.Send, MSN: 1, Payload: filled(60)}),
		bad:   seg(rawpeer.Segment{Op: rdmap.Send, MSN: 1, MO: 60, Payload: filled(5)}),
		fault: faultSendTooLong, code: 0x1205, echo: echoDDP,
		recvs: []comp{{1, wr.StatusBaseBounds, 0}, {2, wr.StatusFlushed, 0}},
		after: func(r *rig) { received(r, filled(60)) },
	},
	{
		name: "second Send too long", lead: leads(rawpeer.Send(1, filled(1))), bad: seg(rawpeer.Send(2, filled(4000))),
		fault: faultSendTooLong, code: 0x1205, echo: echoDDP,
		recvs: []comp{{1, wr.StatusSuccess, 1}, {2, wr.StatusBaseBounds, 0}},
		after: func(r *rig) { received(r, filled(1)) },
	},
	refusedInvalidation("nothing", func(r *rig) wr.STag { return r.gone }, faultSendInvGone),
	refusedInvalidation("zero", func(*rig) wr.STag { return 0 }, faultSendInvSTag),
	refusedInvalidation("zero with a key", func(*rig) wr.STag { return 0x33 }, faultSendInvSTag),
	refusedInvalidation("a wrong key", func(r *rig) wr.STag { return r.full.stag ^ 0x80 }, faultSendInvSTag),
	refusedInvalidation("a region without remote right", func(r *rig) wr.STag { return r.private.stag }, faultSendInvAccess),
	refusedInvalidation("a region of another PD", func(r *rig) wr.STag { return r.foreign.stag }, faultSendInvPD),
	refusedInvalidation("a region of another QP", func(r *rig) wr.STag { return r.scoped.stag }, faultSendInvPD),
	refusedInvalidation("a region closed to it", func(r *rig) wr.STag { return r.pinned.stag }, faultSendInvAccess),
	withoutRights(refusedInvalidation("a region, on a QP without rights", func(r *rig) wr.STag { return r.full.stag }, faultSendInvAccess)),
	withoutRights(refusedInvalidation("nothing, on a QP without rights", func(r *rig) wr.STag { return r.gone }, faultSendInvAccess)),
}

// withoutRights has the queue pair take no inbound RDMA Read and no Write.
func withoutRights(a attack) attack {
	a.set = func(c *setup) { c.noRead, c.noWrite = true, true }
	return a
}
