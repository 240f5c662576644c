package exec_test

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/bound"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// scored makes operands of Attention whose scores are a few units apart.
func scored(d tensor.DType, seed uint64, shape ...int64) *tensor.Tensor {
	v := fill(tensor.Float64, shape, seed, false).Float64s()
	for i := range v {
		v[i] /= 3
	}
	return tensor.FromFloats(d, shape, v)
}

// holes is a mask that hides some keys, and from query `blind` of each matrix all of them; additive if the type is a float.
func holes(d tensor.DType, blind int64, shape ...int64) *tensor.Tensor {
	n, keys := int64(1), shape[len(shape)-1]
	for _, s := range shape {
		n *= s
	}
	v := make([]float64, n)
	for i := range v {
		row := int64(i) / keys
		rows := int64(1)
		if len(shape) > 1 {
			rows = shape[len(shape)-2]
		}
		hidden := (int64(i)*7+row*3)%5 < 2 || row%rows == blind
		switch {
		case d == tensor.Bool && !hidden:
			v[i] = 1
		case d != tensor.Bool && hidden:
			v[i] = math.Inf(-1)
		case d != tensor.Bool:
			v[i] = float64(i%7)/4 - 1
		}
	}
	if d == tensor.Bool {
		ints := make([]int64, n)
		for i := range ints {
			ints[i] = int64(v[i])
		}
		return tensor.FromInts(d, shape, ints)
	}
	return tensor.FromFloats(d, shape, v)
}

// attentions are nodes for each way in which Attention can be asked.
func attentions(d tensor.DType) []node {
	f := func(seed uint64, shape ...int64) *tensor.Tensor { return scored(d, seed, shape...) }
	heads := func(q, kv int64, more ...ssa.Attr) []ssa.Attr {
		return append([]ssa.Attr{number("q_num_heads", q), number("kv_num_heads", kv)}, more...)
	}
	real := func(name string, v float64) ssa.Attr { return attr(name, ssa.Float(v)) }
	causal := number("is_causal", 1)
	of := func(results int, attrs []ssa.Attr, in ...*tensor.Tensor) node {
		return node{op: "Attention", in: in, attrs: attrs, results: results}
	}
	return []node{
		of(1, nil, f(1, 2, 3, 5, 8), f(2, 2, 3, 7, 8), f(3, 2, 3, 7, 8)),
		of(1, nil, f(1, 1, 1, 1, 1), f(2, 1, 1, 1, 1), f(3, 1, 1, 1, 1)),
		// several tiles of queries and of keys, all full
		of(1, []ssa.Attr{causal}, f(1, 1, 2, 128, 32), f(2, 1, 2, 128, 32), f(3, 1, 2, 128, 32)),
		// sizes that fill no tile, and values of another size
		of(1, nil, f(1, 1, 2, 70, 10), f(2, 1, 2, 130, 10), f(3, 1, 2, 130, 5)),
		of(1, []ssa.Attr{causal}, f(1, 1, 1, 40, 80), f(2, 1, 1, 66, 80), f(3, 1, 1, 66, 48)),
		of(1, nil, f(1, 1, 1, 33, 200), f(2, 1, 1, 20, 200), f(3, 1, 1, 20, 130)),
		// heads that share keys
		of(1, []ssa.Attr{causal}, f(1, 2, 6, 9, 16), f(2, 2, 2, 70, 16), f(3, 2, 2, 70, 16)),
		of(1, heads(4, 2), f(1, 2, 20, 32), f(2, 2, 33, 16), f(3, 2, 33, 12)),
		// the past
		of(3, []ssa.Attr{causal}, f(1, 1, 4, 3, 16), f(2, 1, 2, 3, 16), f(3, 1, 2, 3, 12), nil, f(4, 1, 2, 90, 16), f(5, 1, 2, 90, 12)),
		of(3, heads(4, 4, causal), f(1, 2, 70, 32), f(2, 2, 70, 32), f(3, 2, 70, 16), nil, f(4, 2, 4, 30, 8), f(5, 2, 4, 30, 4)),
		// one query behind so many keys that blocks share them
		of(3, heads(4, 2), f(1, 1, 1, 64), f(2, 1, 1, 32), f(3, 1, 1, 32), holes(tensor.Bool, -1, 1, 700), f(4, 1, 2, 699, 16), f(5, 1, 2, 699, 16)),
		of(1, nil, f(1, 2, 1, 12, 16), f(2, 2, 1, 300, 16), f(3, 2, 1, 300, 40), holes(tensor.Bool, 3, 12, 300)),
		// masks: added or not, broadcast, too short, and with nothing left for a query
		of(1, nil, f(1, 2, 3, 20, 8), f(2, 2, 3, 70, 8), f(3, 2, 3, 70, 8), holes(tensor.Bool, 2, 20, 70)),
		of(1, nil, f(1, 2, 3, 20, 8), f(2, 2, 3, 70, 8), f(3, 2, 3, 70, 8), holes(d, 2, 2, 1, 20, 70)),
		of(1, []ssa.Attr{causal}, f(1, 2, 3, 20, 8), f(2, 2, 3, 70, 8), f(3, 2, 3, 70, 8), holes(d, 0, 3, 20, 70)),
		of(1, nil, f(1, 2, 3, 20, 8), f(2, 2, 3, 70, 8), f(3, 2, 3, 70, 8), holes(tensor.Bool, -1, 2, 3, 1, 65)),
		of(1, nil, f(1, 2, 3, 20, 8), f(2, 2, 3, 9, 8), f(3, 2, 3, 9, 8), holes(tensor.Bool, -1, 1)),
		// windows, and how many keys are valid
		of(1, []ssa.Attr{number("left_window_size", 5), number("right_window_size", 3)}, f(1, 1, 2, 150, 8), f(2, 1, 2, 150, 8), f(3, 1, 2, 150, 8)),
		of(3, []ssa.Attr{causal, number("left_window_size", 9)}, f(1, 1, 2, 40, 8), f(2, 1, 2, 40, 8), f(3, 1, 2, 40, 8), nil, f(4, 1, 2, 100, 8), f(5, 1, 2, 100, 8)),
		of(1, []ssa.Attr{causal}, f(1, 3, 2, 4, 8), f(2, 3, 2, 70, 8), f(3, 3, 2, 70, 8), nil, nil, nil, tensor.Ints(70, 2, 40)),
		of(1, nil, f(1, 3, 2, 18, 8), f(2, 3, 2, 70, 8), f(3, 3, 2, 70, 8), holes(d, -1, 18, 70), nil, nil, tensor.Ints(0, 65, 7)),
		// scores
		of(1, []ssa.Attr{real("scale", 2), real("softcap", 3)}, f(1, 1, 2, 18, 8), f(2, 1, 2, 30, 8), f(3, 1, 2, 30, 8)),
		of(1, []ssa.Attr{real("scale", 0), number("softmax_precision", 1)}, f(1, 1, 2, 18, 8), f(2, 1, 2, 30, 8), f(3, 1, 2, 30, 8)),
	}
}

