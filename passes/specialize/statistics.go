package specialize

import (
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// functionalTwin evaluates an operator that writes to arguments and has a twin
// named with _functional, which gives the new contents as further results.
func (s *writes) functionalTwin(o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	twins := aten.Schemas(o.Kind + "_functional")
	if len(twins) == 0 || len(twins[0].Args) != len(o.Schema.Args) {
		return nil, false
	}
	vs := s.build.emit(ssa.Kind(twins[0].Name), twins[0], s.vals.operands(args)...)
	n := len(o.Schema.Returns)
	rest := vs[n:]
	for i := range o.Schema.Args {
		if !o.Schema.Args[i].Writes || len(rest) == 0 {
			continue
		}
		if t, ok := args[i].(*py.Tensor); ok {
			s.noteMutation(t)
			s.write(t, s.vals.castLike(rest[0], s.vals.read(t)))
		}
		rest = rest[1:]
	}
	return s.views.results(o, args, vs[:n]), true
}

// updateStatistics makes the writes of training batch normalization to its
// running statistics, which its schema does not declare.
func (s *writes) updateStatistics(o *ssa.Op, args []py.Value) {
	switch o.Kind {
	case "aten::batch_norm", "aten::_batch_norm_impl_index", "aten::native_batch_norm":
	default:
		return
	}
	arg := func(name string) py.Value { return args[o.Schema.Arg(name)] }
	training, known := arg("training").(py.Const)
	mean, ok := arg("running_mean").(*py.Tensor)
	variance, ok2 := arg("running_var").(*py.Tensor)
	if !ok || !ok2 || !known || !training.Bool() {
		return
	}
	if x, ok := arg("input").(*py.Tensor); ok {
		if st := heap.ViewOf(x).Storage; st == heap.ViewOf(mean).Storage || st == heap.ViewOf(variance).Storage {
			s.fail("alias", "running statistics share memory with the input, which batch normalization writes while it reads; use .clone() for one of them")
		}
	}
	twin := aten.Schemas("aten::_native_batch_norm_legit_functional")
	if len(twin) == 0 {
		return
	}
	var operands []py.Value
	for _, a := range twin[0].Args {
		operands = append(operands, arg(a.Name))
	}
	vs := s.build.emit(ssa.Kind(twin[0].Name), twin[0], s.vals.operands(operands)...)
	for i, t := range []*py.Tensor{mean, variance} {
		s.noteMutation(t)
		s.write(t, s.vals.castLike(vs[3+i], s.vals.read(t)))
	}
}
