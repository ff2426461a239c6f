package verbs_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/qp"
	"github.com/softrnic/softrnic/verbs"
)

// TestTuning moves the same messages with all kinds of thresholds: what arrives is the
// same.
func TestTuning(t *testing.T) {
	for i, tuning := range []qp.Tuning{
		{},
		{Segment: -1, Batch: -1, Gather: -1, Eager: -1, Direct: -1, Drive: -1},
		{Segment: 1 << 20, Batch: 1 << 30, Gather: 1, Eager: 1, Hold: 1 << 30, Direct: 1, Drive: 1},
		{Segment: 1000, Batch: 100, Gather: 500, Hold: 1},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			x, y := newTuned(t, tuning), newTuned(t, tuning)
			join(t, x.qp, y.qp, false)
			const size = 3000
			for i := range size {
				x.mr.Bytes()[i] = byte(i*7 + i>>8)
			}
			var want []verbs.Recv
			for i := range uint64(10) {
				want = append(want, verbs.Recv{ID: i, SGL: y.mr.SGL(size, size)})
			}
			require.NoError(t, second(y.qp.PostRecv(want...)))
			for range 9 {
				require.NoError(t, second(x.qp.PostSend(verbs.Request{Flags: verbs.Unsignaled})))
			}
			require.NoError(t, second(x.qp.PostSend(
				verbs.Request{Op: verbs.OpWrite, SGL: x.mr.SGL(0, size), Remote: y.mr.Remote(0)},
				verbs.Request{SGL: x.mr.SGL(0, size)},
				verbs.Request{Op: verbs.OpRead, Local: x.mr.SGE(size, size), Remote: y.mr.Remote(0)},
			)))
			for range 3 {
				assert.Equal(t, verbs.StatusSuccess, waitOne(t, x.cq).Status)
			}
			for i := range uint64(10) {
				c := waitOne(t, y.cq)
				assert.Equal(t, []any{i, verbs.StatusSuccess}, []any{c.ID, c.Status})
			}
			sent := x.mr.Bytes()[:size]
			assert.True(t, bytes.Equal(sent, y.mr.Bytes()[:size]), "Write")
			assert.True(t, bytes.Equal(sent, y.mr.Bytes()[size:2*size]), "Send")
			assert.True(t, bytes.Equal(sent, x.mr.Bytes()[size:2*size]), "Read")
		})
	}
}
