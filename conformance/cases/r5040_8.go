package cases

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5040_8 is what a hostile peer must not be able to do: RFC 5040 8.1.1.
var r5040_8 = []conformance.Case{
	upperCase("8.1/bystander", withTester(bystander), "R5040-8.1-M1", "R5040-8.1.1-M1", "R5040-8.1.2-M3"),
	upperCase("8.1.1/other-domains-and-streams", withTester(otherDomains), "R5040-8.1.1-M2", "R5040-8.1.1-M3"),
	upperCase("8.1.1/bounds", boundsKept, "R5040-8.1.1-M4"),
	upperCase("8.1.1/revoked", revoked, "R5040-8.1.1-M7"),
}

// bystander: while peers of another PD try one attack after another, the stream
// between them and its memory know nothing of it.
func bystander(t *conformance.T, u uppertester.Tester) {
	b := openIn(t, u, setup{})
	mine := b.region(256, allRights)
	receives := b.recv(64, 16)
	attacks := []func(r *rig) []byte{
		func(*rig) []byte { return aWrite(mine.tag(), mine.at(0), []byte("mine")) },
		func(*rig) []byte { return aWrite(mine.tag()^1, mine.at(0), []byte("mine")) },
		func(*rig) []byte { return aReadRequest(1, read{nowhere, nowhereTO, 8, mine.tag(), mine.at(0)}) },
		func(r *rig) []byte { r.recv(1, 8); return aSendInv(1, mine.tag(), nil) },
		func(*rig) []byte { return aSend(1, []byte("no receive")) },
		func(r *rig) []byte { r.recv(1, 8); return aSend(1, make([]byte, 9)) },
		func(*rig) []byte { return aReadResponse(mine.tag(), mine.at(0), []byte("unasked")) },
		func(*rig) []byte { return untagged(lastUntagged, opSend, 0, 9, 1, 0, nil) },
		func(*rig) []byte { return aReadRequest(1, read{nowhere, nowhereTO, 8, 0, 0}) },
		func(*rig) []byte { return []byte{0xFF} },
	}
	for i, attack := range attacks {
		t.Part("attack %d", i)
		for k := range 2 {
			r := openIn(t, u, setup{qp: uppertester.OpenArgs{PD: 1 + k}})
			bad := attack(r)
			r.send(bad)
			end := r.gone()
			require.EqualValues(t, "FIN", end)
			_ = r.peer.CloseWrite()
			r.ended(verbs.StateError)
		}
		data := uppertester.Pattern(uint8(i), 16)
		b.sendMessage(data)
		b.completions(verbs.Completion{ID: uint64(i + 1), Op: verbs.OpRecv, Bytes: 16})
		receives[i].holds(0, data)
		same(t, mine.first, b.fetch(mine, 0, 256), "the bystander's region")
	}
	t.Part("")
	require.True(t, mine.query().Valid)
	b.incomplete()
	b.unharmed()
}

// otherDomains names, to the peer of one queue pair, what is another PD's or
// another queue pair's. The peer that it is for succeeds.
func otherDomains(t *conformance.T, u uppertester.Tester) {
	owner := openIn(t, u, setup{})
	inPD := func(pd, qp int, access verbs.Access) *buffer {
		return owner.register(uppertester.RegisterArgs{Len: 64, PD: pd, QP: qp, Access: access})
	}
	region := owner.region(64, allRights|verbs.BindWindow)
	window := *region
	window.STag = owner.window(region, verbs.RemoteRead|verbs.RemoteWrite)
	for _, x := range []struct {
		what string
		b    *buffer
		mine bool // the owner's peer may use it
	}{
		{"a region of another PD", inPD(1, 0, allRights), false},
		{"a region of one queue pair", inPD(0, owner.QP, allRights), true},
		{"a window of one queue pair", &window, true},
	} {
		for _, a := range []struct {
			how     string
			ulpdu   []byte
			code    uint16
			readToo bool
			event   verbs.EventID
		}{
			{"RDMA Write", aWrite(x.b.tag(), x.b.at(0), []byte("x")), 0x1102, false, verbs.EventProtPD},
			{"RDMA Read", aReadRequest(1, read{nowhere, nowhereTO, 1, x.b.tag(), x.b.at(0)}), 0x0103, true, verbs.EventIRRQPD},
			{"Send with Invalidate", aSendInv(1, x.b.tag(), nil), 0x0109, false, 0},
		} {
			t.Part("%s of %s", a.how, x.what)
			r := openIn(t, u, setup{})
			r.recv(1, 8)
			r.send(a.ulpdu)
			r.tornDown(a.code, a.ulpdu, a.readToo)
			if a.event != 0 {
				r.events(a.event)
			} else {
				r.completions(verbs.Completion{ID: 1, Op: verbs.OpRecv, Status: verbs.StatusInvalidateSTag})
			}
			x.b.unchanged()
		}
		if x.mine {
			t.Part("%s, by its peer", x.what)
			owner.send(aWrite(x.b.tag(), x.b.at(1), []byte("ours")))
			x.b.gets(1, []byte("ours"))
			same(t, x.b.first, owner.fetch(x.b, 0, 64), "what is read")
			x.b.unchanged()
		}
	}
}

