package ssa

import "math"

// BudgetHint tells a user how to raise a limit of Allow.
const BudgetHint = "--budget 10 allows ten times as much"

// Allow returns a limit on the work that passes, readers and interpreters do for a program: limit, which must suffice for
// ordinary programs and protect from hostile ones, times the module's Budget.
//
// Code whose work depends on the program (steps, bytes, operators, elements) has such a limit. Beyond it, the code reports an
// error with the ID "budget" at the operator that exceeds it.
func (m *Module) Allow(limit int64) int64 {
	if m == nil || m.Budget <= 1 {
		return limit
	}
	if limit > math.MaxInt64/int64(m.Budget) {
		return math.MaxInt64
	}
	return limit * int64(m.Budget)
}
