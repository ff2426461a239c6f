package qp

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/cq"
	"github.com/softrnic/softrnic/internal/test/rawpeer"
	"github.com/softrnic/softrnic/stag"
	"github.com/softrnic/softrnic/wr"
)

// TestRing does at random what a plain slice does too.
func TestRing(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	r, size := newRing[int](2), 2
	var want []int
	most := 1
	for i := range 5000 {
		switch rng.IntN(4) {
		case 0:
			if len(want) > 0 {
				r.pop()
				want = want[1:]
			}
		case 1:
			n := rng.IntN(9)
			ok := n >= len(want)
			require.Equal(t, ok, r.resize(n))
			if ok {
				size = n
			}
		default:
			ok := len(want) < size
			require.Equal(t, ok, r.push(i))
			if ok {
				want = append(want, i)
			}
		}
		most = max(most, len(want))
		require.LessOrEqual(t, len(r.items), 2*most, "no more than there have been, or nearly")
		require.Equal(t, size, r.size())
		require.Equal(t, len(want), r.len())
		if len(want) == 0 {
			require.Nil(t, r.first())
		} else {
			require.Equal(t, want[0], *r.first())
		}
		var got []int
		r.each(func(v *int) bool { got = append(got, *v); return len(got) < 3 })
		require.Equal(t, append([]int(nil), want[:min(3, len(want))]...), got)
	}
}

// TestIRDResize changes IRD while RDMA Read Requests wait for their answers: they
// are answered all the same, and the new limit holds (verbs draft 6.5).
func TestIRDResize(t *testing.T) {
	r := newRig(t, setup{ird: 2})
	modify := func(ird int) error { return r.q.Modify(Modify{Next: wr.StateRTS, IRD: &ird}) }
	queued := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return r.s.irrq.len() == n }, patience, 1e6)
	}
	r.s.tx.mu.Lock() // the transmit side answers nothing
	r.send(goodRead(1)(r), goodRead(2)(r))
	queued(2)
	before := r.q.Query()
	require.ErrorIs(t, modify(1), wr.ErrShrinkFailed)
	require.Equal(t, before, r.q.Query())
	require.NoError(t, modify(3))
	require.Equal(t, 3, r.q.Query().IRD)
	r.send(goodRead(3)(r))
	queued(3)
	r.s.tx.mu.Unlock()
	r.s.tx.tryTransmit()
	for range 3 {
		require.Equal(t, rawpeer.ReadResponse(0x5151, 0x6262, r.full.mem()[:4]).Octets(), r.next())
	}
	queued(0)
	require.NoError(t, modify(1))

	r.s.tx.mu.Lock()
	bad := goodRead(5)(r)
	r.send(goodRead(4)(r), bad)
	<-r.s.stop
	r.s.tx.mu.Unlock()
	require.Equal(t, terminate(0x1202, echoDDP, bad), r.next(), "one is what IRD allows now")
	require.NoError(t, r.peer.Close())
	r.over()
	r.requireEvents(wr.EventIRRQTooMany)
}

// TestReadInvalidate: the STag of the sink is Invalid when the completion can be
// seen, and when a request behind a Read Fence goes out (verbs draft 8.2.2.1
// rule 2); what has no fence does not wait.
func TestReadInvalidate(t *testing.T) {
	for _, flags := range []wr.Flags{0, wr.Unsignaled} {
		r := newRig(t, setup{})
		valid := func() bool {
			info, err := r.tab.QueryRegion(r.full.stag)
			require.NoError(t, err)
			return info.Valid
		}
		r.postSend(
			wr.Request{ID: 1, Op: wr.OpReadInvalidate, Flags: flags, Local: r.full.sge(100, 20), Remote: wr.Remote{STag: 5}},
			wr.Request{ID: 2, SGL: r.private.sgl(0, 1)},
			wr.Request{ID: 3, Flags: wr.ReadFence},
		)
		r.next()
		require.Equal(t, rawpeer.Send(1, r.private.mem()[:1]).Octets(), r.next())
		first := rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(100), filled(9))
		first.More = true
		r.send(first.Octets())
		require.Eventually(t, func() bool { return r.s.rx.locked(func(rx *receiver) bool { return rx.readGot == 9 }) }, patience, 1e6)
		require.True(t, valid())
		r.send(rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(109), filled(11)).Octets())
		require.Equal(t, rawpeer.Send(2, nil).Octets(), r.next())
		require.False(t, valid(), "the fence waits for the invalidation")
		want := []comp{{1, 0, 0}, {2, 0, 0}, {3, 0, 0}}
		if flags != 0 {
			want = want[1:]
		}
		require.Equal(t, want, r.wait(r.scq, len(want)))
		r.full.expect(100, append(filled(9), filled(11)...))
		r.requireMemory()
		require.NoError(t, r.peer.CloseWrite())
		r.over()
		require.Equal(t, wr.StateIdle, r.q.State(), "nothing is left")
	}
}

