package exec_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/bound"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// randomGraph chains operators of all classes on tensors of rank 3, and returns two of the values.
func randomGraph(r *rand.Rand, d tensor.DType) (*ssa.Module, []interp.Value) {
	m := ssa.NewModule(onnx.Dialect{})
	m.Opsets = map[string]int{"": onnx.Newest}
	f := m.NewFunc("main")
	b := &onnx.Builder{Block: f.Body}
	var args []interp.Value
	var values []*ssa.Value
	for i := range 2 {
		x := fill(d, []int64{2, 6, 8}, r.Uint64(), false)
		values = append(values, f.Body.AddParam(fmt.Sprintf("x%d", i), ssa.TensorOf(x)))
		args = append(args, interp.Of(x))
	}
	weight := func(shape ...int64) *ssa.Value { return b.Const(fill(d, shape, r.Uint64(), false)) }
	pick := func() *ssa.Value { // mostly the last one, for chains
		if r.IntN(4) > 0 {
			return values[len(values)-1]
		}
		return values[len(values)-1-r.IntN(min(len(values), 4))]
	}
	for range 4 + r.IntN(14) {
		x := pick()
		shape, _ := x.Tensor().Static()
		last := shape[2]
		var y *ssa.Value
		switch r.IntN(14) {
		case 0, 1:
			y = b.Op([]string{"Relu", "Tanh", "Neg", "Sigmoid", "Abs"}[r.IntN(5)], x)
		case 2, 3:
			y = b.Op([]string{"Add", "Mul", "Sub", "Max"}[r.IntN(4)], x, weight([][]int64{{last}, {shape[1], 1}, {1}, {shape[0], 1, last}}[r.IntN(4)]...))
		case 4, 5: // two values of one shape: skip connections
			for _, v := range values {
				if s, _ := v.Tensor().Static(); v != x && fmt.Sprint(s) == fmt.Sprint(shape) {
					y = b.Add(x, v)
				}
			}
			if y == nil {
				y = b.Mul(x, x)
			}
		case 6:
			y = b.Transpose(x, onnx.Perm([][]int64{{0, 2, 1}, {1, 0, 2}, {2, 1, 0}}[r.IntN(3)]...))
		case 7:
			y = b.Reshape(x, b.Const(tensor.Ints(shape[0], last, shape[1])))
		case 8:
			y = b.Slice(x, b.Const(tensor.Ints(last-1)), b.Const(tensor.Ints(-100)), b.Const(tensor.Ints(2)), b.Const(tensor.Ints(-1)))
		case 9:
			y = b.MatMul(x, weight(last, []int64{3, 8, 20}[r.IntN(3)]))
		case 10:
			y = b.Softmax(x, onnx.Axis(-1))
		case 11:
			y = b.Sub(x, b.ReduceMean(x, b.Const(tensor.Ints(int64(r.IntN(3))))))
		case 12:
			y = b.Concat(1, x, b.Neg(x))
		default:
			y = b.Gather(x, b.Const(tensor.Ints(0, -1)), onnx.Axis(r.IntN(2)))
		}
		values = append(values, y)
	}
	f.Body.SetReturns(values[len(values)-1], pick())
	return m, args
}

// Fusion changes no bit: each operator rounds as if its result were stored. Each node alone is what the interpreter gives.
func TestFusion(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	fused := 0
	for i := range 60 {
		m, args := randomGraph(r, []tensor.DType{tensor.Float32, tensor.Float16, tensor.Float64}[i%3])
		var results [][]interp.Value
		for _, mode := range []fuse.Mode{fuse.None, fuse.Light} {
			p, err := plan.New(m, mode)
			if err != nil {
				t.Fatal(err)
			}
			counts, share := p.Coverage()
			if share != 1 {
				t.Errorf("graph %d: %v", i, counts)
			}
			fused += counts[plan.Fused]
			s := exec.NewSession(p, &exec.Sim{Check: true})
			out, _, err := s.Run(args)
			if err != nil {
				t.Fatalf("graph %d, %s: %v\n%s", i, mode, err, m.Main())
			}
			results = append(results, out)
			if mode == fuse.None && i < 12 {
				nodes, err := exec.CheckNodes(p, s, args, false)
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range nodes {
					if n.Bad() {
						t.Errorf("graph %d: %s", i, &n)
					}
				}
			}
		}
		for k := range results[0] {
			if x, y := results[0][k].Tensor, results[1][k].Tensor; !bytes.Equal(x.Bytes(), y.Bytes()) {
				t.Errorf("graph %d: result %d: fused %s\n%s", i, k, bound.Measure(y, x, nil), m.Main())
			}
		}
	}
	if fused < 60 {
		t.Errorf("%d nodes were fused in all graphs: the test shows little", fused)
	}
}

