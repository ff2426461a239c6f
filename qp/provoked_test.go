package qp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ddp"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// Provocations that need a hand inside.

// receivedTerminate is a Terminate that comes in while a Read and a Send behind
// its fence are outstanding. None is sent back (verbs draft 6.2.2.3).
type receivedTerminate struct {
	name    string
	payload []byte
	read    wr.Status // of the Read
}

func terminates() []receivedTerminate {
	request := ddp.AppendUntagged(nil, true, 0x41, 0, ddp.QNReadRequest, 1, 0)
	whole := rdmap.TerminateHeader{
		Code: rdmap.CodeProtSTag, SegmentLength: 46, DDPHeader: request, ReadRequest: make([]byte, 28),
	}
	other := whole
	other.DDPHeader = ddp.AppendUntagged(nil, true, 0x41, 0, ddp.QNReadRequest, 9, 0)
	send := rdmap.TerminateHeader{
		Code: rdmap.TermCode(ddp.CodeNoBuffer), SegmentLength: 18,
		DDPHeader: ddp.AppendUntagged(nil, true, 0x43, 0, ddp.QNSend, 1, 0),
	}
	return []receivedTerminate{
		{"the Read's headers", whole.Append(nil), wr.StatusRemoteTermination},
		{"no headers", []byte{0x20, 0x02, 0, 0}, wr.StatusFlushed},
		{"headers of no Read here", other.Append(nil), wr.StatusFlushed},
		{"headers of a Send", send.Append(nil), wr.StatusFlushed},
		{"headers cut short", whole.Append(nil)[:20], wr.StatusFlushed},
		{"only the length", []byte{0x12, 0x05, 0x80, 0, 0, 18}, wr.StatusFlushed},
		// Layer and type, and the bits of M and D, in siw's places.
		{"siw's layout", append([]byte{0x21, 0x05, 0x03, 0, 0, 0}, make([]byte, 18)...), wr.StatusFlushed},
		{"an undefined one", []byte{0xFF, 0xFF, 0x1F, 0xFF}, wr.StatusFlushed},
	}
}

func (c receivedTerminate) run(t *testing.T) {
	r := newRig(t, setup{})
	r.arrange(false)
	r.send(rawpeer.Segment{Op: rdmap.Terminate, QN: 2, MSN: 1, Payload: c.payload}.Octets())
	r.requireEnd(rawpeer.FIN)
	require.Equal(t, wr.StateTerminate, r.q.State())
	require.NoError(t, r.peer.Close())
	r.over()
	got := r.q.Query()
	require.Equal(t, wr.StateError, got.State)
	require.NotNil(t, got.Terminate)
	assert.False(t, got.Terminate.Sent)
	assert.Equal(t, c.payload, got.Terminate.Raw)
	require.NotEmpty(t, r.events.query)
	assert.NotNil(t, r.events.query[0].Terminate, "it can be queried when the event comes")
	r.requireEvents(wr.EventTerminateReceived)
	r.requireReason("Terminate: " + c.name)
	assert.Equal(t, []comp{{10, c.read, 0}, {11, wr.StatusFlushed, 0}}, r.all(r.scq))
	assert.Equal(t, flushed(1, 2), r.all(r.rcq))
	r.requireMemory()
	r.requireReusable()
}

// peerClosesWithReadsToAnswer is the other half of "work left": the IRRQ.
func peerClosesWithReadsToAnswer(t *testing.T) {
	r := newRig(t, setup{})
	r.arrange(true)
	r.s.tx.mu.Lock() // the transmit side answers nothing
	r.send(goodRead(1)(r))
	require.NoError(t, r.peer.CloseWrite())
	<-r.s.stop
	r.s.tx.mu.Unlock()
	require.Equal(t, terminate(0x0207, echoNone, nil), r.next())
	r.requireEnd(rawpeer.FIN)
	r.requireSettled(wr.StateError, wr.EventBadLLPClose)
}

