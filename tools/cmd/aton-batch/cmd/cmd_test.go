package cmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	single "github.com/aton-project/aton/tools/cmd/aton/cmd"
	"github.com/aton-project/aton/tools/lib/batch"
	"github.com/aton-project/aton/tools/lib/cli"
)

// asAton is the variable of the environment that makes this test the program aton-batch.
const asAton = "ATON_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if where := os.Getenv(asServer); where != "" {
		os.Exit(serve(where))
	}
	if os.Getenv(asAton) != "" {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// program runs aton-batch in a process.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), asAton+"=1")
	return c
}

// models writes n small models that convert, and one that does not.
func models(t *testing.T, n int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; i <= n; i++ {
		put(fmt.Sprintf("model%03d.ir", i), fmt.Sprintf("graph(%%x : Float(2, %d)):\n  %%a : Float(2, %d) = aten::relu(%%x)\n  return (%%a)\n", i, i))
	}
	put("refused.ir", "graph(%x : Float(2, 3)):\n  %a : Float(2, 3) = aten::no_such_operator(%x) # net.py:7:3\n  return (%a)\n")
	return dir
}

// results reads results.jsonl, by name.
func results(t *testing.T, out string) map[string]*batch.Result {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, batch.Results))
	if err != nil {
		t.Fatal(err)
	}
	return read(t, string(text))
}

func read(t *testing.T, text string) map[string]*batch.Result {
	t.Helper()
	found := map[string]*batch.Result{}
	for line := range strings.Lines(text) {
		r := &batch.Result{}
		if err := json.Unmarshal([]byte(line), r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if found[r.Name] != nil {
			t.Errorf("%s has two results", r.Name)
		}
		found[r.Name] = r
	}
	return found
}

// right compares what a batch wrote with what export writes for the same models.
func right(t *testing.T, dir, out string, n int) {
	t.Helper()
	found := results(t, out)
	if len(found) != n+1 {
		t.Errorf("%d results, want %d", len(found), n+1)
	}
	for i := 1; i <= n; i++ {
		name := fmt.Sprintf("model%03d", i)
		r := found[name]
		if r == nil || r.Status != batch.OK || len(r.Outputs) != 1 || r.Outputs[0].Name != name+".onnx" {
			t.Errorf("%s: %+v", name, r)
			continue
		}
		got, err := os.ReadFile(filepath.Join(out, name+".onnx"))
		if err != nil {
			t.Error(err)
		}
		var want, said bytes.Buffer
		if status := Main([]string{"export", filepath.Join(dir, name+".ir"), "-o", "-"}, nil, &want, &said); status != 0 {
			t.Fatal(said.String())
		}
		if !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s: the file is not what export writes", name)
		}
	}
	r := found["refused"]
	if r == nil || r.Status != batch.Refused || len(r.Diagnostics) != 1 || r.Diagnostics[0].ID != "unsupported-op" || r.Diagnostics[0].Line != 7 {
		t.Errorf("refused: %+v", r)
	}
	if temporary, _ := filepath.Glob(filepath.Join(out, ".*.tmp")); len(temporary) != 0 {
		t.Errorf("half-written: %v", temporary)
	}
}

func TestBatch(t *testing.T) {
	dir, out := models(t, 3), t.TempDir()
	c := program(t, "batch", dir, "-o", out, "--json", "--no-cache")
	var stderr strings.Builder
	c.Stderr = &stderr
	text, err := c.Output()
	if err == nil {
		t.Error("the exit status tells nothing of the model that is refused")
	}
	if found := read(t, string(text)); len(found) != 4 {
		t.Errorf("%d lines on standard output", len(found))
	}
	if want := "4 models: 3 ok, 1 refused\n       1 unsupported-op\n"; !strings.HasPrefix(stderr.String(), want) {
		t.Errorf("%s", stderr.String())
	}
	right(t, dir, out, 3)
}

// The three commands do what they do by themselves.
func TestDo(t *testing.T) {
	t.Setenv(asAton, "1")
	dir := models(t, 2)
	for _, args := range [][]string{{"--do", "check"}, {"--do", "verify", "--random", "1", "--device", "sim"}} {
		out := t.TempDir()
		var stdout, stderr bytes.Buffer
		if status := Main(append([]string{"batch", dir, "-o", out, "--no-cache"}, args...), nil, &stdout, &stderr); status != 1 {
			t.Errorf("%v: status %d: %s", args, status, stderr.String())
		}
		for name, r := range results(t, out) {
			if want := map[bool]batch.Status{true: batch.Refused, false: batch.OK}[name == "refused"]; r.Status != want || len(r.Outputs) != 0 {
				t.Errorf("%v: %s: %+v", args, name, r)
			}
		}
	}
}

