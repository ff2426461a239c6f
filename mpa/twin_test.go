package mpa

import "math/rand/v2"

// The twins do the framer's and the deframer's work one octet at a time, from
// the text of RFC 5044 alone. They share no code with the fast ones.

// slowCRC is CRC32C bit by bit.
func slowCRC(b []byte) uint32 {
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

type slowFramer struct {
	crc, markers bool
	pos          int
	out          []byte // of the current FPDU
	lengthAt     int    // stream position of ULPDU_Length, -1 before it
}

func (s *slowFramer) fpdu(ulpdu []byte) []byte {
	s.out, s.lengthAt = nil, -1
	s.emit(byte(len(ulpdu) >> 8))
	s.emit(byte(len(ulpdu)))
	for _, c := range ulpdu {
		s.emit(c)
	}
	for n := 2 + len(ulpdu); n%4 != 0; n++ {
		s.emit(0)
	}
	s.mark()
	var crc uint32
	if s.crc {
		crc = slowCRC(s.out)
	}
	for range 4 {
		s.out = append(s.out, byte(crc))
		s.pos++
		crc >>= 8
	}
	return s.out
}

func (s *slowFramer) emit(c byte) {
	s.mark()
	if s.lengthAt < 0 {
		s.lengthAt = s.pos
	}
	s.out = append(s.out, c)
	s.pos++
}

func (s *slowFramer) mark() {
	if !s.markers || s.pos%512 != 0 {
		return
	}
	ptr := 0
	if s.lengthAt >= 0 {
		ptr = s.pos - s.lengthAt
	}
	s.out = append(s.out, 0, 0, byte(ptr>>8), byte(ptr))
	s.pos += 4
}

type slowDeframer struct {
	crc, markers bool
	pos          int
	covered      []byte // what the CRC covers
	body         []byte // the FPDU without markers
	mark         []byte // the marker being received
	lengthAt     int
	badMarker    bool
	ulpdus       [][]byte
	code         Code // of the error that ended it, or 0
}

func (s *slowDeframer) push(b []byte) {
	for _, c := range b {
		if s.code == 0 {
			s.octet(c)
		}
	}
}

func (s *slowDeframer) octet(c byte) {
	at := s.pos
	s.pos++
	if s.markers && at%512 < 4 {
		s.covered = append(s.covered, c)
		s.mark = append(s.mark, c)
		if len(s.mark) == 4 {
			s.checkMarker(at - 3)
			s.mark = nil
		}
		return
	}
	if len(s.body) == 0 {
		s.lengthAt = at
	}
	s.body = append(s.body, c)
	if len(s.body) < 2 {
		s.covered = append(s.covered, c)
		return
	}
	length := int(s.body[0])<<8 | int(s.body[1])
	if length > 64768 {
		s.code = CodeFPDU
		return
	}
	toCRC := 2 + length
	for toCRC%4 != 0 {
		toCRC++
	}
	if len(s.body) <= toCRC {
		s.covered = append(s.covered, c)
	}
	if len(s.body) == toCRC+4 {
		s.finish(length, s.body[toCRC:])
	}
}

func (s *slowDeframer) checkMarker(at int) {
	want := 0
	if len(s.body) > 0 {
		want = at - s.lengthAt
	}
	got := (int(s.mark[2])<<8 | int(s.mark[3])) / 4 * 4
	s.badMarker = s.badMarker || got != want
}

func (s *slowDeframer) finish(length int, crc []byte) {
	got := uint32(crc[0]) | uint32(crc[1])<<8 | uint32(crc[2])<<16 | uint32(crc[3])<<24
	switch {
	case s.crc && got != slowCRC(s.covered):
		s.code = CodeCRC
	case s.badMarker:
		s.code = CodeFPDU
	default:
		s.ulpdus = append(s.ulpdus, s.body[2:2+length])
		s.body, s.covered = nil, nil
	}
}

// ulpduLengths are lengths that meet every pad and, with markers, every way an
// FPDU can lie about them.
func ulpduLengths(r *rand.Rand) []int {
	lengths := []int{0, 1, 2, 3, 4, 14, 18, 42, 496, 498, 502, 506, 507, 508, 510, 1014, 1442, MaxULPDU - 1, MaxULPDU}
	for range 200 {
		lengths = append(lengths, r.IntN(1200))
	}
	r.Shuffle(len(lengths), func(i, j int) { lengths[i], lengths[j] = lengths[j], lengths[i] })
	return lengths
}

func randomOctets(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func newRand() *rand.Rand { return rand.New(rand.NewPCG(5044, 6581)) }
