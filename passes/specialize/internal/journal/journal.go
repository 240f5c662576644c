// Package journal has the places that a program can write to, and the record of
// what was written to them.
//
// A program is evaluated along several paths: both branches of an If, the rounds
// in which a loop looks for its types, attempts that come to nothing. Each path
// begins at a Mark. Rewind ends a path that the target program has too: contents
// are again what they were at the mark, and the caller gets what the path made of
// them, to be joined with other paths. Rollback ends a path that never was: all
// is as it was at the mark, what is known of cells included.
package journal

import (
	"cmp"
	"maps"
	"slices"
)

// Cell is a place that the program can write to. Its content is immutable: a
// write replaces it.
type Cell struct {
	id      int
	content any
}

// ID numbers cells in the order in which they are made. Cells of what was there
// before the program ran, weights and attributes, have negative numbers.
func (c *Cell) ID() int { return c.id }

// Content is what the cell holds now.
func (c *Cell) Content() any { return c.content }

// Loose makes a cell that no journal knows of: it holds its content for good.
func Loose(content any) *Cell { return &Cell{content: content} }

// Journal makes cells and records the writes to them. The zero value is empty.
type Journal struct {
	cells, stateCells int
	before            bool
	writes            []write
	facts             []func()
}

type write struct {
	c   *Cell
	old any
}

// Mark is a moment to which a journal can go back.
type Mark struct {
	writes, facts int
	// Last is the ID of the newest cell that is not of the module's state.
	Last int
}

// Changes are the contents that a path left in the cells that it wrote to.
type Changes map[*Cell]any

// New makes a cell.
func (j *Journal) New(content any) *Cell {
	if j.before {
		j.stateCells++
		return &Cell{id: -j.stateCells, content: content}
	}
	j.cells++
	return &Cell{id: j.cells, content: content}
}

// AsBefore runs f with cells that count as older than all marks: the state of
// the module is filled in when it is first read, which may be in a branch.
func (j *Journal) AsBefore(f func()) {
	saved := j.before
	j.before = true
	defer func() { j.before = saved }()
	f()
}

// Set writes a cell.
func (j *Journal) Set(c *Cell, content any) {
	j.writes = append(j.writes, write{c, c.content})
	c.content = content
}

// Learn records that something became known outside of the cells, such as that
// two of them may share memory, and how to forget it. A Rewind keeps it, since it
// holds of the target program; a Rollback forgets it. What is learned of the
// module's state is never forgotten.
func (j *Journal) Learn(forget func()) {
	if !j.before {
		j.facts = append(j.facts, forget)
	}
}

// Mark is the present moment.
func (j *Journal) Mark() Mark { return Mark{len(j.writes), len(j.facts), j.cells} }

// Rewind takes back all writes since a mark, and gives the last contents of the
// cells that were written.
func (j *Journal) Rewind(m Mark) Changes {
	last := Changes{}
	for i := len(j.writes) - 1; i >= m.writes; i-- {
		w := j.writes[i]
		if _, seen := last[w.c]; !seen {
			last[w.c] = w.c.content
		}
		w.c.content = w.old
	}
	j.writes = j.writes[:m.writes]
	return last
}

// Rollback takes back all that happened since a mark.
func (j *Journal) Rollback(m Mark) {
	j.Rewind(m)
	for i := len(j.facts) - 1; i >= m.facts; i-- {
		j.facts[i]()
	}
	j.facts = j.facts[:m.facts]
}

// Of is the content of a cell at the end of a path.
func (ch Changes) Of(c *Cell) any {
	if x, ok := ch[c]; ok {
		return x
	}
	return c.content
}

// Under runs f as if the changes were in force.
func (ch Changes) Under(f func()) {
	saved := make(Changes, len(ch))
	for c, content := range ch {
		saved[c] = c.content
		c.content = content
	}
	defer func() {
		for c, content := range saved {
			c.content = content
		}
	}()
	f()
}

// Ordered lists the cells of a map from the oldest to the newest.
func Ordered[V any](cells map[*Cell]V) []*Cell {
	return slices.SortedFunc(maps.Keys(cells), func(a, b *Cell) int { return cmp.Compare(a.id, b.id) })
}
