package dissect

import "slices"

// maxPending bounds the octets kept for one direction until a hole before them
// is filled.
const maxPending = 4 << 20

// patience is how many segments behind a hole are waited for if the peer has acknowledged what is in it.
const patience = 16

// order puts the octets of one direction of a TCP connection in sequence.
type order struct {
	started bool
	next    uint32 // sequence number of the next octet
	acked   uint32 // highest acknowledgement seen from the peer, if ackSeen
	ackSeen bool
	held    int     // octets in pending
	pending []chunk // beyond a hole
	gaps    bool    // holes were skipped
}

type chunk struct {
	seq  uint32
	data []byte
}

// begin says where the direction starts; only the first call counts.
func (o *order) begin(seq uint32) {
	if !o.started {
		o.started, o.next = true, seq
	}
}

// whole reports that no octet is known to be missing: nothing waits behind a
// hole, and the peer has acknowledged nothing that was not seen.
func (o *order) whole() bool {
	return !o.gaps && len(o.pending) == 0 && (!o.ackSeen || int32(o.acked-o.next) <= 0)
}

func (o *order) acknowledge(ack uint32) {
	if !o.ackSeen || int32(ack-o.acked) > 0 {
		o.acked, o.ackSeen = ack, true
	}
}

// sink takes what is in sequence, and the holes that will not be filled.
type sink struct {
	octets func([]byte)
	gap    func(n uint64)
}

// put takes a segment's payload and gives what is in sequence to sink. Sequence
// numbers wrap: only differences count.
func (o *order) put(seq uint32, data []byte, to sink) {
	if len(data) == 0 {
		return
	}
	o.begin(seq)
	if int32(seq-o.next) > 0 {
		o.keep(seq, data)
		if o.held > maxPending || len(o.pending) > patience && int32(o.acked-o.lowest()) >= 0 && o.ackSeen ||
			len(o.pending) > maxPending/1024 {
			o.skip(to)
		}
		return
	}
	o.take(seq, data, to.octets)
	o.settle(to)
}

// lowest is the sequence number behind the hole.
func (o *order) lowest() uint32 {
	return slices.MinFunc(o.pending, func(a, b chunk) int { return int(int32(a.seq - b.seq)) }).seq
}

// skip goes on behind the hole.
func (o *order) skip(to sink) {
	low := o.lowest()
	n := uint64(low - o.next)
	o.next, o.gaps = low, true
	to.gap(n)
	o.settle(to)
}

// finish skips all holes; nothing more comes.
func (o *order) finish(to sink) {
	for len(o.pending) > 0 {
		o.skip(to)
	}
	if o.started && o.ackSeen && int32(o.acked-o.next) > 1 { // 1 is a FIN's
		o.gaps = true
		to.gap(uint64(o.acked - o.next))
	}
}

// settle takes what is not behind a hole any more.
func (o *order) settle(to sink) {
	for i := 0; i < len(o.pending); {
		c := o.pending[i]
		if int32(c.seq-o.next) > 0 {
			i++
			continue
		}
		o.pending = slices.Delete(o.pending, i, i+1)
		o.held -= len(c.data)
		o.take(c.seq, c.data, to.octets)
		i = 0 // next moved, so an earlier one may fit now
	}
}

// take gives on what is new of a segment that starts at or before next. Old
// octets are retransmissions.
func (o *order) take(seq uint32, data []byte, sink func([]byte)) {
	old := o.next - seq
	if uint64(old) >= uint64(len(data)) {
		return
	}
	data = data[old:]
	o.next += uint32(len(data))
	sink(data)
}

func (o *order) keep(seq uint32, data []byte) {
	for _, c := range o.pending {
		if c.seq == seq && len(c.data) >= len(data) {
			return
		}
	}
	o.pending = append(o.pending, chunk{seq, append([]byte(nil), data...)})
	o.held += len(data)
}
