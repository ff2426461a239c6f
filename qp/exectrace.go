package qp

import (
	"context"
	"fmt"
	"runtime/trace"

	"github.com/softrnic/softrnic/internal/lockorder"
	"github.com/softrnic/softrnic/wr"
)

// spans is what a queue pair with Config.Trace shows in an execution trace (runtime/trace): a task for each request on the Send
// Queue, from its post to its completion, and regions of what goroutines do for the queue pair. Nothing is made while no such
// trace is recorded.
type spans struct {
	send, recv, transmit, receive string // names of regions

	mu    lockorder.Mutex[lockorder.Spans]
	tasks map[uint64]*trace.Task // by position in the Send Queue; guarded by mu
}

// newSpans makes those of a queue pair.
func newSpans(id wr.QPID) *spans {
	name := func(what string) string { return fmt.Sprintf("softrnic %s QP %d", what, id) }
	return &spans{
		send: name("PostSend"), recv: name("PostRecv"), transmit: name("transmit"), receive: name("receive"),
		tasks: map[uint64]*trace.Task{},
	}
}

// region begins one; the same goroutine ends it.
func region(name string) *trace.Region { return trace.StartRegion(context.Background(), name) }

// begin begins the task of the request that will be at pos.
func (s *spans) begin(pos uint64, op wr.Op) {
	if !trace.IsEnabled() {
		return
	}
	_, t := trace.NewTask(context.Background(), "softrnic "+op.String())
	s.mu.Lock()
	s.tasks[pos] = t
	s.mu.Unlock()
}

// end ends the task of the request at pos, if it has one.
func (s *spans) end(pos uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tasks[pos]; t != nil {
		t.End()
		delete(s.tasks, pos)
	}
}
