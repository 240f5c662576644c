package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/dialects/onnx/profiles"
	"github.com/aton-project/aton/verify"
)

// A file for a runtime has its operators alone, and computes what the program computes.
func TestOnlyOps(t *testing.T) {
	const at = "testdata/fixtures/torch2.15/"
	replaced := 0
	for _, c := range []struct {
		model, data string
		inputs      []string
		runtimes    string
	}{
		{"convnet.script.pt", "convnet.script", []string{"x:f32[N,3,18,18]"}, "tensorrt openvino coreml webnn ort-mobile"},
		{"residual.pt2", "residual.export", nil, "tensorrt openvino coreml webnn ort-mobile"},
		{"attention.pt2", "attention.export", nil, "tensorrt openvino webnn ort-mobile"},
		{"words_gru.script.pt", "words_gru.script", []string{"x:i64[N,T]"}, "tensorrt openvino"},
		{"super_resolution.script.pt", "super_resolution.script", []string{"x:f32[N,1,H,W]"}, "tensorrt openvino coreml ort-mobile"},
	} {
		sets, err := verify.ReadData(at + c.data + ".safetensors")
		if err != nil {
			t.Fatal(err)
		}
		usual := operators(t, writtenFrom(t, at+c.model, withInputs(t, converting(aton.ConvertOptions{}), c.inputs...)))
		for runtime := range strings.FieldsSeq(c.runtimes) {
			list, _ := profiles.Get(runtime)
			b := writtenFrom(t, at+c.model, withInputs(t, converting(aton.ConvertOptions{OnlyOps: list}), c.inputs...))
			has := operators(t, b)
			for _, op := range has {
				if op != "Constant" && !slices.Contains(list, op) {
					t.Errorf("%s for %s has %s", c.model, runtime, op)
				}
			}
			if !slices.Equal(has, usual) {
				replaced++
			}
			m := parsed(t, b)
			for _, data := range sets {
				told, err := verify.Verifier{Tolerance: verify.DefaultTolerance}.Verify(m, data)
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range told {
					if o.Wrong != "" {
						t.Errorf("%s for %s: %s %s", c.model, runtime, o.Name, o.Wrong)
					}
				}
			}
		}
	}
	if replaced < 3 {
		t.Errorf("operators were replaced in %d files", replaced)
	}
}

// operators lists the types of the operators of a file, each once.
func operators(t *testing.T, file []byte) []string {
	t.Helper()
	var out []string
	for o := range parsed(t, file).Main().Body.AllOps() {
		out = append(out, strings.TrimPrefix(string(o.Kind), "onnx::"))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
