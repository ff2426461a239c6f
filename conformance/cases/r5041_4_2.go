package cases

import (
	"encoding/binary"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/conformance/uppertester"
	"github.com/softrnic/softrnic/verbs"
)

// r5041_4_2 is tagged segments: RFC 5041 4.2.
var r5041_4_2 = []conformance.Case{
	upperCase("4.2/tagged-layout", onRig(taggedLayout), "R5041-4.2-M1", "R5041-4.2-M2"),
	upperCase("4.2/stag-and-to-given", stagGiven, "R5041-4.2-M7", "R5041-4.2-M10", "R5041-5.2-M7"),
	upperCase("4.2/rsvdulp-and-stag-told", taggedTold, "R5041-4.2-M3", "R5041-4.2-M8", "R5041-5.4-M3"),
	upperCase("4.2/change-within-message", taggedChange, "R5041-4.2-M4", "R5041-4.2-M9"),
	upperCase("4.2/stag-of-the-stream", stagOfStream, "R5041-4.2-M6"),
}

// taggedLayout writes figure 4 down, octet by octet, for both kinds of message that
// have it.
func taggedLayout(t *conformance.T, r *rig) {
	b := r.region(64, allRights)
	r.post(verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: b.sgl(0, 3), Remote: verbs.Remote{STag: 0xA1B2C3D4, TO: 0x1011121314151617}})
	header := []byte{
		0xC1, 0x40, // T, L, version 1; RsvdULP: RDMAP's version 1 and RDMA Write
		0xA1, 0xB2, 0xC3, 0xD4, // STag
		0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, // TO
	}
	require.Equal(t, append(header, b.first[:3]...), r.next(), "an RDMA Write")
	r.send(aReadRequest(r.nextRead(), read{0xA1B2C3D4, 0x1011121314151617, 3, b.tag(), b.at(0)}))
	header[1] = 0x42 // RDMA Read Response
	require.Equal(t, append(header[:14:14], b.first[:3]...), r.next(), "an RDMA Read Response")

	fields := func(at int) []byte {
		f := binary.BigEndian.AppendUint32(nil, b.tag())
		return binary.BigEndian.AppendUint64(f, b.Base+uint64(at))
	}
	u := append([]byte{0xC1, 0x40}, fields(10)...)
	r.send(append(u, "written"...))
	r.settled()
	b.holds(10, []byte("written"))
	r.post(verbs.Request{ID: 2, Op: verbs.OpRead, Local: b.sge(30, 4), Remote: theirs})
	require.Len(t, r.next(), 46, "an RDMA Read Request")
	u = append([]byte{0xC1, 0x42}, fields(30)...)
	r.send(append(u, "read"...))
	r.completions(verbs.Completion{ID: 1, Op: verbs.OpWrite}, verbs.Completion{ID: 2, Op: verbs.OpRead})
	b.holds(30, []byte("read"))
}

// stagGiven: whatever STag and TO the program and the peer choose, they stand in the
// segments, from the first to the last.
func stagGiven(t *conformance.T) {
	const long = 100_000
	r, b := openWith(t, setup{}, long)
	for stag := range inTurn(t, "STag %08x", []uint32{1, 0x100, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF}) {
		for to := range inTurn(t, "TO %x", []uint64{0, 1, 0xFFFFFFFF, 1 << 40, 1<<64 - 1 - long}) {
			for n := range inTurn(t, "%d octets", []int{1, long}) {
				r.post(verbs.Request{ID: 1, Op: verbs.OpWrite, SGL: b.sgl(0, n), Remote: verbs.Remote{STag: verbs.STag(stag), TO: to}})
				p := r.message()
				require.Equal(t, message{tagged: true, control: opWrite, stag: stag, to: to}, p.address(), "an RDMA Write")
				same(t, b.first[:n], p.payload, "an RDMA Write")
				r.completions(verbs.Completion{ID: 1, Op: verbs.OpWrite})
				r.send(aReadRequest(r.nextRead(), read{stag, to, uint32(n), b.tag(), b.at(0)}))
				p = r.message()
				require.Equal(t, message{tagged: true, control: opReadResponse, stag: stag, to: to}, p.address(), "an RDMA Read Response")
				same(t, b.first[:n], p.payload, "an RDMA Read Response")
			}
		}
	}
	t.Part("the sink of an RDMA Read")
	for i, off := range []int{0, 1, 77, long - 8} {
		r.post(verbs.Request{ID: 2, Op: verbs.OpRead, Local: b.sge(off, 8), Remote: theirs})
		r.expect(aReadRequest(uint32(i+1), read{b.tag(), b.at(off), 8, uint32(theirs.STag), theirs.TO}))
		r.send(aReadResponse(b.tag(), b.at(off), []byte("response")))
		r.completions(verbs.Completion{ID: 2, Op: verbs.OpRead})
		b.holds(off, []byte("response"))
	}
	t.Part("an RDMA Write whose program gives none")
	r.post(verbs.Request{ID: 3, Op: verbs.OpWrite, SGL: b.sgl(0, 1)})
	r.tornDown(0x0000, nil, false)
	r.completions(verbs.Completion{ID: 3, Op: verbs.OpWrite, Status: verbs.StatusInvalidSTag})
}

