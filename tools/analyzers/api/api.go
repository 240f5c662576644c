// Package api lists the exported API of the packages that COMPATIBILITY.md makes a promise for, one line a name, in the form of the files in
// the folder api of Go itself. Its test compares the list with api.txt, which a change of the API changes too:
//
//	go test ./tools/analyzers/api -update
package api

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Promised are the packages with a promise, relative to the module.
var Promised = []string{".", "./ssa", "./ssa/diag", "./ssa/rewrite", "./ssa/sym", "./ssa/tensor", "./passes", "./passes/all",
	"./dialects/aten", "./dialects/aten/rules", "./dialects/onnx", "./dialects/prim",
	"./frontend/spec", "./backend/onnxfile", "./backend/interp", "./backend/eager", "./verify"}

// Lines returns the API of packages, which the paths name relative to a folder, sorted.
func Lines(dir string, patterns ...string) ([]string, error) {
	list, err := packages.Load(&packages.Config{Mode: packages.LoadTypes, Dir: dir}, patterns...)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, p := range list {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		if strings.Contains(p.PkgPath, "/internal/") {
			continue
		}
		l := lister{p.Types, &lines}
		scope := p.Types.Scope()
		for _, name := range scope.Names() {
			if o := scope.Lookup(name); o.Exported() {
				l.object(o)
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

type lister struct {
	pkg   *types.Package
	lines *[]string
}

func (l lister) add(format string, args ...any) {
	*l.lines = append(*l.lines, "pkg "+l.pkg.Path()+", "+fmt.Sprintf(format, args...))
}

// typ writes a type. Names of this package have no prefix, those of others that of their package.
func (l lister) typ(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == l.pkg {
			return ""
		}
		return p.Name()
	})
}

func (l lister) signature(s *types.Signature) string {
	tuple := func(t *types.Tuple, variadic bool) string {
		parts := make([]string, t.Len())
		for i := range parts {
			parts[i] = l.typ(t.At(i).Type())
			if variadic && i == len(parts)-1 {
				parts[i] = "..." + strings.TrimPrefix(parts[i], "[]")
			}
		}
		return strings.Join(parts, ", ")
	}
	text := "(" + tuple(s.Params(), s.Variadic()) + ")"
	switch s.Results().Len() {
	case 0:
	case 1:
		text += " " + tuple(s.Results(), false)
	default:
		text += " (" + tuple(s.Results(), false) + ")"
	}
	return text
}

func (l lister) object(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		l.add("const %s %s", o.Name(), l.typ(o.Type()))
	case *types.Var:
		l.add("var %s %s", o.Name(), l.typ(o.Type()))
	case *types.Func:
		l.add("func %s%s", o.Name(), l.signature(o.Signature()))
	case *types.TypeName:
		l.typeName(o)
	}
}

func (l lister) typeName(o *types.TypeName) {
	if o.IsAlias() {
		l.add("type %s = %s", o.Name(), l.typ(types.Unalias(o.Type())))
		return
	}
	switch u := o.Type().Underlying().(type) {
	case *types.Struct:
		l.add("type %s struct", o.Name())
		for i := range u.NumFields() {
			if f := u.Field(i); f.Exported() {
				l.add("type %s struct, %s %s", o.Name(), f.Name(), l.typ(f.Type()))
			}
		}
	case *types.Interface:
		l.add("type %s interface", o.Name())
		for i := range u.NumMethods() {
			if m := u.Method(i); m.Exported() {
				l.add("type %s interface, %s%s", o.Name(), m.Name(), l.signature(m.Signature()))
			}
		}
	default:
		l.add("type %s %s", o.Name(), l.typ(u))
	}
	methods := types.NewMethodSet(types.NewPointer(o.Type()))
	for i := range methods.Len() {
		f, ok := methods.At(i).Obj().(*types.Func)
		if !ok || !f.Exported() || types.IsInterface(o.Type()) {
			continue
		}
		l.add("method (%s) %s%s", l.typ(f.Signature().Recv().Type()), f.Name(), l.signature(f.Signature()))
	}
}
