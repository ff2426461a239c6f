package names

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

type colour uint8

var colours = []string{1: "red", 2: "green"}

func TestOf(t *testing.T) {
	assert.Equal(t, "green", Of("Colour", colours, colour(2)))
	assert.Equal(t, "Colour(0)", Of("Colour", colours, colour(0)), "a gap")
	assert.Equal(t, "Colour(3)", Of("Colour", colours, colour(3)), "the first behind them")
	assert.Equal(t, "Colour(255)", Of("Colour", nil, colour(255)))
	assert.Equal(t, "Mask(18446744073709551615)", Of("Mask", colours, ^uint64(0)))
}

func TestSet(t *testing.T) {
	bits := []string{"a", "b", "c"}
	assert.Equal(t, []string{"a", "c"}, Set(bits, uint16(0b101)))
	assert.Equal(t, []string{"b"}, Set(bits, colour(0b1010)), "the fourth has no name")
	assert.Empty(t, Set(bits, uint32(0)))
	nine := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}
	assert.Equal(t, []string{"i"}, Set(nine, uint64(1<<8)))
	assert.Equal(t, nine[:8], Set(nine, ^colour(0)), "a name beyond the type")
}