func TestAttention(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16} {
		for i, n := range attentions(d) {
			t.Run(fmt.Sprintf("%s/%d", d.Spec(), i), func(t *testing.T) {
				if m, _ := n.module(t); attentionKernels(t, m) == 0 {
					t.Error("no kernel of its own")
				}
				n.check(t)
				if n.only = lengths(n.in); n.only != nil {
					n.dynamic = true
					if m, _ := n.module(t); attentionKernels(t, m) == 0 {
						t.Error("no kernel of its own for lengths that a run tells")
					}
					n.check(t)
				}
			})
		}
	}
}

// matrixAttentions are attentions for tensor cores: whole tiles and cut ones, elements that fill no word, and what may be read on the way.
func matrixAttentions(d tensor.DType) []node {
	f := func(seed uint64, shape ...int64) *tensor.Tensor { return scored(d, seed, shape...) }
	causal := number("is_causal", 1)
	return []node{
		{op: "Attention", in: []*tensor.Tensor{f(1, 1, 2, 128, 64), f(2, 1, 2, 192, 64), f(3, 1, 2, 192, 64)}},
		{op: "Attention", in: []*tensor.Tensor{f(1, 1, 2, 128, 128), f(2, 1, 1, 128, 128), f(3, 1, 1, 128, 128)}, attrs: []ssa.Attr{causal}},
		{op: "Attention", in: []*tensor.Tensor{f(1, 1, 1, 70, 10), f(2, 1, 1, 130, 10), f(3, 1, 1, 130, 5)}},
		{op: "Attention", in: []*tensor.Tensor{f(1, 1, 2, 65, 80), f(2, 1, 2, 90, 80), f(3, 1, 2, 90, 48), holes(d, 2, 65, 90)}},
		{op: "Attention", in: []*tensor.Tensor{f(1, 2, 70, 64), f(2, 2, 70, 32), f(3, 2, 70, 16), nil, f(4, 2, 2, 30, 16), f(5, 2, 2, 30, 8)}, attrs: []ssa.Attr{number("q_num_heads", 4), number("kv_num_heads", 2), causal}, results: 3},
		{op: "Attention", in: []*tensor.Tensor{f(1, 1, 2, 150, 8), f(2, 1, 2, 150, 8), f(3, 1, 2, 150, 8)}, attrs: []ssa.Attr{number("left_window_size", 5), number("right_window_size", 3)}},
		// so many that a block has 128 queries
		{op: "Attention", in: []*tensor.Tensor{f(1, 64, 1, 260, 16), f(2, 64, 1, 64, 16), f(3, 64, 1, 64, 16)}},
	}
}

