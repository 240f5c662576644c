package heap

import (
	"errors"
	"testing"

	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// terms is a Graph whose values are terms, spelled in their names: row(x) is a view of x, and row(x):=y is x after
// y was written to that view. Values whose name is in hidden cannot be used.
type terms struct{ hidden map[string]bool }

func term(name string) *ssa.Value { return &ssa.Value{Name: name, Type: ssa.Tensor(tensor.Float32)} }

func (terms) Derive(st *Step, base *ssa.Value) *ssa.Value {
	return term(string(st.Kind) + "(" + base.Name + ")")
}

func (g terms) Replace(view *View, base, v *ssa.Value) *ssa.Value {
	at := base
	for i := range view.Chain {
		at = g.Derive(&view.Chain[i], at)
	}
	return term("[" + at.Name + ":=" + v.Name + "]")
}

func (terms) When(cond *ssa.Value, side bool, v *ssa.Value, f func() *ssa.Value) *ssa.Value {
	if side {
		return term(cond.Name + "?" + f().Name + ":" + v.Name)
	}
	return term(cond.Name + "?" + v.Name + ":" + f().Name)
}

func (g terms) Reaches(v *ssa.Value) bool { return !g.hidden[v.Name] }

func (g terms) read(t *py.Tensor) string {
	v := ViewOf(t)
	return v.Derive(g, v.Storage.State().Base).Name
}

// write is what an in-place operator does: the view takes v, and its storage with it.
func (g terms) write(t *testing.T, h *Heap, x *py.Tensor, v string) (assumed []Apart) {
	t.Helper()
	view := ViewOf(x)
	assumed, err := h.Write(g, view.Storage, g.Replace(view, view.Storage.State().Base, term(v)), func() string { return "x was written" })
	if err != nil {
		t.Fatal(err)
	}
	return assumed
}

func (h *Heap) viewOf(x *py.Tensor, steps ...ssa.Kind) *py.Tensor {
	v := ViewOf(x)
	chain := v.Chain
	for _, k := range steps {
		chain = (&View{Chain: chain}).Then(Step{Kind: k})
	}
	return h.View(v.Storage, chain, nil, nil, nil)
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %s, want %s", what, got, want)
	}
}

// y = x[0]; x.fill_(v): y shows it.
func TestWriteShowsThroughViews(t *testing.T) {
	var h Heap
	var g terms
	x := h.Tensor(term("x"))
	y := h.viewOf(x, "row")
	g.write(t, &h, x, "v")
	want(t, "y", g.read(y), "row([x:=v])")
}

// y = x[0]; y.fill_(v): x shows it, and so does another view of x.
func TestWriteThroughAViewShowsInItsBase(t *testing.T) {
	var h Heap
	var g terms
	x := h.Tensor(term("x"))
	y, z := h.viewOf(x, "row"), h.viewOf(x, "t")
	g.write(t, &h, y, "v")
	want(t, "x", g.read(x), "[row(x):=v]")
	want(t, "z", g.read(z), "t([row(x):=v])")
}

// y = x.t()[0] is one view of x with two steps; a write to it goes back through both.
func TestViewOfAView(t *testing.T) {
	var h Heap
	var g terms
	x := h.Tensor(term("x"))
	y := h.viewOf(h.viewOf(x, "t"), "row")
	want(t, "y", g.read(y), "row(t(x))")
	g.write(t, &h, y, "v")
	want(t, "x", g.read(x), "[row(t(x)):=v]")
}

// The chain of a view is its own, though it begins as that of another one does.
func TestChainsDoNotShareMemory(t *testing.T) {
	var h Heap
	var g terms
	x := h.Tensor(term("x"))
	y := h.viewOf(x, "t")
	a, b := h.viewOf(y, "first"), h.viewOf(y, "second")
	want(t, "a", g.read(a), "first(t(x))")
	want(t, "b", g.read(b), "second(t(x))")
}

