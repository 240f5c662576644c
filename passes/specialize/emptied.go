package specialize

import (
	"slices"

	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// needElements has the model check sizes of inputs where a write through a step of a view depends on them: the sizes of the view are those
// for axes of 1 and more, and a diagonal of [1, N] has one element, except where N is 0. What puts the base together again
// would do so of a part that is not there.
func (s *writes) needElements(st *heap.Step, base, v *ssa.Value) {
	b, t := base.Tensor(), v.Tensor()
	if b == nil || t == nil || !b.Ranked || !t.Ranked {
		return
	}
	for _, name := range s.nonEmptyIn(slices.Concat(b.Dims, t.Dims)) {
		empty := func(symbol string) (sym.Expr, bool) { return sym.Const(0), symbol == name }
		dims, ok := s.sizesWhere(empty, st, base)
		if ok && !s.fitEmpty(b.Dims, t.Dims, dims, empty) {
			s.needNonEmpty([]string{name})
		}
	}
}

// nonEmptyIn are the symbols in sizes that are only taken to be 1 or more, in the order in which they are found.
func (s *context) nonEmptyIn(dims []sym.Expr) (names []string) {
	for _, d := range dims {
		d.Symbols(func(name string) {
			if s.nonEmpty[name] && !slices.Contains(names, name) {
				names = append(names, name)
			}
		})
	}
	return names
}

// fitEmpty reports that a view of a base, whose sizes are stated for axes of 1 and more, has these sizes where an axis is empty; actual are those that it has there.
// The end x[1:] of an axis is N - 1 long, and no element long where N is 0: a write of it is right there too.
func (s *context) fitEmpty(base, stated, actual []sym.Expr, empty func(string) (sym.Expr, bool)) bool {
	if len(stated) != len(actual) {
		return false
	}
	for i, d := range stated {
		at := d.Subst(empty)
		if at.Equal(actual[i]) {
			continue
		}
		if n, ok := at.Int(); ok && n < 0 && actual[i].Is(0) && len(base) == len(stated) && d.Sub(base[i]).IsConst() {
			continue
		}
		return false
	}
	return true
}

// sizesWhere gives the sizes of the view that a step makes of a base, with values put in for symbols; ok is false where the step
// cannot be made then.
func (s *writes) sizesWhere(in func(string) (sym.Expr, bool), st *heap.Step, base *ssa.Value) (dims []sym.Expr, ok bool) {
	f, cur, found, last := s.m.NewFunc("where"), s.build.cur, s.findings, s.build.lastCon
	before := cur.Last()
	defer func() {
		switch r := recover().(type) {
		case nil, *failure, raised:
		default:
			panic(r)
		}
		f.Body.Clear()
		s.m.RemoveFunc(f)
		s.build.cur, s.findings = cur, found
		s.build.eraseAfter(cur, before)
		s.build.dropConstants(last)
	}()
	operands := s.vals.operands(st.Args)
	operands[0] = base
	s.build.cur = f.Body
	for i, o := range operands {
		if o == nil || i > 0 && !slices.ContainsFunc(o.Sym, func(e sym.Expr) bool { return !e.IsConst() }) {
			continue
		}
		if e, ok := exprOf(o); ok {
			if n, known := e.Subst(in).Int(); known {
				c := f.Body.Append("prim::Constant", s.loc, nil, ssa.IntType)
				c.SetAttr("value", ssa.Int(n))
				operands[i] = c.Result(0)
				operands[i].Sym = []sym.Expr{sym.Const(n)}
				continue
			}
		}
		p := f.Body.AddParam("", o.Type)
		for _, e := range o.Sym {
			p.Sym = append(p.Sym, e.Subst(in))
		}
		if t := o.Tensor(); t != nil && t.Ranked {
			sizes := make([]sym.Expr, len(t.Dims))
			for k, d := range t.Dims {
				sizes[k] = d.Subst(in)
			}
			p.Type = ssa.Tensor(t.DType, sizes...)
		}
		operands[i] = p
	}
	vs := s.build.emit(st.Kind, st.Schema, operands...)
	if st.Index >= len(vs) {
		return nil, true // another number of parts
	}
	t := vs[st.Index].Tensor()
	if t == nil || !t.Ranked {
		return nil, false
	}
	return t.Dims, true
}
