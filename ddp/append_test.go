package ddp_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/ddp"
)

func TestCut(t *testing.T) {
	tests := []struct {
		name      string
		remaining uint64
		mulpdu    int
		header    int
		n         int
		last      bool
	}{
		{"empty message", 0, 1500, ddp.UntaggedHeader, 0, true},
		{"one octet", 1, 1500, ddp.TaggedHeader, 1, true},
		{"RFC 5041 5.2 example, untagged", 4000, 1500, ddp.UntaggedHeader, 1482, false},
		{"RFC 5041 5.2 example, tagged", 4000, 1500, ddp.TaggedHeader, 1486, false},
		{"exactly full", 1482, 1500, ddp.UntaggedHeader, 1482, true},
		{"one more than full", 1483, 1500, ddp.UntaggedHeader, 1482, false},
		{"least MULPDU", 1 << 20, 128, ddp.UntaggedHeader, 110, false},
		{"longest message", ddp.MaxMessage, 64768, ddp.TaggedHeader, 64754, false},
		{"beyond 32 bits", 1 << 40, 64768, ddp.TaggedHeader, 64754, false},
		{"no room", 5, 18, ddp.UntaggedHeader, 1, false},
		{"less than no room", 1, 0, ddp.UntaggedHeader, 1, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			n, last := ddp.Cut(tc.remaining, tc.mulpdu, tc.header)
			assert.Equal(t, tc.n, n)
			assert.Equal(t, tc.last, last)
		})
	}
}

// The segments of a message make up the message, all full but the last.
func TestCutWhole(t *testing.T) {
	for _, mulpdu := range []int{128, 1442, 16384} {
		for _, total := range []uint64{0, 1, 109, 110, 111, 220, 5000, 100000} {
			var sum uint64
			for segments := 1; ; segments++ {
				n, last := ddp.Cut(total-sum, mulpdu, ddp.UntaggedHeader)
				require.LessOrEqual(t, n+ddp.UntaggedHeader, mulpdu)
				sum += uint64(n)
				if last {
					break
				}
				require.Equal(t, mulpdu-ddp.UntaggedHeader, n)
				require.LessOrEqual(t, segments, 1000)
			}
			assert.Equal(t, total, sum)
		}
	}
}
