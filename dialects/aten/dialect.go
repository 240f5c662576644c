package aten

import (
	"strings"
	"sync"

	"github.com/aton-project/aton/ssa"
)

// Dialect is a dialect of declared operators: aten and the namespaces beside it.
type Dialect struct {
	// NS is the namespace; empty means aten.
	NS string
}

// Dialects lists the dialects of all namespaces that have declared operators, prim's excluded.
func Dialects() []ssa.Dialect {
	return []ssa.Dialect{Dialect{}, Dialect{"quantized"}, Dialect{"torchvision"}}
}

// Namespace is the prefix of the operators' kinds.
func (d Dialect) Namespace() string {
	if d.NS == "" {
		return "aten"
	}
	return d.NS
}

// random lists the operators that draw random numbers, without a trailing "_".
// Declarations say so only where they take a Generator.
var random = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for _, name := range strings.Fields(`
		alpha_dropout bernoulli binomial cauchy dropout exponential feature_alpha_dropout feature_dropout
		geometric log_normal multinomial native_dropout normal poisson rand rand_like randint randint_like
		randn randn_like random randperm rrelu rrelu_with_noise uniform _sample_dirichlet _standard_gamma
		gumbel_softmax fractional_max_pool2d fractional_max_pool3d seed manual_seed initial_seed`) {
		m[name] = true
	}
	return m
})

// training maps operators to the argument that must be true for them to be
// random or to write their running statistics.
func training(name string) (arg string, effects ssa.Effect) {
	switch strings.TrimSuffix(name, "_") {
	case "dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", "native_dropout":
		return "train", ssa.Random
	case "rrelu", "rrelu_with_noise":
		return "training", ssa.Random
	case "lstm", "gru", "rnn_tanh", "rnn_relu":
		return "train", ssa.Random
	case "scaled_dot_product_attention":
		return "dropout_p", ssa.Random
	case "batch_norm", "_batch_norm_impl_index", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm":
		return "training", ssa.Writes
	case "instance_norm":
		return "use_input_stats", ssa.Writes
	}
	return "", 0
}

// messages lists operators that print, warn or raise.
var messages = map[string]bool{"warn": true, "_assert_async": true, "_assert_tensor_metadata": true,
	"_assert_scalar": true, "sym_constrain_range": true, "sym_constrain_range_for_size": true, "_functional_assert_async": true}

// Info describes an operator: what its declaration says, and what declarations leave out.
func (d Dialect) Info(o *ssa.Op) (ssa.OpInfo, bool) {
	all := Schemas(o.Kind)
	if len(all) == 0 {
		return ssa.OpInfo{Effects: ssa.Unknown}, false
	}
	s := o.Schema
	if s == nil {
		types := make([]ssa.Type, o.NumOperands())
		for i := range types {
			types[i] = o.Operand(i).Type
		}
		if s = ssa.MatchSchema(all, types); s == nil {
			s = all[0]
		}
	}
	e := s.Effects()
	name := o.Kind.Name()
	if arg, effects := training(name); arg != "" {
		if !constFalse(o, s.Arg(arg)) {
			e |= effects
		}
	} else if random()[strings.TrimSuffix(name, "_")] {
		e |= ssa.Random
	}
	if messages[name] {
		e |= ssa.Raises
	}
	switch name {
	case "set_grad_enabled", "manual_seed", "save", "_set_item":
		e |= ssa.Writes
	}
	return ssa.OpInfo{Effects: e}, true
}

// constFalse reports an operand that is the constant False, 0 or 0.0.
func constFalse(o *ssa.Op, i int) bool {
	if i < 0 || i >= o.NumOperands() || o.Operand(i) == nil {
		return false
	}
	def := o.Operand(i).Def()
	if def == nil || def.Kind != "prim::Constant" {
		return false
	}
	v, ok := def.Attr("value")
	return ok && v.IsNumber() && v.Float() == 0
}

// Verify accepts everything: what an operator takes is its schema's affair.
func (Dialect) Verify(*ssa.Op) error { return nil }
