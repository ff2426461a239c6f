//go:build !amd64

package mpa

// updateCRC continues a CRC32C, crc, with the octets b.
func updateCRC(crc uint32, b []byte) uint32 { return portableCRC(crc, b) }
