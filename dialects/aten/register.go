package aten

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// Table finds the definition of an operator: that of a user, else the built-in one. Once all is registered, goroutines may share it:
// conversions only read it.
type Table struct {
	defs    map[ssa.Kind][]Def // ascending Since
	custom  map[ssa.Kind][]Def // the same, of users
	complex Defs               // of operators on complex numbers
}

var symbolicName = regexp.MustCompile(`^[A-Za-z0-9_-]+::[A-Za-z_-][A-Za-z0-9_-]*$`)

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
	if !symbolicName.MatchString(string(k)) {
		return "", fmt.Errorf("%q is no name of an operator, such as ns::op", k)
	}
	if k.Namespace() == onnx.Namespace {
		return "", fmt.Errorf("%s: the operators of ONNX cannot be replaced", k)
	}
	return k, nil
}

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
	for _, list := range [][]Def{t.custom[k], t.defs[k]} {
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

// Kinds lists the operators of the table in no particular order.
func (t *Table) Kinds() []ssa.Kind {
	ks := make([]ssa.Kind, 0, len(t.defs))
	for k := range t.defs {
		ks = append(ks, k)
	}
	for k := range t.custom {
		if t.defs[k] == nil {
			ks = append(ks, k)
		}
	}
	return ks
}
