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

// toDynList is Tensor.tolist() for a length that is known at run time only: of numbers, or of such lists.
func (s *containers) toDynList(x *py.Tensor, t *ssa.ListType) py.Value {
	v := s.vals.read(x)
	if _, ok := numberDType(t.Elem); ok {
		if len(v.Tensor().Dims) != 1 {
			s.fail("dynamic-container", "tolist() of %d dimensions as a list of numbers", len(v.Tensor().Dims))
		}
		return s.newDyn(s.build.cur.Append("prim::tolist", s.loc, []*ssa.Value{v}, t).Result(0), t.Elem)
	}
	if !memberList(t.Elem) || len(v.Tensor().Dims) != 2 {
		s.fail("dynamic-container", "tolist() of an axis of size %s: the length must be known at export", v.Tensor().Dims[0])
	}
	return s.newDyn(s.vals.emitName("aten::unbind.int", v), t.Elem)
}

// A list of run-time length holds tensors or numbers. Lists of numbers, and tuples of numbers of one type, are in it as vectors.

// numberDType is the element type of the vector that stands for a list of numbers.
func numberDType(t ssa.Type) (d tensor.DType, ok bool) {
	switch t {
	case ssa.IntType:
		return tensor.Int64, true
	case ssa.FloatType:
		return tensor.Float64, true
	case ssa.BoolType:
		return tensor.Bool, true
	}
	return d, false
}

// numberTypeOf is the type of the numbers in a vector of such elements.
func numberTypeOf(d tensor.DType) ssa.Type {
	switch d {
	case tensor.Float64:
		return ssa.FloatType
	case tensor.Bool:
		return ssa.BoolType
	}
	return ssa.IntType
}

// memberList reports lists and tuples that a run-time list holds as vectors.
func memberList(t ssa.Type) bool { return memberNumber(t) != nil }

// memberNumber is the type of the numbers in such a list or tuple, nil for other types.
func memberNumber(t ssa.Type) ssa.Type {
	var n ssa.Type
	switch t := t.(type) {
	case *ssa.ListType:
		n = t.Elem
	case *ssa.TupleType:
		for i, e := range t.Elems {
			if i > 0 && e != n {
				return nil
			}
			n = e
		}
	}
	if _, ok := numberDType(n); ok {
		return n
	}
	return nil
}

// member is x as a run-time list holds it: a vector in the place of a list of numbers, which nothing may be written to any more.
func (s *values) member(x py.Value) py.Value {
	var list *py.List
	switch y := x.(type) {
	case *py.List:
		list = y
	case *py.Tuple:
		if len(y.Elems) == 0 {
			return x
		}
		t, _ := py.NumberType(y.Elems[0])
		list = s.heap.List(t, y.Elems)
	default:
		return x
	}
	elem := list.Elem
	if st := list.State(); st.Dyn != nil {
		elem = st.Dyn.Type.(*ssa.ListType).Elem
	} else if len(st.Elems) > 0 {
		elem = nil
		for i, e := range st.Elems {
			t, ok := py.NumberType(e)
			if !ok || i > 0 && t != elem {
				return x
			}
			elem = t
		}
	}
	d, ok := numberDType(elem)
	if !ok {
		return x
	}
	s.heap.Copied(list.Cell)
	v := s.materialize(&py.List{Cell: list.Cell, Elem: elem})
	return s.heap.Tensor(s.emitName("aten::tensor", v, ssa.Int(int64(d.Code()))))
}

// ofMember is the list or tuple of type t that the vector x stands for in a run-time list.
func (s *containers) ofMember(x py.Value, t ssa.Type) py.Value {
	v, ok := x.(*py.Tensor)
	if !ok || !memberList(t) {
		return x
	}
	if lt, ok := t.(*ssa.ListType); ok {
		list := s.newDyn(s.build.cur.Append("prim::tolist", s.loc, []*ssa.Value{s.vals.read(v)}, lt).Result(0), lt.Elem)
		s.heap.Copied(list.Cell)
		return list
	}
	tt := t.(*ssa.TupleType)
	elems := make([]py.Value, len(tt.Elems))
	for i, e := range tt.Elems {
		elems[i] = s.toList(s.heap.Tensor(s.vals.emitName("aten::select.int", s.vals.read(v), 0, i)), e)
	}
	return &py.Tuple{Elems: elems, Typ: tt}
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
		return s.toDynList(ref, lt)
	}
	s.takeElems(n, elemBytes)
	elems := make([]py.Value, n)
	for i := range elems {
		e := s.heap.Tensor(s.vals.emitName("aten::select.int", s.vals.read(ref), 0, i))
		elems[i] = s.toList(e, lt.Elem)
	}
	return s.heap.List(lt.Elem, elems)
}
