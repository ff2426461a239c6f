package qp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// placingRig is a queue pair with PlacedWrites and an ORD of 2, to whose peer so many Reads
// may be outstanding.
func placingRig(t *testing.T, granted int, c setup) *rig {
	c.ord = 2
	config := c.config
	c.config = func(q *Config) {
		q.PlacedWrites = true
		if config != nil {
			config(q)
		}
	}
	c.stream = func(st *mpa.Stream) { st.Enhanced, st.IRD, st.ORD = true, c.withDefaults().ird+1, granted }
	return newRig(t, c)
}

// write posts an RDMA Write of 8 octets, which the peer gets.
func (r *rig) write(id uint64, flags wr.Flags) {
	r.t.Helper()
	r.postSend(wr.Request{ID: id, Op: wr.OpWrite, Flags: flags, SGL: r.full.sgl(0, 8), Remote: wr.Remote{STag: 5, TO: id * 100}})
	require.Equal(r.t, rawpeer.Write(5, id*100, r.full.mem()[:8]).Octets(), r.next())
}

// asked is the empty Read with the MSN, which the peer gets.
func (r *rig) asked(msn uint32) {
	r.t.Helper()
	require.Equal(r.t, rawpeer.ReadRequest(msn, rdmap.ReadRequestHeader{SinkSTag: rtrSTag}).Octets(), r.next())
}

func (r *rig) answer() {
	r.t.Helper()
	r.send(rawpeer.ReadResponse(rtrSTag, 0, nil).Octets())
}

// TestPlacedWrites: a signaled Write, and what is behind it, completes when the empty Read
// behind it is answered. There is one at a time, for all that was sent before it.
func TestPlacedWrites(t *testing.T) {
	for _, c := range []setup{{}, {crc: true}, {markers: true}, {pipe: true}} {
		r := placingRig(t, 3, c)
		assert.True(t, r.q.Query().PlacedWrites)
		assert.Equal(t, []int{4, 2}, []int{r.q.Query().IRD, r.q.Query().ORD}, "the program's own")
		r.write(1, wr.Unsignaled)
		r.write(2, 0)
		r.asked(1)
		r.write(3, 0)
		r.postSend(wr.Request{ID: 4, SGL: r.full.sgl(0, 4)})
		r.next()
		r.write(5, wr.Unsignaled)
		r.write(6, 0)
		r.write(7, wr.Unsignaled)
		assert.Empty(t, r.all(r.scq), "nothing is placed yet")
		r.answer()
		r.asked(2)
		assert.Equal(t, ok(2), r.wait(r.scq, 1))
		assert.Empty(t, r.all(r.scq))
		r.answer()
		assert.Equal(t, ok(3, 4, 6), r.wait(r.scq, 3))

		// Behind an answer that completes all, the next asks again.
		r.write(8, 0)
		r.asked(3)
		r.answer()
		assert.Equal(t, ok(8), r.wait(r.scq, 1))
		require.NoError(t, r.q.Modify(Modify{Next: wr.StateClosing}), "nothing is left to send")
		end, more, err := r.peer.End()
		require.NoError(t, err)
		if !c.pipe {
			assert.Equal(t, rawpeer.FIN, end)
		}
		assert.Zero(t, more)
		require.NoError(t, r.peer.Close())
		r.over()
	}
}

// TestPlacedWritesBesideReads: the empty Read takes no place of the program's ORD, and holds no
// Read Fence.
func TestPlacedWritesBesideReads(t *testing.T) {
	r := placingRig(t, 3, setup{})
	read := func(id uint64) wr.Request {
		return wr.Request{ID: id, Op: wr.OpRead, Local: r.full.sge(readTO, 4), Remote: wr.Remote{STag: 5, TO: id}}
	}
	got := func(msn uint32, to uint64) {
		t.Helper()
		want := rawpeer.ReadRequest(msn, rdmap.ReadRequestHeader{
			SinkSTag: uint32(r.full.stag), SinkTO: r.full.at(readTO), Size: 4, SourceSTag: 5, SourceTO: to,
		})
		require.Equal(t, want.Octets(), r.next())
	}
	r.write(1, 0)
	r.asked(1)
	r.postSend(wr.Request{ID: 2, Flags: wr.ReadFence, SGL: r.full.sgl(0, 4)})
	require.Equal(t, rawpeer.Send(1, r.full.mem()[:4]).Octets(), r.next(), "no Read of the program is outstanding")
	r.postSend(read(3), read(4), read(5))
	got(2, 3)
	got(3, 4)
	r.answer()
	assert.Equal(t, ok(1, 2), r.wait(r.scq, 2))
	r.send(rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(readTO), filled(4)).Octets())
	r.full.expect(readTO, filled(4))
	got(4, 5)
	assert.Equal(t, ok(3), r.wait(r.scq, 1))
	r.requireMemory()
}

