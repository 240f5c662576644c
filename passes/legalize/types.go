package legalize

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// group is the operands and results of an op that share a type variable.
type group struct {
	name     string
	operands []int
	results  []int
	allowed  uint32
	dtype    tensor.DType
	few      [3]int // where operands and results begin to grow
}

// types gives the op element types that the opset's version of the operator
// and the target have: by casts around it where that changes no element, by
// another way to compute where there is one.
func (l *legalizer) types(d *onnx.Downgrade, s *onnx.OpSchema) {
	o := d.Node
	if special := specials[o.Kind.Name()]; special != nil && special(l, d, s) {
		return
	}
	l.kernel(d, s)
	l.sequences(d, s)
	if o.Block() == nil {
		return
	}
	groups := l.groups(o, s)
	if l.target.Inlines(s) {
		// what the definition is made of may lack kernels for float64
		for _, g := range groups {
			if other := onnx.TypeFallback(s.Name); g.dtype == tensor.Float64 && other != nil && other(d, g.dtype) {
				return
			}
		}
	}
	var bad []*group
	for _, g := range groups {
		if g.dtype == tensor.Undefined {
			continue
		}
		if g.allowed = l.narrow(o, s, g); !holds(g.allowed, g.dtype) {
			bad = append(bad, g)
		}
	}
	if len(bad) == 0 || l.widened(o, s, bad) {
		return
	}
	for _, g := range bad {
		c := l.computing(o, g)
		if c == tensor.Undefined || o.Kind == "onnx::Cast" { // which casts around it would only repeat
			if other := onnx.TypeFallback(o.Kind.Name()); other != nil && other(d, g.dtype) {
				l.c.Changed(fmt.Sprintf("%s of %s by others", o.Kind.Name(), g.dtype))
				return
			}
			if g.dtype == tensor.Float64 && l.target == onnx.OnnxRuntime {
				d.Hint = "convert the model in float32 (model.float()), or for another runtime (--target onnx)"
			}
			d.Fail(l.lowest(o, g), "%s for %s", g.dtype.Spec(), l.who())
		}
	}
	for _, g := range bad {
		if g.dtype == tensor.BFloat16 && l.target == onnx.OnnxRuntime && onnx.ClassOf(o) != onnx.Copies {
			l.bfloat16 = append(l.bfloat16, o)
		}
		l.castAround(d, g, l.computing(o, g))
	}
	l.c.Changed("cast " + o.Kind.Name())
}

// widened reports that onnxruntime itself computes an op in float32 whose operands are float16, and nothing else is missing: where it has
// no kernel for float16 it puts casts around the node, and takes them away again between two of these (its InsertCastTransformer). What runs
// elsewhere, as on a GPU, computes in float16 then, which casts in the file would forbid.
func (l *legalizer) widened(o *ssa.Op, s *onnx.OpSchema, bad []*group) bool {
	if l.target != onnx.OnnxRuntime {
		return false
	}
	for _, g := range bad {
		if g.dtype != tensor.Float16 || len(g.operands) == 0 || l.computing(o, g) != tensor.Float32 {
			return false
		}
		for _, i := range g.operands {
			if p := s.Input(i); p == nil || !holds(p.Types.Tensor, g.dtype) {
				return false
			}
		}
	}
	return true
}

// kernel finds an op that the target cannot run at all. Some operators have
// kernels for older opsets only.
func (l *legalizer) kernel(d *onnx.Downgrade, s *onnx.OpSchema) {
	if l.target.HasKernel(s) {
		return
	}
	if other := onnx.TypeFallback(s.Name); other != nil && other(d, d.Node.Result(0).DType()) {
		return
	}
	for n := l.opset - 1; n >= 7; n-- {
		if old := onnx.Lookup(s.Name, n); old != nil && l.target.HasKernel(old) {
			d.Hint = fmt.Sprintf("export with --opset %d", n)
			break
		}
	}
	d.Fail(0, "%s has no kernel for the operator of opset %d", l.who(), s.Since)
}

// sequences finds sequences that the opset or the target does not have.
func (l *legalizer) sequences(d *onnx.Downgrade, s *onnx.OpSchema) {
	check := func(v *ssa.Value, param func(s *onnx.OpSchema) *onnx.Param) {
		if v == nil {
			return
		}
		if _, ok := v.Type.(*ssa.OptionalType); ok {
			l.optional(d, v, param)
			return
		}
		list, ok := v.Type.(*ssa.ListType)
		if !ok {
			return
		}
		elem := ssa.AsTensor(list.Elem)
		if elem == nil || elem.DType == tensor.Undefined {
			return
		}
		ok = false
		n := l.opset
		for ; n <= l.target.Newest() && !ok; n++ {
			if s := onnx.Lookup(d.Node.Kind.Name(), n); s != nil && l.target.HasKernel(s) {
				p := param(s)
				ok = p != nil && holds(l.target.Sequences(s, p), elem.DType)
			}
		}
		if n--; !ok {
			d.Fail(0, "a sequence of %s for %s", elem.DType.Spec(), l.who())
		} else if n > l.opset {
			d.Fail(n, "a sequence of %s for %s", elem.DType.Spec(), l.who())
		}
	}
	for i, v := range d.Node.Operands() {
		check(v, func(s *onnx.OpSchema) *onnx.Param { return s.Input(i) })
	}
	for i, v := range d.Node.Results {
		check(v, func(s *onnx.OpSchema) *onnx.Param { return s.Output(i) })
	}
}

