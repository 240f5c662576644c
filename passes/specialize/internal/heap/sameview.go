package heap

import (
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// Place is an argument of a step of a view chain.
type Place struct{ Step, Arg int }

// Alike compares two views of one storage that take the same steps: it gives
// the places of numbers in which they differ. ok is false if they differ in more.
func Alike(a, b *View) (places []Place, ok bool) {
	if a.Storage != b.Storage || len(a.Chain) == 0 || len(a.Chain) != len(b.Chain) || len(a.Strides) != len(b.Strides) || a.Strides == nil {
		return nil, false
	}
	for i := range a.Strides {
		if !a.Strides[i].Equal(b.Strides[i]) {
			return nil, false
		}
	}
	for i := range a.Chain {
		x, y := &a.Chain[i], &b.Chain[i]
		if x.Kind != y.Kind || x.Schema != y.Schema || x.Index != y.Index || x.N != y.N || len(x.Args) != len(y.Args) {
			return nil, false
		}
		for k := 1; k < len(x.Args); k++ {
			if sameArg(x.Args[k], y.Args[k]) {
				continue
			}
			tx, ok := py.NumberType(x.Args[k])
			ty, ok2 := py.NumberType(y.Args[k])
			if !ok || !ok2 || tx != ssa.IntType || ty != ssa.IntType || !movable(x.Kind, x.Schema.Args[k].Name) {
				return nil, false
			}
			places = append(places, Place{i, k})
		}
	}
	return places, true
}

// movable are the arguments that say where a view begins, and not what form it has.
func movable(kind ssa.Kind, arg string) bool {
	return kind == "aten::select" && arg == "index" || kind == "aten::narrow" && arg == "start"
}

func sameArg(a, b py.Value) bool {
	if py.Same(a, b) {
		return true
	}
	x, ok := py.LiteralOf(a)
	y, ok2 := py.LiteralOf(b)
	return ok && ok2 && x.Equal(y)
}
