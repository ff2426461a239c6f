#include "textflag.h"

// three_arm64.go explains what this computes. Nothing outside the given octets is read, and no
// address needs to be aligned.

// func crcThree(state uint32, block *byte, part int, shifts *[2]uint64) uint32
TEXT ·crcThree(SB), NOSPLIT, $0-36
	MOVWU state+0(FP), R9
	MOVD  block+8(FP), R0
	MOVD  part+16(FP), R2
	MOVD  shifts+24(FP), R1
	ADD   R2, R0, R3
	ADD   R2, R3, R4
	MOVD  $0, R10
	MOVD  $0, R11

step:
	LDP.P   16(R0), (R5, R6)
	LDP.P   16(R3), (R7, R8)
	LDP.P   16(R4), (R12, R13)
	CRC32CX R5, R9
	CRC32CX R7, R10
	CRC32CX R12, R11
	CRC32CX R6, R9
	CRC32CX R8, R10
	CRC32CX R13, R11
	SUBS    $16, R2
	BNE     step

	// The first two states, brought to the end of the block: 63 bits, which CRC32CX reduces.
	LDP     (R1), (R5, R6)
	VMOV    R9, V0.D[0]
	VMOV    R5, V1.D[0]
	VMOV    R10, V2.D[0]
	VMOV    R6, V3.D[0]
	VPMULL  V0.D1, V1.D1, V0.Q1
	VPMULL  V2.D1, V3.D1, V2.Q1
	VEOR    V0.B16, V2.B16, V0.B16
	VMOV    V0.D[0], R5
	MOVD    $0, R6
	CRC32CX R5, R6
	EORW    R6, R11
	MOVW    R11, ret+32(FP)
	RET
