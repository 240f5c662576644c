package littests

import (
	"math/rand/v2"
	"testing"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// TestRandomGraphs optimizes graphs of random ONNX operators: they give the same numbers as before, do not grow, and a
// second run changes nothing.
func TestRandomGraphs(t *testing.T) {
	n := 300
	if testing.Short() {
		n = 50
	}
	ran := 0
	for seed := range n {
		ran += checkRandom(t, uint64(seed), 25)
	}
	if ran < n {
		t.Errorf("of %d graphs, each for two sizes, only %d runs were possible", n, ran)
	}
}

func FuzzRandomGraphs(f *testing.F) {
	f.Add(uint64(1), uint8(10))
	f.Fuzz(func(t *testing.T, seed uint64, size uint8) { checkRandom(t, seed, int(size)) })
}

// checkRandom gives the number of sizes that the graph could be run for: broadcasting may fail at run time.
func checkRandom(t *testing.T, seed uint64, size int) (ran int) {
	t.Helper()
	before, after := randomModule(seed, size), randomModule(seed, size)
	p, err := all.Set.Parse("optimize")
	if err != nil {
		t.Fatal(err)
	}
	if err := ssa.Verify(before); err != nil {
		t.Fatalf("seed %d: the generator is wrong: %v", seed, err)
	}
	if _, err := p.Run(after, &passes.Runner{VerifyEach: true}); err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, ssa.Print(before))
	}
	once := ssa.Print(after)
	if _, err := p.Run(after, nil); err != nil {
		t.Fatal(err)
	}
	if twice := ssa.Print(after); twice != once {
		t.Errorf("seed %d: a second run changes\n%s into\n%s", seed, once, twice)
	}
	f, g := before.Main(), after.Main()
	if a, b := nodes(f), nodes(g); b > a {
		t.Errorf("seed %d: %d nodes become %d:\n%s\n%s", seed, a, b, ssa.Print(before), once)
	}
	for _, n := range []int64{2, 5} {
		if _, err := (&interp.Interpreter{}).RunFunc(f, arguments(f, n, true)); err != nil {
			continue
		}
		ran++
		compare(t, f, g, n, 1e-4, true)
	}
	if t.Failed() {
		t.Fatalf("seed %d:\n%s", seed, ssa.Print(before))
	}
	return ran
}

// generator puts random operators behind each other.
type generator struct {
	r *rand.Rand
	b onnx.Builder
	// pool holds what operators may use.
	pool []*ssa.Value
}

func randomModule(seed uint64, size int) *ssa.Module {
	m := ssa.NewModule(all.Dialects()...)
	f := m.NewFunc("main")
	g := &generator{r: rand.New(rand.NewPCG(seed, 7)), b: onnx.Builder{Block: f.Body}}
	n := sym.Symbol("N", 0)
	four, six := sym.Const(4), sym.Const(6)
	g.pool = append(g.pool,
		f.Body.AddParam("x", ssa.Tensor(tensor.Float32, n, four, six)),
		f.Body.AddParam("y", ssa.Tensor(tensor.Float32, n, four, six)),
		f.Body.AddParam("z", ssa.Tensor(tensor.Float32, four, six)),
		f.Body.AddParam("i", ssa.Tensor(tensor.Int64, n, four)),
	)
	for range size {
		g.step()
	}
	var out []*ssa.Value
	for range 3 {
		v := g.pool[g.r.IntN(len(g.pool))]
		if t := v.Tensor(); t != nil && t.Ranked {
			out = append(out, v)
		}
	}
	out = append(out, g.pool[len(g.pool)-1])
	f.Body.SetReturns(out...)
	return m
}

// step adds an operator, or nothing if the operands do not fit.
func (g *generator) step() {
	var made []*ssa.Value
	_ = onnx.Build(func() { made = g.op() })
	for _, v := range made {
		if t := v.Tensor(); t != nil && t.Ranked && len(t.Dims) <= 5 && small(t) {
			g.pool = append(g.pool, v)
		}
	}
}

func small(t *ssa.TensorType) bool {
	total := int64(1)
	for _, d := range t.Dims {
		n, ok := d.Eval(map[string]int64{"N": 5})
		if !ok || n < 0 {
			return false // of a size that the test cannot know, or of none
		}
		total *= n
	}
	return total <= 5000
}

// any picks a value, recent ones more often.
func (g *generator) any(ok func(*ssa.Value) bool) *ssa.Value {
	for range 20 {
		k := g.r.IntN(len(g.pool))
		if g.r.IntN(2) == 0 {
			k = len(g.pool) - 1 - g.r.IntN(min(4, len(g.pool)))
		}
		if v := g.pool[k]; ok(v) {
			return v
		}
	}
	panic(&onnx.BuildError{})
}

