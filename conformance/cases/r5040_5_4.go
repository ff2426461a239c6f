package cases

import (
	"encoding/binary"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5040_5_4 is Terminate Messages: RFC 5040 5.4.
var r5040_5_4 = []conformance.Case{
	upperCase("5.4/terminate-sent", terminateSent, "R5040-5.4-M2", "R5040-5.4-M3", "R5040-5.4-M8"),
	upperCase("5.4/terminate-arrives", terminateArrives, "R5040-5.4-M6"),
	upperCase("5.4/terminate-received", terminateReceived, "R5040-5.4-M1", "R5040-5.4-M4", "R5040-5.4-M7"),
	upperCase("5.4/terminate-always-has-room", terminateRoom, "R5040-5.4-M5", "R5040-5.4-M7"),
}

// terminateSent: behind a Terminate Message there is nothing, whatever was queued.
func terminateSent(t *conformance.T) {
	r, b := openWith(t, setup{narrow: true}, 8<<20)
	// A response that TCP does not take as a whole, and behind it all else.
	r.send(aReadRequest(r.nextRead(), read{nowhere, nowhereTO, 8 << 20, b.tag(), b.at(0)}))
	var list []verbs.Request
	for range 10 {
		list = append(list, verbs.Request{SGL: b.sgl(0, 100)}, verbs.Request{Op: verbs.OpWrite, SGL: b.sgl(0, 100), Remote: theirs})
	}
	r.post(list...)
	bad := aWrite(0x77, 0, []byte("bad"))
	r.send(bad, aReadRequest(r.nextRead(), read{nowhere, nowhereTO, 5, b.tag(), b.at(0)}))
	for {
		u := r.next()
		if u[1] != opTerminate {
			continue
		}
		require.Equal(t, byte(0x41), u[0])
		require.Equal(t, []byte{0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0}, u[2:18], "QN 2, MSN 1, MO 0")
		require.Equal(t, aTerminate(0x1100, bad, false), u)
		break
	}
	r.finishedIn(verbs.StateError)
}

// terminateArrives: the peer gets the Terminate Message and an orderly end, though
// it goes on sending and reads late.
func terminateArrives(t *conformance.T) {
	for _, closes := range []bool{true, false} {
		t.Part("the peer has closed its half: %v", closes)
		r := open(t, setup{})
		bad := aWrite(0x77, 0, []byte("bad"))
		r.send(bad)
		for range 400 { // more than the sockets hold: somebody has to take it
			require.NoError(t, r.peer.Send(aWrite(0x78, 0, make([]byte, 20_000))), "the peer goes on sending")
		}
		if closes {
			r.shut()
		}
		r.terminated(0x1100, bad, false)
		r.ended(verbs.StateError)
		r.events(verbs.EventProtSTag)
	}
}

// terminateReceived: what the peer complains about is kept whole, and told.
func terminateReceived(t *conformance.T) {
	write := aWrite(0x11223344, 99, []byte("x"))
	request := aReadRequest(7, read{1, 2, 3, 4, 5})
	for _, u := range [][]byte{
		aTerminate(0x0000, nil, false), aTerminate(0x1202, nil, false), aTerminate(0x2002, nil, false),
		aTerminate(0x1100, write, false), aTerminate(0x1203, request, false), aTerminate(0x0103, request, true),
		aTerminate(0xEFAB, nil, false), // nobody knows it
		// Less than M, D and R announce.
		cutTerminate(0xE0), cutTerminate(0x80, 1), cutTerminate(0x20),
		cutTerminate(0xC0, append([]byte{0, 18, 0x41}, make([]byte, 16)...)...), cutTerminate(0xC0, append([]byte{0, 14, 0xC1}, make([]byte, 12)...)...),
		cutTerminate(0xE0, aTerminate(0x0103, request, true)[22:22+2+18+27]...),
		cutTerminate(0x40, aTerminate(0x1100, write, false)[22:]...), // D without M
	} {
		t.Part("Terminate Message %x", u[18:])
		v := newFaultRig(t, setup{})
		v.send(u)
		q := v.finishedIn(verbs.StateError)
		v.events(verbs.EventTerminateReceived)
		require.NotNil(t, q.Terminate, "the Terminate Message of Query QP")
		require.False(t, q.Terminate.Sent)
		require.Equal(t, binary.BigEndian.Uint16(u[18:]), uint16(q.Terminate.Code))
		require.Equal(t, u[18:], q.Terminate.Raw)
		v.completionsOf(v.RecvCQ, verbs.Completion{ID: 1, Op: verbs.OpRecv, Status: verbs.StatusFlushed})
		v.receive.unchanged()
	}
	// There is one place: MSN 1. A second Terminate Message is behind the end.
	rejects(t, setup{}, "MSN 2", peerFault{event: verbs.EventUnexpectedOpcode, code: 0x1203},
		always(with(atMSN, 2)(aTerminate(0x1202, nil, false))))
	t.Part("two")
	v := newFaultRig(t, setup{})
	v.sendAtOnce(aTerminate(0x1202, nil, false), aTerminate(0x1203, nil, false))
	q := v.finishedIn(verbs.StateError)
	v.events(verbs.EventTerminateReceived)
	require.EqualValues(t, 0x1202, q.Terminate.Code)
}

// cutTerminate is a Terminate Message that has those bits, and that behind them.
func cutTerminate(bits byte, rest ...byte) []byte {
	return untagged(lastUntagged, opTerminate, 0, 2, 1, 0, append([]byte{0x12, 0x02, bits, 0}, rest...))
}

// terminateRoom: a Terminate Message finds its place when nothing else does.
func terminateRoom(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what string
		set  setup
		fill func(r *rig)
	}{
		{"no receive is posted", setup{}, func(*rig) {}},
		{"the CQ is full", setup{qp: uppertester.OpenArgs{CQEntries: 1}}, func(r *rig) {
			r.recv(1, 8)
			r.sendMessage(nil)
		}},
		{"the S-RQ is empty", setup{qp: uppertester.OpenArgs{SRQ: 1}}, func(*rig) {}},
		{"there are no RDMA Reads", setup{qp: uppertester.OpenArgs{NoReads: true}}, func(*rig) {}},
		{"the IRRQ is full", setup{qp: uppertester.OpenArgs{IRD: 1}, narrow: true}, func(r *rig) {
			b := r.region(8<<20, allRights)
			r.send(aReadRequest(1, read{nowhere, 0, 8 << 20, b.tag(), b.at(0)}))
		}},
		{"a Send is half here", setup{}, func(r *rig) {
			r.recv(1, 8)
			r.send(untagged(moreUntagged, opSend, 0, 0, 1, 0, []byte("ha")))
		}},
		{"an RDMA Write is half here", setup{}, func(r *rig) { r.send(tagged(moreTagged, opWrite, 0, 0, nil)) }},
	}) {
		r := open(t, x.set)
		x.fill(r)
		fault := aReadRequest(7, read{1, 2, 3, 4, 5})
		u := aTerminate(0x0103, fault, true)
		r.send(u)
		for {
			_, err := r.peer.Next()
			if err != nil {
				break // a part of the response may be on its way
			}
		}
		_ = r.peer.CloseWrite()
		q := r.ended(verbs.StateError)
		require.NotNil(t, q.Terminate)
		require.Equal(t, u[18:], q.Terminate.Raw)
		var e uppertester.Events
		require.NoError(t, r.up.Events(uppertester.EventsArgs{N: 1, Timeout: r.patience()}, &e))
		require.True(t, slices.ContainsFunc(e.Events, func(e verbs.Event) bool {
			return e.ID == verbs.EventTerminateReceived && e.QP == r.ID
		}), "the events %v", e.Events)
	}
}

