package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/ssa/tensor"
)

// emptyPrograms have tensors whose sizes are 0 for some inputs only, which random programs found wrong. Each is run with x of
// shape [n, 3], counted up from 1, and gives what want says for n.
var emptyPrograms = []struct {
	name, graph string
	want        map[int64][]float64
}{
	{"split of nothing has one part, chunk all that it is asked for", `
graph(%x : Float(N, 3)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %3 : int = prim::Constant[value=3]()
  %m3 : int = prim::Constant[value=-3]()
  %inner : Tensor = aten::slice(%x, %0, %3, %m3, %1)
  %s : Tensor[] = aten::split(%inner, %2, %0)
  %parts : int = aten::len(%s)
  %c : Tensor[] = aten::chunk(%inner, %2, %0)
  %chunks : int = aten::len(%c)
  %joined : Tensor = aten::cat(%c, %0)
  %rows : int = aten::size(%joined, %0)
  %l : int[] = prim::ListConstruct(%parts, %chunks, %rows)
  %n : NoneType = prim::Constant()
  %f : bool = prim::Constant[value=0]()
  %y : Tensor = aten::tensor(%l, %n, %n, %f)
  return (%y)`, map[int64][]float64{2: {1, 2, 0}, 6: {1, 2, 0}, 7: {1, 1, 1}, 9: {2, 2, 3}}},
	{"a reshape to no columns", `
graph(%x : Float(N, 3)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %e : Tensor = aten::slice(%x, %1, %0, %0, %1)
  %d : Tensor = aten::diagonal(%e, %0, %0, %1)
  %s : int = aten::size(%d, %0)
  %n : NoneType = prim::Constant()
  %f : bool = prim::Constant[value=0]()
  %y : Tensor = aten::tensor(%s, %n, %n, %f)
  return (%y)`, map[int64][]float64{1: {0}, 4: {0}}},
	{"a reshape to rows that may be none", `
graph(%x : Float(N, 3)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %3 : int = prim::Constant[value=3]()
  %m1 : int = prim::Constant[value=-1]()
  %e : Tensor = aten::slice(%x, %0, %2, %m1, %1)
  %rows : int = aten::size(%e, %0)
  %shape : int[] = prim::ListConstruct(%3, %rows)
  %t : Tensor = aten::reshape(%e, %shape)
  %dims : int[] = prim::ListConstruct(%1)
  %f : bool = prim::Constant[value=0]()
  %n : NoneType = prim::Constant()
  %y : Tensor = aten::sum(%t, %dims, %f, %n)
  return (%y)`, map[int64][]float64{2: {0, 0, 0}, 3: {0, 0, 0}, 4: {7, 8, 9}}},
	{"a shape of unknown rank", `
graph(%x : Float(N, 3)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %5 : int = prim::Constant[value=5]()
  %m1 : int = prim::Constant[value=-1]()
  %n : NoneType = prim::Constant()
  %s : Tensor = aten::sum(%x, %n)
  %g : Tensor = aten::gt(%s, %5)
  %c : bool = aten::Bool(%g)
  %v : Tensor = prim::If(%c)
    block0():
      -> (%x)
    block1():
      %u : Tensor = aten::unsqueeze(%x, %0)
      %e : Tensor = aten::slice(%u, %1, %0, %0, %1)
      -> (%e)
  %l : int[] = prim::ListConstruct(%m1)
  %w : Tensor = aten::view(%v, %l)
  %q : Tensor = aten::neg_(%w)
  %y : Tensor = aten::neg(%x)
  return (%y)`, map[int64][]float64{1: {1, 2, 3}}},
}

func TestEmpty(t *testing.T) {
	for _, p := range emptyPrograms {
		t.Run(p.name, func(t *testing.T) {
			for _, opset := range []int{11, 13, 14, 17, 23} {
				m := parsed(t, writtenText(t, p.graph, converting(aton.ConvertOptions{Opset: opset})))
				for n, want := range p.want {
					v := make([]float64, n*3)
					for i := range v {
						v[i] = float64(i + 1)
					}
					out := run(t, m, map[string]interp.Value{"x": interp.Of(tensor.FromFloats(tensor.Float32, []int64{n, 3}, v))})
					if got := out[0].Tensor.Float64s(); !slices.Equal(got, want) {
						t.Errorf("opset %d, %d rows: %s", opset, n, fmt.Sprint(got, " instead of ", want))
					}
				}
			}
		})
	}
}

// What a branch that may not run demands of two sizes says nothing of either outside of it.
func TestBranchDemands(t *testing.T) {
	m := parsed(t, writtenText(t, `
graph(%x : Long(N), %i : Long(2), %c : bool):
  %n : NoneType = prim::Constant()
  %f : bool = prim::Constant[value=0]()
  %v : Tensor = aten::clone(%x, %n)
   = prim::If(%c)
    block0():
      %w : Tensor = aten::copy_(%v, %i, %f)
      -> ()
    block1():
      -> ()
  %j : Tensor = aten::neg(%i)
  return (%v, %j)
`, options{}))
	in := map[string]interp.Value{}
	for name, v := range map[string][]int64{"x": {1, 2, 3, 4, 5}, "i": {6, 7}} {
		in[name] = interp.Of(tensor.FromInts(tensor.Int64, []int64{int64(len(v))}, v))
	}
	in["c"] = interp.Of(tensor.FromInts(tensor.Bool, []int64{}, []int64{0}))
	if got := m.Main().Body.Params[1].Type.String(); got != "Long(2)" {
		t.Errorf("input i is %s", got)
	}
	out := run(t, m, in)
	if x, j := out[0].Tensor.Int64s(), out[1].Tensor.Int64s(); !slices.Equal(x, []int64{1, 2, 3, 4, 5}) || !slices.Equal(j, []int64{-6, -7}) {
		t.Errorf("%v, %v", x, j)
	}
}

// What a size of 0 would turn is computed for 1 and more, and the model does not run with 0.
func TestNonEmptySizes(t *testing.T) {
	for name, compute := range map[string]string{
		"decision": `
  %some : bool = aten::gt(%n, %0)
  %y : int = prim::If(%some)
    block0():
      -> (%n)
    block1():
      -> (%1)`,
		"number": `
  %y : int = prim::max(%n, %1)`,
	} {
		m := parsed(t, writtenText(t, `
graph(%x : Float(N, 3)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %n : int = aten::size(%x, %0)`+compute+`
  %r : Tensor = aten::add(%x, %y, %1)
  return (%r, %y)`, options{}))
		for n := range int64(4) {
			in := map[string]interp.Value{"x": interp.Of(tensor.FromFloats(tensor.Float32, []int64{n, 3}, make([]float64, n*3)))}
			if n == 0 {
				if out, err := interp.Run(m, in); err == nil {
					t.Errorf("%s: the model gives %v without rows", name, out[1].Tensor.Int64s())
				}
			} else if got := run(t, m, in)[1].Tensor.Int64s(); got[0] != n {
				t.Errorf("%s of %d rows: %d", name, n, got)
			}
		}
	}
}
