package prove

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// evaluator runs a function on terms. What moves elements is done by the kernels of the interpreter, on the numbers of the terms;
// what computes elements makes a term of the operator. Sums of products and reductions are found by running the kernels on
// unit vectors.
type evaluator struct {
	*terms
	interp interp.Interpreter
	steps  int
	dims   map[string]int64 // what the symbols of sizes are
	until  time.Time        // when to give up; never, if it is zero
}

// late reports that the time of the claim has passed.
func (e *evaluator) late() bool { return !e.until.IsZero() && time.Now().After(e.until) }

// inexpressible says that an operator has no meaning here.
type inexpressible struct{ why string }

func (e inexpressible) Error() string { return e.why }

func cannot(format string, args ...any) error { return inexpressible{fmt.Sprintf(format, args...)} }

// maxTerms bounds the terms of an obligation, and maxProducts the products of operands of which a sum may consist.
const (
	maxTerms    = 1 << 17
	maxProducts = 1 << 14
	// maxWork bounds the multiplications of the kernels that find them.
	maxWork = 1 << 27
)

func (e *evaluator) function(f *ssa.Func, args []value) ([]value, error) {
	env := map[*ssa.Value]value{}
	for i, p := range f.Body.Params {
		env[p] = args[i]
	}
	return e.block(f.Body, env)
}

func (e *evaluator) block(b *ssa.Block, env map[*ssa.Value]value) ([]value, error) {
	for o := range b.Ops() {
		if e.steps++; e.steps > 4096 || len(e.list) > e.most() || e.large(o) {
			return nil, cannot("the graph is too large")
		}
		if e.late() {
			return nil, cannot("the time has passed")
		}
		in := make([]value, o.NumOperands())
		for i := range in {
			if v := o.Operand(i); v != nil {
				in[i] = env[v]
			}
		}
		out, err := e.op(o, in, env)
		if err != nil {
			return nil, err
		}
		for i, r := range o.Results {
			if i < len(out) {
				env[r] = out[i]
			}
		}
	}
	var out []value
	for _, v := range b.Returns() {
		out = append(out, env[v])
	}
	return out, nil
}

// most is how many terms an obligation may have: more where its time is bounded.
func (e *evaluator) most() int {
	if e.until.IsZero() {
		return maxTerms
	}
	return 4 * maxTerms
}

// large reports that results of an operator have more elements than an obligation may have terms, as far as their sizes are known.
func (e *evaluator) large(o *ssa.Op) bool {
	for _, r := range o.Results {
		if t := r.Tensor(); t != nil && t.Ranked {
			if shape, err := sizes(t, e.dims); err == nil && !fits(shape, maxTerms) {
				return true
			}
		}
	}
	return false
}

// fits reports that a shape has no more elements than a bound.
func fits(shape []int64, most int64) bool {
	n := int64(1)
	for _, s := range shape {
		if s == 0 {
			return true
		}
		if n > most/s {
			return false
		}
		n *= s
	}
	return true
}

func one(t *Tensor) []value { return []value{{t: t}} }

