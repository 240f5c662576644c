package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/verify"
)

// TestFixtures converts archives that PyTorch wrote, at old and new opsets, runs the files in the interpreter, and compares
// with what PyTorch gave. tools/maker/fixtures/make.py made them.
func TestFixtures(t *testing.T) {
	indexes, err := filepath.Glob("testdata/fixtures/*/index.tsv")
	if err != nil || len(indexes) < 2 {
		t.Fatalf("fixtures of %d versions of PyTorch: %v", len(indexes), err)
	}
	for _, index := range indexes {
		text, err := os.ReadFile(index)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(index)
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			f := strings.Split(line, "\t")
			t.Run(filepath.Base(dir)+"/"+f[0], func(t *testing.T) {
				t.Parallel()
				fixture(t, filepath.Join(dir, f[0]), f[1:])
			})
		}
	}
}

func fixture(t *testing.T, path string, specs []string) {
	opts, sets := withInputs(t, options{}, specs...), recorded(t, path)
	for _, opset := range []int{11, 13, 17, 20, 24} {
		opts.export.Opset = opset
		file := writtenFrom(t, path, opts)
		if !bytes.Equal(file, writtenFrom(t, path, opts)) {
			t.Errorf("opset %d: two exports differ", opset)
		}
		m, err := aton.LoadBytes(file, fmt.Sprintf("opset%d.onnx", opset), aton.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range sets {
			results, err := verify.Verifier{Tolerance: verify.DefaultTolerance}.Verify(m, set)
			if err != nil {
				t.Errorf("opset %d, data set %s: %v", opset, set.Name, err)
			}
			for _, r := range results {
				if r.Wrong != "" {
					t.Errorf("opset %d, data set %s, output %s: %s", opset, set.Name, r.Name, r.Wrong)
				}
			}
		}
	}
}

// TestDynamicLinear: a dynamically quantized linear layer is a Gemm, or a MatMul without bias, of the rounded operand and the
// rounded weight.
func TestDynamicLinear(t *testing.T) {
	for _, variant := range []string{"trace", "script"} {
		p, err := protoOf(t, "testdata/fixtures/torch2.15/dynamic."+variant+".pt", options{}, "input:f32[N,6]")
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for _, n := range p.Graph.Node {
			count[n.GetOpType()]++
		}
		if count["Gemm"]+count["MatMul"] != 2 || count["QuantizeLinear"] != 2 || count["DequantizeLinear"] != 4 {
			t.Errorf("%s: %v", variant, count)
		}
	}
}
