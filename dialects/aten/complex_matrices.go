package aten

import (
	"strings"

	"github.com/aton-project/aton/ssa"
)

func complexSolve(l *Lowering) *ssa.Value {
	x, _ := l.solveComplex(l.Tensor("A"), l.Tensor("B"))
	return x
}

func complexSolveEx(l *Lowering) []*ssa.Value {
	x, info := l.solveComplex(l.Tensor("A"), l.Tensor("B"))
	return []*ssa.Value{x, info}
}

func complexMatrixPower(l *Lowering) *ssa.Value {
	return l.fromReal(l.Aten("aten::linalg_matrix_power", l.asReal(l.Tensor("self"), -2, -1), l.Literal("n")))
}

func complexInvEx(l *Lowering) []*ssa.Value {
	vs := l.AtenN("aten::linalg_inv_ex", l.asReal(l.Tensor("A"), -2, -1))
	return []*ssa.Value{l.fromReal(vs[0]), vs[1]}
}

// asRealMatrix is of functions of a matrix that are those of the real matrix of twice its size.
func asRealMatrix(name, arg string) func(l *Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value { return l.fromReal(l.Aten(name, l.asReal(l.Tensor(arg), -2, -1))) }
}

// complexVander has the powers of 0 to N - 1 along a new last axis.
func complexVander(l *Lowering) *ssa.Value {
	re, im := l.Parts(l.Tensor("x"))
	last := l.Rank(re) - 1
	n, ok := l.sizeOf(re, last).Int()
	if !l.IsNone("N") {
		n, ok = l.Int("N"), true
	}
	if !ok || n < 1 || n > mostFactors {
		l.Fail("powers of complex numbers whose count is not from 1 to %d", mostFactors)
	}
	one := l.fill(l.shapeOf(re), l.DType(re), ssa.Int(1))
	a, b := one, l.Sub(one, one)
	as, bs := []*ssa.Value{}, []*ssa.Value{}
	for range n {
		as, bs = append(as, l.unsqueeze(a, int64(last)+1)), append(bs, l.unsqueeze(b, int64(last)+1))
		a, b = l.timesComplex(a, b, re, im)
	}
	return l.Pair(l.concatV(int64(last)+1, as...), l.concatV(int64(last)+1, bs...))
}

// asReal is the real matrix of twice the size, of rows along one axis and columns along another.
func (l *Lowering) asReal(z *ssa.Value, rows, columns int64) *ssa.Value {
	re, im := l.Parts(z)
	r := int64(l.Rank(re))
	if r < 2 {
		l.Fail("a matrix of rank %d", r)
	}
	axis := func(i int64) int64 { return (i + r) % r }
	return l.concatV(axis(rows), l.concatV(axis(columns), re, l.Neg(im)), l.concatV(axis(columns), im, re))
}

// fromReal is the complex matrix of a real one of twice the size: its left half, upper and lower.
func (l *Lowering) fromReal(v *ssa.Value) *ssa.Value {
	r := l.Rank(v)
	left := l.halves(v, r-1)[0]
	parts := l.halves(left, r-2)
	return l.Pair(parts[0], parts[1])
}

// halves are the first and the second half along an axis.
func (l *Lowering) halves(v *ssa.Value, axis int) []*ssa.Value {
	size := l.sizeOf(v, axis)
	half := l.divSize(size, ConstSize(2))
	of := func(from, to Size) *ssa.Value {
		return l.Slice(v, l.sizeTensor([]Size{from}), l.sizeTensor([]Size{to}), l.i64(int64(axis)), nil)
	}
	return []*ssa.Value{of(ConstSize(0), half), of(half, size)}
}

