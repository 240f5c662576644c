package ptx

import (
	"fmt"
	"strings"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"github.com/aton-project/aton/codegen/gpu/internal/llir"
)

func isHalf(t types.Type) bool {
	if v, ok := t.(*types.VectorType); ok {
		t = v.ElemType
	}
	f, ok := t.(*types.FloatType)
	return ok && f.Kind == types.FloatKindHalf
}

func elemType(t types.Type) types.Type {
	if v, ok := t.(*types.VectorType); ok {
		return v.ElemType
	}
	return t
}

// each runs f for the value, or for each element of a vector, with operands as text; f gives the result register.
func (p *printer) each(in value.Value, f func(x []string) string, args ...value.Value) {
	ops := make([]operand, len(args))
	for i, a := range args {
		ops[i] = p.get(a)
	}
	if len(ops) == 0 || ops[0].vec == nil {
		x := make([]string, len(ops))
		for i, o := range ops {
			x[i] = p.text(o, args[i].Type())
		}
		p.vals[in] = operand{text: f(x)}
		return
	}
	var out operand
	for e := range ops[0].vec {
		x := make([]string, len(ops))
		for i, o := range ops {
			if e >= len(o.vec) {
				p.fail("vectors of different lengths")
				return
			}
			x[i] = p.text(o.vec[e], elemType(args[i].Type()))
		}
		out.vec = append(out.vec, operand{text: f(x)})
	}
	p.vals[in] = out
}

// op writes one instruction into a new register.
func (p *printer) op(c class, name string, args ...string) string {
	d := p.reg(c)
	p.emit("%s \t%s, %s", name, d, strings.Join(args, ", "))
	return d
}

