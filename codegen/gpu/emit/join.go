package emit

import (
	"slices"

	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa/sym"
)

// Alike reports launches that Join takes together: with kernels that take the same of an SM, and are of one class or need no shared memory.
func Alike(l, m *Launch) bool {
	if l.Class == "random" || m.Class == "random" { // how often an operator has drawn is told to its launch
		return false
	}
	return (l.Class == m.Class || len(l.Kernel.Shared) == 0) && l.alongX() && m.alongX() && kir.Alike(l.Kernel, m.Kernel)
}

func (l *Launch) alongX() bool { return l.Read == nil && l.Grid[1].Is(1) && l.Grid[2].Is(1) }

// Join makes one launch of several ones that are Alike and do not need each other: the first blocks do what those of the first one do, and so on.
func Join(launches []*Launch) *Launch {
	out := &Launch{Class: launches[0].Class}
	for _, l := range launches {
		if l.Class != out.Class {
			out.Class = "mixed"
		}
	}
	blocks, work := sym.Const(0), sym.Const(0)
	var parts []kir.Part
	for _, l := range launches {
		p := kir.Part{Kernel: l.Kernel, Blocks: l.Grid[0]}
		for _, v := range l.Buffers {
			n := slices.Index(out.Buffers, v)
			if n < 0 {
				n = len(out.Buffers)
				out.Buffers = append(out.Buffers, v)
			}
			p.Buffers = append(p.Buffers, n)
		}
		parts = append(parts, p)
		for _, e := range l.Guards {
			if !slices.ContainsFunc(out.Guards, e.Equal) {
				out.Guards = append(out.Guards, e)
			}
		}
		blocks, work = blocks.Add(l.Grid[0]), work.Add(l.Work)
	}
	out.Kernel, out.Grid, out.Work = kir.Join(parts), [3]sym.Expr{blocks, sym.Const(1), sym.Const(1)}, work
	out.Kernel.Name = "k_" + out.Class + "_" + out.Kernel.Digest()
	return out
}