// Nor do results that are stored as vectors, with what is added to them read as vectors: a shortcut of the same shape, where rows have whole vectors and where not.
func TestFusedShortcut(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Float16, tensor.Float32, tensor.Float64} {
		for _, side := range []int64{8, 7} {
			g, m := newGraph(d)
			y := g.Conv(g.in(2, 64, side, side), g.in(128, 64, 1, 1), nil)
			shortcut := g.in(2, 128, side, side)
			m.Main().Body.SetReturns(g.Relu(g.Add(y, shortcut)))
			var results [][]byte
			for _, mode := range []fuse.Mode{fuse.None, fuse.Light} {
				p, err := plan.New(m, mode)
				if err != nil {
					t.Fatal(err)
				}
				out, report, err := exec.NewSession(p, &exec.Sim{Check: true, Count: true}).Run(g.args)
				if err != nil {
					t.Fatalf("%v\n%s", err, kernels(p))
				}
				again, _, err := exec.NewSession(p, &routes{exec.Sim{Check: true}}).Run(g.args)
				if err != nil || !bytes.Equal(again[0].Tensor.Bytes(), out[0].Tensor.Bytes()) {
					t.Errorf("%s: the routes differ: %v", d, err)
				}
				results = append(results, out[0].Tensor.Bytes())
				if mode == fuse.None {
					continue
				}
				if len(report.Steps) != 1 {
					t.Errorf("%s: %d launches", d, len(report.Steps))
				}
				if c := report.Steps[0].Counts; side == 8 && d != tensor.Float16 && (c.Sectors == 0 || c.Uncoalesced() != 0) {
					t.Errorf("%s: %.4f of %d sectors uncoalesced", d, c.Uncoalesced(), c.Sectors)
				}
			}
			if !bytes.Equal(results[0], results[1]) {
				t.Errorf("%s, %d: fused gives other bits", d, side)
			}
		}
	}
}

// Nor does it in a product on tensor cores: of a function of a tensor by a transposed one, with a row added, of which a part is left out.
func TestFusedMatrixProduct(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Float16, tensor.BFloat16} {
		m := ssa.NewModule(onnx.Dialect{})
		m.Opsets = map[string]int{"": onnx.Newest}
		f := m.NewFunc("main")
		b := &onnx.Builder{Block: f.Body}
		var args []interp.Value
		param := func(shape ...int64) *ssa.Value {
			x := fill(d, shape, uint64(len(args)+1), false)
			args = append(args, interp.Of(x))
			return f.Body.AddParam(fmt.Sprintf("x%d", len(args)), ssa.TensorOf(x))
		}
		x, w := b.Relu(param(160, 64)), b.Transpose(param(128, 64), onnx.Perm(1, 0))
		y := b.Tanh(b.Add(b.MatMul(x, w), param(128)))
		f.Body.SetReturns(b.Slice(y, b.Const(tensor.Ints(3)), b.Const(tensor.Ints(150)), b.Const(tensor.Ints(0)), nil))
		var results [][]byte
		var launches []int
		for _, mode := range []fuse.Mode{fuse.None, fuse.Light} {
			p, err := plan.New(m, mode)
			if err != nil {
				t.Fatal(err)
			}
			out, report, err := exec.NewSession(p, &exec.Sim{Check: true, Count: true}).Run(args)
			if err != nil {
				t.Fatal(err)
			}
			flops := int64(0)
			for _, s := range report.Steps {
				flops += s.Counts.MatrixFlops
			}
			if flops == 0 {
				t.Errorf("%s, %s: no tensor cores", d, mode)
			}
			results, launches = append(results, out[0].Tensor.Bytes()), append(launches, len(p.Steps))
		}
		if !bytes.Equal(results[0], results[1]) || launches[1] >= launches[0] {
			t.Errorf("%s: with fusion %d launches, without %d; the same elements: %v", d, launches[1], launches[0], bytes.Equal(results[0], results[1]))
		}
	}
}

