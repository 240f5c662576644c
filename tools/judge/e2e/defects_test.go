package e2e

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
)

var callsOfEach = flag.Int("calls", 1, "how many calls TestNoDefects makes of each overload, for each element type")

// callTypes are the element types of tensors that programs have.
var callTypes = []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Int64, tensor.Int32, tensor.Int16, tensor.Int8, tensor.Uint8, tensor.Bool, tensor.Complex64}

// callShapes are shapes of tensors of one call. A size that is a name is dynamic.
var callShapes = [][]string{{""}, {"3"}, {"N"}, {"2,3"}, {"N,3"}, {"3,3"}, {"2,2,4"}, {"2,C,4"}, {"2,2,4,4"}, {"N,C,4,4"}, {"2,2,4,4,4"}, {"2,3", "3"}, {"2,3", "3,2"}, {"2,3", ""}, {"", "3"},
	{"2,2,4,4", "2,2,2,2", "2"}, {"2,2,4", "2,2,2", "2"}, {"2,2,4,4,4", "2,2,2,2,2", "2"}, {"4,4", "4,4", "4"}}

// numbersOfCalls are what arguments of a type are in a call.
var numbersOfCalls = map[string][]string{
	"int": {"0", "1", "2", "-1"}, "float": {"0.5", "1.", "-2.5", "0."}, "bool": {"0", "1"}, "number": {"2", "0.5", "-1"},
}

// randomCall is a program of one operator on tensors of an element type, whose shapes and other arguments are drawn; "" if nothing is known of a
// parameter's type.
func randomCall(s *ssa.Schema, d tensor.DType, r *rand.Rand) string {
	pick := func(of []string) string { return of[r.IntN(len(of))] }
	shapes := callShapes[r.IntN(len(callShapes))]
	run := r.IntN(4) == 0        // numbers are inputs
	everything := r.IntN(3) == 0 // optional arguments are given
	indexed := r.IntN(3) > 0     // indices are integers, whatever the element type is
	indexType := "Long"          // of indices
	if r.IntN(4) == 0 {
		indexType = "Int"
	}
	var params, lines, args []string
	tensors := 0
	tensorOf := func(name string) string {
		shape := shapes[min(tensors, len(shapes)-1)]
		typ := strings.TrimSuffix(strings.TrimPrefix(ssa.Tensor(d).String(), ""), "()")
		switch {
		case strings.Contains(name, "mask") || name == "condition":
			typ = "Bool"
		case indexed && (strings.Contains(name, "ind") || name == "offsets" || name == "lengths" || name == "target" || strings.Contains(name, "bound")):
			typ = indexType
		}
		v := fmt.Sprintf("%%t%d", len(params))
		params, tensors = append(params, fmt.Sprintf("%s : %s(%s)", v, typ, shape)), tensors+1
		return v
	}
	constant := func(typ, value string) string {
		v := fmt.Sprintf("%%c%d", len(lines))
		if value != "" {
			value = "[value=" + value + "]"
		}
		lines = append(lines, fmt.Sprintf("  %s : %s = prim::Constant%s()\n", v, typ, value))
		return v
	}
	list := func(elem string, es []string) string {
		v := fmt.Sprintf("%%l%d", len(lines))
		lines = append(lines, fmt.Sprintf("  %s : %s[] = prim::ListConstruct(%s)\n", v, elem, strings.Join(es, ", ")))
		return v
	}
	number := func(typ string) string {
		if run {
			v := fmt.Sprintf("%%n%d", len(params))
			params = append(params, v+" : "+strings.Replace(typ, "number", "float", 1))
			return v
		}
		value := pick(numbersOfCalls[typ])
		if typ == "number" {
			typ = "int"
			if strings.Contains(value, ".") {
				typ = "float"
			}
		}
		return constant(typ, value)
	}
	for _, a := range s.Args {
		typ := a.Type
		o, optional := typ.(*ssa.OptionalType)
		if optional {
			if !everything && (a.HasDefault || r.IntN(2) == 0) {
				args = append(args, constant("NoneType", ""))
				continue
			}
			typ = o.Elem
		}
		l, isList := typ.(*ssa.ListType)
		switch {
		case a.HasDefault && !optional && (!everything || isList):
			value := a.Default.String()
			name := a.Default.Type().String()
			if a.Default.IsNone() {
				value = ""
			}
			if a.Default.Kind == ssa.ListLit && len(a.Default.Elems) == 0 {
				name = typ.String()
			}
			args = append(args, constant(name, value))
		case a.Name == "dtype" || a.Name == "output_dtype":
			args = append(args, constant("int", fmt.Sprint(callTypes[r.IntN(len(callTypes))].Code())))
		case a.Name == "layout" || a.Name == "device" || a.Name == "pin_memory" || a.Name == "memory_format" || a.Name == "generator":
			if !optional {
				return ""
			}
			args = append(args, constant("NoneType", ""))
		case ssa.AsTensor(typ) != nil:
			args = append(args, tensorOf(a.Name))
		case isList && ssa.AsTensor(l.Elem) != nil:
			args = append(args, list("Tensor", []string{tensorOf(a.Name), tensorOf(a.Name)}))
		case isList && numbersOfCalls[l.Elem.String()] != nil:
			n := max(a.Size, 1+r.IntN(2))
			var es []string
			for range n {
				es = append(es, number(l.Elem.String()))
			}
			args = append(args, list(l.Elem.String(), es))
		case numbersOfCalls[typ.String()] != nil:
			args = append(args, number(typ.String()))
		case typ == ssa.StrType:
			args = append(args, constant("str", `"mean"`))
		default:
			return ""
		}
	}
	var results, typed []string
	for i, ret := range s.Returns {
		v := fmt.Sprintf("%%y%d", i)
		if _, ok := ret.Type.(*ssa.VarType); ok {
			return ""
		}
		results, typed = append(results, v), append(typed, v+" : "+ret.Type.String())
	}
	if tensors == 0 || len(results) == 0 {
		return ""
	}
	return fmt.Sprintf("graph(%s):\n%s  %s = %s(%s)\n  return (%s)\n", strings.Join(params, ", "), strings.Join(lines, ""), strings.Join(typed, ", "), s.Name, strings.Join(args, ", "),
		strings.Join(results, ", "))
}

