package leakcheck

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/inventory"
)

// ending is a test that ends when it is told to.
type ending struct {
	testing.TB
	end  func()
	said []string
}

func (e *ending) Cleanup(f func()) { e.end = f }
func (e *ending) Errorf(format string, args ...any) {
	e.said = append(e.said, fmt.Sprintf(format, args...))
}

func TestInventory(t *testing.T) {
	for held, want := range [][]string{nil, {"left behind: box 1: 1 place"}} {
		e := &ending{TB: t}
		inventoryFor(e, time.Millisecond)
		box := inventory.Open(nil, "box", 1, inventory.CounterFunc(func(tell inventory.Tell) { tell(held, "place") }))
		require.NotNil(t, box)
		box.Close()
		e.end()
		assert.Equal(t, want, e.said)
	}
}
