package surgery_test

import (
	"strings"
	"testing"

	"github.com/aton-project/aton/backend/surgery"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
)

// graphOf is a module at an opset with these lines, of an input x and a result y.
func graphOf(t *testing.T, input, lines string) *ssa.Module {
	t.Helper()
	text := "module {\n  opsets = {\"\" : 17}\n  outputs = {\"net\" : [\"y\"]}\n}\ngraph @net(" + input + "):\n"
	for line := range strings.SplitSeq(lines, ";") {
		text += "  " + strings.TrimSpace(line) + "\n"
	}
	m, err := ssa.Parse(text+"  return (%y)\n", "net.ir", all.Dialects()...)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return m
}

// ints is the line of a constant vector of integers.
func ints(name, elements, n string) string {
	return "%" + name + " : Long(" + n + ") = onnx::Constant[value= " + elements + " [ CPULongType{" + n + "} ]]();"
}

// What has the size as a number computes it, and what cannot be followed is an error that names the operator.
func TestSetAxes(t *testing.T) {
	for _, c := range []struct {
		name, input, lines string
		axes               map[int]string
		want               string // in the graph, or in the error, which begins with !
	}{
		{"flatten", "%x : Float(2, 3, 4)", ints("s", "2  12", "2") + "%y : Float(2, 12) = onnx::Reshape(%x, %s)", map[int]string{0: "N"}, "%y : Float(N, 12)"},
		{"a hidden size beside -1", "%x : Float(2, 3, 4)", ints("s", "2  -1", "2") + "%y : Float(2, 12) = onnx::Reshape(%x, %s)", map[int]string{0: "N"}, "[value= -1  12 "},
		{"heads", "%x : Float(2, 5, 12)", ints("s", "2  5  3  4", "4") + "%y : Float(2, 5, 3, 4) = onnx::Reshape(%x, %s)", map[int]string{0: "N", 1: "T"}, "%y : Float(N, T, 3, 4)"},
		{"two axes in one", "%x : Float(2, 5, 12)", ints("s", "10  12", "2") + "%y : Float(10, 12) = onnx::Reshape(%x, %s)", map[int]string{0: "N", 1: "T"}, "N*T, 12)"},
		{"the outermost grows", "%x : Float(2, 12)", ints("s", "6  4", "2") + "%y : Float(6, 4) = onnx::Reshape(%x, %s)", map[int]string{0: "N"}, "%y : Float(3*N, 4)"},
		{"an axis of size 1", "%x : Float(1, 12)", ints("s", "1  3  4", "3") + "%y : Float(1, 3, 4) = onnx::Reshape(%x, %s)", map[int]string{0: "N"}, "%y : Float(N, 3, 4)"},
		{"a Reshape that is a Transpose", "%x : Float(6, 2, 1, 5)", ints("s", "6  1  10", "3") + "%y : Float(6, 1, 10) = onnx::Reshape(%x, %s)", map[int]string{2: "N"}, "!through Reshape y: there is no telling"},
		{"an inner axis", "%x : Float(12, 2)", ints("s", "6  4", "2") + "%y : Float(6, 4) = onnx::Reshape(%x, %s)", map[int]string{1: "N"}, "%y : Float(6, 2*N)"},
		{"an axis in the middle", "%x : Float(3, 2, 4)", ints("s", "6  4", "2") + "%y : Float(6, 4) = onnx::Reshape(%x, %s)", map[int]string{1: "N"}, "%y : Float(3*N, 4)"},
		{"an axis in the middle of a group", "%x : Float(3, 2, 5)", ints("s", "2  15", "2") + "%y : Float(2, 15) = onnx::Reshape(%x, %s)", map[int]string{1: "N"}, "!through Reshape y"},
		{"there and back", "%x : Float(2, 4, 3)", ints("s", "8  3", "2") + ints("r", "2  4  3", "3") + "%f : Float(8, 3) = onnx::Reshape(%x, %s); %g : Float(8, 3) = onnx::Relu(%f); %y : Float(2, 4, 3) = onnx::Reshape(%g, %r)", map[int]string{0: "N"}, "%y : Float(N, 4, 3)"},
		{"there and back by the inner axis", "%x : Float(4, 1, 3)", ints("s", "4  3", "2") + ints("r", "4  1  3", "3") + "%f : Float(4, 3) = onnx::Reshape(%x, %s); %w : Float(3, 3) = onnx::Constant[value= 1  0  0  0  1  0  0  0  1 [ CPUFloatType{3,3} ]](); %g : Float(4, 3) = onnx::MatMul(%f, %w); %y : Float(4, 1, 3) = onnx::Reshape(%g, %r)", map[int]string{1: "N"}, "%y : Float(4, N, 3)"},
		{"two readings that both run", "%x : Float(4, 1, 3)", ints("s", "4  3", "2") + "%y : Float(4, 3) = onnx::Reshape(%x, %s)", map[int]string{1: "N"}, "!in two ways"},
		{"not divisible", "%x : Float(2, 12)", ints("s", "3  8", "2") + "%y : Float(3, 8) = onnx::Reshape(%x, %s)", map[int]string{0: "N"}, "!through Reshape y"},
		{"equal rows", "%x : Float(2, 3)", "%c : Float(2, 3) = onnx::Constant[value= 1  2  3  1  2  3 [ CPUFloatType{2,3} ]](); %y : Float(2, 3) = onnx::Add(%x, %c)", map[int]string{0: "N"}, "[value= 1  2  3 [ CPUFloatType{1,3} ]]"},
		{"other rows", "%x : Float(2, 3)", "%c : Float(2, 3) = onnx::Constant[value= 1  2  3  1  2  4 [ CPUFloatType{2,3} ]](); %y : Float(2, 3) = onnx::Add(%x, %c)", map[int]string{0: "N"}, "!through Add y"},
		{"expand", "%x : Float(2, 1)", ints("s", "2  3", "2") + "%y : Float(2, 3) = onnx::Expand(%x, %s)", map[int]string{0: "N"}, "%y : Float(N, 3)"},
		{"a token", "%x : Float(1, 4, 2)", "%c : Float(1, 1, 2) = onnx::Constant[value= 7  8 [ CPUFloatType{1,1,2} ]](); %y : Float(1, 5, 2) = onnx::Concat[axis=1](%c, %x)", map[int]string{0: "N"}, "onnx::Expand"},
		{"up to the end", "%x : Float(4, 3)", ints("a", "0", "1") + ints("b", "4", "1") + "%y : Float(4, 3) = onnx::Slice(%x, %a, %b)", map[int]string{0: "N"}, "9223372036854775807"},
		{"a part", "%x : Float(4, 3)", ints("a", "0", "1") + ints("b", "2", "1") + "%y : Float(2, 3) = onnx::Slice(%x, %a, %b)", map[int]string{0: "N"}, "!through Slice y: it takes a part"},
		{"the first element", "%x : Float(4, 3)", "%i : Long() = onnx::Constant[value={0}](); %y : Float(3) = onnx::Gather[axis=0](%x, %i)", map[int]string{0: "T"}, "%y : Float(3)"},
		{"the only element", "%x : Float(1, 3)", "%i : Long() = onnx::Constant[value={0}](); %y : Float(3) = onnx::Gather[axis=0](%x, %i)", map[int]string{0: "N"}, "!through Gather y"},
		{"the last element by number", "%x : Float(4, 3)", "%i : Long() = onnx::Constant[value={3}](); %y : Float(3) = onnx::Gather[axis=0](%x, %i)", map[int]string{0: "N"}, "!through Gather y"},
		{"squeeze", "%x : Float(1, 3)", ints("a", "0", "1") + "%y : Float(3) = onnx::Squeeze(%x, %a)", map[int]string{0: "N"}, "!through Squeeze y: it removes axis 0"},
		{"split", "%x : Float(4, 3)", ints("a", "2  2", "2") + "%y : Float(2, 3), %z : Float(2, 3) = onnx::Split[axis=0](%x, %a)", map[int]string{0: "N"}, "!through Split y"},
		{"contraction", "%x : Float(2, 3)", "%c : Float(3, 2) = onnx::Constant[value= 1  2  3  4  5  6 [ CPUFloatType{3,2} ]](); %y : Float(2, 2) = onnx::MatMul(%x, %c)", map[int]string{1: "K"}, "!through MatMul y"},
		{"a mean that is written as a sum", "%x : Float(4, 3)", ints("a", "0", "1") + "%s : Float(1, 3) = onnx::ReduceSum(%x, %a); %n : Float() = onnx::Constant[value={4.0}](); %y : Float(1, 3) = onnx::Div(%s, %n)", map[int]string{0: "N"}, "!through Div y: it scales a sum"},
		{"weights of channels", "%x : Float(1, 3, 7, 7), %w : Float(4, 3, 1, 1)", "%y : Float(1, 4, 7, 7) = onnx::Conv(%x, %w)", map[int]string{1: "C"}, "!through Conv y: it has a number for each element along axis 1"},
		{"a scale along the last axes", "%x : Float(2, 3, 4), %w : Float(4)", "%y : Float(2, 3, 4) = onnx::LayerNormalization(%x, %w)", map[int]string{2: "C"}, "!through LayerNormalization y: it has a number for each element along axis 2"},
		{"a scale along other axes", "%x : Float(2, 3, 4), %w : Float(4)", "%y : Float(2, 3, 4) = onnx::LayerNormalization(%x, %w)", map[int]string{0: "N"}, "Float(N, 3, 4)"},
		{"a window over all", "%x : Float(1, 3, 7, 7)", "%y : Float(1, 3, 1, 1) = onnx::AveragePool[kernel_shape=[7, 7]](%x)", map[int]string{2: "H", 3: "W"}, "!through AveragePool y: its window is all of axis 2"},
		{"another domain", "%x : Float(2, 3)", "%y : Float(2, 3) = my::Op(%x)", map[int]string{0: "N"}, "!through Op y"},
		{"no such axis", "%x : Float(2, 3)", "%y : Float(2, 3) = onnx::Relu(%x)", map[int]string{2: "N"}, "!has 2 axes"},
		{"no name", "%x : Float(2, 3)", "%y : Float(2, 3) = onnx::Relu(%x)", map[int]string{0: "2*N"}, "!is no name"},
		{"two sizes", "%x : Float(2, 3)", "%y : Float(2, 3) = onnx::Relu(%x)", map[int]string{0: "N", 1: "N"}, "!N would be of size 2 and of size 3"},
		{"dynamic already", "%x : Float(M, 3)", "%y : Float(M, 3) = onnx::Relu(%x)", map[int]string{0: "N"}, "!dynamic already"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := graphOf(t, c.input, c.lines)
			before := m.Main().String()
			err := surgery.SetAxes(m, map[string]map[int]string{"x": c.axes})
			if want, refused := strings.CutPrefix(c.want, "!"); refused {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %v, not %s\n%s", err, want, m.Main())
				}
				if m.Main().String() != before {
					t.Errorf("the refused module is changed\n%s", m.Main())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := m.Main().String(); !strings.Contains(got, c.want) {
				t.Errorf("%s is missing in\n%s", c.want, got)
			}
			if err := ssa.Verify(m); err != nil {
				t.Error(err)
			}
		})
	}
	if err := surgery.SetAxes(graphOf(t, "%x : Float(2, 3)", "%y : Float(2, 3) = onnx::Relu(%x)"), map[string]map[int]string{"q": {0: "N"}}); err == nil {
		t.Error("there is no input q")
	}
}
