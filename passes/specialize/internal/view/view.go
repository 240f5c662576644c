// Package view has the table of view operators: those whose result shares, or
// may share, memory with their first argument. Whoever asks whether an operator
// gives a view, what strides the view has, where in memory it begins, or how
// what is written to it goes back to its base, asks here.
package view

import (
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Row is what is known of a view operator. What it has no function for is not
// known, and Missing says why.
type Row struct {
	// Strides gives the strides of the view in elements, nil where they are not known.
	Strides func(c *Call) []sym.Expr
	// Place gives how many elements behind the first one of its base the view begins; ok is false where that is not known.
	Place func(c *Call) (at sym.Expr, ok bool)
	// Inverse gives the base after its view was replaced by v, nil where it has no such form.
	Inverse func(g Graph, st *heap.Step, base, v *ssa.Value) *ssa.Value
	// Spreads says that one element of the base can have several places in the view: a write goes by places.
	Spreads bool
	// To is the dtype that an operator converts to, if its name says so: a method that only old graphs call as an operator.
	To tensor.DType
	// Renames reports an operator on the names of dimensions, which gives its argument.
	Renames bool
	// Missing says why a view has no Strides, or no Inverse.
	Missing string
}

// Graph builds the values of the target program that an Inverse needs.
type Graph interface {
	// Emit appends an operator by the full name of its schema. Arguments are values or Go constants.
	Emit(name string, args ...any) *ssa.Value
	// EmitOp appends an operator.
	EmitOp(kind ssa.Kind, schema *ssa.Schema, operands ...*ssa.Value) []*ssa.Value
	// Operands gives arguments as values of the target program.
	Operands(args []py.Value) []*ssa.Value
	// IntOp computes with two ints that may be symbolic, by the name of the operator.
	IntOp(name string, a, b py.Value) py.Value
	// Tensors makes a list.
	Tensors(elems []*ssa.Value) py.Value
}

// Call is one use of a view operator.
type Call struct {
	*heap.Step
	Strides   []sym.Expr // of the base, as many as it has dims
	Self, Out *ssa.TensorType
	Axes      layout.Axes
}

// Of is the row of an operator; operators that give no views have an empty one.
func Of(kind ssa.Kind) *Row {
	if kind.Namespace() == "aten" {
		if r := table[kind.Name()]; r != nil {
			return r
		}
		if r := natureRows[aten.NatureOf(kind)]; r != nil {
			return r
		}
	}
	if kind.Namespace() == "prims" && slices.ContainsFunc(aten.Schemas(kind), aten.SharesMemory) {
		return &primitive
	}
	return &never
}

var (
	never     Row
	primitive = Row{Missing: "decompositions have primitives, and write to nothing"}
)

// Kinds lists the operators that have a row.
func Kinds() []ssa.Kind {
	var out []ssa.Kind
	for name := range table {
		out = append(out, ssa.Kind("aten::"+name))
	}
	for _, k := range aten.Kinds() {
		if (k.Namespace() != "aten" || table[k.Name()] == nil) && Of(k) != &never && ClassOf(k, nil) != aten.NoView {
			out = append(out, k)
		}
	}
	return out
}

// ClassOf is what the result of an operator shares with its first argument.
func ClassOf(kind ssa.Kind, schema *ssa.Schema) aten.View {
	if r := Of(kind); r.To != tensor.Undefined || r.Renames {
		return aten.ViewIfUnchanged
	}
	return aten.ViewOf(kind, schema)
}

// Strides gives the strides of a view, nil if they are not known.
func Strides(c *Call) []sym.Expr {
	f := Of(c.Kind).Strides
	if f == nil || c.Strides == nil || c.Self == nil || !c.Self.Ranked || len(c.Strides) != len(c.Self.Dims) {
		return nil
	}
	return f(c)
}

// Place gives how far behind the first element of its base the first element of a view is.
func Place(c *Call) (sym.Expr, bool) {
	if f := Of(c.Kind).Place; f != nil {
		return f(c)
	}
	return sym.Expr{}, false
}

// Spread is the first step of a chain that can give one element several places, -1 if there is none.
func Spread(chain []heap.Step) int {
	for i := range chain {
		if Of(chain[i].Kind).Spreads {
			return i
		}
	}
	return -1
}

// BeginsAtBase reports that the first element of a view is the first one of its storage, whatever the sizes are.
func BeginsAtBase(chain []heap.Step) bool {
	for i := range chain {
		at, ok := Place(&Call{Step: &chain[i]})
		if !ok || !at.Is(0) {
			return false
		}
	}
	return true
}

// int is an argument that is a known int.
func (c *Call) int(name string) (int64, bool) {
	l, ok := c.Arg(name).(py.Const)
	return l.Int(), ok && l.Kind == ssa.IntLit
}

// dim is an argument that names one of n dims.
func (c *Call) dim(name string, n int) (int, bool) {
	d, ok := c.int(name)
	if !ok {
		return 0, false
	}
	return wrapDim(d, n)
}

func wrapDim(d int64, n int) (int, bool) {
	if d < 0 {
		d += int64(n)
	}
	return int(d), d >= 0 && d < int64(n)
}

// dims are the two dims that an operator exchanges.
func (c *Call) exchanged(n int) (a, b int, ok bool) {
	for _, names := range [][2]string{{"dim0", "dim1"}, {"axis0", "axis1"}} {
		a, ok1 := c.dim(names[0], n)
		b, ok2 := c.dim(names[1], n)
		if ok1 && ok2 {
			return a, b, true
		}
	}
	return 0, 0, false
}
