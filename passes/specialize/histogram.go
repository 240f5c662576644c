package specialize

import (
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
)

// histogramdd takes apart the operator that gives a tensor and a list: no value
// of the target program is both. PyTorch has the parts as operators of their own.
func (s *spec) histogramdd(o *ssa.Op, args []value) []value {
	in := map[string]value{}
	for i, a := range o.Schema.Args {
		in[a.Name] = args[i]
	}
	counts, bins := "aten::_histogramdd_from_bin_cts", in["bins"]
	var edges value
	switch o.Schema.Overload {
	case "int_bins": // the same number for each coordinate
		if x, ok := in["self"].(*tensorRef); ok {
			if t := s.read(x).Tensor(); t != nil && t.Ranked && len(t.Dims) > 0 {
				if n, ok := t.Dims[len(t.Dims)-1].Int(); ok {
					elems := make([]value, n)
					for i := range elems {
						elems[i] = bins
					}
					bins = s.newList(ssa.IntType, elems)
				}
			}
		}
	case "TensorList_bins":
		counts, edges = "aten::_histogramdd_from_bin_tensors", bins
	}
	op := func(kind ssa.Kind) []*ssa.Value {
		schema := aten.Schemas(kind)[0]
		operands := make([]value, len(schema.Args))
		for i, a := range schema.Args {
			if operands[i] = in[a.Name]; a.Name == "bins" {
				operands[i] = bins
			}
		}
		return s.emit(kind, schema, s.operands(operands)...)
	}
	hist := s.wrap(op(ssa.Kind(counts))[0])
	if edges == nil {
		var elems []value
		for _, v := range op("aten::_histogramdd_bin_edges") {
			elems = append(elems, s.newTensor(v))
		}
		edges = s.newList(ssa.AnyTensor, elems)
	}
	return []value{hist, edges}
}
