package specialize

import (
	"slices"
	"strings"

	"github.com/aton-project/aton/internal/python"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// A string of data, such as a message with a value in it, has no form in ONNX. It is py.Unknown, as is each number that follows
// from it, until a tensor or a branch with effects needs it: most strings only go into the messages of exceptions.

// unknown is what stands for a part of a string that is not known.
const unknown = "..."

// textOf is what is known of a string.
func textOf(x py.Value) (string, bool) {
	switch x := x.(type) {
	case py.Const:
		return x.Literal.Str(), x.Kind == ssa.StrLit
	case py.Unknown:
		return x.Text, true
	}
	return "", false
}

// text evaluates an operator on strings that data decides.
func (s *walk) text(o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	isUnknown := func(x py.Value) bool { _, is := x.(py.Unknown); return is }
	if !slices.ContainsFunc(args, isUnknown) || passesOn(o) || o.Kind == "aten::__is__" || o.Kind == "aten::__isnot__" {
		return nil, false
	}
	if _, is := args[0].(*py.Dict); is && !slices.ContainsFunc(args, func(x py.Value) bool { return isUnknown(x) && exact(x) == "" }) {
		return nil, false // a key
	}
	out := make([]py.Value, len(o.Results))
	for i, r := range o.Results {
		switch r.Type {
		case ssa.StrType:
			out[i] = py.Unknown{Text: unknown}
		case ssa.BoolType, ssa.IntType, ssa.FloatType:
			out[i] = py.Unknown{}
		default:
			s.failText()
		}
	}
	if o.Kind == "aten::add" && len(args) == 2 {
		a, _ := textOf(args[0])
		b, _ := textOf(args[1])
		out[0] = py.Unknown{Text: a + b, Exact: joinExact(args...)}
	}
	return out, true
}

// A size in py.Unknown.Exact is its expression between these.
const sizeBegins, sizeEnds = '\x01', '\x02'

func exactSize(e sym.Expr) string { return string(sizeBegins) + e.String() + string(sizeEnds) }

// exact is what str(x) is, with expressions in the place of sizes; "" if that is not known.
func exact(x py.Value) string {
	var elems []py.Value
	open, end := "[", "]"
	switch x := x.(type) {
	case py.Unknown:
		return x.Exact
	case py.Dynamic:
		if e, ok := py.ExprOf(x); ok {
			return exactSize(e)
		}
		return ""
	case *py.List:
		if x.State().AtRunTime() {
			return ""
		}
		elems = x.State().Elems
	case *py.Tuple:
		if elems = x.Elems; len(elems) < 2 {
			return ""
		}
		open, end = "(", ")"
	default:
		l, ok := py.LiteralOf(x)
		if !ok {
			return ""
		}
		s, err := python.Eval("str", ssa.StrType, l)
		if err != nil || strings.ContainsAny(s.Str(), string(sizeBegins)+string(sizeEnds)) {
			return ""
		}
		return s.Str()
	}
	parts := make([]string, len(elems))
	for i, e := range elems {
		if _, text := textOf(e); text { // with quotes
			return ""
		}
		if parts[i] = exact(e); parts[i] == "" {
			return ""
		}
	}
	return open + strings.Join(parts, ", ") + end
}

// joinExact is exact for strings put behind each other.
func joinExact(xs ...py.Value) string {
	all := ""
	for _, x := range xs {
		e := exact(x)
		if l, ok := py.LiteralOf(x); e == "" && !(ok && l.Kind == ssa.StrLit && l.Str() == "") {
			return ""
		}
		all += e
	}
	return all
}

func (s *context) failText() {
	s.fail("string-data", "a string that depends on data cannot be computed in ONNX")
}

// formatted evaluates format, % and str where a part is not known.
func formatted(_ *containers, _ py.Const, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	lits := make([]ssa.Literal, len(args))
	all := true
	for i, a := range args {
		l, ok := py.LiteralOf(a)
		if !ok {
			l = ssa.Str(unknown)
			if text, is := textOf(a); is {
				l = ssa.Str(text)
			}
		}
		lits[i], all = l, all && ok
	}
	if all {
		return nil, false
	}
	if l, err := python.Eval(o.Kind.Name(), ssa.StrType, lits...); err == nil {
		text := py.Unknown{Text: l.Str()}
		known := true
		for i, a := range args {
			if _, ok := py.LiteralOf(a); !ok {
				lits[i] = ssa.Str(exact(a))
				known = known && lits[i].Str() != ""
			}
		}
		if l, err := python.Eval(o.Kind.Name(), ssa.StrType, lits...); err == nil && known {
			text.Exact = l.Str()
		}
		return one(text)
	}
	template, _ := textOf(args[0])
	return one(py.Unknown{Text: template}) // %d of what is not known
}

// unknownIf evaluates an If that a string of data decides. Its branches may differ in such strings.
func (s *walk) unknownIf(o *ssa.Op) []py.Value {
	start := s.heap.Mark().Last
	n := s.build.cur.Append("prim::If", s.loc, []*ssa.Value{s.build.constant(ssa.Bool(true))})
	var outs [2]outcome
	for side := range outs {
		outs[side] = s.path(n.AddBlock(), func() []py.Value { return s.block(o.Blocks[side]) })
	}
	if results, ok := s.unlessRaised(n, outs); ok {
		return results
	}
	for _, out := range outs {
		for c := range out.changes {
			if c.ID() <= start {
				s.failText()
			}
		}
	}
	n.Erase()
	results := make([]py.Value, len(o.Results))
	for i, r := range o.Results {
		a, b := outs[0].results[i], outs[1].results[i]
		switch {
		case py.Same(a, b):
			results[i] = a
		case r.Type == ssa.StrType:
			results[i] = py.Unknown{Text: unknown}
		case r.Type == ssa.BoolType, r.Type == ssa.IntType, r.Type == ssa.FloatType:
			results[i] = py.Unknown{}
		default:
			s.failText()
		}
	}
	return results
}
