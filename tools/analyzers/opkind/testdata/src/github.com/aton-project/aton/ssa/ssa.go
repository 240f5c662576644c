// Package ssa stands for the real one.
package ssa

type Kind string
type Attr struct{}