// Attention on tensor cores is that of the interpreter, within the bound of the operator, without bank conflicts.
func TestMatrixAttention(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Float16, tensor.BFloat16} {
		for i, n := range matrixAttentions(d) {
			t.Run(fmt.Sprintf("%s/%d", d.Spec(), i), func(t *testing.T) {
				if c := n.counts(t); c.MatrixFlops == 0 || c.Conflicts != 0 {
					t.Errorf("%d operations of tensor cores, %d bank conflicts", c.MatrixFlops, c.Conflicts)
				}
				n.check(t)
			})
		}
	}
}

func TestRotaryEmbedding(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
		f := func(seed uint64, shape ...int64) *tensor.Tensor { return fill(d, shape, seed, false) }
		places := tensor.FromInts(tensor.Int64, []int64{2, 5}, []int64{0, 1, 2, 3, 4, 8, 7, 6, 5, 4})
		for i, n := range []node{
			{in: []*tensor.Tensor{f(1, 2, 3, 5, 8), f(2, 2, 5, 4), f(3, 2, 5, 4)}},
			{in: []*tensor.Tensor{f(1, 2, 3, 5, 8), f(2, 9, 4), f(3, 9, 4), places}, attrs: []ssa.Attr{number("interleaved", 1)}},
			{in: []*tensor.Tensor{f(1, 2, 5, 24), f(2, 2, 5, 4), f(3, 2, 5, 4)}, attrs: []ssa.Attr{number("num_heads", 3), number("interleaved", 1)}},
			{in: []*tensor.Tensor{f(1, 2, 5, 30), f(2, 9, 3), f(3, 9, 3), places}, attrs: []ssa.Attr{number("num_heads", 3), number("rotary_embedding_dim", 6)}},
			{in: []*tensor.Tensor{f(1, 2, 1, 5, 10), f(2, 9, 2), f(3, 9, 2), places}, attrs: []ssa.Attr{number("rotary_embedding_dim", 4), number("interleaved", 1)}},
			{in: []*tensor.Tensor{f(1, 1, 2, 5, 2), f(2, 1, 5, 1), f(3, 1, 5, 1)}},
		} {
			t.Run(fmt.Sprintf("%s/%d", d.Spec(), i), func(t *testing.T) {
				n.op = "RotaryEmbedding"
				n.check(t)
				n.dynamic, n.only = true, []int64{5, 9}
				n.check(t)
				m, _ := n.module(t)
				if p, err := plan.New(m, fuse.None); err != nil || len(p.Kernels) != 1 {
					t.Errorf("%d kernels, %v", len(p.Kernels), err)
				}
			})
		}
	}
}

