//go:build !race

package qp

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/softrnic/softrnic/wr"
)

// TestMemoryOperationsAllocateNothing, from post to poll, once every slot of the
// queue has seen one.
func TestMemoryOperationsAllocateNothing(t *testing.T) {
	var c setup
	privileged(&c)
	r := newRig(t, c)
	b, f := r.goodBind(), r.goodFast()
	requests := map[string][]wr.Request{
		"Bind":          {bindOf(1, b), invalidate(2, b.Window, 0)},
		"Fast-Register": {fastOf(1, f), invalidate(2, f.STag, wr.LocalFence)},
	}
	var done [4]wr.Completion
	for name, list := range requests {
		run := func() {
			if _, err := r.q.PostSend(list...); err != nil {
				t.Error(err)
				return
			}
			for got := 0; got < len(list); runtime.Gosched() {
				n := r.scq.Poll(done[:])
				for _, c := range done[:n] {
					if c.Status != wr.StatusSuccess {
						t.Error(c.Status)
					}
				}
				got += n
			}
		}
		for range 2 * r.set.depth {
			run()
		}
		// An average, rounded down: a garbage collection may empty a pool.
		assert.Zero(t, testing.AllocsPerRun(500, run), name)
	}
}
