package qp

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// losses are what an unreliable queue pair tells of.
type losses struct {
	mu      sync.Mutex
	dropped []string
	mutes   []*wr.Reason
}

const aloneData = math.MaxUint32 // Immediate Data that is no Write's

func (h *losses) lossy() *Lossy {
	return &Lossy{
		Dropped: func(why func() *wr.Reason) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.dropped = append(h.dropped, why().Error())
		},
		Mute: func(why *wr.Reason) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.mutes = append(h.mutes, why)
		},
		OfWrite: func(data uint64) bool { return data != aloneData },
	}
}

func (h *losses) counts() (dropped, mutes int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.dropped), len(h.mutes)
}

// lossyRig is a rig in RTS whose queue pair is unreliable.
func lossyRig(t testing.TB, c setup) (*rig, *losses) {
	h := &losses{}
	if c.ird == 0 {
		c.ird, c.ord = -1, -1
	}
	r := newIdleRig(t, c)
	r.q.SetLossy(h.lossy())
	r.connect()
	return r, h
}

// untilMute waits until the queue pair is mute.
func (r *rig) untilMute(h *losses) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { _, n := h.counts(); return n > 0 }, patience, time.Millisecond)
}

// requireGoesOn: the queue pair is in RTS, nothing was told of it, and requests complete.
func (r *rig) requireGoesOn() {
	r.t.Helper()
	r.postSend(wr.Request{ID: 99, SGL: r.full.sgl(3100, 4)})
	require.Equal(r.t, []comp{{99, wr.StatusSuccess, 0}}, r.wait(r.scq, 1))
	require.Equal(r.t, wr.StateRTS, r.q.State())
	r.requireEvents()
}

// TestLossOf: what the peer does ends no unreliable queue pair, and what this side does ends each.
func TestLossOf(t *testing.T) {
	own := map[streamFault]bool{faultSQCompletion: true, faultRQCompletion: true, faultSRQ: true, faultLocal: true, faultGlobal: true}
	for _, f := range allFaults() {
		row := faults[f]
		switch {
		case row.In != wr.StateRTS, row.Trigger == trigModifyClosing, row.Trigger == trigModifyTerminate, row.Trigger == trigModifyError:
		case f == faultPeerClosedBusy, f >= faultSinkSTag && f <= faultSinkPD: // finish makes it; there are no Reads
		case f < faultSendInvSTag, own[f]:
			assert.Equal(t, lossEnds, lossOf(f), row.Name)
		default:
			assert.NotEqual(t, lossEnds, lossOf(f), row.Name)
		}
	}
}

// TestLossyAttacks: whatever ends a reliable queue pair that has done nothing wrong does not end an unreliable one.
func TestLossyAttacks(t *testing.T) {
	for _, a := range attacks() {
		if lossOf(a.fault) == lossEnds && a.fault < faultSendInvSTag {
			continue // the program's own receives
		}
		t.Run(a.name, func(t *testing.T) {
			c := setup{}
			if a.set != nil {
				a.set(&c)
			}
			c.ird, c.ord = -1, -1
			r, h := lossyRig(t, c)
			if a.sink != nil {
				r.aim = a.sink(r)
			}
			r.arrange(true)
			if a.lead != nil {
				for _, u := range a.lead(r) {
					_ = r.peer.Send(u) // it may be the fault by itself, without a Read
				}
			}
			fpdu := r.peer.Frame(a.bad(r))
			if a.spoil != nil {
				fpdu = a.spoil(fpdu)
			}
			_ = r.peer.Raw(fpdu)
			require.Eventually(t, func() bool { d, m := h.counts(); return d+m > 0 }, patience, time.Millisecond)
			r.requireGoesOn()
			for _, c := range r.all(r.rcq) {
				assert.Equal(t, wr.StatusSuccess, c.Status)
			}
			_ = r.peer.Close()
			r.untilMute(h)
			r.requireGoesOn()
			d, m := h.counts()
			assert.EqualValues(t, d, r.q.Stats().Dropped)
			assert.Equal(t, 1, m)
		})
	}
}

