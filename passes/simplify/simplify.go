// Package simplify is the pass that makes ONNX graphs smaller by local rules:
// algebra, moves of elements, folding of normalization into weights, control
// flow that is decided, and shapes that are known.
//
// Rules are grouped by what they are about, one file a group; lit-tests/passes/simplify
// has a graph for each. They keep results exactly, NaN and the sign of zero
// included. The exceptions are those that move a scale or an offset into the
// weights of a linear operator (linear.go): they round in another place, as
// PyTorch's own eval-mode fusion does.
package simplify

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/facts"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/tensor"
)

// Pass is the pass with all rules.
var Pass = passes.Pass{
	Name:  "simplify",
	Takes: []passes.State{passes.Newest, passes.Checked, passes.OnlyONNX, passes.Standard, passes.Total},
	Doc:   "apply rewrite rules: fewer ONNX operators with the same results",
	Before: `
graph(%x : Float(N, 4, 8)):
  %t : Float(N, 8, 4) = onnx::Transpose[perm=[0, 2, 1]](%x)
  %r : Float(N, 8, 4) = onnx::Relu(%t)
  %s : Float(N, 8, 4) = onnx::Relu(%r)
  %y : Float(N, 4, 8) = onnx::Transpose[perm=[0, 2, 1]](%s)
  return (%y)`,
	After: `
graph(%x : Float(N, 4, 8)):
  %y : Float(N, 4, 8) = onnx::Relu(%x)
  return (%y)`,
	Options: []passes.Option{
		{Name: "opset", Default: onnx.ExportOpsetText, Doc: "the target opset: some rules need a certain opset", Int: true, Least: 1, Most: onnx.Newest},
	},
	Run: passes.EachFunc(run),
}

func run(c *passes.Context, f *ssa.Func) error {
	if !usesONNX(f) || !sound(f) {
		return nil
	}
	s := &simplifier{opset: onnx.TargetOpset(c.Module, c.IntOption("opset")), f: f, folded: map[string][2]*ssa.Value{}}
	facts.Refresh(f)
	set, err := rewrite.Compile(s.rules()...)
	if err != nil {
		panic(err) // a table of ours is wrong
	}
	res := rewrite.Run(f, set, onnx.RewriteConfig(smallFold))
	for _, name := range res.Applied {
		c.Changed(name)
	}
	return nil
}

func usesONNX(f *ssa.Func) bool {
	for o := range f.Body.Ops() {
		if o.Kind.Namespace() == onnx.Namespace {
			return true
		}
	}
	return false
}

// rules lists all rules, the cheap and general ones first.
func (s *simplifier) rules() []rewrite.Rule {
	var out []rewrite.Rule
	for _, group := range [...][]rewrite.Rule{tables, s.algebra(), s.moves(), s.reshapes(), s.slices(), s.reductions(), s.linear(), s.scales(), zeroOperands, s.heads(), s.formulas(), s.halves(), s.attention(), s.rotary(), s.control(), s.sequences()} {
		out = append(out, group...)
	}
	return out
}

// Rules lists all rules, for those who look at what they state: they are applied by [Pass] alone.
func Rules() []rewrite.Rule { return (&simplifier{}).rules() }

// simplifier is what rules of one run share.
type simplifier struct {
	opset int
	f     *ssa.Func
	names *ssa.Names // made when they are first needed
	// folded holds weights that were made already, by what they were made of.
	folded map[string][2]*ssa.Value
}

// smallFold bounds what is computed when an op is created: larger constants are left to the pass that folds.
const smallFold = 1 << 10

func isConst(v *ssa.Value) bool {
	t := onnx.ConstOf(v)
	return t != nil && t.HasData()
}

// build makes operators through the rewriter, before the rule's root.
func build(r *rewrite.Rewriter) *onnx.Builder {
	return &onnx.Builder{Block: r.Root().Block(), Before: r.Root(), Loc: r.Root().Loc, Make: r.CreateN}
}

// constant makes a constant before the rule's root.
func constant(r *rewrite.Rewriter, t *tensor.Tensor) *ssa.Value { return build(r).Const(t) }

func ints(r *rewrite.Rewriter, v ...int64) *ssa.Value { return constant(r, tensor.Ints(v...)) }

// weight makes a constant at the top of the function, so that it is in scope
// everywhere. It is named after what it was made of: base.what.
func (s *simplifier) weight(r *rewrite.Rewriter, t *tensor.Tensor, base *ssa.Value, what string) *ssa.Value {
	top := s.f.Body
	first := top.First()
	v := constant(r, t)
	r.Hoist(v.Def(), first)
	if base != nil && base.Name != "" {
		if s.names == nil {
			s.names = ssa.NamesOf(s.f)
		}
		v.Name = s.names.Unique(base.Name + "." + what)
	}
	return v
}

// constInts gives the elements of an integer constant.
func constInts(v *ssa.Value) ([]int64, bool) {
	t := onnx.ConstOf(v)
	if t == nil || !t.HasData() || !t.DType.IsInt() {
		return nil, false
	}
	return t.Int64s(), true
}

// maxLook bounds the elements of constants that rules look through.
const maxLook = 1 << 12

// allAre reports that a constant has elements, and all of them are v; -0.0 is not 0.
func allAre(x *ssa.Value, v float64) bool {
	t := onnx.ConstOf(x)
	if t == nil || !t.HasData() || t.NumElements() == 0 || t.DType == tensor.String || t.DType.IsComplex() || t.DType.ONNX() == 0 {
		return false
	}
	if t.IsSplat() {
		one := *t
		one.Shape, one.Strides = []int64{}, []int64{}
		t = &one
	}
	if t.NumElements() > maxLook {
		return false
	}
	for _, e := range t.Float64s() {
		if e != v || 1/e != 1/v {
			return false
		}
	}
	return true
}

// rank is the rank of a tensor value, -1 if it is unknown.
func rank(v *ssa.Value) int {
	if v == nil {
		return -1
	}
	if t := v.Tensor(); t != nil {
		return t.Rank()
	}
	return -1
}
