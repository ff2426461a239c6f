package nvmeof

import "github.com/softrnic/softrnic/verbs"

// sgl is the one SGL descriptor of a command, octets 24 to 39.
type sgl struct {
	inline     bool // in the capsule, from offset
	offset     uint64
	length     uint32
	key        verbs.STag
	invalidate bool // by the response
}

const (
	psdtSGL       = 0x40 // the flags of a command: an SGL, not fused
	sglOffset     = 0x01 // data block, offset: in the capsule
	sglKeyed      = 0x40 // keyed data block
	sglInvalidate = 0x4f // the same, whose key the response invalidates
)

// maxTransfer is the most data of a command: mdts pages of 4 KiB.
const (
	mdts        = 8
	maxTransfer = 4096 << mdts
)

// put writes the descriptor into c.
func (s sgl) put(c command) {
	c[1] = psdtSGL
	d := c[24:40]
	le.PutUint64(d, s.offset)
	le.PutUint32(d[8:], s.length)
	switch {
	case s.inline:
		d[15] = sglOffset
	default:
		le.PutUint32(d[11:], uint32(s.key)) // behind a length of three octets
		d[15] = sglKeyed
		if s.invalidate {
			d[15] = sglInvalidate
		}
	}
}

// decodeSGL reads the descriptor of c, behind which the capsule has data octets.
func decodeSGL(c command, data int) (s sgl, st Status) {
	if c.flags() != psdtSGL {
		return s, InvalidField | DNR
	}
	d := c[24:40]
	switch d[15] {
	case sglOffset:
		s = sgl{inline: true, offset: le.Uint64(d), length: le.Uint32(d[8:])}
		if s.offset > uint64(data) {
			return s, SGLInvalidOffset | DNR
		}
		if uint64(s.length) > uint64(data)-s.offset {
			return s, SGLInvalidLength | DNR
		}
	case sglKeyed, sglInvalidate:
		s = sgl{offset: le.Uint64(d), length: le.Uint32(d[8:]) & 0xffffff, key: verbs.STag(le.Uint32(d[11:15]))}
		s.invalidate = d[15] == sglInvalidate && s.length != 0
		if s.length > maxTransfer {
			return s, InvalidField | DNR
		}
		if s.offset+uint64(s.length) < s.offset {
			return s, SGLInvalidOffset | DNR
		}
	default:
		return s, SGLInvalidType | DNR
	}
	return s, Success
}
