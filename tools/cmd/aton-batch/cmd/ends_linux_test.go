package cmd

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aton-project/aton/tools/lib/batch"
)

// soon runs a command that has to end, and gives its exit status and what it said.
func soon(t *testing.T, c *exec.Cmd, within time.Duration) (status int, said string) {
	t.Helper()
	var out lockedBuffer
	c.Stdout, c.Stderr = io.MultiWriter(&out), &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = c.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(within):
		_ = c.Process.Kill()
		<-ended
		t.Errorf("%v does not end: %s", c.Args[1:], out.tail())
	}
	return c.ProcessState.ExitCode(), out.String()
}

// small gives a disk with some room, or skips the test.
func small(t *testing.T, room int64) *disk {
	t.Helper()
	d := mount(t.TempDir(), room)
	if d == nil {
		t.Skip("this user may make no file system")
	}
	t.Cleanup(d.unmount)
	return d
}

// A batch whose disk is full says which one it is, and ends with the results that it has; with room it goes on.
func TestFullOutput(t *testing.T) {
	dir, want := heavy(t, 30, 20_000)
	d := small(t, 3<<19)
	out := filepath.Join(d.at, "out")
	args := []string{"batch", dir, "-o", out, "--no-cache", "--jobs", "2"}
	status, said := soon(t, program(t, args...), time.Minute)
	if status != 1 || !strings.Contains(said, d.at) || !strings.Contains(said, "takes nothing more") || !strings.Contains(said, " ok") {
		t.Errorf("status %d: %s", status, said)
	}
	if n := len(results(t, out)); n == 0 || n == len(want) {
		t.Errorf("%d results", n)
	}
	d.grow(64 << 20)
	if status, said := soon(t, program(t, args...), time.Minute); status != 0 {
		t.Errorf("status %d: %s", status, said)
	}
	complete(t, out, want)
}

// A cache that is full, not writable or nowhere is told, and the models are converted.
func TestFullCache(t *testing.T) {
	dir, want := heavy(t, 10, 20_000)
	d := small(t, 200<<10)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for name, environment := range map[string][]string{
		"full": {"XDG_CACHE_HOME=" + d.at, "HOME=" + d.at}, "not writable": {"HOME=" + file, "XDG_CACHE_HOME="}, "nowhere": {"HOME=", "XDG_CACHE_HOME="},
	} {
		out := t.TempDir()
		c := program(t, "batch", dir, "-o", out, "--jobs", "2")
		c.Env = append(c.Env, environment...)
		status, said := soon(t, c, time.Minute)
		if status != 0 || strings.Count(said, "warning: ") != 1 || !strings.Contains(said, "cache") {
			t.Errorf("%s: status %d: %s", name, status, said)
		}
		complete(t, out, want)
	}
}

