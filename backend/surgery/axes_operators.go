package surgery

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// selects refuses operators that choose elements along an axis that grows, or have a weight for each: that is for the size that was built in.
func (g *growth) selects(o *ssa.Op) error {
	x := o.Operand(0)
	if x == nil || x.Tensor() == nil || !x.Tensor().Ranked {
		return nil
	}
	rank := len(x.Tensor().Dims)
	for _, a := range onnx.Weighed(o, rank) {
		if g.namedAxis(x, a) {
			return fmt.Errorf("it has a number for each element along axis %d", a)
		}
	}
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
	case "AveragePool", "MaxPool", "LpPool":
		for i, k := range o.AttrInts("kernel_shape") {
			if g.namedAxis(x, i+2) && k >= g.size(x, i+2) {
				return fmt.Errorf("its window is all of axis %d", i+2)
			}
		}
	}
	return nil
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
	return g.change(o, edit{operand: 1, tensor: tensor.Ints(now...)})
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
	return g.change(o, edit{operand: 2, tensor: tensor.Ints(numbers...)})
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
