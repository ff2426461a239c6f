//go:build !race

package nd2_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestNoAllocations: a request costs no allocation from post to result, of any kind.
// Under the race detector pools drop items on purpose.
func TestNoAllocations(t *testing.T) {
	for _, p := range paths(t) {
		t.Run(p.name, func(t *testing.T) {
			once := func() {
				if err := p.run(); err != nil {
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