func (p *printer) instruction(in ir.Instruction) {
	switch in := in.(type) {
	case *ir.InstPhi:
	case *ir.InstAdd:
		p.integer(in, "add.s", in.X, in.Y)
	case *ir.InstSub:
		p.integer(in, "sub.s", in.X, in.Y)
	case *ir.InstMul:
		p.integer(in, "mul.lo.s", in.X, in.Y)
	case *ir.InstUDiv:
		p.integer(in, "div.u", in.X, in.Y)
	case *ir.InstSDiv:
		p.integer(in, "div.s", in.X, in.Y)
	case *ir.InstURem:
		p.integer(in, "rem.u", in.X, in.Y)
	case *ir.InstSRem:
		p.integer(in, "rem.s", in.X, in.Y)
	case *ir.InstAnd:
		p.integer(in, "and.b", in.X, in.Y)
	case *ir.InstOr:
		p.integer(in, "or.b", in.X, in.Y)
	case *ir.InstXor:
		p.integer(in, "xor.b", in.X, in.Y)
	case *ir.InstShl:
		p.shift(in, "shl.b", in.X, in.Y)
	case *ir.InstLShr:
		p.shift(in, "shr.u", in.X, in.Y)
	case *ir.InstAShr:
		p.shift(in, "shr.s", in.X, in.Y)
	case *ir.InstFAdd:
		p.float(in, "add.rn", in.X, in.Y)
	case *ir.InstFSub:
		p.float(in, "sub.rn", in.X, in.Y)
	case *ir.InstFMul:
		p.float(in, "mul.rn", in.X, in.Y)
	case *ir.InstFDiv:
		p.wide(in, "div.rn", in.X, in.Y)
	case *ir.InstFNeg:
		if isHalf(in.Type()) {
			p.each(in, func(x []string) string { return p.op(b16, "xor.b16", x[0], "0x8000") }, in.X)
		} else {
			p.float(in, "neg", in.X)
		}
	case *ir.InstICmp:
		p.icmp(in)
	case *ir.InstFCmp:
		name := map[string]string{"oeq": "eq", "one": "ne", "olt": "lt", "ole": "le", "ogt": "gt", "oge": "ge", "ord": "num", "uno": "nan",
			"ueq": "equ", "une": "neu", "ult": "ltu", "ule": "leu", "ugt": "gtu", "uge": "geu"}[in.Pred.String()]
		if name == "" {
			p.fail("comparison %s", in.Pred)
			return
		}
		p.each(in, func(x []string) string {
			return p.op(pred, fmt.Sprintf("setp.%s.f%d", name, bits(in.X.Type())), x...)
		}, in.X, in.Y)
	case *ir.InstSelect:
		p.choose(in)
	case *ir.InstFreeze:
		p.vals[in] = p.get(in.X)
	case *ir.InstTrunc:
		p.convert(in, in.From, "u", "u")
	case *ir.InstZExt:
		p.convert(in, in.From, "u", "u")
	case *ir.InstSExt:
		p.convert(in, in.From, "s", "s")
	case *ir.InstFPTrunc:
		p.convert(in, in.From, "f", "f")
	case *ir.InstFPExt:
		p.convert(in, in.From, "f", "f")
	case *ir.InstFPToUI:
		p.convert(in, in.From, "f", "u")
	case *ir.InstFPToSI:
		p.convert(in, in.From, "f", "s")
	case *ir.InstUIToFP:
		p.convert(in, in.From, "u", "f")
	case *ir.InstSIToFP:
		p.convert(in, in.From, "s", "f")
	case *ir.InstPtrToInt:
		if bits(in.To) != 64 {
			p.fail("pointers have 64 bits")
			return
		}
		p.vals[in] = operand{text: p.in(in.From)}
	case *ir.InstIntToPtr:
		pt, ok := in.To.(*types.PointerType)
		if !ok || bits(in.From.Type()) != 64 {
			p.fail("pointers have 64 bits")
			return
		}
		p.vals[in] = operand{text: p.in(in.From), sp: int(pt.AddrSpace)}
	case *ir.InstBitCast:
		p.bitcast(in)
	case *ir.InstAddrSpaceCast:
		p.vals[in] = p.addrSpaceCast(p.get(in.From), in.From.Type(), in.To)
	case *ir.InstGetElementPtr:
		p.vals[in] = p.gep(in.ElemType, in.Src, in.Indices)
	case *ir.InstExtractValue:
		if o := p.get(in.X); len(in.Indices) == 1 && in.Indices[0] < uint64(len(o.vec)) {
			p.vals[in] = o.vec[in.Indices[0]]
		} else {
			p.fail("a part of %s", in.X.Type())
		}
	case *ir.InstExtractElement:
		o := p.get(in.X)
		if i, ok := p.element(in.Index, len(o.vec)); ok {
			p.vals[in] = o.vec[i]
		}
	case *ir.InstInsertElement:
		o := p.get(in.X)
		if i, ok := p.element(in.Index, len(o.vec)); ok {
			vec := append([]operand(nil), o.vec...)
			vec[i] = p.get(in.Elem)
			p.vals[in] = operand{vec: vec}
		}
	case *ir.InstShuffleVector:
		p.shuffleVector(in)
	case *ir.InstAlloca:
		p.alloca(in)
	case *ir.InstLoad:
		if in.Volatile || in.Atomic {
			p.fail("volatile or atomic load")
			return
		}
		p.load(in)
	case *ir.InstStore:
		if in.Volatile || in.Atomic {
			p.fail("volatile or atomic store")
			return
		}
		p.store(in)
	case *ir.InstAtomicRMW:
		p.atomic(in)
	case *ir.InstCall:
		p.call(in)
	default:
		p.fail("instruction %T", in)
	}
}

func (p *printer) element(index value.Value, n int) (int, bool) {
	i, ok := llir.VectorIndex(index, n)
	if !ok {
		p.fail("vector index %s", index)
	}
	return i, ok
}

func (p *printer) shuffleVector(in *ir.InstShuffleVector) {
	x := append(append([]operand(nil), p.get(in.X).vec...), p.get(in.Y).vec...)
	var out operand
	switch mask := in.Mask.(type) {
	case *constant.ZeroInitializer:
		for range mask.Type().(*types.VectorType).Len {
			out.vec = append(out.vec, x[0])
		}
	case *constant.Vector:
		for _, e := range mask.Elems {
			c, ok := e.(*constant.Int)
			if !ok {
				out.vec = append(out.vec, p.zero(elemType(in.Type())))
				continue
			}
			i, ok := p.element(c, len(x))
			if !ok {
				return
			}
			out.vec = append(out.vec, x[i])
		}
	default:
		p.fail("shuffle mask %s", in.Mask)
	}
	p.vals[in] = out
}

// signed is an i8 operand with its sign in the upper byte.
func (p *printer) signed(x string) string { return p.op(b16, "cvt.s16.s8", p.register(x, b16)) }

// register is a register that holds the operand.
func (p *printer) register(x string, c class) string {
	if strings.HasPrefix(x, "%") {
		return x
	}
	return p.op(c, "mov."+classOf[c].mov, x)
}

