// Package infertypes is the pass that finds element types and sizes, and changes nothing else.
package infertypes

import (
	"errors"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/dialects/onnx/typecheck"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
)

// New makes the pass for a table of operators; nil stands for the built-in ones.
//
// Operators of ONNX are taken to be in their newest form, or at the opset of the module. Operators of PyTorch have the types of
// what they are lowered to. An operator whose types cannot be found keeps those that it has: the pass never makes a type less
// precise, except where the inference contradicts it. A function with an operator that changes the sizes of a tensor in place
// is left alone, since a value has no single type there; the pass specialize makes such programs functional.
func New(table *aten.Table) passes.Pass {
	return passes.Pass{
		Name: "infer-types",
		Doc:  "infer element types and sizes, of aten operators and of ONNX operators",
		Before: `
graph(%x : Float(N, 3), %w : Float(5, 3)):
  %none : NoneType = prim::Constant()
  %y : Tensor = aten::linear(%x, %w, %none)
  %z : Tensor = aten::relu(%y)
  return (%z)`,
		After: `
graph(%x : Float(N, 3), %w : Float(5, 3)):
  %none : NoneType = prim::Constant()
  %y : Float(N, 5) = aten::linear(%x, %w, %none)
  %z : Float(N, 5) = aten::relu(%y)
  return (%z)`,
		Options: []passes.Option{
			{Name: "opset", Default: onnx.ExportOpsetText, Doc: "the ONNX opset that aten operators are for", Int: true, Least: 1, Most: onnx.Newest},
		},
		Run: func(c *passes.Context) error {
			if table == nil {
				table = aten.NewTable()
			}
			table.BindSchemas(c.Module) // graph text does not name overloads
			for _, f := range slices.Clone(c.Module.Funcs) {
				i := &inference{c: c, table: table, opset: c.IntOption("opset"), lists: map[*ssa.Value][]*ssa.TensorType{}}
				if i.resizes(f) {
					continue
				}
				if at := onnx.DefaultOpset(c.Module); at != 0 && at != onnx.Newest {
					i.file(f)
					continue
				}
				i.scratch = c.Module.NewFunc("scratch")
				i.block(f.Body)
				c.Module.RemoveFunc(i.scratch)
			}
			return nil
		},
	}
}

type inference struct {
	c       *passes.Context
	table   *aten.Table
	opset   int
	scratch *ssa.Func
	writes  bool                             // something in the function writes to memory
	lists   map[*ssa.Value][]*ssa.TensorType // the elements of lists that operators give
}

// resizes reports a function in which the sizes of a tensor change in place.
func (i *inference) resizes(f *ssa.Func) bool {
	for o := range f.Body.AllOps() {
		if i.c.Module.Effects(o)&(ssa.Writes|ssa.Unknown) == 0 {
			continue
		}
		i.writes = true
		if aten.ResizesInPlace(o.Kind) {
			return true
		}
	}
	return false
}

func (i *inference) block(b *ssa.Block) {
	for o := range b.Ops() {
		before := make([]ssa.Type, len(o.Results))
		for k, r := range o.Results {
			before[k] = r.Type
		}
		if o.Kind.Namespace() != onnx.Namespace { // whose blocks are inferred with them
			for _, inner := range o.Blocks {
				i.block(inner)
			}
		}
		switch {
		case o.Kind.Namespace() == onnx.Namespace:
			i.onnx(o)
		case o.Kind == "prim::If":
			i.branches(o)
		case o.Kind == "prim::ListUnpack":
			if types := i.lists[o.Operand(0)]; len(types) == len(o.Results) {
				for k, r := range o.Results {
					set(r, types[k])
				}
			} else if es, ok := aten.ListElems(o.Operand(0)); ok && len(es) == len(o.Results) {
				for k, r := range o.Results {
					set(r, es[k].Tensor())
				}
			}
		case o.Schema != nil && len(o.Blocks) == 0:
			i.aten(o)
		}
		for k, r := range o.Results {
			if !ssa.SameType(before[k], r.Type) {
				i.c.Changed("infer-types")
				break
			}
		}
	}
}

// set gives a value a tensor type that was inferred for it.
func set(v *ssa.Value, t *ssa.TensorType) {
	old := v.Tensor()
	if t == nil || old == nil || ssa.SameType(old, t) {
		return
	}
	if t.DType == tensor.Undefined {
		t = t.WithDType(old.DType)
	}
	if !t.Ranked && old.Ranked {
		t = old.WithDType(t.DType)
	}
	v.Type = t
}

