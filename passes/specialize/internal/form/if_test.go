package form

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// branching is terms for an If: it notes which objects are told to stand for which.
type branching struct {
	*terms
	made []string
}

func (b *branching) Made(x any, ends [2]any) {
	b.made = append(b.made, fmt.Sprintf("%s is %s or %s", shown(x), shown(ends[0]), shown(ends[1])))
}

func newIf() (*Space, *branching) {
	s := newSpace()
	body := s.Module.NewFunc("f").Body
	s.If = body.Append("prim::If", 0, []*ssa.Value{body.AddParam("c", ssa.BoolType)})
	s.If.AddBlock()
	s.If.AddBlock()
	b := &branching{terms: s.Program.(*terms)}
	s.Program = b
	return s, b
}

// rejoined is what an If gives for two values: the new value, of results r1, r2, ... each of which is one of two.
func rejoined(s *Space, yes, no any) (x any, results string) {
	f := s.Join(yes, no)
	ends := [2][]*ssa.Value{s.Flatten(f, yes, nil), s.Flatten(f, no, nil)}
	var told []string
	x = s.Rebuild(f, func(t ssa.Type) *ssa.Value {
		k := len(told)
		told = append(told, fmt.Sprintf("r%d = %s or %s", k+1, ends[0][k].Name, ends[1][k].Name))
		return &ssa.Value{Name: fmt.Sprint("r", k+1), Type: t}
	})
	return x, strings.Join(told, ", ")
}

