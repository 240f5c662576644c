package specialize

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// inputs makes the parameters of the target function.
func (s *walk) inputs() {
	known := map[string]bool{}
	byName := map[string]ssa.Input{}
	for _, a := range s.m.Inputs {
		if _, dup := byName[a.Name]; dup {
			s.fail("input-spec", "input %q is given twice", a.Name)
		}
		byName[a.Name] = a
	}
	params := s.src.Body.Params
	var free []*ssa.Value
	for i, p := range params {
		if c, ok := p.Type.(*ssa.ClassType); ok && i == 0 {
			if s.m.Root == nil {
				s.put(p, &py.Object{Class: c.Name, Attrs: map[string]*journal.Cell{}})
			} else {
				s.put(p, s.module.object(s.m.Root))
			}
			continue
		}
		free = append(free, p)
	}
	for _, p := range free {
		known[ssa.BareName(p.Name)] = true
	}
	var kept []ssa.Input // state that is an input
	for _, a := range s.m.Inputs {
		if !known[a.Name] {
			if s.module.has(a.Name) {
				kept = append(kept, a)
				continue
			}
			var have []string
			for _, p := range free {
				have = append(have, ssa.BareName(p.Name))
			}
			s.fail("input-spec", "the model has no input %q (it has: %s)", a.Name, strings.Join(have, ", "))
		}
	}
	var trees []any
	nested := false
	for _, p := range free {
		name := ssa.BareName(p.Name)
		a, ok := byName[name]
		if !ok {
			a = defaultArg(name, p.Type)
			if x := ssa.AsTensor(a.Type); x != nil && x.DType == tensor.Undefined && passes.IsIndex(p) {
				s.warnf("input-spec", "input %s has no --input: taken as int64 of unknown shape, since an embedding is read at it", name)
				a.Type = x.WithDType(tensor.Int64)
			}
		}
		tree, inner := inputTree(name, a)
		trees, nested = append(trees, []any{name, tree}), nested || inner
		x := s.input(name, a, p.Type)
		if t, ok := x.(*py.Tensor); ok && slices.Contains(strings.Split(s.m.GetMetadata(ssa.StateInputs), ","), name) {
			heap.ViewOf(t).Storage.Origin = "state"
		}
		s.put(p, x)
	}
	if len(kept) > 0 {
		names := make([]string, len(kept))
		for i, a := range kept {
			s.stateInput(a)
			names[i] = a.Name
		}
		s.m.SetMetadata(ssa.StateInputs, strings.Join(names, ","))
	}
	if nested {
		if text, err := json.Marshal(map[string]any{"arguments": trees}); err == nil { // strings and lists always have a form
			s.m.SetMetadata(ssa.InputTree, string(text))
		}
	}
}

// stateInput makes an input of what the module keeps: a run goes on from the state that it is given. With StateOutput the
// state that it leaves is an output.
func (s *walk) stateInput(a ssa.Input) {
	o, name := s.module.owner(a.Name)
	before, _ := o.Src.Get(name)
	var declared ssa.Type = ssa.AnyTensor
	switch before.Kind {
	case ssa.IntLit:
		declared = ssa.IntType
	case ssa.FloatLit:
		declared = ssa.FloatType
	case ssa.BoolLit:
		declared = ssa.BoolType
	case ssa.TensorLit:
	default:
		s.fail("input-spec", "%s is kept by the model, but is no tensor and no number: it cannot be an input", a.Name)
	}
	x := s.input(a.Name, a, declared)
	if t, ok := x.(*py.Tensor); ok {
		if have := s.vals.read(t).DType(); have != before.Tensor.DType {
			s.fail("input-spec", "%s is %v in the model, not %v", a.Name, before.Tensor.DType, have)
		}
		heap.ViewOf(t).Storage.Origin = "state"
	}
	s.heap.AsBefore(func() {
		o.Attrs[name] = s.heap.New(x)
		if before.Kind == ssa.TensorLit { // the other names of the tensor too
			s.module.holders(before.Tensor, func(o *py.Object, name string) { o.Attrs[name] = s.heap.New(x) })
		}
	})
}

