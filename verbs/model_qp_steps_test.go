package verbs_test

import (
	"fmt"
	"io"
	"net"

	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/verbs"
)

// createQP is 9.2.5.1.
func (w *modelWorld) createQP(n *modelNode) {
	pd, ok1 := object(w, n.pds, gonePD)
	send, ok2 := object(w, n.cqs, goneCQ)
	recv, ok3 := object(w, n.cqs, goneCQ)
	if !ok1 || !ok2 || !ok3 {
		return
	}
	q := &modelQP{
		node: n, pd: pd, send: send, recv: recv,
		sendDepth: pick(w, 0, 4, 7, n.limits.WR), recvDepth: pick(w, 0, 3, 8, n.limits.WR),
		sendSGE: pick(w, 0, 1, 3, n.limits.SGE), writeSGE: pick(w, 0, 1, n.limits.WriteSGE), recvSGE: pick(w, 0, 1, n.limits.SGE),
		ird: pick(w, 0, 1, 2, 3), ord: pick(w, 0, 1, 2, 3),
		noRead: w.one(12), noWrite: w.one(12), noBind: w.one(8), privileged: w.one(2), graceful: w.one(4),
	}
	noReads := w.one(10)
	if s, ok := object(w, n.srqs, goneSRQ); ok && w.one(2) {
		q.srq, q.rqLimit = s, w.rng.IntN(3)
	}
	if w.wrong() {
		at := pick(w, &q.sendDepth, &q.recvDepth, &q.sendSGE, &q.writeSGE, &q.recvSGE, &q.ird, &q.ord, &q.rqLimit)
		*at = pick(w, -1, n.limits.WR+1, n.limits.SGE+1)
	}
	conf := verbs.QPConfig{
		PD: pd.real, SendCQ: send.real, RecvCQ: recv.real, RQLimit: q.rqLimit,
		SendDepth: q.sendDepth, RecvDepth: q.recvDepth, SendSGE: q.sendSGE, WriteSGE: q.writeSGE, RecvSGE: q.recvSGE,
		IRD: q.ird, ORD: q.ord, NoReads: noReads, NoInboundRead: q.noRead, NoInboundWrite: q.noWrite, NoBind: q.noBind,
		Privileged: q.privileged, GracefulReceive: q.graceful,
	}
	srq := "none"
	if q.srq != nil {
		conf.SRQ, srq = q.srq.real, q.srq.String()
	}
	q.defaults(noReads)
	want := n.checkQP(q)
	w.say("%d: create QP %v send %v recv %v S-RQ %s: depths %d %d SGE %d %d %d IRD %d ORD %d limit %d, no read %t write %t bind %t, privileged %t graceful %t",
		n.number, pd, send, recv, srq, q.sendDepth, q.recvDepth, q.sendSGE, q.writeSGE, q.recvSGE, q.ird, q.ord, q.rqLimit,
		q.noRead, q.noWrite, q.noBind, q.privileged, q.graceful)
	var err error
	q.real, err = n.nic.CreateQP(conf)
	w.same(want, err)
	if err != nil {
		return
	}
	q.name = fmt.Sprintf("%d.QP%d", n.number, q.real.ID())
	w.log[len(w.log)-1] += " " + q.name
	q.rqArmed = q.srq != nil && q.rqLimit > 0
	q.resized()
	q.tie(1)
	n.qps = append(n.qps, q)
}

// defaults are those that the fields of QPConfig document.
func (q *modelQP) defaults(noReads bool) {
	l := q.node.limits
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&q.sendDepth, min(64, l.WR))
	set(&q.recvDepth, min(64, l.WR))
	set(&q.sendSGE, 4)
	set(&q.recvSGE, 4)
	set(&q.writeSGE, min(q.sendSGE, l.WriteSGE))
	set(&q.ird, min(16, l.IRD))
	set(&q.ord, min(16, l.ORD))
	if noReads {
		q.ird, q.ord = 0, 0
	}
	if q.srq != nil {
		q.recvDepth, q.recvSGE = 0, 0
	}
}

