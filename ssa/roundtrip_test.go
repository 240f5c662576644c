package ssa_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/google/go-cmp/cmp"
)

var roundtrips = flag.Int("roundtrips", 2000, "how many random modules TestRoundtrip prints and reads")

// complete is the text that loses nothing.
func complete(m *ssa.Module) string {
	var b strings.Builder
	_ = ssa.Fprint(&b, m, ssa.PrintOptions{Complete: true}) // a Builder does not fail
	return b.String()
}

// TestRoundtrip prints random modules, with names that look like syntax, reads the text, and compares the modules value by value
// and as text.
func TestRoundtrip(t *testing.T) {
	for seed := range *roundtrips {
		r := &random{Rand: rand.New(rand.NewPCG(uint64(seed), 1))}
		m := r.module()
		one := complete(m)
		again, err := ssa.Parse(one, "text")
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, one)
		}
		if two := complete(again); two != one {
			t.Fatalf("seed %d:\n%s\n%s", seed, cmp.Diff(strings.Split(one, "\n"), strings.Split(two, "\n")), one)
		}
		if what := differ(m, again); what != "" {
			t.Fatalf("seed %d: %s\n%s", seed, what, one)
		}
		// text without the head and the data has the same graphs: a name cannot end it
		r = &random{Rand: rand.New(rand.NewPCG(uint64(seed), 3)), onlyNames: true}
		m = r.module()
		var plain strings.Builder
		_ = ssa.Fprint(&plain, m, ssa.PrintOptions{})
		if again, err = ssa.Parse(plain.String(), "text"); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, plain.String())
		}
		if len(again.Funcs) != len(m.Funcs) {
			t.Fatalf("seed %d: %d graphs become %d\n%s", seed, len(m.Funcs), len(again.Funcs), plain.String())
		}
		for i, f := range m.Funcs {
			if a, b := f.Body.Len(), again.Funcs[i].Body.Len(); a != b {
				t.Fatalf("seed %d: %d operators become %d\n%s", seed, a, b, plain.String())
			}
		}
	}
}

// FuzzNames puts a name everywhere that a module has names.
func FuzzNames(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		r := &random{Rand: rand.New(rand.NewPCG(uint64(len(name)), 2)), names: []string{name}}
		m := r.module()
		one := complete(m)
		again, err := ssa.Parse(one, "text")
		if err != nil {
			t.Fatalf("%q: %v\n%s", name, err, one)
		}
		if what := differ(m, again); what != "" {
			t.Fatalf("%q: %s\n%s", name, what, one)
		}
	})
}

// differ says what is not the same in two modules.
func differ(a, b *ssa.Module) string {
	if len(a.Funcs) != len(b.Funcs) {
		return "other graphs"
	}
	for i, f := range a.Funcs {
		g := b.Funcs[i]
		if f.Name != g.Name || fmt.Sprint(f.OutputNames) != fmt.Sprint(g.OutputNames) {
			return fmt.Sprintf("graph %q %q becomes %q %q", f.Name, f.OutputNames, g.Name, g.OutputNames)
		}
		if what := differBlocks(a, b, f.Body, g.Body); what != "" {
			return what
		}
	}
	return cmp.Diff(a.Metadata, b.Metadata) + cmp.Diff(a.Opsets, b.Opsets)
}

