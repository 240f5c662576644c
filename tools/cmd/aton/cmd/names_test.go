package cmd

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"google.golang.org/protobuf/proto"

	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
)

// steering has what steers a terminal or a reader: colors (ESC), the window's title (OSC), C1 controls, the direction of text, DEL, a
// bell, a line break that begins a graph, and a byte that is no UTF-8.
const steering = "\x1b[31m\x1b]0;title\x07\u009b31m\u202egnp\x7f\r\nreturn (%x)\ngraph(%y : Tensor):\n"

// hostile is a model that has these in every name and text that the format has room for.
func hostile(t *testing.T, domain string) []byte {
	t.Helper()
	kind := func(typ *onnxpb.TypeProto, name string) *onnxpb.ValueInfoProto {
		return &onnxpb.ValueInfoProto{Name: proto.String(name), DocString: proto.String(steering), Type: typ, MetadataProps: properties()}
	}
	dims := &onnxpb.TensorShapeProto{Dim: []*onnxpb.TensorShapeProto_Dimension{
		{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: "N" + steering}, Denotation: proto.String(steering)},
		{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: 2}},
	}}
	floats := func() *onnxpb.TypeProto {
		return &onnxpb.TypeProto{Denotation: proto.String(steering), Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(1), Shape: dims}}}
	}
	x, w, a, y := "x"+steering, "w"+steering, "a"+steering, "y"+steering
	raw := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, math.Float32bits(1)), math.Float32bits(2))
	nodes := []*onnxpb.NodeProto{
		{OpType: proto.String("Add"), Name: proto.String("add" + steering), DocString: proto.String(steering), Input: []string{x, w}, Output: []string{a}, MetadataProps: append(properties(),
			&onnxpb.StringStringEntryProto{Key: proto.String("pkg.torch.onnx.stack_trace"), Value: proto.String("File \"" + steering + "\", line 3, in f")},
			&onnxpb.StringStringEntryProto{Key: proto.String("namespace"), Value: proto.String(steering)})},
		{OpType: proto.String("Relu"), Name: proto.String(steering), Input: []string{a}, Output: []string{y}},
	}
	m := &onnxpb.ModelProto{
		IrVersion: proto.Int64(10), ProducerName: proto.String(steering), ProducerVersion: proto.String(steering), Domain: proto.String(steering), DocString: proto.String(steering),
		MetadataProps: properties(), OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
		Graph: &onnxpb.GraphProto{
			Name: proto.String("graph" + steering), DocString: proto.String(steering), MetadataProps: properties(), Node: nodes,
			Initializer: []*onnxpb.TensorProto{{Name: proto.String(w), DocString: proto.String(steering), DataType: proto.Int32(1), Dims: []int64{2}, RawData: raw}},
			Input:       []*onnxpb.ValueInfoProto{kind(floats(), x)}, Output: []*onnxpb.ValueInfoProto{kind(floats(), y)}, ValueInfo: []*onnxpb.ValueInfoProto{kind(floats(), a)},
		},
	}
	if domain != "" { // an operator that nothing is known of
		m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: proto.String(domain), Version: proto.Int64(1)})
		nodes[1].OpType, nodes[1].Domain = proto.String("Strange"+steering), proto.String(domain)
		nodes[1].Attribute = []*onnxpb.AttributeProto{{Name: proto.String("mode" + steering), DocString: proto.String(steering), Type: onnxpb.AttributeProto_STRING.Enum(), S: []byte(steering)}}
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func properties() []*onnxpb.StringStringEntryProto {
	return []*onnxpb.StringStringEntryProto{{Key: proto.String("key" + steering), Value: proto.String(steering)}}
}

// steers gives a character of a text that a terminal would not show as it is.
func steers(text string) (r rune, found bool) {
	i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) })
	if i < 0 {
		return 0, false
	}
	return []rune(text[i:])[0], true
}