func (e *evaluator) op(o *ssa.Op, in []value, env map[*ssa.Value]value) ([]value, error) {
	if o.Kind.Namespace() != onnx.Namespace {
		return e.opaque(o, in)
	}
	switch o.Kind {
	case "onnx::If":
		return e.choice(o, in, env)
	case "onnx::Loop":
		return e.loop(o, in, env)
	}
	if len(o.Blocks) > 0 {
		return nil, cannot("%s has a block", o.Kind)
	}
	if out, ok, err := e.concretely(o, in); ok || err != nil {
		return out, err
	}
	switch name := o.Kind.Name(); name {
	case "Shape", "Size": // of sizes alone
		return e.run(o, in, func(int) bool { return true }, tensor.Int64)
	case "Cast", "CastLike":
		return e.each(o, "Cast", in[:1], attrsOf(o.Kind, o.Attrs, "to"))
	case "Clip":
		return e.clip(o, in)
	case "Sum", "Max", "Min":
		return e.chain(map[string]string{"Sum": "Add", "Max": "Max", "Min": "Min"}[name], o, in)
	case "Dropout":
		if len(in) < 3 || in[2].t == nil || in[2].t.Elems[0] == e.boolean(false) || in[1].t != nil && in[1].t.Elems[0] == e.zero(in[1].t.DType) {
			mask := &Tensor{DType: tensor.Bool, Shape: in[0].t.Shape, Elems: slices.Repeat([]*Term{e.boolean(true)}, len(in[0].t.Elems))}
			return []value{{t: in[0].t}, {t: mask}}, nil
		}
	case "QuantizeLinear", "DequantizeLinear":
		if in[0].t != nil && in[1].t != nil && len(in[1].t.Elems) == 1 && (len(in) < 3 || in[2].t == nil || len(in[2].t.Elems) == 1) {
			vs := slices.DeleteFunc(slices.Clone(in), func(v value) bool { return v.t == nil })
			for i, v := range vs[1:] {
				vs[i+1].t = &Tensor{DType: v.t.DType, Shape: []int64{}, Elems: v.t.Elems}
			}
			return e.each(o, name, vs, attrsOf(o.Kind, o.Attrs))
		}
	case "MatMul", "Gemm", "Conv", "ConvTranspose":
		return e.product(o, in)
	case "AveragePool", "GlobalAveragePool":
		return e.linear(o, in)
	case "MaxPool", "GlobalMaxPool":
		if len(o.Results) == 1 {
			return e.reduce(o, in, "ReduceMax", nil)
		}
	case "ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare":
		return e.reduce(o, in, name, nil)
	case "ArgMax", "ArgMin":
		return e.arg(o, in)
	case "BatchNormalization":
		if len(o.Results) == 1 {
			return e.batchNorm(o, in)
		}
	case "Softmax", "LogSoftmax":
		return e.softmax(o, in)
	case "LayerNormalization", "RMSNormalization":
		if len(o.Results) == 1 {
			return e.norm(o, in)
		}
	case "LSTM", "GRU", "RNN":
		return e.recurrent(o, in)
	case "SequenceEmpty", "SequenceConstruct", "SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength", "ConcatFromSequence", "SplitToSequence":
		return e.move(o, in, func(i int) bool {
			return in[i].isList || i == 0 || name == "SequenceConstruct" || name == "SequenceInsert" && i == 1
		})
	case "Pad":
		return e.pad(o, in)
	case "Trilu":
		return e.move(o, in, func(i int) bool { return i == 0 })
	case "DepthToSpace", "SpaceToDepth", "ReverseSequence", "CenterCropPad", "Compress":
		return e.move(o, in, func(i int) bool { return i == 0 })
	}
	if carried := onnx.Carried(o); carried != nil {
		return e.move(o, in, func(i int) bool { return slices.Contains(carried, i) })
	}
	if onnx.Pointwise(o.Kind) || slices.Contains(onnx.Broadcasting(), o.Kind) || o.Kind == "onnx::Mean" || o.Kind == "onnx::BitShift" || o.Kind == "onnx::PRelu" {
		return e.each(o, o.Kind.Name(), in, attrsOf(o.Kind, o.Attrs))
	}
	return e.opaque(o, in)
}

// concretely runs an operator whose operands are all constants in the interpreter.
func (e *evaluator) concretely(o *ssa.Op, in []value) ([]value, bool, error) {
	args := make([]interp.Value, len(in))
	for i, v := range in {
		if v.isList {
			return nil, false, nil
		}
		if v.t == nil {
			continue
		}
		t, ok := v.t.concrete()
		if !ok {
			return nil, false, nil
		}
		args[i] = interp.Of(t)
	}
	out, err := e.interp.RunOp(o, args, nil)
	if err != nil {
		return nil, false, cannot("%v", err)
	}
	vs := make([]value, len(out))
	for i, v := range out {
		switch {
		case v.IsList:
			vs[i].isList = true
			for _, t := range v.List {
				vs[i].list = append(vs[i].list, e.constants(t))
			}
		case v.Tensor != nil:
			vs[i].t = e.constants(v.Tensor)
		}
	}
	return vs, true, nil
}

// move runs an operator on the numbers of the terms of the operands that it carries. The other operands must be known.
func (e *evaluator) move(o *ssa.Op, in []value, carried func(i int) bool) ([]value, error) {
	return e.run(o, in, carried, tensor.Undefined)
}

