package ssa

import (
	"maps"
	"slices"
)

// Clone returns a copy of the module that can be changed without changing m. Both share what no pass changes: dialects, tensors, module objects,
// schemas, and what keeps files mapped. Values of the copy have other IDs.
func (m *Module) Clone() *Module {
	c := *m
	c.Funcs, c.funcIndex = nil, nil
	c.Classes, c.Opsets, c.Recorded = maps.Clone(m.Classes), maps.Clone(m.Opsets), maps.Clone(m.Recorded)
	c.Weights, c.Defaults = maps.Clone(m.Weights), maps.Clone(m.Defaults)
	c.Locs = m.Locs.Clone()
	c.Metadata, c.Inputs, c.State = slices.Clone(m.Metadata), slices.Clone(m.Inputs), slices.Clone(m.State)
	c.DroppedInputs, c.Passed, c.Keep = slices.Clone(m.DroppedInputs), slices.Clone(m.Passed), slices.Clone(m.Keep)
	c.File.GraphMetadata, c.File.Dropped = slices.Clone(m.File.GraphMetadata), slices.Clone(m.File.Dropped)
	c.File.Nodes, c.File.Values = maps.Clone(m.File.Nodes), maps.Clone(m.File.Values)
	for _, f := range m.Funcs {
		c.CopyFunc(f)
	}
	return &c
}

// CopyFunc adds a copy of a function of another module under its name, and returns it. Locations stay as they are.
func (m *Module) CopyFunc(f *Func) *Func {
	g := m.NewFunc(f.Name)
	g.OutputNames = slices.Clone(f.OutputNames)
	values := make([]*Value, f.NumValues())
	same := func(name string) string { return name }
	for _, p := range f.Body.Params {
		values[p.ID] = g.Body.AddParam(p.Name, p.Type)
	}
	g.Body.CopyInto(nil, f.Body, values, nil, same)
	returns := make([]*Value, f.Body.NumReturns())
	for i := range returns {
		if v := f.Body.Return(i); v != nil {
			returns[i] = values[v.ID]
		}
	}
	g.Body.SetReturns(returns...)
	known := func(list []*Value) {
		for _, v := range list {
			values[v.ID].Sym = v.Sym
		}
	}
	known(f.Body.Params)
	for o := range f.Body.AllOps() {
		known(o.Results)
		for _, b := range o.Blocks {
			known(b.Params)
		}
	}
	return g
}
