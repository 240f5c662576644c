package cost

import "github.com/aton-project/aton/codegen/gpu/kir"

// skeleton is the kernel with all its accesses to global memory, but without what only computes the values that it stores: it touches the
// same bytes in a fraction of the time. What an address or a condition needs stays, also if it goes through shared memory.
func skeleton(k *kir.Kernel) *kir.Kernel {
	s := &slicer{live: map[*kir.Node]bool{}, mems: map[*kir.Mem]bool{}, owner: map[*kir.Node]carried{}}
	s.own(k.Body)
	for again := true; again; { // loops carry what the turn before has made
		again = false
		n, m := len(s.live), len(s.mems)
		s.roots(k.Body)
		again = len(s.live) > n || len(s.mems) > m
	}
	out := *k
	c := &copier{slicer: s, made: map[*kir.Node]*kir.Node{}}
	out.Body = c.block(k.Body)
	out.Shared = nil
	for _, m := range k.Shared {
		if s.mems[m] {
			out.Shared = append(out.Shared, m)
		}
	}
	return &out
}

// carried is a value that a loop carries: number i of loop.
type carried struct {
	loop *kir.Node
	i    int
}

type slicer struct {
	live  map[*kir.Node]bool
	mems  map[*kir.Mem]bool // memory whose content addresses depend on, and which the kernel writes
	owner map[*kir.Node]carried
}

func (s *slicer) own(b *kir.Block) {
	for _, v := range b.Nodes {
		for _, in := range v.Blocks {
			if v.Op == kir.For {
				for i, p := range in.Params {
					s.owner[p] = carried{v, i - 1}
				}
			}
			s.own(in)
		}
	}
}

// roots marks what is there for its effect, and what that needs. It reports that there is any in the block.
func (s *slicer) roots(b *kir.Block) (any bool) {
	for _, v := range b.Nodes {
		switch v.Op {
		case kir.Load:
			if v.Mem.Shared {
				continue
			}
			s.live[v] = true
			s.mark(v.Args[0])
		case kir.CopyAsync:
			s.live[v] = true
			s.mark(v.Args[1])
		case kir.Store:
			if v.Mem.Shared && !s.mems[v.Mem] {
				continue
			}
			s.live[v] = true
			s.mark(v.Args[0])
			if s.mems[v.Mem] {
				for _, a := range v.Args[1:] {
					s.mark(a)
				}
			}
		case kir.Barrier:
			if len(s.mems) == 0 {
				continue
			}
			s.live[v] = true
		case kir.For, kir.If:
			some := false
			for _, in := range v.Blocks {
				some = s.roots(in) || some
			}
			if !some && !s.live[v] {
				continue
			}
			s.structure(v)
		default:
			continue
		}
		any = true
	}
	return any
}

// structure keeps a loop or a condition, with what decides about its turns.
func (s *slicer) structure(v *kir.Node) {
	s.live[v] = true
	if v.Op == kir.If {
		s.mark(v.Args[0])
		return
	}
	for _, a := range v.Args[:3] {
		s.mark(a)
	}
}

// mark keeps a value.
func (s *slicer) mark(v *kir.Node) {
	if v.Op == kir.Load && v.Mem.Writes { // what it reads has been stored by the kernel, maybe
		s.mems[v.Mem] = true
	}
	if s.live[v] {
		return
	}
	s.live[v] = true
	if c, ok := s.owner[v]; ok {
		s.structure(c.loop)
		s.carry(c.loop, c.i)
		return
	}
	if v.Op == kir.Result && len(v.Args[0].Blocks) > 0 {
		s.structure(v.Args[0])
		s.carry(v.Args[0], int(v.Int))
		return
	}
	for _, a := range v.Args {
		s.mark(a)
	}
}

// carry keeps result i of a loop or condition; -1 is the number of a loop's turn.
func (s *slicer) carry(v *kir.Node, i int) {
	if i < 0 {
		return
	}
	for _, in := range v.Blocks {
		s.mark(in.Results[i])
	}
	if v.Op == kir.For {
		s.mark(v.Args[3+i])
		s.mark(v.Blocks[0].Params[1+i])
	}
}

type copier struct {
	*slicer
	made map[*kir.Node]*kir.Node
}

// kept is the copy of a value, or a zero for one that nothing depends on.
func (c *copier) kept(v *kir.Node) *kir.Node {
	if n := c.made[v]; n != nil {
		return n
	}
	var n *kir.Node
	switch {
	case v.Op == kir.Const || v.Op == kir.Scalar:
		n = v
	case !c.live[v]:
		return &kir.Node{Op: kir.Const, Type: v.Type}
	default:
		n = c.node(v)
	}
	c.made[v] = n
	return n
}

func (c *copier) node(v *kir.Node) *kir.Node {
	n := *v
	n.Args = make([]*kir.Node, len(v.Args))
	for i, a := range v.Args {
		if v.Op == kir.Result {
			n.Args[i] = c.made[a]
			continue
		}
		n.Args[i] = c.kept(a)
	}
	n.Blocks = nil
	if v.Op == kir.CopyAsync { // what counts is the read
		n = kir.Node{Op: kir.Load, Mem: v.From, Args: n.Args[1:], Width: int(v.Int) / v.From.Elem.Size()}
		if n.Width == 1 {
			n.Type = v.From.Elem
		}
	}
	return &n
}

func (c *copier) block(b *kir.Block) *kir.Block {
	out := &kir.Block{}
	for _, p := range b.Params {
		n := *p
		c.made[p] = &n
		out.Params = append(out.Params, &n)
	}
	for _, v := range b.Nodes {
		if !c.live[v] {
			continue
		}
		n := c.node(v)
		c.made[v] = n
		for _, in := range v.Blocks {
			n.Blocks = append(n.Blocks, c.block(in))
		}
		out.Nodes = append(out.Nodes, n)
	}
	for _, r := range b.Results {
		out.Results = append(out.Results, c.kept(r))
	}
	return out
}
