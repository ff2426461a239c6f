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
