// Package frontend reads models in any of the formats that aton knows, and
// recognises which one it is by content.
package frontend

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/frontend/archive"
	"github.com/aton-project/aton/frontend/export"
	"github.com/aton-project/aton/frontend/jit"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/frontend/weights"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor/mapfile"
)

// Format is a kind of file.
type Format int

// Formats. Those after ONNX are recognised so that the message can say what to do.
const (
	Unknown     Format = iota
	Text               // a printed graph
	TorchScript        // torch.jit.save
	Exported           // torch.export.save
	ONNX
	Weights    // torch.save or safetensors: no program
	Flatbuffer // a model for mobile
	Preview    // a release before 1.0
)

// Options say what to read.
type Options struct {
	// Inputs is what the user states of the inputs.
	Inputs []spec.Input
	// InputNames are what the inputs are called in the file, in order, and Names has new names by the program's. Inputs may
	// use both.
	InputNames []string
	Names      map[string]string
	// Method is the method of a TorchScript module; empty means forward.
	Method string
	// Program names the program of a torch.export archive that holds several; empty means "model" or the only one.
	Program string
	// Weights is a file of named tensors to go with graph text; WeightsKey is the path of the state dict in it.
	Weights, WeightsKey string
	// Training, if not nil, is the mode that the modules of TorchScript are taken to be in, whatever the archive says.
	Training *bool
	// Repair reads an ONNX file that runtimes load although the standard refuses it (onnxfile.ReadOptions).
	Repair bool
	// NoWeights leaves the elements of weights unread.
	NoWeights bool
	// Dialects says what the operators of graph text mean; nil means PyTorch's.
	Dialects []ssa.Dialect
	// Table has the operators of a user's library that are declared; nil for none.
	Table *aten.Table
	// Warn receives remarks on the file; nil drops them.
	Warn func(message string)
	// Note receives what is taken from the file because the user did not state it; nil drops it.
	Note func(message string)
}

// Recognize tells the format of a file from its content.
func Recognize(data []byte) Format {
	switch {
	case archive.IsZip(data):
		a, err := archive.Read(data, "", nil)
		switch {
		case err != nil:
			return TorchScript // its reader says what is wrong
		case export.IsArchive(a):
			return Exported
		case a.Has("data.pkl") && !jit.IsArchive(a):
			return Weights
		}
		return TorchScript
	case len(data) > 8 && string(data[4:8]) == "PTMF":
		return Flatbuffer
	case bytes.HasPrefix(data, []byte("PYTORCH1")):
		return Preview
	case bytes.HasPrefix(data, []byte("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20")), len(data) > 9 && data[8] == '{' && data[7] == 0:
		return Weights
	}
	for text := string(data[:min(len(data), 1<<16)]); ; {
		text = strings.TrimLeft(text, " \t\r\n")
		if strings.HasPrefix(text, "#") { // a comment
			_, rest, ok := strings.Cut(text, "\n")
			if !ok {
				return Text
			}
			text = rest
			continue
		}
		for _, p := range []string{"graph", "inlined_graph", "module {", "%"} {
			if strings.HasPrefix(text, p) {
				return Text
			}
		}
		break
	}
	// a ModelProto begins with its IR version, or with any other of its fields
	if len(data) >= 2 && data[0] == 0x08 && data[1] < 0x40 || len(data) > 0 && bytes.IndexByte([]byte{0x12, 0x1a, 0x22, 0x32, 0x3a, 0x42}, data[0]) >= 0 {
		return ONNX
	}
	return Unknown
}

// Load reads a file. Weights stay in it: the module keeps its mapping.
func Load(path string, o Options) (*ssa.Module, error) {
	if err := folder(path); err != nil {
		return nil, err
	}
	mapping, err := mapfile.Open(path)
	if err != nil {
		return nil, err
	}
	if Recognize(mapping.Data) == ONNX { // it may have weights in files beside it
		defer func() { _ = mapping.Close() }() // was only looked at
		m, err := onnxfile.ReadOptions{Repair: o.Repair}.Read(path)
		if err != nil {
			if isSavedModel(path, mapping.Data) {
				err = fmt.Errorf("%s: this is a SavedModel of TensorFlow; %s", path, otherFramework)
			}
			return nil, err
		}
		o.tellDropped(m, path)
		note(m)
		return m, o.apply(m, path)
	}
	m, err := Read(mapping.Data, path, o)
	if err != nil {
		_ = mapping.Close() // the error at hand says more
		return nil, err
	}
	m.Keep = append(m.Keep, mapping)
	return m, nil
}

