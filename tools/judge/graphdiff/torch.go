package main

import (
	"sort"

	"github.com/aton-project/aton/passes/inline"
	"github.com/aton-project/aton/ssa"
)

// torch does to a module what PyTorch's compiler does while it compiles and
// inlines: every function is cleaned up, and a callee is also optimized before
// it is put where it is called.
type torch struct {
	m    *ssa.Module
	done map[*ssa.Func]bool
}

// prepare cleans up and optimizes a function, its callees first.
func (t *torch) prepare(f *ssa.Func) error {
	if t.done[f] {
		return nil
	}
	t.done[f] = true
	cleanUp(t.m, f)
	if err := t.callees(f); err != nil {
		return err
	}
	if f != t.m.Main() {
		optimize(t.m, f)
	}
	return nil
}

func (t *torch) callees(f *ssa.Func) error {
	for o := range f.Body.AllOps() {
		var g *ssa.Func
		switch o.Kind {
		case "prim::CallMethod":
			if c, ok := o.Operand(0).Type.(*ssa.ClassType); ok {
				g = t.m.Func(c.Name + "." + o.AttrStr("name", ""))
			}
		case "prim::CallFunction":
			g = t.m.Func(o.Operand(0).Def().AttrStr("name", ""))
		}
		if g != nil {
			if err := t.prepare(g); err != nil {
				return err
			}
		}
	}
	return inline.Into(t.m, f).Err()
}

// cleanUp removes tuples that are taken apart where they were made, folds
// constants, and removes what is not used.
func cleanUp(m *ssa.Module, f *ssa.Func) {
	simpleTuples(f.Body)
	for removeDead(m, f.Body) {
	}
	propagate(m, f)
}

func optimize(m *ssa.Module, f *ssa.Func) {
	for peephole(f.Body) {
		for removeDead(m, f.Body) {
		}
	}
	for removeDead(m, f.Body) {
	}
	propagate(m, f)
}

// optimizeFully repeats the rules until nothing changes.
func optimizeFully(m *ssa.Module, f *ssa.Func) {
	for round := 0; round < 50; round++ {
		changed := peephole(f.Body)
		propagate(m, f)
		if !changed && !fold(f.Body) {
			return
		}
	}
}

func propagate(m *ssa.Module, f *ssa.Func) {
	for fold(f.Body) {
		for removeDead(m, f.Body) {
		}
	}
	for removeDead(m, f.Body) {
	}
}

// simpleTuples replaces the elements of tuples that are made in the function.
func simpleTuples(b *ssa.Block) {
	for o := range b.Ops() {
		for _, c := range o.Blocks {
			simpleTuples(c)
		}
		if o.NumOperands() == 0 || o.Operand(0).Def() == nil || o.Operand(0).Def().Kind != "prim::TupleConstruct" {
			continue
		}
		elems := o.Operand(0).Def().Operands()
		switch o.Kind {
		case "prim::TupleUnpack":
			o.Replace(elems...)
		case "prim::TupleIndex":
			if v, ok := constant(o.Operand(1)); ok {
				i := v.Int()
				if i < 0 {
					i += int64(len(elems))
				}
				o.Replace(elems[i])
			}
		}
	}
}

// constant gives the literal of a constant value.
func constant(v *ssa.Value) (ssa.Literal, bool) {
	if d := v.Def(); d != nil && d.Kind == "prim::Constant" {
		l, ok := d.Attr("value")
		return l, ok || v.Type == ssa.NoneType
	}
	return ssa.None, false
}

func newConstant(before *ssa.Op, l ssa.Literal) *ssa.Value {
	c := before.Block().InsertBefore(before, "prim::Constant", before.Loc, nil, l.Type())
	c.SetAttr("value", l)
	return c.Result(0)
}

