package layout

import (
	"github.com/aton-project/aton/ssa/sym"
)

// Operand is the shape and the strides of an operand.
type Operand struct {
	Dims, Strides []sym.Expr
}

// LikeOperands gives the strides that TensorIterator chooses for a result: dense,
// with the dims in the order of the operands' strides. Sizes that are not
// known are tried with several values; nil if these disagree.
func LikeOperands(dims []sym.Expr, ops []Operand) []sym.Expr {
	var first []int
	for seed := range int64(3) {
		env := map[string]int64{}
		at := func(e sym.Expr) int64 {
			e.Symbols(func(name string) {
				if env[name] == 0 {
					env[name] = 2 + seed*3 + int64(len(env))*(5+seed)
				}
			})
			n, ok := e.Eval(env)
			if !ok {
				return -1
			}
			return n
		}
		sizes := make([]int64, len(dims))
		for i, d := range dims {
			sizes[i] = at(d)
		}
		var strides [][]int64
		for _, op := range ops {
			if len(op.Dims) > len(dims) || len(op.Dims) != len(op.Strides) {
				return nil
			}
			pad := len(dims) - len(op.Dims)
			st := make([]int64, len(dims))
			for i := range op.Dims {
				if n := at(op.Dims[i]); n == 1 && sizes[pad+i] != 1 {
					continue // broadcast
				}
				if st[pad+i] = at(op.Strides[i]); st[pad+i] < 0 {
					return nil
				}
			}
			strides = append(strides, st)
		}
		order := iteratorOrder(sizes, strides)
		if first == nil {
			first = order
		}
		for i := range order {
			if order[i] != first[i] {
				return nil
			}
		}
	}
	out := make([]sym.Expr, len(dims))
	n := sym.Const(1)
	for _, d := range first {
		out[d] = n
		n = n.Mul(dims[d])
	}
	return out
}

// iteratorOrder sorts dims from the fastest to the slowest, as
// TensorIteratorBase::reorder_dimensions of PyTorch does.
func iteratorOrder(sizes []int64, operands [][]int64) []int {
	n := len(sizes)
	order := make([]int, n)
	for i := range order {
		order[i] = n - 1 - i
	}
	compare := func(a, b int) int {
		for _, st := range operands {
			switch x, y := st[a], st[b]; {
			case x == 0 || y == 0: // broadcast: says nothing
			case x < y:
				return -1
			case x > y:
				return 1
			case sizes[a] > sizes[b]:
				return 1
			}
		}
		return 0
	}
	for i := 1; i < n; i++ {
		at := i
		for j := i - 1; j >= 0; j-- {
			c := compare(order[j], order[at])
			if c > 0 {
				order[j], order[at] = order[at], order[j]
				at = j
			} else if c < 0 {
				break
			}
		}
	}
	return order
}
