package view

import (
	"strings"

	"github.com/aton-project/aton/ssa/tensor"
)

// table has a row for each view operator of the namespace aten.
var table = rows(map[string]Row{
	"detach alias lift_fresh lift": {Class: Always, Strides: same, Place: begins, Inverse: itself},

	// dims that change places
	"transpose swapaxes swapdims": {Class: Always, Strides: exchanged, Place: begins, Inverse: exchangedBack},
	"t numpy_T mT adjoint":        {Class: Always, Strides: transposed, Place: begins, Inverse: again},
	"matrix_H mH":                 {Class: Always, Place: begins, Inverse: again, Missing: "strides: of complex tensors, which are laid out as real ones are"},
	"permute":                     {Class: Always, Strides: permuted, Place: begins, Inverse: permutedBack},
	"movedim moveaxis":            {Class: Always, Strides: movedStrides, Place: begins, Inverse: movedBack},

	// a part
	"select": {Class: Always, Strides: withoutDim, Place: partPlace("index"), Inverse: selectBack},
	"narrow": {Class: Always, Strides: same, Place: partPlace("start"), Inverse: narrowBack},
	"slice":  {Class: Always, Strides: sliced, Place: partPlace("start"), Inverse: sliceBack},
	"diagonal linalg_diagonal": {Class: Always, Strides: diagonalStrides, Place: diagonalPlace,
		Inverse: diagonalBack},

	// all parts
	"unbind":                  {Class: Always, Strides: withoutDim, Place: unbindPlace, Inverse: unbindBack},
	"chunk":                   {Class: Always, Strides: same, Place: chunkPlace, Inverse: partsBack},
	"split":                   {Class: Always, Strides: same, Place: splitPlace, Inverse: partsBack},
	"split_with_sizes":        {Class: Always, Strides: same, Place: sizesPlace, Inverse: partsBack},
	"tensor_split":            {Class: Always, Strides: same, Inverse: partsBack},
	"hsplit":                  {Class: Always, Strides: same, Inverse: partsBack},
	"vsplit":                  {Class: Always, Strides: same, Inverse: partsBack},
	"dsplit":                  {Class: Always, Strides: same, Inverse: partsBack},
	"unsafe_chunk":            {Class: Never},
	"unsafe_split":            {Class: Never},
	"unsafe_split_with_sizes": {Class: Never},

	// another shape for the same elements
	"view _unsafe_view view_as unflatten _reshape_alias": {Class: Always, Strides: reshaped, Place: begins, Inverse: reshapedBack},
	"atleast_1d atleast_2d atleast_3d":                   {Class: Always, Strides: reshaped, Inverse: reshapedBack},
	"unsqueeze":                                          {Class: Always, Strides: unsqueezed, Place: begins, Inverse: reshapedBack},
	"squeeze":                                            {Class: Always, Strides: squeezed, Place: begins, Inverse: reshapedBack},
	"reshape reshape_as flatten":                         {Class: IfStrides, Place: begins, Inverse: reshapedBack},
	"ravel":                                              {Class: IfStrides, Inverse: reshapedBack},

	// one element in several places
	"expand expand_as broadcast_to": {Class: Always, Strides: expanded, Place: begins, Spreads: true},
	"unfold":                        {Class: Always, Strides: unfolded, Place: begins, Spreads: true},
	// as_strided becomes take, by the places in memory
	"as_strided": {Class: Always, Strides: asStrided, Missing: "inverse: it is evaluated as take"},
	"take":       {Class: Never, Inverse: takeBack, Missing: "strides: those of as_strided are in the view"},

	// the argument itself where it is so already
	"contiguous to type_as dropout alpha_dropout feature_dropout feature_alpha_dropout":      {Class: IfUnchanged},
	"cpu cuda resolve_conj resolve_neg positive requires_grad_ rename refine_names align_to": {Class: IfUnchanged},
	"real":     {Class: IfUnchanged, Place: begins},
	"float":    {Class: IfUnchanged, To: tensor.Float32},
	"double":   {Class: IfUnchanged, To: tensor.Float64},
	"half":     {Class: IfUnchanged, To: tensor.Float16},
	"bfloat16": {Class: IfUnchanged, To: tensor.BFloat16},
	"int":      {Class: IfUnchanged, To: tensor.Int32},
	"long":     {Class: IfUnchanged, To: tensor.Int64},
	"short":    {Class: IfUnchanged, To: tensor.Int16},
	"char":     {Class: IfUnchanged, To: tensor.Int8},
	"byte":     {Class: IfUnchanged, To: tensor.Uint8},
	"bool":     {Class: IfUnchanged, To: tensor.Bool},

	"meshgrid cartesian_prod sum_to_size chain_matmul linalg_multi_dot einsum": {Class: Sometimes},

	"conj _conj _neg_view imag view_as_complex view_as_real":                                                          {Class: Always, Missing: "complex numbers are two values in ONNX"},
	"as_tensor pin_memory _autocast_to_full_precision _autocast_to_reduced_precision":                                 {Class: Always, Missing: "a copy in some cases, so that nothing may be written through it"},
	"_grad_sum_to_size _fw_primal _make_dual _unpack_dual":                                                            {Class: Always, Missing: "of automatic differentiation"},
	"_ncf_unsqueeze _ncf_view _nested_get_values _nested_view_from_buffer _nested_view_from_jagged":                   {Class: Always, Missing: "of nested tensors"},
	"_indices _values indices values coalesce ccol_indices col_indices crow_indices row_indices _sparse_broadcast_to": {Class: Always, Missing: "of sparse tensors"},
	"_test_autograd_multiple_dispatch_view slice_inverse":                                                             {Class: Always, Missing: "no program calls it"},
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