// peephole applies the rules that need no shapes.
func peephole(b *ssa.Block) bool {
	changed := false
	for o := range b.Ops() {
		for _, c := range o.Blocks {
			changed = peephole(c) || changed
		}
		for _, r := range o.Results {
			if r.Type == ssa.NoneType && r.HasUses() && o.Kind != "prim::Constant" {
				none := b.InsertBefore(o, "prim::Constant", o.Loc, nil, ssa.NoneType).Result(0)
				r.ReplaceUses(none)
				changed = true
			}
		}
		switch o.Kind {
		case "aten::add", "aten::mul":
			if x, y := o.Operand(0).Def(), o.Operand(1).Def(); o.Kind == "aten::add" && x != nil && y != nil &&
				x.Kind == "prim::ListConstruct" && y.Kind == "prim::ListConstruct" && unmutated(x) && unmutated(y) {
				l := b.InsertBefore(o, "prim::ListConstruct", o.Loc, append(x.Operands(), y.Operands()...), o.Result(0).Type)
				o.Replace(l.Result(0))
				changed = true
				break
			}
			if o.NumOperands() != 2 || o.Result(0).Type != ssa.IntType {
				break
			}
			_, ok1 := constant(o.Operand(0))
			_, ok2 := constant(o.Operand(1))
			if ok1 && !ok2 { // constants go right
				a, b := o.Operand(0), o.Operand(1)
				o.SetOperands(b, a)
				changed = true
				ok1, ok2 = false, true
			}
			if y, ok := constant(o.Operand(1)); ok && !ok1 && ok2 {
				if unit := map[ssa.Kind]int64{"aten::add": 0, "aten::mul": 1}[o.Kind]; y.Int() == unit {
					o.Replace(o.Operand(0))
					changed = true
				}
			}
		case "aten::cat":
			changed = joinCats(o) || changed
		case "aten::Int", "aten::Float", "aten::FloatImplicit", "aten::IntImplicit", "aten::ScalarImplicit":
			if d := o.Operand(0).Def(); d != nil && d.Kind == "prim::NumToTensor" && ssa.IsSubtype(d.Operand(0).Type, o.Result(0).Type) {
				o.Replace(d.Operand(0))
				changed = true
			}
		case "aten::__is__", "aten::__isnot__":
			for i := range 2 {
				if o.Operand(1-i).Type != ssa.NoneType {
					continue
				}
				t := o.Operand(i).Type
				_, opt := t.(*ssa.OptionalType)
				_, union := t.(*ssa.UnionType)
				if opt || union || t == ssa.AnyType {
					continue
				}
				o.Replace(newConstant(o, ssa.Bool((t == ssa.NoneType) == (o.Kind == "aten::__is__"))))
				changed = true
				break
			}
		case "prim::If":
			for i, r := range o.Results {
				x, ok1 := constant(o.Blocks[0].Return(i))
				y, ok2 := constant(o.Blocks[1].Return(i))
				if ok1 && ok2 && x.Kind == ssa.BoolLit && y.Kind == ssa.BoolLit && x.Bool() && !y.Bool() && r.HasUses() {
					r.ReplaceUses(o.Operand(0))
					changed = true
				}
			}
		case "prim::unchecked_cast":
			if ssa.IsSubtype(o.Operand(0).Type, o.Result(0).Type) {
				o.Replace(o.Operand(0))
				changed = true
			}
		case "aten::len":
			if d := o.Operand(0).Def(); d != nil && d.Kind == "prim::ListConstruct" && unmutated(d) {
				o.Replace(newConstant(o, ssa.Int(int64(d.NumOperands()))))
				changed = true
			} else if d != nil && d.Kind == "prim::DictConstruct" && unmutated(d) {
				o.Replace(newConstant(o, ssa.Int(int64(d.NumOperands()/2))))
				changed = true
			}
		case "aten::dim":
			if d := o.Operand(0).Def(); d != nil {
				if n, ok := map[ssa.Kind]int64{"aten::conv1d": 3, "aten::conv2d": 4, "aten::conv3d": 5}[d.Kind]; ok {
					o.Replace(newConstant(o, ssa.Int(n)))
					changed = true
				}
			}
		case "aten::__getitem__":
			if d := o.Operand(0).Def(); d != nil && d.Kind == "prim::ListConstruct" && unmutated(d) {
				if v, ok := constant(o.Operand(1)); ok && v.Kind == ssa.IntLit {
					i := v.Int()
					if i < 0 {
						i += int64(d.NumOperands())
					}
					if i >= 0 && i < int64(d.NumOperands()) {
						o.Replace(d.Operand(int(i)))
						changed = true
					}
				}
			}
		}
	}
	return changed
}

// joinCats puts what a cat joins, if nothing else uses it, into the list of a cat of it along the same dim.
func joinCats(o *ssa.Op) bool {
	l := o.Operand(0).Def()
	dim, ok := constant(o.Operand(1))
	if !ok || l == nil || l.Kind != "prim::ListConstruct" || l.Result(0).NumUses() != 1 {
		return false
	}
	var parts []*ssa.Value
	found := false
	for _, v := range l.Operands() {
		d := v.Def()
		if d == nil || d.Kind != "aten::cat" || v.NumUses() != 1 {
			parts = append(parts, v)
			continue
		}
		inner, at := d.Operand(0).Def(), d.Operand(1)
		if x, ok := constant(at); !ok || !x.Equal(dim) || inner == nil || inner.Kind != "prim::ListConstruct" || inner.Result(0).NumUses() != 1 {
			parts = append(parts, v)
			continue
		}
		parts, found = append(parts, inner.Operands()...), true
	}
	if found {
		n := o.Block().InsertBefore(o, "prim::ListConstruct", l.Loc, parts, l.Result(0).Type)
		l.Result(0).ReplaceUses(n.Result(0))
	}
	return found
}

