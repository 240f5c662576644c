package e2e

import (
	"bytes"
	"math"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/ssa/tensor"
)

// TestMultinomial compares the frequencies of samples with the weights, each within 5 standard errors, where onnxruntime has a kernel of
// Multinomial and where it has none. What has no weight is never drawn.
func TestMultinomial(t *testing.T) {
	const n = 20000
	weights := [][]float64{{1, 0, 2, 0.5, 0}, {0, 0, 0, 3, 0}, {0, 1, 1, 1, 1000}}
	graph := `graph(%p : Float(3, K)):
  %n : int = prim::Constant[value=20000]()
  %again : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %y : Tensor = aten::multinomial(%p, %n, %again, %none)
  return (%y)
`
	var flat []float64
	for _, row := range weights {
		flat = append(flat, row...)
	}
	in := map[string]interp.Value{"p": interp.Of(tensor.FromFloats(tensor.Float32, []int64{3, 5}, flat))}
	for _, opset := range []int{17, 22} {
		m, err := aton.LoadBytes([]byte(graph), "graph.ir", aton.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if err := aton.ExportTo(&file, m, aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Opset: opset}}); err != nil {
			t.Fatal(err)
		}
		drawn := run(t, parsed(t, file.Bytes()), in)[0].Tensor.Int64s()
		for i, row := range weights {
			total, count := 0.0, make([]float64, len(row))
			for _, w := range row {
				total += w
			}
			for _, k := range drawn[i*n : (i+1)*n] {
				count[k]++
			}
			for k, w := range row {
				p := w / total
				if off := math.Abs(count[k]/n - p); off > 5*math.Sqrt(p*(1-p)/n) {
					t.Errorf("opset %d: class %d of row %d was drawn %v times of %d, its share is %v", opset, k, i, count[k], n, p)
				}
			}
		}
	}
}
