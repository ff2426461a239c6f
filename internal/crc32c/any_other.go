//go:build !amd64 && !arm64

package crc32c

func update(crc uint32, b []byte) uint32 { return portable(crc, b) }

func copyUpdate(crc uint32, dst, src []byte) uint32 { return copyBlocks(crc, dst, src) }