// boundsKept writes and reads around both ends of a region, and of a window inside
// it: only what is wholly inside succeeds.
func boundsKept(t *conformance.T) {
	const lo, hi = 16, 48 // the window within the region of 64
	u := tester(t)
	for _, window := range []bool{false, true} {
		from, to := 0, 64
		if window {
			from, to = lo, hi
		}
		for _, x := range []struct{ off, n int }{
			{from - 1, 1}, {from - 4, 8}, {from - 8, 9}, {from, 1}, {from, 9}, {from, to - from}, {from, to - from + 1},
			{to - 1, 1}, {to - 9, 9}, {to - 1, 2}, {to - 4, 8}, {to, 1}, {to + 1, 3},
		} {
			inside := x.off >= from && x.off+x.n <= to
			t.Part("octets %d to %d of %d to %d, window: %v", x.off, x.off+x.n, from, to, window)
			for _, write := range []bool{true, false} {
				r := openIn(t, u, setup{})
				b := r.region(64, allRights|verbs.BindWindow)
				tag := b.tag()
				if window {
					tag = uint32(r.windowOf(b, lo, hi-lo, verbs.RemoteRead|verbs.RemoteWrite))
				}
				data := uppertester.Pattern(uint8(x.off), x.n)
				bad := aReadRequest(1, read{nowhere, nowhereTO, uint32(x.n), tag, b.at(x.off)})
				code, event := uint16(0x0101), verbs.EventIRRQBounds
				if write {
					bad, code, event = aWrite(tag, b.at(x.off), data), 0x1101, verbs.EventProtBounds
				}
				r.send(bad)
				switch {
				case !inside:
					r.tornDown(code, bad, !write)
					r.events(event)
				case write:
					r.settled()
					b.gets(x.off, data)
				default:
					r.reads++
					r.expect(aReadResponse(nowhere, nowhereTO, b.first[x.off:x.off+x.n]))
				}
				b.unchanged()
			}
		}
	}
}

// revoked: a peer writes without pause, and when the verb that takes the right away
// has returned, or its completion is there, it has written for the last time.
func revoked(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what string
		how  func(r *rig, b *buffer)
	}{
		{"Deallocate", func(_ *rig, b *buffer) { b.deregister() }},
		{"Invalidate Local STag", func(r *rig, b *buffer) {
			r.post(verbs.Request{ID: 7, Op: verbs.OpInvalidate, Invalidate: b.STag})
			r.completionsOf(r.SendCQ, verbs.Completion{ID: 7, Op: verbs.OpInvalidate})
		}},
		{"Destroy QP", func(r *rig, _ *buffer) { require.NoError(r.t, r.up.Destroy(r.QP, &uppertester.None{})) }},
		{"Modify QP to Error", func(r *rig, _ *buffer) {
			require.NoError(r.t, r.modify(uppertester.ModifyArgs{Next: verbs.StateError}))
		}},
	}) {
		r, b := openWith(t, setup{}, 8192)
		bad := aWrite(b.tag(), b.at(0), make([]byte, 8192))
		f := r.peer.Frame(bad)
		var stop atomic.Bool
		var wg sync.WaitGroup
		begun := make(chan struct{})
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				if r.peer.Raw(f) != nil {
					break
				}
				if i == 20 {
					close(begun)
				}
			}
		})
		select {
		case <-begun:
		case <-t.Context().Done():
			stop.Store(true)
			wg.Wait()
			t.Fatalf("the peer cannot write")
		}
		x.how(r, b)
		after := uppertester.Pattern(99, 8192)
		if x.what == "Deallocate" || x.what == "Invalidate Local STag" {
			// The region is no more, its memory is.
			require.NoError(t, r.up.Fill(uppertester.FillArgs{Region: b.Region.Region, Octets: after}, &uppertester.None{}))
			r.terminated(0x1100, bad, false)
		} else {
			require.NoError(t, r.up.Fill(uppertester.FillArgs{Region: b.Region.Region, Octets: after}, &uppertester.None{}))
		}
		stop.Store(true)
		wg.Wait()
		_ = r.peer.Reset()
		same(t, after, b.memory(), "the memory afterwards")
	}
}

