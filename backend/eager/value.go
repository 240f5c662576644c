package eager

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Value is what a value of the program holds: nil (None), an int64, float64, bool, complex128 or string, or one of *Tensor,
// *List, *Tuple, *Dict, *Object, *Enum, Device, Func, Unset.
type Value any

// Tensor is a tensor object, the thing that Python's "is" compares: a view of memory, which other tensors may share.
type Tensor struct {
	mem     *memory
	dtype   tensor.DType
	offset  int64
	shape   []int64
	strides []int64
}

// memory is what tensors are views of. Memory that others may hold, of a file or of an operator's operand, is not owned: it
// is copied before the first write.
type memory struct {
	store *tensor.Storage
	owned bool
}

// List is a list object.
type List struct {
	Elem  ssa.Type // nil if it is not known
	Elems []Value
}

// Tuple is a tuple or a NamedTuple, which cannot be changed.
type Tuple struct {
	Typ   *ssa.TupleType // nil if it is not known
	Elems []Value
}

// Dict is a dict object. Keys are ints, floats, bools, complex numbers, strings or tensors, in the order in which they were first set.
type Dict struct {
	Typ  *ssa.DictType // nil if it is not known
	keys []Value
	vals []Value
	at   map[any]int
}

// Object is an instance of a class, a module among others.
type Object struct {
	Class string
	attrs map[string]Value
	src   *ssa.Object // what the file has of it; nil for an object that the program made
}

// Enum is a member of an enumeration.
type Enum struct {
	Name  string // with the class before a dot
	Value Value
}

// Device is the name of a device.
type Device string

// Func is the name of a function of the module.
type Func string

// Unset is what a name holds that was not assigned.
type Unset struct{}

// Of makes a tensor object of a tensor, whose elements it does not change.
func Of(t *tensor.Tensor) *Tensor {
	return &Tensor{mem: &memory{store: t.Storage}, dtype: t.DType, offset: t.Offset, shape: slices.Clone(t.Shape), strides: slices.Clone(t.Strides)}
}

// Tensor gives the tensor's elements as they are now.
func (t *Tensor) Tensor() *tensor.Tensor {
	t.mem.owned = false // a later write must not change what is given here
	return &tensor.Tensor{DType: t.dtype, Shape: slices.Clone(t.shape), Strides: slices.Clone(t.strides), Offset: t.offset, Storage: t.mem.store}
}

// String tells the tensor's type.
func (t *Tensor) String() string { return t.plain().String() }

func (t *Tensor) plain() *tensor.Tensor {
	return &tensor.Tensor{DType: t.dtype, Shape: t.shape, Strides: t.strides, Offset: t.offset, Storage: t.mem.store}
}

// typ is the tensor's type, all sizes known.
func (t *Tensor) typ() *ssa.TensorType { return ssa.Tensor(t.dtype, ssa.Sizes(t.shape)...) }

func (t *Tensor) numel() int64 { return product(t.shape) }

