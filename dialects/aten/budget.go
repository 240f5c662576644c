package aten

import (
	"fmt"
	"math"

	"github.com/aton-project/aton/ssa"
)

// What an operator may make at export: tensors of its own, and elements of a constant.
const (
	maxParts = 1 << 16
	maxMade  = 1 << 24
)

// atMost abandons the lowering where it would make more than a limit of something.
func (l *Lowering) atMost(n, limit int64, what string) {
	if l.Node != nil && l.Node.Block() != nil {
		limit = l.Node.Block().Func().Module().Allow(limit)
	}
	if n > limit {
		panic(&Failure{ID: "budget", Message: fmt.Sprintf("makes %d %s, more than the %d that are made at export", n, what, limit), Hint: ssa.BudgetHint})
	}
}

// count abandons the lowering where n is no number of elements that are made at export.
func (l *Lowering) count(n int64) {
	if n < 0 {
		l.Fail("a size of %d", n)
	}
	l.atMost(n, maxMade, "elements")
}

// satMul is the product of two counts, or the greatest int64.
func satMul(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}
