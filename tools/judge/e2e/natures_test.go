package e2e

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

// natureArguments are values of arguments that have no default, by name. They fit an operand of the shape that operandShape gives.
var natureArguments = map[string]ssa.Literal{
	"dim": ssa.Int(0), "dim0": ssa.Int(0), "dim1": ssa.Int(1), "axis0": ssa.Int(0), "axis1": ssa.Int(1), "dimension": ssa.Int(1), "step": ssa.Int(1),
	"index": ssa.Int(1), "start": ssa.Int(0), "length": ssa.Int(1), "chunks": ssa.Int(2), "sections": ssa.Int(2), "split_size": ssa.Int(1),
	"split_sizes": ssa.Ints(1, 1), "indices": ssa.Ints(1), "indices_or_sections": ssa.Ints(1), "dims": ssa.Ints(1, 0), "shape": ssa.Ints(3, 2), "sizes": ssa.Ints(2, 1),
	"source": ssa.Int(0), "destination": ssa.Int(1), "repeats": ssa.Ints(2, 1), "shifts": ssa.Ints(1), "fill_value": ssa.Float(1.5),
	"k": ssa.Int(1), "pad": ssa.Ints(1, 2), "num_groups": ssa.Int(1), "align_corners": ssa.Bool(false), "upscale_factor": ssa.Int(2), "downscale_factor": ssa.Int(2),
	"groups": ssa.Int(1), "use_input_stats": ssa.Bool(true), "momentum": ssa.Float(0.1), "eps": ssa.Float(1e-5), "cudnn_enabled": ssa.Bool(false),
	"half_to_float": ssa.Bool(false), "unbiased": ssa.Bool(true), "stride": ssa.Ints(1, 1), "padding": ssa.Ints(0, 0), "dilation": ssa.Ints(1, 1), "mode": ssa.Str("constant"),
	"transposed": ssa.Bool(false), "output_padding": ssa.Ints(0, 0), "benchmark": ssa.Bool(false), "deterministic": ssa.Bool(false),
	"allow_tf32": ssa.Bool(false), "dims_self": ssa.Ints(1), "dims_other": ssa.Ints(0), "equation": ssa.Str("ij,jk->ik"),
}

// sizesOfNature are the sizes that an argument size asks for.
var sizesOfNature = map[aten.Nature]ssa.Literal{aten.Reshapes: ssa.Ints(3, 2), aten.Expands: ssa.Ints(2, 3), aten.CreatesLike: ssa.Ints(2, 3), aten.Windows: ssa.Int(2)}

// operandShapes are the shapes of the tensors of an operator where they are not two by three, or images.
var operandShapes = map[string][][]int64{
	"matmul": {{2, 3}, {3, 2}}, "mm": {{2, 3}, {3, 2}}, "bmm": {{2, 2, 3}, {2, 3, 2}}, "dot": {{3}, {3}}, "mv": {{2, 3}, {3}}, "outer": {{2}, {3}}, "ger": {{2}, {3}},
	"cross": {{3, 2}, {3, 2}}, "linalg_cross": {{3, 2}, {3, 2}}, "linear": {{2, 3}, {4, 3}}, "tensordot": {{2, 3}, {3, 2}}, "chain_matmul": {{2, 3}, {3, 2}}, "linalg_multi_dot": {{2, 3}, {3, 2}}, "einsum": {{2, 3}, {3, 2}},
	"conv1d": {{2, 2, 4}, {3, 2, 2}}, "conv2d": {{2, 2, 4, 4}, {3, 2, 2, 2}}, "conv3d": {{2, 2, 4, 4, 4}, {3, 2, 2, 2, 2}},
	"conv_transpose1d": {{2, 2, 4}, {2, 3, 2}}, "conv_transpose2d": {{2, 2, 4, 4}, {2, 3, 2, 2}}, "conv_transpose3d": {{2, 2, 4, 4, 4}, {2, 3, 2, 2, 2}},
	"convolution": {{2, 2, 4, 4}, {3, 2, 2, 2}}, "_convolution": {{2, 2, 4, 4}, {3, 2, 2, 2}}, "im2col": {{2, 2, 4, 4}}, "instance_norm": {{2, 2, 4}},
	"dsplit": {{2, 2, 2}}, "cartesian_prod": {{2}, {3}}, "combinations": {{3}}, "meshgrid": {{2}, {3}}, "diagonal_scatter": {{2, 3}, {2}}, "select_scatter": {{2, 3}, {3}},
	"reflection_pad1d": {{2, 2, 4}}, "reflection_pad2d": {{2, 2, 4, 4}}, "reflection_pad3d": {{2, 2, 3, 3, 3}}, "_pad_circular": {{2, 2, 4}},
	"replication_pad1d": {{2, 2, 4}}, "replication_pad2d": {{2, 2, 4, 4}}, "replication_pad3d": {{2, 2, 3, 3, 3}}, "glu": {{4, 3}},
	"gather": {{2, 3}, {2, 3}}, "scatter": {{2, 3}, {2, 3}, {2, 3}}, "scatter_add": {{2, 3}, {2, 3}, {2, 3}}, "take_along_dim": {{2, 3}, {2, 3}}, "put": {{2, 3}, {2}, {2}},
	"pixel_shuffle": {{2, 4, 2, 2}}, "pixel_unshuffle": {{2, 1, 4, 4}}, "channel_shuffle": {{2, 4, 2, 2}}, "native_channel_shuffle": {{2, 4, 2, 2}},
}

