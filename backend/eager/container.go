package eager

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/aton-project/aton/ssa"
)

// container computes an operator on a string, a list or a dict; done is false where it is none of these.
func (k *machine) container(name string, schema *ssa.Schema, o *ssa.Op, args []Value) (v Value, done bool, err error) {
	switch x := args[0].(type) {
	case string:
		return k.text(name, args)
	case *List:
		if schema.Arg("out") >= 0 || len(schema.Args) > 0 && takesTensors(schema) {
			return nil, false, nil
		}
		return k.list(name, schema, x, args)
	case *Dict:
		return k.dict(name, x, args)
	case int64:
		if l, ok := at(args, 1).(*List); ok && name == "mul" {
			return k.list(name, schema, l, []Value{l, x})
		}
	}
	return nil, false, nil
}

// takesTensors reports an operator that computes with a list of tensors, as cat does.
func takesTensors(schema *ssa.Schema) bool {
	l, ok := schema.Args[0].Type.(*ssa.ListType)
	if !ok || !returnsTensor(schema) {
		return false
	}
	e := l.Elem
	if op, ok := e.(*ssa.OptionalType); ok {
		e = op.Elem
	}
	if strings.HasPrefix(schema.Name, "aten::sorted") || strings.HasPrefix(schema.Name, "aten::__getitem__") {
		return false
	}
	return ssa.AsTensor(e) != nil
}

// at is an argument, None where there are fewer.
func at(args []Value, i int) Value {
	if i < len(args) {
		return args[i]
	}
	return nil
}