// A number that is not as expected is a failure of its own kind.
func TestDiffers(t *testing.T) {
	t.Setenv(asAton, "1")
	fixtures, err := filepath.Abs("../../../../testdata/fixtures/torch2.15")
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for name, tolerance := range map[string]float64{"right": 1e-4, "exact": 0} {
		text, err := json.Marshal(map[string]any{"name": name, "model": fixtures + "/convnet.script.pt", "data": fixtures + "/convnet.script.safetensors",
			"input": "x:f32[N,3,18,18]", "rtol": tolerance, "atol": tolerance})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(text, '\n'))
	}
	out := t.TempDir()
	manifest := filepath.Join(t.TempDir(), "m.jsonl")
	if err := os.WriteFile(manifest, []byte(lines.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if status := Main([]string{"batch", manifest, "-o", out, "--do", "verify", "--no-cache"}, nil, &said, &said); status != 1 {
		t.Errorf("status %d: %s", status, said.String())
	}
	found := results(t, out)
	if r := found["right"]; r.Status != batch.OK {
		t.Errorf("%+v", r)
	}
	if r := found["exact"]; r.Status != batch.Failed || !slices.ContainsFunc(r.Diagnostics, func(p cli.Problem) bool { return p.ID == "differs" }) {
		t.Errorf("%+v", r)
	}
}

// A wrong call is told before anything is done.
func TestMisuse(t *testing.T) {
	dir := models(t, 1)
	manifest := filepath.Join(t.TempDir(), "m.jsonl")
	if err := os.WriteFile(manifest, []byte("{\"model\": \""+filepath.ToSlash(dir)+"/model001.ir\"}\n{\"model\": \"x\"}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"batch":                                               "takes one manifest or folder",
		"batch " + dir:                                        "-o is missing",
		"batch " + dir + "x -o o":                             "no such file",
		"batch " + manifest + " -o o":                         "m.jsonl:2: ",
		"batch " + dir + " -o o --do inspect":                 "export, check or verify",
		"batch " + dir + " -o o --opset x":                    "--opset",
		"batch " + dir + " -o o --sarif x":                    "unknown flag: --sarif",
		"batch " + dir + " -o o --do check --output-names y":  `check has no option "output-names"`,
		"batch " + dir + " -o o --tries 0":                    "--tries",
		"batch " + dir + " -o o --jobs 0":                     "give --queue or --listen",
		"batch " + dir + " -o o --memory much":                "--memory must be a number of bytes",
		"batch " + dir + " -o o --listen :0 --queue nats://h": "--listen and --queue are mutually exclusive",
		"worker":                                 "--queue is missing",
		"worker --queue nats://h --jobs 0":       "--jobs",
		"worker --queue nats://h --queue-cert c": "go together",
	} {
		t.Chdir(t.TempDir())
		var out bytes.Buffer
		if status := Main(strings.Fields(args), nil, &out, &out); status != 2 || !strings.Contains(out.String(), want) {
			t.Errorf("aton %s: status %d: %s", args, status, out.String())
		}
		if left, _ := os.ReadDir("."); len(left) != 0 {
			t.Errorf("aton %s: left behind: %v", args, left)
		}
	}
}

// Every option that names a file is known to batch as one, so that workers judge its path; options that write are withheld.
func TestOptionsWithFiles(t *testing.T) {
	file := regexp.MustCompile("`[A-Z]*(FILE|FOLDER|MODEL|DIR)`|a file|this file|folder")
	for _, do := range []string{"export", "check", "verify"} {
		single.CommandFlags(do).VisitAll(func(f *pflag.Flag) {
			inFile := slices.Contains([]string{"external-data", "no-weights", "modules-as-functions"}, f.Name) // about the file that is written
			if file.MatchString(f.Usage) && !inFile && !batch.IsPath(f.Name) {
				t.Errorf("%s --%s: %s", do, f.Name, f.Usage)
			}
		})
	}
}

// A batch that is killed again and again goes on, does nothing twice, and leaves nothing half-written.
func TestKilledBatch(t *testing.T) {
	const n = 40
	dir, out := models(t, n), t.TempDir()
	args := []string{"batch", dir, "-o", out, "--no-cache", "--ack-wait", "1s"}
	lines := func() int {
		text, _ := os.ReadFile(filepath.Join(out, batch.Results))
		return bytes.Count(text, []byte("\n"))
	}
	for kills := range 4 {
		c := program(t, args...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for began := time.Now(); lines() < (kills+1)*n/8 && time.Since(began) < time.Minute; {
			time.Sleep(2 * time.Millisecond)
		}
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	before := lines()
	if before == 0 || before > n {
		t.Fatalf("%d of %d models are done after the kills", before, n)
	}
	text, err := program(t, append(args, "--json")...).Output()
	if err == nil {
		t.Error("the exit status tells nothing of the model that is refused")
	}
	right(t, dir, out, n)
	if now := len(read(t, string(text))); now > n+1-before+1 { // the line that was half-written
		t.Errorf("%d models are done again of %d that were done", now+before-n-1, before)
	}
}

// Three workers, of which one is killed again and again: nothing is lost, nothing comes twice, and all files are whole.
func TestKilledWorkers(t *testing.T) {
	const n, most = 100, 20 // models, and kills: on a slow machine no worker would live for as long as a model takes
	dir, out, work := models(t, n), t.TempDir(), t.TempDir()
	server, err := batch.StartServer(t.TempDir(), batch.Listen{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	address, token := server.Listening()
	queue := []string{"--queue", address, "--queue-token-file", token, "--no-cache"}
	start := func() *exec.Cmd {
		c := program(t, append([]string{"worker", "--root", dir, "--work", work, "--jobs", "1"}, queue...)...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	workers := []*exec.Cmd{start(), start(), start()}
	ended := make(chan error, 1)
	var text []byte
	go func() {
		var err error
		text, err = program(t, append([]string{"batch", dir, "-o", out, "--jobs", "0", "--ack-wait", "2s", "--json", "--tries", fmt.Sprint(2 * most)}, queue...)...).Output()
		ended <- err
	}()
	kills := 0
	for tick, going := time.NewTicker(time.Second), true; going; {
		select {
		case <-tick.C:
			if kills == most {
				continue
			}
			victim := workers[kills%len(workers)]
			_ = victim.Process.Kill()
			_ = victim.Wait()
			workers[kills%len(workers)] = start()
			kills++
		case <-ended:
			going = false
		case <-time.After(3 * time.Minute):
			t.Fatal("it does not end")
		}
	}
	for _, w := range workers {
		_ = w.Process.Kill()
		_ = w.Wait()
	}
	if found := read(t, string(text)); len(found) != n+1 {
		t.Errorf("%d results came in", len(found))
	}
	right(t, dir, out, n)
	tries := 0
	for _, r := range results(t, out) {
		tries += r.Tries
	}
	t.Logf("%d kills, %d models, %d tries", kills, n+1, tries)
}

// TestPage runs the commands of docs/batch.md, in its order, and compares what they print with what the page shows, but for the time.
func TestPage(t *testing.T) {
	t.Setenv(asAton, "1")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	page, err := os.ReadFile("../../../../docs/batch.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	put := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("models", 0o777); err != nil {
		t.Fatal(err)
	}
	for name, operator := range map[string]string{"small": "relu", "wide": "sigmoid", "deep": "tanh", "refused": "no_such_operator"} {
		put("models/"+name+".ir", "graph(%x : Float(2, 640)):\n  %y : Float(2, 640) = aten::"+operator+"(%x) # net.py:7:3\n  return (%y)\n")
	}
	put("wrong.jsonl", "{\"model\": \"models/small.ir\"}\n{\"model\": \"models/deep.ir\", \"opste\": 13}\n")
	seconds := regexp.MustCompile(`\d+\.\d s\n`)
	commands := 0
	for i, part := range strings.Split(string(page), "```") {
		kind, body, _ := strings.Cut(part, "\n")
		switch {
		case i%2 == 0:
		case kind == "json":
			put("models.jsonl", body)
		case kind == "console":
			for _, command := range strings.Split("\n"+body, "\n$ ")[1:] {
				commands++
				line, want, _ := strings.Cut(command, "\n")
				var out bytes.Buffer
				Main(strings.Fields(line)[1:], nil, &out, &out)
				got := seconds.ReplaceAllString(strings.TrimSpace(out.String())+"\n", "0.0 s\n")
				if want := seconds.ReplaceAllString(strings.TrimSpace(want)+"\n", "0.0 s\n"); got != want {
					t.Errorf("%s prints\n%s", line, got)
				}
			}
		}
	}
	if commands < 7 {
		t.Errorf("the page has %d commands", commands)
	}
}
