package cases

import (
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5041_5_2 is how messages are cut and put together: RFC 5041 5.2.
var r5041_5_2 = []conformance.Case{
	upperCase("5.2/segments", segmentsSent, "R5041-5.2-M1", "R5041-5.2-M4", "R5041-5.2-M8"),
	apiCase("5.2/mulpdu", onHost(mulpduKept), "R5041-3-M2", "R5041-5.2-M2"),
	upperCase("5.2/longest-message", longestMessage, "R5041-5.2-M3"),
	upperCase("5.2/segments-placed", segmentsPlaced, "R5041-5.2-M5"),
	upperCase("5.2/empty-message", onRig(emptyMessage), "R5041-5.2-M9"),
	upperCase("5.2/empty-tagged-not-checked", onRig(emptyNotChecked), "R5041-5.2-M10", "R5041-5.2-M11"),
}

// segmentsSent: messages of all lengths, and of all kinds that have a length, come
// whole. That each segment is where its offset says is in message.
func segmentsSent(t *conformance.T) {
	const long = 1 << 20
	r, b := openWith(t, setup{}, long)
	lengths := []int{0, 1, 2, 3, 4, 5, long - 1, long}
	for range 30 {
		lengths = append(lengths, t.Rand().IntN(150_000))
	}
	for i, n := range lengths {
		t.Part("%d octets", n)
		to := []uint64{16384, 1 << 40, 0xFFFFFFF0}[i%3]
		off := t.Rand().IntN(long - n + 1)
		r.post(
			verbs.Request{ID: 1, SGL: b.sgl(off, n)},
			verbs.Request{ID: 2, Op: verbs.OpWrite, SGL: b.sgl(off, n), Remote: verbs.Remote{STag: 0x99, TO: to}},
		)
		p := r.message()
		require.Equal(t, message{control: opSend, msn: uint32(i + 1)}, p.address())
		same(t, b.first[off:off+n], p.payload, "a Send")
		p = r.message()
		require.Equal(t, message{tagged: true, control: opWrite, stag: 0x99, to: to}, p.address())
		same(t, b.first[off:off+n], p.payload, "an RDMA Write")
		r.completions(verbs.Completion{ID: 1}, verbs.Completion{ID: 2, Op: verbs.OpWrite})
		r.send(aReadRequest(r.nextRead(), read{0x9A, to + 1, uint32(n), b.tag(), b.at(off)}))
		p = r.message()
		require.Equal(t, message{tagged: true, control: opReadResponse, stag: 0x9A, to: to + 1}, p.address())
		same(t, b.first[off:off+n], p.payload, "an RDMA Read Response")
	}
}

// mulpdus are of RFC 5044 4.5, worked by hand: two octets of length, four of CRC, and
// four for each marker that may be needed.
var mulpdus = []struct {
	emss    int
	markers bool
	mulpdu  int
}{
	{536, false, 530}, {1460, false, 1454}, {8960, false, 8954}, {536, true, 522}, {1460, true, 1442}, {8960, true, 8882},
}

// mulpduKept: the LLP's MULPDU is what the longest segments have.
func mulpduKept(t *conformance.T, n *host) {
	for _, x := range mulpdus {
		l := n.linkOfEMSS(x.emss, x.markers)
		at := n.mr.Remote(0)
		for _, size := range []int{0, x.mulpdu - 18, x.mulpdu - 17, x.mulpdu - 14, x.mulpdu - 13, 2 * (x.mulpdu - 18), 3*x.mulpdu - 42, 3*x.mulpdu + 1} {
			t.Part("EMSS %d, markers %v, %d octets", x.emss, x.markers, size)
			post(t, l.qp,
				verbs.Request{ID: 1, SGL: n.mr.SGL(0, size)},
				verbs.Request{ID: 2, Op: verbs.OpWrite, SGL: n.mr.SGL(0, size), Remote: theirs},
			)
			l.send(aReadRequest(l.nextRead(), read{nowhere, nowhereTO, uint32(size), uint32(at.STag), at.TO}))
			for range 3 {
				p := l.message()
				header := either(p.tagged, 14, 18)
				for _, u := range p.segments {
					require.LessOrEqual(t, u, x.mulpdu, "a segment of control octet %02x", p.control)
				}
				require.Equal(t, min(size+header, x.mulpdu), p.segments[0], "the first segment of control octet %02x", p.control)
				same(t, n.mr.Bytes()[:size], p.payload, "the message")
			}
			completes(t, l.sq, l.sentAs(1, verbs.OpSend, verbs.StatusSuccess), l.sentAs(2, verbs.OpWrite, verbs.StatusSuccess))
		}
	}
}

// longestMessage: one octet more than a message may have is refused where it is sent,
// and no MO makes one at the receiver.
func longestMessage(t *conformance.T) {
	const most = 1<<32 - 1
	for _, op := range []verbs.Op{verbs.OpSend, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate, verbs.OpWrite} {
		for _, x := range []struct {
			more   uint32
			status verbs.Status
		}{{0, verbs.StatusBaseBounds}, {1, verbs.StatusInvalidLength}, {most, verbs.StatusInvalidLength}} {
			t.Part("%v of 2^32-1 octets and %d", op, x.more)
			r, b := openWith(t, setup{}, 8)
			whole, more := b.sge(0, 0), b.sge(0, 0)
			whole.Length, more.Length = most, x.more
			r.post(verbs.Request{ID: 4, Op: op, SGL: []verbs.SGE{whole, more}, Remote: theirs, Invalidate: 0x700})
			r.tornDown(0x0000, nil, false)
			r.completions(verbs.Completion{ID: 4, Op: op, Status: x.status})
		}
	}
	for mo := range inTurn(t, "MO %08x", []uint32{most, most - 1, 1 << 31}) {
		v := newFaultRig(t, setup{})
		v.send(untagged(moreUntagged, opSend, 0, 0, 1, 0, []byte("begun")))
		v.receive.gets(0, []byte("begun"))
		v.rejected(badMO, untagged(lastUntagged, opSend, 0, 0, 1, mo, []byte("more")))
	}
}

// segmentsPlaced has messages come in segments of every size, also of nothing.
func segmentsPlaced(t *conformance.T) {
	const size = 3000
	r, b := openWith(t, setup{}, 3*size)
	for i, n := range []int{1, 2, 3, 1000, size} {
		for _, empties := range []bool{false, true} {
			t.Part("segments of %d octets, empty ones between: %v", n, empties)
			var lengths []int
			for left := size; left > 0; left -= n {
				if empties {
					lengths = append(lengths, 0)
				}
				lengths = append(lengths, min(n, left))
			}
			if empties {
				lengths = append(lengths, 0)
			}
			data := uppertester.Pattern(uint8(40+2*i), size)
			r.postRecv(verbs.Recv{ID: 1, SGL: []verbs.SGE{b.sge(0, 7), b.sge(7, 0), b.sge(7, size-7)}})
			r.sendAtOnce(cutUp(opSend, 0, r.nextSend(), data, lengths...)...)
			r.completions(verbs.Completion{ID: 1, Op: verbs.OpRecv, Bytes: size})
			b.gets(0, data)
			r.sendAtOnce(cutTagged(opWrite, b.tag(), b.at(size), data, lengths...)...)
			b.gets(size, data)
			r.post(verbs.Request{ID: 2, Op: verbs.OpRead, Local: b.sge(2*size, size), Remote: theirs})
			require.Equal(t, byte(opReadRequest), r.message().control)
			r.sendAtOnce(cutTagged(opReadResponse, b.tag(), b.at(2*size), data, lengths...)...)
			r.completions(verbs.Completion{ID: 2, Op: verbs.OpRead})
			b.holds(2*size, data)
		}
	}
}

// emptyMessage: a message of nothing is one segment, and it is the last.
func emptyMessage(t *conformance.T, r *rig) {
	for i, s := range sendTypes {
		r.post(verbs.Request{ID: 1, Op: s.op, Invalidate: verbs.STag(s.invalid)})
		r.expect(untagged(0x41, s.control, s.invalid, 0, uint32(i+1), 0, nil))
		r.completions(verbs.Completion{ID: 1, Op: s.op})
	}
	r.post(verbs.Request{ID: 2, Op: verbs.OpWrite, Remote: theirs})
	r.expect(tagged(0xC1, opWrite, uint32(theirs.STag), theirs.TO, nil))
	r.completions(verbs.Completion{ID: 2, Op: verbs.OpWrite})
	r.send(aReadRequest(r.nextRead(), read{nowhere, nowhereTO, 0, 0, 0}))
	r.expect(tagged(0xC1, opReadResponse, nowhere, nowhereTO, nil))
	t.Part("with a list of nothings")
	b := r.region(8, allRights)
	r.post(verbs.Request{ID: 3, SGL: []verbs.SGE{b.sge(0, 0), b.sge(8, 0), b.sge(3, 0)}})
	r.expect(untagged(0x41, opSend, 0, 0, 5, 0, nil))
	r.completions(verbs.Completion{ID: 3})
	r.settled()
}

// emptyNotChecked: of an empty tagged segment the control octets count, and nothing
// else does.
func emptyNotChecked(t *conformance.T, r *rig) {
	b := r.region(64, allRights)
	closed := r.region(64, verbs.LocalRead)
	foreign := r.register(uppertester.RegisterArgs{PD: 1, Len: 64, Access: allRights})
	scoped := r.register(uppertester.RegisterArgs{QP: r.beside(setup{}).QP, Len: 64, Access: allRights})
	gone := r.region(64, allRights)
	gone.deregister()
	r.recv(1, 8)
	for x := range inTurn(t, "%s", []struct {
		what string
		stag uint32
		to   uint64
	}{
		{"a good one", b.tag(), b.at(0)}, {"beyond it", b.tag(), b.at(1000)}, {"the last TO", b.tag(), ^uint64(0)},
		{"STag zero", 0, 0}, {"an unknown STag", t.Rand().Uint32() | 0x80000000, t.Rand().Uint64()},
		{"one that is no more", gone.tag(), gone.at(0)}, {"no right", closed.tag(), closed.at(0)},
		{"another PD's", foreign.tag(), foreign.at(0)}, {"another stream's", scoped.tag(), scoped.at(0)},
	}) {
		r.send(aWrite(x.stag, x.to, nil))
		r.settled()
		r.post(verbs.Request{ID: 1, Op: verbs.OpRead, Local: b.sge(0, 0), Remote: theirs})
		require.Equal(t, byte(opReadRequest), r.next()[1])
		r.send(aReadResponse(x.stag, x.to, nil))
		r.completions(verbs.Completion{ID: 1, Op: verbs.OpRead})
	}
	r.delivers(1, "go on")
	r.unharmed()

	for _, x := range []struct {
		first, control byte
		peerFault
	}{
		{0xC0, opWrite, badTaggedDDP}, {0xC3, opReadResponse, badTaggedDDP}, {0xC1, 0x00, badRDMAP}, {0xC1, 0x82, badRDMAP},
		{0xC1, 0x49, badOpcode}, {0xC1, opSend, badOpcode},
	} {
		rejects(t, setup{}, fmt.Sprintf("control octets %02x %02x", x.first, x.control), x.peerFault, func(v *faultRig) []byte {
			return tagged(x.first, x.control, v.region.tag(), v.region.at(0), nil)
		})
	}
}
