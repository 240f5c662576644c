package aton_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/ssa"
)

const counting = `graph(%x : Float(2)):
  %1 : int = prim::Constant[value=1]()
  %3 : int = prim::Constant[value=3]()
  %true : bool = prim::Constant[value=1]()
  %count : Long() = prim::Constant[value={3}]()
  %a : str = prim::Constant[value="a"]()
  %b : str = prim::Constant[value="b"]()
  %n : Tensor = aten::add_(%count, %1, %1)
  %y : Tensor = aten::mul(%x, %n)
  %z : Tensor = prim::Loop(%3, %true, %y)
    block0(%i : int, %c : Tensor):
      %t : Tensor = aten::tanh(%c)
      %d : Tensor = aten::add(%t, %x, %1)
      -> (%true, %d)
  %l : Tensor[] = prim::ListConstruct(%y, %z)
  %p : (Tensor, Tensor[]) = prim::TupleConstruct(%z, %l)
  return (%p)
`

func lowered(t *testing.T, o aton.Options) (*ssa.Module, error) {
	t.Helper()
	m, err := aton.LoadBytes([]byte(counting), "counting.ir", o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = aton.Lower(m, o)
	return m, err
}

// TestState: state that the program changes is lost, is a further output, or refused.
func TestState(t *testing.T) {
	for state, want := range map[string]string{"": "0,1.0,1.1", "drop": "0,1.0,1.1", "outputs": "0,1.0,1.1,count"} {
		m, err := lowered(t, aton.Options{State: state})
		if err != nil {
			t.Fatal(err)
		}
		if have := strings.Join(m.Main().OutputNames, ","); have != want {
			t.Errorf("state %q: outputs %s, want %s", state, have, want)
		}
		tree := m.GetMetadata("aton.outputs")
		if tree != `{"tuple":["0",{"list":["1.0","1.1"]}]}` {
			t.Errorf("the tree of the outputs is %s", tree)
		}
	}
	if _, err := lowered(t, aton.Options{State: "refuse"}); err == nil || !strings.Contains(err.Error(), "count is changed by the model") {
		t.Errorf("refuse: %v", err)
	}
}

// TestUnroll: a loop of a known number of iterations stays one unless it is asked for.
func TestUnroll(t *testing.T) {
	for unroll, loops := range map[int]int{0: 1, 2: 1, 3: 0} {
		m, err := lowered(t, aton.Options{Unroll: unroll})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := ssa.Fprint(&b, m, ssa.PrintOptions{}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), "= onnx::Loop"); n != loops {
			t.Errorf("unroll %d leaves %d loops, want %d", unroll, n, loops)
		}
	}
}
