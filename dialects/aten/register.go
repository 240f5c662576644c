package aten

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// Table finds the definition of an operator: that of a user, else the built-in one. Once all is registered, goroutines may share it:
// conversions only read it.
type Table struct {
	custom map[ssa.Kind][]Def // of users, ascending Since
	// declared are the schemas of operators that PyTorch does not have.
	declared map[ssa.Kind][]*ssa.Schema
	// replaced are definitions of users for ONNX operators.
	replaced map[ssa.Kind]Def
	// absorbed are operators that definitions of others convert along with these.
	absorbed map[ssa.Kind]bool
}

// isSymbolicName reports a name such as ns::op, of ASCII letters, digits, underscores and hyphens. The second part does not begin with a digit.
func isSymbolicName(name string) bool {
	ns, op, ok := strings.Cut(name, "::")
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}
	return ok && ns != "" && op != "" && !strings.ContainsFunc(ns+op, other) && (op[0] < '0' || op[0] > '9')
}

// Register adds a user's symbolic function for an operator, "ns::op" ("::op" is
// one of aten), for all opsets from d.Since on. It goes before the built-in one
// and replaces an earlier one of the same operator and opset. Names that are not
// of that form, operators of onnx, and definitions without a lowering and a
// reason are errors.
func (t *Table) Register(k ssa.Kind, d Def) error {
	k, err := symbolicKind(k)
	if err != nil {
		return err
	}
	if d.Lower == nil && d.LowerN == nil && d.Why == "" {
		return fmt.Errorf("%s: neither a lowering nor a reason why there is none", k)
	}
	if d.Since < 0 || d.Since > onnx.Newest {
		return fmt.Errorf("%s: there is no opset %d", k, d.Since)
	}
	insert(t.custom, k, d)
	return nil
}

// Unregister removes what Register added for an operator from an opset on (0
// stands for 7): what was there before it, a built-in one too, is back.
func (t *Table) Unregister(k ssa.Kind, since int) error {
	k, err := symbolicKind(k)
	if err != nil {
		return err
	}
	if since == 0 {
		since = 7
	}
	list := t.custom[k]
	i := slices.IndexFunc(list, func(d Def) bool { return d.Since == since })
	if i < 0 {
		return fmt.Errorf("%s: nothing is registered from opset %d on", k, since)
	}
	if t.custom[k] = slices.Delete(list, i, i+1); len(t.custom[k]) == 0 {
		delete(t.custom, k)
	}
	return nil
}

func symbolicKind(k ssa.Kind) (ssa.Kind, error) {
	if strings.HasPrefix(string(k), "::") {
		k = "aten" + k
	}
	if !isSymbolicName(string(k)) {
		return "", fmt.Errorf("%q is no name of an operator, such as ns::op", k)
	}
	if k.Namespace() == onnx.Namespace {
		return "", fmt.Errorf("%s: the operators of ONNX cannot be replaced", k)
	}
	return k, nil
}

// Declare adds the schema of an operator of a user's library, so that its calls are read with the names, defaults and results
// that it has there. Operators that PyTorch declares cannot be declared again, nor can those that write to an argument or
// return one: what these do to memory is not known from their declaration alone.
func (t *Table) Declare(s *ssa.Schema) error {
	k := ssa.Kind(s.Name)
	if !isSymbolicName(s.Name) {
		return fmt.Errorf("%q is no name of an operator, such as ns::op", s.Name)
	}
	switch ns := k.Namespace(); {
	case ns == onnx.Namespace || ns == "prim" || ns == "aten" || len(Schemas(k)) > 0:
		return fmt.Errorf("%s: the operators of %s are declared already", s.FullName(), ns)
	case s.Vararg || s.VarReturn:
		return fmt.Errorf("%s: \"...\" is for operators of PyTorch's own", s.FullName())
	case len(s.Returns) == 0:
		return fmt.Errorf("%s: an operator without results cannot be a part of a graph", s.FullName())
	}
	for _, a := range append(slices.Clone(s.Args), s.Returns...) {
		if a.Writes || a.Alias != "" {
			return fmt.Errorf("%s: an operator that writes to an argument or returns one cannot be declared; call a functional one in the model", s.FullName())
		}
	}
	for _, other := range t.declared[k] {
		if other.Overload == s.Overload {
			return fmt.Errorf("%s is declared twice", s.FullName())
		}
	}
	if t.declared == nil {
		t.declared = map[ssa.Kind][]*ssa.Schema{}
	}
	t.declared[k] = append(t.declared[k], s)
	return nil
}

