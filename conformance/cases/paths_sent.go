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
