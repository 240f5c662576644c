// Package floattype is the pass that computes a model of float32 in float16 or bfloat16.
package floattype

import (
	"fmt"
	"math"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
)

// Pass changes values, weights and attributes from float32 to a narrower type. An operand that its operator takes in float32 alone, by the schema,
// stays in float32, as do the operators of the option keep and those in Kept; casts stand between the two. What only operators in float32 read is
// computed in float32 too.
var Pass = passes.Pass{
	Name:  "change-float-type",
	Takes: []passes.State{passes.Newest},
	Doc:   "compute in float16 or bfloat16 instead of float32",
	Before: `
graph(%x : Float(N, 4)):
  %w : Float(4) = onnx::Constant[value= 1  2  4  0.1 [ CPUFloatType{4} ]]()
  %h : Float(N, 4) = onnx::Mul(%x, %w)
  %p : Float(N, 4) = onnx::Softmax[axis=-1](%h)
  %y : Float(N, 4) = onnx::Mul(%p, %h)
  return (%y)`,
	After: `
graph(%x : Float(N, 4)):
  %w : Half(4) = onnx::Constant[value= 1  2  4  0.09998 [ CPUHalfType{4} ]]()
  %0 : Half(N, 4) = onnx::Cast[to=10](%x)
  %h : Half(N, 4) = onnx::Mul(%0, %w)
  %1 : Float(N, 4) = onnx::Cast[to=1](%h)
  %p : Float(N, 4) = onnx::Softmax[axis=-1](%1)
  %2 : Half(N, 4) = onnx::Cast[to=10](%p)
  %y : Half(N, 4) = onnx::Mul(%2, %h)
  %3 : Float(N, 4) = onnx::Cast[to=1](%y)
  return (%3)`,
	Demo: "to=f16,keep=Softmax,io=true",
	Options: []passes.Option{
		{Name: "to", Default: "f32", Values: []string{"f32", "f16", "bf16"}, Doc: "the element type; f32 changes nothing"},
		{Name: "keep", Doc: "types of operators that stay in float32, separated by commas"},
		{Name: "io", Default: "false", Bool: true, Doc: "inputs and outputs stay in float32"},
	},
	Run: run,
}

// Kept are operators that stay in float32: of angles and positions, whose digits float16 does not have, and of quantization, whose scales are exact.
var Kept = []string{"Cos", "CumSum", "DequantizeLinear", "DynamicQuantizeLinear", "QuantizeLinear", "Range", "Sin"}

type changer struct {
	c    *passes.Context
	to   tensor.DType
	keep map[ssa.Kind]bool
	// narrowed are the values that were of float32. A model may have values of the new type of its own, which stay as they are.
	narrowed map[*ssa.Value]bool
	// kept are the operators that compute in float32.
	kept  map[*ssa.Op]bool
	casts map[castKey]*ssa.Value
}

type castKey struct {
	v     *ssa.Value
	to    tensor.DType
	block *ssa.Block
}

func run(c *passes.Context) error {
	to, ok := map[string]tensor.DType{"f16": tensor.Float16, "bf16": tensor.BFloat16}[c.Option("to")]
	f := c.Module.Main()
	if !ok || f == nil {
		return nil
	}
	x := &changer{c: c, to: to, keep: map[ssa.Kind]bool{}, narrowed: map[*ssa.Value]bool{}, kept: map[*ssa.Op]bool{}, casts: map[castKey]*ssa.Value{}}
	asked, err := passes.SplitList(c.Option("keep"))
	if err != nil {
		return fmt.Errorf("option keep: %w", err)
	}
	for _, name := range append(asked, Kept...) {
		if onnx.SchemaOf(ssa.Kind("onnx::"+name)) == nil {
			return fmt.Errorf("option keep: ONNX has no operator %s%s", name, diag.DidYouMean(name, onnx.Names()))
		}
		x.keep[ssa.Kind("onnx::"+name)] = true
	}
	io := c.BoolOption("io")
	x.find(f.Body)
	for _, p := range f.Body.Params {
		t := x.weight(p)
		switch {
		case !isFloat32(p.Type), io && t == nil:
			continue
		case t != nil:
			t.set(x.narrow(t.get(), p.Name, 0))
		}
		x.change(p)
	}
	x.block(f.Body)
	for i, v := range f.Body.Returns() {
		switch {
		case v == nil:
		case io && x.narrowed[v] && isTensor(v.Type, x.to):
			f.Body.SetReturn(i, x.cast(f.Body, nil, v, tensor.Float32))
		case !io && isTensor(v.Type, tensor.Float32):
			f.Body.SetReturn(i, x.cast(f.Body, nil, v, x.to))
		}
	}
	return nil
}