func unmutated(list *ssa.Op) bool {
	for u := range list.Result(0).Uses() {
		o := u.Op()
		if o == nil || len(o.Blocks) > 0 || o.Schema == nil || o.Schema.Mutates() {
			return false
		}
	}
	return true
}

// fold evaluates operators of constants that give numbers, strings and bools,
// takes the live branch of an If, and removes results that are not needed.
func fold(b *ssa.Block) bool {
	changed := false
	for o := range b.Ops() {
		switch o.Kind {
		case "prim::If":
			if v, ok := constant(o.Operand(0)); ok {
				live := o.Blocks[1]
				if v.Bool() {
					live = o.Blocks[0]
				}
				rs := live.Returns()
				live.SetReturns()
				b.Splice(o, live)
				o.Replace(rs...)
				return true
			}
			for _, c := range o.Blocks {
				changed = fold(c) || changed
			}
			for i, r := range o.Results {
				if x := o.Blocks[0].Return(i); x == o.Blocks[1].Return(i) && r.HasUses() {
					r.ReplaceUses(x)
					changed = true
				} else if same(x, o.Blocks[1].Return(i)) && r.HasUses() {
					l, _ := constant(x)
					r.ReplaceUses(newConstant(o, l))
					changed = true
				}
			}
		case "prim::Loop":
			body := o.Blocks[0]
			trips, ok1 := constant(o.Operand(0))
			cond, ok2 := constant(o.Operand(1))
			if ok1 && trips.Int() <= 0 || ok2 && !cond.Bool() {
				o.Replace(o.Operands()[2:]...)
				return true
			}
			changed = fold(body) || changed
			for i, r := range o.Results {
				p := body.Params[i+1]
				if body.Return(i+1) == p && (r.HasUses() || p.NumUses() > 1) {
					x := o.Operand(i + 2)
					r.ReplaceUses(x)
					p.ReplaceUses(x)
					body.SetReturn(i+1, p)
					changed = true
				}
			}
		default:
			if len(o.Results) == 1 {
				if l, ok := evaluate(o); ok {
					o.Replace(newConstant(o, l))
					changed = true
				}
			}
		}
	}
	return changed
}

func same(a, b *ssa.Value) bool {
	x, ok1 := constant(a)
	y, ok2 := constant(b)
	return ok1 && ok2 && x.Equal(y) && x.Kind != ssa.NoneLit
}

// evaluate computes the operators of constants that occur in PyTorch's own functions.
func evaluate(o *ssa.Op) (ssa.Literal, bool) {
	var in []ssa.Literal
	for i := range o.NumOperands() {
		v, ok := constant(o.Operand(i))
		if !ok {
			return ssa.None, false
		}
		in = append(in, v)
	}
	switch o.Kind {
	case "aten::eq", "aten::ne":
		if len(in) == 2 && in[0].Kind == in[1].Kind && (in[0].Kind == ssa.StrLit || in[0].Kind == ssa.IntLit || in[0].Kind == ssa.BoolLit) {
			return ssa.Bool(in[0].Equal(in[1]) == (o.Kind == "aten::eq")), true
		}
	case "aten::__not__":
		return ssa.Bool(!in[0].Bool()), true
	case "aten::Float":
		if in[0].IsNumber() {
			return ssa.Float(in[0].Float()), true
		}
	case "aten::__is__", "aten::__isnot__":
		if in[0].IsNone() || in[1].IsNone() {
			return ssa.Bool((in[0].IsNone() && in[1].IsNone()) == (o.Kind == "aten::__is__")), true
		}
	case "aten::gt", "aten::lt", "aten::ge", "aten::le":
		if len(in) == 2 && in[0].IsNumber() && in[1].IsNumber() {
			a, b := in[0].Float(), in[1].Float()
			return ssa.Bool(map[ssa.Kind]bool{"aten::gt": a > b, "aten::lt": a < b, "aten::ge": a >= b, "aten::le": a <= b}[o.Kind]), true
		}
	case "aten::add", "aten::sub", "aten::mul":
		if len(in) == 2 && in[0].Kind == ssa.IntLit && in[1].Kind == ssa.IntLit {
			a, b := in[0].Int(), in[1].Int()
			return ssa.Int(map[ssa.Kind]int64{"aten::add": a + b, "aten::sub": a - b, "aten::mul": a * b}[o.Kind]), true
		}
		if len(in) == 2 && in[0].IsNumber() && in[1].IsNumber() && o.Result(0).Type == ssa.FloatType {
			a, b := in[0].Float(), in[1].Float()
			return ssa.Float(map[ssa.Kind]float64{"aten::add": a + b, "aten::sub": a - b, "aten::mul": a * b}[o.Kind]), true
		}
	case "prim::unchecked_cast":
		return in[0], true
	case "prim::TupleConstruct":
		return ssa.Tuple(in...), true
	}
	return ssa.None, false
}

