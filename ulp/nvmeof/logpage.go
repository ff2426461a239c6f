package nvmeof

import (
	"maps"
	"net"
	"net/netip"
	"slices"
)

// Log pages.
const (
	logError     = 0x01
	logSMART     = 0x02
	logFirmware  = 0x03
	logChangedNS = 0x04
	logDiscovery = 0x70

	discoveryEntry = 1024 // octets of a record of the discovery log, and of its head
)

// Where the fields are in a record of the discovery log, and what they may be.
const (
	recTransport  = 0
	recFamily     = 1
	recSubtype    = 2
	recPortID     = 4
	recController = 6
	recQueueSize  = 8
	recPort       = 32  // 32 octets
	recNQN        = 256 // 256 octets
	recAddress    = 512 // 256 octets
	recRDMA       = 768

	transportRDMA   = 1
	familyIPv4      = 1
	familyIPv6      = 2
	subtypeReferral = 1
	subtypeNVM      = 2
	subtypeCurrent  = 3
	anyController   = 0xffff // of Connect: one that is made for it
)

func (r *request) logPage(c *controller) ([]byte, Status) {
	n := (uint64(r.cmd.dw(10)>>16|r.cmd.dw(11)<<16) + 1) * 4
	offset := uint64(r.cmd.dw(12)) | uint64(r.cmd.dw(13))<<32
	if offset%4 != 0 {
		return nil, InvalidField | DNR
	}
	var page []byte
	lid := r.cmd[40]
	switch {
	case lid == logDiscovery && c.subsys == nil:
		page = c.target.discoveryLog(r.q.local)
	case c.subsys != nil && lid == logSMART:
		page = make([]byte, 512)
		le.PutUint16(page[1:], 300) // kelvin
		page[3], page[4] = 100, 10  // spare, and its threshold
	case c.subsys != nil && (lid == logError || lid == logFirmware):
		page = make([]byte, 512)
	case c.subsys != nil && lid == logChangedNS:
		page = make([]byte, 4*maxChanged)
	default:
		return nil, InvalidLogPage | DNR
	}
	if n > maxTransfer {
		return nil, InvalidField | DNR
	}
	b, status := r.reply(int(n))
	if status != Success {
		return nil, status
	}
	if lid == logChangedNS {
		c.takeChanged(page, r.cmd[41]&0x80 == 0)
	}
	clear(b)
	if offset < uint64(len(page)) {
		copy(b, page[offset:])
	}
	return b, Success
}

// takeChanged fills in the changed namespaces, and forgets them unless the host retains the event.
func (c *controller) takeChanged(page []byte, forget bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, nsid := range slices.Sorted(maps.Keys(c.changed)) {
		le.PutUint32(page[4*i:], nsid)
	}
	if forget {
		clear(c.changed)
		c.noticed, c.pending = false, false
	}
}

// discoveryLog names the subsystems, at the address that the host came to unless the program says where.
func (t *Target) discoveryLog(local string) []byte {
	if t.config.Advertise != "" {
		local = t.config.Advertise
	}
	host, port, _ := net.SplitHostPort(local)
	names := t.names()
	b := make([]byte, discoveryEntry*(1+len(names)))
	le.PutUint64(b, t.genctr)
	le.PutUint64(b[8:], uint64(len(names)))
	for i, name := range names {
		e := b[discoveryEntry*(1+i):]
		e[recTransport], e[recFamily], e[recSubtype] = transportRDMA, familyIPv4, subtypeNVM
		if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().Is6() {
			e[recFamily] = familyIPv6
		}
		le.PutUint16(e[recPortID:], 1)
		le.PutUint16(e[recController:], anyController)
		le.PutUint16(e[recQueueSize:], adminDepth)
		padded(e[recPort:recPort+32], port)
		copy(e[recNQN:recNQN+256], name)
		padded(e[recAddress:recAddress+256], host)
		e[recRDMA], e[recRDMA+1], e[recRDMA+2] = 1, 5, 1 // connected, iWARP, RDMA_CM
	}
	return b
}
