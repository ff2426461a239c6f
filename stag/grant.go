package stag

import (
	"sync/atomic"

	"github.com/softrnic/softrnic/wr"
)

// grant is what an access to an STag is checked against.
type grant struct {
	key uint8
	pd  wr.PDID
	// qp is the queue pair that a window is bound to, and the only one whose
	// peer may use a region if it is not zero.
	qp     wr.QPID
	access wr.Access

	addressing wr.Addressing
	base       uint64 // TO of the first octet
	length     uint64 // base+length does not overflow

	// at is where in the memory the first octet is: a window begins anywhere
	// in that of its region.
	at uint64

	// vanish is set if the memory may go while it is registered (vanish.go).
	vanish bool
}

// allows checks the association of the STag with the stream that uses it.
func (g *grant) allows(u User, remote bool) bool {
	if g.pd != u.PD {
		return false // RFC 5041 8.2, R5040-8.1.1-M2
	}
	return !remote || g.qp == 0 || g.qp == u.QP // R5040-8.1.1-M3
}

// contains checks the n octets from tagged offset to on, to the octet. None is
// too few.
func (g *grant) contains(to, n uint64) AccessFault {
	// Of a TO below the base this is more than the length too, because
	// base+length does not overflow.
	off := to - g.base
	switch {
	case n == 0:
		return FaultBounds
	case to+(n-1) < to: // RFC 5041 7.1, check 5
		return FaultWrap
	case off > g.length || n > g.length-off:
		return FaultBounds
	}
	return OK
}

// vanishBit is that of grant.vanish, behind the eight of the addressing type.
const vanishBit = 1 << 24

// published is a grant that can be read at any time. What is read is one grant
// and not a mixture of two if the hold word is of the same generation before and
// after, because it is written between generations only (see entry).
type published struct {
	who    atomic.Uint64 // pd and qp
	how    atomic.Uint64 // vanish, addressing, access and key
	base   atomic.Uint64
	length atomic.Uint64
	at     atomic.Uint64
}

func (p *published) read(g *grant) {
	who, how := p.who.Load(), p.how.Load()
	g.key, g.access, g.addressing = uint8(how), wr.Access(how>>8), wr.Addressing(how>>16)
	g.vanish = how&vanishBit != 0
	g.pd, g.qp = wr.PDID(who>>32), wr.QPID(who)
	g.base, g.length, g.at = p.base.Load(), p.length.Load(), p.at.Load()
}

func (p *published) load() (g grant) { p.read(&g); return g }

func (p *published) store(g grant) {
	p.who.Store(uint64(g.pd)<<32 | uint64(g.qp))
	how := uint64(g.addressing)<<16 | uint64(g.access)<<8 | uint64(g.key)
	if g.vanish {
		how |= vanishBit
	}
	p.how.Store(how)
	p.base.Store(g.base)
	p.length.Store(g.length)
	p.at.Store(g.at)
}
