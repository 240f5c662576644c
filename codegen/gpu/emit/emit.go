// Package emit makes the kernels of ONNX operators: an emitter for each class of operators, each in a file of its name.
//
//	class      operators                                       a thread computes
//	loop       element by element, views, gathers, Pad, ...    1 or 4 elements of the result
//	reduce     ReduceSum, ..., ArgMax, GlobalAveragePool        a row, alone or in a team of 32 to 1024
//	row        Softmax, LayerNormalization, ...                 the same
//	gemm       MatMul, Gemm, MatMulInteger                     8x8 of a tile of 128x128, or 4x4 of 64x64, or tensor cores; a team for each element of thin ones
//	attention  Attention                                        4x4 scores of a tile of 64 queries and 64 keys
//	conv       Conv, ConvTranspose, ConvInteger                the same, with a gathered operand
//	pool       MaxPool, AveragePool, LpPool                     1 element of the result
//	transpose  Transpose that moves the last axis               through a tile of 32x33 in shared memory
//	scan       CumSum, CumProd                                  a line
//	recurrent  RNN, GRU, LSTM                                   a block of threads a sequence, for all its steps
//	sort       TopK, Unique, NonMaxSuppression                  a block of threads a row, by merging
//	select     NonZero, Compress                                1 element; their number is read from the device
//	random     RandomUniform, RandomNormal, Bernoulli, ...     1, 2 or 4 elements, each by its number
//	transform  DFT, STFT                                        1 term, in a pass for each factor of the length
//
// The operators are in their newest encoding, with inferred types. What an emitter does not take is a *Refusal with the
// reason; the planner makes it a host step.
//
// Numbers: float32 is computed in float32, with fma only where it is written; float16 and bfloat16 in float32, rounded once
// by each operator; float64 in float64; integers wrap. Sums have a fixed order, whatever runs in parallel.
package emit

import (
	"errors"
	"fmt"
	"slices"

	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Group is what one call of Build makes kernels for: an operator, or a chain of them of which only the last result is
// stored.
type Group struct {
	// Root is the operator whose results are stored.
	Root *ssa.Op
	// Hero computes with threads of its own kind; Root follows from its result element by element, in the same order. Nil if Root stands alone.
	Hero *ssa.Op
	// Inlined are values that are computed where they are read. Each is the result of an operator of class loop.
	Inlined map[*ssa.Value]bool
	// Scores, if set, are those by a Softmax of which the product at hand, Root or Hero, weighs values: an attention without a matrix of scores.
	Scores *Scores
	// Hint has likely values of symbols. They decide about tiles and teams, not about what a kernel can do: it serves all sizes.
	Hint map[string]int64
	// TF32 lets tensor cores multiply float32, rounded to tf32.
	TF32 bool
}

// Scores are what an attention weighs values by: the Softmax of products of queries and keys, or of what follows from these element by element.
type Scores struct {
	Product, Softmax *ssa.Op
	// Ops are these two and what stands between them and behind the Softmax.
	Ops []*ssa.Op
	// Zeros says that a query of which all scores are minus infinity gives 0, NaNs that so does one of which a score is NaN. Else both give NaN.
	Zeros, NaNs bool
}

// Launch is a kernel with the values behind its buffers and the size of its grid.
type Launch struct {
	Class   string
	Kernel  *kir.Kernel
	Buffers []*ssa.Value // in the order of the parameters that are buffers
	Grid    [3]sym.Expr  // blocks
	// Guards are products that must stay below 2^31: indices are 32 bits wide.
	Guards []sym.Expr
	// Read, if set, is a tensor whose elements must be brought from the device before the launches that follow: they are the values
	// of its Sym, on which their sizes depend. Nothing is launched then.
	Read *ssa.Value
	// Work is the number of multiplications and additions of floats of a matrix product or convolution, else nothing.
	Work sym.Expr
}

// scratch makes memory that only the launches of a group use.
func scratch(d tensor.DType, shape ...sym.Expr) *ssa.Value {
	return &ssa.Value{ID: -1, Type: ssa.Tensor(d, shape...)}
}

// IsScratch reports a value of no graph: memory that only the launches of one group use.
func IsScratch(v *ssa.Value) bool { return v.Def() == nil && v.Param() == nil }

// Holds gives nil if a buffer can hold the value, else an error with the reason.
func Holds(v *ssa.Value) error {
	if v.Type == nil {
		return errors.New("a value without type")
	}
	t := v.Tensor()
	switch {
	case t == nil:
		return fmt.Errorf("%s is no tensor", v.Type)
	case !t.Ranked:
		return errors.New("the rank of a tensor is not known before the run")
	case memType(t.DType) == kir.None:
		return fmt.Errorf("elements of type %s", t.DType)
	}
	return nil
}

// Stack copies a tensor to its place in one that has a tensor of its shape for each value of turn.
func Stack(part, all *ssa.Value, turn sym.Expr) Launch {
	w := &writer{class: "loop"}
	w.elementwise(all, shapeOf(part), func(s *index.Space, coords []index.Expr) index.Expr {
		return s.Add(s.Linear(shapeOf(part), coords), index.Const(turn.Mul(index.Prod(shapeOf(part)))))
	}, func(c *body, coords []index.Expr) kir.Value { return c.at(part, coords) })
	return w.out[0]
}

// Refusal says why there is no kernel.
type Refusal struct {
	Kind   ssa.Kind
	Reason string
}

// Error gives kind and reason.
func (r *Refusal) Error() string { return fmt.Sprintf("%s: %s", r.Kind, r.Reason) }

// Build makes the launches that compute a group, in order. The error is a *Refusal.
func Build(g Group) (launches []Launch, err error) {
	at := g.Root
	if g.Hero != nil {
		at = g.Hero
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case refused:
			launches, err = nil, &Refusal{at.Kind, string(r)}
		default:
			panic(r)
		}
	}()
	w := &writer{Group: g, node: node{at}}
	for _, v := range append(at.Operands(), at.Results...) {
		if v == nil || v.Type == nil {
			continue
		}
		if err := Holds(v); err != nil {
			refuse("%v", err)
		}
	}
	refuseNarrow(at)
	e := find(at.Kind)
	if at.Kind == "onnx::Dropout" && (at.Operand(2) != nil || len(at.Results) > 1 && at.Results[1].HasUses()) && len(g.Inlined) == 0 {
		e = &emitter{"random", emitDropout, false} // no view of its operand
	}
	if e == nil {
		refuse("no emitter")
	}
	if g.Hero != nil && !e.epilogue {
		refuse("nothing can follow it in its kernel")
	}
	if w.class = e.class; g.Scores != nil {
		w.class = "attention"
		emitWeighted(w)
	} else {
		e.emit(w)
	}
	return w.out, nil
}

