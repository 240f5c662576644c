package form

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// terms is a program whose values of the target function have names only. A refusal is a panic with the reason.
type terms struct {
	s        *Space
	unranked int
}

type refusal Clash

func (*terms) At(_ int, f func()) { f() }
func (p *terms) Size(a, b sym.Expr) (sym.Expr, bool) {
	if a.Equal(b) {
		return a, false
	}
	return p.s.Module.FreshSymbol("u", 0), true
}
func (*terms) Numbers(_, _ py.Value) {}
func (*terms) Made(any, [2]any)      {}

func (*terms) Read(t *py.Tensor) *ssa.Value { return heap.ViewOf(t).Storage.State().Base }
func (*terms) RowMajor(t *py.Tensor, _ *ssa.Value) bool {
	return heap.ViewOf(t).Strides != nil
}
func (*terms) Overlaps(t *py.Tensor, _ *ssa.Value) bool { return heap.ViewOf(t).Storage.Overlaps }
func (*terms) Moved(v *heap.View, _ []heap.Place, args []py.Value) *py.Tensor {
	return &py.Tensor{Cell: journal.Loose(v), Val: &ssa.Value{Name: fmt.Sprint("view at ", args)}}
}
func (*terms) Number(x py.Value) *ssa.Value {
	if d, ok := x.(py.Dynamic); ok {
		return d.Value
	}
	return &ssa.Value{Name: x.(py.Const).String()}
}
func (*terms) Dummy(t ssa.Type) *ssa.Value { return &ssa.Value{Name: "any " + t.String(), Type: t} }
func (p *terms) ElemType(st *py.ListState) (elem ssa.Type) {
	if st.Dyn != nil {
		return st.Dyn.Type.(*ssa.ListType).Elem
	}
	for _, e := range st.Elems {
		if _, unset := e.(py.Unset); unset {
			continue
		}
		of, ok := py.NumberType(e)
		if t, isTensor := e.(*py.Tensor); isTensor {
			of, ok = p.Read(t).Type, true
		}
		if !ok {
			p.Refuse(NoForm)
		}
		if a, b := ssa.AsTensor(elem), ssa.AsTensor(of); a != nil && b != nil {
			of = JoinTypes(a, b, func(i int) sym.Expr {
				if a.Dims[i].Equal(b.Dims[i]) {
					return a.Dims[i]
				}
				return sym.Varying(i)
			})
		}
		elem = of
	}
	return elem
}

// Listed names the elements, so that a test sees which they are.
func (p *terms) Listed(st *py.ListState, elem ssa.Type) *ssa.Value {
	if st.Dyn != nil {
		return st.Dyn
	}
	return &ssa.Value{Name: shown(st), Type: &ssa.ListType{Elem: elem}}
}

// shown tells a value: lists of known and of run-time length are told alike, and so are what is something and what may be nothing.
func shown(x any) string {
	all := func(xs []py.Value) string {
		var names []string
		for _, x := range xs {
			names = append(names, shown(x))
		}
		return strings.Join(names, ", ")
	}
	switch x := x.(type) {
	case *py.Tensor:
		return (*terms)(nil).Read(x).Name
	case *py.Tuple:
		return "(" + all(x.Elems) + ")"
	case *py.List:
		return shown(x.State())
	case *py.ListState:
		return shownList(x)
	case *py.Dict:
		return "{" + all(x.State().Vals) + "}"
	case *py.Object:
		return x.Class + " of " + shown(x.Attrs["h"].Content())
	case *py.Maybe:
		switch x.Has.Name {
		case "False":
			return "None"
		case "True":
			return shown(x.Val)
		}
		return shown(x.Val) + " if " + x.Has.Name
	case py.Dynamic:
		return x.Name
	case *py.Choice:
		return shown(x.Yes) + " or " + shown(x.No)
	case py.Const:
		return x.String()
	}
	return fmt.Sprint(x)
}

