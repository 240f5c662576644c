package simplify

import (
	"fmt"
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/tensor"
)

// linear holds the rules on convolutions and matrix products.
func (s *simplifier) linear() []rewrite.Rule {
	return []rewrite.Rule{
		{Name: "matmul-add-to-gemm", Kinds: []ssa.Kind{"onnx::Add"}, Apply: matMulAdd, Rounds: true},
		{Name: "fold-batchnorm", Kinds: []ssa.Kind{"onnx::BatchNormalization"}, Apply: s.foldBatchNorm, Rounds: true},
		{Name: "fold-scale", Kinds: []ssa.Kind{"onnx::Mul", "onnx::Div"}, Apply: s.foldScale, Rounds: true},
		{Name: "fold-offset", Kinds: []ssa.Kind{"onnx::Add", "onnx::Sub"}, Apply: s.foldOffset, Rounds: true},
		{Name: "bias-into-conv", Kinds: []ssa.Kind{"onnx::Add"}, Apply: biasIntoConv, Rounds: true},
		{Name: "transpose-to-gemm", Kinds: []ssa.Kind{"onnx::Gemm"}, Apply: transposeGemm},
		{Name: "transpose-to-fused-matmul", Kinds: []ssa.Kind{"com.microsoft::FusedMatMul"}, Apply: transposeFusedMatMul},
		{Name: "transposed-times-vector", Kinds: []ssa.Kind{"onnx::MatMul"}, Apply: transposedTimesVector},
		{Name: "add-to-gemm", Kinds: []ssa.Kind{"onnx::Add"}, Apply: addToGemm, Rounds: true},
		{Name: "gemm-between-reshapes", Kinds: []ssa.Kind{"onnx::Reshape"}, Apply: gemmBetween, Rounds: true},
		{Name: "sum-of-gemms", Kinds: []ssa.Kind{"onnx::Add"}, Apply: sumOfGemms, Rounds: true},
		{Name: "batchnorm-into-conv", Kinds: []ssa.Kind{"onnx::Conv", "onnx::Gemm"}, Apply: s.batchNormForward, Rounds: true},
		{Name: "pad-into-window", Kinds: []ssa.Kind{"onnx::Conv", "onnx::ConvInteger", "onnx::AveragePool", "onnx::MaxPool"}, Apply: padIntoWindow},
	}
}

// affine is a linear operator with constant weights: y = op(x, w) + b, with a scale and an offset for each output channel.
type affine struct {
	op       *ssa.Op
	w, b     *ssa.Value // b may be nil
	channels int64
	run      int64                   // elements of w in a row that belong to one channel
	channel  func(block int64) int64 // the channel of a row
}

// affineOf reads the linear operator that makes v, if nothing else uses v.
func affineOf(v *ssa.Value) (a affine, ok bool) {
	o := v.Def()
	if o == nil || !v.HasOneUse() {
		return a, false
	}
	a = affine{op: o, w: o.Operand(1), b: o.Operand(2)}
	w := onnx.ConstOf(a.w)
	if w == nil || !w.HasData() || !w.DType.IsFloat() || w.NumElements() == 0 || a.b != nil && !isConst(a.b) {
		return a, false
	}
	n := w.NumElements()
	switch o.Kind {
	case "onnx::Conv":
		a.channels = w.Shape[0]
		a.run = n / a.channels
		a.channel = func(block int64) int64 { return block }
	case "onnx::ConvTranspose": // weights are (C, M/group, ...)
		if len(w.Shape) < 2 {
			return a, false
		}
		group, each := o.AttrInt("group", 1), w.Shape[1]
		if group < 1 || w.Shape[0]%group != 0 {
			return a, false
		}
		in := w.Shape[0] / group
		a.channels = each * group
		a.run = n / (w.Shape[0] * each)
		a.channel = func(block int64) int64 { return block/each/in*each + block%each }
	case "onnx::Gemm":
		if len(w.Shape) != 2 || o.AttrFloat("beta", 1) != 1 || o.AttrFloat("alpha", 1) != 1 {
			return a, false
		}
		a.columns(w, o.AttrInt("transB", 0) != 0)
	case "onnx::MatMul":
		if len(w.Shape) != 2 || rank(o.Operand(0)) != 2 {
			return a, false
		}
		a.columns(w, false)
	default:
		return a, false
	}
	if a.b != nil {
		b := onnx.ConstOf(a.b)
		if b.NumElements() != a.channels && b.NumElements() != 1 || len(b.Shape) > 2 || len(b.Shape) == 2 && b.Shape[0] != 1 {
			return a, false
		}
	}
	return a, a.run > 0
}

