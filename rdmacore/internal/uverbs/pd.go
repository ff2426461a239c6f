//go:build linux && (amd64 || arm64)

package uverbs

import (
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

type pd struct{ pd *verbs.PD }

func init() {
	legacy[uabi.CmdAllocPD] = control("ALLOC_PD", (*File).allocPD)
	legacy[uabi.CmdDeallocPD] = control("DEALLOC_PD", (*File).deallocPD)
}

func (f *File) allocPD(_ *uabi.AllocPD, p *uabi.AllocPDResp) error {
	v, err := f.dev.rnic.AllocatePD()
	if err != nil {
		return err
	}
	return created(f, &f.pds, &pd{v}, &p.PDHandle, func() { _ = v.Deallocate() })
}

// deallocPD is EBUSY while something is in the domain.
func (f *File) deallocPD(q *uabi.DeallocPD, _ *uabi.None) error {
	return destroy(&f.pds, q.PDHandle, "protection domain", func(v *pd) error { return v.pd.Deallocate() })
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
