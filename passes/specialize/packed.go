package specialize

import (
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Quantized layers hold their weights "packed" in objects of C++ classes, as
// operands of quantized::conv2d and the like. In the graph such an object is the
// tuple that aten's lowerings of these operators read (PackedWeight there):
// the elements of the weight, its scales, its zero points, the axis that these
// go along (-1: one for all), the bias or None, and for convolutions the ints
// (strides, paddings, dilations, output paddings, groups, whether transposed).
// The zero points of a table of embeddings are real numbers.
// Weights of 16 bits of a linear layer have no grid: their scales and zero points
// are None, and their elements float32, as the layer computes with them.

const packedClasses = ssa.CustomClasses + "quantized."

// cellParamsClass are the weights of one direction of a quantized recurrent layer, which its lowering reads as (the packed weights
// for the input, those for the state, whether the grid of what they meet is reduced).
const cellParamsClass = ssa.CustomClasses + "rnn.CellParamsBase"

// cellParams gives the tuple of an object of class CellParamsBase. Its state has five parts: the name of the kind, tensors,
// floats, ints, and the packed objects (CellParamsSerializationType in ATen/native/RNN.h).
func (s *module) cellParams(x *py.Object) *ssa.Value {
	if c := x.Attrs[""]; c != nil {
		return c.Content().(py.Dynamic).Value
	}
	var state ssa.Literal
	if x.Src != nil {
		state, _ = x.Src.Get("state")
	}
	if len(state.Elems) != 5 {
		s.fail("unsupported-value", "recurrent weights that are made at run time")
	}
	kind, ints, weights := state.Elems[0], state.Elems[3].Elems, state.Elems[4].Elems
	half := kind.Kind == ssa.StrLit && kind.Str() == "quantized_fp16"
	if !half && (kind.Kind != ssa.StrLit || kind.Str() != "quantized_dynamic" || len(ints) != 1) || len(weights) != 2 {
		s.fail("unsupported-value", "recurrent weights of the kind %s; those of quantize_dynamic can be converted", kind)
	}
	elems := make([]*ssa.Value, 0, 3)
	for _, w := range weights {
		if w.Kind != ssa.ObjectLit {
			s.fail("unsupported-value", "recurrent weights that are not packed")
		}
		elems = append(elems, s.packed(s.object(w.Object)))
	}
	elems = append(elems, s.build.constant(ssa.Bool(!half && ints[0].Int() != 0)))
	v := s.build.tupleAtTop(elems)
	x.Attrs[""] = s.heap.New(py.Dyn(v))
	return v
}

// prepackedClasses hold the weights of layers that torch.utils.mobile_optimizer has packed for XNNPACK. In the graph such an
// object is the tuple of its state, which the lowerings of prepacked::conv2d_clamp_run and the like read.
const prepackedClasses = ssa.CustomClasses + "xnnpack."

// prepacked gives the tuple of an object of the classes of XNNPACK.
func (s *module) prepacked(x *py.Object) *ssa.Value {
	if c := x.Attrs[""]; c != nil {
		return c.Content().(py.Dynamic).Value
	}
	var state ssa.Literal
	if x.Src != nil {
		state, _ = x.Src.Get("state")
	}
	if state.Kind != ssa.TupleLit {
		s.fail("unsupported-value", "weights of class %s that are packed at run time", strings.TrimPrefix(x.Class, prepackedClasses))
	}
	names := []string{"weight", "bias"}
	elems := make([]*ssa.Value, len(state.Elems))
	for i, e := range state.Elems {
		elems[i] = s.build.constant(e)
		if i < len(names) && e.Kind == ssa.TensorLit {
			elems[i].Name = partName(x, names[i])
		}
	}
	v := s.build.tupleAtTop(elems)
	x.Attrs[""] = s.heap.New(py.Dyn(v))
	return v
}

// partName is the name of a part of a packed object, which may be a constant of the program without a path.
func partName(x *py.Object, part string) string {
	if x.Path == "" {
		return part
	}
	return x.Path + "." + part
}

// packed gives the tuple of a packed object.
func (s *module) packed(x *py.Object) *ssa.Value {
	if c := x.Attrs[""]; c != nil {
		return c.Content().(py.Dynamic).Value
	}
	class := strings.TrimPrefix(x.Class, packedClasses)
	if x.Src == nil {
		s.fail("unsupported-value", "packed weights of class %s that are made at run time", class)
	}
	weight, bias, ints, ok := unpack(x.Src)
	half := ok && weight.Quant == nil && isHalf(weight)
	if !ok || weight.Quant == nil && !half {
		s.fail("unsupported-value", "packed weights of class %s that are neither quantized to integers of 8 bits nor of 16 bits", class)
	}
	none := s.build.constant(ssa.None)
	axis, elems := int64(-1), make([]*ssa.Value, 0, 6)
	named := func(v *ssa.Value, name string) *ssa.Value {
		v.Name = partName(x, name)
		return v
	}
	if half {
		elems = append(elems, named(s.build.constant(ssa.TensorValue(weight)), "weight"), none, none)
	} else {
		q, scale, zero := s.gridOf(weight)
		axis = int64(weight.Quant.Axis)
		elems = append(elems, named(q, "weight"), named(scale, "scale"), named(zero, "zero_point"))
	}
	elems = append(elems, s.build.constant(ssa.Int(axis)), none, s.build.constant(ssa.Ints(ints...)))
	if bias != nil {
		elems[4] = named(s.build.constant(ssa.TensorValue(bias)), "bias")
	}
	v := s.build.tupleAtTop(elems)
	x.Attrs[""] = s.heap.New(py.Dyn(v))
	return v
}

// gridOf gives the integers of a quantized tensor, their scales and their zero points as constants.
func (s *module) gridOf(t *tensor.Tensor) (ints, scale, zero *ssa.Value) {
	q := *t
	q.Quant = nil
	switch t.DType {
	case tensor.QInt8:
		q.DType = tensor.Int8
	case tensor.QUint8:
		q.DType = tensor.Uint8
	case tensor.QInt32:
		q.DType = tensor.Int32
	default:
		s.fail("unsupported-value", "a quantized tensor of %v", t.DType)
	}
	shape := []int64{}
	if t.Quant.Axis >= 0 {
		shape = []int64{int64(len(t.Quant.Scales))}
	}
	constant := func(t *tensor.Tensor) *ssa.Value { return s.build.constant(ssa.TensorValue(t)) }
	zeros := tensor.FromInts(q.DType, shape, t.Quant.ZeroPoints)
	if t.Quant.RealZeroPoints != nil {
		zeros = tensor.FromFloats(tensor.Float32, shape, t.Quant.RealZeroPoints)
	}
	return constant(&q), constant(tensor.FromFloats(tensor.Float32, shape, t.Quant.Scales)), constant(zeros)
}

// quantized makes a quantized tensor of the model: its integers stay a constant, and an operator puts them on their grid.
func (s *module) quantized(t *tensor.Tensor) *ssa.Value {
	if t.Quant.RealZeroPoints != nil {
		s.fail("unsupported-value", "a quantized tensor whose zero points are no integers, outside of an embedding")
	}
	ints, scale, zero := s.gridOf(t)
	kind, operands := "aten::_make_per_tensor_quantized_tensor", []*ssa.Value{ints, scale, zero}
	if t.Quant.Axis >= 0 {
		kind, operands = "aten::_make_per_channel_quantized_tensor", append(operands, s.build.constant(ssa.Int(int64(t.Quant.Axis))))
	}
	v := s.build.atTop(ssa.Kind(kind), operands, ssa.Tensor(tensor.Float32, ssa.Sizes(t.Shape)...))
	v.Def().Schema = aten.SchemaByName(kind)
	return v
}

// atTop makes an op among the constants, so that all users see it.
func (s *builder) atTop(kind ssa.Kind, operands []*ssa.Value, t ssa.Type) *ssa.Value {
	v := s.out.Body.InsertBefore(s.lastCon.Next(), kind, 0, operands, t).Results[0]
	s.lastCon = v.Def()
	return v
}

func (s *builder) tupleAtTop(elems []*ssa.Value) *ssa.Value {
	types := make([]ssa.Type, len(elems))
	for i, e := range elems {
		types[i] = e.Type
	}
	return s.atTop("prim::TupleConstruct", elems, &ssa.TupleType{Elems: types})
}

// unpack reads what a packed object holds: fields, if the program packed it, or
// the state that its class stores (ATen/native/quantized/cpu/conv_serialization.h,
// LinearPackedParamsBase).
func unpack(o *ssa.Object) (weight, bias *tensor.Tensor, ints []int64, ok bool) {
	state, stored := o.Get("state")
	if !stored {
		return unpackFields(o)
	}
	var tensors []*tensor.Tensor
	flatten(state, &tensors, &ints)
	if len(ints) > 0 && len(tensors) > 0 { // version 3: the version comes before the config
		ints = ints[1:]
	}
	for _, t := range tensors {
		switch {
		case t.Quant != nil || t.DType.IsQuantized():
			weight = t
		case t.DType == tensor.Int16 && t.HasData():
			ints = t.Int64s()
		case t.DType.IsInt() && t.HasData(): // version 1: a tensor for each number
			ints = append(ints, t.Int64s()...)
		case t.DType.IsFloat():
			bias = t
		}
	}
	if weight == nil && len(tensors) > 0 && len(tensors) <= 2 && len(ints) == 0 && len(tensors[0].Shape) == 2 { // a linear layer of 16 bits: the weight comes first
		if weight, bias = tensors[0], nil; len(tensors) == 2 {
			bias = tensors[1]
		}
		return weight, bias, nil, true
	}
	if weight == nil {
		return nil, nil, nil, false
	}
	n := len(weight.Shape) - 2
	switch {
	case len(ints) == 0:
	case len(ints) == 4*n+3: // the rank comes first
		ints = ints[1:]
	case len(ints) == 3*n+1:
		ints = convInts(n, ints[:n], ints[n:2*n], ints[2*n:3*n], nil, ints[3*n], 0)
	default:
		return nil, nil, nil, false
	}
	return weight, bias, ints, true
}

// isHalf reports float32 elements that float16 has all of: PyTorch packs others anew as it loads them.
func isHalf(t *tensor.Tensor) bool {
	if t.DType != tensor.Float32 || !t.HasData() {
		return false
	}
	v := t.Float64s()
	return slices.Equal(v, tensor.FromFloats(tensor.Float16, t.Shape, v).Float64s())
}

// flatten lists tensors and ints of nested containers in order.
func flatten(l ssa.Literal, tensors *[]*tensor.Tensor, ints *[]int64) {
	switch l.Kind {
	case ssa.TensorLit:
		*tensors = append(*tensors, l.Tensor)
	case ssa.IntLit:
		*ints = append(*ints, l.Int())
	}
	for _, e := range l.Elems {
		flatten(e, tensors, ints)
	}
}

func convInts(n int, stride, padding, dilation, output []int64, groups, transposed int64) []int64 {
	if output == nil {
		output = make([]int64, n)
	}
	return slices.Concat(stride, padding, dilation, output, []int64{groups, transposed})
}

// unpackFields reads the arguments of the operator that packed an object.
func unpackFields(o *ssa.Object) (weight, bias *tensor.Tensor, ints []int64, ok bool) {
	by, _ := o.Get("packed_by")
	for _, f := range o.Fields {
		if f.Value.Kind == ssa.TensorLit {
			switch f.Name {
			case "W", "weight":
				weight = f.Value.Tensor
			case "B", "bias":
				bias = f.Value.Tensor
			}
		}
	}
	if weight == nil || !strings.Contains(by.Str(), "conv") {
		return weight, bias, nil, weight != nil && strings.Contains(by.Str(), "linear")
	}
	list := func(name string) []int64 {
		v, _ := o.Get(name)
		ints, _ := v.IntList()
		return ints
	}
	groups, transposed := int64(1), int64(0)
	if v, has := o.Get("groups"); has {
		groups = v.Int()
	}
	if strings.Contains(by.Str(), "transpose") {
		transposed = 1
	}
	return weight, bias, convInts(len(weight.Shape)-2, list("stride"), list("padding"), list("dilation"), list("output_padding"), groups, transposed), true
}
