#include "textflag.h"

// Operations on 8 elements at a time. Those of a lanes function are n elements, n a multiple of 8 and not 0; d is where the
// results go, a, b and c are where the operands are, in bytes from base. See vector.go for what each computes.

#define ARGS \
	MOVQ d+0(FP), DI; \
	MOVQ base+8(FP), R9; \
	MOVQ a+16(FP), SI; \
	ADDQ R9, SI; \
	MOVQ b+24(FP), DX; \
	ADDQ R9, DX; \
	MOVQ c+32(FP), R8; \
	ADDQ R9, R8; \
	MOVQ n+40(FP), CX; \
	XORQ AX, AX

// addresses of threads: see Load32
#define ADDRESSES \
	MOVQ addr+8(FP), SI; \
	MOVQ mem+16(FP), BX; \
	MOVQ n+24(FP), CX; \
	MOVQ delta+32(FP), DX; \
	MOVQ limit+40(FP), R8; \
	XORQ AX, AX

// the four elements of a thread
#define FOUR \
	MOVQ d+0(FP), R9; \
	MOVQ (R9), DI; \
	MOVQ 8(R9), R10; \
	MOVQ 16(R9), R11; \
	MOVQ 24(R9), R12

#define NEXT \
	ADDQ $8, AX; \
	CMPQ AX, CX; \
	JLT  loop; \
	VZEROUPPER; \
	RET

// Y15 is the canonical NaN, 0x7fffffff in each element
#define NAN \
	VPCMPEQD Y15, Y15, Y15; \
	VPSRLD   $1, Y15, Y15

#define CANON \
	VCMPPS    $3, Y0, Y0, Y14; \
	VBLENDVPS Y14, Y15, Y0, Y0

#define LOAD1 VMOVUPS (SI)(AX*4), Y0
#define LOAD2 \
	VMOVUPS (SI)(AX*4), Y0; \
	VMOVUPS (DX)(AX*4), Y1
#define STORE VMOVUPS Y0, (DI)(AX*4)

#define FLOAT2(op) \
	ARGS; \
	NAN; \
loop: \
	LOAD2; \
	op  Y1, Y0, Y0; \
	CANON; \
	STORE; \
	NEXT

TEXT ·vAddF32(SB), NOSPLIT, $0-56
	FLOAT2(VADDPS)

TEXT ·vSubF32(SB), NOSPLIT, $0-56
	FLOAT2(VSUBPS)

TEXT ·vMulF32(SB), NOSPLIT, $0-56
	FLOAT2(VMULPS)

TEXT ·vDivF32(SB), NOSPLIT, $0-56
	FLOAT2(VDIVPS)


// equal numbers are the same but for the sign of zero, which and (max) or or (min) of their bits gives
#define MINMAX(op, bits) \
	ARGS; \
	NAN; \
loop: \
	LOAD2; \
	op        Y1, Y0, Y2; \
	VCMPPS    $3, Y1, Y1, Y3; \
	VBLENDVPS Y3, Y0, Y2, Y2; \
	VCMPPS    $0, Y1, Y0, Y3; \
	bits      Y1, Y0, Y4; \
	VBLENDVPS Y3, Y4, Y2, Y0; \
	CANON; \
	STORE; \
	NEXT

TEXT ·vMaxF32(SB), NOSPLIT, $0-56
	MINMAX(VMAXPS, VANDPS)

TEXT ·vMinF32(SB), NOSPLIT, $0-56
	MINMAX(VMINPS, VORPS)


TEXT ·vFmaF32(SB), NOSPLIT, $0-56
	ARGS
	NAN
loop:
	VMOVUPS     (SI)(AX*4), Y1
	VMOVUPS     (R8)(AX*4), Y0
	VFMADD231PS (DX)(AX*4), Y1, Y0
	CANON
	STORE
	NEXT

#define ROUND(mode) \
	ARGS; \
	NAN; \
loop: \
	LOAD1; \
	VROUNDPS mode, Y0, Y0; \
	CANON; \
	STORE; \
	NEXT

TEXT ·vRintF32(SB), NOSPLIT, $0-56
	ROUND($8)

TEXT ·vFloorF32(SB), NOSPLIT, $0-56
	ROUND($9)

TEXT ·vCeilF32(SB), NOSPLIT, $0-56
	ROUND($10)

