package prove

import (
	"iter"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/pattern"
	"github.com/aton-project/aton/ssa/tensor"
)

// instances are graphs that a pattern of operators of ONNX may match: for each type of the operands among those of the bound, each
// shape, and each value of the attributes that it binds. Those that are no graphs are left out.
//
// Elementwise rules need one element and one axis; rules on axes are tried for all ranks up to 3, with sizes that differ, so that
// no axis is taken for another one.
func instances(from string) iter.Seq[*ssa.Func] {
	lines, err := pattern.Parse(from)
	if err != nil {
		return func(func(*ssa.Func) bool) {}
	}
	return instancesOf(lines)
}

// instancesOf is instances of a pattern that was read.
func instancesOf(lines []pattern.Line) iter.Seq[*ssa.Func] {
	return func(yield func(*ssa.Func) bool) {
		for _, g := range assignments(lines) {
			f := instance(lines, g)
			if f != nil && !yield(f) {
				return
			}
		}
	}
}

// assignment is what the free names of a pattern stand for.
type assignment struct {
	dtype map[string]tensor.DType
	shape []int64
	attrs map[string]ssa.Literal
}

var instanceTypes = []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64, tensor.Int64, tensor.Int32, tensor.Int8, tensor.Uint8, tensor.Bool}

// assignments lists what is tried. The free values of a pattern share a type, but for conditions.
func assignments(lines []pattern.Line) []assignment {
	var values, bound []string
	attrName := map[string]string{}
	defined := map[string]bool{}
	for _, l := range lines {
		for _, o := range l.Operands {
			if o.Kind == pattern.Value && !defined[o.Name] && !slices.Contains(values, o.Name) {
				values = append(values, o.Name)
			}
		}
		for _, r := range l.Results {
			defined[r.Name] = true
		}
		for _, a := range l.Attrs {
			if a.Value.Kind == pattern.Bound && !slices.Contains(bound, a.Value.Name) {
				bound = append(bound, a.Value.Name)
				attrName[a.Value.Name] = a.Name
			}
		}
	}
	var out []assignment
	shapes := [][]int64{{}, {2}, {2, 3}, {2, 3, 4}}
	each := !slices.ContainsFunc(lines, func(l pattern.Line) bool {
		return !onnx.Pointwise(l.Kind) && !slices.Contains(onnx.Broadcasting(), l.Kind)
	})
	if each && len(bound) == 0 {
		shapes = shapes[:2]
	} else if len(bound) == 0 {
		shapes = append(shapes, []int64{2, 1, 2, 3})
	}
	for _, shape := range shapes {
		for _, d := range instanceTypes {
			for conditions := range 1 << min(len(values), 3) {
				types := map[string]tensor.DType{}
				for i, v := range values {
					types[v] = d
					if conditions>>i&1 == 1 {
						types[v] = tensor.Bool
					}
				}
				list := []assignment{{types, shape, map[string]ssa.Literal{}}}
				for _, b := range bound {
					var next []assignment
					for _, a := range list {
						for _, lit := range candidates(attrName[b], len(shape)) {
							attrs := map[string]ssa.Literal{b: lit}
							for k, v := range a.attrs {
								attrs[k] = v
							}
							next = append(next, assignment{types, shape, attrs})
						}
					}
					list = next
				}
				out = append(out, list...)
			}
		}
	}
	return out
}

// candidates are the values of an attribute that are tried for a rank; None leaves it out.
func candidates(name string, rank int) []ssa.Literal {
	var out []ssa.Literal
	switch {
	case name == "perm":
		for _, p := range permutations(rank) {
			out = append(out, ssa.Ints(p...))
		}
		return append(out, ssa.None)
	case name == "to":
		for _, d := range instanceTypes {
			out = append(out, ssa.Int(int64(d.ONNX())))
		}
	case strings.HasPrefix(name, "axis"):
		for a := -rank; a < rank; a++ {
			out = append(out, ssa.Int(int64(a)))
		}
	case name == "keepdims":
		return []ssa.Literal{ssa.Int(0), ssa.Int(1)}
	case name == "alpha" || name == "beta" || name == "epsilon":
		return []ssa.Literal{ssa.None, ssa.Float(0.5), ssa.Float(2)}
	default:
		return []ssa.Literal{ssa.None}
	}
	return out
}