func differBlocks(ma, mb *ssa.Module, a, b *ssa.Block) string {
	if what := differValues(a.Params, b.Params); what != "" {
		return what
	}
	o, p := a.First(), b.First()
	for ; o != nil && p != nil; o, p = o.Next(), p.Next() {
		if o.Kind != p.Kind || len(o.Attrs) != len(p.Attrs) || len(o.Blocks) != len(p.Blocks) || o.NumOperands() != p.NumOperands() {
			return fmt.Sprintf("%s becomes %s", o, p)
		}
		if what := differValues(o.Results, p.Results); what != "" {
			return what
		}
		if f, g := ma.Locs.Frame(o.Loc), mb.Locs.Frame(p.Loc); f != g && f.Caller == 0 {
			return fmt.Sprintf("%s: location %+v becomes %+v", o, f, g)
		}
		for i := range o.Attrs {
			x, y := o.Attrs[i], p.Attrs[i]
			if x.Name != y.Name || !same(x.Value, y.Value) {
				return fmt.Sprintf("%s: attribute %q %s becomes %q %s", o.Kind, x.Name, x.Value, y.Name, y.Value)
			}
		}
		for i := range o.Blocks {
			if what := differBlocks(ma, mb, o.Blocks[i], p.Blocks[i]); what != "" {
				return what
			}
		}
	}
	if o != nil || p != nil {
		return "a block has another length"
	}
	return differValues(a.Returns(), b.Returns())
}

func differValues(a, b []*ssa.Value) string {
	if len(a) != len(b) {
		return "another number of values"
	}
	for i := range a {
		if (a[i] == nil) != (b[i] == nil) {
			return "a value is left out"
		}
		if a[i] != nil && (a[i].Name != b[i].Name || !ssa.SameType(a[i].Type, b[i].Type)) {
			return fmt.Sprintf("%q : %v becomes %q : %v", a[i].Name, a[i].Type, b[i].Name, b[i].Type)
		}
	}
	return ""
}

// same compares literals, tensors by their elements and their places.
func same(a, b ssa.Literal) bool {
	if a.Kind != b.Kind || len(a.Elems) != len(b.Elems) {
		return false
	}
	if a.Kind == ssa.TensorLit {
		x, y := a.Tensor, b.Tensor
		return x.DType == y.DType && fmt.Sprint(x.Shape, x.Quant == nil) == fmt.Sprint(y.Shape, y.Quant == nil) && (x.DType == tensor.String && fmt.Sprint(x.Storage.Strings) == fmt.Sprint(y.Storage.Strings) || x.DType != tensor.String && string(x.Bytes()) == string(y.Bytes()))
	}
	for i := range a.Elems {
		if !same(a.Elems[i], b.Elems[i]) {
			return false
		}
	}
	if len(a.Elems) > 0 {
		return true
	}
	return a.Equal(b) || a.Kind == ssa.ListLit
}

// hostile are names that mean something in the text.
var hostile = []string{"x", "x.1", "0", "12", "", " ", "a b", "x\ny", "\"", "\\", "a\"b", "%x", "return", "):\n  return ()\n", "x : Tensor", "-> (", "=", "#", " # f.py:1:2", ", scope: x", ", loc: 1",
	"module {", "data {", "}", "graph(", "@", "block0():", "\x00", "\xff\xfe", "ü", "a::b", "::", "a:", "//", "$", "inf", "nan", "None", "uses", "_", "<Tensor>", "[", "]", "{", "\r", "\t;", "onnx::Add", "9999999999999999999"}

type random struct {
	*rand.Rand
	names     []string
	onlyNames bool // for attributes
}

func (r *random) name() string {
	if r.names != nil {
		return r.names[r.IntN(len(r.names))]
	}
	s := hostile[r.IntN(len(hostile))]
	if r.IntN(3) == 0 {
		s += hostile[r.IntN(len(hostile))]
	}
	return s
}

// unique gives each value of a function another name.
func (r *random) unique(seen map[string]bool) string {
	s := r.name()
	if seen[s] {
		return ""
	}
	seen[s] = true
	return s
}

func (r *random) module() *ssa.Module {
	m := ssa.NewModule()
	if r.IntN(2) == 0 {
		m.Opsets = map[string]int{"": 7 + r.IntN(20), r.name(): 1}
	}
	for range r.IntN(3) {
		m.Metadata = append(m.Metadata, ssa.KeyValue{Key: r.name(), Value: r.name()})
	}
	names := map[string]bool{"": true}
	for range 1 + r.IntN(3) {
		name := r.unique(names)
		if name == "" {
			continue
		}
		f := m.NewFunc(name)
		for range r.IntN(2) {
			f.OutputNames = append(f.OutputNames, r.name())
		}
		seen := map[string]bool{}
		var vs []*ssa.Value
		for range r.IntN(4) {
			vs = append(vs, f.Body.AddParam(r.unique(seen), r.typ(2)))
		}
		r.block(m, f.Body, vs, seen, 2)
	}
	if len(m.Funcs) == 0 {
		m.NewFunc("main")
	}
	return m
}

