package jit

import (
	"errors"
	"fmt"

	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/frontend/archive"
	"github.com/aton-project/aton/internal/python"
	"github.com/aton-project/aton/ssa"
)

const (
	maxSteps     = 4 << 20 // operators that the evaluator runs for one file
	maxEvalDepth = 100     // of calls in it
	maxEvalSize  = 1 << 20 // elements of a list, bytes of a string
)

// evaluator runs the code that makes attributes when an object is read. It
// knows containers, attributes, calls, branches and arithmetic of numbers;
// everything else is an error. It does no I/O.
type evaluator struct {
	l         *loader
	functions map[string]*function
	queue     []*function
	m         *ssa.Module
}

// evaluator swaps the functions that are being compiled for a set of its own,
// so that nothing of it gets into the module. leave swaps them back.
func (l *loader) evaluator() *evaluator {
	if l.eval == nil {
		l.eval = &evaluator{l: l, functions: map[string]*function{}, m: ssa.NewModule(l.m.Dialects...)}
	}
	l.eval.swap()
	return l.eval
}

func (e *evaluator) swap() {
	l := e.l
	l.functions, e.functions = e.functions, l.functions
	l.queue, e.queue = e.queue, l.queue
	l.m, e.m = e.m, l.m
}

func (e *evaluator) leave() { e.swap() }

func (e *evaluator) fail(f *function, o *ssa.Op, format string, args ...any) {
	fr := e.l.m.Locs.Frame(o.Loc)
	hint := ""
	if fr.File != "" {
		hint = fmt.Sprintf("the code is %s:%d", fr.File, fr.Line)
	}
	panic(&archive.Error{File: e.l.File, Record: f.src.record, Offset: -1, Err: fmt.Errorf("%s: "+format, append([]any{PythonName(f.name)}, args...)...), Hint: hint})
}

// call runs a function.
func (e *evaluator) call(f *function, args []ssa.Literal, depth int) ssa.Literal {
	if depth > maxEvalDepth {
		e.l.failAt(f.src, f.def.At(), "", "calls nested too deeply while an object is made")
	}
	e.l.compile(f)
	env := make([]ssa.Literal, f.fn.NumValues())
	if len(args) != len(f.fn.Body.Params) {
		e.l.failAt(f.src, f.def.At(), "", "%s takes %d arguments, not %d", PythonName(f.name), len(f.fn.Body.Params), len(args))
	}
	for i, p := range f.fn.Body.Params {
		env[p.ID] = args[i]
	}
	e.block(f, f.fn.Body, env, depth)
	return env[f.fn.Body.Return(0).ID]
}

func (e *evaluator) block(f *function, b *ssa.Block, env []ssa.Literal, depth int) {
	for o := range b.Ops() {
		if e.l.steps++; e.l.steps > maxSteps {
			e.fail(f, o, "more than %d steps to make an object", maxSteps)
		}
		in := make([]ssa.Literal, o.NumOperands())
		for i := range in {
			in[i] = env[o.Operand(i).ID]
		}
		out := e.op(f, o, in, env, depth)
		for i, r := range o.Results {
			env[r.ID] = out[i]
		}
	}
}

