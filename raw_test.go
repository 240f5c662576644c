package aton_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton"
)

// TestRaw: every archive that loads has a file with its graph as it is.
func TestRaw(t *testing.T) {
	archives, err := filepath.Glob("testdata/fixtures/*/*.pt*")
	if err != nil || len(archives) < 20 {
		t.Fatalf("%d archives: %v", len(archives), err)
	}
	for _, path := range archives {
		p, err := protoOf(t, path, aton.Options{OperatorExport: aton.Raw})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		aten := 0
		for _, n := range p.Graph.Node {
			if n.GetDomain() == "org.pytorch.aten" {
				aten++
			}
		}
		if aten == 0 && !strings.Contains(path, "quantized") {
			t.Errorf("%s: no operator of aten in %d nodes", path, len(p.Graph.Node))
		}
	}
}

// TestDocStrings: the line of the program is the documentation of each node at any opset, if asked for.
func TestDocStrings(t *testing.T) {
	for _, opset := range []int{9, 20, 21} {
		for _, asked := range []bool{false, true} {
			p, err := protoOf(t, perceptron, aton.Options{DocStrings: asked, Opset: opset}, perceptronInput)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range p.Graph.Node {
				if has := strings.Contains(n.GetDocString(), ".py:"); has != asked {
					t.Errorf("opset %d, asked %t: %s has %q", opset, asked, n.GetName(), n.GetDocString())
				}
				if has := len(n.GetMetadataProps()) > 0; has != (opset > 20) {
					t.Errorf("opset %d: %s has metadata %v", opset, n.GetName(), n.GetMetadataProps())
				}
			}
		}
	}
}
