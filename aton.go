// Package aton converts saved PyTorch graphs to ONNX, without Python.
//
//	m, err := aton.Load("model.pt", opts)
//	err = aton.Export(m, "model.onnx", opts)
//
// It is a facade over packages that can be used by themselves: frontend reads models, passes/all has the pipelines, and
// backend/onnxfile writes files. Problems of the converted program come as one error, a *diag.List, which holds all of them.
package aton

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
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

// DefaultOpset is the opset that programs of PyTorch are converted to unless Options.Opset is set.
const DefaultOpset = onnx.ExportOpset

// OldestOpset is the oldest opset that a model can be converted to.
const OldestOpset = 7

// Options configure loading, conversion and writing. The zero value suits most callers. Concurrent conversions may share
// Options if Warn, Note and the observers of Runner are safe for concurrent use. A module belongs to one goroutine, and a conversion
// changes it: load the file again for another conversion.
type Options struct {
	// Inputs gives what an archive does not state: types, sizes and dynamic axes of the inputs.
	Inputs []spec.Input
	// Opset is the target opset, from OldestOpset to onnx.Newest. If it is 0, an ONNX file or a converted module keeps its opset,
	// and a program of PyTorch is converted to DefaultOpset.
	Opset int
	// CustomOpsets has the versions of domains other than ONNX's. A domain that is not in it has version 1.
	CustomOpsets map[string]int
	// Fallthrough lists namespaces whose operators become nodes of custom domains if they cannot be converted: aten
	// becomes the domain org.pytorch.aten. "*" stands for all namespaces.
	Fallthrough []string
	// Training is the mode that the module is converted in. The default is Preserve.
	Training TrainingMode
	// NoFolding keeps each weight as it is in the state dict. What the program or a pass computes from weights alone is
	// computed by operators of the file, and not at export. Train implies it.
	NoFolding bool
	// State says what happens to buffers and attributes that the program changes: drop (the default, with a warning),
	// outputs (additional outputs with the names of the state), or refuse.
	State string
	// Unroll is the number of iterations up to which a loop with a known number of iterations is unrolled. A loop whose
	// containers or dtypes change from one iteration to the next is always unrolled.
	Unroll int
	// Target is the runtime whose kernels determine the element types: ort (the default), or onnx for the standard alone.
	Target string
	// Contrib allows operators of the domain com.microsoft: the file has fewer nodes, and only onnxruntime can run it.
	// Its value is the processor, cpu or gpu, since some of these operators are faster on one of them only, or none (the
	// default). It requires the target ort.
	Contrib string
	// InputNames has the names of the inputs in order, followed by those of the weights in the order of the state dict, unused
	// ones included, as input_names of torch.onnx.export does. The list may be shorter; "" keeps a name. Inputs
	// may use these names too; names of the program take precedence.
	InputNames []string
	// OutputNames has the names of the outputs in order. The list may be shorter; "" keeps a name.
	OutputNames []string
	// Names maps the names that inputs, weights and outputs would have to new ones. A name that is taken is an error,
	// here and in InputNames and OutputNames.
	Names map[string]string
	// OutputAxes names axes of outputs, by the name of the output in the file and the axis; a negative axis counts from the
	// end: {"boxes": {0: "detections"}}. Sizes that depend on data have generated names otherwise.
	OutputAxes map[string]map[int]string
	// LearnedNames names the weights learned_0, learned_1, ... instead of using the names of the state dict.
	LearnedNames bool
	// NoWeights leaves the weights out of the file. Each becomes an input with its name in the state dict.
	NoWeights bool
	// InitializersAsInputs lists the weights among the inputs too, unchanged and with their names in the state dict,
	// so that a runtime can replace them.
	InitializersAsInputs bool
	// FreezeDefaults turns inputs of an ONNX file that have a default value (an initializer of the same name) into constants.
	// Otherwise they stay inputs with defaults, and no pass computes with the values.
	FreezeDefaults bool
	// DropUnused removes the inputs that no output depends on, as torch.onnx.export(dynamo=False) does, and notes their positions in
	// Module.DroppedInputs. InputNames counts the removed inputs too.
	DropUnused bool
	// DocStrings writes the line of the program as the doc string of each node, at any opset. From opset 21 on the metadata
	// of the node has it anyway.
	DocStrings bool
	// NodeMetadata writes the origin of each node as metadata at opsets below 21 too. The file then has IR version 10, which
	// any runtime that supports opset 21 reads.
	NodeMetadata bool
	// ModuleFunctions turns calls of modules into functions of the file: those of paths (features.0), of classes (Conv2d,
	// torch.nn.modules.conv.Conv2d), or all of them ("*"). Modules that compute the same share a function; values in which
	// they differ become attributes of it.
	ModuleFunctions []string
	// External says where the data of weights is stored.
	External onnxfile.External
	// Functions has bodies of operators of custom domains. The file contains those that it calls.
	Functions *onnxfile.Functions
	// Budget multiplies the limits of a conversion and of a run in the interpreter: steps of evaluation, bytes,
	// operators and elements. 0 means 1, which suffices for all but huge models. See ssa.Module.Allow.
	Budget int
	// Method is the method of a TorchScript module to convert. The default is forward.
	Method string
	// Program names the program to convert in a torch.export archive that holds several.
	Program string
	// Weights is a file of named tensors (torch.save, safetensors) for graph text. WeightsKey is the path of
	// the state dict in a checkpoint; the default is the first one.
	Weights, WeightsKey string
	// Table has the known operators; nil means the built-in ones. Register lowerings of your own in a table of
	// aten.NewTable.
	Table *aten.Table
	// OperatorExport says what happens to operators that cannot be converted. The default is ONNX.
	OperatorExport OperatorExportType
	// Warn, if not nil, receives warnings about the file and the conversion.
	Warn func(message string)
	// Diagnosed, if not nil, receives all diagnostics of a conversion, warnings included.
	Diagnosed func(list *diag.List)
	// Note, if not nil, receives what is taken from the file because Inputs does not state it, and how to state it.
	Note func(message string)
	// Pipeline is the pipeline to run, such as "upgrade,optimize{opset=$opset},legalize{opset=$opset}"; the default is "export". $opset, $target,
	// $training, $names, $fallthrough, $unroll, $state and $mode stand for the values of the options, as the
	// pipeline export takes them. All of its passes must have the opset that the module is converted to.
	Pipeline string
	// Before and After add steps before and after the steps of the pipeline export, by the name that a step begins with:
	// After["lower"] = "mine" runs the pass mine once the program consists of ONNX operators in their newest form. They are for
	// the default pipeline: Pipeline spells its own steps.
	Before, After map[string]string
	// Passes has additional passes that Pipeline, Before and After may name.
	Passes []*passes.Pass
	// Runner, if not nil, observes the passes.
	Runner *passes.Runner
}

