package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// Data that has to arrive, octet by octet, and the operations matrix: two hosts that send each other
// ten of everything.

// fill writes octets into a piece of memory that differ from seed to seed.
func fill(b []byte, seed int) []byte {
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed*31 + 1)
	}
	return b
}

// endpoint is a queue pair with the region that it moves data from and to.
type endpoint struct {
	qp *verbs.QP
	mr *verbs.MR
}

func (n *host) endpoint() endpoint { return endpoint{n.qp, n.mr} }

// sends has one end send octets to the other, and checks both completions and every
// octet. Both regions are VA-based over Memory and of at least 512 octets.
func sends(t *conformance.T, from, to endpoint) {
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
func moves(t *conformance.T, a, b endpoint) {
	sends(t, a, b)
	sends(t, b, a)
	writes(t, a, b.mr.Remote(256), b.mr.Bytes()[256:512])
	reads(t, a, b.mr.Remote(256), b.mr.Bytes()[256:512])
}

// writes has an end write as many octets as dst has to an address of its peer's,
// which is dst to the program there.
func writes(t *conformance.T, from endpoint, to verbs.Remote, dst []byte) {
	want := fill(from.mr.Bytes()[:len(dst)], len(dst))
	clear(dst)
	run(t, from.qp, verbs.Request{ID: 0x5E02, Op: verbs.OpWrite, SGL: from.mr.SGL(0, len(dst)), Remote: to}, verbs.StatusSuccess)
	// An RDMA Write completes when the LLP has it. The answer to a Read comes
	// behind its placement (RFC 5040 5.5).
	run(t, from.qp, verbs.Request{ID: 0x5E03, Op: verbs.OpRead}, verbs.StatusSuccess)
	require.Equal(t, want, dst, "what was written")
}

// reads has an end read as many octets as src has from an address of its peer's.
func reads(t *conformance.T, to endpoint, from verbs.Remote, src []byte) {
	fill(src, len(src)+1)
	clear(to.mr.Bytes()[:len(src)])
	run(t, to.qp, verbs.Request{ID: 0x5E04, Op: verbs.OpRead, Local: to.mr.SGE(0, len(src)), Remote: from}, verbs.StatusSuccess)
	require.Equal(t, src, to.mr.Bytes()[:len(src)], "what was read")
}

// remotely tries a write of one octet and then a read of one, each on a stream of
// its own between a new queue pair of the host's PD and a raw peer, and says what
// comes of them: 0 is success, else what the Terminate Message says.
func (n *host) remotely(at verbs.Remote, write, read uint16) {
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
	defer p.drop()
	p.send(ulpdu)
	if want != 0 {
		p.terminatedAs(want)
		return
	}
	if ulpdu[1] == opReadRequest {
		p.reads++
		p.segment(opReadResponse)
	}
	p.settled()
}

// readRequest is an RDMA Read Request, the raw peer's sink being made up.
func readRequest(msn uint32, from verbs.Remote, n uint32) []byte {
	return aReadRequest(msn, read{sinkSTag: nowhere, size: n, stag: uint32(from.STag), to: from.TO})
}

// manyReads is how many postReads posts.
const manyReads = 20

// postReads posts RDMA Reads of one octet each, numbered from 0 on, of an address
// that only a raw peer answers. The queue pair has to have room for them.
func (n *host) postReads(qp *verbs.QP) {
	var reqs []verbs.Request
	for id := range uint64(manyReads) {
		reqs = append(reqs, verbs.Request{ID: id, Op: verbs.OpRead, Local: n.mr.SGE(int(id), 1), Remote: verbs.Remote{STag: 0x700, TO: id}})
	}
	post(n.t, qp, reqs...)
}

// outstanding says that a queue pair, which has work for more, sends exactly that
// many RDMA Read Requests to a raw peer until one is answered, and then one more.
// The queue pair is destroyed then.
func (n *host) outstanding(qp *verbs.QP, p *peer, want int) {
	first := must(parseRead(p.segment(opReadRequest).payload))(n.t)
	for range want - 1 {
		p.segment(opReadRequest)
	}
	// All were posted before: had the queue pair more to send, that would come
	// ahead of the answer to this.
	p.settled()
	p.send(aReadResponse(first.sinkSTag, first.sinkTO, []byte{0x77}))
	p.segment(opReadRequest)
	p.settled()
	cq := attributes(n.t, qp).SendCQ
	completes(n.t, cq, verbs.Completion{ID: 0, QP: qp.ID(), Op: verbs.OpRead})
	require.NoError(n.t, qp.Destroy())
	for cq.Poll(make([]verbs.Completion, manyReads)) > 0 { // there may be some of the others (draft 6.1.4)
	}
}

// opsMatrix is a host pair in which each of the ten operations can be done: a is Privileged.
type opsMatrix struct {
	*hostPair
	fast  *verbs.MR // for Fast-Register, Invalid
	pages *verbs.Pages
	key   uint8 // of fast, next
}

func newOpsMatrix(t *conformance.T, c hostPairConfig) *opsMatrix {
	c.A.QP.Privileged = true
	w := newHostPair(t, c)
	return &opsMatrix{hostPair: w, fast: w.a.allocated(), pages: w.a.pages(1, 4096)}
}

// requests are one request of each operation type, in the order of 9.3.1.1, with numbers
// from 0 on, and what completes at b's queue pair if there are receives for them. All of
// them succeed; the last one undoes the one before it.
func (w *opsMatrix) requests(flags verbs.Flags) (list []verbs.Request, received []verbs.Completion) {
	a, b := w.a, w.b
	w.key++
	r := fastRegister(w.fast.WithKey(w.key), w.pages.List(0, 64), 4096, allRights)
	list = []verbs.Request{
		{Op: verbs.OpSend, SGL: a.mr.SGL(0, 5)},
		{Op: verbs.OpSendSE, SGL: a.mr.SGL(0, 6)},
		{Op: verbs.OpSendInvalidate, SGL: a.mr.SGL(0, 7), Invalidate: b.register(8, allRights).STag()},
		{Op: verbs.OpSendSEInvalidate, SGL: a.mr.SGL(0, 8), Invalidate: b.register(8, allRights).STag()},
		{Op: verbs.OpWrite, SGL: a.mr.SGL(0, 9), Remote: b.mr.Remote(4096)},
		{Op: verbs.OpRead, Local: a.mr.SGE(64, 10), Remote: b.mr.Remote(4096)},
		{Op: verbs.OpReadInvalidate, Local: a.register(11, allRights).SGE(0, 11), Remote: b.mr.Remote(4096)},
		binds(a.newMW().BindRequest(a.mr, 0, 12, remoteRights, 1)),
		r,
		{Op: verbs.OpInvalidate, Invalidate: r.FastRegister.STag},
	}
	for i := range list {
		q := &list[i]
		q.ID, q.Flags = uint64(i), flags
		if i < 4 {
			c := verbs.Completion{ID: q.ID, QP: b.qp.ID(), Op: verbs.OpRecv, Bytes: uint32(5 + i)}
			c.Invalidated, c.HasInvalidated = q.Invalidate, q.Invalidate != 0
			received = append(received, c)
		}
	}
	return list, received
}

// postAll posts requests with numbers from id on, and the receives. It returns what completes.
func (w *opsMatrix) postAll(id uint64, flags verbs.Flags) (sent, received []verbs.Completion) {
	list, received := w.requests(flags)
	for i := range received {
		received[i].ID += id
		postRecv(w.t, w.b.qp, verbs.Recv{ID: received[i].ID, SGL: w.b.mr.SGL(64*i, 64)})
	}
	for i := range list {
		list[i].ID += id
		sent = append(sent, verbs.Completion{ID: list[i].ID, QP: w.a.qp.ID(), Op: list[i].Op})
	}
	post(w.t, w.a.qp, list...)
	return sent, received
}
