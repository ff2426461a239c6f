package rsocket

// reserve is how many of the peer's receives data leaves to messages that do not count: iWARP has no way to try again, so a message that
// finds no receive ends the connection. There are two for halves of the ring, two for limits between one limit of the peer's and the next,
// and one each for a half-close and the end.
const reserve = 8

// outbound is what this side may write to the peer. It is the sender's half of the protocol, without I/O.
type outbound struct {
	list  []byte // entries that the peer writes
	next  int    // the entry that it writes next
	to    target // what is left of the target in use
	ahead []target

	sequence uint16 // messages that count
	limit    uint16 // what it may come to
}

// newOutbound begins with what the peer said; list, all zero, is this side's target list.
func newOutbound(h hello, list []byte) outbound {
	return outbound{list: list, next: 1, to: h.data, limit: h.credits, ahead: make([]target, 0, len(list)/targetSize)}
}

// granted takes a limit that the peer has told, and looks for targets.
func (o *outbound) granted(limit uint32) {
	o.limit = uint16(limit)
	for len(o.ahead) < cap(o.ahead) {
		entry := o.list[o.next*targetSize:][:targetSize]
		t, ok := getTarget(entry)
		if !ok {
			break
		}
		clear(entry)
		o.ahead = append(o.ahead, t)
		o.next = (o.next + 1) % (len(o.list) / targetSize)
	}
	o.advance()
}

func (o *outbound) advance() {
	if o.to.length == 0 && len(o.ahead) > 0 {
		o.to = o.ahead[0]
		o.ahead = append(o.ahead[:0], o.ahead[1:]...)
	}
}

// credit reports whether another message that counts may be sent.
func (o *outbound) credit() bool { return o.limit-o.sequence > reserve }

// room is how many octets may be written now, in one piece.
func (o *outbound) room() uint32 {
	if !o.credit() {
		return 0
	}
	return o.to.length
}

// take uses up n octets of room, and is where they go.
func (o *outbound) take(n uint32) target {
	at := target{addr: o.to.addr, key: o.to.key, length: n}
	o.to.addr += uint64(n)
	o.to.length -= n
	o.sequence++
	o.advance()
	return at
}
