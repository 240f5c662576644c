package specialize

import (
	"slices"

	"github.com/aton-project/aton/internal/python"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// Programs guard what cannot be done without elements: if n > 0: x = x.reshape(n, -1, 4). Where the branch for n = 0
// gives a tensor of another rank, nothing behind it has a known rank. Such a program is converted for n of 1 and more
// when it cannot be converted otherwise, and the model says so. Dynamic axes of inputs are taken to be 1 at least as well; what the
// program computes on sizes shows where that matters, and there the model checks it.

// symbolic is python.Symbolic. Where sizes of 0 give another answer, which no pass behind this one would know, the model has to check them.
func (s *context) symbolic(name string, es []sym.Expr) (e sym.Expr, answer, isBool, ok bool) {
	if !s.known.empty() {
		for i := range es {
			es[i] = s.known.in(es[i])
		}
	}
	e, answer, isBool, ok = python.Symbolic(name, es)
	if !ok {
		return e, answer, isBool, ok
	}
	var taken []string
	for _, e := range es {
		e.Symbols(func(name string) {
			if s.nonEmpty[name] && !slices.Contains(taken, name) {
				taken = append(taken, name)
			}
		})
	}
	same := func(open []string) bool { // the answer is this one where these may be 0
		with0 := func(e sym.Expr) sym.Expr {
			return e.Subst(func(name string) (sym.Expr, bool) { return sym.Symbol(name, 0), slices.Contains(open, name) })
		}
		opened := make([]sym.Expr, len(es))
		for i, e := range es {
			opened[i] = with0(e)
		}
		if name == "floordiv" && opened[0].Min() < 0 && es[0].Min() >= 0 {
			return false // Div rounds a quotient that is not negative as // does
		}
		e0, answer0, _, ok0 := python.Symbolic(name, opened)
		return ok0 && answer0 == answer && e0.Equal(with0(e)) || !ok0 && (name == "floordiv" || name == "remainder") // these raise
	}
	if taken == nil || same(taken) {
		return e, answer, isBool, ok
	}
	var free []string
	for _, n := range taken {
		if with := append(slices.Clone(free), n); same(with) {
			free = with
		}
	}
	s.needNonEmpty(slices.DeleteFunc(taken, func(n string) bool { return slices.Contains(free, n) }))
	return e, answer, isBool, ok
}

// open is a size without what is only taken to be so: sizes of inputs may be 0.
func (s *context) open(e sym.Expr) sym.Expr {
	return e.Subst(func(name string) (sym.Expr, bool) { return sym.Symbol(name, 0), s.nonEmpty[name] })
}

// zeroIn gives the numbers that are 0 in a block of an If on cond, and the index of that block.
func zeroIn(cond *ssa.Value) (block int, zeros []sym.Expr) {
	if d := cond.Def(); d != nil && d.Kind == "aten::__or__" {
		for _, c := range d.Operands() {
			if b, z := zeroIn(c); b == 1 {
				zeros = append(zeros, z...)
			}
		}
		return 1, zeros
	}
	if b, n, ok := emptyBranch(cond); ok {
		return b, []sym.Expr{n}
	}
	return 1, nil
}

// emptyBranch is the index of the block that an If on cond takes for n = 0 only, where n is a number that is not negative.
func emptyBranch(cond *ssa.Value) (block int, n sym.Expr, ok bool) {
	d := cond.Def()
	if d != nil && d.Kind == "aten::Bool" {
		if v := d.Operand(0); v.Type == ssa.IntType && len(v.Sym) == 1 && v.Sym[0].Min() >= 0 {
			return 1, v.Sym[0], true
		}
	}
	if d == nil || d.NumOperands() < 2 {
		return 0, n, false
	}
	number := func(i int) (sym.Expr, bool) {
		v := d.Operand(i)
		if v.Type != ssa.IntType {
			return n, false
		}
		if c := v.Def(); c != nil && c.Kind == "prim::Constant" {
			if k, ok := c.Attr("value"); ok && k.IsNumber() {
				return sym.Const(k.Int()), true
			}
		}
		if len(v.Sym) != 1 {
			return n, false
		}
		return v.Sym[0], true
	}
	x, ok0 := number(0)
	y, ok1 := number(1)
	if !ok0 || !ok1 {
		return 0, n, false
	}
	name := d.Kind.Name()
	if x.IsConst() { // 0 < n is n > 0
		x, y = y, x
		if turned, ok := map[string]string{"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}[name]; ok {
			name = turned
		}
	}
	if x.IsConst() || x.Min() < 0 {
		return 0, n, false
	}
	switch {
	case name == "gt" && y.Is(0), name == "ge" && y.Is(1), name == "ne" && y.Is(0):
		return 1, x, true
	case name == "le" && y.Is(0), name == "lt" && y.Is(1), name == "eq" && y.Is(0):
		return 0, x, true
	}
	return 0, n, false
}

// withElements leaves out the branch that only tensors without elements take, if it gives tensors of another rank and that was decided.
func (m *merger) withElements(outs [2]outcome) (results []py.Value, done bool) {
	s := m.s
	empty, count, ok := emptyBranch(m.n.Operand(0))
	if !ok || !m.onlyRank(outs, empty, count) {
		return nil, false
	}
	if !s.takes(notEmpty) {
		s.offer(notEmpty, s.op)
		return nil, false
	}
	s.warnf("not-empty", "a tensor has another rank where it has no elements (%s is 0); the model is right for 1 and more", count)
	s.assumed = append(s.assumed, "sizes that "+s.m.Locs.String(s.loc)+" compares with 0 are at least 1")
	return s.only(m.n, 1-empty, outs[1-empty]), true
}

// size is what an If gives for a size that is a in one block and b in the other, where one expression stands for both. Programs pad what
// has no suitable size: if pad > 0: x = F.pad(x, (0, pad)), or if n % 8 != 0: x = F.pad(x, (0, 8 - n % 8)). Without
// padding, the padded size is the size.
func (m *merger) size(a, b sym.Expr) (sym.Expr, bool) {
	if a.Equal(b) {
		return a, true
	}
	if m.s.knowsSizes() {
		for side, e := range []sym.Expr{b, a} { // where a branch has one size only, the other branch says it all
			if k := m.s.known.of(facts{}.with(m.n.Operand(0), side == 0)); k.in(a).Equal(k.in(b)) {
				return e, true
			}
		}
	}
	block, zeros := zeroIn(m.n.Operand(0))
	none, some := b, a
	if block == 0 {
		none, some = a, b
	}
	more := some.Sub(none)
	for _, n := range zeros {
		if more.Multiple(n) {
			return some, true
		}
		// more is c - n, where n is from 1 to c - 1: that is -n modulo c, which is 0 for 0 as well
		if c, ok := more.Add(n).Int(); ok && c > 0 && sym.Const(c-1).AtLeast(n) {
			return none.Add(n.Neg().Mod(sym.Const(c))), true
		}
	}
	return a, false
}

// onlyRank reports that a tensor without elements in the first outcome, for n = 0, has another rank in the second one.
func (m *merger) onlyRank(outs [2]outcome, empty int, n sym.Expr) bool {
	typeIn := func(i, k int) *ssa.TensorType {
		if t, ok := outs[i].results[k].(*py.Tensor); ok {
			return m.read(i, t).Tensor()
		}
		return nil
	}
	for k := range outs[0].results {
		a, b := typeIn(empty, k), typeIn(1-empty, k)
		if a == nil || b == nil || !a.Ranked || !b.Ranked || len(a.Dims) == len(b.Dims) {
			continue
		}
		for _, d := range a.Dims {
			if d.Equal(n) {
				return true
			}
		}
	}
	return false
}
