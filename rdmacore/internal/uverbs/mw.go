//go:build linux && (amd64 || arm64)

package uverbs

import (
	"encoding/binary"
	"syscall"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// mw is a memory window. A window of the RNIC is of the queue pair that has bound it (verbs draft 7.10), as InfiniBand's of
// type 2B. Those of type 1 are the same here: their owner is whichever queue pair the program bound them on.
type mw struct {
	mw   *verbs.MW
	kind uint8 // 1 or 2
}

func init() {
	legacy[uabi.CmdAllocMW] = control("ALLOC_MW", (*File).allocMW)
	legacy[uabi.CmdDeallocMW] = control("DEALLOC_MW", func(f *File, q *uabi.DeallocMW, _ *uabi.None) error {
		return destroy(&f.mws, q.MWHandle, "memory window", func(w *mw) error { return w.mw.Deallocate() })
	})
}

func (f *File) allocMW(q *uabi.AllocMW, p *uabi.AllocMWResp) error {
	if q.MWType != 1 && q.MWType != 2 {
		return refuse(syscall.EINVAL, "memory window type %d: there are 1 and 2", q.MWType)
	}
	d, err := use(&f.pds, q.PDHandle, "protection domain")
	if err != nil {
		return err
	}
	v, err := d.pd.AllocateWindow()
	if err != nil {
		return err
	}
	p.Rkey = uint32(v.STag(0))
	return created(f, &f.mws, &mw{v, q.MWType}, &p.MWHandle, func() { _ = v.Deallocate() })
}

// windowRights are those of a window. Local ones are the region's, and asked for by habit.
const windowRights = uabi.AccessLocalWrite | uabi.AccessRemoteWrite | uabi.AccessRemoteRead | uabi.AccessRemoteAtomic | uabi.AccessZeroBased

// bind makes s and b of a request to bind. A window of type 1 that is bound is bound anew, of type 2 it has to be invalidated
// before. Without a remote right, or as one of type 1 without an octet, it lets nobody in, which to the RNIC is one that is not bound.
func (q *QP) bind(c *call, w *uabi.SendWR, s *verbs.Request, b *verbs.BindRequest) error {
	m, key := w.Bind(), verbs.STag(binary.NativeEndian.Uint32(w.Ex[:]))
	v, err := use(&q.file.mws, m.Window, "memory window")
	switch {
	case err != nil:
		return err
	case m.How != uint32(v.kind):
		return refuse(syscall.EINVAL, "ibv_bind_mw is for windows of type 1, a request to bind for those of type 2; this is one of type %d", v.kind)
	case v.mw.STag(uint8(key)) != key:
		return refuse(syscall.EINVAL, "rkey %#x is not of the window, whose are %#x and what differs in the last octet", key, v.mw.STag(0))
	case m.Access&^windowRights != 0:
		return refuse(syscall.EINVAL, "access %#x: a window has remote rights alone", m.Access&^windowRights)
	}
	a, err := access(m.Access&^uabi.AccessZeroBased | uabi.AccessLocalWrite)
	if err != nil {
		return err
	}
	a &= verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic
	if m.How == uabi.BindByVerb && !c.dry {
		verbsinternal.Unbind(v.mw)
	}
	if a == 0 || m.How == uabi.BindByVerb && m.Length == 0 {
		return q.invalidate(c, s, key, verbs.OpBind)
	}
	*b = verbs.BindRequest{Window: key, Region: verbs.STag(m.Lkey), VA: m.Addr, Length: m.Length, Addressing: verbs.VABased, Access: a}
	if m.Access&uabi.AccessZeroBased != 0 {
		b.Addressing = verbs.ZeroBased
	}
	s.Op, s.Bind, s.SGL = verbs.OpBind, b, nil
	return nil
}

// unbind makes the windows invalid that are bound to the queue pair, which is to be destroyed: InfiniBand lets it be.
func (q *QP) unbind() {
	for _, w := range q.file.mws.All {
		if a, err := w.mw.Query(); err == nil && a.Valid && a.QP == verbs.QPID(q.qpn) {
			verbsinternal.Unbind(w.mw)
		}
	}
}
