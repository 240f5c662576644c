// Package kernel computes ONNX operators on constant tensors: one set of
// reference kernels for folding, for the interpreter, and for judging both.
//
// Operators are taken in their newest encoding. float16 and bfloat16 are
// computed in float32 and rounded once at the end; integers wrap around.
// Reductions, convolutions and products accumulate in float64.
package kernel

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Supported reports that Eval knows the operator.
func Supported(kind ssa.Kind) bool {
	return kind.Namespace() == onnx.Namespace && find(kind.Name()) != nil
}

// Eval computes an operator. Absent optional inputs are nil; absent optional
// outputs may be nil. Results may share storage with inputs. Inputs that the
// operator cannot take are an error, never a panic.
func Eval(kind ssa.Kind, attrs []ssa.Attr, inputs []*tensor.Tensor, numOutputs int) (out []*tensor.Tensor, err error) {
	f := find(kind.Name())
	schema := onnx.SchemaOf(kind)
	if kind.Namespace() != onnx.Namespace || f == nil || schema == nil {
		return nil, fmt.Errorf("%s has no kernel", kind)
	}
	for i, p := range schema.Inputs {
		if p.Option == onnx.Single && (i >= len(inputs) || inputs[i] == nil) {
			return nil, fmt.Errorf("%s: input %s is absent", kind, p.Name)
		}
	}
	if least, _ := onnx.Arity(schema.Inputs); len(inputs) < least {
		return nil, fmt.Errorf("%s takes %d inputs, not %d", kind, least, len(inputs))
	}
	for i, t := range inputs {
		if p := schema.Input(i); t == nil && p != nil && (p.Option == onnx.Variadic || p.Option == onnx.VariadicMixed) {
			return nil, fmt.Errorf("%s: input %d is absent", kind, i)
		}
		if t != nil && !t.HasData() {
			return nil, fmt.Errorf("%s: the elements of input %d are not at hand", kind, i)
		}
		if t == nil {
			continue
		}
		if p := schema.Input(i); p == nil || !p.Types.HasTensor(t.DType) {
			return nil, fmt.Errorf("%s: input %d cannot be %v", kind, i, t)
		}
	}
	c := &call{kind: kind, schema: schema, attrs: attrs, in: inputs, n: numOutputs}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			out, err = nil, fmt.Errorf("%s: %s", kind, string(r))
		case runtime.Error: // an index or a size that the operator's inputs made impossible
			what, cause := strings.CutPrefix(r.Error(), "runtime error: ")
			if !cause || strings.Contains(what, "nil pointer") { // no inputs may lead to that
				panic(r)
			}
			out, err = nil, fmt.Errorf("%s: inputs do not fit: %s", kind, what)
		case string: // the same, found by package tensor
			out, err = nil, fmt.Errorf("%s: inputs do not fit: %s", kind, r)
		default:
			panic(r)
		}
	}()
	return c.run(f), nil
}

// failure is the panic value of call.fail.
type failure string

// call is one evaluation.
type call struct {
	kind   ssa.Kind
	schema *onnx.OpSchema
	attrs  []ssa.Attr
	in     []*tensor.Tensor
	n      int // results that are wanted
}

type kernel func(c *call) []*tensor.Tensor

// run computes with half-precision inputs widened to float32.
func (c *call) run(f kernel) []*tensor.Tensor {
	if onnx.Moves(c.kind) {
		return c.trim(f(c))
	}
	widened := false
	in := make([]*tensor.Tensor, len(c.in))
	vars := map[string]tensor.DType{} // the half type that a type variable stands for
	for i, t := range c.in {
		in[i] = t
		if t == nil || t.DType != tensor.Float16 && t.DType != tensor.BFloat16 {
			continue
		}
		if p := c.schema.Input(i); p != nil {
			vars[p.Var] = t.DType
		}
		in[i] = cast(t, tensor.Float32)
		widened = true
	}
	if !widened {
		return c.trim(f(c))
	}
	wide := *c
	wide.in = in
	if p := c.schema.Output(1); c.kind == "onnx::LinearAttention" && c.t(3) == nil && p != nil {
		vars[p.Var] = c.t(0).DType // a state that starts at zero has the query's type
	}
	out := f(&wide)
	for i, t := range out {
		if p := c.schema.Output(i); t != nil && p != nil && t.DType == tensor.Float32 {
			if d, ok := vars[p.Var]; ok {
				out[i] = cast(t, d)
			}
		}
	}
	return c.trim(out)
}

func (c *call) trim(out []*tensor.Tensor) []*tensor.Tensor {
	if len(out) > c.n {
		out = out[:c.n]
	}
	return out
}

