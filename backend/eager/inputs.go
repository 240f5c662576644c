package eager

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Named is a tensor with a name.
type Named struct {
	Name   string
	Tensor *tensor.Tensor
}

// Run runs the module's main function on tensors, and gives the tensors among its results. Containers are given by their leaves, depth
// first, under names such as x.0; numbers are tensors of rank 0, complex numbers pairs of real ones along a new last axis. Inputs go
// by name if all are there, else in order. What is said of the inputs in [ssa.Module.Inputs] holds. Inputs are not changed.
func Run(m *ssa.Module, inputs []Named) ([]Named, error) { return (&Evaluator{}).Run(m, inputs) }

// Run is the function of that name.
func (e *Evaluator) Run(m *ssa.Module, inputs []Named) (outputs []Named, err error) {
	defer contain(&err)
	f := m.Main()
	if f == nil {
		return nil, fmt.Errorf("the module has no function")
	}
	k := e.machine(m)
	args, err := k.inputs(f, inputs)
	if err != nil {
		return nil, err
	}
	out, err := k.main(f, args)
	if err != nil {
		return nil, err
	}
	return k.outputs(f, out)
}

// slot is an input that a tensor is given for.
type slot struct {
	name     string
	declared ssa.Type
	stated   ssa.Type
	dtype    tensor.DType // that is stated, Undefined if none is
}

// Input is a tensor that a program takes, or a number, which is a tensor of rank 0.
type Input struct {
	Name string
	Type ssa.Type
}

// Inputs lists what the module's main function takes, as [Run] does: containers by their leaves.
func Inputs(m *ssa.Module) ([]Input, error) {
	f := m.Main()
	if f == nil {
		return nil, fmt.Errorf("the module has no function")
	}
	k := (&Evaluator{}).machine(m)
	_, _, slots, err := k.plan(f, nil)
	if err != nil {
		return nil, err
	}
	out := make([]Input, len(slots))
	for i, s := range slots {
		out[i] = Input{s.name, s.stated}
		d := map[ssa.Type]tensor.DType{ssa.IntType: tensor.Int64, ssa.FloatType: tensor.Float64, ssa.NumberType: tensor.Float64, ssa.BoolType: tensor.Bool}
		switch t := s.stated.(type) {
		case ssa.Basic:
			if d[t] != tensor.Undefined {
				out[i].Type = ssa.Tensor(d[t])
			}
		case *ssa.TensorType:
			if t.DType.IsComplex() && t.Ranked {
				out[i].Type = ssa.Tensor(aten.RealOf(t.DType), append(slices.Clone(t.Dims), sym.Const(2))...)
			}
		}
	}
	return out, nil
}

// plan is how an argument is made of tensors: of one, of several, or of none.
type plan struct {
	slot     *slot
	constant *ssa.Literal
	declared ssa.Type
	kind     string // list, tuple or dict
	keys     []Value
	elems    []*plan
}

// state is what the module keeps, given as an input.
type state struct {
	object *Object
	name   string
	plan   *plan
}

// plan says how the arguments of a function are made, and the state that is given, and lists the tensors that these take.
func (k *machine) plan(f *ssa.Func, given []Named) (plans []*plan, states []state, slots []*slot, err error) {
	byName := map[string]ssa.Input{}
	for _, in := range k.m.Inputs {
		byName[in.Name] = in
	}
	params := f.Body.Params
	if k.self(f) != nil {
		params = params[1:]
	}
	for _, p := range params {
		name := ssa.BareName(p.Name)
		in, ok := byName[name]
		if !ok {
			in = defaultInput(name, p.Type, given)
		}
		delete(byName, name)
		pl, err := planned(name, in, p.Type, &slots)
		if err != nil {
			return nil, nil, nil, err
		}
		plans = append(plans, pl)
	}
	for _, in := range k.m.Inputs {
		if _, left := byName[in.Name]; !left {
			continue
		}
		o, name, err := k.owner(in.Name)
		if err != nil {
			return nil, nil, nil, err
		}
		v, err := k.attr(o, name)
		if err != nil {
			return nil, nil, nil, err
		}
		pl, err := planned(in.Name, in, typeOf(v), &slots)
		if err != nil {
			return nil, nil, nil, err
		}
		states = append(states, state{o, name, pl})
	}
	return plans, states, slots, nil
}

