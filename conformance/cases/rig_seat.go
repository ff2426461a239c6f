package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// The cases of chapter 7 ask again and again what may be done with an STag: by a
// work request's elements here, by a peer there.
//
//	rig_seat.go   one question, and its answer
//	rig_grant.go  all five kinds of access at once; the four ways to invalidate
//	rv_7_*.go     the cases

// seat is a place at a node for a queue pair whose peer is played by hand. What is
// refused ends the stream; the next question is then put to a new queue pair.
type seat struct {
	n   *node
	cfg verbs.QPConfig

	qp   *verbs.QP
	peer *rawEnd // nil once the stream is gone
	numbers
}

// refusal is how a node refuses what its peer does. The zero value: it does not.
type refusal struct {
	event verbs.EventID
	code  uint16 // layer, type and code of the Terminate Message
}

var taken refusal

// seat makes one whose queue pairs are made from c.
func (n *node) seat(c verbs.QPConfig) *seat {
	s := &seat{n: n, cfg: c}
	s.sit()
	return s
}

// sit sees to it that there is a queue pair in RTS.
func (s *seat) sit() {
	if s.peer == nil {
		s.qp = s.n.newQP(s.cfg)
		s.peer = rawPeer(s.n.t, s.qp, asInitiator)
		s.renumber()
	}
}

// leave destroys the queue pair, which no window may be bound to.
func (s *seat) leave() {
	if s.peer != nil {
		require.NoError(s.n.t, s.qp.Destroy(), "Destroy QP")
		_ = s.peer.Close()
		s.peer = nil
	}
}

// falls says that the next message is a Terminate Message of this layer, type and
// code, that the stream ends behind it and the queue pair in Error.
func (s *seat) falls(code uint16) {
	t := s.n.t
	g := s.heard(opTerminate)
	require.GreaterOrEqual(t, len(g.payload), 4, "the Terminate Message")
	got := uint16(g.payload[0])<<8 | uint16(g.payload[1])
	require.Equalf(t, code, got, "Terminate %#04x, to be %#04x", got, code)
	end, more, err := s.peer.End()
	require.NoError(t, err, "the end of the stream")
	require.Equal(t, endFIN, end, "the end of the stream")
	require.Zero(t, more, "messages behind the Terminate Message")
	_ = s.peer.Close()
	ends(t, s.qp, verbs.StateError)
	s.peer = nil
	if err := s.qp.Destroy(); err != nil {
		require.ErrorIs(t, err, verbs.ErrWindowsBound, "Destroy QP")
	}
}

// refused says that the peer's last message raised the event, and no completion,
// and ended the stream.
func (s *seat) refused(r refusal) {
	s.n.events.are(verbs.Event{ID: r.event, QP: s.qp.ID()})
	s.falls(r.code)
}

// tell sends a segment of the peer's.
func (s *seat) tell(ulpdu []byte) { require.NoError(s.n.t, s.peer.Send(ulpdu), "the peer sends") }

// heard is the next segment that the peer gets, which has to have that control octet.
func (s *seat) heard(control byte) ddpSegment {
	g := must(s.segment())(s.n.t, "waiting for control octet %02x", control)
	require.Equal(s.n.t, control, g.control, "the control octet of what came")
	return g
}

// segment is the next one that the peer gets.
func (s *seat) segment() (ddpSegment, error) {
	u, err := s.peer.Next()
	if err != nil {
		return ddpSegment{}, err
	}
	return parseSegment(u)
}

// message is the whole message that the peer gets next.
func (s *seat) message(control byte) []byte {
	var b []byte
	for {
		g := s.heard(control)
		b = append(b, g.payload...)
		if g.last {
			return b
		}
	}
}

// settle waits until all that the peer has sent is dealt with. Memory may be
// looked at then.
func (s *seat) settle() {
	s.ask(verbs.Remote{}, 0)
	require.Empty(s.n.t, s.answer(), "the answer to a Read of nothing")
}

// ask sends a Read Request.
func (s *seat) ask(at verbs.Remote, n int) {
	require.NoError(s.n.t, s.peer.Send(readRequest(s.nextRead(), at, uint32(n))), "the peer reads")
}

// answer is the whole Read Response that the peer gets next. The memory is not
// read from any more then.
func (s *seat) answer() []byte {
	b := s.message(opReadResponse)
	require.NoError(s.n.t, s.qp.Drain(s.n.t.Context()))
	return b
}

