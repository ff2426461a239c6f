package cases

import (
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/conformance"
	"github.com/softrnic/softrnic/verbs"
)

// extendedWorld is a world whose queue pairs speak RFC 7306.
func extendedWorld(t *conformance.T) *hostPair {
	c := hostConfig{QP: verbs.QPConfig{Extensions: true}}
	return newHostPair(t, hostPairConfig{A: c, B: c})
}

// received is a completion of a receive at a host.
func (n *host) received(id, data uint64) verbs.Completion {
	return verbs.Completion{ID: id, QP: n.qp.ID(), Op: verbs.OpRecv, Value: data, HasImmediate: true}
}

// immediateBetween: twenty of all kinds in a row, in the order of posting at either end.
func immediateBetween(t *conformance.T) {
	w := extendedWorld(t)
	ops := []verbs.Op{verbs.OpImmediate, verbs.OpSend, verbs.OpWriteImmediate, verbs.OpImmediateSE, verbs.OpWriteImmediateSE}
	var sent, received []verbs.Completion
	for i := range uint64(20) {
		op := ops[i%5]
		data := t.Rand().Uint64()
		postRecv(t, w.b.qp, verbs.Recv{ID: 100 + i})
		post(t, w.a.qp, verbs.Request{ID: i, Op: op, Immediate: data})
		sent = append(sent, verbs.Completion{ID: i, QP: w.a.qp.ID(), Op: op})
		c := w.b.received(100+i, data)
		if op == verbs.OpSend {
			c.Value, c.HasImmediate = 0, false
		}
		received = append(received, c)
	}
	completes(t, w.a.cq, sent...)
	completes(t, w.b.cq, received...)
	w.noCompletions()
}

// immediateBehindWrite: when the Immediate Data has completed, the Write before it is placed, all
// of it, and nothing is in the receive's buffer.
func immediateBehindWrite(t *conformance.T) {
	w := extendedWorld(t)
	const at = 1024
	for i, n := range []int{1, 64, 2048, 50000} {
		want := fill(w.a.mr.Bytes()[:n], i)
		clear(w.b.mr.Bytes())
		id := uint64(i)
		postRecv(t, w.b.qp, verbs.Recv{ID: id, SGL: w.b.mr.SGL(0, 512)})
		post(t, w.a.qp, verbs.Request{
			ID: id, Op: verbs.OpWriteImmediate, SGL: w.a.mr.SGL(0, n), Remote: w.b.mr.Remote(at), Immediate: id << 40,
		})
		completes(t, w.b.cq, w.b.received(id, id<<40))
		require.Equal(t, want, w.b.mr.Bytes()[at:at+n], "what was written")
		require.Equal(t, make([]byte, at), w.b.mr.Bytes()[:at], "the receive's buffer and what is behind it")
		completes(t, w.a.cq, verbs.Completion{ID: id, QP: w.a.qp.ID(), Op: verbs.OpWriteImmediate})
	}
}

// immediateShared: receives come from an S-RQ too, one each.
func immediateShared(t *conformance.T) {
	a, b := newHost(t, hostConfig{QP: verbs.QPConfig{Extensions: true}}), newHost(t, hostConfig{})
	srq := b.newSRQ(verbs.SRQConfig{})
	qp := b.newQP(verbs.QPConfig{SRQ: srq, Extensions: true})
	connect(t, a.qp, qp)
	for id := range uint64(3) {
		postRecv(t, srq, verbs.Recv{ID: id, SGL: b.mr.SGL(0, 8*int(id))}) // the first has room for none
	}
	for id := range uint64(3) {
		run(t, a.qp, verbs.Request{ID: id, Op: verbs.OpImmediate, Immediate: 1 << id}, verbs.StatusSuccess)
		completes(t, b.cq, verbs.Completion{ID: id, QP: qp.ID(), Op: verbs.OpRecv, Value: 1 << id, HasImmediate: true})
	}
	post(t, a.qp, verbs.Request{ID: 9, Op: verbs.OpImmediate})
	ends(t, qp, verbs.StateError)
	require.Equal(t, make([]byte, 16), b.mr.Bytes()[:16], "nothing is in the buffers")
}