// returns finds values that a block returns without computing them, of types that no Identity of the opset copies: a
// file has one for each.
func (l *legalizer) returns(b *ssa.Block) {
	for o := range b.Ops() {
		for _, inner := range o.Blocks {
			l.returns(inner)
		}
	}
	for _, v := range b.Returns() {
		if v == nil || v.DType() == tensor.Undefined || v.Def() != nil && onnx.ConstOf(v) == nil {
			continue
		}
		copies := func(s *onnx.OpSchema) bool { return holds(l.target.Types(s, s.Input(0)), v.DType()) }
		if s := onnx.Lookup("Identity", l.opset); s == nil || copies(s) {
			continue
		}
		err := &onnx.Unsupported{Why: fmt.Sprintf("returning a %s for %s", v.DType().Spec(), l.who())}
		for n := l.opset + 1; n <= l.target.Newest() && err.Opset == 0; n++ {
			if s := onnx.Lookup("Identity", n); l.target.HasKernel(s) && copies(s) {
				err.Opset = n
			}
		}
		l.report("onnx::Identity", 0, "", err)
	}
}

// optional finds an optional value that the opset's version of the operator does not take.
func (l *legalizer) optional(d *onnx.Downgrade, v *ssa.Value, param func(s *onnx.OpSchema) *onnx.Param) {
	for n := l.opset; n <= l.target.Newest(); n++ {
		s := onnx.Lookup(d.Node.Kind.Name(), n)
		if s == nil {
			continue
		}
		if p := param(s); p != nil && p.Types.Allows(v.Type) {
			if n > l.opset {
				d.Fail(n, "an optional value")
			}
			return
		}
	}
	d.Fail(0, "an optional value for %s", l.who())
}

func (l *legalizer) who() string {
	if l.target == onnx.OnnxRuntime {
		return "onnxruntime"
	}
	return "ONNX"
}

func holds(mask uint32, d tensor.DType) bool { return d.ONNX() > 0 && mask>>d.ONNX()&1 == 1 }

// narrow is the types of a group that the target takes, less those whose
// kernels onnxruntime declares and does not have, and less bfloat16 for what it
// makes of other operators: it has no arithmetic of these.
func (l *legalizer) narrow(o *ssa.Op, s *onnx.OpSchema, g *group) uint32 {
	if l.target != onnx.OnnxRuntime {
		return g.allowed
	}
	without := func(ds ...tensor.DType) uint32 {
		mask := g.allowed
		for _, d := range ds {
			mask &^= 1 << d.ONNX()
		}
		return mask
	}
	switch o.Kind {
	case "onnx::ScatterElements", "onnx::ScatterND":
		if o.AttrStr("reduction", "none") != "none" {
			return without(tensor.Bool, tensor.Float16, tensor.BFloat16)
		}
	case "onnx::GRU", "onnx::LSTM":
		return without(tensor.Float64)
	}
	if l.target.Inlines(s) && onnx.ClassOf(o) != onnx.Copies {
		return without(tensor.BFloat16)
	}
	return g.allowed
}

// groups sorts the tensors of an op by the type variables of a version.
func (l *legalizer) groups(o *ssa.Op, s *onnx.OpSchema) []*group {
	newest := onnx.SchemaOf(o.Kind)
	var out []*group
	find := func(p *onnx.Param, v *ssa.Value) *group {
		for _, g := range out {
			if g.name == p.Var && p.Option != onnx.VariadicMixed {
				return g
			}
		}
		g := &group{name: p.Var, allowed: l.target.Types(s, p), dtype: v.DType()}
		g.operands, g.results = g.few[0:0:2], g.few[2:2:3]
		out = append(out, g)
		return g
	}
	for i := range o.NumOperands() {
		v := o.Operand(i)
		p := s.Input(i)
		if now := newest.Input(i); p == nil && i > 0 && now != nil && now.Var == newest.Input(0).Var {
			p = s.Input(0) // an attribute of this version, of the type of the first input
			if v != nil && v.Tensor() != nil {
				g := find(p, v)
				g.operands = append(g.operands, i)
			}
			continue
		}
		if v == nil || v.Tensor() == nil || p == nil || !sameParam(newest.Input(i), p, i) {
			continue
		}
		g := find(p, v)
		g.operands = append(g.operands, i)
	}
	for i, r := range o.Results {
		if p := s.Output(i); p != nil && r.Tensor() != nil {
			g := find(p, r)
			g.results = append(g.results, i)
		}
	}
	return out
}