// r5040_5_5 is order and completion: RFC 5040 5.5.
var r5040_5_5 = []conformance.Case{
	upperCase("5.5/send-delivered-whole", onRig(sendDeliveredWhole), "R5040-5.5-M1", "R5040-5.5-M7"),
	upperCase("5.5/send-with-bad-end", onRig(sendBadEnd), "R5040-5.5-M7"),
	upperCase("5.5/response-delivered-whole", onRig(responseDeliveredWhole), "R5040-5.5-M2", "R5040-5.5-M9", "R5040-5.5-M11"),
	upperCase("5.5/request-delivered-whole", onRig(requestDeliveredWhole), "R5040-5.5-M3", "R5040-5.5-M8"),
	upperCase("5.5/submission-order", submissionOrder, "R5040-5.5-M4", "R5040-5.5-M6"),
	upperCase("5.5/not-complete-before-sent", notCompleteBeforeSent, "R5040-5.5-M5"),
	upperCase("5.5/completions-wait-for-reads", onRig(completionsWait), "R5040-5.5-M6", "R5040-5.5-M9"),
}

// sendDeliveredWhole: a Send completes with its last segment and not before, and
// none before it is.
func sendDeliveredWhole(t *conformance.T, r *rig) {
	b := r.recv(2, 64)
	r.send(untagged(moreUntagged, opSend, 0, 0, 1, 0, []byte("first ")))
	r.idle()
	r.send(untagged(moreUntagged, opSend, 0, 0, 1, 6, []byte("second ")))
	r.idle()
	r.sendAtOnce(untagged(lastUntagged, opSend, 0, 0, 1, 13, nil), aSend(2, []byte("other")))
	r.completions(
		verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: 13},
		verbs.Completion{ID: 2, Op: verbs.OpRecv, Bytes: 5},
	)
	b[0].holds(0, []byte("first second "))
	b[1].holds(0, []byte("other"))
}

