package simplify

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/sym"
)

// heads holds the rules on how attention takes projections apart into heads and puts them together, as exported
// programs and scripts spell it out.
func (s *simplifier) heads() []rewrite.Rule {
	return []rewrite.Rule{
		{Name: "gathers-to-split", Kinds: []ssa.Kind{"onnx::Reshape"}, Apply: s.gathersToSplit},
		{Name: "reshape-transposed", Kinds: []ssa.Kind{"onnx::Reshape"}, Apply: s.reshapeTransposed},
		{Name: "rows-to-batch", Kinds: []ssa.Kind{"onnx::Transpose"}, Apply: s.rowsToBatch, Rounds: true},
		{Name: "transpose-over-heads", Kinds: []ssa.Kind{"onnx::Transpose"}, Apply: s.transposeOverHeads},
	}
}

// gathersToSplit makes one Split of a Reshape that takes an axis apart and of Gathers of its places.
func (s *simplifier) gathersToSplit(r *rewrite.Rewriter, o *ssa.Op) bool {
	in, out := o.Operand(0).Tensor(), o.Result(0).Tensor()
	if in == nil || out == nil || !in.Ranked || !out.Ranked || len(out.Dims) != len(in.Dims)+1 || isConst(o.Operand(0)) {
		return false
	}
	a := 0
	for a < len(in.Dims) && in.Dims[a].Equal(out.Dims[a]) {
		a++
	}
	if a == len(in.Dims) {
		return false
	}
	for i := a + 1; i < len(in.Dims); i++ {
		if !in.Dims[i].Equal(out.Dims[i+1]) {
			return false
		}
	}
	n, ok1 := out.Dims[a].Int()
	each, ok2 := out.Dims[a+1].Int()
	if !ok1 || !ok2 || n < 2 || n > 64 || each < 1 || !in.Dims[a].Is(n*each) {
		return false
	}
	type part struct {
		op *ssa.Op
		at int64
	}
	var parts []part
	for u := range o.Result(0).Uses() {
		g := u.Op()
		if g == nil || g.Kind != "onnx::Gather" || g.Operand(0) != o.Result(0) || g.Operand(1) == o.Result(0) || g.Block() != o.Block() || rank(g.Operand(1)) != 0 {
			return false
		}
		axis, ok := axisOf(g, "axis", 0, len(out.Dims))
		k, known := constOne(g.Operand(1))
		if k < 0 {
			k += n
		}
		if !ok || axis != a || !known || k < 0 || k >= n {
			return false
		}
		parts = append(parts, part{g, k})
	}
	if len(parts) < 2 {
		return false
	}
	sizes := make([]int64, n)
	for i := range sizes {
		sizes[i] = each
	}
	vs := r.CreateN("onnx::Split", int(n), []*ssa.Value{o.Operand(0), ints(r, sizes...)}, onnx.Axis(a))
	for _, p := range parts {
		if !r.Fits(vs[p.at], p.op.Result(0)) {
			return false
		}
	}
	for _, p := range parts {
		r.Replace(p.op, vs[p.at])
	}
	return true
}

// groups finds the run of sizes in out that each size of in was split into, nil if out is no such split.
func groups(in, out []sym.Expr) [][]sym.Expr {
	var gs [][]sym.Expr
	k := 0
	for _, d := range in {
		start := k
		p := sym.Const(1)
		for k < len(out) && (k == start || !p.Equal(d)) {
			p = p.Mul(out[k])
			k++
		}
		if !p.Equal(d) {
			return nil
		}
		gs = append(gs, out[start:k:k])
	}
	for ; k < len(out); k++ {
		if !out[k].Is(1) || len(gs) == 0 {
			return nil
		}
		gs[len(gs)-1] = append(gs[len(gs)-1], out[k])
	}
	return gs
}

