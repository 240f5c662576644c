package pyast

import "testing"

func TestParse(t *testing.T) {
	f, err := Parse(`op_version_set = 1
import __torch__.a
class A(Module):
  __parameters__ = ["w", ]
  w : Tensor
  __annotations__["0"] = __torch__.B
  c : Final[float] = 1.0000000000000001e-05
  def forward(self: __torch__.A,
    x: Tensor, *,
    y: int=-1) -> Tuple[Tensor, int]:
    # a comment
    if bool(x):
      pass
    else:
      a, = x
      _1, b, = (self).f(x, )
    for _2 in range(9223372036854775807):
      z = torch.add(x, 0.+3.j, alpha=[1, 2][0])
    return (x, (y)[0:2])
`)
	if err != nil {
		t.Fatal(err)
	}
	c := f.Body[2].(*Class)
	if c.Name != "A" || c.Base != "Module" {
		t.Errorf("class %s(%s)", c.Name, c.Base)
	}
	d := c.Body[4].(*Def)
	if len(d.Params) != 4 || len(d.Body) != 3 {
		t.Errorf("def with %d parameters, %d statements", len(d.Params), len(d.Body))
	}
	if a := d.Body[0].(*If).Else[1].(*Assign); !a.Unpack || len(a.Targets) != 2 {
		t.Errorf("unpack: %+v", a)
	}
}

func TestErrors(t *testing.T) {
	for src, at := range map[string]int{
		"x = (1":          6,
		"x = 1 +\n":       7,
		"if x:\npass\n":   6,
		"def f(:\n  pass": 6,
		"x = \"a":         4,
		"x = $\n":         4,
	} {
		_, err := Parse(src)
		e, ok := err.(*Error)
		if !ok {
			t.Errorf("%q: %v", src, err)
		} else if e.Offset != at {
			t.Errorf("%q: error at %d, want %d: %v", src, e.Offset, at, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("class A(Module):\n  w : Tensor\n  def f(self, x: int=1) -> int:\n    if x:\n      y = [1, (2, ), {\"a\": -.5e3j}]\n    return (self).g(x, k=y[0:1], )\n")
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) > 1<<14 {
			return
		}
		_, _ = Parse(src)
	})
}
