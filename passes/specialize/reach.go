package specialize

import (
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
)

// reach is the set of cells that the program can still read. Where two paths are
// joined, what is not among them needs no common form.
type reach map[*journal.Cell]bool

// reachable gives the cells that the results of two paths, the variables outside
// of a frame and the state of the module lead to.
func (s *walk) reachable(outs [2]outcome, bottom *frame) reach {
	r := reach{}
	for _, out := range outs {
		out.changes.Under(func() {
			r.values(out.results)
			for f := bottom.outside(); f != nil; f = f.outside() {
				r.values(f.env)
			}
			for _, t := range s.module.weights {
				r.value(t)
			}
			for _, o := range s.module.objects {
				r.value(o)
			}
		})
		for c := range r { // what a cell holds differs between the paths
			r[c] = false
		}
	}
	return r
}

// outside is the frame around a frame: the one that waits for it, or the one in
// which a branch or the body of a loop is evaluated.
func (f *frame) outside() *frame {
	if f.up != nil {
		return f.up
	}
	return f.outer
}

func (r reach) has(c *journal.Cell) bool {
	_, ok := r[c]
	return ok
}

func (r reach) values(xs []py.Value) {
	for _, x := range xs {
		r.value(x)
	}
}

func (r reach) value(x py.Value) {
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

func (r reach) view(v *heap.View) {
	r.storage(v.Storage)
	for i := range v.Chain {
		r.values(v.Chain[i].Args)
	}
}

// storage goes along to all memory that a write to this one may show in.
func (r reach) storage(st *heap.Storage) {
	if r[st.Cell] {
		return
	}
	r[st.Cell] = true
	for _, p := range st.Peers() {
		r.storage(p)
	}
	for _, l := range st.Links() {
		r.storage(l.From)
		r.storage(l.To)
		r.view(l.View)
	}
}

func (r reach) cell(c *journal.Cell) {
	if r[c] {
		return
	}
	r[c] = true
	switch content := c.Content().(type) {
	case py.Value:
		r.value(content)
	case *py.ListState:
		r.values(content.Elems)
		if p := content.Parts; p != nil {
			r.value(p.Self)
			r.values(p.Args)
		}
	case *py.DictState:
		r.values(content.Vals)
	case *heap.View:
		r.view(content)
	}
}