func (r *random) block(m *ssa.Module, b *ssa.Block, vs []*ssa.Value, seen map[string]bool, depth int) {
	vs = vs[:len(vs):len(vs)]
	for range r.IntN(5) {
		var operands []*ssa.Value
		for range r.IntN(3) {
			if len(vs) > 0 {
				operands = append(operands, vs[r.IntN(len(vs))])
			} else {
				operands = append(operands, nil)
			}
		}
		var types []ssa.Type
		for range r.IntN(3) {
			types = append(types, r.typ(2))
		}
		loc := m.Locs.Add(diag.Frame{File: r.name(), Line: r.IntN(9), Col: r.IntN(9), Scope: r.name()})
		if r.IntN(3) == 0 {
			loc = m.Locs.Add(diag.Frame{Func: r.name(), Node: 1 + r.IntN(9), Scope: r.name()})
		}
		var o *ssa.Op
		switch r.IntN(4) {
		case 0:
			o = b.Append("prim::Constant", loc, nil, r.typ(2))
			l := r.literal(2)
			if r.onlyNames {
				o.Results[0].Type = ssa.StrType
			}
			if !l.IsNone() {
				o.SetAttr("value", l)
			}
		case 1:
			o = b.Append("onnx::Constant", loc, nil, ssa.AnyTensor)
			l := ssa.TensorValue(r.tensor())
			o.Results[0].Type = l.Type()
			o.SetAttr("value", l)
		case 2:
			o = b.Append(ssa.Kind("ns::"+r.name()), loc, operands, types...)
		default:
			o = b.Append("aten::f", loc, operands, types...)
		}
		if o.Kind != "prim::Constant" && o.Kind != "onnx::Constant" {
			for range r.IntN(3) {
				o.SetAttr(r.name(), r.literal(2))
			}
			for range r.IntN(2) * depth {
				c := o.AddBlock()
				inner := append(vs[:len(vs):len(vs)], c.AddParam(r.unique(seen), r.typ(1)))
				r.block(m, c, inner, seen, depth-1)
			}
		}
		for _, v := range o.Results {
			v.Name = r.unique(seen)
			vs = append(vs, v)
		}
	}
	for range r.IntN(3) {
		if len(vs) > 0 {
			b.SetReturns(vs[r.IntN(len(vs))])
		}
	}
}

func (r *random) typ(depth int) ssa.Type {
	n := 9
	if depth == 0 {
		n = 3
	}
	switch r.IntN(n) {
	case 0:
		return []ssa.Type{ssa.IntType, ssa.FloatType, ssa.BoolType, ssa.StrType, ssa.NoneType, ssa.DeviceType, ssa.NumberType, ssa.AnyType, ssa.ComplexType}[r.IntN(9)]
	case 1:
		return []ssa.Type{ssa.AnyTensor, ssa.Unranked(r.dtype()), ssa.Tensor(r.dtype(), sym.Symbol("N", int64(2)), sym.Const(3)), ssa.Tensor(r.dtype())}[r.IntN(4)]
	case 2:
		return []ssa.Type{&ssa.ClassType{Name: "__torch__.M"}, &ssa.ClassType{Name: r.name()}, &ssa.EnumType{Name: r.name()}, &ssa.InterfaceType{Name: r.name()}}[r.IntN(4)]
	case 3:
		return &ssa.ListType{Elem: r.typ(depth - 1)}
	case 4:
		return &ssa.OptionalType{Elem: r.typ(depth - 1)}
	case 5:
		return &ssa.DictType{Key: ssa.StrType, Value: r.typ(depth - 1)}
	case 6:
		return &ssa.TupleType{Elems: []ssa.Type{r.typ(depth - 1), r.typ(depth - 1)}}
	case 7:
		return &ssa.TupleType{Elems: []ssa.Type{r.typ(depth - 1)}, Names: []string{r.name()}, Name: "__torch__.P" + fmt.Sprint(r.IntN(1<<30))}
	}
	return &ssa.UnionType{Elems: []ssa.Type{r.typ(depth - 1), ssa.IntType}}
}

