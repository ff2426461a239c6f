package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// pathsTagged is what a peer may not place, by each way: RFC 5041 7.1, RFC 5040 7.2 and
// 8.1.1, verbs draft 7.6.3 and 7.10.6.2, figures 21 and 24.
var pathsTagged = []conformance.Case{
	apiCase("7.1/writes-by-each-way", func(t *conformance.T) { byEachWay(t, wrongSTags) }, "R5041-7.1-M2", "R5041-7.1-M3"),
	apiCase("7.1/writes-beyond-by-each-way", func(t *conformance.T) { byEachWay(t, wrongPlaces) },
		"R5041-7.1-M2", "R5041-7.1-M3", "R5040-8.1.1-M4"),
	apiCase("7.1/writes-barred-by-each-way", func(t *conformance.T) { byEachWay(t, wrongRights) },
		"R5041-7.1-M2", "R5041-7.1-M3", "R5041-8.2-M1", "R5041-8.2-M2", "R5041-8.2-M3", "R5040-8.1.1-M2", "R5040-8.1.1-M3"),
	apiCase("7.1/writes-out-of-turn-by-each-way", func(t *conformance.T) { byEachWay(t, outOfTurn) }, "R5041-7.1-M3"),
	apiCase("5.2/responses-by-each-way", func(t *conformance.T) { byEachWay(t, wrongResponses) },
		"R5041-7.1-M2", "R5041-7.1-M3", "R5040-8.1.1-M4", "RV-6.2.2.3-M4"),
}

// toRegion is an RDMA Write of the way's payload to a region of as many octets, from octet
// off of it on.
func toRegion(access verbs.Access, off int64) func(*trial) []byte {
	return func(v *trial) []byte {
		p := v.guarded(v.n, access)
		return aWrite(p.tag(), p.Base()+uint64(off), payload(1, v.n))
	}
}

// inPieces are the routes of segments that come in pieces.
func inPieces(r delivery) bool { return r.cutting != uncut }

// begun is a first segment of a tagged message, which belongs where it says.
func (v *trial) begun(control byte, p *guardedRegion, off int, octets []byte) {
	p.gets(off, octets)
	v.lead = append(v.lead, tagged(moreTagged, control, p.tag(), p.at(off), octets))
}

// wrongSTags name nothing that a Write may be for.
var wrongSTags = []pathFault{
	{what: "no STag", code: 0x1100, event: verbs.EventProtSTag, arrange: func(v *trial) []byte {
		return aWrite(0x00F00000, 0x10000, payload(1, v.n))
	}},
	{what: "STag zero", code: 0x1100, event: verbs.EventProtSTag, arrange: func(v *trial) []byte {
		return aWrite(0, v.sink.TO, payload(1, v.n))
	}},
	{what: "another key", code: 0x1100, event: verbs.EventProtSTag, arrange: func(v *trial) []byte {
		p := v.guarded(v.n, allRights)
		return aWrite(p.tag()^1, p.at(0), payload(1, v.n))
	}},
	{what: "an Invalid STag", code: 0x1100, event: verbs.EventProtSTag, arrange: func(v *trial) []byte {
		p := v.guarded(v.n, allRights)
		run(v.faultMatrix.t, v.qp, verbs.Request{Op: verbs.OpInvalidate, Invalidate: p.STag()}, verbs.StatusSuccess)
		return aWrite(p.tag(), p.at(0), payload(1, v.n))
	}},
	{what: "an STag that the peer has invalidated", code: 0x1100, event: verbs.EventProtSTag, arrange: func(v *trial) []byte {
		p := v.guarded(v.n, allRights)
		v.lead = append(v.lead, aSendInv(1, p.tag(), nil))
		v.want[firstRecv].Status, v.want[firstRecv].Invalidated, v.want[firstRecv].HasInvalidated = verbs.StatusSuccess, p.STag(), true
		return aWrite(p.tag(), p.at(0), payload(1, v.n))
	}},
	{what: "a region that goes meanwhile", only: inPieces, code: 0x1100, event: verbs.EventProtSTag, arrange: func(v *trial) []byte {
		p := v.guarded(v.n, allRights)
		v.between = p.deregister
		return aWrite(p.tag(), p.at(0), payload(1, v.n))
	}},
}

