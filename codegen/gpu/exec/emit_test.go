package exec_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/bound"
	"github.com/aton-project/aton/codegen/gpu/cuda"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// node is a graph of one operator for a test. Operands are inputs of the graph, or constants.
type node struct {
	op      string
	attrs   []ssa.Attr
	in      []*tensor.Tensor
	consts  []bool // which operands are constants; all others are inputs
	results int
	dynamic bool    // the sizes of the inputs are symbols, so that the kernel serves all
	only    []int64 // the sizes that are, nil for all
	tf32    bool
}

// options are those of its plan.
func (n *node) options(hint map[string]int64) plan.Options {
	return plan.Options{Fusion: fuse.None, Hint: hint, TF32: n.tf32}
}

func attr(name string, v ssa.Literal) ssa.Attr { return ssa.Attr{Name: name, Value: v} }

// module makes the graph.
func (n *node) module(t testing.TB) (*ssa.Module, []interp.Value) {
	m := ssa.NewModule(onnx.Dialect{})
	m.Opsets = map[string]int{"": onnx.Newest}
	f := m.NewFunc("main")
	var operands []*ssa.Value
	var args []interp.Value
	b := &onnx.Builder{Block: f.Body}
	symbols := map[int64]sym.Expr{}
	for i, x := range n.in {
		if x == nil {
			operands = append(operands, nil)
			continue
		}
		if i < len(n.consts) && n.consts[i] {
			operands = append(operands, b.Const(x))
			continue
		}
		typ := ssa.TensorOf(x)
		if n.dynamic {
			typ = ssa.Tensor(x.DType)
			for _, s := range x.Shape {
				if s < 2 || n.only != nil && !slices.Contains(n.only, s) { // 0 and 1 stay: a symbol is broadcast to nothing
					typ.Dims = append(typ.Dims, sym.Const(s))
					continue
				}
				if _, ok := symbols[s]; !ok {
					symbols[s] = sym.Symbol(fmt.Sprintf("N%d", s), 1)
				}
				typ.Dims = append(typ.Dims, symbols[s])
			}
		}
		operands = append(operands, f.Body.AddParam(fmt.Sprintf("x%d", i), typ))
		args = append(args, interp.Of(x))
	}
	results := max(n.results, 1)
	types := make([]ssa.Type, results)
	for i := range types {
		types[i] = ssa.AnyTensor
	}
	o := f.Body.Append(ssa.Kind("onnx::"+n.op), 0, operands, types...)
	o.Attrs = n.attrs
	f.Body.SetReturns(o.Results...)
	return m, args
}

// guesses are likely values of sizes: right at times, and wrong at others. Products of those guessed as 4096 have the largest tiles.
var guesses = map[string]int64{"N5": 5, "N9": 3000, "N64": 7, "N50": 4096, "N150": 4096, "N290": 4096, "N1540": 4096}

// check runs the node on the simulator with all its checkers, and compares with the interpreter.
func (n *node) check(t *testing.T) {
	t.Helper()
	m, args := n.module(t)
	p, err := plan.NewWith(m, n.options(guesses))
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range p.Nodes {
		if node.Place == plan.Host {
			t.Fatalf("%s runs on the host: %s", node.Op.Kind, node.Reason)
		}
	}
	want, err := new(interp.Interpreter).RunFunc(p.Func, args)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := exec.NewSession(p, &routes{exec.Sim{Check: true}}).Run(args)
	if err != nil {
		t.Fatalf("%v\n%s", err, kernels(p))
	}
	// the routes have run what is printed as PTX too; a GPU, if there is one, computes the same bits
	for _, b := range others() {
		again, _, err := exec.NewSession(p, b).Run(args)
		if err != nil {
			t.Fatalf("%s: %v\n%s", b.Name(), err, kernels(p))
		}
		for i := range got {
			if d := n.onDevice(p, again[i].Tensor, got[i].Tensor, want[i].Tensor, i); d.Bad() {
				t.Errorf("%s of %v: result %d on %s is not what the simulator of the IR gives: %s", n.op, n.in, i, b.Name(), d)
			}
		}
	}
	for i := range want {
		allowed, err := n.allowed(p, i, want[i].Tensor)
		if err != nil {
			t.Fatal(err)
		}
		if d := bound.Measure(got[i].Tensor, want[i].Tensor, allowed); d.Bad() {
			t.Errorf("%s of %v: result %d: %s\n%s", n.op, n.in, i, d, kernels(p))
		}
	}
}

