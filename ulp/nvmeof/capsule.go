package nvmeof

import "encoding/binary"

var le = binary.LittleEndian

const (
	commandSize    = 64
	completionSize = 16
	connectSize    = 1024 // the data of Connect
	identifySize   = 4096
)

// Opcodes: admin, I/O, and of Fabrics commands the fctype.
const (
	adminGetLogPage  = 0x02
	adminIdentify    = 0x06
	adminAbort       = 0x08
	adminSetFeatures = 0x09
	adminGetFeatures = 0x0a
	adminAsyncEvent  = 0x0c
	adminKeepAlive   = 0x18

	cmdFlush       = 0x00
	cmdWrite       = 0x01
	cmdRead        = 0x02
	cmdWriteZeroes = 0x08
	cmdDSM         = 0x09

	fabricsCommand  = 0x7f
	typePropertySet = 0x00
	typeConnect     = 0x01
	typePropertyGet = 0x04
)

// command is a submission queue entry of 64 octets.
type command []byte

func (c command) opcode() byte    { return c[0] }
func (c command) flags() byte     { return c[1] }
func (c command) cid() uint16     { return le.Uint16(c[2:]) }
func (c command) fctype() byte    { return c[4] }
func (c command) nsid() uint32    { return le.Uint32(c[4:]) }
func (c command) dw(n int) uint32 { return le.Uint32(c[4*n:]) } // dw(10) is cdw10, at octet 40

func (c command) setDW(n int, v uint32) { le.PutUint32(c[4*n:], v) }

// newCommand is a command of a namespace, or of none, whose SGL descriptor names no data. It has no identifier yet.
func newCommand(opcode byte, nsid uint32) command {
	c := make(command, commandSize)
	c[0] = opcode
	le.PutUint32(c[4:], nsid)
	sgl{}.put(c)
	return c
}

// newFabrics is a Fabrics command.
func newFabrics(fctype byte) command {
	c := newCommand(fabricsCommand, 0)
	c[4] = fctype
	return c
}

// onBlocks names n blocks from slba on, of Read, Write and Write Zeroes.
func (c command) onBlocks(slba uint64, n int) command {
	le.PutUint64(c[40:], slba)
	le.PutUint16(c[48:], uint16(n-1))
	return c
}

// completion is what a command is answered with.
type completion struct {
	result uint64
	sqhd   uint16
	sqid   uint16
	cid    uint16
	status Status
}

func (c completion) put(b []byte) {
	le.PutUint64(b, c.result)
	le.PutUint16(b[8:], c.sqhd)
	le.PutUint16(b[10:], c.sqid)
	le.PutUint16(b[12:], c.cid)
	le.PutUint16(b[14:], uint16(c.status)<<1) // bit 0, the phase, is 0 on Fabrics
}

// decodeCompletion reads what put wrote, of completionSize octets. What Status does not know is left out: the phase,
// More and CRD.
func decodeCompletion(b []byte) completion {
	return completion{
		result: le.Uint64(b), sqhd: le.Uint16(b[8:]), sqid: le.Uint16(b[10:]), cid: le.Uint16(b[12:]),
		status: Status(le.Uint16(b[14:])>>1) & (DNR | 0x7ff),
	}
}
