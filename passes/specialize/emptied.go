package specialize

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// Sizes of inputs are taken to be 1 or more, and so are those of what operators give: x[:1] has one row. Where an input is empty it has none. The sizes
// that tensors have then are followed from where they differ, up to what was decided by the others: there the model checks the size.

// emptied is the type that a value has where the size with this symbol is 0, and which is not its type with 0 put in.
type emptied struct {
	symbol string
	actual *ssa.TensorType
}

// needElements has the model check sizes of inputs where a write through a step of a view depends on them: the sizes of the view are those
// for axes of 1 and more, and a diagonal of [1, N] has one element, except where N is 0. What puts the base together again
// would do so of a part that is not there.
func (s *writes) needElements(st *heap.Step, base, v *ssa.Value) {
	b, t := base.Tensor(), v.Tensor()
	if b == nil || t == nil || !b.Ranked || !t.Ranked {
		return
	}
	for _, name := range s.nonEmptyIn(slices.Concat(b.Dims, t.Dims)) {
		types, ok := s.build.typesWhere(name, st.Kind, st.Schema, func() []*ssa.Value {
			operands := s.vals.operands(st.Args)
			operands[0] = base
			return operands
		})
		if !ok || st.Index < len(types) && (types[st.Index] == nil || !types[st.Index].Ranked) {
			continue
		}
		var dims []sym.Expr // another number of parts has none
		if st.Index < len(types) {
			dims = types[st.Index].Dims
		}
		if !s.fitEmpty(b.Dims, t.Dims, dims, zero(name)) {
			s.needNonEmpty([]string{name})
		}
	}
}

// zero puts 0 in for a symbol.
func zero(symbol string) func(string) (sym.Expr, bool) {
	return func(name string) (sym.Expr, bool) { return sym.Const(0), name == symbol }
}

// followEmpty looks at what an operator gives where a size of an input is 0. The model checks the size where numbers that are sizes decide
// another size of the result, as those of y[n:1], and where a result is one of the operands for other sizes only, as x[:1].reshape(1, -1).
func (s *builder) followEmpty(kind ssa.Kind, schema *ssa.Schema, operands, results []*ssa.Value) {
	counted := s.emptiedBy(schema, operands)
	symbols := slices.Clone(counted)
	if cuts[kind] && len(results) == 1 {
		symbols = append(symbols, s.cutSymbols(operands[0].Tensor(), results[0].Tensor())...)
	}
	for _, o := range operands {
		for _, e := range s.emptiedIn(o) {
			symbols = append(symbols, e.symbol)
		}
	}
	slices.Sort(symbols)
	for _, name := range slices.Compact(symbols) {
		types, ok := s.typesWhere(name, kind, schema, func() []*ssa.Value { return slices.Clone(operands) })
		if !ok || len(types) != len(results) {
			continue
		}
		if s.loweredUnlike(name, kind, schema, operands) {
			s.needNonEmpty([]string{name})
			continue
		}
		for i, r := range results {
			if !s.differsEmpty(r.Tensor(), types[i], zero(name)) {
				continue
			}
			without := slices.ContainsFunc(r.Tensor().Dims, func(d sym.Expr) bool { return d.Is(0) }) // what has no elements is a constant
			if without || slices.Contains(counted, name) || s.sameOnly(name, operands, r, types[i]) {
				s.needNonEmpty([]string{name})
				continue
			}
			if s.emptied == nil {
				s.emptied = map[*ssa.Value][]emptied{}
			}
			s.emptied[r] = append(s.emptied[r], emptied{name, types[i]})
		}
	}
}

// cuts are the operators that may give fewer elements of an axis than it has.
var cuts = map[ssa.Kind]bool{"aten::slice": true, "aten::narrow": true, "aten::diagonal": true, "aten::unfold": true}

