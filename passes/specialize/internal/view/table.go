package view

import (
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa/tensor"
)

// natureRows are the rows that follow from the nature of an operator.
var natureRows = map[aten.Nature]*Row{
	aten.Identity:   {Strides: same, Place: begins, Inverse: itself},
	aten.Transposes: {Strides: transposed, Place: begins, Inverse: transposedBack},
	aten.Splits:     {Strides: same, Inverse: partsBack},
	aten.Reshapes:   {Strides: reshaped, Place: begins, Inverse: reshapedBack},
	aten.Expands:    {Strides: expanded, Place: begins, Spreads: true},
}

// table has the rows of view operators of the namespace aten whose nature gives none, or of which more holds than their nature says.
var table = rows(map[string]Row{
	"matrix_H mH": {Place: begins, Inverse: transposedBack, Missing: "strides: of complex tensors, which are laid out as real ones are"},

	// a part
	"select": {Strides: withoutDim, Place: partPlace("index"), Inverse: selectBack},
	"narrow": {Strides: same, Place: partPlace("start"), Inverse: narrowBack},
	"slice":  {Strides: sliced, Place: partPlace("start"), Inverse: sliceBack},
	"diagonal linalg_diagonal": {Strides: diagonalStrides, Place: diagonalPlace,
		Inverse: diagonalBack},

	// all parts
	"unbind":           {Strides: withoutDim, Place: unbindPlace, Inverse: unbindBack},
	"chunk":            {Strides: same, Place: chunkPlace, Inverse: partsBack},
	"split":            {Strides: same, Place: splitPlace, Inverse: partsBack},
	"split_with_sizes": {Strides: same, Place: sizesPlace, Inverse: partsBack},

	// another shape for the same elements
	"atleast_1d atleast_2d atleast_3d": {Strides: reshaped, Inverse: reshapedBack},
	"unsqueeze":                        {Strides: unsqueezed, Place: begins, Inverse: unsqueezedBack},
	"squeeze":                          {Strides: squeezed, Place: begins, Inverse: reshapedBack},
	"reshape reshape_as flatten":       {Place: begins, Inverse: reshapedBack},
	"ravel":                            {Inverse: reshapedBack},

	// one element in several places
	"unfold": {Strides: unfolded, Place: begins, Spreads: true},
	// as_strided becomes take, by the places in memory
	"as_strided": {Strides: asStrided, Missing: "inverse: it is evaluated as take"},
	"take":       {Inverse: takeBack, Missing: "strides: those of as_strided are in the view"},

	// the argument itself where it is so already
	"rename refine_names align_to": {Renames: true},
	"real":                         {Place: begins},
	"float":                        {To: tensor.Float32},
	"double":                       {To: tensor.Float64},
	"half":                         {To: tensor.Float16},
	"bfloat16":                     {To: tensor.BFloat16},
	"int":                          {To: tensor.Int32},
	"long":                         {To: tensor.Int64},
	"short":                        {To: tensor.Int16},
	"char":                         {To: tensor.Int8},
	"byte":                         {To: tensor.Uint8},
	"bool":                         {To: tensor.Bool},

	"conj _conj _neg_view imag view_as_complex view_as_real":                                                          {Missing: "complex numbers are two values in ONNX"},
	"as_tensor pin_memory _autocast_to_full_precision _autocast_to_reduced_precision":                                 {Missing: "a copy in some cases, so that nothing may be written through it"},
	"_grad_sum_to_size _fw_primal _make_dual _unpack_dual":                                                            {Missing: "of automatic differentiation"},
	"_ncf_unsqueeze _ncf_view _nested_get_values _nested_view_from_buffer _nested_view_from_jagged":                   {Missing: "of nested tensors"},
	"_indices _values indices values coalesce ccol_indices col_indices crow_indices row_indices _sparse_broadcast_to": {Missing: "of sparse tensors"},
	"_test_autograd_multiple_dispatch_view slice_inverse":                                                             {Missing: "no program calls it"},
})

// rows spells out rows that several operators share.
func rows(by map[string]Row) map[string]*Row {
	out := map[string]*Row{}
	for names, row := range by {
		for _, name := range strings.Fields(names) {
			out[name] = &row
		}
	}
	return out
}