// held is the data of a parameter that has some in the module.
type held struct {
	in   map[string]*tensor.Tensor
	name string
}

func (h *held) get() *tensor.Tensor  { return h.in[h.name] }
func (h *held) set(t *tensor.Tensor) { h.in[h.name] = t }

func (x *changer) weight(p *ssa.Value) *held {
	for _, in := range []map[string]*tensor.Tensor{x.c.Module.Weights, x.c.Module.Defaults} {
		if in[p.Name] != nil {
			return &held{in, p.Name}
		}
	}
	return nil
}

// find finds the operators that stay in float32, from the last one on: those that are asked to, and those whose results only such operators read.
func (x *changer) find(b *ssa.Block) {
	for o := b.Last(); o != nil; o = o.Prev() {
		for _, inner := range o.Blocks {
			x.find(inner)
		}
		if foreign(o) { // it takes its graphs as they are: onnxruntime's search has no half on the CPU
			for _, inner := range o.Blocks {
				for p := range inner.AllOps() {
					x.kept[p] = true
				}
			}
		}
		if x.keep[o.Kind] || len(o.Blocks) == 0 && o.NumOperands() > 0 && x.feeds(o) {
			x.kept[o] = true
		}
	}
}

// foreign reports an operator with graphs of another domain.
func foreign(o *ssa.Op) bool { return len(o.Blocks) > 0 && o.Kind.Namespace() != onnx.Namespace }

// feeds reports an operator with float32 results that only operators in float32 read.
func (x *changer) feeds(o *ssa.Op) bool {
	some := false
	for _, r := range o.Results {
		if !isFloat32(r.Type) {
			continue
		}
		for u := range r.Uses() {
			if u.Op() == nil || !x.kept[u.Op()] {
				return false
			}
			some = true
		}
	}
	return some
}

func isFloat32(t ssa.Type) bool { return onnx.ElemType(t) == tensor.Float32 }

// isTensor reports a tensor of an element type.
func isTensor(t ssa.Type, d tensor.DType) bool {
	tt, ok := t.(*ssa.TensorType)
	return ok && tt.DType == d
}

// changed is a type with the new element type in place of float32.
func (x *changer) changed(t ssa.Type) ssa.Type {
	if !isFloat32(t) {
		return t
	}
	switch t := t.(type) {
	case *ssa.TensorType:
		return t.WithDType(x.to)
	case *ssa.ListType:
		return &ssa.ListType{Elem: x.changed(t.Elem)}
	case *ssa.OptionalType:
		return &ssa.OptionalType{Elem: x.changed(t.Elem)}
	}
	return t
}

// change gives a value of float32 its new type.
func (x *changer) change(v *ssa.Value) {
	if isFloat32(v.Type) {
		v.Type, x.narrowed[v] = x.changed(v.Type), true
	}
}

// block changes the operators of a block.
func (x *changer) block(b *ssa.Block) {
	for o := b.First(); o != nil; o = o.Next() {
		x.op(o)
	}
}

func (x *changer) op(o *ssa.Op) {
	if o.Kind == "onnx::Constant" {
		x.constant(o)
		return
	}
	s := onnx.SchemaOf(o.Kind)
	kept := x.kept[o] || s == nil
	for i, v := range o.Operands() {
		if v == nil {
			continue
		}
		want := x.to
		if kept || !takes(s.Input(i), x.to) {
			want = tensor.Float32
		}
		if d := onnx.ElemType(v.Type); (d == tensor.Float32 || x.narrowed[v]) && d != want {
			o.SetOperand(i, x.cast(o.Block(), o, v, want))
		}
	}
	for _, inner := range o.Blocks {
		if foreign(o) {
			x.block(inner)
			continue
		}
		for _, p := range inner.Params {
			x.change(p)
		}
		x.block(inner)
		for i, v := range inner.Returns() {
			if v != nil && isTensor(v.Type, tensor.Float32) {
				inner.SetReturn(i, x.cast(inner, nil, v, x.to))
			}
		}
	}
	change := false
	for i, r := range o.Results {
		if kept || !isFloat32(r.Type) || !takes(s.Output(i), x.to) {
			continue
		}
		x.change(r)
		change = true
		x.c.Changed(o.Kind.Name())
	}
	if change {
		x.attributes(o)
	}
}

