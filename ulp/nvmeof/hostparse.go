package nvmeof

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net"
)

// Controller is what a controller says of itself, and what the host has of it.
type Controller struct {
	ID                      uint16
	Subsystem               string // its NQN
	Serial, Model, Firmware string
	Version                 string // of NVM Express, such as "1.3"
	Queues, Depth           int    // of I/O, and the commands outstanding of each
	MaxTransfer             int    // of a command, in octets; ReadAt and WriteAt make several of a longer one
	WriteCache              bool   // a Flush is needed before what is written survives the target

	capsule int // octets of a command and its data, of an I/O queue
}

// words is text of a page: what is behind the first NUL, and spaces at the ends, left out.
func words(b []byte) string { return string(bytes.TrimSpace([]byte(text(b)))) }

// parseController reads the page, of identifySize octets, of a controller whose smallest page is of 4096 << pages
// octets.
func parseController(b []byte, pages uint, discovery bool) (c Controller, err error) {
	c = Controller{
		ID: le.Uint16(b[ctrlID:]), Subsystem: text(b[ctrlNQN:][:256]),
		Serial: words(b[ctrlSerial:ctrlModel]), Model: words(b[ctrlModel:ctrlFirmware]), Firmware: words(b[ctrlFirmware : ctrlFirmware+8]), MaxTransfer: maxTransfer, WriteCache: b[ctrlVWC]&1 != 0,
	}
	v := le.Uint32(b[ctrlVersion:])
	c.Version = fmt.Sprintf("%d.%d", v>>16, v>>8&0xff)
	if exponent := uint(b[ctrlMDTS]); exponent != 0 && exponent+pages < mdts { // 0: as much as the host likes
		c.MaxTransfer = 4096 << (exponent + pages)
	}
	if discovery {
		return c, nil
	}
	octets := uint64(le.Uint32(b[ctrlIOCCSZ:])) * 16
	switch {
	case le.Uint32(b[ctrlSGLS:])&sglsKeyed == 0:
		return c, errors.New("its controller takes no keyed SGL descriptors: is it one for RDMA?")
	case octets < commandSize:
		return c, fmt.Errorf("its controller takes capsules of %d octets, want %d at least", octets, commandSize)
	case le.Uint32(b[ctrlIORCSZ:])*16 < completionSize:
		return c, fmt.Errorf("its controller answers with %d octets, want %d", le.Uint32(b[ctrlIORCSZ:])*16, completionSize)
	}
	c.capsule = int(min(octets, commandSize+mostInCapsule))
	// Data are to be right behind the command.
	if le.Uint16(b[ctrlICDOFF:]) != 0 || le.Uint32(b[ctrlSGLS:])&sglsOffset == 0 {
		c.capsule = commandSize
	}
	return c, nil
}

// mostInCapsule is how many octets of data go in a capsule at most: each slot has memory for as many.
const mostInCapsule = 8192

// maxBlockShift is for a block of maxTransfer octets.
const maxBlockShift = 12 + mdts

// namespaceInfo is what the page of a namespace says.
type namespaceInfo struct {
	size  int64 // octets
	block int   // octets
	guid  [16]byte
}

// parseNamespace reads the page, of identifySize octets, of a namespace.
func parseNamespace(b []byte) (n namespaceInfo, err error) {
	blocks := le.Uint64(b[nsSize:])
	if blocks == 0 {
		return n, errors.New("it is not there, or has no blocks")
	}
	index := int(b[nsFormat]&0xf | b[nsFormat]>>1&0x30) // bits 6:5 are the upper ones of the index
	format := b[nsFormats+4*index:]
	metadata, shift := le.Uint16(format), format[2]
	switch {
	case metadata != 0:
		return n, fmt.Errorf("its blocks have %d octets of metadata, which this host does not know", metadata)
	case shift < blockShift || shift > maxBlockShift:
		return n, fmt.Errorf("its blocks have 2^%d octets, want 2^%d to 2^%d", shift, blockShift, maxBlockShift)
	case blocks > math.MaxInt64>>shift:
		return n, fmt.Errorf("it has %d blocks of %d octets, which is more than 2^63 octets", blocks, 1<<shift)
	}
	return namespaceInfo{size: int64(blocks << shift), block: 1 << shift, guid: [16]byte(b[nsNGUID:])}, nil
}

// parseActive reads a list of namespaces behind after: nsids that ascend, and zeroes behind them. full says that there
// may be more.
func parseActive(b []byte, after uint32) (nsids []uint32, full bool, err error) {
	for ; len(b) >= 4; b = b[4:] {
		id := le.Uint32(b)
		switch {
		case id == 0:
			return nsids, false, nil
		case id <= after || id >= 0xfffffffe:
			return nil, false, fmt.Errorf("its list of namespaces has %d behind %d", id, after)
		}
		nsids, after = append(nsids, id), id
	}
	return nsids, true, nil
}

// DiscoveryEntry is a line of a target's discovery log.
type DiscoveryEntry struct {
	NQN string
	// Address is host:port of TCP and RDMA, else the address as it stands.
	Address string
	// Transport is "rdma", "tcp", "fc" or "loop", or the number of another.
	Transport string
	// Discovery says that it is a discovery service, another one or this, and no subsystem with namespaces.
	Discovery bool
}

var transports = map[byte]string{transportRDMA: "rdma", 2: "fc", 3: "tcp", 254: "loop"}

// parseDiscovery reads one record, of discoveryEntry octets.
func parseDiscovery(b []byte) DiscoveryEntry {
	e := DiscoveryEntry{
		NQN: text(b[recNQN:][:256]), Address: words(b[recAddress:][:256]), Transport: transports[b[recTransport]],
		Discovery: b[recSubtype] == subtypeReferral || b[recSubtype] == subtypeCurrent,
	}
	if e.Transport == "" {
		e.Transport = fmt.Sprint(b[recTransport])
	}
	if f := b[recFamily]; f == familyIPv4 || f == familyIPv6 {
		e.Address = net.JoinHostPort(e.Address, words(b[recPort:][:32]))
	}
	return e
}
