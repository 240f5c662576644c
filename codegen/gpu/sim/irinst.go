package sim

import (
	"math"
	"strings"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"github.com/aton-project/aton/codegen/gpu/internal/llir"
)

func (r *irReader) define(in value.Value, o operand) { r.values[in] = o }

// each applies an operation to scalars, or to the elements of vectors.
func (r *irReader) each(in value.Value, run runner, args ...value.Value) {
	r.eachWidth(in, run, r.width(in.Type()), args...)
}

func (r *irReader) eachWidth(in value.Value, run runner, width int, args ...value.Value) {
	ops := make([]operand, len(args))
	for i, a := range args {
		ops[i] = r.get(a)
		ops[i].s = r.address(ops[i])
	}
	if len(ops) == 0 || ops[0].vec == nil {
		slots := make([]slot, len(ops))
		for i, o := range ops {
			slots[i] = o.s
		}
		r.define(in, operand{s: r.op(run, r.line, width, slots...)})
		return
	}
	var o operand
	for e := range ops[0].vec {
		slots := make([]slot, len(ops))
		for i, x := range ops {
			if e >= len(x.vec) {
				r.fail("vectors of different lengths")
				return
			}
			slots[i] = x.vec[e]
		}
		o.vec = append(o.vec, r.op(run, r.line, width, slots...))
	}
	r.define(in, o)
}

// classOf is what an instruction counts as, and its floating-point operations.
func classOf(in ir.Instruction) (c Class, flops int16) {
	switch in := in.(type) {
	case *ir.InstAdd, *ir.InstSub, *ir.InstMul, *ir.InstUDiv, *ir.InstSDiv, *ir.InstURem, *ir.InstSRem,
		*ir.InstAnd, *ir.InstOr, *ir.InstXor, *ir.InstShl, *ir.InstLShr, *ir.InstAShr, *ir.InstGetElementPtr:
		return Integer, 0
	case *ir.InstFAdd, *ir.InstFSub, *ir.InstFMul, *ir.InstFDiv:
		return Float, 1
	case *ir.InstFNeg:
		return Float, 0
	case *ir.InstCall:
		f, ok := in.Callee.(*ir.Func)
		if !ok {
			return Other, 0
		}
		switch name := strings.TrimPrefix(f.Name(), "llvm."); {
		case strings.HasPrefix(name, "fma."):
			return Fma, 2
		case strings.HasPrefix(name, "sqrt."):
			return Float, 1
		case strings.HasPrefix(name, "nvvm.shfl."), strings.HasPrefix(name, "nvvm.vote."):
			return Warp, 0
		case types.IsFloat(in.Type()):
			return Float, 0
		}
	}
	return Other, 0
}