// integer prints an operation whose name lacks the width. i8 is computed in 16 bits and cut.
func (p *printer) integer(in value.Value, name string, x, y value.Value) {
	n := bits(x.Type())
	c := p.class(x.Type())
	if n == 1 {
		op := map[string]string{"and.b": "and.pred", "or.b": "or.pred", "xor.b": "xor.pred"}[name]
		if op == "" {
			p.fail("%s of i1", name)
			return
		}
		p.each(in, func(a []string) string {
			return p.op(pred, op, p.register(a[0], pred), p.register(a[1], pred))
		}, x, y)
		return
	}
	p.each(in, func(a []string) string {
		if n != 8 {
			return p.op(c, fmt.Sprintf("%s%d", name, n), a...)
		}
		if name == "div.s" || name == "rem.s" {
			a = []string{p.signed(a[0]), p.signed(a[1])}
		}
		d := p.op(c, name+"16", a...)
		switch name {
		case "and.b", "or.b", "xor.b", "div.u", "rem.u":
			return d
		}
		return p.op(c, "and.b16", d, "255")
	}, x, y)
}

func (p *printer) shift(in value.Value, name string, x, y value.Value) {
	n := bits(x.Type())
	c := p.class(x.Type())
	if n == 1 {
		p.fail("shift of i1")
		return
	}
	p.each(in, func(a []string) string {
		amount := a[1]
		if strings.HasPrefix(amount, "%") && n != 32 {
			from := n
			if n == 8 {
				from = 16
			}
			amount = p.op(b32, fmt.Sprintf("cvt.u32.u%d", from), amount)
		}
		if n != 8 {
			return p.op(c, fmt.Sprintf("%s%d", name, n), a[0], amount)
		}
		if name == "shr.s" {
			a[0] = p.signed(a[0])
		}
		d := p.op(c, name+"16", a[0], amount)
		if name == "shr.u" {
			return d
		}
		return p.op(c, "and.b16", d, "255")
	}, x, y)
}

// float prints an operation that PTX has for all float types.
func (p *printer) float(in value.Value, name string, args ...value.Value) {
	t := in.Type()
	p.each(in, func(x []string) string { return p.op(p.class(t), fmt.Sprintf("%s.f%d", name, bits(t)), x...) }, args...)
}

// wide prints one that half does not have: it is computed in float, which leaves a right result after rounding.
func (p *printer) wide(in value.Value, name string, args ...value.Value) {
	if !isHalf(in.Type()) {
		p.float(in, name, args...)
		return
	}
	p.each(in, func(x []string) string {
		for i := range x {
			x[i] = p.op(f32, "cvt.f32.f16", x[i])
		}
		return p.op(b16, "cvt.rn.f16.f32", p.op(f32, name+".f32", x...))
	}, args...)
}

func (p *printer) icmp(in *ir.InstICmp) {
	n := bits(in.X.Type())
	name := in.Pred.String()
	if n == 1 {
		if name != "eq" && name != "ne" {
			p.fail("ordering of i1")
			return
		}
		p.each(in, func(x []string) string {
			d := p.op(pred, "xor.pred", p.register(x[0], pred), p.register(x[1], pred))
			if name == "eq" {
				d = p.op(pred, "not.pred", d)
			}
			return d
		}, in.X, in.Y)
		return
	}
	kind := "s"
	switch {
	case name == "eq" || name == "ne":
	case name[0] == 'u':
		kind, name = "u", name[1:]
	default:
		name = name[1:]
	}
	p.each(in, func(x []string) string {
		w := n
		if n == 8 {
			w = 16
			if kind == "s" && name != "eq" && name != "ne" {
				x = []string{p.signed(x[0]), p.signed(x[1])}
			}
		}
		return p.op(pred, fmt.Sprintf("setp.%s.%s%d", name, kind, w), x...)
	}, in.X, in.Y)
}

