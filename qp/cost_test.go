package qp

import (
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/gather"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// What a hostile peer can cost: the table of docs/security.md. Other rows of it have
// their tests where the mechanism is tested.

// kib is how many KiB hold n octets.
func kib(n int) int { return (n + 1023) >> 10 }

// heap is how many octets are in use.
func heap() int {
	runtime.GC()
	runtime.GC() // pools keep theirs over one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// footprint is what a batch takes by itself, with room for so many pieces of memory.
func (b *batch) footprint(pieces int) int {
	return b.Footprint(pieces) + cap(b.ends)*int(unsafe.Sizeof(0))
}

// TestCostOfABatch: what a stream holds of its own for a peer that does not read.
func TestCostOfABatch(t *testing.T) {
	b := batches.New().(*batch)
	if unsafe.Sizeof(0) == 8 {
		require.Equal(t, 599, kib(b.footprint(0)))
	}
	const smallest = 20 // octets of an FPDU: an empty tagged segment
	for !b.Full(batchBytes) {
		b.Arena = append(b.Arena, make([]byte, smallest)...)
		b.framed(len(b.Arena) - smallest)
	}
	require.LessOrEqual(t, kib(b.footprint(gather.MaxPieces)), 900)
	require.LessOrEqual(t, len(b.Arena)+mpa.MinBuffer, arenaBytes+smallest, "one FPDU more would fit")
}

// TestCostOfAnUnfinishedFPDU: a receive buffer, given back as soon as nothing is in it. Beside
// many others it is less: TestTricklerHoldsWhatItSent.
func TestCostOfAnUnfinishedFPDU(t *testing.T) {
	require.LessOrEqual(t, kib(int(unsafe.Sizeof(recvBuffer{}))), 260)
	r := newRig(t, setup{config: func(c *Config) { c.Tuning.Direct = -1 }}) // else it goes straight to its place
	resting := func() bool { return r.s.rx.locked(func(rx *receiver) bool { return rx.in.buf == nil }) }
	require.Eventually(t, resting, patience, time.Millisecond, "an idle stream has none")
	r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(0, 100)})
	fpdu := r.peer.Frame(rawpeer.Send(1, filled(100)).Octets())
	require.NoError(t, r.peer.Raw(fpdu[:50]))
	r.untilBuffered(50)
	require.False(t, resting())
	require.NoError(t, r.peer.Raw(fpdu[50:]))
	require.Equal(t, []comp{{1, wr.StatusSuccess, 100}}, r.wait(r.rcq, 1))
	require.Eventually(t, resting, patience, time.Millisecond)
}

// TestCostOfEmptyMessages: they take nothing but the time of their own stream. Other
// streams go on, and a Send takes the receive that was posted for it.
func TestCostOfEmptyMessages(t *testing.T) {
	r := newRig(t, setup{})
	other := r.sibling(8)
	r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(0, 1)})
	const messages = 10_000
	var flood [][]byte
	for range messages / 2 {
		flood = append(flood, rawpeer.Write(0, 0, nil).Octets(), rawpeer.Write(uint32(r.writable.stag), r.writable.at(0), []byte{1}).Octets())
	}
	r.writable.expect(0, []byte{1})
	before := heap()
	sent := r.inBackground(flood...)
	for i := range uint64(10) {
		other.postRecv(wr.Recv{ID: i})
		other.send(rawpeer.Send(uint32(i+1), nil).Octets())
		require.Equal(t, []comp{{i, wr.StatusSuccess, 0}}, other.wait(other.rcq, 1))
	}
	require.NoError(t, <-sent)
	r.send(
		rawpeer.ReadRequest(1, rdmap.ReadRequestHeader{SinkSTag: 1}).Octets(), // of nothing
		rawpeer.Send(1, nil).Octets(),
	)
	require.Equal(t, rawpeer.ReadResponse(1, 0, nil).Octets(), r.next(), "all before it has been handled")
	require.Eventually(t, func() bool { return heap()-before < messages*20 }, patience, time.Millisecond,
		"nothing is kept of them, once the buffers are given back")
	runtime.KeepAlive(flood) // that is in both
	require.Equal(t, []comp{{1, wr.StatusSuccess, 0}}, r.wait(r.rcq, 1))
	require.Empty(t, r.all(r.rcq))
	require.Empty(t, r.all(r.scq))
	r.requireEvents()
	r.requireMemory()
}

// TestCostOfErrors: connection after connection, each costs one Terminate Message, and
// one event or one completion in error.
func TestCostOfErrors(t *testing.T) {
	r := newRig(t, setup{})
	for i := range 20 {
		if i > 0 {
			require.NoError(t, r.q.Modify(Modify{Next: wr.StateIdle}))
			r.connect()
		}
		r.postRecv(wr.Recv{ID: 1}, wr.Recv{ID: 2})
		bad, told := rawpeer.Write(uint32(r.gone), 0, filled(8)).Octets(), 1
		if i%2 == 1 { // a Send too long, behind which comes more
			bad, told = rawpeer.Send(1, filled(8)).Octets(), 0
		}
		sent := r.inBackground(bad, bad, bad)
		u := r.next()
		require.EqualValues(t, rdmap.Terminate, u[1]&0x0F)
		_, more, err := r.peer.End()
		require.NoError(t, err)
		require.Zero(t, more)
		if err := <-sent; err != nil { // the queue pair need not have taken all
			t.Logf("the peer was cut short: %v", err)
		}
		leave := r.peer.Close
		if i%4 == 0 { // the end of the stream is no second event
			leave = r.peer.Reset
		}
		require.NoError(t, leave())
		r.over()
		r.events.mu.Lock()
		require.Len(t, r.events.list, told)
		r.events.list = nil
		r.events.mu.Unlock()
		got := r.all(r.rcq)
		require.Len(t, got, 2)
		require.Equal(t, told == 0, got[0].Status != wr.StatusFlushed)
		require.Equal(t, wr.StatusFlushed, got[1].Status)
	}
}
