package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/eager"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

// program is what the kinds random and loops make.
type program interface {
	code() string
	archive() ([]byte, error)
	specs() []string
	data() []verify.DataSet
	// reduce drops what it can of the program while it stays as it is by a test.
	reduce(still func() bool)
}

// judge converts a program, and compares the graphs behind every pass and the file with what the eager evaluator gives. A difference is
// reduced to the statements that it needs.
func (w *worker) judge(p program, opset int) (string, error) {
	code := p.code()
	archive, err := p.archive()
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(w.dir, "program.pt"), archive, 0o666); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(w.dir, "program.specs"), []byte(strings.Join(p.specs(), "\n")+"\n"+code), 0o666); err != nil {
		return "", err
	}
	w.doing.Store("converting")
	outcome, err := w.outcome(p, opset, w.write != "" && w.kind == "loops")
	if w.only >= 0 {
		fmt.Fprintf(w.w, "%s\n%s\n%s %v\n", strings.Join(p.specs(), " "), code, outcome, err)
	}
	if says := finding(outcome, err); says != "" {
		w.doing.Store("reducing")
		p.reduce(func() bool { return kindOf(finding(w.outcome(p, opset, false))) == kindOf(says) })
		w.found(says, fmt.Sprintf("opset %d, inputs %s\n%s\nreduced to\n%s", opset, strings.Join(p.specs(), " "), code, p.code()))
	}
	return outcome, nil
}

// finding is what is wrong with an outcome; a refusal is not, unless it is an error of ours.
func finding(outcome string, err error) string {
	var failure *passes.Failure
	switch {
	case errors.As(err, &failure):
		return failure.Error() + "\n" + failure.Stack
	case err != nil && outcome != "refused":
		return err.Error()
	}
	return ""
}

// kindOf tells findings apart that reducing must not take for one another.
func kindOf(says string) string {
	if strings.Contains(says, "output") && strings.Contains(says, "instead of") {
		return "wrong"
	}
	return signature(says)
}

// outcome is compare, with a panic as an error.
func (w *worker) outcome(p program, opset int, write bool) (outcome string, err error) {
	defer func() {
		if r := recover(); r != nil {
			outcome, err = "panic", fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return w.compare(p, opset, write)
}

// compare converts a program. The outcome is refused, with the reason, converted, raises, where the program raises for all inputs, or assumes, where a warning excludes
// some inputs; any other error is a finding.
func (w *worker) compare(p program, opset int, write bool) (outcome string, err error) {
	archive, err := p.archive()
	if err != nil {
		return "", err
	}
	var load aton.LoadOptions
	for _, s := range p.specs() {
		in, err := spec.Parse(s)
		if err != nil {
			return "", err
		}
		load.Inputs = append(load.Inputs, in)
	}
	m, err := aton.LoadBytes(archive, "program.pt", load)
	if err != nil {
		return "refused", err
	}
	sets, err := w.ask(m, p.data())
	if err != nil {
		return "not run", err
	}
	if len(sets) == 0 {
		return "raises", nil
	}
	if write {
		if err := w.keepFor(archive, sets); err != nil {
			return "not run", err
		}
	}
	var wrong error
	assumes := false // a warning says for which inputs the model is right
	opts := aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Opset: opset}}
	opts.Warn = func(message string) {
		assumes = assumes || strings.Contains(message, "the model is right for 1 and more")
	}
	opts.Runner = &passes.Runner{VerifyEach: true, Observers: []passes.Observer{{AfterPass: func(e *passes.Event) {
		if wrong != nil || !e.Changed() || e.Module.UsesNamespace("aten") || e.Module.UsesNamespace("prim") {
			return
		}
		if err := agrees(e.Module, sets); err != nil {
			wrong = fmt.Errorf("behind %s: %w", e.Pass.Name, err)
		}
	}}}}
	var file bytes.Buffer
	err = aton.ExportTo(&file, m, opts)
	if refusal := (*diag.List)(nil); errors.As(err, &refusal) {
		return "refused", err // what a pass could not convert runs nowhere
	}
	if assumes {
		return "assumes", nil
	}
	if wrong != nil {
		return "converted", wrong
	}
	if err != nil {
		return "refused", err
	}
	again, err := aton.LoadBytes(file.Bytes(), "program.onnx", aton.LoadOptions{})
	if err != nil {
		return "converted", fmt.Errorf("the file that is written: %w", err)
	}
	again.Guarded = true
	if err := agrees(again, sets); err != nil {
		return "converted", fmt.Errorf("the file that is written: %w", err)
	}
	return "converted", nil
}