func defaultArg(name string, t ssa.Type) ssa.Input {
	switch t := t.(type) {
	case *ssa.OptionalType:
		none := ssa.None
		return ssa.Input{Name: name, Const: &none}
	case *ssa.TupleType:
		a := ssa.Input{Name: name, Container: "tuple", Type: t}
		for i, e := range t.Elems {
			n := fmt.Sprint(i)
			if t.Names != nil {
				n = t.Names[i]
			}
			a.Elems = append(a.Elems, defaultArg(n, e))
		}
		return a
	}
	return ssa.Input{Name: name, Type: t}
}

// input is the value of an argument: a constant, a container of inputs, a number or a tensor.
func (s *walk) input(name string, a ssa.Input, declared ssa.Type) py.Value {
	if a.Const != nil {
		l := *a.Const
		if l.Kind == ssa.IntLit && declared == ssa.FloatType {
			l = ssa.Float(float64(l.Int()))
		}
		return s.module.fromLiteral(l, declared)
	}
	if a.Container != "" {
		return s.inputContainer(name, a, declared)
	}
	t := a.Type
	if t == nil {
		t = declared
	}
	if o, ok := t.(*ssa.OptionalType); ok {
		t = o.Elem
	}
	if l, ok := t.(*ssa.ListType); ok && a.Type != nil {
		return s.inputList(name, l, declared)
	}
	switch t {
	case ssa.IntType, ssa.BoolType, ssa.FloatType, ssa.NumberType:
		return s.inputNumber(name, t, declared)
	}
	tt := ssa.AsTensor(t)
	if tt == nil {
		s.fail("input-spec", "input %s of type %s needs a --input", name, t)
	}
	if tt.DType == tensor.Undefined {
		// torch's default; the exporter says so
		s.warnf("input-spec", "input %s has no --input: taken as float32 of unknown shape", name)
		tt = tt.WithDType(tensor.Float32)
	}
	p := s.build.out.Body.AddParam(name, s.atLeastOne(tt))
	s.build.names.Take(name)
	if declared == ssa.IntType || declared == ssa.FloatType || declared == ssa.BoolType {
		if fits := map[ssa.Type]bool{ssa.IntType: tt.DType.IsInt(), ssa.FloatType: tt.DType.IsFloat(), ssa.BoolType: tt.DType == tensor.Bool}; tt.Ranked && len(tt.Dims) > 0 || !fits[declared] {
			s.fail("input-spec", "input %s is of type %s in the program, not %s", name, declared, tt)
		}
		if tt.DType != numberDTypes[declared] { // the input is of the type that is asked for, the number of the program's
			return s.vals.number(s.vals.emitName(map[ssa.Type]string{ssa.IntType: "aten::Int.Tensor", ssa.FloatType: "aten::Float.Tensor"}[declared], p))
		}
		p.Type = declared
		return py.Dyn(p)
	}
	return s.inputTensor(p, name)
}

// inputList makes an input of a list of any length: a sequence of tensors, or a vector of numbers.
func (s *walk) inputList(name string, l *ssa.ListType, declared ssa.Type) py.Value {
	if tt := ssa.AsTensor(l.Elem); tt != nil {
		l = &ssa.ListType{Elem: s.atLeastOne(tt)}
	}
	if o, ok := declared.(*ssa.OptionalType); ok {
		declared = o.Elem
	}
	if want, ok := declared.(*ssa.ListType); ok && (ssa.AsTensor(want.Elem) == nil) != (ssa.AsTensor(l.Elem) == nil) || !ok && declared != ssa.AnyType {
		s.fail("input-spec", "input %s is a %s in the program, not a list of %s", name, declared, l.Elem)
	}
	p := s.build.out.Body.AddParam(name, l)
	s.build.names.Take(name)
	return s.vals.wrap(p)
}

