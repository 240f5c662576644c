package aton

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/internal/conversion"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/lower"
	"github.com/aton-project/aton/passes/specialize"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// LoadOptions say what a file does not say about the program in it. The zero value suits most files. Concurrent calls may share them if
// Warn and Note are safe for concurrent use.
//
// Training, Table, InputNames and Names are fields of ConvertOptions too, and have the same values there: see [ConvertOptions.LoadOptions].
type LoadOptions struct {
	// Inputs gives what an archive does not state: types, sizes and dynamic axes of the inputs.
	Inputs []spec.Input
	// InputNames and Names have the names that ConvertOptions gives to the inputs. Inputs may use these names too; names of the program take precedence.
	InputNames []string
	Names      map[string]string
	// Method is the method of a TorchScript module to convert. The default is forward.
	Method string
	// Program names the program to convert in a torch.export archive that holds several.
	Program string
	// Weights is a file of named tensors (torch.save, safetensors) for graph text. WeightsKey is the path of
	// the state dict in it; the default is the first one.
	Weights, WeightsKey string
	// NoWeights accepts a torch.export archive without the values of weights, to convert with [ConvertOptions].Weights set to NoWeights.
	NoWeights bool
	// FreezeDefaults turns inputs of an ONNX file that have a default value (an initializer of the same name) into constants.
	// Otherwise they stay inputs with defaults, and no pass computes with the values.
	FreezeDefaults bool
	// Repair reads an ONNX file that runtimes load although the standard refuses it, and warns of each change (onnxfile.ReadOptions).
	Repair bool
	// Training is the mode of the modules of a TorchScript archive. The default is Preserve.
	Training TrainingMode
	// Table has the declarations of operators that PyTorch does not have; nil means the built-in ones.
	Table *aten.Table
	// Budget multiplies the limits of a conversion and of a run in the interpreter: steps of evaluation, bytes,
	// operators and elements. 0 means 1, which suffices for all but huge models. See ssa.Module.Allow.
	Budget int
	// Warn, if not nil, receives warnings about the file.
	Warn func(message string)
	// Note, if not nil, receives what is taken from the file because Inputs does not state it, and how to state it.
	Note func(message string)
}

// ConvertOptions configure a conversion. The zero value suits most programs. Concurrent conversions may share them if Warn, Diagnosed and
// the observers of Runner are safe for concurrent use.
type ConvertOptions struct {
	// Opset is the target opset, from OldestOpset to onnx.Newest. If it is 0, an ONNX file or a converted module keeps its opset,
	// and a program of PyTorch is converted to DefaultOpset.
	Opset int
	// CustomOpsets has the versions of domains other than ONNX's. A domain that is not in it has version 1.
	CustomOpsets map[string]int
	// Fallthrough lists namespaces whose operators become nodes of custom domains if they cannot be converted: aten
	// becomes the domain org.pytorch.aten. "*" stands for all namespaces.
	Fallthrough []string
	// OperatorExport says what happens to operators that cannot be converted. The default is ONNX.
	OperatorExport OperatorExportType
	// Training is the mode that the module is converted in. The default is Preserve.
	Training TrainingMode
	// NoFolding keeps each weight as it is in the state dict. What the program or a pass computes from weights alone is
	// computed by operators of the file, and not at export. Train implies it.
	NoFolding bool
	// State says what happens to buffers and attributes that the program changes. The default is DropState.
	State State
	// Unroll is the number of iterations up to which a loop with a known number of iterations is unrolled. A loop whose
	// containers or dtypes change from one iteration to the next is always unrolled.
	Unroll int
	// Target is the runtime whose kernels determine the element types. The default is ORT.
	Target Target
	// Contrib allows operators of the domain com.microsoft: the file has fewer nodes, and only onnxruntime can run it.
	// The default is NoContrib. It requires the target ORT.
	Contrib Contrib
	// OnlyOps lists the operators that the file may have, such as those of a runtime: Conv, com.microsoft::Gelu. Others are replaced by operators among
	// them where that is known, and reported where not. An empty list stands for all. Package dialects/onnx/profiles has those of some runtimes.
	OnlyOps []string
	// Floats is the element type in which the file computes what the model computes in float32. The default is Float32. Operators that the standard has in
	// float32 alone stay in it, and those of Float32Ops and floattype.Kept.
	Floats Floats
	// Float32Ops lists types of operators that stay in float32, such as Softmax, where Floats is another type.
	Float32Ops []string
	// Float32IO leaves inputs and outputs in float32 where Floats is another type.
	Float32IO bool
	// InputNames has the names of the inputs in order, followed by those of the weights in the order of the state dict, unused
	// ones included, as input_names of torch.onnx.export does. The list may be shorter; "" keeps a name.
	InputNames []string
	// OutputNames has the names of the outputs in order. The list may be shorter; "" keeps a name.
	OutputNames []string
	// Names maps the names that inputs, weights and outputs would have to new ones. A name that is taken is an error,
	// here and in InputNames and OutputNames.
	Names map[string]string
	// LearnedNames names the weights learned_0, learned_1, ... instead of using the names of the state dict.
	LearnedNames bool
	// Weights says how the file stores the weights. The default is Initializers.
	Weights WeightStorage
	// DropUnused removes the inputs that no output depends on, as torch.onnx.export(dynamo=False) does, and notes their positions in
	// Module.DroppedInputs. InputNames counts the removed inputs too.
	DropUnused bool
	// Table has the known operators; nil means the built-in ones. Register lowerings of your own in a table of aten.NewTable.
	Table *aten.Table
	// Allow has the identifiers of warnings and notes that are dropped.
	Allow []string
	// Deny has the identifiers of warnings that are errors; "warnings" stands for all.
	Deny []string
	// Diagnosed, if not nil, receives all diagnostics of a conversion, warnings and notes included.
	Diagnosed func(list *diag.List)
	// Warn, if not nil, receives the warnings of a conversion, unless Diagnosed receives them.
	Warn func(message string)
	// Pipeline is the pipeline to run, such as "upgrade,optimize{opset=$opset},legalize{opset=$opset}"; the default is "export". $opset, $target,
	// $training, $names, $fallthrough, $unroll, $state and $mode stand for the values of the options, as the
	// pipeline export takes them. All of its passes must have the opset that the module is converted to.
	Pipeline string
	// Before and After add steps before and after the steps of the pipeline export, by the name that a step begins with: After["lower"] = "mine" runs the
	// pass mine once the program consists of ONNX operators in their newest form. They are for the default pipeline: Pipeline spells its own steps.
	Before, After map[string]string
	// Passes has additional passes that Pipeline, Before and After may name.
	Passes []*passes.Pass
	// Runner, if not nil, observes the passes.
	Runner *passes.Runner
}

