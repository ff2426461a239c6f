package cases

import (
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

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
