// The command release builds what a release consists of: archives for each system with completions and manual pages, Debian packages,
// lists of components, wheels, and checksums. The same commit gives the same bytes on any machine.
//
// It is a module of its own, so that who uses aton as a library does not get the packers' modules too.
package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// commands are the programs of a release.
var commands = []string{"aton", "aton-batch", "aton-opt"}

// target is a system that a release is for.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// exe is the name of a program's file.
func (t target) exe(command string) string {
	if t.os == "windows" {
		return command + ".exe"
	}
	return command
}

var targets = []target{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

// release is one run.
type release struct {
	top     string    // the checkout
	out     string    // where the files of the release go
	work    string    // where the binaries go: a folder OS-ARCH each
	version string    // with its v: v1.2.3, or v1.2.3-4-g0123456 between two tags
	time    time.Time // that of the commit: all files have it
	python  string    // has the packages build, hatchling; empty: no wheels
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("release: ")
	var r release
	var only string
	flag.StringVar(&r.top, "top", "../../..", "the checkout")
	flag.StringVar(&r.out, "out", "out/dist", "the folder of the release, in the checkout; what is in it goes")
	flag.StringVar(&r.work, "work", "out/release", "the folder of the binaries, in the checkout")
	flag.StringVar(&r.python, "python", "", "a Python with the packages build and hatchling, for wheels; none without it")
	flag.StringVar(&only, "targets", "", "systems, such as linux/amd64,darwin/arm64 (default all)")
	flag.Parse()
	if err := r.run(only); err != nil {
		log.Fatal(err)
	}
}

func (r *release) run(only string) error {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	if err := r.prepare(); err != nil {
		return err
	}
	docs, err := documents(r.version, r.time)
	if err != nil {
		return err
	}
	for _, t := range chosen {
		log.Println(t)
		if err := r.target(t, docs); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	return r.checksums()
}

// choose finds the targets of a list; all of them if it is empty.
func choose(list string) ([]target, error) {
	if list == "" {
		return targets, nil
	}
	var out []target
	for _, name := range strings.Split(list, ",") {
		i := slices.IndexFunc(targets, func(t target) bool { return t.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("no releases are made for %q; there are %v", name, targets)
		}
		out = append(out, targets[i])
	}
	return out, nil
}

// prepare finds out what is released, and makes the folders.
func (r *release) prepare() error {
	var err error
	if r.top, err = filepath.Abs(r.top); err != nil {
		return err
	}
	for _, folder := range []*string{&r.out, &r.work} {
		if !filepath.IsAbs(*folder) {
			*folder = filepath.Join(r.top, *folder)
		}
	}
	if r.version = os.Getenv("ATON_VERSION"); r.version == "" {
		if r.version, err = r.describe(); err != nil {
			return err
		}
	}
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		if seconds, err = r.command(nil, "git", "log", "-1", "--format=%ct"); err != nil {
			return err
		}
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	r.time = time.Unix(n, 0).UTC()
	return errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o777), os.MkdirAll(r.work, 0o777))
}

// describe names the commit by the last tag before it. A tree with changes is -dirty.
func (r *release) describe() (string, error) {
	if v, err := r.command(nil, "git", "describe", "--tags", "--match", "v[0-9]*", "--dirty"); err == nil {
		return v, nil
	}
	count, err := r.command(nil, "git", "rev-list", "--count", "HEAD")
	if err != nil {
		return "", fmt.Errorf("ATON_VERSION is not set, and the version of this checkout is not known: %w", err)
	}
	hash, err := r.command(nil, "git", "describe", "--always", "--dirty")
	return "v0.0.0-" + count + "-g" + hash, err
}

// target builds all files for one system.
func (r *release) target(t target, docs []file) error {
	bin := filepath.Join(r.work, t.os+"-"+t.arch)
	env := []string{"GOOS=" + t.os, "GOARCH=" + t.arch, "CGO_ENABLED=0"}
	var binaries []file
	for _, name := range commands {
		path := filepath.Join(bin, t.exe(name))
		// Without the CUDA driver the binaries are static. The build of Go's own record of git is off: it depends on the git that is there.
		if _, err := r.command(env, "go", "build", "-trimpath", "-buildvcs=false", "-tags=nocuda",
			"-ldflags=-s -w -buildid= -X github.com/aton-project/aton/internal/version.release="+r.version, "-o", path, "./tools/cmd/"+name); err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		binaries = append(binaries, file{t.exe(name), 0o755, b})
	}
	parts, err := componentsOf(r.top, bin, t)
	if err != nil {
		return err
	}
	notices, err := parts.notices()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(bin, noticesName), notices, 0o666); err != nil {
		return err
	}
	texts, err := r.texts()
	if err != nil {
		return err
	}
	texts = append(texts, file{noticesName, 0o644, notices})
	base := fmt.Sprintf("aton_%s_%s_%s", strings.TrimPrefix(r.version, "v"), t.os, t.arch)
	list, err := parts.list(r.version, r.time)
	if err != nil {
		return err
	}
	if err := r.write(base+".cdx.json", list); err != nil {
		return err
	}
	if err := r.archive(t, base, slices.Concat(binaries, texts, docs)); err != nil {
		return err
	}
	if t.os == "linux" {
		if err := r.debian(t, binaries, texts, docs); err != nil {
			return err
		}
	}
	return r.wheel(t, bin)
}

// texts are the files of the checkout that stand beside the binaries.
func (r *release) texts() ([]file, error) {
	var out []file
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		b, err := os.ReadFile(filepath.Join(r.top, name))
		if err != nil {
			return nil, err
		}
		out = append(out, file{name, 0o644, b})
	}
	return out, nil
}

// wheel packs the binaries that were built for Python.
func (r *release) wheel(t target, bin string) error {
	if r.python == "" {
		return nil
	}
	_, err := r.command([]string{"ATON_TARGET=" + t.String(), "ATON_BINARIES=" + bin, "ATON_VERSION=" + r.version, "SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.time.Unix(), 10)},
		r.python, "-m", "build", "--wheel", "--no-isolation", "-o", r.out, "tools/cmd/python")
	return err
}

// checksums writes SHA256SUMS, in the form that sha256sum -c reads.
func (r *release) checksums() error {
	entries, err := os.ReadDir(r.out) // sorted
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(b), e.Name())
	}
	return r.write("SHA256SUMS", []byte(sums.String()))
}

func (r *release) write(name string, b []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), b, 0o666)
}

// workspace makes the Go command use the workspace of the repository, where this program itself is built without it.
const workspace = "GOWORK="

// command runs a program in the checkout, and gives what it writes.
func (r *release) command(env []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir = r.top
	c.Env = append(append(os.Environ(), workspace), env...)
	out, err := c.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("%s: %w\n%s%s", name, err, out, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// sortedKeys gives the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
