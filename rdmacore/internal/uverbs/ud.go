//go:build linux && (amd64 || arm64)

package uverbs

import (
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/udwire"
	"github.com/softrnic/softrnic/verbs"
)

// A UD queue pair is a queue pair of the RNIC whose stream ends in this process, at a feeder: what the program sends comes
// out there and goes on as UDP datagrams, and what arrives for it is sent to it there, a message a datagram.
//
//	program's queue pair <- stream -> feeder <- UDP socket of the queue pair number's port -> network
//
// So memory, keys, queues, completions and events are those of all queue pairs. What the stream does not carry (who sent
// it, the immediate, where it goes to) is kept beside it, in the same order.
type datagrams struct {
	mu     sync.Mutex
	left   sync.Cond // of mu: outgoing has become less, or feeder ended
	feeder *feeder   // from RTR on

	outgoing []outgoing        // one for each send posted that has not left
	incoming []arrived         // one for each that was sent to the program, and has not been polled
	receives []uint64          // octets of each receive posted and not taken; not with a shared queue
	backlog  []udwire.Datagram // arrived, and there is no receive or no slot yet
	paths    []path            // of backlog
}

type (
	outgoing struct {
		to           netip.Addr
		from         int // of the device's addresses
		qpn, qkey    uint32
		immediate    uint32
		hasImmediate bool
		solicited    bool
	}
	path    struct{ from, to netip.Addr }
	arrived struct {
		source, immediate uint32
		hasImmediate      bool
	}
)

const (
	// maxBacklog is how many datagrams wait for a receive of a queue pair, as in an adapter's buffer.
	maxBacklog = 1 << 10
	// maxUnpolled bounds arrived datagrams that were not polled, beyond the depth of the queue.
	maxUnpolled = 1 << 15
	// qkeyOwn in a Q_Key of a request means the queue pair's own (IBA 10.2.5).
	qkeyOwn = 1 << 31
)

func newDatagrams() *datagrams {
	u := &datagrams{}
	u.left.L = &u.mu
	return u
}

// translateUD makes s of w, and says where it goes.
func (q *QP) translateUD(c *call, l *list, w *uabi.SendWR, s *verbs.Request) (o outgoing, err error) {
	raw, err := l.elements(w.NumSGE)
	if err != nil {
		return o, err
	}
	q.mu.Lock()
	state, qkey := q.state, q.attr.Qkey
	q.mu.Unlock()
	if state != uabi.QPSRTS && state != uabi.QPSErr {
		return o, refuse(syscall.EINVAL, "the queue pair is in %s, to send it has to be in RTS", stateName(state))
	}
	*s = verbs.Request{ID: w.WRID, Op: verbs.OpSend}
	if w.SendFlags&uabi.SendSignaled == 0 && !q.sigAll {
		s.Flags |= verbs.Unsignaled
	}
	if w.SendFlags&uabi.SendInline != 0 {
		err = q.copyInline(c, raw, s)
	} else {
		s.SGL = c.elements(raw)
	}
	if err != nil {
		return o, err
	}
	h, qpn, key := w.UD()
	to, err := use(&q.file.ahs, uint32(h), "address handle")
	switch {
	case err != nil:
		return o, err
	case to.pd.pd != q.pd.pd:
		return o, refuse(syscall.EINVAL, "the address handle is of another protection domain")
	case w.Opcode != uabi.WRSend && w.Opcode != uabi.WRSendWithImm:
		return o, refuse(syscall.EINVAL, "operation %d: a UD queue pair has Send alone", w.Opcode)
	case octets(s.SGL) > udwire.MTU:
		return o, refuse(syscall.EINVAL, "%d octets: a UD message has at most %d", octets(s.SGL), udwire.MTU)
	}
	if key&qkeyOwn != 0 {
		key = qkey
	}
	o = outgoing{to: to.addr, from: to.from, qpn: qpn, qkey: key, solicited: w.SendFlags&uabi.SendSolicited != 0}
	if w.Opcode == uabi.WRSendWithImm {
		o.hasImmediate, o.immediate = true, immediateOf(w.Ex)
	}
	return o, nil
}

