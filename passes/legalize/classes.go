package legalize

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// exactBack reports whether every element of the op's results is an element of its operands,
// so that the cast back from a wider type loses nothing.
func exactBack(o *ssa.Op) bool {
	switch onnx.ClassOf(o) {
	case onnx.Copies:
		return true
	case onnx.Orders:
		return o.Kind != "onnx::Range"
	}
	return false
}

// embeds reports whether type b has all values of type a, in the same order.
func embeds(a, b tensor.DType) bool {
	for _, d := range wider(a) {
		if d == b {
			return true
		}
	}
	return false
}

// wider lists the types that have all values of a type, the cheapest first.
func wider(d tensor.DType) []tensor.DType {
	switch d {
	case tensor.Bool:
		return []tensor.DType{tensor.Uint8, tensor.Int32, tensor.Int64, tensor.Float32, tensor.Float64}
	case tensor.Uint8:
		return []tensor.DType{tensor.Int32, tensor.Int64, tensor.Int16, tensor.Uint32, tensor.Float32, tensor.Float64}
	case tensor.Int8:
		return []tensor.DType{tensor.Int32, tensor.Int64, tensor.Int16, tensor.Float32, tensor.Float64}
	case tensor.Int16, tensor.Uint16:
		return []tensor.DType{tensor.Int32, tensor.Int64, tensor.Float32, tensor.Float64}
	case tensor.Int32, tensor.Uint32:
		return []tensor.DType{tensor.Int64, tensor.Float64}
	case tensor.Float16, tensor.BFloat16:
		return []tensor.DType{tensor.Float32, tensor.Float64}
	case tensor.Float32:
		return []tensor.DType{tensor.Float64}
	}
	return nil
}

// computing returns a type for the type variable in which the op computes the same
// result, or Undefined.
func (l *legalizer) computing(o *ssa.Op, g *group) tensor.DType {
	for _, d := range candidates(onnx.ClassOf(o), g.dtype) {
		if holds(g.allowed, d) && (d != tensor.BFloat16 || l.opset >= 13) {
			return d
		}
	}
	return tensor.Undefined
}

func candidates(c onnx.Class, d tensor.DType) []tensor.DType {
	switch c {
	case onnx.Copies:
		switch d {
		case tensor.Uint32: // as good as a renaming
			return append([]tensor.DType{tensor.Int32}, wider(d)...)
		case tensor.Uint64:
			return []tensor.DType{tensor.Int64}
		}
		return wider(d)
	case onnx.Orders:
		return wider(d)
	case onnx.Ring:
		switch d {
		case tensor.Uint64:
			return []tensor.DType{tensor.Int64}
		case tensor.Bool:
			return nil
		}
		return onlyLike(d, wider(d))
	case onnx.Quotients:
		if d == tensor.Bool {
			return nil
		}
		return onlyLike(d, wider(d))
	}
	if d.IsFloat() {
		return wider(d)
	}
	return nil
}

// onlyLike keeps integers for integers.
func onlyLike(d tensor.DType, ts []tensor.DType) []tensor.DType {
	if !d.IsInt() {
		return ts
	}
	var out []tensor.DType
	for _, t := range ts {
		if t.IsInt() {
			out = append(out, t)
		}
	}
	return out
}

// specials handles operators whose element types are not those of their operands.
// Each function reports whether it has legalized the op.
var specials = map[string]func(l *legalizer, d *onnx.Downgrade, s *onnx.OpSchema) bool{
	"NonZero":         nonZero,
	"ConstantOfShape": constantOfShape,
	"OneHot":          oneHot,
	"Dropout":         dropout,
	"GridSample":      cubicVolumes,
	"QuantizeLinear":  unsignedSteps,
	"Constant":        func(*legalizer, *onnx.Downgrade, *onnx.OpSchema) bool { return true },
}

// moved are operators across which onnxruntime moves a pair of QuantizeLinear and DequantizeLinear, and MatMul, before which it may put a Reshape
// (qdq_propagation.cc, matmul_add_fusion.cc).
var moved = map[ssa.Kind]bool{
	"onnx::Reshape": true, "onnx::Transpose": true, "onnx::Squeeze": true, "onnx::Unsqueeze": true, "onnx::Slice": true, "onnx::MaxPool": true, "onnx::MatMul": true,
}

