package cases

import (
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5041_5_3 is the order and the delivery of messages: RFC 5041 5.3 and 5.4.
var r5041_5_3 = []conformance.Case{
	upperCase("5.3/order", ddpOrder, "R5041-5.3-M1", "R5041-5.3-M2"),
	upperCase("5.3/delivery-order", deliveryOrder, "R5041-5.3-M4"),
	upperCase("5.3/at-most-once", atMostOnce, "R5041-5.3-M3"),
	upperCase("5.4/delivered-when-whole", deliveredWhole, "R5041-4.1-M7", "R5041-5.4-M1"),
	upperCase("5.4/never-without-last", neverWithoutLast, "R5041-5.4-M1"),
	upperCase("5.4/length-told", lengthTold, "R5041-5.4-M2"),
}

// numbered is a message that says which it is.
func numbered(i int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(i)) }

// ddpOrder: both sides send at once, and the octets come in pieces of all sizes. What
// was posted comes in that order, answers to RDMA Reads in that of their requests; and
// what the peer sends is delivered in its order, each message once.
func ddpOrder(t *conformance.T) {
	const count = 200
	r := open(t, setup{qp: uppertester.OpenArgs{
		SendCQ: 1, RecvCQ: 2, CQEntries: 2 * count, SendDepth: count, RecvDepth: count, IRD: count, ORD: count,
	}})
	b := r.region(4*count, allRights)
	sink := r.region(4*count, allRights)
	for i := range count {
		r.postRecv(verbs.Recv{ID: uint64(i), SGL: sink.sgl(4*i, 4)})
	}
	// What the peer sends: numbered Sends, and RDMA Reads of numbered octets.
	var inbound [][]byte
	var answers int
	for i := range count {
		if i%3 == 2 {
			inbound = append(inbound, aReadRequest(r.nextRead(), read{nowhere + uint32(answers), nowhereTO, 4, b.tag(), b.at(4 * answers)}))
			answers++
		}
		cut := t.Rand().IntN(5)
		inbound = append(inbound, cutUp(opSend, 0, r.nextSend(), numbered(i), cut, 4-cut)...)
		sink.gets(4*i, numbered(i))
	}
	var want []verbs.Completion
	for i := range count {
		l := verbs.Request{ID: uint64(i), Op: verbs.OpWrite, SGL: b.sgl(4*i, 4), Remote: verbs.Remote{STag: verbs.STag(0x1000 + i), TO: 7}}
		switch t.Rand().IntN(3) {
		case 0:
			l.Op = verbs.OpSend
		case 1:
			l.Op, l.SGL, l.Local = verbs.OpRead, nil, b.sge(0, 0)
		}
		r.post(l)
		want = append(want, verbs.Completion{ID: uint64(i), Op: l.Op})
		for range len(inbound) / (count - i) {
			r.sendPieces(1+t.Rand().IntN(30), inbound[0])
			inbound = inbound[1:]
		}
	}
	require.Empty(t, inbound)
	numbers, sent, answered := counter{}, 0, 0
	for sent < count || answered < answers {
		p := r.message()
		numbers.counts(t, p)
		if p.control == opReadResponse {
			require.Equal(t, nowhere+uint32(answered), p.stag, "the answer to RDMA Read %d", answered)
			require.Equal(t, b.first[4*answered:4*answered+4], p.payload, "the answer to RDMA Read %d", answered)
			answered++
			continue
		}
		t.Part("message %d", sent)
		switch want[sent].Op {
		case verbs.OpSend:
			require.Equal(t, byte(opSend), p.control)
			require.Equal(t, b.first[4*sent:4*sent+4], p.payload)
		case verbs.OpWrite:
			require.Equal(t, message{tagged: true, control: opWrite, stag: 0x1000 + uint32(sent), to: 7}, p.address())
			require.Equal(t, b.first[4*sent:4*sent+4], p.payload)
		default:
			require.Equal(t, byte(opReadRequest), p.control)
			require.Equal(t, read{b.tag(), b.at(0), 0, 0x1000 + uint32(sent), 7}.header(), p.payload)
			r.send(aReadResponse(0, 0, nil))
		}
		sent++
	}
	t.Part("")
	r.completionsOf(r.SendCQ, want...)
	want = nil
	for i := range count {
		want = append(want, verbs.Completion{ID: uint64(i), Op: verbs.OpRecv, Bytes: 4})
	}
	r.completionsOf(r.RecvCQ, want...)
	sink.unchanged()

	// A long answer keeps many requests waiting.
	const long, burst = 4 << 20, 50
	big := r.region(long, allRights)
	requests := [][]byte{aReadRequest(r.nextRead(), read{nowhere, nowhereTO, long, big.tag(), big.at(0)})}
	for i := range uint32(burst) {
		requests = append(requests, aReadRequest(r.nextRead(), read{nowhere + 1 + i, nowhereTO, i, big.tag(), big.at(int(i))}))
	}
	r.sendAtOnce(requests...)
	same(t, big.first, r.message().payload, "the long answer")
	for i := range uint32(burst) {
		p := r.message()
		require.Equal(t, message{tagged: true, control: opReadResponse, stag: nowhere + 1 + i, to: nowhereTO}, p.address(), "answer %d behind it", i)
		same(t, big.first[i:2*i], p.payload, "answer %d behind it", i)
	}
	r.incomplete()
}

