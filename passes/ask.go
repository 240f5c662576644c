package passes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// followsFromTypes has the identifiers of problems that an input of unknown type can cause.
var followsFromTypes = []string{"unknown-shape", "unknown-dtype", "dynamic-container", "dynamic-rank", "dynamic-axis", "loop-carried", "unsupported-args"}

// InputsWithoutTypes lists the inputs of the main function that have no type, as options to type: --input 'x:f32[N,3,224,224]'.
func InputsWithoutTypes(m *ssa.Module) []string {
	var asked []string
	for _, p := range m.Main().Body.Params {
		name := ssa.BareName(p.Name)
		if slices.ContainsFunc(m.Inputs, func(in ssa.Input) bool { return in.Name == name }) {
			continue
		}
		form, t := "", p.Type
		if l, ok := t.(*ssa.ListType); ok {
			form, t = "[f32[3,H,W]]", l.Elem
		}
		if x := ssa.AsTensor(t); x != nil && !x.Ranked {
			if form == "" {
				form = ExampleType(p)
			}
			asked = append(asked, fmt.Sprintf("--input '%s:%s'", name, form))
		}
	}
	return asked
}

// AskFor asks for the types of inputs, as InputsWithoutTypes lists them before a conversion changes the module, if these may be the cause of problems:
// a scripted model does not state the types of its inputs. The first such problem stands for all, since others of sizes and element types follow from it.
func AskFor(asked []string, problems []diag.Diagnostic) []diag.Diagnostic {
	if len(asked) == 0 {
		return problems
	}
	hint := "give the inputs' types, such as " + strings.Join(asked, " ")
	kept, told := problems[:0], false
	for _, d := range problems {
		if slices.Contains(followsFromTypes, d.ID) && (d.Hint == "" || strings.HasPrefix(d.Hint, "give the inputs'")) {
			d.Hint = hint
			if d.ID == "unknown-shape" || d.ID == "unknown-dtype" {
				if told {
					continue
				}
				told = true
			}
		}
		kept = append(kept, d)
	}
	return kept
}

// ExampleType spells a type that an input may have, by the first operator that reads it with a weight.
func ExampleType(v *ssa.Value) string {
	for u := range v.Uses() {
		if selects(u) {
			return "i64[N]"
		}
	}
	if t := v.Tensor(); IsIndex(v) || t != nil && t.DType.IsInt() {
		return "i64[N,128]"
	}
	for u := range v.Uses() {
		o := u.Op()
		if o == nil || o.Operand(0) != v {
			continue
		}
		w := o.Operand(1)
		if w == nil || w.Tensor() == nil || len(w.Tensor().Dims) < 2 {
			continue
		}
		n, known := w.Tensor().Dims[1].Int()
		if groups := o.Operand(6); groups != nil && groups.Def() != nil {
			if g, ok := groups.Def().Attr("value"); !ok || g.Kind != ssa.IntLit || g.Int() != 1 {
				continue
			}
		}
		form := map[ssa.Kind]string{"aten::linear": "f32[N,%d]", "aten::conv1d": "f32[N,%d,L]", "aten::conv2d": "f32[N,%d,224,224]", "aten::conv3d": "f32[N,%d,D,H,W]"}[o.Kind]
		if known && form != "" {
			return fmt.Sprintf(form, n)
		}
	}
	return "f32[N,3,224,224]"
}

// selects reports a use as what an operator such as index or gather selects elements with. It is for advice: a mask can be one too.
func selects(u *ssa.Use) bool {
	o := u.Op()
	switch {
	case o == nil:
		return false
	case o.Kind == "prim::ListConstruct" && len(o.Results) == 1:
		for of := range o.Results[0].Uses() {
			if of.Op() != nil && of.Op().Kind == "aten::index" && of.Op().Operand(1) == o.Results[0] {
				return true
			}
		}
		return false
	}
	name := o.Kind.Name()
	return o.Operand(2) == u.Value() && (strings.HasPrefix(name, "index") || strings.HasPrefix(name, "gather") || strings.HasPrefix(name, "scatter"))
}

// IsIndex reports an input that an embedding is read at or another operator takes as integers, by itself, in a loop, or behind what branches give and a
// copy in another layout or shape: its elements are integers.
func IsIndex(v *ssa.Value) bool { return readsAt(v, map[*ssa.Value]bool{}) }

func readsAt(v *ssa.Value, seen map[*ssa.Value]bool) bool {
	if seen[v] {
		return false
	}
	seen[v] = true
	for u := range v.Uses() {
		o := u.Op()
		switch {
		case o == nil: // a block gives it to its operator
			owner := u.Block().Owner()
			if owner == nil || owner.Kind != "prim::If" {
				continue
			}
			for i, r := range u.Block().Returns() {
				if r == v && i < len(owner.Results) && readsAt(owner.Results[i], seen) {
					return true
				}
			}
		case takesIntegers(u):
			return true
		case o.Kind == "prim::Loop" && len(o.Blocks) == 1:
			for i, in := range o.Operands() { // the maximum, the condition, then what the body's parameters behind the iteration have at first
				if in == v && i >= 2 && i-1 < len(o.Blocks[0].Params) && readsAt(o.Blocks[0].Params[i-1], seen) {
					return true
				}
			}
		case sameElements(o) && o.Operand(0) == v && len(o.Results) == 1 && readsAt(o.Results[0], seen):
			return true
		}
	}
	return false
}

// sameElements reports an operator whose result has elements of its first operand: a view of it, by the declaration, in the same type.
func sameElements(o *ssa.Op) bool {
	s := o.Schema
	return s != nil && len(s.Args) > 0 && len(s.Returns) == 1 && s.Args[0].Alias != "" && s.Args[0].Alias == s.Returns[0].Alias && !s.Args[0].Writes &&
		s.Arg("dtype") < 0 && s.Arg("other") < 0
}

// takesIntegers reports a use as an operand that only integers can be: an index, or a class.
func takesIntegers(u *ssa.Use) bool {
	o := u.Op()
	if o.Schema == nil {
		return false
	}
	for i := range o.Schema.Args {
		a := &o.Schema.Args[i]
		if o.Operand(i) == u.Value() && ssa.AsTensor(a.Type) != nil && (a.Name == "index" || a.Name == "indices" || o.Kind == "aten::one_hot") {
			return true
		}
	}
	return false
}
