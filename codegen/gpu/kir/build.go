package kir

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/aton-project/aton/ssa/sym"
)

// Builder makes a kernel. It panics on operands that do not fit: that is a bug of an emitter.
type Builder struct {
	K      *Kernel
	at     *Block
	consts map[constKey]*Node
	sizes  map[string]*Param
}

type constKey struct {
	t    Type
	bits uint64
}

// New starts a kernel of blocks of that many threads.
func New(name string, threads int) *Builder {
	body := &Block{known: map[key]*Node{}}
	return &Builder{K: &Kernel{Name: name, Threads: threads, Body: body}, at: body, consts: map[constKey]*Node{}, sizes: map[string]*Param{}}
}

// Buffer adds a buffer to the parameters.
func (b *Builder) Buffer(name string, elem Type, writes bool) *Mem {
	m := &Mem{Name: name, Elem: elem, Writes: writes, Param: len(b.K.Params)}
	b.K.Params = append(b.K.Params, &Param{Mem: m})
	return m
}

// SharedMem adds shared memory for n elements.
func (b *Builder) SharedMem(name string, elem Type, n int) *Mem {
	m := &Mem{Name: name, Elem: elem, Shared: true, Len: n, Writes: true}
	b.K.Shared = append(b.K.Shared, m)
	return m
}

// Size is an integer that is known at the launch: a constant, or an i32 parameter.
func (b *Builder) Size(e sym.Expr) Value {
	if n, ok := e.Int(); ok {
		return b.I32(n)
	}
	k := e.String()
	p := b.sizes[k]
	if p == nil {
		p = &Param{Size: e}
		p.node = &Node{Op: Scalar, Type: I32, Int: int64(len(b.K.Params))}
		b.sizes[k] = p
		b.K.Params = append(b.K.Params, p)
	}
	return p.node
}

// Int is a constant of an integer type; I1 takes 0 and 1.
func (b *Builder) Int(t Type, n int64) Value {
	switch t {
	case I1:
		n &= 1
	case I8:
		n = int64(int8(n))
	case I16:
		n = int64(int16(n))
	case I32:
		n = int64(int32(n))
	}
	k := constKey{t, uint64(n)}
	v := b.consts[k]
	if v == nil {
		v = &Node{Op: Const, Type: t, Int: n}
		b.consts[k] = v
	}
	return v
}

// I32 is a constant.
func (b *Builder) I32(n int64) Value { return b.Int(I32, n) }

// Float is a constant of type F32 or F64, rounded to it.
func (b *Builder) Float(t Type, f float64) Value {
	k := constKey{t, floatBits(&t, &f)}
	v := b.consts[k]
	if v == nil {
		v = &Node{Op: Const, Type: t, Float: f}
		b.consts[k] = v
	}
	return v
}

// Num is a constant of any type.
func (b *Builder) Num(t Type, f float64) Value {
	if t.IsFloat() {
		return b.Float(t, f)
	}
	return b.Int(t, int64(f))
}

// pure makes an operation without effects, in the outermost block where its operands are. It panics if no block has them all.
func (b *Builder) pure(op Op, t Type, n int64, args ...Value) Value {
	home := b.K.Body
	for _, a := range args {
		if a.block != nil && a.block.depth > home.depth {
			home = a.block
		}
	}
	if (op == Div || op == Rem || op == UDiv || op == URem) && !t.IsFloat() && args[1].Op != Const && args[1].Op != Scalar {
		home = b.at // not before the check that keeps the divisor from being 0
	}
	if !home.encloses(b.at) {
		panic(fmt.Sprintf("kir: %s: %s uses a value of another block", b.K.Name, op))
	}
	k := key{op: op, t: t, n: n}
	for i, a := range args {
		*[...]**Node{&k.a, &k.b, &k.c}[i] = a
	}
	if v := home.known[k]; v != nil {
		return v
	}
	v := &Node{Op: op, Type: t, Int: n, Args: args, block: home}
	home.known[k] = v
	home.Nodes = append(home.Nodes, v)
	return v
}