// allowed is how far result i of the node may be from the interpreter's.
func (n *node) allowed(p *plan.Plan, i int, want *tensor.Tensor) (func(at int) float64, error) {
	tolerance := bound.Tolerance
	if n.tf32 {
		tolerance = bound.TF32
	}
	o := p.Func.Body.Last()
	return tolerance(o.Kind, o.Attrs, n.in, i, want)
}

var floatMma = regexp.MustCompile(`\bmma\.(f16|bf16|tf32)\b`)

// onDevice compares result i of a GPU with the simulator's: the same bits, but for those of a NaN, which PTX leaves to the device. In which order
// and with how many digits tensor cores add is not published, so what they computed is held against the interpreter by the operator's bound.
func (n *node) onDevice(p *plan.Plan, got, simulated, want *tensor.Tensor, i int) *bound.Difference {
	for _, k := range p.Kernels {
		if floatMma.MatchString(k.String()) {
			allowed, err := n.allowed(p, i, want)
			if err != nil {
				return &bound.Difference{Shape: err.Error()}
			}
			return bound.Measure(got, want, allowed)
		}
	}
	if bytes.Equal(got.Bytes(), simulated.Bytes()) {
		return &bound.Difference{}
	}
	d := bound.Measure(got, simulated, nil)
	if d.Bad() || !got.DType.IsFloat() {
		return d
	}
	x, y := got.Float64s(), simulated.Float64s()
	for i := range x {
		if math.Signbit(x[i]) != math.Signbit(y[i]) && x[i] == x[i] {
			return &bound.Difference{Shape: fmt.Sprintf("element %d is %v, not %v", i, x[i], y[i])}
		}
	}
	return d
}

// device is the GPU of this machine, nil if there is none.
var device = sync.OnceValue(func() *cuda.Backend {
	b, err := cuda.Open()
	if err != nil {
		return nil
	}
	return b
})

// others are the ways to run a kernel besides the simulator.
func others() []exec.Backend {
	var out []exec.Backend
	if b := device(); b != nil {
		out = append(out, b)
	}
	return out
}

func kernels(p *plan.Plan) string {
	var b strings.Builder
	for _, k := range p.Kernels {
		if s := k.String(); len(s) < 4000 {
			b.WriteString(s)
		}
	}
	return b.String()
}

// fill makes elements that show mistakes: of both signs, with zeros, and for floats infinities and NaN where special is set.
func fill(d tensor.DType, shape []int64, seed uint64, special bool) *tensor.Tensor {
	r := rand.New(rand.NewPCG(seed, uint64(d)))
	n := int64(1)
	for _, s := range shape {
		n *= s
	}
	if d.IsFloat() {
		v := make([]float64, n)
		for i := range v {
			v[i] = r.NormFloat64() * 3
			if special && r.IntN(8) == 0 {
				v[i] = []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1e-40, 1, -1}[r.IntN(8)]
			}
		}
		return tensor.FromFloats(d, shape, v)
	}
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(r.IntN(21) - 10)
		if d == tensor.Bool || d.IsUnsigned() {
			v[i] = int64(r.IntN(20))
		}
		if d == tensor.Bool {
			v[i] &= 1
		}
		if special && r.IntN(8) == 0 {
			v[i] = []int64{math.MaxInt64, math.MinInt64, -1, 0, 1 << 31, 255}[r.IntN(6)]
		}
	}
	if d == tensor.Bool {
		for i := range v {
			v[i] &= 1
		}
	}
	return tensor.FromInts(d, shape, v)
}

var (
	floatTypes = []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16}
	intTypes   = []tensor.DType{tensor.Int32, tensor.Int64}
	boolType   = []tensor.DType{tensor.Bool}
)

// shapes of elementwise tests: empty, one, odd, prime, at the edges of blocks and vectors.
var sizes = [][]int64{{0, 3}, {}, {1}, {7}, {3, 5}, {127}, {128}, {512}, {513}, {2, 131}, {1024, 3}}

func shapeName(s []int64) string { return strings.ReplaceAll(fmt.Sprint(s), " ", "x") }

