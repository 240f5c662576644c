// Package aton converts saved PyTorch graphs to ONNX, without Python.
//
//	m, err := aton.Load("model.pt", opts)
//	err = aton.Export(m, "model.onnx", opts)
//
// It is a thin face: reading is frontend's work, pipelines are those of passes/all, writing is backend/onnxfile's. What
// is wrong with the program that is converted comes as one error, a *diag.List, that has all there is to say.
package aton

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/frontend"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// DefaultOpset is the opset that models are written for unless another is asked for.
const DefaultOpset = 20

// OldestOpset is the oldest opset that models are written for.
const OldestOpset = 7

// Options say what to make of a model. The zero value is what most callers want.
type Options struct {
	// Inputs say what archives leave open: types, sizes and dynamic axes.
	Inputs []spec.Input
	// Opset is OldestOpset to the newest; 0 is DefaultOpset.
	Opset int
	// CustomOpsets are the versions of domains other than ONNX's; 1 for those that are not in it.
	CustomOpsets map[string]int
	// Fallthrough are namespaces whose operators stay, as nodes of custom domains, when they cannot be converted: aten
	// becomes the domain org.pytorch.aten. "*" stands for all.
	Fallthrough []string
	// Eval takes the module as being in eval mode, however it was saved.
	Eval bool
	// Target is the runtime whose kernels decide on element types: ort (the default), or onnx for the bare standard.
	Target string
	// OutputNames name the outputs in order; a prefix will do.
	OutputNames []string
	// LearnedNames calls weights learned_0, learned_1, ... instead of what the state dict calls them.
	LearnedNames bool
	// NoWeights leaves the elements of weights out of the file: they become inputs.
	NoWeights bool
	// InitializersAsInputs lists the weights among the inputs too, so that a runtime may replace them.
	InitializersAsInputs bool
	// External says where the elements of weights go.
	External onnxfile.External
	// Method is the method of a TorchScript module to convert; empty means forward.
	Method string
	// Program is the program to convert of a torch.export archive that holds several.
	Program string
	// Weights is a file of named tensors (torch.save, safetensors) that goes with graph text. WeightsKey is the path of
	// the state dict in a checkpoint; empty means the first one in it.
	Weights, WeightsKey string
	// Warn receives remarks on the file that is read; nil drops them.
	Warn func(message string)
	// Runner watches the passes; nil for none.
	Runner *passes.Runner
}

func (o Options) opset() int {
	if o.Opset == 0 {
		return DefaultOpset
	}
	return o.Opset
}

// Load reads a model. Its format is recognised by what is in it.
func Load(path string, o Options) (*ssa.Module, error) {
	m, err := frontend.Load(path, o.frontend())
	if err != nil {
		return nil, err
	}
	m.Dialects = all.Dialects()
	return m, nil
}

// LoadBytes is Load from memory. The name is for messages.
func LoadBytes(b []byte, name string, o Options) (*ssa.Module, error) {
	m, err := frontend.Read(b, name, o.frontend())
	if err != nil {
		return nil, err
	}
	m.Dialects = all.Dialects()
	return m, nil
}

func (o Options) frontend() frontend.Options {
	return frontend.Options{Inputs: o.Inputs, Method: o.Method, Program: o.Program, Weights: o.Weights, WeightsKey: o.WeightsKey,
		NoWeights: o.NoWeights, Eval: o.Eval, Dialects: all.Dialects(), Warn: o.Warn}
}

// Stages names the places of the conversion at which Inspect can look.
func Stages() []string {
	p, err := all.Set.Parse("export")
	if err != nil {
		panic(err) // a table of ours is wrong
	}
	return append([]string{"import"}, p.Passes()...)
}

// Lower converts the module to the ONNX dialect of the asked opset, as far as that goes: what cannot be converted
// stays as it is and is in the list.
func Lower(m *ssa.Module, o Options) (*diag.List, error) {
	p, err := o.pipeline()
	if err != nil {
		return nil, err
	}
	list, err := p.Run(m, o.Runner)
	if err != nil {
		return list, err
	}
	if m.Opsets == nil {
		m.Opsets = map[string]int{}
	}
	if len(m.Opsets) == 0 {
		m.Opsets[""] = o.opset()
	}
	for domain, n := range o.CustomOpsets {
		m.Opsets[domain] = n
	}
	leftOver(m, list)
	if o.Warn != nil {
		for _, d := range list.Items {
			if d.Severity == diag.Warning {
				o.Warn(list.Format(d))
			}
		}
	}
	return list, list.Err()
}

// leftOver reports the operators of PyTorch that no pass has converted, so that none gets into a file.
func leftOver(m *ssa.Module, list *diag.List) {
	for o := range m.Main().Body.AllOps() {
		for _, d := range m.Dialects {
			if ns := d.Namespace(); ns != onnx.Namespace && ns == o.Kind.Namespace() {
				list.Add(diag.Diagnostic{ID: "unsupported-op", Op: string(o.Kind), Loc: o.Loc, Message: "cannot be converted to ONNX"})
			}
		}
	}
}

func (o Options) pipeline() (*passes.Pipeline, error) {
	target := o.Target
	if target == "" {
		target = "ort"
	}
	if n := o.opset(); n < OldestOpset || n > onnx.Newest {
		return nil, fmt.Errorf("opset %d is not between %d and %d", n, OldestOpset, onnx.Newest)
	}
	names := "state"
	if o.LearnedNames {
		names = "learned"
	}
	return all.Set.Parse(fmt.Sprintf("export{opset=%d,target=%s,eval=%t,names=%s,fallthrough=%q}",
		o.opset(), target, o.Eval, names, strings.Join(o.Fallthrough, ",")))
}

// Inspect takes the module to a stage of the conversion: import, or behind the pass of that name.
func Inspect(m *ssa.Module, stage string, o Options) (*diag.List, error) {
	if stage == "import" {
		return &diag.List{Table: &m.Locs}, nil
	}
	p, err := o.pipeline()
	if err != nil {
		return nil, err
	}
	part, ok := p.Until(stage)
	if !ok {
		return nil, fmt.Errorf("no stage %q%s (there are: %s)", stage, passes.DidYouMean(stage, Stages()), strings.Join(Stages(), ", "))
	}
	return part.Run(m, o.Runner)
}

// Check says all that stands in the way of a conversion. The error is for what is not about the program.
func Check(m *ssa.Module, o Options) (*diag.List, error) {
	list, err := Lower(m, o)
	if err != nil && list != nil && list.Err() != nil {
		err = nil // it is in the list
	}
	return list, err
}

// Export converts the module and writes it to a file, which appears only when all went well.
func Export(m *ssa.Module, path string, o Options) error {
	if _, err := Lower(m, o); err != nil {
		return err
	}
	return onnxfile.Write(path, m, o.file(m))
}

// ExportTo is Export to a stream.
func ExportTo(w io.Writer, m *ssa.Module, o Options) error {
	if _, err := Lower(m, o); err != nil {
		return err
	}
	return onnxfile.WriteTo(w, m, o.file(m))
}

func (o Options) file(m *ssa.Module) onnxfile.Options {
	names := slices.Clone(o.OutputNames)
	if f := m.Main(); f != nil && len(f.OutputNames) > len(names) {
		names = append(names, f.OutputNames[len(names):]...)
	}
	return onnxfile.Options{External: o.External, OutputNames: names, NoWeights: o.NoWeights, InitializersAsInputs: o.InitializersAsInputs}
}
