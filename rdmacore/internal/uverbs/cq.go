//go:build linux && (amd64 || arm64)

package uverbs

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// cq is a completion queue.
type cq struct {
	cq         *verbs.CQ
	user       uint64
	polls      sync.Mutex
	made       []uabi.WC // completions that go ahead of the core's, guarded by polls: see ending
	ring       *ring     // completions that go ahead of made, or nil; what is put in, and the ring's owner, are guarded by polls
	size       sizes
	comp       source // ch is nil without a channel
	async      source
	fruitless  atomic.Uint32 // polls
	yielded    atomic.Uint32 // how many of them there were when found had the RNIC's own goroutine serve
	qps        atomic.Int32  // whose requests complete here
	idling     idling
	openQueues               // whose requests complete here
	waits      atomic.Uint64 // of the program, in Watch, which were for this queue too
	armed      atomic.Uint64 // what waits was when the program armed the queue
}

func init() {
	legacy[uabi.CmdCreateCQ] = withDriver(control("CREATE_CQ", func(f *File, q *uabi.CreateCQDriver, p *uabi.CreateCQResp) error {
		if err := f.extendedCQ(q); err != nil {
			return err
		}
		return f.createCQ(q.UserHandle, q.CQE, q.CompVector, q.CompChannel, p)
	}), size[uabi.CreateCQ]())
	extended[uabi.CmdCreateCQ] = exControl("EX_CREATE_CQ", 32, 16, func(f *File, q *uabi.ExCreateCQ, p *uabi.ExCreateCQResp) error {
		if q.CompMask != 0 || q.Reserved != 0 {
			return refuse(syscall.EINVAL, "comp_mask and reserved have to be 0")
		}
		if q.Flags != 0 { // timestamps, and overruns that nobody is told of
			return refuse(syscall.EOPNOTSUPP, "flags %#x: the device has none", q.Flags)
		}
		return f.createCQ(q.UserHandle, q.CQE, q.CompVector, q.CompChannel, &p.Base)
	}, func(p *uabi.ExCreateCQResp, n uint32) { p.ResponseLength = n })
	legacy[uabi.CmdResizeCQ] = control("RESIZE_CQ", (*File).resizeCQ)
	legacy[uabi.CmdDestroyCQ] = control("DESTROY_CQ", (*File).destroyCQ)
	legacy[uabi.CmdReqNotifyCQ] = &command{
		name: "REQ_NOTIFY_CQ", req: size[uabi.ReqNotifyCQ](), run: notifyCQ,
		trace: func(c *call) string { return Fields(view[uabi.ReqNotifyCQ](c.body)) },
	}
}

func (f *File) createCQ(user uint64, cqe, vector uint32, fd int32, p *uabi.CreateCQResp) error {
	switch {
	case vector != 0:
		return refuse(syscall.EINVAL, "completion vector %d: the device has one", vector)
	case cqe == 0 || cqe > maxCQE:
		return refuse(syscall.EINVAL, "%d entries: the device has 1 to %d", cqe, maxCQE)
	}
	f.mu.Lock()
	ch, err := f.channel(fd)
	f.mu.Unlock()
	if err != nil {
		return err
	}
	c := &cq{user: user, comp: source{ch: ch}, async: source{ch: f.async.Load()}}
	if c.cq, err = f.dev.rnic.CreateCQ(verbs.CQConfig{Entries: int(cqe)}); err != nil {
		ch.leave(nil)
		return err
	}
	verbsinternal.OnNotify(c.cq, c.completed)
	verbsinternal.Hush(c.cq, hushes)
	ch.join(c)
	f.dev.cqs.Store(c.cq.ID(), c)
	f.dev.idlers.add(c)
	c.size.base = verbsinternal.Entries(c.cq)
	p.CQE = uint32(c.size.base)
	if err := created(f, &f.cqs, c, &p.CQHandle, func() { _ = f.dev.endCQ(c) }); err != nil {
		return err
	}
	c.polls.Lock()
	defer c.polls.Unlock()
	c.ring = f.ring(p.CQHandle)
	return nil
}

