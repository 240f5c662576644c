package eager

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// apply runs an operator that is no call and no control flow.
func (k *machine) apply(o *ssa.Op, args []Value) ([]Value, error) {
	if f := primOps[o.Kind]; f != nil {
		return f(k, o, args)
	}
	if fork := strings.HasPrefix(string(o.Kind), "prim::fork_"); fork || o.Kind == "prim::fork" || o.Kind == "prim::Await" {
		name := o.AttrStr("Subgraph", string(o.Kind))
		fn := k.m.Func(name)
		if fn == nil {
			return nil, refuse("missing-function", "%s is not in the model", name)
		}
		return k.function(fn, args)
	}
	schema := o.Schema
	if _, number, ok := aten.NumberOperand(o); ok { // PyTorch's executors take it as a number
		args = slices.Clone(args)
		args[1], schema = k.constant(number, nil), nil
	}
	if schema == nil {
		types := make([]ssa.Type, len(args))
		for i, a := range args {
			types[i] = typeOf(a)
		}
		if schema = ssa.MatchSchema(k.Table.Schemas(o.Kind), types); schema == nil {
			return nil, &refusal{"unsupported-op", "the operator is not known", ""}
		}
	}
	if o.Kind == "aten::__is__" || o.Kind == "aten::__isnot__" {
		for i, a := range args {
			if _, enum := a.(*Enum); enum && o.Operand(i).Def() != nil && o.Operand(i).Def().Kind == prim.Constant {
				return []Value{o.Kind == "aten::__isnot__"}, nil // each mention of a member in a program is an object of its own
			}
		}
	}
	return k.call(o.Kind, schema, o, args)
}

// call runs an overload of an operator.
func (k *machine) call(kind ssa.Kind, schema *ssa.Schema, o *ssa.Op, args []Value) ([]Value, error) {
	args = slices.Clone(args)
	for i := range args {
		if i < len(schema.Args) {
			args[i] = k.declared(args[i], schema.Args[i].Type)
		}
	}
	for i := len(args); i < len(schema.Args) && schema.Args[i].HasDefault; i++ {
		args = append(args, k.constant(schema.Args[i].Default, schema.Args[i].Type))
	}
	name := kind.Name()
	if f := queries[name]; f != nil && kind.Namespace() != "quantized" {
		if v, done, err := f(k, arguments{k, schema, args}); done || err != nil {
			return results(schema, v), err
		}
	}
	if len(args) > 0 {
		if v, done, err := k.container(name, schema, o, args); done || err != nil {
			return results(schema, v), err
		}
	}
	if schema.Mutates() {
		return k.writes(kind, schema, args)
	}
	ret := ssa.Type(ssa.NoneType)
	if len(schema.Returns) > 0 {
		ret = schema.Returns[0].Type
	}
	if !returnsTensor(schema) {
		if v, done, err := scalar(name, ret, args); done || err != nil {
			return []Value{v}, err
		}
		if vs, done, err := several(name, args); done || err != nil {
			return vs, err
		}
	}
	if len(args) > 0 && (kind.Namespace() == "aten" || kind.Namespace() == "prim") {
		if x, ok := args[0].(*Tensor); ok {
			if f := viewOps[name]; f != nil {
				if v, done, err := f(arguments{k, schema, args}, x); done || err != nil {
					return results(schema, v), err
				}
			}
		}
	}
	return k.computed(kind, schema, args)
}

// results are what an operator gives: v, the elements of v where it has several results, or nothing where its schema returns nothing.
func results(schema *ssa.Schema, v Value) []Value {
	if len(schema.Returns) == 0 {
		return nil
	}
	if t, ok := v.(*Tuple); ok && len(schema.Returns) > 1 {
		return t.Elems
	}
	return []Value{v}
}

// computed runs an operator by its ONNX form, and lays its results out as PyTorch does.
func (k *machine) computed(kind ssa.Kind, schema *ssa.Schema, args []Value) ([]Value, error) {
	if tracked, err := k.tracked(kind, schema, args); err != nil {
		return nil, err
	} else if tracked != nil {
		return tracked, nil
	}
	if l, ok := at(args, 0).(*List); ok && len(l.Elems) == 0 && (kind == "aten::stack" || kind == "aten::cat" || kind == "aten::concat") {
		return nil, raise("%s expects a non-empty TensorList", kind.Name())
	}
	if err := (arguments{k, schema, args}).indexesEmpty(kind); err != nil {
		return nil, err
	}
	if quantizes(kind) {
		return nil, refuse("unsupported-op", "makes a quantized tensor, whose grid the evaluator does not keep")
	}
	rs, err := k.pure(kind, schema, args)
	if err != nil {
		return nil, err
	}
	if pointwise[kind.Name()] && k.keepsLayout(schema, args) {
		for i, r := range rs {
			if t, ok := r.(*Tensor); ok && len(t.shape) > 1 {
				rs[i] = laid(t.Tensor(), resultStrides(t.shape, args))
			}
		}
	}
	return rs, nil
}

