// Package aton converts saved PyTorch graphs to ONNX, without Python.
//
//	m, err := aton.Load("model.pt", opts)
//	err = aton.Export(m, "model.onnx", opts)
//
// It is a thin face: reading is frontend's work, pipelines are those of passes/all, writing is backend/onnxfile's. What
// is wrong with the program that is converted comes as one error, a *diag.List, that has all there is to say.
package aton

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/frontend"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/passes/lower"
	"github.com/aton-project/aton/passes/specialize"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// DefaultOpset is the opset that models of PyTorch are written for unless another is asked for.
const DefaultOpset = onnx.ExportOpset

// OldestOpset is the oldest opset that models are written for.
const OldestOpset = 7

// Options say what to make of a model. The zero value is what most callers want. Conversions that run at once may share them,
// if Warn, Note and the observers of Runner can be called from several goroutines. A module is for one goroutine: a conversion
// changes it. Load it again for another one; what was mapped of its file may be shared.
type Options struct {
	// Inputs say what archives leave open: types, sizes and dynamic axes.
	Inputs []spec.Input
	// Opset is OldestOpset to the newest; 0 is the one that the module is at (an ONNX file, a module that was converted
	// before), DefaultOpset for a program of PyTorch.
	Opset int
	// CustomOpsets are the versions of domains other than ONNX's; 1 for those that are not in it.
	CustomOpsets map[string]int
	// Fallthrough are namespaces whose operators stay, as nodes of custom domains, when they cannot be converted: aten
	// becomes the domain org.pytorch.aten. "*" stands for all.
	Fallthrough []string
	// Training is the mode that the module is taken to be in; empty is Preserve.
	Training TrainingMode
	// NoFolding keeps each weight as the state dict has it: what the program, or a pass, computes of weights alone is
	// computed by the operators of the file. The modes of training do so too.
	NoFolding bool
	// State says what becomes of buffers and attributes that the program changes: drop (the default, with a warning),
	// outputs (further outputs, named as the state is), or refuse.
	State string
	// Unroll is the greatest number of iterations of loops that are unrolled because their number is known; loops whose
	// containers or dtypes change from one to the next are unrolled in any case.
	Unroll int
	// Target is the runtime whose kernels decide on element types: ort (the default), or onnx for the bare standard.
	Target string
	// Contrib uses operators of onnxruntime's own, of the domain com.microsoft: the file has fewer nodes, and no other
	// runtime can run it. It says where that runs, cpu or gpu, since some operators are faster on one only; none (the default) is
	// for the standard's operators alone. It goes with the target ort.
	Contrib string
	// InputNames name what the file takes, as input_names of torch.onnx.export does: its inputs in order, and then the weights
	// in the order of the state dict, the unused ones too. A prefix will do; "" leaves a name as it is. Inputs may use
	// these names beside those of the program, which go before.
	InputNames []string
	// OutputNames name the outputs in order; a prefix will do, and "" leaves a name as it is.
	OutputNames []string
	// Names has new names of inputs, weights and outputs by those that the file would have. A name that is taken is an error,
	// here as in InputNames and OutputNames.
	Names map[string]string
	// OutputAxes name axes of outputs, by the name of the output in the file and the axis, which counts from the end when it
	// is negative: {"boxes": {0: "detections"}}. Sizes that depend on data have made-up names otherwise.
	OutputAxes map[string]map[int]string
	// LearnedNames calls weights learned_0, learned_1, ... instead of what the state dict calls them.
	LearnedNames bool
	// NoWeights leaves the weights out of the file: each is an input under its name in the state dict.
	NoWeights bool
	// InitializersAsInputs lists the weights among the inputs too, each under its name in the state dict and as it is there,
	// so that a runtime may replace them.
	InitializersAsInputs bool
	// FreezeDefaults makes constants of the inputs of an ONNX file that have a default value, an initializer of the same name.
	// Otherwise they stay inputs with their defaults, and no pass computes with these.
	FreezeDefaults bool
	// DropUnused leaves out the inputs that no output depends on, as torch.onnx.export(dynamo=False) does, and receives the
	// place of each among the inputs; nil keeps them. InputNames counts them all the same.
	DropUnused func(place int)
	// DocStrings writes the line of the program as the documentation of each node, at any opset. From opset 21 on it is in the
	// metadata of the nodes in any case.
	DocStrings bool
	// NodeMetadata writes where each node comes from as its metadata at opsets below 21 too. The file has IR version 10 then,
	// which runtimes read that read opset 21.
	NodeMetadata bool
	// ModuleFunctions makes functions of the file of the calls of modules: those at paths (features.0), of classes (Conv2d,
	// torch.nn.modules.conv.Conv2d), or all of them ("*"). Modules that compute the same share one; what their attributes
	// differ in are attributes of the function.
	ModuleFunctions []string
	// External says where the elements of weights go.
	External onnxfile.External
	// Functions are bodies of operators of custom domains: the file carries those that it calls.
	Functions *onnxfile.Functions
	// Budget multiplies the limits of what the conversion and a run in the interpreter may take: steps of evaluation, bytes,
	// operators and elements that a program makes. 0 is 1, which is right for all but huge models. See ssa.Module.Allow.
	Budget int
	// Method is the method of a TorchScript module to convert; empty means forward.
	Method string
	// Program is the program to convert of a torch.export archive that holds several.
	Program string
	// Weights is a file of named tensors (torch.save, safetensors) that goes with graph text. WeightsKey is the path of
	// the state dict in a checkpoint; empty means the first one in it.
	Weights, WeightsKey string
	// Table has the operators that are known; nil stands for the built-in ones. A user registers symbolic functions in
	// a table of aten.NewTable.
	Table *aten.Table
	// OperatorExport says what becomes of operators that cannot be converted; empty is ONNX.
	OperatorExport OperatorExportType
	// Warn receives remarks on the file that is read; nil drops them.
	Warn func(message string)
	// Diagnosed receives all that a conversion has to say, warnings too, as data; nil drops it.
	Diagnosed func(list *diag.List)
	// Note receives what is taken from the file because Inputs do not state it, and how to state it; nil drops it.
	Note func(message string)
	// Pipeline names the passes to run instead of the default ones, such as "upgrade,optimize{opset=$opset}"; empty stands
	// for "export". $opset, $target, $training, $names, $fallthrough, $unroll, $state and $mode are what the options say, in
	// the words of the pipeline export. Its passes must be for the opset that the module is converted to.
	Pipeline string
	// Before and After put further steps before and behind the steps of the pipeline export, by the name that a step begins with:
	// After["lower"] = "mine" runs the pass mine when the program is of ONNX operators in their newest form. They go with the
	// whole pipeline, which Pipeline would have to spell.
	Before, After map[string]string
	// Passes are further passes that Pipeline, Before and After may name.
	Passes []*passes.Pass
	// Runner watches the passes; nil for none.
	Runner *passes.Runner
}

