package aten

import (
	"slices"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// contraction holds sums of products over named axes (ATen/native/Linear.cpp).
var contraction = Defs{
	"aten::einsum":     {Doc: "sum of products after Einstein's convention", Nature: Multilinear, View: MayBeView, Layout: AnyLayout, Autocast: LowerPrecisionOnCPU, Lower: lowerEinsum},
	"aten::tensordot":  {Doc: "sum of products over pairs of axes", Nature: Multilinear, Autocast: LowerPrecisionOnCPU, Lower: lowerTensordot},
	"aten::_trilinear": {Doc: "sum of products of three tensors, expanded and summed along given axes", Lower: lowerTrilinear},
}

// labelled is a tensor whose axes have labels.
type labelled struct {
	v      *ssa.Value
	labels []int
}

func indexOf(labels []int, x int) int {
	for i, v := range labels {
		if v == x {
			return i
		}
	}
	return -1
}

// lowerEinsum contracts the operands from left to right, or along path.
func lowerEinsum(l *Lowering) *ssa.Value {
	operands := l.Tensors("tensors")
	equation := strings.ReplaceAll(l.Str("equation"), " ", "")
	ins, outs, explicit := strings.Cut(equation, "->")
	parts := strings.Split(ins, ",")
	if len(parts) != len(operands) {
		l.Fail("einsum equation %q is for %d operands, not %d", equation, len(parts), len(operands))
	}
	// Letters have labels 0..51, the axes of an ellipsis 52 and up, counted so that they align on the right.
	ell := 0
	for i, p := range parts {
		if strings.Contains(p, "...") {
			ell = max(ell, l.Rank(operands[i])-(len(p)-3))
		}
	}
	letter := func(c byte) int {
		switch {
		case c >= 'a' && c <= 'z':
			return int(c-'a') + 26
		case c >= 'A' && c <= 'Z':
			return int(c - 'A')
		}
		l.Fail("einsum equation %q has the label %q", equation, c)
		return 0
	}
	parse := func(s string, n int) []int {
		var labels []int
		for i := 0; i < len(s); i++ {
			if s[i] == '.' {
				if i+3 > len(s) || s[i:i+3] != "..." {
					l.Fail("einsum equation %q has a stray dot", equation)
				}
				i += 2
				for k := range n {
					labels = append(labels, 52+ell-n+k)
				}
				continue
			}
			labels = append(labels, letter(s[i]))
		}
		return labels
	}
	ops := make([]labelled, len(operands))
	count := map[int]int{}
	for i, p := range parts {
		n := 0
		if strings.Contains(p, "...") {
			n = l.Rank(operands[i]) - (len(p) - 3)
		}
		labels := parse(p, max(n, 0))
		if len(labels) != l.Rank(operands[i]) {
			l.Fail("einsum operand %d has rank %d, the equation %q", i, l.Rank(operands[i]), p)
		}
		for _, x := range labels {
			count[x]++
		}
		ops[i] = labelled{operands[i], labels}
	}
	var out []int
	if explicit {
		out = parse(outs, ell)
	} else {
		// the ellipsis, then the labels that occur once, in alphabetical order
		out = axisLabels(52, ell)
		for x := range 52 {
			if count[x] == 1 {
				out = append(out, x)
			}
		}
	}
	// before opset 12 there is what other equations need in any case; a step down would have to contract once more
	if l.Opset >= 12 && l.plainEinsum(equation, parts, explicit) {
		return l.Einsum(equation, operands...)
	}
	for i := range ops {
		ops[i] = l.diagonals(ops[i])
	}
	return l.contractAll(ops, out, l.Ints("path"))
}

func axisLabels(from, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = from + i
	}
	return out
}

// plainEinsum reports an equation that ONNX's Einsum takes as it is: up to two
// operands of one float type, without repeated labels or sizes to broadcast.
func (l *Lowering) plainEinsum(equation string, parts []string, explicit bool) bool {
	if !explicit || len(parts) > 2 || strings.ToLower(equation) != equation || strings.Contains(equation, ".") {
		return false
	}
	for i, p := range parts {
		v := l.Tensors("tensors")[i]
		if d := l.DType(v); d != tensor.Float32 && d != tensor.Float64 || p == "" {
			return false
		}
		for k := range p {
			if strings.Count(p, p[k:k+1]) > 1 {
				return false
			}
			if n, ok := l.Shape(v)[k].Int(); !ok || n < 2 {
				return false // 1 may broadcast
			}
		}
	}
	return true
}