func (n *modelNode) checkQP(q *modelQP) error {
	l, most := n.limits, 0
	if q.srq != nil {
		most = q.srq.depth
	}
	switch {
	case q.pd.gone:
		return verbs.ErrInvalidPD
	case q.send.gone, q.recv.gone:
		return verbs.ErrInvalidCQ
	case q.srq != nil && q.srq.gone:
		return verbs.ErrInvalidSRQ
	case min(q.sendDepth, q.recvDepth, q.sendSGE, q.writeSGE, q.recvSGE, q.ird, q.ord) < 0:
		return verbs.ErrInvalidModifier
	case q.sendDepth > l.WR, q.recvDepth > l.WR:
		return verbs.ErrTooManyWR
	case q.sendSGE > l.SGE, q.recvSGE > l.SGE, q.writeSGE > l.WriteSGE:
		return verbs.ErrTooManySGE
	case q.ird > l.IRD:
		return verbs.ErrIRDExceeded
	case q.ord > l.ORD:
		return verbs.ErrORDExceeded
	case len(living(n.qps, goneQP)) >= l.QPs:
		return verbs.ErrInsufficientResources
	case q.rqLimit < 0, q.rqLimit > most:
		return verbs.ErrRQLimitRange
	}
	ird, ord := n.readsLeft(nil)
	var ok1, ok2 bool
	q.ird, ok1 = provision(0, q.ird, ird)
	q.ord, ok2 = provision(0, q.ord, ord)
	if !ok1 || !ok2 {
		return verbs.ErrInsufficientResources
	}
	return nil
}

// readsLeft is what is left of the RDMA Read resources that queue pairs share, but
// for what q has (6.5). Without sharing that is very much.
func (n *modelNode) readsLeft(q *modelQP) (ird, ord int) {
	ird, ord = n.limits.SharedIRD, n.limits.SharedORD
	if ird == 0 {
		return 1 << 30, 1 << 30
	}
	for _, o := range n.qps {
		if !o.gone && o != q {
			ird, ord = ird-o.ird, ord-o.ord
		}
	}
	return ird, ord
}

// provision is what a queue pair that has some gets of want: less will do, but not
// none (9.2.5.1).
func provision(have, want, left int) (int, bool) {
	if want <= have {
		return want, true
	}
	got := min(want, left)
	return got, got > 0
}

// resized takes over what was allocated, which may be more than asked for.
func (q *modelQP) resized() {
	w := q.node.world
	a, err := q.real.Query()
	w.must(err)
	w.allocated("sends", q.sendDepth, a.SendDepth)
	w.allocated("receives", q.recvDepth, a.RecvDepth)
	q.sendDepth, q.recvDepth = a.SendDepth, a.RecvDepth
}

func (q *modelQP) tie(n int) {
	q.pd.users += n
	q.send.ties += n
	q.recv.ties += n
	if q.srq != nil {
		q.srq.ties += n
	}
}

// destroyQP is 9.2.5.4.
func (w *modelWorld) destroyQP(n *modelNode) {
	if q, ok := object(w, n.qps, goneQP); ok && (q.peer == nil || len(q.peer.held) == 0) {
		w.destroyThis(q)
	}
}

func (w *modelWorld) destroyThis(q *modelQP) {
	var want error
	switch {
	case q.gone:
		want = verbs.ErrInvalidQP
	case q.windows > 0:
		want = verbs.ErrWindowsBound
	}
	w.say("destroy %v in %v", q, q.state)
	w.same(want, q.real.Destroy())
	if want != nil {
		return
	}
	// Whether outstanding requests complete is open (6.1.4): here they do if there is
	// a stream.
	if q.state == verbs.StateRTS {
		q.abort()
	}
	q.gone = true
	q.tie(-1)
}

// plainConn is a connection that only net.Conn's methods drive.
type plainConn struct{ net.Conn }

