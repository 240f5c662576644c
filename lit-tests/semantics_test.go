package littests

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/passes/simplify"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// TestSemantics runs the graphs of the passes that must not change results before and after the pass, on random
// inputs with NaN, infinities and zeros of both signs, for two bindings of symbols. Results are equal bit by bit,
// or within the TOLERANCE that the file states; where a file says INPUTS: finite, they are only taken to be so for such
// inputs. No graph grows.
func TestSemantics(t *testing.T) {
	applied := map[string]bool{}
	for _, dir := range []string{"simplify", "fold-constants", "shapes", "ort-fusion"} {
		files, err := filepath.Glob("passes/" + dir + "/*.ir")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range onONNX(files) {
			t.Run(file, func(t *testing.T) { checkFile(t, file, applied) })
		}
	}
	for _, r := range simplify.Rules() {
		if !applied[r.Name] {
			t.Errorf("no graph in passes/simplify shows the rule %s", r.Name)
		}
	}
}

// onONNX leaves out the files that show what a pass does to programs of PyTorch: TestPrograms runs them.
func onONNX(files []string) []string {
	return slices.DeleteFunc(files, func(f string) bool { return filepath.Base(f) == "aten.ir" })
}

// TestLegalKeepsNumbers is TestSemantics for files of legalize: other ways to compute may take more nodes.
func TestLegalKeepsNumbers(t *testing.T) {
	for _, tt := range []struct {
		file      string
		tolerance float64
		odd       bool
	}{{"kinds", 1e-12, true}, {"roi", 1e-5, false}, {"recurrent", 1e-12, false}} {
		text, err := os.ReadFile("passes/legalize/" + tt.file + ".ir")
		if err != nil {
			t.Fatal(err)
		}
		for _, opset := range []int{9, 13, 17, 23} {
			p, err := all.Set.Parse(fmt.Sprintf("legalize{opset=%d}", opset))
			if err != nil {
				t.Fatal(err)
			}
			before, after := parse(t, text), parse(t, text)
			if _, err := p.Run(after, &passes.Runner{VerifyEach: true}); err != nil {
				t.Fatal(opset, err)
			}
			for i, f := range before.Funcs {
				compare(t, f, after.Funcs[i], 3, tt.tolerance, tt.odd)
			}
		}
	}
}

// TestProductOfBlocks is TestSemantics for weights of 4 bits, which text does not spell: with an odd number of blocks in a row, so that
// a row of zero points ends within a byte.
func TestProductOfBlocks(t *testing.T) {
	p, err := all.Set.Parse("ort-fusion{for=gpu},dce")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		d     tensor.DType
		zeros bool
	}{{tensor.Int4, false}, {tensor.Int4, true}, {tensor.Uint4, false}, {tensor.Uint4, true}} {
		least, zero, operand := 0, "", ""
		if c.d == tensor.Int4 {
			least = -8
		}
		matrix := func(rows, columns, seed int) string {
			text := ""
			for i := range rows * columns {
				text += fmt.Sprintf(" %d ", least+(i*i*7+seed)%16)
			}
			return fmt.Sprintf("onnx::Constant[value=%s[ CPUCharType{%d,%d} ]]()", text, rows, columns)
		}
		if c.zeros {
			zero, operand = "  %z : Char(2, 3) = "+matrix(2, 3, 5)+"\n", ", %z"
		}
		make := func() *ssa.Module {
			m := parse(t, []byte("graph @f(%x : Float(N, 48)):\n  %w : Char(2, 48) = "+matrix(2, 48, 3)+"\n"+zero+`  %s : Float(2, 3) = onnx::Constant[value= 0.5  0.25  2  0.125  1  3 [ CPUFloatType{2,3} ]]()
  %d : Float(2, 48) = onnx::DequantizeLinear[axis=1, block_size=16](%w, %s`+operand+`)
  %y : Float(N, 2) = onnx::Gemm[transB=1](%x, %d)
  return (%y)
`))
			for o := range m.Main().Body.AllOps() {
				if lit, ok := o.Attr("value"); ok && lit.Tensor.DType == tensor.Int8 {
					lit.Tensor.DType = c.d
					o.Result(0).Type = ssa.TensorOf(lit.Tensor)
				}
			}
			return m
		}
		before, after := make(), make()
		if _, err := p.Run(after, &passes.Runner{}); err != nil {
			t.Fatal(c, err)
		}
		found := false
		for o := range after.Main().Body.AllOps() {
			found = found || o.Kind == "com.microsoft::MatMulNBits"
		}
		if !found {
			t.Errorf("%v: no product of blocks\n%s", c, after.Main())
		}
		compare(t, before.Main(), after.Main(), 3, 1e-5, false)
	}
}

var (
	runLine       = regexp.MustCompile(`--passes='?([^' ]+)`)
	toleranceLine = regexp.MustCompile(`# TOLERANCE: (\S+)`)
	finiteLine    = regexp.MustCompile(`# INPUTS: finite`)
)