// TestReadInvalidateIsFirst looks at the STag at the very moment that the
// completion is queued.
func TestReadInvalidateIsFirst(t *testing.T) {
	r := newIdleRig(t, setup{})
	seen := make(chan bool, 1)
	r.scq = cq.New(cq.Config{ID: 1, Entries: 4, Notify: func() {
		info, err := r.tab.QueryRegion(r.full.stag)
		seen <- err != nil || info.Valid
	}})
	r.newQP()
	r.connect()
	require.NoError(t, r.scq.Request(wr.NotifyNext))
	r.postSend(wr.Request{ID: 1, Op: wr.OpReadInvalidate, Local: r.full.sge(0, 4), Remote: wr.Remote{STag: 5}})
	r.next()
	r.send(rawpeer.ReadResponse(uint32(r.full.stag), r.full.at(0), filled(4)).Octets())
	require.False(t, <-seen)
}

// TestReadInvalidateRefused: the data is there, and the Read completes in error
// (figure 23, SQ Invalidate errors).
func TestReadInvalidateRefused(t *testing.T) {
	remote := wr.LocalRead | wr.LocalWrite | wr.RemoteWrite
	for name, c := range map[string]struct {
		sink   func(*rig) *slab
		size   int
		before func(*rig, *slab) // the last segment
		fault  streamFault
		status wr.Status
	}{
		"shared region": {func(r *rig) *slab {
			s := r.newSlab(stag.RegionConfig{PD: ownPD, Access: remote, Key: 10})
			_, err := r.tab.RegisterShared(s.stag, stag.SharedConfig{PD: ownPD, Access: wr.LocalRead, Addressing: wr.ZeroBased})
			require.NoError(r.t, err)
			return s
		}, 9, nil, faultInvalidateLocalSTag, wr.StatusInvalidSTag},
		"region with a window": {func(r *rig) *slab {
			s := r.newSlab(stag.RegionConfig{PD: ownPD, Access: remote | wr.BindWindow, Key: 10})
			b := wr.BindRequest{Window: unbound(r), Region: s.stag, VA: s.base, Length: 1, Access: wr.RemoteRead}
			require.Equal(r.t, stag.OK, r.tab.Bind(&b, stag.User{PD: ownPD, QP: otherQP, Windows: new(stag.Windows)}))
			return s
		}, 9, nil, faultInvalidateLocalWindows, wr.StatusInvalidSTag},
		"gone meanwhile": {
			func(r *rig) *slab { return r.full }, 9,
			func(r *rig, s *slab) { require.NoError(r.t, r.tab.Deallocate(s.stag)) }, faultInvalidateLocalSTag, wr.StatusInvalidSTag,
		},
		// With nothing to read the sink was not looked at before.
		"another PD":  {func(r *rig) *slab { return r.foreign }, 0, nil, faultInvalidateLocalPD, wr.StatusInvalidPD},
		"deallocated": {func(r *rig) *slab { return &slab{stag: r.gone} }, 0, nil, faultInvalidateLocalSTag, wr.StatusInvalidSTag},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, setup{})
			s := c.sink(r)
			r.postRecv(wr.Recv{ID: 9})
			r.postSend(
				wr.Request{ID: 1, Op: wr.OpReadInvalidate, Local: s.sge(0, c.size), Remote: wr.Remote{STag: 5}},
				wr.Request{ID: 2, Flags: wr.ReadFence},
			)
			r.next()
			if c.size > 0 {
				data := rawpeer.ReadResponse(uint32(s.stag), s.at(0), filled(c.size))
				data.More = true
				r.send(data.Octets())
				s.expect(0, filled(c.size))
				require.Eventually(t, func() bool { return r.s.rx.locked(func(rx *receiver) bool { return rx.readGot > 0 }) }, patience, 1e6)
			}
			if c.before != nil {
				c.before(r, s)
			}
			r.send(rawpeer.ReadResponse(0, 0, nil).Octets())
			require.Equal(t, terminate(0, echoNone, nil), r.next(), "and not what is behind the fence")
			require.NoError(t, r.peer.Close())
			r.over()
			require.Equal(t, c.fault, r.s.cause.fault)
			require.Equal(t, []comp{{1, c.status, 0}, {2, wr.StatusFlushed, 0}}, r.all(r.scq))
			require.Equal(t, flushed(9), r.all(r.rcq))
			r.requireEvents()
			r.requireMemory()
		})
	}
}
