// Package ptx makes PTX of kernels: by its own printer, which needs nothing, or by LLVM's llc of their LLVM IR, where there is one.
//
// The printer goes along the structure of a kernel. Each value gets a virtual register; a loop is registers for what it carries and a label; mnemonics are
// those of package isa. No multiplication is contracted with an addition.
package ptx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/codegen/gpu/isa"
	"github.com/aton-project/aton/codegen/gpu/kir"
)

// Options are what the head of the text says.
type Options struct {
	Target  string // processor; "" is sm_80
	Version string // of the PTX language; "" is 7.0
}

func (o Options) filled() Options {
	if o.Target == "" {
		o.Target = "sm_80"
	}
	if o.Version == "" {
		o.Version = "7.0"
	}
	return o
}

// class is the kind of a register, and the type its moves have.
type class uint8

const (
	pred class = iota
	b16        // i8 with its upper byte zero, i16, half
	b32
	b64
	f32
	f64
	classes
)

var classOf = [classes]struct{ prefix, mov string }{pred: {"%p", "pred"}, b16: {"%rs", "b16"}, b32: {"%r", "b32"}, b64: {"%rd", "b64"}, f32: {"%f", "f32"}, f64: {"%fd", "f64"}}

// classFor is the class of registers for a type of kernels.
var classFor = [...]class{kir.I1: pred, kir.I8: b16, kir.I16: b16, kir.I32: b32, kir.I64: b64, kir.F16: b16, kir.F32: f32, kir.F64: f64}

// operand is a register of a class, or an immediate.
type operand struct {
	text string
	c    class
	imm  bool
}

// address is a register or the name of a variable, and a constant.
type address struct {
	mem  *kir.Mem
	base string // "" for the start of the memory
	off  int64
}

// place is where an address was computed: to an element of memory, in a part of the text without branches.
type place struct {
	mem    *kir.Mem
	index  *kir.Node
	region int
}

// held is a constant in a register of such a part.
type held struct {
	c      class
	text   string
	region int
}

type printer struct {
	k       *kir.Kernel
	head, w strings.Builder // what comes before the first instruction, and the instructions
	values  map[*kir.Node]operand
	parts   map[*kir.Node][]operand // of nodes with several results
	scalars map[int64]operand
	bases   map[*kir.Mem]string // registers that hold the address of the start
	places  map[place]string
	consts  map[held]operand
	count   [classes]int
	labels  int
	region  int
	// full says that ptxas must not unroll loops: products of integers on tensor cores use all registers that a thread has. On an H100 no kernel is
	// slower for the unrolling of others, and some take half the time (codegen/gpu/README.md).
	full bool
	err  error
}

// Print writes a kernel as PTX.
func Print(k *kir.Kernel, o Options) (string, error) {
	p := &printer{k: k, values: map[*kir.Node]operand{}, parts: map[*kir.Node][]operand{}, scalars: map[int64]operand{}, bases: map[*kir.Mem]string{},
		places: map[place]string{}, consts: map[held]operand{}}
	name := ident(k.Name)
	var params []string
	for i, q := range k.Params {
		t, c := "u32", b32
		if q.Mem != nil {
			t, c = "u64", b64
		}
		params = append(params, fmt.Sprintf("\n\t.param .%s %s_param_%d", t, name, i))
		r := p.reg(c)
		if q.Mem != nil {
			p.bases[q.Mem] = r.text
		} else {
			p.scalars[int64(i)] = r
		}
		fmt.Fprintf(&p.head, "\tld.param.%s \t%s, [%s_param_%d];\n", t, r.text, name, i)
	}
	p.block(k.Body)
	p.emit("ret")
	if p.err != nil {
		return "", fmt.Errorf("ptx: %s: %w", k.Name, p.err)
	}
	o = o.filled()
	var out strings.Builder
	fmt.Fprintf(&out, ".version %s\n.target %s\n.address_size 64\n\n.visible .entry %s(%s\n)\n.maxntid %d, 1, 1\n", o.Version, o.Target, name, strings.Join(params, ","), k.Threads)
	if k.Resident > 0 {
		fmt.Fprintf(&out, ".minnctapersm %d\n", k.Resident)
	}
	if p.full {
		out.WriteString(".pragma \"nounroll\";\n")
	}
	out.WriteString("{\n")
	for c := range classes {
		if n := p.count[c]; n > 0 {
			fmt.Fprintf(&out, "\t.reg .%s %s<%d>;\n", classOf[c].mov, classOf[c].prefix, n+1)
		}
	}
	for _, m := range k.Shared {
		fmt.Fprintf(&out, "\t.shared .align 16 .b8 %s[%d];\n", variable(m), m.Len*m.Elem.Size())
	}
	out.WriteString(p.head.String())
	out.WriteString(p.w.String())
	out.WriteString("}\n")
	return out.String(), nil
}