// takes reports an operand or result that may be of an element type.
func takes(p *onnx.Param, d tensor.DType) bool {
	return p != nil && (p.Types.HasTensor(d) || p.Types.Seq != 0 || p.Types.OptTensor != 0)
}

// attributes changes those that say what type results have.
func (x *changer) attributes(o *ssa.Op) {
	for _, name := range []string{"to", "dtype", "output_dtype"} {
		if l, ok := o.Attr(name); ok && l.Kind == ssa.IntLit && o.AttrInt(name, 0) == int64(tensor.Float32.ONNX()) {
			o.SetAttr(name, ssa.Int(int64(x.to.ONNX())))
		}
	}
	s := onnx.SchemaOf(o.Kind)
	switch o.Kind {
	case "onnx::ConstantOfShape":
		t := tensor.FromFloats(tensor.Float32, []int64{1}, []float64{0})
		if l, ok := o.Attr("value"); ok {
			t = l.Tensor
		}
		o.SetAttr("value", ssa.TensorValue(x.narrow(t, o.Results[0].Name, o.Loc)))
	case "onnx::EyeLike", "onnx::RandomNormalLike", "onnx::RandomUniformLike", "onnx::Bernoulli":
		// without the attribute the type is that of the operand
	default:
		if _, has := o.Attr("dtype"); !has && s.Attr("dtype") != nil {
			o.SetAttr("dtype", ssa.Int(int64(x.to.ONNX())))
		}
	}
}

// constant changes a constant, unless only operators in float32 read it.
func (x *changer) constant(o *ssa.Op) {
	l, ok := o.Attr("value")
	if !ok || l.Tensor == nil || l.Tensor.DType != tensor.Float32 || x.kept[o] {
		return
	}
	r := o.Results[0]
	stays := r.HasUses()
	for u := range r.Uses() {
		user := u.Op()
		if user == nil {
			stays = false
			break
		}
		s := onnx.SchemaOf(user.Kind)
		if x.kept[user] || s == nil {
			continue
		}
		for i, v := range user.Operands() {
			if v == r && takes(s.Input(i), x.to) {
				stays = false
			}
		}
	}
	if stays {
		return
	}
	o.SetAttr("value", ssa.TensorValue(x.narrow(l.Tensor, r.Name, o.Loc)))
	x.change(r)
	x.c.Changed("Constant")
}

// cast converts a value, once in a block: before p, or at the end if p is nil.
func (x *changer) cast(b *ssa.Block, p *ssa.Op, v *ssa.Value, to tensor.DType) *ssa.Value {
	key := castKey{v, to, b}
	if w := x.casts[key]; w != nil {
		return w
	}
	t := v.Tensor()
	if t == nil {
		return v // a list of tensors cannot be cast as one
	}
	o := b.InsertBefore(p, "onnx::Cast", 0, []*ssa.Value{v}, t.WithDType(to))
	o.SetAttr("to", ssa.Int(int64(to.ONNX())))
	if p != nil {
		o.Loc = p.Loc
	}
	x.casts[key], x.narrowed[o.Results[0]] = o.Results[0], true
	return o.Results[0]
}

// narrow rounds the elements of a tensor to the new type. What is finite stays finite and what is not 0 stays so: a mask of -3.4e38 becomes the least
// number, and an epsilon of 1e-12 the smallest one above 0. The first is told unless it is a mask's.
func (x *changer) narrow(t *tensor.Tensor, name string, loc diag.Loc) *tensor.Tensor {
	top, least, round := 65504.0, math.Ldexp(1, -24), tensor.FloatToHalf
	if x.to == tensor.BFloat16 {
		top, least, round = 0x1.fep127, math.Ldexp(1, -133), tensor.FloatToBFloat
	}
	data := tensor.Data[float32](t)
	out := make([]uint16, len(data))
	beyond := 0
	for i, v := range data {
		f := float64(v)
		a := math.Abs(f)
		switch {
		case f != f || math.IsInf(f, 0) || f == 0:
		case a > top:
			if a < math.MaxFloat32 {
				beyond++
			}
			f = math.Copysign(top, f)
		case a < least:
			f = math.Copysign(least, f)
		}
		out[i] = round(f)
	}
	if name == "" {
		name = "a constant"
	}
	if beyond > 0 {
		x.c.Report(diag.Diagnostic{Severity: diag.Warning, ID: "float-range", Loc: loc, Message: fmt.Sprintf("%d elements of %s are greater than %g, the greatest number of %s, which they become", beyond, name, top, x.to),
			Hint: "keep the operators that read it in float32"})
	}
	return tensor.Of(x.to, slices.Clone(t.Shape), out)
}
