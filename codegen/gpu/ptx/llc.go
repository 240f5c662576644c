package ptx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/llir/llvm/ir"
)

// LLC is LLVM's code generator, found on this machine.
type LLC struct {
	Path  string
	Major int // version
}

// ErrNoLLC says that there is no llc; Print does without.
var ErrNoLLC = errors.New("no llc of LLVM 14 or later: install Debian's llvm-14, or name one in ATON_LLC")

const (
	oldestLLC = 14
	newestLLC = 30
	llcTime   = 60 * time.Second
)

// FindLLC gives the llc to use: $ATON_LLC, llc, or the newest of llc-14 and later on PATH.
func FindLLC() (LLC, error) {
	all := AllLLC()
	if len(all) == 0 {
		return LLC{}, ErrNoLLC
	}
	return all[0], nil
}

// AllLLC gives one llc for each version of LLVM from 14 on: $ATON_LLC and llc first, then by falling version.
func AllLLC() []LLC {
	names := []string{"llc"}
	if s := os.Getenv("ATON_LLC"); s != "" {
		names = []string{s, "llc"}
	}
	for v := newestLLC; v >= oldestLLC; v-- {
		names = append(names, fmt.Sprintf("llc-%d", v))
	}
	var out []LLC
	seen := map[int]bool{}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		v, err := llcVersion(path)
		if err != nil || v < oldestLLC || seen[v] {
			continue
		}
		seen[v] = true
		out = append(out, LLC{path, v})
	}
	return out
}

func llcVersion(path string) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), llcTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(out), "LLVM version ")
	if !ok {
		return 0, fmt.Errorf("%s names no version", path)
	}
	major, _, _ := strings.Cut(rest, ".")
	return strconv.Atoi(major)
}

// Compile lowers the module. The error holds what llc wrote. PTX that calls functions is refused: it would mean that an
// intrinsic was not known, which llc does not report.
func (l LLC) Compile(m *ir.Module, o Options) (string, error) {
	o = o.filled()
	ctx, cancel := context.WithTimeout(context.Background(), llcTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.Path, "-O3", "-march=nvptx64", "-mcpu="+o.Target, "-mattr=+ptx"+strings.ReplaceAll(o.Version, ".", ""), "-o", "-")
	cmd.Stdin = strings.NewReader(m.String())
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s (LLVM %d): %w: %s", l.Path, l.Major, err, strings.TrimSpace(errs.String()))
	}
	for i, line := range strings.Split(out.String(), "\n") {
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(line, ".extern .func") || word == "call" || strings.HasPrefix(word, "call.") || strings.HasPrefix(word, "call\t") {
			return "", fmt.Errorf("%s (LLVM %d): line %d calls a function: %s", l.Path, l.Major, i+1, strings.TrimSpace(line))
		}
	}
	return out.String(), nil
}