// A Concat of few operands computes them where it reads them, and is computed where it is read: turning halves of heads by angles and putting them
// behind those of before is one launch.
func TestFusedConcat(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
		m := ssa.NewModule(onnx.Dialect{})
		m.Opsets = map[string]int{"": onnx.Newest}
		f := m.NewFunc("main")
		b := &onnx.Builder{Block: f.Body}
		var args []interp.Value
		in := func(shape ...int64) *ssa.Value {
			x := fill(d, shape, uint64(len(args)), false)
			args = append(args, interp.Of(x))
			return f.Body.AddParam(fmt.Sprintf("x%d", len(args)), ssa.TensorOf(x))
		}
		slice := func(x *ssa.Value, from, to int64) *ssa.Value {
			return b.Slice(x, b.Const(tensor.Ints(from)), b.Const(tensor.Ints(to)), b.Const(tensor.Ints(3)), nil)
		}
		join := func(axis int64, x ...*ssa.Value) *ssa.Value {
			return b.OpA("Concat", []ssa.Attr{number("axis", axis)}, x...)
		}
		x := b.OpA("Transpose", []ssa.Attr{ints("perm", 0, 2, 1, 3)}, in(2, 5, 3, 8))
		turned := join(-1, b.Neg(slice(x, 4, 8)), slice(x, 0, 4))
		y := b.Add(b.Mul(x, in(5, 8)), b.Mul(turned, in(5, 8)))
		f.Body.SetReturns(join(2, in(2, 3, 7, 8), y))
		var results [2][]byte
		for i, mode := range []fuse.Mode{fuse.None, fuse.Light} {
			p, err := plan.New(m, mode)
			if err != nil {
				t.Fatal(err)
			}
			if mode == fuse.Light && len(p.Steps) != 1 {
				t.Errorf("%d launches", len(p.Steps))
			}
			out, _, err := exec.NewSession(p, &routes{exec.Sim{Check: true}}).Run(args)
			if err != nil {
				t.Fatal(err)
			}
			results[i] = out[0].Tensor.Bytes()
		}
		if !bytes.Equal(results[0], results[1]) {
			t.Errorf("%s: the results differ", d)
		}
	}
}

// graph builds graphs with random inputs.
type graph struct {
	onnx.Builder
	d    tensor.DType
	args []interp.Value
}

func newGraph(d tensor.DType) (*graph, *ssa.Module) {
	m := ssa.NewModule(onnx.Dialect{})
	m.Opsets = map[string]int{"": onnx.Newest}
	return &graph{Builder: onnx.Builder{Block: m.NewFunc("main").Body}, d: d}, m
}

func (g *graph) in(shape ...int64) *ssa.Value {
	x := fill(g.d, shape, uint64(len(g.args)+1), false)
	g.args = append(g.args, interp.Of(x))
	return g.Block.AddParam(fmt.Sprintf("x%d", len(g.args)), ssa.TensorOf(x))
}

// noDouble has a graph of operators that take no float64 in float32.
func (g *graph) noDouble() {
	if g.d == tensor.Float64 {
		g.d = tensor.Float32
	}
}

func (g *graph) turn(x *ssa.Value, perm ...int64) *ssa.Value {
	return g.OpA("Transpose", []ssa.Attr{ints("perm", perm...)}, x)
}

func (g *graph) reshape(x *ssa.Value, shape ...int64) *ssa.Value {
	return g.Reshape(x, g.Const(tensor.Ints(shape...)))
}

func (g *graph) split(x *ssa.Value, n int64) []*ssa.Value {
	return g.Create("onnx::Split", int(n), []*ssa.Value{x}, number("axis", -1), number("num_outputs", n))
}

