package aten

import (
	"math"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// linalg holds torch.linalg (ATen/native/BatchLinearAlgebra.cpp) as far as its
// results do not depend on choices of LAPACK, such as the signs of eigenvectors.
var linalg = Defs{
	"aten::det":            {Doc: "determinant", Alias: "aten::linalg_det", Lower: lowerDet},
	"aten::linalg_det":     {Doc: "determinant", Lower: lowerDet},
	"aten::_linalg_det":    {Doc: "determinant with its LU factorization", LowerN: lowerDetLU},
	"aten::slogdet":        {Doc: "sign and logarithm of the determinant", LowerN: func(l *Lowering) []*ssa.Value { s, a, _ := l.slogdet(); return []*ssa.Value{s, a} }},
	"aten::linalg_slogdet": {Doc: "sign and logarithm of the determinant", LowerN: func(l *Lowering) []*ssa.Value { s, a, _ := l.slogdet(); return []*ssa.Value{s, a} }},
	"aten::_linalg_slogdet": {Doc: "slogdet with its LU factorization", LowerN: func(l *Lowering) []*ssa.Value {
		s, a, r := l.slogdet()
		l.factorsUnread(2)
		return []*ssa.Value{s, a, r.lu, r.pivots}
	}},
	"aten::logdet":          {Doc: "logarithm of the determinant, NaN if that is negative", Lower: lowerLogdet},
	"aten::inverse":         {Doc: "inverse matrix", Gradient: "self: -matmul(transpose(result, -2, -1), matmul(grad, transpose(result, -2, -1)))", Alias: "aten::linalg_inv", Layout: AnyLayout, Autocast: Float32OnCPU, Complex: one(asRealMatrix("aten::inverse", "self")), Lower: func(l *Lowering) *ssa.Value { return l.inverse(l.matrixOf("self")) }},
	"aten::linalg_inv":      {Doc: "inverse matrix", Gradient: "A: -matmul(transpose(result, -2, -1), matmul(grad, transpose(result, -2, -1)))", Layout: AnyLayout, Autocast: Float32OnCPU, Complex: one(asRealMatrix("aten::linalg_inv", "A")), Lower: func(l *Lowering) *ssa.Value { return l.inverse(l.matrixOf("A")) }},
	"aten::linalg_inv_ex":   {Doc: "inverse matrix and LAPACK's info", Layout: AnyLayout, Autocast: Float32OnCPU, Complex: complexInvEx, LowerN: lowerInvEx},
	"aten::linalg_solve":    {Doc: "the X of A X = B", Layout: AnyLayout, Autocast: Float32OnCPU, Complex: one(complexSolve), Lower: func(l *Lowering) *ssa.Value { x, _ := l.solveSystem(); return x }},
	"aten::linalg_solve_ex": {Doc: "the X of A X = B and LAPACK's info", Layout: AnyLayout, Complex: complexSolveEx, LowerN: func(l *Lowering) []*ssa.Value { x, r := l.solveSystem(); return []*ssa.Value{x, l.zeroPivot(r.lu)} }},
	"aten::_linalg_solve_ex": {Doc: "the X of A X = B, the LU factorization and LAPACK's info", LowerN: func(l *Lowering) []*ssa.Value {
		x, r := l.solveSystem()
		l.factorsUnread(1)
		return []*ssa.Value{x, r.lu, r.pivots, l.zeroPivot(r.lu)}
	}},
	"aten::linalg_solve_triangular":    {Doc: "the X of A X = B for triangular A", Layout: AnyLayout, Complex: one(complexTriangular), Lower: lowerSolveTriangular},
	"aten::triangular_solve":           {Doc: "the X of A X = B for triangular A, and A", Layout: AnyLayout, Autocast: Float32OnCPU, LowerN: lowerTriangularSolve},
	"aten::linalg_lu":                  {Doc: "P L U = A", LowerN: lowerLU},
	"aten::linalg_lu_factor":           {Doc: "LU factorization in one matrix, and its pivots", Layout: AnyLayout, LowerN: func(l *Lowering) []*ssa.Value { r := l.factorLU("A"); return []*ssa.Value{r.lu, r.pivots} }},
	"aten::linalg_lu_factor_ex":        {Doc: "LU factorization in one matrix, its pivots and LAPACK's info", Layout: AnyLayout, LowerN: func(l *Lowering) []*ssa.Value { return l.luWithInfo("A") }},
	"aten::_lu_with_info":              {Doc: "LU factorization in one matrix, its pivots and LAPACK's info", Autocast: Float32OnCPU, LowerN: func(l *Lowering) []*ssa.Value { return l.luWithInfo("self") }},
	"aten::lu_unpack":                  {Doc: "P, L and U of a packed LU factorization", LowerN: lowerLUUnpack},
	"aten::lu_solve":                   {Doc: "the X of A X = B from A's LU factorization", Layout: AnyLayout, Autocast: Float32OnCPU, Lower: lowerLUSolve},
	"aten::linalg_lu_solve":            {Doc: "the X of A X = B from A's LU factorization", Layout: AnyLayout, Lower: lowerLinalgLUSolve},
	"aten::linalg_cholesky":            {Doc: "the lower L of L L' = A", Layout: AnyLayout, Autocast: Float32OnCPU, Lower: func(l *Lowering) *ssa.Value { return l.choleskyOf()[0] }},
	"aten::cholesky":                   {Doc: "the lower L of L L' = A", Autocast: Float32OnCPU, Lower: func(l *Lowering) *ssa.Value { return l.choleskyOf()[0] }},
	"aten::linalg_cholesky_ex":         {Doc: "the lower L of L L' = A, and LAPACK's info", Layout: AnyLayout, Autocast: Float32OnCPU, LowerN: (*Lowering).choleskyOf},
	"aten::cholesky_solve":             {Doc: "the X of A X = B from A's Cholesky factor", Layout: AnyLayout, Autocast: Float32OnCPU, Lower: lowerCholeskySolve},
	"aten::cholesky_inverse":           {Doc: "the inverse of A from its Cholesky factor", Layout: AnyLayout, Autocast: Float32OnCPU, Lower: lowerCholeskyInverse},
	"aten::linalg_qr":                  {Doc: "Q R = A", Layout: AnyLayout, Autocast: Float32OnCPU, LowerN: lowerQR},
	"aten::geqrf":                      {Doc: "QR factorization by Householder vectors, in LAPACK's form", Layout: AnyLayout, Autocast: Float32OnCPU, LowerN: func(l *Lowering) []*ssa.Value { h := l.reflectorsOf("self"); return []*ssa.Value{h.packed, h.tau} }},
	"aten::linalg_householder_product": {Doc: "the first columns of a product of Householder matrices", Layout: AnyLayout, Autocast: Float32OnCPU, Lower: lowerHouseholderProduct},
	"aten::orgqr":                      {Doc: "the first columns of a product of Householder matrices", Alias: "aten::linalg_householder_product", Autocast: Float32OnCPU, Lower: lowerHouseholderProduct},
	"aten::ormqr":                      {Doc: "product of a matrix with a product of Householder matrices", Layout: AnyLayout, Autocast: Float32OnCPU, Lower: lowerOrmqr},
	"aten::matrix_power":               {Doc: "A multiplied n times, its inverse for a negative n", Alias: "aten::linalg_matrix_power", Lower: lowerMatrixPower},
	"aten::linalg_matrix_power":        {Doc: "A multiplied n times, its inverse for a negative n", Layout: AnyLayout, Complex: one(complexMatrixPower), Lower: lowerMatrixPower},
	"aten::matrix_exp":                 {Doc: "sum of A^k / k!", Complex: one(asRealMatrix("aten::matrix_exp", "self")), Lower: lowerMatrixExp},
	"aten::linalg_matrix_exp":          {Doc: "sum of A^k / k!", Complex: one(asRealMatrix("aten::linalg_matrix_exp", "self")), Lower: lowerMatrixExp},
	"aten::linalg_tensorinv":           {Doc: "inverse of a tensor read as a matrix", Layout: AnyLayout, Autocast: Float32OnCPU, Lower: lowerTensorInv},
	"aten::linalg_tensorsolve":         {Doc: "the X of A X = B for a tensor read as a matrix", Autocast: Float32OnCPU, Lower: lowerTensorSolve},
	"aten::linalg_svdvals":             {Doc: "singular values, falling", Autocast: Float32OnCPU, Complex: one(complexTwice("linalg_svdvals", "A")), Lower: func(l *Lowering) *ssa.Value { return l.singularValues(l.matrixOf("A")) }},
	"aten::linalg_svd":                 {Doc: "singular values; the vectors' signs are LAPACK's choice", Layout: AnyLayout, Autocast: Float32OnCPU, LowerN: lowerSVD},
	"aten::_linalg_svd":                {Doc: "singular values; the vectors' signs are LAPACK's choice", LowerN: lowerSVD},
	"aten::svd":                        {Doc: "singular values; the vectors' signs are LAPACK's choice", Layout: AnyLayout, Autocast: Float32OnCPU, LowerN: lowerSVD},
	"aten::linalg_eigvalsh":            {Doc: "eigenvalues of a symmetric matrix, rising", Autocast: Float32OnCPU, Complex: one(complexTwice("linalg_eigvalsh", "self")), Lower: func(l *Lowering) *ssa.Value { return l.eigenvalues("self") }},
	"aten::linalg_eigh":                {Doc: "eigenvalues of a symmetric matrix; the vectors' signs are LAPACK's choice", Layout: AnyLayout, Autocast: Float32OnCPU, LowerN: lowerEigh},
	"aten::_linalg_eigh":               {Doc: "eigenvalues of a symmetric matrix; the vectors' signs are LAPACK's choice", LowerN: lowerEigh},
	"aten::linalg_matrix_sqrth":        {Doc: "square root of a symmetric positive matrix", Lower: lowerMatrixSqrth},
	"aten::linalg_polar":               {Doc: "an orthogonal and a symmetric positive factor", LowerN: lowerPolar},
	"aten::linalg_pinv":                {Doc: "pseudo-inverse", Lower: lowerPinv},
	"aten::pinverse":                   {Doc: "pseudo-inverse", Autocast: Float32OnCPU, Lower: lowerPinv},
	"aten::linalg_matrix_rank":         {Doc: "number of singular values that are not small", Autocast: Float32OnCPU, Lower: lowerMatrixRank},
	"aten::linalg_cond":                {Doc: "condition number", Autocast: Float32OnCPU, Lower: lowerCond},
	"aten::linalg_lstsq":               {Doc: "least squares solution of full rank", Layout: AnyLayout, Autocast: Float32OnCPU, LowerN: lowerLstsq},

	"aten::linalg_eig":           {Layout: AnyLayout, Autocast: Float32OnCPU, Why: "the eigenvalues of a general matrix are complex numbers, which ONNX has no operators for"},
	"aten::linalg_eigvals":       {Autocast: Float32OnCPU, Why: "the eigenvalues of a general matrix are complex numbers, which ONNX has no operators for"},
	"aten::_linalg_eigvals":      {Why: "the eigenvalues of a general matrix are complex numbers, which ONNX has no operators for"},
	"aten::linalg_ldl_factor":    {Layout: AnyLayout, Why: "Bunch-Kaufman pivoting has no ONNX form"},
	"aten::linalg_ldl_factor_ex": {Why: "Bunch-Kaufman pivoting has no ONNX form"},
	"aten::linalg_ldl_solve":     {Layout: AnyLayout, Why: "Bunch-Kaufman pivoting has no ONNX form"},
}

func lowerDet(l *Lowering) *ssa.Value {
	name := "A"
	if !l.HasArg(name) {
		name = "self"
	}
	a := l.matrixOf(name)
	if isEmpty(l.rowCount(a)) {
		return l.fill(l.sizeTensor(l.batchOf(a)), l.DType(a), ssa.Int(1))
	}
	if isEmpty(l.batchOf(a)...) {
		return l.zerosOf(l.DType(a), l.batchOf(a)...)
	}
	// before opset 11 there is what float64 needs in any case; a step down would have to factorize once more
	if l.Opset >= 11 && l.DType(a) == tensor.Float32 {
		return l.Det(a)
	}
	return l.detOf(l.lu(a, true), l.DType(a))
}

func (l *Lowering) detOf(r luResult, d tensor.DType) *ssa.Value {
	return l.Mul(l.swapSign(r, d), l.reduce("ReduceProd", l.diagonalOf(r.lu), []int64{-1}, false))
}

// factorsUnread refuses a program that reads the factors, results i and i + 1, which serve the gradient: PyTorch factors the
// transposed matrix where the matrix is contiguous (ATen/native/LinearAlgebra.cpp), which types do not tell.
func (l *Lowering) factorsUnread(i int) {
	for _, r := range l.Node.Results[min(i, len(l.Node.Results)):min(i+2, len(l.Node.Results))] {
		if r.HasUses() {
			l.Fail("the LU factors that %s gives beside its result are those of the matrix or of its transpose, as its memory is laid out; use torch.linalg.lu_factor", l.Node.Kind.Name())
		}
	}
}

func lowerDetLU(l *Lowering) []*ssa.Value {
	r := l.factorLU("A")
	l.factorsUnread(1)
	return []*ssa.Value{l.detOf(r, l.DType(r.lu)), r.lu, r.pivots}
}

func (l *Lowering) slogdet() (sign, logabs *ssa.Value, r luResult) {
	name := "A"
	if !l.HasArg(name) {
		name = "self"
	}
	a := l.matrixOf(name)
	d := l.DType(a)
	if l.emptyMatrix(a) {
		shape := l.sizeTensor(l.batchOf(a))
		return l.fill(shape, d, ssa.Int(1)), l.fill(shape, d, ssa.Int(0)), luResult{lu: a, pivots: l.zerosOf(tensor.Int32, append(l.batchOf(a), ConstSize(0))...)}
	}
	r = l.lu(a, true)
	u := l.diagonalOf(r.lu)
	sign = l.Mul(l.swapSign(r, d), l.reduce("ReduceProd", l.Sign(u), []int64{-1}, false))
	return sign, l.reduce("ReduceSum", l.Log(l.Abs(u)), []int64{-1}, false), r
}

func lowerLogdet(l *Lowering) *ssa.Value {
	sign, logabs, _ := l.slogdet()
	return l.Where(l.Less(sign, l.Like(sign, 0)), l.Like(sign, math.NaN()), logabs)
}

func (l *Lowering) inverse(a *ssa.Value) *ssa.Value {
	if l.emptyMatrix(a) {
		return a
	}
	n := l.rowCount(a)
	return l.solveLU(l.lu(a, true), l.identityLike(a, n, n))
}

func lowerInvEx(l *Lowering) []*ssa.Value {
	a := l.matrixOf("A")
	if l.emptyMatrix(a) {
		return []*ssa.Value{a, l.zerosOf(tensor.Int32, l.batchOf(a)...)}
	}
	r := l.lu(a, true)
	n := l.rowCount(a)
	return []*ssa.Value{l.solveLU(r, l.identityLike(a, n, n)), l.zeroPivot(r.lu)}
}

// solveSystem solves A X = B, or X A = B. B is a vector, or a batch of vectors of A's batch.
func (l *Lowering) solveSystem() (*ssa.Value, luResult) {
	a, b := l.matrixOf("A"), l.Tensor("B")
	vector := l.Rank(b) == 1 || l.Rank(b) == l.Rank(a)-1 && sameSizes(l.Shape(b), l.Shape(a)[:l.Rank(a)-1])
	if vector {
		b = l.tall(b)
	}
	left := !l.HasArg("left") || l.Bool("left")
	if l.emptyMatrix(a) || l.emptyMatrix(b) {
		x, _ := l.matchBatch(b, a)
		if vector {
			x = l.squeeze(x, -1)
		}
		return x, luResult{lu: a, pivots: l.zerosOf(tensor.Int32, append(l.batchOf(a), l.rowCount(a))...)}
	}
	r := l.lu(a, true)
	var x *ssa.Value
	if left {
		x = l.solveLU(r, b)
	} else {
		x = l.adjoint(l.solveLU(l.lu(l.adjoint(a), true), l.adjoint(b)))
	}
	if vector {
		x = l.squeeze(x, -1)
	}
	return x, r
}

func sameSizes(a, b []sym.Expr) bool {
	return slices.EqualFunc(a, b, sym.Expr.Equal)
}

// triangular solves with all of BLAS's options.
func (l *Lowering) triangular(a, b *ssa.Value, upper, left, transpose, unit bool) *ssa.Value {
	if transpose {
		a, upper = l.adjoint(a), !upper
	}
	if left {
		return l.solveTriangle(a, b, upper, unit)
	}
	return l.adjoint(l.solveTriangle(l.adjoint(a), l.adjoint(b), !upper, unit))
}

func lowerSolveTriangular(l *Lowering) *ssa.Value {
	return l.triangular(l.matrixOf("self"), l.matrixOf("B"), l.Bool("upper"), l.Bool("left"), false, l.Bool("unitriangular"))
}

func lowerTriangularSolve(l *Lowering) []*ssa.Value {
	a, b := l.matrixOf("A"), l.matrixOf("self")
	wide, _ := l.matchBatch(a, b)
	return []*ssa.Value{l.triangular(a, b, l.Bool("upper"), true, l.Bool("transpose"), l.Bool("unitriangular")), wide}
}

func (l *Lowering) factorLU(name string) luResult {
	a := l.matrixOf(name)
	if l.HasArg("pivot") && !l.Bool("pivot") {
		l.Fail("LU without pivoting, which PyTorch has on CUDA only")
	}
	if l.emptyMatrix(a) {
		k := l.minSize(l.rowCount(a), l.colCount(a))
		perm := l.Expand(l.countTo(l.rowCount(a)), l.sizeTensor(append(l.batchOf(a), l.rowCount(a))))
		own := l.Cast(l.Add(l.countTo(k), l.scalarInt(tensor.Int64, 1)), tensor.Int32)
		return luResult{a, perm, l.Expand(own, l.sizeTensor(append(l.batchOf(a), k)))}
	}
	return l.lu(a, true)
}

func lowerLU(l *Lowering) []*ssa.Value {
	r := l.factorLU("A")
	return []*ssa.Value{l.permutation(r.perm, l.DType(r.lu)), l.unitLower(r.lu), l.upperPart(r.lu)}
}

func (l *Lowering) luWithInfo(name string) []*ssa.Value {
	r := l.factorLU(name)
	return []*ssa.Value{r.lu, r.pivots, l.zeroPivot(r.lu)}
}

// rowOrder is the order of the rows that LAPACK's exchanges give.
func (l *Lowering) rowOrder(pivots *ssa.Value, m Size) *ssa.Value {
	r := l.Rank(pivots)
	rows := l.countTo(m)
	perm := l.Expand(rows, l.sizeTensor(append(l.sizesOf(pivots, 0, r-1), m)))
	k := l.sizeOf(pivots, r-1)
	if isEmpty(k, m) || isEmpty(l.sizesOf(pivots, 0, r-1)...) {
		return perm
	}
	p := l.Sub(l.Cast(pivots, tensor.Int64), l.scalarInt(tensor.Int64, 1))
	first := l.transposeIf(p, append([]int64{int64(r - 1)}, axesFrom(0, r-1)...)) // (k, ...)
	finals, _ := l.Scan([]*ssa.Value{perm}, []*ssa.Value{l.countTo(k), first}, false, func(st, el []*ssa.Value) ([]*ssa.Value, []*ssa.Value) {
		at, to := el[0], l.tall(el[1])
		idx := l.Where(l.Equal(rows, at), to, l.Where(l.Equal(rows, to), at, rows))
		return []*ssa.Value{l.GatherElements(st[0], idx, onnx.Axis(r-1))}, nil
	})
	return finals[0]
}

func lowerLUUnpack(l *Lowering) []*ssa.Value {
	lu := l.matrixOf("LU_data")
	d := l.DType(lu)
	e := l.emptyVector(d)
	out := []*ssa.Value{e, e, e}
	if l.Bool("unpack_pivots") {
		out[0] = l.permutation(l.rowOrder(l.Tensor("LU_pivots"), l.rowCount(lu)), d)
	}
	if l.Bool("unpack_data") {
		out[1], out[2] = l.unitLower(lu), l.upperPart(lu)
	}
	return out
}

func (l *Lowering) solveFactored(lu, pivots, b *ssa.Value, left, adjoint bool) *ssa.Value {
	if !left {
		return l.adjoint(l.solveFactored(lu, pivots, l.adjoint(b), true, !adjoint))
	}
	r := luResult{lu: lu, perm: l.rowOrder(pivots, l.rowCount(lu))}
	if !adjoint {
		return l.solveLU(r, b)
	}
	// A' X = B: U' Y = B, L' Z = Y, X = P Z
	lu, b = l.matchBatch(lu, b)
	if l.emptyMatrix(b) {
		return b
	}
	y := l.solveTriangle(l.adjoint(lu), b, false, false)
	z := l.solveTriangle(l.adjoint(lu), y, true, true)
	return l.MatMul(l.permutation(r.perm, l.DType(z)), z)
}

func lowerLUSolve(l *Lowering) *ssa.Value {
	return l.solveFactored(l.matrixOf("LU_data"), l.Tensor("LU_pivots"), l.matrixOf("self"), true, false)
}

func lowerLinalgLUSolve(l *Lowering) *ssa.Value {
	return l.solveFactored(l.matrixOf("LU"), l.Tensor("pivots"), l.matrixOf("B"), l.Bool("left"), l.Bool("adjoint"))
}

func (l *Lowering) choleskyOf() []*ssa.Value {
	a := l.matrixOf("self")
	if l.emptyMatrix(a) {
		return []*ssa.Value{a, l.zerosOf(tensor.Int32, l.batchOf(a)...)}
	}
	if l.Bool("upper") {
		a = l.adjoint(a) // the upper triangle is the one that is read
	}
	f, info := l.cholesky(a)
	if l.Bool("upper") {
		f = l.adjoint(f)
	}
	return []*ssa.Value{f, info}
}

func lowerCholeskySolve(l *Lowering) *ssa.Value {
	b, f, upper := l.matrixOf("self"), l.matrixOf("input2"), l.Bool("upper")
	if upper {
		f = l.adjoint(f)
	}
	return l.solveTriangle(l.adjoint(f), l.solveTriangle(f, b, false, false), true, false)
}

func lowerCholeskyInverse(l *Lowering) *ssa.Value {
	f, upper := l.matrixOf("self"), l.Bool("upper")
	if l.emptyMatrix(f) {
		return f
	}
	if upper {
		f = l.adjoint(f)
	}
	n := l.rowCount(f)
	return l.solveTriangle(l.adjoint(f), l.solveTriangle(f, l.identityLike(f, n, n), false, false), true, false)
}

func (l *Lowering) reflectorsOf(name string) reflectors {
	a := l.matrixOf(name)
	if l.emptyMatrix(a) {
		return reflectors{a, l.zerosOf(l.DType(a), append(l.batchOf(a), l.minSize(l.rowCount(a), l.colCount(a)))...)}
	}
	return l.householder(a)
}

func lowerQR(l *Lowering) []*ssa.Value {
	h := l.reflectorsOf("A")
	m, n := l.rowCount(h.packed), l.colCount(h.packed)
	k := l.minSize(m, n)
	upper := l.tri(h.packed, false, 0)
	switch mode := l.Str("mode"); mode {
	case "r":
		return []*ssa.Value{l.emptyVector(l.DType(h.packed)), l.firstRows(upper, k)}
	case "reduced":
		q := l.reflect(h.packed, h.tau, l.identityLike(h.packed, m, k), false)
		return []*ssa.Value{q, l.firstRows(upper, k)}
	case "complete":
		return []*ssa.Value{l.reflect(h.packed, h.tau, l.identityLike(h.packed, m, m), false), upper}
	default:
		l.Fail("unknown mode %q", mode)
	}
	return nil
}

func lowerHouseholderProduct(l *Lowering) *ssa.Value {
	name, tau := "input", "tau"
	if !l.HasArg(name) {
		name, tau = "self", "input2"
	}
	v := l.matrixOf(name)
	if l.emptyMatrix(v) {
		return v
	}
	return l.reflect(v, l.Tensor(tau), l.identityLike(v, l.rowCount(v), l.colCount(v)), false)
}

func lowerOrmqr(l *Lowering) *ssa.Value {
	v, tau, c := l.matrixOf("self"), l.Tensor("input2"), l.matrixOf("input3")
	if l.Bool("left") {
		return l.reflect(v, tau, c, l.Bool("transpose"))
	}
	return l.adjoint(l.reflect(v, tau, l.adjoint(c), !l.Bool("transpose")))
}

func lowerMatrixPower(l *Lowering) *ssa.Value {
	a, n := l.Tensor("self"), l.Int("n")
	if n < 0 {
		a, n = l.inverse(l.matrixOf("self")), -n
	}
	if l.emptyMatrix(a) {
		return a
	}
	if n == 0 {
		m := l.rowCount(a)
		return l.identityLike(a, m, m)
	}
	var y *ssa.Value
	for {
		if n&1 == 1 {
			if y == nil {
				y = a
			} else {
				y = l.intMatMul(y, a)
			}
		}
		if n >>= 1; n == 0 {
			return y
		}
		a = l.intMatMul(a, a)
	}
}

// lowerMatrixExp scales by 2^-12, sums 13 terms of Taylor's series and squares
// 12 times, all in float64: what then overflows is out of float32's range anyway.
func lowerMatrixExp(l *Lowering) *ssa.Value {
	a := l.matrixOf("self")
	d := l.DType(a)
	if l.emptyMatrix(a) {
		return a
	}
	if d == tensor.Float64 {
		l.Fail("matrix_exp of float64, which would lose digits")
	}
	const squarings, terms = 12, 13
	x := l.Mul(l.Cast(a, tensor.Float64), l.Scalar(tensor.Float64, math.Ldexp(1, -squarings)))
	n := l.rowCount(a)
	one := l.eye(tensor.Float64, n, n)
	// Horner: 1 + x (1 + x/2 (1 + x/3 (...)))
	y := l.Add(one, l.Mul(x, l.Scalar(tensor.Float64, 1.0/terms)))
	for k := terms - 1; k > 0; k-- {
		y = l.Add(one, l.Mul(l.MatMul(x, y), l.Scalar(tensor.Float64, 1/float64(k))))
	}
	for range squarings {
		y = l.MatMul(y, y)
	}
	return l.Cast(y, d)
}

func lowerTensorInv(l *Lowering) *ssa.Value {
	a, ind := l.matrixOf("self"), int(l.Int("ind"))
	r := l.Rank(a)
	if ind < 1 || ind >= r {
		l.Fail("tensorinv of rank %d with ind %d", r, ind)
	}
	first, last := l.sizesOf(a, 0, ind), l.sizesOf(a, ind, r)
	inv := l.inverse(l.reshapeSizes(a, l.sizeProduct(first...), l.sizeProduct(last...)))
	return l.reshapeSizes(inv, append(append([]Size{}, last...), first...)...)
}

func lowerTensorSolve(l *Lowering) *ssa.Value {
	a, b := l.matrixOf("self"), l.Tensor("other")
	r := l.Rank(a)
	if dims := l.Ints("dims"); len(dims) > 0 {
		perm := []int64{}
		moved := make([]int64, len(dims))
		for i, d := range dims {
			moved[i] = int64(l.wrap(d, r))
		}
		for i := range r {
			if !contains(moved, int64(i)) {
				perm = append(perm, int64(i))
			}
		}
		a = l.transposeIf(a, append(perm, moved...))
	}
	rb := l.Rank(b)
	rest := l.sizesOf(a, rb, r)
	n := l.sizeProduct(rest...)
	x := l.solveLU(l.lu(l.reshapeSizes(a, l.sizeProduct(l.sizesOf(b, 0, rb)...), n), true), l.reshapeSizes(b, n, ConstSize(1)))
	return l.reshapeSizes(x, rest...)
}

// lowerSVD gives the singular values. The vectors are determined up to signs
// only, so a model that reads them is refused.
func lowerSVD(l *Lowering) []*ssa.Value {
	name := "A"
	if !l.HasArg(name) {
		name = "self"
	}
	a := l.matrixOf(name)
	d := l.DType(a)
	m, n := l.rowCount(a), l.colCount(a)
	k := l.minSize(m, n)
	full := l.Bool("full_matrices")
	vectors := !l.HasArg("compute_uv") || l.Bool("compute_uv")
	if l.HasArg("some") {
		full = !l.Bool("some")
	}
	cols, rows := k, k
	if full {
		cols, rows = m, n
	}
	batch := l.batchOf(a)
	s := l.singularValues(a)
	switch {
	case !vectors && l.Node.Kind == "aten::svd":
		return []*ssa.Value{l.zerosOf(d, append(batch, m, m)...), s, l.zerosOf(d, append(batch, n, n)...)}
	case !vectors:
		return []*ssa.Value{l.emptyVector(d), s, l.emptyVector(d)}
	}
	for _, i := range []int{0, 2} {
		if l.Node.Results[i].HasUses() && !l.emptyMatrix(a) {
			l.failSigns("singular vectors", "torch.linalg.svdvals")
		}
	}
	u := l.identityLike(a, m, cols)
	if l.Node.Kind == "aten::svd" {
		return []*ssa.Value{u, s, l.identityLike(a, n, rows)}
	}
	return []*ssa.Value{u, s, l.identityLike(a, rows, n)}
}

// failSigns refuses vectors that two right programs may give with different signs.
func (l *Lowering) failSigns(vectors, values string) {
	panic(&Failure{ID: "unsupported-args", Message: vectors + ": their signs are not determined",
		Hint: "compute what needs them outside of the module; " + values + " alone is converted"})
}

func (l *Lowering) eigenvalues(name string) *ssa.Value {
	a := l.matrixOf(name)
	d := l.DType(a)
	if l.emptyMatrix(a) {
		return l.zerosOf(d, append(l.batchOf(a), l.rowCount(a))...)
	}
	return l.Cast(l.sorted(l.jacobiEigh(a, l.Str("UPLO") != "U" && l.Str("UPLO") != "u").w, false), d)
}

func lowerEigh(l *Lowering) []*ssa.Value {
	name := "A"
	if !l.HasArg(name) {
		name = "self"
	}
	a := l.matrixOf(name)
	w := l.eigenvalues(name)
	if l.HasArg("compute_v") && !l.Bool("compute_v") {
		return []*ssa.Value{w, l.emptyVector(l.DType(a))}
	}
	if l.Node.Results[1].HasUses() && !l.emptyMatrix(a) {
		l.failSigns("eigenvectors", "torch.linalg.eigvalsh")
	}
	return []*ssa.Value{w, a}
}

func lowerMatrixSqrth(l *Lowering) *ssa.Value {
	a := l.matrixOf("self")
	if l.emptyMatrix(a) {
		return a
	}
	e := l.jacobiEigh(a, true)
	root := l.Sqrt(l.Max(e.w, l.Like(e.w, 0)))
	return l.Cast(l.MatMul(l.Mul(e.v, l.wide(root)), l.adjoint(e.v)), l.DType(a))
}

// lowerPolar: A = (A V S^-1 V') (V S V').
func lowerPolar(l *Lowering) []*ssa.Value {
	a := l.matrixOf("A")
	d := l.DType(a)
	if l.emptyMatrix(a) {
		n := l.colCount(a)
		return []*ssa.Value{a, l.zerosOf(d, append(l.batchOf(a), n, n)...)}
	}
	if l.wider(a) {
		l.Fail("the polar decomposition of a matrix with more columns than rows")
	}
	r := l.jacobiSVD(a)
	vt := l.adjoint(r.v)
	u := l.MatMul(l.Div(r.av, l.wide(r.s)), vt)
	h := l.MatMul(l.Mul(r.v, l.wide(r.s)), vt)
	return []*ssa.Value{l.Cast(u, d), l.Cast(h, d)}
}

// tolerances reads atol and rtol, rank 0 float64 or one for each matrix; nil where not given.
func (l *Lowering) tolerances() (atol, rtol *ssa.Value) {
	read := func(name string) *ssa.Value {
		if l.IsNone(name) {
			return nil
		}
		v := l.Cast(l.Tensor(name), tensor.Float64)
		if l.Rank(v) > 0 {
			v = l.tall(v)
		}
		return v
	}
	return read("atol"), read("rtol")
}

func lowerPinv(l *Lowering) *ssa.Value {
	atol, rtol := l.tolerances()
	if l.HasArg("rcond") {
		rtol = l.Cast(l.Tensor("rcond"), tensor.Float64)
		if l.Rank(rtol) > 0 {
			rtol = l.tall(rtol)
		}
	}
	a := l.matrixOf("self")
	if l.Bool("hermitian") && !l.emptyMatrix(a) {
		half := l.tri(a, true, -1)
		n := l.rowCount(a)
		a = l.Add(l.Add(half, l.adjoint(half)), l.Mul(a, l.eye(l.DType(a), n, n)))
	}
	return l.pseudoInverse(a, atol, rtol)
}

func lowerMatrixRank(l *Lowering) *ssa.Value {
	name := "self"
	if !l.HasArg(name) {
		name = "input"
	}
	a := l.matrixOf(name)
	atol, rtol := l.tolerances()
	if l.HasArg("tol") {
		atol = l.Cast(l.Tensor("tol"), tensor.Float64)
		if l.Rank(atol) > 0 {
			atol = l.tall(atol)
		}
		rtol = l.Scalar(tensor.Float64, 0)
	}
	if l.emptyMatrix(a) {
		return l.zerosOf(tensor.Int64, l.batchOf(a)...)
	}
	if l.Bool("hermitian") {
		half := l.tri(a, true, -1)
		n := l.rowCount(a)
		a = l.Add(l.Add(half, l.adjoint(half)), l.Mul(a, l.eye(l.DType(a), n, n)))
	}
	s := l.Cast(l.singularValues(a), tensor.Float64)
	big := l.Greater(s, l.singularFloor(s, atol, rtol, a))
	return l.reduce("ReduceSum", l.Cast(big, tensor.Int64), []int64{-1}, false)
}

// lowerCond: the ratio of singular values for p = 2 and -2, else |A| |A^-1|.
func lowerCond(l *Lowering) *ssa.Value {
	a := l.matrixOf("self")
	d := l.DType(a)
	if l.emptyMatrix(a) {
		return l.zerosOf(d, l.batchOf(a)...)
	}
	p := 2.0
	var ord any
	if !l.IsNone("p") {
		if lit := l.Literal("p"); lit.Kind == ssa.StrLit {
			p, ord = 0, lit.Str()
		} else {
			p = l.Float("p")
			ord = p
		}
	}
	if math.Abs(p) == 2 {
		s := l.singularValues(a)
		top, low := l.reduce("ReduceMax", s, []int64{-1}, false), l.reduce("ReduceMin", s, []int64{-1}, false)
		if p > 0 {
			return l.Div(top, low)
		}
		return l.Div(low, top)
	}
	norm := func(v *ssa.Value) *ssa.Value {
		if s, ok := ord.(string); ok {
			return l.Aten("aten::linalg_matrix_norm.str_ord", v, s)
		}
		return l.Aten("aten::linalg_matrix_norm", v, ord)
	}
	return l.Mul(norm(a), norm(l.inverse(a)))
}

// lowerLstsq is the solution of least norm by the pseudo-inverse, which all of
// LAPACK's drivers find; residuals exist for more rows than columns of full rank.
func lowerLstsq(l *Lowering) []*ssa.Value {
	a, b := l.matrixOf("self"), l.Tensor("b")
	d := l.DType(a)
	driver := l.Str("driver")
	if driver == "" {
		driver = "gelsy"
	}
	vector := l.Rank(b) == l.Rank(a)-1
	if vector {
		b = l.tall(b)
	}
	m, n := l.rowCount(a), l.colCount(a)
	if l.emptyMatrix(b) && !l.emptyMatrix(a) {
		l.Fail("least squares without right sides")
	}
	if l.emptyMatrix(a) {
		return l.emptyLstsq(a, b, driver, vector)
	}
	var rtol *ssa.Value
	if !l.IsNone("rcond") {
		rtol = l.Scalar(tensor.Float64, l.Float("rcond"))
	}
	s := l.Cast(l.singularValues(a), tensor.Float64)
	big := l.Greater(s, l.singularFloor(s, nil, rtol, a))
	rank := l.reduce("ReduceSum", l.Cast(big, tensor.Int64), []int64{-1}, false)
	x := l.MatMul(l.pseudoInverse(a, nil, rtol), b)
	residuals := l.emptyVector(d)
	rows, ok := m.Int()
	cols, ok2 := n.Int()
	switch {
	case driver == "gelsy" || ok && ok2 && rows <= cols:
	case driver == "gels" && ok && ok2:
		e := l.Sub(l.MatMul(a, x), b)
		residuals = l.reduce("ReduceSum", l.Mul(e, e), []int64{-2}, false)
	case l.Rank(a) == 2:
		// they are there if there are more rows than columns, and the columns are independent
		e := l.Sub(l.MatMul(a, x), b)
		there := l.Greater(l.sizeValue(m), l.sizeValue(n))
		if driver != "gels" {
			there = l.And(there, l.Equal(rank, l.sizeValue(n)))
		}
		k := l.Mul(l.Cast(there, tensor.Int64), l.sizeValue(l.colCount(b)))
		residuals = l.Slice(l.reduce("ReduceSum", l.Mul(e, e), []int64{-2}, false), l.i64(0), l.unsqueeze(k, 0), l.i64(0), nil)
	case l.Node.Results[1].HasUses():
		l.Fail("residuals, which exist or not depending on the rank that driver %s finds", driver)
	}
	values := l.emptyVector(d)
	if driver == "gelsd" || driver == "gelss" {
		values = l.Cast(s, d)
	}
	if driver == "gels" {
		rank = l.Const(tensor.Ints())
	}
	if vector {
		x = l.squeeze(x, -1)
	}
	return []*ssa.Value{x, residuals, rank, values}
}

// emptyLstsq is lstsq of a matrix without rows or columns.
func (l *Lowering) emptyLstsq(a, b *ssa.Value, driver string, vector bool) []*ssa.Value {
	d, r := l.DType(a), l.Rank(a)
	m, n := l.static(a, r-2), l.static(a, r-1)
	fill := func(d tensor.DType, sizes ...Size) *ssa.Value { return l.fill(l.sizeTensor(sizes), d, ssa.Int(0)) }
	batch := l.sizesOf(a, 0, r-2)
	x := fill(d, append(slices.Clone(batch), ConstSize(n), l.sizeOf(b, r-1))...)
	residuals, values, rank := l.emptyVector(d), l.emptyVector(d), l.Const(tensor.Ints())
	if m > n && driver != "gelsy" {
		residuals = l.reduce("ReduceSum", l.Mul(b, b), []int64{-2}, false)
	}
	if driver != "gels" {
		rank = fill(tensor.Int64, batch...)
	}
	if driver == "gelsd" || driver == "gelss" {
		values = fill(d, append(slices.Clone(batch), ConstSize(min(m, n)))...)
	}
	if vector {
		x = l.squeeze(x, -1)
	}
	return []*ssa.Value{x, residuals, rank, values}
}
