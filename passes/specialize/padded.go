package specialize

import (
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// A nested tensor is a batch of sequences of unlike lengths. ONNX has none. The
// program's is an object of two tensors: the sequences padded to one length
// (batch, length, width), and which places are not padding (batch, length),
// which are the first ones of each sequence. What stands in the padding is never
// seen. nn.TransformerEncoder makes them of a padding mask and undoes them
// behind its layers, which is all that the program can do with them.

const nestedClass = "nested tensor"

// nestedOps are the operators on nested tensors.
var nestedOps map[ssa.Kind]handler

func init() {
	yes := constantly(py.Bool(true))
	nestedOps = map[ssa.Kind]handler{
		"prim::is_nested":                      yes,
		"aten::is_nested":                      yes,
		"aten::dim":                            constantly(py.Int(3)),
		"prim::dtype":                          func(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) { return s.ofPadded(o, args) },
		"aten::_transformer_encoder_layer_fwd": nestedLayer,
		"aten::to_padded_tensor":               toPadded,
		"aten::nested_to_padded_tensor":        toPadded,
	}
}

// nestedOp evaluates an operator on a nested tensor.
func (s *walk) nestedOp(o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	if len(args) == 0 || !isNested(args[0]) {
		return nil, false
	}
	if h := nestedOps[o.Kind]; h != nil {
		return h(s, o, args)
	}
	return nil, false
}

func isNested(x py.Value) bool {
	o, ok := x.(*py.Object)
	return ok && o.Class == nestedClass
}

func (s *walk) nested(values, present *ssa.Value) *py.Object {
	return &py.Object{Class: nestedClass, Attrs: map[string]*journal.Cell{
		"values": s.heap.New(s.heap.Tensor(values)), "present": s.heap.New(s.heap.Tensor(present))}}
}

// padded gives the two tensors of a nested one.
func padded(x py.Value) (values, present *py.Tensor) {
	o := x.(*py.Object)
	return o.Attrs["values"].Content().(*py.Tensor), o.Attrs["present"].Content().(*py.Tensor)
}

// ofPadded asks the padded sequences.
func (s *walk) ofPadded(o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	values, _ := padded(args[0])
	return s.apply(o, append([]py.Value{values}, args[1:]...)), true
}

// nestedFromMask makes a nested tensor: as many of the first elements of a sequence as its mask has places that are true,
// wherever these are (NestedTensor_nested_tensor_from_mask in ATen/native/nested).
func nestedFromMask(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	t, ok := args[0].(*py.Tensor)
	m, ok2 := args[1].(*py.Tensor)
	if !ok || !ok2 || o.Schema == nil || len(args) != 3 {
		return nil, false
	}
	if tt, mt := typeOf(s, t), typeOf(s, m); tt == nil || len(tt.Dims) != 3 || mt == nil || len(mt.Dims) != 2 {
		s.fail("unsupported-op", "a nested tensor is made of a tensor of rank 3 and a mask of rank 2")
	}
	if l, ok := args[2].(py.Const); !ok || l.Bool() {
		s.warnf("dropped-assert", "that the mask hides nothing but the ends of sequences is not checked")
	}
	counts := s.vals.emitName("aten::sum.dim_IntList", s.vals.read(m), []int64{1}, true)
	batch, length := s.vals.size(t, 0), s.vals.size(t, 1)
	present := s.vals.emitName("aten::lt.Tensor", s.vals.emitName("aten::arange", length), counts)
	if sizes := present.Tensor(); !sizes.Ranked || len(sizes.Dims) != 2 || !sizes.Dims[0].Equal(typeOf(s, t).Dims[0]) {
		// the mask has the sizes of the tensor, by other names
		present = s.vals.emitName("aten::expand", present, s.heap.List(ssa.IntType, []py.Value{batch, length}))
	}
	// NaN in the padding would come through an attention of 0
	clean := s.vals.emitName("aten::where.ScalarOther", s.vals.emitName("aten::unsqueeze", present, 2), s.vals.read(t), py.Float(0))
	return one(s.nested(clean, present))
}

// nestedLayer is a layer that lets each sequence attend to itself: to what is not padding.
func nestedLayer(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	mask, kind := o.Schema.Arg("mask"), o.Schema.Arg("mask_type")
	if mask < 0 || kind < 0 || !py.IsNone(args[mask]) {
		s.fail("unsupported-op", "a nested tensor and a mask")
	}
	values, present := padded(args[0])
	operands := s.vals.operands(append([]py.Value{values}, args[1:]...))
	operands[mask] = s.vals.emitName("aten::logical_not", s.vals.read(present))
	operands[kind] = s.build.constant(ssa.Int(1)) // a mask of (batch, length)
	return one(s.nested(s.build.emit(o.Kind, o.Schema, operands...)[0], s.vals.read(present)))
}

// toPadded gives the sequences padded with a number, to the length that the program states or that of the longest.
func toPadded(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	if o.Schema == nil || len(args) != 3 {
		return nil, false
	}
	values, present := padded(args[0])
	keep := s.vals.emitName("aten::unsqueeze", s.vals.read(present), 2)
	out := s.vals.emitName("aten::where.ScalarOther", keep, s.vals.read(values), args[1])
	if py.IsNone(args[2]) {
		counts := s.vals.emitName("aten::sum.dim_IntList", s.vals.read(present), []int64{1})
		longest := s.vals.emitName("aten::max", counts)
		end := s.vals.number(s.build.emit("aten::Int", aten.SchemaByName("aten::Int.Tensor"), longest)[0])
		return one(s.heap.Tensor(s.vals.emitName("aten::slice.Tensor", out, 1, 0, end, 1)))
	}
	for i, n := range py.ElemsOf(args[2]) {
		want, known := py.ExprOf(n)
		if have, _ := py.ExprOf(s.vals.size(values, i)); !known || !have.Equal(want) {
			s.fail("unsupported-op", "padding to other sizes than those of the tensor that the nested one was made of")
		}
	}
	return one(s.heap.Tensor(out))
}
