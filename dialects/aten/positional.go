package aten

import (
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa"
)

// Operators without a schema, such as those of users and prim::PythonOp, have
// their operands by position.

// NumInputs is the number of operands.
func (l *Lowering) NumInputs() int { return l.Node.NumOperands() }

func (l *Lowering) positional(i int) *ssa.Value {
	if i < 0 || i >= l.Node.NumOperands() {
		l.Fail("there is no operand %d", i)
	}
	return l.Node.Operand(i)
}

// Input is operand i as an ONNX value, nil if it is None.
func (l *Lowering) Input(i int) *ssa.Value {
	v := l.positional(i)
	if lit, ok := LiteralOf(v); ok && lit.IsNone() {
		return nil
	}
	return l.Value(v)
}

// InputLiteral is the constant value of operand i; a value that depends on data is a failure.
func (l *Lowering) InputLiteral(i int) ssa.Literal {
	lit, ok := LiteralOf(l.positional(i))
	if !ok {
		panic(&Failure{ID: "const-arg", Message: "an operand must be a constant", Hint: "pass a Python number, or declare the input that it comes from as a constant (--input name:int=3)"})
	}
	return lit
}

// Custom makes a node of a domain of its own, such as "com.example::Foo", with
// as many results as the operator at hand has and of the types that the program declares.
func (l *Lowering) Custom(kind ssa.Kind, operands []*ssa.Value, attrs ...ssa.Attr) []*ssa.Value {
	vs := l.Create(kind, len(l.Node.Results), operands, attrs...)
	for i, r := range l.Node.Results {
		if ssa.AsTensor(r.Type) != nil {
			vs[i].Type = r.Type
		}
	}
	return vs
}

// PythonName is the class of the torch.autograd.Function that a prim::PythonOp calls.
func (l *Lowering) PythonName() string { return l.Node.AttrStr("name", "") }

// PythonScalars are the arguments of a prim::PythonOp that are no tensors, as Python spells them.
func (l *Lowering) PythonScalars() []string { return pythonScalars(l.Node) }

func pythonScalars(o *ssa.Op) []string {
	lit, _ := o.Attr("scalars")
	if lit.Kind != ssa.StrLit && lit.Kind != ssa.BlobLit {
		return nil
	}
	text := strings.TrimSpace(lit.Str())
	return pythonItems(strings.TrimSuffix(strings.TrimPrefix(text, "("), ")"))
}

// pythonItems splits what stands between brackets at its commas.
func pythonItems(text string) []string {
	var out []string
	depth, start, quote := 0, 0, byte(0)
	for i := 0; i <= len(text); i++ {
		if i == len(text) || text[i] == ',' && depth == 0 && quote == 0 {
			if s := strings.TrimSpace(text[start:i]); s != "" {
				out = append(out, s)
			}
			start = i + 1
			continue
		}
		switch c := text[i]; {
		case quote != 0:
			if c == '\\' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		}
	}
	return out
}

// PythonNamespace is the namespace of torch.autograd.Functions that a table declares by their classes: python::MyRelu.
const PythonNamespace = "python"

// bindPython makes the calls of Python functions that the table declares operators like others, with their arguments in the
// order of the declaration. Graph text has tensors and other arguments apart, each in order. A call that does not fit keeps
// them so, and no schema is found for it.
func (t *Table) bindPython(f *ssa.Func) {
	if t == nil || len(t.declared) == 0 {
		return
	}
	var calls []*ssa.Op
	for o := range f.Body.AllOps() {
		if o.Kind == "prim::PythonOp" && len(t.declared[pythonKind(o)]) > 0 {
			calls = append(calls, o)
		}
	}
	for _, o := range calls {
		tensors, scalars := o.Operands(), pythonScalars(o)
		constant := func(lit ssa.Literal) *ssa.Value {
			c := o.Block().InsertBefore(o, "prim::Constant", o.Loc, nil, lit.Type())
			if !lit.IsNone() {
				c.SetAttr("value", lit)
			}
			return c.Result(0)
		}
		var operands []*ssa.Value
		for _, arg := range t.declared[pythonKind(o)][0].Args {
			switch tensor := isTensor(arg.Type); {
			case tensor && len(tensors) > 0:
				operands, tensors = append(operands, tensors[0]), tensors[1:]
			case len(scalars) > 0 && (!tensor || scalars[0] == "None"):
				operands, scalars = append(operands, constant(pythonLiteral(scalars[0]))), scalars[1:]
			case arg.HasDefault:
				operands = append(operands, constant(arg.Default))
			}
		}
		operands = append(operands, tensors...)
		for _, text := range scalars {
			operands = append(operands, constant(pythonLiteral(text)))
		}
		types := make([]ssa.Type, len(o.Results))
		for i, r := range o.Results {
			types[i] = r.Type
		}
		call := o.Block().InsertBefore(o, pythonKind(o), o.Loc, operands, types...)
		for i, r := range o.Results {
			call.Result(i).Name, r.Name = r.Name, ""
		}
		o.Replace(call.Results...)
	}
}

func pythonKind(o *ssa.Op) ssa.Kind { return ssa.Kind(PythonNamespace + "::" + o.AttrStr("name", "")) }

// isTensor reports a declared argument that is a tensor, or None in the place of one.
func isTensor(t ssa.Type) bool {
	if o, ok := t.(*ssa.OptionalType); ok {
		t = o.Elem
	}
	return ssa.AsTensor(t) != nil
}

// pythonLiteral reads a constant as Python spells it; what is none is a string.
func pythonLiteral(text string) ssa.Literal { return pythonConstant(text, maxNesting) }

// maxNesting is how deep the lists of a constant may lie in each other.
const maxNesting = 8

func pythonConstant(text string, depth int) ssa.Literal {
	switch text {
	case "None":
		return ssa.None
	case "True", "False":
		return ssa.Bool(text == "True")
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return ssa.Int(n)
	}
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		return ssa.Float(x)
	}
	if n := len(text); n > 1 {
		switch inner := text[1 : n-1]; {
		case depth > 0 && (text[0] == '(' && text[n-1] == ')' || text[0] == '[' && text[n-1] == ']'):
			list := ssa.Literal{Kind: ssa.ListLit}
			for _, item := range pythonItems(inner) {
				list.Elems = append(list.Elems, pythonConstant(item, depth-1))
			}
			if len(list.Elems) > 0 {
				list.Elem = list.Elems[0].Type()
			}
			return list
		case (text[0] == '\'' || text[0] == '"') && text[n-1] == text[0]:
			return ssa.Str(inner)
		}
	}
	return ssa.Str(text)
}
