package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// rv9_3_1_2 is PostRQ: verbs draft 9.3.1.2.
var rv9_3_1_2 = []conformance.Case{
	apiCase("9.3.1.2/results-of-rq", onNode(postRQResults), "RV-9.3.1.2-M1"),
	apiCase("9.3.1.2/results-of-srq", onNode(postRQResultsOfSRQ), "RV-9.3.1.2-M1"),
	apiCase("9.3.1.2/queue-named", postRQQueue, "RV-9.3.1.2-M2"),
	apiCase("9.3.1.2/id-and-list", onNode(postRQRequired), "RV-9.3.1.2-M3"),
}

// postRQResults has each result of a Receive Queue but Invalid Scatter/Gather List Format
// and Invalid Modifier: verbs.Recv cannot be written down so that they apply.
func postRQResults(t *conformance.T, n *node) {
	for name := range inTurn(t, "%s", []string{"QP", "UserQP"}) {
		for s := range inTurn(t, "in %v", states) {
			l := n.into(s, verbs.QPConfig{RecvDepth: 4, RecvSGE: 2})
			h := handles(t, l.qp)[name]
			post := func(r ...verbs.Recv) func() error {
				return func() error {
					k, err := h.PostRecv(r...)
					require.Zero(t, k, "posted")
					return err
				}
			}
			if s != verbs.StateIdle && s != verbs.StateRTS {
				refuses(t, "a good one", verbs.ErrInvalidState, post(verbs.Recv{}), l.shown)
				continue
			}
			require.Equal(t, 2, must(h.PostRecv(verbs.Recv{ID: 1}, verbs.Recv{ID: 2}))(t))
			refuses(t, "a list", verbs.ErrInvalidSGLLength, post(verbs.Recv{SGL: make([]verbs.SGE, 3)}), l.shown)
			require.NoError(t, second(h.PostRecv(make([]verbs.Recv, attributes(t, l.qp).RecvDepth-2)...)))
			refuses(t, "one too many", verbs.ErrQueueFull, post(verbs.Recv{}), l.shown)
			if s == verbs.StateRTS {
				l.say(nil)
				l.say(nil)
				completes(t, l.rq, l.got(1, 0), l.got(2, 0))
			}
			require.NoError(t, l.qp.Destroy())
			require.ErrorIs(t, post(verbs.Recv{})(), verbs.ErrInvalidQP)
		}
	}
	srq := n.newSRQ(verbs.SRQConfig{})
	qp := n.newQP(verbs.QPConfig{SRQ: srq})
	x := newNode(t, nodeConfig{})
	for name, h := range handles(t, qp) {
		refuses(t, name, verbs.ErrRQUsesSRQ, func() error { return second(h.PostRecv(verbs.Recv{})) }, tells(t, qp), queries(srq.Query))
	}
	of := handles(t, x.qp)
	require.NoError(t, x.nic.Close())
	for name, h := range of {
		require.ErrorIs(t, second(h.PostRecv(verbs.Recv{})), verbs.ErrInvalidRNIC, name)
	}
}

func postRQResultsOfSRQ(t *conformance.T, n *node) {
	for user := range inTurn(t, "a user's handle: %v", []bool{false, true}) {
		srq := n.newSRQ(verbs.SRQConfig{Depth: 4, SGE: 2})
		posts := srq.PostRecv
		if user {
			posts = srq.User().PostRecv
		}
		post := func(r ...verbs.Recv) func() error { return func() error { return second(posts(r...)) } }
		depth := queried(t, srq).Depth
		for i := range depth {
			require.Equal(t, 1, must(posts(verbs.Recv{ID: uint64(i)}))(t))
			refuses(t, "a list", verbs.ErrInvalidSGLLength, post(verbs.Recv{SGL: make([]verbs.SGE, 3)}), queries(srq.Query))
		}
		refuses(t, "one too many", verbs.ErrQueueFull, post(verbs.Recv{}), queries(srq.Query))
		l := n.line(verbs.QPConfig{SRQ: srq})
		for i := range depth {
			l.say(nil)
			completes(t, l.rq, l.got(uint64(i), 0))
		}
		succeed(t, l.qp.Destroy, srq.Destroy)
		require.ErrorIs(t, post(verbs.Recv{})(), verbs.ErrInvalidSRQ)
	}
	x := newNode(t, nodeConfig{})
	srq := x.newSRQ(verbs.SRQConfig{})
	require.NoError(t, x.nic.Close())
	require.ErrorIs(t, second(srq.PostRecv(verbs.Recv{})), verbs.ErrInvalidRNIC)
	require.ErrorIs(t, second(srq.User().PostRecv(verbs.Recv{})), verbs.ErrInvalidRNIC)
}

// postRQQueue posts to each of two Receive Queues and two S-RQs: messages for the others
// find nothing there.
func postRQQueue(t *conformance.T) {
	for which := range 4 {
		n := newNode(t, nodeConfig{})
		srqs := []*verbs.SRQ{n.newSRQ(verbs.SRQConfig{}), n.newSRQ(verbs.SRQConfig{})}
		lines := []*line{
			n.line(verbs.QPConfig{}), n.line(verbs.QPConfig{}), n.line(verbs.QPConfig{SRQ: srqs[0]}), n.line(verbs.QPConfig{SRQ: srqs[1]}),
		}
		posts := lines[which].qp.PostRecv
		if which > 1 {
			posts = srqs[which-2].PostRecv
		}
		require.Equal(t, 3, must(posts(n.receive(1), n.receive(2), n.receive(3)))(t))
		for i, l := range lines {
			t.Part("posted to %d, sent to %d", which, i)
			if i != which {
				l.unheard()
				continue
			}
			for id := range uint64(3) {
				l.says(id + 1)
			}
			l.unheard()
		}
	}
}

// postRQRequired: the ID comes back, and the list, of none to as many elements as there
// can be, gets the octets.
func postRQRequired(t *conformance.T, n *node) {
	most := queried(t, n.nic).Limits.SGE
	for name, srq := range map[string]*verbs.SRQ{"RQ": nil, "S-RQ": n.newSRQ(verbs.SRQConfig{SGE: most})} {
		l := n.line(verbs.QPConfig{RecvSGE: most, SRQ: srq})
		for i, id := range []uint64{0, 1, 1 << 63, 1<<64 - 1} {
			for _, elements := range []int{0, 1, 2, most} {
				t.Part("%s, ID %d, %d elements", name, id, elements)
				clear(n.mr.Bytes())
				r := verbs.Recv{ID: id}
				total := 0
				want := make([]byte, nodeMemory)
				data := fill(make([]byte, 100*most), i)
				for e := range elements { // the last ones first, with gaps
					k := 3 + 7*e%50
					at := 1000 * (elements - e)
					r.SGL = append(r.SGL, n.mr.SGE(at, k))
					copy(want[at:at+k], data[total:])
					total += k
				}
				postRecv(t, receiver(l.qp, srq), r)
				l.say(data[:total])
				completes(t, l.rq, l.got(id, total))
				same(t, want, n.mr.Bytes(), "the memory")
			}
		}
	}
}
