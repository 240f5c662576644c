package aten

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// The algorithms of linear algebra, as LAPACK has them, on batches of matrices
// (..., m, n): an onnx::Scan over the pivots, so that sizes may be dynamic.
// Masks over all rows or columns stand for the ranges that LAPACK loops over.

// matrixOf gives a matrix argument as floats.
func (l *Lowering) matrixOf(name string) *ssa.Value {
	x := l.Tensor(name)
	if d := l.DType(x); d != tensor.Float32 && d != tensor.Float64 {
		l.Fail("linear algebra of %v", d)
	}
	if l.Rank(x) < 2 {
		l.Fail("expected a matrix, found rank %d", l.Rank(x))
	}
	return x
}

// rowCount and colCount are the sizes of the last two axes.
func (l *Lowering) rowCount(a *ssa.Value) Size { return l.sizeOf(a, l.Rank(a)-2) }
func (l *Lowering) colCount(a *ssa.Value) Size { return l.sizeOf(a, l.Rank(a)-1) }

// batchOf is the sizes of all axes but the last two.
func (l *Lowering) batchOf(a *ssa.Value) []Size { return l.sizesOf(a, 0, l.Rank(a)-2) }

// zerosOf makes zeros of a shape.
func (l *Lowering) zerosOf(d tensor.DType, sizes ...Size) *ssa.Value {
	return l.fill(l.sizeTensor(sizes), d, ssa.Int(0))
}

// isEmpty reports a size that is known to be 0.
func isEmpty(ss ...Size) bool {
	for _, s := range ss {
		if s.Known && s.Expr.Is(0) {
			return true
		}
	}
	return false
}

// emptyMatrix reports a matrix, or batch of them, without elements.
func (l *Lowering) emptyMatrix(a *ssa.Value) bool { return l.noSum(a, a) }

// adjoint exchanges the last two axes.
func (l *Lowering) adjoint(a *ssa.Value) *ssa.Value {
	r := l.Rank(a)
	return l.swapAxes(a, r-2, r-1)
}

// eye is the identity (n, n), or its first columns (n, m).
func (l *Lowering) eye(d tensor.DType, n, m Size) *ssa.Value {
	return l.Cast(l.Equal(l.unsqueeze(l.countTo(n), 1), l.unsqueeze(l.countTo(m), 0)), d)
}

// column and row pick by a rank 0 index.
func (l *Lowering) column(a, k *ssa.Value) *ssa.Value { return l.gather(a, k, l.Rank(a)-1) }
func (l *Lowering) row(a, k *ssa.Value) *ssa.Value    { return l.gather(a, k, l.Rank(a)-2) }

// tall makes a column of a vector, wide a row.
func (l *Lowering) tall(v *ssa.Value) *ssa.Value { return l.unsqueeze(v, int64(l.Rank(v))) }
func (l *Lowering) wide(v *ssa.Value) *ssa.Value { return l.unsqueeze(v, int64(l.Rank(v)-1)) }

// tri keeps the triangle of a on and below (or above) the diagonal that is offset to the right.
func (l *Lowering) tri(a *ssa.Value, lower bool, offset int64) *ssa.Value {
	r := l.unsqueeze(l.countTo(l.rowCount(a)), 1)
	c := l.unsqueeze(l.countTo(l.colCount(a)), 0)
	if offset != 0 {
		r = l.Add(r, l.scalarInt(tensor.Int64, offset))
	}
	hidden := l.Less(c, r)
	if lower {
		hidden = l.Greater(c, r)
	}
	return l.Where(hidden, l.Like(a, 0), a)
}

// diagonalOf is the main diagonal.
func (l *Lowering) diagonalOf(a *ssa.Value) *ssa.Value {
	n := l.minSize(l.rowCount(a), l.colCount(a))
	step := l.addSize(l.colCount(a), ConstSize(1))
	flat := l.reshapeSizes(a, append(l.batchOf(a), l.mulSize(l.rowCount(a), l.colCount(a)))...)
	return l.gather(flat, l.Mul(l.countTo(n), l.sizeValue(step)), l.Rank(flat)-1)
}

// lastAxis moves axis 0, along which Scan stacks, to the end.
func (l *Lowering) lastAxis(x *ssa.Value) *ssa.Value {
	r := l.Rank(x)
	return l.transposeIf(x, append(axesFrom(1, r-1), 0))
}

