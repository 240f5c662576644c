package aten

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Recurrent layers and cells whose weights are quantized put their inputs and states on the grid of their range where they meet these
// (ATen/native/RNN.cpp, QuantizedCellParamsDynamic): the input of a layer as a whole, the state at each step.

// dynamicLinear is a product with quantized weights, whose real numbers are at hand: (I, O), with a bias.
type dynamicLinear struct {
	w, bias *ssa.Value
	reduced bool // the inputs are on half of the grid
}

func (l *Lowering) dynamicLinear(packed *ssa.Value, reduced bool) dynamicLinear {
	p := l.packedOf(packed)
	g := p.grid
	if g.axis >= 0 {
		g.axis = 1 - g.axis
	}
	return dynamicLinear{l.unpaired(l.transpose(p.q, 1, 0), g), p.bias, reduced}
}

// times is x, on the grid of its range, times the weights.
func (d dynamicLinear) times(l *Lowering, x *ssa.Value) *ssa.Value {
	y := l.MatMul(l.snap(x, l.rangeGrid(x, tensor.Uint8, d.reduced)), d.w)
	if d.bias != nil {
		y = l.Add(y, d.bias)
	}
	return y
}

// cellParams reads the products with the input and with the state, as passes/specialize makes them of an object
// of class CellParamsBase: (weights, weights, whether the grid is reduced).
func (l *Lowering) cellParams(v *ssa.Value) (ofInput, ofState dynamicLinear) {
	es, ok := ListElems(v)
	if !ok || len(es) != 3 {
		l.Fail("the weights are not packed by the program")
	}
	reduced, _ := LiteralOf(es[2])
	return l.dynamicLinear(es[0], reduced.Bool()), l.dynamicLinear(es[1], reduced.Bool())
}

// halfParams are the weights of layers of 16 bits, which compute in float32 as those that are not quantized do. ok is false for
// others.
func (l *Lowering) halfParams(packed []*ssa.Value) (params []rnnParams, ok bool) {
	for _, v := range packed {
		es, listed := ListElems(v)
		if !listed || len(es) != 3 {
			return nil, false
		}
		var p rnnParams
		var a, b bool
		p.wIH, p.bIH, a = l.halfOf(es[0])
		p.wHH, p.bHH, b = l.halfOf(es[1])
		if !a || !b {
			return nil, false
		}
		params = append(params, p)
	}
	return params, true
}

func (l *Lowering) quantizedLayers(lstm bool) []*ssa.Value {
	params, ok := ListElems(l.must("params"))
	if halves, half := l.halfParams(params); half && ok {
		op := "GRU"
		if lstm {
			op = "LSTM"
		}
		return l.recurrentLayers(lstm, func(x, lens *ssa.Value, init []*ssa.Value, layer, dirs, layers int64) (*ssa.Value, []*ssa.Value) {
			if int64(len(halves)) != layers*dirs {
				l.Fail("%d weights for %d directions", len(halves), layers*dirs)
			}
			return l.rnnOne(op, "", x, lens, init, halves[layer*dirs:(layer+1)*dirs])
		})
	}
	if l.HasArg("data") {
		l.Fail("a quantized recurrent layer over packed sequences: the range of the states at a step is that of the sequences that go on")
	}
	return l.recurrentLayers(lstm, func(x, _ *ssa.Value, init []*ssa.Value, layer, dirs, layers int64) (*ssa.Value, []*ssa.Value) {
		if !ok || int64(len(params)) != layers*dirs {
			l.Fail("%d weights for %d directions", len(params), layers*dirs)
		}
		var ys []*ssa.Value
		finals := make([][]*ssa.Value, len(init))
		for i := range dirs {
			ofInput, ofState := l.cellParams(params[layer*dirs+i])
			from := make([]*ssa.Value, len(init))
			for k, s := range init {
				from[k] = l.squeeze(l.sliceC(s, 0, i, i+1, 1), 0)
			}
			last, outs := l.Scan(from, []*ssa.Value{ofInput.times(l, x)}, i == 1, func(st, el []*ssa.Value) ([]*ssa.Value, []*ssa.Value) {
				product := ofState.times(l, st[0])
				if lstm {
					h, c := l.lstmStep(l.Add(product, el[0]), st[1])
					return []*ssa.Value{h, c}, []*ssa.Value{h}
				}
				h := l.gruStep(el[0], product, st[0])
				return []*ssa.Value{h}, []*ssa.Value{h}
			})
			ys = append(ys, outs[0])
			for k, v := range last {
				finals[k] = append(finals[k], l.unsqueeze(v, 0))
			}
		}
		out := make([]*ssa.Value, len(init))
		for k, f := range finals {
			out[k] = l.concatV(0, f...)
		}
		return l.concatV(2, ys...), out
	})
}

// quantizedCell gives the products of a cell with its input and with its state. Cells always reduce the grid.
func (l *Lowering) quantizedCell(state *ssa.Value) (ofInput, ofState *ssa.Value) {
	return l.dynamicLinear(l.must("w_ih"), true).times(l, l.Tensor("input")), l.dynamicLinear(l.must("w_hh"), true).times(l, state)
}

func (l *Lowering) quantizedSum(state *ssa.Value) *ssa.Value {
	a, b := l.quantizedCell(state)
	return l.Add(a, b)
}

func lowerQuantizedLSTMCell(l *Lowering) []*ssa.Value {
	st := l.Tensors("hx")
	if len(st) != 2 {
		l.Fail("an LSTM has two states, found %d", len(st))
	}
	h, c := l.lstmStep(l.quantizedSum(st[0]), st[1])
	return []*ssa.Value{h, c}
}

func lowerQuantizedGRUCell(l *Lowering) *ssa.Value {
	h := l.Tensor("hx")
	a, b := l.quantizedCell(h)
	return l.gruStep(a, b, h)
}
