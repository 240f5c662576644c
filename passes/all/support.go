package all

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/differentiate"
	"github.com/aton-project/aton/passes/specialize"
	"github.com/aton-project/aton/ssa"
)

// Support knows which operators the passes convert at an opset.
type Support struct {
	table   *aten.Table
	opset   int
	handled map[ssa.Kind]bool // by the passes specialize and differentiate
}

// NewSupport asks a table of operators, nil for the built-in ones, about an opset.
func NewSupport(t *aten.Table, opset int) *Support {
	if t == nil {
		t = aten.NewTable()
	}
	s := &Support{table: t, opset: opset, handled: map[ssa.Kind]bool{}}
	for _, k := range slices.Concat(specialize.Kinds(), differentiate.Kinds()) {
		s.handled[k] = true
	}
	return s
}

// Of reports whether an operator can be converted with some arguments; if not, why, and from which opset on it can.
func (s *Support) Of(k ssa.Kind) (ok bool, why string, opset int) {
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
		return s.Of(ssa.Kind(base))
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

// Operators lists the operators that convert with at least some arguments, sorted by name.
func (s *Support) Operators() []Operator {
	kinds := append(aten.Kinds(), s.table.Kinds()...)
	kinds = slices.Concat(kinds, specialize.Kinds(), differentiate.Kinds())
	slices.Sort(kinds)
	var out []Operator
	for _, k := range slices.Compact(kinds) {
		if ok, _, _ := s.Of(k); !ok {
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

// Refusal is a known operator that cannot be converted.
type Refusal struct {
	Name string `json:"name"`
	Why  string `json:"why"`
	// Opset is the lowest opset at which it converts, 0 if there is none.
	Opset int `json:"opset,omitempty"`
}

// Refused lists the known operators that cannot be converted with any arguments, sorted by name, and says why.
func (s *Support) Refused() []Refusal {
	kinds := s.table.Kinds()
	slices.Sort(kinds)
	var out []Refusal
	for _, k := range kinds {
		if ok, why, opset := s.Of(k); !ok {
			out = append(out, Refusal{string(k), why, opset})
		}
	}
	return out
}