// cutSymbols are the symbols of the sizes of t that a part of it has not, and that are only taken to be 1 or more.
func (s *context) cutSymbols(t, part *ssa.TensorType) []string {
	if t == nil || part == nil || !t.Ranked || !part.Ranked {
		return nil
	}
	var dims []sym.Expr
	for i, d := range t.Dims {
		if len(part.Dims) != len(t.Dims) || !part.Dims[i].Equal(d) {
			dims = append(dims, d)
		}
	}
	return s.nonEmptyIn(dims)
}

// emptiedBy are the symbols, only taken to be 1 or more, in the numbers that an operator is given. Numbers that are sizes of its result say these for all inputs.
func (s *context) emptiedBy(schema *ssa.Schema, operands []*ssa.Value) (symbols []string) {
	for i, o := range operands {
		if o == nil || o.Tensor() != nil || i < len(schema.Args) && slices.Contains([]string{"size", "shape", "sizes"}, schema.Args[i].Name) {
			continue
		}
		symbols = append(symbols, s.nonEmptyIn(o.Sym)...)
	}
	return symbols
}

// emptiedIn is what emptied has of a value, or of the elements of a list.
func (s *builder) emptiedIn(v *ssa.Value) []emptied {
	if len(s.emptied) == 0 || v == nil {
		return nil
	}
	if d := v.Def(); d != nil && d.Kind == "prim::ListConstruct" {
		var all []emptied
		for _, e := range d.Operands() {
			all = append(all, s.emptied[e]...)
		}
		return all
	}
	return s.emptied[v]
}

// needSize has the model check what decides that axis i of v has n elements, where it has others for an empty input.
func (s *builder) needSize(v *ssa.Value, i int, n int64) {
	for _, e := range s.emptied[v] {
		if i >= len(e.actual.Dims) || !e.actual.Dims[i].Is(n) {
			s.needNonEmpty([]string{e.symbol})
		}
	}
}

// differsEmpty reports that a tensor has other sizes for an empty input than its type says, where this says sizes that there can be.
func (s *context) differsEmpty(stated, actual *ssa.TensorType, empty func(string) (sym.Expr, bool)) bool {
	if stated == nil || actual == nil || !stated.Ranked || !actual.Ranked {
		return false
	}
	if len(stated.Dims) != len(actual.Dims) {
		return true
	}
	for i, d := range stated.Dims {
		n, ok := d.Subst(empty).Int()
		if a, known := actual.Dims[i].Int(); ok && known && n >= 0 && a != n {
			return true
		}
	}
	return false
}

