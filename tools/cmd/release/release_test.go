package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

var at = time.Unix(1_700_000_000, 0).UTC()

func TestDocuments(t *testing.T) {
	docs, err := documents("v1.2.3", at)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"completions/aton.bash":     "__start_aton",
		"completions/_aton":         "#compdef aton",
		"completions/aton.fish":     "complete -c aton",
		"completions/aton.ps1":      "Register-ArgumentCompleter",
		"completions/aton-opt.bash": "__start_aton-opt",
		"man/man1/aton.1":           "aton v1.2.3",
		"man/man1/aton-export.1":    "opset",
		"man/man1/aton-opt.1":       "print-changed",
	} {
		i := slices.IndexFunc(docs, func(f file) bool { return f.name == name })
		if i < 0 {
			t.Errorf("%s is missing", name)
		} else if !bytes.Contains(docs[i].data, []byte(want)) {
			t.Errorf("%s does not have %q", name, want)
		}
	}
	again, _ := documents("v1.2.3", at)
	if !slices.EqualFunc(docs, again, func(a, b file) bool { return a.name == b.name && bytes.Equal(a.data, b.data) }) {
		t.Error("two times, two texts")
	}
}

func TestArchives(t *testing.T) {
	files := []file{{"b/run", 0o755, []byte("program")}, {"a", 0o644, []byte("text")}}
	for _, c := range []struct {
		os, name string
		read     func(*testing.T, []byte) map[string]string
	}{{"linux", "x.tar.gz", readTar}, {"windows", "x.zip", readZip}} {
		var written [2][]byte
		for i := range written {
			r := release{out: t.TempDir(), time: at}
			if err := r.archive(target{c.os, "amd64"}, "x", files); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(r.out, c.name))
			if err != nil {
				t.Fatal(err)
			}
			written[i] = b
			slices.Reverse(files) // the order of the archive is that of the names
		}
		if !bytes.Equal(written[0], written[1]) {
			t.Errorf("%s: two archives of the same files differ", c.name)
		}
		if got := c.read(t, written[0]); len(got) != 2 || got["x/a"] != "text" || got["x/b/run"] != "program" {
			t.Errorf("%s holds %v", c.name, got)
		}
	}
}

func readTar(t *testing.T, b []byte) map[string]string {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(at) || h.Uid != 0 || (strings.HasSuffix(h.Name, "run") != (h.Mode&0o111 != 0)) {
			t.Errorf("%s: %v, user %d, mode %o", h.Name, h.ModTime, h.Uid, h.Mode)
		}
		text, _ := io.ReadAll(r)
		out[h.Name] = string(text)
	}
}

func readZip(t *testing.T, b []byte) map[string]string {
	r, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range r.File {
		part, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(part)
		out[f.Name] = string(text)
	}
	return out
}

func TestDebianFiles(t *testing.T) {
	docs, err := documents("v1.2.3", at)
	if err != nil {
		t.Fatal(err)
	}
	got := debianFiles([]file{{"aton", 0o755, nil}}, []file{{"LICENSE", 0o644, nil}}, docs)
	for _, name := range []string{"/usr/bin/aton", "/usr/share/doc/aton/copyright", "/usr/share/man/man1/aton-export.1.gz", "/usr/share/bash-completion/completions/aton",
		"/usr/share/zsh/vendor-completions/_aton", "/usr/share/fish/vendor_completions.d/aton.fish"} {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
}

// TestOneTarget builds a release for this machine, twice, and looks at what is in it. It takes minutes where nothing has been built yet.
func TestOneTarget(t *testing.T) {
	t.Setenv("ATON_VERSION", "v1.2.3-rc.1")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	var folders [2]string
	for i := range folders {
		folders[i] = t.TempDir()
		r := release{top: "../../..", out: filepath.Join(folders[i], "out"), work: filepath.Join(folders[i], "work")}
		if err := r.run("linux/amd64"); err != nil {
			t.Fatal(err)
		}
	}
	first, second := os.DirFS(filepath.Join(folders[0], "out")), os.DirFS(filepath.Join(folders[1], "out"))
	names := []string{"SHA256SUMS", "aton_1.2.3-rc.1_linux_amd64.cdx.json", "aton_1.2.3-rc.1_linux_amd64.tar.gz", "aton_1.2.3~rc.1_amd64.deb"}
	for _, name := range names {
		a, b := read(t, first, name), read(t, second, name)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: two builds differ", name)
		}
	}
	var bom struct {
		BOMFormat  string `json:"bomFormat"`
		Components []struct{ Name, Version, Purl string }
	}
	if err := json.Unmarshal(read(t, first, names[1]), &bom); err != nil {
		t.Fatal(err)
	}
	parts := map[string]bool{}
	for _, c := range bom.Components {
		parts[c.Name] = c.Version != "" && strings.HasPrefix(c.Purl, "pkg:golang/")
	}
	if bom.BOMFormat != "CycloneDX" || !parts["std"] || !parts["github.com/spf13/cobra"] || !parts["google.golang.org/protobuf"] {
		t.Errorf("the list of components has %v", parts)
	}
	sums := string(read(t, first, "SHA256SUMS"))
	if strings.Count(sums, "\n") != len(names)-1 {
		t.Errorf("SHA256SUMS is\n%s", sums)
	}
	action(t, filepath.Join(folders[0], "out"))
	said, err := exec.Command(filepath.Join(folders[0], "work", "linux-amd64", "aton"), "--version").Output()
	if err == nil && string(said) != "aton version v1.2.3-rc.1\n" { // where the machine is another one the binary does not run
		t.Errorf("--version says %q", said)
	}
}

