package e2e

import (
	"archive/zip"
	"bytes"
	"encoding/json"
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
)

// vmapped is a call of an operator under torch.vmap.
type vmapped struct {
	schema   *ssa.Schema
	operands []vmapOperand
	others   map[string]ssa.Literal // arguments that are no tensors and have no default
	levels   int                    // of torch.vmap, all of vmapSize elements
	outDim   int
	result   tensor.DType
	rank     int // of the result of one element
}

// vmapOperand is a tensor argument.
type vmapOperand struct {
	name   string
	dtype  tensor.DType
	shape  []int64 // of one element
	levels []int   // that batch it, rising
	inDim  int     // where the dimension of a level is
}

const vmapSize = 3

// full is the shape of the input with its batch dimensions.
func (v vmapOperand) full() []int64 {
	s := slices.Clone(v.shape)
	for range v.levels {
		s = slices.Insert(s, v.inDim, vmapSize)
	}
	return s
}

// archive writes the program as torch.export.save does.
func (c vmapped) archive(t *testing.T) []byte {
	type object = map[string]any
	values := object{}
	state := func(name string, d tensor.DType, shape []int64) object {
		sizes, strides := []object{}, []object{}
		step := int64(1)
		for i := range shape {
			sizes = append(sizes, object{"as_int": shape[i]})
			strides = append(strides, object{"as_int": step})
			step *= shape[i]
		}
		values[name] = object{"dtype": d.Code() + 1, // torch._export.serde numbers the types from 1
			"sizes": sizes, "strides": strides, "requires_grad": false, "device": object{"type": "cpu", "index": nil}, "storage_offset": object{"as_int": 0}, "layout": 7}
		return object{"as_tensor": object{"name": name}}
	}
	var nodes []object
	call := func(target string, output object, args ...object) {
		if args == nil {
			args = []object{}
		}
		nodes = append(nodes, object{"target": target, "inputs": args, "outputs": []object{output}, "metadata": object{}, "is_hop_single_tensor_return": nil})
	}
	positional := func(arg object) object { return object{"name": "", "arg": arg, "kind": 1} }
	number := func(n int) object { return positional(object{"as_int": n}) }
	const predispatch = "torch._functorch.predispatch."
	none := object{"as_none": true}
	var inputs, specs []object
	current := map[string]object{}
	for _, v := range c.operands {
		in := state("in_"+v.name, v.dtype, v.full())
		inputs, specs = append(inputs, in), append(specs, object{"user_input": object{"arg": in}})
		current[v.name] = in
	}
	for level := 1; level <= c.levels; level++ {
		call(predispatch+"_vmap_increment_nesting", none, number(vmapSize), positional(object{"as_string": "error"}))
		for _, v := range c.operands {
			at := slices.Index(v.levels, level)
			if at < 0 {
				continue
			}
			shape := slices.Clone(v.shape)
			for range len(v.levels) - at - 1 {
				shape = slices.Insert(shape, v.inDim, vmapSize)
			}
			out := state(fmt.Sprintf("%s_at_%d", v.name, level), v.dtype, shape)
			call(predispatch+"_add_batch_dim", out, positional(current[v.name]), number(v.inDim), number(level))
			current[v.name] = out
		}
	}
	var args []object
	for _, a := range c.schema.Args {
		arg, ok := current[a.Name]
		if !ok {
			lit, given := c.others[a.Name]
			if !given {
				continue
			}
			arg = stated(lit)
		}
		args = append(args, object{"name": a.Name, "arg": arg, "kind": 1})
	}
	shape := []int64{2, 3}[2-c.rank:]
	overload := c.schema.Overload
	if overload == "" {
		overload = "default"
	}
	y := state("y", c.result, shape)
	call("torch.ops."+strings.ReplaceAll(c.schema.Name, "::", ".")+"."+overload, y, args...)
	for level := c.levels; level >= 1; level-- {
		shape = slices.Insert(slices.Clone(shape), c.outDim, vmapSize)
		out := state(fmt.Sprintf("y_of_%d", level), c.result, shape)
		call(predispatch+"_remove_batch_dim", out, positional(y), number(level), number(vmapSize), number(c.outDim))
		call(predispatch+"_vmap_decrement_nesting", none)
		y = out
	}
	graph := object{"inputs": inputs, "outputs": []object{y}, "nodes": nodes, "tensor_values": values, "sym_int_values": object{}, "sym_bool_values": object{}, "is_single_tensor_return": false}
	program := object{
		"graph_module": object{"graph": graph, "signature": object{"input_specs": specs, "output_specs": []object{{"user_output": object{"arg": y}}}},
			"module_call_graph": []object{}, "metadata": object{}},
		"opset_version": object{"aten": 10}, "range_constraints": object{}, "schema_version": object{"major": 8, "minor": 20}, "torch_version": "2.15.0",
	}
	text, err := json.Marshal(program)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, r := range [][2]string{{"archive_format", "pt2"}, {"archive_version", "0"}, {"byteorder", "little"}, {".data/version", "6"},
		{"data/constants/model_constants_config.json", `{"config": {}}`}, {"data/weights/model_weights_config.json", `{"config": {}}`},
		{"models/model.json", string(text)}} {
		f, err := w.CreateHeader(&zip.FileHeader{Name: "m/" + r[0], Method: zip.Store})
		if err == nil {
			_, err = f.Write([]byte(r[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// stated is a literal as a program has it.
func stated(l ssa.Literal) map[string]any {
	switch l.Kind {
	case ssa.IntLit:
		return map[string]any{"as_int": l.Int()}
	case ssa.FloatLit:
		return map[string]any{"as_float": l.Float()}
	}
	return map[string]any{"as_none": true}
}

// plain is the operator on one element, as graph text.
func (c vmapped) plain() string {
	var params, lines, args []string
	for i, a := range c.schema.Args {
		name := "%a" + fmt.Sprint(i)
		if at := slices.IndexFunc(c.operands, func(v vmapOperand) bool { return v.name == a.Name }); at >= 0 {
			v := c.operands[at]
			name = "%" + v.name
			params = append(params, name+" : "+ssa.Tensor(v.dtype, ssa.Sizes(v.shape)...).String())
		} else {
			lit, given := c.others[a.Name]
			if !given {
				lit = a.Default
			}
			value, typ := "[value="+lit.String()+"]", lit.Type()
			if lit.IsNone() {
				value = ""
			}
			lines = append(lines, fmt.Sprintf("  %s : %s = prim::Constant%s()\n", name, typ, value))
		}
		args = append(args, name)
	}
	return fmt.Sprintf("graph(%s):\n%s  %%y : Tensor = %s(%s)\n  return (%%y)\n", strings.Join(params, ", "), strings.Join(lines, ""), c.schema.Name, strings.Join(args, ", "))
}

// elements gives an input values that differ from place to place.
func (v vmapOperand) elements(seed int) *tensor.Tensor {
	shape := v.full()
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	if v.dtype.IsFloat() {
		x := make([]float64, n)
		for i := range x {
			x[i] = math.Mod(float64(i*7+seed*5), 23)/8 - 1.125
		}
		return tensor.FromFloats(v.dtype, shape, x)
	}
	x := make([]int64, n)
	for i := range x {
		if x[i] = int64((i*7+seed*5)%11 + 1); v.dtype == tensor.Bool {
			x[i] %= 2
		}
	}
	return tensor.FromInts(v.dtype, shape, x)
}

// element is the part of an input or a result that the levels, rising, see at some places of theirs.
func element(x *tensor.Tensor, dim int, levels []int, at []int64) *tensor.Tensor {
	for _, l := range levels {
		x = sliced(x, dim, at[l-1])
	}
	return x
}

func sliced(x *tensor.Tensor, dim int, at int64) *tensor.Tensor {
	shape := x.Shape
	inner := int64(1)
	for _, d := range shape[dim+1:] {
		inner *= d
	}
	rest := slices.Delete(slices.Clone(shape), dim, dim+1)
	var floats []float64
	var ints []int64
	for i := range x.NumElements() {
		if i/inner%shape[dim] != at {
			continue
		}
		if x.DType.IsFloat() {
			floats = append(floats, x.Float64s()[i])
		} else {
			ints = append(ints, x.Int64s()[i])
		}
	}
	if x.DType.IsFloat() {
		return tensor.FromFloats(x.DType, rest, floats)
	}
	return tensor.FromInts(x.DType, rest, ints)
}

// call makes a call of an overload on tensors of a type. ok is false for one that does not give one tensor of tensors.
func callOf(s *ssa.Schema, d tensor.DType) (c vmapped, ok bool) {
	c = vmapped{schema: s, others: map[string]ssa.Literal{}, rank: 2}
	if s.Mutates() || len(s.Returns) != 1 || ssa.AsTensor(s.Returns[0].Type) == nil {
		return c, false
	}
	for _, a := range s.Args {
		typ, required := a.Type, !a.HasDefault || a.Name == "min"
		if optional, ok := typ.(*ssa.OptionalType); ok && a.Name == "min" {
			typ = optional.Elem
		}
		_, optional := typ.(*ssa.OptionalType)
		switch {
		case ssa.AsTensor(typ) != nil && required:
			v := vmapOperand{name: a.Name, dtype: d, shape: []int64{2, 3}}
			if len(c.operands) > 0 {
				v.shape = v.shape[1:]
			}
			if a.Name == "mask" || a.Name == "condition" {
				v.dtype = tensor.Bool
			}
			if a.Name == "value" { // of a fill
				v.shape = nil
			}
			c.operands = append(c.operands, v)
		case !required:
		case optional:
			c.others[a.Name] = ssa.None
		case typ == ssa.IntType || typ == ssa.NumberType && !d.IsFloat():
			c.others[a.Name] = ssa.Int(1)
		case typ == ssa.FloatType || typ == ssa.NumberType:
			c.others[a.Name] = ssa.Float(0.75)
		default:
			return c, false
		}
	}
	if len(c.operands) > 0 && c.schema.Name == "aten::where" { // the mask has lost an axis, not the numbers
		c.operands[0].shape = []int64{2, 3}
	}
	return c, len(c.operands) > 0
}

// batchings gives the ways to batch a call.
func (c vmapped) batchings() []vmapped {
	with := func(levels, outDim int, batch func(i int, v *vmapOperand)) vmapped {
		b := c
		b.levels, b.outDim, b.operands = levels, outDim, slices.Clone(c.operands)
		for i := range b.operands {
			batch(i, &b.operands[i])
		}
		return b
	}
	all := []vmapped{
		with(1, 1, func(_ int, v *vmapOperand) { v.levels = []int{1} }),
		with(2, 0, func(i int, v *vmapOperand) {
			if v.levels = []int{1, 2}; len(c.operands) > 1 {
				v.levels = []int{i%2 + 1}
			}
		}),
	}
	for one := range c.operands {
		all = append(all, with(1, 0, func(i int, v *vmapOperand) {
			if i == one {
				v.levels, v.inDim = []int{1}, len(v.shape)
			}
		}))
	}
	return all
}

// TestVmapPointwise puts each operator of nature Pointwise under torch.vmap, and compares with the operator on one element after the other.
func TestVmapPointwise(t *testing.T) {
	for _, family := range aten.Families() {
		for _, k := range family {
			if aten.NatureOf(k) != aten.Pointwise {
				continue
			}
			schemas, tried := aten.Schemas(k), 0
			for _, s := range schemas {
				for _, d := range []tensor.DType{tensor.Float32, tensor.Int64, tensor.Bool} {
					if c, ok := callOf(s, d); ok && c.right(t) {
						tried++
						break
					}
				}
			}
			if len(schemas) > 0 && tried == 0 {
				t.Errorf("%s: no overload is converted", k)
			}
		}
	}
}

// right compares all batchings of a call with the call; false if the call itself is not converted.
func (c vmapped) right(t *testing.T) bool {
	m, err := aton.LoadBytes([]byte(c.plain()), "plain.ir", aton.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var plain bytes.Buffer
	if aton.ExportTo(&plain, m, aton.Options{Opset: 21}) != nil {
		return false
	}
	one := parsed(t, plain.Bytes())
	y := one.Main().Body.Return(0).Tensor()
	c.result, c.rank = y.DType, len(y.Dims)
	for n, b := range c.batchings() {
		m, err := aton.LoadBytes(b.archive(t), "m.pt2", aton.Options{})
		if err != nil {
			t.Errorf("%s, batching %d: %v", c.schema, n, err)
			continue
		}
		var file bytes.Buffer
		if err := aton.ExportTo(&file, m, aton.Options{Opset: 21}); err != nil {
			t.Errorf("%s, batching %d: %v", c.schema, n, err)
			continue
		}
		inputs := map[string]interp.Value{}
		for i, v := range b.operands {
			inputs["in_"+v.name] = interp.Of(v.elements(i))
		}
		got := run(t, parsed(t, file.Bytes()), inputs)[0].Tensor
		at := make([]int64, b.levels)
		for i := range int64(math.Pow(vmapSize, float64(b.levels))) {
			levels := make([]int, b.levels)
			for l := range at {
				at[l], levels[l] = i%vmapSize, l+1
				i /= vmapSize
			}
			here := map[string]interp.Value{}
			for _, v := range b.operands {
				here[v.name] = interp.Of(element(inputs["in_"+v.name].Tensor, v.inDim, v.levels, at))
			}
			want := run(t, one, here)[0].Tensor
			if part := element(got, b.outDim, levels, at); !near(part, want, 0) {
				t.Errorf("%s, batching %d, element %v: %v, want %v", c.schema, n, at, part, want)
				break
			}
		}
	}
	return true
}

// near reports the same tensors, floats up to a rounding and an absolute error.
func near(a, b *tensor.Tensor, absolute float64) bool {
	if a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) {
		return false
	}
	if !a.DType.IsFloat() {
		return slices.Equal(a.Int64s(), b.Int64s())
	}
	return slices.EqualFunc(a.Float64s(), b.Float64s(), func(x, y float64) bool {
		return x == y || x != x && y != y || math.Abs(x-y) <= 1e-6*math.Abs(y)+absolute
	})
}
