package specialize

import (
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// scalar evaluates an operator on numbers, strings and constants: at export if
// they are known, symbolically for ints, else by emitting it.
func (s *values) scalar(kind ssa.Kind, schema *ssa.Schema, args []py.Value) []py.Value {
	if kind == "aten::divmod" && schema != nil {
		var out []py.Value
		for _, k := range []ssa.Kind{"aten::floordiv", "aten::remainder"} {
			out = append(out, s.scalar(k, aten.SchemaByName(string(k)+"."+schema.Overload), args)...)
		}
		return out
	}
	lits := make([]ssa.Literal, len(args))
	all := true
	for i, a := range args {
		l, ok := py.LiteralOf(a)
		lits[i] = l
		all = all && ok
	}
	ret := ssa.Type(ssa.AnyType)
	if schema != nil && len(schema.Returns) == 1 {
		ret = schema.Returns[0].Type
	}
	if all {
		if l, ok := s.fold(kind.Name(), ret, lits...); ok {
			return []py.Value{s.module.fromLiteral(l, ret)}
		}
		if schema == nil || ret == ssa.StrType {
			s.fail("unsupported-op", "cannot be computed at export on these constants")
		}
	}
	expr, answer, isBool, known := py.Symbolic(kind.Name(), args)
	if known {
		if isBool {
			return []py.Value{py.Bool(answer)}
		}
		if n, ok := expr.Int(); ok {
			return []py.Value{py.Int(n)}
		}
	}
	for _, a := range args {
		switch a.(type) {
		case *py.Maybe, *py.Dict, *py.Object:
			s.fail("unsupported-op", "cannot be computed on data")
		}
	}
	for _, l := range lits {
		if l.Kind == ssa.StrLit {
			s.fail("string-data", "a string that depends on data cannot be computed in ONNX")
		}
	}
	if schema == nil {
		s.fail("unsupported-op", "the operator has no schema")
	}
	vs := s.build.emit(kind, schema, s.operands(args)...)
	out := make([]py.Value, len(vs))
	for i, v := range vs {
		if known && v.Type == ssa.IntType {
			v.Sym = []sym.Expr{expr}
		} else if v.Type == ssa.IntType && v.Sym == nil {
			v.Sym = []sym.Expr{s.m.FreshSymbol("n", minInt)}
		}
		out[i] = s.wrap(v)
	}
	return out
}
