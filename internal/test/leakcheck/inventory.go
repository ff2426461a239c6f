package leakcheck

import (
	"testing"
	"time"

	"github.com/softrnic/softrnic/internal/inventory"
)

// Inventory has the test fail for each object that it opens from here on and does not close, and for what one holds that
// is closed. What the test has cleaned up by then counts as closed: T.Cleanup from here on.
func Inventory(t testing.TB) { inventoryFor(t, patience) }

func inventoryFor(t testing.TB, patience time.Duration) {
	stop := inventory.Keep()
	scope := inventory.Begin()
	t.Cleanup(func() {
		defer stop()
		defer scope.End()
		for _, line := range scope.WaitOwn(patience) {
			t.Errorf("left behind: %s", line)
		}
	})
}