TEXT ·vTruncF32(SB), NOSPLIT, $0-56
	ROUND($11)


TEXT ·vSqrtF32(SB), NOSPLIT, $0-56
	ARGS
	NAN
loop:
	LOAD1
	VSQRTPS Y0, Y0
	CANON
	STORE
	NEXT

TEXT ·vNegF32(SB), NOSPLIT, $0-56
	ARGS
	VPCMPEQD Y15, Y15, Y15
	VPSLLD   $31, Y15, Y15
loop:
	LOAD1
	VXORPS Y15, Y0, Y0
	STORE
	NEXT

TEXT ·vAbsF32(SB), NOSPLIT, $0-56
	ARGS
	NAN
loop:
	LOAD1
	VANDPS Y15, Y0, Y0
	STORE
	NEXT

#define INT2(op) \
	ARGS; \
loop: \
	LOAD2; \
	op Y1, Y0, Y0; \
	STORE; \
	NEXT

TEXT ·vAddI32(SB), NOSPLIT, $0-56
	INT2(VPADDD)

TEXT ·vSubI32(SB), NOSPLIT, $0-56
	INT2(VPSUBD)

TEXT ·vMulI32(SB), NOSPLIT, $0-56
	INT2(VPMULLD)

TEXT ·vAndI32(SB), NOSPLIT, $0-56
	INT2(VPAND)

TEXT ·vOrI32(SB), NOSPLIT, $0-56
	INT2(VPOR)

TEXT ·vXorI32(SB), NOSPLIT, $0-56
	INT2(VPXOR)

TEXT ·vShlI32(SB), NOSPLIT, $0-56
	INT2(VPSLLVD)

TEXT ·vLshrI32(SB), NOSPLIT, $0-56
	INT2(VPSRLVD)

TEXT ·vAshrI32(SB), NOSPLIT, $0-56
	INT2(VPSRAVD)

TEXT ·vSminI32(SB), NOSPLIT, $0-56
	INT2(VPMINSD)

TEXT ·vSmaxI32(SB), NOSPLIT, $0-56
	INT2(VPMAXSD)

TEXT ·vUminI32(SB), NOSPLIT, $0-56
	INT2(VPMINUD)

TEXT ·vUmaxI32(SB), NOSPLIT, $0-56
	INT2(VPMAXUD)


#define LOGIC(op) \
	ARGS; \
loop: \
	MOVQ (SI)(AX*1), R10; \
	op   (DX)(AX*1), R10; \
	MOVQ R10, (DI)(AX*1); \
	NEXT

TEXT ·vAndI8(SB), NOSPLIT, $0-56
	LOGIC(ANDQ)

TEXT ·vOrI8(SB), NOSPLIT, $0-56
	LOGIC(ORQ)

TEXT ·vXorI8(SB), NOSPLIT, $0-56
	LOGIC(XORQ)

TEXT ·vMadI32(SB), NOSPLIT, $0-56
	ARGS
loop:
	LOAD2
	VPMULLD Y1, Y0, Y0
	VPADDD  (R8)(AX*4), Y0, Y0
	STORE
	NEXT

// predicates are bytes of 0 or 1
#define ONES \
	VPCMPEQB Y13, Y13, Y13; \
	VPABSB   Y13, Y13
#define PREDICATE \
	VEXTRACTI128 $1, Y0, X1; \
	VPACKSSDW    X1, X0, X0; \
	VPACKSSWB    X0, X0, X0; \
	VPAND        X13, X0, X0; \
	VMOVQ        X0, (DI)(AX*1)

#define COMPAREF(how) \
	ARGS; \
	ONES; \
loop: \
	LOAD2; \
	VCMPPS how, Y1, Y0, Y0; \
	PREDICATE; \
	NEXT

TEXT ·vOeqF32(SB), NOSPLIT, $0-56
	COMPAREF($0x00)

TEXT ·vOneF32(SB), NOSPLIT, $0-56
	COMPAREF($0x0c)

TEXT ·vOltF32(SB), NOSPLIT, $0-56
	COMPAREF($0x11)

TEXT ·vOleF32(SB), NOSPLIT, $0-56
	COMPAREF($0x12)

TEXT ·vOgtF32(SB), NOSPLIT, $0-56
	COMPAREF($0x1e)

TEXT ·vOgeF32(SB), NOSPLIT, $0-56
	COMPAREF($0x1d)

