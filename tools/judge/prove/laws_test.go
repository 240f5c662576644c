package prove

import (
	"testing"

	"github.com/aton-project/aton/ssa/sym"
)

func TestLaws(t *testing.T) {
	p := solver(t)
	for _, l := range Laws() {
		answer, applied, err := p.Law(l)
		if err != nil || answer != Unsat || !applied {
			t.Errorf("%s: %s, applied: %v (%v)", l.Name, answer, applied, err)
		}
	}
}

func TestSizes(t *testing.T) {
	p := solver(t)
	proved, open, refuted, err := p.Sizes(150, 1)
	if err != nil || refuted != "" {
		t.Fatal(refuted, err)
	}
	if t.Logf("%d proved, %d open", proved, open); open > proved/4 {
		t.Errorf("%d of %d are open", open, proved+open)
	}
}

// A law that is wrong is refuted: without the bound of 2, min(f, 1) is 1, and the size of both is f only by chance of the other one.
func TestWrongLaw(t *testing.T) {
	p := solver(t)
	answer, applied, err := p.Law(Law{
		Name: "min(x, y) = x", Of: map[string]int64{"x": 0, "y": 0},
		Left:     func(v func(string) sym.Expr) sym.Expr { return v("x").Minimum(v("y")) },
		Right:    func(v func(string) sym.Expr) sym.Expr { return v("x") },
		LeftText: "(least x y)", RightText: "x",
	})
	if err != nil || answer != Sat || applied {
		t.Error(answer, applied, err)
	}
}

// Each law has wrong variants that are refuted.
func TestWrongLaws(t *testing.T) {
	p := solver(t)
	for _, l := range Laws() {
		if n, err := p.WrongLaws(l); err != nil || n == 0 {
			t.Errorf("%s: %d wrong variants are refuted (%v)", l.Name, n, err)
		}
	}
}
