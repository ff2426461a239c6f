package cases

import (
	"encoding/binary"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
)

// r5041_blind is RFC 5041 as far as it shows in an endpoint of which is known only that
// it speaks rping's language; blind_5041.go has what it refuses.
var r5041_blind = []conformance.Case{
	wireCase("4/blind-headers", blindly(conformance.Initiator, blindControlOctets),
		"R5041-4.1-M3", "R5041-4.1-M8", "R5041-4.1-M9", "R5041-4.2-M1", "R5041-4.2-M2", "R5041-4.3-M1", "R5041-4.3-M2",
		"R5041-4.3-M7"),
	wireCase("4.3/blind-numbers", blindly(conformance.Initiator, blindNumbers), "R5041-4.3-M9", "R5041-4.3-M10", "R5041-4.3-M14"),
	wireCase("4.2/blind-stag-and-to", blindTagged, "R5041-4.2-M7", "R5041-4.2-M10", "R5041-5.2-M7", "R5041-5.2-M8"),
	wireCase("5.2/blind-segments", blindly(conformance.Initiator, blindSegments), "R5041-5.2-M5"),
	wireCase("5.2/blind-empty-message", blindly(conformance.Either, blindEmptyMessages), "R5041-5.2-M9", "R5041-5.2-M11"),
	wireCase("7.1/blind-later-segments", blindly(conformance.Either, blindLater), "R5041-3-M10", "R5041-7.1-M4"),
	wireCase("3/blind-digest", blindDigest, "R5041-3-M7"),
}

// rounds plays rounds as a client whose buffers are these, and returns each ULPDU that
// the target sent.
func (b *blind) rounds(n int, sink func(i int) offered) [][]byte {
	var got [][]byte
	take := func() []byte {
		got = append(got, b.next())
		return got[len(got)-1]
	}
	for i := range n {
		o := sink(i)
		b.offer(o)
		u := take()
		require.Len(b.t, u, 46, "an RDMA Read Request, but %s", described(u))
		b.send(aReadResponse(binary.BigEndian.Uint32(u[18:]), binary.BigEndian.Uint64(u[22:]), blindText(int(o.size))))
		take()
		b.offer(o)
		take()
		take()
	}
	return got
}

// blindControlOctets: the control octets of all that is sent.
func blindControlOctets(t *conformance.T, b *blind) {
	got := b.rounds(3, func(int) offered { return ours[0] })
	want := [][]byte{
		{0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1}, // RDMA Read Request
		{0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0}, // Send
		{0xC1, 0x40},                         // RDMA Write
		{0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0},
	}
	for i, u := range got {
		w := want[i%4]
		require.Equal(t, w, u[:len(w)], "message %d begins with control octets, RsvdULP and QN", i)
	}
	r := startBlind(t, conformance.Responder)
	r.works() // with the headers of RDMA Read Responses
}

// blindNumbers: Sends and RDMA Read Requests are numbered from 1, each on their own.
func blindNumbers(t *conformance.T, b *blind) {
	numbers := counter{}
	for _, u := range b.rounds(5, func(int) offered { return ours[1] }) {
		if u[0]&0x80 == 0 {
			numbers.counts(t, message(t, func() []byte { return u }))
		}
	}
	require.Equal(t, counter{0: 10, 1: 5}, numbers)
}

// blindTagged: buffers of all kinds of STag and TO, and what is written to them.
func blindTagged(t *conformance.T) {
	sinks := []offered{
		{1, 0, 16}, {0x80000000, 1, 64}, {0xFFFFFFFF, 1 << 40, 33}, {0x100, 1<<64 - 65, 64}, {0x7FFFFFFF, 0xFFFFFFFF, 64},
	}
	b := startBlind(t, conformance.Initiator)
	got := b.rounds(len(sinks), func(i int) offered { return sinks[i] })
	for i, o := range sinks {
		require.Equal(t, aWrite(o.stag, o.to, blindText(int(o.size))), got[4*i+2], "the RDMA Write to %08x+%x", o.stag, o.to)
	}
}

// blindSegments has what the target fetches come in segments of all sizes, with empty
// ones between.
func blindSegments(t *conformance.T, b *blind) {
	for i, lengths := range [][]int{{1, 63}, {63, 1}, {0, 32, 0, 32}, {21, 22, 21}, {64, 0}} {
		t.Part("segments of %v octets", lengths)
		data := make([]byte, 64)
		for k := range data {
			data[k] = byte('a' + (i+k)%26)
		}
		data[63] = 0 // rping's texts end so
		b.offer(ours[0])
		r := b.fetched(ours[0])
		b.send(cutTagged(opReadResponse, r.sinkSTag, r.sinkTO, data, lengths...)...)
		b.received(uint32(2*i + 1))
		b.offer(ours[1])
		b.expect(aWrite(ours[1].stag, ours[1].to, data))
		b.received(uint32(2*i + 2))
	}
}

// blindEmptyMessages: empty messages, of which neither STag nor TO is looked at.
func blindEmptyMessages(t *conformance.T, b *blind) {
	for _, x := range []struct {
		stag uint32
		to   uint64
	}{{0, 0}, {0xDEADBEEF, 0x1234}, {1, ^uint64(0)}} {
		t.Part("STag %08x, TO %x", x.stag, x.to)
		b.send(aWrite(x.stag, x.to, nil))
		b.send(aReadRequest(b.nextRead(), read{x.stag ^ 1, x.to, 0, x.stag, x.to}))
		b.expect(tagged(0xC1, opReadResponse, x.stag^1, x.to, nil))
	}
	t.Part("")
	b.works()
}

// blindLater: behind a bad segment come good ones, to which there is no answer.
func blindLater(t *conformance.T, b *blind) {
	bad := untagged(lastUntagged, opSend, 0, 9, 1, 0, make([]byte, 16))
	var all []byte
	all = append(all, b.peer.Frame(bad)...)
	for i := range 5 {
		all = append(all, b.peer.Frame(aReadRequest(uint32(i+1), read{nowhere, nowhereTO, 0, 0, 0}))...)
		all = append(all, b.peer.Frame(bad)...)
	}
	require.NoError(t, b.peer.Raw(all))
	b.refusedAs(0x1201)
	b.finished()
}

// blindDigest: a wrong bit, wherever it is in an FPDU behind its length.
func blindDigest(t *conformance.T) {
	for at := range inTurn(t, "octet %d of 52", []int{3, 9, 20, 30, 49, 51}) {
		b := startBlind(t, conformance.Either)
		f := b.peer.Frame(aReadRequest(1, read{nowhere, nowhereTO, 0, 0, 0}))
		require.Len(t, f, 52)
		f[at] ^= 0x08
		require.NoError(t, b.peer.Raw(f))
		// Some end the stream without a word. What matters is that nothing
		// answers.
		u, err := b.peer.Next()
		if err == nil {
			require.Equal(t, byte(7), u[1]&0x0F, fmt.Sprintf("instead of a Terminate Message %s", described(u)))
			b.isRefusal(u, 0x2002)
		} else {
			require.True(t, ended(err), failure(err))
		}
		b.close()
	}
}
