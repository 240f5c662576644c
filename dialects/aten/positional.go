package aten

import (
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
func (l *Lowering) PythonScalars() []string {
	lit, _ := l.Node.Attr("scalars")
	if lit.Kind != ssa.StrLit && lit.Kind != ssa.BlobLit {
		return nil
	}
	text := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(lit.Str()), "("), ")")
	var out []string
	depth, start := 0, 0
	for i := 0; i <= len(text); i++ {
		if i == len(text) || text[i] == ',' && depth == 0 {
			if s := strings.TrimSpace(text[start:i]); s != "" {
				out = append(out, s)
			}
			start = i + 1
			continue
		}
		switch text[i] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		}
	}
	return out
}
