package stag

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scripted makes s draw the given indices, then 1, 2, 3 and so on from 1000.
func scripted(s *supply, script ...uint32) {
	next := uint32(1000)
	s.left = 0
	s.fill = func(b []byte) {
		for p := 0; p < len(b); p += 3 {
			i := next
			if len(script) > 0 {
				i, script = script[0], script[1:]
			} else {
				next++
			}
			b[p], b[p+1], b[p+2] = byte(i>>16), byte(i>>8), byte(i)
		}
	}
}

func TestSupplyDrawsAgain(t *testing.T) {
	var s supply
	s.init()
	s.free(0xABCDEF)
	scripted(&s, 0, 0xABCDEF, 5, 0, 0x123456, 0xFFFFFF)
	inUse := func(i uint32) bool { return i == 5 }
	require.Equal(t, uint32(0x123456), s.take(inUse), "not zero, not in quarantine, not in use")
	require.Equal(t, uint32(0xFFFFFF), s.take(inUse))
	for want := uint32(1000); want < 1000+2*drawLen; want++ {
		require.Equal(t, want, s.take(inUse), "every octet is used once")
	}
}

func TestQuarantine(t *testing.T) {
	var s supply
	s.init()
	never := func(uint32) bool { return false }
	for i := uint32(1); i <= quarantineLen; i++ {
		s.free(i)
	}
	scripted(&s, 1, quarantineLen, 7777)
	require.Equal(t, uint32(7777), s.take(never))

	// Each further one lets the oldest out, first come, first served.
	s.free(50000)
	scripted(&s, 2, 1)
	require.Equal(t, uint32(1), s.take(never))
	s.free(50001)
	scripted(&s, 3, 50000, 2)
	require.Equal(t, uint32(2), s.take(never))
	require.Len(t, s.freed, quarantineLen)
	require.GreaterOrEqual(t, quarantineLen, 256)
}

// A table whose random source repeats itself does not give an index to two
// regions, nor to one soon after another.
func TestTableNoReuse(t *testing.T) {
	tb := NewTable(Config{})
	scripted(&tb.supply, 42, 42, 0, 42, 43)
	a := register(t, tb, RegionConfig{})
	require.Equal(t, uint32(42), a.STag.Index())
	require.NoError(t, tb.Deallocate(a.STag))
	b := register(t, tb, RegionConfig{})
	require.Equal(t, uint32(43), b.STag.Index())
}

// R5040-8.1.1-M9. A fixed source, a counter or a source of fewer bits fails;
// the bounds are some ten standard deviations wide.
func TestUnpredictable(t *testing.T) {
	const n = 4096
	tb := NewTable(Config{})
	seen := map[uint32]bool{}
	steps := map[uint32]int{}
	var ones [24]int
	var last uint32
	for range n {
		i := register(t, tb, RegionConfig{}).STag.Index()
		require.NotZero(t, i)
		require.False(t, seen[i])
		seen[i] = true
		steps[i-last]++
		last = i
		for bit := range ones {
			ones[bit] += int(i >> bit & 1)
		}
	}
	for step, count := range steps {
		assert.LessOrEqual(t, count, 8, "step %d", int32(step))
	}
	for bit, count := range ones {
		assert.InDelta(t, n/2, count, 320, "bit %d", bit)
	}

	other := NewTable(Config{})
	common := 0
	for range n {
		if seen[register(t, other, RegionConfig{}).STag.Index()] {
			common++
		}
	}
	assert.Less(t, common, 20, "two tables have little in common")
}
