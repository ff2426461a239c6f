package vipl

import "github.com/softrnic/softrnic/internal/vitcp/endpoint"

// link is the connection of a VI: what the endpoint calls. It has the fields that concern
// one connection only, so that nothing of an earlier one reaches a later (VA-4.2-M1).
type link struct {
	vi       *Vi // constant, as the next two
	endpoint *endpoint.Endpoint
	reliable bool
	// local and peer name the two VIs.
	local, peer *NetAddress

	// Used by the endpoint's calls only, which are one at a time.

	told ErrorCode // by the last Event, else ErrorConnLost
	op   Status
}

// SendDone completes the first Descriptor of the Send Queue that is not.
func (l *link) SendDone(r *endpoint.Result) { l.done(&l.vi.send, r) }

// ReceiveDone completes the first of the Receive Queue.
func (l *link) ReceiveDone(r *endpoint.Result) { l.done(&l.vi.recv, r) }

func (l *link) done(q *workQueue, r *endpoint.Result) {
	// A flaw is the bit that it is in the status, an operation its number there.
	o := outcome{status: Status(r.Flaws) | Status(r.Op)<<16, length: r.Length}
	if r.HasImmediate && q.recv {
		o.status |= StatusImmediate
		o.immediate = r.Immediate
	}
	s := slot{region: r.Context.(*descRegion)} // feed put it there
	s.d = &s.region.keep[r.Index]
	v := l.vi
	v.mu.Lock()
	defer v.mu.Unlock()
	q.carried--
	q.push(s)
	if !q.complete(o) { // 3.2.1, last paragraph
		v.fault(ErrorCompProt, o.status.Op(), s.d)
	}
}

// asyncErrors are what the endpoint's events are to the error handler.
var asyncErrors = [...]struct {
	code ErrorCode
	op   Status
}{
	endpoint.EventReceiveQueueEmpty: {ErrorRecvQEmpty, StatusOpReceive},
	endpoint.EventWriteProtection:   {ErrorRdmaWProt, StatusOpRemoteRdmaWrite},
	endpoint.EventWriteData:         {ErrorRdmaWData, StatusOpRemoteRdmaWrite},
	endpoint.EventWriteAbort:        {ErrorRdmaWAbort, StatusOpRemoteRdmaWrite},
	endpoint.EventReadProtection:    {ErrorRdmaRProt, StatusOpRdmaRead},
	endpoint.EventGuessing:          {ErrorRdmaWProt, StatusOpRemoteRdmaWrite},
}

// Event keeps what no Descriptor tells for the error handler, who hears of it as the
// reason why the connection broke: Ended follows at the reliable levels. At Unreliable
// Delivery nobody is told (VI Architecture 7.1); it is counted. But that somebody tries
// memory handles is told.
func (l *link) Event(e endpoint.Event) {
	a, n := asyncErrors[e], l.vi.nic
	switch {
	case l.reliable:
		l.told, l.op = a.code, a.op
		return
	case e == endpoint.EventGuessing:
		n.report(ErrorDescriptor{ViHandle: l.vi, LocalAddr: l.local, RemoteAddr: l.peer, OpCode: a.op, ResourceCode: ResourceVi, ErrorCode: a.code})
		return
	case e == endpoint.EventWriteProtection:
		n.misdirected.Add(1)
	}
	n.untold.Add(1)
}

// Ended takes the VI into StateError, unless it was this end that closed.
func (l *link) Ended(e *endpoint.EndError) {
	if e.Cause == endpoint.CauseClosed {
		return
	}
	if l.told == ErrorConnLost { // no Event: a Descriptor tells it, and this of which operation
		l.op = Status(e.Op) << 16
	}
	v := l.vi
	v.mu.Lock()
	defer v.mu.Unlock()
	event := EventBreaking
	if lost(e.Cause) {
		event = EventConnLost
	}
	d := ErrorDescriptor{
		OpCode: l.op, ResourceCode: ResourceVi, ErrorCode: l.told, LocalAddr: l.local, RemoteAddr: l.peer, Err: e,
	}
	if l.told == ErrorRecvQEmpty {
		d.CQHandle = v.recv.cq
	}
	v.happens(event, d)
}

// lost reports whether a connection ended for another reason than an error of a transfer.
func lost(c endpoint.Cause) bool {
	return c == endpoint.CausePeerClosed || c == endpoint.CauseLost || c == endpoint.CauseMalformed
}

// fault is an error that no status and no result tells: at the reliable levels it breaks
// the connection (VI Architecture 7.2, 7.3). The caller has mu.
func (v *Vi) fault(code ErrorCode, op Status, d *Descriptor) {
	event := EventReported
	if v.attributes.ReliabilityLevel.reliable() {
		event = EventBreaking
	}
	e := ErrorDescriptor{DescriptorPtr: d, OpCode: op, ResourceCode: ResourceDescriptor, ErrorCode: code}
	if code == ErrorViOverrun {
		e.ResourceCode = ResourceVi
	}
	if e.CQHandle = v.send.cq; op == StatusOpReceive {
		e.CQHandle = v.recv.cq
	}
	if v.link != nil {
		e.LocalAddr, e.RemoteAddr = v.link.local, v.link.peer
	}
	v.happens(event, e)
}

// operation is the completed operation that a queue is known by: its Descriptors' own may
// differ.
func (v *Vi) operation(recv bool) Status {
	if recv {
		return StatusOpReceive
	}
	return StatusOpSend
}

// maxDeferred bounds what is kept for the next attempt to connect.
const maxDeferred = 16

// happens does what the table says about an error. What is posted is flushed by the
// endpoint, which has ended or is told to. The caller has mu.
func (v *Vi) happens(event Event, e ErrorDescriptor) {
	e.ViHandle = v
	t := On(v.state, event)
	v.state = t.Next
	if t.Actions&ActClose != 0 {
		v.link.endpoint.Abort()
	}
	if t.Actions&ActReport != 0 {
		v.nic.report(e)
	}
	if t.Actions&ActDefer != 0 && len(v.deferred) < maxDeferred {
		v.deferred = append(v.deferred, e)
	}
}
