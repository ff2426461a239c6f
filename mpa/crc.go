package mpa

import (
	"encoding/binary"

	"github.com/softrnic/softrnic/internal/crc32c"
)

// crcLen is the size of the CRC field, which every FPDU has (RFC 5044 4.1).
const crcLen = 4

// checksum is the CRC32C of b, as for iSCSI digests (RFC 5044 4.4).
func checksum(b []byte) uint32 { return crc32c.Update(0, b) }

// appendCRC appends a CRC field. It is the one little-endian field of the
// protocol: figure 5 of RFC 5044 sends 0x83992352 as 52 23 99 83.
func appendCRC(dst []byte, crc uint32) []byte {
	return binary.LittleEndian.AppendUint32(dst, crc)
}

// wireCRC is the value of the CRC field that ends fpdu.
func wireCRC(fpdu []byte) uint32 {
	return binary.LittleEndian.Uint32(fpdu[len(fpdu)-crcLen:])
}