func product(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// view is another tensor object of the same memory.
func (t *Tensor) view(offset int64, shape, strides []int64) *Tensor {
	return &Tensor{mem: t.mem, dtype: t.dtype, offset: offset, shape: shape, strides: strides}
}

// alias is another tensor object that shows the same.
func (t *Tensor) alias() *Tensor {
	return t.view(t.offset, slices.Clone(t.shape), slices.Clone(t.strides))
}

// become makes the tensor object show what another one shows.
func (t *Tensor) become(u *Tensor) {
	t.mem, t.dtype, t.offset, t.shape, t.strides = u.mem, u.dtype, u.offset, u.shape, u.strides
}

// same reports two tensors that show the same elements of the same memory in the same order.
func (t *Tensor) same(u *Tensor) bool {
	if t.mem != u.mem || t.dtype != u.dtype || t.offset != u.offset || !slices.Equal(t.shape, u.shape) {
		return false
	}
	for i := range t.shape {
		if t.shape[i] != 1 && t.strides[i] != u.strides[i] {
			return false
		}
	}
	return true
}

// each calls f with the place in memory of each element, in row-major order.
func (t *Tensor) each(f func(at int64)) {
	if t.numel() == 0 {
		return
	}
	index := make([]int64, len(t.shape))
	at := t.offset
	for {
		f(at)
		i := len(index) - 1
		for ; i >= 0; i-- {
			if index[i]++; index[i] < t.shape[i] {
				at += t.strides[i]
				break
			}
			at -= (index[i] - 1) * t.strides[i]
			index[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// write replaces the elements by those of src, which has the same shape and element type.
func (t *Tensor) write(src *tensor.Tensor) {
	if t.numel() == 0 {
		return // it may begin behind the memory's end
	}
	from := src.Bytes()
	if !t.mem.owned {
		t.mem.store = t.mem.store.Clone()
		t.mem.owned = true
	}
	size := int64(t.dtype.Size())
	to := t.mem.store.Bytes()
	if t.plain().IsContiguous() {
		copy(to[t.offset*size:], from)
		return
	}
	i := int64(0)
	t.each(func(at int64) {
		copy(to[at*size:(at+1)*size], from[i:i+size])
		i += size
	})
}

// laid gives a tensor of the same elements in memory of its own, with the given strides, which are those of a dense tensor.
func laid(t *tensor.Tensor, strides []int64) *Tensor {
	if t.IsContiguous() && slices.Equal(strides, tensor.ContiguousStrides(t.Shape)) || t.NumElements() == 0 || t.DType == tensor.String {
		r := Of(t)
		if t.NumElements() == 0 {
			r.strides = slices.Clone(strides)
			r.mem, r.offset = &memory{store: &tensor.Storage{}}, 0
		}
		return r
	}
	r := &Tensor{mem: &memory{store: tensor.NewStorage(make([]byte, t.NumBytes())), owned: true}, dtype: t.DType, shape: slices.Clone(t.Shape), strides: strides}
	r.write(t)
	return r
}

// find is the index of a key, -1 if the dict has none.
func (d *Dict) find(k Value) int {
	if i, ok := d.at[key(k)]; ok {
		return i
	}
	return -1
}

// key is what a key of a dict is compared by: numbers and strings by their values, tensors by their identity.
func key(k Value) any {
	switch k := k.(type) {
	case int64, float64, bool, complex128, string, *Tensor, nil:
		return k
	case *Enum:
		return k.Name
	}
	return fmt.Sprintf("%T", k)
}

func (d *Dict) set(k, v Value) {
	if i := d.find(k); i >= 0 {
		d.vals[i] = v
		return
	}
	if d.at == nil {
		d.at = map[any]int{}
	}
	d.at[key(k)] = len(d.keys)
	d.keys, d.vals = append(d.keys, k), append(d.vals, v)
}

func (d *Dict) remove(i int) {
	d.keys, d.vals = slices.Delete(d.keys, i, i+1), slices.Delete(d.vals, i, i+1)
	d.index()
}

func (d *Dict) index() {
	d.at = make(map[any]int, len(d.keys))
	for i, k := range d.keys {
		d.at[key(k)] = i
	}
}

// Keys are the dict's keys in the order in which they were first set.
func (d *Dict) Keys() []Value { return slices.Clone(d.keys) }

// Get gives the value of a key.
func (d *Dict) Get(k Value) (Value, bool) {
	if i := d.find(k); i >= 0 {
		return d.vals[i], true
	}
	return nil, false
}

// describe names the type of a value in a message.
func describe(v Value) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case int64:
		return "an int"
	case float64:
		return "a float"
	case bool:
		return "a bool"
	case complex128:
		return "a complex number"
	case string:
		return "a string"
	case *Tensor:
		return "a tensor " + v.String()
	case *List:
		return "a list"
	case *Tuple:
		return "a tuple"
	case *Dict:
		return "a dict"
	case *Object:
		return "an object of class " + v.Class
	case *Enum:
		return "an enum"
	case Device:
		return "a device"
	case Func:
		return "a function"
	case Unset:
		return "a name that was not assigned"
	}
	return fmt.Sprintf("a %T", v)
}
