package aten

import (
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// sameGrid are operators of quantized tensors whose results keep the grid of
// their operand; true where they are put on it, as results may lie between.
var sameGrid = map[ssa.Kind]bool{
	"aten::adaptive_avg_pool2d": true, "aten::adaptive_avg_pool3d": true, "aten::adaptive_avg_pool1d": true, "aten::avg_pool1d": true, "aten::avg_pool2d": true, "aten::avg_pool3d": true,
	"aten::mean": true, "aten::upsample_bilinear2d": true, "aten::leaky_relu": true, "aten::clamp": true, "aten::clip": true,
	"aten::hardtanh": true, "aten::relu6": true, "quantized::relu6": true, "quantized::clamp": true, "quantized::threshold": true, "quantized::max_pool1d": false, "quantized::max_pool2d": false, "aten::threshold": true, "aten::elu": true, "aten::celu": true,
	"aten::relu": false, "aten::max_pool1d": false, "aten::max_pool2d": false, "aten::max_pool3d": false, "aten::upsample_nearest1d": false,
	"aten::upsample_nearest2d": false, "aten::upsample_nearest3d": false, "aten::flatten": false, "aten::view": false, "aten::reshape": false, "aten::permute": false,
	"aten::transpose": false, "aten::t": false, "aten::contiguous": false, "aten::clone": false, "aten::select": false, "aten::slice": false,
	"aten::unsqueeze": false, "aten::squeeze": false, "aten::expand": false, "aten::channel_shuffle": false, "aten::dropout": false,
	"quantized::dropout": false, "aten::index_select": false, "aten::unflatten": false, "aten::detach": false, "aten::alias": false, "aten::max": false, "aten::min": false,
	"aten::chunk": false, "aten::split": false, "aten::split_with_sizes": false, "aten::tensor_split": false, "aten::unbind": false, "prim::ListUnpack": false, "aten::pad": false, "aten::constant_pad_nd": false, "aten::reflection_pad1d": false, "aten::_unsafe_view": false,
	"aten::reflection_pad2d": false, "aten::to": false, "aten::cat": true, "aten::concat": true, "aten::stack": true,
}

// ownGrid are operators whose results are on a grid of their own: 256 steps from zero.
var ownGrid = map[ssa.Kind]struct {
	scale    float64
	unsigned int64 // zero point of uint8; that of int8 is 128 less
}{
	"aten::sigmoid":     {1.0 / 256, 0},
	"aten::tanh":        {2.0 / 256, 128},
	"aten::hardsigmoid": {1.0 / 256, 0},
}

// gridFrom is the operand on whose grid v is, if PyTorch takes v's operator of quantized tensors and gives it no grid itself; nil if there is none.
func gridFrom(v *ssa.Value) *ssa.Value {
	o := v.Def()
	if o == nil || o.NumOperands() == 0 {
		return nil
	}
	if o.Kind == "aten::cat" || o.Kind == "aten::concat" || o.Kind == "aten::stack" { // the grid of the first one
		es, ok := ListElems(o.Operand(0))
		if !ok || len(es) == 0 {
			return nil
		}
		return es[0]
	}
	if _, same := sameGrid[o.Kind]; !same {
		return nil
	}
	return o.Operand(0)
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
		if _, own := ownGrid[o.Kind]; own {
			from = o.Operand(0)
		}
		if from != nil {
			v = from
			continue
		}
		switch o.Kind {
		case "aten::quantize_per_tensor", "aten::quantize_per_channel", "aten::quantize_per_tensor_dynamic",
			"aten::_make_per_tensor_quantized_tensor", "aten::_make_per_channel_quantized_tensor":
			return true
		}
		if o.Kind.Namespace() != "quantized" {
			return false
		}
		return !strings.Contains(string(o.Kind), "dynamic") && !strings.Contains(string(o.Kind), "embedding")
	}
}

// stepwise are operators that PyTorch computes on the integers of quantized tensors: sums of them, with weights, are rounded once to an integer, and halves
// between two are frequent (ATen/native/quantized/cpu/kernels/QuantizedOpKernels.cpp, qavg_pool, qupsample_bilinear2d).
var stepwise = map[ssa.Kind]bool{
	"aten::adaptive_avg_pool1d": true, "aten::adaptive_avg_pool2d": true, "aten::adaptive_avg_pool3d": true,
	"aten::avg_pool1d": true, "aten::avg_pool2d": true, "aten::avg_pool3d": true, "aten::upsample_bilinear2d": true,
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
	if own, is := ownGrid[o.Kind]; is {
		g, ok := l.findGrid(o.Operand(0))
		if !ok {
			return grid{}, false
		}
		zero := own.unsigned
		if g.dtype == tensor.Int8 {
			zero -= 128
		}
		return grid{l.Scalar(tensor.Float32, own.scale), l.scalarInt(tensor.Int64, zero), g.dtype, -1}, true
	}
	saved := l.Node
	l.Node = o
	defer func() { l.Node = saved }()
	switch o.Kind {
	case "aten::quantize_per_tensor":
		return l.gridArgs("scale", "zero_point", l.intType(l.DTypeArg("dtype"))), true
	case "aten::quantize_per_channel":
		axis := l.Dim("axis", l.Rank(l.Tensor("self")))
		return grid{l.as("scales", tensor.Float32), l.as("zero_points", tensor.Int64), l.intType(l.DTypeArg("dtype")), axis}, true
	case "aten::quantize_per_tensor_dynamic":
		return l.rangeGrid(l.Tensor("self"), l.intType(l.DTypeArg("dtype")), l.Bool("reduce_range")), true
	case "aten::_make_per_tensor_quantized_tensor", "aten::_make_per_channel_quantized_tensor":
		return l.madeGrid(), true
	case "quantized::cat", "quantized::cat_relu":
		return l.catGrid(), true
	case "quantized::add", "quantized::add_relu", "quantized::add_scalar", "quantized::add_scalar_relu":
		if l.Arg("qb") == nil {
			return l.shiftedGrid(l.quantOf(l.must("qa"))), true
		}
	case "quantized::mul", "quantized::mul_relu", "quantized::mul_scalar", "quantized::mul_scalar_relu":
		if l.Arg("qb") == nil {
			g := l.quantOf(l.must("qa"))
			switch b := l.Float("b"); {
			case b == 0:
				g.scale, g.zero = l.Scalar(tensor.Float32, 0.1), l.scalarInt(tensor.Int64, 0)
			case b < 0:
				lo, hi := limits(g.dtype)
				g.scale, g.zero = l.scale(g.scale, -b), l.sub(l.scalarInt(tensor.Int64, lo+hi), g.zero)
			default:
				g.scale = l.scale(g.scale, b)
			}
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
	if stepwise[o.Kind] {
		if g, ok := l.findGrid(o.Operand(0)); ok && g.axis < 0 && g.dtype != tensor.Int32 {
			return l.inSteps(d, o, g)
		}
	}
	vs := d.results(l)
	_, own := ownGrid[o.Kind]
	if !own && !sameGrid[o.Kind] || len(vs) != 1 || !vs[0].DType().IsFloat() {
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
	steps := l.sub(l.Cast(l.toGrid(l.Value(x), g), tensor.Float32), l.Cast(g.zero, tensor.Float32))
	l.env = func(v *ssa.Value) *ssa.Value {
		if v == x {
			return steps
		}
		return env(v)
	}
	q := l.toGrid(d.results(l)[0], grid{l.Scalar(tensor.Float32, 1), g.zero, g.dtype, -1})
	return []*ssa.Value{l.fromGrid(q, g)}
}
