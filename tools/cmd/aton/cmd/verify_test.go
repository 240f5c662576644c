package cmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/codegen/gpu/driver"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

const (
	convnet     = fixtures + "convnet.script.pt"
	convnetData = fixtures + "convnet.script.safetensors"
	convnetType = "x:f32[N,3,18,18]"
)

// verify runs a verifier, with what is planted in it.
func runVerify(t *testing.T, v *verifier, args ...string) (text string, err error) {
	t.Helper()
	c := v.command()
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(io.Discard) // warnings
	c.SetArgs(args)
	c.SilenceErrors, c.SilenceUsage = true, true
	err = c.Execute()
	return out.String(), err
}

func TestVerifyDevices(t *testing.T) {
	for _, device := range []string{"sim", "ptx"} {
		for _, fusion := range []string{"none", "light"} {
			text, err := runVerify(t, &verifier{}, convnet, "--data", convnetData, "--input", convnetType, "--device", device, "--fusion", fusion, "--nodes", "--check")
			if err != nil || strings.Count(text, "as expected") != 4 || !strings.Contains(text, "sim: 100.0 % of") {
				t.Errorf("%s, %s: %v\n%s", device, fusion, err, text)
			}
		}
	}
	text, err := runVerify(t, &verifier{}, convnet, "--input", convnetType, "--device", "sim", "--json")
	var r struct {
		Device []struct {
			Launches int
			Share    float64
			Outputs  []verify.Compared
		}
	}
	if err != nil || json.Unmarshal([]byte(text), &r) != nil || len(r.Device) != 1 || r.Device[0].Launches == 0 || len(r.Device[0].Outputs) == 0 || r.Device[0].Outputs[0].Difference == nil {
		t.Errorf("without data: %v\n%s", err, text)
	}
	if _, err := runVerify(t, &verifier{}, convnet, "--input", convnetType, "--device", "cuda"); err != nil && !errors.Is(err, driver.ErrNoDriver) {
		t.Errorf("cuda: %v", err)
	}
}

// A part of the blocks is compared, of fused kernels and of single nodes; the shares are told.
func TestVerifySample(t *testing.T) {
	base := []string{convnet, "--input", convnetType, "--size", "N=40", "--device", "sim", "--random", "1"}
	text, err := runVerify(t, &verifier{}, append(base, "--sample", "0.2", "--seed", "3")...)
	if err != nil || !strings.Contains(text, "sample 0.2, seed 3: ") || !strings.Contains(text, "all within the bounds") {
		t.Errorf("%v\n%s", err, text)
	}
	text, err = runVerify(t, &verifier{}, append(base, "--sample", "0.2", "--json")...)
	var r struct {
		Device []struct{ Sample *exec.Sample }
	}
	if err != nil || json.Unmarshal([]byte(text), &r) != nil || len(r.Device) != 1 || r.Device[0].Sample == nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if s := r.Device[0].Sample; s.Ran == 0 || s.Ran >= s.Blocks || s.Compared == 0 || s.Compared >= s.Elements || s.Share != 0.2 {
		t.Errorf("%+v", s)
	}
	v := &verifier{session: func(s *exec.Session) {
		s.Replace = func(k *kir.Kernel) *kir.Kernel {
			if strings.HasPrefix(k.Name, "k_conv_") {
				for _, n := range k.Body.Nodes {
					breakFma(n)
				}
			}
			return k
		}
	}}
	for fusion, node := range map[string]string{"light": "with Conv", "none": "node Conv"} {
		if text, err := runVerify(t, &verifier{session: v.session}, append(base, "--sample", "0.1", "--fusion", fusion)...); err == nil || !strings.Contains(text, "first wrong ") || !strings.Contains(text, node) {
			t.Errorf("a wrong kernel: %v\n%s", err, text)
		}
	}
	for _, c := range [][]string{
		{"--sample", "0"}, {"--sample", "1.1"}, {"--sample", "NaN"}, {"--sample", "0.5", "--device", "interp"}, {"--sample", "0.5", "--device", "cuda"},
		{"--sample", "0.5", "--nodes"}, {"--sample", "0.5", "--minimize", "x"},
	} {
		if text, err := runVerify(t, &verifier{}, append(base, c...)...); err == nil || !strings.Contains(err.Error(), "--sample") {
			t.Errorf("%v: %v\n%s", c, err, text)
		}
	}
}

// A tolerance of the greatest element covers what is far below it, and no more.
func TestVerifyOfMax(t *testing.T) {
	exact := []string{convnet, "--data", convnetData, "--input", convnetType, "--rtol", "0", "--atol", "0", "--no-passes"}
	if text, err := runVerify(t, &verifier{}, append(exact, "--atol-of-max", "1e-5")...); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	if text, err := runVerify(t, &verifier{}, append(exact, "--atol-of-max", "1e-12")...); err == nil {
		t.Errorf("no difference found\n%s", text)
	}
}

