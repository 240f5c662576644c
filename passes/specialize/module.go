package specialize

import (
	"strings"

	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// module gives the objects and weights of the source program as values.
type module struct {
	*context
	build   *builder
	heap    *heap.Heap
	weights map[*tensor.Tensor]*py.Tensor
	shared  map[*tensor.Storage][]overlap // weights by the memory that they are in
	objects map[*ssa.Object]*py.Object
}

// fromLiteral makes a program value of a constant; containers become mutable.
func (s *module) fromLiteral(l ssa.Literal, t ssa.Type) py.Value {
	switch l.Kind {
	case ssa.TensorLit:
		if r := s.weights[l.Tensor]; r != nil {
			return r
		}
		var r *py.Tensor
		s.heap.AsBefore(func() {
			var v *ssa.Value
			if l.Tensor.Quant != nil {
				v = s.quantized(l.Tensor)
			} else {
				v = s.build.constant(l)
			}
			r = s.heap.Laid(v, ssa.Sizes(l.Tensor.Strides))
		})
		heap.ViewOf(r).Storage.Origin = "parameter"
		s.weights[l.Tensor] = r
		s.shareMemory(l.Tensor, heap.ViewOf(r).Storage)
		return r
	case ssa.ListLit:
		elem := l.Elem
		if lt, ok := t.(*ssa.ListType); ok {
			elem = lt.Elem
		}
		elems := make([]py.Value, len(l.Elems))
		for i, e := range l.Elems {
			elems[i] = s.fromLiteral(e, elem)
		}
		return s.heap.List(elem, elems)
	case ssa.TupleLit:
		tt, _ := t.(*ssa.TupleType)
		elems := make([]py.Value, len(l.Elems))
		for i, e := range l.Elems {
			elems[i] = s.fromLiteral(e, py.MemberType(t, i))
		}
		return &py.Tuple{Elems: elems, Typ: tt}
	case ssa.DictLit:
		d := &py.DictState{}
		for i := 0; i+1 < len(l.Elems); i += 2 {
			d.Keys = append(d.Keys, l.Elems[i])
			d.Vals = append(d.Vals, s.fromLiteral(l.Elems[i+1], py.MemberType(t, 1)))
		}
		return &py.Dict{Cell: s.heap.New(d), Typ: t}
	case ssa.ObjectLit:
		return s.object(l.Object)
	}
	return py.Of(l)
}

// shareMemory links weights whose elements overlap in the file: what is written
// to one would be seen through the other.
func (s *module) shareMemory(t *tensor.Tensor, st *heap.Storage) {
	if t.Storage == nil {
		return
	}
	if s.shared == nil {
		s.shared = map[*tensor.Storage][]overlap{}
	}
	size := int64(max(t.DType.Size(), 1))
	o := overlap{st: st, from: t.Offset * size, to: (t.Offset + 1) * size}
	for i, n := range t.Shape {
		if n == 0 {
			return
		}
		o.to += (n - 1) * t.Strides[i] * size
	}
	for _, p := range s.shared[t.Storage] {
		if p.from < o.to && o.from < p.to {
			s.heap.Peer(p.st, st)
		}
	}
	s.shared[t.Storage] = append(s.shared[t.Storage], o)
}

// object is the one program object for a module object.
func (s *module) object(o *ssa.Object) *py.Object {
	x := s.objects[o]
	if x == nil {
		x = &py.Object{Class: o.Class, Path: o.Path, Src: o, Attrs: map[string]*journal.Cell{}}
		s.objects[o] = x
	}
	return x
}

// has reports that the module has an attribute at a path, such as encoder.state.
func (s *module) has(path string) bool {
	o, name := s.owner(path)
	if o == nil {
		return false
	}
	_, ok := o.Src.Get(name)
	return ok
}

// owner gives the object whose attribute a path names, and the attribute's name; nil if there is none.
func (s *module) owner(path string) (*py.Object, string) {
	o := s.m.Root
	for o != nil {
		name, rest, more := strings.Cut(path, ".")
		if !more {
			return s.object(o), name
		}
		l, ok := o.Get(name)
		if !ok || l.Kind != ssa.ObjectLit {
			break
		}
		o, path = l.Object, rest
	}
	return nil, ""
}

// holders visits the attributes of the module that hold a tensor.
func (s *module) holders(t *tensor.Tensor, visit func(o *py.Object, name string)) {
	seen := map[*ssa.Object]bool{}
	var walk func(o *ssa.Object)
	walk = func(o *ssa.Object) {
		if seen[o] {
			return
		}
		seen[o] = true
		for _, f := range o.Fields {
			switch {
			case f.Value.Kind == ssa.TensorLit && f.Value.Tensor == t:
				visit(s.object(o), f.Name)
			case f.Value.Kind == ssa.ObjectLit:
				walk(f.Value.Object)
			}
		}
	}
	walk(s.m.Root)
}

// attr is the cell of an attribute.
func (s *module) attr(o *py.Object, name string) *journal.Cell {
	if c := o.Attrs[name]; c != nil {
		return c
	}
	if o.Src == nil {
		c := s.heap.New(nil)
		o.Attrs[name] = c
		return c
	}
	s.heap.AsBefore(func() { o.Attrs[name] = s.stateAttr(o, name) })
	return o.Attrs[name]
}

// stateAttr is the cell of an attribute that the module has in its file.
func (s *module) stateAttr(o *py.Object, name string) *journal.Cell {
	l, ok := o.Src.Get(name)
	if !ok {
		s.fail("attribute", "an object of class %s has no attribute %q", o.Class, name)
	}
	v := s.fromLiteral(l, nil)
	if t, ok := v.(*py.Tensor); ok && t.Val.Name == "" && t.Val.Def() != nil {
		t.Val.Name = s.build.names.Unique(joinPath(o.Path, name)) // a variable may be called as an attribute of the root is
		heap.ViewOf(t).Storage.Name = t.Val.Name
	}
	s.nameParts(v, joinPath(o.Path, name))
	return s.heap.New(v)
}

// overlap is the range of bytes that a weight may have in a storage of the file.
type overlap struct {
	st       *heap.Storage
	from, to int64
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
