package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aton-project/aton/codegen/gpu/isa"
)

// ptxReader translates the text of one entry.
type ptxReader struct {
	*builder
	toks    []token
	pos     int
	params  map[string]int // index
	ranges  map[string]ptxRange
	regs    map[string]ptxReg
	objects map[string]ptxObject
	labels  map[string]int
	jumps   []ptxJump
	open    bool // the current segment may go on
	rough   bool // approximate instructions are taken for exact ones
}

type ptxRange struct{ width, count int } // count 0: the name itself

type ptxReg struct {
	s     slot
	width int
}

type ptxObject struct {
	sp      space
	off     int
	dynamic bool
}

type ptxJump struct {
	seg, side int
	label     string
	line      int
}

const maxPTX = 16 << 20

// FromPTX makes a kernel of the entry in PTX text; entry "" is the first one. Instructions that it does not know, and
// approximate ones whose results no document fixes, are errors. Lines in faults count in the text.
func FromPTX(text, entry string) (*Kernel, error) { return fromPTX(text, entry, false) }

// CountPTX makes a kernel of PTX whose instructions and accesses are to be counted, and whose results nobody compares: approximate
// instructions are taken for exact ones.
func CountPTX(text, entry string) (*Kernel, error) { return fromPTX(text, entry, true) }

func fromPTX(text, entry string, rough bool) (*Kernel, error) {
	if len(text) > maxPTX {
		return nil, fmt.Errorf("sim: PTX text of more than %d bytes", maxPTX)
	}
	toks, err := lexPTX(text)
	if err != nil {
		return nil, fmt.Errorf("sim: PTX %w", err)
	}
	r := &ptxReader{builder: newBuilder(entry), toks: toks, params: map[string]int{}, ranges: map[string]ptxRange{},
		regs: map[string]ptxReg{}, objects: map[string]ptxObject{}, labels: map[string]int{}, rough: rough}
	found := r.module(entry)
	if r.err == nil && !found {
		r.fail("no entry %s", entry)
	}
	if r.err != nil {
		return nil, fmt.Errorf("sim: PTX line %d: %w", r.line, r.err)
	}
	r.k.text = func(line int) string {
		lines := strings.Split(text, "\n")
		if line < 1 || line > len(lines) {
			return ""
		}
		s, _, _ := strings.Cut(lines[line-1], "//")
		return strings.Join(strings.Fields(s), " ")
	}
	k, err := r.finish()
	if err != nil {
		return nil, fmt.Errorf("sim: PTX: %w", err)
	}
	return k, nil
}

func (r *ptxReader) peek() string {
	if r.pos < len(r.toks) {
		return r.toks[r.pos].text
	}
	return ""
}

func (r *ptxReader) next() string {
	if r.pos >= len(r.toks) {
		r.fail("the text ends too early")
		return ""
	}
	t := r.toks[r.pos]
	r.pos++
	r.line = t.line
	return t.text
}

func (r *ptxReader) expect(s string) {
	if t := r.next(); t != s && r.err == nil {
		r.fail("%q where %q should be", t, s)
	}
}

func (r *ptxReader) accept(s string) bool {
	if r.peek() == s {
		r.next()
		return true
	}
	return false
}

// skipLine passes a directive that ends with its line.
func (r *ptxReader) skipLine() {
	for line := r.line; r.pos < len(r.toks) && r.toks[r.pos].line == line; r.pos++ {
	}
}

func (r *ptxReader) module(entry string) (found bool) {
	for r.err == nil && r.pos < len(r.toks) {
		switch t := r.next(); t {
		case ".version", ".target", ".address_size", ".file", ".loc":
			r.skipLine()
		case ".visible", ".weak", ".common", ".extern":
			if t == ".extern" && r.peek() == ".func" {
				r.fail("a function that is declared only")
			}
		case ".shared":
			r.variable(shared)
		case ".entry":
			name := r.next()
			if entry != "" && name != entry {
				r.skipBody()
				continue
			}
			r.k.Name = name
			r.entry()
			return true
		default:
			r.fail("%q at the top level", t)
		}
	}
	return false
}

func (r *ptxReader) skipBody() {
	for r.err == nil && r.next() != "{" {
	}
	for depth := 1; r.err == nil && depth > 0; {
		switch r.next() {
		case "{":
			depth++
		case "}":
			depth--
		}
	}
}

func (r *ptxReader) integer() int {
	v, _, err := ptxNumber(r.next())
	if err != nil || v > 1<<30 {
		r.fail("a number should be here")
		return 0
	}
	return int(v)
}

