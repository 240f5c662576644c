package specialize

import (
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
)

// functionalTwin evaluates an operator that writes to arguments and has a twin
// named with _functional, which gives the new contents as further results.
func (s *spec) functionalTwin(o *ssa.Op, args []value) ([]value, bool) {
	twins := aten.Schemas(o.Kind + "_functional")
	if len(twins) == 0 || len(twins[0].Args) != len(o.Schema.Args) {
		return nil, false
	}
	vs := s.emit(ssa.Kind(twins[0].Name), twins[0], s.operands(args)...)
	n := len(o.Schema.Returns)
	rest := vs[n:]
	for i := range o.Schema.Args {
		if !o.Schema.Args[i].Writes || len(rest) == 0 {
			continue
		}
		if t, ok := args[i].(*tensorRef); ok {
			s.noteMutation(t)
			s.write(t, s.castLike(rest[0], s.read(t)))
		}
		rest = rest[1:]
	}
	return s.results(o, args, vs[:n]), true
}

// updateStatistics makes the writes of training batch normalization to its
// running statistics, which its schema does not declare.
func (s *spec) updateStatistics(o *ssa.Op, args []value) {
	switch o.Kind {
	case "aten::batch_norm", "aten::_batch_norm_impl_index", "aten::native_batch_norm":
	default:
		return
	}
	arg := func(name string) value { return args[o.Schema.Arg(name)] }
	training, known := arg("training").(ssa.Literal)
	mean, ok := arg("running_mean").(*tensorRef)
	variance, ok2 := arg("running_var").(*tensorRef)
	if !ok || !ok2 || !known || !training.Bool() {
		return
	}
	twin := aten.Schemas("aten::_native_batch_norm_legit_functional")
	if len(twin) == 0 {
		return
	}
	var operands []value
	for _, a := range twin[0].Args {
		operands = append(operands, arg(a.Name))
	}
	vs := s.emit(ssa.Kind(twin[0].Name), twin[0], s.operands(operands)...)
	for i, t := range []*tensorRef{mean, variance} {
		s.noteMutation(t)
		s.write(t, s.castLike(vs[3+i], s.read(t)))
	}
}
