package kir

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// shape is what the text says of the types of an operation, and what they must be.
type shape uint8

const (
	special  shape = iota // of its own
	index                 // no operand, gives an I32
	computes              // operands and result of one type, which the text says
	compares              // two operands of the type that the text says, gives an I1
	converts              // from the second type that the text says to the first one
	packs                 // two operands of the type that the text says, gives an I32
	rounds                // from F32 to I32: the text says no type
)

func (o Op) shape() shape {
	switch o {
	case ThreadX, BlockX, BlockY, BlockZ:
		return index
	case Eq, Ne, Lt, Le, ULt, ULe:
		return compares
	case SExt, ZExt, Narrow, Widen, Round, SToF, UToF, FToS, FToU, Bitcast:
		return converts
	case Pack:
		return packs
	case TF32:
		return rounds
	case Add, Sub, Mul, Div, Rem, UDiv, URem, And, Or, Xor, Shl, LShr, AShr, Select, Fma, Sqrt, Floor, Ceil, Trunc, Rint, Abs:
		return computes
	}
	return special
}

// operands is how many operands an operation has whose shape is not special.
func (o Op) operands() int {
	switch {
	case o.shape() == index:
		return 0
	case o == Select, o == Fma:
		return 3
	case o == Sqrt, o == Floor, o == Ceil, o == Trunc, o == Rint, o == Abs, o.shape() == converts, o.shape() == rounds:
		return 1
	}
	return 2
}

// Bounds of what Verify accepts. Kernels of emitters are far below.
const (
	maxThreads = 1024      // in a block, as processors have it
	maxShared  = 227 << 10 // bytes that a block has on any processor
	maxParams  = 1000      // whose 4 KB PTX allows
)

// Verify reports the first thing that is wrong with a kernel: a type, a value that is used where it is not known, a buffer that is stored to and is not
// declared so. That all threads of a block come to its barriers is what a run in the simulator tells.
func Verify(k *Kernel) error {
	if err := k.check(); err != nil {
		return err
	}
	v := verifier{k: k, known: map[*Node]bool{}}
	return v.block(k.Body)
}