// LoadOptions returns options of Load with the values of the fields that both have.
func (o ConvertOptions) LoadOptions() LoadOptions {
	return LoadOptions{InputNames: o.InputNames, Names: o.Names, NoWeights: o.Weights == NoWeights, Training: o.Training, Table: o.Table, Warn: o.Warn}
}

// WriteOptions configure how a converted module is written. The zero value suits most callers.
type WriteOptions = onnxfile.Options

// ExportOptions configure Export, which converts and writes. Their fields are those of ConvertOptions and WriteOptions:
//
//	var o aton.ExportOptions
//	o.Opset, o.DocStrings = 17, true
type ExportOptions struct {
	ConvertOptions
	WriteOptions
}

// State says what happens to buffers and attributes that a program changes.
type State = specialize.State

// What can happen to state.
const (
	DropState   = specialize.StateDropped // the changes are lost, with a warning
	OutputState = specialize.StateOutput  // they are additional outputs with the names of the state
	RefuseState = specialize.StateRefused // they are errors
)

// WeightStorage says how a file stores the weights. Other values than the default also keep each weight as it is in the state dict, with
// its name there.
type WeightStorage = ssa.WeightStorage

// The choices.
const (
	Initializers         = ssa.Initializers         // as initializers
	InitializersAsInputs = ssa.InitializersAsInputs // as initializers that are inputs too, so that a runtime can replace them
	NoWeights            = ssa.NoWeights            // not at all: each weight is an input without a value
)

// Target is a runtime whose kernels determine the element types that a file uses.
type Target string

// The targets.
const (
	ORT      Target = "ort"  // onnxruntime
	Standard Target = "onnx" // the standard alone
)

// Floats is an element type in place of float32.
type Floats string

// The element types.
const (
	Float32  Floats = "f32"
	Float16  Floats = "f16"
	BFloat16 Floats = "bf16"
)

// Contrib says which operators of the domain com.microsoft a file may have. Some are faster on one kind of processor only.
type Contrib string

// The choices.
const (
	NoContrib  Contrib = "none"
	ContribCPU Contrib = "cpu"
	ContribGPU Contrib = "gpu"
)

// TrainingMode says whether dropout drops and whether batch normalization uses the statistics of the batch.
type TrainingMode string

