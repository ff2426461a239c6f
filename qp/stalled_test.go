package qp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/srq"
	"github.com/softrnic/softrnic/wr"
)

// onShared is a rig on a pipe whose receives come from an S-RQ of n.
func onShared(t *testing.T, n int, timeout time.Duration) (*rig, *srq.Queue) {
	q := srq.New(srq.Config{ID: 5, PD: ownPD, Depth: n, SGE: 1, StallTimeout: timeout})
	r := newRig(t, setup{pipe: true, patience: time.Hour, config: func(c *Config) { c.SRQ = q }})
	for i := range n {
		_, err := q.Post(wr.Recv{ID: uint64(i + 1), SGL: r.private.sgl(100*i, 100)})
		require.NoError(t, err)
	}
	return r, q
}

// more is a segment of Send 1 behind mo octets of it, and not its last.
func more(mo int, p []byte) []byte {
	return rawpeer.Segment{More: true, Op: rdmap.Send, MSN: 1, MO: uint32(mo), Payload: p}.Octets()
}

// stalledEnds is what follows when a message has stood still for too long.
func stalledEnds(r *rig, id uint64) {
	r.t.Helper()
	require.Equal(r.t, terminate(0x0207, echoNone, nil), r.next())
	require.NoError(r.t, r.peer.Close())
	r.over()
	assert.Equal(r.t, faultStalled, r.s.cause.fault)
	assert.Equal(r.t, wr.StateError, r.q.State())
	r.requireEvents(wr.EventSRQStalled)
	assert.Equal(r.t, flushed(id), r.all(r.rcq))
}

// stalledMessage: a message that takes a receive of an S-RQ and does not go on ends its
// own stream, and no other.
func stalledMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := onShared(t, 2, 0)
		b := a.sibling(20)
		time.Sleep(time.Hour) // the watchdog rests
		start := time.Now()
		a.send(more(0, filled(9)))
		stalledEnds(a, 1)
		took := time.Since(start)
		assert.GreaterOrEqual(t, took, srq.DefaultStallTimeout)
		assert.LessOrEqual(t, took, srq.DefaultStallTimeout*5/4)
		b.send(rawpeer.Send(1, filled(9)).Octets())
		require.Equal(t, []comp{{2, wr.StatusSuccess, 9}}, b.wait(b.rcq, 1))
		assert.Equal(t, wr.StateRTS, b.q.State())
		b.requireEvents()
	})
}

// TestSlowMessage: an octet now and then is progress, an empty segment is none, and
// neither is an RDMA Write.
func TestSlowMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := onShared(t, 1, time.Minute)
		a.sibling(20)
		mo := 0
		for ; mo < 50; mo++ {
			a.send(more(mo, []byte{1}))
			time.Sleep(55 * time.Second)
		}
		a.requireEvents()
		require.Equal(t, wr.StateRTS, a.q.State())
		ends := make(chan struct{})
		go func() {
			defer close(ends)
			stalledEnds(a, 1)
		}()
		start := time.Now()
		for a.q.State() == wr.StateRTS {
			_ = a.peer.Send(more(mo, nil))
			_ = a.peer.Send(rawpeer.Write(uint32(a.full.stag), a.full.at(0), []byte{1}).Octets())
			time.Sleep(time.Second)
		}
		<-ends
		assert.LessOrEqual(t, time.Since(start), time.Minute*5/4+time.Second)
	})
}

// TestStalledAlone: who has the S-RQ for itself takes its time, until somebody else
// comes.
func TestStalledAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := onShared(t, 2, 0)
		a.send(more(0, filled(9)))
		time.Sleep(time.Hour)
		require.Equal(t, wr.StateRTS, a.q.State())
		b := a.sibling(20)
		stalledEnds(a, 1)
		b.requireEvents()
	})
}

// TestStalledNever is what a negative StallTimeout asks for.
func TestStalledNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := onShared(t, 2, -1)
		a.sibling(20)
		a.send(more(0, filled(9)))
		time.Sleep(time.Hour)
		a.send(rawpeer.Segment{Op: rdmap.Send, MSN: 1, MO: 9, Payload: filled(9)}.Octets())
		require.Equal(t, []comp{{1, wr.StatusSuccess, 18}}, a.wait(a.rcq, 1))
		a.requireEvents()
	})
}

