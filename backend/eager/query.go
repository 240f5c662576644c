package eager

import (
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// queries are questions about values and where the program runs, and operators that make tensors of Python's numbers, by their names.
// done is false where an operator of that name is about something else.
var queries map[string]func(k *machine, a arguments) (v Value, done bool, err error)

// answer is a query that gives the same whatever it is asked.
func answer(v Value) func(*machine, arguments) (Value, bool, error) {
	return func(*machine, arguments) (Value, bool, error) { return v, true, nil }
}

// about is a query about a tensor.
func about(f func(x *Tensor) Value) func(*machine, arguments) (Value, bool, error) {
	return func(_ *machine, a arguments) (Value, bool, error) {
		if len(a.vals) == 0 {
			return nil, false, nil
		}
		x, ok := a.vals[0].(*Tensor)
		if !ok {
			return nil, false, nil
		}
		return f(x), true, nil
	}
}

func init() {
	queries = map[string]func(k *machine, a arguments) (Value, bool, error){
		"is_scripting": answer(true), "is_leaf": answer(true), "get_device": answer(int64(-1)), "layout": answer(int64(0)),
		"warn": answer(nil), "manual_seed": answer(nil), "set_grad_enabled": answer(nil), "_log_api_usage_once": answer(nil),
		"sym_constrain_range": answer(nil), "sym_constrain_range_for_size": answer(nil), "_functional_assert_async": answer(nil),
		"AutogradZero": answer(nil), "has_torch_function": answer(false), "output_nr": answer(int64(0)),
		"_assert_tensor_metadata": answer(nil),
		"_assert_scalar":          assert, "_assert_async": assert, "_functional_assert_scalar": assert,
		"device": func(k *machine, a arguments) (Value, bool, error) {
			if len(a.vals) > 0 {
				if _, text := a.vals[0].(string); text {
					return nil, false, nil
				}
			}
			return Device("cpu"), true, nil
		},
		"type": func(k *machine, a arguments) (Value, bool, error) {
			_, ok := a.vals[0].(Device)
			return "cpu", ok, nil
		},
		"index": func(k *machine, a arguments) (Value, bool, error) {
			_, ok := a.vals[0].(Device)
			return nil, ok, nil
		},
		"_unwrap_optional": func(k *machine, a arguments) (Value, bool, error) {
			if a.vals[0] == nil {
				return nil, true, raise("Unwrapping null optional")
			}
			return a.vals[0], true, nil
		},
		// objects are compared by their identity, numbers and strings by their values
		"__is__":            func(k *machine, a arguments) (Value, bool, error) { return a.vals[0] == a.vals[1], true, nil },
		"__isnot__":         func(k *machine, a arguments) (Value, bool, error) { return a.vals[0] != a.vals[1], true, nil },
		"dtype":             about(func(x *Tensor) Value { return int64(x.dtype.Code()) }),
		"is_floating_point": about(func(x *Tensor) Value { return x.dtype.IsFloat() }), "is_complex": about(func(x *Tensor) Value { return x.dtype.IsComplex() }),
		"is_signed":    about(func(x *Tensor) Value { return x.dtype.IsSigned() || x.dtype.IsFloat() || x.dtype.IsComplex() }),
		"element_size": about(func(x *Tensor) Value { return int64(x.dtype.Size()) }), "itemsize": about(func(x *Tensor) Value { return int64(x.dtype.Size()) }),
		"is_quantized": about(func(x *Tensor) Value { return x.dtype.IsQuantized() }),
		"Size":         func(k *machine, a arguments) (Value, bool, error) { return a.vals[0], true, nil },
		"nbytes":       about(func(x *Tensor) Value { return x.numel() * int64(x.dtype.Size()) }),
		"dim":          about(rank), "ndimension": about(rank), "ndim": about(rank),
		"numel": about(func(x *Tensor) Value { return x.numel() }), "sym_numel": about(func(x *Tensor) Value { return x.numel() }),
		"storage_offset": about(func(x *Tensor) Value { return x.offset }), "sym_storage_offset": about(func(x *Tensor) Value { return x.offset }),
		"is_contiguous": func(k *machine, a arguments) (Value, bool, error) {
			x, ok := a.vals[0].(*Tensor)
			if f, err := a.int("memory_format", 0); !ok || err != nil || f != 0 {
				return nil, false, err
			}
			return x.isContiguous(), true, nil
		},
		"is_same_size": func(k *machine, a arguments) (Value, bool, error) {
			x, ok := a.vals[0].(*Tensor)
			y, ok2 := a.vals[1].(*Tensor)
			if !ok || !ok2 {
				return nil, false, nil
			}
			return slices.Equal(x.shape, y.shape), true, nil
		},
		"is_set_to": func(k *machine, a arguments) (Value, bool, error) {
			x, ok := a.vals[0].(*Tensor)
			y, ok2 := a.vals[1].(*Tensor)
			if !ok || !ok2 {
				return nil, false, nil
			}
			return x.same(y), true, nil
		},
		"equal": func(k *machine, a arguments) (Value, bool, error) {
			x, ok := a.vals[0].(*Tensor)
			y, ok2 := a.vals[1].(*Tensor)
			if !ok || !ok2 || slices.Equal(x.shape, y.shape) {
				return nil, false, nil
			}
			return false, true, nil
		},
		"size": sizes(func(x *Tensor) []int64 { return x.shape }), "sym_size": sizes(func(x *Tensor) []int64 { return x.shape }), "shape": sizes(func(x *Tensor) []int64 { return x.shape }),
		"stride": sizes(func(x *Tensor) []int64 { return x.strides }), "sym_stride": sizes(func(x *Tensor) []int64 { return x.strides }),
		"len": func(k *machine, a arguments) (Value, bool, error) {
			x, ok := a.vals[0].(*Tensor)
			if !ok {
				return nil, false, nil
			}
			if len(x.shape) == 0 {
				return nil, true, raise("len() of a 0-d tensor")
			}
			return x.shape[0], true, nil
		},
		"item": item(nil), "_local_scalar_dense": item(nil), "ScalarImplicit": item(nil), "is_nonzero": item(ssa.BoolType), "Bool": item(ssa.BoolType),
		"Int": item(ssa.IntType), "IntImplicit": item(ssa.IntType), "Float": item(ssa.FloatType), "FloatImplicit": item(ssa.FloatType),
		"Complex": item(ssa.ComplexType), "ComplexImplicit": item(ssa.ComplexType),
		"tensor": ofData, "as_tensor": ofData, "_list_to_tensor": ofData,
		"_shape_as_tensor": func(k *machine, a arguments) (Value, bool, error) {
			x, ok := a.vals[0].(*Tensor)
			if !ok {
				return nil, false, nil
			}
			return Of(tensor.Ints(x.shape...)), true, nil
		},
		"broadcast_shapes": shapesTogether, "_infer_size": shapesTogether,
		"meshgrid": func(k *machine, a arguments) (Value, bool, error) {
			ts, ok := tensors(a.vals[0])
			if !ok {
				return nil, false, nil
			}
			indexing, _ := a.value("indexing").(string)
			vs, err := meshgrid(ts, indexing)
			return listOf(vs), true, err
		},
		"broadcast_tensors": func(k *machine, a arguments) (Value, bool, error) {
			ts, ok := tensors(a.vals[0])
			if !ok {
				return nil, false, nil
			}
			vs, err := together(ts)
			return listOf(vs), true, err
		},
		"atleast_1d": eachAtLeast, "atleast_2d": eachAtLeast, "atleast_3d": eachAtLeast,
		"einsum": einsum, "hash_tensor": hashTensor, "histogramdd": histogramdd,
		"promote_types": func(k *machine, a arguments) (Value, bool, error) {
			x, ok := a.vals[0].(int64)
			y, ok2 := a.vals[1].(int64)
			if !ok || !ok2 {
				return nil, false, nil
			}
			v, err := k.promoted(zeros(x, 1), zeros(y, 1))
			return v, true, err
		},
		"result_type": func(k *machine, a arguments) (Value, bool, error) {
			v, err := k.promoted(a.vals[0], a.vals[1])
			return v, true, err
		},
		"can_cast": func(k *machine, a arguments) (Value, bool, error) {
			x, ok := a.vals[0].(int64)
			y, ok2 := a.vals[1].(int64)
			return aten.CanCast(tensor.FromCode(int(x)), tensor.FromCode(int(y))), ok && ok2, nil
		},
		"rangelist": func(k *machine, a arguments) (Value, bool, error) {
			n, ok := a.vals[0].(int64)
			if !ok {
				return nil, false, nil
			}
			if err := k.allow(n); err != nil {
				return nil, true, err
			}
			l := &List{Elem: ssa.IntType}
			for i := range n {
				l.Elems = append(l.Elems, i)
			}
			return l, true, nil
		},
		"str": func(k *machine, a arguments) (Value, bool, error) {
			if _, isTensor := a.vals[0].(*Tensor); isTensor {
				return nil, false, nil
			}
			return show(a.vals[0]), true, nil
		},
		"eq": equality(true), "ne": equality(false),
		"__not__": func(k *machine, a arguments) (Value, bool, error) {
			b, ok := a.vals[0].(bool)
			return !b, ok, nil
		},
	}
	// there is one device, and nothing is differentiated
	for _, name := range []string{"is_grad_enabled", "is_autocast_enabled", "is_autocast_cpu_enabled", "is_nested", "requires_grad", "retains_grad", "_is_zerotensor",
		"is_cuda", "is_sparse", "is_mkldnn", "is_xpu", "is_mps", "is_vulkan", "is_ipu", "is_ort", "is_meta", "is_maia", "is_mtia", "is_hpu", "is_sparse_csr",
		"is_vulkan_available", "is_conj", "is_neg", "is_inference", "is_xla", "is_pinned", "is_distributed", "is_coalesced"} {
		queries[name] = answer(false)
	}
	queries["is_cpu"] = answer(true)
}

// zeros is a tensor of an element type, given by its code.
func zeros(code int64, n int64) Value {
	d := tensor.FromCode(int(code))
	if d == tensor.Undefined || d.Opaque() {
		return nil
	}
	return Of(tensor.New(d, []int64{n}, make([]byte, n*int64(d.Size()))))
}

// promoted is the code of the element type that arithmetic on two values has.
func (k *machine) promoted(x, y Value) (Value, error) {
	_, ok := x.(*Tensor)
	u, ok2 := y.(*Tensor)
	var r Value
	var err error
	switch {
	case ok && ok2:
		r, err = k.named("aten::mul.Tensor", x, y)
	case ok && isNumber(y):
		r, err = k.named("aten::mul.Scalar", x, y)
	case ok2 && isNumber(x):
		r, err = k.named("aten::mul.Scalar", u, x)
	default:
		return nil, refuse("unsupported-value", "the element type of %s and %s", describe(x), describe(y))
	}
	if err != nil {
		return nil, err
	}
	return int64(r.(*Tensor).dtype.Code()), nil
}

func rank(x *Tensor) Value { return int64(len(x.shape)) }

// equality is == or != of values that are no numbers and no tensors.
func equality(want bool) func(*machine, arguments) (Value, bool, error) {
	return func(k *machine, a arguments) (Value, bool, error) {
		switch a.vals[0].(type) {
		case *Enum, Device, *Tuple, nil, *Object:
			eq, err := k.equal(a.vals[0], a.vals[1])
			return eq == want, true, err
		}
		return nil, false, nil
	}
}

func assert(k *machine, a arguments) (Value, bool, error) {
	t, err := truth(a.vals[0])
	if err != nil {
		return nil, true, err
	}
	if !t {
		msg := "an assertion does not hold"
		if s, ok := a.value("assert_msg").(string); ok {
			msg = s
		}
		return nil, true, &Raised{msg}
	}
	return a.value("dep_token"), true, nil
}

func sizes(of func(x *Tensor) []int64) func(*machine, arguments) (Value, bool, error) {
	return func(k *machine, a arguments) (Value, bool, error) {
		x, ok := a.vals[0].(*Tensor)
		if !ok {
			return nil, false, nil
		}
		if len(a.vals) < 2 {
			l := &List{Elem: ssa.IntType}
			for _, n := range of(x) {
				l.Elems = append(l.Elems, n)
			}
			return l, true, nil
		}
		if len(x.shape) == 0 {
			return nil, true, raise("Dimension specified as %s but tensor has no dimensions", show(a.vals[1]))
		}
		d, err := a.dim("dim", len(x.shape))
		if err != nil {
			return nil, true, err
		}
		return of(x)[d], true, nil
	}
}

// item is the only element of a tensor, as a number of a type.
func item(want ssa.Type) func(*machine, arguments) (Value, bool, error) {
	return func(k *machine, a arguments) (Value, bool, error) {
		x, ok := a.vals[0].(*Tensor)
		if !ok {
			return nil, false, nil
		}
		n, err := number(x)
		if err != nil {
			return nil, true, err
		}
		if want == nil {
			return n, true, nil
		}
		name := map[ssa.Type]string{ssa.BoolType: "Bool", ssa.IntType: "Int", ssa.FloatType: "Float", ssa.ComplexType: "Complex"}[want]
		return unary(name, want, n)
	}
}

func shapesTogether(k *machine, a arguments) (Value, bool, error) {
	x, err := a.ints("a")
	if err != nil {
		return nil, true, err
	}
	y, err := a.ints("b")
	if err != nil {
		return nil, true, err
	}
	shape, err := broadcast(x, y)
	l := &List{Elem: ssa.IntType}
	for _, n := range shape {
		l.Elems = append(l.Elems, n)
	}
	return l, true, err
}

func tensors(v Value) ([]*Tensor, bool) {
	var elems []Value
	switch v := v.(type) {
	case *List:
		elems = v.Elems
	case *Tuple:
		elems = v.Elems
	default:
		return nil, false
	}
	out := make([]*Tensor, len(elems))
	for i, e := range elems {
		t, ok := e.(*Tensor)
		if !ok {
			return nil, false
		}
		out[i] = t
	}
	return out, true
}

func listOf(ts []*Tensor) *List {
	l := &List{Elem: ssa.AnyTensor}
	for _, t := range ts {
		l.Elems = append(l.Elems, t)
	}
	return l
}

func eachAtLeast(k *machine, a arguments) (Value, bool, error) {
	ts, ok := tensors(a.vals[0])
	if !ok {
		return nil, false, nil
	}
	n := int(a.schema.Name[len("aten::atleast_")] - '0')
	l := &List{Elem: ssa.AnyTensor}
	for _, t := range ts {
		v, _, err := atLeast(n)(a, t)
		if err != nil {
			return nil, true, err
		}
		l.Elems = append(l.Elems, v)
	}
	return l, true, nil
}

// einsum of one operand that only permutes its axes is a view.
func einsum(k *machine, a arguments) (Value, bool, error) {
	eq, ok := a.value("equation").(string)
	ts, ok2 := tensors(a.value("tensors"))
	if !ok || !ok2 || len(ts) != 1 {
		return nil, false, nil
	}
	var from, to []rune
	side := &from
	for i, c := range eq {
		switch {
		case c == ' ':
		case c == '-' && i+1 < len(eq) && eq[i+1] == '>':
			side = &to
		case c == '>':
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
			*side = append(*side, c)
		default:
			return nil, false, nil
		}
	}
	if len(from) != len(ts[0].shape) || len(to) != len(from) {
		return nil, false, nil
	}
	order := make([]int64, len(to))
	for i, c := range to {
		j := slices.Index(from, c)
		if j < 0 {
			return nil, false, nil
		}
		order[i] = int64(j)
	}
	for i, n := range order {
		if slices.Contains(order[:i], n) {
			return nil, false, nil
		}
	}
	v, err := permuted(ts[0], order)
	return v, true, err
}

// ofData makes a tensor of numbers, and of lists of them.
func ofData(k *machine, a arguments) (Value, bool, error) {
	d := tensor.Undefined
	if code, ok := a.value("dtype").(int64); ok {
		if d = tensor.FromCode(int(code)); d == tensor.Undefined {
			return nil, true, refuse("unknown-dtype", "there is no element type %d", code)
		}
	}
	if x, ok := a.vals[0].(*Tensor); ok {
		if d == tensor.Undefined || d == x.dtype {
			if a.schema.Name == "aten::as_tensor" {
				return x, true, nil
			}
			return copied(x), true, nil
		}
		v, err := k.cast(x, d)
		return v, true, err
	}
	var flat []Value
	shape := []int64{}
	var walk func(v Value, depth int) error
	walk = func(v Value, depth int) error {
		if err := k.step(); err != nil {
			return err
		}
		l, ok := v.(*List)
		if !ok {
			if t, isTensor := v.(*Tensor); isTensor {
				n, err := number(t)
				if err != nil {
					return err
				}
				v = n
			}
			if !isNumber(v) {
				return refuse("unsupported-value", "a tensor of %s", describe(v))
			}
			if depth != len(shape) {
				return raise("expected sequence of equal lengths")
			}
			flat = append(flat, v)
			return nil
		}
		if depth > 64 {
			return refuse("unsupported-value", "lists are nested more than 64 deep")
		}
		if depth == len(shape) {
			if len(flat) > 0 {
				return raise("expected sequence of equal lengths")
			}
			shape = append(shape, int64(len(l.Elems)))
		}
		if shape[depth] != int64(len(l.Elems)) {
			return raise("expected sequence of equal lengths")
		}
		for _, e := range l.Elems {
			if err := walk(e, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(a.vals[0], 0); err != nil {
		return nil, true, err
	}
	kind := a.vals[0]
	elem := ssa.Type(nil)
	for {
		l, ok := kind.(*List)
		if !ok {
			break
		}
		elem = l.Elem
		if len(l.Elems) == 0 {
			break
		}
		kind = l.Elems[0]
	}
	for l, ok := elem.(*ssa.ListType); ok; l, ok = elem.(*ssa.ListType) {
		elem = l.Elem
	}
	x := numbersAs(flat, shape, elem)
	if d != tensor.Undefined && d != x.dtype {
		v, err := k.cast(x, d)
		return v, true, err
	}
	return x, true, nil
}

// numbersAs makes a tensor of numbers, of PyTorch's type for them: the widest that is among them.
func numbersAs(flat []Value, shape []int64, elem ssa.Type) *Tensor {
	level := 0
	for _, v := range flat {
		switch v.(type) {
		case int64:
			level = max(level, 1)
		case float64:
			level = max(level, 2)
		case complex128:
			level = max(level, 3)
		}
	}
	if len(flat) == 0 {
		level = map[ssa.Type]int{ssa.BoolType: 0, ssa.IntType: 1, ssa.ComplexType: 3}[elem]
		if _, known := map[ssa.Type]int{ssa.BoolType: 0, ssa.IntType: 1, ssa.ComplexType: 3}[elem]; !known {
			level = 2
		}
	}
	switch level {
	case 3:
		c := make([]complex64, len(flat))
		for i, v := range flat {
			c[i] = complex64(toComplex(v))
		}
		return Of(tensor.Of(tensor.Complex64, shape, c))
	case 2:
		f := make([]float64, len(flat))
		for i, v := range flat {
			f[i] = toFloat(v)
		}
		return Of(tensor.FromFloats(tensor.Float32, shape, f))
	}
	n := make([]int64, len(flat))
	for i, v := range flat {
		n[i], _ = integral(v)
	}
	d := tensor.Int64
	if level == 0 {
		d = tensor.Bool
	}
	return Of(tensor.FromInts(d, shape, n))
}
