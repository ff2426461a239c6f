package mpa

import (
	"encoding/binary"
	"hash/crc32"
)

// crcLen is the size of the CRC field, which every FPDU has (RFC 5044 4.1).
const crcLen = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is the CRC32C of b, as for iSCSI digests (RFC 5044 4.4).
func checksum(b []byte) uint32 { return updateCRC(0, b) }

// portableCRC continues a CRC32C, crc, with the octets b, on any processor.
// updateCRC does the same, as fast as this one can.
func portableCRC(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }

// appendCRC appends a CRC field. It is the one little-endian field of the
// protocol: figure 5 of RFC 5044 sends 0x83992352 as 52 23 99 83.
func appendCRC(dst []byte, crc uint32) []byte {
	return binary.LittleEndian.AppendUint32(dst, crc)
}

// wireCRC is the value of the CRC field that ends fpdu.
func wireCRC(fpdu []byte) uint32 {
	return binary.LittleEndian.Uint32(fpdu[len(fpdu)-crcLen:])
}
