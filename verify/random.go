package verify

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/aton-project/aton/backend/eager"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// maxMadeUp is the greatest number of random elements of an input.
const maxMadeUp = 1 << 24

// RandomOptions configures random inputs. The same options give the same numbers.
type RandomOptions struct {
	Seed uint64
	// Sizes has the sizes of dynamic axes, by name. Other axes have the size 2, 1, 3 or 0, depending on the seed, or the least size that
	// the module allows if that is greater.
	Sizes map[string]int64
}

// RandomData makes inputs for a module whose input types are known: normally distributed floats, integers from 0 to 9, and for a
// Python float mostly an edge case, such as 0, an infinity or NaN.
func RandomData(m *ssa.Module, o RandomOptions) (DataSet, error) {
	set := DataSet{Name: "random"}
	if o.Seed > 0 {
		set.Name = fmt.Sprintf("random %d", o.Seed)
	}
	inputs, err := inputTypes(m)
	if err != nil {
		return set, err
	}
	r := rand.New(rand.NewPCG(1+o.Seed, 2))
	for _, p := range inputs {
		if t := m.Defaults[p.Name]; t != nil {
			set.Inputs = append(set.Inputs, Named{Name: p.Name, Tensor: t})
			continue
		}
		t := ssa.AsTensor(p.Type)
		if t == nil || !t.Ranked || t.DType == tensor.Undefined {
			return set, fmt.Errorf("input %s is %s: give its type with --input, or data", p.Name, p.Type)
		}
		if !t.DType.HoldsNumbers() {
			return set, fmt.Errorf("input %s is %s, of which no elements can be made up: give data", p.Name, t)
		}
		env := o.sizesOf(m, t.Dims)
		shape, n, most := []int64{}, int64(1), m.Allow(maxMadeUp)
		for _, d := range t.Dims {
			s, ok := d.Eval(env)
			if !ok || s < 0 || s > most || n > most/max(s, 1) {
				return set, fmt.Errorf("input %s of type %s has more than the %d elements that are made up: give data, or --budget 10 for ten times as many", p.Name, t, most)
			}
			shape = append(shape, s)
			n *= s
		}
		v := make([]float64, n)
		for i := range v {
			switch {
			case t.DType == tensor.Float64 && len(shape) == 0 && r.IntN(4) > 0:
				v[i] = edges[r.IntN(len(edges))]
			case t.DType.IsFloat():
				v[i] = r.NormFloat64()
			case t.DType == tensor.Bool:
				v[i] = float64(r.IntN(2))
			default:
				v[i] = float64(r.IntN(10))
			}
		}
		set.Inputs = append(set.Inputs, Named{p.Name, tensor.FromFloats(t.DType, shape, v)})
	}
	return set, nil
}

// edges has floats for which implementations of operators on numbers tend to differ.
var edges = []float64{0, 1, -1, 0.1, 0.5, 2, -3, 1e-3, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN()}

// inputTypes returns the names and types of the tensors that a module takes.
func inputTypes(m *ssa.Module) ([]eager.Input, error) {
	if isProgram(m) {
		return eager.Inputs(m)
	}
	f := m.Main()
	if f == nil {
		return nil, fmt.Errorf("the module has no function")
	}
	ins := make([]eager.Input, len(f.Body.Params))
	for i, p := range f.Body.Params {
		ins[i] = eager.Input{Name: p.Name, Type: p.Type}
	}
	return ins, nil
}

// sizesOf chooses the sizes of dynamic axes for a run: the given ones, else one that depends on the seed.
func (o RandomOptions) sizesOf(m *ssa.Module, dims []sym.Expr) map[string]int64 {
	env := map[string]int64{}
	limits, err := ssa.ParseLimits(m.GetMetadata(ssa.LimitsKey))
	if err != nil { // metadata that aton did not write
		limits = nil
	}
	for _, d := range dims {
		d.Symbols(func(name string) {
			n, given := o.Sizes[name]
			if !given {
				n = [...]int64{2, 1, 3, 0}[o.Seed%4]
				for _, l := range limits {
					if l.Symbol == name {
						n = max(n, l.Min)
					}
				}
				n = max(n, sym.Least(d, name))
			}
			env[name] = n
		})
	}
	return env
}
