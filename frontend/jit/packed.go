package jit

import (
	"strings"

	"github.com/aton-project/aton/frontend/pickle"
	"github.com/aton-project/aton/ssa"
)

// Quantized modules do not store their attributes but a state, from which
// __setstate__ makes them: weights are "packed" into objects of C++ classes. A
// packed object here is an ssa.Object of that class whose fields are the
// arguments of the operator that packed it, by their declared names.

// customObject makes an instance of a C++ class that is stored by its state.
func (l *loader) customObject(o *ssa.Object, p *pickle.Object, depth int) {
	if p.State == nil {
		return
	}
	o.Fields = append(o.Fields, ssa.Attr{Name: "state", Value: l.literal(p.State, nil, o.Path, depth+1)})
}

// setState makes the attributes of an object by running its __setstate__.
func (l *loader) setState(o *ssa.Object, c *class, state any, depth int) {
	def := c.methods["__setstate__"]
	var t ssa.Type
	if len(def.Params) > 1 && def.Params[1].Type != nil {
		t = l.typ(c.src, def.Params[1].Type)
	}
	v := l.literal(state, t, o.Path, depth+1)
	e := l.evaluator()
	defer e.leave()
	e.call(l.method(c, "__setstate__"), []ssa.Literal{ssa.ObjectValue(o), v}, 0)
	for i := range o.Fields { // what was made belongs to its first owner
		if x := o.Fields[i].Value; x.Kind == ssa.ObjectLit && x.Object.Path == "" {
			x.Object.Path = o.Fields[i].Name
			if o.Path != "" {
				x.Object.Path = o.Path + "." + o.Fields[i].Name
			}
		}
	}
}

// pack evaluates the operators that pack and unpack weights.
func (e *evaluator) pack(o *ssa.Op, in []ssa.Literal) ([]ssa.Literal, bool) {
	name := o.Kind.Name()
	switch {
	case strings.Contains(name, "prepack"):
		t, ok := o.Results[0].Type.(*ssa.ClassType)
		if !ok || o.Schema == nil {
			return nil, false
		}
		obj := &ssa.Object{Class: t.Name}
		for i, a := range o.Schema.Args {
			obj.Fields = append(obj.Fields, ssa.Attr{Name: a.Name, Value: in[i]})
		}
		obj.Fields = append(obj.Fields, ssa.Attr{Name: "packed_by", Value: ssa.Str(string(o.Kind))})
		return []ssa.Literal{ssa.ObjectValue(obj)}, true
	case strings.Contains(name, "unpack"):
		if len(in) == 0 || in[0].Kind != ssa.ObjectLit || len(o.Results) != 2 {
			return nil, false
		}
		w, b, ok := unpacked(in[0].Object)
		return []ssa.Literal{w, b}, ok
	}
	return nil, false
}

// unpacked gives weight and bias of a packed object.
func unpacked(o *ssa.Object) (w, b ssa.Literal, ok bool) {
	for _, n := range []string{"W", "weight"} {
		if w, ok = o.Get(n); ok {
			break
		}
	}
	for _, n := range []string{"B", "bias"} {
		if v, has := o.Get(n); has {
			b = v
		}
	}
	return w, b, ok
}
