// Package ptx makes PTX of LLVM modules: by its own printer, which needs nothing, or by LLVM's llc where there is one.
//
// The printer covers the subset of LLVM IR that kernels use: one function per module, typed pointers to global, shared and
// local memory, integers of 1 to 64 bits, half, float and double, vectors in loads and stores, and the intrinsics for
// special registers, barriers, shuffles, rounding and tensor cores. What it does not know is an error that names the instruction. Each
// value gets a virtual register, phis become moves on the edges, and no multiplication is contracted with an addition.
package ptx

import (
	"fmt"
	"math"
	"strings"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/metadata"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"github.com/aton-project/aton/codegen/gpu/internal/cfg"
	"github.com/aton-project/aton/codegen/gpu/internal/llir"
	"github.com/aton-project/aton/ssa/tensor"
)

// Options are what the head of the text says.
type Options struct {
	Target  string // processor; "" is sm_80
	Version string // of the PTX language; "" is 7.0
}

// space numbers follow LLVM.
const (
	generic = 0
	global  = 1
	shared  = 3
	locals  = 5
)

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

var classOf = [classes]struct{ prefix, decl, mov string }{
	pred: {"%p", ".pred", "pred"},
	b16:  {"%rs", ".b16", "b16"},
	b32:  {"%r", ".b32", "b32"},
	b64:  {"%rd", ".b64", "b64"},
	f32:  {"%f", ".f32", "f32"},
	f64:  {"%fd", ".f64", "f64"},
}

// operand is a register, an immediate, or a pointer with an offset; vec has the elements of a vector.
type operand struct {
	text string
	imm  bool
	off  int64
	sp   int  // of a pointer, as it really is: alloca's generic pointers stay local while they can
	sym  bool // text is a variable
	root *ir.Param
	vec  []operand
	word string // the register of 32 bits that holds a pair of halves, which is taken apart where it is needed
}

type printer struct {
	f      *ir.Func
	w      strings.Builder
	vals   map[value.Value]operand
	bases  map[string]string // registers that hold the address of a variable
	head   strings.Builder   // what comes before the first block
	count  [classes]int
	label  map[*ir.Block]string
	labels int
	decls  []string
	extern []string
	depot  int
	err    error
}

// Print writes the kernel of a module as PTX.
func Print(m *ir.Module, o Options) (text string, err error) {
	defer func() {
		if p := recover(); p != nil { // llir's accessors panic on functions that are not well formed
			text, err = "", fmt.Errorf("ptx: the module is not well formed: %v", p)
		}
	}()
	var f *ir.Func
	for _, g := range m.Funcs {
		if len(g.Blocks) == 0 {
			continue
		}
		if f != nil {
			return "", fmt.Errorf("ptx: more than one function has a body: %s and %s", f.Name(), g.Name())
		}
		f = g
	}
	if f == nil {
		return "", fmt.Errorf("ptx: no function has a body")
	}
	p := &printer{f: f, vals: map[value.Value]operand{}, bases: map[string]string{}, label: map[*ir.Block]string{}}
	if err := p.body(); err != nil {
		return "", fmt.Errorf("ptx: %s: %w", f.Name(), err)
	}
	if o.Target == "" {
		o.Target = "sm_80"
	}
	if o.Version == "" {
		o.Version = "7.0"
	}
	name := ident(f.Name())
	var out strings.Builder
	fmt.Fprintf(&out, ".version %s\n.target %s\n.address_size 64\n\n", o.Version, o.Target)
	for _, e := range p.extern {
		out.WriteString(e)
	}
	fmt.Fprintf(&out, ".visible .entry %s(", name)
	for i, q := range f.Params {
		if i > 0 {
			out.WriteString(",")
		}
		fmt.Fprintf(&out, "\n\t.param .%s %s_param_%d", p.paramType(q.Typ), name, i)
	}
	out.WriteString("\n)\n")
	for _, d := range annotations(m, f) {
		fmt.Fprintf(&out, "%s\n", d)
	}
	out.WriteString("{\n")
	for c := range classes {
		if n := p.count[c]; n > 0 {
			fmt.Fprintf(&out, "\t.reg %s %s<%d>;\n", classOf[c].decl, classOf[c].prefix, n+1)
		}
	}
	if p.depot > 0 {
		fmt.Fprintf(&out, "\t.local .align 16 .b8 __depot[%d];\n", p.depot)
	}
	for _, d := range p.decls {
		out.WriteString(d)
	}
	out.WriteString(p.head.String())
	out.WriteString(p.w.String())
	out.WriteString("}\n")
	return out.String(), nil
}