func (g *graph) join(axis int64, x ...*ssa.Value) *ssa.Value {
	return g.OpA("Concat", []ssa.Attr{number("axis", axis)}, x...)
}

// What fusion makes of small graphs, in launches; the numbers are those without fusion, bit for bit.
var fusions = []struct {
	name     string
	launches int
	build    func(g *graph) []*ssa.Value
}{
	{"heads put beside each other are read where they are", 1, func(g *graph) []*ssa.Value {
		return []*ssa.Value{g.MatMul(g.reshape(g.turn(g.in(2, 3, 5, 8), 0, 2, 1, 3), 2, 5, 24), g.in(24, 7))}
	}},
	{"keys that several heads share are read where they are", 1, func(g *graph) []*ssa.Value {
		k := g.Unsqueeze(g.in(2, 2, 5, 8), g.Const(tensor.Ints(2)))
		k = g.reshape(g.Expand(k, g.Const(tensor.Ints(2, 2, 3, 5, 8))), 2, 6, 5, 8)
		return []*ssa.Value{g.MatMul(g.in(2, 6, 4, 5), k)}
	}},
	{"halves of a Split are exchanged where they are read", 1, func(g *graph) []*ssa.Value {
		x := g.in(2, 3, 5, 8)
		half := g.split(x, 2)
		return []*ssa.Value{g.Add(g.Mul(x, g.in(5, 8)), g.Mul(g.join(-1, g.Neg(half[1]), half[0]), g.in(5, 8)))}
	}},
	{"a Split of which a part is a result stores all", 3, func(g *graph) []*ssa.Value {
		half := g.split(g.in(2, 3, 8), 2)
		return []*ssa.Value{half[0], g.Neg(half[1])}
	}},
	{"a chain of views that two read", 1, func(g *graph) []*ssa.Value {
		x := g.reshape(g.turn(g.in(2, 3, 5, 8), 0, 2, 1, 3), 2, 5, 24)
		return []*ssa.Value{g.Neg(x), g.MatMul(x, g.in(24, 7))}
	}},
	{"a view that is a result is stored", 2, func(g *graph) []*ssa.Value {
		x := g.reshape(g.turn(g.in(2, 3, 5, 8), 0, 2, 1, 3), 2, 5, 24)
		return []*ssa.Value{x, g.MatMul(x, g.in(24, 7))}
	}},
	{"a Softmax reads rows where they are", 1, func(g *graph) []*ssa.Value {
		x := g.reshape(g.turn(g.in(2, 3, 5, 8), 0, 2, 1, 3), 2, 5, 24)
		return []*ssa.Value{g.OpA("Softmax", []ssa.Attr{number("axis", -1)}, x)}
	}},
	{"it does not read across rows", 2, func(g *graph) []*ssa.Value {
		x := g.reshape(g.turn(g.in(2, 3, 5, 8), 0, 2, 3, 1), 2, 5, 24)
		return []*ssa.Value{g.OpA("Softmax", []ssa.Attr{number("axis", -1)}, x)}
	}},
	{"a normalization of heads that are put beside each other first, with what follows", 1, func(g *graph) []*ssa.Value {
		x := g.turn(g.reshape(g.in(2, 5, 24), 2, 5, 3, 8), 0, 2, 1, 3)
		return []*ssa.Value{g.Mul(g.RMSNormalization(x, g.in(8)), g.in(2, 3, 5, 8))}
	}},
	{"one of a part of long rows, which a block has", 1, func(g *graph) []*ssa.Value {
		x := g.Slice(g.in(3, 1600), g.Const(tensor.Ints(1598)), g.Const(tensor.Ints(9)), g.Const(tensor.Ints(1)), g.Const(tensor.Ints(-1)))
		return []*ssa.Value{g.LayerNormalization(g.Unsqueeze(x, g.Const(tensor.Ints(1))), g.in(1589), g.in(1589))}
	}},
	{"its factors are read from memory", 2, func(g *graph) []*ssa.Value {
		return []*ssa.Value{g.RMSNormalization(g.in(4, 8), g.turn(g.in(8, 1), 1, 0))}
	}},
	{"keys that are turned and put behind those of before", 1, func(g *graph) []*ssa.Value {
		g.noDouble()
		return []*ssa.Value{g.join(2, g.in(2, 3, 7, 8), g.RotaryEmbedding(g.in(2, 3, 5, 8), g.in(2, 5, 4), g.in(2, 5, 4), nil))}
	}},
	{"heads that are turned and scaled", 1, func(g *graph) []*ssa.Value {
		g.noDouble()
		return []*ssa.Value{g.Mul(g.RotaryEmbedding(g.in(2, 3, 5, 8), g.in(2, 5, 4), g.in(2, 5, 4), nil), g.in(1))}
	}},
	{"a mean of squares", 1, func(g *graph) []*ssa.Value {
		x := g.in(2, 5, 24)
		mean := g.ReduceMean(g.Mul(x, x), g.Const(tensor.Ints(-1)))
		return []*ssa.Value{g.Reciprocal(g.Sqrt(g.Add(mean, g.in(1))))}
	}},
	{"a mean of squares of heads", 1, func(g *graph) []*ssa.Value {
		x := g.turn(g.reshape(g.in(2, 5, 24), 2, 5, 3, 8), 0, 2, 1, 3)
		mean := g.ReduceMean(g.Mul(x, x), g.Const(tensor.Ints(-1)))
		return []*ssa.Value{g.Mul(x, g.Reciprocal(g.Sqrt(g.Add(mean, g.in(1)))))}
	}},
	{"squares of columns", 2, func(g *graph) []*ssa.Value {
		x := g.turn(g.in(70, 9), 1, 0)
		return []*ssa.Value{g.ReduceMean(g.Mul(x, x), g.Const(tensor.Ints(-1)))}
	}},
	{"squares that another one reads, too", 2, func(g *graph) []*ssa.Value {
		x := g.in(2, 5, 24)
		x = g.Mul(x, x)
		return []*ssa.Value{g.ReduceMax(x, g.Const(tensor.Ints(-1))), x}
	}},
	{"a Reshape between a product and what follows", 1, func(g *graph) []*ssa.Value {
		y := g.reshape(g.Gemm(g.in(10, 16), g.in(16, 24), g.in(24)), 2, 5, 24)
		return []*ssa.Value{g.Relu(g.Add(g.in(2, 5, 24), y))}
	}},
	{"two Reshapes after one row at a time", 1, func(g *graph) []*ssa.Value {
		y := g.MatMul(g.in(1, 1, 300), g.in(300, 24))
		return []*ssa.Value{g.Mul(g.reshape(g.Neg(g.Unsqueeze(y, g.Const(tensor.Ints(0)))), 4, 6), g.in(4, 6))}
	}},
	{"a Reshape after a convolution", 1, func(g *graph) []*ssa.Value {
		return []*ssa.Value{g.Add(g.reshape(g.Conv(g.in(2, 3, 6, 6), g.in(4, 3, 3, 3), nil), 2, 4, 16), g.in(2, 4, 16))}
	}},
	{"an activation that reads a product twice", 1, func(g *graph) []*ssa.Value {
		x := g.Add(g.MatMul(g.in(2, 70, 16), g.in(16, 24)), g.in(24))
		return []*ssa.Value{g.Mul(g.Mul(x, g.in(1)), g.Add(g.Erf(g.Mul(x, g.in(1))), g.in(1)))}
	}},
	{"one that reads a convolution three times, which is a result too", 2, func(g *graph) []*ssa.Value {
		x := g.Conv(g.in(2, 3, 6, 6), g.in(4, 3, 3, 3), nil)
		return []*ssa.Value{g.Add(g.Mul(x, x), g.Tanh(x)), x}
	}},
	{"elements that a function reads twice", 1, func(g *graph) []*ssa.Value {
		x := g.Sub(g.in(3, 40), g.in(40))
		return []*ssa.Value{g.Mul(x, g.Sigmoid(x))}
	}},
	{"and elements that stand elsewhere in one of two", 2, func(g *graph) []*ssa.Value {
		x := g.Sub(g.in(40, 40), g.in(40))
		back := g.Slice(x, g.Const(tensor.Ints(39)), g.Const(tensor.Ints(-100)), g.Const(tensor.Ints(0)), g.Const(tensor.Ints(-1)))
		return []*ssa.Value{g.Mul(x, g.Sigmoid(back))}
	}},
	{"squares of squares, not without end", 2, func(g *graph) []*ssa.Value {
		x := g.Tanh(g.in(3, 40))
		for range 6 {
			x = g.Mul(x, x)
		}
		return []*ssa.Value{x}
	}},
	{"a sum has one product of two", 2, func(g *graph) []*ssa.Value {
		part := func() *ssa.Value { return g.reshape(g.MatMul(g.in(10, 16), g.in(16, 24)), 2, 5, 24) }
		return []*ssa.Value{g.Add(part(), part())}
	}},
	{"a Reshape of a product that a Softmax reads names its memory", 2, func(g *graph) []*ssa.Value {
		y := g.reshape(g.MatMul(g.in(10, 16), g.in(16, 24)), 2, 5, 24)
		return []*ssa.Value{g.OpA("Softmax", []ssa.Attr{number("axis", -1)}, y)}
	}},
	{"queries, keys and values of one product, two of which are results", 3, func(g *graph) []*ssa.Value {
		part := g.split(g.reshape(g.Gemm(g.in(10, 16), g.in(16, 48), nil), 2, 5, 48), 3)
		heads := func(x *ssa.Value) *ssa.Value { return g.turn(g.reshape(x, 2, 5, 2, 8), 0, 2, 1, 3) }
		y := g.OpA("Attention", []ssa.Attr{number("q_num_heads", 2), number("kv_num_heads", 2)}, part[0], part[1], part[2])
		return []*ssa.Value{y, heads(part[1]), heads(part[2])}
	}},
	{"an elementwise operator before a Transpose of heads", 1, func(g *graph) []*ssa.Value {
		return []*ssa.Value{g.turn(g.Neg(g.in(2, 5, 3, 8)), 0, 2, 1, 3)}
	}},
	{"a sum after a normalization", 1, func(g *graph) []*ssa.Value {
		y := g.RMSNormalization(g.in(2, 5, 48), g.in(48))
		return []*ssa.Value{g.Add(g.in(2, 5, 48), y)}
	}},
	{"what follows a normalization of groups", 1, func(g *graph) []*ssa.Value {
		y := g.OpA("GroupNormalization", []ssa.Attr{number("num_groups", 2)}, g.in(2, 4, 5, 6), g.in(4), g.in(4))
		return []*ssa.Value{g.Mul(g.Sigmoid(y), g.in(5, 6))}
	}},
	{"a normalization by the mean of squares", 1, func(g *graph) []*ssa.Value {
		x := g.in(2, 5, 300)
		mean := g.ReduceMean(g.Mul(x, x), g.Const(tensor.Ints(-1)))
		return []*ssa.Value{g.Mul(g.Mul(x, g.Reciprocal(g.Sqrt(g.Add(mean, g.in(1))))), g.in(300))}
	}},
	{"the same of rows of two axes, which a block has", 1, func(g *graph) []*ssa.Value {
		x := g.in(3, 30, 37)
		norm := g.ReduceL2(x, g.Const(tensor.Ints(1, 2)))
		return []*ssa.Value{g.Add(g.in(30, 1), g.Div(x, g.Max(norm, g.in(3, 1, 1))))}
	}},
	{"mean and variance of short rows", 2, func(g *graph) []*ssa.Value {
		x := g.in(20, 6)
		last := g.Const(tensor.Ints(-1))
		x = g.Sub(x, g.ReduceMean(x, last))
		return []*ssa.Value{g.Div(x, g.Sqrt(g.ReduceMean(g.Mul(x, x), last)))}
	}},
	{"the parts of a Softmax", 2, func(g *graph) []*ssa.Value {
		x := g.in(4, 70)
		last := g.Const(tensor.Ints(-1))
		x = g.Exp(g.Sub(x, g.ReduceMax(x, last)))
		return []*ssa.Value{g.Div(x, g.ReduceSum(x, last))}
	}},
	{"rows across memory are not gone along again", 2, func(g *graph) []*ssa.Value {
		x := g.in(4, 70, 3)
		return []*ssa.Value{g.Sub(x, g.ReduceMax(x, g.Const(tensor.Ints(1))))}
	}},
	{"nor one so long that more threads should do it", 2, func(g *graph) []*ssa.Value {
		x := g.in(2, 41000)
		return []*ssa.Value{g.Sub(x, g.ReduceMax(x, g.Const(tensor.Ints(1))))}
	}},
	{"a mean without its axis", 2, func(g *graph) []*ssa.Value {
		x := g.in(2, 5, 30)
		mean := g.OpA("ReduceMean", []ssa.Attr{number("keepdims", 0)}, x, g.Const(tensor.Ints(-1)))
		return []*ssa.Value{g.Sub(x, g.Unsqueeze(mean, g.Const(tensor.Ints(2))))}
	}},
	{"keys that several heads share, turned", 1, func(g *graph) []*ssa.Value {
		k := g.Expand(g.Unsqueeze(g.in(2, 2, 9, 8), g.Const(tensor.Ints(2))), g.Const(tensor.Ints(2, 2, 3, 9, 8)))
		return []*ssa.Value{g.MatMul(g.in(2, 6, 4, 8), g.turn(g.reshape(k, 2, 6, 9, 8), 0, 1, 3, 2))}
	}},
}

