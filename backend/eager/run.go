package eager

import (
	"errors"
	"fmt"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
)

const (
	// maxSteps bounds the operators of a run, those of each iteration counted.
	maxSteps = 1 << 22
	// maxElements bounds the elements of one list or string.
	maxElements = 1 << 24
	// maxCalls bounds how deep calls are nested.
	maxCalls = 200
)

// Evaluator runs programs. The zero value is ready for use. It keeps the ONNX forms of operators from run to run, so that many runs share
// an Evaluator; it is for one goroutine.
type Evaluator struct {
	// Table has the operators that are known; nil stands for the built-in ones.
	Table *aten.Table
	// Seed starts the generator of random operators.
	Seed uint64
	// Random reports that the last run has drawn random numbers.
	Random bool

	forms map[string]*form
}

// Raised is the exception that a program raises.
type Raised struct{ Message string }

func (e *Raised) Error() string { return "the program raises: " + e.Message }

// refusal is why the evaluator does not run an operator.
type refusal struct{ id, message, hint string }

func (r *refusal) Error() string { return r.message }

func refuse(id, format string, args ...any) error {
	return &refusal{id: id, message: fmt.Sprintf(format, args...)}
}

func raise(format string, args ...any) error { return &Raised{fmt.Sprintf(format, args...)} }

// located is an error with the operator that it came of, the innermost one.
type located struct {
	op  *ssa.Op
	loc diag.Loc
	err error
}

func (l *located) Error() string { return l.err.Error() }
func (l *located) Unwrap() error { return l.err }

// contain makes an error of a panic: what is wrong with the evaluator must not end the program that asks it.
func contain(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("internal error: %v", r)
	}
}

// machine is one run of a module.
type machine struct {
	*Evaluator
	m       *ssa.Module
	steps   int64
	limit   int64
	calls   int
	objects map[*ssa.Object]*Object
	weights map[*tensor.Tensor]*Tensor
	memory  map[*tensor.Storage]*memory
	enums   map[string]*Enum
	drawn   map[*form]int64
}

func (e *Evaluator) machine(m *ssa.Module) *machine {
	e.Random = false
	if e.Table == nil {
		e.Table = aten.NewTable()
	}
	if e.forms == nil {
		e.forms = map[string]*form{}
	}
	e.Table.BindSchemas(m) // graph text does not name overloads
	return &machine{Evaluator: e, m: m, limit: m.Allow(maxSteps), objects: map[*ssa.Object]*Object{}, weights: map[*tensor.Tensor]*Tensor{},
		memory: map[*tensor.Storage]*memory{}, enums: map[string]*Enum{}, drawn: map[*form]int64{}}
}

// Call runs the module's main function on arguments, one for each of its parameters, and gives what it returns. The object that the
// program's methods work on, the first parameter of an archive's main function, is no argument.
func (e *Evaluator) Call(m *ssa.Module, args ...Value) (results []Value, err error) {
	defer contain(&err)
	f := m.Main()
	if f == nil {
		return nil, fmt.Errorf("the module has no function")
	}
	k := e.machine(m)
	return k.main(f, args)
}

func (k *machine) main(f *ssa.Func, args []Value) ([]Value, error) {
	if self := k.self(f); self != nil {
		args = append([]Value{self}, args...)
	}
	out, err := k.function(f, args)
	if err != nil {
		return nil, k.explain(err)
	}
	return out, nil
}

// self is the object that the main function works on, nil if it takes none.
func (k *machine) self(f *ssa.Func) *Object {
	if len(f.Body.Params) == 0 {
		return nil
	}
	c, ok := f.Body.Params[0].Type.(*ssa.ClassType)
	switch {
	case !ok:
		return nil
	case k.m.Root == nil:
		return &Object{Class: c.Name, attrs: map[string]Value{}}
	}
	return k.object(k.m.Root)
}

// explain makes a diagnostic of an error, at the user's line.
func (k *machine) explain(err error) error {
	var at *located
	if !errors.As(err, &at) {
		return err
	}
	d := diag.Diagnostic{ID: "failed", Op: string(at.op.Kind), Loc: at.loc, Message: at.err.Error()}
	var r *refusal
	var raised *Raised
	switch {
	case errors.As(err, &r):
		d.ID, d.Hint = r.id, r.hint
	case errors.As(err, &raised):
		d.ID = "raises"
	}
	list := &diag.List{Table: &k.m.Locs}
	list.Add(d)
	if raised != nil {
		return &explained{list, raised}
	}
	return list.Err()
}

// explained is a diagnostic that keeps the exception it tells of.
type explained struct {
	list   *diag.List
	raised *Raised
}

func (e *explained) Error() string   { return e.list.Error() }
func (e *explained) Unwrap() []error { return []error{e.list, e.raised} }

// frame is a function that runs: what its values hold, by their ID.
type frame struct {
	k   *machine
	env []Value
	set []bool
	loc diag.Loc // of operators without one of their own
}

func (k *machine) function(f *ssa.Func, args []Value) ([]Value, error) {
	if len(args) != len(f.Body.Params) {
		return nil, fmt.Errorf("%s takes %d arguments, not %d", f.Name, len(f.Body.Params), len(args))
	}
	if k.calls++; k.calls > maxCalls {
		return nil, refuse("recursion", "calls are nested more than %d deep", maxCalls)
	}
	defer func() { k.calls-- }()
	fr := &frame{k: k, env: make([]Value, f.NumValues()), set: make([]bool, f.NumValues())}
	return fr.block(f.Body, args)
}

