package main

import (
	"cmp"
	"fmt"
	"go/types"
	"maps"
	"slices"

	"golang.org/x/tools/go/packages"
)

// arrowsBack counts the arrows between the files of a package, from each file to those that declare what it uses, and how many of them run back: to
// an earlier file in the order in which the fewest do, as near as the greedy method of Eades, Lin and Smyth comes to it.
func arrowsBack(root, pattern string) (back, all int, err error) {
	mode := packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedExportFile
	pkgs, err := packages.Load(&packages.Config{Mode: mode, Dir: root}, pattern)
	if err != nil {
		return 0, 0, err
	}
	if len(pkgs) != 1 || len(pkgs[0].Errors) > 0 {
		return 0, 0, fmt.Errorf("%s: %v", pattern, pkgs)
	}
	p := pkgs[0]
	file := func(o types.Object) string { return p.Fset.Position(o.Pos()).Filename }
	to := map[string]map[string]bool{}
	for _, f := range p.Syntax {
		to[p.Fset.Position(f.Pos()).Filename] = map[string]bool{}
	}
	for id, o := range p.TypesInfo.Uses {
		if o.Pkg() != p.Types {
			continue
		}
		from, target := p.Fset.Position(id.Pos()).Filename, file(o)
		if from != target && !to[from][target] {
			to[from][target] = true
			all++
		}
	}
	place := map[string]int{}
	for i, f := range order(to) {
		place[f] = i
	}
	for f, targets := range to {
		for t := range targets {
			if place[t] < place[f] {
				back++
			}
		}
	}
	return back, all, nil
}

// order puts the nodes of a graph in a row, such that few arrows run back.
func order(to map[string]map[string]bool) []string {
	left := map[string]bool{}
	for f := range to {
		left[f] = true
	}
	degrees := func(f string) (in, out int) {
		for g := range left {
			if to[g][f] {
				in++
			}
			if to[f][g] {
				out++
			}
		}
		return in, out
	}
	var first, last []string
	for len(left) > 0 {
		names := slices.Sorted(maps.Keys(left))
		slices.SortStableFunc(names, func(a, b string) int {
			inA, outA := degrees(a)
			inB, outB := degrees(b)
			return cmp.Compare(outB-inB, outA-inA)
		})
		pick := names[0]
		sink := slices.IndexFunc(names, func(f string) bool { _, out := degrees(f); return out == 0 })
		source := slices.IndexFunc(names, func(f string) bool { in, _ := degrees(f); return in == 0 })
		switch {
		case sink >= 0:
			pick = names[sink]
			last = append(last, pick)
		case source >= 0:
			pick = names[source]
			first = append(first, pick)
		default:
			first = append(first, pick)
		}
		delete(left, pick)
	}
	slices.Reverse(last)
	return append(first, last...)
}
