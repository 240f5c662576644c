package aten

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// TestTypesAreThoseOfTheLowering compares what a rule says with what the lowering builds, for every overload of every
// operator that has a rule, with operands of many types and shapes. A rule must answer at least once, and what it answers
// must be a result that the lowering gives, no constant and with nothing known of its elements.
func TestTypesAreThoseOfTheLowering(t *testing.T) {
	table := NewTable()
	kinds := table.Kinds()
	slices.Sort(kinds)
	for _, k := range kinds {
		d, _ := table.Lookup(k, onnx.Newest)
		if d.Type == nil {
			continue
		}
		t.Run(k.Name(), func(t *testing.T) {
			answers := 0
			for _, s := range Schemas(k) {
				for _, opset := range []int{9, 20} {
					answers += compareTypes(t, table, s, opset)
				}
			}
			if answers == 0 {
				t.Error("the rule never answers")
			}
		})
	}
}

var typeShapes = []string{"2 3 4", "N 3 4", "N M 4", "3 4", "4", "", "N", "1 4", "N 1 4", "4 4", "0 3", "2 4 4"}

var typeDTypes = []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.Int64, tensor.Int32, tensor.Uint8, tensor.Bool}

func shapeOf(text string) []sym.Expr {
	dims := []sym.Expr{}
	for _, f := range strings.Fields(text) {
		e, err := sym.Parse(f)
		if err != nil {
			panic(err)
		}
		if name, ok := e.Name(); ok {
			e = sym.Symbol(name, 1)
		}
		dims = append(dims, e)
	}
	return dims
}

// choices are the values that an argument takes one after the other.
func choices(f *ssa.Func, a *ssa.SchemaArg) []*ssa.Value {
	literal := func(ls ...ssa.Literal) (vs []*ssa.Value) {
		for _, l := range ls {
			o := f.Body.Append("prim::Constant", 0, nil, l.Type())
			o.SetAttr("value", l)
			vs = append(vs, o.Result(0))
		}
		return vs
	}
	typ := a.Type
	none := []*ssa.Value(nil)
	if o, ok := typ.(*ssa.OptionalType); ok {
		typ, none = o.Elem, literal(ssa.None)
	}
	if a.HasDefault {
		none = literal(a.Default)
	}
	if ssa.AsTensor(typ) != nil {
		for i, d := range typeDTypes {
			for k, s := range typeShapes {
				if i < 2 || k < 6 { // all shapes for some types, some shapes for all types
					none = append(none, f.Body.AddParam(fmt.Sprintf("x%d_%d_%s", i, k, a.Name), ssa.Tensor(d, shapeOf(s)...)))
				}
			}
		}
		return none
	}
	if l, ok := typ.(*ssa.ListType); ok && ssa.AsTensor(l.Elem) != nil {
		for _, pair := range [][2]string{{"2 3 4", "2 3 4"}, {"N 3 4", "N 3 4"}, {"2 3 4", "2 5 4"}, {"N", "M"}, {"3", "0"}} {
			var in []*ssa.Value
			for i, s := range pair {
				in = append(in, f.Body.AddParam(fmt.Sprintf("l%d_%s_%v", i, a.Name, len(none)), ssa.Tensor(typeDTypes[len(none)%2], shapeOf(s)...)))
			}
			none = append(none, f.Body.Append("prim::ListConstruct", 0, in, typ).Result(0))
		}
		return none
	}
	switch typ.String() {
	case "int":
		return append(none, literal(ssa.Int(0), ssa.Int(1), ssa.Int(-1), ssa.Int(2), ssa.Int(7))...)
	case "float":
		return append(none, literal(ssa.Float(0.5))...)
	case "bool":
		return append(none, literal(ssa.Bool(false), ssa.Bool(true))...)
	case "Scalar", "number":
		return append(none, literal(ssa.Int(2), ssa.Float(0.5), ssa.Bool(true))...)
	case "int[]":
		n := f.Body.Append("prim::Size", 0, nil, ssa.IntType).Result(0)
		n.Sym = []sym.Expr{sym.Symbol("N", 1)}
		four, three := literal(ssa.Int(4))[0], literal(ssa.Int(3))[0]
		list := func(in ...*ssa.Value) *ssa.Value {
			return f.Body.Append("prim::ListConstruct", 0, in, &ssa.ListType{Elem: ssa.IntType}).Result(0)
		}
		vs := literal(ssa.Ints(1), ssa.Ints(-1), ssa.Ints(0, 1), ssa.Ints(1, 0), ssa.Ints(2, 0, 1), ssa.Ints(2, 12), ssa.Ints(4, 3, 2), ssa.Ints(-1, 2))
		return append(append(none, vs...), list(n, four, three), list(n, literal(ssa.Int(12))[0]), list(three, n, four))
	case "str":
		return append(none, literal(ssa.Str("none"), ssa.Str("tanh"), ssa.Str("floor"))...)
	}
	return none
}

