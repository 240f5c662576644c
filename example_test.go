package aton_test

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

// exported converts graph text and prints the result, without locations.
func exported(text string, o aton.ConvertOptions) {
	m, err := aton.LoadBytes([]byte(text), "graph.ir", o.LoadOptions())
	if err != nil {
		fmt.Println(err)
		return
	}
	var file bytes.Buffer
	if err := aton.ExportTo(&file, m, aton.ExportOptions{ConvertOptions: o}); err != nil {
		fmt.Println(err)
		return
	}
	if m, err = aton.LoadBytes(file.Bytes(), "model.onnx", aton.LoadOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	var out bytes.Buffer
	if err := ssa.Fprint(&out, m, ssa.PrintOptions{NoLocs: true}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(out.String())
	for _, domain := range []string{"custom_domain", "org.pytorch.aten", "prim", "aten", "foo"} {
		if v := m.Opsets[domain]; v != 0 {
			fmt.Printf("%s: version %d\n", domain, v)
		}
	}
}

// The story of torch.onnx's page on missing operators: a symbolic function for aten::elu, which overrides the
// built-in one from opset 9 on. Arguments are typed, by their names in the operator's schema.
func Example_elu() {
	table := aten.NewTable()
	table.Register("aten::elu", aten.Def{
		Doc:   "the exponential linear unit",
		Since: 9,
		Lower: func(l *aten.Lowering) *ssa.Value {
			if l.Float("scale") != 1 || l.Float("input_scale") != 1 {
				l.Fail("a scale other than 1")
			}
			return l.OpA("Elu", []ssa.Attr{{Name: "alpha", Value: ssa.Float(l.Float("alpha"))}}, l.Tensor("self"))
		},
	})
	exported(`graph(%x : Float(2, 3)):
  %alpha : float = prim::Constant[value=0.5]()
  %one : int = prim::Constant[value=1]()
  %y : Float(2, 3) = aten::elu(%x, %alpha, %one, %one)
  return (%y)
`, aton.ConvertOptions{Table: table})
	// Output:
	// graph @main_graph(%x : Float(2, 3)):
	//   %output : Float(2, 3) = onnx::Elu[alpha=0.5](%x)
	//   return (%output)
}

// Registrations hold from an opset on, and go before the built-in definition until they are taken back. The names of
// ONNX's own operators, and what is no name, are refused.
func Example_register() {
	table := aten.NewTable()
	relu := func(alpha float64) aten.Def {
		return aten.Def{Lower: func(l *aten.Lowering) *ssa.Value {
			return l.OpA("LeakyRelu", []ssa.Attr{{Name: "alpha", Value: ssa.Float(alpha)}}, l.Tensor("self"))
		}}
	}
	at := func(opset int, d aten.Def) aten.Def { d.Since = opset; return d }
	fmt.Println(table.Register("aten::relu", at(11, relu(0.25))), table.Register("::relu", at(15, relu(0.5))))
	const graph = `graph(%x : Float(3)):
  %y : Float(3) = aten::relu(%x)
  return (%y)
`
	for _, opset := range []int{9, 13, 17} {
		exported(graph, aton.ConvertOptions{Table: table, Opset: opset})
	}
	fmt.Println(table.Unregister("aten::relu", 15))
	exported(graph, aton.ConvertOptions{Table: table, Opset: 17})
	fmt.Println(table.Unregister("aten::relu", 15))
	fmt.Println(table.Register("onnx::Relu", relu(0)))
	fmt.Println(table.Register("relu", relu(0)))
	fmt.Println(table.Register("my::relu", aten.Def{}))
	// Output:
	// <nil> <nil>
	// graph @main_graph(%x : Float(3)):
	//   %output : Float(3) = onnx::Relu(%x)
	//   return (%output)
	// graph @main_graph(%x : Float(3)):
	//   %output : Float(3) = onnx::LeakyRelu[alpha=0.25](%x)
	//   return (%output)
	// graph @main_graph(%x : Float(3)):
	//   %output : Float(3) = onnx::LeakyRelu[alpha=0.5](%x)
	//   return (%output)
	// <nil>
	// graph @main_graph(%x : Float(3)):
	//   %output : Float(3) = onnx::LeakyRelu[alpha=0.25](%x)
	//   return (%output)
	// aten::relu: nothing is registered from opset 15 on
	// onnx::Relu: the operators of ONNX cannot be replaced
	// "relu" is no name of an operator, such as ns::op
	// my::relu: neither a lowering nor a reason why there is none
}

// An operator of the user's own becomes a node of a custom domain, whose version the options give. It has no schema:
// operands go by position, and its result has the type that the graph declares.
func Example_customDomain() {
	table := aten.NewTable()
	table.Register("custom_ops::foo_forward", aten.Def{
		LowerN: func(l *aten.Lowering) []*ssa.Value {
			return l.Custom("custom_domain::Foo", []*ssa.Value{l.Input(0), l.Input(1)}, ssa.Attr{Name: "alpha", Value: l.InputLiteral(2)})
		},
	})
	exported(`graph(%a : Float(2, 3), %b : Float(2, 3)):
  %alpha : float = prim::Constant[value=0.25]()
  %y : Float(2, 3), %mask : Bool(2, 3) = custom_ops::foo_forward(%a, %b, %alpha)
  %r : Float(2, 3) = aten::relu(%y)
  return (%r, %mask)
`, aton.ConvertOptions{Table: table, CustomOpsets: map[string]int{"custom_domain": 2}})
	// Output:
	// graph @main_graph(%a : Float(2, 3),
	//       %b : Float(2, 3)):
	//   %y : Tensor, %0 : Bool(2, 3) = custom_domain::Foo[alpha=0.25](%a, %b)
	//   %1 : Float(2, 3) = onnx::Relu(%y)
	//   return (%1, %0)
	// custom_domain: version 2
}

// A printed graph has the calls of torch.autograd.Function as prim::PythonOp: one symbolic function stands for all of
// them and switches on the name of the class.
func Example_pythonOp() {
	table := aten.NewTable()
	table.Register("prim::PythonOp", aten.Def{
		Lower: func(l *aten.Lowering) *ssa.Value {
			switch name := l.PythonName(); name {
			case "MyClip":
				low, err := strconv.ParseFloat(l.PythonScalars()[0], 64)
				if err != nil {
					l.Fail("%v", err)
				}
				return l.Op("Clip", l.Input(0), l.Scalar(tensor.Float32, low))
			case "MyRelu":
				return l.Op("Relu", l.Input(0))
			default:
				l.Fail("the function %s", name)
				return nil
			}
		},
	})
	exported(`graph(%x : Float(2, 3)):
  %c : Float(2, 3) = ^MyClip[inplace=0, module="__main__"](0.5)(%x)
  %r : Float(2, 3) = ^MyRelu()(%c)
  return (%r)
`, aton.ConvertOptions{Table: table})
	exported(`graph(%x : Float(2, 3)):
  %r : Float(2, 3) = ^MySign()(%x)
  return (%r)
`, aton.ConvertOptions{Table: table})
	// Output:
	// graph @main_graph(%x : Float(2, 3)):
	//   %onnx::Clip_const : Float() = onnx::Constant[value={0.5}]()
	//   %output : Float(2, 3) = onnx::Clip(%x, %onnx::Clip_const)
	//   return (%output)
	// prim::PythonOp: the function MySign
}

// A list of optional tensors becomes inputs of their own, absent where they are None.
func Example_optionalTensors() {
	exported(`graph(%x : Float(2, 3), %i : Long(2)):
  %n : NoneType = prim::Constant()
  %l : Tensor?[] = prim::ListConstruct(%n, %i)
  %y : Float(2, 2) = aten::index(%x, %l)
  return (%y)
`, aton.ConvertOptions{OperatorExport: aton.ONNXATen})
	// Output:
	// graph @main_graph(%x : Float(2, 3),
	//       %i : Long(2)):
	//   %output : Float(2, 2) = org.pytorch.aten::ATen[operator="index", overload_name="Tensor"](%x, _, %i)
	//   return (%output)
	// org.pytorch.aten: version 1
}

// What cannot be converted can stay, in the ways of torch.onnx's operator_export_type.
func Example_operatorExport() {
	const graph = `graph(%x : Float(2, 3)):
  %k : int = prim::Constant[value=7]()
  %n : NoneType = prim::Constant()
  %y : Float(2, 3) = aten::no_such_operator(%x, %n, %k, %n)
  %r : Float(2, 3) = aten::relu(%y)
  %s : Float(2, 3) = foo::forward(%r)
  return (%s)
`
	for _, t := range []aton.OperatorExportType{aton.ONNX, aton.ONNXFallthrough, aton.ONNXATenFallback, aton.ONNXATen, aton.Raw} {
		fmt.Println(t)
		o := aton.ConvertOptions{OperatorExport: t}
		if t != aton.ONNX && t != aton.ONNXFallthrough && t != aton.Raw {
			o.Fallthrough = []string{"foo"}
		}
		exported(graph, o)
	}
	// Output:
	// ONNX
	// aten::no_such_operator: the operator is not supported; give a rule for it (--rules), register a symbolic function, or export with --fallthrough aten
	// foo::forward: the operator is not supported; give a rule for it (--rules), register a symbolic function, or export with --fallthrough foo
	// ONNX_FALLTHROUGH
	// graph @main_graph(%x : Float(2, 3)):
	//   %onnx::no_such_operator_const : Long() = onnx::Constant[value={7}]()
	//   %y : Tensor = org.pytorch.aten::no_such_operator(%x, _, %onnx::no_such_operator_const)
	//   %r : Tensor = onnx::Relu(%y)
	//   %output : Float(2, 3) = foo::forward(%r)
	//   return (%output)
	// org.pytorch.aten: version 1
	// foo: version 1
	// ONNX_ATEN_FALLBACK
	// graph @main_graph(%x : Float(2, 3)):
	//   %onnx::ATen_const : Long() = onnx::Constant[value={7}]()
	//   %y : Tensor = org.pytorch.aten::ATen[operator="no_such_operator", overload_name=""](%x, _, %onnx::ATen_const, _)
	//   %r : Tensor = onnx::Relu(%y)
	//   %output : Float(2, 3) = foo::forward(%r)
	//   return (%output)
	// org.pytorch.aten: version 1
	// foo: version 1
	// ONNX_ATEN
	// graph @main_graph(%x : Float(2, 3)):
	//   %onnx::ATen_const : Long() = onnx::Constant[value={7}]()
	//   %y : Tensor = org.pytorch.aten::ATen[operator="no_such_operator", overload_name=""](%x, _, %onnx::ATen_const, _)
	//   %r : Tensor = org.pytorch.aten::ATen[operator="relu", overload_name=""](%y)
	//   %output : Float(2, 3) = foo::forward(%r)
	//   return (%output)
	// org.pytorch.aten: version 1
	// foo: version 1
	// RAW
	// graph @main_graph(%x : Float(2, 3)):
	//   %k : Tensor = prim::Constant[value=7]()
	//   %n : Tensor = prim::Constant()
	//   %y : Tensor = org.pytorch.aten::no_such_operator(%x, %n, %k, %n)
	//   %r : Tensor = org.pytorch.aten::relu(%y)
	//   %s : Float(2, 3) = foo::forward(%r)
	//   return (%s)
	// org.pytorch.aten: version 1
	// prim: version 1
	// foo: version 1
}

// An operator that ONNX does not have runs in the interpreter by a function of Go.
func Example_kernel() {
	m, err := aton.LoadBytes([]byte(`graph(%x : Float(3)):
  %y : Float(3) = my.domain::Double(%x)
  return (%y)
`), "graph.ir", aton.LoadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	x := tensor.FromFloats(tensor.Float32, []int64{3}, []float64{1, 2, 3})
	verifier := verify.Verifier{Tolerance: verify.DefaultTolerance, Kernels: map[ssa.Kind]interp.Kernel{
		"my.domain::Double": func(o *ssa.Op, operands []interp.Value) ([]interp.Value, error) {
			v := operands[0].Tensor.Float64s()
			for i := range v {
				v[i] *= 2
			}
			return []interp.Value{interp.Of(tensor.FromFloats(tensor.Float32, operands[0].Tensor.Shape, v))}, nil
		},
	}}
	results, err := verifier.Verify(m, verify.DataSet{
		Inputs:  []verify.Named{{Name: "x", Tensor: x}},
		Outputs: []verify.Named{{Name: "y", Tensor: tensor.FromFloats(tensor.Float32, []int64{3}, []float64{2, 4, 7})}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(results[0].Wrong)
	// Output:
	// 1 of 3 elements differ, the first one at [2] is 6, expected 7
}

// A pass of one's own behind the one that makes ONNX of the program.
func ExampleConvertOptions_after() {
	quick, err := passes.FromRules("quick", "a gelu of the quick kind", onnx.RewriteConfig(0),
		rewrite.Rule{Name: "tanh", From: `%y = onnx::Gelu[approximate=$how](%x)`, To: `%y = onnx::Gelu[approximate="tanh"](%x)`,
			Check: func(m *rewrite.Match) string {
				if m.Attr("how").Str() == "tanh" {
					return "it is quick already"
				}
				return ""
			}})
	if err != nil {
		fmt.Println(err)
		return
	}
	exported(`graph(%x : Float(2, 3)):
  %how : str = prim::Constant[value="none"]()
  %y : Float(2, 3) = aten::gelu(%x, %how)
  return (%y)
`, aton.ConvertOptions{
		Passes: []*passes.Pass{quick},
		After:  map[string]string{"lower": "quick"},
	})
	// Output:
	// graph @main_graph(%x : Float(2, 3)):
	//   %output : Float(2, 3) = onnx::Gelu[approximate="tanh"](%x)
	//   return (%output)
}
