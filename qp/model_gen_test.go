package qp_test

import (
	"math/rand/v2"

	"github.com/softrnic/softrnic/verbs"
)

// What the generator makes has one possible result (RFC 5040 5.5):
//
//   - The memory of a side has two halves. In a round one is only read: Sends,
//     Writes and the peer's Reads take data from anywhere in it. Of the other
//     half every octet is written by at most one request, that is by a Receive,
//     by a Read of this side or by a Write of the peer.
//   - Except for chains within one Send Queue that the rules order: a Read of
//     what an earlier Write put there (rule 12); behind a Read Fence, a Send or
//     Write of what an earlier Read fetched, or a Write to where an earlier Read
//     took its data; an Atomic where an earlier Atomic was (RFC 7306 5.2.2).
//   - A round ends with a signaled Send a side, so that its Writes are known to
//     be placed once the Send is received (rule 10).

// span is a piece of a side's memory.
type span struct{ off, n int }

// modelOp is a request for a Send Queue with what it means to the model.
type modelOp struct {
	send verbs.Request
	from []span     // data source of a Send or Write, in this side's memory
	near span       // data sink of a Read, in this side's memory
	far  span       // data sink of a Write, source of a Read or word of an Atomic, at the peer
	recv *modelRecv // what a Send fills, at the peer
}

// modelRecv is a request for a Receive Queue.
type modelRecv struct {
	recv verbs.Recv
	into []span
}

const (
	modelMemory = 4 << 20 // octets a side and pair
	modelHalf   = modelMemory / 2
	modelSGE    = 6
)

// arena hands out pieces of the half that is written in a round, each once.
type arena struct{ next, end int }

func (a *arena) take(rng *rand.Rand, n int) (span, bool) {
	off := a.next + rng.IntN(9) // now and then an octet between that nobody may touch
	if off+n > a.end {
		return span{}, false
	}
	a.next = off + n
	return span{off, n}, true
}

// generator makes one round of work for both ends of a pair.
type generator struct {
	*rand.Rand
	c      modelCase
	ends   [2]*modelEnd
	source int // where the half that is only read begins
	sinks  [2]arena
	nextID *uint64
}

func (g *generator) id() uint64 { *g.nextID++; return *g.nextID }

// size draws the length of a message: small ones, those about the length of
// segments, and the longest.
func (g *generator) size() int {
	n := 0
	switch g.IntN(12) {
	case 0:
	case 1, 2, 3, 4, 5:
		n = g.IntN(80)
	case 6, 7:
		n = 16<<10*(1+g.IntN(4)) - 40 + g.IntN(60)
	case 8, 9:
		n = g.IntN(64 << 10)
	case 10:
		n = g.IntN(256 << 10)
	default:
		n = g.IntN(g.c.biggest + 1)
		if g.IntN(4) == 0 {
			n = g.c.biggest
		}
	}
	return min(n, g.c.biggest)
}

// ops makes the requests of end i; the last one is a signaled Send.
func (g *generator) ops(i int) []*modelOp {
	var (
		list       []*modelOp
		wrote      []span // at the peer, by Writes of this round
		fetched    []span // here, by Reads of this round
		readThere  []span // at the peer, by Reads of what only this side writes
		words      []span // at the peer, of Atomics of this round
		unsignaled int
	)
	for want := 1 + g.IntN(g.c.ops); len(list) < want; {
		op := &modelOp{}
		switch kind := g.IntN(12); {
		case kind == 11:
			if !g.atomic(i, op, &words) {
				return g.end(i, list)
			}
		case kind == 10:
			g.immediate(op)
		case kind < 3:
			if !g.send(i, op, fetched) {
				return g.end(i, list)
			}
		case kind < 7:
			if !g.write(i, op, fetched, &readThere) {
				return g.end(i, list)
			}
			wrote = append(wrote, op.far)
			if g.IntN(4) == 0 {
				g.immediate(op)
			}
		default:
			chained, ok := g.read(i, op, wrote)
			if !ok {
				return g.end(i, list)
			}
			fetched = append(fetched, op.near)
			if chained {
				readThere = append(readThere, op.far)
			}
		}
		// A full queue has to hold a request whose completion will tell.
		if unsignaled++; unsignaled < g.c.depth && g.IntN(2) == 0 {
			op.send.Flags |= verbs.Unsignaled
		} else {
			unsignaled = 0
		}
		list = append(list, op)
	}
	return g.end(i, list)
}

func (g *generator) end(i int, list []*modelOp) []*modelOp {
	op := &modelOp{recv: &modelRecv{recv: verbs.Recv{ID: g.id()}}}
	op.send.ID = g.id()
	return append(list, op)
}

// gather draws the data source of a Send or Write: pieces of what is only read,
// or of what an earlier Read fetched.
func (g *generator) gather(i int, op *modelOp, n int, fetched []span) {
	near := span{g.source, modelHalf}
	if len(fetched) > 0 && g.IntN(3) == 0 {
		near = fetched[g.IntN(len(fetched))]
		op.send.Flags |= verbs.ReadFence
		n = min(n, near.n)
	}
	if n == 0 && g.IntN(2) == 0 {
		return // no elements at all
	}
	for _, n := range g.split(n) {
		s := span{near.off + g.IntN(near.n-n+1), n}
		op.from = append(op.from, s)
		op.send.SGL = append(op.send.SGL, g.sge(i, s))
	}
}

// split cuts n into up to modelSGE lengths, zero among them.
func (g *generator) split(n int) []int {
	var parts []int
	for range g.IntN(modelSGE) {
		k := g.IntN(n + 1)
		parts = append(parts, k)
		n -= k
	}
	return append(parts, n)
}

