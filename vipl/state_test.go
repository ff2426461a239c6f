package vipl

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sentences are what chapter 5 says, each about one pair.
var sentences = []struct {
	section string
	state   ViState
	event   Event
	want    string
}{
	{"5.1", StateIdle, EventConnectRequest, "Pending Connect: connect"},
	{"5.1", StateIdle, EventConnectAccept, "Pending Connect: connect"},
	{"5.1", StateIdle, EventDestroyVi, "Idle: "},
	{"5.1", StateIdle, EventPostRecv, "Idle: enqueue"},
	{"5.1", StateIdle, EventPostSend, "Idle: enqueue, flush"},
	{"5.1", StateIdle, EventDisconnect, "Idle: flush"},
	{"5.1", StateIdle, EventBreaking, "Idle: report later"},
	{"9.8.2", StateIdle, EventSetViAttributes, "Idle: "},
	{"4.2", StateIdle, EventEstablished, "Idle: close"},
	{"4.2", StateIdle, EventConnectFailed, "Idle: "},
	{"4.2", StateIdle, EventReported, "Idle: "},
	{"4.2", StateIdle, EventConnLost, "Idle: "},

	{"5", StateConnectPending, EventConnectRequest, "vipl: invalid parameter"},
	{"5", StateConnectPending, EventConnectAccept, "vipl: invalid parameter"},
	{"5.1", StateConnectPending, EventDestroyVi, "vipl: insufficient resources, or in use"},
	{"9.8.2", StateConnectPending, EventSetViAttributes, "vipl: invalid parameter"},
	{"5.2", StateConnectPending, EventEstablished, "Connected: process"},
	{"5.2", StateConnectPending, EventConnectFailed, "Idle: "},
	{"5.2", StateConnectPending, EventDisconnect, "Idle: abandon the attempt, flush"},
	{"5.2", StateConnectPending, EventConnLost, "Error: abandon the attempt, flush, report"},
	{"5.2", StateConnectPending, EventPostRecv, "Pending Connect: enqueue"},
	{"5.2", StateConnectPending, EventPostSend, "Pending Connect: enqueue, flush"},
	{"2.5.1", StateConnectPending, EventReported, "Pending Connect: "},
	{"7.2", StateConnectPending, EventBreaking, "Pending Connect: report"},

	{"5", StateConnected, EventConnectRequest, "vipl: invalid parameter"},
	{"5", StateConnected, EventConnectAccept, "vipl: invalid parameter"},
	{"5.1", StateConnected, EventDestroyVi, "vipl: insufficient resources, or in use"},
	{"9.8.2", StateConnected, EventSetViAttributes, "vipl: invalid parameter"},
	{"5.3", StateConnected, EventDisconnect, "Idle: close, flush"},
	{"2.5.1", StateConnected, EventReported, "Connected: process"},
	{"2.5.2", StateConnected, EventBreaking, "Error: close, flush, report"},
	{"7", StateConnected, EventConnLost, "Error: close, flush, report"},
	{"5.3", StateConnected, EventPostSend, "Connected: enqueue, process"},
	{"5.3", StateConnected, EventPostRecv, "Connected: enqueue, process"},
	{"4.1", StateConnected, EventEstablished, "Connected: "},
	{"4.1", StateConnected, EventConnectFailed, "Connected: "},

	{"5", StateError, EventConnectRequest, "vipl: invalid parameter"},
	{"5", StateError, EventConnectAccept, "vipl: invalid parameter"},
	{"5.1", StateError, EventDestroyVi, "vipl: insufficient resources, or in use"},
	{"9.8.2", StateError, EventSetViAttributes, "vipl: invalid parameter"},
	{"5.4", StateError, EventDisconnect, "Idle: flush"},
	{"5.4", StateError, EventPostSend, "Error: enqueue, flush"},
	{"5.4", StateError, EventPostRecv, "Error: enqueue, flush"},
	{"4.2", StateError, EventEstablished, "Error: close"},
	{"4.2", StateError, EventConnectFailed, "Error: "},
	{"4.2", StateError, EventReported, "Error: "},
	{"4.2", StateError, EventBreaking, "Error: "},
	{"4.2", StateError, EventConnLost, "Error: "},
}

// TestEveryPair walks the whole table.
func TestEveryPair(t *testing.T) {
	said := make(map[[2]uint8]string)
	for _, s := range sentences {
		said[[2]uint8{uint8(s.state), uint8(s.event)}] = s.want
	}
	require.Len(t, said, int(numStates)*int(numEvents), "each pair once")
	for s := range numStates {
		for e := range numEvents {
			tr := On(s, e)
			got := fmt.Sprintf("%v: %v", tr.Next, tr.Actions)
			if tr.Code != Success {
				got = tr.Code.Error()
				assert.Zero(t, tr.Actions, "%v, %v: what is refused does nothing", s, e)
				assert.Equal(t, s, tr.Next, "%v, %v", s, e)
			}
			assert.Equal(t, said[[2]uint8{uint8(s), uint8(e)}], got, "%v, %v", s, e)
		}
	}
}

// TestEdges: figure 5 has these edges and no other.
func TestEdges(t *testing.T) {
	want := map[[2]ViState]bool{
		{StateIdle, StateConnectPending}:      true,
		{StateConnectPending, StateIdle}:      true,
		{StateConnectPending, StateConnected}: true,
		{StateConnectPending, StateError}:     true,
		{StateConnected, StateIdle}:           true,
		{StateConnected, StateError}:          true,
		{StateError, StateIdle}:               true,
	}
	got := make(map[[2]ViState]bool)
	for s := range numStates {
		for e := range numEvents {
			if next := On(s, e).Next; next != s {
				got[[2]ViState{s, next}] = true
			}
		}
	}
	require.Equal(t, want, got)
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		s    fmt.Stringer
		want string
	}{
		{StateIdle, "Idle"}, {StateConnected, "Connected"}, {StateConnectPending, "Pending Connect"}, {StateError, "Error"},
		{ViState(9), "ViState(9)"}, {EventConnLost, "connection lost"}, {Event(99), "Event(99)"},
		{ActConnect | ActDefer, "connect, report later"},
		{ServiceReliableReception, "Reliable Reception"}, {ReliabilityLevel(7), "ReliabilityLevel(7)"},
		{ResourceDescriptor, "Descriptor"}, {ResourceCode(8), "ResourceCode(8)"},
		{ErrorCompProt, "Completion Protection Error"}, {ErrorNoCRC, "Connected Without CRC"}, {ErrorCode(77), "ErrorCode(77)"},
		{StatusDone | StatusOpRdmaRead | StatusRdmaProtError, "RDMA Read, done, RDMA protection error"},
		{StatusOpReceive | StatusImmediate | StatusPartialError | 1<<31, "Receive, partial, immediate data, reserved 0x80000000"},
		{&ErrorDescriptor{ErrorCode: ErrorRecvQEmpty, ResourceCode: ResourceVi, OpCode: StatusOpReceive}, "Receive Queue Empty (VI, Receive)"},
	} {
		assert.Equal(t, c.want, c.s.String())
	}
	assert.Equal(t, "vipl: Return(99)", Return(99).Error())
}
