package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testsOf  = regexp.MustCompile("`([^`]+)` ((?:Test[A-Za-z0-9]+)(?:, Test[A-Za-z0-9]+)*)")
	sections = []string{"What is trusted", "Limits", "Work from a queue", "The explorer's page", "Files that are written"}
)

// TestSecurity holds that each promise of SECURITY.md, a row of a table, names tests, and that there are these tests.
func TestSecurity(t *testing.T) {
	text, err := os.ReadFile("../../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, complaint := range promises(string(text)) {
		t.Error(complaint)
	}
	// the test can fail
	for _, bad := range []string{
		strings.Replace(string(text), "TestPrivateFolder", "TestNoSuch", 1),
		strings.Replace(string(text), "`tools/cmd/aton-batch/cmd` TestTwoUsers; `tools/lib/batch` TestPrivateFolder", "", 1),
		strings.Replace(string(text), "## Files that are written", "## Other files", 1),
		strings.Replace(string(text), "| promise | tests |\n|---|---|\n| `aton explore`", "| `aton explore`", 1),
	} {
		if bad == string(text) || len(promises(bad)) == 0 {
			t.Error("a promise without a test is not noticed")
		}
	}
}

// promises lists what is wrong with the tables of promises.
func promises(text string) (complaints []string) {
	rows := map[string]int{}
	section, tested := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch title, ok := strings.CutPrefix(line, "## "); {
		case ok:
			section, tested = title, false
			continue
		case !strings.HasPrefix(line, "|"):
			tested = false
			continue
		case slices.Contains(sections, section) && strings.HasSuffix(line, "| tests |"):
			tested = true
			continue
		case !tested || strings.HasPrefix(line, "|---"):
			continue
		}
		rows[section]++
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		found := testsOf.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(found) == 0 {
			complaints = append(complaints, "no test: "+line)
		}
		for _, f := range found {
			for _, name := range strings.Split(f[2], ", ") {
				if !hasTest(f[1], name) {
					complaints = append(complaints, f[1]+" has no "+name)
				}
			}
		}
	}
	for _, s := range sections {
		if rows[s] == 0 {
			complaints = append(complaints, "the section has no promise: "+s)
		}
	}
	return complaints
}

func hasTest(pkg, name string) bool {
	files, err := filepath.Glob(filepath.Join("../../..", pkg, "*_test.go"))
	if err != nil {
		return false
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), "\nfunc "+name+"(t *testing.T) {") {
			return true
		}
	}
	return false
}