// indexesEmpty raises where an operator takes indices of an axis that has no elements: without elements, its ONNX form does not look at them.
func (a arguments) indexesEmpty(kind ssa.Kind) error {
	switch kind {
	case "aten::index_fill", "aten::index_copy", "aten::index_add", "aten::index_reduce", "aten::index_select":
	default:
		return nil
	}
	x, ok := a.value("self").(*Tensor)
	index, ok2 := a.value("index").(*Tensor)
	if !ok || !ok2 || len(x.shape) == 0 || index.numel() == 0 {
		return nil
	}
	d, err := a.dim("dim", len(x.shape))
	if err == nil && x.shape[d] == 0 {
		err = raise("%s: an index is out of range for a dimension of size 0", kind.Name())
	}
	if err == nil && kind == "aten::index_select" && x.numel() == 0 { // the others do not look at an index where there is nothing to write
		for _, i := range index.Tensor().Int64s() {
			if i < 0 || i >= x.shape[d] {
				return raise("index_select: index %d is out of range for a dimension of size %d", i, x.shape[d])
			}
		}
	}
	return err
}

// quantizes reports an operator that gives a quantized tensor. In their ONNX form these are real numbers, and what operators on them do
// depends on where they come from, which an operator alone does not tell.
func quantizes(kind ssa.Kind) bool {
	switch kind {
	case "aten::quantize_per_tensor", "aten::quantize_per_channel", "aten::quantize_per_tensor_dynamic", "aten::_make_per_tensor_quantized_tensor",
		"aten::_make_per_channel_quantized_tensor":
		return true
	}
	return kind.Namespace() == "quantized" && !strings.Contains(string(kind), "dynamic") && !strings.Contains(string(kind), "embedding")
}

// keepsLayout reports that an operator is not asked for another memory format than that of its operands.
func (k *machine) keepsLayout(schema *ssa.Schema, args []Value) bool {
	f, ok := arguments{k, schema, args}.value("memory_format").(int64)
	return !ok || f == 1
}

// tracked runs a normalization in training, which updates the running statistics although its schema does not say so; nil if this is none.
func (k *machine) tracked(kind ssa.Kind, schema *ssa.Schema, args []Value) ([]Value, error) {
	switch kind {
	case "aten::batch_norm", "aten::_batch_norm_impl_index", "aten::native_batch_norm", "aten::cudnn_batch_norm":
	default:
		return nil, nil
	}
	a := arguments{k, schema, args}
	mean, ok := a.value("running_mean").(*Tensor)
	variance, ok2 := a.value("running_var").(*Tensor)
	if train, _ := a.value("training").(bool); !train || !ok || !ok2 {
		return nil, nil
	}
	rs, err := k.pure(kind, schema, args)
	if err != nil {
		return nil, err
	}
	twin := aten.Schema("aten::_native_batch_norm_legit_functional", "")
	if twin == nil {
		return rs, nil
	}
	operands := make([]Value, len(twin.Args))
	for i, t := range twin.Args {
		operands[i] = a.value(t.Name)
	}
	more, err := k.pure("aten::_native_batch_norm_legit_functional", twin, operands)
	if err != nil {
		return nil, err
	}
	for i, t := range []*Tensor{mean, variance} {
		if err := k.assign(t, more[3+i].(*Tensor)); err != nil {
			return nil, err
		}
	}
	return rs, nil
}

// declared is an argument as the type of the schema has it: an int is a float where that is asked for.
func (k *machine) declared(v Value, t ssa.Type) Value {
	switch t := t.(type) {
	case *ssa.OptionalType:
		if v != nil {
			return k.declared(v, t.Elem)
		}
	case ssa.Basic:
		if t == ssa.FloatType || t == ssa.IntType {
			if _, float := v.(float64); !float {
				return coerce(v, t)
			}
		}
	case *ssa.ListType:
		if l, ok := v.(*List); ok && t.Elem == ssa.FloatType && slices.ContainsFunc(l.Elems, isInt) {
			n := &List{Elem: ssa.FloatType}
			for _, e := range l.Elems {
				n.Elems = append(n.Elems, coerce(e, ssa.FloatType))
			}
			return n
		}
	}
	return v
}

func isInt(v Value) bool { _, ok := v.(int64); return ok }

func returnsTensor(schema *ssa.Schema) bool {
	for _, r := range schema.Returns {
		t := r.Type
		if l, ok := t.(*ssa.ListType); ok {
			t = l.Elem
		}
		if ssa.AsTensor(t) != nil {
			return true
		}
	}
	return false
}

