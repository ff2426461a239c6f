#include "go_asm.h"
#include "textflag.h"

// fold_amd64.go explains what this computes. Nothing outside the given octets is
// read, and no address needs to be aligned.

// func crcPlain(state uint32, b []byte) uint32
TEXT ·crcPlain(SB), NOSPLIT, $0-36
	MOVL state+0(FP), AX
	MOVQ b_base+8(FP), SI
	MOVQ b_len+16(FP), CX
	SUBQ $8, CX
	JLT  rest

eight:
	CRC32Q (SI), AX
	ADDQ   $8, SI
	SUBQ   $8, CX
	JGE    eight

rest:
	// CX is 8 below the octets left: its last three bits are theirs.
	TESTB  $4, CX
	JZ     two
	CRC32L (SI), AX
	ADDQ   $4, SI

two:
	TESTB  $2, CX
	JZ     one
	CRC32W (SI), AX
	ADDQ   $2, SI

one:
	TESTB  $1, CX
	JZ     done
	CRC32B (SI), AX

done:
	MOVL AX, ret+32(FP)
	RET

// SHIFT multiplies the halves of lane by those of multipliers. Their sum is the lane
// some bits later.
#define SHIFT(multipliers, lane, first, second) \
	VPCLMULQDQ $0x00, multipliers, lane, first  \
	VPCLMULQDQ $0x11, multipliers, lane, second

// FOLD adds lane to the 16 octets at the offset at of the lanes' part. The sum with the
// octets comes first: it need not wait for both products.
#define FOLD(at, lane, first, second) \
	SHIFT(X8, lane, first, second)    \
	VPXOR at(DI), first, first        \
	VPXOR first, second, lane

// func crcFold(state uint32, block *byte, steps int, shifts *[4]uint64, folds *[4][2]uint64) uint32
TEXT ·crcFold(SB), NOSPLIT, $0-44
	MOVQ   block+8(FP), SI
	MOVQ   steps+16(FP), CX
	MOVQ   shifts+24(FP), BX
	MOVQ   folds+32(FP), R8
	IMUL3Q $const_crcStream, CX, DX // the length of each of A, B and C
	LEAQ   (DX)(DX*2), DI
	ADDQ   SI, DI                   // the lanes' part

	// The states of A, B and C and the lanes begin at zero.
	XORL    R9, R9
	XORL    R10, R10
	XORL    R11, R11
	VPXOR   X0, X0, X0
	VPXOR   X1, X1, X1
	VPXOR   X2, X2, X2
	VPXOR   X3, X3, X3
	VMOVDQU 48(R8), X8 // by 512 bits

step:
	CRC32Q (SI), R9
	CRC32Q (SI)(DX*1), R10
	CRC32Q (SI)(DX*2), R11
	FOLD(0, X0, X4, X5)
	FOLD(16, X1, X6, X7)
	CRC32Q 8(SI), R9
	CRC32Q 8(SI)(DX*1), R10
	CRC32Q 8(SI)(DX*2), R11
	FOLD(32, X2, X9, X10)
	FOLD(48, X3, X11, X12)
	CRC32Q 16(SI), R9
	CRC32Q 16(SI)(DX*1), R10
	CRC32Q 16(SI)(DX*2), R11
	ADDQ   $const_crcStream, SI
	ADDQ   $const_crcLanes, DI
	DECQ   CX
	JNZ    step

	// X4: the four states, brought to the end of the block; 63 bits.
	MOVL       state+0(FP), AX
	VMOVQ      AX, X4
	VMOVQ      R9, X5
	VMOVQ      R10, X6
	VMOVQ      R11, X7
	VPCLMULQDQ $0x00, 0(BX), X4, X4
	VPCLMULQDQ $0x10, 0(BX), X5, X5
	VPCLMULQDQ $0x00, 16(BX), X6, X6
	VPCLMULQDQ $0x10, 16(BX), X7, X7
	VPXOR      X4, X5, X4
	VPXOR      X6, X7, X6
	VPXOR      X4, X6, X4

	// X3: the four lanes as one.
	VMOVDQU 32(R8), X8 // the first lane, by 384 bits
	SHIFT(X8, X0, X5, X0)
	VMOVDQU 16(R8), X8 // the second, by 256
	SHIFT(X8, X1, X6, X1)
	VMOVDQU 0(R8), X8  // the third, by 128
	SHIFT(X8, X2, X7, X2)
	VPXOR   X5, X0, X0
	VPXOR   X6, X1, X1
	VPXOR   X7, X2, X2
	VPXOR   X0, X1, X1
	VPXOR   X2, X3, X3
	VPXOR   X1, X3, X3

	// The states go with the last 64 bits, which are the higher half.
	VPSLLDQ $8, X4, X4
	VPXOR   X4, X3, X3
	VMOVQ   X3, R9
	VPEXTRQ $1, X3, R10
	XORL    AX, AX
	CRC32Q  R9, AX
	CRC32Q  R10, AX
	MOVL    AX, ret+40(FP)
	RET
