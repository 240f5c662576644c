package sim

import (
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"github.com/aton-project/aton/codegen/gpu/internal/llir"
	"github.com/aton-project/aton/ssa/tensor"
)

// operand is an IR value: one slot, or several for a vector. A pointer may carry a constant offset.
type operand struct {
	s   slot
	off uint64
	vec []slot
	// pair says that s is a word of two halves, which is taken apart where it is needed.
	pair bool
}

func (o operand) slots() []slot {
	if o.vec != nil {
		return o.vec
	}
	return []slot{o.s}
}

// irReader translates one llir function.
type irReader struct {
	*builder
	f      *ir.Func
	values map[value.Value]operand
	start  map[*ir.Block]int
	line   int
}

// FromIR makes a kernel of an llir function. It must use the subset of LLVM IR that the PTX printer has; anything
// else is an error that names the instruction. Lines in faults count in f.LLString().
func FromIR(f *ir.Func) (k *Kernel, err error) {
	defer func() {
		if p := recover(); p != nil { // llir's accessors panic on functions that are not well formed
			k, err = nil, fmt.Errorf("sim: %s is not well formed: %v", f.Name(), p)
		}
	}()
	if len(f.Blocks) == 0 {
		return nil, fmt.Errorf("sim: function %s has no body", f.Name())
	}
	r := &irReader{builder: newBuilder(f.Name()), f: f, values: map[value.Value]operand{}, start: map[*ir.Block]int{}}
	r.k.text = func(line int) string {
		if f.AssignIDs() != nil { // it was changed since: the lines are others
			return ""
		}
		lines := strings.Split(f.LLString(), "\n")
		if line < 1 || line > len(lines) {
			return ""
		}
		return strings.TrimSpace(lines[line-1])
	}
	for _, p := range f.Params {
		w := r.width(p.Typ)
		_, ptr := p.Typ.(*types.PointerType)
		s := r.alloc(w)
		r.k.params = append(r.k.params, param{s: s, width: int8(w), pointer: ptr, name: p.Name()})
		r.values[p] = operand{s: s}
	}
	lines := map[*ir.Block]int{}
	line := 1 // of the word define; then a label, the instructions, the terminator, an empty line
	for _, b := range f.Blocks {
		lines[b] = line + 1
		line += len(b.Insts) + 3
	}
	order := blockOrder(f)
	r.layout(order)
	for _, b := range order {
		r.line = lines[b]
		r.block(b)
		if r.err != nil {
			return nil, fmt.Errorf("sim: %s, line %d: %w", f.Name(), r.line, r.err)
		}
	}
	k, err = r.finish()
	if err != nil {
		return nil, fmt.Errorf("sim: %s: %w", f.Name(), err)
	}
	return k, nil
}

// blockOrder is the reachable blocks, each after those that dominate it.
func blockOrder(f *ir.Func) []*ir.Block {
	at := map[*ir.Block]int32{}
	segs := make([]segment, len(f.Blocks))
	for i, b := range f.Blocks {
		at[b] = int32(i)
	}
	for i, b := range f.Blocks {
		s := &segs[i]
		s.term = termRet
		switch t := b.Term.(type) {
		case *ir.TermBr:
			if to, ok := t.Target.(*ir.Block); ok {
				s.term, s.to[0] = termJump, at[to]
			}
		case *ir.TermCondBr:
			yes, ok1 := t.TargetTrue.(*ir.Block)
			no, ok2 := t.TargetFalse.(*ir.Block)
			if ok1 && ok2 {
				s.term, s.to = termBranch, [2]int32{at[yes], at[no]}
			}
		}
	}
	var order []*ir.Block
	for _, i := range orderSegments(segs) {
		order = append(order, f.Blocks[i])
	}
	return order
}

// layout numbers the segments and gives phis their slots.
func (r *irReader) layout(order []*ir.Block) {
	n := 0
	for _, b := range order {
		r.start[b] = n
		n++
		for _, in := range b.Insts {
			switch in := in.(type) {
			case *ir.InstPhi:
				r.values[in] = r.fresh(in.Type())
			case *ir.InstCall:
				if isBarrier(in) {
					n++
				}
			}
		}
	}
}

func isBarrier(c *ir.InstCall) bool {
	f, ok := c.Callee.(*ir.Func)
	return ok && f.Name() == "llvm.nvvm.barrier0"
}

func (r *irReader) fresh(t types.Type) operand {
	if v, ok := t.(*types.VectorType); ok {
		var o operand
		w := r.width(v.ElemType)
		for range v.Len {
			o.vec = append(o.vec, r.alloc(w))
		}
		return o
	}
	return operand{s: r.alloc(r.width(t))}
}

