package batch

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A manifest that anybody may have written is refused before anything is done, if it would write over something, read what is no file, or
// take more than there is.
func TestHostileManifests(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000)
	for name, c := range map[string]struct{ lines, want string }{
		"a path as a name":              {`{"model": "a.pt", "name": "../a"}`, "no file can have the name"},
		"an absolute name":              {`{"model": "a.pt", "name": "/etc/a"}`, "no file can have the name"},
		"a hidden name":                 {`{"model": "a.pt", "name": ".aton/queue/token"}`, "no file can have the name"},
		"a name with a drive":           {`{"model": "a.pt", "name": "c:a"}`, "no file can have the name"},
		"a name with a backslash":       {`{"model": "a.pt", "name": "..\\a"}`, "no file can have the name"},
		"a name with a line break":      {`{"model": "a.pt", "name": "a\nb"}`, "no file can have the name"},
		"a name that turns text around": {`{"model": "a.pt", "name": "a\u202exnno"}`, "no file can have the name"},
		"a name that steers a terminal": {`{"model": "a.pt", "name": "a\u001b[2J\u009b"}`, "no file can have the name"},
		"a name with a zero":            {`{"model": "a.pt", "name": "a\u0000"}`, "no file can have the name"},
		"a name that is too long":       {`{"model": "a.pt", "name": "` + strings.Repeat("a", 300) + `"}`, "no file can have the name"},
		"a name of too many folders":    {`{"model": "a.pt", "name": "` + strings.Repeat("a/", 3000) + `a"}`, "the name has 6001 bytes"},
		"a model that would be lost":    {`{"model": "a.pt", "name": "given"}`, "would replace the data of a model"},
		"two names of one file":         {`{"model": "a.pt", "name": "one/x"}` + "\n" + `{"model": "a.pt", "name": "link/x"}`, "would be written to one file"},
		"a file that is a folder":       {`{"model": "a.pt", "name": "x"}` + "\n" + `{"model": "a.pt", "name": "x.onnx/y"}`, "one would be a file where the other one needs a folder"},
		"the results as a folder":       {`{"model": "a.pt", "name": "results.jsonl/x"}`, "is the file of results"},
		"a pipe as a model":             {`{"model": "pipe.pt"}`, "is no file"},
		"a device as a model":           {`{"model": "/dev/zero"}`, "is no file"},
		"a pipe in an option":           {`{"model": "a.pt", "weights": "pipe.pt"}`, "neither a file nor a folder"},
		"a folder with a pipe":          {`{"model": "a.pt", "weights": "pipes"}`, "neither a file nor a folder"},
		"folders in a circle":           {`{"model": "a.pt", "weights": "circle"}`, "circle"},
		"an option twice":               {`{"model": "a.pt", "opset": 13, "opset": 17}`, `"opset" is given twice`},
		"a model twice":                 {`{"model": "a.pt", "model": "/etc/passwd"}`, `"model" is given twice`},
		"an option that writes":         {`{"model": "a.pt", "output": "/tmp/x"}`, `has no option "output"`},
		"an option in an option":        {`{"model": "a.pt", "opset=1 --output": "/tmp/x"}`, "has no option"},
		"objects in objects":            {deep, "this is no JSON object"},
		"a line without an end":         {`{"model": "` + strings.Repeat("a", longestLine) + `"}`, "the line has more than"},
		"bytes that are no text":        {"{\"model\": \"a\xff.pt\"}", "the line is not UTF-8"},
		"a number that is none":         {`{"model": "a.pt", "opset": 1e999999999}`, "opset"},
		"no object":                     {`"model"`, "this is no JSON object"},
		"a URL of files":                {`{"model": "file:///etc/passwd"}`, "no such file"},
		"a URL without a host":          {`{"model": "https:///etc/passwd"}`, "the URL is not well-formed"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			dir := t.TempDir()
			put := func(name, text string) {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			put("a.pt", "a")
			put("m.jsonl", c.lines+"\n")
			put("out/one/file", "")
			put("with.onnx", external1("given.onnx"))
			put("out/given.onnx", "weights of another model")
			link := func(to, name string) {
				if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
					t.Skip(err)
				}
			}
			link("one", "out/link")
			link("out/given.onnx", "given.onnx")
			if err := os.Mkdir(filepath.Join(dir, "circle"), 0o777); err != nil {
				t.Fatal(err)
			}
			link("../circle", "circle/again")
			if err := pipe(filepath.Join(dir, "pipe.pt")); err != nil && strings.Contains(name, "pipe") {
				t.Skip(err)
			}
			if err := os.Mkdir(filepath.Join(dir, "pipes"), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := pipe(filepath.Join(dir, "pipes/pipe")); err != nil && strings.Contains(name, "pipe") {
				t.Skip(err)
			}
			manifest := filepath.Join(dir, "m.jsonl")
			if name == "a model that would be lost" {
				put("m.jsonl", `{"model": "with.onnx", "name": "kept"}`+"\n"+c.lines+"\n")
			}
			ended := make(chan error, 1)
			go func() {
				_, err := NewPlan(commands, Request{Models: manifest, Out: filepath.Join(dir, "out"), Do: "export", Build: "1"})
				ended <- err
			}()
			select {
			case err := <-ended:
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%.300v, want %s", err, c.want)
				}
				if err != nil && len(err.Error()) > 8<<10 {
					t.Errorf("the message has %d bytes", len(err.Error()))
				}
			case <-time.After(20 * time.Second):
				t.Error("it waits")
			}
			if text, err := os.ReadFile(filepath.Join(dir, "out/given.onnx")); err != nil || string(text) != "weights of another model" {
				t.Error(string(text), err)
			}
		})
	}
}

