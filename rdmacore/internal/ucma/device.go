//go:build linux && (amd64 || arm64)

// Package ucma is the kernel's half of /dev/infiniband/rdma_cm in user space: the device that librdmacm
// writes its commands to, as the user ABI of Linux has them (package uabi), over package cm. A Device is
// the one of a process, beside the devices of package uverbs whose queue pairs it connects; a File is an
// open of it. An id is bound to the device that has its address (nics.go).
//
//	program -> librdmacm -> write(rdma_cm) -> File.Write -> cm.Dial, cm.Listener -> TCP
//	                     <- GET_EVENT <- eventfd, one token an event <-
//
// Ids of the port space for datagrams exchange queue pair numbers over UDP instead (package udwire, Setup).
//
// A connection id has the states of Linux's cma.c, and what a state does not allow is refused with its
// errno. Requests reach the peer's program in the order of rdma_connect. Nothing is added to
// a program's private data: what a peer sees is what any iWARP program would have sent.
//
// All that a program writes is looked at before it is used. Methods may be called from any goroutine; none
// waits for a peer, but ACCEPT for the socket to take the MPA Reply.
package ucma

import (
	"net/netip"
	"sync"
	"time"

	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/rdmacore/internal/portmap"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/rdmacore/internal/uverbs"
)

// limits are times that tests shorten.
type limits struct {
	// Connect bounds a connect from its turn to the end of the MPA startup.
	Connect time.Duration
	// Refused is how long a TCP connection that is refused is tried again: a client may be quicker than
	// the server's rdma_listen.
	Refused time.Duration
	// Again is the pause between two such tries.
	Again time.Duration
	// Setup is the pause before a Request for datagrams is sent once more; it doubles each time, up to SetupMax.
	Setup, SetupMax time.Duration
	// Close bounds how long a graceful close waits for the Send Queue.
	Close time.Duration
	// Farewell is for how long, since it came, an event that an id is disconnected keeps the id from being destroyed.
	Farewell time.Duration
}

var defaults = limits{
	Connect: 30 * time.Second, Refused: 500 * time.Millisecond, Again: 20 * time.Millisecond, Close: 2 * time.Second,
	Setup: 100 * time.Millisecond, SetupMax: 4 * time.Second,
	Farewell: 10 * time.Millisecond,
}

// maxDepth is the most RDMA Reads a side says that it can have outstanding.
const maxDepth = 128

// Device is rdma_cm as the programs of one process see it.
type Device struct {
	nics   []*uverbs.Device
	dev    *uverbs.Device // the first of them, for what is the process' own
	config uverbs.Config  // its own
	limits limits
	space  *portmap.Space

	mu   sync.Mutex
	ids  map[uint32]*id // guarded by mu, as below
	next uint32
	// turns has the last connect to each address whose Request is not out.
	turns map[netip.AddrPort]*turn
}

// New is the device that connects the queue pairs of some devices, of which there is one at least.
func New(nics ...*uverbs.Device) *Device {
	d := nics[0]
	v := &Device{
		nics: nics, dev: d, config: d.Config(), limits: defaults,
		ids: map[uint32]*id{}, turns: map[netip.AddrPort]*turn{},
	}
	v.space = portmap.New(d.Own, func(err error) { d.Report("port mapper", "port mapper: %v", err) })
	d.Beside(inventory.CounterFunc(v.count))
	for _, n := range nics {
		n.OnChange(func(c uverbs.Change) { v.changed(n, c) })
	}
	return v
}

// changed tells every id at a device what has become of that, as Linux's cma does (cma_netdev_change, cma_remove_one).
func (d *Device) changed(n *uverbs.Device, c uverbs.Change) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, i := range d.ids {
		switch {
		case i.nic != n || i.state == idle || i.state == destroying:
		case c == uverbs.Removed:
			i.push(uabi.CMEventDeviceRemoval, 0, nil)
		default:
			i.push(uabi.CMEventAddrChange, 0, nil)
		}
	}
}

// count is an inventory.CounterFunc.
func (d *Device) count(tell inventory.Tell) {
	d.mu.Lock()
	defer d.mu.Unlock()
	tell(len(d.ids), "connection id")
	tell(len(d.turns), "turn of a connect")
	claims := 0
	for _, i := range d.ids {
		if i.claimed != nil {
			claims++
		}
	}
	tell(claims, "claim of a port")
}

// Open is an open("/dev/infiniband/rdma_cm"). event is an eventfd with EFD_SEMAPHORE, which the File owns
// from now on: it gets one token an event.
func (d *Device) Open(event int) *File {
	d.dev.Own(event)
	return &File{dev: d, event: event}
}
