package foldconstants

import (
	"math"
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/internal/naming"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
)

// program folds the operators of PyTorch in a function: each is lowered on its own, for operands that are constants, and the
// builder of the lowering computes what it builds.
type program struct {
	c       *passes.Context
	table   *aten.Table
	opset   int
	limit   int64 // bytes of a result, elements that an operator reads or makes
	left    int64 // bytes that may be computed yet
	writes  bool  // something in the function writes to memory
	scratch *ssa.Func
	names   *ssa.Names
}

func foldProgram(c *passes.Context, table *aten.Table, f *ssa.Func) {
	limit := int64(c.IntOption("limit"))
	p := &program{c: c, table: table, opset: onnx.Newest, limit: limit, left: c.Module.Allow(maxBytes), names: ssa.NamesOf(f)}
	for o := range f.Body.AllOps() {
		p.writes = p.writes || c.Module.Effects(o)&(ssa.Writes|ssa.Unknown) != 0
	}
	p.scratch = c.Module.NewFunc("scratch")
	p.block(f.Body)
	c.Module.RemoveFunc(p.scratch)
}

func (p *program) block(b *ssa.Block) {
	var next *ssa.Op
	for o := b.First(); o != nil; o = next {
		next = o.Next()
		for _, inner := range o.Blocks {
			p.block(inner)
		}
		if p.foldable(o) {
			p.fold(o)
		}
	}
}

// foldable reports an operator that computes a value of constants alone, the same one each time.
func (p *program) foldable(o *ssa.Op) bool {
	if o.Schema == nil || len(o.Blocks) > 0 || o.NumOperands() == 0 || len(o.Results) == 0 || len(o.Results) != len(o.Schema.Returns) {
		return false
	}
	if p.c.Module.Effects(o)&^(ssa.Fresh|ssa.Reads) != 0 {
		return false
	}
	for _, v := range o.Operands() {
		l, ok := aten.LiteralOf(v)
		if !ok || !p.constant(v, l) {
			return false
		}
	}
	for _, r := range o.Results {
		if p.writes && mutable(r.Type) { // a constant is one object, and each run of the operator makes a new one
			return false
		}
	}
	return true
}

// constant reports an operand whose value is known, and is not a weight that is to stay as the state dict has it.
func (p *program) constant(v *ssa.Value, l ssa.Literal) bool {
	if v != nil && p.writes && mutable(v.Type) {
		return false
	}
	switch l.Kind {
	case ssa.TensorLit:
		return l.Tensor != nil && l.Tensor.HasData() && !l.Tensor.DType.IsQuantized() && (p.c.BoolOption("weights") || !weight(v))
	case ssa.ListLit, ssa.TupleLit:
		es, made := aten.ListElems(v)
		for i, e := range l.Elems {
			var of *ssa.Value
			if made && i < len(es) {
				of = es[i]
			}
			if !p.constant(of, e) {
				return false
			}
		}
		return true
	}
	return l.Kind != ssa.ObjectLit
}

// weight reports a weight: a constant of real numbers that has a name.
func weight(v *ssa.Value) bool {
	return v != nil && v.Name != "" && v.DType().IsFloat() && v.Def() != nil && (v.Def().Kind == prim.Constant || v.Def().Kind == "onnx::Constant")
}

// mutable reports that a program may change a value of the type.
func mutable(t ssa.Type) bool {
	b, basic := t.(ssa.Basic)
	return !basic || b == ssa.AnyType
}

func (p *program) fold(o *ssa.Op) {
	read := int64(0)
	for _, v := range o.Operands() {
		if t := onnx.ConstOf(v); t != nil {
			read += t.NumBytes()
		}
	}
	if read > p.left {
		return
	}
	defer p.scratch.Body.Clear()
	vs, failure := p.table.Scratch(o, p.opset, onnx.Builder{Eval: kernel.Eval, Block: p.scratch.Body, Loc: o.Loc, FoldLimit: p.limit})
	if failure != nil || len(vs) != len(o.Results) {
		return
	}
	literals := make([]ssa.Literal, len(vs))
	for i, v := range vs {
		t := onnx.ConstOf(v)
		if t != nil && t.HasData() && t.NumBytes() <= p.limit && !t.IsContiguous() && o.Schema.Returns[i].Alias == "" {
			t = t.Clone() // only views have other strides than those of a tensor of its own
		}
		if t == nil || !t.HasData() || t.NumBytes() > p.limit || t.NumBytes() > p.left || t.IsSplat() && t.NumBytes() > splatLimit {
			return
		}
		var ok bool
		if literals[i], ok = aten.LiteralAs(o.Results[i].Type, t); !ok || !p.sound(o, literals[i]) {
			return
		}
	}
	p.left -= read
	for i, l := range literals {
		p.left -= onnx.ConstOf(vs[i]).NumBytes()
		p.put(o, o.Results[i], l)
	}
	operands := o.Operands()
	o.Erase()
	for _, v := range operands {
		if v != nil {
			eraseConstants(v)
		}
	}
	p.c.Changed("fold")
}

// sound reports a value that PyTorch computes too. Python raises where a number would not be finite, or none.
func (p *program) sound(o *ssa.Op, l ssa.Literal) bool {
	if l.Kind == ssa.TensorLit {
		return true
	}
	finite := func(l ssa.Literal) bool {
		return l.Kind != ssa.FloatLit || !math.IsInf(l.Float(), 0) && !math.IsNaN(l.Float())
	}
	for _, v := range o.Operands() {
		if operand, ok := aten.LiteralOf(v); ok && !finite(operand) {
			return false
		}
	}
	return finite(l) && !slices.ContainsFunc(l.Elems, func(e ssa.Literal) bool { return !finite(e) })
}

// put makes the constant that takes the place of a result.
func (p *program) put(o *ssa.Op, r *ssa.Value, l ssa.Literal) {
	t := l.Type()
	if l.Kind == ssa.TensorLit {
		t = ssa.TensorOf(l.Tensor)
	}
	v := o.Block().InsertBefore(o, prim.Constant, o.Loc, nil, t).Results[0]
	v.Def().SetAttr("value", l)
	if s, ok := onnx.SymOf(v); ok {
		v.Sym = s
	} else {
		v.Sym = r.Sym
	}
	switch base := weightOf(o); {
	case isOutput(r):
		v.Name, r.Name = r.Name, ""
	case base != "":
		v.Name = p.names.Unique(naming.Folded(base, o.Kind))
	}
	r.ReplaceUses(v)
}

// weightOf is the name of the first weight among the operands, as the result is called after it.
func weightOf(o *ssa.Op) string {
	for _, v := range o.Operands() {
		if weight(v) {
			return v.Name
		}
	}
	return ""
}

// eraseConstants erases a constant, or a list of constants, that nothing uses any more.
func eraseConstants(v *ssa.Value) {
	d := v.Def()
	if d == nil || v.HasUses() || d.Block() == nil || len(d.Results) != 1 {
		return
	}
	switch d.Kind {
	case prim.Constant, "onnx::Constant", "prim::ListConstruct", "prim::TupleConstruct":
		operands := d.Operands()
		d.Erase()
		for _, w := range operands {
			if w != nil {
				eraseConstants(w)
			}
		}
	}
}
