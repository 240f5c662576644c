package pickle

import (
	"fmt"
	"math"
	"strings"

	"github.com/aton-project/aton/ssa/tensor"
)

// Tensors rebuilds the tensors of a pickle over shared storages. Its methods
// Persistent and Call serve as hooks of a Reader.
type Tensors struct {
	// Load gives the bytes of the storage with a key.
	Load func(key string) ([]byte, error)
	// BigEndian says that the bytes must be swapped.
	BigEndian bool
	// ShapesOnly leaves storages out: the tensors have shapes but no data.
	ShapesOnly bool

	storages map[string]*StorageRef
}

// StorageRef is a storage as a pickle refers to it.
type StorageRef struct {
	Key      string
	DType    tensor.DType // Undefined for untyped storage
	Elements int64        // of DType, bytes if untyped
	Storage  *tensor.Storage
}

// Storage gives what is known of the storage with a key, nil if none was met.
func (r *Tensors) Storage(key string) *StorageRef { return r.storages[key] }

// DTypeValue is a torch.dtype object.
type DTypeValue struct{ DType tensor.DType }

// DeviceValue is a torch.device object.
type DeviceValue struct{ Name string }

// storageTypes maps the names of storage classes.
func storageType(class string) (tensor.DType, bool) {
	if class == "UntypedStorage" {
		return tensor.Undefined, true
	}
	name, ok := strings.CutSuffix(class, "Storage")
	if !ok {
		return 0, false
	}
	switch name {
	case "QUInt4x2", "QUInt2x4":
		return 0, false
	}
	d := tensor.FromTorch(name)
	return d, d != tensor.Undefined
}

// dtypeNames maps torch.NAME.
func dtypeByName(name string) tensor.DType {
	switch name {
	case "float", "float32":
		return tensor.Float32
	case "double", "float64":
		return tensor.Float64
	case "half", "float16":
		return tensor.Float16
	case "bfloat16":
		return tensor.BFloat16
	case "uint8":
		return tensor.Uint8
	case "int8":
		return tensor.Int8
	case "short", "int16":
		return tensor.Int16
	case "int", "int32":
		return tensor.Int32
	case "long", "int64":
		return tensor.Int64
	case "bool":
		return tensor.Bool
	case "complex32", "chalf":
		return tensor.Complex32
	case "complex64", "cfloat":
		return tensor.Complex64
	case "complex128", "cdouble":
		return tensor.Complex128
	case "float8_e5m2":
		return tensor.Float8E5M2
	case "float8_e4m3fn":
		return tensor.Float8E4M3FN
	case "float8_e5m2fnuz":
		return tensor.Float8E5M2FNUZ
	case "float8_e4m3fnuz":
		return tensor.Float8E4M3FNUZ
	case "uint16":
		return tensor.Uint16
	case "uint32":
		return tensor.Uint32
	case "uint64":
		return tensor.Uint64
	case "qint8":
		return tensor.QInt8
	case "quint8":
		return tensor.QUint8
	case "qint32":
		return tensor.QInt32
	}
	return tensor.Undefined
}

