package cases

import (
	"encoding/binary"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// fill writes octets into a piece of memory that differ from seed to seed.
func fill(b []byte, seed int) []byte {
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed*31 + 1)
	}
	return b
}

// end is a queue pair with the region that it moves data from and to.
type end struct {
	qp *verbs.QP
	mr *verbs.MR
}

func (n *node) end() end { return end{n.qp, n.mr} }

// sends has one end send octets to the other, and checks both completions and every
// octet. Both regions are VA-based over Memory and of at least 512 octets.
func sends(t *conformance.T, from, to end) {
	const n = 300
	f, g := attributes(t, from.qp), attributes(t, to.qp)
	want := fill(from.mr.Bytes()[:n], int(f.ID))
	clear(to.mr.Bytes()[:512])
	r := verbs.Recv{ID: 0xEE01, SGL: to.mr.SGL(0, 512)}
	if g.SRQ != nil {
		postRecv(t, g.SRQ, r)
	} else {
		postRecv(t, to.qp, r)
	}
	run(t, from.qp, verbs.Request{ID: 0x5E01, Op: verbs.OpSend, SGL: from.mr.SGL(0, n)}, verbs.StatusSuccess)
	completes(t, g.RecvCQ, verbs.Completion{ID: r.ID, QP: g.ID, Op: verbs.OpRecv, Bytes: n})
	require.Equal(t, want, to.mr.Bytes()[:n], "what was sent")
	require.Equal(t, make([]byte, 512-n), to.mr.Bytes()[n:512], "what is behind it")
}

// moves has two connected ends send to each other, and a write to and read from b:
// everything works. Their CQs have to be empty.
func moves(t *conformance.T, a, b end) {
	sends(t, a, b)
	sends(t, b, a)
	writes(t, a, b.mr.Remote(256), b.mr.Bytes()[256:512])
	reads(t, a, b.mr.Remote(256), b.mr.Bytes()[256:512])
}

// writes has an end write as many octets as dst has to an address of its peer's,
// which is dst to the program there.
func writes(t *conformance.T, from end, to verbs.Remote, dst []byte) {
	want := fill(from.mr.Bytes()[:len(dst)], len(dst))
	clear(dst)
	run(t, from.qp, verbs.Request{ID: 0x5E02, Op: verbs.OpWrite, SGL: from.mr.SGL(0, len(dst)), Remote: to}, verbs.StatusSuccess)
	// An RDMA Write completes when the LLP has it. The answer to a Read comes
	// behind its placement (RFC 5040 5.5).
	run(t, from.qp, verbs.Request{ID: 0x5E03, Op: verbs.OpRead}, verbs.StatusSuccess)
	require.Equal(t, want, dst, "what was written")
}

// reads has an end read as many octets as src has from an address of its peer's.
func reads(t *conformance.T, to end, from verbs.Remote, src []byte) {
	fill(src, len(src)+1)
	clear(to.mr.Bytes()[:len(src)])
	run(t, to.qp, verbs.Request{ID: 0x5E04, Op: verbs.OpRead, Local: to.mr.SGE(0, len(src)), Remote: from}, verbs.StatusSuccess)
	require.Equal(t, src, to.mr.Bytes()[:len(src)], "what was read")
}

// terminated reads what a raw peer is sent up to a Terminate Message, which has to
// have this layer, type and code (layer<<12|type<<8|code), and the end of the
// stream behind it.
func terminated(t *conformance.T, p *rawEnd, code uint16) {
	for {
		u := must(p.Next())(t, "waiting for a Terminate Message")
		if u[1]&0x0F != 7 {
			continue
		}
		require.GreaterOrEqual(t, len(u), 22, "the Terminate Message")
		require.Equal(t, uint32(2), binary.BigEndian.Uint32(u[6:]), "its queue number")
		require.Equalf(t, code, binary.BigEndian.Uint16(u[18:]), "its layer, type and code: %#04x", u[18:20])
		break
	}
	require.Error(t, second(p.Next()), "the stream behind the Terminate Message")
}

