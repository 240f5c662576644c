package lower

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Mode says what happens to operators that cannot be converted. The modes are
// those of torch.onnx's operator_export_type.
type Mode string

// Modes.
const (
	// Strict: every operator must convert (ONNX).
	Strict Mode = "onnx"
	// Fallthrough keeps them as nodes with their own names (ONNX_FALLTHROUGH).
	Fallthrough Mode = "fallthrough"
	// ATenFallback turns operators of aten into ATen nodes (ONNX_ATEN_FALLBACK).
	ATenFallback Mode = "aten-fallback"
	// ATen turns all operators of aten into ATen nodes, whether they convert or not (ONNX_ATEN).
	ATen Mode = "aten"
	// Collect reports them and goes on, so that later passes can report their problems too.
	Collect Mode = "collect"
)

// Modes lists the modes.
func Modes() []string {
	return []string{string(Strict), string(Fallthrough), string(ATenFallback), string(ATen), string(Collect)}
}

// unconverted stands for the results of an operator that could not be converted.
const unconverted ssa.Kind = "unconverted::value"

// node is a foreign operator under construction.
type node struct {
	kind     ssa.Kind
	operands []*ssa.Value
	attrs    []ssa.Attr
}

// keep replaces an operator by a foreign node.
func (l *lowerer) keep(o *ssa.Op, form func(o *ssa.Op) node) {
	n, err := formed(o, form)
	for i, r := range o.Results {
		if err == nil && l.needsType(r) {
			err = &aten.Failure{ID: "unknown-dtype", Message: fmt.Sprintf("the element type of its result %d is not known, and what is behind it needs that", i),
				Hint: fmt.Sprintf("state it in a rule (--rules), such as %%y : %%x = my.domain::%s(%%x)", o.Kind.Name())}
		}
	}
	if err != nil {
		l.fail(o, err)
		return
	}
	types := make([]ssa.Type, len(o.Results))
	for i, r := range o.Results {
		types[i] = onnxType(l.m, r.Type)
	}
	op := l.low.Block.Append(n.kind, o.Loc, n.operands, types...)
	op.Attrs = n.attrs
	for i, r := range o.Results {
		l.set(r, op.Results[i])
	}
	if l.m.Opsets == nil {
		l.m.Opsets = map[string]int{}
	}
	if domain := n.kind.Namespace(); l.m.Opsets[domain] == 0 {
		l.m.Opsets[domain] = 1
	}
}

// needsType reports whether a result of a foreign operator lacks an element type although it is an output of the program or an
// operand of an operator that must be converted. A trace in graph text has the types; an archive has none.
func (l *lowerer) needsType(r *ssa.Value) bool {
	if t := ssa.AsTensor(r.Type); t == nil || t.DType != tensor.Undefined {
		return false
	}
	for u := range r.Uses() {
		if u.Op() == nil && u.Block().Owner() == nil || u.Op() != nil && l.opts.Mode == Strict && u.Op().Kind.Namespace() == "aten" && !l.falls("aten") {
			return true
		}
	}
	return false
}

func formed(o *ssa.Op, form func(o *ssa.Op) node) (n node, err *aten.Failure) {
	err = aten.Try(func() { n = form(o) })
	return n, err
}

// domainOf returns the ONNX domain of a namespace.
func domainOf(ns string) string {
	if ns == "aten" {
		return "org.pytorch.aten"
	}
	return ns
}

// customNode makes a node with tensors as inputs and constants as attributes, named as in the schema.
func (l *lowerer) customNode(o *ssa.Op) node {
	n := node{kind: ssa.Kind(domainOf(o.Kind.Namespace()) + "::" + o.Kind.Name()), attrs: attributes(o)}
	for i := range o.NumOperands() {
		v := o.Operand(i)
		name := fmt.Sprintf("arg%d", i)
		if o.Schema != nil && i < len(o.Schema.Args) {
			name = o.Schema.Args[i].Name
		}
		if d := v.Def(); d != nil && d.Kind == "prim::Constant" {
			lit, _ := d.Attr("value")
			if lit.Kind != ssa.TensorLit {
				if !lit.IsNone() {
					n.attrs = append(n.attrs, ssa.Attr{Name: name, Value: plain(lit)})
				}
				continue
			}
		}
		if es, ok := aten.ListElems(v); ok {
			for _, e := range es {
				n.operands = append(n.operands, l.operand(e))
			}
			continue
		}
		n.operands = append(n.operands, l.operand(v))
	}
	return n
}

// sameNode makes a node with the operator's own name and all its operands as inputs.
func (l *lowerer) sameNode(o *ssa.Op) node {
	return node{kind: ssa.Kind(domainOf(o.Kind.Namespace()) + "::" + o.Kind.Name()), operands: l.operands(o), attrs: attributes(o)}
}

// atenNode makes an ATen node: operator and overload are attributes, and all operands are inputs in schema order.
func (l *lowerer) atenNode(o *ssa.Op) node {
	overload := ""
	if o.Schema != nil {
		overload = o.Schema.Overload
	}
	return node{
		kind: "org.pytorch.aten::ATen", operands: l.operands(o),
		attrs: append([]ssa.Attr{{Name: "operator", Value: ssa.Str(o.Kind.Name())}, {Name: "overload_name", Value: ssa.Str(overload)}}, attributes(o)...),
	}
}

func (l *lowerer) operands(o *ssa.Op) []*ssa.Value {
	var vs []*ssa.Value
	for i := range o.NumOperands() {
		es, list := aten.ListElems(o.Operand(i))
		if !list || !slices.ContainsFunc(es, isNone) {
			vs = append(vs, l.operand(o.Operand(i)))
			continue
		}
		// no sequence has a hole: the elements are inputs of their own, absent where they are None
		for _, e := range es {
			vs = append(vs, l.operand(e))
		}
	}
	return vs
}

func isNone(v *ssa.Value) bool {
	if v.Def() == nil || v.Def().Kind != "prim::Constant" {
		return v.Type == ssa.NoneType
	}
	lit, _ := v.Def().Attr("value")
	return lit.IsNone()
}

// operand returns an operand of a foreign node: nil for None, an onnx::Constant for a
// constant, a sequence for a list of tensors.
func (l *lowerer) operand(v *ssa.Value) *ssa.Value {
	if vs := l.lists[v]; vs != nil {
		return l.low.SequenceConstruct(vs...)
	}
	if d := v.Def(); d != nil && d.Kind == "prim::Constant" {
		switch lit, _ := d.Attr("value"); lit.Kind {
		case ssa.NoneLit:
			return nil
		case ssa.StrLit, ssa.DeviceLit:
			return l.low.Const(tensor.Strings([]int64{}, []string{lit.Str()}))
		}
	}
	return l.low.Value(v)
}

// attributes returns an operator's own attributes, as far as ONNX can store them.
func attributes(o *ssa.Op) []ssa.Attr {
	var out []ssa.Attr
	for _, a := range o.Attrs {
		out = append(out, ssa.Attr{Name: a.Name, Value: plain(a.Value)})
	}
	return out
}

// plain turns devices and text into strings, and tuples into lists.
func plain(l ssa.Literal) ssa.Literal {
	switch l.Kind {
	case ssa.DeviceLit, ssa.BlobLit:
		return ssa.Str(l.Str())
	case ssa.TupleLit:
		l.Kind = ssa.ListLit
		if len(l.Elems) > 0 {
			l.Elem = l.Elems[0].Type()
		}
	}
	return l
}
