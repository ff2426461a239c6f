package qp

import (
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

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
func (e *sqe) keep(r *wr.Request) {
	if r.Op == wr.OpInvalidate {
		return
	}
	if e.memory == nil {
		e.memory = new(memoryArgs)
	}
	m := e.memory
	if r.Op == wr.OpBind {
		m.bind = *r.Bind
		return
	}
	list := m.fastRegister.Buffers.Addresses[:0]
	list = append(list, r.FastRegister.Buffers.Addresses...)
	m.fastRegister = *r.FastRegister
	m.fastRegister.Buffers.Addresses = list
}

// mayExecute reports whether the next element, a memory operation, may be executed.
func (t *transmitter) mayExecute(e *sqe) bool {
	switch {
	case e.op != wr.OpInvalidate:
		return true // NA-1 of figure 22: an Invalidate comes before it
	case e.flags&wr.LocalFence != 0 && t.sq.done.Load() != t.next:
		return false // draft 8.2.2.2: all prior ones complete first
	case t.pos != t.written.Load():
		// An earlier Send or Write, or the answer to a Read, may still read
		// from the region. Without the fence only earlier Reads of this side
		// are not waited for.
		t.settling = true
		return false
	}
	return true
}

// execute does the next element, a memory operation, if it may.
func (t *transmitter) execute(e *sqe) (bool, cause) {
	if !t.mayExecute(e) {
		return false, cause{}
	}
	tab := t.cfg.STags
	var f fault
	switch e.op {
	case wr.OpBind:
		f = memoryFault(sideBind, t.bind(&e.memory.bind))
	case wr.OpFastRegister:
		f = t.fastRegisterFault(tab.FastRegister(&e.memory.fastRegister, t.s.user))
	default:
		f = memoryFault(sideInvalidate, tab.InvalidateLocal(e.invalidate, t.s.user))
	}
	if f != noFault {
		return false, cause{fault: f, sq: t.next, hasSQ: true}
	}
	t.count.executed(e.op)
	t.tell() // it may complete from here on
	t.advance(e)
	return true, cause{}
}

func (t *transmitter) bind(b *wr.BindRequest) stag.Fault {
	if t.cfg.NoBind { // RV-7.10.6.1
		return stag.FaultAccess
	}
	return t.cfg.STags.Bind(b, t.s.user)
}

// fastRegisterFault maps what Fast-Register refuses. A size that is not supported
// has a status for each mode of the RNIC (figure 36).
func (t *transmitter) fastRegisterFault(f stag.Fault) fault {
	if f == stag.FaultBufferSize && t.cfg.BlockMode {
		return faultFastBlockSize
	}
	return memoryFault(sideFastRegister, f)
}
