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
	results  []*tensor.Tensor // of one element; those of a list are its members
}

// vmapOperand is a tensor argument.
type vmapOperand struct {
	name   string // of the argument, with a number behind it for a member of a list
	list   string // the argument that it is a member of
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
	outputs := func(target string, outputs []object, args ...object) {
		if args == nil {
			args = []object{}
		}
		nodes = append(nodes, object{"target": target, "inputs": args, "outputs": outputs, "metadata": object{}, "is_hop_single_tensor_return": nil})
	}
	call := func(target string, output object, args ...object) { outputs(target, []object{output}, args...) }
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
		var members []any
		for _, v := range c.operands {
			if v.list == a.Name {
				members = append(members, current[v.name]["as_tensor"])
			}
		}
		switch {
		case members != nil:
			arg = object{"as_tensors": members}
		case !ok:
			lit, given := c.others[a.Name]
			if !given {
				continue
			}
			arg = stated(lit)
		}
		args = append(args, object{"name": a.Name, "arg": arg, "kind": 1})
	}
	overload := c.schema.Overload
	if overload == "" {
		overload = "default"
	}
	var ys []object
	for i, r := range c.results {
		ys = append(ys, state(fmt.Sprint("y", i), r.DType, r.Shape))
	}
	stated := slices.Clone(ys)
	if c.isList() {
		var members []any
		for _, y := range ys {
			members = append(members, y["as_tensor"])
		}
		stated = []object{{"as_tensors": members}}
	}
	outputs("torch.ops."+strings.ReplaceAll(c.schema.Name, "::", ".")+"."+overload, stated, args...)
	shapes := make([][]int64, len(ys))
	for level := c.levels; level >= 1; level-- {
		for i, r := range c.results {
			if shapes[i] == nil {
				shapes[i] = r.Shape
			}
			dim := min(c.outDim, len(shapes[i]))
			shapes[i] = slices.Insert(slices.Clone(shapes[i]), dim, vmapSize)
			out := state(fmt.Sprintf("y%d_of_%d", i, level), r.DType, shapes[i])
			call(predispatch+"_remove_batch_dim", out, positional(ys[i]), number(level), number(vmapSize), number(dim))
			ys[i] = out
		}
		call(predispatch+"_vmap_decrement_nesting", none)
	}
	var specsOut []object
	for _, y := range ys {
		specsOut = append(specsOut, object{"user_output": object{"arg": y}})
	}
	graph := object{"inputs": inputs, "outputs": ys, "nodes": nodes, "tensor_values": values, "sym_int_values": object{}, "sym_bool_values": object{}, "is_single_tensor_return": false}
	program := object{
		"graph_module": object{"graph": graph, "signature": object{"input_specs": specs, "output_specs": specsOut},
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
	case ssa.BoolLit:
		return map[string]any{"as_bool": l.Bool()}
	case ssa.StrLit:
		return map[string]any{"as_string": l.Str()}
	case ssa.ListLit:
		ints, _ := l.IntList()
		return map[string]any{"as_ints": ints}
	}
	return map[string]any{"as_none": true}
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
		if x[i] = int64((i*7+seed*5)%11 + 1); v.dtype == tensor.Bool || strings.HasPrefix(v.name, "ind") { // an index
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