func checkFile(t *testing.T, file string, applied map[string]bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tolerance := 0.0
	if m := toleranceLine.FindSubmatch(text); m != nil {
		tolerance, _ = strconv.ParseFloat(string(m[1]), 64)
	}
	pipeline := string(runLine.FindSubmatch(text)[1])
	p, err := all.Set.Parse(pipeline)
	if err != nil {
		t.Fatal(err)
	}
	before, after := parse(t, text), parse(t, text)
	watch := passes.Observer{AfterPass: func(e *passes.Event) {
		for _, c := range e.Counts {
			applied[c.What] = true
		}
	}}
	if _, err := p.Run(after, &passes.Runner{VerifyEach: true, Observers: []passes.Observer{watch}}); err != nil {
		t.Fatal(err)
	}
	for i, f := range before.Funcs {
		g := after.Funcs[i]
		if a, b := nodes(f), nodes(g); b > a {
			t.Errorf("%s: %d nodes become %d", f.Name, a, b)
		}
		for _, size := range []int64{3, 4} {
			compare(t, f, g, size, tolerance, !finiteLine.Match(text))
		}
	}
}

func parse(t *testing.T, text []byte) *ssa.Module {
	t.Helper()
	m, err := ssa.Parse(string(text), "test", all.Dialects()...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func nodes(f *ssa.Func) int {
	n := 0
	for o := range f.Body.AllOps() {
		if o.Kind != "onnx::Constant" {
			n++
		}
	}
	return n
}

func compare(t *testing.T, f, g *ssa.Func, size int64, tolerance float64, odd bool) {
	t.Helper()
	for i, p := range f.Body.Params {
		if !ssa.SameType(p.Type, g.Body.Params[i].Type) {
			t.Fatalf("%s: the type of an input changes", f.Name)
		}
	}
	args := arguments(f, size, odd)
	run := func(f *ssa.Func) []interp.Value {
		out, err := (&interp.Interpreter{}).RunFunc(f, args)
		if err != nil {
			t.Fatalf("%s, size %d: %v\n%s", f.Name, size, err, f)
		}
		return out
	}
	want, got := run(f), run(g)
	for i := range want {
		if why := differ(want[i].Tensor, got[i].Tensor, tolerance); why != "" {
			t.Errorf("%s, size %d: output %d: %s\n%s", f.Name, size, i, why, g)
		}
	}
}

// arguments draws inputs for a size of the symbol N, with NaN, infinities and zeros among them if they are odd.
func arguments(f *ssa.Func, size int64, odd bool) []interp.Value {
	r := rand.New(rand.NewPCG(1, uint64(size)))
	var args []interp.Value
	for _, p := range f.Body.Params {
		args = append(args, interp.Of(random(r, p.Tensor(), size, odd)))
	}
	return args
}

func random(r *rand.Rand, t *ssa.TensorType, size int64, odd bool) *tensor.Tensor {
	shape := make([]int64, len(t.Dims))
	n := int64(1)
	for i, d := range t.Dims {
		shape[i], _ = d.Eval(map[string]int64{"N": size, "M": size + 2})
		n *= shape[i]
	}
	if t.DType.IsFloat() {
		rare := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 6, -1}
		v := make([]float64, n)
		for i := range v {
			if v[i] = r.NormFloat64() * 3; odd && r.IntN(12) == 0 {
				v[i] = rare[r.IntN(len(rare))]
			}
		}
		return tensor.FromFloats(t.DType, shape, v)
	}
	v := make([]int64, n)
	for i := range v {
		if v[i] = int64(r.IntN(7)) - 3; t.DType == tensor.Bool {
			v[i] &= 1
		}
	}
	if len(shape) == 0 && t.DType == tensor.Int64 {
		v[0] = 2 // the trips of a loop
	}
	return tensor.FromInts(t.DType, shape, v)
}

func differ(a, b *tensor.Tensor, tolerance float64) string {
	if a.DType != b.DType || fmt.Sprint(a.Shape) != fmt.Sprint(b.Shape) {
		return fmt.Sprintf("%v becomes %v", a, b)
	}
	if !a.DType.IsFloat() {
		if fmt.Sprint(a.Int64s()) != fmt.Sprint(b.Int64s()) {
			return fmt.Sprintf("%v becomes %v", a.Int64s(), b.Int64s())
		}
		return ""
	}
	x, y := a.Float64s(), b.Float64s()
	for i := range x {
		same := math.Float64bits(x[i]) == math.Float64bits(y[i]) || x[i] != x[i] && y[i] != y[i]
		if !same && !(tolerance > 0 && math.Abs(x[i]-y[i]) <= tolerance*math.Max(1, math.Abs(x[i]))) { // 0.0 is not -0.0
			return fmt.Sprintf("element %d: %v becomes %v", i, x[i], y[i])
		}
	}
	return ""
}