func (r *irReader) instruction(in ir.Instruction) {
	r.class, r.flops = classOf(in)
	defer func() { r.class, r.flops = Other, 0 }()
	switch in := in.(type) {
	case *ir.InstPhi:
	case *ir.InstAdd:
		r.integer(in, "add", in.X, in.Y)
	case *ir.InstSub:
		r.integer(in, "sub", in.X, in.Y)
	case *ir.InstMul:
		r.integer(in, "mul", in.X, in.Y)
	case *ir.InstUDiv:
		r.integer(in, "udiv", in.X, in.Y)
	case *ir.InstSDiv:
		r.integer(in, "sdiv", in.X, in.Y)
	case *ir.InstURem:
		r.integer(in, "urem", in.X, in.Y)
	case *ir.InstSRem:
		r.integer(in, "srem", in.X, in.Y)
	case *ir.InstAnd:
		r.integer(in, "and", in.X, in.Y)
	case *ir.InstOr:
		r.integer(in, "or", in.X, in.Y)
	case *ir.InstXor:
		r.integer(in, "xor", in.X, in.Y)
	case *ir.InstShl:
		r.shift(in, "shl", in.X, in.Y)
	case *ir.InstLShr:
		r.shift(in, "lshr", in.X, in.Y)
	case *ir.InstAShr:
		r.shift(in, "ashr", in.X, in.Y)
	case *ir.InstFAdd:
		r.each(in, floatOp("add", r.width(in.Type())), in.X, in.Y)
	case *ir.InstFSub:
		r.each(in, floatOp("sub", r.width(in.Type())), in.X, in.Y)
	case *ir.InstFMul:
		r.each(in, floatOp("mul", r.width(in.Type())), in.X, in.Y)
	case *ir.InstFDiv:
		r.each(in, floatOp("div", r.width(in.Type())), in.X, in.Y)
	case *ir.InstFNeg:
		r.each(in, signOp("neg", r.width(in.Type())), in.X)
	case *ir.InstICmp:
		if isI1(in.X.Type()) && in.Pred != enum.IPredEQ && in.Pred != enum.IPredNE {
			r.fail("ordering of i1")
			return
		}
		r.eachWidth(in, compareOp(in.Pred.String(), r.width(in.X.Type())), 1, in.X, in.Y)
	case *ir.InstFCmp:
		r.eachWidth(in, floatCompareOp(in.Pred.String(), r.width(in.X.Type())), 1, in.X, in.Y)
	case *ir.InstSelect:
		r.choose(in)
	case *ir.InstFreeze:
		r.define(in, r.get(in.X))
	case *ir.InstTrunc:
		r.convert(in, in.From, "u", "u")
	case *ir.InstZExt:
		r.convert(in, in.From, "u", "u")
	case *ir.InstSExt:
		r.convert(in, in.From, "s", "s")
	case *ir.InstFPTrunc:
		r.convert(in, in.From, "f", "f")
	case *ir.InstFPExt:
		r.convert(in, in.From, "f", "f")
	case *ir.InstFPToUI:
		r.convert(in, in.From, "f", "u")
	case *ir.InstFPToSI:
		r.convert(in, in.From, "f", "s")
	case *ir.InstUIToFP:
		r.convert(in, in.From, "u", "f")
	case *ir.InstSIToFP:
		r.convert(in, in.From, "s", "f")
	case *ir.InstPtrToInt:
		if r.width(in.To) != 8 {
			r.fail("pointers have 64 bits")
		}
		r.define(in, operand{s: r.address(r.get(in.From))})
	case *ir.InstIntToPtr:
		if r.width(in.From.Type()) != 8 {
			r.fail("pointers have 64 bits")
		}
		r.define(in, r.get(in.From))
	case *ir.InstBitCast:
		r.bitcast(in)
	case *ir.InstAddrSpaceCast:
		r.define(in, r.addrSpaceCast(r.get(in.From), in.From.Type(), in.To))
	case *ir.InstGetElementPtr:
		r.define(in, r.gep(in.ElemType, in.Src, in.Indices))
	case *ir.InstExtractValue:
		if o := r.get(in.X); len(in.Indices) == 1 && in.Indices[0] < uint64(len(o.vec)) {
			r.define(in, operand{s: o.vec[in.Indices[0]]})
		} else {
			r.fail("a part of %s", in.X.Type())
		}
	case *ir.InstExtractElement:
		o := r.get(in.X)
		if i, ok := r.element(in.Index, o); ok {
			r.define(in, operand{s: o.vec[i]})
		}
	case *ir.InstInsertElement:
		o := r.get(in.X)
		if i, ok := r.element(in.Index, o); ok {
			vec := append([]slot(nil), o.vec...)
			vec[i] = r.get(in.Elem).s
			r.define(in, operand{vec: vec})
		}
	case *ir.InstShuffleVector:
		r.shuffle(in)
	case *ir.InstAlloca:
		n := 1
		if in.NElems != nil {
			c, ok := in.NElems.(*constant.Int)
			if !ok || !c.X.IsInt64() || c.X.Int64() < 0 || c.X.Int64() > maxLocal {
				r.fail("alloca of a size that is not constant")
				return
			}
			n = int(c.X.Int64())
		}
		size := r.size(in.ElemType) * n
		off := (r.k.local + 15) &^ 15
		if r.k.local = (off + size + 7) &^ 7; r.k.local > maxLocal {
			r.fail("more than %d bytes of local memory", maxLocal)
			return
		}
		addr := uint64(off)
		if in.AddrSpace == 0 {
			addr += toGeneric(locals)
		}
		r.define(in, operand{s: r.constant(8, addr)})
	case *ir.InstLoad:
		if in.Volatile || in.Atomic {
			r.fail("volatile or atomic load")
			return
		}
		o := r.fresh(in.ElemType)
		r.define(in, o)
		r.access(in.ElemType, in.Src, int(in.Align), o, false)
	case *ir.InstStore:
		if in.Volatile || in.Atomic {
			r.fail("volatile or atomic store")
			return
		}
		v := r.get(in.Src)
		v.s, v.off = r.address(v), 0
		r.access(in.Src.Type(), in.Dst, int(in.Align), v, true)
	case *ir.InstAtomicRMW:
		r.atomic(in)
	case *ir.InstCall:
		r.call(in)
	default:
		r.fail("instruction %T", in)
	}
}