// ask runs a program in the eager evaluator on sets of inputs, and gives them with the outputs where it raises no exception.
func (w *worker) ask(m *ssa.Module, sets []verify.DataSet) (ran []verify.DataSet, err error) {
	for _, set := range sets {
		inputs := make([]eager.Named, len(set.Inputs))
		for i, in := range set.Inputs {
			inputs[i] = eager.Named(in)
		}
		outputs, err := w.eager.Run(m, inputs)
		var raised *eager.Raised
		switch {
		case err == nil:
			for _, o := range outputs {
				set.Outputs = append(set.Outputs, verify.Named(o))
			}
			ran = append(ran, set)
		case !errors.As(err, &raised):
			return nil, fmt.Errorf("%s: the eager evaluator: %w", set.Name, err)
		}
	}
	return ran, nil
}

// keepFor writes a program, and what the evaluator gives at each size, for beside.py.
func (w *worker) keepFor(archive []byte, sets []verify.DataSet) error {
	name := filepath.Join(w.write, fmt.Sprintf("%d-%d", w.seed, w.i))
	if err := os.MkdirAll(w.write, 0o777); err != nil {
		return err
	}
	for _, set := range sets {
		if err := verify.WriteOutputs(name+"."+strings.TrimPrefix(set.Name, "N=")+".npz", []verify.DataSet{set}); err != nil {
			return err
		}
	}
	return os.WriteFile(name+".pt", archive, 0o666)
}

// agrees runs a module on sets of inputs and compares what it gives. A model may refuse a size below its limits; where it has no check of
// sizes yet, it may give anything for it.
func agrees(m *ssa.Module, sets []verify.DataSet) error {
	limits, err := ssa.ParseLimits(m.GetMetadata(ssa.LimitsKey))
	if err != nil {
		return err
	}
	for _, set := range sets {
		beyond := slices.ContainsFunc(limits, func(l ssa.Limit) bool { return below(m, set, l) })
		if beyond && !m.Guarded {
			continue
		}
		feed := map[string]interp.Value{}
		for _, in := range set.Inputs {
			feed[in.Name] = interp.Of(in.Tensor)
		}
		got, err := interp.Run(m, feed)
		if err != nil && beyond {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", set.Name, err)
		}
		if len(got) != len(set.Outputs) {
			return fmt.Errorf("%s: %d outputs instead of %d", set.Name, len(got), len(set.Outputs))
		}
		for i, want := range set.Outputs {
			if err := same(got[i].Tensor, want.Tensor); err != nil {
				return fmt.Errorf("%s: output %d: %w", set.Name, i, err)
			}
		}
	}
	return nil
}

// below reports that an input has a size that is less than a limit of the module.
func below(m *ssa.Module, set verify.DataSet, l ssa.Limit) bool {
	for _, p := range m.Main().Body.Params {
		for _, in := range set.Inputs {
			t := p.Tensor()
			if in.Name != ssa.BareName(p.Name) || t == nil || !t.Ranked || len(t.Dims) != len(in.Tensor.Shape) {
				continue
			}
			for i, d := range t.Dims {
				if name, ok := d.Name(); ok && name == l.Symbol && in.Tensor.Shape[i] < l.Min {
					return true
				}
			}
		}
	}
	return false
}

// same compares tensors, number by number.
func same(got, want *tensor.Tensor) error {
	if got == nil || got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
		return fmt.Errorf("%v instead of %v", got, want)
	}
	g := got.Float64s()
	for i, x := range want.Float64s() {
		if g[i] != x && !(math.IsNaN(x) && math.IsNaN(g[i])) {
			return fmt.Errorf("element %d is %g instead of %g", i, g[i], x)
		}
	}
	return nil
}

// archiveOf is what torch.jit.save writes of a module without state that has the method forward.
func archiveOf(code string) ([]byte, error) {
	return zipped("data.pkl", "\x80\x02c__torch__\nProgram\n)\x81}(X\x08\x00\x00\x00training\x89ub.",
		"code/__torch__.py", "class Program(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"+code)
}

// zipped is an archive with records, by name and content.
func zipped(records ...string) ([]byte, error) {
	records = append(records, "constants.pkl", "\x80\x02).", "version", "3\n")
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i := 0; i < len(records); i += 2 {
		f, err := z.CreateHeader(&zip.FileHeader{Name: "program/" + records[i], Method: zip.Store})
		if err != nil {
			return nil, err
		}
		if _, err := f.Write([]byte(records[i+1])); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return out.Bytes(), err
}