// compareTypes tries combinations of arguments and counts the answers of the rule.
func compareTypes(t *testing.T, table *Table, s *ssa.Schema, opset int) int {
	m := ssa.NewModule(append(Dialects(), prim.Dialect{}, onnx.Dialect{})...)
	f := m.NewFunc("main")
	var all [][]*ssa.Value
	for i := range s.Args {
		vs := choices(f, &s.Args[i])
		if len(vs) == 0 {
			return 0
		}
		all = append(all, vs)
	}
	if len(s.Returns) != 1 || len(all) == 0 {
		return 0
	}
	total := 1
	for _, vs := range all {
		total = min(total*len(vs), 1<<20)
	}
	answers := 0
	// steps that share no factor with the numbers of choices reach combinations of all of them
	const most = 300
	for n := range min(total, most) {
		in, k := make([]*ssa.Value, len(all)), n
		if total > most {
			k = n * 7919 % total
		}
		for i, vs := range all {
			in[i], k = vs[k%len(vs)], k/len(vs)
		}
		o := f.Body.Append(ssa.Kind(s.Name), 0, in, s.Returns[0].Type)
		o.Schema = s
		got, ok := table.TypeOf(o, opset)
		if ok {
			answers++
			compareType(t, m, table, o, opset, got)
		}
		o.Erase()
		if t.Failed() {
			return answers
		}
	}
	return answers
}

func compareType(t *testing.T, m *ssa.Module, table *Table, o *ssa.Op, opset int, got ssa.Type) {
	t.Helper()
	scratch := m.NewFunc("scratch")
	defer m.RemoveFunc(scratch)
	symbols := m.FreshSymbol("u", 0).String()
	l := NewLowering(table, opset, onnx.Builder{Eval: kernel.Eval, Block: scratch.Body, FoldLimit: 1 << 14}, func(v *ssa.Value) (*ssa.Value, *Failure) { return v, nil })
	vs, err := l.Lower(o)
	after := m.FreshSymbol("u", 0).String()
	describe := func() string {
		var b strings.Builder
		for _, v := range o.Operands() {
			fmt.Fprintf(&b, " %v", v.Type)
			if lit, ok := LiteralOf(v); ok {
				fmt.Fprintf(&b, "=%v", lit)
			}
		}
		return fmt.Sprintf("%s.%s(%s) at opset %d", o.Schema.Name, o.Schema.Overload, b.String(), opset)
	}
	switch {
	case err != nil:
		t.Errorf("%s: the rule says %v, and the lowering fails: %v", describe(), got, err)
	case !ssa.SameType(vs[0].Type, got) || vs[0].Type.String() != got.String():
		t.Errorf("%s: the rule says %v, the lowering %v", describe(), got, vs[0].Type)
	case vs[0].Sym != nil || onnx.ConstOf(vs[0]) != nil:
		t.Errorf("%s: more is known than the type %v", describe(), got)
	case symbolNumber(symbols)+1 != symbolNumber(after):
		t.Errorf("%s: the lowering makes symbols (%s, then %s), of which the rule knows nothing", describe(), symbols, after)
	}
}

func symbolNumber(symbol string) (n int) {
	fmt.Sscanf(symbol, "u%d", &n)
	return n
}