// sendBadEnd: a Send whose last segment is bad is never delivered.
func sendBadEnd(t *conformance.T, r *rig) {
	r.recv(1, 64)
	r.send(untagged(moreUntagged, opSend, 0, 0, 1, 0, []byte("first ")))
	f := r.peer.Frame(untagged(lastUntagged, opSend, 0, 0, 1, 6, []byte("second")))
	f[25] ^= 0x10 // an octet of the payload
	require.NoError(t, r.peer.Raw(f))
	r.tornDown(0x2002, nil, false)
	r.events(verbs.EventBadCRC)
	r.completions(verbs.Completion{ID: 1, Op: verbs.OpRecv, Status: verbs.StatusFlushed})
	r.incomplete()
}

// responseDeliveredWhole: a Read completes with the last segment of its response
// and not before, and none before an earlier one.
func responseDeliveredWhole(t *conformance.T, r *rig) {
	b := r.region(64, allRights)
	r.recv(1, 8)
	for i := range 2 {
		l := verbs.Request{ID: uint64(10 + i), Op: verbs.OpRead, Local: b.sge(32*i, 12), Remote: theirs}
		r.post(l)
		r.expect(aReadRequest(uint32(i+1), read{b.tag(), b.at(32 * i), 12, uint32(theirs.STag), theirs.TO}))
	}
	r.idle()
	r.send(tagged(moreTagged, opReadResponse, b.tag(), b.at(0), []byte("resp")))
	r.idle()
	r.send(tagged(moreTagged, opReadResponse, b.tag(), b.at(4), []byte("onse one")))
	r.settled() // all octets are there, but for the last segment
	r.incomplete()
	r.send(tagged(lastTagged, opReadResponse, b.tag(), b.at(12), nil))
	r.completions(verbs.Completion{ID: 10, Op: verbs.OpRead})
	b.holds(0, []byte("response one"))
	// Other messages do not complete it.
	r.delivers(1, "Send")
	r.idle()
	r.send(aReadResponse(b.tag(), b.at(32), []byte("response two")))
	r.completions(verbs.Completion{ID: 11, Op: verbs.OpRead})
	b.holds(32, []byte("response two"))
}

// requestDeliveredWhole: an RDMA Read is not begun before its whole request is here.
// The source is changed in between, and what is read is the change.
func requestDeliveredWhole(t *conformance.T, r *rig) {
	b := r.region(64, allRights)
	for i, n := range []uint32{8, 0, 8} {
		t.Part("a Read of %d octets", n)
		sink := nowhere + uint32(i)
		f := r.peer.Frame(aReadRequest(r.nextRead(), read{sink, nowhereTO, n, b.tag(), b.at(0)}))
		cut := []int{1, len(f) / 2, len(f) - 1}[i]
		require.NoError(t, r.peer.Raw(f[:cut]))
		change := uppertester.Pattern(uint8(100+i), 8)
		require.NoError(t, r.up.Fill(uppertester.FillArgs{Region: b.Region.Region, Octets: change}, &uppertester.None{}))
		b.gets(0, change)
		require.NoError(t, r.peer.Raw(f[cut:]))
		r.expect(aReadResponse(sink, nowhereTO, change[:n]))
	}
	t.Part("a Read Request that is not the last segment of its message")
	spoilt, source := openWith(t, setup{}, 64)
	bad := aReadRequest(1, read{nowhere, nowhereTO, 8, source.tag(), source.at(0)})
	bad[0] &^= 0x40
	spoilt.send(bad)
	require.Equal(t, byte(opTerminate), spoilt.next()[1], "it was answered")
	t.Part("a Write and then a Read of the same octets")
	for i := range 50 {
		data := uppertester.Pattern(uint8(i), 40)
		w := aWrite(b.tag(), b.at(10), data)
		q := aReadRequest(r.nextRead(), read{nowhere, nowhereTO, 40, b.tag(), b.at(10)})
		both := append(r.peer.Frame(w), r.peer.Frame(q)...)
		cut := i * len(both) / 50
		require.NoError(t, r.peer.Raw(both[:cut]))
		require.NoError(t, r.peer.Raw(both[cut:]))
		r.expect(aReadResponse(nowhere, nowhereTO, data))
	}
}

