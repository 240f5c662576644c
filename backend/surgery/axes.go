package surgery

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
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
	for tries := [][]bool{nil}; len(tries) > 0; tries = tries[1:] {
		if len(tries) > maxReadings {
			return cmp.Or(first, errors.New("its shapes can be read in too many ways"))
		}
		g := &growth{m: newest.Clone(), sizes: map[string]int64{}, at: map[string]element{}, was: map[*ssa.Value]ssa.Type{}, grown: map[*ssa.Value]bool{}, sums: map[*ssa.Value]bool{}, factors: map[string][]sym.Expr{}, readings: tries[0]}
		err := g.run(axes)
		for i := len(tries[0]); i < len(g.readings); i++ {
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

// maxReadings bounds the ways in which a model is read.
const maxReadings = 64

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

// left says how a Reshape is read that joins an axis of size 1 to one of its neighbours: to the left one.
func (g *growth) left() bool {
	if g.read == len(g.readings) {
		g.readings = append(g.readings, false)
	}
	g.read++
	return g.readings[g.read-1]
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

// selects refuses operators that choose elements along an axis that grows, or have a weight for each: that is for the size that was built in.
func (g *growth) selects(o *ssa.Op) error {
	x := o.Operand(0)
	if x == nil || x.Tensor() == nil || !x.Tensor().Ranked {
		return nil
	}
	rank := len(x.Tensor().Dims)
	switch o.Kind.Name() {
	case "Squeeze":
		axes, ok := constInts(o.Operand(1))
		for a := range rank {
			if g.namedAxis(x, a) && (!ok && g.size(x, a) == 1 || slices.Contains(axes, int64(a)) || slices.Contains(axes, int64(a-rank))) {
				return fmt.Errorf("it removes axis %d, which would have more than one element", a)
			}
		}
	case "Split", "SplitToSequence", "TopK", "Compress":
		axis := int(o.AttrInt("axis", map[bool]int64{true: -1}[o.Kind.Name() == "TopK"]))
		if g.namedAxis(x, axis) {
			return fmt.Errorf("it takes parts along axis %d", axis)
		}
	case "Gather":
		axis := int(o.AttrInt("axis", 0))
		if !g.namedAxis(x, axis) || g.grown[o.Operand(1)] {
			return nil
		}
		t := onnx.ConstOf(o.Operand(1))
		if t == nil || t.NumElements() != 1 || t.Int64s()[0] > 0 || g.size(x, axis) == 1 {
			return fmt.Errorf("it takes elements along axis %d", axis)
		}
	case "GatherND", "GatherElements", "ScatterND", "ScatterElements", "Scatter":
		if g.grown[x] && !g.grown[o.Operand(1)] {
			return errors.New("its indices are for the size that is built in")
		}
	case "Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "DeformConv", "BatchNormalization", "InstanceNormalization", "GroupNormalization", "LRN":
		if g.namedAxis(x, 1) {
			return errors.New("its weights are for a number of channels")
		}
	case "LayerNormalization", "RMSNormalization":
		for a := int(o.AttrInt("axis", -1)); a < 0; a++ {
			if g.namedAxis(x, a) {
				return errors.New("its scale has an element for each of the axis")
			}
		}
		if a := int(o.AttrInt("axis", -1)); a >= 0 && slices.ContainsFunc(x.Tensor().Dims[min(a, rank):], g.named) {
			return errors.New("its scale has an element for each of the axis")
		}
	case "AveragePool", "MaxPool", "LpPool":
		for i, k := range o.AttrInts("kernel_shape") {
			if g.namedAxis(x, i+2) && k >= g.size(x, i+2) {
				return fmt.Errorf("its window is all of axis %d", i+2)
			}
		}
	case "LSTM", "GRU", "RNN":
		if g.namedAxis(x, 2) {
			return errors.New("its weights are for a number of features")
		}
	}
	return nil
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
	ints := func(n ...int64) *ssa.Value { return constant(tensor.Of(tensor.Int64, []int64{int64(len(n))}, n)) }
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

// drop removes what computes a value that nobody reads any more.
func drop(v *ssa.Value) {
	o := v.Def()
	if o == nil || o.Block() == nil || slices.ContainsFunc(o.Results, (*ssa.Value).HasUses) {
		return
	}
	read := o.Operands()
	o.Erase()
	for _, v := range read {
		if v != nil && !v.HasUses() {
			drop(v)
		}
	}
}

// reshape gives the shape of a Reshape the sizes that its operand has now.
func (g *growth) reshape(o *ssa.Op) error {
	x, before := o.Operand(0).Tensor(), ssa.AsTensor(g.was[o.Result(0)])
	err := g.infer(o)
	shape, constant := constInts(o.Operand(1))
	var dims []sym.Expr // with the axes that were joined before
	for _, d := range x.Dims {
		if f := g.factors[d.String()]; f != nil {
			dims = append(dims, f...)
		} else {
			dims = append(dims, d)
		}
	}
	was, known := numbers(dims, g.builtIn)
	if before == nil || !before.Ranked || !known {
		return err
	}
	out, known := numbers(before.Dims, g.builtIn)
	if !known {
		return err
	}
	want, parts, ok := regroup(dims, was, out, g.named, g.left)
	if !ok && !constant && err == nil {
		return nil
	}
	if !ok {
		return fmt.Errorf("there is no telling which size of %v grows with %v", out, x)
	}
	for k, part := range parts {
		key := want[k].String()
		if have, ok := g.factors[key]; ok && !slices.EqualFunc(have, part, sym.Expr.Equal) {
			part = nil
		}
		g.factors[key] = part
	}
	if err == nil && slices.EqualFunc(o.Result(0).Tensor().Dims, want, sym.Expr.Equal) {
		return nil
	}
	if !constant {
		return cmp.Or(err, fmt.Errorf("its shape is computed, and gives %v", o.Result(0).Type))
	}
	vector, err := g.vector(want, x.Dims, o.AttrInt("allowzero", 0) == 0)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(vector, func(e element) bool { return e.input != "" }) {
		err = g.change(o, edit{operand: 1, vector: vector})
	} else {
		for i, e := range vector {
			shape[i] = e.n
		}
		err = g.change(o, edit{operand: 1, tensor: tensor.Of(tensor.Int64, []int64{int64(len(shape))}, shape)})
	}
	return cmp.Or(err, g.infer(o))
}

// numbers are sizes that were built in as numbers.
func numbers(dims []sym.Expr, builtIn func(sym.Expr) sym.Expr) ([]int64, bool) {
	out := make([]int64, len(dims))
	for i, d := range dims {
		n, ok := builtIn(d).Int()
		if !ok || n < 1 {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

// vector is a shape as a Reshape takes it: with -1, and 0 for what stays in its place.
func (g *growth) vector(want, in []sym.Expr, zeros bool) ([]element, error) {
	hole := -1
	for i, e := range want {
		if g.named(e) {
			if _, lone := e.Name(); !lone {
				if hole >= 0 {
					return nil, errors.New("two sizes of its shape would be computed")
				}
				hole = i
			}
		}
	}
	for i := len(want) - 1; i >= 0 && hole < 0; i-- {
		if g.named(want[i]) {
			hole = i
		}
	}
	out := make([]element, len(want))
	for i, e := range want {
		n, number := e.Int()
		switch name, _ := e.Name(); {
		case i == hole:
			out[i].n = -1
		case number:
			out[i].n = n
		case zeros && i < len(in) && in[i].Equal(e):
			out[i].n = 0
		case g.named(e):
			out[i] = g.at[name]
		default:
			return nil, fmt.Errorf("the size %v of its shape cannot be written as a number", e)
		}
	}
	return out, nil
}

// regroup finds the sizes of a reshaped tensor, of shape in now, was before, and out then. Both shapes are cut into the smallest groups of axes that have the
// same elements. An axis that grows stays an axis where it can; in a group of several it must be the outermost or the innermost one, and that of the result grows. An
// axis of size 1 is no part of a larger one where the result has a 1 elsewhere: there a Reshape may do the work of a Transpose. One between two groups is a part
// of the left one or of the right one, as left says.
func regroup(in []sym.Expr, was, out []int64, named func(sym.Expr) bool, left func() bool) (res []sym.Expr, parts map[int][]sym.Expr, ok bool) {
	res, parts = make([]sym.Expr, len(out)), map[int][]sym.Expr{} // parts: what axes that grow were made of
	for i, n := range out {
		res[i] = sym.Const(n)
	}
	merged := false // an axis of size 1 has become a part of a larger one
	for i, j := 0, 0; i < len(was) || j < len(out); {
		// axes of size 1, between the groups
		var ones, growing, places []int
		for ; i < len(was) && was[i] == 1; i++ {
			if named(in[i]) {
				growing = append(growing, len(ones))
			}
			ones = append(ones, i)
		}
		for ; j < len(out) && out[j] == 1; j++ {
			places = append(places, j)
		}
		var carry []sym.Expr // what becomes a part of the next group
		switch {
		case len(growing) == 0:
		case len(ones) == len(places):
			for _, k := range growing {
				res[places[k]] = in[ones[k]]
			}
		case len(places) == 0:
			merged = true
			for _, k := range growing {
				carry = append(carry, in[ones[k]])
			}
			if j > 0 && (i == len(was) || left()) {
				if parts[j-1] == nil {
					parts[j-1] = []sym.Expr{res[j-1]}
				}
				parts[j-1] = append(parts[j-1], carry...)
				res[j-1], carry = times(parts[j-1]), nil
			}
		case len(growing) == 1 && growing[0] == 0:
			res[places[0]] = in[ones[0]]
		case len(growing) == 1 && growing[0] == len(ones)-1:
			res[places[len(places)-1]] = in[ones[len(ones)-1]]
		default:
			return nil, nil, false
		}
		if i == len(was) && j == len(out) && carry == nil {
			break
		}
		if i == len(was) || j == len(out) {
			return nil, nil, false
		}
		group, first, at := carry, i, j
		p, q := was[i], out[j]
		for i, j = i+1, j+1; p != q; {
			switch {
			case p < q && i < len(was):
				p *= was[i]
				i++
			case q < p && j < len(out):
				q *= out[j]
				j++
			default:
				return nil, nil, false
			}
		}
		for k := first; k < i; k++ {
			group = append(group, in[k])
			merged = merged || named(in[k]) && was[k] == 1
		}
		total, grows := times(group), 0
		for _, e := range group {
			if named(e) {
				grows++
			}
		}
		to := at // the axis that grows
		switch {
		case grows == 0:
			continue
		case j == at+1:
			if res[at] = total; len(group) > 1 {
				parts[at] = group
			}
			continue
		case grows > 1:
			return nil, nil, false
		case named(group[0]):
		case named(group[len(group)-1]):
			to = j - 1
		default:
			return nil, nil, false
		}
		rest := int64(1)
		for k := at; k < j; k++ {
			if k != to {
				rest *= out[k]
			}
		}
		if res[to], ok = total.Divide(sym.Const(rest)); !ok {
			return nil, nil, false
		}
		outer := group[0]
		if to != at {
			outer = group[len(group)-1]
		}
		if inner, ok := res[to].Divide(outer); ok && !inner.Is(1) {
			if parts[to] = []sym.Expr{outer, inner}; to != at {
				slices.Reverse(parts[to])
			}
		}
	}
	free := slices.ContainsFunc(res, func(e sym.Expr) bool { return e.Is(1) })
	return res, parts, !(merged && free)
}

// times is the product of sizes.
func times(list []sym.Expr) sym.Expr {
	out := sym.Const(1)
	for _, e := range list {
		out = out.Mul(e)
	}
	return out
}

// expand lets an Expand keep the axes that grow.
func (g *growth) expand(o *ssa.Op, shape []int64) error {
	x := o.Operand(0).Tensor()
	if x == nil || !x.Ranked {
		return nil
	}
	now := slices.Clone(shape)
	for i := range x.Dims {
		if at := len(shape) - len(x.Dims) + i; at >= 0 && g.named(x.Dims[i]) {
			now[at] = 1
		}
	}
	if slices.Equal(now, shape) {
		return nil
	}
	return g.change(o, edit{operand: 1, tensor: tensor.Of(tensor.Int64, []int64{int64(len(now))}, now)})
}

// slice lets a Slice that ends with an axis end with it. One that takes a part of it in numbers is an error, but for the first element.
func (g *growth) slice(o *ssa.Op) error {
	x := o.Operand(0).Tensor()
	starts, ok1 := onnx.SymOf(o.Operand(1))
	ends, ok2 := onnx.SymOf(o.Operand(2))
	if x == nil || !x.Ranked || !ok1 || !ok2 || len(starts) != len(ends) {
		return nil
	}
	axes, steps := make([]int64, len(starts)), make([]int64, len(starts))
	for i := range axes {
		axes[i], steps[i] = int64(i), 1
	}
	for k, list := range map[int]*[]int64{3: &axes, 4: &steps} {
		if v := o.Operand(k); v != nil {
			c, ok := constInts(v)
			if !ok || len(c) != len(starts) {
				return errors.New("its axes or steps are computed")
			}
			*list = c
		}
	}
	numbers, changed := make([]int64, len(ends)), false
	for i, a := range axes {
		end, known := ends[i].Int()
		numbers[i] = end
		if !g.namedAxis(o.Operand(0), int(a)) || !known {
			continue
		}
		start, fixed := starts[i].Int()
		n := g.size(o.Operand(0), int(a))
		switch {
		case !fixed, steps[i] < 0 && (end >= 0 || start >= 0 && start < n-1):
			return fmt.Errorf("it takes a part of axis %d", a)
		case steps[i] < 0, end < 0, end >= math.MaxInt32, start == 0 && end == 1 && n > 1:
		case end >= n:
			numbers[i], changed = math.MaxInt64, true
		default:
			return fmt.Errorf("it takes a part of axis %d, up to %d", a, end)
		}
	}
	if !changed {
		return nil
	}
	if _, ok := constInts(o.Operand(2)); !ok {
		return errors.New("its ends are computed")
	}
	return g.change(o, edit{operand: 2, tensor: tensor.Of(tensor.Int64, []int64{int64(len(numbers))}, numbers)})
}

// resize lets a Resize to a size keep the axes that grow. One that changes them to a number is an error.
func (g *growth) resize(o *ssa.Op) error {
	x := o.Operand(0).Tensor()
	sizes, ok := constInts(o.Operand(3))
	if !ok || x == nil || !x.Ranked {
		return nil
	}
	vector, changed := make([]element, len(sizes)), false
	for i, n := range sizes {
		axis := i
		if axes := o.AttrInts("axes"); i < len(axes) {
			axis = int(axes[i])
		}
		vector[i].n = n
		if !g.namedAxis(o.Operand(0), axis) {
			continue
		}
		name, lone := x.Dims[(axis+len(x.Dims))%len(x.Dims)].Name()
		if !lone || g.size(o.Operand(0), axis) != n {
			return fmt.Errorf("it makes axis %d of size %d", axis, n)
		}
		vector[i], changed = g.at[name], true
	}
	if !changed {
		return nil
	}
	return g.change(o, edit{operand: 3, vector: vector})
}

// states expands the constant states that a recurrent operator begins with.
func (g *growth) states(o *ssa.Op) error {
	batch := 1 - int(o.AttrInt("layout", 0))
	for k := 5; k <= 6 && k < o.NumOperands(); k++ {
		t := onnx.ConstOf(o.Operand(k))
		if !g.namedAxis(o.Operand(0), batch) || o.Operand(k) == nil || o.Kind.Name() != "LSTM" && k == 6 {
			continue
		}
		if t == nil {
			if !g.grown[o.Operand(k)] {
				return errors.New("the state that it begins with is for the size that is built in")
			}
			continue
		}
		if err := g.spreadAlong(o, k, 1-int(o.AttrInt("layout", 0)), o.Operand(0).Tensor().Dims[batch]); err != nil {
			return err
		}
	}
	return nil
}

// shrink replaces constants that have equal rows for each element of an axis by one row, where the operands are broadcast.
func (g *growth) shrink(o *ssa.Op) bool {
	before := ssa.AsTensor(g.was[o.Result(0)])
	if before == nil || !before.Ranked {
		return false
	}
	for k, v := range o.Operands() {
		t := onnx.ConstOf(v)
		if t == nil || len(t.Shape) == 0 {
			continue
		}
		for axis := range t.Shape {
			place := len(before.Dims) - len(t.Shape) + axis
			if place < 0 || t.Shape[axis] == 1 || !before.Dims[place].Is(t.Shape[axis]) {
				continue
			}
			row, ok := oneRow(t, axis)
			if !ok {
				continue
			}
			trial := o.Block().InsertBefore(o, "onnx::Constant", o.Loc, nil, ssa.TensorOf(row))
			trial.SetAttr("value", ssa.TensorValue(row))
			o.SetOperand(k, trial.Result(0))
			err := g.infer(o)
			o.SetOperand(k, v)
			trial.Erase()
			if err == nil {
				return g.change(o, edit{operand: k, tensor: row}) == nil && g.infer(o) == nil
			}
		}
	}
	return false
}

// spread expands the constants of a Concat, such as a token that stands before each sequence of a batch.
func (g *growth) spread(o *ssa.Op) bool {
	axis := int(o.AttrInt("axis", 0))
	rank := -1
	for _, v := range o.Operands() {
		if t := v.Tensor(); t != nil && t.Ranked {
			rank = len(t.Dims)
		}
	}
	if axis < 0 {
		axis += rank
	}
	for a := range rank {
		var grows sym.Expr
		for _, v := range o.Operands() {
			if g.namedAxis(v, a) && a != axis {
				grows = v.Tensor().Dims[a]
			}
		}
		if !g.named(grows) {
			continue
		}
		for k, v := range o.Operands() {
			if onnx.ConstOf(v) != nil && g.spreadAlong(o, k, a, grows) != nil || !g.grown[v] && v.Def() != nil && v.Def().Kind == "onnx::Expand" && !g.widen(v.Def(), a, grows) {
				return false
			}
		}
	}
	return g.infer(o) == nil
}

// widen lets an Expand of a weight, which has one reader, give an axis another size.
func (g *growth) widen(o *ssa.Op, axis int, to sym.Expr) bool {
	name, lone := to.Name()
	shape, ok := constInts(o.Operand(1))
	x := o.Operand(0).Tensor()
	if !lone || !ok || !o.Result(0).HasOneUse() || axis >= len(shape) || x == nil || !x.Ranked {
		return false
	}
	if at := axis - len(shape) + len(x.Dims); at >= 0 && !x.Dims[at].Is(1) {
		return false
	}
	vector := make([]element, len(shape))
	for i, n := range shape {
		vector[i].n = n
	}
	vector[axis] = g.at[name]
	if g.change(o, edit{operand: 1, vector: vector}) != nil || g.infer(o) != nil {
		return false
	}
	g.grown[o.Result(0)] = true
	return true
}

// spreadAlong expands a constant operand along an axis.
func (g *growth) spreadAlong(o *ssa.Op, k, axis int, to sym.Expr) error {
	name, lone := to.Name()
	row, ok := oneRow(onnx.ConstOf(o.Operand(k)), axis)
	if !lone || !ok {
		return errors.New("a constant that it reads is for the size that is built in")
	}
	vector := make([]element, len(row.Shape))
	for i := range vector {
		vector[i].n = row.Shape[i]
	}
	vector[axis] = g.at[name]
	return g.change(o, edit{operand: k, tensor: row, vector: vector})
}

// oneRow is a tensor with the first of the rows along an axis, if all are equal.
func oneRow(t *tensor.Tensor, axis int) (*tensor.Tensor, bool) {
	if !t.HasData() || t.DType.Size() == 0 || t.Shape[axis] == 0 {
		return nil, false
	}
	inner := int64(t.DType.Size())
	for _, n := range t.Shape[axis+1:] {
		inner *= n
	}
	b, n := t.Bytes(), t.Shape[axis]
	var out []byte
	for at := int64(0); at < int64(len(b)); at += inner * n {
		row := b[at : at+inner]
		for k := int64(1); k < n; k++ {
			if string(b[at+k*inner:at+(k+1)*inner]) != string(row) {
				return nil, false
			}
		}
		out = append(out, row...)
	}
	shape := slices.Clone(t.Shape)
	shape[axis] = 1
	return tensor.New(t.DType, shape, out), true
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
		drop(v)
	}
	for i := range f.Body.NumReturns() {
		if v := c.Body.Return(i); g.grown[v] {
			f.Body.Return(i).Type = v.Type
		}
	}
	return nil
}
