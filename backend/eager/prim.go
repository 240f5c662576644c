package eager

import (
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// primOps are the operators of the namespace prim that have no declaration, or whose declaration says little.
var primOps map[ssa.Kind]func(k *machine, o *ssa.Op, args []Value) ([]Value, error)

func init() {
	primOps = map[ssa.Kind]func(k *machine, o *ssa.Op, args []Value) ([]Value, error){
		"prim::Constant": func(k *machine, o *ssa.Op, _ []Value) ([]Value, error) {
			l, ok := o.Attr("value")
			if n, named := o.Attr("name"); !ok && named {
				l = ssa.FuncName(n.Str())
			}
			if l.Kind == ssa.BlobLit {
				return nil, refuse("unsupported-value", "a constant that is not known: %s", l.Str())
			}
			return []Value{k.constant(l, o.Results[0].Type)}, nil
		},
		"prim::ListConstruct": func(k *machine, o *ssa.Op, args []Value) ([]Value, error) {
			l := &List{Elems: slices.Clone(args)}
			if lt, ok := o.Results[0].Type.(*ssa.ListType); ok {
				l.Elem = lt.Elem
				for i, e := range l.Elems {
					l.Elems[i] = k.declared(e, lt.Elem)
				}
			}
			return []Value{l}, nest(nil, args...)
		},
		"prim::TupleConstruct": func(k *machine, o *ssa.Op, args []Value) ([]Value, error) {
			t := &Tuple{Elems: slices.Clone(args)}
			t.Typ, _ = o.Results[0].Type.(*ssa.TupleType)
			return []Value{t}, nest(nil, args...)
		},
		"prim::DictConstruct": func(k *machine, o *ssa.Op, args []Value) ([]Value, error) {
			d := &Dict{}
			d.Typ, _ = o.Results[0].Type.(*ssa.DictType)
			for i := 0; i+1 < len(args); i += 2 {
				d.set(args[i], args[i+1])
			}
			return []Value{d}, nest(nil, args...)
		},
		"prim::ListUnpack":  unpack,
		"prim::TupleUnpack": unpack,
		"prim::ConstantChunk": func(k *machine, o *ssa.Op, args []Value) ([]Value, error) {
			return k.parts(o, "aten::chunk", args[0], o.AttrInt("chunks", 1))
		},
		"prim::ConstantSplit": func(k *machine, o *ssa.Op, args []Value) ([]Value, error) {
			return k.parts(o, "aten::split.Tensor", args[0], o.AttrInt("split_size", 1))
		},
		"prim::TupleIndex": func(k *machine, o *ssa.Op, args []Value) ([]Value, error) {
			t, ok := args[0].(*Tuple)
			i, ok2 := args[1].(int64)
			if !ok || !ok2 {
				return nil, refuse("unsupported-value", "an element of %s", describe(args[0]))
			}
			at, err := index(i, len(t.Elems), "tuple")
			if err != nil {
				return nil, err
			}
			return []Value{t.Elems[at]}, nil
		},
		"prim::TupleSlice": func(k *machine, o *ssa.Op, args []Value) ([]Value, error) {
			t, ok := args[0].(*Tuple)
			if !ok {
				return nil, refuse("unsupported-value", "a part of %s", describe(args[0]))
			}
			n := int64(len(t.Elems))
			lo, hi := bounds(n, o.AttrInt("beg", 0), o.AttrInt("end", n))
			return []Value{&Tuple{Elems: t.Elems[lo:hi]}}, nil
		},
		"prim::GetAttr": func(k *machine, o *ssa.Op, args []Value) ([]Value, error) {
			name := o.AttrStr("name", "")
			switch x := args[0].(type) {
			case *Object:
				v, err := k.attr(x, name)
				return []Value{v}, err
			case *Tuple:
				if x.Typ != nil {
					if i := slices.Index(x.Typ.Names, name); i >= 0 && i < len(x.Elems) {
						return []Value{x.Elems[i]}, nil
					}
				}
			}
			return nil, refuse("attribute", "%s has no attribute %q", describe(args[0]), name)
		},
		"prim::SetAttr": func(k *machine, o *ssa.Op, args []Value) ([]Value, error) {
			x, ok := args[0].(*Object)
			if !ok {
				return nil, refuse("attribute", "%s has no attributes", describe(args[0]))
			}
			x.attrs[o.AttrStr("name", "")] = args[1]
			return nil, nil
		},
		"prim::CreateObject": func(k *machine, o *ssa.Op, _ []Value) ([]Value, error) {
			x := &Object{attrs: map[string]Value{}}
			if c, ok := o.Results[0].Type.(*ssa.ClassType); ok {
				x.Class = c.Name
			}
			return []Value{x}, nil
		},
		"prim::RaiseException": func(k *machine, o *ssa.Op, args []Value) ([]Value, error) {
			msg := "an exception"
			if len(args) > 0 {
				msg = show(args[0])
			}
			return nil, &Raised{msg}
		},
		"prim::Print": func(*machine, *ssa.Op, []Value) ([]Value, error) { return nil, nil },
		"prim::Uninitialized": func(*machine, *ssa.Op, []Value) ([]Value, error) {
			return []Value{Unset{}}, nil
		},
		"prim::unchecked_cast":            first,
		"prim::unchecked_unwrap_optional": first,
		"prim::Enter":                     enter,
		"prim::Exit":                      enter,
		"aten::wait":                      first,
		"prim::awaitable_wait":            first,
		"prim::awaitable_nowait":          first,
		"prim::isinstance": func(k *machine, o *ssa.Op, args []Value) ([]Value, error) {
			l, _ := o.Attr("types")
			for _, e := range l.Elems {
				if isInstance(args[0], e.Elem) {
					return []Value{true}, nil
				}
			}
			return []Value{false}, nil
		},
		"prim::EnumName": func(k *machine, o *ssa.Op, args []Value) ([]Value, error) {
			e, ok := args[0].(*Enum)
			if !ok {
				return nil, refuse("unsupported-value", "the name of %s", describe(args[0]))
			}
			return []Value{e.Name[strings.LastIndexByte(e.Name, '.')+1:]}, nil
		},
		"prim::EnumValue": func(k *machine, o *ssa.Op, args []Value) ([]Value, error) {
			e, ok := args[0].(*Enum)
			if !ok {
				return nil, refuse("unsupported-value", "the value of %s", describe(args[0]))
			}
			return []Value{e.Value}, nil
		},
		"prim::ModuleContainerIndex": containerIndex,
		"prim::NumToTensor": func(k *machine, o *ssa.Op, args []Value) ([]Value, error) {
			if t, ok := args[0].(*Tensor); ok {
				return []Value{t}, nil
			}
			t, err := scalarTensor(args[0], tensor.Undefined)
			return []Value{t}, err
		},
		"prim::tolist": func(k *machine, o *ssa.Op, args []Value) ([]Value, error) {
			t, ok := args[0].(*Tensor)
			if !ok {
				return nil, refuse("unsupported-value", "tolist of %s", describe(args[0]))
			}
			v, err := k.toList(t, o.Results[0].Type)
			return []Value{v}, err
		},
	}
}

func first(_ *machine, _ *ssa.Op, args []Value) ([]Value, error) { return args[:1], nil }

func enter(_ *machine, o *ssa.Op, args []Value) ([]Value, error) {
	if len(o.Results) == 0 {
		return nil, nil
	}
	return args[:1], nil
}

func unpack(k *machine, o *ssa.Op, args []Value) ([]Value, error) {
	var elems []Value
	switch x := args[0].(type) {
	case *Tuple:
		elems = x.Elems
	case *List:
		elems = x.Elems
	default:
		return nil, refuse("unsupported-value", "cannot unpack %s", describe(args[0]))
	}
	if len(elems) != len(o.Results) {
		return nil, raise("Expected %d elements in a list but found %d", len(o.Results), len(elems))
	}
	return slices.Clone(elems), nil
}

// parts does what chunk and split do, with a result for each part.
func (k *machine) parts(o *ssa.Op, name string, x Value, by int64) ([]Value, error) {
	schema := aten.SchemaByName(name)
	rs, err := k.call(ssa.Kind(schema.Name), schema, nil, []Value{x, by, o.AttrInt("dim", 0)})
	if err != nil {
		return nil, err
	}
	l, ok := rs[0].(*List)
	if !ok || len(l.Elems) != len(o.Results) {
		return nil, raise("Expected chunk to give %d parts", len(o.Results))
	}
	return l.Elems, nil
}

// index resolves an index of n elements; a negative one counts from the end.
func index(i int64, n int, what string) (int, error) {
	if i < 0 {
		i += int64(n)
	}
	if i < 0 || i >= int64(n) {
		return 0, raise("%s index out of range", what)
	}
	return int(i), nil
}

// containerIndex is the element of a ModuleList or ModuleDict at an index or key: its attributes have the indices or keys for names.
func containerIndex(k *machine, _ *ssa.Op, args []Value) ([]Value, error) {
	x, ok := args[0].(*Object)
	if !ok || x.src == nil {
		return nil, refuse("unsupported-value", "an element of %s", describe(args[0]))
	}
	var modules []string
	for _, f := range x.src.Fields {
		if f.Value.Kind == ssa.ObjectLit {
			modules = append(modules, f.Name)
		}
	}
	name, isName := args[1].(string)
	if i, isInt := args[1].(int64); isInt {
		at, err := index(i, len(modules), "list")
		if err != nil {
			return nil, err
		}
		name, isName = modules[at], true
	}
	if !isName || !slices.Contains(modules, name) {
		return nil, raise("KeyError: %s", show(args[1]))
	}
	v, err := k.attr(x, name)
	return []Value{v}, err
}

// isInstance reports a value of a type.
func isInstance(v Value, t ssa.Type) bool {
	switch t := t.(type) {
	case *ssa.OptionalType:
		return v == nil || isInstance(v, t.Elem)
	case *ssa.UnionType:
		return slices.ContainsFunc(t.Elems, func(e ssa.Type) bool { return isInstance(v, e) })
	case *ssa.TensorType:
		_, ok := v.(*Tensor)
		return ok
	}
	switch t {
	case ssa.AnyType:
		return true
	case ssa.NumberType:
		return isNumber(v)
	case ssa.AnyListType:
		_, ok := v.(*List)
		return ok
	case ssa.AnyTupleType:
		_, ok := v.(*Tuple)
		return ok
	}
	switch v := v.(type) {
	case *List:
		lt, ok := t.(*ssa.ListType)
		if !ok {
			return false
		}
		if v.Elem != nil && v.Elem != ssa.AnyType {
			return sameKind(v.Elem, lt.Elem)
		}
		return !slices.ContainsFunc(v.Elems, func(e Value) bool { return !isInstance(e, lt.Elem) })
	case *Tuple:
		tt, ok := t.(*ssa.TupleType)
		switch {
		case !ok:
			return false
		case tt.Name != "" || v.Typ != nil && v.Typ.Name != "":
			return v.Typ != nil && v.Typ.Name == tt.Name
		case len(tt.Elems) != len(v.Elems):
			return false
		}
		for i, e := range v.Elems {
			if !isInstance(e, tt.Elems[i]) {
				return false
			}
		}
		return true
	case *Dict:
		dt, ok := t.(*ssa.DictType)
		return ok && (v.Typ == nil || sameKind(v.Typ.Key, dt.Key) && sameKind(v.Typ.Value, dt.Value))
	case *Object:
		return t.String() == v.Class
	case *Enum:
		return typeOf(v).String() == t.String() || strings.TrimSuffix(strings.TrimPrefix(typeOf(v).String(), "Enum<"), ">") == t.String()
	}
	return ssa.SameType(typeOf(v), t)
}

// sameKind is SameType for types of tensors that may be known in part.
func sameKind(a, b ssa.Type) bool {
	if ssa.AsTensor(a) != nil && ssa.AsTensor(b) != nil {
		return true
	}
	return ssa.SameType(a, b)
}

// toList gives the elements of a tensor as nested lists.
func (k *machine) toList(t *Tensor, want ssa.Type) (Value, error) {
	elem := want
	depth := 0
	for {
		l, ok := elem.(*ssa.ListType)
		if !ok {
			break
		}
		elem = l.Elem
		depth++
	}
	if depth != len(t.shape) {
		return nil, raise("Output annotation list dimension and runtime tensor dimension must match for tolist()")
	}
	if err := k.allow(t.numel()); err != nil {
		return nil, err
	}
	var build func(t *Tensor, want ssa.Type) (Value, error)
	build = func(t *Tensor, want ssa.Type) (Value, error) {
		l, ok := want.(*ssa.ListType)
		if !ok {
			return number(t)
		}
		out := &List{Elem: l.Elem}
		for i := range t.shape[0] {
			x, err := selected(t, 0, i)
			if err != nil {
				return nil, err
			}
			e, err := build(x, l.Elem)
			if err != nil {
				return nil, err
			}
			out.Elems = append(out.Elems, e)
		}
		return out, nil
	}
	return build(contiguous(t), want)
}

// scalarTensor is a tensor of one number, of PyTorch's type for it unless another is asked for.
func scalarTensor(v Value, d tensor.DType) (*Tensor, error) {
	shape := []int64{}
	switch v := v.(type) {
	case int64:
		return Of(tensor.ScalarInt(v)), nil
	case bool:
		i, _ := integral(v)
		return Of(tensor.FromInts(tensor.Bool, shape, []int64{i})), nil
	case float64:
		if d == tensor.Undefined {
			d = tensor.Float64
		}
		return Of(tensor.FromFloats(d, shape, []float64{v})), nil
	case complex128:
		return Of(tensor.Of(tensor.Complex128, shape, []complex128{v})), nil
	}
	return nil, refuse("unsupported-value", "a tensor of %s", describe(v))
}
