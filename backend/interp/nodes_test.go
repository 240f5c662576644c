package interp

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/internal/pack"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// leftOut tells why a test of the onnx package does not apply.
func leftOut(name string, m *ssa.Module) string {
	switch name {
	case "test_resize_downsample_scales_linear_align_corners", "test_resize_downsample_scales_cubic_align_corners":
		return "onnxruntime takes the rounded size here, and so do we"
	}
	for o := range m.Main().Body.AllOps() {
		ns, op := o.Kind.Namespace(), o.Kind.Name()
		for _, v := range append(o.Operands(), o.Results...) {
			switch {
			case v == nil:
			case v.DType() == tensor.Float8E8M0:
				return "element types that only pass through"
			}
		}
		switch {
		case ns != onnx.Namespace:
			return "operators of " + ns
		case strings.HasPrefix(op, "String") || op == "TfIdfVectorizer" || op == "RegexFullMatch":
			return "strings"
		case op == "ImageDecoder":
			return "image files"
		case op == "Gradient" || op == "Adam" || op == "Adagrad" || op == "Momentum":
			return "training"
		case op == "Bernoulli" || strings.HasPrefix(op, "Random") || op == "Multinomial":
			return "random numbers"
		case op == "Dropout" && strings.Contains(name, "training") && !strings.Contains(name, "zero_ratio"):
			return "random numbers"
		}
	}
	return ""
}

// readCase reads the model of a test, or tells why the test does not apply.
func readCase(name, path string) (m *ssa.Module, why string, err error) {
	m, err = onnxfile.Read(path)
	switch {
	case err != nil && strings.Contains(err.Error(), "element type"):
		return nil, "element types that aton does not have", nil
	case err != nil && strings.Contains(err.Error(), "(FlexAttention): subgraphs"):
		return nil, "FlexAttention of ai.onnx.preview with subgraphs", nil
	case err != nil:
		return nil, "", err
	}
	return m, leftOut(name, m), nil
}

func load(t *testing.T, path string) (Value, bool) {
	t.Helper()
	if _, err := os.Stat(path + ".none"); err == nil {
		return Value{}, true
	}
	if list, _ := filepath.Glob(path + ".seq/*.pb"); list != nil {
		sort.Strings(list)
		v := Value{IsList: true}
		for _, p := range list {
			_, x, err := onnxfile.ReadTensor(p)
			if err != nil {
				t.Fatal(err)
			}
			v.List = append(v.List, x)
		}
		return v, true
	}
	if _, err := os.Stat(path + ".seq"); err == nil {
		return Value{IsList: true}, true
	}
	if _, err := os.Stat(path + ".pb"); err != nil {
		return Value{}, false
	}
	_, x, err := onnxfile.ReadTensor(path + ".pb")
	if err != nil {
		t.Fatal(err)
	}
	return Of(x), true
}

func differ(got, want Value, rtol, atol float64) string {
	if got.IsList != want.IsList || len(got.List) != len(want.List) {
		return fmt.Sprintf("%v, want %v", got, want)
	}
	for i := range got.List {
		if d := differ(Of(got.List[i]), Of(want.List[i]), rtol, atol); d != "" {
			return fmt.Sprintf("element %d: %s", i, d)
		}
	}
	a, b := got.Tensor, want.Tensor
	if a == nil || b == nil {
		if a != b {
			return fmt.Sprintf("%v, want %v", got, want)
		}
		return ""
	}
	if a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) {
		return fmt.Sprintf("%v, want %v", a, b)
	}
	if a.DType == tensor.String {
		if !slices.Equal(a.StringData(), b.StringData()) {
			return fmt.Sprintf("%q, want %q", a.StringData(), b.StringData())
		}
		return ""
	}
	if !a.DType.IsFloat() || a.DType.Size() == 1 {
		if string(a.Bytes()) != string(b.Bytes()) {
			return fmt.Sprintf("%v, want %v", a.Bytes(), b.Bytes())
		}
		return ""
	}
	if a.DType == tensor.Float16 || a.DType == tensor.BFloat16 {
		rtol, atol = max(rtol, 1e-2), max(atol, 1e-3)
	}
	x, y := a.Float64s(), b.Float64s()
	for i := range x {
		same := x[i] == y[i] || x[i] != x[i] && y[i] != y[i] || math.Abs(x[i]-y[i]) <= atol+rtol*math.Abs(y[i])
		if !same {
			return fmt.Sprintf("element %d is %g, want %g", i, x[i], y[i])
		}
	}
	return ""
}

// TestNodes runs tests that the onnx package has for its operators: those in testdata/nodes.tar.gz, or all of them, which
// tools/judge/nodetests wrote to the folder in ATON_NODE_TESTS (make node-tests). It also compares the inferred types with what comes
// out. Tests that do not apply are counted by reason; a model that cannot be read for another one fails.
func TestNodes(t *testing.T) {
	dir := os.Getenv("ATON_NODE_TESTS")
	if dir == "" {
		dir = t.TempDir()
		if _, err := pack.Unpack(filepath.Join("..", "..", "testdata", "nodes.tar.gz"), dir); err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(dir, "nodes")
	}
	cases, _ := filepath.Glob(filepath.Join(dir, "*", "model.onnx"))
	if len(cases) == 0 {
		t.Fatalf("there are no tests in %s: make node-tests", dir)
	}
	sort.Strings(cases)
	out := map[string]int{}
	passed, failed := 0, 0
	for _, path := range cases {
		folder := filepath.Dir(path)
		name := filepath.Base(folder)
		m, why, err := readCase(name, path)
		if why != "" {
			out[why]++
			continue
		}
		if t.Run(name, func(t *testing.T) {
			if err != nil {
				t.Fatal(err)
			}
			if err := ssa.Verify(m); err != nil {
				t.Errorf("verifier: %v", err)
			}
			runCase(t, m, folder)
		}) {
			passed++
		} else {
			failed++
		}
	}
	var reasons []string
	for r, n := range out {
		reasons = append(reasons, fmt.Sprintf("%d: %s", n, r))
	}
	sort.Strings(reasons)
	t.Logf("%d passed, %d failed, left out:\n%s", passed, failed, strings.Join(reasons, "\n"))
}

