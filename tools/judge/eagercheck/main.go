// Command eagercheck runs recorded cases in the eager evaluator, as frontends import them, and compares what comes out with what PyTorch
// gave.
//
//	go run ./tools/judge/eagercheck -cases DIR [-suites script,indexing,nn,opinfo] [-filter RE] [-formats model.pt,model.pt2] [-least 99.5]
//
// DIR holds suites of cases (tools/lib/cases). It lists the cases that differ or that are refused by their cause, and fails if fewer percent
// are equal than -least says.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/aton-project/aton/tools/lib/cases"
)

func main() {
	dir := flag.String("cases", "out/cases", "folder of suites of cases")
	suites := flag.String("suites", "script,indexing,nn,opinfo", "which suites")
	formats := flag.String("formats", "model.pt,model.pt2", "which forms of the programs")
	filter := flag.String("filter", "", "regular expression over SUITE/CASE")
	least := flag.Float64("least", 0, "fail if fewer percent are equal")
	verbose := flag.Bool("v", false, "list every case that is not equal")
	slow := flag.Duration("slow", 0, "list cases that take longer")
	flag.Parse()
	re, err := regexp.Compile(*filter)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	equal, total := 0, 0
	causes := map[string][]string{}
	for _, suite := range strings.Split(*suites, ",") {
		folders, err := filepath.Glob(filepath.Join(*dir, suite, "*", "case.json"))
		if err != nil || len(folders) == 0 {
			fmt.Fprintf(os.Stderr, "%s: no cases\n", filepath.Join(*dir, suite))
			os.Exit(2)
		}
		for _, f := range strings.Split(*formats, ",") {
			good, all := 0, 0
			for _, folder := range folders {
				name := suite + "/" + filepath.Base(filepath.Dir(folder))
				if !re.MatchString(name) {
					continue
				}
				c, err := cases.Read(filepath.Dir(folder))
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(2)
				}
				if !c.Has(cases.Format(f)) {
					continue
				}
				all++
				began := time.Now()
				err = c.RunEager(cases.Format(f))
				if d := time.Since(began); *slow > 0 && d > *slow {
					fmt.Printf("%s %s: %v\n", name, f, d)
				}
				if err == nil {
					good++
					continue
				}
				why := cause(err)
				causes[why] = append(causes[why], name+" "+f)
				if *verbose {
					fmt.Printf("%s %s: %v\n", name, f, err)
				}
			}
			if all > 0 {
				fmt.Printf("%-9s %-9s %5d of %5d equal\n", suite, f, good, all)
			}
			equal, total = equal+good, total+all
		}
	}
	names := make([]string, 0, len(causes))
	for n := range causes {
		names = append(names, n)
	}
	sort.Slice(names, func(i, j int) bool {
		if a, b := len(causes[names[i]]), len(causes[names[j]]); a != b {
			return a > b
		}
		return names[i] < names[j]
	})
	for _, n := range names {
		slices.Sort(causes[n])
		fmt.Printf("%5d %s (%s)\n", len(causes[n]), n, causes[n][0])
	}
	share := 100 * float64(equal) / float64(max(total, 1))
	fmt.Printf("%d of %d equal: %.2f %%\n", equal, total, share)
	if share < *least {
		os.Exit(1)
	}
}

var number = regexp.MustCompile(`[-+]?[0-9][-+.0-9einfa]*`)

// cause is an error without what only this case has in it.
func cause(err error) string {
	var r *cases.Refusal
	text := err.Error()
	if errors.As(err, &r) {
		text = r.Reason.Error()
	}
	text, _, _ = strings.Cut(text, "\n")
	if _, rest, ok := strings.Cut(text, ": error: "); ok {
		text = rest
	}
	if strings.Contains(text, " elements differ, ") {
		return "other numbers"
	}
	text = number.ReplaceAllString(text, "N")
	if len(text) > 150 {
		text = text[:150]
	}
	return text
}
