package jit

import (
	"archive/zip"
	"strings"
	"testing"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
)

// TestCustomOperators reads calls of operators of a user's library: as many results as the program takes, and, with a declaration, its
// names, defaults and types.
func TestCustomOperators(t *testing.T) {
	class := "class Versions(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n  def forward(self: __torch__.Versions, x: Tensor) -> Tensor:\n"
	declared := &aten.Table{}
	for _, line := range []string{"my::two(Tensor x, int n=2, *, float by=0.5) -> (Tensor, int)", "my::join(Tensor[] xs) -> Tensor", "my::parts(Tensor x) -> Tensor[]"} {
		s, err := ssa.ParseSchema(line)
		if err != nil {
			t.Fatal(err)
		}
		if err := declared.Declare(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, body string
		table      *aten.Table
		want       []string // in the graph, or one error
	}{
		{"several results", "a, b, = ops.my::two(x, 3)\n    return torch.add(a, b)\n", nil, []string{"%a : Tensor, %b : Tensor = my::two(%x, "}},
		{"a list", "a = ops.my::join([x, x])\n    return a\n", nil, []string{" : Tensor = my::join("}},
		{"three of two", "a, b, = ops.my::two(x, 3)\n    c, d, e, = a\n    return a\n", nil, []string{"cannot unpack Tensor into 3 names"}},
		{"a tensor", "a, b, = torch.relu(x)\n    return a\n", nil, []string{"cannot unpack Tensor into 2 names"}},
		{"declared", "a, b, = ops.my::two(x, by=0.25)\n    return torch.add(a, b)\n", declared, []string{": Tensor, %b : int = my::two(%x, ", "value=2]", "value=0.25]"}},
		{"declared list", "a, b, = ops.my::parts(x)\n    return ops.my::join([a, b])\n", declared, []string{": Tensor[] = my::parts(%x)", "prim::ListUnpack"}},
		{"declared otherwise", "return ops.my::join(x, 3)\n", declared, []string{"my::join(Tensor, int) fits no overload"}},
		{"a profiler's marks", "h = ops.profiler::_record_function_enter_new(\"part\")\n    y = torch.relu(x)\n    ops.profiler::_record_function_exit(h)\n    return y\n", nil, []string{": NoneType = prim::Constant()", "aten::relu(%x)"}},
		{"weights that PyTorch does not save", "w = ops.prim::ConstantMKLDNNTensor()\n    return torch.add(x, w)\n", nil, []string{"before torch.jit.optimize_for_inference"}},
		{"no such argument", "a, b, = ops.my::two(x, of=0.25)\n    return a\n", declared, []string{"fits no overload"}},
	} {
		code := class + "    " + strings.ReplaceAll(c.body, "::", ".")
		m, err := Read(rewritten(t, "testdata/versions.pt", zip.Store, map[string]string{"code/__torch__.py": code}), "m.pt", Options{Table: c.table})
		text := ""
		if err != nil {
			text = err.Error()
		} else {
			text = ssa.Print(m)
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", c.name, want, text)
			}
		}
	}
}
