// Package littests tests the graphs of the text tests in other ways than their RUN lines.
package littests

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// TestHostile damages the graphs of the passes as a file might be damaged (operands that are absent or of another value,
// numbers out of range, other shapes) and runs the optimizing passes on them. They may do nothing, but they do not panic.
func TestHostile(t *testing.T) {
	var files []string
	for _, dir := range []string{"simplify", "fold-constants", "shapes"} {
		list, err := filepath.Glob("passes/" + dir + "/*.ir")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, onONNX(list)...)
	}
	p, err := all.Set.Parse("fixpoint{max=3}(cse,simplify,shapes,fold-constants{weights},dce)")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(50) {
			m := parse(t, text)
			random := rand.New(rand.NewPCG(seed, 1))
			for _, f := range m.Funcs {
				damage(f, random)
			}
			_, err := p.Run(m, &passes.Runner{})
			if failure := (*passes.Failure)(nil); errors.As(err, &failure) && failure.Stack != "" {
				t.Errorf("%s, seed %d: %v\n%s", file, seed, err, failure.Stack)
			}
		}
	}
}

// numbers are those that are out of range somewhere.
var numbers = []int64{0, 1, -1, 2, 5, -7, 100, 1 << 31, -1 << 63, 1<<63 - 1}

// damage changes up to three things of a function, which stays an SSA graph.
func damage(f *ssa.Func, random *rand.Rand) {
	var ops []*ssa.Op
	values := append([]*ssa.Value(nil), f.Body.Params...)
	for o := range f.Body.Ops() {
		ops = append(ops, o)
	}
	pick := func() int64 { return numbers[random.IntN(len(numbers))] }
	spoilt := map[*ssa.Op]int{}
	for range 1 + random.IntN(3) {
		spoilt[ops[random.IntN(len(ops))]] = random.IntN(4)
	}
	for _, o := range ops {
		what, bad := spoilt[o]
		switch {
		case !bad:
		case o.Kind == "onnx::Constant":
			if t := o.Result(0).Tensor(); t != nil && t.DType == tensor.Int64 {
				shape, _ := t.Static()
				if what == 0 {
					shape = append(shape, 1+random.Int64N(2))
				}
				n := int64(1)
				for _, d := range shape {
					n *= d
				}
				v := make([]int64, n)
				for i := range v {
					v[i] = pick()
				}
				k := tensor.FromInts(tensor.Int64, shape, v)
				o.SetAttr("value", ssa.TensorValue(k))
				o.Result(0).Type, o.Result(0).Sym = ssa.TensorOf(k), nil
			}
		case what == 0 && len(o.Attrs) > 0:
			a := &o.Attrs[random.IntN(len(o.Attrs))]
			if l, ok := a.Value.IntList(); ok && len(l) > 0 {
				list := append([]int64(nil), l[:1+random.IntN(len(l))]...)
				list[random.IntN(len(list))] = pick()
				a.Value = ssa.Ints(list...)
			} else if a.Value.Kind == ssa.IntLit {
				a.Value = ssa.Int(pick())
			}
		case o.NumOperands() == 0:
		case what == 1:
			o.SetOperand(random.IntN(o.NumOperands()), nil)
		case what == 2:
			o.SetOperands(o.Operands()[:random.IntN(o.NumOperands())]...)
		default:
			o.SetOperand(random.IntN(o.NumOperands()), values[random.IntN(len(values))])
		}
		values = append(values, o.Results...)
	}
}