// unsignedSteps: where numbers are put on a grid of signed integers and only taken from it again, from opset 21 on, the integers are 128 more, and
// unsigned. onnxruntime makes them so itself on x86 (qdq_s8_to_u8.cc); but where it has moved the pair before, it
// forgets the attribute output_dtype, and refuses the model. A zero point of 0, which TensorRT asks for, stays where nothing is moved.
func unsignedSteps(l *legalizer, d *onnx.Downgrade, _ *onnx.OpSchema) bool {
	o := d.Node
	if l.target != onnx.OnnxRuntime || l.opset < 21 || o.NumOperands() != 3 || o.Result(0).DType() != tensor.Int8 || o.AttrInt("output_dtype", 0) != 0 {
		return false
	}
	q := o.Result(0)
	pair, moves := []*ssa.Op{o}, false
	for u := range q.Uses() {
		b := u.Op()
		if b == nil || b.Kind != "onnx::DequantizeLinear" || b.NumOperands() != 3 || b.Operand(0) != q {
			return false
		}
		pair = append(pair, b)
		for v := range b.Result(0).Uses() {
			moves = moves || v.Op() != nil && moved[v.Op().Kind]
		}
	}
	unsigned := map[*ssa.Value]*tensor.Tensor{} // zero points
	for _, b := range pair {
		z := onnx.ConstOf(b.Operand(2))
		if z == nil || !z.HasData() || z.DType != tensor.Int8 {
			return false
		}
		more := z.Int64s()
		for k := range more {
			moves = moves || more[k] != 0
			more[k] += 128
		}
		unsigned[b.Operand(2)] = tensor.FromInts(tensor.Uint8, z.Shape, more)
	}
	if !moves {
		return false
	}
	made := map[*ssa.Value]*ssa.Value{}
	for _, b := range pair {
		zero := b.Operand(2)
		if made[zero] == nil {
			made[zero] = d.Const(unsigned[zero])
		}
		b.SetOperand(2, made[zero])
	}
	q.Type = q.Tensor().WithDType(tensor.Uint8)
	l.c.Changed("unsigned integers of " + o.Kind.Name())
	return false
}

// cubicVolumes: onnxruntime samples volumes in all modes but the cubic one.
func cubicVolumes(l *legalizer, d *onnx.Downgrade, _ *onnx.OpSchema) bool {
	x := d.Node.Operand(0).Tensor()
	return l.target == onnx.OnnxRuntime && x != nil && x.Ranked && len(x.Dims) > 4 && d.Node.AttrStr("mode", "linear") == "cubic" &&
		onnx.TypeFallback("GridSample")(d, x.DType)
}

// nonZero converts the operand to bool: NonZero only tests whether an element is zero.
func nonZero(l *legalizer, d *onnx.Downgrade, s *onnx.OpSchema) bool {
	x := d.Node.Operand(0)
	if holds(l.target.Types(s, s.Input(0)), x.DType()) {
		return true
	}
	d.Node.SetOperand(0, l.cast(d, x, tensor.Bool))
	return true
}

// constantOfShape: the element type is that of the value.
func constantOfShape(l *legalizer, d *onnx.Downgrade, s *onnx.OpSchema) bool {
	g := &group{results: []int{0}, allowed: l.target.Types(s, s.Output(0)), dtype: d.Node.Result(0).DType()}
	if g.dtype == tensor.Undefined || holds(g.allowed, g.dtype) {
		return false
	}
	c := l.computing(d.Node, g)
	lit, ok := d.Node.Attr("value")
	if c == tensor.Undefined || !ok {
		return false
	}
	t := lit.Tensor
	if g.dtype.IsFloat() {
		t = tensor.FromFloats(c, t.Shape, t.Float64s())
	} else {
		t = tensor.FromInts(c, t.Shape, t.Int64s())
	}
	d.Node.SetAttr("value", ssa.TensorValue(t))
	l.castAround(d, g, c)
	return false
}

// oneHot: onnxruntime has kernels for these combinations only.
func oneHot(l *legalizer, d *onnx.Downgrade, s *onnx.OpSchema) bool {
	if l.target != onnx.OnnxRuntime || d.Node.NumOperands() != 3 {
		return false
	}
	for i := range 2 {
		v := d.Node.Operand(i)
		if v.DType() == tensor.Undefined || v.DType().IsFloat() && i == 0 {
			return false
		}
		d.Node.SetOperand(i, l.cast(d, v, tensor.Int64))
	}
	g := &group{operands: []int{2}, results: []int{0}, dtype: d.Node.Result(0).DType()}
	for _, t := range []tensor.DType{tensor.Int64, tensor.Float32, tensor.String} {
		g.allowed |= 1 << t.ONNX()
	}
	switch c := l.computing(d.Node, g); {
	case g.dtype == tensor.Undefined || holds(g.allowed, g.dtype):
	case c != tensor.Undefined:
		l.castAround(d, g, c)
	default:
		onnx.TypeFallback("OneHot")(d, g.dtype)
	}
	return true
}

// dropout: in training onnxruntime's must have a reader of its mask.
func dropout(l *legalizer, d *onnx.Downgrade, s *onnx.OpSchema) bool {
	o := d.Node
	if l.target != onnx.OnnxRuntime || o.Operand(2) == nil || len(o.Results) > 1 && o.Results[1].HasUses() {
		return false
	}
	if train, ok := onnx.ConstInts(o.Operand(2)); !ok || len(train) != 1 || train[0] == 0 {
		return false
	}
	onnx.TypeFallback("Dropout")(d, o.Result(0).DType())
	return true
}