// reshapeTransposed splits axes before a Transpose where another change of shape comes before that: both become one.
func (s *simplifier) reshapeTransposed(r *rewrite.Rewriter, o *ssa.Op) bool {
	t := o.Operand(0).Def()
	if t == nil || t.Kind != "onnx::Transpose" || !t.Result(0).HasOneUse() || isReshape(t) {
		return false
	}
	first := t.Operand(0).Def()
	if first == nil || !isReshape(first) || !first.Result(0).HasOneUse() {
		return false
	}
	x := first.Operand(0)
	in, mid, out := x.Tensor(), t.Result(0).Tensor(), o.Result(0).Tensor()
	if in == nil || mid == nil || out == nil || !in.Ranked || !mid.Ranked || !out.Ranked {
		return false
	}
	gs := groups(mid.Dims, out.Dims)
	if gs == nil {
		return false
	}
	n := len(mid.Dims)
	p := permOf(t, n)
	place := make([]int, n) // of the axes of first's result in that of t
	for i, a := range p {
		place[a] = i
	}
	var dims []sym.Expr
	start := make([]int64, n) // where the parts of each axis stand now
	for a := range n {
		start[a] = int64(len(dims))
		dims = append(dims, gs[place[a]]...)
	}
	var perm []int64
	for i, a := range p {
		for k := range gs[i] {
			perm = append(perm, start[a]+int64(k))
		}
	}
	to, zero, ok := target(in.Dims, dims, s.opset)
	if !ok || zero {
		return false
	}
	y := build(r).Reshape(x, ints(r, to...))
	y = build(r).Transpose(y, onnx.Perm(perm...))
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// keepsLast reports a permutation that leaves the last axis where it is.
func keepsLast(p []int64) bool { return len(p) > 1 && p[len(p)-1] == int64(len(p)-1) }

// rowsToBatch makes Transpose(Reshape(Gemm(Reshape(Transpose(x))))), where the Gemm treats the leading axes as
// rows, a product over them: their order does not matter to it, and the two Transposes are one.
func (s *simplifier) rowsToBatch(r *rewrite.Rewriter, o *ssa.Op) bool {
	n := rank(o.Operand(0))
	if n < 0 {
		return false
	}
	q := permOf(o, n)
	back := o.Operand(0).Def()
	if !keepsLast(q) || back == nil || back.Kind != "onnx::Reshape" || !back.Result(0).HasOneUse() {
		return false
	}
	gemm := back.Operand(0).Def()
	if gemm == nil || gemm.Kind != "onnx::Gemm" || !gemm.Result(0).HasOneUse() || gemm.AttrInt("transA", 0) != 0 || gemm.AttrFloat("alpha", 1) != 1 ||
		gemm.Operand(2) != nil && (gemm.AttrFloat("beta", 1) != 1 || rank(gemm.Operand(2)) != 1 && rank(gemm.Operand(2)) != 0) || !isConst(gemm.Operand(1)) {
		return false
	}
	rows := gemm.Operand(0).Def()
	if rows == nil || rows.Kind != "onnx::Reshape" || !rows.Result(0).HasOneUse() {
		return false
	}
	turn := rows.Operand(0).Def()
	if turn == nil || turn.Kind != "onnx::Transpose" || !turn.Result(0).HasOneUse() {
		return false
	}
	lead := n - 1
	x, turned, final := turn.Operand(0), turn.Result(0).Tensor(), back.Result(0).Tensor()
	if x.Tensor() == nil || turned == nil || final == nil || !turned.Ranked || !final.Ranked || len(turned.Dims) <= lead {
		return false
	}
	for i := range lead {
		if !turned.Dims[i].Equal(final.Dims[i]) {
			return false
		}
	}
	k := sym.Const(1)
	for _, d := range turned.Dims[lead:] {
		k = k.Mul(d)
	}
	width := rows.Result(0).Tensor()
	if width == nil || width.Rank() != 2 || !width.Dims[1].Equal(k) || rank(gemm.Result(0)) != 2 || !gemm.Result(0).Tensor().Dims[1].Equal(final.Dims[lead]) {
		return false
	}
	p := permOf(turn, len(turned.Dims))
	perm := append([]int64(nil), p...)
	dims := make([]sym.Expr, 0, n)
	for i := range lead {
		perm[i] = p[q[i]]
		dims = append(dims, turned.Dims[q[i]])
	}
	dims = append(dims, k)
	y := x
	if !isIdentity(perm) {
		y = build(r).Transpose(x, onnx.Perm(perm...))
	}
	to, zero, ok := target(y.Tensor().Dims, dims, s.opset)
	if !ok || zero {
		return false
	}
	y = build(r).Reshape(y, ints(r, to...))
	w := gemm.Operand(1)
	if gemm.AttrInt("transB", 0) != 0 {
		w = build(r).Transpose(w, onnx.Perm(1, 0))
	}
	y = build(r).MatMul(y, w)
	if c := gemm.Operand(2); c != nil {
		y = build(r).Add(y, c)
	}
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// branch is the way of one user of a projection to its heads: a Reshape that keeps the leading axes, then a Transpose.
type branch struct{ reshape, transpose *ssa.Op }

// transposeOverHeads moves a Transpose of leading axes over a projection (MatMul, Add, Split) into the Transposes
// that come behind it for each head.
func (s *simplifier) transposeOverHeads(r *rewrite.Rewriter, o *ssa.Op) bool {
	first := o.Operand(0).Def() // a Reshape of one of the branches
	if first == nil || first.Kind != "onnx::Reshape" {
		return false
	}
	v := first.Operand(0)
	n := rank(v)
	var chain []*ssa.Op // from here up
	for d := v.Def(); ; d = d.Operand(0).Def() {
		if d == nil || d.Block() != o.Block() || len(chain) > 3 || rank(d.Operand(0)) != n {
			return false
		}
		switch d.Kind {
		case "onnx::Transpose":
			if len(chain) == 0 {
				return false // reshape-transposed
			}
			return s.overHeads(r, d, chain, o)
		case "onnx::Split":
			if a, ok := axisOf(d, "axis", 0, n); !ok || a != n-1 || len(chain) > 0 || !isConst(d.Operand(1)) {
				return false
			}
		case "onnx::MatMul":
			if rank(d.Operand(1)) != 2 {
				return false
			}
		case "onnx::Add":
			if t := d.Operand(1).Tensor(); t == nil || !t.Ranked || len(t.Dims) > 1 {
				return false
			}
		default:
			return false
		}
		if d.Kind != "onnx::Split" && len(chain) > 0 && !d.Result(0).HasOneUse() {
			return false
		}
		chain = append(chain, d)
	}
}

func (s *simplifier) overHeads(r *rewrite.Rewriter, turn *ssa.Op, chain []*ssa.Op, o *ssa.Op) bool {
	x := turn.Operand(0)
	n := rank(x)
	p := permOf(turn, n)
	if !turn.Result(0).HasOneUse() || !keepsLast(p) {
		return false
	}
	var branches []branch
	for _, v := range chain[0].Results {
		for u := range v.Uses() {
			re := u.Op()
			if re == nil || re.Kind != "onnx::Reshape" || re.Operand(0) != v || re.Operand(1) == v || re.Block() != o.Block() || !re.Result(0).HasOneUse() {
				return false
			}
			in, out := v.Tensor(), re.Result(0).Tensor()
			if in == nil || out == nil || !out.Ranked || len(out.Dims) < n {
				return false
			}
			for i := range n - 1 {
				if !in.Dims[i].Equal(out.Dims[i]) {
					return false
				}
			}
			for w := range re.Result(0).Uses() {
				t := w.Op()
				if t == nil || t.Kind != "onnx::Transpose" || t.Block() != o.Block() {
					return false
				}
				branches = append(branches, branch{re, t})
			}
		}
	}
	mark := o.Prev() // what is new stands between it and o
	values := map[*ssa.Value]*ssa.Value{turn.Result(0): x}
	for i := len(chain) - 1; i >= 0; i-- {
		d := chain[i]
		operands := d.Operands()
		operands[0] = values[operands[0]]
		if operands[0] == nil {
			return false
		}
		vs := r.CreateN(d.Kind, len(d.Results), operands, d.Attrs...)
		for k, v := range vs {
			if t := v.Tensor(); t == nil || t.Rank() != n {
				return false
			}
			values[d.Results[k]] = v
		}
	}
	made := make([]*ssa.Value, len(branches))
	for i, b := range branches {
		in := values[b.reshape.Operand(0)]
		old := b.reshape.Result(0).Tensor().Dims
		dims := append([]sym.Expr(nil), in.Tensor().Dims[:n-1]...)
		dims = append(dims, old[n-1:]...)
		to, zero, ok := target(in.Tensor().Dims, dims, s.opset)
		if !ok || zero {
			return false
		}
		q := permOf(b.transpose, len(old))
		perm := make([]int64, len(q))
		for k, a := range q {
			if perm[k] = a; int(a) < n-1 {
				perm[k] = p[a]
			}
		}
		y := build(r).Reshape(in, ints(r, to...))
		made[i] = build(r).Transpose(y, onnx.Perm(perm...))
		if !r.Fits(made[i], b.transpose.Result(0)) {
			return false
		}
	}
	// the other branches may come before o: right behind the chain all of it is known, and none has begun
	for after, next := chain[0].Next(), mark.Next(); next != o; {
		op := next
		next = op.Next()
		r.Hoist(op, after)
	}
	for i, b := range branches {
		r.Replace(b.transpose, made[i])
	}
	return true
}
