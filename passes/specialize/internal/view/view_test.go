package view

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Every operator that gives a view by its schema has a row, and no row is of an operator that is not there.
func TestTableIsComplete(t *testing.T) {
	rowsOf := map[ssa.Kind]bool{}
	for _, k := range Kinds() {
		rowsOf[k] = true
		if aten.Schemas(k) == nil && Of(k).To == tensor.Undefined { // x.float() and its kin are methods that only old graphs call as operators
			t.Errorf("there is no %s", k)
		}
	}
	for _, k := range aten.Kinds() {
		for _, s := range aten.Schemas(k) {
			if aten.SharesMemory(s) && ClassOf(k, s) == aten.AlwaysView && !rowsOf[k] {
				t.Errorf("%s gives a view by its schema, and has no row", s.FullName())
			}
		}
	}
}

// A view says all that others ask for, or why not.
func TestRowsAreComplete(t *testing.T) {
	for _, name := range Kinds() {
		r, class := Of(name), ClassOf(name, nil)
		complete := r.Strides != nil && r.Inverse != nil
		switch {
		case class == aten.AlwaysView && r.Spreads: // written by places
		case class == aten.AlwaysView && !complete && r.Missing == "":
			t.Errorf("%s: neither all functions nor a reason", name)
		case complete && r.Missing != "":
			t.Errorf("%s: has all functions and a reason why not", name)
		case class == aten.ViewIfStrides && r.Inverse == nil:
			t.Errorf("%s: a reshape that shares memory is written through", name)
		case r.To != tensor.Undefined && class != aten.ViewIfUnchanged:
			t.Errorf("%s: converts, so that it is a view only where nothing changes", name)
		}
	}
}

func ints(xs ...int64) py.Value {
	var es []py.Value
	for _, x := range xs {
		es = append(es, py.Int(x))
	}
	return &py.List{Cell: journal.Loose(&py.ListState{Elems: es}), Elem: ssa.IntType}
}

func typ(dims ...int64) *ssa.TensorType { return ssa.Tensor(tensor.Float32, ssa.Sizes(dims)...) }

// step makes a step of an operator by its full name; arguments that are left out have their defaults.
func step(t *testing.T, name string, args ...py.Value) *heap.Step {
	t.Helper()
	s := aten.SchemaByName(name)
	if s == nil {
		t.Fatalf("no schema %s", name)
	}
	all := []py.Value{nil}
	all = append(all, args...)
	for i := len(all); i < len(s.Args); i++ {
		all = append(all, py.Of(s.Args[i].Default))
	}
	return &heap.Step{Kind: ssa.Kind(s.Name), Schema: s, Args: all}
}