// y is x[0] where c holds, else memory of its own. A write to y goes to x where c holds.
func TestWriteGoesUpALink(t *testing.T) {
	var h Heap
	var g terms
	x := h.Tensor(term("x"))
	y := h.Tensor(term("y"))
	h.Link(&Link{From: ViewOf(y).Storage, To: ViewOf(x).Storage, Cond: term("c"), Side: true, View: ViewOf(h.viewOf(x, "row"))})
	g.write(t, &h, y, "v")
	want(t, "x", g.read(x), "c?[row(x):=[y:=v]]:x")
}

// The same the other way round, where c does not hold: a write to x shows in y.
func TestWriteGoesDownALink(t *testing.T) {
	var h Heap
	var g terms
	x := h.Tensor(term("x"))
	y := h.Tensor(term("y"))
	h.Link(&Link{From: ViewOf(y).Storage, To: ViewOf(x).Storage, Cond: term("c"), Side: false, View: ViewOf(h.viewOf(x, "row"))})
	g.write(t, &h, x, "v")
	want(t, "y", g.read(y), "c?y:row([x:=v])")
}

// y and z may both be views of x: what is written to y shows in z, through x.
func TestWriteGoesUpAndDownAgain(t *testing.T) {
	var h Heap
	var g terms
	x, y, z := h.Tensor(term("x")), h.Tensor(term("y")), h.Tensor(term("z"))
	for _, l := range []struct {
		from *py.Tensor
		cond string
	}{{y, "c"}, {z, "d"}} {
		h.Link(&Link{From: ViewOf(l.from).Storage, To: ViewOf(x).Storage, Cond: term(l.cond), Side: true, View: ViewOf(h.viewOf(x, "row"))})
	}
	g.write(t, &h, y, "v")
	want(t, "z", g.read(z), "d?row(c?[row(x):=[y:=v]]:x):z")
}

// Where the condition of a link is out of reach the link is not followed.
func TestLinkOutOfReach(t *testing.T) {
	var h Heap
	g := terms{hidden: map[string]bool{"c": true}}
	x, y := h.Tensor(term("x")), h.Tensor(term("y"))
	h.Link(&Link{From: ViewOf(y).Storage, To: ViewOf(x).Storage, Cond: term("c"), Side: true, View: ViewOf(x)})
	g.write(t, &h, y, "v")
	want(t, "x", g.read(x), "x")
}

// What may be written memory cannot be read: nobody knows what it holds. Nor can what may be that.
func TestWriteMakesPeersStale(t *testing.T) {
	var h Heap
	var g terms
	x, y, z := h.Tensor(term("x")), h.Tensor(term("y")), h.Tensor(term("z"))
	h.Peer(ViewOf(x).Storage, ViewOf(y).Storage)
	h.Peer(ViewOf(y).Storage, ViewOf(z).Storage)
	g.write(t, &h, x, "v")
	for _, p := range []*py.Tensor{y, z} {
		want(t, "the reason", ViewOf(p).Storage.State().Stale, "x was written")
	}
	want(t, "the reason for x", ViewOf(x).Storage.State().Stale, "")
}

// v is x or y, and w perhaps v: a write to w may be one to x, and to y.
func TestWriteMakesWhatPeersViewStale(t *testing.T) {
	var h Heap
	var g terms
	x, y, v, w := h.Tensor(term("x")), h.Tensor(term("y")), h.Tensor(term("v")), h.Tensor(term("w"))
	h.Link(&Link{From: ViewOf(v).Storage, To: ViewOf(x).Storage, Cond: term("c"), Side: true, View: ViewOf(x)})
	h.Link(&Link{From: ViewOf(v).Storage, To: ViewOf(y).Storage, Cond: term("c"), Side: false, View: ViewOf(y)})
	h.Peer(ViewOf(w).Storage, ViewOf(v).Storage)
	g.write(t, &h, w, "z")
	for _, p := range []*py.Tensor{x, y, v} {
		want(t, "the reason", ViewOf(p).Storage.State().Stale, "x was written")
	}
}

