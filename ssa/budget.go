package ssa

import "math"

// BudgetHint says what a user can do about a limit that Allow sets.
const BudgetHint = "--budget 10 allows ten times as much"

// Allow gives a limit of what passes, readers and interpreters may take for a program: what they have for programs that
// anybody may have written, times the module's Budget.
//
// Whoever evaluates, copies or makes something because a program says so has such a limit, of steps, bytes, operators or
// elements, and ends with an error of the ID "budget" at the operator that passes it.
func (m *Module) Allow(limit int64) int64 {
	if m == nil || m.Budget <= 1 {
		return limit
	}
	if limit > math.MaxInt64/int64(m.Budget) {
		return math.MaxInt64
	}
	return limit * int64(m.Budget)
}