// deliveryOrder: a thousand Sends into a thousand receives, and Reads between.
func deliveryOrder(t *conformance.T) {
	const count, batch = 1000, 50
	r := open(t, setup{qp: uppertester.OpenArgs{SendCQ: 1, RecvCQ: 2, SendDepth: batch, RecvDepth: count, CQEntries: count, ORD: batch}})
	b, sink := r.region(4*count, allRights), r.region(4*count, allRights)
	for i := range count {
		r.postRecv(verbs.Recv{ID: uint64(i), SGL: sink.sgl(4*i, 4)})
	}
	for i := 0; i < count; i += batch {
		var reads []verbs.Request
		for k := i; k < i+batch; k++ {
			reads = append(reads, verbs.Request{ID: uint64(k), Op: verbs.OpRead, Local: b.sge(4*k, 4), Remote: theirs})
		}
		r.post(reads...)
		var messages [][]byte
		var sends, answers []verbs.Completion
		for k := i; k < i+batch; k++ {
			require.Equal(t, byte(opReadRequest), r.next()[1])
			messages = append(messages, aSend(r.nextSend(), numbered(k)), aReadResponse(b.tag(), b.at(4*k), numbered(k)))
			b.gets(4*k, numbered(k))
			sink.gets(4*k, numbered(k))
			sends = append(sends, verbs.Completion{ID: uint64(k), Op: verbs.OpRecv, Bytes: 4})
			answers = append(answers, verbs.Completion{ID: uint64(k), Op: verbs.OpRead})
		}
		r.sendAtOnce(messages...)
		r.completionsOf(r.RecvCQ, sends...)
		r.completionsOf(r.SendCQ, answers...)
	}
	b.unchanged()
	sink.unchanged()
}

// atMostOnce: what comes a second time, with the octets of the first, is not delivered
// again.
func atMostOnce(t *conformance.T) {
	t.Part("a Send")
	r := open(t, setup{qp: uppertester.OpenArgs{SendCQ: 1, RecvCQ: 2}})
	bufs := r.recv(2, 16)
	u := aSend(1, []byte("once"))
	r.send(u, u)
	r.tornDown(0x1203, u, false)
	r.events(verbs.EventRQMSNRange)
	r.completionsOf(r.RecvCQ,
		verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: 4},
		verbs.Completion{ID: 2, Op: verbs.OpRecv, Status: verbs.StatusFlushed},
	)
	bufs[0].holds(0, []byte("once"))
	bufs[1].unchanged()

	t.Part("the last segment of a Send")
	r = open(t, setup{qp: uppertester.OpenArgs{SendCQ: 1, RecvCQ: 2}})
	bufs = r.recv(2, 16)
	list := cutUp(opSend, 0, 1, []byte("only once"), 5, 4)
	r.send(list[0], list[1], list[1])
	r.tornDown(0x1203, list[1], false)
	r.completionsOf(r.RecvCQ,
		verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: 9},
		verbs.Completion{ID: 2, Op: verbs.OpRecv, Status: verbs.StatusFlushed},
	)
	bufs[1].unchanged()

	t.Part("an RDMA Read Response")
	r = open(t, setup{})
	b := r.outstandingRead(9)
	u = aReadResponse(b.tag(), b.at(0), []byte("response"))
	r.send(u, u)
	r.completions(verbs.Completion{ID: 9, Op: verbs.OpRead})
	r.tornDown(0x0206, u, false)
	r.incomplete()

	t.Part("an RDMA Read Request")
	r = open(t, setup{})
	b = r.region(8, allRights)
	u = aReadRequest(1, read{nowhere, nowhereTO, 8, b.tag(), b.at(0)})
	r.send(u)
	r.expect(aReadResponse(nowhere, nowhereTO, b.first))
	r.refuses(0x1203, u, false)
	r.events(verbs.EventIRRQMSNRange)
}

