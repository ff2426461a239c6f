package rsocket

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// message is what says that something was written, or may be: an operation in bits 31 to 29, and its value.
type message uint32

type operation uint8

const (
	opData  operation = 0 // value: octets that were written into the ring
	opGrant operation = 4 // value: the limit, modulo 65536; an entry of the target list may have been written
	opMap   operation = 6 // value: which entry of the table of mapped buffers was written
	opState operation = 7 // value: one of the states below

	// none is no message: it would say that nothing was written.
	none message = 0

	valueBits = 29
	valueMask = 1<<valueBits - 1
	// messageSize is the Send's length on iWARP.
	messageSize = 4
)

const (
	stateDisconnect = 0
	stateKeepalive  = 1
	stateShutdown   = 2
)

func newMessage(op operation, value uint32) message {
	return message(op)<<valueBits | message(value&valueMask)
}

func (m message) op() operation { return operation(m >> valueBits) }
func (m message) value() uint32 { return uint32(m) & valueMask }

// Messages and descriptors travel in the order of octets of the host that reads them. It is little-endian wherever this package runs:
// a peer that says it is big-endian is refused (see hello).
var order = binary.LittleEndian

// Sizes of descriptors, in octets.
const (
	targetSize = 16
	mappedSize = 24
)

// target is a piece of memory at the peer.
type target struct {
	addr   uint64
	key    uint32
	length uint32
}

func (t target) put(b []byte) {
	order.PutUint64(b, t.addr)
	order.PutUint32(b[8:], t.key)
	order.PutUint32(b[12:], t.length)
}

// getTarget reads a descriptor that the peer may be writing at this moment: it is there only if no field is zero, and two looks agree.
// The memory is zeroed before the peer may write, so a field that is not there yet is zero.
func getTarget(b []byte) (target, bool) {
	t := parseTarget(b)
	return t, t.addr != 0 && t.key != 0 && t.length != 0 && t == parseTarget(b)
}

func parseTarget(b []byte) target {
	return target{length: order.Uint32(b[12:]), key: order.Uint32(b[8:]), addr: order.Uint64(b)}
}

// ErrProtocol is matched by the error of a connection whose peer has broken the protocol.
var ErrProtocol = errors.New("rsocket: the peer does not keep to the protocol of rsockets")

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}
