package prove

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// numberOf computes a term of which all variables are given; folds of floats in float64.
func (ts *terms) numberOf(t *testing.T, x *Term, value map[*Term]*Term) *Term {
	if v := value[x]; v != nil {
		return v
	}
	if x.Value != nil {
		return ts.constant(x.Value)
	}
	args := make([]*Term, len(x.Args))
	f := make([]float64, len(x.Args))
	for i, a := range x.Args {
		args[i] = ts.numberOf(t, a, value)
		if d := args[i].DType; d.IsFloat() || d.IsInt() || d == tensor.Bool {
			f[i] = args[i].Value.Float64s()[0]
		}
	}
	fold := func(start float64, v []float64, with func(a, b float64) float64) *Term {
		for _, b := range v {
			start = with(start, b)
		}
		return ts.number(x.DType, start)
	}
	add := func(a, b float64) float64 { return a + b }
	var out *Term
	switch {
	case !x.DType.IsFloat():
	case x.Func == "Dot" || x.Func == "of ReduceSum" || x.Func == "accumulated Add":
		out = fold(0, f, add)
	case x.Func == "times" || x.Func == "of ReduceProd" || x.Func == "accumulated Mul":
		out = fold(1, f, func(a, b float64) float64 { return a * b })
	case x.Func == "of LayerNormalization" || x.Func == "of MeanVarianceNormalization":
		group := f[1:]
		if x.Func == "of LayerNormalization" {
			group = f[3:]
		}
		mean := 0.0
		for _, v := range group {
			mean += v / float64(len(group))
		}
		variance := 0.0
		for _, v := range group {
			variance += (v - mean) * (v - mean) / float64(len(group))
		}
		if x.Func == "of MeanVarianceNormalization" {
			out = ts.number(x.DType, (f[0]-mean)/(math.Sqrt(variance)+1e-9))
		} else {
			out = ts.number(x.DType, (f[0]-mean)/math.Sqrt(variance+attrOf(x, "epsilon").Float())*f[1]+f[2])
		}
	}
	if x.Func == "of ArgMax" {
		best := 0
		for i, v := range f {
			if v > f[best] {
				best = i
			}
		}
		out = ts.constant(tensor.ScalarInt(int64(best)))
	}
	if out == nil {
		if out = ts.apply(x.Func, x.DType, x.Attrs, args...); out.Value == nil {
			t.Fatalf("%v is no number", out)
		}
	}
	value[x] = out
	return out
}

// What the prover takes operators for is what the interpreter computes, on the graphs of graphs.ir.
func TestMeaningsOfGraphs(t *testing.T) {
	tried := map[ssa.Kind]int{}
	pool := newPool()
	if err := pool.small(); err != nil {
		t.Fatal(err)
	}
	for _, name := range sortedKeys(pool.of) {
		for _, f := range pool.of[name] {
			dims := map[string]int64{}
			for _, s := range symbols(f) {
				dims[s] = 2
			}
			ts := newTerms()
			e := &evaluator{terms: ts, dims: dims, meant: true}
			args := make([]value, len(f.Body.Params))
			shapes := make([][]int64, len(args))
			for i, p := range f.Body.Params {
				var err error
				if shapes[i], err = sizes(p.Tensor(), dims); err != nil {
					t.Fatal(err)
				}
				args[i].t = ts.variables(fmt.Sprint("in", i), p.DType(), shapes[i])
			}
			got, err := e.function(f, args)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, f)
			}
			for seed := range uint64(40) {
				r := rand.New(rand.NewPCG(seed, 1))
				in, of := make([]interp.Value, len(args)), map[*Term]*Term{}
				for i, p := range f.Body.Params {
					x := randomTensor(r, p.DType(), shapes[i], 1, false)
					in[i] = interp.Of(x)
					for k, c := range ts.constants(x).Elems {
						of[args[i].t.Elems[k]] = c
					}
				}
				want, err := (&interp.Interpreter{}).RunFunc(f, in)
				if err != nil {
					continue // an index that is no place
				}
				for i, w := range want {
					if got[i].t == nil || got[i].t.DType == tensor.Undefined {
						continue
					}
					opaque := false
					out := make([]float64, len(got[i].t.Elems))
					for k, x := range got[i].t.Elems {
						if strings.Contains(x.Func, "::") {
							opaque = true
							break
						}
						out[k] = ts.numberOf(t, x, of).Value.Float64s()[0]
					}
					if opaque {
						continue
					}
					if !slices.Equal(got[i].t.Shape, w.Tensor.Shape) {
						t.Fatalf("%s: %v is %v", name, w.Tensor.Shape, got[i].t.Shape)
					}
					for k, v := range w.Tensor.Float64s() {
						tolerance := 0.0
						if w.Tensor.DType.IsFloat() {
							tolerance = 1e-5
							if w.Tensor.DType == tensor.Float16 {
								tolerance = 1e-2
							}
						}
						if math.Abs(out[k]-v) > tolerance*(1+math.Abs(v)) {
							t.Fatalf("%s: element %d is %v, not %v\n%s", name, k, v, out[k], f)
						}
					}
					for o := range f.Body.Ops() {
						tried[o.Kind]++
					}
				}
			}
		}
	}
	for _, name := range strings.Fields("AffineGrid BitCast CenterCropPad CumProd CumSum GatherElements GatherND OneHot RotaryEmbedding ScatterElements ScatterND TensorScatter GroupNormalization MeanVarianceNormalization EyeLike Col2Im DFT If Loop Range Hardmax") {
		if tried[ssa.Kind(onnx.Namespace+"::"+name)] == 0 {
			t.Errorf("%s was not compared", name)
		}
	}
}

