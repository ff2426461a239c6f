//go:build linux && (amd64 || arm64)

package ucma

import (
	"cmp"
	"net"
	"net/netip"
	"syscall"

	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/udwire"
)

// setupListener is a listener for datagrams. It lives on after its id as long as one of its Requests has no answer.
type setupListener struct {
	id   *id
	conn *net.UDPConn

	known    map[setupKey]*setupRequest // guarded by dev.mu, as below
	answered []setupKey                 // those of known that have a Reply, the oldest first
	pending  int                        // those that have none, and Replies on their way out
	stopped  bool
}

// setupKey tells Requests apart.
type setupKey struct {
	from        netip.AddrPort
	transaction uint64
}

// setupRequest is a Request, until it is forgotten.
type setupRequest struct {
	listener *setupListener
	key      setupKey
	answer   []byte // nil: there is none yet
}

// listenSetups makes a bound id for datagrams listen; dev.mu is held.
func (i *id) listenSetups(backlog int) error {
	conn, err := i.port.socket(netip.AddrPort{})
	i.port = nil
	if err != nil {
		i.state = idle // the port has gone
		return refuse(errnoOf(err), "listen on %v: %v", i.src, err)
	}
	i.dev.dev.OwnSocket(conn)
	i.setups = &setupListener{id: i, conn: conn, known: map[setupKey]*setupRequest{}}
	i.state, i.room = listening, make(chan struct{}, backlog)
	go i.setups.serve()
	return nil
}

// serve looks at what arrives until the socket is closed. One that is a Request with an answer gets that; all others
// get nothing, and neither does what is no Request.
func (l *setupListener) serve() {
	buf := make([]byte, udwire.SetupSize+1)
	for {
		n, from, err := l.conn.ReadFromUDPAddrPort(buf)
		if n == 0 && err != nil {
			return
		}
		s, wrong := udwire.DecodeSetup(buf[:n])
		if err != nil || wrong != nil || s.Reply {
			continue
		}
		if answer := l.take(s, from); answer != nil {
			_, _ = l.conn.WriteToUDPAddrPort(answer, from)
		}
	}
}

// take makes a child of a Request, or returns the answer of one that has come before. A Request for which there is no
// room is dropped: it comes again.
func (l *setupListener) take(s udwire.Setup, from netip.AddrPort) []byte {
	i, key := l.id, setupKey{from, s.Transaction}
	d := i.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := l.known[key]; r != nil {
		return r.answer
	}
	if i.state != listening || i.file.closed || l.pending >= maxBacklog {
		return nil
	}
	select {
	case i.room <- struct{}{}:
	default:
		return nil
	}
	r := &setupRequest{listener: l, key: key}
	l.known[key] = r
	l.pending++
	k := d.add(i.file, 0)
	k.state, k.passive, k.silent, k.setup, k.options, k.nic = connecting, true, true, r, i.options, i.nic
	k.src, k.dst = i.src, netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	i.push(uabi.CMEventConnectRequest, 0, func(e *event) {
		e.child, e.resp.ID = k, k.num
		e.datagrams(uabi.UDParam{}, s.Private)
	})
	return nil
}

// reply answers a Request, once; dev.mu is not held. The last maxBacklog answers are kept for Requests that come again.
func (r *setupRequest) reply(s udwire.Setup) {
	s.Reply, s.Transaction = true, r.key.transaction
	l := r.listener
	d := l.id.dev
	d.mu.Lock()
	r.answer = s.Append(nil)
	l.answered = append(l.answered, r.key)
	if len(l.answered) > maxBacklog {
		delete(l.known, l.answered[0])
		l.answered = l.answered[1:]
	}
	d.mu.Unlock()
	_, _ = l.conn.WriteToUDPAddrPort(r.answer, r.key.from) // what is lost is asked for again
	d.mu.Lock()
	l.pending--
	l.closeLast()
	d.mu.Unlock()
}

// stop ends a listener, if there is one.
func (l *setupListener) stop() {
	if l == nil {
		return
	}
	d := l.id.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	l.stopped = true
	l.closeLast()
}

// closeLast closes the socket if nobody needs it; dev.mu is held.
func (l *setupListener) closeLast() {
	if l.stopped && l.pending == 0 {
		_ = l.conn.Close()
	}
}

// takeSetup takes the Request of a child, so that it is answered once.
func (i *id) takeSetup() (*setupRequest, error) {
	r := i.setup
	if r == nil {
		return nil, refuse(syscall.EINVAL, "id %d has no request to answer", i.num)
	}
	i.setup = nil
	return r, nil
}

// acceptSetup tells the peer the queue pair that the program names. There is no event of it, as on Linux.
func acceptSetup(c *call, q *uabi.Accept) error {
	p := &q.ConnParam
	nic, err := c.nic(q.ID)
	if err != nil {
		return err
	}
	qp := nic.QP(p.QPNum)
	switch {
	case p.Valid == 0:
		return refuse(syscall.EINVAL, "the parameters are not marked as valid")
	case p.PrivateDataLen > udwire.MaxReplyPrivate:
		return refuse(syscall.EINVAL, "%d octets of private data: a reply for datagrams has at most %d", p.PrivateDataLen, udwire.MaxReplyPrivate)
	case qp == nil || !qp.UD():
		return refuse(syscall.EINVAL, "there is no queue pair %#x for datagrams", p.QPNum)
	}
	s := udwire.Setup{QPN: p.QPNum, QKey: cmp.Or(p.QKey, defaultQKey), Private: p.PrivateData[:p.PrivateDataLen]}
	var r *setupRequest
	err = c.with(q.ID, func(i *id) (err error) {
		if r, err = i.takeSetup(); err == nil {
			i.uid, i.silent = q.UID, false
		}
		return err
	})
	if err == nil {
		r.reply(s)
	}
	return err
}

// rejectSetup tells the peer that there is none.
func rejectSetup(c *call, q *uabi.Reject) error {
	if q.PrivateDataLen > udwire.MaxReplyPrivate {
		return refuse(syscall.EINVAL, "%d octets of private data: a reply for datagrams has at most %d", q.PrivateDataLen, udwire.MaxReplyPrivate)
	}
	var r *setupRequest
	err := c.with(q.ID, func(i *id) (err error) {
		r, err = i.takeSetup()
		return err
	})
	if err == nil {
		r.reply(udwire.Setup{Status: udwire.SetupRejected, Private: q.PrivateData[:q.PrivateDataLen]})
	}
	return err
}
