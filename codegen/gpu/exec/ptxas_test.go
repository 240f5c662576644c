package exec_test

import (
	"fmt"
	"os"
	osexec "os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/llvm"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/codegen/gpu/ptx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// shipped are the configurations of the emitters: each kind of kernel that a model can get.
func shipped() []node {
	of := func(d tensor.DType) func(shape ...int64) *tensor.Tensor {
		return func(shape ...int64) *tensor.Tensor { return fill(d, shape, 1, false) }
	}
	f, h, g, bf := of(tensor.Float32), of(tensor.Float16), of(tensor.Float64), of(tensor.BFloat16)
	axis := []bool{false, true}
	return []node{
		{op: "Add", in: []*tensor.Tensor{f(512), f(512)}},
		{op: "Add", in: []*tensor.Tensor{f(5, 1, 7), f(3, 1)}, dynamic: true},
		{op: "Gelu", in: []*tensor.Tensor{f(515)}},
		{op: "Gelu", in: []*tensor.Tensor{g(515)}},
		{op: "Sin", in: []*tensor.Tensor{f(515)}},
		{op: "Pow", in: []*tensor.Tensor{f(515), f(515)}},
		{op: "Cast", attrs: []ssa.Attr{number("to", int64(tensor.Int64.ONNX()))}, in: []*tensor.Tensor{h(515)}},
		{op: "Gather", in: []*tensor.Tensor{f(50, 64), tensor.Ints(1, 2, 3)}},
		{op: "Pad", in: []*tensor.Tensor{f(5, 7), tensor.Ints(1, 2, 3, 4)}, consts: axis},
		{op: "Resize", in: []*tensor.Tensor{f(1, 2, 5, 7), nil, nil, tensor.Ints(1, 2, 10, 3)}, consts: []bool{false, true, true, true}, attrs: []ssa.Attr{text("mode", "cubic")}},
		{op: "BatchNormalization", in: []*tensor.Tensor{f(2, 8, 5, 5), f(8), f(8), f(8), f(8)}},
		{op: "Transpose", in: []*tensor.Tensor{f(2, 100, 70)}, attrs: []ssa.Attr{ints("perm", 0, 2, 1)}},
		{op: "ReduceSum", in: []*tensor.Tensor{f(5, 2000), tensor.Ints(1)}, consts: axis},
		{op: "ReduceMax", in: []*tensor.Tensor{h(5, 200), tensor.Ints(1)}, consts: axis},
		{op: "ReduceMean", in: []*tensor.Tensor{f(600, 70), tensor.Ints(0)}, consts: axis},
		{op: "ArgMax", in: []*tensor.Tensor{f(5, 2000)}, attrs: []ssa.Attr{number("axis", 1)}},
		{op: "Softmax", in: []*tensor.Tensor{f(5, 2000)}},
		{op: "Softmax", in: []*tensor.Tensor{h(5, 200)}},
		{op: "Softmax", in: []*tensor.Tensor{f(5, 10000)}},
		{op: "LogSoftmax", in: []*tensor.Tensor{f(5, 40960)}},
		{op: "Softmax", in: []*tensor.Tensor{h(5, 40001)}},
		{op: "GroupNormalization", in: []*tensor.Tensor{f(8, 320, 64, 64), f(320), f(320)}, attrs: []ssa.Attr{number("num_groups", 32)}},
		{op: "LayerNormalization", in: []*tensor.Tensor{g(5, 16000), g(16000), g(16000)}},
		{op: "LayerNormalization", in: []*tensor.Tensor{f(5, 2000), f(2000), f(2000)}},
		{op: "InstanceNormalization", in: []*tensor.Tensor{f(2, 3, 50, 50), f(3), f(3)}},
		{op: "TopK", in: []*tensor.Tensor{f(5, 1000), tensor.Ints(10)}, consts: axis, results: 2},
		{op: "TopK", in: []*tensor.Tensor{f(5, 5000), tensor.Ints(10)}, consts: axis, results: 2, dynamic: true},
		{op: "Unique", in: []*tensor.Tensor{f(5000)}, results: 4},
		{op: "NonZero", in: []*tensor.Tensor{f(50, 70)}},
		{op: "GridSample", in: []*tensor.Tensor{f(1, 3, 20, 20), f(1, 9, 9, 2)}, attrs: []ssa.Attr{text("mode", "cubic"), text("padding_mode", "reflection")}},
		{op: "LSTM", in: []*tensor.Tensor{f(9, 2, 40), f(1, 200, 40), f(1, 200, 50), f(1, 400)}, attrs: []ssa.Attr{number("hidden_size", 50)}, results: 3},
		{op: "GRU", in: []*tensor.Tensor{f(9, 2, 40), f(1, 150, 40), f(1, 150, 50), f(1, 300)}, attrs: []ssa.Attr{number("hidden_size", 50)}, results: 2, dynamic: true},
		{op: "Mod", in: []*tensor.Tensor{g(515), g(515)}, attrs: []ssa.Attr{number("fmod", 1)}},
		{op: "CumSum", in: []*tensor.Tensor{f(5, 200), tensor.ScalarInt(1)}, consts: axis},
		{op: "MatMul", in: []*tensor.Tensor{f(100, 70), f(70, 90)}},
		{op: "MatMul", in: []*tensor.Tensor{h(100, 70), h(70, 90)}},
		{op: "MatMul", in: []*tensor.Tensor{g(100, 70), g(70, 90)}},
		{op: "MatMul", in: []*tensor.Tensor{f(2, 3, 100, 70), f(3, 70, 90)}, dynamic: true},
		{op: "MatMul", in: []*tensor.Tensor{f(1536, 70), f(70, 1536)}}, // the largest tiles
		{op: "MatMul", in: []*tensor.Tensor{f(1500, 70), f(70, 1500)}},
		{op: "MatMul", in: []*tensor.Tensor{h(256, 64), h(64, 128)}}, // tensor cores
		{op: "MatMul", in: []*tensor.Tensor{f(256, 64), f(64, 128)}, tf32: true},
		{op: "Conv", in: []*tensor.Tensor{h(32, 64, 56, 56), h(64, 64, 3, 3), h(64)}, attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1)}},
		{op: "Gemm", in: []*tensor.Tensor{h(64, 128), h(256, 128)}, attrs: []ssa.Attr{number("transB", 1)}},
		{op: "ConvInteger", in: []*tensor.Tensor{fill(tensor.Uint8, []int64{2, 64, 8, 16}, 1, false), fill(tensor.Int8, []int64{64, 64, 3, 3}, 2, false), fill(tensor.Uint8, []int64{}, 3, false)}, attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1)}},
		{op: "MatMulInteger", in: []*tensor.Tensor{fill(tensor.Uint8, []int64{256, 128}, 1, false), fill(tensor.Int8, []int64{128, 128}, 2, false), fill(tensor.Uint8, []int64{}, 3, false), fill(tensor.Int8, []int64{128}, 4, false)}},
		{op: "ConvInteger", in: []*tensor.Tensor{fill(tensor.Uint8, []int64{2, 64, 8, 16}, 1, false), fill(tensor.Int8, []int64{128, 64, 3, 3}, 2, false), fill(tensor.Uint8, []int64{}, 3, false)}, attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1)}},
		{op: "MatMul", in: []*tensor.Tensor{bf(256, 64), bf(64, 128)}},
		{op: "MatMul", in: []*tensor.Tensor{bf(131, 35), bf(35, 67)}},
		{op: "Gemm", in: []*tensor.Tensor{h(256, 128), h(128, 128)}, attrs: []ssa.Attr{number("transB", 1)}}, // with a ring of stages
		{op: "Gemm", in: []*tensor.Tensor{bf(128, 256), bf(128, 128)}, attrs: []ssa.Attr{number("transA", 1)}},
		{op: "Conv", in: []*tensor.Tensor{h(1, 16, 20, 20), h(128, 16, 3, 3)}, attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1)}},
		{op: "Gemm", in: []*tensor.Tensor{f(1, 300), f(100, 300), f(100)}, attrs: []ssa.Attr{number("transB", 1)}},
		{op: "Gemm", in: []*tensor.Tensor{f(100, 30), f(30, 100), f(100)}},
		{op: "Attention", in: []*tensor.Tensor{f(1, 8, 1024, 64), f(1, 8, 1024, 64), f(1, 8, 1024, 64)}},
		{op: "Attention", in: []*tensor.Tensor{h(1, 32, 1024, 128), h(1, 8, 1024, 128), h(1, 8, 1024, 128)}, attrs: []ssa.Attr{number("is_causal", 1)}, only: []int64{1024}, dynamic: true},
		{op: "Attention", in: []*tensor.Tensor{h(1, 8, 1024, 64), h(1, 8, 1024, 64), h(1, 8, 1024, 64)}}, // tensor cores, as what follows
		{op: "Attention", in: []*tensor.Tensor{h(1, 16, 1024, 64), h(1, 16, 1024, 64), h(1, 16, 1024, 64), h(1024, 1024)}, attrs: []ssa.Attr{number("is_causal", 1)}},
		{op: "Attention", in: []*tensor.Tensor{h(1, 32, 1024, 128), h(1, 8, 1024, 128), h(1, 8, 1024, 128)}, attrs: []ssa.Attr{number("is_causal", 1)}},
		{op: "Attention", in: []*tensor.Tensor{h(1, 8, 100, 80), h(1, 8, 100, 80), h(1, 8, 100, 80), nil, h(1, 8, 100, 80), h(1, 8, 100, 80)}, attrs: []ssa.Attr{number("is_causal", 1)}, results: 3},
		{op: "Attention", in: []*tensor.Tensor{h(1, 8, 300, 256), h(1, 8, 300, 256), h(1, 8, 300, 256), h(300, 300)}},
		{op: "Attention", in: []*tensor.Tensor{h(1, 32, 1, 128), h(1, 8, 1, 128), h(1, 8, 1, 128), nil, h(1, 8, 2047, 128), h(1, 8, 2047, 128)}, results: 3},
		{op: "Attention", in: []*tensor.Tensor{f(1, 32, 4, 128), f(1, 8, 4, 128), f(1, 8, 4, 128), nil, f(1, 8, 2047, 128), f(1, 8, 2047, 128)}, results: 3, attrs: []ssa.Attr{number("is_causal", 1)}},
		{op: "Attention", in: []*tensor.Tensor{g(1, 8, 300, 64), g(1, 8, 300, 64), g(1, 8, 300, 64)}},
		{op: "RotaryEmbedding", in: []*tensor.Tensor{h(1, 64, 4096), h(1, 64, 64), h(1, 64, 64)}, attrs: []ssa.Attr{number("num_heads", 32)}},
		{op: "Conv", in: []*tensor.Tensor{f(2, 16, 20, 20), f(64, 16, 3, 3), f(64)}, attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1)}},
		{op: "Conv", in: []*tensor.Tensor{f(2, 16, 20, 20), f(64, 16, 3, 3), f(64)}, attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1), ints("kernel_shape", 3, 3)}, consts: []bool{false, true, true}, dynamic: true},
		{op: "Conv", in: []*tensor.Tensor{f(8, 16, 58, 58), f(128, 16, 3, 3), f(128)}},
		{op: "Conv", in: []*tensor.Tensor{g(2, 16, 20, 20), g(64, 16, 3, 3)}},
		{op: "Conv", in: []*tensor.Tensor{f(1, 160, 4, 4), f(64, 160, 3, 3)}, attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1)}},
		{op: "Conv", in: []*tensor.Tensor{f(1, 32, 20, 20), f(32, 1, 3, 3)}, attrs: []ssa.Attr{number("group", 32)}},
		{op: "Conv", in: []*tensor.Tensor{f(1, 4, 8, 8, 8), f(64, 4, 3, 3, 3)}},
		{op: "ConvTranspose", in: []*tensor.Tensor{f(1, 16, 8, 8), f(16, 64, 3, 3)}, attrs: []ssa.Attr{ints("strides", 2, 2)}},
		{op: "MaxPool", in: []*tensor.Tensor{f(1, 8, 20, 20)}, attrs: []ssa.Attr{ints("kernel_shape", 3, 3), ints("pads", 1, 1, 1, 1)}, results: 2},
		{op: "AveragePool", in: []*tensor.Tensor{f(1, 8, 20, 20)}, attrs: []ssa.Attr{ints("kernel_shape", 3, 3), ints("pads", 1, 1, 1, 1), number("count_include_pad", 1)}},
	}
}

