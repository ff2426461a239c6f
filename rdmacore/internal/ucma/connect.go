//go:build linux && (amd64 || arm64)

package ucma

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

// connect dials for an id with a route; what comes of it is told by an event.
func connect(c *call, q *uabi.Connect) error {
	if q.ConnParam.Valid == 0 {
		return refuse(syscall.EINVAL, "the parameters are not marked as valid")
	}
	if c.datagrams(q.ID) {
		return connectSetup(c, q)
	}
	if err := c.with(q.ID, func(i *id) error { return i.in(routeResolved) }); err != nil {
		return err
	}
	qp, nic, err := c.queuePair(q.ID, &q.ConnParam)
	if err != nil {
		return err
	}
	cfg := c.dev.connConfig(nic, &q.ConnParam)
	if nic.Config().RoCE {
		say(&cfg, false, q.ConnParam.RNRRetryCount)
	}
	// Take asks package uverbs, which may ask an id to disconnect: not with dev.mu held.
	var i *id
	err = c.with(q.ID, func(k *id) error {
		if err := k.in(routeResolved); err != nil {
			return err
		}
		i, k.state = k, connecting
		return nil
	})
	if err != nil {
		return err
	}
	if err := i.take(qp); err != nil {
		c.dev.mu.Lock()
		defer c.dev.mu.Unlock()
		if i.state == connecting {
			i.state = routeResolved
		}
		return err
	}
	return i.begin(qp, cfg)
}

// begin dials in the background.
func (i *id) begin(qp *uverbs.QP, cfg cm.Config) error {
	d := i.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if i.state == destroying {
		return refuse(syscall.ENOENT, "id %d has been destroyed", i.num)
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.limits.Connect)
	i.cancel = cancel
	t := d.queue(i.dst)
	cfg.OnRequestSent = t.over
	p := i.port
	i.port = nil
	from := dialer{src: netip.AddrPortFrom(i.src.Addr(), p.addr.Port()), tos: i.options.tos, own: d.dev.Own, find: d.space.Find, limit: d.limits, begun: time.Now()}
	dst := i.dst
	go func() {
		defer cancel()
		defer t.over()
		defer p.close()
		t.wait(ctx)
		if err := i.nic.AwaitUp(ctx); err != nil {
			i.failed(err)
			return
		}
		conn, err := from.connect(ctx, p, dst, qp, cfg)
		t.over()
		if err != nil {
			i.failed(err)
			return
		}
		kind := uint32(uabi.CMEventEstablished)
		if i.nic.Config().RoCE {
			kind = uabi.CMEventConnectResponse // librdmacm answers ACCEPT and makes ESTABLISHED of it
		}
		i.established(conn, kind)
	}()
	return nil
}

// connect dials from a reserved port, and sends the Request.
func (d dialer) connect(ctx context.Context, p *port, dst netip.AddrPort, qp *uverbs.QP, cfg cm.Config) (*cm.Conn, error) {
	if err := p.share(); err != nil {
		return nil, err
	}
	nc, err := d.dial(ctx, dst)
	if err != nil {
		return nil, err
	}
	conn, err := cm.Connect(ctx, nc, qp.Verbs(), cfg)
	if err != nil {
		_ = nc.Close()
	}
	return conn, err
}

// failed tells of a connect that failed, with the events and statuses of siw under cma_iw_handler.
func (i *id) failed(err error) {
	i.dev.mu.Lock()
	defer i.dev.mu.Unlock()
	i.dev.note("id %d: %s", i.num, uverbs.Words(err))
	var rejected *cm.RejectedError
	if errors.As(err, &rejected) {
		i.dev.dev.Report("rejected", "the program at %v has rejected a connection: what it prints may say why", i.dst)
		i.push(uabi.CMEventRejected, syscall.ECONNREFUSED, func(e *event) { e.conn(rejected.PrivateData, 0, 0) })
		return
	}
	switch no := errnoOf(err); no {
	case syscall.ECONNREFUSED:
		i.dev.dev.Report("refused", "nothing listens at %v: is a server started there, under `rnic run` and with this port?", i.dst)
		i.push(uabi.CMEventRejected, no, nil)
	case syscall.ECONNRESET:
		i.dev.dev.Report("reset", "%v has closed a connection that was to begin: is an iWARP or softrnic program there?", i.dst)
		i.push(uabi.CMEventRejected, no, nil)
	case syscall.ETIMEDOUT:
		i.dev.dev.Report("unreachable", "%v does not answer: is the address right, does a firewall drop TCP, does the program there accept?", i.dst)
		i.push(uabi.CMEventUnreachable, no, nil)
	default:
		i.dev.dev.Report("connect", "there is no connection to %v: %s", i.dst, uverbs.Words(err))
		i.push(uabi.CMEventConnectError, no, nil)
	}
}

// turn is a connect's place among those to one address: the next begins when its Request is out, so
// that Requests reach the peer's program in the order of rdma_connect.
type turn struct {
	dev  *Device
	dst  netip.AddrPort
	prev *turn // nil: none
	done chan struct{}
	once sync.Once
}

// queue takes the next turn; d.mu is held.
func (d *Device) queue(dst netip.AddrPort) *turn {
	t := &turn{dev: d, dst: dst, prev: d.turns[dst], done: make(chan struct{})}
	d.turns[dst] = t
	return t
}

// wait waits for the turn, or for the end of ctx.
func (t *turn) wait(ctx context.Context) {
	if t.prev == nil {
		return
	}
	select {
	case <-t.prev.done:
	case <-ctx.Done():
	}
	t.prev = nil
}

// over ends the turn, once.
func (t *turn) over() {
	t.once.Do(func() {
		close(t.done)
		t.dev.mu.Lock()
		defer t.dev.mu.Unlock()
		if t.dev.turns[t.dst] == t {
			delete(t.dev.turns, t.dst)
		}
	})
}
