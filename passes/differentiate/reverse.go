package differentiate

import (
	"iter"
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// reverser builds gradients at a place of the program.
type reverser struct {
	block *ssa.Block
	at    *ssa.Op // what is built stands in front of it; nil stands for the end of the block
	loc   diag.Loc
	asks  ssa.Kind // the operator that asks for gradients
	// lists has the gradients of the elements of lists and tuples; nil for those that have none.
	lists     map[*ssa.Value][]*ssa.Value
	constants map[constantKey]*ssa.Value
}

// follow marks the values that depend on those that are marked.
func follow(line way, active map[*ssa.Value]bool) {
	for _, o := range line {
		if aten.GradientOf(o.Kind) == aten.NoGradient || !reads(o, active) {
			continue
		}
		for _, v := range o.Results {
			if differentiable(v.Type) {
				active[v] = true
			}
		}
	}
}

// reads reports whether an operator, or one in its blocks, has a marked operand.
func reads(o *ssa.Op, active map[*ssa.Value]bool) bool {
	if slices.ContainsFunc(o.Operands(), func(v *ssa.Value) bool { return active[v] }) {
		return true
	}
	for _, b := range o.Blocks {
		if slices.ContainsFunc(b.Returns(), func(v *ssa.Value) bool { return active[v] }) {
			return true
		}
		for p := range b.Ops() {
			if reads(p, active) {
				return true
			}
		}
	}
	return false
}

// readBy are the operands of an operator and of those in its blocks.
func readBy(o *ssa.Op) iter.Seq[*ssa.Value] {
	return func(yield func(*ssa.Value) bool) {
		for _, v := range o.Operands() {
			if v != nil && !yield(tensorOf(v)) {
				return
			}
		}
		for _, b := range o.Blocks {
			for p := range b.AllOps() {
				for _, v := range p.Operands() {
					if v != nil && !yield(tensorOf(v)) {
						return
					}
				}
			}
		}
	}
}

// differentiable reports a type that may hold a tensor.
func differentiable(t ssa.Type) bool {
	switch t := t.(type) {
	case *ssa.TensorType:
		return true
	case *ssa.OptionalType:
		return differentiable(t.Elem)
	case *ssa.ListType:
		return differentiable(t.Elem)
	case *ssa.DictType:
		return differentiable(t.Value)
	case *ssa.TupleType:
		return slices.ContainsFunc(t.Elems, differentiable)
	}
	return false
}

// back carries gradients from the end of a line to the values that are marked.
func (r *reverser) back(line way, active map[*ssa.Value]bool, grads map[*ssa.Value]*ssa.Value) {
	outer := r.lists
	r.lists = map[*ssa.Value][]*ssa.Value{}
	defer func() { r.lists = outer }()
	for _, o := range slices.Backward(line) {
		if aten.GradientOf(o.Kind) == aten.NoGradient { // what it gives may be a tensor to differentiate by
			continue
		}
		if (o.Kind == "prim::SetAttr" || o.Schema != nil && o.Schema.Mutates() && o.Kind != "aten::requires_grad_") && reads(o, active) {
			r.loc = o.Loc
			r.fail("%s writes to a tensor, a container or an object on the way of a gradient", o.Kind)
		}
		if slices.ContainsFunc(o.Results, func(v *ssa.Value) bool { return active[v] && (grads[v] != nil || r.lists[v] != nil) }) {
			r.loc = o.Loc
			r.step(o, active, grads)
		}
	}
}

// add adds a gradient to that which a value has.
func (r *reverser) add(grads map[*ssa.Value]*ssa.Value, v, g *ssa.Value) {
	if have := grads[v]; have != nil {
		g = r.op("add", have, g)
	}
	grads[v] = g
}

// addElement adds a gradient to that of an element of a list of n.
func (r *reverser) addElement(list *ssa.Value, n, i int, g *ssa.Value) {
	if r.lists[list] == nil {
		r.lists[list] = make([]*ssa.Value, n)
	}
	if have := r.lists[list][i]; have != nil {
		g = r.op("add", have, g)
	}
	r.lists[list][i] = g
}

// step carries the gradients of an operator's results to its operands.
func (r *reverser) step(o *ssa.Op, active map[*ssa.Value]bool, grads map[*ssa.Value]*ssa.Value) {
	switch o.Kind {
	case prim.ListConstruct, prim.TupleConstruct:
		for i, g := range r.lists[o.Result(0)] {
			if v := o.Operand(i); g != nil && active[v] {
				r.add(grads, v, g)
			}
		}
		return
	case prim.ListUnpack, prim.TupleUnpack:
		for i, v := range o.Results {
			if g := grads[v]; g != nil {
				r.addElement(o.Operand(0), len(o.Results), i, g)
			}
		}
		return
	case "aten::__getitem__", "prim::TupleIndex":
		es, ok := aten.ListElems(o.Operand(0))
		i, known := aten.ConstInt(o.Operand(1))
		if i < 0 {
			i += int64(len(es))
		}
		if !ok || !known || i < 0 || i >= int64(len(es)) {
			r.fail("the gradient of an element of a list needs the list as it was written, and the index")
		}
		r.addElement(o.Operand(0), len(es), int(i), grads[o.Result(0)])
		return
	case "prim::unchecked_cast", "aten::_unwrap_optional":
		r.add(grads, o.Operand(0), grads[o.Result(0)])
		return
	case prim.If:
		r.branch(o, active, grads)
		return
	case prim.Loop:
		r.fail("the gradient goes through a loop")
	}
	r.apply(o, active, grads)
}

// branch builds the gradients of an If: an If with the same condition, whose blocks compute what the blocks of the first one compute, and then the gradients
// of what these read.
func (r *reverser) branch(o *ssa.Op, active map[*ssa.Value]bool, grads map[*ssa.Value]*ssa.Value) {
	var read []*ssa.Value // marked values from outside
	var collect func(b *ssa.Block)
	note := func(v *ssa.Value) {
		if active[v] && !inside(v, o) && !slices.Contains(read, v) {
			if o, ok := v.Type.(*ssa.OptionalType); ssa.AsTensor(v.Type) == nil && !(ok && ssa.AsTensor(o.Elem) != nil) {
				r.fail("the gradient goes through a branch that reads a list from outside")
			}
			read = append(read, v)
		}
	}
	collect = func(b *ssa.Block) {
		for p := range b.Ops() {
			for _, v := range p.Operands() {
				note(v)
			}
			for _, inner := range p.Blocks {
				collect(inner)
			}
		}
		for _, v := range b.Returns() {
			note(v)
		}
	}
	for _, b := range o.Blocks {
		collect(b)
	}
	out := r.block.InsertBefore(r.at, prim.If, o.Loc, []*ssa.Value{o.Operand(0)})
	cond, known := aten.LiteralOf(o.Operand(0))
	for k, b := range o.Blocks {
		nb := out.AddBlock()
		if known && cond.Bool() != (k == 0) { // never evaluated
			inner := &reverser{block: nb, loc: r.loc, asks: r.asks}
			var returns []*ssa.Value
			for _, v := range read {
				returns = append(returns, inner.zero(v))
			}
			nb.SetReturns(returns...)
			continue
		}
		values := make([]*ssa.Value, r.block.Func().NumValues())
		nb.CopyInto(nil, b, values, nil, nil)
		var line way
		for p := range nb.Ops() {
			line = append(line, p)
		}
		inner := &reverser{block: nb, loc: r.loc, asks: r.asks}
		seeds := map[*ssa.Value]*ssa.Value{}
		marked := map[*ssa.Value]bool{}
		for _, v := range read {
			marked[v] = true
		}
		follow(line, marked)
		for i, v := range b.Returns() {
			w := v
			if v.ID < len(values) && values[v.ID] != nil {
				w = values[v.ID]
			}
			if g := grads[o.Result(i)]; g != nil && marked[w] {
				inner.add(seeds, w, g)
			} else if r.lists[o.Result(i)] != nil {
				r.fail("the gradient goes through a list that a branch gives")
			}
		}
		inner.back(line, marked, seeds)
		var returns []*ssa.Value
		for _, v := range read {
			g := seeds[v]
			if g == nil {
				g = inner.zero(v)
			}
			returns = append(returns, g)
		}
		nb.SetReturns(returns...)
	}
	for _, v := range read {
		if ssa.AsTensor(v.Type) != nil {
			r.add(grads, v, out.AddResult(ssa.AnyTensor))
		} else {
			r.add(grads, v, r.op("_unwrap_optional", out.AddResult(v.Type)))
		}
	}
}

// zero is the gradient of a value that a block does not read: None if the value may be None.
func (r *reverser) zero(v *ssa.Value) *ssa.Value {
	if ssa.AsTensor(v.Type) == nil {
		return r.constant(ssa.Literal{})
	}
	return r.op("zeros_like", v)
}
