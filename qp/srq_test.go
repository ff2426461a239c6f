package qp

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/srq"
	"github.com/softrnic/softrnic/wr"
)

// sharedQueue is an S-RQ of 8 receives, whose events go to log.
type sharedQueue struct {
	*srq.Queue
	t   testing.TB
	mu  sync.Mutex
	log []wr.EventID
}

func newShared(t testing.TB, pd wr.PDID) *sharedQueue {
	q := &sharedQueue{t: t}
	q.Queue = srq.New(srq.Config{ID: 5, PD: pd, Depth: 8, SGE: 4, Events: func(e wr.Event) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.log = append(q.log, e.ID)
	}})
	return q
}

func (q *sharedQueue) post(w ...wr.Recv) {
	q.t.Helper()
	n, err := q.Post(w...)
	require.NoError(q.t, err)
	require.Equal(q.t, len(w), n)
}

// left takes what is posted, as no queue pair would.
func (q *sharedQueue) left() (ids []uint64) {
	for {
		e, _ := q.Take()
		if e == nil {
			return ids
		}
		ids = append(ids, e.ID)
		e.Release(0)
	}
}

// sharing is a setup whose receives come from q.
func sharing(q *sharedQueue) setup {
	return setup{config: func(c *Config) { c.SRQ = q.Queue }}
}

// part is a segment of Send 1 that is not its last.
func part(p []byte) []byte {
	return rawpeer.Segment{More: true, Op: rdmap.Send, MSN: 1, Payload: p}.Octets()
}

// TestSharedReceives has two queue pairs receive from one S-RQ, their messages
// interleaved. A receive is taken with the first segment and completes on the
// queue pair's own CQ (verbs draft 6.3.5).
func TestSharedReceives(t *testing.T) {
	shared := newShared(t, ownPD)
	a := newRig(t, sharing(shared))
	b := a.sibling(20)
	shared.post(
		wr.Recv{ID: 1, SGL: []wr.SGE{a.full.sge(0, 10), {}, a.full.sge(20, 30)}},
		wr.Recv{ID: 2, SGL: a.private.sgl(0, 40)},
		wr.Recv{ID: 3},
	)
	a.send(part(filled(15)))
	require.Eventually(t, func() bool { return a.s.rx.locked(func(r *receiver) bool { return r.recv.open }) }, patience, 1e6)
	b.send(rawpeer.Send(1, filled(40)).Octets())
	require.Equal(t, []comp{{2, 0, 40}}, b.wait(b.rcq, 1), "1 is taken, though its message is not complete")
	a.send(rawpeer.Segment{Op: rdmap.Send, MSN: 1, MO: 15, Payload: filled(15)}.Octets())
	var c [1]wr.Completion
	n, err := a.rcq.Wait(t.Context(), c[:])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, wr.Completion{ID: 1, QP: ownQP, Op: wr.OpRecv, Bytes: 30}, c[0])
	b.send(rawpeer.Send(2, nil).Octets())
	require.Equal(t, []comp{{3, 0, 0}}, b.wait(b.rcq, 1))

	a.private.expect(0, filled(40))
	a.full.expect(0, filled(10))
	a.full.expect(20, append(filled(15)[10:], filled(15)...))
	a.requireMemory()
	shared.post(make([]wr.Recv, 8)...) // every slot is free again
	for _, r := range []*rig{a, b} {
		assert.Equal(t, wr.StateRTS, r.q.State())
		r.requireEvents()
	}
}

// locked looks at the receive side while nobody owns it.
func (r *receiver) locked(f func(*receiver) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return f(r)
}

// TestSharedProtection: the buffers of a receive belong to the PD of the S-RQ, not
// to the queue pair's (RV-6.3.5-M11, M12). The queue pair has its own for all else.
func TestSharedProtection(t *testing.T) {
	shared := newShared(t, otherPD)
	r := newRig(t, sharing(shared))
	b := r.sibling(20)
	shared.post(
		wr.Recv{ID: 1, SGL: r.foreign.sgl(0, 9)}, // a region of otherPD
		wr.Recv{ID: 2, SGL: r.full.sgl(0, 9)},    // the queue pair's PD
		wr.Recv{ID: 3, SGL: []wr.SGE{{Length: 9}}},
	)
	r.send(rawpeer.Send(1, filled(9)).Octets())
	r.foreign.expect(0, filled(9))
	require.Equal(t, []comp{{1, 0, 9}}, r.wait(r.rcq, 1))
	r.send(rawpeer.Send(2, filled(9)).Octets())
	require.Equal(t, terminate(0, echoNone, nil), r.next())
	require.NoError(t, r.peer.Close())
	r.over()
	require.Equal(t, faultRQPD, r.s.cause.fault)
	require.Equal(t, []comp{{2, wr.StatusInvalidPD, 0}}, r.all(r.rcq))

	bad := rawpeer.Write(uint32(r.foreign.stag), r.foreign.at(0), filled(1)).Octets()
	b.send(bad)
	require.Equal(t, terminate(0x1102, echoDDP, bad), b.next(), "remote access is the queue pair's own PD")
	require.Equal(t, []uint64{3}, shared.left())
	r.requireMemory()
}