func (r *irReader) element(index value.Value, o operand) (int, bool) {
	i, ok := llir.VectorIndex(index, len(o.vec))
	if !ok {
		r.fail("vector index %s", index)
	}
	return i, ok
}

func (r *irReader) shuffle(in *ir.InstShuffleVector) {
	x := append(append([]slot(nil), r.get(in.X).vec...), r.get(in.Y).vec...)
	var o operand
	mask, ok := in.Mask.(*constant.Vector)
	if !ok {
		if z, zero := in.Mask.(*constant.ZeroInitializer); zero && len(x) > 0 {
			for range z.Type().(*types.VectorType).Len {
				o.vec = append(o.vec, x[0])
			}
			r.define(in, o)
			return
		}
		r.fail("shuffle mask %s", in.Mask)
		return
	}
	for _, e := range mask.Elems {
		c, ok := e.(*constant.Int)
		if !ok {
			o.vec = append(o.vec, r.constant(r.width(in.Type()), 0))
			continue
		}
		i, ok := r.element(c, operand{vec: x})
		if !ok {
			return
		}
		o.vec = append(o.vec, x[i])
	}
	r.define(in, o)
}

func (r *irReader) integer(in value.Value, op string, x, y value.Value) {
	if isI1(x.Type()) && op != "and" && op != "or" && op != "xor" {
		r.fail("%s of i1", op)
		return
	}
	if c, ok := y.(*constant.Int); ok && op == "udiv" && r.width(in.Type()) == 4 && c.X.IsInt64() {
		if n := uint32(c.X.Int64()); n > 1 {
			d := r.alloc(4)
			r.emit(inst{run: udivBy, d: d, a: r.get(x).s, b: none, c: none, width: 4, guard: none, line: int32(r.line), imm: math.MaxUint64/uint64(n) + 1})
			r.define(in, operand{s: d})
			return
		}
	}
	r.each(in, intOp(op, r.width(in.Type())), x, y)
}

// shift brings the amount to 32 bits, as PTX wants it.
func (r *irReader) shift(in value.Value, op string, x, y value.Value) {
	w := r.width(in.Type())
	a, b := r.get(x), r.get(y)
	if a.vec != nil || isI1(x.Type()) {
		r.fail("shift of %s", x.Type())
		return
	}
	amount := b.s
	if w != 4 {
		amount = r.op(convertOp(scalarName("u", y.Type()), "u32"), r.line, 4, b.s)
	}
	r.define(in, operand{s: r.op(shiftOp(op, w), r.line, w, a.s, amount)})
}

func (r *irReader) choose(in *ir.InstSelect) {
	c, x, y := r.get(in.Cond), r.get(in.ValueTrue), r.get(in.ValueFalse)
	w := r.width(in.Type())
	if x.vec == nil {
		r.define(in, operand{s: r.op(selectOp(w), r.line, w, r.address(x), r.address(y), c.s)})
		return
	}
	var o operand
	for i := range x.vec {
		cond := c.s
		if c.vec != nil {
			cond = c.vec[i]
		}
		o.vec = append(o.vec, r.op(selectOp(w), r.line, w, x.vec[i], y.vec[i], cond))
	}
	r.define(in, o)
}

// scalarName is the name convertOp has for a scalar, or a vector's element; sign is s, u or f.
func scalarName(sign string, t types.Type) string {
	if v, ok := t.(*types.VectorType); ok {
		t = v.ElemType
	}
	switch t := t.(type) {
	case *types.IntType:
		switch t.BitSize {
		case 1:
			return "i1"
		case 8:
			return sign + "8"
		case 16:
			return sign + "16"
		case 32:
			return sign + "32"
		case 64:
			return sign + "64"
		}
	case *types.FloatType:
		switch t.Kind {
		case types.FloatKindHalf:
			return "f16"
		case types.FloatKindFloat:
			return "f32"
		case types.FloatKindDouble:
			return "f64"
		}
	}
	return "?"
}

