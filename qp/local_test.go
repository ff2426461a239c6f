package qp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/wr"
)

// ownError is a work request of this side that cannot be done.
type ownError struct {
	name   string
	set    func(*setup)
	send   func(*rig) wr.Request // nil: recv
	recv   func(*rig) []wr.SGE
	fault  streamFault
	status wr.Status
}

func sends(sgl func(*rig) []wr.SGE) func(*rig) wr.Request {
	return func(r *rig) wr.Request { return wr.Request{SGL: sgl(r)} }
}

func reads(local func(*rig) wr.SGE) func(*rig) wr.Request {
	return func(r *rig) wr.Request {
		return wr.Request{Op: wr.OpRead, Local: local(r), Remote: wr.Remote{STag: 5}}
	}
}

var ownErrors = []ownError{
	{name: "Send from no STag", send: sends(func(r *rig) []wr.SGE { return []wr.SGE{{STag: r.gone, Length: 1}} }), fault: faultSQSTag, status: wr.StatusInvalidSTag},
	{name: "Send from STag zero", send: sends(func(*rig) []wr.SGE { return []wr.SGE{{Length: 1}} }), fault: faultSQSTag, status: wr.StatusInvalidSTag},
	{name: "Send, second element wrong", send: sends(func(r *rig) []wr.SGE { return []wr.SGE{r.full.sge(0, 8), {STag: r.gone, Length: 1}} }), fault: faultSQSTag, status: wr.StatusInvalidSTag},
	{name: "Send from below", send: sends(func(r *rig) []wr.SGE { return []wr.SGE{{STag: r.full.stag, TO: r.full.base - 1, Length: 1}} }), fault: faultSQBounds, status: wr.StatusBaseBounds},
	{name: "Send one octet too much", send: sends(func(r *rig) []wr.SGE { return r.full.sgl(slabSize-1, 2) }), fault: faultSQBounds, status: wr.StatusBaseBounds},
	{name: "Send without local read right", send: sends(func(r *rig) []wr.SGE { return r.writable.sgl(0, 1) }), fault: faultSQAccess, status: wr.StatusAccess},
	{name: "Send from another PD", send: sends(func(r *rig) []wr.SGE { return r.foreign.sgl(0, 1) }), fault: faultSQPD, status: wr.StatusInvalidPD},
	{name: "Send that wraps", send: sends(func(r *rig) []wr.SGE { return []wr.SGE{{STag: r.full.stag, TO: top, Length: 2}} }), fault: faultSQWrap, status: wr.StatusWrap},
	{
		name: "Send of 2^32 octets",
		send: sends(func(r *rig) []wr.SGE {
			return []wr.SGE{{STag: r.full.stag, TO: r.full.base, Length: 1<<32 - 1}, r.full.sge(0, 1)}
		}),
		fault: faultSQLength, status: wr.StatusInvalidLength,
	},
	{
		name: "Write to STag zero",
		send: func(r *rig) wr.Request { return wr.Request{Op: wr.OpWrite, SGL: r.full.sgl(0, 1)} }, fault: faultSQSTag, status: wr.StatusInvalidSTag,
	},
	{
		name: "Write from no STag",
		send: func(r *rig) wr.Request {
			return wr.Request{Op: wr.OpWrite, SGL: []wr.SGE{{STag: r.gone, Length: 1}}, Remote: wr.Remote{STag: 5}}
		},
		fault: faultSQSTag, status: wr.StatusInvalidSTag,
	},
	{name: "Read to no STag", send: reads(func(r *rig) wr.SGE { return wr.SGE{STag: r.gone, Length: 1} }), fault: faultSQSTag, status: wr.StatusInvalidSTag},
	{name: "Read to STag zero", send: reads(func(*rig) wr.SGE { return wr.SGE{Length: 1} }), fault: faultSQSTag, status: wr.StatusInvalidSTag},
	{
		name: "Read, second sink wrong", set: func(c *setup) { c.config = func(c *Config) { c.ReadSGE = 2 } },
		send: func(r *rig) wr.Request {
			return wr.Request{Op: wr.OpRead, SGL: []wr.SGE{r.full.sge(0, 8), {STag: r.gone, Length: 1}}, Remote: wr.Remote{STag: 5}}
		},
		fault: faultSQSTag, status: wr.StatusInvalidSTag,
	},
	{
		name: "Read, second sink of STag zero", set: func(c *setup) { c.config = func(c *Config) { c.ReadSGE = 2 } },
		send: func(r *rig) wr.Request {
			return wr.Request{Op: wr.OpRead, SGL: []wr.SGE{r.full.sge(0, 8), {Length: 1}}, Remote: wr.Remote{STag: 5}}
		},
		fault: faultSQSTag, status: wr.StatusInvalidSTag,
	},
	{
		name: "Read from STag zero",
		send: func(r *rig) wr.Request { return wr.Request{Op: wr.OpRead, Local: r.full.sge(0, 1)} }, fault: faultSQSTag, status: wr.StatusInvalidSTag,
	},
	{name: "Read out of bounds", send: reads(func(r *rig) wr.SGE { return r.full.sge(slabSize-1, 2) }), fault: faultSQBounds, status: wr.StatusBaseBounds},
	{name: "Read to another PD", send: reads(func(r *rig) wr.SGE { return r.foreign.sge(0, 1) }), fault: faultSQPD, status: wr.StatusInvalidPD},
	{name: "Read with ORD 0", set: func(c *setup) { c.ord = -1 }, send: reads(func(r *rig) wr.SGE { return r.full.sge(0, 1) }), fault: faultZeroORD, status: wr.StatusZeroReadResources},
	{name: "empty Read with ORD 0", set: func(c *setup) { c.ord = -1 }, send: reads(func(*rig) wr.SGE { return wr.SGE{} }), fault: faultZeroORD, status: wr.StatusZeroReadResources},

	{name: "Receive to no STag", recv: func(r *rig) []wr.SGE { return []wr.SGE{{STag: r.gone, Length: 9}} }, fault: faultRQSTag, status: wr.StatusInvalidSTag},
	{name: "Receive out of bounds", recv: func(r *rig) []wr.SGE { return r.full.sgl(slabSize-1, 9) }, fault: faultRQBounds, status: wr.StatusBaseBounds},
	{name: "Receive without local write right", recv: func(r *rig) []wr.SGE { return r.readable.sgl(0, 9) }, fault: faultRQAccess, status: wr.StatusAccess},
	{name: "Receive to another PD", recv: func(r *rig) []wr.SGE { return r.foreign.sgl(0, 9) }, fault: faultRQPD, status: wr.StatusInvalidPD},
	{name: "Receive that wraps", recv: func(r *rig) []wr.SGE { return []wr.SGE{{STag: r.full.stag, TO: top - 2, Length: 9}} }, fault: faultRQWrap, status: wr.StatusWrap},
}

