//go:build linux && (amd64 || arm64)

package uverbs

import (
	"errors"
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

func init() {
	post := func(name, object string, run func(*call) error) *command {
		return &command{
			name: name, hot: true, req: size[uabi.PostRecv](), resp: size[uabi.PostResp](), answers: true, run: run,
			trace: traceRecvs(object),
		}
	}
	legacy[uabi.CmdPostRecv] = post("POST_RECV", "qp", func(c *call) error {
		q, err := use(&c.file.qps, view[uabi.PostRecv](c.body).QPHandle, "queue pair")
		if err != nil {
			return c.answer(0, err)
		}
		q.recv.Lock()
		defer q.recv.Unlock()
		if q.ud != nil && q.srq == nil {
			return c.receives(func(r []verbs.Recv) (int, error) { return q.ud.receiving(r, q.postRecv) })
		}
		before := q.recvs.flush()
		err = c.receives(q.postRecv)
		if err == nil {
			q.recvs.posted(int(view[uabi.PostRecv](c.body).WRCount), before)
		}
		return err
	})
	legacy[uabi.CmdPostSRQRecv] = post("POST_SRQ_RECV", "srq", func(c *call) error {
		s, err := use(&c.file.srqs, view[uabi.PostSRQRecv](c.body).SRQHandle, "shared receive queue")
		if err != nil {
			return c.answer(0, err)
		}
		return c.receives(func(r []verbs.Recv) (int, error) {
			s.posting(r)
			return s.srq.PostRecv(r...)
		})
	})
}

// receives posts receives in order, up to the first that is refused.
func (c *call) receives(post func([]verbs.Recv) (int, error)) error {
	h := view[uabi.PostRecv](c.body)
	l, err := requests(c.body, h, size[uabi.RecvWR]())
	if err != nil {
		return c.answer(0, err)
	}
	posted, err := c.receiveAll(&l, post)
	return c.answer(posted, err)
}

// receiveAll posts receives in order, up to the first that is refused.
func (c *call) receiveAll(l *list, post func([]verbs.Recv) (int, error)) (posted int, err error) {
	for posted < l.n && err == nil {
		c.sges = c.sges[:0]
		n := 0
		var wrong error
		for n < maxList && posted+n < l.n {
			w := view[uabi.RecvWR](l.wrs[(posted+n)*l.stride:])
			var raw []byte
			if raw, wrong = l.elements(w.NumSGE); wrong != nil {
				break
			}
			c.recvs[n] = verbs.Recv{ID: w.WRID, SGL: c.elements(raw)}
			n++
		}
		var k int
		if n > 0 {
			k, err = post(c.recvs[:n])
		}
		posted += k
		if err == nil {
			err = wrong
		}
	}
	return posted, err
}

// postRecv is that of the core, and of a queue pair whose peer is gone.
func (q *QP) postRecv(r []verbs.Recv) (int, error) {
	if err := q.takesReceives(); err != nil {
		return 0, err
	}
	n, err := q.qp.PostRecv(r...)
	if errors.Is(err, verbs.ErrInvalidState) {
		ids := make([]uint64, len(r)-n)
		for i := range ids {
			ids[i] = r[n+i].ID
		}
		return q.postLate(false, n, err, ids)
	}
	return n, err
}

// takesReceives refuses a receive in RESET, as InfiniBand does. With the iWARP presentation a reliable queue pair has no RESET.
func (q *QP) takesReceives() error {
	if q.ud == nil && !q.file.dev.config.RoCE {
		return nil
	}
	s := q.qp.State()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.current(s) == uabi.QPSReset {
		return refuse(syscall.EINVAL, "the queue pair is in RESET, to post a receive it has to be in INIT, RTR or RTS")
	}
	return nil
}
