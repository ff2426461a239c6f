package segment

import (
	"golang.org/x/sys/cpu"

	"github.com/softrnic/softrnic/internal/crc32c"
)

// A message may be replaced by a shorter one that leaves the same remainder: four lanes of
// 128 bits are each folded into the next 128 bits for it, 512 bits later, and in the end
// into one, by PCLMULQDQ, which multiplies polynomials over GF(2). internal/crc32c/fold_amd64.go
// has the arithmetic. What folding leaves is for the tables. Processors with wider registers have a way of that package.

// by512 and by128 are x^(d+32) and x^(d-32) modulo the generator, reflected and one bit up,
// for the first and the second half of a lane that moves d bits. TestFolding computes them.
var (
	by512 = [2]uint64{0x487b9c8a, 0x10ebe3b70}
	by128 = [2]uint64{0x9259a548, 0xd02dd974}
)

// foldLeast is from how many octets on folding is worth while; 64 at least.
const foldLeast = 256

// foldLanes leaves in rest what gives the CRC of b, a multiple of 64 octets, when the state
// before it is zero. state is what it is before b.
//
//go:noescape
func foldLanes(state uint32, b []byte, rest *[16]byte)

var folder = crc32c.NewFolder(generator)

// fold folds the beginning of b. It returns the state after that, and what is left of b.
func fold(state uint32, b []byte) (uint32, []byte) {
	var rest [16]byte
	if n := folder.Fold(state, b, &rest); n > 0 {
		return addTables(0, rest[:]), b[n:]
	}
	return foldNarrow(state, b)
}

// foldNarrow is fold with registers of 128 bits.
func foldNarrow(state uint32, b []byte) (uint32, []byte) {
	if len(b) < foldLeast || !cpu.X86.HasPCLMULQDQ {
		return state, b
	}
	n := len(b) &^ 63
	var rest [16]byte
	foldLanes(state, b[:n], &rest)
	return addTables(0, rest[:]), b[n:]
}
