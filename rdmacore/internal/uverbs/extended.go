//go:build linux && (amd64 || arm64)

package uverbs

import (
	"syscall"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// extendedCQ refuses what an extended completion queue cannot have, with the errno of hardware that lacks it.
func (f *File) extendedCQ(q *uabi.CreateCQDriver) error {
	switch unknown := q.WCFlags &^ uabi.WCExStandard; {
	case unknown != 0:
		return refuse(syscall.EOPNOTSUPP, "wc_flags %#x: completions here have no time stamps, VLANs or tags", unknown)
	case q.AttrMask&^(uabi.CQFlags|uabi.CQParent) != 0:
		return refuse(syscall.EOPNOTSUPP, "comp_mask %#x has unknown bits", q.AttrMask)
	case q.Flags&^uabi.CQSingleThreaded != 0:
		return refuse(syscall.EOPNOTSUPP, "flags %#x: a queue that overflows says so", q.Flags)
	case q.AttrMask&uabi.CQParent == 0:
		return nil
	}
	d, err := use(&f.pds, q.ParentHandle, "parent domain")
	if err == nil && d.parent == nil {
		err = refuse(syscall.EINVAL, "protection domain %d is no parent domain", q.ParentHandle)
	}
	return err
}

// extendedQP is the same of an extended queue pair.
func extendedQP(q *uabi.CreateQPDriver) error {
	ops := uint64(uabi.QPExKnown)
	switch {
	case isUD(&q.QPConfig):
		ops = uabi.QPExSend | uabi.QPExSendWithImm
	case isUC(&q.QPConfig):
		ops &^= uabi.QPExReadAndAtomics
	}
	switch {
	case q.AttrMask&^(uabi.QPAttrPD|uabi.QPAttrCreateFlags|uabi.QPAttrSendOps) != 0:
		return refuse(syscall.EOPNOTSUPP, "comp_mask %#x: the device has no XRC, segmentation or indirection tables", q.AttrMask)
	case q.AttrMask != 0 && q.AttrMask&uabi.QPAttrPD == 0:
		return refuse(syscall.EINVAL, "comp_mask %#x: a protection domain has to be named", q.AttrMask)
	case q.CreateFlags != 0:
		return refuse(syscall.EOPNOTSUPP, "create_flags %#x: the device has none", q.CreateFlags)
	case q.SendOps&^ops != 0:
		return refuse(syscall.EOPNOTSUPP, "send_ops_flags %#x: the queue pair has no such operations", q.SendOps&^ops)
	}
	return nil
}

// takesAll is nil if all requests of a list are in order and there is room for them, with q.send held: then they are
// posted, or flushed, together. Otherwise it is what is wrong with the first that is not.
func (q *QP) takesAll(c *call, l list) error {
	c.dry = true
	defer func() { c.dry = false }()
	n := l.n
	for i := range n {
		c.sges = c.sges[:0]
		w := view[uabi.SendWR](l.wrs[i*l.stride:])
		var err error
		if q.ud != nil {
			_, err = q.translateUD(c, &l, w, &c.sends[0])
		} else {
			err = q.translate(c, &l, w, &c.sends[0], &c.atomics[0], &c.binds[0])
		}
		if err != nil {
			return err
		}
	}
	if room, _ := verbsinternal.Room(q.qp); room < n {
		if _, refused := q.qp.PostSend(); refused == nil { // else it has ended, and all flush
			return verbs.ErrQueueFull
		}
	}
	return nil
}
