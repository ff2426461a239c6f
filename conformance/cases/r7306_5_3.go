package cases

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// r7306_5_3 is that nothing comes between what an Atomic reads and what it writes: RFC
// 7306 5.3.
var r7306_5_3 = []conformance.Case{
	apiCase("5.3/counter", atomicCounter, "R7306-5-M1", "R7306-5.3-M1", "R7306-5.4-M2"),
	apiCase("5.3/tokens", atomicTokens, "R7306-5-M1", "R7306-5.3-M1", "R7306-5.4-M2"),
	apiCase("5.2.1/one-behind-the-other", atomicsInOrder, "R7306-5.2.1-M11", "R7306-5.2.1-M12", "R7306-5.2.2-M7", "R7306-5.4-M6"),
	apiCase("5.2.1/through-a-window", atomicWindow, "R7306-5.2.1-M13", "R7306-5.4-M1", "R7306-8.1-M1"),
}

// office is a host with a number that its peers change, over queue pairs of their own and by
// different STags. The program there changes it too.
type office struct {
	*host
	number  *uint64
	at      []verbs.Remote // the number, for each peer
	clients []*host
}

func newOffice(t *conformance.T, clients int) *office {
	o := &office{host: newHost(t, hostConfig{}), number: new(uint64)}
	mr := o.region(o.pd, verbs.RegionConfig{Memory: unsafe.Slice((*byte)(unsafe.Pointer(o.number)), 8), Access: atomicRights})
	for i := range clients {
		c := newHost(t, hostConfig{QP: verbs.QPConfig{Extensions: true}})
		connect(t, c.qp, o.newQP(verbs.QPConfig{Extensions: true}))
		at := mr.Remote(0)
		if i%2 == 1 {
			shared := must(mr.RegisterShared(nil, verbs.SharedConfig{Access: atomicRights, ZeroBased: true}))(t)
			at = shared.Remote(0)
		}
		o.at, o.clients = append(o.at, at), append(o.clients, c)
	}
	return o
}

