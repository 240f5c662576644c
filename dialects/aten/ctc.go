package aten

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// ctc holds connectionist temporal classification (ATen/native/LossCTC.cpp).
var ctc = Defs{
	"aten::ctc_loss":  {Doc: "-log of the probability of all alignments of the targets", Autocast: Float32OnCPU, Lower: lowerCTC},
	"aten::_ctc_loss": {Doc: "ctc_loss of each sample; the second result serves the backward pass only", LowerN: lowerCTCForward},
}

func lowerCTC(l *Lowering) *ssa.Value {
	loss, lengths, lone := l.ctcLoss()
	if l.Bool("zero_infinity") {
		loss = l.Where(l.Equal(loss, l.Like(loss, math.Inf(1))), l.Like(loss, 0), loss)
	}
	switch l.Int("reduction") {
	case 1:
		n := l.Cast(l.Max(lengths, l.scalarInt(tensor.Int64, 1)), l.DType(loss))
		return l.reduce("ReduceMean", l.Div(loss, n), nil, false)
	case 2:
		return l.reduce("ReduceSum", loss, nil, false)
	}
	if lone {
		return l.squeeze(loss, 0)
	}
	return loss
}

func lowerCTCForward(l *Lowering) []*ssa.Value {
	if len(l.Node.Results) > 1 && l.Node.Results[1].HasUses() {
		l.Fail("the second result of _ctc_loss exists for the backward pass only")
	}
	loss, _, lone := l.ctcLoss()
	if l.Bool("zero_infinity") {
		loss = l.Where(l.Equal(loss, l.Like(loss, math.Inf(1))), l.Like(loss, 0), loss)
	}
	if lone {
		loss = l.squeeze(loss, 0)
	}
	return []*ssa.Value{loss, l.emptyVector(l.DType(loss))}
}

// ctcLoss gives the loss of each sample, the target lengths, and whether there was no batch axis.
func (l *Lowering) ctcLoss() (loss, targetLengths *ssa.Value, lone bool) {
	lp, targets := l.Tensor("log_probs"), l.Cast(l.Tensor("targets"), tensor.Int64)
	lengths := func(name string) *ssa.Value { return l.reshape(l.Cast(l.Tensor(name), tensor.Int64), -1) }
	inLen, tgLen := lengths("input_lengths"), lengths("target_lengths")
	if lone = l.Rank(lp) == 2; lone {
		lp = l.unsqueeze(lp, 1)
	}
	blank := l.scalarInt(tensor.Int64, l.Int("blank"))
	d := l.DType(lp)
	zero, one := l.scalarInt(tensor.Int64, 0), l.scalarInt(tensor.Int64, 1)
	T, N := l.sizeOf(lp, 0), l.sizeOf(lp, 1)
	if l.Rank(targets) == 1 {
		// all targets in one row: sample n starts where the ones before it end
		longest := Size{Value: l.reduce("ReduceMax", tgLen, nil, false)}
		if t := tgLen.Sym; len(t) == 1 {
			longest.Expr, longest.Known = t[0], true
		}
		starts := l.Sub(l.CumSum(tgLen, l.scalarInt(tensor.Int64, 0)), tgLen)
		at := l.Add(l.unsqueeze(starts, 1), l.unsqueeze(l.countTo(longest), 0))
		last := l.Sub(l.sizeValue(l.sizeOf(targets, 0)), one)
		targets = l.gather(targets, l.Max(l.Min(at, last), zero), 0)
	}
	// labels: blank, t0, blank, t1, ..., blank of length 2S+1
	S := l.sizeOf(targets, 1)
	column := l.Expand(blank, l.sizeTensor([]Size{N, S, ConstSize(1)}))
	pairs := l.concatV(2, column, l.unsqueeze(targets, 2))
	twice := l.mulSize(S, ConstSize(2))
	labels := l.concatV(1, l.reshapeSizes(pairs, N, twice), l.Expand(blank, l.sizeTensor([]Size{N, ConstSize(1)})))
	K := l.addSize(twice, ConstSize(1))
	index := l.Expand(l.unsqueeze(labels, 0), l.sizeTensor([]Size{T, N, K}))
	// Entries beyond a sample's target may be out of range; they do not reach its loss.
	classes := l.sizeValue(l.subSize(l.sizeOf(lp, 2), ConstSize(1)))
	index = l.Min(l.Max(index, zero), classes)
	emit := l.GatherElements(lp, index, onnx.Axis(2)) // (T, N, K)

	never := l.Scalar(d, math.Inf(-1))
	place := l.unsqueeze(l.countTo(K), 0)
	// a label may follow the one two before it unless both are the same (blanks are)
	padLabels := l.concatV(1, l.Expand(l.scalarInt(tensor.Int64, -1), l.sizeTensor([]Size{N, ConstSize(2)})), l.Slice(labels, l.i64(0), l.i64(-2), l.i64(1), nil))
	skip := l.And(l.Not(l.Equal(labels, padLabels)), l.Not(l.Less(place, l.scalarInt(tensor.Int64, 2))))
	// before the first step only place 0 (as if it had come from "place -1") and place 1 can start
	start := l.Expand(l.Where(l.Less(place, one), l.Scalar(d, 0), never), l.sizeTensor([]Size{N, K}))
	steps := l.countTo(T)
	finals, _ := l.Scan([]*ssa.Value{start}, []*ssa.Value{emit, steps}, false, func(st, el []*ssa.Value) ([]*ssa.Value, []*ssa.Value) {
		a := st[0]
		shift := func(by int64) *ssa.Value {
			fill := l.Expand(never, l.sizeTensor([]Size{N, ConstSize(by)}))
			return l.concatV(1, fill, l.Slice(a, l.i64(0), l.i64(-by), l.i64(1), nil))
		}
		// At the first step nothing may jump from place 0 to 2; the start has no blank behind it, so skip does not apply.
		next := l.Add(l.logSumExp3(a, shift(1), l.Where(skip, shift(2), never), never), el[0])
		alive := l.Less(el[1], l.unsqueeze(inLen, 1))
		return []*ssa.Value{l.Where(alive, next, a)}, nil
	})
	alpha := finals[0]
	end := l.Mul(l.unsqueeze(tgLen, 1), l.scalarInt(tensor.Int64, 2))
	at := func(i *ssa.Value) *ssa.Value {
		return l.squeeze(l.GatherElements(alpha, i, onnx.Axis(1)), 1)
	}
	whole := at(end)
	short := l.Where(l.Equal(tgLen, zero), never, at(l.Max(l.Sub(end, one), zero)))
	return l.Neg(l.logSumExp3(whole, short, never, never)), tgLen, lone
}

// logSumExp3 is log(exp(a) + exp(b) + exp(c)), -inf where all are.
func (l *Lowering) logSumExp3(a, b, c, never *ssa.Value) *ssa.Value {
	top := l.Max(l.Max(a, b), c)
	top = l.Where(l.Equal(top, never), l.Like(top, 0), top)
	e := func(v *ssa.Value) *ssa.Value { return l.Exp(l.Sub(v, top)) }
	return l.Add(l.Log(l.Add(l.Add(e(a), e(b)), e(c))), top)
}
