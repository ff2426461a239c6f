package fault

import (
	"time"

	"github.com/softrnic/softrnic/internal/instrument"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// inside is an Injector as package verbs has it, which is a instrument.Injector: what strikes inside an RNIC.
type inside struct{ *Injector }

// Open may refuse to open the RNIC. A C program's device is asked by Opens instead, each time that the program opens it.
func (in inside) Open() error {
	if in.ofC {
		return nil
	}
	return in.opens()
}

func (in *Injector) opens() error {
	if in.Unplugged() {
		return instrument.ErrUnplugged
	}
	for _, k := range in.strikes(Open, place{}, subject{}) {
		in.report(k)
		return &Error{k}
	}
	return nil
}

func (in inside) Attach(invalidate func(wr.STag) bool, publish func(kind, strike string)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.invalidate = invalidate
	in.reports = append(in.reports, func(s Strike) { publish(s.Rule.When.String()+" "+s.Rule.What.String(), s.String()) })
}

// Stream puts the faults between, or refuses.
func (in inside) Stream(qp wr.QPID, s *mpa.Stream, preamble int) error {
	for _, k := range in.strikes(Connection, place{}, subject{qp: qp}) {
		in.report(k)
		if k.Rule.What == Refuse {
			return &Error{k}
		}
		s.IRD, s.Enhanced = min(s.IRD, k.Rule.N), true
	}
	if st := in.open(qp); st.rules > 0 {
		if s.EMSS == 0 {
			s.EMSS = mpa.EMSS(s.Conn) // a wrapped connection does not show it
		}
		st.flows[0].Begin(s.CRC, s.MarkersIn)
		st.flows[1].Begin(s.CRC, s.MarkersOut)
		st.flows[1].preamble = preamble
		early := s.Early
		s.Conn, s.Early = st.between(s.Conn), nil
		st.conn.Take(early)
	}
	return nil
}

// Watches says which calls of Post and Complete may come to something.
func (in inside) Watches() (posts, completions bool) {
	return in.now.Load().watches[Post], in.completes.Load()
}

// Post may refuse a request.
func (in inside) Post(qp wr.QPID, op wr.Op, s wr.STag) error {
	for _, k := range in.strikes(Post, place{uint64(qp), queueOf(op)}, subject{qp: qp, op: opOf[op]}) {
		if k.Rule.What == InvalidateSTag {
			in.invalidates(k, s)
			continue
		}
		in.report(k)
		return &Error{k}
	}
	return nil
}

// Register may refuse a region.
func (in inside) Register() error {
	for _, k := range in.strikes(Registration, place{}, subject{}) {
		in.report(k)
		return &Error{k}
	}
	return nil
}

// Complete says how long a completion stays hidden, and whether the CQ has no room for it.
func (in inside) Complete(qp wr.QPID, op wr.Op) (delay time.Duration, full bool) {
	for _, k := range in.strikes(Completion, place{uint64(qp), queueOf(op)}, subject{qp: qp, op: opOf[op]}) {
		in.report(k)
		delay, full = max(delay, k.Rule.For), full || k.Rule.What == Full
	}
	return delay, full
}

// queueOf is the queue that an operation is on, as the direction that plans name it by.
func queueOf(op wr.Op) Direction {
	if op == wr.OpRecv {
		return In
	}
	return Out
}

// invalidates carries out k, if this side has the STag.
func (in *Injector) invalidates(k Strike, s wr.STag) {
	in.mu.Lock()
	invalidate := in.invalidate
	in.mu.Unlock()
	if invalidate != nil && invalidate(s) {
		in.report(k)
	}
}
