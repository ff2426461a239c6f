//go:build linux && (amd64 || arm64)

package ucma

import (
	"context"
	"net"
	"net/netip"
	"syscall"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

// maxBacklog is the most Requests of a listener that wait for GET_EVENT, as ucma's max_backlog.
const maxBacklog = 1024

// listen makes a bound id listen; one that is idle gets a port of all IPv4 addresses. Requests beyond the
// backlog wait in package cm, which bounds them too.
func listen(c *call, q *uabi.Listen) error {
	backlog := int(q.Backlog)
	if q.Backlog == 0 || q.Backlog > maxBacklog {
		backlog = maxBacklog
	}
	return c.with(q.ID, func(i *id) error {
		if i.state == idle {
			if err := i.bindOwn(netip.AddrPortFrom(netip.IPv4Unspecified(), 0)); err != nil {
				return err
			}
		}
		if err := i.in(bound); err != nil {
			return err
		}
		i.port.tos = i.options.tos
		if i.options.datagrams {
			return i.listenSetups(backlog)
		}
		l, err := i.port.listen()
		i.port = nil
		if err != nil {
			i.state = idle // the port has gone
			i.claimed.Close()
			i.claimed = nil
			return refuse(errnoOf(err), "listen on %v: %v", i.src, err)
		}
		i.listener = cm.NewListener(i.dev.dev.Owning(l), cm.ListenConfig{InOrder: true, OnStartupError: func(remote net.Addr, err error) {
			i.dev.note("id %d: a connection of %v came to nothing: %s", i.num, remote, uverbs.Words(err))
		}})
		i.state = listening
		i.room = make(chan struct{}, backlog)
		var ctx context.Context
		ctx, i.cancel = context.WithCancel(context.Background())
		go i.serve(ctx, i.listener)
		return nil
	})
}

// serve makes a child of each Request, in the order in which they came.
func (i *id) serve(ctx context.Context, l *cm.Listener) {
	for {
		select {
		case i.room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		r, err := l.Accept(ctx)
		if err != nil {
			if ctx.Err() == nil {
				i.dev.note("id %d listens no more: %v", i.num, err)
			}
			return
		}
		to := tcpAddr(r.LocalAddr(), i.src)
		nic := i.dev.at(to.Addr())
		if nic == nil { // it came to an address that is none's
			i.dev.note("id %d: %v asked for %v, which no device has", i.num, r.RemoteAddr(), to.Addr())
			<-i.room
			i.dev.dev.Reject(r, nil)
			continue
		}
		if nic.Down() { // others may be up
			go func() {
				_ = nic.AwaitUp(ctx) // requested sees that the listener is gone
				if !i.requested(r, nic) {
					_ = r.Reject(nil)
				}
			}()
			continue
		}
		if !i.requested(r, nic) {
			_ = r.Reject(nil)
			return
		}
	}
}

// requested queues a CONNECT_REQUEST, which counts as the listener's event and has its uid; unless the
// listener has been destroyed.
func (i *id) requested(r *cm.Request, nic *uverbs.Device) bool {
	d := i.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if i.state != listening || i.file.closed {
		return false
	}
	k := d.add(i.file, 0)
	k.state, k.passive, k.silent, k.request, k.options, k.nic = connecting, true, true, r, i.options, nic
	private := r.PrivateData()
	if k.roce() {
		private, k.peer = cutPeer(private, false)
	}
	k.src, k.dst = tcpAddr(r.LocalAddr(), i.src), tcpAddr(r.RemoteAddr(), i.src)
	k.src = netip.AddrPortFrom(k.src.Addr(), i.src.Port()) // not the TCP port that may stand for it
	i.push(uabi.CMEventConnectRequest, 0, func(e *event) {
		e.child, e.resp.ID = k, k.num
		e.conn(private, r.PeerORD(), r.PeerIRD())
	})
	return true
}

// reject refuses a child's Request. The peer is told the program's private data, and no reason: MPA has no
// place for it.
func reject(c *call, q *uabi.Reject) error {
	switch q.Reason {
	case 0, uabi.RejectConsumer, uabi.RejectVendorOption:
	default:
		return refuse(syscall.EINVAL, "there is no reason %d", q.Reason)
	}
	if c.datagrams(q.ID) {
		return rejectSetup(c, q)
	}
	r, _, err := c.answer(q.ID)
	if err != nil {
		return err
	}
	_ = r.Reject(q.PrivateData[:q.PrivateDataLen]) // of a peer that has gone, perhaps: Linux says nothing either
	return nil
}

// answer takes the Request of a child, so that it is answered once.
func (c *call) answer(num uint32) (r *cm.Request, i *id, err error) {
	err = c.with(num, func(k *id) error {
		if k.request == nil {
			return refuse(syscall.EINVAL, "id %d has no connection request to answer", num)
		}
		i, r, k.request = k, k.request, nil
		return nil
	})
	return r, i, err
}