// ident makes a PTX name of another one, as LLVM does.
func ident(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			b.WriteByte(c)
		} else {
			b.WriteString("_$_")
		}
	}
	return b.String()
}

// variable is the name of shared memory.
func variable(m *kir.Mem) string { return "shared_$_" + ident(m.Name) }

func (p *printer) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// reg is a new register.
func (p *printer) reg(c class) operand {
	p.count[c]++
	return operand{text: fmt.Sprintf("%s%d", classOf[c].prefix, p.count[c]), c: c}
}

// emit writes an instruction, which must be one of package isa.
func (p *printer) emit(name string, args ...string) {
	if isa.Find(name) == nil {
		p.fail("no instruction %s", name)
	}
	p.w.WriteByte('\t')
	p.w.WriteString(name)
	for i, a := range args {
		if i == 0 {
			p.w.WriteString(" \t")
		} else {
			p.w.WriteString(", ")
		}
		p.w.WriteString(a)
	}
	p.w.WriteString(";\n")
}

// op writes an instruction with a new register for its result.
func (p *printer) op(c class, name string, args ...operand) operand {
	d := p.reg(c)
	text := []string{d.text}
	for _, a := range args {
		text = append(text, a.text)
	}
	p.emit(name, text...)
	return d
}

// compute is the instruction that does an operation on operands of a type.
func (p *printer) compute(op kir.Op, t kir.Type, c class, args ...operand) operand {
	row := isa.Of(op, t)
	if row == nil {
		p.fail("no %s of %s", op, t)
		return operand{c: c}
	}
	return p.op(c, row.Name, args...)
}

// mov copies to a register.
func (p *printer) mov(to, from operand) {
	if to.text != from.text {
		p.emit("mov."+classOf[to.c].mov, to.text, from.text)
	}
}

// label starts a part of the text that branches lead to.
func (p *printer) label(name string) { fmt.Fprintf(&p.w, "%s:\n", name) }

func (p *printer) newLabel() string {
	p.labels++
	return fmt.Sprintf("$L%d", p.labels)
}

// get is the operand of a value.
func (p *printer) get(v *kir.Node) operand {
	switch {
	case v.Op == kir.Const:
		return immediate(v)
	case v.Op == kir.Scalar:
		return p.scalars[v.Int]
	case v.Op == kir.Result && len(v.Args) == 1:
		if of := p.parts[v.Args[0]]; v.Int < int64(len(of)) {
			return of[v.Int]
		}
	}
	o, ok := p.values[v]
	if !ok {
		p.fail("%s is used before it is computed", v.Op)
	}
	return o
}

// in is the operand as it may stand in an instruction: those on halves take no immediates.
func (p *printer) in(v *kir.Node) operand {
	if v.Type == kir.F16 {
		return p.register(v)
	}
	return p.get(v)
}

// register is a register that holds the value.
func (p *printer) register(v *kir.Node) operand { return p.held(p.get(v)) }

func (p *printer) held(o operand) operand {
	if !o.imm {
		return o
	}
	k := held{o.c, o.text, p.region}
	r, ok := p.consts[k]
	if !ok {
		r = p.reg(o.c)
		p.mov(r, o)
		p.consts[k] = r
	}
	return r
}