// assembly are kernels for ptxas.
type assembly struct {
	name    string
	kernels []*plan.Kernel
}

// assembled are the kernels of the shipped configurations, one operator at a time, those of attentions of several operators, and those that joined launches have.
func assembled(t *testing.T) (out []assembly) {
	add := func(name string, m *ssa.Module, o plan.Options) {
		p, err := plan.NewWith(m, o)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, assembly{name, p.Kernels})
	}
	for _, n := range slices.Concat(shipped(), shippedOperators()) {
		m, _ := n.module(t)
		name := n.op
		if len(n.in) > 0 {
			name += " " + n.in[0].DType.Spec()
		}
		if n.dynamic {
			name += " dynamic"
		}
		add(name, m, n.options(nil))
	}
	for _, width := range []int64{64, 128} {
		g, m := newGraph(tensor.Float16)
		s := g.MatMul(g.Mul(g.in(1, 8, 256, width), g.in(1)), g.turn(g.in(1, 8, 300, width), 0, 1, 3, 2))
		s = g.OpA("Softmax", []ssa.Attr{number("axis", -1)}, g.Add(s, g.in(256, 300)))
		m.Main().Body.SetReturns(g.MatMul(s, g.in(1, 8, 300, width)))
		add("Softmax and products", m, plan.Options{Fusion: fuse.Light})
	}
	for _, c := range joins {
		g, m := newGraph(c.types[0])
		m.Main().Body.SetReturns(c.build(g)...)
		add("joined "+c.types[0].Spec(), m, plan.Options{Fusion: fuse.Light, TF32: c.tf32})
	}
	return out
}

