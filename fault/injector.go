package fault

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/softrnic/softrnic/mpa"
)

// Injector carries out a plan, for one RNIC (verbs.Config.Faults) or proxy. Its methods may be
// called from any goroutine.
type Injector struct {
	plan    *Plan
	watches [Registration + 1]bool // what the rules count

	mu       sync.Mutex
	streams  uint64 // begun; guarded by mu, as below
	counters map[place]map[When][]*counter
	reports  []func(Strike)
	lose     func(stag uint32) bool // nil: there is no RNIC
}

// New makes an Injector. report, unless nil, is told of each fault that struck, by the goroutine that it
// struck; it must not block. The error is that of Plan.Check.
func New(p *Plan, report func(Strike)) (*Injector, error) {
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("fault plan: %w", err)
	}
	in := &Injector{plan: p, counters: map[place]map[When][]*counter{}}
	for i := range p.Rules {
		in.watches[p.Rules[i].When] = true
	}
	if report != nil {
		in.reports = append(in.reports, report)
	}
	return in, nil
}

// Plan is what it carries out.
func (in *Injector) Plan() *Plan { return in.plan }

// Attach is for package verbs: lose makes an STag Invalid, and reports whether there was one; report is told of each
// fault that struck.
func (in *Injector) Attach(lose func(stag uint32) bool, report func(what string)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.lose = lose
	if report != nil {
		in.reports = append(in.reports, func(s Strike) { report(s.String()) })
	}
}

// Strike is a fault that struck.
type Strike struct {
	Rule Rule
	// Seen is what the rule has counted there, with this; Pos, of a stream, how many octets of the FPDU stream were before it.
	Seen, Pos uint64
	// Connection counts the streams, from 1; 0: no stream.
	Connection uint64
	QP         uint32 // 0: unknown, or none
	Dir        Direction
}

func (s Strike) String() string {
	var b strings.Builder
	if s.Rule.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", s.Rule.Line)
	}
	b.WriteString(s.Rule.String())
	var at []string
	if s.Connection > 0 {
		at = append(at, fmt.Sprintf("connection %d", s.Connection))
	}
	if s.QP > 0 {
		at = append(at, fmt.Sprintf("qp %d", s.QP))
	}
	if s.Dir != Both {
		at = append(at, s.Dir.String())
	}
	if s.Rule.When.onStream() {
		at = append(at, fmt.Sprintf("octet %d", s.Pos))
	}
	if len(at) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(at, ", "))
	}
	return b.String()
}

func (in *Injector) report(s Strike) {
	in.mu.Lock()
	reports := in.reports
	in.mu.Unlock()
	for _, report := range reports {
		report(s)
	}
}

// Error is what a fault has made of a verb.
type Error struct{ Strike Strike }

func (e *Error) Error() string { return "by the fault plan, " + e.Strike.String() }

// of are the counters of what is counted at p, in the order of their rules. mu is held.
func (in *Injector) of(w When, p place) []*counter {
	here := in.counters[p]
	if here == nil {
		here = map[When][]*counter{}
		in.counters[p] = here
	}
	list, ok := here[w]
	if !ok {
		for i := range in.plan.Rules {
			if in.plan.Rules[i].When == w {
				list = append(list, in.plan.newCounter(i, p))
			}
		}
		here[w] = list
	}
	return list
}

// strikes are the rules that strike what is counted at p.
func (in *Injector) strikes(w When, p place, qp uint32, op Op) (list []Strike) {
	if !in.watches[w] {
		return nil
	}
	in.mu.Lock()
	for _, c := range in.of(w, p) {
		fits := (c.Dir == Both || c.Dir == p.dir) && (c.QP == 0 || c.QP == qp) && (c.Op == AnyOp || c.Op == op)
		if fits && c.hit() {
			list = append(list, Strike{Rule: *c.Rule, Seen: c.seen, QP: qp, Dir: p.dir})
		}
	}
	in.mu.Unlock()
	return list
}

// Stream is for package verbs: a stream of queue pair qp is about to run, and its first preamble octets out are
// no FPDUs. It puts itself between, or refuses.
func (in *Injector) Stream(qp uint32, s *mpa.Stream, preamble int) error {
	for _, k := range in.strikes(Connection, place{}, qp, AnyOp) {
		in.report(k)
		if k.Rule.What == Refuse {
			return &Error{k}
		}
		s.IRD, s.Enhanced = min(s.IRD, k.Rule.N), true
	}
	if st := in.open(qp); st.rules > 0 {
		if s.EMSS == 0 {
			s.EMSS = mpa.EMSS(s.Conn) // a wrapped connection does not tell
		}
		st.flows[0].begin(s.CRC, s.MarkersIn, 0)
		st.flows[1].begin(s.CRC, s.MarkersOut, preamble)
		c := newConn(s.Conn, st)
		c.in.takes(s.Early)
		s.Conn, s.Early = c.offered(), nil
	}
	return nil
}

