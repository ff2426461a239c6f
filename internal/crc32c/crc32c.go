// Package crc32c computes CRC32C, that of iSCSI and MPA (RFC 3720 12.1, RFC 5044 4.4), of octets
// where they are, or while they are copied. It is package hash/crc32 with Castagnoli's polynomial, and
// faster: see fold_amd64.go, wide_amd64.go and docs/decisions/0031-crc-at-full-speed.md.
// A Folder has the fast part for other generators of 32 bits.
package crc32c

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Update continues a CRC32C, crc, with the octets b; 0 begins one.
func Update(crc uint32, b []byte) uint32 { return update(crc, b) }

// Copy copies src to dst, which is as long at least and does not overlap it, and continues crc with
// what is in dst then. Each octet of src is read once: if src changes meanwhile, the CRC
// is that of the copy all the same.
func Copy(crc uint32, dst, src []byte) uint32 { return copyUpdate(crc, dst[:len(src)], src) }

// portable is Update on any processor.
func portable(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }

// block is how many octets copyBlocks copies before it takes their CRC: they are in the nearest cache
// then.
const block = 8 << 10

// copyBlocks is Copy in two passes, block by block.
func copyBlocks(crc uint32, dst, src []byte) uint32 {
	for len(src) > block {
		crc = update(crc, dst[:copy(dst[:block], src)])
		dst, src = dst[block:], src[block:]
	}
	return update(crc, dst[:copy(dst, src)])
}
