package cases

import (
	"bytes"
	"errors"
	"net"

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

// Probes of operations that are under way when their STag goes (verbs draft 7.3.2.3, 7.8, 7.9,
// 7.10.4.1): half of a message is there, or the peer does not read.

// atOnce says that a verb does not wait for a peer that is silent: it returns
// while nothing else happens.
func atOnce(t *conformance.T, what string, verb func() error) {
	done := make(chan error, 1)
	go func() { done <- verb() }()
	require.NoError(t, receive(t, done, "%s waits for the peer", what), what)
}

// writeHalf has the peer begin an RDMA Write: the first half of b, placed; writeRest is the second.
func (s *probe) writeHalf(at verbs.Remote, b []byte) {
	s.send(tagged(moreTagged, opWrite, uint32(at.STag), at.TO, b[:len(b)/2]))
	s.settled()
}

func (s *probe) writeRest(at verbs.Remote, b []byte) {
	s.send(aWrite(uint32(at.STag), at.TO+uint64(len(b)/2), b[len(b)/2:]))
}

// narrow connects a new queue pair through buffers that are soon full, and stall fills it.
func (s *probe) narrow() {
	s.disconnect()
	s.link = s.idleLink(s.cfg)
	x, y := tcpPair(s.t)
	require.NoError(s.t, x.(*net.TCPConn).SetReadBuffer(64<<10))
	require.NoError(s.t, y.(*net.TCPConn).SetWriteBuffer(64<<10))
	begin(s.t, s.qp, verbs.StreamConfig{Conn: y, Role: asInitiator, CRC: true})
	s.peer = newPeer(s.t, x, withCRC) // too much for the trace
}

func (s *probe) stall(large verbs.Remote) {
	s.narrow()
	s.stuff(large)
}

// largeRegion is more than the buffers of a stalled stream take.
const largeRegion = 2 << 20

// stuff has the peer read a large region, of largeRegion octets, of whose answer
// it takes the first segment only. Nothing can be sent behind it until the peer
// reads on.
func (s *probe) stuff(large verbs.Remote) {
	s.ask(large, largeRegion)
	require.False(s.t, s.segment(opReadResponse).last, "the first segment of the answer")
}

// skip reads the rest of the answer of a stalled stream.
func (s *probe) skip() {
	for !s.segment(opReadResponse).last {
		continue
	}
}

// torn reads on to the end of a stalled stream, which comes before that of the
// answer, and tells what there was of the answer. The Terminate Message is there
// unless the stream ends within a segment (verbs draft 6.4).
func (s *probe) torn(r peerFault) (got []byte) {
	for {
		u, err := s.Next()
		if err != nil {
			var timeout net.Error
			require.False(s.t, errors.As(err, &timeout) && timeout.Timeout(), "the stream has not ended: %v", err)
			break
		}
		g := must(parseSegment(u))(s.t)
		if g.control != opReadResponse {
			require.Equal(s.t, byte(opTerminate), g.control)
			s.hasCode(g, r.code)
			break
		}
		require.False(s.t, g.last, "the answer is whole")
		got = append(got, g.payload...)
	}
	s.raised(r.event)
	s.failed()
	return got
}

// flood has the peer write to, or read from, a buffer again and again while stop
// takes the STag away. From its return on the memory is the program's alone: not an
// octet of it is written or read any more.
func (s *probe) flood(b verbs.TaggedBuffer, mem []byte, write bool, stop func()) {
	k, want := len(mem), either(write, noSTag.write, noSTag.read)
	access := func(i int) error {
		if write {
			return s.Send(aWrite(uint32(b.STag), b.Base, fill(make([]byte, k), i)))
		}
		return s.Send(s.readOf(uint32(b.STag), b.Base, k))
	}
	fill(mem, 1)
	for i := range 10 {
		require.NoError(s.t, access(i))
	}
	if !write { // some have been answered, others are on the way
		for range 5 {
			s.segment(opReadResponse)
		}
	}
	stop()
	left := string(mem)
	clear(mem)
	for i := range 10 {
		if access(i) != nil {
			break // the stream has ended already
		}
	}
	for {
		g := must(parseSegment(s.next()))(s.t)
		if g.control == opTerminate {
			s.hasCode(g, want.code)
			break
		}
		require.False(s.t, write, "an answer to a Write")
		require.Equal(s.t, left, string(g.payload), "what was read")
	}
	s.failed()
	s.raised(want.event)
	require.Equal(s.t, make([]byte, k), mem, "the memory afterwards")
}

// midway has the peer stop in the middle of a segment of a Write to a buffer while
// stop takes the STag away. The rest is not placed.
func (s *probe) midway(b verbs.TaggedBuffer, mem []byte, at int, stop func()) {
	s.connect()
	fpdu := s.Frame(aWrite(uint32(b.STag), b.Base, bytes.Repeat([]byte{0xEE}, len(mem))))
	s.raw(fpdu[:at])
	stop()
	clear(mem) // the program's alone now
	s.raw(fpdu[at:])
	s.refused(noSTag.write)
	require.Equal(s.t, make([]byte, len(mem)), mem, "the memory")
}

// works says that a Send and an RDMA Write or Read go each way. The queue pair's
// next Send has this MSN.
func (r *rig) works(msn uint32) {
	b := r.region(64, allRights)
	mine := func() {
		r.post(verbs.Request{ID: 11, SGL: b.sgl(0, 5)})
		r.expect(aSend(msn, b.first[:5]))
		r.completionsOf(r.SendCQ, verbs.Completion{ID: 11})
	}
	if r.play == conformance.Responder {
		mine()
	}
	r.postRecv(verbs.Recv{ID: 12, SGL: b.sgl(8, 8)})
	r.sendMessage([]byte("received"))
	r.completionsOf(r.RecvCQ, r.got(12, 8))
	b.gets(8, []byte("received"))
	r.send(aWrite(b.tag(), b.at(20), []byte("written")))
	b.gets(20, []byte("written"))
	same(r.t, b.first, r.fetch(b, 0, 64), "what the peer reads")
	b.unchanged()
	if r.play == conformance.Initiator {
		mine()
	}
}
