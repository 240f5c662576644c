package verify

import (
	"fmt"
	"maps"

	"github.com/aton-project/aton/backend/eager"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Run runs a module that Load returned, without converting it, on the inputs of a data set, and returns its outputs. A program of PyTorch
// runs in backend/eager, which has PyTorch's semantics; a module of ONNX operators runs in the reference interpreter. Inputs are matched
// by name if the data set has all of the model's names, else by position.
func Run(m *ssa.Module, data DataSet) ([]Named, error) {
	r, err := Verifier{}.RunProgram(m, data, nil)
	if err != nil {
		return nil, err
	}
	return r.Outputs, nil
}

// Ran is the result of a run of a program.
type Ran struct {
	Outputs []Named
	// Random reports whether the program drew random numbers: another implementation gives other ones.
	Random bool
}

// RunProgram is like [Run] but uses the verifier's kernels for operators of custom domains, and a table of operators. A nil
// table means the built-in operators.
func (v Verifier) RunProgram(m *ssa.Module, data DataSet, table *aten.Table) (*Ran, error) {
	if !isProgram(m) {
		out, err := v.Run(m, data)
		return &Ran{Outputs: out}, err
	}
	inputs := make([]eager.Named, len(data.Inputs))
	for i, in := range data.Inputs {
		inputs[i] = eager.Named(in)
	}
	e := eager.Evaluator{Table: table}
	outputs, err := e.Run(m, inputs)
	if err != nil {
		return nil, err
	}
	r := &Ran{Random: e.Random}
	for _, o := range outputs {
		r.Outputs = append(r.Outputs, Named(o))
	}
	return r, nil
}

// isProgram reports whether a module is a program of PyTorch, and not one of ONNX operators.
func isProgram(m *ssa.Module) bool {
	return m.Main() != nil && (m.UsesNamespace("aten") || m.UsesNamespace("prim") || !m.UsesNamespace("onnx") && len(m.Opsets) == 0)
}

// Run runs a module of ONNX operators in the reference interpreter on the inputs of a data set, as Verify does, and returns its
// outputs.
func (v Verifier) Run(m *ssa.Module, data DataSet) ([]Named, error) {
	args, err := Arguments(m, data)
	if err != nil {
		return nil, err
	}
	in := v.interpreter()
	in.Observe = v.Observe
	values, err := in.RunFunc(m.Main(), args)
	if err != nil {
		return nil, err
	}
	var out []Named
	for i, t := range Leaves(values) {
		out = append(out, Named{OutputName(m, i), t})
	}
	return out, nil
}

// FunctionKernels makes kernels from function bodies that consist of ONNX operators.
func FunctionKernels(f *onnxfile.Functions) map[ssa.Kind]interp.Kernel {
	kernels := map[ssa.Kind]interp.Kernel{}
	for _, k := range f.Kinds() {
		kernels[k] = func(o *ssa.Op, operands []interp.Value) ([]interp.Value, error) {
			types := make([]ssa.Type, len(operands))
			var args []interp.Value
			for i, v := range operands {
				switch {
				case v.Tensor != nil:
					types[i] = ssa.TensorOf(v.Tensor)
				case v.IsList && len(v.List) > 0:
					types[i] = &ssa.ListType{Elem: ssa.Unranked(v.List[0].DType)}
				case v.IsList:
					types[i] = o.Operand(i).Type
				default:
					continue
				}
				args = append(args, v)
			}
			m, err := f.Expand(o, types)
			if err != nil {
				return nil, err
			}
			return (&interp.Interpreter{Kernels: kernels}).RunFunc(m.Main(), args)
		}
	}
	return kernels
}

func (v Verifier) interpreter() *interp.Interpreter { return &interp.Interpreter{Kernels: v.Kernels} }

// Arguments returns the inputs of a data set in the order of the inputs of the model, which has weights and defaults for those that the
// data set leaves out.
func Arguments(m *ssa.Module, data DataSet) ([]interp.Value, error) {
	f := m.Main()
	if f == nil {
		return nil, fmt.Errorf("the module has no function")
	}
	byName := map[string]*tensor.Tensor{}
	maps.Copy(byName, m.Defaults)
	maps.Copy(byName, m.Weights)
	for _, in := range data.Inputs {
		byName[in.Name] = in.Tensor
	}
	named := true
	for _, p := range f.Body.Params {
		named = named && byName[p.Name] != nil
	}
	takes := len(f.Body.Params) - len(m.Weights)
	byDefault := len(data.Inputs) < takes // inputs with a default value are left out
	if !named && len(data.Inputs) < takes-len(m.Defaults) {
		return nil, fmt.Errorf("data set %s has %d inputs, the model takes %d", data.Name, len(data.Inputs), len(f.Body.Params))
	}
	args := make([]interp.Value, len(f.Body.Params))
	next := 0
	for i, p := range f.Body.Params {
		if lt, ok := p.Type.(*ssa.ListType); ok && ssa.AsTensor(lt.Elem) != nil {
			return nil, fmt.Errorf("input %s is a sequence: the files of data sets have no such thing", p.Name)
		}
		if named || m.Weights[p.Name] != nil || byDefault && m.Defaults[p.Name] != nil {
			args[i] = interp.Of(byName[p.Name])
			continue
		}
		args[i] = interp.Of(data.Inputs[next].Tensor)
		next++
	}
	return args, bind(f.Body.Params, args)
}

// Leaves returns the tensors in values, depth first.
func Leaves(values []interp.Value) []*tensor.Tensor {
	var out []*tensor.Tensor
	for _, v := range values {
		if v.IsList {
			out = append(out, v.List...)
		} else if v.Tensor != nil {
			out = append(out, v.Tensor)
		}
	}
	return out
}

// OutputName returns the name of an output of the main function.
func OutputName(m *ssa.Module, i int) string {
	f := m.Main()
	if i < len(f.OutputNames) {
		return f.OutputNames[i]
	}
	if i < f.Body.NumReturns() && f.Body.Return(i) != nil {
		return f.Body.Return(i).Name
	}
	return fmt.Sprintf("output_%d", i)
}
