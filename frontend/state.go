package frontend

import (
	"github.com/aton-project/aton/frontend/jit"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// note records what a conversion removes from a program: the order of its state dict, and the classes of its modules. A text of a later
// stage has them already.
func note(m *ssa.Module) {
	if len(m.Passed) > 0 {
		return
	}
	if m.State == nil {
		m.State = stateNames(m)
	}
	noteClasses(m)
}

// noteClasses records the classes of the modules of a program.
func noteClasses(m *ssa.Module) {
	if m.Root == nil {
		return
	}
	if m.Classes == nil {
		m.Classes = map[string]string{}
	}
	eachObject(m.Root, func(o *ssa.Object, path string) {
		if path != "" {
			m.Classes[path] = jit.PythonName(o.Class)
		}
	})
}

// eachObject visits an object and the objects in its fields, each once, with the path by which it is first found, "" for the root.
func eachObject(root *ssa.Object, visit func(o *ssa.Object, path string)) {
	seen := map[*ssa.Object]bool{}
	var walk func(o *ssa.Object, path string)
	walk = func(o *ssa.Object, path string) {
		if seen[o] {
			return
		}
		seen[o] = true
		visit(o, path)
		for _, f := range o.Fields {
			if f.Value.Kind == ssa.ObjectLit {
				walk(f.Value.Object, inside(path, f.Name))
			}
		}
	}
	walk(root, "")
}

// inside returns the path of a field of the object at a path.
func inside(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// stateNames lists the parameters and buffers of a program that has not been converted, in the order of its state dict:
// the tensors of an object before those of the objects in it. A tensor with two names is listed once; unused ones are
// listed too.
func stateNames(m *ssa.Module) []string {
	var names []string
	seen := map[*tensor.Tensor]bool{}
	tensors := func(name string, t *tensor.Tensor) {
		if !seen[t] {
			seen[t] = true
			names = append(names, name)
		}
	}
	if m.Root != nil {
		eachObject(m.Root, func(o *ssa.Object, path string) {
			for _, f := range o.Fields {
				if f.Value.Kind == ssa.TensorLit {
					tensors(inside(path, f.Name), f.Value.Tensor)
				}
			}
		})
	}
	f := m.Main()
	if f == nil {
		return names
	}
	for o := range f.Body.Ops() {
		if v := ssa.WeightOf(o); v != nil {
			l, _ := o.Attr("value")
			tensors(v.Name, l.Tensor)
		}
	}
	return names
}