// operandShape is the shape of tensor i of an operator; images is the number of spatial dimensions of one on images.
func operandShape(k ssa.Kind, images, i int) []int64 {
	if shapes := operandShapes[k.Name()]; i < len(shapes) {
		return shapes[i]
	}
	if images > 0 {
		return []int64{2, 2, 4, 4, 4}[:2+images]
	}
	return []int64{2, 3}
}

// callOf makes a call of an overload on tensors of a type. ok is false for one of whose arguments nothing is known.
func callOf(s *ssa.Schema, d tensor.DType) (c vmapped, ok bool) {
	k := ssa.Kind(s.Name)
	nature := aten.NatureOf(k)
	c = vmapped{schema: s, others: map[string]ssa.Literal{}}
	if s.Mutates() || len(s.Returns) == 0 || nature == aten.Pointwise && ssa.AsTensor(s.Returns[0].Type) == nil {
		return c, false
	}
	images := 0
	for _, a := range s.Args {
		images = max(images, a.Size)
	}
	if nature != aten.Samples {
		images = 0
	}
	for _, a := range s.Args {
		shape := operandShape(k, images, len(c.operands))
		typ, required := a.Type, !a.HasDefault || a.Name == "min" || a.Name == "dims" || a.Name == "dim" && nature != aten.Reduces
		optional, isOptional := typ.(*ssa.OptionalType)
		if isOptional && (a.Name == "min" || a.Name == "dim" || a.Name == "padding") {
			typ = optional.Elem
		}
		list, isList := typ.(*ssa.ListType)
		lit, known := natureArguments[a.Name]
		if a.Name == "size" {
			lit, known = sizesOfNature[nature]
		}
		switch {
		case ssa.AsTensor(typ) != nil && required:
			v := vmapOperand{name: a.Name, dtype: d, shape: shape}
			switch {
			case a.Name == "mask" || a.Name == "condition":
				v.dtype = tensor.Bool
			case (a.Name == "index" || a.Name == "indices") && d != tensor.Bool:
				if v.dtype = tensor.Int64; operandShapes[k.Name()] == nil {
					v.shape = []int64{2}
				}
			case a.Name == "value": // of a fill
				v.shape = nil
			case len(c.operands) > 0 && nature == aten.Pointwise:
				v.shape = shape[1:]
			}
			c.operands = append(c.operands, v)
		case isList && ssa.AsTensor(list.Elem) != nil:
			for i := range 2 {
				c.operands = append(c.operands, vmapOperand{name: fmt.Sprint(a.Name, i), list: a.Name, dtype: d, shape: operandShape(k, images, i)})
			}
		case !required:
		case a.Name == "dtype" && !isOptional:
			return c, false
		case isList && list.Elem == ssa.IntType && a.Size > 0:
			ints := slices.Repeat([]int64{2}, a.Size)
			switch {
			case a.Name == "dim" || a.Name == "dims":
				ints = []int64{0}
			case nature == aten.Moves:
				ints = slices.Repeat([]int64{1}, a.Size)
			}
			c.others[a.Name] = ssa.Ints(ints...)
		case isList && list.Elem == ssa.IntType && known:
			ints, isInts := lit.IntList()
			if !isInts {
				ints = []int64{lit.Int()}
			}
			c.others[a.Name] = ssa.Ints(ints...)
		case isOptional && a.Name != "dim":
			c.others[a.Name] = ssa.None
		case known && lit.Type() == typ:
			c.others[a.Name] = lit
		case typ == ssa.IntType || typ == ssa.NumberType && !d.IsFloat():
			c.others[a.Name] = ssa.Int(1)
		case typ == ssa.FloatType || typ == ssa.NumberType:
			c.others[a.Name] = ssa.Float(0.75)
		default:
			return c, false
		}
	}
	if len(c.operands) > 0 && s.Name == "aten::where" { // the mask has lost an axis, not the numbers
		c.operands[0].shape = []int64{2, 3}
	}
	return c, len(c.operands) > 0
}