// block writes what a block has.
func (p *printer) block(b *kir.Block) {
	for _, v := range b.Nodes {
		if p.err != nil {
			return
		}
		switch v.Op {
		case kir.Load:
			p.load(v)
		case kir.Store:
			p.store(v)
		case kir.For:
			p.loop(v)
		case kir.If:
			p.cond(v)
		case kir.Mma:
			p.full = p.full || kir.Format(v.Int).Sum() == kir.I32
			p.product(v)
		case kir.LoadMatrix:
			p.parts[v] = p.fresh(b32, 4)
			p.emit(isa.Matrices(v.Int != 0).Name, list(p.parts[v]), p.bracket(p.element(v.Mem, v.Args[0])))
		case kir.CopyAsync:
			cache := "ca"
			if v.Int == 16 { // past the first cache, which PTX has for no other number
				cache = "cg"
			}
			p.emit("cp.async."+cache+".shared.global", p.bracket(p.element(v.Mem, v.Args[0])), p.bracket(p.element(v.From, v.Args[1])), fmt.Sprint(v.Int))
		case kir.CopyCommit:
			p.emit("cp.async.commit_group")
		case kir.CopyWait:
			p.emit("cp.async.wait_group", fmt.Sprint(v.Int))
		case kir.Barrier:
			p.emit("bar.sync", "0")
		default:
			p.values[v] = p.operation(v)
		}
	}
}

// fresh is n new registers.
func (p *printer) fresh(c class, n int) []operand {
	out := make([]operand, n)
	for i := range out {
		out[i] = p.reg(c)
	}
	return out
}

// list is registers as an operand.
func list(of []operand) string {
	var text []string
	for _, o := range of {
		text = append(text, o.text)
	}
	if len(text) == 1 {
		return text[0]
	}
	return "{" + strings.Join(text, ", ") + "}"
}

// loop writes a For: the test of the first turn stands before it, unless it is known to hold, that of the others at its end.
func (p *printer) loop(v *kir.Node) {
	body := v.Blocks[0]
	regs := make([]operand, len(body.Params))
	for i, q := range body.Params {
		first := v.Args[0]
		if i > 0 {
			first = v.Args[2+i]
		}
		regs[i] = p.reg(classFor[q.Type])
		p.mov(regs[i], p.get(first))
		p.values[q] = regs[i]
	}
	from, to := v.Args[0], v.Args[1]
	again, done := p.newLabel(), ""
	if from.Op != kir.Const || to.Op != kir.Const || from.Int >= to.Int {
		done = p.newLabel()
		p.emit("setp.ge.s32", p.next(pred), regs[0].text, p.get(to).text)
		p.branch(p.last(pred), done)
	}
	p.label(again)
	p.region++
	p.block(body)
	var moves []move
	for i, r := range body.Results {
		moves = append(moves, move{regs[i+1], p.get(r)})
	}
	p.together(moves)
	p.emit(isa.Of(kir.Add, kir.I32).Name, regs[0].text, regs[0].text, p.get(v.Args[2]).text)
	p.branch(p.compute(kir.Lt, kir.I32, pred, regs[0], p.get(to)).text, again)
	if done != "" {
		p.label(done)
	}
	p.region++
	p.parts[v] = regs[1:]
}

// next is the name of a new register, last that of the newest.
func (p *printer) next(c class) string { return p.reg(c).text }

func (p *printer) last(c class) string { return fmt.Sprintf("%s%d", classOf[c].prefix, p.count[c]) }

// branch writes a jump that is taken where the predicate holds, !PREDICATE for where it does not.
func (p *printer) branch(predicate, to string) { fmt.Fprintf(&p.w, "\t@%s bra \t%s;\n", predicate, to) }

// cond writes an If.
func (p *printer) cond(v *kir.Node) {
	then, otherwise := v.Blocks[0], v.Blocks[1]
	end := p.newLabel()
	other := end
	both := len(otherwise.Nodes) > 0 || len(otherwise.Results) > 0
	if both {
		other = p.newLabel()
	}
	p.branch("!"+p.register(v.Args[0]).text, other)
	var regs []operand
	for _, r := range then.Results {
		regs = append(regs, p.reg(classFor[r.Type]))
	}
	side := func(b *kir.Block) {
		p.region++
		p.block(b)
		for i, r := range b.Results {
			p.mov(regs[i], p.get(r))
		}
	}
	side(then)
	if both {
		p.emit("bra.uni", end)
		p.label(other)
		side(otherwise)
	}
	p.label(end)
	p.region++
	p.parts[v] = regs
}

type move struct{ to, from operand }