func (p *printer) choose(in *ir.InstSelect) {
	c, x, y := p.get(in.Cond), p.get(in.ValueTrue), p.get(in.ValueFalse)
	t := elemType(in.Type())
	cl := p.class(t)
	one := func(c, x, y operand) operand {
		cond := p.register(c.text, pred)
		if cl == pred {
			a := p.op(pred, "and.pred", cond, p.register(x.text, pred))
			b := p.op(pred, "and.pred", p.op(pred, "not.pred", cond), p.register(y.text, pred))
			return operand{text: p.op(pred, "or.pred", a, b)}
		}
		o := operand{text: p.op(cl, "selp."+classOf[cl].mov, p.text(x, t), p.text(y, t), cond)}
		if pt, ok := t.(*types.PointerType); ok {
			o.sp = int(pt.AddrSpace)
		}
		return o
	}
	if x.vec == nil {
		p.vals[in] = one(c, x, y)
		return
	}
	var out operand
	for i := range x.vec {
		cond := c
		if c.vec != nil {
			cond = c.vec[i]
		}
		out.vec = append(out.vec, one(cond, x.vec[i], y.vec[i]))
	}
	p.vals[in] = out
}

// convert prints a cast; a and b are s, u or f.
func (p *printer) convert(in value.Value, from value.Value, a, b string) {
	n, m := bits(from.Type()), bits(in.Type())
	c := p.class(in.Type())
	p.each(in, func(x []string) string {
		v := x[0]
		switch {
		case n == 1: // from a predicate
			v = p.register(v, pred)
			one := "1"
			if a == "s" {
				one = "-1"
			}
			switch {
			case b == "f":
				return p.op(c, fmt.Sprintf("cvt.rn.f%d.s32", m), p.op(b32, "selp.b32", one, "0", v))
			case m == 8 && a == "s":
				one = "255"
			}
			return p.op(c, "selp."+classOf[c].mov, one, "0", v)
		case m == 1:
			if a == "f" {
				p.fail("float to i1")
				return v
			}
			w := max(n, 16)
			k := p.class(from.Type())
			return p.op(pred, fmt.Sprintf("setp.ne.s%d", w), p.op(k, fmt.Sprintf("and.b%d", w), v, "1"), "0")
		case a == "f" && b == "f":
			if m < n {
				return p.op(c, fmt.Sprintf("cvt.rn.f%d.f%d", m, n), p.register(v, p.class(from.Type())))
			}
			return p.op(c, fmt.Sprintf("cvt.f%d.f%d", m, n), p.register(v, p.class(from.Type())))
		case a == "f":
			w := max(m, 16)
			d := p.op(c, fmt.Sprintf("cvt.rzi.%s%d.f%d", b, w, n), p.register(v, p.class(from.Type())))
			if m == 8 {
				d = p.op(c, "and.b16", d, "255")
			}
			return d
		case b == "f":
			return p.op(c, fmt.Sprintf("cvt.rn.f%d.%s%d", m, a, n), p.register(v, p.class(from.Type())))
		}
		v = p.register(v, p.class(from.Type()))
		switch {
		case m == 8: // cut
			if n > 16 {
				v = p.op(b16, fmt.Sprintf("cvt.u16.u%d", n), v)
			}
			return p.op(b16, "and.b16", v, "255")
		case m == 16 && n == 8:
			if a == "s" {
				return p.signed(v)
			}
			return v
		case m < n:
			return p.op(c, fmt.Sprintf("cvt.u%d.u%d", m, n), v)
		case n == 8 && a == "u":
			return p.op(c, fmt.Sprintf("cvt.u%d.u16", m), v)
		}
		return p.op(c, fmt.Sprintf("cvt.%s%d.%s%d", a, m, a, n), v)
	}, from)
}

func (p *printer) bitcast(in *ir.InstBitCast) {
	if llir.Pair(in.To) && in.From.Type().Equal(types.I32) {
		p.vals[in] = operand{word: p.register(p.in(in.From), b32)}
		return
	}
	o := p.get(in.From)
	if _, ok := in.To.(*types.PointerType); ok {
		p.vals[in] = o
		return
	}
	from, to := elemType(in.From.Type()), elemType(in.To)
	n, m := bits(from), bits(to)
	_, vec := in.To.(*types.VectorType)
	src := o.vec
	if src == nil {
		src = []operand{o}
	}
	var out []operand
	switch {
	case n == 1 || m == 1 || min(n, m) < 16 && n != m:
		p.fail("bitcast from %s to %s", from, to)
		return
	case n == m:
		for _, x := range src {
			a, b := p.class(from), p.class(to)
			if a == b && !x.imm {
				out = append(out, x)
				continue
			}
			out = append(out, operand{text: p.op(b, fmt.Sprintf("mov.b%d", max(n, 16)), x.text)})
		}
	case n < m:
		k := m / n
		for i := 0; i+k <= len(src); i += k {
			parts := make([]string, k)
			for j := range parts {
				parts[j] = p.register(src[i+j].text, p.class(from))
			}
			out = append(out, operand{text: p.op(p.class(to), fmt.Sprintf("mov.b%d", m), "{"+strings.Join(parts, ", ")+"}")})
		}
	default:
		for _, x := range src {
			parts := make([]string, n/m)
			for j := range parts {
				parts[j] = p.reg(p.class(to))
				out = append(out, operand{text: parts[j]})
			}
			p.emit("mov.b%d \t{%s}, %s", n, strings.Join(parts, ", "), p.register(x.text, p.class(from)))
		}
	}
	if vec {
		p.vals[in] = operand{vec: out}
	} else if len(out) == 1 {
		p.vals[in] = out[0]
	} else {
		p.fail("bitcast from %s to %s", in.From.Type(), in.To)
	}
}