// TestPlacedWritesNotGranted: where the peer lets no Read be outstanding beyond the
// program's, Writes complete when they have been sent, and Query says so.
func TestPlacedWritesNotGranted(t *testing.T) {
	for _, tt := range []struct {
		granted, own, ord int
		slot              bool
	}{
		{granted: 3, own: 2, ord: 2, slot: true},
		{granted: 9, own: 2, ord: 2, slot: true},
		{granted: 2, own: 2, ord: 1, slot: true}, // two are enough for both
		{granted: 1, own: 2, ord: 1},
		{granted: 0, own: 2, ord: 0},
		{granted: 1, own: -1, ord: 0, slot: true},
	} {
		r := placingRig(t, tt.granted, setup{config: func(c *Config) { c.ORD = max(tt.own, 0) }})
		a := r.q.Query()
		assert.Equal(t, []any{tt.ord, tt.slot}, []any{a.ORD, a.PlacedWrites}, "%+v", tt)
		r.write(1, 0)
		if tt.slot {
			r.asked(1)
			r.answer()
		}
		assert.Equal(t, ok(1), r.wait(r.scq, 1))
		r.postSend(wr.Request{ID: 2, SGL: r.full.sgl(0, 4)})
		require.Equal(t, rawpeer.Send(1, r.full.mem()[:4]).Octets(), r.next(), "and nothing between")
	}
	r := newRig(t, setup{config: func(c *Config) { c.PlacedWrites = true }}) // nothing was negotiated
	assert.False(t, r.q.Query().PlacedWrites)
	r.write(1, 0)
	assert.Equal(t, ok(1), r.wait(r.scq, 1))
}

// TestPlacedWriteRefused: a Write that the peer refuses is the one at fault.
func TestPlacedWriteRefused(t *testing.T) {
	r := placingRig(t, 3, setup{})
	r.write(1, 0)
	r.asked(1)
	r.write(2, 0)
	r.write(3, 0)
	bad := rawpeer.Write(5, 200, r.full.mem()[:8]).Octets()
	r.send(terminate(0x1100, echoDDP, bad))
	require.NoError(t, r.peer.Close())
	r.over()
	assert.Equal(t, []comp{{1, wr.StatusFlushed, 0}, {2, wr.StatusRemoteTermination, 0}, {3, wr.StatusFlushed, 0}}, r.all(r.scq))
}

// TestPlacedWritesAnswered: the peer of such a queue pair may ask for its Writes, beyond IRD and
// whether it may read or not; and may do no more by it.
func TestPlacedWritesAnswered(t *testing.T) {
	for _, noRead := range []bool{false, true} {
		r := placingRig(t, 3, setup{noRead: noRead, ird: 1})
		for i := range uint32(3) {
			r.send(rawpeer.ReadRequest(i+1, rdmap.ReadRequestHeader{SinkSTag: 9, SinkTO: 8}).Octets())
			require.Equal(t, rawpeer.ReadResponse(9, 8, nil).Octets(), r.next())
		}
		bad := readRequest(4, 1, r.readable.stag, r.readable.at(0)).Octets()
		r.send(bad)
		if noRead {
			require.Equal(t, terminate(0x1201, echoDDP, bad), r.next())
		} else {
			require.Equal(t, rawpeer.ReadResponse(0x5151, 0x6262, r.readable.mem()[:1]).Octets(), r.next())
		}
	}
}

// TestPlacedWritesIRD: one Read beyond IRD has its place, a second does not.
func TestPlacedWritesIRD(t *testing.T) {
	r := placingRig(t, 3, setup{ird: 2})
	ird := 3
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateRTS, IRD: &ird}))
	assert.Equal(t, 3, r.q.Query().IRD)
	assert.Equal(t, 4, r.s.irrq.size())
	ird, ord := 1, 2
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateRTS, IRD: &ird, ORD: &ord}))
	assert.Equal(t, []int{1, 2}, []int{r.q.Query().IRD, r.q.Query().ORD})
	assert.Equal(t, 2, r.s.irrq.size())
	ord = 3
	require.ErrorIs(t, r.q.Modify(Modify{Next: wr.StateRTS, ORD: &ord}), wr.ErrORDExceeded, "the third is the queue pair's")
}

// TestPlacedBeforeWritten: the peer says that it has placed what is framed and not written. The memory is the program's when it is.
func TestPlacedBeforeWritten(t *testing.T) {
	for name, c := range map[string]struct {
		post   func(*rig)
		placed func(*rig)
		gets   func(*rig)
		done   []comp
	}{
		"Write": {
			func(r *rig) {
				r.postSend(wr.Request{ID: 1, Op: wr.OpWrite, SGL: r.full.sgl(0, 8), Remote: wr.Remote{STag: 5, TO: 100}})
			},
			(*rig).answer,
			func(r *rig) {
				require.Equal(r.t, rawpeer.Write(5, 100, r.full.mem()[:8]).Octets(), r.next())
				r.asked(1)
			}, ok(1),
		},
		"Send": {
			func(r *rig) { r.postSend(wr.Request{ID: 1}, wr.Request{ID: 2}) },
			func(r *rig) { r.send(notReady(2)) },
			func(r *rig) {
				require.Equal(r.t, rawpeer.Send(1, nil).Octets(), r.next())
				require.Equal(r.t, rawpeer.Send(2, nil).Octets(), r.next())
			}, ok(1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var told heard
			r := placingRig(t, 3, setup{config: func(c *Config) { c.Tuning.Short = 100 }}) // two are framed at once
			r.q.SetReadiness(told.readiness())
			r.q.PlaceSends(true)
			tx, sq := &r.s.tx, &r.q.sq
			tx.mu.Lock()
			c.post(r)
			_, filled := tx.fill()
			require.True(t, filled)
			c.placed(r)
			require.Eventually(t, func() bool {
				return r.s.rx.locked(func(*receiver) bool { // so it has completed what it would
					sq.doneMu.Lock()
					defer sq.doneMu.Unlock()
					return sq.placed == 1
				})
			}, patience, time.Millisecond)
			assert.Empty(t, r.all(r.scq))
			tx.mu.Unlock()
			tx.tryTransmit()
			c.gets(r)
			assert.Equal(t, c.done, r.wait(r.scq, len(c.done)))
		})
	}
}
