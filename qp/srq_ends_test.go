package qp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// sharedFails: a queue pair notices that its S-RQ has failed when it wants a
// receive, and not before; a message in progress ends well (draft 6.3.6).
func sharedFails(t *testing.T) {
	shared := newShared(t, ownPD)
	r := newRig(t, sharing(shared))
	b := r.sibling(20)
	shared.post(wr.Recv{ID: 1, SGL: r.full.sgl(0, 9)}, wr.Recv{ID: 2})
	r.send(part(filled(4)))
	require.Eventually(t, func() bool { return r.s.rx.locked(func(rx *receiver) bool { return rx.recv.open }) }, patience, 1e6)
	shared.Fail()
	require.Equal(t, []wr.EventID{wr.EventSRQCatastrophic}, shared.log)
	r.send(rawpeer.Segment{Op: rdmap.Send, MSN: 1, MO: 4, Payload: filled(5)}.Octets())
	require.Equal(t, []comp{{1, 0, 9}}, r.wait(r.rcq, 1))

	r.postSend(wr.Request{ID: 10, Op: wr.OpRead, Local: r.full.sge(100, 4), Remote: wr.Remote{STag: 5}})
	r.next()
	r.send(rawpeer.Send(2, filled(3)).Octets())
	require.Equal(t, terminate(0x0207, echoNone, nil), r.next())
	require.NoError(t, r.peer.Close())
	r.over()
	require.Equal(t, faultSRQ, r.s.cause.fault)
	r.requireEvents(wr.EventSRQError)
	require.Equal(t, flushed(10), r.all(r.scq))
	require.Empty(t, r.all(r.rcq), "nothing was taken")

	require.Equal(t, wr.StateRTS, b.q.State())
	b.postSend(wr.Request{ID: 11})
	require.Equal(t, []comp{{11, 0, 0}}, b.wait(b.scq, 1))
	b.requireEvents()
}

// TestSharedCQOverflow: a completion without room on the CQ gives its slot back.
func TestSharedCQOverflow(t *testing.T) {
	shared := newShared(t, ownPD)
	c := sharing(shared)
	c.cqe = 1
	r := newRig(t, c)
	shared.post(make([]wr.Recv, 8)...)
	r.send(rawpeer.Send(1, nil).Octets(), rawpeer.Send(2, nil).Octets())
	require.Equal(t, terminate(0x0207, echoNone, nil), r.next())
	require.NoError(t, r.peer.Close())
	r.over()
	r.requireEvents(wr.EventCQRQError)
	require.Len(t, r.all(r.rcq), 1)
	require.Len(t, shared.left(), 6)
	shared.post(make([]wr.Recv, 8)...)
}

// TestSharedDepthIsIgnored (RV-6.3.4-M2): the depth of the RQ means nothing, any
// number of receives may come from the S-RQ.
func TestSharedDepthIsIgnored(t *testing.T) {
	shared := newShared(t, ownPD)
	c := sharing(shared)
	c.depth = 1
	r := newRig(t, c)
	shared.post(make([]wr.Recv, 8)...)
	for msn := range uint32(8) {
		r.send(rawpeer.Send(msn+1, nil).Octets())
	}
	require.Len(t, r.wait(r.rcq, 8), 8)
}