// Schemas gives the declarations of an operator: PyTorch's, or those of [Table.Declare]. A nil table has PyTorch's.
func (t *Table) Schemas(k ssa.Kind) []*ssa.Schema {
	if t != nil {
		if s := t.declared[k]; s != nil {
			return s
		}
	}
	return Schemas(k)
}

// Schema gives one overload, nil if there is none.
func (t *Table) Schema(k ssa.Kind, overload string) *ssa.Schema {
	for _, s := range t.Schemas(k) {
		if s.Overload == overload {
			return s
		}
	}
	return nil
}

// Replace adds what is put in the place of an ONNX operator, in its newest form, of a program that was converted or of an ONNX
// file; an earlier definition goes. A definition that declines ([Lowering.Decline]) leaves the operator as it is.
func (t *Table) Replace(k ssa.Kind, d Def) error {
	switch {
	case k.Namespace() != onnx.Namespace || onnx.Lookup(k.Name(), onnx.Newest) == nil:
		return fmt.Errorf("%s is no operator of ONNX", k)
	case d.Lower == nil && d.LowerN == nil:
		return fmt.Errorf("%s: nothing says what takes its place", k)
	}
	if t.replaced == nil {
		t.replaced = map[ssa.Kind]Def{}
	}
	t.replaced[k] = d
	return nil
}

// Replaces reports that the table has something for ONNX operators.
func (t *Table) Replaces() bool { return len(t.replaced) > 0 }

// Replaced reports that the table has something for this ONNX operator.
func (t *Table) Replaced(k ssa.Kind) bool { _, ok := t.replaced[k]; return ok }

// Absorb says that definitions of other operators convert this one along with themselves: that it has no definition of its
// own is an error only where its result is needed besides.
func (t *Table) Absorb(k ssa.Kind) {
	if t.absorbed == nil {
		t.absorbed = map[ssa.Kind]bool{}
	}
	t.absorbed[k] = true
}

// Absorbs reports what Absorb has said.
func (t *Table) Absorbs(k ssa.Kind) bool { return t.absorbed[k] }

// insert keeps the definitions of an operator in the order of their opsets.
func insert(defs map[ssa.Kind][]Def, k ssa.Kind, d Def) {
	if d.Since == 0 {
		d.Since = 7
	}
	list := defs[k]
	i, there := slices.BinarySearchFunc(list, d.Since, func(e Def, n int) int { return e.Since - n })
	if there {
		list[i] = d
		return
	}
	defs[k] = slices.Insert(list, i, d)
}

// Lookup finds the definition with the greatest Since that is not above the
// opset, among those of users first. If there is none but a higher opset has
// one, that one is given with ok false.
func (t *Table) Lookup(k ssa.Kind, opset int) (d Def, ok bool) {
	for _, list := range [...][]Def{t.custom[k], builtin[k]} {
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].Since <= opset {
				return list[i], true
			}
		}
		if len(list) > 0 && (d.Since == 0 || list[0].Since < d.Since) {
			d = list[0]
		}
	}
	return d, false
}

// Registered reports that the definition that Lookup finds is one of users.
func (t *Table) Registered(k ssa.Kind, opset int) bool {
	return slices.ContainsFunc(t.custom[k], func(d Def) bool { return d.Since <= opset })
}

// next finds the definition that holds where the one found by Lookup declines: of the same list the one below it, behind
// those of users the built-in one.
func (t *Table) next(k ssa.Kind, opset int, declined int) (d Def, ok bool) {
	for _, list := range [...][]Def{t.custom[k], builtin[k]} {
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].Since > opset {
				continue
			}
			if declined == 0 {
				return list[i], true
			}
			declined--
		}
	}
	return d, false
}

// Kinds lists the operators of the table in no particular order.
func (t *Table) Kinds() []ssa.Kind {
	ks := make([]ssa.Kind, 0, len(builtin))
	for k := range builtin {
		ks = append(ks, k)
	}
	for k := range t.custom {
		if builtin[k] == nil {
			ks = append(ks, k)
		}
	}
	return ks
}
