// Package pipeline is the example of two models in one pipeline, in Go alone.
package pipeline

import (
	"bytes"
	"fmt"
	"log"
	"path/filepath"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

const fixtures = "../../../testdata/fixtures/torch2.15"

// convert makes ONNX of what PyTorch saved, and reads the file again, as a program would that only has the file. The outputs that PyTorch recorded
// beside the archive are compared with those of the file.
func convert(name string, inputs ...string) (*ssa.Module, error) {
	var o aton.LoadOptions
	for _, text := range inputs {
		in, err := spec.Parse(text)
		if err != nil {
			return nil, err
		}
		o.Inputs = append(o.Inputs, in)
	}
	m, err := aton.Load(filepath.Join(fixtures, name+".script.pt"), o)
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	if err := aton.ExportTo(&file, m, aton.ExportOptions{}); err != nil {
		return nil, err
	}
	if m, err = aton.LoadBytes(file.Bytes(), name+".onnx", aton.LoadOptions{}); err != nil {
		return nil, err
	}
	sets, err := verify.ReadData(filepath.Join(fixtures, name+".script.safetensors"))
	if err != nil {
		return nil, err
	}
	outputs, right := 0, 0
	for _, data := range sets {
		compared, err := verify.Verifier{Tolerance: verify.DefaultTolerance}.Verify(m, data)
		if err != nil {
			return nil, err
		}
		for _, c := range compared {
			outputs++
			if c.Wrong == "" {
				right++
			}
		}
	}
	fmt.Printf("%s: %d of %d recorded outputs are right\n", name, right, outputs)
	return m, nil
}

// run gives the only output of a model with one input.
func run(m *ssa.Module, input string, x *tensor.Tensor) (*tensor.Tensor, error) {
	out, err := interp.Run(m, map[string]interp.Value{input: interp.Of(x)})
	if err != nil {
		return nil, err
	}
	return out[0].Tensor, nil
}

// The first model makes each channel of an image twice as large, the second one says what is in the image.
func Example() {
	larger, err := convert("super_resolution", "x:f32[N,1,H,W]")
	if err != nil {
		log.Fatal(err)
	}
	scores, err := convert("convnet", "x:f32[N,3,18,18]")
	if err != nil {
		log.Fatal(err)
	}

	pixels := make([]float64, 3*9*9)
	for i := range pixels {
		pixels[i] = float64(i%7) / 7
	}
	x := tensor.FromFloats(tensor.Float32, []int64{3, 1, 9, 9}, pixels)
	if x, err = run(larger, "x", x); err != nil {
		log.Fatal(err)
	}
	fmt.Println("the image is", x.Shape)
	x = tensor.Of(tensor.Float32, []int64{1, 3, 18, 18}, tensor.Data[float32](x)) // channels instead of a batch
	if x, err = run(scores, "x", x); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("the scores are %.4f\n", tensor.Data[float32](x)) // those that PyTorch gives for the same pixels
	// Output:
	// super_resolution: 2 of 2 recorded outputs are right
	// convnet: 2 of 2 recorded outputs are right
	// the image is [3 1 18 18]
	// the scores are [0.0316 0.1464 0.2687 -0.0164 0.3126]
}