// emitter makes kernels for an operator.
type emitter struct {
	class string
	emit  func(w *writer)
	// epilogue says that what follows element by element may be computed in the same kernel.
	epilogue bool
}

// Class is the class of an operator, "" for one without emitter.
func Class(k ssa.Kind) string {
	if e := find(k); e != nil {
		return e.class
	}
	return ""
}

// HasEpilogue reports that Build takes the operator as the hero of a group.
func HasEpilogue(k ssa.Kind) bool {
	e := find(k)
	return e != nil && e.epilogue
}

// find gives the emitter of an operator.
func find(k ssa.Kind) *emitter {
	if k.Namespace() != onnx.Namespace {
		return nil
	}
	name := k.Name()
	for _, family := range [...]func(name string) *emitter{heroes, loopEmitter} {
		if e := family(name); e != nil {
			return e
		}
	}
	return nil
}

// heroes are the operators of all classes but loop.
func heroes(name string) *emitter {
	switch name {
	case "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp":
		return &emitter{"reduce", emitReduce, true}
	case "GlobalAveragePool", "GlobalMaxPool":
		return &emitter{"reduce", emitGlobalPool, true}
	case "ArgMax", "ArgMin":
		return &emitter{"reduce", emitArgReduce, false}
	case "Softmax", "LogSoftmax", "LpNormalization":
		return &emitter{"row", emitSoftmax, false}
	case "LayerNormalization", "RMSNormalization", "InstanceNormalization", "GroupNormalization", "MeanVarianceNormalization":
		return &emitter{"row", emitNorm, true}
	case "MatMul":
		return &emitter{"gemm", emitMatMul, true}
	case "Gemm":
		return &emitter{"gemm", emitGemm, true}
	case "MatMulInteger":
		return &emitter{"gemm", emitMatMulInteger, true}
	case "ConvInteger":
		return &emitter{"conv", emitConvInteger, true}
	case "Attention":
		return &emitter{"attention", emitAttention, false}
	case "Conv":
		return &emitter{"conv", emitConv, true}
	case "ConvTranspose":
		return &emitter{"conv", emitConvTranspose, true}
	case "MaxPool":
		return &emitter{"pool", emitMaxPool, false}
	case "AveragePool", "LpPool":
		return &emitter{"pool", emitAveragePool, false}
	case "Concat":
		return &emitter{"loop", emitConcat, false}
	case "Transpose":
		return &emitter{"transpose", emitTranspose, false}
	case "RNN", "GRU", "LSTM":
		return &emitter{"recurrent", emitRecurrent, false}
	case "TopK":
		return &emitter{"sort", emitTopK, false}
	case "Unique":
		return &emitter{"sort", emitUnique, false}
	case "NonMaxSuppression":
		return &emitter{"sort", emitNonMaxSuppression, false}
	case "NonZero":
		return &emitter{"select", emitNonZero, false}
	case "Compress":
		return &emitter{"select", emitCompress, false}
	case "Det":
		return &emitter{"row", emitDet, false}
	case "CumSum", "CumProd":
		return &emitter{"scan", emitScan, false}
	case "ScatterElements", "ScatterND":
		return &emitter{"loop", emitScatter, false}
	case "MaxUnpool":
		return &emitter{"sort", emitMaxUnpool, false}
	case "LinearAttention":
		return &emitter{"recurrent", emitLinearAttention, false}
	case "RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike", "Bernoulli":
		return &emitter{"random", emitRandom, false}
	case "Multinomial":
		return &emitter{"random", emitMultinomial, false}
	case "BitCast":
		return &emitter{"loop", emitBitCast, false}
	case "DFT":
		return &emitter{"transform", emitDFT, false}
	case "STFT":
		return &emitter{"transform", emitSTFT, false}
	}
	return nil
}