// run is move; results are integers, not terms, where of says so.
func (e *evaluator) run(o *ssa.Op, in []value, carried func(i int) bool, of tensor.DType) ([]value, error) {
	args := make([]interp.Value, len(in))
	d := tensor.Undefined
	for i, v := range in {
		switch {
		case v.isList:
			l := make([]*tensor.Tensor, len(v.list))
			for k, t := range v.list {
				l[k], d = t.handles(), t.DType
			}
			args[i] = interp.ListOf(l...)
		case v.t == nil:
		case carried(i):
			args[i] = interp.Of(v.t.handles())
			d = v.t.DType
		default:
			t, ok := v.t.concrete()
			if !ok {
				return nil, cannot("operand %d of %s is not known", i, o.Kind)
			}
			args[i] = interp.Of(t)
		}
	}
	out, err := e.interp.RunOp(o, args, nil)
	if err != nil {
		return nil, cannot("%v", err)
	}
	vs := make([]value, len(out))
	for i, v := range out {
		switch {
		case v.IsList:
			vs[i].isList = true
			for _, t := range v.List {
				vs[i].list = append(vs[i].list, e.fromHandles(t, d))
			}
		case v.Tensor == nil:
		case of != tensor.Undefined || o.Kind == "onnx::SequenceLength":
			vs[i].t = e.constants(v.Tensor)
		default:
			vs[i].t = e.fromHandles(v.Tensor, d)
		}
	}
	return vs, nil
}

// pad has the handle of its value where that is given.
func (e *evaluator) pad(o *ssa.Op, in []value) ([]value, error) {
	return e.move(o, in, func(i int) bool { return i == 0 || i == 2 })
}

// expand gives the elements of t in a shape that it is broadcast to.
func (e *evaluator) expand(t *Tensor, shape []int64) (*Tensor, error) {
	if slices.Equal(t.Shape, shape) {
		return t, nil
	}
	out, err := kernel.Eval("onnx::Expand", nil, []*tensor.Tensor{t.handles(), tensor.Ints(shape...)}, 1)
	if err != nil {
		return nil, cannot("%v", err)
	}
	return e.fromHandles(out[0], t.DType), nil
}

// broadcast brings tensors to one shape, that of the kernels.
func (e *evaluator) broadcast(ts []*Tensor) ([]*Tensor, []int64, error) {
	acc := tensor.FromInts(tensor.Int64, ts[0].Shape, make([]int64, len(ts[0].Elems)))
	for _, t := range ts[1:] {
		out, err := kernel.Eval("onnx::Add", nil, []*tensor.Tensor{acc, tensor.FromInts(tensor.Int64, t.Shape, make([]int64, len(t.Elems)))}, 1)
		if err != nil {
			return nil, nil, cannot("%v", err)
		}
		acc = out[0]
	}
	all := make([]*Tensor, len(ts))
	for i, t := range ts {
		var err error
		if all[i], err = e.expand(t, acc.Shape); err != nil {
			return nil, nil, err
		}
	}
	return all, acc.Shape, nil
}

// resultType is the element type of a result, which inference has found.
func resultType(o *ssa.Op) (tensor.DType, error) {
	if d := o.Result(0).DType(); d != tensor.Undefined {
		return d, nil
	}
	return 0, cannot("the element type of %s is unknown", o.Kind)
}

// each makes the term of an operator for each element of its broadcast operands.
func (e *evaluator) each(o *ssa.Op, name string, in []value, attrs []ssa.Attr) ([]value, error) {
	d, err := resultType(o)
	if err != nil {
		return nil, err
	}
	if name == "Cast" {
		attrs = append(slices.Clone(attrs), ssa.Attr{Name: "to", Value: ssa.Int(int64(d.ONNX()))})
	}
	var ts []*Tensor
	for i, v := range in {
		if v.t == nil {
			return nil, cannot("operand %d of %s is absent", i, o.Kind)
		}
		ts = append(ts, v.t)
	}
	all, shape, err := e.broadcast(ts)
	if err != nil {
		return nil, err
	}
	out := &Tensor{DType: d, Shape: shape}
	for i := range all[0].Elems {
		args := make([]*Term, len(all))
		for k, t := range all {
			args[k] = t.Elems[i]
		}
		out.Elems = append(out.Elems, e.apply(name, d, attrs, args...))
	}
	return one(out), nil
}

