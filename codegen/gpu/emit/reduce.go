package emit

import (
	"math"

	"github.com/aton-project/aton/codegen/gpu/approx"
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// reduction is a way to fold a row: of elements that before has changed, by combine from start on; after changes the result.
type reduction struct {
	start   func(b *kir.Builder, t kir.Type, d tensor.DType) value
	before  func(b *kir.Builder, x value) value
	combine func(s *scalarPoint, x, y value) value
	after   func(b *kir.Builder, x value, n value) value
	ints    bool // serves integers too
}

func constant(f float64) func(*kir.Builder, kir.Type, tensor.DType) value {
	return func(b *kir.Builder, t kir.Type, _ tensor.DType) value { return b.Num(t, f) }
}

func plus(s *scalarPoint, x, y value) value  { return s.b.Add(x, y) }
func times(s *scalarPoint, x, y value) value { return s.b.Mul(x, y) }

func square(b *kir.Builder, x value) value { return b.Mul(x, x) }

func magnitude(b *kir.Builder, x value) value {
	if x.Type.IsFloat() {
		return b.Unary(kir.Abs, x)
	}
	return b.Select(b.Lt(x, b.Int(x.Type, 0)), b.Neg(x), x)
}

// least and greatest are where Max and Min start: the limits of the element type.
func least(b *kir.Builder, t kir.Type, d tensor.DType) value {
	if t.IsFloat() {
		return b.Float(t, math.Inf(-1))
	}
	if d == tensor.Int64 {
		return b.Int(t, math.MinInt64)
	}
	if d.IsUnsigned() || d == tensor.Bool {
		return b.Int(t, 0)
	}
	return b.Int(t, -1<<(8*d.Size()-1))
}

func greatest(b *kir.Builder, t kir.Type, d tensor.DType) value {
	if t.IsFloat() {
		return b.Float(t, math.Inf(1))
	}
	switch {
	case d == tensor.Int64:
		return b.Int(t, math.MaxInt64)
	case d == tensor.Bool:
		return b.Int(t, 1)
	case d.IsUnsigned():
		return b.Int(t, 1<<(8*d.Size())-1)
	}
	return b.Int(t, 1<<(8*d.Size()-1)-1)
}

// mean divides by the number of elements.
func mean(b *kir.Builder, x, n value) value {
	if x.Type.IsFloat() {
		return b.Div(x, b.Convert(kir.SToF, n, x.Type))
	}
	return b.Div(x, b.Convert(kir.SExt, n, x.Type))
}

func then(f func(b *kir.Builder, x value) value) func(*kir.Builder, value, value) value {
	return func(b *kir.Builder, x, _ value) value { return f(b, x) }
}

func squareRoot(b *kir.Builder, x value) value { return b.Unary(kir.Sqrt, x) }

// reductionOf is the table of the reductions.
func reductionOf(name string) *reduction {
	switch name {
	case "ReduceSum":
		return &reduction{constant(0), nil, plus, nil, true}
	case "ReduceMean", "GlobalAveragePool":
		return &reduction{constant(0), nil, plus, mean, true}
	case "ReduceProd":
		return &reduction{constant(1), nil, times, nil, true}
	case "ReduceMax", "GlobalMaxPool":
		return &reduction{least, nil, (*scalarPoint).max, nil, true}
	case "ReduceMin":
		return &reduction{greatest, nil, (*scalarPoint).min, nil, true}
	case "ReduceL1":
		return &reduction{constant(0), magnitude, plus, nil, true}
	case "ReduceL2":
		return &reduction{constant(0), square, plus, then(squareRoot), false}
	case "ReduceSumSquare":
		return &reduction{constant(0), square, plus, nil, true}
	case "ReduceLogSum":
		return &reduction{constant(0), nil, plus, then(approx.Log), false}
	case "ReduceLogSumExp": // the greatest element is taken out first, see fold
		return &reduction{constant(0), approx.Exp, plus, then(approx.Log), false}
	}
	return nil
}

// emitReduce folds the axes that operand 1 names.
func emitReduce(w *writer) {
	x := w.in(0)
	along := make([]bool, rank(x))
	var axes []int64
	if w.in(1) != nil {
		axes = w.consts(1)
	}
	for _, a := range axes {
		along[w.axis(a, rank(x))] = true
	}
	if len(axes) == 0 && w.int("noop_with_empty_axes") == 0 {
		for i := range along {
			along[i] = true
		}
	}
	w.fold(along)
}

// emitGlobalPool folds the axes behind the channels.
func emitGlobalPool(w *writer) {
	along := make([]bool, rank(w.in(0)))
	for i := range along {
		along[i] = i >= 2
	}
	w.fold(along)
}

func (w *writer) fold(along []bool) {
	name := w.o.Kind.Name()
	r := reductionOf(name)
	x := w.in(0)
	d := dtype(x)
	signed := name == "ReduceMean" || name == "ReduceL1" // divides, or takes magnitudes
	if r == nil || d == tensor.Uint64 && signed || !d.IsFloat() && !r.ints {
		refuse("elements of type %s", d)
	}
	rows := splitAxes(shapeOf(x), along)
	size := w.teamSize(rows.n, rows.rows, rows.contiguous())
	if name == "ReduceLogSumExp" { // goes through a row twice
		size = w.longTeam(&rows, regType(d))
	}
	w.rowTeams(rows.n, rows.rows, size, func(t *team) {
		b := t.b
		acc := regType(d)
		if !acc.IsFloat() {
			acc = kir.I64 // as wide as any sum of the interpreter's
		}
		s := &scalarPoint{&point{body: t.body, node: w.node}, d, acc}
		read := func(i value) value {
			v := t.at(x, t.element(&rows, i))
			switch {
			case d == tensor.Bool:
				return b.Convert(kir.ZExt, v, acc)
			case !acc.IsFloat():
				return b.Convert(kir.SExt, v, acc)
			}
			return v
		}
		row := &held{t: t, n: rows.n, read: read}
		if name == "ReduceLogSumExp" {
			row = t.hold(rows.n, acc, read)
		}
		run := func(start value, before func(v value) value, combine func(s *scalarPoint, x, y value) value) value {
			part := row.each([]value{start}, func(_, v value, c []value) []value { return []value{combine(s, c[0], before(v))} })
			return t.all(part, func(x, y []value) []value { return []value{combine(s, x[0], y[0])} })[0]
		}
		before := func(v value) value { return v }
		if r.before != nil {
			before = func(v value) value { return r.before(b, v) }
		}
		var top value
		if name == "ReduceLogSumExp" {
			// an infinite maximum is the result, unless all others are subtracted from it
			top = run(b.Float(acc, math.Inf(-1)), func(v value) value { return v }, (*scalarPoint).max)
			before = func(v value) value { return approx.Exp(b, b.Sub(v, top)) }
		}
		y := run(r.start(b, acc, d), before, r.combine)
		if r.after != nil {
			y = r.after(b, y, b.Size(rows.n))
		}
		if top != nil {
			finite := b.Lt(b.Unary(kir.Abs, top), b.Float(acc, math.Inf(1)))
			y = b.Select(finite, b.Add(top, y), top)
		}
		if d == tensor.Bool {
			y = b.Compare(kir.Ne, y, b.Int(acc, 0))
		} else if !acc.IsFloat() {
			y = b.Convert(kir.Narrow, y, regType(d))
		}
		t.space.Sizes, t.dims = t.space.Sizes[:1], t.dims[:1]
		out := w.o.Results[0]
		at := t.space.Unravel(shapeOf(out), t.space.Dim(0))
		if w.Hero == nil || !sameShape(w.Root.Results[0], x) {
			t.leader(func() { t.put(at, y) })
			return
		}
		// each element of the row follows from the result, and from what follows from that for the whole row
		t.given[out] = rounded(b, dtype(out), y)
		t.followRow(w.Root, out, at)
		root := w.Root.Results[0]
		t.each(rows.n, nil, func(i value, _ []value) []value {
			at := t.element(&rows, i)
			t.store(root, t.lower(t.space.Linear(shapeOf(root), at)), t.compute(root, at))
			return nil
		})
	})
}

// followRow computes the operands of o that are one number for the row at hand, where the result of the reduction, hero, has the coordinates at.
func (c *body) followRow(o *ssa.Op, hero *ssa.Value, at []index.Expr) {
	for _, v := range o.Operands() {
		switch {
		case v == nil || c.given[v] != nil || !c.w.Inlined[v]:
		case sameShape(v, hero):
			c.given[v] = c.compute(v, at)
		default:
			c.followRow(v.Def(), hero, at)
		}
	}
}

// maxRow is how many elements a row may have that a team reduces, and goes through again for what follows.
const maxRow = 40960

// FollowsRows reports a reduction whose kernel can compute elements of its operand's shape from the result: along the last axes, which are not so long
// that more threads than those of a team should work on them, and are kept.
func FollowsRows(o *ssa.Op) bool {
	if reductionOf(o.Kind.Name()) == nil || Class(o.Kind) != "reduce" || len(o.Results) != 1 {
		return false
	}
	x, y := o.Operand(0).Tensor(), o.Results[0].Tensor()
	if x == nil || y == nil || !x.Ranked || !y.Ranked || len(x.Dims) != len(y.Dims) || len(x.Dims) == 0 {
		return false
	}
	n, ok := index.Prod(x.Dims).Divide(index.Prod(y.Dims))
	if !ok {
		return false
	}
	along := false
	for i := range x.Dims {
		reduced := !x.Dims[i].Equal(y.Dims[i])
		if along && !reduced && !x.Dims[i].Is(1) {
			return false
		}
		along = along || reduced
	}
	length, ok := n.Int()
	return ok && along && length <= maxRow
}

// emitArgReduce finds where the greatest or least element stands: the first one, or the last if asked for. NaN is the
// greatest of all.
func emitArgReduce(w *writer) {
	x := w.in(0)
	d := dtype(x)
	if rank(x) == 0 || d == tensor.Bool {
		refuse("rank %d, elements of type %s", rank(x), d)
	}
	along := make([]bool, rank(x))
	along[w.axis(w.int("axis"), rank(x))] = true
	rows := splitAxes(shapeOf(x), along)
	if !rows.n.AtLeast(sym.Const(1)) {
		refuse("the axis may be empty")
	}
	last, least := w.int("select_last_index") != 0, w.o.Kind.Name() == "ArgMin"
	w.rowTeams(rows.n, rows.rows, w.teamSize(rows.n, rows.rows, rows.contiguous()), func(t *team) {
		b := t.b
		s := &scalarPoint{&point{body: t.body, node: w.node}, d, regType(d)}
		// better says whether x stands before y: a better element, or an equal one at a better place.
		pick := func(x, y []value) []value {
			p, q := x[0], y[0]
			if least {
				p, q = q, p
			}
			wins, equal := s.less(q, p), b.Eq(p, q)
			if s.t.IsFloat() {
				// NaN is the greatest
				nx, ny := b.IsNaN(x[0]), b.IsNaN(y[0])
				if least {
					wins = b.Or(wins, b.And(ny, b.Not(nx)))
				} else {
					wins = b.Or(wins, b.And(nx, b.Not(ny)))
				}
				equal = b.Or(equal, b.And(nx, ny))
			}
			place := b.Lt(x[1], y[1])
			if last {
				place = b.Lt(y[1], x[1])
			}
			// a thread without elements has place -1
			some, none := b.Lt(x[1], b.I32(0)), b.Lt(y[1], b.I32(0))
			better := b.And(b.Not(some), b.Or(none, b.Or(wins, b.And(equal, place))))
			return []value{b.Select(better, x[0], y[0]), b.Select(better, x[1], y[1])}
		}
		part := t.each(rows.n, []value{s.num(0), b.I32(-1)}, func(i value, c []value) []value {
			return pick([]value{t.at(x, t.element(&rows, i)), i}, c)
		})
		best := t.all(part, pick)
		t.leader(func() {
			t.space.Sizes, t.dims = t.space.Sizes[:1], t.dims[:1]
			out := w.o.Results[0]
			t.put(t.space.Unravel(shapeOf(out), t.space.Dim(0)), b.Convert(kir.SExt, best[1], kir.I64))
		})
	})
}