func permutations(n int) [][]int64 {
	if n == 0 {
		return [][]int64{{}}
	}
	var out [][]int64
	for _, p := range permutations(n - 1) {
		for i := range n {
			out = append(out, slices.Insert(slices.Clone(p), i, int64(n-1)))
		}
	}
	return out
}

// instance makes the graph of a pattern, nil if there is none.
func instance(lines []pattern.Line, a assignment) *ssa.Func {
	m := ssa.NewModule(all.Dialects()...)
	f := m.NewFunc("instance")
	values := map[string]*ssa.Value{}
	for i, l := range lines {
		var operands []*ssa.Value
		for k, o := range l.Operands {
			switch o.Kind {
			case pattern.Absent:
				operands = append(operands, nil)
			case pattern.Value:
				if o.Spread {
					return nil
				}
				if values[o.Name] == nil {
					d := a.dtype[o.Name]
					if o.Const {
						v := make([]float64, count(a.shape))
						for j := range v {
							v[j] = float64(j%3) + 1
						}
						c := f.Body.Append("onnx::Constant", 0, nil, ssa.AnyTensor)
						c.SetAttr("value", ssa.TensorValue(tensor.FromFloats(d, a.shape, v)))
						values[o.Name] = c.Result(0)
					} else {
						values[o.Name] = f.Body.AddParam(o.Name, &ssa.TensorType{DType: d, Ranked: true, Dims: ssa.Sizes(a.shape)})
					}
				}
				operands = append(operands, values[o.Name])
			default: // a number or a list, where operators of ONNX have a constant
				lit, ok := o.Fixed()
				if !ok && o.Kind == pattern.Bound {
					lit, ok = a.attrs[o.Name], true
				}
				t := tensorOf(lit)
				if !ok || t == nil {
					return nil
				}
				if k > 0 && t.DType == tensor.Float32 && operands[0] != nil && operands[0].DType().IsFloat() {
					t = tensor.FromFloats(operands[0].DType(), t.Shape, t.Float64s())
				}
				c := f.Body.Append("onnx::Constant", 0, nil, ssa.TensorOf(t))
				c.SetAttr("value", ssa.TensorValue(t))
				operands = append(operands, c.Result(0))
			}
		}
		types := make([]ssa.Type, len(l.Results))
		for k := range types {
			types[k] = ssa.AnyTensor
		}
		o := f.Body.Append(l.Kind, 0, operands, types...)
		for _, at := range l.Attrs {
			lit, ok := at.Value.Fixed()
			if at.Value.Kind == pattern.Bound {
				lit, ok = a.attrs[at.Value.Name], true
			}
			if !ok {
				return nil
			}
			if !lit.IsNone() {
				o.SetAttr(at.Name, lit)
			}
		}
		for k, r := range l.Results {
			values[r.Name] = o.Result(k)
			o.Result(k).Name = r.Name
		}
		if i == len(lines)-1 {
			f.Body.SetReturns(o.Results...)
		}
	}
	if infer(f) != nil || ssa.Verify(m) != nil {
		return nil
	}
	return f
}

// tensorOf is the constant that a number or a list of numbers stands for among the operands.
func tensorOf(l ssa.Literal) *tensor.Tensor {
	if v, ok := l.IntList(); ok && l.Elems != nil {
		return tensor.Ints(v...)
	}
	if v, ok := l.FloatList(); ok && l.Elems != nil {
		return tensor.FromFloats(tensor.Float32, []int64{int64(len(v))}, v)
	}
	switch l.Kind {
	case ssa.Int(0).Kind:
		return tensor.ScalarInt(l.Int())
	case ssa.Float(0).Kind:
		return tensor.FromFloats(tensor.Float32, []int64{}, []float64{l.Float()})
	}
	return nil
}
