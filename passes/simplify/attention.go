package simplify

import (
	"math"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// fusedOpset is the first opset with RotaryEmbedding and Attention. Before it the decomposition stays.
const fusedOpset = 23

// attention holds the rules that find Attention in its parts, softmax(q @ k' * scale + mask) @ v, and the ways in which it takes
// operands: heads that several queries share, keys and values of calls before, and rows that hold all heads.
//
// Scores are taken to be finite: what a mask of booleans hides is minus infinity added in Attention, and in PyTorch's
// scaled_dot_product_attention, where the parts may have replaced it.
//
// A query that the mask leaves no key has zeros as result in Attention. PyTorch's scaled_dot_product_attention gives zeros
// too, but softmax by itself gives NaN, or means if the mask is finite. So a mask must be one of these:
//
//   - the parts give zeros to such a query;
//   - every query has a key, as of a causal mask;
//   - the mask is finite; the least number of float32, which onnxruntime takes for minus infinity, becomes one next to it.
func (s *simplifier) attention() []rewrite.Rule {
	return s.from(fusedOpset, []rewrite.Rule{
		{Name: "attention", Kinds: []ssa.Kind{"onnx::MatMul"}, Apply: fuseAttention, Rounds: true},
		{Name: "attention-heads", Kinds: []ssa.Kind{"onnx::Attention"}, Apply: sharedHeads},
		{Name: "attention-past", Kinds: []ssa.Kind{"onnx::Attention"}, Apply: attentionPast},
		{Name: "attention-rows", Kinds: []ssa.Kind{"onnx::Attention"}, Apply: attentionRows},
	})
}

// dimsOf is the sizes of a float32 or a half of a rank, nil for others.
func dimsOf(v *ssa.Value, rank int) []sym.Expr {
	t := v.Tensor()
	if t == nil || t.DType != tensor.Float32 && !isHalf(t.DType) || t.Rank() != rank {
		return nil
	}
	return t.Dims
}

// scored is what a chain of operators does to the product of queries and keys.
type scored struct {
	scale  float64
	allow  []*ssa.Value // booleans: what does not count is hidden
	bias   []*ssa.Value // floats that are added
	hidden []*ssa.Value // booleans: what counts is hidden
}

// fuseAttention finds Attention on operands of rank 4, [batch, heads, length, size].
func fuseAttention(r *rewrite.Rewriter, o *ssa.Op) bool {
	p, v := o.Operand(0), o.Operand(1)
	vd := dimsOf(v, 4)
	if vd == nil || !p.HasOneUse() || v.DType() != tensor.Float32 { // halves are narrowed behind it, by [halfAttention]
		return false
	}
	softmax, safe, asked := softmaxOf(p)
	if softmax == nil {
		return false
	}
	m := &scored{scale: 1}
	product := m.collect(softmax.Operand(0), asked)
	if product == nil {
		return false
	}
	q, k := m.unscaled(product.Operand(0)), m.unscaled(product.Operand(1))
	turn := definedBy(k, "onnx::Transpose")
	if turn == nil || dimsOf(k, 4) == nil || dimsOf(q, 4) == nil {
		return false
	}
	k = m.unscaled(turn.Operand(0))
	perm := slices.Clone(permOf(turn, 4))
	perm[2], perm[3] = perm[3], perm[2]
	if !isIdentity(perm) {
		k = build(r).Transpose(k, onnx.Perm(perm...))
	}
	qd, kd := dimsOf(q, 4), dimsOf(k, 4)
	if qd == nil || kd == nil || !(m.scale > 0) || math.IsInf(m.scale, 0) {
		return false
	}
	for i := range 2 { // no operand is repeated along the batch or the heads
		if !qd[i].Equal(kd[i]) || !qd[i].Equal(vd[i]) {
			return false
		}
	}
	if !kd[2].Equal(vd[2]) || !safe && !m.whole(qd[2], kd[2]) {
		return false
	}
	mask, causal, ok := m.mask(r, q, k)
	if !ok {
		return false
	}
	attrs := []ssa.Attr{onnx.Scale(m.scale)}
	if causal {
		attrs = append(attrs, onnx.IsCausal(true))
	}
	operands := []*ssa.Value{q, k, v}
	if mask != nil {
		operands = append(operands, mask)
	}
	y := r.Create("onnx::Attention", operands, attrs...)
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	if guard := definedBy(p, "onnx::Where"); guard != nil && definedBy(guard.Operand(0), "onnx::IsNaN") != nil {
		r.Func().Module().Assume("queries and keys have no NaN and their products no infinity: the guard makes zeros of such rows, Attention NaN")
	}
	r.Replace(o, y)
	return true
}

// softmaxOf finds the Softmax along the last axis that weights are, nil if they are none. safe reports that zeros take the
// place of a row of minus infinities, asked how many operators read the scores.
func softmaxOf(p *ssa.Value) (softmax *ssa.Op, safe bool, asked int) {
	asked = 1
	if choice := definedBy(p, "onnx::Where"); choice != nil {
		softmax = definedBy(choice.Operand(2), "onnx::Softmax")
		guard := choice.Operand(0).Def()
		switch {
		case softmax == nil || guard == nil || !allAre(choice.Operand(1), 0):
			return nil, false, 0
		case guard.Kind == "onnx::IsNaN" && guard.Operand(0) == softmax.Result(0) && softmax.Result(0).NumUses() == 2: // softmax of minus infinities is NaN
		case guard.Kind == "onnx::Equal" && softmax.Result(0).HasOneUse() && isTopOf(guard, softmax.Operand(0)):
			asked = 2
		default:
			return nil, false, 0
		}
		safe = true
	} else {
		softmax = definedBy(p, "onnx::Softmax")
	}
	if softmax == nil {
		return nil, false, 0
	}
	n := rank(p)
	if a, ok := axisOf(softmax, "axis", -1, n); !ok || a != n-1 || n != 4 {
		return nil, false, 0
	}
	return softmax, safe, asked
}

// isTopOf reports a comparison of the greatest score of each row with minus infinity.
func isTopOf(equal *ssa.Op, scores *ssa.Value) bool {
	top := definedBy(equal.Operand(0), "onnx::ReduceMax")
	if top == nil || !isMinusInf(equal.Operand(1)) || top.Operand(0) != scores || top.AttrInt("keepdims", 1) == 0 {
		return false
	}
	axes, ok := reducedAxes(top)
	return ok && len(axes) == 1 && axes[0] == int64(rank(scores)-1)
}

func isMinusInf(v *ssa.Value) bool {
	k, ok := scalarOf(v)
	return ok && math.IsInf(k, -1)
}

// collect goes from the scores up to the product, nil if there is another operator on the way. Values on the way have no other
// user, but the one at the top has as many as uses says.
func (m *scored) collect(v *ssa.Value, uses int) *ssa.Op {
	masked := true // no scale was met, so there may be a mask
	for range maxChain {
		d := v.Def()
		if d == nil || v.NumUses() != uses || dimsOf(v, 4) == nil {
			return nil
		}
		uses = 1
		next := d.Operand(0)
		switch d.Kind {
		case "onnx::MatMul":
			return d
		case "onnx::Mul", "onnx::Div":
			k, ok := factorOf(d)
			if !ok {
				return nil
			}
			m.scale *= k
			masked = false
		case "onnx::Where":
			switch {
			case isMinusInf(d.Operand(2)):
				next = d.Operand(1)
				m.allow = append(m.allow, d.Operand(0))
			case isMinusInf(d.Operand(1)):
				next = d.Operand(2)
				m.hidden = append(m.hidden, d.Operand(0))
			default:
				return nil
			}
		case "onnx::Add":
			if !fromProduct(next) {
				next = d.Operand(1)
			}
			m.add(other(d, next))
		default:
			return nil
		}
		if (d.Kind == "onnx::Where" || d.Kind == "onnx::Add") && !masked || next.Tensor() == nil || !ssa.SameType(next.Type, v.Type) {
			return nil
		}
		v = next
	}
	return nil
}

// add notes what is added to the scores: zeros and minus infinities by a condition are a mask of booleans.
func (m *scored) add(bias *ssa.Value) {
	if choice := definedBy(bias, "onnx::Where"); choice != nil {
		switch c := choice.Operand(0); {
		case allAre(choice.Operand(1), 0) && isMinusInf(choice.Operand(2)):
			m.allow = append(m.allow, c)
			return
		case isMinusInf(choice.Operand(1)) && allAre(choice.Operand(2), 0):
			m.hidden = append(m.hidden, c)
			return
		}
	}
	m.bias = append(m.bias, bias)
}

// fromProduct reports that a value leads up to a product through what [scored.collect] takes.
func fromProduct(v *ssa.Value) bool {
	for range maxChain {
		d := v.Def()
		switch {
		case d == nil:
			return false
		case d.Kind == "onnx::MatMul":
			return true
		case d.Kind == "onnx::Where" && isMinusInf(d.Operand(1)):
			v = d.Operand(2)
		case d.Kind == "onnx::Where":
			v = d.Operand(1)
		case d.Kind == "onnx::Mul" || d.Kind == "onnx::Div" || d.Kind == "onnx::Add":
			v = d.Operand(0)
		default:
			return false
		}
	}
	return false
}

// factorOf is the constant that an operator multiplies its first operand by.
func factorOf(d *ssa.Op) (float64, bool) {
	k, ok := scalarOf(d.Operand(1))
	if d.Kind == "onnx::Div" {
		k = 1 / k
	}
	return k, ok && k != 0 && !math.IsInf(k, 0) && !math.IsNaN(k)
}

// unscaled takes scales off queries or keys.
func (m *scored) unscaled(v *ssa.Value) *ssa.Value {
	for range maxChain {
		d := v.Def()
		if d == nil || d.Kind != "onnx::Mul" && d.Kind != "onnx::Div" {
			break
		}
		k, ok := factorOf(d)
		if !ok || !ssa.SameType(d.Operand(0).Type, v.Type) {
			break
		}
		m.scale *= k
		v = d.Operand(0)
	}
	return v
}

// whole reports that every query has a key, or that softmax of what a query has is what Attention makes of it.
func (m *scored) whole(queries, keys sym.Expr) bool {
	for _, b := range m.bias {
		if lo, hi, ok := rangeOf(b, maxChain*2); !ok || lo < -math.MaxFloat32 || hi > math.MaxFloat32 {
			return false
		}
	}
	switch {
	case len(m.allow)+len(m.hidden) == 0:
		return true
	case len(m.allow)+len(m.hidden) > 1 || len(m.bias) > 0:
		return false
	case len(m.hidden) == 1:
		return isCausal(m.hidden[0], true, queries, keys)
	}
	return isCausal(m.allow[0], false, queries, keys)
}

// isCausal reports that a mask allows to each query the keys up to its own place, both counted from their first; hides says that it
// holds where a key is hidden.
func isCausal(v *ssa.Value, hides bool, queries, keys sym.Expr) bool {
	t := v.Tensor()
	if t == nil || !t.Ranked || len(t.Dims) < 2 {
		return false
	}
	n := len(t.Dims)
	for _, d := range t.Dims[:n-2] {
		if !d.Is(1) {
			return false
		}
	}
	if !t.Dims[n-2].Equal(queries) || !t.Dims[n-1].Equal(keys) {
		return false
	}
	if c := onnx.ConstOf(v); c != nil {
		if !c.HasData() || c.NumElements() == 0 || c.NumElements() > 1<<20 {
			return false
		}
		cols := c.Shape[n-1]
		for i, held := range c.Int64s() {
			if row, col := int64(i)/cols, int64(i)%cols; (held != 0) != (hides == (col > row)) {
				return false
			}
		}
		return true
	}
	d := v.Def()
	if d == nil || d.NumOperands() != 2 {
		return false
	}
	a, b := place(d.Operand(0), n), place(d.Operand(1), n)
	rowsFirst := a == n-2 && b == n-1
	if !rowsFirst && (a != n-1 || b != n-2) {
		return false
	}
	switch d.Kind {
	case "onnx::Less":
		return hides && rowsFirst
	case "onnx::Greater":
		return hides && !rowsFirst
	case "onnx::LessOrEqual":
		return !hides && !rowsFirst
	case "onnx::GreaterOrEqual":
		return !hides && rowsFirst
	}
	return false
}

// place is the axis, of the last n axes, along which a value counts 0, 1, 2, ... and nothing else; -1 for others.
func place(v *ssa.Value, n int) int {
	t := v.Tensor()
	if t == nil || !t.Ranked || len(t.Dims) > n {
		return -1
	}
	axis := -1
	for i, d := range t.Dims {
		if !d.Is(1) {
			if axis >= 0 {
				return -1
			}
			axis = n - len(t.Dims) + i
		}
	}
	for v.Def() != nil && isReshape(v.Def()) {
		v = v.Def().Operand(0)
	}
	if c := onnx.ConstOf(v); c != nil && c.HasData() && c.DType.IsInt() && c.NumElements() <= maxLook {
		for i, k := range c.Int64s() {
			if int64(i) != k {
				return -1
			}
		}
		return axis
	}
	count := definedBy(v, "onnx::Range")
	if count == nil {
		return -1
	}
	from, ok1 := constOne(count.Operand(0))
	step, ok2 := constOne(count.Operand(2))
	if !ok1 || !ok2 || from != 0 || step != 1 {
		return -1
	}
	return axis
}

// rangeOf bounds the elements of a value that holds no NaN; ok is false where nothing is known of it.
func rangeOf(v *ssa.Value, depth int) (lo, hi float64, ok bool) {
	if t := onnx.ConstOf(v); t != nil {
		if !t.HasData() || t.NumElements() == 0 || t.NumElements() > 1<<16 && !t.IsSplat() || t.DType == tensor.String || t.DType.IsComplex() || t.DType.ONNX() == 0 {
			return 0, 0, false
		}
		if t.IsSplat() {
			one := *t
			one.Shape, one.Strides = []int64{}, []int64{}
			t = &one
		}
		lo, hi = math.Inf(1), math.Inf(-1)
		for _, e := range t.Float64s() {
			if math.IsNaN(e) {
				return 0, 0, false
			}
			lo, hi = min(lo, e), max(hi, e)
		}
		return lo, hi, true
	}
	d := v.Def()
	if d == nil || depth == 0 {
		return 0, 0, false
	}
	of := func(i int) (float64, float64, bool) { return rangeOf(d.Operand(i), depth-1) }
	switch d.Kind {
	case "onnx::Cast":
		if d.Operand(0).DType() == tensor.Bool {
			return 0, 1, true
		}
		return 0, 0, false
	case "onnx::Reshape", "onnx::Unsqueeze", "onnx::Squeeze", "onnx::Expand", "onnx::Transpose", "onnx::Slice", "onnx::Gather", "onnx::Identity":
		return of(0)
	}
	var a, b, c, e float64
	switch d.Kind {
	case "onnx::Where":
		a, b, ok = of(1)
		if ok {
			c, e, ok = of(2)
		}
		return min(a, c), max(b, e), ok
	case "onnx::Add", "onnx::Sub", "onnx::Mul", "onnx::Concat":
		if d.NumOperands() != 2 {
			return 0, 0, false
		}
		a, b, ok = of(0)
		if ok {
			c, e, ok = of(1)
		}
	}
	switch {
	case !ok:
		return 0, 0, false
	case d.Kind == "onnx::Concat":
		lo, hi = min(a, c), max(b, e)
	case d.Kind == "onnx::Add":
		lo, hi = a+c, b+e
	case d.Kind == "onnx::Sub":
		lo, hi = a-e, b-c
	default:
		lo, hi = min(a*c, a*e, b*c, b*e), max(a*c, a*e, b*c, b*e)
	}
	return lo, hi, !math.IsNaN(lo) && !math.IsNaN(hi)
}

// mask makes one mask of all of them, of the queries' length and the keys' in its last axes, as onnxruntime asks. A mask that is only
// causal is an attribute instead.
func (m *scored) mask(r *rewrite.Rewriter, q, k *ssa.Value) (mask *ssa.Value, causal, ok bool) {
	queries, keys := q.Tensor().Dims[2], k.Tensor().Dims[2]
	var allow *ssa.Value
	also := func(c *ssa.Value) {
		if allow == nil {
			allow = c
		} else {
			allow = build(r).And(allow, c)
		}
	}
	for _, c := range m.hidden {
		if isCausal(c, true, queries, keys) {
			causal = true
		} else {
			also(build(r).Not(c))
		}
	}
	for _, c := range m.allow {
		if isCausal(c, false, queries, keys) {
			causal = true
		} else {
			also(c)
		}
	}
	for i, b := range m.bias {
		if b.DType() != tensor.Float32 {
			return nil, false, false
		}
		if i == 0 {
			mask = b
		} else {
			mask = build(r).Add(mask, b)
		}
	}
	if mask != nil {
		mask = aboveLeast(r, mask)
		if allow != nil {
			mask = build(r).Where(allow, mask, constant(r, tensor.Full(tensor.Float32, []int64{}, math.Inf(-1))))
		}
	} else if mask = allow; mask == nil {
		return nil, causal, true
	}
	if mask.Tensor() == nil || !mask.Tensor().Ranked {
		return nil, false, false
	}
	dims := mask.Tensor().Dims
	n := len(dims)
	if n < 2 || !dims[n-1].Equal(keys) || !dims[n-2].Equal(queries) {
		narrow := n > 0 && !dims[n-1].Equal(keys) // one number for all keys
		if narrow && !dims[n-1].Is(1) || n > 1 && !dims[n-2].Equal(queries) && !dims[n-2].Is(1) {
			return nil, false, false
		}
		length, width := lengthOf(r, q), ints(r, 1)
		if narrow || n == 0 {
			width = lengthOf(r, k)
		}
		mask = build(r).Expand(mask, build(r).Concat(0, length, width))
		dims = mask.Tensor().Dims
		n = len(dims)
		if n < 2 || !dims[n-1].Equal(keys) || !dims[n-2].Equal(queries) {
			return nil, false, false
		}
	}
	for i, d := range dims[:n-2] { // batch and heads
		if !d.Is(1) && !d.Equal(q.Tensor().Dims[4-n+i]) {
			return nil, false, false
		}
	}
	return mask, causal, n <= 4
}

// lengthOf is the size of the axis 2 as a tensor of one element.
func lengthOf(r *rewrite.Rewriter, v *ssa.Value) *ssa.Value {
	if n, ok := v.Tensor().Dims[2].Int(); ok {
		return ints(r, n)
	}
	return build(r).Shape(v, onnx.Start(2), onnx.End(3))
}

// aboveLeast keeps a mask from holding the least float32, which onnxruntime takes for minus infinity: of a query that has this
// number for all keys, it would make zeros instead of their mean.
func aboveLeast(r *rewrite.Rewriter, mask *ssa.Value) *ssa.Value {
	const next = -3.4e38
	if lo, _, ok := rangeOf(mask, maxChain*2); ok && lo >= next {
		return mask
	}
	if choice := definedBy(mask, "onnx::Where"); choice != nil {
		a, ok := scalarOf(choice.Operand(1))
		b, ok2 := scalarOf(choice.Operand(2))
		switch {
		case !ok || !ok2:
		case a != -math.MaxFloat32 && b != -math.MaxFloat32:
			return mask
		default:
			raised := func(k float64, v *ssa.Value) *ssa.Value {
				if k == -math.MaxFloat32 {
					v = constant(r, tensor.Full(tensor.Float32, []int64{}, next))
				}
				return v
			}
			return build(r).Where(choice.Operand(0), raised(a, choice.Operand(1)), raised(b, choice.Operand(2)))
		}
	}
	least := constant(r, tensor.Full(tensor.Float32, []int64{}, -math.MaxFloat32))
	above := constant(r, tensor.Full(tensor.Float32, []int64{}, next))
	return build(r).Where(build(r).Equal(mask, least), above, mask)
}

// sharedHeads drops the repetition of keys and values for heads of queries that share them.
func sharedHeads(r *rewrite.Rewriter, o *ssa.Op) bool {
	k, n := beforeRepeat(o.Operand(1))
	v, also := beforeRepeat(o.Operand(2))
	if n != also || n < 2 || o.Operand(4) != nil || len(o.Results) > 1 {
		return false
	}
	operands := o.Operands()
	operands[1], operands[2] = k, v
	y := r.Create(o.Kind, operands, o.Attrs...)
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// beforeRepeat finds x of [batch, heads, length, size] in Reshape(Expand(Unsqueeze(x))) to times as many heads, each in a row.
func beforeRepeat(v *ssa.Value) (x *ssa.Value, times int64) {
	out := dimsOf(v, 4)
	flat := v.Def()
	if out == nil || flat == nil || !isReshape(flat) {
		return v, 1
	}
	wide := definedBy(flat.Operand(0), "onnx::Expand")
	if wide == nil {
		return v, 1
	}
	unsqueeze := wide.Operand(0).Def()
	if unsqueeze == nil || !isReshape(unsqueeze) {
		return v, 1
	}
	x = unsqueeze.Operand(0)
	in, thin, all := dimsOf(x, 4), dimsOf(wide.Operand(0), 5), dimsOf(wide.Result(0), 5)
	if in == nil || thin == nil || all == nil || !thin[2].Is(1) {
		return v, 1
	}
	times, ok := all[2].Int()
	heads, known := in[1].Int()
	if !ok || !known || !out[1].Is(heads*times) {
		return v, 1
	}
	for i, d := range in {
		at := i
		if i > 1 {
			at++
		}
		if !thin[at].Equal(d) || !all[at].Equal(d) || i != 1 && !out[i].Equal(d) {
			return v, 1
		}
	}
	return x, times
}

// attentionPast gives keys and values of calls before to an Attention by themselves, and takes what they are with the new
// ones from it. All other users must come behind it: they are results of the block.
func attentionPast(r *rewrite.Rewriter, o *ssa.Op) bool {
	if o.Operand(4) != nil || len(o.Results) > 1 || rank(o.Operand(0)) != 4 || o.AttrInt("is_causal", 0) != 0 {
		return false
	}
	var past, fresh [2]*ssa.Value
	for i := range 2 {
		v := o.Operand(1 + i)
		c := definedBy(v, "onnx::Concat")
		if c == nil || c.NumOperands() != 2 || c.Block() != o.Block() || dimsOf(v, 4) == nil {
			return false
		}
		if a, ok := axisOf(c, "axis", 0, 4); !ok || a != 2 {
			return false
		}
		past[i], fresh[i] = c.Operand(0), c.Operand(1)
		if !usedAtEnd(v, o) {
			return false
		}
	}
	if past[0].Tensor() == nil || past[1].Tensor() == nil || o.Operand(1) == o.Operand(2) {
		return false
	}
	pk, pv, fk := dimsOf(past[0], 4), dimsOf(past[1], 4), dimsOf(fresh[0], 4)
	fv := dimsOf(fresh[1], 4)
	if pk == nil || pv == nil || fk == nil || fv == nil || !pk[2].Equal(pv[2]) || !fk[2].Equal(fv[2]) {
		return false
	}
	operands := []*ssa.Value{o.Operand(0), fresh[0], fresh[1], o.Operand(3), past[0], past[1]}
	vs := r.CreateN(o.Kind, 3, operands, o.Attrs...)
	if !r.Fits(vs[0], o.Result(0)) || !r.Fits(vs[1], o.Operand(1)) || !r.Fits(vs[2], o.Operand(2)) {
		return false
	}
	k, v := o.Operand(1), o.Operand(2)
	r.Replace(o, vs[0])
	r.ReplaceUses(k, vs[1])
	r.ReplaceUses(v, vs[2])
	return true
}

// attentionRows takes rows that hold all heads, [batch, length, heads*size], instead of heads apart, where all operands are made of
// rows, and rows are made of the result.
func attentionRows(r *rewrite.Rewriter, o *ssa.Op) bool {
	y := o.Result(0)
	yd := dimsOf(y, 4)
	if yd == nil || !y.HasOneUse() {
		return false
	}
	for u := range y.Uses() {
		d := u.Op()
		switch {
		case d == nil:
			return false
		case d.Kind == "onnx::Transpose" && swapsHeads(d):
		case isReshape(d) && d.Operand(0) == y && yd[2].Is(1):
		default:
			return false
		}
	}
	operands := o.Operands()
	var heads [3]int64
	free := 0 // operands whose change of shape goes
	given := len(o.Results) > 1
	for i := range 3 {
		d := dimsOf(operands[i], 4)
		if d == nil {
			return false
		}
		n, ok := d[1].Int()
		if !ok || !canRow(operands[i], o) {
			return false
		}
		heads[i] = n
		if isRow(operands[i]) {
			free++
		}
	}
	if heads[1] != heads[2] || free == 0 {
		return false
	}
	k, v := operands[1], operands[2]
	for i := range 3 {
		operands[i] = rows(r, operands[i], heads[i])
	}
	attrs := append(slices.Clone(o.Attrs), onnx.QNumHeads(heads[0]), onnx.KvNumHeads(heads[1]))
	n := len(o.Results)
	// keys and values that are results of the block too: Attention gives them with the heads apart
	kept := !given && o.Operand(4) == nil && k != v && isReturned(k, o) && isReturned(v, o)
	if kept {
		n = 3
	} else if !given && definedBy(k, "onnx::RotaryEmbedding") != nil && !k.HasOneUse() {
		return false
	}
	vs := r.CreateN(o.Kind, n, operands, attrs...)
	size, ok := yd[3].Int()
	if !ok || rank(vs[0]) != 3 {
		return false
	}
	apart := build(r).Reshape(vs[0], ints(r, 0, 0, heads[0], size))
	apart = build(r).Transpose(apart, onnx.Perm(0, 2, 1, 3))
	out := append([]*ssa.Value{apart}, vs[1:]...)[:len(o.Results)]
	for i, w := range out {
		if !r.Fits(w, o.Result(i)) {
			return false
		}
	}
	if kept && (!r.Fits(vs[1], k) || !r.Fits(vs[2], v)) {
		return false
	}
	r.Replace(o, out...)
	if kept {
		r.ReplaceUses(k, vs[1])
		r.ReplaceUses(v, vs[2])
	}
	return true
}

// isReturned reports that the users of a value are an op and results of its block, of which there is one.
func isReturned(v *ssa.Value, o *ssa.Op) bool {
	return v.Def() != nil && v.Def().Block() == o.Block() && !v.HasOneUse() && usedAtEnd(v, o)
}

// usedAtEnd reports that the users of a value are an op, or results of its block.
func usedAtEnd(v *ssa.Value, o *ssa.Op) bool {
	for u := range v.Uses() {
		if u.Op() != o && (u.Op() != nil || u.Block() != o.Block()) {
			return false
		}
	}
	return true
}

// swapsHeads reports a Transpose between [batch, heads, length, size] and [batch, length, heads, size].
func swapsHeads(d *ssa.Op) bool {
	p := permOf(d, 4)
	return rank(d.Operand(0)) == 4 && len(p) == 4 && p[0] == 0 && p[1] == 2 && p[2] == 1 && p[3] == 3
}

// canRow reports that an operand of [batch, heads, length, size] is made of rows that hold all heads.
func canRow(v *ssa.Value, user *ssa.Op) bool {
	d := v.Def()
	t := dimsOf(v, 4)
	if d == nil || t == nil || !t[3].IsConst() { // a parameter of the graph has its shape
		return false
	}
	if d.Kind == "onnx::RotaryEmbedding" {
		return (v.HasOneUse() || isReturned(v, user)) && canRow(d.Operand(0), user)
	}
	return t[2].Is(1) || d.Kind == "onnx::Transpose" && swapsHeads(d)
}

// isRow reports that what canRow holds for is a change of shape already.
func isRow(v *ssa.Value) bool {
	d := v.Def()
	if d.Kind == "onnx::RotaryEmbedding" {
		return isRow(d.Operand(0))
	}
	return isReshape(d) || d.Kind == "onnx::Transpose"
}

// rows makes [batch, length, heads*size] of what canRow holds for.
func rows(r *rewrite.Rewriter, v *ssa.Value, heads int64) *ssa.Value {
	d := v.Def()
	if d.Kind == "onnx::RotaryEmbedding" {
		operands := d.Operands()
		operands[0] = rows(r, operands[0], heads)
		return r.Create(d.Kind, operands, append(slices.Clone(d.Attrs), onnx.NumHeads(heads))...)
	}
	size, _ := v.Tensor().Dims[3].Int()
	if d.Kind == "onnx::Transpose" && swapsHeads(d) {
		v = d.Operand(0)
		return build(r).Reshape(v, ints(r, 0, 0, heads*size))
	}
	return build(r).Reshape(v, ints(r, 0, 1, heads*size))
}