func (k *machine) list(name string, schema *ssa.Schema, l *List, args []Value) (Value, bool, error) {
	n := len(l.Elems)
	num := func(i int, none int64) int64 {
		if i < len(args) {
			if n, ok := args[i].(int64); ok {
				return n
			}
		}
		return none
	}
	find := func() (int, error) {
		for i, e := range l.Elems {
			eq, err := k.equal(e, args[1])
			if err != nil {
				return 0, err
			}
			if eq {
				return i, nil
			}
		}
		return -1, nil
	}
	switch name {
	case "len":
		return int64(n), true, nil
	case "append":
		if err := errors.Join(k.allow(int64(n)+1), nest(l, args[1])); err != nil {
			return nil, true, err
		}
		l.Elems = append(l.Elems, args[1])
		return l, true, nil
	case "extend":
		if y, ok := args[1].(*List); ok {
			if err := errors.Join(k.allow(int64(n+len(y.Elems))), nest(l, y.Elems...)); err != nil {
				return nil, true, err
			}
			l.Elems = append(l.Elems, y.Elems...)
			return nil, true, nil
		}
	case "insert":
		if err := errors.Join(k.allow(int64(n)+1), nest(l, args[2])); err != nil {
			return nil, true, err
		}
		at, _ := bounds(int64(n), num(1, 0), math.MaxInt64)
		l.Elems = slices.Insert(l.Elems, int(at), args[2])
		return nil, true, nil
	case "pop":
		if n == 0 {
			return nil, true, raise("pop from empty list")
		}
		i, err := index(num(1, -1), n, "pop")
		if err != nil {
			return nil, true, err
		}
		v := l.Elems[i]
		l.Elems = slices.Delete(l.Elems, i, i+1)
		return v, true, nil
	case "Delete", "__delitem__":
		i, err := index(num(1, 0), n, "list")
		if err != nil {
			return nil, true, err
		}
		l.Elems = slices.Delete(l.Elems, i, i+1)
		return nil, true, nil
	case "remove":
		i, err := find()
		if err != nil {
			return nil, true, err
		}
		if i < 0 {
			return nil, true, raise("list.remove(x): x not in list")
		}
		l.Elems = slices.Delete(l.Elems, i, i+1)
		return nil, true, nil
	case "clear":
		l.Elems = nil
		return nil, true, nil
	case "reverse":
		slices.Reverse(l.Elems)
		return nil, true, nil
	case "__getitem__", "select":
		i, err := index(num(1, 0), n, "list")
		if err != nil {
			return nil, true, err
		}
		return l.Elems[i], true, nil
	case "_set_item", "__setitem__":
		i, err := index(num(1, 0), n, "list")
		if err != nil {
			return nil, true, err
		}
		if err := nest(l, args[2]); err != nil {
			return nil, true, err
		}
		l.Elems[i] = args[2]
		return l, true, nil
	case "slice":
		elems, err := sliced(l.Elems, args[1], args[2], num(3, 1))
		return &List{Elem: l.Elem, Elems: elems}, true, err
	case "list", "copy":
		return &List{Elem: l.Elem, Elems: slices.Clone(l.Elems)}, true, nil
	case "add", "add_":
		if y, ok := args[1].(*List); ok {
			if err := k.allow(int64(n + len(y.Elems))); err != nil {
				return nil, true, err
			}
			if name == "add_" {
				l.Elems = append(l.Elems, y.Elems...)
				return l, true, nil
			}
			return &List{Elem: l.Elem, Elems: slices.Concat(l.Elems, y.Elems)}, true, nil
		}
	case "mul", "mul_":
		if times, ok := args[1].(int64); ok {
			times = max(times, 0)
			if n > 0 {
				if times > math.MaxInt64/int64(n) {
					times = math.MaxInt64 / int64(n)
				}
				if err := k.allow(times * int64(n)); err != nil {
					return nil, true, err
				}
			} else {
				times = 0
			}
			elems := slices.Repeat(l.Elems, int(times))
			if name == "mul_" {
				l.Elems = elems
				return l, true, nil
			}
			return &List{Elem: l.Elem, Elems: elems}, true, nil
		}
	case "eq", "ne":
		if y, ok := args[1].(*List); ok {
			eq, err := k.equal(l, y)
			return eq == (name == "eq"), true, err
		}
	case "lt", "le", "gt", "ge":
		if y, ok := args[1].(*List); ok {
			c, err := k.order(l, y)
			return orders[name](c), true, err
		}
	case "__contains__":
		i, err := find()
		return i >= 0, true, err
	case "index":
		i, err := find()
		if err == nil && i < 0 {
			err = raise("'%s' is not in list", show(args[1]))
		}
		return int64(i), true, err
	case "count":
		c := int64(0)
		for _, e := range l.Elems {
			eq, err := k.equal(e, args[1])
			if err != nil {
				return nil, true, err
			}
			if eq {
				c++
			}
		}
		return c, true, nil
	case "sort", "sorted":
		reverse, _ := at(args, 1).(bool)
		sorted, err := k.sorted(l.Elems, reverse)
		if name == "sorted" || err != nil {
			return &List{Elem: l.Elem, Elems: sorted}, true, err
		}
		l.Elems = sorted
		return nil, true, nil
	case "min", "max":
		if y, ok := at(args, 1).(*List); ok { // the lesser of two lists
			c, err := k.order(l, y)
			if c == 0 || (c < 0) == (name == "min") {
				return l, true, err
			}
			return y, true, err
		}
		if len(args) > 1 {
			return nil, false, nil
		}
		if n == 0 {
			return nil, true, raise("%s() arg is an empty sequence", name)
		}
		best := l.Elems[0]
		for _, e := range l.Elems[1:] {
			v, done, err := binary(map[string]string{"min": "lt", "max": "gt"}[name], ssa.BoolType, e, best)
			if err != nil || !done {
				return nil, done, err
			}
			if v == true {
				best = e
			}
		}
		return best, true, nil
	case "sum":
		var sum Value = int64(0)
		if l.Elem == ssa.FloatType {
			sum = 0.0
		}
		for _, e := range l.Elems {
			v, done, err := binary("add", ssa.NumberType, sum, e)
			if err != nil || !done {
				return nil, done, err
			}
			sum = v
		}
		return sum, true, nil
	case "any", "all":
		for _, e := range l.Elems {
			t := e != ""
			if _, text := e.(string); !text {
				var err error
				if t, err = truth(e); err != nil {
					return nil, true, err
				}
			}
			if t == (name == "any") {
				return t, true, nil
			}
		}
		return name == "all", true, nil
	case "dict":
		d := &Dict{}
		d.Typ, _ = schema.Returns[0].Type.(*ssa.DictType)
		for _, e := range l.Elems {
			if t, ok := e.(*Tuple); ok && len(t.Elems) == 2 {
				d.Typ = nil
				d.set(t.Elems[0], t.Elems[1])
			}
		}
		return d, true, nil
	case "str":
		return show(l), true, nil
	}
	return nil, false, nil
}

