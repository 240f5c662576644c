package littests

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton/backend/eager"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// TestPrograms runs the programs of PyTorch in the tests of a pass before and behind it, on random inputs and for two bindings of
// symbols: results are the same, bit by bit, and where a program raises it raises behind the pass too. A second run of the pass
// changes nothing.
func TestPrograms(t *testing.T) {
	for dir, pipeline := range map[string]string{
		"fold-constants":    "fold-constants{limit=64,weights}",
		"infer-types":       "infer-types",
		"legalize-indexing": "legalize-indexing",
	} {
		file := filepath.Join("passes", dir, "aten.ir")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := all.Set.Parse(pipeline)
		if err != nil {
			t.Fatal(err)
		}
		ran := 0
		for _, f := range parse(t, text).Funcs {
			t.Run(dir+"/"+f.Name, func(t *testing.T) {
				if f.Name == "left" { // draws random numbers
					return
				}
				before, after := program(t, text, f.Name), program(t, text, f.Name)
				for range 2 {
					if _, err := p.Run(after, &passes.Runner{VerifyEach: true, VerifyRoundtrip: true}); err != nil {
						t.Fatal(err)
					}
				}
				once := program(t, text, f.Name)
				if _, err := p.Run(once, nil); err != nil {
					t.Fatal(err)
				}
				if a, b := ssa.Print(once), ssa.Print(after); a != b {
					t.Errorf("the second run changes something:\n%s", passes.Diff(strings.Split(a, "\n"), strings.Split(b, "\n"), 2))
				}
				for seed := range uint64(12) {
					in, ok := programInputs(before.Main(), int64(3+seed%2*4), rand.New(rand.NewPCG(seed, 7)))
					if !ok {
						continue
					}
					want, err := eager.Run(before, in)
					got, err2 := eager.Run(after, in)
					if (err == nil) != (err2 == nil) {
						t.Fatalf("before the pass: %v; behind it: %v\n%s", err, err2, ssa.Print(after))
					}
					if err != nil {
						continue
					}
					ran++
					for i := range want {
						if a, b := want[i].Tensor, got[i].Tensor; a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) || !bytes.Equal(a.Bytes(), b.Bytes()) {
							t.Fatalf("output %d was %v, and is %v\n%s", i, a, b, ssa.Print(after))
						}
					}
				}
			})
		}
		if ran < 20 {
			t.Errorf("%s: only %d runs of programs were compared", file, ran)
		}
	}
}

// program is the module of one function of a text.
func program(t *testing.T, text []byte, name string) *ssa.Module {
	t.Helper()
	m := parse(t, text)
	f := m.Func(name)
	for _, g := range append([]*ssa.Func(nil), m.Funcs...) {
		m.RemoveFunc(g)
	}
	m.AdoptFunc(f, "main")
	return m
}

// programInputs makes inputs: symbols are n, integers are indices of dimensions of at least three elements. Those whose name begins
// with p or q do not count from the end, and those of u are distinct.
func programInputs(f *ssa.Func, n int64, random *rand.Rand) ([]eager.Named, bool) {
	var in []eager.Named
	for _, p := range f.Body.Params {
		t := p.Tensor()
		if t == nil || !t.Ranked {
			return nil, false
		}
		shape := make([]int64, len(t.Dims))
		count := int64(1)
		for i, d := range t.Dims {
			var ok bool
			if shape[i], ok = d.Int(); !ok {
				shape[i] = n
			}
			count *= shape[i]
		}
		v := make([]float64, count)
		for i := range v {
			switch {
			case t.DType.IsFloat():
				v[i] = float64(random.IntN(65)-32) / 8
			case t.DType == tensor.Bool:
				v[i] = float64(random.IntN(2))
			case p.Name == "u":
				v[i] = float64(i)*-1 - 1
			case p.Name == "p" || p.Name == "q":
				v[i] = float64(random.IntN(3))
			default:
				v[i] = float64(random.IntN(6) - 3)
			}
		}
		in = append(in, eager.Named{Name: p.Name, Tensor: tensor.FromFloats(t.DType, shape, v)})
	}
	return in, true
}