func (p *printer) addrSpaceCast(o operand, from, to types.Type) operand {
	a, ok1 := from.(*types.PointerType)
	b, ok2 := to.(*types.PointerType)
	name := map[types.AddrSpace]string{global: "global", shared: "shared", locals: "local"}
	switch {
	case !ok1 || !ok2:
		p.fail("addrspacecast of %s", from)
	case a.AddrSpace == b.AddrSpace:
		return o
	case b.AddrSpace == generic && name[a.AddrSpace] != "":
		return operand{text: p.op(b64, "cvta."+name[a.AddrSpace]+".u64", p.pointer(o, from)), sp: generic}
	case a.AddrSpace == generic && name[b.AddrSpace] != "":
		return operand{text: p.op(b64, "cvta.to."+name[b.AddrSpace]+".u64", p.pointer(o, from)), sp: int(b.AddrSpace)}
	default:
		p.fail("addrspacecast from %s", from)
	}
	return o
}

// gep adds indices to a pointer; constants are kept aside for the access.
func (p *printer) gep(elem types.Type, base value.Value, indices []value.Value) operand {
	o := p.get(base)
	t := elem
	for i, index := range indices {
		if i > 0 {
			at := llir.Elem(t)
			if at == nil {
				p.fail("index into %s", t)
				return o
			}
			t = at
		}
		size := p.size(t)
		if c, ok := index.(*constant.Int); ok {
			o.off += c.X.Int64() * size
			continue
		}
		if o.sym {
			o.text, o.sym = p.base(o.text), false
		}
		x := p.in(index)
		switch bits(index.Type()) {
		case 16:
			x = p.op(b32, "cvt.s32.s16", x)
			fallthrough
		case 32:
			if strings.HasPrefix(o.text, "%") {
				o.text = p.op(b64, "mad.wide.s32", x, fmt.Sprint(size), o.text)
			} else {
				o.text = p.op(b64, "mul.wide.s32", x, fmt.Sprint(size))
			}
		case 64:
			o.text = p.op(b64, "mad.lo.s64", x, fmt.Sprint(size), o.text)
		default:
			p.fail("index of type %s", index.Type())
		}
		o.imm = false
	}
	return o
}

func (p *printer) alloca(in *ir.InstAlloca) {
	n := int64(1)
	if in.NElems != nil {
		c, ok := in.NElems.(*constant.Int)
		if !ok || !c.X.IsInt64() || c.X.Int64() < 0 || c.X.Int64() > 1<<16 {
			p.fail("alloca of a size that is not constant")
			return
		}
		n = c.X.Int64()
	}
	off := (p.depot + 15) &^ 15
	p.depot = off + int(p.size(in.ElemType)*n)
	p.vals[in] = operand{text: "__depot", sym: true, off: int64(off), sp: locals}
}

// address is what stands in brackets, with the space of the access.
func (p *printer) address(ptr value.Value, off int64) (space, addr string, root *ir.Param) {
	o := p.get(ptr)
	o.off += off
	space = map[int]string{global: ".global", shared: ".shared", locals: ".local"}[o.sp]
	switch {
	case o.off == 0:
		return space, o.text, o.root
	case o.off < 0 && o.sym: // a symbol takes no negative offset
		o.text = p.base(o.text)
	}
	return space, fmt.Sprintf("%s+%d", o.text, o.off), o.root
}

