package specialize

import (
	"iter"
	"maps"
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/internal/python"
	"github.com/aton-project/aton/passes/specialize/internal/view"
	"github.com/aton-project/aton/ssa"
)

// Kinds lists the operators that the pass itself gives meaning to, in
// alphabetical order: those on containers, numbers, types and shapes, views, and
// those that write. They are the keys of the tables by which the pass finds its
// functions.
func Kinds() []ssa.Kind {
	kinds := map[ssa.Kind]bool{"prim::If": true, "prim::Loop": true, "prim::CallFunction": true, "prim::CallMethod": true, "aten::divmod": true, "aten::as_strided": true}
	for _, table := range []map[ssa.Kind]handler{primOps, queries, tensorQueries, nestedOps} {
		for k := range table {
			kinds[k] = true
		}
	}
	for _, names := range []iter.Seq[string]{maps.Keys(listOps), maps.Keys(dictOps), maps.Keys(tupleOps), maps.Keys(constOps),
		maps.Keys(objectOps), maps.Keys(contentOps), slices.Values(python.Names())} {
		for name := range names {
			if k := ssa.Kind("aten::" + name); aten.Schemas(k) != nil {
				kinds[k] = true
			}
		}
	}
	for _, k := range view.Kinds() {
		if r := view.Of(k); r.Missing == "" || r.Inverse != nil {
			kinds[k] = true
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}
