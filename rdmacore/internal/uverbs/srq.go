//go:build linux && (amd64 || arm64)

package uverbs

import (
	"sync/atomic"
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// srq is a shared receive queue.
type srq struct {
	srq   *verbs.SRQ
	user  uint64
	async source
	// shortest is the length of the shortest receive that it has ever had, in octets; 0 before the first. A datagram that is longer
	// is dropped: it might end the queue pair.
	shortest atomic.Uint64
}

// posting notes receives that are about to be posted.
func (s *srq) posting(list []verbs.Recv) {
	for i := range list {
		n := max(1, octets(list[i].SGL))
		for old := s.shortest.Load(); (old == 0 || n < old) && !s.shortest.CompareAndSwap(old, n); old = s.shortest.Load() {
		}
	}
}

func init() {
	legacy[uabi.CmdCreateSRQ] = control("CREATE_SRQ", (*File).createSRQ)
	legacy[uabi.CmdModifySRQ] = control("MODIFY_SRQ", (*File).modifySRQ)
	legacy[uabi.CmdQuerySRQ] = control("QUERY_SRQ", (*File).querySRQ)
	legacy[uabi.CmdDestroySRQ] = control("DESTROY_SRQ", (*File).destroySRQ)
}

// createSRQ ignores the limit, as Linux's drivers do: MODIFY_SRQ arms it.
func (f *File) createSRQ(q *uabi.CreateSRQ, p *uabi.CreateSRQResp) error {
	d, err := use(&f.pds, q.PDHandle, "protection domain")
	if err != nil {
		return err
	}
	if q.MaxWR == 0 || q.MaxWR > maxWR || q.MaxSGE > maxSGE {
		return refuse(syscall.EINVAL, "%d receives of %d elements: the device has 1 to %d of %d", q.MaxWR, q.MaxSGE, maxWR, maxSGE)
	}
	v, err := f.dev.rnic.CreateSRQ(verbs.SRQConfig{PD: d.pd, Depth: int(q.MaxWR), SGE: max(1, int(q.MaxSGE))})
	if err != nil {
		return err
	}
	s := &srq{srq: v, user: q.UserHandle, async: source{ch: f.async.Load()}}
	p.MaxWR, p.MaxSGE, p.SRQN = q.MaxWR, max(1, q.MaxSGE), uint32(v.ID())
	f.dev.srqs.Store(v.ID(), s)
	return created(f, &f.srqs, s, &p.SRQHandle, func() { _ = f.dev.endSRQ(s) })
}

func (f *File) modifySRQ(q *uabi.ModifySRQ, _ *uabi.None) error {
	s, err := use(&f.srqs, q.SRQHandle, "shared receive queue")
	if err != nil {
		return err
	}
	var m verbs.ModifySRQ
	if q.AttrMask&^(uabi.SRQMaxWR|uabi.SRQLimit) != 0 {
		return refuse(syscall.EINVAL, "attr_mask %#x has unknown bits", q.AttrMask)
	}
	if q.AttrMask&uabi.SRQMaxWR != 0 {
		if q.MaxWR == 0 || q.MaxWR > maxWR {
			return refuse(syscall.EINVAL, "%d receives: the device has 1 to %d", q.MaxWR, maxWR)
		}
		n := int(q.MaxWR)
		m.Depth = &n
	}
	if q.AttrMask&uabi.SRQLimit != 0 {
		if q.SRQLimit > maxWR {
			return refuse(syscall.EINVAL, "a limit of %d", q.SRQLimit)
		}
		n := int(q.SRQLimit)
		m.Limit, m.Rearm = &n, n > 0
	}
	return s.srq.Modify(m)
}

// querySRQ tells a limit of 0 once it has been reached, as Linux does.
func (f *File) querySRQ(q *uabi.QuerySRQ, p *uabi.QuerySRQResp) error {
	s, err := use(&f.srqs, q.SRQHandle, "shared receive queue")
	if err != nil {
		return err
	}
	a, err := s.srq.Query()
	if err != nil {
		return err
	}
	*p = uabi.QuerySRQResp{MaxWR: uint32(a.Depth), MaxSGE: uint32(a.SGE)}
	if a.Armed {
		p.SRQLimit = uint32(a.Limit)
	}
	return nil
}

// destroySRQ is EBUSY while a queue pair takes from it.
func (f *File) destroySRQ(q *uabi.DestroySRQ, p *uabi.DestroySRQResp) error {
	return destroy(&f.srqs, q.SRQHandle, "shared receive queue", func(s *srq) error {
		if err := f.dev.endSRQ(s); err != nil {
			return err
		}
		p.EventsReported = s.async.end()
		return nil
	})
}

func (d *Device) endSRQ(s *srq) error {
	if err := s.srq.Destroy(); err != nil {
		return err
	}
	d.srqs.Delete(s.srq.ID())
	return nil
}
