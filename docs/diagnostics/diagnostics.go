// Package diagnostics has a page for each identifier that a message may carry: what it means, why it is so, and what to do.
// The pages are part of the commands: aton explain prints them.
package diagnostics

import (
	"embed"
	"slices"
	"strings"
	"sync"
)

//go:embed *.md
var pages embed.FS

// Page is the page of an identifier, in Markdown; ok is false for one that there is not.
func Page(id string) (text string, ok bool) {
	if strings.ContainsAny(id, `/\`) {
		return "", false
	}
	b, err := pages.ReadFile(id + ".md")
	return string(b), err == nil
}

// IDs lists the identifiers in alphabetical order.
func IDs() []string { return slices.Clone(ids()) }

var ids = sync.OnceValue(func() []string {
	entries, err := pages.ReadDir(".")
	if err != nil {
		panic(err) // the folder is embedded
	}
	ids := make([]string, len(entries))
	for i, e := range entries {
		ids[i] = strings.TrimSuffix(e.Name(), ".md")
	}
	slices.Sort(ids)
	return ids
})

// Title is the sentence that a page begins with, behind the identifier; empty where there is no page.
func Title(id string) string {
	text, _ := Page(id)
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimPrefix(line, "# "+id+": ")
}
