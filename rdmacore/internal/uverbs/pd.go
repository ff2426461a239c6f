//go:build linux && (amd64 || arm64)

package uverbs

import (
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// pd is a protection domain, or a parent domain, which has the objects of the one that it is of: their core is one.
type pd struct {
	pd     *verbs.PD
	parent *pd // of a parent domain: whose it is
	heirs  int // parent domains of this one, guarded by File.mu
}

func init() {
	legacy[uabi.CmdAllocPD] = withDriver(control("ALLOC_PD", (*File).allocPD), size[uabi.AllocPD]())
	legacy[uabi.CmdDeallocPD] = control("DEALLOC_PD", (*File).deallocPD)
}

func (f *File) allocPD(q *uabi.AllocPDDriver, p *uabi.AllocPDResp) error {
	if q.ParentHandle != 0 {
		return f.allocParent(q, p)
	}
	v, err := f.dev.rnic.AllocatePD()
	if err != nil {
		return err
	}
	return created(f, &f.pds, &pd{pd: v}, &p.PDHandle, func() { _ = v.Deallocate() })
}

// allocParent makes a parent domain. Of a parent domain it is one of whose that is.
func (f *File) allocParent(q *uabi.AllocPDDriver, p *uabi.AllocPDResp) error {
	if q.AttrMask&^uabi.ParentKnown != 0 {
		return refuse(syscall.EOPNOTSUPP, "comp_mask %#x: the device allocates nothing in the program's memory", q.AttrMask)
	}
	f.mu.Lock()
	v, err := use(&f.pds, q.ParentHandle, "protection domain")
	if err == nil {
		if v.parent != nil {
			v = v.parent
		}
		v.heirs++
	}
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return created(f, &f.pds, &pd{pd: v.pd, parent: v}, &p.PDHandle, func() { v.heirs-- })
}

// deallocPD is EBUSY while something is in the domain, or a parent domain of it is there.
func (f *File) deallocPD(q *uabi.DeallocPD, _ *uabi.None) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return destroy(&f.pds, q.PDHandle, "protection domain", func(v *pd) error {
		switch {
		case v.parent != nil:
			v.parent.heirs--
			return nil
		case v.heirs > 0:
			return refuse(syscall.EBUSY, "%d parent domains of it are there", v.heirs)
		}
		return v.pd.Deallocate()
	})
}

// created gives a new object its handle, or undoes it: when the File has been closed meanwhile, or
// has too many.
func created[T any](f *File, t *table[T], v *T, h *uabi.Handle, undo func()) (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err = errClosed
	if !f.closed {
		var ok bool
		if *h, ok = t.Add(v); ok {
			return nil
		}
		err = refuse(syscall.ENOMEM, "there are %d such objects already", t.Len())
	}
	undo()
	return err
}