// Strides and places, in elements, as PyTorch's stride() and storage_offset() tell them.
func TestStridesAndPlaces(t *testing.T) {
	const unknown = -1
	for _, c := range []struct {
		op      string
		args    []py.Value
		index   int
		shape   []int64
		strides []int64 // of the base
		out     []int64 // the shape of the view
		want    []int64 // nil where they are not known
		place   int64
	}{
		{op: "aten::detach", shape: []int64{2, 3}, strides: []int64{3, 1}, out: []int64{2, 3}, want: []int64{3, 1}},
		{op: "aten::transpose.int", args: []py.Value{py.Int(0), py.Int(-1)}, shape: []int64{2, 3}, strides: []int64{3, 1}, out: []int64{3, 2}, want: []int64{1, 3}},
		{op: "aten::swapaxes", args: []py.Value{py.Int(0), py.Int(1)}, shape: []int64{2, 3}, strides: []int64{3, 1}, out: []int64{3, 2}, want: []int64{1, 3}},
		{op: "aten::transpose.int", args: []py.Value{py.Int(0), py.Int(2)}, shape: []int64{2, 3}, strides: []int64{3, 1}, out: []int64{3, 2}},
		{op: "aten::t", shape: []int64{2, 3}, strides: []int64{3, 1}, out: []int64{3, 2}, want: []int64{1, 3}},
		{op: "aten::t", shape: []int64{3}, strides: []int64{2}, out: []int64{3}, want: []int64{2}},
		{op: "aten::mT", shape: []int64{2, 2, 3}, strides: []int64{6, 3, 1}, out: []int64{2, 3, 2}},
		{op: "aten::permute", args: []py.Value{ints(2, 0, -2)}, shape: []int64{2, 3, 4}, strides: []int64{12, 4, 1}, out: []int64{4, 2, 3}, want: []int64{1, 12, 4}},
		{op: "aten::permute", args: []py.Value{ints(2, 0)}, shape: []int64{2, 3, 4}, strides: []int64{12, 4, 1}, out: []int64{4, 2, 3}},
		{op: "aten::permute", args: []py.Value{ints(0, 1, 3)}, shape: []int64{2, 3, 4}, strides: []int64{12, 4, 1}, out: []int64{4, 2, 3}},
		{op: "aten::movedim.int", args: []py.Value{py.Int(0), py.Int(2)}, shape: []int64{2, 3, 4}, strides: []int64{12, 4, 1}, out: []int64{3, 4, 2}, want: []int64{4, 1, 12}},
		{op: "aten::select.int", args: []py.Value{py.Int(0), py.Int(-1)}, shape: []int64{2, 3}, strides: []int64{3, 1}, out: []int64{3}, want: []int64{1}, place: 3},
		{op: "aten::select.int", args: []py.Value{py.Int(1), py.Int(2)}, shape: []int64{2, 3}, strides: []int64{3, 1}, out: []int64{2}, want: []int64{3}, place: 2},
		{op: "aten::narrow", args: []py.Value{py.Int(0), py.Int(1), py.Int(2)}, shape: []int64{4, 3}, strides: []int64{3, 1}, out: []int64{2, 3}, want: []int64{3, 1}, place: 3},
		{op: "aten::slice.Tensor", args: []py.Value{py.Int(0), py.Int(1), py.None, py.Int(2)}, shape: []int64{5, 3}, strides: []int64{3, 1}, out: []int64{2, 3}, want: []int64{6, 1}, place: 3},
		{op: "aten::slice.Tensor", args: []py.Value{py.Int(1), py.Int(-2), py.None, py.Int(1)}, shape: []int64{5, 3}, strides: []int64{3, 1}, out: []int64{5, 2}, want: []int64{3, 1}, place: 1},
		// x[9:] of 5 elements begins at the end, not at 9
		{op: "aten::slice.Tensor", args: []py.Value{py.Int(0), py.Int(9), py.None, py.Int(1)}, shape: []int64{5, 3}, strides: []int64{3, 1}, out: []int64{0, 3}, want: []int64{3, 1}, place: unknown},
		{op: "aten::diagonal", shape: []int64{3, 3}, strides: []int64{3, 1}, out: []int64{3}, want: []int64{4}},
		{op: "aten::diagonal", args: []py.Value{py.Int(1)}, shape: []int64{3, 3}, strides: []int64{3, 1}, out: []int64{2}, want: []int64{4}, place: unknown},
		{op: "aten::diagonal", args: []py.Value{py.Int(0), py.Int(1), py.Int(1)}, shape: []int64{3, 3}, strides: []int64{3, 1}, out: []int64{3}},
		{op: "aten::unbind.int", index: 1, shape: []int64{2, 3}, strides: []int64{3, 1}, out: []int64{3}, want: []int64{1}, place: 3},
		{op: "aten::chunk", args: []py.Value{py.Int(2), py.Int(1)}, index: 1, shape: []int64{2, 5}, strides: []int64{5, 1}, out: []int64{2, 2}, want: []int64{5, 1}, place: 3},
		{op: "aten::chunk", args: []py.Value{py.Int(2)}, shape: []int64{4, 5}, strides: []int64{5, 1}, out: []int64{2, 5}, want: []int64{5, 1}},
		{op: "aten::split.Tensor", args: []py.Value{py.Int(2)}, index: 2, shape: []int64{5, 3}, strides: []int64{3, 1}, out: []int64{1, 3}, want: []int64{3, 1}, place: 12},
		{op: "aten::split_with_sizes", args: []py.Value{ints(1, 3, 1)}, index: 2, shape: []int64{5, 3}, strides: []int64{3, 1}, out: []int64{1, 3}, want: []int64{3, 1}, place: 12},
		{op: "aten::tensor_split.sections", args: []py.Value{py.Int(2)}, index: 1, shape: []int64{4, 3}, strides: []int64{3, 1}, out: []int64{2, 3}, want: []int64{3, 1}, place: unknown},
		{op: "aten::view", args: []py.Value{ints(3, 2)}, shape: []int64{2, 3}, strides: []int64{3, 1}, out: []int64{3, 2}, want: []int64{2, 1}},
		{op: "aten::unsqueeze", args: []py.Value{py.Int(-1)}, shape: []int64{2, 3}, strides: []int64{3, 1}, out: []int64{2, 3, 1}, want: []int64{3, 1, 1}},
		{op: "aten::unsqueeze", args: []py.Value{py.Int(0)}, shape: []int64{2, 3}, strides: []int64{1, 2}, out: []int64{1, 2, 3}, want: []int64{2, 1, 2}},
		{op: "aten::unsqueeze", args: []py.Value{py.Int(4)}, shape: []int64{2, 3}, strides: []int64{1, 2}, out: []int64{1, 2, 3}},
		{op: "aten::squeeze", shape: []int64{1, 3, 1}, strides: []int64{3, 1, 1}, out: []int64{3}, want: []int64{1}},
		{op: "aten::squeeze.dim", args: []py.Value{py.Int(0)}, shape: []int64{1, 3, 1}, strides: []int64{3, 1, 1}, out: []int64{3, 1}, want: []int64{1, 1}},
		{op: "aten::squeeze.dim", args: []py.Value{py.Int(1)}, shape: []int64{1, 3}, strides: []int64{3, 1}, out: []int64{1, 3}, want: []int64{3, 1}},
		{op: "aten::expand", args: []py.Value{ints(4, 2, 3)}, shape: []int64{1, 3}, strides: []int64{3, 1}, out: []int64{4, 2, 3}, want: []int64{0, 0, 1}},
		{op: "aten::unfold", args: []py.Value{py.Int(0), py.Int(2), py.Int(3)}, shape: []int64{8}, strides: []int64{1}, out: []int64{3, 2}, want: []int64{3, 1}},
		{op: "aten::as_strided", args: []py.Value{ints(2, 2), ints(5, 1)}, shape: []int64{9}, strides: []int64{1}, out: []int64{2, 2}, want: []int64{5, 1}, place: unknown},
	} {
		st := step(t, c.op, c.args...)
		st.Index = c.index
		call := &Call{Step: st, Strides: ssa.Sizes(c.strides), Self: typ(c.shape...), Out: typ(c.out...), Axes: layout.Axes{}}
		want := ssa.Sizes(c.want)
		if c.want == nil {
			want = nil
		}
		if got := Strides(call); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s%v: strides %v, want %v", c.op, c.args, got, want)
		}
		at, ok := Place(call)
		if n, known := at.Int(); ok && known && n != c.place || ok != (c.place != unknown) && c.want != nil {
			t.Errorf("%s%v: place %v, %v; want %d", c.op, c.args, at, ok, c.place)
		}
	}
}

