package cases

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// denial is how the kinds of access to a region are refused for one reason
// (verbs draft figures 23 and 24; RFC 5041 7.2 and RFC 5040 4.8 for the codes).
type denial struct {
	local verbs.Status // of the request whose element it is; Terminate 0x0000
	write refusal      // of an inbound RDMA Write
	read  refusal      // of an inbound RDMA Read Request
	// posted is the status of an RDMA Read into it; answered its Terminate Message if
	// it is refused only when the answer comes.
	posted   verbs.Status
	answered refusal
}

var (
	noSTag = denial{verbs.StatusInvalidSTag, refusal{verbs.EventProtSTag, 0x1100}, refusal{verbs.EventIRRQSTag, 0x0100}, verbs.StatusInvalidSTag, taken}
	noPD   = denial{verbs.StatusInvalidPD, refusal{verbs.EventProtPD, 0x1102}, refusal{verbs.EventIRRQPD, 0x0103}, verbs.StatusInvalidPD, taken}
	// noRight: RFC 5041 7.1 and 7.2 have one code for this and a bad STag.
	noRight  = denial{verbs.StatusAccess, refusal{verbs.EventProtAccess, 0x1100}, refusal{verbs.EventIRRQAccess, 0x0102}, verbs.StatusAccess, refusal{code: 0x1100}}
	noBounds = denial{verbs.StatusBaseBounds, refusal{verbs.EventProtBounds, 0x1101}, refusal{verbs.EventIRRQBounds, 0x0101}, verbs.StatusBaseBounds, taken}
	noWrap   = denial{verbs.StatusWrap, refusal{verbs.EventProtWrap, 0x1103}, refusal{verbs.EventIRRQWrap, 0x0104}, verbs.StatusWrap, taken}
)

// judged tries the five kinds of access to the octets of a buffer from off on,
// which are mem to the program: those for which a has the right take place, the
// others are refused as why says and move nothing.
func (s *seat) judged(b verbs.TaggedBuffer, off int, mem []byte, a verbs.Access, why denial) {
	t, k := s.n.t, len(mem)
	there := b.Remote(off)
	here := verbs.SGE{STag: b.STag, TO: there.TO, Length: uint32(k)} // b.SGE makes none with off < 0
	pick := func(right verbs.Access, no verbs.Status, r refusal) (verbs.Status, refusal) {
		if a&right != 0 {
			return verbs.StatusSuccess, taken
		}
		return no, r
	}
	kept := func(right verbs.Access, was, sent []byte, what string) {
		if a&right != 0 {
			was = sent
		}
		require.Equal(t, was, mem, "the memory after %s", what)
	}

	was := bytes.Clone(fill(mem, 3))
	st, _ := pick(verbs.LocalRead, why.local, taken)
	if got := s.gather(verbs.OpSend, []verbs.SGE{here}, st); st == verbs.StatusSuccess {
		require.Equal(t, was, got, "what a Send gathered")
	}
	_, r := pick(verbs.RemoteRead, 0, why.read)
	if got := s.read(there, k, r); r == taken {
		require.Equal(t, was, got, "what the peer read")
	}
	require.Equal(t, was, mem, "the memory after reading")

	sent := fill(make([]byte, k), 5)
	st, _ = pick(verbs.LocalWrite, why.local, taken)
	s.scatter([]verbs.SGE{here}, sent, st)
	kept(verbs.LocalWrite, was, sent, "a Receive")

	was, sent = bytes.Clone(fill(mem, 3)), fill(make([]byte, k), 6)
	_, r = pick(verbs.RemoteWrite, 0, why.write)
	s.write(there, sent, r)
	kept(verbs.RemoteWrite, was, sent, "an inbound Write")

	was, sent = bytes.Clone(fill(mem, 3)), fill(make([]byte, k), 7)
	st, r = pick(verbs.RemoteWrite, why.posted, why.answered)
	s.sink(here, sent, st, r)
	kept(verbs.RemoteWrite, was, sent, "an RDMA Read")
}

// opens says that all kinds of access to the octets of a buffer from off on take
// place, and are to mem.
func (s *seat) opens(b verbs.TaggedBuffer, off int, mem []byte) {
	s.judged(b, off, mem, allRights, denial{})
}

// shuts says that none does. mem stays as it is.
func (s *seat) shuts(b verbs.TaggedBuffer, off int, mem []byte, why denial) {
	s.judged(b, off, mem, 0, why)
}

// peers tries an inbound Write and Read of a window or region: judged, without the
// local kinds.
func (s *seat) peers(b verbs.TaggedBuffer, off int, mem []byte, a verbs.Access, why denial) {
	t := s.n.t
	was := bytes.Clone(fill(mem, 8))
	r := either(a&verbs.RemoteRead != 0, taken, why.read)
	if got := s.read(b.Remote(off), len(mem), r); r == taken {
		require.Equal(t, was, got, "what the peer read")
	}
	r = why.write
	if a&verbs.RemoteWrite != 0 {
		r = taken
	}
	sent := fill(make([]byte, len(mem)), 9)
	s.write(b.Remote(off), sent, r)
	if r == taken {
		was = sent
	}
	require.Equal(t, was, mem, "the memory after the peer's Write")
}

