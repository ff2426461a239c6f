//go:build linux && (amd64 || arm64)

package uverbs

import (
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// The core tells the result of an Atomic Operation in its completion; InfiniBand places it in the eight octets of the
// request's element, before the program sees that completion or a later one of the queue pair. So each of them completes to
// us, under an ID of ours, and Poll writes the result there.

// special is what Poll has to know of such a request.
type special struct {
	id     uint64 // the program's
	hidden bool   // the program wants no completion
	sink   uabi.SGE
	op     verbs.Op // of an invalidation: what it is to the program
}

// specials are those under way, by ID modulo their number: one for each element of the Send Queue, for those of a
// list that are not posted yet, and for those that are being polled.
type specials struct {
	slots []special
	next  uint64
}

// atomic makes s of an atomic operation, whose sink is its one element.
func (q *QP) atomic(c *call, w *uabi.SendWR, s *verbs.Request, a *verbs.AtomicRequest) error {
	if len(s.SGL) != 1 || s.SGL[0].Length != 8 {
		return refuse(syscall.EINVAL, "an atomic operation has one element of 8 octets")
	}
	g := s.SGL[0]
	if err := q.remember(c, s, special{sink: uabi.SGE{Addr: g.TO, Length: 8, Lkey: uint32(g.STag)}}); err != nil || c.dry {
		return err
	}
	s.Remote = verbs.Remote{STag: verbs.STag(w.AtomicRkey()), TO: w.RemoteAddr}
	if w.Opcode == uabi.WRAtomicFetchAndAdd {
		s.Op, *a = verbs.OpFetchAdd, verbs.AtomicRequest{Data: w.CompareAdd}
	} else {
		s.Op, *a = verbs.OpCompareSwap, verbs.AtomicRequest{Data: w.Swap, Mask: ^uint64(0), Compare: w.CompareAdd, CompareMask: ^uint64(0)}
	}
	s.Atomic = a
	return nil
}

// invalidate makes s the invalidation of a key, or what is to the program the operation op, and does that.
func (q *QP) invalidate(c *call, s *verbs.Request, key verbs.STag, op verbs.Op) error {
	s.Op, s.Invalidate = verbs.OpInvalidate, key
	s.Flags = s.Flags&^verbs.ReadFence | verbs.LocalFence
	return q.remember(c, s, special{op: op})
}

// remember has s complete to us, under an ID of ours.
func (q *QP) remember(c *call, s *verbs.Request, p special) error {
	if c.dry {
		return nil
	}
	if err := q.roomForHidden(); err != nil {
		return err
	}
	p.id, p.hidden = s.ID, s.Flags&verbs.Unsignaled != 0
	i := q.specials.next % uint64(len(q.specials.slots))
	q.specials.slots[i] = p
	q.specials.next++
	s.ID, s.SGL = i, nil
	s.Flags &^= verbs.Unsignaled
	return nil
}

// roomForHidden makes the slots, and has the completion queue hold what the program does not see, too.
func (q *QP) roomForHidden() error {
	if q.specials.slots != nil {
		return nil
	}
	if err := q.sendCQ.reserve(q.sendDepth); err != nil {
		return err
	}
	q.specials.slots = make([]special, q.sendDepth+maxList+pollBatch)
	return nil
}

// freeHidden gives the room in the completion queue back.
func (q *QP) freeHidden() {
	if q.specials.slots != nil {
		_ = q.sendCQ.reserve(-q.sendDepth)
	}
}

// finish makes of the completion of an atomic operation, or an invalidation, what the program expects: its ID, and the result in
// place. It reports false if the program wants none.
func (q *QP) finish(d *verbs.Completion) bool {
	p := &q.specials.slots[d.ID%uint64(len(q.specials.slots))]
	if d.Op == verbs.OpInvalidate {
		d.Op = p.op
	} else if d.Status == verbs.StatusSuccess && !q.file.store(q.pd, p.sink, d.Value) {
		d.Status = verbs.StatusAccess
		_ = q.qp.Modify(verbs.ModifyQP{Next: verbs.StateError})
	}
	d.ID = p.id
	return d.Status != verbs.StatusSuccess || !p.hidden
}