// chain is an operator of any number of operands that is computed from the left.
func (e *evaluator) chain(name string, o *ssa.Op, in []value) ([]value, error) {
	acc := in[0]
	for _, v := range in[1:] {
		out, err := e.each(o, name, []value{acc, v}, nil)
		if err != nil {
			return nil, err
		}
		acc = out[0]
	}
	return []value{acc}, nil
}

// clip takes the lower bound for what is less and then the upper one for what is greater, as the kernel does.
func (e *evaluator) clip(o *ssa.Op, in []value) ([]value, error) {
	x := in[0].t
	for i, beyond := range [...]string{1: "Less", 2: "Greater"} {
		if i == 0 || i >= len(in) || in[i].t == nil {
			continue
		}
		if len(in[i].t.Elems) != 1 {
			return nil, cannot("a bound of Clip has %d elements", len(in[i].t.Elems))
		}
		bound := in[i].t.Elems[0]
		out := &Tensor{DType: x.DType, Shape: x.Shape}
		for _, t := range x.Elems {
			out.Elems = append(out.Elems, e.apply("Where", x.DType, nil, e.apply(beyond, tensor.Bool, nil, t, bound), bound, t))
		}
		x = out
	}
	return one(x), nil
}

// attrsOf are the attributes that say what an operator computes, with the defaults of those that are absent, but for some.
func attrsOf(kind ssa.Kind, attrs []ssa.Attr, but ...string) []ssa.Attr {
	var out []ssa.Attr
	s := onnx.SchemaOf(kind)
	if s == nil {
		return attrs
	}
	for _, a := range s.Attrs {
		if slices.Contains(but, a.Name) {
			continue
		}
		v, _ := a.Value()
		for _, given := range attrs {
			if given.Name == a.Name {
				v = given.Value
			}
		}
		if !v.IsNone() {
			out = append(out, ssa.Attr{Name: a.Name, Value: v})
		}
	}
	return out
}

// sorted orders terms whose order does not matter.
func sorted(args []*Term) []*Term {
	args = slices.Clone(args)
	slices.SortFunc(args, func(a, b *Term) int { return a.id - b.id })
	return args
}

// units runs an operator with operand 0 replaced by each unit vector, and tells which elements of the result are not 0.
func (e *evaluator) units(kind ssa.Kind, attrs []ssa.Attr, shape []int64, rest []*tensor.Tensor, tell func(unit, at int, v float64)) ([]int64, error) {
	n := int64(1)
	for _, s := range shape {
		n *= s
	}
	if n > maxProducts {
		return nil, cannot("%s has too many elements", kind)
	}
	var out []int64
	for i := range max(n, 1) {
		if e.late() {
			return nil, cannot("the time has passed")
		}
		v := make([]float64, n)
		if n > 0 {
			v[i] = 1
		}
		r, err := kernel.Eval(kind, attrs, append([]*tensor.Tensor{tensor.FromFloats(tensor.Float64, shape, v)}, rest...), 1)
		if err != nil {
			return nil, cannot("%v", err)
		}
		out = r[0].Shape
		for at, x := range r[0].Float64s() {
			if x != x || math.IsInf(x, 0) {
				return nil, cannot("%s has a result that depends on no element", kind)
			}
			if x != 0 && n > 0 {
				tell(int(i), at, x)
			}
		}
	}
	return out, nil
}

func count(shape []int64) int64 {
	n := int64(1)
	for _, s := range shape {
		n *= s
	}
	return n
}

// concrete operands behind the first.
func (e *evaluator) rest(o *ssa.Op, in []value) ([]*tensor.Tensor, error) {
	var out []*tensor.Tensor
	for i := 1; i < len(in); i++ {
		if in[i].t == nil {
			out = append(out, nil)
			continue
		}
		t, ok := in[i].t.concrete()
		if !ok {
			return nil, cannot("operand %d of %s is not known", i, o.Kind)
		}
		out = append(out, t)
	}
	return out, nil
}