// way is one of the four ways to invalidate an STag (verbs draft 7.8).
type way struct {
	name   string
	remote bool
	run    func(s *seat, st verbs.STag, want verbs.Status, code uint16)
}

var ways = []way{
	{"Invalidate Local STag", false, func(s *seat, st verbs.STag, want verbs.Status, _ uint16) {
		s.does(verbs.Request{ID: 0x7A04, Op: verbs.OpInvalidate, Invalidate: st}, want)
	}},
	{"RDMA Read with Invalidate", false, readInvalidate},
	{"Send with Invalidate", true, func(s *seat, st verbs.STag, want verbs.Status, code uint16) {
		sendInvalidate(s, opSendInv, st, want, code)
	}},
	{"Send with SE and Invalidate", true, func(s *seat, st verbs.STag, want verbs.Status, code uint16) {
		sendInvalidate(s, opSendSEInv, st, want, code)
	}},
}

// readInvalidate reads nothing: the STag is looked at to be invalidated only.
func readInvalidate(s *seat, st verbs.STag, want verbs.Status, _ uint16) {
	s.sit()
	req := verbs.Request{ID: 0x7A05, Op: verbs.OpReadInvalidate, Local: verbs.SGE{STag: st}, Remote: verbs.Remote{STag: 0x00FACE01}}
	post(s.n.t, s.qp, req)
	s.heard(opReadRequest)
	s.tell(aReadResponse(uint32(st), 0, nil))
	completes(s.n.t, s.n.cq, verbs.Completion{ID: req.ID, QP: s.qp.ID(), Op: req.Op, Status: want})
	if want != verbs.StatusSuccess {
		s.falls(0x0000)
	}
}

func sendInvalidate(s *seat, op byte, st verbs.STag, want verbs.Status, code uint16) {
	s.sit()
	into := s.n.mr.Bytes()[nodeMemory-8:] // away from what cases use
	clear(into)
	s.receive(verbs.Recv{ID: 0x7A06, SGL: s.n.mr.SGL(nodeMemory-8, 8)})
	s.tell(untagged(lastUntagged, op, uint32(st), 0, s.nextSend(), 0, []byte("farewell")))
	c := verbs.Completion{ID: 0x7A06, QP: s.qp.ID(), Op: verbs.OpRecv, Status: want}
	if want == verbs.StatusSuccess {
		c.Bytes, c.Invalidated, c.HasInvalidated = 8, st, true
	}
	completes(s.n.t, s.n.cq, c)
	require.Equal(s.n.t, "farewell", string(into), "the data of the Send")
	if want != verbs.StatusSuccess {
		s.falls(code)
	}
}

// invalidity is how an invalidation is refused: the status of the request if it is
// local; if not, that of the receive, and the Terminate Message's code.
type invalidity struct {
	local, remote verbs.Status
	code          uint16
}

var (
	invalidates    = invalidity{}
	cannotBe       = invalidity{verbs.StatusInvalidSTag, verbs.StatusInvalidSTag, 0x0109}
	isGone         = invalidity{verbs.StatusInvalidSTag, verbs.StatusInvalidSTag, 0x0209}
	isForeign      = invalidity{verbs.StatusInvalidPD, verbs.StatusInvalidateSTag, 0x0109}
	hasWindows     = invalidity{verbs.StatusInvalidSTag, verbs.StatusInvalidateSTag, 0x0109}
	hasNoRemoteUse = invalidity{verbs.StatusSuccess, verbs.StatusInvalidateSTag, 0x0109}
)

// invalidate goes one way on a seat's queue pair.
func (s *seat) invalidate(w way, st verbs.STag, want invalidity) {
	s.n.t.Logf("%s of %v", w.name, st)
	status := either(w.remote, want.remote, want.local)
	w.run(s, st, status, want.code)
}

// fastRegister is the request that registers a buffer list under an STag.
func fastRegister(st verbs.STag, b verbs.PhysicalBuffers, va uint64, a verbs.Access) verbs.Request {
	f := &verbs.FastRegisterRequest{STag: st, Buffers: b, VA: va, Access: a}
	if va == 0 {
		f.Addressing = verbs.ZeroBased
	}
	return verbs.Request{ID: 0x7A07, Op: verbs.OpFastRegister, FastRegister: f}
}

// binds is the request that binds a window.
func binds(b *verbs.BindRequest) verbs.Request {
	return verbs.Request{ID: 0x7A08, Op: verbs.OpBind, Bind: b}
}