// Whatever command looks at a file, and in whatever form, names in the file do not steer the terminal.
func TestNamesDoNotSteer(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, b []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, b, 0o666); err != nil {
			t.Fatal(err)
		}
		return file
	}
	graph := "graph @" + `"main\033[31m\302\233\342\200\256"` + "(%" + `"x\033[31m\302\233\177"` + ` : Float(2, 3)):
  %y : Float(2, 3) = aten::no_such(%"x\033[31m\302\233\177"), scope: "a\033[31m\302\233\342\200\256" # "net` + "\u009b\u202e" + `.py":7:3
  return (%y)
`
	models := []string{
		put("plain.onnx", hostile(t, "")), put("custom.onnx", hostile(t, "my"+steering)), put("refused.ir", []byte(graph)), put("broken.ir", []byte("graph(%x\u009b\x1b[31m : \u202eTensor):\n")),
		put("name\u202e\u009b.onnx", hostile(t, "")),
	}
	commands := [][]string{
		{"inspect"}, {"inspect", "--listing"}, {"inspect", "--listing", "--source"}, {"inspect", "--json"}, {"inspect", "--at", "onnx", "--source", "--full-types"}, {"check"}, {"check", "--json"}, {"check", "--sarif", "-"},
		{"export", "--verbose", "-o", filepath.Join(dir, "o.onnx")}, {"export", "--json", "-o", filepath.Join(dir, "o.onnx")}, {"export", "-o", filepath.Join(dir, "o.onnx"), "--print-after", "all", "--print-changed"},
		{"export", "-o", filepath.Join(dir, "o.onnx"), "--rename", "a=b", "--timing"},
		{"gpu"}, {"gpu", "--json"}, {"gpu", "--print", "plan"}, {"gpu", "--print", "kir"}, {"gpu", "--print", "llir"}, {"gpu", "--print", "ptx"},
		{"verify", "--random", "1"}, {"verify", "--random", "1", "--json"}, {"verify", "--random", "1", "--device", "sim"}, {"verify", "--random", "1", "--device", "sim", "--json"},
		{"run", "--random", "1"}, {"run", "--random", "1", "--json"}, {"explore", "--dot", "-"}, {"explore", "--svg", "-"},
	}
	for _, model := range models {
		for _, args := range commands {
			args := append([]string{args[0], model}, args[1:]...)
			_, stdout, stderr := call("", args...)
			if r, found := steers(stdout); found {
				t.Errorf("%q: %U on standard output", args, r)
			}
			if r, found := steers(stderr); found {
				t.Errorf("%q: %U on standard error", args, r)
			}
		}
		for flag, file := range map[string]string{"--sarif": "log.sarif", "--dot": "g.dot", "--svg": "g.svg", "-o": "text.ir"} {
			command := map[string]string{"--sarif": "check", "-o": "inspect"}[flag]
			if command == "" {
				command = "explore"
			}
			to := filepath.Join(t.TempDir(), file)
			call("", command, model, flag, to)
			text, _ := os.ReadFile(to) // there is none where the model cannot be read
			if r, found := steers(string(text)); found {
				t.Errorf("%s %s of %q: %U in the file", command, flag, model, r)
			}
		}
	}
}

// No name of a model, of its program's files or of its own file begins a line of what a command tells.
func TestNamesBeginNoLine(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, b []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, b, 0o666); err != nil {
			t.Skip(err) // a file system that has no such names
		}
		return file
	}
	graph := func(op string) []byte {
		return []byte(strings.NewReplacer("BREAK", `\nFORGED: x`, "OP", op).Replace(`graph @"mainBREAK"(%"xBREAK" : Float(2, 3)):
  %"yBREAK" : Float(2, 3) = OP(%"xBREAK"), scope: "aBREAK" # "netBREAK.py":7:3
  return (%"yBREAK")
`))
	}
	models := []string{
		put("custom.onnx", hostile(t, "my\nFORGED: x")), put("refused.ir", graph("aten::no_such")), put("good.ir", graph("onnx::Tanh")), put("attribute.ir", graph(`onnx::Cast["tBREAK"="vBREAK"]`)),
		put("wrong.ir", graph("onnx::Concat[axis=9]")), put("broken.ir", []byte("graph(%x\nFORGED: x :")), put("name\nFORGED: x.onnx", hostile(t, "")), filepath.Join(dir, "none\nFORGED: x.ir"),
	}
	out := filepath.Join(dir, "o.onnx")
	for _, model := range models {
		for _, args := range [][]string{
			{"inspect"}, {"inspect", "--listing", "--source"}, {"inspect", "--at", "onnx", "--source", "--full-types"}, {"check"}, {"export", "--verbose", "-o", out}, {"export", "-o", out, "--opset", "7"},
			{"export", "-o", out, "--print-after", "all", "--print-changed"}, {"export", "-o", out, "--rename", "a=b", "--timing"}, {"export", "-o", filepath.Join(dir, "o\nFORGED: x.onnx")},
			{"gpu"}, {"gpu", "--print", "plan"}, {"gpu", "--print", "kir"}, {"gpu", "--print", "llir"}, {"gpu", "--print", "ptx"},
			{"verify", "--random", "1"}, {"verify", "--random", "1", "--device", "sim", "--nodes"}, {"verify", "--data", filepath.Join(dir, "none\nFORGED: x.npz")},
			{"run", "--random", "1"}, {"explore", "--dot", "-"}, {"set", "--rename", "x=y", "-o", out}, {"cut", "--outputs", "y\nFORGED: x", "-o", out}, {"join", filepath.Join(dir, "custom.onnx"), "-o", out}, {"diff", filepath.Join(dir, "custom.onnx")}, {"reduce", "-o", filepath.Join(dir, "r.ir"), "--", "false"},
		} {
			args := append([]string{args[0], model}, args[1:]...)
			_, stdout, stderr := call("", args...)
			for line := range strings.Lines(stdout + stderr) {
				if strings.HasPrefix(strings.TrimSpace(line), "FORGED") {
					t.Errorf("%q: %q in\n%s", args, line, stdout+stderr)
				}
			}
		}
	}
}

