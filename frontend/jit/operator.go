package jit

import (
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/ssa"
)

// operator compiles a call of an operator: it finds the overload and fills in
// defaults. The result is an *ssa.Value, or *outputs for none or several.
func (b *builder) operator(k ssa.Kind, args []argument, pos ...int) val {
	at := pos[0]
	b.at(pos...)
	overloads := b.l.opts.Table.Schemas(k)
	if p, ok := properties[k.Name()]; ok && k.Namespace() == "prim" {
		return b.operator(p, args, pos...)
	}
	if len(overloads) == 0 {
		return b.unknown(k, args, at)
	}
	args = b.upgradeArgs(k, args, at)
	s, plans, vars, why := b.resolve(k, overloads, args)
	if s == nil {
		if v, ok := b.builtinFunction(k, args, at); ok {
			return v
		}
		b.fail(at, "", "%s%s fits no overload: %s", k, b.describe(args), why)
	}
	operands := make([]*ssa.Value, len(plans))
	for i, p := range plans {
		operands[i] = b.carryOut(p, at)
	}
	b.at(pos...)
	if v, ok := b.upgrade(k, s, operands, at); ok {
		return v
	}
	return b.finishOp(k, s, vars, operands, at)
}

// resolve tries the overloads in order, first without and then with implicit conversions.
func (b *builder) resolve(k ssa.Kind, overloads []*ssa.Schema, args []argument) (*ssa.Schema, []planned, *ssa.TypeVars, string) {
	why, closest := "", -1
	for _, conv := range []bool{false, true} {
		if len(overloads) == 1 && !conv {
			continue
		}
		for _, s := range overloads {
			if k == "aten::view" && s.Overload == "dtype" {
				continue
			}
			plans, vars, no := b.matchArgs(s.Args, s.Vararg, args, conv, true)
			if no == "" {
				return s, plans, vars, ""
			}
			if n := score(s, args); n > closest {
				closest, why = n, s.FullName()+": "+no
			}
		}
	}
	return nil, nil, nil, why
}

// score ranks overloads for messages: how many arguments they could take.
func score(s *ssa.Schema, args []argument) int {
	n := 0
	for _, a := range args {
		if a.name == "" || s.Arg(a.name) >= 0 {
			n++
		}
	}
	if len(s.Args) < len(args) && !s.Vararg {
		return 0
	}
	return n
}

// finishOp appends the operator with the types that its declaration gives.
func (b *builder) finishOp(k ssa.Kind, s *ssa.Schema, vars *ssa.TypeVars, operands []*ssa.Value, pos int) val {
	if alias, ok := normalized(k); ok && len(operands) > 0 && ssa.AsTensor(operands[0].Type) != nil || ok && strings.HasSuffix(string(k), "_stack") || ok && strings.Contains(string(alias), "cat") {
		types := make([]ssa.Type, len(operands))
		for i, o := range operands {
			types[i] = o.Type
		}
		if as := ssa.MatchSchema(aten.Schemas(alias), types); as != nil {
			k, s = alias, as
		}
	}
	var results []ssa.Type
	for _, r := range s.Returns {
		t := r.Type
		if vars != nil {
			t = vars.Apply(t)
		}
		if t == nil {
			b.fail(pos, "", "%s: the type of the result is not determined", k)
		}
		results = append(results, t)
	}
	if k == "prim::ConstantMKLDNNTensor" {
		b.fail(pos, "save the module as it was before torch.jit.optimize_for_inference", "the archive lacks the weights: PyTorch does not save those in oneDNN's layout, and cannot load them either")
	}
	if s.VarReturn {
		b.fail(pos, "", "%s is internal to PyTorch's executor and does not occur in archives", k)
	}
	o := b.emit(k, operands, results...)
	o.Schema = s
	if len(o.Results) == 1 {
		return o.Result(0)
	}
	return &outputs{o.Results}
}

// unknown appends an operator that no table declares: one of a user's library.
// It gives a tensor, or as many as the assignment takes.
func (b *builder) unknown(k ssa.Kind, args []argument, pos int) val {
	switch k.Namespace() {
	case "aten", "prim":
		b.fail(pos, "use another operator in the module, or call it from a library with a namespace of its own", "%s is not an operator of any PyTorch release known here", k)
	case "profiler":
		if strings.HasPrefix(k.Name(), "_record_function_") {
			return b.none() // marks for a profiler: they compute nothing
		}
	}
	var operands []*ssa.Value
	var names []ssa.Literal
	for _, a := range args {
		operands = append(operands, b.value(a.v, nil, pos))
		if a.name != "" {
			names = append(names, ssa.Str(a.name))
		}
	}
	b.l.Warnf("%s is not known; its results are taken to be tensors", k)
	o := b.emit(k, operands, ssa.AnyTensor)
	b.l.guessed[o] = true
	if len(names) > 0 {
		o.SetAttr("arg_names", ssa.List(ssa.StrType, names...))
	}
	return o.Result(0)
}

// normalized gives the name that PyTorch's compiler puts for an alias of an operator.
func normalized(k ssa.Kind) (ssa.Kind, bool) {
	if to := aten.AliasOf(k); to != "" {
		return to, true
	}
	if pure, writes := strings.CutSuffix(string(k), "_"); writes {
		if to := aten.AliasOf(ssa.Kind(pure)); to != "" {
			return to + "_", true
		}
	}
	return k, false
}

// isScalar reports float and int, the scalars that built-in functions take.
func isScalar(t ssa.Type) bool { return t == ssa.FloatType || t == ssa.IntType }

