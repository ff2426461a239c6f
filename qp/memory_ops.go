package qp

import "github.com/softrnic/softrnic/wr"

// The memory operations of a Send Queue: Bind Memory Window, Fast-Register and
// Invalidate Local STag. The transmit side executes them where it comes to them,
// so that each takes effect before any later request begins (verbs draft
// 8.2.2.1 rules 3 to 5). They send nothing; they complete in order.

// memoryArgs are the modifiers of a memory operation as posted. The address
// list's array is used again by the next one in the same slot.
type memoryArgs struct {
	bind         wr.BindRequest
	fastRegister wr.FastRegisterRequest
}

// checkMemory finds the Immediate Errors of a memory operation: a modifier is
// missing, is no addressing type (9.3.1.1), or is the STag of zero, whatever its
// key (RV-7.2.1-M15, M16).
func checkMemory(r *wr.Request) error {
	ok := false
	switch r.Op {
	case wr.OpBind:
		b := r.Bind
		ok = b != nil && b.Window.Index() != 0 && b.Region.Index() != 0 && b.Addressing <= wr.ZeroBased
	case wr.OpFastRegister:
		f := r.FastRegister
		ok = f != nil && f.STag.Index() != 0 && f.Addressing <= wr.ZeroBased
	case wr.OpInvalidate:
		ok = r.Invalidate.Index() != 0
	default: // no other is a memory operation
	}
	if !ok {
		return &wr.Reason{
			Err: wr.ErrInvalidModifier, What: "a modifier is missing, is no addressing type, or is the STag of zero", Rule: "RV-7.2.1-M15",
			Remedy: memoryModifiers[r.Op],
		}
	}
	return nil
}

// memoryModifiers are where the modifiers of a memory operation are.
var memoryModifiers = [...]string{
	wr.OpBind: "set Request.Bind, as MW.BindRequest makes it", wr.OpFastRegister: "set Request.FastRegister, with the STag of MR.WithKey",
	wr.OpInvalidate: "set Request.Invalidate",
}

// keep copies the modifiers of a memory operation, which PostSend may not keep.
func (m *memoryArgs) keep(r *wr.Request) {
	if r.Op == wr.OpBind {
		m.bind = *r.Bind
		return
	}
	list := m.fastRegister.Buffers.Addresses[:0]
	list = append(list, r.FastRegister.Buffers.Addresses...)
	m.fastRegister = *r.FastRegister
	m.fastRegister.Buffers.Addresses = list
}

// checkAtomic finds the Immediate Errors of an Atomic.
func checkAtomic(r *wr.Request) error {
	if r.Atomic == nil {
		return &wr.Reason{Err: wr.ErrInvalidModifier, What: "an Atomic needs its modifiers", Remedy: "set Request.Atomic"}
	}
	return nil
}

// atomicSize is how many octets an Atomic is about.
const atomicSize = 8
