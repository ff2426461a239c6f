package qp

import (
	"github.com/softrnic/softrnic/internal/crc32c"
	"github.com/softrnic/softrnic/stag"
)

// sum is the CRC32C of an FPDU of which not all is there, if it is made while payload is copied.
type sum struct {
	crc  uint32
	made bool
}

// sumFrom is the payload, in octets, from which on making the CRC with the copy is worth while: less is
// in the nearest cache when Finish comes to it.
const sumFrom = 256

// beginSum begins the CRC of an FPDU with what precedes its payload, of n octets.
func (t *transmitter) beginSum(head []byte, n int) sum {
	if n < sumFrom || !t.framer.CRC() {
		return sum{}
	}
	return sum{crc32c.Update(0, head), true}
}

// finishSum ends the FPDU that begins at from.
func (t *transmitter) finishSum(arena []byte, from int, s sum) []byte {
	if s.made {
		return t.framer.FinishSummed(arena, from, s.crc)
	}
	return t.framer.Finish(arena, from)
}

// copyHeld copies what a request of the program sends, or what a peer reads by itself.
func (s *sum) copyHeld(ref stag.Ref, dst []byte, off uint64, byPeer bool) (ok bool) {
	switch {
	case s.made && byPeer:
		s.crc, ok = ref.SumHeldForPeer(s.crc, dst, off)
	case s.made:
		s.crc, ok = ref.SumHeld(s.crc, dst, off)
	case byPeer:
		ok = ref.CopyHeldForPeer(dst, off)
	default:
		ok = ref.CopyHeld(dst, off)
	}
	return ok
}
