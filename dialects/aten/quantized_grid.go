package aten

import (
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Grid says on which grid the results of an operator on quantized tensors are: which scale and zero point they have.
type Grid int

// The grids of results.
const (
	// NatureGrid is the grid that follows from the nature: that of self for operators that move elements, that of the first member, to which the
	// others are rounded, for [Joins], and none for others.
	NatureGrid Grid = iota
	// KeepsGrid operators give elements of self, on its grid.
	KeepsGrid
	// SnapsToGrid operators give results between the steps of the grid of self, which are rounded to it.
	SnapsToGrid
	// RoundsOnce operators compute on the integers of self: sums of them, with weights, are rounded once to an integer, and halves between two are
	// frequent (ATen/native/quantized/cpu/kernels/QuantizedOpKernels.cpp, qavg_pool, qupsample_bilinear2d).
	RoundsOnce
	// UnitGrid is the grid of results from 0 to 1: 256 steps of 1/256.
	UnitGrid
	// SignedUnitGrid is the grid of results from -1 to 1: 256 steps of 2/256.
	SignedUnitGrid
)

// gridOfResult is the grid of the results of an operator.
func gridOfResult(o *ssa.Op) Grid {
	d := row(o.Kind)
	switch {
	case d.Grid != NatureGrid:
		return d.Grid
	case d.Nature.MovesElements(), o.Kind == "prim::ListUnpack":
		return KeepsGrid
	case d.Nature == Joins && len(o.Results) == 1 && o.Results[0].Tensor() != nil:
		return SnapsToGrid
	}
	return NatureGrid
}

// ownGrid is the scale and the zero point of results of type uint8 that do not depend on self; the zero point of int8 is 128 less.
func (g Grid) ownGrid() (scale float64, zero int64, ok bool) {
	switch g {
	case UnitGrid:
		return 1.0 / 256, 0, true
	case SignedUnitGrid:
		return 2.0 / 256, 128, true
	}
	return 0, 0, false
}

// gridFrom is the operand on whose grid v is, if PyTorch takes v's operator of quantized tensors and gives it no grid itself; nil if there is none.
func gridFrom(v *ssa.Value) *ssa.Value {
	o := v.Def()
	if o == nil || o.NumOperands() == 0 {
		return nil
	}
	g := gridOfResult(o)
	if _, _, own := g.ownGrid(); own || g == NatureGrid {
		return nil
	}
	from := o.Operand(0)
	if _, list := from.Type.(*ssa.ListType); !list || o.Kind == "prim::ListUnpack" {
		return from
	}
	if es, ok := ListElems(from); ok && len(es) > 0 { // the grid of the first one
		return es[0]
	}
	return nil
}

// Quantized reports whether v, of a program as PyTorch has it, is a quantized tensor: what Tensor.is_quantized says.
// Where a branch or a loop gives v, it is taken for one that is not.
func Quantized(v *ssa.Value) bool {
	for {
		o := v.Def()
		if o == nil || o.Schema == nil || o.NumOperands() == 0 {
			return false
		}
		from := gridFrom(v)
		if _, _, own := gridOfResult(o).ownGrid(); own {
			from = o.Operand(0)
		}
		if from != nil {
			v = from
			continue
		}
		if o.Kind.Namespace() == "aten" && row(o.Kind).namedGrid != nil {
			return true
		}
		if o.Kind.Namespace() != "quantized" {
			return false
		}
		return !strings.Contains(string(o.Kind), "dynamic") && !strings.Contains(string(o.Kind), "embedding")
	}
}

// quantOf finds the grid of a quantized tensor in the program.
func (l *Lowering) quantOf(v *ssa.Value) grid {
	g, ok := l.findGrid(v)
	if !ok {
		l.Fail("the scale of the quantized tensor %s is not known", v.Type)
	}
	return g
}

// findGrid is quantOf; ok is false for a tensor that is not quantized.
func (l *Lowering) findGrid(v *ssa.Value) (g grid, ok bool) {
	var path []*ssa.Value
	defer func() {
		if !ok {
			for _, v := range path {
				if l.real == nil {
					l.real = map[*ssa.Value]bool{}
				}
				l.real[v] = true
			}
		}
	}()
	o := v.Def()
	for !l.real[v] {
		path = append(path, v)
		o = v.Def()
		from := gridFrom(v)
		if from == nil {
			break
		}
		v = from
	}
	if l.real[v] || o == nil || o.Schema == nil {
		return grid{}, false
	}
	if scale, zero, own := gridOfResult(o).ownGrid(); own {
		g, ok := l.findGrid(o.Operand(0))
		if !ok {
			return grid{}, false
		}
		if g.dtype == tensor.Int8 {
			zero -= 128
		}
		return grid{l.Scalar(tensor.Float32, scale), l.scalarInt(tensor.Int64, zero), g.dtype, -1}, true
	}
	saved := l.Node
	l.Node = o
	defer func() { l.Node = saved }()
	if named := row(o.Kind).namedGrid; named != nil {
		if g, ok := named(l); ok {
			return g, true
		}
	}
	if o.Kind.Namespace() != "quantized" {
		return grid{}, false
	}
	for _, n := range [][2]string{{"output_scale", "output_zero_point"}, {"Y_scale_i", "Y_zero_point_i"}, {"scale", "zero_point"}} {
		if l.HasArg(n[1]) {
			d := tensor.Uint8
			if in, ok := l.findGrid(o.Operand(0)); ok {
				d = in.dtype
			}
			return l.gridArgs(n[0], n[1], d), true
		}
	}
	return grid{}, false
}

// onItsGrid lowers o by d, and puts the result of an operator that PyTorch computes on quantized tensors on its grid.
func (l *Lowering) onItsGrid(d Def, o *ssa.Op) []*ssa.Value {
	rule := gridOfResult(o)
	if rule == RoundsOnce {
		if g, ok := l.findGrid(o.Operand(0)); ok && g.axis < 0 && g.dtype != tensor.Int32 {
			return l.inSteps(d, o, g)
		}
	}
	vs := d.results(l)
	if rule == NatureGrid || rule == KeepsGrid || len(vs) != 1 || !vs[0].DType().IsFloat() {
		return vs
	}
	g, ok := l.findGrid(o.Results[0])
	if !ok {
		return vs
	}
	return []*ssa.Value{l.snap(vs[0], g)}
}

// inSteps lowers o by d with its first operand as a number of steps of the grid g, and rounds the result to a whole number of them.
func (l *Lowering) inSteps(d Def, o *ssa.Op, g grid) []*ssa.Value {
	x, env := o.Operand(0), l.env
	defer func() { l.env = env }()
	steps := l.Sub(l.Cast(l.toGrid(l.Value(x), g), tensor.Float32), l.Cast(g.zero, tensor.Float32))
	l.env = func(v *ssa.Value) (*ssa.Value, *Failure) {
		if v == x {
			return steps, nil
		}
		return env(v)
	}
	q := l.toGrid(d.results(l)[0], grid{l.Scalar(tensor.Float32, 1), g.zero, g.dtype, -1})
	return []*ssa.Value{l.fromGrid(q, g)}
}
