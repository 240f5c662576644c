package interp

import (
	"fmt"
	"math"
	"slices"

	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

type operator func(r *run, o *ssa.Op, in []Value) ([]Value, error)

// special finds operators that are more than a function of tensors.
func special(name string) operator {
	switch name {
	case "If":
		return runIf
	case "Loop":
		return runLoop
	case "Scan":
		return runScan
	case "SequenceMap":
		return runSequenceMap
	case "SequenceEmpty", "SequenceConstruct", "SequenceInsert", "SequenceErase", "SequenceAt", "SequenceLength", "SplitToSequence", "ConcatFromSequence":
		return runSequence
	case "Optional", "OptionalHasElement", "OptionalGetElement":
		return runOptional
	case "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial":
		return runRandom
	case "Dropout":
		return runDropout
	}
	return nil
}

func truth(v Value) (bool, error) {
	if v.Tensor == nil || v.Tensor.DType != tensor.Bool || v.Tensor.NumElements() != 1 {
		return false, fmt.Errorf("the condition is %v", v)
	}
	return v.Tensor.Int64s()[0] != 0, nil
}

func runIf(r *run, o *ssa.Op, in []Value) ([]Value, error) {
	if len(in) != 1 || len(o.Blocks) != 2 {
		return nil, fmt.Errorf("needs a condition and two branches")
	}
	c, err := truth(in[0])
	if err != nil {
		return nil, err
	}
	if c {
		return r.block(o.Blocks[0], nil)
	}
	return r.block(o.Blocks[1], nil)
}

func runLoop(r *run, o *ssa.Op, in []Value) ([]Value, error) {
	if len(o.Blocks) != 1 {
		return nil, fmt.Errorf("needs a body")
	}
	limit := r.MaxTrips
	if limit == 0 {
		limit = 1 << 31
	}
	trips := int64(math.MaxInt64)
	if len(in) > 0 && in[0].Tensor != nil {
		if in[0].Tensor.NumElements() != 1 {
			return nil, fmt.Errorf("the trip count is %v", in[0])
		}
		trips = in[0].Tensor.Int64s()[0]
	}
	cond := true
	if len(in) > 1 && in[1].Tensor != nil {
		var err error
		if cond, err = truth(in[1]); err != nil {
			return nil, err
		}
	}
	var carried []Value
	if len(in) > 2 {
		carried = slices.Clone(in[2:])
	}
	scans := make([][]*tensor.Tensor, max(0, len(o.Results)-len(carried)))
	for i := int64(0); i < trips && cond; i++ {
		if i >= limit {
			return nil, fmt.Errorf("more than %d iterations", limit)
		}
		if err := r.takeOps(1); err != nil { // a body may have no operators
			return nil, err
		}
		args := append([]Value{Of(tensor.ScalarInt(i)), Of(tensor.FullInt(tensor.Bool, []int64{}, 1))}, carried...)
		out, err := r.block(o.Blocks[0], args)
		if err != nil {
			return nil, err
		}
		if len(out) != 1+len(carried)+len(scans) {
			return nil, fmt.Errorf("the body returns %d values", len(out))
		}
		if cond, err = truth(out[0]); err != nil {
			return nil, err
		}
		carried = out[1 : 1+len(carried)]
		for k := range scans {
			if out[1+len(carried)+k].Tensor == nil {
				return nil, fmt.Errorf("a scan output is %v", out[1+len(carried)+k])
			}
			scans[k] = append(scans[k], out[1+len(carried)+k].Tensor)
		}
	}
	out := slices.Clone(carried)
	for k, s := range scans {
		t, err := stack(s, 0, o.Blocks[0].Return(1+len(carried)+k))
		if err != nil {
			return nil, err
		}
		out = append(out, Of(t))
	}
	return out, nil
}

// stack joins tensors along a new axis; without any, the value in the body tells the rest of the shape.
func stack(ts []*tensor.Tensor, axis int, v *ssa.Value) (*tensor.Tensor, error) {
	if len(ts) == 0 {
		d, shape := tensor.Float32, []int64{}
		if t := v.Tensor(); t != nil {
			if t.DType != tensor.Undefined {
				d = t.DType
			}
			for _, e := range t.Dims {
				n, _ := e.Int() // what is unknown is 0, as in other runtimes
				shape = append(shape, n)
			}
		}
		return tensor.FullInt(d, slices.Insert(shape, min(axis, len(shape)), 0), 0), nil
	}
	wide := make([]*tensor.Tensor, len(ts))
	for i, t := range ts {
		out, err := kernel.Eval("onnx::Unsqueeze", nil, []*tensor.Tensor{t, tensor.Ints(int64(axis))}, 1)
		if err != nil {
			return nil, err
		}
		wide[i] = out[0]
	}
	return concat(wide, int64(axis))
}

func concat(ts []*tensor.Tensor, axis int64) (*tensor.Tensor, error) {
	out, err := kernel.Eval("onnx::Concat", []ssa.Attr{{Name: "axis", Value: ssa.Int(axis)}}, ts, 1)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func runScan(r *run, o *ssa.Op, in []Value) ([]Value, error) {
	if len(o.Blocks) != 1 {
		return nil, fmt.Errorf("needs a body")
	}
	if r.opset < 9 {
		return scanBatch(r, o, in)
	}
	return scanSequence(r, o, in, "scan_input_directions")
}

// scanBatch runs the Scan of opset 8, which had the lengths of sequences as its first operand and a batch as the first axis of all others.
func scanBatch(r *run, o *ssa.Op, in []Value) ([]Value, error) {
	if len(in) < 2 || !in[0].IsNone() {
		return nil, fmt.Errorf("lengths of sequences are not supported")
	}
	batch := int64(-1)
	for _, v := range in[1:] {
		if v.Tensor == nil || len(v.Tensor.Shape) == 0 || batch >= 0 && v.Tensor.Shape[0] != batch {
			return nil, fmt.Errorf("the operands do not share a batch")
		}
		batch = v.Tensor.Shape[0]
	}
	if batch == 0 {
		return nil, fmt.Errorf("the batch is empty")
	}
	outs := make([][]*tensor.Tensor, len(o.Results))
	for i := range batch {
		sample := make([]Value, len(in)-1)
		for j, v := range in[1:] {
			t, err := kernel.Eval("onnx::Gather", nil, []*tensor.Tensor{v.Tensor, tensor.ScalarInt(i)}, 1)
			if err != nil {
				return nil, err
			}
			sample[j] = Of(t[0])
		}
		out, err := scanSequence(r, o, sample, "directions")
		if err != nil {
			return nil, err
		}
		for j, v := range out {
			if v.Tensor == nil {
				return nil, fmt.Errorf("result %d is %v", j, v)
			}
			outs[j] = append(outs[j], v.Tensor)
		}
	}
	results := make([]Value, len(outs))
	for j, ts := range outs {
		t, err := stack(ts, 0, o.Results[j])
		if err != nil {
			return nil, err
		}
		results[j] = Of(t)
	}
	return results, nil
}

// scanSequence runs the body once for each element of the sequences. directions names the attribute with those of the inputs.
func scanSequence(r *run, o *ssa.Op, in []Value, directions string) ([]Value, error) {
	k := int(o.AttrInt("num_scan_inputs", 0))
	n := len(in) - k
	if k < 1 || n < 0 || len(o.Results) < n {
		return nil, fmt.Errorf("%d scan inputs of %d", k, len(in))
	}
	list := func(name string, i int) int64 {
		if v := o.AttrInts(name); i < len(v) {
			return v[i]
		}
		return 0
	}
	length := int64(-1)
	axes := make([]int64, k)
	for i := range k {
		t := in[n+i].Tensor
		if t == nil {
			return nil, fmt.Errorf("a scan input is %v", in[n+i])
		}
		if axes[i] = list("scan_input_axes", i); axes[i] < 0 {
			axes[i] += int64(len(t.Shape))
		}
		if axes[i] < 0 || axes[i] >= int64(len(t.Shape)) || length >= 0 && t.Shape[axes[i]] != length {
			return nil, fmt.Errorf("the scan inputs differ in length")
		}
		length = t.Shape[axes[i]]
	}
	state := slices.Clone(in[:n])
	scans := make([][]*tensor.Tensor, len(o.Results)-n)
	for i := range length {
		args := slices.Clone(state)
		for j := range k {
			p := i
			if list(directions, j) != 0 {
				p = length - 1 - i
			}
			t, err := kernel.Eval("onnx::Gather", []ssa.Attr{{Name: "axis", Value: ssa.Int(axes[j])}}, []*tensor.Tensor{in[n+j].Tensor, tensor.ScalarInt(p)}, 1)
			if err != nil {
				return nil, err
			}
			args = append(args, Of(t[0]))
		}
		out, err := r.block(o.Blocks[0], args)
		if err != nil {
			return nil, err
		}
		if len(out) != n+len(scans) {
			return nil, fmt.Errorf("the body returns %d values", len(out))
		}
		state = out[:n]
		for j := range scans {
			if out[n+j].Tensor == nil {
				return nil, fmt.Errorf("a scan output is %v", out[n+j])
			}
			scans[j] = append(scans[j], out[n+j].Tensor)
		}
	}
	out := slices.Clone(state)
	for j, s := range scans {
		if list("scan_output_directions", j) != 0 {
			slices.Reverse(s)
		}
		axis := list("scan_output_axes", j)
		if axis < 0 && len(s) > 0 {
			axis += int64(len(s[0].Shape)) + 1
		}
		t, err := stack(s, int(axis), o.Blocks[0].Return(n+j))
		if err != nil {
			return nil, err
		}
		out = append(out, Of(t))
	}
	return out, nil
}

func runSequenceMap(r *run, o *ssa.Op, in []Value) ([]Value, error) {
	if len(o.Blocks) != 1 || len(in) == 0 || !in[0].IsList {
		return nil, fmt.Errorf("needs a body and a sequence")
	}
	out := make([]Value, len(o.Results))
	for i := range out {
		out[i].IsList = true
	}
	for i := range in[0].List {
		args := slices.Clone(in)
		for j, v := range in {
			if v.IsList {
				if i >= len(v.List) {
					return nil, fmt.Errorf("the sequences differ in length")
				}
				args[j] = Of(v.List[i])
			}
		}
		res, err := r.block(o.Blocks[0], args)
		if err != nil {
			return nil, err
		}
		for j := range out {
			if j >= len(res) || res[j].Tensor == nil {
				return nil, fmt.Errorf("the body must return tensors")
			}
			out[j].List = append(out[j].List, res[j].Tensor)
		}
	}
	return out, nil
}

func runSequence(r *run, o *ssa.Op, in []Value) ([]Value, error) {
	name := o.Kind.Name()
	var list []*tensor.Tensor
	switch name {
	case "SequenceEmpty":
		return []Value{{IsList: true}}, nil
	case "SequenceConstruct":
		for _, v := range in {
			if v.Tensor == nil {
				return nil, fmt.Errorf("an element is %v", v)
			}
			list = append(list, v.Tensor)
		}
		return []Value{ListOf(list...)}, nil
	case "SplitToSequence":
		return splitToSequence(o, in)
	}
	if len(in) == 0 || !in[0].IsList {
		return nil, fmt.Errorf("needs a sequence")
	}
	list = in[0].List
	position := func(i int, def, n int64) (int64, error) {
		if i < len(in) && in[i].Tensor != nil {
			if in[i].Tensor.NumElements() != 1 {
				return 0, fmt.Errorf("the position is %v", in[i])
			}
			def = in[i].Tensor.Int64s()[0]
		}
		if def < 0 {
			def += int64(len(list))
		}
		if def < 0 || def >= n {
			return 0, fmt.Errorf("position %d in a sequence of %d", def, len(list))
		}
		return def, nil
	}
	n := int64(len(list))
	switch name {
	case "SequenceLength":
		return []Value{Of(tensor.ScalarInt(n))}, nil
	case "SequenceAt":
		p, err := position(1, 0, n)
		if err != nil {
			return nil, err
		}
		return []Value{Of(list[p])}, nil
	case "SequenceErase":
		p, err := position(1, n-1, n)
		if err != nil {
			return nil, err
		}
		return []Value{ListOf(slices.Delete(slices.Clone(list), int(p), int(p)+1)...)}, nil
	case "SequenceInsert":
		p, err := position(2, n, n+1)
		if err != nil || len(in) < 2 || in[1].Tensor == nil {
			return nil, fmt.Errorf("no tensor to insert, or no place: %v", err)
		}
		if err := r.takeOps(int64(n) / insertedAsOp); err != nil {
			return nil, err
		}
		return []Value{ListOf(slices.Insert(slices.Clone(list), int(p), in[1].Tensor)...)}, nil
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("an empty sequence")
	}
	axis := o.AttrInt("axis", 0)
	if o.AttrInt("new_axis", 0) != 0 {
		if axis < 0 {
			axis += int64(len(list[0].Shape)) + 1
		}
		t, err := stack(list, int(axis), nil)
		return []Value{Of(t)}, err
	}
	t, err := concat(list, axis)
	return []Value{Of(t)}, err
}

func splitToSequence(o *ssa.Op, in []Value) ([]Value, error) {
	if len(in) == 0 || in[0].Tensor == nil {
		return nil, fmt.Errorf("needs a tensor")
	}
	x := in[0].Tensor
	axis := o.AttrInt("axis", 0)
	if axis < 0 {
		axis += int64(len(x.Shape))
	}
	if axis < 0 || axis >= int64(len(x.Shape)) {
		return nil, fmt.Errorf("axis %d of rank %d", axis, len(x.Shape))
	}
	var sizes []int64
	keep := true
	if len(in) < 2 || in[1].Tensor == nil {
		keep = o.AttrInt("keepdims", 1) != 0
		for range x.Shape[axis] {
			sizes = append(sizes, 1)
		}
	} else if s := in[1].Tensor; len(s.Shape) == 0 {
		step := s.Int64s()[0]
		if step < 1 {
			return nil, fmt.Errorf("pieces of %d", step)
		}
		for left := x.Shape[axis]; left > 0; left -= step {
			sizes = append(sizes, min(step, left))
		}
	} else {
		sizes = s.Int64s()
	}
	attr := []ssa.Attr{{Name: "axis", Value: ssa.Int(axis)}}
	parts, err := kernel.Eval("onnx::Split", attr, []*tensor.Tensor{x, tensor.Ints(sizes...)}, len(sizes))
	if err != nil {
		return nil, err
	}
	if !keep {
		for i, p := range parts {
			q, err := kernel.Eval("onnx::Squeeze", nil, []*tensor.Tensor{p, tensor.Ints(axis)}, 1)
			if err != nil {
				return nil, err
			}
			parts[i] = q[0]
		}
	}
	return []Value{ListOf(parts...)}, nil
}

func runOptional(r *run, o *ssa.Op, in []Value) ([]Value, error) {
	v := Value{}
	if len(in) > 0 {
		v = in[0]
	}
	switch o.Kind.Name() {
	case "OptionalHasElement":
		n := int64(1)
		if v.IsNone() {
			n = 0
		}
		return []Value{Of(tensor.FullInt(tensor.Bool, []int64{}, n))}, nil
	case "OptionalGetElement":
		if v.IsNone() {
			return nil, fmt.Errorf("the optional is empty")
		}
	}
	return []Value{v}, nil
}