// A manifest is a file: what has no end is not read.
func TestManifestIsAFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no /dev/zero")
	}
	if _, err := NewPlan(commands, Request{Models: "/dev/zero", Out: t.TempDir(), Do: "export"}); err == nil || !strings.Contains(err.Error(), "neither a file nor a folder") {
		t.Error(err)
	}
}

// Names that differ in their case alone are two files, unless the folder takes no notice of it.
func TestCapitalLetters(t *testing.T) {
	for _, names := range [][2]string{{"Net", "net"}, {"caf\u00e9", "cafe\u0301"}, {"a/Caf\u00c9", "a/cafe\u0301"}} {
		_, err := planOf(t, `{"model": "a.pt", "name": "`+names[0]+`"}`+"\n"+`{"model": "b.pt", "name": "`+names[1]+`"}`+"\n")
		if one := oneName(t.TempDir(), names[0]+".onnx", names[1]+".onnx"); one != (err != nil) {
			t.Errorf("the folder takes %q for one: %v; %v", names, one, err)
		}
	}
	if dir := t.TempDir(); oneName(dir, "a/b", "a/c") || !oneName(filepath.Join(dir, "later"), "a/b", "a/b") {
		t.Error("other names are one, or the same ones are not")
	}
}

// Windows has devices that a file cannot be called by, and drops dots and spaces behind a name.
func TestWindowsNames(t *testing.T) {
	for name, want := range map[string]bool{"net": true, "connection": true, "con": false, "CON.net": false, "Aux": false, "com1": false, "com10": true, "lpt9.x": false, "net.": false, "net ": false, "a<b": false, "nul .x": false} {
		if windowsName(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

// A path as Windows spells it is told what is wrong with it elsewhere.
func TestForeignPaths(t *testing.T) {
	if filepath.Separator != '/' {
		t.Skip("a system that has such paths")
	}
	for _, path := range []string{`d\\c.pt`, `C:\\models\\a.pt`, `\\\\server\\share\\a.pt`} {
		if _, err := planOf(t, `{"model": "`+path+`"}`); err == nil || !strings.Contains(err.Error(), "separated by /") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A hundred thousand lines are planned in seconds.
func TestLongManifest(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 10_000
	}
	dir := t.TempDir()
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `{"model": "a%d.pt", "name": "net%d/x", "input": "x:f32[N,%d]", "opset": 17}`+"\n", i%100, i, i)
	}
	for i := range 100 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("a%d.pt", i)), []byte("a"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	manifest := filepath.Join(dir, "m.jsonl")
	if err := os.WriteFile(manifest, []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	text.Reset()
	runtime.GC()
	began := time.Now()
	p, err := NewPlan(commands, Request{Models: manifest, Out: filepath.Join(dir, "out"), Do: "export", Build: "1"})
	if err != nil || len(p.Items) != n {
		t.Fatal(err)
	}
	took := time.Since(began) // 4 s on two cores with other work
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	t.Logf("%d lines: %.1f s, %d MB of memory from the system", n, took.Seconds(), after.Sys>>20)
	if after.Sys > 300<<20 || took > time.Minute {
		t.Errorf("%.1f s, %d MB", took.Seconds(), after.Sys>>20)
	}
}