// sge is an element for s, through any of the regions that cover it. The STag
// and TO of an empty element mean nothing (verbs draft 8.1.3.2).
func (g *generator) sge(i int, s span) verbs.SGE {
	if s.n == 0 {
		return verbs.SGE{STag: verbs.STag(g.Uint32()), TO: g.Uint64()}
	}
	return g.region(i).SGE(s.off, s.n)
}

func (g *generator) remote(i int, s span) verbs.Remote {
	if s.n == 0 { // RFC 5040 5.1, 5.2.1: not looked at
		return verbs.Remote{STag: verbs.STag(g.Uint32()), TO: g.Uint64()}
	}
	return g.region(i).Remote(s.off)
}

func (g *generator) region(i int) *verbs.MR {
	r := g.ends[i].regions
	return r[g.IntN(len(r))]
}

// send makes op a Send of any type. It reports false if the peer has no memory
// left in this round.
func (g *generator) send(i int, op *modelOp, fetched []span) bool {
	g.gather(i, op, g.size(), fetched)
	op.send.ID, op.send.Op = g.id(), verbs.Op(g.IntN(int(verbs.OpSendSEInvalidate)+1))
	total := 0
	for _, s := range op.from {
		total += s.n
	}
	op.recv = &modelRecv{recv: verbs.Recv{ID: g.id()}}
	room := total
	if g.IntN(2) == 0 {
		room += g.IntN(100)
	}
	for _, n := range g.split(room) {
		s, ok := g.sinks[1-i].take(g.Rand, n)
		if !ok {
			return false
		}
		op.recv.into = append(op.recv.into, s)
		op.recv.recv.SGL = append(op.recv.recv.SGL, g.sge(1-i, s))
	}
	if op.send.Op.Invalidates() {
		op.send.Invalidate = g.ends[1-i].victim()
	}
	return true
}

func (g *generator) write(i int, op *modelOp, fetched []span, readThere *[]span) bool {
	var ok bool
	n := g.size()
	if k := len(*readThere); k > 0 && g.IntN(3) == 0 {
		op.far, ok = (*readThere)[k-1], true
		*readThere = nil // others may lie within it
		op.send.Flags |= verbs.ReadFence
		n = op.far.n
	}
	g.gather(i, op, n, fetched)
	op.send.ID, op.send.Op = g.id(), verbs.OpWrite
	n = 0
	for _, s := range op.from {
		n += s.n
	}
	if ok {
		op.far.n = n
	} else if op.far, ok = g.sinks[1-i].take(g.Rand, n); !ok {
		return false
	}
	op.send.Remote = g.remote(1-i, op.far)
	return true
}

// immediate gives op eight octets to send behind its Write, if it is one, and a receive
// that they take.
func (g *generator) immediate(op *modelOp) {
	plain, solicited := verbs.OpImmediate, verbs.OpImmediateSE
	if op.send.Op == verbs.OpWrite {
		plain, solicited = verbs.OpWriteImmediate, verbs.OpWriteImmediateSE
	} else {
		op.send.ID = g.id()
	}
	op.send.Op, op.send.Immediate = plain, g.Uint64()
	if g.IntN(2) == 0 {
		op.send.Op = solicited
	}
	op.recv = &modelRecv{recv: verbs.Recv{ID: g.id()}}
	for range g.IntN(modelSGE + 1) { // whose memory nobody looks at
		op.recv.recv.SGL = append(op.recv.recv.SGL, verbs.SGE{STag: verbs.STag(g.Uint32()), TO: g.Uint64(), Length: g.Uint32()})
	}
}

// read makes op a Read; chained says that it reads what a Write of this side put
// there.
func (g *generator) read(i int, op *modelOp, wrote []span) (chained, ok bool) {
	n := g.size()
	op.far = span{g.source + g.IntN(modelHalf-n+1), n}
	if len(wrote) > 0 && g.IntN(2) == 0 {
		op.far, chained = wrote[g.IntN(len(wrote))], true
	}
	if op.near, ok = g.sinks[i].take(g.Rand, op.far.n); !ok {
		return false, false
	}
	op.send = verbs.Request{
		ID: g.id(), Op: verbs.OpRead, Local: g.sge(i, op.near), Remote: g.remote(1-i, op.far),
	}
	return chained, true
}

// atomic makes op an Atomic on a word of its own at the peer, or on that of an earlier one.
// A comparison is with one bit, so that it is met now and then.
func (g *generator) atomic(i int, op *modelOp, words *[]span) bool {
	if k := len(*words); k > 0 && g.IntN(2) == 0 {
		op.far = (*words)[g.IntN(k)]
	} else {
		s, ok := g.sinks[1-i].take(g.Rand, 15)
		if !ok {
			return false
		}
		op.far = span{(s.off + 7) &^ 7, 8} // the memory of a side is aligned
		*words = append(*words, op.far)
	}
	op.send = verbs.Request{
		ID: g.id(), Op: verbs.OpFetchAdd + verbs.Op(g.IntN(3)), Remote: g.remote(1-i, op.far),
		Atomic: &verbs.AtomicRequest{Data: g.Uint64(), Mask: g.Uint64() & g.Uint64()},
	}
	if op.send.Op == verbs.OpCompareSwap {
		some := g.Uint64() & g.Uint64() & g.Uint64()
		op.send.Atomic.Compare, op.send.Atomic.CompareMask = g.Uint64(), some&-some // one bit, or none
	}
	return true
}
