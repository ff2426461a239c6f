package cases

import (
	"reflect"
	"slices"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_1_1 is handing over work requests, and which queue takes which: verbs draft
// 8.1.1, 8.1.2.1 and 8.1.2.3.
//
//	rv_8_1.go            posting
//	rv_8_1_send.go       Sends and receives, RDMA Writes and Reads
//	rv_8_1_figure21.go   the rights that they need
//	rv_8_1_signals.go    signaled and unsignaled
//	rv_8_1_sgl.go        scatter/gather lists
//	rv_8_1_modifiers.go  the addresses of RDMA
var rv8_1_1 = []conformance.Case{
	apiCase("8.1.1/only-posts", onlyPosts, "RV-8.1.1-M1"),
	apiCase("8.1.1/posts-bring-nothing-back", postsBringNothingBack, "RV-8.1.1-M2"),
	apiCase("8.1.1/lists", postedAsList, "RV-8.1.1-M3"),
	apiCase("8.1.2.1/queues-and-kinds", queuesAndKinds, "RV-8.1.2.1-M2", "RV-8.1.2.1-M3"),
}

// obtainable are the types that a program gets to from an RNIC: by results, by
// exported fields, and as parameters of its own functions.
func obtainable() []reflect.Type {
	var types []reflect.Type
	var visit func(reflect.Type)
	visit = func(v reflect.Type) {
		if slices.Contains(types, v) {
			return
		}
		types = append(types, v)
		switch v.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Chan:
			visit(v.Elem())
		case reflect.Map:
			visit(v.Key())
			visit(v.Elem())
		case reflect.Func:
			for i := range v.NumIn() {
				visit(v.In(i))
			}
			for i := range v.NumOut() {
				visit(v.Out(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Field(i); f.IsExported() {
					visit(f.Type)
				}
			}
		default: // nothing is behind the others
		}
		for i := range v.NumMethod() {
			visit(v.Method(i).Type)
		}
	}
	visit(reflect.TypeFor[*verbs.RNIC]())
	return types
}

// takers are the methods of all objects that take a value of type T: by itself, in
// a list, or in a struct.
func takers[T any]() []string {
	var within func(v reflect.Type, seen []reflect.Type) bool
	within = func(v reflect.Type, seen []reflect.Type) bool {
		if v == reflect.TypeFor[T]() {
			return true
		}
		if slices.Contains(seen, v) {
			return false
		}
		seen = append(seen, v)
		switch v.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			return within(v.Elem(), seen)
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Field(i); f.IsExported() && within(f.Type, seen) {
					return true
				}
			}
		default:
		}
		return false
	}
	var names []string
	for _, v := range obtainable() {
		if v.Kind() == reflect.Interface {
			continue
		}
		for i := range v.NumMethod() {
			m := v.Method(i)
			for k := 1; k < m.Type.NumIn(); k++ {
				if within(m.Type.In(k), nil) {
					names = append(names, v.String()+"."+m.Name)
				}
			}
		}
	}
	return names
}

// sendPosts and recvPosts are PostSQ and PostRQ.
var (
	sendPosts = []string{"*verbs.QP.PostSend", "verbs.UserQP.PostSend"}
	recvPosts = []string{"*verbs.QP.PostRecv", "*verbs.SRQ.PostRecv", "verbs.UserQP.PostRecv", "verbs.UserSRQ.PostRecv"}
)

