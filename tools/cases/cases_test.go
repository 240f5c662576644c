package cases

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/aton-project/aton/tools/cases/pack"
)

// TestCases exports small programs that PyTorch recorded to the opsets that the list beside the archive names, and runs the files
// in the interpreter: their outputs are PyTorch's. `make pick` chooses programs and opsets.
func TestCases(t *testing.T) { picked(t, "cases", 300) }

// TestNodes does the same for tests that the onnx package has for its operators: each model is written at other opsets, and
// its outputs stay what they are.
func TestNodes(t *testing.T) { picked(t, "nodes", 100) }

func picked(t *testing.T, name string, least int) {
	root := filepath.Join("..", "..", "testdata")
	dir := t.TempDir()
	if _, err := pack.Unpack(filepath.Join(root, name+".tar.gz"), dir); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(root, name+".tsv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(list)), "\n")
	if len(lines) < least {
		t.Fatalf("%d cases", len(lines))
	}
	for _, line := range lines {
		fields := strings.Split(line, "\t")
		if len(fields) != 3 {
			t.Fatalf("%q is no line of three fields", line)
		}
		var opsets []int
		for _, s := range strings.Fields(fields[2]) {
			n, err := strconv.Atoi(s)
			if err != nil {
				t.Fatal(err)
			}
			opsets = append(opsets, n)
		}
		t.Run(fields[0]+"/"+fields[1], func(t *testing.T) {
			t.Parallel()
			c, err := Read(filepath.Join(dir, fields[0]))
			if err != nil {
				t.Fatal(err)
			}
			for _, opset := range opsets {
				if err := c.Check(Format(fields[1]), opset); err != nil {
					t.Errorf("opset %d: %v", opset, err)
				}
			}
		})
	}
}
