package verify

import (
	"fmt"
	"math"
	"slices"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Suspect locates the first wrong value on the way from the program to the ONNX graph.
type Suspect struct {
	// Pass is the first pass that changed an output. It is empty if the outputs were already wrong in the first graph that
	// the interpreter runs, the one after Since.
	Pass  string `json:"pass,omitempty"`
	Since string `json:"since,omitempty"`
	// Node is the first operator that computes a value that the graph before the pass did not have, or a new constant.
	Node   string `json:"node,omitempty"`
	Source string `json:"source,omitempty"` // the line of the user's program
	Output string `json:"output"`
	Detail string `json:"detail"`
	// Piece is a model of Node alone, with the inputs that it had. It is nil if Node is a constant, or takes or returns a sequence. If
	// Node computes an output of the model, the piece has the expected value; else it has the value that Node computed.
	Piece *Piece `json:"-"`
}

// String describes the suspect in one line.
func (s *Suspect) String() string {
	t := "output " + s.Output + " " + s.Detail
	switch {
	case s.Pass != "":
		t = "pass " + s.Pass + " changes what the graph computes: " + t
	case s.Since != "":
		t = "the first graph that the interpreter runs, behind pass " + s.Since + ", differs from the recording already: " + t
	}
	if s.Node != "" {
		t += "; first in " + s.Node
	}
	if s.Source != "" {
		t = s.Source + ": " + t
	}
	return t
}

// trace is a run of a module: the results of each op of the main block, in order.
type trace struct {
	ops     []tracedOp
	outputs []*tensor.Tensor
	module  *ssa.Module
	values  runValues
}

type tracedOp struct {
	op           *ssa.Op
	name, source string
	in           []int // the indices in ops of those that define its operands
	out          []*tensor.Tensor
	constant     bool
}

// runTraced runs the module and keeps all values except those in blocks of control flow.
func (v Verifier) runTraced(m *ssa.Module, data DataSet) (*trace, error) {
	args, err := Arguments(m, data)
	if err != nil {
		return nil, err
	}
	f := m.Main()
	t := &trace{module: m, values: runValues{}}
	for i, p := range f.Body.Params {
		t.values[p] = args[i]
	}
	at := map[*ssa.Value]int{}
	in := v.interpreter()
	in.Observe = func(o *ssa.Op, _, out []interp.Value) error {
		if o.Block() != f.Body {
			return nil
		}
		for i, r := range o.Results {
			if i < len(out) {
				t.values[r] = out[i]
			}
		}
		op := tracedOp{op: o, name: string(o.Kind), source: m.Locs.String(o.Loc), out: Leaves(out), constant: onnx.ConstOf(o.Results[0]) != nil}
		if len(o.Results) > 0 && o.Results[0].Name != "" {
			op.name += " " + o.Results[0].Name
		}
		for _, x := range o.Operands() {
			if x != nil {
				if k, ok := at[x]; ok {
					op.in = append(op.in, k)
				}
			}
		}
		for _, r := range o.Results {
			at[r] = len(t.ops)
		}
		t.ops = append(t.ops, op)
		return nil
	}
	values, err := in.RunFunc(f, args)
	if err != nil {
		return nil, err
	}
	t.outputs = Leaves(values)
	return t, nil
}

// sameNumbers reports equal numbers regardless of the element type: a pass may compute in another one.
func sameNumbers(x, y *tensor.Tensor, tol Tolerance) bool {
	if x.NumElements() != y.NumElements() || x.DType == tensor.String || y.DType == tensor.String || x.DType.IsComplex() || y.DType.IsComplex() {
		return false
	}
	v, w := x.Float64s(), y.Float64s()
	top := 0.0
	for i := range w {
		if a := math.Abs(w[i]); a < math.Inf(1) {
			top = max(top, a)
		}
	}
	for i := range w {
		if v[i] != w[i] && !(v[i] != v[i] && w[i] != w[i]) && !(math.Abs(v[i]-w[i]) <= tol.Absolute+tol.Relative*top) {
			return false
		}
	}
	return true
}

// culprit returns the first op of a trace that computes a value which no op of the earlier trace computed, and on which a
// differing output depends through such ops only. It returns -1 if there is none.
func culprit(before, after *trace, tol Tolerance) int {
	type key struct{ n int64 }
	known := map[key][]*tensor.Tensor{}
	for _, o := range before.ops {
		for _, t := range o.out {
			k := key{t.NumElements()}
			known[k] = append(known[k], t)
		}
	}
	strange := make([]bool, len(after.ops))
	for i, o := range after.ops {
		for _, t := range o.out {
			if !slices.ContainsFunc(known[key{t.NumElements()}], func(w *tensor.Tensor) bool { return sameNumbers(t, w, tol) }) {
				strange[i] = true
			}
		}
	}
	reached := make([]bool, len(after.ops))
	for i := len(after.ops) - 1; i >= 0; i-- {
		for _, t := range after.ops[i].out {
			for k, out := range after.outputs {
				if t == out && strange[i] && (k >= len(before.outputs) || !sameNumbers(out, before.outputs[k], tol)) {
					reached[i] = true
				}
			}
		}
		if reached[i] {
			for _, k := range after.ops[i].in {
				reached[k] = reached[k] || strange[k]
			}
		}
	}
	return slices.Index(reached, true)
}

// accuse reports op k of the trace after as the wrong one.
func (s *Suspect) accuse(before, after *trace, k int) {
	o := after.ops[k]
	s.Node, s.Source = o.name, o.source
	if o.constant {
		return
	}
	if s.Piece = cut(after.module, []*ssa.Op{o.op}, after.values); s.Piece == nil {
		return
	}
	for i, t := range s.Piece.Data.Outputs {
		if at := slices.Index(after.outputs, t.Tensor); at >= 0 && at < len(before.outputs) {
			s.Piece.Data.Outputs[i].Tensor = before.outputs[at]
		}
	}
}

// FirstBadPass converts a module, and runs the graph after each pass that leaves one of ONNX operators. It returns the first pass that
// changed an output, or nil. convert runs the passes and tells the observer of each.
func (v Verifier) FirstBadPass(m *ssa.Module, convert func(*ssa.Module, passes.Observer) error, data DataSet) (*Suspect, error) {
	tol := v.Tolerance
	var found *Suspect
	var last *trace
	var failed error
	watch := passes.Observer{AfterPass: func(e *passes.Event) {
		if found != nil || failed != nil || !v.runs(e.Module) {
			return
		}
		now, err := v.runTraced(e.Module, data)
		if err != nil {
			if last != nil { // an earlier graph has run
				found = &Suspect{Pass: e.Text, Output: "none", Detail: err.Error()}
			}
			return
		}
		want := make([]Named, 0, len(now.outputs))
		if last != nil {
			for i, t := range last.outputs {
				want = append(want, Named{OutputName(e.Module, i), t})
			}
		} else {
			want = data.Outputs
		}
		for i, w := range want {
			if i >= len(now.outputs) {
				failed = fmt.Errorf("pass %s leaves %d outputs of %d", e.Text, len(now.outputs), len(want))
				return
			}
			c := tol.Compare(w.Name, now.outputs[i], w.Tensor)
			if c.Wrong == "" || last != nil && sameNumbers(now.outputs[i], w.Tensor, tol) {
				continue
			}
			found = &Suspect{Output: c.Name, Detail: c.Wrong}
			if last == nil {
				found.Since = e.Text
			} else {
				found.Pass = e.Text
				if k := culprit(last, now, tol); k >= 0 {
					found.accuse(last, now, k)
				}
			}
			return
		}
		last = now
	}}
	if err := convert(m, watch); err != nil && found == nil {
		return nil, err
	}
	return found, failed
}

// FirstDifference compares a module, such as one read from an ONNX file, with another one that should compute the same. It
// returns the first operator or constant that the other one does not have, or nil if the outputs agree.
func (v Verifier) FirstDifference(reference, m *ssa.Module, data DataSet) (*Suspect, error) {
	tol := v.Tolerance
	before, err := v.runTraced(reference, data)
	if err != nil {
		return nil, fmt.Errorf("the reference: %w", err)
	}
	after, err := v.runTraced(m, data)
	if err != nil {
		return nil, err
	}
	for i, want := range before.outputs {
		if i >= len(after.outputs) {
			return nil, fmt.Errorf("%d outputs, the reference has %d", len(after.outputs), len(before.outputs))
		}
		c := tol.Compare(OutputName(m, i), after.outputs[i], want)
		if c.Wrong == "" {
			continue
		}
		s := &Suspect{Output: c.Name, Detail: c.Wrong}
		if k := culprit(before, after, tol); k >= 0 {
			s.accuse(before, after, k)
		}
		return s, nil
	}
	return nil, nil
}

// runs reports whether the interpreter can run the module.
func (v Verifier) runs(m *ssa.Module) bool {
	f := m.Main()
	if f == nil {
		return false
	}
	for o := range f.Body.AllOps() {
		if o.Kind.Namespace() != onnx.Namespace && v.Kernels[o.Kind] == nil {
			return false
		}
	}
	return true
}
