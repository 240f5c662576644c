package typecheck_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/typecheck"
	"github.com/aton-project/aton/ssa"
)

func load(t testing.TB, text string, opset int) *ssa.Module {
	t.Helper()
	m, err := ssa.Parse(text, "test", onnx.Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	m.Opsets = map[string]int{"": opset}
	return m
}

func TestModule(t *testing.T) {
	for _, c := range []struct {
		name, text string
		opset      int
		want       string // of all messages, in order; empty if there is none
	}{
		{"right", `graph(%x : Float(N, 3)):
  %y : Float(N, 3) = onnx::Relu(%x)
  return (%y)`, 17, ""},
		{"old encoding", `graph(%x : Float(2, 3)):
  %y : Float(2) = onnx::ReduceMax[axes=[1], keepdims=0](%x)
  return (%y)`, 13, ""},
		{"softmax that flattens", `graph(%x : Float(2, 3, 4)):
  %y : Float(2, 3, 4) = onnx::Softmax[axis=1](%x)
  return (%y)`, 11, ""},
		{"stated shape", `graph(%x : Float(2, 3)):
  %y : Float(2, 4) = onnx::Relu(%x)
  return (%y)`, 17, "onnx::Relu: output 0 is stated to be Float(2, 4), and it is Float(2, 3): axis 1 differs"},
		{"stated element type", `graph(%x : Float(2, 3)):
  %y : Long(2, 3) = onnx::Relu(%x)
  return (%y)`, 17, "onnx::Relu: output 0 is stated to be Long(2, 3), and it is Float(2, 3): the element types differ"},
		{"one variable, two types: only the root", `graph(%x : Float(3), %i : Long(3)):
  %y : Long(3) = onnx::Add(%x, %i)
  %z : Float(3) = onnx::Relu(%y)
  return (%z)`, 17, "onnx::Add: input B of onnx::Add-14 has elements of type Long, and another parameter of type T has Float"},
		{"a type that the opset does not have", `graph(%x : Short(3)):
  %y : Short(3) = onnx::Add(%x, %x)
  return (%y)`, 13, "onnx::Add: input A of onnx::Add-13 cannot be of type Short(3)"},
		{"sizes that cannot be", `graph(%x : Float(2, 3), %w : Float(4, 5)):
  %y : Float(2, 5) = onnx::MatMul(%x, %w)
  %z : Float(9, 9) = onnx::Relu(%y)
  return (%z)`, 17, "onnx::MatMul: shapes [2, 3] and [4, 5] do not fit"},
		{"inside of a branch", `graph(%x : Float(2), %c : Bool()):
  %y : Float(2) = onnx::If(%c)
    block0():
      %a : Float(3) = onnx::Relu(%x)
      -> (%a)
    block1():
      -> (%x)
  return (%y)`, 17, "onnx::Relu: output 0 is stated to be Float(3), and it is Float(2): axis 0 differs"},
		{"an unknown operator says nothing", `graph(%x : Float(2)):
  %y : Long(7) = my::Op(%x)
  return (%y)`, 17, ""},
	} {
		m := load(t, c.text, c.opset)
		before := ssa.Print(m)
		var got []string
		for _, d := range typecheck.Module(m).Items {
			got = append(got, d.Op+": "+d.Message)
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
		if ssa.Print(m) != before {
			t.Errorf("%s: the module was changed", c.name)
		}
	}
}

// A shape that only sizes which operators compute contradict is mended, with a warning; all else stays an error.
func TestMend(t *testing.T) {
	const computed = `graph(%x : Float(N, 2, 4)):
  %shape : Long(3) = onnx::Shape(%x)
  %zero : Long(1) = onnx::Constant[value={0}]()
  %one : Long(1) = onnx::Constant[value={1}]()
  %n : Long(1) = onnx::Slice(%shape, %zero, %one)
  %eight : Long(1) = onnx::Constant[value={8}]()
  %new : Long(2) = onnx::Concat[axis=0](%n, %eight)
  %y : TYPE = onnx::Reshape(%x, %new)
  return (%y)`
	for _, c := range []struct{ name, text, want, is string }{
		{"the rank", strings.Replace(computed, "TYPE", "Float(1, 2, N)", 1),
			"warning: onnx::Reshape: output 0 is stated to be Float(1, 2, N), and it is Float(N, 8): the ranks differ; the shape that is computed counts", "Float(N, 8)"},
		{"a size", strings.Replace(computed, "TYPE", "Float(N, 7)", 1),
			"warning: onnx::Reshape: output 0 is stated to be Float(N, 7), and it is Float(N, 8): axis 1 differs; the shape that is computed counts", "Float(N, 8)"},
		{"nothing", strings.Replace(computed, "TYPE", "Float(M, 8)", 1), "", "Float(M, 8)"},
		{"the element type", strings.Replace(computed, "TYPE", "Long(N, 8)", 1),
			"onnx::Reshape: output 0 is stated to be Long(N, 8), and it is Float(N, 8): the element types differ; correct what the file states of it, or leave that out", "Long(N, 8)"},
		{"what everybody sees", `graph(%x : Float(2, 3)):
  %y : Float(2, 4) = onnx::Relu(%x)
  return (%y)`, "onnx::Relu: output 0 is stated to be Float(2, 4), and it is Float(2, 3): axis 1 differs; correct what the file states of it, or leave that out", "Float(2, 4)"},
	} {
		m := load(t, c.text, 17)
		list := typecheck.Mend(m, false)
		var got []string
		list.Table = nil
		for _, d := range list.Items {
			got = append(got, list.Format(d))
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%s: %q, want %q", c.name, s, c.want)
		}
		if is := m.Main().Body.Returns()[0].Type.String(); is != c.is {
			t.Errorf("%s: the type is %s, want %s", c.name, is, c.is)
		}
	}
}

// BenchmarkModule checks graphs of two sizes: ns/node must not grow.
func BenchmarkModule(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		var text strings.Builder
		text.WriteString("graph(%x0 : Float(N, 16), %w : Float(16, 16)):\n")
		for i := range n / 2 {
			fmt.Fprintf(&text, "  %%m%d : Float(N, 16) = onnx::MatMul(%%x%d, %%w)\n  %%x%d : Float(N, 16) = onnx::Relu(%%m%d)\n", i, i, i+1, i)
		}
		fmt.Fprintf(&text, "  return (%%x%d)\n", n/2)
		m := load(b, text.String(), 17)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				if err := typecheck.Module(m).Err(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
		})
	}
}
