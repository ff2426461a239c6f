package qp

import (
	"runtime"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// newSession ties a stream to the queue pair; start sets it going. It fails if the system has
// no descriptors left.
func newSession(q *QP, st *mpa.Stream, ird, ord int) (*session, error) {
	own := *st
	s := &session{
		q: q, given: st, stream: &own,
		user:    stag.User{PD: q.cfg.PD, QP: q.cfg.ID, Windows: &q.windows, Privileged: q.cfg.Privileged},
		irrq:    newRing[inboundRead](ird),
		reads:   newRing[outboundRead](max(ord, 1)), // a Read RTR needs one
		stop:    make(chan struct{}),
		decided: make(chan struct{}),
		over:    make(chan struct{}),
		drained: make(chan struct{}, 1),

		extensions: q.cfg.Extensions,
	}
	if err := s.llp.init(st.Conn, q.wear); err != nil {
		return nil, err
	}
	s.stream.Conn = s.llp.conn
	s.tx.init(s)
	s.tx.ord.Store(int32(ord))
	s.rx.init(s)
	s.carry(q.cfg.Carried)
	s.gate.Store(st.Role == mpa.Responder)
	s.llp.conn.Through(q.cfg.Port)
	var err error
	if s.sock, err = s.llp.conn.Join(q.cfg.RecvCQ.Group(), s); err != nil {
		_ = s.llp.conn.Close()
		return nil, err
	}
	s.tx.batching.hold = s.sock.Hold
	return s, nil
}

func (r *receiver) init(s *session) {
	r.s, r.cfg, r.rights, r.tuning, r.rq = s, &s.q.cfg, &s.q.rights, &s.q.cfg.Tuning, &s.q.rq
	r.llp, r.irrq, r.reads = &s.llp, s.irrq, s.reads
	lander := s.user // on whose behalf receives are filled
	if shared := r.cfg.SRQ; shared != nil {
		lander.PD = shared.PD() // RV-6.3.5-M11, M12
	}
	r.sinks = r.cfg.STags.Resolver(lander, wr.LocalWrite)
	r.targets = r.cfg.STags.Resolver(s.user, wr.RemoteWrite)
	r.answers = r.cfg.STags.Resolver(s.user, wr.LocalWrite)
	r.single = runtime.GOMAXPROCS(0) == 1
	if l := s.q.lossy; l != nil {
		r.loss = &loss{Lossy: l}
	}
	r.in.Deframer = s.stream.Deframer()
	r.send, r.read, r.answer = ddp.NewInbound(), ddp.NewInbound(), ddp.NewInbound()
}

func (t *transmitter) init(s *session) {
	t.s, t.cfg, t.tuning, t.sq = s, &s.q.cfg, &s.q.cfg.Tuning, &s.q.sq
	t.llp, t.irrq, t.reads = &s.llp, s.irrq, s.reads
	t.batching.init(t.tuning.Eager, t.leftovers)
	t.framer = s.stream.Framer()
	t.meter = s.stream.Meter()
	t.measure()
	t.sources = t.cfg.STags.Resolver(s.user, wr.LocalRead)
	t.sendMSN, t.readMSN = ddp.NewOutbound(), ddp.NewOutbound()
	t.atomics.msn = ddp.NewOutbound()
	t.next = t.sq.done.Load()
	if s.stream.Role == mpa.Initiator && s.stream.P2P {
		t.rtr = s.stream.RTR
	}
}

// carry has a stream that is about to begin count as if it had carried so much.
func (s *session) carry(c verbsinternal.Counts) {
	if c == (verbsinternal.Counts{}) {
		return
	}
	t, r := &s.tx, &s.rx
	t.sendMSN, r.send = ddp.OutboundFrom(1+c.Sends), ddp.InboundFrom(1+c.Sends)
	t.readMSN, r.read = ddp.OutboundFrom(1+c.Reads), ddp.InboundFrom(1+c.Reads)
	t.framer.Resume(c.Octets)
	r.in.Resume(c.Octets)
	t.pos, t.metered = c.Octets, c.Octets
	t.written.Store(c.Octets)
}

// start begins to receive and to process what is on the Send Queue.
func (s *session) start() {
	s.llp.conn.Take()
	s.llp.count(s.tx.written.Load())
	s.serve()
	s.tx.startProbing()
	s.tx.tryTransmit()
}

// serve begins to receive.
func (s *session) serve() {
	if s.q.cfg.Tuning.Drive >= 0 {
		s.q.sq.cq.Attach(s.q.cfg.RecvCQ.Group())
		s.q.rq.cq.Attach(s.q.cfg.RecvCQ.Group())
		s.attached = true
	}
	early := s.rx.in.Buffered() > 0 // what was read before the session began
	s.rx.early = early
	s.sock.Begin()
	if early {
		s.sock.Soon()
	}
}

// leave undoes serve.
func (s *session) leave() {
	if s.attached {
		s.q.sq.cq.Detach(s.q.cfg.RecvCQ.Group())
		s.q.rq.cq.Detach(s.q.cfg.RecvCQ.Group())
	}
}

// agreedReads is what a stream has of RDMA Reads: room in the IRRQ, ORD, what that may be raised
// to, and whether there is a Read for Writes.
type agreedReads struct {
	irrq, ord, maxORD int
	writeAck          bool
}

// open gives the session what was agreed, before it starts.
func (s *session) open(a agreedReads) {
	s.maxORD = a.maxORD
	s.tx.writeAck.granted = a.writeAck
	if a.writeAck {
		s.reads.resize(s.reads.size() + writeAckRoom)
	}
	s.q.sq.doneMu.Lock()
	s.q.sq.writeAcks, s.q.sq.passed = a.writeAck, s.q.cfg.Carried.Sends
	if s.tx.rtr == mpa.RTRSend {
		s.q.sq.passed++
	}
	s.q.sq.doneMu.Unlock()
}

// spareReads is what a queue pair offers beyond its own IRD and ORD.
func (c *Config) spareReads() int {
	if c.PlacedWrites {
		return 1
	}
	return 0
}