// convert translates a cast. i1 is 0 or 1 in a byte: widened signed it is 0 or -1, and truncation to it keeps one bit.
func (r *irReader) convert(in value.Value, from value.Value, a, b string) {
	s, d := scalarName(a, from.Type()), scalarName(b, in.Type())
	if d == "i1" {
		if s[0] == 'f' {
			r.fail("float to i1")
			return
		}
		w := r.width(from.Type())
		o := r.get(from)
		var out operand
		for _, x := range o.slots() {
			bit := r.op(intOp("and", w), r.line, w, x, r.constant(w, 1))
			if w > 1 {
				bit = r.op(convertOp(s, "u8"), r.line, 1, bit)
			}
			out.vec = append(out.vec, bit)
		}
		if o.vec == nil {
			out = operand{s: out.vec[0]}
		}
		r.define(in, out)
		return
	}
	if s == "i1" {
		if a == "s" {
			o := r.get(from)
			if o.vec != nil {
				r.fail("cast of %s", from.Type())
				return
			}
			neg := r.op(intOp("sub", 1), r.line, 1, r.constant(1, 0), o.s)
			w := r.width(in.Type())
			r.define(in, operand{s: r.op(convertOp("s8", d), r.line, w, neg)})
			return
		}
		s = "u8"
	}
	if s[0] == 'f' && (d == "s8" || d == "u8") { // through 16 bits, then cut, as the device does it
		mid := b + "16"
		o := r.get(from)
		var out operand
		for _, x := range o.slots() {
			out.vec = append(out.vec, r.op(convertOp("u16", "u8"), r.line, 1, r.op(convertOp(s, mid), r.line, 2, x)))
		}
		if o.vec == nil {
			out = operand{s: out.vec[0]}
		}
		r.define(in, out)
		return
	}
	r.each(in, convertOp(s, d), from)
}

// bitcast keeps the slots where the elements stay as wide, and packs or unpacks where not.
func (r *irReader) bitcast(in *ir.InstBitCast) {
	o := r.get(in.From)
	if llir.Pair(in.To) && in.From.Type().Equal(types.I32) {
		r.define(in, operand{s: o.s, pair: true})
		return
	}
	if _, ok := in.To.(*types.PointerType); ok {
		r.define(in, o)
		return
	}
	from, to := r.width(in.From.Type()), r.width(in.To)
	_, vec := in.To.(*types.VectorType)
	switch {
	case isI1(in.To) != isI1(in.From.Type()):
		r.fail("bitcast between i1 and %s", in.To)
	case from == to:
		s := o.slots()
		if vec {
			r.define(in, operand{vec: s})
		} else {
			r.define(in, operand{s: s[0]})
		}
	case from < to: // several small elements make one
		n := to / from
		var out operand
		s := o.slots()
		for i := 0; i+n <= len(s); i += n {
			d := r.alloc(to)
			r.emit(inst{run: packOp(from, to), d: d, a: none, b: none, c: none, width: int8(to), guard: none, line: int32(r.line), v: s[i : i+n]})
			out.vec = append(out.vec, d)
		}
		if !vec && len(out.vec) == 1 {
			out = operand{s: out.vec[0]}
		}
		r.define(in, out)
	default:
		n := from / to
		var out operand
		for _, s := range o.slots() {
			out.vec = append(out.vec, r.unpack(s, from, n)...)
		}
		r.define(in, out)
	}
}

// unpack takes a word of some bytes apart, into n smaller ones.
func (r *irReader) unpack(s slot, from, n int) (out []slot) {
	to := from / n
	for i := range n {
		d := r.alloc(to)
		r.emit(inst{run: unpackOp(from, to), d: d, a: s, b: none, c: none, width: int8(to), guard: none, line: int32(r.line), imm: uint64(i * to * 8)})
		out = append(out, d)
	}
	return out
}

// mma translates a product of matrices by a warp.
func (r *irReader) mma(in *ir.InstCall, kind *llir.MmaKind) {
	r.class, r.flops = Other, 0 // of what packs the operands
	v := make([]slot, 4, 4+llir.MmaOperands)
	for i := range v {
		v[i] = r.alloc(4)
	}
	for i, a := range in.Args {
		switch o, known := r.values[a]; {
		case known && o.pair && i < 6:
			v = append(v, o.s)
		case llir.Pair(a.Type()):
			d := r.alloc(4)
			r.emit(inst{run: packOp(2, 4), d: d, a: none, b: none, c: none, width: 4, guard: none, line: int32(r.line), v: r.get(a).vec})
			v = append(v, d)
		default:
			if r.width(a.Type()) != 4 {
				r.fail("mma of %s", a.Type())
				return
			}
			v = append(v, r.get(a).s)
		}
	}
	r.class, r.flops = Matrix, mmaFlops(kind)
	r.emit(inst{run: mma(kind), d: none, a: none, b: none, c: none, guard: none, line: int32(r.line), v: v})
	r.define(in, operand{vec: v[:4:4]})
}

