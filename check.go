package aton

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes/lower"
	"github.com/aton-project/aton/passes/specialize"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// Check says all that stands in the way of a conversion, of all passes at once. The error is for what is not about
// the program. The module is of no use afterwards.
func Check(m *ssa.Module, o Options) (*diag.List, error) {
	if o.OperatorExport != "" && o.OperatorExport != ONNX || len(o.Fallthrough) > 0 {
		list, err := Lower(m, o)
		if err != nil && list != nil && list.Err() != nil {
			err = nil // it is in the list
		}
		return list, err
	}
	p, err := o.pipeline(m, lower.Collect)
	if err != nil {
		return nil, err
	}
	converted := onnx.DefaultOpset(m) != 0
	list, err := p.Run(m, o.Runner)
	if list == nil {
		return nil, err
	}
	if err != nil && list.Err() == nil {
		return list, err // a fault of ours
	}
	if err == nil && !told(list, "") {
		if !converted {
			o.leftOver(m, list)
		}
		return list, o.domains(m)
	}
	// A pass that gave up has not come to the operators behind the place.
	o.unknown(m, list)
	return list, nil
}

// told reports that the list has an error of the operator, of any for "".
func told(list *diag.List, op string) bool {
	return slices.ContainsFunc(list.Items, func(d diag.Diagnostic) bool { return d.Severity == diag.Error && (op == "" || d.Op == op) })
}

// unknown adds the operators of the program that no pass knows and that are not in the list yet.
func (o Options) unknown(m *ssa.Module, list *diag.List) {
	f := m.Main()
	if f == nil || m.Opsets[""] != 0 {
		return // it has been lowered: everything was tried
	}
	s := newSupport(o.Table, o.OpsetFor(m))
	said := map[ssa.Kind]bool{}
	for op := range f.Body.AllOps() {
		if _, seen := said[op.Kind]; !seen {
			said[op.Kind] = told(list, string(op.Kind))
		}
		if said[op.Kind] || op.Kind.Namespace() == "prim" && op.Kind != "prim::PythonOp" || op.Kind.Namespace() == "onnx" {
			continue
		}
		if ok, why, opset := s.of(op.Kind); !ok {
			d := diag.Diagnostic{ID: "unsupported-op", Op: string(op.Kind), Loc: op.Loc, Message: why, Opset: opset}
			if opset > 0 {
				d.ID, d.Hint = "opset", fmt.Sprintf("export with --opset %d", opset)
			}
			list.Add(d)
		}
	}
}

// support answers which operators can be converted.
type support struct {
	table   *aten.Table
	opset   int
	handled map[ssa.Kind]bool // by evaluation
}

// opsetOr is the opset, DefaultOpset for 0.
func opsetOr(opset int) int {
	if opset == 0 {
		return DefaultOpset
	}
	return opset
}

func newSupport(t *aten.Table, opset int) *support {
	if t == nil {
		t = aten.NewTable()
	}
	s := &support{table: t, opset: opset, handled: map[ssa.Kind]bool{}}
	for _, k := range specialize.Kinds() {
		s.handled[k] = true
	}
	return s
}

// of says whether an operator can be converted with some arguments; if not, why, and from which opset on it could.
func (s *support) of(k ssa.Kind) (ok bool, why string, opset int) {
	d, ok := s.table.Lookup(k, s.opset)
	n := s.table.LowestOpset(k, s.opset)
	switch {
	case ok && d.Why == "" && n > s.opset:
		return false, fmt.Sprintf("needs opset %d", n), n
	case ok && d.Why == "" || s.handled[k]:
		return true, "", 0
	case ok:
		return false, d.Why, 0
	case d.Since > 0:
		return false, fmt.Sprintf("needs opset %d", d.Since), d.Since
	}
	if base, inPlace := strings.CutSuffix(string(k), "_"); inPlace && !strings.HasSuffix(base, "_") {
		return s.of(ssa.Kind(base))
	}
	return false, "the operator is not supported", 0
}

// Operator is one that can be converted.
type Operator struct {
	Name string `json:"name"`
	// Since is the lowest opset at which it can be.
	Since     int      `json:"since"`
	Overloads []string `json:"overloads"`
	Notes     string   `json:"notes,omitempty"`
}

// Operators lists the operators that convert at an opset (0: DefaultOpset) at least with some arguments, by name. A
// nil table is that of the built-in ones.
func Operators(t *aten.Table, opset int) []Operator {
	s := newSupport(t, opsetOr(opset))
	kinds := append(aten.Kinds(), s.table.Kinds()...)
	kinds = append(kinds, specialize.Kinds()...)
	slices.Sort(kinds)
	var out []Operator
	for _, k := range slices.Compact(kinds) {
		if ok, _, _ := s.of(k); !ok {
			continue
		}
		op := Operator{Name: string(k), Since: 7, Overloads: []string{}}
		if d, _ := s.table.Lookup(k, 0); d.Since > 0 {
			op.Since, op.Notes = max(d.Since, s.table.LowestOpset(k, s.opset)), d.Doc
		}
		for _, schema := range aten.Schemas(k) {
			op.Overloads = append(op.Overloads, schema.Overload)
		}
		out = append(out, op)
	}
	return out
}

// Refusal is an operator that is known and cannot be converted at an opset.
type Refusal struct {
	Name string `json:"name"`
	Why  string `json:"why"`
	// Opset is the lowest that would do, 0 if none would.
	Opset int `json:"opset,omitempty"`
}

// Refused lists the operators that aton knows and cannot convert at an opset (0: DefaultOpset) with any arguments, by
// name, and says why. A nil table is that of the built-in ones.
func Refused(t *aten.Table, opset int) []Refusal {
	s := newSupport(t, opsetOr(opset))
	kinds := s.table.Kinds()
	slices.Sort(kinds)
	var out []Refusal
	for _, k := range kinds {
		if ok, why, opset := s.of(k); !ok {
			out = append(out, Refusal{string(k), why, opset})
		}
	}
	return out
}

// Blocker is an operator that stands in the way of a conversion, for one reason.
type Blocker struct {
	Operator string `json:"operator"`
	Count    int    `json:"count"`
	// File, Line and Scope (the path of the module) are those of its first place.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Scope  string `json:"scope,omitempty"`
	ID     string `json:"id"`
	Reason string `json:"reason"`
	Hint   string `json:"hint,omitempty"`
	// Opset is the lowest that would do, 0 if none is known.
	Opset int `json:"opset,omitempty"`
}

// Blockers groups the errors of a list by operator and reason, in order of their first appearance.
func Blockers(err error) []Blocker {
	out := []Blocker{}
	var list *diag.List
	if !errors.As(err, &list) {
		return out
	}
	at := map[[3]string]int{}
	for _, d := range list.Items {
		if d.Severity != diag.Error {
			continue
		}
		key := [3]string{d.Op, d.ID, d.Message}
		i, seen := at[key]
		if !seen {
			i = len(out)
			at[key] = i
			b := Blocker{Operator: d.Op, ID: d.ID, Reason: d.Message, Hint: d.Hint, Opset: d.Opset}
			if list.Table != nil {
				f := list.Table.Frame(d.Loc)
				b.File, b.Line, b.Scope = f.File, f.Line, f.Scope
			}
			out = append(out, b)
		}
		out[i].Count++
	}
	return out
}