// sameParam says that an input of the newest version is the one of another
// version at the same place.
func sameParam(newest, p *onnx.Param, i int) bool {
	return i == 0 || newest != nil && (strings.HasSuffix(newest.Name, p.Name) || newest.Var == p.Var)
}

// castAround lets the op compute in type c for one of its type variables.
func (l *legalizer) castAround(d *onnx.Downgrade, g *group, c tensor.DType) {
	o := d.Node
	for _, i := range g.operands {
		o.SetOperand(i, l.cast(d, o.Operand(i), c))
	}
	if s := onnx.SchemaOf(o.Kind); s.Attr("dtype") != nil && slices.Contains(g.results, 0) {
		o.SetAttr("dtype", ssa.Int(int64(c.ONNX()))) // without it the result would have the operand's type
	}
	exact := exactBack(o)
	next := o.Next()
	for _, i := range g.results {
		r := o.Results[i]
		t := r.Tensor()
		if t == nil || !r.HasUses() {
			if t != nil {
				r.Type = t.WithDType(c)
			}
			continue
		}
		var back *ssa.Op
		if next != nil {
			back = o.Block().InsertBefore(next, "onnx::Cast", o.Loc, []*ssa.Value{r}, t)
		} else {
			back = o.Block().Append("onnx::Cast", o.Loc, []*ssa.Value{r}, t)
		}
		back.SetAttr("to", ssa.Int(int64(g.dtype.ONNX())))
		r.Type = t.WithDType(c)
		v := back.Results[0]
		v.Sym = r.Sym
		v.Name, r.Name = r.Name, ""
		moveUses(r, v, back)
		l.kept[back] = exact
		l.boundExtreme(d, r, back, g.dtype)
	}
}

// boundExtreme keeps the extreme of no elements within the type that it is cast back to: it is the least or the greatest number of the wider one.
func (l *legalizer) boundExtreme(d *onnx.Downgrade, r *ssa.Value, back *ssa.Op, t tensor.DType) {
	o := r.Def()
	beyond := map[ssa.Kind]string{"onnx::ReduceMax": "Less", "onnx::ReduceMin": "Greater"}[o.Kind]
	if beyond == "" || t != tensor.Bool && (!t.IsInt() || t.Size() > 2) || !onnx.MayReduceNothing(o) {
		return
	}
	bound := int64(0)
	switch least := beyond == "Less"; {
	case t == tensor.Bool:
		if !least {
			bound = 1
		}
	case t.IsSigned():
		if bound = -1 << (8*t.Size() - 1); !least {
			bound = -bound - 1
		}
	case !least:
		bound = 1<<(8*t.Size()) - 1
	}
	b := d.Builder
	b.Before = back
	k := b.Const(tensor.FromInts(r.DType(), []int64{}, []int64{bound}))
	back.SetOperand(0, b.Where(b.Op(beyond, r, k), k, r))
}

// moveUses makes all users of r but one use v.
func moveUses(r, v *ssa.Value, but *ssa.Op) {
	r.ReplaceUses(v)
	but.SetOperand(0, r)
}

// cast converts a value; casts that would undo each other are not built.
func (l *legalizer) cast(d *onnx.Downgrade, v *ssa.Value, c tensor.DType) *ssa.Value {
	for {
		o := v.Def()
		if v.DType() == c || o == nil || o.Kind != "onnx::Cast" {
			break
		}
		from := o.Operand(0)
		if l.kept[o] || embeds(from.DType(), v.DType()) && (embeds(from.DType(), c) || from.DType() == c) {
			v = from // what lies between changed no element
			continue
		}
		break
	}
	if v.DType() == c {
		return v
	}
	if d.Node.Kind == "onnx::DequantizeLinear" {
		return d.CastScale(v, c)
	}
	return d.Cast(v, c)
}

// lowest is the lowest opset that has the type, 0 if none.
func (l *legalizer) lowest(o *ssa.Op, g *group) int {
	for n := l.opset + 1; n <= l.target.Newest(); n++ {
		if s := onnx.Lookup(o.Kind.Name(), n); s != nil && l.target.HasKernel(s) {
			for _, h := range l.groups(o, s) {
				if len(h.operands) > 0 && len(g.operands) > 0 && h.operands[0] == g.operands[0] || len(h.operands) == 0 && len(g.operands) == 0 {
					if holds(l.narrow(o, s, h), h.dtype) {
						return n
					}
				}
			}
		}
	}
	return 0
}
