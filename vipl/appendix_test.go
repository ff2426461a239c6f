package vipl_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/vipl"
)

// calls are the 34 calls of appendix A, with the type that has the method: the handle that
// the call takes first. OpenNic is a function.
var calls = map[string]reflect.Type{
	"VipCloseNic": nicType, "VipQueryNic": nicType, "VipErrorCallback": nicType, "VipQuerySystemManagementInfo": nicType,
	"VipCreateVi": nicType, "VipDestroyVi": viType, "VipQueryVi": viType, "VipSetViAttributes": viType,
	"VipConnectWait": nicType, "VipConnectAccept": connType, "VipConnectReject": connType,
	"VipConnectRequest": viType, "VipDisconnect": viType,
	"VipCreatePtag": nicType, "VipDestroyPtag": nicType,
	"VipRegisterMem": nicType, "VipDeregisterMem": nicType, "VipQueryMem": nicType, "VipSetMemAttributes": nicType,
	"VipPostSend": viType, "VipSendDone": viType, "VipSendWait": viType, "VipSendNotify": viType,
	"VipPostRecv": viType, "VipRecvDone": viType, "VipRecvWait": viType, "VipRecvNotify": viType,
	"VipCreateCQ": nicType, "VipDestroyCQ": cqType, "VipResizeCQ": cqType,
	"VipCQDone": cqType, "VipCQWait": cqType, "VipCQNotify": cqType,
	"VipOpenNic": nil,

	// Extensions, for VI/TCP chapter 4.
	"VipConnectPeerRequest": viType, "VipConnectPeerDone": viType, "VipConnectPeerWait": viType,
}

var (
	nicType  = reflect.TypeFor[vipl.NicHandle]()
	viType   = reflect.TypeFor[vipl.ViHandle]()
	cqType   = reflect.TypeFor[vipl.CQHandle]()
	connType = reflect.TypeFor[vipl.ConnHandle]()
)

func TestCallsOfAppendixA(t *testing.T) {
	require.Len(t, calls, 34+3)
	open := reflect.TypeOf(vipl.OpenNic)
	require.Equal(t, nicType, open.Out(0))
	failure := reflect.TypeFor[error]()
	require.Equal(t, failure, open.Out(1))
	for name, handle := range calls {
		if handle == nil {
			continue
		}
		m, ok := handle.MethodByName(strings.TrimPrefix(name, "Vip"))
		if assert.True(t, ok, "%s is not a method of %v", name, handle) {
			last := m.Type.Out(m.Type.NumOut() - 1)
			assert.Equal(t, failure, last, "%s tells its VIP_RETURN", name)
		}
	}
}

// TestHandlesHaveNoOtherCalls: what a handle can do beside the calls of the appendix is
// known, so that a name is never taken for one of them.
func TestHandlesHaveNoOtherCalls(t *testing.T) {
	extra := map[reflect.Type][]string{
		nicType:  {"RegisterDescriptors", "ConnectWaitFrom"},
		connType: {"RemoteAddr", "RemoteViAttribs"},
	}
	for _, handle := range []reflect.Type{nicType, viType, cqType, connType} {
		for i := range handle.NumMethod() {
			name := handle.Method(i).Name
			if of, ok := calls["Vip"+name]; ok {
				assert.Equal(t, of, handle, name)
				continue
			}
			assert.Contains(t, extra[handle], name, "method of %v", handle)
		}
	}
}