// action runs the steps of action.yml on a release in a folder, with a stand-in for gh.
func action(t *testing.T, release string) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return
	}
	text, err := os.ReadFile("action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var a struct {
		Runs struct {
			Steps []struct{ Name, Run string }
		}
	}
	if err := yaml.Unmarshal(text, &a); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	gh := "#!/bin/sh\ncp " + release + "/aton_*_linux_amd64.* " + release + "/SHA256SUMS .\n"
	if err := os.WriteFile(filepath.Join(home, "gh"), []byte(gh), 0o755); err != nil {
		t.Fatal(err)
	}
	models, err := filepath.Abs("../../../testdata/fixtures/torch2.15")
	if err != nil {
		t.Fatal(err)
	}
	logs := filepath.Join(home, "logs")
	steps := func(models string) (string, error) {
		var said []byte
		for _, step := range a.Runs.Steps {
			c := exec.Command("bash", "-c", step.Run)
			c.Dir = home
			c.Env = append(os.Environ(), "PATH="+home+"/aton:"+home+":"+os.Getenv("PATH"), "RUNNER_OS=Linux", "RUNNER_ARCH=X64", "FOLDER="+home+"/aton", "GITHUB_PATH="+home+"/path",
				"VERSION=", "COMMAND=check", "OPTIONS=--opset 17", "MODELS="+models, "LOGS="+logs)
			out, err := c.CombinedOutput()
			if said = append(said, out...); err != nil {
				return string(said), err
			}
		}
		return string(said), nil
	}
	if said, err := steps(models + "/**/c*.pt2"); err != nil {
		t.Errorf("the action fails: %v\n%s", err, said)
	}
	if b, err := os.ReadFile(filepath.Join(logs, "1.sarif")); err != nil || !bytes.Contains(b, []byte("2.1.0")) {
		t.Errorf("the action writes no log: %v", err)
	}
	hook(t, home, models)
	if said, err := steps(models + "/nothing*"); err == nil {
		t.Errorf("the action takes a pattern that names nothing:\n%s", said)
	}
}

// hook runs the hook of pre-commit, with the aton that the action has installed, on a model that converts and on one that does not exist.
func hook(t *testing.T, home, models string) {
	text, err := os.ReadFile("../../../.pre-commit-hooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var hooks []struct{ Entry, Files string }
	if err := yaml.Unmarshal(text, &hooks); err != nil || len(hooks) != 1 {
		t.Fatalf("%v: %v", err, hooks)
	}
	if !regexp.MustCompile(hooks[0].Files).MatchString("models/net.pt2") {
		t.Errorf("the hook is for %s", hooks[0].Files)
	}
	for args, want := range map[string]bool{"convnet.pt2 residual.pt2": true, "none.pt2 convnet.pt2": false} {
		c := exec.Command("sh", "-c", hooks[0].Entry+" "+args)
		c.Dir = models
		c.Env = append(os.Environ(), "PATH="+home+"/aton:"+os.Getenv("PATH"))
		if said, err := c.CombinedOutput(); (err == nil) != want {
			t.Errorf("the hook on %s: %v\n%s", args, err, said)
		}
	}
}

func read(t *testing.T, folder fs.FS, name string) []byte {
	t.Helper()
	b, err := fs.ReadFile(folder, name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestChoose(t *testing.T) {
	if got, err := choose("windows/arm64,linux/amd64"); err != nil || len(got) != 2 || got[1].exe("aton") != "aton" || got[0].exe("aton") != "aton.exe" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := choose("plan9/386"); err == nil {
		t.Error("there are no releases for plan9/386")
	}
}
