package prove

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// clone copies a function into a module of its own.
func clone(f *ssa.Func) *ssa.Func {
	g, _ := copied(f)
	return g
}

// copied is clone, with the copies of all values by the numbers of the values.
func copied(f *ssa.Func) (*ssa.Func, []*ssa.Value) {
	m := ssa.NewModule(f.Module().Dialects...)
	m.Opsets = maps.Clone(f.Module().Opsets)
	g := m.NewFunc(f.Name)
	values := make([]*ssa.Value, f.NumValues())
	for _, p := range f.Body.Params {
		values[p.ID] = g.Body.AddParam(p.Name, p.Type)
	}
	g.Body.CopyInto(nil, f.Body, values, func(l diag.Loc) diag.Loc { return l }, func(s string) string { return s })
	returns := make([]*ssa.Value, f.Body.NumReturns())
	for i, v := range f.Body.Returns() {
		returns[i] = values[v.ID]
	}
	g.Body.SetReturns(returns...)
	return g, values
}

// Step is one application of a rule: the function before and behind it.
type Step struct {
	Rule          string
	Before, After *ssa.Func
}

// steps runs a pipeline on a copy of a function, and tells each application of a rule.
func steps(f *ssa.Func, pipeline string) (out []Step, err error) {
	defer func() {
		if r := recover(); r != nil { // what a change of a graph has made is no graph that a rule must take
			out, err = nil, fmt.Errorf("%v", r)
		}
	}()
	p, err := all.Set.Parse(pipeline)
	if err != nil {
		return nil, err
	}
	g := clone(f)
	m := g.Module()
	last := clone(g)
	m.Rewritten = func(rule string, _ *ssa.Op, _, _ []*ssa.Op) {
		next := clone(g)
		out = append(out, Step{rule, last, next})
		last = next
	}
	renew := passes.Observer{AfterPass: func(*passes.Event) { last = clone(g) }} // what other passes do is no rule
	_, err = p.Run(m, &passes.Runner{Observers: []passes.Observer{renew}})
	return out, err
}

// infer finds the types of all values anew.
func infer(f *ssa.Func) (err error) {
	defer func() {
		if r := recover(); r != nil { // of a graph that a change has made nonsense
			err = fmt.Errorf("%v", r)
		}
	}()
	for o := range f.Body.AllOps() {
		for _, r := range o.Results {
			if r.Tensor() != nil {
				r.Type = ssa.AnyTensor
			}
			r.Sym = nil
		}
	}
	p, err := all.Set.Parse("infer-types")
	if err != nil {
		return err
	}
	_, err = p.Run(f.Module(), &passes.Runner{})
	return err
}

