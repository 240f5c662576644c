package specialize

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
)

// noteState records a change of state, or refuses it. An input that the program writes into is state of the caller's.
func (s *writes) noteState(name string, input bool, read func() py.Value) {
	if s.opts.State == StateRefused {
		s.fail("state", "%s is changed by the model, which an ONNX model cannot keep from run to run", name)
	}
	for _, c := range s.changed {
		if c.name == name {
			return
		}
	}
	s.changed = append(s.changed, stateChange{name, input, s.loc, s.op.Kind, read})
}

// maxStateWarnings is the number of changes of state up to which each has a warning of its own.
const maxStateWarnings = 8

// warnState tells of state that is lost.
func (s *walk) warnState() {
	warn := func(c stateChange, what, change string) {
		s.warnings = append(s.warnings, diag.Diagnostic{Severity: diag.Warning, ID: "state", Loc: c.loc, Op: string(c.op),
			Message: fmt.Sprintf("%s changed by the model; the ONNX model does not keep the %s from run to run", what, change),
			Hint:    "make outputs of it with --state outputs"})
	}
	if n := len(s.changed); n > maxStateWarnings {
		warn(s.changed[0], fmt.Sprintf("%s, %s and %d more are", s.changed[0].name, s.changed[1].name, n-2), "changes")
		return
	}
	for _, c := range s.changed {
		if c.input {
			s.warnings = append(s.warnings, diag.Diagnostic{Severity: diag.Warning, ID: "state", Loc: c.loc, Op: string(c.op),
				Message: fmt.Sprintf("the model writes into its input %s; the ONNX model leaves the caller's tensor as it is", c.name),
				Hint:    "--state outputs makes an output of what is written"})
			continue
		}
		warn(c, c.name+" is", "change")
	}
}

// treeNode is a container among the outputs. Elements are *treeNode, leaf, leftOut or nil for None.
type treeNode struct {
	kind  string   // tuple, list, dict, zip, or the name of a NamedTuple
	keys  []string // of dicts and NamedTuples
	elems []any
}

// leaf is the number of an output.
type leaf int

// leftOut is a constant that is no output.
type leftOut string

// flat reports the plain tuple of tensors that most programs return: its order says all.
func (t *treeNode) flat() bool {
	if t.kind != "tuple" {
		return false
	}
	for i, e := range t.elems {
		if l, ok := e.(leaf); !ok || int(l) != i {
			return false
		}
	}
	return true
}

// describe gives a tree as JSON: tuples and lists as {"tuple": [...]}, dicts and NamedTuples as
// {"dict": [[key, element], ...]}, outputs by their names, None as null, and constants that are
// no outputs as {"constant": text}.
func describe(t *treeNode, names []string) string {
	var plain func(x any) any
	plain = func(x any) any {
		switch x := x.(type) {
		case leaf:
			return names[x]
		case leftOut:
			return map[string]any{"constant": string(x)}
		case *treeNode:
			elems := make([]any, len(x.elems))
			for i, e := range x.elems {
				elems[i] = plain(e)
				if x.keys != nil {
					elems[i] = []any{x.keys[i], elems[i]}
				}
			}
			return map[string]any{x.kind: elems}
		}
		return nil
	}
	text, err := json.Marshal(plain(t))
	if err != nil {
		return "" // strings, lists and maps of them always have a form
	}
	return string(text)
}

// inputTree describes an argument as describe does; nested tells of containers in it.
func inputTree(name string, a ssa.Input) (tree any, nested bool) {
	switch {
	case a.Const != nil && a.Const.IsNone():
		return nil, false
	case a.Const != nil:
		return map[string]any{"constant": a.Const.String()}, false
	case a.Container == "":
		return name, false
	}
	elems := make([]any, len(a.Elems))
	for i, e := range a.Elems {
		n := e.Name
		switch {
		case a.Container == "dict":
			n = py.KeyName(a.Keys[i])
		case n == "" || a.Container == "list":
			n = fmt.Sprint(i)
		}
		elems[i], _ = inputTree(name+"."+n, e)
		if a.Container == "dict" {
			elems[i] = []any{n, elems[i]}
		}
	}
	return map[string]any{a.Container: elems}, true
}

