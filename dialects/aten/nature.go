package aten

import (
	"strings"
	"sync"

	"github.com/aton-project/aton/ssa"
)

// Nature says how the elements of an operator's results hang on those of its operands. What is the same for all operators of a
// nature, such as the batching rule of torch.vmap, follows from it.
type Nature int

// The natures of operators.
const (
	// Unspecified is the nature of operators of which nothing follows.
	Unspecified Nature = iota
	// Pointwise operators compute each element of the result from the elements at its place of the operands, which broadcast
	// (TensorIterator). The result is laid out in memory as the operands are.
	Pointwise
)

var natures = sync.OnceValue(func() map[ssa.Kind]Nature {
	m := map[ssa.Kind]Nature{}
	for _, f := range families() {
		for k, d := range f {
			if d.Nature != Unspecified {
				m[k] = d.Nature
			}
		}
	}
	return m
})

// NatureOf is the nature of a built-in operator; one that writes its result into an operand has that of its functional form.
func NatureOf(k ssa.Kind) Nature {
	m := natures()
	if n := m[k]; n != Unspecified {
		return n
	}
	if pure, writes := strings.CutSuffix(string(k), "_"); writes {
		return m[ssa.Kind(pure)]
	}
	return Unspecified
}
