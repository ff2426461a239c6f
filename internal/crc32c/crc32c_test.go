package crc32c

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newRand() *rand.Rand { return rand.New(rand.NewPCG(3720, 5044)) }

func randomOctets(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// bitwise is CRC32C as RFC 3720 12.1 has it, bit by bit: the standard library is held against it, and all
// else against the library.
func bitwise(b []byte) uint32 {
	crc := ^uint32(0)
	for _, c := range b {
		crc ^= uint32(c)
		for range 8 {
			low := crc & 1
			crc >>= 1
			if low != 0 {
				crc ^= 0x82F63B78
			}
		}
	}
	return ^crc
}

// eachWay runs f with every way that this processor has.
func eachWay(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			w.set(t)
			f(t)
		})
	}
}

// Digests of RFC 3720 B.4, low octet first.
var digests = []struct{ name, octets, crc string }{
	{"zeros", "0000000000000000 0000000000000000 0000000000000000 0000000000000000", "aa36918a"},
	{"ones", "ffffffffffffffff ffffffffffffffff ffffffffffffffff ffffffffffffffff", "43aba862"},
	{"up", "0001020304050607 08090a0b0c0d0e0f 1011121314151617 18191a1b1c1d1e1f", "4e79dd46"},
	{"down", "1f1e1d1c1b1a1918 1716151413121110 0f0e0d0c0b0a0908 0706050403020100", "5cdb3f11"},
	{
		"read command",
		"01c0000000000000 0000000000000000 1400000000000400 0000001400000018 2800000000000000 0200000000000000",
		"563a96d9",
	},
}

func TestDigests(t *testing.T) {
	eachWay(t, func(t *testing.T) {
		for _, d := range digests {
			b, err := hex.DecodeString(strings.ReplaceAll(d.octets, " ", ""))
			require.NoError(t, err)
			for what, crc := range map[string]uint32{
				"update": Update(0, b), "copy": Copy(0, make([]byte, len(b)), b), "portable": portable(0, b),
			} {
				got := []byte{byte(crc), byte(crc >> 8), byte(crc >> 16), byte(crc >> 24)}
				assert.Equal(t, d.crc, hex.EncodeToString(got), "%s, %s", d.name, what)
			}
		}
	})
}

func TestPortable(t *testing.T) {
	r := newRand()
	for range 200 {
		b := randomOctets(r, r.IntN(3000))
		cut := r.IntN(len(b) + 1)
		require.Equal(t, bitwise(b), portable(0, b))
		require.Equal(t, bitwise(b), portable(portable(0, b[:cut]), b[cut:]), "%d octets, cut at %d", len(b), cut)
	}
}

// lengths are all up to 2100, where the ways differ, and some around powers of two.
func lengths(f func(n int)) {
	for n := range 2101 {
		f(n)
	}
	for p := 4096; p <= 1<<16; p *= 2 {
		for d := -65; d <= 65; d += 5 {
			f(p + d)
		}
	}
}

// TestUpdate: every length at every place that a register may straddle.
func TestUpdate(t *testing.T) {
	eachWay(t, func(t *testing.T) {
		r := newRand()
		b := randomOctets(r, 1<<16+130)
		for _, at := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 31, 33, 63} {
			lengths(func(n int) {
				crc := r.Uint32()
				if got, want := Update(crc, b[at:at+n]), portable(crc, b[at:at+n]); got != want {
					require.Equal(t, want, got, "%d octets from %d on, after %#x", n, at, crc)
				}
			})
		}
	})
}

