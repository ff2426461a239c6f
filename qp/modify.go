package qp

import (
	"fmt"
	"math"
	"time"

	"github.com/softrnic/softrnic/internal/tcpsock"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// Modify are the input modifiers of Modify QP (verbs draft 9.2.5.3). Which of
// them may be supplied depends on the transition: see modifiable.
type Modify struct {
	// Next is the state to enter; it may be the current one.
	Next wr.State
	// Stream is the LLP stream, needed for Idle to RTS. The queue pair owns
	// its connection once Modify has succeeded.
	Stream *mpa.Stream
	// LastMessage is sent in streaming mode before iWARP starts (6.6.1.1).
	LastMessage []byte
	// ORD, if not nil, is the new limit on outbound RDMA Reads, at least 0; on
	// an enhanced stream at most what was agreed with the peer. A smaller one
	// counts as Reads complete.
	ORD *int
	// IRD, if not nil, is the new limit on inbound RDMA Reads, at least 0, and
	// at least as many as wait for their answer.
	IRD *int
	// SendDepth and RecvDepth, if not nil, resize the queues; at least 1, and at
	// least as many as are outstanding. RecvDepth is refused with an S-RQ.
	SendDepth, RecvDepth *int
	// RQLimit, if not nil, is the new QP RQ Limit, and ArmRQLimit arms it; with
	// an S-RQ only.
	RQLimit    *int
	ArmRQLimit bool
	// Extensions, if not nil, says whether RFC 7306 is spoken on the stream, whatever
	// Config.Extensions says: what was agreed with the peer.
	Extensions *bool
	// NoInboundRead, NoInboundWrite and NoInboundAtomic, if not nil, are as in Config from now on: for each segment that is taken
	// from the stream after Modify. A Read or an Atomic that waits to be answered is answered; of a Write under way
	// the rest is refused.
	NoInboundRead, NoInboundWrite, NoInboundAtomic *bool
}

// attribute is a set of attributes that Modify QP may change.
type attribute uint16

const (
	attrStream attribute = 1 << iota
	attrMessage
	attrORD
	attrIRD
	attrSendDepth
	attrRecvDepth
	attrRQLimit
	attrExtensions
	attrRights
)

// modifiable is figures 4 and 5 of the verbs draft in one: what may be supplied
// for a transition. Transitions that are not here allow nothing.
var modifiable = [numStates][numStates]attribute{
	wr.StateIdle: {
		wr.StateIdle: attrORD | attrIRD | attrSendDepth | attrRecvDepth | attrRQLimit | attrRights,
		wr.StateRTS:  attrStream | attrMessage | attrORD | attrIRD | attrSendDepth | attrRecvDepth | attrRQLimit | attrExtensions | attrRights,
	},
	wr.StateRTS: {
		wr.StateRTS: attrORD | attrIRD | attrSendDepth | attrRecvDepth | attrRights,
	},
}

// attributes are those that m supplies.
func (m *Modify) attributes() (set attribute) {
	for a, supplied := range map[attribute]bool{
		attrStream: m.Stream != nil, attrMessage: m.LastMessage != nil,
		attrORD: m.ORD != nil, attrIRD: m.IRD != nil,
		attrSendDepth: m.SendDepth != nil, attrRecvDepth: m.RecvDepth != nil,
		attrRQLimit: m.RQLimit != nil || m.ArmRQLimit, attrExtensions: m.Extensions != nil,
		attrRights: m.NoInboundRead != nil || m.NoInboundWrite != nil || m.NoInboundAtomic != nil,
	} {
		if supplied {
			set |= a
		}
	}
	return set
}

var modifyTriggers = [...]trigger{
	wr.StateIdle: trigModifyIdle, wr.StateRTS: trigModifyRTS, wr.StateClosing: trigModifyClosing,
	wr.StateTerminate: trigModifyTerminate, wr.StateError: trigModifyError,
}

// Modify changes state and attributes, all or nothing. It returns once the
// change has happened: for Closing and Terminate when posts are refused and nothing
// more is received, for Error when everything is flushed and the LLP stream is gone.
// Only a last message makes it wait for the peer, up to the close timeout; another
// Modify is refused meanwhile. Errors: wr.ErrInvalidState,
// wr.ErrInvalidLLPStream, wr.ErrInvalidModifier, wr.ErrORDExceeded,
// wr.ErrShrinkFailed, wr.ErrRQLimitRange, wr.ErrStillFlushing, wr.ErrInvalidQP,
// wr.ErrInsufficientResources (there are no descriptors; the connection is as before).
func (q *QP) Modify(m Modify) error {
	if m.Next >= numStates {
		return &wr.Reason{Err: wr.ErrInvalidState, What: fmt.Sprintf("there is no state %d", m.Next), Remedy: "go to one of verbs.State"}
	}
	if m.Next == wr.StateRTS {
		q.awaitOver()
	}
	if s := q.session.Load(); s != nil {
		s.tx.flushPosted() // or what is held back would count as outstanding
	}
	q.mu.Lock()
	from := q.State()
	t := step(from, modifyTriggers[m.Next])
	err := q.checkModify(t, &m)
	s := q.session.Load()
	stops := from == wr.StateRTS && m.Next != wr.StateRTS
	if err == nil && !stops {
		err = q.modify(t, &m)
	}
	q.mu.Unlock()
	switch {
	case err != nil:
		return q.refuseModify(from, m.Next, err)
	case stops:
		return q.stop(s, m.Next)
	case s != nil:
		s.tx.tryTransmit() // a greater ORD may let the Send Queue go on
	}
	return nil
}

// modify does all but leave RTS, with mu held.
func (q *QP) modify(t transition, m *Modify) error {
	if t.Actions&actStart != 0 {
		return q.start(t.Next, m)
	}
	if t.Actions&actModify != 0 {
		if err := q.resize(q.sizes().with(m)); err != nil {
			return err
		}
		q.set(m)
	}
	q.enter(t, modifyTriggers[m.Next])
	return nil
}

// checkModify finds the Immediate Errors, with mu held; but for a queue that
// cannot shrink, see resize.
func (q *QP) checkModify(t transition, m *Modify) error {
	if q.destroyed.Load() {
		return errGone
	}
	if t.Err != 0 {
		return t.Err
	}
	from := q.State()
	if q.starting != nil {
		return &wr.Reason{
			Err: wr.ErrInvalidState, What: "its last streaming message is being sent",
			Remedy: "wait until that Modify has returned",
		}
	}
	if from == wr.StateError && q.session.Load() != nil {
		return &wr.Reason{Err: wr.ErrStillFlushing, What: "the last stream is not over", Rule: "RV-6.2.4-M10", Remedy: "wait until Done is closed"}
	}
	if m.attributes()&^modifiable[from][m.Next] != 0 {
		return &wr.Reason{Err: wr.ErrInvalidModifier, What: "figures 4 and 5 do not have all of these attributes for this transition", Rule: "RV-6.1.3-M4", Remedy: "change them in another Modify"}
	}
	if from == wr.StateIdle && m.Next == wr.StateRTS && (m.Stream == nil || m.Stream.Conn == nil) {
		return &wr.Reason{Err: wr.ErrInvalidLLPStream, What: "there is none", Rule: "RV-6.1.3-M1", Remedy: "give ModifyQP.Stream, or connect by package cm"}
	}
	return q.checkValues(m)
}

func (q *QP) checkValues(m *Modify) error {
	low := func(p *int, least int) bool { return p != nil && *p < least }
	switch {
	case low(m.ORD, 0), low(m.IRD, 0), low(m.SendDepth, 1), low(m.RecvDepth, 1):
		return &wr.Reason{Err: wr.ErrInvalidModifier, What: "a depth below 1 or a limit below 0", Remedy: "ask for more"}
	case m.RecvDepth != nil && q.cfg.SRQ != nil:
		return &wr.Reason{Err: wr.ErrInvalidModifier, What: "the receives are the S-RQ's", Rule: "verbs draft 9.2.5.3", Remedy: "modify that"}
	}
	// On the way to RTS it is cut to what was agreed instead, as without m.ORD.
	if s := q.session.Load(); s != nil && m.ORD != nil && *m.ORD > s.maxORD {
		return &wr.Reason{Err: wr.ErrORDExceeded, What: fmt.Sprintf("%d, the peer answers %d at a time", *m.ORD, s.maxORD), Rule: "RFC 6581 9.1"}
	}
	return q.checkLimit(m.RQLimit, m.ArmRQLimit)
}

// set changes the attributes that have been checked and need no new queue, with
// mu held.
func (q *QP) set(m *Modify) {
	q.setLimit(m.RQLimit, m.ArmRQLimit)
	q.rights.set(m)
	if m.IRD != nil {
		q.ird = *m.IRD
	}
	if m.ORD == nil {
		return
	}
	q.ord = *m.ORD
	if s := q.session.Load(); s != nil {
		// The ring never shrinks: Reads beyond a smaller ORD may be outstanding.
		s.reads.resize(max(q.ord+writeAckRoom, s.reads.size()))
		s.tx.ord.Store(int32(q.ord))
	}
}

var modifyFaults = [...]streamFault{
	wr.StateClosing: faultModifyClosing, wr.StateTerminate: faultModifyTerminate, wr.StateError: faultModifyError,
}

// stop leaves RTS by verb.
func (q *QP) stop(s *session, next wr.State) error {
	if next == wr.StateClosing {
		s.tx.flushAhead()
	}
	if !s.halt(cause{fault: modifyFaults[next]}) {
		<-s.decided // something else ended it first
		return q.refuseModify(q.State(), next, wr.ErrInvalidState)
	}
	<-s.decided
	if next == wr.StateError {
		<-s.over
	}
	return nil
}

// sizes are what Modify QP may resize with work outstanding: the depths of the
// work queues, and the IRRQ's, which is the IRD.
type sizes struct{ send, recv, ird int }

// sizes are the present ones, with mu held.
func (q *QP) sizes() sizes {
	x := sizes{send: q.sq.slots.depth(), recv: q.rq.slots.depth(), ird: q.ird}
	if s := q.session.Load(); s != nil {
		x.ird = q.inbound(s)
	}
	return x
}

// inbound is the IRD of a stream, with mu held.
func (q *QP) inbound(s *session) int { return min(q.ird, s.irrq.size()) }

// with is x with what m asks for.
func (x sizes) with(m *Modify) sizes {
	for _, c := range []struct{ size, want *int }{
		{&x.send, m.SendDepth}, {&x.recv, m.RecvDepth}, {&x.ird, m.IRD},
	} {
		if c.want != nil {
			*c.size = *c.want
		}
	}
	return x
}

// min is the smaller of each two.
func (x sizes) min(y sizes) sizes {
	return sizes{min(x.send, y.send), min(x.recv, y.recv), min(x.ird, y.ird)}
}

// resize makes all sizes x, or none: wr.ErrShrinkFailed if more is outstanding in
// one of them (RV-6.1.3-M10, M11). The queues become deeper than asked for, see
// ringSize. The caller has mu; no post can come between.
func (q *QP) resize(x sizes) error {
	q.sq.postMu.Lock()
	defer q.sq.postMu.Unlock()
	q.rq.postMu.Lock()
	defer q.rq.postMu.Unlock()
	if n := q.sq.reclaim(); n > uint64(x.send) {
		return &wr.Reason{Err: wr.ErrShrinkFailed, What: fmt.Sprintf("%d sends are outstanding, %d asked for", n, x.send), Rule: "RV-6.1.3-M10"}
	}
	if n := q.rq.reclaim(); n > uint64(x.recv) {
		return &wr.Reason{Err: wr.ErrShrinkFailed, What: fmt.Sprintf("%d receives are outstanding, %d asked for", n, x.recv), Rule: "RV-6.1.3-M10"}
	}
	if s := q.session.Load(); s != nil && x.ird != q.inbound(s) && !s.irrq.resize(x.ird+q.cfg.spareReads()) {
		return &wr.Reason{Err: wr.ErrShrinkFailed, What: fmt.Sprintf("more than %d inbound RDMA Reads are outstanding", x.ird), Rule: "RV-6.1.3-M11", Remedy: "keep IRD as it is while the peer reads"}
	}
	q.sq.resize(x.send)
	q.rq.resize(x.recv)
	return nil
}

// start goes from Idle to next, which is RTS, with mu held, but not while the last message of
// streaming mode is written. All or nothing: what shrinks does so before and what
// grows after it, so that the way back, and the rest of the way, only grow.
func (q *QP) start(next wr.State, m *Modify) error {
	was := q.sizes()
	want := was.with(m)
	if err := q.resize(was.min(want)); err != nil {
		return err
	}
	var s *session
	err := checkStream(m.Stream)
	if err == nil {
		err = q.lastMessage(m)
	}
	if err == nil {
		s, err = q.prepare(m)
	}
	if err != nil {
		_ = q.resize(was) // grows
		return err
	}
	_ = q.resize(want) // grows
	q.set(m)
	q.terminate = nil
	q.session.Store(s)
	q.last.Store(s)
	if q.cfg.Trace != nil {
		q.traceState(q.State(), next, trigModifyRTS.String(), nil)
	}
	q.setState(next)
	s.rx.joinShared()
	s.start()
	return nil
}

// prepare makes the session that start is to begin.
func (q *QP) prepare(m *Modify) (*session, error) {
	st, ird, ord := m.Stream, q.ird, q.ord
	if m.IRD != nil {
		ird = *m.IRD
	}
	if m.ORD != nil {
		ord = *m.ORD
	}
	a := agreedReads{irrq: ird + q.cfg.spareReads(), ord: ord, maxORD: math.MaxInt32}
	if st.Enhanced { // RFC 6581 9.1: what the two sides agreed on
		a.irrq, a.maxORD = min(a.irrq, st.IRD), st.ORD
		if q.cfg.PlacedWrites && st.ORD > min(ord, 1) { // the program keeps one, if it had any
			a.writeAck, a.maxORD = true, st.ORD-1
		}
		a.ord = min(ord, a.maxORD)
	}
	s, err := newSession(q, st, a.irrq, a.ord)
	switch {
	case tcpsock.IsLack(err):
		return nil, &wr.Reason{Err: fmt.Errorf("%w: %w", wr.ErrInsufficientResources, tcpsock.Lack(err)), Remedy: "close connections that are not needed"}
	case err != nil:
		return nil, fmt.Errorf("%w: %w", wr.ErrInvalidLLPStream, err)
	}
	s.open(a)
	if m.Extensions != nil {
		s.extensions = *m.Extensions
	}
	if len(st.Early) > 0 {
		s.rx.in.early(st.Early)
		s.rx.count.octets += uint64(len(st.Early))
	}
	return s, nil
}

// checkStream finds what is wrong with a stream.
func checkStream(st *mpa.Stream) error {
	// A connection that is closed here is not established (draft 6.2.1.2). What
	// deadlines it has were the startup's.
	if err := st.Conn.SetDeadline(time.Time{}); err != nil {
		return fmt.Errorf("%w: %w", wr.ErrInvalidLLPStream, err)
	}
	if len(st.Early) > mpa.RecommendedBuffer {
		return &wr.Reason{Err: wr.ErrInvalidLLPStream, What: fmt.Sprintf("%d early octets are too many", len(st.Early))}
	}
	return nil
}

// lastMessage writes the last message of streaming mode, if there is one, with mu
// free: Query answers, posts are queued, and Destroy ends it. The peer cannot
// answer with FPDUs before it has the message; whatever comes meanwhile waits in
// the LLP (verbs draft 6.2.1.2).
func (q *QP) lastMessage(m *Modify) error {
	if len(m.LastMessage) == 0 {
		return nil
	}
	conn := m.Stream.Conn
	_ = conn.SetWriteDeadline(time.Now().Add(q.cfg.CloseTimeout))
	q.starting = conn
	q.mu.Unlock()
	_, err := conn.Write(m.LastMessage)
	q.mu.Lock()
	q.starting = nil
	_ = conn.SetWriteDeadline(time.Time{})
	switch {
	case q.destroyed.Load():
		return errGone
	case q.State() != wr.StateIdle:
		return &wr.Reason{Err: wr.ErrInvalidState, What: "it has failed meanwhile", Remedy: "go to Idle first"}
	case err != nil:
		return fmt.Errorf("%w: the last streaming message: %w", wr.ErrInvalidLLPStream, err)
	}
	return nil
}