// key is the key of a dict as the program has it: its type decides what the text in a spec is.
func (s *walk) key(name string, k ssa.Literal, declared ssa.Type) ssa.Literal {
	if k.Kind != ssa.StrLit {
		return k
	}
	text := k.Str()
	var err error
	switch declared {
	case ssa.IntType:
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		k = ssa.Int(n)
	case ssa.FloatType:
		var f float64
		f, err = strconv.ParseFloat(text, 64)
		k = ssa.Float(f)
	case ssa.BoolType:
		var b bool
		b, err = strconv.ParseBool(strings.ToLower(text))
		k = ssa.Bool(b)
	}
	if err != nil {
		s.fail("input-spec", "the key %q of input %s is no %s, which the keys are in the program", text, name, declared)
	}
	return k
}

func (s *walk) inputContainer(name string, a ssa.Input, declared ssa.Type) py.Value {
	if a.Container == "dict" {
		d := &py.DictState{}
		for i, e := range a.Elems {
			d.Keys = append(d.Keys, s.key(name, a.Keys[i], py.MemberType(declared, 0)))
			d.Vals = append(d.Vals, s.input(name+"."+py.KeyName(a.Keys[i]), e, py.MemberType(declared, 1)))
		}
		return &py.Dict{Cell: s.heap.New(d), Typ: declared}
	}
	var elems []py.Value
	for i, e := range a.Elems {
		n := e.Name
		if n == "" || a.Container == "list" {
			n = fmt.Sprint(i)
		}
		elems = append(elems, s.input(name+"."+n, e, py.MemberType(declared, i)))
	}
	if _, list := declared.(*ssa.ListType); a.Container == "tuple" && !list {
		tt, _ := declared.(*ssa.TupleType)
		return &py.Tuple{Elems: elems, Typ: tt}
	}
	return s.heap.List(py.MemberType(declared, 0), elems)
}

// numberDTypes are the element types that numbers of a program have as inputs.
var numberDTypes = map[ssa.Type]tensor.DType{ssa.IntType: tensor.Int64, ssa.FloatType: tensor.Float64, ssa.BoolType: tensor.Bool}

// inputNumber makes a number an input; one that is given for a tensor is a tensor of rank 0.
func (s *walk) inputNumber(name string, t, declared ssa.Type) py.Value {
	if t == ssa.NumberType {
		t = ssa.FloatType
	}
	p := s.build.out.Body.AddParam(name, t)
	s.build.names.Take(name)
	if declared != nil && ssa.AsTensor(declared) != nil {
		p.Type = ssa.Tensor(numberDTypes[t])
		return s.inputTensor(p, name)
	}
	if t == ssa.IntType {
		p.Sym = []sym.Expr{sym.Symbol(name, minInt)}
	}
	return py.Dyn(p)
}

// atLeastOne says of dynamic axes that they are not empty. Where this decides what the program computes, see symbolic.
func (s *walk) atLeastOne(t *ssa.TensorType) *ssa.TensorType {
	dims := make([]sym.Expr, len(t.Dims))
	for i, d := range t.Dims {
		dims[i] = d.Subst(func(name string) (sym.Expr, bool) {
			least := sym.Least(d, name)
			if least < 1 {
				s.nonEmpty[name] = true
			}
			return sym.Symbol(name, max(1, least)), true
		})
	}
	c := *t
	c.Dims = dims
	return &c
}

func (s *walk) inputTensor(p *ssa.Value, name string) py.Value {
	t := s.heap.Tensor(p)
	heap.ViewOf(t).Storage.Origin, heap.ViewOf(t).Storage.Name = "input", name
	return t
}

// unrankedInput reports that the user left the rank of an input open.
func (s *walk) unrankedInput() bool {
	for _, p := range s.build.out.Body.Params {
		if t := p.Tensor(); t != nil && !t.Ranked {
			return true
		}
	}
	return false
}
