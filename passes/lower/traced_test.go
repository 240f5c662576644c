package lower_test

import (
	"testing"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/passes/lower"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/google/go-cmp/cmp"
)

// A trace has the sizes of its example as numbers. Those that stand where the axis is dynamic are told.
func TestTraced(t *testing.T) {
	for _, test := range []struct {
		name, graph string
		want        []string
	}{
		{"a size in view", `graph(%x : Float(N, 3)):
  %two : int = prim::Constant[value=2]()
  %rest : int = prim::Constant[value=-1]()
  %sizes : int[] = prim::ListConstruct(%two, %rest)
  %y : Float(2, M) = aten::view(%x, %sizes)
  return (%y)`,
			[]string{"traced-size: the trace has the size 2 built in where N is, which was 2 in the example: for other sizes the result is not that of the program"}},
		{"another size in view", `graph(%x : Float(N, 3)):
  %three : int = prim::Constant[value=3]()
  %rest : int = prim::Constant[value=-1]()
  %sizes : int[] = prim::ListConstruct(%three, %rest)
  %y : Float(3, N) = aten::view(%x, %sizes)
  return (%y)`, nil},
		{"all elements of the example", `graph(%x : Float(N, 3)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %a : Float(3) = aten::select(%x, %0, %0)
  %b : Float(3) = aten::select(%x, %0, %1)
  %y : Float(3) = aten::add(%a, %b, %1)
  return (%y)`,
			[]string{"traced-size: the trace takes the elements 0 to 1 of N one by one, which are all that the example had: further ones are left out"}},
		{"one element", `graph(%x : Float(N, 3)):
  %0 : int = prim::Constant[value=0]()
  %y : Float(3) = aten::select(%x, %0, %0)
  return (%y)`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := ssa.Parse(test.graph, test.name, append(aten.Dialects(), prim.Dialect{}, onnx.Dialect{})...)
			if err != nil {
				t.Fatal(err)
			}
			m.Recorded = map[string]int64{"N": 2}
			var got []string
			err = lower.Run(m, lower.Options{Opset: 20, Warn: func(d diag.Diagnostic) {
				if d.ID == "traced-size" {
					got = append(got, d.ID+": "+d.Message)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("warnings, wanted (-) and given (+):\n%s", diff)
			}
		})
	}
}
