package onnx

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// TestBodies reads the bodies, which checks that they name only what there is, and wants a part to have a use.
func TestBodies(t *testing.T) {
	all, err := readBodies()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	files, err := fs.Glob(bodyFiles, "bodies/*.ir")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := bodyFiles.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(b)
	}
	for name, b := range all {
		if b.isPart() && strings.Count(text.String(), name+"(") < 2 {
			t.Errorf("%s: nothing uses %s", b.at, name)
		}
	}
}

// TestBodyMistakes tells what is wrong with a body, and where.
func TestBodyMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"Relu(%x):\n", "test.ir:1: a body begins with"},
		{"body Relu(%x):\n  return (Max(%x, %y))\n", "test.ir:2: %y is not defined"},
		{"body Relu(%x):\n  return (Maxx(%x, 0.0))\n", "test.ir:2: Maxx is no operator, part or function"},
		{"body Relu(%x):\n  %y = Clip[minimum=1](%x)\n  return (%y)\n", "test.ir:2: Clip has no attribute minimum"},
		{"body Relu(%x, %y):\n  return (%x)\n", "test.ir:1: Relu has 1 inputs"},
		{"body Relu(%x):\n  if $alpha:\n    return (%x)\n", "test.ir:2: $alpha is not defined"},
		{"body Relu(%x):\n  return (rank(%x, 1))\n", "test.ir:2: rank takes 1 to 1 arguments, not 2"},
		{"body Relu(%x):\n  return (cast(%x, f99))\n", "test.ir:2: f99 is no element type"},
		{"body Relu(%x):\n  %y Max(%x)\n", "test.ir:2: no ="},
		{"body Relu(%x):\n  return (%x)\nbody Relu(%x):\n  return (%x)\n", "test.ir:3: Relu has a body already"},
		{"body Reluu(%x):\n  return (%x)\n", "test.ir:1: Reluu is no operator of ONNX"},
	} {
		all := map[string]*body{}
		err := parseBodies("test.ir", c.text, all)
		for _, b := range all {
			if err == nil {
				err = b.check(all)
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

// TestBodyRefuses builds bodies of operators that they cannot express: the reason is told, and nothing panics.
func TestBodyRefuses(t *testing.T) {
	n := sym.Symbol("N", 0)
	f := func(dims ...sym.Expr) ssa.Type { return ssa.Tensor(tensor.Float32, dims...) }
	for _, c := range []struct {
		kind  ssa.Kind
		attrs []ssa.Attr
		in    []ssa.Type
		want  string
	}{
		{"onnx::LayerNormalization", nil, []ssa.Type{ssa.Unranked(tensor.Float32), f(n)}, "the rank of its input must be known"},
		{"onnx::RotaryEmbedding", nil, []ssa.Type{f(n, n, n), f(n, n), f(n, n)}, "the attribute num_heads is missing"},
		{"onnx::RotaryEmbedding", []ssa.Attr{RotaryEmbeddingDim(3)}, []ssa.Type{f(n, n, n, sym.Const(8)), f(n, n, n), f(n, n, n)}, "rotary_embedding_dim is 3 of 8"},
		{"onnx::CausalConvWithState", nil, []ssa.Type{f(n, n, n), f(n, n, n)}, "a number of channels that is computed at run time"},
		{"onnx::Attention", nil, []ssa.Type{f(n, n, n), f(n, n, n), f(n, n, n)}, "the attribute q_num_heads is missing"},
	} {
		block := ssa.NewModule(Dialect{}).NewFunc("f").Body
		operands := make([]*ssa.Value, len(c.in))
		for i, t := range c.in {
			operands[i] = block.AddParam("", t)
		}
		o := block.Append(c.kind, 0, operands, ssa.AnyTensor)
		o.Attrs = c.attrs
		d := &Downgrade{Builder: Builder{Block: block, Before: o}, Node: o, Target: Standard, Opset: Newest}
		if err := Build(func() { d.Body() }); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.kind, err, c.want)
		}
	}
}
