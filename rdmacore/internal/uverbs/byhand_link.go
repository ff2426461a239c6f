//go:build linux && (amd64 || arm64)

package uverbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/tcpsock"
	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// link brings one queue pair up by hand, and sees its end.
type link struct {
	dev   *Device
	qp    *QP
	me    netip.Addr // of the GID that the queue pair sends from
	peer  netip.Addr
	dest  uint32
	dials bool // this side does; else it waits for request

	request chan *cm.Request
	found   bool // request has been sent to, or takes none any more; guarded by byHand.mu

	ctx    context.Context // of the way up
	cancel context.CancelCauseFunc
	up     chan struct{} // closed when it is up, or will not be
	over   chan struct{} // closed when the stream is over, and the queue pair has been told

	mu    sync.Mutex
	close func() // begins an orderly close; nil before it is up
	asked bool   // for a close, before that: the queue pair is in RTS a moment earlier
	trials
	once sync.Once
}

// toRTR is MODIFY_QP to RTR with the peer's queue pair number, m, which nobody has taken: it begins to
// connect, and does not block. Errors: EINVAL.
func (d *Device) toRTR(q *QP, m *uabi.ModifyQP) error {
	peer := plain(netip.AddrFrom16(m.Dest.DGID))
	switch {
	case m.AttrMask&uabi.QPAV == 0 || peer.IsUnspecified():
		d.Report("gid", "a program gives its queue pair no GID of the peer: let it use GID index 0 (often the option -g 0, or -x 0)")
		return refuse(syscall.EINVAL, "the address has no GID")
	case peer.IsMulticast():
		return refuse(syscall.EINVAL, "the GID is a multicast one")
	case m.DestQPNum>>8 == 0 || m.DestQPNum>>24 != 0:
		return refuse(syscall.EINVAL, "queue pair number %#x is none of softrnic's: port << 8 | index", m.DestQPNum)
	}
	me := d.sender(m)
	order := cmp.Or(plain(me).Compare(peer), int(q.qpn)-int(m.DestQPNum))
	l := &link{dev: d, qp: q, me: me, peer: peer, dest: m.DestQPNum, dials: order <= 0, request: make(chan *cm.Request, 1), up: make(chan struct{}), over: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	if err := d.begin(l); err != nil {
		l.cancel(nil)
		return err
	}
	q.PeerTakesImmediate(true) // no other device brings queue pairs up by hand with this one
	go l.run(order == 0)
	return nil
}

// sender is the address of the GID that m names for what the queue pair sends. An RNIC has no use for the index, and takes any.
func (d *Device) sender(m *uabi.ModifyQP) netip.Addr {
	if i, ok := d.addressAt(int(m.Dest.SGIDIndex)); ok {
		return d.addrs[i]
	}
	return d.config.Addr
}

// begin takes the queue pair for a link, and gives it the Request that has come for it.
func (d *Device) begin(l *link) error {
	h := &d.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.find(l.qp.qpn)
	if o == nil || o.qp != l.qp {
		return refuse(syscall.EINVAL, "queue pair %#x is gone", l.qp.qpn)
	}
	if err := l.qp.Take(l); err != nil {
		return err
	}
	o.link = l
	h.early -= len(o.early)
	for _, r := range o.early {
		if r.Gone() {
			l.dev.refuseAll([]*cm.Request{r}, sayGone) // to nobody
		} else if _, src, _, _ := parseHandData(r.PrivateData()); l.wants(r, src) {
			l.request <- r
		} else {
			l.dev.refuseAll([]*cm.Request{r}, l.stranger(r, src))
		}
	}
	o.early = nil
	return nil
}

// run brings the queue pair up, and waits for the end of the stream.
func (l *link) run(self bool) {
	defer close(l.over)
	defer l.qp.settled(l)
	l.qp.trying.Store(l)
	if send, _ := verbsinternal.Room(l.qp.qp); send < l.qp.sendDepth {
		l.qp.tried()
	}
	done, err := l.connect(self)
	if err != nil && l.qp.uc != nil && errors.Is(context.Cause(l.ctx), errPatience) {
		l.say()
		done, err = l.toNobody()
	}
	l.qp.trying.Store(nil)
	l.settled()
	close(l.up)
	l.refuse()
	stopped := context.Cause(l.ctx)
	l.cancel(nil)
	switch {
	case err != nil && errors.Is(stopped, errGone):
		return
	case err != nil:
		l.failed()
		return
	case errors.Is(stopped, errGone): // too late to stop: it has come up meanwhile
		_ = l.qp.qp.LLPStream().Reset()
	}
	<-done
	l.qp.Over(l)
}

// refuse rejects the Request that came too late, and those that will come: nobody waits for one any more.
func (l *link) refuse() {
	h := &l.dev.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	l.found = true
	select {
	case r := <-l.request:
		l.dev.refuseAll([]*cm.Request{r}, sayTaken)
	default:
	}
}

// attempt dials, or accepts the peer's Request.
func (l *link) attempt() (<-chan struct{}, error) {
	cfg := cm.Config{IRD: maxReads, NoCRC: !l.dev.config.CRC, Extensions: true, Timeout: attemptTime}
	if l.qp.uc != nil {
		cfg.IRD = verbs.None
	}
	var conn *cm.Conn
	err := l.dev.AwaitUp(l.ctx)
	if err != nil {
		return nil, err
	}
	if l.dials {
		conn, err = l.dial(cfg)
	} else {
		select {
		case r := <-l.request:
			conn, err = r.Accept(l.ctx, l.qp.qp, cfg)
			if err != nil {
				l.again(r)
			}
		case <-l.ctx.Done():
			err = context.Cause(l.ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	if a, err := l.qp.qp.Query(); err == nil && l.dev.config.RoCE && l.qp.uc == nil && !a.PlacedWrites && l.dev.config.Trace != nil {
		l.dev.config.Trace(fmt.Sprintf("uverbs queue pair %#x: the peer granted no RDMA Read for placed Writes: a Write completes when it has been sent", l.qp.qpn))
	}
	l.closes(func() { _ = conn.Close() })
	return conn.Done(), nil
}

// again waits for another Request behind r, which did not come to anything.
func (l *link) again(r *cm.Request) {
	l.dev.refuseAll([]*cm.Request{r}, "the connection has failed") // if it stands: one that was answered is left alone
	h := &l.dev.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	l.found = false
}

func (l *link) dial(cfg cm.Config) (*cm.Conn, error) {
	cfg.PrivateData = handData(l.dest, l.qp.qpn, l.qp.uc != nil)
	me := l.me
	ctx, cancel := context.WithTimeout(l.ctx, attemptTime)
	defer cancel()
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(me, 0)), Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { l.dev.Own(int(fd)) })
	}}
	peer := l.peer
	if peer.IsLinkLocalUnicast() {
		peer = peer.WithZone(me.Zone())
	}
	nc, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(peer, uint16(l.dest>>8)).String())
	if err != nil {
		return nil, tcpsock.NoPort(err)
	}
	conn, err := cm.Connect(ctx, nc, l.qp.qp, cfg)
	if err != nil {
		_ = nc.Close()
	}
	return conn, err
}

// closes sets how the link is closed.
func (l *link) closes(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.close = f
	l.part()
}

// Disconnect begins an orderly close of a stream that is up.
func (l *link) Disconnect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = true
	l.part()
}

// part begins the close that was asked for, once; l.mu is held.
func (l *link) part() {
	if f := l.close; f != nil && l.asked {
		l.once.Do(func() { go f() })
	}
}

// Leaving says nothing: nobody tells the program of an InfiniBand adapter.
func (l *link) Leaving() {}

// unlink stops what brings the queue pair up by hand, if it is under way, and waits until nothing more will
// come of it: that is prompt.
func (q *QP) unlink() {
	q.mu.Lock()
	l, ok := q.taken.(*link)
	q.mu.Unlock()
	if !ok {
		return
	}
	l.cancel(errGone)
	<-l.up
	h := &q.file.dev.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	if o := h.find(q.qpn); o != nil && o.link == l {
		o.link = nil
	}
}
