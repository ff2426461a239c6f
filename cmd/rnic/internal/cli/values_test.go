package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSizeRangeBeyond32Bits(t *testing.T) {
	var n uint64
	r := SizeRange(&n, 3, 524288<<30)
	require.NoError(t, r.Set("5368709120"))
	assert.Equal(t, uint64(5<<30), n)
	assert.ErrorContains(t, r.Set("562949953421313"), "want 3 to 524288G octets")
	assert.Equal(t, uint64(5<<30), n)
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "1": 1, "64K": 64 << 10, "64k": 64 << 10, "3M": 3 << 20, "2G": 2 << 30, "1500": 1500,
		"4294967296": 1 << 32, "5368709120": 5 << 30, "18446744073709551615": 1<<64 - 1, "17179869183G": 1<<64 - 1<<30,
	} {
		n, err := parseSize(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, n, text)

		again, err := parseSize(FormatSize(want))
		require.NoError(t, err)
		assert.Equal(t, want, again, FormatSize(want))
	}
	for _, text := range []string{"", "K", "-1", "1.5M", "1T", "1KK", "18446744073709551616", "17179869184G", "0x10", " 1"} {
		_, err := parseSize(text)
		assert.Error(t, err, text)
	}
}

func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"", "1", "64K", "17179869183G", "17179869184G", "K", "-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := parseSize(s)
		if err != nil {
			return
		}
		again, err := parseSize(FormatSize(n))
		require.NoError(t, err)
		assert.Equal(t, n, again)
	})
}