// TestJoin has what the two branches of an If give, and what the If gives.
func TestJoin(t *testing.T) {
	s, b := newIf()
	v := values{s.Heap}
	x, y, z := v.tensor("x", tensor.Float32, 2), v.tensor("y", tensor.Float32, 2), v.tensor("z", tensor.Float32, 3)
	shared := v.list(ssa.AnyTensor, x)
	pair := func(a, b py.Value) py.Value { return &py.Tuple{Elems: []py.Value{a, b}} }
	box := func(class string, h py.Value) *py.Object {
		return &py.Object{Class: class, Attrs: map[string]*journal.Cell{"h": s.Heap.New(h)}}
	}
	found := v.h.New(&py.ListState{Dyn: &ssa.Value{Name: "l", Type: &ssa.ListType{Elem: ssa.Tensor(tensor.Float32, sym.Const(2))}}})
	mode := &py.Choice{Cond: s.If.Blocks[0].AddParam("d", ssa.BoolType), Yes: py.String("sum"), No: py.String("mean")}
	s.Start = s.Heap.Mark().Last
	for _, c := range []struct {
		what          string
		yes, no       py.Value
		want, results string
	}{
		{"the same value", x, x, "x", ""},
		{"two numbers", py.Int(1), py.Int(2), "r1", "r1 = 1 or 2"},
		{"two tensors", x, y, "r1", "r1 = x or y"},
		{"tensors of two sizes", x, z, "r1", "r1 = x or z"},
		{"a tuple of which a part is the same", pair(x, py.Int(1)), pair(x, py.Int(2)), "(x, r1)", "r1 = 1 or 2"},
		{"lists of one length", v.list(ssa.AnyTensor, x, y), v.list(ssa.AnyTensor, y, y), "[r1, y]", "r1 = x or y"},
		{"lists of two lengths", v.list(ssa.AnyTensor, x, y), v.list(ssa.AnyTensor, y), "r1", "r1 = [x, y] or [y]"},
		{"lists of pairs of two lengths", v.list(nil, pair(x, py.Int(1))), v.list(nil, pair(y, py.Int(2)), pair(x, py.Int(1))), "columns r1 and r2", "r1 = [x] or [y, x], r2 = [1] or [2, 1]"},
		{"a list with None, and one of another length", v.list(nil, py.None, x), v.list(nil), "columns r1 and r2", "r1 = [False, True] or [], r2 = [{}, x] or []"},
		{"a list of run-time length, and one with None", &py.List{Cell: found}, v.list(nil, py.None, x), "columns r1 and r2", "r1 = all True or [False, True], r2 = l or [{}, x]"},
		{"a list with None, and one of run-time length", v.list(nil, py.None, x), &py.List{Cell: found}, "columns r1 and r2", "r1 = [False, True] or all True, r2 = [{}, x] or l"},
		{"two names of one tensor", pair(x, x), pair(z, z), "(r1, r1)", "r1 = x or z"},
		{"a list that two names have", pair(shared, shared), pair(v.list(ssa.AnyTensor, y), shared), "([r1], [x])", "r1 = x or y"},
		{"None or a tensor", py.None, x, "r2 if r1", "r1 = False or True, r2 = any Float(2) or x"},
		{"a tensor or None", x, py.None, "r2 if r1", "r1 = True or False, r2 = x or any Float(2)"},
		{"set in one branch", py.Unset{}, x, "r1", "r1 = any Float(2) or x"},
		{"set in the other branch", pair(x, py.Int(1)), py.Unset{}, "(r1, 1)", "r1 = x or any Float(2)"},
		{"two strings", py.String("sum"), py.String("none"), `"sum" or "none"`, ""},
		{"a string that a branch chooses", mode, py.String("none"), `"sum" or "mean" or "none"`, "r1 = d or False"},
		{"an object that one branch makes", py.Unset{}, box("Box", x), "Box of r1", "r1 = any Float(2) or x"},
		{"objects of one class", box("Box", x), box("Box", y), "Box of r1", "r1 = x or y"},
	} {
		b.made, s.joined = nil, nil
		got, results := rejoined(s, c.yes, c.no)
		if shown(got) != c.want || results != c.results {
			t.Errorf("%s: the If gives %s, where %s; want %s, where %s", c.what, shown(got), results, c.want, c.results)
		}
	}
	for _, c := range []struct {
		yes, no py.Value
		want    Clash
	}{
		{x, py.Int(1), NotTensor},
		{py.Int(1), py.Float(1), NumberTypes},
		{box("Box", x), box("Other", x), NoForm},
		{v.dict("a", x), v.dict("b", x), KeyOrder},
		{py.None, v.list(ssa.AnyTensor, x), NoneOrList},
		{py.None, box("Box", x), NoneOrList},
		{py.String("a"), x, Strings},
		{v.list(nil), v.list(nil, py.None), NoneAlone},
		{v.list(nil), v.list(nil, pair(x, py.None)), NoneAlone},
		{v.list(nil, pair(x, py.Int(1))), v.list(nil, x, y), Elements},
	} {
		got := func() (why any) {
			defer func() { why = recover() }()
			rejoined(s, c.yes, c.no)
			return nil
		}()
		if got != refusal(c.want) {
			t.Errorf("%s or %s: got %v, want %v", shown(c.yes), shown(c.no), got, c.want)
		}
	}
}

// TestMade: the walk is told of each new object of which two it is, the inner ones first, and once if it has several names.
func TestMade(t *testing.T) {
	s, b := newIf()
	v := values{s.Heap}
	x, y := v.tensor("x", tensor.Float32, 2), v.tensor("y", tensor.Float32, 2)
	a, c := v.list(ssa.AnyTensor, x), v.list(ssa.AnyTensor, y)
	rejoined(s, &py.Tuple{Elems: []py.Value{a, a, x}}, &py.Tuple{Elems: []py.Value{c, c, y}})
	if got := strings.Join(b.made, "; "); got != "r1 is x or y; [r1] is [x] or [y]" {
		t.Errorf("told %s", got)
	}
	b.made = nil
	rejoined(s, x.Cell.Content(), y.Cell.Content())
	if got := strings.Join(b.made, "; "); got != "r1 is x or y" {
		t.Errorf("of what a tensor shows, told %s", got)
	}
}
