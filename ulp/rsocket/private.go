package rsocket

import (
	"encoding/binary"
)

const (
	version   = 1
	helloSize = 40
	// minMessages is the fewest receives that a peer may have: of fewer nothing is left beside reserve.
	minMessages = 16
	// endOfLine is behind hello in a request. rsockets do not look at it; a server of HTTP that waits for the end of the line answers at once that
	// this was none of its requests, where it would leave the client to its timeout.
	endOfLine = "\r\n\r\n"
)

// Flags of hello.
const (
	flagBigEndian = 1 << 0
	flagMap       = 1 << 1
)

// hello is the private data of the request, and of the reply.
type hello struct {
	flags   uint8
	credits uint16 // messages that the peer may send at first
	mapped  int    // entries behind the target list, for the peer's mapped buffers
	list    target // the target list that the peer writes to: length counts entries
	data    target // what the peer may write to at first
}

// append has the fields in network order.
func (h hello) append(b []byte) []byte {
	b = append(b, version, h.flags)
	b = binary.BigEndian.AppendUint16(b, h.credits)
	b = append(b, 0, 0, 0, scaled(h.mapped))
	for _, t := range []target{h.list, h.data} {
		b = binary.BigEndian.AppendUint64(b, t.addr)
		b = binary.BigEndian.AppendUint32(b, t.key)
		b = binary.BigEndian.AppendUint32(b, t.length)
	}
	return b
}

// scaled is how a number of entries is told in one octet: more than 128 by multiples of 256. It is rounded down.
func scaled(n int) uint8 {
	if n <= 128 {
		return uint8(n)
	}
	return uint8(min(n>>8, 127)) | 0x80
}

func unscaled(v uint8) int {
	if v <= 128 {
		return int(v)
	}
	return int(v&0x7f) << 8
}

// parseHello reads what a peer sent, which may have more behind it.
func parseHello(b []byte) (hello, error) {
	if len(b) < helloSize {
		return hello{}, broken("%d octets of private data, and not %d: it may be another program than one of rsockets", len(b), helloSize)
	}
	if b[0] != version {
		return hello{}, broken("version %d, and not %d", b[0], version)
	}
	h := hello{flags: b[1], credits: binary.BigEndian.Uint16(b[2:]), list: bigTarget(b[8:]), data: bigTarget(b[24:])}
	if h.flags&flagMap != 0 {
		h.mapped = unscaled(b[7])
	}
	switch {
	case h.flags&flagBigEndian != 0:
		return hello{}, broken("the peer is big-endian: messages have the order of the host's octets, so that cannot work over iWARP")
	case h.credits < minMessages:
		return hello{}, broken("%d messages may be sent, and not at least %d", h.credits, minMessages)
	case h.list.length < 2:
		return hello{}, broken("a target list of %d entries, and not at least 2", h.list.length)
	}
	return h, nil
}

func bigTarget(b []byte) target {
	return target{addr: binary.BigEndian.Uint64(b), key: binary.BigEndian.Uint32(b[8:]), length: binary.BigEndian.Uint32(b[12:])}
}
