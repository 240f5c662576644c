// Placeholder until the reference kernels land: delete this file with them.
package kernel

import (
	"errors"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

func Supported(ssa.Kind) bool { return false }
func Eval(kind ssa.Kind, attrs []ssa.Attr, ins []*tensor.Tensor, n int) ([]*tensor.Tensor, error) {
	return nil, errors.New("stub")
}
