package crc32c

import "golang.org/x/sys/cpu"

// CRC32C for processors that have two ways to compute it: the CRC32 instruction,
// which takes 8 octets, and PCLMULQDQ, the multiplication of polynomials over GF(2).
// Either is good for 8 octets a cycle, and each has an execution port of its own, so a
// loop that does half of the octets in each way comes close to 16.
//
// # The arithmetic
//
// A message is a polynomial over GF(2): the first octet's lowest bit is the coefficient
// of the highest power of x (RFC 3720 12.1, to which RFC 5044 4.4 points). Bits
// are thus in reverse: bit i of a register of w bits stands for x^(w-1-i), and
// polynomials are added by XOR. The state S of a CRC, 32 bits, has become
//
//	S·x^m + M·x^32  mod P
//
// after a message M of m bits. (CRC32C begins with a state of ones, and delivers the
// complement of the last one.) This is linear in S and M, so a message may be cut up:
// take a state for each part, beginning at zero, multiply it by x^d, d being the number
// of bits that come behind that part, and add. With x^d mod P at hand that is one
// multiplication for a part of any length.
//
// The CRC32 instruction with a 64-bit operand is just that with m = 64. It has its
// result after 3 cycles but can begin one every cycle, so three independent streams
// keep it busy.
//
// # Folding
//
// The other half needs no state: a message may be replaced by a shorter one which
// leaves the same remainder. 128 bits H·x^64 + L that are to be added to those
// which come d bits later are there worth
//
//	(H·x^64 + L)·x^d  ≡  H·(x^(d+64) mod P) + L·(x^d mod P)
//
// two products of less than 128 bits. A lane is a register of 128 bits that is folded
// into the next 128 bits for it. A product takes about 7 cycles and one can begin every
// cycle: four lanes, eight products, keep PCLMULQDQ busy, and each goes d = 512 bits
// at a time. What is left at the end, four lanes, is folded into one and given to
// CRC32.
//
// # x^(d-33)
//
// The constants are not x^d but x^(d-33) mod P, as multiplying by them adds the rest.
// The product of two reversed 64-bit operands has 127 bits, its lowest stands for the
// highest power, x^126, and lies in bit 0 of 128, where x^127 belongs: a factor
// of x. And a constant's 32 bits lie in the low half of its 64, so that there it stands
// for itself times x^32.
//
// The same constant serves for a state of 32 bits. State and constant, each in the low
// half of 64 bits, give at most 63 bits, in the low half of the 128. Say T is the
// polynomial of those as a 64-bit register: it is state·constant·x. T is not reduced, but
// added to the message's last 64 bits, and the CRC32 instruction, which takes those
// next, multiplies by x^32 and reduces.
//
// # The shape
//
// A block of n steps, 136·n octets, is laid out as
//
//	A 24·n | B 24·n | C 24·n | lanes 64·n
//
// and step i takes 24 octets of each of A, B and C, three CRC32 each, and 64
// of the lanes: nine CRC32 beside eight PCLMULQDQ. The state from before the block
// is, like those of A, B and C, brought to the block's end by a multiplication: four in
// all, whose constants depend on n. No step waits for that state. So the octets that
// make no whole step go first, in the plain way, and the processor does them while
// it is in the steps already.
const (
	crcStream = 24 // octets a step takes of each of A, B and C
	crcLanes  = 64 // octets a step takes of the lanes' part
	crcStep   = 3*crcStream + crcLanes

	// crcMaxSteps bounds a block: crcShifts has 32 octets for each number of steps.
	crcMaxSteps = 128

	// crcFoldMin is the length from which the work at a block's end is worth it, as
	// measured. It is at least crcStep.
	crcFoldMin = 224
)

// canFold says that crcFold may be called; cpu has asked the system about AVX as well.
var canFold = cpu.X86.HasSSE42 && cpu.X86.HasPCLMULQDQ && cpu.X86.HasAVX

var (
	crcFolds  = makeFolds()
	crcShifts = makeShifts()
)

// folded continues state with b.
func folded(state uint32, b []byte) uint32 {
	plain := len(b)
	if plain >= crcFoldMin {
		plain %= crcStep
	}
	state = crcPlain(state, b[:plain])
	for b = b[plain:]; len(b) > 0; {
		steps := min(len(b)/crcStep, crcMaxSteps)
		state = crcFold(state, &b[0], steps, &crcShifts[steps-1], &crcFolds)
		b = b[steps*crcStep:]
	}
	return state
}

// crcPlain continues state with b by the CRC32 instruction alone.
//
//go:noescape
func crcPlain(state uint32, b []byte) uint32

// crcFold continues state with the block of steps·crcStep octets at block. steps is at
// least 1, shifts is what crcShifts has for it, and folds is crcFolds.
//
//go:noescape
func crcFold(state uint32, block *byte, steps int, shifts *[4]uint64, folds *[4][2]uint64) uint32

// makeFolds returns, for folding 128 bits by i+1 times 128 bits, the multiplier of
// their first half (x^64 more) and that of their second.
func makeFolds() (folds [4][2]uint64) {
	for i := range folds {
		folds[i] = iSCSI.fold(128 * (i + 1))
	}
	return folds
}

// makeShifts returns, for blocks of n+1 steps, the multipliers of the state from before
// the block and of the states of A, B and C.
func makeShifts() (shifts [crcMaxSteps][4]uint64) {
	for part := range shifts[0] {
		d := 8 * (crcStep - part*crcStream) // bits from the part to the end, a step
		m, perStep := iSCSI.multiplier(d), iSCSI.power(d)
		for n := range shifts {
			shifts[n][part] = uint64(m)
			m = iSCSI.times(m, perStep)
		}
	}
	return shifts
}

// fold returns the multipliers for folding 128 bits by d.
func (g generator) fold(d int) [2]uint64 {
	return [2]uint64{uint64(g.multiplier(d + 64)), uint64(g.multiplier(d))}
}
