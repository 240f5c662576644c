package layout

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

var n = sym.Symbol("N", 1) // a declared dynamic axis

var axes = Axes{"N": true}

// exprs makes expressions of ints and expressions.
func exprs(xs ...any) []sym.Expr {
	out := make([]sym.Expr, len(xs))
	for i, x := range xs {
		switch x := x.(type) {
		case int:
			out[i] = sym.Const(int64(x))
		case sym.Expr:
			out[i] = x
		}
	}
	return out
}

func shape(xs ...any) *ssa.TensorType { return ssa.Tensor(tensor.Float32, exprs(xs...)...) }

func TestRowMajor(t *testing.T) {
	if got, want := fmt.Sprint(RowMajor(shape(2, n, 4))), fmt.Sprint([]sym.Expr{n.Mul(sym.Const(4)), sym.Const(4), sym.Const(1)}); got != want {
		t.Errorf("strides %s, want %s", got, want)
	}
	if got := RowMajor(ssa.Unranked(tensor.Float32)); got != nil {
		t.Errorf("strides %v of a tensor of unknown rank", got)
	}
	if got := RowMajor(nil); got != nil {
		t.Errorf("strides %v of no tensor", got)
	}
}

func TestIsRowMajor(t *testing.T) {
	u := sym.Symbol("u0", 0) // a size that is known at run time only
	for _, c := range []struct {
		what    string
		strides []sym.Expr
		t       *ssa.TensorType
		want    Sharing
	}{
		{"row-major", exprs(12, 4, 1), shape(2, 3, 4), Shares},
		{"transposed", exprs(1, 3), shape(3, 2), Copies},
		{"the stride of an axis of size 1 does not matter", exprs(7, 1), shape(1, 4), Shares},
		{"broadcast", exprs(0, 1), shape(3, 4), Copies},
		{"dynamic", exprs(4, 1), shape(n, 4), Shares},
		{"transposed, and dynamic: row-major only where N is 1", exprs(1, n), shape(n, 4), Assumed},
		{"a size of the run", exprs(1, u), shape(u, 4), Unknown},
		{"strides that are not known", nil, shape(2, 3), Unknown},
		{"strides of another rank", exprs(1), shape(2, 3), Unknown},
		{"no rank", exprs(1), ssa.Unranked(tensor.Float32), Unknown},
	} {
		if got := axes.IsRowMajor(c.strides, c.t); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// What PyTorch's view() takes shares memory; for the rest, reshape() copies.
func TestReshape(t *testing.T) {
	for _, c := range []struct {
		what     string
		strides  []sym.Expr
		from, to *ssa.TensorType
		want     []sym.Expr
		sharing  Sharing
	}{
		{"row-major", exprs(12, 4, 1), shape(2, 3, 4), shape(6, 4), exprs(4, 1), Shares},
		{"the same shape", exprs(1, 3), shape(3, 2), shape(3, 2), exprs(1, 3), Shares},
		{"a transposed matrix has no flat view", exprs(1, 3), shape(3, 2), shape(6), nil, Copies},
		{"an axis splits, whatever its stride", exprs(1, 6), shape(6, 2), shape(3, 2, 2), exprs(2, 1, 6), Shares},
		{"axes join that are row-major among themselves", exprs(1, 20, 4), shape(4, 3, 5), shape(4, 15), exprs(1, 4), Shares},
		{"no elements", exprs(1, 3), shape(0, 3), shape(3, 0), exprs(0, 1), Shares},
		{"a scalar", exprs(), shape(), shape(1, 1), exprs(1, 1), Shares},
		{"one axis", exprs(5), shape(3), shape(3), exprs(5), Shares},
		{"dynamic and row-major", exprs(4, 1), shape(n, 4), shape(n, 2, 2), exprs(4, 2, 1), Shares},
		{"dynamic and transposed: a view only where N is 1", exprs(1, n), shape(n, 4), shape(n.Mul(sym.Const(4))), nil, Assumed},
		{"unknown strides", nil, shape(2, 3), shape(6), nil, Unknown},
	} {
		got, how := axes.Reshape(c.strides, c.from, c.to)
		if fmt.Sprint(got) != fmt.Sprint(c.want) || how != c.sharing {
			t.Errorf("%s: %v %v, want %v %v", c.what, got, how, c.want, c.sharing)
		}
	}
}

func TestPlural(t *testing.T) {
	u := sym.Symbol("u0", 0)
	for _, c := range []struct {
		e              sym.Expr
		plural, itself bool
	}{{n, true, true}, {n.Add(sym.Const(-1)), false, true}, {sym.Const(1), false, true}, {sym.Const(2), true, true}, {u, false, false}, {n.Add(u), false, false}} {
		if axes.Plural(c.e) != c.plural || axes.Declared(c.e) != c.itself {
			t.Errorf("%v: plural %v, declared %v", c.e, axes.Plural(c.e), axes.Declared(c.e))
		}
	}
}

func TestMoved(t *testing.T) {
	for _, c := range []struct {
		from, to []int64
		want     []sym.Expr
	}{
		{[]int64{0}, []int64{2}, exprs(2, 3, 1)},
		{[]int64{-1}, []int64{0}, exprs(3, 1, 2)},
		{[]int64{0, 1}, []int64{1, 0}, exprs(2, 1, 3)},
		{[]int64{3}, []int64{0}, nil},
	} {
		if got := Moved(exprs(1, 2, 3), c.from, c.to); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("movedim(%v, %v): %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

// Results of elementwise operators are dense and laid out as their operands are.
func TestLikeOperands(t *testing.T) {
	transposed := Operand{Dims: exprs(3, 2), Strides: exprs(1, 3)}
	for _, c := range []struct {
		what string
		dims []sym.Expr
		ops  []Operand
		want []sym.Expr
	}{
		{"x.t() + 1", exprs(3, 2), []Operand{transposed}, exprs(1, 3)},
		{"every second row of x.t()", exprs(3, 2), []Operand{{Dims: exprs(3, 2), Strides: exprs(2, 6)}}, exprs(1, 3)},
		{"a row-major operand is first", exprs(3, 2), []Operand{{Dims: exprs(3, 2), Strides: exprs(2, 1)}, transposed}, exprs(2, 1)},
		{"a broadcast operand says nothing of its axis", exprs(3, 2), []Operand{{Dims: exprs(1, 2), Strides: exprs(2, 1)}, transposed}, exprs(1, 3)},
		{"an operand of lower rank", exprs(4, 3, 2), []Operand{transposed}, exprs(6, 1, 3)},
		{"a dynamic axis", exprs(n, 2), []Operand{{Dims: exprs(n, 2), Strides: exprs(1, n)}}, exprs(1, n)},
		{"more dims than the result", exprs(3), []Operand{transposed}, nil},
	} {
		if got := LikeOperands(c.dims, c.ops); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// Which axes have to be 2 or more for a transposed copy not to be a view: with one row or one column it is one.
func TestPlurals(t *testing.T) {
	n, m := sym.Symbol("N", 1), sym.Symbol("M", 1)
	axes := Axes{"N": true, "M": true}
	contiguous := func(in []sym.Expr, t, _ *ssa.TensorType) Sharing { return axes.IsRowMajor(in, t) }
	for _, c := range []struct {
		name          string
		dims, strides []sym.Expr
		want          []string
	}{
		{"one dynamic axis", []sym.Expr{sym.Const(4), n}, []sym.Expr{sym.Const(1), sym.Const(4)}, []string{"N"}},
		{"two of them", []sym.Expr{m, n}, []sym.Expr{sym.Const(1), m}, []string{"N", "M"}},
		{"a batch beside them", []sym.Expr{n, sym.Const(4), sym.Const(3)}, []sym.Expr{sym.Const(12), sym.Const(1), sym.Const(4)}, nil},
	} {
		typ := ssa.Tensor(tensor.Float32, c.dims...)
		if got := axes.Plurals(c.strides, typ, typ, contiguous); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(c.want))) {
			t.Errorf("%s: %v, not %v", c.name, got, c.want)
		}
	}
}
