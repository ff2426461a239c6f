package qp_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/softrnic/softrnic/verbs"
)

// twin is the slow model of one end: what its memory and its completions have to
// be.
type twin struct {
	memory []byte
	sq, rq []verbs.Completion
}

// apply does what ops, posted by end i in this order, have to come to. The other
// end's requests touch other memory, so that the ends can be taken one after the
// other.
func apply(twins [2]*twin, qps [2]verbs.QPID, i int, ops []*modelOp) {
	here, there := twins[i], twins[1-i]
	for _, op := range ops {
		var data []byte
		var original uint64
		for _, s := range op.from {
			data = append(data, here.memory[s.off:s.off+s.n]...)
		}
		if op.send.Op.IsWrite() {
			copy(there.memory[op.far.off:], data)
		}
		switch {
		case op.send.Op.IsImmediate():
			there.rq = append(there.rq, verbs.Completion{
				ID: op.recv.recv.ID, QP: qps[1-i], Op: verbs.OpRecv, Value: op.send.Immediate, HasImmediate: true,
			})
		case op.send.Op == verbs.OpWrite:
		case op.send.Op.IsAtomic():
			word := there.memory[op.far.off : op.far.off+op.far.n]
			original = binary.NativeEndian.Uint64(word)
			binary.NativeEndian.PutUint64(word, changed(original, op.send.Op, op.send.Atomic))
		case op.send.Op == verbs.OpRead:
			copy(here.memory[op.near.off:], there.memory[op.far.off:op.far.off+op.far.n])
		default:
			c := verbs.Completion{
				ID: op.recv.recv.ID, QP: qps[1-i], Op: verbs.OpRecv, Bytes: uint32(len(data)),
			}
			if op.send.Op.Invalidates() {
				c.Invalidated, c.HasInvalidated = op.send.Invalidate, true
			}
			there.rq = append(there.rq, c)
			for _, s := range op.recv.into {
				n := copy(there.memory[s.off:s.off+s.n], data)
				data = data[n:]
			}
		}
		if op.send.Flags&verbs.Unsignaled == 0 {
			here.sq = append(here.sq, verbs.Completion{ID: op.send.ID, QP: qps[i], Op: op.send.Op, Value: original})
		}
	}
}

// changed is what an Atomic makes of old, bit by bit (RFC 7306 5.1).
func changed(old uint64, op verbs.Op, a *verbs.AtomicRequest) (v uint64) {
	carry := uint64(0)
	for bit := uint64(1); bit != 0; bit <<= 1 {
		was, data, masked := min(old&bit, 1), min(a.Data&bit, 1), a.Mask&bit != 0
		if op == verbs.OpCompareSwap && (old^a.Compare)&a.CompareMask != 0 {
			return old
		}
		switch {
		case op == verbs.OpFetchAdd:
			sum := was + data + carry
			v |= bit * (sum & 1)
			carry = sum >> 1
			if masked { // the highest bit of a field
				carry = 0
			}
		case masked:
			v |= bit * data
		default:
			v |= bit * was
		}
	}
	return v
}

// compareMemory finds the first octet that is not as the model has it.
func compareMemory(got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("memory: octet %d is %#02x, the model has %#02x", i, got[i], want[i])
		}
	}
	return nil
}

// compareCompletions compares what a queue completed. IDs grow in the order of
// posting; in order says that got is in the order of completion, which several
// consumers of a CQ cannot tell.
func compareCompletions(queue string, got, want []verbs.Completion, inOrder bool) error {
	got = slices.Clone(got)
	if !inOrder {
		slices.SortFunc(got, func(a, b verbs.Completion) int { return cmp.Compare(a.ID, b.ID) })
	}
	for i, w := range want {
		if i == len(got) {
			return fmt.Errorf("%s: %d completions, the model has %d", queue, len(got), len(want))
		}
		g := got[i]
		if g.Op != verbs.OpRecv {
			g.Bytes = 0 // means nothing, verbs draft 9.3.2.1
		}
		if g != w {
			return fmt.Errorf("%s: completion %d is %+v, the model has %+v", queue, i, g, w)
		}
	}
	if len(got) > len(want) {
		return fmt.Errorf("%s: %+v completed, which the model has not", queue, got[len(want)])
	}
	return nil
}