TEXT ·vOrdF32(SB), NOSPLIT, $0-56
	COMPAREF($0x07)

TEXT ·vUnoF32(SB), NOSPLIT, $0-56
	COMPAREF($0x03)

TEXT ·vUeqF32(SB), NOSPLIT, $0-56
	COMPAREF($0x08)

TEXT ·vUneF32(SB), NOSPLIT, $0-56
	COMPAREF($0x04)

TEXT ·vUltF32(SB), NOSPLIT, $0-56
	COMPAREF($0x19)

TEXT ·vUleF32(SB), NOSPLIT, $0-56
	COMPAREF($0x1a)

TEXT ·vUgtF32(SB), NOSPLIT, $0-56
	COMPAREF($0x16)

TEXT ·vUgeF32(SB), NOSPLIT, $0-56
	COMPAREF($0x15)


TEXT ·vEqI32(SB), NOSPLIT, $0-56
	ARGS
	ONES
loop:
	LOAD2
	VPCMPEQD Y1, Y0, Y0
	PREDICATE
	NEXT

// Y12 turns a predicate round
#define ALL VPCMPEQD Y12, Y12, Y12
#define NOT VPXOR Y12, Y0, Y0

TEXT ·vNeI32(SB), NOSPLIT, $0-56
	ARGS
	ONES
	ALL
loop:
	LOAD2
	VPCMPEQD Y1, Y0, Y0
	NOT
	PREDICATE
	NEXT

TEXT ·vSltI32(SB), NOSPLIT, $0-56
	ARGS
	ONES
loop:
	LOAD2
	VPCMPGTD Y0, Y1, Y0
	PREDICATE
	NEXT

TEXT ·vSleI32(SB), NOSPLIT, $0-56
	ARGS
	ONES
	ALL
loop:
	LOAD2
	VPCMPGTD Y1, Y0, Y0
	NOT
	PREDICATE
	NEXT

TEXT ·vSgtI32(SB), NOSPLIT, $0-56
	ARGS
	ONES
loop:
	LOAD2
	VPCMPGTD Y1, Y0, Y0
	PREDICATE
	NEXT

TEXT ·vSgeI32(SB), NOSPLIT, $0-56
	ARGS
	ONES
	ALL
loop:
	LOAD2
	VPCMPGTD Y0, Y1, Y0
	NOT
	PREDICATE
	NEXT

// a < b unsigned: not max(a, b) == a
TEXT ·vUltI32(SB), NOSPLIT, $0-56
	ARGS
	ONES
	ALL
loop:
	LOAD2
	VPMAXUD  Y1, Y0, Y1
	VPCMPEQD Y1, Y0, Y0
	NOT
	PREDICATE
	NEXT

TEXT ·vUleI32(SB), NOSPLIT, $0-56
	ARGS
	ONES
loop:
	LOAD2
	VPMINUD  Y1, Y0, Y1
	VPCMPEQD Y1, Y0, Y0
	PREDICATE
	NEXT

TEXT ·vUgtI32(SB), NOSPLIT, $0-56
	ARGS
	ONES
	ALL
loop:
	LOAD2
	VPMINUD  Y1, Y0, Y1
	VPCMPEQD Y1, Y0, Y0
	NOT
	PREDICATE
	NEXT

TEXT ·vUgeI32(SB), NOSPLIT, $0-56
	ARGS
	ONES
loop:
	LOAD2
	VPMAXUD  Y1, Y0, Y1
	VPCMPEQD Y1, Y0, Y0
	PREDICATE
	NEXT

TEXT ·vSelect32(SB), NOSPLIT, $0-56
	ARGS
	VPXOR Y12, Y12, Y12
loop:
	LOAD2
	VPMOVZXBD (R8)(AX*1), Y2
	VPCMPEQD  Y12, Y2, Y2
	VBLENDVPS Y2, Y1, Y0, Y0
	STORE
	NEXT

TEXT ·vSelect64(SB), NOSPLIT, $0-56
	ARGS
	VPXOR Y12, Y12, Y12
