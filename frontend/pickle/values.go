// Package pickle reads Python pickles as data. It never looks anything up and
// never calls anything: a global is a name, and what a call of it means is
// decided by the reader's hooks, which know a fixed list.
package pickle

import "fmt"

// A value of a pickle is one of: nil, bool, int64, *big.Int, float64,
// complex128, string, Bytes, Tuple, *List, *Dict, *Set, Global, *Object, *Call,
// or what a hook made, such as *tensor.Tensor and *Subclass ([Tensors]).
type (
	// Tuple is a tuple.
	Tuple []any
	// Bytes is a byte string.
	Bytes []byte
	// List is a list; its identity matters, since pickles share objects.
	List struct{ Items []any }
	// Set is a set, in the order of its construction.
	Set struct{ Items []any }
	// Global is a name that the pickle refers to: a class or a function.
	Global struct{ Module, Name string }
)

// String is module.name.
func (g Global) String() string { return g.Module + "." + g.Name }

// Object is an instance of a class that the reader does not interpret.
type Object struct {
	Class  Global
	Args   Tuple
	State  any
	Built  bool // State was given
	Offset int  // of the opcode that made it
	// Items are the entries of a subclass of list or dict: alternating keys and values for dict.
	Items []any
}

// Call is the result of calling a global that no hook knows.
type Call struct {
	Fn    Global
	Args  Tuple
	State any
}

// Subclass is a tensor of a class of its own that wraps other tensors, as torch._utils._rebuild_wrapper_subclass makes
// one: a quantized weight, for example. The class is a name and nothing of it runs; what its objects consist of is in State.
type Subclass struct {
	Class Global
	// State has the attributes of the object: *tensor.Tensor, *Subclass, and plain data.
	State *Dict
}

// Dict is a dict in insertion order.
type Dict struct {
	Keys, Values []any
	strings      map[string]int
	ints         map[int64]int
}

// Set adds or replaces an entry.
func (d *Dict) Set(k, v any) {
	switch k := k.(type) {
	case string:
		if i, ok := d.strings[k]; ok {
			d.Values[i] = v
			return
		}
		if d.strings == nil {
			d.strings = map[string]int{}
		}
		d.strings[k] = len(d.Keys)
	case int64:
		if i, ok := d.ints[k]; ok {
			d.Values[i] = v
			return
		}
		if d.ints == nil {
			d.ints = map[int64]int{}
		}
		d.ints[k] = len(d.Keys)
	}
	d.Keys = append(d.Keys, k)
	d.Values = append(d.Values, v)
}

// Get finds the value of a string key.
func (d *Dict) Get(k string) (any, bool) {
	i, ok := d.strings[k]
	if !ok {
		return nil, false
	}
	return d.Values[i], true
}

// Describe names the kind of a value for messages.
func Describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		return "a bool"
	case int64:
		return "an int"
	case float64:
		return "a float"
	case string:
		return "a string"
	case Tuple:
		return fmt.Sprintf("a tuple of %d", len(v))
	case *List:
		return "a list"
	case *Dict:
		return "a dict"
	case Global:
		return "the name " + v.String()
	case *Object:
		return "an object of " + v.Class.String()
	case *Subclass:
		return "a tensor of class " + v.Class.String()
	case *Call:
		return "the result of " + v.Fn.String()
	}
	return "a value of another kind"
}