// isList reports an operator that gives a list.
func (c vmapped) isList() bool {
	_, ok := c.schema.Returns[0].Type.(*ssa.ListType)
	return ok
}

// form is what the tensors of a call are.
type form int

const (
	plainForm      form = iota
	transposedForm      // not contiguous
	complexForm
)

// text is the call as graph text; parts says that its results are complex.
func (c vmapped) text(f form, parts bool) string {
	var params, lines, args, results []string
	emit := func(format string, a ...any) { lines = append(lines, "  "+fmt.Sprintf(format, a...)+"\n") }
	emit("%%zero : int = prim::Constant[value=0]()")
	emit("%%last : int = prim::Constant[value=-1]()")
	for _, v := range c.operands {
		typ := ssa.Tensor(v.dtype, ssa.Sizes(v.shape)...)
		n := len(v.shape)
		switch {
		case f == transposedForm && n > 1:
			turned := slices.Clone(v.shape)
			turned[0], turned[n-1] = turned[n-1], turned[0]
			params = append(params, fmt.Sprintf("%%in_%s : %s", v.name, ssa.Tensor(v.dtype, ssa.Sizes(turned)...)))
			emit("%%%s : Tensor = aten::transpose(%%in_%s, %%zero, %%last)", v.name, v.name)
		case f == complexForm && v.dtype.IsFloat():
			params = append(params, fmt.Sprintf("%%in_%s : %s", v.name, typ), fmt.Sprintf("%%im_%s : %s", v.name, typ))
			emit("%%%s : Tensor = aten::complex(%%in_%s, %%im_%s)", v.name, v.name, v.name)
		default:
			params = append(params, fmt.Sprintf("%%in_%s : %s", v.name, typ))
			emit("%%%s : Tensor = aten::alias(%%in_%s)", v.name, v.name)
		}
	}
	for i, a := range c.schema.Args {
		name := "%argument_" + fmt.Sprint(i)
		var members []string
		for _, v := range c.operands {
			if v.list == a.Name {
				members = append(members, "%"+v.name)
			}
		}
		switch at := slices.IndexFunc(c.operands, func(v vmapOperand) bool { return v.name == a.Name }); {
		case at >= 0:
			name = "%" + a.Name
		case members != nil:
			emit("%s : Tensor[] = prim::ListConstruct(%s)", name, strings.Join(members, ", "))
		default:
			lit, given := c.others[a.Name]
			if !given {
				lit = a.Default
			}
			value, typ := "[value="+lit.String()+"]", lit.Type().String()
			if lit.IsNone() {
				value = ""
			}
			if lit.Kind == ssa.ListLit && len(lit.Elems) == 0 {
				typ = "int[]"
			}
			emit("%s : %s = prim::Constant%s()", name, typ, value)
		}
		args = append(args, name)
	}
	call := fmt.Sprintf("%s(%s)", c.schema.Name, strings.Join(args, ", "))
	if c.isList() {
		emit("%%list : Tensor[] = %s", call)
		results = []string{"%y0", "%y1"}
		emit("%%y0 : Tensor = aten::__getitem__(%%list, %%zero)")
		emit("%%y1 : Tensor = aten::__getitem__(%%list, %%last)")
	} else {
		var typed []string
		for i := range c.schema.Returns {
			results = append(results, "%y"+fmt.Sprint(i))
			typed = append(typed, results[i]+" : Tensor")
		}
		emit("%s = %s", strings.Join(typed, ", "), call)
	}
	if parts {
		for i, y := range results {
			results[i] = "%parts" + fmt.Sprint(i)
			emit("%s : Tensor = aten::view_as_real(%s)", results[i], y)
		}
	}
	return fmt.Sprintf("graph(%s):\n%s  return (%s)\n", strings.Join(params, ", "), strings.Join(lines, ""), strings.Join(results, ", "))
}