// reduce folds the elements that a result depends on, in any order: for each element of the result, its operands.
func (e *evaluator) reduce(o *ssa.Op, in []value, name string, attrs []ssa.Attr) ([]value, error) {
	rest, err := e.rest(o, in)
	if err != nil {
		return nil, err
	}
	d, err := resultType(o)
	if err != nil {
		return nil, err
	}
	kind := o.Kind
	if name != "ReduceMax" || kind.Name() == "ReduceMax" {
		kind = "onnx::ReduceSum" // the places alone are asked for, which all reductions share
	}
	x := in[0].t
	parts := map[int][]*Term{}
	shape, err := e.units(kind, o.Attrs, x.Shape, rest, func(unit, at int, v float64) { parts[at] = append(parts[at], x.Elems[unit]) })
	if err != nil {
		return nil, err
	}
	out := &Tensor{DType: d, Shape: shape}
	for i := range count(shape) {
		out.Elems = append(out.Elems, e.apply("of "+name, d, attrs, sorted(parts[int(i)])...))
	}
	return one(out), nil
}

// arg finds places of extremes: the order of the elements matters.
func (e *evaluator) arg(o *ssa.Op, in []value) ([]value, error) {
	x := in[0].t
	axis := o.AttrInt("axis", 0)
	attrs := []ssa.Attr{{Name: "keepdims", Value: ssa.Int(o.AttrInt("keepdims", 1))}}
	parts := map[int][]*Term{}
	shape, err := e.units("onnx::ReduceSum", attrs, x.Shape, []*tensor.Tensor{tensor.Ints(axis)}, func(unit, at int, v float64) { parts[at] = append(parts[at], x.Elems[unit]) })
	if err != nil {
		return nil, err
	}
	out := &Tensor{DType: tensor.Int64, Shape: shape}
	for i := range count(shape) {
		out.Elems = append(out.Elems, e.apply("of "+o.Kind.Name(), tensor.Int64, attrsOf(o.Kind, o.Attrs, "axis", "keepdims"), parts[int(i)]...))
	}
	return one(out), nil
}

// times makes a product of terms; constants are multiplied.
func (e *evaluator) times(d tensor.DType, factor float64, args ...*Term) *Term {
	var kept []*Term
	for _, a := range args {
		if a.Value != nil && d.IsFloat() {
			factor *= a.Value.Float64s()[0]
			continue
		}
		kept = append(kept, a)
	}
	if factor != 1 || len(kept) == 0 {
		kept = append(kept, e.constant(tensor.FromFloats(tensor.Float64, []int64{}, []float64{factor})))
	}
	if len(kept) == 1 && kept[0].DType == d {
		return kept[0]
	}
	return e.apply("times", d, nil, sorted(kept)...)
}

// sum makes the sum of products in one accumulator, which starts at 0: a summand that is 0 changes nothing.
func (e *evaluator) sum(d tensor.DType, parts []*Term) *Term {
	parts = slices.DeleteFunc(slices.Clone(parts), func(t *Term) bool {
		zero := func(t *Term) bool { return t.Value != nil && t.Value.Float64s()[0] == 0 }
		return zero(t) || t.Func == "times" && len(t.Args) == 1 && zero(t.Args[0])
	})
	return e.apply("Dot", d, nil, sorted(parts)...)
}

// linear is a sum of multiples of the elements of operand 0.
func (e *evaluator) linear(o *ssa.Op, in []value) ([]value, error) {
	d, err := resultType(o)
	if err != nil {
		return nil, err
	}
	x := in[0].t
	parts := map[int][]*Term{}
	shape, err := e.units(o.Kind, o.Attrs, x.Shape, nil, func(unit, at int, v float64) {
		parts[at] = append(parts[at], e.times(d, v, x.Elems[unit]))
	})
	if err != nil {
		return nil, err
	}
	out := &Tensor{DType: d, Shape: shape}
	for i := range count(shape) {
		out.Elems = append(out.Elems, e.sum(d, parts[int(i)]))
	}
	return one(out), nil
}

// digits is how many elements one run of a kernel tells apart: as powers of four, whose sums float64 holds.
const digits = 24

