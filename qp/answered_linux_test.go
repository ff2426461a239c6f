package qp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/cq"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// writes has somebody else write the request, as the owner of the transmit side, who does not come back from that before back is called.
func (r *rig) writes(req wr.Request) (back func()) {
	tx, wrote, end, ended := &r.s.tx, make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tx.mu.Lock()
		r.postSend(req) // finds the side taken
		_, filled := tx.fill()
		assert.True(r.t, filled)
		tx.writing.Store(true)
		n, out := tx.llp.write(tx.batch)
		assert.Equal(r.t, ioDone, out)
		close(wrote)
		<-end
		tx.written.Add(uint64(n))
		r.s.completeSQ()
		tx.writing.Store(false)
		tx.batch.free()
		tx.batch = nil
		tx.mu.Unlock()
		tx.tryTransmit()
	}()
	<-wrote
	return func() {
		close(end)
		<-ended
	}
}

// TestAnswerWhileWriting: the peer's answer is there before the writer has come back from the write. The Send completes first.
func TestAnswerWhileWriting(t *testing.T) {
	both := cq.New(cq.Config{ID: 3, Entries: 64})
	defer both.Close()
	r := newRig(t, setup{config: func(c *Config) { c.SendCQ, c.RecvCQ = both, both }})
	for i := range uint32(3) {
		r.postRecv(wr.Recv{ID: 1})
		back := r.writes(wr.Request{ID: 2, SGL: r.full.sgl(0, 8)})
		r.next()
		r.send(rawpeer.Send(i+1, nil).Octets())
		assert.Equal(t, []comp{{2, wr.StatusSuccess, 0}, {1, wr.StatusSuccess, 0}}, r.wait(both, 2))
		back()
	}
	require.NoError(t, r.peer.CloseWrite())
	r.over()
	assert.Equal(t, wr.StateIdle, r.q.State())
}

// TestPlacedWhileWriting: so with what the peer says it has placed.
func TestPlacedWhileWriting(t *testing.T) {
	r := placingRig(t, 3, setup{})
	back := r.writes(wr.Request{ID: 2, Op: wr.OpWrite, SGL: r.full.sgl(0, 8), Remote: wr.Remote{STag: 5}})
	require.Equal(t, rawpeer.Write(5, 0, r.full.mem()[:8]).Octets(), r.next())
	r.asked(1)
	assert.Empty(t, r.all(r.scq))
	r.answer()
	assert.Equal(t, []comp{{2, wr.StatusSuccess, 0}}, r.wait(r.scq, 1))
	back()
	assert.Empty(t, r.all(r.scq))
}

// TestAcknowledgedFirst: a program answers a Send as soon as it has it. The answer goes behind what tells the peer that the Send is placed.
func TestAcknowledgedFirst(t *testing.T) {
	for _, reads := range []int{0, 1} { // so that it would be the turn of either
		var r *rig
		q := cq.New(cq.Config{ID: 3, Entries: 64, Notify: func() { r.postSend(wr.Request{ID: 2, SGL: r.full.sgl(0, 8)}) }})
		r = newRig(t, setup{config: func(c *Config) { c.RecvCQ, c.PlacedWrites = q, true }})
		for i := range reads {
			r.send(rawpeer.ReadRequest(uint32(i)+1, rdmap.ReadRequestHeader{SinkSTag: 5}).Octets())
			require.Equal(t, rawpeer.ReadResponse(5, 0, nil).Octets(), r.next())
		}
		r.postRecv(wr.Recv{ID: 1})
		require.NoError(t, q.Request(wr.NotifyNext))
		ask := r.peer.Frame(rawpeer.ReadRequest(uint32(reads)+1, rdmap.ReadRequestHeader{SinkSTag: 6}).Octets())
		require.NoError(t, r.peer.Raw(append(r.peer.Frame(rawpeer.Send(1, nil).Octets()), ask...)))
		assert.Equal(t, rawpeer.ReadResponse(6, 0, nil).Octets(), r.next())
		assert.Equal(t, rawpeer.Send(1, r.full.mem()[:8]).Octets(), r.next())
		q.Close()
	}
}

// TestAcknowledgedOutOfTurn: what waits to be sent goes behind it, too.
func TestAcknowledgedOutOfTurn(t *testing.T) {
	for _, reads := range []int{0, 1} { // so that it would be the turn of either
		r := newRig(t, setup{config: func(c *Config) { c.PlacedWrites = true }})
		for i := range reads {
			r.send(rawpeer.ReadRequest(uint32(i)+1, rdmap.ReadRequestHeader{SinkSTag: 5}).Octets())
			require.Equal(t, rawpeer.ReadResponse(5, 0, nil).Octets(), r.next())
		}
		r.whileHeld(func() {
			r.postSend(wr.Request{ID: 2, SGL: r.full.sgl(0, 8)})
			r.send(rawpeer.ReadRequest(uint32(reads)+1, rdmap.ReadRequestHeader{SinkSTag: 6}).Octets())
			require.Eventually(t, func() bool { return r.s.irrq.len() == 1 }, patience, time.Millisecond)
		})
		assert.Equal(t, rawpeer.ReadResponse(6, 0, nil).Octets(), r.next())
		assert.Equal(t, rawpeer.Send(1, r.full.mem()[:8]).Octets(), r.next())
	}
}

// TestAcknowledgementsTogether: what comes together is acknowledged together, so that IRD bounds it.
func TestAcknowledgementsTogether(t *testing.T) {
	r := newRig(t, setup{pipe: true, config: func(c *Config) { c.PlacedWrites = true }})
	var all []byte
	n := r.s.irrq.size() + 1
	for i := range n {
		all = append(all, r.peer.Frame(rawpeer.ReadRequest(uint32(i)+1, rdmap.ReadRequestHeader{SinkSTag: 6}).Octets())...)
	}
	require.NoError(t, r.peer.Raw(all))
	for range n - 1 {
		require.Equal(t, rawpeer.ReadResponse(6, 0, nil).Octets(), r.next())
	}
	require.Equal(t, byte(rdmap.Terminate), r.next()[1]&0x0f)
	require.NoError(t, r.peer.Close())
	r.over()
	assert.Equal(t, faultReadTooMany, r.s.cause.fault)
}