func (f *File) resizeCQ(q *uabi.ResizeCQ, p *uabi.ResizeCQResp) error {
	c, err := use(&f.cqs, q.CQHandle, "completion queue")
	if err != nil {
		return err
	}
	if q.CQE == 0 || q.CQE > maxCQE {
		return refuse(syscall.EINVAL, "%d entries: the device has 1 to %d", q.CQE, maxCQE)
	}
	p.CQE = q.CQE
	f.dev.settle(c)
	return c.resize(int(q.CQE))
}

// settle waits until the datagrams posted have their completions in c: an adapter sends them at once, and programs resize
// a queue that they take to be filled. It is prompt, since they go no further than the feeder; still for 500 ms at most.
func (d *Device) settle(c *cq) {
	ctx, cancel := context.WithTimeout(context.Background(), endingTime)
	defer cancel()
	d.qpns.Range(func(_, v any) bool {
		if q := v.(*QP); q.ud != nil && q.sendCQ == c {
			_ = q.qp.Drain(ctx)
		}
		return true
	})
}

// destroyCQ is EBUSY while a queue pair completes there.
func (f *File) destroyCQ(q *uabi.DestroyCQ, p *uabi.DestroyCQResp) error {
	return destroy(&f.cqs, q.CQHandle, "completion queue", func(c *cq) error {
		if err := f.dev.endCQ(c); err != nil {
			return err
		}
		p.CompEventsReported, p.AsyncEventsReported = c.comp.end(), c.async.end()
		return nil
	})
}

func (d *Device) endCQ(c *cq) error {
	if err := c.cq.Destroy(); err != nil {
		return err
	}
	c.polls.Lock()
	c.ring.free()
	c.ring = nil
	c.polls.Unlock()
	d.cqs.Delete(c.cq.ID())
	d.idlers.remove(c)
	c.comp.ch.leave(c)
	return nil
}

func notifyCQ(c *call) error {
	q := view[uabi.ReqNotifyCQ](c.body)
	v, err := use(&c.file.cqs, q.CQHandle, "completion queue")
	if err != nil {
		return err
	}
	t := verbs.NotifyNext
	if q.SolicitedOnly != 0 {
		t = verbs.NotifySolicited
	}
	if v.watched() {
		err = verbsinternal.NotifyWatched(v.cq, t)
	} else {
		err = v.cq.Notify(t)
	}
	if err == nil {
		v.ahead(c)
	}
	return err
}

// completed puts an event in the queue's channel, where the completion is made: it does not block.
func (c *cq) completed() {
	if c.comp.ch != nil && !c.comp.completion(c.user) {
		c.comp.ch.dev.Report("channel full", "a completion channel is full, so an event is lost: the program has to read its events (ibv_get_cq_event)")
	}
}

// sizes are how long a queue is: as the program asked, and what is for completions that it does not see.
type sizes struct {
	mu          sync.Mutex
	base, extra int
}

// reserve makes room for n completions more than the program asked for; with n negative less is wanted.
func (c *cq) reserve(n int) error {
	c.size.mu.Lock()
	defer c.size.mu.Unlock()
	c.size.extra += n
	if want := c.size.base + c.size.extra; want > verbsinternal.Entries(c.cq) {
		if err := c.cq.Resize(want); err != nil {
			c.size.extra -= n
			return err
		}
	}
	return nil
}

// resize gives the program n entries.
func (c *cq) resize(n int) error {
	c.polls.Lock()
	waiting := c.ring.len() + len(c.made)
	c.polls.Unlock()
	if waiting > n {
		return verbs.ErrShrinkFailed
	}
	c.size.mu.Lock()
	defer c.size.mu.Unlock()
	if err := c.cq.Resize(n + c.size.extra); err != nil {
		return err
	}
	c.size.base = n
	return nil
}
