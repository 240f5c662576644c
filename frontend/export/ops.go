package export

import (
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
)

// renamed is the operator that one of exported programs alone is another name of, where archives of torch.jit have that one.
func renamed(k ssa.Kind, overload string) (ssa.Kind, string) {
	if k == "aten::lift_fresh_copy" {
		return "aten::clone", overload
	}
	if to := aten.AliasOf(k); to != "" && aten.Schema(to, overload) != nil {
		return to, overload
	}
	return k, overload
}

// special handles the operators of exported programs that are not operators of a graph.
func (im *importer) special(sc *scope, n *node, k ssa.Kind, overload string, args []*argument, names []string) bool {
	if k == "torch_nn::_linear_cross_entropy_batch_chunked" || k == "torch_nn::_linear_cross_entropy_batch_chunked_no_reduction" {
		im.linearCrossEntropy(sc, n, args, names)
		return true
	}
	arg := func(name string) *argument {
		for i := range names {
			if names[i] == name {
				return args[i]
			}
		}
		return nil
	}
	if k == "export::access_subclass_inner_tensor" {
		im.innerTensor(sc, n, arg("src_subclass_tensor"), arg("attr"))
		return true
	}
	if k.Namespace() != "aten" {
		return false
	}
	switch k.Name() {
	case "_assert_scalar", "_assert_async":
		im.assertion(sc, arg("assert_msg"))
		return true
	case "sym_constrain_range", "sym_constrain_range_for_size", "_assert_tensor_metadata", "_print":
		return true // the ranges are in the program, the metadata is found anew
	case "_functional_assert_scalar", "_functional_assert_async", "_functional_sym_constrain_range", "_functional_sym_constrain_range_for_size":
		im.assertion(sc, arg("assert_msg"))
		if t := arg("dep_token"); t != nil && len(n.outputs) == 1 && n.outputs[0].isName() {
			im.define(sc, n.outputs[0].s, im.value(sc, t, nil))
		}
		return true
	}
	if to, o := renamed(k, overload); to != k {
		im.bind(sc, n.outputs, im.operator(sc, to, o, args, names, n.outputs))
		return true
	}
	return false
}

// linearCrossEntropy builds the loss of a linear layer, which PyTorch computes
// in chunks; the gradients that are its other results belong to training.
func (im *importer) linearCrossEntropy(sc *scope, n *node, args []*argument, names []string) {
	reduction := argument{tag: tagInt} // none
	given := map[string]*argument{"linear_bias": {}, "weight": {}, "ignore_index": {tag: tagInt, n: -100}, "label_smoothing": {tag: tagFloat}}
	for i, name := range names {
		given[name] = args[i]
		if name == "reduction" {
			switch args[i].s {
			case "mean":
				reduction.n = 1
			case "sum":
				reduction.n = 2
			}
		}
	}
	for _, name := range []string{"input", "linear_weight", "target"} {
		if given[name] == nil {
			im.failNode(sc, "", "the argument %q is missing", name)
		}
	}
	if len(n.outputs) == 0 || !n.outputs[0].isName() {
		im.failNode(sc, "", "it has no result")
	}
	logits := im.operator(sc, "aten::linear", "", []*argument{given["input"], given["linear_weight"], given["linear_bias"]}, []string{"input", "weight", "bias"}, nil)
	name := " " + im.names.Unique("logits")
	sc.vals[name] = logits[0]
	loss := im.operator(sc, "aten::cross_entropy_loss", "",
		[]*argument{{tag: tagTensor, s: name}, given["target"], given["weight"], &reduction, given["ignore_index"], given["label_smoothing"]},
		[]string{"self", "target", "weight", "reduction", "ignore_index", "label_smoothing"}, n.outputs[:1])
	im.bind(sc, n.outputs[:1], loss)
}

// onNumbers maps Python functions on numbers to operators.
var onNumbers = map[string]ssa.Kind{
	"_operator.add": "aten::add", "_operator.sub": "aten::sub", "_operator.mul": "aten::mul", "_operator.floordiv": "aten::floordiv",
	"_operator.truediv": "aten::div", "_operator.mod": "aten::remainder", "_operator.pow": "aten::pow", "_operator.neg": "aten::neg",
	"_operator.eq": "aten::eq", "_operator.ne": "aten::ne", "_operator.lt": "aten::lt", "_operator.le": "aten::le", "_operator.gt": "aten::gt",
	"_operator.ge": "aten::ge", "_operator.and_": "aten::__and__", "_operator.or_": "aten::__or__", "_operator.lshift": "aten::__lshift__",
	"_operator.rshift": "aten::__rshift__", "math.trunc": "aten::Int", "math.floor": "aten::floor", "math.ceil": "aten::ceil", "round": "aten::round",
	"math.sqrt": "aten::sqrt", "abs": "prim::abs", "_operator.abs": "prim::abs", "torch.sym_max": "prim::max", "torch.sym_min": "prim::min",
	"torch.sym_not": "aten::__not__", "_operator.not_": "aten::__not__", "torch.sym_float": "aten::Float", "torch.sym_int": "aten::Int",
	"torch.sym_sqrt": "aten::sqrt", "torch._sym_sqrt": "aten::sqrt", "math.pow": "aten::pow", "math.log": "aten::log", "math.exp": "aten::exp",
}

