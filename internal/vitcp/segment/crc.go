package segment

import "encoding/binary"

// generator is G(x) of 3.6 without x^32, reflected: bit 31 is x^0. The draft
// writes it 0xDB710641, with x^31 in bit 31.
const generator = 0x82608edb

// crcTables are for sixteen octets at a time: crcTables[k][v] is what octet v
// contributes k octets later. Package hash/crc32 is no help: it takes one octet at a
// time for any generator but two. This one is the mirror image of Ethernet's, so it
// could be given the data backwards; but to mirror them takes longer than this.
var crcTables = makeCRCTables()

func makeCRCTables() *[16][256]uint32 {
	var t [16][256]uint32
	for v := range t[0] {
		c := uint32(v)
		for range 8 {
			c = c>>1 ^ generator*(c&1)
		}
		t[0][v] = c
	}
	for k := 1; k < len(t); k++ {
		for v := range t[k] {
			c := t[k-1][v]
			t[k][v] = c>>8 ^ t[0][byte(c)]
		}
	}
	return &t
}

// CRC is a CRC-32 on its way (3.6): start with 0 and add the segment's octets
// in order, all but the trailer.
//
// The draft asks for exactly the Ethernet CRC with another generator. So an
// octet's bits go in as Ethernet puts them on the line, the least significant
// first, and the remainder goes out in the same order, the coefficient of x^31
// first: as a number it is reflected, and its octets are little-endian, against
// the rule for multibyte fields, because the text calls it a sequence of bits.
// Complementing the first 32 bits and the remainder are the two complements
// here.
type CRC uint32

// Add returns the CRC after b.
func (c CRC) Add(b []byte) CRC {
	s, b := fold(^uint32(c), b)
	return CRC(^addTables(s, b))
}

// addTables is the state after b, by tables.
func addTables(s uint32, b []byte) uint32 {
	t := crcTables
	for len(b) >= 16 {
		w0 := binary.LittleEndian.Uint32(b)
		w1 := binary.LittleEndian.Uint32(b[4:])
		w2 := binary.LittleEndian.Uint32(b[8:])
		w3 := binary.LittleEndian.Uint32(b[12:])
		// What does not depend on s first: the processor does it while it waits for s.
		rest := t[11][byte(w1)] ^ t[10][byte(w1>>8)] ^ t[9][byte(w1>>16)] ^ t[8][w1>>24] ^
			t[7][byte(w2)] ^ t[6][byte(w2>>8)] ^ t[5][byte(w2>>16)] ^ t[4][w2>>24] ^
			t[3][byte(w3)] ^ t[2][byte(w3>>8)] ^ t[1][byte(w3>>16)] ^ t[0][w3>>24]
		s ^= w0
		s = (t[15][byte(s)] ^ t[14][byte(s>>8)]) ^ (t[13][byte(s>>16)] ^ t[12][s>>24] ^ rest)
		b = b[16:]
	}
	for _, v := range b {
		s = s>>8 ^ t[0][byte(s)^v]
	}
	return s
}

// Append appends the trailer.
func (c CRC) Append(dst []byte) []byte {
	return binary.LittleEndian.AppendUint32(dst, uint32(c))
}

// Matches reports whether trailer, 4 octets, holds this CRC.
func (c CRC) Matches(trailer []byte) bool {
	return binary.LittleEndian.Uint32(trailer) == uint32(c)
}

// AppendCRC appends the trailer to the segment that begins at dst[start].
func AppendCRC(dst []byte, start int) []byte {
	return CRC(0).Add(dst[start:]).Append(dst)
}
