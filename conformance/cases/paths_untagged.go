package cases

import (
	"net"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// pathsUntagged is the same for Sends, and for RDMA Read Requests of as many octets: RFC
// 5041 7.1, RFC 5040 4.8 and 5.2.1, verbs draft figures 23 and 24.
var pathsUntagged = []conformance.Case{
	apiCase("7.1/sends-by-each-way", func(t *conformance.T) { byEachWay(t, wrongSends) },
		"R5041-7.1-M1", "R5041-7.1-M3", "R5041-4.3-M6", "R5041-4.3-M14", "RV-6.2.2.3-M3", "RV-6.2.3-M14"),
	apiCase("7.2/reads-by-each-way", func(t *conformance.T) { byEachWay(t, wrongReads) },
		"R5041-7.1-M1", "R5040-8.1.1-M2", "R5040-8.1.1-M3", "R5040-8.1.1-M4", "RV-6.2.2.3-M3"),
	apiCase("4.8/headers-by-each-way", func(t *conformance.T) { byEachWay(t, wrongHeaders) },
		"R5040-4.8-M3", "R5041-7.2-M1", "R5044-8-M1"),
}

// part is a Send's segment of n octets from MO mo on, number msn of the messages.
func part(first byte, msn uint32, mo, n int) []byte {
	return untagged(first, opSend, 0, 0, msn, uint32(mo), payload(1, n))
}

// room makes the first receive one of these lengths, in regions of their own.
func (v *trial) room(lengths ...int) (list []*guardedRegion) {
	v.recv = nil
	for _, n := range lengths {
		p := v.guarded(n, verbs.LocalWrite)
		v.recv = append(v.recv, p.sge(0, n))
		list = append(list, p)
	}
	return list
}

// came is the first segment of a Send, of n octets, which fills as much of a receive that
// has room for all.
func (v *trial) came(n, room int) {
	v.room(room)[0].gets(0, payload(2, n))
	v.lead = append(v.lead, untagged(moreUntagged, opSend, 0, 0, 1, 0, payload(2, n)))
}

// into has a Send of the way's payload come to a receive of the elements.
func into(list func(*trial) []verbs.SGE) func(*trial) []byte {
	return func(v *trial) []byte {
		v.recv = list(v)
		return part(lastUntagged, 1, 0, v.n)
	}
}

// inv is a Send with Invalidate, which is placed before it is refused (RFC 5040 5.3).
func inv(stag func(*trial) uint32) func(*trial) []byte {
	return func(v *trial) []byte {
		v.room(v.n)[0].gets(0, payload(1, v.n))
		return aSendInv(1, stag(v), payload(1, v.n))
	}
}

var wrongSends = []pathFault{
	{what: "one octet too long", code: 0x1205, recv: verbs.StatusBaseBounds, arrange: func(v *trial) []byte {
		v.room(v.n - 1)
		return part(lastUntagged, 1, 0, v.n)
	}},
	{what: "one octet too long for an element, not for its region", code: 0x1205, recv: verbs.StatusBaseBounds, arrange: into(func(v *trial) []verbs.SGE {
		return v.guarded(v.n, verbs.LocalWrite).sgl(0, v.n-1)
	})},
	{what: "one octet too long for two elements", code: 0x1205, recv: verbs.StatusBaseBounds, arrange: func(v *trial) []byte {
		v.room(v.n-2, 1)
		return part(lastUntagged, 1, 0, v.n)
	}},
	{what: "no room at all", code: 0x1205, recv: verbs.StatusBaseBounds, arrange: into(func(*trial) []verbs.SGE { return nil })},
	{what: "a second segment one octet too long", code: 0x1205, recv: verbs.StatusBaseBounds, arrange: func(v *trial) []byte {
		v.came(v.n, 2*v.n-1)
		return part(lastUntagged, 1, v.n, v.n)
	}},
	{what: "a first MO", code: 0x1204, event: verbs.EventRQMSNGap, arrange: func(v *trial) []byte {
		v.room(v.n + 8)
		return part(lastUntagged, 1, 1, v.n)
	}},
	{what: "a gap", code: 0x1204, event: verbs.EventRQMSNGap, arrange: func(v *trial) []byte {
		v.came(v.n, 2*v.n+8)
		return part(lastUntagged, 1, v.n+1, v.n)
	}},
	{what: "the same octets again", code: 0x1204, event: verbs.EventRQMSNGap, arrange: func(v *trial) []byte {
		v.came(v.n, 2*v.n+8)
		return part(lastUntagged, 1, 0, v.n)
	}},
	{what: "the MSN of the second receive", code: 0x1203, event: verbs.EventRQMSNGap, arrange: func(v *trial) []byte { return part(lastUntagged, 2, 0, v.n) }},
	{what: "the MSN behind it", code: 0x1203, event: verbs.EventRQMSNRange, arrange: func(v *trial) []byte { return part(lastUntagged, 3, 0, v.n) }},
	{what: "an MSN of the past", code: 0x1203, event: verbs.EventRQMSNRange, arrange: func(v *trial) []byte { return part(lastUntagged, 0, 0, v.n) }},
	{what: "another MSN within a message", code: 0x1203, event: verbs.EventRQMSNGap, arrange: func(v *trial) []byte {
		v.came(v.n, 2*v.n)
		return part(lastUntagged, 2, v.n, v.n)
	}},
	{what: "no receive", code: 0x1202, event: verbs.EventRQMSNRange, arrange: func(v *trial) []byte {
		v.lead = [][]byte{aSend(1, nil), aSend(2, nil)}
		v.want[firstRecv].Status, v.want[secondRecv].Status = verbs.StatusSuccess, verbs.StatusSuccess
		return part(lastUntagged, 3, 0, v.n)
	}},
	{what: "queue 3", code: 0x1201, event: verbs.EventInvalidQN, arrange: func(v *trial) []byte {
		return untagged(lastUntagged, opSend, 0, 3, 1, 0, payload(1, v.n))
	}},
	{what: "another operation within a message", code: 0x0206, event: verbs.EventUnexpectedOpcode, arrange: func(v *trial) []byte {
		v.came(v.n, 2*v.n)
		return untagged(lastUntagged, opSendSE, 0, 0, 1, uint32(v.n), payload(1, v.n))
	}},
	// The receive's own fault (draft figure 23) repeats no header.
	{what: "a receive of memory that is gone", bare: true, recv: verbs.StatusInvalidSTag, arrange: into(func(v *trial) []verbs.SGE {
		p := v.guarded(v.n, verbs.LocalWrite)
		require.NoError(v.faultMatrix.t, p.give())
		return p.sgl(0, v.n)
	})},
	{what: "a receive beyond its region", bare: true, recv: verbs.StatusBaseBounds, arrange: into(func(v *trial) []verbs.SGE {
		return v.guarded(v.n, verbs.LocalWrite).sgl(1, v.n)
	})},
	{what: "a receive before its region", bare: true, recv: verbs.StatusBaseBounds, arrange: into(func(v *trial) []verbs.SGE {
		return v.guarded(v.n, verbs.LocalWrite).sgl(-1, v.n)
	})},
	{what: "a receive without the right", bare: true, recv: verbs.StatusAccess, arrange: into(func(v *trial) []verbs.SGE {
		return v.guarded(v.n, verbs.LocalRead).sgl(0, v.n)
	})},
	{what: "a receive of another PD", bare: true, recv: verbs.StatusInvalidPD, arrange: into(func(v *trial) []verbs.SGE {
		return v.guardedIn(v.foreign, v.n, verbs.RegionConfig{Access: verbs.LocalWrite}).sgl(0, v.n)
	})},
	{what: "a receive that wraps", bare: true, recv: verbs.StatusWrap, arrange: into(func(v *trial) []verbs.SGE {
		p := v.guardedIn(v.pd, v.n, verbs.RegionConfig{Access: verbs.LocalWrite, VA: ^uint64(0) - uint64(v.n)})
		return p.sgl(2, v.n)
	})},
	{what: "a second element of memory that is gone", bare: true, recv: verbs.StatusInvalidSTag, arrange: func(v *trial) []byte {
		list := v.room(v.n/2, v.n)
		require.NoError(v.faultMatrix.t, list[1].give())
		list[0].gets(0, payload(1, v.n)[:v.n/2])
		return part(lastUntagged, 1, 0, v.n)
	}},
	{what: "a receive of memory that goes meanwhile", only: inPieces, bare: true, recv: verbs.StatusInvalidSTag, arrange: func(v *trial) []byte {
		v.between = v.room(v.n)[0].deregister
		return part(lastUntagged, 1, 0, v.n)
	}},
	{what: "Invalidate of another key", code: 0x0109, recv: verbs.StatusInvalidSTag, arrange: inv(func(v *trial) uint32 { return v.guarded(8, allRights).tag() ^ 1 })},
	{what: "Invalidate of another PD's", code: 0x0109, recv: verbs.StatusInvalidateSTag, arrange: inv(func(v *trial) uint32 {
		return v.guardedIn(v.foreign, 8, verbs.RegionConfig{Access: allRights}).tag()
	})},
	{what: "Invalidate of another queue pair's", code: 0x0109, recv: verbs.StatusInvalidateSTag, arrange: inv(func(v *trial) uint32 {
		return v.guardedIn(v.pd, 8, verbs.RegionConfig{Access: allRights, QP: v.other}).tag()
	})},
	{what: "Invalidate without remote right", code: 0x0109, recv: verbs.StatusInvalidateSTag, arrange: inv(func(v *trial) uint32 {
		return v.guarded(8, verbs.LocalRead|verbs.LocalWrite).tag()
	})},
}

// asked is an RDMA Read Request for as many octets as the payload, from octet off of a
// region.
func (v *trial) asked(p *guardedRegion, off int) []byte { return v.asks(p.tag(), p.at(off)) }

func (v *trial) asks(tag uint32, to uint64) []byte {
	return aReadRequest(v.due(), read{nowhere, nowhereTO, uint32(v.n), tag, to})
}

// fromRegion is an RDMA Read from octet off of a region of as many octets as the payload.
func fromRegion(access verbs.Access, off int) func(*trial) []byte {
	return func(v *trial) []byte { return v.asked(v.guarded(v.n, access), off) }
}

// spoiltRequest is a good RDMA Read Request that change spoils.
func spoiltRequest(change func(v *trial, u []byte) []byte) func(*trial) []byte {
	return func(v *trial) []byte { return change(v, fromRegion(allRights, 0)(v)) }
}

var wrongReads = []pathFault{
	{what: "no STag", code: 0x0100, readToo: true, event: verbs.EventIRRQSTag, arrange: func(v *trial) []byte { return v.asks(0x00F00000, 0x10000) }},
	{what: "another key", code: 0x0100, readToo: true, event: verbs.EventIRRQSTag, arrange: func(v *trial) []byte {
		p := v.guarded(v.n, allRights)
		return v.asks(p.tag()^1, p.at(0))
	}},
	{what: "one octet below", code: 0x0101, readToo: true, event: verbs.EventIRRQBounds, arrange: fromRegion(allRights, -1)},
	{what: "one octet beyond", code: 0x0101, readToo: true, event: verbs.EventIRRQBounds, arrange: fromRegion(allRights, 1)},
	{what: "a wrap", code: 0x0104, readToo: true, event: verbs.EventIRRQWrap, arrange: func(v *trial) []byte {
		return v.asked(v.guardedIn(v.pd, v.n, verbs.RegionConfig{Access: allRights, VA: ^uint64(0) - uint64(v.n)}), v.n-1)
	}},
	{what: "no remote right", code: 0x0102, readToo: true, event: verbs.EventIRRQAccess, arrange: fromRegion(verbs.LocalRead|verbs.LocalWrite, 0)},
	{what: "remote write only", code: 0x0102, readToo: true, event: verbs.EventIRRQAccess, arrange: fromRegion(verbs.LocalRead|verbs.LocalWrite|verbs.RemoteWrite, 0)},
	{what: "another PD", code: 0x0103, readToo: true, event: verbs.EventIRRQPD, arrange: func(v *trial) []byte {
		return v.asked(v.guardedIn(v.foreign, v.n, verbs.RegionConfig{Access: allRights}), 0)
	}},
	{what: "another queue pair's region", code: 0x0103, readToo: true, event: verbs.EventIRRQPD, arrange: func(v *trial) []byte {
		return v.asked(v.guardedIn(v.pd, v.n, verbs.RegionConfig{Access: allRights, QP: v.other}), 0)
	}},
	{what: "another queue pair's window", code: 0x0103, readToo: true, event: verbs.EventIRRQPD, arrange: func(v *trial) []byte {
		p := v.guarded(v.n, allRights|verbs.BindWindow)
		return v.asks(v.window(v.other, p, 0, v.n, remoteRights), p.at(0))
	}},
	{what: "one octet beyond a window", code: 0x0101, readToo: true, event: verbs.EventIRRQBounds, arrange: func(v *trial) []byte {
		p := v.guarded(v.n+2, allRights|verbs.BindWindow)
		return v.asks(v.window(v.qp, p, 1, v.n, remoteRights), p.at(2))
	}},
	{
		what: "no inbound Reads", qp: verbs.QPConfig{NoInboundRead: true}, code: 0x1201, event: verbs.EventReadNotEnabled,
		arrange: fromRegion(allRights, 0),
	},
	{what: "the next MSN", code: 0x1203, event: verbs.EventIRRQMSNGap, arrange: spoiltRequest(func(_ *trial, u []byte) []byte { u[13]++; return u })},
	{what: "the MSN before", code: 0x1203, event: verbs.EventIRRQMSNRange, arrange: spoiltRequest(func(_ *trial, u []byte) []byte { u[13]--; return u })},
	{what: "an MO", code: 0x1204, event: verbs.EventInvalidReadRequest, arrange: spoiltRequest(func(_ *trial, u []byte) []byte { u[17] = 28; return u })},
	{what: "not the last segment", code: 0x0207, event: verbs.EventNoLBit, arrange: spoiltRequest(func(_ *trial, u []byte) []byte { u[0] = moreUntagged; return u })},
	{what: "a payload behind it", code: 0x1205, event: verbs.EventInvalidReadRequest, arrange: spoiltRequest(func(v *trial, u []byte) []byte {
		return append(u, payload(1, max(v.n-28, 1))...)
	})},
	{what: "one octet short", code: 0x1000, bare: true, event: verbs.EventInvalidReadRequest, arrange: spoiltRequest(func(_ *trial, u []byte) []byte { return u[:len(u)-1] })},
}

// withHeader is an RDMA Write, or a Send, that would be good but for its first octets.
func withHeader(first, control byte) func(*trial) []byte {
	return func(v *trial) []byte {
		u := part(first, 1, 0, v.n)
		if first&0x80 != 0 {
			u = toRegion(allRights, 0)(v)
		}
		u[0], u[1] = first, control
		return u
	}
}

var wrongHeaders = []pathFault{
	{what: "a tagged segment of DDP 0", code: 0x1104, event: verbs.EventDDPVersion, arrange: withHeader(0xC0, opWrite)},
	{what: "a tagged segment of DDP 3", code: 0x1104, event: verbs.EventDDPVersion, arrange: withHeader(0xC3, opWrite)},
	{what: "an untagged segment of DDP 2", code: 0x1206, event: verbs.EventDDPVersion, arrange: withHeader(0x42, opSend)},
	{what: "a Write of RDMAP 0", code: 0x0205, event: verbs.EventRDMAPVersion, arrange: withHeader(lastTagged, opWrite&0x3F)},
	{what: "a Send of RDMAP 2", code: 0x0205, event: verbs.EventRDMAPVersion, arrange: withHeader(lastUntagged, opSend&0x3F|0x80)},
	{what: "an operation that is none, tagged", code: 0x0206, event: verbs.EventUnexpectedOpcode, arrange: withHeader(lastTagged, 0x4F)},
	{what: "an operation that is none, untagged", code: 0x0206, event: verbs.EventUnexpectedOpcode, arrange: withHeader(lastUntagged, 0x4F)},
	{what: "a tagged Send", code: 0x0206, event: verbs.EventUnexpectedOpcode, arrange: withHeader(lastTagged, opSend)},
	{what: "an untagged Write", code: 0x0206, event: verbs.EventUnexpectedOpcode, arrange: withHeader(lastUntagged, opWrite)},
	{
		what: "a Write with a bad CRC", code: 0x2002, bare: true, event: verbs.EventBadCRC, arrange: toRegion(allRights, 0),
		only: func(r delivery) bool { return r.crc }, spoil: wrongCRC,
	},
	{
		what: "a Send with a bad CRC", code: 0x2002, bare: true, event: verbs.EventBadCRC,
		arrange: func(v *trial) []byte { return part(lastUntagged, 1, 0, v.n) },
		only:    func(r delivery) bool { return r.crc }, spoil: wrongCRC,
	},
	{
		what: "a Read Response with a bad CRC", code: 0x2002, bare: true, event: verbs.EventBadCRC,
		arrange: func(v *trial) []byte { return v.response(0, v.n) },
		only:    func(r delivery) bool { return r.crc }, spoil: wrongCRC,
	},
	{
		what: "a marker that points elsewhere", code: 0x2003, bare: true, event: verbs.EventBadFPDU, arrange: toRegion(allRights, 0),
		only: func(r delivery) bool { return r.markers && r.n > 512 },
		spoil: func(v *trial, u []byte) []byte {
			return v.out.twisted(u, twist{pointer: func(p uint16) uint16 { return p + 4 }})
		},
	},
}

// wrongCRC makes an FPDU whose CRC field is off by a bit.
func wrongCRC(v *trial, u []byte) []byte {
	return v.out.twisted(u, twist{crc: func(good uint32) uint32 { return good ^ 0x00010000 }})
}

// pathsSent is what goes out, by each way: copied or from where it is, all at once or as
// the socket takes it.
var pathsSent = []conformance.Case{
	apiCase("5.2/sent-by-each-way", sentByEachWay,
		"R5041-5.2-M6", "R5041-5.3-M1", "R5041-5.3-M2", "R5044-4.1-M1", "R5044-4.1-M2", "R5044-4.3-M2"),
}

// sentLengths are those of the messages of a trial, posted together: around 2 KiB, from where
// on payload is not copied, with each pad; around a segment of 32 KiB, and much longer.
var sentLengths = []int{1, 2046, 2047, 2048, 2049, 2050, 2051, 32749, 32750, 32751, 32754, 32755, 70001, 300_002, 3}

// sentByEachWay posts Sends, RDMA Writes and, on the peer's behalf, the answers to RDMA
// Reads, with CRC and markers and without, to a socket that takes a lot and to one that
// takes little. Behind them comes a request that cannot be done: what was posted before it
// goes out all the same, and nothing of it.
func sentByEachWay(t *conformance.T) {
	p := newFaultMatrix(t)
	turn := 0
	for _, op := range []verbs.Op{verbs.OpSend, verbs.OpWrite, verbs.OpRead} {
		for _, r := range []delivery{{}, {crc: true}, {markers: true}, {crc: true, markers: true}} {
			for _, slow := range []bool{false, true} {
				r.server = servers[turn%len(servers)]
				turn++
				t.Part("%v, CRC %v, markers %v, slow: %v, %v", op, r.crc, r.markers, slow, r.server)
				p.sent(op, r, slow)
			}
		}
		turn++
	}
	for _, e := range p.raised {
		p.events.are(e.Event)
	}
	t.Part("no event")
	p.quiet()
}

// sent is one trial.
func (p *faultMatrix) sent(op verbs.Op, r delivery, slow bool) {
	v := p.newTrial(&pathFault{}, r, verbs.QPConfig{IRD: 64}, false, func(near net.Conn) {
		if slow {
			require.NoError(p.t, near.(*net.TCPConn).SetWriteBuffer(4<<10))
		}
	})
	v.want = []verbs.Completion{}
	defer v.drop()
	a, b := v.guarded(100_000, allRights), v.guarded(300_002, allRights)
	served := v.serve()
	var reqs []verbs.Request
	for i, n := range sentLengths {
		if op == verbs.OpRead {
			v.send(aReadRequest(uint32(i+1), read{0x5000 + uint32(i), 1<<32 - 1000, uint32(n), b.tag(), b.at(300_002 - n)}))
			continue
		}
		k := min(n/3, 90_000)
		sgl := []verbs.SGE{a.sge(7, k), b.sge(i%2*(300_002-(n-k)), n-k)}
		reqs = append(reqs, verbs.Request{ID: uint64(i + 1), Op: op, SGL: sgl, Remote: verbs.Remote{STag: verbs.STag(0x5000 + i), TO: 1<<32 - 1000}})
		v.want = append(v.want, verbs.Completion{ID: uint64(i + 1), QP: v.qp.ID(), Op: op})
	}
	if op != verbs.OpRead {
		bad := verbs.Request{ID: 100, SGL: []verbs.SGE{b.sge(0, 5000), {STag: 0x00F00000, Length: 5000}}}
		post(p.t, v.qp, append(reqs, bad, verbs.Request{ID: 101})...)
		v.want = append(v.want, verbs.Completion{ID: 100, QP: v.qp.ID(), Status: verbs.StatusInvalidSTag}, verbs.Completion{ID: 101, QP: v.qp.ID(), Status: verbs.StatusFlushed})
	}
	for i, n := range sentLengths {
		v.arrives(op, i, v.octetsOf(op, i, n, a, b))
	}
	if op == verbs.OpRead {
		_ = v.CloseWrite()
	} else {
		v.expect(aTerminate(0x0000, nil, false))
	}
	v.silent("the end of the stream")
	v.drop()
	require.Equal(p.t, v.want, served(), "the completions")
	if op == verbs.OpRead {
		v.raised = append(v.raised, raising{verbs.Event{ID: verbs.EventLLPCloseComplete, QP: v.qp.ID()}, "the end"})
	}
	p.unchanged()
	p.clear()
	require.NoError(p.t, v.qp.Destroy())
}

// octetsOf is what message i of n octets is made of.
func (v *trial) octetsOf(op verbs.Op, i, n int, a, b *guardedRegion) []byte {
	if op == verbs.OpRead {
		return v.untouched(b, 300_002-n, n)
	}
	k := min(n/3, 90_000)
	return append(v.untouched(a, 7, k), v.untouched(b, i%2*(300_002-(n-k)), n-k)...)
}

// untouched are n octets of a plot as they were.
func (v *trial) untouched(p *guardedRegion, off, n int) []byte {
	return append([]byte(nil), v.guardedMemory.first[p.off+off:p.off+off+n]...)
}

// arrives reads a whole message, and compares each header and each octet.
func (v *trial) arrives(op verbs.Op, i int, data []byte) {
	m := v.message()
	want := message{control: opSend, msn: uint32(i + 1)}
	if op != verbs.OpSend {
		want = message{tagged: true, control: either(op == verbs.OpWrite, opWrite, byte(opReadResponse)), stag: uint32(0x5000 + i), to: 1<<32 - 1000}
	}
	require.Equal(v.faultMatrix.t, want, m.address(), "message %d", i)
	same(v.faultMatrix.t, data, m.payload, "message %d", i)
}