// run has a request before the one at fault, which succeeds, and one behind, which
// is flushed (verbs draft 8.3.2, figure 23).
func (e ownError) run(t *testing.T) {
	var c setup
	if e.set != nil {
		e.set(&c)
	}
	r := newRig(t, c)
	var wantSend, wantRecv []comp
	if e.send != nil {
		bad := e.send(r)
		bad.ID = 21
		r.postRecv(wr.Recv{ID: 1})
		r.postSend(wr.Request{ID: 20, SGL: r.full.sgl(0, 8)}, bad, wr.Request{ID: 22})
		require.Equal(t, rawpeer.Send(1, r.full.mem()[:8]).Octets(), r.next(), "what was posted before")
		wantSend = []comp{{20, wr.StatusSuccess, 0}, {21, e.status, 0}, {22, wr.StatusFlushed, 0}}
		wantRecv = flushed(1)
	} else {
		r.postRecv(wr.Recv{ID: 1}, wr.Recv{ID: 2, SGL: e.recv(r)}, wr.Recv{ID: 3})
		r.send(rawpeer.Send(1, nil).Octets(), rawpeer.Send(2, filled(9)).Octets())
		wantRecv = []comp{{1, wr.StatusSuccess, 0}, {2, e.status, 0}, {3, wr.StatusFlushed, 0}}
	}
	require.Equal(t, terminate(0, echoNone, nil), r.next())
	require.Equal(t, wr.StateTerminate, r.q.State())
	require.NoError(t, r.peer.Close())
	r.requireSettled(wr.StateError) // a completion tells (draft 6.2.3)
	assert.Equal(t, e.fault, r.s.cause.fault)
	r.requireReason(e.name)
	assert.Equal(t, wantSend, r.all(r.scq))
	assert.Equal(t, wantRecv, r.all(r.rcq))
	r.requireMemory()
	r.requireReusable()
}

