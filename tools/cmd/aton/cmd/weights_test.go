package cmd

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton/backend/onnxfile"
)

// Weights that are asked for as inputs are all there, under the names of the state dict, and the JSON says what the file has.
func TestWeightsAsInputs(t *testing.T) {
	for _, flag := range []string{"--no-weights", "--keep-initializers-as-inputs"} {
		for _, opset := range []string{"9", "17"} {
			file := filepath.Join(t.TempDir(), "o.onnx")
			status, text, said := call("", "export", convnet, "-o", file, "--input", convnetType, "--opset", opset, "--json", "--output-names", "scores", flag)
			if status != 0 {
				t.Fatal(said)
			}
			var told exported
			if err := json.Unmarshal([]byte(text), &told); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, in := range told.Inputs {
				names = append(names, in.Name)
			}
			for _, want := range []string{"x", "features.0.weight", "features.0.bias"} {
				if !slices.Contains(names, want) {
					t.Errorf("%s at opset %s: no input %s in %s", flag, opset, want, strings.Join(names, ", "))
				}
			}
			if len(told.Outputs) != 1 || told.Outputs[0].Name != "scores" {
				t.Errorf("outputs %v", told.Outputs)
			}
			m, err := onnxfile.Read(file)
			if err != nil {
				t.Fatal(err)
			}
			inputs := len(m.Main().Body.Params)
			if flag == "--no-weights" && inputs != len(names) {
				t.Errorf("%d inputs in the file, %d in the JSON", inputs, len(names))
			}
		}
	}
}
