package vipl

import (
	"context"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/wr"
)

// PostSend is VipPostSend (VI Architecture 9.6.1): it puts d, a Send, RDMA Write or RDMA
// Read, on the tail of the Send Queue. handle is that of RegisterDescriptors for the
// memory of d (VA-6.1-M3). What is wrong with d itself is told by its status when its
// turn comes. On a VI that is not connected d completes at once, as flushed (VA-6.2-M1).
//
// Errors, after which d is not posted: ErrInvalidParameter (d is not in the region of
// handle, the region has another protection tag, or the VI is destroyed), ErrResource
// (MaxDescriptorsPerQueue). At the reliable levels both break a connection, with
// ErrorPostDesc or ErrorViOverrun to the error handler (9.9.1, 7.2, 7.3).
func (v *Vi) PostSend(d *Descriptor, handle MemHandle) error {
	return v.post(&v.send, d, handle, EventPostSend)
}

// PostRecv is VipPostRecv (VI Architecture 9.6.4), for a Receive. Until the VI is
// connected d waits (5.1, 5.2). Errors: those of PostSend.
func (v *Vi) PostRecv(d *Descriptor, handle MemHandle) error {
	return v.post(&v.recv, d, handle, EventPostRecv)
}

func (v *Vi) post(q *workQueue, d *Descriptor, handle MemHandle, event Event) error {
	if d == nil {
		return invalid("no descriptor")
	}
	region := v.nic.descriptors.find(handle)
	l, err := v.enqueue(q, d, region, event)
	if l != nil { // without mu: it may complete at once
		l.endpoint.TryTransmit()
	}
	return err
}

// enqueue is post without sending, which is the returned link's affair, if there is one.
func (v *Vi) enqueue(q *workQueue, d *Descriptor, region *descRegion, event Event) (*link, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.destroyed {
		return nil, errViGone
	}
	if region == nil || !region.holds(d, v.attributes.Ptag) { // VA-6.1-M2
		v.fault(ErrorPostDesc, q.op(d), d)
		return nil, errNotThere
	}
	if q.count() >= int(v.nic.attributes.MaxDescriptorsPerQueue) {
		v.fault(ErrorViOverrun, q.op(d), d)
		return nil, errFull
	}
	s := slot{d: d, region: region, fault: v.check(q, d)}
	d.setStatus(0)
	if v.link != nil {
		v.link.feed(q, s)
	} else if q.push(s); On(v.state, event).Actions&ActFlush != 0 {
		v.flush(q)
	}
	return v.link, nil
}

var (
	errNotThere = invalid("the descriptor is not in the memory region of the handle, or that is not for this VI")
	errFull     = resource("the work queue is full: dequeue what has completed")
)

// check finds what is wrong with the form of d.
func (v *Vi) check(q *workQueue, d *Descriptor) Status {
	t := terms{level: v.attributes.ReliabilityLevel, segments: maxSegments}
	if q.recv {
		t.transfer = uint64(v.nic.attributes.MaxTransferSize) // 10.4: of the NIC
		return t.checkRecv(d)
	}
	t.transfer = uint64(v.transfer())
	return t.checkSend(d)
}

// op is the operation of a Descriptor for q.
func (q *workQueue) op(d *Descriptor) Status {
	if q.recv {
		return StatusOpReceive
	}
	return sendOps[d.Control.Control.op()]
}

// flush completes all of a queue that the endpoint does not have. The caller has mu.
func (v *Vi) flush(q *workQueue) {
	for q.done != q.tail {
		d := q.at(q.done).d // before a handler takes it off
		op := q.op(d)
		if !q.complete(outcome{status: StatusDescFlushedError | op}) {
			v.fault(ErrorCompProt, op, d)
		}
	}
}

// feed gives a posted Descriptor to the endpoint. The caller has mu.
func (l *link) feed(q *workQueue, s slot) {
	v, d := l.vi, s.d
	v.spans = v.spans[:0]
	if s.fault == 0 {
		for i := range d.Data {
			g := &d.Data[i]
			v.spans = append(v.spans, endpoint.Span{Addr: uint64(g.Data), Handle: wr.STag(g.Handle), Length: g.Length})
		}
	}
	var err error
	if q.recv {
		err = l.endpoint.QueueReceive(&endpoint.Receive{
			Spans:   v.spans,
			Flaws:   endpoint.Flaws(s.fault),
			Context: s.region,
			Index:   s.region.index(d),
		})
	} else {
		c := &d.Control
		err = l.endpoint.QueueSend(&endpoint.Request{
			Op:           endpoint.Op(q.op(d) >> 16),
			Fence:        c.Control&ControlQFence != 0, // VA-6.3.1.2-M1
			HasImmediate: c.Control&ControlImmediate != 0,
			Immediate:    c.ImmediateData,
			RemoteAddr:   uint64(d.Address.Data),
			RemoteHandle: wr.STag(d.Address.Handle),
			Spans:        v.spans,
			Flaws:        endpoint.Flaws(s.fault),
			Context:      s.region,
			Index:        s.region.index(d),
		})
	}
	if err != nil { // it has ended: all before have had their results
		q.push(s)
		v.flush(q)
		return
	}
	q.carried++
}

// feedAll gives the endpoint all that waits for a connection. The caller has mu.
func (l *link) feedAll(q *workQueue) {
	pos, end := q.done, q.tail
	for q.tail = pos; pos != end; pos++ {
		s := *q.at(pos)
		*q.at(pos) = slot{} // keep nothing alive here
		l.feed(q, s)
	}
}

// SendDone is VipSendDone (VI Architecture 9.6.2): it dequeues the Descriptor at the head
// of the Send Queue if that has completed. Errors: ErrNotDone, ErrInvalidParameter (the VI
// is destroyed).
func (v *Vi) SendDone() (*Descriptor, error) { return v.send.take() }

// RecvDone is VipRecvDone (VI Architecture 9.6.5): SendDone for the Receive Queue.
func (v *Vi) RecvDone() (*Descriptor, error) { return v.recv.take() }

// SendWait is VipSendWait (VI Architecture 9.6.3): SendDone, or if nothing has completed a
// wait for it until ctx ends. Errors: ErrTimeout, a cancelled context's, ErrResource (the
// queue is tied to a CQ), ErrInvalidParameter (the VI is, or is being, destroyed).
func (v *Vi) SendWait(ctx context.Context) (*Descriptor, error) { return v.send.wait(ctx) }

// RecvWait is VipRecvWait (VI Architecture 9.6.6): SendWait for the Receive Queue.
func (v *Vi) RecvWait(ctx context.Context) (*Descriptor, error) { return v.recv.wait(ctx) }

// SendNotify is VipSendNotify (VI Architecture 9.6.9): handler is called once, with a
// completed Descriptor that has been dequeued, as soon as there is one. Each call is for
// one Descriptor (VA-9.6.9-M1). Errors: ErrInvalidParameter (the VI is destroyed, handler
// is nil), ErrResource (the queue is tied to a CQ).
func (v *Vi) SendNotify(handler QueueHandler) error { return v.send.register(handler) }

// RecvNotify is VipRecvNotify (VI Architecture 9.6.10): SendNotify for the Receive Queue.
func (v *Vi) RecvNotify(handler QueueHandler) error { return v.recv.register(handler) }