// annotations are the launch bounds that the module's metadata state.
func annotations(m *ir.Module, f *ir.Func) []string {
	def := m.NamedMetadataDefs["nvvm.annotations"]
	if def == nil {
		return nil
	}
	size := [3]string{"", "1", "1"}
	var out []string
	for _, n := range def.Nodes {
		t, ok := n.(*metadata.Tuple)
		if !ok || len(t.Fields) == 0 || t.Fields[0] != metadata.Field(f) {
			continue
		}
		for i := 1; i+1 < len(t.Fields); i += 2 {
			s, ok1 := t.Fields[i].(*metadata.String)
			c, ok2 := t.Fields[i+1].(*constant.Int)
			if !ok1 || !ok2 {
				continue
			}
			switch s.Value {
			case "maxntidx":
				size[0] = c.X.String()
			case "maxntidy":
				size[1] = c.X.String()
			case "maxntidz":
				size[2] = c.X.String()
			case "minctasm":
				out = append(out, ".minnctapersm "+c.X.String())
			}
		}
	}
	if size[0] != "" {
		out = append([]string{".maxntid " + strings.Join(size[:], ", ")}, out...)
	}
	return out
}

// ident makes a PTX name of an LLVM one, as LLVM does.
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

func (p *printer) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *printer) body() error {
	f := p.f
	at := map[*ir.Block]int32{}
	for i, b := range f.Blocks {
		at[b] = int32(i)
	}
	succ := make([][]int32, len(f.Blocks))
	to := func(v value.Value) int32 {
		b, ok := v.(*ir.Block)
		if !ok {
			p.fail("branch to %s", v)
		}
		return at[b]
	}
	for i, b := range f.Blocks {
		switch t := b.Term.(type) {
		case *ir.TermBr:
			succ[i] = []int32{to(t.Target)}
		case *ir.TermCondBr:
			succ[i] = []int32{to(t.TargetTrue), to(t.TargetFalse)}
		case *ir.TermRet, *ir.TermUnreachable:
		default:
			p.fail("terminator %T", b.Term)
		}
	}
	if p.err != nil {
		return p.err
	}
	order := cfg.Order(succ)
	for n, i := range order {
		b := f.Blocks[i]
		if n > 0 {
			p.label[b] = fmt.Sprintf("$L%d", n)
		}
		for _, in := range b.Insts {
			if phi, ok := in.(*ir.InstPhi); ok {
				p.vals[phi] = p.fresh(phi.Type())
			}
		}
	}
	p.labels = len(order)
	for i, q := range f.Params {
		c := p.class(q.Typ)
		r := p.reg(c)
		t := p.paramType(q.Typ)
		if pt, ok := q.Typ.(*types.PointerType); ok {
			p.vals[q] = operand{text: r, sp: int(pt.AddrSpace), root: q}
		} else {
			p.vals[q] = operand{text: r}
		}
		fmt.Fprintf(&p.head, "\tld.param.%s \t%s, [%s_param_%d];\n", t, r, ident(f.Name()), i)
	}
	for n, i := range order {
		b := f.Blocks[i]
		if n > 0 {
			fmt.Fprintf(&p.w, "%s:\n", p.label[b])
		}
		var next *ir.Block
		if n+1 < len(order) {
			next = f.Blocks[order[n+1]]
		}
		for _, in := range b.Insts {
			p.instruction(in)
			if p.err != nil {
				return fmt.Errorf("%w in %s", p.err, in.LLString())
			}
		}
		p.terminator(b, next)
		if p.err != nil {
			return p.err
		}
	}
	return nil
}

