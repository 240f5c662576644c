// Package markdown finds the blocks of code in the pages of this repository, for tests that run what a page shows.
package markdown

import (
	"os"
	"strings"
)

// Block is a fenced block. Kind is what stands behind the fence, such as go or console.
type Block struct {
	Kind, Text string
	Line       int // of the fence
}

// Blocks lists the fenced blocks of a page.
func Blocks(path string) ([]Block, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []Block
	parts := strings.Split(string(text), "```")
	for i := 1; i < len(parts); i += 2 {
		kind, body, _ := strings.Cut(parts[i], "\n")
		out = append(out, Block{kind, body, strings.Count(strings.Join(parts[:i], ""), "\n") + 1})
	}
	return out, nil
}