func (a *affine) columns(w *tensor.Tensor, transposed bool) {
	if transposed {
		a.channels, a.run = w.Shape[0], w.Shape[1]
		a.channel = func(block int64) int64 { return block }
		return
	}
	a.channels, a.run = w.Shape[1], 1
	a.channel = func(block int64) int64 { return block % w.Shape[1] }
}

// key names what the new weights are made from: equal keys mean equal weights.
func (a *affine) key(rule string, with ...*ssa.Value) string {
	id := func(v *ssa.Value) int {
		if v == nil {
			return -1
		}
		return v.ID
	}
	k := fmt.Sprint(rule, a.op.Kind, a.op.AttrInt("group", 1), a.op.AttrInt("transB", 0), id(a.w), id(a.b))
	for _, v := range with {
		k += fmt.Sprint(" ", id(v))
	}
	return k
}

// smallWeight is the number of bytes up to which a shared weight may be copied.
const smallWeight = 4 << 10

// mayChange reports that new weights do not make the file grow: nothing else
// uses the old ones, or all users will get the same new ones.
func (a *affine) mayChange(user *ssa.Op) bool {
	if a.w.HasOneUse() || onnx.ConstOf(a.w).NumBytes() <= smallWeight {
		return true
	}
	for u := range a.w.Uses() {
		o := u.Op()
		if o == nil || o.Kind != a.op.Kind || o.Operand(1) != a.w || o.Operand(2) != a.b || o.Operand(0) == a.w || !o.Result(0).HasOneUse() ||
			o.AttrInt("group", 1) != a.op.AttrInt("group", 1) || o.AttrInt("transB", 0) != a.op.AttrInt("transB", 0) {
			return false
		}
		for v := range o.Result(0).Uses() {
			p := v.Op()
			if p == nil || p.Kind != user.Kind || p.Operand(0) != o.Result(0) {
				return false
			}
			for i := 1; i < user.NumOperands(); i++ {
				if p.Operand(i) != user.Operand(i) {
					return false
				}
			}
		}
	}
	return true
}

// apply makes the operator again with w*scale and b*scale + offset for each channel.
func (s *simplifier) apply(r *rewrite.Rewriter, a affine, user *ssa.Op, what, key string, biasFrom *ssa.Value, scale, offset []float64) bool {
	o := user.Result(0)
	made, ok := s.folded[key]
	if !ok || made[0] != nil && made[0].Def().Block() == nil || made[1] != nil && made[1].Def().Block() == nil {
		w := onnx.ConstOf(a.w)
		made[0] = a.w
		if scale != nil {
			made[0] = s.weight(r, scaled(w, a.run, a.channel, scale), a.w, what)
		}
		bias := make([]float64, a.channels)
		if a.b != nil {
			old := onnx.ConstOf(a.b).Float64s()
			for i := range bias {
				bias[i] = old[min(i, len(old)-1)]
			}
		}
		for i := range bias {
			if scale != nil {
				bias[i] *= scale[i]
			}
			if offset != nil {
				bias[i] += offset[i]
			}
		}
		if made[1] = a.b; a.b != nil || offset != nil {
			from := a.b
			if from == nil {
				from = biasFrom
			}
			made[1] = s.weight(r, tensor.FromFloats(w.DType, []int64{a.channels}, bias), from, what)
		}
		s.folded[key] = made
	}
	kind, attrs := a.op.Kind, a.op.Attrs
	if kind == "onnx::MatMul" && made[1] != nil {
		kind = "onnx::Gemm"
	}
	operands := []*ssa.Value{a.op.Operand(0), made[0]}
	if made[1] != nil {
		operands = append(operands, made[1])
	}
	y := r.Create(kind, operands, attrs...)
	if !r.Fits(y, o) {
		return false
	}
	r.Replace(user, y)
	return true
}