func isFloat(v *ssa.Value) bool { return v.DType() == tensor.Float32 }
func isInt(v *ssa.Value) bool   { return v.DType() == tensor.Int64 }

func isAny(*ssa.Value) bool { return true }

func (g *generator) float() *ssa.Value { return g.any(isFloat) }

func (g *generator) ints(v ...int64) *ssa.Value { return g.b.Const(tensor.Ints(v...)) }

// constant is a float constant that broadcasts to v.
func (g *generator) constant(v *ssa.Value) *ssa.Value {
	pick := []float64{0, 1, -1, 0.5, 2}
	shape := []int64{}
	n := int64(1)
	if dims := v.Tensor().Dims; len(dims) > 0 && g.r.IntN(2) == 0 {
		if k, ok := dims[len(dims)-1].Int(); ok {
			shape, n = []int64{k}, k
		}
	}
	data := make([]float64, n)
	same := g.r.IntN(2) == 0
	for i := range data {
		if data[i] = pick[g.r.IntN(len(pick))]; same {
			data[i] = data[0]
		}
	}
	return g.b.Const(tensor.FromFloats(v.DType(), shape, data))
}

func (g *generator) axis(v *ssa.Value) int64 {
	n := len(v.Tensor().Dims)
	if n == 0 {
		panic(&onnx.BuildError{})
	}
	return int64(g.r.IntN(n))
}

func pick[T any](g *generator, vs ...T) T { return vs[g.r.IntN(len(vs))] }

func attrs(kv ...any) []ssa.Attr {
	var out []ssa.Attr
	for i := 0; i < len(kv); i += 2 {
		var l ssa.Literal
		switch v := kv[i+1].(type) {
		case int64:
			l = ssa.Int(v)
		case []int64:
			l = ssa.Ints(v...)
		}
		out = append(out, ssa.Attr{Name: kv[i].(string), Value: l})
	}
	return out
}