// Each shipped configuration is PTX that ptxas takes, for two processors and by both routes; in what aton prints no value is spilled.
// Without ATON_PTXAS only the making of PTX is tested: `make ptxas` sets it.
func TestPTXAS(t *testing.T) {
	ptxas := os.Getenv("ATON_PTXAS")
	if ptxas == "" {
		t.Log("no ATON_PTXAS: what is printed is not assembled")
	}
	routes := []string{"printer"}
	llc, err := ptx.FindLLC()
	if err == nil {
		routes = append(routes, "llc")
	}
	registers := regexp.MustCompile(`Used (\d+) registers`)
	spills := regexp.MustCompile(`(\d+) bytes spill stores, (\d+) bytes spill loads`)
	var table strings.Builder
	fmt.Fprintf(&table, "%-24s %-30s %8s", "operator", "kernel", "shared")
	targets := []string{"sm_80", "sm_90"}
	for _, r := range routes {
		for _, target := range targets {
			fmt.Fprintf(&table, " %13s", r+" "+target)
		}
	}
	table.WriteString("   registers, +spilled bytes\n")
	for _, c := range assembled(t) {
		for _, k := range c.kernels {
			name := c.name
			fmt.Fprintf(&table, "%-24s %-30s %8d", name, k.Name, k.SharedBytes())
			for _, r := range routes {
				var text string
				for _, target := range targets {
					if r == "printer" {
						o := ptx.Options{Target: target}
						if target == "sm_90" {
							o.Version = "7.8"
						}
						text, err = ptx.Print(k.Kernel, o)
					} else if text == "" && ptxas != "" { // an older llc knows no newer processor
						text, err = llc.Compile(llvm.Lower(k.Kernel), ptx.Options{})
					}
					if err != nil {
						t.Fatalf("%s by %s: %v", name, r, err)
					}
					if ptxas == "" {
						continue
					}
					c := osexec.Command(ptxas, "-arch="+target, "-v", "-o", os.DevNull, "-")
					c.Stdin = strings.NewReader(text)
					said, err := c.CombinedOutput()
					used, spilled := registers.FindSubmatch(said), spills.FindSubmatch(said)
					if err != nil || used == nil || spilled == nil {
						t.Fatalf("%s by %s for %s: %v: %s", name, r, target, err, said)
					}
					fmt.Fprintf(&table, " %13s", fmt.Sprintf("%s+%s", used[1], spilled[1]))
					if r == "printer" && (string(spilled[1]) != "0" || string(spilled[2]) != "0") {
						t.Errorf("%s by %s for %s spills: %s", name, r, target, said)
					}
				}
			}
			table.WriteString("\n")
		}
	}
	t.Logf("\n%s", table.String())
}