// ofWords computes what is written in the words of the solver.
func ofWords(t *testing.T, text string, defs map[string]string, x float64) float64 {
	if def, ok := defs[text]; ok {
		return ofWords(t, def, defs, x)
	}
	if f, ok := rational(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(text)); ok {
		return f
	}
	switch text {
	case "x0":
		return x
	case "true":
		return 1
	case "false":
		return 0
	}
	if !strings.HasPrefix(text, "(") {
		t.Fatalf("%s is no number", text)
	}
	w := words(text[1 : len(text)-1])
	if w[0] == "ite" {
		if ofWords(t, w[1], defs, x) != 0 {
			return ofWords(t, w[2], defs, x)
		}
		return ofWords(t, w[3], defs, x)
	}
	v := make([]float64, len(w)-1)
	for i, a := range w[1:] {
		v[i] = ofWords(t, a, defs, x)
	}
	is := func(b bool) float64 { return map[bool]float64{true: 1}[b] }
	out := v[0]
	switch w[0] {
	case "+":
		for _, y := range v[1:] {
			out += y
		}
	case "*":
		for _, y := range v[1:] {
			out *= y
		}
	case "-":
		if len(v) == 1 {
			return -v[0]
		}
		return v[0] - v[1]
	case "/":
		return v[0] / v[1]
	case "<":
		return is(v[0] < v[1])
	case ">":
		return is(v[0] > v[1])
	case "<=":
		return is(v[0] <= v[1])
	case ">=":
		return is(v[0] >= v[1])
	case "=":
		return is(v[0] == v[1])
	case "not":
		return 1 - v[0]
	case "or":
		return slices.Max(v)
	case "and":
		return slices.Min(v)
	case "to_int":
		return math.Floor(v[0])
	case "to_real":
		return v[0]
	case "real.Exp":
		return math.Exp(v[0])
	case "real.Log":
		return math.Log(v[0])
	case "real.Sqrt":
		return math.Sqrt(v[0])
	case "real.Tanh":
		return math.Tanh(v[0])
	case "real.Erf":
		return math.Erf(v[0])
	case "real.Softplus":
		return math.Log1p(math.Exp(v[0]))
	default:
		t.Fatalf("no function %s", w[0])
	}
	return out
}

// The formulas on real numbers are those of the kernels.
func TestFormulas(t *testing.T) {
	tried := 0
	for _, name := range strings.Fields("Neg Reciprocal Abs Relu Sign Floor Ceil Round Cosh Sinh Acosh Asinh Atanh Sigmoid Celu Elu Gelu HardSigmoid HardSwish LeakyRelu Mish Selu Softsign Swish ThresholdedRelu") {
		ts := newTerms()
		v := ts.variable("x", tensor.Float64)
		term := ts.apply(name, tensor.Float64, attrsOf("onnx::"+ssa.Kind(name), nil), v)
		e := newEncoder(reals)
		text := e.term(term)
		if e.err != nil {
			t.Errorf("%s: %v", name, e.err)
			continue
		}
		for _, x := range []float64{-3.5, -2.5, -1, -0.75, -0.25, 0.3, 0.5, 0.9, 1, 1.5, 2.5, 7} {
			all, ok := onAll(term, map[*Term]*tensor.Tensor{v: tensor.FromFloats(tensor.Float64, []int64{1}, []float64{x})})
			if !ok {
				t.Errorf("%s has no kernel", name)
				break
			}
			want, got := all.Float64s()[0], ofWords(t, text, e.defs, x)
			if math.IsNaN(want) || math.IsInf(want, 0) {
				continue // no real number
			}
			if tried++; math.Abs(want-got) > 1e-5*(1+math.Abs(want)) {
				t.Errorf("%s(%v) is %v, not %v", name, x, want, got)
			}
		}
	}
	if tried < 200 {
		t.Errorf("%d numbers were compared", tried)
	}
}

// Intervals hold the results, and tell functions apart.
func TestNearby(t *testing.T) {
	ts := newTerms()
	x := ts.variable("x", tensor.Float32)
	num := func(v float64) *Term { return ts.number(tensor.Float32, v) }
	do := func(name string, args ...*Term) *Term { return ts.apply(name, tensor.Float32, nil, args...) }
	twice := do("Add", do("Tanh", x), do("Tanh", x))
	for _, tt := range []struct {
		name string
		a, b *Term
		want bool
	}{
		{"a product and a sum", do("Mul", num(2), do("Tanh", x)), twice, true},
		{"another factor", do("Mul", num(2.1), do("Tanh", x)), twice, false},
		{"far away alone", do("Mul", num(2), ts.apply("Where", tensor.Float32, nil, ts.apply("Less", tensor.Bool, nil, x, num(500)), do("Tanh", x), num(0.5))), twice, false},
	} {
		if got := nearby(tt.a, tt.b); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// Terms with constants are compared on all values of their variables, in each run: a constant is one element, and repeats.
func TestExhaustConstants(t *testing.T) {
	ts := newTerms()
	x := ts.variable("x", tensor.Int16)
	one := ts.constant(tensor.ScalarInt(1))
	wide := ts.apply("Cast", tensor.Int64, []ssa.Attr{{Name: "to", Value: ssa.Int(int64(tensor.Int64.ONNX()))}}, x)
	sum := ts.apply("Add", tensor.Int64, nil, wide, one)
	for range 20 {
		if all, _, ok := ts.exhaust(sum, one, "", different); all || !ok {
			t.Fatalf("x + 1 is 1 for all x: %v, %v", all, ok)
		}
		if all, _, ok := ts.exhaust(sum, sum, "", different); !all || !ok {
			t.Fatalf("x + 1 is not x + 1: %v, %v", all, ok)
		}
	}
}
