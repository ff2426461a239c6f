package mpa

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestResume takes a stream up at each of its FPDUs, as it stands and beyond 2^32 octets.
func TestResume(t *testing.T) {
	for _, markers := range []bool{false, true} {
		f := NewFramer(true, markers)
		pos := uint64(0)
		for n := range 300 {
			ulpdu := make([]byte, n*7)
			want := f.AppendFPDU(nil, ulpdu)
			for _, before := range []uint64{0, 1 << 32, 1<<63 - 512} {
				again := NewFramer(true, markers)
				again.Resume(before + pos)
				require.Equal(t, want, again.AppendFPDU(nil, ulpdu), "FPDU %d at %d", n, pos)

				d := NewDeframer(true, markers)
				require.True(t, d.SetBuffer(make([]byte, MinBuffer)))
				d.Resume(before + pos)
				require.Equal(t, len(want), d.Feed(want))
				got, ok, err := d.Next()
				require.NoError(t, err)
				require.True(t, ok)
				require.Equal(t, ulpdu, got)
				assert.Equal(t, before+pos+uint64(len(want)), d.Position())
			}
			pos += uint64(len(want))
		}
	}
}
