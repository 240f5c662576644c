// Package facts renews what is known of the values of a function: their types and, of small integer tensors, their elements.
//
// Files and graph text say little of it, and rewriting makes more of it known: a size that was computed at run time becomes a
// constant, and with it the shapes of all that depends on it. Refresh finds all of that in one walk from the inputs to the
// outputs, in time linear in the graph.
package facts

import (
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Refresh infers the operators of which something is unknown: a rank, the elements of a small integer tensor, or a size that has
// a symbol of its own. A symbol that turns out to be an expression of others is replaced wherever it stands. Symbols of inputs
// and outputs are names that the user chose, and stay; those that inference gave outputs do not.
func Refresh(f *ssa.Func) {
	w := &walk{seen: map[string]bool{}, declared: map[string]bool{}, solved: map[string]sym.Expr{}, content: map[*ssa.Value][]sym.Expr{}}
	for _, p := range f.Body.Params {
		w.declare(p, true)
	}
	for _, v := range f.Body.Returns() {
		if d := v.Def(); d != nil {
			w.declare(v, false)
		}
	}
	w.block(f.Body)
}

type walk struct {
	seen     map[string]bool           // symbols that occurred, those of inputs and outputs from the start
	declared map[string]bool           // symbols of inputs, outputs and parameters of blocks: they are not solved
	solved   map[string]sym.Expr       // what symbols stand for
	content  map[*ssa.Value][]sym.Expr // elements of integer tensors of rank 2 and more, in row-major order
}

func (w *walk) declare(v *ssa.Value, fresh bool) {
	if t := v.Tensor(); t != nil {
		for _, d := range t.Dims {
			d.Symbols(func(name string) {
				if fresh || !ssa.IsFresh(name) {
					w.seen[name], w.declared[name] = true, true
				}
			})
		}
	}
}

func (w *walk) block(b *ssa.Block) {
	for o := range b.Ops() {
		if len(w.solved) > 0 {
			for _, inner := range o.Blocks {
				for _, p := range inner.Params {
					w.substitute(p)
				}
			}
			for _, r := range o.Results {
				w.substitute(r)
			}
		}
		if o.Kind.Namespace() == onnx.Namespace {
			if w.open(o) {
				w.infer(o)
			}
			w.move(o)
		}
		for _, inner := range o.Blocks {
			for _, p := range inner.Params { // what they stand for may change from one iteration to the next
				w.declare(p, true)
			}
			w.block(inner)
		}
	}
}

// open reports that inference could tell more of a result. Symbols that no earlier value has make an operator open too: it is
// where they come from.
func (w *walk) open(o *ssa.Op) bool {
	open := false
	for _, v := range o.Results {
		t := v.Tensor()
		if t == nil {
			continue
		}
		if !t.Ranked || v.Sym == nil && len(o.Blocks) == 0 && len(t.Dims) <= 1 && integer(t.DType) {
			open = true
		}
		// what stands for sizes that were too long to write down may be known by now
		open = open || slices.ContainsFunc(v.Sym, sym.Expr.Summarized)
		if len(o.Blocks) > 0 { // inferring a body again for a size costs more than it brings
			continue
		}
		for _, d := range t.Dims {
			if d.IsConst() {
				continue
			}
			open = open || d.Summarized()
			d.Symbols(func(name string) {
				if !w.seen[name] {
					w.seen[name], open = true, true
				}
			})
		}
	}
	return open
}

func integer(d tensor.DType) bool { return d == tensor.Int64 || d == tensor.Int32 }

// infer renews the types of an op's results. What was known and is not found again stays.
func (w *walk) infer(o *ssa.Op) {
	old := make([]ssa.Type, len(o.Results))
	for i, v := range o.Results {
		old[i] = v.Type
	}
	err := onnx.Infer(o)
	for i, v := range o.Results {
		if err != nil {
			v.Type, v.Sym = old[i], nil
			continue
		}
		was, is := ssa.AsTensor(old[i]), v.Tensor()
		if was == nil || !was.Ranked || is == nil {
			continue
		}
		if !is.Ranked || len(is.Dims) != len(was.Dims) {
			v.Type = old[i]
			continue
		}
		v.Type = ssa.Tensor(is.DType, w.meet(was.Dims, is.Dims)...)
	}
}

// meet combines the sizes that a value had with those that inference finds.
func (w *walk) meet(was, is []sym.Expr) []sym.Expr {
	out := slices.Clone(was)
	for i, d := range was {
		e := is[i]
		if d.IsConst() || d.Equal(e) {
			continue
		}
		name, lone := d.Name()
		switch {
		case lone && !sym.Varies(d) && w.mayStandFor(name, e):
			w.solved[name] = e
			out[i] = e
		case !lone && e.IsConst():
			out[i] = e
		}
	}
	return out
}

// mayStandFor reports that a symbol is one of inference's own, and not part of the expression. The sizes that differ within a
// sequence share names.
func (w *walk) mayStandFor(name string, e sym.Expr) bool {
	ok := !w.declared[name] && !sym.Varies(e)
	e.Symbols(func(s string) { ok = ok && s != name })
	return ok
}

// substitute replaces solved symbols in what is known of a value.
func (w *walk) substitute(v *ssa.Value) {
	get := func(name string) (sym.Expr, bool) {
		e, ok := w.solved[name]
		return e, ok
	}
	if t := v.Tensor(); t != nil {
		for i, d := range t.Dims {
			if e := d.Subst(get); !e.Equal(d) {
				dims := slices.Clone(t.Dims)
				for k := i; k < len(dims); k++ {
					dims[k] = dims[k].Subst(get)
				}
				v.Type = ssa.Tensor(t.DType, dims...)
				break
			}
		}
	}
	for i, d := range v.Sym {
		if e := d.Subst(get); !e.Equal(d) {
			all := slices.Clone(v.Sym)
			for k := i; k < len(all); k++ {
				all[k] = all[k].Subst(get)
			}
			v.Sym = all
			break
		}
	}
}
