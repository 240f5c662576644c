package specialize

import (
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// dummy makes a value of the form of v that stands where None is.
func (s *values) dummy(v py.Value, changes journal.Changes) py.Value {
	switch v := v.(type) {
	case *py.Tensor:
		var t *ssa.TensorType
		changes.Under(func() {
			if v.Val != nil {
				t = v.Val.Tensor()
			} else {
				t = s.read(v).Tensor()
			}
		})
		return s.dummyTensor(t)
	case *py.Tuple:
		t := &py.Tuple{Typ: v.Typ}
		for _, e := range v.Elems {
			t.Elems = append(t.Elems, s.dummy(e, changes))
		}
		return t
	}
	switch t, _ := py.NumberType(v); t {
	case ssa.IntType:
		return py.Int(0)
	case ssa.FloatType:
		return py.Float(0)
	case ssa.BoolType:
		return py.Bool(false)
	}
	s.fail("optional-data", "whether this value is None depends on data")
	return nil
}

// dummyOf makes a tensor or a number of type t that nobody reads.
func (s *values) dummyOf(t ssa.Type) py.Value {
	if t := ssa.AsTensor(t); t != nil {
		return s.dummyTensor(t)
	}
	return s.dummy(py.Dyn(&ssa.Value{Type: t}), nil)
}

// dummyTensor is a constant of a tensor's type, of size 1 where sizes are not known.
func (s *values) dummyTensor(t *ssa.TensorType) *py.Tensor {
	if t == nil || t.DType == tensor.Undefined || t.DType.Size() == 0 || t.DType.IsComplex() {
		s.fail("optional-data", "whether this tensor is None depends on data, and its type is not known")
	}
	shape := make([]int64, len(t.Dims))
	for i, d := range t.Dims {
		shape[i] = 1
		if n, ok := d.Int(); ok {
			shape[i] = n
		}
	}
	v := s.build.constant(ssa.TensorValue(tensor.Full(t.DType, shape, 0)))
	if _, static := t.Static(); !static {
		v = s.expanded(v, t.Dims)
	}
	return s.heap.Tensor(v)
}

// expanded is the constant v in a shape of sizes of the inputs, computed at the head of the program; v itself where other
// sizes are among dims. Before opset 11 onnxruntime insists on the sizes even of a value that nobody reads.
func (s *values) expanded(v *ssa.Value, dims []sym.Expr) *ssa.Value {
	cur, last := s.build.cur, s.build.out.Body.Last()
	s.build.cur = s.build.out.Body
	defer func() { s.build.cur = cur }()
	sizes := make([]*ssa.Value, len(dims))
	for i, d := range dims {
		if n, ok := d.Int(); ok {
			sizes[i] = s.build.constant(ssa.Int(n))
		} else if sizes[i] = s.inputSize(d); sizes[i] == nil {
			return v
		}
	}
	list := s.build.cur.Append("prim::ListConstruct", s.loc, sizes, &ssa.ListType{Elem: ssa.IntType})
	v = s.emitName("aten::expand", v, list.Result(0), false)
	head := s.build.lastCon.Next()
	for o := last.Next(); o != nil && o != head && last != s.build.lastCon; {
		next := o.Next()
		o.MoveBefore(head)
		o = next
	}
	return v
}

// inputSize gives a size as a number, nil if no input has it.
func (s *values) inputSize(d sym.Expr) *ssa.Value {
	for _, p := range s.build.out.Body.Params {
		t := p.Tensor()
		if t == nil || !t.Ranked {
			continue
		}
		for i, e := range t.Dims {
			if e.Equal(d) {
				v := s.emitName("aten::size.int", p, i)
				v.Sym = []sym.Expr{d}
				return v
			}
		}
	}
	return nil
}