// A worker whose disk is full says so and ends, and its models go to another one.
func TestFullWorker(t *testing.T) {
	dir, want := heavy(t, 10, 20_000)
	d := small(t, 40<<10)
	s, err := batch.StartServer(t.TempDir(), batch.Listen{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	address, token := s.Listening()
	queue := []string{"--queue", address, "--queue-token-file", token, "--no-cache"}
	out := t.TempDir()
	whole := program(t, append([]string{"batch", dir, "-o", out, "--jobs", "0", "--ack-wait", "2s", "--tries", "20"}, queue...)...)
	if err := whole.Start(); err != nil {
		t.Fatal(err)
	}
	status, said := soon(t, program(t, append([]string{"worker", "--root", dir, "--work", d.at, "--jobs", "2"}, queue...)...), time.Minute)
	if status != 1 || !strings.Contains(said, d.at) || !strings.Contains(said, "takes nothing more") {
		t.Errorf("status %d: %s", status, said)
	}
	other := program(t, append([]string{"worker", "--root", dir, "--work", t.TempDir(), "--jobs", "2"}, queue...)...)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if err := whole.Wait(); err != nil {
		t.Error(err)
	}
	_ = other.Process.Kill()
	_ = other.Wait()
	complete(t, out, want)
}

// A server elsewhere that is full, or gone, is named, without what lets workers in; the batch ends and goes on later.
func TestServerElsewhere(t *testing.T) {
	dir, want := heavy(t, 12, 20_000)
	for _, what := range []string{"full", "gone"} {
		t.Run(what, func(t *testing.T) {
			d := small(t, 64<<20)
			address := freePort(t)
			store := filepath.Join(d.at, "queue")
			start := func() *batch.Server {
				s, err := batch.StartServer(store, batch.Listen{Address: address})
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			s := start()
			_, tokenFile := s.Listening()
			text, err := os.ReadFile(tokenFile)
			if err != nil {
				t.Fatal(err)
			}
			token, out := strings.TrimSpace(string(text)), t.TempDir()
			args := []string{"batch", dir, "-o", out, "--jobs", "2", "--no-cache", "--queue", "nats://" + token + "@" + address, "--queue-timeout", "3s", "--ack-wait", "2s"}
			if what == "full" {
				d.fill()
			} else {
				args = append(args, "--upload")
				go func() {
					time.Sleep(time.Second)
					s.Close()
				}()
				args = append(args, "--jobs", "0") // nothing comes
			}
			status, said := soon(t, program(t, args...), 2*time.Minute)
			if status != 1 || !strings.Contains(said, address) || strings.Contains(said, token) {
				t.Errorf("status %d: %s", status, said)
			}
			if what == "full" {
				d.empty()
				s.Close()
			}
			s = start()
			defer s.Close()
			if status, said := soon(t, program(t, append(args, "--jobs", "2")...), 2*time.Minute); status != 0 {
				t.Errorf("status %d: %s", status, said)
			}
			complete(t, out, want)
		})
	}
}

// A port that is in use is told, and so are addresses that there are not.
func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := models(t, 1)
	for address, want := range map[string]string{l.Addr().String(): "address already in use", "256.0.0.1:1": "does not start", "127.0.0.1:70000": "the port is no number", "nowhere": "it is HOST:PORT"} {
		began := time.Now()
		status, said := soon(t, program(t, "batch", dir, "-o", t.TempDir(), "--no-cache", "--listen", address), time.Minute)
		if status != 1 || !strings.Contains(said, want) || time.Since(began) > 20*time.Second {
			t.Errorf("%s: status %d after %v: %s", address, status, time.Since(began), said)
		}
	}
}

// A worker that was suspended for longer than it may be silent brings nothing twice.
func TestSuspended(t *testing.T) {
	const n = 20
	dir, out := models(t, n), t.TempDir()
	s, err := batch.StartServer(t.TempDir(), batch.Listen{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	address, token := s.Listening()
	queue := []string{"--queue", address, "--queue-token-file", token, "--no-cache"}
	var workers []*exec.Cmd
	for range 2 {
		w := program(t, append([]string{"worker", "--root", dir, "--work", t.TempDir(), "--jobs", "1"}, queue...)...)
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		workers = append(workers, w)
		defer func() {
			_ = w.Process.Kill()
			_ = w.Wait()
		}()
	}
	go func() {
		time.Sleep(300 * time.Millisecond)
		suspend(workers[0])
		time.Sleep(4 * time.Second)
		resume(workers[0])
	}()
	status, said := soon(t, program(t, append([]string{"batch", dir, "-o", out, "--jobs", "0", "--ack-wait", "1s", "--tries", "10"}, queue...)...), 2*time.Minute)
	if status != 1 || strings.Contains(said, "not taken") { // one model is refused
		t.Errorf("status %d: %s", status, said)
	}
	right(t, dir, out, n)
}

// nobody is another user than the superuser.
const nobody = 65534

// asNobody runs the program as another user, with a home of its own, from a folder that all may enter.
func asNobody(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := program(t, args...)
	shared := open(t)
	text, err := os.ReadFile(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	c.Path = filepath.Join(shared, "aton")
	if err := os.WriteFile(c.Path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(shared, "home")
	if err := errors.Join(os.Mkdir(home, 0o700), os.Chown(home, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	c.Dir, c.Env = home, append(c.Env, "HOME="+home, "XDG_CACHE_HOME=")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return c
}

// open is a folder that all users may enter and read; what a test has else is its user's.
func open(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only the superuser can be another user")
	}
	dir, err := os.MkdirTemp("", "aton-open-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A folder that may not be entered or written is named.
func TestFoldersWithoutExec(t *testing.T) {
	shared := open(t)
	if err := os.CopyFS(filepath.Join(shared, "models"), os.DirFS(models(t, 1))); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"closed": 0o600, "dark": 0o666, "read-only": 0o555} {
		at := filepath.Join(shared, name)
		if err := errors.Join(os.Mkdir(at, 0o700), os.Chown(at, nobody, nobody), os.Chmod(at, mode)); err != nil {
			t.Fatal(err)
		}
		status, said := soon(t, asNobody(t, "batch", filepath.Join(shared, "models"), "-o", filepath.Join(at, "out"), "--no-cache"), time.Minute)
		if status == 0 || !strings.Contains(said, name) || !strings.Contains(said, "permission denied") {
			t.Errorf("%s: status %d: %s", name, status, said)
		}
	}
}

// Nothing is run from the folders for outputs, the cache and temporary files: they may be on a file system without programs.
func TestNoExec(t *testing.T) {
	dir, want := heavy(t, 5, 1000)
	d := small(t, 64<<20)
	if err := d.withoutExec(); err != nil {
		t.Skip(err)
	}
	script := filepath.Join(d.at, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil || exec.Command(script).Run() == nil {
		t.Fatalf("the file system runs programs: %v", err)
	}
	out := filepath.Join(d.at, "out")
	c := program(t, "batch", dir, "-o", out, "--jobs", "2", "--cache", filepath.Join(d.at, "cache"))
	c.Env = append(c.Env, "TMPDIR="+d.at)
	if status, said := soon(t, c, time.Minute); status != 0 {
		t.Errorf("status %d: %s", status, said)
	}
	complete(t, out, want)
}

// Two users of one machine have workers of one batch and a folder for temporary files in common, and nothing else: neither gets at the folders
// of the other one, whose batch it cannot go on with.
func TestTwoUsers(t *testing.T) {
	const n = 30
	shared := open(t)
	temporary := filepath.Join(shared, "tmp")
	if err := errors.Join(os.CopyFS(filepath.Join(shared, "models"), os.DirFS(models(t, n))), os.Mkdir(temporary, 0o700), os.Chmod(temporary, 0o777|os.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(shared, "models")
	s, err := batch.StartServer(t.TempDir(), batch.Listen{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	address, token := s.Listening()
	text, err := os.ReadFile(token)
	if err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(shared, "token") // as it was given to the other user
	if err := errors.Join(os.WriteFile(theirs, text, 0o600), os.Chown(theirs, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	worker := []string{"worker", "--root", dir, "--jobs", "1", "--queue", address, "--queue-token-file"}
	for _, w := range []*exec.Cmd{program(t, append(worker, token)...), asNobody(t, append(worker, theirs)...)} {
		var said lockedBuffer
		w.Env, w.Stderr = append(w.Env, "TMPDIR="+temporary), &said
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = w.Process.Kill()
			_ = w.Wait()
			if said.String() != "" {
				t.Error(said.String())
			}
		}()
	}
	homes := func() (owners []int) {
		found, _ := filepath.Glob(filepath.Join(temporary, "aton-worker-*"))
		for _, home := range found {
			if info, err := os.Stat(home); err == nil && info.Mode().Perm() == 0o700 {
				owners = append(owners, int(info.Sys().(*syscall.Stat_t).Uid))
			}
		}
		slices.Sort(owners)
		return owners
	}
	for deadline := time.Now().Add(time.Minute); len(homes()) < 2 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
	}
	if got := homes(); !slices.Equal(got, []int{0, nobody}) {
		t.Errorf("folders of the users %v", got)
	}
	out := filepath.Join(shared, "out")
	args := []string{"batch", dir, "-o", out, "--queue", address, "--queue-token-file"}
	if status, said := soon(t, program(t, append(args, token, "--jobs", "0", "--ack-wait", "2s")...), 2*time.Minute); status != 1 { // one model is refused
		t.Errorf("status %d: %s", status, said)
	}
	right(t, dir, out, n)
	status, said := soon(t, asNobody(t, append(args, theirs)...), time.Minute)
	if status != 1 || !strings.Contains(said, filepath.Join(out, ".aton")) || !strings.Contains(said, "permission denied") {
		t.Errorf("the folder of another user: status %d: %s", status, said)
	}
}

// grow gives the file system another size.
func (d *disk) grow(bytes int64) {
	d.remount(fmt.Sprint("size=", bytes))
}
