package aten

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// recurrent holds recurrent layers and cells (ATen/native/RNN.cpp). PyTorch's
// gates stand in the order i f g o (LSTM) and r z n (GRU), ONNX's in i o f c and z r h.
var recurrent = Defs{
	"aten::rnn_tanh":                             {Doc: "h' = tanh(W x + b + R h + c) over a sequence", Layout: AnyLayout, Autocast: LowerPrecisionOnCPU, Effects: drawsUnless("train"), LowerN: func(l *Lowering) []*ssa.Value { return l.rnnLayer("RNN", "Tanh") }},
	"aten::rnn_relu":                             {Doc: "h' = relu(W x + b + R h + c) over a sequence", Layout: AnyLayout, Autocast: LowerPrecisionOnCPU, Effects: drawsUnless("train"), LowerN: func(l *Lowering) []*ssa.Value { return l.rnnLayer("RNN", "Relu") }},
	"aten::gru":                                  {Doc: "gated recurrent units over a sequence", Layout: AnyLayout, Autocast: LowerPrecisionOnCPU, Effects: drawsUnless("train"), LowerN: func(l *Lowering) []*ssa.Value { return l.rnnLayer("GRU", "") }},
	"aten::lstm":                                 {Doc: "long short-term memory over a sequence", Layout: AnyLayout, Autocast: LowerPrecisionOnCPU, Effects: drawsUnless("train"), LowerN: func(l *Lowering) []*ssa.Value { return l.rnnLayer("LSTM", "") }},
	"aten::rnn_tanh_cell":                        {Doc: "tanh(W x + b + R h + c)", Lower: func(l *Lowering) *ssa.Value { return l.Tanh(l.cellSum()) }},
	"aten::rnn_relu_cell":                        {Doc: "relu(W x + b + R h + c)", Lower: func(l *Lowering) *ssa.Value { return l.Relu(l.cellSum()) }},
	"aten::gru_cell":                             {Doc: "one step of a GRU", Lower: lowerGRUCell},
	"aten::lstm_cell":                            {Doc: "one step of an LSTM", LowerN: lowerLSTMCell},
	"aten::quantized_lstm":                       {Doc: "an LSTM with dynamically quantized products", LowerN: func(l *Lowering) []*ssa.Value { return l.quantizedLayers(true) }},
	"aten::quantized_gru":                        {Doc: "a GRU with dynamically quantized products", LowerN: func(l *Lowering) []*ssa.Value { return l.quantizedLayers(false) }},
	"quantized::quantized_lstm_cell_dynamic":     {Doc: "one step of an LSTM with dynamically quantized products", LowerN: lowerQuantizedLSTMCell},
	"quantized::quantized_gru_cell_dynamic":      {Doc: "one step of a GRU with dynamically quantized products", Lower: lowerQuantizedGRUCell},
	"quantized::quantized_rnn_tanh_cell_dynamic": {Doc: "tanh(W x + b + R h + c) with dynamically quantized products", Lower: func(l *Lowering) *ssa.Value { return l.Tanh(l.quantizedSum(l.Tensor("hx"))) }},
	"quantized::quantized_rnn_relu_cell_dynamic": {Doc: "relu(W x + b + R h + c) with dynamically quantized products", Lower: func(l *Lowering) *ssa.Value { return l.Relu(l.quantizedSum(l.Tensor("hx"))) }},
	"aten::_pack_padded_sequence":                {Doc: "the steps of sequences of falling lengths without the padding, and the number of sequences at each step", LowerN: lowerPackPadded},
	"aten::_pad_packed_sequence":                 {Doc: "the reverse of _pack_padded_sequence, and the lengths", LowerN: lowerPadPacked},
}

// rnnParams are the weights of one direction of one layer; biases and projection may be nil.
type rnnParams struct{ wIH, wHH, bIH, bHH, wHR *ssa.Value }

// packed is a batch of sequences of falling lengths.
type packed struct {
	lens  *ssa.Value // (B) int64
	index *ssa.Value // (n, 2) int64: step and sequence of each row of the data
}

