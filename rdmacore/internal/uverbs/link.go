//go:build linux && (amd64 || arm64)

package uverbs

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/softrnic/softrnic/internal/verbsinternal"
	"github.com/softrnic/softrnic/rdmacore/internal/sysfs"
	"github.com/softrnic/softrnic/rdmacore/internal/uabi"
	"github.com/softrnic/softrnic/verbs"
)

// What becomes of a device while a program runs, at a user's command (`rnic nic`): its port goes down, or slow, its GID moves, it fails, it is
// unplugged. This is the one place that knows; queries and the files below /sys ask here. What the streams see of it is the
// RNIC's (verbsinternal.SetLink).

// adapter is the state of a device.
type adapter struct {
	mu    sync.Mutex
	up    chan struct{} // closed when the port is up again; nil: it is up. Guarded by mu, as below
	watch func()        // ends the watch over what a port that is down holds up; nil: there is none
	told  []func(Change)

	moved     atomic.Bool // the GIDs are from index 1 on
	longer    atomic.Bool // they have been there: the table has an entry more
	failed    atomic.Bool
	unplugged atomic.Bool
}

// Link is how a port is: down, or slow.
type Link = verbsinternal.Link

// Change is what has become of the device, for those on top of it.
type Change int

// The changes.
const (
	AddressChanged Change = iota // the port has gone down, or the GID has moved
	Removed                      // the device has failed, or was unplugged
)

// OnChange has f called of each change from now on, in the order of changes. It may not call the Device.
func (d *Device) OnChange(f func(Change)) {
	a := &d.adapter
	a.mu.Lock()
	defer a.mu.Unlock()
	a.told = append(a.told, f)
}

// tell tells of a change; mu is held.
func (a *adapter) tell(c Change) {
	for _, f := range a.told {
		f(c)
	}
}

// end ends the watch over a port that is down: the device is closed.
func (a *adapter) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watch != nil {
		a.watch()
	}
}

// Link is how the port is.
func (d *Device) Link() Link { return verbsinternal.LinkOf(d.rnic) }

// Down reports whether the port lets nothing through.
func (d *Device) Down() bool { return d.Link().Down }

// SetLink has the port be so, with the events that an adapter has of it (IBA 11.6.3.3).
func (d *Device) SetLink(l Link) {
	a := &d.adapter
	a.mu.Lock()
	defer a.mu.Unlock()
	was := d.Link()
	verbsinternal.SetLink(d.rnic, l)
	switch {
	case l.Down && !was.Down:
		d.Struck("port down", "the port is down")
		a.up = make(chan struct{})
		a.watch = d.watchStalled()
		d.raiseAll(uabi.EventPortErr)
		a.tell(AddressChanged)
	case !l.Down && was.Down:
		d.Struck("port up", "the port is up")
		a.watch()
		close(a.up)
		a.up = nil
		d.raiseAll(uabi.EventPortActive)
	}
	was.Down = l.Down
	if was != l {
		d.Struck("degrade", fmt.Sprintf("the port has a rate of %d octets a second (0: any), a delay of %v, and loses %v %%", l.Rate, l.Delay, 100*l.Loss))
	}
}

