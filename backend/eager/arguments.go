package eager

import (
	"math"

	"github.com/aton-project/aton/ssa"
)

// arguments are those of a call, by the names of its schema.
type arguments struct {
	k      *machine
	schema *ssa.Schema
	vals   []Value
}

func (a arguments) has(name string) bool { return a.schema.Arg(name) >= 0 }

func (a arguments) value(name string) Value {
	if i := a.schema.Arg(name); i >= 0 && i < len(a.vals) {
		return a.vals[i]
	}
	return nil
}

// tensor is a tensor argument; an argument that is none is an error that errored collects.
func (a arguments) tensor(name string) (*Tensor, error) {
	if t, ok := a.value(name).(*Tensor); ok {
		return t, nil
	}
	return nil, refuse("unsupported-value", "argument %q is %s", name, describe(a.value(name)))
}

// int is an argument that is an int, or a tensor of one.
func (a arguments) int(name string, none int64) (int64, error) {
	return asInt(a.value(name), none)
}

func asInt(v Value, none int64) (int64, error) {
	switch v := v.(type) {
	case nil:
		return none, nil
	case int64:
		return v, nil
	case bool:
		return coerce(v, ssa.IntType).(int64), nil
	case float64:
		if v == math.Trunc(v) {
			return int64(v), nil
		}
	case *Tensor:
		n, err := number(v)
		if err != nil {
			return 0, err
		}
		return asInt(n, none)
	}
	return 0, refuse("unsupported-value", "%s is no int", describe(v))
}

// ints is an argument that is a list of ints; a lone int is a list of one, and None none.
func (a arguments) ints(name string) ([]int64, error) { return asInts(a.value(name)) }

func asInts(v Value) ([]int64, error) {
	var elems []Value
	switch v := v.(type) {
	case nil:
		return nil, nil
	case *List:
		elems = v.Elems
	case *Tuple:
		elems = v.Elems
	case *Tensor:
		if len(v.shape) == 1 && v.dtype.IsInt() && v.plain().HasData() {
			return v.Tensor().Int64s(), nil
		}
		elems = []Value{v}
	default:
		elems = []Value{v}
	}
	out := make([]int64, len(elems))
	for i, e := range elems {
		var err error
		if out[i], err = asInt(e, 0); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// wrapDim is a dimension counted from the end where it is negative. A tensor without dimensions counts as one of one.
func wrapDim(d int64, rank int) (int, error) {
	n := int64(max(rank, 1))
	if d < -n || d >= n {
		return 0, raise("Dimension out of range (expected to be in range of [%d, %d], but got %d)", -n, n-1, d)
	}
	if d < 0 {
		d += n
	}
	return int(d), nil
}

// dim is an argument that is a dimension of a tensor.
func (a arguments) dim(name string, rank int) (int, error) {
	d, err := a.int(name, 0)
	if err != nil {
		return 0, err
	}
	return wrapDim(d, rank)
}

// reader reads several arguments of a call, and keeps the first error: what is read behind it has no meaning.
type reader struct {
	a   arguments
	err error
}

func (a arguments) read() *reader { return &reader{a: a} }

func (r *reader) keep(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) int(name string, none int64) int64 {
	n, err := r.a.int(name, none)
	r.keep(err)
	return n
}

func (r *reader) ints(name string) []int64 {
	ns, err := r.a.ints(name)
	r.keep(err)
	return ns
}

func (r *reader) dim(name string, rank int) int {
	d, err := r.a.dim(name, rank)
	r.keep(err)
	return d
}

func (r *reader) wrap(d int64, rank int) int {
	i, err := wrapDim(d, rank)
	r.keep(err)
	return i
}