// What may be x or y makes these no peers; what two may be that are made anew does.
func TestAlternativesAreApart(t *testing.T) {
	var h Heap
	var g terms
	x, y, u, v := h.Tensor(term("x")), h.Tensor(term("y")), h.Tensor(term("u")), h.Tensor(term("v"))
	h.Perhaps(ViewOf(u).Storage, ViewOf(x).Storage)
	h.Perhaps(ViewOf(u).Storage, ViewOf(y).Storage)
	h.Together(ViewOf(u).Storage, ViewOf(v).Storage)
	g.write(t, &h, x, "z")
	want(t, "y", g.read(y), "y")
	want(t, "v", g.read(v), "v")
	want(t, "the reason", ViewOf(u).Storage.State().Stale, "x was written")
	g.write(t, &h, v, "z")
	want(t, "y", g.read(y), "y")
}

// v is b where d holds, else x; b is y where c holds, else x. A write to v that does not go to b leaves what b is as it is.
func TestWriteGoesUpTwoWays(t *testing.T) {
	var h Heap
	var g terms
	x, y, b, v := h.Tensor(term("x")), h.Tensor(term("y")), h.Tensor(term("b")), h.Tensor(term("v"))
	link := func(from, to *py.Tensor, cond string, side bool) {
		h.Link(&Link{From: ViewOf(from).Storage, To: ViewOf(to).Storage, Cond: term(cond), Side: side, View: ViewOf(to)})
	}
	link(b, y, "c", true)
	link(b, x, "c", false)
	link(v, b, "d", true)
	link(v, x, "d", false)
	g.write(t, &h, v, "z")
	want(t, "x", g.read(x), "d?c?d?x:[x:=[v:=z]]:[d?x:[x:=[v:=z]]:=d?[b:=[v:=z]]:b]:d?x:[x:=[v:=z]]")
}

// Two storages that are one only if an axis has size 1 are taken to be two, which the caller is told.
func TestWriteTellsOfAssumptions(t *testing.T) {
	var h Heap
	var g terms
	x, y := h.Tensor(term("x")), h.Tensor(term("y"))
	h.Relate(ViewOf(x).Storage, ViewOf(y).Storage, layout.Assumed, []string{"N"})
	if a := g.write(t, &h, x, "v"); len(a) != 1 || a[0].From != ViewOf(y).Storage || a[0].Axes[0] != "N" {
		t.Error("the assumption was not told")
	}
	want(t, "y", g.read(y), "y")
	h.Relate(ViewOf(x).Storage, ViewOf(y).Storage, layout.Copies, nil)
	if n := len(ViewOf(y).Storage.Peers()); n != 0 {
		t.Errorf("copies have %d peers", n)
	}
}

// A run-time list has a copy of its elements: memory that may be theirs cannot be written.
func TestListedMemoryIsNotWritten(t *testing.T) {
	var h Heap
	x, y := h.Tensor(term("x")), h.Tensor(term("y"))
	h.Peer(ViewOf(x).Storage, ViewOf(y).Storage)
	h.Hold(py.Int(3), y)
	if _, err := h.Write(terms{}, ViewOf(x).Storage, term("v"), func() string { return "" }); !errors.Is(err, ErrListed) {
		t.Errorf("the error is %v", err)
	}
	h.Inherit(ViewOf(x).Storage, ViewOf(y).Storage)
	if !ViewOf(x).Storage.Listed() {
		t.Error("x may be y, which a list holds")
	}
}

// An attempt that is thrown away leaves no relation, and no mark on memory.
func TestRollback(t *testing.T) {
	var h Heap
	var g terms
	x, y, z := h.Tensor(term("x")), h.Tensor(term("y")), h.Tensor(term("z"))
	at := h.Mark()
	h.Peer(ViewOf(x).Storage, ViewOf(y).Storage)
	h.Relate(ViewOf(x).Storage, ViewOf(z).Storage, layout.Assumed, nil)
	h.Link(&Link{From: ViewOf(z).Storage, To: ViewOf(x).Storage, Cond: term("c"), Side: true, View: ViewOf(x)})
	h.Twin(x.Cell, y.Cell)
	h.Hold(z)
	h.Rollback(at)
	if g.write(t, &h, x, "v") != nil {
		t.Error("an assumption is left")
	}
	want(t, "y", g.read(y), "y")
	want(t, "z", g.read(z), "z")
	want(t, "why y cannot be read", ViewOf(y).Storage.State().Stale, "")
	g.write(t, &h, z, "w")
	h.Reshape(x.Cell, ViewOf(h.viewOf(x, "t")), "reshaped")
	want(t, "why y has no shape", ViewOf(y).Lost, "")
}