// inputs are values of the inputs of the text, by name.
func (c vmapped) inputs(f form) map[string]*tensor.Tensor {
	in := map[string]*tensor.Tensor{}
	for i, v := range c.operands {
		if n := len(v.shape); f == transposedForm && n > 1 {
			v.shape = slices.Clone(v.shape)
			v.shape[0], v.shape[n-1] = v.shape[n-1], v.shape[0]
		}
		v.levels = nil
		in["in_"+v.name] = v.elements(i)
		if f == complexForm && v.dtype.IsFloat() {
			in["im_"+v.name] = v.elements(i + 3)
		}
	}
	return in
}

// eagerly runs a program in the eager evaluator; nil if it raises.
func eagerly(t *testing.T, text string, in map[string]*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	return program(t, text)(in)
}

// program reads a program for the eager evaluator.
func program(t *testing.T, text string) func(in map[string]*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	m, err := aton.LoadBytes([]byte(text), "graph.ir", aton.LoadOptions{})
	if err != nil {
		t.Errorf("%v\n%s", err, text)
		return func(map[string]*tensor.Tensor) []*tensor.Tensor { return nil }
	}
	return func(in map[string]*tensor.Tensor) []*tensor.Tensor { return ran(m, in) }
}

// ran are the results of a program in the eager evaluator, nil if it raises.
func ran(m *ssa.Module, in map[string]*tensor.Tensor) []*tensor.Tensor {
	var data verify.DataSet
	for name, v := range in {
		data.Inputs = append(data.Inputs, verify.Named{Name: name, Tensor: v})
	}
	out, err := verify.Run(m, data)
	if err != nil {
		return nil
	}
	var ys []*tensor.Tensor
	for _, o := range out {
		ys = append(ys, o.Tensor)
	}
	return ys
}

// converted runs a program as it is exported; the error says why it is not.
func converted(t *testing.T, file []byte, name string, in map[string]*tensor.Tensor) ([]*tensor.Tensor, error) {
	t.Helper()
	m, err := aton.LoadBytes(file, name, aton.LoadOptions{})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := aton.ExportTo(&b, m, aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Opset: 21}}); err != nil {
		return nil, err
	}
	inputs := map[string]interp.Value{}
	for name, v := range in {
		inputs[name] = interp.Of(v)
	}
	var ys []*tensor.Tensor
	for _, v := range run(t, parsed(t, b.Bytes()), inputs) {
		ys = append(ys, v.Tensor)
	}
	return ys, nil
}

// notBatched are operators of a nature that has a batching rule, which refuses them: they name no dimension, and count from the first one or
// give as many elements as data say.
var notBatched = map[string]bool{}

func init() {
	for _, name := range strings.Fields(`hstack vstack row_stack dstack column_stack block_diag cartesian_prod combinations meshgrid fliplr flipud diag diagflat take masked_select im2col
		constant_pad_nd tile channel_shuffle native_channel_shuffle hsplit vsplit dsplit matrix_H upsample_bicubic2d`) {
		notBatched["aten::"+name] = true
	}
}

// untried are operators whose calls take more than natureArguments has: recorded programs have them.
var untried = map[string]bool{"aten::index": true, "aten::index_put": true}

// TestNatures calls every operator that has a nature: as it is, on operands that are not contiguous, on operands without elements, on complex numbers, and under
// torch.vmap. What is exported gives the numbers of the eager evaluator.
func TestNatures(t *testing.T) {
	count := map[aten.Nature][5]int{}
	for _, family := range aten.Families() {
		for _, k := range family {
			nature := aten.NatureOf(k)
			schemas := aten.Schemas(k)
			if nature == aten.Unspecified || len(schemas) == 0 || k.Namespace() != "aten" {
				continue
			}
			tried := 0
			for _, s := range schemas {
				for _, d := range []tensor.DType{tensor.Float32, tensor.Int64, tensor.Bool} {
					c, ok := callOf(s, d)
					if !ok || eagerly(t, c.text(plainForm, false), c.inputs(plainForm)) == nil {
						continue
					}
					tried++
					n := count[nature]
					for i, try := range []func(*testing.T, vmapped) bool{inForm(plainForm), inForm(transposedForm), withoutElements, withComplexNumbers, underVmap} {
						if try(t, c) {
							n[i]++
						}
					}
					count[nature] = n
					break
				}
			}
			if tried == 0 && !untried[string(k)] {
				t.Errorf("%s: no overload was tried", k)
			}
		}
	}
	for n := aten.Pointwise; n <= aten.CreatesLike; n++ {
		t.Logf("nature %d: %d plain, %d not contiguous, %d empty, %d complex, %d under torch.vmap", n, count[n][0], count[n][1], count[n][2], count[n][3], count[n][4])
	}
}

