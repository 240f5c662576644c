package exec_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/bound"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// products are those of x by weights of so many columns, with a row added to each second one.
func (g *graph) products(x *ssa.Value, k int64, columns ...int64) []*ssa.Value {
	var out []*ssa.Value
	for i, n := range columns {
		y := g.MatMul(x, g.in(k, n))
		if i%2 == 1 {
			y = g.Add(y, g.in(n))
		}
		out = append(out, y)
	}
	return out
}

// Launches that become one, and what keeps them apart. has is something that the joined kernel does, so that the kernel is of the kind that is meant.
var joins = []struct {
	name     string
	types    []tensor.DType
	tf32     bool
	launches int
	has      string
	build    func(g *graph) []*ssa.Value
}{
	{"products of an activation, in tiles", threeFloats, false, 1, "shared a", func(g *graph) []*ssa.Value {
		return g.products(g.in(2, 35, 24), 24, 70, 40, 40)
	}},
	{"of few rows", threeFloats, false, 1, "grid", func(g *graph) []*ssa.Value { return g.products(g.in(2, 3, 40), 40, 70, 33, 33) }},
	{"in the largest tiles", threeFloats[:1], false, 1, "shared b f32[2048]", func(g *graph) []*ssa.Value {
		return g.products(g.in(1408, 18), 18, 1536, 1536)
	}},
	{"on tensor cores, from a ring of stages", halfTypes, false, 1, "copy.async", func(g *graph) []*ssa.Value {
		return g.products(g.in(130, 64), 64, 128, 72, 72)
	}},
	{"on tensor cores, from tiles that threads carry", halfTypes, false, 1, "mma", func(g *graph) []*ssa.Value {
		return g.products(g.in(130, 40), 40, 128, 70, 64)
	}},
	{"rounded to tf32", threeFloats[:1], true, 1, "mma", func(g *graph) []*ssa.Value { return g.products(g.in(130, 40), 40, 128, 70, 64) }},
	{"by transposed weights, with what follows", slices.Concat(halfTypes, threeFloats[:2]), false, 2, "shared a", func(g *graph) []*ssa.Value {
		x, shortcut := g.in(130, 64), g.in(130, 96)
		linear := func(n int64) *ssa.Value {
			return g.OpA("Gemm", []ssa.Attr{number("transB", 1)}, x, g.in(n, 64), g.in(n))
		}
		return []*ssa.Value{linear(128), g.Add(g.Relu(linear(96)), shortcut), g.turn(g.reshape(linear(64), 10, 13, 4, 16), 0, 2, 1, 3)}
	}},
	{"a product of another activation", threeFloats, false, 1, "shared a", func(g *graph) []*ssa.Value {
		return []*ssa.Value{g.MatMul(g.in(40, 24), g.in(24, 70)), g.MatMul(g.in(50, 20), g.in(20, 64))}
	}},
	{"normalizations of rows held by a warp, and one of rows that a block has", threeFloats, false, 2, "shuffle", func(g *graph) []*ssa.Value {
		norm := func(shape ...int64) *ssa.Value {
			return g.RMSNormalization(g.in(shape...), g.in(shape[len(shape)-1]))
		}
		return []*ssa.Value{norm(2, 5, 48), norm(5, 48), norm(2, 1500), norm(3, 64)}
	}},
	{"convolutions", threeFloats, false, 1, "shared a", func(g *graph) []*ssa.Value {
		x := g.in(2, 5, 9, 9)
		conv := func(n, side, pad int64) *ssa.Value {
			return g.OpA("Conv", []ssa.Attr{ints("pads", pad, pad, pad, pad), ints("strides", 2, 2)}, x, g.in(n, 5, side, side))
		}
		return []*ssa.Value{conv(40, 3, 1), conv(40, 1, 0)}
	}},
	{"elements one by one and four at a time", threeFloats, false, 1, "store", func(g *graph) []*ssa.Value {
		x := g.in(30, 64)
		return []*ssa.Value{g.Tanh(x), g.Slice(x, g.Const(tensor.Ints(3)), g.Const(tensor.Ints(28)), g.Const(tensor.Ints(1)), nil), g.Neg(g.in(7))}
	}},
	{"a product of a product", threeFloats, false, 2, "shared a", func(g *graph) []*ssa.Value {
		x := g.in(40, 24)
		y := g.MatMul(x, g.in(24, 33))
		return []*ssa.Value{g.MatMul(y, g.in(33, 40)), g.MatMul(x, g.in(24, 48)), y}
	}},
	{"what would take memory for longer", threeFloats, false, 3, "", func(g *graph) []*ssa.Value {
		x := g.in(40, 24)
		y := g.MatMul(x, g.in(24, 33)) // its memory is used again for the last product
		return []*ssa.Value{g.MatMul(y, g.in(33, 40)), g.MatMul(x, g.in(24, 48))}
	}},
	{"a launch that waits for one that is like it", threeFloats, false, 2, "shuffle", func(g *graph) []*ssa.Value {
		x := g.in(40, 24)
		y := g.OpA("Softmax", []ssa.Attr{number("axis", -1)}, x)
		return []*ssa.Value{g.OpA("Softmax", []ssa.Attr{number("axis", -1)}, g.MatMul(x, g.in(24, 24))), y}
	}},
	{"operators of several classes", threeFloats, false, 1, "shuffle", func(g *graph) []*ssa.Value {
		x := g.in(40, 24)
		return []*ssa.Value{g.Neg(g.in(70)), g.OpA("Softmax", []ssa.Attr{number("axis", -1)}, x), g.ReduceMean(x, g.Const(tensor.Ints(-1)))}
	}},
	{"tiles of two classes", threeFloats, false, 2, "", func(g *graph) []*ssa.Value {
		return []*ssa.Value{g.MatMul(g.in(40, 24), g.in(24, 40)), g.Conv(g.in(1, 2, 9, 9), g.in(40, 2, 3, 3), nil)}
	}},
	{"in tiles of two shapes", threeFloats, false, 1, "shared a", func(g *graph) []*ssa.Value {
		return g.products(g.in(40, 24), 24, 64, 16)
	}},
	{"more than a kernel has", threeFloats[:1], false, 2, "shared a", func(g *graph) []*ssa.Value {
		return g.products(g.in(40, 24), 24, 33, 34, 35, 36, 37, 38, 39, 40, 41)
	}},
	{"too many launches between", threeFloats[:1], false, 12, "", func(g *graph) []*ssa.Value {
		x := g.in(40, 24)
		y := g.MatMul(x, g.in(24, 33))
		z := y
		for range 5 { // each needs the one before
			z = g.OpA("Softmax", []ssa.Attr{number("axis", -1)}, z)
			z = g.CumSum(z, g.Const(tensor.Full(tensor.Int64, []int64{}, 0)))
		}
		return []*ssa.Value{z, g.MatMul(x, g.in(24, 40))}
	}},
}

