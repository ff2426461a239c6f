package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/verbs"
)

// TestSendImmediate: payload and Immediate Data are one completion, in order with plain Sends, with receives of the queue pair's
// own and of an S-RQ, in one segment and in many.
func TestSendImmediate(t *testing.T) {
	for name, shared := range map[string]bool{"own receives": false, "S-RQ": true} {
		t.Run(name, func(t *testing.T) {
			a, b := newNode(t, verbs.QPConfig{SendImmediate: true}), newNode(t, verbs.QPConfig{})
			c, post := verbs.QPConfig{SendImmediate: true}, func(r verbs.Recv) (int, error) { return b.qp.PostRecv(r) }
			if shared {
				srq, err := b.nic.CreateSRQ(verbs.SRQConfig{PD: b.pd})
				require.NoError(t, err)
				c.SRQ, post = srq, func(r verbs.Recv) (int, error) { return srq.PostRecv(r) }
			}
			b.qp = b.newQP(t, c)
			join(t, a.qp, b.qp, shared)
			sizes := []int{0, 1, 64, 5000, 200_000}
			for i := range 2 * len(sizes) {
				_, err := post(verbs.Recv{ID: uint64(i), SGL: []verbs.SGE{b.mr.SGE(0, 100_000), b.mr.SGE(100_000, 200_000)}})
				require.NoError(t, err)
			}
			for i, n := range sizes {
				sgl := []verbs.SGE{a.mr.SGE(0, n/2), a.mr.SGE(n/2, n-n/2)}
				_, err := a.qp.PostSend(
					verbs.Request{Flags: verbs.WithImmediate, Immediate: 0xdeadbeef_00000000 | uint64(i), SGL: sgl},
					verbs.Request{SGL: sgl})
				require.NoError(t, err)
			}
			a.wait(t, 2*len(sizes))
			for i, got := range b.wait(t, 2*len(sizes)) {
				assert.EqualValues(t, sizes[i/2], got.Bytes)
				assert.Equal(t, i%2 == 0, got.HasImmediate)
				if got.HasImmediate {
					assert.EqualValues(t, i/2, got.Value)
				}
			}
		})
	}
}