// shownList tells a list whose elements make columns by these, and as another one where all are there. Of what is not there nothing is told.
func shownList(st *py.ListState) string {
	if st.Dyn != nil {
		return st.Dyn.Name
	}
	if st.Columns == nil {
		st = &py.ListState{Elems: slices.Clone(st.Elems)}
		for i, e := range st.Elems {
			if shown(e) == "None" {
				st.Elems[i] = py.None
			} else if m, ok := e.(*py.Maybe); ok && m.Has.Name == "True" {
				st.Elems[i] = m.Val
			}
		}
	}
	cols := st.Spread()
	if cols.Width == 0 {
		var elems []string
		for _, e := range st.Elems {
			elems = append(elems, shown(e))
		}
		return "[" + strings.Join(elems, ", ") + "]"
	}
	parts := make([]string, cols.Width)
	for i := range parts {
		c, _ := st.Column(cols, i)
		parts[i] = shown(c)
	}
	switch {
	case cols.Optional && !strings.ContainsFunc(strings.NewReplacer("all True", "", "True", "").Replace(parts[0]), unicode.IsLetter):
		return parts[1]
	case !strings.ContainsFunc(strings.Join(parts, ""), func(r rune) bool { return !strings.ContainsRune("[{, }]", r) }):
		return parts[0]
	}
	return "columns " + strings.Join(parts, " and ")
}

func (t *terms) Column(st *py.ListState, cols py.Spread, i int) *py.ListState {
	if cols.Optional && st.AtRunTime() && !st.Spread().Optional {
		return []*py.ListState{{Dyn: &ssa.Value{Name: "all True", Type: &ssa.ListType{Elem: ssa.BoolType}}}, st}[i]
	}
	c, ok := st.Column(cols, i)
	if !ok {
		t.Refuse(Elements)
	}
	return c
}
func (*terms) Vectors(ssa.Type) bool                         { return false }
func (*terms) PoolOf(*py.ListState, journal.Changes) *Pool   { return nil }
func (*terms) Places(*Pool, *py.ListState) *ssa.Value        { return nil }
func (*terms) Rows(p *Pool, places *ssa.Value) *py.ListState { return nil }
func (*terms) CheckKeys(*py.DictState)                       {}
func (p *terms) Unranked()                                   { p.unranked++ }
func (*terms) Lost(*ssa.Value)                               {}
func (*terms) Refuse(why Clash, _ ...any)                    { panic(refusal(why)) }

func newSpace() *Space {
	s := &Space{Heap: &heap.Heap{Step: func() {}}, Module: ssa.NewModule(), Start: 1 << 30, Fresh: 1 << 30}
	s.Program = &terms{s: s}
	return s
}

// values makes values of a program, in one heap.
type values struct{ h *heap.Heap }

func (v values) tensor(name string, d tensor.DType, dims ...any) *py.Tensor {
	return v.h.Tensor(&ssa.Value{Name: name, Type: ssa.Tensor(d, sizes(dims)...)})
}

func sizes(dims []any) (out []sym.Expr) {
	for _, d := range dims {
		switch d := d.(type) {
		case int:
			out = append(out, sym.Const(int64(d)))
		case string:
			out = append(out, sym.Symbol(d, 1))
		}
	}
	return out
}

func (v values) list(elem ssa.Type, xs ...py.Value) *py.List { return v.h.List(elem, xs) }

func (v values) dict(kv ...any) *py.Dict {
	st := &py.DictState{}
	for i := 0; i < len(kv); i += 2 {
		st.Keys, st.Vals = append(st.Keys, ssa.Str(kv[i].(string))), append(st.Vals, kv[i+1].(py.Value))
	}
	return &py.Dict{Cell: v.h.New(st)}
}

func runTimeInt(name string) py.Value { return py.Dyn(&ssa.Value{Name: name, Type: ssa.IntType}) }

