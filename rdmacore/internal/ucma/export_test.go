//go:build linux && (amd64 || arm64)

package ucma

import (
	"net/netip"
	"time"
)

// Shorten sets the times of a device before it is used: how long a refused connect is tried again, and how long a
// connect may take.
func (d *Device) Shorten(refused, connect time.Duration) {
	d.limits.Refused, d.limits.Connect = refused, connect
}

// Patient sets how long a close may take.
func (d *Device) Patient(t time.Duration) { d.limits.Close = t }

// Farewell sets for how long an event that an id is disconnected keeps the id.
func (d *Device) Farewell(t time.Duration) { d.limits.Farewell = t }

// Here is where an id for datagrams looks for an address.
func (d *Device) Here(a netip.AddrPort) netip.AddrPort { return d.here(a) }

// IDs is how many ids there are.
func (d *Device) IDs() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.ids)
}

// Turns is how many addresses a connect is on its way to.
func (d *Device) Turns() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.turns)
}

// Commands is how many numbers commands have.
const Commands = len(commands)
