package ssa

import (
	"fmt"

	"github.com/aton-project/aton/ssa/diag"
)

// Verify checks the invariants of the package comment. The error has all violations.
func Verify(m *Module) error {
	v := verifier{m: m, list: &diag.List{Table: &m.Locs}}
	for _, f := range m.Funcs {
		v.fn(f)
	}
	return v.list.Err()
}

type verifier struct {
	m     *Module
	list  *diag.List
	scope map[*Value]bool
	names map[string]bool
	uses  map[*Value]int
}

func (v *verifier) bad(rule int, o *Op, format string, args ...any) {
	d := diag.Diagnostic{ID: "verify", Message: fmt.Sprintf(format, args...) + fmt.Sprintf(" [invariant %d]", rule)}
	if o != nil {
		d.Op, d.Loc = string(o.Kind), o.Loc
	}
	v.list.Add(d)
}

func (v *verifier) fn(f *Func) {
	v.scope, v.names, v.uses = map[*Value]bool{}, map[string]bool{}, map[*Value]int{}
	v.block(f.Body, nil)
	for val, n := range v.uses {
		if got := val.NumUses(); got != n {
			v.bad(2, val.def, "%%%s has %d uses in its list and %d in the function", val.label(), got, n)
		}
	}
}

func (v *Value) label() string {
	if v.Name != "" {
		return v.Name
	}
	return fmt.Sprintf("#%d", v.ID)
}

func (v *verifier) define(val *Value, o *Op) {
	v.scope[val] = true
	if val.Type == nil {
		v.bad(7, o, "%%%s has no type", val.label())
	}
	if val.Name != "" {
		if v.names[val.Name] {
			v.bad(3, o, "the name %%%s is used twice", val.Name)
		}
		v.names[val.Name] = true
	}
}

func (v *verifier) use(u *Use, o *Op, what string) {
	if u.value == nil {
		return
	}
	v.uses[u.value]++
	if !v.scope[u.value] {
		v.bad(1, o, "%s %%%s is not defined here", what, u.value.label())
	}
	if o != nil && u.op != o {
		v.bad(2, o, "%s %%%s belongs to another user", what, u.value.label())
	}
}

func (v *verifier) block(b *Block, owner *Op) {
	var mine []*Value
	for _, p := range b.Params {
		if p.blk != b {
			v.bad(2, owner, "parameter %%%s belongs to another block", p.label())
		}
		v.define(p, owner)
		mine = append(mine, p)
	}
	for o := b.first; o != nil; o = o.next {
		if o.block != b {
			v.bad(2, o, "the op belongs to another block")
		}
		for i := range o.operands {
			v.use(&o.operands[i], o, "operand")
		}
		v.op(o)
		for _, c := range o.Blocks {
			v.block(c, o)
		}
		for _, r := range o.Results {
			if r.def != o {
				v.bad(2, o, "result %%%s belongs to another op", r.label())
			}
			v.define(r, o)
			mine = append(mine, r)
		}
	}
	for i := range b.returns {
		v.use(&b.returns[i], nil, "returned value")
		if b.returns[i].value == nil {
			v.bad(1, owner, "returned value %d is missing", i)
		}
	}
	if b.owner != nil { // values of a nested block end with it
		for _, val := range mine {
			delete(v.scope, val)
		}
	}
}

func (v *verifier) op(o *Op) {
	switch o.Kind {
	case "prim::If":
		if len(o.Blocks) != 2 || len(o.operands) != 1 {
			v.bad(5, o, "has %d blocks and %d operands, not 2 and 1", len(o.Blocks), len(o.operands))
			return
		}
		for _, b := range o.Blocks {
			if len(b.Params) != 0 || len(b.returns) != len(o.Results) {
				v.bad(5, o, "a block has %d parameters and returns %d values for %d results", len(b.Params), len(b.returns), len(o.Results))
			}
		}
	case "prim::Loop":
		n := len(o.Results)
		if len(o.Blocks) != 1 || len(o.operands) != n+2 {
			v.bad(6, o, "has %d blocks and %d operands for %d results", len(o.Blocks), len(o.operands), n)
			return
		}
		if b := o.Blocks[0]; len(b.Params) != n+1 || len(b.returns) != n+1 {
			v.bad(6, o, "the block has %d parameters and returns %d values for %d carried values", len(b.Params), len(b.returns), n)
		}
	}
	if s := o.Schema; s != nil && !s.Vararg && len(o.operands) != len(s.Args) {
		v.bad(4, o, "has %d operands; %s takes %d", len(o.operands), s.FullName(), len(s.Args))
	}
	for _, a := range o.Attrs {
		if a.Value.Kind == TensorLit {
			if err := a.Value.Tensor.Check(); err != nil {
				v.bad(8, o, "%v", err)
			}
		}
	}
	for _, d := range v.m.Dialects {
		if d.Namespace() == o.Kind.Namespace() {
			if err := d.Verify(o); err != nil {
				v.bad(9, o, "%v", err)
			}
		}
	}
}
