package sim_test

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/internal/gputest"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

var (
	bracket    = regexp.MustCompile(`\[(%rd\d+|[a-z_]+)(\+\d+)?\]`)
	comparison = regexp.MustCompile(`setp\.(\w+)\.`)
	branch     = regexp.MustCompile(`@(!?)(%p\d+) bra`)
	wide       = regexp.MustCompile(`(ld|st|atom)\.\w+(?:\.nc)?(?:\.v(\d))?(?:\.\w+)?\.[a-z](\d+)`)
)

// mutate plants a fault of a kind in a line of PTX, and says what it did; "" if there is no place for it.
func mutate(line, kind string) (changed, what string) {
	op := strings.TrimSpace(line)
	switch kind {
	case "barrier":
		if strings.HasPrefix(op, "bar.sync") {
			return "", "without the barrier"
		}
	case "index": // of an access, by one element
		m := wide.FindStringSubmatch(op)
		at := bracket.FindStringSubmatch(op)
		if m == nil || at == nil || strings.Contains(op, ".param") || strings.Contains(op, "cp.async") {
			break
		}
		size, _ := strconv.Atoi(m[3])
		n, _ := strconv.Atoi(max(m[2], "1"))
		off, _ := strconv.Atoi(strings.TrimPrefix(at[2], "+"))
		return strings.Replace(line, at[0], fmt.Sprintf("[%s+%d]", at[1], off+n*size/8), 1), "index + 1 in " + op
	case "predicate":
		if m := comparison.FindStringSubmatch(op); m != nil {
			other := map[string]string{"lt": "ge", "ge": "lt", "eq": "ne", "ne": "eq", "gt": "le", "le": "gt"}[m[1]]
			if other != "" && !strings.Contains(op, ".f") {
				return strings.Replace(line, "setp."+m[1], "setp."+other, 1), "the other of " + op
			}
		}
	case "branch":
		if m := branch.FindStringSubmatch(op); m != nil {
			not := map[string]string{"": "!", "!": ""}[m[1]]
			return strings.Replace(line, m[0], "@"+not+m[2]+" bra", 1), "the other way at " + op
		}
	}
	return "", ""
}

// survivors are the mutants that no check can tell from the original, by kernel, line and what was done, each with its reason.
var survivors = map[string]string{
	"softmax, line 263: without the barrier": "nothing uses the shared memory after it",
}

// Faults planted in PTX are found, by the checks or by the numbers.
func TestMutation(t *testing.T) {
	cases := []gputest.Case{gputest.AddRelu(203, 2), gputest.Softmax(9, 150), gputest.Gemm(66, 65, 17), gputest.WarpSum(5, 40), gputest.Local(),
		gputest.Histogram(), gputest.Dynamic(), gputest.Diverge(), gputest.BoolOps()}
	total, found := 0, 0
	byKind := map[sim.FaultKind]int{}
	for _, c := range cases {
		lines := strings.Split(texts(t, c)[0], "\n")
		for _, kind := range []string{"barrier", "index", "predicate", "branch"} {
			for i, line := range lines {
				changed, what := mutate(line, kind)
				if what == "" {
					continue
				}
				total++
				name := fmt.Sprintf("%s, line %d: %s", c.Name, i+1, what)
				lines[i] = changed
				how := caught(t, c, strings.Join(lines, "\n"))
				lines[i] = line
				switch {
				case how != "":
					byKind[how]++
					found++
					if survivors[name] != "" {
						t.Errorf("%s is found now: %s", name, how)
					}
				case survivors[name] == "":
					t.Errorf("not found: %s", name)
				}
			}
		}
	}
	t.Logf("%d of %d mutants found: %v", found, total, byKind)
	if total < 250 || found*100 < total*95 {
		t.Errorf("%d of %d mutants found", found, total)
	}
}

// caught says how a wrong kernel shows: the fault, or "results".
func caught(t *testing.T, c gputest.Case, text string) sim.FaultKind {
	t.Helper()
	args := c.Args()
	_, err := read(t, text).Run(sim.Launch{Grid: c.Grid, Block: c.Block, Dynamic: c.Shared, Args: args, Check: true, Steps: 1 << 16})
	var fault *sim.Fault
	switch {
	case errors.As(err, &fault):
		return fault.Kind
	case err != nil:
		t.Fatal(err)
	case c.Verify(args) != nil:
		return "results"
	}
	return ""
}
