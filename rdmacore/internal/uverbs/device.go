//go:build linux && (amd64 || arm64)

// Package uverbs is the kernel's half of /dev/infiniband/uverbsN in user space: the device that a
// C program writes its verbs to, as commands of the user ABI of Linux (package uabi), over
// an RNIC of package verbs. A Device is one of a process, with an RNIC of its own; a File is an open of it.
//
//	program -> libibverbs -> write(uverbs0) -> File.Write -> verbs
//
// All that a program writes is looked at before it is used: a command that is too short, a handle
// of nothing, or of another File, a count that does not fit, an address that is not mapped is refused with
// the errno that Linux gives, and changes nothing. No right is ever given that the program did not ask for.
//
// Methods may be called from any goroutine. None blocks but these, each for endingTime, half a
// second, at most: DESTROY_QP waits for what was posted to be sent and for the peer's close (part), RESIZE_CQ for the
// completions of datagrams that were posted (settle). What ends a queue pair waits for the goroutine that brings it up by
// hand to be gone (unlink).
package uverbs

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"

	"github.com/softrnic/softrnic/cm"
	"github.com/softrnic/softrnic/internal/inventory"
	"github.com/softrnic/softrnic/internal/tcpsock"
	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/sysfs"
	"github.com/softrnic/softrnic/verbs"
)

// Config configures a Device. Addr is needed.
type Config struct {
	// Name is what libibverbs calls the device.
	Name string
	// Addr is the device's address: its first GID, and where queue pairs brought up by hand listen.
	Addr netip.Addr
	// GIDs are the other addresses in its table of GIDs, from index 1. IPv6 addresses of a link have a zone.
	GIDs []netip.Addr
	// Interface is the network interface that has the addresses; "" is none.
	Interface string
	// Rate is that of its port, in Gb/s, and MTU the active one, in octets; 0 stands for 100 and 4096.
	Rate, MTU int
	// RoCE presents a RoCE adapter; else an RNIC.
	RoCE bool
	// CRC says whether CRCs are asked for.
	CRC bool
	// Report is told a sentence for the user, once for each cause; nil: nobody is.
	Report func(string)
	// Trace is told each command, as a line; nil: nobody is.
	Trace func(string)
	// Own is told each descriptor that the device makes for itself, so that a forked child can close it.
	Own func(fd int)
	// RNIC is how to open the RNIC: with faults, or a tap.
	RNIC verbs.Config
	// Faults decide what goes wrong by verb, for the program alone; nil: nothing does.
	Faults Faults
	// Channel is told each completion channel, as the program has it: it may Watch there.
	Channel func(fd int)
}

// Device is an RNIC as the programs of one process see it.
type Device struct {
	config Config
	rnic   *verbs.RNIC
	limits verbs.Limits
	guid   [8]byte
	rate   sysfs.Rate
	mtu    uint8        // enum ib_mtu
	addrs  []netip.Addr // of its GIDs
	cqs    sync.Map     // verbs.CQID to *cq
	idlers idlers
	srqs   sync.Map // verbs.SRQID to *srq
	qpns   sync.Map // uint32 to *QP
	chans  sync.Map // int, the program's descriptor, to a completion *channel
	hand   byHand
	waits  waitTimes
	said   sync.Map // causes that were reported

	adapter  adapter
	silences silences
	errands  errands // end with the device

	counted *inventory.Object

	mu     sync.Mutex
	files  map[*File]struct{}
	beside []inventory.Counter
}

// New opens a device. Errors: those of verbs.Open; an address that is none.
func New(c Config) (*Device, error) {
	if !c.Addr.IsValid() {
		return nil, fmt.Errorf("uverbs: the device needs an address")
	}
	rate, err := sysfs.RateOf(c.Rate)
	if err != nil {
		return nil, fmt.Errorf("uverbs: %w", err)
	}
	mtu, ok := sysfs.MTUOf(c.MTU)
	if !ok {
		return nil, fmt.Errorf("uverbs: there is no MTU of %d octets", c.MTU)
	}
	r, err := verbs.Open(c.RNIC)
	if err != nil {
		return nil, fmt.Errorf("uverbs: %w", err)
	}
	verbsinternal.MayVanish(r)
	if c.Own != nil {
		tcpsock.TellDuplicates(c.Own)
	}
	d := &Device{
		config: c, rnic: r, guid: sysfs.GUID(c.Addr), rate: rate, mtu: mtu, addrs: append([]netip.Addr{c.Addr}, c.GIDs...), waits: waitsFor,
		files: map[*File]struct{}{},
	}
	if err := d.start(); err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("uverbs: %w", err)
	}
	d.counted = inventory.Open(nil, "uverbs device", c.Addr, inventory.CounterFunc(d.count))
	return d, nil
}

