package crc32c

import "golang.org/x/sys/cpu"

// CRC32C for processors with the instructions CRC32CX, which takes 8 octets and has its result some cycles later,
// and PMULL. Package hash/crc32 waits for each result. Here three parts of a block are taken side by side,
// and their states put together, as fold_amd64.go explains.

// parts are how long a third of a block is, in octets, a multiple of 16; the longest first.
var parts = [...]int{1024, 160}

// canThree says that crcThree may be called.
var canThree = cpu.ARM64.HasCRC32 && cpu.ARM64.HasPMULL

// partShifts are, for each of parts, the multipliers that bring the states of the first and the second third
// to the end of the block.
var partShifts = makePartShifts()

func makePartShifts() (shifts [len(parts)][2]uint64) {
	for i, n := range parts {
		shifts[i] = [2]uint64{uint64(iSCSI.multiplier(8 * 2 * n)), uint64(iSCSI.multiplier(8 * n))}
	}
	return shifts
}

func update(crc uint32, b []byte) uint32 {
	if canThree {
		state := ^crc
		for i, n := range parts {
			for ; len(b) >= 3*n; b = b[3*n:] {
				state = crcThree(state, &b[0], n, &partShifts[i])
			}
		}
		crc = ^state
	}
	return portable(crc, b)
}

func copyUpdate(crc uint32, dst, src []byte) uint32 { return copyBlocks(crc, dst, src) }

// crcThree continues state with the block of three times part octets at block; shifts is what partShifts has for part.
//
//go:noescape
func crcThree(state uint32, block *byte, part int, shifts *[2]uint64) uint32
