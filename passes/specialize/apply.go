package specialize

import (
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/passes/specialize/internal/view"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// chosenDType is a dtype that one of two branches gave: what follows is evaluated once for each.
func (s *walk) chosenDType(d py.Dynamic) py.Value {
	o := d.Value.Def()
	if o == nil || o.Kind != "prim::If" {
		return d
	}
	k := slices.Index(o.Results, d.Value)
	var sides [2]py.Value
	for i, b := range o.Blocks {
		c := b.Return(k).Def()
		if c == nil || c.Kind != "prim::Constant" {
			return d
		}
		lit, _ := c.Attr("value")
		sides[i] = py.Of(lit)
	}
	yes, decided := s.facts[o.Operand(0)]
	switch {
	case !decided:
		panic(needSplit{cond: o.Operand(0), why: s.failure("const-arg", "which of two element types is asked for depends on data")})
	case yes:
		return sides[0]
	}
	return sides[1]
}

// apply evaluates an op without blocks.
func (s *walk) apply(o *ssa.Op, args []py.Value) []py.Value {
	if rs, ok := s.text(o, args); ok {
		return rs
	}
	if o.Kind.Namespace() == "prim" {
		if rs, ok := s.chosen(o, args); ok {
			return rs
		}
		if h := primOps[o.Kind]; h != nil {
			if rs, ok := h(s, o, args); ok {
				return rs
			}
		}
	}
	if rs, ok := s.chosen(o, args); ok {
		return rs
	}
	if rs, ok := s.nestedOp(o, args); ok {
		return rs
	}
	if h := queries[o.Kind]; h != nil {
		if rs, ok := h(s, o, args); ok {
			return rs
		}
	}
	if h := tensorQuery(unaliased(o.Kind)); h != nil && len(args) > 0 {
		if _, ok := args[0].(*py.Tensor); ok {
			if rs, ok := h(s, o, args); ok {
				return rs
			}
		}
	}
	if rs, ok := s.lists.container(o, args); ok {
		return rs
	}
	if o.Schema == nil || o.Schema.VarReturn { // prim::PythonOp has a schema that says nothing
		return s.opaque(o, args)
	}
	for i, a := range args {
		if m, ok := a.(*py.Maybe); ok {
			s.undecided(m, "argument %q is None or not depending on data", o.Schema.Args[i].Name)
		}
		if isNested(a) {
			s.fail("unsupported-op", "ONNX has no nested tensors; only the layers of nn.TransformerEncoder take them")
		}
		if d, ok := a.(py.Dynamic); ok && o.Schema.Args[i].Name == "dtype" {
			args = slices.Clone(args)
			args[i] = s.chosenDType(d)
		}
	}
	s.check(o, args)
	if o.Schema.Mutates() {
		return s.writes.inPlace(o, args)
	}
	if !py.Tensorial(args) && !returnsTensor(o.Schema) {
		return s.vals.scalar(o.Kind, o.Schema, args)
	}
	if o.Kind == "aten::as_strided" {
		return []py.Value{s.views.asStrided(args)}
	}
	if o.Kind == "aten::squeeze" {
		if rs, ok := s.views.squeeze(o, args); ok {
			return rs
		}
	}
	if class := view.ClassOf(o.Kind, o.Schema); class != aten.NoView && class != aten.MayBeView {
		if rs := s.views.view(o, args, class); rs != nil {
			return rs
		}
	}
	if rs, ok := s.views.eachView(o, args); ok {
		return rs
	}
	vs := s.build.emit(o.Kind, o.Schema, s.vals.operands(args)...)
	s.complete(o, vs)
	s.writes.updateStatistics(o, args)
	rs := s.views.results(o, args, vs)
	s.views.mayShare(o, args, rs)
	return rs
}

// unaliased is the operator of which an operator is another name, or itself.
func unaliased(k ssa.Kind) ssa.Kind {
	if to := aten.AliasOf(k); to != "" {
		return to
	}
	return k
}

// opaque emits an operator without a schema, for a fall-through or a user's symbolic function.
func (s *walk) opaque(o *ssa.Op, args []py.Value) []py.Value {
	types := make([]ssa.Type, len(o.Results))
	for i, r := range o.Results {
		types[i] = s.declaredType(r.Type)
	}
	n := s.build.cur.Append(o.Kind, s.loc, s.vals.operands(args), types...)
	n.Attrs = o.Attrs
	vs := s.build.infer(n)
	s.complete(o, vs)
	for _, v := range vs {
		if t := v.Tensor(); t != nil && !t.Ranked {
			s.typeless = true
		}
	}
	return s.views.results(o, args, vs)
}

// complete fills in the types of results that inference knows little of: what it cannot say, the program may.
// Declared sizes are those of the inputs that the program was made with, and hold for these only.
func (s *walk) complete(o *ssa.Op, vs []*ssa.Value) {
	if len(vs) != len(o.Results) {
		return
	}
	for i, r := range o.Results {
		have, want := vs[i].Tensor(), r.Tensor()
		if have == nil || want == nil || have.Ranked && have.DType != tensor.Undefined {
			continue
		}
		t := *have
		if t.DType == tensor.Undefined {
			t.DType = want.DType
		}
		if !t.Ranked && want.Ranked {
			t.Ranked, t.Dims = true, ssa.AsTensor(s.declaredType(want)).Dims
		}
		vs[i].Type = &t
	}
}

// declaredType is a type of the source program, with sizes only if they hold.
func (s *walk) declaredType(t ssa.Type) ssa.Type {
	tt, ok := t.(*ssa.TensorType)
	if !ok || !tt.Ranked || s.inputsAsDeclared() {
		return t
	}
	free := *tt
	free.Dims = make([]sym.Expr, len(tt.Dims))
	for i := range free.Dims {
		free.Dims[i] = s.m.FreshSymbol("u", 0)
	}
	return &free
}

// inputsAsDeclared reports that all inputs have the sizes that the program declares.
func (s *walk) inputsAsDeclared() bool {
	want := map[string]*ssa.TensorType{}
	for _, p := range s.src.Body.Params {
		want[ssa.BareName(p.Name)] = p.Tensor()
	}
	for _, p := range s.build.out.Body.Params {
		have, declared := p.Tensor(), want[p.Name]
		if have == nil || declared == nil || have.Rank() != declared.Rank() || !have.Ranked {
			return false
		}
		for i := range have.Dims {
			if !have.Dims[i].Equal(declared.Dims[i]) {
				return false
			}
		}
	}
	return true
}
