//go:build !race

package verbs_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestNoAllocations: a request costs no allocation from post to poll, of any kind
// (see also the benchmarks). Under the race detector pools drop items on purpose.
func TestNoAllocations(t *testing.T) {
	p := newPaths(t)
	for _, path := range p.all() {
		t.Run(path.name, func(t *testing.T) {
			once := func() {
				if err := path.run(runtime.Gosched); err != nil {
					t.Error(err)
				}
			}
			for range 200 { // until every slot has its storage
				once()
			}
			// An average, rounded down: a garbage collection may empty a pool.
			assert.Zero(t, testing.AllocsPerRun(500, once))
		})
	}
}
