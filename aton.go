// Package aton converts saved PyTorch graphs to ONNX, without Python.
//
//	m, err := aton.Load("model.pt", opts)
//	err = aton.Export(m, "model.onnx", opts)
//
// It is a facade over packages that can be used by themselves: frontend reads models, passes/all has the pipelines, and
// backend/onnxfile writes files. Problems of the converted program come as one error, a *diag.List, which holds all of them.
package aton

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/frontend"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// DefaultOpset is the opset that programs of PyTorch are converted to unless Options.Opset is set.
const DefaultOpset = onnx.ExportOpset

// OldestOpset is the oldest opset that a model can be converted to.
const OldestOpset = 7

// OpsetFor returns the opset that a module is converted to.
func (o Options) OpsetFor(m *ssa.Module) int {
	if o.Opset != 0 {
		return o.Opset
	}
	if m.TargetOpset != 0 {
		return m.TargetOpset
	}
	if at := onnx.DefaultOpset(m); at >= OldestOpset && at <= onnx.Newest {
		return at
	}
	return DefaultOpset
}

// Load reads a model. It recognizes the format by the content of the file.
func Load(path string, o Options) (*ssa.Module, error) {
	m, err := frontend.Load(path, o.frontend())
	if err != nil {
		return nil, err
	}
	return o.loaded(m), nil
}

func (o Options) loaded(m *ssa.Module) *ssa.Module {
	m.Dialects, m.Budget = all.Dialects(), o.Budget
	if n := len(m.Defaults); o.FreezeDefaults {
		onnxfile.FreezeDefaults(m)
	} else if n > 0 && o.Note != nil {
		o.Note(fmt.Sprintf("inputs with default values stay inputs (%d of them), and nothing is computed with the values at export; --freeze-defaults makes constants of them", n))
	}
	return m
}

// LoadBytes is like Load but reads from memory. The name appears in messages.
func LoadBytes(b []byte, name string, o Options) (*ssa.Module, error) {
	m, err := frontend.Read(b, name, o.frontend())
	if err != nil {
		return nil, err
	}
	return o.loaded(m), nil
}

func (o Options) frontend() frontend.Options {
	_, training, _ := o.Training.frozen() // Lower reports an unknown mode
	return frontend.Options{Inputs: o.Inputs, InputNames: o.InputNames, Names: o.Names, Method: o.Method, Program: o.Program, Weights: o.Weights, WeightsKey: o.WeightsKey,
		NoWeights: o.NoWeights, Training: training, Table: o.Table, Dialects: all.Dialects(), Warn: o.Warn, Note: o.Note}
}

// Stages lists the stages of the conversion that Inspect accepts.
func Stages() []string {
	p, err := all.Set.Parse("export")
	if err != nil {
		panic(err) // a bug in the table of pipelines
	}
	return append([]string{"import"}, p.Passes()...)
}

// Lower converts the module to ONNX operators of the target opset. Operators that cannot be converted
// stay, and the list reports them. A converted module can be converted again, to another opset. After an
// error the module must not be used.
func Lower(m *ssa.Module, o Options) (*diag.List, error) {
	mode, err := o.OperatorExport.mode()
	if err != nil {
		return nil, err
	}
	p, err := o.pipeline(m, mode)
	if err != nil {
		return nil, err
	}
	opset := o.begin(m)
	list, err := remaining(m, p).Run(m, o.Runner)
	if err = o.Judge(list, err); list != nil && o.Diagnosed != nil {
		defer o.Diagnosed(list)
	}
	if at := onnx.DefaultOpset(m); err == nil && at != opset {
		err = fmt.Errorf("pipeline %q leaves operators of opset %d, and the model is converted to opset %d: end it with legalize{opset=$opset}", o.Pipeline, at, opset)
	}
	if err != nil {
		onnx.SetOpset(m, onnx.Failed)
		return list, err
	}
	m.Passed, m.TargetOpset = nil, 0
	if o.Warn != nil && o.Diagnosed == nil {
		for _, d := range list.Items {
			if d.Severity == diag.Warning {
				d.Severity = diag.Error // without the prefix "warning: ", which Warn implies
				o.Warn(list.Format(d))
			}
		}
	}
	return list, nil
}

