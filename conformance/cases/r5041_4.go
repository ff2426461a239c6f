package cases

import (
	"fmt"
	"sync"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5041_4 is DDP's control octet, and what holds for the segments of a message: RFC
// 5041 4.1 and 4.4.
var r5041_4 = []conformance.Case{
	upperCase("4.1/buffer-models", onRig(bufferModels), "R5041-4.1-M1", "R5041-4.1-M2"),
	upperCase("4.1/last-flag", lastFlag, "R5041-4.1-M3", "R5041-4.1-M4", "R5041-4.1-M6"),
	upperCase("4.1/messages-not-mixed", messagesNotMixed,
		"R5041-4.1-M5", "R5041-4.2-M4", "R5041-4.2-M5", "R5041-4.2-M9", "R5041-4.2-M10", "R5041-4.2-M11",
		"R5041-4.3-M4", "R5041-4.3-M6", "R5041-4.3-M7", "R5041-4.3-M8", "R5041-4.3-M9", "R5041-4.3-M12",
		"R5041-4.3-M13"),
	upperCase("4.1/reserved-bits", ddpReserved, "R5041-4.1-M8"),
	upperCase("4.1/version", ddpVersion, "R5041-4.1-M9"),
	upperCase("4.1/version-stays", versionStays, "R5041-4.1-M10"),
	upperCase("4.4/header-first", headerFirst, "R5041-4.4-M1"),
}

// bufferModels: the T flag alone says whether a segment goes to an STag's memory or to
// a receive, though every other octet could mean the other.
func bufferModels(t *conformance.T, r *rig) {
	receives := r.recv(1, 64)
	b := r.region(64, allRights)
	r.send(aWrite(b.tag(), b.at(5), []byte("tagged")))
	r.settled()
	b.holds(5, []byte("tagged"))
	receives[0].unchanged()
	r.incomplete()
	// RsvdULP where a tagged segment has the STag, and the STag's address behind it.
	payload := tagged(lastTagged, opWrite, b.tag(), b.at(20), []byte("untagged"))[6:]
	r.send(untagged(lastUntagged, opSend, b.tag(), 0, r.nextSend(), 0, payload))
	r.completions(verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: uint32(len(payload))})
	receives[0].holds(0, payload)
	b.unchanged()
}

// lastFlag: messages of every kind, of no octet, of one segment and of many.
func lastFlag(t *conformance.T) {
	const long = 1 << 20
	r, b := openWith(t, setup{}, long)
	for _, n := range []int{0, 1, 1000, long} {
		for _, s := range sendTypes {
			t.Part("%v of %d octets", s.op, n)
			r.post(verbs.Request{ID: 1, Op: s.op, SGL: b.sgl(0, n), Invalidate: verbs.STag(s.invalid)})
			whole(t, r.message(), s.control, b.first[:n])
			r.completions(verbs.Completion{ID: 1, Op: s.op})
		}
		t.Part("an RDMA Write of %d octets", n)
		r.post(verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: b.sgl(0, n), Remote: theirs})
		whole(t, r.message(), opWrite, b.first[:n])
		r.completions(verbs.Completion{ID: 1, Op: verbs.OpWrite})
		t.Part("an RDMA Read of %d octets", n)
		r.send(aReadRequest(r.nextRead(), read{nowhere, nowhereTO, uint32(n), b.tag(), b.at(0)}))
		whole(t, r.message(), opReadResponse, b.first[:n])
	}
	t.Part("")
	r.post(verbs.Request{ID: 1, Op: verbs.OpRead, Local: b.sge(0, 1), Remote: theirs})
	require.Len(t, r.message().segments, 1, "an RDMA Read Request")
	r.send(aWrite(0x77, 0, []byte("x")))
	require.Len(t, r.message().segments, 1, "a Terminate Message")
}

// whole says what a message is: message has seen to it that its last segment, with
// the greatest offset, and no other has the Last flag.
func whole(t *conformance.T, p message, control byte, payload []byte) {
	require.Equal(t, control, p.control, "the control octet")
	same(t, payload, p.payload, "the message")
	require.Equal(t, len(payload) > 1<<17, len(p.segments) > 1, "it has %d segments", len(p.segments))
}