// AwaitUp waits until the port is up, or ctx ends, whose error it returns.
func (d *Device) AwaitUp(ctx context.Context) error {
	for d.Down() {
		d.adapter.mu.Lock()
		up := d.adapter.up
		d.adapter.mu.Unlock()
		if up == nil {
			continue
		}
		select {
		case <-up:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// MoveGID has the GIDs be one place further in the port's table, or back at their own; the first is at index then.
func (d *Device) MoveGID() (index int) {
	a := &d.adapter
	a.mu.Lock()
	defer a.mu.Unlock()
	a.longer.Store(true)
	a.moved.Store(!a.moved.Load())
	d.Struck("gid moved", fmt.Sprintf("the first GID has moved to index %d", d.GIDIndex()))
	d.raiseAll(uabi.EventGIDChange)
	a.tell(AddressChanged)
	return d.GIDIndex()
}

// GIDIndex is where the first GID is.
func (d *Device) GIDIndex() int {
	if d.adapter.moved.Load() {
		return 1
	}
	return 0
}

// GIDOf is the index of the GID of an address of the device; of one that it has not, the first.
func (d *Device) GIDOf(a netip.Addr) (index int) {
	i := slices.IndexFunc(d.addrs, func(own netip.Addr) bool { return plain(own) == plain(a) })
	return max(i, 0) + d.GIDIndex()
}

// gids is how many entries the table of GIDs has.
func (d *Device) gids() int {
	if d.adapter.longer.Load() {
		return len(d.addrs) + 1
	}
	return len(d.addrs)
}

// addressAt is which of the device's addresses the GID at an index is of; ok is false if there is none.
func (d *Device) addressAt(index int) (i int, ok bool) {
	i = index - d.GIDIndex()
	return i, i >= 0 && i < len(d.addrs)
}

func (d *Device) hasGID(index int) bool {
	_, ok := d.addressAt(index)
	return ok
}

// noGID refuses an index at which there is none.
func (d *Device) noGID(index int) error {
	first := d.GIDIndex()
	return refuse(syscall.EINVAL, "grh.sgid_index %d: the port has GIDs %d to %d", index, first, first+len(d.addrs)-1)
}

// Fail has the device fail for good, as by an internal error: DEVICE_FATAL, and every verb that needs the RNIC ends with EIO.
func (d *Device) Fail() {
	a := &d.adapter
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed.Swap(true) {
		return
	}
	d.Struck("fatal", "the device has failed")
	verbsinternal.FailRNIC(d.rnic) // its event is DEVICE_FATAL
	a.tell(Removed)
}

// Failed reports whether it has.
func (d *Device) Failed() bool { return d.adapter.failed.Load() }

// Unplug takes the device away from those that have it open, for good: DEVICE_FATAL, and from then on each of their commands is EIO.
// Nobody can open it until Plug.
func (d *Device) Unplug() {
	a := &d.adapter
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unplugged.Swap(true) {
		return
	}
	d.Struck("unplug", "the device was unplugged")
	d.mu.Lock()
	for f := range d.files {
		f.gone.Store(true)
	}
	d.mu.Unlock()
	d.fatal()
	a.tell(Removed)
	d.qpns.Range(func(_, v any) bool {
		v.(*QP).abort()
		return true
	})
}

// Plug makes a device that was unplugged one that can be opened again.
func (d *Device) Plug() {
	if d.adapter.unplugged.Swap(false) {
		d.Struck("plug", "the device is there again")
	}
}

// Unplugged reports whether it was unplugged, and not plugged in again.
func (d *Device) Unplugged() bool { return d.adapter.unplugged.Load() }

// Quiet takes back what can be: the port is up and as fast as it goes, the GID at its place, the device there.
func (d *Device) Quiet() {
	d.SetLink(Link{})
	if d.GIDIndex() != 0 {
		d.MoveGID()
	}
	d.Plug()
}

// abort ends the stream of the queue pair at once: its peer sees a reset. What is posted flushes.
func (q *QP) abort() {
	if q.qp.Modify(verbs.ModifyQP{Next: verbs.StateError}) == nil {
		q.inError()
	}
}

// Struck counts a fault that was made on purpose by its kind, and records it.
func (d *Device) Struck(kind, what string) {
	verbsinternal.TellFault(d.rnic, kind, d.Name()+": "+what)
	if d.config.Trace != nil {
		d.config.Trace("uverbs " + d.Name() + ": " + what)
	}
}

// raiseAll tells every context of an event of the port.
func (d *Device) raiseAll(kind uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for f := range d.files {
		if c := f.async.Load(); c != nil {
			d.raise(&source{ch: c}, 1, kind)
		}
	}
}

// PortState is how a port is, in the words of /sys.
type PortState struct {
	State, PhysState string
	rate             sysfs.Rate
}

// Rate is what the port is said to be good for.
func (s PortState) Rate() string { return s.rate.Text() }

// PortState is how the port is: one whose rate is bounded says the next lower of the rates that there are.
func (d *Device) PortState() PortState {
	l := d.Link()
	s := PortState{State: "4: ACTIVE", PhysState: "5: LinkUp", rate: d.rate}
	if l.Down || d.Failed() || d.Unplugged() {
		s.State, s.PhysState = "1: DOWN", "3: Disabled"
	}
	if bits := 8 * float64(l.Rate); bits > 0 && bits < 1e9*float64(d.rate.Gbps) {
		s.rate = sysfs.RateWithin(bits)
	}
	return s
}

// Text is what a file below the port's folder in /sys says now, by its name there, of those that change. If entry is not empty it is what
// that file there said at first: the GIDs have moved. False: it is as it was.
func (d *Device) Text(file string) (text, entry string, ok bool) {
	switch s := d.PortState(); file {
	case "state":
		return s.State, "", true
	case "phys_state":
		return s.PhysState, "", true
	case "rate":
		return s.Rate(), "", true
	}
	if counter := sysfs.Counters[file]; counter != nil {
		s := d.rnic.Stats()
		return strconv.FormatUint(counter(&s), 10), "", true
	}
	if !d.adapter.moved.Load() && !d.adapter.longer.Load() {
		return "", "", false
	}
	slash := strings.LastIndexByte(file, '/') + 1
	dir := file[:slash]
	i, err := strconv.Atoi(file[slash:])
	own, ok := d.addressAt(i)
	switch {
	case dir != "gids/" && dir != "gid_attrs/types/" && dir != "gid_attrs/ndevs/" || err != nil || i < 0 || i >= d.gids():
		return "", "", false
	case ok:
		return "", dir + strconv.Itoa(own), true
	case dir == "gids/":
		return "0000:0000:0000:0000:0000:0000:0000:0000", "", true
	}
	return "", "", true
}