// TrainingMode says whether dropout drops and batch normalization takes the statistics of the batch.
type TrainingMode string

// The modes of torch.onnx.
const (
	// Preserve takes each module to be in the mode that it was saved in, or traced in.
	Preserve TrainingMode = "PRESERVE"
	// Eval takes all modules to be in eval mode.
	Eval TrainingMode = "EVAL"
	// Train takes all modules to be in training mode, and writes weights as the state dict has them. Dropout is an operator in
	// training, and so is BatchNormalization from opset 14 on for the target onnx. For onnxruntime it is the arithmetic of the
	// batch's statistics: its optimizer folds one in training into the convolution before it as if it were in evaluation.
	Train TrainingMode = "TRAINING"
)

// TrainingModes lists them.
func TrainingModes() []TrainingMode { return []TrainingMode{Preserve, Eval, Train} }

// frozen is the mode in the words of the pass freeze, and what frontends are told, nil to leave the mode as it is.
func (t TrainingMode) frozen() (pass string, all *bool, err error) {
	on, off := true, false
	switch t {
	case "", Preserve:
		return "preserve", nil, nil
	case Eval:
		return "eval", &off, nil
	case Train:
		return "train", &on, nil
	}
	return "", nil, fmt.Errorf("no training mode %q", string(t))
}

// OperatorExportType says what becomes of operators that cannot be converted.
type OperatorExportType string

// The types of torch.onnx.
const (
	// ONNX: every operator must convert.
	ONNX OperatorExportType = "ONNX"
	// ONNXFallthrough keeps them as nodes of their own names; the domain of aten is org.pytorch.aten.
	ONNXFallthrough OperatorExportType = "ONNX_FALLTHROUGH"
	// ONNXATenFallback makes ATen nodes of those of aten: domain org.pytorch.aten, string attributes operator and
	// overload_name, all operands in the order of the schema.
	ONNXATenFallback OperatorExportType = "ONNX_ATEN_FALLBACK"
	// ONNXATen makes ATen nodes of all operators of aten.
	ONNXATen OperatorExportType = "ONNX_ATEN"
	// Raw writes the TorchScript graph as it is: no model that a runtime loads, and not checked as one.
	Raw OperatorExportType = "RAW"
)

// OperatorExportTypes lists them.
func OperatorExportTypes() []OperatorExportType {
	return []OperatorExportType{ONNX, ONNXFallthrough, ONNXATenFallback, ONNXATen, Raw}
}