// TestBatchGoesOutBeforeTerminate: what was framed before the fault, and not sent
// yet, goes out and completes as if there had been none.
func TestBatchGoesOutBeforeTerminate(t *testing.T) {
	r := newRig(t, setup{})
	r.s.tx.mu.Lock()
	r.postSend(wr.Request{ID: 1, SGL: r.full.sgl(0, 8)}, wr.Request{ID: 2, SGL: []wr.SGE{{STag: r.gone, Length: 1}}})
	_, filled := r.s.tx.fill()
	require.True(t, filled)
	r.s.tx.mu.Unlock()
	require.Equal(t, rawpeer.Send(1, r.full.mem()[:8]).Octets(), r.next())
	require.Equal(t, terminate(0, echoNone, nil), r.next())
	require.NoError(t, r.peer.Close())
	r.over()
	require.Equal(t, []comp{{1, wr.StatusSuccess, 0}, {2, wr.StatusInvalidSTag, 0}}, r.all(r.scq))
}

// TestEmptyIsNotLookedAt sends, writes, reads and receives nothing with STags
// that mean nothing (verbs draft 8.1.3.2, RFC 5040 5.2.1).
func TestEmptyIsNotLookedAt(t *testing.T) {
	r := newRig(t, setup{})
	junk := []wr.SGE{{STag: r.gone, TO: top}, {STag: 1}}
	r.postRecv(wr.Recv{ID: 1, SGL: junk})
	r.postSend(
		wr.Request{ID: 10, SGL: junk},
		wr.Request{ID: 11, Op: wr.OpWrite, SGL: junk},
		wr.Request{ID: 12, Op: wr.OpRead, Local: wr.SGE{STag: r.gone, TO: top}},
		wr.Request{ID: 13},
	)
	require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
	w := rawpeer.Write(0, 0, nil).Octets()
	require.Equal(t, w, r.next())
	req := r.next()
	require.Len(t, req, 18+28)
	require.Equal(t, rawpeer.Send(2, nil).Octets(), r.next())
	require.Equal(t, []comp{{10, 0, 0}, {11, 0, 0}}, r.wait(r.scq, 2))

	r.send(
		rawpeer.ReadResponse(uint32(r.gone), top, nil).Octets(),
		rawpeer.Send(1, nil).Octets(),
		readRequest(1, 0, r.gone, top).Octets(),
		rawpeer.Write(uint32(r.gone), top, nil).Octets(),
	)
	require.Equal(t, []comp{{12, 0, 0}, {13, 0, 0}}, r.wait(r.scq, 2))
	require.Equal(t, []comp{{1, 0, 0}}, r.wait(r.rcq, 1))
	require.Equal(t, rawpeer.ReadResponse(0x5151, 0x6262, nil).Octets(), r.next())
	assert.Equal(t, wr.StateRTS, r.q.State())
	r.requireMemory()
}

// TestSlots follows the slots of both queues (verbs draft 8.2.1): a signaled
// request's is free when its completion is reaped, an unsignaled one's when it
// has completed.
func TestSlots(t *testing.T) {
	r := newRig(t, setup{depth: 4})
	for i := range 4 {
		r.postSend(wr.Request{ID: uint64(i)})
	}
	for range 4 {
		r.next()
	}
	require.Eventually(t, func() bool { return r.scq.Len() == 4 }, patience, 1e6)
	_, err := r.q.PostSend(wr.Request{})
	require.ErrorIs(t, err, wr.ErrQueueFull, "nothing is reaped yet")
	require.Equal(t, []comp{{0, 0, 0}, {1, 0, 0}}, r.wait(r.scq, 2))
	n, err := r.q.PostSend(wr.Request{ID: 4, Flags: wr.Unsignaled}, wr.Request{ID: 5, Flags: wr.Unsignaled}, wr.Request{ID: 6})
	require.ErrorIs(t, err, wr.ErrQueueFull)
	require.Equal(t, 2, n, "two were reaped")
	r.next()
	r.next()
	_, err = r.q.PostSend(wr.Request{})
	require.ErrorIs(t, err, wr.ErrQueueFull, "2 is not reaped, 4 is behind it")
	require.Equal(t, []comp{{2, 0, 0}, {3, 0, 0}}, r.wait(r.scq, 2))
	require.Eventually(t, r.q.sq.empty, patience, 1e6)
	r.postSend(wr.Request{ID: 7}, wr.Request{ID: 8}, wr.Request{ID: 9}, wr.Request{ID: 10})
	require.Len(t, r.wait(r.scq, 4), 4)

	r.postRecv(make([]wr.Recv, 4)...)
	_, err = r.q.PostRecv(wr.Recv{})
	require.ErrorIs(t, err, wr.ErrQueueFull)
	r.send(rawpeer.Send(1, nil).Octets())
	require.Eventually(t, func() bool { return r.rcq.Len() == 1 }, patience, 1e6)
	_, err = r.q.PostRecv(wr.Recv{})
	require.ErrorIs(t, err, wr.ErrQueueFull, "received, not reaped")
	r.wait(r.rcq, 1)
	r.postRecv(wr.Recv{})
}