// onlyPosts looks at all that a program can call, and then at what each post does.
func onlyPosts(t *conformance.T) {
	assert.ElementsMatch(t, sendPosts, takers[verbs.Request](), "who takes requests for a Send Queue")
	assert.ElementsMatch(t, recvPosts, takers[verbs.Recv](), "who takes receives")

	w := newHostPair(t, hostPairConfig{})
	srq := w.b.newSRQ(verbs.SRQConfig{})
	from, to := w.connectMore(verbs.QPConfig{}, verbs.QPConfig{SRQ: srq})
	sender := must(w.a.qp.User())(t)
	receiver := must(w.b.qp.User())(t)
	shared := srq.User()
	a, b := w.a.qp.ID(), w.b.qp.ID()
	for i, c := range []struct {
		name     string
		recv     func(...verbs.Recv) (int, error)
		send     func(...verbs.Request) (int, error)
		from, to verbs.QPID
	}{
		{"QP to QP", w.b.qp.PostRecv, w.a.qp.PostSend, a, b},
		{"UserQP to UserQP", receiver.PostRecv, sender.PostSend, a, b},
		{"QP to SRQ", srq.PostRecv, from.PostSend, from.ID(), to.ID()},
		{"QP to UserSRQ", shared.PostRecv, from.PostSend, from.ID(), to.ID()},
	} {
		id := uint64(10 * i)
		k := must(c.recv(verbs.Recv{ID: id, SGL: w.b.mr.SGL(0, 8)}))(t, c.name)
		require.Equal(t, 1, k, c.name)
		k = must(c.send(verbs.Request{ID: id + 1, SGL: w.a.mr.SGL(0, 3)}))(t, c.name)
		require.Equal(t, 1, k, c.name)
		completes(t, w.a.cq, verbs.Completion{ID: id + 1, QP: c.from})
		completes(t, w.b.cq, verbs.Completion{ID: id, QP: c.to, Op: verbs.OpRecv, Bytes: 3})
	}
	w.noCompletions()
}

// postsBringNothingBack: a count and an Immediate Error are all there is; what was
// handed over is not written to, at once or later.
func postsBringNothingBack(t *conformance.T) {
	posts := slices.Concat(sendPosts, recvPosts)
	for _, v := range obtainable() {
		for i := range v.NumMethod() {
			m := v.Method(i)
			if name := v.String() + "." + m.Name; slices.Contains(posts, name) {
				require.Equal(t, 2, m.Type.NumOut(), name)
				require.Equal(t, reflect.TypeFor[int](), m.Type.Out(0), name)
				require.Equal(t, reflect.TypeFor[error](), m.Type.Out(1), name)
			}
		}
	}

	w := newHostPair(t, hostPairConfig{A: hostConfig{QP: verbs.QPConfig{Privileged: true}}})
	n := w.a
	mw, fast, p := n.newMW(), n.allocated(), n.pages(3, 4096)
	list := func() []verbs.Request { // the same each time, with nothing in common
		return []verbs.Request{
			{ID: 1, SGL: []verbs.SGE{n.mr.SGE(0, 3), n.mr.SGE(8, 5)}},
			{ID: 2, Op: verbs.OpWrite, SGL: []verbs.SGE{n.mr.SGE(0, 3), n.mr.SGE(8, 5)}, Remote: w.b.mr.Remote(64)},
			{ID: 3, Op: verbs.OpRead, Local: n.mr.SGE(100, 20), Remote: w.b.mr.Remote(64)},
			{ID: 4, Op: verbs.OpBind, Bind: mw.BindRequest(n.mr, 0, 64, remoteRights, 7)},
			{ID: 5, Op: verbs.OpFastRegister, FastRegister: &verbs.FastRegisterRequest{
				STag: fast.WithKey(9), Buffers: p.List(10, 9000), Addressing: verbs.ZeroBased, Access: allRights,
			}},
			{ID: 6, Op: verbs.OpInvalidate, Invalidate: mw.STag(7)},
		}
	}
	receives := func() []verbs.Recv {
		return []verbs.Recv{{ID: 7, SGL: []verbs.SGE{w.b.mr.SGE(0, 4), w.b.mr.SGE(32, 4)}}}
	}
	sent, received := list(), receives()
	postRecv(t, w.b.qp, received...)
	post(t, n.qp, sent...)
	assert.Equal(t, list(), sent, "behind PostSQ")
	assert.Equal(t, receives(), received, "behind PostRQ")
	var want []verbs.Completion
	for _, r := range sent {
		want = append(want, verbs.Completion{ID: r.ID, QP: n.qp.ID(), Op: r.Op})
	}
	completes(t, n.cq, want...)
	completes(t, w.b.cq, verbs.Completion{ID: 7, QP: w.b.qp.ID(), Op: verbs.OpRecv, Bytes: 8})
	assert.Equal(t, list(), sent, "behind the completions")
	assert.Equal(t, receives(), received, "behind the completion")
}