func TestStridesThatAreNotKnown(t *testing.T) {
	st := step(t, "aten::detach")
	if got := Strides(&Call{Step: st, Self: typ(2, 3)}); got != nil {
		t.Errorf("a view of a base of unknown strides has %v", got)
	}
	if got := Strides(&Call{Step: st, Strides: ssa.Sizes([]int64{1}), Self: ssa.Unranked(tensor.Float32)}); got != nil {
		t.Errorf("a view of a base of unknown rank has %v", got)
	}
	for _, name := range []string{"aten::squeeze", "aten::expand"} {
		c := &Call{Step: step(t, name, ints(2)), Strides: ssa.Sizes([]int64{1}), Self: typ(1), Out: ssa.Unranked(tensor.Float32)}
		if got := Strides(c); got != nil {
			t.Errorf("%s of unknown rank has strides %v", name, got)
		}
	}
}

func TestClassOf(t *testing.T) {
	for name, want := range map[string]aten.View{
		"aten::select.int": aten.AlwaysView, "aten::reshape": aten.ViewIfStrides, "aten::to.dtype": aten.ViewIfUnchanged, "aten::contiguous": aten.ViewIfUnchanged,
		"aten::meshgrid": aten.MayBeView, "aten::relu": aten.NoView, "aten::unsafe_split.Tensor": aten.NoView, "aten::add.Tensor": aten.NoView,
	} {
		s := aten.SchemaByName(name)
		if got := ClassOf(ssa.Kind(s.Name), s); got != want {
			t.Errorf("%s is of class %d, want %d", name, got, want)
		}
	}
	// an operator that the table does not know is believed to do what its schema says
	own := *aten.SchemaByName("aten::select.int")
	if got := ClassOf("my::select", &own); got != aten.AlwaysView {
		t.Errorf("a user's view is of class %d", got)
	}
	if Of("my::select").Inverse != nil || Of("aten::relu").Strides != nil {
		t.Error("an operator without a row has functions")
	}
	if aten.SharesMemory(nil) {
		t.Error("no schema is a view")
	}
}

