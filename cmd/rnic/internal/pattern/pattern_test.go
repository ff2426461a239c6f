package pattern

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The published test values of SplitMix64, seed 1234567.
func TestPatternWords(t *testing.T) {
	want := []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821}
	buf := make([]byte, 8*len(want))
	Pattern(1234567).Fill(buf, 0)
	for i, w := range want {
		assert.Equal(t, w, binary.LittleEndian.Uint64(buf[8*i:]))
	}
}

// Any part of the stream, at any alignment, is the same octets.
func TestPatternParts(t *testing.T) {
	p := Pattern(42)
	whole := make([]byte, 100)
	p.Fill(whole, 0)
	for start := range whole {
		for end := start; end <= len(whole); end++ {
			part := make([]byte, end-start)
			p.Fill(part, uint64(start))
			assert.Equal(t, whole[start:end], part, "octets %d to %d", start, end)
		}
	}
}

func TestPatternMismatch(t *testing.T) {
	const size, offset = 3*4096 + 13, 1<<40 + 3
	p := Pattern(7)
	buf := make([]byte, size)
	p.Fill(buf, offset)
	assert.Equal(t, -1, p.Mismatch(buf, offset))
	assert.Equal(t, -1, p.Mismatch(nil, offset))
	for i := 0; i < size; i += 13 { // 13 and 4096 meet every remainder of a word
		buf[i] ^= 0x10
		assert.Equal(t, i, p.Mismatch(buf, offset))
		buf[i] ^= 0x10
	}
	assert.NotEqual(t, -1, p.Mismatch(buf, offset+8), "data of another place")
	assert.NotEqual(t, -1, Pattern(8).Mismatch(buf, offset), "data of another stream")
	clear(buf)
	assert.NotEqual(t, -1, p.Mismatch(buf, offset), "nothing arrived")
}

func BenchmarkPatternMismatch(b *testing.B) {
	buf := make([]byte, 1<<20)
	Pattern(1).Fill(buf, 0)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		if Pattern(1).Mismatch(buf, 0) >= 0 {
			b.Fatal("mismatch")
		}
	}
}