// luResult is P L U = A with L and U in one matrix.
type luResult struct {
	lu, perm *ssa.Value // perm: row i of P'A is row perm[i] of A
	pivots   *ssa.Value // int32, counted from 1, as LAPACK
}

// lu is getrf: partial pivoting, column after column.
func (l *Lowering) lu(a *ssa.Value, pivot bool) luResult {
	m, n := l.rowCount(a), l.colCount(a)
	k := l.minSize(m, n)
	batch := l.batchOf(a)
	rows, cols := l.countTo(m), l.countTo(n)
	zero := l.Like(a, 0)
	perm := l.Expand(rows, l.sizeTensor(append(append([]Size{}, batch...), m)))
	shape := l.shapeOf(a)
	finals, outs := l.Scan([]*ssa.Value{a, perm}, []*ssa.Value{l.countTo(k)}, false, func(st, el []*ssa.Value) ([]*ssa.Value, []*ssa.Value) {
		a, perm, at := st[0], st[1], el[0]
		var p *ssa.Value // (..., 1)
		if pivot {
			mag := l.Where(l.Less(rows, at), l.Like(a, -1), l.Abs(l.column(a, at)))
			p = l.ArgMax(mag, onnx.Axis(-1), onnx.KeepDims(true))
			idx := l.Where(l.Equal(rows, at), p, l.Where(l.Equal(rows, p), at, rows))
			a = l.GatherElements(a, l.Expand(l.tall(idx), shape), onnx.Axis(l.Rank(a)-2))
			perm = l.GatherElements(perm, idx, onnx.Axis(l.Rank(a)-2))
		} else {
			p = l.Expand(l.unsqueeze(at, 0), l.sizeTensor(append(append([]Size{}, batch...), ConstSize(1))))
		}
		top, col := l.row(a, at), l.column(a, at)
		value := l.unsqueeze(l.gather(top, at, l.Rank(top)-1), int64(l.Rank(top)-1))
		below := l.Greater(rows, at)
		usable := l.And(below, l.Not(l.Equal(value, zero)))
		f := l.Where(usable, l.Div(col, l.Where(l.Equal(value, zero), l.Like(a, 1), value)), zero)
		right := l.Where(l.Greater(cols, at), top, zero)
		a = l.Sub(a, l.Mul(l.tall(f), l.wide(right)))
		here := l.And(l.Equal(cols, at), l.unsqueeze(below, 1))
		a = l.Where(here, l.tall(f), a)
		return []*ssa.Value{a, perm}, []*ssa.Value{l.squeeze(p, -1)}
	})
	pivots := l.Cast(l.Add(l.lastAxis(outs[0]), l.scalarInt(tensor.Int64, 1)), tensor.Int32)
	return luResult{finals[0], finals[1], pivots}
}

// swapSign is -1 for an odd number of row exchanges, else 1.
func (l *Lowering) swapSign(r luResult, d tensor.DType) *ssa.Value {
	k := l.sizeOf(r.pivots, l.Rank(r.pivots)-1)
	own := l.Cast(l.Add(l.countTo(k), l.scalarInt(tensor.Int64, 1)), tensor.Int32)
	moved := l.Cast(l.Not(l.Equal(r.pivots, own)), tensor.Int64)
	odd := l.Mod(l.reduce("ReduceSum", moved, []int64{-1}, false), l.scalarInt(tensor.Int64, 2))
	return l.Sub(l.Scalar(d, 1), l.Mul(l.Cast(odd, d), l.Scalar(d, 2)))
}

// permutation is P of P L U, from the order of the rows.
func (l *Lowering) permutation(perm *ssa.Value, d tensor.DType) *ssa.Value {
	m := l.sizeOf(perm, l.Rank(perm)-1)
	return l.Cast(l.Equal(l.unsqueeze(l.countTo(m), 1), l.wide(perm)), d)
}

// unitLower and upperPart split a packed LU into (m, k) and (k, n).
func (l *Lowering) unitLower(lu *ssa.Value) *ssa.Value {
	m, n := l.rowCount(lu), l.colCount(lu)
	k := l.minSize(m, n)
	return l.Add(l.tri(l.firstColumns(lu, k), true, -1), l.eye(l.DType(lu), m, k))
}

func (l *Lowering) upperPart(lu *ssa.Value) *ssa.Value {
	return l.tri(l.firstRows(lu, l.minSize(l.rowCount(lu), l.colCount(lu))), false, 0)
}

func (l *Lowering) firstColumns(a *ssa.Value, k Size) *ssa.Value {
	return l.Slice(a, l.i64(0), l.sizeTensor([]Size{k}), l.i64(-1), nil)
}

