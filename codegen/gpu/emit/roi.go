package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa/tensor"
)

// mostSamples bounds the samples along an axis of a cell whose number follows from the size of the region.
const mostSamples = 1 << 20

// roiAlign reads between pixels at samples of each cell of a region, and takes their mean or the greatest. Places and weights are
// computed in double, as the interpreter does.
func roiAlign(p *point) value {
	p.wants(4, 2, 1)
	b, x, rois := p.b, p.in(0), p.in(1)
	if !dtype(x).IsFloat() || !dtype(rois).IsFloat() {
		refuse("elements of type %s, regions of type %s", dtype(x), dtype(rois))
	}
	num := func(v float64) value { return b.Float(kir.F64, v) }
	float := func(i value) value { return b.Convert(kir.SToF, i, kir.F64) }
	half := p.str("coordinate_transformation_mode") == "half_pixel"
	greatest := p.str("mode") == "max"
	batch := p.index(2, p.coords[:1], shapeOf(x)[0])
	off := num(0)
	if half {
		off = num(0.5)
	}
	edge := func(k int64) value {
		v := convert(b, p.at(rois, []index.Expr{p.coords[0], index.Int(k)}), dtype(rois), tensor.Float64)
		return b.Sub(b.Mul(v, num(p.float("spatial_scale"))), off)
	}
	type axis struct {
		start, cell, samples, count, size value // where the region begins, and how large a cell is; samples as a number and as a count
	}
	axes := make([]axis, 2) // y, x
	for k := range axes {
		start := edge(int64(1 - k))
		extent := b.Sub(edge(int64(3-k)), start)
		if !half {
			extent = b.Select(b.Lt(extent, num(1)), num(1), extent)
		}
		cells := float(b.Size(shapeOf(p.o.Results[0])[2+k]))
		a := axis{start: start, cell: b.Div(extent, cells), size: b.Size(shapeOf(x)[2+k])}
		if n := p.int("sampling_ratio"); n > 0 {
			a.count = b.I32(n)
		} else {
			c := b.Unary(kir.Ceil, b.Div(extent, cells))
			some := b.And(b.Lt(num(0), c), b.Lt(c, num(mostSamples)))
			a.count = b.Convert(kir.FToS, b.Select(some, c, b.Select(b.Lt(num(0), c), num(mostSamples), num(0))), kir.I32)
		}
		a.samples = float(a.count)
		axes[k] = a
	}
	// where sample i of a cell stands, as the two pixels around it and the share of the second; and whether it is on the image
	type spot struct{ low, high, share, on value }
	place := func(k int, i value) spot {
		a := axes[k]
		at := b.Add(b.Add(a.start, b.Mul(float(p.lower(p.coords[2+k])), a.cell)), b.Div(b.Mul(b.Add(float(i), num(0.5)), a.cell), a.samples))
		on := b.And(b.Compare(kir.Le, num(-1), at), b.Compare(kir.Le, at, float(a.size)))
		at = b.Select(b.And(on, b.Lt(num(0), at)), at, num(0))
		last := b.Sub(a.size, b.I32(1))
		low := b.Convert(kir.FToS, at, kir.I32)
		end := b.Compare(kir.Le, last, low)
		return spot{b.Select(end, last, low), b.Select(end, last, b.Add(low, b.I32(1))), b.Select(end, num(0), b.Sub(at, float(low))), on}
	}
	was := p.guarded
	p.guarded = true
	defer func() { p.guarded = was }()
	sizes, dims := len(p.space.Sizes), len(p.dims)
	pixel := func(y, x_ value) value {
		p.space.Sizes, p.dims = p.space.Sizes[:sizes], p.dims[:dims]
		return convert(b, p.at(x, []index.Expr{batch, p.coords[1], p.dim(y, shapeOf(x)[2]), p.dim(x_, shapeOf(x)[3])}), dtype(x), tensor.Float64)
	}
	one := num(1)
	total := b.For(b.I32(0), axes[0].count, b.I32(1), []value{num(0), b.Int(kir.I1, 1)}, func(i value, c []value) []value {
		y := place(0, i)
		return b.For(b.I32(0), axes[1].count, b.I32(1), c, func(j value, c []value) []value {
			x := place(1, j)
			read := b.If(b.And(y.on, x.on), func() []value {
				restY, restX := b.Sub(one, y.share), b.Sub(one, x.share)
				parts := []value{b.Mul(b.Mul(restY, restX), pixel(y.low, x.low)), b.Mul(b.Mul(restY, x.share), pixel(y.low, x.high)),
					b.Mul(b.Mul(y.share, restX), pixel(y.high, x.low)), b.Mul(b.Mul(y.share, x.share), pixel(y.high, x.high))}
				v := parts[0]
				for _, q := range parts[1:] {
					if greatest {
						v = b.Select(b.Lt(v, q), q, v)
					} else {
						v = b.Add(v, q)
					}
				}
				return []value{v}
			}, func() []value { return []value{num(0)} })[0]
			if greatest {
				return []value{b.Select(b.Or(c[1], b.Lt(c[0], read)), read, c[0]), b.Int(kir.I1, 0)}
			}
			return []value{b.Add(c[0], read), c[1]}
		})
	})[0]
	p.space.Sizes, p.dims = p.space.Sizes[:sizes], p.dims[:dims]
	if !greatest {
		n := b.Mul(axes[0].count, axes[1].count)
		total = b.Div(total, float(b.Select(b.Lt(n, b.I32(1)), b.I32(1), n)))
	}
	return b.Convert(kir.Round, total, regType(dtype(x)))
}
