package specialize

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// State that a module keeps in the containers among its attributes. What is written into such a container is found at the end, by
// comparison with what the file has; what is written into a tensor in one, when it is written.

// nameParts names the memory of the tensors in a container of the module, by the path to them.
func (s *module) nameParts(v py.Value, path string) {
	switch v := v.(type) {
	case *py.Tensor:
		if st := heap.ViewOf(v).Storage; st.Name == "" {
			st.Name = path
		}
	case *py.Tuple:
		for i, e := range v.Elems {
			s.nameParts(e, joinPath(path, fmt.Sprint(i)))
		}
	case *py.List:
		for i, e := range v.State().Elems {
			s.nameParts(e, joinPath(path, fmt.Sprint(i)))
		}
	case *py.Dict:
		st := v.State()
		for i, k := range st.Keys {
			s.nameParts(st.Vals[i], joinPath(path, py.KeyName(k)))
		}
	}
}

// noteContainers records what has changed of the containers among the module's attributes.
func (s *walk) noteContainers() {
	var objects []*py.Object
	for _, o := range s.module.objects {
		objects = append(objects, o)
	}
	slices.SortFunc(objects, func(a, b *py.Object) int { return cmp.Compare(a.Path, b.Path) })
	for _, o := range objects {
		for _, f := range o.Src.Fields {
			c := o.Attrs[f.Name]
			if c == nil {
				continue
			}
			v := py.AsValue(c.Content())
			path := joinPath(o.Path, f.Name)
			noted := func(sc stateChange) bool { return sc.name == path }
			if slices.ContainsFunc(s.changed, noted) { // the attribute itself was replaced
				continue
			}
			s.compareState(f.Value, v, path, nil)
		}
	}
}

// compareState records where a value differs from the literal of the file. in is the container that it stands in.
func (s *walk) compareState(l ssa.Literal, v py.Value, path string, in *journal.Cell) {
	changed := func(c *journal.Cell) {
		at := s.touched[c]
		if s.opts.State == StateRefused {
			s.loc = at.loc
			s.fail("state", "%s is changed by the model, which an ONNX model cannot keep from run to run", path)
		}
		s.changed = append(s.changed, stateChange{name: path, loc: at.loc, op: at.op, read: func() py.Value { return v }})
	}
	switch v := v.(type) {
	case *py.List:
		st := v.State()
		if l.Kind != ssa.ListLit || st.AtRunTime() || len(st.Elems) != len(l.Elems) {
			changed(v.Cell)
			return
		}
		for i, e := range st.Elems {
			s.compareState(l.Elems[i], e, joinPath(path, fmt.Sprint(i)), v.Cell)
		}
	case *py.Dict:
		st := v.State()
		same := l.Kind == ssa.DictLit && len(st.Keys)*2 == len(l.Elems)
		for i := 0; same && i < len(st.Keys); i++ {
			same = st.Keys[i].Equal(l.Elems[2*i])
		}
		if !same {
			changed(v.Cell)
			return
		}
		for i, k := range st.Keys {
			s.compareState(l.Elems[2*i+1], st.Vals[i], joinPath(path, py.KeyName(k)), v.Cell)
		}
	case *py.Tuple:
		if l.Kind != ssa.TupleLit || len(v.Elems) != len(l.Elems) {
			changed(in)
			return
		}
		for i, e := range v.Elems {
			s.compareState(l.Elems[i], e, joinPath(path, fmt.Sprint(i)), in)
		}
	case *py.Tensor:
		if in == nil {
			return // an attribute: noted when it is written
		}
		if l.Kind == ssa.TensorLit {
			if w := s.module.weights[l.Tensor]; w != nil && heap.ViewOf(w).Storage == heap.ViewOf(v).Storage {
				return
			}
		}
		changed(in)
	case py.Const:
		if in != nil && !v.Literal.Equal(l) {
			changed(in)
		}
	case *py.Object:
	default:
		if in != nil {
			changed(in)
		}
	}
}
