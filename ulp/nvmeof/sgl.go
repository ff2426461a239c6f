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

// maxTransfer is the most data of a command: mdts pages of 4 KiB.
const (
	mdts        = 8
	maxTransfer = 4096 << mdts
)

// decodeSGL reads the descriptor of c, behind which the capsule has data octets.
func decodeSGL(c command, data int) (s sgl, st Status) {
	if c.flags() != 0x40 { // PSDT 01, not fused
		return s, InvalidField | DNR
	}
	d := c[24:40]
	switch d[15] {
	case 0x01: // data block, offset
		s = sgl{inline: true, offset: le.Uint64(d), length: le.Uint32(d[8:])}
		if s.offset > uint64(data) {
			return s, SGLInvalidOffset | DNR
		}
		if uint64(s.length) > uint64(data)-s.offset {
			return s, SGLInvalidLength | DNR
		}
	case 0x40, 0x4f: // keyed data block
		s = sgl{offset: le.Uint64(d), length: le.Uint32(d[8:]) & 0xffffff, key: verbs.STag(le.Uint32(d[11:15]))}
		s.invalidate = d[15] == 0x4f && s.length != 0
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