// Conn puts the faults between the caller and nc, on which an MPA startup is to come: what the caller writes is Out, and is
// what the Initiator sends. It is for a proxy. The error is that of a connection that is refused.
func (in *Injector) Conn(nc net.Conn) (net.Conn, error) {
	for _, k := range in.strikes(Connection, place{}, 0, AnyOp) {
		in.report(k)
		if k.Rule.What == Refuse {
			return nil, &Error{k}
		}
	}
	return newConn(nc, in.open(0)).offered(), nil
}

// NeedsRNIC finds a rule that a proxy cannot carry out.
func (p *Plan) NeedsRNIC() error {
	for _, r := range p.Rules {
		switch {
		case r.When >= Post, r.What == LoseSTag, r.What == IRD:
			return fmt.Errorf("line %d: %v: that is inside an RNIC: a proxy sees streams and connections only", r.Line, r)
		case r.QP != 0:
			return fmt.Errorf("line %d: %v: a proxy knows no queue pairs: say connection N", r.Line, r)
		}
	}
	return nil
}

// Post is for package verbs: a request is posted to queue pair qp, of the type that package wr calls op, whose first element
// names stag. It may fail.
func (in *Injector) Post(qp uint32, op string, stag uint32) error {
	for _, k := range in.strikes(Post, place{uint64(qp), sideOf(op)}, qp, opNamed(op)) {
		if k.Rule.What == LoseSTag {
			in.loseSTag(k, stag)
			continue
		}
		in.report(k)
		return &Error{k}
	}
	return nil
}

// Register is for package verbs: a region is registered. It may fail.
func (in *Injector) Register() error {
	for _, k := range in.strikes(Registration, place{}, 0, AnyOp) {
		in.report(k)
		return &Error{k}
	}
	return nil
}

// Complete is for package verbs: queue pair qp adds a completion to a CQ. It says how long that stays hidden, with what comes behind it, and whether the CQ
// has room.
func (in *Injector) Complete(qp uint32, op string) (late time.Duration, full bool) {
	for _, k := range in.strikes(Completion, place{uint64(qp), sideOf(op)}, qp, opNamed(op)) {
		in.report(k)
		late, full = max(late, k.Rule.For), full || k.Rule.What == Full
	}
	return late, full
}

// sideOf is the queue that an operation is on.
func sideOf(op string) Direction {
	if op == "Recv" {
		return In
	}
	return Out
}

// loseSTag carries out k, if this side has the STag.
func (in *Injector) loseSTag(k Strike, stag uint32) {
	in.mu.Lock()
	lose := in.lose
	in.mu.Unlock()
	if lose != nil && lose(stag) {
		in.report(k)
	}
}

// stream is a connection with faults.
type stream struct {
	in    *Injector
	n     uint64 // from 1
	qp    uint32
	rules int
	flows [2]*flow // In, Out
	times []*counter

	mu             sync.Mutex
	request, reply *mpa.Startup // guarded by mu; a proxy's
}

// open begins the next stream.
func (in *Injector) open(qp uint32) *stream {
	in.mu.Lock()
	in.streams++
	st := &stream{in: in, n: in.streams, qp: qp}
	in.mu.Unlock()
	for d := range st.flows {
		st.flows[d] = &flow{st: st, dir: Direction(d + 1)}
	}
	for i := range in.plan.Rules {
		r := &in.plan.Rules[i]
		if !r.When.onStream() || r.QP != 0 && r.QP != qp || r.Connection != 0 && r.Connection != st.n {
			continue
		}
		st.rules++
		if r.When == Time {
			st.times = append(st.times, in.plan.newCounter(i, place{st.n, r.Dir}))
			continue
		}
		for _, f := range st.flows {
			if r.Dir == Both || r.Dir == f.dir {
				f.rules = append(f.rules, in.plan.newCounter(i, place{st.n, f.dir}))
			}
		}
	}
	return st
}

// report tells that c has struck in direction d.
func (st *stream) report(c *counter, d Direction, pos uint64) { st.in.report(st.strike(c, d, pos)) }

func (st *stream) strike(c *counter, d Direction, pos uint64) Strike {
	return Strike{Rule: *c.Rule, Seen: c.seen, Pos: pos, Connection: st.n, QP: st.qp, Dir: d}
}
