package vipl

import "github.com/softrnic/softrnic/internal/names"

// The handles of appendix A that name objects are the objects.
type (
	// NicHandle is a VIP_NIC_HANDLE.
	NicHandle = *Nic
	// ViHandle is a VIP_VI_HANDLE.
	ViHandle = *Vi
	// CQHandle is a VIP_CQ_HANDLE.
	CQHandle = *CQ
	// ConnHandle is a VIP_CONN_HANDLE.
	ConnHandle = *Conn
)

// ProtectionHandle is a protection tag (VI Architecture 3.2.2.1), never zero.
type ProtectionHandle uint32

// ReliabilityLevel is a VIP_RELIABILITY_LEVEL (VI Architecture 2.5).
type ReliabilityLevel uint8

// The reliability levels, numbered as in 9.10.5.
const (
	// ServiceUnreliable: a Send arrives at most once; what goes wrong with it is told
	// by status bits and ends nothing (2.5.1).
	ServiceUnreliable ReliabilityLevel = iota
	// ServiceReliableDelivery: all that is sent arrives once and in order, or the
	// connection breaks. A Send is done when it is on its way (2.5.2).
	ServiceReliableDelivery
	// ServiceReliableReception: as before, but a Send is done when it is in the remote
	// memory, and nothing after the first one that failed has any effect (2.5.3).
	ServiceReliableReception
	numLevels
)

var levelNames = [numLevels]string{"Unreliable Delivery", "Reliable Delivery", "Reliable Reception"}

func (l ReliabilityLevel) String() string { return names.Of("ReliabilityLevel", levelNames[:], l) }

// reliable reports whether an error breaks the connection (table 1).
func (l ReliabilityLevel) reliable() bool { return l != ServiceUnreliable }

// QoS is a VIP_QOS, which the appendix leaves without values. Zero, best effort, is the
// only one that TCP can grant.
type QoS uint32

// ViAttributes is a VIP_VI_ATTRIBUTES (VI Architecture 9.10.5). All fields but Ptag and
// QoS travel to the remote end when a connection is established.
type ViAttributes struct {
	ReliabilityLevel ReliabilityLevel
	// MaxTransferSize is in octets of payload of one Descriptor, from 1 to
	// NicAttributes.MaxTransferSize. A connection has the smaller of its two ends'.
	MaxTransferSize uint32
	QoS             QoS
	Ptag            ProtectionHandle
	// EnableRdmaWrite and EnableRdmaRead accept these operations from the remote end.
	// An Unreliable VI cannot have RDMA Reads.
	EnableRdmaWrite bool
	EnableRdmaRead  bool
	// FlowControl (extension; VI/TCP 2.2.1) holds Sends and RDMA Writes with immediate
	// data of this VI back until the remote end has posted a Receive Descriptor for
	// them. Each end decides for itself.
	FlowControl bool
	// CRC (extension; VI/TCP 3.6) asks for a CRC in each segment. A connection has it if
	// both ends ask: then the attributes of both VIs, while they are connected, tell so. A
	// VI that asked and is connected without has ErrorNoCRC told to the error handler.
	CRC bool
}

// MemAttributes is a VIP_MEM_ATTRIBUTES (VI Architecture 9.10.6). RDMA needs the
// permission of the region and of the VI.
type MemAttributes struct {
	Ptag            ProtectionHandle
	EnableRdmaWrite bool
	EnableRdmaRead  bool
}

// NicAttributes is a VIP_NIC_ATTRIBUTES (VI Architecture 9.10.4): constant from OpenNic
// on.
type NicAttributes struct {
	Name            string
	HardwareVersion uint32
	ProviderVersion uint32
	NicAddressLen   uint16
	// LocalNicAddress is the HostAddress of a NetAddress at this Nic.
	LocalNicAddress []byte
	ThreadSafe      bool
	// MaxDiscriminatorLen is in octets.
	MaxDiscriminatorLen uint16
	// MaxRegisterBytes, MaxRegisterRegions and MaxRegisterBlockBytes limit RegisterMem:
	// all regions together, their number, and one region. Octets; the largest value
	// of the type means that only memory is the limit.
	MaxRegisterBytes      uint64
	MaxRegisterRegions    uint32
	MaxRegisterBlockBytes uint64
	MaxVI                 uint32
	// MaxDescriptorsPerQueue is how many Descriptors may be on a work queue, posted and
	// not dequeued.
	MaxDescriptorsPerQueue uint32
	// MaxSegmentsPerDesc counts data segments.
	MaxSegmentsPerDesc uint32
	MaxCQ              uint32
	MaxCQEntries       uint32
	// MaxTransferSize is in octets of payload of one Descriptor.
	MaxTransferSize uint32
	// NativeMTU is the longest VI segment in octets.
	NativeMTU uint32
	MaxPtags  uint32

	// RDMAReadSupport (extension) tells at which reliability levels RDMA Reads are
	// supported, indexed by level (VA-2.3.2-S1).
	RDMAReadSupport [numLevels]bool
}

// ViState is a VIP_VI_STATE (VI Architecture 5).
type ViState uint8

// The states, numbered as in 9.10.7.
const (
	// StateIdle: not connected, as created.
	StateIdle ViState = iota
	// StateConnected: data flows.
	StateConnected
	// StateConnectPending: a connection is being established.
	StateConnectPending
	// StateError: the connection broke; Disconnect leads back to StateIdle.
	StateError
	numStates
)

var stateNames = [numStates]string{"Idle", "Connected", "Pending Connect", "Error"}

func (s ViState) String() string { return names.Of("ViState", stateNames[:], s) }
