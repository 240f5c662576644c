// Package legalize is the pass that converts ONNX operators from their newest encoding,
// which the IR has, to that of an opset, with element types for which the target has kernels.
package legalize

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// foldLimit bounds the elements that folding a constant reads or makes.
const foldLimit = 1 << 20

// maxRounds bounds how often the replacements of an op are replaced, so that a cycle
// in the tables cannot hang.
const maxRounds = 1000

type legalizer struct {
	c      *passes.Context
	m      *ssa.Module
	opset  int
	target onnx.Target
	done   map[*ssa.Op]bool
	// kept has the casts back from a wider type that lose nothing: their operand has
	// the elements of the result.
	kept map[*ssa.Op]bool
	// bfloat16 has the bfloat16 operators that compute in float32.
	bfloat16 []*ssa.Op
	// only are the operators that the file may have; nil for all.
	only map[ssa.Kind]bool
	// instead has the operators in whose place one was built, since the file may not have them.
	instead map[*ssa.Op][]ssa.Kind
	// names has the names in the current function.
	names *ssa.Names
}

// block legalizes the ops of a block in order. A rewrite builds ops before the current one,
// and they are visited next.
func (l *legalizer) block(b *ssa.Block) {
	rounds := 0
	for o := b.First(); o != nil; {
		if l.done[o] {
			o = o.Next()
			continue
		}
		prev, next := o.Prev(), o.Next()
		l.op(o)
		first := b.First()
		if prev != nil {
			first = prev.Next()
		}
		if first == o {
			rounds = 0
			o = o.Next()
			continue
		}
		if o.Block() != nil {
			l.done[o] = true
		}
		if first == next {
			rounds = 0
		} else if rounds++; rounds > maxRounds {
			panic(fmt.Sprintf("legalize: %s at opset %d: no end of rewriting", o.Kind, l.opset)) // a mistake in the steps: each leads to an older form
		}
		o = first
	}
}

// op legalizes one op: it replaces the op, or brings it to the form of the opset.
func (l *legalizer) op(o *ssa.Op) {
	for _, b := range o.Blocks {
		l.block(b)
	}
	if o.Kind.Namespace() != onnx.Namespace {
		return
	}
	d := &onnx.Downgrade{
		Builder: onnx.Builder{Block: o.Block(), Before: o, Loc: o.Loc, Eval: kernel.Eval, FoldLimit: foldLimit, Names: l.names},
		Node:    o, Opset: l.opset, Target: l.target,
	}
	before := o.Prev()
	kind, loc := o.Kind, o.Loc
	if !l.available(kind) && l.avoid(d) {
		return
	}
	if err := l.try(d); err != nil {
		ssa.EraseBetween(before, o)
		l.report(kind, loc, d.Hint, err)
	}
}

// available reports an operator that the file may have. Constants are no operators for runtimes.
func (l *legalizer) available(k ssa.Kind) bool {
	return l.only == nil || l.only[k] || k == "onnx::Constant"
}

// avoid builds other operators in the place of one that the file may not have, and reports whether there are such. If not, the operator stays as it was.
func (l *legalizer) avoid(d *onnx.Downgrade) bool {
	o, before := d.Node, d.Node.Prev()
	kind, next, was := o.Kind, o.Next(), l.instead[o]
	if slices.Contains(was, kind) || len(was) > maxInstead {
		return false
	}
	attrs, operands := slices.Clone(o.Attrs), o.Operands()
	done := false
	err := onnx.Build(func() { done = d.Instead() })
	if err != nil || !done {
		o.Kind, o.Attrs = kind, attrs
		o.SetOperands(operands...)
		ssa.EraseBetween(before, o)
		return false
	}
	l.c.Changed(o.Kind.Name() + ", which is not available")
	made := d.Block.First()
	if before != nil {
		made = before.Next()
	}
	for ; made != next; made = made.Next() {
		l.instead[made] = append(slices.Clone(was), kind)
	}
	return true
}

// maxInstead bounds how often the operators in the place of one are replaced.
const maxInstead = 8

// outside reports the operators that the file may not have. Those in the place of one are told as that one.
func (l *legalizer) outside(b *ssa.Block) {
	type place struct {
		kind ssa.Kind
		loc  diag.Loc
	}
	missing := map[place][]string{}
	var order []place
	for o := range b.AllOps() {
		if ns := o.Kind.Namespace(); l.available(o.Kind) || ns == "prim" || ns == "aten" {
			continue
		}
		at, was := place{o.Kind, o.Loc}, l.instead[o]
		if len(was) > 0 {
			at.kind = was[0]
		}
		if _, told := missing[at]; !told {
			order = append(order, at)
			missing[at] = nil
		}
		if name := o.Kind.Name(); len(was) > 0 && !slices.Contains(missing[at], name) {
			missing[at] = append(missing[at], name)
		}
	}
	for _, at := range order {
		message := "the operator is not among those that the file may have, and nothing else computes it"
		if list := missing[at]; len(list) > 0 {
			message = "the operator is not among those that the file may have; in its place there would be others that are not: " + strings.Join(list, ", ")
		}
		l.c.Report(diag.Diagnostic{ID: "unavailable-op", Op: string(at.kind), Loc: at.loc, Message: message})
	}
}

func (l *legalizer) report(kind ssa.Kind, loc diag.Loc, hint string, err *onnx.Unsupported) {
	p := diag.Diagnostic{ID: "opset", Op: string(kind), Loc: loc, Message: err.Why, Hint: hint}
	if err.Opset > l.opset {
		p.Message += fmt.Sprintf(" needs opset %d", err.Opset)
		p.Hint = fmt.Sprintf("export with --opset %d", err.Opset)
		p.Opset = err.Opset
	}
	l.c.Report(p)
}

func (l *legalizer) try(d *onnx.Downgrade) (unsupported *onnx.Unsupported) {
	switch err := onnx.Build(func() { unsupported = l.down(d) }).(type) {
	case nil:
		return unsupported
	case *onnx.Unsupported:
		return err
	default:
		return &onnx.Unsupported{Why: err.Error()}
	}
}

// down takes the steps of an operator to the opset.
func (l *legalizer) down(d *onnx.Downgrade) *onnx.Unsupported {
	o := d.Node
	name := o.Kind.Name()
	steps := onnx.Steps(name)
	schema := onnx.Lookup(name, l.opset)
	if schema != nil {
		if l.types(d, schema); o.Block() == nil {
			return nil
		}
	}
	for _, s := range steps {
		if s.Opset <= l.opset {
			break
		}
		s.Down(d)
		l.c.Changed(fmt.Sprintf("%s-%d", name, s.Opset))
		if o.Block() == nil {
			return nil
		}
	}
	if o.Kind.Name() != name { // renamed
		if schema = onnx.Lookup(o.Kind.Name(), l.opset); schema != nil {
			l.types(d, schema)
		}
	}
	if schema == nil {
		for n := l.opset + 1; n <= l.target.Newest(); n++ {
			if onnx.Lookup(name, n) != nil {
				d.Fail(n, "the operator")
			}
		}
		if vs := onnx.Versions(name); vs != nil && vs[0].Since > l.opset {
			d.Fail(0, "opset %d does not have the operator, which came with opset %d; %s loads opsets up to %d", l.opset, vs[0].Since, l.who(), l.target.Newest())
		} else if vs != nil {
			d.Fail(0, "opset %d does not have the operator any more", l.opset)
		}
		d.Fail(0, "this is no operator of ONNX")
	}
	l.conform(d, schema)
	return nil
}
