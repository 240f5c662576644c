package surgery

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// SetAxes makes sizes that a model has built in dynamic: axes names axes of inputs, and axes of the same name have the same size. The size is followed
// through the operators: where a shape has it as a number, as that of a Reshape, the operator computes it. A row of a constant that is there for each element
// of the axis becomes one, if all rows are equal. An operator that the size cannot be followed through is an error, and the module stays as it is.
//
// A number that a program has computed from the size, such as the divisor of a mean that is written as a sum, does not show where it comes from. The
// division of a sum along the axis by a constant is refused; others cannot be seen.
func SetAxes(m *ssa.Module, axes map[string]map[int]string) error {
	f, err := main(m)
	if err != nil {
		return err
	}
	p, err := all.Set.Parse("upgrade,infer-types,fold-constants")
	if err != nil {
		panic(err) // a name of ours is wrong
	}
	newest := m.Clone()
	if _, err := p.Run(newest, nil); err != nil {
		return err
	}
	// Where a Reshape can be read in two ways, both are followed: one that fits all operators is the right one if there is no other.
	var found *growth
	var first error
	tries := [][]bool{nil}
	for at := 0; at < len(tries); at++ {
		if len(tries) > maxReadings {
			return cmp.Or(first, errors.New("its shapes can be read in too many ways"))
		}
		g := &growth{m: newest.Clone(), sizes: map[string]int64{}, at: map[string]element{}, was: map[*ssa.Value]ssa.Type{}, grown: map[*ssa.Value]bool{}, sums: map[*ssa.Value]bool{}, factors: map[string][]sym.Expr{}, readings: tries[at]}
		err := g.run(axes)
		for i := len(tries[at]); i < len(g.readings); i++ {
			tries = append(tries, append(slices.Clone(g.readings[:i]), !g.readings[i]))
		}
		switch {
		case err != nil:
			first = cmp.Or(first, err)
		case found != nil:
			return errors.New("the size cannot be followed: shapes of Reshapes can be read in two ways, and all operators run with both")
		default:
			found = g
		}
	}
	if found == nil {
		return first
	}
	if err := found.apply(f); err != nil {
		return err
	}
	forget(m)
	return nil
}

// growth follows sizes through a copy of a module, in the newest form of its operators.
type growth struct {
	m     *ssa.Module
	sizes map[string]int64        // the sizes that are built in, by the names that they get
	at    map[string]element      // an axis of an input that has the size
	was   map[*ssa.Value]ssa.Type // the types with the sizes that are built in
	grown map[*ssa.Value]bool     // values whose type or content depends on the names
	sums  map[*ssa.Value]bool     // sums along an axis that grows
	edits []edit

	factors  map[string][]sym.Expr // the axes that a size was made of, from the outer to the inner one; nil where that is not the same everywhere
	readings []bool                // of Reshapes that can be read in two ways, in their order
	read     int
}

// run follows the sizes from the inputs on.
func (g *growth) run(axes map[string]map[int]string) error {
	for o := range g.m.Main().Body.AllOps() {
		for _, v := range o.Results {
			g.was[v] = v.Type
		}
	}
	for _, name := range slices.Sorted(maps.Keys(axes)) {
		if err := g.name(name, axes[name]); err != nil {
			return err
		}
	}
	return g.body()
}

// edit is a change of an operand of the operator that has a result of this name.
type edit struct {
	result  string
	operand int
	tensor  *tensor.Tensor // the new constant, or what is expanded
	vector  []element      // the new shape, or that which the tensor is expanded to
}

// element is an element of a shape: a number, or the size of an axis of an input.
type element struct {
	n     int64
	input string
	axis  int
}