// diagonals removes repeated labels.
func (l *Lowering) diagonals(t labelled) labelled {
	for i := 0; i < len(t.labels); i++ {
		for j := i + 1; j < len(t.labels); j++ {
			if t.labels[i] != t.labels[j] {
				continue
			}
			// the diagonal of axes i and j is the flattened pair at multiples of n+1
			r := len(t.labels)
			perm := []int64{}
			for k := range r {
				if k != i && k != j {
					perm = append(perm, int64(k))
				}
			}
			rest := l.transposeIf(t.v, append(perm, int64(i), int64(j)))
			n := l.sizeOf(t.v, i)
			sizes := append(l.sizesOf(rest, 0, r-2), l.mulSize(n, n))
			flat := l.reshapeSizes(rest, sizes...)
			idx := l.Mul(l.countTo(n), l.sizeValue(l.addSize(n, ConstSize(1))))
			labels := []int{}
			for _, k := range perm {
				labels = append(labels, t.labels[k])
			}
			return l.diagonals(labelled{l.gather(flat, idx, r-2), append(labels, t.labels[i])})
		}
	}
	return t
}

// transposeIf permutes the axes, unless the permutation leaves them as they are.
func (l *Lowering) transposeIf(x *ssa.Value, perm []int64) *ssa.Value {
	for i, p := range perm {
		if int64(i) != p {
			return l.transpose(x, perm...)
		}
	}
	return x
}

// contractAll multiplies the operands, sums over the labels that out lacks and
// gives the axes out's order. path is a list of pairs of operands, as opt_einsum has it.
func (l *Lowering) contractAll(ops []labelled, out []int, path []int64) *ssa.Value {
	step := 0
	for len(ops) > 1 {
		i, j := 0, 1
		if 2*step+1 < len(path) {
			i, j = int(path[2*step]), int(path[2*step+1])
			if i > j {
				i, j = j, i
			}
			if i == j || i < 0 || j >= len(ops) {
				l.Fail("einsum path %v", path)
			}
		}
		step++
		a, b := ops[i], ops[j]
		ops = append(append(append([]labelled{}, ops[:i]...), ops[i+1:j]...), ops[j+1:]...)
		keep := append([]int{}, out...)
		for _, o := range ops {
			keep = append(keep, o.labels...)
		}
		p := l.contract(a, b, keep)
		if len(path) > 0 {
			ops = append(ops, p)
		} else {
			ops = append([]labelled{p}, ops...)
		}
	}
	t := l.sumOut(ops[0], out)
	perm := make([]int64, len(out))
	for i, x := range out {
		k := indexOf(t.labels, x)
		if k < 0 {
			l.Fail("einsum: an output label that no operand has")
		}
		perm[i] = int64(k)
	}
	return l.transposeIf(t.v, perm)
}

// sumOut sums over the labels that are not in keep, by aten::sum: integers become int64.
func (l *Lowering) sumOut(t labelled, keep []int) labelled {
	d := l.DType(t.v)
	if gone := slices.ContainsFunc(t.labels, func(x int) bool { return indexOf(keep, x) < 0 }); gone && (d.IsInt() || d == tensor.Bool) {
		t.v = l.Cast(t.v, tensor.Int64)
	}
	return l.sumLabels(t, keep)
}

// sumLabels is sumOut in the type of t.
func (l *Lowering) sumLabels(t labelled, keep []int) labelled {
	var axes []int64
	var left []int
	for i, x := range t.labels {
		if indexOf(keep, x) < 0 {
			axes = append(axes, int64(i))
		} else {
			left = append(left, x)
		}
	}
	if len(axes) == 0 {
		return t
	}
	return labelled{l.sumAxes(t.v, axes), left}
}

func (l *Lowering) sumAxes(x *ssa.Value, axes []int64) *ssa.Value {
	if d := l.DType(x); d.IsInt() && d.Size() < 4 {
		return l.Cast(l.reduce("ReduceSum", l.Cast(x, tensor.Int32), axes, false), d)
	}
	return l.reduce("ReduceSum", x, axes, false)
}