// inputs makes the arguments of a function.
func (k *machine) inputs(f *ssa.Func, given []Named) ([]Value, error) {
	plans, states, slots, err := k.plan(f, given)
	if err != nil {
		return nil, err
	}
	values, err := match(slots, given)
	if err != nil {
		return nil, err
	}
	args := make([]Value, len(plans))
	for i, p := range plans {
		if args[i], err = k.fulfil(p, values); err != nil {
			return nil, err
		}
	}
	for _, s := range states {
		v, err := k.fulfil(s.plan, values)
		if err != nil {
			return nil, err
		}
		s.object.attrs[s.name] = v
	}
	return args, nil
}

// owner is the object of the module whose attribute a path such as encoder.state names.
func (k *machine) owner(path string) (*Object, string, error) {
	if k.m.Root == nil {
		return nil, "", fmt.Errorf("the program has no input %q", path)
	}
	x := k.object(k.m.Root)
	for {
		name, rest, more := strings.Cut(path, ".")
		if !more {
			return x, name, nil
		}
		v, err := k.attr(x, name)
		if err != nil {
			return nil, "", fmt.Errorf("the program has no input %q", path)
		}
		next, ok := v.(*Object)
		if !ok {
			return nil, "", fmt.Errorf("the program has no input %q", path)
		}
		x, path = next, rest
	}
}

// defaultInput is what is taken for an argument of which nothing is said: a tensor or a number; None for what may be None, unless a tensor
// is given for it; the elements that are given of a list.
func defaultInput(name string, t ssa.Type, given []Named) ssa.Input {
	has := func(prefix string) bool {
		return slices.ContainsFunc(given, func(n Named) bool { return n.Name == prefix || strings.HasPrefix(n.Name, prefix+".") })
	}
	switch t := t.(type) {
	case *ssa.OptionalType:
		if !has(name) {
			none := ssa.None
			return ssa.Input{Name: name, Const: &none}
		}
		in := defaultInput(name, t.Elem, given)
		return in
	case *ssa.TupleType:
		in := ssa.Input{Name: name, Container: "tuple", Type: t}
		for i, e := range t.Elems {
			n := fmt.Sprint(i)
			if i < len(t.Names) {
				n = t.Names[i]
			}
			elem := defaultInput(name+"."+n, e, given)
			elem.Name = n
			in.Elems = append(in.Elems, elem)
		}
		return in
	case *ssa.ListType:
		if ssa.AsTensor(t.Elem) == nil && slices.ContainsFunc(given, func(n Named) bool { return n.Name == name }) {
			return ssa.Input{Name: name, Type: t}
		}
		in := ssa.Input{Name: name, Container: "list", Type: t}
		for i := 0; has(fmt.Sprintf("%s.%d", name, i)); i++ {
			elem := defaultInput(fmt.Sprintf("%s.%d", name, i), t.Elem, given)
			elem.Name = ""
			in.Elems = append(in.Elems, elem)
		}
		return in
	case *ssa.DictType:
		in := ssa.Input{Name: name, Container: "dict", Type: t}
		for _, g := range given {
			if rest, ok := strings.CutPrefix(g.Name, name+"."); ok {
				in.Keys = append(in.Keys, ssa.Str(rest))
				in.Elems = append(in.Elems, ssa.Input{Name: rest, Type: t.Value})
			}
		}
		return in
	}
	return ssa.Input{Name: name, Type: t}
}