// taggedTold: the same octets to the same place are an RDMA Write, of which nobody is
// told, or the answer to a Read, which completes it: by RsvdULP. And an answer does so
// if it has the STag that was asked for.
func taggedTold(t *conformance.T) {
	v := newFaultRig(t, setup{})
	v.send(aWrite(v.sink.tag(), v.sink.at(0), []byte("write...")))
	v.settled()
	v.sink.holds(0, []byte("write..."))
	v.incomplete()
	v.send(aReadResponse(v.sink.tag(), v.sink.at(0), []byte("response")))
	v.completionsOf(v.SendCQ, verbs.Completion{ID: 50, Op: verbs.OpRead})
	v.sink.holds(0, []byte("response"))
	v.idle()

	t.Part("without a Read")
	r, b := openWith(t, setup{}, 8)
	r.send(aWrite(b.tag(), b.at(0), []byte("write...")))
	r.settled()
	b.holds(0, []byte("write..."))
	bad := aReadResponse(b.tag(), b.at(0), []byte("response"))
	r.send(bad)
	r.terminated(0x0206, bad, false)
	b.unchanged()

	rejectsEach(t, setup{},
		segmentFault{"another region of the same program", noSTag.write, func(v *faultRig) []byte {
			return aReadResponse(v.region.tag(), v.region.at(0), []byte("response"))
		}},
		segmentFault{"the sink by a shared STag", noSTag.write, func(v *faultRig) []byte {
			var s uppertester.Region
			require.NoError(t, v.up.Share(uppertester.ShareArgs{Region: v.sink.Region.Region, Access: allRights}, &s))
			return aReadResponse(uint32(s.STag), s.Base, []byte("response"))
		}},
	)
}

// taggedChange: a message that is not one throughout. What comes behind its first
// segment is refused, and not placed.
func taggedChange(t *conformance.T) {
	for x := range inTurn(t, "%s", []struct {
		what        string
		begun, then byte
		elsewhere   bool
	}{
		{"a Write that goes on as a response", opWrite, opReadResponse, false},
		{"a response that goes on as a Write", opReadResponse, opWrite, false},
		{"a Write that goes on elsewhere", opWrite, opWrite, true},
		{"a response that goes on elsewhere", opReadResponse, opReadResponse, true},
	}) {
		v := newFaultRig(t, setup{})
		v.send(tagged(moreTagged, x.begun, v.sink.tag(), v.sink.at(0), []byte("one")))
		v.sink.gets(0, []byte("one"))
		to := either(x.elsewhere, v.region, v.sink)
		v.rejected(badOpcode, tagged(lastTagged, x.then, to.tag(), to.at(3), []byte("other")))
	}
}

// foreignSTags are STags that are not of the rig's stream, or of none.
var foreignSTags = []struct {
	what string
	stag func(v *faultRig) *buffer
	peerFault
}{
	{"one that there is not", func(v *faultRig) *buffer { return v.named(0xDEADBE00) }, noSTag.write},
	{"zero", func(v *faultRig) *buffer { return v.named(0) }, noSTag.write},
	{"another key", func(v *faultRig) *buffer { return v.named(v.region.STag ^ 1) }, noSTag.write},
	{"one that is deallocated", func(v *faultRig) *buffer {
		b := v.rig.region(256, allRights)
		b.deregister()
		return v.named(b.STag)
	}, noSTag.write},
	{"one that is Invalid", func(v *faultRig) *buffer {
		b := v.rig.region(256, allRights)
		v.post(verbs.Request{ID: 50, Op: verbs.OpInvalidate, Flags: verbs.Unsignaled, Invalidate: b.STag})
		v.settled()
		return b
	}, noSTag.write},
	{"a region of another PD", func(v *faultRig) *buffer {
		return v.register(uppertester.RegisterArgs{PD: 9, Len: 256, Access: allRights})
	}, noPD.write},
	{"a region of another stream of this PD", func(v *faultRig) *buffer {
		return v.register(uppertester.RegisterArgs{QP: v.beside(setup{}).QP, Len: 256, Access: allRights})
	}, noPD.write},
	{"a window of another stream of this PD", func(v *faultRig) *buffer {
		b := v.rig.region(256, allRights|verbs.BindWindow)
		w := *b
		w.STag = v.beside(setup{}).window(b, remoteRights)
		return &w
	}, noPD.write},
}

// named is the rig's region by another STag.
func (v *faultRig) named(s verbs.STag) *buffer {
	b := *v.region
	b.STag = s
	return &b
}

// stagOfStream writes to STags that are not of the stream: one segment, and the second
// one of a message.
func stagOfStream(t *conformance.T) {
	for x := range inTurn(t, "%s", foreignSTags) {
		v := newFaultRig(t, setup{})
		b := x.stag(v)
		v.rejected(x.peerFault, aWrite(b.tag(), b.at(7), []byte("foreign")))
		b.unchanged()
	}
	t.Part("its own")
	r := open(t, setup{})
	free := r.region(64, allRights|verbs.BindWindow)
	scoped := r.register(uppertester.RegisterArgs{QP: r.QP, Len: 64, Access: allRights})
	window := *free
	window.STag = r.window(free, remoteRights)
	for i, b := range []*buffer{free, scoped, &window} {
		r.send(aWrite(b.tag(), b.at(8*i), []byte("its own")))
		r.settled()
		b.holds(8*i, []byte("its own"))
	}
}
