package onnx

import (
	"slices"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// inferSequenceEmpty: of the element type of the attribute dtype.
func inferSequenceEmpty(c *infer) {
	c.out(0, &ssa.ListType{Elem: ssa.Unranked(c.dtypeAttr("dtype", tensor.Float32))})
}

// inferSequenceErase: a sequence of the same elements.
func inferSequenceErase(c *infer) { c.out(0, c.o.Operand(0).Type) }

// inferSequenceAt: an element.
func inferSequenceAt(c *infer) { c.out(0, c.element(c.o.Operand(0).Type)) }

// inferSequenceLength: a number.
func inferSequenceLength(c *infer) { c.out(0, ssa.Tensor(tensor.Int64)) }

// inferHasElement: a bool.
func inferHasElement(c *infer) { c.out(0, ssa.Tensor(tensor.Bool)) }

// inferGetElement: what the optional holds, or the operand, which always is.
func inferGetElement(c *infer) {
	if t, ok := c.o.Operand(0).Type.(*ssa.OptionalType); ok {
		c.out(0, t.Elem)
	} else {
		c.out(0, c.o.Operand(0).Type)
	}
}

// join is Join with fresh symbols for result i. Values that cannot have one
// type are an error.
func (c *infer) join(i int, a, b ssa.Type) ssa.Type {
	t, ok := Join(a, b, func(axis, rank int) sym.Expr { return c.fresh(i, axis, rank) })
	if !ok {
		c.fail("result %d is %v on one path and %v on another", i, a, b)
		return a
	}
	return t
}

// body infers a block; false if that failed.
func (c *infer) body(b *ssa.Block) bool {
	if err := InferBlock(b); err != nil && c.err == nil {
		c.err = err
	}
	return c.err == nil
}

func inferIf(c *infer) {
	if len(c.o.Blocks) != 2 {
		c.fail("If has %d subgraphs", len(c.o.Blocks))
		return
	}
	a, b := c.o.Blocks[0], c.o.Blocks[1]
	if a.NumReturns() != len(c.o.Results) || b.NumReturns() != len(c.o.Results) {
		c.fail("the branches return %d and %d values, not %d", a.NumReturns(), b.NumReturns(), len(c.o.Results))
		return
	}
	if !c.body(a) || !c.body(b) {
		return
	}
	for i, r := range c.o.Results {
		x, y := a.Return(i), b.Return(i)
		c.out(i, c.join(i, x.Type, y.Type))
		sx, okX := SymOf(x)
		sy, okY := SymOf(y)
		if okX && okY && slices.EqualFunc(sx, sy, sym.Expr.Equal) && ssa.SameType(x.Type, y.Type) {
			r.Sym = sx
		}
	}
}

// maxRounds bounds how often the body of a loop is inferred until the types of
// its carried values no longer change; each round only forgets sizes.
const maxRounds = 4

func inferLoop(c *infer) {
	if len(c.o.Blocks) != 1 {
		c.fail("Loop has %d subgraphs", len(c.o.Blocks))
		return
	}
	b := c.o.Blocks[0]
	n := max(c.o.NumOperands()-2, 0) // carried values
	if len(b.Params) != n+2 || b.NumReturns() != len(c.o.Results)+1 || len(c.o.Results) < n {
		c.fail("the body takes %d and returns %d values, for %d carried values and %d results", len(b.Params), b.NumReturns(), n, len(c.o.Results))
		return
	}
	b.Params[0].Type, b.Params[1].Type = ssa.Tensor(tensor.Int64), ssa.Tensor(tensor.Bool)
	for i := range n {
		if v := c.o.Operand(i + 2); v != nil {
			b.Params[i+2].Type = v.Type
		}
	}
	if !c.carried(b, n, 2, 1) {
		return
	}
	for i := range n {
		// The parameter's symbols stand for any iteration; the result's size is one of its own.
		c.out(i, c.rename(i, b.Params[i+2].Type, c.o.Operand(i+2)))
	}
	trips := c.tripCount(b)
	for i := n; i < len(c.o.Results); i++ {
		t := ssa.AsTensor(b.Return(i + 1).Type)
		if t == nil {
			c.fail("a scan output must be a tensor")
			return
		}
		if !t.Ranked {
			c.out(i, ssa.Unranked(t.DType))
			continue
		}
		dims := c.outside(i, t.Dims, b)
		size := trips
		if size == nil {
			s := c.fresh(i, 0, len(dims)+1)
			size = &s
		}
		c.out(i, ssa.Tensor(t.DType, append([]sym.Expr{*size}, dims...)...))
	}
}

// carried infers a body until the types of its n carried values hold for every
// iteration: sizes that an iteration changes become symbols. The values are
// parameters from firstParam on and returns from firstReturn on.
func (c *infer) carried(b *ssa.Block, n, firstParam, firstReturn int) bool {
	born := map[string]bool{}
	before := typesIn(b)
	for round := 0; ; round++ {
		if round > 0 {
			// what an earlier round found holds for fewer values than there are: a size that is not found again must not stay
			restore(b, before)
		}
		if !c.body(b) {
			return false
		}
		changed := false
		for i := range n {
			p, r := b.Params[firstParam+i], b.Return(firstReturn+i)
			t, ok := Join(p.Type, r.Type, func(axis, rank int) sym.Expr {
				d := p.Tensor().Dims[axis]
				if name, lone := d.Name(); lone && born[name] {
					return d
				}
				d = c.fresh(i, axis, rank)
				if name, lone := d.Name(); lone {
					born[name] = true
				}
				return d
			})
			if !ok {
				c.fail("carried value %d starts as %v and becomes %v", i, p.Type, r.Type)
				return false
			}
			if round == maxRounds {
				t = forget(t)
			}
			if !ssa.SameType(t, p.Type) {
				p.Type, changed = t, true
			}
		}
		if !changed || round > maxRounds {
			return true
		}
	}
}

// typesIn lists the types of all results in a block and the blocks in it.
func typesIn(b *ssa.Block) (out []ssa.Type) {
	for o := range b.AllOps() {
		for _, r := range o.Results {
			out = append(out, r.Type)
		}
	}
	return out
}

// restore gives the results in a block the types that typesIn found.
func restore(b *ssa.Block, types []ssa.Type) {
	for o := range b.AllOps() {
		for _, r := range o.Results {
			r.Type, types = types[0], types[1:]
		}
	}
}

// forget drops the sizes of a tensor type.
func forget(t ssa.Type) ssa.Type {
	if x := ssa.AsTensor(t); x != nil {
		return ssa.Unranked(x.DType)
	}
	return t
}

// rename gives a carried value's type outside of the loop: sizes that the loop
// does not change are those of the initial value, others become the result's own symbols.
func (c *infer) rename(i int, t ssa.Type, initial *ssa.Value) ssa.Type {
	x := ssa.AsTensor(t)
	if x == nil || !x.Ranked {
		return t
	}
	var first *ssa.TensorType
	if initial != nil {
		first = initial.Tensor()
	}
	dims := slices.Clone(x.Dims)
	for k, d := range dims {
		if first != nil && first.Ranked && len(first.Dims) == len(dims) && first.Dims[k].Equal(d) {
			continue
		}
		if !d.IsConst() {
			dims[k] = c.fresh(i, k, len(dims))
		}
	}
	return ssa.Tensor(x.DType, dims...)
}

// outside replaces sizes that mention symbols born in the loop's body, which
// may differ from one iteration to the next, by fresh ones.
func (c *infer) outside(i int, dims []sym.Expr, b *ssa.Block) []sym.Expr {
	inner := map[string]bool{}
	var born func(b *ssa.Block)
	note := func(v *ssa.Value) {
		if t := v.Tensor(); t != nil {
			for _, d := range t.Dims {
				d.Symbols(func(name string) { inner[name] = true })
			}
		}
	}
	born = func(b *ssa.Block) {
		for _, p := range b.Params {
			note(p)
		}
		for o := range b.Ops() {
			for _, r := range o.Results {
				note(r)
			}
			for _, n := range o.Blocks {
				born(n)
			}
		}
	}
	born(b)
	// Symbols of values from outside stay.
	for o := range b.AllOps() {
		for _, v := range o.Operands() {
			if v != nil && !b.Encloses(v.Block()) {
				if t := v.Tensor(); t != nil {
					for _, d := range t.Dims {
						d.Symbols(func(name string) { delete(inner, name) })
					}
				}
			}
		}
	}
	for _, v := range c.o.Operands() {
		if v != nil && v.Tensor() != nil {
			for _, d := range v.Tensor().Dims {
				d.Symbols(func(name string) { delete(inner, name) })
			}
		}
	}
	out := slices.Clone(dims)
	for k, d := range out {
		bad := false
		d.Symbols(func(name string) { bad = bad || inner[name] })
		if bad {
			out[k] = c.fresh(i, k+1, len(out)+1)
		}
	}
	return out
}

// tripCount is the number of iterations of a loop that only counts.
func (c *infer) tripCount(b *ssa.Block) *sym.Expr {
	m, ok := c.syms(0)
	if !ok || len(m) != 1 || m[0].Min() < 0 {
		return nil
	}
	if v := c.o.Operand(1); v != nil {
		if t := ConstOf(v); t == nil || !t.HasData() || t.NumElements() != 1 || t.Int64s()[0] == 0 {
			return nil
		}
	}
	cond := b.Return(0)
	for cond.Def() != nil && cond.Def().Kind == "onnx::Identity" {
		cond = cond.Def().Operand(0)
	}
	if cond != b.Params[1] {
		if t := ConstOf(cond); t == nil || !t.HasData() || t.NumElements() != 1 || t.Int64s()[0] == 0 {
			return nil
		}
	}
	return &m[0]
}

func inferScan(c *infer) {
	if len(c.o.Blocks) != 1 {
		c.fail("Scan has %d subgraphs", len(c.o.Blocks))
		return
	}
	b := c.o.Blocks[0]
	k := int(c.o.AttrInt("num_scan_inputs", 0))
	n := c.o.NumOperands() - k // state variables
	if k < 0 || n < 0 || len(b.Params) != n+k || b.NumReturns() != len(c.o.Results) || len(c.o.Results) < n {
		c.fail("the body does not fit the inputs")
		return
	}
	inAxes, outAxes := c.o.AttrInts("scan_input_axes"), c.o.AttrInts("scan_output_axes")
	length := c.m.FreshSymbol("u", 0)
	for i := range k {
		t := c.in(n + i)
		p := b.Params[n+i]
		if !t.Ranked {
			p.Type = ssa.Unranked(t.DType)
			continue
		}
		axis := 0
		if i < len(inAxes) {
			axis = c.axis(inAxes[i], len(t.Dims))
		}
		if len(t.Dims) == 0 || c.err != nil {
			c.fail("a scan input of rank 0")
			return
		}
		length = t.Dims[axis]
		p.Type = ssa.Tensor(t.DType, append(slices.Clone(t.Dims[:axis]), t.Dims[axis+1:]...)...)
	}
	for i := range n {
		if v := c.o.Operand(i); v != nil {
			b.Params[i].Type = v.Type
		}
	}
	if !c.carried(b, n, 0, 0) {
		return
	}
	for i, r := range c.o.Results {
		t := b.Return(i).Type
		if i < n {
			c.out(i, c.rename(i, b.Params[i].Type, c.o.Operand(i)))
			continue
		}
		x := ssa.AsTensor(t)
		if x == nil || !x.Ranked {
			c.out(i, ssa.Unranked(r.DType()))
			if x != nil {
				c.out(i, ssa.Unranked(x.DType))
			}
			continue
		}
		axis := 0
		if i-n < len(outAxes) {
			axis = c.axis(outAxes[i-n], len(x.Dims)+1)
		}
		if c.err == nil {
			c.out(i, ssa.Tensor(x.DType, slices.Insert(c.outside(i, x.Dims, b), axis, length)...))
		}
	}
}

// element is the type of an element of a sequence; sizes that vary become fresh symbols.
func (c *infer) element(t ssa.Type) ssa.Type {
	l, ok := t.(*ssa.ListType)
	if !ok {
		return ssa.AnyTensor
	}
	x := ssa.AsTensor(l.Elem)
	if x == nil || !x.Ranked {
		return l.Elem
	}
	dims := slices.Clone(x.Dims)
	for i, d := range dims {
		if sym.Varies(d) {
			dims[i] = c.fresh(0, i, len(dims))
		}
	}
	return ssa.Tensor(x.DType, dims...)
}

func inferSequenceMap(c *infer) {
	if len(c.o.Blocks) != 1 {
		c.fail("SequenceMap has %d subgraphs", len(c.o.Blocks))
		return
	}
	b := c.o.Blocks[0]
	if len(b.Params) != c.o.NumOperands() || b.NumReturns() != len(c.o.Results) {
		c.fail("the body does not fit the inputs")
		return
	}
	for i, p := range b.Params {
		v := c.o.Operand(i)
		if v == nil {
			continue
		}
		if l, ok := v.Type.(*ssa.ListType); ok {
			p.Type = l.Elem
		} else {
			p.Type = v.Type
		}
	}
	if !c.body(b) {
		return
	}
	for i := range c.o.Results {
		e := b.Return(i).Type
		if x := ssa.AsTensor(e); x != nil && x.Ranked {
			dims := slices.Clone(x.Dims)
			for k, d := range dims {
				if !d.IsConst() {
					dims[k] = sym.Varying(k)
				}
			}
			e = ssa.Tensor(x.DType, dims...)
		}
		c.out(i, &ssa.ListType{Elem: e})
	}
}

func inferSequenceConstruct(c *infer) {
	var e ssa.Type
	for i := range c.o.NumOperands() {
		t := ssa.Type(c.in(i))
		if e == nil {
			e = t
		} else if j, ok := Join(e, t, varying); ok {
			e = j
		} else {
			c.fail("elements of type %v and %v", e, t)
			return
		}
	}
	if e == nil {
		e = ssa.AnyTensor
	}
	c.out(0, &ssa.ListType{Elem: e})
}

func inferSequenceInsert(c *infer) {
	l, ok := c.o.Operand(0).Type.(*ssa.ListType)
	if !ok {
		c.out(0, &ssa.ListType{Elem: c.in(1)})
		return
	}
	if d := c.o.Operand(0).Def(); d != nil && d.Kind == "onnx::SequenceEmpty" {
		if x := ssa.AsTensor(l.Elem); x != nil && x.DType != c.in(1).DType && c.in(1).DType != tensor.Undefined {
			c.fail("a sequence of %v gets %v", l.Elem, c.in(1))
			return
		}
		c.out(0, &ssa.ListType{Elem: c.in(1)})
		return
	}
	e, ok := Join(l.Elem, c.in(1), varying)
	if !ok {
		c.fail("a sequence of %v gets %v", l.Elem, c.in(1))
		return
	}
	c.out(0, &ssa.ListType{Elem: e})
}

func inferSplitToSequence(c *infer) {
	in, d := c.dims(0), c.in(0).DType
	if in == nil {
		c.out(0, &ssa.ListType{Elem: ssa.Unranked(d)})
		return
	}
	axis := c.axis(c.o.AttrInt("axis", 0), len(in))
	if c.err != nil {
		return
	}
	switch s, ok := c.syms(1); {
	case !c.has(1) && c.o.AttrInt("keepdims", 1) == 0:
		in = append(in[:axis], in[axis+1:]...)
	case !c.has(1):
		in[axis] = sym.Const(1)
	case ok && len(c.dims(1)) == 0 && len(s) == 1 && in[axis].Mod(s[0]).Is(0):
		in[axis] = s[0]
	case ok && len(c.dims(1)) == 1 && len(s) > 0 && allEqual(s):
		in[axis] = s[0]
	default:
		in[axis] = sym.Varying(axis)
	}
	c.out(0, &ssa.ListType{Elem: ssa.Tensor(d, in...)})
}

func allEqual(s []sym.Expr) bool {
	for _, e := range s {
		if !e.Equal(s[0]) {
			return false
		}
	}
	return true
}

func inferConcatFromSequence(c *infer) {
	l, _ := c.o.Operand(0).Type.(*ssa.ListType)
	if l == nil {
		return
	}
	x := ssa.AsTensor(l.Elem)
	if x == nil || !x.Ranked {
		d := tensor.Undefined
		if x != nil {
			d = x.DType
		}
		c.out(0, ssa.Unranked(d))
		return
	}
	dims := slices.Clone(x.Dims)
	rank := len(dims)
	if c.o.AttrInt("new_axis", 0) != 0 {
		rank++
	}
	axis := c.axis(c.o.AttrInt("axis", 0), rank)
	if c.err != nil {
		return
	}
	if rank > len(dims) {
		dims = slices.Insert(dims, axis, sym.Const(0))
	}
	for i := range dims {
		if i == axis || sym.Varies(dims[i]) {
			dims[i] = c.fresh(0, i, rank)
		}
	}
	if s := c.o.Operand(0).Def(); s != nil && s.Kind == "onnx::SequenceConstruct" {
		// All elements are at hand: their sizes along the axis add up.
		total, ok := sym.Const(int64(s.NumOperands())), true
		if rank == len(x.Dims) {
			total = sym.Const(0)
			for _, v := range s.Operands() {
				if t := v.Tensor(); t != nil && t.Ranked && len(t.Dims) == rank {
					total = total.Add(t.Dims[axis])
				} else {
					ok = false
				}
			}
		}
		if ok {
			dims[axis] = total
		}
	}
	c.out(0, ssa.Tensor(x.DType, dims...))
}

func inferOptional(c *infer) {
	if v := c.o.Operand(0); v != nil {
		c.out(0, &ssa.OptionalType{Elem: v.Type})
		return
	}
	l, ok := c.o.Attr("type")
	if !ok || l.Kind != ssa.TypeLit {
		c.fail("an Optional without input needs the attribute type")
		return
	}
	c.out(0, &ssa.OptionalType{Elem: l.Elem})
}