// What an Attention reads through views and turned by angles is computed where it is read, and changes no bit.
func TestFusedAttention(t *testing.T) {
	for _, c := range []struct {
		tokens   int64
		launches int // of all
	}{{1, 2}, {3, 2}, {40, 2}} {
		for _, d := range []tensor.DType{tensor.Float32, tensor.Float16} {
			t.Run(fmt.Sprintf("%s/%d", d.Spec(), c.tokens), func(t *testing.T) {
				m := ssa.NewModule(onnx.Dialect{})
				m.Opsets = map[string]int{"": onnx.Newest}
				f := m.NewFunc("main")
				b := &onnx.Builder{Block: f.Body}
				var args []interp.Value
				in := func(shape ...int64) *ssa.Value {
					x := scored(d, uint64(len(args))+1, shape...)
					args = append(args, interp.Of(x))
					return f.Body.AddParam(fmt.Sprintf("x%d", len(args)), ssa.TensorOf(x))
				}
				turn := func(x *ssa.Value) *ssa.Value {
					return b.OpA("Transpose", []ssa.Attr{ints("perm", 0, 2, 1, 3)}, x)
				}
				cos, sin := in(1, c.tokens, 8), in(1, c.tokens, 8)
				q := b.RotaryEmbedding(turn(in(1, c.tokens, 4, 16)), cos, sin, nil)
				k := b.RotaryEmbedding(turn(in(1, c.tokens, 2, 16)), cos, sin, nil)
				v := turn(in(1, c.tokens, 2, 16))
				o := f.Body.Append("onnx::Attention", 0, []*ssa.Value{q, k, v, nil, in(1, 2, 300, 16), in(1, 2, 300, 16)}, ssa.AnyTensor, ssa.AnyTensor, ssa.AnyTensor)
				o.Attrs = []ssa.Attr{number("is_causal", 1)}
				f.Body.SetReturns(o.Results...)
				var results [2][]interp.Value
				for i, mode := range []fuse.Mode{fuse.None, fuse.Light} {
					p, err := plan.New(m, mode)
					if err != nil {
						t.Fatal(err)
					}
					if mode == fuse.Light && len(p.Steps) != c.launches {
						t.Errorf("%d launches, want %d", len(p.Steps), c.launches)
					}
					if results[i], _, err = exec.NewSession(p, &exec.Sim{Check: true}).Run(args); err != nil {
						t.Fatal(err)
					}
				}
				for i := range results[0] {
					if x, y := results[0][i].Tensor, results[1][i].Tensor; !bytes.Equal(x.Bytes(), y.Bytes()) {
						t.Errorf("result %d: fused %s", i, bound.Measure(y, x, nil))
					}
				}
			})
		}
	}
}