func (r *random) dtype() tensor.DType {
	all := []tensor.DType{tensor.Uint8, tensor.Int8, tensor.Int64, tensor.Uint64, tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64, tensor.Bool, tensor.Complex64, tensor.Complex128,
		tensor.Float8E4M3FN, tensor.Float8E5M2, tensor.Int4, tensor.QInt8}
	return all[r.IntN(len(all))]
}

func (r *random) float() float64 {
	all := []float64{0, math.Copysign(0, -1), 1, -1.5, math.Inf(1), math.Inf(-1), math.NaN(), math.Float64frombits(0xfff8000000000123), 1e300, 5e-324, 0.1, 1 << 53, r.NormFloat64()}
	return all[r.IntN(len(all))]
}

func (r *random) tensor() *tensor.Tensor {
	if r.IntN(9) == 0 {
		return tensor.Strings([]int64{2}, []string{r.name(), r.name()})
	}
	d := r.dtype()
	shape := [][]int64{{}, {1}, {3}, {2, 3}, {0}, {2, 0}, {9, 9}, {1, 1}}[r.IntN(8)]
	n := int64(1)
	for _, s := range shape {
		n *= s
	}
	b := make([]byte, n*int64(d.Size()))
	for i := range b {
		b[i] = byte(r.IntN(256))
		if d == tensor.Bool {
			b[i] &= 1
		}
	}
	t := tensor.New(d, shape, b)
	switch {
	case d == tensor.Float32 && r.IntN(2) == 0:
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(r.float())
		}
		t = tensor.Of(d, shape, v)
	case d == tensor.Float32 && r.IntN(2) == 0:
		t = tensor.Full(d, shape, r.float())
	case len(shape) == 2 && r.IntN(3) == 0:
		c := *t
		c.Shape, c.Strides = []int64{shape[1], shape[0]}, []int64{1, max(shape[1], 1)}
		t = &c
	}
	if d == tensor.QInt8 {
		t.Quant = &tensor.Quant{Scales: []float64{r.float()}, ZeroPoints: []int64{3}, Axis: -1}
	}
	return t
}

func (r *random) literal(depth int) ssa.Literal {
	if r.onlyNames {
		return ssa.Str(r.name())
	}
	n := 14
	if depth == 0 {
		n = 9
	}
	switch r.IntN(n) {
	case 0:
		return ssa.None
	case 1:
		return ssa.Int([]int64{0, 1, -1, math.MinInt64, math.MaxInt64}[r.IntN(5)])
	case 2:
		return ssa.Float(r.float())
	case 3:
		return ssa.Bool(r.IntN(2) == 0)
	case 4:
		return ssa.Str(r.name())
	case 5:
		return ssa.Complex(complex([]float64{0, math.Copysign(0, -1), 1.5, math.Inf(1)}[r.IntN(4)], []float64{2, math.Copysign(0, -1), math.Inf(-1)}[r.IntN(3)]))
	case 6:
		return ssa.Device(r.name())
	case 7:
		return ssa.FuncName(r.name())
	case 8:
		return ssa.TypeValue(r.typ(2))
	case 9:
		return ssa.TensorValue(r.tensor())
	case 10:
		l := ssa.List(nil)
		for range r.IntN(3) {
			l.Elems = append(l.Elems, r.literal(depth-1))
		}
		return l
	case 11:
		return ssa.Tuple(r.literal(depth-1), r.literal(depth-1))
	case 12:
		return ssa.Dict(ssa.Str(r.name()), r.literal(depth-1))
	}
	return ssa.Enum(r.name(), ssa.Int(2))
}