// accessAt emits loads or stores of a scalar or vector. A vector that is not aligned to its size is taken apart.
func (r *irReader) accessAt(t types.Type, sp space, addr slot, off uint64, align int, v operand, write bool) {
	w := r.size(t)
	if vt, ok := t.(*types.VectorType); ok {
		w = r.size(vt.ElemType)
	}
	slots := v.slots()
	group := len(slots)
	total := w * group
	if group > 1 && (align < total || group&(group-1) != 0 || total > 16) {
		group = 1
		for _, n := range []int{16, 8, 4, 2} {
			if len(slots)%n == 0 && align >= n*w && n*w <= 16 {
				group = n
				break
			}
		}
	}
	r.builder.access(sp, w)
	run, dir := loadOp(w, sp), reads
	if write {
		run, dir = storeOp(w, sp), writes
	}
	for i := 0; i < len(slots); i += group {
		r.emit(inst{run: run, d: none, a: addr, b: none, c: none, guard: none, line: int32(r.line), imm: off + uint64(i*w), v: slots[i : i+group],
			dir: dir, bytes: int8(w * group), space: sp})
	}
}

func (r *irReader) access(t types.Type, ptr value.Value, align int, v operand, write bool) {
	pt, ok := ptr.Type().(*types.PointerType)
	if !ok {
		r.fail("access through %s", ptr.Type())
		return
	}
	sp, ok := spaceOf(pt)
	if !ok || isI1(t) {
		r.fail("access to %s in address space %d", t, pt.AddrSpace)
		return
	}
	if vt, vec := t.(*types.VectorType); vec {
		if isI1(vt.ElemType) {
			r.fail("access to %s", t)
			return
		}
		if align == 0 {
			align = r.size(t) // what LLVM takes for the missing alignment
		}
	}
	p := r.get(ptr)
	r.accessAt(t, sp, p.s, p.off, align, v, write)
}

func spaceOf(t *types.PointerType) (space, bool) {
	switch sp := space(t.AddrSpace); sp {
	case generic, global, shared, locals:
		return sp, true
	}
	return 0, false
}

func (r *irReader) atomic(in *ir.InstAtomicRMW) {
	pt := in.Dst.Type().(*types.PointerType)
	sp, ok := spaceOf(pt)
	w := r.width(in.X.Type())
	_, isFloat := in.X.Type().(*types.FloatType)
	name := in.Op.String()
	run := atomicOp(name, w, sp)
	if !ok || run == nil || isFloat && in.Op != enum.AtomicOpFAdd && in.Op != enum.AtomicOpXChg {
		r.fail("atomic %s of %s", name, in.X.Type())
		return
	}
	r.k.serial = r.k.serial || in.Op == enum.AtomicOpFAdd
	r.builder.access(sp, w)
	p := r.get(in.Dst)
	d := r.alloc(w)
	r.emit(inst{run: run, d: none, a: p.s, b: r.get(in.X).s, c: d, guard: none, line: int32(r.line), imm: p.off,
		dir: updates, bytes: int8(w), space: sp})
	r.define(in, operand{s: d})
}