// remotely tries a write of one octet and then a read of one, each on a stream of
// its own between a new queue pair of the node's PD and a raw peer, and says what
// comes of them: 0 is success, else what the Terminate Message says.
func (n *node) remotely(at verbs.Remote, write, read uint16) {
	for _, try := range []struct {
		what string
		want uint16
		seg  []byte
	}{
		{"write", write, aWrite(uint32(at.STag), at.TO, []byte{0xAB})},
		{"read", read, readRequest(1, at, 1)},
	} {
		qp := n.newQP(verbs.QPConfig{})
		n.t.Logf("remote %s at %v", try.what, at)
		tries(n.t, qp, try.seg, try.want)
		require.NoError(n.t, qp.Destroy())
	}
}

// tries gives an Idle queue pair one segment from a raw peer: either it is taken,
// with want 0, or the stream ends with that Terminate Message.
func tries(t *conformance.T, qp *verbs.QP, ulpdu []byte, want uint16) {
	p := rawPeer(t, qp, asResponder)
	defer func() { _ = p.Close() }()
	require.NoError(t, p.Send(ulpdu))
	if want != 0 {
		terminated(t, p, want)
		return
	}
	msn := uint32(1)
	if ulpdu[1]&0x0F == 1 {
		answered(t, p)
		msn++
	}
	// A Read of nothing, of whatever STag, is answered behind what came before
	// (verbs draft 8.1.3.2).
	require.NoError(t, p.Send(readRequest(msn, verbs.Remote{}, 0)))
	answered(t, p)
}

// answered reads one RDMA Read Response, and its octets.
func answered(t *conformance.T, p *rawEnd) []byte {
	u := must(p.Next())(t, "waiting for an RDMA Read Response")
	require.Equal(t, byte(2), u[1]&0x0F, "the opcode of % x", u)
	return u[14:]
}

// readRequest is the ULPDU of an RDMA Read Request, the raw peer's sink being made
// up.
func readRequest(msn uint32, from verbs.Remote, n uint32) []byte {
	return aReadRequest(msn, read{sinkSTag: nowhere, size: n, stag: uint32(from.STag), to: from.TO})
}

// manyReads is how many postReads posts.
const manyReads = 20

// postReads posts RDMA Reads of one octet each, numbered from 0 on, of an address
// that only a raw peer answers. The queue pair has to have room for them.
func (n *node) postReads(qp *verbs.QP) {
	var reqs []verbs.Request
	for id := range uint64(manyReads) {
		reqs = append(reqs, verbs.Request{ID: id, Op: verbs.OpRead, Local: n.mr.SGE(int(id), 1), Remote: verbs.Remote{STag: 0x700, TO: id}})
	}
	post(n.t, qp, reqs...)
}

// outstanding says that a queue pair, which has work for more, sends exactly that
// many RDMA Read Requests to a raw peer until one is answered, and then one more.
// The queue pair is destroyed then.
func (n *node) outstanding(qp *verbs.QP, p *rawEnd, want int) {
	var first []byte
	for i := range want {
		if u := requested(n.t, p); i == 0 {
			first = u
		}
	}
	// All were posted before: had the queue pair more to send, that would come
	// ahead of the answer to this.
	require.NoError(n.t, p.Send(readRequest(1, verbs.Remote{}, 0)))
	answered(n.t, p)
	stag, to := binary.BigEndian.Uint32(first[18:]), binary.BigEndian.Uint64(first[22:])
	require.NoError(n.t, p.Send(aReadResponse(stag, to, []byte{0x77})))
	requested(n.t, p)
	require.NoError(n.t, p.Send(readRequest(2, verbs.Remote{}, 0)))
	answered(n.t, p)
	cq := attributes(n.t, qp).SendCQ
	completes(n.t, cq, verbs.Completion{ID: 0, QP: qp.ID(), Op: verbs.OpRead})
	require.NoError(n.t, qp.Destroy())
	for cq.Poll(make([]verbs.Completion, manyReads)) > 0 { // there may be some of the others (draft 6.1.4)
	}
}

// requested reads one RDMA Read Request.
func requested(t *conformance.T, p *rawEnd) []byte {
	u := must(p.Next())(t, "waiting for an RDMA Read Request")
	require.Equal(t, byte(1), u[1]&0x0F, "the opcode of % x", u)
	return slices.Clone(u)
}
