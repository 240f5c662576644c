// Package foldconstants is the pass of constant folding.
//
// Folding must not make the file larger. Small results, up to a limit, are always computed. Larger ones are computed if they replace
// constants of at least the same size that nothing else uses, or if all of them together add less than a hundredth to the size of all
// constants. A weight that is used both directly and transposed stays one weight and a Transpose; an Expand of a scalar stays
// an Expand.
package foldconstants

import (
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/internal/naming"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// New makes the pass for a table of operators; nil stands for the built-in ones.
//
// In a program of PyTorch an operator is computed by what it is lowered to, if its result is no larger than the limit. Where
// something is written in place, only numbers are computed, since a tensor may have other elements later.
func New(table *aten.Table) passes.Pass {
	return passes.Pass{
		Name: "fold-constants",
		Doc:  "compute operators on constants, of aten and of ONNX, unless that makes the constants larger",
		Before: `
graph(%x : Float(N, 2)):
  %w : Float(3, 2) = onnx::Constant[value= 1  2  3  4  5  6 [ CPUFloatType{3,2} ]]()
  %t : Float(2, 3) = onnx::Transpose[perm=[1, 0]](%w)
  %y : Float(N, 3) = onnx::MatMul(%x, %t)
  return (%y)`,
		After: `
graph(%x : Float(N, 2)):
  %w.transpose : Float(2, 3) = onnx::Constant[value= 1  3  5  2  4  6 [ CPUFloatType{2,3} ]]()
  %y : Float(N, 3) = onnx::MatMul(%x, %w.transpose)
  return (%y)`,
		Demo: "weights=true",
		Options: []passes.Option{
			{Name: "limit", Default: "262144", Doc: "bytes up to which a result is computed whatever it replaces", Int: true},
			{Name: "weights", Default: "false", Doc: "compute with weights too; otherwise the constants of real numbers that have names stay as they are", Bool: true},
		},
		Run: func(c *passes.Context) error {
			if onnx.DefaultOpset(c.Module) == 0 { // it may be a program of PyTorch
				if table == nil {
					table = aten.NewTable()
				}
				table.BindSchemas(c.Module) // graph text does not name overloads
				for _, f := range slices.Clone(c.Module.Funcs) {
					foldProgram(c, table, f)
				}
			}
			return passes.EachFunc(run)(c)
		},
	}
}

// Limits on what a run of the pass computes: elements of one result, and bytes of all of them, which grow with the size of the
// program's constants. Views of constants do not count.
const (
	maxWork      = 1 << 27
	maxBytes     = 1 << 27
	bytesPerByte = 4
)

// splatLimit bounds the bytes of results that repeat one element: the file would store every copy, and few operators make
// them.
const splatLimit = 1 << 10

func run(c *passes.Context, f *ssa.Func) error {
	s := &folder{limit: int64(c.IntOption("limit")), weights: c.BoolOption("weights"), f: f, value: map[*ssa.Value]*tensor.Tensor{}, fold: map[*ssa.Op]bool{}}
	total := int64(0)
	for o := range f.Body.AllOps() {
		if o.Kind == "onnx::Constant" {
			if t := onnx.ConstOf(o.Result(0)); t != nil {
				s.budget += t.NumBytes() / 100
				if !t.IsSplat() {
					total += t.NumBytes()
				}
			}
		}
	}
	s.left = c.Module.Allow(maxBytes) + bytesPerByte*total
	s.evaluate()
	if len(s.ops) == 0 {
		return nil
	}
	s.decide()
	s.replace(c)
	return nil
}

type folder struct {
	limit   int64
	weights bool // compute with them
	f       *ssa.Func
	ops     []*ssa.Op                     // that could be folded, in order
	value   map[*ssa.Value]*tensor.Tensor // their results
	fold    map[*ssa.Op]bool              // ops still selected for folding
	// budget is the number of bytes that large results may add.
	budget int64
	left   int64 // bytes that may still be computed
}

func (s *folder) constant(v *ssa.Value) *tensor.Tensor {
	if t := s.value[v]; t != nil {
		return t
	}
	if t := onnx.ConstOf(v); t != nil && t.HasData() && (s.weights || !weight(v)) {
		return t
	}
	return nil
}

// evaluate computes everything that is constant. Most results are views.
func (s *folder) evaluate() {
	for o := range s.f.Body.AllOps() {
		if o.Kind.Namespace() != onnx.Namespace || o.Kind == "onnx::Constant" || len(o.Blocks) > 0 || o.NumOperands() == 0 || len(o.Results) == 0 {
			continue
		}
		if s.constant(o.Operand(0)) == nil && o.Operand(0) != nil {
			continue // most ops
		}
		ins := make([]*tensor.Tensor, o.NumOperands())
		ok := true
		for i := range ins {
			if v := o.Operand(i); v != nil && ok {
				ins[i] = s.constant(v)
				ok = ins[i] != nil
			}
		}
		if !ok || !kernel.Supported(o.Kind) || onnx.StaysQuantized(o) {
			continue
		}
		if info, known := (onnx.Dialect{}).Info(o); !known || info.Effects != ssa.Pure {
			continue
		}
		if slices.ContainsFunc(o.Results, open) && onnx.Infer(o) != nil { // the sizes of the operands were not known when it was made
			continue
		}
		for _, r := range o.Results {
			t := r.Tensor()
			ok = ok && t != nil && t.DType.ONNX() > 0
			if !ok {
				break
			}
			if n, static := elements(t); static && (n > maxWork || n*int64(max(t.DType.Size(), 1)) > s.left) {
				ok = false
			}
		}
		if !ok {
			continue
		}
		outs, err := kernel.Eval(o.Kind, o.Attrs, ins, len(o.Results))
		if err != nil || len(outs) != len(o.Results) {
			continue // left for the runtime to judge
		}
		for i, t := range outs {
			ok = ok && (t == nil && !o.Results[i].HasUses() || t != nil && (o.Results[i].DType() == t.DType || o.Results[i].DType() == tensor.Undefined))
		}
		if !ok {
			continue
		}
		for i, t := range outs {
			if t == nil {
				continue
			}
			s.value[o.Results[i]] = t
			if open(o.Results[i]) {
				o.Results[i].Type = ssa.TensorOf(t)
			}
			if !t.IsSplat() && !slices.ContainsFunc(ins, func(in *tensor.Tensor) bool { return in != nil && in.Storage == t.Storage }) {
				s.left -= t.NumBytes()
			}
		}
		s.ops, s.fold[o] = append(s.ops, o), true
	}
}

// open reports whether a size of the tensor is not a number.
func open(v *ssa.Value) bool {
	t := v.Tensor()
	if t == nil {
		return false
	}
	_, static := t.Static()
	return !static
}

func elements(t *ssa.TensorType) (int64, bool) {
	shape, ok := t.Static()
	n := int64(1)
	for _, d := range shape {
		if n *= max(d, 0); n > maxWork {
			return n, ok
		}
	}
	return n, ok
}

// never exceeds any budget.
const never = 1 << 50

// decide drops ops whose folding would make the constants larger.
func (s *folder) decide() {
	granted := map[*ssa.Op]bool{} // out of the budget
	for first := true; ; first = false {
		g := groups{parent: map[any]any{}}
		cost := map[any]int64{} // by group: what it adds and what it saves
		for _, o := range s.ops {
			if !s.fold[o] {
				continue
			}
			for i := range o.NumOperands() {
				if v := o.Operand(i); v != nil && s.large(v) {
					g.join(o, source(v))
				}
			}
		}
		seen := map[*ssa.Value]bool{}
		for _, o := range s.ops {
			if !s.fold[o] {
				continue
			}
			for _, r := range o.Results {
				if s.large(r) && s.needed(r) {
					cost[g.find(o)] += s.value[r].NumBytes()
					if s.value[r].IsSplat() {
						cost[g.find(o)] += never
					}
				}
			}
			for i := range o.NumOperands() {
				v := o.Operand(i)
				if v == nil || seen[v] || !s.large(v) || s.folds(v) {
					continue
				}
				seen[v] = true
				if !s.needed(v) && onnx.ConstOf(v) != nil {
					cost[g.find(o)] -= onnx.ConstOf(v).NumBytes()
				}
			}
		}
		// in a group that does not pay, the last large results are given up; the rest is looked at again
		dropped := false
		paid := map[any]bool{}
		for _, o := range s.ops {
			group := g.find(o)
			c := cost[group]
			if !s.fold[o] || c <= 0 || granted[o] {
				continue
			}
			if first && (paid[group] || c <= s.budget) {
				if !paid[group] {
					s.budget -= c
					paid[group] = true
				}
				granted[o] = true
				continue
			}
			for _, r := range o.Results {
				if s.large(r) && s.needed(r) {
					s.fold[o], dropped = false, true
				}
			}
		}
		if !dropped {
			return
		}
	}
}

// source returns the member of a group that represents a value.
func source(v *ssa.Value) any {
	if v.Def() != nil && v.Def().Kind != "onnx::Constant" {
		return v.Def()
	}
	return v
}

func (s *folder) large(v *ssa.Value) bool {
	t := s.constant(v)
	if t == nil || t.DType == tensor.String {
		return false
	}
	limit := s.limit
	if t.IsSplat() {
		limit = min(limit, splatLimit)
	}
	return t.NumBytes() > limit
}

func (s *folder) folds(v *ssa.Value) bool { return v.Def() != nil && s.fold[v.Def()] }

// needed reports whether an op that is not folded uses the value.
func (s *folder) needed(v *ssa.Value) bool {
	for u := range v.Uses() {
		if u.Op() == nil || !s.fold[u.Op()] {
			return true
		}
	}
	return false
}

// groups partitions ops and weights into sets that are connected by large values.
type groups struct{ parent map[any]any }

func (g groups) find(x any) any {
	p, ok := g.parent[x]
	if !ok || p == x {
		return x
	}
	root := g.find(p)
	g.parent[x] = root
	return root
}

func (g groups) join(a, b any) {
	if x, y := g.find(a), g.find(b); x != y {
		g.parent[x] = y
	}
}

// replace replaces folded ops by constants.
func (s *folder) replace(c *passes.Context) {
	first := s.f.Body.First()
	var names *ssa.Names
	var gone []*ssa.Op
	for _, o := range s.ops {
		if !s.fold[o] {
			continue
		}
		gone = append(gone, o)
		for _, r := range o.Results {
			if !s.needed(r) {
				continue
			}
			k := s.f.Body.InsertBefore(first, "onnx::Constant", o.Loc, nil, ssa.TensorOf(s.value[r]))
			k.SetAttr("value", ssa.TensorValue(s.value[r]))
			v := k.Results[0]
			if sy, ok := onnx.SymOf(v); ok {
				v.Sym = sy
			}
			if isOutput(r) {
				v.Name, r.Name = r.Name, ""
			} else if base := s.origin(r, 0); base != "" {
				if names == nil {
					names = ssa.NamesOf(s.f)
				}
				v.Name = names.Unique(base)
			}
			r.ReplaceUses(v)
		}
		c.Changed("fold")
	}
	for i := len(gone) - 1; i >= 0; i-- {
		if o := gone[i]; !used(o) {
			operands := o.Operands()
			o.Erase()
			for _, v := range operands {
				if v != nil && !v.HasUses() && v.Def() != nil && v.Def().Kind == "onnx::Constant" && v.Def().Block() != nil {
					v.Def().Erase()
				}
			}
		}
	}
}

func used(o *ssa.Op) bool {
	for _, r := range o.Results {
		if r.HasUses() {
			return true
		}
	}
	return false
}

func isOutput(v *ssa.Value) bool {
	for u := range v.Uses() {
		if u.Op() == nil && u.Block().Owner() == nil {
			return true
		}
	}
	return false
}

// origin names a folded value after its first weight and the operation: layer.weight.transpose.
func (s *folder) origin(v *ssa.Value, depth int) string {
	if !s.folds(v) || depth > 8 {
		return v.Name
	}
	o := v.Def()
	for i := range o.NumOperands() {
		if w := o.Operand(i); w != nil {
			if base := s.origin(w, depth+1); base != "" {
				return naming.Folded(base, o.Kind)
			}
		}
	}
	return ""
}
