package segment_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/softrnic/softrnic/internal/vitcp/segment"
)

// fiveSteps is the CRC of 3.6 taken literally, one bit at a time: what belongs
// into the CRC field of segment, whose last four octets are that field.
func fiveSteps(segment []byte) (field [4]byte) {
	// a) the segment with zero in the CRC field, as the bits go over an Ethernet:
	// octet by octet, the least significant bit first.
	var m []byte
	for i, octet := range segment {
		if i >= len(segment)-4 {
			octet = 0
		}
		for bit := range 8 {
			m = append(m, octet>>bit&1)
		}
	}
	// b) the first 32 bits complemented
	for i := range 32 {
		m[i] ^= 1
	}
	// c) and d) the bits as a polynomial, the first one the highest coefficient,
	// divided by G
	var g [33]byte
	for _, exponent := range []int{32, 31, 30, 28, 27, 25, 24, 22, 21, 20, 16, 10, 9, 6, 0} {
		g[32-exponent] = 1
	}
	for i := range len(m) - 32 {
		if m[i] == 1 {
			for k := range g {
				m[i+k] ^= g[k]
			}
		}
	}
	// e) the remainder complemented, placed as a sequence of bits
	for i, bit := range m[len(m)-32:] {
		field[i/8] |= (bit ^ 1) << (i % 8)
	}
	return field
}

func TestCRCIsTheFiveSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 24; n < 24+80; n++ {
		for range 4 {
			b := make([]byte, n+4)
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			want := fiveSteps(b)
			got := segment.AppendCRC(b[:n:n], 0)
			require.Equal(t, want[:], got[n:], "%x", b)
			k := rng.IntN(n + 1)
			require.True(t, segment.CRC(0).Add(b[:k]).Add(b[k:n]).Matches(want[:]), "in two pieces")
		}
	}
}

// The generator's hexadecimal form of 3.6 stands for the polynomial spelled out.
func TestGenerator(t *testing.T) {
	var g uint32
	for _, exponent := range []int{31, 30, 28, 27, 25, 24, 22, 21, 20, 16, 10, 9, 6, 0} {
		g |= 1 << exponent
	}
	assert.Equal(t, uint32(0xDB710641), g)
}

// Each single bit that flips is seen.
func TestCRCSeesEveryBit(t *testing.T) {
	b := segment.AppendCRC([]byte("01234567890123456789012345678901234567"), 0)
	n := len(b) - segment.Trailer
	for i := range len(b) * 8 {
		b[i/8] ^= 1 << (i % 8)
		assert.False(t, segment.CRC(0).Add(b[:n]).Matches(b[n:]), "bit %d", i)
		b[i/8] ^= 1 << (i % 8)
	}
	assert.True(t, segment.CRC(0).Add(b[:n]).Matches(b[n:]))
}

func BenchmarkCRC(b *testing.B) {
	data := make([]byte, 64<<10)
	b.SetBytes(int64(len(data)))
	var sum segment.CRC
	for b.Loop() {
		sum = sum.Add(data)
	}
}