// TestLossyDrops: a message without a place is dropped as a whole, and the receive is the next one's.
func TestLossyDrops(t *testing.T) {
	more := func(s rawpeer.Segment) rawpeer.Segment { s.More = true; return s }
	at := func(msn, mo uint32, p []byte) rawpeer.Segment {
		return rawpeer.Segment{Op: rdmap.Send, MSN: msn, MO: mo, Payload: p}
	}
	for _, c := range []struct {
		name  string
		recvs int
		bad   func(*rig) []rawpeer.Segment
		next  uint32 // MSN of the message behind
	}{
		{"Send, no receive", 0, func(*rig) []rawpeer.Segment { return []rawpeer.Segment{rawpeer.Send(1, filled(5))} }, 2},
		{"Send of three segments, no receive", 0, func(*rig) []rawpeer.Segment {
			return []rawpeer.Segment{more(at(1, 0, filled(5))), more(at(1, 5, filled(5))), at(1, 10, filled(2))}
		}, 2},
		{"Immediate Data, no receive", 0, func(*rig) []rawpeer.Segment { return []rawpeer.Segment{rawpeer.Immediate(1, 7)} }, 2},
		{"Send too long in its first segment", 1, func(*rig) []rawpeer.Segment { return []rawpeer.Segment{rawpeer.Send(1, filled(65))} }, 2},
		{"Send too long in its second", 1, func(*rig) []rawpeer.Segment {
			return []rawpeer.Segment{more(at(1, 0, filled(60))), more(at(1, 60, filled(5))), at(1, 65, filled(5))}
		}, 2},
		{"Send with Invalidate of nothing", 1, func(r *rig) []rawpeer.Segment { return []rawpeer.Segment{sendInvalidate(1, uint32(r.gone), filled(8))} }, 2},
		{"Write to nothing", 1, func(r *rig) []rawpeer.Segment { return []rawpeer.Segment{rawpeer.Write(uint32(r.gone), 0, filled(8))} }, 1},
		{"Write of three segments, the first without a place", 1, func(r *rig) []rawpeer.Segment {
			stag := uint32(r.readable.stag)
			return []rawpeer.Segment{
				more(rawpeer.Write(stag, r.readable.at(0), filled(8))), more(rawpeer.Write(stag, r.readable.at(8), filled(8))), rawpeer.Write(stag, r.readable.at(16), filled(8)),
			}
		}, 1},
		{"Write with Immediate Data", 1, func(r *rig) []rawpeer.Segment {
			return []rawpeer.Segment{rawpeer.Write(uint32(r.readable.stag), r.readable.at(0), filled(8)), rawpeer.Immediate(1, 7)}
		}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, h := lossyRig(t, setup{config: func(c *Config) { c.Extensions = true }})
			recvs := []wr.Recv{{ID: 1, SGL: r.full.sgl(0, recvSize)}}[:c.recvs]
			if len(recvs) > 0 {
				r.postRecv(recvs...)
			}
			for _, s := range c.bad(r) {
				r.send(s.Octets())
			}
			if len(recvs) == 0 {
				require.Eventually(t, func() bool { st := r.q.Stats(); return st.In.Total().Segments >= uint64(len(c.bad(r))) }, patience, time.Millisecond)
				r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(0, recvSize)})
			}
			r.send(rawpeer.Send(c.next, []byte("good")).Octets())
			require.Equal(t, []comp{{1, wr.StatusSuccess, 4}}, r.wait(r.rcq, 1))
			assert.Equal(t, "good", string(r.full.mem()[:4]))
			d, m := h.counts()
			assert.Equal(t, 1, d)
			assert.Zero(t, m)
			assert.EqualValues(t, 1, r.q.Stats().Dropped)
			r.readable.expect(0, nil)
			r.requireGoesOn()
		})
	}
}

// TestLossyImmediateBehindWrite: what is of no Write is not dropped with one.
func TestLossyImmediateBehindWrite(t *testing.T) {
	r, h := lossyRig(t, setup{config: func(c *Config) { c.Extensions = true }})
	r.postRecv(wr.Recv{ID: 1}, wr.Recv{ID: 2})
	bad := rawpeer.Write(uint32(r.gone), 0, filled(8)).Octets()
	r.send(bad, rawpeer.Immediate(1, aloneData).Octets())
	r.send(bad, rawpeer.Write(uint32(r.full.stag), r.full.at(8), filled(8)).Octets(), rawpeer.Immediate(2, 5).Octets())
	require.Len(t, r.wait(r.rcq, 2), 2)
	d, _ := h.counts()
	assert.Equal(t, 2, d)
}