// text tells a form: what does not vary is "fixed", and the rest as the types of what varies.
func text(f *Form) string {
	if f == nil {
		return "None"
	}
	var parts []string
	for _, e := range f.elems {
		parts = append(parts, text(e))
	}
	switch f.kind {
	case fixed:
		return "fixed"
	case number, tens:
		return f.typ.String()
	case tuple:
		return "(" + strings.Join(parts, ", ") + ")"
	case list:
		return "[" + strings.Join(parts, ", ") + "]"
	case dict:
		return "{" + strings.Join(parts, ", ") + "}"
	case columns:
		return "columns: " + strings.Join(parts, ", ")
	case runTime:
		return "list of " + f.elemType().String()
	case option:
		return "None or " + parts[0]
	case viewed:
		return "view at " + strings.Join(parts, ", ")
	}
	return "rows of a pool"
}

// TestWiden has what a value is before a loop and behind its iterations, and the form that all have.
func TestWiden(t *testing.T) {
	s := newSpace()
	v := values{s.Heap}
	x, y := v.tensor("x", tensor.Float32, 2, 3), v.tensor("y", tensor.Float32, 2, 3)
	for _, c := range []struct {
		what   string
		before py.Value
		later  []py.Value
		want   string
	}{
		{"the same number", py.Int(1), []py.Value{py.Int(1)}, "fixed"},
		{"another number", py.Int(1), []py.Value{py.Int(2)}, "int"},
		{"a number of run time", py.Int(1), []py.Value{runTimeInt("n")}, "int"},
		{"the same tensor", x, []py.Value{x}, "fixed"},
		{"another tensor", x, []py.Value{y}, "Float(2, 3)"},
		{"a tensor of another size", x, []py.Value{v.tensor("z", tensor.Float32, 2, 4)}, "Float(2, u0)"},
		{"a tensor of other sizes each time", x, []py.Value{v.tensor("z", tensor.Float32, 2, 4), v.tensor("w", tensor.Float32, 1, 5)}, "Float(u2, u1)"},
		{"a tensor of another rank", x, []py.Value{v.tensor("z", tensor.Float32, 2)}, "FloatTensor"},
		{"a tuple", &py.Tuple{Elems: []py.Value{x, py.Int(1)}}, []py.Value{&py.Tuple{Elems: []py.Value{x, py.Int(2)}}}, "(fixed, int)"},
		{"a list of one length", v.list(ssa.AnyTensor, x, x), []py.Value{v.list(ssa.AnyTensor, x, y)}, "[fixed, Float(2, 3)]"},
		{"a list that grows", v.list(ssa.AnyTensor), []py.Value{v.list(ssa.AnyTensor, x)}, "list of Float(2, 3)"},
		{"a list that grows by tensors of several sizes", v.list(ssa.AnyTensor, x), []py.Value{v.list(ssa.AnyTensor, x, x), v.list(ssa.AnyTensor, v.tensor("z", tensor.Float32, 2, 4))}, "list of Float(2, " + sym.Varying(1).String() + ")"},
		{"a list that grows by pairs", v.list(nil), []py.Value{v.list(nil, &py.Tuple{Elems: []py.Value{x, py.Int(1)}})}, "columns: list of Float(2, 3), list of int"},
		{"a list that grows by what may be None", v.list(nil), []py.Value{v.list(nil, py.None, x)}, "columns: list of bool, list of Float(2, 3)"},
		{"a list of pairs that grows by one with None", v.list(nil), []py.Value{v.list(nil, &py.Tuple{Elems: []py.Value{x, py.Int(1)}}),
			v.list(nil, &py.Tuple{Elems: []py.Value{x, py.None}}, &py.Tuple{Elems: []py.Value{x, py.Int(1)}})}, "columns: list of Float(2, 3), columns: list of bool, list of int"},
		{"a dict", v.dict("a", x, "b", py.Int(1)), []py.Value{v.dict("a", x, "b", runTimeInt("n"))}, "{fixed, int}"},
		{"None at first", py.None, []py.Value{py.None, x}, "None or Float(2, 3)"},
		{"None at first, and then a tensor of several sizes", py.None, []py.Value{x, v.tensor("z", tensor.Float32, 2, 4)}, "None or Float(2, u3)"},
		{"set in the loop only", py.Unset{}, []py.Value{x}, "Float(2, 3)"},
		{"not set in an iteration", x, []py.Value{py.Unset{}}, "fixed"},
	} {
		f := Of(c.before)
		for i := 0; ; i++ {
			changed := false
			for _, x := range c.later {
				changed = s.Widen(f, x) || changed
			}
			if !changed {
				break
			}
			if i > 4 {
				t.Fatalf("%s: the form changes without an end", c.what)
			}
		}
		if got := text(f); got != c.want {
			t.Errorf("%s: got %s, want %s", c.what, got, c.want)
		}
		if s.Widen(f, c.before) {
			t.Errorf("%s: %s does not fit the value from before the loop", c.what, text(f))
		}
	}
	if n := s.Program.(*terms).unranked; n != 1 {
		t.Errorf("told of %d tensors that change their rank, want 1", n)
	}
}