// wrongPlaces are Writes, some octets of which are not in what is open to the peer.
var wrongPlaces = []pathFault{
	{what: "one octet below", code: 0x1101, event: verbs.EventProtBounds, arrange: toRegion(allRights, -1)},
	{what: "one octet beyond", code: 0x1101, event: verbs.EventProtBounds, arrange: toRegion(allRights, 1)},
	{what: "the last octet beyond, of a second segment", code: 0x1101, event: verbs.EventProtBounds, arrange: func(v *trial) []byte {
		p := v.guarded(2*v.n-1, allRights)
		v.begun(opWrite, p, 0, payload(2, v.n))
		return aWrite(p.tag(), p.at(v.n), payload(1, v.n))
	}},
	{what: "a region far away", code: 0x1101, event: verbs.EventProtBounds, arrange: toRegion(allRights, 1<<40)},
	{what: "a wrap from within the region", code: 0x1103, event: verbs.EventProtWrap, arrange: func(v *trial) []byte {
		p := v.guardedIn(v.pd, v.n, verbs.RegionConfig{Access: allRights, VA: ^uint64(0) - uint64(v.n)})
		return aWrite(p.tag(), p.at(v.n-1), payload(1, v.n))
	}},
	{what: "one octet beyond a window", code: 0x1101, event: verbs.EventProtBounds, arrange: func(v *trial) []byte {
		p := v.guarded(v.n+2, allRights|verbs.BindWindow)
		return aWrite(v.window(v.qp, p, 1, v.n, remoteRights), p.at(2), payload(1, v.n))
	}},
}

// wrongRights are Writes to what others may write to, or nobody.
var wrongRights = []pathFault{
	{what: "no remote right", code: 0x1100, event: verbs.EventProtAccess, arrange: toRegion(verbs.LocalRead|verbs.LocalWrite, 0)},
	{what: "remote read only", code: 0x1100, event: verbs.EventProtAccess, arrange: toRegion(verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead, 0)},
	{what: "a window for reading", code: 0x1100, event: verbs.EventProtAccess, arrange: func(v *trial) []byte {
		p := v.guarded(v.n, allRights|verbs.BindWindow)
		return aWrite(v.window(v.qp, p, 0, v.n, verbs.RemoteRead), p.at(0), payload(1, v.n))
	}},
	{
		what: "no inbound Writes", qp: verbs.QPConfig{NoInboundWrite: true}, code: 0x1100, event: verbs.EventWriteNotEnabled,
		arrange: toRegion(allRights, 0),
	},
	{what: "another PD", code: 0x1102, event: verbs.EventProtPD, arrange: func(v *trial) []byte {
		p := v.guardedIn(v.foreign, v.n, verbs.RegionConfig{Access: allRights})
		return aWrite(p.tag(), p.at(0), payload(1, v.n))
	}},
	{what: "another queue pair's region", code: 0x1102, event: verbs.EventProtPD, arrange: func(v *trial) []byte {
		p := v.guardedIn(v.pd, v.n, verbs.RegionConfig{Access: allRights, QP: v.other})
		return aWrite(p.tag(), p.at(0), payload(1, v.n))
	}},
	{what: "another queue pair's window", code: 0x1102, event: verbs.EventProtPD, arrange: func(v *trial) []byte {
		p := v.guarded(v.n, allRights|verbs.BindWindow)
		return aWrite(v.window(v.other, p, 0, v.n, remoteRights), p.at(0), payload(1, v.n))
	}},
}

