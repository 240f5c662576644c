package cmd

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

const program = fixtures + "convnet.pt2"

// explore writes a page and pictures; what cannot be converted has a page as well, and an exit status that says so.
func TestExplore(t *testing.T) {
	dir := t.TempDir()
	page, svg, dot := filepath.Join(dir, "m.html"), filepath.Join(dir, "m.svg"), filepath.Join(dir, "m.dot")
	if status, _, stderr := call("", "explore", program, "--html", page, "--svg", svg, "--dot", dot, "--random"); status != 0 {
		t.Fatal(stderr)
	}
	for name, want := range map[string]string{page: "<!doctype html>", svg: "<svg ", dot: "digraph"} {
		if b, err := os.ReadFile(name); err != nil || !strings.HasPrefix(string(b), want) {
			t.Errorf("%s begins with %.20q, %v", name, b, err)
		}
	}
	refused := "graph(%x : Float(2)):\n  %y : Tensor = my::own(%x)\n  return (%y)\n"
	status, stdout, stderr := call(refused, "explore", "-", "--html", "-")
	if status != 1 || !strings.HasPrefix(stdout, "<!doctype html>") || !strings.Contains(stderr, "my::own") {
		t.Errorf("a refused model: status %d, %s", status, stderr)
	}
	for _, args := range [][]string{
		{"--random"}, {"--html", page, "--random", "--data", "x"}, {"--svg", "-", "--dot", "-"}, {"--html", page, "--port", "1"}, {"--size", "N=0"}, {"--json"},
	} {
		if status, _, stderr := call("", append([]string{"explore", program}, args...)...); status != 2 {
			t.Errorf("%v: status %d, %s", args, status, stderr)
		}
	}
	if status, _, stderr := call("", "explore", filepath.Join(dir, "none.pt"), "--html", page); status != 1 || !strings.Contains(stderr, "check the path of the model") {
		t.Errorf("a file that is not there: status %d, %s", status, stderr)
	}
}

// The token is in no word of a program that is started: other users see these.
func TestTokenIsNoWord(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the program that shows an address is another one")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "tmp"))
	t.Setenv("PATH", dir)
	said := filepath.Join(dir, "said")
	script := "#!/bin/sh\necho \"$@\" > " + said + ".part\n/bin/mv " + said + ".part " + said + "\n"
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "tmp"), 0o777), os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	const url = "http://127.0.0.1:7/0123456789abcdef/"
	remove, err := openBrowser(url)
	if err != nil {
		t.Fatal(err)
	}
	var words []byte
	for began := time.Now(); words == nil && time.Since(began) < 10*time.Second; time.Sleep(10 * time.Millisecond) {
		words, _ = os.ReadFile(said)
	}
	page := strings.TrimSpace(string(words))
	text, err := os.ReadFile(page)
	if err != nil || strings.Contains(page, "0123456789abcdef") || !strings.Contains(string(text), "0;url="+url) {
		t.Errorf("%q: %s, %v", page, text, err)
	}
	for _, path := range []string{page, filepath.Dir(page)} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: others may look into it: %v, %v", path, info.Mode(), err)
		}
	}
	remove()
	if left, err := os.ReadDir(filepath.Join(dir, "tmp")); len(left) > 0 {
		t.Error(left, err)
	}
}

// The page is served at the address that is printed, until the context ends.
func TestExploreServes(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	c := New()
	c.SetArgs([]string{"explore", program, "--no-open"})
	c.SetOut(w)
	c.SetErr(io.Discard)
	ended := make(chan error, 1)
	go func() { ended <- c.ExecuteContext(ctx) }()
	line := make([]byte, 200)
	n, err := r.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Get(strings.TrimSpace(string(line[:n])))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Error(answer.Status)
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it does not end")
	}
}