func (f *frame) put(v *ssa.Value, x Value) { f.env[v.ID], f.set[v.ID] = x, true }

func (f *frame) get(v *ssa.Value) (Value, error) {
	if v == nil {
		return nil, nil
	}
	if !f.set[v.ID] {
		return nil, refuse("internal", "%%%s has no value here", v.Name)
	}
	return f.env[v.ID], nil
}

func (f *frame) getAll(vs []*ssa.Value) ([]Value, error) {
	out := make([]Value, len(vs))
	for i, v := range vs {
		var err error
		if out[i], err = f.get(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// block runs a block and gives what it returns.
func (f *frame) block(b *ssa.Block, args []Value) ([]Value, error) {
	if len(args) != len(b.Params) {
		return nil, refuse("internal", "a block takes %d values, not %d", len(b.Params), len(args))
	}
	for i, p := range b.Params {
		f.put(p, args[i])
	}
	for o := b.First(); o != nil; o = o.Next() {
		if o.Loc != 0 {
			f.loc = o.Loc
		}
		if err := f.op(o); err != nil {
			var at *located
			if errors.As(err, &at) {
				return nil, err
			}
			return nil, &located{o, f.loc, err}
		}
	}
	return f.getAll(b.Returns())
}

func (f *frame) op(o *ssa.Op) error {
	if err := f.k.step(); err != nil {
		return err
	}
	args, err := f.getAll(o.Operands())
	if err != nil {
		return err
	}
	rs, err := f.eval(o, args)
	if err != nil {
		return err
	}
	if len(rs) != len(o.Results) {
		return refuse("internal", "gives %d results of %d", len(rs), len(o.Results))
	}
	for i, r := range o.Results {
		f.put(r, rs[i])
	}
	return nil
}

func (f *frame) eval(o *ssa.Op, args []Value) ([]Value, error) {
	switch o.Kind {
	case "prim::If":
		c, err := truth(args[0])
		if err != nil {
			return nil, err
		}
		if len(o.Blocks) != 2 {
			return nil, refuse("internal", "has %d blocks", len(o.Blocks))
		}
		b := o.Blocks[1]
		if c {
			b = o.Blocks[0]
		}
		return f.block(b, nil)
	case "prim::Loop":
		return f.loop(o, args)
	case "prim::CallFunction":
		name, ok := args[0].(Func)
		if !ok {
			return nil, refuse("unsupported-value", "calls %s", describe(args[0]))
		}
		return f.call(string(name), args[1:])
	case "prim::CallMethod":
		x, ok := args[0].(*Object)
		if !ok {
			return nil, refuse("unsupported-value", "a method of %s", describe(args[0]))
		}
		return f.call(x.Class+"."+o.AttrStr("name", ""), args)
	}
	return f.k.apply(o, args)
}

func (f *frame) call(name string, args []Value) ([]Value, error) {
	fn := f.k.m.Func(name)
	if fn == nil {
		return nil, refuse("missing-function", "%s is not in the model", name)
	}
	return f.k.function(fn, args)
}

// loop runs prim::Loop(trips, condition, carried...), whose block takes the index and what is carried, and gives the next condition and
// what is carried then.
func (f *frame) loop(o *ssa.Op, args []Value) ([]Value, error) {
	if len(args) < 2 || len(o.Blocks) != 1 {
		return nil, refuse("internal", "is no loop")
	}
	trips, ok := args[0].(int64)
	if t, isTensor := args[0].(*Tensor); isTensor {
		n, err := number(t)
		if err != nil {
			return nil, err
		}
		trips, ok = n.(int64)
	}
	if !ok {
		return nil, refuse("unsupported-value", "the number of iterations is %s", describe(args[0]))
	}
	more, err := truth(args[1])
	if err != nil {
		return nil, err
	}
	carried := args[2:]
	for i := int64(0); more && i < trips; i++ {
		if err := f.k.step(); err != nil {
			return nil, err
		}
		out, err := f.block(o.Blocks[0], append([]Value{i}, carried...))
		if err != nil {
			return nil, err
		}
		if len(out) != len(carried)+1 {
			return nil, refuse("internal", "its block gives %d values", len(out))
		}
		if more, err = truth(out[0]); err != nil {
			return nil, err
		}
		carried = out[1:]
	}
	return carried, nil
}

// truth is the value of a condition.
func truth(v Value) (bool, error) {
	switch v := v.(type) {
	case bool:
		return v, nil
	case int64:
		return v != 0, nil
	case float64:
		return v != 0, nil
	case *Tensor:
		n, err := number(v)
		if err != nil {
			return false, err
		}
		return truth(n)
	}
	return false, refuse("unsupported-value", "a condition is %s", describe(v))
}

// number is the only element of a tensor.
func number(t *Tensor) (Value, error) {
	if t.numel() != 1 {
		return nil, raise("a Tensor with %d elements cannot be converted to Scalar", t.numel())
	}
	x := t.Tensor()
	if !x.HasData() {
		return nil, refuse("unsupported-value", "the elements of a tensor are not there")
	}
	switch d := t.dtype; {
	case d == tensor.Bool:
		return x.Int64s()[0] != 0, nil
	case d == tensor.Complex64:
		return complex128(tensor.Data[complex64](x)[0]), nil
	case d == tensor.Complex128:
		return tensor.Data[complex128](x)[0], nil
	case d.IsFloat():
		return x.Float64s()[0], nil
	case d.IsInt():
		return x.Int64s()[0], nil
	}
	return nil, refuse("unsupported-type", "an element of type %v is no number", t.dtype)
}