func (l *Lowering) rnnLayer(op, activation string) []*ssa.Value {
	var params []rnnParams
	return l.recurrentLayers(op == "LSTM", func(x, lens *ssa.Value, init []*ssa.Value, layer, dirs, layers int64) (*ssa.Value, []*ssa.Value) {
		if params == nil {
			params = l.rnnParams(layers*dirs, l.Bool("has_biases"))
		}
		return l.rnnOne(op, activation, x, lens, init, params[layer*dirs:(layer+1)*dirs])
	})
}

// recurrentLayers runs the layers of the operator at hand, of which each sees what the one before gives. One runs a layer in
// all directions over x (T, B, I), from the states init (D, B, H), and gives (T, B, D*H) and the final states; lens are the
// lengths of packed sequences, else nil.
func (l *Lowering) recurrentLayers(lstm bool, one func(x, lens *ssa.Value, init []*ssa.Value, layer, dirs, layers int64) (*ssa.Value, []*ssa.Value)) []*ssa.Value {
	layers, bidirectional := l.Int("num_layers"), l.Bool("bidirectional")
	if l.Bool("train") && l.Float("dropout") != 0 && layers > 1 {
		l.Fail("dropout between recurrent layers; export the model in eval mode")
	}
	dirs := int64(1)
	if bidirectional {
		dirs = 2
	}
	var x *ssa.Value
	var seqs *packed
	if l.HasArg("data") {
		var p packed
		x, p = l.unpack(l.Tensor("data"), l.Tensor("batch_sizes"), 0)
		seqs = &p
	} else {
		x = l.Tensor("input")
		if l.Rank(x) != 3 {
			l.Fail("a recurrent layer expects an input of rank 3, found %d", l.Rank(x))
		}
		if l.Bool("batch_first") {
			x = l.transpose(x, 1, 0, 2)
		}
	}
	var states []*ssa.Value
	if lstm {
		states = l.Tensors("hx")
		if len(states) != 2 {
			l.Fail("an LSTM has two states, found %d", len(states))
		}
	} else {
		states = []*ssa.Value{l.Tensor("hx")}
	}
	finals := make([][]*ssa.Value, len(states))
	for layer := range layers {
		init := make([]*ssa.Value, len(states))
		for i, s := range states {
			init[i] = s
			if layers > 1 && s != nil {
				init[i] = l.sliceC(s, 0, layer*dirs, (layer+1)*dirs, 1)
			}
		}
		var lens *ssa.Value
		if seqs != nil {
			lens = seqs.lens
		}
		y, last := one(x, lens, init, layer, dirs, layers)
		x = y
		for i, v := range last {
			finals[i] = append(finals[i], v)
		}
	}
	if seqs != nil {
		x = l.GatherND(x, seqs.index)
	} else if l.Bool("batch_first") {
		x = l.transpose(x, 1, 0, 2)
	}
	out := []*ssa.Value{x}
	for _, f := range finals {
		out = append(out, l.concatV(0, f...))
	}
	return out
}

// rnnParams groups the flat list of weights.
func (l *Lowering) rnnParams(n int64, biases bool) []rnnParams {
	vs := l.Tensors("params")
	per := 2
	if biases {
		per = 4
	}
	projected := int64(len(vs)) == n*int64(per+1)
	if !projected && int64(len(vs)) != n*int64(per) {
		l.Fail("%d weights for %d directions", len(vs), n)
	}
	out := make([]rnnParams, n)
	for i := range out {
		p := rnnParams{wIH: vs[0], wHH: vs[1]}
		vs = vs[2:]
		if biases {
			p.bIH, p.bHH = vs[0], vs[1]
			vs = vs[2:]
		}
		if projected {
			p.wHR, vs = vs[0], vs[1:]
		}
		out[i] = p
	}
	return out
}