var (
	threeFloats = []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16}
	halfTypes   = []tensor.DType{tensor.Float16, tensor.BFloat16}
)

// Launches that do not need each other become one, which changes no bit on any route.
func TestJoined(t *testing.T) {
	for _, c := range joins {
		for _, d := range c.types {
			t.Run(c.name+"/"+d.String(), func(t *testing.T) {
				g, m := newGraph(d)
				m.Main().Body.SetReturns(c.build(g)...)
				var results [2][]interp.Value
				for i, mode := range []fuse.Mode{fuse.None, fuse.Light} {
					p, err := plan.NewWith(m, plan.Options{Fusion: mode, TF32: c.tf32})
					if err != nil {
						t.Fatal(err)
					}
					if mode == fuse.Light {
						if len(p.Steps) != c.launches {
							t.Errorf("%d launches\n%s", len(p.Steps), kernels(p))
						}
						if joined := slices.ContainsFunc(p.Steps, func(s *plan.Step) bool {
							return len(s.Parts) > 1 && (c.has == "grid" || strings.Contains(s.Kernel.String(), c.has))
						}); joined != (c.has != "") {
							t.Errorf("a joined kernel with %q: %v\n%s", c.has, joined, kernels(p))
						}
					}
					if results[i], _, err = exec.NewSession(p, &routes{exec.Sim{Check: true}}).Run(g.args); err != nil {
						t.Fatalf("%v\n%s", err, kernels(p))
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

// Where only the run knows how many blocks a part has, also none.
func TestJoinedSizes(t *testing.T) {
	m := ssa.NewModule(onnx.Dialect{})
	m.Opsets = map[string]int{"": onnx.Newest}
	b := &onnx.Builder{Block: m.NewFunc("main").Body}
	var out []*ssa.Value
	for i := range 3 {
		x := b.Block.AddParam(fmt.Sprintf("x%d", i), ssa.Tensor(tensor.Float32, sym.Symbol(fmt.Sprintf("N%d", i), 0), sym.Const(24)))
		out = append(out, b.MatMul(x, b.Const(fill(tensor.Float32, []int64{24, 40}, uint64(i), false))))
	}
	b.Block.SetReturns(out...)
	var plans []*plan.Plan
	for _, mode := range []fuse.Mode{fuse.None, fuse.Light} {
		p, err := plan.New(m, mode)
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, p)
	}
	if len(plans[1].Steps) != 1 {
		t.Fatalf("%d launches", len(plans[1].Steps))
	}
	for _, rows := range [][3]int64{{70, 5, 64}, {0, 5, 130}, {65, 0, 1}, {3, 200, 0}, {0, 0, 0}} {
		var args []interp.Value
		for i, n := range rows {
			args = append(args, interp.Of(fill(tensor.Float32, []int64{n, 24}, uint64(i+9), false)))
		}
		var results [2][]interp.Value
		for i, p := range plans {
			var err error
			if results[i], _, err = exec.NewSession(p, &routes{exec.Sim{Check: true}}).Run(args); err != nil {
				t.Fatalf("%v: %v", rows, err)
			}
		}
		for k := range results[0] {
			if x, y := results[0][k].Tensor, results[1][k].Tensor; !bytes.Equal(x.Bytes(), y.Bytes()) {
				t.Errorf("%v: result %d: %s", rows, k, bound.Measure(y, x, nil))
			}
		}
	}
}

// A sample compares each part of a joined launch: a block of any part that is wrong is found, and the node that it belongs to is named.
func TestSampleJoined(t *testing.T) {
	g, m := newGraph(tensor.Float32)
	m.Main().Body.SetReturns(g.products(g.in(70, 24), 24, 130, 64, 70)...)
	check := func(share float64, at int64) *exec.Sample {
		p, err := plan.New(m, fuse.Light)
		if err != nil || len(p.Steps) != 1 {
			t.Fatalf("%d launches, %v", len(p.Steps), err)
		}
		s := exec.NewSession(p, &exec.Sim{})
		if at >= 0 {
			s.Replace = wrongIn(kir.BlockX, at)
		}
		got, err := exec.CheckSample(p, s, g.args, share, 5)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := check(0.5, -1); got.Node != nil || got.Blocks != 6+2+4 || got.Ran != 6 || got.Nodes != 4 || got.Elements != 70*(130+64+70) || got.Compared == 0 || got.Compared >= got.Elements {
		t.Errorf("%+v", got)
	}
	for at, node := range map[int64]string{0: "MatMul", 5: "MatMul", 6: "Add", 7: "Add", 8: "MatMul", 11: "MatMul"} {
		got := check(1, at)
		if got.Node == nil || !strings.HasPrefix(got.Node.Node, node) {
			t.Errorf("block %d is wrong, found is %v", at, got.Node)
		}
	}
}
