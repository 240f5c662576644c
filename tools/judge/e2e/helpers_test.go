package e2e

import (
	"bytes"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/verify"
)

// options are those of loading, and those of converting and writing.
type options struct {
	load   aton.LoadOptions
	export aton.ExportOptions
}

// converting returns the options of a conversion, and those of loading that go with them.
func converting(o aton.ConvertOptions) options {
	return options{o.LoadOptions(), aton.ExportOptions{ConvertOptions: o}}
}

// withInputs adds inputs to options, in the language of --input.
func withInputs(t *testing.T, o options, specs ...string) options {
	t.Helper()
	for _, s := range specs {
		in, err := spec.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		o.load.Inputs = append(o.load.Inputs, in)
	}
	return o
}

// written exports a module.
func written(t *testing.T, m *ssa.Module, o options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := aton.ExportTo(&b, m, o.export); err != nil {
		t.Fatalf("opset %d: %v", o.export.Opset, err)
	}
	return b.Bytes()
}

// writtenFrom exports the model in a file.
func writtenFrom(t *testing.T, path string, o options) []byte {
	t.Helper()
	m, err := aton.Load(path, o.load)
	if err != nil {
		t.Fatal(err)
	}
	return written(t, m, o)
}

// writtenText exports graph text.
func writtenText(t *testing.T, text string, o options) []byte {
	t.Helper()
	m, err := aton.LoadBytes([]byte(text), "graph.ir", o.load)
	if err != nil {
		t.Fatal(err)
	}
	return written(t, m, o)
}

// parsed reads an ONNX file as it is.
func parsed(t *testing.T, file []byte) *ssa.Module {
	t.Helper()
	m, err := onnxfile.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run evaluates a module.
func run(t *testing.T, m *ssa.Module, inputs map[string]interp.Value) []interp.Value {
	t.Helper()
	out, err := interp.Run(m, inputs)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// recorded gives the data that PyTorch recorded for a fixture.
func recorded(t *testing.T, path string) []verify.DataSet {
	t.Helper()
	stem := strings.TrimSuffix(path, ".pt")
	if s, ok := strings.CutSuffix(path, ".pt2"); ok {
		stem = s + ".export"
	}
	sets, err := verify.ReadData(stem + ".safetensors")
	if err != nil {
		t.Fatal(err)
	}
	return sets
}
