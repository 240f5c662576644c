package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/backend/surgery"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/verify"
)

// A file that is cut in two gives, one part after the other and joined again, the bits that it gives as a whole.
func TestSurgery(t *testing.T) {
	n, ran := 0, 0
	for _, name := range []string{"cases", "operators", "random"} {
		for _, dir := range unpack(t, "testdata/"+name+".tar.gz") {
			if n++; n%15 != 0 {
				continue
			}
			c, err := readCase(dir)
			if err != nil {
				continue
			}
			o := withInputs(t, converting(aton.ConvertOptions{Opset: c.Opset}), c.InputSpecs...)
			m, err := aton.Load(filepath.Join(dir, "model.pt"), o.load)
			if err != nil {
				continue
			}
			var file bytes.Buffer
			if aton.ExportTo(&file, m, o.export) != nil {
				continue
			}
			ok, err := cutAndJoined(file.Bytes())
			if err != nil {
				t.Errorf("%s: %v", dir, err)
			} else if ok {
				ran++
			}
		}
	}
	if ran < 20 {
		t.Errorf("%d models were cut", ran)
	}
}

type surgeryCase struct {
	InputSpecs []string `json:"input_specs"`
	Opset      int
}

func readCase(dir string) (c surgeryCase, err error) {
	b, err := os.ReadFile(filepath.Join(dir, "case.json"))
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	return c, err
}

// asFile is a module as it is read from the file that is written of it.
func asFile(m *ssa.Module) (*ssa.Module, error) {
	var b bytes.Buffer
	if err := onnxfile.WriteTo(&b, m, onnxfile.Options{}); err != nil {
		return nil, err
	}
	return aton.LoadBytes(b.Bytes(), "part.onnx", aton.LoadOptions{})
}

// cutAndJoined cuts a model behind the middle one of its operators. It reports false for a model that has no middle.
func cutAndJoined(file []byte) (bool, error) {
	whole, err := aton.LoadBytes(file, "whole.onnx", aton.LoadOptions{})
	if err != nil {
		return false, err
	}
	f := whole.Main()
	var ops []*ssa.Op
	for o := range f.Body.Ops() {
		if o.NumOperands() > 0 {
			ops = append(ops, o)
		}
	}
	if len(ops) < 2 {
		return false, nil
	}
	last := ops[len(ops)/2-1]
	// what is computed up to there, and read or returned behind it
	late := func(o *ssa.Op) bool {
		for o.Block() != f.Body {
			o = o.Block().Owner()
		}
		return f.Body.Comes(last, o) && o != last
	}
	var border, inputs []string
	for o := f.Body.First(); ; o = o.Next() {
		for _, v := range o.Results {
			crosses := slices.Contains(f.Body.Returns(), v)
			for u := range v.Uses() {
				crosses = crosses || u.Op() != nil && late(u.Op())
			}
			if _, tensor := v.Type.(*ssa.TensorType); crosses && !tensor {
				return false, nil
			} else if crosses && o.NumOperands() > 0 && v.Name != "" {
				border = append(border, v.Name)
			}
		}
		if o == last {
			break
		}
	}
	var outputs []string
	for _, name := range f.OutputNames {
		if !slices.Contains(border, name) {
			outputs = append(outputs, name)
		}
	}
	if len(border) == 0 || len(outputs) == 0 {
		return false, nil
	}
	for _, p := range f.Body.Params {
		for u := range p.Uses() {
			if u.Op() != nil && late(u.Op()) {
				inputs = append(inputs, p.Name)
				break
			}
		}
	}
	first, second := whole.Clone(), whole.Clone()
	if err := surgery.Cut(first, nil, border); err != nil {
		if strings.Contains(err.Error(), "is not known") {
			return false, nil
		}
		return false, fmt.Errorf("the first part: %w", err)
	}
	needed := append(slices.Clone(border), inputs...) // what the second part reads
	if err := surgery.Cut(second, needed, outputs); err != nil {
		return false, fmt.Errorf("the second part: %w", err)
	}
	if first, err = asFile(first); err != nil {
		return false, fmt.Errorf("the first part: %w", err)
	}
	if second, err = asFile(second); err != nil {
		return false, fmt.Errorf("the second part: %w", err)
	}
	data, err := verify.RandomData(whole, verify.RandomOptions{Seed: 1})
	if err != nil {
		return false, nil
	}
	want, err := partOutputs(whole, data.Inputs, nil)
	if err != nil {
		return false, nil // random inputs may not do
	}
	between, err := partOutputs(first, data.Inputs, nil)
	if err != nil {
		return false, fmt.Errorf("the first part: %w", err)
	}
	got, err := partOutputs(second, data.Inputs, between)
	if err != nil {
		return false, fmt.Errorf("the second part: %w", err)
	}
	maps.Copy(got, between)
	for _, name := range f.OutputNames {
		if got[name] == nil || !bytes.Equal(got[name].Tensor.Bytes(), want[name].Tensor.Bytes()) {
			return false, fmt.Errorf("cut in two, output %s differs", name)
		}
	}
	// inputs that both parts read are one input of the whole: the joined model has them twice
	again := map[string]string{}
	for _, p := range second.Main().Body.Params {
		if slices.ContainsFunc(first.Main().Body.Params, func(q *ssa.Value) bool { return q.Name == p.Name }) {
			again[p.Name] = p.Name + ".again"
		}
	}
	if err := surgery.Rename(second, again); err != nil {
		return false, err
	}
	if err := surgery.Join(first, second, nil); err != nil {
		return false, fmt.Errorf("joined: %w", err)
	}
	if first, err = asFile(first); err != nil {
		return false, fmt.Errorf("joined: %w", err)
	}
	for old, name := range again {
		for _, in := range data.Inputs {
			if in.Name == old {
				data.Inputs = append(data.Inputs, verify.Named{Name: name, Tensor: in.Tensor})
			}
		}
	}
	joined, err := partOutputs(first, data.Inputs, nil)
	if err != nil {
		return false, fmt.Errorf("joined: %w", err)
	}
	for _, name := range outputs {
		if joined[name] == nil || !bytes.Equal(joined[name].Tensor.Bytes(), want[name].Tensor.Bytes()) {
			return false, fmt.Errorf("joined, output %s differs", name)
		}
	}
	return true, nil
}

// partOutputs runs a model, with inputs by name from both lists, and gives its outputs by name.
func partOutputs(m *ssa.Module, inputs []verify.Named, more map[string]*verify.Named) (map[string]*verify.Named, error) {
	var data verify.DataSet
	for _, p := range m.Main().Body.Params {
		if n := more[p.Name]; n != nil {
			data.Inputs = append(data.Inputs, *n)
			continue
		}
		for _, in := range inputs {
			if in.Name == p.Name {
				data.Inputs = append(data.Inputs, in)
			}
		}
	}
	out, err := verify.Run(m, data)
	if err != nil {
		return nil, err
	}
	named := map[string]*verify.Named{}
	for i := range out {
		named[out[i].Name] = &out[i]
	}
	return named, nil
}