// name gives the axes of an input their names.
func (g *growth) name(input string, axes map[int]string) error {
	i := slices.IndexFunc(g.m.Main().Body.Params, func(p *ssa.Value) bool { return p.Name == input })
	if i < 0 {
		return fmt.Errorf("there is no input %s", input)
	}
	p := g.m.Main().Body.Params[i]
	t := p.Tensor()
	if t == nil || !t.Ranked {
		return fmt.Errorf("the shape of input %s is not known", input)
	}
	dims := slices.Clone(t.Dims)
	g.was[p] = p.Type
	for _, axis := range slices.Sorted(maps.Keys(axes)) {
		name := axes[axis]
		if e, err := sym.Parse(name); err != nil {
			return fmt.Errorf("axis %d of %s: %w", axis, input, err)
		} else if only, ok := e.Name(); !ok || only != name {
			return fmt.Errorf("axis %d of %s: %q is no name of an axis", axis, input, name)
		}
		if axis < 0 || axis >= len(dims) {
			return fmt.Errorf("input %s has %d axes, and no axis %d", input, len(dims), axis)
		}
		n, ok := dims[axis].Int()
		if !ok {
			return fmt.Errorf("axis %d of %s is dynamic already: %v", axis, input, dims[axis])
		}
		if have, ok := g.sizes[name]; ok && have != n {
			return fmt.Errorf("%s would be of size %d and of size %d", name, have, n)
		}
		g.sizes[name] = n
		if _, ok := g.at[name]; !ok {
			g.at[name] = element{input: input, axis: axis}
		}
		dims[axis] = sym.Symbol(name, 0)
	}
	p.Type = ssa.Tensor(t.DType, dims...)
	g.grown[p] = true
	return nil
}

// named reports a size that depends on the names.
func (g *growth) named(e sym.Expr) bool {
	found := false
	e.Symbols(func(name string) {
		if _, ok := g.sizes[name]; ok {
			found = true
		}
	})
	return found
}

// builtIn is a size with the numbers that were built in.
func (g *growth) builtIn(e sym.Expr) sym.Expr {
	return e.Subst(func(name string) (sym.Expr, bool) {
		n, ok := g.sizes[name]
		return sym.Const(n), ok
	})
}

// body follows the sizes through the operators in their order.
func (g *growth) body() error {
	for _, o := range slices.Collect(g.m.Main().Body.Ops()) {
		reads := slices.ContainsFunc(o.Operands(), func(v *ssa.Value) bool { return v != nil && (g.grown[v] || g.sums[v]) })
		for _, b := range o.Blocks {
			for inner := range b.AllOps() {
				reads = reads || slices.ContainsFunc(inner.Operands(), func(v *ssa.Value) bool { return v != nil && g.grown[v] })
			}
			reads = reads || slices.ContainsFunc(b.Returns(), func(v *ssa.Value) bool { return v != nil && g.grown[v] })
		}
		if !reads {
			continue
		}
		if err := g.follow(o); err != nil {
			at := o.Kind.Name()
			if name := resultName(o); name != "" {
				at += " " + name
			}
			return fmt.Errorf("the size cannot be followed through %s: %w", at, err)
		}
		for _, r := range o.Results {
			t := r.Tensor()
			g.grown[r] = t == nil || slices.ContainsFunc(t.Dims, g.named) || slices.ContainsFunc(r.Sym, g.named)
		}
	}
	return nil
}

// resultName is the first name among the results of an operator.
func resultName(o *ssa.Op) string {
	for _, r := range o.Results {
		if r.Name != "" {
			return r.Name
		}
	}
	return ""
}

func (g *growth) follow(o *ssa.Op) error {
	if o.Kind.Namespace() != onnx.Namespace {
		return errors.New("it is no operator of ONNX")
	}
	if len(o.Blocks) > 0 {
		return errors.New("it has a body")
	}
	if err := g.selects(o); err != nil {
		return err
	}
	switch o.Kind.Name() {
	case "Reshape":
		return g.reshape(o)
	case "Expand":
		if shape, ok := constInts(o.Operand(1)); ok {
			if err := g.expand(o, shape); err != nil {
				return err
			}
		}
	case "Slice":
		if err := g.slice(o); err != nil {
			return err
		}
	case "Resize":
		if err := g.resize(o); err != nil {
			return err
		}
	case "LSTM", "GRU", "RNN":
		if err := g.states(o); err != nil {
			return err
		}
	case "ReduceSum":
		if axes, ok := constInts(o.Operand(1)); !ok || slices.ContainsFunc(axes, func(a int64) bool { return g.namedAxis(o.Operand(0), int(a)) }) {
			g.sums[o.Result(0)] = true
		}
	case "Mul", "Div":
		for i := range 2 {
			if t := onnx.ConstOf(o.Operand(1 - i)); g.sums[o.Operand(i)] && t != nil && t.NumElements() == 1 {
				return errors.New("it scales a sum along the axis by a number, which may be the size")
			}
		}
	}
	err := g.infer(o)
	if err == nil {
		return nil
	}
	if g.shrink(o) || o.Kind.Name() == "Concat" && g.spread(o) {
		return nil
	}
	return err
}

