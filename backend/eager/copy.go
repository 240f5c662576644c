package eager

import (
	"maps"
	"slices"
)

// Copy copies values with all that they hold. What is one object in them, or one memory, is one in the copies.
func Copy(values ...Value) []Value {
	c := copier{objects: map[any]Value{}, memories: map[*memory]*memory{}}
	return c.all(values)
}

type copier struct {
	objects  map[any]Value
	memories map[*memory]*memory
}

func (c *copier) all(values []Value) []Value {
	if values == nil {
		return nil
	}
	out := make([]Value, len(values))
	for i, v := range values {
		out[i] = c.one(v)
	}
	return out
}

func (c *copier) one(v Value) Value {
	switch v.(type) {
	case *Tensor, *List, *Tuple, *Dict, *Object:
	default:
		return v
	}
	if done, ok := c.objects[v]; ok {
		return done
	}
	switch v := v.(type) {
	case *Tensor:
		t := v.alias()
		t.mem = c.memory(v.mem)
		c.objects[v] = t
	case *List:
		l := &List{Elem: v.Elem}
		c.objects[v] = l // before its elements, which may hold it
		l.Elems = c.all(v.Elems)
	case *Tuple:
		t := &Tuple{Typ: v.Typ}
		c.objects[v] = t
		t.Elems = c.all(v.Elems)
	case *Dict:
		d := &Dict{Typ: v.Typ}
		c.objects[v] = d
		d.keys, d.vals = c.all(v.keys), c.all(v.vals)
		d.index()
	case *Object:
		o := &Object{Class: v.Class, src: v.src, attrs: maps.Clone(v.attrs)}
		c.objects[v] = o
		for name, a := range o.attrs {
			o.attrs[name] = c.one(a)
		}
	}
	return c.objects[v]
}

// memory is a memory with the same elements, which are copied when one of the two is written.
func (c *copier) memory(m *memory) *memory {
	if c.memories[m] == nil {
		m.owned = false
		c.memories[m] = &memory{store: m.store}
	}
	return c.memories[m]
}

// Shape gives the tensor's sizes.
func (t *Tensor) Shape() []int64 { return slices.Clone(t.shape) }