// width is the bytes of a scalar in a slot.
func (r *irReader) width(t types.Type) int {
	switch t := t.(type) {
	case *types.IntType:
		switch t.BitSize {
		case 1, 8:
			return 1
		case 16:
			return 2
		case 32:
			return 4
		case 64:
			return 8
		}
	case *types.FloatType:
		switch t.Kind {
		case types.FloatKindHalf:
			return 2
		case types.FloatKindFloat:
			return 4
		case types.FloatKindDouble:
			return 8
		}
	case *types.PointerType:
		return 8
	case *types.VectorType:
		return r.width(t.ElemType)
	}
	r.fail("type %s", t)
	return 8
}

// size is the bytes of a type in memory.
func (r *irReader) size(t types.Type) int {
	switch t := t.(type) {
	case *types.ArrayType:
		n := r.size(t.ElemType)
		if n > 0 && t.Len > uint64(math.MaxInt32/n) {
			r.fail("array %s", t)
			return 0
		}
		return n * int(t.Len)
	case *types.VectorType:
		return r.size(t.ElemType) * int(t.Len)
	}
	return r.width(t)
}

func isI1(t types.Type) bool {
	i, ok := t.(*types.IntType)
	return ok && i.BitSize == 1
}

// get is the operand of a value; constants become slots that are filled once.
func (r *irReader) get(v value.Value) operand {
	if o, ok := r.values[v]; ok {
		if o.pair {
			return operand{vec: r.unpack(o.s, 4, 2)}
		}
		return o
	}
	if _, ok := v.(constant.Constant); ok {
		o := r.constantOperand(v)
		r.values[v] = o
		return o
	}
	r.fail("operand %s is not defined before", v)
	return operand{}
}

func (r *irReader) constantOperand(v value.Value) operand {
	switch c := v.(type) {
	case *constant.Int:
		x := c.X
		if x.Sign() < 0 {
			x = new(big.Int).Add(x, new(big.Int).Lsh(big.NewInt(1), 64))
		}
		bits := x.Uint64()
		if c.Typ.BitSize == 1 {
			bits &= 1
		}
		return operand{s: r.constant(r.width(c.Typ), bits)}
	case *constant.Float:
		return operand{s: r.constant(r.width(c.Typ), floatBits(c))}
	case *constant.Null:
		return operand{s: r.constant(8, 0)}
	case *constant.Undef, *constant.Poison, *constant.ZeroInitializer:
		if t, ok := v.Type().(*types.VectorType); ok {
			var o operand
			for range t.Len {
				o.vec = append(o.vec, r.constant(r.width(t.ElemType), 0))
			}
			return o
		}
		return operand{s: r.constant(r.width(v.Type()), 0)}
	case *constant.Vector:
		var o operand
		for _, e := range c.Elems {
			o.vec = append(o.vec, r.get(e).s)
		}
		return o
	case *ir.Global:
		return r.global(c)
	case *constant.ExprBitCast:
		return r.get(c.From)
	case *constant.ExprAddrSpaceCast:
		return r.addrSpaceCast(r.get(c.From), c.From.Type(), c.To)
	case *constant.ExprGetElementPtr:
		return r.gep(c.ElemType, c.Src, llir.Indices(c))
	}
	r.fail("constant %s", v)
	return operand{}
}

func floatBits(c *constant.Float) uint64 {
	x, _ := c.X.Float64()
	neg := c.X.Signbit()
	switch c.Typ.Kind {
	case types.FloatKindHalf:
		if c.NaN {
			if neg {
				return 0xfe00
			}
			return 0x7e00
		}
		return uint64(tensor.FloatToHalf(x))
	case types.FloatKindFloat:
		if c.NaN {
			if neg {
				return 0xffc00000
			}
			return 0x7fc00000
		}
		return uint64(math.Float32bits(float32(x)))
	}
	if c.NaN {
		if neg {
			return 0xfff8000000000000
		}
		return 0x7ff8000000000000
	}
	return math.Float64bits(x)
}

// global is a variable in shared memory: internal ones are static, an external one is the dynamic part.
func (r *irReader) global(g *ir.Global) operand {
	t, ok := g.Type().(*types.PointerType)
	if !ok || t.AddrSpace != 3 {
		r.fail("global variable %s is not in shared memory", g.Ident())
		return operand{}
	}
	if g.Init == nil {
		r.k.dynamic = 0
		return operand{s: r.dynamicBase()}
	}
	off, err := r.k.addObject(g.Name(), r.size(g.ContentType), int(g.Align))
	if err != nil {
		r.fail("%w", err)
	}
	return operand{s: r.constant(8, uint64(off))}
}

// address turns an operand into one slot.
func (r *irReader) address(o operand) slot {
	if o.off == 0 {
		return o.s
	}
	d := r.alloc(8)
	r.emit(inst{run: vectored("addimm", addImm), d: d, a: o.s, b: none, c: none, width: 8, guard: none, line: int32(r.line), imm: o.off})
	return d
}