// file infers a function of an ONNX file at an opset whose operators may have another form than the newest.
func (i *inference) file(f *ssa.Func) {
	list := typecheck.Infer(f, func(v, inferred *ssa.Value) {
		old := v.Type
		set(v, inferred.Tensor())
		v.Sym = inferred.Sym
		if !ssa.SameType(old, v.Type) {
			i.c.Changed("infer-types")
		}
	})
	for _, d := range list.Items {
		i.c.Report(d)
	}
}

// onnx infers the types of an ONNX operator in its newest form. An operator that cannot run is reported: the file is no model.
func (i *inference) onnx(o *ssa.Op) {
	types := make([]*ssa.TensorType, len(o.Results))
	for k, r := range o.Results {
		types[k] = r.Tensor()
	}
	if err := onnx.Infer(o); err != nil {
		at := o
		var inner *onnx.OpError
		if errors.As(err, &inner) {
			at, err = inner.Op, inner.Err
		}
		i.c.Report(diag.Diagnostic{ID: typecheck.IDShape, Op: string(at.Kind), Loc: at.Loc, Message: strings.TrimPrefix(err.Error(), string(at.Kind)+": ")})
		return
	}
	for k, r := range o.Results {
		if t := r.Tensor(); t != nil && types[k] != nil {
			r.Type = types[k]
			set(r, t)
		}
	}
}

// branches gives the results of an If the types that both sides have.
func (i *inference) branches(o *ssa.Op) {
	for k, r := range o.Results {
		if len(o.Blocks) != 2 || k >= o.Blocks[0].NumReturns() || k >= o.Blocks[1].NumReturns() {
			return
		}
		if a, b := o.Blocks[0].Return(k), o.Blocks[1].Return(k); a != nil && b != nil && a.Tensor() != nil && ssa.SameType(a.Type, b.Type) {
			set(r, a.Tensor())
		}
	}
}

// aten infers the types of an operator of PyTorch.
func (i *inference) aten(o *ssa.Op) {
	if len(o.Results) == 0 || len(o.Results) != len(o.Schema.Returns) {
		return
	}
	if o.Schema.Mutates() {
		for k, r := range o.Results { // what is written in place has the type that it had
			for n, a := range o.Schema.Args {
				if a.Writes && a.Alias != "" && a.Alias == o.Schema.Returns[k].Alias && a.Name != "out" && !a.KwOnly && n < o.NumOperands() && o.Operand(n) != nil {
					set(r, o.Operand(n).Tensor())
				}
			}
		}
		return
	}
	if i.c.Module.Effects(o)&ssa.Unknown != 0 || i.writes && slices.ContainsFunc(o.Operands(), indices) {
		return
	}
	if t, ok := i.table.TypeOf(o, i.opset); ok {
		set(o.Results[0], t)
		return
	}
	defer i.scratch.Body.Clear()
	vs, failure := i.table.Scratch(o, i.opset, onnx.Builder{Eval: kernel.Eval, Block: i.scratch.Body, Loc: o.Loc, FoldLimit: foldLimit})
	if failure != nil {
		return
	}
	if lt, ok := o.Results[0].Type.(*ssa.ListType); ok && len(o.Results) == 1 && ssa.AsTensor(lt.Elem) != nil {
		types := make([]*ssa.TensorType, len(vs))
		for k, v := range vs {
			if v == nil || v.Tensor() == nil {
				return // a sequence: its length is not known
			}
			types[k] = v.Tensor()
		}
		i.lists[o.Results[0]] = types
		return
	}
	if len(vs) != len(o.Results) {
		return
	}
	for k, v := range vs {
		if v == nil {
			continue
		}
		set(o.Results[k], v.Tensor())
		if !i.writes || o.Results[k].Tensor() == nil { // a tensor that is written has other elements later
			o.Results[k].Sym = v.Sym
		}
	}
}

// foldLimit bounds the elements of a constant that an operator's types depend on.
const foldLimit = 1 << 14

// indices reports a constant tensor whose elements may decide on sizes: in a program that writes they may be others by then.
func indices(v *ssa.Value) bool {
	return v != nil && v.Def() != nil && strings.HasSuffix(string(v.Def().Kind), "::Constant") && v.Tensor() != nil && !v.DType().IsFloat()
}