type refused string

func refuse(format string, args ...any) { panic(refused(fmt.Sprintf(format, args...))) }

// writer makes the kernels of a group.
type writer struct {
	Group
	node
	class string
	out   []Launch
}

// node reads attributes and operands of an operator.
type node struct{ o *ssa.Op }

func (n node) attr(name string) ssa.Literal {
	if l, ok := n.o.Attr(name); ok {
		return l
	}
	if s := onnx.SchemaOf(n.o.Kind); s != nil {
		if a := s.Attr(name); a != nil {
			l, _ := a.Value()
			return l
		}
	}
	return ssa.None
}

func (n node) int(name string) int64     { return n.attr(name).Int() }
func (n node) float(name string) float64 { return float64(float32(n.attr(name).Float())) }
func (n node) str(name string) string    { return n.attr(name).Str() }
func (n node) has(name string) bool      { _, ok := n.o.Attr(name); return ok }

func (n node) ints(name string) []int64 {
	v, _ := n.attr(name).IntList()
	return v
}

// in is operand i, nil if it is absent.
func (n node) in(i int) *ssa.Value { return n.o.Operand(i) }

// wants refuses operands of another rank than those given, one for each operand; -1 fits all.
func (n node) wants(ranks ...int) {
	for i, r := range ranks {
		if v := n.in(i); v != nil && r >= 0 && rank(v) != r {
			refuse("operand %d of rank %d", i, rank(v))
		}
	}
}

// sizes is the content of an integer operand that is known symbolically.
func (n node) sizes(i int) []sym.Expr {
	v, ok := onnx.SymOf(n.in(i))
	if !ok {
		refuse("operand %d depends on data", i)
	}
	return v
}

// consts is the content of an integer operand that is known.
func (n node) consts(i int) []int64 {
	if v, ok := onnx.ConstInts(n.in(i)); ok {
		return v
	}
	var out []int64
	for _, e := range n.sizes(i) {
		k, ok := e.Int()
		if !ok {
			refuse("operand %d is not constant", i)
		}
		out = append(out, k)
	}
	return out
}

func (n node) axis(a int64, rank int) int {
	if a < 0 {
		a += int64(rank)
	}
	if a < 0 || a >= int64(rank) {
		refuse("axis %d of rank %d", a, rank)
	}
	return int(a)
}

func shapeOf(v *ssa.Value) []sym.Expr { return v.Tensor().Dims }

func sameShape(v, w *ssa.Value) bool {
	return slices.EqualFunc(shapeOf(v), shapeOf(w), sym.Expr.Equal)
}

func rank(v *ssa.Value) int { return len(v.Tensor().Dims) }

func dtype(v *ssa.Value) tensor.DType { return v.Tensor().DType }

// result is result i of the group, where it is stored.
func (w *writer) result(i int) *ssa.Value {
	if w.Hero != nil {
		return w.Root.Results[0]
	}
	if i < len(w.o.Results) {
		return w.o.Results[i]
	}
	return nil
}

// finish adds a launch.
func (w *writer) finish(b *body, grid ...sym.Expr) *Launch {
	for len(grid) < 3 {
		grid = append(grid, sym.Const(1))
	}
	l := Launch{Class: w.class, Kernel: b.b.K, Buffers: b.order, Grid: [3]sym.Expr(grid)}
	seen := map[string]bool{}
	for _, v := range b.order {
		if n := index.Prod(shapeOf(v)); !seen[n.String()] {
			seen[n.String()] = true
			l.Guards = append(l.Guards, n)
		}
	}
	b.b.Prune()
	b.b.K.Name = "k_" + w.class + "_" + b.b.K.Digest()
	w.out = append(w.out, l)
	return &w.out[len(w.out)-1]
}

// guess is a size that is known, or likely.
func (w *writer) guess(e sym.Expr) (n int64, ok bool) {
	if n, ok = e.Int(); ok || len(w.Hint) == 0 {
		return n, ok
	}
	return e.Eval(w.Hint)
}

// atMost reports a size that is known or likely not to be greater.
func (w *writer) atMost(e sym.Expr, most int64) bool {
	n, ok := w.guess(e)
	return ok && n <= most
}

// ceilDiv is the number of groups of n that hold e.
func ceilDiv(e sym.Expr, n int64) sym.Expr {
	return e.Add(sym.Const(n - 1)).FloorDiv(sym.Const(n))
}
