package verbs_test

import (
	"errors"

	"github.com/softrnic/softrnic/verbs"
)

// modelStep is something that a program may do next.
type modelStep struct {
	weight int
	do     func(w *modelWorld, n *modelNode)
}

var modelRepertoire = []modelStep{
	{2, (*modelWorld).allocPD},
	{2, (*modelWorld).deallocPD},
	{2, (*modelWorld).setHandler},
	{3, (*modelWorld).createCQ},
	{2, (*modelWorld).resizeCQ},
	{2, (*modelWorld).destroyCQ},
	{16, (*modelWorld).notify},
	{60, (*modelWorld).poll},
	{2, (*modelWorld).createSRQ},
	{4, (*modelWorld).modifySRQ},
	{2, (*modelWorld).destroySRQ},
	{10, (*modelWorld).postShared},
	{5, (*modelWorld).createQP},
	{14, (*modelWorld).modifyQP},
	{2, (*modelWorld).destroyQP},
	{8, (*modelWorld).connect},
	{16, (*modelWorld).postRecv},
	{90, (*modelWorld).traffic},
	{1, (*modelWorld).failObject},
	{7, (*modelWorld).register},
	{4, (*modelWorld).allocate},
	{4, (*modelWorld).reregister},
	{3, (*modelWorld).share},
	{4, (*modelWorld).deregister},
	{4, (*modelWorld).allocateWindow},
	{3, (*modelWorld).deallocateWindow},
	{3, (*modelWorld).allocPages},
	{1, (*modelWorld).freePages},
	{4, (*modelWorld).scribble},
	{2, (*modelWorld).queryGone},
}

func (w *modelWorld) step() {
	total := 0
	for _, s := range modelRepertoire {
		total += s.weight
	}
	at := w.rng.IntN(total)
	for _, s := range modelRepertoire {
		if at -= s.weight; at < 0 {
			s.do(w, w.nodes[w.rng.IntN(2)])
			return
		}
	}
}

// furnish makes some of everything, all of it good.
func (w *modelWorld) furnish() {
	for _, n := range w.nodes {
		w.allocPD(n)
		w.setHandler(n)
		w.createCQ(n)
		w.createCQ(n)
		w.createSRQ(n)
		w.allocPages(n)
		for range 3 {
			w.register(n)
		}
		w.allocate(n)
		w.allocateWindow(n)
		w.createQP(n)
		w.createQP(n)
	}
	for range 3 {
		w.connect(w.nodes[0])
		w.compare()
	}
}

// one is true once in n times.
func (w *modelWorld) one(n int) bool { return w.rng.IntN(n) == 0 }

// wrong says that now something is to be done wrong on purpose. Verbs have several
// places for it, so a third of them goes wrong.
func (w *modelWorld) wrong() bool {
	odds := 6
	if w.bold {
		odds = 2
	}
	return !w.careful && w.one(odds)
}

func pick[T any](w *modelWorld, list ...T) T { return list[w.rng.IntN(len(list))] }

// object picks one of list, now and then one that is gone.
func object[T any](w *modelWorld, list []T, gone func(T) bool) (v T, ok bool) {
	some := living(list, gone)
	if !w.careful && w.one(12) {
		some = living(list, func(v T) bool { return !gone(v) })
	}
	if len(some) == 0 {
		return v, false
	}
	return pick(w, some...), true
}

func goneQP(q *modelQP) bool         { return q.gone }
func goneCQ(c *modelCQ) bool         { return c.gone }
func goneSRQ(s *modelSRQ) bool       { return s.gone }
func gonePD(p *modelPD) bool         { return p.gone }
func goneRegion(r *modelRegion) bool { return r.gone }
func goneWindow(m *modelWindow) bool { return m.gone }
func gonePages(p *modelPages) bool   { return p.gone }

func (w *modelWorld) id() uint64 { w.lastID++; return w.lastID }

