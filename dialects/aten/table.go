package aten

import (
	"maps"
	"slices"

	"github.com/aton-project/aton/ssa"
)

//go:generate go run ../../tools/gen/opsdoc

// families lists the tables of all operator families. A new family is named here and nowhere else.
func families() []Defs {
	return []Defs{
		activation, gradients,
		arithmetic,
		bessel,
		bitwise,
		compare,
		convert,
		creation,
		cumulative,
		order,
		orthogonal,
		distributions,
		reduce,
		scalar,
		search,
		special,
		unary,
		vectorNorm,
		views, splits, joining, padding, diagonals, shapes, strided, indexing, scattering, masks, writes, lists,
		convolution, matmul, grouped, contraction, normalization, pooling, adaptive, resample, sampling,
		linalg, fourier, complexNumbers, losses, ctc, attention, embedding, recurrent, vision,
		pt2e, torchao, torchaudio, quantized, prepacked, segments, primitives, refused,
	}
}

// Families lists the operators of each family, in alphabetical order.
func Families() [][]ssa.Kind {
	var out [][]ssa.Kind
	for _, f := range families() {
		out = append(out, slices.Sorted(maps.Keys(f)))
	}
	return out
}

// NewTable makes a table of all built-in operators.
func NewTable() *Table { return &Table{custom: map[ssa.Kind][]Def{}} }
