//go:build linux && (amd64 || arm64)

package ucma

import (
	"context"
	"syscall"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
	"github.com/softrnic/softrnic/verbs"
)

// accept answers a child's Request, with the queue pair that the program names; from now on events of the
// child have its uid. Of an id that has connected it is rdma_establish, and has nothing left to do: the
// connection is established with the MPA Reply.
func accept(c *call, q *uabi.Accept) error {
	if c.datagrams(q.ID) {
		return acceptSetup(c, q)
	}
	if q.ConnParam.Valid == 0 {
		return c.with(q.ID, func(i *id) error {
			if i.conn.Load() == nil || i.passive {
				return refuse(syscall.EINVAL, "id %d has no connection to establish", i.num)
			}
			return nil
		})
	}
	qp, nic, err := c.queuePair(q.ID, &q.ConnParam)
	if err != nil {
		return err
	}
	r, i, err := c.answer(q.ID)
	if err != nil {
		return err
	}
	if err := i.take(qp); err != nil {
		i.putBack(r)
		return err
	}
	d := c.dev
	cfg := d.connConfig(nic, &q.ConnParam)
	if i.peer.speaks {
		say(&cfg, true, q.ConnParam.RNRRetryCount)
	}
	i.peer.of(qp)
	conn, err := r.Accept(context.Background(), qp.Verbs(), cfg)
	if err != nil {
		_ = r.Reject(nil) // if it stands: the program has changed the queue pair's state meanwhile
		return refuse(errnoOf(err), "%s", uverbs.Words(err))
	}
	d.mu.Lock()
	i.uid, i.silent = q.UID, false
	d.mu.Unlock()
	i.established(conn, uabi.CMEventEstablished)
	return nil
}

// take makes a queue pair the id's.
func (i *id) take(qp *uverbs.QP) error {
	if err := qp.Take(i); err != nil {
		return err
	}
	i.dev.mu.Lock()
	n := i.options.ackTimeout
	i.dev.mu.Unlock()
	if n != 0 {
		qp.SetTimeout(n)
	}
	return nil
}

// putBack undoes answer, unless the id has been destroyed.
func (i *id) putBack(r *cm.Request) {
	i.dev.mu.Lock()
	gone := i.state == destroying
	if !gone {
		i.request = r
	}
	i.dev.mu.Unlock()
	if gone {
		_ = r.Reject(nil)
	}
}

// queuePair is the one that CONNECT and ACCEPT name, of the device that the id is bound to. It has to be Idle: it is in INIT for the
// program.
func (c *call) queuePair(num uint32, p *uabi.ConnParam) (*uverbs.QP, *uverbs.Device, error) {
	nic, err := c.nic(num)
	if err != nil {
		return nil, nil, err
	}
	qp := nic.QP(p.QPNum)
	if qp == nil {
		return nil, nil, refuse(syscall.EINVAL, "there is no queue pair %#x", p.QPNum)
	}
	if qp.UD() {
		return nil, nil, refuse(syscall.EINVAL, "queue pair %#x is for datagrams", p.QPNum)
	}
	if qp.UC() {
		return nil, nil, refuse(syscall.EINVAL, "queue pair %#x is of an unreliable connection (UC), which is brought up by hand", p.QPNum)
	}
	if s := qp.Verbs().State(); s != verbs.StateIdle {
		return nil, nil, refuse(syscall.EINVAL, "queue pair %#x is in %v", p.QPNum, s)
	}
	return qp, nic, nil
}

// connConfig is what a program's parameters are to package cm. Depths of 0 stand for what the queue pair has. With
// RoCE there is one RDMA Read more each way, for the empty Reads that tell that a Write has been placed.
func (d *Device) connConfig(nic *uverbs.Device, p *uabi.ConnParam) cm.Config {
	c := nic.Config()
	ird, ord := int(p.ResponderResources), int(p.InitiatorDepth)
	if c.RoCE && ird > 0 {
		ird++
	}
	if c.RoCE && ord > 0 {
		ord++
	}
	return cm.Config{
		PrivateData: append([]byte(nil), p.PrivateData[:p.PrivateDataLen]...), NoCRC: !c.CRC,
		IRD: ird, ORD: ord, CloseTimeout: d.limits.Close,
	}
}