// product is an operator that is linear in operand 0 and in operand 1, with an offset as operand 2.
func (e *evaluator) product(o *ssa.Op, in []value) ([]value, error) {
	d, err := resultType(o)
	if err != nil {
		return nil, err
	}
	a, b := in[0].t, in[1].t
	most := maxProducts
	if !e.until.IsZero() { // which bounds the time
		most *= 8
	}
	if t := o.Result(0).Tensor(); t != nil && t.Ranked && len(b.Shape) > 0 { // each element of a is a run of the kernel
		if out, err := sizes(t, e.dims); err == nil && float64(len(a.Elems))*float64(count(out))*float64(len(b.Elems))/float64(max(b.Shape[0], 1)) > maxWork {
			return nil, cannot("%s has too many products", o.Kind)
		}
	}
	weights, known := b.concrete()
	known = known && d.IsFloat()
	if len(a.Elems)*len(b.Elems) > most && !known {
		return nil, cannot("%s has too many products", o.Kind)
	}
	alpha, beta := 1.0, 1.0
	attrs := o.Attrs
	if o.Kind == "onnx::Gemm" {
		alpha, beta = float64(float32(o.AttrFloat("alpha", 1))), float64(float32(o.AttrFloat("beta", 1)))
		attrs = slices.DeleteFunc(slices.Clone(attrs), func(a ssa.Attr) bool { return a.Name == "alpha" || a.Name == "beta" })
	}
	parts := map[int][]*Term{}
	var shape []int64
	if known {
		w := tensor.FromFloats(tensor.Float64, weights.Shape, weights.Float64s())
		products := 0
		shape, err = e.units(o.Kind, attrs, a.Shape, []*tensor.Tensor{w}, func(unit, at int, v float64) {
			if products++; products <= e.most() {
				parts[at] = append(parts[at], e.times(d, alpha*v, a.Elems[unit]))
			}
		})
		if err == nil && products > e.most() {
			err = cannot("%s has too many products", o.Kind)
		}
		if err != nil {
			return nil, err
		}
	}
	for from := 0; from < max(1, len(b.Elems)) && !known; from += digits {
		v := make([]float64, len(b.Elems))
		p := 1.0
		for k := from; k < min(from+digits, len(v)); k++ {
			v[k] = p
			p *= 4
		}
		wrong := false
		shape, err = e.units(o.Kind, attrs, a.Shape, []*tensor.Tensor{tensor.FromFloats(tensor.Float64, b.Shape, v)}, func(unit, at int, v float64) {
			n := int64(v)
			for k := 0; n > 0; k++ {
				switch n % 4 {
				case 0:
				case 1:
					parts[at] = append(parts[at], e.times(d, alpha, a.Elems[unit], b.Elems[from+k]))
				default:
					wrong = true
				}
				n /= 4
			}
		})
		if err != nil {
			return nil, err
		}
		if wrong {
			return nil, cannot("%s multiplies by numbers of its own", o.Kind)
		}
	}
	if len(in) > 2 && in[2].t != nil {
		c := in[2].t
		if o.Kind != "onnx::Gemm" { // of channels
			s := slices.Repeat([]int64{1}, len(shape)-1)
			s[0] = int64(len(c.Elems))
			c = &Tensor{DType: c.DType, Shape: s, Elems: c.Elems}
		}
		if c, err = e.expand(c, shape); err != nil {
			return nil, err
		}
		for i, t := range c.Elems {
			parts[i] = append(parts[i], e.times(d, beta, t))
		}
	}
	out := &Tensor{DType: d, Shape: shape}
	for i := range count(shape) {
		out.Elems = append(out.Elems, e.sum(d, parts[int(i)]))
	}
	return one(out), nil
}

// batchNorm normalizes by statistics that are operands.
func (e *evaluator) batchNorm(o *ssa.Op, in []value) ([]value, error) {
	x := in[0].t
	if len(x.Shape) < 2 {
		return nil, cannot("BatchNormalization of rank %d", len(x.Shape))
	}
	vs := []value{in[0]}
	for _, v := range in[1:] {
		s := slices.Repeat([]int64{1}, len(x.Shape)-1)
		s[0] = int64(len(v.t.Elems))
		vs = append(vs, value{t: &Tensor{DType: v.t.DType, Shape: s, Elems: v.t.Elems}})
	}
	return e.each(o, "BatchNormalization.", vs, []ssa.Attr{{Name: "epsilon", Value: ssa.Float(o.AttrFloat("epsilon", 1e-5))}})
}