func (c *call) fail(format string, args ...any) {
	panic(failure(fmt.Sprintf(format, args...)))
}

// t is input i, nil if it is absent.
func (c *call) t(i int) *tensor.Tensor {
	if i < len(c.in) {
		return c.in[i]
	}
	return nil
}

func (c *call) has(name string) bool {
	for i := range c.attrs {
		if c.attrs[i].Name == name {
			return !c.attrs[i].Value.IsNone()
		}
	}
	return false
}

// attr is an attribute or its default value.
func (c *call) attr(name string) ssa.Literal {
	for i := range c.attrs {
		if c.attrs[i].Name == name {
			return c.attrs[i].Value
		}
	}
	if a := c.schema.Attr(name); a != nil {
		l, _ := a.Value()
		return l
	}
	return ssa.None
}

func (c *call) int(name string) int64  { return c.attr(name).Int() }
func (c *call) flag(name string) bool  { return c.attr(name).Int() != 0 }
func (c *call) str(name string) string { return c.attr(name).Str() }

// float is a float attribute: ONNX stores them in float32.
func (c *call) float(name string) float64 { return float64(float32(c.attr(name).Float())) }

// ints is a list attribute, nil if it is absent and has no default.
func (c *call) ints(name string) []int64 {
	v, _ := c.attr(name).IntList()
	return v
}

func (c *call) floats(name string) []float64 {
	v, _ := c.attr(name).FloatList()
	return v
}

func (c *call) strs(name string) []string {
	var out []string
	for _, e := range c.attr(name).Elems {
		out = append(out, e.Str())
	}
	return out
}

// scalar is the only element of an integer input, def if it is absent.
func (c *call) scalar(i int, def int64) int64 {
	t := c.t(i)
	if t == nil {
		return def
	}
	if t.NumElements() != 1 {
		c.fail("input %d has %d elements, not 1", i, t.NumElements())
	}
	return t.Int64s()[0]
}

// fscalar is the only element of a float input, def if it is absent.
func (c *call) fscalar(i int, def float64) float64 {
	t := c.t(i)
	if t == nil {
		return def
	}
	if t.NumElements() != 1 {
		c.fail("input %d has %d elements, not 1", i, t.NumElements())
	}
	return t.Float64s()[0]
}

func (c *call) axis(a int64, rank int) int {
	if a < 0 {
		a += int64(rank)
	}
	if a < 0 || a >= int64(rank) {
		c.fail("axis %d is out of range for rank %d", a, rank)
	}
	return int(a)
}

// dtype is an attribute that names an element type, def if it is absent or 0.
func (c *call) dtype(name string, def tensor.DType) tensor.DType {
	n := c.attr(name).Int()
	if n == 0 {
		return def
	}
	d := tensor.FromONNX(int(n))
	if d == tensor.Undefined {
		c.fail("element type %d is not supported", n)
	}
	return d
}

// maxElements bounds what an operator may create from nothing: Expand, ConstantOfShape, Range ...
const maxElements = 1 << 31

// count is the number of elements of a shape; impossible shapes fail.
func (c *call) count(shape []int64) int64 {
	n := int64(1)
	for _, s := range shape {
		if s < 0 {
			c.fail("negative size in shape %v", shape)
		}
		if s > 0 && n > maxElements/s {
			c.fail("shape %v is too large", shape)
		}
		n *= s
	}
	return n
}

func one(t *tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{t} }

// parallel splits 0..n into two ranges that run at the same time, if there is enough work.
func parallel(n, work int, f func(from, to int)) {
	if runtime.GOMAXPROCS(0) < 2 || n < 2 || work < 1<<16 {
		f(0, n)
		return
	}
	var wg sync.WaitGroup
	var crash any
	wg.Add(1)
	go func() {
		defer wg.Done()
		defer func() { crash = recover() }()
		f(n/2, n)
	}()
	func() {
		defer wg.Wait()
		f(0, n/2)
	}()
	if crash != nil {
		panic(crash)
	}
}

// find gives the kernel of an operator, nil if there is none. A composite operator has its body.
func find(name string) kernel {
	for _, family := range [...]func(string) kernel{
		elementwise, movement, reduction, product, convolution, normalization, recurrent, sampling, sorting, scattering, quantization, signal, detection,
	} {
		if f := family(name); f != nil {
			return f
		}
	}
	if kind := ssa.Kind(onnx.Namespace + "::" + name); onnx.HasBody(kind) && onnx.Gaps(kind).Kernel == "" {
		return evalBody
	}
	return nil
}