// The modes of torch.onnx.
const (
	// Preserve converts each module in the mode that it was saved or traced in.
	Preserve TrainingMode = "PRESERVE"
	// Eval converts all modules in eval mode.
	Eval TrainingMode = "EVAL"
	// Train converts all modules in training mode and keeps weights as they are in the state dict. Dropout becomes a training-mode Dropout.
	// BatchNormalization becomes a training-mode operator from opset 14 on for the target onnx; for onnxruntime the file computes the statistics of the
	// batch, because onnxruntime's optimizer folds a training-mode BatchNormalization into the convolution before it as if it were in evaluation.
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
	case "", ONNX, Raw: // the pipeline raw lowers nothing
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

// pipeline returns the pipeline of a conversion. Where collect is true, the pass lower reports all operators that cannot be converted.
func (o ConvertOptions) pipeline(m *ssa.Module, collect bool) (*passes.Pipeline, error) {
	n := o.OpsetFor(m)
	switch {
	case n < OldestOpset || n > onnx.Newest:
		return nil, fmt.Errorf("opset %d is not between %d and %d", n, OldestOpset, onnx.Newest)
	case cmp.Or(o.Floats, Float32) == Float32 && (len(o.Float32Ops) > 0 || o.Float32IO):
		return nil, errors.New("Float32Ops and Float32IO say what stays in float32: set Floats to the type of the rest")
	case cmp.Or(o.Contrib, NoContrib) != NoContrib && cmp.Or(o.Target, ORT) != ORT:
		return nil, fmt.Errorf("operators of onnxruntime's own are for the target ort, not %s", o.Target)
	}
	settings, err := o.settings(collect)
	if err != nil {
		return nil, err
	}
	c := conversion.Conversion{Name: conversion.Export, Text: o.Pipeline, Before: o.Before, After: o.After, Passes: o.Passes, Table: o.Table, Opset: n, Settings: settings}
	if o.OperatorExport == Raw {
		c.Name = conversion.Raw
	}
	return c.Pipeline()
}

// settings returns the values of the options of the pipelines.
func (o ConvertOptions) settings(collect bool) ([]conversion.Setting, error) {
	training, _, err := o.Training.frozen()
	if err != nil {
		return nil, err
	}
	mode, err := o.OperatorExport.mode()
	if err != nil {
		return nil, err
	}
	modeFrom := "OperatorExport"
	if collect {
		mode, modeFrom = lower.Collect, ""
	}
	names := "state"
	if o.LearnedNames {
		names = "learned"
	}
	allow := o.Fallthrough
	if o.OperatorExport == ONNXFallthrough || o.OperatorExport == Raw {
		allow = []string{"*"}
	}
	domains := map[string]string{}
	for ns, v := range o.CustomOpsets {
		domains[ns] = strconv.Itoa(v)
	}
	inputs, lift := o.Weights != Initializers, "Weights"
	switch {
	case inputs && o.Weights != InitializersAsInputs && o.Weights != NoWeights:
		return nil, fmt.Errorf("no way to store weights %q", string(o.Weights))
	case !inputs && o.NoFolding:
		lift = "NoFolding"
	case !inputs:
		lift = "Training"
	}
	return []conversion.Setting{
		{Name: "target", Value: string(cmp.Or(o.Target, ORT)), From: "Target"},
		{Name: "contrib", Value: string(cmp.Or(o.Contrib, NoContrib)), From: "Contrib"},
		{Name: "training", Value: training, From: "Training"},
		{Name: "names", Value: names, From: "LearnedNames"},
		{Name: "fallthrough", Value: passes.JoinList(o.Fallthrough), From: "Fallthrough"},
		{Name: "mode", Value: string(mode), From: modeFrom},
		{Name: "state", Value: string(cmp.Or(o.State, DropState)), From: "State"},
		{Name: "lift", Value: inputs || o.NoFolding || o.Training == Train, From: lift},
		{Name: "integers", Value: inputs, From: "Weights"},
		{Name: "only", Value: passes.JoinList(o.OnlyOps), From: "OnlyOps"},
		{Name: "floats", Value: string(cmp.Or(o.Floats, Float32)), From: "Floats"},
		{Name: "float32", Value: passes.JoinList(o.Float32Ops), From: "Float32Ops"},
		{Name: "float32-io", Value: o.Float32IO, From: "Float32IO"},
		{Name: "unroll", Value: max(o.Unroll, 0), From: "Unroll"},
		{Name: "allow", Value: passes.JoinList(allow), From: "Fallthrough"},
		{Name: "domains", Value: passes.JoinPairs(domains), From: "CustomOpsets"},
		{Name: "inputs", Value: passes.JoinList(o.InputNames), From: "InputNames"},
		{Name: "outputs", Value: passes.JoinList(o.OutputNames), From: "OutputNames"},
		{Name: "renames", Value: passes.JoinPairs(o.Names), From: "Names"},
		{Name: "drop", Value: o.DropUnused, From: "DropUnused"},
	}, nil
}
