package qp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/mpa"
	"github.com/softrnic/softrnic/wr"
)

// ok is the successful completions of these requests.
func ok(ids ...uint64) (out []comp) {
	for _, id := range ids {
		out = append(out, comp{ID: id})
	}
	return out
}

func bindOf(id uint64, b *wr.BindRequest) wr.Request {
	return wr.Request{ID: id, Op: wr.OpBind, Bind: b}
}

func invalidate(id uint64, s wr.STag, f wr.Flags) wr.Request {
	return wr.Request{ID: id, Op: wr.OpInvalidate, Invalidate: s, Flags: f}
}

func fastOf(id uint64, f *wr.FastRegisterRequest) wr.Request {
	return wr.Request{ID: id, Op: wr.OpFastRegister, FastRegister: f}
}

// TestBindAndInvalidate is the life of a window on its queue pair (verbs draft
// 7.10): the peer may use it from the Bind to the Invalidate.
func TestBindAndInvalidate(t *testing.T) {
	r := newRig(t, setup{})
	b := r.goodBind()
	for round := range 3 {
		b.Window = wr.MakeSTag(b.Window.Index(), uint8(round)) // RV-7.10.2: the key is the Consumer's
		r.postSend(bindOf(1, b))
		require.Equal(t, ok(1), r.wait(r.scq, 1))
		r.send(rawpeer.Write(uint32(b.Window), b.VA+8, filled(20)).Octets(), readRequest(uint32(round+1), 20, b.Window, b.VA+8).Octets())
		require.Equal(t, rawpeer.ReadResponse(0x5151, 0x6262, filled(20)).Octets(), r.next(), "memory operations send nothing")
		r.windowed.expect(24, filled(20))
		r.postSend(invalidate(2, b.Window, 0))
		require.Equal(t, ok(2), r.wait(r.scq, 1))
		info, err := r.tab.QueryWindow(b.Window)
		require.NoError(t, err)
		require.False(t, info.Valid)
	}
	bad := rawpeer.Write(uint32(b.Window), b.VA+8, filled(4)).Octets()
	r.send(bad)
	require.Equal(t, terminate(0x1100, echoDDP, bad), r.next())
	r.requireMemory()
}

// TestFastRegister gives an STag new memory again and again (verbs draft 7.3.2.5).
func TestFastRegister(t *testing.T) {
	var c setup
	privileged(&c)
	r := newRig(t, c)
	f := r.goodFast()
	for round := range uint32(3) {
		pages := r.pages(2)
		f.Buffers.Addresses = pages.Addresses()
		f.STag = wr.MakeSTag(f.STag.Index(), uint8(round))
		copy(pages.Bytes()[100:], filled(40))
		r.postSend(
			fastOf(1, f),
			wr.Request{ID: 2, SGL: []wr.SGE{{STag: f.STag, TO: f.VA, Length: 40}}},
			invalidate(3, f.STag, 0),
		)
		require.Equal(t, rawpeer.Send(round+1, filled(40)).Octets(), r.next())
		require.Equal(t, ok(1, 2, 3), r.wait(r.scq, 3))
	}
}

// TestMemoryOperationsInOrder posts all at once: each takes effect before the next
// request, and after the ones before it have their data (verbs draft 8.2.2.1).
func TestMemoryOperationsInOrder(t *testing.T) {
	var c setup
	privileged(&c)
	for name, crc := range map[string]bool{"gathered": false, "copied": true} {
		t.Run(name, func(t *testing.T) {
			c.crc = crc
			r := newRig(t, c)
			f := *r.goodFast()
			var list []wr.Request
			for i := range byte(3) {
				pages := r.pages(2)
				for j := range pages.Bytes() {
					pages.Bytes()[j] = 'a' + i
				}
				f.Buffers.Addresses = pages.Addresses()
				now := f
				list = append(list,
					fastOf(uint64(len(list)), &now),
					wr.Request{ID: uint64(len(list) + 1), SGL: []wr.SGE{{STag: f.STag, TO: f.VA, Length: 3000}}},
					invalidate(uint64(len(list)+2), f.STag, 0))
			}
			r.postSend(list...)
			for i := range uint32(3) {
				seg, err := r.peer.Segment()
				require.NoError(t, err)
				require.Equal(t, i+1, seg.MSN())
				require.Len(t, seg.Payload(), 3000)
				require.Equal(t, byte('a'+i), seg.Payload()[2999])
			}
			require.Equal(t, ok(0, 1, 2, 3, 4, 5, 6, 7, 8), r.wait(r.scq, 9))
		})
	}
}

