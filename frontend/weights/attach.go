package weights

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Attach gives a module that was read from text its weights: attributes of the
// module (prim::GetAttr), constants whose elements the text leaves out
// (value=<Tensor>), and inputs that are named as weights. It returns the names
// of the tensors that nothing asked for.
func Attach(m *ssa.Module, s *Set) (unused []string, err error) {
	f := m.Main()
	if f == nil {
		return s.Names, nil
	}
	if s.Mapping != nil {
		m.Keep = append(m.Keep, s.Mapping)
	}
	used := map[string]bool{}
	if err := constants(m, f, s, used); err != nil {
		return nil, err
	}
	if err := inputs(f, s, used); err != nil {
		return nil, err
	}
	if m.Root == nil {
		root(m, f, s, used)
	}
	for _, n := range s.Names {
		if !used[n] {
			unused = append(unused, n)
		}
	}
	return unused, nil
}

// lookup finds a weight by the name of a value: self.0.weight, 0.weight.1.
func (s *Set) lookup(name string) (string, *tensor.Tensor) {
	candidates := []string{name, strings.TrimPrefix(name, "self.")}
	for _, n := range candidates {
		if bare := ssa.BareName(n); bare != n {
			candidates = append(candidates, bare)
		}
	}
	for _, n := range candidates {
		for _, key := range []string{n, "module." + n} { // as DataParallel names them
			if t, ok := s.tensors[key]; ok {
				return key, t
			}
		}
	}
	return "", nil
}

func fits(name string, t *tensor.Tensor, want *ssa.TensorType) error {
	if want == nil {
		return nil
	}
	if want.DType != tensor.Undefined && want.DType != t.DType {
		return fmt.Errorf("%s is %v in the graph and %v in the file of weights", name, want.DType, t.DType)
	}
	if shape, ok := want.Static(); ok && fmt.Sprint(shape) != fmt.Sprint(t.Shape) {
		return fmt.Errorf("%s is %v in the graph and %v in the file of weights", name, shape, t.Shape)
	}
	return nil
}

// constants fills the constants that the text shows as <Tensor>.
func constants(m *ssa.Module, f *ssa.Func, s *Set, used map[string]bool) error {
	for o := range f.Body.AllOps() {
		if o.Kind != "prim::Constant" || len(o.Results) != 1 {
			continue
		}
		v, ok := o.Attr("value")
		want := ssa.AsTensor(o.Results[0].Type)
		if !ok || want == nil || v.Kind == ssa.TensorLit && v.Tensor.HasData() {
			continue
		}
		key, t := s.lookup(o.Results[0].Name)
		if t == nil {
			continue
		}
		if err := fits(o.Results[0].Name, t, want); err != nil {
			return err
		}
		used[key] = true
		o.SetAttr("value", ssa.TensorValue(t))
		o.Results[0].Type = ssa.TensorOf(t)
	}
	return nil
}

// inputs turns the graph's inputs that are weights into constants.
func inputs(f *ssa.Func, s *Set, used map[string]bool) error {
	at := f.Body.First()
	for i := len(f.Body.Params) - 1; i >= 0; i-- {
		p := f.Body.Params[i]
		if ssa.AsTensor(p.Type) == nil {
			continue
		}
		key, t := "", (*tensor.Tensor)(nil)
		if x, ok := s.tensors[p.Name]; ok {
			key, t = p.Name, x
		} else if strings.Contains(p.Name, ".") {
			key, t = s.lookup(p.Name)
		}
		if t == nil {
			continue
		}
		if err := fits(p.Name, t, ssa.AsTensor(p.Type)); err != nil {
			return err
		}
		used[key] = true
		c := f.Body.InsertBefore(at, "prim::Constant", 0, nil, ssa.TensorOf(t))
		c.SetAttr("value", ssa.TensorValue(t))
		p.ReplaceUses(c.Result(0))
		c.Result(0).Name = p.Name
		f.Body.RemoveParam(i)
		at = c
	}
	return nil
}

// root builds the object tree that the attributes of the module's parameter are read from.
func root(m *ssa.Module, f *ssa.Func, s *Set, used map[string]bool) {
	if len(f.Body.Params) == 0 {
		return
	}
	t, ok := f.Body.Params[0].Type.(*ssa.ClassType)
	if !ok {
		return
	}
	r := &ssa.Object{Class: t.Name}
	objects := map[*ssa.Value]*ssa.Object{f.Body.Params[0]: r}
	for o := range f.Body.AllOps() {
		if o.Kind != "prim::GetAttr" {
			continue
		}
		obj := objects[o.Operand(0)]
		if obj == nil {
			continue
		}
		name := o.AttrStr("name", "")
		path := name
		if obj.Path != "" {
			path = obj.Path + "." + name
		}
		if ct, ok := o.Results[0].Type.(*ssa.ClassType); ok {
			v, ok := obj.Get(name)
			if !ok {
				v = ssa.ObjectValue(&ssa.Object{Class: ct.Name, Path: path})
				obj.Set(name, v)
			}
			objects[o.Results[0]] = v.Object
			continue
		}
		if key, t := s.lookup(path); t != nil {
			used[key] = true
			obj.Set(name, ssa.TensorValue(t))
		}
	}
	m.Root = r
}