// group says how many elements of how many bits one access moves.
func (p *printer) group(t types.Type, align int) (elems, n, width int) {
	width = bits(t)
	if width == 1 {
		p.fail("access to %s", t)
	}
	vt, ok := t.(*types.VectorType)
	if !ok {
		return 1, 1, width
	}
	elems = int(vt.Len)
	if align == 0 {
		align = elems * width / 8
	}
	for _, n := range []int{4, 2} {
		if elems%n == 0 && align >= n*width/8 && n*width <= 128 {
			return elems, n, width
		}
	}
	return elems, 1, width
}

// readOnly says that nothing writes what the parameter points to.
func readOnly(q *ir.Param) bool {
	if q == nil {
		return false
	}
	ro, na := false, false
	for _, a := range q.Attrs {
		ro = ro || a == ir.ParamAttribute(enum.ParamAttrReadOnly)
		na = na || a == ir.ParamAttribute(enum.ParamAttrNoAlias)
	}
	return ro && na
}

func list(x []string) string {
	if len(x) == 1 {
		return x[0]
	}
	return "{" + strings.Join(x, ", ") + "}"
}

func vector(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(".v%d", n)
}

func (p *printer) accessType(t types.Type, width int) string {
	switch {
	case width == 8:
		return "u8"
	case isHalf(t):
		return "b16"
	case p.class(t) == f32 || p.class(t) == f64:
		return fmt.Sprintf("f%d", width)
	}
	return fmt.Sprintf("u%d", width)
}

func (p *printer) load(in *ir.InstLoad) {
	elems, n, width := p.group(in.ElemType, int(in.Align))
	o := p.fresh(in.ElemType)
	all := o.vec
	if all == nil {
		all = []operand{o}
	}
	// eight halves at once: four words, taken apart
	packed := width == 16 && elems%8 == 0 && in.Align >= 16
	if packed {
		n = 8
	}
	for i := 0; i < elems; i += n {
		sp, addr, root := p.address(in.Src, int64(i*width/8))
		nc := ""
		if sp == ".global" && readOnly(root) {
			nc = ".nc"
		}
		if packed {
			words := make([]string, 4)
			for j := range words {
				words[j] = p.reg(b32)
			}
			p.emit("ld%s%s.v4.b32 \t%s, [%s]", sp, nc, list(words), addr)
			for j, w := range words {
				p.emit("mov.b32 \t{%s, %s}, %s", all[i+2*j].text, all[i+2*j+1].text, w)
			}
			continue
		}
		regs := make([]string, n)
		for j := range regs {
			regs[j] = all[i+j].text
		}
		p.emit("ld%s%s%s.%s \t%s, [%s]", sp, nc, vector(n), p.accessType(in.ElemType, width), list(regs), addr)
	}
	p.vals[in] = o
}

func (p *printer) store(in *ir.InstStore) {
	t := in.Src.Type()
	elems, n, width := p.group(t, int(in.Align))
	o := p.get(in.Src)
	all := o.vec
	if all == nil {
		if _, ok := t.(*types.PointerType); ok {
			o = operand{text: p.pointer(o, t)}
		}
		all = []operand{o}
	}
	c := p.class(t)
	packed := width == 16 && elems%8 == 0 && in.Align >= 16
	if packed {
		n = 8
	}
	for i := 0; i < elems; i += n {
		regs := make([]string, n)
		for j := range regs {
			regs[j] = p.register(all[i+j].text, c)
		}
		sp, addr, _ := p.address(in.Dst, int64(i*width/8))
		if packed {
			words := make([]string, 4)
			for j := range words {
				words[j] = p.op(b32, "mov.b32", "{"+regs[2*j]+", "+regs[2*j+1]+"}")
			}
			p.emit("st%s.v4.b32 \t[%s], %s", sp, addr, list(words))
			continue
		}
		p.emit("st%s%s.%s \t[%s], %s", sp, vector(n), p.accessType(t, width), addr, list(regs))
	}
}

func (p *printer) atomic(in *ir.InstAtomicRMW) {
	t := in.X.Type()
	c := p.class(t)
	n := bits(t)
	name, ok := map[enum.AtomicOp]string{enum.AtomicOpAdd: "add.u", enum.AtomicOpFAdd: "add.f", enum.AtomicOpAnd: "and.b", enum.AtomicOpOr: "or.b",
		enum.AtomicOpXor: "xor.b", enum.AtomicOpMin: "min.s", enum.AtomicOpMax: "max.s", enum.AtomicOpUMin: "min.u", enum.AtomicOpUMax: "max.u",
		enum.AtomicOpXChg: "exch.b"}[in.Op]
	if !ok || n < 32 {
		p.fail("atomic %s of %s", in.Op, t)
		return
	}
	sp, addr, _ := p.address(in.Dst, 0)
	d := p.reg(c)
	p.emit("atom%s.%s%d \t%s, [%s], %s", sp, name, n, d, addr, p.in(in.X))
	p.vals[in] = operand{text: d}
}