func TestSpread(t *testing.T) {
	chain := []heap.Step{*step(t, "aten::t"), *step(t, "aten::expand", ints(2, 3)), *step(t, "aten::t")}
	if got := Spread(chain); got != 1 {
		t.Errorf("the first step that spreads is %d, want 1", got)
	}
	if got := Spread(chain[:1]); got != -1 {
		t.Errorf("t() spreads: %d", got)
	}
	if !BeginsAtBase(chain) || BeginsAtBase([]heap.Step{*step(t, "aten::select.int", py.Int(0), py.Int(1))}) {
		t.Error("which views begin where their storage does")
	}
}

// calls is a Graph that notes what is emitted.
type calls []string

func (c *calls) Emit(name string, args ...any) *ssa.Value {
	text := name
	for _, a := range args {
		switch a := a.(type) {
		case *ssa.Value:
			text += " " + a.Name
		case py.Value:
			l, _ := py.LiteralOf(a)
			text += " " + l.String()
		default:
			text += fmt.Sprint(" ", a)
		}
	}
	*c = append(*c, text)
	return &ssa.Value{Name: "r"}
}

func (c *calls) EmitOp(kind ssa.Kind, _ *ssa.Schema, operands ...*ssa.Value) []*ssa.Value {
	text := string(kind)
	for _, v := range operands {
		text += " " + v.Name
	}
	*c = append(*c, text)
	return []*ssa.Value{{Name: "part0"}, {Name: "part1"}}
}

func (c *calls) Operands(args []py.Value) []*ssa.Value {
	out := make([]*ssa.Value, len(args))
	for i, a := range args {
		if a != nil {
			l, _ := py.LiteralOf(a)
			out[i] = &ssa.Value{Name: l.String()}
		}
	}
	return out
}

func (c *calls) IntOp(name string, a, b py.Value) py.Value {
	x, _ := py.IntOf(a, 0)
	y, _ := py.IntOf(b, 0)
	if name != "add" {
		panic(name)
	}
	return py.Int(x + y)
}

