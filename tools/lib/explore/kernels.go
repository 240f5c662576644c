package explore

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/llvm"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/codegen/gpu/ptx"
)

// target is the processor that PTX is shown for.
const target = "sm_80"

// Kernels plans the converted model for a GPU. That there is no plan is said in the result.
func (s *Session) Kernels() (*Kernels, error) {
	m, err := s.converted()
	if err != nil {
		return nil, err
	}
	out := &Kernels{Kernels: []Kernel{}, Launch: []Launch{}}
	p, err := plan.New(m, fuse.Light)
	if err != nil {
		out.Failed = err.Error()
		return out, nil
	}
	at := map[string]int{}
	for _, k := range p.Kernels {
		if err := s.stopped(); err != nil {
			return nil, err
		}
		code, err := ptx.Print(k.Kernel, ptx.Options{Target: target})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.Name, err)
		}
		at[k.Name] = len(out.Kernels)
		out.Kernels = append(out.Kernels, Kernel{Name: k.Name, Class: k.Class, Threads: k.Threads, Shared: k.SharedBytes(), KIR: k.Kernel.String(),
			LLVM: fmt.Sprint(llvm.Lower(k.Kernel)), PTX: code})
	}
	for step := range p.AllSteps() {
		l := Launch{Nodes: []string{}, Frames: []int{}, Kernel: -1, Host: step.Host}
		ops := step.Ops
		if len(ops) == 0 {
			ops = append(ops, step.Op)
		}
		for _, o := range ops {
			if len(o.Results) > 0 {
				l.Nodes = append(l.Nodes, o.Results[0].Name)
			}
			l.Frames = append(l.Frames, s.frames[o.Loc]) // the plan's module has the same table
		}
		if step.Launch != nil {
			l.Kernel = at[step.Kernel.Name]
			for _, e := range step.Launch.Grid {
				l.Grid = append(l.Grid, e.String())
			}
		}
		out.Launch = append(out.Launch, l)
	}
	var b strings.Builder
	if err := p.WriteJSON(&b); err != nil {
		return nil, err
	}
	out.Plan = b.String()
	return out, nil
}
