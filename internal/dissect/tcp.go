package dissect

// maxPending bounds the octets kept for one direction until a hole before them
// is filled.
const maxPending = 4 << 20

// order puts the octets of one direction of a TCP connection in sequence.
type order struct {
	started bool
	next    uint32 // sequence number of the next octet
	acked   uint32 // highest acknowledgement seen from the peer, if ackSeen
	ackSeen bool
	held    int     // octets in pending
	pending []chunk // beyond a hole
	lost    bool    // a hole that will not be filled: nothing follows
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
	return !o.lost && len(o.pending) == 0 && (!o.ackSeen || int32(o.acked-o.next) <= 0)
}

func (o *order) acknowledge(ack uint32) {
	if !o.ackSeen || int32(ack-o.acked) > 0 {
		o.acked, o.ackSeen = ack, true
	}
}

// put takes a segment's payload and gives what is in sequence to sink. Sequence
// numbers wrap: only differences count.
func (o *order) put(seq uint32, data []byte, sink func([]byte)) {
	if o.lost || len(data) == 0 {
		return
	}
	o.begin(seq)
	if int32(seq-o.next) > 0 {
		o.keep(seq, data)
		return
	}
	o.take(seq, data, sink)
	for i := 0; i < len(o.pending); {
		c := o.pending[i]
		if int32(c.seq-o.next) > 0 {
			i++
			continue
		}
		o.pending = append(o.pending[:i], o.pending[i+1:]...)
		o.held -= len(c.data)
		o.take(c.seq, c.data, sink)
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
	if o.held+len(data) > maxPending || len(o.pending) >= maxPending/1024 {
		o.lose()
		return
	}
	o.pending = append(o.pending, chunk{seq, append([]byte(nil), data...)})
	o.held += len(data)
}

// lose gives up: octets are missing for good.
func (o *order) lose() {
	o.lost, o.pending, o.held = true, nil, 0
}