func (r *irReader) call(in *ir.InstCall) {
	f, ok := in.Callee.(*ir.Func)
	if !ok {
		r.fail("call of %s", in.Callee)
		return
	}
	name := f.Name()
	if name == "llvm.nvvm.barrier0" {
		seg := &r.segs[r.cur]
		seg.term, seg.line = termBarrier, int32(r.line)
		seg.to[0] = int32(r.cur + 1)
		r.segment()
		return
	}
	if sreg, ok := strings.CutPrefix(name, "llvm.nvvm.read.ptx.sreg."); ok {
		kind, dim, ok := sregNamed(sreg)
		if !ok {
			r.fail("special register %s", sreg)
			return
		}
		r.define(in, operand{s: r.sreg(kind, dim)})
		return
	}
	if shfl, ok := strings.CutPrefix(name, "llvm.nvvm.shfl.sync."); ok {
		mode, _, _ := strings.Cut(shfl, ".")
		if len(in.Args) != 4 {
			r.fail("shuffle with %d arguments", len(in.Args))
			return
		}
		var s [4]slot
		for i, a := range in.Args {
			s[i] = r.get(a).s
		}
		d := r.alloc(4)
		r.emit(inst{run: shuffle(mode), d: none, a: s[1], b: s[2], c: s[3], guard: none, line: int32(r.line), v: []slot{d, none, s[0]}})
		r.define(in, operand{s: d})
		return
	}
	if name == "llvm.nvvm.vote.ballot.sync" && len(in.Args) == 2 {
		d := r.alloc(4)
		r.emit(inst{run: ballot, d: none, a: r.get(in.Args[1]).s, b: r.get(in.Args[0]).s, c: none, guard: none, line: int32(r.line), v: []slot{d}})
		r.define(in, operand{s: d})
		return
	}
	if name == llir.TF32 && len(in.Args) == 1 {
		r.each(in, unary(toTF32), in.Args[0])
		return
	}
	if kind := llir.Mma(name); kind != nil && len(in.Args) == llir.MmaOperands {
		r.mma(in, kind)
		return
	}
	if transposed, ok := llir.LoadedMatrices(name); ok && len(in.Args) == 1 {
		var d operand
		for range 4 {
			d.vec = append(d.vec, r.alloc(4))
		}
		at := r.get(in.Args[0])
		r.loadMatrices(at.s, at.off, transposed, d.vec, r.line)
		r.define(in, d)
		return
	}
	if name == llir.CopyCommit {
		r.emit(inst{run: commitCopies, d: none, a: none, b: none, c: none, guard: none, line: int32(r.line)})
		return
	}
	if name == llir.CopyWait && len(in.Args) == 1 {
		n, ok := in.Args[0].(*constant.Int)
		if !ok || n.X.Sign() < 0 || !n.X.IsInt64() {
			r.fail("wait for all but %s groups", in.Args[0])
			return
		}
		r.emit(inst{run: waitCopies(n.X.Int64()), d: none, a: none, b: none, c: none, guard: none, line: int32(r.line)})
		return
	}
	if _, bytes, ok := llir.Copied(name); ok && len(in.Args) == 2 {
		to, from := r.get(in.Args[0]), r.get(in.Args[1])
		r.copyAsync(from.s, from.off, to.s, to.off, none, bytes, r.line)
		return
	}
	r.intrinsic(in, name)
}

func (r *irReader) intrinsic(in *ir.InstCall, name string) {
	base, ok := strings.CutPrefix(name, "llvm.")
	base, _, _ = strings.Cut(base, ".")
	if !ok || strings.HasPrefix(name, "llvm.nvvm.") || len(in.Args) == 0 {
		r.fail("call of %s", name)
		return
	}
	w := r.width(in.Type())
	arity := func(n int) bool {
		if len(in.Args) < n {
			r.fail("%s with %d arguments", name, len(in.Args))
			return false
		}
		return true
	}
	switch base {
	case "fma":
		if arity(3) {
			r.each(in, fmaOp(w), in.Args...)
		}
	case "rint", "floor", "ceil", "trunc", "sqrt", "round":
		r.each(in, roundOp(base, w), in.Args...)
	case "nearbyint":
		r.each(in, roundOp("rint", w), in.Args...)
	case "fabs":
		r.each(in, signOp("abs", w), in.Args...)
	case "minnum", "maxnum", "minimum", "maximum", "copysign":
		if arity(2) {
			op := map[string]string{"minnum": "min", "maxnum": "max", "minimum": "minnan", "maximum": "maxnan", "copysign": base}[base]
			r.each(in, floatOp(op, w), in.Args...)
		}
	case "smin", "smax", "umin", "umax":
		if arity(2) {
			r.each(in, intOp(base, w), in.Args...)
		}
	case "abs":
		x := r.get(in.Args[0]).s
		neg := r.op(intOp("sub", w), r.line, w, r.constant(w, 0), x)
		r.define(in, operand{s: r.op(intOp("smax", w), r.line, w, x, neg)})
	case "ctlz", "ctpop":
		op := map[string]string{"ctlz": "clz", "ctpop": "popc"}[base]
		d := r.op(bitOp(op, w), r.line, 4, r.get(in.Args[0]).s)
		if w == 8 {
			d = r.op(convertOp("u32", "u64"), r.line, 8, d)
		}
		r.define(in, operand{s: d})
	case "bitreverse":
		r.each(in, bitOp("brev", w), in.Args[0])
	case "fptosi", "fptoui": // .sat
		sign := base[4:5]
		if !strings.Contains(name, ".sat.") {
			r.fail("call of %s", name)
			return
		}
		r.convert(in, in.Args[0], "f", sign)
	default:
		r.fail("call of %s", name)
	}
}
