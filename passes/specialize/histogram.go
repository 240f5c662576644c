package specialize

import (
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// histogramdd takes apart the operator that gives a tensor and a list: no value
// of the target program is both. PyTorch has the parts as operators of their own.
func (s *walk) histogramdd(o *ssa.Op, args []py.Value) []py.Value {
	in := map[string]py.Value{}
	for i, a := range o.Schema.Args {
		in[a.Name] = args[i]
	}
	counts, bins := "aten::_histogramdd_from_bin_cts", in["bins"]
	var edges py.Value
	switch o.Schema.Overload {
	case "int_bins": // the same number for each coordinate
		if x, ok := in["self"].(*py.Tensor); ok {
			if t := s.vals.read(x).Tensor(); t != nil && t.Ranked && len(t.Dims) > 0 {
				if n, ok := t.Dims[len(t.Dims)-1].Int(); ok {
					s.takeElems(n, elemBytes)
					elems := make([]py.Value, n)
					for i := range elems {
						elems[i] = bins
					}
					bins = s.heap.List(ssa.IntType, elems)
				}
			}
		}
	case "TensorList_bins":
		counts, edges = "aten::_histogramdd_from_bin_tensors", bins
	}
	op := func(kind ssa.Kind) []*ssa.Value {
		schema := aten.Schemas(kind)[0]
		operands := make([]py.Value, len(schema.Args))
		for i, a := range schema.Args {
			if operands[i] = in[a.Name]; a.Name == "bins" {
				operands[i] = bins
			}
		}
		return s.build.emit(kind, schema, s.vals.operands(operands)...)
	}
	hist := s.vals.wrap(op(ssa.Kind(counts))[0])
	if edges == nil {
		var elems []py.Value
		for _, v := range op("aten::_histogramdd_bin_edges") {
			elems = append(elems, s.heap.Tensor(v))
		}
		edges = s.heap.List(ssa.AnyTensor, elems)
	}
	return []py.Value{hist, edges}
}
