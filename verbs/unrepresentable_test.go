package verbs_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestUnrepresentableSGE: an offset or a length that an element cannot tell is refused when it is
// posted, and is not cut to one that it can.
func TestUnrepresentableSGE(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	w.connect()
	zero, err := w.pd.RegisterRegion(verbs.RegionConfig{Memory: make([]byte, 64), Access: allRights, ZeroBased: true})
	require.NoError(t, err)
	buffers := map[string]verbs.TaggedBuffer{
		"VA-based": w.mr.Buffer(), "zero-based": zero.Buffer(), "high": {STag: w.mr.STag(), Base: math.MaxUint64 - 10},
	}
	for name, b := range buffers {
		for _, c := range [][2]int64{
			{0, 4 << 30}, {0, 4<<30 + 8}, {0, 8 << 30}, {0, math.MaxInt64}, {0, -1}, {0, math.MinInt32},
			{-1, 8}, {-1, 0}, {math.MinInt32, 1},
		} {
			off, length := int(c[0]), int(c[1])
			if int64(length) != c[1] {
				continue // an int has 32 bits: no program can say that
			}
			sge, sgl := b.SGE(off, length), b.SGL(off, length)
			sgl = append([]verbs.SGE{{}}, sgl...)
			for _, r := range []verbs.Request{
				{SGL: sgl},
				{Op: verbs.OpWrite, SGL: sgl, Remote: verbs.Remote{STag: 1 << 8}},
				{Op: verbs.OpRead, Local: sge, Remote: verbs.Remote{STag: 1 << 8}},
			} {
				n, err := w.qp.PostSend(verbs.Request{Op: verbs.OpWrite}, r)
				require.ErrorIs(t, err, verbs.ErrInvalidSGLFormat, "%s: %v of %v", name, c, r.Op)
				require.Equal(t, 1, n, "what came before is posted")
				require.Equal(t, verbs.StatusSuccess, waitOne(t, w.cq).Status)
			}
			_, err := w.qp.PostRecv(verbs.Recv{SGL: sgl})
			require.ErrorIs(t, err, verbs.ErrInvalidSGLFormat, "%s: %v of a Receive", name, c)
			_, err = w.srq.PostRecv(verbs.Recv{SGL: sgl})
			require.ErrorIs(t, err, verbs.ErrInvalidSGLFormat, "%s: %v of an S-RQ", name, c)
		}
	}
	high := buffers["high"].SGL(11, 1)
	_, err = w.qp.PostSend(verbs.Request{SGL: high})
	require.ErrorIs(t, err, verbs.ErrInvalidSGLFormat, "an offset beyond 64 bits")

	longest := verbs.SGE{STag: zero.STag(), Length: verbs.MaxMessage}
	require.Equal(t, verbs.StatusBaseBounds, w.run(verbs.Request{SGL: []verbs.SGE{longest}}).Status, "that fits")
}

// TestMisfitSentence: what stands for an element that cannot be is not told as a length that the program asked for.
func TestMisfitSentence(t *testing.T) {
	w := newWorld(t, verbs.Config{})
	w.connect()
	to, misfit := verbs.Remote{STag: 0x1234, TO: 0x5678}, []verbs.SGE{w.mr.SGE(0, 8), w.mr.SGE(-1, 8)}
	const why = ": invalid scatter/gather list format: the offset of an element is negative or beyond 64 bits"
	on := fmt.Sprintf(" on QP %d refused", w.qp.ID())
	for want, post := range map[string]func() (int, error){
		"Send" + on + why: func() (int, error) { return w.qp.PostSend(verbs.Request{SGL: misfit}) },
		"RDMA Write of STag 0x00001234" + on + why: func() (int, error) {
			return w.qp.PostSend(verbs.Request{Op: verbs.OpWrite, SGL: misfit, Remote: to})
		},
		"RDMA Read of STag 0x00001234" + on + why: func() (int, error) {
			return w.qp.PostSend(verbs.Request{Op: verbs.OpRead, Local: misfit[1], Remote: to})
		},
		"Receive" + on + why:    func() (int, error) { return w.qp.PostRecv(verbs.Recv{SGL: misfit}) },
		"Receive refused" + why: func() (int, error) { return w.srq.PostRecv(verbs.Recv{SGL: misfit}) },
	} {
		_, err := post()
		require.Error(t, err)
		require.True(t, strings.HasPrefix(err.Error(), want), "%v, want %s", err, want)
		require.NotContains(t, err.Error(), "4294967295 octets")
	}
}