func (p *printer) paramType(t types.Type) string {
	switch t := t.(type) {
	case *types.IntType:
		switch t.BitSize {
		case 32, 64:
			return fmt.Sprintf("u%d", t.BitSize)
		}
	case *types.FloatType:
		switch t.Kind {
		case types.FloatKindFloat:
			return "f32"
		case types.FloatKindDouble:
			return "f64"
		}
	case *types.PointerType:
		return "u64"
	}
	p.fail("parameter of type %s", t)
	return "u64"
}

func (p *printer) class(t types.Type) class {
	switch t := t.(type) {
	case *types.IntType:
		switch t.BitSize {
		case 1:
			return pred
		case 8, 16:
			return b16
		case 32:
			return b32
		case 64:
			return b64
		}
	case *types.FloatType:
		switch t.Kind {
		case types.FloatKindHalf:
			return b16
		case types.FloatKindFloat:
			return f32
		case types.FloatKindDouble:
			return f64
		}
	case *types.PointerType:
		return b64
	case *types.VectorType:
		return p.class(t.ElemType)
	}
	p.fail("type %s", t)
	return b32
}

// bits is the width of a scalar type, or of a vector's element.
func bits(t types.Type) int {
	switch t := t.(type) {
	case *types.IntType:
		return int(t.BitSize)
	case *types.FloatType:
		switch t.Kind {
		case types.FloatKindHalf:
			return 16
		case types.FloatKindFloat:
			return 32
		}
		return 64
	case *types.VectorType:
		return bits(t.ElemType)
	}
	return 64
}

// size is the bytes of a type in memory.
func (p *printer) size(t types.Type) int64 {
	switch t := t.(type) {
	case *types.ArrayType:
		return p.size(t.ElemType) * int64(t.Len)
	case *types.VectorType:
		return p.size(t.ElemType) * int64(t.Len)
	}
	p.class(t)
	return int64(max(bits(t), 8) / 8)
}

func (p *printer) reg(c class) string {
	p.count[c]++
	return fmt.Sprintf("%s%d", classOf[c].prefix, p.count[c])
}

// fresh is new registers for a value of the type.
func (p *printer) fresh(t types.Type) operand {
	c := p.class(t)
	if v, ok := t.(*types.VectorType); ok {
		var o operand
		for range v.Len {
			o.vec = append(o.vec, operand{text: p.reg(c)})
		}
		return o
	}
	o := operand{text: p.reg(c)}
	if pt, ok := t.(*types.PointerType); ok {
		o.sp = int(pt.AddrSpace)
	}
	return o
}

func (p *printer) emit(format string, args ...any) {
	p.w.WriteByte('\t')
	fmt.Fprintf(&p.w, format, args...)
	p.w.WriteString(";\n")
}

// get is the operand of a value.
func (p *printer) get(v value.Value) operand {
	if o, ok := p.vals[v]; ok {
		if o.word != "" {
			lo, hi := p.reg(b16), p.reg(b16)
			p.emit("mov.b32 \t{%s, %s}, %s", lo, hi, o.word)
			o.vec = []operand{{text: lo}, {text: hi}}
		}
		return o
	}
	switch c := v.(type) {
	case *constant.Int:
		x := c.X.Int64()
		if c.X.IsUint64() && !c.X.IsInt64() {
			x = int64(c.X.Uint64())
		}
		switch c.Typ.BitSize {
		case 1:
			if x != 0 {
				x = -1
			}
		case 8:
			x &= 255
		case 16:
			x = int64(int16(x))
		case 32:
			x = int64(int32(x))
		}
		return operand{text: fmt.Sprint(x), imm: true}
	case *constant.Float:
		return operand{text: floatText(c), imm: true}
	case *constant.Null:
		pt := c.Typ
		return operand{text: "0", imm: true, sp: int(pt.AddrSpace)}
	case *constant.Undef, *constant.Poison, *constant.ZeroInitializer:
		if t, ok := v.Type().(*types.VectorType); ok {
			var o operand
			for range t.Len {
				o.vec = append(o.vec, p.zero(t.ElemType))
			}
			return o
		}
		return p.zero(v.Type())
	case *constant.Vector:
		var o operand
		for _, e := range c.Elems {
			o.vec = append(o.vec, p.get(e))
		}
		return o
	case *ir.Global:
		return p.global(c)
	case *constant.ExprBitCast:
		return p.get(c.From)
	case *constant.ExprAddrSpaceCast:
		return p.addrSpaceCast(p.get(c.From), c.From.Type(), c.To)
	case *constant.ExprGetElementPtr:
		return p.gep(c.ElemType, c.Src, llir.Indices(c))
	}
	p.fail("operand %s is not defined before", v)
	return operand{text: "0"}
}

