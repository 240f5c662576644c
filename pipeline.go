package aton

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/internal/conversion"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/lower"
	"github.com/aton-project/aton/ssa"
)

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