// TestSharedZeroSTag: a receive to the STag of zero fails the queue pair that
// takes it, if that one is not privileged (RV-6.3.5-M14).
func TestSharedZeroSTag(t *testing.T) {
	shared := newShared(t, otherPD)
	r := newRig(t, sharing(shared))
	pages, err := r.tab.AllocatePages(1, 4096)
	require.NoError(t, err)
	sgl := []wr.SGE{{TO: pages.Addresses()[0] + 8, Length: 9}}
	shared.post(wr.Recv{ID: 1, SGL: sgl}, wr.Recv{ID: 2, SGL: sgl})

	r.set.config = func(c *Config) { c.SRQ, c.Privileged = shared.Queue, true }
	b := r.sibling(20)
	b.send(rawpeer.Send(1, filled(9)).Octets())
	require.Equal(t, []comp{{1, 0, 9}}, b.wait(b.rcq, 1))
	require.Equal(t, filled(9), pages.Bytes()[8:17])

	r.send(rawpeer.Send(1, filled(8)).Octets())
	require.Equal(t, terminate(0, echoNone, nil), r.next())
	require.NoError(t, r.peer.Close())
	r.over()
	require.Equal(t, faultRQSTag, r.s.cause.fault)
	require.Equal(t, []comp{{2, wr.StatusInvalidSTag, 0}}, r.all(r.rcq))
	require.Equal(t, filled(9), pages.Bytes()[8:17], "nothing placed")
	assert.Equal(t, wr.StateRTS, b.q.State())
}

// TestSharedRefusesPostRecv (RV-6.3.5-M3), in every state there is.
func TestSharedRefusesPostRecv(t *testing.T) {
	shared := newShared(t, ownPD)
	r := newIdleRig(t, sharing(shared))
	refused := func() {
		t.Helper()
		n, err := r.q.PostRecv(wr.Recv{})
		require.ErrorIs(t, err, wr.ErrRQUsesSRQ)
		require.Zero(t, n)
	}
	refused()
	r.connect()
	refused()
	require.NoError(t, r.q.Modify(Modify{Next: wr.StateError}))
	refused()
	require.NoError(t, r.q.Destroy())
	_, err := r.q.PostRecv(wr.Recv{})
	require.ErrorIs(t, err, wr.ErrInvalidQP)
	require.Empty(t, r.all(r.rcq))
}

