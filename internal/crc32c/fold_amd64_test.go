package crc32c

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Around the length of the largest block the number of blocks changes.
func TestFoldedBlocks(t *testing.T) {
	if !canFold {
		t.Skip("this processor cannot")
	}
	r := newRand()
	b := randomOctets(r, 2*crcMaxSteps*crcStep+crcStep)
	for _, blocks := range []int{1, 2} {
		for d := -crcStep; d <= crcStep; d++ {
			part := b[:blocks*crcMaxSteps*crcStep+d]
			require.Equal(t, portable(1, part), ^folded(^uint32(1), part), "%d octets", len(part))
		}
	}
}

// power and times against bits that are shifted through a CRC: a state's multiplication
// by x^8 is what an octet of zeros does to it.
func TestPowers(t *testing.T) {
	state := uint32(1 << 31) // x^0
	for n := range 1000 {
		assert.Equal(t, state, iSCSI.power(8*n), "x^%d", 8*n)
		state = ^portable(^state, []byte{0})
	}
	assert.Equal(t, iSCSI.power(777), iSCSI.times(iSCSI.power(700), iSCSI.power(77)))
	assert.Equal(t, iSCSI.power(0), iSCSI.times(iSCSI.power(0), iSCSI.power(0)))
}

// Every constant of a table is x to the power that its place calls for.
func TestShiftTable(t *testing.T) {
	for n, shifts := range crcShifts {
		steps := n + 1
		require.Equal(t, [4]uint64{
			uint64(iSCSI.power(8*steps*(24+24+24+64) - 33)),
			uint64(iSCSI.power(8*steps*(24+24+64) - 33)),
			uint64(iSCSI.power(8*steps*(24+64) - 33)),
			uint64(iSCSI.power(8*steps*64 - 33)),
		}, shifts, "%d steps", steps)
	}
}

// TestFolder: what folding leaves has the CRC of the whole, of Castagnoli's generator, whose CRC the library has.
func TestFolder(t *testing.T) {
	if !canWide {
		t.Skip("this processor cannot")
	}
	r := newRand()
	b := randomOctets(r, 5000)
	f := NewFolder(uint32(iSCSI))
	for n := range len(b) {
		state := r.Uint32()
		var rest [16]byte
		k := f.Fold(state, b[:n], &rest)
		require.Equal(t, n >= wideMin, k > 0)
		if k > 0 {
			require.LessOrEqual(t, n-k, 63)
			require.Equal(t, portable(^state, b[:k]), portable(^uint32(0), rest[:]), "%d octets", n)
		}
	}
}