// sameOnly reports that a result has the sizes of an operand by their types, and others where the size with this symbol is 0.
func (s *builder) sameOnly(symbol string, operands []*ssa.Value, r *ssa.Value, actual *ssa.TensorType) bool {
	for _, o := range operands {
		for _, e := range s.emptied[o] {
			if e.symbol == symbol && o != nil && o.Tensor().Ranked && sameDims(o.Tensor(), r.Tensor()) && !sameDims(e.actual, actual) {
				return true
			}
		}
	}
	return false
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

// typesWhere gives the types of what an operator gives where the size with this symbol is 0; ok is false where it cannot be evaluated then.
func (s *builder) typesWhere(symbol string, kind ssa.Kind, schema *ssa.Schema, arguments func() []*ssa.Value) (types []*ssa.TensorType, ok bool) {
	ok = s.supposed(arguments, func(f *ssa.Func, operands []*ssa.Value) {
		s.cur = f.Body
		for i, o := range operands {
			operands[i] = s.suppose(f.Body, symbol, o, i == 0)
		}
		for _, v := range s.emit(kind, schema, operands...) {
			types = append(types, v.Tensor())
		}
	})
	return types, ok
}

// supposed runs what looks at another case than the one at hand, with a function for its operators, and reports whether it comes to an end. Nothing of it stays.
func (s *builder) supposed(arguments func() []*ssa.Value, run func(f *ssa.Func, operands []*ssa.Value)) (ok bool) {
	f, cur, found := s.m.NewFunc("where"), s.cur, s.findings
	before, supposing, end := cur.Last(), s.supposing, s.m.Suppose()
	defer func() {
		end()
		s.supposing = supposing
		s.cur, s.findings = cur, found
		f.Body.Clear()
		s.m.RemoveFunc(f)
		s.eraseAfter(cur, before)
		switch r := recover().(type) {
		case nil, *failure, raised, needSplit, needUnroll:
		default:
			panic(r)
		}
	}()
	operands := arguments()
	s.supposing++
	run(f, operands)
	return true
}

// loweredUnlike reports that an operator has another ONNX form where the size with this symbol is 0, and operands have other types there than they
// say: a size that they say may be part of its form.
func (s *builder) loweredUnlike(symbol string, kind ssa.Kind, schema *ssa.Schema, operands []*ssa.Value) bool {
	unlike := false
	for _, o := range operands {
		unlike = unlike || o != nil && slices.ContainsFunc(s.emptied[o], func(e emptied) bool { return e.symbol == symbol })
	}
	if !unlike {
		return false
	}
	form := func(empty bool) (lines []string) {
		s.supposed(func() []*ssa.Value { return slices.Clone(operands) }, func(f *ssa.Func, operands []*ssa.Value) {
			for i, o := range operands {
				if empty {
					operands[i] = s.suppose(f.Body, symbol, o, i == 0)
				}
			}
			o := f.Body.Append(kind, s.loc, operands, returned(schema)...)
			o.Schema = schema
			b := s.scratchBlock()
			defer b.Clear()
			if _, err := s.opts.Table.Scratch(o, s.opts.Opset, onnx.Builder{Eval: kernel.Eval, Block: b, Loc: o.Loc}); err != nil {
				return
			}
			for o := range b.AllOps() {
				line := string(o.Kind)
				for _, a := range o.Attrs {
					line += fmt.Sprint(" ", a.Name, "=", a.Value)
				}
				lines = append(lines, line)
			}
		})
		return lines
	}
	a, b := form(false), form(true)
	return a != nil && b != nil && !slices.Equal(a, b)
}

// suppose gives a value of a block in the place of v, with 0 put in for a symbol. Constants stay what they are, but for the first operand.
func (s *builder) suppose(b *ssa.Block, symbol string, v *ssa.Value, first bool) *ssa.Value {
	in := zero(symbol)
	if v == nil {
		return nil
	}
	if d := v.Def(); d != nil && d.Kind == "prim::ListConstruct" && v.Sym == nil {
		elems := make([]*ssa.Value, d.NumOperands())
		for i, e := range d.Operands() {
			elems[i] = s.suppose(b, symbol, e, false)
		}
		return b.Append(d.Kind, s.loc, elems, v.Type).Result(0)
	}
	t := v.Tensor()
	for _, e := range s.emptied[v] {
		if e.symbol == symbol {
			t, first = e.actual, true
		}
	}
	sized := t != nil && t.Ranked && slices.ContainsFunc(t.Dims, func(e sym.Expr) bool { return !e.IsConst() })
	if !first && !sized && !slices.ContainsFunc(v.Sym, func(e sym.Expr) bool { return !e.IsConst() }) {
		return v
	}
	if e, ok := exprOf(v); ok {
		if n, known := e.Subst(in).Int(); known {
			c := b.Append("prim::Constant", s.loc, nil, ssa.IntType)
			c.SetAttr("value", ssa.Int(n))
			c.Result(0).Sym = []sym.Expr{sym.Const(n)}
			return c.Result(0)
		}
	}
	p := b.AddParam("", v.Type)
	for _, e := range v.Sym {
		p.Sym = append(p.Sym, e.Subst(in))
	}
	if t != nil && t.Ranked {
		sizes := make([]sym.Expr, len(t.Dims))
		for k, d := range t.Dims {
			sizes[k] = d.Subst(in)
		}
		p.Type = ssa.Tensor(t.DType, sizes...)
	}
	return p
}
