package jit

import (
	"github.com/aton-project/aton/frontend/pickle"
	"github.com/aton-project/aton/ssa"
)

// customObject makes an instance of a class that is written in C++.
func (l *loader) customObject(o *ssa.Object, p *pickle.Object, depth int) {
	if p.State == nil {
		return
	}
	o.Fields = append(o.Fields, ssa.Attr{Name: "state", Value: l.literal(p.State, nil, o.Path, depth+1)})
}

func (l *loader) setState(o *ssa.Object, c *class, state any, depth int) {
	l.fail("data.pkl", "", "%s: __setstate__ is not supported", short(c.name))
}