func (l *Lowering) firstRows(a *ssa.Value, k Size) *ssa.Value {
	return l.Slice(a, l.i64(0), l.sizeTensor([]Size{k}), l.i64(-2), nil)
}

// zeroPivot is the place, counted from 1, of the first zero on the diagonal of U, 0 if there is none: LAPACK's info.
func (l *Lowering) zeroPivot(lu *ssa.Value) *ssa.Value {
	if l.emptyMatrix(lu) {
		return l.zerosOf(tensor.Int32, l.batchOf(lu)...)
	}
	return l.firstTrue(l.Equal(l.diagonalOf(lu), l.Like(lu, 0)))
}

// firstTrue is the place, counted from 1, of the first true value along the last axis, else 0; int32.
func (l *Lowering) firstTrue(bad *ssa.Value) *ssa.Value {
	n := l.Cast(bad, tensor.Int32)
	any := l.reduce("ReduceMax", n, []int64{-1}, false)
	at := l.ArgMax(n, onnx.Axis(-1), onnx.KeepDims(false))
	return l.Mul(any, l.Add(l.Cast(at, tensor.Int32), l.scalarInt(tensor.Int32, 1)))
}

// matchBatch gives two matrices the same batch axes.
func (l *Lowering) matchBatch(a, b *ssa.Value) (*ssa.Value, *ssa.Value) {
	r := max(l.Rank(a), l.Rank(b))
	a = l.unsqueeze(a, axesFrom(0, r-l.Rank(a))...)
	b = l.unsqueeze(b, axesFrom(0, r-l.Rank(b))...)
	same := true
	batch := make([]Size, r-2)
	for i := range batch {
		x, y := l.sizeOf(a, i), l.sizeOf(b, i)
		same = same && x.Expr.Equal(y.Expr)
		switch {
		case x.Expr.Is(1):
			batch[i] = y
		case y.Expr.Is(1) || x.Expr.Equal(y.Expr):
			batch[i] = x
		default:
			batch[i] = l.maxSize(x, y)
		}
	}
	if same {
		return a, b
	}
	grow := func(v *ssa.Value) *ssa.Value {
		return l.Expand(v, l.sizeTensor(append(append([]Size{}, batch...), l.rowCount(v), l.colCount(v))))
	}
	return grow(a), grow(b)
}

// solveTriangle solves T X = B by substitution. Only the named triangle of T is read.
func (l *Lowering) solveTriangle(t, b *ssa.Value, upper, unit bool) *ssa.Value {
	t, b = l.matchBatch(t, b)
	if l.emptyMatrix(b) {
		return b
	}
	t = l.tri(t, !upper, 0)
	n := l.rowCount(b)
	rows := l.unsqueeze(l.countTo(n), 1)
	finals, _ := l.Scan([]*ssa.Value{l.fill(l.shapeOf(b), l.DType(b), ssa.Int(0))}, []*ssa.Value{l.countTo(n)}, upper, func(st, el []*ssa.Value) ([]*ssa.Value, []*ssa.Value) {
		x, i := st[0], el[0]
		ti := l.row(t, i)
		v := l.Sub(l.wide(l.row(b, i)), l.MatMul(l.wide(ti), x))
		if !unit {
			v = l.Div(v, l.tall(l.tall(l.gather(ti, i, l.Rank(ti)-1))))
		}
		return []*ssa.Value{l.Where(l.Equal(rows, i), v, x)}, nil
	})
	return finals[0]
}

// solveLU solves P L U X = B.
func (l *Lowering) solveLU(r luResult, b *ssa.Value) *ssa.Value {
	lu, b := l.matchBatch(r.lu, b)
	if l.emptyMatrix(b) {
		return b
	}
	perm := l.Expand(r.perm, l.sizeTensor(append(l.batchOf(b), l.rowCount(b))))
	b = l.GatherElements(b, l.Expand(l.tall(perm), l.shapeOf(b)), onnx.Axis(l.Rank(b)-2))
	return l.solveTriangle(lu, l.solveTriangle(lu, b, false, true), true, false)
}

