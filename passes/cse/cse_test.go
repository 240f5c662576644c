package cse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/passtest"
	"github.com/aton-project/aton/ssa"
)

func TestCSE(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"attributes and constants": {`
graph(%x : Tensor):
  %a : float = prim::Constant[value=1.]()
  %b : float = prim::Constant[value=1.]()
  %c : int = prim::Constant[value=1]()
  %d : Tensor = onnx::Elu[alpha=1., beta=2](%x)
  %e : Tensor = onnx::Elu[beta=2, alpha=1.](%x)
  %f : Tensor = onnx::Elu[alpha=2., beta=2](%x)
  %r : Tensor = onnx::F(%a, %b, %c, %d, %e, %f)
  return (%r)`, `
graph(%x : Tensor):
  %a : float = prim::Constant[value=1.]()
  %c : int = prim::Constant[value=1]()
  %d : Tensor = onnx::Elu[alpha=1., beta=2](%x)
  %f : Tensor = onnx::Elu[alpha=2., beta=2](%x)
  %r : Tensor = onnx::F(%a, %a, %c, %d, %d, %f)
  return (%r)`},
		"scopes": {`
graph(%x : Tensor, %c : bool):
  %a : Tensor = aten::relu(%x)
  %r : Tensor = prim::If(%c)
    block0():
      %b : Tensor = aten::relu(%x)
      %d : Tensor = aten::neg(%b)
      -> (%d)
    block1():
      %e : Tensor = aten::neg(%a)
      -> (%e)
  %f : Tensor = aten::neg(%a)
  return (%r, %f)`, `
graph(%x : Tensor, %c : bool):
  %a : Tensor = aten::relu(%x)
  %r : Tensor = prim::If(%c)
    block0():
      %d : Tensor = aten::neg(%a)
      -> (%d)
    block1():
      %e : Tensor = aten::neg(%a)
      -> (%e)
  %f : Tensor = aten::neg(%a)
  return (%r, %f)`},
		"random is never equal": {`
graph(%x : Tensor):
  %a : Tensor = aten::rand(%x)
  %b : Tensor = aten::rand(%x)
  return (%a, %b)`, `
graph(%x : Tensor):
  %a : Tensor = aten::rand(%x)
  %b : Tensor = aten::rand(%x)
  return (%a, %b)`},
		"writes keep tensors and lists apart": {`
graph(%x : Tensor, %i : int):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %c : Tensor = aten::relu_(%b)
  %m : int[] = prim::ListConstruct(%i)
  %n : int[] = prim::ListConstruct(%i)
  %j : int = aten::neg(%i)
  %k : int = aten::neg(%i)
  return (%a, %c, %m, %n, %j, %k)`, `
graph(%x : Tensor, %i : int):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %c : Tensor = aten::relu_(%b)
  %m : int[] = prim::ListConstruct(%i)
  %n : int[] = prim::ListConstruct(%i)
  %j : int = aten::neg(%i)
  return (%a, %c, %m, %n, %j, %j)`},
		"lists are alike when nothing writes": {`
graph(%i : int):
  %m : int[] = prim::ListConstruct(%i)
  %n : int[] = prim::ListConstruct(%i)
  return (%m, %n)`, `
graph(%i : int):
  %m : int[] = prim::ListConstruct(%i)
  return (%m, %m)`},
		"small tensors by element, zeros by sign": {`
graph():
  %a : Float(2) = prim::Constant[value= 1  2 [ CPUFloatType{2} ]]()
  %b : Float(2) = prim::Constant[value= 1  2 [ CPUFloatType{2} ]]()
  %c : Float(2) = prim::Constant[value= 1  3 [ CPUFloatType{2} ]]()
  %p : float = prim::Constant[value=0.]()
  %q : float = prim::Constant[value=-0.]()
  return (%a, %b, %c, %p, %q)`, `
graph():
  %a : Float(2) = prim::Constant[value= 1  2 [ CPUFloatType{2} ]]()
  %c : Float(2) = prim::Constant[value= 1  3 [ CPUFloatType{2} ]]()
  %p : float = prim::Constant[value=0.]()
  %q : float = prim::Constant[value=-0.]()
  return (%a, %a, %c, %p, %q)`},
		"a name survives": {`
graph(%x : Tensor):
  %0 : Tensor = aten::relu(%x)
  %out : Tensor = aten::relu(%x)
  return (%0, %out)`, `
graph(%x : Tensor):
  %out : Tensor = aten::relu(%x)
  return (%out, %out)`},
	} {
		t.Run(name, func(t *testing.T) {
			set := &passes.Set{Passes: []*passes.Pass{&Pass}}
			got := passtest.Run(t, set, "cse", c.before, true, passtest.Dialects()...)
			if diff := cmp.Diff(passtest.Normal(t, c.after, passtest.Dialects()...), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDemo(t *testing.T) { passtest.Check(t, &Pass, passtest.Dialects()...) }

// BenchmarkCSE has 100,000 ops, a third of them equal to earlier ones.
func BenchmarkCSE(b *testing.B) {
	var text strings.Builder
	text.WriteString("graph(%x : Tensor):\n  %v0 : Tensor = aten::relu(%x)\n")
	for i := 1; i < 100_000; i++ {
		fmt.Fprintf(&text, "  %%v%d : Tensor = aten::add(%%v%d, %%v%d)\n", i, i/3, i/2)
	}
	text.WriteString("  return (%v99999)\n")
	set := &passes.Set{Passes: []*passes.Pass{&Pass}}
	p, err := set.Parse("cse")
	if err != nil {
		b.Fatal(err)
	}
	for range b.N {
		b.StopTimer()
		m, err := ssa.Parse(text.String(), "bench", passtest.Dialects()...)
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if _, err := p.Run(m, nil); err != nil {
			b.Fatal(err)
		}
	}
}