// tooManyReads has one Read Request more come than IRD allows to wait.
func tooManyReads(t *testing.T) {
	r := newRig(t, setup{ird: 2})
	r.arrange(false)
	r.s.tx.mu.Lock()
	bad := goodRead(3)(r)
	r.send(goodRead(1)(r), goodRead(2)(r), bad)
	<-r.s.stop
	r.s.tx.mu.Unlock()
	require.Equal(t, terminate(0x1202, echoDDP, bad), r.next())
	r.requireEnd(rawpeer.FIN)
	require.NoError(t, r.peer.Close())
	r.requireSettled(wr.StateError, wr.EventIRRQTooMany)
	assert.Equal(t, faultReadTooMany, r.s.cause.fault)
	r.requireReusable()
}

// closingWithinAnFPDU: the peer has begun an FPDU when this side closes, which is
// incoming data (verbs draft 6.2.5). No LLP Close begins.
func closingWithinAnFPDU(t *testing.T) {
	r := newRig(t, setup{})
	b := r.peer.Frame(readRequest(1, 0, 0, 0).Octets())
	require.NoError(t, r.peer.Raw(append(b, 0, 18, 0x41)))
	require.Equal(t, rawpeer.ReadResponse(0x5151, 0x6262, nil).Octets(), r.next())
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateClosing}))
	r.requireEnd(rawpeer.Reset)
	r.requireSettled(wr.StateError, wr.EventBadClose)
}

// failInTheMiddle of a Send: it is the request that was processed. The peer does
// not read, so the LLP fails too, which is told (RV-6.2.3-M15).
func failInTheMiddle(t *testing.T) {
	r := newIdleRig(t, setup{closeTimeout: 50 * time.Millisecond, crc: true})
	big := r.big(32 << 20)
	r.connectNarrow()
	r.postSend(wr.Request{ID: 1, SGL: []wr.SGE{big}}, wr.Request{ID: 2})
	r.stuck()
	r.q.Fail()
	r.over()
	require.Equal(t, []comp{{1, wr.StatusLocalQPCatastrophic, 0}, {2, wr.StatusFlushed, 0}}, r.all(r.scq))
	r.requireEvents(wr.EventBadClose)
	r.requireReusable()
}

func sendCQFull(t *testing.T) {
	cqFull(t, faultSQCompletion, wr.EventCQSQOverflow, func(r *rig) {
		r.postSend(wr.Request{ID: 1}, wr.Request{ID: 2}, wr.Request{ID: 3})
		r.next()
		r.next()
		r.next()
	})
}

func recvCQFull(t *testing.T) {
	cqFull(t, faultRQCompletion, wr.EventCQRQError, func(r *rig) {
		r.postRecv(wr.Recv{ID: 1}, wr.Recv{ID: 2}, wr.Recv{ID: 3})
		r.send(rawpeer.Send(1, nil).Octets(), rawpeer.Send(2, nil).Octets(), rawpeer.Send(3, nil).Octets())
	})
}

// cqFull fills a CQ: the queue pair that finds no room ends, another one on the
// same CQs goes on when there is room again (verbs draft 8.3.3).
func cqFull(t *testing.T, f streamFault, event wr.EventID, fill func(*rig)) {
	r := newRig(t, setup{cqe: 2})
	other := newIdleRig(t, setup{})
	other.q = New(Config{
		ID: ownQP, PD: ownPD, STags: other.tab, SendCQ: r.scq, RecvCQ: r.rcq,
		SendDepth: 1, RecvDepth: 1, SendSGE: 1, RecvSGE: 1, Events: other.event,
	})
	other.connect()
	fill(r)
	require.Equal(t, terminate(0x0207, echoNone, nil), r.next())
	require.NoError(t, r.peer.Close())
	r.requireSettled(wr.StateError, event)
	assert.Equal(t, f, r.s.cause.fault)
	assert.Equal(t, []comp{{1, 0, 0}, {2, 0, 0}}, append(r.all(r.scq), r.all(r.rcq)...))

	assert.Equal(t, wr.StateRTS, other.q.State())
	other.postSend(wr.Request{ID: 50})
	other.postRecv(wr.Recv{ID: 51})
	other.send(rawpeer.Send(1, nil).Octets())
	assert.Equal(t, []comp{{50, 0, 0}}, other.wait(r.scq, 1))
	assert.Equal(t, []comp{{51, 0, 0}}, other.wait(r.rcq, 1))
	other.requireEvents()
}