// contract multiplies two operands and sums over the labels that are not in keep.
func (l *Lowering) contract(a, b labelled, keep []int) labelled {
	keepA, keepB := append(append([]int{}, keep...), b.labels...), append(append([]int{}, keep...), a.labels...)
	a, b = l.sumOut(a, keepA), l.sumOut(b, keepB)
	if l.DType(a.v) != l.DType(b.v) { // one was summed
		a.v, b.v = l.Cast(a.v, tensor.Int64), l.Cast(b.v, tensor.Int64)
	}
	var batch, sum, left, right []int
	mayBroadcast := false
	for i, x := range a.labels {
		k := indexOf(b.labels, x)
		switch {
		case k < 0:
			left = append(left, x)
			continue
		case indexOf(keep, x) >= 0:
			batch = append(batch, x)
		default:
			sum = append(sum, x)
		}
		if !l.Shape(a.v)[i].Equal(l.Shape(b.v)[k]) {
			mayBroadcast = true
		}
	}
	for _, x := range b.labels {
		if indexOf(a.labels, x) < 0 {
			right = append(right, x)
		}
	}
	if mayBroadcast || len(sum) == 0 {
		// elementwise over all labels, then the sum
		all := append(append(append(append([]int{}, batch...), left...), right...), sum...)
		p := labelled{l.product(l.spread(a, all), l.spread(b, all)), all}
		return l.sumLabels(p, append(append(append([]int{}, batch...), left...), right...))
	}
	pick := func(t labelled, labels []int) []Size {
		s := make([]Size, len(labels))
		for i, x := range labels {
			s[i] = l.sizeOf(t.v, indexOf(t.labels, x))
		}
		return s
	}
	arrange := func(t labelled, first, second []int) *ssa.Value {
		var perm []int64
		for _, g := range [][]int{batch, first, second} {
			for _, x := range g {
				perm = append(perm, int64(indexOf(t.labels, x)))
			}
		}
		v := l.transposeIf(t.v, perm)
		if len(first) == 1 && len(second) == 1 {
			return v
		}
		return l.reshapeSizes(v, append(pick(t, batch), l.sizeProduct(pick(t, first)...), l.sizeProduct(pick(t, second)...))...)
	}
	p := l.intMatMul(arrange(a, left, sum), arrange(b, sum, right))
	labels := append(append(append([]int{}, batch...), left...), right...)
	if len(left) != 1 || len(right) != 1 {
		p = l.reshapeSizes(p, append(append(pick(a, batch), pick(a, left)...), pick(b, right)...)...)
	}
	return labelled{p, labels}
}

// spread lays the axes of t out after labels, with size 1 where t has none.
func (l *Lowering) spread(t labelled, labels []int) *ssa.Value {
	var perm, missing []int64
	for i, x := range labels {
		if k := indexOf(t.labels, x); k >= 0 {
			perm = append(perm, int64(k))
		} else {
			missing = append(missing, int64(i))
		}
	}
	return l.unsqueeze(l.transposeIf(t.v, perm), missing...)
}

func lowerTensordot(l *Lowering) *ssa.Value {
	a, b := l.Tensor("self"), l.Tensor("other")
	wrap := func(name string, r int) []int64 {
		dims := l.Ints(name)
		out := make([]int64, len(dims))
		for i, d := range dims {
			out[i] = int64(l.wrap(d, r))
		}
		return out
	}
	return l.tensordot(a, b, wrap("dims_self", l.Rank(a)), wrap("dims_other", l.Rank(b)))
}

// tensordot sums products over pairs of axes; the rest of a comes before the rest of b.
func (l *Lowering) tensordot(a, b *ssa.Value, da, db []int64) *ssa.Value {
	if len(da) != len(db) {
		l.Fail("tensordot over %d and %d axes", len(da), len(db))
	}
	ra, rb := l.Rank(a), l.Rank(b)
	la, lb := axisLabels(0, ra), axisLabels(ra, rb)
	if len(da) > min(ra, rb) {
		l.Fail("tensordot over %d axes of tensors with %d and %d", len(da), ra, rb)
	}
	for i := range da {
		lb[db[i]] = int(da[i])
	}
	var out []int
	for i, x := range la {
		if !contains(da, int64(i)) {
			out = append(out, x)
		}
	}
	for i, x := range lb {
		if !contains(db, int64(i)) {
			out = append(out, x)
		}
	}
	return l.contractAll([]labelled{{a, la}, {b, lb}}, out, nil)
}

func contains(v []int64, x int64) bool {
	for _, e := range v {
		if e == x {
			return true
		}
	}
	return false
}

func lowerTrilinear(l *Lowering) *ssa.Value {
	x := l.unsqueeze(l.Tensor("i1"), l.Ints("expand1")...)
	y := l.unsqueeze(l.Tensor("i2"), l.Ints("expand2")...)
	z := l.unsqueeze(l.Tensor("i3"), l.Ints("expand3")...)
	p := l.Mul(l.Mul(x, y), z)
	if axes := l.Ints("sumdim"); len(axes) > 0 {
		return l.reduce("ReduceSum", p, axes, false)
	}
	return p
}
