package onnx

import (
	"math"
	"slices"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// inferDet: a number for each matrix.
func inferDet(c *infer) {
	in := c.dims(0)
	if in == nil {
		c.out(0, ssa.Unranked(c.in(0).DType))
	} else if len(in) < 2 {
		c.fail("rank %d", len(in))
	} else {
		c.out(0, ssa.Tensor(c.in(0).DType, in[:len(in)-2]...))
	}
}

func inferReduce(c *infer) {
	in, t := c.dims(0), c.in(0).DType
	keep := c.o.AttrInt("keepdims", 1) != 0
	var axes []int64
	ok := true
	if c.has(1) {
		if axes, ok = c.ints(1); !ok {
			if keep && in != nil {
				c.out(0, ssa.Tensor(t, c.freshDims(0, len(in))...))
			} else {
				c.out(0, ssa.Unranked(t))
			}
			return
		}
	}
	if len(axes) == 0 {
		if c.o.AttrInt("noop_with_empty_axes", 0) != 0 {
			c.out(0, c.in(0))
			return
		}
		if in == nil && !keep {
			c.out(0, ssa.Tensor(t))
			return
		}
		for i := range in {
			axes = append(axes, int64(i))
		}
	}
	if in == nil {
		c.out(0, ssa.Unranked(t))
		return
	}
	drop := make([]bool, len(in))
	for _, a := range axes {
		k := c.axis(a, len(in))
		if c.err != nil {
			return
		}
		drop[k] = true
	}
	c.out(0, ssa.Tensor(t, dropAxes(in, drop, keep)...))
	s, ok := c.syms(0)
	if !ok || len(in) > 1 || len(in) == 1 && !drop[0] || len(s) == 0 {
		return
	}
	acc := s[0]
	for _, e := range s[1:] {
		switch c.o.Kind {
		case "onnx::ReduceSum":
			acc = acc.Add(e)
		case "onnx::ReduceProd":
			acc = acc.Mul(e)
		case "onnx::ReduceMax":
			acc = acc.Max(e)
		case "onnx::ReduceMin":
			acc = acc.Minimum(e)
		default:
			return
		}
	}
	switch c.o.Kind {
	case "onnx::ReduceSum", "onnx::ReduceProd", "onnx::ReduceMax", "onnx::ReduceMin":
		c.outSym([]sym.Expr{acc})
	}
}

func dropAxes(in []sym.Expr, drop []bool, keep bool) []sym.Expr {
	out := []sym.Expr{}
	for i, d := range in {
		switch {
		case !drop[i]:
			out = append(out, d)
		case keep:
			out = append(out, sym.Const(1))
		}
	}
	return out
}

func inferArgMax(c *infer) {
	in := c.dims(0)
	if in == nil {
		c.out(0, ssa.Unranked(tensor.Int64))
		return
	}
	drop := make([]bool, len(in))
	k := c.axis(c.o.AttrInt("axis", 0), len(in))
	if c.err != nil {
		return
	}
	drop[k] = true
	c.out(0, ssa.Tensor(tensor.Int64, dropAxes(in, drop, c.o.AttrInt("keepdims", 1) != 0)...))
}

func inferTopK(c *infer) {
	in, t := c.dims(0), c.in(0).DType
	if in == nil {
		c.out(0, ssa.Unranked(t))
		c.out(1, ssa.Unranked(tensor.Int64))
		return
	}
	k := c.axis(c.o.AttrInt("axis", -1), len(in))
	if c.err != nil {
		return
	}
	if s, ok := c.syms(1); ok && len(s) == 1 {
		if have, ok := in[k].Int(); ok {
			if want, ok := s[0].Int(); ok && (want > have || want < 0) {
				c.fail("k is %d, the axis has %d elements", want, have)
				return
			}
		}
		in[k] = s[0]
	} else {
		in[k] = c.fresh(0, k, len(in))
	}
	c.out(0, ssa.Tensor(t, in...))
	c.out(1, ssa.Tensor(tensor.Int64, in...))
}

// matmul is the shape of NumPy's matmul; nil if a rank is unknown.
func (c *infer) matmul(a, b []sym.Expr) []sym.Expr {
	if a == nil || b == nil {
		return nil
	}
	if len(a) == 0 || len(b) == 0 {
		c.fail("a product of matrices takes no tensor of rank 0")
		return nil
	}
	row, col := len(a) == 1, len(b) == 1
	if row {
		a = append([]sym.Expr{sym.Const(1)}, a...)
	}
	if col {
		b = append(slices.Clone(b), sym.Const(1))
	}
	k1, k2 := a[len(a)-1], b[len(b)-2]
	if x, ok := k1.Int(); ok {
		if y, ok := k2.Int(); ok && x != y {
			c.fail("shapes %s and %s do not fit", dimString(a), dimString(b))
			return nil
		}
	}
	c.same(k1, k2)
	out := c.broadcast(a[:len(a)-2], b[:len(b)-2])
	if !row {
		out = append(out, a[len(a)-2])
	}
	if !col {
		out = append(out, b[len(b)-1])
	}
	return out
}

func inferMatMul(c *infer) {
	switch c.o.Kind {
	case "onnx::MatMul":
		d := c.in(0).DType
		if d == tensor.Undefined {
			d = c.in(1).DType
		}
		c.out(0, ranked(d, c.matmul(c.dims(0), c.dims(1))))
	case "onnx::MatMulInteger":
		c.out(0, ranked(tensor.Int32, c.matmul(c.dims(0), c.dims(1))))
	default:
		c.out(0, ranked(c.in(7).DType, c.matmul(c.dims(0), c.dims(3))))
	}
}

func inferGemm(c *infer) {
	a, b := c.dims(0), c.dims(1)
	out := c.freshDims(0, 2)
	if a != nil && len(a) != 2 || b != nil && len(b) != 2 {
		c.fail("a product of matrices takes no tensors of rank %d and %d", len(a), len(b))
		return
	}
	if a != nil {
		if c.o.AttrInt("transA", 0) != 0 {
			a[0], a[1] = a[1], a[0]
		}
		out[0] = a[0]
	}
	if b != nil {
		if c.o.AttrInt("transB", 0) != 0 {
			b[0], b[1] = b[1], b[0]
		}
		out[1] = b[1]
	}
	if a != nil && b != nil {
		c.matmul(a, b)
	}
	c.out(0, ssa.Tensor(c.in(0).DType, out...))
}

// rangeSize is the number of elements of a Range of constants of a float type.
func rangeSize(start, limit, delta *tensor.Tensor) (int64, bool) {
	var v [3]float64
	for i, t := range [...]*tensor.Tensor{start, limit, delta} {
		if t == nil || !t.HasData() || t.NumElements() != 1 || !(t.DType.IsFloat() || t.DType.IsInt()) || t.DType.IsFloat() && t.DType.Size() == 1 {
			return 0, false
		}
		v[i] = t.Float64s()[0]
	}
	n := math.Ceil((v[1] - v[0]) / v[2])
	if !(n > 0) {
		return 0, v[2] != 0
	}
	return int64(n), n < 1<<40
}

// Equation is a parsed Einsum equation. Labels are letters; EllipsisLabel
// stands for the axes that an operand's "..." covers.
type Equation struct {
	Inputs [][]byte
	Output []byte
}

// EllipsisLabel is the label of "..." in an Equation.
const EllipsisLabel = '.'

// ParseEquation reads an Einsum equation; without "->" the output has the
// letters that occur once, sorted, after the broadcast axes.
func ParseEquation(s string, operands int) (e Equation, ok bool) {
	var terms []byte
	for i := 0; i < len(s); i++ {
		if s[i] != ' ' {
			terms = append(terms, s[i])
		}
	}
	side := func(t []byte) ([]byte, bool) {
		out := []byte{}
		for i := 0; i < len(t); i++ {
			switch {
			case t[i] >= 'a' && t[i] <= 'z' || t[i] >= 'A' && t[i] <= 'Z':
				out = append(out, t[i])
			case t[i] == '.' && i+2 < len(t) && t[i+1] == '.' && t[i+2] == '.' && !slices.Contains(out, EllipsisLabel):
				out = append(out, EllipsisLabel)
				i += 2
			default:
				return nil, false
			}
		}
		return out, true
	}
	text := string(terms)
	left, right, explicit := text, "", false
	for i := 0; i+1 < len(text); i++ {
		if text[i] == '-' && text[i+1] == '>' {
			left, right, explicit = text[:i], text[i+2:], true
			break
		}
	}
	start := 0
	count := map[byte]int{}
	for i := 0; i <= len(left); i++ {
		if i < len(left) && left[i] != ',' {
			continue
		}
		t, good := side([]byte(left[start:i]))
		if !good {
			return e, false
		}
		e.Inputs = append(e.Inputs, t)
		for _, l := range t {
			count[l]++
		}
		start = i + 1
	}
	if len(e.Inputs) != operands {
		return e, false
	}
	if !explicit {
		e.Output = []byte{}
		if count[EllipsisLabel] > 0 {
			e.Output = append(e.Output, EllipsisLabel)
		}
		for l := byte('A'); l <= 'z'; l++ {
			if count[l] == 1 && l != EllipsisLabel {
				e.Output = append(e.Output, l)
			}
		}
		return e, true
	}
	if e.Output, ok = side([]byte(right)); !ok {
		return e, false
	}
	for i, l := range e.Output {
		if l != EllipsisLabel && count[l] == 0 || slices.Contains(e.Output[:i], l) {
			return e, false
		}
	}
	return e, true
}

func inferEinsum(c *infer) {
	text := c.o.AttrStr("equation", "")
	e, ok := ParseEquation(text, c.o.NumOperands())
	if !ok {
		c.fail("equation %q does not fit %d operands", text, c.o.NumOperands())
		return
	}
	size := map[byte]sym.Expr{}
	var ellipsis []sym.Expr
	unknown := false
	for i, labels := range e.Inputs {
		in := c.dims(i)
		if in == nil {
			unknown = unknown || slices.Contains(labels, EllipsisLabel)
			continue
		}
		n := len(labels)
		if slices.Contains(labels, EllipsisLabel) {
			n--
		}
		if len(in) < n || len(in) > n && n == len(labels) {
			c.fail("equation %q does not fit operand %d of rank %d", text, i, len(in))
			return
		}
		at := 0
		for _, l := range labels {
			if l == EllipsisLabel {
				k := len(in) - n
				ellipsis = c.broadcast(append([]sym.Expr{}, ellipsis...), append([]sym.Expr{}, in[at:at+k]...))
				at += k
				continue
			}
			if d, seen := size[l]; seen {
				a, okA := d.Int()
				b, okB := in[at].Int()
				if okA && okB && a != b && a != 1 && b != 1 {
					c.fail("%c in equation %q is of size %d and %d", l, text, a, b)
					return
				}
				size[l] = d.Broadcast(in[at])
			} else {
				size[l] = in[at]
			}
			at++
		}
	}
	if unknown && slices.Contains(e.Output, EllipsisLabel) {
		c.out(0, ssa.Unranked(c.in(0).DType))
		return
	}
	out := []sym.Expr{}
	for _, l := range e.Output {
		if l == EllipsisLabel {
			out = append(out, ellipsis...)
		} else if d, ok := size[l]; ok {
			out = append(out, d)
		} else {
			out = append(out, c.m.FreshSymbol("u", 0))
		}
	}
	c.out(0, ssa.Tensor(c.in(0).DType, out...))
}