// busy has every client do that many Atomics, eight at a time, and the program its own part
// meanwhile, which is told when they are done. It returns what they were told, client by client, in order.
func (o *office) busy(each int, op func(client, i int) verbs.Request, program func(done <-chan struct{})) [][]uint64 {
	told := make([][]uint64, len(o.clients))
	var wg sync.WaitGroup
	for k, c := range o.clients {
		wg.Go(func() {
			var done [8]verbs.Completion
			for posted := 0; len(told[k]) < each; {
				for ; posted < each && posted-len(told[k]) < len(done); posted++ {
					req := op(k, posted)
					req.ID, req.Remote = uint64(posted), o.at[k]
					if _, err := c.qp.PostSend(req); !assert.NoError(o.t, err) {
						return
					}
				}
				n, err := c.cq.Wait(o.t.Context(), done[:])
				if !assert.NoError(o.t, err) {
					return
				}
				for _, d := range done[:n] {
					if !assert.NoError(o.t, d.Err()) || !assert.EqualValues(o.t, len(told[k]), d.ID) {
						return
					}
					told[k] = append(told[k], d.Value)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	program(done)
	<-done
	return told
}

// atomicCounter: nothing that is added at the same time is lost, and no two peers are told
// the same number.
func atomicCounter(t *conformance.T) {
	const clients, each = 3, 600
	o := newOffice(t, clients)
	mine := uint64(0)
	told := o.busy(each, func(int, int) verbs.Request {
		return verbs.Request{Op: verbs.OpFetchAdd, Atomic: verbs.FetchAdd(1 << 40)}
	}, func(done <-chan struct{}) {
		for {
			select {
			case <-done:
				return
			default:
			}
			for range 1000 {
				atomic.AddUint64(o.number, 1)
			}
			mine += 1000
		}
	})
	require.Equal(t, clients*each<<40|mine, atomic.LoadUint64(o.number))
	var all []uint64
	for _, list := range told {
		for i, v := range list {
			if list[i] = v >> 40; i > 0 {
				require.Less(t, list[i-1], list[i], "a later request was carried out earlier")
			}
		}
		all = append(all, list...)
	}
	slices.Sort(all)
	for i, v := range all {
		require.EqualValues(t, i, v)
	}
}

// atomicTokens: of the tokens that peers and the program put in by swaps, each is taken out
// once.
func atomicTokens(t *conformance.T) {
	const clients, each = 3, 300
	o := newOffice(t, clients)
	token := func(of, i int) uint64 { return uint64(of+1)<<32 | uint64(i) }
	in := []uint64{0}
	for k := range clients + 1 {
		for i := range each {
			in = append(in, token(k, i))
		}
	}
	var out []uint64
	told := o.busy(each, func(k, i int) verbs.Request {
		if i%2 == 0 { // with masks that let it succeed and change everything
			r := verbs.CompareSwap(0, token(k, i))
			r.CompareMask = 0
			return verbs.Request{Op: verbs.OpCompareSwap, Atomic: r}
		}
		return verbs.Request{Op: verbs.OpSwap, Atomic: verbs.Swap(token(k, i))}
	}, func(<-chan struct{}) {
		for i := range each {
			out = append(out, atomic.SwapUint64(o.number, token(clients, i)))
		}
	})
	out = append(slices.Concat(told...), append(out, atomic.LoadUint64(o.number))...)
	slices.Sort(out)
	require.Equal(t, in, out)
}

// atomicsInOrder: what one peer asks for, of any kind, is done one behind the other, and each
// completion has what was there before.
func atomicsInOrder(t *conformance.T) {
	o := newOffice(t, 1)
	*o.number = 5
	want := []uint64{5}
	ops := make([]verbs.Request, 400)
	for i := range ops {
		was := want[i]
		r := verbs.Request{Op: verbs.OpFetchAdd, Atomic: verbs.FetchAdd(uint64(i))}
		is := was + uint64(i)
		switch t.Rand().IntN(4) {
		case 1:
			is = t.Rand().Uint64()
			r = verbs.Request{Op: verbs.OpSwap, Atomic: verbs.Swap(is)}
		case 2:
			is = t.Rand().Uint64()
			r = verbs.Request{Op: verbs.OpCompareSwap, Atomic: verbs.CompareSwap(was, is)}
		case 3:
			is = was
			r = verbs.Request{Op: verbs.OpCompareSwap, Atomic: verbs.CompareSwap(was+1, 3)}
		}
		ops[i], want = r, append(want, is)
	}
	told := o.busy(len(ops), func(_, i int) verbs.Request { return ops[i] }, func(<-chan struct{}) {})
	require.Equal(t, want[:len(ops)], told[0])
	require.Equal(t, want[len(ops)], atomic.LoadUint64(o.number))
}

// atomicWindow: a window lends the right to Atomics, to memory of which peers have none otherwise.
// It is no other right, and no other right is it.
func atomicWindow(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what   string
		rights verbs.Access
		op     verbs.Op
		want   verbs.Status
	}{
		{"an Atomic with the right to it", verbs.RemoteAtomic, verbs.OpFetchAdd, verbs.StatusSuccess},
		{"an Atomic with the rights to read and write", verbs.RemoteRead | verbs.RemoteWrite, verbs.OpFetchAdd, verbs.StatusRemoteTermination},
		{"a Read with the right to Atomics", verbs.RemoteAtomic, verbs.OpRead, verbs.StatusRemoteTermination},
	}) {
		extended := hostConfig{QP: verbs.QPConfig{Extensions: true}}
		w := newHostPair(t, hostPairConfig{A: extended, B: extended})
		word := new([3]uint64)
		word[1] = 41
		under := w.b.region(w.b.pd, verbs.RegionConfig{
			Memory: unsafe.Slice((*byte)(unsafe.Pointer(word)), 24), Access: verbs.LocalRead | verbs.LocalWrite | verbs.BindWindow,
		})
		bind := w.b.newMW().BindRequest(under, 8, 8, x.rights, 1)
		run(t, w.b.qp, binds(bind), verbs.StatusSuccess)
		req := verbs.Request{ID: 7, Op: x.op, Remote: verbs.BindBuffer(bind).Remote(0)}
		want := verbs.Completion{ID: 7, QP: w.a.qp.ID(), Op: x.op, Status: x.want}
		if x.op == verbs.OpRead {
			req.Local = w.a.mr.SGE(0, 8)
		} else {
			req.Atomic = verbs.FetchAdd(1)
		}
		is := uint64(41)
		if x.want == verbs.StatusSuccess {
			want.Value, is = 41, 42
		}
		post(t, w.a.qp, req)
		completes(t, attributes(t, w.a.qp).SendCQ, want)
		require.Equal(t, is, atomic.LoadUint64(&word[1]))
	}
}

// RFC 7306 4.1, 6 and 8, as far as they are about Immediate Data.
var r7306_6 = []conformance.Case{
	upperCase("4.1/immediate-octets", immediateOctets,
		"R7306-4.1-M1", "R7306-6.3-M1", "R7306-6.3-M2", "R7306-6.3-M5", "R7306-6.3-M6", "R7306-6.3-M7"),
	upperCase("4.1/immediate-invalidate-ignored", immediateInvalidate, "R7306-4.1-M1"),
	upperCase("6/write-with-immediate", writeWithImmediate, "R7306-6.3-M5", "R7306-6.3-M6", "R7306-6.3-M7"),
	upperCase("6.3/one-receive-each", immediateTakesReceives, "R7306-6.3-M3", "R7306-6.3-M4"),
	upperCase("6.3/no-receive", immediateWithoutReceive, "R7306-6.3-M3", "R7306-8.1-M1", "R7306-8.2-M2"),
	upperCase("6.3/eight-octets", immediateLength, "R7306-6.3-M8", "R7306-8.1-M1", "R7306-8.2-M1"),
	upperCase("6.3/numbers-of-the-sends", immediateNumbers, "R7306-6.3-M3", "R7306-8.2-M2"),
	upperCase("6.4/solicited", immediateSolicited, "R7306-6.3-M3", "R7306-6.3-M4"),
	upperCase("8.2/immediate-fields", immediateFields, "R7306-8.1-M1", "R7306-8.2-M1", "R7306-8.2-M2", "R7306-8.2-M3", "R7306-8.2-M4"),
	upperCase("1.1/not-offered", extensionsNotOffered, "R7306-8.2-M3"),
	apiCase("6/between-programs", immediateBetween, "R7306-6.3-M3", "R7306-6.3-M4", "R7306-6.3-M7"),
	apiCase("7/write-placed-before", immediateBehindWrite, "R7306-6.3-M4"),
	apiCase("6.3/srq", immediateShared, "R7306-6.3-M3", "R7306-6.3-M4"),
}

// immediateOf is the completion of a receive that Immediate Data took.
func immediateOf(id, data uint64) verbs.Completion {
	return verbs.Completion{ID: id, Op: verbs.OpRecv, Value: data, HasImmediate: true}
}

// immediateOctets: what is posted goes out in that order, each as one segment of queue 0 with
// eight octets, first octet first, and with the numbers of the Sends.
func immediateOctets(t *conformance.T) {
	r := open(t, extended(setup{}))
	r.post(
		verbs.Request{ID: 1, Op: verbs.OpImmediate, Immediate: 0x0102030405060708},
		verbs.Request{ID: 2, Op: verbs.OpSend},
		verbs.Request{ID: 3, Op: verbs.OpImmediateSE, Immediate: 0xFFFEFDFCFBFAF9F8},
	)
	r.expect(
		[]byte{0x41, 0x48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8},
		aSend(2, nil),
		[]byte{0x41, 0x49, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0xFF, 0xFE, 0xFD, 0xFC, 0xFB, 0xFA, 0xF9, 0xF8},
	)
	r.completions(
		verbs.Completion{ID: 1, Op: verbs.OpImmediate}, verbs.Completion{ID: 2}, verbs.Completion{ID: 3, Op: verbs.OpImmediateSE},
	)
}

// immediateInvalidate: what stands in the field of the Invalidate STag is not looked at, so an
// STag there stays valid.
func immediateInvalidate(t *conformance.T) {
	r, b := openWith(t, extended(setup{}), 64)
	r.recv(1, 8)
	u := anImmediate(opImmediate, r.nextSend(), 7)
	binary.BigEndian.PutUint32(u[2:], b.tag())
	r.send(u)
	r.completions(immediateOf(1, 7))
	require.Equal(t, b.first[:8], r.fetch(b, 0, 8), "the region is readable still")
}

// writeWithImmediate: the Write and the Immediate Data behind it, of several lengths and none,
// with nothing between; one completion.
func writeWithImmediate(t *conformance.T) {
	r := open(t, extended(setup{}))
	b := r.region(8000, verbs.LocalRead)
	for i, n := range []int{0, 1, 5, 700, 8000} {
		msn, id := uint32(2*i+1), uint64(10*i)
		r.post(
			verbs.Request{ID: id, Op: verbs.OpWriteImmediate, SGL: b.sgl(0, n), Remote: verbs.Remote{STag: 0x77, TO: 0x88}, Immediate: 0xAB00 + id},
			verbs.Request{ID: id + 1, Op: verbs.OpWriteImmediateSE, Flags: verbs.Unsignaled, Remote: verbs.Remote{STag: 0x99}, Immediate: 1},
		)
		payload := r.taggedMessage(opWrite, 0x77, 0x88).payload
		same(t, b.first[:n], payload, "the Write of %d octets", n)
		r.expect(anImmediate(opImmediate, msn, 0xAB00+id), aWrite(0x99, 0, nil), anImmediate(opImmediateSE, msn+1, 1))
		r.completions(verbs.Completion{ID: id, Op: verbs.OpWriteImmediate})
	}
	r.idle()
}

// immediateTakesReceives: each takes one receive, among Sends and in their order, and leaves the
// buffer alone; a receive of no octets will do.
func immediateTakesReceives(t *conformance.T) {
	r := open(t, extended(setup{}))
	buffers := r.recv(4, 16)
	r.postRecv(verbs.Recv{ID: 5})
	r.send(
		anImmediate(opImmediate, r.nextSend(), 0x1122334455667788), aSend(r.nextSend(), []byte("one")),
		anImmediate(opImmediateSE, r.nextSend(), 2), anImmediate(opImmediate, r.nextSend(), 3),
		anImmediate(opImmediate, r.nextSend(), 4),
	)
	r.completions(
		immediateOf(1, 0x1122334455667788), verbs.Completion{ID: 2, Op: verbs.OpRecv, Bytes: 3},
		immediateOf(3, 2), immediateOf(4, 3), immediateOf(5, 4),
	)
	buffers[1].gets(0, []byte("one"))
	allUnchanged(buffers)
	r.state(verbs.StateRTS)
}

// immediateWithoutReceive: with none posted it ends the stream, as a Send does.
func immediateWithoutReceive(t *conformance.T) {
	r := open(t, extended(setup{}))
	r.recv(1, 16)
	r.send(anImmediate(opImmediate, r.nextSend(), 5))
	u := anImmediate(opImmediateSE, r.nextSend(), 6)
	r.refuses(0x1202, u, false)
	r.completions(immediateOf(1, 5))
	r.events(verbs.EventRQMSNRange)
}

// immediateLength: exactly eight octets, whatever room the receive has. The Terminate Message
// repeats the DDP header (8.1).
func immediateLength(t *conformance.T) {
	another := peerFault{event: verbs.EventSegmentSize, code: 0x0207}
	for _, n := range []int{0, 1, 7, 9, 16, faultRigRoom, 3000} {
		for _, op := range []byte{opImmediate, opImmediateSE} {
			rejects(t, extended(setup{}), "of another length", another, always(untagged(lastUntagged, op, 0, 0, 1, 0, make([]byte, n))))
		}
	}
}

// immediateNumbers: Immediate Data and Sends have one row of MSNs.
func immediateNumbers(t *conformance.T) {
	r := open(t, extended(setup{}))
	r.recv(3, 16)
	r.send(aSend(1, nil), anImmediate(opImmediate, 2, 9))
	u := anImmediate(opImmediate, 2, 9)
	r.refuses(0x1203, u, false)
	r.completions(
		verbs.Completion{ID: 1, Op: verbs.OpRecv}, immediateOf(2, 9), verbs.Completion{ID: 3, Op: verbs.OpRecv, Status: verbs.StatusFlushed},
	)
	r.events(verbs.EventRQMSNRange)
}

// immediateSolicited: a CQ that waits for a Solicited Event is told of the one kind alone.
func immediateSolicited(t *conformance.T) {
	r := open(t, extended(setup{}))
	r.recv(2, 0)
	r.notify(r.RecvCQ, verbs.NotifySolicited)
	r.send(anImmediate(opImmediate, r.nextSend(), 1))
	r.completions(immediateOf(1, 1))
	require.False(t, r.notified(r.RecvCQ), "without SE")
	r.send(anImmediate(opImmediateSE, r.nextSend(), 2))
	r.completions(immediateOf(2, 2))
	require.True(t, r.notified(r.RecvCQ), "with SE")
}

// immediateFields: DDP's fields, the version and the opcode.
func immediateFields(t *conformance.T) {
	eight := make([]byte, 8)
	rejectsEach(t, extended(setup{}),
		segmentFault{"queue 1", badQN, always(untagged(lastUntagged, opImmediate, 0, 1, 1, 0, eight))},
		segmentFault{"queue 3", badQN, always(untagged(lastUntagged, opImmediateSE, 0, 3, 1, 0, eight))},
		segmentFault{"an MO", peerFault{event: verbs.EventSegmentSize, code: 0x1204}, always(untagged(lastUntagged, opImmediate, 0, 0, 1, 8, eight))},
		segmentFault{"no L bit", noLBit, always(untagged(moreUntagged, opImmediate, 0, 0, 1, 0, eight))},
		segmentFault{"an MSN far ahead", badMSN, always(anImmediate(opImmediate, 1<<31, 5))},
		segmentFault{"tagged", badOpcode, always(tagged(lastTagged, opImmediate, 5, 6, eight))},
		segmentFault{"RDMAP version 2", badRDMAP, always(with(1, 0x88)(anImmediate(opImmediate, 1, 5)))},
	)
	for op := byte(0x4C); op <= 0x4F; op++ {
		rejects(t, extended(setup{}), "an opcode of nobody", badOpcode, always(untagged(lastUntagged, op, 0, 0, 1, 0, eight)))
	}
}

// extensionsNotOffered: without the switch all opcodes of RFC 7306 are unexpected.
func extensionsNotOffered(t *conformance.T) {
	for _, u := range [][]byte{
		anImmediate(opImmediate, 1, 5), anImmediate(opImmediateSE, 1, 5), anAtomicRequest(1, atomicOp{op: atomicFetchAdd, stag: 5}),
		anAtomicResponse(1, 0, 0),
	} {
		rejects(t, setup{}, "not offered", badOpcode, always(u))
	}
}