// v = x if c else y; x.t_(): x is another view of its memory, and the shape of v is not known.
func TestReshapeLosesTwins(t *testing.T) {
	var h Heap
	var g terms
	x, y, v := h.Tensor(term("x")), h.Tensor(term("y")), h.Tensor(term("v"))
	h.Twin(v.Cell, x.Cell)
	h.Twin(v.Cell, y.Cell)
	h.Twin(v.Cell, v.Cell)
	h.Reshape(x.Cell, ViewOf(h.viewOf(x, "t")), "x changed its shape")
	want(t, "x", g.read(x), "t(x)")
	want(t, "why v cannot be read", ViewOf(v).Lost, "x changed its shape")
	want(t, "why x can", ViewOf(x).Lost, "")
}

// A merged tensor of a branch may be memory outside of it, by peers and links of the branch.
func TestOutside(t *testing.T) {
	var h Heap
	x, y := h.Tensor(term("x")), h.Tensor(term("y"))
	start := h.Mark().Last
	a, b := h.Tensor(term("a")), h.Tensor(term("b"))
	h.Peer(ViewOf(a).Storage, ViewOf(x).Storage)
	h.Link(&Link{From: ViewOf(b).Storage, To: ViewOf(a).Storage, Cond: term("c"), Side: true, View: ViewOf(a)})
	h.Link(&Link{From: ViewOf(b).Storage, To: ViewOf(y).Storage, Cond: term("c"), Side: false, View: ViewOf(y)})
	got := Outside(ViewOf(b).Storage, start)
	if len(got) != 2 {
		t.Errorf("b may be %d storages outside, want x and y", len(got))
	}
}

// x[i] and x[j] take the same steps: one view whose place is carried stands for both.
func TestAlike(t *testing.T) {
	var h Heap
	sel := &ssa.Schema{Name: "aten::select", Args: []ssa.SchemaArg{{Name: "self"}, {Name: "dim"}, {Name: "index"}}}
	x := h.Tensor(&ssa.Value{Type: ssa.Tensor(tensor.Float32, ssa.Sizes([]int64{3})...)})
	at := func(kind ssa.Kind, dim, index int64) *View {
		return &View{Storage: ViewOf(x).Storage, Chain: []Step{{Kind: kind, Schema: sel, Args: []py.Value{nil, py.Int(dim), py.Int(index)}}}, Strides: ssa.Sizes([]int64{})}
	}
	places, ok := Alike(at("aten::select", 0, 1), at("aten::select", 0, 2))
	if !ok || len(places) != 1 || places[0] != (Place{Step: 0, Arg: 2}) {
		t.Errorf("select(0, 1) and select(0, 2): %v, %v; want the index", places, ok)
	}
	if _, ok := Alike(at("aten::select", 0, 1), at("aten::select", 1, 1)); ok {
		t.Error("views along two dims are alike")
	}
	if _, ok := Alike(at("aten::select", 0, 1), at("aten::narrow", 0, 1)); ok {
		t.Error("views by two operators are alike")
	}
	if got := at("aten::select", 0, 7).Chain[0].Arg("none"); !py.IsNone(got) {
		t.Errorf("an argument that is not there is %v", got)
	}
}

func TestListsHaveElements(t *testing.T) {
	var h Heap
	l := h.List(ssa.IntType, []py.Value{py.Int(1), py.Int(2)})
	if n := len(l.State().Elems); n != 2 {
		t.Errorf("%d elements", n)
	}
}
