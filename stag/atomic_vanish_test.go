//go:build linux && !race

package stag

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// TestUpdateVanished: memory that may not be written, or is gone, is an access fault. The
// race detector's own code would meet the page.
func TestUpdateVanished(t *testing.T) {
	tb := NewTable(Config{})
	mem, middle := mapped(t, 3)
	r := register(t, tb, RegionConfig{Memory: mem, Addressing: wr.ZeroBased, MayVanish: true, Access: atomicRights})
	ref := resolve(t, tb, r.STag, page, 8)
	for _, prot := range []int{syscall.PROT_READ, syscall.PROT_NONE} {
		require.NoError(t, syscall.Mprotect(middle, prot))
		_, aligned, ok := ref.Update(plus(1))
		assert.True(t, aligned)
		assert.False(t, ok)
		assert.Equal(t, FaultAccess, ref.Lost())
	}
	require.NoError(t, syscall.Mprotect(middle, syscall.PROT_READ|syscall.PROT_WRITE))
	old, _, ok := ref.Update(plus(1))
	assert.True(t, ok)
	assert.Zero(t, old)
	require.NoError(t, tb.Deallocate(r.STag), "no hold is left behind")
}
