package cmd

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

// A trace that is used without --input says what it takes, and nothing where the user says it or wants JSON.
func TestTracedInputs(t *testing.T) {
	trace, out := fixtures+"convnet.trace.pt", filepath.Join(t.TempDir(), "o.onnx")
	for _, c := range []struct {
		args []string
		note bool
	}{
		{nil, true},
		{[]string{"--json"}, false},
		{[]string{"--input", convnetType}, false},
	} {
		status, _, stderr := call("", append([]string{"export", trace, "-o", out}, c.args...)...)
		said := strings.Count(stderr, "note: inputs are those that were traced, all sizes fixed: x:f32[") == 1 && strings.Contains(stderr, "for a dynamic batch add --input 'x:f32[N,")
		if status != 0 || said != c.note {
			t.Errorf("%q: status %d\n%s", c.args, status, stderr)
		}
	}
	if status, _, stderr := call("", "export", trace, "-o", out, "--input", "x:f32[N,N,18,18]"); status == 0 || !strings.Contains(stderr, "N is one size, but when the model was traced it was") {
		t.Errorf("one name for two sizes: status %d\n%s", status, stderr)
	}
}

// An input that nothing depends on is told, and one name is one size in a data set.
func TestVerifyBinds(t *testing.T) {
	text := "graph(%x : Float(N, 3), %y : Float(N, 3), %z : Float(N)):\n  %one : int = prim::Constant[value=1]()\n  %a : Float(N, 3) = aten::add(%x, %y, %one)\n  return (%a)\n"
	if _, _, stderr := call(text, "export", "-", "-o", filepath.Join(t.TempDir(), "o.onnx")); !strings.Contains(stderr, "input z is not used") || strings.Contains(stderr, "input x is not used") {
		t.Error(stderr)
	}
	m, err := aton.LoadBytes([]byte(text), "text", aton.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := aton.Convert(m, aton.ConvertOptions{}); err != nil {
		t.Fatal(err)
	}
	of := func(name string, shape ...int64) verify.Named {
		return verify.Named{Name: name, Tensor: tensor.Full(tensor.Float32, shape, 1)}
	}
	set := verify.DataSet{Name: "d", Inputs: []verify.Named{of("x", 1, 3), of("y", 2, 3), of("z", 2)}, Outputs: []verify.Named{of("a", 2, 3)}}
	if _, err := (verify.Verifier{Tolerance: verify.DefaultTolerance}).Verify(m, set); err == nil || !strings.Contains(err.Error(), "N is 1 in input x (axis 0) and 2 in input y (axis 0)") {
		t.Errorf("two sizes: %v", err)
	}
	set.Inputs[0] = of("x", 2, 3)
	if r, err := (verify.Verifier{Tolerance: verify.DefaultTolerance}).Verify(m, set); err != nil || len(r) != 1 {
		t.Errorf("one size: %v", err)
	}
}