// TestInvalidateWaitsForWhatIsFramed: without the Local Fence an Invalidate does
// not cut off an earlier Send or Write from its region, however slow the peer is,
// and does not wait for an earlier Read (verbs draft 8.2.2.2).
func TestInvalidateWaitsForWhatIsFramed(t *testing.T) {
	r, s := stalled(t, setup{}) // 1: Read, outstanding; 2: Send of s, stuck; 3: Send
	r.postSend(invalidate(4, s, 0), wr.Request{ID: 5})
	r.s.tx.tryTransmit()
	info, err := r.tab.QueryRegion(s)
	require.NoError(t, err)
	require.True(t, info.Valid, "2 is not out")
	r.next() // the Read Request
	total := 0
	for {
		seg, err := r.peer.Segment()
		require.NoError(t, err)
		total += len(seg.Payload())
		if seg.Last() {
			break
		}
	}
	require.Equal(t, 32<<20, total)
	require.Equal(t, rawpeer.Send(2, nil).Octets(), r.next())
	require.Equal(t, rawpeer.Send(3, nil).Octets(), r.next(), "5 goes on though the Read is outstanding")
	info, err = r.tab.QueryRegion(s)
	require.NoError(t, err)
	require.False(t, info.Valid)
	require.Zero(t, r.scq.Len(), "all wait for the Read")
	r.full.expect(0, filled(8))
	r.send(rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(0), filled(8)).Octets())
	require.Equal(t, ok(1, 2, 3, 4, 5), r.wait(r.scq, 5))
}

// TestInvalidateIsNotStarved: while an Invalidate waits for what is framed,
// answers to the peer's Reads do not make that more.
func TestInvalidateIsNotStarved(t *testing.T) {
	r := newRig(t, setup{})
	r.s.tx.mu.Lock()
	r.send(goodRead(1)(r), goodRead(2)(r), goodRead(3)(r), goodRead(4)(r))
	require.Eventually(t, func() bool { return r.s.irrq.len() == 4 }, patience, time.Millisecond)
	r.postSend(wr.Request{ID: 1}, invalidate(2, r.private.stag, 0))
	r.s.tx.fill()
	assert.GreaterOrEqual(t, r.s.irrq.len(), 2, "it stops at the Invalidate")
	assert.EqualValues(t, 1, r.s.tx.next)
	r.s.tx.readsUp = true          // the answers' turn
	assert.True(t, r.s.tx.pump(1)) // writes the batch, and is told to stop
	r.s.tx.fill()
	assert.EqualValues(t, 2, r.s.tx.next, "the Invalidate comes before any answer")
	r.s.tx.mu.Unlock()
	r.s.tx.tryTransmit()
	require.Equal(t, ok(1, 2), r.wait(r.scq, 2))
	for range 5 {
		r.next()
	}
}

// TestLocalFence holds an Invalidate back until everything before it is complete,
// and everything behind it (verbs draft 8.2.2.2, figure 22).
func TestLocalFence(t *testing.T) {
	read := func(r *rig) wr.Request {
		return wr.Request{ID: 1, Op: wr.OpRead, Local: r.full.sge(0, 4), Remote: wr.Remote{STag: 5}}
	}
	t.Run("behind a Read", func(t *testing.T) {
		r := newRig(t, setup{})
		r.postSend(read(r), invalidate(2, r.private.stag, wr.LocalFence), wr.Request{ID: 3})
		r.next()
		require.True(t, r.peer.Silent(20*time.Millisecond))
		info, err := r.tab.QueryRegion(r.private.stag)
		require.NoError(t, err)
		require.True(t, info.Valid)
		r.full.expect(0, filled(4))
		r.send(rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(0), filled(4)).Octets())
		require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
		require.Equal(t, ok(1, 2, 3), r.wait(r.scq, 3))
	})
	t.Run("without it", func(t *testing.T) {
		r := newRig(t, setup{})
		r.postSend(read(r), invalidate(2, r.private.stag, 0), wr.Request{ID: 3})
		r.next()
		require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
		info, err := r.tab.QueryRegion(r.private.stag)
		require.NoError(t, err)
		require.False(t, info.Valid)
		require.Zero(t, r.scq.Len())
	})
	t.Run("behind a Send and memory operations", func(t *testing.T) {
		r := newRig(t, setup{})
		b := r.goodBind()
		r.postSend(
			wr.Request{ID: 1}, invalidate(2, r.private.stag, wr.LocalFence), bindOf(3, b),
			invalidate(4, b.Window, wr.LocalFence), invalidate(5, b.Window, wr.LocalFence),
		)
		require.Equal(t, ok(1, 2, 3, 4, 5), r.wait(r.scq, 5))
	})
	t.Run("on others it means nothing", func(t *testing.T) {
		r := newRig(t, setup{})
		r.postSend(read(r), wr.Request{ID: 2, Flags: wr.LocalFence}, wr.Request{ID: 3, Op: wr.OpBind, Flags: wr.LocalFence | wr.ReadFence, Bind: r.goodBind()}, wr.Request{ID: 4})
		r.next()
		require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
		require.Equal(t, rawpeer.Send(2, nil).Octets(), r.next())
	})
}

