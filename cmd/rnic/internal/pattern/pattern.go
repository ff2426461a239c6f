// Package pattern makes data whose every octet says where it belongs.
package pattern

import (
	"bytes"
	"encoding/binary"
)

// Pattern names an endless stream of octets in which every octet depends on
// its offset: data that went to the wrong place, or was left over from before,
// does not pass for what was expected there. The value is the seed.
type Pattern uint64

// Word returns octets 8*i to 8*i+7, little-endian. It is the output function of
// the generator SplitMix64, whose state is the seed plus a multiple of a
// constant, so that any word can be had at once.
func (p Pattern) Word(i uint64) uint64 {
	z := uint64(p) + (i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Fill writes the octets of the stream from offset on to buf.
func (p Pattern) Fill(buf []byte, offset uint64) {
	i := offset / 8
	if skip := offset % 8; skip != 0 {
		var head [8]byte
		binary.LittleEndian.PutUint64(head[:], p.Word(i))
		buf = buf[copy(buf, head[skip:]):]
		i++
	}
	for ; len(buf) >= 8; i++ {
		binary.LittleEndian.PutUint64(buf, p.Word(i))
		buf = buf[8:]
	}
	if len(buf) > 0 {
		var tail [8]byte
		binary.LittleEndian.PutUint64(tail[:], p.Word(i))
		copy(buf, tail[:])
	}
}

// Mismatch compares buf with the octets of the stream from offset on. It
// returns the index of the first one that differs, or -1.
func (p Pattern) Mismatch(buf []byte, offset uint64) int {
	var want [4096]byte
	for start := 0; start < len(buf); start += len(want) {
		got := buf[start:min(start+len(want), len(buf))]
		p.Fill(want[:len(got)], offset+uint64(start))
		if bytes.Equal(got, want[:len(got)]) {
			continue
		}
		for i := range got {
			if got[i] != want[i] {
				return start + i
			}
		}
	}
	return -1
}
