package fault

import (
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/softrnic/softrnic/internal/instrument"
	"github.com/softrnic/softrnic/lab/internal/interpose"
	"github.com/softrnic/softrnic/wr"
)

// Injector carries out a plan, for one RNIC (verbs.Config.Faults) or proxy. Its methods may be
// called from any goroutine.
type Injector struct {
	carrier // for package verbs
	plan    *Plan
	watches [Registration + 1]bool // what the rules count

	mu       sync.Mutex
	streams  uint64 // begun; guarded by mu, as below
	counters map[place]map[When][]*counter
	reports  []func(Strike)
	// invalidate makes an STag of the RNIC Invalid, and reports whether there was one; nil: there is no RNIC.
	invalidate func(wr.STag) bool
}

type carrier = instrument.InjectorCarrier

// New makes an Injector. report, unless nil, is called for each fault that struck, by the goroutine that it
// struck; it must not block. The error is that of Plan.Check.
func New(p *Plan, report func(Strike)) (*Injector, error) {
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("fault plan: %w", err)
	}
	in := &Injector{plan: p, counters: map[place]map[When][]*counter{}}
	for i := range p.Rules {
		in.watches[p.Rules[i].When] = true
	}
	in.carrier = instrument.CarryInjector(inside{in})
	if report != nil {
		in.reports = append(in.reports, report)
	}
	return in, nil
}

// Plan is what it carries out.
func (in *Injector) Plan() *Plan { return in.plan }

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
func (in *Injector) strikes(w When, p place, qp wr.QPID, op Op) (list []Strike) {
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

// Conn puts the faults between the caller and nc, on which an MPA startup is to come: what the caller writes is
// Out, and is what the Initiator sends. It is for a proxy. The error is that of a connection that is refused.
func (in *Injector) Conn(nc net.Conn) (net.Conn, error) {
	for _, k := range in.strikes(Connection, place{}, 0, AnyOp) {
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
		case r.When >= Post, r.What == InvalidateSTag, r.What == IRD:
			return fmt.Errorf("line %d: %v: that is inside an RNIC: a proxy sees streams and connections only", r.Line, r)
		case r.QP != 0:
			return fmt.Errorf("line %d: %v: a proxy knows no queue pairs: say connection N", r.Line, r)
		}
	}
	return nil
}