// scaled multiplies rows of elements of a weight by the factors of their channels, in float64. The product is computed
// when it is read: all weights of a model at once would take much memory.
func scaled(w *tensor.Tensor, run int64, channel func(row int64) int64, scale []float64) *tensor.Tensor {
	if !w.IsContiguous() {
		w = w.Clone()
	}
	return tensor.Computed(w.DType, w.Shape, func(from, n int64) *tensor.Tensor {
		part := &tensor.Tensor{DType: w.DType, Shape: []int64{n}, Strides: []int64{1}, Offset: w.Offset + from, Storage: w.Storage}
		if w.DType == tensor.Float32 {
			in, out := tensor.Data[float32](part), make([]float32, n)
			eachRow(run, from, n, func(row, at, end int64) {
				k := scale[channel(row)]
				for j := at; j < end; j++ {
					out[j] = float32(float64(in[j]) * k)
				}
			})
			return tensor.Of(tensor.Float32, part.Shape, out)
		}
		v := part.Float64s()
		eachRow(run, from, n, func(row, at, end int64) {
			k := scale[channel(row)]
			for j := at; j < end; j++ {
				v[j] *= k
			}
		})
		return tensor.FromFloats(w.DType, part.Shape, v)
	})
}

// eachRow calls f for each row of run elements of which some are among n elements from a place on, with where they are among these.
func eachRow(run, from, n int64, f func(row, at, end int64)) {
	for at := int64(0); at < n; {
		row := (from + at) / run
		end := min((row+1)*run-from, n)
		f(row, at, end)
		at = end
	}
}

// foldBatchNorm folds an evaluated batch normalization into the weights before it.
func (s *simplifier) foldBatchNorm(r *rewrite.Rewriter, o *ssa.Op) bool {
	if o.AttrInt("training_mode", 0) != 0 || len(o.Results) != 1 {
		return false
	}
	a, ok := affineOf(o.Operand(0))
	if !ok || !a.mayChange(o) {
		return false
	}
	var p [4][]float64 // scale, offset, mean, variance
	for i := range p {
		t := onnx.ConstOf(o.Operand(i + 1))
		if t == nil || !t.HasData() || t.NumElements() != a.channels {
			return false
		}
		p[i] = t.Float64s()
	}
	eps := o.AttrFloat("epsilon", 1e-5)
	scale, offset := make([]float64, a.channels), make([]float64, a.channels)
	for i := range scale {
		scale[i] = p[0][i] / math.Sqrt(p[3][i]+eps)
		offset[i] = p[1][i] - p[2][i]*scale[i]
		if math.IsNaN(offset[i]) || math.IsInf(scale[i], 0) || math.IsInf(offset[i], 0) {
			return false
		}
	}
	return s.apply(r, a, o, "bn", a.key(fmt.Sprint("bn", eps), o.Operand(1), o.Operand(2), o.Operand(3), o.Operand(4)), o.Operand(2), scale, offset)
}

