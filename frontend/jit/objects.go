package jit

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton/frontend/archive"
	"github.com/aton-project/aton/frontend/jit/pyast"
	"github.com/aton-project/aton/frontend/pickle"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// typed is a container whose static type the pickle gives.
type typed struct {
	value any
	typ   ssa.Type
}

// enumMember is a member of an enumeration, by its class and value.
type enumMember struct {
	class string
	value any
}

const maxObjectDepth = 1000

// unpickle reads a record whose storages lie in a folder.
func (l *loader) unpickle(record, folder string) any {
	ts := &pickle.Tensors{
		Load:       func(key string) ([]byte, error) { return l.a.Bytes(folder + "/" + key) },
		BigEndian:  l.big,
		ShapesOnly: record == tracedInputs, // written without data
	}
	var table []any // of build_tensor_from_id
	r := &pickle.Reader{
		Global: func(g pickle.Global) error {
			switch {
			case g.Module == "__torch__" || strings.HasPrefix(g.Module, "__torch__."):
				return nil
			case g.Module == "torch" || g.Module == "torch._utils" || g.Module == "torch._tensor" || g.Module == "torch.jit._pickle":
				return nil
			case g.Module == "collections" && g.Name == "OrderedDict":
				return nil
			case g.Module == "builtins" && g.Name == "complex" || g.Module == "__builtin__" && g.Name == "complex":
				return nil
			case g.Module == "__main__" && (g.Name == "TensorID" || g.Name == "IntList"):
				return nil
			}
			return fmt.Errorf("refers to %.80s, which TorchScript never writes; the file is not trusted", g)
		},
		Persistent: ts.Persistent,
		Call: func(g pickle.Global, args pickle.Tuple) (any, bool, error) {
			switch g.Module {
			case "torch.jit._pickle":
				return l.pickleCall(g.Name, args, table)
			case "torch", "torch._utils", "torch._tensor", "collections", "builtins", "__builtin__":
				v, ok, err := ts.Call(g, args)
				if !ok && err == nil {
					err = fmt.Errorf("is not called by TorchScript")
				}
				return v, true, err
			}
			if strings.HasPrefix(g.Module, "__torch__") && len(args) == 1 {
				return enumMember{g.Module + "." + g.Name, args[0]}, true, nil
			}
			return nil, true, fmt.Errorf("cannot be called")
		},
	}
	v, _, err := r.Read(l.text(record))
	if err != nil {
		l.failErr(record, err)
	}
	return v
}

func (l *loader) pickleCall(name string, args pickle.Tuple, table []any) (any, bool, error) {
	elem := map[string]ssa.Type{"build_intlist": ssa.IntType, "build_doublelist": ssa.FloatType,
		"build_boollist": ssa.BoolType, "build_tensorlist": ssa.AnyTensor}[name]
	switch {
	case elem != nil && len(args) == 1:
		return &typed{args[0], &ssa.ListType{Elem: elem}}, true, nil
	case name == "restore_type_tag" && len(args) == 2:
		s, ok := args[1].(string)
		if !ok {
			return nil, true, fmt.Errorf("the type is %s", pickle.Describe(args[1]))
		}
		e, err := pyast.ParseExpr(s)
		if err != nil {
			return nil, true, fmt.Errorf("the type %.60q: %w", s, err)
		}
		t, err := l.typeOf(e, 0)
		if err != nil {
			return nil, true, err
		}
		return &typed{args[0], t}, true, nil
	case name == "build_tensor_from_id" && len(args) == 1:
		if i, ok := args[0].(int64); ok && i >= 0 && i < int64(len(table)) {
			return table[i], true, nil
		}
		return nil, true, fmt.Errorf("tensor tables are not supported; load and save the file again with PyTorch 1.4 or newer")
	}
	return nil, true, fmt.Errorf("is not known")
}