// groups lists, for each element of x, the elements that a fold over axes takes together with it.
func (e *evaluator) groups(x *Tensor, axes []int64) ([][]*Term, error) {
	parts, of := map[int][]*Term{}, make([]int, len(x.Elems))
	_, err := e.units("onnx::ReduceSum", nil, x.Shape, []*tensor.Tensor{tensor.Ints(axes...)}, func(unit, at int, v float64) {
		parts[at] = append(parts[at], x.Elems[unit])
		of[unit] = at
	})
	if err != nil {
		return nil, err
	}
	out := make([][]*Term, len(of))
	for i, at := range of {
		out[i] = sorted(parts[at])
	}
	return out, nil
}

func (e *evaluator) softmax(o *ssa.Op, in []value) ([]value, error) {
	x := in[0].t
	groups, err := e.groups(x, []int64{o.AttrInt("axis", -1)})
	if err != nil {
		return nil, err
	}
	out := &Tensor{DType: x.DType, Shape: x.Shape}
	for i, t := range x.Elems {
		out.Elems = append(out.Elems, e.apply("of "+o.Kind.Name(), x.DType, nil, append([]*Term{t}, groups[i]...)...))
	}
	return one(out), nil
}

// norm is LayerNormalization and RMSNormalization: the element, its scale and its offset, then the elements it is normalized with.
func (e *evaluator) norm(o *ssa.Op, in []value) ([]value, error) {
	x := in[0].t
	axis := o.AttrInt("axis", -1)
	if axis < 0 {
		axis += int64(len(x.Shape))
	}
	var axes []int64
	for a := axis; a < int64(len(x.Shape)); a++ {
		axes = append(axes, a)
	}
	groups, err := e.groups(x, axes)
	if err != nil {
		return nil, err
	}
	scale, err := e.expand(in[1].t, x.Shape)
	if err != nil {
		return nil, err
	}
	var bias *Tensor
	if len(in) > 2 && in[2].t != nil {
		if bias, err = e.expand(in[2].t, x.Shape); err != nil {
			return nil, err
		}
	}
	attrs := attrsOf(o.Kind, o.Attrs, "axis")
	out := &Tensor{DType: x.DType, Shape: x.Shape}
	for i, t := range x.Elems {
		offset := e.zero(x.DType)
		if bias != nil {
			offset = bias.Elems[i]
		}
		out.Elems = append(out.Elems, e.apply("of "+o.Kind.Name(), x.DType, attrs, append([]*Term{t, scale.Elems[i], offset}, groups[i]...)...))
	}
	return one(out), nil
}

// recurrent is opaque; a bias and a state that are absent are zeros, as the standard says.
func (e *evaluator) recurrent(o *ssa.Op, in []value) ([]value, error) {
	in = slices.Clone(in)
	for len(in) > 0 && in[len(in)-1].t == nil {
		in = in[:len(in)-1]
	}
	for _, i := range []int{5, 6} {
		if i < len(in) && in[i].t != nil && !slices.ContainsFunc(in[i].t.Elems, func(t *Term) bool { return t != e.zero(t.DType) }) {
			in[i] = value{}
		}
	}
	for len(in) > 0 && in[len(in)-1].t == nil {
		in = in[:len(in)-1]
	}
	return e.opaque(o, in)
}

