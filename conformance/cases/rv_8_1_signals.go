package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_1_3_1 is signaled and unsignaled completions: verbs draft 8.1.3.1.
var rv8_1_3_1 = []conformance.Case{
	apiCase("8.1.3.1/unsignaled-on-every-qp", onIdleHostPair(unsignaledOnEveryQP), "RV-8.1.3.1-M1"),
	apiCase("8.1.3.1/receives-complete", receivesComplete, "RV-8.1.3.1-M2"),
	apiCase("8.1.3.1/flushed-though-unsignaled", flushedThoughUnsignaled, "RV-8.1.3.1-M3", "PV-8.1.3.1-M1"),
	apiCase("8.1.3.1/room-comes-back", onIdleHostPair(roomComesBack), "RV-8.1.3.1-M4"),
}

// unsignaledOnEveryQP has each operation done without a completion, on queue pairs of
// each kind, and sees that it was done.
func unsignaledOnEveryQP(t *conformance.T, w *hostPair) {
	n, far := w.a, w.b
	srq, farSRQ := n.newSRQ(verbs.SRQConfig{}), far.newSRQ(verbs.SRQConfig{})
	for _, c := range []verbs.QPConfig{{}, {SRQ: srq}, privileged, {SRQ: srq, Privileged: true}} {
		t.Part("S-RQ %v, privileged %v", c.SRQ != nil, c.Privileged)
		a, b := w.connectMore(c, verbs.QPConfig{SRQ: farSRQ})
		mw, mr, gone, fast, p := n.newMW(), n.register(64, allRights), n.register(64, allRights), n.allocated(), n.pages(1, 4096)
		sink, source := far.register(64, allRights), fill(n.mr.Bytes()[:64], 1)
		clear(n.mr.Bytes()[64:256])
		bind := mw.BindRequest(n.mr, 0, 64, remoteRights, 1)
		var want []verbs.Completion
		var reqs []verbs.Request
		for i, s := range sendTypes {
			postRecv(t, farSRQ, verbs.Recv{ID: uint64(i), SGL: far.mr.SGL(64*i, 64)})
			r, done := verbs.Request{Op: s.op, SGL: n.mr.SGL(0, 10+i)}, verbs.Completion{ID: uint64(i), QP: b.ID(), Op: verbs.OpRecv, Bytes: uint32(10 + i)}
			if s.invalid != 0 {
				r.Invalidate = far.register(8, allRights).STag()
				done.Invalidated, done.HasInvalidated = r.Invalidate, true
			}
			reqs, want = append(reqs, r), append(want, done)
		}
		reqs = append(reqs,
			verbs.Request{Op: verbs.OpWrite, SGL: n.mr.SGL(0, 64), Remote: sink.Remote(0)},
			verbs.Request{Op: verbs.OpRead, Local: n.mr.SGE(64, 64), Remote: sink.Remote(0)},
			verbs.Request{Op: verbs.OpReadInvalidate, Local: mr.SGE(0, 64), Remote: sink.Remote(0)},
			verbs.Request{Op: verbs.OpBind, Bind: bind},
			verbs.Request{Op: verbs.OpInvalidate, Invalidate: gone.STag()},
		)
		if c.Privileged {
			reqs = append(reqs, fastRegister(fast.WithKey(1), p.List(0, 64), 4096, allRights))
		}
		for i := range reqs {
			reqs[i].Flags = verbs.Unsignaled
			post(t, a, reqs[i])
		}
		postRecv(t, farSRQ, verbs.Recv{ID: 99})
		run(t, a, verbs.Request{ID: 100, Flags: verbs.ReadFence}, verbs.StatusSuccess) // the only one
		completes(t, far.cq, append(want, verbs.Completion{ID: 99, QP: b.ID(), Op: verbs.OpRecv})...)
		empty(t, n.cq)
		for i := range sendTypes {
			require.Equal(t, source[:10+i], far.mr.Bytes()[64*i:64*i+10+i], "Send %d", i)
		}
		require.Equal(t, source, sink.Bytes(), "the Write")
		require.Equal(t, source, n.mr.Bytes()[64:128], "the Read")
		require.Equal(t, source, mr.Bytes(), "the Read with Invalidate")
		require.False(t, queried(t, mr).Valid, "its sink")
		require.True(t, queried(t, mw).Valid, "the Bind")
		require.False(t, queried(t, gone).Valid, "the Invalidate")
		require.Equal(t, c.Privileged, queried(t, fast).Valid, "the Fast-Register")
		require.NoError(t, mw.Deallocate())
	}
}

