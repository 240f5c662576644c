package sim

import (
	"math"
	"strings"

	"github.com/aton-project/aton/codegen/gpu/internal/llir"
)

// in gives an operand of the width that the instruction has; an immediate becomes a constant.
func (r *ptxReader) in(o ptxOperand, width int) slot {
	switch {
	case o.list != nil || o.memory || o.second != "" || o.neg:
		r.fail("wrong kind of operand")
	case o.isImm:
		if o.isFlt != 0 && o.isFlt != width {
			r.fail("a literal of %d bytes where %d belong", o.isFlt, width)
		}
		return r.constant(width, o.imm)
	case strings.HasPrefix(o.name, "%"):
		if g, ok := r.register(o.name); ok && o.imm == 0 {
			if g.width != width {
				r.fail("register %s has %d bytes, not %d", o.name, g.width, width)
			}
			return g.s
		}
		if kind, dim, ok := sregNamed(o.name[1:]); ok && o.imm == 0 && width == 4 {
			return r.sreg(kind, dim)
		}
		r.fail("no register %s", o.name)
	default:
		if g, ok := r.register(o.name); ok && o.imm == 0 { // names need no percent sign
			if g.width != width {
				r.fail("register %s has %d bytes, not %d", o.name, g.width, width)
			}
			return g.s
		}
		return r.symbol(o, width)
	}
	return 0
}

// symbol is the address of a variable, in its space.
func (r *ptxReader) symbol(o ptxOperand, width int) slot {
	v, ok := r.objects[o.name]
	if !ok || width != 8 && width != 4 {
		r.fail("no variable %s", o.name)
		return 0
	}
	if !v.dynamic {
		return r.constant(width, uint64(v.off)+o.imm)
	}
	s := r.dynamicBase()
	if o.imm != 0 {
		s = r.addImm(s, o.imm)
	}
	if width == 4 {
		s = r.op(convertOp("u64", "u32"), r.line, 4, s)
	}
	return s
}

func (r *ptxReader) addImm(s slot, v uint64) slot {
	d := r.alloc(8)
	r.emit(inst{run: vectored("addimm", addImm), d: d, a: s, b: none, c: none, width: 8, guard: none, line: int32(r.line), imm: v})
	return d
}

// out is the destination register; it must have the width.
func (r *ptxReader) out(o ptxOperand, width int) slot {
	if o.list != nil || o.memory || o.isImm || o.second != "" || o.neg || o.imm != 0 {
		r.fail("wrong kind of destination")
		return 0
	}
	g, ok := r.register(o.name)
	if !ok {
		r.fail("no register %s", o.name)
		return 0
	}
	if g.width != width {
		r.fail("register %s has %d bytes, not %d", o.name, g.width, width)
	}
	return g.s
}

func (r *ptxReader) args(ops []ptxOperand, n int) bool {
	if len(ops) != n {
		r.fail("%d operands, not %d", len(ops), n)
		return false
	}
	return true
}

// simple is d = run(a, b, c), all of one width.
func (r *ptxReader) simple(run runner, ops []ptxOperand, n, width int) {
	if !r.args(ops, n+1) {
		return
	}
	var s []slot
	for _, o := range ops[1:] {
		s = append(s, r.in(o, width))
	}
	r.into(run, r.line, r.out(ops[0], width), width, s...)
}

// ptxMods is the mnemonic taken apart: the operation, the type at its end, what stands between.
type ptxMods struct {
	typ  string
	mods []string
}

func (m *ptxMods) take(name string) bool {
	for i, x := range m.mods {
		if x == name {
			m.mods = append(m.mods[:i:i], m.mods[i+1:]...)
			return true
		}
	}
	return false
}

func isFloatType(t string) bool { return t == "f16" || t == "f32" || t == "f64" }

