//go:build data

package interp

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"testing"

	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// TestExported runs the exports that a conformance run kept (ATON_KEPT: SUITE/ID/model.onnx)
// on the data of their cases (ATON_CASES), and compares with PyTorch's outputs
// and, on the way, values with inferred types, static and symbolic.
func TestExported(t *testing.T) {
	kept, cases := os.Getenv("ATON_KEPT"), os.Getenv("ATON_CASES")
	models, _ := filepath.Glob(filepath.Join(kept, "*", "*", "model.onnx"))
	if len(models) == 0 || cases == "" {
		t.Fatal("ATON_KEPT names a folder of models, ATON_CASES the one of their cases: make kept-tests KEPT=DIR CASES=DIR")
	}
	sort.Strings(models)
	for _, path := range models {
		id, _ := filepath.Rel(kept, filepath.Dir(path))
		t.Run(id, func(t *testing.T) {
			m, err := onnxfile.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := ssa.Verify(m); err != nil {
				t.Errorf("as read: %v", err)
			}
			if err := onnx.RaiseModule(m, false); err != nil {
				t.Fatal(err)
			}
			data := filepath.Join(cases, id, "test_data_set_0")
			byName := map[string]Value{}
			var byPlace []Value
			for i := 0; ; i++ {
				name, x, err := onnxfile.ReadTensor(filepath.Join(data, fmt.Sprintf("input_%d.pb", i)))
				if err != nil {
					break
				}
				byName[name] = Of(x)
				byPlace = append(byPlace, Of(x))
			}
			args := make([]Value, len(m.Main().Body.Params))
			for i, p := range m.Main().Body.Params {
				v, ok := byName[p.Name]
				if !ok && i < len(byPlace) {
					v = byPlace[i]
				}
				args[i] = v
			}
			var got []Value
			for _, symbolic := range [...]bool{false, true} {
				env := map[string]int64{}
				if symbolic {
					env = symbols(m, args)
				}
				if err := onnx.InferBlock(m.Main().Body); err != nil {
					t.Errorf("inference (symbolic: %v): %v", symbolic, err)
					continue
				}
				if err := ssa.Verify(m); err != nil {
					t.Errorf("inferred (symbolic: %v): %v", symbolic, err)
				}
				in := &Interpreter{Observe: func(o *ssa.Op, _, out []Value) error {
					for i, v := range out {
						if i < len(o.Results) {
							if why := mismatch(o.Results[i], v, env); why != "" {
								t.Errorf("inference of %s result %d: %s (symbolic: %v)", o.Kind, i, why, symbolic)
							}
						}
					}
					return nil
				}}
				if got, err = in.RunFunc(m.Main(), args); err != nil {
					t.Fatal(err)
				}
			}
			for i, g := range got {
				_, want, err := onnxfile.ReadTensor(filepath.Join(data, fmt.Sprintf("output_%d.pb", i)))
				if err != nil {
					continue
				}
				if d := differ(g, Of(want), 1e-3, 1e-4); d != "" {
					t.Errorf("output %d: %s", i, d)
				}
			}
		})
	}
}