// Persistent resolves ("storage", class, key, location, elements).
func (r *Tensors) Persistent(id any) (any, error) {
	t, ok := id.(Tuple)
	if !ok || len(t) < 5 {
		return nil, fmt.Errorf("persistent id is %s, not a storage", Describe(id))
	}
	kind, _ := t[0].(string)
	class, _ := t[1].(Global)
	key, ok1 := t[2].(string)
	n, ok2 := t[4].(int64)
	if kind != "storage" || !ok1 || !ok2 {
		return nil, fmt.Errorf("persistent id of kind %.20q is not a storage", kind)
	}
	d, ok := storageType(class.Name)
	if !ok {
		return nil, fmt.Errorf("storage class %s is not supported", class)
	}
	if key == "" || len(key) > 256 || strings.ContainsAny(key, "/\\\x00") {
		return nil, fmt.Errorf("storage key %.40q is not a record name", key)
	}
	if old := r.storages[key]; old != nil {
		if old.DType != d {
			return nil, fmt.Errorf("storage %s is %v and %v", key, old.DType, d)
		}
		if n > old.Elements {
			return nil, fmt.Errorf("storage %s has %d and %d elements", key, old.Elements, n)
		}
		return old, nil
	}
	size := int64(1)
	if d != tensor.Undefined {
		size = int64(d.Size())
	}
	if n < 0 || n > math.MaxInt64/size {
		return nil, fmt.Errorf("storage %s has %d elements", key, n)
	}
	s := &StorageRef{Key: key, DType: d, Elements: n, Storage: &tensor.Storage{}}
	if r.ShapesOnly {
		s.Storage = nil
	} else if n > 0 {
		b, err := r.Load(key)
		if err != nil {
			return nil, err
		}
		if int64(len(b)) < n*size {
			return nil, fmt.Errorf("storage %s has %d bytes, not %d elements of %v", key, len(b), n, d)
		}
		b = b[:n*size]
		if r.BigEndian && d != tensor.Undefined {
			b = swapped(b, d)
		}
		s.Storage.SetBytes(b)
	}
	if r.storages == nil {
		r.storages = map[string]*StorageRef{}
	}
	r.storages[key] = s
	return s, nil
}

// swapped copies big-endian elements to little-endian ones.
func swapped(b []byte, d tensor.DType) []byte {
	size := d.Size()
	if d.IsComplex() {
		size /= 2
	}
	out := make([]byte, len(b))
	for i := 0; i+size <= len(b); i += size {
		for j := 0; j < size; j++ {
			out[i+j] = b[i+size-1-j]
		}
	}
	return out
}

// Call resolves the functions by which pickles rebuild tensors, and those of plain data around them.
func (r *Tensors) Call(g Global, args Tuple) (any, bool, error) {
	switch g.Module {
	case "torch._utils":
		return r.rebuild(g.Name, args)
	case "torch._tensor":
		if g.Name == "_rebuild_from_type_v2" && len(args) >= 3 {
			fn, ok1 := args[0].(Global)
			inner, ok2 := args[2].(Tuple)
			if !ok1 || !ok2 {
				return nil, true, fmt.Errorf("bad arguments")
			}
			if fn == g {
				return nil, true, fmt.Errorf("refers to itself")
			}
			if fn == wrapperSubclass {
				s, err := subclass(args)
				return s, true, err
			}
			return r.Call(fn, inner)
		}
	case "collections":
		switch g.Name {
		case "OrderedDict", "defaultdict", "Counter":
			d := &Dict{}
			if g.Name == "OrderedDict" && len(args) == 1 {
				if l, ok := args[0].(*List); ok { // a list of pairs
					for _, it := range l.Items {
						if p, ok := pair(it); ok {
							d.Set(p[0], p[1])
						}
					}
				}
			}
			return d, true, nil
		}
	case "torch":
		switch g.Name {
		case "device":
			if len(args) >= 1 {
				if s, ok := args[0].(string); ok {
					if len(args) > 1 {
						if i, ok := args[1].(int64); ok {
							s = fmt.Sprintf("%s:%d", s, i)
						}
					}
					return DeviceValue{s}, true, nil
				}
			}
		case "Size":
			if len(args) == 1 {
				if t, ok := args[0].(Tuple); ok {
					return t, true, nil
				}
			}
			return Tuple(nil), true, nil
		}
	case "builtins", "__builtin__":
		switch g.Name {
		case "complex":
			if len(args) == 2 {
				re, ok1 := number(args[0])
				im, ok2 := number(args[1])
				if ok1 && ok2 {
					return complex(re, im), true, nil
				}
			}
			return nil, true, fmt.Errorf("bad arguments")
		case "set", "frozenset":
			if len(args) == 1 {
				if l, ok := args[0].(*List); ok {
					return &Set{l.Items}, true, nil
				}
			}
			return &Set{}, true, nil
		}
	case "_codecs":
		if g.Name == "encode" && len(args) >= 1 {
			if s, ok := args[0].(string); ok { // latin-1 text stands for bytes
				b := make(Bytes, 0, len(s))
				for _, c := range s {
					b = append(b, byte(c))
				}
				return b, true, nil
			}
		}
	case "torch.serialization":
		if g.Name == "_get_layout" {
			return int64(0), true, nil
		}
	}
	return nil, false, nil
}