// posting notes where requests go before they are posted, and forgets those that were not.
func (u *datagrams) posting(list []outgoing, post func() (int, error)) (int, error) {
	u.mu.Lock()
	u.outgoing = append(u.outgoing, list...)
	u.mu.Unlock()
	n, err := post()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.outgoing = u.outgoing[:max(0, len(u.outgoing)-(len(list)-n))] // stop may have forgotten them
	return n, err
}

// receiving posts receives, and then what has waited for them is theirs. The queue pair's recv is held. mu is not while it posts: that may
// have completions looked at, which takes mu.
func (u *datagrams) receiving(list []verbs.Recv, post func([]verbs.Recv) (int, error)) (int, error) {
	n, err := post(list)
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range list[:n] {
		u.receives = append(u.receives, octets(r.SGL))
	}
	u.pump()
	return n, err
}

// polled adds to a completion what its datagram said.
func (u *datagrams) polled(w *uabi.WC, d *verbs.Completion) {
	if d.Status != verbs.StatusSuccess || d.Op != verbs.OpRecv {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.incoming) == 0 {
		return
	}
	a := u.incoming[0]
	u.incoming = u.incoming[1:]
	w.SrcQP = a.source
	w.WCFlags |= uabi.WCGRH
	if a.hasImmediate {
		w.WCFlags |= uabi.WCWithImm
		putImmediate(&w.Ex, a.immediate)
	}
}

// drain waits until what was posted is on the network, or will not be: a request completes when the feeder is sure to get it, and a
// program that ends then has sent it. It is prompt, unless the port is down or slow: then it waits until limit.
func (u *datagrams) drain(limit time.Duration) {
	late := false // guarded by mu
	end := time.AfterFunc(limit, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		late = true
		u.left.Broadcast()
	})
	defer end.Stop()
	u.mu.Lock()
	defer u.mu.Unlock()
	for !late && u.feeder != nil && !u.feeder.ended && len(u.outgoing) > 0 {
		u.left.Wait()
	}
}

// stop ends the feeder, if there is one, and forgets what was under way.
func (u *datagrams) stop() {
	u.mu.Lock()
	f := u.feeder
	u.feeder = nil
	u.outgoing, u.receives, u.backlog, u.paths = nil, nil, nil, nil
	u.left.Broadcast()
	u.mu.Unlock()
	if f != nil {
		f.end()
	}
}

// arrive takes a datagram that came to the queue pair's number. What the queue pair does not want, or has
// no room for, is dropped, and nobody is told. The payload is copied.
func (q *QP) arrive(d udwire.Datagram, by path) {
	q.mu.Lock()
	qkey, state := q.attr.Qkey, q.state
	q.mu.Unlock()
	if d.QKey != qkey || state != uabi.QPSRTR && state != uabi.QPSRTS && state != uabi.QPSSQD {
		return
	}
	u := q.ud
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.feeder == nil || len(u.backlog) >= maxBacklog || len(u.incoming) >= maxUnpolled {
		return
	}
	d.Payload = append([]byte(nil), d.Payload...)
	u.backlog, u.paths = append(u.backlog, d), append(u.paths, by)
	u.pump()
}

// pump sends to the program what waits, as far as there are receives and slots; mu is held. What is longer than the receive
// whose turn it is is dropped, and leaves it; with a shared queue, whose turn is not known here, what is longer than any receive
// may be.
func (u *datagrams) pump() {
	for u.feeder != nil && len(u.backlog) > 0 {
		d, by := &u.backlog[0], u.paths[0]
		srq := u.feeder.qp.srq
		var room uint64
		switch {
		case srq != nil:
			room = srq.shortest.Load()
		case len(u.receives) == 0:
			return
		default:
			room = u.receives[0]
		}
		if uint64(udwire.GRHSize+len(d.Payload)) <= room {
			if !u.feeder.feed(d, by) {
				return
			}
			u.incoming = append(u.incoming, arrived{d.Source, d.Immediate, d.HasImmediate})
			if srq == nil {
				u.receives = u.receives[1:]
			}
		}
		u.backlog, u.paths = u.backlog[1:], u.paths[1:]
	}
}