// solveComplex is the solution of A X = B and what LAPACK says of A; B may be a vector, and real.
func (l *Lowering) solveComplex(a, b *ssa.Value) (x, info *ssa.Value) {
	re, im := l.parts(b)
	if im == nil {
		im = l.fill(l.shapeOf(re), l.DType(re), ssa.Int(0))
	} else {
		re, im = l.Parts(b)
	}
	if l.HasArg("left") && !l.Bool("left") {
		l.Fail("complex equations with the unknown on the left")
	}
	rows := 2 // the axis of the unknowns, from the last one on
	if l.Rank(re) == 1 || l.Rank(re) == l.Rank(a)-1 {
		rows = 1 // a vector, or a batch of them
	}
	vs := l.AtenN("aten::linalg_solve_ex", l.asReal(a, -2, -1), l.concatV(int64(l.Rank(re)-rows), re, im))
	parts := l.halves(vs[0], l.Rank(vs[0])-rows)
	return l.Pair(parts[0], parts[1]), vs[1]
}

// complexTriangular solves with the triangle alone.
func complexTriangular(l *Lowering) *ssa.Value {
	a := l.Tensor("self")
	re, im := l.Parts(a)
	name := "aten::tril"
	if l.Bool("upper") {
		name = "aten::triu"
	}
	re, im = l.Aten(name, re), l.Aten(name, im)
	if l.Bool("unitriangular") {
		off := int64(-1)
		if l.Bool("upper") {
			off = 1
		}
		n := l.sizeOf(re, l.Rank(re)-1)
		k, ok := n.Int()
		if !ok {
			l.Fail("ones on the diagonal of a matrix whose size is known at run time")
		}
		re, im = l.Add(l.Aten(name, re, off), l.Aten("aten::eye", k, l.DType(re))), l.Aten(name, im, off)
	}
	x, _ := l.solveComplex(l.Pair(re, im), l.Tensor("B"))
	return x
}

// complexTwice gives every second of the values that the real matrix has twice, in order.
func complexTwice(name, arg string) func(l *Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		args := []any{l.asReal(l.Tensor(arg), -2, -1)}
		if l.HasArg("UPLO") {
			args[0] = l.asReal(l.hermitian(l.Tensor(arg), l.Str("UPLO")), -2, -1)
		}
		v := l.Aten("aten::"+name, args...)
		last := l.Rank(v) - 1
		return l.Slice(v, l.i64(0), l.i64(1<<62), l.i64(int64(last)), l.i64(2))
	}
}

// hermitian is the matrix that one triangle stands for.
func (l *Lowering) hermitian(z *ssa.Value, triangle string) *ssa.Value {
	name, off := "aten::tril", int64(-1)
	if strings.EqualFold(triangle, "U") {
		name, off = "aten::triu", 1
	}
	re, im := l.Parts(z)
	mirror := func(v *ssa.Value) *ssa.Value { r := l.Rank(v); return l.swapAxes(l.Aten(name, v, off), r-2, r-1) }
	strict := l.Aten(name, im, off)
	return l.Pair(l.Add(l.Aten(name, re), mirror(re)), l.Sub(strict, mirror(im)))
}

// complexNorm is the norm of the lengths of the numbers; those of matrices by singular values are those of the real matrix.
func (l *Lowering) complexNorm() []*ssa.Value {
	name := l.Node.Kind.Name()
	order := ssa.None
	for _, n := range []string{"ord", "p"} {
		if l.HasArg(n) && !l.IsNone(n) {
			order = l.Literal(n)
		}
	}
	var dims []int64
	if l.HasArg("dim") && !l.IsNone("dim") {
		dims = l.Ints("dim")
	}
	nuclear := name == "nuclear_norm" || order.Kind == ssa.StrLit && order.Str() == "nuc"
	matrix := len(dims) == 2 || len(dims) == 0 && l.Rank(l.Value(l.Node.Operand(0))) == 2
	two := order.IsNumber() && (order.Float() == 2 || order.Float() == -2)
	spectral := nuclear || two && matrix && (name == "linalg_norm" || name == "linalg_matrix_norm")
	if !spectral {
		return l.onReal(nil, func(v *ssa.Value) *ssa.Value { return l.complexLength(v) })
	}
	if len(dims) == 0 {
		dims = []int64{-2, -1}
	}
	vs := l.onReal(nil, func(v *ssa.Value) *ssa.Value { return l.asReal(v, dims[0], dims[1]) })
	if nuclear {
		vs[0] = l.scale(vs[0], 0.5)
	}
	return vs
}
