package cmd

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
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
