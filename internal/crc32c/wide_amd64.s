#include "go_asm.h"
#include "textflag.h"

// wide_amd64.go explains what this computes. Nothing outside the given octets is read, no address
// needs to be aligned, and each octet is read once.

// SHIFT multiplies the halves of four lanes by those of multipliers. Their sum is the
// lanes some bits later.
#define SHIFT(multipliers, lanes, first, second) \
	VPCLMULQDQ $0x00, multipliers, lanes, first  \
	VPCLMULQDQ $0x11, multipliers, lanes, second

// SUM adds the three to third.
#define SUM(first, second, third) VPTERNLOGQ $0x96, first, second, third

#define LOAD                \
	VMOVDQU64 0(SI), Z0   \
	VMOVDQU64 64(SI), Z1  \
	VMOVDQU64 128(SI), Z2 \
	VMOVDQU64 192(SI), Z3

#define STORE               \
	VMOVDQU64 Z0, 0(DI)   \
	VMOVDQU64 Z1, 64(DI)  \
	VMOVDQU64 Z2, 128(DI) \
	VMOVDQU64 Z3, 192(DI)

#define FOLD                  \
	SHIFT(Z8, Z0, Z4, Z5)   \
	SHIFT(Z8, Z1, Z6, Z7)   \
	SHIFT(Z8, Z2, Z9, Z10)  \
	SHIFT(Z8, Z3, Z11, Z12)

#define ADD                 \
	SUM(Z4, Z5, Z0)       \
	SUM(Z6, Z7, Z1)       \
	SUM(Z9, Z10, Z2)      \
	SUM(Z11, Z12, Z3)

// JOIN folds Z0 to Z2 into Z3, by Z14.
#define JOIN                \
	SHIFT(Z14, Z0, Z4, Z5) \
	SUM(Z4, Z5, Z1)       \
	SHIFT(Z14, Z1, Z4, Z5) \
	SUM(Z4, Z5, Z2)       \
	SHIFT(Z14, Z2, Z4, Z5) \
	SUM(Z4, Z5, Z3)

// LAST leaves the lanes of Z3 as one in X4.
#define LAST                           \
	VMOVDQU64     wideTable_last(R8), Z9 \
	SHIFT(Z9, Z3, Z4, Z5)            \
	VEXTRACTI64X4 $1, Z3, Y0         \
	VEXTRACTI128  $1, Y0, X0         \
	VPXORQ        Z4, Z5, Z4         \
	VEXTRACTI64X4 $1, Z4, Y5         \
	VPXOR         Y4, Y5, Y4         \
	VEXTRACTI128  $1, Y4, X5         \
	VPXOR         X4, X5, X4         \
	VPXOR         X0, X4, X4

// END leaves the state of CRC32C after the lanes of Z3 in AX.
#define END                \
	LAST               \
	VMOVQ   X4, R9     \
	VPEXTRQ $1, X4, R10 \
	XORL    AX, AX     \
	CRC32Q  R9, AX     \
	CRC32Q  R10, AX    \
	VZEROUPPER

// func sumWide(state uint32, b []byte, table *wideTable) uint32
TEXT ·sumWide(SB), NOSPLIT, $0-44
	MOVL            state+0(FP), AX
	MOVQ            b_base+8(FP), SI
	MOVQ            b_len+16(FP), CX
	MOVQ            table+32(FP), R8
	VMOVD           AX, X13                // the state is added to the first 32 bits
	VBROADCASTI32X4 wideTable_one(R8), Z14
	SUBQ            $256, CX
	JLT             few
	VBROADCASTI32X4 wideTable_step(R8), Z8
	LOAD
	VPXORQ          Z13, Z0, Z0
	ADDQ            $256, SI
	SUBQ            $256, CX
	JLT             join

step:
	FOLD
	LOAD
	ADD
	ADDQ $256, SI
	SUBQ $256, CX
	JGE  step

join:
	JOIN
	ADDQ $192, CX // it is 64 below the octets left
	JLT  end

one:
	SHIFT(Z14, Z3, Z4, Z5)
	VMOVDQU64 0(SI), Z3
	SUM(Z4, Z5, Z3)
	ADDQ      $64, SI
	SUBQ      $64, CX
	JGE       one

end:
	END
	MOVL AX, ret+40(FP)
	RET

few:
	VMOVDQU64 0(SI), Z3
	VPXORQ    Z13, Z3, Z3
	ADDQ      $64, SI
	ADDQ      $128, CX
	JGE       one
	JMP       end

// func copyWide(state uint32, dst *byte, b []byte, table *wideTable) uint32
TEXT ·copyWide(SB), NOSPLIT, $0-52
	MOVL            state+0(FP), AX
	MOVQ            dst+8(FP), DI
	MOVQ            b_base+16(FP), SI
	MOVQ            b_len+24(FP), CX
	MOVQ            table+40(FP), R8
	VMOVD           AX, X13
	VBROADCASTI32X4 wideTable_one(R8), Z14
	SUBQ            $256, CX
	JLT             few
	VBROADCASTI32X4 wideTable_step(R8), Z8
	LOAD
	STORE
	VPXORQ          Z13, Z0, Z0
	ADDQ            $256, SI
	ADDQ            $256, DI
	SUBQ            $256, CX
	JLT             join

step:
	FOLD
	LOAD
	STORE
	ADD
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX
	JGE  step

join:
	JOIN
	ADDQ $192, CX
	JLT  end

one:
	SHIFT(Z14, Z3, Z4, Z5)
	VMOVDQU64 0(SI), Z3
	VMOVDQU64 Z3, 0(DI)
	SUM(Z4, Z5, Z3)
	ADDQ      $64, SI
	ADDQ      $64, DI
	SUBQ      $64, CX
	JGE       one

end:
	END
	MOVL AX, ret+48(FP)
	RET

few:
	VMOVDQU64 0(SI), Z3
	VMOVDQU64 Z3, 0(DI)
	VPXORQ    Z13, Z3, Z3
	ADDQ      $64, SI
	ADDQ      $64, DI
	ADDQ      $128, CX
	JGE       one
	JMP       end

// func foldWide(state uint32, b []byte, table *wideTable, rest *[16]byte)
TEXT ·foldWide(SB), NOSPLIT, $0-48
	MOVL            state+0(FP), AX
	MOVQ            b_base+8(FP), SI
	MOVQ            b_len+16(FP), CX
	MOVQ            table+32(FP), R8
	VMOVD           AX, X13
	VBROADCASTI32X4 wideTable_one(R8), Z14
	SUBQ            $256, CX
	JLT             few
	VBROADCASTI32X4 wideTable_step(R8), Z8
	LOAD
	VPXORQ          Z13, Z0, Z0
	ADDQ            $256, SI
	SUBQ            $256, CX
	JLT             join

step:
	FOLD
	LOAD
	ADD
	ADDQ $256, SI
	SUBQ $256, CX
	JGE  step

join:
	JOIN
	ADDQ $192, CX // it is 64 below the octets left
	JLT  end

one:
	SHIFT(Z14, Z3, Z4, Z5)
	VMOVDQU64 0(SI), Z3
	SUM(Z4, Z5, Z3)
	ADDQ      $64, SI
	SUBQ      $64, CX
	JGE       one

end:
	LAST
	MOVQ    rest+40(FP), DI
	VMOVDQU X4, 0(DI)
	VZEROUPPER
	RET

few:
	VMOVDQU64 0(SI), Z3
	VPXORQ    Z13, Z3, Z3
	ADDQ      $64, SI
	ADDQ      $128, CX
	JGE       one
	JMP       end
