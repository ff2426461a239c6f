//go:build linux && (amd64 || arm64)

package uverbs

import (
	"syscall"

	"github.com/softrnic/softrnic/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// The core tells the result of an Atomic Operation in its completion; InfiniBand places it in the eight octets of
// the request's element. So each is completed to us, with an ID of ours, and Poll writes the result
// there before the program sees that completion or a later one of the queue pair.

// special is what Poll has to know of such a request.
type special struct {
	id     uint64 // the program's
	sink   uabi.SGE
	hidden bool // the program wants no completion
}

// specials are those under way, by ID modulo their number: one for each element of the Send Queue, and for
// those of a list that are not posted yet.
type specials struct {
	slots []special
	next  uint64
}

func (q *QP) atomic(w *uabi.SendWR, s *verbs.Request, a *verbs.AtomicRequest) error {
	if len(s.SGL) != 1 || s.SGL[0].Length != 8 {
		return refuse(syscall.EINVAL, "an atomic operation has one element of 8 octets")
	}
	r := &q.specials
	if r.slots == nil {
		r.slots = make([]special, q.sendDepth+maxList)
	}
	sink := s.SGL[0]
	hidden := s.Flags&verbs.Unsignaled != 0
	if hidden && !q.reserved {
		if err := q.sendCQ.reserve(q.sendDepth); err != nil {
			return err
		}
		q.reserved = true
	}
	i := r.next % uint64(len(r.slots))
	r.slots[i] = special{w.WRID, uabi.SGE{Addr: sink.TO, Length: 8, Lkey: uint32(sink.STag)}, hidden}
	r.next++
	s.ID, s.SGL = i, nil
	s.Flags &^= verbs.Unsignaled
	s.Remote = verbs.Remote{STag: verbs.STag(w.AtomicRkey()), TO: w.RemoteAddr}
	if w.Opcode == uabi.WRAtomicFetchAndAdd {
		s.Op, *a = verbs.OpFetchAdd, verbs.AtomicRequest{Data: w.CompareAdd}
	} else {
		s.Op, *a = verbs.OpCompareSwap, verbs.AtomicRequest{Data: w.Swap, Mask: ^uint64(0), Compare: w.CompareAdd, CompareMask: ^uint64(0)}
	}
	s.Atomic = a
	return nil
}

// finish ends an Atomic Operation: it puts the program's ID in and writes the result. It
// reports false if the program is to see nothing of it.
func (q *QP) finish(d *verbs.Completion) bool {
	p := q.specials.slots[d.ID%uint64(len(q.specials.slots))]
	d.ID = p.id
	if d.Status != verbs.StatusSuccess {
		return true
	}
	if !q.file.store(q.pd, p.sink, d.Value) {
		d.Status = verbs.StatusAccess
		_ = q.qp.Modify(verbs.ModifyQP{Next: verbs.StateError})
		return true
	}
	return !p.hidden
}
