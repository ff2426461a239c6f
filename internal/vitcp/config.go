package vitcp

import (
	"cmp"
	"fmt"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/softrnic/softrnic/internal/vitcp/endpoint"
	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// DefaultPort is the TCP port of passive connection establishment, the letters
// VI. The draft reserves one port and does not name it (2.2.2.2.1).
const DefaultPort = 0x5649

// Address is a VI network address (2.2.2.2.1).
type Address struct {
	// Host is an IP address and the port that its provider listens on; 0
	// stands for DefaultPort.
	Host netip.AddrPort
	// Discriminator tells the VIs behind Host apart.
	Discriminator segment.Discriminator
}

func (a Address) String() string { return fmt.Sprintf("%v %v", a.Host, a.Discriminator) }

// withPort is a with a port.
func (a Address) withPort() Address {
	if a.Host.Port() == 0 {
		a.Host = netip.AddrPortFrom(a.Host.Addr(), DefaultPort)
	}
	return a
}

// Config is what one end wants of a connection. The zero value is an Unreliable
// one, without RDMA into this end's memory, flow control and CRC.
type Config struct {
	// Level is the reliability level; both ends must have the same.
	Level segment.Level
	// Enable is what of WriteEnable, ReadEnable and FlowControl this end sets.
	// Other bits are ignored.
	Enable segment.Attributes
	// MTU is the longest message in octets; the lesser of both ends' counts. 0
	// stands for 2^32-1.
	MTU uint32
	// ReadWindow is how many RDMA Reads may be outstanding; the lesser of both
	// ends' counts, in each direction. 0 stands for DefaultReadWindow.
	ReadWindow uint16
	// CRC offers a CRC on each segment; there is one if both ends offer it.
	CRC bool
	// RequireCRC is CRC, and no connection without: it is a *MismatchError then.
	RequireCRC bool
	// Number is the number of this end's first message, which is the one that
	// establishes the connection (3.2: it may be varied).
	Number uint32
	// RxPosted is how many receives have been posted already, modulo 2^16.
	RxPosted uint16
}

// DefaultReadWindow is the ReadWindow that 0 stands for.
const DefaultReadWindow = 16

// enableMask are the attributes that an end chooses freely.
const enableMask = segment.WriteEnable | segment.ReadEnable | segment.FlowControl

// resolved is c without zeros that stand for something.
func (c Config) resolved() (Config, error) {
	if c.Level > segment.ReliableReception {
		return c, fmt.Errorf("%w: reliability level %v", ErrInvalid, c.Level)
	}
	c.MTU = cmp.Or(c.MTU, math.MaxUint32)
	c.ReadWindow = cmp.Or(c.ReadWindow, DefaultReadWindow)
	c.CRC = c.CRC || c.RequireCRC
	return c, nil
}

// valid reports whether discriminators fit their fields.
func valid(ds ...segment.Discriminator) error {
	for _, d := range ds {
		if len(d) > segment.MaxDiscriminator {
			return fmt.Errorf("%w: a discriminator of %d octets", ErrInvalid, len(d))
		}
	}
	return nil
}

// Agreed is an established connection, and what its ends agreed on. Nothing
// behind the peer's last segment of establishment has been read from Conn. It
// belongs to its holder.
type Agreed struct {
	// Conn is the TCP connection; who closes the one must close the other
	// (VT-2.2.2.2.2-M1).
	Conn net.Conn
	// Active reports whether this end sent the ConnectRequest.
	Active bool
	// Level is both ends' reliability level.
	Level segment.Level
	// MTU is the longest message in octets, headers not counted.
	MTU uint32
	// CRC: each segment has a trailer (VT-3.6-M3).
	CRC bool
	// ReadWindow is how many RDMA Reads each end may have outstanding.
	ReadWindow uint16
	// Local and Peer are the attributes of this end and of the other. With
	// WriteEnable in Peer this end may RDMA Write, with ReadEnable it may RDMA
	// Read, except at the Unreliable level (VI Architecture 2.5.1). With
	// FlowControl in Local this end holds messages back until the peer has a
	// receive; with FlowControl in Peer it must tell the peer of receives
	// (VT-3.3-M3).
	Local, Peer segment.Attributes
	// Urgent: the peer takes urgent data; nobody has to send any.
	Urgent bool
	// LocalNumber and PeerNumber are the numbers of the two ends' segments of
	// establishment: the first messages have the next ones.
	LocalNumber, PeerNumber uint32
	// PeerRxPosted is how many receives the peer had posted.
	PeerRxPosted uint16
	// LocalDiscriminator and PeerDiscriminator name the two VIs.
	LocalDiscriminator, PeerDiscriminator segment.Discriminator
}

// EndpointConfig is what both ends agreed, without what is this end's alone: memory,
// Handler, Posted and limits.
func (a *Agreed) EndpointConfig() endpoint.Config {
	c := endpoint.Config{
		Level: a.Level, MTU: a.MTU, CRC: a.CRC,
		FlowControl: a.Local&segment.FlowControl != 0, PeerFlowControl: a.Peer&segment.FlowControl != 0,
		AllowWrite: a.Local&segment.WriteEnable != 0, AllowRead: a.Local&segment.ReadEnable != 0,
		Number: a.LocalNumber, PeerNumber: a.PeerNumber, PeerPosted: a.PeerRxPosted,
	}
	if a.Level != segment.Unreliable { // VI Architecture 2.5.1
		c.OutboundReads, c.InboundReads = a.ReadWindow, a.ReadWindow
	}
	return c
}

// Bounds of the pause before a TCP connection is set up again.
const (
	minPause = 10 * time.Millisecond
	maxPause = 500 * time.Millisecond
)
