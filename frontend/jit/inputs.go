package jit

import (
	"github.com/aton-project/aton/frontend/pickle"
	"github.com/aton-project/aton/ssa"
)

// tracedInputs is the record of the example inputs of a trace, by method.
const tracedInputs = "traced_inputs.pkl"

// inputs records what the archive says of the main function's inputs: the
// shapes of the example that was traced, and the defaults of parameters.
func (l *loader) inputs() {
	f := l.functions["main"]
	params := f.params
	if f.self != nil {
		params = params[1:]
	}
	examples := l.examples(l.opts.Method)
	for i, p := range params {
		switch {
		case i < len(examples):
			l.m.Inputs = append(l.m.Inputs, exampleInput(p.Name, l.literal(examples[i], p.Type, p.Name, 0)))
		case p.HasDefault && p.Default.Kind != ssa.TensorLit:
			d := p.Default
			l.m.Inputs = append(l.m.Inputs, ssa.Input{Name: p.Name, Const: &d})
		}
	}
}

// examples gives the example inputs of a method, nil if there are none.
func (l *loader) examples(method string) []any {
	if !l.a.Has(tracedInputs) {
		return nil
	}
	d, ok := plain(l.unpickle(tracedInputs, "traced_inputs")).(*pickle.Dict)
	if !ok {
		return nil
	}
	v, _ := d.Get(method)
	return sequence(v)
}

func plain(v any) any {
	for {
		t, ok := v.(*typed)
		if !ok {
			return v
		}
		v = t.value
	}
}

// exampleInput describes an input by an example of it: the shape and element
// type of a tensor, the value of what is no number.
func exampleInput(name string, l ssa.Literal) ssa.Input {
	in := ssa.Input{Name: name}
	switch l.Kind {
	case ssa.TensorLit:
		in.Type = ssa.TensorOf(l.Tensor)
	case ssa.IntLit, ssa.FloatLit, ssa.BoolLit:
		in.Type = l.Type()
	case ssa.ListLit, ssa.TupleLit:
		in.Container = "list"
		if l.Kind == ssa.TupleLit {
			in.Container = "tuple"
		}
		for _, e := range l.Elems {
			in.Elems = append(in.Elems, exampleInput("", e))
		}
	case ssa.DictLit:
		in.Container = "dict"
		for i := 0; i+1 < len(l.Elems); i += 2 {
			in.Keys = append(in.Keys, l.Elems[i])
			name := l.Elems[i].String()
			if l.Elems[i].Kind == ssa.StrLit {
				name = l.Elems[i].Str()
			}
			in.Elems = append(in.Elems, exampleInput(name, l.Elems[i+1]))
		}
	default:
		in.Const = &l
	}
	return in
}