// cholesky is potrf: the lower factor, and LAPACK's info.
func (l *Lowering) cholesky(a *ssa.Value) (lower, info *ssa.Value) {
	n := l.rowCount(a)
	rows, cols := l.countTo(n), l.countTo(n)
	zero := l.Like(a, 0)
	finals, outs := l.Scan([]*ssa.Value{l.fill(l.shapeOf(a), l.DType(a), ssa.Int(0))}, []*ssa.Value{l.countTo(n)}, false, func(st, el []*ssa.Value) ([]*ssa.Value, []*ssa.Value) {
		f, j := st[0], el[0]
		c := l.Sub(l.column(a, j), l.squeeze(l.MatMul(f, l.tall(l.row(f, j))), -1))
		square := l.tall(l.gather(c, j, l.Rank(c)-1))
		c = l.Where(l.Less(rows, j), zero, l.Div(c, l.Sqrt(square)))
		return []*ssa.Value{l.Where(l.Equal(cols, j), l.tall(c), f)}, []*ssa.Value{l.squeeze(square, -1)}
	})
	squares := l.lastAxis(outs[0])
	return finals[0], l.firstTrue(l.Not(l.Greater(squares, zero)))
}

// reflectors is a QR factorization: R above, the tails of the Householder vectors below the diagonal, and tau.
type reflectors struct{ packed, tau *ssa.Value }

// householder is geqrf with larfg's conventions.
func (l *Lowering) householder(a *ssa.Value) reflectors {
	m, n := l.rowCount(a), l.colCount(a)
	rows, cols := l.countTo(m), l.countTo(n)
	zero, one := l.Like(a, 0), l.Like(a, 1)
	finals, outs := l.Scan([]*ssa.Value{a}, []*ssa.Value{l.countTo(l.minSize(m, n))}, false, func(st, el []*ssa.Value) ([]*ssa.Value, []*ssa.Value) {
		r, k := st[0], el[0]
		x := l.column(r, k)
		below := l.Greater(rows, k)
		tail := l.Where(below, x, zero)
		alpha := l.tall(l.gather(x, k, l.Rank(x)-1)) // (..., 1)
		rest := l.reduce("ReduceSum", l.Mul(tail, tail), []int64{-1}, true)
		norm := l.Sqrt(l.Add(l.Mul(alpha, alpha), rest))
		beta := l.Where(l.Less(alpha, zero), norm, l.Neg(norm))
		none := l.Equal(rest, zero) // nothing to annihilate: H is the identity
		tau := l.Where(none, zero, l.Div(l.Sub(beta, alpha), l.Where(none, one, beta)))
		v := l.Where(below, l.Div(tail, l.Where(none, one, l.Sub(alpha, beta))), zero)
		full := l.Where(l.Equal(rows, k), one, v)
		// columns to the right: r - tau v (v' r)
		proj := l.MatMul(l.wide(full), r)
		next := l.Sub(r, l.Mul(l.Mul(l.tall(full), proj), l.tall(tau)))
		right := l.Greater(cols, k)
		next = l.Where(right, next, r)
		// column k: beta on the diagonal, the vector's tail below
		diag := l.Where(l.Equal(rows, k), l.Where(none, alpha, beta), x)
		own := l.Where(below, v, diag)
		next = l.Where(l.Equal(cols, k), l.tall(own), next)
		return []*ssa.Value{next}, []*ssa.Value{l.squeeze(tau, -1)}
	})
	return reflectors{finals[0], l.lastAxis(outs[0])}
}

// reflect multiplies c from the left by H1 H2 ... Hk, or by its transpose.
// The vectors stand below the diagonal of v (..., m, k).
func (l *Lowering) reflect(v, tau, c *ssa.Value, transpose bool) *ssa.Value {
	rows := l.countTo(l.rowCount(v))
	zero, one := l.Like(v, 0), l.Like(v, 1)
	k := l.sizeOf(tau, l.Rank(tau)-1)
	if l.emptyMatrix(c) || isEmpty(k) {
		return c
	}
	finals, _ := l.Scan([]*ssa.Value{c}, []*ssa.Value{l.countTo(k)}, !transpose, func(st, el []*ssa.Value) ([]*ssa.Value, []*ssa.Value) {
		c, i := st[0], el[0]
		x := l.column(v, i)
		x = l.Where(l.Equal(rows, i), one, l.Where(l.Greater(rows, i), x, zero))
		t := l.tall(l.tall(l.gather(tau, i, l.Rank(tau)-1)))
		proj := l.MatMul(l.wide(x), c)
		return []*ssa.Value{l.Sub(c, l.Mul(l.Mul(l.tall(x), proj), t))}, nil
	})
	return finals[0]
}