func (p *printer) call(in *ir.InstCall) {
	f, ok := in.Callee.(*ir.Func)
	if !ok {
		p.fail("call of %s", in.Callee)
		return
	}
	name := f.Name()
	if name == "llvm.nvvm.barrier0" {
		p.emit("bar.sync \t0")
		return
	}
	if sreg, ok := strings.CutPrefix(name, "llvm.nvvm.read.ptx.sreg."); ok {
		p.vals[in] = operand{text: p.op(b32, "mov.u32", "%"+sreg)}
		return
	}
	if shfl, ok := strings.CutPrefix(name, "llvm.nvvm.shfl.sync."); ok {
		mode, kind, _ := strings.Cut(shfl, ".")
		if len(in.Args) != 4 || kind != "i32" && kind != "f32" {
			p.fail("call of %s", name)
			return
		}
		c := p.class(in.Type())
		p.vals[in] = operand{text: p.op(c, "shfl.sync."+mode+".b32", p.register(p.in(in.Args[1]), c), p.in(in.Args[2]), p.in(in.Args[3]), p.in(in.Args[0]))}
		return
	}
	if name == "llvm.nvvm.vote.ballot.sync" && len(in.Args) == 2 {
		p.vals[in] = operand{text: p.op(b32, "vote.sync.ballot.b32", p.register(p.in(in.Args[1]), pred), p.in(in.Args[0]))}
		return
	}
	if name == llir.TF32 && len(in.Args) == 1 {
		p.vals[in] = operand{text: p.op(b32, llir.TF32Instruction, p.register(p.in(in.Args[0]), f32))}
		return
	}
	if kind := llir.Mma(name); kind != nil && len(in.Args) == llir.MmaOperands {
		p.mma(in, kind)
		return
	}
	if transposed, ok := llir.LoadedMatrices(name); ok && len(in.Args) == 1 {
		p.loadMatrices(in, transposed)
		return
	}
	if name == llir.CopyCommit {
		p.emit("cp.async.commit_group")
		return
	}
	if name == llir.CopyWait && len(in.Args) == 1 {
		p.emit("cp.async.wait_group \t%s", p.in(in.Args[0]))
		return
	}
	if cache, bytes, ok := llir.Copied(name); ok && len(in.Args) == 2 {
		to, dst, _ := p.address(in.Args[0], 0)
		from, src, _ := p.address(in.Args[1], 0)
		if to != ".shared" || from != ".global" {
			p.fail("asynchronous copy from %s to %s", in.Args[1].Type(), in.Args[0].Type())
			return
		}
		p.emit("cp.async.%s.shared.global \t[%s], [%s], %d", cache, dst, src, bytes)
		return
	}
	base, ok := strings.CutPrefix(name, "llvm.")
	base, _, _ = strings.Cut(base, ".")
	if !ok || strings.HasPrefix(name, "llvm.nvvm.") || len(in.Args) == 0 {
		p.fail("call of %s", name)
		return
	}
	p.intrinsic(in, name, base)
}

// mma prints a product of matrices by a warp.
func (p *printer) mma(in *ir.InstCall, kind *llir.MmaKind) {
	sum := f32
	if kind.Integer() {
		sum = b32
	}
	var x []string
	for i, a := range in.Args {
		o, known := p.vals[a]
		switch {
		case i >= 6:
			x = append(x, p.register(p.in(a), sum))
		case known && o.word != "":
			x = append(x, o.word)
		case llir.Pair(a.Type()):
			o = p.get(a)
			x = append(x, p.op(b32, "mov.b32", "{"+p.register(o.vec[0].text, b16)+", "+p.register(o.vec[1].text, b16)+"}"))
		default:
			x = append(x, p.register(p.in(a), b32))
		}
	}
	var d operand
	var regs []string
	for range 4 {
		regs = append(regs, p.reg(sum))
		d.vec = append(d.vec, operand{text: regs[len(regs)-1]})
	}
	p.emit("%s \t%s, %s, %s, %s", kind.Instruction(), list(regs), list(x[:4]), list(x[4:6]), list(x[6:]))
	p.vals[in] = d
}

