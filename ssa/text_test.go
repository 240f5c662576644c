package ssa_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton/ssa"
	"github.com/google/go-cmp/cmp"
)

// fixpoint demands that what is printed reads back as itself.
func fixpoint(t *testing.T, src, file string) {
	t.Helper()
	m, err := ssa.Parse(src, file)
	if err != nil {
		t.Fatal(err)
	}
	if err := ssa.Verify(m); err != nil {
		t.Fatal(err)
	}
	one := ssa.Print(m)
	again, err := ssa.Parse(one, file)
	if err != nil {
		t.Fatalf("%v\n%s", err, one)
	}
	if diff := cmp.Diff(one, ssa.Print(again)); diff != "" {
		t.Fatal(diff)
	}
}

func TestFixpoint(t *testing.T) {
	files, err := filepath.Glob("testdata/*.ir")
	if err != nil || len(files) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			fixpoint(t, string(src), f)
		})
	}
}

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.ir")
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	f.Fuzz(func(t *testing.T, src string) {
		m, err := ssa.Parse(src, "fuzz")
		if err != nil {
			return
		}
		one := ssa.Print(m)
		again, err := ssa.Parse(one, "fuzz")
		if err != nil {
			t.Fatalf("%v\n%s", err, one)
		}
		if two := ssa.Print(again); one != two {
			t.Fatal(cmp.Diff(one, two))
		}
		whole := complete(m)
		if again, err = ssa.Parse(whole, "fuzz"); err != nil {
			t.Fatalf("%v\n%s", err, whole)
		}
		if two := complete(again); whole != two {
			t.Fatal(cmp.Diff(whole, two))
		}
	})
}

// A constant with a name is a weight; an op that has a value besides its operands is not.
func TestWeightsAsInputs(t *testing.T) {
	m, err := ssa.Parse(`graph(%n : Long(1)):
  %w : Float(2) = onnx::Constant[value= 1  2 [ CPUFloatType{2} ]]()
  %y : Float(N) = onnx::ConstantOfShape[value= 3 [ CPUFloatType{1} ]](%n)
  return (%w, %y)
`, "test")
	if err != nil {
		t.Fatal(err)
	}
	want := `graph(%n : Long(1),
      %w : Float(2)):
  %y : Float(N) = onnx::ConstantOfShape[value= 3 [ CPUFloatType{1} ]](%n)
  return (%w, %y)
`
	var b strings.Builder
	if err := ssa.Fprint(&b, m, ssa.PrintOptions{WeightsAsInputs: true}); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}