// identityLike is a batch of identities (..., n, m) for the batch of a.
func (l *Lowering) identityLike(a *ssa.Value, n, m Size) *ssa.Value {
	e := l.eye(l.DType(a), n, m)
	if l.Rank(a) == 2 {
		return e
	}
	return l.Expand(e, l.sizeTensor(append(l.batchOf(a), n, m)))
}

// maxJacobi bounds the size of matrices whose eigenvalues or singular values
// are computed: the rotations are listed at export.
const maxJacobi = 64

// rotations lists the pairs of columns of several sweeps.
func (l *Lowering) rotations(n int64) *ssa.Value {
	if n > maxJacobi {
		l.Fail("eigenvalues or singular values of a matrix of size %d", n)
	}
	const sweeps = 12
	var pairs []int64
	for range sweeps {
		for p := range n {
			for q := p + 1; q < n; q++ {
				pairs = append(pairs, p, q)
			}
		}
	}
	return l.Const(tensor.FromInts(tensor.Int64, []int64{int64(len(pairs) / 2), 2}, pairs))
}

// rotation gives cosine and sine of the angle that makes two columns with
// squared norms app, aqq and inner product apq orthogonal.
func (l *Lowering) rotation(app, aqq, apq *ssa.Value) (c, s *ssa.Value) {
	zero, one := l.Like(app, 0), l.Like(app, 1)
	none := l.Equal(apq, zero)
	theta := l.Div(l.Sub(aqq, app), l.Mul(l.Where(none, one, apq), l.Like(app, 2)))
	sign := l.Where(l.Less(theta, zero), l.Neg(one), one)
	t := l.Div(sign, l.Add(l.Abs(theta), l.Sqrt(l.Add(l.Mul(theta, theta), one))))
	t = l.Where(none, zero, t)
	c = l.Reciprocal(l.Sqrt(l.Add(l.Mul(t, t), one)))
	return c, l.Mul(t, c)
}

// rotateColumns turns columns p and q of a by the angle (c, s), of shape (..., 1).
func (l *Lowering) rotateColumns(a, p, q, c, s, cols *ssa.Value) *ssa.Value {
	x, y := l.column(a, p), l.column(a, q)
	nx := l.Sub(l.Mul(c, x), l.Mul(s, y))
	ny := l.Add(l.Mul(s, x), l.Mul(c, y))
	return l.Where(l.Equal(cols, p), l.tall(nx), l.Where(l.Equal(cols, q), l.tall(ny), a))
}

// svdResult is A V = U S: rotated columns and the rotation, in float64, not sorted.
type svdResult struct {
	av, v *ssa.Value // (..., m, n) and (..., n, n)
	s     *ssa.Value // (..., n)
}

// jacobiSVD is the one-sided Jacobi method (Hestenes) for m >= n, in float64.
func (l *Lowering) jacobiSVD(a *ssa.Value) svdResult {
	a = l.Cast(a, tensor.Float64)
	n := l.static(a, l.Rank(a)-1)
	cols := l.countTo(ConstSize(n))
	v := l.identityLike(a, ConstSize(n), ConstSize(n))
	if n > 1 {
		finals, _ := l.Scan([]*ssa.Value{a, v}, []*ssa.Value{l.rotations(n)}, false, func(st, el []*ssa.Value) ([]*ssa.Value, []*ssa.Value) {
			p, q := l.gather(el[0], l.scalarInt(tensor.Int64, 0), 0), l.gather(el[0], l.scalarInt(tensor.Int64, 1), 0)
			x, y := l.column(st[0], p), l.column(st[0], q)
			dot := func(a, b *ssa.Value) *ssa.Value { return l.reduce("ReduceSum", l.Mul(a, b), []int64{-1}, true) }
			c, s := l.rotation(dot(x, x), dot(y, y), dot(x, y))
			return []*ssa.Value{l.rotateColumns(st[0], p, q, c, s, cols), l.rotateColumns(st[1], p, q, c, s, cols)}, nil
		})
		a, v = finals[0], finals[1]
	}
	return svdResult{a, v, l.Sqrt(l.reduce("ReduceSum", l.Mul(a, a), []int64{-2}, false))}
}

// sorted sorts along the last axis.
func (l *Lowering) sorted(x *ssa.Value, largest bool) *ssa.Value {
	values, _ := l.TopK(x, l.sizeTensor([]Size{l.sizeOf(x, l.Rank(x)-1)}), onnx.Axis(-1), onnx.Largest(largest))
	return values
}