// deliveredWhole: an RDMA Write, then two Sends, each in many segments. At no point is
// more delivered than is whole; and when a Send is delivered, all before it is placed.
func deliveredWhole(t *conformance.T) {
	const size, cut = 600, 40
	r, b := openWith(t, setup{}, size)
	bufs := r.recv(2, size)
	data := uppertester.Pattern(7, size)
	var lengths []int
	for range size / cut {
		lengths = append(lengths, cut)
	}
	r.send(cutTagged(opWrite, b.tag(), b.at(0), data, lengths...)...)
	for i := range 2 {
		list := cutUp(opSend, 0, r.nextSend(), data[i:size-1+i], append(lengths[:len(lengths)-1:len(lengths)-1], cut-1, 0)...)
		for k, u := range list[:len(list)-1] {
			t.Part("Send %d without its segments behind %d", i, k)
			r.send(u)
			r.idle()
		}
		r.send(list[len(list)-1]) // an empty one, with the Last flag
		r.completions(verbs.Completion{ID: uint64(i + 1), Op: verbs.OpRecv, Bytes: size - 1})
		b.holds(0, data)
		bufs[i].holds(0, data[i:size-1+i])
	}
	t.Part("all at once")
	r = open(t, setup{})
	b = r.region(size, allRights)
	bufs = r.recv(2, size)
	list := cutTagged(opWrite, b.tag(), b.at(0), data, lengths...)
	list = append(list, cutUp(opSend, 0, 1, data, lengths...)...)
	list = append(list, cutUp(opSend, 0, 2, data, lengths...)...)
	r.sendAtOnce(list...)
	for i := range 2 {
		r.completions(verbs.Completion{ID: uint64(i + 1), Op: verbs.OpRecv, Bytes: size})
		b.holds(0, data)
		bufs[i].holds(0, data)
	}
}

// neverWithoutLast: all octets of a Send are there, but for its Last flag, when the
// stream ends in one way or another.
func neverWithoutLast(t *conformance.T) {
	for what, do := range named(t, "%s", map[string]func(r *rig){
		"a reset":             func(r *rig) { require.NoError(t, r.peer.Reset()) },
		"the peer's close":    func(r *rig) { r.shut() },
		"a Terminate Message": func(r *rig) { r.send(aTerminate(0x1202, nil, false)) },
		"a bad segment":       func(r *rig) { r.send(aWrite(0x77, 0, []byte{1})) },
		"the next Send":       func(r *rig) { r.send(aSend(2, []byte("next"))) },
	}) {
		r := open(t, setup{qp: uppertester.OpenArgs{CloseTimeout: 50_000_000}}) // 50 ms
		b := r.recv(2, 8)
		r.send(untagged(moreUntagged, opSend, 0, 0, 1, 0, []byte("complete")))
		r.settled()
		do(r)
		if what != "a reset" {
			r.gone()
			_ = r.peer.CloseWrite()
		}
		got := r.poll(r.RecvCQ, 2, r.patience())
		require.Len(t, got, 2)
		for _, c := range got {
			require.Equal(t, verbs.StatusFlushed, c.Status, "%+v", c)
		}
		b[1].unchanged()
	}
}

// lengthTold: what a completion says is where the last segment ended.
func lengthTold(t *conformance.T) {
	const room = 100_000
	r, b := openWith(t, setup{}, room)
	data := uppertester.Pattern(9, room)
	for n := range inTurn(t, "%d octets", []int{0, 1, 2, 3, 4, 5, 6, 7, 255, 256, 65535, 65536, room}) {
		for pieces := range inTurn(t, "in %d segments", []int{1, 2, 10}) {
			lengths, left := []int(nil), n
			for i := range pieces - 1 {
				k := min(left, 30_000, n/pieces+i)
				lengths, left = append(lengths, k), left-k
			}
			for ; left > 60_000; left -= 60_000 { // no ULPDU is that long
				lengths = append(lengths, 60_000)
			}
			lengths = append(lengths, left)
			r.postRecv(verbs.Recv{ID: 3, SGL: b.sgl(0, room)})
			r.send(cutUp(opSend, 0, r.nextSend(), data, lengths...)...)
			r.completions(verbs.Completion{ID: 3, Op: verbs.OpRecv, Bytes: uint32(n)})
			b.holds(0, data[:n])
		}
	}
}