// planned says how an argument is made, and adds the tensors that it takes to slots.
func planned(name string, in ssa.Input, declared ssa.Type, slots *[]*slot) (*plan, error) {
	if o, ok := declared.(*ssa.OptionalType); ok {
		declared = o.Elem
	}
	p := &plan{declared: declared}
	if in.Const != nil {
		p.constant = in.Const
		return p, nil
	}
	if in.Container != "" {
		p.kind = in.Container
		for i, e := range in.Elems {
			n := e.Name
			if in.Container == "dict" {
				key, err := keyOf(in.Keys[i], declared)
				if err != nil {
					return nil, fmt.Errorf("input %s: %w", name, err)
				}
				p.keys = append(p.keys, key)
				n = show(key)
			} else if n == "" || in.Container == "list" {
				n = fmt.Sprint(i)
			}
			elem, err := planned(name+"."+n, e, memberType(declared, i), slots)
			if err != nil {
				return nil, err
			}
			p.elems = append(p.elems, elem)
		}
		return p, nil
	}
	s := &slot{name: name, declared: declared, stated: in.Type}
	if o, ok := s.stated.(*ssa.OptionalType); ok {
		s.stated = o.Elem
	}
	if declared == ssa.AnyType || declared == nil {
		s.declared = in.Type
	}
	if t := ssa.AsTensor(in.Type); t != nil {
		s.dtype = t.DType
	}
	p.slot = s
	*slots = append(*slots, s)
	return p, nil
}

// keyOf is a key of a dict of a type.
func keyOf(l ssa.Literal, declared ssa.Type) (Value, error) {
	d, _ := declared.(*ssa.DictType)
	if l.Kind != ssa.StrLit || d == nil || d.Key == ssa.StrType {
		switch l.Kind {
		case ssa.StrLit:
			return l.Str(), nil
		case ssa.IntLit:
			return l.Int(), nil
		case ssa.FloatLit:
			return l.Float(), nil
		case ssa.BoolLit:
			return l.Bool(), nil
		}
		return nil, fmt.Errorf("%s is no key of a dict", l)
	}
	k := &machine{}
	switch d.Key {
	case ssa.IntType:
		v, _, err := k.text("Int", []Value{l.Str()})
		return v, err
	case ssa.FloatType:
		v, _, err := k.text("Float", []Value{l.Str()})
		return v, err
	case ssa.BoolType:
		return strings.EqualFold(l.Str(), "true"), nil
	}
	return l.Str(), nil
}

func memberType(t ssa.Type, i int) ssa.Type {
	switch t := t.(type) {
	case *ssa.ListType:
		return t.Elem
	case *ssa.DictType:
		return t.Value
	case *ssa.TupleType:
		if i < len(t.Elems) {
			return t.Elems[i]
		}
	}
	return ssa.AnyType
}

// match finds the tensor of each slot: by name if all are there, else in order.
func match(slots []*slot, given []Named) (map[*slot]*tensor.Tensor, error) {
	out := map[*slot]*tensor.Tensor{}
	for _, s := range slots {
		if i := slices.IndexFunc(given, func(n Named) bool { return n.Name == s.name }); i >= 0 {
			out[s] = given[i].Tensor
		}
	}
	if len(out) == len(slots) {
		return out, nil
	}
	if len(given) != len(slots) {
		var names []string
		for _, s := range slots {
			names = append(names, s.name)
		}
		return nil, fmt.Errorf("%d inputs are given for %d (%s)", len(given), len(slots), strings.Join(names, ", "))
	}
	for i, s := range slots {
		out[s] = given[i].Tensor
	}
	return out, nil
}

// fulfil makes an argument.
func (k *machine) fulfil(p *plan, values map[*slot]*tensor.Tensor) (Value, error) {
	if p.constant != nil {
		return k.declared(k.constant(*p.constant, p.declared), p.declared), nil
	}
	if p.slot != nil {
		return k.given(p.slot, values[p.slot])
	}
	elems := make([]Value, len(p.elems))
	for i, e := range p.elems {
		var err error
		if elems[i], err = k.fulfil(e, values); err != nil {
			return nil, err
		}
	}
	switch t := p.declared.(type) {
	case *ssa.DictType:
		return k.dictOf(t, p.keys, elems), nil
	case *ssa.ListType:
		return &List{Elem: t.Elem, Elems: elems}, nil
	case *ssa.TupleType:
		return &Tuple{Typ: t, Elems: elems}, nil
	}
	switch p.kind {
	case "dict":
		return k.dictOf(nil, p.keys, elems), nil
	case "list":
		return &List{Elems: elems}, nil
	}
	return &Tuple{Elems: elems}, nil
}

