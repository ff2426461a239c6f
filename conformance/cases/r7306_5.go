package cases

import (
	"encoding/binary"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r7306_5 is what becomes of an Atomic Request: RFC 7306 5.
var r7306_5 = []conformance.Case{
	upperCase("5.1.1/fetch-add-by-fields", fetchAddFields, "R7306-5-M2", "R7306-5.2.1-M1", "R7306-5.2.1-M13"),
	upperCase("5.1.2/compare-swap-by-masks", compareSwapMasks, "R7306-5-M2", "R7306-5.1.2-M1", "R7306-5.2.1-M1"),
	upperCase("5.2/atomic-octets", atomicOctets,
		"R7306-5-M3", "R7306-5.2-M2", "R7306-5.2.1-M6", "R7306-5.2.1-M13", "R7306-5.2.2-M2", "R7306-5.2.2-M3", "R7306-5.2.2-M4"),
	upperCase("5.2.1/any-offset-of-an-aligned-address", anyAlignedOffset, "R7306-5.2.1-M2"),
	upperCase("5.2.1/not-for-the-program", notForTheProgram, "R7306-5.2.1-M5", "R7306-5.2.1-M6", "R7306-5.2.1-M7"),
	upperCase("5.2.2/answered-in-order", answeredInOrder,
		"R7306-5.2.1-M12", "R7306-5.2.2-M8", "R7306-5.4-M4", "R7306-5.4-M6", "R7306-5.4-M7"),
	upperCase("5.2.2/room-for-the-agreed", roomForAgreed, "R7306-5.2.1-M5", "R7306-5.2.2-M5"),
	upperCase("5.4/request-delivered-whole", atomicDeliveredWhole, "R7306-5.4-M3", "R7306-5.4-M4"),
}

// addByFields is the pseudocode of RFC 7306 5.1.1, bit by bit.
func addByFields(original, add, mask uint64) (sum uint64) {
	var carry uint64
	for bit := range 64 {
		s := carry + original>>bit&1 + add>>bit&1
		sum |= s & 1 << bit
		carry = s >> 1 &^ (mask >> bit & 1)
	}
	return sum
}

// fetchAddFields: each field is added to on its own, and what it held comes back.
func fetchAddFields(t *conformance.T) {
	a := openAtomics(open(t, extended(setup{})))
	b := a.region(32, atomicRights)
	const all = ^uint64(0)
	tries := []struct{ original, add, mask, sum uint64 }{
		{0xFF, 1, 0, 0x100},
		{all, 1, 0, 0},
		{all, 1, 1 << 63, 0},
		{0x01FF00FF00FF00FF, 0x0001000100010001, 0x8000800080008000, 0x0200010001000100},
		{all, 1, 1<<63 | 1<<31, 0xFFFFFFFF00000000},
		{all, 1, 1 << 31, 0xFFFFFFFF00000000},
		{0xFF00FF00FF00FF00, 0x0FF00FF00FF00FF0, all, 0xF0F0F0F0F0F0F0F0},
		{3, 1, 1, 2},
		{0xFFFFFFFFFFFFFF7F, 1, 0x80, 0xFFFFFFFFFFFFFF80},
		{0x80, 0x80, 0x80, 0},
		{0x0102030405060708, 0, 0, 0x0102030405060708},
	}
	for range 40 {
		x, y, m := t.Rand().Uint64(), t.Rand().Uint64(), t.Rand().Uint64()&t.Rand().Uint64()
		tries = append(tries, struct{ original, add, mask, sum uint64 }{x, y, m, addByFields(x, y, m)})
	}
	for i, x := range tries {
		t.Part("%#x + %#x, mask %#x", x.original, x.add, x.mask)
		require.Equal(t, x.sum, addByFields(x.original, x.add, x.mask), "the case's own sum")
		b.put(8, x.original)
		op := b.fetchAdd(8, uint32(i), x.add, x.mask)
		op.compare, op.compareMask = t.Rand().Uint64(), t.Rand().Uint64() // which mean nothing here
		a.asks(op, x.original)
		b.holds(8, native(x.sum))
	}
}

// compareSwapMasks: the bits of one mask are compared, and those of another put there if
// they are equal; without, nothing changes. What was there comes back either way.
func compareSwapMasks(t *conformance.T) {
	a := openAtomics(open(t, extended(setup{})))
	b := a.region(32, atomicRights)
	const all, was = ^uint64(0), 0x1122334455667788
	for i, x := range []struct{ data, mask, compare, compareMask, is uint64 }{
		{0xA1A2A3A4A5A6A7A8, all, was, all, 0xA1A2A3A4A5A6A7A8},
		{0xA1A2A3A4A5A6A7A8, all, was + 1, all, was},
		{0xA1A2A3A4A5A6A7A8, all, was ^ 1<<63, all, was},
		{0xA1A2A3A4A5A6A7A8, all, 0, 0, 0xA1A2A3A4A5A6A7A8}, // a Swap
		{0xA1A2A3A4A5A6A7A8, all, was, 0, 0xA1A2A3A4A5A6A7A8},
		{0xA1A2A3A4A5A6A7A8, 0xFF000000000000FF, was, all, 0xA1223344556677A8},
		{0xA1A2A3A4A5A6A7A8, 0xFF000000000000FF, was - 1, all, was},
		{0xA1A2A3A4A5A6A7A8, 0x000000000000FFFF, 0xEEEEEEEEEEEE7788, 0xFFFF, 0x112233445566A7A8},
		{0xA1A2A3A4A5A6A7A8, 0x000000000000FFFF, 0x1122334455667789, 0xFFFF, was},
		{0xA1A2A3A4A5A6A7A8, 0xFFFF000000000000, 0x0000000000007788, 0xFFFF, 0xA1A2334455667788},
		{0xA1A2A3A4A5A6A7A8, 0, was, all, was},
		{was, all, was, all, was},
	} {
		t.Part("%d: %+v", i, x)
		b.put(16, was)
		a.asks(b.compareSwap(16, uint32(100+i), x.data, x.mask, x.compare, x.compareMask), was)
		b.holds(16, native(x.is))
	}
}

// atomicOctets: a request as it stands in figure 4, and the answer as in figure 6. Reserved
// bits are ignored, the number that names the request comes back whatever it is, and
// requests and answers are numbered on queues of their own.
func atomicOctets(t *conformance.T) {
	a := openAtomics(open(t, extended(setup{})))
	b := a.region(16, atomicRights)
	b.put(8, 0x0102030405060708)
	a.settled() // MSN 1 of queue 1
	where := fmt.Sprintf("%08x %016x", b.tag(), b.at(8))
	for i, x := range []struct{ first, then, answer string }{
		{
			"414a 00000000 00000001 00000002 00000000 00000000 deadbeef",
			"0000000000000009 0000000000000000 0000000000000000 ffffffffffffffff",
			"414b 00000000 00000003 00000001 00000000 deadbeef 0102030405060708",
		},
		{
			"414a 00000000 00000001 00000003 00000000 fffffff2 00000000",
			"0000000000000055 00000000000000ff 0102030405060711 ffffffffffffffff",
			"414b 00000000 00000003 00000002 00000000 00000000 0102030405060711",
		},
		{
			"414a 00000000 00000001 00000004 00000000 80000000 ffffffff",
			"0000000000000000 0000000000000000 0000000000000000 0000000000000000",
			"414b 00000000 00000003 00000003 00000000 ffffffff 0102030405060755",
		},
	} {
		t.Part("request %d", i)
		a.send(unhex(t, x.first+where+x.then))
		a.expect(unhex(t, x.answer))
	}
	b.holds(8, native(0x0102030405060755))
}

// anyAlignedOffset: it is the address that has to be a multiple of eight; the Tagged
// Offset may be anything.
func anyAlignedOffset(t *conformance.T) {
	a := openAtomics(open(t, extended(setup{})))
	for base := range inTurn(t, "from TO %#x on", []uint64{0, 3, 0xFFFFFFFFFFFFFF01}) {
		b := a.register(uppertester.RegisterArgs{Len: 64, Access: atomicRights, VA: base, ZeroBased: base == 0})
		require.Equal(t, base, b.Base)
		was := b.number(56)
		a.asks(b.fetchAdd(56, 1, 5, 0), was)
		b.holds(56, native(was+5))
	}
}

// notForTheProgram: Atomics complete nothing at their target, take no receive, and one
// place of queue 1 each.
func notForTheProgram(t *conformance.T) {
	a := openAtomics(open(t, extended(setup{qp: uppertester.OpenArgs{IRD: 1}})))
	b := a.region(16, atomicRights)
	a.recv(1, 8)
	was := b.number(0)
	for i := range uint64(20) {
		a.asks(b.fetchAdd(0, uint32(i), 1, 0), was+i)
		if i%5 == 0 {
			a.settled() // with the next MSN
		}
	}
	b.holds(0, native(was+20))
	a.incomplete()
	a.events()
	a.delivers(1, "first")
}

// answeredInOrder: Atomics and RDMA Reads that come together are carried out and answered
// in the order of their requests, behind what came before them.
func answeredInOrder(t *conformance.T) {
	a := openAtomics(open(t, extended(setup{})))
	b := a.region(32, atomicRights)
	c := a.recv(8, 8)
	for i := range counted(t, "round %d", 8) {
		was, other := b.number(0), b.number(24)
		aRead := func(off int) []byte {
			return aReadRequest(a.nextRead(), read{nowhere, nowhereTO, 8, b.tag(), b.at(off)})
		}
		sum := was + 0x100000001
		a.sendAtOnce(
			aWrite(b.tag(), b.at(16), native(77)),
			aSend(a.nextSend(), []byte("before")),
			a.ask(b.fetchAdd(0, 9, 0x100000001, 0)), aRead(0),
			a.ask(b.compareSwap(0, 8, 1, ^uint64(0), sum, ^uint64(0))),
			a.ask(b.compareSwap(0, 7, 2, ^uint64(0), sum, ^uint64(0))),
			a.ask(b.fetchAdd(16, 7, 1, 0)), aRead(16),
			a.ask(b.fetchAdd(24, 6, 1, 0)),
			a.ask(b.fetchAdd(0, 5, 41, 0)), aRead(0),
		)
		a.expect(a.answer(9, was))
		// The answer says that the Send before has been completed (RFC 7306 7).
		require.Equal(t, []verbs.Completion{{ID: uint64(i + 1), QP: a.ID, Op: verbs.OpRecv, Bytes: 6}}, a.poll(a.RecvCQ, 2, 0))
		a.expect(
			aReadResponse(nowhere, nowhereTO, native(sum)),
			a.answer(8, sum), a.answer(7, 1),
			a.answer(7, 77), aReadResponse(nowhere, nowhereTO, native(78)),
			a.answer(6, other),
			a.answer(5, 1), aReadResponse(nowhere, nowhereTO, native(42)),
		)
		c[i].holds(0, []byte("before"))
		b.gets(0, native(42))
		b.gets(16, native(78))
		b.holds(24, native(other+1))
	}
}

// roomForAgreed: IRD is for Atomics and RDMA Reads together; as many as it says may wait for
// their answers, in any mix, and one more is too many.
func roomForAgreed(t *conformance.T) {
	const size, ird = 8 << 20, 4 // more than TCP takes for a peer that does not read
	a := openAtomics(open(t, extended(setup{qp: uppertester.OpenArgs{IRD: ird}, narrow: true})))
	b := a.region(size, atomicRights)
	a.recv(2, 8)
	held := aReadRequest(a.nextRead(), read{nowhere, 0, size - 8, b.tag(), b.at(8)})
	was := b.number(0)
	a.send(held)
	for i := range uint32(ird - 1) {
		a.send(a.ask(b.fetchAdd(0, i, 1, 0)))
	}
	a.delivers(1, "behind")
	got := a.taggedMessage(opReadResponse, nowhere, 0).payload
	same(t, b.first[8:], got, "the response")
	for i := range uint64(ird - 1) {
		a.expect(a.answer(uint32(i), was+i))
	}
	b.holds(0, native(was+ird-1))

	t.Part("one more")
	a.send(aReadRequest(a.nextRead(), read{nowhere, 0, size - 8, b.tag(), b.at(8)}))
	for i := range uint32(ird - 1) {
		a.send(a.ask(b.fetchAdd(0, i, 1, 0)))
	}
	more := a.ask(b.fetchAdd(0, 9, 1, 0))
	a.send(more)
	a.events(verbs.EventIRRQTooMany) // before anything is read
	a.eventuallyTerminated(0x1202, more, false)
	a.ended(verbs.StateError)
}

// atomicDeliveredWhole: no Atomic begins before its whole request is here. What it works on
// is changed in between.
func atomicDeliveredWhole(t *conformance.T) {
	a := openAtomics(open(t, extended(setup{})))
	b := a.region(16, atomicRights)
	for i, part := range []int{1, 20, 50, 75} {
		t.Part("but for what is behind octet %d", part)
		f := a.peer.Frame(a.ask(b.fetchAdd(8, 3, 1, 0)))
		require.NoError(t, a.peer.Raw(f[:part]))
		b.put(8, uint64(1000+i))
		b.unchanged()
		require.NoError(t, a.peer.Raw(f[part:]))
		a.expect(a.answer(3, uint64(1000+i)))
		b.holds(8, native(uint64(1001+i)))
	}
	for _, spoil := range named(t, "%s", map[string]func(a *atomics, u []byte){
		"not the last segment of its message": func(a *atomics, u []byte) {
			u[0] &^= 0x40
			require.NoError(t, a.peer.Send(u))
		},
		"a wrong CRC": func(a *atomics, u []byte) {
			f := a.peer.Frame(u)
			f[len(f)-1] ^= 1
			require.NoError(t, a.peer.Raw(f))
		},
	}) {
		a := openAtomics(open(t, extended(setup{})))
		b := a.region(16, atomicRights)
		b.put(8, 1000)
		spoil(a, a.ask(b.fetchAdd(8, 3, 1, 0)))
		require.NotEqual(t, byte(opAtomicResponse), a.next()[1], "it was answered")
		b.unchanged()
	}
}

// r7306_5_4 is what a program that posts Atomics gets: RFC 7306 5.2 and 5.4.
var r7306_5_4 = []conformance.Case{
	upperCase("5.2.1/atomics-sent", atomicsSent, "R7306-5.2-M1", "R7306-5.2.1-M3", "R7306-5.2.1-M4",
		"R7306-5.2.1-M9", "R7306-5.2.1-M10", "R7306-5.2.1-M11"),
	upperCase("5.2.2/outstanding-up-to-ord", atomicsOutstanding, "R7306-5.2.1-M9", "R7306-5.2.2-M1", "R7306-5.2.2-M6"),
	upperCase("5.4/completed-by-the-answer", completedByAnswer, "R7306-5.2.2-M1", "R7306-5.2.2-M7", "R7306-5.4-M1", "R7306-5.4-M5"),
}

// asked is the number that the RNIC gave to the next Atomic Request that it sends, which has
// to be this one otherwise.
func (a *atomics) asked(msn uint32, want atomicOp) uint32 {
	u := a.next()
	require.Len(a.t, u, 18+52, "an Atomic Request")
	want.id = binary.BigEndian.Uint32(u[22:])
	want.stag, want.to = uint32(theirs.STag), theirs.TO
	require.Equal(a.t, anAtomicRequest(msn, want), u)
	return want.id
}

// adding and swapping are Atomics of the program, on the peer's memory.
func adding(id uint64) verbs.Request {
	return verbs.Request{ID: id, Op: verbs.OpFetchAdd, Remote: theirs, Atomic: verbs.FetchAdd(id)}
}

func swapping(id uint64) verbs.Request {
	return verbs.Request{ID: id, Op: verbs.OpSwap, Remote: theirs, Atomic: verbs.Swap(id)}
}

// sum is what the peer is sent for adding.
func sum(id uint64) atomicOp { return atomicOp{data: id, compareMask: ^uint64(0)} }

// atomicsSent: each operation as it is sent, in the order of posting and numbered with the
// RDMA Reads, and what its answer comes to.
func atomicsSent(t *conformance.T) {
	const all = ^uint64(0)
	a := openAtomics(open(t, extended(setup{})))
	b := a.region(32, allRights)
	modifiers := verbs.AtomicRequest{Data: 0x0123456789ABCDEF, Mask: 0x8000000000000080, Compare: 0x1111, CompareMask: 0x2222}
	a.post(
		verbs.Request{ID: 1, Op: verbs.OpFetchAdd, Remote: theirs, Atomic: &modifiers},
		verbs.Request{ID: 2, Op: verbs.OpRead, Local: b.sge(0, 4), Remote: theirs},
		verbs.Request{ID: 3, SGL: b.sgl(8, 8)},
		verbs.Request{ID: 4, Op: verbs.OpSwap, Remote: theirs, Atomic: &modifiers},
		verbs.Request{ID: 5, Op: verbs.OpCompareSwap, Remote: theirs, Atomic: &modifiers},
		verbs.Request{ID: 6, Op: verbs.OpWrite, SGL: b.sgl(16, 8), Remote: theirs},
		verbs.Request{ID: 7, Op: verbs.OpSwap, Remote: theirs, Atomic: verbs.Swap(7)},
		verbs.Request{ID: 8, Op: verbs.OpCompareSwap, Remote: theirs, Atomic: verbs.CompareSwap(8, 9)},
		adding(10),
	)
	first := a.next()
	require.Len(t, first, 18+52)
	want := unhex(t, "414a 00000000 00000001 00000001 00000000"+"00000000 00000000 11223344 0102030405060708"+
		"0123456789abcdef 8000000000000080 0000000000000000 ffffffffffffffff")
	ids := []uint32{binary.BigEndian.Uint32(first[22:])}
	copy(want[22:26], first[22:])
	require.Equal(t, want, first)
	a.expect(
		aReadRequest(2, read{b.tag(), b.at(0), 4, uint32(theirs.STag), theirs.TO}),
		aSend(1, b.first[8:16]),
	)
	ids = append(ids,
		a.asked(3, atomicOp{op: atomicCmpSwap, data: modifiers.Data, mask: modifiers.Mask}),
		a.asked(4, atomicOp{op: atomicCmpSwap, data: modifiers.Data, mask: modifiers.Mask, compare: 0x1111, compareMask: 0x2222}))
	a.expect(aWrite(uint32(theirs.STag), theirs.TO, b.first[16:24]))
	ids = append(ids,
		a.asked(5, atomicOp{op: atomicCmpSwap, data: 7, mask: all}),
		a.asked(6, atomicOp{op: atomicCmpSwap, data: 9, mask: all, compare: 8, compareMask: all}),
		a.asked(7, sum(10)))
	for i, id := range ids {
		require.NotContains(t, ids[:i], id, "the numbers of outstanding requests")
	}
	for i, id := range ids {
		a.send(a.answer(id, 0x1000000000000000+uint64(i)))
		if i == 0 {
			a.send(aReadResponse(b.tag(), b.at(0), []byte("read")))
		}
	}
	a.completions(
		verbs.Completion{ID: 1, Op: verbs.OpFetchAdd, Value: 0x1000000000000000},
		verbs.Completion{ID: 2, Op: verbs.OpRead}, verbs.Completion{ID: 3},
		verbs.Completion{ID: 4, Op: verbs.OpSwap, Value: 0x1000000000000001},
		verbs.Completion{ID: 5, Op: verbs.OpCompareSwap, Value: 0x1000000000000002},
		verbs.Completion{ID: 6, Op: verbs.OpWrite},
		verbs.Completion{ID: 7, Op: verbs.OpSwap, Value: 0x1000000000000003},
		verbs.Completion{ID: 8, Op: verbs.OpCompareSwap, Value: 0x1000000000000004},
		verbs.Completion{ID: 10, Op: verbs.OpFetchAdd, Value: 0x1000000000000005},
	)
	b.holds(0, []byte("read"))
}

// atomicsOutstanding: as many Atomics and RDMA Reads as ORD says are on their way, and all of
// their answers may come at once.
func atomicsOutstanding(t *conformance.T) {
	const ord, rounds = 4, 5
	a := openAtomics(open(t, extended(setup{qp: uppertester.OpenArgs{ORD: ord}})))
	b := a.region(8, allRights)
	for i := range uint64(ord * rounds) {
		if i%ord == 2 {
			a.post(verbs.Request{ID: i, Op: verbs.OpRead, Local: b.sge(0, 4), Remote: theirs})
		} else {
			a.post(adding(i))
		}
	}
	msn := uint32(1)
	for round := range counted(t, "round %d", uint64(rounds)) {
		var answers [][]byte
		var want []verbs.Completion
		for i := round * ord; i < (round+1)*ord; i++ {
			if i%ord == 2 {
				a.expect(aReadRequest(msn, read{b.tag(), b.at(0), 4, uint32(theirs.STag), theirs.TO}))
				answers = append(answers, aReadResponse(b.tag(), b.at(0), []byte("read")))
				want = append(want, verbs.Completion{ID: i, Op: verbs.OpRead})
			} else {
				answers = append(answers, a.answer(a.asked(msn, sum(i)), ^i))
				want = append(want, verbs.Completion{ID: i, Op: verbs.OpFetchAdd, Value: ^i})
			}
			msn++
		}
		a.settled() // had it more to send, that would have come first
		a.incomplete()
		a.sendAtOnce(answers...)
		a.completions(want...)
	}
}

// completedByAnswer: an Atomic completes when its answer is here as a whole, whatever else
// comes; what was posted behind it completes behind it, and a fence holds a Send back.
func completedByAnswer(t *conformance.T) {
	a := openAtomics(open(t, extended(setup{})))
	b := a.region(16, allRights)
	a.recv(1, 8)
	a.post(adding(1), verbs.Request{ID: 2, SGL: b.sgl(0, 4)}, swapping(3), verbs.Request{ID: 4, SGL: b.sgl(4, 4), Flags: verbs.ReadFence})
	first := a.asked(1, sum(1))
	a.expect(aSend(1, b.first[:4]))
	second := a.asked(2, atomicOp{op: atomicCmpSwap, data: 3, mask: ^uint64(0)})
	a.idle()
	a.delivers(1, "Send")
	f := a.peer.Frame(a.answer(first, 41))
	require.NoError(t, a.peer.Raw(f[:len(f)-1]))
	a.incomplete()
	require.NoError(t, a.peer.Raw(f[len(f)-1:]))
	a.completions(verbs.Completion{ID: 1, Op: verbs.OpFetchAdd, Value: 41}, verbs.Completion{ID: 2})
	a.idle()
	a.send(a.answer(second, 42))
	a.expect(aSend(2, b.first[4:8]))
	a.completions(verbs.Completion{ID: 3, Op: verbs.OpSwap, Value: 42}, verbs.Completion{ID: 4})
	b.unchanged()
}