// together writes moves that happen at once: one goes before those that overwrite what it reads, by way of another register where they go round.
func (p *printer) together(moves []move) {
	readers := map[string]int{} // of a register, by moves to others
	for _, m := range moves {
		if m.from.text != m.to.text {
			readers[m.from.text]++
		}
	}
	for len(moves) > 0 {
		free := slices.IndexFunc(moves, func(m move) bool { return readers[m.to.text] == 0 })
		if free < 0 {
			kept := p.reg(moves[0].to.c)
			p.mov(kept, moves[0].to)
			for i := range moves {
				if moves[i].from.text == moves[0].to.text {
					moves[i].from = kept
				}
			}
			readers[kept.text], readers[moves[0].to.text] = readers[moves[0].to.text], 0
			continue
		}
		m := moves[free]
		if m.from.text != m.to.text {
			readers[m.from.text]--
		}
		p.mov(m.to, m.from)
		moves = append(moves[:free:free], moves[free+1:]...)
	}
}

// element is the address of an element. Neighbours share it but for a constant, which an access adds for nothing: an index is from 0 to below 1<<31, so
// that without a constant that is not negative it is still one of 32 bits.
func (p *printer) element(mem *kir.Mem, index *kir.Node) address {
	size := int64(mem.Elem.Size())
	off := int64(0)
	if index.Op == kir.Add && index.Args[1].Op == kir.Const && index.Args[1].Int >= 0 {
		off, index = index.Args[1].Int*size, index.Args[0]
	}
	if index.Op == kir.Const {
		return address{mem: mem, off: off + index.Int*size}
	}
	k := place{mem, index, p.region}
	if p.places[k] == "" {
		p.places[k] = p.op(b64, "mad.wide.s32", p.get(index), operand{text: fmt.Sprint(size)}, operand{text: p.start(mem)}).text
	}
	return address{mem: mem, base: p.places[k], off: off}
}

// start is a register with the address of the first element, which is read once, before the first instruction.
func (p *printer) start(mem *kir.Mem) string {
	r, ok := p.bases[mem]
	if !ok {
		r = p.next(b64)
		p.bases[mem] = r
		fmt.Fprintf(&p.head, "\tmov.u64 \t%s, %s;\n", r, variable(mem))
	}
	return r
}

// bracket is the address as an operand.
func (p *printer) bracket(a address) string {
	base := a.base
	switch {
	case base != "":
	case a.mem.Shared && a.off >= 0: // a variable takes no negative offset
		base = variable(a.mem)
	default:
		base = p.start(a.mem)
	}
	if a.off == 0 {
		return "[" + base + "]"
	}
	return fmt.Sprintf("[%s+%d]", base, a.off)
}

// access is the name of a load or store without the operation, and how many elements one moves.
func access(v *kir.Node) (name string, n int, t kir.Type) {
	t = v.Mem.Elem
	if v.Words {
		t = kir.I32
	}
	n = min(v.Width, 16/t.Size())
	space, vector := ".global", ""
	if v.Mem.Shared {
		space = ".shared"
	} else if v.Op == kir.Load && !v.Mem.Writes {
		space = ".global.nc"
	}
	if n > 1 {
		vector = fmt.Sprintf(".v%d", n)
	}
	kind := map[kir.Type]string{kir.I8: "u8", kir.I16: "u16", kir.I32: "u32", kir.I64: "u64", kir.F16: "b16", kir.F32: "f32", kir.F64: "f64"}[t]
	return space + vector + "." + kind, n, t
}

func (p *printer) load(v *kir.Node) {
	name, n, t := access(v)
	a := p.element(v.Mem, v.Args[0])
	all := p.fresh(classFor[t], v.Width)
	for i := 0; i < v.Width; i += n {
		p.emit("ld"+name, list(all[i:i+n]), p.bracket(a))
		a.off += int64(n * t.Size())
	}
	if v.Width == 1 {
		p.values[v] = all[0]
	} else {
		p.parts[v] = all
	}
}

func (p *printer) store(v *kir.Node) {
	name, n, t := access(v)
	a := p.element(v.Mem, v.Args[0])
	var all []operand
	for _, x := range v.Args[1:] {
		all = append(all, p.register(x))
	}
	for i := 0; i < v.Width; i += n {
		p.emit("st"+name, p.bracket(a), list(all[i:i+n]))
		a.off += int64(n * t.Size())
	}
}

// product writes a product of matrices by a warp.
func (p *printer) product(v *kir.Node) {
	f := kir.Format(v.Int)
	var x []operand
	for _, a := range v.Args {
		x = append(x, p.register(a))
	}
	p.parts[v] = p.fresh(classFor[f.Sum()], 4)
	p.emit(isa.Product(f).Name, list(p.parts[v]), list(x[:4]), list(x[4:6]), list(x[6:]))
}
