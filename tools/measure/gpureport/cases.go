package main

import (
	"fmt"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// graph builds the module of a case. Inputs and weights are both parameters: no element of them decides about a kernel.
type graph struct {
	m *ssa.Module
	f *ssa.Func
	b onnx.Builder
	n int
}

func newGraph() *graph {
	m := ssa.NewModule(onnx.Dialect{})
	m.Opsets = map[string]int{"": onnx.Newest}
	f := m.NewFunc("main")
	return &graph{m: m, f: f, b: onnx.Builder{Block: f.Body}}
}

func (g *graph) param(d tensor.DType, shape ...int64) *ssa.Value {
	t := ssa.Tensor(d)
	for _, n := range shape {
		t.Dims = append(t.Dims, sym.Const(n))
	}
	g.n++
	return g.f.Body.AddParam(fmt.Sprintf("x%d", g.n), t)
}

func (g *graph) f32(shape ...int64) *ssa.Value { return g.param(tensor.Float32, shape...) }

func (g *graph) ints(v ...int64) *ssa.Value { return g.b.Const(tensor.Ints(v...)) }

func (g *graph) scalar(d tensor.DType, v float64) *ssa.Value {
	return g.b.Const(tensor.FromFloats(d, []int64{}, []float64{v}))
}

// op is an operator with one result.
func (g *graph) op(kind string, attrs []ssa.Attr, in ...*ssa.Value) *ssa.Value {
	return g.ops(kind, attrs, 1, in...)[0]
}

func (g *graph) ops(kind string, attrs []ssa.Attr, results int, in ...*ssa.Value) []*ssa.Value {
	types := make([]ssa.Type, results)
	for i := range types {
		types[i] = ssa.AnyTensor
	}
	o := g.f.Body.Append(ssa.Kind("onnx::"+kind), 0, in, types...)
	o.Attrs = attrs
	return o.Results
}

// built is the module with what a workload builds.
func (g *graph) built(f func(g *graph) []*ssa.Value) *ssa.Module {
	g.f.Body.SetReturns(f(g)...)
	return g.m
}

func number(name string, v int64) ssa.Attr { return ssa.Attr{Name: name, Value: ssa.Int(v)} }

func list(name string, v ...int64) ssa.Attr { return ssa.Attr{Name: name, Value: ssa.Ints(v...)} }

func attrs(a ...ssa.Attr) []ssa.Attr { return a }

// suite is a table of the report.
type suite struct {
	name  string
	title string
	cases []workload
}

// workload is a line of a table.
type workload struct {
	name  string
	build func(g *graph) []*ssa.Value
	// goal is what is asked of it, zero if nothing is.
	goal goal
}

// goal is what a line should keep to; a field that is 0 asks nothing.
type goal struct {
	l2       float64 // bytes that are asked of the L2 cache, against the least
	memory   float64 // bytes to and from memory, against the least
	launches int
	plan     float64 // the arena against the bytes that live at once
	growth   float64 // the arena against that of the line before
}

func one(op string, a []ssa.Attr, shapes ...[]int64) func(g *graph) []*ssa.Value {
	return func(g *graph) []*ssa.Value {
		var in []*ssa.Value
		for _, s := range shapes {
			in = append(in, g.f32(s...))
		}
		return []*ssa.Value{g.op(op, a, in...)}
	}
}

type shape = []int64

var stream = goal{l2: 1.05}

// suites are all tables. Sizes are those of a layer of a model of 7 billion parameters, of ResNet-50 with 32 images, and of products and
// sequences as they are published for other libraries.
func suites() []suite {
	own := []suite{
		{"elementwise", "Element by element", []workload{
			{"Add f32 8192x4096", one("Add", nil, shape{8192, 4096}, shape{8192, 4096}), stream},
			{"Gelu f32 8192x4096", one("Gelu", nil, shape{8192, 4096}), stream},
			{"Add of a row f32 8192x4096", one("Add", nil, shape{8192, 4096}, shape{4096}), stream},
			{"Add of a column f32 8192x4096", one("Add", nil, shape{8192, 4096}, shape{8192, 1}), stream},
			{"Gelu of a sum with a row f16 8192x4096", func(g *graph) []*ssa.Value {
				return []*ssa.Value{g.op("Gelu", nil, g.op("Add", nil, g.param(tensor.Float16, 8192, 4096), g.param(tensor.Float16, 4096)))}
			}, stream},
			{"Transpose f32 8192x4096", one("Transpose", attrs(list("perm", 1, 0)), shape{8192, 4096}), stream},
		}},
		{"reductions", "Reductions and normalizations", []workload{
			{"ReduceSum of rows f32 8192x4096", func(g *graph) []*ssa.Value {
				return []*ssa.Value{g.op("ReduceSum", nil, g.f32(8192, 4096), g.ints(1))}
			}, stream},
			{"ReduceSum of columns f32 8192x4096", func(g *graph) []*ssa.Value {
				return []*ssa.Value{g.op("ReduceSum", nil, g.f32(8192, 4096), g.ints(0))}
			}, stream},
			{"Softmax f32 8192x4096", one("Softmax", nil, shape{8192, 4096}), stream},
			{"Softmax f32 8192x1024", one("Softmax", nil, shape{8192, 1024}), stream},
			{"Softmax f32 1024x32000", one("Softmax", nil, shape{1024, 32000}), stream},
			{"LayerNormalization f32 8192x4096", one("LayerNormalization", nil, shape{8192, 4096}, shape{4096}, shape{4096}), stream},
			{"LayerNormalization f32 8192x768", one("LayerNormalization", nil, shape{8192, 768}, shape{768}, shape{768}), stream},
			{"RMSNormalization f32 8192x4096", one("RMSNormalization", nil, shape{8192, 4096}, shape{4096}), stream},
			{"GroupNormalization f32 8x320x64x64, 32 groups", one("GroupNormalization", attrs(number("num_groups", 32)), shape{8, 320, 64, 64}, shape{320}, shape{320}), stream},
		}},
		{"products", "Products of matrices", []workload{
			{"MatMul f32 4096", one("MatMul", nil, shape{4096, 4096}, shape{4096, 4096}), goal{memory: 1.15}},
			{"MatMul f16 4096", func(g *graph) []*ssa.Value {
				return []*ssa.Value{g.op("MatMul", nil, g.param(tensor.Float16, 4096, 4096), g.param(tensor.Float16, 4096, 4096))}
			}, goal{memory: 1.15}},
			{"Gemm f16 4096, the second one transposed", func(g *graph) []*ssa.Value {
				return []*ssa.Value{g.op("Gemm", attrs(number("transB", 1)), g.param(tensor.Float16, 4096, 4096), g.param(tensor.Float16, 4096, 4096))}
			}, goal{memory: 1.15}},
			{"MatMulInteger u8 by s8 4096", func(g *graph) []*ssa.Value {
				return []*ssa.Value{g.op("MatMulInteger", nil, g.param(tensor.Uint8, 4096, 4096), g.param(tensor.Int8, 4096, 4096), g.param(tensor.Uint8))}
			}, goal{memory: 1.15}},
			{"MatMul f32 1x4096 by 4096x4096", one("MatMul", nil, shape{1, 4096}, shape{4096, 4096}), goal{}},
			{"MatMul f64 1024", func(g *graph) []*ssa.Value {
				return []*ssa.Value{g.op("MatMul", nil, g.param(tensor.Float64, 1024, 1024), g.param(tensor.Float64, 1024, 1024))}
			}, goal{}},
		}},
		{"convolutions", "Convolutions of ResNet-50, 32 images", []workload{
			conv("7x7 stride 2, 3 to 64", 3, 64, 224, 7, 2),
			conv("1x1, 64 to 256, 56x56", 64, 256, 56, 1, 1),
			conv("3x3, 64 to 64, 56x56", 64, 64, 56, 3, 1),
			conv("3x3, 128 to 128, 28x28", 128, 128, 28, 3, 1),
			conv("3x3, 256 to 256, 14x14", 256, 256, 14, 3, 1),
			conv("1x1, 1024 to 256, 14x14", 1024, 256, 14, 1, 1),
			conv("3x3, 512 to 512, 7x7", 512, 512, 7, 3, 1),
			conv("1x1, 512 to 2048, 7x7", 512, 2048, 7, 1, 1),
		}},
		{"attention", "Attention, 8 heads of 64", lengths(512, 1024, 2048)},
		{"models", "Models", []workload{
			{"ResNet-18, f32, 1x3x224x224", resnet([]int{2, 2, 2, 2}, false, 1), goal{plan: 1.05}},
			{"ResNet-50, f32, 1x3x224x224", resnet([]int{3, 4, 6, 3}, true, 1), goal{launches: 60, plan: 1.05}},
			{"layer of Llama 8B, f16, 1 token after 2047", llama(tensor.Float16, 1, 2047), goal{launches: 12, plan: 1.05}},
		}},
	}
	return append(own, tritonSuite(own))
}

func lengths(of ...int64) (out []workload) {
	for _, kind := range []struct {
		name  string
		d     tensor.DType
		whole bool
	}{{"MatMul, Softmax, MatMul f32", tensor.Float32, false}, {"MatMul, Softmax, MatMul f16", tensor.Float16, false}, {"Attention f32", tensor.Float32, true}, {"Attention f16", tensor.Float16, true}} {
		for i, n := range of {
			w := workload{fmt.Sprintf("%s, length %d", kind.name, n), attention(kind.d, n, kind.whole), goal{}}
			if kind.d == tensor.Float16 {
				w.goal.memory = 1
			}
			if i > 0 {
				w.goal.growth = float64(n) / float64(of[i-1]) * 1.05
			}
			out = append(out, w)
		}
	}
	return out
}

func conv(name string, in, out, size, kernel, stride int64) workload {
	p := kernel / 2
	a := attrs(list("pads", p, p, p, p), list("strides", stride, stride), list("kernel_shape", kernel, kernel))
	return workload{"Conv f32 " + name, one("Conv", a, shape{32, in, size, size}, shape{out, in, kernel, kernel}, shape{out}), goal{}}
}

// resnet is ResNet with 50 or 18 layers as torchvision has it and as it is exported: normalizations are in the weights.
func resnet(blocks []int, bottleneck bool, batch int64) func(g *graph) []*ssa.Value {
	return func(g *graph) []*ssa.Value {
		conv := func(x *ssa.Value, in, out, kernel, stride int64) *ssa.Value {
			p := kernel / 2
			a := attrs(list("pads", p, p, p, p), list("strides", stride, stride), list("kernel_shape", kernel, kernel))
			return g.op("Conv", a, x, g.f32(out, in, kernel, kernel), g.f32(out))
		}
		relu := func(x *ssa.Value) *ssa.Value { return g.op("Relu", nil, x) }
		x := relu(conv(g.f32(batch, 3, 224, 224), 3, 64, 7, 2))
		x = g.op("MaxPool", attrs(list("kernel_shape", 3, 3), list("strides", 2, 2), list("pads", 1, 1, 1, 1)), x)
		in := int64(64)
		for stage, n := range blocks {
			width := int64(64) << stage
			for i := range n {
				stride, out := int64(1), width
				if i == 0 && stage > 0 {
					stride = 2
				}
				y := x
				if bottleneck {
					out = 4 * width
					y = relu(conv(y, in, width, 1, 1))
					y = relu(conv(y, width, width, 3, stride))
					y = conv(y, width, out, 1, 1)
				} else {
					y = relu(conv(y, in, width, 3, stride))
					y = conv(y, width, width, 3, 1)
				}
				if stride != 1 || in != out {
					x = conv(x, in, out, 1, stride)
				}
				x, in = relu(g.op("Add", nil, y, x)), out
			}
		}
		x = g.op("Flatten", attrs(number("axis", 1)), g.op("GlobalAveragePool", nil, x))
		return []*ssa.Value{g.op("Gemm", attrs(number("transB", 1)), x, g.f32(1000, in), g.f32(1000))}
	}
}

// llama is a layer of a Llama of 8 billion parameters with its cache, as it is exported at opset 24: some new tokens behind those of the past.
func llama(d tensor.DType, tokens, past int64) func(g *graph) []*ssa.Value {
	const hidden, heads, kv, size, inner = 4096, 32, 8, 128, 14336
	return func(g *graph) []*ssa.Value {
		linear := func(x *ssa.Value, in, out int64) *ssa.Value { return g.op("MatMul", nil, x, g.param(d, in, out)) }
		norm := func(x *ssa.Value) *ssa.Value {
			return g.op("RMSNormalization", attrs(number("axis", -1)), x, g.param(d, hidden))
		}
		x := g.param(d, 1, tokens, hidden)
		cos, sin := g.param(d, 1, tokens, size/2), g.param(d, 1, tokens, size/2)
		n := norm(x)
		rotate := func(x *ssa.Value, heads int64) *ssa.Value {
			return g.op("RotaryEmbedding", attrs(number("num_heads", heads)), x, cos, sin)
		}
		q, k, v := rotate(linear(n, hidden, hidden), heads), rotate(linear(n, hidden, kv*size), kv), linear(n, hidden, kv*size)
		mask := g.param(tensor.Bool, tokens, past+tokens)
		a := g.ops("Attention", attrs(number("q_num_heads", heads), number("kv_num_heads", kv)), 3, q, k, v, mask, g.param(d, 1, kv, past, size), g.param(d, 1, kv, past, size))
		x = g.op("Add", nil, x, linear(a[0], hidden, hidden))
		n = norm(x)
		gate := linear(n, hidden, inner)
		gated := g.op("Mul", nil, g.op("Mul", nil, gate, g.op("Sigmoid", nil, gate)), linear(n, hidden, inner))
		return []*ssa.Value{g.op("Add", nil, x, linear(gated, inner, hidden)), a[1], a[2]}
	}
}

// attention is that of 8 heads of 64 elements, each of length places, as one operator, or as the products and the Softmax that older opsets have.
func attention(d tensor.DType, length int64, whole bool) func(g *graph) []*ssa.Value {
	return func(g *graph) []*ssa.Value {
		q, k, v := g.param(d, 1, 8, length, 64), g.param(d, 1, 8, length, 64), g.param(d, 1, 8, length, 64)
		if whole {
			return []*ssa.Value{g.op("Attention", nil, q, k, v)}
		}
		s := g.op("MatMul", nil, g.op("Mul", nil, q, g.scalar(d, 0.125)), g.op("Transpose", attrs(list("perm", 0, 1, 3, 2)), k))
		return []*ssa.Value{g.op("MatMul", nil, g.op("Softmax", attrs(number("axis", -1)), s), v)}
	}
}