// opaque makes every element of a result a function of all elements of the operands, of which nothing is known.
func (e *evaluator) opaque(o *ssa.Op, in []value) ([]value, error) {
	var args []*Term
	for _, v := range in {
		if v.isList {
			return nil, cannot("%s has a sequence", o.Kind)
		}
		if v.t != nil {
			args = append(args, v.t.Elems...)
		}
	}
	if len(args) > 256 {
		return nil, cannot("%s has too many elements", o.Kind)
	}
	shapes := ""
	for _, v := range in {
		if v.t == nil {
			shapes += "-"
		} else {
			shapes += fmt.Sprint(v.t.Shape, v.t.DType)
		}
	}
	out := make([]value, len(o.Results))
	for i, r := range o.Results {
		t := r.Tensor()
		if t == nil || !t.Ranked || t.DType == tensor.Undefined {
			return nil, cannot("the type of a result of %s is unknown", o.Kind)
		}
		x := &Tensor{DType: t.DType, Shape: []int64{}}
		for _, d := range t.Dims {
			n, ok := d.Eval(e.dims)
			if !ok {
				return nil, cannot("%s has no expression, and its sizes are not known", o.Kind)
			}
			x.Shape = append(x.Shape, n)
		}
		for k := range count(x.Shape) {
			x.Elems = append(x.Elems, e.apply(fmt.Sprintf("%s(%s).%d.%d", o.Kind, shapes, i, k), t.DType, attrsOf(o.Kind, o.Attrs), args...))
		}
		out[i].t = x
	}
	return out, nil
}

// choice evaluates both branches of an If, and chooses element by element where the condition is not known.
func (e *evaluator) choice(o *ssa.Op, in []value, env map[*ssa.Value]value) ([]value, error) {
	c := in[0].t.Elems[0]
	if c.Value != nil {
		b := o.Blocks[0]
		if c.Value.Int64s()[0] == 0 {
			b = o.Blocks[1]
		}
		return e.block(b, env)
	}
	yes, err := e.block(o.Blocks[0], env)
	if err != nil {
		return nil, err
	}
	no, err := e.block(o.Blocks[1], env)
	if err != nil {
		return nil, err
	}
	out := make([]value, len(yes))
	for i := range yes {
		a, b := yes[i].t, no[i].t
		if a == nil || b == nil || a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) {
			return nil, cannot("the branches of an If have results of other sizes")
		}
		t := &Tensor{DType: a.DType, Shape: a.Shape}
		for k := range a.Elems {
			t.Elems = append(t.Elems, e.apply("Where", a.DType, nil, c, a.Elems[k], b.Elems[k]))
		}
		out[i].t = t
	}
	return out, nil
}

// maxTrips bounds the iterations of a loop.
const maxTrips = 8

// loop unrolls a Loop whose trips are known.
func (e *evaluator) loop(o *ssa.Op, in []value, env map[*ssa.Value]value) ([]value, error) {
	trips := int64(maxTrips + 1)
	if in[0].t != nil {
		t, ok := in[0].t.concrete()
		if !ok {
			return nil, cannot("the trips of a Loop are not known")
		}
		trips = t.Int64s()[0]
	}
	going := e.boolean(true)
	if in[1].t != nil {
		going = in[1].t.Elems[0]
	}
	body := o.Blocks[0]
	state := slices.Clone(in[2:])
	scans := make([][]*Tensor, len(o.Results)-len(state))
	for i := int64(0); i < trips; i++ {
		if going.Value == nil {
			return nil, cannot("the condition of a Loop is not known")
		}
		if going.Value.Int64s()[0] == 0 {
			break
		}
		if i >= maxTrips {
			return nil, cannot("a Loop of more than %d trips", maxTrips)
		}
		env[body.Params[0]] = value{t: e.constants(tensor.ScalarInt(i))}
		env[body.Params[1]] = value{t: &Tensor{DType: tensor.Bool, Shape: []int64{}, Elems: []*Term{going}}}
		for k, v := range state {
			env[body.Params[2+k]] = v
		}
		out, err := e.block(body, env)
		if err != nil {
			return nil, err
		}
		going = out[0].t.Elems[0]
		copy(state, out[1:])
		for k, v := range out[1+len(state):] {
			scans[k] = append(scans[k], v.t)
		}
	}
	for _, parts := range scans {
		if len(parts) == 0 {
			return nil, cannot("a Loop without trips has no scanned elements")
		}
		t := &Tensor{DType: parts[0].DType, Shape: append([]int64{int64(len(parts))}, parts[0].Shape...)}
		for _, p := range parts {
			if !slices.Equal(p.Shape, parts[0].Shape) {
				return nil, cannot("a Loop scans elements of other sizes")
			}
			t.Elems = append(t.Elems, p.Elems...)
		}
		state = append(state, value{t: t})
	}
	return state, nil
}
