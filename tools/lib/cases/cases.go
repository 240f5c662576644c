// Package cases reads test cases that PyTorch recorded, and checks aton on them in this process: the program is exported,
// the file is read again and run in the reference interpreter, and its outputs are compared with PyTorch's.
//
// A case is a folder:
//
//	model.pt                    the archive of torch.jit.save
//	model.pt2                   the same program by torch.export.save, if there is one
//	case.json                   inputs, dynamic axes, tolerances
//	test_data_set_0/input_0.pb  an input; output_0.pb is what PyTorch gives for it
//	test_data_set_1/...         the same at other sizes, if there is one
//
// tools/judge/conformance/make_cases.py makes such folders. Those of ONNX's node tests, which tools/judge/nodetests/generate.py makes,
// have a model.onnx instead of a program. Package pack has the archives of cases in testdata.
package cases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/verify"
)

// Case is a case.json.
type Case struct {
	// Dir is the folder of the case.
	Dir string `json:"-"`
	ID  string `json:"id"`
	// Suite and Op tell where the case comes from.
	Suite string `json:"suite"`
	Op    string `json:"op"`
	DType string `json:"dtype"`
	// InputSpecs are the inputs as --input takes them, DynamicAxes the name of each dynamic axis of an input.
	InputSpecs  []string                     `json:"input_specs"`
	DynamicAxes map[string]map[string]string `json:"dynamic_axes"`
	Rtol        float64                      `json:"rtol"`
	Atol        float64                      `json:"atol"`
	AtolOfMax   float64                      `json:"atol_of_max"`
	DataSets    []DataSet                    `json:"data_sets"`
	// PT2DataSets are the indices of the data sets that model.pt2 takes; nil if it takes all.
	PT2DataSets []int `json:"pt2_data_sets"`

	// Runner watches the passes of its exports; nil for none.
	Runner *passes.Runner `json:"-"`
}

// DataSet is a folder of inputs and outputs.
type DataSet struct {
	Dir string `json:"dir"`
}

// Read reads the case.json of a folder.
func Read(dir string) (*Case, error) {
	text, err := os.ReadFile(filepath.Join(dir, "case.json"))
	if err != nil {
		return nil, err
	}
	c := &Case{Dir: dir}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return c, nil
}

// Format is a form of a program, by the name of its file in a case.
type Format string

// The formats.
const (
	Archive  Format = "model.pt"
	Exported Format = "model.pt2"
	ONNX     Format = "model.onnx"
)

// Has says whether the case has its program in the format.
func (c *Case) Has(f Format) bool {
	_, err := os.Stat(filepath.Join(c.Dir, string(f)))
	return err == nil
}

// LoadOptions returns the options that the program of the case is loaded with.
func (c *Case) LoadOptions(f Format) (o aton.LoadOptions, err error) {
	if f == Archive { // the other formats state their inputs
		o.Inputs, err = spec.ParseAll(c.InputSpecs, c.DynamicAxes)
	}
	return o, err
}

// Tolerance is that of the case.
func (c *Case) Tolerance() verify.Tolerance {
	return verify.Tolerance{Relative: c.Rtol, Absolute: c.Atol, OfMax: c.AtolOfMax}
}

// Read reads the tensors of the data set.
func (d DataSet) Read(c *Case) (verify.DataSet, error) {
	sets, err := verify.ReadData(filepath.Join(c.Dir, d.Dir))
	if err != nil {
		return verify.DataSet{}, err
	}
	return sets[0], nil
}

// Refusal is an export that aton does not do, with its reason.
type Refusal struct{ Reason error }

// Error gives the reason.
func (r *Refusal) Error() string { return "refused: " + r.Reason.Error() }

// Unwrap gives the reason.
func (r *Refusal) Unwrap() error { return r.Reason }

// Check exports the case at an opset and compares what the file computes with what PyTorch recorded. The error is a
// *Refusal if nothing was exported; any other says what is wrong.
func (c *Case) Check(f Format, opset int) error {
	opts, err := c.LoadOptions(f)
	if err != nil {
		return err
	}
	m, err := aton.Load(filepath.Join(c.Dir, string(f)), opts)
	if err != nil {
		return &Refusal{err}
	}
	var file bytes.Buffer
	if err := aton.ExportTo(&file, m, aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Opset: opset, Runner: c.Runner}}); err != nil {
		return &Refusal{err}
	}
	m, err = aton.LoadBytes(file.Bytes(), fmt.Sprintf("opset%d.onnx", opset), aton.LoadOptions{})
	if err != nil {
		return fmt.Errorf("the exported file: %w", err)
	}
	var wrong []string
	for i, d := range c.DataSets {
		if f == Exported && c.PT2DataSets != nil && !slices.Contains(c.PT2DataSets, i) {
			continue
		}
		set, err := d.Read(c)
		if err != nil {
			return err
		}
		compared, err := verify.Verifier{Tolerance: c.Tolerance()}.Verify(m, set)
		if err != nil {
			return fmt.Errorf("%s: %w", d.Dir, err)
		}
		for _, r := range compared {
			if r.Wrong != "" {
				wrong = append(wrong, fmt.Sprintf("%s, output %s: %s", d.Dir, r.Name, r.Wrong))
			}
		}
	}
	if wrong != nil {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}

// RunEager runs the program as it is read, without converting it, and compares its outputs with what PyTorch recorded. The error is a
// *Refusal if the file is not read or the program is not run; any other says what is wrong.
func (c *Case) RunEager(f Format) error {
	opts, err := c.LoadOptions(f)
	if err != nil {
		return err
	}
	m, err := aton.Load(filepath.Join(c.Dir, string(f)), opts)
	if err != nil {
		return &Refusal{err}
	}
	var wrong []string
	for i, d := range c.DataSets {
		if f == Exported && c.PT2DataSets != nil && !slices.Contains(c.PT2DataSets, i) {
			continue
		}
		set, err := d.Read(c)
		if err != nil {
			return err
		}
		got, err := verify.Run(m, set)
		if err != nil {
			return &Refusal{fmt.Errorf("%s: %w", d.Dir, err)}
		}
		if len(got) != len(set.Outputs) {
			return fmt.Errorf("%s: gives %d outputs, PyTorch %d", d.Dir, len(got), len(set.Outputs))
		}
		for i, want := range set.Outputs {
			if r := c.Tolerance().Compare(want.Name, got[i].Tensor, want.Tensor); r.Wrong != "" {
				wrong = append(wrong, fmt.Sprintf("%s, output %s: %s", d.Dir, r.Name, r.Wrong))
			}
		}
	}
	if wrong != nil {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}