func (c *Block) encloses(d *Block) bool {
	for d != nil && d.depth > c.depth {
		d = d.parent
	}
	return c == d
}

// effect makes an operation that stays where it is.
func (b *Builder) effect(v *Node) *Node {
	v.block = b.at
	b.at.Nodes = append(b.at.Nodes, v)
	return v
}

// same panics if the operands of an operation differ in type.
func (b *Builder) same(op Op, x, y Value) {
	if x.Type != y.Type {
		panic(fmt.Sprintf("kir: %s: %s of %s and %s", b.K.Name, op, x.Type, y.Type))
	}
}

// Binary is an arithmetic or bitwise operation on two values of a type.
func (b *Builder) Binary(op Op, x, y Value) Value {
	b.same(op, x, y)
	if v := b.foldInt(op, x, y); v != nil {
		return v
	}
	return b.pure(op, x.Type, 0, x, y)
}

// Add is x + y.
func (b *Builder) Add(x, y Value) Value { return b.Binary(Add, x, y) }

// Sub is x - y.
func (b *Builder) Sub(x, y Value) Value { return b.Binary(Sub, x, y) }

// Mul is x * y.
func (b *Builder) Mul(x, y Value) Value { return b.Binary(Mul, x, y) }

// Div is x / y, signed for integers.
func (b *Builder) Div(x, y Value) Value { return b.Binary(Div, x, y) }

// UDiv is x / y of unsigned integers; a shift, for a constant power of 2.
func (b *Builder) UDiv(x, y Value) Value {
	if y.Op == Const && x.Op != Const && y.Int > 0 && y.Int&(y.Int-1) == 0 {
		return b.Binary(LShr, x, b.Int(x.Type, int64(bits.TrailingZeros64(uint64(y.Int)))))
	}
	return b.Binary(UDiv, x, y)
}

// URem is x % y of unsigned integers. The quotient is often needed too, and then computed once.
func (b *Builder) URem(x, y Value) Value {
	if y.Op != Scalar && (y.Op != Const || x.Op == Const || y.Int <= 0) {
		return b.Binary(URem, x, y)
	}
	if y.Op == Const && y.Int&(y.Int-1) == 0 {
		return b.And(x, b.Int(x.Type, y.Int-1))
	}
	return b.Sub(x, b.Mul(b.UDiv(x, y), y))
}

// And is x & y.
func (b *Builder) And(x, y Value) Value { return b.Binary(And, x, y) }

// Or is x | y.
func (b *Builder) Or(x, y Value) Value { return b.Binary(Or, x, y) }

// Xor is x ^ y.
func (b *Builder) Xor(x, y Value) Value { return b.Binary(Xor, x, y) }

// Not is the other bool.
func (b *Builder) Not(x Value) Value { return b.Xor(x, b.Int(I1, 1)) }

// Neg is -x, of which the sign of a float changes whatever it is.
func (b *Builder) Neg(x Value) Value {
	if x.Type.IsFloat() {
		return b.Mul(x, b.Float(x.Type, -1))
	}
	return b.Sub(b.Int(x.Type, 0), x)
}

// Compare gives an I1: Eq, Ne, Lt, Le, and ULt, ULe for unsigned integers.
func (b *Builder) Compare(op Op, x, y Value) Value {
	b.same(op, x, y)
	if x.Op == Const && y.Op == Const && !x.Type.IsFloat() {
		p, q := x.Int, y.Int
		return b.Int(I1, truth(map[Op]bool{Eq: p == q, Ne: p != q, Lt: p < q, Le: p <= q, ULt: uint64(p) < uint64(q), ULe: uint64(p) <= uint64(q)}[op]))
	}
	return b.pure(op, I1, 0, x, y)
}

func truth(v bool) int64 {
	if v {
		return 1
	}
	return 0
}

// Lt is x < y, signed.
func (b *Builder) Lt(x, y Value) Value { return b.Compare(Lt, x, y) }

// Eq is x == y.
func (b *Builder) Eq(x, y Value) Value { return b.Compare(Eq, x, y) }