func (r *irReader) addrSpaceCast(o operand, from, to types.Type) operand {
	a, ok1 := from.(*types.PointerType)
	b, ok2 := to.(*types.PointerType)
	if !ok1 || !ok2 {
		r.fail("addrspacecast of %s", from)
		return o
	}
	switch {
	case b.AddrSpace == 0:
		o.off += toGeneric(space(a.AddrSpace))
	case a.AddrSpace == 0:
		o.off -= toGeneric(space(b.AddrSpace))
	case a.AddrSpace != b.AddrSpace:
		r.fail("addrspacecast from %d to %d", a.AddrSpace, b.AddrSpace)
	}
	return o
}

// gep adds indices to a pointer. Constant ones are kept aside as an offset.
func (r *irReader) gep(elem types.Type, base value.Value, indices []value.Value) operand {
	o := r.get(base)
	t := elem
	for i, index := range indices {
		if i > 0 {
			at := llir.Elem(t)
			if at == nil {
				r.fail("index into %s", t)
				return o
			}
			t = at
		}
		size := uint64(r.size(t))
		if c, ok := index.(*constant.Int); ok {
			o.off += uint64(c.X.Int64()) * size
			continue
		}
		it, ok := index.Type().(*types.IntType)
		if !ok {
			r.fail("index of type %s", index.Type())
			return o
		}
		var run runner
		switch it.BitSize {
		case 16:
			run = madWide[int16]
		case 32:
			run = madWide[int32]
			if size < 1<<31 {
				run = vectored("madwide", run)
			}
		case 64:
			run = madWide[int64]
		default:
			r.fail("index of type %s", it)
			return o
		}
		d := r.alloc(8)
		r.emit(inst{run: run, d: d, a: r.get(index).s, b: o.s, c: none, width: 8, guard: none, line: int32(r.line), imm: size})
		o.s = d
	}
	return o
}

func (r *irReader) block(b *ir.Block) {
	r.segment()
	for _, in := range b.Insts {
		r.line++
		r.instruction(in)
		if r.err != nil {
			r.err = fmt.Errorf("%w in %s", r.err, in.LLString())
			return
		}
	}
	r.line++
	seg := &r.segs[r.cur]
	seg.line = int32(r.line)
	switch t := b.Term.(type) {
	case *ir.TermRet:
		if t.X != nil {
			r.fail("a kernel returns nothing")
		}
		seg.term = termRet
	case *ir.TermUnreachable:
		seg.term = termTrap
	case *ir.TermBr:
		seg.term = termJump
		r.edge(0, b, t.Target)
	case *ir.TermCondBr:
		seg.term = termBranch
		seg.cond = r.get(t.Cond).s
		r.edge(0, b, t.TargetTrue)
		r.edge(1, b, t.TargetFalse)
	default:
		r.fail("terminator %T", b.Term)
	}
}

// edge sets a successor and the copies that its phis need. They happen at once: through temporaries when one reads what
// another writes.
func (r *irReader) edge(side int, from *ir.Block, target value.Value) {
	to, ok := target.(*ir.Block)
	if !ok {
		r.fail("branch to %s", target)
		return
	}
	at, ok := r.start[to]
	if !ok {
		r.fail("branch to a block of another function")
		return
	}
	seg := r.cur
	r.segs[seg].to[side] = int32(at)
	type move struct {
		d, s slot
		off  uint64
		w    int
	}
	var moves []move
	written := map[slot]bool{}
	for _, in := range to.Insts {
		phi, ok := in.(*ir.InstPhi)
		if !ok {
			break
		}
		found := false
		for _, inc := range phi.Incs {
			if inc.Pred != value.Value(from) {
				continue
			}
			found = true
			d, s := r.values[phi], r.get(inc.X)
			w := r.width(phi.Type())
			if d.vec == nil {
				moves = append(moves, move{d.s, s.s, s.off, w})
				written[d.s] = true
				break
			}
			for i := range d.vec {
				if i < len(s.vec) {
					moves = append(moves, move{d.vec[i], s.vec[i], 0, w})
					written[d.vec[i]] = true
				}
			}
			break
		}
		if !found {
			r.fail("phi %s has no value for a predecessor", phi.Ident())
			return
		}
	}
	hazard := false
	for _, m := range moves {
		hazard = hazard || m.s != m.d && written[m.s]
	}
	copyOf := func(d, s slot, off uint64, w int) inst {
		in := inst{run: movOp(w), d: d, a: s, b: none, c: none, width: int8(w), guard: none, line: int32(r.line), imm: off}
		if off != 0 {
			in.run = vectored("addimm", addImm)
		}
		return in
	}
	edge := &r.segs[seg].edge[side]
	if hazard {
		for i, m := range moves {
			t := r.alloc(m.w)
			*edge = append(*edge, copyOf(t, m.s, m.off, m.w))
			moves[i].s, moves[i].off = t, 0
		}
	}
	for _, m := range moves {
		if m.s != m.d || m.off != 0 {
			*edge = append(*edge, copyOf(m.d, m.s, m.off, m.w))
		}
	}
}
