package aton

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/lower"
	"github.com/aton-project/aton/passes/specialize"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// Check reports everything that blocks the conversion, from all passes at once. The error is about anything but the
// program. The module must not be used afterwards.
func Check(m *ssa.Module, o Options) (*diag.List, error) {
	if o.OperatorExport != "" && o.OperatorExport != ONNX || len(o.Fallthrough) > 0 {
		list, err := Lower(m, o)
		if err != nil && list != nil && list.Err() != nil {
			err = nil // the list has it
		}
		return list, err
	}
	p, err := o.pipeline(m, lower.Collect)
	if err != nil {
		return nil, err
	}
	o.begin(m)
	list, err := p.Run(m, o.Runner)
	if list == nil {
		return nil, err
	}
	if err != nil && list.Err() == nil {
		return list, err // a bug in aton
	}
	if err == nil && !told(list, "") {
		return list, nil
	}
	// A pass that stopped early has not seen the operators after that place.
	o.unknown(m, list)
	return list, nil
}

// told reports whether the list has an error of the operator, or any error if op is empty.
func told(list *diag.List, op string) bool {
	return slices.ContainsFunc(list.Items, func(d diag.Diagnostic) bool { return d.Severity == diag.Error && (op == "" || d.Op == op) })
}

// unknown adds operators of the program that no pass knows and that the list does not have yet.
func (o Options) unknown(m *ssa.Module, list *diag.List) {
	f := m.Main()
	if f == nil || m.Opsets[""] != 0 {
		return // lowered: every operator was tried
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

// support knows which operators can be converted at an opset.
type support struct {
	table   *aten.Table
	opset   int
	handled map[ssa.Kind]bool // by the pass specialize
}

// opsetOr returns the opset, or DefaultOpset for 0.
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

// of reports whether an operator can be converted with some arguments; if not, why, and from which opset on it can.
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

// Operator is an operator that can be converted.
type Operator struct {
	Name string `json:"name"`
	// Since is the lowest opset at which it converts.
	Since     int      `json:"since"`
	Overloads []string `json:"overloads"`
	Notes     string   `json:"notes,omitempty"`
}

// Operators lists the operators that convert at an opset with at least some arguments, sorted by name. Opset 0 means
// DefaultOpset, and a nil table means the built-in operators.
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

// Refusal is a known operator that cannot be converted at an opset.
type Refusal struct {
	Name string `json:"name"`
	Why  string `json:"why"`
	// Opset is the lowest opset at which it converts, 0 if there is none.
	Opset int `json:"opset,omitempty"`
}

// Refused lists the known operators that cannot be converted at an opset with any arguments, sorted by
// name, and says why. Opset 0 means DefaultOpset, and a nil table means the built-in operators.
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

// Blocker is an operator that blocks a conversion for one reason.
type Blocker struct {
	Operator string `json:"operator"`
	Count    int    `json:"count"`
	// File, Line and Scope (the path of the module) locate its first occurrence.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Scope  string `json:"scope,omitempty"`
	ID     string `json:"id"`
	Reason string `json:"reason"`
	Hint   string `json:"hint,omitempty"`
	// Opset is the lowest opset at which it converts, 0 if none is known.
	Opset int `json:"opset,omitempty"`
}

// Blockers groups the errors of a list by operator and reason, in the order of their first occurrence.
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
