package specialize

import (
	"maps"

	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// reach is the set of cells that the program can still read. Where two paths are
// joined, what is not among them needs no common form.
type reach struct {
	cells map[*journal.Cell]bool // true where what the cell leads to is among them
	// itself leaves out memory that only may be what can be read.
	itself bool
}

func newReach() *reach { return &reach{cells: map[*journal.Cell]bool{}} }

// maxAlone bounds how often alone looks at what is left of the program.
const maxAlone = 256

// alone reports that the program cannot reach an object any more that may be the one of c by another name: a list that was l or
// l[1:], after both names are gone.
func (s *walk) alone(c *journal.Cell) bool {
	twins := s.heap.Twins(c)
	if s.lookups++; s.lookups > maxAlone || s.heap.IsCopied(twins) {
		return false
	}
	r := newReach()
	s.reachLeft(r)
	for _, t := range twins {
		if r.has(t) {
			return false
		}
	}
	return true
}

// reaches reports that what is left of the program may read what is in a cell.
func (s *walk) reaches(c *journal.Cell) bool {
	r := newReach()
	s.reachLeft(r)
	return r.has(c)
}

// reads reports that what is left of the program may read the memory of a storage as what it is, and not only as what it may be.
func (s *walk) reads(st *journal.Cell) bool {
	r := newReach()
	r.itself = true
	s.reachLeft(r)
	return r.has(st)
}

// reachLeft adds what is left of the program reaches, and the state of the module.
func (s *walk) reachLeft(r *reach) {
	for f := s.frame; f != nil; f = f.outside() {
		for v := range f.live() {
			if x := f.env[v.ID]; x != nil {
				r.value(x)
			}
		}
	}
	s.reachState(r)
}

// live are the source values that what is left of a frame reads, and does not compute itself.
func (f *frame) live() map[*ssa.Value]bool {
	used := reads(f.next)
	for _, v := range f.block.Returns() {
		used[v] = true
	}
	left := map[*ssa.Op]bool{}
	for o := f.next; o != nil; o = o.Next() {
		left[o] = true
	}
	maps.DeleteFunc(used, func(v *ssa.Value, _ bool) bool { o, _ := within(v, f.block); return left[o] })
	if o := f.block.Owner(); o != nil && o.Kind == "prim::Loop" { // the next iteration reads what comes from outside
		for v := range reads(f.block.First()) {
			if _, inside := within(v, f.block); !inside {
				used[v] = true
			}
		}
	}
	return used
}

// reads are the values that an operator and those behind it in its block read.
func reads(o *ssa.Op) map[*ssa.Value]bool {
	used := map[*ssa.Value]bool{}
	add := func(vs []*ssa.Value) {
		for _, v := range vs {
			if v != nil {
				used[v] = true
			}
		}
	}
	for ; o != nil; o = o.Next() {
		add(o.Operands())
		for _, b := range o.Blocks {
			for inner := range b.AllOps() {
				add(inner.Operands())
				for _, c := range inner.Blocks {
					add(c.Returns())
				}
			}
			add(b.Returns())
		}
	}
	return used
}

// within reports that a value is computed in a block, or is its parameter, and gives the operator of the block that computes it or
// has it in a block of its own.
func within(v *ssa.Value, in *ssa.Block) (o *ssa.Op, inside bool) {
	o = v.Def()
	for b := v.Block(); b != nil; b = o.Block() {
		if b == in {
			return o, true
		}
		if o = b.Owner(); o == nil {
			break
		}
	}
	return nil, false
}

// reachable gives the cells that the results of two paths, the variables outside
// of a frame and the state of the module lead to.
func (s *walk) reachable(outs [2]outcome, bottom *frame) *reach {
	r := newReach()
	for _, out := range outs {
		out.changes.Under(func() {
			r.values(out.results)
			for f := bottom.outside(); f != nil; f = f.outside() {
				r.values(f.env)
			}
			s.reachState(r)
		})
		for c := range r.cells { // what a cell holds differs between the paths
			r.cells[c] = false
		}
	}
	return r
}

// reachState adds what the state of the module leads to.
func (s *walk) reachState(r *reach) {
	for _, t := range s.module.weights {
		r.value(t)
	}
	for _, o := range s.module.objects {
		r.value(o)
	}
}

func (r *reach) has(c *journal.Cell) bool {
	_, ok := r.cells[c]
	return ok
}

func (r *reach) values(xs []py.Value) {
	for _, x := range xs {
		r.value(x)
	}
}

func (r *reach) value(x py.Value) {
	switch x := x.(type) {
	case *py.Tensor:
		r.cell(x.Cell)
	case *py.List:
		r.cell(x.Cell)
	case *py.Dict:
		r.cell(x.Cell)
	case *py.Tuple:
		r.values(x.Elems)
	case *py.Object:
		for _, c := range x.Attrs {
			r.cell(c)
		}
	case *py.Maybe:
		r.value(x.Val)
	}
}

func (r *reach) view(v *heap.View) {
	r.storage(v.Storage)
	for i := range v.Chain {
		r.values(v.Chain[i].Args)
	}
}

// storage goes along to all memory that a write to this one may show in.
func (r *reach) storage(st *heap.Storage) {
	if r.cells[st.Cell] {
		return
	}
	r.cells[st.Cell] = true
	if in := st.State().In; in != nil {
		r.view(in)
	}
	if r.itself {
		return
	}
	for _, p := range st.Peers() {
		r.storage(p)
	}
	for _, l := range st.Links() {
		r.storage(l.From)
		r.storage(l.To)
		r.view(l.View)
	}
}

// list goes to what a list of run-time length shows parts of.
func (r *reach) list(st *py.ListState) {
	if p := st.Parts; p != nil {
		r.value(p.Self)
		r.values(p.Args)
	}
	if st.Columns != nil {
		for _, c := range st.Columns.Lists {
			r.list(c)
		}
	}
}

func (r *reach) cell(c *journal.Cell) {
	if r.cells[c] {
		return
	}
	r.cells[c] = true
	switch content := c.Content().(type) {
	case py.Value:
		r.value(content)
	case *py.ListState:
		r.values(content.Elems)
		r.list(content)
	case *py.DictState:
		r.values(content.Vals)
	case *heap.View:
		r.view(content)
	}
}
