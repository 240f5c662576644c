package sim

import (
	"slices"
	"strings"

	"github.com/aton-project/aton/codegen/gpu/isa"
)

// in gives an operand of the width that the instruction has; an immediate becomes a constant.
func (r *ptxReader) in(o ptxOperand, width int) slot {
	if o.list != nil || o.memory || o.second != "" || o.neg {
		r.fail("wrong kind of operand")
		return 0
	}
	if o.isImm {
		if o.isFlt != 0 && o.isFlt != width {
			r.fail("a literal of %d bytes where %d belong", o.isFlt, width)
		}
		if width == 1 { // a predicate
			o.imm &= 1
		}
		return r.constant(width, o.imm)
	}
	if g, ok := r.register(o.name); ok && o.imm == 0 { // names need no percent sign
		if g.width != width {
			r.fail("register %s has %d bytes, not %d", o.name, g.width, width)
		}
		return g.s
	}
	if !strings.HasPrefix(o.name, "%") {
		return r.symbol(o, width)
	}
	if kind, dim, ok := sregNamed(o.name[1:]); ok && o.imm == 0 && width == 4 {
		return r.sreg(kind, dim)
	}
	r.fail("no register %s", o.name)
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
		s = r.op(isa.Convert("u64", "u32"), 4, s)
	}
	return s
}