// literal turns a pickled value into a constant of a type, which may be nil.
// path is where the value hangs in the object tree.
func (l *loader) literal(v any, t ssa.Type, path string, depth int) ssa.Literal {
	if depth > maxObjectDepth {
		l.fail("data.pkl", "", "objects nested too deeply at %.80s", path)
	}
	if o, ok := t.(*ssa.OptionalType); ok {
		t = o.Elem
	}
	switch v := v.(type) {
	case nil:
		return ssa.None
	case bool:
		return ssa.Bool(v)
	case int64:
		if t == ssa.FloatType {
			return ssa.Float(float64(v))
		}
		return ssa.Int(v)
	case float64:
		return ssa.Float(v)
	case complex128:
		return ssa.Complex(v)
	case string:
		return ssa.Str(v)
	case pickle.DeviceValue:
		return ssa.Device(v.Name)
	case *tensor.Tensor:
		return ssa.TensorValue(v)
	case *typed:
		return l.literal(v.value, v.typ, path, depth+1)
	case enumMember:
		value := l.literal(v.value, nil, path, depth+1)
		if c := l.class(v.class); c != nil {
			for _, m := range c.members {
				if sameNumber(m.value, value) {
					return ssa.Enum(v.class+"."+m.name, value)
				}
			}
		}
		l.fail("data.pkl", "", "%s has no member of value %s", PythonName(v.class), value)
	case pickle.Tuple:
		var elems []ssa.Type
		if tt, ok := t.(*ssa.TupleType); ok && len(tt.Elems) == len(v) {
			elems = tt.Elems
		}
		out := ssa.Literal{Kind: ssa.TupleLit, Elems: make([]ssa.Literal, len(v))}
		for i, x := range v {
			var et ssa.Type
			if elems != nil {
				et = elems[i]
			}
			out.Elems[i] = l.literal(x, et, fmt.Sprintf("%s.%d", path, i), depth+1)
		}
		return out
	case *pickle.List:
		out := ssa.Literal{Kind: ssa.ListLit, Elems: make([]ssa.Literal, len(v.Items))}
		if lt, ok := t.(*ssa.ListType); ok {
			out.Elem = lt.Elem
		}
		for i, x := range v.Items {
			out.Elems[i] = l.literal(x, out.Elem, fmt.Sprintf("%s.%d", path, i), depth+1)
		}
		return out
	case *pickle.Dict:
		out := ssa.Literal{Kind: ssa.DictLit}
		var kt, vt ssa.Type
		if dt, ok := t.(*ssa.DictType); ok {
			kt, vt = dt.Key, dt.Value
			out.Elem = dt
		}
		for i, k := range v.Keys {
			key := l.literal(k, kt, path, depth+1)
			out.Elems = append(out.Elems, key, l.literal(v.Values[i], vt, path+"."+key.Str(), depth+1))
		}
		return out
	case *pickle.Object:
		return ssa.ObjectValue(l.object(v, path, depth))
	}
	l.fail("data.pkl", "", "%.80s holds %s, which TorchScript has no value for", path, pickle.Describe(v))
	return ssa.None
}

func sameNumber(a, b ssa.Literal) bool { return a.Kind == b.Kind && a.Equal(b) }

// object makes the instance of a class.
func (l *loader) object(p *pickle.Object, path string, depth int) *ssa.Object {
	if o := l.objects[p]; o != nil {
		return o
	}
	name := p.Class.Module + "." + p.Class.Name
	o := &ssa.Object{Class: name, Path: path}
	l.objects[p] = o
	if ssa.IsCustomClass(name) {
		l.customObject(o, p, depth)
		return o
	}
	c := l.class(name)
	if c == nil {
		l.fail("data.pkl", "the archive is not whole: save the module again with torch.jit.save", "the code of class %s is missing", name)
	}
	if !l.isLive[name] {
		l.isLive[name] = true
		l.live = append(l.live, name)
	}
	if c.methods["__setstate__"] != nil {
		l.setState(o, c, p.State, depth)
		return o
	}
	if p.State == nil {
		return o
	}
	d, ok := p.State.(*pickle.Dict)
	if !ok {
		panic(&archive.Error{File: l.File, Record: "data.pkl", Offset: int64(p.Offset), Err: fmt.Errorf("the state of %s is %s", PythonName(name), pickle.Describe(p.State))})
	}
	for i, k := range d.Keys {
		s, ok := k.(string)
		if !ok {
			panic(&archive.Error{File: l.File, Record: "data.pkl", Offset: int64(p.Offset), Err: fmt.Errorf("an attribute of %s is named by %s", PythonName(name), pickle.Describe(k))})
		}
		at := s
		if path != "" {
			at = path + "." + s
		}
		v := l.literal(d.Values[i], c.attrs[s], at, depth+1)
		if l.opts.Training != nil && s == "training" && v.Kind == ssa.BoolLit {
			v = ssa.Bool(*l.opts.Training)
		}
		o.Fields = append(o.Fields, ssa.Attr{Name: s, Value: v})
	}
	return o
}
