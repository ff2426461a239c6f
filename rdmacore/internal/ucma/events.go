//go:build linux && (amd64 || arm64)

package ucma

import (
	"encoding/binary"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
)

// event waits for GET_EVENT.
type event struct {
	id    *id // whose events_reported counts it
	child *id // of CONNECT_REQUEST
	resp  uabi.EventResp
	at    time.Time     // when it came
	gone  chan struct{} // closed when it leaves the queue
}

// push queues an event of an id, unless the program is not to hear of it; d.mu is held. A status is
// 0 or an errno. fill, if not nil, fills in the rest.
func (i *id) push(kind uint32, status syscall.Errno, fill func(*event)) {
	if i.silent || i.state == destroying {
		return
	}
	e := &event{id: i, at: time.Now()}
	e.resp.UID, e.resp.ID, e.resp.Event, e.resp.Status = i.uid, i.num, kind, uint32(-int32(status))
	if fill != nil {
		fill(e)
	}
	i.file.put(e)
}

// put queues an event; d.mu is held.
func (f *File) put(e *event) {
	if f.closed {
		return
	}
	e.gone = make(chan struct{})
	f.queue = append(f.queue, e)
	f.give()
}

// give puts a token into the eventfd.
func (f *File) give() {
	_, _ = syscall.Write(f.event, binary.NativeEndian.AppendUint64(nil, 1))
}

// take takes a token back, if one is left: a program that is about to read it finds none, or asks for
// an event and is told EAGAIN. It does not wait, whatever the descriptor's flags.
func (f *File) take() bool {
	var b [8]byte
	n, err := unix.Preadv2(f.event, [][]byte{b[:]}, -1, unix.RWF_NOWAIT)
	return err == nil && n == len(b)
}

// settle takes back all tokens of an empty queue; d.mu is held.
func (f *File) settle() {
	for len(f.queue) == 0 && f.take() {
	}
}

// drop takes the events of an id out of the queue, and returns them; d.mu is held.
func (f *File) drop(i *id) (dropped []*event) {
	f.queue = slices.DeleteFunc(f.queue, func(e *event) bool {
		if e.id == i {
			dropped = append(dropped, e)
			close(e.gone)
			f.take()
		}
		return e.id == i
	})
	f.settle()
	return dropped
}

// parting waits until the program has been told that an id is disconnected, if it is about to be. The flush of the queue pair comes at the
// same time, and a program whose one thread destroys the id because of that has another that poll has sent to read the event
// (rping of rdma-core 61 and later). On Linux, too, that one waits for ever if the id is destroyed in between, but an adapter's
// event comes later, when the peer has answered.
func (f *File) parting(num uint32) {
	d := f.dev
	d.mu.Lock()
	var gone <-chan struct{}
	var rest time.Duration
	for _, e := range f.queue {
		if e.id.num == num && e.resp.Event == uabi.CMEventDisconnected {
			gone, rest = e.gone, d.limits.Farewell-time.Since(e.at)
		}
	}
	d.mu.Unlock()
	if rest <= 0 {
		return
	}
	over := time.NewTimer(rest)
	defer over.Stop()
	select {
	case <-gone:
	case <-over.C:
	}
}

// giveBack gives back the token that the caller of a GET_EVENT had read, which failed.
func (f *File) giveBack() {
	f.dev.mu.Lock()
	defer f.dev.mu.Unlock()
	if len(f.queue) > 0 {
		f.give()
	}
}

// getEvent hands out the next event, of which the caller has read a token.
func getEvent(c *call, q *uabi.GetEvent) error {
	f := c.file
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	if len(f.queue) == 0 {
		return refuse(syscall.EAGAIN, "the event has been dropped")
	}
	e := f.queue[0]
	if err := c.respond(q.Response, umem.Bytes(&e.resp), uabi.EventRespMin); err != nil {
		return err
	}
	f.queue[0] = nil
	f.queue = f.queue[1:]
	close(e.gone)
	f.settle()
	e.id.reported++
	if e.child != nil {
		<-e.id.room
	}
	c.traceAnswer("%s", e.text())
	return nil
}

// writeCMEvent queues an event of the program's own, as rdma_write_cm_event and rdma_resolve_addrinfo have it.
func writeCMEvent(c *call, q *uabi.WriteCMEvent) error {
	if q.Event != uabi.CMEventUser && q.Event != uabi.CMEventInternal {
		return refuse(syscall.EINVAL, "event %d is none of a program's own: RDMA_CM_EVENT_USER (%d) is", q.Event, uabi.CMEventUser)
	}
	return c.with(q.ID, func(i *id) error {
		i.push(q.Event, 0, func(e *event) {
			e.resp.Status = q.Status
			binary.NativeEndian.PutUint64(umem.Bytes(&e.resp.Conn), q.Arg)
		})
		return nil
	})
}

// conn fills in what a peer says: its private data, and RDMA Reads in and out.
func (e *event) conn(private []byte, inbound, outbound int) {
	p := &e.resp.Conn
	n := min(len(private), uabi.MaxPrivateData-1)
	copy(p.PrivateData[:], private[:n])
	p.PrivateDataLen = uint8(n)
	p.ResponderResources, p.InitiatorDepth = depth(inbound), depth(outbound)
}

// datagrams fills in what an id for datagrams is told.
func (e *event) datagrams(p uabi.UDParam, private []byte) {
	p.PrivateDataLen = uint8(copy(p.PrivateData[:], private))
	e.resp.SetUD(&p)
}

// depth is a number of RDMA Reads as an event states it; a peer that did not say has -1.
func depth(n int) uint8 {
	if n < 0 || n > maxDepth {
		return maxDepth
	}
	return uint8(n)
}