func (c plainConn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

func (c plainConn) SetLinger(sec int) error { return c.Conn.(*net.TCPConn).SetLinger(sec) }

func (w *modelWorld) connection() (a, b net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	defer l.Close()
	a, err = net.Dial("tcp", l.Addr().String())
	w.must(err)
	b, err = l.Accept()
	w.must(err)
	if w.one(3) {
		a = plainConn{a}
	}
	if w.one(3) {
		b = plainConn{b}
	}
	return a, b
}

// connect takes a queue pair of each RNIC to RTS.
func (w *modelWorld) connect(n *modelNode) {
	idle := func(n *modelNode) []*modelQP {
		if ended := living(n.qps, func(q *modelQP) bool { return q.gone || q.state != verbs.StateError }); len(ended) > 0 {
			q := pick(w, ended...)
			w.say("modify %v from Error to Idle", q)
			w.same(nil, q.real.Modify(verbs.ModifyQP{}))
			q.state = verbs.StateIdle
		}
		return living(n.qps, func(q *modelQP) bool { return q.gone || q.state != verbs.StateIdle })
	}
	first, second := idle(n), idle(w.nodes[1-n.number])
	if len(first) == 0 || len(second) == 0 {
		return
	}
	q, p := pick(w, first...), pick(w, second...)
	if len(p.waiting()) > 0 { // what is posted already is the Initiator's
		q, p = p, q
	}
	if len(p.waiting()) > 0 || !w.safeWith(q, p) {
		w.say("empty %v", q)
		w.same(nil, q.real.Modify(verbs.ModifyQP{Next: verbs.StateError}))
		q.stale = true
		q.flush(verbs.StateError, nil, 0, nil)
		return
	}
	a, b := w.connection()
	// Each message is one segment: within one, what is placed before a fault would be open.
	crc, markers := w.one(2), [2]bool{w.one(4), w.one(4)}
	x := &verbs.StreamConfig{Conn: a, Role: mpa.Initiator, CRC: crc, MarkersIn: markers[0], MarkersOut: markers[1], EMSS: 16000}
	y := &verbs.StreamConfig{Conn: b, Role: mpa.Responder, CRC: crc, MarkersIn: markers[1], MarkersOut: markers[0], EMSS: 16000}
	w.say("connect %v to %v, CRC %t", q, p, crc)
	var last []byte
	if w.one(5) {
		last = []byte("and now iWARP")
	}
	posted := len(q.waiting()) > 0 // then nothing changes that makes it unsafe
	if !w.toRTS(p, y, last, posted) {
		w.must(a.Close())
		w.must(b.Close())
		return
	}
	if last != nil { // 6.2.1.2: it comes before any FPDU
		got := make([]byte, len(last))
		_, err := io.ReadFull(a, got)
		w.must(err)
		w.equal("last message", q, last, got)
	}
	p.shut = true
	if !w.toRTS(q, x, nil, posted) {
		w.must(a.Close())
		p.peerCloses()
		return
	}
	q.peer, p.peer = p, q
	q.run()
	if q.state == verbs.StateRTS && p.shut && !w.one(4) { // let the Responder speak too
		w.compare()
		w.exchange(q, []verbs.Request{})
	}
}

// toRTS is Modify QP from Idle to RTS.
func (w *modelWorld) toRTS(q *modelQP, s *verbs.StreamConfig, last []byte, plain bool) bool {
	m := verbs.ModifyQP{Next: verbs.StateRTS, Stream: s, LastMessage: last}
	if w.one(4) && !plain {
		w.modifiers(q, &m)
	}
	want := q.checkModify(m)
	w.say("   %v to RTS: %s", q, showModify(m))
	w.same(want, q.real.Modify(m))
	if want != nil {
		return false
	}
	q.change(m)
	q.state, q.stream, q.shut, q.term, q.stale = verbs.StateRTS, s, false, nil, false
	return true
}
