package explore

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/verify"
)

// shown is how many elements of a value are shown.
const shown = 8

// Numbers runs the converted model on a data set in the reference interpreter, and compares with the outputs of the set, if it has
// any. Where one is wrong it looks for the pass and the operator that make it so.
func (s *Session) Numbers(data verify.DataSet) (*Numbers, error) {
	m, err := s.converted()
	if err != nil {
		return nil, err
	}
	text := names(m)
	called := func(v *ssa.Value) string {
		if n := text[v.ID]; n != "" {
			return n
		}
		return v.Name
	}
	out := &Numbers{Data: data.Name, Values: map[string]Run{}, Outputs: []Compared{}}
	note := func(v *ssa.Value, x interp.Value) {
		run := Run{Type: x.String(), Times: out.Values[called(v)].Times + 1}
		if x.Tensor != nil {
			run.Stats = statistics(x.Tensor, shown)
			run.Type = short(ssa.TensorOf(x.Tensor))
		}
		out.Values[called(v)] = run
	}
	judge := verify.Verifier{Tolerance: verify.DefaultTolerance, Kernels: verify.FunctionKernels(s.opts.Functions)}
	judge.Observe = func(o *ssa.Op, in, given []interp.Value) error {
		if err := s.stopped(); err != nil {
			return err
		}
		clean := true
		for i, v := range o.Operands() {
			if v == nil || i >= len(in) {
				continue
			}
			if _, ok := out.Values[called(v)]; !ok {
				note(v, in[i]) // an input or a constant
			}
			if st := out.Values[called(v)].Stats; st != nil && st.NaN > 0 {
				clean = false
			}
		}
		for i, v := range o.Results {
			if i >= len(given) {
				break
			}
			note(v, given[i])
			if st := out.Values[called(v)].Stats; st != nil && st.NaN > 0 && clean && out.NaN == "" {
				out.NaN = called(v)
			}
		}
		return nil
	}
	if len(data.Outputs) == 0 {
		_, err := judge.Run(m, data)
		return out, err
	}
	compared, err := judge.Verify(m, data)
	if err != nil {
		return nil, err
	}
	wrong := false
	for _, c := range compared {
		worst := c.Worst
		if worst-worst != 0 { // JSON has no infinities
			worst = -1
		}
		out.Outputs = append(out.Outputs, Compared{Name: c.Name, Type: c.Type, Worst: worst, Wrong: c.Wrong})
		wrong = wrong || c.Wrong != ""
	}
	if wrong {
		s.accuse(judge, data, out, called)
	}
	return out, nil
}

// accuse says what is the first to be wrong, as far as that can be found: a pass's operator, or else the output itself.
func (s *Session) accuse(judge verify.Verifier, data verify.DataSet, out *Numbers, called func(v *ssa.Value) string) {
	for i, c := range out.Outputs {
		if c.Wrong != "" {
			out.Wrong, out.Suspect = called(s.module.Main().Body.Return(min(i, s.module.Main().Body.NumReturns()-1))), fmt.Sprintf("output %s %s", c.Name, c.Wrong)
			break
		}
	}
	judge.Observe = func(*ssa.Op, []interp.Value, []interp.Value) error { return s.stopped() }
	fresh, err := s.load()
	if err != nil || !fresh.UsesNamespace("aten") && !fresh.UsesNamespace("prim") {
		return
	}
	opts := s.opts.ConvertOptions
	opts.Runner = &passes.Runner{Stop: s.stopped}
	convert := func(m *ssa.Module, watch passes.Observer) error {
		_, err := aton.Convert(m, opts.WithObserver(watch))
		return err
	}
	suspect, err := judge.FirstBadPass(fresh, convert, data)
	if err != nil || suspect == nil {
		return
	}
	out.Suspect = suspect.String()
	if _, name, ok := strings.Cut(suspect.Node, " "); ok {
		if _, there := out.Values[name]; there {
			out.Wrong = name
		}
	}
}
