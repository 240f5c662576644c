package kir

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/ssa/sym"
)

// Part is a kernel that a joined one runs in a number of its blocks.
type Part struct {
	*Kernel
	Blocks sym.Expr
	// Buffers says for each buffer among the parameters which one of the joined kernel it is.
	Buffers []int
}

// Alike reports kernels that Join takes together: of as many threads, as much room on an SM, the same shared memory but for its size, and the same format of factors.
func Alike(k, l *Kernel) bool {
	f, g := k.Factors(), l.Factors()
	return k.Threads == l.Threads && k.Resident == l.Resident && (f == nil) == (g == nil) && (f == nil || *f == *g) && slices.EqualFunc(k.Shared, l.Shared, func(m, n *Mem) bool {
		return m.Name == n.Name && m.Elem == n.Elem
	})
}

// Join makes a kernel whose first blocks do what those of the first part do, and so on. The parts must be Alike, and number their blocks along the first axis. No value is shared
// between parts: what a part computes is what it computes alone, bit by bit. It panics for parts that do not fit.
func Join(parts []Part) *Kernel {
	first := parts[0].Kernel
	b := New("", first.Threads)
	b.K.Resident = first.Resident
	var buffers []*Mem
	run := func(p Part, block Value) {
		c := &joiner{Builder: b, part: p.Kernel, block: block, nodes: map[*Node]*Node{}, mems: map[*Mem]*Mem{}}
		for i, m := range p.Shared {
			c.mems[m] = b.K.Shared[i]
		}
		next := 0
		for _, a := range p.Params {
			if a.Mem == nil {
				continue
			}
			n := p.Buffers[next]
			next++
			if n == len(buffers) {
				buffers = append(buffers, b.Buffer(fmt.Sprintf("b%d", n), a.Mem.Elem, a.Mem.Writes))
			} else if m := buffers[n]; m.Elem != a.Mem.Elem || m.Writes || a.Mem.Writes {
				panic(fmt.Sprintf("kir: %s writes what another part of its kernel has", p.Name))
			}
			c.mems[a.Mem] = buffers[n]
		}
		c.nodesOf(p.Body, b.at)
	}
	for _, p := range parts {
		if !Alike(first, p.Kernel) {
			panic(fmt.Sprintf("kir: %s and %s are not alike", first.Name, p.Name))
		}
		for i, m := range p.Shared {
			if i == len(b.K.Shared) {
				b.SharedMem(m.Name, m.Elem, m.Len)
			}
			b.K.Shared[i].Len = max(b.K.Shared[i].Len, m.Len)
		}
	}
	var rest func(i int, begin sym.Expr)
	rest = func(i int, begin sym.Expr) {
		p, end := parts[i], begin.Add(parts[i].Blocks)
		here := func() []Value {
			run(p, b.Sub(b.BlockIndex(0), b.Size(begin)))
			return nil
		}
		if i == len(parts)-1 {
			here()
			return
		}
		b.If(b.Lt(b.BlockIndex(0), b.Size(end)), here, func() []Value { rest(i+1, end); return nil })
	}
	rest(0, sym.Const(0))
	return b.K
}

// joiner copies a part to where its blocks run.
type joiner struct {
	*Builder
	part  *Kernel
	block Value // the number of the block among those of the part
	nodes map[*Node]*Node
	mems  map[*Mem]*Mem
}

// nodesOf copies what a block has to the end of another one.
func (c *joiner) nodesOf(from, to *Block) {
	for _, v := range from.Nodes {
		if v.Op == BlockX {
			c.nodes[v] = c.block
			continue
		}
		to.Nodes = append(to.Nodes, c.node(v, to))
	}
}

// node copies an operation, and what its blocks have.
func (c *joiner) node(v *Node, to *Block) *Node {
	n := *v
	c.nodes[v], n.block = &n, to
	n.Args = c.values(v.Args, to)
	if v.Mem != nil {
		n.Mem = c.mems[v.Mem]
	}
	if v.From != nil {
		n.From = c.mems[v.From]
	}
	n.Blocks = nil
	for _, from := range v.Blocks {
		in := &Block{parent: to, depth: to.depth + 1, known: map[key]*Node{}}
		for _, p := range from.Params {
			q := *p
			c.nodes[p], q.block = &q, in
			in.Params = append(in.Params, &q)
		}
		c.nodesOf(from, in)
		in.Results = c.values(from.Results, in)
		n.Blocks = append(n.Blocks, in)
	}
	return &n
}

// values are the copies of values that are read in a block.
func (c *joiner) values(vs []*Node, at *Block) []*Node {
	out := make([]*Node, len(vs))
	for i, v := range vs {
		switch n := c.nodes[v]; {
		case n != nil:
			out[i] = n
		case v.Op == Const:
			out[i] = v
		case v.Op == Scalar:
			out[i] = c.Size(c.part.Params[v.Int].Size)
		default: // a Result, which stands in no list of operations
			out[i] = c.node(v, at)
		}
	}
	return out
}
