//go:build linux && (amd64 || arm64)

package uverbs

import (
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
	"github.com/softrnic/softrnic/verbs"
)

// An inlineRing has the copies of data that a program posted inline: it may change its own at once.
// There is a slot for each element of the Send Queue, and for those of a list that are not posted yet: so
// a slot comes up again when what was in it has been completed. It is made by the first such post.
type inlineRing struct {
	mem  []byte
	mr   *verbs.MR
	slot int    // octets of one
	n    uint64 // slots
	next uint64
}

// copyInline copies elements to the next slot, of which s is to send. Errors: ENOMEM for more than the
// queue pair was made for, EFAULT.
func (q *QP) copyInline(c *call, raw []byte, s *verbs.Request) error {
	total := uint64(0)
	for b := raw; len(b) > 0; b = b[sgeSize:] {
		total += uint64(view[uabi.SGE](b).Length)
	}
	if total > uint64(q.maxInline) {
		return refuse(syscall.ENOMEM, "%d octets of inline data, the queue pair was created with max_inline_data %d", total, q.maxInline)
	}
	if total == 0 || c.dry {
		return nil
	}
	r := &q.inline
	if r.mr == nil {
		if err := r.make(q); err != nil {
			return err
		}
	}
	at := int(r.next%r.n) * r.slot
	end := at
	for b := raw; len(b) > 0; b = b[sgeSize:] {
		g := view[uabi.SGE](b)
		if umem.Read(r.mem[end:end+int(g.Length)], g.Addr) != nil {
			return refuse(syscall.EFAULT, "the inline data at %#x is not mapped", g.Addr)
		}
		end += int(g.Length)
	}
	r.next++
	k := len(c.sges)
	c.sges = append(c.sges, r.mr.SGE(at, end-at))
	s.SGL = c.sges[k:len(c.sges):len(c.sges)]
	return nil
}

func (r *inlineRing) make(q *QP) (err error) {
	r.slot, r.n = q.maxInline, uint64(q.sendDepth+maxList)
	r.mem = make([]byte, int(r.n)*r.slot)
	r.mr, err = q.pd.pd.Register(r.mem, verbs.LocalRead)
	return err
}

func (r *inlineRing) free() {
	if r.mr != nil {
		_ = r.mr.Deregister()
	}
}
