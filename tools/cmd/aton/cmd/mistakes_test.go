package cmd

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/aton-project/aton/tools/lib/cli"
)

var update = flag.Bool("update", false, "write what the commands print to the golden files")

// twice has two operators that nothing converts, one of them in two places.
const twice = `graph(%x : Float(2, 3)):
  %a : Tensor = mylib::first(%x) # net.py:7:4
  %b : Tensor = mylib::first(%a), scope: layers.0 # net.py:8:4
  %c : Tensor = mylib::second(%b), scope: layers.1 # net.py:9:4
  return (%c)
`

// TestMistakes runs commands as people mistype them and compares what is printed, and insists that JSON and SARIF have the same problems.
func TestMistakes(t *testing.T) {
	golden, err := filepath.Abs("testdata/mistakes.txt")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), "\n$ ")
	archives, _ := filepath.Glob(fixtures + "*.pt*")
	dir := t.TempDir()
	for _, path := range archives {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for name, content := range map[string]string{"twice.ir": twice, "net.py": "import torch\n"} {
		if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var out, asJSON, asSARIF strings.Builder
	out.WriteString(head)
	n, told := 0, 0
	for part := range strings.SplitSeq(rest, "\n$ ") {
		line, want, _ := strings.Cut(part, "\n")
		args := strings.Fields(line)[1:]
		status, stdout, stderr := call("", args...)
		got := stdout + stderr + fmt.Sprintf("[exit %d]\n", status)
		fmt.Fprintf(&out, "\n$ %s\n%s", line, got)
		n++
		if !*update && strings.TrimRight(got, "\n") != strings.TrimRight(want, "\n") {
			t.Errorf("aton %s prints\n%s", strings.Join(args, " "), got)
		}
		if !strings.Contains(stderr, "error") || !strings.Contains(line, ".pt") || status == 2 {
			continue
		}
		asData := problemsOf(t, args)
		if len(asData) == 0 {
			t.Errorf("aton %s --json has no error", strings.Join(args, " "))
		}
		for _, p := range asData {
			if !strings.Contains(stderr, p.Message) || p.Line > 0 && !strings.Contains(stderr, fmt.Sprintf("--> %s:%d:%d", p.File, p.Line, p.Column+1)) {
				t.Errorf("aton %s: %+v is not in\n%s", strings.Join(args, " "), p, stderr)
			}
		}
		log, results := logOf(t, args)
		if !reflect.DeepEqual(log, placesOf(asData)) {
			t.Errorf("aton %s: SARIF has %v, JSON %v", strings.Join(args, " "), log, placesOf(asData))
		}
		b, err := json.MarshalIndent(asData, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&asJSON, "$ %s\n%s\n\n", line, b)
		fmt.Fprintf(&asSARIF, "$ %s\n%s\n\n", line, results)
		told++
	}
	for name, text := range map[string]string{golden: out.String(), strings.Replace(golden, ".txt", ".json.txt", 1): asJSON.String(), strings.Replace(golden, ".txt", ".sarif.txt", 1): asSARIF.String()} {
		if *update {
			if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		} else if want, err := os.ReadFile(name); err != nil || string(want) != text {
			t.Errorf("%s is otherwise now; -update writes it (%v)", filepath.Base(name), err)
		}
	}
	if n < 20 || told < 20 {
		t.Errorf("there are %d commands, %d of them with errors in a model", n, told)
	}
}

// problemsOf runs a command with --json and gives its errors.
func problemsOf(t *testing.T, args []string) []cli.Problem {
	t.Helper()
	_, stdout, stderr := call("", append(args, "--json")...)
	var said struct{ Errors, Problems []cli.Problem }
	for _, text := range []string{stdout, lastObject(stderr)} {
		if text != "" {
			if err := json.Unmarshal([]byte(text), &said); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
		}
	}
	var errors []cli.Problem
	for _, p := range append(said.Errors, said.Problems...) {
		if p.Level == "error" {
			errors = append(errors, p)
		}
	}
	return errors
}

// lastObject is the line of standard error that is JSON: warnings are lines of their own.
func lastObject(stderr string) string {
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "{") {
			return line
		}
	}
	return ""
}

// placesOf spells where problems are: identifier, first place, and the numbers of lines of the frames around it.
func placesOf(problems []cli.Problem) []string {
	var out []string
	for _, p := range problems {
		at := p.ID + " "
		if p.Line > 0 {
			at += fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column+1)
		}
		for _, f := range p.Frames {
			at += fmt.Sprintf(" %d", f.Line)
		}
		out = append(out, at)
	}
	return out
}

// logOf runs a command with --sarif and gives the places of its errors, and its results as they are written.
func logOf(t *testing.T, args []string) (places []string, results string) {
	t.Helper()
	call("", append(args, "--sarif", "log.sarif")...)
	b, err := os.ReadFile("log.sarif")
	if err != nil {
		t.Fatal(err)
	}
	type location struct {
		PhysicalLocation struct {
			ArtifactLocation struct{ URI string }
			Region           struct{ StartLine, StartColumn int }
		}
	}
	var log struct {
		Runs []struct {
			Results []struct {
				RuleID, Level               string
				Locations, RelatedLocations []location
			}
		}
	}
	if err := json.Unmarshal(b, &log); err != nil {
		t.Fatal(err)
	}
	var out []string
	var raw struct {
		Runs []struct{ Results json.RawMessage }
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		t.Fatal(err)
	}
	for _, r := range log.Runs[0].Results {
		if r.Level != "error" {
			continue
		}
		at := r.RuleID + " "
		if p := r.Locations[0].PhysicalLocation; p.Region.StartLine > 0 {
			at += fmt.Sprintf("%s:%d:%d", p.ArtifactLocation.URI, p.Region.StartLine, p.Region.StartColumn)
		}
		for _, l := range r.RelatedLocations {
			at += fmt.Sprintf(" %d", l.PhysicalLocation.Region.StartLine)
		}
		out = append(out, at)
	}
	var text bytes.Buffer
	if err := json.Indent(&text, raw.Runs[0].Results, "", "  "); err != nil {
		t.Fatal(err)
	}
	return out, text.String()
}