// TestHoarders: peers that begin messages and do not end them keep the receives of an
// S-RQ for a while and no longer, be it by half a segment.
func TestHoarders(t *testing.T) {
	const n = 4
	q := srq.New(srq.Config{ID: 5, PD: ownPD, Depth: n, SGE: 1, StallTimeout: 100 * time.Millisecond})
	a := newRig(t, setup{config: func(c *Config) {
		c.SRQ, c.GracefulReceive, c.Tuning.Direct = q, true, 1
	}})
	for i := range n {
		_, err := q.Post(wr.Recv{ID: uint64(i), SGL: a.full.sgl(100*i, 100)})
		require.NoError(t, err)
	}
	honest := a.sibling(99)
	hoarders := []*rig{a}
	for i := range n - 1 {
		hoarders = append(hoarders, a.sibling(wr.QPID(20+i)))
	}
	for i, r := range hoarders {
		fpdu := r.peer.Frame(more(0, filled(90)))
		if i%2 == 0 {
			fpdu = fpdu[:60]
		}
		require.NoError(t, r.peer.Raw(fpdu))
	}
	for _, r := range hoarders {
		require.Equal(t, terminate(0x0207, echoNone, nil), r.next())
		require.NoError(t, r.peer.Close())
		r.over()
		r.requireEvents(wr.EventSRQStalled)
		got := r.all(r.rcq)
		require.Len(t, got, 1)
		require.Equal(t, wr.StatusFlushed, got[0].Status)
		_, err := q.Post(wr.Recv{ID: 50 + got[0].ID, SGL: honest.full.sgl(0, 100)})
		require.NoError(t, err)
	}
	for i := range n {
		honest.send(rawpeer.Send(uint32(i+1), filled(9)).Octets())
	}
	for _, c := range honest.wait(honest.rcq, n) {
		require.Equal(t, wr.StatusSuccess, c.Status)
		require.GreaterOrEqual(t, c.ID, uint64(50))
	}
	honest.requireEvents()
}

// TestFillingInTransit: what is read straight into memory counts as it comes.
func TestFillingInTransit(t *testing.T) {
	q := srq.New(srq.Config{ID: 5, PD: ownPD, Depth: 1, SGE: 1})
	r := newRig(t, setup{config: func(c *Config) {
		c.SRQ, c.Tuning.Direct = q, 1
	}})
	_, err := q.Post(wr.Recv{ID: 1, SGL: r.full.sgl(0, 200)})
	require.NoError(t, err)
	placed := func() int { return int(r.s.rx.PartialReceive()&(1<<32-1)) - 1 }
	require.Equal(t, -1, placed(), "no message")
	sent := 0
	send := func(b []byte) {
		require.NoError(t, r.peer.Raw(b))
		sent += len(b)
		require.Eventually(t, func() bool { return placed() == sent-20 }, patience, time.Millisecond, "all but the headers")
	}
	fpdu := r.peer.Frame(more(0, filled(90)))
	send(fpdu[:30])
	require.True(t, r.inTransit())
	send(fpdu[30:70])
	send(fpdu[70:109])
	require.NoError(t, r.peer.Raw(fpdu[109:112])) // without its CRC field
	r.untilBuffered(112)
	require.Equal(t, 90, placed(), "all of it has come, though its FPDU is not whole")
	require.NoError(t, r.peer.Raw(fpdu[112:]))
	r.send(rawpeer.Segment{Op: rdmap.Send, MSN: 1, MO: 90}.Octets())
	require.Equal(t, []comp{{1, wr.StatusSuccess, 90}}, r.wait(r.rcq, 1))
	r.untilBuffered(0) // the receive side is done with the message
	require.Equal(t, -1, placed())
}

// hoarded is an S-RQ whose receives are all held by messages that have begun and stopped,
// and an honest stream, which has sent a Send behind them.
func hoarded(t *testing.T, timeout time.Duration, graceful bool) (hoarders []*rig, honest *rig, q *srq.Queue, sent []byte) {
	hoarders, honest, q = hoard(t, timeout, graceful)
	sent = rawpeer.Send(1, filled(9)).Octets()
	honest.send(sent)
	synctest.Wait()
	return hoarders, honest, q, sent
}

func hoard(t *testing.T, timeout time.Duration, graceful bool) (hoarders []*rig, honest *rig, q *srq.Queue) {
	const n = 64
	q = srq.New(srq.Config{ID: 5, PD: ownPD, Depth: n, SGE: 1, StallTimeout: timeout})
	a := newRig(t, setup{pipe: true, patience: time.Hour, config: func(c *Config) { c.SRQ, c.GracefulReceive = q, graceful }})
	refill(a, q, n)
	hoarders = []*rig{a}
	for i := range n - 1 {
		hoarders = append(hoarders, a.sibling(wr.QPID(100+i)))
	}
	honest = a.sibling(20)
	for _, r := range hoarders {
		r.send(more(0, filled(9)))
	}
	synctest.Wait()
	return hoarders, honest, q
}

func refill(r *rig, q *srq.Queue, n int) {
	r.t.Helper()
	for i := range n {
		_, err := q.Post(wr.Recv{ID: uint64(i + 1), SGL: r.private.sgl(60*i, 60)})
		require.NoError(r.t, err)
	}
}

// endsOf drains what the ends of stalled streams leave behind, so that their receives are the program's again.
func endsOf(hoarders []*rig) {
	for _, r := range hoarders {
		require.Equal(r.t, terminate(0x0207, echoNone, nil), r.next())
		require.NoError(r.t, r.peer.Close())
		r.over()
		require.Len(r.t, r.all(r.rcq), 1)
	}
}

// delivered waits for the completion of a receive of n octets.
func delivered(r *rig, n uint32) {
	r.t.Helper()
	got := r.wait(r.rcq, 1)
	require.Equal(r.t, []any{wr.StatusSuccess, n}, []any{got[0].Status, got[0].Bytes})
}

