package simplify

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/tensor"
)

// tables holds the rules that patterns can say.
var tables = []rewrite.Rule{
	{
		Name: "merge-transposes",
		From: `%t = onnx::Transpose[perm=$p](%x)
		       %y = onnx::Transpose[perm=$q](%t*)`,
		To: `%y = onnx::Transpose[perm=$r](%x)`,
		Check: func(m *rewrite.Match) string {
			n := rank(m.Value("x"))
			if n < 0 {
				return "the rank is unknown"
			}
			p, q := permutation(m.Attr("p"), n), permutation(m.Attr("q"), n)
			r := make([]int64, n)
			for i := range r {
				r[i] = p[q[i]]
			}
			m.SetInts("r", r)
			return ""
		},
	},
	{
		Name: "not-not",
		From: `%n = onnx::Not(%x)
		       %y = onnx::Not(%n*)`,
		To: `%y = %x`,
	},
	{
		Name: "neg-neg",
		From: `%n = onnx::Neg(%x)
		       %y = onnx::Neg(%n*)`,
		To: `%y = %x`,
	},
	{
		Name: "add-neg",
		From: `%n = onnx::Neg(%b)
		       %y = onnx::Add(%a, %n*)`,
		To: `%y = onnx::Sub(%a, %b)`,
	},
	{
		Name: "neg-add",
		From: `%n = onnx::Neg(%a)
		       %y = onnx::Add(%n*, %b)`,
		To: `%y = onnx::Sub(%b, %a)`,
	},
	{
		Name: "sub-neg",
		From: `%n = onnx::Neg(%b)
		       %y = onnx::Sub(%a, %n*)`,
		To: `%y = onnx::Add(%a, %b)`,
	},
	{
		Name: "where-not",
		From: `%n = onnx::Not(%c)
		       %y = onnx::Where(%n*, %a, %b)`,
		To: `%y = onnx::Where(%c, %b, %a)`,
	},
	{
		Name: "where-same",
		From: `%y = onnx::Where(%c, %a, %a)`,
		To:   `%y = %a`,
	},
	{
		Name:  "not-less",
		From:  "%c = onnx::Less(%a, %b)\n%y = onnx::Not(%c)",
		To:    "%y = onnx::GreaterOrEqual(%a, %b)",
		Check: integers,
	},
	{
		Name:  "not-greater",
		From:  "%c = onnx::Greater(%a, %b)\n%y = onnx::Not(%c)",
		To:    "%y = onnx::LessOrEqual(%a, %b)",
		Check: integers,
	},
	{
		Name:  "not-less-equal",
		From:  "%c = onnx::LessOrEqual(%a, %b)\n%y = onnx::Not(%c)",
		To:    "%y = onnx::Greater(%a, %b)",
		Check: integers,
	},
	{
		Name:  "not-greater-equal",
		From:  "%c = onnx::GreaterOrEqual(%a, %b)\n%y = onnx::Not(%c)",
		To:    "%y = onnx::Less(%a, %b)",
		Check: integers,
	},
	{
		Name: "merge-casts",
		From: `%t = onnx::Cast[to=$a](%x)
		       %y = onnx::Cast[to=$b](%t*)`,
		To: `%y = onnx::Cast[to=$b](%x)`,
		Check: func(m *rewrite.Match) string {
			if !lossless(m.Value("x").DType(), m.Value("t").DType()) {
				return "the first cast loses something"
			}
			return ""
		},
	},
}

// integers: for floats, NaN makes both of a comparison and its opposite false.
func integers(m *rewrite.Match) string {
	if !m.Value("a").DType().IsInt() {
		return "NaN compares as false"
	}
	return ""
}

// permutation is a Transpose's perm for a rank; absent means reversed.
func permutation(l ssa.Literal, rank int) []int64 {
	if p, ok := l.IntList(); ok && len(p) == rank {
		return p
	}
	p := make([]int64, rank)
	for i := range p {
		p[i] = int64(rank - 1 - i)
	}
	return p
}

// lossless reports that every value of type a is one of type b, so that casting on from b is casting from a.
func lossless(a, b tensor.DType) bool {
	if a == b {
		return true
	}
	mantissa := map[tensor.DType]int{tensor.Float16: 11, tensor.BFloat16: 8, tensor.Float32: 24, tensor.Float64: 53}
	bits := func(d tensor.DType) (n int, signed, ok bool) {
		switch d {
		case tensor.Bool:
			return 1, false, true
		case tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64:
			return 8 * d.Size(), false, true
		case tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64:
			return 8*d.Size() - 1, true, true
		}
		return 0, false, false
	}
	na, sa, intA := bits(a)
	nb, sb, intB := bits(b)
	ma, mb := mantissa[a], mantissa[b]
	switch {
	case b == tensor.Bool:
		return false
	case intA && intB:
		return na <= nb && (!sa || sb)
	case intA && mb > 0:
		return na <= mb
	case ma > 0 && mb > 0:
		return ma <= mb && !(a == tensor.BFloat16 && b == tensor.Float16)
	}
	return false
}