// An attention of a product, a Softmax and a product has no matrix of scores in memory. It sums in another order than these, so it is compared by the bound
// of Attention; one of half precision, of which the scores are rounded at each step, by that with the eps of its type.
func TestWeightedSums(t *testing.T) {
	for _, c := range []struct {
		name          string
		q, k, v, mask []int64
		turned        bool   // keys stand as [..., length, size]
		cast          bool   // the softmax is computed in float32
		after         bool   // something follows
		safe          string // what gives zeros where no key counts
		scale         float64
		launches      int
	}{
		{name: "plain", q: []int64{2, 3, 70, 16}, k: []int64{2, 3, 16, 130}, v: []int64{2, 3, 130, 24}, launches: 1},
		{name: "turned", q: []int64{1, 2, 128, 32}, k: []int64{1, 2, 64, 32}, v: []int64{1, 2, 64, 32}, turned: true, scale: 0.25, launches: 1},
		{name: "mask", q: []int64{2, 2, 20, 8}, k: []int64{2, 2, 50, 8}, v: []int64{2, 2, 50, 8}, mask: []int64{2, 1, 20, 50}, turned: true, scale: 0.5, launches: 1},
		{name: "rank 3", q: []int64{3, 5, 8}, k: []int64{3, 8, 9}, v: []int64{3, 9, 8}, mask: []int64{5, 9}, after: true, launches: 1},
		{name: "float32", q: []int64{1, 2, 40, 8}, k: []int64{1, 2, 50, 8}, v: []int64{1, 2, 50, 8}, mask: []int64{40, 50}, turned: true, cast: true, scale: 0.5, launches: 1},
		{name: "zeros", q: []int64{1, 2, 20, 8}, k: []int64{1, 2, 50, 8}, v: []int64{1, 2, 50, 8}, mask: []int64{20, 50}, turned: true, safe: "ReduceMax", launches: 1},
		{name: "no NaN", q: []int64{1, 2, 20, 8}, k: []int64{1, 2, 50, 8}, v: []int64{1, 2, 50, 8}, mask: []int64{20, 50}, turned: true, safe: "IsNaN", launches: 1},
		{name: "one query", q: []int64{1, 4, 1, 16}, k: []int64{1, 4, 700, 16}, v: []int64{1, 4, 700, 16}, mask: []int64{1, 700}, turned: true, scale: 0.25, after: true, launches: 2},
		{name: "large", q: []int64{2, 2, 66, 64}, k: []int64{2, 2, 150, 64}, v: []int64{2, 2, 150, 72}, mask: []int64{2, 1, 66, 150}, turned: true, scale: 0.125, launches: 1},
		{name: "large, float32", q: []int64{1, 2, 64, 40}, k: []int64{1, 2, 65, 40}, v: []int64{1, 2, 65, 30}, mask: []int64{64, 65}, turned: true, cast: true, after: true, launches: 1},
		{name: "large, zeros", q: []int64{1, 1, 70, 32}, k: []int64{1, 1, 32, 80}, v: []int64{1, 1, 80, 32}, mask: []int64{70, 80}, safe: "ReduceMax", launches: 1},
	} {
		for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64} {
			for _, dynamic := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%t", c.name, d.Spec(), dynamic), func(t *testing.T) {
					m := ssa.NewModule(onnx.Dialect{})
					m.Opsets = map[string]int{"": onnx.Newest}
					f := m.NewFunc("main")
					b := &onnx.Builder{Block: f.Body}
					var args []interp.Value
					in := func(x *tensor.Tensor) *ssa.Value {
						args = append(args, interp.Of(x))
						typ := ssa.TensorOf(x)
						if dynamic {
							for i, n := range x.Shape {
								if n > 1 && (n == c.q[len(c.q)-2] || n == c.v[len(c.v)-2]) {
									typ.Dims[i] = sym.Symbol(fmt.Sprintf("N%d", n), 1)
								}
							}
						}
						return f.Body.AddParam(fmt.Sprintf("x%d", len(args)), typ)
					}
					number := func(v float64) *ssa.Value { return b.Const(tensor.FromFloats(d, []int64{}, []float64{v})) }
					q, k, v := scored(d, 1, c.q...), scored(d, 2, c.k...), scored(d, 3, c.v...)
					keys := in(k)
					if c.turned {
						perm := []int64{0, 1, 3, 2}
						keys = b.OpA("Transpose", []ssa.Attr{ints("perm", perm...)}, keys)
					}
					queries := in(q)
					if c.scale != 0 {
						queries = b.Mul(queries, number(c.scale))
					}
					s := b.MatMul(queries, keys)
					var mask *tensor.Tensor
					if c.mask != nil {
						blind := int64(-1)
						if c.safe != "" {
							blind = 2
						}
						mask = holes(d, blind, c.mask...)
						s = b.Add(s, in(mask))
					}
					to := func(x *ssa.Value, d tensor.DType) *ssa.Value {
						return b.Cast(x, d)
					}
					if c.cast && d.Size() == 2 {
						s = to(s, tensor.Float32)
					}
					sums := s
					s = b.Softmax(s, onnx.Axis(-1))
					switch c.safe {
					case "ReduceMax":
						s = b.Where(b.Equal(b.ReduceMax(sums, b.Const(tensor.Ints(-1))), number(math.Inf(-1))), number(0), s)
					case "IsNaN":
						s = b.Where(b.IsNaN(s), number(0), s)
					}
					if c.cast && d.Size() == 2 {
						s = to(s, d)
					}
					y := b.MatMul(s, in(v))
					if c.after {
						y = b.Neg(y)
					}
					f.Body.SetReturns(y)
					p, err := plan.New(m, fuse.Light)
					if err != nil {
						t.Fatal(err)
					}
					launches := 0
					for _, s := range p.Steps {
						if s.Launch != nil {
							launches++
						}
					}
					if launches != c.launches {
						t.Errorf("%d launches, want %d", launches, c.launches)
					}
					got, _, err := exec.NewSession(p, &routes{exec.Sim{Check: true}}).Run(args)
					if err != nil {
						t.Fatal(err)
					}
					if large := !dynamic && c.q[len(c.q)-2] >= 64; (p.Kernels[0].Factors() != nil) != (large && d.Size() == 2) {
						t.Errorf("tensor cores: %v", !large)
					}
					sample, err := exec.CheckSample(p, exec.NewSession(p, &exec.Sim{}), args, 1, 0)
					if err != nil || sample.Node != nil || sample.Compared == 0 {
						t.Errorf("%v, not what its nodes give: %v", err, sample.Node)
					}
					// the same as Attention
					four := func(x *tensor.Tensor) *tensor.Tensor {
						if len(x.Shape) == 3 {
							return x.Reshape(append([]int64{1}, x.Shape...))
						}
						return x
					}
					if !c.turned {
						k = swapped(k)
					}
					scale := c.scale
					if scale == 0 {
						scale = 1
					}
					operands := []*tensor.Tensor{four(q), four(k), four(v), mask}
					attrs := []ssa.Attr{attr("scale", ssa.Float(scale))}
					out, err := kernel.Eval("onnx::Attention", attrs, operands, 1)
					if err != nil {
						t.Fatal(err)
					}
					want := out[0]
					allowed, err := bound.Tolerance("onnx::Attention", attrs, operands, 0, want)
					if err != nil {
						t.Fatal(err)
					}
					if c.after {
						x := want.Float64s()
						for i := range x {
							x[i] = -x[i]
						}
						want = tensor.FromFloats(d, want.Shape, x)
					}
					times := 1.0
					if d.Size() == 2 {
						times = bound.Eps(d) / bound.Eps(tensor.Float32)
					}
					if d := bound.Measure(four(got[0].Tensor), want, func(at int) float64 { return times * allowed(at) }); d.Bad() {
						t.Error(d)
					}
				})
			}
		}
	}
}