func (g *generator) op() []*ssa.Value {
	one := func(v *ssa.Value) []*ssa.Value { return []*ssa.Value{v} }
	b := &g.b
	switch g.r.IntN(26) {
	case 0, 1:
		return one(b.Op(pick(g, "Relu", "Neg", "Abs", "Sigmoid", "Floor", "Sign", "Exp"), g.float()))
	case 2, 3:
		return one(b.Op(pick(g, "Add", "Sub", "Mul", "Max", "Min"), g.float(), g.float()))
	case 4, 5:
		x := g.float()
		k := g.constant(x)
		if name := pick(g, "Add", "Mul", "Sub", "Div"); g.r.IntN(2) == 0 || name == "Div" {
			return one(b.Op(name, x, k))
		} else {
			return one(b.Op(name, k, x))
		}
	case 6, 7:
		x := g.any(isAny)
		n := len(x.Tensor().Dims)
		perm := make([]int64, n)
		for i, p := range g.r.Perm(n) {
			perm[i] = int64(p)
		}
		return one(b.OpA("Transpose", attrs("perm", perm), x))
	case 8, 9: // join two neighbouring axes, or cut one
		x := g.any(isAny)
		dims := x.Tensor().Dims
		a := g.axis(x)
		shape := make([]int64, 0, len(dims)+1)
		free := true
		for i, d := range dims {
			n, known := d.Int()
			switch {
			case int64(i) == a && known && n%2 == 0 && n > 0:
				shape = append(shape, n/2, 2)
			case !known && free:
				shape, free = append(shape, -1), false
			case known:
				shape = append(shape, n)
			default:
				shape = append(shape, 0)
			}
		}
		if g.r.IntN(2) == 0 && len(shape) >= 2 {
			if k := len(shape) - 2; shape[k] > 0 && shape[k+1] > 0 {
				shape = append(shape[:k:k], shape[k]*shape[k+1])
			}
		}
		return one(b.Op("Reshape", x, g.ints(shape...)))
	case 10:
		x := g.any(isAny)
		return one(b.Op("Unsqueeze", x, g.ints(int64(g.r.IntN(len(x.Tensor().Dims)+1)))))
	case 11:
		x := g.any(isAny)
		a := g.axis(x)
		if !x.Tensor().Dims[a].Is(1) {
			panic(&onnx.BuildError{})
		}
		return one(b.Op("Squeeze", x, g.ints(a)))
	case 12, 13:
		x := g.any(isAny)
		a := g.axis(x)
		start, end, step := int64(g.r.IntN(4)-1), pick(g, int64(2), 3, 1<<63-1, -1), int64(1+g.r.IntN(2))
		if g.r.IntN(3) == 0 { // the two halves
			if n, ok := x.Tensor().Dims[a].Int(); ok && n >= 2 {
				return []*ssa.Value{
					b.Op("Slice", x, g.ints(0), g.ints(n/2), g.ints(a)),
					b.Op("Slice", x, g.ints(n/2), g.ints(n), g.ints(a)),
				}
			}
		}
		return one(b.Op("Slice", x, g.ints(start), g.ints(end), g.ints(a), g.ints(step)))
	case 14:
		x, y := g.any(isAny), g.any(isAny)
		if x.DType() != y.DType() {
			panic(&onnx.BuildError{})
		}
		return one(b.OpA("Concat", attrs("axis", g.axis(x)), x, y))
	case 15:
		x := g.any(isAny)
		a := g.axis(x)
		if !x.Tensor().Dims[a].IsConst() {
			panic(&onnx.BuildError{})
		}
		return b.Create("onnx::Split", 2, []*ssa.Value{x}, attrs("axis", a, "num_outputs", int64(2))...)
	case 16, 17:
		x := g.float()
		return one(b.OpA(pick(g, "ReduceMax", "ReduceSum", "ReduceMin"), attrs("keepdims", int64(g.r.IntN(2))), x, g.ints(g.axis(x))))
	case 18:
		x := g.any(isAny)
		a := g.axis(x)
		index := g.b.Const(tensor.ScalarInt(int64(g.r.IntN(2))))
		if g.r.IntN(2) == 0 {
			index = g.ints(1, 0)
		}
		return one(b.OpA("Gather", attrs("axis", a), x, index))
	case 19:
		x := g.float()
		w := make([]float64, 6*5)
		for i := range w {
			w[i] = float64(g.r.IntN(7)-3) / 2
		}
		y := b.Op("MatMul", x, b.Const(tensor.FromFloats(tensor.Float32, []int64{6, 5}, w)))
		if g.r.IntN(2) == 0 {
			y = b.Op("Add", y, g.constant(y))
		}
		return one(y)
	case 20: // a convolution with its normalization
		x := g.float()
		dims := x.Tensor().Dims
		if len(dims) != 3 || !dims[1].Is(4) {
			panic(&onnx.BuildError{})
		}
		vec := func() *ssa.Value {
			v := make([]float64, 3)
			for i := range v {
				v[i] = float64(g.r.IntN(4) + 1)
			}
			return b.Const(tensor.FromFloats(tensor.Float32, []int64{3}, v))
		}
		w := make([]float64, 3*4*2)
		for i := range w {
			w[i] = float64(g.r.IntN(7)-3) / 4
		}
		if g.r.IntN(2) == 0 {
			x = b.Op("Pad", x, g.ints(0, 0, 1, 0, 0, 1))
		}
		y := b.Op("Conv", x, b.Const(tensor.FromFloats(tensor.Float32, []int64{3, 4, 2}, w)))
		if g.r.IntN(4) > 0 {
			y = b.Op("BatchNormalization", y, vec(), vec(), vec(), vec())
		}
		return one(y)
	case 21:
		x := g.float()
		return one(b.Op("Where", b.Op(pick(g, "Less", "GreaterOrEqual"), x, g.constant(x)), x, g.float()))
	case 22:
		x := g.float()
		return one(b.Op("Clip", x, g.b.Const(tensor.FromFloats(tensor.Float32, []int64{}, []float64{pick(g, -1., 0)})), g.b.Const(tensor.FromFloats(tensor.Float32, []int64{}, []float64{pick(g, 1., 6)}))))
	case 23: // arithmetic on sizes, and a shape that it makes
		x := g.float()
		s := b.Op("Shape", x)
		n := b.OpA("Gather", attrs("axis", int64(0)), s, g.ints(g.axis(x)))
		m := b.Op(pick(g, "Add", "Mul"), n, g.b.Const(tensor.ScalarInt(2)))
		return []*ssa.Value{m, b.Op("Expand", g.constant(x), s), b.Op("Reshape", x, b.OpA("Concat", attrs("axis", int64(0)), b.Op("Shape", x), g.ints(1)))}
	case 24:
		x := g.any(isInt)
		return one(b.Op(pick(g, "Add", "Mul", "Sub"), x, g.b.Const(tensor.ScalarInt(int64(g.r.IntN(4))))))
	default:
		x := g.any(isAny)
		to := pick(g, tensor.Float64, tensor.Float32, tensor.Int64, tensor.Bool)
		if x.DType().IsFloat() && to == tensor.Int64 { // NaN and infinity have no integer
			to = tensor.Float64
		}
		y := b.OpA("Cast", attrs("to", int64(to.ONNX())), x)
		return one(b.OpA("Cast", attrs("to", int64(x.DType().ONNX())), y))
	}
}