// infer finds the types of the results, which must be those that they were for the sizes that were built in.
func (g *growth) infer(o *ssa.Op) error {
	var bad error
	for _, r := range o.Results {
		r.Type = ssa.AnyTensor
	}
	err := onnx.InferWith(o, func(_ *ssa.Block, x, y sym.Expr, _ bool) {
		if bad == nil && (g.named(x) || g.named(y)) {
			bad = fmt.Errorf("%v must be %v there", x, y)
		}
	})
	if err != nil {
		var failed *onnx.InferError
		if errors.As(err, &failed) {
			return failed.Err
		}
		return err
	}
	if bad != nil {
		return bad
	}
	for _, r := range o.Results {
		now, before := r.Tensor(), ssa.AsTensor(g.was[r])
		if now == nil || before == nil || !before.Ranked {
			continue
		}
		if !now.Ranked || len(now.Dims) != len(before.Dims) {
			return errors.New("its result would have another rank")
		}
		for i, d := range now.Dims {
			old := before.Dims[i]
			if !g.builtIn(d).Equal(old) && !d.Equal(old) && (old.IsConst() || g.named(d)) {
				return fmt.Errorf("axis %d of its result would be %v, and was %v", i, d, old)
			}
		}
	}
	return nil
}

// constInts is the content of a constant vector of integers.
func constInts(v *ssa.Value) ([]int64, bool) {
	s, ok := onnx.SymOf(v)
	if !ok {
		return nil, false
	}
	out := make([]int64, len(s))
	for i, e := range s {
		if out[i], ok = e.Int(); !ok {
			return nil, false
		}
	}
	return out, true
}

// namedAxis reports an axis of a value that grows. Negative axes count from the end.
func (g *growth) namedAxis(v *ssa.Value, axis int) bool {
	t := v.Tensor()
	if t == nil || !t.Ranked {
		return false
	}
	if axis < 0 {
		axis += len(t.Dims)
	}
	return axis >= 0 && axis < len(t.Dims) && g.named(t.Dims[axis])
}

// size is the size of an axis that was built in.
func (g *growth) size(v *ssa.Value, axis int) int64 {
	t := v.Tensor()
	if axis < 0 {
		axis += len(t.Dims)
	}
	n, _ := g.builtIn(t.Dims[axis]).Int()
	return n
}

// change makes an operand another constant, shape, or an expanded constant, here and later in the model itself.
func (g *growth) change(o *ssa.Op, e edit) error {
	e.result = resultName(o)
	if e.result == "" {
		return errors.New("none of its results has a name")
	}
	for _, made := range e.place(o, g.m.Main()) {
		if err := onnx.InferWith(made, nil); err != nil {
			return err
		}
		for _, r := range made.Results {
			g.was[r], g.grown[r] = r.Type, len(e.vector) > 0
		}
	}
	g.edits = append(g.edits, e)
	return nil
}

