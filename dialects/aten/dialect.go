package aten

import "github.com/aton-project/aton/ssa"

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
	if u, ok := rowless[o.Kind.Name()]; ok {
		return ssa.OpInfo{Effects: e | u}, true
	}
	u := functionalRow(o.Kind).Effects
	if e |= u.always; u.arg != "" && !constFalse(o, s.Arg(u.arg)) {
		e |= u.unlessFalse
	}
	return ssa.OpInfo{Effects: e}, true
}

// Effects are those of an operator that its declaration leaves out: declarations tell random operators only where they take a Generator.
type Effects struct {
	always      ssa.Effect
	arg         string     // an argument
	unlessFalse ssa.Effect // what holds besides unless the argument is false
}

var (
	draws        = Effects{always: ssa.Random}
	raises       = Effects{always: ssa.Raises}
	writesMemory = Effects{always: ssa.Writes}
)

// drawsUnless is of operators that draw random numbers unless an argument is false or 0.
func drawsUnless(arg string) Effects { return Effects{arg: arg, unlessFalse: ssa.Random} }

// writesUnless is of operators that write their running statistics unless an argument is false.
func writesUnless(arg string) Effects { return Effects{arg: arg, unlessFalse: ssa.Writes} }

// rowless are the effects, beside the declared ones, of operators that are not lowered and have no row.
var rowless = map[string]ssa.Effect{
	"binomial": ssa.Random, "binomial_": ssa.Random, "poisson": ssa.Random, "gumbel_softmax": ssa.Random, "seed": ssa.Random, "initial_seed": ssa.Random,
	"manual_seed": ssa.Random | ssa.Writes, "set_grad_enabled": ssa.Writes, "save": ssa.Writes,
	"warn": ssa.Raises, "_assert_tensor_metadata": ssa.Raises, "_assert_scalar": ssa.Raises, "_functional_assert_async": ssa.Raises,
	"sym_constrain_range": ssa.Raises, "sym_constrain_range_for_size": ssa.Raises,
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