// wrapperSubclass is the function that makes a tensor that wraps others. Its own arguments are the class, the type of the
// elements and the sizes that the tensor pretends to have; the state of the object comes behind it.
var wrapperSubclass = Global{"torch._utils", "_rebuild_wrapper_subclass"}

// subclass reads (function, class, arguments, state) of a tensor that wraps others: torch._tensor._rebuild_from_type_v2.
func subclass(args Tuple) (*Subclass, error) {
	class, ok := args[1].(Global)
	if !ok {
		return nil, fmt.Errorf("the class is %s", Describe(args[1]))
	}
	if inner := args[2].(Tuple); len(inner) == 0 || inner[0] != any(class) {
		return nil, fmt.Errorf("the arguments are not those of class %s", class)
	}
	if len(args) < 4 {
		return nil, fmt.Errorf("the object of class %s has no state", class)
	}
	state := args[3]
	if t, ok := state.(Tuple); ok && len(t) == 2 && t[1] == nil { // (the dict, what is in slots)
		state = t[0]
	}
	d, ok := state.(*Dict)
	if !ok {
		return nil, fmt.Errorf("the state of the object of class %s is %s", class, Describe(state))
	}
	return &Subclass{Class: class, State: d}, nil
}

func pair(v any) ([]any, bool) {
	switch v := v.(type) {
	case Tuple:
		return v, len(v) == 2
	case *List:
		return v.Items, len(v.Items) == 2
	}
	return nil, false
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	}
	return 0, false
}

func (r *Tensors) rebuild(name string, args Tuple) (any, bool, error) {
	switch name {
	case "_rebuild_tensor", "_rebuild_tensor_v2":
		if len(args) < 4 {
			return nil, true, fmt.Errorf("has %d arguments", len(args))
		}
		t, err := view(args, tensor.Undefined)
		return t, true, err
	case "_rebuild_tensor_v3":
		if len(args) < 7 {
			return nil, true, fmt.Errorf("has %d arguments", len(args))
		}
		d, ok := DType(args[6])
		if !ok {
			return nil, true, fmt.Errorf("the element type is %s", Describe(args[6]))
		}
		t, err := view(args, d)
		return t, true, err
	case "_rebuild_qtensor":
		if len(args) < 5 {
			return nil, true, fmt.Errorf("has %d arguments", len(args))
		}
		t, err := view(args, tensor.Undefined)
		if err != nil {
			return nil, true, err
		}
		t.Quant, err = quantizer(args[4])
		return t, true, err
	case "_rebuild_parameter", "_rebuild_parameter_with_state":
		if len(args) < 1 {
			return nil, true, fmt.Errorf("has no argument")
		}
		t, ok := args[0].(*tensor.Tensor)
		if !ok {
			return nil, true, fmt.Errorf("the parameter is %s", Describe(args[0]))
		}
		return t, true, nil
	case "_rebuild_sparse_tensor", "_rebuild_sparse_csr_tensor":
		return nil, true, fmt.Errorf("sparse tensors are not supported; save the tensor after to_dense()")
	case "_rebuild_nested_tensor", "_rebuild_wrapper_subclass", "_rebuild_meta_tensor_no_storage", "_rebuild_device_tensor_from_numpy":
		return nil, true, fmt.Errorf("this kind of tensor is not supported; save a plain dense tensor")
	}
	return nil, false, nil
}

