package cases

import (
	"bytes"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv9_3_1_1 is PostSQ: verbs draft 9.3.1.1.
var rv9_3_1_1 = []conformance.Case{
	apiCase("9.3.1.1/results", onHost(postSQResults), "RV-9.3.1.1-M1"),
	apiCase("9.3.1.1/modifiers-of-messages", postSQModifiers, "RV-9.3.1.1-M2"),
	apiCase("9.3.1.1/modifiers-of-memory", onHost(postSQMemoryModifiers), "RV-9.3.1.1-M2"),
	apiCase("9.3.1.1/modifiers-not-valid", onHost(postSQOtherModifiers), "RV-9.3.1.1-M2", "PV-9.3.1.1-M1"),
	apiCase("9.3.1.1/id-operation-kind", postSQRequired, "RV-9.3.1.1-M3"),
	apiCase("9.3.1.1/operations", postSQOperations, "RV-9.3.1.1-M4"),
}

// userQP is the part of PostSQ and PostRQ that both kinds of Consumer have.
type userQP interface {
	PostSend(reqs ...verbs.Request) (int, error)
	PostRecv(reqs ...verbs.Recv) (int, error)
}

// handles are both kinds of handle of a queue pair.
func handles(t *conformance.T, qp *verbs.QP) map[string]userQP {
	u := must(qp.User())(t)
	return map[string]userQP{"QP": qp, "UserQP": u}
}

// postSQResults has each result. Invalid Scatter/Gather List Format is for an element of no octets that there can be.
func postSQResults(t *conformance.T, n *host) {
	for name := range inTurn(t, "%s", []string{"QP", "UserQP"}) {
		for s := range inTurn(t, "in %v", states) {
			l := n.into(s, verbs.QPConfig{SendDepth: 4, SendSGE: 2, WriteSGE: 1})
			h := handles(t, l.qp)[name]
			post := func(r ...verbs.Request) func() error {
				return func() error {
					k, err := h.PostSend(r...)
					require.Zero(t, k, "posted")
					return err
				}
			}
			if s != verbs.StateIdle && s != verbs.StateRTS {
				refuses(t, "a good one", verbs.ErrInvalidState, post(verbs.Request{}), l.shown)
				continue
			}
			require.Equal(t, 2, must(h.PostSend(verbs.Request{ID: 1}, verbs.Request{ID: 2}))(t))
			for _, c := range []struct {
				what string
				want error
				req  verbs.Request
			}{
				{"an operation", verbs.ErrInvalidOp, verbs.Request{Op: 77}},
				{"a Send's list", verbs.ErrInvalidSGLLength, verbs.Request{SGL: make([]verbs.SGE, 3)}},
				{"a Write's list", verbs.ErrInvalidSGLLength, verbs.Request{Op: verbs.OpWrite, SGL: make([]verbs.SGE, 2)}},
				{"an element of a Send's list", verbs.ErrInvalidSGLFormat, verbs.Request{SGL: []verbs.SGE{{}, l.mr.SGE(-1, 8)}}},
				{"an element of a Write's list", verbs.ErrInvalidSGLFormat, verbs.Request{Op: verbs.OpWrite, SGL: l.mr.SGL(0, -1)}},
				{"the sink of a Read", verbs.ErrInvalidSGLFormat, verbs.Request{Op: verbs.OpRead, Local: l.mr.SGE(-8, 8)}},
				{"a flag", verbs.ErrInvalidModifier, verbs.Request{Flags: 1 << 5}},
				{"a Bind of nothing", verbs.ErrInvalidModifier, verbs.Request{Op: verbs.OpBind}},
				{"a Fast-Register of nothing", verbs.ErrInvalidModifier, verbs.Request{Op: verbs.OpFastRegister}},
				{"an Invalidate of nothing", verbs.ErrInvalidModifier, verbs.Request{Op: verbs.OpInvalidate}},
			} {
				refuses(t, c.what, c.want, post(c.req), l.shown)
			}
			if s == verbs.StateIdle {
				require.NoError(t, second(h.PostSend(make([]verbs.Request, attributes(t, l.qp).SendDepth-2)...)))
				refuses(t, "one too many", verbs.ErrQueueFull, post(verbs.Request{}), l.shown)
			} else {
				completes(t, l.sq, l.sentAs(1, verbs.OpSend, verbs.StatusSuccess), l.sentAs(2, verbs.OpSend, verbs.StatusSuccess))
			}
			require.NoError(t, l.qp.Destroy())
			require.ErrorIs(t, post(verbs.Request{})(), verbs.ErrInvalidQP)
		}
		t.Part("%s of a closed RNIC", name)
		x := newHost(t, hostConfig{})
		h := handles(t, x.qp)[name]
		require.NoError(t, x.nic.Close())
		k, err := h.PostSend(verbs.Request{})
		require.ErrorIs(t, err, verbs.ErrInvalidRNIC)
		require.Zero(t, k)
	}
}

// postSQModifiers: two values for each modifier of Sends, RDMA Writes and Reads.
func postSQModifiers(t *conformance.T) {
	modifiersOfPosts(t)
	readFenceTaken(t)
	localFence(t)
}

// postSQMemoryModifiers: the same for Bind and Fast-Register, which modifiersOfPosts has
// for most; here are all rights, the list's entries, their size and FBO, and the index.
func postSQMemoryModifiers(t *conformance.T, n *host) {
	s, p := n.probe(privileged), n.pages(4, 8192)
	const lr, lw, rr, rw, bw = verbs.LocalRead, verbs.LocalWrite, verbs.RemoteRead, verbs.RemoteWrite, verbs.BindWindow
	for i, a := range []verbs.Access{lr, lw, lr | lw, lr | rr, lw | rw, lr | lw | rr, lr | lw | rw, lr | lw | rr | rw, lr | bw, lr | lw | rr | rw | bw} {
		mr, key := n.allocated(), uint8(i)
		r := fastRegister(mr.WithKey(key), p.List(i, 100+i), 1<<20+uint64(i), a)
		s.runs(r, verbs.StatusSuccess)
		q := queried(t, mr)
		require.Equal(t, a, q.Access)
		require.Equal(t, mr.WithKey(key), q.STag)
		s.checks(verbs.FastRegisterBuffer(r.FastRegister), i, p.Bytes()[2*i:2*i+10], a&^bw, noRight)
	}
	for i, a := range []verbs.Access{rr, rw, rr | rw} {
		mw := n.newMW()
		b := s.binds(mw.BindRequest(n.mr, 10+i, 20, a, uint8(i)))
		require.Equal(t, a, queried(t, mw).Access)
		mem, at := fill(n.mr.Bytes()[10+i:30+i], i), verbs.BindBuffer(b).Remote(0)
		if a&rr != 0 {
			require.Equal(t, mem, s.read(at, 20, allowed))
		} else {
			s.read(at, 20, noRight.read)
		}
		if a == rr {
			s.write(at, make([]byte, 20), noRight.write)
		}
		if a == rr|rw {
			s.write(at, make([]byte, 20), allowed)
			require.Equal(t, make([]byte, 20), mem)
		}
		require.NoError(t, mw.Deallocate())
	}
	// Entries in another order, smaller ones, and another FBO.
	at := p.Address(0)
	for i, b := range []verbs.PhysicalBuffers{
		{Size: 8192, Addresses: []uint64{at, at + 8192}, Length: 9000},
		{Size: 8192, Addresses: []uint64{at + 8192, at}, Length: 9000},
		{Size: 4096, Addresses: []uint64{at, at + 8192, at + 4096}, Length: 9000},
		{Size: 4096, Addresses: []uint64{at, at + 8192, at + 4096}, FBO: 7, Length: 9000},
	} {
		t.Part("list %d", i)
		fill(p.Bytes(), i)
		var want []byte
		for _, a := range b.Addresses {
			want = append(want, p.Bytes()[a-at:][:b.Size]...)
		}
		mr := n.allocated()
		r := fastRegister(mr.WithKey(1), b, 0, allRights)
		s.runs(r, verbs.StatusSuccess)
		require.True(t, bytes.Equal(want[b.FBO:][:9000], s.read(verbs.FastRegisterBuffer(r.FastRegister).Remote(0), 9000, allowed)), "what the list names")
	}
	t.Part("")
	n.quiet()
}

// garbage are values for all modifiers.
func (l *link) garbage() verbs.Request {
	bad := make([]verbs.SGE, 99)
	for i := range bad {
		bad[i] = verbs.SGE{STag: 0x00F00000, TO: 5, Length: 1 << 31}
	}
	return verbs.Request{
		Flags: verbs.ReadFence | verbs.LocalFence, Invalidate: 0x00F00001, SGL: bad,
		Local: verbs.SGE{STag: 0x00F00002, Length: 77}, Remote: verbs.Remote{STag: 0x00F00003, TO: 99},
		Bind:         &verbs.BindRequest{Window: 0x00F00004, Addressing: 9},
		FastRegister: &verbs.FastRegisterRequest{STag: 0x00F00005, Addressing: 9},
	}
}

// postSQOtherModifiers fills in all the modifiers that do not go with an operation: they
// are ignored. A Read whose response is held back is ahead, so that fences would be seen.
func postSQOtherModifiers(t *conformance.T, n *host) {
	p := n.pages(1, 4096)
	for op := range inTurn(t, "%v", []verbs.Op{
		verbs.OpSend, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate, verbs.OpWrite,
		verbs.OpRead, verbs.OpReadInvalidate, verbs.OpBind, verbs.OpFastRegister, verbs.OpInvalidate,
	}) {
		l, mr, mw := n.link(privileged), n.register(64, allRights), n.newMW()
		fast, data := n.allocated(), n.mr.Bytes()[:6]
		q := l.garbage()
		q.Op, q.ID = op, 2
		var heard []byte
		switch op {
		case verbs.OpSend, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate, verbs.OpWrite:
			q.Flags, q.SGL = verbs.LocalFence, n.mr.SGL(0, 6)
			heard = map[verbs.Op][]byte{
				verbs.OpSend:             aSend(1, data),
				verbs.OpSendSE:           untagged(lastUntagged, opSendSE, 0, 0, 1, 0, data),
				verbs.OpSendInvalidate:   aSendInv(1, 0x00F00001, data),
				verbs.OpSendSEInvalidate: untagged(lastUntagged, opSendSEInv, 0x00F00001, 0, 1, 0, data),
				verbs.OpWrite:            aWrite(0x00F00003, 99, data),
			}[op]
		case verbs.OpRead, verbs.OpReadInvalidate:
			q.Local = mr.SGE(0, 8)
			heard = aReadRequest(2, read{uint32(mr.STag()), mr.Base(), 8, 0x00F00003, 99})
		case verbs.OpBind:
			q.Bind = mw.BindRequest(n.mr, 0, 8, remoteRights, 1)
		case verbs.OpFastRegister:
			q.FastRegister = fastRegister(fast.WithKey(1), p.List(0, 64), 4096, allRights).FastRegister
		default:
			q.Invalidate, q.Flags = mr.STag(), verbs.ReadFence
		}
		post(t, l.qp, l.aRead(1), q, verbs.Request{ID: 3})
		l.expect(l.asks(1))
		if heard != nil {
			l.expect(heard)
		}
		msn := uint32(1)
		if op <= verbs.OpSendSEInvalidate {
			msn++
		}
		l.expect(aSend(msn, nil))
		l.settled()
		empty(t, l.sq)
		require.Equal(t, op == verbs.OpBind, queried(t, mw).Valid, "the window")
		require.Equal(t, op == verbs.OpFastRegister, queried(t, fast).Valid, "the region to be registered")
		require.Equal(t, op != verbs.OpInvalidate, queried(t, mr).Valid, "the region")
		l.send(l.answer())
		if op == verbs.OpRead || op == verbs.OpReadInvalidate {
			l.send(aReadResponse(uint32(mr.STag()), mr.Base(), []byte("response")))
		}
		completes(t, l.sq, l.sentAs(1, verbs.OpRead, verbs.StatusSuccess), l.sentAs(2, op, verbs.StatusSuccess), l.sentAs(3, verbs.OpSend, verbs.StatusSuccess))
	}
}

// postSQRequired: what every request has comes back in its completion, or decides that
// there is none.
func postSQRequired(t *conformance.T) {
	w := newOpsMatrix(t, hostPairConfig{})
	for id := range inTurn(t, "IDs from %d on", []uint64{0, 1, 1 << 63, 1<<64 - 10}) { // and nine more each
		sent, received := w.postAll(id, 0)
		completes(t, w.a.cq, sent...)
		completes(t, w.b.cq, received...)
		_, received = w.postAll(id, verbs.Unsignaled)
		completes(t, w.b.cq, received...)
		run(t, w.a.qp, verbs.Request{ID: id, Op: verbs.OpRead}, verbs.StatusSuccess)
	}
	empty(t, w.a.cq)
}

// postSQOperations: these ten and no other.
func postSQOperations(t *conformance.T) {
	w := newOpsMatrix(t, hostPairConfig{})
	sent, received := w.postAll(1, 0)
	require.Len(t, sent, 10)
	completes(t, w.a.cq, sent...)
	completes(t, w.b.cq, received...)
	for op := 10; op < 256; op++ {
		k, err := w.a.qp.PostSend(verbs.Request{Op: verbs.Op(op), SGL: w.a.mr.SGL(0, 1)})
		require.ErrorIs(t, err, verbs.ErrInvalidOp, "operation %d", op)
		require.Zero(t, k)
	}
	require.Equal(t, verbs.StateRTS, w.a.qp.State())
	moves(t, w.a.endpoint(), w.b.endpoint())
}

// rv9_3_1_1_memory is the values that modifiers of Bind and Fast-Register can have:
// verbs draft 9.3.1.1.
var rv9_3_1_1_memory = []conformance.Case{
	apiCase("9.3.1.1/bind-addressing", onProbe(verbs.QPConfig{}, postBindAddressing), "RV-9.3.1.1-M5"),
	apiCase("9.3.1.1/page-size", onProbe(privileged, postPageSize), "RV-9.3.1.1-M6"),
	apiCase("9.3.1.1/block-size", postBlockSize, "RV-9.3.1.1-M7"),
	apiCase("9.3.1.1/fast-register-addressing", onProbe(privileged, postFastAddressing), "RV-9.3.1.1-M9"),
	apiCase("9.3.1.1/remote-access-flag", onProbe(privileged, postRemoteAccess), "RV-9.3.1.1-M10", "RV-9.3.1.1-M11"),
}

// posted says that PostSQ refuses a request, which nothing comes of.
func (s *probe) posted(req verbs.Request, want error) {
	s.connect()
	k, err := s.qp.PostSend(req)
	require.ErrorIs(s.t, err, want)
	require.Zero(s.t, k)
	empty(s.t, s.host.cq)
	require.Equal(s.t, verbs.StateRTS, s.qp.State())
}

func postBindAddressing(n *host, s *probe) {
	t, mem := n.t, n.mr.Bytes()
	for a, base := range map[verbs.Addressing]uint64{verbs.VABased: n.mr.Base() + 100, verbs.ZeroBased: 0} {
		mw := n.newMW()
		b := mw.BindRequest(n.mr, 100, 50, remoteRights, 1)
		b.Addressing = a
		s.runs(binds(b), verbs.StatusSuccess)
		require.Equal(t, a, queried(t, mw).Addressing)
		at := func(off uint64) verbs.Remote { return verbs.Remote{STag: b.Window, TO: base + off} }
		clear(mem)
		s.write(at(0), []byte{1}, allowed)
		s.write(at(49), []byte{2}, allowed)
		require.Equal(t, []byte{0, 1, 0}, mem[99:102], "%v", a)
		require.Equal(t, []byte{0, 2, 0}, mem[148:151], "%v", a)
		s.write(at(50), []byte{3}, noBounds.write)
		require.NoError(t, mw.Deallocate())
		for _, none := range []verbs.Addressing{2, 255} {
			b.Addressing = none
			s.posted(binds(b), verbs.ErrInvalidModifier)
		}
	}
}

func postPageSize(n *host, s *probe) {
	t, p := n.t, n.pages(1, 1<<20)
	sizes := queried(t, n.nic).PageSizes
	require.NotEmpty(t, sizes)
	for _, size := range sizes {
		require.Zero(t, size&(size-1), "a power of two: %d", size)
		mr := n.allocated()
		list := verbs.PhysicalBuffers{Size: size, Addresses: []uint64{p.Address(0)}, Length: 64}
		want := verbs.StatusSuccess
		if size > 1<<20 { // there is no such page, but the size is good
			list.Addresses[0], want = 1<<50, verbs.StatusInvalidPhysBufferEntry
		}
		s.runs(fastRegister(mr.WithKey(1), list, 0, allRights), want)
	}
	for _, size := range []uint64{0, 1, sizes[0] / 2, 4097, 12288, 3 << 20, sizes[len(sizes)-1] * 2, 1<<64 - 1} {
		mr := n.allocated()
		list := verbs.PhysicalBuffers{Size: size, Addresses: []uint64{p.Address(0)}, Length: 64}
		s.runs(fastRegister(mr.WithKey(1), list, 0, allRights), verbs.StatusInvalidPageSize)
		require.False(t, queried(t, mr).Valid, "size %d", size)
	}
}

func postBlockSize(t *conformance.T) {
	n := newHost(t, hostConfig{RNIC: verbs.Config{Mode: verbs.BlockMode}})
	s, p := n.probe(privileged), n.pages(1, 10_000)
	least, most := queried(t, n.nic).MinBlock, queried(t, n.nic).MaxBlock
	for size, want := range map[uint64]verbs.Status{
		least: verbs.StatusSuccess, 4097: verbs.StatusSuccess, 10_000: verbs.StatusSuccess,
		most:      verbs.StatusInvalidPhysBufferEntry, // there is no such block, but the size is good
		least - 1: verbs.StatusInvalidPhysBufferSize, most + 1: verbs.StatusInvalidPhysBufferSize,
		1<<64 - 1: verbs.StatusInvalidPhysBufferSize,
	} {
		mr := n.allocated()
		list := verbs.PhysicalBuffers{Size: size, Addresses: []uint64{p.Address(0)}, Length: 1}
		s.runs(fastRegister(mr.WithKey(1), list, 0, allRights), want)
		require.Equal(t, want == verbs.StatusSuccess, queried(t, mr).Valid, "size %d", size)
	}
	s.disconnect()
	n.quiet()
}

func postFastAddressing(n *host, s *probe) {
	t, p := n.t, n.pages(2, 4096)
	mem := p.Bytes()[10:110]
	for _, va := range []uint64{0, 4096 + 10, 1<<40 + 10} { // 0 for zero-based
		mr := n.allocated()
		r := fastRegister(mr.WithKey(1), p.List(10, 100), va, allRights)
		s.runs(r, verbs.StatusSuccess)
		q := queried(t, mr)
		require.Equal(t, va, q.Base)
		require.Equal(t, va == 0, q.Addressing == verbs.ZeroBased)
		s.allAllowed(verbs.TaggedBuffer{STag: mr.WithKey(1), Base: va}, 0, mem)
		s.write(verbs.Remote{STag: mr.WithKey(1), TO: va + 100}, []byte{1}, noBounds.write)
	}
	mr := n.allocated()
	r := fastRegister(mr.WithKey(1), p.List(10, 100), 4096+11, allRights)
	s.runs(r, verbs.StatusInvalidVA)
	r.FastRegister.VA = 0
	s.runs(r, verbs.StatusInvalidVA)
	for _, none := range []verbs.Addressing{2, 255} {
		r.FastRegister.Addressing = none
		s.posted(r, verbs.ErrInvalidModifier)
	}
	require.False(t, queried(t, mr).Valid)
}

// postRemoteAccess: with the flag the peer can do what the rights say; without it a
// Fast-Register cannot give such rights.
func postRemoteAccess(n *host, s *probe) {
	t, p := n.t, n.pages(1, 4096)
	for _, a := range []verbs.Access{
		verbs.LocalWrite | verbs.RemoteWrite, verbs.LocalRead | verbs.RemoteRead, allRights,
	} {
		for _, flag := range []bool{false, true} {
			mr := n.allocate(verbs.AllocateConfig{PBL: 8, RemoteAccess: flag})
			r := fastRegister(mr.WithKey(1), p.List(0, 64), 4096, a)
			if !flag {
				s.runs(r, verbs.StatusInvalidAccessRights)
				require.False(t, queried(t, mr).Valid, "%v without the flag", a)
				continue
			}
			s.runs(r, verbs.StatusSuccess)
			s.checksPeer(verbs.FastRegisterBuffer(r.FastRegister), 0, p.Bytes()[:64], a, noRight)
		}
	}
}