// singularValues are in falling order.
func (l *Lowering) singularValues(a *ssa.Value) *ssa.Value {
	d := l.DType(a)
	m, n := l.rowCount(a), l.colCount(a)
	if l.emptyMatrix(a) {
		return l.zerosOf(d, append(l.batchOf(a), l.minSize(m, n))...)
	}
	if _, ok := m.Int(); ok && !n.Expr.IsConst() || l.wider(a) {
		a = l.adjoint(a)
	}
	return l.Cast(l.sorted(l.jacobiSVD(a).s, true), d)
}

// wider reports a matrix that is known to have more columns than rows.
func (l *Lowering) wider(a *ssa.Value) bool {
	m, ok := l.rowCount(a).Int()
	n, ok2 := l.colCount(a).Int()
	return ok && ok2 && n > m
}

// eighResult is A = V diag(w) V' in float64, not sorted.
type eighResult struct{ w, v *ssa.Value }

// jacobiEigh is Jacobi's method for symmetric matrices; lower names the triangle that is read.
func (l *Lowering) jacobiEigh(a *ssa.Value, lower bool) eighResult {
	a = l.Cast(a, tensor.Float64)
	r := l.Rank(a)
	n := l.static(a, r-1)
	half := l.tri(a, lower, map[bool]int64{true: -1, false: 1}[lower])
	eye := l.eye(tensor.Float64, ConstSize(n), ConstSize(n))
	a = l.Add(l.Add(half, l.adjoint(half)), l.Mul(a, eye))
	v := l.identityLike(a, ConstSize(n), ConstSize(n))
	cols := l.countTo(ConstSize(n))
	if n > 1 {
		finals, _ := l.Scan([]*ssa.Value{a, v}, []*ssa.Value{l.rotations(n)}, false, func(st, el []*ssa.Value) ([]*ssa.Value, []*ssa.Value) {
			p, q := l.gather(el[0], l.scalarInt(tensor.Int64, 0), 0), l.gather(el[0], l.scalarInt(tensor.Int64, 1), 0)
			x, y := l.column(st[0], p), l.column(st[0], q)
			at := func(c, i *ssa.Value) *ssa.Value { return l.tall(l.gather(c, i, l.Rank(c)-1)) }
			c, s := l.rotation(at(x, p), at(y, q), at(y, p))
			b := l.rotateColumns(st[0], p, q, c, s, cols)
			b = l.adjoint(l.rotateColumns(l.adjoint(b), p, q, c, s, cols))
			return []*ssa.Value{b, l.rotateColumns(st[1], p, q, c, s, cols)}, nil
		})
		a, v = finals[0], finals[1]
	}
	return eighResult{l.diagonalOf(a), v}
}

// singularFloor is the number below which singular values count as 0: the
// greater of atol and rtol * the greatest one, with PyTorch's default for rtol.
func (l *Lowering) singularFloor(s, atol, rtol, a *ssa.Value) *ssa.Value {
	top := l.reduce("ReduceMax", s, []int64{-1}, true)
	if rtol == nil {
		n := l.Cast(l.sizeValue(l.maxSize(l.rowCount(a), l.colCount(a))), tensor.Float64)
		rtol = l.Mul(n, l.Scalar(tensor.Float64, epsilonOf(l.DType(a))))
		if atol != nil {
			// with a positive atol the default is 0
			rtol = l.Where(l.Greater(atol, l.Like(atol, 0)), l.Like(rtol, 0), rtol)
		}
	}
	floor := l.Mul(top, rtol)
	if atol != nil {
		floor = l.Max(floor, atol)
	}
	return floor
}

// pseudoInverse is V diag(1/s) U', with small singular values left out.
func (l *Lowering) pseudoInverse(a, atol, rtol *ssa.Value) *ssa.Value {
	d := l.DType(a)
	if l.emptyMatrix(a) {
		return l.zerosOf(d, append(l.batchOf(a), l.colCount(a), l.rowCount(a))...)
	}
	if l.wider(a) {
		return l.adjoint(l.pseudoInverse(l.adjoint(a), atol, rtol))
	}
	r := l.jacobiSVD(a)
	keep := l.Greater(r.s, l.singularFloor(r.s, atol, rtol, a))
	square := l.Where(keep, l.Mul(r.s, r.s), l.Like(r.s, math.Inf(1)))
	y := l.MatMul(l.Div(r.v, l.wide(square)), l.adjoint(r.av))
	return l.Cast(y, d)
}