// IsNaN is x != x.
func (b *Builder) IsNaN(x Value) Value { return b.Compare(Ne, x, x) }

// Select is x where c holds, else y.
func (b *Builder) Select(c, x, y Value) Value {
	b.same(Select, x, y)
	if c.Op == Const {
		if c.Int != 0 {
			return x
		}
		return y
	}
	if x == y {
		return x
	}
	return b.pure(Select, x.Type, 0, c, x, y)
}

// Fma is x*y + z, rounded once for floats.
func (b *Builder) Fma(x, y, z Value) Value {
	if !x.Type.IsFloat() {
		return b.Add(b.Mul(x, y), z)
	}
	b.same(Fma, x, y)
	b.same(Fma, x, z)
	return b.pure(Fma, x.Type, 0, x, y, z)
}

// Unary is one of Sqrt, Floor, Ceil, Trunc, Rint, Abs, on floats.
func (b *Builder) Unary(op Op, x Value) Value { return b.pure(op, x.Type, 0, x) }

// Convert is one of the conversions.
func (b *Builder) Convert(op Op, x Value, to Type) Value {
	if x.Type == to {
		return x
	}
	if op == Round && x.Op == Widen && x.Args[0].Type == to || op == Bitcast && x.Op == Bitcast && x.Args[0].Type == to {
		return x.Args[0]
	}
	if x.Op == Const && !x.Type.IsFloat() && !to.IsFloat() {
		n := x.Int
		if op == ZExt && x.Type != I1 {
			n &= 1<<(8*x.Type.Size()) - 1
		}
		return b.Int(to, n)
	}
	return b.pure(op, to, 0, x)
}

// TF32 is a float32 as a factor of an Mma of the format Tensor32.
func (b *Builder) TF32(x Value) Value { return b.pure(TF32, I32, 0, x) }

// Pack joins two values of 16 bits, the first one lower. It panics for values of other sizes.
func (b *Builder) Pack(lo, hi Value) Value {
	b.same(Pack, lo, hi)
	if lo.Type.Size() != 2 {
		panic(fmt.Sprintf("kir: %s: pack of %s", b.K.Name, lo.Type))
	}
	return b.pure(Pack, I32, 0, lo, hi)
}

// ThreadX is the number of the thread in its block.
func (b *Builder) ThreadX() Value { return b.pure(ThreadX, I32, 0) }

// BlockIndex is the place of the block in the grid along an axis.
func (b *Builder) BlockIndex(axis int) Value { return b.pure(BlockX+Op(axis), I32, 0) }

// Load reads an element. What nobody writes is read once.
func (b *Builder) Load(m *Mem, at Value) Value {
	k := key{op: Load, t: m.Elem, a: at, m: m}
	if !m.Writes {
		for c := b.at; c != nil; c = c.parent {
			if v := c.known[k]; v != nil {
				return v
			}
		}
	}
	v := b.effect(&Node{Op: Load, Type: m.Elem, Mem: m, Width: 1, Args: []Value{at}})
	b.at.known[k] = v
	return v
}

// LoadVec reads n elements, 2 or 4, at a place that is a multiple of n.
func (b *Builder) LoadVec(m *Mem, at Value, n int) []Value {
	if n == 1 {
		return []Value{b.Load(m, at)}
	}
	return b.results(b.effect(&Node{Op: Load, Mem: m, Width: n, Args: []Value{at}}), n, func(int) Type { return m.Elem })
}

// LoadWords reads n words, 1, 2 or 4, of 4 bytes each from a buffer of bytes, at a place that is a multiple of 4n. It panics for elements of another size.
func (b *Builder) LoadWords(m *Mem, at Value, n int) []Value {
	if m.Elem != I8 {
		panic(fmt.Sprintf("kir: %s: words of %s of %s", b.K.Name, m.Name, m.Elem))
	}
	v := b.effect(&Node{Op: Load, Mem: m, Width: n, Words: true, Args: []Value{at}})
	if n == 1 {
		v.Type = I32
		return []Value{v}
	}
	return b.results(v, n, func(int) Type { return I32 })
}

