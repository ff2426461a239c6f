package verbs_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/softrnic/softrnic/verbs"
)

// modelWorld is two RNICs and what the model says of them.
type modelWorld struct {
	rng      *rand.Rand // of the step under way
	nodes    [2]*modelNode
	careful  bool // nothing is done wrong on purpose: while the world is furnished
	bold     bool // more than usual is
	lastID   uint64
	log      []string
	patience time.Duration
	count    map[string]int // how often each result came up
}

// modelBroken is a disagreement. It is thrown, so that rules read like rules.
type modelBroken struct{ error }

func (w *modelWorld) fail(format string, args ...any) {
	panic(modelBroken{fmt.Errorf(format, args...)})
}

func (w *modelWorld) say(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// must is for what is beside the point.
func (w *modelWorld) must(err error) {
	if err != nil {
		w.fail("%w", err)
	}
}

// same compares the result of a verb.
func (w *modelWorld) same(want, got error) {
	w.log[len(w.log)-1] += fmt.Sprintf(" -> %v", got)
	if want == nil && got != nil || want != nil && !errors.Is(got, want) {
		w.fail("the result is %q, the model says %q", fmt.Sprint(got), fmt.Sprint(want))
	}
	if want != nil {
		w.count["refused: "+want.Error()]++
	}
}

// equal compares anything else.
func (w *modelWorld) equal(what string, of, want, got any) {
	if reflect.DeepEqual(want, got) {
		return
	}
	if a, b := fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got); a != b {
		w.fail("%s of %v: %s, the model says %s", what, of, b, a)
	}
}

// await waits for what other goroutines bring about.
func (w *modelWorld) await(what func() string, ready func() bool) {
	end := time.Now().Add(w.patience)
	for tries := 0; !ready(); tries++ {
		if tries < 200 {
			runtime.Gosched()
			continue
		}
		if time.Now().After(end) {
			w.fail("in vain: %s", what())
		}
		time.Sleep(20 * time.Microsecond) // only to leave the processor to others
	}
}

// modelRecord is what an RNIC has reported to handlers of both kinds.
type modelRecord struct {
	mu  sync.Mutex
	got []string
}

func (r *modelRecord) add(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, s)
}

func (r *modelRecord) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func (r *modelRecord) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = nil
}

// compare waits until all has happened that the model says must, and compares
// everything that can be seen.
func (w *modelWorld) compare() {
	for _, n := range w.nodes {
		n.settle()
	}
	for _, n := range w.nodes {
		n.compareReports()
		n.compareQueues()
		n.compareQPs()
		n.compareSTags()
		n.compareMemory()
	}
}

func (n *modelNode) settle() {
	w := n.world
	for _, q := range n.qps {
		if q.gone || q.stream != nil {
			continue
		}
		done := q.real.Done()
		w.await(func() string {
			return fmt.Sprintf("the stream of %v is to end in %v, it is in %v", q, q.state, q.real.State())
		},
			func() bool {
				select {
				case <-done:
					return true
				default:
					return false
				}
			})
	}
	for _, c := range n.cqs {
		w.await(func() string {
			return fmt.Sprintf("%v has %d completions of %d, token %t", c, verbs.Queued(c.real), len(c.entries), c.token)
		},
			func() bool { return verbs.Queued(c.real) >= len(c.entries) && (len(c.real.Events()) > 0 || !c.token) })
	}
	w.await(func() string {
		return fmt.Sprintf("RNIC %d is to report %q, so far %q", n.number, n.want, n.real.list())
	},
		func() bool { return len(n.real.list()) >= len(n.want) })
}

func (n *modelNode) compareReports() {
	got := n.real.list()
	slices.Sort(got)
	slices.Sort(n.want)
	n.world.equal("reports", n, n.want, got)
	for _, s := range n.want {
		n.world.count[eventName(s)]++
	}
	n.want = nil
	n.real.clear()
}

func (n *modelNode) compareQueues() {
	w := n.world
	for _, c := range n.cqs {
		w.equal("completions", c, len(c.entries), verbs.Queued(c.real))
		w.equal("token", c, c.token, len(c.real.Events()) > 0)
		if c.gone {
			continue
		}
		a, err := c.real.Query()
		w.must(err)
		id := verbs.HandlerID(0)
		if c.handler != nil {
			id = c.handler.real
		}
		w.equal("query", c, verbs.CQAttributes{Entries: c.size, Handler: id}, a)
	}
	for _, s := range n.srqs {
		if s.gone {
			continue
		}
		a, err := s.real.Query()
		w.must(err)
		w.equal("query", s, verbs.SRQAttributes{
			Depth: s.depth, SGE: s.sge, Limit: s.limit, PD: s.pd.real.ID(), Armed: s.armed,
		}, a)
	}
}

