package qp

import (
	"github.com/softrnic/softrnic/internal/statuscount"
	"github.com/softrnic/softrnic/rdmap"
	"github.com/softrnic/softrnic/wr"
)

// opCounts are the messages that one side has framed or handled, by opcode.
type opCounts [rdmap.AtomicResponse + 1]wr.Flow

func (o *opCounts) segment(op rdmap.Opcode, octets uint64, last bool) {
	f := &o[op]
	f.Segments++
	f.Octets += octets
	if last {
		f.Messages++
	}
}

// takeBack undoes segment: it has not been handled and comes again.
func (o *opCounts) takeBack(op rdmap.Opcode, octets uint64, last bool) {
	f := &o[op]
	f.Segments--
	f.Octets -= octets
	if last {
		f.Messages--
	}
}

// outCount is what the transmit side counts.
type outCount struct {
	ops                               opCounts
	binds, fastRegisters, invalidates uint64
	// octets are those of the stream, framed: when counters are asked for. terminated is what there is of them
	// behind transmitter.pos.
	octets, terminated uint64
}

// executed counts a memory operation.
func (c *outCount) executed(op wr.Op) {
	switch op {
	case wr.OpBind:
		c.binds++
	case wr.OpFastRegister:
		c.fastRegisters++
	default:
		c.invalidates++
	}
}

// inCount is what the receive side counts.
type inCount struct {
	ops         opCounts
	octets      uint64 // of the stream
	invalidates uint64
	waits       uint64 // messages that found no receive
	waited      uint32 // MSN of the last of them
	dropped     uint64 // messages, of an unreliable queue pair
}

// waitsFor counts a message of that MSN, once: the same one may find none again.
func (c *inCount) waitsFor(msn uint32) {
	if c.waits == 0 || c.waited != msn {
		c.waits++
	}
	c.waited = msn
}

// finalIn is what the receive side has counted, and the statuses of receives.
type finalIn struct {
	inCount
	statuses statuscount.Statuses
}

// sum is what has been counted, for the owner of the side, and for fold when nobody counts any more. It changes
// nothing, as Stats may take the side while fold reads it.
func (t *transmitter) sum() outCount {
	c := t.count
	c.octets = t.pos - t.cfg.Carried.Octets + t.count.terminated
	return c
}