// Store writes elements, 1, 2 or 4, from a place on that is a multiple of their number. It panics for elements of another type.
func (b *Builder) Store(m *Mem, at Value, vs ...Value) {
	for _, v := range vs {
		if v.Type != m.Elem {
			panic(fmt.Sprintf("kir: %s: %s stored to %s of %s", b.K.Name, v.Type, m.Name, m.Elem))
		}
	}
	b.effect(&Node{Op: Store, Mem: m, Width: len(vs), Args: append([]Value{at}, vs...)})
}

// Barrier waits for all threads of the block.
func (b *Builder) Barrier() { b.effect(&Node{Op: Barrier}) }

// Shuffle is x of the lane whose number differs in the bits of mask; all lanes of the warp must take part. It panics for
// types of less than 32 bits, predicates excepted.
func (b *Builder) Shuffle(x Value, mask int64) Value {
	switch x.Type {
	case I32, F32:
		return b.effect(&Node{Op: Shuffle, Type: x.Type, Int: mask, Args: []Value{x}})
	case F64:
		return b.Convert(Bitcast, b.Shuffle(b.Convert(Bitcast, x, I64), mask), F64)
	case I64:
		lo := b.Shuffle(b.Convert(Narrow, x, I32), mask)
		hi := b.Shuffle(b.Convert(Narrow, b.Binary(LShr, x, b.Int(I64, 32)), I32), mask)
		return b.Or(b.Convert(ZExt, lo, I64), b.Binary(Shl, b.Convert(ZExt, hi, I64), b.Int(I64, 32)))
	case I1:
		return b.Compare(Ne, b.Shuffle(b.Convert(ZExt, x, I32), mask), b.I32(0))
	}
	panic("kir: shuffle of " + x.Type.String())
}

// Mma is D = A*B + C by the 32 threads of a warp together, with A of 16 x 8p and B of 8p x 8 numbers, of which a word has p = f.PerWord(), and C and D of 16x8
// sums: the instruction mma.sync.aligned.m16n8k<8p> of PTX. Thread t of the warp has, with g = t/4 and q = t%4, and the lowest bits of a word first:
//
//	a0: A[g][pq ... pq+p-1]    a1: A[g+8][pq ...]    a2: A[g][p(q+4) ...]    a3: A[g+8][p(q+4) ...]
//	b0: B[pq ... pq+p-1][g]    b1: B[p(q+4) ...][g]
//	c0, c1: C[g][2q, 2q+1]    c2, c3: C[g+8][2q, 2q+1], and D alike
//
// The sums are those of sim. All threads of the warp must take part. It panics for words that are no I32, and sums of another type than f.Sum().
func (b *Builder) Mma(f Format, a [4]Value, x [2]Value, c [4]Value) [4]Value {
	args := append(append(a[:], x[:]...), c[:]...)
	for i, v := range args {
		if want := map[bool]Type{true: I32, false: f.Sum()}[i < 6]; v.Type != want {
			panic(fmt.Sprintf("kir: %s: operand %d of mma is %s, not %s", b.K.Name, i, v.Type, want))
		}
	}
	return [4]Value(b.results(b.effect(&Node{Op: Mma, Int: int64(f), Args: args}), 4, func(int) Type { return f.Sum() }))
}

// LoadMatrix reads four matrices of 8x8 numbers of 16 bits from shared memory, by the 32 threads of a warp together: ldmatrix.sync.aligned.m8n8.x4 of PTX. at is where the 16 bytes of row t%8 of
// matrix t/8 are, for thread t, a multiple of 16 bytes. Word i of thread t is numbers 2q and 2q+1 of row g of matrix i, with g = t/4 and q = t%4, the first one lower; of
// the transposed matrix numbers 2q and 2q+1 of column g. All threads of the warp must take part. It panics for memory that is not shared.
func (b *Builder) LoadMatrix(m *Mem, at Value, transposed bool) [4]Value {
	if !m.Shared {
		panic(fmt.Sprintf("kir: %s: matrices of %s, which is not shared", b.K.Name, m.Name))
	}
	return [4]Value(b.results(b.effect(&Node{Op: LoadMatrix, Mem: m, Int: truth(transposed), Args: []Value{at}}), 4, func(int) Type { return I32 }))
}