// TestSharedEndings are the ways a queue pair ends, with a message in progress and
// without one. Of the S-RQ it completes the one receive that it has taken, if any;
// the others stay for another queue pair (RV-6.3.6-M3, M4, M7).
func TestSharedEndings(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(*rig)
		status wr.Status // of the receive taken
		event  wr.EventID
		state  wr.State
	}{
		"Modify to Error": {func(r *rig) { require.NoError(r.t, r.q.Modify(Modify{Next: wr.StateError})) }, wr.StatusFlushed, 0, wr.StateError},
		"Modify to Closing": {func(r *rig) {
			require.NoError(r.t, r.q.Modify(Modify{Next: wr.StateClosing}))
			require.NoError(r.t, r.peer.Close())
		}, wr.StatusFlushed, wr.EventLLPCloseComplete, wr.StateIdle},
		"Modify to Terminate": {func(r *rig) {
			require.NoError(r.t, r.q.Modify(Modify{Next: wr.StateTerminate}))
			r.next()
			require.NoError(r.t, r.peer.Close())
		}, wr.StatusFlushed, 0, wr.StateError},
		"Destroy":     {func(r *rig) { require.NoError(r.t, r.q.Destroy()) }, wr.StatusFlushed, 0, wr.StateError},
		"peer resets": {func(r *rig) { require.NoError(r.t, r.peer.Reset()) }, wr.StatusFlushed, wr.EventLLPReset, wr.StateError},
		"peer closes": {func(r *rig) { require.NoError(r.t, r.peer.CloseWrite()) }, wr.StatusFlushed, wr.EventLLPCloseComplete, wr.StateIdle},
		"peer breaks the protocol": {func(r *rig) {
			r.send(rawpeer.Send(9, nil).Octets())
			r.next()
			require.NoError(r.t, r.peer.Close())
		}, wr.StatusFlushed, wr.EventRQMSNRange, wr.StateError},
	} {
		for _, taken := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				shared := newShared(t, ownPD)
				r := newRig(t, sharing(shared))
				b := r.sibling(20)
				shared.post(wr.Recv{ID: 1, SGL: r.full.sgl(0, 40)}, wr.Recv{ID: 2}, wr.Recv{ID: 3})
				want, left := []comp(nil), []uint64{2, 3}
				if taken {
					r.send(part(filled(9)))
					r.full.expect(0, filled(9))
					require.Eventually(t, func() bool { return r.s.rx.locked(func(rx *receiver) bool { return rx.recv.open }) }, patience, 1e6)
					want = []comp{{1, c.status, 0}}
				} else {
					left = []uint64{1, 2, 3}
				}
				c.do(r)
				r.over()
				require.Equal(t, c.state, r.q.State())
				require.Equal(t, want, r.all(r.rcq))
				if c.event == 0 {
					r.requireEvents()
				} else {
					r.requireEvents(c.event)
				}
				require.Equal(t, wr.StateRTS, b.q.State())
				b.send(rawpeer.Send(1, nil).Octets())
				require.Equal(t, []comp{{left[0], 0, 0}}, b.wait(b.rcq, 1))
				require.Equal(t, left[1:], shared.left())
				shared.post(make([]wr.Recv, 8)...) // no slot is lost
				r.requireMemory()
			})
		}
	}
}

// TestSharedAtFault: a receive that is itself at fault says so; others do not
// notice.
func TestSharedAtFault(t *testing.T) {
	for name, c := range map[string]struct {
		sgl    func(*rig) []wr.SGE
		send   func(*rig) []byte
		fault  streamFault
		code   uint16
		echo   echo
		status wr.Status
	}{
		"too long": {
			func(r *rig) []wr.SGE { return r.full.sgl(0, 8) }, func(*rig) []byte { return rawpeer.Send(1, filled(9)).Octets() },
			faultSendTooLong, 0x1205, echoDDP, wr.StatusBaseBounds,
		},
		"no STag": {
			func(r *rig) []wr.SGE { return []wr.SGE{{STag: r.gone, Length: 9}} }, func(*rig) []byte { return rawpeer.Send(1, filled(9)).Octets() },
			faultRQSTag, 0, echoNone, wr.StatusInvalidSTag,
		},
		"refused invalidation": {
			func(*rig) []wr.SGE { return nil }, func(r *rig) []byte { return sendInvalidate(1, uint32(r.private.stag), nil).Octets() },
			faultSendInvAccess, 0x0109, echoDDP, wr.StatusInvalidateSTag,
		},
	} {
		t.Run(name, func(t *testing.T) {
			shared := newShared(t, ownPD)
			r := newRig(t, sharing(shared))
			shared.post(wr.Recv{ID: 1, SGL: c.sgl(r)}, wr.Recv{ID: 2})
			bad := c.send(r)
			r.send(bad)
			require.Equal(t, terminate(c.code, c.echo, bad), r.next())
			require.NoError(t, r.peer.Close())
			r.over()
			require.Equal(t, c.fault, r.s.cause.fault)
			require.Equal(t, []comp{{1, c.status, 0}}, r.all(r.rcq))
			require.Equal(t, []uint64{2}, shared.left())
			r.requireEvents()
			r.requireMemory()
		})
	}
}

// TestSharedEmpty: without a receive on the S-RQ the stream ends as without one on
// the RQ (draft 6.3.5), and a message that is not the one due takes none.
func TestSharedEmpty(t *testing.T) {
	shared := newShared(t, ownPD)
	r := newRig(t, sharing(shared))
	b := r.sibling(20)
	bad := rawpeer.Send(1, nil).Octets()
	r.send(bad)
	require.Equal(t, terminate(0x1202, echoDDP, bad), r.next())
	require.NoError(t, r.peer.Close())
	r.over()
	r.requireEvents(wr.EventRQMSNRange)

	shared.post(wr.Recv{ID: 1})
	bad = rawpeer.Send(2, nil).Octets()
	b.send(bad)
	require.Equal(t, terminate(0x1203, echoDDP, bad), b.next())
	require.NoError(t, b.peer.Close())
	b.over()
	require.Equal(t, []uint64{1}, shared.left())
	require.Empty(t, b.all(b.rcq))
}
