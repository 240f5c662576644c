package prove

import (
	"maps"
	"slices"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// maxPlaces bounds the places among which an index that is not known chooses.
const maxPlaces = 128

// known reports that all elements of a value are constants.
func (v value) known() bool {
	if v.t == nil {
		return !v.isList
	}
	_, ok := v.t.concrete()
	return ok
}

// at is the condition that indices are a place: each counts from the front or from behind.
func (e *evaluator) at(indices []*Term, place, sizes []int64) *Term {
	var all *Term
	for i, x := range indices {
		is := func(n int64) *Term {
			return e.apply("Equal", tensor.Bool, nil, x, e.constants(tensor.FromInts(x.DType, []int64{}, []int64{n})).Elems[0])
		}
		c := e.apply("Or", tensor.Bool, nil, is(place[i]), is(place[i]-sizes[i]))
		if all == nil {
			all = c
		} else {
			all = e.apply("And", tensor.Bool, nil, all, c)
		}
	}
	return all
}

// within takes for granted that indices are places, in the graph that says what is meant.
func (e *evaluator) within(indices []*Term, sizes []int64) {
	if !e.meant {
		return
	}
	for i, x := range indices {
		if x.Value == nil {
			at := func(n int64) *Term { return e.constants(tensor.FromInts(x.DType, []int64{}, []int64{n})).Elems[0] }
			low := e.apply("LessOrEqual", tensor.Bool, nil, at(-sizes[i]), x)
			e.given = append(e.given, e.apply("And", tensor.Bool, nil, low, e.apply("Less", tensor.Bool, nil, x, at(sizes[i]))))
		}
	}
}

// eachPlace calls a function for all places in axes of some sizes, in order.
func eachPlace(sizes []int64, f func(place []int64)) {
	for n := range count(sizes) {
		place := make([]int64, len(sizes))
		for i := len(sizes) - 1; i >= 0; i-- {
			place[i], n = n%sizes[i], n/sizes[i]
		}
		f(place)
	}
}

// gather reads at indices that are not known: the kernel reads at each place in turn, and the index chooses among what it has read. An index
// that is no place has no meaning.
func (e *evaluator) gather(o *ssa.Op, in []value) ([]value, error) {
	x, ix := in[0].t, in[1].t
	var of []int64 // the sizes of the axes that a tuple of indices counts along
	tuple := int64(1)
	switch o.Kind {
	case "onnx::GatherND":
		if len(ix.Shape) == 0 {
			return nil, cannot("indices of rank 0")
		}
		tuple = ix.Shape[len(ix.Shape)-1]
		from := o.AttrInt("batch_dims", 0)
		if from < 0 || from+tuple > int64(len(x.Shape)) {
			return nil, cannot("tuples of %d indices", tuple)
		}
		of = x.Shape[from : from+tuple]
	default:
		axis := o.AttrInt("axis", 0)
		if axis < 0 {
			axis += int64(len(x.Shape))
		}
		if axis < 0 || axis >= int64(len(x.Shape)) {
			return nil, cannot("axis %d", axis)
		}
		of = x.Shape[axis : axis+1]
	}
	if !fits(of, maxPlaces) || count(of) == 0 || tuple == 0 {
		return nil, cannot("operand 1 of %s is not known, and has %v places", o.Kind, of)
	}
	run := func(data *tensor.Tensor, indices []int64) (*tensor.Tensor, error) {
		out, err := kernel.Eval(o.Kind, o.Attrs, []*tensor.Tensor{data, tensor.FromInts(ix.DType, ix.Shape, indices)}, 1)
		if err != nil {
			return nil, cannot("%v", err)
		}
		return out[0], nil
	}
	everywhere := func(place []int64) []int64 {
		out := make([]int64, 0, len(ix.Elems))
		for len(out) < len(ix.Elems) {
			out = append(out, place...)
		}
		return out
	}
	// which tuple an element of the result is read by
	first, err := run(x.handles(), everywhere(make([]int64, tuple)))
	if err != nil {
		return nil, err
	}
	by := make([]int64, first.NumElements())
	if count(of) > 1 {
		last := make([]int64, tuple)
		for i, n := range of {
			last[i] = n - 1
		}
		numbered := tensor.FromInts(tensor.Int64, x.Shape, counted(len(x.Elems)))
		zero, err := run(numbered, everywhere(make([]int64, tuple)))
		if err != nil {
			return nil, err
		}
		for k := range int64(len(ix.Elems)) / tuple {
			indices := everywhere(make([]int64, tuple))
			copy(indices[k*tuple:], last)
			moved, err := run(numbered, indices)
			if err != nil {
				return nil, err
			}
			for i, n := range moved.Int64s() {
				if n != zero.Int64s()[i] {
					by[i] = k
				}
			}
		}
	}
	for k := range int64(len(ix.Elems)) / tuple {
		e.within(ix.Elems[k*tuple:(k+1)*tuple], of)
	}
	may := make([]map[int64]bool, len(ix.Elems))
	for i, t := range ix.Elems {
		may[i] = possible(t, of[int64(i)%tuple])
	}
	out := &Tensor{DType: x.DType, Shape: first.Shape, Elems: make([]*Term, len(by))}
	eachPlace(of, func(place []int64) {
		read, failed := run(x.handles(), everywhere(place))
		if err = failed; err != nil {
			return
		}
		for i, t := range e.fromHandles(read, x.DType).Elems {
			never := false
			for k, p := range place {
				m := may[by[i]*tuple+int64(k)]
				never = never || m != nil && !m[p]
			}
			if never {
				continue
			}
			if out.Elems[i] == nil {
				out.Elems[i] = t
			} else {
				out.Elems[i] = e.apply("Where", x.DType, nil, e.at(ix.Elems[by[i]*tuple:(by[i]+1)*tuple], place, of), t, out.Elems[i])
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if slices.Contains(out.Elems, nil) {
		return nil, cannot("an index of %s is no place", o.Kind)
	}
	return one(out), nil
}

// possible are the places along an axis that an index of few conditions may be; nil if any.
func possible(t *Term, size int64) map[int64]bool {
	vars := variablesOf(t)
	if len(vars) > 4 || slices.ContainsFunc(vars, func(v *Term) bool { return v.DType != tensor.Bool }) {
		return nil
	}
	value := map[*Term]*tensor.Tensor{}
	for i, v := range vars {
		bits := make([]int64, 1<<len(vars))
		for n := range bits {
			bits[n] = int64(n >> i & 1)
		}
		value[v] = tensor.FromInts(tensor.Bool, []int64{int64(len(bits))}, bits)
	}
	all, ok := onAll(t, value)
	if !ok || !all.DType.IsInt() {
		return nil
	}
	out := map[int64]bool{}
	for _, n := range all.Int64s() {
		if n < 0 {
			n += size
		}
		out[n] = true
	}
	return out
}

func counted(n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

// scatter writes one update after the other, each where its index says so, and combines it with what stands there.
func (e *evaluator) scatter(o *ssa.Op, in []value) ([]value, error) {
	x, ix, updates := in[0].t, in[1].t, in[2].t
	combine := map[string]string{"none": "", "add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}
	with, ok := combine[o.AttrStr("reduction", "none")]
	if !ok {
		return nil, cannot("%s with the reduction %s", o.Kind, o.AttrStr("reduction", "none"))
	}
	if x.DType == tensor.Bool { // as the kernel has it
		with = map[string]string{"Add": "Or", "Mul": "And", "Max": "Or", "Min": "And"}[with]
	}
	// floats are added up and multiplied in float64, and rounded once
	together := x.DType.IsFloat() && (with == "Add" || with == "Mul")
	if together && !in[1].known() {
		return nil, cannot("operand 1 of %s is not known", o.Kind)
	}
	updated := map[int64][]*Term{}
	out := &Tensor{DType: x.DType, Shape: x.Shape, Elems: slices.Clone(x.Elems)}
	strides := make([]int64, len(x.Shape))
	n := int64(1)
	for i := len(x.Shape) - 1; i >= 0; i-- {
		strides[i], n = n, n*x.Shape[i]
	}
	write := func(indices []*Term, sizes []int64, element func(place []int64) int64, update *Term) error {
		if !fits(sizes, maxPlaces) {
			return cannot("%s among %v places", o.Kind, sizes)
		}
		e.within(indices, sizes)
		eachPlace(sizes, func(place []int64) {
			p := element(place)
			t := update
			if together {
				if e.at(indices, place, sizes) == e.boolean(true) {
					updated[p] = append(updated[p], update)
				}
				return
			}
			if with != "" {
				t = e.apply(with, x.DType, nil, out.Elems[p], update)
			}
			out.Elems[p] = e.apply("Where", x.DType, nil, e.at(indices, place, sizes), t, out.Elems[p])
		})
		return nil
	}
	if o.Kind == "onnx::ScatterElements" {
		axis := o.AttrInt("axis", 0)
		if axis < 0 {
			axis += int64(len(x.Shape))
		}
		if axis < 0 || axis >= int64(len(x.Shape)) || len(ix.Shape) != len(x.Shape) || !slices.Equal(ix.Shape, updates.Shape) {
			return nil, cannot("%s of %v and %v", o.Kind, x.Shape, ix.Shape)
		}
		for i, n := range ix.Shape {
			if int64(i) != axis && n > x.Shape[i] {
				return nil, cannot("%s of %v and %v", o.Kind, x.Shape, ix.Shape)
			}
		}
		var err error
		i := 0
		eachPlace(ix.Shape, func(at []int64) {
			base := int64(0)
			for d, p := range at {
				if int64(d) != axis {
					base += p * strides[d]
				}
			}
			element := func(place []int64) int64 { return base + place[0]*strides[axis] }
			if failed := write(ix.Elems[i:i+1], x.Shape[axis:axis+1], element, updates.Elems[i]); failed != nil {
				err = failed
			}
			i++
		})
		if err != nil {
			return nil, err
		}
		return e.accumulated(out, with, updated), nil
	}
	if len(ix.Shape) == 0 {
		return nil, cannot("indices of rank 0")
	}
	tuple := ix.Shape[len(ix.Shape)-1]
	if tuple > int64(len(x.Shape)) {
		return nil, cannot("tuples of %d indices", tuple)
	}
	if !slices.Equal(updates.Shape, append(slices.Clone(ix.Shape[:len(ix.Shape)-1]), x.Shape[tuple:]...)) {
		return nil, cannot("%s of %v and %v", o.Kind, x.Shape, ix.Shape)
	}
	block := count(x.Shape[tuple:])
	for k := range count(ix.Shape[:len(ix.Shape)-1]) {
		for b := range block {
			element := func(place []int64) int64 {
				p := b
				for d, at := range place {
					p += at * strides[d]
				}
				return p
			}
			indices := ix.Elems[k*tuple : (k+1)*tuple]
			if tuple == 0 {
				return nil, cannot("tuples without indices")
			}
			if err := write(indices, x.Shape[:tuple], element, updates.Elems[k*block+b]); err != nil {
				return nil, err
			}
		}
	}
	return e.accumulated(out, with, updated), nil
}

// accumulated combines elements with all of their updates, whatever the order of these.
func (e *evaluator) accumulated(x *Tensor, with string, updated map[int64][]*Term) []value {
	for _, p := range slices.Sorted(maps.Keys(updated)) {
		us := updated[p]
		x.Elems[p] = e.apply("accumulated "+with, x.DType, nil, append([]*Term{x.Elems[p]}, sorted(us)...)...)
	}
	return one(x)
}

// cumulative folds, for each element of the result, those elements that the kernel of CumSum adds up.
func (e *evaluator) cumulative(o *ssa.Op, in []value) ([]value, error) {
	rest, err := e.rest(o, in)
	if err != nil {
		return nil, err
	}
	x := in[0].t
	parts := map[int][]*Term{}
	shape, err := e.units("onnx::CumSum", o.Attrs, x.Shape, rest, func(unit, at int, _ float64) { parts[at] = append(parts[at], x.Elems[unit]) })
	if err != nil {
		return nil, err
	}
	name := map[ssa.Kind]string{"onnx::CumSum": "of ReduceSum", "onnx::CumProd": "of ReduceProd"}[o.Kind]
	out := &Tensor{DType: x.DType, Shape: shape}
	neutral := int64(0)
	if o.Kind == "onnx::CumProd" {
		neutral = 1
	}
	for i := range count(shape) {
		switch len(parts[int(i)]) {
		case 0:
			out.Elems = append(out.Elems, e.constants(tensor.FromFloats(x.DType, []int64{}, []float64{float64(neutral)})).Elems...)
			continue
		case 1:
			out.Elems = append(out.Elems, parts[int(i)][0])
			continue
		}
		out.Elems = append(out.Elems, e.apply(name, x.DType, nil, sorted(parts[int(i)])...))
	}
	return one(out), nil
}

// hardmax marks the place that ArgMax finds.
func (e *evaluator) hardmax(o *ssa.Op, in []value) ([]value, error) {
	x := in[0].t
	if len(x.Shape) == 0 {
		return nil, cannot("Hardmax of rank 0")
	}
	axis := o.AttrInt("axis", -1)
	best, err := e.places(x, axis, "of ArgMax", attrsOf("onnx::ArgMax", nil, "axis", "keepdims"), 1)
	if err != nil {
		return nil, err
	}
	if axis < 0 {
		axis += int64(len(x.Shape))
	}
	all, err := e.expand(best, x.Shape)
	if err != nil {
		return nil, err
	}
	out := &Tensor{DType: x.DType, Shape: x.Shape}
	i := 0
	eachPlace(x.Shape, func(place []int64) {
		hit := e.apply("Equal", tensor.Bool, nil, all.Elems[i], e.constants(tensor.ScalarInt(place[axis])).Elems[0])
		out.Elems = append(out.Elems, e.apply("Cast", x.DType, castTo(x.DType), hit))
		i++
	})
	return one(out), nil
}

// normalized is InstanceNormalization, GroupNormalization and MeanVarianceNormalization: each element with the elements that it is
// normalized with, as in LayerNormalization.
func (e *evaluator) normalized(o *ssa.Op, in []value) ([]value, error) {
	x := in[0].t
	rank := len(x.Shape)
	if rank < 2 {
		return nil, cannot("%s of rank %d", o.Kind, rank)
	}
	epsilon := ssa.Attr{Name: "epsilon", Value: ssa.Float(o.AttrFloat("epsilon", 1e-5))}
	out := &Tensor{DType: x.DType, Shape: x.Shape}
	if o.Kind == "onnx::MeanVarianceNormalization" {
		axes := o.AttrInts("axes")
		if axes == nil {
			axes = []int64{0, 2, 3}
		}
		groups, err := e.groups(x, axes)
		if err != nil {
			return nil, err
		}
		for i, t := range x.Elems {
			out.Elems = append(out.Elems, e.apply("of MeanVarianceNormalization", x.DType, nil, append([]*Term{t}, groups[i]...)...))
		}
		return one(out), nil
	}
	groups := x.Shape[1]
	if o.Kind == "onnx::GroupNormalization" {
		groups = o.AttrInt("num_groups", 1)
	}
	if groups < 1 || x.Shape[1]%groups != 0 || len(in) < 3 || in[1].t == nil || in[2].t == nil {
		return nil, cannot("%d groups of %d channels", groups, x.Shape[1])
	}
	size := x.Shape[1] / groups * count(x.Shape[2:])
	plane := max(count(x.Shape[2:]), 1)
	for i, t := range x.Elems {
		first := int64(i) / size * size
		channel := int64(i) / plane % x.Shape[1]
		if channel >= int64(len(in[1].t.Elems)) || channel >= int64(len(in[2].t.Elems)) {
			return nil, cannot("%d numbers for %d channels", len(in[1].t.Elems), x.Shape[1])
		}
		args := append([]*Term{t, in[1].t.Elems[channel], in[2].t.Elems[channel]}, sorted(x.Elems[first:first+size])...)
		out.Elems = append(out.Elems, e.apply("of LayerNormalization", x.DType, []ssa.Attr{epsilon}, args...))
	}
	return one(out), nil
}

// likeInput makes what depends on the sizes and the type of an operand alone, or on integers that are known, by the interpreter.
func (e *evaluator) likeInput(o *ssa.Op, in []value) ([]value, error) {
	args := make([]interp.Value, len(in))
	for i, v := range in {
		if v.t != nil {
			args[i] = interp.Of(tensor.New(v.t.DType, v.t.Shape, make([]byte, len(v.t.Elems)*v.t.DType.Size())))
		}
	}
	out, err := e.interp.RunOp(o, args, nil)
	if err != nil {
		return nil, cannot("%v", err)
	}
	return one(e.constants(out[0].Tensor)), nil
}

// oneHot compares indices with the places along an axis, which counts from behind too.
func (e *evaluator) oneHot(o *ssa.Op, in []value) ([]value, error) {
	depth, ok := in[1].t.concrete()
	if !ok || depth.NumElements() != 1 || depth.Float64s()[0] > maxPlaces {
		return nil, cannot("operand 1 of %s is not known", o.Kind)
	}
	n := int64(depth.Float64s()[0])
	at, values := in[0].t, in[2].t
	axis := o.AttrInt("axis", -1)
	if axis < 0 {
		axis += int64(len(at.Shape)) + 1
	}
	if axis < 0 || axis > int64(len(at.Shape)) || n < 1 || len(values.Elems) != 2 {
		return nil, cannot("axis %d, depth %d", axis, n)
	}
	e.within(at.Elems, slices.Repeat([]int64{n}, len(at.Elems)))
	inner := count(at.Shape[axis:])
	out := &Tensor{DType: values.DType, Shape: slices.Insert(slices.Clone(at.Shape), int(axis), n)}
	for i := range count(out.Shape) {
		index := at.Elems[i/(inner*n)*inner+i%inner]
		hit := e.at([]*Term{index}, []int64{i / inner % n}, []int64{n})
		out.Elems = append(out.Elems, e.apply("Where", values.DType, nil, hit, values.Elems[1], values.Elems[0]))
	}
	return one(out), nil
}

// rotary turns pairs of elements by angles whose cosines and sines are operands: the kernel is linear in the elements, and in the cosines and sines
// together. It is run on unit vectors, with the cosines and sines numbered by powers of four.
func (e *evaluator) rotary(o *ssa.Op, in []value) ([]value, error) {
	x, cos, sin := in[0].t, in[1].t, in[2].t
	var rest []*tensor.Tensor
	if len(in) > 3 && in[3].t != nil {
		at, ok := in[3].t.concrete()
		if !ok {
			return nil, cannot("operand 3 of %s is not known", o.Kind)
		}
		rest = append(rest, at)
	}
	if len(x.Elems)*(len(cos.Elems)+len(sin.Elems)) > maxProducts {
		return nil, cannot("%s has too many products", o.Kind)
	}
	parts := map[int][]*Term{}
	var shape []int64
	var err error
	for k, angle := range []*Tensor{cos, sin} {
		for from := 0; from < len(angle.Elems); from += digits - 1 {
			v := [2][]float64{make([]float64, len(cos.Elems)), make([]float64, len(sin.Elems))}
			p := 4.0 // 1 is what is not turned
			for i := from; i < min(from+digits-1, len(v[k])); i++ {
				v[k][i] = p
				p *= 4
			}
			numbered := []*tensor.Tensor{tensor.FromFloats(tensor.Float32, cos.Shape, v[0]), tensor.FromFloats(tensor.Float32, sin.Shape, v[1])}
			first := k == 0 && from == 0
			shape, err = e.units(o.Kind, o.Attrs, x.Shape, append(numbered, rest...), func(unit, at int, v float64) {
				sign := 1.0
				if v < 0 {
					sign, v = -1, -v
				}
				if v == 1 {
					if first {
						parts[at] = append(parts[at], x.Elems[unit])
					}
					return
				}
				i := from - 1
				for n := int64(v); n > 1; n /= 4 {
					i++
				}
				parts[at] = append(parts[at], e.times(x.DType, sign, x.Elems[unit], angle.Elems[i]))
			})
			if err != nil {
				return nil, err
			}
		}
	}
	out := &Tensor{DType: x.DType, Shape: shape}
	for i := range count(shape) {
		out.Elems = append(out.Elems, e.sum(x.DType, parts[int(i)]))
	}
	return one(out), nil
}

// meaningless are the operators of which the prover knows no body and no expression, with the reason.
var meaningless = map[string]string{
	"Attention":           "a kernel of its own",
	"Bernoulli":           "it draws numbers",
	"CausalConvWithState": "a kernel of its own",
	"DeformConv":          "it reads at places that are computed from elements",
	"GridSample":          "it reads at places that are computed from elements",
	"LinearAttention":     "a kernel of its own",
	"OptionalHasElement":  "optionals are no tensors",
	"RoiAlign":            "it reads at places that are computed from elements",
	"Scan":                "the iterations are not followed",
}