func (c *calls) Tensors(elems []*ssa.Value) py.Value {
	text := "["
	for _, v := range elems {
		text += v.Name + " "
	}
	return py.String(text + "]")
}

// How v, written to a view of base, goes back.
func TestInverses(t *testing.T) {
	for _, c := range []struct {
		op    string
		args  []py.Value
		index int
		want  []string // what is emitted; nil where there is no form
	}{
		{"aten::detach", nil, 0, []string{}},
		{"aten::transpose.int", []py.Value{py.Int(0), py.Int(1)}, 0, []string{"aten::transpose.int v 0 1"}},
		{"aten::swapaxes", []py.Value{py.Int(0), py.Int(1)}, 0, []string{"aten::transpose.int v 0 1"}},
		{"aten::t", nil, 0, []string{"aten::t v"}},
		{"aten::permute", []py.Value{ints(1, 2, 0)}, 0, []string{"aten::permute v [2 0 1]"}},
		{"aten::permute", []py.Value{ints(1, 9, 0)}, 0, nil},
		{"aten::movedim.int", []py.Value{py.Int(0), py.Int(2)}, 0, []string{"aten::movedim v 2 0"}},
		{"aten::select.int", []py.Value{py.Int(0), py.Int(2)}, 0, []string{"aten::select_scatter base v 0 2"}},
		{"aten::slice.Tensor", []py.Value{py.Int(0), py.Int(1), py.Int(3), py.Int(2)}, 0, []string{"aten::slice_scatter base v 0 1 3 2"}},
		{"aten::narrow", []py.Value{py.Int(0), py.Int(1), py.Int(2)}, 0, []string{"aten::slice_scatter base v 0 1 3 1"}},
		// the last two elements: an end of 0 would be none
		{"aten::narrow", []py.Value{py.Int(0), py.Int(-2), py.Int(2)}, 0, []string{"aten::slice_scatter base v 0 -2 9223372036854775807 1"}},
		{"aten::narrow.Tensor", []py.Value{py.Int(0), &py.Tensor{}, py.Int(2)}, 0, nil},
		{"aten::diagonal", nil, 0, []string{"aten::diagonal_scatter base v 0 0 1"}},
		{"aten::view", []py.Value{ints(6)}, 0, []string{"aten::view_as v base"}},
		{"aten::view.dtype", []py.Value{py.Int(3)}, 0, nil},
		{"aten::unbind.int", nil, 1, []string{"aten::unbind base 0", `aten::stack "[part0 v ]" 0`}},
		{"aten::chunk", []py.Value{py.Int(2), py.Int(1)}, 0, []string{"aten::chunk base 2 1", `aten::cat "[v part1 ]" 1`}},
		{"aten::vsplit.int", []py.Value{py.Int(2)}, 0, []string{"aten::vsplit base 2", `aten::cat "[v part1 ]" 0`}},
		{"aten::dsplit.int", []py.Value{py.Int(2)}, 0, []string{"aten::dsplit base 2", `aten::cat "[v part1 ]" 2`}},
		{"aten::hsplit.int", []py.Value{py.Int(2)}, 0, []string{"aten::hsplit base 2", `aten::cat "[v part1 ]" 0`}},
		{"aten::take", []py.Value{py.String("places")}, 0, []string{`aten::put base "places" v`}},
	} {
		st := step(t, c.op, c.args...)
		st.Index = c.index
		got := calls{}
		w := Of(st.Kind).Inverse(&got, st, &ssa.Value{Name: "base", Type: typ(4)}, &ssa.Value{Name: "v"})
		switch {
		case (w == nil) != (c.want == nil):
			t.Errorf("%s: %v has a form: %v", c.op, c.args, w != nil)
		case w != nil && !slices.Equal(got, c.want):
			t.Errorf("%s: %q, want %q", c.op, got, c.want)
		}
	}
}
