package e2e

import (
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/surgery"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/verify"
)

// A file of a model with sizes that are built in, which then become dynamic, computes at other sizes what the model computes there.
func TestSetAxes(t *testing.T) {
	const at = "testdata/fixtures/torch2.15/"
	for _, c := range []struct {
		model   string
		built   []string // inputs with sizes that are built in
		dynamic []string // and with those that vary
		axes    map[string]map[int]string
		opset   int
	}{
		{"convnet.script.pt", []string{"x:f32[1,3,18,18]"}, []string{"x:f32[5,3,18,18]"}, map[string]map[int]string{"x": {0: "N"}}, 20},
		{"convnet.script.pt", []string{"x:f32[2,3,18,18]"}, []string{"x:f32[5,3,18,18]"}, map[string]map[int]string{"x": {0: "N"}}, 13},
		{"convnet.script.pt", []string{"x:f32[2,3,18,18]"}, []string{"x:f32[5,3,18,18]"}, map[string]map[int]string{"x": {0: "N"}}, 9},
		{"super_resolution.script.pt", []string{"x:f32[1,1,8,6]"}, []string{"x:f32[3,1,7,9]"}, map[string]map[int]string{"x": {0: "N", 2: "H", 3: "W"}}, 17},
		{"attention.script.pt", []string{"x:f32[1,5,8]"}, []string{"x:f32[3,5,8]"}, map[string]map[int]string{"x": {0: "N"}}, 20},
		{"attention.script.pt", []string{"x:f32[2,5,8]"}, []string{"x:f32[3,5,8]"}, map[string]map[int]string{"x": {0: "N"}}, 13},
		{"perceptron.script.pt", []string{"x:f32[1,6]"}, []string{"x:f32[4,6]"}, map[string]map[int]string{"x": {0: "N"}}, 20},
		{"residual.script.pt", []string{"x:f32[1,4,5,6]"}, []string{"x:f32[2,4,7,3]"}, map[string]map[int]string{"x": {0: "N", 2: "H", 3: "W"}}, 20},
		{"words_gru.script.pt", []string{"x:i64[2,6]"}, []string{"x:i64[3,6]"}, map[string]map[int]string{"x": {0: "N"}}, 20},
		{"words_lstm.script.pt", []string{"x:i64[2,6]"}, []string{"x:i64[3,7]"}, map[string]map[int]string{"x": {0: "N", 1: "T"}}, 17},
		{"words_lstm.script.pt", []string{"x:i64[2,6]"}, []string{"x:i64[5,6]"}, map[string]map[int]string{"x": {0: "N"}}, 14},
		{"resize.script.pt", []string{"x:f32[1,2,6,6]"}, []string{"x:f32[3,2,6,6]"}, map[string]map[int]string{"x": {0: "N"}}, 20},
	} {
		t.Run(strings.TrimSuffix(c.model, ".pt")+" "+c.built[0], func(t *testing.T) {
			file := func(inputs []string) *ssa.Module {
				b := writtenFrom(t, at+c.model, withInputs(t, converting(aton.ConvertOptions{Opset: c.opset}), inputs...))
				m, err := aton.LoadBytes(b, "built.onnx", aton.LoadOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return m
			}
			want, got := file(c.dynamic), file(c.built)
			before := got.Main().String()
			data, err := verify.RandomData(want, verify.RandomOptions{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			if err := surgery.SetAxes(got, c.axes); err != nil {
				t.Fatalf("%v\n%s", err, before)
			}
			if got, err = asFile(got); err != nil {
				t.Fatal(err)
			}
			for _, v := range got.Main().Body.Params {
				if !strings.Contains(v.Type.String(), "N") {
					t.Errorf("input %s is %v", v.Name, v.Type)
				}
			}
			if data.Outputs, err = (verify.Verifier{}).Run(want, data); err != nil {
				t.Fatal(err)
			}
			told, err := verify.Verifier{Tolerance: verify.DefaultTolerance}.Verify(got, data)
			if err != nil {
				t.Fatalf("%v\n%s", err, got.Main())
			}
			for _, o := range told {
				if o.Wrong != "" {
					t.Errorf("%s: %s\n%s", o.Name, o.Wrong, got.Main())
				}
			}
		})
	}
}
