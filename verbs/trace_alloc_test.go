//go:build !race

package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestTraceAllocates has a round trip allocate as much with a trace as without: nothing.
func TestTraceAllocates(t *testing.T) {
	a, b := tracedPair(t, true)
	var done [4]verbs.Completion
	recv, send := []verbs.Recv{{SGL: b.mr.SGL(0, 64)}}, []verbs.Request{{SGL: a.mr.SGL(0, 64)}}
	round := func() {
		if _, err := b.qp.PostRecv(recv...); err != nil {
			t.Fatal(err)
		}
		if _, err := a.qp.PostSend(send...); err != nil {
			t.Fatal(err)
		}
		for _, cq := range []*verbs.CQ{a.qp.SendCQ(), b.qp.RecvCQ()} {
			for cq.Poll(done[:]) == 0 {
			}
		}
	}
	for range 100 {
		round()
	}
	require.Zero(t, testing.AllocsPerRun(500, round))
}
