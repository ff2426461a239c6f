//go:build linux && (amd64 || arm64)

package uverbs

import (
	"encoding/binary"
	"syscall"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
	"github.com/softrnic/softrnic/verbs"
)

// pollBatch is how many completions are polled at a time.
const pollBatch = 16

func init() {
	legacy[uabi.CmdPollCQ] = &command{
		name: "POLL_CQ", hot: true, req: size[uabi.PollCQ](), resp: size[uabi.PollCQResp](), answers: true, run: pollCQ,
		trace: func(c *call) string { return Fields(view[uabi.PollCQ](c.body)) }, result: tracePolled,
	}
}

// pollCQ moves completions to the program, behind the header of the response. As on Linux those that cannot be
// written there are lost.
func pollCQ(c *call) error {
	h := view[uabi.PollCQ](c.body)
	v, err := use(&c.file.cqs, h.CQHandle, "completion queue")
	if err != nil {
		return err
	}
	v.looks.Add(1)
	v.each(true, (*waiting).look)
	p := uabi.PollCQResp{}
	for p.Count < h.NE {
		want := int(min(h.NE-p.Count, pollBatch))
		n, k := v.poll(c, want)
		at := c.resp + uint64(size[uabi.PollCQResp]()) + uint64(p.Count)*uint64(size[uabi.WC]())
		if k > 0 && umem.Write(at, umem.Octets(c.wcs[:k])) != nil {
			return refuse(syscall.EFAULT, "the response is not mapped")
		}
		p.Count += uint32(k)
		if n < want {
			break
		}
	}
	if umem.Write(c.resp, umem.Bytes(&p)) != nil {
		return refuse(syscall.EFAULT, "the response is not mapped")
	}
	if p.Count > 0 {
		v.each(true, (*waiting).seen)
		c.file.dev.found(v, c.wcs[0].QPNum)
	}
	switch p.Count {
	case 0:
		c.file.dev.idlers.fruitless(v)
	case h.NE: // there may be more
		v.ahead(c)
	}
	return nil
}

// poll polls up to most completions, n of which k are for the program: they are in c.wcs. The lock has what a
// request brings be where the program looks before another thread of it sees a later completion.
func (v *cq) poll(c *call, most int) (n, k int) {
	v.polls.Lock()
	defer v.polls.Unlock()
	if v.ring.len() > 0 { // since the program looked there
		return most, v.ring.take(c.wcs[:most])
	}
	if len(v.made) > 0 {
		n = copy(c.wcs[:most], v.made)
		v.made = append(v.made[:0], v.made[n:]...)
		return most, n // there may be more
	}
	return v.taken(c, v.cq.Poll(c.done[:most]))
}

// ahead puts what has completed into the ring of the queue, if it has one: at most as much as the queue has room for. It
// does not receive. c.done and c.wcs are overwritten.
func (v *cq) ahead(c *call) {
	v.polls.Lock()
	defer v.polls.Unlock()
	if v.ring == nil {
		return
	}
	left := min(ringWCs-ringSpare, verbsinternal.Entries(v.cq)) - v.ring.len()
	if k := min(left, len(v.made)); k > 0 {
		v.ring.add(v.made[:k])
		v.made, left = append(v.made[:0], v.made[k:]...), left-k
	}
	for n := pollBatch; n == pollBatch && left > 0; {
		var k int
		n, k = v.taken(c, verbsinternal.PollQueued(v.cq, c.done[:min(left, pollBatch)]))
		v.ring.add(c.wcs[:k])
		left -= k
	}
	v.ring.more.Store(either(left <= 0, uint32(1), 0))
}

// taken makes c.wcs of the n completions in c.done, which come from the core's queue: k of them are for the program.
func (v *cq) taken(c *call, n int) (_, k int) {
	for i := range c.done[:n] {
		d := &c.done[i]
		if q, ok := d.Context.(*QP); ok {
			if (d.Op.IsAtomic() || d.Op == verbs.OpInvalidate) && !q.finish(d) {
				continue
			}
			wc(&c.wcs[k], d, q.qpn)
			if q.ud != nil {
				q.ud.polled(&c.wcs[k], d)
			}
			if f := q.file.dev.config.Faults; f != nil && d.Status == verbs.StatusSuccess {
				q.strike(f, d, &c.wcs[k])
			}
			if d.Status != verbs.StatusSuccess {
				q.file.dev.reportRequestFault(q, d)
				if q.file.dev.config.RoCE || q.uc != nil {
					c.wcs[k].Status = adapterStatus(d)
				}
				if q.withhold(d, &c.wcs[k]) {
					continue
				}
			}
			k++
		}
	}
	return n, k
}

// wc makes w of d.
func wc(w *uabi.WC, d *verbs.Completion, qpn uint32) {
	*w = uabi.WC{WRID: d.ID, Status: statusOf(d), Opcode: wcOps[d.Op], QPNum: qpn, PortNum: 1}
	if d.Status != verbs.StatusSuccess {
		w.VendorErr = uint32(d.Status)
		return
	}
	switch {
	case d.Op == verbs.OpRecv, d.Op.IsRead():
		w.ByteLen = d.Bytes
	case d.Op >= verbs.OpFetchAdd:
		w.ByteLen = 8
	}
	if d.HasInvalidated {
		w.WCFlags |= uabi.WCWithInvalidate
		binary.NativeEndian.PutUint32(w.Ex[:], uint32(d.Invalidated))
	}
	if d.HasImmediate { // see immediate
		w.WCFlags |= uabi.WCWithImm
		if d.Bytes > 0 { // see sendImmediate: all others come without payload
			binary.BigEndian.PutUint32(w.Ex[:], uint32(d.Value))
			return
		}
		binary.BigEndian.PutUint32(w.Ex[:], uint32(d.Value>>32))
		if n := uint32(d.Value); n != immediateAlone {
			w.Opcode, w.ByteLen = uabi.WCRecvRDMAWithImm, n
		}
	}
}
