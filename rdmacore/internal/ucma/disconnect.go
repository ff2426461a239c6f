//go:build linux && (amd64 || arm64)

package ucma

import (
	"syscall"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

// established tells of a connection, and later of its end. kind is the event.
func (i *id) established(conn *cm.Conn, kind uint32) {
	d := i.dev
	d.mu.Lock()
	i.conn.Store(conn)
	i.src = tcpAddr(conn.LocalAddr(), i.src)
	if a, err := conn.QP().Query(); err == nil && i.roce() && !a.PlacedWrites {
		d.note("id %d: the peer granted no RDMA Read for placed Writes: a Write completes when it has been sent", i.num)
	}
	private := conn.PrivateData()
	if i.passive {
		private = nil // it came with CONNECT_REQUEST
	} else if i.roce() {
		var p peer
		private, p = cutPeer(private, true)
		p.of(conn.QP().Context().(*uverbs.QP))
	}
	gone := i.state == destroying
	i.push(kind, 0, func(e *event) { e.conn(private, conn.IRD(), conn.ORD()) })
	d.mu.Unlock()
	if gone {
		i.Disconnect()
	}
	go i.watch(conn)
}

// watch waits for the end of the connection. After a good close the queue pair is Idle, and goes to Error, as
// the kernel leaves it: its receives flush.
func (i *id) watch(conn *cm.Conn) {
	<-conn.Done()
	conn.QP().Context().(*uverbs.QP).Over(i)
	i.dev.mu.Lock()
	defer i.dev.mu.Unlock()
	if err := conn.Err(); err != nil {
		i.dev.note("id %d: %s", i.num, uverbs.Words(err))
	}
	i.disconnected()
}

// disconnected tells of the end, once; d.mu is held.
func (i *id) disconnected() {
	i.over.Do(func() { i.push(uabi.CMEventDisconnected, 0, nil) })
}

// Leaving tells of the end before what the peer has sent has arrived, as an InfiniBand peer's DREQ would, which no Send holds up:
// the program may wait for the event, and post no receive any more.
func (i *id) Leaving() {
	i.dev.mu.Lock()
	defer i.dev.mu.Unlock()
	if i.conn.Load() != nil { // ESTABLISHED is before
		i.disconnected()
	}
}

// Disconnect begins to close the connection, if there is one, as rdma_disconnect: what has been sent
// arrives first. Package uverbs calls it when the program takes the queue pair to a state that ends its
// connection, which rdma_disconnect does before DISCONNECT. It does not block, and takes no lock.
func (i *id) Disconnect() {
	conn := i.conn.Load()
	if conn == nil {
		return
	}
	i.closing.Do(func() {
		go func() {
			if err := conn.Close(); err != nil {
				i.dev.note("id %d: %s", i.num, uverbs.Words(err))
			}
		}()
	})
}

// disconnect closes a connection; one that has ended already is no error. A child whose Request waits for its
// answer has nothing to close, as with iw_cm_disconnect.
func disconnect(c *call, q *uabi.Disconnect) error {
	return c.with(q.ID, func(i *id) error {
		if i.conn.Load() == nil && i.request == nil {
			return refuse(syscall.EINVAL, "id %d has no connection", i.num)
		}
		i.Disconnect()
		return nil
	})
}

// initQPAttr tells which attributes the program is to give its queue pair for a state: as Linux's iwcm
// INIT only, the rest comes with the connection; but with the right of Atomics, which iwcm knows nothing of and InfiniBand's cm gives. When that is there, which with RoCE is before librdmacm asks for all
// states once more (CONNECT_RESPONSE), nothing is left to be changed.
func initQPAttr(c *call, q *uabi.InitQPAttr) error {
	if q.QPState > uabi.QPSErr {
		return refuse(syscall.EINVAL, "there is no state %d", q.QPState)
	}
	return c.with(q.ID, func(i *id) error {
		if _, port := i.device(); port == 0 {
			return refuse(syscall.EINVAL, "id %d is at no device", i.num)
		}
		r := uabi.QPAttr{
			QPState: q.QPState, QPAccessFlags: uabi.AccessRemoteWrite | uabi.AccessRemoteRead | uabi.AccessRemoteAtomic,
			PortNum: 1, MaxRdAtomic: maxDepth, MaxDestRdAtomic: maxDepth,
		}
		if i.options.datagrams { // whatever state, as cma_ib_init_qp_attr
			r = uabi.QPAttr{
				QPState: q.QPState, QPAttrMask: uabi.QPState | uabi.QPPkeyIndex | uabi.QPPort | uabi.QPQkey, PortNum: 1, Qkey: defaultQKey,
			}
			return c.respondAttr(q.Response, &r)
		}
		switch q.QPState {
		case uabi.QPSInit:
			if i.conn.Load() != nil {
				break
			}
			r.QPAttrMask = uabi.QPState | uabi.QPAccessFlags
			if i.roce() {
				r.QPAttrMask |= uabi.QPPkeyIndex | uabi.QPPort
			}
		case uabi.QPSRTR, uabi.QPSRTS:
		default:
			return refuse(syscall.EINVAL, "state %d comes by itself", q.QPState)
		}
		return c.respondAttr(q.Response, &r)
	})
}