// function builds a call of a Python function.
func (im *importer) function(sc *scope, n *node) {
	switch {
	case n.target == "_operator.pos":
		if len(n.inputs) == 1 && len(n.outputs) == 1 {
			im.define(sc, n.outputs[0].s, im.value(sc, &n.inputs[0].argument, nil))
			return
		}
	case n.target == "torch.sym_ite":
		im.ite(sc, n)
		return
	case n.target == "torch.sym_sum":
		im.sum(sc, n)
		return
	case strings.HasPrefix(n.target, "torch._functorch.predispatch."):
		im.vmapFunction(sc, n, strings.TrimPrefix(n.target, "torch._functorch.predispatch."))
		return
	case n.target == "torch._C._set_grad_enabled", strings.HasPrefix(n.target, "torch.amp.autocast_mode."):
		im.failNode(sc, "export again with PyTorch 2.5 or newer", "a region that is not closed in the graph")
	case strings.HasPrefix(n.target, "#"):
		im.failNode(sc, "", "an operator of a foreign type")
	}
	k, ok := onNumbers[n.target]
	if !ok {
		im.failNode(sc, "", "the function is not known")
	}
	vs := make([]*ssa.Value, len(n.inputs))
	types := make([]ssa.Type, len(vs))
	for i := range vs {
		vs[i] = im.value(sc, &n.inputs[i].argument, nil)
		types[i] = vs[i].Type
		if !isNumber(types[i]) {
			im.failNode(sc, "", "an argument is no number")
		}
	}
	var schema *ssa.Schema
	if k == "aten::pow" && len(n.outputs) == 1 && n.outputs[0].tag == tagSymInt {
		schema = aten.Schema(k, "int_to_int")
	} else {
		schema = ssa.MatchSchema(aten.Schemas(k), types)
	}
	if schema == nil && len(vs) == 2 { // bools count as ints
		for i := range vs {
			if types[i] == ssa.BoolType {
				vs[i] = sc.b.Append("aten::Int", sc.at, []*ssa.Value{vs[i]}, ssa.IntType).Results[0]
				vs[i].Def().Schema = aten.Schema("aten::Int", "bool")
				types[i] = ssa.IntType
			}
		}
		schema = ssa.MatchSchema(aten.Schemas(k), types)
	}
	if schema == nil || len(schema.Args) != len(vs) || len(schema.Returns) != 1 {
		im.failNode(sc, "", "the function does not take these arguments")
	}
	t := schema.Returns[0].Type
	if len(n.outputs) == 1 && n.outputs[0].isName() && t == ssa.NumberType {
		t = im.valueType(sc.g, &n.outputs[0])
	}
	o := sc.b.Append(k, sc.at, vs, t)
	o.Schema = schema
	im.bind(sc, n.outputs, o.Results)
}

// ite builds torch.sym_ite(condition, a, b).
func (im *importer) ite(sc *scope, n *node) {
	if len(n.inputs) != 3 || len(n.outputs) != 1 {
		im.failNode(sc, "", "it takes 3 arguments")
	}
	c := im.value(sc, &n.inputs[0].argument, nil)
	t := im.valueType(sc.g, &n.outputs[0])
	o := sc.b.Append("prim::If", sc.at, []*ssa.Value{c}, t)
	for i := 1; i <= 2; i++ {
		v := im.value(sc, &n.inputs[i].argument, t)
		o.AddBlock().SetReturns(v)
	}
	im.bind(sc, n.outputs, o.Results)
}

// sum builds torch.sym_sum of a list.
func (im *importer) sum(sc *scope, n *node) {
	var parts []argument
	for i := range n.inputs {
		if a := &n.inputs[i].argument; a.tag == tagList {
			parts = append(parts, a.list...)
		} else {
			parts = append(parts, *a)
		}
	}
	total := im.constant(ssa.Int(0))
	for i := range parts {
		v := im.value(sc, &parts[i], nil)
		if v.Type != ssa.IntType {
			im.failNode(sc, "", "an argument is no int")
		}
		total = im.emit(sc, sc.b, "aten::add", "int", ssa.IntType, total, v)
	}
	im.bind(sc, n.outputs, []*ssa.Value{total})
}