func (k *machine) dictOf(t *ssa.DictType, keys, elems []Value) *Dict {
	d := &Dict{Typ: t}
	for i, e := range elems {
		d.set(keys[i], e)
	}
	return d
}

// given is the value of an input that a tensor is given for.
func (k *machine) given(s *slot, t *tensor.Tensor) (Value, error) {
	if t == nil {
		return nil, fmt.Errorf("input %q is missing", s.name)
	}
	if !t.HasData() {
		return nil, fmt.Errorf("input %q has no elements", s.name)
	}
	x := Of(t)
	switch s.declared {
	case ssa.IntType, ssa.FloatType, ssa.BoolType, ssa.NumberType, ssa.ComplexType:
		n, err := number(x)
		if err != nil {
			return nil, fmt.Errorf("input %s: %w", s.name, err)
		}
		name := map[ssa.Type]string{ssa.IntType: "Int", ssa.FloatType: "Float", ssa.BoolType: "Bool", ssa.ComplexType: "Complex"}[s.declared]
		if name == "" {
			return n, nil
		}
		v, _, err := unary(name, s.declared, n)
		return v, err
	}
	if l, ok := s.declared.(*ssa.ListType); ok && ssa.AsTensor(l.Elem) == nil {
		return numbers(x, l.Elem)
	}
	if s.dtype.IsComplex() && !t.DType.IsComplex() {
		v, done, err := ofPairs(arguments{}, x)
		if err != nil || !done {
			return nil, fmt.Errorf("input %s is no tensor of complex numbers as pairs", s.name)
		}
		return v, nil
	}
	return x, nil
}

// outputs lists the tensors in the results of a function.
func (k *machine) outputs(f *ssa.Func, rs []Value) ([]Named, error) {
	var out []Named
	add := func(path string, t *tensor.Tensor) {
		if path == "" {
			path = "output"
		}
		if i := len(out); i < len(f.OutputNames) {
			path = f.OutputNames[i]
		}
		out = append(out, Named{path, t})
	}
	join := func(path, name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	var flatten func(path string, v Value, depth int) error
	flatten = func(path string, v Value, depth int) error {
		if err := k.step(); err != nil {
			return err
		}
		if depth > maxNested {
			return refuse("output", "output %s is nested more than %d deep", path, maxNested)
		}
		switch v := v.(type) {
		case nil, string, Device, *Enum, Func:
		case *Tensor:
			t := v.Tensor()
			if !t.HasData() {
				return refuse("unsupported-value", "the elements of output %s are not there", path)
			}
			if t.DType.IsComplex() {
				t = pairs(t)
			}
			add(path, t.Clone())
		case int64, float64, bool, complex128:
			t, err := scalarTensor(v, tensor.Undefined)
			if err != nil {
				return err
			}
			if t.dtype.IsComplex() {
				add(path, pairs(t.Tensor()))
				return nil
			}
			add(path, t.Tensor())
		case *Tuple:
			for i, e := range v.Elems {
				n := fmt.Sprint(i)
				if v.Typ != nil && i < len(v.Typ.Names) {
					n = v.Typ.Names[i]
				}
				if err := flatten(join(path, n), e, depth+1); err != nil {
					return err
				}
			}
		case *List:
			for i, e := range v.Elems {
				if err := flatten(join(path, fmt.Sprint(i)), e, depth+1); err != nil {
					return err
				}
			}
		case *Dict:
			for i, key := range v.keys {
				if err := flatten(join(path, show(key)), v.vals[i], depth+1); err != nil {
					return err
				}
			}
		default:
			return refuse("output", "output %s is %s", path, describe(v))
		}
		return nil
	}
	for i, r := range rs {
		path := ""
		if len(rs) > 1 {
			path = fmt.Sprint(i)
		}
		if err := flatten(path, r, 0); err != nil {
			return nil, err
		}
	}
	return out, nil
}
