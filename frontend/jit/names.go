package jit

import (
	"sort"

	"github.com/aton-project/aton/frontend/jit/pyast"
)

func sortedKeys(m map[string]bool) []string {
	ks := make([]string, 0, len(m))
	for k := range m {
		ks = append(ks, k)
	}
	sort.Strings(ks)
	return ks
}

// freeNames gathers the names that statements read.
func freeNames(body []pyast.Stmt, names map[string]bool) {
	for _, st := range body {
		switch st := st.(type) {
		case *pyast.Assign:
			exprNames(st.Value, names)
			for _, t := range st.Targets {
				if _, plain := t.(*pyast.Name); !plain || st.Op != "" {
					exprNames(t, names)
				}
			}
		case *pyast.ExprStmt:
			exprNames(st.X, names)
		case *pyast.Return:
			exprNames(st.X, names)
		case *pyast.If:
			exprNames(st.Cond, names)
			freeNames(st.Then, names)
			freeNames(st.Else, names)
		case *pyast.For:
			exprNames(st.Iter, names)
			freeNames(st.Body, names)
		case *pyast.While:
			exprNames(st.Cond, names)
			freeNames(st.Body, names)
		case *pyast.With:
			exprNames(st.X, names)
			freeNames(st.Body, names)
		case *pyast.Def:
			freeNames(st.Body, names)
		}
	}
}

func exprNames(e pyast.Expr, names map[string]bool) {
	list := func(es []pyast.Expr) {
		for _, x := range es {
			exprNames(x, names)
		}
	}
	switch e := e.(type) {
	case *pyast.Name:
		names[e.ID] = true
	case *pyast.Attr:
		exprNames(e.X, names)
	case *pyast.Call:
		exprNames(e.Fn, names)
		for _, a := range e.Args {
			exprNames(a.Value, names)
		}
	case *pyast.Index:
		exprNames(e.X, names)
		list(e.Items)
	case *pyast.Slice:
		exprNames(e.Lo, names)
		exprNames(e.Hi, names)
		exprNames(e.Step, names)
	case *pyast.Tuple:
		list(e.Elems)
	case *pyast.List:
		list(e.Elems)
	case *pyast.Dict:
		list(e.Keys)
		list(e.Values)
	case *pyast.Unary:
		exprNames(e.X, names)
	case *pyast.Binary:
		exprNames(e.X, names)
		exprNames(e.Y, names)
	case *pyast.Cond:
		exprNames(e.If, names)
		exprNames(e.Then, names)
		exprNames(e.Else, names)
	}
}
