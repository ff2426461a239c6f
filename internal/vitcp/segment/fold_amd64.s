#include "textflag.h"

// fold_amd64.go explains what this computes. No address needs to be aligned.

// func foldLanes(state uint32, b []byte, rest *[16]byte)
TEXT ·foldLanes(SB), NOSPLIT, $0-40
	MOVL  state+0(FP), AX
	MOVQ  b_base+8(FP), SI
	MOVQ  b_len+16(FP), CX
	MOVQ  rest+32(FP), DI
	MOVOU (SI), X1
	MOVOU 16(SI), X2
	MOVOU 32(SI), X3
	MOVOU 48(SI), X4
	MOVQ  AX, X0
	PXOR  X0, X1
	MOVOU ·by512(SB), X0
	ADDQ  $64, SI
	SUBQ  $128, CX
	JLT   lanes

loop:
	MOVOA     X1, X5
	MOVOA     X2, X6
	MOVOA     X3, X7
	MOVOA     X4, X8
	PCLMULQDQ $0, X0, X1
	PCLMULQDQ $0, X0, X2
	PCLMULQDQ $0, X0, X3
	PCLMULQDQ $0, X0, X4
	PCLMULQDQ $0x11, X0, X5
	PCLMULQDQ $0x11, X0, X6
	PCLMULQDQ $0x11, X0, X7
	PCLMULQDQ $0x11, X0, X8
	MOVOU     (SI), X9
	MOVOU     16(SI), X10
	MOVOU     32(SI), X11
	MOVOU     48(SI), X12
	PXOR      X5, X1
	PXOR      X6, X2
	PXOR      X7, X3
	PXOR      X8, X4
	PXOR      X9, X1
	PXOR      X10, X2
	PXOR      X11, X3
	PXOR      X12, X4
	ADDQ      $64, SI
	SUBQ      $64, CX
	JGE       loop

lanes:
	MOVOU     ·by128(SB), X0
	MOVOA     X1, X5
	PCLMULQDQ $0, X0, X1
	PCLMULQDQ $0x11, X0, X5
	PXOR      X5, X1
	PXOR      X2, X1
	MOVOA     X1, X5
	PCLMULQDQ $0, X0, X1
	PCLMULQDQ $0x11, X0, X5
	PXOR      X5, X1
	PXOR      X3, X1
	MOVOA     X1, X5
	PCLMULQDQ $0, X0, X1
	PCLMULQDQ $0x11, X0, X5
	PXOR      X5, X1
	PXOR      X4, X1
	MOVOU     X1, (DI)
	RET
