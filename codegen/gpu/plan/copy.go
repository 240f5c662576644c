package plan

import (
	"fmt"
	"github.com/aton-project/aton/codegen/gpu/emit"
	"maps"
	"strconv"
	"strings"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// copyModule copies the main function, brings it to the newest encoding and infers its types.
func copyModule(m *ssa.Module) (*ssa.Module, error) {
	f := m.Main()
	if f == nil {
		return nil, fmt.Errorf("the module has no function")
	}
	c := ssa.NewModule(m.Dialects...)
	c.Locs, c.Opsets, c.Keep = m.Locs, maps.Clone(m.Opsets), m.Keep
	g := c.NewFunc(f.Name)
	values := make([]*ssa.Value, f.NumValues())
	last := -1
	for _, p := range f.Body.Params {
		q := g.Body.AddParam(p.Name, p.Type)
		q.Sym = p.Sym
		values[p.ID] = q
		symbols(p, func(name string) {
			if n, err := strconv.Atoi(strings.TrimPrefix(name, "u")); err == nil && strings.HasPrefix(name, "u") {
				last = max(last, n)
			}
		})
	}
	if last > 1<<20 {
		return nil, fmt.Errorf("an axis is called u%d", last)
	}
	for range last + 1 { // inference calls unknown sizes u0, u1, ...: not by the names that the inputs have
		c.FreshSymbol("u", 0)
	}
	c.SharesSymbols(m) // nor by those that values have
	g.Body.CopyInto(nil, f.Body, values, func(l diag.Loc) diag.Loc { return l }, func(name string) string { return name })
	for _, v := range f.Body.Returns() {
		g.Body.SetReturns(append(g.Body.Returns(), values[v.ID])...)
	}
	g.OutputNames = f.OutputNames
	for o := range g.Body.AllOps() {
		if ns := o.Kind.Namespace(); ns == "aten" || ns == "prim" && o.Kind != "prim::Constant" {
			return nil, fmt.Errorf("%s is no operator of ONNX: lower the module first", o.Kind)
		}
	}
	if err := onnx.RaiseModule(c, false); err != nil {
		return nil, err
	}
	return c, nil
}

// alias reports an op whose result is its operand under another shape: the elements stand in the same order.
func alias(o *ssa.Op) bool {
	if len(o.Results) == 0 || o.Operand(0) == nil {
		return false
	}
	x, y := o.Operand(0).Tensor(), o.Results[0].Tensor()
	if x == nil || y == nil || !x.Ranked || !y.Ranked || x.DType != y.DType {
		return false
	}
	if o.Kind == "onnx::Dropout" {
		return o.Operand(2) == nil && (len(o.Results) == 1 || !o.Results[1].HasUses())
	}
	return emit.KeepsOrder(o.Kind)
}

// HostReads are the values that an op of a host step reads, those of its blocks too. An op of class sizes reads none.
func HostReads(o *ssa.Op) []*ssa.Value {
	var out []*ssa.Value
	for _, v := range append(o.Operands(), interp.Captured(o)...) {
		if v != nil {
			out = append(out, v)
		}
	}
	return out
}
