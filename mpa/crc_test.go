package mpa

import (
	"fmt"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// libraryCRC is the other opinion: the standard library's.
func libraryCRC(crc uint32, b []byte) uint32 {
	return crc32.Update(crc, crc32.MakeTable(crc32.Castagnoli), b)
}

// iSCSI digests of RFC 3720 B.4, in the order of the wire, which is that of RFC 5044 4.4.
var digests = []struct {
	name   string
	octets string
	crc    string
}{
	{"zeros", "0000000000000000 0000000000000000 0000000000000000 0000000000000000", "aa36918a"},
	{"ones", "ffffffffffffffff ffffffffffffffff ffffffffffffffff ffffffffffffffff", "43aba862"},
	{"up", "0001020304050607 08090a0b0c0d0e0f 1011121314151617 18191a1b1c1d1e1f", "4e79dd46"},
	{"down", "1f1e1d1c1b1a1918 1716151413121110 0f0e0d0c0b0a0908 0706050403020100", "5cdb3f11"},
	{"read command", "01c0000000000000 0000000000000000 1400000000000400 0000001400000018 2800000000000000 0200000000000000", "563a96d9"},
}

func TestDigests(t *testing.T) {
	for _, d := range digests {
		t.Run(d.name, func(t *testing.T) {
			b := unhex(t, d.octets)
			assert.Equal(t, unhex(t, d.crc), appendCRC(nil, checksum(b)))
			assert.Equal(t, unhex(t, d.crc), appendCRC(nil, portableCRC(0, b)), "portable")
		})
	}
}

// The library's CRC is held against the one that is written out in twin_test.go, as it
// is what the others are held against.
func TestPortableCRC(t *testing.T) {
	r := newRand()
	for range 200 {
		b := randomOctets(r, r.IntN(3000))
		cut := r.IntN(len(b) + 1)
		require.Equal(t, slowCRC(b), portableCRC(0, b))
		require.Equal(t, slowCRC(b), portableCRC(portableCRC(0, b[:cut]), b[cut:]), "%d octets, cut at %d", len(b), cut)
	}
}

func TestUpdateCRC(t *testing.T) {
	r := newRand()
	b := randomOctets(r, 2100+16)
	for at := range 16 {
		for n := range 2101 {
			crc := r.Uint32()
			if got, want := updateCRC(crc, b[at:at+n]), libraryCRC(crc, b[at:at+n]); got != want {
				require.Equal(t, want, got, "%d octets from %d on, after %#x", n, at, crc)
			}
		}
	}
}

func TestUpdateCRCOfLongOctets(t *testing.T) {
	r := newRand()
	b := randomOctets(r, 1<<18)
	for range 500 {
		at := r.IntN(len(b))
		n, crc := r.IntN(len(b)-at), r.Uint32()
		require.Equal(t, libraryCRC(crc, b[at:at+n]), updateCRC(crc, b[at:at+n]), "%d octets from %d on, after %#x", n, at, crc)
	}
}

// A CRC may be made of pieces, of any lengths.
func TestUpdateCRCContinues(t *testing.T) {
	r := newRand()
	b := randomOctets(r, 1<<16)
	want, crc := libraryCRC(0, b), uint32(0)
	for rest := b; len(rest) > 0; {
		n := min(1+r.IntN(1<<r.IntN(13)), len(rest))
		crc = updateCRC(crc, rest[:n])
		rest = rest[n:]
	}
	assert.Equal(t, want, crc)
	assert.Equal(t, crc, updateCRC(crc, nil), "nothing changes nothing")
}

func TestUpdateCRCAllocatesNothing(t *testing.T) {
	b := make([]byte, 1460)
	assert.Zero(t, testing.AllocsPerRun(100, func() { b[0] ^= byte(updateCRC(0, b)) }))
}

func FuzzUpdateCRC(f *testing.F) {
	r := newRand()
	for _, n := range []int{0, 7, 80, 223, 224, 1460, 20000} {
		f.Add(r.Uint32(), uint16(r.IntN(n+1)), randomOctets(r, n))
	}
	f.Fuzz(func(t *testing.T, crc uint32, cut uint16, b []byte) {
		want := libraryCRC(crc, b)
		require.Equal(t, want, updateCRC(crc, b))
		head := b[:min(int(cut), len(b))]
		require.Equal(t, want, updateCRC(updateCRC(crc, head), b[len(head):]))
	})
}

// BenchmarkCRC holds updateCRC beside the standard library.
func BenchmarkCRC(b *testing.B) {
	octets := randomOctets(newRand(), 1<<16)
	for _, n := range []int{16, 64, 80, 128, 256, 512, 1024, 1460, 4096, 16384, 65536} {
		for _, of := range []struct {
			name   string
			update func(uint32, []byte) uint32
		}{{"library", portableCRC}, {"update", updateCRC}} {
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