func each[T any](lists ...[]T) []T {
	var out []T
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

func TestUnary(t *testing.T) {
	for _, c := range []struct {
		ops    string
		dtypes []tensor.DType
		attrs  []ssa.Attr
	}{
		{"Abs Neg Sign Relu", each(floatTypes, intTypes), nil},
		{"Sqrt Floor Ceil Round Exp Log Tanh Erf Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Sigmoid Softplus Reciprocal IsNaN IsInf Shrink", floatTypes, nil},
		{"Gelu", floatTypes, []ssa.Attr{attr("approximate", ssa.Str("tanh"))}},
		{"Celu Elu", floatTypes, []ssa.Attr{attr("alpha", ssa.Float(0.3))}},
		{"Shrink", floatTypes, []ssa.Attr{attr("lambd", ssa.Float(1.5)), attr("bias", ssa.Float(0.5))}},
		{"IsInf", floatTypes, []ssa.Attr{attr("detect_negative", ssa.Int(0))}},
		{"BitwiseNot", intTypes, nil},
		{"Not", boolType, nil},
		{"Identity", each(floatTypes, intTypes, boolType), nil},
	} {
		for _, op := range strings.Fields(c.ops) {
			for _, d := range c.dtypes {
				t.Run(op+"/"+d.Spec(), func(t *testing.T) {
					for i, shape := range sizes {
						(&node{op: op, attrs: c.attrs, in: []*tensor.Tensor{fill(d, shape, uint64(i), i%2 == 1)}}).check(t)
					}
					(&node{op: op, attrs: c.attrs, in: []*tensor.Tensor{fill(d, []int64{5, 37}, 9, true)}, dynamic: true}).check(t)
				})
			}
		}
	}
}

// TestExpressions runs every operator whose row has an expression.
func TestExpressions(t *testing.T) {
	for _, name := range onnx.Names() {
		k := ssa.Kind("onnx::" + name)
		if onnx.ExprOf(k) == nil {
			continue
		}
		least, _ := onnx.Arity(onnx.SchemaOf(k).Inputs)
		for _, d := range floatTypes {
			t.Run(name+"/"+d.Spec(), func(t *testing.T) {
				operands := func(shape []int64, seed uint64, special bool) (in []*tensor.Tensor) {
					for i := range least {
						in = append(in, fill(d, shape, seed+50*uint64(i), special))
					}
					return in
				}
				for i, shape := range sizes {
					(&node{op: name, in: operands(shape, uint64(i), i%2 == 1)}).check(t)
				}
				(&node{op: name, in: operands([]int64{5, 37}, 9, true), dynamic: true}).check(t)
			})
		}
	}
}

// pairs are shapes that are broadcast together.
var pairs = [][2][]int64{{{4}, {4}}, {{515}, {515}}, {{3, 1}, {1, 5}}, {{2, 3, 4}, {3, 1}}, {{0, 3}, {1}}, {{}, {7}}, {{64, 3}, {}}, {{1, 1}, {5}}, {{2, 1, 33}, {2, 17, 1}}}

func TestBinary(t *testing.T) {
	for _, c := range []struct {
		ops    string
		dtypes []tensor.DType
		attrs  []ssa.Attr
	}{
		{"Add Sub Mul Max Min Less LessOrEqual Greater GreaterOrEqual", each(floatTypes, intTypes), nil},
		{"Equal", each(floatTypes, intTypes, boolType), nil},
		{"Div Pow", floatTypes, nil},
		{"And Or Xor", boolType, nil},
		{"BitwiseAnd BitwiseOr BitwiseXor", intTypes, nil},
		{"Sum Max Mean", floatTypes, nil},
	} {
		for _, op := range strings.Fields(c.ops) {
			for _, d := range c.dtypes {
				t.Run(op+"/"+d.Spec(), func(t *testing.T) {
					for i, s := range pairs {
						(&node{op: op, attrs: c.attrs, in: []*tensor.Tensor{fill(d, s[0], uint64(i), i%2 == 0), fill(d, s[1], uint64(i)+50, i%2 == 0)}}).check(t)
					}
					(&node{op: op, attrs: c.attrs, in: []*tensor.Tensor{fill(d, []int64{5, 7}, 1, true), fill(d, []int64{5, 7}, 2, true)}, dynamic: true}).check(t)
				})
			}
		}
	}
	for _, d := range intTypes {
		for _, op := range []string{"Div", "Mod"} {
			t.Run(op+"/"+d.Spec(), func(t *testing.T) {
				x, y := fill(d, []int64{200}, 3, true), fill(d, []int64{200}, 4, true)
				v := append([]int64(nil), y.Int64s()...)
				for i := range v {
					if tensor.FromInts(d, []int64{1}, v[i:i+1]).Int64s()[0] == 0 {
						v[i] = -1
					}
				}
				(&node{op: op, in: []*tensor.Tensor{x, tensor.FromInts(d, y.Shape, v)}}).check(t)
				if op == "Mod" {
					(&node{op: op, attrs: []ssa.Attr{attr("fmod", ssa.Int(1))}, in: []*tensor.Tensor{x, tensor.FromInts(d, y.Shape, v)}}).check(t)
				}
			})
		}
	}
}