// agrees reports that a program is converted, and compares its results with those of the eager evaluator.
func agrees(t *testing.T, c vmapped, what, text string, in map[string]*tensor.Tensor, must bool) bool {
	t.Helper()
	want := eagerly(t, text, in)
	if want == nil {
		return false
	}
	got, err := converted(t, []byte(text), "graph.ir", in)
	if err != nil {
		if must {
			t.Errorf("%s, %s: %v", c.schema, what, err)
		}
		return false
	}
	for i := range want {
		if !near(got[i], want[i], 1e-6) {
			t.Errorf("%s, %s: result %d is %v, want %v", c.schema, what, i, got[i], want[i])
		}
	}
	return true
}

func inForm(f form) func(*testing.T, vmapped) bool {
	return func(t *testing.T, c vmapped) bool {
		return agrees(t, c, [...]string{"plain", "not contiguous"}[f], c.text(f, false), c.inputs(f), !strings.Contains(c.schema.Name, "empty"))
	}
}

func withoutElements(t *testing.T, c vmapped) bool {
	c.operands = slices.Clone(c.operands)
	for i, v := range c.operands {
		if n := len(v.shape); n > 0 {
			c.operands[i].shape = slices.Clone(v.shape)
			c.operands[i].shape[n-1] = 0
		}
	}
	return agrees(t, c, "without elements", c.text(plainForm, false), c.inputs(plainForm), false)
}

func withComplexNumbers(t *testing.T, c vmapped) bool {
	if !slices.ContainsFunc(c.operands, func(v vmapOperand) bool { return v.dtype.IsFloat() }) {
		return false
	}
	n := aten.NatureOf(ssa.Kind(c.schema.Name))
	must := n.MovesElements() || n == aten.Scatters || n == aten.Joins
	in := c.inputs(complexForm)
	if text := c.text(complexForm, true); eagerly(t, text, in) != nil {
		return agrees(t, c, "complex", text, in, must)
	}
	return agrees(t, c, "complex", c.text(complexForm, false), in, false)
}

// underVmap compares all batchings of a call with the call on one element after the other.
func underVmap(t *testing.T, c vmapped) bool {
	eager := program(t, c.text(plainForm, false))
	c.results = eager(c.inputs(plainForm))
	nature := aten.NatureOf(ssa.Kind(c.schema.Name))
	all := 0
	for n, b := range c.batchings() {
		one := 0 // operands that are batched
		for _, v := range b.operands {
			one += min(len(v.levels), 1)
		}
		alone := len(b.operands[0].levels) > 0 && one == 1 && b.operands[0].list == ""
		in := map[string]*tensor.Tensor{}
		for i, v := range b.operands {
			in["in_"+v.name] = v.elements(i)
		}
		got, err := converted(t, b.archive(t), "m.pt2", in)
		if err != nil {
			refused := strings.Contains(err.Error(), "no batching rule")
			must := !notBatched[c.schema.Name] && (nature == aten.Pointwise || nature == aten.Joins || alone && nature != aten.Scatters && nature != aten.Multilinear)
			if !refused || must {
				t.Errorf("%s, batching %d: %v", c.schema, n, err)
			}
			continue
		}
		all++
		at := make([]int64, b.levels)
		for i := range int64(math.Pow(vmapSize, float64(b.levels))) {
			levels := make([]int, b.levels)
			for l := range at {
				at[l], levels[l] = i%vmapSize, l+1
				i /= vmapSize
			}
			here := map[string]*tensor.Tensor{}
			for _, v := range b.operands {
				here["in_"+v.name] = element(in["in_"+v.name], v.inDim, v.levels, at)
			}
			want := eager(here)
			for r := range want {
				if part := element(got[r], min(b.outDim, len(want[r].Shape)), levels, at); !near(part, want[r], 1e-6) {
					t.Errorf("%s, batching %d, element %v, result %d: %v, want %v", c.schema, n, at, r, part, want[r])
					return true
				}
			}
		}
	}
	return all > 0
}

// TestVmapPaddedImages pads images by what they show, with the dimension of the samples and without it.
func TestVmapPaddedImages(t *testing.T) {
	for _, shape := range [][]int64{{2, 2, 4}, {2, 4}} {
		c, ok := callOf(aten.Schema("aten::pad", ""), tensor.Float32)
		if !ok {
			t.Fatal("pad is not called")
		}
		c.operands[0].shape = shape
		c.others["mode"], c.others["pad"] = ssa.Str("reflect"), ssa.Ints(1, 2)
		if !underVmap(t, c) {
			t.Errorf("pad of %v is not converted", shape)
		}
	}
}
