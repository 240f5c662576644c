// Package profile reads the coverage profiles that go test -coverprofile writes.
package profile

import (
	"bufio"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
)

// Block is a run of statements without a branch in it.
type Block struct {
	// Place is FILE:LINE.COLUMN,LINE.COLUMN, with the import path of the file's package.
	Place      string
	Statements int
	Hit        bool
}

// Package is the import path.
func (b Block) Package() string { return path.Dir(b.File()) }

// File is the import path of the package and the name of the file.
func (b Block) File() string {
	file, _, _ := strings.Cut(b.Place, ":")
	return file
}

// Read reads a profile in which a block may stand many times, once for each test program that has it: a block is hit
// if any of them hit it.
func Read(name string) ([]Block, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var blocks []Block
	at := map[string]int{}
	s := bufio.NewScanner(f)
	for n := 1; s.Scan(); n++ {
		line := s.Text()
		if strings.HasPrefix(line, "mode:") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("%s:%d: %q is no block", name, n, line)
		}
		statements, err := strconv.Atoi(fields[1])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		hit := fields[2] != "0"
		i, ok := at[fields[0]]
		if !ok {
			i = len(blocks)
			at[fields[0]] = i
			blocks = append(blocks, Block{Place: strings.Clone(fields[0]), Statements: statements})
		}
		blocks[i].Hit = blocks[i].Hit || hit
	}
	return blocks, s.Err()
}