loop:
	VMOVUPS   (SI)(AX*8), Y0
	VMOVUPS   (DX)(AX*8), Y1
	VPMOVZXBQ (R8)(AX*1), Y2
	VPCMPEQQ  Y12, Y2, Y2
	VBLENDVPD Y2, Y1, Y0, Y0
	VMOVUPS   Y0, (DI)(AX*8)
	VMOVUPS   32(SI)(AX*8), Y0
	VMOVUPS   32(DX)(AX*8), Y1
	VPMOVZXBQ 4(R8)(AX*1), Y2
	VPCMPEQQ  Y12, Y2, Y2
	VBLENDVPD Y2, Y1, Y0, Y0
	VMOVUPS   Y0, 32(DI)(AX*8)
	NEXT

#define STORE64 \
	VMOVDQU Y0, (DI)(AX*8); \
	VMOVDQU Y1, 32(DI)(AX*8)

TEXT ·vAddI64(SB), NOSPLIT, $0-56
	ARGS
loop:
	VMOVDQU (SI)(AX*8), Y0
	VMOVDQU 32(SI)(AX*8), Y1
	VPADDQ  (DX)(AX*8), Y0, Y0
	VPADDQ  32(DX)(AX*8), Y1, Y1
	STORE64
	NEXT

TEXT ·vAddImm(SB), NOSPLIT, $0-56
	ARGS
	VPBROADCASTQ imm+48(FP), Y2
loop:
	VPADDQ (SI)(AX*8), Y2, Y0
	VPADDQ 32(SI)(AX*8), Y2, Y1
	STORE64
	NEXT

TEXT ·vMulWideS32(SB), NOSPLIT, $0-56
	ARGS
loop:
	VPMOVSXDQ (SI)(AX*4), Y0
	VPMOVSXDQ 16(SI)(AX*4), Y1
	VPMOVSXDQ (DX)(AX*4), Y2
	VPMOVSXDQ 16(DX)(AX*4), Y3
	VPMULDQ   Y2, Y0, Y0
	VPMULDQ   Y3, Y1, Y1
	STORE64
	NEXT

TEXT ·vMadWideS32(SB), NOSPLIT, $0-56
	ARGS
loop:
	VPMOVSXDQ (SI)(AX*4), Y0
	VPMOVSXDQ 16(SI)(AX*4), Y1
	VPMOVSXDQ (DX)(AX*4), Y2
	VPMOVSXDQ 16(DX)(AX*4), Y3
	VPMULDQ   Y2, Y0, Y0
	VPMULDQ   Y3, Y1, Y1
	VPADDQ    (R8)(AX*8), Y0, Y0
	VPADDQ    32(R8)(AX*8), Y1, Y1
	STORE64
	NEXT

TEXT ·vS32ToS64(SB), NOSPLIT, $0-56
	ARGS
loop:
	VPMOVSXDQ (SI)(AX*4), Y0
	VPMOVSXDQ 16(SI)(AX*4), Y1
	STORE64
	NEXT

TEXT ·vU32ToU64(SB), NOSPLIT, $0-56
	ARGS
loop:
	VPMOVZXDQ (SI)(AX*4), Y0
	VPMOVZXDQ 16(SI)(AX*4), Y1
	STORE64
	NEXT

TEXT ·vU64ToU32(SB), NOSPLIT, $0-56
	ARGS
loop:
	VMOVUPS (SI)(AX*8), Y0
	VMOVUPS 32(SI)(AX*8), Y1
	VSHUFPS $0x88, Y1, Y0, Y0
	VPERMQ  $0xd8, Y0, Y0
	STORE
	NEXT

TEXT ·vU8ToU32(SB), NOSPLIT, $0-56
	ARGS
loop:
	VPMOVZXBD (SI)(AX*1), Y0
	STORE
	NEXT

TEXT ·vU16ToU32(SB), NOSPLIT, $0-56
	ARGS
loop:
	VPMOVZXWD (SI)(AX*2), Y0
	STORE
	NEXT

// the low halves of words that are cut to 16 bits, which no saturation changes
TEXT ·vU32ToU16(SB), NOSPLIT, $0-56
	ARGS
	VPCMPEQD Y12, Y12, Y12
	VPSRLD   $16, Y12, Y12
loop:
	LOAD1
	VPAND        Y12, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPACKUSDW    X1, X0, X0
	VMOVDQU      X0, (DI)(AX*2)
	NEXT

TEXT ·vS32ToF32(SB), NOSPLIT, $0-56
	ARGS
loop:
	LOAD1
	VCVTDQ2PS Y0, Y0
	STORE
	NEXT

