//go:build linux && (amd64 || arm64)

package uabi

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strconv"
	"syscall"
	"unsafe"
)

// CMABI is the version of the ABI of rdma_cm (RDMA_USER_CM_ABI_VERSION).
const CMABI = 4

// Commands of rdma_cm.
const (
	CMCreateID = iota
	CMDestroyID
	CMBindIP
	CMResolveIP
	CMResolveRoute
	CMQueryRoute
	CMConnect
	CMListen
	CMAccept
	CMReject
	CMDisconnect
	CMInitQPAttr
	CMGetEvent
	CMGetOption
	CMSetOption
	CMNotify
	CMJoinIPMcast
	CMLeaveMcast
	CMMigrateID
	CMQuery
	CMBind
	CMResolveAddr
	CMJoinMcast
	CMResolveIBService
	CMWriteCMEvent
)

// PortSpace is what a connection id is for (enum rdma_ucm_port_space).
type PortSpace uint16

// The port spaces.
const (
	PSIPoIB PortSpace = 0x0002
	PSIB    PortSpace = 0x013f
	PSTCP   PortSpace = 0x0106
	PSUDP   PortSpace = 0x0111
)

func (p PortSpace) String() string {
	if name, ok := map[PortSpace]string{PSIPoIB: "IPOIB", PSIB: "IB", PSTCP: "TCP", PSUDP: "UDP"}[p]; ok {
		return name
	}
	return fmt.Sprintf("%#x", uint16(p))
}

// Events of rdma_cm (enum rdma_cm_event_type of <rdma/rdma_cma.h>).
const (
	CMEventAddrResolved = iota
	CMEventAddrError
	CMEventRouteResolved
	CMEventRouteError
	CMEventConnectRequest
	CMEventConnectResponse
	CMEventConnectError
	CMEventUnreachable
	CMEventRejected
	CMEventEstablished
	CMEventDisconnected
	CMEventDeviceRemoval
	CMEventMulticastJoin
	CMEventMulticastError
	CMEventAddrChange
	CMEventTimewaitExit
	CMEventAddrInfoResolved
	CMEventAddrInfoError
	CMEventUser
	CMEventInternal
)

// Options of QUERY.
const (
	CMQueryAddr = iota
	CMQueryPath
	CMQueryGID
)

// Levels of SET_OPTION, and the options of each.
const (
	CMOptionID = 0
	CMOptionIB = 1

	CMOptionTOS        = 0
	CMOptionReuseAddr  = 1
	CMOptionAFOnly     = 2
	CMOptionACKTimeout = 3

	CMOptionIBPath = 1
)

// Reasons of REJECT; 0 stands for the first.
const (
	RejectConsumer     = 28
	RejectVendorOption = 35
)

// MaxPrivateData is how many octets ConnParam and Reject have room for; a length has 8 bits.
const MaxPrivateData = 256

// SockaddrIn6 is a struct sockaddr_in6, and the beginning of a SockaddrStorage. It holds a struct sockaddr_in as
// well, whose 4 octets of address are where FlowInfo is here.
type SockaddrIn6 struct {
	Family   uint16
	Port     [2]uint8 // network order
	FlowInfo [4]uint8
	Addr     [16]uint8
	ScopeID  uint32
}

// AddrPort is the address, and whether it is one of IPv4 or IPv6.
func (s *SockaddrIn6) AddrPort() (netip.AddrPort, bool) {
	port := binary.BigEndian.Uint16(s.Port[:])
	switch s.Family {
	case syscall.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4(s.FlowInfo), port), true
	case syscall.AF_INET6:
		a := netip.AddrFrom16(s.Addr)
		if s.ScopeID != 0 && a.IsLinkLocalUnicast() {
			a = a.WithZone(strconv.FormatUint(uint64(s.ScopeID), 10))
		}
		return netip.AddrPortFrom(a, port), true
	}
	return netip.AddrPort{}, false
}

func (s SockaddrIn6) String() string {
	if a, ok := s.AddrPort(); ok {
		return a.String()
	}
	return fmt.Sprintf("family %d", s.Family)
}

// Lengths of the two kinds of socket address.
const (
	SockaddrIn4Len = 16
	SockaddrIn6Len = 28
)

// SockaddrStorage is a struct __kernel_sockaddr_storage.
type SockaddrStorage struct {
	SockaddrIn6
	Rest [100]uint8
}

// ConnParam is what the two sides of a connection want, or what an event says that they do.
type ConnParam struct {
	QPNum, QKey                            uint32
	PrivateData                            [MaxPrivateData]uint8
	PrivateDataLen, SRQ                    uint8
	ResponderResources, InitiatorDepth     uint8
	FlowControl, RetryCount, RNRRetryCount uint8
	Valid                                  uint8
}

func (p ConnParam) String() string {
	if p.Valid == 0 {
		return "{no parameters}"
	}
	return fmt.Sprintf("{qpn=%#x, responder_resources=%d, initiator_depth=%d, private_data_len=%d}",
		p.QPNum, p.ResponderResources, p.InitiatorDepth, p.PrivateDataLen)
}

// UDParam is what an event says of an id for datagrams, in place of ConnParam: the peer's queue pair and how to reach it.
type UDParam struct {
	QPNum, QKey    uint32
	AH             AHAttr
	PrivateData    [MaxPrivateData]uint8
	PrivateDataLen uint8
	Reserved       [7]uint8
}