func (e *evaluator) op(f *function, o *ssa.Op, in []ssa.Literal, env []ssa.Literal, depth int) []ssa.Literal {
	one := func(l ssa.Literal) []ssa.Literal { return []ssa.Literal{l} }
	switch o.Kind {
	case prim.Constant:
		if v, ok := o.Attr("value"); ok {
			return one(v)
		}
		if n, ok := o.Attr("name"); ok {
			return one(ssa.FuncName(n.Str()))
		}
		return one(ssa.None)
	case prim.Uninitialized:
		return one(ssa.None)
	case prim.UncheckedCast, prim.UnwrapOptional:
		return one(in[0])
	case prim.GetAttr:
		name := o.AttrStr("name", "")
		if in[0].Kind != ssa.ObjectLit {
			e.fail(f, o, "attribute %s of something that is no object", name)
		}
		v, ok := in[0].Object.Get(name)
		if !ok {
			e.fail(f, o, "attribute %s is read before it is set", name)
		}
		return one(v)
	case prim.SetAttr:
		if in[0].Kind != ssa.ObjectLit {
			e.fail(f, o, "an attribute of something that is no object")
		}
		in[0].Object.Set(o.AttrStr("name", ""), in[1])
		return nil
	case prim.CreateObject:
		return one(ssa.ObjectValue(&ssa.Object{Class: o.Results[0].Type.(*ssa.ClassType).Name}))
	case prim.TupleConstruct:
		return one(ssa.Tuple(in...))
	case prim.ListConstruct:
		return one(ssa.Literal{Kind: ssa.ListLit, Elems: in, Elem: o.Results[0].Type.(*ssa.ListType).Elem})
	case prim.DictConstruct:
		return one(ssa.Literal{Kind: ssa.DictLit, Elems: in, Elem: o.Results[0].Type})
	case prim.TupleUnpack, prim.ListUnpack:
		if len(in[0].Elems) != len(o.Results) {
			e.fail(f, o, "%d values for %d names", len(in[0].Elems), len(o.Results))
		}
		return in[0].Elems
	case prim.TupleIndex:
		return one(e.element(f, o, in[0], in[1]))
	case prim.TupleSlice:
		lo, hi := o.AttrInt("beg", 0), o.AttrInt("end", 0)
		if lo < 0 || hi > int64(len(in[0].Elems)) || lo > hi {
			e.fail(f, o, "slice out of range")
		}
		return one(ssa.Tuple(in[0].Elems[lo:hi]...))
	case prim.If:
		b := o.Blocks[1]
		if in[0].Bool() {
			b = o.Blocks[0]
		}
		e.block(f, b, env, depth)
		return e.returns(b, env)
	case prim.Loop:
		return e.loop(f, o, in, env, depth)
	case prim.CallMethod:
		return one(e.callMethod(f, o, in, depth))
	case prim.CallFunction:
		g := e.l.free(in[0].Str())
		if g == nil {
			e.fail(f, o, "%s is missing", in[0].Str())
		}
		return one(e.call(g, in[1:], depth+1))
	case prim.RaiseException:
		msg := ""
		if len(in) > 0 {
			msg = in[0].Str()
		}
		e.fail(f, o, "raises %q", msg)
	case prim.IsInstance:
		v, _ := o.Attr("types")
		for _, t := range v.Elems {
			if ssa.IsSubtype(in[0].Type(), t.Elem) {
				return one(ssa.Bool(true))
			}
		}
		return one(ssa.Bool(false))
	}
	if o.Kind.Namespace() == "quantized" {
		if out, ok := e.pack(o, in); ok {
			return out
		}
	}
	if v, ok := e.scalar(f, o, in); ok {
		return one(v)
	}
	e.fail(f, o, "%s is not supported while an object is made", o.Kind)
	return nil
}

func (e *evaluator) returns(b *ssa.Block, env []ssa.Literal) []ssa.Literal {
	out := make([]ssa.Literal, b.NumReturns())
	for i := range out {
		out[i] = env[b.Return(i).ID]
	}
	return out
}

func (e *evaluator) loop(f *function, o *ssa.Op, in []ssa.Literal, env []ssa.Literal, depth int) []ssa.Literal {
	b := o.Blocks[0]
	carried, cond := in[2:], in[1].Bool()
	for i := int64(0); cond && i < in[0].Int(); i++ {
		env[b.Params[0].ID] = ssa.Int(i)
		for k, v := range carried {
			env[b.Params[k+1].ID] = v
		}
		e.block(f, b, env, depth)
		out := e.returns(b, env)
		cond, carried = out[0].Bool(), out[1:]
		if e.l.steps++; e.l.steps > maxSteps {
			e.fail(f, o, "more than %d steps to make an object", maxSteps)
		}
	}
	return carried
}