func (n *modelNode) compareQPs() {
	w := n.world
	for _, q := range n.qps {
		if q.gone {
			continue
		}
		a, err := q.real.Query()
		w.must(err)
		w.equal("state", q, q.state, a.State)
		w.equal("stream", q, q.stream != nil, a.Stream != nil)
		if q.stream != nil && (q.stream.Conn != a.Stream.Conn || !reflect.DeepEqual(q.stream, a.Stream)) {
			w.fail("%v has another stream", q)
		}
		w.equal("objects", q, []any{q.pd.real.ID(), q.send.real.ID(), q.recv.real.ID(), q.srq != nil},
			[]any{a.PD.ID(), a.SendCQ.ID(), a.RecvCQ.ID(), a.SRQ != nil})
		if q.srq != nil && q.srq.real != a.SRQ {
			w.fail("%v has another S-RQ", q)
		}
		w.equal("sizes", q,
			[]int{q.sendDepth, q.recvDepth, q.sendSGE, q.writeSGE, q.recvSGE, q.ird, q.ord, q.rqLimit},
			[]int{a.SendDepth, a.RecvDepth, a.SendSGE, a.WriteSGE, a.RecvSGE, a.IRD, a.ORD, a.RQLimit})
		w.equal("switches", q,
			[]bool{q.noRead, q.noWrite, q.noBind, q.privileged, q.graceful, q.rqArmed},
			[]bool{a.NoInboundRead, a.NoInboundWrite, a.NoBind, a.Privileged, a.GracefulReceive, a.RQLimitArmed})
		n.compareTerminate(q, a.Terminate)
	}
}

// compareTerminate compares what is defined: in the Error state, if the last
// stream ended with a Terminate Message.
func (n *modelNode) compareTerminate(q *modelQP, got *verbs.TerminateMessage) {
	w := n.world
	if q.state != verbs.StateError || q.stale {
		return
	}
	if q.term == nil {
		if got != nil {
			w.fail("%v has a Terminate Message of no stream: %+v", q, *got)
		}
		return
	}
	if got == nil {
		w.fail("%v has no Terminate Message, the model says %+v", q, *q.term)
	}
	w.equal("Terminate Message", q, *q.term, modelTerm{got.Sent, int(got.Code)})
}

func (n *modelNode) compareSTags() {
	w := n.world
	for _, r := range n.regions {
		if r.gone {
			continue
		}
		want := verbs.RegionAttributes{
			STag: verbs.STag(r.index << 8), Valid: r.valid, Shared: r.shared, PD: r.pd.real.ID(), RemoteAccess: r.remote,
			PBL: r.pbl, Access: r.rights, RemoteInvalidate: r.open, Windows: r.windows,
		}
		if r.scope != nil {
			want.QP = r.scope.real.ID()
		}
		if r.valid {
			want.STag, want.Base, want.Length = r.stag(), r.base, r.length
			if r.zero {
				want.Addressing = verbs.ZeroBased
			}
		}
		got, err := r.real.Query()
		w.must(err)
		w.equal("query", r, want, got)
		w.equal("handle", r, r.view, struct {
			verbs.TaggedBuffer
			length int
		}{r.real.Buffer(), r.real.Len()})
	}
	for _, m := range n.windows {
		if m.gone {
			continue
		}
		want := verbs.WindowAttributes{STag: verbs.STag(m.index << 8), PD: m.pd.real.ID()}
		if m.valid {
			want.STag, want.Valid, want.QP, want.Access = m.stag(), true, m.qp.real.ID(), m.rights
			want.Base, want.Length, want.Region = m.base, m.length, m.region.stag()
			if m.zero {
				want.Addressing = verbs.ZeroBased
			}
		}
		got, err := m.real.Query()
		w.must(err)
		w.equal("query", m, want, got)
	}
}

// compareMemory compares all octets but those that are open.
func (n *modelNode) compareMemory() {
	for _, p := range n.unsure {
		p.in.adopt(p.off, p.n)
	}
	n.unsure = nil
	list := []*modelArena{n.heap}
	for _, p := range n.pages {
		list = append(list, p.in)
	}
	for i, a := range list {
		if k := a.differs(); k >= 0 {
			n.world.fail("memory %d of %v: octet %d is %#x, the model says %#x", i, n, k, a.real[k], a.want[k])
		}
	}
}

func (c *modelCQ) String() string { return fmt.Sprintf("%d.CQ%d", c.node.number, c.real.ID()) }
func (s *modelSRQ) String() string {
	return fmt.Sprintf("%d.S-RQ%d", s.node.number, s.real.ID())
}
func (q *modelQP) String() string     { return q.name }
func (r *modelRegion) String() string { return fmt.Sprintf("region %v", r.stag()) }
func (m *modelWindow) String() string { return fmt.Sprintf("window %v", m.stag()) }
func (n *modelNode) String() string   { return fmt.Sprintf("RNIC %d", n.number) }
func (p *modelPD) String() string     { return fmt.Sprintf("PD%d", p.real.ID()) }
