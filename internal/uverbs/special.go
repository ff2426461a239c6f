//go:build linux && (amd64 || arm64)

package uverbs

import (
	"syscall"

	"github.com/softrnic/softrnic/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// Some requests complete to us first, with an ID of ours, and Poll makes of that what the program expects:
//
//   - Atomic Operations. The core tells the result in the completion; InfiniBand places it in the eight octets of
//     the request's element, before the program sees that completion or a later one of the queue pair.
//   - Signaled Writes of the RoCE presentation. iWARP completes a Write when it is sent, InfiniBand when it
//     is placed. So an empty Read goes behind it, whose answer says that: it needs no rights,
//     for where no octet goes the peer looks at none (verbs draft 8.1.3.2.1). A peer that has granted no
//     Reads completes it when it is sent.
type special struct {
	id     uint64 // the program's
	kind   specialKind
	hidden bool         // the program wants no completion
	status verbs.Status // of a Write that failed: its Read tells it
	sink   uabi.SGE     // of an Atomic Operation
}

type specialKind uint8

const (
	specialPlain specialKind = iota // of an operation that others of its kind make special
	specialAtomic
	specialWrite // an empty Read is behind it
	specialRead  // the one behind the Write in the slot before
)

// specials are those under way, by ID modulo their number: one for each element of the Send Queue, for those of a
// list that are not posted yet, and for those that are being polled.
type specials struct {
	slots []special
	next  uint64
}

// isSpecial reports whether completions of an operation of the queue pair are to be looked up.
func (q *QP) isSpecial(o verbs.Op) bool {
	switch o {
	case verbs.OpFetchAdd, verbs.OpCompareSwap:
		return true
	case verbs.OpWrite, verbs.OpWriteImmediate, verbs.OpWriteImmediateSE, verbs.OpRead:
		return q.file.dev.config.RoCE
	default:
		return false
	}
}

// note takes a slot for a request, which gets its ID.
func (q *QP) note(s *verbs.Request, p special) {
	r := &q.specials
	if r.slots == nil {
		r.slots = make([]special, q.coreDepth+3*maxList)
	}
	p.id = s.ID
	s.ID = r.next % uint64(len(r.slots))
	r.slots[s.ID] = p
	r.next++
}

// roomForHidden has the completion queue hold what the program does not see, too.
func (q *QP) roomForHidden() error {
	if q.reserved == 0 {
		if err := q.sendCQ.reserve(q.coreDepth); err != nil {
			return err
		}
		q.reserved = q.coreDepth
	}
	return nil
}

// atomic makes s of an atomic operation, whose sink is its one element.
func (q *QP) atomic(w *uabi.SendWR, s *verbs.Request, a *verbs.AtomicRequest) error {
	if len(s.SGL) != 1 || s.SGL[0].Length != 8 {
		return refuse(syscall.EINVAL, "an atomic operation has one element of 8 octets")
	}
	if err := q.roomForHidden(); err != nil {
		return err
	}
	g := s.SGL[0]
	q.note(s, special{kind: specialAtomic, hidden: s.Flags&verbs.Unsignaled != 0, sink: uabi.SGE{Addr: g.TO, Length: 8, Lkey: uint32(g.STag)}})
	s.SGL = nil
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

// placed notes a Write or Read of the RoCE presentation. With a signaled Write it makes the Read behind it, and
// reports true.
func (q *QP) placed(s, behind *verbs.Request) (bool, error) {
	if s.Op == verbs.OpRead || s.Flags&verbs.Unsignaled != 0 || !q.readsGranted() {
		q.note(s, special{kind: specialPlain})
		return false, nil
	}
	if err := q.roomForHidden(); err != nil {
		return false, err
	}
	*behind = verbs.Request{ID: s.ID, Op: verbs.OpRead}
	q.note(s, special{kind: specialWrite})
	s.Flags |= verbs.Unsignaled
	q.note(behind, special{kind: specialRead})
	return true, nil
}

// readsGranted reports whether the peer answers Reads on the stream there is.
func (q *QP) readsGranted() bool {
	s := q.qp.LLPStream()
	if s != q.grantedOn && q.qp.State() == verbs.StateRTS {
		a, err := q.qp.Query()
		q.grantedOn, q.granted = s, err == nil && a.ORD > 0
		if !q.granted {
			q.file.dev.report("no reads", "the peer grants no RDMA Reads, so a Write completes when it is sent and not when it is placed")
		}
	}
	return s == q.grantedOn && q.granted
}

// finish makes of a completion what the program expects. It reports false if that is nothing.
func (q *QP) finish(d *verbs.Completion) bool {
	slots := q.specials.slots
	p := &slots[d.ID%uint64(len(slots))]
	switch p.kind {
	case specialWrite: // it has failed: the Read behind it tells
		p.status = d.Status
		return false
	case specialRead:
		before := &slots[(d.ID+uint64(len(slots))-1)%uint64(len(slots))]
		d.Op = verbs.OpWrite
		if d.Status != verbs.StatusSuccess && before.status != verbs.StatusSuccess {
			d.Status = before.status
		}
	case specialAtomic:
		if d.Status == verbs.StatusSuccess && !q.file.store(q.pd, p.sink, d.Value) {
			d.Status = verbs.StatusAccess
			_ = q.qp.Modify(verbs.ModifyQP{Next: verbs.StateError})
		}
	case specialPlain:
	}
	d.ID = p.id
	return d.Status != verbs.StatusSuccess || !p.hidden
}