// place makes the operators of an edit, and gives them in their order.
func (e edit) place(o *ssa.Op, f *ssa.Func) []*ssa.Op {
	var made []*ssa.Op
	add := func(kind ssa.Kind, attrs []ssa.Attr, operands ...*ssa.Value) *ssa.Value {
		op := o.Block().InsertBefore(o, kind, o.Loc, operands, ssa.AnyTensor)
		op.Attrs = attrs
		made = append(made, op)
		return op.Result(0)
	}
	constant := func(t *tensor.Tensor) *ssa.Value {
		v := add("onnx::Constant", []ssa.Attr{{Name: "value", Value: ssa.TensorValue(t)}})
		v.Type = ssa.TensorOf(t)
		return v
	}
	ints := func(n ...int64) *ssa.Value { return constant(tensor.Ints(n...)) }
	value := func() *ssa.Value {
		if len(e.vector) == 0 {
			return constant(e.tensor)
		}
		var parts []*ssa.Value
		var numbers []int64
		flush := func() {
			if len(numbers) > 0 {
				parts = append(parts, ints(numbers...))
				numbers = nil
			}
		}
		for _, x := range e.vector {
			if x.input == "" {
				numbers = append(numbers, x.n)
				continue
			}
			flush()
			i := slices.IndexFunc(f.Body.Params, func(p *ssa.Value) bool { return p.Name == x.input })
			shape := add("onnx::Shape", nil, f.Body.Params[i])
			shape.Type = ssa.Tensor(tensor.Int64, sym.Const(int64(len(f.Body.Params[i].Tensor().Dims))))
			part := add("onnx::Gather", []ssa.Attr{{Name: "axis", Value: ssa.Int(0)}}, shape, ints(int64(x.axis)))
			part.Type = ssa.Tensor(tensor.Int64, sym.Const(1))
			parts = append(parts, part)
		}
		flush()
		shape := parts[0]
		if len(parts) > 1 {
			shape = add("onnx::Concat", []ssa.Attr{{Name: "axis", Value: ssa.Int(0)}}, parts...)
			shape.Type = ssa.Tensor(tensor.Int64, sym.Const(int64(len(e.vector))))
		}
		if e.tensor == nil {
			return shape
		}
		return add("onnx::Expand", nil, constant(e.tensor), shape)
	}()
	o.SetOperand(e.operand, value)
	return made
}

// apply makes the changes in the model itself, and gives its values the types that were found.
func (g *growth) apply(f *ssa.Func) error {
	types, ops := map[string]ssa.Type{}, map[string]*ssa.Op{}
	c := g.m.Main()
	for o := range c.Body.Ops() {
		for _, r := range o.Results {
			if types[r.Name] = g.was[r]; g.grown[r] {
				types[r.Name] = r.Type
			}
		}
	}
	for o := range f.Body.Ops() {
		for _, r := range o.Results {
			if r.Name != "" {
				ops[r.Name] = o
			}
		}
	}
	for _, e := range g.edits {
		if o := ops[e.result]; o == nil || e.operand >= o.NumOperands() {
			return fmt.Errorf("the size cannot be followed through %s: at this opset it has the shape as an attribute; bring the model to a newer one first", e.result)
		}
	}
	changed := map[*ssa.Value]bool{}
	for i, p := range f.Body.Params {
		now := c.Body.Params[i].Type
		changed[p] = !ssa.SameType(p.Type, now)
		p.Type = now
	}
	for o := range f.Body.Ops() {
		reads := slices.ContainsFunc(o.Operands(), func(v *ssa.Value) bool { return v != nil && changed[v] })
		for _, r := range o.Results {
			if changed[r] = reads; !reads {
				continue
			}
			if t, known := types[r.Name]; known && r.Name != "" {
				r.Type = t
			} else { // between operators of the newest opset there is no such value
				r.Type = ssa.AnyTensor
			}
		}
	}
	var unread []*ssa.Value
	for _, e := range g.edits {
		unread = append(unread, ops[e.result].Operand(e.operand))
		e.place(ops[e.result], f)
	}
	for _, v := range unread {
		if o := v.Def(); o != nil {
			ssa.EraseChain(o, func(*ssa.Op) bool { return true })
		}
	}
	for i := range f.Body.NumReturns() {
		if v := c.Body.Return(i); g.grown[v] {
			f.Body.Return(i).Type = v.Type
		}
	}
	return nil
}