// messagesNotMixed: many threads post long messages of every kind, while answers to
// RDMA Reads go the same way. Each message comes whole, its segments in a row and
// with one RsvdULP, STag, QN and MSN; and as often as it was posted.
func messagesNotMixed(t *conformance.T) {
	const size, threads, each, responses = 200_000, 4, 6, 8
	r, b := openWith(t, setup{qp: uppertester.OpenArgs{IRD: responses, ORD: threads * each}}, size)
	want := map[string]int{}
	for i := range responses {
		n := []int{size, 0, 70_000}[i%3]
		r.send(aReadRequest(r.nextRead(), read{nowhere + uint32(i), nowhereTO, uint32(n), b.tag(), b.at(0)}))
		want[label(message{tagged: true, control: opReadResponse, stag: nowhere + uint32(i), to: nowhereTO, payload: b.first[:n]})]++
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for k := range threads {
		var list []verbs.Request
		for i := range each {
			id := uint32(k*each + i)
			n := size - int(id)
			s := sendTypes[i%4]
			l := verbs.Request{ID: uint64(id), Op: s.op, SGL: b.sgl(0, n), Invalidate: verbs.STag(s.invalid), Flags: verbs.Unsignaled}
			p := message{control: s.control, inv: s.invalid, payload: b.first[:n]}
			switch i {
			case 4:
				l.Op, l.Remote = verbs.OpWrite, verbs.Remote{STag: 0x5000 + verbs.STag(id), TO: uint64(id) << 20}
				p = message{tagged: true, control: opWrite, stag: 0x5000 + id, to: uint64(id) << 20, payload: b.first[:n]}
			case 5:
				l.Op, l.SGL, l.Local, l.Remote = verbs.OpRead, nil, b.sge(0, 8), verbs.Remote{STag: 0x6000 + verbs.STag(id), TO: uint64(id)}
				p = message{control: opReadRequest, qn: 1, payload: read{b.tag(), b.at(0), 8, 0x6000 + id, uint64(id)}.header()}
			}
			list = append(list, l)
			want[label(p)]++
		}
		wg.Go(func() {
			for _, l := range list {
				var p uppertester.Posted
				assert.NoError(t, r.up.PostSend(uppertester.PostSendArgs{QP: r.QP, Sends: []verbs.Request{l}}, &p))
			}
		})
	}
	numbers, got := counter{}, map[string]int{}
	for range threads*each + responses {
		p := r.message()
		numbers.counts(t, p)
		got[label(p)]++
	}
	require.Equal(t, want, got, "the messages")
}

// label is what tells messages apart, but for their numbers, which follow the order
// of posts.
func label(p message) string {
	s := fmt.Sprintf("%v %02x %08x %08x+%x, queue %d, %d octets", p.tagged, p.control, p.inv, p.stag, p.to, p.qn, len(p.payload))
	if p.control == opReadRequest {
		s += fmt.Sprintf(": % x", p.payload)
	}
	return s
}

// ddpReserved sets DDP's four reserved bits in a message of each kind; message has
// seen to it that those which come have none.
func ddpReserved(t *conformance.T) {
	for i, m := range goodMessages {
		t.Part("%s", m.what)
		v := newFaultRig(t, setup{})
		u := m.make(v)
		u[0] |= 0x3C
		v.send(u)
		switch i {
		case goodTerminate:
			v.finishedIn(verbs.StateError)
			v.events(verbs.EventTerminateReceived)
			continue
		case goodReadRequest:
			whole(t, v.message(), opReadResponse, v.region.first[:5])
			v.nextRead()
		case goodReadResponse:
			v.completionsOf(v.SendCQ, verbs.Completion{ID: 50, Op: verbs.OpRead})
			v.sink.holds(0, []byte("response"))
		case goodWrite:
			v.region.gets(3, []byte("abc"))
		default:
			v.sends++
			got := v.poll(v.RecvCQ, 1, v.patience())
			require.Len(t, got, 1)
			require.Equal(t, verbs.StatusSuccess, got[0].Status)
		}
		whole(t, v.nothingRead(), opReadResponse, nil)
		v.region.unchanged()
		v.unharmed()
	}
}

// nothingRead asks for nothing by RDMA Read, and is the answer.
func (r *rig) nothingRead() message {
	r.send(aReadRequest(r.nextRead(), read{sinkSTag: nowhere, sinkTO: nowhereTO}))
	return r.message()
}

// ddpVersion: all that is sent says version 1, see message; and what says another is
// refused, by the error number of its buffer model.
func ddpVersion(t *conformance.T) {
	for _, version := range []byte{0, 2, 3} {
		for i, m := range goodMessages {
			f := either(i == goodWrite || i == goodReadResponse, badTaggedDDP, badDDP)
			rejects(t, setup{}, fmt.Sprintf("%s of version %d", m.what, version), f, m.but(masked(0, 0xFC, version)))
		}
	}
	t.Part("what is sent")
	r, b := openWith(t, setup{}, 8)
	r.post(verbs.Request{Op: verbs.OpWrite, SGL: b.sgl(0, 8), Remote: theirs}, verbs.Request{SGL: b.sgl(0, 8)})
	require.Equal(t, byte(1), r.next()[0]&3, "DV of an RDMA Write")
	require.Equal(t, byte(1), r.next()[0]&3, "DV of a Send")
}

// versionStays: one wrong version on a stream of right ones, between messages and
// within one.
func versionStays(t *conformance.T) {
	const good = 100
	for x := range inTurn(t, "%s", []struct {
		what  string
		first byte
		code  uint16
	}{{"a tagged segment", lastTagged, 0x1104}, {"an untagged segment", lastUntagged, 0x1206}}) {
		for within := range inTurn(t, "within a message: %v", []bool{false, true}) {
			r, b := openWith(t, setup{qp: uppertester.OpenArgs{RecvDepth: good + 1}}, 64)
			for i := range good + 1 {
				r.postRecv(verbs.Recv{ID: uint64(i), SGL: b.sgl(0, 32)})
			}
			for i := range good {
				if r.send(aWrite(b.tag(), b.at(40), []byte{byte(i)})); i%2 == 0 {
					r.sendMessage([]byte("good"))
				}
			}
			bad := either(x.first == lastUntagged, aSend(r.sends+1, []byte("bad")), aWrite(b.tag(), b.at(41), []byte("bad")))
			if within {
				if x.first == lastTagged {
					r.send(tagged(moreTagged, opWrite, b.tag(), b.at(40), []byte{good}))
				} else {
					r.send(untagged(moreUntagged, opSend, 0, 0, r.sends+1, 0, []byte("go")))
					bad[17] = 2
				}
			}
			bad[0] = bad[0]&^3 | 2
			r.refuses(x.code, bad, false)
			r.events(verbs.EventDDPVersion)
			var want []verbs.Completion
			for i := range good + 1 {
				c := verbs.Completion{ID: uint64(i), Op: verbs.OpRecv, Bytes: 4}
				if i >= good/2 {
					c.Bytes, c.Status = 0, verbs.StatusFlushed
				}
				want = append(want, c)
			}
			r.completions(want...)
			require.Equal(t, b.first[41:], b.memory()[41:], "what the bad segment names")
		}
	}
}

// headerFirst: a ULPDU begins with a header of 14 octets, or of 18 if it is untagged.
func headerFirst(t *conformance.T) {
	for n := range 18 {
		cut := func(u []byte) []byte { return u[:n] }
		rejects(t, setup{}, fmt.Sprintf("%d octets of a Send", n), badSize, goodMessages[goodSend].but(cut))
		if n < 14 {
			rejects(t, setup{}, fmt.Sprintf("%d octets of an RDMA Write", n), badSize, goodMessages[goodWrite].but(cut))
		}
	}
	t.Part("the least")
	r := open(t, setup{})
	r.recv(1, 8)
	r.send(tagged(lastTagged, opWrite, 0, 0, nil), aSend(1, nil))
	r.completions(verbs.Completion{ID: 1, Op: verbs.OpRecv})
	r.settled()
	r.post(verbs.Request{ID: 2}, verbs.Request{ID: 3, Op: verbs.OpWrite})
	require.Equal(t, []int{18}, r.message().segments, "an empty Send")
	require.Equal(t, []int{14}, r.message().segments, "an empty RDMA Write")
}