func (e *evaluator) callMethod(f *function, o *ssa.Op, in []ssa.Literal, depth int) ssa.Literal {
	name := o.AttrStr("name", "")
	if in[0].Kind != ssa.ObjectLit {
		e.fail(f, o, "a method of something that is no object")
	}
	obj := in[0].Object
	c := e.l.class(obj.Class)
	if c != nil && c.kind == customClass && name == "unpack" {
		if w, b, ok := unpacked(obj); ok {
			return ssa.Tuple(w, b)
		}
	}
	if c == nil || c.methods[name] == nil {
		e.fail(f, o, "%s has no method %s", PythonName(obj.Class), name)
	}
	return e.call(e.l.method(c, name), in, depth+1)
}

func (e *evaluator) element(f *function, o *ssa.Op, list, index ssa.Literal) ssa.Literal {
	i, n := index.Int(), int64(len(list.Elems))
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		e.fail(f, o, "index %d of %d elements", index.Int(), n)
	}
	return list.Elems[i]
}

// scalar evaluates operators of numbers, strings and containers.
func (e *evaluator) scalar(f *function, o *ssa.Op, in []ssa.Literal) (ssa.Literal, bool) {
	switch o.Kind {
	case "aten::__is__", "aten::__isnot__":
		if in[0].IsNone() || in[1].IsNone() {
			return ssa.Bool((in[0].IsNone() && in[1].IsNone()) == (o.Kind == "aten::__is__")), true
		}
	case "aten::__contains__":
		step := 1
		if in[0].Kind == ssa.DictLit {
			step = 2
		}
		for i := 0; i < len(in[0].Elems); i += step {
			if in[0].Elems[i].Equal(in[1]) {
				return ssa.Bool(true), true
			}
		}
		return ssa.Bool(false), in[0].Kind == ssa.ListLit || in[0].Kind == ssa.DictLit
	case "aten::len":
		if in[0].Kind == ssa.DictLit {
			return ssa.Int(int64(len(in[0].Elems) / 2)), true
		}
	case "aten::__getitem__":
		if in[0].Kind == ssa.ListLit {
			return e.element(f, o, in[0], in[1]), true
		}
		if in[0].Kind == ssa.DictLit {
			for i := 0; i+1 < len(in[0].Elems); i += 2 {
				if in[0].Elems[i].Equal(in[1]) {
					return in[0].Elems[i+1], true
				}
			}
			e.fail(f, o, "key %s is missing", in[1])
		}
	case "aten::format":
		return ssa.Str(in[0].Str()), true // only messages are formatted here
	case "aten::add":
		if len(in) == 2 && in[0].Kind == ssa.ListLit && in[1].Kind == ssa.ListLit {
			if len(in[0].Elems)+len(in[1].Elems) > maxEvalSize {
				e.fail(f, o, "a list of more than %d elements", maxEvalSize)
			}
			l := in[0]
			l.Elems = append(append([]ssa.Literal(nil), in[0].Elems...), in[1].Elems...)
			return l, true
		}
	case "aten::list":
		l := in[0]
		l.Elems = append([]ssa.Literal(nil), l.Elems...)
		return l, true
	case "aten::append":
		e.fail(f, o, "a list is changed while an object is made, which is not supported")
	}
	if o.Kind.Namespace() != "aten" || len(o.Results) != 1 {
		return ssa.None, false
	}
	v, err := python.Eval(o.Kind.Name(), o.Results[0].Type, in...)
	var raised *python.Exception
	switch {
	case errors.As(err, &raised):
		e.fail(f, o, "raises %q", raised.Message)
	case err == nil && v.Kind == ssa.StrLit && len(v.Str()) > maxEvalSize:
		e.fail(f, o, "a string of more than %d bytes", maxEvalSize)
	}
	return v, err == nil
}