// TestLossyShared: a receive of an S-RQ that a message was too long for completes in error; without one the message is dropped.
func TestLossyShared(t *testing.T) {
	shared := newShared(t, ownPD)
	r, h := lossyRig(t, sharing(shared))
	r.send(rawpeer.Send(1, filled(8)).Octets())
	require.Eventually(t, func() bool { d, _ := h.counts(); return d == 1 }, patience, time.Millisecond)
	shared.post(wr.Recv{ID: 1, SGL: r.full.sgl(0, 4)}, wr.Recv{ID: 2, SGL: r.full.sgl(64, 64)}, wr.Recv{ID: 3, SGL: r.full.sgl(64, 64)})
	r.send(rawpeer.Send(2, filled(8)).Octets(), rawpeer.Send(3, filled(8)).Octets())
	var long [1]wr.Completion
	require.Eventually(t, func() bool { return r.rcq.Poll(long[:]) == 1 }, patience, time.Millisecond)
	runtime.GC() // what it failed for is the queue pair's to keep
	var why *wr.Reason
	require.ErrorAs(t, long[0].Err(), &why)
	require.Equal(t, []any{uint64(1), wr.StatusInvalidLength, uint32(0)}, []any{long[0].ID, long[0].Status, long[0].Bytes})
	require.Equal(t, []comp{{2, wr.StatusSuccess, 8}}, r.wait(r.rcq, 1))
	r.send(rawpeer.Segment{More: true, Op: rdmap.Send, MSN: 4, Payload: filled(8)}.Octets())
	require.NoError(t, r.peer.Close()) // within a message: its receive does not stay behind
	r.untilMute(h)
	require.Equal(t, uint64(3), r.wait(r.rcq, 1)[0].ID)
	r.requireGoesOn()
}

// TestLossyMute: without a peer requests complete, are checked, and an error of the program's own ends the queue pair.
func TestLossyMute(t *testing.T) {
	for name, end := range map[string]func(*rig) error{
		"close": func(r *rig) error { return r.peer.Close() },
		"reset": func(r *rig) error { return r.peer.Reset() },
		"Terminate": func(r *rig) error {
			return r.peer.Send(rawpeer.Terminate(rdmap.TerminateHeader{Code: rdmap.CodeStream}).Octets())
		},
		"garbage": func(r *rig) error { return r.peer.Raw(make([]byte, 4096)) },
	} {
		t.Run(name, func(t *testing.T) {
			r, h := lossyRig(t, setup{})
			r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(0, 8)})
			require.NoError(t, end(r))
			r.untilMute(h)
			for i := range 100 {
				r.postSend(wr.Request{ID: uint64(i), SGL: r.full.sgl(0, 4096)}, wr.Request{ID: uint64(i), Op: wr.OpWrite, Remote: wr.Remote{STag: 5}, SGL: r.full.sgl(0, 4096)})
				for _, c := range r.wait(r.scq, 2) {
					require.Equal(t, wr.StatusSuccess, c.Status)
				}
			}
			assert.Empty(t, r.all(r.rcq))
			r.requireEvents()
			r.postSend(wr.Request{ID: 7, SGL: []wr.SGE{{STag: r.gone, Length: 1}}})
			require.Equal(t, []comp{{7, wr.StatusInvalidSTag, 0}}, r.wait(r.scq, 1))
			r.over()
			assert.Equal(t, wr.StateError, r.q.State())
			assert.Equal(t, flushed(1), r.all(r.rcq))
		})
	}
}

// TestLossyStalledPeer: what a peer that does not read, and then goes, has left behind completes, and so does what is posted then.
func TestLossyStalledPeer(t *testing.T) {
	const n = 4000 // of 4 KiB, more than sockets take
	r, h := lossyRig(t, setup{depth: n, cqe: n + 1})
	var list []wr.Request
	for range n {
		list = append(list, wr.Request{SGL: r.full.sgl(0, 4096), Op: wr.OpWrite, Remote: wr.Remote{STag: 5}})
	}
	r.postSend(list...)
	require.Less(t, len(r.all(r.scq)), n)
	require.NoError(t, r.peer.Reset())
	r.untilMute(h)
	require.Eventually(t, func() bool { r.all(r.scq); return r.q.Stats().SendQueue.Now == 0 }, patience, time.Millisecond)
	r.postSend(list...)
	require.Eventually(t, func() bool { r.all(r.scq); return r.q.Stats().SendQueue.Now == 0 }, patience, time.Millisecond)
	r.requireEvents()
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateClosing}))
	r.over()
	assert.Equal(t, wr.StateIdle, r.q.State(), "a close of one that is mute is a good one")
}