// CopyAsync asks for a copy of so many bytes, 4, 8 or 16, from a buffer to shared memory, from and to places that are multiples of them: cp.async of PTX. Nobody may read or write the
// words before the thread has waited for the group of the copy, and no other thread before a barrier behind that; nor may what is copied be overwritten before. It panics
// for other numbers of bytes, and if the memory is not of these kinds.
func (b *Builder) CopyAsync(to *Mem, at Value, from *Mem, place Value, bytes int) {
	if bytes != 4 && bytes != 8 && bytes != 16 || !to.Shared || from.Shared {
		panic(fmt.Sprintf("kir: %s: asynchronous copy of %d bytes from %s to %s", b.K.Name, bytes, from.Name, to.Name))
	}
	b.effect(&Node{Op: CopyAsync, Mem: to, From: from, Int: int64(bytes), Args: []Value{at, place}})
}

// CommitCopies makes a group of the copies that the thread has asked for since the last one; there may be none.
func (b *Builder) CommitCopies() { b.effect(&Node{Op: CopyCommit}) }

// WaitCopies waits until at most n groups of the thread are not done, the last ones.
func (b *Builder) WaitCopies(n int) { b.effect(&Node{Op: CopyWait, Int: int64(n)}) }

func (b *Builder) results(of *Node, n int, t func(i int) Type) []Value {
	out := make([]Value, n)
	for i := range out {
		out[i] = &Node{Op: Result, Type: t(i), Int: int64(i), Args: []Value{of}, block: b.at}
	}
	return out
}

func (b *Builder) open() *Block {
	b.at = &Block{parent: b.at, depth: b.at.depth + 1, known: map[key]*Node{}}
	return b.at
}

// For counts from a number to below another one and carries values; body gives the next ones. The results are the last ones.
// It panics if the body gives another number of values.
func (b *Builder) For(from, to, step Value, carried []Value, body func(i Value, carried []Value) []Value) []Value {
	if from.Op == Const && to.Op == Const && step.Op == Const && from.Int+step.Int >= to.Int {
		if from.Int >= to.Int {
			return carried
		}
		return body(from, carried) // one turn
	}
	outer := b.at
	in := b.open()
	in.Params = append(in.Params, &Node{Type: I32, Op: Result, block: in})
	for _, c := range carried {
		in.Params = append(in.Params, &Node{Type: c.Type, Op: Result, block: in})
	}
	in.Results = body(in.Params[0], in.Params[1:])
	b.at = outer
	if len(in.Results) != len(carried) {
		panic("kir: a loop that carries another number of values")
	}
	for i, c := range carried {
		b.same(For, c, in.Results[i])
	}
	loop := b.effect(&Node{Op: For, Args: append([]Value{from, to, step}, carried...), Blocks: []*Block{in}})
	return b.results(loop, len(carried), func(i int) Type { return carried[i].Type })
}

// If runs one of two bodies, which give as many values; otherwise may be nil if there are none. It
// panics if their numbers differ.
func (b *Builder) If(cond Value, then, otherwise func() []Value) []Value {
	if cond.Op == Const {
		if cond.Int != 0 {
			return then()
		}
		if otherwise == nil {
			return nil
		}
		return otherwise()
	}
	outer := b.at
	var sides []*Block
	for _, f := range []func() []Value{then, otherwise} {
		b.at = outer
		in := b.open()
		if f != nil {
			in.Results = f()
		}
		sides = append(sides, in)
	}
	b.at = outer
	if len(sides[0].Results) != len(sides[1].Results) {
		panic("kir: the sides of a condition give different numbers of values")
	}
	for i, v := range sides[0].Results {
		b.same(If, v, sides[1].Results[i])
	}
	v := b.effect(&Node{Op: If, Args: []Value{cond}, Blocks: sides})
	return b.results(v, len(sides[0].Results), func(i int) Type { return sides[0].Results[i].Type })
}

