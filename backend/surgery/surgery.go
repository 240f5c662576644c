// Package surgery edits models of ONNX operators: it cuts a part out of one, joins models, and changes names and weights. Operators stay as they
// are: nothing is optimized, and no opset changes.
package surgery

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
)

// scope has the named values of a main function: those of the function itself, which can become inputs and outputs, and the names that
// values in the bodies of its operators have too.
type scope struct {
	values map[string]*ssa.Value
	inner  map[string]*ssa.Value
}

func scopeOf(f *ssa.Func) scope {
	s := scope{map[string]*ssa.Value{}, map[string]*ssa.Value{}}
	note := func(list []*ssa.Value) {
		for _, v := range list {
			switch {
			case v.Name == "":
			case v.Block() == f.Body:
				s.values[v.Name] = v
			default:
				s.inner[v.Name] = v
			}
		}
	}
	note(f.Body.Params)
	for o := range f.Body.AllOps() {
		note(o.Results)
		for _, b := range o.Blocks {
			note(b.Params)
		}
	}
	// an output has a name of its own where it is an input or a weight too
	for i, name := range f.OutputNames {
		if v := f.Body.Return(i); v != nil && s.values[name] == nil && name != "" {
			s.values[name] = v
		}
	}
	return s
}

// find returns the value of a name.
func (s scope) find(name string) (*ssa.Value, error) {
	if v := s.values[name]; v != nil {
		return v, nil
	}
	if v := s.inner[name]; v != nil {
		return nil, fmt.Errorf("%s is a value in the body of %s, which cannot be an input or an output of the model; name a value of the graph itself", name, v.Block().Owner().Kind.Name())
	}
	return nil, fmt.Errorf("there is no value %s%s", name, diag.DidYouMean(name, slices.Sorted(maps.Keys(s.values))))
}

func main(m *ssa.Module) (*ssa.Func, error) {
	if f := m.Main(); f != nil && len(m.Opsets) > 0 {
		return f, nil
	}
	return nil, fmt.Errorf("it is no ONNX model: convert it first (aton export)")
}

// Cut reduces the module to what computes the named values. They become its outputs, in this order; without any, the outputs stay. The
// values named as inputs become its inputs, in this order, and what computes them goes. An input of the module that is still needed must be among them
// then; without any, the inputs that are needed stay.
func Cut(m *ssa.Module, inputs, outputs []string) error {
	f, err := main(m)
	if err != nil {
		return err
	}
	s := scopeOf(f)
	if len(outputs) == 0 {
		outputs = slices.Clone(f.OutputNames)
	}
	returns, err := s.all(outputs)
	if err != nil {
		return err
	}
	starts, err := s.all(inputs)
	if err != nil {
		return err
	}
	types := Types(m)
	known := func(v *ssa.Value) ssa.Type {
		if t := v.Tensor(); t != nil && (t.DType == tensor.Undefined || !t.Ranked) && types[v.Name] != nil {
			return types[v.Name]
		}
		return v.Type
	}
	for i, v := range returns {
		if returns[i].Type = known(v); !complete(v.Type) {
			return fmt.Errorf("the type of %s is not known, and an output needs one", outputs[i])
		}
	}
	for i, v := range starts {
		if slices.Contains(returns, v) {
			return fmt.Errorf("%s cannot be an input and an output", inputs[i])
		}
		t := known(v)
		if !complete(t) {
			return fmt.Errorf("the type of %s is not known, and an input needs one", inputs[i])
		}
		if v.Param() != nil {
			continue
		}
		name := v.Name
		v.Name = ""
		starts[i] = f.Body.AddParam(name, t)
		v.ReplaceUses(starts[i])
	}
	f.Body.SetReturns(returns...)
	f.OutputNames = outputs
	prune(f)
	var missing []string
	for i := len(f.Body.Params) - 1; i >= 0; i-- {
		p := f.Body.Params[i]
		switch {
		case slices.Contains(starts, p):
		case p.HasUses() && len(inputs) > 0:
			missing = append(missing, p.Name)
		case !p.HasUses():
			delete(m.Defaults, p.Name)
			delete(m.Weights, p.Name)
			f.Body.RemoveParam(i)
		}
	}
	if len(missing) > 0 {
		slices.Reverse(missing)
		return fmt.Errorf("%s cannot be computed from %s alone: also needed: %s", strings.Join(outputs, ", "), strings.Join(inputs, ", "), strings.Join(missing, ", "))
	}
	if len(inputs) > 0 {
		f.Body.Params = starts
	}
	forget(m)
	return nil
}

