package prove

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// What the solver is told of an operator is what its kernel computes: on random numbers, with odd ones among them, no other result
// satisfies the formula.
func TestMeaning(t *testing.T) {
	p := solver(t)
	p.Solver.Limit = 200 * time.Millisecond
	unary := strings.Fields("Neg Abs Relu Sign Ceil Floor Round Sqrt Reciprocal IsNaN IsInf Not BitwiseNot")
	binary := strings.Fields("Add Sub Mul Div Max Min Mod BitwiseAnd BitwiseOr BitwiseXor BitShift And Or Xor Equal Less LessOrEqual Greater GreaterOrEqual")
	r := rand.New(rand.NewPCG(1, 1))
	compared, unsaid := map[string]int{}, map[string]int{}
	try := func(name string, d, result tensor.DType, attrs []ssa.Attr, n int) {
		kind := ssa.Kind("onnx::" + name)
		for round := range 4 {
			ts := newTerms()
			var script strings.Builder
			in, args := make([]*tensor.Tensor, n), make([]*Term, n)
			for i := range args {
				in[i] = randomTensor(r, d, []int64{}, []float64{3, 100}[round%2], round > 1)
				args[i] = ts.variable(fmt.Sprint("in", i), d)
			}
			want, err := kernel.Eval(kind, attrs, in, 1)
			if err != nil {
				return // not an operator of this type
			}
			if result == tensor.Undefined {
				result = want[0].DType
			}
			e := newEncoder(ieee)
			got := e.term(ts.apply(name, result, attrsOf(kind, attrs), args...))
			literal := e.literal(want[0])
			if e.err != nil {
				return
			}
			script.WriteString(e.out.String())
			for i, v := range args {
				fmt.Fprintf(&script, "(assert (= %s %s))\n", e.term(v), e.literal(in[i]))
			}
			fmt.Fprintf(&script, "(assert (not (= %s %s)))", got, literal)
			if strings.Contains(script.String(), "(declare-fun") { // any function
				unsaid[name]++
				return
			}
			answer, _, err := p.Solver.Ask(script.String(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if answer == Sat {
				var text []string
				for _, x := range in {
					text = append(text, spell(x))
				}
				t.Errorf("%s(%s) is %s, which the formula is not", name, strings.Join(text, ", "), spell(want[0]))
				return
			}
			if answer == Unsat {
				compared[name]++
			}
		}
	}
	for _, d := range instanceTypes {
		for _, name := range unary {
			try(name, d, tensor.Undefined, nil, 1)
		}
		for _, name := range binary {
			var attrs []ssa.Attr
			if name == "BitShift" {
				attrs = []ssa.Attr{{Name: "direction", Value: ssa.Str("RIGHT")}}
			}
			try(name, d, tensor.Undefined, attrs, 2)
		}
		for _, to := range instanceTypes {
			if to != d {
				try("Cast", d, to, []ssa.Attr{{Name: "to", Value: ssa.Int(int64(to.ONNX()))}}, 1)
			}
		}
	}
	t.Log(compared, unsaid)
	for _, name := range append(unary, append(binary, "Cast")...) {
		if compared[name] == 0 {
			t.Errorf("%s was not compared", name)
		}
	}
}

// Conversions that terms leave out make no difference: on all numbers of at most 16 bits, and on some of 32.
func TestConverted(t *testing.T) {
	all := []tensor.DType{tensor.Bool, tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Uint16, tensor.Int32, tensor.Uint32, tensor.Int64, tensor.Uint64, tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64}
	to := func(d tensor.DType) []ssa.Attr {
		return []ssa.Attr{{Name: "to", Value: ssa.Int(int64(d.ONNX()))}}
	}
	tried := 0
	for _, from := range all {
		if from == tensor.Int64 || from == tensor.Uint64 || from == tensor.Float64 {
			continue // nothing holds all of their numbers
		}
		n, bytes := 1<<16, from.Size()
		r := rand.New(rand.NewPCG(1, 2))
		raw := make([]byte, n*bytes)
		for i := range n {
			v := uint32(i)
			if bytes == 4 {
				v = r.Uint32()
				if i < 256 {
					v = 1<<31 + uint32(i) - 128 // where signs change
				}
			} else if from == tensor.Bool {
				v &= 1
			}
			for k := range bytes {
				raw[i*bytes+k] = byte(v >> (8 * k))
			}
		}
		x := tensor.New(from, []int64{int64(n)}, raw)
		for _, middle := range all {
			if !exactly(from, middle) || middle == from {
				continue
			}
			wide, err := kernel.Eval("onnx::Cast", to(middle), []*tensor.Tensor{x}, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range all {
				ts := newTerms()
				v := ts.variable("x", from)
				term := ts.apply("Cast", d, to(d), ts.apply("Cast", middle, to(middle), v))
				if term.Func == "Cast" && term.Args[0].Func == "Cast" {
					continue // both are kept
				}
				want, err := kernel.Eval("onnx::Cast", to(d), wide, 1)
				if err != nil {
					t.Fatal(err)
				}
				got, ok := onAll(term, map[*Term]*tensor.Tensor{v: x})
				if tried++; !ok || different(want[0], got) >= 0 {
					t.Errorf("%v to %v to %v is not %v", from, middle, d, term)
				}
			}
			// the greatest of two
			ts := newTerms()
			a, b := ts.variable("a", from), ts.variable("b", from)
			greatest := ts.apply("of ReduceMax", middle, nil, ts.apply("Cast", middle, to(middle), a), ts.apply("Cast", middle, to(middle), b))
			term := ts.apply("Cast", from, to(from), greatest)
			if term.Func == "Cast" {
				t.Errorf("the extreme of converted %v is not found", from)
			}
			shuffled := x.Clone()
			for i, k := range r.Perm(n) {
				copy(shuffled.Storage.Bytes()[i*bytes:(i+1)*bytes], raw[k*bytes:(k+1)*bytes])
			}
			value := func() map[*Term]*tensor.Tensor { return map[*Term]*tensor.Tensor{a: x, b: shuffled} }
			wideMax, ok := onAll(greatest, value())
			got, also := onAll(term, value())
			if !ok || !also {
				continue // no such kernel
			}
			want, err := kernel.Eval("onnx::Cast", to(from), []*tensor.Tensor{wideMax}, 1)
			if tried++; err != nil || different(want[0], got) >= 0 {
				t.Errorf("the extreme of %v is another one in %v", from, middle)
			}
		}
	}
	if tried < 100 {
		t.Errorf("%d conversions were compared", tried)
	}
}

// Definitions compute what the kernels of the operators compute.
func TestDefinitions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	tried := 0
	for _, d := range instanceTypes {
		for _, name := range []string{"Mod", "Mod fmod", "Shrink"} {
			kind, attrs, operands := ssa.Kind("onnx::Mod"), []ssa.Attr{{Name: "fmod", Value: ssa.Int(0)}}, 2
			switch name {
			case "Mod fmod":
				attrs = []ssa.Attr{{Name: "fmod", Value: ssa.Int(1)}}
			case "Shrink":
				kind, attrs, operands = "onnx::Shrink", []ssa.Attr{{Name: "bias", Value: ssa.Float(2)}, {Name: "lambd", Value: ssa.Float(1.5)}}, 1
			}
			ts := newTerms()
			value := map[*Term]*tensor.Tensor{}
			var args []*Term
			var in []*tensor.Tensor
			for i := range operands {
				v := ts.variable(fmt.Sprint("x", i), d)
				args, in = append(args, v), append(in, randomTensor(r, d, []int64{1 << 12}, 3, true))
				value[v] = in[i]
			}
			want, err := kernel.Eval(kind, attrs, in, 1)
			if err != nil {
				continue
			}
			term := ts.defined(ts.apply(kind.Name(), d, attrs, args...), map[*Term]*Term{})
			got, ok := onAll(term, value)
			if !ok {
				t.Errorf("%s of %v: %v has no kernel", name, d, term)
				continue
			}
			tried++
			if at := different(want[0], got); at >= 0 {
				t.Errorf("%s of %v: %v is not what the kernel computes at %d", name, d, term, at)
			}
		}
	}
	if tried < 18 {
		t.Errorf("%d definitions were compared", tried)
	}
}