// exact are what approximate instructions come near to, where no instruction is rounded.
var exact = map[string]func(float64) float64{"ex2": math.Exp2, "lg2": math.Log2, "sin": math.Sin, "cos": math.Cos, "tanh": math.Tanh,
	"rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) }}

var roughly = strings.NewReplacer(".approx", ".rn", ".full", ".rn", ".ftz", "")

func (r *ptxReader) instruction(name string, ops []ptxOperand, guard slot, neg bool) {
	if r.rough {
		name = roughly.Replace(name)
	}
	parts := strings.Split(name, ".")
	base := parts[0]
	m := &ptxMods{}
	if len(parts) > 1 {
		m.typ, m.mods = parts[len(parts)-1], parts[1:len(parts)-1]
	}
	w := typeWidth(m.typ)
	float := isFloatType(m.typ)
	if float {
		m.take("rn") // the default of add, sub, mul
	}
	switch base {
	case "bra", "ret", "exit", "trap", "bar", "barrier":
		r.control(base, name, ops, guard, neg)
		return
	case "ld", "ldu", "st":
		r.memory(base, m, ops)
		return
	case "mov":
		r.mov(m, ops)
		return
	case "cvta":
		r.cvta(m, ops)
		return
	case "cvt":
		if name == llir.TF32Instruction && r.args(ops, 2) {
			r.emit(inst{run: unary(toTF32), d: r.out(ops[0], 4), a: r.in(ops[1], 4), b: none, c: none, width: 4, guard: none, line: int32(r.line)})
			return
		}
		if name == "cvt.rn.f16x2.f32" && r.args(ops, 3) { // the first operand is the upper half
			pack := func(a, b float32) uint32 { return uint32(half(float64(a)))<<16 | uint32(half(float64(b))) }
			r.into(binary(pack), r.line, r.out(ops[0], 4), 4, r.in(ops[1], 4), r.in(ops[2], 4))
			return
		}
		r.cvt(m, ops)
		return
	case "setp":
		r.setp(m, ops)
		return
	case "selp":
		if r.args(ops, 4) {
			a, b := r.in(ops[1], w), r.in(ops[2], w)
			r.into(selectOp(w), r.line, r.out(ops[0], w), w, a, b, r.in(ops[3], 1))
		}
		return
	case "shfl":
		r.shfl(m, ops)
		return
	case "vote":
		if m.take("sync") && m.take("ballot") && m.typ == "b32" && r.args(ops, 3) {
			d := r.out(ops[0], 4)
			r.emit(inst{run: ballot, d: none, a: r.in(ops[1], 1), b: r.in(ops[2], 4), c: none, guard: none, line: int32(r.line), v: []slot{d}})
			return
		}
		r.fail("this form is not known")
		return
	case "mma":
		r.mma(name, ops)
		return
	case "ldmatrix":
		r.matrices(name, ops)
		return
	case "cp":
		r.copy(name, ops)
		return
	case "atom", "red":
		r.atom(base, m, ops)
		return
	}
	if w == 0 {
		r.fail("instruction is not known")
		return
	}
	var run runner
	n, width := 2, w
	signed := m.typ[0] == 's'
	sign := func(op string) string {
		if signed {
			return "s" + op
		}
		return "u" + op
	}
	switch base {
	case "add", "sub":
		if float {
			run = floatOp(base, w)
		} else if w > 1 {
			run = intOp(base, w)
		}
	case "mul", "mad":
		r.multiply(base, m, ops, w, float, signed)
		return
	case "fma":
		run, n = fmaOp(w), 3
		if !float {
			run = nil
		}
	case "div":
		if float && strings.HasPrefix(name, "div.rn.") {
			run = floatOp("div", w)
		} else if !float && w > 1 {
			run = intOp(sign("div"), w)
		}
	case "rem":
		if !float && w > 1 {
			run = intOp(sign("rem"), w)
		}
	case "min", "max":
		if float {
			if m.take("NaN") {
				run = floatOp(base+"nan", w)
			} else {
				run = floatOp(base, w)
			}
		} else if w > 1 {
			run = intOp(sign(base), w)
		}
	case "and", "or", "xor":
		if !float {
			run = intOp(base, w)
		}
	case "not":
		run, n = bitOp("not", w), 1
	case "neg":
		n = 1
		if float {
			run = signOp("neg", w)
		} else if w > 1 && r.args(ops, 2) {
			r.into(intOp("sub", w), r.line, r.out(ops[0], w), w, r.constant(w, 0), r.in(ops[1], w))
			return
		}
	case "abs":
		n = 1
		if float {
			run = signOp("abs", w)
		} else if w > 1 && r.args(ops, 2) {
			x := r.in(ops[1], w)
			minus := r.op(intOp("sub", w), r.line, w, r.constant(w, 0), x)
			r.into(intOp("smax", w), r.line, r.out(ops[0], w), w, x, minus)
			return
		}
	case "copysign": // sign of the first, magnitude of the second
		if float && r.args(ops, 3) {
			r.into(floatOp("copysign", w), r.line, r.out(ops[0], w), w, r.in(ops[2], w), r.in(ops[1], w))
			return
		}
	case "ex2", "lg2", "sin", "cos", "tanh", "rsqrt":
		n = 1
		if f := exact[base]; r.rough && m.typ == "f32" {
			run = unary(func(x float32) uint32 { return bits32(float32(f(float64(x)))) })
		}
	case "sqrt", "rcp":
		n = 1
		if float && w > 2 && strings.HasPrefix(name, base+".rn.") {
			run = roundOp(base, w)
		}
	case "shl", "shr":
		op := "shl"
		if base == "shr" {
			op = "lshr"
			if signed {
				op = "ashr"
			}
		}
		if w > 1 && !float && len(m.mods) == 0 && r.args(ops, 3) {
			r.into(shiftOp(op, w), r.line, r.out(ops[0], w), w, r.in(ops[1], w), r.in(ops[2], 4))
			return
		}
	case "popc", "clz", "brev":
		if (w == 4 || w == 8) && !float && len(m.mods) == 0 && r.args(ops, 2) {
			d := 4
			if base == "brev" {
				d = w
			}
			r.into(bitOp(base, w), r.line, r.out(ops[0], d), d, r.in(ops[1], w))
			return
		}
	case "bfe":
		if (w == 4 || w == 8) && !float && r.args(ops, 4) {
			r.into(bfeOp(w, signed), r.line, r.out(ops[0], w), w, r.in(ops[1], w), r.in(ops[2], 4), r.in(ops[3], 4))
			return
		}
	case "prmt":
		if w == 4 && len(m.mods) == 0 {
			run, n = ternary(prmt), 3
		}
	}
	if run == nil || len(m.mods) > 0 {
		r.fail("instruction is not known")
		return
	}
	r.simple(run, ops, n, width)
}

func prmt(a, b, c uint32) uint32 {
	x := uint64(b)<<32 | uint64(a)
	var out uint32
	for i := range 4 {
		s := c >> (4 * i) & 15
		v := uint32(x>>(8*(s&7))) & 255
		if s&8 != 0 {
			v = uint32(int32(int8(v))>>7) & 255
		}
		out |= v << (8 * i)
	}
	return out
}

// bfeOp takes a field of bits: b its position, c its length.
func bfeOp(width int, signed bool) runner {
	size := uint32(8 * width)
	field := func(x uint64, pos, n uint32) uint64 {
		pos, n = pos&255, n&255
		if n == 0 {
			return 0
		}
		top := min(pos+n-1, size-1)
		var fill uint64
		if signed && x>>top&1 != 0 {
			fill = ^uint64(0)
		}
		var out uint64
		if pos < size {
			out = x >> pos
		}
		if have := top + 1 - min(pos, top+1); have < 64 {
			out = out&(1<<have-1) | fill&^(1<<have-1)
		}
		if n < 64 {
			mask := uint64(1)<<n - 1
			out = out&mask | fill&^mask
		}
		return out
	}
	return func(w *worker, in *inst) {
		pos, n := whole[uint32](w, in.b), whole[uint32](w, in.c)
		for i := w.lo; i < w.hi; i++ {
			w.putAt(in.d, width, i, field(w.bitsAt(in.a, width, i), pos[i], n[i]))
		}
	}
}

func (r *ptxReader) multiply(base string, m *ptxMods, ops []ptxOperand, w int, float, signed bool) {
	if float {
		switch {
		case base == "mul" && len(m.mods) == 0:
			r.simple(floatOp("mul", w), ops, 2, w)
		case base == "mad" && len(m.mods) == 0 && w > 2:
			r.simple(fmaOp(w), ops, 3, w)
		default:
			r.fail("instruction is not known")
		}
		return
	}
	n := 3
	if base == "mad" {
		n = 4
	}
	if !r.args(ops, n) {
		return
	}
	switch {
	case len(m.mods) != 1 || w < 2:
		r.fail("instruction is not known")
	case m.mods[0] == "lo" && base == "mul":
		r.simple(intOp("mul", w), ops, 2, w)
	case m.mods[0] == "lo":
		run := vectored("mad i32", mad[uint32])
		switch w {
		case 2:
			run = mad[uint16]
		case 8:
			run = mad[uint64]
		}
		r.simple(run, ops, 3, w)
	case m.mods[0] == "hi" && base == "mul":
		op := "umulhi"
		if signed {
			op = "smulhi"
		}
		r.simple(intOp(op, w), ops, 2, w)
	case m.mods[0] == "wide" && w < 8:
		var run runner
		switch {
		case base == "mul" && w == 4 && signed:
			run = vectored("mulwide", mulWide[int32, int64])
		case base == "mul" && w == 4:
			run = mulWide[uint32, uint64]
		case base == "mul" && signed:
			run = mulWide[int16, int32]
		case base == "mul":
			run = mulWide[uint16, uint32]
		case w == 4 && signed:
			run = vectored("madwide3", madWide3[int32, int64])
		case w == 4:
			run = madWide3[uint32, uint64]
		case signed:
			run = madWide3[int16, int32]
		default:
			run = madWide3[uint16, uint32]
		}
		s := []slot{r.in(ops[1], w), r.in(ops[2], w)}
		if base == "mad" {
			s = append(s, r.in(ops[3], 2*w))
		}
		r.into(run, r.line, r.out(ops[0], 2*w), 2*w, s...)
	default:
		r.fail("instruction is not known")
	}
}

func (r *ptxReader) control(base, name string, ops []ptxOperand, guard slot, neg bool) {
	seg := &r.segs[r.cur]
	seg.line = int32(r.line)
	at := r.cur
	switch base {
	case "bra":
		if name != "bra" && name != "bra.uni" || !r.args(ops, 1) || ops[0].name == "" {
			r.fail("this form is not known")
			return
		}
		r.jumps = append(r.jumps, ptxJump{at, 0, ops[0].name, r.line})
		seg.term = termJump
		if guard == none {
			r.open = false
			return
		}
		seg.term, seg.cond, seg.neg = termBranch, guard, neg
		to := r.fresh()
		r.segs[at].to[1] = int32(to)
	case "ret", "exit":
		if name != "ret" && name != "exit" && name != "ret.uni" || !r.args(ops, 0) {
			r.fail("this form is not known")
			return
		}
		seg.term = termRet
		if guard == none {
			r.open = false
			return
		}
		seg.term, seg.cond, seg.neg = termBranch, guard, neg
		end := r.fresh()
		r.segs[end].term = termRet
		to := r.fresh()
		r.segs[at].to = [2]int32{int32(end), int32(to)}
	case "trap":
		seg.term = termTrap
		r.open = false
		if guard != none {
			r.fail("a conditional trap")
		}
	default:
		plain := name == "bar.sync" || name == "barrier.sync" || name == "barrier.sync.aligned" || name == "bar.cta.sync" || name == "barrier.cta.sync.aligned"
		if !plain || !r.args(ops, 1) || !ops[0].isImm || ops[0].imm != 0 || guard != none {
			r.fail("only bar.sync 0 is known")
			return
		}
		seg.term = termBarrier
		to := r.fresh()
		r.segs[at].to[0] = int32(to)
	}
}

func (r *ptxReader) mov(m *ptxMods, ops []ptxOperand) {
	w := typeWidth(m.typ)
	if w == 0 || len(m.mods) > 0 {
		r.fail("instruction is not known")
		return
	}
	if !r.args(ops, 2) {
		return
	}
	d, s := ops[0], ops[1]
	switch {
	case d.list != nil && s.list != nil:
		r.fail("lists on both sides")
	case s.list != nil:
		n := len(s.list)
		if w%n != 0 || w/n < 2 || n < 2 {
			r.fail("%d parts of %d bytes", n, w)
			return
		}
		var v []slot
		for _, o := range s.list {
			v = append(v, r.in(o, w/n))
		}
		r.emit(inst{run: packOp(w/n, w), d: r.out(d, w), a: none, b: none, c: none, width: int8(w), guard: none, line: int32(r.line), v: v})
	case d.list != nil:
		n := len(d.list)
		if w%n != 0 || w/n < 2 || n < 2 {
			r.fail("%d parts of %d bytes", n, w)
			return
		}
		a := r.in(s, w)
		t := r.op(movOp(w), r.line, w, a) // the source may be overwritten by the first part
		for i, o := range d.list {
			if o.name == "_" {
				continue
			}
			r.emit(inst{run: unpackOp(w, w/n), d: r.out(o, w/n), a: t, b: none, c: none, width: int8(w / n), guard: none, line: int32(r.line), imm: uint64(i * w / n * 8)})
		}
	default:
		if m.typ == "pred" && s.isImm {
			s.imm &= 1
		}
		r.into(movOp(w), r.line, r.out(d, w), w, r.in(s, w))
	}
}

func spaceMod(m *ptxMods) (space, bool) {
	switch {
	case m.take("global"):
		return global, true
	case m.take("shared"), m.take("shared::cta"):
		return shared, true
	case m.take("local"):
		return locals, true
	}
	return generic, false
}

func (r *ptxReader) cvta(m *ptxMods, ops []ptxOperand) {
	to := m.take("to")
	sp, ok := spaceMod(m)
	if !ok || m.typ != "u64" || len(m.mods) > 0 {
		r.fail("instruction is not known")
		return
	}
	if !r.args(ops, 2) {
		return
	}
	bias := toGeneric(sp)
	if to {
		bias = -bias
	}
	r.emit(inst{run: vectored("addimm", addImm), d: r.out(ops[0], 8), a: r.in(ops[1], 8), b: none, c: none, width: 8, guard: none, line: int32(r.line), imm: bias})
}

// fit brings a register's low bits to a narrower type, or widens a value to a register.
func (r *ptxReader) fit(s slot, from, to int, signed bool) slot {
	if from == to {
		return s
	}
	sign := "u"
	if signed && from < to {
		sign = "s"
	}
	name := func(w int) string { return sign + []string{1: "8", 2: "16", 4: "32", 8: "64"}[w] }
	return r.op(convertOp(name(from), name(to)), r.line, to, s)
}

func (r *ptxReader) memory(base string, m *ptxMods, ops []ptxOperand) {
	if !r.args(ops, 2) {
		return
	}
	w := typeWidth(m.typ)
	if w == 0 || m.typ == "pred" {
		r.fail("instruction is not known")
		return
	}
	reg, addr := ops[0], ops[1]
	store := base == "st"
	if store {
		reg, addr = addr, reg
	}
	if !addr.memory {
		r.fail("no address")
		return
	}
	if m.take("param") {
		r.loadParam(m, reg, addr, w, store)
		return
	}
	sp, _ := spaceMod(m)
	n := 1
	if m.take("v2") {
		n = 2
	} else if m.take("v4") {
		n = 4
	}
	m.take("nc")
	m.take("weak")
	for _, cache := range []string{"ca", "cg", "cs", "lu", "wb", "wt", "L1::no_allocate", "L1::evict_last", "L2::128B"} {
		m.take(cache)
	}
	if len(m.mods) > 0 || n*w > 16 {
		r.fail("instruction is not known")
		return
	}
	list := reg.list
	if n == 1 && list == nil {
		list = []ptxOperand{reg}
	}
	if len(list) != n {
		r.fail("%d registers for a vector of %d", len(list), n)
		return
	}
	r.access(sp, w)
	base2, off := r.addressOf(addr)
	if r.err != nil {
		return
	}
	signed := m.typ[0] == 's'
	if store {
		var v []slot
		for _, o := range list {
			if o.isImm {
				v = append(v, r.in(o, w))
				continue
			}
			g, ok := r.register(o.name)
			if !ok || g.width < w || o.memory || o.list != nil || o.imm != 0 || g.width == 1 {
				r.fail("register %s cannot be stored as %s", o.name, m.typ)
				return
			}
			v = append(v, r.fit(g.s, g.width, w, false))
		}
		r.emit(inst{run: storeOp(w, sp), d: none, a: base2, b: none, c: none, guard: none, line: int32(r.line), imm: off, v: v, dir: writes, bytes: int8(w * len(v)), space: sp})
		return
	}
	v := make([]slot, n)
	regs := make([]ptxReg, n)
	for i, o := range list {
		if o.name == "_" && n > 1 {
			v[i] = r.alloc(w)
			continue
		}
		g, ok := r.register(o.name)
		if !ok || g.width < w || g.width == 1 || o.memory || o.isImm || o.list != nil || o.imm != 0 {
			r.fail("%s cannot be loaded as %s", o.name, m.typ)
			return
		}
		regs[i] = g
		if v[i] = g.s; g.width != w {
			v[i] = r.alloc(w)
		}
	}
	r.emit(inst{run: loadOp(w, sp), d: none, a: base2, b: none, c: none, guard: none, line: int32(r.line), imm: off, v: v, dir: reads, bytes: int8(w * len(v)), space: sp})
	for i, g := range regs {
		if g.width > w {
			r.into(movOp(g.width), r.line, g.s, g.width, r.fit(v[i], w, g.width, signed))
		}
	}
}

// addressOf gives 64 bits of address and what is added to them.
func (r *ptxReader) addressOf(o ptxOperand) (slot, uint64) {
	if g, ok := r.register(o.name); ok {
		switch g.width {
		case 8:
			return g.s, o.imm
		case 4:
			return r.op(convertOp("u32", "u64"), r.line, 8, g.s), o.imm
		}
		r.fail("register %s is no address", o.name)
		return 0, 0
	}
	if o.name == "" {
		return r.constant(8, o.imm), 0
	}
	imm := o.imm
	o.imm = 0
	return r.symbol(ptxOperand{name: o.name}, 8), imm
}

func (r *ptxReader) loadParam(m *ptxMods, reg, addr ptxOperand, w int, store bool) {
	i, ok := r.params[addr.name]
	if store || !ok || addr.imm != 0 || len(m.mods) > 0 {
		r.fail("parameter access is not known")
		return
	}
	p := r.k.params[i]
	if int(p.width) != w {
		r.fail("parameter %s has %d bytes", p.name, p.width)
		return
	}
	g, ok := r.register(reg.name)
	if !ok || g.width < w || g.width == 1 {
		r.fail("no register %s", reg.name)
		return
	}
	r.into(movOp(g.width), r.line, g.s, g.width, r.fit(p.s, w, g.width, m.typ[0] == 's'))
}

func (r *ptxReader) setp(m *ptxMods, ops []ptxOperand) {
	w := typeWidth(m.typ)
	if !r.args(ops, 3) {
		return
	}
	if len(m.mods) != 1 || w == 0 || w == 1 {
		r.fail("instruction is not known")
		return
	}
	c := m.mods[0]
	var run runner
	if isFloatType(m.typ) {
		name := map[string]string{"eq": "oeq", "ne": "one", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "num": "ord", "nan": "uno",
			"equ": "ueq", "neu": "une", "ltu": "ult", "leu": "ule", "gtu": "ugt", "geu": "uge"}[c]
		run = floatCompareOp(name, w)
	} else {
		switch c {
		case "eq", "ne":
			run = compareOp(c, w)
		case "lt", "le", "gt", "ge":
			if m.typ[0] == 's' {
				run = compareOp("s"+c, w)
			} else {
				run = compareOp("u"+c, w)
			}
		case "lo", "ls", "hi", "hs":
			run = compareOp(map[string]string{"lo": "ult", "ls": "ule", "hi": "ugt", "hs": "uge"}[c], w)
		}
	}
	if run == nil {
		r.fail("comparison %s of %s", c, m.typ)
		return
	}
	r.into(run, r.line, r.out(ops[0], 1), 1, r.in(ops[1], w), r.in(ops[2], w))
}

func (r *ptxReader) cvt(m *ptxMods, ops []ptxOperand) {
	if !r.args(ops, 2) {
		return
	}
	if len(m.mods) == 0 || typeWidth(m.typ) == 0 {
		r.fail("instruction is not known")
		return
	}
	from := m.typ
	to := m.mods[len(m.mods)-1]
	m.mods = m.mods[:len(m.mods)-1]
	rn := false
	if isFloatType(from) { // taken already when the source is a float
		rn = true
	}
	rn = m.take("rn") || rn
	round := ""
	for mod, op := range map[string]string{"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"} {
		if m.take(mod) {
			round = op
		}
	}
	sat := m.take("sat")
	fw, tw := typeWidth(from), typeWidth(to)
	bad := len(m.mods) > 0 || fw == 0 || tw == 0 || from == "bf16" || to == "bf16" || from[0] == 'b' || to[0] == 'b' || from == "pred" || to == "pred"
	switch {
	case bad:
	case isFloatType(from) && isFloatType(to):
		bad = sat || round == "" && !rn || round != "" && from != to
	case isFloatType(from):
		bad = round == "" // saturation is what float to integer does anyway
	case isFloatType(to):
		bad = !rn || round != "" || sat
	default:
		bad = sat || round != ""
	}
	if bad {
		r.fail("this conversion is not known")
		return
	}
	g, ok := r.register(ops[0].name)
	if !ok || g.width < tw || g.width == 1 || ops[0].list != nil || ops[0].memory || ops[0].isImm {
		r.fail("no register %s for %s", ops[0].name, to)
		return
	}
	var s slot
	if ops[1].isImm {
		s = r.in(ops[1], fw)
	} else if x, ok := r.register(ops[1].name); ok && x.width >= fw && x.width > 1 && ops[1].list == nil && !ops[1].memory {
		s = r.fit(x.s, x.width, fw, false)
	} else if kind, dim, ok := sregNamed(strings.TrimPrefix(ops[1].name, "%")); ok && fw == 4 {
		s = r.sreg(kind, dim)
	} else {
		r.fail("no register %s for %s", ops[1].name, from)
		return
	}
	if isFloatType(from) && round != "" && (isFloatType(to) || round != "trunc") {
		s = r.op(roundOp(round, fw), r.line, fw, s)
		if isFloatType(to) {
			r.into(movOp(tw), r.line, g.s, tw, s)
			return
		}
	}
	if from == to && isFloatType(from) || !isFloatType(from) && !isFloatType(to) && fw == tw && g.width == tw {
		r.into(movOp(tw), r.line, g.s, tw, s)
		return
	}
	run := convertOp(from, to)
	if g.width == tw {
		r.into(run, r.line, g.s, tw, s)
		return
	}
	v := r.op(run, r.line, tw, s)
	r.into(movOp(g.width), r.line, g.s, g.width, r.fit(v, tw, g.width, to[0] == 's'))
}

func (r *ptxReader) shfl(m *ptxMods, ops []ptxOperand) {
	if !m.take("sync") || len(m.mods) != 1 || m.typ != "b32" {
		r.fail("this form is not known")
		return
	}
	run := shuffle(m.mods[0])
	if run == nil {
		r.fail("this form is not known")
		return
	}
	if !r.args(ops, 5) {
		return
	}
	p := none
	if ops[0].second != "" {
		p = r.pred(ops[0].second)
		ops[0].second = ""
	}
	d := r.out(ops[0], 4)
	r.emit(inst{run: run, d: none, a: r.in(ops[1], 4), b: r.in(ops[2], 4), c: r.in(ops[3], 4), guard: none, line: int32(r.line), v: []slot{d, p, r.in(ops[4], 4)}})
}

func (r *ptxReader) atom(base string, m *ptxMods, ops []ptxOperand) {
	sp, _ := spaceMod(m)
	for _, x := range []string{"relaxed", "gpu", "cta"} {
		m.take(x)
	}
	n := 3
	if base == "red" {
		n = 2
	}
	w := typeWidth(m.typ)
	if !r.args(ops, n) {
		return
	}
	if len(m.mods) != 1 || w < 4 {
		r.fail("instruction is not known")
		return
	}
	op := m.mods[0]
	switch op {
	case "exch":
		op = "xchg"
	case "min", "max":
		if m.typ[0] == 'u' {
			op = "u" + op
		}
	case "add":
		if isFloatType(m.typ) {
			op = "fadd"
			r.k.serial = true
		}
	}
	if isFloatType(m.typ) && op != "fadd" {
		r.fail("instruction is not known")
		return
	}
	run := atomicOp(op, w, sp)
	if run == nil {
		r.fail("instruction is not known")
		return
	}
	d := none
	if base == "atom" {
		d = r.out(ops[0], w)
		ops = ops[1:]
	}
	if !ops[0].memory {
		r.fail("no address")
		return
	}
	r.access(sp, w)
	addr, off := r.addressOf(ops[0])
	r.emit(inst{run: run, d: none, a: addr, b: r.in(ops[1], w), c: d, guard: none, line: int32(r.line), imm: off, dir: updates, bytes: int8(w), space: sp})
}
