package fault

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/softrnic/softrnic/internal/instrument"
	"github.com/softrnic/softrnic/lab/internal/interpose"
	"github.com/softrnic/softrnic/wr"
)

// Injector carries out a plan, for one RNIC (verbs.Config.Faults) or proxy. Its methods may be
// called from any goroutine.
type Injector struct {
	carrier // for package verbs
	ofC     bool
	now     atomic.Pointer[carried]
	// completes says that some plan of it has had rules of completions.
	completes atomic.Bool
	unplugged atomic.Bool

	mu      sync.Mutex
	streams uint64 // begun; guarded by mu, as below
	reports []func(Strike)
	// invalidate makes an STag of the RNIC Invalid, and reports whether there was one; nil: there is no RNIC.
	invalidate func(wr.STag) bool
}

type carrier = instrument.InjectorCarrier

// carried is a plan that is carried out.
type carried struct {
	plan     *Plan
	watches  [seen + 1]bool                // what the rules count
	counters map[place]map[When][]*counter // guarded by Injector.mu
}

// New makes an Injector. report, unless nil, is called for each fault that struck, by the goroutine that it
// struck; it must not block. The error is that of Plan.Check.
func New(p *Plan, report func(Strike)) (*Injector, error) { return newInjector(p, report, false) }

func newInjector(p *Plan, report func(Strike), ofC bool) (*Injector, error) {
	in := &Injector{ofC: ofC}
	if err := in.SetPlan(p); err != nil {
		return nil, err
	}
	in.carrier = instrument.CarryInjector(inside{in})
	if report != nil {
		in.reports = append(in.reports, report)
	}
	return in, nil
}

// SetPlan has another plan be carried out from now on, which counts from the beginning. Rules of streams are of those that
// begin from here on; those of the plan before strike no more. The error is as New's.
func (in *Injector) SetPlan(p *Plan) error {
	err := p.Check()
	if err == nil && !in.ofC {
		err = p.NeedsC()
	}
	if err != nil {
		return fmt.Errorf("fault plan: %w", err)
	}
	now := &carried{plan: p, counters: map[place]map[When][]*counter{}}
	for i := range p.Rules {
		now.watches[p.Rules[i].counts()] = true
	}
	if now.watches[Completion] {
		in.completes.Store(true)
	}
	in.now.Store(now)
	return nil
}

// Plan is what it carries out.
func (in *Injector) Plan() *Plan { return in.now.Load().plan }

// Strike is a fault that struck.
type Strike struct {
	Rule Rule
	// Seen is what the rule has counted there, with this; Pos, of a stream, how many octets of the FPDU stream were
	// before it.
	Seen, Pos uint64
	// Connection counts the streams, from 1; 0: no stream.
	Connection uint64
	QP         wr.QPID // 0: unknown, or none
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
func (now *carried) of(w When, p place) []*counter {
	here := now.counters[p]
	if here == nil {
		here = map[When][]*counter{}
		now.counters[p] = here
	}
	list, ok := here[w]
	if !ok {
		for i := range now.plan.Rules {
			if now.plan.Rules[i].counts() == w {
				list = append(list, now.plan.newCounter(i, p))
			}
		}
		here[w] = list
	}
	return list
}

// subject is what is counted: of a queue pair, an operation, a verb, as far as there is one.
type subject struct {
	qp   wr.QPID
	op   Op
	verb string
}

// strikes are the rules that strike what is counted at p.
func (in *Injector) strikes(w When, p place, of subject) (list []Strike) {
	now := in.now.Load()
	if !now.watches[w] {
		return nil
	}
	in.mu.Lock()
	for _, c := range now.of(w, p) {
		fits := (c.Dir == Both || c.Dir == p.dir) && (c.QP == 0 || c.QP == of.qp) && (c.Op == AnyOp || c.Op == of.op) && c.Verb == of.verb
		if fits && c.hit() {
			list = append(list, Strike{Rule: *c.Rule, Seen: c.seen, QP: of.qp, Dir: p.dir})
		}
	}
	in.mu.Unlock()
	return list
}

// Conn puts the faults between the caller and nc, on which an MPA startup is to come: what the caller writes is
// Out, and is what the Initiator sends. It is for a proxy. The error is that of a connection that is refused.
func (in *Injector) Conn(nc net.Conn) (net.Conn, error) {
	for _, k := range in.strikes(Connection, place{}, subject{}) {
		in.report(k)
		if k.Rule.What == Refuse {
			return nil, &Error{k}
		}
	}
	return in.open(0).between(nc), nil
}

// Relay joins two connections, with the faults of the plan between, until both directions have ended: what
// client sends is Out. It closes both, or resets both if that is how it ended. The error is that of a connection
// that is refused, which resets client, or nil.
func (in *Injector) Relay(client, server net.Conn) error {
	to, err := in.Conn(server)
	if err != nil {
		interpose.Drop(client)
		_ = server.Close()
		return err
	}
	interpose.Relay(client, to)
	return nil
}

// NeedsRNIC finds a rule that a proxy cannot carry out.
func (p *Plan) NeedsRNIC() error {
	for _, r := range p.Rules {
		switch {
		case r.ofC():
			return fmt.Errorf("line %d: %v: that is of a C program's device (rnic run): a proxy sees streams and connections only", r.Line, r)
		case r.When >= Post, r.What == InvalidateSTag, r.What == IRD:
			return fmt.Errorf("line %d: %v: that is inside an RNIC: a proxy sees streams and connections only", r.Line, r)
		case r.QP != 0:
			return fmt.Errorf("line %d: %v: a proxy knows no queue pairs: say connection N", r.Line, r)
		}
	}
	return nil
}