// sliced is elems[start:end:step].
func sliced(elems []Value, start, end Value, step int64) ([]Value, error) {
	n := int64(len(elems))
	if step == 0 {
		return nil, raise("slice step cannot be zero")
	}
	at := func(v Value, none int64) int64 {
		i, ok := v.(int64)
		if !ok || i == math.MaxInt64 && step < 0 {
			return none
		}
		return i
	}
	var out []Value
	if step > 0 {
		lo, hi := bounds(n, at(start, 0), at(end, math.MaxInt64))
		for i := lo; i < hi; i += step {
			out = append(out, elems[i])
			if step > n {
				break
			}
		}
		return out, nil
	}
	lo, hi := at(start, n-1), at(end, -n-1)
	if lo < 0 {
		lo = max(lo+n, -1)
	}
	if hi < 0 {
		hi = max(hi+n, -1)
	}
	for i := min(lo, n-1); i > hi && i >= 0; i += step {
		out = append(out, elems[i])
		if -step > n || step == math.MinInt64 {
			break
		}
	}
	return out, nil
}

func (k *machine) dict(name string, d *Dict, args []Value) (Value, bool, error) {
	missing := func() error { return raise("KeyError: %s", show(args[1])) }
	switch name {
	case "len":
		return int64(len(d.keys)), true, nil
	case "__getitem__":
		v, ok := d.Get(args[1])
		if !ok {
			return nil, true, missing()
		}
		return v, true, nil
	case "_set_item", "__setitem__":
		if err := nest(d, args[2]); err != nil {
			return nil, true, err
		}
		d.set(args[1], args[2])
		return nil, true, nil
	case "__contains__":
		return d.find(args[1]) >= 0, true, nil
	case "get":
		if v, ok := d.Get(args[1]); ok {
			return v, true, nil
		}
		if len(args) > 2 {
			return args[2], true, nil
		}
		return nil, true, nil
	case "setdefault":
		if v, ok := d.Get(args[1]); ok {
			return v, true, nil
		}
		if err := nest(d, args[2]); err != nil {
			return nil, true, err
		}
		d.set(args[1], args[2])
		return args[2], true, nil
	case "pop", "Delete", "__delitem__":
		i := d.find(args[1])
		if i < 0 {
			if len(args) > 2 {
				return args[2], true, nil
			}
			return nil, true, missing()
		}
		v := d.vals[i]
		d.remove(i)
		return v, true, nil
	case "popitem":
		n := len(d.keys)
		if n == 0 {
			return nil, true, raise("popitem(): dictionary is empty")
		}
		t := &Tuple{Elems: []Value{d.keys[n-1], d.vals[n-1]}}
		d.remove(n - 1)
		return t, true, nil
	case "clear":
		d.keys, d.vals, d.at = nil, nil, nil
		return nil, true, nil
	case "update":
		if e, ok := args[1].(*Dict); ok {
			if err := nest(d, e.vals...); err != nil {
				return nil, true, err
			}
			for i, x := range e.keys {
				d.set(x, e.vals[i])
			}
			return nil, true, nil
		}
	case "copy", "dict":
		c := &Dict{Typ: d.Typ, keys: slices.Clone(d.keys), vals: slices.Clone(d.vals)}
		c.index()
		return c, true, nil
	case "keys", "list":
		return &List{Elem: d.key(), Elems: slices.Clone(d.keys)}, true, nil
	case "values":
		l := &List{Elems: slices.Clone(d.vals)}
		if d.Typ != nil {
			l.Elem = d.Typ.Value
		}
		return l, true, nil
	case "items":
		l := &List{}
		if d.Typ != nil {
			l.Elem = &ssa.TupleType{Elems: []ssa.Type{d.Typ.Key, d.Typ.Value}}
		}
		for i, x := range d.keys {
			l.Elems = append(l.Elems, &Tuple{Elems: []Value{x, d.vals[i]}})
		}
		return l, true, nil
	}
	return nil, false, nil
}

func (d *Dict) key() ssa.Type {
	if d.Typ != nil {
		return d.Typ.Key
	}
	return nil
}