// UDParam is the union of an event as an id for datagrams has it.
func (e *EventResp) UDParam() *UDParam { return (*UDParam)(unsafe.Pointer(&e.Conn)) }

// SetUD sets it.
func (e *EventResp) SetUD(p *UDParam) { *e.UDParam() = *p }

// ECE is struct rdma_ucm_ece: older programs do not know of it.
type ECE struct{ VendorID, AttrMod uint32 }

// PathRec is struct ib_user_path_rec.
type PathRec struct {
	DGID, SGID                                         GID
	DLID, SLID                                         [2]uint8 // network order
	RawTraffic                                         uint32
	FlowLabel                                          [4]uint8 // network order
	Reversible, MTU                                    uint32
	Pkey                                               [2]uint8 // network order
	HopLimit, TrafficClass, NumbPath, SL               uint8
	MTUSelector, RateSelector, Rate                    uint8
	PacketLifeTimeSelector, PacketLifeTime, Preference uint8
}

// CreateID and the types below are the structs of the commands of their names, and those with Resp
// what the device answers.
type (
	CreateID struct {
		UID, Response uint64
		PS            PortSpace
		QPType        uint8
		Reserved      [5]uint8
	}
	CreateIDResp struct{ ID Handle }

	DestroyID struct {
		Response     uint64
		ID, Reserved Handle
	}
	DestroyIDResp struct{ EventsReported uint32 }

	BindIP struct {
		Response uint64 // of no use
		Addr     SockaddrIn6
		ID       Handle
	}
	CMBindAddr struct {
		ID                 Handle
		AddrSize, Reserved uint16
		Addr               SockaddrStorage
	}

	ResolveIP struct {
		Src, Dst  SockaddrIn6
		ID        Handle
		TimeoutMS uint32
	}
	ResolveAddr struct {
		ID, TimeoutMS    uint32
		SrcSize, DstSize uint16
		Reserved         uint32
		Src, Dst         SockaddrStorage
	}
	ResolveRoute struct{ ID, TimeoutMS uint32 }

	// CMQueryCmd is of QUERY_ROUTE, and with an Option of QUERY.
	CMQueryCmd struct {
		Response   uint64
		ID, Option uint32
	}
	QueryRouteResp struct {
		NodeGUID              [8]uint8 // network order
		Path                  [2]PathRec
		Src, Dst              SockaddrIn6
		NumPaths              uint32
		PortNum               uint8
		Reserved              [3]uint8
		IBDevIndex, Reserved1 uint32
	}
	QueryAddrResp struct {
		NodeGUID              [8]uint8 // network order
		PortNum, Reserved     uint8
		Pkey                  uint16
		SrcSize, DstSize      uint16
		Src, Dst              SockaddrStorage
		IBDevIndex, Reserved1 uint32
	}
	QueryPathResp struct{ NumPaths, Reserved uint32 }

	Connect struct {
		ConnParam    ConnParam
		ID, Reserved uint32
		ECE          ECE
	}
	Listen struct{ ID, Backlog uint32 }
	Accept struct {
		UID          uint64
		ConnParam    ConnParam
		ID, Reserved uint32
		ECE          ECE
	}
	Reject struct {
		ID                     Handle
		PrivateDataLen, Reason uint8
		Reserved               [2]uint8
		PrivateData            [MaxPrivateData]uint8
	}
	Disconnect struct{ ID Handle }

	// InitQPAttr is answered by QPAttr.
	InitQPAttr struct {
		Response    uint64
		ID, QPState uint32
	}

	GetEvent  = Response
	EventResp struct {
		UID               uint64
		ID, Event, Status uint32
		Conn              ConnParam
		UD                [32]uint8 // the union is as long as UDParam
		Reserved          uint32
		ECE               ECE
	}

	SetOption struct {
		OptVal                     uint64
		ID, Level, OptName, OptLen uint32
	}
	Notify struct{ ID, Event uint32 }

	// JoinIPMcast and JoinMcast are answered by a CreateIDResp.
	JoinIPMcast struct {
		Response, UID uint64
		Addr          SockaddrIn6
		ID            Handle
	}
	JoinMcast struct {
		Response, UID       uint64
		ID                  Handle
		AddrSize, JoinFlags uint16
		Addr                SockaddrStorage
	}

	MigrateID struct {
		Response uint64
		ID, FD   uint32
	}
	MigrateIDResp struct{ EventsReported uint32 }
)

// How much of a struct there is at least: what stands behind was added later.
const (
	ConnectMin        = 280
	AcceptMin         = 288
	EventRespMin      = 324
	QueryRouteRespMin = 200
	QueryAddrRespMin  = 272
)

// ResolveIBService is struct rdma_ucm_resolve_ib_service.
type ResolveIBService struct {
	ID, Reserved     uint32
	ServiceID        uint64
	ServiceName      [64]uint8
	Flags, Reserved2 uint32
}

// WriteCMEvent is the beginning of struct rdma_ucm_write_cm_event: an event of the program's own.
type WriteCMEvent struct {
	ID, Reserved  uint32
	Event, Status uint32
	Arg           uint64 // of the parameters the first octets
}