// Beside has the inventory count what a device on top of this one holds, and ends with it.
func (d *Device) Beside(c inventory.Counter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.beside = append(d.beside, c)
}

// count is an inventory.CounterFunc.
func (d *Device) count(tell inventory.Tell) {
	tell(entries(&d.cqs), "CQ")
	tell(entries(&d.srqs), "S-RQ")
	tell(entries(&d.qpns), "queue pair")
	tell(entries(&d.chans), "completion channel")
	d.mu.Lock()
	tell(len(d.files), "file")
	beside := d.beside
	d.mu.Unlock()
	for _, c := range beside {
		c.Count(tell)
	}
}

func entries(m *sync.Map) (n int) {
	m.Range(func(_, _ any) bool {
		n++
		return true
	})
	return n
}

func (d *Device) start() (err error) {
	a, err := d.rnic.Query()
	if err != nil {
		return err
	}
	d.limits = a.Limits
	return d.rnic.SetEventHandler(d.event)
}

// Config is what the device was made with.
func (d *Device) Config() Config { return d.config }

// GUID is the device's node GUID, in network order.
func (d *Device) GUID() [8]byte { return d.guid }

// Has reports whether an address is one of the device's. One of a link without a zone is, whatever the link.
func (d *Device) Has(a netip.Addr) bool {
	return slices.ContainsFunc(d.addrs, func(own netip.Addr) bool {
		return plain(own) == plain(a) && (own.Zone() == "" || a.Zone() == "" || zone(own) == zone(a))
	})
}

// zone is the zone of an address as a number, which the system has in addresses, where it is the name of an interface.
func zone(a netip.Addr) string {
	if i, err := net.InterfaceByName(a.Zone()); err == nil {
		return strconv.Itoa(i.Index)
	}
	return a.Zone()
}

// Path is what a path record says of the port: enum ib_mtu and enum ib_rate.
func (d *Device) Path() (mtu, rate uint8) { return d.mtu, d.rate.Path }

// RNIC is what is below the device.
func (d *Device) RNIC() *verbs.RNIC { return d.rnic }

// Close closes every open of the device, and the RNIC.
func (d *Device) Close() error {
	d.mu.Lock()
	files := d.files
	d.files = nil
	d.mu.Unlock()
	for f := range files {
		f.Close()
	}
	d.errands.end()
	d.adapter.end()
	d.silences.end()
	d.counted.Close()
	return d.rnic.Close()
}

// Reject rejects a Request, with what to tell its program, in the background: a peer may not read. Close waits for that.
func (d *Device) Reject(r *cm.Request, private []byte) {
	reject := func() { _ = r.Reject(private) }
	if !d.errands.run(reject) {
		reject()
	}
}

// Open is an open("/dev/infiniband/uverbs0").
func (d *Device) Open() *File {
	f := &File{dev: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files == nil {
		f.closed = true
		return f
	}
	f.gone.Store(d.Unplugged()) // while it was opened, maybe
	d.files[f] = struct{}{}
	return f
}

// Name is the device's, as programs see it.
func (d *Device) Name() string { return cmp.Or(d.config.Name, sysfs.Device) }

// QP is the queue pair of a number; nil if there is none.
func (d *Device) QP(qpn uint32) *QP {
	q, _ := d.qpns.Load(qpn)
	v, _ := q.(*QP)
	return v
}

// Report tells the user a sentence, once for each cause.
func (d *Device) Report(cause, format string, args ...any) {
	if d.config.Report == nil {
		return
	}
	if _, said := d.said.LoadOrStore(cause, true); !said {
		d.config.Report(fmt.Sprintf(format, args...))
	}
}

// Own tells of a descriptor that is the device's own.
func (d *Device) Own(fd int) {
	if d.config.Own != nil {
		d.config.Own(fd)
	}
}