// loadMatrices prints a read of four matrices by a warp.
func (p *printer) loadMatrices(in *ir.InstCall, transposed bool) {
	sp, addr, _ := p.address(in.Args[0], 0)
	if sp != ".shared" {
		p.fail("matrices at %s", in.Args[0].Type())
		return
	}
	trans := ""
	if transposed {
		trans = ".trans"
	}
	var d operand
	var regs []string
	for range 4 {
		regs = append(regs, p.reg(b32))
		d.vec = append(d.vec, operand{text: regs[len(regs)-1]})
	}
	p.emit("ldmatrix.sync.aligned.m8n8.x4%s.shared.b16 \t%s, [%s]", trans, list(regs), addr)
	p.vals[in] = d
}

func (p *printer) intrinsic(in *ir.InstCall, name, base string) {
	t := in.Type()
	n := bits(t)
	arity := map[string]int{"fma": 3, "minnum": 2, "maxnum": 2, "minimum": 2, "maximum": 2, "copysign": 2, "smin": 2, "smax": 2, "umin": 2, "umax": 2}[base]
	if len(in.Args) < max(arity, 1) {
		p.fail("%s with %d arguments", name, len(in.Args))
		return
	}
	switch base {
	case "fma":
		p.float(in, "fma.rn", in.Args...)
	case "minnum", "maxnum":
		p.float(in, base[:3], in.Args...)
	case "minimum":
		p.float(in, "min.NaN", in.Args...)
	case "maximum":
		p.float(in, "max.NaN", in.Args...)
	case "sqrt":
		p.wide(in, "sqrt.rn", in.Args...)
	case "rint", "nearbyint", "floor", "ceil", "trunc":
		round := map[string]string{"rint": "rni", "nearbyint": "rni", "floor": "rmi", "ceil": "rpi", "trunc": "rzi"}[base]
		if isHalf(t) {
			p.wide(in, "cvt."+round+".f32", in.Args...)
		} else {
			p.float(in, fmt.Sprintf("cvt.%s.f%d", round, n), in.Args...)
		}
	case "fabs":
		if isHalf(t) {
			p.each(in, func(x []string) string { return p.op(b16, "and.b16", x[0], "0x7FFF") }, in.Args...)
		} else {
			p.float(in, "abs", in.Args...)
		}
	case "copysign":
		p.copysign(in, t, n)
	case "smin", "smax", "umin", "umax":
		if n < 16 {
			p.fail("%s of i%d", base, n)
			return
		}
		p.integer(in, base[1:]+"."+base[:1], in.Args[0], in.Args[1])
	case "abs":
		if n < 16 {
			p.fail("%s of i%d", base, n)
			return
		}
		p.each(in, func(x []string) string { return p.op(p.class(t), fmt.Sprintf("abs.s%d", n), x...) }, in.Args[0])
	case "ctlz", "ctpop":
		op := map[string]string{"ctlz": "clz", "ctpop": "popc"}[base]
		if n < 32 {
			p.fail("%s of i%d", base, n)
			return
		}
		p.each(in, func(x []string) string {
			d := p.op(b32, fmt.Sprintf("%s.b%d", op, n), x...)
			if n == 64 {
				d = p.op(b64, "cvt.u64.u32", d)
			}
			return d
		}, in.Args[0])
	case "bitreverse":
		if n < 32 {
			p.fail("%s of i%d", base, n)
			return
		}
		p.each(in, func(x []string) string { return p.op(p.class(t), fmt.Sprintf("brev.b%d", n), x...) }, in.Args[0])
	case "fptosi", "fptoui":
		if !strings.Contains(name, ".sat.") || n < 32 {
			p.fail("call of %s", name)
			return
		}
		p.convert(in, in.Args[0], "f", base[4:5])
	default:
		p.fail("call of %s", name)
	}
}

func (p *printer) copysign(in *ir.InstCall, t types.Type, n int) {
	if !isHalf(t) {
		p.each(in, func(x []string) string { return p.op(p.class(t), fmt.Sprintf("copysign.f%d", n), x[1], x[0]) }, in.Args...)
		return
	}
	p.each(in, func(x []string) string {
		return p.op(b16, "or.b16", p.op(b16, "and.b16", x[0], "0x7FFF"), p.op(b16, "and.b16", x[1], "0x8000"))
	}, in.Args...)
}