// mode is the pass's word.
func (t OperatorExportType) mode() (lower.Mode, error) {
	switch t {
	case "", ONNX:
		return lower.Strict, nil
	case ONNXFallthrough:
		return lower.Fallthrough, nil
	case ONNXATenFallback:
		return lower.ATenFallback, nil
	case ONNXATen:
		return lower.ATen, nil
	}
	return "", fmt.Errorf("no operator export type %q", string(t))
}

// OpsetFor is the opset that a module is converted to.
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

// Load reads a model. Its format is recognised by what is in it.
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

// LoadBytes is Load from memory. The name is for messages.
func LoadBytes(b []byte, name string, o Options) (*ssa.Module, error) {
	m, err := frontend.Read(b, name, o.frontend())
	if err != nil {
		return nil, err
	}
	return o.loaded(m), nil
}

func (o Options) frontend() frontend.Options {
	_, training, _ := o.Training.frozen() // Lower tells of a mode that there is not
	return frontend.Options{Inputs: o.Inputs, InputNames: o.InputNames, Names: o.Names, Method: o.Method, Program: o.Program, Weights: o.Weights, WeightsKey: o.WeightsKey,
		NoWeights: o.NoWeights, Training: training, Table: o.Table, Dialects: all.Dialects(), Warn: o.Warn, Note: o.Note}
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
// stays as it is and is in the list. A module that was converted can be converted again, to another opset; one whose
// conversion failed is of no use any more.
func Lower(m *ssa.Module, o Options) (*diag.List, error) {
	if o.OperatorExport == Raw {
		if o.Pipeline != "" {
			return nil, fmt.Errorf("operator export type %s has a pipeline of its own: leave Options.Pipeline empty", Raw)
		}
		return o.raw(m)
	}
	mode, err := o.OperatorExport.mode()
	if err != nil {
		return nil, err
	}
	p, err := o.pipeline(m, mode)
	if err != nil {
		return nil, err
	}
	opset, converted := o.begin(m), onnx.DefaultOpset(m) != 0 && len(m.Passed) == 0
	list, err := remaining(m, p).Then(o.finish(converted)...).Run(m, o.Runner)
	if list != nil && o.Diagnosed != nil {
		defer o.Diagnosed(list)
	}
	if err != nil {
		onnx.SetOpset(m, onnx.Failed)
		return list, err
	}
	onnx.SetOpset(m, opset)
	m.Passed, m.TargetOpset, m.State = nil, 0, nil
	if o.Warn != nil {
		for _, d := range list.Items {
			if d.Severity == diag.Warning {
				d.Severity = diag.Error // who is warned knows that it is a warning
				o.Warn(list.Format(d))
			}
		}
	}
	return list, nil
}

// raw readies the TorchScript graph for a file.
func (o Options) raw(m *ssa.Module) (*diag.List, error) {
	p, err := all.Set.Parse("inline,freeze")
	if err != nil {
		return nil, err
	}
	m.State = stateNames(m)
	defer func() { m.State = nil }()
	return p.Then(o.rawPass(), o.domainsPass(), o.renamePass()).Run(m, o.Runner)
}

func (o Options) pipeline(m *ssa.Module, mode lower.Mode) (*passes.Pipeline, error) {
	target := o.Target
	if target == "" {
		target = "ort"
	}
	contrib := cmp.Or(o.Contrib, "none")
	if contrib != "none" && target != "ort" {
		return nil, fmt.Errorf("operators of onnxruntime's own are for the target ort, not %s", target)
	}
	n := o.OpsetFor(m)
	if n < OldestOpset || n > onnx.Newest {
		return nil, fmt.Errorf("opset %d is not between %d and %d", n, OldestOpset, onnx.Newest)
	}
	names := "state"
	if o.LearnedNames {
		names = "learned"
	}
	inserts := len(o.Before)+len(o.After) > 0
	if o.Pipeline == "" && !inserts && len(o.Passes) > 0 {
		return nil, fmt.Errorf("no pipeline names the pass %s: set Options.After, Options.Before or Options.Pipeline", o.Passes[0].Name)
	}
	if o.Pipeline != "" && inserts {
		return nil, fmt.Errorf("steps before and after those of the pipeline export do not go with a pipeline of one's own")
	}
	if err := o.unread(); err != nil {
		return nil, err
	}
	set := all.Set
	if o.Table != nil || o.Pipeline != "" || inserts {
		set = all.New(o.Table)
		set.Passes = append(set.Passes, o.Passes...)
	}
	name := "export"
	if inserts {
		var err error
		if set, err = set.Insert(name, o.Before, o.After); err != nil {
			return nil, err
		}
	}
	if o.Pipeline != "" {
		name = "pipeline-of-the-options"
		i := slices.IndexFunc(set.Named, func(n passes.Named) bool { return n.Name == "export" })
		set.Named = append(slices.Clip(set.Named), passes.Named{Name: name, Text: o.Pipeline, Options: set.Named[i].Options})
	}
	state := o.State
	if state == "" {
		state = string(specialize.StateDropped)
	}
	training, _, err := o.Training.frozen()
	if err != nil {
		return nil, err
	}
	p, err := set.Build(name, map[string]any{
		"opset": n, "target": target, "contrib": contrib, "training": training, "names": names, "fallthrough": strings.Join(o.Fallthrough, ","), "mode": string(mode),
		"state": state, "lift": o.NoWeights || o.InitializersAsInputs || o.NoFolding || o.Training == Train, "unroll": max(o.Unroll, 0),
	})
	if err != nil {
		return nil, err
	}
	for _, v := range p.OptionValues("opset") {
		if v != n {
			return nil, fmt.Errorf("pipeline %q has a pass for opset %v, and the model is converted to opset %d: write opset=$opset", o.Pipeline, v, n)
		}
	}
	return p, nil
}

// unread reports an option that a pipeline of the user's has no place for: it would be dropped without a word.
func (o Options) unread() error {
	if o.Pipeline == "" {
		return nil
	}
	for _, x := range []struct {
		set             bool
		option, setting string
	}{
		{o.Target != "", "Target", "target"},
		{o.Contrib != "" && o.Contrib != "none", "Contrib", "contrib"},
		{o.Training != "" && o.Training != Preserve, "Training", "training"},
		{o.LearnedNames, "LearnedNames", "names"},
		{len(o.Fallthrough) > 0, "Fallthrough", "fallthrough"},
		{o.OperatorExport != "" && o.OperatorExport != ONNX, "OperatorExport", "mode"},
		{o.State != "", "State", "state"},
		{o.NoWeights, "NoWeights", "lift"},
		{o.InitializersAsInputs, "InitializersAsInputs", "lift"},
		{o.NoFolding, "NoFolding", "lift"},
		{o.Unroll > 0, "Unroll", "unroll"},
	} {
		if x.set && !strings.Contains(o.Pipeline, "$"+x.setting) {
			return fmt.Errorf("no pass of pipeline %q reads the option %s: give the pass that should $%s, as the pipeline export does", o.Pipeline, x.option, x.setting)
		}
	}
	return nil
}

// Inspect takes the module to a stage of the conversion: import, or behind the pass of that name.
func Inspect(m *ssa.Module, stage string, o Options) (*diag.List, error) {
	o.begin(m)
	if stage == "import" {
		return &diag.List{Table: &m.Locs}, nil
	}
	mode, err := o.OperatorExport.mode()
	if err != nil {
		return nil, err
	}
	p, err := o.pipeline(m, mode)
	if err != nil {
		return nil, err
	}
	stage, remark := all.Set.Current(stage)
	part, ok := p.Until(stage)
	if !ok {
		stages := append([]string{"import"}, p.Passes()...)
		return nil, fmt.Errorf("no stage %q%s (there are: %s)", stage, passes.DidYouMean(stage, stages), strings.Join(stages, ", "))
	}
	steps := part.Steps()
	if n := len(steps); n < len(m.Passed) && slices.Equal(steps, m.Passed[:n]) {
		return nil, fmt.Errorf("the text is of a later stage than %s: behind %s", stage, m.Passed[len(m.Passed)-1])
	}
	list, err := remaining(m, part).Run(m, o.Runner)
	if err == nil {
		m.Passed = steps
	}
	if remark != "" && list != nil {
		list.Add(diag.Diagnostic{Severity: diag.Warning, ID: "renamed-pass", Message: remark})
	}
	return list, err
}

// begin notes what the later part of a conversion needs to know of the program, and returns the opset.
func (o Options) begin(m *ssa.Module) int {
	m.TargetOpset = o.OpsetFor(m)
	if len(m.Passed) > 0 { // a text may have former names of passes
		if p, err := all.Set.Parse(strings.Join(m.Passed, ",")); err == nil {
			m.Passed = p.Steps()
		}
	}
	if len(m.Passed) == 0 {
		m.State = stateNames(m)
		noteClasses(m)
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

// FileNames returns what the file that Export wrote calls the values of the converted module's main function, by their ID,
// and its outputs.
func FileNames(m *ssa.Module, o Options) (values, outputs []string, err error) {
	return onnxfile.Names(m, o.file(m))
}

func (o Options) file(m *ssa.Module) onnxfile.Options {
	file := onnxfile.Options{Version: Version(), External: o.External, OutputAxes: o.OutputAxes, DocStrings: o.DocStrings, NodeMetadata: o.NodeMetadata, NoWeights: o.NoWeights, InitializersAsInputs: o.InitializersAsInputs}
	if f := m.Main(); f != nil {
		file.Unchecked = o.OperatorExport == Raw
		file.OutputNames = f.OutputNames
		file.Modules, _ = o.modules(m) // Lower has told of an error
	}
	file.Functions = o.Functions
	return file
}