// outOfTurn are Writes where another message is not over.
var outOfTurn = []pathFault{
	{what: "another STag within a message", code: 0x0206, event: verbs.EventUnexpectedOpcode, arrange: func(v *trial) []byte {
		v.begun(opWrite, v.guarded(v.n, allRights), 0, payload(2, v.n))
		return toRegion(allRights, 0)(v)
	}},
	{what: "a Write within a Read Response", code: 0x0206, event: verbs.EventUnexpectedOpcode, arrange: func(v *trial) []byte {
		v.begun(opReadResponse, v.sinkIn(0), 0, payload(2, v.n-1))
		return aWrite(uint32(v.sink.STag), v.sink.TO+uint64(v.n-1), payload(1, v.n)[:1])
	}},
	{what: "a Write of the same STag within a Read Response", code: 0x0206, event: verbs.EventUnexpectedOpcode, arrange: func(v *trial) []byte {
		p := v.sinkIn(v.n)
		v.begun(opReadResponse, p, v.n, payload(2, v.n-1))
		return aWrite(p.tag(), p.at(0), payload(1, v.n))
	}},
}

// sinkIn makes the RDMA Read's sink one with so many octets of its region before and behind it.
func (v *trial) sinkIn(around int) *guardedRegion {
	p := v.guarded(v.n+2*around, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteWrite)
	v.sink = p.sge(around, v.n)
	return p
}

// response is a whole answer of n octets, from octet off of the sink on.
func (v *trial) response(off, n int) []byte {
	return aReadResponse(uint32(v.sink.STag), v.sink.TO+uint64(off), payload(1, n))
}

// sinkOf has a good answer come to a sink with these rights.
func sinkOf(access verbs.Access) func(*trial) []byte {
	return func(v *trial) []byte {
		v.sink = v.guarded(v.n, access).sge(0, v.n)
		return v.response(0, v.n)
	}
}

var wrongResponses = []pathFault{
	{what: "no Read", code: 0x0206, event: verbs.EventUnexpectedOpcode, arrange: func(v *trial) []byte {
		v.idle = true
		return v.response(0, v.n)
	}},
	{what: "another STag", code: 0x1100, event: verbs.EventProtSTag, arrange: func(v *trial) []byte {
		p := v.guarded(v.n, allRights)
		return aReadResponse(p.tag(), p.at(0), payload(1, v.n))
	}},
	{what: "another STag at the same TO", code: 0x1100, event: verbs.EventProtSTag, arrange: func(v *trial) []byte {
		p := v.guardedIn(v.pd, v.n, verbs.RegionConfig{Access: allRights, VA: v.sink.TO})
		return aReadResponse(p.tag(), v.sink.TO, payload(1, v.n))
	}},
	{what: "another key", code: 0x1100, event: verbs.EventProtSTag, arrange: func(v *trial) []byte {
		return aReadResponse(uint32(v.sink.STag)^1, v.sink.TO, payload(1, v.n))
	}},
	{what: "the next TO", code: 0x1101, event: verbs.EventProtBounds, arrange: func(v *trial) []byte {
		v.sinkIn(8)
		return v.response(1, v.n)
	}},
	{what: "the TO before", code: 0x1101, event: verbs.EventProtBounds, arrange: func(v *trial) []byte {
		v.sinkIn(8)
		return v.response(-1, v.n)
	}},
	{what: "a later part first", code: 0x1101, event: verbs.EventProtBounds, arrange: func(v *trial) []byte { return v.response(1, v.n-1) }},
	{what: "one octet too many", code: 0x1101, event: verbs.EventProtBounds, arrange: func(v *trial) []byte {
		v.sinkIn(8)
		return v.response(0, v.n+1)
	}},
	{what: "one octet too few", code: 0x1101, event: verbs.EventProtBounds, arrange: func(v *trial) []byte {
		v.sinkIn(0).gets(0, payload(1, v.n-1))
		return v.response(0, v.n-1)
	}},
	{what: "a second segment behind a gap", code: 0x1101, event: verbs.EventProtBounds, arrange: func(v *trial) []byte {
		v.begun(opReadResponse, v.sinkIn(0), 0, payload(2, 2))
		return v.response(3, v.n-3)
	}},
	{what: "a second segment over the first", code: 0x1101, event: verbs.EventProtBounds, arrange: func(v *trial) []byte {
		v.begun(opReadResponse, v.sinkIn(0), 0, payload(2, 2))
		return v.response(1, v.n-1)
	}},
	{what: "a second segment one octet too long", code: 0x1101, event: verbs.EventProtBounds, arrange: func(v *trial) []byte {
		p := v.sinkIn(v.n)
		v.begun(opReadResponse, p, v.n, payload(2, 1))
		return v.response(1, v.n)
	}},
	{what: "more behind the last octet", code: 0x1101, event: verbs.EventProtBounds, arrange: func(v *trial) []byte {
		p := v.sinkIn(v.n)
		v.begun(opReadResponse, p, v.n, payload(2, v.n))
		return v.response(v.n, v.n)
	}},
	{what: "a sink without the right", code: 0x1100, read: verbs.StatusAccess, arrange: sinkOf(verbs.LocalRead | verbs.LocalWrite)},
	{what: "a sink for reading", code: 0x1100, read: verbs.StatusAccess, arrange: sinkOf(verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead)},
	{what: "a sink that is gone", code: 0x1100, read: verbs.StatusInvalidSTag, arrange: func(v *trial) []byte {
		p := v.sinkIn(0)
		v.meanwhile = func() { require.NoError(v.faultMatrix.t, p.give()) }
		return v.response(0, v.n)
	}},
	{what: "a sink that goes meanwhile", only: inPieces, code: 0x1100, read: verbs.StatusInvalidSTag, arrange: func(v *trial) []byte {
		v.between = v.sinkIn(0).deregister
		return v.response(0, v.n)
	}},
	{
		what: "no inbound Writes", qp: verbs.QPConfig{NoInboundWrite: true}, code: 0x1100, event: verbs.EventWriteNotEnabled,
		arrange: func(v *trial) []byte { return v.response(0, v.n) },
	},
	{
		what: "a Write to a sink with the local right", qp: verbs.QPConfig{ReadIntoLocal: true}, code: 0x1100, event: verbs.EventProtAccess,
		arrange: func(v *trial) []byte {
			_ = sinkOf(verbs.LocalWrite)(v)
			return aWrite(uint32(v.sink.STag), v.sink.TO, payload(1, v.n))
		},
	},
	{what: "a Read Response within a Write", code: 0x0206, event: verbs.EventUnexpectedOpcode, arrange: func(v *trial) []byte {
		v.begun(opWrite, v.guarded(v.n, allRights), 0, payload(2, v.n))
		return v.response(0, v.n)
	}},
	{what: "a Read Response within a Write to the sink", code: 0x0206, event: verbs.EventUnexpectedOpcode, arrange: func(v *trial) []byte {
		v.begun(opWrite, v.sinkIn(1), 0, payload(2, 1))
		return v.response(0, v.n)
	}},
}