// postedAsList posts five receives in one call and five Sends in another.
func postedAsList(t *conformance.T) {
	const size = 16
	w := newHostPair(t, hostPairConfig{})
	srq := w.b.newSRQ(verbs.SRQConfig{})
	from, to := w.connectMore(verbs.QPConfig{}, verbs.QPConfig{SRQ: srq})
	for c := range inTurn(t, "%s", []struct {
		name     string
		from, to *verbs.QP
		recv     func(...verbs.Recv) (int, error)
	}{
		{"a Receive Queue", w.a.qp, w.b.qp, w.b.qp.PostRecv},
		{"an S-RQ", from, to, srq.PostRecv},
	}) {
		clear(w.b.mr.Bytes())
		want := slices.Clone(fill(w.a.mr.Bytes()[:5*size], int(c.from.ID())))
		var recvs []verbs.Recv
		var sends []verbs.Request
		var there, here []verbs.Completion
		for i := range 5 {
			id := uint64(i)
			recvs = append(recvs, verbs.Recv{ID: 70 - id, SGL: w.b.mr.SGL(i*size, size)})
			sends = append(sends, verbs.Request{ID: 90 - id, SGL: w.a.mr.SGL(i*size, size-i)})
			there = append(there, verbs.Completion{ID: 70 - id, QP: c.to.ID(), Op: verbs.OpRecv, Bytes: size - uint32(i)})
			here = append(here, verbs.Completion{ID: 90 - id, QP: c.from.ID()})
			clear(want[i*size+size-i : (i+1)*size])
		}
		k := must(c.recv(recvs...))(t)
		require.Equal(t, 5, k)
		k = must(c.from.PostSend(sends...))(t)
		require.Equal(t, 5, k)
		completes(t, w.a.cq, here...)
		completes(t, w.b.cq, there...)
		require.Equal(t, want, w.b.mr.Bytes()[:5*size], "what arrived")
	}
}

// queuesAndKinds: a Send Queue takes Sends and no receives, a Receive Queue and an
// S-RQ the other way round.
func queuesAndKinds(t *conformance.T) {
	for _, name := range takers[verbs.Recv]() {
		assert.NotContains(t, takers[verbs.Request](), name)
	}
	n := newHost(t, hostConfig{})
	l := n.link(verbs.QPConfig{})
	for i, s := range sendTypes {
		l.recv(uint64(i))
		post(t, l.qp, verbs.Request{ID: 10, Op: s.op, Invalidate: verbs.STag(s.invalid), SGL: l.mr.SGL(0, 4)})
		l.expect(untagged(lastUntagged, s.control, s.invalid, 0, uint32(i+1), 0, l.mr.Bytes()[:4]))
		completes(t, l.sq, l.sentAs(10, s.op, verbs.StatusSuccess))
		empty(t, l.rq)
		l.sendMessage([]byte("answer"))
		completes(t, l.rq, l.got(uint64(i), 6))
		empty(t, l.sq)
	}

	t.Part("a receive for a Send Queue")
	idle := n.newQP(verbs.QPConfig{SendDepth: 4})
	none := []verbs.Op{verbs.OpRecv, verbs.OpRecv + 1, 0x80, 0xFF}
	for _, op := range none {
		refuses(t, op.String(), verbs.ErrInvalidOp, func() error {
			k, err := idle.PostSend(verbs.Request{Op: op}, verbs.Request{})
			assert.Zero(t, k, "%v", op)
			return err
		}, snapshotOf(t, idle))
	}
	depth := attributes(t, idle).SendDepth
	for range depth { // nothing was left in the queue
		post(t, idle, verbs.Request{})
	}
	require.ErrorIs(t, second(idle.PostSend(verbs.Request{})), verbs.ErrQueueFull)
	l.settled()
	require.Equal(t, verbs.StateRTS, l.qp.State())

	t.Part("an S-RQ")
	srq := n.newSRQ(verbs.SRQConfig{})
	shared := n.link(verbs.QPConfig{SRQ: srq})
	postRecv(t, srq, verbs.Recv{ID: 5, SGL: n.mr.SGL(0, 8)})
	shared.delivers(5, "1")
	empty(t, shared.sq)
	t.Part("")
	n.quiet()
}
