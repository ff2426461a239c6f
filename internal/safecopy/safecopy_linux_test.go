package safecopy

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestHeed: who knows of another handler says so before it is there; nobody has to look.
func TestHeed(t *testing.T) {
	if !works() {
		t.Skip("the system does not let a process copy its own memory")
	}
	before := heeded
	t.Cleanup(func() { heeded = before })
	var word atomic.Int32
	Heed(&word)
	assert.False(t, Foreign())
	word.Store(1)
	assert.True(t, Foreign())
	Look()
	assert.True(t, Foreign(), "although the handlers are still Go's")
}