// what is too large comes as 0x80000000: turned round where the number is positive, cleared where it is none
TEXT ·vF32ToS32(SB), NOSPLIT, $0-56
	ARGS
	MOVL         $0x4f000000, R10
	MOVQ         R10, X12
	VPBROADCASTD X12, Y12
loop:
	LOAD1
	VCVTTPS2DQ Y0, Y1
	VCMPPS     $0x1d, Y12, Y0, Y2
	VPXOR      Y2, Y1, Y1
	VCMPPS     $7, Y0, Y0, Y2
	VPAND      Y2, Y1, Y0
	STORE
	NEXT

TEXT ·vF16ToF32(SB), NOSPLIT, $0-56
	ARGS
	NAN
loop:
	VCVTPH2PS (SI)(AX*2), Y0
	CANON
	STORE
	NEXT

TEXT ·vF32ToF16(SB), NOSPLIT, $0-56
	ARGS
	VPCMPEQD X12, X12, X12
	VPSRLW   $1, X12, X12
loop:
	LOAD1
	VCMPPS       $3, Y0, Y0, Y1
	VEXTRACTI128 $1, Y1, X2
	VPACKSSDW    X2, X1, X1
	VCVTPS2PH    $0, Y0, X0
	VPBLENDVB    X1, X12, X0, X0
	VMOVDQU      X0, (DI)(AX*2)
	NEXT

// Accesses of n threads whose addresses are at addr: they are added delta, must be at most limit and aligned, and then count
// from mem. What is returned is how many threads were served: the next one is not in range or not aligned.

#define OFFSET(reg, at, align, else) \
	MOVQ  at, reg; \
	ADDQ  DX, reg; \
	CMPQ  reg, R8; \
	JHI   else; \
	TESTQ $(align-1), reg; \
	JNE   else

// Y10 and Y11 are 0, 4, ... 28
#define COUNT \
	MOVQ         $0x0c080400, R10; \
	MOVQ         R10, X10; \
	VPMOVZXBQ    X10, Y10; \
	MOVQ         $0x1c181410, R10; \
	MOVQ         R10, X11; \
	VPMOVZXBQ    X11, Y11

// func Load32(d, addr, mem unsafe.Pointer, n int, delta, limit uint64) int
TEXT ·Load32(SB), NOSPLIT, $0-56
	MOVQ d+0(FP), DI
	ADDRESSES
	COUNT
group:
	LEAQ 8(AX), R13
	CMPQ R13, CX
	JGT  rest
	OFFSET(R9, (SI)(AX*8), 4, done)
	VPBROADCASTQ (SI)(AX*8), Y0
	VPADDQ       Y10, Y0, Y1
	VPADDQ       Y11, Y0, Y2
	VPCMPEQQ     (SI)(AX*8), Y1, Y1
	VPCMPEQQ     32(SI)(AX*8), Y2, Y2
	VPAND        Y1, Y2, Y1
	VPMOVMSKB    Y1, R10
	CMPL         R10, $-1
	JNE          same
	LEAQ         28(R9), R11
	CMPQ         R11, R8
	JHI          each
	VMOVUPS      (BX)(R9*1), Y0
	VMOVUPS      Y0, (DI)(AX*4)
	MOVQ         R13, AX
	JMP          group
same:
	VPCMPEQQ     (SI)(AX*8), Y0, Y1
	VPCMPEQQ     32(SI)(AX*8), Y0, Y2
	VPAND        Y1, Y2, Y1
	VPMOVMSKB    Y1, R10
	CMPL         R10, $-1
	JNE          each
	VBROADCASTSS (BX)(R9*1), Y0
	VMOVUPS      Y0, (DI)(AX*4)
	MOVQ         R13, AX
	JMP          group
each:
	OFFSET(R9, (SI)(AX*8), 4, done)
	MOVL (BX)(R9*1), R10
	MOVL R10, (DI)(AX*4)
	INCQ AX
	CMPQ AX, R13
	JLT  each
	CMPQ AX, CX
	JLT  group
	JMP  done
rest:
	MOVQ CX, R13
	CMPQ AX, CX
	JLT  each
done:
	VZEROUPPER
	MOVQ AX, ret+48(FP)
	RET

// func Store32(s, addr, mem unsafe.Pointer, n int, delta, limit uint64) int
TEXT ·Store32(SB), NOSPLIT, $0-56
	MOVQ s+0(FP), DI
	ADDRESSES
	COUNT
