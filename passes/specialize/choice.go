package specialize

import (
	"github.com/aton-project/aton/ssa"
)

// choice is one of two constants that ONNX has no values for, such as strings:
// what is asked of it is computed for both at export.
type choice struct {
	cond    *ssa.Value
	yes, no value // ssa.Literal or *choice
}

// choosable reports that x can be an alternative of a choice.
func choosable(x value) bool {
	switch x := x.(type) {
	case *choice:
		return true
	case ssa.Literal:
		return x.Kind == ssa.StrLit || x.Kind == ssa.EnumLit || x.Kind == ssa.DeviceLit
	}
	return false
}

// lift makes an alternative of branch i one that can be asked for behind the If.
func (m *merger) lift(i int, x value) value {
	c, ok := x.(*choice)
	if !ok || inScope(c.cond, m.s.cur) {
		return x
	}
	other := m.s.constant(ssa.Bool(false))
	cond := c.cond
	if i == 0 {
		cond = m.pair(cond, other, ssa.BoolType)
	} else {
		cond = m.pair(other, cond, ssa.BoolType)
	}
	return &choice{cond: cond, yes: m.lift(i, c.yes), no: m.lift(i, c.no)}
}

// chosen evaluates an operator on numbers, strings and the like for both alternatives of a choice.
func (s *spec) chosen(o *ssa.Op, args []value) ([]value, bool) {
	at := -1
	for i, a := range args {
		if _, ok := a.(*choice); ok {
			at = i
			break
		}
	}
	if at < 0 || tensorial(args) || o.Schema != nil && (o.Schema.Mutates() || returnsTensor(o.Schema)) {
		return nil, false
	}
	switch o.Kind {
	case "prim::ListConstruct", "prim::TupleConstruct", "prim::DictConstruct", "prim::SetAttr", "prim::CallFunction", "prim::CallMethod", "aten::append", "aten::insert", "aten::_set_item",
		"prim::unchecked_cast", "prim::unchecked_unwrap_optional", "prim::RaiseException", "aten::format", "prim::Print", "aten::warn":
		return nil, false
	}
	c := args[at].(*choice)
	with := func(x value) []value {
		return s.apply(o, append(append(append([]value(nil), args[:at]...), x), args[at+1:]...))
	}
	yes, no := with(c.yes), with(c.no)
	out := make([]value, len(yes))
	for i := range out {
		out[i] = s.choose(c.cond, yes[i], no[i])
	}
	return out, true
}

// choose gives the value that is a where cond is true, else b.
func (s *spec) choose(cond *ssa.Value, a, b value) value {
	if same(a, b) {
		return a
	}
	if choosable(a) && choosable(b) {
		return &choice{cond: cond, yes: a, no: b}
	}
	ta, ok := numberType(a)
	tb, ok2 := numberType(b)
	if !ok || !ok2 || ta != tb {
		s.fail("string-data", "a value that a string decides has no form in ONNX")
	}
	va, vb := s.materialize(a), s.materialize(b)
	n := s.cur.Append("prim::If", s.loc, []*ssa.Value{cond}, ta)
	n.AddBlock().SetReturns(va)
	n.AddBlock().SetReturns(vb)
	return s.number(n.Results[0])
}
