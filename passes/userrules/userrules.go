// Package userrules is the pass that applies a user's rules to ONNX operators.
package userrules

import (
	"fmt"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
)

// New makes the pass for the replacements of a table ([aten.Table.Replace]); a nil table has none. It visits each operator once, in
// order, and does not visit replacements, so that it always ends. Operators that only a replaced one
// used are left to dce.
func New(table *aten.Table) passes.Pass {
	return passes.Pass{
		Name:  "user-rules",
		Takes: []passes.State{passes.Newest, passes.Standard},
		Doc:   "apply the user's rules to ONNX operators",
		Before: `
graph(%x : Float(N, 3)):
  %y : Float(N, 3) = onnx::Relu(%x)
  return (%y)`,
		After: `
graph(%x : Float(N, 3)):
  %y : Float(N, 3) = onnx::Relu(%x)
  return (%y)`,
		Options: []passes.Option{{Name: "opset", Default: onnx.ExportOpsetText, Doc: "the target version of the default domain", Int: true, Least: 1, Most: onnx.Newest}},
		Run: passes.EachFunc(func(c *passes.Context, f *ssa.Func) error {
			if table == nil || !table.Replaces() || !newest(c.Module) {
				return nil
			}
			run(c, f, table)
			return nil
		}),
	}
}

// newest reports whether the module's ONNX operators are in their newest form.
func newest(m *ssa.Module) bool {
	v := onnx.DefaultOpset(m)
	return v == 0 || v == onnx.Newest
}

// foldLimit bounds the elements of constants that are folded when an operator is created.
const foldLimit = 1 << 12

func run(c *passes.Context, f *ssa.Func, table *aten.Table) {
	var sought []*ssa.Op
	for o := range f.Body.AllOps() {
		if table.Replaced(o.Kind) {
			sought = append(sought, o)
		}
	}
	if len(sought) == 0 {
		return
	}
	names := ssa.NamesOf(f)
	for _, o := range sought {
		b := onnx.Builder{Block: o.Block(), Before: o, Loc: o.Loc, Eval: kernel.Eval, FoldLimit: foldLimit, Names: names}
		l := aten.NewLowering(table, c.IntOption("opset"), b, func(v *ssa.Value) (*ssa.Value, *aten.Failure) { return v, nil })
		vs, err := l.Replacement(o)
		for i := 0; err == nil && i < len(vs); i++ {
			err = fits(o.Result(i), vs[i])
		}
		if err != nil {
			c.Report(diag.Diagnostic{ID: err.ID, Op: string(o.Kind), Loc: o.Loc, Message: err.Message, Hint: err.Hint, Opset: err.Opset})
			continue
		}
		if vs == nil {
			continue
		}
		for i, v := range vs {
			if r := o.Result(i); v.Name == "" && v.Def() != nil && v.Def().Kind != "onnx::Constant" {
				v.Name, r.Name = r.Name, ""
			}
		}
		o.Replace(vs...)
		c.Changed("replaced")
	}
}

// fits compares the type of a result with that of its replacement.
func fits(old, v *ssa.Value) *aten.Failure {
	a, b := old.Tensor(), v.Tensor()
	if a == nil || b == nil || (a.DType == b.DType || a.DType == tensor.Undefined || b.DType == tensor.Undefined) && (!a.Ranked || !b.Ranked || len(a.Dims) == len(b.Dims)) {
		return nil
	}
	return &aten.Failure{ID: "rules", Message: fmt.Sprintf("a rule puts a %s in the place of a %s", b, a)}
}
