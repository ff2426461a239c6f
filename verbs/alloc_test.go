//go:build !race

package verbs_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/softrnic/softrnic/verbs"
)

// TestNoAllocations: a request costs no allocation from post to poll (see also
// the benchmarks). Under the race detector pools drop items on purpose.
func TestNoAllocations(t *testing.T) {
	a, b := newNode(t, verbs.QPConfig{}), newNode(t, verbs.QPConfig{})
	join(t, a.qp, b.qp, false)
	var c [1]verbs.Completion
	one := func(w verbs.Send) func() {
		return func() {
			if _, err := a.qp.PostSend(w); err != nil {
				t.Error(err)
				return
			}
			for a.cq.Poll(c[:]) == 0 {
				b.cq.Poll(c[:]) // receives: AllocsPerRun has one processor for all
				runtime.Gosched()
			}
		}
	}
	write := one(verbs.Send{Op: verbs.OpWrite, SGL: a.mr.SGL(0, 64), Remote: b.mr.Remote(0)})
	read := one(verbs.Send{Op: verbs.OpRead, Local: a.mr.SGE(0, 64), Remote: b.mr.Remote(0)})
	write()
	read()
	// An average, rounded down: a garbage collection may empty a pool.
	assert.Zero(t, testing.AllocsPerRun(500, write))
	assert.Zero(t, testing.AllocsPerRun(500, read))
}
