// Package aton converts saved PyTorch graphs to ONNX, without Python.
//
//	m, err := aton.Load("model.pt2", aton.LoadOptions{})
//	...
//	err = aton.Export(m, "model.onnx", aton.ExportOptions{})
//
// Load reads a program, Convert makes ONNX operators of it, and Write writes them to a file; Export converts and writes. A module belongs to
// one goroutine, and a conversion changes it: load the file again for another conversion. Check and Inspect work on copies.
//
// It is a facade over packages that can be used by themselves: frontend reads models, passes/all has the pipelines, and
// backend/onnxfile writes files. Problems of the converted program come as one error, a *diag.List, which holds all of them.
package aton

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/frontend"
	"github.com/aton-project/aton/internal/conversion"
	"github.com/aton-project/aton/internal/version"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// DefaultOpset is the opset that programs of PyTorch are converted to unless ConvertOptions.Opset is set.
const DefaultOpset = onnx.ExportOpset

// Version returns the version of aton: that of a release, or what the Go command recorded. It is the producer_version of the files that
// Write writes.
func Version() string { return version.String() }

// OldestOpset is the oldest opset that a model can be converted to.
const OldestOpset = 7

// OpsetFor returns the opset that a module is converted to.
func (o ConvertOptions) OpsetFor(m *ssa.Module) int {
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
func Load(path string, o LoadOptions) (*ssa.Module, error) {
	return o.load(func(f frontend.Options) (*ssa.Module, error) { return frontend.Load(path, f) })
}

// LoadBytes is like Load but reads from memory. The name appears in messages.
func LoadBytes(b []byte, name string, o LoadOptions) (*ssa.Module, error) {
	return o.load(func(f frontend.Options) (*ssa.Module, error) { return frontend.Read(b, name, f) })
}

func (o LoadOptions) load(read func(frontend.Options) (*ssa.Module, error)) (*ssa.Module, error) {
	_, training, err := o.Training.frozen()
	if err != nil {
		return nil, err
	}
	if o.WeightsKey != "" && o.Weights == "" {
		return nil, fmt.Errorf("WeightsKey %q names a part of the file of weights, and Weights names no file", o.WeightsKey)
	}
	m, err := read(frontend.Options{Inputs: o.Inputs, InputNames: o.InputNames, Names: o.Names, Method: o.Method, Program: o.Program, Weights: o.Weights, WeightsKey: o.WeightsKey,
		NoWeights: o.NoWeights, Repair: o.Repair, Training: training, Table: o.Table, Dialects: all.Dialects(), Warn: o.Warn, Note: o.Note})
	if err != nil {
		return nil, err
	}
	m.Dialects, m.Budget = all.Dialects(), o.Budget
	if n := len(m.Defaults); o.FreezeDefaults {
		onnxfile.FreezeDefaults(m)
	} else if n > 0 && o.Note != nil {
		o.Note(fmt.Sprintf("inputs with default values stay inputs (%d of them), and nothing is computed with the values at export; --freeze-defaults makes constants of them", n))
	}
	return m, nil
}

// Stages lists the stages of the conversion that Inspect accepts.
func Stages() []string {
	p, err := all.Set.Parse(conversion.Export)
	if err != nil {
		panic(err) // a bug in the table of pipelines
	}
	return append([]string{importStage}, p.Passes()...)
}

// importStage is the stage of a module as Load returns it.
const importStage = "import"

// Convert converts the module to ONNX operators of the target opset. The list has what the passes reported; if it has errors, Convert
// returns them as its error. A converted module can be converted again, to another opset. After an error the module must not be used.
func Convert(m *ssa.Module, o ConvertOptions) (*diag.List, error) {
	p, err := o.pipeline(m, false)
	if err != nil {
		return nil, err
	}
	opset := o.OpsetFor(m)
	conversion.Begin(m, opset)
	list, err := conversion.Remaining(m, p).Run(m, o.Runner)
	if err = o.filter(list, err); list != nil && o.Diagnosed != nil {
		defer o.Diagnosed(list)
	}
	if at := onnx.DefaultOpset(m); err == nil && at != opset {
		err = fmt.Errorf("pipeline %q leaves operators of opset %d, and the model is converted to opset %d: end it with legalize{opset=$opset}", o.Pipeline, at, opset)
	}
	if err != nil {
		onnx.Invalidate(m)
		return list, err
	}
	m.Passed, m.TargetOpset, m.WeightStorage = nil, 0, o.Weights
	if o.Warn != nil && o.Diagnosed == nil {
		conversion.Warn(list, o.Warn)
	}
	return list, nil
}

// filter applies Allow and Deny to a list. It returns err, or if that is nil the error of the list.
func (o ConvertOptions) filter(list *diag.List, err error) error {
	if list == nil {
		return err
	}
	list.Filter(o.Allow, o.Deny)
	return cmp.Or(err, list.Err())
}

// WithObserver returns the options with one more observer of the passes.
func (o ConvertOptions) WithObserver(watch passes.Observer) ConvertOptions {
	o.Runner = o.Runner.With(watch)
	return o
}

// Inspect returns a copy of the module that is converted up to a stage: import, or the stage after the pass of that name. If the list
// has errors, the copy is as the pass that found them left it.
func Inspect(m *ssa.Module, stage string, o ConvertOptions) (*ssa.Module, *diag.List, error) {
	m = m.Clone()
	conversion.Begin(m, o.OpsetFor(m))
	if stage == importStage {
		return m, &diag.List{Table: &m.Locs}, nil
	}
	p, err := o.pipeline(m, false)
	if err != nil {
		return nil, nil, err
	}
	stage, remark := all.Set.Current(stage)
	part, ok := p.Until(stage)
	if !ok {
		stages := append([]string{importStage}, p.Passes()...)
		return nil, nil, fmt.Errorf("no stage %q%s (there are: %s)", stage, diag.DidYouMean(stage, stages), strings.Join(stages, ", "))
	}
	steps := part.Steps()
	if n := len(steps); n < len(m.Passed) && slices.Equal(steps, m.Passed[:n]) {
		return nil, nil, fmt.Errorf("the text is of a later stage than %s: behind %s", stage, m.Passed[len(m.Passed)-1])
	}
	list, err := conversion.Remaining(m, part).Run(m, o.Runner)
	if err == nil {
		m.Passed = steps
	}
	if remark != "" && list != nil {
		list.Add(diag.Diagnostic{Severity: diag.Warning, ID: "renamed-pass", Message: remark})
	}
	return m, list, o.filter(list, err)
}

// Check reports everything that blocks the conversion, from all passes at once. The error is about anything but the
// program. It works on a copy of the module.
func Check(m *ssa.Module, o ConvertOptions) (*diag.List, error) {
	m = m.Clone()
	if o.OperatorExport != "" && o.OperatorExport != ONNX || len(o.Fallthrough) > 0 {
		list, err := Convert(m, o)
		if err != nil && list != nil && list.Err() != nil {
			err = nil // the list has it
		}
		return list, err
	}
	p, err := o.pipeline(m, true)
	if err != nil {
		return nil, err
	}
	conversion.Begin(m, o.OpsetFor(m))
	list, err := p.Run(m, o.Runner)
	if list == nil {
		return nil, err
	}
	failed := list.Err() != nil
	list.Filter(o.Allow, o.Deny)
	if err != nil && list.Err() == nil {
		return list, err // a bug in aton
	}
	if err != nil || failed {
		conversion.AddUnsupported(list, m, o.Table, o.OpsetFor(m))
	}
	return list, nil
}

// Write writes a converted module to a file. The file appears only if everything succeeds.
func Write(m *ssa.Module, path string, o WriteOptions) error {
	return onnxfile.Write(path, m, versioned(o))
}

// WriteTo is like Write but writes to w.
func WriteTo(w io.Writer, m *ssa.Module, o WriteOptions) error {
	return onnxfile.WriteTo(w, m, versioned(o))
}

// FileNames returns the names that values of the converted module's main function, by their ID, and its outputs have in the
// file that Write writes.
func FileNames(m *ssa.Module, o WriteOptions) (values, outputs []string, err error) {
	return onnxfile.Names(m, o)
}

// versioned has the version of this release, unless another program is the producer.
func versioned(o WriteOptions) WriteOptions {
	if o.Producer == "" {
		o.Version = cmp.Or(o.Version, Version())
	}
	return o
}

// Export converts the module and writes it to a file. The file appears only if everything succeeds.
func Export(m *ssa.Module, path string, o ExportOptions) error {
	if _, err := Convert(m, o.ConvertOptions); err != nil {
		return err
	}
	return Write(m, path, o.file())
}

// ExportTo is like Export but writes to w.
func ExportTo(w io.Writer, m *ssa.Module, o ExportOptions) error {
	if _, err := Convert(m, o.ConvertOptions); err != nil {
		return err
	}
	return WriteTo(w, m, o.file())
}

// file returns the options of the writer. A raw graph is no model of ONNX.
func (o ExportOptions) file() WriteOptions {
	o.Unchecked = o.Unchecked || o.OperatorExport == Raw
	return o.WriteOptions
}
