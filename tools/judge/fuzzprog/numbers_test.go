package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/frontend/spec"
)

// integer is a number in the code of an archive.
var integer = regexp.MustCompile(`[\[( ]-?[0-9]+\b`)

// Sizes, places and counts that no machine has: each number of the programs of testdata, one at a time, is one of these. None brings an
// export down, takes more than the limits of this tool or writes sizes that there are not. All of them take 20 minutes:
//
//	NUMBERS=all go test -run TestNumbers -timeout 1h ./tools/judge/fuzzprog
func TestNumbers(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(maxMemory * 3 / 4))
	c, err := readCorpus("../../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	each := 31
	if os.Getenv("NUMBERS") == "all" {
		each = 1
	}
	n, exported := 0, 0
	for _, s := range c.sources[".pt"] {
		var in []spec.Input
		for _, text := range s.specs {
			i, err := spec.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			in = append(in, i)
		}
		for k := range len(integer.FindAllIndex(codeOf(s.data), -1)) {
			for _, number := range []string{"4611686018427387904", "-4611686018427387904", "2147483648"} {
				if n++; n%each != 0 {
					continue
				}
				data, line := withNumber(t, s.data, k, number)
				began := time.Now()
				said := exportBytes(data, in)
				took, memory := time.Since(began), used()
				if said == "" {
					exported++
				}
				for _, bad := range []string{"internal error", "runtime error", "would not be valid"} {
					if strings.Contains(said, bad) {
						t.Errorf("%s: %s: %s", s.name, line, said)
					}
				}
				if took > time.Minute || memory > maxMemory {
					t.Errorf("%s: %s: it takes %v and %d MB", s.name, line, took, memory>>20)
				}
				if memory > maxMemory/4 {
					debug.FreeOSMemory()
				}
			}
		}
	}
	t.Logf("%d programs, of which %d are written", n/each, exported)
}

// isCode reports that a record of an archive is code.
func isCode(name string) bool { return strings.HasSuffix(name, ".py") }

// codeOf is the first record of code of an archive, nil where there is none.
func codeOf(archive []byte) (code []byte) {
	if _, err := changed(archive, isCode, func(int) int { return 0 }, func(b []byte) []byte { code = b; return b }); err != nil {
		return nil
	}
	return code
}

// withNumber is an archive with another number for number k of its first record of code, and the line where it stood.
func withNumber(t *testing.T, archive []byte, k int, number string) (out []byte, line string) {
	t.Helper()
	out, err := changed(archive, isCode, func(int) int { return 0 }, func(b []byte) []byte {
		at := integer.FindAllIndex(b, -1)[k]
		text := fmt.Sprintf("%s%s%s", b[:at[0]+1], number, b[at[1]:])
		line, _, _ = strings.Cut(text[strings.LastIndex(text[:at[0]], "\n")+1:], "\n")
		return []byte(text)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, strings.TrimSpace(line)
}

// exportBytes exports an archive and gives what is said of it, "" if it is written.
func exportBytes(data []byte, in []spec.Input) string {
	m, err := aton.LoadBytes(data, "program.pt", aton.LoadOptions{Inputs: in})
	if err == nil {
		err = aton.ExportTo(io.Discard, m, aton.ExportOptions{})
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