func TestFusions(t *testing.T) {
	for _, c := range fusions {
		for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.Float64} {
			t.Run(c.name+"/"+d.String(), func(t *testing.T) {
				g, m := newGraph(d)
				m.Main().Body.SetReturns(c.build(g)...)
				var results [2][]interp.Value
				for i, mode := range []fuse.Mode{fuse.None, fuse.Light} {
					p, err := plan.New(m, mode)
					if err != nil {
						t.Fatal(err)
					}
					if mode == fuse.Light && len(p.Steps) != c.launches {
						t.Errorf("%d launches", len(p.Steps))
						for _, n := range p.Nodes {
							t.Logf("%s: %s", n.Op.Kind, n.Place)
						}
					}
					s := exec.NewSession(p, &routes{exec.Sim{Check: true}})
					if results[i], _, err = s.Run(g.args); err != nil {
						t.Fatal(err)
					}
					if mode == fuse.None {
						nodes, err := exec.CheckNodes(p, s, g.args, false)
						if err != nil {
							t.Fatal(err)
						}
						for _, n := range nodes {
							if n.Bad() {
								t.Error(&n)
							}
						}
					}
				}
				for k := range results[0] {
					if x, y := results[0][k].Tensor, results[1][k].Tensor; !bytes.Equal(x.Bytes(), y.Bytes()) {
						t.Errorf("result %d: %s", k, bound.Measure(y, x, nil))
					}
				}
			})
		}
	}
}

// Buffers that live at the same time do not overlap, and memory is reused.
func TestAllocate(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	reused := false
	for range 30 {
		m, _ := randomGraph(r, tensor.Float32)
		p, err := plan.New(m, fuse.Light)
		if err != nil {
			t.Fatal(err)
		}
		sizes, ok := p.BufferSizes(nil)
		if !ok {
			t.Fatal("sizes are not known")
		}
		offsets, total := p.Allocate(sizes)
		sum := int64(0)
		for i, f := range p.Buffers {
			if offsets[i] < 0 {
				continue
			}
			sum += sizes[i]
			if offsets[i]%plan.Alignment != 0 || offsets[i]+sizes[i] > total {
				t.Fatalf("buffer %d at %d of %d", i, offsets[i], total)
			}
			for k, g := range p.Buffers[:i] {
				if offsets[k] >= 0 && f.First <= g.Last && g.First <= f.Last && offsets[i] < offsets[k]+sizes[k] && offsets[k] < offsets[i]+sizes[i] {
					t.Fatalf("buffers %d and %d overlap", k, i)
				}
			}
		}
		reused = reused || total < sum
	}
	if !reused {
		t.Error("no memory was ever used twice")
	}
}
