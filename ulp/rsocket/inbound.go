package rsocket

// inbound is what the peer has written into the ring, and what it may. It is the receiver's half of the protocol, without I/O.
type inbound struct {
	size, half int // octets of the ring, and of a half

	head    int // where the next octet to be read is
	unread  int // octets
	lengths []uint32
	first   int // of lengths, which is a ring
	count   int

	room  int  // octets left in the half that the peer writes to
	ahead bool // the other half is the peer's too
	spare int  // octets that were read since the last half was given; it begins with a half, which is given at once
	turn  int  // the half that is given next

	arrived  uint16 // messages that count
	consumed uint16 // those that were read to the end
	limit    uint16 // what arrived may come to
	trigger  uint16 // what consumed comes to when the limit is told anew
}

func newInbound(size, messages int) inbound {
	return inbound{
		size: size, half: size / 2, lengths: make([]uint32, messages), room: size / 2, spare: size / 2, turn: 1,
		limit: uint16(messages), trigger: uint16(messages / 2),
	}
}

// data takes a message that says that n octets were written.
func (in *inbound) data(n uint32) error {
	if err := in.counts(); err != nil {
		return err
	}
	if n == 0 || int64(n) > int64(in.room) {
		return broken("it says that it wrote %d octets where it may write %d", n, in.room)
	}
	in.lengths[(in.first+in.count)%len(in.lengths)] = n
	in.count++
	in.unread += int(n)
	in.room -= int(n)
	if in.room == 0 && in.ahead {
		in.room, in.ahead = in.half, false
	}
	return nil
}

// skip takes a message that counts and brings no octets. It is consumed.
func (in *inbound) skip() error {
	if err := in.counts(); err != nil {
		return err
	}
	in.consumed++
	return nil
}

func (in *inbound) counts() error {
	if in.arrived == in.limit || in.count == len(in.lengths) {
		return broken("it sent more messages than it may")
	}
	in.arrived++
	return nil
}

// span is where octets to be read are: up to two pieces of the ring.
func (in *inbound) span(ring []byte) (a, b []byte) {
	if end := in.head + in.unread; end > in.size {
		return ring[in.head:in.size], ring[:end-in.size]
	}
	return ring[in.head : in.head+in.unread], nil
}

// consume says that n octets have been read, which are there.
func (in *inbound) consume(n int) {
	in.head = (in.head + n) % in.size
	in.unread -= n
	in.spare += n
	for n > 0 {
		l := &in.lengths[in.first]
		k := min(n, int(*l))
		n -= k
		*l -= uint32(k)
		if *l == 0 {
			in.first = (in.first + 1) % len(in.lengths)
			in.count--
			in.consumed++
		}
	}
}

// due reports whether the peer is to be told a new limit, with half of the ring or without.
func (in *inbound) due() bool {
	return in.spare >= in.half || int16(in.consumed-in.trigger) >= 0
}

// grant is what to tell the peer: the new limit and, if n is not 0, the offset and length of what it may write to besides.
func (in *inbound) grant() (limit uint32, off, n int) {
	in.limit = in.consumed + uint16(len(in.lengths))
	in.trigger = in.consumed + uint16(len(in.lengths)/2)
	if in.spare < in.half {
		return uint32(in.limit), 0, 0
	}
	off = in.turn * in.half
	in.turn ^= 1
	in.spare -= in.half
	if in.room == 0 {
		in.room = in.half
	} else {
		in.ahead = true
	}
	return uint32(in.limit), off, in.half
}
