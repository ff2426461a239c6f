package perf

import (
	"context"
	"fmt"

	"github.com/softrnic/softrnic/cmd/rnic/internal/endpoint"
	"github.com/softrnic/softrnic/cmd/rnic/internal/pattern"
	"github.com/softrnic/softrnic/verbs"
)

// perfEnd is one end of a run: the client, which measures, or the server.
type perfEnd struct {
	*endpoint.Endpoint
	perfMemory
	perfRun
	remote endpoint.RemoteBuffer // the peer's memory, laid out as this end's
}

// newPerfEnd registers the memory of a run. It aborts the endpoint if it fails.
func newPerfEnd(ep *endpoint.Endpoint, run perfRun) (e perfEnd, err error) {
	e = perfEnd{Endpoint: ep, perfRun: run}
	if e.perfMemory, err = newPerfMemory(ep, run); err != nil {
		_ = ep.Abort()
	}
	return e, err
}

// request is a message from source, or of a Read to sink.
func (e *perfEnd) request(source, sink int) verbs.Request {
	req := verbs.Request{Op: e.op()}
	switch req.Op {
	case verbs.OpRead:
		req.Local = e.mr.SGE(sink, e.Size)
		req.Remote = e.remote.At(source)
	case verbs.OpFetchAdd:
		req.Remote, req.Atomic = e.remote.At(e.counter()), verbs.FetchAdd(1)
	case verbs.OpWrite, verbs.OpWriteImmediate:
		req.Remote = e.remote.At(sink)
		fallthrough
	default:
		req.SGL = e.mr.SGL(source, e.Size)
	}
	return req
}

// postMessage posts a message of a latency run: a Send, a Write with Immediate, or a Write
// and the empty Send after it. Every 64th Send is signaled.
func (e *perfEnd) postMessage(data, empty *[1]verbs.Request, count int) error {
	signal := data
	if data[0].Op == verbs.OpWrite {
		data[0].Flags, signal = verbs.Unsignaled, empty
	}
	signal[0].Flags = verbs.Unsignaled
	if count%signalEvery == 0 {
		signal[0].Flags = 0
	}
	if err := e.PostSend(data[:]...); err != nil {
		return err
	}
	if data[0].Op != verbs.OpWrite {
		return nil
	}
	return e.PostSend(empty[:]...)
}

// awaitRecv waits for a completed Receive, past completions of Sends.
func (e *perfEnd) awaitRecv(ctx context.Context) error {
	for {
		wc, err := e.Next(ctx)
		if err != nil {
			return err
		}
		switch wc.Op {
		case verbs.OpRecv:
			return nil
		case verbs.OpSend, verbs.OpWriteImmediate:
		default:
			return fmt.Errorf("unexpected completion of %v", wc.Op)
		}
	}
}

// perfMemory is the memory of one side of a run. Messages start with the first
// pattern; the last one carries the last pattern. The first message of a stream
// has a place of its own to arrive in, so that it can be looked at when the
// clock has stopped. All others share one, as in other tools of this kind:
// what is measured is the connection, not the cache.
//
//	source first | source last | sink first | sink rest | control messages
type perfMemory struct {
	buf  []byte
	mr   *verbs.MR
	size int // octets of a message
}

const (
	firstPattern = pattern.Pattern(1)
	lastPattern  = pattern.Pattern(2)

	controlSize  = 256 // octets of a control message at most
	controlCount = 32  // Receives for control messages
)

// perfMemorySize is how many octets the memory of a side takes.
func perfMemorySize(size int) int { return 4*size + controlSize*controlCount }

func newPerfMemory(e *endpoint.Endpoint, run perfRun) (perfMemory, error) {
	size, access := run.Size, endpoint.AllAccess
	if run.op().IsAtomic() {
		access |= verbs.RemoteAtomic
	}
	buf, mr, err := e.Register(perfMemorySize(size), access)
	if err != nil {
		return perfMemory{}, err
	}
	m := perfMemory{buf, mr, size}
	firstPattern.Fill(buf[m.sourceFirst():][:size], 0)
	lastPattern.Fill(buf[m.sourceLast():][:size], 0)
	return m, nil
}

// Offsets of the parts.
func (m *perfMemory) sourceFirst() int  { return 0 }
func (m *perfMemory) sourceLast() int   { return m.size }
func (m *perfMemory) sinkFirst() int    { return 2 * m.size }
func (m *perfMemory) sinkRest() int     { return 3 * m.size }
func (m *perfMemory) counter() int      { return m.sinkFirst() } // for Atomics; it begins with zero
func (m *perfMemory) control(i int) int { return 4*m.size + i*controlSize }

// verify checks that the message at off holds the pattern p.
func (m *perfMemory) verify(what string, off int, p pattern.Pattern) error {
	if i := p.Mismatch(m.buf[off:][:m.size], 0); i >= 0 {
		return fmt.Errorf("the %s message differs from what was sent at octet %d of %d", what, i, m.size)
	}
	return nil
}

// verifyStream checks the first and the last message of a stream.
func (m *perfMemory) verifyStream() error {
	if err := m.verify("first", m.sinkFirst(), firstPattern); err != nil {
		return err
	}
	return m.verify("last", m.sinkRest(), lastPattern)
}