// DType understands a torch.dtype object or its number.
func DType(v any) (tensor.DType, bool) {
	switch v := v.(type) {
	case DTypeValue:
		return v.DType, true
	case Global:
		if v.Module == "torch" {
			d := dtypeByName(v.Name)
			return d, d != tensor.Undefined
		}
	case int64:
		if v >= 0 && v < 64 {
			d := tensor.FromCode(int(v))
			return d, d != tensor.Undefined
		}
	}
	return tensor.Undefined, false
}

// view makes a tensor of (storage, offset, size, stride, ...).
func view(args Tuple, d tensor.DType) (*tensor.Tensor, error) {
	s, ok := args[0].(*StorageRef)
	if !ok {
		return nil, fmt.Errorf("the storage is %s", Describe(args[0]))
	}
	off, ok := args[1].(int64)
	if !ok {
		return nil, fmt.Errorf("the offset is %s", Describe(args[1]))
	}
	shape, err := ints(args[2])
	if err != nil {
		return nil, fmt.Errorf("size: %w", err)
	}
	strides, err := ints(args[3])
	if err != nil {
		return nil, fmt.Errorf("stride: %w", err)
	}
	if d == tensor.Undefined {
		d = s.DType
	} else if s.DType != tensor.Undefined && s.DType != d && s.DType != tensor.Uint8 {
		return nil, fmt.Errorf("storage %s is %v, the tensor %v", s.Key, s.DType, d)
	}
	if d == tensor.Undefined {
		return nil, fmt.Errorf("storage %s has no element type", s.Key)
	}
	t := &tensor.Tensor{DType: d, Shape: shape, Strides: strides, Offset: off, Storage: s.Storage}
	if err := t.Check(); err != nil {
		return nil, fmt.Errorf("storage %s: %w", s.Key, err)
	}
	return t, nil
}

func ints(v any) ([]int64, error) {
	var items []any
	switch v := v.(type) {
	case Tuple:
		items = v
	case *List:
		items = v.Items
	default:
		return nil, fmt.Errorf("is %s", Describe(v))
	}
	if len(items) > 64 {
		return nil, fmt.Errorf("has %d dimensions", len(items))
	}
	out := make([]int64, len(items))
	for i, x := range items {
		n, ok := x.(int64)
		if !ok {
			return nil, fmt.Errorf("holds %s", Describe(x))
		}
		out[i] = n
	}
	return out, nil
}

// quantizer reads (scheme, scale, zero point) or (scheme, scales, zero points, axis).
func quantizer(v any) (*tensor.Quant, error) {
	t, ok := v.(Tuple)
	if !ok || len(t) < 3 {
		return nil, fmt.Errorf("the quantizer is %s", Describe(v))
	}
	scheme, ok := t[0].(Global)
	if !ok {
		return nil, fmt.Errorf("the quantization scheme is %s", Describe(t[0]))
	}
	switch scheme.Name {
	case "per_tensor_affine":
		scale, ok1 := number(t[1])
		zero, ok2 := t[2].(int64)
		if ok1 && ok2 {
			return &tensor.Quant{Scales: []float64{scale}, ZeroPoints: []int64{zero}, Axis: -1}, nil
		}
	case "per_channel_affine", "per_channel_affine_float_qparams":
		scales, ok1 := t[1].(*tensor.Tensor)
		zeros, ok2 := t[2].(*tensor.Tensor)
		if ok1 && ok2 && len(t) > 3 {
			axis, ok := t[3].(int64)
			real := scheme.Name == "per_channel_affine_float_qparams"
			typed := zeros.DType.IsInt() && !real || zeros.DType.IsFloat() && real
			if ok && scales.DType.IsFloat() && typed && scales.NumElements() == zeros.NumElements() && scales.IsContiguous() && zeros.IsContiguous() {
				q := &tensor.Quant{Axis: int(axis), Scales: scales.Float64s()}
				if real {
					q.RealZeroPoints = zeros.Float64s()
				} else {
					q.ZeroPoints = zeros.Int64s()
				}
				return q, nil
			}
		}
	}
	return nil, fmt.Errorf("quantization scheme %s is not supported", scheme)
}
