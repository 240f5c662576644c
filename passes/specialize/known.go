package specialize

import (
	"cmp"
	"maps"
	"slices"

	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// Programs choose by a number, and raise for sizes that do not fit the choice: n = 512 if rate == 16000 else 256, then
// if x.size(1) != n: raise. On a path where two numbers are equal, a symbol in them has a value (knowSizes): a number is a
// constant there, and a tensor is read in its known shape, by a Reshape that fails at run time where the size is another one.

// of adds what the facts say of sizes.
func (k knownSizes) of(f facts) knownSizes {
	equal := slices.SortedFunc(maps.Keys(f), func(v, w *ssa.Value) int { return cmp.Compare(v.ID, w.ID) })
	out := k
	equal = slices.DeleteFunc(equal, func(v *ssa.Value) bool {
		e, yes, ok := compared(v)
		if ok && yes != f[v] {
			out.apart = append(slices.Clip(out.apart), e)
		}
		return !ok || yes != f[v]
	})
	for n := -1; n != len(out.values); { // a symbol may be what another one needed
		n = len(out.values)
		for _, v := range equal {
			e, _, _ := compared(v)
			if name, n, ok := solve(out.in(e)); ok {
				if out.values = maps.Clone(out.values); out.values == nil {
					out.values = map[string]int64{}
				}
				out.values[name] = n
			}
		}
	}
	for _, v := range equal {
		if e, _, _ := compared(v); !out.in(e).IsConst() {
			out.zeros = append(slices.Clip(out.zeros), out.in(e))
		}
	}
	return out
}

// differ reports that two numbers are known not to be equal.
func (k knownSizes) differ(a, b sym.Expr) bool {
	d := a.Sub(b)
	return slices.ContainsFunc(k.apart, func(e sym.Expr) bool { return d.Equal(e) || d.Equal(e.Neg()) })
}

func (k knownSizes) empty() bool { return len(k.values) == 0 && len(k.zeros) == 0 }

// in is an expression with what is known put in.
func (k knownSizes) in(e sym.Expr) sym.Expr {
	if k.empty() || e.IsConst() {
		return e
	}
	e = e.Subst(func(name string) (sym.Expr, bool) {
		n, ok := k.values[name]
		return sym.Const(n), ok
	})
	for _, z := range k.zeros {
		for _, rest := range []sym.Expr{e.Sub(z), e.Add(z)} {
			if rest.IsConst() {
				return rest
			}
		}
	}
	return e
}

// compared is the difference of the two numbers that a bool says are equal, or are not equal.
func compared(v *ssa.Value) (e sym.Expr, equal, ok bool) {
	d := v.Def()
	if d == nil || d.Kind != "aten::eq" && d.Kind != "aten::ne" || v.Type != ssa.BoolType || d.NumOperands() != 2 {
		return e, false, false
	}
	x, ok0 := exprOf(d.Operand(0))
	y, ok1 := exprOf(d.Operand(1))
	return x.Sub(y), d.Kind == "aten::eq", ok0 && ok1
}

// exprOf is a number as an expression.
func exprOf(v *ssa.Value) (sym.Expr, bool) {
	if v == nil || v.Type != ssa.IntType || len(v.Sym) != 1 {
		return sym.Expr{}, false
	}
	return v.Sym[0], true
}

// solve gives the value of the one symbol of e for which a*symbol + c is 0.
func solve(e sym.Expr) (name string, n int64, ok bool) {
	count := 0
	e.Symbols(func(s string) {
		if s != name {
			name = s
			count++
		}
	})
	if count != 1 {
		return "", 0, false
	}
	at := func(x sym.Expr) sym.Expr { return e.Subst(func(string) (sym.Expr, bool) { return x, true }) }
	c, ok0 := at(sym.Const(0)).Int()
	one, ok1 := at(sym.Const(1)).Int()
	slope := one - c
	free := sym.Symbol(name, sym.Least(e, name))
	if !ok0 || !ok1 || slope == 0 || -c%slope != 0 || !at(free).Equal(free.Mul(sym.Const(slope)).Add(sym.Const(c))) {
		return "", 0, false
	}
	return name, -c / slope, true
}

// learn goes on with what holds where cond is yes, until the path ends.
func (s *walk) learn(cond *ssa.Value, yes bool) {
	if s.knowsSizes() {
		s.facts = s.facts.with(cond, yes)
		s.known = s.known.of(s.facts)
	}
}

// refined is a value as what is known of sizes leaves it: a tensor in its known shape.
func (s *values) refined(v *ssa.Value) *ssa.Value {
	t := v.Tensor()
	if s.known.empty() || t == nil || !t.Ranked {
		return v
	}
	changed := false
	dims := make([]sym.Expr, len(t.Dims))
	for i, d := range t.Dims {
		dims[i] = s.known.in(d)
		changed = changed || !dims[i].Equal(d)
	}
	if !changed {
		return v
	}
	if r := s.inShape[v]; r != nil && inScope(r, s.build.cur) && slices.EqualFunc(r.Tensor().Dims, dims, sym.Expr.Equal) {
		return r
	}
	sizes := make([]*ssa.Value, len(dims))
	for i, d := range dims {
		if n, ok := d.Int(); ok {
			sizes[i] = s.build.constant(ssa.Int(n))
			continue
		}
		sizes[i] = s.emitName("aten::size.int", v, i)
		sizes[i].Sym = []sym.Expr{d}
	}
	list := s.build.cur.Append("prim::ListConstruct", s.loc, sizes, &ssa.ListType{Elem: ssa.IntType}).Result(0)
	list.Sym = dims
	r := s.emitName("aten::reshape", v, list)
	s.inShape[v] = r
	return r
}

// refineSize is a number as what is known of sizes leaves it.
func (s *context) refineSize(x py.Value) py.Value {
	if s.known.empty() {
		return x
	}
	if d, ok := x.(py.Dynamic); ok {
		if e, ok := exprOf(d.Value); ok {
			if n, ok := s.known.in(e).Int(); ok {
				return py.Int(n)
			}
		}
	}
	return x
}

// facts are bools of the target function that are known on the path at hand.
type facts map[*ssa.Value]bool

// with is the facts and one more: that v is yes, and what follows from that.
func (f facts) with(v *ssa.Value, yes bool) facts {
	out := maps.Clone(f)
	if out == nil {
		out = facts{}
	}
	out.add(v, yes)
	for n := 0; n != len(out); { // of several, one of which holds, the last one that is left
		n = len(out)
		for w, yes := range maps.Clone(out) {
			if d := w.Def(); d != nil && (d.Kind == "aten::__or__" && yes || d.Kind == "aten::__and__" && !yes) {
				out.addLast(d, yes)
			}
		}
	}
	return out
}

// addLast adds the operand of an "or" that is yes, or of an "and" that is not, where the other operand is known not to make it so.
func (f facts) addLast(d *ssa.Op, yes bool) {
	for i, v := range d.Operands() {
		if len(d.Operands()) != 2 || v.Type != ssa.BoolType {
			return
		}
		if other, known := f.of(v); known && other != yes {
			if w := d.Operand(1 - i); w.Type == ssa.BoolType {
				f.add(w, yes)
			}
		}
	}
}

func (f facts) add(v *ssa.Value, yes bool) {
	f[v] = yes
	d := v.Def()
	if d == nil {
		return
	}
	switch {
	case d.Kind == "aten::__not__":
		f.add(d.Operand(0), !yes)
	case d.Kind == "aten::__and__" && yes, d.Kind == "aten::__or__" && !yes:
		for _, a := range d.Operands() {
			if a.Type == ssa.BoolType {
				f.add(a, yes)
			}
		}
	case d.Kind == "prim::If": // of which one branch gives the other answer: that of "and", or of "or"
		i := slices.Index(d.Results, v)
		for side, b := range d.Blocks {
			c := b.Return(i).Def()
			if c == nil || c.Kind != "prim::Constant" {
				continue
			}
			if l, ok := c.Attr("value"); ok && l.Kind == ssa.BoolLit && l.Bool() != yes {
				f.add(d.Operand(0), side == 1)
				f.add(d.Blocks[1-side].Return(i), yes)
				return
			}
		}
	}
}

// of is what is known of a bool.
func (f facts) of(v *ssa.Value) (yes, known bool) {
	if yes, known = f[v]; known {
		return yes, true
	}
	d := v.Def()
	switch {
	case d == nil:
	case d.Kind == "aten::__not__":
		yes, known = f.of(d.Operand(0))
		return !yes, known
	default:
		a, equal, ok := compared(v)
		for w, yes := range f {
			if b, alike, ok2 := compared(w); ok && ok2 && (a.Equal(b) || a.Equal(b.Neg())) { // asked a second time
				return yes == (alike == equal), true
			}
		}
	}
	return false, false
}

// refine is a value as the facts leave it.
func (f facts) refine(x py.Value) py.Value {
	if len(f) == 0 {
		return x
	}
	switch v := x.(type) {
	case py.Dynamic:
		if v.Type == ssa.BoolType {
			if yes, known := f.of(v.Value); known {
				return py.Bool(yes)
			}
		}
	case *py.Maybe:
		if yes, known := f.of(v.Has); known && yes {
			return f.refine(v.Val)
		} else if known {
			return py.None
		}
	case *py.Choice:
		if yes, known := f.of(v.Cond); known && yes {
			return f.refine(v.Yes)
		} else if known {
			return f.refine(v.No)
		}
	}
	return x
}