// TestOrder has Reads between Sends: completions come in the order of posting, a
// fence holds back, ORD holds Reads back (verbs draft 8.2.2, 6.5).
func TestOrder(t *testing.T) {
	r := newRig(t, setup{ord: 1})
	read := func(id uint64, off int) wr.Request {
		return wr.Request{ID: id, Op: wr.OpRead, Local: r.full.sge(off, 4), Remote: wr.Remote{STag: 9}}
	}
	r.postSend(
		wr.Request{ID: 1}, read(2, 0), wr.Request{ID: 3}, // 3 passes 2 on the wire
		read(4, 8),                             // ORD: behind 2
		wr.Request{ID: 5, Flags: wr.ReadFence}, // behind 4
		wr.Request{ID: 6, Flags: wr.Unsignaled},
	)
	kinds := func(n int) (out []byte) {
		for range n {
			out = append(out, r.next()[1]&0xF)
		}
		return out
	}
	answer := func(off int) {
		p := filled(4)
		r.full.expect(off, p)
		r.send(rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(off), p).Octets())
	}
	require.Equal(t, []byte{3, 1, 3}, kinds(3))
	require.Equal(t, []comp{{1, 0, 0}}, r.wait(r.scq, 1))
	require.Zero(t, r.scq.Len(), "3 waits for 2")
	answer(0)
	require.Equal(t, []comp{{2, 0, 0}, {3, 0, 0}}, r.wait(r.scq, 2))
	require.Equal(t, []byte{1}, kinds(1))
	require.Zero(t, r.scq.Len())
	answer(8)
	require.Equal(t, []byte{3, 3}, kinds(2))
	require.Equal(t, []comp{{4, 0, 0}, {5, 0, 0}}, r.wait(r.scq, 2))
	r.requireMemory()
}

// TestPostRefusals are the Immediate Errors of a post: nothing of the request is
// queued, and what stood before it in the list is (verbs draft 8.2.1).
func TestPostRefusals(t *testing.T) {
	r := newIdleRig(t, setup{})
	five := make([]wr.SGE, 5)
	for name, c := range map[string]struct {
		bad  wr.Request
		want wr.ImmediateError
	}{
		"too many elements":       {wr.Request{SGL: five}, wr.ErrInvalidSGLLength},
		"Write, too many":         {wr.Request{Op: wr.OpWrite, SGL: five}, wr.ErrInvalidSGLLength},
		"Receive on a Send Queue": {wr.Request{Op: wr.OpRecv}, wr.ErrInvalidOp},
		"no operation":            {wr.Request{Op: 99}, wr.ErrInvalidOp},
	} {
		before := r.q.sq.tail.Load()
		n, err := r.q.PostSend(wr.Request{}, c.bad, wr.Request{})
		require.ErrorIs(t, err, c.want, name)
		require.Equal(t, 1, n, name)
		require.Equal(t, before+1, r.q.sq.tail.Load(), name)
	}
	n, err := r.q.PostRecv(wr.Recv{}, wr.Recv{SGL: five}, wr.Recv{})
	require.ErrorIs(t, err, wr.ErrInvalidSGLLength)
	require.Equal(t, 1, n)
	require.NoError(t, r.q.Destroy())
	_, err = r.q.PostSend(wr.Request{})
	require.Error(t, err)
	require.ErrorIs(t, r.q.Destroy(), wr.ErrInvalidQP)
	require.ErrorIs(t, r.q.Modify(Modify{Next: wr.StateIdle}), wr.ErrInvalidQP)
}

// TestSolicited has each kind of Send meet a CQ that is armed for solicited
// completions.
func TestSolicited(t *testing.T) {
	r := newRig(t, setup{})
	r.postRecv(make([]wr.Recv, 3)...)
	require.NoError(t, r.rcq.Request(wr.NotifySolicited))
	se := rawpeer.Send(2, nil)
	se.Op = 5
	r.send(rawpeer.Send(1, nil).Octets())
	r.wait(r.rcq, 1)
	require.Empty(t, r.rcq.Events())
	r.send(se.Octets())
	<-r.rcq.Events()
}
