package verbs_test

import (
	"bytes"
	"fmt"
	"runtime/trace"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// spansOf records an execution trace of a Send from a to b, and returns it.
func spansOf(t *testing.T, a, b *tracedEnd) []byte {
	var out bytes.Buffer
	require.NoError(t, trace.Start(&out))
	defer trace.Stop()
	_, err := b.qp.PostRecv(verbs.Recv{SGL: b.mr.SGL(0, 64)})
	require.NoError(t, err)
	_, err = a.qp.PostSend(verbs.Request{SGL: a.mr.SGL(0, 64)})
	require.NoError(t, err)
	for _, q := range []*verbs.CQ{b.qp.RecvCQ(), a.qp.SendCQ()} {
		_, err := q.WaitOne(t.Context())
		require.NoError(t, err)
	}
	trace.Stop()
	return out.Bytes()
}

// TestSpans has a trace of package runtime/trace tell of a request and of what was done for it by each queue pair if
// the RNIC traces, and of nothing if it does not.
func TestSpans(t *testing.T) {
	a, b := tracedPair(t, true)
	got := spansOf(t, a, b)
	for _, want := range []string{
		"softrnic Send",
		fmt.Sprintf("softrnic PostSend QP %d", a.qp.ID()), fmt.Sprintf("softrnic transmit QP %d", a.qp.ID()),
		fmt.Sprintf("softrnic PostRecv QP %d", b.qp.ID()), fmt.Sprintf("softrnic receive QP %d", b.qp.ID()),
	} {
		require.Contains(t, string(got), want)
	}

	a, b = tracedPair(t, false)
	require.NotContains(t, string(spansOf(t, a, b)), "softrnic PostSend")
}