// receivesComplete: of the receives posted some are filled, the others flushed; each
// has one completion. Those that nobody took from an S-RQ stay there.
func receivesComplete(t *conformance.T) {
	const all, filled = 12, 5
	n := newHost(t, hostConfig{})
	srq := n.newSRQ(verbs.SRQConfig{})
	for _, c := range []verbs.QPConfig{{}, {SRQ: srq}} {
		for _, half := range []bool{false, true} { // a message is in progress at the end
			t.Part("S-RQ %v, in progress %v", c.SRQ != nil, half)
			l := n.link(c)
			var want []verbs.Completion
			for id := range uint64(all) {
				r := verbs.Recv{ID: id, SGL: n.mr.SGL(int(64*id), 64)}
				postRecv(t, receiver(l.qp, c.SRQ), r)
			}
			for id := range uint64(filled) {
				l.sendMessage([]byte{1, 2, 3})
				want = append(want, l.got(id, 3))
			}
			taken := filled
			if half {
				l.send(untagged(moreUntagged, opSend, 0, 0, filled+1, 0, []byte{1}))
				taken++
			}
			l.settled()
			l.modify(verbs.StateError)
			ends(t, l.qp, verbs.StateError)
			if c.SRQ == nil {
				taken = all
			}
			for id := uint64(filled); id < uint64(taken); id++ {
				want = append(want, l.recvAs(verbs.StatusFlushed, id)...)
			}
			completes(t, l.rq, want...)
			empty(t, l.rq)
			if c.SRQ == nil {
				continue
			}
			next := n.link(c)
			for id := uint64(taken); id < all; id++ {
				next.sendMessage([]byte{4})
				completes(t, next.rq, next.got(id, 1))
			}
			empty(t, next.rq)
		}
	}
}

// flushedThoughUnsignaled has requests behind a bad one, at each place and of both
// signaling types: those before it succeeded, it says what was wrong, those behind are
// flushed.
func flushedThoughUnsignaled(t *conformance.T) {
	const requests = 6
	n := newHost(t, hostConfig{})
	for _, badSignaled := range []bool{true, false} {
		for at := range requests {
			t.Part("request %d is bad, signaled %v", at, badSignaled)
			l := n.link(verbs.QPConfig{})
			var reqs []verbs.Request
			var want []verbs.Completion
			for i := range requests {
				r := l.aSend(uint64(i))
				if i%2 == 1 {
					r.Flags = verbs.Unsignaled
				}
				switch {
				case i == at:
					r.SGL, r.Flags = []verbs.SGE{{STag: 0x00F00000, Length: 1}}, verbs.Unsignaled
					if badSignaled {
						r.Flags = 0
					}
					want = append(want, l.sentAs(r.ID, r.Op, verbs.StatusInvalidSTag))
				case i > at:
					want = append(want, l.sentAs(r.ID, r.Op, verbs.StatusFlushed))
				case r.Flags == 0:
					want = append(want, l.sentAs(r.ID, r.Op, verbs.StatusSuccess))
				}
				reqs = append(reqs, r)
			}
			post(t, l.qp, reqs...)
			for i := range at {
				l.expect(aSend(uint32(i+1), n.mr.Bytes()[:4]))
			}
			l.terminated(0x0000, nil, false)
			l.closesTo(verbs.StateError)
			completes(t, l.sq, want...)
			empty(t, l.sq)
		}
	}
	t.Part("")
	n.quiet()
}

// roomComesBack fills a Send Queue again and again, only the last request being
// signaled: once that has been reaped there is room for as many.
func roomComesBack(t *conformance.T, w *hostPair) {
	n := w.a
	mw := n.newMW()
	bind := mw.BindRequest(n.mr, 0, 64, remoteRights, 1)
	kinds := map[string]func(i int) verbs.Request{
		"Write": func(int) verbs.Request {
			return verbs.Request{Op: verbs.OpWrite, SGL: n.mr.SGL(0, 8), Remote: w.b.mr.Remote(0)}
		},
		"Read": func(int) verbs.Request {
			// Elsewhere than the Writes of the other pair, the last of which may be on its way.
			return verbs.Request{Op: verbs.OpRead, Local: n.mr.SGE(8, 8), Remote: w.b.mr.Remote(8)}
		},
		"memory": func(i int) verbs.Request {
			if i%2 == 0 {
				return verbs.Request{Op: verbs.OpBind, Bind: bind}
			}
			return verbs.Request{Op: verbs.OpInvalidate, Invalidate: bind.Window}
		},
	}
	for name := range inTurn(t, "%s", []string{"Write", "Read", "memory"}) {
		qp, _ := w.connectMore(verbs.QPConfig{SendDepth: 8}, verbs.QPConfig{})
		depth := attributes(t, qp).SendDepth
		require.Zero(t, depth%2, "so that the window is unbound at the end")
		for round := range 100 {
			var reqs []verbs.Request
			for i := range depth {
				r := kinds[name](i)
				r.ID, r.Flags = uint64(round), verbs.Unsignaled
				reqs = append(reqs, r)
			}
			last := &reqs[depth-1]
			last.Flags = 0
			post(t, qp, reqs...)
			completes(t, n.cq, verbs.Completion{ID: uint64(round), QP: qp.ID(), Op: last.Op})
		}
	}
}
