package perf

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/softrnic/softrnic/cmd/rnic/internal/cli"
	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/verbs"
)

// perfRun is one measurement, over a connection of its own. The client sends
// it as private data; the server answers with the address of its memory.
type perfRun struct {
	Op      string                 `json:"op"` // send, write, write-imm, read or atomic
	Latency bool                   `json:"latency"`
	Size    int                    `json:"size"`  // octets a message
	Depth   int                    `json:"depth"` // messages at once
	CRC     bool                   `json:"crc"`
	Event   bool                   `json:"event"`
	Memory  *endpoint.RemoteBuffer `json:"memory,omitempty"` // the client's
	// Duration is how long the client will measure, in nanoseconds; 0, of a
	// client that does not say, stands for the longest.
	Duration time.Duration `json:"duration,omitempty"`
}

// The ranges of a run.
const (
	maxPerfSize  = 64 << 20
	maxPerfDepth = 8192

	maxPerfDuration = time.Hour
)

// atomicSize is how many octets an Atomic Operation is about.
const atomicSize = 8

// latencyDepth is the queue depth of a latency run, which has one message on
// its way; unsignaled ones leave their slots a little later. Deeper queues only take
// more of the processor's cache.
const latencyDepth = 32

// signalEvery is how many messages share one completion on the sending side.
const signalEvery = 64

// parsePerfRun reads and checks the run of a client.
func parsePerfRun(privateData []byte) (perfRun, error) {
	var r perfRun
	if err := json.Unmarshal(privateData, &r); err != nil {
		return r, fmt.Errorf("private data is not that of rnic perf")
	}
	if _, ok := perfOps[r.Op]; !ok {
		return r, fmt.Errorf("unknown operation %q", r.Op)
	}
	if r.Size < 1 || r.Size > maxPerfSize || r.Depth < 1 || r.Depth > maxPerfDepth {
		return r, fmt.Errorf("size %d or depth %d out of range", r.Size, r.Depth)
	}
	if r.op().IsAtomic() && r.Size != atomicSize {
		return r, fmt.Errorf("size %d of what is %d octets", r.Size, atomicSize)
	}
	if r.Duration < 0 || r.Duration > maxPerfDuration {
		return r, fmt.Errorf("duration %v out of range", r.Duration)
	}
	r.Duration = cmp.Or(r.Duration, maxPerfDuration)
	if r.Latency && r.op().IsWrite() && r.Memory == nil {
		return r, fmt.Errorf("no memory given for the answer")
	}
	return r, nil
}

// limits are those of an end with these queues.
func (r perfRun) limits(sends, recvs int, f *cli.ConnFlags) endpoint.Limits {
	return endpoint.Limits{SendDepth: sends, RecvDepth: recvs, IRD: f.IRD, ORD: f.ORD, Extensions: r.op().IsExtension()}
}

// need is how much memory the server needs for the run, in octets: for messages, and about 512 for each element of
// its queues.
func (r perfRun) need(l endpoint.Limits) uint64 {
	return uint64(perfMemorySize(r.Size)) + 512*uint64(l.SendDepth+l.RecvDepth)
}

// perfOps are the operations that can be measured.
var perfOps = map[string]verbs.Op{
	"send":      verbs.OpSend,
	"write":     verbs.OpWrite,
	"write-imm": verbs.OpWriteImmediate,
	"read":      verbs.OpRead,
	"atomic":    verbs.OpFetchAdd,
}

// slowest is how many octets a second arrive at least of what a client has posted when its time is over.
const slowest = 64 << 20

// longest is how long the run may take from its connection on, with idle for its beginning and for its end.
func (r perfRun) longest(idle time.Duration) time.Duration {
	posted := time.Duration(r.Depth) * time.Duration(r.Size) // octets
	return r.Duration + 2*idle + posted/slowest*time.Second
}

func (r perfRun) op() verbs.Op { return perfOps[r.Op] }

// takesRecv reports whether each message takes a Receive of the server.
func (r perfRun) takesRecv() bool { return r.op() == verbs.OpSend || r.op().IsImmediate() }

func (r perfRun) waiting() endpoint.Waiting {
	if r.Event {
		return endpoint.WaitSleep
	}
	return endpoint.WaitSpin
}

// answering is how the server waits. It polls as long as a client that polls is
// connected: it sees nothing of Reads and Writes, but answers and places them.
func (r perfRun) answering() endpoint.Waiting {
	if r.Event {
		return endpoint.WaitSleep
	}
	return endpoint.WaitPoll
}

// signalInterval leaves at least two signaled requests in a full queue.
func (r perfRun) signalInterval() int { return max(1, min(signalEvery, r.Depth/2)) }

// creditInterval is after how many messages the receiver of a Send stream sends a
// credit: it has posted as many Receives again.
func (r perfRun) creditInterval() int { return max(1, r.Depth/4) }

// perfAnswer are the counts of the receiving end of a stream. It travels as the
// contents of a Send.
type perfAnswer struct {
	Messages uint64  `json:"messages"` // 0: Writes, which only their sender can count
	Seconds  float64 `json:"seconds"`
	Error    string  `json:"error,omitempty"`
}