// equal is == of two values.
func (k *machine) equal(a, b Value) (bool, error) {
	switch x := a.(type) {
	case *Tensor:
		y, ok := b.(*Tensor)
		if !ok {
			return false, nil
		}
		if !slices.Equal(x.shape, y.shape) {
			return false, raise("the sizes of two tensors that are compared are %v and %v", x.shape, y.shape)
		}
		r, err := k.named("aten::eq.Tensor", x, y)
		if err != nil {
			return false, err
		}
		return truth(r)
	case *List:
		y, ok := b.(*List)
		if !ok || len(x.Elems) != len(y.Elems) {
			return false, nil
		}
		return k.equalAll(x.Elems, y.Elems)
	case *Tuple:
		y, ok := b.(*Tuple)
		if !ok || len(x.Elems) != len(y.Elems) {
			return false, nil
		}
		return k.equalAll(x.Elems, y.Elems)
	case *Enum:
		y, ok := b.(*Enum)
		return ok && x.Name == y.Name, nil
	}
	if isNumber(a) && isNumber(b) {
		v, _, err := binary("eq", ssa.BoolType, a, b)
		return v == true, err
	}
	switch a.(type) {
	case nil, string, Device, *Object, *Dict, Func:
		return a == b, nil
	}
	return false, nil
}

func (k *machine) equalAll(a, b []Value) (bool, error) {
	for i := range a {
		if err := k.step(); err != nil {
			return false, err
		}
		if eq, err := k.equal(a[i], b[i]); !eq || err != nil {
			return false, err
		}
	}
	return true, nil
}

// order is the sign of a - b, as sort has it.
func (k *machine) order(a, b Value) (int, error) {
	var x, y []Value
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			return compare(a, b), nil
		}
	case *Tensor:
		if b, ok := b.(*Tensor); ok {
			m, err := number(a)
			if err != nil {
				return 0, err
			}
			n, err := number(b)
			if err != nil {
				return 0, err
			}
			return k.order(m, n)
		}
	case *List:
		if b, ok := b.(*List); ok {
			x, y = a.Elems, b.Elems
		}
	case *Tuple:
		if b, ok := b.(*Tuple); ok {
			x, y = a.Elems, b.Elems
		}
	}
	if isNumber(a) && isNumber(b) {
		i, ai := integral(a)
		j, bi := integral(b)
		if ai && bi {
			return compare(i, j), nil
		}
		return compare(toFloat(a), toFloat(b)), nil
	}
	if x == nil && y == nil {
		if _, list := a.(*List); !list {
			return 0, refuse("unsupported-value", "%s and %s have no order", describe(a), describe(b))
		}
	}
	for i := range min(len(x), len(y)) {
		if err := k.step(); err != nil {
			return 0, err
		}
		if c, err := k.order(x[i], y[i]); c != 0 || err != nil {
			return c, err
		}
	}
	return compare(int64(len(x)), int64(len(y))), nil
}

func (k *machine) sorted(elems []Value, reverse bool) ([]Value, error) {
	out := slices.Clone(elems)
	var failed error
	sort.SliceStable(out, func(i, j int) bool {
		c, err := k.order(out[i], out[j])
		if err != nil {
			failed = err
		}
		if reverse {
			return c > 0
		}
		return c < 0
	})
	return out, failed
}

// holds reports that a container is, or holds, another one, or is nested too deep. TorchScript's types leave no list that holds itself,
// but those of a text may.
func holds(v, inner Value, depth int, seen map[Value]bool) bool {
	var elems []Value
	switch x := v.(type) {
	case *List:
		elems = x.Elems
	case *Dict:
		elems = x.vals
	case *Tuple:
		elems = x.Elems
	default:
		return false
	}
	if v == inner || depth > maxNested {
		return true
	}
	if seen[v] {
		return false
	}
	seen[v] = true
	return slices.ContainsFunc(elems, func(e Value) bool { return holds(e, inner, depth+1, seen) })
}

// maxNested bounds how deep containers are nested.
const maxNested = 64

// nest refuses to put a value into a container that it holds, or into one that it would make too deep.
func nest(into Value, vs ...Value) error {
	seen := map[Value]bool{}
	for _, v := range vs {
		if holds(v, into, 0, seen) {
			return refuse("unsupported-value", "a container would hold itself, or be nested more than %d deep", maxNested)
		}
	}
	return nil
}

// step counts work that a program has the evaluator do.
func (k *machine) step() error {
	if k.steps++; k.steps > k.limit {
		return &refusal{"budget", fmt.Sprintf("the program takes more than %d steps", k.limit), ssa.BudgetHint}
	}
	return nil
}
