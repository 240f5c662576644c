package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
)

// random makes a well-typed program, and compares what every graph behind every pass gives with what the evaluator gives: the
// graphs of the pipeline, and the file that is written and read again.
func (w *worker) random(rng *rand.Rand) (string, error) {
	w.doing.Store("generating")
	g := newGenerator(rng)
	g.program(4 + rng.IntN(14))
	code := g.code()
	archive, err := archiveOf(code)
	if err != nil {
		return "", err
	}
	var specs []string
	for _, in := range g.inputs {
		specs = append(specs, in.spec)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "program.pt"), archive, 0o666); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(w.dir, "program.specs"), []byte(strings.Join(specs, "\n")+"\n"+code), 0o666); err != nil {
		return "", err
	}
	opset := []int{0, 0, 0, 9, 11, 13, 17, 18, 21, 23, 26}[rng.IntN(11)]
	w.doing.Store("converting")
	outcome, err := w.outcome(archive, specs, opset, g)
	if w.only >= 0 {
		fmt.Fprintf(w.w, "%s\n%s\n%s %v\n", strings.Join(specs, " "), code, outcome, err)
	}
	if says := finding(outcome, err); says != "" {
		w.doing.Store("reducing")
		g.reduce(func() bool {
			archive, err := archiveOf(g.code())
			if err != nil {
				return false
			}
			return kindOf(finding(w.outcome(archive, specs, opset, g))) == kindOf(says)
		})
		w.found(says, fmt.Sprintf("opset %d, inputs %s\n%s\nreduced to\n%s", opset, strings.Join(specs, " "), code, g.code()))
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
func (w *worker) outcome(archive []byte, specs []string, opset int, g *generator) (outcome string, err error) {
	defer func() {
		if r := recover(); r != nil {
			outcome, err = "panic", fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return w.compare(archive, specs, opset, g)
}

// compare converts a program. The outcome is refused, with the reason, converted, or assumes, where a warning excludes some inputs; any
// other error is a finding.
func (w *worker) compare(archive []byte, specs []string, opset int, g *generator) (outcome string, err error) {
	opts := aton.Options{Opset: opset}
	for _, s := range specs {
		in, err := spec.Parse(s)
		if err != nil {
			return "", err
		}
		opts.Inputs = append(opts.Inputs, in)
	}
	m, err := aton.LoadBytes(archive, "program.pt", opts)
	if err != nil {
		return "refused", err
	}
	var wrong error
	assumes := false // a warning says for which inputs the model is right
	opts.Warn = func(message string) {
		assumes = assumes || strings.Contains(message, "the model is right for 1 and more")
	}
	opts.Runner = &passes.Runner{VerifyEach: true, Observers: []passes.Observer{{AfterPass: func(e *passes.Event) {
		if wrong != nil || e.Module.UsesNamespace("aten") || e.Module.UsesNamespace("prim") {
			return
		}
		if err := g.agrees(e.Module, e.Pass.Name != "guard"); err != nil {
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
	again, err := aton.LoadBytes(file.Bytes(), "program.onnx", aton.Options{})
	if err != nil {
		return "converted", fmt.Errorf("the file that is written: %w", err)
	}
	if err := g.agrees(again, false); err != nil {
		return "converted", fmt.Errorf("the file that is written: %w", err)
	}
	return "converted", nil
}

// agrees runs a module on all inputs and compares what it gives. One that is unguarded has no checks of sizes yet.
func (g *generator) agrees(m *ssa.Module, unguarded bool) error {
	for k, e := range g.envs {
		feed := map[string]interp.Value{}
		for _, in := range g.inputs {
			feed[in.name] = interp.Of(in.values[k].tensor())
		}
		got, err := interp.Run(m, feed)
		bounded := m.GetMetadata(ssa.LimitsKey) != "" && k == sets-1
		if err != nil && bounded {
			continue // the model refuses a size that it is not right for
		}
		if err != nil {
			return fmt.Errorf("inputs %d: %w", k, err)
		}
		if len(got) != len(g.outputs) {
			return fmt.Errorf("inputs %d: %d outputs instead of %d", k, len(got), len(g.outputs))
		}
		for i, name := range g.outputs {
			want := e.vars[name].(*array)
			if err := same(got[i].Tensor, want); err != nil && !(bounded && unguarded) {
				return fmt.Errorf("inputs %d: output %d (%s): %w", k, i, name, err)
			}
		}
	}
	return nil
}

func (a *array) tensor() *tensor.Tensor {
	shape := make([]int64, len(a.shape))
	for i, d := range a.shape {
		shape[i] = int64(d)
	}
	return tensor.FromFloats(map[dtype]tensor.DType{f32: tensor.Float32, i64: tensor.Int64, bol: tensor.Bool}[a.kind], shape, a.values())
}

func same(got *tensor.Tensor, want *array) error {
	w := want.tensor()
	if got == nil || got.DType != w.DType || !slices.Equal(got.Shape, w.Shape) {
		return fmt.Errorf("%v instead of %v", got, w)
	}
	g := got.Float64s()
	for i, x := range w.Float64s() {
		if g[i] != x {
			return fmt.Errorf("element %d is %g instead of %g", i, g[i], x)
		}
	}
	return nil
}

// archiveOf is what torch.jit.save writes of a module without state that has the method forward.
func archiveOf(code string) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, r := range [][2]string{
		{"data.pkl", "\x80\x02c__torch__\nProgram\n)\x81}(X\x08\x00\x00\x00training\x89ub."},
		{"code/__torch__.py", "class Program(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n" + code},
		{"constants.pkl", "\x80\x02)."},
		{"version", "3\n"},
	} {
		f, err := z.CreateHeader(&zip.FileHeader{Name: "program/" + r[0], Method: zip.Store})
		if err != nil {
			return nil, err
		}
		if _, err := f.Write([]byte(r[1])); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return out.Bytes(), err
}