// pathsSound is what is right, by each way: all of it is placed where it belongs, and no
// octet of a header, a pad or a CRC field is.
var pathsSound = []conformance.Case{
	apiCase("5.3/placed-by-each-way", func(t *conformance.T) { byEachWay(t, soundOnes) },
		"R5041-5.2-M6", "R5041-4.3-M14", "R5041-5.3-M3", "R5044-4.1-M2", "R5044-4.1-M3"),
}

// placed is the ULPDU of a sound message, and that what went before it was done.
func (v *trial) placed(i int, p *guardedRegion, off int) []byte {
	p.gets(off, payload(1, v.n))
	if i >= 0 {
		v.want[i].Status = verbs.StatusSuccess
	}
	return payload(1, v.n)
}

// sound is a fault that is none. No RDMA Read is posted, or the stream could not end well
// without its answer.
func sound(what string, plot func(*trial) []byte) pathFault {
	return pathFault{what: what, event: verbs.EventLLPCloseComplete, spoil: filledUp, arrange: func(v *trial) []byte {
		v.idle = true
		return plot(v)
	}}
}

// filledUp makes an FPDU whose pad is not of zeros, and, without CRCs, whose CRC field is
// not either: both are of no account (RFC 5044 4.1).
func filledUp(v *trial, u []byte) []byte {
	x := twist{pad: 0xEE}
	if !v.crc {
		x.crc = func(uint32) uint32 { return 0xA5A5A5A5 }
	}
	return v.out.twisted(u, x)
}