func runCase(t *testing.T, m *ssa.Module, folder string) {
	text, err := os.ReadFile(filepath.Join(folder, "case.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct{ Rtol, Atol float64 }
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	rtol, atol := c.Rtol, c.Atol
	inferred := true
	if onnx.DefaultOpset(m) < onnx.Newest { // run as it stands, then in the newest encoding
		runData(t, m, folder, rtol, atol, false)
		if err := onnx.RaiseModule(m, false); err != nil {
			t.Errorf("modernize: %v", err)
			inferred = false
		}
	}
	runData(t, m, folder, rtol, atol, inferred)
}

func runData(t *testing.T, m *ssa.Module, folder string, rtol, atol float64, inferred bool) {
	for k := 0; ; k++ {
		data := filepath.Join(folder, fmt.Sprintf("data_%d", k))
		if _, err := os.Stat(data); err != nil {
			break
		}
		args := make([]Value, len(m.Main().Body.Params))
		for i := range args {
			var ok bool
			if args[i], ok = load(t, filepath.Join(data, fmt.Sprintf("input_%d", i))); !ok {
				args[i] = Of(m.Held(m.Main().Body.Params[i].Name))
			}
		}
		in := &Interpreter{}
		if inferred {
			// First with the sizes of the file, then with a symbol for each size, then with nothing known but element types.
			for _, known := range [...]string{"sizes", "symbols", "element types"} {
				env := map[string]int64{}
				switch known {
				case "symbols":
					env = symbols(m, args)
				case "element types":
					for i, p := range m.Main().Body.Params {
						if t := p.Tensor(); t != nil && args[i].Tensor != nil {
							p.Type = ssa.Unranked(t.DType)
						}
					}
				}
				if err := onnx.InferBlock(m.Main().Body); err != nil {
					t.Errorf("inference: %v", err)
					continue
				}
				if err := ssa.Verify(m); err != nil {
					t.Errorf("inferred from %s: %v", known, err)
				}
				in.Observe = func(o *ssa.Op, _, out []Value) error {
					for i, v := range out {
						if i < len(o.Results) {
							if why := mismatch(o.Results[i], v, env); why != "" {
								t.Errorf("inference of %s result %d from %s: %s", o.Kind, i, known, why)
							}
						}
					}
					return nil
				}
				if _, err := in.RunFunc(m.Main(), args); err != nil {
					break // reported below
				}
			}
			in.Observe = nil
		}
		got, err := in.RunFunc(m.Main(), args)
		if err != nil {
			t.Error(err)
			return
		}
		for i, g := range got {
			want, ok := load(t, filepath.Join(data, fmt.Sprintf("output_%d", i)))
			if !ok {
				continue
			}
			if d := differ(g, want, rtol, atol+1e-6); d != "" {
				t.Errorf("output %d: %s", i, d)
			}
		}
	}
}

// symbols gives the inputs of the graph symbolic sizes and tells their values.
func symbols(m *ssa.Module, args []Value) map[string]int64 {
	env := map[string]int64{}
	for i, p := range m.Main().Body.Params {
		if args[i].Tensor == nil || p.Tensor() == nil {
			continue
		}
		dims := make([]sym.Expr, len(args[i].Tensor.Shape))
		for k, n := range args[i].Tensor.Shape {
			name := fmt.Sprintf("s%d_%d", i, k)
			env[name] = n
			dims[k] = sym.Symbol(name, 0)
		}
		p.Type = ssa.Tensor(args[i].Tensor.DType, dims...)
	}
	return env
}

// mismatch compares a value with the inferred type and content.
func mismatch(v *ssa.Value, got Value, env map[string]int64) string {
	t := v.Tensor()
	if got.Tensor == nil {
		return ""
	}
	if t == nil {
		if _, optional := v.Type.(*ssa.OptionalType); optional {
			return ""
		}
		return fmt.Sprintf("%v for %v", v.Type, got)
	}
	if t.DType != tensor.Undefined && t.DType != got.Tensor.DType || t.Ranked && len(t.Dims) != len(got.Tensor.Shape) {
		return fmt.Sprintf("%v for %v", t, got.Tensor)
	}
	for i, d := range t.Dims {
		if n, ok := d.Eval(env); ok && n != got.Tensor.Shape[i] {
			return fmt.Sprintf("%v for %v", t, got.Tensor)
		}
	}
	for i, e := range v.Sym {
		if n, ok := e.Eval(env); ok && (i >= int(got.Tensor.NumElements()) || n != got.Tensor.Int64s()[i]) {
			return fmt.Sprintf("content %v for %v", v.Sym, got.Tensor.Int64s())
		}
	}
	return ""
}