// check checks what stands before the operations.
func (k *Kernel) check() error {
	if k.Name == "" || strings.Trim(k.Name, "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" || k.Name[0] <= '9' {
		return fmt.Errorf("%q is no name of a kernel: letters, digits and underscores, a letter first", k.Name)
	}
	if k.Threads < 1 || k.Threads > maxThreads {
		return fmt.Errorf("%d threads in a block, not 1 to %d", k.Threads, maxThreads)
	}
	if k.Resident < 0 || k.Resident > 32 {
		return fmt.Errorf("%d resident blocks, not 1 to 32", k.Resident)
	}
	if len(k.Params) > maxParams {
		return fmt.Errorf("%d parameters, more than %d", len(k.Params), maxParams)
	}
	names := map[string]bool{}
	bytes := 0
	add := func(m *Mem) error {
		switch {
		case names[m.Name]:
			return fmt.Errorf("two memories %s", m.Name)
		case m.Elem == None || m.Elem == I1:
			return fmt.Errorf("memory %s of %s", m.Name, m.Elem)
		}
		names[m.Name] = true
		return nil
	}
	for _, p := range k.Params {
		if p.Mem != nil {
			if err := add(p.Mem); err != nil {
				return err
			}
		}
	}
	for _, m := range k.Shared {
		if err := add(m); err != nil {
			return err
		}
		if m.Len < 1 || m.Len > maxShared {
			return fmt.Errorf("shared memory %s of %d elements", m.Name, m.Len)
		}
		if bytes += m.Len * m.Elem.Size(); bytes > maxShared {
			return fmt.Errorf("more than %d bytes of shared memory", maxShared)
		}
	}
	return nil
}

type verifier struct {
	k     *Kernel
	known map[*Node]bool // values that are known here
	open  []*Node        // in the order in which they became known
}

func (c *verifier) define(v *Node) {
	c.known[v] = true
	c.open = append(c.open, v)
}

func (c *verifier) used(v *Node) error {
	of := v
	if v.Op == Result && len(v.Args) == 1 {
		if of = v.Args[0]; int(v.Int) < 0 || int(v.Int) >= len(of.results()) || of.results()[v.Int] != v.Type {
			return fmt.Errorf("no result %d of type %s of %s", v.Int, v.Type, of.Op)
		}
	}
	switch {
	case of.Op == Const:
	case of.Op == Scalar:
		if i := int(v.Int); i < 0 || i >= len(c.k.Params) || c.k.Params[i].Mem != nil {
			return fmt.Errorf("parameter %d is no size", i)
		}
	case !c.known[of]:
		return fmt.Errorf("a value of %s is used where it is not known", of.Op)
	}
	return nil
}

func (c *verifier) block(b *Block) error {
	start := len(c.open)
	for _, p := range b.Params {
		c.define(p)
	}
	for _, v := range b.Nodes {
		for _, a := range v.Args {
			if err := c.used(a); err != nil {
				return fmt.Errorf("%s: %w", v.Op, err)
			}
		}
		for _, m := range []*Mem{v.Mem, v.From} {
			if m != nil && !slices.Contains(c.k.Shared, m) && !slices.ContainsFunc(c.k.Params, func(p *Param) bool { return p.Mem == m }) {
				return fmt.Errorf("%s: memory %s is not the kernel's", v.Op, m.Name)
			}
		}
		if err := v.check(); err != nil {
			return err
		}
		for _, in := range v.Blocks {
			if err := c.block(in); err != nil {
				return err
			}
		}
		c.define(v)
	}
	for _, r := range b.Results {
		if err := c.used(r); err != nil {
			return fmt.Errorf("give: %w", err)
		}
	}
	for _, v := range c.open[start:] {
		delete(c.known, v)
	}
	c.open = c.open[:start]
	return nil
}

// results are the types of the results of an operation that has a list of them.
func (v *Node) results() []Type {
	switch v.Op {
	case Load:
		if v.Width > 1 {
			t := v.Mem.Elem
			if v.Words {
				t = I32
			}
			return slices.Repeat([]Type{t}, v.Width)
		}
	case Mma:
		return slices.Repeat([]Type{Format(v.Int).Sum()}, 4)
	case LoadMatrix:
		return []Type{I32, I32, I32, I32}
	case For, If:
		var out []Type
		for _, r := range v.Blocks[0].Results {
			out = append(out, r.Type)
		}
		return out
	}
	return nil
}

// check checks the operands of an operation, and the results of its blocks.
func (v *Node) check() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: %s", v.Op, fmt.Sprintf(format, args...))
	}
	want := func(i int, t Type) error {
		if v.Args[i].Type != t {
			return fail("operand %d is %s, not %s", i+1, v.Args[i].Type, t)
		}
		return nil
	}
	count := func(n int) error {
		if len(v.Args) != n {
			return fail("%d operands, not %d", len(v.Args), n)
		}
		return nil
	}
	all := func(from int, t Type) error {
		for i := from; i < len(v.Args); i++ {
			if err := want(i, t); err != nil {
				return err
			}
		}
		return nil
	}
	if s := v.Op.shape(); s != special {
		if err := count(v.Op.operands()); err != nil {
			return err
		}
		switch s {
		case computes:
			from := 0
			if v.Op == Select {
				if err := want(0, I1); err != nil {
					return err
				}
				from = 1
			}
			if !v.Op.of(v.Type) {
				return fail("not of %s", v.Type)
			}
			return all(from, v.Type)
		case compares:
			t := v.Args[0].Type
			if t == None || (v.Op == ULt || v.Op == ULe) && t.IsFloat() || t == I1 && v.Op != Eq && v.Op != Ne {
				return fail("not of %s", t)
			}
			return all(1, t)
		case packs:
			if v.Args[0].Type.Size() != 2 {
				return fail("not of %s", v.Args[0].Type)
			}
			return want(1, v.Args[0].Type)
		case rounds:
			return want(0, F32)
		case converts:
			if !v.Op.turns(v.Args[0].Type, v.Type) {
				return fail("not from %s to %s", v.Args[0].Type, v.Type)
			}
		}
		return nil
	}
	switch v.Op {
	case Load, Store:
		if len(v.Args) < 1 {
			return count(1)
		}
		if err := want(0, I32); err != nil {
			return err
		}
		if v.Width != 1 && v.Width != 2 && v.Width != 4 {
			return fail("%d elements at once, not 1, 2 or 4", v.Width)
		}
		if v.Op == Load {
			if v.Words && v.Mem.Elem != I8 {
				return fail("words of %s of %s", v.Mem.Name, v.Mem.Elem)
			}
			return count(1)
		}
		if !v.Mem.Writes {
			return fail("%s is only read", v.Mem.Name)
		}
		return cmp.Or(count(1+v.Width), all(1, v.Mem.Elem))
	case Barrier, CopyCommit:
		return count(0)
	case CopyWait:
		if v.Int < 0 || v.Int > 7 {
			return fail("%d groups, not 0 to 7", v.Int)
		}
		return count(0)
	case Shuffle:
		if v.Type != I32 && v.Type != F32 {
			return fail("not of %s", v.Type)
		}
		if v.Int < 0 || v.Int > 31 {
			return fail("lane ^ %d, not 0 to 31", v.Int)
		}
		return cmp.Or(count(1), all(0, v.Type))
	case Mma:
		if v.Int < int64(Half) || v.Int > int64(U8) {
			return fail("no format %d", v.Int)
		}
		if err := count(10); err != nil {
			return err
		}
		for i := range 6 {
			if err := want(i, I32); err != nil {
				return err
			}
		}
		return all(6, Format(v.Int).Sum())
	case LoadMatrix:
		if !v.Mem.Shared {
			return fail("%s is not shared", v.Mem.Name)
		}
		return cmp.Or(count(1), all(0, I32))
	case CopyAsync:
		if v.Int != 4 && v.Int != 8 && v.Int != 16 || !v.Mem.Shared || v.From.Shared {
			return fail("%d bytes from %s to %s", v.Int, v.From.Name, v.Mem.Name)
		}
		return cmp.Or(count(2), all(0, I32))
	case For:
		in := v.Blocks[0]
		if len(v.Args) < 3 || len(in.Params) != len(v.Args)-2 || len(in.Results) != len(in.Params)-1 {
			return fail("%d values are carried in, %d are given", len(v.Args)-3, len(in.Results))
		}
		for i := range 3 {
			if err := want(i, I32); err != nil {
				return err
			}
		}
		if s := v.Args[2]; s.Op == Const && s.Int < 1 {
			return fail("step %d, not 1 or more", s.Int)
		}
		for i, r := range in.Results {
			if t := in.Params[1+i].Type; r.Type != t {
				return fail("value %d is %s in the loop, and %s is given", i+1, t, r.Type)
			} else if err := want(3+i, t); err != nil {
				return err
			}
		}
	case If:
		if err := cmp.Or(count(1), all(0, I1)); err != nil {
			return err
		}
		x, y := v.Blocks[0].Results, v.Blocks[1].Results
		if !slices.EqualFunc(x, y, func(r, s *Node) bool { return r.Type == s.Type }) {
			return fail("the sides give other values than each other")
		}
	default:
		return fail("stands among the operations")
	}
	return nil
}

// of reports that an operation computes in a type.
func (o Op) of(t Type) bool {
	if t == I1 {
		return o == And || o == Or || o == Xor || o == Select
	}
	switch o {
	case Rem, UDiv, URem, And, Or, Xor, Shl, LShr, AShr:
		return t != None && !t.IsFloat()
	case Fma, Sqrt, Floor, Ceil, Trunc, Rint, Abs:
		return t.IsFloat()
	}
	return t != None
}

// turns reports that a conversion is from one type to another one.
func (o Op) turns(from, to Type) bool {
	if from == None || to == None || to == I1 && o != Narrow {
		return false
	}
	more, float, toFloat := to > from, from.IsFloat(), to.IsFloat() // types stand in the order of their bits
	switch o {
	case SExt, ZExt:
		return !float && !toFloat && more
	case Narrow:
		return !float && !toFloat && !more && from != to
	case Widen:
		return float && toFloat && more
	case Round:
		return float && toFloat && !more && from != to
	case SToF, UToF:
		return !float && toFloat
	case FToS, FToU:
		return float && !toFloat
	}
	return from != I1 && from.Size() == to.Size() // Bitcast
}
