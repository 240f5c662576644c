// Package rewrite stands for the real one.
package rewrite

type Rule struct{ Name, From, To string }