// r5040_8_shared is what streams share, and one peer may not use up: RFC 5040 8.1.
var r5040_8_shared = []conformance.Case{
	upperCase("8.1.1/cq-overflow", withTester(overflowContained), "R5040-8.1.1-M11", "R5040-8.1.1-M12"),
	upperCase("8.1.2/read-requests-not-shared", withTester(readsNotShared), "R5040-8.1.2-M6"),
	upperCase("8.1.2/greedy-peer", greedyPeer, "R5040-8.1.2-M7"),
}

// overflowContained: the queue pairs of a CQ that overflows end, what fitted can be
// polled, and others go on.
func overflowContained(t *conformance.T, u uppertester.Tester) {
	other := openIn(t, u, setup{})
	others := other.recv(4, 16)
	r := openIn(t, u, setup{qp: uppertester.OpenArgs{CQEntries: 2}})
	b := r.recv(4, 16)
	for i := range 4 {
		other.sendMessage([]byte{byte(i)})
		others[i].gets(0, []byte{byte(i)})
		r.sendMessage([]byte{byte(100 + i)})
	}
	r.tornDown(0x0207, nil, false)
	r.events(verbs.EventCQRQError)
	r.completions(
		verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: 1},
		verbs.Completion{ID: 2, Op: verbs.OpRecv, Bytes: 1},
	)
	b[0].holds(0, []byte{100})
	b[1].holds(0, []byte{101})
	require.NotZero(t, r.once(2, verbs.EventCQOverflow).CQ)

	other.completions(
		verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: 1}, verbs.Completion{ID: 2, Op: verbs.OpRecv, Bytes: 1},
		verbs.Completion{ID: 3, Op: verbs.OpRecv, Bytes: 1}, verbs.Completion{ID: 4, Op: verbs.OpRecv, Bytes: 1},
	)
	allUnchanged(others)
	other.settled()
	other.unharmed()
}

// readsNotShared: one peer uses up its queue pair's IRD and does not read its
// responses; another queue pair's IRD is there all the same.
func readsNotShared(t *conformance.T, u uppertester.Tester) {
	greedy := openIn(t, u, setup{qp: uppertester.OpenArgs{IRD: 2}, narrow: true})
	big := greedy.region(8<<20, verbs.LocalRead|verbs.RemoteRead)
	for i := range 2 {
		greedy.send(aReadRequest(greedy.nextRead(), read{nowhere + uint32(i), 0, 8 << 20, big.tag(), big.at(0)}))
	}
	r := openIn(t, u, setup{qp: uppertester.OpenArgs{IRD: 4}})
	b := r.region(4096, allRights)
	for range 3 {
		var requests, responses [][]byte
		for i := range 4 {
			requests = append(requests, aReadRequest(r.nextRead(), read{nowhere + uint32(i), 0, 1000, b.tag(), b.at(i)}))
			responses = append(responses, aReadResponse(nowhere+uint32(i), 0, b.first[i:i+1000]))
		}
		r.sendAtOnce(requests...)
		r.expect(responses...)
	}
	greedy.unharmed()
	_ = greedy.peer.Reset()
}

// greedyPeer: two queue pairs share an S-RQ, and one peer takes more than its share.
// The program is told that receives run short, can have itself told of each queue
// pair that takes one, and sees whose every completion is. The other peer's Sends
// arrive.
func greedyPeer(t *conformance.T) {
	const depth, share = 8, 3
	u := tester(t)
	shared := uppertester.OpenArgs{SRQ: 1, SRQDepth: depth, SRQLimit: 4}
	greedy := openIn(t, u, setup{qp: shared, raw: true})
	require.NoError(t, greedy.modify(uppertester.ModifyArgs{Next: verbs.StateIdle, RQLimit: ptr(0), ArmRQLimit: true}))
	greedy.start(setup{})
	modest := openIn(t, u, setup{qp: shared})
	b := greedy.region(depth*8, verbs.LocalWrite)
	for i := range depth {
		var p uppertester.Posted
		require.NoError(t, u.PostRecv(uppertester.PostRecvArgs{SRQ: 1, Recvs: []verbs.Recv{{ID: uint64(i), SGL: b.sgl(8*i, 8)}}}, &p))
	}
	var want []verbs.Completion
	for i := range share + 2 {
		greedy.sendMessage([]byte(fmt.Sprint("greedy", i)))
		b.gets(8*i, []byte(fmt.Sprint("greedy", i)))
		want = append(want, verbs.Completion{ID: uint64(i), Op: verbs.OpRecv, Bytes: 7})
	}
	greedy.settled()
	modest.sendMessage([]byte("modest"))
	b.gets(8*(share+2), []byte("modest"))
	modest.completions(verbs.Completion{ID: share + 2, Op: verbs.OpRecv, Bytes: 6})
	greedy.events(verbs.EventRQLimit)
	modest.events()
	greedy.once(2, verbs.EventSRQLimit)
	greedy.completions(want...)
	b.unchanged()
}
