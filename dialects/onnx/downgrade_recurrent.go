package onnx

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// recurrentGates are the blocks of rows in the weights of an operator.
var recurrentGates = map[ssa.Kind]int{"onnx::RNN": 1, "onnx::GRU": 3, "onnx::LSTM": 4}

// recurrentActivations are those of one direction where the operator names none.
var recurrentActivations = map[ssa.Kind][]string{
	"onnx::RNN": {"Tanh"}, "onnx::GRU": {"Sigmoid", "Tanh"}, "onnx::LSTM": {"Sigmoid", "Tanh", "Tanh"},
}

// recurrentByScan expresses RNN, GRU and LSTM by a Scan of the steps of each direction. It leaves alone activations that take numbers.
func recurrentByScan(d *Downgrade, t tensor.DType) bool {
	if !t.IsFloat() {
		return false
	}
	o := d.Node
	defaults := recurrentActivations[o.Kind]
	per := len(defaults)
	names, _ := o.Attr("activations")
	directions := []string{o.AttrStr("direction", "forward")}
	if directions[0] == "bidirectional" {
		directions = []string{"forward", "reverse"}
	}
	activations := make([]string, 0, per*len(directions))
	for i := range per * len(directions) {
		name := defaults[i%per]
		if i < len(names.Elems) {
			name = names.Elems[i].Str()
		}
		switch name {
		case "Relu", "Tanh", "Sigmoid", "Softsign", "Softplus":
		default:
			return false
		}
		activations = append(activations, name)
	}
	width := d.sizes(d.in(2), 0)
	if len(width) != 3 || d.rank(d.in(0), 0) != 3 {
		return false
	}
	r := &recurrent{Downgrade: d, hidden: width[2], gates: recurrentGates[o.Kind], x: d.in(0)}
	swapped := o.AttrInt("layout", 0) != 0
	if swapped {
		r.x = d.turned(r.x, 1, 0, 2)
	}
	if d.in(4) != nil {
		steps := d.Range(d.long(0), d.size(r.x, 0), d.long(1))
		lens := d.Unsqueeze(d.cast(d.in(4), tensor.Int64), d.ints(0))
		r.alive = d.Unsqueeze(d.Less(d.Unsqueeze(steps, d.ints(1)), lens), d.ints(2))
	}
	results := make([][]*ssa.Value, len(o.Results)) // of each direction
	for i, direction := range directions {
		r.direction, r.activations = int64(i), activations[i*per:(i+1)*per]
		for k, v := range r.run(direction == "reverse", swapped)[:len(results)] {
			axis := int64(0)
			if k == 0 {
				axis = 1
			}
			results[k] = append(results[k], d.Unsqueeze(v, d.ints(axis)))
		}
	}
	out := make([]*ssa.Value, len(results))
	for k, vs := range results {
		perm := []int64{1, 0, 2}
		axis := int64(0)
		if k == 0 {
			axis, perm = 1, []int64{2, 0, 1, 3}
		}
		out[k] = vs[0]
		if len(vs) > 1 {
			out[k] = d.concat(axis, vs...)
		}
		if swapped {
			out[k] = d.turned(out[k], perm...)
		}
	}
	d.Replace(out...)
	return true
}

// recurrent is a layer that runs step by step, one direction after the other.
type recurrent struct {
	*Downgrade
	hidden      int64
	gates       int
	x           *ssa.Value // steps first
	alive       *ssa.Value // which sequences have a step: [steps, batch, 1]; nil where all have all
	direction   int64
	activations []string
}

func (d *Downgrade) turned(x *ssa.Value, perm ...int64) *ssa.Value {
	return d.Transpose(x, Perm(perm...))
}

// part is what operand i has for the direction, nil without the operand.
func (r *recurrent) part(i int) *ssa.Value {
	v := r.in(i)
	if v == nil {
		return nil
	}
	return r.gather(v, r.long(r.direction), 0)
}

// first is the state that operand i gives, or zeros.
func (r *recurrent) first(i int, swapped bool) *ssa.Value {
	if v := r.in(i); v != nil && swapped {
		return r.gather(v, r.long(r.direction), 1)
	}
	if v := r.part(i); v != nil {
		return v
	}
	return r.Expand(r.like(r.x, 0), r.concat(0, r.sizes1(r.x, 1, 2), r.ints(r.hidden)))
}

// split cuts the last axis of v into n parts of the hidden size.
func (r *recurrent) split(v *ssa.Value, n int) []*ssa.Value {
	if n == 1 {
		return []*ssa.Value{v}
	}
	sizes := make([]int64, n)
	for i := range sizes {
		sizes[i] = r.hidden
	}
	return r.Split(n, v, r.ints(sizes...), Axis(-1))
}

