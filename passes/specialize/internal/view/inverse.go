package view

import (
	"math"

	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// The functions of this file are the Inverses of rows: the base after its view was replaced by v.

func itself(_ Graph, _ *heap.Step, _, v *ssa.Value) *ssa.Value { return v }

// transposedBack undoes a permutation. Operators without arguments undo themselves.
func transposedBack(g Graph, st *heap.Step, base, v *ssa.Value) *ssa.Value {
	switch {
	case len(st.Args) == 1:
		return g.EmitOp(st.Kind, st.Schema, v)[0]
	case st.Schema.Arg("dims") >= 0:
		return permutedBack(g, st, base, v)
	case st.Schema.Arg("source") >= 0:
		return movedBack(g, st, base, v)
	}
	return exchangedBack(g, st, base, v)
}

func exchangedBack(g Graph, st *heap.Step, _, v *ssa.Value) *ssa.Value {
	d0, d1 := st.Arg("dim0"), st.Arg("dim1")
	if py.IsNone(d0) {
		d0, d1 = st.Arg("axis0"), st.Arg("axis1")
	}
	return g.Emit("aten::transpose.int", v, d0, d1)
}

func permutedBack(g Graph, st *heap.Step, _, v *ssa.Value) *ssa.Value {
	dims, ok := py.LiteralOf(st.Arg("dims"))
	perm, isList := dims.IntList()
	if !ok || !isList {
		return nil
	}
	inv := make([]int64, len(perm))
	for i, p := range perm {
		d, ok := wrapDim(p, len(perm))
		if !ok {
			return nil
		}
		inv[d] = int64(i)
	}
	return g.Emit("aten::permute", v, inv)
}

func movedBack(g Graph, st *heap.Step, _, v *ssa.Value) *ssa.Value {
	ends := g.Operands([]py.Value{st.Args[2], st.Args[1]})
	return g.EmitOp(st.Kind, st.Schema, v, ends[0], ends[1])[0]
}

func selectBack(g Graph, st *heap.Step, base, v *ssa.Value) *ssa.Value {
	return g.Emit("aten::select_scatter", base, v, st.Arg("dim"), st.Arg("index"))
}

func sliceBack(g Graph, st *heap.Step, base, v *ssa.Value) *ssa.Value {
	return g.Emit("aten::slice_scatter", base, v, st.Arg("dim"), st.Arg("start"), st.Arg("end"), st.Arg("step"))
}

func narrowBack(g Graph, st *heap.Step, base, v *ssa.Value) *ssa.Value {
	start := st.Arg("start")
	if _, ok := start.(*py.Tensor); ok {
		return nil
	}
	end := g.IntOp("add", start, st.Arg("length"))
	if from, ok := start.(py.Const); ok && from.Int() < 0 {
		if e, ok := end.(py.Const); ok && e.Int() == 0 {
			end = py.Int(math.MaxInt64) // the last elements
		}
	}
	return g.Emit("aten::slice_scatter", base, v, st.Arg("dim"), start, end, 1)
}

func diagonalBack(g Graph, st *heap.Step, base, v *ssa.Value) *ssa.Value {
	return g.Emit("aten::diagonal_scatter", base, v, st.Arg("offset"), st.Arg("dim1"), st.Arg("dim2"))
}

// takeBack is of as_strided, whose places in memory are the second argument.
func takeBack(g Graph, st *heap.Step, base, v *ssa.Value) *ssa.Value {
	return g.Emit("aten::put", base, st.Args[1], v)
}

func reshapedBack(g Graph, st *heap.Step, base, v *ssa.Value) *ssa.Value {
	if st.Kind == "aten::view" && st.Schema.Overload == "dtype" {
		return nil
	}
	return g.Emit("aten::view_as", v, base)
}

// unsqueezedBack says which axis goes: a reshape to [0, -1] would not know the last size of a tensor without elements.
func unsqueezedBack(g Graph, st *heap.Step, base, v *ssa.Value) *ssa.Value {
	dim, ok := py.LiteralOf(st.Arg("dim"))
	t := v.Tensor()
	if !ok || t == nil || !t.Ranked {
		return reshapedBack(g, st, base, v)
	}
	i := dim.Int()
	if i < 0 {
		i += int64(len(t.Dims))
	}
	if i < 0 || i >= int64(len(t.Dims)) || !t.Dims[i].Is(1) {
		return reshapedBack(g, st, base, v)
	}
	return g.Emit("aten::squeeze.dim", v, i)
}

func unbindBack(g Graph, st *heap.Step, base, v *ssa.Value) *ssa.Value {
	return g.Emit("aten::stack", g.Tensors(exchangePart(g, st, base, v)), st.Arg("dim"))
}

func partsBack(g Graph, st *heap.Step, base, v *ssa.Value) *ssa.Value {
	dim := st.Arg("dim")
	switch st.Kind {
	case "aten::vsplit":
		dim = py.Int(0)
	case "aten::dsplit":
		dim = py.Int(2)
	case "aten::hsplit":
		dim = py.Int(1)
		if t := base.Tensor(); t != nil && t.Rank() == 1 {
			dim = py.Int(0)
		}
	}
	return g.Emit("aten::cat", g.Tensors(exchangePart(g, st, base, v)), dim)
}

// exchangePart gives the parts of base with v for the one that the step is of.
func exchangePart(g Graph, st *heap.Step, base, v *ssa.Value) []*ssa.Value {
	operands := g.Operands(st.Args)
	operands[0] = base
	parts := append([]*ssa.Value(nil), g.EmitOp(st.Kind, st.Schema, operands...)...)
	parts[st.Index] = v
	return parts
}
