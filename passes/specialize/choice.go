package specialize

import (
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// passesOn reports operators that do not look at strings which they are given: they keep or pass them on.
func passesOn(o *ssa.Op) bool {
	switch o.Kind {
	case "prim::ListConstruct", "prim::TupleConstruct", "prim::DictConstruct", "prim::SetAttr", "prim::CallFunction", "prim::CallMethod",
		"prim::unchecked_cast", "prim::unchecked_unwrap_optional", "prim::RaiseException", "aten::format", "prim::Print", "aten::warn":
		return true
	}
	return aten.Kept(o.Schema) >= 0 // it goes into a container
}

// chosen evaluates an operator on numbers, strings and the like for both alternatives of a choice.
func (s *walk) chosen(o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	at := -1
	for i, a := range args {
		if _, ok := a.(*py.Choice); ok {
			at = i
			break
		}
	}
	if at < 0 || py.Tensorial(args) || o.Schema != nil && (o.Schema.Mutates() || returnsTensor(o.Schema)) {
		return nil, false
	}
	if passesOn(o) {
		return nil, false
	}
	c := args[at].(*py.Choice)
	with := func(x py.Value) []py.Value {
		return s.apply(o, append(append(append([]py.Value(nil), args[:at]...), x), args[at+1:]...))
	}
	yes, no := with(c.Yes), with(c.No)
	out := make([]py.Value, len(yes))
	for i := range out {
		out[i] = s.vals.choose(c.Cond, yes[i], no[i])
	}
	return out, true
}
