package dce

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/passtest"
)

func TestDCE(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"chain": {`
graph(%x : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::neg(%a)
  return (%x)`, `
graph(%x : Tensor):
  return (%x)`},
		"effects stay": {`
graph(%x : Tensor, %s : str):
  %a : Tensor = aten::relu_(%x)
  %b : Tensor = aten::rand(%x)
   = prim::Print(%s)
  %u : Tensor = aten::unknown(%x)
  %o : Tensor = custom::op(%x)
  return (%x)`, `
graph(%x : Tensor, %s : str):
  %a : Tensor = aten::relu_(%x)
   = prim::Print(%s)
  %u : Tensor = aten::unknown(%x)
  %o : Tensor = custom::op(%x)
  return (%x)`},
		"what an effect needs stays": {`
graph(%x : Tensor, %c : bool):
  %v : Tensor = aten::view(%x)
  %m : Tensor = aten::neg(%x)
  %a : Tensor = prim::If(%c)
    block0():
      %w : Tensor = aten::fill_(%v)
      -> (%m)
    block1():
      -> (%x)
  return (%x)`, `
graph(%x : Tensor, %c : bool):
  %v : Tensor = aten::view(%x)
   = prim::If(%c)
    block0():
      %w : Tensor = aten::fill_(%v)
      -> ()
    block1():
      -> ()
  return (%x)`},
		"carried in vain": {`
graph(%x : Tensor, %n : int, %c : bool):
  %y : Tensor = aten::neg(%x)
  %a : Tensor, %b : Tensor = prim::Loop(%n, %c, %x, %y)
    block0(%i : int, %p : Tensor, %q : Tensor):
      %p1 : Tensor = aten::relu(%p)
      %q1 : Tensor = aten::exp(%q)
      -> (%c, %p1, %q1)
  return (%a)`, `
graph(%x : Tensor, %n : int, %c : bool):
  %a : Tensor = prim::Loop(%n, %c, %x)
    block0(%i : int, %p : Tensor):
      %p1 : Tensor = aten::relu(%p)
      -> (%c, %p1)
  return (%a)`},
		"carried for the other and the condition": {`
graph(%x : Tensor, %y : Tensor, %n : int, %c : bool):
  %a : Tensor, %b : Tensor, %d : bool = prim::Loop(%n, %c, %x, %y, %c)
    block0(%i : int, %p : Tensor, %q : Tensor, %r : bool):
      %p1 : Tensor = aten::add(%p, %q)
      %r1 : bool = aten::not(%r)
      -> (%r1, %p1, %q, %r1)
  return (%a)`, `
graph(%x : Tensor, %y : Tensor, %n : int, %c : bool):
  %a : Tensor, %b : Tensor, %d : bool = prim::Loop(%n, %c, %x, %y, %c)
    block0(%i : int, %p : Tensor, %q : Tensor, %r : bool):
      %p1 : Tensor = aten::add(%p, %q)
      %r1 : bool = aten::not(%r)
      -> (%r1, %p1, %q, %r1)
  return (%a)`},
		"scan output of an ONNX loop": {`
graph(%x : Tensor, %n : Tensor, %c : Tensor):
  %a : Tensor, %s : Tensor, %t : Tensor = onnx::Loop(%n, %c, %x)
    block0(%i : Tensor, %k : Tensor, %p : Tensor):
      %q : Tensor = onnx::Relu(%p)
      %u : Tensor = onnx::Exp(%i)
      %v : Tensor = onnx::Neg(%i)
      -> (%k, %q, %u, %v)
  return (%t)`, `
graph(%x : Tensor, %n : Tensor, %c : Tensor):
  %t : Tensor = onnx::Loop(%n, %c)
    block0(%i : Tensor, %k : Tensor):
      %v : Tensor = onnx::Neg(%i)
      -> (%k, %v)
  return (%t)`},
		"dead loop": {`
graph(%x : Tensor, %n : int, %c : bool):
  %a : Tensor = prim::Loop(%n, %c, %x)
    block0(%i : int, %p : Tensor):
      %p1 : Tensor = aten::relu(%p)
      -> (%c, %p1)
  return (%x)`, `
graph(%x : Tensor, %n : int, %c : bool):
  return (%x)`},
	} {
		t.Run(name, func(t *testing.T) {
			set := &passes.Set{Passes: []*passes.Pass{&Pass}}
			got := passtest.Run(t, set, "dce", c.before, true, passtest.Dialects()...)
			if diff := cmp.Diff(passtest.Normal(t, c.after, passtest.Dialects()...), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDemo(t *testing.T) { passtest.Check(t, &Pass, passtest.Dialects()...) }
