package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/internal/pack"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
)

// unpack writes a committed archive of cases to a folder and lists them.
func unpack(t *testing.T, name string) []string {
	t.Helper()
	dirs, err := pack.Unpack(name, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

type randomCase struct {
	InputSpecs  []string                     `json:"input_specs"`
	DynamicAxes map[string]map[string]string `json:"dynamic_axes"`
	Rtol, Atol  float64
	DataSets    []struct{ Dir string } `json:"data_sets"`
}

func readTensors(t *testing.T, dir, kind string) (names []string, ts []*tensor.Tensor) {
	t.Helper()
	for i := 0; ; i++ {
		path := filepath.Join(dir, fmt.Sprintf("%s_%d.pb", kind, i))
		if _, err := os.Stat(path); err != nil {
			return names, ts
		}
		n, x, err := onnxfile.ReadTensor(path)
		if err != nil {
			t.Fatal(err)
		}
		names, ts = append(names, n), append(ts, x)
	}
}

func compare(got, want *tensor.Tensor, rtol, atol float64) error {
	if got == nil {
		return errors.New("no tensor")
	}
	if got.DType != want.DType || fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) {
		return fmt.Errorf("%v instead of %v", got, want)
	}
	if !got.DType.IsFloat() {
		g, w := got.Int64s(), want.Int64s()
		for i := range w {
			if g[i] != w[i] {
				return fmt.Errorf("element %d is %d instead of %d", i, g[i], w[i])
			}
		}
		return nil
	}
	g, w := got.Float64s(), want.Float64s()
	for i := range w {
		if math.IsNaN(g[i]) && math.IsNaN(w[i]) || g[i] == w[i] {
			continue
		}
		if d := math.Abs(g[i] - w[i]); !(d <= atol+rtol*math.Abs(w[i])) {
			return fmt.Errorf("element %d is %g instead of %g", i, g[i], w[i])
		}
	}
	return nil
}

// TestRandomPrograms converts random programs over views, writes, indices,
// branches and loops, and evaluates the graph behind every pass on ONNX
// operators: all give PyTorch's recorded outputs. See tools/maker/randprog.
func TestRandomPrograms(t *testing.T) { runCases(t, "testdata/random.tar.gz", 100) }

// TestLists does the same for programs over lists whose length is known when they run. See tools/maker/randprog.
func TestLists(t *testing.T) { runCases(t, "testdata/lists.tar.gz", 56) }

// TestAliases does the same for programs on what places of containers share in loops, on lists of tuples, on numbers of scripts, and on sizes of 1 and 0.
func TestAliases(t *testing.T) { runCases(t, "testdata/aliases.tar.gz", 42) }

// TestEdges does the same for programs on the edges of numbers: integers beyond 2^53, NaN, infinities, signs of zero,
// tensors without elements. See tools/maker/edges.
func TestEdges(t *testing.T) { runCases(t, "testdata/edges.tar.gz", 60) }

// TestGradients does the same for scripts that ask for gradients. See tools/maker/gradients.
func TestGradients(t *testing.T) { runCases(t, "testdata/gradients.tar.gz", 150) }

// runCases runs the cases of an archive, which has at least so many.
func runCases(t *testing.T, archive string, least int) {
	cases := unpack(t, archive)
	if len(cases) < least {
		t.Fatalf("%d cases", len(cases))
	}
	for _, dir := range cases {
		t.Run(filepath.Base(dir), func(t *testing.T) { runCase(t, dir) })
	}
}

func runCase(t *testing.T, dir string) {
	raw, err := os.ReadFile(filepath.Join(dir, "case.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c randomCase
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	inputs, err := spec.ParseAll(c.InputSpecs, c.DynamicAxes)
	if err != nil {
		t.Fatal(err)
	}
	opts := options{load: aton.LoadOptions{Inputs: inputs}, export: aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Opset: 17}}}
	m, err := aton.Load(filepath.Join(dir, "model.pt"), opts.load)
	if err != nil {
		t.Fatal(err)
	}
	evaluated := 0
	opts.export.Runner = &passes.Runner{VerifyEach: true, Observers: []passes.Observer{{AfterPass: func(e *passes.Event) {
		if e.Module.UsesNamespace("aten") || e.Module.UsesNamespace("prim") || t.Failed() {
			return
		}
		evaluated++
		for _, d := range c.DataSets {
			if err := evaluate(t, e.Module, filepath.Join(dir, d.Dir), c.Rtol, c.Atol); err != nil {
				t.Errorf("behind %s, %s: %v", e.Text, d.Dir, err)
			}
		}
	}}}}
	if _, err := aton.Convert(m, opts.export.ConvertOptions); err != nil {
		t.Fatal(err)
	}
	if evaluated < 2 {
		t.Errorf("the graph was evaluated behind %d passes only", evaluated)
	}
}

func evaluate(t *testing.T, m *ssa.Module, dir string, rtol, atol float64) error {
	names, ins := readTensors(t, dir, "input")
	_, want := readTensors(t, dir, "output")
	feed := map[string]interp.Value{}
	for i, n := range names {
		feed[n] = interp.Of(ins[i])
	}
	got, err := interp.Run(m, feed)
	if err != nil {
		return err
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d outputs instead of %d", len(got), len(want))
	}
	for i := range want {
		if err := compare(got[i].Tensor, want[i], rtol, atol); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	return nil
}

// TestQuantizedWeights converts programs whose weights torchao quantized: no weight is in the file in more bits than it was
// quantized to where the opset has a type of so few, and a warning says where it has none. That the numbers are PyTorch's is tested with the other recorded programs (tools/lib/cases).
func TestQuantizedWeights(t *testing.T) {
	dir := t.TempDir()
	if _, err := pack.Unpack("testdata/quantized.tar.gz", dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		opset int
		want  tensor.DType
		wider bool
	}{
		{"int8_weight_row.float32", 13, tensor.Int8, false},
		{"int8_dynamic_int8_weight.bfloat16", 20, tensor.Int8, false},
		{"float8_weight_row.float32", 20, tensor.Float8E4M3FN, false},
		{"intx_int4_weight_group_32.float32", 20, tensor.Int8, true},
		{"intx_int4_weight_group_32.float32", 21, tensor.Int4, false},
		{"intx_int4_weight_group_32_zero_points.bfloat16", 21, tensor.Int4, false},
		{"int8_dynamic_int4_weight_zero_points.float32", 21, tensor.Int4, false},
		{"intx_int2_weight_group_32.float32", 21, tensor.Int4, true},
		{"intx_int2_weight_group_32.float32", 25, tensor.Int2, false},
	} {
		opts := converting(aton.ConvertOptions{Opset: c.opset})
		m, err := aton.Load(filepath.Join(dir, c.name, "model.pt2"), opts.load)
		if err != nil {
			t.Fatal(err)
		}
		said, err := aton.Convert(m, opts.export.ConvertOptions)
		if err != nil {
			t.Fatal(err)
		}
		if wider := slices.ContainsFunc(said.Items, func(d diag.Diagnostic) bool { return d.ID == "wider-weights" }); wider != c.wider {
			t.Errorf("%s at opset %d: warns of wider weights: %v", c.name, c.opset, wider)
		}
		found := false
		for o := range m.Main().Body.AllOps() {
			lit, ok := o.Attr("value")
			if !ok || lit.Tensor == nil || lit.Tensor.NumElements() < 8*64 {
				continue
			}
			found = true
			if lit.Tensor.DType != c.want {
				t.Errorf("%s at opset %d: a weight of %v", c.name, c.opset, lit.Tensor.DType)
			}
		}
		if !found {
			t.Errorf("%s at opset %d: no weight", c.name, c.opset)
		}
	}
}