func (p *printer) zero(t types.Type) operand {
	switch p.class(t) {
	case f32:
		return operand{text: "0f00000000", imm: true}
	case f64:
		return operand{text: "0d0000000000000000", imm: true}
	}
	return operand{text: "0", imm: true}
}

func floatText(c *constant.Float) string {
	x, _ := c.X.Float64()
	sign := uint64(0)
	if c.NaN && c.X.Signbit() {
		sign = 1
	}
	switch c.Typ.Kind {
	case types.FloatKindHalf:
		if c.NaN {
			return fmt.Sprintf("0x%04X", 0x7e00|sign<<15)
		}
		return fmt.Sprintf("0x%04X", tensor.FloatToHalf(x))
	case types.FloatKindFloat:
		if c.NaN {
			return fmt.Sprintf("0f%08X", 0x7fc00000|sign<<31)
		}
		return fmt.Sprintf("0f%08X", math.Float32bits(float32(x)))
	}
	if c.NaN {
		return fmt.Sprintf("0d%016X", uint64(0x7ff8000000000000)|sign<<63)
	}
	return fmt.Sprintf("0d%016X", math.Float64bits(x))
}

// global declares a variable in shared memory when it is first used.
func (p *printer) global(g *ir.Global) operand {
	t, ok := g.Type().(*types.PointerType)
	if !ok || t.AddrSpace != shared {
		p.fail("global variable %s is not in shared memory", g.Ident())
		return operand{}
	}
	name := ident(g.Name())
	if g.Init == nil {
		p.extern = append(p.extern, fmt.Sprintf(".extern .shared .align %d .b8 %s[];\n\n", max(g.Align, 16), name))
	} else {
		p.decls = append(p.decls, fmt.Sprintf("\t.shared .align %d .b8 %s[%d];\n", max(g.Align, 16), name, p.size(g.ContentType)))
	}
	o := operand{text: name, sym: true, sp: shared}
	p.vals[g] = o
	return o
}

// in is the operand as it may stand in an instruction: pointers with their offset added.
func (p *printer) in(v value.Value) string {
	return p.text(p.get(v), v.Type())
}

func (p *printer) text(o operand, t types.Type) string {
	if o.vec != nil {
		p.fail("vector operand")
		return ""
	}
	if _, ok := t.(*types.PointerType); ok {
		return p.pointer(o, t)
	}
	if ft, ok := t.(*types.FloatType); ok && o.imm && ft.Kind == types.FloatKindHalf {
		r := p.reg(b16) // half instructions take no immediates
		p.emit("mov.b16 \t%s, %s", r, o.text)
		return r
	}
	return o.text
}

// pointer puts an address into one register, generic where its type says so.
func (p *printer) pointer(o operand, t types.Type) string {
	want := int(t.(*types.PointerType).AddrSpace)
	r := o.text
	if o.sym {
		r = p.base(o.text)
	}
	if o.off != 0 {
		d := p.reg(b64)
		p.emit("add.s64 \t%s, %s, %d", d, r, o.off)
		r = d
	}
	if o.sp == locals && want == generic {
		d := p.reg(b64)
		p.emit("cvta.local.u64 \t%s, %s", d, r)
		r = d
	}
	return r
}