func (r *ptxReader) addImm(s slot, v uint64) slot {
	d := r.alloc(8)
	r.into(isa.AddImm, d, 8, v, s)
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

// handlers read the operands of the instructions of each kind.
var handlers map[isa.Kind]func(r *ptxReader, row *isa.Row, name string, ops []ptxOperand)

func init() { // not in the variable, which the handlers would refer to
	handlers = map[isa.Kind]func(r *ptxReader, row *isa.Row, name string, ops []ptxOperand){
		isa.Compute: (*ptxReader).compute, isa.Move: (*ptxReader).mov, isa.ToGeneric: (*ptxReader).cvta, isa.FromGeneric: (*ptxReader).cvta,
		isa.Load: (*ptxReader).memory, isa.Store: (*ptxReader).memory, isa.Atomic: (*ptxReader).atom,
		isa.AsyncCopy: (*ptxReader).readCopy, isa.AsyncCommit: (*ptxReader).readCommit, isa.AsyncWait: (*ptxReader).readWait,
		isa.Shuffle: (*ptxReader).shfl, isa.Ballot: (*ptxReader).vote, isa.MatrixProduct: (*ptxReader).readProduct, isa.LoadMatrix: (*ptxReader).readMatrices,
	}
}

// instruction reads one.
func (r *ptxReader) instruction(name string, ops []ptxOperand, guard slot, neg bool) {
	if r.rough {
		name = strings.ReplaceAll(name, ".ftz", "")
	}
	row := isa.Find(name)
	if row == nil || row.Rough && !r.rough {
		r.fail("instruction is not known")
		return
	}
	r.row = row
	if read := handlers[row.Kind]; read != nil {
		read(r, row, name, ops)
		return
	}
	r.control(row, ops, guard, neg)
}

// compute reads an instruction on registers.
func (r *ptxReader) compute(row *isa.Row, _ string, ops []ptxOperand) {
	if !r.args(ops, len(row.Args)+1) {
		return
	}
	if row.To != "" {
		r.cvt(row, ops)
		return
	}
	var s []slot
	for i, o := range ops[1:] {
		if n := uint32(o.imm); i == len(row.Args)-1 && row.Divide != nil && o.isImm && n > 1 {
			r.into(row.Divide, r.out(ops[0], row.D), row.D, isa.Reciprocal(n), s...)
			return
		}
		s = append(s, r.in(o, row.Args[i]))
	}
	r.into(row.Do, r.out(ops[0], row.D), row.D, 0, s...)
}

// control reads what ends a segment.
func (r *ptxReader) control(row *isa.Row, ops []ptxOperand, guard slot, neg bool) {
	seg := &r.segs[r.cur]
	seg.line = int32(r.line)
	at := r.cur
	switch row.Kind {
	case isa.Branch:
		if !r.args(ops, 1) {
			return
		}
		if ops[0].name == "" {
			r.fail("no label")
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
	case isa.Return:
		if !r.args(ops, 0) {
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
	case isa.Trap:
		seg.term = termTrap
		r.open = false
		if guard != none {
			r.fail("a conditional trap")
		}
	default:
		if len(ops) != 1 || !ops[0].isImm || ops[0].imm != 0 || guard != none {
			r.fail("only barrier 0 of all threads is known")
			return
		}
		seg.term = termBarrier
		to := r.fresh()
		r.segs[at].to[0] = int32(to)
	}
}

// mov reads a move, of which one side may be the parts of the other.
func (r *ptxReader) mov(row *isa.Row, _ string, ops []ptxOperand) {
	if !r.args(ops, 2) {
		return
	}
	w, d, s := row.D, ops[0], ops[1]
	n := max(len(d.list), len(s.list))
	switch {
	case d.list != nil && s.list != nil:
		r.fail("lists on both sides")
	case n > 0 && (n != 2 && n != 4 || w/n < 2):
		r.fail("%d parts of %d bytes", n, w)
	case s.list != nil:
		var parts []slot
		for _, o := range s.list {
			parts = append(parts, r.in(o, w/n))
		}
		if n == 4 {
			parts = []slot{r.op(isa.Pack(w/2), w/2, parts[:2]...), r.op(isa.Pack(w/2), w/2, parts[2:]...)}
		}
		r.into(isa.Pack(w), r.out(d, w), w, 0, parts...)
	case d.list != nil:
		a := r.in(s, w)
		for _, o := range d.list {
			if g, ok := r.register(o.name); ok && g.s == a { // the source may be overwritten by the first part
				a = r.op(isa.Mov(w), w, a)
				break
			}
		}
		for i, o := range d.list {
			if o.name != "_" {
				r.into(isa.Unpack(w, w/n), r.out(o, w/n), w/n, uint64(i*w/n*8), a)
			}
		}
	default:
		r.move(r.out(d, w), r.in(s, w), w)
	}
}

func spaceNamed(name string) space {
	switch name {
	case "global":
		return global
	case "shared", "shared::cta":
		return shared
	case "local":
		return locals
	}
	return generic
}

// cvta reads a conversion of an address: cvta.space.u64 or cvta.to.space.u64.
func (r *ptxReader) cvta(row *isa.Row, name string, ops []ptxOperand) {
	if !r.args(ops, 2) {
		return
	}
	parts := strings.Split(name, ".")
	bias := toGeneric(spaceNamed(parts[len(parts)-2]))
	if row.Kind == isa.FromGeneric {
		bias = -bias
	}
	r.into(isa.AddImm, r.out(ops[0], 8), 8, bias, r.in(ops[1], 8))
}

// fit brings a register's low bits to a narrower type, or widens a value to a register.
func (r *ptxReader) fit(s slot, from, to int, signed bool) slot {
	if from == to {
		return s
	}
	return r.op(fitting(from, to, signed), to, s)
}

func fitting(from, to int, signed bool) isa.Do {
	sign := "u"
	if signed && from < to {
		sign = "s"
	}
	name := func(w int) isa.Type { return isa.Type(sign + map[int]string{1: "8", 2: "16", 4: "32", 8: "64"}[w]) }
	return isa.Convert(name(from), name(to))
}

// ptxAccess is what stands in the name of an access: space, type, number of elements, and what is left.
type ptxAccess struct {
	space space
	typ   isa.Type
	elems int
	param bool
	rest  []string
}

// accessOf takes the name of an access apart.
func accessOf(row *isa.Row, name string) ptxAccess {
	parts := strings.Split(name, ".")[1:]
	if len(parts) == 0 {
		return ptxAccess{}
	}
	a := ptxAccess{typ: isa.Type(parts[len(parts)-1]), elems: 1}
	for _, p := range parts[:len(parts)-1] {
		switch {
		case spaceNamed(p) != generic && a.space == generic && !a.param:
			a.space = spaceNamed(p)
		case p == "param":
			a.param = true
		case p == "v2" && a.elems == 1:
			a.elems = 2
		case p == "v4" && a.elems == 1:
			a.elems = 4
		case slices.Contains(row.Mods, p):
		default:
			a.rest = append(a.rest, p)
		}
	}
	return a
}

// memory reads a load or store.
func (r *ptxReader) memory(row *isa.Row, name string, ops []ptxOperand) {
	if !r.args(ops, 2) {
		return
	}
	a := accessOf(row, name)
	w, n := a.typ.Width(), a.elems
	if w == 0 || a.typ == "pred" || len(a.rest) > 0 || n*w > 16 {
		r.fail("instruction is not known")
		return
	}
	reg, addr := ops[0], ops[1]
	store := row.Kind == isa.Store
	if store {
		reg, addr = addr, reg
	}
	if !addr.memory {
		r.fail("no address")
		return
	}
	if a.param {
		r.loadParam(a, reg, addr, store)
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
	r.access(a.space, w)
	at, off := r.addressOf(addr)
	if r.err != nil {
		return
	}
	in := inst{Op: isa.Op{A: at, B: none, C: none, Imm: off}, bytes: int8(w * n), space: a.space}
	if store {
		in.run, in.dir = storeOp(w, a.space), writes
		in.v = r.stored(list, a.typ)
		r.effect(in)
		return
	}
	in.run, in.dir = loadOp(w, a.space), reads
	r.load(in, list, a.typ)
}

// stored are the slots of the values of a store.
func (r *ptxReader) stored(list []ptxOperand, t isa.Type) (v []slot) {
	w := t.Width()
	for _, o := range list {
		if o.isImm {
			v = append(v, r.in(o, w))
			continue
		}
		g, ok := r.data(o)
		if !ok || g.width < w {
			r.fail("register %s cannot be stored as %s", o.name, t)
			return nil
		}
		v = append(v, r.fit(g.s, g.width, w, false))
	}
	return v
}

// data finds a register that is no predicate.
func (r *ptxReader) data(o ptxOperand) (ptxReg, bool) {
	g, ok := r.register(o.name)
	return g, ok && g.width > 1 && !o.memory && !o.isImm && o.list == nil && o.imm == 0
}

// load emits a load to registers, which may be wider than what is read.
func (r *ptxReader) load(in inst, list []ptxOperand, t isa.Type) {
	w := t.Width()
	v := make([]slot, len(list))
	regs := make([]ptxReg, len(list))
	for i, o := range list {
		if o.name == "_" && len(list) > 1 {
			v[i] = r.alloc(w)
			continue
		}
		g, ok := r.data(o)
		if !ok || g.width < w {
			r.fail("%s cannot be loaded as %s", o.name, t)
			return
		}
		regs[i] = g
		if v[i] = g.s; g.width != w {
			v[i] = r.alloc(w)
		}
	}
	in.v, in.outs = v, int8(len(v))
	r.effect(in)
	for i, g := range regs {
		if g.width > w {
			r.into(fitting(w, g.width, t.IsSigned()), g.s, g.width, 0, v[i])
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
			return r.op(isa.Convert("u32", "u64"), 8, g.s), o.imm
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

func (r *ptxReader) loadParam(a ptxAccess, reg, addr ptxOperand, store bool) {
	i, ok := r.params[addr.name]
	if store || !ok || addr.imm != 0 || a.space != generic || a.elems != 1 {
		r.fail("parameter access is not known")
		return
	}
	p, w := r.k.params[i], a.typ.Width()
	if int(p.width) != w {
		r.fail("parameter %s has %d bytes", p.name, p.width)
		return
	}
	g, ok := r.register(reg.name)
	if !ok || g.width < w || g.width == 1 {
		r.fail("no register %s", reg.name)
		return
	}
	if g.width == w {
		r.move(g.s, p.s, w)
		return
	}
	r.into(fitting(w, g.width, a.typ.IsSigned()), g.s, g.width, 0, p.s)
}

// cvt reads a conversion between registers that may be wider than their types.
func (r *ptxReader) cvt(row *isa.Row, ops []ptxOperand) {
	fw, tw := row.Args[0], row.D
	g, ok := r.data(ops[0])
	if !ok || g.width < tw {
		r.fail("no register %s for %s", ops[0].name, row.To)
		return
	}
	s, known := slot(0), true
	if x, ok := r.data(ops[1]); ok && x.width >= fw {
		s = r.fit(x.s, x.width, fw, false)
	} else if kind, dim, ok := sregNamed(strings.TrimPrefix(ops[1].name, "%")); ok && fw == 4 {
		s = r.sreg(kind, dim)
	} else if known = ops[1].isImm; known {
		s = r.in(ops[1], fw)
	}
	if !known {
		r.fail("no register %s for %s", ops[1].name, row.Type)
		return
	}
	if g.width == tw {
		r.into(row.Do, g.s, tw, 0, s)
		return
	}
	r.into(fitting(tw, g.width, row.To.IsSigned()), g.s, g.width, 0, r.op(row.Do, tw, s))
}

func (r *ptxReader) shfl(_ *isa.Row, name string, ops []ptxOperand) {
	if !r.args(ops, 5) {
		return
	}
	p := none
	if ops[0].second != "" {
		p = r.pred(ops[0].second)
		ops[0].second = ""
	}
	d := r.out(ops[0], 4)
	r.effect(inst{run: shuffle(strings.Split(name, ".")[2]), Op: isa.Op{A: r.in(ops[1], 4), B: r.in(ops[2], 4), C: r.in(ops[3], 4)}, v: []slot{d, p, r.in(ops[4], 4)}, outs: 2})
}

func (r *ptxReader) vote(_ *isa.Row, _ string, ops []ptxOperand) {
	if r.args(ops, 3) {
		d := r.out(ops[0], 4)
		r.effect(inst{run: ballot, Op: isa.Op{A: r.in(ops[1], 1), B: r.in(ops[2], 4), C: none}, v: []slot{d}, outs: 1})
	}
}

// atom reads an atomic operation.
func (r *ptxReader) atom(row *isa.Row, name string, ops []ptxOperand) {
	if !r.args(ops, 3) {
		return
	}
	a := accessOf(row, name)
	w := a.typ.Width()
	if len(a.rest) != 1 || w < 4 || a.elems != 1 || a.param {
		r.fail("instruction is not known")
		return
	}
	op := a.rest[0]
	switch {
	case (op == "min" || op == "max") && !a.typ.IsSigned() && !a.typ.IsFloat():
		op = "u" + op
	case op == "add" && a.typ.IsFloat():
		op = "fadd"
		r.k.serial = true
	}
	run := atomicOp(op, w, a.space)
	if run == nil || a.typ.IsFloat() && op != "fadd" {
		r.fail("instruction is not known")
		return
	}
	if !ops[1].memory {
		r.fail("no address")
		return
	}
	r.access(a.space, w)
	addr, off := r.addressOf(ops[1])
	r.effect(inst{run: run, Op: isa.Op{A: addr, B: r.in(ops[2], w), C: r.out(ops[0], w), Imm: off}, dir: updates, bytes: int8(w), space: a.space})
}