// typeOf is the type of a value, as far as it tells.
func typeOf(v Value) ssa.Type {
	switch v := v.(type) {
	case nil:
		return ssa.NoneType
	case int64:
		return ssa.IntType
	case float64:
		return ssa.FloatType
	case bool:
		return ssa.BoolType
	case complex128:
		return ssa.ComplexType
	case string:
		return ssa.StrType
	case Device:
		return ssa.DeviceType
	case Func:
		return ssa.FunctionType
	case *Tensor:
		return ssa.AnyTensor
	case *List:
		elem := v.Elem
		if (elem == nil || elem == ssa.AnyType) && len(v.Elems) > 0 {
			elem = typeOf(v.Elems[0])
		}
		if elem == nil {
			elem = ssa.AnyTensor
		}
		return &ssa.ListType{Elem: elem}
	case *Tuple:
		if v.Typ != nil {
			return v.Typ
		}
		t := &ssa.TupleType{}
		for _, e := range v.Elems {
			t.Elems = append(t.Elems, typeOf(e))
		}
		return t
	case *Dict:
		if v.Typ != nil {
			return v.Typ
		}
		if len(v.keys) > 0 {
			return &ssa.DictType{Key: typeOf(v.keys[0]), Value: typeOf(v.vals[0])}
		}
	case *Object:
		return &ssa.ClassType{Name: v.Class}
	case *Enum:
		return &ssa.EnumType{Name: v.Name[:max(strings.LastIndexByte(v.Name, '.'), 0)]}
	}
	return ssa.AnyType
}

// allow grants the elements of a list.
func (k *machine) allow(n int64) error {
	if limit := k.m.Allow(maxElements); n > limit {
		return &refusal{"budget", fmt.Sprintf("makes a list of %d elements", n), ssa.BudgetHint}
	}
	return nil
}

// constant makes a value of a literal. Containers are new ones, tensors and objects the ones of the module.
func (k *machine) constant(l ssa.Literal, t ssa.Type) Value {
	if o, ok := t.(*ssa.OptionalType); ok {
		t = o.Elem
	}
	switch l.Kind {
	case ssa.IntLit:
		if t == ssa.FloatType {
			return l.Float()
		}
		return l.Int()
	case ssa.FloatLit:
		return l.Float()
	case ssa.BoolLit:
		return l.Bool()
	case ssa.ComplexLit:
		return l.Complex()
	case ssa.StrLit:
		return l.Str()
	case ssa.DeviceLit:
		return Device(l.Str())
	case ssa.FuncLit:
		return Func(l.Str())
	case ssa.TensorLit:
		return k.weight(l.Tensor)
	case ssa.ListLit:
		v := &List{Elem: l.Elem, Elems: k.constants(l.Elems, t)}
		if lt, ok := t.(*ssa.ListType); ok {
			v.Elem = lt.Elem
		}
		return v
	case ssa.TupleLit:
		v := &Tuple{Elems: k.constants(l.Elems, t)}
		v.Typ, _ = t.(*ssa.TupleType)
		return v
	case ssa.DictLit:
		v := &Dict{}
		v.Typ, _ = t.(*ssa.DictType)
		for i := 0; i+1 < len(l.Elems); i += 2 {
			v.set(k.constant(l.Elems[i], nil), k.constant(l.Elems[i+1], memberType(t, 1)))
		}
		return v
	case ssa.ObjectLit:
		return k.object(l.Object)
	case ssa.EnumLit:
		return k.enum(l)
	case ssa.TypeLit:
		return Func(l.Elem.String())
	}
	return nil
}

// constants makes values of the elements of a literal of this type.
func (k *machine) constants(elems []ssa.Literal, t ssa.Type) []Value {
	var out []Value
	for i, e := range elems {
		out = append(out, k.constant(e, memberType(t, i)))
	}
	return out
}

// enum is the one object of a member of an enumeration.
func (k *machine) enum(l ssa.Literal) *Enum {
	e := k.enums[l.Str()]
	if e == nil {
		e = &Enum{Name: l.Str()}
		if len(l.Elems) > 0 {
			e.Value = k.constant(l.Elems[0], nil)
		}
		k.enums[l.Str()] = e
	}
	return e
}

// weight is the one tensor object of a tensor of the module. Those of one storage share memory.
func (k *machine) weight(t *tensor.Tensor) Value {
	if w := k.weights[t]; w != nil {
		return w
	}
	w := Of(t)
	if t.Storage == nil {
		w.mem = &memory{store: &tensor.Storage{}}
		if t.NumElements() > 0 {
			w.mem.store = nil
		}
	} else if mem := k.memory[t.Storage]; mem != nil {
		w.mem = mem
	} else {
		k.memory[t.Storage] = w.mem
	}
	k.weights[t] = w
	return w
}

// object is the one object for an object of the module.
func (k *machine) object(o *ssa.Object) *Object {
	x := k.objects[o]
	if x == nil {
		x = &Object{Class: o.Class, attrs: map[string]Value{}, src: o}
		k.objects[o] = x
	}
	return x
}

// attr is an attribute of an object.
func (k *machine) attr(x *Object, name string) (Value, error) {
	if v, ok := x.attrs[name]; ok {
		return v, nil
	}
	if x.src != nil {
		if l, ok := x.src.Get(name); ok {
			v := k.constant(l, nil)
			x.attrs[name] = v
			return v, nil
		}
	}
	return nil, refuse("attribute", "an object of class %s has no attribute %q", x.Class, name)
}