// outputs returns the flattened results of the program.
func (s *walk) outputs(results []py.Value) {
	s.op = nil
	f := &flattening{s: s}
	top := &treeNode{kind: "tuple"}
	for i, x := range results {
		path := ""
		if len(results) > 1 {
			path = fmt.Sprint(i)
		}
		top.elems = append(top.elems, f.add(x, path))
	}
	own := len(f.vals)
	s.noteContainers()
	if s.opts.State != StateOutput {
		s.warnState()
	} else {
		for _, c := range s.changed {
			name := c.name
			if slices.ContainsFunc(s.build.out.Body.Params, func(p *ssa.Value) bool { return p.Name == name }) {
				if c.input {
					s.noteStateInput(name)
				}
				name += ".next" // the state itself is an input
			}
			f.add(c.read(), name)
		}
	}
	if len(s.opts.OutputNames) > len(f.vals) {
		s.fail("output-names", "%d output names for %d outputs", len(s.opts.OutputNames), len(f.vals))
	}
	names := make([]string, len(f.vals))
	for i := range names {
		switch {
		case i < len(s.opts.OutputNames):
			names[i] = s.opts.OutputNames[i]
		case i < len(s.src.OutputNames): // an exported program names its outputs
			names[i] = s.src.OutputNames[i]
		default:
			names[i] = cmp.Or(f.paths[i], "output")
		}
	}
	s.build.out.Body.SetReturns(f.vals...)
	s.build.out.OutputNames = names
	tree := any(top)
	if len(top.elems) == 1 {
		tree = top.elems[0]
	}
	if t, ok := tree.(*treeNode); ok && !t.flat() {
		s.m.SetMetadata(ssa.OutputTree, describe(t, names))
	}
	if own < len(names) {
		s.m.SetMetadata(ssa.StateOutputs, strings.Join(names[own:], ","))
	}
}

// noteStateInput lists an input among those that are state.
func (s *walk) noteStateInput(name string) {
	names := strings.Split(s.m.GetMetadata(ssa.StateInputs), ",")
	if !slices.Contains(names, name) {
		s.m.SetMetadata(ssa.StateInputs, strings.TrimPrefix(strings.Join(append(names, name), ","), ","))
	}
}

// flattening lists the outputs that the results of a program are made of.
type flattening struct {
	s     *walk
	vals  []*ssa.Value
	paths []string // where in the results each of vals is
}

// add lists the outputs in x, and gives what describes it: a *treeNode, leaf, leftOut, or nil for None.
func (f *flattening) add(x py.Value, path string) any {
	s := f.s
	switch x := x.(type) {
	case *py.Tuple:
		t := &treeNode{kind: "tuple"}
		for i, e := range x.Elems {
			n := fmt.Sprint(i)
			if x.Typ != nil && x.Typ.Names != nil {
				n = x.Typ.Names[i]
				t.kind, t.keys = x.Typ.Name, append(t.keys, n)
			}
			t.elems = append(t.elems, f.add(e, joinPath(path, n)))
		}
		return t
	case *py.List:
		st := x.State()
		if st.Columns != nil {
			return f.columns(st.Columns, path)
		}
		if st.Dyn == nil {
			t := &treeNode{kind: "list"}
			for i, e := range st.Elems {
				t.elems = append(t.elems, f.add(e, joinPath(path, fmt.Sprint(i))))
			}
			return t
		}
	case *py.Dict:
		st := x.State()
		s.constantKeys(st)
		t := &treeNode{kind: "dict"}
		for i, k := range st.Keys {
			t.keys = append(t.keys, py.KeyName(k))
			t.elems = append(t.elems, f.add(st.Vals[i], joinPath(path, py.KeyName(k))))
		}
		return t
	case *py.Object:
		if x.Src == nil && len(x.Attrs) == 0 {
			return nil
		}
		s.fail("output", "an object of class %s cannot be an output", x.Class)
	case *py.Maybe:
		s.fail("output", "output %q is None or not depending on data: ONNX outputs must always be there", cmp.Or(path, "0"))
	case py.Unknown:
		s.fail("output", "output %q is a string that depends on data: ONNX has no operators that make one; return what it is made of", cmp.Or(path, "0"))
	case py.Const:
		switch x.Kind {
		case ssa.NoneLit:
			return nil
		case ssa.StrLit, ssa.DeviceLit, ssa.EnumLit:
			s.warnf("dropped-output", "output %s is the constant %s and is left out", path, x)
			return leftOut(x.String())
		}
	}
	v := s.vals.materialize(x)
	f.checkRank(v, path)
	f.vals = append(f.vals, v)
	f.paths = append(f.paths, path)
	return leaf(len(f.vals) - 1)
}

// columns lists the outputs that a list of tuples of run-time length is: a list for each place of the tuples.
func (f *flattening) columns(c *py.Columns, path string) any {
	if c.Optional {
		f.s.fail("output", "an element of output %q is None or not depending on data: ONNX outputs must always be there", cmp.Or(path, "0"))
	}
	t := &treeNode{kind: "zip"}
	for i, l := range c.Lists {
		n := fmt.Sprint(i)
		if c.Tuple != nil && c.Tuple.Names != nil {
			n = c.Tuple.Names[i]
		}
		t.elems = append(t.elems, f.add(&py.List{Cell: journal.Loose(l)}, joinPath(path, n)))
	}
	return t
}

// checkRank tells of an output whose rank depends on data.
func (f *flattening) checkRank(v *ssa.Value, path string) {
	s := f.s
	t := v.Tensor()
	if t == nil || t.Ranked || len(s.causes) > 0 || s.typeless || s.unrankedInput() {
		return
	}
	if t.DType == tensor.Undefined {
		s.fail("dynamic-rank", "the type of output %q depends on data, which ONNX cannot say of an output", path)
	}
	s.needRank(v) // a valid model states the shape of its outputs
	s.warnf("dynamic-rank", "the number of dimensions of output %q depends on data: the model states no shape for it", cmp.Or(path, "0"))
}
