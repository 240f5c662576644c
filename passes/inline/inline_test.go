package inline

import (
	"testing"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/passes/passtest"
	"github.com/aton-project/aton/ssa"
)

func dialects() []ssa.Dialect { return append(aten.Dialects(), prim.Dialect{}) }

func TestDemo(t *testing.T) { passtest.Check(t, &Pass, dialects()...) }

func TestRecursion(t *testing.T) {
	m, err := ssa.Parse(`graph(%x : Tensor):
  %f : Function = prim::Constant[name="f"]()
  %y : Tensor = prim::CallFunction(%f, %x)
  return (%y)
graph @f(%x : Tensor):
  %f : Function = prim::Constant[name="f"]()
  %y : Tensor = prim::CallFunction(%f, %x)
  return (%y)`, "t", dialects()...)
	if err != nil {
		t.Fatal(err)
	}
	if err := Run(m).Err(); err == nil {
		t.Error("no error")
	}
}
