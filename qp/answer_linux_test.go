package qp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// TestAnswerBreaksOff: the source of an RDMA Read goes while its answer is in a batch, not
// copied. The Terminate Message takes the place of what is left, and its header is that of
// the Read, moved on by what has been sent (RFC 5040 4.8).
func TestAnswerBreaksOff(t *testing.T) {
	const size = 40_000 // two segments
	for _, tt := range []struct {
		name string
		sent int                           // FPDUs of the answer, before the source goes
		goes func(r *rig, tx *transmitter) // with tx.mu held and the source gone
		set  func(*Config)
	}{
		{name: "none is sent", goes: func(_ *rig, tx *transmitter) { tx.pump(1 << 30) }},
		{name: "one is sent", sent: 1, goes: func(_ *rig, tx *transmitter) { tx.pump(1 << 30) }},
		{name: "one is framed", goes: func(r *rig, tx *transmitter) {
			f := tx.frame(tx.batch)
			require.Equal(r.t, faultReadSTag, f)
			tx.fails(tx.batch, f)
		}, set: func(c *Config) { c.Tuning.Batch = 1 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newIdleRig(t, setup{config: tt.set})
			source := r.big(size)
			r.connect()
			r.openGate()
			tx := &r.s.tx
			tx.mu.Lock()
			h := rdmap.ReadRequestHeader{SinkSTag: 0x77, SinkTO: 1<<32 - 100, Size: size, SourceSTag: uint32(source.STag), SourceTO: source.TO}
			r.send(rawpeer.ReadRequest(1, h).Octets())
			require.Eventually(t, func() bool { return tx.irrq.len() == 1 }, patience, 100_000)
			_, filled := tx.fill()
			require.True(t, filled)
			b := tx.batch
			moved := 0
			if tt.sent > 0 {
				b.Seal()
				pieces := b.Next()
				head, payload := pieces[0], pieces[1]
				tail := pieces[2][:b.ends[0]-len(head)-len(payload)]
				n, err := tx.llp.conn.TryWrite([][]byte{head, payload, tail}, b.ends[0])
				require.NoError(t, err)
				require.Equal(t, b.ends[0], n)
				b.Advance(n)
				moved = len(payload)
			}
			require.NoError(t, r.tab.Deallocate(source.STag))
			tt.goes(r, tx)
			tx.mu.Unlock()
			if tt.sent > 0 {
				require.Equal(t, byte(0x42), r.next()[1])
			}
			h.SinkTO += uint64(moved)
			h.SourceTO += uint64(moved)
			h.Size -= uint32(moved)
			require.Equal(t, terminate(0x0100, echoRead, rawpeer.ReadRequest(1, h).Octets()), r.next())
			require.NoError(t, r.peer.Close())
			r.over()
			r.requireEvents(wr.EventIRRQSTag)
		})
	}
}

// TestRevokedAndBack: the memory of a Send that is framed and not sent goes, and its STag names memory of the program again
// before anybody looks. It is revoked all the same.
func TestRevokedAndBack(t *testing.T) {
	r := newIdleRig(t, setup{})
	region := stag.RegionConfig{PD: ownPD, Access: wr.LocalRead, Memory: make([]byte, 40_000)}
	info, err := r.tab.Register(region)
	require.NoError(t, err)
	r.connect()
	r.openGate()
	tx := &r.s.tx
	tx.mu.Lock()
	r.postSend(
		wr.Request{ID: 1, SGL: r.full.sgl(0, 8)},
		wr.Request{ID: 2, SGL: []wr.SGE{{STag: info.STag, TO: info.Base, Length: 40_000}}},
		wr.Request{ID: 3, SGL: r.full.sgl(0, 8)},
	)
	_, filled := tx.fill()
	require.True(t, filled)
	again, err := r.tab.Reregister(info.STag, region)
	require.NoError(t, err)
	require.Equal(t, info.STag, again.STag)
	tx.pump(1 << 30)
	tx.mu.Unlock()
	for r.next()[1]&0x0f == 3 { // what went out of it, if anything
	}
	require.NoError(t, r.peer.Close())
	r.over()
	assert.Equal(t, faultSQSTag, r.s.cause.fault)
	assert.Equal(t, wr.StateError, r.q.State())
	comps := r.all(r.scq)
	assert.Contains(t, comps, comp{2, wr.StatusInvalidSTag, 0})
	assert.Equal(t, comp{3, wr.StatusFlushed, 0}, comps[len(comps)-1])
}

// TestRevokedBehindAnAnswer: an answer is in the batch, in front of the Send whose memory goes. It goes out, and is not at fault.
func TestRevokedBehindAnAnswer(t *testing.T) {
	r := newIdleRig(t, setup{})
	source, gone := r.big(5000), r.big(5000)
	r.connect()
	r.openGate()
	tx := &r.s.tx
	tx.mu.Lock()
	h := rdmap.ReadRequestHeader{SinkSTag: 0x77, Size: 5000, SourceSTag: uint32(source.STag), SourceTO: source.TO}
	r.send(rawpeer.ReadRequest(1, h).Octets())
	require.Eventually(t, func() bool { return tx.irrq.len() == 1 }, patience, 100_000)
	r.postSend(wr.Request{ID: 1, SGL: []wr.SGE{gone}})
	_, filled := tx.fill()
	require.True(t, filled)
	require.Len(t, tx.batch.answers, 1)
	require.NoError(t, r.tab.Deallocate(gone.STag))
	tx.pump(1 << 30)
	tx.mu.Unlock()
	require.NoError(t, r.peer.Close())
	r.over()
	assert.Equal(t, faultSQSTag, r.s.cause.fault)
	assert.Equal(t, []comp{{1, wr.StatusInvalidSTag, 0}}, r.all(r.scq))
}