// gateOrder gives for each of ONNX's gates the place of PyTorch's.
func gateOrder(op string) []int64 {
	switch op {
	case "LSTM":
		return []int64{0, 3, 1, 2}
	case "GRU":
		return []int64{1, 0, 2}
	}
	return []int64{0}
}

// reorder permutes the blocks of h rows of a weight.
func (l *Lowering) reorderGates(w *ssa.Value, order []int64, h int64) *ssa.Value {
	if len(order) == 1 {
		return w
	}
	parts := make([]*ssa.Value, len(order))
	for i, g := range order {
		parts[i] = l.sliceC(w, 0, g*h, (g+1)*h, 1)
	}
	return l.concatV(0, parts...)
}

// isZeros reports a value that is known to hold only zeros.
func isZeros(v *ssa.Value) bool {
	if t := onnx.ConstOf(v); t != nil && t.HasData() {
		if !t.DType.IsFloat() {
			return false
		}
		if t.IsSplat() && t.NumElements() > 0 {
			one := *t
			one.Shape, one.Strides = []int64{}, []int64{}
			return one.Float64s()[0] == 0
		}
		if t.NumElements() > 1<<16 {
			return false
		}
		for _, x := range t.Float64s() {
			if x != 0 {
				return false
			}
		}
		return true
	}
	if d := v.Def(); d != nil {
		switch d.Kind {
		case "onnx::ConstantOfShape":
			lit, ok := d.Attr("value")
			return !ok || lit.Kind == ssa.TensorLit && lit.Tensor.Float64s()[0] == 0
		case "onnx::Expand", "onnx::Reshape", "onnx::Unsqueeze", "onnx::Squeeze", "onnx::Slice", "onnx::Transpose", "onnx::Identity":
			return isZeros(d.Operand(0))
		}
	}
	return false
}

// rnnOne runs one layer over x (T, B, I); init are states (D, B, H).
// It gives (T, B, D*H) and the final states.
func (l *Lowering) rnnOne(op, activation string, x, lens *ssa.Value, init []*ssa.Value, ps []rnnParams) (*ssa.Value, []*ssa.Value) {
	if ps[0].wHR != nil {
		return l.projectedLSTM(x, lens, init, ps)
	}
	order := gateOrder(op)
	h := l.static(ps[0].wHH, 1)
	stack := func(get func(p rnnParams) *ssa.Value) *ssa.Value {
		parts := make([]*ssa.Value, len(ps))
		for i, p := range ps {
			parts[i] = l.unsqueeze(get(p), 0)
		}
		return l.concatV(0, parts...)
	}
	w := stack(func(p rnnParams) *ssa.Value { return l.reorderGates(p.wIH, order, h) })
	r := stack(func(p rnnParams) *ssa.Value { return l.reorderGates(p.wHH, order, h) })
	var b *ssa.Value
	if ps[0].bIH != nil {
		b = stack(func(p rnnParams) *ssa.Value {
			return l.concatV(0, l.reorderGates(p.bIH, order, h), l.reorderGates(p.bHH, order, h))
		})
	}
	attrs := []ssa.Attr{onnx.HiddenSize(h)}
	if len(ps) == 2 {
		attrs = append(attrs, onnx.Direction("bidirectional"))
	}
	if activation == "Relu" {
		acts := make([]string, len(ps))
		for i := range acts {
			acts[i] = activation
		}
		attrs = append(attrs, onnx.Activations(acts...))
	}
	if op == "GRU" {
		attrs = append(attrs, onnx.LinearBeforeReset(true))
	}
	if lens != nil {
		lens = l.Cast(lens, tensor.Int32)
	}
	operands := []*ssa.Value{x, w, r, b, lens}
	zero := true
	for _, s := range init {
		zero = zero && isZeros(s)
	}
	if !zero {
		operands = append(operands, init...)
	}
	vs := l.Create(ssa.Kind("onnx::"+op), 1+len(init), operands, attrs...)
	y := vs[0] // (T, D, B, H)
	if len(ps) == 1 {
		y = l.squeeze(y, 1)
	} else {
		y = l.transpose(y, 0, 2, 1, 3)
		y = l.reshapeSizes(y, l.sizeOf(x, 0), l.sizeOf(x, 1), ConstSize(2*h))
	}
	return y, vs[1:]
}

