//go:build linux && (amd64 || arm64)

package ucma

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/rdmacore/internal/portmap"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/udwire"
	"github.com/softrnic/softrnic/rdmacore/internal/umem"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

// state of an id, as rdma_cm_state of Linux's cma.c.
type state int

const (
	idle state = iota
	bound
	addrResolved
	routeResolved
	connecting // and connected; of a child from its Request on
	listening
	destroying
)

func (s state) String() string {
	return [...]string{
		"idle", "bound", "resolved to an address", "resolved to a route", "connecting or connected", "listening", "destroyed",
	}[s]
}

// id is a connection id: struct rdma_cm_id of a program.
type id struct {
	dev *Device
	num uint32

	file     *File // guarded by dev.mu, as below
	uid      uint64
	state    state
	options  options
	src, dst netip.AddrPort
	nic      *uverbs.Device // the one that has src; nil while that is none, or stands for all
	port     *port          // reserved for it: not listened on, not connected
	claimed  *portmap.Claim // its number in rdma_cm's port space; nil: it has none
	reported uint32
	// silent is set of a child that was not accepted: the program is told nothing of it.
	silent bool
	// passive is set of what came of a listener.
	passive bool
	cancel  context.CancelFunc

	// Of a listener. room has a token for each child whose event was not read.
	listener *cm.Listener
	room     chan struct{}
	// Of a child: its Request, until it is answered.
	request *cm.Request
	peer    peer
	// The same of an id for datagrams.
	setups *setupListener
	setup  *setupRequest

	conn    atomic.Pointer[cm.Conn]
	closing sync.Once
	over    sync.Once // the program is told of the end of conn
}

// add makes an id; d.mu is held.
func (d *Device) add(f *File, uid uint64) *id {
	for {
		if d.next++; d.next == 0 || d.ids[d.next] != nil {
			continue
		}
		i := &id{dev: d, num: d.next, file: f, uid: uid, options: options{tos: -1}}
		d.ids[i.num] = i
		return i
	}
}

// id is the one that a command names; d.mu is held.
func (c *call) id(num uint32) (*id, error) {
	i := c.dev.ids[num]
	if i == nil || i.file != c.file {
		return nil, refuse(syscall.ENOENT, "there is no id %d on this event channel", num)
	}
	return i, nil
}

// in refuses what the states do not have; d.mu is held.
func (i *id) in(states ...state) error {
	if slices.Contains(states, i.state) {
		return nil
	}
	return refuse(syscall.EINVAL, "id %d is %v", i.num, i.state)
}

// with calls f with the id that a command names, with d.mu held.
func (c *call) with(num uint32, f func(*id) error) error {
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	i, err := c.id(num)
	if err != nil {
		return err
	}
	return f(i)
}

func createID(c *call, q *uabi.CreateID) error {
	switch q.PS {
	case uabi.PSTCP, uabi.PSIB, uabi.PSUDP:
	case uabi.PSIPoIB:
		return refuse(syscall.EOPNOTSUPP, "RDMA_PS_IPOIB needs an InfiniBand network")
	default:
		return refuse(syscall.EINVAL, "there is no port space %#x", q.PS)
	}
	c.dev.mu.Lock()
	defer c.dev.mu.Unlock()
	if c.file.closed {
		return refuse(syscall.EBADF, "the event channel is closed")
	}
	i := c.dev.add(c.file, q.UID)
	i.options.datagrams = q.PS == uabi.PSUDP || q.PS == uabi.PSIB && q.QPType == uabi.QPTUD
	r := uabi.CreateIDResp{ID: i.num}
	if err := c.respond(q.Response, umem.Bytes(&r), 4); err != nil {
		delete(c.dev.ids, i.num)
		return err
	}
	c.traceAnswer("id=%d", i.num)
	return nil
}

func destroyID(c *call, q *uabi.DestroyID) error {
	if c.room < 4 {
		return refuse(syscall.ENOSPC, "%d octets are too short for the response", c.room)
	}
	c.file.parting(q.ID)
	var left []*id
	r := uabi.DestroyIDResp{}
	err := c.with(q.ID, func(i *id) error {
		left = c.dev.remove(i)
		r.EventsReported = i.reported
		return nil
	})
	if err != nil {
		return err
	}
	for _, i := range left {
		i.end()
	}
	c.traceAnswer("events_reported=%d", r.EventsReported)
	return c.respond(q.Response, umem.Bytes(&r), 4)
}

// remove takes an id out of the device, with its events and the children that the program was not told
// of. They are to be ended without d.mu, which is held.
func (d *Device) remove(i *id) []*id {
	left := []*id{i}
	delete(d.ids, i.num)
	i.state = destroying
	for _, e := range i.file.drop(i) {
		if e.child != nil {
			delete(d.ids, e.child.num)
			e.child.state = destroying
			left = append(left, e.child)
		}
	}
	return left
}

// end ends what a destroyed id has under way. A connection closes as after rdma_disconnect, in
// the background: what the program has sent arrives.
func (i *id) end() {
	i.dev.mu.Lock()
	cancel, l, p, r, setup := i.cancel, i.listener, i.port, i.request, i.setup
	claim := i.claimed
	i.port, i.request, i.setup, i.claimed = nil, nil, nil, nil
	i.dev.mu.Unlock()
	claim.Close()
	if cancel != nil {
		cancel()
	}
	if l != nil {
		_ = l.Close()
	}
	p.close()
	i.setups.stop()
	if setup != nil {
		setup.reply(udwire.Setup{Status: udwire.SetupRejected})
	}
	if r != nil {
		i.dev.dev.Reject(r, nil)
	}
	i.Disconnect()
}
