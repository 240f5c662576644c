package aton

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/lower"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// finish are the passes behind the pipeline of a conversion: what the options ask for that a pipeline cannot spell. A pass that the
// options give nothing to do is not there. converted says that the module was of ONNX operators already.
func (o Options) finish(converted bool) []*passes.Pass {
	var list []*passes.Pass
	if !converted {
		list = append(list, o.leftOverPass())
	}
	if len(o.CustomOpsets) > 0 {
		list = append(list, o.domainsPass())
	}
	if len(o.ModuleFunctions) > 0 {
		list = append(list, o.modulesPass())
	}
	if len(o.InputNames)+len(o.Names)+len(o.OutputNames) > 0 {
		list = append(list, o.renamePass())
	}
	if o.DropUnused != nil {
		list = append(list, o.dropUnusedPass())
	}
	return list
}

// sound makes a Run that does nothing to a module with errors: these are told first.
func sound(run func(c *passes.Context) error) func(*passes.Context) error {
	return func(c *passes.Context) error {
		if c.Module.Main() == nil || c.Diags.Err() != nil {
			return nil
		}
		return run(c)
	}
}

func (o Options) leftOverPass() *passes.Pass {
	return &passes.Pass{
		Name: "check-converted",
		Doc:  "report the operators of PyTorch that no pass has converted",
		Run: sound(func(c *passes.Context) error {
			o.leftOver(c.Module, c.Diags)
			return nil
		}),
	}
}

func (o Options) domainsPass() *passes.Pass {
	return &passes.Pass{
		Name: "set-domain-versions",
		Doc:  "give the domains in use the versions of the options",
		Run: func(c *passes.Context) error {
			if c.Diags.Err() != nil {
				return nil
			}
			before := maps.Clone(c.Module.Opsets)
			err := o.domains(c.Module)
			if !maps.Equal(before, c.Module.Opsets) {
				c.Changed("version")
			}
			return err
		},
	}
}

func (o Options) modulesPass() *passes.Pass {
	return &passes.Pass{
		Name: "check-module-functions",
		Doc:  "find the modules whose calls become functions of the file",
		Run: sound(func(c *passes.Context) error {
			_, err := o.modules(c.Module)
			return err
		}),
	}
}

func (o Options) renamePass() *passes.Pass {
	return &passes.Pass{
		Name: "rename",
		Doc:  "give inputs, weights and outputs the names of the options",
		Run: sound(func(c *passes.Context) error {
			renamed, err := o.rename(c.Module, c.Module.State)
			for range renamed {
				c.Changed("name")
			}
			return err
		}),
	}
}

func (o Options) dropUnusedPass() *passes.Pass {
	return &passes.Pass{
		Name: "drop-unused-inputs",
		Doc:  "leave out the inputs that nothing uses",
		Run: sound(func(c *passes.Context) error {
			dropUnused(c.Module, func(place int) {
				c.Changed("dropped")
				o.DropUnused(place)
			})
			return nil
		}),
	}
}

func (o Options) rawPass() *passes.Pass {
	return &passes.Pass{
		Name: "raw",
		Doc:  "make the TorchScript graph one that a file can hold",
		Run: func(c *passes.Context) error {
			lower.Raw(c.Module, o.OpsetFor(c.Module))
			c.Changed("raw")
			return nil
		},
	}
}

// dropUnused removes the inputs that nothing uses. Weights stay: who lists them among the inputs has asked for all of them.
func dropUnused(m *ssa.Module, tell func(place int)) {
	body, place := m.Main().Body, 0
	for _, p := range slices.Clone(body.Params) {
		if m.Weights[p.Name] != nil {
			continue
		}
		if !p.HasUses() {
			body.RemoveParam(slices.Index(body.Params, p))
			tell(place)
		}
		place++
	}
}

// domains gives the domains in use their versions.
func (o Options) domains(m *ssa.Module) error {
	for _, ns := range slices.Sorted(maps.Keys(o.CustomOpsets)) {
		if ns == "" || ns == onnx.Namespace || ns == "ai.onnx" {
			return fmt.Errorf("the version of ONNX's own domain is the opset")
		}
		if v := o.CustomOpsets[ns]; v < 1 {
			return fmt.Errorf("domain %s: %d is no version", ns, v)
		}
	}
	if m.Main() == nil {
		return nil
	}
	for op := range m.Main().Body.AllOps() {
		ns := op.Kind.Namespace()
		v, ok := o.CustomOpsets[ns]
		if ns == "org.pytorch.aten" && !ok {
			v, ok = o.CustomOpsets["aten"]
		}
		if ok {
			m.Opsets[ns] = v
		}
	}
	return nil
}

// leftOver reports the operators of PyTorch that no pass has converted, so that none gets into a file.
func (o Options) leftOver(m *ssa.Module, list *diag.List) {
	if o.OperatorExport == ONNXFallthrough {
		return
	}
	for op := range m.Main().Body.AllOps() {
		for _, d := range m.Dialects {
			if ns := d.Namespace(); ns != onnx.Namespace && ns == op.Kind.Namespace() && !slices.Contains(o.Fallthrough, ns) && !slices.Contains(o.Fallthrough, "*") {
				list.Add(diag.Diagnostic{ID: "unsupported-op", Op: string(op.Kind), Loc: op.Loc, Message: "cannot be converted to ONNX"})
			}
		}
	}
}