// removeDead removes pure ops without uses, and results of If and Loop without uses.
func removeDead(m *ssa.Module, b *ssa.Block) bool {
	changed := false
	for o := b.Last(); o != nil; {
		prev := o.Prev()
		for _, c := range o.Blocks {
			changed = removeDead(m, c) || changed
		}
		switch o.Kind {
		case "prim::If":
			for i := len(o.Results) - 1; i >= 0; i-- {
				if !o.Results[i].HasUses() {
					o.RemoveResult(i)
					for _, c := range o.Blocks {
						c.RemoveReturn(i)
					}
					changed = true
				}
			}
		case "prim::Loop":
			changed = deadCarried(o) || changed
		}
		used := false
		for _, r := range o.Results {
			used = used || r.HasUses()
		}
		if !used && (m.Effects(o)&^(ssa.Reads|ssa.Fresh|ssa.Random) == 0 || o.Kind == "prim::ListUnpack") {
			o.Erase()
			changed = true
		} else if !used && o.Schema != nil && o.Schema.Mutates() && o.Schema.Args[0].Writes && onlyHere(m, o.Operand(0)) {
			o.Erase() // it writes to a new tensor that nobody reads
			changed = true
		}
		o = prev
	}
	return changed
}

// onlyHere reports new memory with a single use.
func onlyHere(m *ssa.Module, v *ssa.Value) bool {
	d := v.Def()
	return d != nil && v.HasOneUse() && d.Schema != nil && !d.Schema.Mutates() && m.Effects(d)&ssa.Fresh != 0
}

// deadCarried removes carried values that nothing but themselves uses.
func deadCarried(o *ssa.Op) bool {
	body := o.Blocks[0]
	changed := false
	for i := len(o.Results) - 1; i >= 0; i-- {
		p := body.Params[i+1]
		only := true
		for u := range p.Uses() {
			only = only && u.Block() == body && body.Return(i+1) == p && p.HasOneUse()
		}
		if o.Results[i].HasUses() || !only {
			continue
		}
		ops := o.Operands()
		o.SetOperands(append(ops[:i+2:i+2], ops[i+3:]...)...)
		o.RemoveResult(i)
		body.RemoveReturn(i + 1)
		body.RemoveParam(i + 1)
		changed = true
	}
	return changed
}

// sortOutputs puts the results of If and Loop in the order of their first uses.
func sortOutputs(f *ssa.Func) {
	first := map[*ssa.Value]int{}
	n := 0
	var number func(b *ssa.Block)
	use := func(v *ssa.Value) {
		if _, ok := first[v]; !ok {
			first[v] = n
		}
		n++
	}
	var all []*ssa.Op
	number = func(b *ssa.Block) {
		for o := range b.Ops() {
			for _, v := range o.Operands() {
				use(v)
			}
			for _, c := range o.Blocks {
				number(c)
			}
			if o.Kind == "prim::If" || o.Kind == "prim::Loop" {
				all = append(all, o)
			}
		}
		for _, v := range b.Returns() {
			use(v)
		}
	}
	// outer ops first, since the order of their results is that of the returns inside
	for round := 0; round < 100; round++ {
		first, n, all = map[*ssa.Value]int{}, 0, nil
		number(f.Body)
		changed := false
		for _, o := range all {
			k := len(o.Results)
			order := make([]int, k)
			for i := range order {
				order[i] = i
			}
			at := func(i int) int {
				v := o.Results[i]
				if x, ok := first[v]; ok {
					return x
				}
				if o.Kind == "prim::Loop" {
					if x, ok := first[o.Blocks[0].Params[i+1]]; ok {
						return 1<<40 + x
					}
				}
				return 1 << 50
			}
			sort.SliceStable(order, func(i, j int) bool { return at(order[i]) < at(order[j]) })
			for i := range order {
				if order[i] != i {
					changed = true
				}
			}
			permute(o, order)
		}
		if !changed {
			return
		}
	}
}

func permute(o *ssa.Op, order []int) {
	results := append([]*ssa.Value(nil), o.Results...)
	for i, j := range order {
		o.Results[i] = results[j]
	}
	skip := 0
	if o.Kind == "prim::Loop" {
		skip = 1
		ops := o.Operands()
		in := append([]*ssa.Value(nil), ops[:2]...)
		b := o.Blocks[0]
		params := append([]*ssa.Value(nil), b.Params...)
		for i, j := range order {
			in = append(in, ops[j+2])
			b.Params[i+1] = params[j+1]
		}
		o.SetOperands(in...)
	}
	for _, b := range o.Blocks {
		rs := b.Returns()
		out := append([]*ssa.Value(nil), rs[:skip]...)
		for _, j := range order {
			out = append(out, rs[j+skip])
		}
		b.SetReturns(out...)
	}
}
