// Package rename is the pass that gives inputs, weights and outputs the names that a file shall have.
package rename

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
)

// Pass renames what a user of the file sees. It is the last pass that looks at names, so that no other one makes a name of a user's
// its own.
var Pass = passes.Pass{
	Name:  "rename",
	Takes: []passes.State{passes.OneFunction},
	Doc:   "give inputs, weights and outputs other names",
	Before: `
graph(%x : Float(2)):
  %y : Float(2) = onnx::Relu(%x)
  return (%y)`,
	After: `
graph(%image : Float(2)):
  %y : Float(2) = onnx::Relu(%image)
  return (%y)`,
	Demo: "inputs=image",
	Options: []passes.Option{
		{Name: "inputs", Doc: "the names of the inputs in order, followed by those of the weights in the order of the state dict; the list may be shorter, and \"\" keeps a name"},
		{Name: "outputs", Doc: "the names of the outputs in order; the list may be shorter, and \"\" keeps a name"},
		{Name: "names", Doc: "other names, as OLD=NEW,..., of inputs, weights and outputs"},
	},
	Run: run,
}

// wanted are the names that the options ask for.
type wanted struct {
	inputs, outputs []string
	names           map[string]string
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

func run(c *passes.Context) error {
	m := c.Module
	f := m.Main()
	if f == nil || c.Diags.Err() != nil {
		return nil
	}
	var o wanted
	var err error
	if o.inputs, err = passes.SplitList(c.Option("inputs")); err != nil {
		return fmt.Errorf("option inputs: %w", err)
	}
	if o.outputs, err = passes.SplitList(c.Option("outputs")); err != nil {
		return fmt.Errorf("option outputs: %w", err)
	}
	if o.names, err = passes.SplitPairs(c.Option("names")); err != nil {
		return fmt.Errorf("option names: %w", err)
	}
	r := &renaming{f: f, weights: map[string]*ssa.Value{}, outputs: slices.Clone(f.OutputNames), state: m.State, to: map[*ssa.Value]string{},
		toOutput: map[string]string{}}
	for _, p := range f.Body.Params {
		if m.Weights[p.Name] != nil {
			r.weights[p.Name] = p
		} else {
			r.inputs = append(r.inputs, p)
		}
	}
	for op := range f.Body.Ops() {
		if v := ssa.WeightOf(op); v != nil && onnx.ConstOf(v) != nil {
			r.weights[v.Name] = v
		}
	}
	lost, err := r.choose(o)
	if err != nil {
		return err
	}
	if len(lost) > 0 {
		c.Report(diag.Diagnostic{Severity: diag.Warning, ID: "unused-name",
			Message: fmt.Sprintf("no weight of the file has the name %s: nothing uses the weight in brackets, or it is part of another one", strings.Join(lost, ", "))})
	}
	before := slices.Clone(r.outputs)
	for i, name := range r.outputs {
		if new, ok := r.toOutput[name]; ok {
			r.outputs[i] = new
		}
	}
	if len(o.outputs) > f.Body.NumReturns() {
		return fmt.Errorf("%d output names for %d outputs", len(o.outputs), f.Body.NumReturns())
	}
	for i, name := range o.outputs {
		switch {
		case i == len(r.outputs):
			r.outputs = append(r.outputs, cmp.Or(name, f.Body.Return(i).Name, fmt.Sprintf("output_%d", i)))
		case name != "":
			r.outputs[i] = name
		}
	}
	if err := r.taken(o); err != nil {
		return err
	}
	r.apply(m, before)
	for range len(r.to) + len(r.toOutput) + len(o.outputs) {
		c.Changed("name")
	}
	return nil
}

// choose determines the new names of inputs and weights, and those of outputs in names. lost are those of weights that the file does not have.
func (r *renaming) choose(o wanted) (lost []string, err error) {
	if have := len(r.inputs) + len(r.state); len(o.inputs) > have {
		return nil, fmt.Errorf("%d input names for %d inputs and %d weights", len(o.inputs), len(r.inputs), len(r.state))
	}
	for i, name := range o.inputs {
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
	byName := map[string]*ssa.Value{}
	maps.Copy(byName, r.weights)
	for _, p := range r.inputs {
		byName[p.Name] = p
	}
	for _, old := range slices.Sorted(maps.Keys(o.names)) {
		new := o.names[old]
		v, output := byName[old], slices.Contains(r.outputs, old)
		switch {
		case new == "":
			return nil, fmt.Errorf("the new name of %s is empty", old)
		case v == nil && !output && slices.Contains(r.state, old):
			return nil, fmt.Errorf("%s is not in the file as it is: nothing uses it, or it is part of another weight there", old)
		case v == nil && !output:
			known := append(slices.Sorted(maps.Keys(byName)), r.outputs...)
			return nil, fmt.Errorf("no input, weight or output is called %q%s", old, diag.DidYouMean(old, known))
		case v != nil && r.to[v] != "" && r.to[v] != new:
			return nil, fmt.Errorf("%s cannot be called both %s and %s", old, r.to[v], new)
		}
		if v != nil {
			r.to[v] = new
		}
		if output {
			r.toOutput[old] = new
		}
	}
	return lost, nil
}

// taken returns an error if two values would have one name. An input that is returned may be an output of the same name, and
// names that the user did not choose are made unique when the file is written.
func (r *renaming) taken(o wanted) error {
	asked := map[string]bool{}
	for _, name := range slices.Concat(o.inputs, o.outputs, slices.Collect(maps.Values(o.names))) {
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
		if i := slices.Index(m.State, v.Name); i >= 0 {
			m.State[i] = new
		}
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
	for key, to := range map[string]map[string]string{ssa.InputTree: inputs, ssa.OutputTree: outputs} {
		if text := m.GetMetadata(key); text != "" {
			m.SetMetadata(key, renameTree(text, to))
		}
	}
	for key, to := range map[string]map[string]string{ssa.StateInputs: inputs, ssa.StateOutputs: outputs} {
		if text := m.GetMetadata(key); text != "" {
			list := strings.Split(text, ",")
			for i, name := range list {
				list[i] = cmp.Or(to[name], name)
			}
			m.SetMetadata(key, strings.Join(list, ","))
		}
	}
}

// renameTree returns what stands under ssa.InputTree or ssa.OutputTree with other names of inputs and outputs. Text that is no such
// tree stays.
func renameTree(text string, to map[string]string) string {
	var rename func(x any) any
	rename = func(x any) any {
		switch x := x.(type) {
		case string:
			return cmp.Or(to[x], x)
		case map[string]any:
			for kind, elems := range x {
				list, ok := elems.([]any)
				if !ok {
					continue // a constant
				}
				for i, e := range list {
					if pair, ok := e.([]any); ok && len(pair) == 2 { // of a dict, a NamedTuple, or the arguments
						pair[1] = rename(pair[1])
					} else {
						list[i] = rename(e)
					}
				}
				x[kind] = list
			}
		}
		return x
	}
	var tree any
	if json.Unmarshal([]byte(text), &tree) != nil {
		return text
	}
	out, err := json.Marshal(rename(tree))
	if err != nil {
		return text
	}
	return string(out)
}
