package py

import (
	"math"
	"slices"
	"strings"

	"github.com/aton-project/aton/internal/python"
	"github.com/aton-project/aton/ssa"
)

// keys are the memory of the keys of a dict, with their indices.
type keys struct {
	all   []ssa.Literal
	ints  map[int64]int
	texts map[string]int
	other bool // keys of another type, which have to be compared
	sized bool // keys that are made of sizes
}

// SizeKey begins the keys that are made of sizes, as a number or in a string: the rest says which.
const SizeKey = "\x00"

// IsSizeKey reports a key that is made of sizes.
func IsSizeKey(k ssa.Literal) bool {
	return k.Kind == ssa.StrLit && strings.HasPrefix(k.Str(), SizeKey)
}

// HasSizeKeys reports that a key of the dict is made of sizes.
func (d *DictState) HasSizeKeys() bool {
	if m := d.grownKeys; m != nil {
		return m.sized
	}
	return slices.ContainsFunc(d.Keys, IsSizeKey)
}

// grownKeys is grow for keys.
func grownKeys(ks []ssa.Literal, memory *keys, k ssa.Literal) ([]ssa.Literal, *keys) {
	if memory == nil || len(memory.all) != len(ks) {
		memory = &keys{ints: map[int64]int{}, texts: map[string]int{}}
		for _, k := range ks {
			memory.add(k)
		}
	}
	memory.add(k)
	return slices.Clip(memory.all[:len(ks)+1]), memory
}

func (m *keys) add(k ssa.Literal) {
	switch k.Kind {
	case ssa.IntLit:
		m.ints[k.Int()] = len(m.all)
	case ssa.StrLit:
		m.texts[k.Str()] = len(m.all)
	default:
		m.other = true
	}
	m.sized = m.sized || IsSizeKey(k)
	m.all = append(m.all, k)
}

// Find is the index of a key, -1 if it is not there.
func (d *DictState) Find(k ssa.Literal) int {
	if m := d.grownKeys; m != nil && !m.other && (k.Kind == ssa.IntLit || k.Kind == ssa.StrLit) {
		var i int
		var ok bool
		if k.Kind == ssa.IntLit {
			i, ok = m.ints[k.Int()]
		} else {
			i, ok = m.texts[k.Str()]
		}
		if !ok || i >= len(d.Keys) { // a later state has it
			return -1
		}
		return i
	}
	for i := range d.Keys {
		if eq, ok := python.Equal(d.Keys[i], k); ok && eq {
			return i
		}
	}
	return -1
}

// With is the dict after d[k] = v. A key that is there keeps its place.
func (d *DictState) With(k ssa.Literal, v Value) *DictState {
	n := *d
	if i := d.Find(k); i >= 0 {
		n.Vals, n.grownVals = slices.Clone(d.Vals), nil
		n.Vals[i] = v
		return &n
	}
	n.Keys, n.grownKeys = grownKeys(d.Keys, d.grownKeys, k)
	n.Vals, n.grownVals = grow(d.Vals, d.grownVals, v)
	return &n
}

// With is the list after append(v).
func (l *ListState) With(v Value) *ListState {
	n := *l
	n.Elems, n.grown = grow(l.Elems, l.grown, v)
	return &n
}

// grow is es with one more element. Many states of a container share memory: es lies at the head of what memory is. If
// nothing came behind it there, the element goes there, else es is copied. So a thousand appends do not copy a thousand
// lists, and a state that is gone back to is still what it was.
func grow[E any](es []E, memory *[]E, e E) ([]E, *[]E) {
	if memory == nil || len(*memory) != len(es) {
		own := append(make([]E, 0, len(es)+1), es...)
		memory = &own
	}
	*memory = append(*memory, e)
	return slices.Clip((*memory)[:len(es)+1]), memory
}

// Without is the dict without the key at an index.
func (d *DictState) Without(i int) *DictState {
	n := &DictState{}
	for j := range d.Keys {
		if j != i {
			n.Keys, n.Vals = append(n.Keys, d.Keys[j]), append(n.Vals, d.Vals[j])
		}
	}
	return n
}

// KeyValues are the keys as values.
func (d *DictState) KeyValues() []Value {
	out := make([]Value, len(d.Keys))
	for i, k := range d.Keys {
		out[i] = Of(k)
	}
	return out
}

// KeyName is a key as it is written in the path of an input or output.
func KeyName(k ssa.Literal) string {
	if k.Kind == ssa.StrLit {
		return k.Str()
	}
	return k.String()
}

// ElemsOf are the elements of a tuple, or of a list of known length.
func ElemsOf(x Value) []Value {
	switch x := x.(type) {
	case *Tuple:
		return x.Elems
	case *List:
		if st := x.State(); !st.AtRunTime() {
			return st.Elems
		}
	}
	return nil
}

// MemberType is the declared type of member i of a container: of a dict, 0 is the key and 1 the value.
func MemberType(t ssa.Type, i int) ssa.Type {
	switch t := t.(type) {
	case *ssa.ListType:
		return t.Elem
	case *ssa.OptionalType:
		return MemberType(t.Elem, i)
	case *ssa.TupleType:
		if i < len(t.Elems) {
			return t.Elems[i]
		}
	case *ssa.DictType:
		if i == 1 {
			return t.Value
		}
		return t.Key
	}
	return ssa.AnyType
}

// Index resolves an index of n elements; negative ones count from the end.
func Index(i int64, n int) (int, error) {
	if i < 0 {
		i += int64(n)
	}
	if i < 0 || i >= int64(n) {
		return 0, &python.Exception{Message: "list index out of range"}
	}
	return int(i), nil
}

// Slice is es[lo:hi:step], where an absent hi is math.MaxInt64.
func Slice(es []Value, lo, hi, step int64) []Value {
	n := int64(len(es))
	var out []Value
	if step > 0 {
		lo, hi = python.Bounds(n, lo, hi)
		for i := lo; i < hi; i += step {
			out = append(out, es[i])
		}
		return out
	}
	if step == 0 {
		return nil
	}
	if lo == 0 && hi == math.MaxInt64 { // [::-k] as TorchScript writes it
		lo, hi = n-1, -1
	} else {
		if lo < 0 {
			lo += n
		}
		if hi < 0 {
			hi += n
		}
		lo = min(lo, n-1)
	}
	for i := lo; i > hi && i >= 0; i += step {
		out = append(out, es[i])
	}
	return out
}
