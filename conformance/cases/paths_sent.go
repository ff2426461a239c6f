package cases

import (
	"net"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// pathsSent is what goes out, by each way: copied or from where it is, all at once or as
// the socket takes it.
var pathsSent = []conformance.Case{
	{
		Name: "5.2/sent-by-each-way", Need: conformance.NeedAPI, Run: sentByEachWay,
		Keys: []string{"R5041-5.2-M6", "R5041-5.3-M1", "R5041-5.3-M2", "R5044-4.1-M1", "R5044-4.1-M2", "R5044-4.3-M2"},
	},
}

// sentLengths are those of the messages of a trial, posted together: around 2 KiB, from where
// on payload is not copied, with each pad; around a segment of 32 KiB, and much longer.
var sentLengths = []int{1, 2046, 2047, 2048, 2049, 2050, 2051, 32749, 32750, 32751, 32754, 32755, 70001, 300_002, 3}

// sentByEachWay posts Sends, RDMA Writes and, on the peer's behalf, the answers to RDMA
// Reads, with CRC and markers and without, to a socket that takes a lot and to one that
// takes little. Behind them comes a request that cannot be done: what was posted before it
// goes out all the same, and nothing of it.
func sentByEachWay(t *conformance.T) {
	p := newPaths(t)
	turn := 0
	for _, op := range []verbs.Op{verbs.OpSend, verbs.OpWrite, verbs.OpRead} {
		for _, r := range []route{{}, {crc: true}, {markers: true}, {crc: true, markers: true}} {
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
func (p *paths) sent(op verbs.Op, r route, slow bool) {
	far, near := p.pair()
	defer func() { _ = far.Close() }()
	if slow {
		require.NoError(p.t, near.(*net.TCPConn).SetWriteBuffer(4<<10))
	}
	if r.server == blocking {
		near = &tape{Conn: near}
	}
	v := &prey{
		paths: p, route: r, x: &trespass{}, qp: p.newQP(verbs.QPConfig{IRD: 64}), want: []verbs.Completion{},
		mpaWire: mpaWire{test: p.t, wire: far, in: mpaLane{markers: r.markers, crc: r.crc}, out: mpaLane{markers: r.markers, crc: r.crc}},
	}
	begin(p.t, v.qp, verbs.Stream{Conn: near, Role: asInitiator, CRC: r.crc, MarkersIn: r.markers, MarkersOut: r.markers})
	a, b := v.lay(100_000, allRights), v.lay(300_002, allRights)
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
		v.shut()
	} else {
		v.expect(aTerminate(0x0000, nil, false))
	}
	v.silent()
	_ = far.Close()
	require.Equal(p.t, v.want, served(), "the completions")
	if op == verbs.OpRead {
		v.raised = append(v.raised, raising{verbs.Event{ID: verbs.EventLLPCloseComplete, QP: v.qp.ID()}, "the end"})
	}
	p.unchanged()
	p.clear()
	require.NoError(p.t, v.qp.Destroy())
}

// octetsOf is what message i of n octets is made of.
func (v *prey) octetsOf(op verbs.Op, i, n int, a, b *plot) []byte {
	if op == verbs.OpRead {
		return v.untouched(b, 300_002-n, n)
	}
	k := min(n/3, 90_000)
	return append(v.untouched(a, 7, k), v.untouched(b, i%2*(300_002-(n-k)), n-k)...)
}

// untouched are n octets of a plot as they were.
func (v *prey) untouched(p *plot, off, n int) []byte {
	return append([]byte(nil), v.ground.first[p.off+off:p.off+off+n]...)
}

// arrives reads a whole message, and compares each header and each octet.
func (v *prey) arrives(op verbs.Op, i int, data []byte) {
	off := 0
	for last := false; !last; {
		u := v.next()
		last = u[0]&0x40 != 0
		var head []byte
		switch op {
		case verbs.OpSend:
			head = untagged(u[0]&0x40|moreUntagged, opSend, 0, 0, uint32(i+1), uint32(off), nil)
		case verbs.OpWrite:
			head = tagged(u[0]&0x40|moreTagged, opWrite, uint32(0x5000+i), 1<<32-1000+uint64(off), nil)
		default:
			head = tagged(u[0]&0x40|moreTagged, opReadResponse, uint32(0x5000+i), 1<<32-1000+uint64(off), nil)
		}
		require.Equal(v.paths.t, head, u[:len(head)], "the header of message %d behind %d octets", i, off)
		n := len(u) - len(head)
		require.LessOrEqual(v.paths.t, off+n, len(data), "message %d is too long", i)
		same(v.paths.t, data[off:off+n], u[len(head):], "message %d from %d on", i, off)
		off += n
	}
	require.Equal(v.paths.t, len(data), off, "the length of message %d", i)
}
