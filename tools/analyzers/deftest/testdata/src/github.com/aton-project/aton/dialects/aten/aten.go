// Package aten stands in for the real one.
package aten

// Def is a row.
type Def struct {
	Doc, Why string
}

// Defs is a table.
type Defs map[string]Def