// activate is activation i of a sum, which clip bounds.
func (r *recurrent) activate(i int, v *ssa.Value) *ssa.Value {
	if _, ok := r.Node.Attr("clip"); ok {
		c := r.Node.AttrFloat("clip", 0)
		v = r.Clip(v, r.like(v, -c), r.like(v, c))
	}
	return r.Op(r.activations[i], v)
}

// run gives what the operator gives, without the axis of directions.
func (r *recurrent) run(reverse, swapped bool) []*ssa.Value {
	ofInput := r.MatMul(r.x, r.turned(r.part(1), 1, 0))
	state := r.turned(r.part(2), 1, 0) // [hidden, gates * hidden]
	var bias *ssa.Value
	if b := r.part(3); b != nil {
		n := int64(r.gates) * r.hidden
		ofInput = r.Add(ofInput, r.slice(b, 0, 0, n, 1))
		bias = r.slice(b, 0, n, 2*n, 1)
	}
	states := []*ssa.Value{r.first(5, swapped)}
	var peep []*ssa.Value
	lstm := r.Node.Kind == "onnx::LSTM"
	if lstm {
		states = append(states, r.first(6, swapped))
		if p := r.part(7); p != nil {
			peep = r.split(p, 3)
		}
	}
	xs := []*ssa.Value{ofInput}
	if r.alive != nil {
		xs = append(xs, r.alive)
	}
	finals, outs := r.Scan(states, xs, reverse, func(st, el []*ssa.Value) (next, out []*ssa.Value) {
		switch r.Node.Kind {
		case "onnx::RNN":
			next = []*ssa.Value{r.activate(0, r.Add(el[0], r.ofState(st[0], state, bias)))}
		case "onnx::GRU":
			next = []*ssa.Value{r.gru(el[0], st[0], state, bias)}
		default:
			next = r.lstm(r.Add(el[0], r.ofState(st[0], state, bias)), st[1], peep)
		}
		y := next[0]
		if r.alive != nil { // a sequence that has ended keeps its states, and gives zeros
			for i := range next {
				next[i] = r.Where(el[1], next[i], st[i])
			}
			y = r.Where(el[1], y, r.like(y, 0))
		}
		if y == next[0] {
			y = r.Identity(y)
		}
		return next, []*ssa.Value{y}
	})
	return append(outs, finals...)
}

// ofState is the part of sums that a state gives.
func (r *recurrent) ofState(h, weight, bias *ssa.Value) *ssa.Value {
	y := r.MatMul(h, weight)
	if bias != nil {
		y = r.Add(y, bias)
	}
	return y
}

// gru is a step with the gates z, r and h.
func (r *recurrent) gru(ofInput, h, weight, bias *ssa.Value) *ssa.Value {
	x := r.split(ofInput, 3)
	var update, reset, n *ssa.Value
	if r.Node.AttrInt("linear_before_reset", 0) != 0 {
		s := r.split(r.ofState(h, weight, bias), 3)
		update, reset = r.activate(0, r.Add(x[0], s[0])), r.activate(0, r.Add(x[1], s[1]))
		n = r.Add(x[2], r.Mul(reset, s[2]))
	} else { // the state is reset before it is multiplied
		ws, bs := r.split(weight, 3), make([]*ssa.Value, 3)
		if bias != nil {
			bs = r.split(bias, 3)
		}
		gate := func(i int) *ssa.Value { return r.activate(0, r.Add(x[i], r.ofState(h, ws[i], bs[i]))) }
		update, reset = gate(0), gate(1)
		n = r.Add(x[2], r.ofState(r.Mul(reset, h), ws[2], bs[2]))
	}
	n = r.activate(1, n)
	return r.Add(n, r.Mul(update, r.Sub(h, n)))
}

// lstm is a step with the gates i, o, f and c; peep are weights of the cell for the first three of them.
func (r *recurrent) lstm(gates, c *ssa.Value, peep []*ssa.Value) []*ssa.Value {
	g := r.split(gates, 4)
	seen := func(i int, c *ssa.Value) *ssa.Value {
		if peep == nil {
			return g[i]
		}
		return r.Add(g[i], r.Mul(peep[i], c))
	}
	in := r.activate(0, seen(0, c))
	var forget *ssa.Value
	if r.Node.AttrInt("input_forget", 0) != 0 {
		forget = r.Sub(r.like(in, 1), in)
	} else {
		forget = r.activate(0, seen(2, c))
	}
	next := r.Add(r.Mul(forget, c), r.Mul(in, r.activate(1, g[3])))
	return []*ssa.Value{r.Mul(r.activate(0, seen(1, next)), r.Op(r.activations[2], next)), next}
}