// all finds the values of names, each of which may be named once.
func (s scope) all(names []string) ([]*ssa.Value, error) {
	var out []*ssa.Value
	for i, name := range names {
		v, err := s.find(name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("%s is named twice", name)
		}
		out = append(out, v)
	}
	return out, nil
}

// complete reports a type that an input or output of a file can have.
func complete(t ssa.Type) bool { return onnx.ElemType(t) != tensor.Undefined }

// prune removes operators whose results nobody reads. ONNX operators have no other effects.
func prune(f *ssa.Func) {
	for o := f.Body.Last(); o != nil; {
		before := o.Prev()
		if !slices.ContainsFunc(o.Results, (*ssa.Value).HasUses) {
			o.Erase()
		}
		o = before
	}
}

// forget drops what the metadata says of inputs and outputs as PyTorch has them.
func forget(m *ssa.Module) {
	m.Metadata = slices.DeleteFunc(m.Metadata, func(e ssa.KeyValue) bool {
		return e.Key == ssa.InputTree || e.Key == ssa.OutputTree || e.Key == ssa.StateInputs || e.Key == ssa.StateOutputs
	})
}

// Types are the types of the values of a model of ONNX operators by inference, by name. Those of operators that cannot be inferred are missing. The model
// stays as it is.
func Types(m *ssa.Module) map[string]ssa.Type {
	types := map[string]ssa.Type{}
	p, err := all.Set.Parse("upgrade,infer-types")
	if err != nil {
		panic(err) // a name of ours is wrong
	}
	c := m.Clone()
	_, _ = p.Run(c, nil) // what is known after an error is known
	for o := range c.Main().Body.AllOps() {
		for _, v := range o.Results {
			if v.Name != "" {
				types[v.Name] = v.Type
			}
		}
	}
	return types
}

// Rename gives inputs, outputs, weights and other values of the main function other names.
func Rename(m *ssa.Module, names map[string]string) error {
	f, err := main(m)
	if err != nil {
		return err
	}
	s := scopeOf(f)
	var found []*ssa.Value
	olds := slices.Sorted(maps.Keys(names))
	for _, old := range olds {
		v, err := s.find(old)
		if err != nil {
			return err
		}
		found = append(found, v)
	}
	for i, old := range olds {
		to := names[old]
		_, moves := names[to]
		switch {
		case to == "":
			return fmt.Errorf("%s: the new name is empty", old)
		case (s.values[to] != nil || s.inner[to] != nil) && !moves:
			return fmt.Errorf("%s: the name %s is taken", old, to)
		}
		for _, other := range olds[:i] {
			if names[other] == to {
				return fmt.Errorf("%s and %s: both would be %s", other, old, to)
			}
		}
	}
	for i, old := range olds {
		if found[i].Name == old { // else it is the name of an output alone
			found[i].Name = names[old]
		}
	}
	rename := func(list []string) {
		for i, name := range list {
			if to := names[name]; to != "" {
				list[i] = to
			}
		}
	}
	rename(f.OutputNames)
	rename(m.State)
	moveKeys(m.Weights, names)
	moveKeys(m.Defaults, names)
	moveKeys(m.File.Values, names)
	return nil
}

// moveKeys renames keys of a map.
func moveKeys[V any](in map[string]V, names map[string]string) {
	moved := map[string]V{}
	for old, to := range names {
		if v, ok := in[old]; ok {
			moved[to] = v
			delete(in, old)
		}
	}
	maps.Copy(in, moved)
}

// SetWeight replaces the data of a weight, of its type and shape.
func SetWeight(m *ssa.Module, name string, t *tensor.Tensor) error {
	f, err := main(m)
	if err != nil {
		return err
	}
	same := func(old *tensor.Tensor) error {
		if old.DType != t.DType || !slices.Equal(old.Shape, t.Shape) {
			return fmt.Errorf("%s is %v, and the new data is %v", name, ssa.TensorOf(old), ssa.TensorOf(t))
		}
		return nil
	}
	for _, list := range []map[string]*tensor.Tensor{m.Weights, m.Defaults} {
		if old := list[name]; old != nil {
			if err := same(old); err != nil {
				return err
			}
			list[name] = t
			return nil
		}
	}
	var weights []string
	for o := range f.Body.AllOps() {
		v := ssa.WeightOf(o)
		if v == nil {
			continue
		}
		if v.Name != name {
			weights = append(weights, v.Name)
			continue
		}
		l, _ := o.Attr("value")
		if err := same(l.Tensor); err != nil {
			return err
		}
		o.SetAttr("value", ssa.TensorValue(t))
		return nil
	}
	slices.Sort(weights)
	return fmt.Errorf("there is no weight %s%s", name, diag.DidYouMean(name, weights))
}
