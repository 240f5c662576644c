package layout

import (
	"strings"

	"github.com/aton-project/aton/ssa/sym"
)

// Results of operators have strides too: x.t() + 1 is laid out as x.t() is, so
// that a reshape of it copies where one of x + 1 shares memory. The classes
// below are what PyTorch 2.15 does on the CPU with its own operator samples,
// laid out in all orders; operators in none of them give row-major results for
// row-major operands, and results of unknown strides for others.
var (
	// Elementwise are the operators whose results are laid out as their operands are (TensorIterator), besides those of nature [aten.Pointwise].
	Elementwise = words(`addr clone dropout empty_like flip full_like index_fill index_put ones_like prelu _prelu_kernel put rand_like randint_like randn_like select_scatter slice_scatter
		diagonal_scatter sort zeros_like to float double half bfloat16 int long short char byte bool type_as`)
	// AlwaysRowMajor results are contiguous whatever the operands are.
	AlwaysRowMajor = words(`addbmm addmm all amax amin aminmax any argmax argmin baddbmm bmm bucketize cdist column_stack contiguous count_nonzero cross cummax cummin cumprod cumsum diag_embed
		dstack embedding embedding_bag flatten gather grid_sampler hstack index_add index_copy index_reduce index_select instance_norm kthvalue layer_norm linear log_sigmoid log_softmax
		logcumsumexp logsumexp masked_fill masked_scatter matmul mean median mm mode mv norm one_hot prod quantile repeat repeat_interleave reshape reshape_as rms_norm roll scatter scatter_add
		scatter_reduce softmax std std_mean sum take_along_dim tile topk tril triu var var_mean view_copy vstack
		zeros ones full empty arange eye linspace logspace new_zeros new_ones new_full new_empty tensor scalar_tensor tril_indices triu_indices outer diag`)
	// Otherwise are the operators whose results need not be row-major for row-major operands.
	Otherwise = words(`argwhere cholesky_inverse cholesky_solve empty_permuted empty_strided geqrf inverse linalg_cholesky linalg_cholesky_ex linalg_eig linalg_eigh linalg_inv
		linalg_inv_ex linalg_householder_product linalg_ldl_factor linalg_ldl_solve linalg_lstsq linalg_lu_factor linalg_lu_factor_ex linalg_lu_solve linalg_matrix_power linalg_qr linalg_solve linalg_solve_ex
		linalg_solve_triangular linalg_svd linalg_tensorinv lu lu_solve new_empty_strided nonzero ormqr qr rot90 stft svd triangular_solve unravel_index scaled_dot_product_attention
		_scaled_dot_product_flash_attention_for_cpu einsum lstm gru rnn_tanh rnn_relu broadcast_tensors meshgrid`)
)

func words(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(text) {
		out[w] = true
	}
	return out
}

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
