// Package interp runs modules of the onnx dialect on concrete tensors, with the
// kernels of dialects/onnx/kernel. It is the judge of what passes and code
// generators do, not a fast runtime.
package interp

import (
	"fmt"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Value is what a value of the IR holds at run time: a tensor, a sequence of
// tensors, or nothing (an absent operand, an empty optional: the zero Value).
type Value struct {
	Tensor *tensor.Tensor
	// List holds the elements when IsList is set.
	List   []*tensor.Tensor
	IsList bool
}

// Of wraps a tensor.
func Of(t *tensor.Tensor) Value { return Value{Tensor: t} }

// ListOf wraps a sequence.
func ListOf(ts ...*tensor.Tensor) Value { return Value{List: ts, IsList: true} }

// IsNone reports that there is no value.
func (v Value) IsNone() bool { return v.Tensor == nil && !v.IsList }

// String tells what the value is, without its elements.
func (v Value) String() string {
	switch {
	case v.IsList:
		return fmt.Sprintf("a sequence of %d", len(v.List))
	case v.Tensor != nil:
		return v.Tensor.String()
	}
	return "nothing"
}

// Kernel computes an operator of a custom domain: a value for each of its results, from one for each of its operands. Its
// attributes are those of the op.
type Kernel func(o *ssa.Op, operands []Value) ([]Value, error)

// Interpreter runs modules. The zero value is ready for use.
type Interpreter struct {
	// Observe, if set, is called after each op, in blocks of control flow too.
	// An error stops the run.
	Observe func(o *ssa.Op, in, out []Value) error
	// Kernels compute operators that are not ONNX's own, by their kind.
	Kernels map[ssa.Kind]Kernel
	// Seed starts the generator of the random operators: Philox 4x32 with 10 rounds. What an element gets follows from the seed, the
	// name of the operator's result, how often the operator has drawn before, and the number of the element.
	Seed uint64
	// Drawn counts how often each random operator has drawn, over several runs; nil counts anew in each run.
	Drawn map[*ssa.Op]int64
	// MaxTrips bounds the iterations of a loop; 0 means 1<<31.
	MaxTrips int64
	// MaxOps bounds the operators of a run, those of each iteration counted; 0 means 1<<22, some seconds, times the module's
	// Budget.
	MaxOps int64
}

// Run runs the module's main function. Inputs go by name; a missing one is what the module holds for it, and an
// error if that is nothing and it is used. The opset is that of the module, the newest if it has none.
func Run(m *ssa.Module, inputs map[string]Value) ([]Value, error) {
	return (&Interpreter{}).Run(m, inputs)
}

// Run runs the module's main function on inputs by name.
func (in *Interpreter) Run(m *ssa.Module, inputs map[string]Value) ([]Value, error) {
	f := m.Main()
	if f == nil {
		return nil, fmt.Errorf("the module has no function")
	}
	args := make([]Value, len(f.Body.Params))
	for i, p := range f.Body.Params {
		v, ok := inputs[p.Name]
		if t := m.Held(p.Name); !ok && t != nil {
			v, ok = Of(t), true
		}
		if !ok && p.HasUses() {
			return nil, fmt.Errorf("input %q is missing", p.Name)
		}
		args[i] = v
	}
	return in.RunFunc(f, args)
}

// RunFunc runs a function on positional arguments.
func (in *Interpreter) RunFunc(f *ssa.Func, args []Value) ([]Value, error) {
	opset := onnx.DefaultOpset(f.Module())
	if opset == 0 {
		opset = onnx.Newest
	}
	if len(args) != len(f.Body.Params) {
		return nil, fmt.Errorf("%d arguments for %d inputs", len(args), len(f.Body.Params))
	}
	r := &run{Interpreter: in, m: f.Module(), opset: opset, values: make([]Value, f.NumValues()), drawn: in.draws()}
	return r.block(f.Body, args)
}

func (in *Interpreter) draws() map[*ssa.Op]int64 {
	if in.Drawn != nil {
		return in.Drawn
	}
	return map[*ssa.Op]int64{}
}

type run struct {
	*Interpreter
	m      *ssa.Module
	opset  int
	values []Value           // by value ID
	drawn  map[*ssa.Op]int64 // how often each op has drawn numbers
	// outer runs an operator, copied, of which this run computes a copy: the numbers are its own.
	outer  *run
	copied *ssa.Op
	ops    int64 // done so far
}

// block runs a block and gives what it returns. Values that only the block uses are dropped after their last use.
func (r *run) block(b *ssa.Block, args []Value) ([]Value, error) {
	if len(args) != len(b.Params) {
		return nil, fmt.Errorf("a block takes %d values, not %d", len(b.Params), len(args))
	}
	for i, p := range b.Params {
		r.values[p.ID] = args[i]
	}
	left := map[*ssa.Value]int{}
	for o := range b.Ops() {
		for _, v := range o.Results {
			if n, local := localUses(v, b); local {
				left[v] = n
			}
		}
	}
	for o := range b.Ops() {
		if err := r.takeOps(1); err != nil {
			return nil, r.at(o, err)
		}
		in := make([]Value, o.NumOperands())
		for i := range in {
			if v := o.Operand(i); v != nil {
				in[i] = r.values[v.ID]
			}
		}
		out, err := r.op(o, in)
		if err == nil && len(out) < len(o.Results) {
			for _, v := range o.Results[len(out):] {
				if v.HasUses() {
					err = fmt.Errorf("gives %d results of %d", len(out), len(o.Results))
				}
			}
		}
		if err == nil && r.Observe != nil {
			err = r.Observe(o, in, out)
		}
		if err != nil {
			return nil, r.at(o, err)
		}
		for i, v := range o.Results {
			if i < len(out) {
				r.values[v.ID] = out[i]
			}
		}
		for i := range in {
			if v := o.Operand(i); v != nil {
				if n, ok := left[v]; ok {
					if left[v] = n - 1; n == 1 {
						r.values[v.ID] = Value{}
					}
				}
			}
		}
	}
	out := make([]Value, b.NumReturns())
	for i := range out {
		if v := b.Return(i); v != nil {
			out[i] = r.values[v.ID]
		}
	}
	return out, nil
}

// localUses counts the uses of a value by ops of the block; local is false if
// anything else uses it, so that it must be kept.
func localUses(v *ssa.Value, b *ssa.Block) (n int, local bool) {
	for u := range v.Uses() {
		if u.Op() == nil || u.Op().Block() != b {
			return 0, false
		}
		n++
	}
	return n, true
}

func (r *run) at(o *ssa.Op, err error) error {
	where := r.m.Locs.String(o.Loc)
	if where == "" {
		where = r.m.Locs.Frame(o.Loc).Func
	}
	if where != "" {
		where += ": "
	}
	return fmt.Errorf("%s%s: %w", where, o.Kind, err)
}

// custom runs an operator that is not ONNX's own.
func (r *run) custom(o *ssa.Op, in []Value) ([]Value, error) {
	k := r.Kernels[o.Kind]
	if k == nil {
		k = contrib[o.Kind]
	}
	if k == nil {
		return nil, fmt.Errorf("the operator is not ONNX's own, and no kernel is given for it")
	}
	out, err := k(o, in)
	if err == nil && len(out) != len(o.Results) {
		err = fmt.Errorf("its kernel gives %d results of %d", len(out), len(o.Results))
	}
	return out, err
}

func (r *run) op(o *ssa.Op, in []Value) ([]Value, error) {
	if o.Kind.Namespace() != onnx.Namespace {
		return r.custom(o, in)
	}
	if onnx.Rises(o.Kind, r.opset) && o.Kind != "onnx::Scan" { // a copy of the op would lack the body
		return r.raised(o, in)
	}
	if err := r.outsized(o, in); err != nil {
		return nil, err
	}
	if f := special(o.Kind.Name()); f != nil {
		return f(r, o, in)
	}
	ts := make([]*tensor.Tensor, len(in))
	for i, v := range in {
		if v.IsList {
			if o.Kind == "onnx::Identity" {
				return in, nil
			}
			return nil, fmt.Errorf("input %d is a sequence", i)
		}
		ts[i] = v.Tensor
	}
	if o.Kind == "onnx::Identity" && len(in) == 1 {
		return in, nil
	}
	out, err := kernel.Eval(o.Kind, o.Attrs, ts, len(o.Results))
	if err != nil {
		return nil, err
	}
	vs := make([]Value, len(out))
	for i, t := range out {
		vs[i] = Of(t)
	}
	return vs, nil
}
