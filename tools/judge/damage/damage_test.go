package main

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/tools/judge/fuzzprog/mutant"
)

var update = flag.Bool("update", false, "write the messages anew")

// TestCorpus holds the messages on one small model of each kind of damage; onnx.checker refuses all of them.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/*.onnx")
	if err != nil || len(files) < 60 {
		t.Fatalf("%d models, %v", len(files), err)
	}
	var got strings.Builder
	for _, file := range files {
		_, err := aton.Load(file, aton.LoadOptions{})
		if err == nil {
			t.Errorf("%s is not refused", file)
			continue
		}
		for _, line := range strings.Split(err.Error(), "\n") {
			got.WriteString(strings.TrimSuffix(filepath.Base(file), ".onnx") + ": " + line + "\n")
		}
	}
	const golden = "testdata/messages.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		a, b := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Fatalf("line %d: %s\nwant: %s", i+1, a[i], b[i])
			}
		}
		t.Fatalf("%d lines, want %d", len(a), len(b))
	}
}

// valid are models that mutants are made of: what aton writes for the fixtures, with weights, control flow and subgraphs.
func valid(t testing.TB) map[string][]byte {
	out := map[string][]byte{}
	for name, graph := range map[string]string{
		"convolution": `graph(%x : Float(N, 3, 8, 8), %w : Float(4, 3, 3, 3)):
  %y : Float(N, 4, 6, 6) = onnx::Conv[kernel_shape=[3, 3], strides=[1, 1], pads=[0, 0, 0, 0]](%x, %w)
  %z : Float(N, 4, 3, 3) = onnx::MaxPool[kernel_shape=[2, 2], strides=[2, 2]](%y)
  %s : Long(2) = onnx::Constant[value= 0 -1 [ CPULongType{2} ]]()
  %r : Float(N, 36) = onnx::Reshape(%z, %s)
  %o : Float(N, 36) = onnx::Softmax[axis=1](%r)
  return (%o)
`,
		"slices": `graph(%x : Float(4, 6), %i : Long(2)):
  %a : Long(1) = onnx::Constant[value= 0 [ CPULongType{1} ]]()
  %e : Long(1) = onnx::Constant[value= 2 [ CPULongType{1} ]]()
  %y : Float(2, 6) = onnx::Slice(%x, %a, %e, %a)
  %g : Float(2, 6) = onnx::Gather[axis=0](%x, %i)
  %c : Float(4, 6) = onnx::Concat[axis=0](%g, %g)
  %t : Float(6, 4) = onnx::Transpose[perm=[1, 0]](%c)
  %u : Float(1, 6, 4) = onnx::Unsqueeze(%t, %a)
  return (%y, %u)
`,
		"branch": `graph(%x : Float(2, 3), %c : Bool()):
  %y : Float(2, 3) = onnx::If(%c)
    block0():
      %a : Float(2, 3) = onnx::Relu(%x)
      -> (%a)
    block1():
      %b : Float(2, 3) = onnx::Neg(%x)
      -> (%b)
  return (%y)
`,
		"loop": `graph(%x : Float(3), %n : Long(), %c : Bool()):
  %y : Float(3), %s : Float(K, 3) = onnx::Loop(%n, %c, %x)
    block0(%i : Long(), %k : Bool(), %v : Float(3)):
      %w : Float(3) = onnx::Add(%v, %x)
      -> (%k, %w, %w)
  return (%y, %s)
`,
	} {
		m, err := aton.LoadBytes([]byte(graph), name, aton.LoadOptions{})
		if err != nil {
			t.Fatal(name, err)
		}
		var b bytes.Buffer
		if err := aton.ExportTo(&b, m, aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Opset: 17}}); err != nil {
			t.Fatal(name, err)
		}
		out[name] = b.Bytes()
	}
	return out
}

// TestMutants makes a few mutants of each; `make damaged` makes many.
func TestMutants(t *testing.T) {
	for name, b := range valid(t) {
		for seed := range int64(150) {
			ask(t, name, b, seed)
		}
	}
}

func ask(t *testing.T, name string, b []byte, seed int64) {
	p := &onnxpb.ModelProto{}
	if proto.Unmarshal(b, p) != nil {
		return
	}
	c, err := proto.Marshal(mutant.Model(p, rand.New(rand.NewPCG(uint64(seed), 0))))
	if err != nil {
		return // text that is no UTF-8
	}
	file := filepath.Join(t.TempDir(), "m.onnx")
	if err := os.WriteFile(file, c, 0o666); err != nil {
		t.Fatal(err)
	}
	m := &model{}
	if m.limited(file); len(m.panics) > 0 {
		t.Errorf("%s, seed %d: %s", name, seed, strings.Join(m.panics, "; "))
	}
}

// FuzzMutants goes on from any bytes that are a model.
func FuzzMutants(f *testing.F) {
	for _, b := range valid(f) {
		f.Add(b, int64(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, seed int64) { ask(t, "fuzz", b, seed) })
}
