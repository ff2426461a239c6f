package stag

import (
	"github.com/softrnic/softrnic/internal/crc32c"
	"github.com/softrnic/softrnic/internal/safecopy"
)

// memory is the octets of a region in their order: one stretch of Go memory,
// the usual case, or several.
type memory struct {
	whole  []byte  // all of it, if it is contiguous
	pieces []piece // else
}

// piece is one stretch.
type piece struct {
	end uint64 // offset in the region of the octet after it
	mem []byte // not empty
}

// join makes the memory of pieces, whose storage it keeps if it needs it.
func join(pieces []piece) memory {
	if len(pieces) == 1 {
		return memory{whole: pieces[0].mem}
	}
	return memory{pieces: pieces}
}

// add appends a stretch, which continues the last one if it lies behind it in
// the same memory.
func add(pieces []piece, mem []byte, continues bool) []piece {
	if k := len(pieces) - 1; k >= 0 {
		last := &pieces[k]
		if continues {
			last.mem = last.mem[:len(last.mem)+len(mem)]
			last.end += uint64(len(mem))
			return pieces
		}
		return append(pieces, piece{last.end + uint64(len(mem)), mem})
	}
	return append(pieces, piece{uint64(len(mem)), mem})
}

// from returns the index of the piece that has the octet at off, and that
// octet's offset in it. off is in the memory.
func (m *memory) from(off uint64) (i int, skip uint64) {
	lo, hi := 0, len(m.pieces)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if m.pieces[mid].end <= off {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	p := m.pieces[lo]
	return lo, off - (p.end - uint64(len(p.mem)))
}

// copyIn copies src to the octets from off on, for p. They are in the memory.
func (m *memory) copyIn(off uint64, src []byte, p party) {
	if m.pieces == nil {
		move(m.whole[off:], src, p)
		return
	}
	if len(src) == 0 {
		return
	}
	for i, skip := m.from(off); len(src) > 0; i, skip = i+1, 0 {
		src = src[move(m.pieces[i].mem[skip:], src, p):]
	}
}

// copyOut fills dst from the octets from off on, for p. They are in the memory.
func (m *memory) copyOut(dst []byte, off uint64, p party) {
	if m.pieces == nil {
		move(dst, m.whole[off:], p)
		return
	}
	if len(dst) == 0 {
		return
	}
	for i, skip := m.from(off); len(dst) > 0; i, skip = i+1, 0 {
		dst = dst[move(dst, m.pieces[i].mem[skip:], p):]
	}
}

// sumOut is copyOut that continues crc, a CRC32C, with what is in dst then.
func (m *memory) sumOut(crc uint32, dst []byte, off uint64, p party) uint32 {
	if !safecopy.Raced && m.pieces == nil {
		return crc32c.Copy(crc, dst, m.whole[off:off+uint64(len(dst))])
	}
	m.copyOut(dst, off, p)
	return crc32c.Update(crc, dst)
}

// append appends the octets [off, off+n) to iov, piece by piece, up to a length of
// most, which is more than iov has. They are in the memory, and n is not zero.
func (m *memory) append(iov [][]byte, off, n uint64, most int) [][]byte {
	if m.pieces == nil {
		return append(iov, m.whole[off:off+n:off+n])
	}
	for i, skip := m.from(off); n > 0 && len(iov) < most; i, skip = i+1, 0 {
		mem := m.pieces[i].mem[skip:]
		k := min(n, uint64(len(mem)))
		iov = append(iov, mem[:k:k])
		n -= k
	}
	return iov
}