// allocPD is 9.2.2.1.
func (w *modelWorld) allocPD(n *modelNode) {
	w.say("%d: allocate PD", n.number)
	var want error
	if len(living(n.pds, gonePD)) >= n.limits.PDs {
		want = verbs.ErrInsufficientResources
	}
	pd, err := n.nic.AllocatePD()
	w.same(want, err)
	if err == nil {
		n.pds = append(n.pds, &modelPD{real: pd})
	}
}

// deallocPD is 9.2.2.2.
func (w *modelWorld) deallocPD(n *modelNode) {
	if p, ok := object(w, n.pds, gonePD); ok {
		w.deallocThis(n, p)
	}
}

func (w *modelWorld) deallocThis(n *modelNode, p *modelPD) {
	w.say("%d: deallocate %v", n.number, p)
	var want error
	switch {
	case p.gone:
		want = verbs.ErrInvalidPD
	case p.users > 0:
		want = verbs.ErrPDInUse
	}
	w.same(want, p.real.Deallocate())
	p.gone = p.gone || want == nil
}

// setHandler is 9.4.1.
func (w *modelWorld) setHandler(n *modelNode) {
	some := living(n.handlers, func(h *modelHandler) bool { return h.gone })
	h := &modelHandler{}
	var want error
	if len(some) > 0 && !w.one(3) {
		h = pick(w, some...)
	} else if w.wrong() && len(n.handlers) > 0 {
		h = pick(w, n.handlers...)
	}
	version := h.version + 1
	id := h.real
	call := func(c *verbs.CQ) { n.real.add(modelCall(id, version, c)) }
	if id == 0 {
		// The identifier is not known before the call, and no completion comes before
		// it is used.
		call = func(c *verbs.CQ) { n.real.add(modelCall(h.real, version, c)) }
	}
	if !w.careful && w.one(4) {
		call = nil
	}
	switch {
	case h.gone, id == 0 && call == nil:
		want = verbs.ErrInvalidEventHandler
	case id == 0 && len(some) >= n.limits.EventHandlers:
		want = verbs.ErrInsufficientResources
	}
	w.say("%d: set handler %d, clear %t", n.number, id, call == nil)
	got, err := setHandler(n.nic, id, call)
	w.same(want, err)
	if err != nil {
		return
	}
	if id == 0 {
		h.real = got
		n.handlers = append(n.handlers, h)
	}
	w.equal("identifier", "handler", h.real, got)
	h.version, h.gone = version, call == nil
}

// scribble is the program writing to its memory. Nothing is under way then.
func (w *modelWorld) scribble(n *modelNode) {
	list := []*modelArena{n.heap}
	for _, p := range n.pages {
		list = append(list, p.in)
	}
	a := pick(w, list...)
	off := w.rng.IntN(len(a.want))
	for k := off; k < min(off+w.rng.IntN(2000), len(a.want)); k++ {
		a.set(k, byte(w.rng.Uint32()))
	}
	w.say("%d: write to memory", n.number)
}

// queryGone are the Query verbs of what is gone. Those of all else are compared
// after each step.
func (w *modelWorld) queryGone(n *modelNode) {
	w.say("%d: query what is gone", n.number)
	check := func(err, want error) {
		if !errors.Is(err, want) {
			w.fail("%v, the model says %v", err, want)
		}
	}
	for _, c := range n.cqs {
		if c.gone {
			check(second(c.real.Query()), verbs.ErrInvalidCQ)
		}
	}
	for _, s := range n.srqs {
		if s.gone {
			check(second(s.real.Query()), verbs.ErrInvalidSRQ)
		}
	}
	for _, q := range n.qps {
		if q.gone {
			check(second(q.real.Query()), verbs.ErrInvalidQP)
			check(second(q.real.User()), verbs.ErrInvalidQP)
		}
	}
	for _, r := range n.regions {
		if r.gone {
			check(second(r.real.Query()), verbs.ErrInvalidSTag)
		}
	}
	for _, m := range n.windows {
		if m.gone {
			check(second(m.real.Query()), verbs.ErrInvalidSTag)
		}
	}
}