var soundOnes = []pathFault{
	sound("a Write", func(v *trial) []byte {
		p := v.guarded(v.n, allRights)
		return aWrite(p.tag(), p.at(0), v.placed(-1, p, 0))
	}),
	sound("the second segment of a Write", func(v *trial) []byte {
		p := v.guarded(2*v.n, allRights)
		v.begun(opWrite, p, 0, payload(2, v.n))
		return aWrite(p.tag(), p.at(v.n), v.placed(-1, p, v.n))
	}),
	sound("a Write to the queue pair's own region", func(v *trial) []byte {
		p := v.guardedIn(v.pd, v.n, verbs.RegionConfig{Access: allRights, QP: v.qp})
		return aWrite(p.tag(), p.at(0), v.placed(-1, p, 0))
	}),
	sound("a Write through a window", func(v *trial) []byte {
		p := v.guarded(v.n+2, allRights|verbs.BindWindow)
		return aWrite(v.window(v.qp, p, 1, v.n, remoteRights), p.at(1), v.placed(-1, p, 1))
	}),
	sound("a Send", func(v *trial) []byte {
		v.want[firstRecv].Bytes = uint32(v.n)
		v.placed(firstRecv, v.room(v.n)[0], 0)
		return part(lastUntagged, 1, 0, v.n)
	}),
	sound("a Send with room to spare", func(v *trial) []byte {
		v.want[firstRecv].Bytes = uint32(v.n)
		v.placed(firstRecv, v.room(v.n + 100)[0], 0)
		return part(lastUntagged, 1, 0, v.n)
	}),
	sound("a Send into three pieces", func(v *trial) []byte {
		v.want[firstRecv].Status, v.want[firstRecv].Bytes = verbs.StatusSuccess, uint32(v.n)
		list := v.room(v.n-3, 2, 7)
		data := payload(1, v.n)
		list[0].gets(0, data[:v.n-3])
		list[1].gets(0, data[v.n-3:v.n-1])
		list[2].gets(0, data[v.n-1:])
		return part(lastUntagged, 1, 0, v.n)
	}),
	sound("the second segment of a Send, over two pieces", func(v *trial) []byte {
		v.want[firstRecv].Status, v.want[firstRecv].Bytes = verbs.StatusSuccess, uint32(3+v.n)
		list := v.room(4, v.n)
		v.lead = [][]byte{untagged(moreUntagged, opSend, 0, 0, 1, 0, payload(2, 3))}
		data := payload(1, v.n)
		list[0].gets(0, append(payload(2, 3), data[0]))
		list[1].gets(0, data[1:])
		return part(lastUntagged, 1, 3, v.n)
	}),
	sound("a Send with Invalidate", func(v *trial) []byte {
		p := v.guarded(8, allRights)
		v.want[firstRecv].Bytes, v.want[firstRecv].Invalidated, v.want[firstRecv].HasInvalidated = uint32(v.n), p.STag(), true
		v.placed(firstRecv, v.room(v.n)[0], 0)
		return aSendInv(1, p.tag(), payload(1, v.n))
	}),
	{what: "a Read Response", event: verbs.EventLLPCloseComplete, spoil: filledUp, arrange: func(v *trial) []byte {
		v.placed(itsRead, v.sinkIn(0), 0)
		return v.response(0, v.n)
	}},
	{
		what: "a Read Response into a sink with the local right", qp: verbs.QPConfig{ReadIntoLocal: true, NoInboundWrite: true},
		event: verbs.EventLLPCloseComplete, spoil: filledUp, arrange: func(v *trial) []byte {
			p := v.guarded(v.n, verbs.LocalWrite)
			v.sink = p.sge(0, v.n)
			v.placed(itsRead, p, 0)
			return v.response(0, v.n)
		},
	},
	{what: "the second segment of a Read Response", event: verbs.EventLLPCloseComplete, spoil: filledUp, arrange: func(v *trial) []byte {
		p := v.guarded(2*v.n, verbs.LocalWrite|verbs.RemoteWrite)
		v.sink = p.sge(0, 2*v.n)
		v.begun(opReadResponse, p, 0, payload(2, v.n))
		v.placed(itsRead, p, v.n)
		return v.response(v.n, v.n)
	}},
}