// symbols lists the symbols in the types of a function's inputs.
func symbols(f *ssa.Func) []string {
	found := map[string]bool{}
	for _, p := range f.Body.Params {
		if t := p.Tensor(); t != nil {
			for _, d := range t.Dims {
				d.Symbols(func(name string) { found[name] = true })
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// bindings lists the sizes that symbols are given: all of from 0 to 3 where there are at most two, else some.
func bindings(names []string, r *rand.Rand) []map[string]int64 {
	if len(names) == 0 {
		return []map[string]int64{{}}
	}
	var out []map[string]int64
	if len(names) <= 2 {
		for n := range 16 {
			if len(names) == 1 && n > 3 {
				break
			}
			b := map[string]int64{}
			for i, name := range names {
				b[name] = int64(n >> (2 * i) & 3)
			}
			out = append(out, b)
		}
		return out
	}
	for range 8 {
		b := map[string]int64{}
		for _, name := range names {
			b[name] = int64(r.IntN(4))
		}
		out = append(out, b)
	}
	return out
}

// runs reports that the interpreter computes a function for sizes, whatever the result is.
func runs(f *ssa.Func, dims map[string]int64) bool {
	r := rand.New(rand.NewPCG(3, 3))
	args := make([]interp.Value, len(f.Body.Params))
	for i, p := range f.Body.Params {
		if p.Tensor() == nil || !drawable(p.DType()) {
			return false
		}
		shape, err := sizes(p.Tensor(), dims)
		if err != nil {
			return false
		}
		args[i] = interp.Of(randomTensor(r, p.DType(), shape, 3, false))
	}
	_, err := (&interp.Interpreter{MaxOps: 1 << 14}).RunFunc(f, args)
	return err == nil
}

// vary changes a copy of a function in one or two places: a size, an element type, an attribute or a constant. It is nil if the
// change makes no graph.
func vary(f *ssa.Func, r *rand.Rand) *ssa.Func {
	g := clone(f)
	for range 1 + r.IntN(2) {
		changeOnce(g, r)
	}
	if infer(g) != nil || ssa.Verify(g.Module()) != nil {
		return nil
	}
	return g
}

var otherTypes = []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Int64, tensor.Int32, tensor.Int8, tensor.Uint8, tensor.Bool}

func changeOnce(f *ssa.Func, r *rand.Rand) {
	var ops []*ssa.Op
	for o := range f.Body.AllOps() {
		ops = append(ops, o)
	}
	params := f.Body.Params
	switch k := r.IntN(10); {
	case k < 2 && len(params) > 0: // a size, or the rank
		p := params[r.IntN(len(params))]
		t := p.Tensor()
		if t == nil || !t.Ranked {
			return
		}
		dims := slices.Clone(t.Dims)
		switch what := r.IntN(6); {
		case what == 0 && len(dims) < 5:
			dims = slices.Insert(dims, r.IntN(len(dims)+1), sym.Const(int64(1+r.IntN(2))))
		case what == 1 && len(dims) > 0:
			i := r.IntN(len(dims))
			dims = slices.Delete(dims, i, i+1)
		case len(dims) > 0:
			i := r.IntN(len(dims))
			dims[i] = sym.Const(int64(1 + r.IntN(4)))
		}
		u := *t
		u.Dims = dims
		p.Type = &u
	case k < 4: // a symbol becomes a number everywhere
		names := symbols(f)
		if len(names) == 0 {
			return
		}
		name, n := names[r.IntN(len(names))], sym.Const(int64(1+r.IntN(3)))
		for _, p := range params {
			if t := p.Tensor(); t != nil && t.Ranked {
				u := *t
				u.Dims = slices.Clone(t.Dims)
				for i, d := range u.Dims {
					u.Dims[i] = d.Subst(func(s string) (sym.Expr, bool) { return n, s == name })
				}
				p.Type = &u
			}
		}
	case k < 6: // an element type becomes another everywhere
		if len(params) == 0 {
			return
		}
		from, to := params[r.IntN(len(params))].DType(), otherTypes[r.IntN(len(otherTypes))]
		for _, p := range params {
			if t := p.Tensor(); t != nil && t.DType == from {
				u := *t
				u.DType = to
				p.Type = &u
			}
		}
		for _, o := range ops {
			if l, ok := o.Attr("value"); ok && l.Tensor != nil && l.Tensor.DType == from && from != tensor.String && from != tensor.Int64 {
				o.SetAttr("value", ssa.TensorValue(tensor.FromFloats(to, l.Tensor.Shape, l.Tensor.Float64s())))
			}
			if o.Kind == "onnx::Cast" && r.IntN(2) == 0 && o.AttrInt("to", 0) == int64(from.ONNX()) {
				o.SetAttr("to", ssa.Int(int64(to.ONNX())))
			}
		}
	default:
		if len(ops) > 0 {
			changeOp(ops[r.IntN(len(ops))], r)
		}
	}
}

// changeOp changes an attribute of an operator, or an element of a constant.
func changeOp(o *ssa.Op, r *rand.Rand) {
	if l, ok := o.Attr("value"); ok && l.Tensor != nil && l.Tensor.HasData() {
		o.SetAttr("value", ssa.TensorValue(changeTensor(l.Tensor, r)))
		return
	}
	if len(o.Attrs) == 0 {
		return
	}
	a := o.Attrs[r.IntN(len(o.Attrs))]
	if v, ok := a.Value.IntList(); ok && len(v) > 0 {
		v = slices.Clone(v)
		if a.Name == "perm" {
			r.Shuffle(len(v), func(i, j int) { v[i], v[j] = v[j], v[i] })
		} else {
			v[r.IntN(len(v))] += int64(r.IntN(3)) - 1
		}
		o.SetAttr(a.Name, ssa.Ints(v...))
		return
	}
	s := onnx.SchemaOf(o.Kind)
	switch {
	case a.Name == "to":
		o.SetAttr(a.Name, ssa.Int(int64(otherTypes[r.IntN(len(otherTypes))].ONNX())))
	case s != nil && s.Attr(a.Name) != nil && a.Value.Kind == ssa.Int(0).Kind:
		if n := a.Value.Int(); n == 0 || n == 1 {
			o.SetAttr(a.Name, ssa.Int(1-n))
		} else {
			o.SetAttr(a.Name, ssa.Int(n+int64(r.IntN(3))-1))
		}
	case a.Value.Kind == ssa.Float(0).Kind:
		o.SetAttr(a.Name, ssa.Float(a.Value.Float()*2))
	}
}

// changeTensor changes one element, or all alike.
func changeTensor(t *tensor.Tensor, r *rand.Rand) *tensor.Tensor {
	n := int(t.NumElements())
	if n == 0 || t.DType == tensor.String || t.DType.Size() == 0 {
		return t
	}
	whole := r.IntN(3) == 0
	at := r.IntN(n)
	if t.DType.IsFloat() {
		odd := []float64{0, math.Copysign(0, -1), 1, -1, 2, 0.5, math.Inf(1), math.Inf(-1), math.NaN(), 3}
		v, x := slices.Clone(t.Float64s()), odd[r.IntN(len(odd))]
		for i := range v {
			if whole || i == at {
				v[i] = x
			}
		}
		return tensor.FromFloats(t.DType, t.Shape, v)
	}
	v, x := slices.Clone(t.Int64s()), int64(r.IntN(6))-2
	for i := range v {
		if whole || i == at {
			if v[i] = x; t.DType == tensor.Bool {
				v[i] &= 1
			}
		}
	}
	return tensor.FromInts(t.DType, t.Shape, v)
}