// variable reads .align n .b8 name[size]; of shared or local memory.
func (r *ptxReader) variable(sp space) {
	align, elem := 1, 0
	for r.err == nil && strings.HasPrefix(r.peek(), ".") {
		t := r.next()
		if t == ".align" {
			align = r.integer()
			if align <= 0 || align&(align-1) != 0 {
				r.fail("alignment %d", align)
			}
			continue
		}
		if elem = isa.Type(t[1:]).Width(); elem == 0 {
			r.fail("type %s of a variable", t)
		}
	}
	name := r.next()
	count, dynamic := 1, false
	if r.accept("[") {
		if r.accept("]") {
			dynamic = true
		} else {
			count = r.integer()
			r.expect("]")
		}
	}
	r.expect(";")
	if r.err != nil {
		return
	}
	if _, ok := r.objects[name]; ok {
		r.fail("variable %s is declared twice", name)
		return
	}
	size := elem * count
	switch {
	case dynamic && sp == shared:
		r.k.dynamic = 0
		r.objects[name] = ptxObject{sp, 0, true}
	case dynamic:
		r.fail("variable %s has no size", name)
	case sp == shared:
		off, err := r.k.addObject(name, size, align)
		if err != nil {
			r.fail("%w", err)
		}
		r.objects[name] = ptxObject{sp, off, false}
	default:
		off := (r.k.local + align - 1) / align * align
		if off+size > maxLocal {
			r.fail("more than %d bytes of local memory", maxLocal)
			return
		}
		r.k.local = (off + size + 7) &^ 7
		r.objects[name] = ptxObject{sp, off, false}
	}
}

func (r *ptxReader) entry() {
	if r.accept("(") && !r.accept(")") {
		for r.err == nil {
			r.param()
			if r.accept(")") {
				break
			}
			r.expect(",")
		}
	}
	for r.err == nil && r.peek() != "{" {
		switch t := r.next(); t {
		case ".maxntid", ".reqntid":
			n := r.integer()
			for r.accept(",") {
				if n *= r.integer(); n > 1<<20 {
					r.fail("%s over the limit", t)
					return
				}
			}
			r.k.maxThread = n
		case ".minnctapersm", ".maxnreg", ".maxnctapersm":
			r.integer()
		case ".noreturn":
		case ".pragma":
			r.directive(t)
		default:
			r.fail("%q before the body", t)
		}
	}
	r.expect("{")
	r.segment()
	r.open = true
	for r.err == nil && !r.accept("}") {
		r.statement()
	}
	if r.err != nil {
		return
	}
	if r.open {
		r.segs[r.cur].term = termRet
	}
	for _, j := range r.jumps {
		at, ok := r.labels[j.label]
		if !ok {
			r.line = j.line
			r.fail("no label %s", j.label)
			return
		}
		r.segs[j.seg].to[j.side] = int32(at)
	}
}

func (r *ptxReader) param() {
	r.expect(".param")
	width := 0
	for r.err == nil && strings.HasPrefix(r.peek(), ".") {
		switch t := r.next(); t {
		case ".ptr", ".global", ".shared", ".const", ".local":
		case ".align":
			r.integer()
		default:
			if width = isa.Type(t[1:]).Width(); width == 0 || t == ".pred" {
				r.fail("parameter of type %s", t)
			}
		}
	}
	name := r.next()
	if r.peek() == "[" {
		r.fail("parameter %s is an array", name)
	}
	if width == 0 {
		r.fail("parameter %s has no type", name)
	}
	if _, ok := r.params[name]; ok {
		r.fail("parameter %s is declared twice", name)
	}
	r.params[name] = len(r.k.params)
	r.k.params = append(r.k.params, param{s: r.alloc(width), width: int8(width), name: name})
}

// statement reads a directive, a label or an instruction.
func (r *ptxReader) statement() {
	t := r.peek()
	switch {
	case strings.HasPrefix(t, "."):
		r.next()
		r.directive(t)
		return
	case r.pos+1 < len(r.toks) && r.toks[r.pos+1].text == ":":
		r.next()
		r.next()
		r.label(t)
		return
	}
	guard, neg := none, false
	if r.accept("@") {
		neg = r.accept("!")
		guard = r.pred(r.next())
	}
	name := r.next()
	line := r.line
	ops := r.operands()
	if r.err != nil {
		return
	}
	r.line = line
	if !r.open {
		r.fresh() // after an unconditional branch: not reachable
	}
	before := len(r.segs[r.cur].insts)
	r.instruction(name, ops, guard, neg)
	r.line = line
	if r.err != nil {
		r.err = fmt.Errorf("%s: %w", name, r.err)
		return
	}
	if guard != none {
		insts := r.segs[r.cur].insts
		for i := min(before, len(insts)); i < len(insts); i++ {
			insts[i].guard, insts[i].guardNeg = guard, neg
		}
	}
}