// TrainingMode says whether dropout drops and whether batch normalization uses the statistics of the batch.
type TrainingMode string

// The modes of torch.onnx.
const (
	// Preserve converts each module in the mode that it was saved or traced in.
	Preserve TrainingMode = "PRESERVE"
	// Eval converts all modules in eval mode.
	Eval TrainingMode = "EVAL"
	// Train converts all modules in training mode and keeps weights as they are in the state dict. Dropout becomes a
	// training-mode Dropout. BatchNormalization becomes a training-mode operator from opset 14 on for the target onnx; for
	// onnxruntime the file computes the statistics of the batch, because onnxruntime's optimizer folds a training-mode
	// BatchNormalization into the convolution before it as if it were in evaluation.
	Train TrainingMode = "TRAINING"
)

// TrainingModes lists the training modes.
func TrainingModes() []TrainingMode { return []TrainingMode{Preserve, Eval, Train} }

// frozen returns the mode as an option of the pass freeze and as an option of frontends, where nil keeps the mode.
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

// OperatorExportType says what happens to operators that cannot be converted.
type OperatorExportType string

// The types of torch.onnx.
const (
	// ONNX: every operator must convert.
	ONNX OperatorExportType = "ONNX"
	// ONNXFallthrough keeps an operator as a node with its own name; the domain of aten is org.pytorch.aten.
	ONNXFallthrough OperatorExportType = "ONNX_FALLTHROUGH"
	// ONNXATenFallback turns an operator of aten into an ATen node: domain org.pytorch.aten, string attributes operator and
	// overload_name, all operands in the order of the schema.
	ONNXATenFallback OperatorExportType = "ONNX_ATEN_FALLBACK"
	// ONNXATen turns all operators of aten into ATen nodes.
	ONNXATen OperatorExportType = "ONNX_ATEN"
	// Raw writes the TorchScript graph as it is, without checking it. No runtime loads the file.
	Raw OperatorExportType = "RAW"
)

// OperatorExportTypes lists the operator export types.
func OperatorExportTypes() []OperatorExportType {
	return []OperatorExportType{ONNX, ONNXFallthrough, ONNXATenFallback, ONNXATen, Raw}
}

// mode returns the mode of the pass lower.
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
	case Raw: // the pipeline raw lowers nothing
		return lower.Fallthrough, nil
	}
	return "", fmt.Errorf("no operator export type %q", string(t))
}

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
	if list != nil && o.Diagnosed != nil {
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
	if o.Warn != nil {
		for _, d := range list.Items {
			if d.Severity == diag.Warning {
				d.Severity = diag.Error // without the prefix "warning: ", which Warn implies
				o.Warn(list.Format(d))
			}
		}
	}
	return list, nil
}

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
		{"target", cmp.Or(o.Target, "ort"), "Target"},
		{"contrib", cmp.Or(o.Contrib, "none"), "Contrib"},
		{"training", training, "Training"},
		{"names", names, "LearnedNames"},
		{"fallthrough", passes.JoinList(o.Fallthrough), "Fallthrough"},
		{"mode", string(mode), "OperatorExport"},
		{"state", cmp.Or(o.State, string(specialize.StateDropped)), "State"},
		{"lift", inputs || o.NoFolding || o.Training == Train, "NoWeights, InitializersAsInputs or NoFolding"},
		{"integers", inputs, "NoWeights or InitializersAsInputs"},
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
	case cmp.Or(o.Contrib, "none") != "none" && cmp.Or(o.Target, "ort") != "ort":
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

// Inspect converts the module up to a stage: import, or the stage after the pass of that name.
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
		return nil, fmt.Errorf("no stage %q%s (there are: %s)", stage, diag.DidYouMean(stage, stages), strings.Join(stages, ", "))
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