// values are the constants of 9.10 with the numbers that the appendix gives them.
var values = []struct {
	name string
	got  any
	want uint64
}{
	// 9.10.1
	{"VIP_SUCCESS", vipl.Success, 0},
	{"VIP_NOT_DONE", vipl.ErrNotDone, 1},
	{"VIP_INVALID_PARAMETER", vipl.ErrInvalidParameter, 2},
	{"VIP_ERROR_RESOURCE", vipl.ErrResource, 3},
	{"VIP_TIMEOUT", vipl.ErrTimeout, 4},
	{"VIP_REJECT", vipl.ErrReject, 5},
	{"VIP_INVALID_RELIABILITY_LEVEL", vipl.ErrInvalidReliabilityLevel, 6},
	{"VIP_INVALID_MTU", vipl.ErrInvalidMTU, 7},
	{"VIP_INVALID_QOS", vipl.ErrInvalidQoS, 8},
	{"VIP_INVALID_PTAG", vipl.ErrInvalidPtag, 9},
	{"VIP_INVALID_RDMAREAD", vipl.ErrInvalidRdmaRead, 10},

	// 9.10.2
	{"VIP_CONTROL_OP_SENDRECV", vipl.ControlOpSendRecv, 0x0000},
	{"VIP_CONTROL_OP_RDMAWRITE", vipl.ControlOpRdmaWrite, 0x0001},
	{"VIP_CONTROL_OP_RDMA_READ", vipl.ControlOpRdmaRead, 0x0002},
	{"VIP_CONTROL_IMMEDIATE", vipl.ControlImmediate, 0x0004},
	{"VIP_CONTROL_QFENCE", vipl.ControlQFence, 0x0008},
	{"VIP_STATUS_DONE", vipl.StatusDone, 0x00000001},
	{"VIP_STATUS_FORMAT_ERROR", vipl.StatusFormatError, 0x00000002},
	{"VIP_STATUS_PROTECTION_ERROR", vipl.StatusProtectionError, 0x00000004},
	{"VIP_STATUS_LENGTH_ERROR", vipl.StatusLengthError, 0x00000008},
	{"VIP_STATUS_PARTIAL_ERROR", vipl.StatusPartialError, 0x00000010},
	{"VIP_STATUS_DESC_FLUSHED_ERROR", vipl.StatusDescFlushedError, 0x00000020},
	{"VIP_STATUS_TRANSPORT_ERROR", vipl.StatusTransportError, 0x00000040},
	{"VIP_STATUS_RDMA_PROT_ERROR", vipl.StatusRdmaProtError, 0x00000080},
	{"VIP_STATUS_REMOTE_DESC_ERROR", vipl.StatusRemoteDescError, 0x00000100},
	{"VIP_STATUS_ERROR_MASK", vipl.StatusErrorMask, 0x000001FE},
	{"VIP_STATUS_OP_SEND", vipl.StatusOpSend, 0x00000000},
	{"VIP_STATUS_OP_RECEIVE", vipl.StatusOpReceive, 0x00010000},
	{"VIP_STATUS_OP_RDMA_WRITE", vipl.StatusOpRdmaWrite, 0x00020000},
	{"VIP_STATUS_OP_REMOTE_RDMA_WRITE", vipl.StatusOpRemoteRdmaWrite, 0x00030000},
	{"VIP_STATUS_OP_RDMA_READ", vipl.StatusOpRdmaRead, 0x00040000},
	{"VIP_STATUS_OP_MASK", vipl.StatusOpMask, 0x00070000},
	{"VIP_STATUS_IMMEDIATE", vipl.StatusImmediate, 0x00080000},

	// 9.10.3
	{"VIP_RESOURCE_NIC", vipl.ResourceNic, 0},
	{"VIP_RESOURCE_VI", vipl.ResourceVi, 1},
	{"VIP_RESOURCE_CQ", vipl.ResourceCQ, 2},
	{"VIP_RESOURCE_DESCRIPTOR", vipl.ResourceDescriptor, 3},
	{"VIP_ERROR_POST_DESC", vipl.ErrorPostDesc, 0},
	{"VIP_ERROR_CONN_LOST", vipl.ErrorConnLost, 1},
	{"VIP_ERROR_RECVQ_EMPTY", vipl.ErrorRecvQEmpty, 2},
	{"VIP_ERROR_VI_OVERRUN", vipl.ErrorViOverrun, 3},
	{"VIP_ERROR_RDMAW_PROT", vipl.ErrorRdmaWProt, 4},
	{"VIP_ERROR_RDMAW_DATA", vipl.ErrorRdmaWData, 5},
	{"VIP_ERROR_RDMAW_ABORT", vipl.ErrorRdmaWAbort, 6},
	{"VIP_ERROR_RDMAW_PROT, the second", vipl.ErrorRdmaRProt, 7}, // 9.9.1: RDMA Read Protection Error
	{"VIP_ERROR_COMP_PROT", vipl.ErrorCompProt, 8},

	// 9.10.5, 9.10.7
	{"VIP_SERVICE_UNRELIABLE", vipl.ServiceUnreliable, 0},
	{"VIP_SERVICE_RELIABLE_DELIVERY", vipl.ServiceReliableDelivery, 1},
	{"VIP_SERVICE_RELIABLE_RECEPTION", vipl.ServiceReliableReception, 2},
	{"VIP_STATE_IDLE", vipl.StateIdle, 0},
	{"VIP_STATE_CONNECTED", vipl.StateConnected, 1},
	{"VIP_STATE_CONNECT_PENDING", vipl.StateConnectPending, 2},
	{"VIP_STATE_ERROR", vipl.StateError, 3},

	// 9.4.1
	{"VIP_INFINITE", vipl.Infinite, 1<<32 - 1},
}

