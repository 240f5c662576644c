package specialize

import (
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// tensorOf evaluates aten::tensor and its kin on constants.
func (s *containers) tensorOf(o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	l, ok := py.LiteralOf(args[0])
	if !ok {
		return nil, false
	}
	d := tensor.Undefined
	if i := o.Schema.Arg("dtype"); i >= 0 {
		dl, ok := args[i].(py.Const)
		if !ok {
			return nil, false
		}
		if !dl.IsNone() {
			d = tensor.FromCode(int(dl.Int()))
		}
	}
	shape := shapeOf(l)
	flat, ok := numbers(l, shape, nil)
	if !ok {
		return nil, false
	}
	kind := kindOf(flat, leafType(o.Operand(0).Type))
	if d == tensor.Undefined {
		d = map[ssa.AttrKind]tensor.DType{ssa.BoolLit: tensor.Bool, ssa.IntLit: tensor.Int64, ssa.FloatLit: tensor.Float32}[kind]
		if o.Kind == "aten::scalar_tensor" {
			d = tensor.Float32
		}
	}
	if d.IsComplex() || d.Size() == 0 {
		return nil, false
	}
	return one(s.heap.Tensor(s.build.constant(ssa.TensorValue(filled(d, shape, kind, flat)))))
}

// shapeOf is the shape of a tensor made of nested lists, if they are not ragged.
func shapeOf(l ssa.Literal) []int64 {
	shape := []int64{}
	for l.Kind == ssa.ListLit {
		shape = append(shape, int64(len(l.Elems)))
		if len(l.Elems) == 0 {
			break
		}
		l = l.Elems[0]
	}
	return shape
}

// numbers appends the numbers in nested lists of a shape; ok is false where they are ragged, or hold something else.
func numbers(l ssa.Literal, shape []int64, out []ssa.Literal) (flat []ssa.Literal, ok bool) {
	if l.Kind != ssa.ListLit && l.Kind != ssa.TupleLit {
		return append(out, l), l.IsNumber() && l.Kind != ssa.ComplexLit
	}
	if len(shape) == 0 || int64(len(l.Elems)) != shape[0] {
		return nil, false
	}
	for _, e := range l.Elems {
		if out, ok = numbers(e, shape[1:], out); !ok {
			return nil, false
		}
	}
	return out, true
}

// kindOf is the kind of number that takes in all of some numbers; declared is the type where there are none.
func kindOf(flat []ssa.Literal, declared ssa.Type) ssa.AttrKind {
	if len(flat) == 0 {
		switch declared {
		case ssa.BoolType:
			return ssa.BoolLit
		case ssa.FloatType, ssa.NumberType, ssa.AnyType:
			return ssa.FloatLit
		}
		return ssa.IntLit
	}
	kind := flat[0].Kind
	for _, x := range flat {
		if x.Kind == ssa.FloatLit {
			kind = ssa.FloatLit
		}
	}
	return kind
}

func filled(d tensor.DType, shape []int64, kind ssa.AttrKind, flat []ssa.Literal) *tensor.Tensor {
	if kind == ssa.FloatLit {
		v := make([]float64, len(flat))
		for i, x := range flat {
			v[i] = x.Float()
		}
		return tensor.FromFloats(d, shape, v)
	}
	v := make([]int64, len(flat))
	for i, x := range flat {
		v[i] = x.Int()
	}
	return tensor.FromInts(d, shape, v)
}

// leafType is what nested lists of a type hold.
func leafType(t ssa.Type) ssa.Type {
	for {
		lt, ok := t.(*ssa.ListType)
		if !ok {
			return t
		}
		t = lt.Elem
	}
}

// toList is Tensor.tolist() for a known shape.
func (s *containers) toList(x py.Value, t ssa.Type) py.Value {
	ref, ok := x.(*py.Tensor)
	if !ok {
		return x
	}
	lt, ok := t.(*ssa.ListType)
	if !ok {
		name := "aten::Float.Tensor"
		switch t {
		case ssa.IntType:
			name = "aten::Int.Tensor"
		case ssa.BoolType:
			name = "aten::Bool.Tensor"
		}
		fake := aten.SchemaByName(name)
		return s.vals.number(s.build.emit(ssa.Kind(strings.TrimSuffix(name, ".Tensor")), fake, s.vals.read(ref))[0])
	}
	tt := s.vals.read(ref).Tensor()
	if tt == nil || !tt.Ranked || len(tt.Dims) == 0 {
		s.fail("dynamic-container", "tolist() needs a known shape")
	}
	n, ok := tt.Dims[0].Int()
	if !ok {
		s.fail("dynamic-container", "tolist() of an axis of size %s: the length must be known at export", tt.Dims[0])
	}
	s.takeElems(n, elemBytes)
	elems := make([]py.Value, n)
	for i := range elems {
		e := s.heap.Tensor(s.vals.emitName("aten::select.int", s.vals.read(ref), 0, i))
		elems[i] = s.toList(e, lt.Elem)
	}
	return s.heap.List(lt.Elem, elems)
}
