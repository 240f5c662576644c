// Package typename asks for types of this module by name.
package typename

import "go/types"

const module = "github.com/aton-project/aton/"

// Is reports that t, or what it points to, is a type of a package of this module, whose path is given from the root on.
func Is(t types.Type, pkg, name string) bool {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := t.(*types.Named)
	return ok && n.Obj().Name() == name && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == module+pkg
}
