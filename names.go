package aton

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/specialize"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// eachObject visits an object and the objects in its fields, each once, with the path by which it is first found, "" for the root.
func eachObject(root *ssa.Object, visit func(o *ssa.Object, path string)) {
	seen := map[*ssa.Object]bool{}
	var walk func(o *ssa.Object, path string)
	walk = func(o *ssa.Object, path string) {
		if seen[o] {
			return
		}
		seen[o] = true
		visit(o, path)
		for _, f := range o.Fields {
			if f.Value.Kind == ssa.ObjectLit {
				walk(f.Value.Object, inside(path, f.Name))
			}
		}
	}
	walk(root, "")
}

// inside returns the path of a field of the object at a path.
func inside(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// stateNames lists the parameters and buffers of a program that has not been converted, in the order of its state dict:
// the tensors of an object before those of the objects in it. A tensor with two names is listed once; unused ones are
// listed too.
func stateNames(m *ssa.Module) []string {
	var names []string
	seen := map[*tensor.Tensor]bool{}
	tensors := func(name string, t *tensor.Tensor) {
		if !seen[t] {
			seen[t] = true
			names = append(names, name)
		}
	}
	if m.Root != nil {
		eachObject(m.Root, func(o *ssa.Object, path string) {
			for _, f := range o.Fields {
				if f.Value.Kind == ssa.TensorLit {
					tensors(inside(path, f.Name), f.Value.Tensor)
				}
			}
		})
	}
	f := m.Main()
	if f == nil {
		return names
	}
	for o := range f.Body.Ops() {
		if v := weightOf(o); v != nil {
			l, _ := o.Attr("value")
			tensors(v.Name, l.Tensor)
		}
	}
	return names
}

// weightOf returns the result of a constant that is a weight, that is, has a name, and nil for other operators.
func weightOf(o *ssa.Op) *ssa.Value {
	if len(o.Results) != 1 || o.Result(0).Name == "" || o.NumOperands() > 0 {
		return nil
	}
	if l, _ := o.Attr("value"); l.Kind != ssa.TensorLit || l.Tensor == nil {
		return nil
	}
	return o.Result(0)
}

// renaming gives values of a converted function the names that the user wants.
type renaming struct {
	f       *ssa.Func
	inputs  []*ssa.Value
	weights map[string]*ssa.Value
	outputs []string
	state   []string

	// to has the new names of inputs and weights, toOutput those of outputs.
	to       map[*ssa.Value]string
	toOutput map[string]string
}

// rename calls inputs, weights and outputs what the options say, and gives the number of names. state is what stateNames said of the program.
func (o Options) rename(m *ssa.Module, state []string) (renamed int, err error) {
	f := m.Main()
	if f == nil || len(o.InputNames)+len(o.Names)+len(o.OutputNames) == 0 {
		return 0, nil
	}
	r := &renaming{f: f, weights: map[string]*ssa.Value{}, outputs: slices.Clone(f.OutputNames), state: state, to: map[*ssa.Value]string{},
		toOutput: map[string]string{}}
	for _, p := range f.Body.Params {
		if m.Weights[p.Name] != nil {
			r.weights[p.Name] = p
		} else {
			r.inputs = append(r.inputs, p)
		}
	}
	for op := range f.Body.Ops() {
		if v := weightOf(op); v != nil && onnx.ConstOf(v) != nil {
			r.weights[v.Name] = v
		}
	}
	if err := r.choose(o); err != nil {
		return 0, err
	}
	before := slices.Clone(r.outputs)
	for i, name := range r.outputs {
		if new, ok := r.toOutput[name]; ok {
			r.outputs[i] = new
		}
	}
	if len(o.OutputNames) > f.Body.NumReturns() {
		return 0, fmt.Errorf("%d output names for %d outputs", len(o.OutputNames), f.Body.NumReturns())
	}
	for i, name := range o.OutputNames {
		switch {
		case i == len(r.outputs):
			r.outputs = append(r.outputs, cmp.Or(name, f.Body.Return(i).Name, fmt.Sprintf("output_%d", i)))
		case name != "":
			r.outputs[i] = name
		}
	}
	if err := r.taken(o); err != nil {
		return 0, err
	}
	r.apply(m, before)
	return len(r.to) + len(r.toOutput) + len(o.OutputNames), nil
}

// choose determines the new names of inputs and weights, and those of outputs in Options.Names.
func (r *renaming) choose(o Options) error {
	if have := len(r.inputs) + len(r.state); len(o.InputNames) > have {
		return fmt.Errorf("%d input names for %d inputs and %d weights", len(o.InputNames), len(r.inputs), len(r.state))
	}
	var lost []string
	for i, name := range o.InputNames {
		var v *ssa.Value
		if i < len(r.inputs) {
			v = r.inputs[i]
		} else if old := r.state[i-len(r.inputs)]; r.weights[old] != nil {
			v = r.weights[old]
		} else if name != "" {
			lost = append(lost, fmt.Sprintf("%s (%s)", name, old))
		}
		if v != nil && name != "" {
			r.to[v] = name
		}
	}
	if len(lost) > 0 && o.Warn != nil {
		o.Warn(fmt.Sprintf("no weight of the file has the name %s: nothing uses the weight in brackets, or it is part of another one", strings.Join(lost, ", ")))
	}
	byName := map[string]*ssa.Value{}
	maps.Copy(byName, r.weights)
	for _, p := range r.inputs {
		byName[p.Name] = p
	}
	for _, old := range slices.Sorted(maps.Keys(o.Names)) {
		new := o.Names[old]
		v, output := byName[old], slices.Contains(r.outputs, old)
		switch {
		case new == "":
			return fmt.Errorf("the new name of %s is empty", old)
		case v == nil && !output && slices.Contains(r.state, old):
			return fmt.Errorf("%s is not in the file as it is: nothing uses it, or it is part of another weight there", old)
		case v == nil && !output:
			known := append(slices.Sorted(maps.Keys(byName)), r.outputs...)
			return fmt.Errorf("no input, weight or output is called %q%s", old, passes.DidYouMean(old, known))
		case v != nil && r.to[v] != "" && r.to[v] != new:
			return fmt.Errorf("%s cannot be called both %s and %s", old, r.to[v], new)
		}
		if v != nil {
			r.to[v] = new
		}
		if output {
			r.toOutput[old] = new
		}
	}
	return nil
}

// taken returns an error if two values would have one name. An input that is returned may be an output of the same name, and
// names that the user did not choose are made unique when the file is written.
func (r *renaming) taken(o Options) error {
	asked := map[string]bool{}
	for _, name := range slices.Concat(o.InputNames, o.OutputNames, slices.Collect(maps.Values(o.Names))) {
		asked[name] = true
	}
	holder := map[string]*ssa.Value{}
	what := map[string]string{}
	take := func(v *ssa.Value, name, kind string) error {
		if h, ok := holder[name]; ok && h != v && asked[name] {
			return fmt.Errorf("the name %q is taken: two of the file's inputs, weights and outputs would have it (%s and %s)", name, what[name], kind)
		}
		holder[name], what[name] = v, kind
		return nil
	}
	called := func(v *ssa.Value) string {
		if new := r.to[v]; new != "" {
			return new
		}
		return v.Name
	}
	for i, v := range r.inputs {
		if err := take(v, called(v), fmt.Sprintf("input %d", i)); err != nil {
			return err
		}
	}
	for _, old := range slices.Sorted(maps.Keys(r.weights)) {
		if err := take(r.weights[old], called(r.weights[old]), "weight "+old); err != nil {
			return err
		}
	}
	outputs := map[string]bool{}
	for i, name := range r.outputs {
		v := r.f.Body.Return(i)
		if outputs[name] && asked[name] {
			return fmt.Errorf("the name %q is taken: two outputs would have it", name)
		}
		outputs[name] = true
		if err := take(v, name, fmt.Sprintf("output %d", i)); err != nil {
			return err
		}
	}
	return nil
}

// apply sets the names of the values and updates every place of the module that refers to them.
func (r *renaming) apply(m *ssa.Module, before []string) {
	names := map[string]bool{}
	inputs, outputs := map[string]string{}, map[string]string{}
	weights := map[string]*tensor.Tensor{}
	notes := map[string]ssa.Note{}
	defaults := map[string]*tensor.Tensor{}
	maps.Copy(weights, m.Weights)
	maps.Copy(defaults, m.Defaults)
	maps.Copy(notes, m.File.Values)
	for v := range r.to {
		delete(weights, v.Name)
		delete(defaults, v.Name)
		delete(notes, v.Name)
	}
	for v, new := range r.to {
		inputs[v.Name] = new
		if t := m.Weights[v.Name]; t != nil {
			weights[new] = t
		}
		if t := m.Defaults[v.Name]; t != nil {
			defaults[new] = t
		}
		if note, ok := m.File.Values[v.Name]; ok {
			notes[new] = note
		}
	}
	for v, new := range r.to {
		v.Name, names[new] = new, true
	}
	for i, old := range before {
		if new := r.outputs[i]; new != old {
			outputs[old] = new
			if note, ok := m.File.Values[old]; ok {
				delete(notes, old)
				notes[new] = note
			}
		}
	}
	for op := range r.f.Body.AllOps() {
		for _, v := range op.Results {
			if _, own := r.to[v]; !own && names[v.Name] {
				v.Name = "" // a value inside makes room
			}
		}
	}
	m.Weights, m.Defaults, m.File.Values, r.f.OutputNames = weights, defaults, notes, r.outputs
	for key, to := range map[string]map[string]string{specialize.InputTree: inputs, specialize.OutputTree: outputs} {
		if text := m.GetMetadata(key); text != "" {
			m.SetMetadata(key, specialize.RenameTree(text, to))
		}
	}
	for key, to := range map[string]map[string]string{ssa.StateInputs: inputs, specialize.StateOutputs: outputs} {
		if text := m.GetMetadata(key); text != "" {
			list := strings.Split(text, ",")
			for i, name := range list {
				list[i] = cmp.Or(to[name], name)
			}
			m.SetMetadata(key, strings.Join(list, ","))
		}
	}
}
