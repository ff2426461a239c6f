package qp

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// heard is what a queue pair tells of Sends without receives.
type heard struct {
	mu              sync.Mutex
	waits, notReady []uint32
}

func (h *heard) readiness() Readiness {
	note := func(to *[]uint32) func(uint32) {
		return func(msn uint32) {
			h.mu.Lock()
			*to = append(*to, msn)
			h.mu.Unlock()
		}
	}
	return Readiness{Waits: note(&h.waits), NotReady: note(&h.notReady)}
}

func (h *heard) lists() (waits, notReady []uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(waits, h.waits...), append(notReady, h.notReady...)
}

// notReady is what a peer says of the Send of an MSN.
func notReady(msn uint32) []byte { return rawpeer.Write(notReadySTag, uint64(msn), nil).Octets() }

// sendPlaced posts a Send of 4 octets, which the peer gets.
func (r *rig) sendPlaced(id uint64, msn uint32, flags wr.Flags) {
	r.t.Helper()
	r.postSend(wr.Request{ID: id, Flags: flags, SGL: r.full.sgl(0, 4)})
	require.Equal(r.t, rawpeer.Send(msn, r.full.mem()[:4]).Octets(), r.next())
}

// TestPlaceSends: each Send, signaled or not, waits to be placed, and what the peer says of one tells of those before it.
func TestPlaceSends(t *testing.T) {
	var h heard
	r := placingRig(t, 3, setup{})
	r.q.SetReadiness(h.readiness())
	r.sendPlaced(1, 1, 0)
	assert.Equal(t, ok(1), r.wait(r.scq, 1), "it completes when it is sent")
	r.q.PlaceSends(true)
	r.sendPlaced(2, 2, wr.Unsignaled)
	r.asked(1)
	r.sendPlaced(3, 3, 0)
	r.write(4, 0)
	r.sendPlaced(5, 4, 0)
	r.sendPlaced(6, 5, 0)
	assert.Empty(t, r.all(r.scq))

	for _, stale := range []uint32{0, 1, 7, 1 << 31, 0xffffffff} {
		r.send(notReady(stale)) // of none that waits
	}
	r.send(notReady(4))
	assert.Equal(t, ok(3, 4), r.wait(r.scq, 2), "the Write in front of it too")
	require.Eventually(t, func() bool { _, n := h.lists(); return len(n) == 1 }, patience, time.Millisecond)
	r.send(notReady(4))
	r.send(notReady(2)) // an old one changes nothing
	r.answer()
	r.asked(2)
	assert.Empty(t, r.all(r.scq), "what is asked for first was placed before")
	r.answer()
	assert.Equal(t, ok(5, 6), r.wait(r.scq, 2))
	r.send(notReady(4)) // the answer has overtaken it
	r.send(notReady(5))
	r.sendPlaced(7, 6, 0)
	r.asked(3)
	r.send(notReady(6))
	require.Eventually(t, func() bool { _, n := h.lists(); return len(n) == 3 }, patience, time.Millisecond)
	_, n := h.lists()
	assert.Equal(t, []uint32{4, 4, 6}, n)
	assert.Equal(t, wr.StateRTS, r.q.State())
}

// TestTellNotReady: the first look of a message in vain is told, and the peer hears of it by an empty Write.
func TestTellNotReady(t *testing.T) {
	var h heard
	r := newRig(t, graceful(setup{}, nil))
	r.q.SetReadiness(h.readiness())
	_, waits := r.q.WaitsForReceive()
	assert.False(t, waits)
	for msn := uint32(1); msn <= 2; msn++ {
		r.send(rawpeer.Send(msn, filled(4)).Octets())
		r.paused()
		got, waits := r.q.WaitsForReceive()
		assert.True(t, waits)
		assert.Equal(t, msn, got)
		for range 2 {
			r.q.TellNotReady(got)
			require.Equal(t, notReady(msn), r.next())
		}
		r.postRecv(wr.Recv{ID: uint64(msn), SGL: r.full.sgl(0, 8)})
		r.wait(r.rcq, 1)
		require.Eventually(t, func() bool { _, waits := r.q.WaitsForReceive(); return !waits }, patience, time.Millisecond)
	}
	told, _ := h.lists()
	assert.Equal(t, []uint32{1, 2}, told)
}

// TestNotReadyUnasked: who has not asked for it hears nothing, and completes nothing.
func TestNotReadyUnasked(t *testing.T) {
	var h heard
	r := placingRig(t, 3, setup{})
	r.q.SetReadiness(h.readiness())
	r.write(1, 0)
	r.asked(1)
	r.sendPlaced(2, 1, 0)
	r.send(notReady(1))
	r.send(rawpeer.Write(uint32(r.full.stag), r.full.at(0), filled(4)).Octets())
	require.Eventually(t, func() bool { return r.q.Stats().In.Write.Messages == 2 }, patience, time.Millisecond)
	_, n := h.lists()
	assert.Empty(t, n)
	assert.Empty(t, r.all(r.scq))
}

// TestArrived: the first message that has something in it is told, once; ready-to-receive frames are none.
func TestArrived(t *testing.T) {
	var told atomic.Int32
	r := newRig(t, setup{})
	r.q.SetReadiness(Readiness{Arrived: func() { told.Add(1) }})
	r.send(rawpeer.Write(5, 0, nil).Octets())
	r.send(rawpeer.ReadRequest(1, rdmap.ReadRequestHeader{SinkSTag: rtrSTag}).Octets())
	require.Equal(t, rawpeer.ReadResponse(rtrSTag, 0, nil).Octets(), r.next())
	assert.Zero(t, told.Load())
	for msn := uint32(1); msn <= 2; msn++ {
		r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(0, 8)})
		r.send(rawpeer.Send(msn, filled(4)).Octets())
		r.wait(r.rcq, 1)
		assert.EqualValues(t, 1, told.Load())
	}
}
