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

// Overloads are the declarations of an operator.
func (Dialect) Overloads(k ssa.Kind) []*ssa.Schema { return Schemas(k) }

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
		randn randn_like random randperm rrelu rrelu_with_noise rrelu_with_noise_functional uniform _sample_dirichlet _standard_gamma
		gumbel_softmax fractional_max_pool2d fractional_max_pool3d seed manual_seed initial_seed`) {
		m[name] = true
	}
	return m
})

// training maps operators, without a trailing "_", to the argument that must be true for them to be random or to write
// their running statistics.
var training = map[string]effects{
	"dropout":                     {arg: "train", unlessFalse: ssa.Random},
	"alpha_dropout":               {arg: "train", unlessFalse: ssa.Random},
	"feature_dropout":             {arg: "train", unlessFalse: ssa.Random},
	"feature_alpha_dropout":       {arg: "train", unlessFalse: ssa.Random},
	"native_dropout":              {arg: "train", unlessFalse: ssa.Random},
	"rrelu":                       {arg: "training", unlessFalse: ssa.Random},
	"rrelu_with_noise":            {arg: "training", unlessFalse: ssa.Random},
	"rrelu_with_noise_functional": {arg: "training", unlessFalse: ssa.Random},
	"lstm":                        {arg: "train", unlessFalse: ssa.Random},
	"gru":                         {arg: "train", unlessFalse: ssa.Random},
	"rnn_tanh":                    {arg: "train", unlessFalse: ssa.Random},
	"rnn_relu":                    {arg: "train", unlessFalse: ssa.Random},

	"scaled_dot_product_attention": {arg: "dropout_p", unlessFalse: ssa.Random},

	"batch_norm":             {arg: "training", unlessFalse: ssa.Writes},
	"_batch_norm_impl_index": {arg: "training", unlessFalse: ssa.Writes},
	"native_batch_norm":      {arg: "training", unlessFalse: ssa.Writes},
	"cudnn_batch_norm":       {arg: "training", unlessFalse: ssa.Writes},
	"miopen_batch_norm":      {arg: "training", unlessFalse: ssa.Writes},
	"instance_norm":          {arg: "use_input_stats", unlessFalse: ssa.Writes},
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
			if v := o.Operand(i); v != nil {
				types[i] = v.Type
			}
		}
		if s = ssa.MatchSchema(all, types); s == nil {
			s = all[0]
		}
	}
	e := s.Effects()
	if u, ok := undeclared()[o.Kind.Name()]; ok {
		e |= u.always
		if u.arg != "" && !constFalse(o, s.Arg(u.arg)) {
			e |= u.unlessFalse
		}
	}
	return ssa.OpInfo{Effects: e}, true
}

// effects are those of an operator that its declaration leaves out.
type effects struct {
	always      ssa.Effect
	arg         string     // an argument
	unlessFalse ssa.Effect // what holds besides unless the argument is false
}

// undeclared are the effects that declarations leave out, by the names of the operators.
var undeclared = sync.OnceValue(func() map[string]effects {
	m := map[string]effects{}
	for name := range random() {
		m[name], m[name+"_"] = effects{always: ssa.Random}, effects{always: ssa.Random}
	}
	for name, e := range training {
		m[name], m[name+"_"] = e, e
	}
	for name := range messages {
		e := m[name]
		e.always |= ssa.Raises
		m[name] = e
	}
	for _, name := range [...]string{"set_grad_enabled", "manual_seed", "save", "_set_item"} {
		e := m[name]
		e.always |= ssa.Writes
		m[name] = e
	}
	return m
})

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
