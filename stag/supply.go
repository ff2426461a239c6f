package stag

import (
	"crypto/rand"
	"slices"
)

const (
	// quarantineLen is the number of freed indices that are not given out:
	// an index is free for use again when this many others were freed after
	// it. So an STag that a peer still holds does not soon name other memory.
	quarantineLen = 1024
	// drawLen is the number of indices drawn from the system at once.
	drawLen = 128
)

// supply gives out STag indices that are hard to predict and spread over all
// 24 bits (R5040-8.1.1-M9). Guarded by Table.mu.
type supply struct {
	fill   func([]byte) // random octets
	random [3 * drawLen]byte
	left   int // octets of random not used yet, at its end

	freed []uint32 // the quarantine, a ring when it is full
	next  int      // the oldest of a full quarantine
}

func (s *supply) init() {
	s.fill = func(b []byte) { _, _ = rand.Read(b) } // never fails, see its documentation
}

// take draws an index that is not zero, not in quarantine and for which inUse
// is false. It ends because most of the indices are free, see maxSTags.
func (s *supply) take(inUse func(uint32) bool) uint32 {
	for {
		i := s.draw()
		// RV-7.2.1-M2: never zero.
		if i != 0 && !inUse(i) && !slices.Contains(s.freed, i) {
			return i
		}
	}
}

func (s *supply) draw() uint32 {
	if s.left == 0 {
		s.fill(s.random[:])
		s.left = len(s.random)
	}
	b := s.random[len(s.random)-s.left:]
	s.left -= 3
	return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
}

// free puts index i into quarantine, which may let an old one out.
func (s *supply) free(i uint32) {
	if len(s.freed) < quarantineLen {
		s.freed = append(s.freed, i)
		return
	}
	s.freed[s.next] = i
	s.next = (s.next + 1) % quarantineLen
}
