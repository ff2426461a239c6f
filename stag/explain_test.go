package stag

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/wr"
)

// TestExplainSaysNothingStale: what the table says now has to be the fault that was found.
func TestExplainSaysNothingStale(t *testing.T) {
	tb := NewTable(Config{})
	r := register(t, tb, RegionConfig{VA: 0x1000, Access: wr.LocalRead})
	ask := func(f AccessFault, need wr.Access) *wr.Reason {
		w := &wr.Reason{STag: r.STag, HasSTag: true, Asked: wr.Tagged(0x1000, 65)}
		tb.Explain(w, f, alice, need)
		return w
	}
	w := ask(FaultBounds, wr.LocalRead)
	assert.Equal(t, wr.Tagged(0x1000, 64), w.Allowed)
	assert.Equal(t, "the region has 64 octets from TO 0x1000", w.What)
	assert.Equal(t, "RV-7.6.3-M2", w.Rule)
	w = ask(FaultAccess, wr.RemoteWrite)
	assert.Equal(t, wr.RemoteWrite, w.Missing)
	assert.Equal(t, "RV-7.6.3-M1", w.Rule)
	for _, stale := range []AccessFault{FaultSTag, FaultPD, FaultWrap, FaultAccess} {
		assert.Empty(t, ask(stale, wr.LocalRead).What, "%v", stale)
	}
	require.NoError(t, tb.Deallocate(r.STag))
	assert.Empty(t, ask(FaultBounds, wr.LocalRead).What)
	assert.Equal(t, "no region or window has this STag", ask(FaultSTag, wr.LocalRead).What)
}

// TestExplainVanished: the right is there, and the memory is not.
func TestExplainVanished(t *testing.T) {
	tb := NewTable(Config{})
	r := register(t, tb, RegionConfig{VA: 0x1000, MayVanish: true})
	w := &wr.Reason{STag: r.STag, HasSTag: true, Asked: wr.Tagged(0x1000, 64)}
	tb.Explain(w, FaultAccess, alice, wr.LocalRead)
	assert.Equal(t, "memory of the region has vanished", w.What)
	assert.Zero(t, w.Missing)
}
