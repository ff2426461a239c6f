package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/upper"
	"github.com/softrnic/softrnic/verbs"
)

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
		change := upper.Pattern(uint8(100+i), 8)
		require.NoError(t, r.up.Fill(upper.FillArgs{Region: b.Region.Region, Octets: change}, &upper.None{}))
		b.gets(0, change)
		require.NoError(t, r.peer.Raw(f[cut:]))
		r.expect(aReadResponse(sink, nowhereTO, change[:n]))
	}
	t.Part("a Write and then a Read of the same octets")
	for i := range 50 {
		data := upper.Pattern(uint8(i), 40)
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
	r := open(t, setup{qp: upper.OpenArgs{SendDepth: count, CQEntries: count, ORD: 4}})
	b := r.region(4096, allRights)
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