// submissionOrder: a random mix of operations is on the wire, and completes, as it
// was posted.
func submissionOrder(t *conformance.T) {
	const count = 300
	r, b := openWith(t, setup{qp: uppertester.OpenArgs{SendDepth: count, CQEntries: count, ORD: 4}}, 4096)
	var sends, reads uint32
	var list []verbs.Request
	var kinds []int // of sendTypes; beyond them an RDMA Read or Write
	for i := range count {
		n := t.Rand().IntN(200)
		kind := t.Rand().IntN(len(sendTypes) + 2)
		l := verbs.Request{ID: uint64(i), Op: verbs.OpWrite, SGL: b.sgl(n, n), Remote: theirs}
		switch {
		case kind < len(sendTypes):
			l.Op, l.Invalidate = sendTypes[kind].op, verbs.STag(sendTypes[kind].invalid)
		case kind == len(sendTypes):
			l.Op, l.SGL, l.Local = verbs.OpRead, nil, b.sge(2048, n)
		}
		list, kinds = append(list, l), append(kinds, kind)
	}
	for i := 0; i < count; {
		n := min(1+t.Rand().IntN(8), count-i)
		r.post(list[i : i+n]...)
		i += n
	}
	var want []verbs.Completion
	for i, l := range list {
		t.Part("request %d", i)
		switch {
		case l.Op == verbs.OpWrite:
			r.expect(aWrite(uint32(theirs.STag), theirs.TO, b.first[l.SGL[0].Length:2*l.SGL[0].Length]))
		case l.Op == verbs.OpRead:
			reads++
			r.expect(aReadRequest(reads, read{b.tag(), b.at(2048), l.Local.Length, uint32(theirs.STag), theirs.TO}))
			r.send(aReadResponse(b.tag(), b.at(2048), make([]byte, l.Local.Length)))
		default:
			sends++
			k := l.SGL[0].Length
			r.expect(untagged(lastUntagged, sendTypes[kinds[i]].control, uint32(l.Invalidate), 0, sends, 0, b.first[k:2*k]))
		}
		want = append(want, verbs.Completion{ID: uint64(i), Op: l.Op})
	}
	t.Part("")
	r.completions(want...)
}

// notCompleteBeforeSent: a message that TCP has not taken as a whole is not
// complete.
func notCompleteBeforeSent(t *conformance.T) {
	const size, taken = 8 << 20, 1 << 20
	for op := range inTurn(t, "%v", []verbs.Op{verbs.OpSend, verbs.OpWrite}) {
		r := open(t, setup{narrow: true})
		b := r.region(size, verbs.LocalRead)
		r.post(verbs.Request{ID: 5, Op: op, SGL: b.sgl(0, size), Remote: theirs})
		payload := 0
		read := func() {
			u := r.next()
			payload += len(u) - 18
			if op == verbs.OpWrite {
				payload += 4
			}
		}
		for payload < taken {
			read()
		}
		// The rest is more than TCP holds for a peer that does not read.
		r.incomplete()
		for payload < size {
			read()
		}
		r.completions(verbs.Completion{ID: 5, Op: op})
	}
}

// completionsWait: what was posted behind a Read completes behind it, though it was
// sent long before.
func completionsWait(t *conformance.T, r *rig) {
	b := r.region(64, allRights)
	r.post(
		verbs.Request{ID: 1, Op: verbs.OpRead, Local: b.sge(0, 4), Remote: theirs},
		verbs.Request{ID: 2, SGL: b.sgl(8, 8)},
		verbs.Request{ID: 3, Op: verbs.OpWrite, SGL: b.sgl(16, 8), Remote: theirs},
		verbs.Request{ID: 4, Op: verbs.OpRead, Local: b.sge(4, 4), Remote: theirs},
		verbs.Request{ID: 5, SGL: b.sgl(24, 8)},
	)
	r.expect(
		aReadRequest(1, read{b.tag(), b.at(0), 4, uint32(theirs.STag), theirs.TO}),
		aSend(1, b.first[8:16]),
		aWrite(uint32(theirs.STag), theirs.TO, b.first[16:24]),
		aReadRequest(2, read{b.tag(), b.at(4), 4, uint32(theirs.STag), theirs.TO}),
		aSend(2, b.first[24:32]),
	)
	r.idle()
	r.send(aReadResponse(b.tag(), b.at(0), []byte("1111")))
	r.completions(verbs.Completion{ID: 1, Op: verbs.OpRead}, verbs.Completion{ID: 2}, verbs.Completion{ID: 3, Op: verbs.OpWrite})
	r.idle()
	r.send(aReadResponse(b.tag(), b.at(4), []byte("2222")))
	r.completions(verbs.Completion{ID: 4, Op: verbs.OpRead}, verbs.Completion{ID: 5})
	b.holds(0, []byte("11112222"))
}