// A graph that is printed and read again is the same model, whatever its names have in them.
func TestNamesInText(t *testing.T) {
	for _, domain := range []string{"", "my" + steering} {
		model := filepath.Join(t.TempDir(), "m.onnx")
		if err := os.WriteFile(model, hostile(t, domain), 0o666); err != nil {
			t.Fatal(err)
		}
		export := func(from string) []byte {
			t.Helper()
			to := filepath.Join(t.TempDir(), "o.onnx")
			if status, _, said := call("", "export", from, "-o", to); status != 0 {
				t.Fatalf("status %d: %s", status, said)
			}
			b, err := os.ReadFile(to)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		straight := export(model)
		text := filepath.Join(t.TempDir(), "m.ir")
		if status, _, said := call("", "inspect", model, "-o", text); status != 0 {
			t.Fatalf("status %d: %s", status, said)
		}
		if !bytes.Equal(straight, export(text)) {
			t.Errorf("domain %q: the text is of another model", domain)
		}
		_, listing, _ := call("", "inspect", model, "--listing")
		graphs, returns := 0, 0
		for line := range strings.Lines(listing) {
			if strings.HasPrefix(line, "graph") {
				graphs++
			}
			if strings.HasPrefix(strings.TrimSpace(line), "return (") {
				returns++
			}
		}
		if graphs != 1 || returns != 1 {
			t.Errorf("domain %q: a name begins another graph:\n%s", domain, listing)
		}
	}
}

// A version of a domain that onnx.checker refuses is not written, wherever it comes from.
func TestDomainVersions(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return file
	}
	out := filepath.Join(dir, "o.onnx")
	for _, version := range []string{"2147483647", "2147483648", "4294967297", "9223372036854775807"} {
		ok := version == "2147483647"
		graph := put("m.ir", "module {\n  opsets = {\"\" : 20, \"my\" : "+version+"}\n}\ngraph(%x : Float(2)):\n  %y : Float(2) = my::op(%x)\n  return (%y)\n")
		plain := put("p.ir", "graph(%x : Float(2)):\n  %y : Float(2) = my::op(%x)\n  return (%y)\n")
		n, err := strconv.ParseInt(version, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		model := &onnxpb.ModelProto{}
		if err := proto.Unmarshal(hostile(t, "my"), model); err != nil {
			t.Fatal(err)
		}
		model.OpsetImport[1].Version = &n
		b, err := proto.Marshal(model)
		if err != nil {
			t.Fatal(err)
		}
		for what, args := range map[string][]string{
			"text": {graph}, "option": {plain, "--fallthrough", "my", "--custom-opset", "my=" + version}, "file": {put("m.onnx", string(b))},
		} {
			os.Remove(out)
			status, _, said := call("", append([]string{"export", "-o", out}, args...)...)
			if _, err := os.Stat(out); ok != (status == 0 && err == nil) || !ok && !strings.Contains(said, "version") {
				t.Errorf("%s of version %s: status %d, %v: %s", what, version, status, err, said)
			}
		}
	}
}