// TestHoardersNeighbour: an honest stream that finds all receives of an S-RQ held by others'
// messages waits, and goes on when the program has posted those that come back.
func TestHoardersNeighbour(t *testing.T) {
	for _, graceful := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			hoarders, honest, q, _ := hoarded(t, 0, graceful)
			start := time.Now()
			require.Equal(t, wr.StateRTS, honest.q.State(), "it waits")
			assert.EqualValues(t, 1, honest.q.Stats().ReceiveWaits)
			endsOf(hoarders)
			assert.LessOrEqual(t, time.Since(start), srq.DefaultStallTimeout*5/4)
			time.Sleep(srq.DefaultStallTimeout - time.Second) // the program takes its time
			require.Equal(t, wr.StateRTS, honest.q.State())
			late := hoarders[0].sibling(21) // finds the S-RQ empty now, and waits too
			late.send(rawpeer.Send(1, filled(7)).Octets())
			synctest.Wait()
			refill(honest, q, 2)
			delivered(honest, 9)
			delivered(late, 7)
			honest.requireEvents()
		})
	}
}

// TestHoardersGone: hoarders that end by themselves give their receives back to the program, for which a Send waits as well.
func TestHoardersGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hoarders, honest, q := hoard(t, 0, false)
		for _, r := range hoarders {
			require.NoError(t, r.peer.Close())
			r.over()
			require.Len(t, r.all(r.rcq), 1)
		}
		honest.send(rawpeer.Send(1, filled(9)).Octets())
		synctest.Wait()
		require.Equal(t, wr.StateRTS, honest.q.State(), "it waits")
		refill(honest, q, 1)
		delivered(honest, 9)
	})
}

// TestEmptyForGood: where no receive comes back, the stream ends as without hoarders
// (draft 6.3.5): a StallTimeout later.
func TestEmptyForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hoarders, honest, _, sent := hoarded(t, 0, false)
		endsOf(hoarders)
		start := time.Now()
		require.Equal(t, terminate(0x1202, echoDDP, sent), honest.next())
		took := time.Since(start)
		assert.GreaterOrEqual(t, took, srq.DefaultStallTimeout)
		assert.LessOrEqual(t, took, srq.DefaultStallTimeout*3/2)
		require.NoError(t, honest.peer.Close())
		honest.over()
		honest.requireEvents(wr.EventRQMSNRange)
		late := honest.sibling(21)
		late.send(sent)
		require.Equal(t, terminate(0x1202, echoDDP, sent), late.next(), "at once: nobody holds a receive")
		assert.Zero(t, late.q.Stats().ReceiveWaits)
		require.NoError(t, late.peer.Close())
		late.over()
	})
}

// TestHoardersNever: where nothing bounds how long a message keeps its receive, nobody
// waits for it.
func TestHoardersNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, honest, _, sent := hoarded(t, -1, false)
		require.Equal(t, terminate(0x1202, echoDDP, sent), honest.next())
		require.NoError(t, honest.peer.Close())
		honest.over()
		honest.requireEvents(wr.EventRQMSNRange)
	})
}

// TestDrippingHoarders: while a stream waits, an octet now and then is no progress.
func TestDrippingHoarders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hoarders, honest, q, _ := hoarded(t, 0, true)
		start := time.Now()
		mo := 9
		for hoarders[0].q.State() == wr.StateRTS {
			require.Less(t, time.Since(start), time.Minute, "they hold the receives for as long as they like")
			for _, r := range hoarders {
				_ = r.peer.Send(more(mo, []byte{1}))
			}
			mo++
			time.Sleep(time.Second)
		}
		endsOf(hoarders)
		refill(honest, q, 1)
		require.Equal(t, []comp{{1, wr.StatusSuccess, 9}}, honest.wait(honest.rcq, 1))
	})
}

// TestHoardersOnTCP: as TestHoardersNeighbour, where a message may have begun with half a segment.
func TestHoardersOnTCP(t *testing.T) {
	const n = 4
	q := srq.New(srq.Config{ID: 5, PD: ownPD, Depth: n, SGE: 1})
	a := newRig(t, setup{config: func(c *Config) { c.SRQ, c.Tuning.Direct = q, 1 }})
	refill(a, q, n)
	hoarders := []*rig{a}
	for i := range n - 1 {
		hoarders = append(hoarders, a.sibling(wr.QPID(100+i)))
	}
	honest := a.sibling(20)
	for i, r := range hoarders {
		fpdu := r.peer.Frame(more(0, filled(50)))
		if i%2 == 0 {
			fpdu = fpdu[:40]
		}
		require.NoError(t, r.peer.Raw(fpdu))
		require.Eventually(t, func() bool { return r.s.rx.PartialReceive() != 0 }, patience, time.Millisecond)
	}
	honest.send(rawpeer.Send(1, filled(9)).Octets())
	require.Eventually(t, func() bool { return honest.q.Stats().ReceiveWaits == 1 }, patience, time.Millisecond)
	for _, r := range hoarders {
		require.NoError(t, r.peer.Close())
		r.over()
		require.Len(t, r.all(r.rcq), 1)
	}
	refill(honest, q, 1)
	delivered(honest, 9)
	honest.requireEvents()
}