// A kernel that multiplies where it should add is found, and its node is named with the user's line.
func TestWrongKernel(t *testing.T) {
	for _, fusion := range []string{"none", "light"} {
		v := &verifier{session: func(s *exec.Session) {
			s.Replace = func(k *kir.Kernel) *kir.Kernel {
				if !strings.HasPrefix(k.Name, "k_conv_") {
					return k
				}
				for _, n := range k.Body.Nodes {
					breakFma(n)
				}
				return k
			}
		}}
		text, err := runVerify(t, v, convnet, "--data", convnetData, "--input", convnetType, "--device", "sim", "--fusion", fusion)
		if err == nil || !strings.Contains(text, "first wrong ") || !strings.Contains(text, "node Conv") || !strings.Contains(text, ".py:") || !strings.Contains(text, "k_conv_") {
			t.Errorf("%s: %v\n%s", fusion, err, text)
		}
	}
}

// breakFma makes the third argument of every fma its second one.
func breakFma(n *kir.Node) {
	if n.Op == kir.Fma {
		n.Args = []*kir.Node{n.Args[0], n.Args[1], n.Args[1]}
	}
	for _, b := range n.Blocks {
		for _, in := range b.Nodes {
			breakFma(in)
		}
	}
}

// A kernel that the simulator stops is named too.
func TestFaultyKernel(t *testing.T) {
	v := &verifier{session: func(s *exec.Session) {
		s.Replace = func(k *kir.Kernel) *kir.Kernel {
			if strings.HasPrefix(k.Name, "k_pool_") {
				for _, p := range k.Params {
					if p.Mem != nil && p.Mem.Writes {
						far(k.Body, p.Mem)
					}
				}
			}
			return k
		}
	}}
	text, err := runVerify(t, v, convnet, "--data", convnetData, "--input", convnetType, "--device", "sim")
	if err == nil || !strings.Contains(text, "out of bounds") || !strings.Contains(text, "Pool") {
		t.Errorf("%v\n%s", err, text)
	}
}

// far makes all stores to a buffer go to a place beyond its end.
func far(b *kir.Block, m *kir.Mem) {
	for _, n := range b.Nodes {
		if n.Op == kir.Store && n.Mem == m {
			n.Args[0] = &kir.Node{Op: kir.Const, Type: kir.I32, Int: 1 << 28}
		}
		for _, in := range n.Blocks {
			far(in, m)
		}
	}
}

// A pass that changes what the graph computes is named, with the operator that it broke and the user's line.
func TestWrongPass(t *testing.T) {
	done := map[*ssa.Module]bool{}
	v := &verifier{observers: []passes.Observer{{AfterPass: func(e *passes.Event) {
		if e.Pass.Name != "legalize" || done[e.Module] {
			return
		}
		done[e.Module] = true
		for o := range e.Module.Main().Body.Ops() {
			if o.Kind == "onnx::Relu" {
				o.Kind = "onnx::Abs"
				return
			}
		}
	}}}}
	text, err := runVerify(t, v, convnet, "--data", convnetData, "--input", convnetType)
	if err == nil || !strings.Contains(text, "pass legalize") || !strings.Contains(text, "first in onnx::Abs") || !strings.Contains(text, ".py:") {
		t.Errorf("%v\n%s", err, text)
	}
}

// A weight of an ONNX file that is not the model's is named.
func TestWrongWeight(t *testing.T) {
	in, err := spec.Parse(convnetType)
	if err != nil {
		t.Fatal(err)
	}
	m, err := aton.Load(convnet, aton.LoadOptions{Inputs: []spec.Input{in}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := aton.Convert(m, aton.ConvertOptions{}); err != nil {
		t.Fatal(err)
	}
	changed := ""
	for op := range m.Main().Body.Ops() {
		if l, ok := op.Attr("value"); ok && op.Kind == "onnx::Constant" && l.Kind == ssa.TensorLit && l.Tensor.NumElements() > 20 && changed == "" {
			v := l.Tensor.Float64s()
			v[3] += 1
			op.SetAttr("value", ssa.TensorValue(tensor.FromFloats(l.Tensor.DType, l.Tensor.Shape, v)))
			changed = op.Results[0].Name
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "bad.onnx")
	if err := aton.Write(m, file, aton.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	text, err := runVerify(t, &verifier{}, file, "--data", convnetData, "--reference", convnet, "--input", convnetType)
	if err == nil || changed == "" || !strings.Contains(text, "first in onnx::Constant "+changed) {
		t.Errorf("weight %s: %v\n%s", changed, err, text)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func TestGPU(t *testing.T) {
	for what, want := range map[string]string{
		"facts": "k_conv_",
		"plan":  `"grid":["`,
		"kir":   "kernel k_",
		"llir":  "define ptx_kernel void @k_",
		"ptx":   ".visible .entry k_",
	} {
		status, text, said := call("", "gpu", convnet, "--input", convnetType, "--print", what)
		if status != 0 || !strings.Contains(text, want) {
			t.Errorf("%s: status %d, no %q in %s%s", what, status, want, text, said)
		}
		if again, second, _ := call("", "gpu", convnet, "--input", convnetType, "--print", what); again != status || second != text {
			t.Errorf("%s: two runs differ", what)
		}
	}
	if status, _, said := call("", "gpu", convnet, "--input", convnetType, "--print", "sass"); status != 2 || !strings.Contains(said, "--print") {
		t.Errorf("status %d: %s", status, said)
	}
	if status, text, _ := call("", "gpu", convnet, "--input", convnetType, "--json"); status != 0 || !json.Valid([]byte(text)) {
		t.Errorf("status %d: %s", status, text)
	}
}