// batchNormForward folds an evaluated batch normalization into the weights of the convolution behind it, if that does not
// pad: padding is not normalized.
func (s *simplifier) batchNormForward(r *rewrite.Rewriter, o *ssa.Op) bool {
	n := o.Operand(0).Def()
	if n == nil || n.Kind != "onnx::BatchNormalization" || !o.Operand(0).HasOneUse() || n.AttrInt("training_mode", 0) != 0 || len(n.Results) != 1 {
		return false
	}
	w := onnx.ConstOf(o.Operand(1))
	if w == nil || !w.HasData() || !w.DType.IsFloat() || w.NumElements() == 0 || len(w.Shape) < 2 || !o.Operand(1).HasOneUse() && w.NumBytes() > smallWeight ||
		o.Operand(2) != nil && !isConst(o.Operand(2)) {
		return false
	}
	outs, ins, group := w.Shape[0], w.Shape[1], int64(1) // of the weight as (outs, ins, run)
	transposed := false
	switch o.Kind {
	case "onnx::Conv":
		if o.AttrStr("auto_pad", "NOTSET") != "NOTSET" && o.AttrStr("auto_pad", "") != "VALID" || !allEqual(o.AttrInts("pads"), 0) {
			return false
		}
		if group = o.AttrInt("group", 1); group < 1 || outs%group != 0 {
			return false
		}
	case "onnx::Gemm":
		if o.AttrInt("transA", 0) != 0 || o.AttrFloat("alpha", 1) != 1 || o.AttrFloat("beta", 1) != 1 {
			return false
		}
		if transposed = o.AttrInt("transB", 0) == 0; transposed {
			outs, ins = ins, outs
		}
	}
	var p [4][]float64 // scale, offset, mean, variance
	for i := range p {
		t := onnx.ConstOf(n.Operand(i + 1))
		if t == nil || !t.HasData() || t.NumElements() != ins*group {
			return false
		}
		p[i] = t.Float64s()
	}
	bias := make([]float64, outs)
	if b := onnx.ConstOf(o.Operand(2)); b != nil {
		if b.NumElements() != outs || b.Shape[len(b.Shape)-1] != outs {
			return false
		}
		copy(bias, b.Float64s())
	}
	eps := n.AttrFloat("epsilon", 1e-5)
	v := w.Float64s()
	run := int64(len(v)) / (outs * ins)
	for m := range outs {
		for c := range ins {
			ch := m/(outs/group)*ins + c
			scale := p[0][ch] / math.Sqrt(p[3][ch]+eps)
			offset := p[1][ch] - p[2][ch]*scale
			if math.IsNaN(offset) || math.IsInf(scale, 0) || math.IsInf(offset, 0) {
				return false
			}
			at := (m*ins + c) * run
			if transposed {
				at = c*outs + m
			}
			for i := at; i < at+run; i++ {
				bias[m] += v[i] * offset
				v[i] *= scale
			}
		}
	}
	from := o.Operand(2)
	if from == nil {
		from = n.Operand(2)
	}
	operands := []*ssa.Value{
		n.Operand(0),
		s.weight(r, tensor.FromFloats(w.DType, w.Shape, v), o.Operand(1), "bn"),
		s.weight(r, tensor.FromFloats(w.DType, []int64{outs}, bias), from, "bn"),
	}
	y := r.Create(o.Kind, operands, o.Attrs...)
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// perChannel reads a constant that broadcasting applies to the channels of y; the result has an element for each channel.
func perChannel(k, y *ssa.Value, a affine) ([]float64, bool) {
	t := onnx.ConstOf(k)
	n := rank(y)
	if t == nil || !t.HasData() || t.DType != onnx.ConstOf(a.w).DType || n < 2 || len(t.Shape) > n {
		return nil, false
	}
	axis := 1
	if a.op.Kind == "onnx::Gemm" || a.op.Kind == "onnx::MatMul" {
		axis = n - 1
	}
	for i, d := range t.Shape {
		if at := i + n - len(t.Shape); d != 1 && (at != axis || d != a.channels) {
			return nil, false
		}
	}
	v := t.Float64s()
	out := make([]float64, a.channels)
	for i := range out {
		out[i] = v[min(i, len(v)-1)]
		if math.IsNaN(out[i]) || math.IsInf(out[i], 0) {
			return nil, false
		}
	}
	return out, true
}

// foldScale folds a product with, or a quotient by, constants into the weights before it.
func (s *simplifier) foldScale(r *rewrite.Rewriter, o *ssa.Op) bool {
	a, ok := affineOf(o.Operand(0))
	if !ok || !a.mayChange(o) || !ssa.SameType(o.Operand(0).Type, o.Result(0).Type) {
		return false
	}
	k, ok := perChannel(o.Operand(1), o.Result(0), a)
	if !ok {
		return false
	}
	if o.Kind == "onnx::Div" {
		for i := range k {
			if k[i] = 1 / k[i]; math.IsInf(k[i], 0) {
				return false
			}
		}
	}
	return s.apply(r, a, o, "scaled", a.key(string(o.Kind), o.Operand(1)), nil, k, nil)
}

// foldOffset folds the addition of constants into the bias before it.
func (s *simplifier) foldOffset(r *rewrite.Rewriter, o *ssa.Op) bool {
	a, ok := affineOf(o.Operand(0))
	if !ok || !ssa.SameType(o.Operand(0).Type, o.Result(0).Type) {
		return false
	}
	k, ok := perChannel(o.Operand(1), o.Result(0), a)
	if !ok {
		return false
	}
	if t := onnx.ConstOf(o.Operand(1)); a.b == nil && o.Kind == "onnx::Add" && len(t.Shape) == 1 && t.Shape[0] == a.channels {
		// it is a bias as it stands
		s.folded[a.key(string(o.Kind), o.Operand(1))] = [2]*ssa.Value{a.w, o.Operand(1)}
	}
	if o.Kind == "onnx::Sub" {
		for i := range k {
			k[i] = -k[i]
		}
	}
	return s.apply(r, a, o, "offset", a.key(string(o.Kind), o.Operand(1)), o.Operand(1), nil, k)
}

// biasIntoConv gives a convolution without bias, whose weights are no constant, the vector that is added to its channels.
func biasIntoConv(r *rewrite.Rewriter, o *ssa.Op) bool {
	for i := range 2 {
		y, b := o.Operand(i), o.Operand(1-i)
		d := y.Def()
		if d == nil || d.Kind != "onnx::Conv" && d.Kind != "onnx::ConvTranspose" || d.Operand(2) != nil || !y.HasOneUse() || b == y || !ssa.SameType(y.Type, o.Result(0).Type) || rank(y) < 3 {
			continue
		}
		channels := y.Tensor().Dims[1]
		bias := biasOf(r, b, rank(y))
		if bias == nil || rank(bias) != 1 || !bias.Tensor().Dims[0].Equal(channels) || bias.DType() != y.DType() {
			continue
		}
		v := r.Create(d.Kind, []*ssa.Value{d.Operand(0), d.Operand(1), bias}, d.Attrs...)
		if !r.Fits(v, o.Result(0)) {
			return false
		}
		r.Replace(o, v)
		return true
	}
	return false
}

// biasOf is the vector along axis 1 that a value of a shape such as (1, C, 1, 1) or (C, 1, 1) is, for an image of some rank; nil if it is none.
func biasOf(r *rewrite.Rewriter, v *ssa.Value, n int) *ssa.Value {
	t := v.Tensor()
	if t == nil || !t.Ranked || len(t.Dims) != n && len(t.Dims) != n-1 {
		return nil
	}
	channel := len(t.Dims) - (n - 1)
	for i, e := range t.Dims {
		if i != channel && !e.Is(1) {
			return nil
		}
	}
	size, ok := t.Dims[channel].Int()
	d := v.Def()
	switch {
	case !ok || d == nil:
		return nil
	case isConst(v):
		return build(r).Reshape(v, ints(r, size))
	case isReshape(d) && rank(d.Operand(0)) == 1:
		return d.Operand(0)
	}
	return nil
}