// projectedLSTM is an LSTM whose hidden state is projected, which ONNX's lacks: a Scan over the steps.
// With lens (B), a sequence keeps its states at the steps beyond its length, from either end.
func (l *Lowering) projectedLSTM(x, lens *ssa.Value, init []*ssa.Value, ps []rnnParams) (*ssa.Value, []*ssa.Value) {
	var ys, hs, cs []*ssa.Value
	var alive *ssa.Value // (T, B, 1)
	if lens != nil {
		alive = l.unsqueeze(l.Less(l.unsqueeze(l.countTo(l.sizeOf(x, 0)), 1), l.unsqueeze(lens, 0)), 2)
	}
	for i, p := range ps {
		h0 := l.squeeze(l.sliceC(init[0], 0, int64(i), int64(i+1), 1), 0)
		c0 := l.squeeze(l.sliceC(init[1], 0, int64(i), int64(i+1), 1), 0)
		// the input's part of the gates does not depend on the state
		gates := l.linear(x, p.wIH, p.bIH)
		xs := []*ssa.Value{gates}
		if alive != nil {
			xs = append(xs, alive)
		}
		finals, outs := l.Scan([]*ssa.Value{h0, c0}, xs, i == 1, func(st, el []*ssa.Value) ([]*ssa.Value, []*ssa.Value) {
			h, c := l.lstmStep(l.Add(el[0], l.linear(st[0], p.wHH, p.bHH)), st[1])
			h = l.MatMul(h, l.transpose(p.wHR, 1, 0))
			if alive != nil {
				h, c = l.Where(el[1], h, st[0]), l.Where(el[1], c, st[1])
			}
			return []*ssa.Value{h, c}, []*ssa.Value{h}
		})
		ys = append(ys, outs[0])
		hs = append(hs, l.unsqueeze(finals[0], 0))
		cs = append(cs, l.unsqueeze(finals[1], 0))
	}
	return l.concatV(2, ys...), []*ssa.Value{l.concatV(0, hs...), l.concatV(0, cs...)}
}

// cellSum is W x + b + R h + c.
func (l *Lowering) cellSum() *ssa.Value {
	return l.Add(l.linear(l.Tensor("input"), l.Tensor("w_ih"), l.TensorOr("b_ih")), l.linear(l.Tensor("hx"), l.Tensor("w_hh"), l.TensorOr("b_hh")))
}

// chunkGates splits the last axis into n equal parts.
func (l *Lowering) chunkGates(x *ssa.Value, n int64) []*ssa.Value {
	axis := l.Rank(x) - 1
	h := l.static(x, axis) / n
	return l.Split(int(n), x, l.i64(repeatInt(h, int(n))...), onnx.Axis(axis))
}

func (l *Lowering) lstmStep(gates, c *ssa.Value) (h, cNext *ssa.Value) {
	g := l.chunkGates(gates, 4)
	in, forget, out := l.Sigmoid(g[0]), l.Sigmoid(g[1]), l.Sigmoid(g[3])
	cNext = l.Add(l.Mul(forget, c), l.Mul(in, l.Tanh(g[2])))
	return l.Mul(out, l.Tanh(cNext)), cNext
}

func lowerLSTMCell(l *Lowering) []*ssa.Value {
	st := l.Tensors("hx")
	if len(st) != 2 {
		l.Fail("an LSTM has two states, found %d", len(st))
	}
	gates := l.Add(l.linear(l.Tensor("input"), l.Tensor("w_ih"), l.TensorOr("b_ih")), l.linear(st[0], l.Tensor("w_hh"), l.TensorOr("b_hh")))
	h, c := l.lstmStep(gates, st[1])
	return []*ssa.Value{h, c}
}