// base loads the address of a variable once, before the first block.
func (p *printer) base(sym string) string {
	r, ok := p.bases[sym]
	if !ok {
		r = p.reg(b64)
		p.bases[sym] = r
		fmt.Fprintf(&p.head, "\tmov.u64 \t%s, %s;\n", r, sym)
	}
	return r
}

// terminator ends a block; a jump to the next block is left out.
func (p *printer) terminator(b, next *ir.Block) {
	switch t := b.Term.(type) {
	case *ir.TermRet:
		if t.X != nil {
			p.fail("a kernel returns nothing")
		}
		p.emit("ret")
	case *ir.TermUnreachable:
		p.emit("trap")
	case *ir.TermBr:
		to := t.Target.(*ir.Block)
		p.edge(b, to)
		if to != next {
			p.emit("bra.uni \t%s", p.label[to])
		}
	case *ir.TermCondBr:
		yes, no := t.TargetTrue.(*ir.Block), t.TargetFalse.(*ir.Block)
		c := p.get(t.Cond)
		if c.imm {
			c.text = p.reg(pred)
			p.emit("mov.pred \t%s, %s", c.text, p.get(t.Cond).text)
		}
		switch {
		case !p.moves(b, yes) && yes != next:
			p.emit("@%s bra \t%s", c.text, p.label[yes])
			p.edge(b, no)
			if no != next {
				p.emit("bra.uni \t%s", p.label[no])
			}
		case !p.moves(b, no):
			p.emit("@!%s bra \t%s", c.text, p.label[no])
			p.edge(b, yes)
			if yes != next {
				p.emit("bra.uni \t%s", p.label[yes])
			}
		default:
			side := fmt.Sprintf("$L%d", p.labels)
			p.labels++
			p.emit("@!%s bra \t%s", c.text, side)
			p.edge(b, yes)
			p.emit("bra.uni \t%s", p.label[yes])
			fmt.Fprintf(&p.w, "%s:\n", side)
			p.edge(b, no)
			if no != next {
				p.emit("bra.uni \t%s", p.label[no])
			}
		}
	}
}

func (p *printer) moves(from, to *ir.Block) bool {
	if len(to.Insts) == 0 {
		return false
	}
	_, ok := to.Insts[0].(*ir.InstPhi)
	return ok
}

// edge writes the phis' moves. They happen at once: through temporaries when one reads what another writes.
func (p *printer) edge(from, to *ir.Block) {
	type move struct{ d, s, mov string }
	var moves []move
	written := map[string]bool{}
	for _, in := range to.Insts {
		phi, ok := in.(*ir.InstPhi)
		if !ok {
			break
		}
		var x value.Value
		for _, inc := range phi.Incs {
			if inc.Pred == value.Value(from) {
				x = inc.X
				break
			}
		}
		if x == nil {
			p.fail("phi %s has no value for a predecessor", phi.Ident())
			return
		}
		d, s := p.vals[phi], p.get(x)
		c := p.class(phi.Type())
		if d.vec == nil {
			if _, ptr := x.Type().(*types.PointerType); ptr {
				s.text = p.pointer(s, x.Type())
			}
			moves = append(moves, move{d.text, s.text, classOf[c].mov})
			written[d.text] = true
			continue
		}
		for i := range d.vec {
			moves = append(moves, move{d.vec[i].text, s.vec[i].text, classOf[c].mov})
			written[d.vec[i].text] = true
		}
	}
	hazard := false
	for _, m := range moves {
		hazard = hazard || m.s != m.d && written[m.s]
	}
	if hazard {
		for i, m := range moves {
			for c := range classes {
				if classOf[c].mov == m.mov {
					t := p.reg(c)
					p.emit("mov.%s \t%s, %s", m.mov, t, m.s)
					moves[i].s = t
					break
				}
			}
		}
	}
	for _, m := range moves {
		if m.s != m.d {
			p.emit("mov.%s \t%s, %s", m.mov, m.d, m.s)
		}
	}
}
