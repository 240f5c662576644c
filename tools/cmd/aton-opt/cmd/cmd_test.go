package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/tools/lib/cli"
)

const fixtures = "../../../../testdata/fixtures/torch2.15/"

// opt runs the command and gives its exit status and what it wrote.
func opt(set *passes.Set, stdin []byte, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = cli.Run(New(set), append(args, "--repro="), bytes.NewReader(stdin), &out, &errs)
	return status, out.String(), errs.String()
}

// TestFormats reads every format, from a file and from standard input.
func TestFormats(t *testing.T) {
	model := filepath.Join(t.TempDir(), "model.onnx")
	m, err := aton.Load(fixtures+"convnet.pt2", aton.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := aton.Export(m, model, aton.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, want string }{
		{fixtures + "convnet.script.pt", "prim::CallMethod"},
		{fixtures + "convnet.trace.pt", "prim::CallMethod"},
		{fixtures + "convnet.pt2", "aten::conv2d"},
		{model, "onnx::Conv"},
	} {
		text, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		status, out, errs := opt(all.Set, nil, c.file, "--verify-each")
		if status != cli.Done || !strings.Contains(out, c.want) {
			t.Errorf("%s: status %d, %s", c.file, status, errs)
		}
		status, piped, errs := opt(all.Set, text, "-", "--verify-each")
		if status != cli.Done || strings.Count(piped, "\n") != strings.Count(out, "\n") {
			t.Errorf("%s as standard input: status %d, %s", c.file, status, errs)
		}
	}
}

// TestMisuse refuses flags that say nothing for the format of the input.
func TestMisuse(t *testing.T) {
	graph := []byte("graph(%x : Tensor):\n  return (%x)\n")
	for _, c := range []struct {
		stdin []byte
		args  []string
		want  string
	}{
		{nil, []string{fixtures + "convnet.pt2", "--opset=13"}, "--opset requires graph text"},
		{nil, []string{fixtures + "convnet.pt2", "--split-input-file"}, "--split-input-file requires graph text"},
		{nil, []string{fixtures + "convnet.script.pt", "--input=x"}, "--input 'x'"},
		{graph, []string{"-", "--method=f"}, "--method: <stdin> is graph text"},
	} {
		if status, _, errs := opt(all.Set, c.stdin, c.args...); status != cli.Usage || !strings.Contains(errs, c.want) {
			t.Errorf("%v: status %d, %s", c.args, status, errs)
		}
	}
}

const twoChanges = `graph(%x : Float(2)):
  %a : Float(2) = onnx::Relu(%x)
  %b : Float(2) = onnx::Relu(%x)
  %c : Float(2) = onnx::Neg(%x)
  %y : Float(2) = onnx::Add(%a, %b)
  return (%y)
`

// TestBisect stops after each number of changes.
func TestBisect(t *testing.T) {
	for _, c := range []struct{ limit, graph, log string }{
		{"0", "Neg Relu Relu Add", "BISECT: not running pass cse\nBISECT: not running pass dce\n"},
		{"1", "Relu Neg Add", "BISECT: change 1 by pass cse\nBISECT: not running pass dce\nBISECT: not running pass cse\n"},
		{"2", "Relu Add", "BISECT: change 1 by pass cse\nBISECT: change 2 by pass dce\nBISECT: not running pass cse\nBISECT: not running pass dce\n"},
		{"-1", "Relu Add", "BISECT: change 1 by pass cse\nBISECT: change 2 by pass dce\n"},
	} {
		status, out, errs := opt(all.Set, []byte(twoChanges), "-", "--passes=fixpoint(cse,dce)", "--bisect-limit="+c.limit)
		if status != cli.Done || errs != c.log {
			t.Errorf("limit %s: status %d\n%s", c.limit, status, errs)
		}
		if got, want := strings.Count(out, "onnx::"), len(strings.Fields(c.graph)); got != want {
			t.Errorf("limit %s: %d operators, want %s\n%s", c.limit, got, c.graph, out)
		}
	}
	if _, _, errs := opt(all.Set, []byte(twoChanges), "-", "--passes=cse"); errs != "" {
		t.Errorf("without the flag: %s", errs)
	}
}

// TestVerifyEach names the pass that breaks the module, though a later one could have told too.
func TestVerifyEach(t *testing.T) {
	set := all.New(nil)
	set.Passes = append(set.Passes, &passes.Pass{Name: "break", Doc: "use a value before it is defined", Run: passes.EachFunc(func(c *passes.Context, f *ssa.Func) error {
		c.Changed("break")
		last := f.Body.Returns()[0].Def()
		last.SetOperands(last.Results[0], last.Results[0])
		return nil
	})})
	status, _, errs := opt(set, []byte(twoChanges), "-", "--passes=cse,break,dce", "--verify-each")
	if status != cli.Failed || !strings.Contains(errs, "internal error in pass break: the module is invalid after it") {
		t.Errorf("status %d, %s", status, errs)
	}
}

func TestVersion(t *testing.T) {
	if status, out, _ := opt(all.Set, nil, "--version"); status != cli.Done || !strings.HasPrefix(out, "aton-opt version ") {
		t.Errorf("status %d, %s", status, out)
	}
}