// TestLossySilentInitiator: a Responder that has heard nothing of its peer, which is gone, may send.
func TestLossySilentInitiator(t *testing.T) {
	r, h := lossyRig(t, setup{role: mpa.Responder})
	r.postSend(wr.Request{ID: 1, SGL: r.full.sgl(0, 8)})
	require.NoError(t, r.peer.Close())
	r.untilMute(h)
	require.Equal(t, []comp{{1, wr.StatusSuccess, 0}}, r.wait(r.scq, 1))
	r.requireGoesOn()
}

// TestLossyPieces: segments that are dropped and come in pieces are not placed where they belong either.
func TestLossyPieces(t *testing.T) {
	r, h := lossyRig(t, setup{split: true})
	r.postRecv(wr.Recv{ID: 1, SGL: r.full.sgl(512, recvSize)})
	stag := uint32(r.full.stag)
	for i, s := range []rawpeer.Segment{
		rawpeer.Write(stag, r.full.at(-64), filled(64)), rawpeer.Write(stag, r.full.at(0), filled(64)), rawpeer.Write(stag, r.full.at(64), filled(64)),
	} {
		s.More = i < 2
		fpdu := r.peer.Frame(s.Octets())
		const first = 2 + 14 + 1
		require.NoError(t, r.peer.Raw(fpdu[:first]))
		r.untilBuffered(first)
		require.NoError(t, r.peer.Raw(fpdu[first:]))
		require.Eventually(t, func() bool { st := r.q.Stats(); return st.In.Write.Segments == uint64(i+1) }, patience, time.Millisecond)
	}
	r.send(rawpeer.Send(1, nil).Octets())
	require.Len(t, r.wait(r.rcq, 1), 1)
	r.requireMemory()
	d, m := h.counts()
	assert.Equal(t, 1, d)
	assert.Zero(t, m)
}

// TestLossyGuesses: a peer that names one wrong STag after the other soon has none looked at for a time, and Sends go on.
func TestLossyGuesses(t *testing.T) {
	var clock atomic.Int64 // ns
	h := &losses{}
	r := newIdleRig(t, setup{ird: -1, ord: -1})
	l := h.lossy()
	l.now = func() time.Time { return time.Unix(0, clock.Load()) }
	r.q.SetLossy(l)
	r.connect()
	dropped, msn := 0, uint32(0)
	write := func(stag wr.STag) []byte { return rawpeer.Write(uint32(stag), r.full.at(8), filled(8)).Octets() }
	// guess names n wrong STags, each another.
	next := r.gone
	guess := func(n int) {
		for range n {
			next += 1 << 16
			r.send(write(next))
		}
		dropped += n
	}
	// requireRight: the Write to the right STag is placed, if placed says so, and the Send behind it completes.
	requireRight := func(placed bool) {
		t.Helper()
		clear(r.full.mem()[8:16])
		r.full.expect(8, make([]byte, 8))
		if placed {
			r.full.expect(8, filled(8))
		} else {
			dropped++
		}
		msn++
		r.postRecv(wr.Recv{ID: 1})
		r.send(write(r.full.stag), rawpeer.Send(msn, nil).Octets())
		require.Len(t, r.wait(r.rcq, 1), 1)
		r.requireMemory()
		d, m := h.counts()
		require.Equal(t, dropped, d)
		require.Zero(t, m)
	}
	for range 100 { // a program that has yet to learn that its memory is gone
		r.send(write(r.gone))
	}
	dropped += 100
	requireRight(true)
	guess(freeGuesses - 2)
	requireRight(true)
	for blind, i := leastBlind, 0; i < 13; blind, i = min(2*blind, mostBlind), i+1 {
		guess(1)
		requireRight(false)
		guess(60) // none of them counts
		clock.Add(int64(blind - 1))
		requireRight(false)
		clock.Add(1)
		requireRight(true)
	}
	r.requireGoesOn()
}