// TestRefuse has values that no form fits.
func TestRefuse(t *testing.T) {
	s := newSpace()
	v := values{s.Heap}
	x := v.tensor("x", tensor.Float32, 2)
	one := v.list(ssa.AnyTensor, x)
	for _, c := range []struct {
		before, later py.Value
		strict        bool
		want          Clash
	}{
		{x, py.Int(1), false, NotTensor},
		{x, v.tensor("y", tensor.Int64, 2), false, DTypes},
		{py.Int(1), py.Float(1), false, NumberTypes},
		{py.Int(1), x, false, NotNumber},
		{py.String("a"), py.String("b"), false, Strings},
		{one, x, false, NotList},
		{v.dict("a", x), v.dict("b", x), false, KeyOrder},
		{v.dict("a", x), v.dict(), false, Keys},
		{&py.Tuple{Elems: []py.Value{x}}, &py.Tuple{}, false, NotTuple},
		// what an unrolled loop would not need
		{one, v.list(ssa.AnyTensor), true, Lengths},
		{py.None, x, true, NoneOrValue},
		{x, v.tensor("y", tensor.Float32), true, Ranks},
	} {
		s.Strict = c.strict
		got := func() (why any) {
			defer func() { why = recover() }()
			s.Widen(Of(c.before), c.later)
			return nil
		}()
		if got != refusal(c.want) {
			t.Errorf("from %v to %v: got %v, want %v", c.before, c.later, got, c.want)
		}
	}
}

// TestFlattenAndRebuild has what a form carries of values that it fits, and that Rebuild asks for these in the same order.
func TestFlattenAndRebuild(t *testing.T) {
	s := newSpace()
	v := values{s.Heap}
	x, y := v.tensor("x", tensor.Float32, 2), v.tensor("y", tensor.Float32, 2)
	pair := func(a, b py.Value) py.Value { return &py.Tuple{Elems: []py.Value{a, b}} }
	for _, c := range []struct {
		what          string
		before, later py.Value
		want          string // what is carried of the one, and of the other
	}{
		{"nothing", x, x, "; "},
		{"a tensor", x, y, "x; y"},
		{"what varies alone", pair(x, py.Int(1)), pair(x, py.Int(2)), "1; 2"},
		{"all that varies, in order", pair(x, py.Int(1)), pair(y, py.Int(2)), "x, 1; y, 2"},
		{"the elements of a list", v.list(ssa.AnyTensor, x, y), v.list(ssa.AnyTensor, y, x), "x, y; y, x"},
		{"a list of run-time length", v.list(ssa.AnyTensor), v.list(ssa.AnyTensor, x), "[]; [x]"},
		{"None", py.None, x, "False, any Float(2); True, x"},
		{"None of a tuple", py.None, pair(x, py.Int(1)), "False, any Float(2); True, x"},
		{"the values of a dict", v.dict("a", x, "b", y), v.dict("a", y, "b", y), "x; y"},
		{"nothing before the loop", py.Unset{}, x, "any Float(2); x"},
	} {
		f := Of(c.before)
		for s.Widen(f, c.later) {
		}
		var sides []string
		var types [][]ssa.Type
		for _, x := range []py.Value{c.before, c.later} {
			var names []string
			var ts []ssa.Type
			for _, v := range s.Flatten(f, x, nil) {
				names, ts = append(names, v.Name), append(ts, v.Type)
			}
			sides, types = append(sides, strings.Join(names, ", ")), append(types, ts)
		}
		if got := strings.Join(sides, "; "); got != c.want {
			t.Errorf("%s: %s carries %s, want %s", c.what, text(f), got, c.want)
		}
		asked := 0
		again := s.Rebuild(f, func(t ssa.Type) *ssa.Value {
			asked++
			return &ssa.Value{Name: fmt.Sprint("r", asked), Type: t}
		})
		if asked != len(types[1]) {
			t.Errorf("%s: Rebuild asks for %d values, and Flatten gives %d", c.what, asked, len(types[1]))
		}
		if s.Widen(f, again) {
			t.Errorf("%s: what is rebuilt does not fit its own form", c.what)
		}
	}
}