func lowerGRUCell(l *Lowering) *ssa.Value {
	h := l.Tensor("hx")
	return l.gruStep(l.linear(l.Tensor("input"), l.Tensor("w_ih"), l.TensorOr("b_ih")), l.linear(h, l.Tensor("w_hh"), l.TensorOr("b_hh")), h)
}

// gruStep is the next state of a GRU, of the gates' parts of the input and of the state h.
func (l *Lowering) gruStep(ofInput, ofState, h *ssa.Value) *ssa.Value {
	x, r := l.chunkGates(ofInput, 3), l.chunkGates(ofState, 3)
	reset, update := l.Sigmoid(l.Add(x[0], r[0])), l.Sigmoid(l.Add(x[1], r[1]))
	n := l.Tanh(l.Add(x[2], l.Mul(reset, r[2])))
	return l.Add(l.Mul(l.Sub(h, n), update), n)
}

// unpack pads packed data with a number: (T, B, ...).
func (l *Lowering) unpack(data, batchSizes *ssa.Value, padding float64) (*ssa.Value, packed) {
	batchSizes = l.Cast(batchSizes, tensor.Int64)
	B := Size{Value: l.gather(batchSizes, l.scalarInt(tensor.Int64, 0), 0)}
	if s := batchSizes.Sym; len(s) > 0 {
		B.Expr, B.Known = s[0], true
	}
	T := l.sizeOf(batchSizes, 0)
	alive := l.Less(l.unsqueeze(l.countTo(B), 0), l.unsqueeze(batchSizes, 1)) // (T, B)
	p := packed{
		lens:  l.reduce("ReduceSum", l.Cast(alive, tensor.Int64), []int64{0}, false),
		index: l.transpose(l.NonZero(alive), 1, 0),
	}
	shape := append([]Size{T, B}, l.sizesOf(data, 1, l.Rank(data))...)
	lit := ssa.Float(padding)
	blank := l.fill(l.sizeTensor(shape), l.DType(data), lit)
	return l.ScatterND(blank, p.index, data), p
}

func lowerPackPadded(l *Lowering) []*ssa.Value {
	x, lens := l.Tensor("input"), l.Cast(l.Tensor("lengths"), tensor.Int64)
	if l.Bool("batch_first") {
		x = l.swapAxes(x, 0, 1)
	}
	longest := Size{Value: l.gather(lens, l.scalarInt(tensor.Int64, 0), 0)} // the lengths fall
	if s := lens.Sym; len(s) > 0 {
		longest.Expr, longest.Known = s[0], true
	}
	alive := l.Less(l.unsqueeze(l.countTo(longest), 1), l.unsqueeze(lens, 0)) // (T, B)
	index := l.transpose(l.NonZero(alive), 1, 0)
	sizes := l.reduce("ReduceSum", l.Cast(alive, tensor.Int64), []int64{1}, false)
	return []*ssa.Value{l.GatherND(x, index), sizes}
}

func lowerPadPacked(l *Lowering) []*ssa.Value {
	data := l.Tensor("data")
	x, p := l.unpack(data, l.Tensor("batch_sizes"), l.Float("padding_value"))
	total, T := l.sizes("total_length")[0], l.sizeOf(x, 0)
	n, known := total.Int()
	if !(known && n <= 0) && !(total.Known && total.Expr.Equal(T.Expr)) {
		// pad up to the total length; PyTorch insists that it is not below the longest
		more := l.sizeTensor([]Size{l.maxSize(l.subSize(total, T), ConstSize(0))})
		zeros := func(n int) *ssa.Value { return l.i64(repeatInt(0, n)...) }
		r := l.Rank(x)
		pads := l.concatV(0, zeros(r), more, zeros(r-1))
		x = l.Pad(x, pads, l.Like(x, l.Float("padding_value")), nil)
	}
	if l.Bool("batch_first") {
		x = l.swapAxes(x, 0, 1)
	}
	return []*ssa.Value{x, p.lens}
}
