package cases

import (
	"bytes"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv8_1_2_3 is the operations on memory that a Send Queue takes: verbs draft 8.1.2.3.
var rv8_1_2_3 = []conformance.Case{
	apiCase("8.1.2.3/are-posted", memoryOpsArePosted, "RV-8.1.2.3.1-M1", "RV-8.1.2.3.2-M1", "RV-8.1.2.3.3-M2"),
	apiCase("8.1.2.3/send-nothing", onNode(memoryOpsSendNothing), "RV-8.1.2.3.1-M2", "RV-8.1.2.3.3-M3"),
	apiCase("8.1.2.3.3/targets", staged(targetsOfInvalidate), "RV-8.1.2.3.3-M1"),
	apiCase("8.1.2.3.3/not-of-shared", staged(sharedIsNoTarget), "RV-8.1.2.3.3-M1"),
}

// memoryOpsArePosted: binding, Fast-Register and Invalidate Local STag are requests
// among others, and no method of a window, region or anything else does the same.
func memoryOpsArePosted(t *conformance.T) {
	assert.ElementsMatch(t, sendPosts, takers[verbs.BindRequest](), "who takes a Bind")
	assert.ElementsMatch(t, sendPosts, takers[verbs.FastRegisterRequest](), "who takes a Fast-Register")
	for _, v := range obtainable() {
		for i := range v.NumMethod() {
			name := v.Method(i).Name
			for _, word := range []string{"Invalidate", "FastRegister"} {
				if v.String() != "wr.Op" { // which says what kind an operation is
					assert.False(t, strings.Contains(name, word), "%v.%s", v, name)
				}
			}
		}
	}

	n := newNode(t, nodeConfig{})
	l := n.line(privileged)
	mw, mr, p := n.newMW(), n.allocated(), n.pages(1, 4096)
	bind := mw.BindRequest(n.mr, 0, 64, remoteRights, 1)
	for i, c := range []struct {
		req   verbs.Request
		valid func() bool // what it changes, from what it says to the opposite
		want  bool
	}{
		{verbs.Request{Op: verbs.OpBind, Bind: bind}, func() bool { return queried(t, mw).Valid }, true},
		{verbs.Request{Op: verbs.OpInvalidate, Invalidate: bind.Window}, func() bool { return queried(t, mw).Valid }, false},
		{fastRegister(mr.WithKey(1), p.List(0, 64), 4096, allRights), func() bool { return queried(t, mr).Valid }, true},
		{verbs.Request{Op: verbs.OpInvalidate, Invalidate: mr.WithKey(1)}, func() bool { return queried(t, mr).Valid }, false},
	} {
		t.Part("%v", c.req.Op)
		require.Equal(t, !c.want, c.valid(), "before")
		c.req.ID = 2
		post(t, l.qp, l.aRead(1), c.req, l.aSend(3))
		l.hear(l.asks(uint32(i + 1)))
		l.hear(aSend(uint32(i+1), n.mr.Bytes()[:4]))
		empty(t, l.sq) // completions come in order: the Read has not been answered
		l.tell(l.answer())
		completes(t, l.sq, l.sentAs(1, verbs.OpRead, 0), l.sentAs(2, c.req.Op, 0), l.sentAs(3, verbs.OpSend, 0))
		require.Equal(t, c.want, c.valid(), "after")
		empty(t, l.rq)
	}
	t.Part("in no other queue")
	idle := n.newQP(privileged)
	for _, r := range []verbs.Request{{Op: verbs.OpBind, Bind: bind}, fastRegister(mr.WithKey(1), p.List(0, 64), 4096, allRights)} {
		post(t, idle, r) // in Idle it waits as others do
	}
	require.False(t, queried(t, mw).Valid)
	require.False(t, queried(t, mr).Valid)
	stream, _ := aStream(t)
	begin(t, idle, *stream)
	completes(t, n.cq, verbs.Completion{QP: idle.ID(), Op: verbs.OpBind, ID: 0}, verbs.Completion{QP: idle.ID(), Op: verbs.OpFastRegister, ID: 0x7A07})
	require.True(t, queried(t, mw).Valid)
	require.True(t, queried(t, mr).Valid)
}

// memoryOpsSendNothing has them alone and between Sends: the peer gets the Sends. What
// was invalidated keeps its octets.
func memoryOpsSendNothing(t *conformance.T, n *node) {
	l := n.line(privileged)
	mw, mr, fast, p := n.newMW(), n.register(64, allRights), n.allocated(), n.pages(1, 4096)
	fill(p.Bytes(), 2)
	was, pages := bytes.Clone(fill(mr.Bytes(), 1)), bytes.Clone(p.Bytes())
	bind := mw.BindRequest(n.mr, 0, 64, remoteRights, 1)
	sends := uint32(0)
	for _, r := range []verbs.Request{
		{Op: verbs.OpBind, Bind: bind}, {Op: verbs.OpInvalidate, Invalidate: bind.Window},
		fastRegister(fast.WithKey(1), p.List(0, 64), 4096, allRights), {Op: verbs.OpInvalidate, Invalidate: fast.WithKey(1)},
		{Op: verbs.OpInvalidate, Invalidate: mr.STag()},
	} {
		t.Part("%v alone", r.Op)
		r.ID = 2
		post(t, l.qp, r)
		completes(t, l.sq, l.sentAs(2, r.Op, 0))
		l.settle() // hears of nothing but its own answer
	}
	require.Equal(t, was, mr.Bytes(), "what was invalidated")
	require.Equal(t, pages, p.Bytes(), "what was registered and invalidated")
	t.Part("between Sends")
	post(t, l.qp,
		l.aSend(1), verbs.Request{ID: 2, Op: verbs.OpBind, Bind: bind},
		l.aSend(3), fastRegister(fast.WithKey(1), p.List(0, 64), 4096, allRights),
		l.aSend(5), verbs.Request{ID: 6, Op: verbs.OpInvalidate, Invalidate: bind.Window},
		l.aSend(7), verbs.Request{ID: 8, Op: verbs.OpInvalidate, Invalidate: fast.WithKey(1)},
		l.aSend(9),
	)
	for range 5 {
		sends++
		l.hear(aSend(sends, n.mr.Bytes()[:4]))
	}
	completes(t, l.sq,
		l.sentAs(1, verbs.OpSend, 0), l.sentAs(2, verbs.OpBind, 0), l.sentAs(3, verbs.OpSend, 0), l.sentAs(0x7A07, verbs.OpFastRegister, 0),
		l.sentAs(5, verbs.OpSend, 0), l.sentAs(6, verbs.OpInvalidate, 0), l.sentAs(7, verbs.OpSend, 0), l.sentAs(8, verbs.OpInvalidate, 0), l.sentAs(9, verbs.OpSend, 0))
	l.settle()
	require.Equal(t, pages, p.Bytes())
	t.Part("")
	n.quiet()
}

// targetsOfInvalidate: each kind of STag that can be invalidated, by the two
// operations.
func targetsOfInvalidate(n *node) {
	t, p := n.t, n.pages(1, 4096)
	for _, w := range ways[:2] {
		s := n.seat(privileged)
		again := n.register(8, verbs.LocalRead)
		require.NoError(t, again.Reregister(nil, verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights}))
		fast := n.allocated()
		s.does(fastRegister(fast.WithKey(2), p.List(0, 64), 4096, allRights), verbs.StatusSuccess)
		for _, c := range []struct {
			name string
			mr   *verbs.MR
			st   verbs.STag
		}{
			{"Register", n.register(64, allRights), 0},
			{"Register, local rights", n.register(64, verbs.LocalRead), 0},
			{"Reregister", again, 0},
			{"Allocate and Fast-Register", fast, fast.WithKey(2)},
		} {
			t.Part("%s of %s", w.name, c.name)
			if c.st == 0 {
				c.st = c.mr.STag()
			}
			before := queried(t, c.mr)
			require.True(t, before.Valid)
			require.Equal(t, c.st, before.STag)
			s.invalidate(w, c.st, invalidates)
			after := queried(t, c.mr)
			require.False(t, after.Valid)
			require.Equal(t, c.st.Index(), after.STag.Index())
		}
		t.Part("%s of a window", w.name)
		mw := n.newMW()
		b := s.binds(mw.BindRequest(n.mr, 0, 64, remoteRights, 3))
		require.True(t, queried(t, mw).Valid)
		s.invalidate(w, b.Window, invalidates)
		require.False(t, queried(t, mw).Valid)
		s.leave()
	}
}

// sharedIsNoTarget: neither of two regions over one memory can be invalidated, which
// stays reachable through both.
func sharedIsNoTarget(n *node) {
	t := n.t
	mem := make([]byte, 64)
	original := n.region(n.pd, verbs.RegionConfig{Memory: mem, Access: allRights})
	shared := must(original.RegisterShared(nil, verbs.SharedConfig{Access: allRights}))(t)
	for _, mr := range []*verbs.MR{original, shared} {
		for _, w := range ways[:2] {
			t.Part("%s of %v", w.name, mr.STag())
			s := n.seat(verbs.QPConfig{})
			before, was := queried(t, mr), slices.Clone(mem)
			s.invalidate(w, mr.STag(), cannotBe)
			require.Equal(t, before, queried(t, mr))
			require.True(t, before.Valid)
			require.Equal(t, was, mem)
			s.sit()
			s.opens(mr.Buffer(), 0, mem)
			s.leave()
		}
	}
}