// TestMemoryBehindTheGate: a Responder that may not send yet does what sends
// nothing, up to the first request that sends.
func TestMemoryBehindTheGate(t *testing.T) {
	r := newRig(t, setup{role: mpa.Responder})
	b := r.goodBind()
	r.postSend(bindOf(1, b), wr.Request{ID: 2}, invalidate(3, b.Window, 0))
	require.Equal(t, ok(1), r.wait(r.scq, 1))
	require.True(t, r.peer.Silent(20*time.Millisecond))
	require.Zero(t, r.scq.Len())
	r.openGate()
	require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
	require.Equal(t, ok(2, 3), r.wait(r.scq, 2))
}

// TestMemoryOverPipe: a stream that is written from transmitLoop only.
func TestMemoryOverPipe(t *testing.T) {
	r := newRig(t, setup{pipe: true})
	b := r.goodBind()
	r.postSend(bindOf(1, b), wr.Request{ID: 2}, invalidate(3, b.Window, wr.LocalFence))
	require.Equal(t, ok(1), r.wait(r.scq, 1), "though the peer takes nothing")
	require.Equal(t, rawpeer.Send(1, nil).Octets(), r.next())
	require.Equal(t, ok(2, 3), r.wait(r.scq, 2))
}

// TestZeroSTag sends from physical memory on a privileged queue pair (verbs draft
// 7.2.1).
func TestZeroSTag(t *testing.T) {
	var c setup
	privileged(&c)
	r := newRig(t, c)
	p := r.pages(2)
	copy(p.Bytes(), filled(100))
	r.postSend(wr.Request{ID: 1, SGL: []wr.SGE{{TO: p.Address(0), Length: 100}}})
	require.Equal(t, rawpeer.Send(1, filled(100)).Octets(), r.next())
	require.Equal(t, ok(1), r.wait(r.scq, 1))
}

// TestReadIntoAWindow has the answer of a Read placed through the queue pair's own
// window.
func TestReadIntoAWindow(t *testing.T) {
	r := newRig(t, setup{})
	b := r.goodBind()
	r.postSend(bindOf(1, b), wr.Request{ID: 2, Op: wr.OpRead, Local: wr.SGE{STag: b.Window, TO: b.VA, Length: 8}, Remote: wr.Remote{STag: 5}})
	r.next()
	r.send(rawpeer.ReadResponse(uint32(b.Window), b.VA, filled(8)).Octets())
	require.Equal(t, ok(1, 2), r.wait(r.scq, 2))
	r.windowed.expect(16, filled(8))
	r.requireMemory()
	r.postSend(invalidate(3, b.Window, 0))
	r.wait(r.scq, 1)
}

// TestFaultBehindMemoryOperation: what was executed before a fault completes, also
// if nothing was to be sent for it.
func TestFaultBehindMemoryOperation(t *testing.T) {
	r := newIdleRig(t, setup{})
	b := r.goodBind()
	r.postSend(bindOf(1, b), bindOf(2, b), wr.Request{ID: 3})
	r.connect()
	require.Equal(t, terminate(0, echoNone, nil), r.next())
	require.Equal(t, []comp{{1, wr.StatusSuccess, 0}, {2, wr.StatusSTagNotInvalid, 0}, {3, wr.StatusFlushed, 0}}, r.wait(r.scq, 3))
	require.ErrorIs(t, r.q.Destroy(), wr.ErrWindowsBound)
	require.NoError(t, r.tab.Deallocate(b.Window))
}

// TestRevokedBehindMemoryOperation: the region of a Send that is stuck goes, with
// an Invalidate behind it: the Send is at fault.
func TestRevokedBehindMemoryOperation(t *testing.T) {
	r, s := stalled(t, setup{})
	r.postSend(invalidate(4, r.private.stag, 0))
	require.NoError(t, r.tab.Deallocate(s))
	_, _, err := r.peer.End()
	require.NoError(t, err)
	require.NoError(t, r.peer.Close())
	r.over()
	require.Equal(t, []comp{{1, wr.StatusFlushed, 0}, {2, wr.StatusInvalidSTag, 0}, {3, wr.StatusFlushed, 0}, {4, wr.StatusFlushed, 0}}, r.all(r.scq))
}

// TestPrivilegedQPsRemote: privileges are for this side's requests, not the peer's.
func TestPrivilegedQPsRemote(t *testing.T) {
	var c setup
	privileged(&c)
	r := newRig(t, c)
	p := r.pages(1)
	bad := rawpeer.Write(0, p.Address(0), filled(4)).Octets()
	r.send(bad)
	require.Equal(t, terminate(0x1100, echoDDP, bad), r.next())
	require.Equal(t, make([]byte, 4), p.Bytes()[:4])
}