// write has the peer write.
func (s *seat) write(at verbs.Remote, b []byte, want refusal) {
	s.sit()
	s.tell(aWrite(uint32(at.STag), at.TO, b))
	if want != taken {
		s.refused(want)
		return
	}
	s.settle()
}

// read has the peer read, and tells what it was sent: nothing if that is refused.
func (s *seat) read(at verbs.Remote, n int, want refusal) []byte {
	s.sit()
	s.ask(at, n)
	if want != taken {
		s.refused(want)
		return nil
	}
	b := s.answer()
	require.Len(s.n.t, b, n, "the answer to the Read")
	return b
}

// does runs a request on the queue pair. Refused, it ends the stream, of which the
// peer hears nothing else.
func (s *seat) does(req verbs.Request, want verbs.Status) {
	s.sit()
	run(s.n.t, s.qp, req, want)
	if want != verbs.StatusSuccess {
		s.falls(0x0000)
	}
}

// gather runs a Send or RDMA Write of these elements, and tells what the peer got.
func (s *seat) gather(op verbs.Op, sgl []verbs.SGE, want verbs.Status) []byte {
	s.does(verbs.Request{ID: 0x7A01, Op: op, SGL: sgl, Invalidate: 0x00FACE01, Remote: verbs.Remote{STag: 0x00FACE01, TO: 16}}, want)
	if want != verbs.StatusSuccess {
		return nil
	}
	return s.message(map[verbs.Op]byte{
		verbs.OpSend: opSend, verbs.OpSendSE: opSendSE, verbs.OpWrite: opWrite,
		verbs.OpSendInvalidate: opSendInv, verbs.OpSendSEInvalidate: opSendSEInv,
	}[op])
}

// scatter has the peer send b, into a receive of these elements.
func (s *seat) scatter(sgl []verbs.SGE, b []byte, want verbs.Status) {
	s.sit()
	s.receive(verbs.Recv{ID: 0x7A02, SGL: sgl})
	s.tell(aSend(s.nextSend(), b))
	c := verbs.Completion{ID: 0x7A02, QP: s.qp.ID(), Op: verbs.OpRecv, Status: want}
	if want == verbs.StatusSuccess {
		c.Bytes = uint32(len(b))
	}
	completes(s.n.t, s.n.cq, c)
	if want != verbs.StatusSuccess {
		s.falls(0x0000)
	}
}

// receive posts to where the queue pair takes its receives from.
func (s *seat) receive(r verbs.Recv) {
	if s.cfg.SRQ != nil {
		postRecv(s.n.t, s.cfg.SRQ, r)
		return
	}
	postRecv(s.n.t, s.qp, r)
}

// sink runs an RDMA Read into an element, which the peer answers with b. It completes
// with a status of its own before the request goes out, if answered is taken, or when
// the answer comes; or the answer raises an event.
func (s *seat) sink(to verbs.SGE, b []byte, want verbs.Status, answered refusal) {
	s.sit()
	req := verbs.Request{ID: 0x7A03, Op: verbs.OpRead, Local: to, Remote: verbs.Remote{STag: 0x00FACE01, TO: 16}}
	if want != verbs.StatusSuccess && answered == taken {
		s.does(req, want)
		return
	}
	post(s.n.t, s.qp, req)
	s.heard(opReadRequest)
	s.tell(aReadResponse(uint32(to.STag), to.TO, b))
	done := verbs.Completion{ID: req.ID, QP: s.qp.ID(), Op: req.Op, Status: want}
	switch {
	case answered == taken:
	case want == verbs.StatusSuccess:
		s.refused(answered)
		done.Status = verbs.StatusFlushed
	default:
		s.falls(answered.code)
	}
	completes(s.n.t, s.n.cq, done)
}

// staged is a case on one node. All events have to be read, none more may come.
func staged(run func(n *node)) func(*conformance.T) {
	return func(t *conformance.T) {
		n := newNode(t, nodeConfig{})
		run(n)
		n.quiet()
	}
}

// queried is what a Query tells.
func queried[T any](t *conformance.T, of interface{ Query() (T, error) }) T {
	return must(of.Query())(t, "Query")
}

// binds is does for a Bind, which it returns.
func (s *seat) binds(b *verbs.BindRequest) *verbs.BindRequest {
	s.does(binds(b), verbs.StatusSuccess)
	return b
}