// directive reads one in a body.
func (r *ptxReader) directive(t string) {
	switch t {
	case ".reg":
		r.registers()
	case ".shared":
		r.variable(shared)
	case ".local":
		r.variable(locals)
	case ".pragma":
		for r.err == nil && r.next() != ";" {
		}
	case ".loc", ".file":
		r.skipLine()
	default:
		r.fail("directive %s", t)
	}
}

// label starts a segment that branches lead to.
func (r *ptxReader) label(name string) {
	if _, ok := r.labels[name]; ok {
		r.fail("label %s twice", name)
		return
	}
	from, falls := r.cur, r.open
	to := r.fresh()
	if falls && from != to {
		r.segs[from].term, r.segs[from].to[0] = termJump, int32(to)
	}
	r.labels[name] = to
}

// operands are those of an instruction, up to its end.
func (r *ptxReader) operands() (ops []ptxOperand) {
	if r.accept(";") {
		return nil
	}
	for r.err == nil {
		ops = append(ops, r.operand(false))
		if r.accept(";") {
			break
		}
		r.expect(",")
	}
	return ops
}

// fresh starts a segment; the caller links the one before.
func (r *ptxReader) fresh() int {
	if len(r.segs) > maxSegments {
		r.fail("more than %d basic blocks", maxSegments)
		return r.cur
	}
	r.open = true
	return r.segment()
}

func (r *ptxReader) registers() {
	t := r.next()
	width := 0
	if strings.HasPrefix(t, ".") {
		width = isa.Type(t[1:]).Width()
	}
	if width == 0 {
		r.fail("registers of type %s", t)
		return
	}
	if width == 1 && t != ".pred" {
		width = 2 // .b8 registers: 16 bits hold them
	}
	for r.err == nil {
		name := r.next()
		count := 0
		if r.accept("<") {
			count = r.integer()
			r.expect(">")
		}
		if _, ok := r.ranges[name]; ok {
			r.fail("register %s is declared twice", name)
		}
		r.ranges[name] = ptxRange{width, count}
		if r.accept(";") {
			return
		}
		r.expect(",")
	}
}

// register finds a register by name, and its width. Slots are given to those that are used.
func (r *ptxReader) register(name string) (ptxReg, bool) {
	if g, ok := r.regs[name]; ok {
		return g, true
	}
	d, ok := r.ranges[name]
	if !ok || d.count != 0 {
		n := len(name)
		for n > 0 && isDigit(name[n-1]) {
			n--
		}
		if d, ok = r.ranges[name[:n]]; !ok || n == len(name) {
			return ptxReg{}, false
		}
		if i, err := strconv.Atoi(name[n:]); err != nil || i >= d.count {
			return ptxReg{}, false
		}
	}
	g := ptxReg{r.alloc(d.width), d.width}
	r.regs[name] = g
	return g, true
}

func (r *ptxReader) pred(name string) slot {
	g, ok := r.register(name)
	if !ok || g.width != 1 {
		r.fail("%s is no predicate", name)
	}
	return g.s
}

func (r *ptxReader) operand(nested bool) ptxOperand {
	t := r.next()
	switch {
	case t == "{":
		var o ptxOperand
		if nested {
			r.fail("a list in a list")
			return o
		}
		for r.err == nil {
			o.list = append(o.list, r.operand(true))
			if r.accept("}") {
				return o
			}
			r.expect(",")
		}
		return o
	case t == "[":
		o := ptxOperand{memory: true}
		name := r.next()
		if v, _, err := ptxNumber(name); err == nil {
			o.imm = v
		} else {
			o.name = name
		}
		if r.accept("+") {
			o.imm += r.signed()
		} else if r.peek() == "-" {
			o.imm += r.signed()
		}
		r.expect("]")
		return o
	case t == "!":
		return ptxOperand{name: r.next(), neg: true}
	case t == "-":
		v, w, err := ptxNumber(r.next())
		if err != nil || w != 0 {
			r.fail("a number should follow the minus sign")
		}
		return ptxOperand{imm: -v, isImm: true}
	case t != "" && isDigit(t[0]):
		v, w, err := ptxNumber(t)
		if err != nil {
			r.fail("number %s", t)
		}
		return ptxOperand{imm: v, isImm: true, isFlt: w}
	case t != "" && isWord(t[0]):
		o := ptxOperand{name: t}
		if r.accept("|") {
			o.second = r.next()
		} else if r.peek() == "+" || r.peek() == "-" {
			if r.peek() == "+" {
				r.next()
			}
			o.imm = r.signed()
		}
		return o
	}
	r.fail("%q where an operand should be", t)
	return ptxOperand{}
}

func (r *ptxReader) signed() uint64 {
	neg := r.accept("-")
	v, w, err := ptxNumber(r.next())
	if err != nil || w != 0 {
		r.fail("an offset should be here")
	}
	if neg {
		return -v
	}
	return v
}
