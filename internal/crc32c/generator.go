//go:build amd64 || arm64

package crc32c

import "hash/crc32"

// generator is P, reversed, without x^32.
type generator uint32

const iSCSI generator = crc32.Castagnoli

// multiplier is what a polynomial is multiplied by to get behind it d more bits of the
// message, d at least 33: x^(d-33) mod P.
func (g generator) multiplier(d int) uint32 { return g.power(d - 33) }

// power is x^n mod P.
func (g generator) power(n int) uint32 {
	p := uint32(1 << 31) // x^0
	for square := uint32(1 << 30); n > 0; n >>= 1 {
		if n&1 != 0 {
			p = g.times(p, square)
		}
		square = g.times(square, square)
	}
	return p
}

// times is a·b mod P.
func (g generator) times(a, b uint32) (product uint32) {
	for ; b != 0; b <<= 1 { // b's next coefficient, from x^0 on, is its highest bit
		if b>>31 != 0 {
			product ^= a
		}
		carry := a & 1 // of x^31, to become x^32
		a >>= 1
		if carry != 0 {
			a ^= uint32(g)
		}
	}
	return product
}
