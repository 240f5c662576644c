package aton

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/passes/lower"
	"github.com/aton-project/aton/ssa"
)

// setting is what the options say of an option of the pipelines export and finish.
type setting struct {
	name  string
	value any
	// from names the fields of Options that it follows from.
	from string
}

// settings are the values of the options of the pipelines for a conversion to an opset.
func (o Options) settings(opset int, mode lower.Mode) ([]setting, error) {
	training, _, err := o.Training.frozen()
	if err != nil {
		return nil, err
	}
	names := "state"
	if o.LearnedNames {
		names = "learned"
	}
	allow := o.Fallthrough
	if mode == lower.Fallthrough {
		allow = []string{"*"}
	}
	domains := map[string]string{}
	for ns, v := range o.CustomOpsets {
		domains[ns] = strconv.Itoa(v)
	}
	inputs := o.NoWeights || o.InitializersAsInputs
	return []setting{
		{"opset", opset, "Opset"},
		{"target", string(cmp.Or(o.Target, ORT)), "Target"},
		{"contrib", string(cmp.Or(o.Contrib, NoContrib)), "Contrib"},
		{"training", training, "Training"},
		{"names", names, "LearnedNames"},
		{"fallthrough", passes.JoinList(o.Fallthrough), "Fallthrough"},
		{"mode", string(mode), "OperatorExport"},
		{"state", string(cmp.Or(o.State, DropState)), "State"},
		{"lift", inputs || o.NoFolding || o.Training == Train, "NoWeights, InitializersAsInputs or NoFolding"},
		{"integers", inputs, "NoWeights or InitializersAsInputs"},
		{"floats", string(cmp.Or(o.Floats, Float32)), "Floats"},
		{"float32", passes.JoinList(o.Float32Ops), "Float32Ops"},
		{"float32-io", o.Float32IO, "Float32IO"},
		{"unroll", max(o.Unroll, 0), "Unroll"},
		{"allow", passes.JoinList(allow), "Fallthrough"},
		{"domains", passes.JoinPairs(domains), "CustomOpsets"},
		{"inputs", passes.JoinList(o.InputNames), "InputNames"},
		{"outputs", passes.JoinList(o.OutputNames), "OutputNames"},
		{"renames", passes.JoinPairs(o.Names), "Names"},
		{"drop", o.DropUnused, "DropUnused"},
	}, nil
}

// The pipelines that a conversion consists of.
const (
	exportPipeline = "export"
	rawPipeline    = "raw"
	finishPipeline = "finish"
	ownPipeline    = "pipeline-of-the-options"
)

// pipeline is the pipeline of a conversion: export, raw or the one of the options, followed by what is left to do before a file is written.
func (o Options) pipeline(m *ssa.Module, mode lower.Mode) (*passes.Pipeline, error) {
	n := o.OpsetFor(m)
	inserts := len(o.Before)+len(o.After) > 0
	name := exportPipeline
	if o.Pipeline != "" {
		name = ownPipeline
	}
	switch {
	case n < OldestOpset || n > onnx.Newest:
		return nil, fmt.Errorf("opset %d is not between %d and %d", n, OldestOpset, onnx.Newest)
	case cmp.Or(o.Floats, Float32) == Float32 && (len(o.Float32Ops) > 0 || o.Float32IO):
		return nil, fmt.Errorf("Float32Ops and Float32IO say what stays in float32: set Floats to the type of the rest")
	case cmp.Or(o.Contrib, NoContrib) != NoContrib && cmp.Or(o.Target, ORT) != ORT:
		return nil, fmt.Errorf("operators of onnxruntime's own are for the target ort, not %s", o.Target)
	case o.Pipeline == "" && !inserts && len(o.Passes) > 0:
		return nil, fmt.Errorf("no pipeline names the pass %s: set Options.After, Options.Before or Options.Pipeline", o.Passes[0].Name)
	case o.Pipeline != "" && inserts:
		return nil, fmt.Errorf("steps before and after those of the pipeline export do not go with a pipeline of one's own")
	case o.OperatorExport == Raw && (o.Pipeline != "" || inserts):
		return nil, fmt.Errorf("operator export type %s has a pipeline of its own: leave Options.Pipeline, Before and After empty", Raw)
	case o.OperatorExport == Raw:
		name = rawPipeline
	}
	settings, err := o.settings(n, mode)
	if err != nil {
		return nil, err
	}
	set := all.Set
	if o.Table != nil || o.Pipeline != "" || inserts {
		set = all.New(o.Table)
		set.Passes = append(set.Passes, o.Passes...)
	}
	if inserts {
		if set, err = set.Insert(exportPipeline, o.Before, o.After); err != nil {
			return nil, err
		}
	}
	if o.Pipeline != "" {
		if err := o.addOwn(set, settings); err != nil {
			return nil, err
		}
	}
	p, err := build(set, name, settings)
	if err != nil {
		return nil, err
	}
	for _, v := range p.OptionValues("opset") {
		if v != n {
			return nil, fmt.Errorf("pipeline %q has a pass for opset %v, and the model is converted to opset %d: write opset=$opset", o.Pipeline, v, n)
		}
	}
	last, err := build(set, finishPipeline, settings)
	if err != nil {
		return nil, err
	}
	return p.Then(last)
}

// build makes a pipeline of a set with the settings that it has options for.
func build(set *passes.Set, name string, settings []setting) (*passes.Pipeline, error) {
	values := map[string]any{}
	for _, s := range settings {
		if set.Lookup(name).Option(s.name) != nil {
			values[s.name] = s.value
		}
	}
	return set.Build(name, values)
}

// addOwn adds the pipeline of the options to a set, with the options of the pipeline export. An option that it does not pass on to any
// pass must have its default: it would be dropped silently. The opset of its passes is checked by itself.
func (o Options) addOwn(set *passes.Set, settings []setting) error {
	export := set.Lookup(exportPipeline)
	for _, s := range settings {
		if d := export.Option(s.name); d != nil && s.name != "opset" && !d.IsDefault(s.value) && !strings.Contains(o.Pipeline, "$"+s.name) {
			return fmt.Errorf("no pass of pipeline %q reads the option %s: pass $%s to the pass that needs it, as the pipeline export does", o.Pipeline, s.from, s.name)
		}
	}
	set.Named = append(slices.Clip(set.Named), passes.Named{Name: ownPipeline, Text: o.Pipeline, Options: export.Options})
	return nil
}