// Judge drops from a list what Allow names, and makes errors of what Deny names. It returns err, or if that is nil the error of the list.
func (o Options) Judge(list *diag.List, err error) error {
	if list == nil {
		return err
	}
	list.Items = slices.DeleteFunc(list.Items, func(d diag.Diagnostic) bool { return d.Severity != diag.Error && slices.Contains(o.Allow, d.ID) })
	for i := range list.Items {
		if d := &list.Items[i]; d.Severity == diag.Warning && (slices.Contains(o.Deny, d.ID) || slices.Contains(o.Deny, AllWarnings)) {
			d.Severity = diag.Error
		}
	}
	if err == nil {
		err = list.Err()
	}
	return err
}

// AllWarnings stands for all warnings in Options.Deny.
const AllWarnings = "warnings"

// Convert is [Lower] with one more observer, in the form that verify.Verifier.FirstBadPass takes.
func (o Options) Convert(m *ssa.Module, watch passes.Observer) error {
	var r passes.Runner
	if o.Runner != nil {
		r = *o.Runner
	}
	r.Observers = append(slices.Clone(r.Observers), watch)
	o.Runner = &r
	_, err := Lower(m, o)
	return err
}

// Inspect returns a copy of the module that is converted up to a stage: import, or the stage after the pass of that name. If the list
// has errors, the copy is as the pass that found them left it.
func Inspect(m *ssa.Module, stage string, o Options) (*ssa.Module, *diag.List, error) {
	m = m.Clone()
	o.begin(m)
	if stage == "import" {
		return m, &diag.List{Table: &m.Locs}, nil
	}
	mode, err := o.OperatorExport.mode()
	if err != nil {
		return nil, nil, err
	}
	p, err := o.pipeline(m, mode)
	if err != nil {
		return nil, nil, err
	}
	stage, remark := all.Set.Current(stage)
	part, ok := p.Until(stage)
	if !ok {
		stages := append([]string{"import"}, p.Passes()...)
		return nil, nil, fmt.Errorf("no stage %q%s (there are: %s)", stage, diag.DidYouMean(stage, stages), strings.Join(stages, ", "))
	}
	steps := part.Steps()
	if n := len(steps); n < len(m.Passed) && slices.Equal(steps, m.Passed[:n]) {
		return nil, nil, fmt.Errorf("the text is of a later stage than %s: behind %s", stage, m.Passed[len(m.Passed)-1])
	}
	list, err := remaining(m, part).Run(m, o.Runner)
	if err == nil {
		m.Passed = steps
	}
	if remark != "" && list != nil {
		list.Add(diag.Diagnostic{Severity: diag.Warning, ID: "renamed-pass", Message: remark})
	}
	return m, list, o.Judge(list, err)
}

// begin notes the opset of the conversion, and returns it.
func (o Options) begin(m *ssa.Module) int {
	m.TargetOpset = o.OpsetFor(m)
	if len(m.Passed) > 0 { // a text may have former names of passes
		if p, err := all.Set.Parse(strings.Join(m.Passed, ",")); err == nil {
			m.Passed = p.Steps()
		}
	}
	return m.TargetOpset
}

// remaining is the part of the pipeline that the module is not behind.
func remaining(m *ssa.Module, p *passes.Pipeline) *passes.Pipeline {
	if n := len(m.Passed); n > 0 {
		if steps := p.Steps(); n <= len(steps) && slices.Equal(steps[:n], m.Passed) {
			return p.From(n)
		}
	}
	return p
}

// Export converts the module and writes it to a file. The file appears only if everything succeeds.
func Export(m *ssa.Module, path string, o Options) error {
	if _, err := Lower(m, o); err != nil {
		return err
	}
	return onnxfile.Write(path, m, o.file(m))
}

// ExportTo is like Export but writes to w.
func ExportTo(w io.Writer, m *ssa.Module, o Options) error {
	if _, err := Lower(m, o); err != nil {
		return err
	}
	return onnxfile.WriteTo(w, m, o.file(m))
}

// FileNames returns the names that values of the converted module's main function, by their ID, and its outputs have in the
// file that Export wrote.
func FileNames(m *ssa.Module, o Options) (values, outputs []string, err error) {
	return onnxfile.Names(m, o.file(m))
}

func (o Options) file(m *ssa.Module) onnxfile.Options {
	file := onnxfile.Options{Version: Version(), External: o.External, OutputAxes: o.OutputAxes, DocStrings: o.DocStrings, NodeMetadata: o.NodeMetadata, NoWeights: o.NoWeights, InitializersAsInputs: o.InitializersAsInputs,
		Modules: o.ModuleFunctions, Functions: o.Functions}
	if f := m.Main(); f != nil {
		file.Unchecked = o.OperatorExport == Raw
		file.OutputNames = f.OutputNames
	}
	return file
}
