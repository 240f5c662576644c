package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/dialects/onnx"
)

// TestRaw: every archive that loads has a file with its graph as it is.
func TestRaw(t *testing.T) {
	archives, err := filepath.Glob("testdata/fixtures/*/*.pt*")
	if err != nil || len(archives) < 20 {
		t.Fatalf("%d archives: %v", len(archives), err)
	}
	for _, path := range archives {
		p, err := protoOf(t, path, converting(aton.ConvertOptions{OperatorExport: aton.Raw}))
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

// TestDocStrings: the line of the program is the documentation and the metadata of each node at any opset, if asked for.
func TestDocStrings(t *testing.T) {
	for opset := aton.OldestOpset; opset <= onnx.Newest; opset++ {
		for _, asked := range []bool{false, true} {
			p, err := protoOf(t, perceptron, options{export: aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Opset: opset}, WriteOptions: aton.WriteOptions{DocStrings: asked, NodeMetadata: asked}}}, perceptronInput)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range p.Graph.Node {
				if has := strings.Contains(n.GetDocString(), ".py:"); has != asked {
					t.Errorf("opset %d, asked %t: %s has %q", opset, asked, n.GetName(), n.GetDocString())
				}
				if has := len(n.GetMetadataProps()) > 0; has != (asked || opset > 20) || has && p.GetIrVersion() < 10 {
					t.Errorf("opset %d: %s has metadata %v", opset, n.GetName(), n.GetMetadataProps())
				}
			}
		}
	}
}

// TestRawLiterals: attributes that the format has no form for are written as they are printed.
func TestRawLiterals(t *testing.T) {
	m, err := aton.LoadBytes([]byte(`graph(%x : Tensor):
  %t : bool = prim::isinstance[types=[Tensor, int[]]](%x)
  %k : Type = prim::Constant[value=Tensor]()
  %big : float = prim::Constant[value=1e300]()
  %bigs : float[] = prim::Constant[value=[1., 1e300]]()
  %floats : float[] = prim::Constant[value=[1., 0.5]]()
  %z : complex = prim::Constant[value=1+2j]()
  %where : Device = prim::Constant[value="cuda:0"]()
  return (%t, %k, %big, %bigs, %floats, %z, %where)
`), "graph.ir", aton.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := aton.ExportTo(&b, m, aton.ExportOptions{ConvertOptions: aton.ConvertOptions{OperatorExport: aton.Raw}}); err != nil {
		t.Fatal(err)
	}
	var p onnxpb.ModelProto
	if err := proto.Unmarshal(b.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, n := range p.Graph.Node {
		for _, a := range n.Attribute {
			have = append(have, fmt.Sprintf("%s%s%v", a.S, bytes.Join(a.Strings, []byte(" ")), a.Floats))
		}
	}
	want := []string{"type(Tensor) type(int[])[]", "type(Tensor)[]", "1e+300[]", "1. 1e+300[]", "[1 0.5]", "1.+2.j[]", "cuda:0[]"}
	if !slices.Equal(have, want) {
		t.Errorf("got %q, want %q", have, want)
	}
}

// TestPrintedPage: the printed AlexNet of torch.onnx's page, of opset 6, becomes a file of any opset; with lines left out it is
// an error that says so.
func TestPrintedPage(t *testing.T) {
	page, err := os.ReadFile("tools/judge/seedcheck/alexnet_page.txt")
	if err != nil {
		t.Fatal(err)
	}
	written := func(text string, opset int) (*onnxpb.ModelProto, error) {
		m, err := aton.LoadBytes([]byte(text), "page.txt", aton.LoadOptions{})
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		if err := aton.ExportTo(&b, m, aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Opset: opset}}); err != nil {
			return nil, err
		}
		var p onnxpb.ModelProto
		return &p, proto.Unmarshal(b.Bytes(), &p)
	}
	for opset := aton.OldestOpset; opset <= onnx.Newest; opset++ {
		p, err := written(string(page), opset)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		for _, n := range p.Graph.Node {
			kinds = append(kinds, n.GetOpType())
		}
		if want := []string{"Conv", "Relu", "MaxPool", "Reshape", "Slice", "Gemm"}; !slices.Equal(kinds, want) {
			t.Errorf("opset %d: %v, want %v", opset, kinds, want)
		}
	}
	conv := strings.Index(string(page), "  %18 ")
	for cut, want := range map[string]string{
		"  # ---- omitted for brevity ----\n": "%18 is not defined here: put in the line that defines it, before this one",
		"  ...\n":                             `page.txt:7:3: lines of the graph are left out at "...": put them in, or take out what uses them`,
		"  …\n":                               "lines of the graph are left out",
	} {
		rest := string(page[conv:])
		rest = rest[strings.Index(rest, "\n")+1:]
		if _, err := written(string(page[:conv])+cut+rest, 13); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", cut, err, want)
		}
	}
}