func TestValuesOfAppendixA(t *testing.T) {
	require.Len(t, values, 11+5+17+4+9+3+4+1)
	for _, v := range values {
		assert.Equal(t, v.want, reflect.ValueOf(v.got).Convert(reflect.TypeFor[uint64]()).Uint(), v.name)
	}
}

// structures are those of 9.10, field by field in their order. A field that a Go slice's
// length is in place of is named by what has it. Extensions are at the end.
var structures = []struct {
	name   string
	typ    reflect.Type
	fields string
	more   string
}{
	{"VIP_CONTROL_SEGMENT", reflect.TypeFor[vipl.ControlSegment](),
		"Next NextHandle SegCount Control Reserved ImmediateData Length Status", ""},
	{"VIP_ADDRESS_SEGMENT", reflect.TypeFor[vipl.AddressSegment](), "Data Handle Reserved", ""},
	{"VIP_DATA_SEGMENT", reflect.TypeFor[vipl.DataSegment](), "Data Handle Length", ""},
	{"VIP_DESCRIPTOR", reflect.TypeFor[vipl.Descriptor](), "Control Address Data", ""}, // 10.1, the three segments
	{"VIP_ERROR_DESCRIPTOR", reflect.TypeFor[vipl.ErrorDescriptor](),
		"NicHandle ViHandle CQHandle DescriptorPtr OpCode ResourceCode ErrorCode", "LocalAddr RemoteAddr Err"},
	{"VIP_NIC_ATTRIBUTES", reflect.TypeFor[vipl.NicAttributes](),
		"Name HardwareVersion ProviderVersion NicAddressLen LocalNicAddress ThreadSafe MaxDiscriminatorLen " +
			"MaxRegisterBytes MaxRegisterRegions MaxRegisterBlockBytes MaxVI MaxDescriptorsPerQueue MaxSegmentsPerDesc " +
			"MaxCQ MaxCQEntries MaxTransferSize NativeMTU MaxPtags", "RDMAReadSupport"},
	{"VIP_VI_ATTRIBUTES", reflect.TypeFor[vipl.ViAttributes](),
		"ReliabilityLevel MaxTransferSize QoS Ptag EnableRdmaWrite EnableRdmaRead", "FlowControl CRC"},
	{"VIP_MEM_ATTRIBUTES", reflect.TypeFor[vipl.MemAttributes](), "Ptag EnableRdmaWrite EnableRdmaRead", ""},
	// HostAddressLen and DiscriminatorLen are the lengths of the two parts of HostAddress.
	{"VIP_NET_ADDRESS", reflect.TypeFor[vipl.NetAddress](), "HostAddress Discriminator", ""},
}

func TestStructuresOfAppendixA(t *testing.T) {
	for _, s := range structures {
		var fields []string
		for i := range s.typ.NumField() {
			fields = append(fields, s.typ.Field(i).Name)
		}
		assert.Equal(t, strings.Fields(s.fields+" "+s.more), fields, s.name)
	}
}

// TestSegmentSizes: the fields have the widths of appendix B, so a Control Segment has 32
// octets and the others 16.
func TestSegmentSizes(t *testing.T) {
	require.EqualValues(t, 32, reflect.TypeFor[vipl.ControlSegment]().Size())
	require.EqualValues(t, 16, reflect.TypeFor[vipl.AddressSegment]().Size())
	require.EqualValues(t, 16, reflect.TypeFor[vipl.DataSegment]().Size())
}

// TestTypesOfAppendixA: the remaining types of the appendix.
func TestTypesOfAppendixA(t *testing.T) {
	for name, typ := range map[string]reflect.Type{
		"VIP_RETURN": reflect.TypeFor[vipl.Return](), "VIP_PVOID64": reflect.TypeFor[vipl.Address](),
		"VIP_MEM_HANDLE": reflect.TypeFor[vipl.MemHandle](), "VIP_PROTECTION_HANDLE": reflect.TypeFor[vipl.ProtectionHandle](),
		"VIP_QOS": reflect.TypeFor[vipl.QoS](), "VIP_RELIABILITY_LEVEL": reflect.TypeFor[vipl.ReliabilityLevel](),
		"VIP_VI_STATE": reflect.TypeFor[vipl.ViState](), "VIP_RESOURCE_CODE": reflect.TypeFor[vipl.ResourceCode](),
		"VIP_ERROR_CODE": reflect.TypeFor[vipl.ErrorCode](),
	} {
		require.NotEmpty(t, typ.Name(), name)
	}
	require.Equal(t, "CQ", reflect.TypeFor[vipl.CQ]().Name())
}