group:
	LEAQ 8(AX), R13
	CMPQ R13, CX
	JGT  rest
	OFFSET(R9, (SI)(AX*8), 4, done)
	VPBROADCASTQ (SI)(AX*8), Y0
	VPADDQ       Y10, Y0, Y1
	VPADDQ       Y11, Y0, Y2
	VPCMPEQQ     (SI)(AX*8), Y1, Y1
	VPCMPEQQ     32(SI)(AX*8), Y2, Y2
	VPAND        Y1, Y2, Y1
	VPMOVMSKB    Y1, R10
	CMPL         R10, $-1
	JNE          each
	LEAQ         28(R9), R11
	CMPQ         R11, R8
	JHI          each
	VMOVUPS      (DI)(AX*4), Y0
	VMOVUPS      Y0, (BX)(R9*1)
	MOVQ         R13, AX
	JMP          group
each:
	OFFSET(R9, (SI)(AX*8), 4, done)
	MOVL (DI)(AX*4), R10
	MOVL R10, (BX)(R9*1)
	INCQ AX
	CMPQ AX, R13
	JLT  each
	CMPQ AX, CX
	JLT  group
	JMP  done
rest:
	MOVQ CX, R13
	CMPQ AX, CX
	JLT  each
done:
	VZEROUPPER
	MOVQ AX, ret+48(FP)
	RET

// func Load32x4(d *[4]unsafe.Pointer, addr, mem unsafe.Pointer, n int, delta, limit uint64) int
TEXT ·Load32x4(SB), NOSPLIT, $0-56
	FOUR
	ADDRESSES
group:
	LEAQ 4(AX), R13
	CMPQ R13, CX
	JGT  rest
	OFFSET(R9, (SI)(AX*8), 16, rest)
	VMOVUPS (BX)(R9*1), X0
	OFFSET(R9, 8(SI)(AX*8), 16, rest)
	VMOVUPS (BX)(R9*1), X1
	OFFSET(R9, 16(SI)(AX*8), 16, rest)
	VMOVUPS (BX)(R9*1), X2
	OFFSET(R9, 24(SI)(AX*8), 16, rest)
	VMOVUPS (BX)(R9*1), X3
	VUNPCKLPS X1, X0, X4
	VUNPCKLPS X3, X2, X5
	VUNPCKHPS X1, X0, X6
	VUNPCKHPS X3, X2, X7
	VUNPCKLPD X5, X4, X0
	VUNPCKHPD X5, X4, X1
	VUNPCKLPD X7, X6, X2
	VUNPCKHPD X7, X6, X3
	VMOVUPS X0, (DI)(AX*4)
	VMOVUPS X1, (R10)(AX*4)
	VMOVUPS X2, (R11)(AX*4)
	VMOVUPS X3, (R12)(AX*4)
	MOVQ R13, AX
	JMP  group
rest:
	CMPQ AX, CX
	JGE  done
	OFFSET(R9, (SI)(AX*8), 16, done)
	MOVL (BX)(R9*1), R13
	MOVL R13, (DI)(AX*4)
	MOVL 4(BX)(R9*1), R13
	MOVL R13, (R10)(AX*4)
	MOVL 8(BX)(R9*1), R13
	MOVL R13, (R11)(AX*4)
	MOVL 12(BX)(R9*1), R13
	MOVL R13, (R12)(AX*4)
	INCQ AX
	JMP  rest
done:
	VZEROUPPER
	MOVQ AX, ret+48(FP)
	RET

// func Store32x4(d *[4]unsafe.Pointer, addr, mem unsafe.Pointer, n int, delta, limit uint64) int
TEXT ·Store32x4(SB), NOSPLIT, $0-56
	FOUR
	ADDRESSES
loop:
	CMPQ AX, CX
	JGE  done
	OFFSET(R9, (SI)(AX*8), 16, done)
	MOVL (DI)(AX*4), R13
	MOVL R13, (BX)(R9*1)
	MOVL (R10)(AX*4), R13
	MOVL R13, 4(BX)(R9*1)
	MOVL (R11)(AX*4), R13
	MOVL R13, 8(BX)(R9*1)
	MOVL (R12)(AX*4), R13
	MOVL R13, 12(BX)(R9*1)
	INCQ AX
	JMP  loop
done:
	VZEROUPPER
	MOVQ AX, ret+48(FP)
	RET