// Read reads a model in memory, which must not change while the module is in
// use. The name is for messages.
func Read(data []byte, name string, o Options) (m *ssa.Module, err error) {
	f := Recognize(data)
	if what, advice := foreign(data); what != "" && f != Weights {
		return nil, fmt.Errorf("%s: %s; %s", name, what, advice)
	}
	if o.Weights != "" && f != Text {
		return nil, fmt.Errorf("%s: only graph text takes weights from another file; this one has its own", name)
	}
	if o.Method != "" && f != TorchScript && f != Unknown {
		return nil, fmt.Errorf("%s: only TorchScript has methods to choose from; leave out --method", name)
	}
	if o.Program != "" && f != Exported && f != Unknown {
		return nil, fmt.Errorf("%s: only an archive of torch.export has several programs; leave out --program", name)
	}
	switch f {
	case TorchScript:
		m, err = jit.Read(data, name, jit.Options{Method: o.Method, Training: o.Training, Table: o.Table, Warn: o.Warn})
	case Exported: // it says itself what its inputs are; what the user states must fit
		m, err = export.Read(data, name, export.Options{Inputs: o.Inputs, InputNames: o.InputNames, Names: o.Names, Table: o.Table, Model: o.Program, NoWeights: o.NoWeights, Warn: o.Warn})
	case ONNX:
		var list *diag.List
		switch m, err = (onnxfile.ReadOptions{Repair: o.Repair}).Parse(data); {
		case err == nil:
			o.tellDropped(m, name)
		case !errors.As(err, &list):
			err = fmt.Errorf("%s: %w", name, err)
		}
	case Text:
		m, err = readText(string(data), name, o)
	case Weights:
		err = fmt.Errorf("%s: this file has weights and no program; %s", name, saveModule)
	case Flatbuffer:
		err = fmt.Errorf("%s: this is a model for mobile in flatbuffer form; give the archive that torch.jit.save wrote", name)
	case Preview:
		err = fmt.Errorf("%s: this is a file of a preview release of PyTorch; load and save it with PyTorch 1.2 or newer", name)
	default:
		what := "this is no archive of torch.jit or torch.export, no graph text and no ONNX model"
		if len(data) == 0 {
			what = "the file is empty"
		}
		err = fmt.Errorf("%s: %s; give a file that torch.jit.save or torch.export.save wrote", name, what)
	}
	if err != nil {
		return nil, err
	}
	note(m)
	if f == Exported {
		return m, nil
	}
	examples := m.Inputs // of a trace
	if err := o.apply(m, name); err != nil || f != TorchScript {
		return m, err
	}
	if len(o.Inputs) == 0 && o.Note != nil {
		tellTraced(examples, o.Note)
	}
	return m, recordTraced(m, examples)
}

// tellDropped warns of what the module does not keep of an ONNX file.
func (o Options) tellDropped(m *ssa.Module, name string) {
	for _, what := range m.File.Dropped {
		if o.Warn != nil {
			o.Warn(name + ": " + what)
		}
	}
}

func readText(text, name string, o Options) (*ssa.Module, error) {
	dialects := o.Dialects
	if dialects == nil {
		dialects = append(aten.Dialects(), prim.Dialect{})
	}
	m, err := ssa.Parse(text, name, dialects...)
	if err != nil {
		return nil, err
	}
	if m.Main() == nil {
		return nil, fmt.Errorf("%s: there is no graph in it", name)
	}
	if err := aten.CheckOperands(m); err != nil {
		return nil, err
	}
	if o.Weights != "" {
		s, err := weights.Load(o.Weights, o.WeightsKey)
		if err != nil {
			return nil, err
		}
		unused, err := weights.Attach(m, s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if len(unused) > 0 && o.Warn != nil {
			o.Warn(fmt.Sprintf("%s: %d of the %d tensors of %s are not used, %s the first", name, len(unused), len(s.Names), o.Weights, unused[0]))
		}
	}
	o.Table.BindSchemas(m)
	if len(m.Opsets) == 0 { // a text without a head may be of any opset
		onnx.RaiseFitting(m.Main())
	}
	return m, ssa.Verify(m)
}