// builtinFunction compiles the operators that PyTorch writes in TorchScript
// itself: arithmetic of a number and a tensor.
func (b *builder) builtinFunction(k ssa.Kind, args []argument, pos int) (val, bool) {
	if len(args) == 1 && k.Namespace() == "aten" {
		switch k.Name() {
		case "_single", "_pair", "_triple", "_quadruple":
			n := map[string]int{"_single": 1, "_pair": 2, "_triple": 3, "_quadruple": 4}[k.Name()]
			for _, e := range []ssa.Type{ssa.IntType, ssa.FloatType} {
				if p, ok := b.plan(args[0].v, &ssa.ListType{Elem: e}, n, true, &ssa.TypeVars{}); ok {
					return b.carryOut(p, pos), true
				}
			}
		}
	}
	if len(args) != 2 || k.Namespace() != "aten" || args[0].name != "" || args[1].name != "" {
		return nil, false
	}
	x, y := args[0], args[1]
	xt, yt := b.typeOf(x.v), b.typeOf(y.v)
	if ssa.AsTensor(xt) != nil && k == "aten::floordiv" {
		return b.operator("aten::floor_divide", args, pos), true
	}
	if !isScalar(xt) || ssa.AsTensor(yt) == nil {
		return nil, false
	}
	swapped := []argument{y, x}
	switch k.Name() {
	case "mul", "add", "eq", "ne":
		return b.operator(k, swapped, pos), true
	case "lt":
		return b.operator("aten::gt", swapped, pos), true
	case "gt":
		return b.operator("aten::lt", swapped, pos), true
	case "le":
		return b.operator("aten::ge", swapped, pos), true
	case "ge":
		return b.operator("aten::le", swapped, pos), true
	case "sub":
		n := b.operator("aten::neg", []argument{y}, pos)
		return b.operator("aten::add", []argument{{v: n}, x}, pos), true
	case "div":
		n := b.operator("aten::reciprocal", []argument{y}, pos)
		return b.operator("aten::mul", []argument{{v: n}, x}, pos), true
	}
	return nil, false
}

// upgradeArgs brings the arguments of an old file's call to the newest form.
func (b *builder) upgradeArgs(k ssa.Kind, args []argument, pos int) []argument {
	old := k == "aten::linspace" && b.l.version < versionLinspace || k == "aten::logspace" && b.l.version < versionLogspace
	if !old {
		return args
	}
	// steps could be left out or None, which meant 100
	for i, a := range args {
		if a.name == "steps" || a.name == "" && i == 2 {
			if b.typeOf(a.v) == ssa.NoneType {
				args = append([]argument(nil), args...)
				args[i].v = b.integer(100)
			}
			return args
		}
	}
	if len(args) >= 2 && args[1].name == "" {
		out := append([]argument(nil), args[:2]...)
		out = append(out, argument{v: b.integer(100)})
		return append(out, args[2:]...)
	}
	return args
}

// upgrade compiles an operator of an old file whose meaning has changed since.
func (b *builder) upgrade(k ssa.Kind, s *ssa.Schema, operands []*ssa.Value, pos int) (val, bool) {
	switch {
	case (k == "aten::div" || k == "aten::div_") && b.l.version < versionTrueDivision:
		return b.oldDivision(k, s, operands)
	case k == "aten::full" && b.l.version < versionFull:
		// the fill value of a call without dtype became a float
		i, d := s.Arg("fill_value"), s.Arg("dtype")
		if i >= 0 && d >= 0 && operands[d].Type == ssa.NoneType && operands[i].Type != ssa.FloatType {
			operands[i] = b.value(b.operator("aten::Float", []argument{{v: operands[i]}}, pos), nil, pos)
		}
	}
	return nil, false
}

// oldDivision: below version 4, division of integer tensors truncated.
func (b *builder) oldDivision(k ssa.Kind, s *ssa.Schema, operands []*ssa.Value) (val, bool) {
	if len(operands) == 0 || ssa.AsTensor(operands[0].Type) == nil || s.Arg("out") >= 0 {
		return nil, false
	}
	loc := b.location()
	call := func(kind ssa.Kind, operands ...*ssa.Value) *ssa.Value {
		types := make([]ssa.Type, len(operands))
		for i, o := range operands {
			types[i] = o.Type
		}
		m := ssa.MatchSchema(aten.Schemas(kind), types)
		if m == nil {
			b.l.fail(b.f.src.record, "", "%s of an old file cannot be upgraded", kind)
		}
		o := b.emit(kind, operands, m.Returns[0].Type)
		o.Schema = m
		return o.Result(0)
	}
	self, other := operands[0], operands[1]
	isFloat := func(x *ssa.Value) *ssa.Value {
		if ssa.AsTensor(x.Type) == nil {
			return b.constant(ssa.Bool(x.Type == ssa.FloatType || x.Type == ssa.ComplexType), ssa.BoolType)
		}
		f := call("aten::is_floating_point", x)
		return call("aten::__or__", f, call("aten::is_complex", x))
	}
	cond := call("aten::__or__", isFloat(self), isFloat(other))
	mode := b.constant(ssa.Str("trunc"), ssa.StrType)
	float := b.none()
	if i := s.Arg("rounding_mode"); i >= 0 {
		mode, float = operands[i], operands[i]
	}
	o := b.emit(prim.If, []*ssa.Value{cond}, ssa.AnyTensor)
	then, _ := b.body(o, func() {
		b.restore(loc)
		if float.Type == ssa.NoneType {
			b.block.SetReturns(call(k, self, other))
		} else {
			b.block.SetReturns(call(k, self, other, float))
		}
	})
	_ = then
	_, _ = b.body(o, func() { b.block.SetReturns(call(k, self, other, mode)) })
	return o.Result(0), true
}