// A query without key is NaN where nothing takes its place, and scores that are asked for are computed.
func TestWeightedSumsApart(t *testing.T) {
	for _, returned := range []bool{false, true} {
		m := ssa.NewModule(onnx.Dialect{})
		m.Opsets = map[string]int{"": onnx.Newest}
		f := m.NewFunc("main")
		b := &onnx.Builder{Block: f.Body}
		var args []interp.Value
		var in []*ssa.Value
		for i, x := range []*tensor.Tensor{scored(tensor.Float32, 1, 2, 5, 8), scored(tensor.Float32, 2, 2, 8, 6), scored(tensor.Float32, 3, 2, 6, 4), holes(tensor.Float32, 3, 5, 6)} {
			args = append(args, interp.Of(x))
			in = append(in, f.Body.AddParam(fmt.Sprintf("x%d", i), ssa.TensorOf(x)))
		}
		s := b.Add(b.MatMul(in[0], in[1]), in[3])
		y := []*ssa.Value{b.MatMul(b.OpA("Softmax", []ssa.Attr{number("axis", -1)}, s), in[2])}
		if returned {
			y = append(y, s)
		}
		f.Body.SetReturns(y...)
		if n := attentionKernels(t, m); returned != (n == 0) {
			t.Errorf("%d attentions", n)
		}
		p, err := plan.New(m, fuse.Light)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := exec.NewSession(p, &exec.Sim{Check: true}).Run(args)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range got[0].Tensor.Float64s() {
			if math.IsNaN(x) != (i/4%5 == 3) {
				t.Errorf("element %d is %v", i, x)
			}
		}
	}
}

// swapped has the last two axes in the other order.
func swapped(x *tensor.Tensor) *tensor.Tensor {
	n := len(x.Shape)
	shape := append([]int64(nil), x.Shape...)
	shape[n-2], shape[n-1] = shape[n-1], shape[n-2]
	v, out := x.Float64s(), make([]float64, 0, x.NumElements())
	rows, cols := int(x.Shape[n-2]), int(x.Shape[n-1])
	for at := 0; at < len(v); at += rows * cols {
		for c := range cols {
			for r := range rows {
				out = append(out, v[at+r*cols+c])
			}
		}
	}
	return tensor.FromFloats(x.DType, shape, out)
}

// lengths are the numbers of queries and keys, nil if other sizes are the same.
func lengths(in []*tensor.Tensor) (out []int64) {
	others := map[int64]bool{in[0].Shape[0]: true}
	for i, x := range in[:min(len(in), 6)] {
		if x == nil || i == 3 {
			continue
		}
		at := len(x.Shape) - 2
		if x.Shape[at] > 1 {
			out = append(out, x.Shape[at])
		}
		for k, n := range x.Shape {
			others[n] = others[n] || k != at
		}
	}
	for _, n := range out {
		if others[n] {
			return nil
		}
	}
	return out
}

// attentionKernels counts the launches of a plan's flash kernels.
func attentionKernels(t *testing.T, m *ssa.Module) (launches int) {
	t.Helper()
	p, err := plan.New(m, fuse.Light)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Steps {
		if s.Launch != nil && s.Kernel.Class == "attention" {
			launches++
		}
	}
	return launches
}
