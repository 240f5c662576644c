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
	var shape []int64
	for x := l; x.Kind == ssa.ListLit; {
		shape = append(shape, int64(len(x.Elems)))
		if len(x.Elems) == 0 {
			break
		}
		x = x.Elems[0]
	}
	var flat []ssa.Literal
	kind := ssa.IntLit
	if lt, ok := leafType(l, o.Operand(0).Type).(ssa.Basic); ok {
		switch lt {
		case ssa.BoolType:
			kind = ssa.BoolLit
		case ssa.FloatType, ssa.NumberType, ssa.AnyType:
			kind = ssa.FloatLit
		}
	}
	ragged := false
	var walk func(x ssa.Literal, depth int)
	walk = func(x ssa.Literal, depth int) {
		if x.Kind == ssa.ListLit || x.Kind == ssa.TupleLit {
			if depth >= len(shape) || int64(len(x.Elems)) != shape[depth] {
				ragged = true
				return
			}
			for _, e := range x.Elems {
				walk(e, depth+1)
			}
			return
		}
		if !x.IsNumber() || x.Kind == ssa.ComplexLit {
			ragged = true
			return
		}
		flat = append(flat, x)
	}
	walk(l, 0)
	if ragged {
		return nil, false
	}
	for i, x := range flat {
		if i == 0 {
			kind = x.Kind
		} else if x.Kind == ssa.FloatLit {
			kind = ssa.FloatLit
		}
	}
	if d == tensor.Undefined {
		switch kind {
		case ssa.BoolLit:
			d = tensor.Bool
		case ssa.IntLit:
			d = tensor.Int64
		default:
			d = tensor.Float32
		}
		if o.Kind == "aten::scalar_tensor" {
			d = tensor.Float32
		}
	}
	if d.IsComplex() || d.Size() == 0 {
		return nil, false
	}
	if shape == nil {
		shape = []int64{}
	}
	var t *tensor.Tensor
	if kind == ssa.FloatLit {
		v := make([]float64, len(flat))
		for i, x := range flat {
			v[i] = x.Float()
		}
		t = tensor.FromFloats(d, shape, v)
	} else {
		v := make([]int64, len(flat))
		for i, x := range flat {
			v[i] = x.Int()
		}
		t = tensor.FromInts(d, shape, v)
	}
	return []py.Value{s.heap.Tensor(s.build.constant(ssa.TensorValue(t)))}, true
}

func leafType(l ssa.Literal, t ssa.Type) ssa.Type {
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
	elems := make([]py.Value, n)
	for i := range elems {
		e := s.heap.Tensor(s.vals.emitName("aten::select.int", s.vals.read(ref), 0, i))
		elems[i] = s.toList(e, lt.Elem)
	}
	return s.heap.List(lt.Elem, elems)
}