// TestOverlaps: what may be expanded before the loop, or behind an iteration, may be so each time.
func TestOverlaps(t *testing.T) {
	s := newSpace()
	v := values{s.Heap}
	expanded := v.tensor("y", tensor.Float32, 2)
	heap.ViewOf(expanded).Storage.Overlaps, heap.ViewOf(expanded).Strides = true, nil
	f := Of(v.tensor("x", tensor.Float32, 2))
	for s.Widen(f, expanded) {
	}
	x := s.Rebuild(f, func(t ssa.Type) *ssa.Value { return &ssa.Value{Name: "r", Type: t} }).(*py.Tensor)
	if !heap.ViewOf(x).Storage.Overlaps {
		t.Error("the tensor is taken to have a place for each of its elements")
	}
}

// TestAfter: behind the loop, a size that varies is another one than in it.
func TestAfter(t *testing.T) {
	s := newSpace()
	v := values{s.Heap}
	f := Of(v.tensor("x", tensor.Float32, 2, 3))
	s.Widen(f, v.tensor("y", tensor.Float32, 2, 4))
	if in, behind := text(f), text(s.After(f)); in != "Float(2, u0)" || behind != "Float(2, u1)" {
		t.Errorf("got %s in the loop and %s behind it", in, behind)
	}
}

var selectSchema = &ssa.Schema{Name: "aten::select", Args: []ssa.SchemaArg{{Name: "self"}, {Name: "dim"}, {Name: "index"}}}

// TestViewsMove: two views that take the same steps are one whose place varies.
func TestViewsMove(t *testing.T) {
	s := newSpace()
	v := values{s.Heap}
	x := v.tensor("x", tensor.Float32, 5, 3)
	row := func(i py.Value) *py.Tensor {
		st := heap.ViewOf(x)
		step := heap.Step{Kind: "aten::select", Schema: selectSchema, Args: []py.Value{nil, py.Int(0), i}}
		return s.Heap.View(st.Storage, st.Then(step), st.Strides, nil, nil)
	}
	f := Of(row(py.Int(0)))
	if !s.Widen(f, row(runTimeInt("n"))) || text(f) != "view at int" {
		t.Fatalf("got %s", text(f))
	}
	if s.Widen(f, row(py.Int(4))) {
		t.Error("another row does not fit")
	}
	if got := s.Flatten(f, row(runTimeInt("n")), nil); len(got) != 1 || got[0].Name != "n" {
		t.Errorf("carries %v, want its index", got)
	}
	if !s.Widen(f, v.tensor("y", tensor.Float32, 3)) || text(f) == "view at int" {
		t.Errorf("a tensor of its own memory fits the view: %s", text(f))
	}
}
