package aten

import "github.com/aton-project/aton/ssa"

// torchaudio holds the operators of torchaudio's library that are recurrences (torchaudio/csrc/lfilter.cpp): every biquad, and the loudness,
// is one of them.
var torchaudio = Defs{
	"torchaudio::_lfilter":                      {Doc: "an IIR filter of a waveform (B, C, T) by coefficients (C, order)", Lower: lowerLfilter},
	"torchaudio::_lfilter_core_loop":            {Doc: "the recurrence of an IIR filter, which writes its output", Lower: lowerLfilterLoop},
	"torchaudio::_lfilter_core_loop_functional": {Doc: "the recurrence of an IIR filter, with its output", Lower: lowerLfilterLoop},
}

func lowerLfilterLoop(l *Lowering) *ssa.Value {
	return l.lfilterLoop(l.Tensor("input_signal_windows"), l.Tensor("a_coeff_flipped"), l.Tensor("padded_output_waveform"))
}

// lfilterLoop is the output y (B, C, n-1+T) of x (B, C, T) and a (C, n), the last coefficient first. The first n-1 elements along T are there before, and
// so is what the others are set to until they are computed:
//
//	y[t+n-1] = x[t] - a[0]*y[t] - ... - a[n-1]*y[t+n-1]
func (l *Lowering) lfilterLoop(x, a, y *ssa.Value) *ssa.Value {
	if l.Rank(x) != 3 || l.Rank(a) != 2 || l.Rank(y) != 3 {
		l.Fail("expects a waveform of rank 3 and coefficients of rank 2")
	}
	n := l.static(a, 1)
	if n < 1 {
		l.Fail("there are no coefficients")
	}
	before, last := l.sliceC(y, 2, 0, n-1, 1), l.sliceC(a, 1, n-1, n, 1)
	rest := l.Slice(y, l.i64(n-1), l.sizeTensor([]Size{l.sizeOf(y, 2)}), l.i64(2), nil)
	own := l.Sub(x, l.Mul(rest, last)) // what does not depend on the elements before
	if n == 1 {
		return own
	}
	head := l.sliceC(a, 1, 0, n-1, 1)
	_, outs := l.Scan([]*ssa.Value{before}, []*ssa.Value{l.transpose(own, 2, 0, 1)}, false, func(st, el []*ssa.Value) ([]*ssa.Value, []*ssa.Value) {
		next := l.Sub(el[0], l.reduce("ReduceSum", l.Mul(st[0], head), []int64{-1}, false)) // (B, C)
		return []*ssa.Value{l.concatV(2, l.sliceC(st[0], 2, 1, n-1, 1), l.unsqueeze(next, 2))}, []*ssa.Value{next}
	})
	return l.concatV(2, before, l.transpose(outs[0], 1, 2, 0))
}

// lowerLfilter is y with a[0]*y[t] + a[1]*y[t-1] + ... = b[0]*x[t] + b[1]*x[t-1] + ...; before its first element x and y are 0.
func lowerLfilter(l *Lowering) *ssa.Value {
	x, a, b := l.Tensor("waveform"), l.Tensor("a_coeffs"), l.Tensor("b_coeffs")
	if l.Rank(x) != 3 || l.Rank(a) != 2 || l.Rank(b) != 2 {
		l.Fail("expects a waveform of rank 3 and coefficients of rank 2")
	}
	n, channels := l.static(a, 1), l.static(a, 0)
	padded := l.Aten("aten::constant_pad_nd", x, []int64{n - 1, 0}, 0.0)
	first := l.sliceC(a, 1, 0, 1, 1)
	windows := l.Aten("aten::conv1d", padded, l.unsqueeze(l.Aten("aten::flip", b, []int64{1}), 1), nil, []int64{1}, []int64{0}, []int64{1}, channels)
	y := l.lfilterLoop(l.Div(windows, first), l.Div(l.Aten("aten::flip", a, []int64{1}), first), l.fill(l.shapeOf(padded), l.DType(x), ssa.Float(0)))
	return l.Slice(y, l.i64(n-1), l.sizeTensor([]Size{l.sizeOf(y, 2)}), l.i64(2), nil)
}