// defects are the messages of an error that are about aton itself, or about operators of ONNX where types of the program are wrong.
func defects(err error) []string {
	var list *diag.List
	if !errors.As(err, &list) {
		if strings.Contains(err.Error(), "internal error") {
			return []string{err.Error()}
		}
		return nil
	}
	var out []string
	for _, d := range list.Items {
		if slices.Contains([]string{"invalid-onnx", "internal", "verify"}, d.ID) || strings.Contains(d.Message, "which ONNX does not have") ||
			d.ID == "unsupported-type" && (strings.Contains(d.Message, "onnx::") || strings.HasPrefix(d.Op, "onnx::")) {
			out = append(out, d.ID+": "+d.Message)
		}
	}
	return out
}

// TestNoDefects converts calls of every operator on tensors of every element type: what is not converted is refused for a reason of the program.
func TestNoDefects(t *testing.T) {
	calls, converted, refused := 0, 0, 0
	reasons := map[string]int{}
	for _, family := range aten.Families() {
		for _, k := range family {
			for _, s := range aten.Schemas(k) {
				for _, d := range callTypes {
					for i := range *callsOfEach {
						h := fnv.New64a()
						fmt.Fprintf(h, "%s %v %d", s, d, i)
						text := randomCall(s, d, rand.New(rand.NewPCG(h.Sum64(), 0)))
						if text == "" {
							continue
						}
						calls++
						m, err := aton.LoadBytes([]byte(text), "graph.ir", aton.LoadOptions{})
						if err == nil {
							var b bytes.Buffer
							err = aton.ExportTo(&b, m, aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Opset: 20}})
						}
						if err == nil {
							converted++
							continue
						}
						refused++
						for _, why := range defects(err) {
							t.Errorf("%s\n%s", why, text)
						}
						for _, b := range diag.Blockers(err) {
							reasons[b.ID]++
						}
					}
				}
			}
		}
	}
	t.Logf("%d calls: %d converted, %d refused: %v", calls, converted, refused, reasons)
}
