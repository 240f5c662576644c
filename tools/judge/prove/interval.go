package prove

import (
	"math"

	"github.com/aton-project/aton/ssa/tensor"
)

// interval is a range of real numbers that a term lies in; a condition is 0 or 1, or both.
type interval struct{ low, high float64 }

// wider is an interval whose bounds were rounded.
func wider(low, high float64) (interval, bool) {
	if math.IsNaN(low) || math.IsNaN(high) {
		return interval{}, false
	}
	return interval{math.Nextafter(low, math.Inf(-1)), math.Nextafter(high, math.Inf(1))}, true
}

// rising are the functions that grow with their operand. Those of package math are right up to a unit in the last place, and the bounds are
// widened by more.
var rising = map[string]func(float64) float64{"Exp": math.Exp, "Erf": math.Erf, "Tanh": math.Tanh, "Log": math.Log, "Sqrt": math.Sqrt}

// rangeOf is where a term lies for a range of its variable. It is not ok where a function is not known, or not defined on all of the range.
func rangeOf(t *Term, x interval, done map[*Term]interval) (out interval, ok bool) {
	if v, found := done[t]; found {
		return v, true
	}
	defer func() {
		if ok {
			done[t] = out
		}
	}()
	if t.Name != "" {
		return x, true
	}
	if t.Value != nil {
		if t.DType != tensor.Bool && !t.DType.IsFloat() {
			return interval{}, false
		}
		f := t.Value.Float64s()[0]
		return interval{f, f}, !math.IsNaN(f)
	}
	if t.Func == "Where" {
		c, ok := rangeOf(t.Args[0], x, done)
		if !ok {
			return c, false
		}
		if c.low == c.high {
			return rangeOf(t.Args[2-int(c.low)], x, done)
		}
		a, oka := rangeOf(t.Args[1], x, done)
		b, okb := rangeOf(t.Args[2], x, done)
		return interval{min(a.low, b.low), max(a.high, b.high)}, oka && okb
	}
	in := make([]interval, len(t.Args))
	for i, a := range t.Args {
		if in[i], ok = rangeOf(a, x, done); !ok {
			return in[i], false
		}
	}
	corners := func(f func(a, b float64) float64) (interval, bool) {
		low, high := math.Inf(1), math.Inf(-1)
		for _, a := range [...]float64{in[0].low, in[0].high} {
			for _, b := range [...]float64{in[1].low, in[1].high} {
				y := f(a, b)
				if math.IsNaN(y) {
					return interval{}, false
				}
				low, high = min(low, y), max(high, y)
			}
		}
		return wider(low, high)
	}
	bools := func(never, always bool) (interval, bool) {
		switch {
		case never:
			return interval{0, 0}, true
		case always:
			return interval{1, 1}, true
		}
		return interval{0, 1}, true
	}
	switch t.Func {
	case "Cast":
		return in[0], t.DType.IsFloat() && (t.Args[0].DType.IsFloat() || t.Args[0].DType == tensor.Bool)
	case "Add":
		return wider(in[0].low+in[1].low, in[0].high+in[1].high)
	case "Sub":
		return wider(in[0].low-in[1].high, in[0].high-in[1].low)
	case "Mul":
		if t.Args[0] == t.Args[1] { // a square
			a := in[0]
			low := min(a.low*a.low, a.high*a.high)
			if a.low <= 0 && a.high >= 0 {
				low = 0
			}
			out, ok := wider(low, max(a.low*a.low, a.high*a.high))
			out.low = max(out.low, 0)
			return out, ok
		}
		return corners(func(a, b float64) float64 { return a * b })
	case "Div":
		if in[1].low <= 0 && in[1].high >= 0 {
			return interval{}, false
		}
		return corners(func(a, b float64) float64 { return a / b })
	case "Neg":
		return interval{-in[0].high, -in[0].low}, true
	case "Abs":
		switch a := in[0]; {
		case a.low >= 0:
			return a, true
		case a.high <= 0:
			return interval{-a.high, -a.low}, true
		default:
			return interval{0, max(-a.low, a.high)}, true
		}
	case "Sign":
		sign := func(v float64) float64 {
			switch {
			case v > 0:
				return 1
			case v < 0:
				return -1
			}
			return 0
		}
		return interval{sign(in[0].low), sign(in[0].high)}, true
	case "Less":
		return bools(in[0].low >= in[1].high, in[0].high < in[1].low)
	case "Greater":
		return bools(in[0].high <= in[1].low, in[0].low > in[1].high)
	}
	if f := rising[t.Func]; f != nil && len(in) == 1 {
		low, high := f(in[0].low), f(in[0].high)
		return wider(low-1e-15*math.Abs(low), high+1e-15*math.Abs(high))
	}
	return interval{}, false
}

// The range of the variable in which functions of one variable are compared, and how often it is taken apart.
const (
	comparedTo   = 1 << 10
	maxIntervals = 1 << 18
)

// nearby reports two terms of one variable whose results are near each other for all numbers of the range: by intervals, each taken apart
// until the bounds of both are near.
func nearby(a, b *Term) bool {
	vars := variablesOf(a, b)
	if len(vars) != 1 || !vars[0].DType.IsFloat() || !a.DType.IsFloat() {
		return false
	}
	left := maxIntervals
	var near func(x interval) bool
	near = func(x interval) bool {
		if left--; left < 0 {
			return false
		}
		done := map[*Term]interval{}
		p, okp := rangeOf(a, x, done)
		q, okq := rangeOf(b, x, done)
		if okp && okq && max(p.high-q.low, q.high-p.low) <= nearness(a.DType) {
			return true
		}
		middle := x.low + (x.high-x.low)/2
		if middle <= x.low || middle >= x.high || x.high-x.low < 1e-9 {
			return false
		}
		return near(interval{x.low, middle}) && near(interval{middle, x.high})
	}
	return near(interval{-comparedTo, comparedTo})
}