// TestCopy: as TestUpdate, and all is copied, and nothing beside it is written.
func TestCopy(t *testing.T) {
	eachWay(t, func(t *testing.T) {
		r := newRand()
		b := randomOctets(r, 1<<16+130)
		room := make([]byte, len(b)+2)
		for _, at := range []int{0, 1, 3, 8, 17, 63} {
			lengths(func(n int) {
				crc, to := r.Uint32(), 1+r.IntN(64)
				src, dst := b[at:at+n], room[to:]
				room[to-1], dst[n] = 0xA5, 0x5A
				got := Copy(crc, dst, src)
				want := portable(crc, src)
				if got != want || string(dst[:n]) != string(src) || room[to-1] != 0xA5 || dst[n] != 0x5A {
					require.Equal(t, want, got, "%d octets from %d on, to %d, after %#x", n, at, to, crc)
					require.Equal(t, src, dst[:n], "%d octets from %d on, to %d", n, at, to)
					require.Failf(t, "written beside the copy", "%d octets from %d on, to %d", n, at, to)
				}
			})
		}
	})
}

func TestCopyWantsRoom(t *testing.T) {
	assert.Panics(t, func() { Copy(0, make([]byte, 299), make([]byte, 300)) })
	assert.Zero(t, Copy(0, nil, nil))
}

// A CRC may be made of pieces, of any lengths, copied or not.
func TestPieces(t *testing.T) {
	eachWay(t, func(t *testing.T) {
		r := newRand()
		b := randomOctets(r, 1<<16)
		dst := make([]byte, len(b))
		want, crc := portable(0, b), uint32(0)
		for rest, to := b, dst; len(rest) > 0; {
			n := min(1+r.IntN(1<<r.IntN(13)), len(rest))
			if r.IntN(2) == 0 {
				crc = Update(crc, rest[:n])
				copy(to, rest[:n])
			} else {
				crc = Copy(crc, to, rest[:n])
			}
			rest, to = rest[n:], to[n:]
		}
		assert.Equal(t, want, crc)
		assert.Equal(t, b, dst)
		assert.Equal(t, crc, Update(crc, nil), "nothing changes nothing")
	})
}

func TestAllocatesNothing(t *testing.T) {
	b, dst := make([]byte, 1460), make([]byte, 1460)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		b[0] ^= byte(Update(0, b))
		b[0] ^= byte(Copy(0, dst, b))
	}))
}

func FuzzUpdateAndCopy(f *testing.F) {
	r := newRand()
	for _, n := range []int{0, 7, 80, 127, 128, 223, 224, 255, 256, 320, 512, 1460, 20000} {
		f.Add(r.Uint32(), uint16(r.IntN(n+1)), randomOctets(r, n))
	}
	f.Fuzz(func(t *testing.T, crc uint32, cut uint16, b []byte) {
		want := portable(crc, b)
		head := b[:min(int(cut), len(b))]
		dst := make([]byte, len(b))
		for _, w := range ways() {
			w.set(t)
			require.Equal(t, want, Update(crc, b), w.name)
			require.Equal(t, want, Update(Update(crc, head), b[len(head):]), w.name)
			clear(dst)
			require.Equal(t, want, Copy(Copy(crc, dst, head), dst[len(head):], b[len(head):]), w.name)
			require.Equal(t, b, dst, w.name)
		}
	})
}

// BenchmarkCRC holds Update beside the standard library, and Copy beside a copy, and both after each other.
func BenchmarkCRC(b *testing.B) {
	octets, dst := randomOctets(newRand(), 1<<20), make([]byte, 1<<20)
	for _, n := range []int{16, 64, 128, 256, 512, 1460, 4096, 16384, 65536, 1 << 20} {
		for _, of := range []struct {
			name   string
			update func(uint32, []byte) uint32
		}{
			{"library", portable}, {"update", Update},
			{"move", func(crc uint32, p []byte) uint32 { return crc + uint32(copy(dst, p)) }},
			{"blocks", func(crc uint32, p []byte) uint32 { return copyBlocks(crc, dst, p) }},
			{"copy", func(crc uint32, p []byte) uint32 { return Copy(crc, dst, p) }},
		} {
			b.Run(fmt.Sprintf("%d/%s", n, of.name), func(b *testing.B) {
				b.SetBytes(int64(n))
				crc := uint32(0)
				for b.Loop() {
					crc = of.update(crc, octets[:n])
				}
			})
		}
	}
}