// When runs body where cond holds.
func (b *Builder) When(cond Value, body func()) {
	b.If(cond, func() []Value { body(); return nil }, nil)
}

// foldInt does arithmetic on integers that are known; nil if there is nothing to do.
func (b *Builder) foldInt(op Op, x, y Value) Value {
	if x.Type.IsFloat() {
		return nil
	}
	// the constant of a sum stands last, where an address has it for nothing: (v + c) + y is (v + y) + c
	if offset := func(v Value) bool { return v.Op == Add && v.Args[1].Op == Const }; op == Add && x.Op != Const && y.Op != Const && x.Type != I1 {
		switch {
		case offset(x) && offset(y):
			return b.Add(b.Add(x.Args[0], y.Args[0]), b.Int(x.Type, x.Args[1].Int+y.Args[1].Int))
		case offset(x):
			return b.Add(b.Add(x.Args[0], y), x.Args[1])
		case offset(y):
			return b.Add(b.Add(x, y.Args[0]), y.Args[1])
		}
	}
	if x.Op == Const && y.Op != Const && (op == Add || op == Mul || op == And || op == Or) {
		x, y = y, x
	}
	if y.Op != Const {
		return nil
	}
	n := y.Int
	if x.Op == Const {
		m := x.Int
		switch op {
		case Add:
			return b.Int(x.Type, m+n)
		case Sub:
			return b.Int(x.Type, m-n)
		case Mul:
			return b.Int(x.Type, m*n)
		case And:
			return b.Int(x.Type, m&n)
		case Or:
			return b.Int(x.Type, m|n)
		case Xor:
			return b.Int(x.Type, m^n)
		case UDiv:
			if m >= 0 && n > 0 {
				return b.Int(x.Type, m/n)
			}
		case URem:
			if m >= 0 && n > 0 {
				return b.Int(x.Type, m%n)
			}
		}
		return nil
	}
	switch {
	case n == 0 && (op == Add || op == Sub || op == Or || op == Xor || op == Shl || op == LShr || op == AShr), n == 1 && (op == Mul || op == UDiv || op == Div) && x.Type != I1:
		return x
	case n == 0 && (op == Mul || op == And), n == 1 && op == URem:
		return b.Int(x.Type, 0)
	case x.Type == I1 && n == 1 && op == And:
		return x
	case x.Type == I1 && n == 1 && op == Or:
		return y
	case op == Add && x.Op == Add && x.Args[1].Op == Const: // (v + m) + n
		return b.Add(x.Args[0], b.Int(x.Type, x.Args[1].Int+n))
	case op == Mul && x.Op == Add && x.Args[1].Op == Const && x.Type != I1: // (v + m) * n
		return b.Add(b.Mul(x.Args[0], y), b.Int(x.Type, x.Args[1].Int*n))
	}
	return nil
}

// Prune removes the operations whose values nobody uses, and which do nothing else. Nothing can be built afterwards.
func (b *Builder) Prune() {
	used := map[*Node]bool{}
	var mark func(v *Node)
	mark = func(v *Node) {
		if used[v] {
			return
		}
		used[v] = true
		for _, a := range v.Args {
			mark(a)
		}
	}
	var effects func(c *Block)
	effects = func(c *Block) {
		for _, v := range c.Nodes {
			if v.Op > Pack {
				mark(v)
			}
			for _, in := range v.Blocks {
				for _, r := range in.Results {
					mark(r)
				}
				effects(in)
			}
		}
	}
	effects(b.K.Body)
	var sweep func(c *Block)
	sweep = func(c *Block) {
		c.Nodes = slices.DeleteFunc(c.Nodes, func(v *Node) bool { return !used[v] })
		for _, v := range c.Nodes {
			for _, in := range v.Blocks {
				sweep(in)
			}
		}
	}
	sweep(b.K.Body)
}
