package exec

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/bound"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/codegen/gpu/sim"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Sample is what running a part of the blocks of each kernel found.
type Sample struct {
	// Share is the part of the blocks that was asked for, from 0 to 1, and Seed says which ones.
	Share float64 `json:"share"`
	Seed  uint64  `json:"seed"`
	// Blocks are those of all launches, Ran those that were simulated.
	Blocks int64 `json:"blocks"`
	Ran    int64 `json:"blocks_run"`
	// Elements are those of all results of kernels, Compared those that the blocks wrote and that were compared with the interpreter's.
	Elements int64 `json:"elements"`
	Compared int64 `json:"elements_compared"`
	// Nodes are those of which results were compared.
	Nodes int `json:"nodes_compared"`
	// Whole are the launches that ran with all their blocks although a part was asked for.
	Whole []WholeLaunch `json:"whole,omitempty"`
	// Node is the first wrong node.
	Node *NodeResult `json:"-"`
	// Report is what the run took, nil if it has not come to its end.
	Report *Report `json:"-"`
}

// WholeLaunch is a launch of which no part can run alone.
type WholeLaunch struct {
	Node   string `json:"node"`
	Kernel string `json:"kernel"`
	Blocks int64  `json:"blocks"`
	Reason string `json:"reason"`
}

// partial is a backend that can run some blocks of a launch, by their ascending numbers or all if blocks is nil, and tells what bytes of
// an argument's memory they wrote.
type partial interface {
	LaunchSome(k Kernel, grid [3]int, args []Arg, blocks []int64) (stats Stats, wrote func(arg, offset int) bool, err error)
	// Depends is why the blocks of a kernel depend on each other, "" if they do not.
	Depends(k Kernel) string
}

// sampler is a Sample while it is made.
type sampler struct {
	*Sample
	partial
	passes map[*ssa.Op]int // launches of an op
	last   map[*ssa.Op]*plan.Step
	count  uint64 // of launches so far
}

// CheckSample runs a plan, but of each launch only the given share of the blocks, rounded up and chosen by the seed with equal chances. What they
// write is compared with what the interpreter gives for the same operands, by the bounds of the operators: a fused kernel with what its nodes give
// one after another, each of which may be off by its own bound and by what it makes of those of the nodes before. Then the interpreter's results are put in the place of all of it, so that later steps have right operands. Launches
// whose blocks depend on others run whole. It ends with the first node that is wrong: a kernel that is wrong in k of its n blocks
// is found with the probability 1 - C(n-k, m)/C(n, m) for m blocks that run, at least 1 - (1-share)^k.
func CheckSample(p *plan.Plan, s *Session, inputs []interp.Value, share float64, seed uint64) (*Sample, error) {
	b, ok := s.Backend.(partial)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s runs all blocks of a kernel: no sample can be taken", s.Backend.Name())
	case !(share > 0 && share <= 1):
		return nil, fmt.Errorf("a share of %v of the blocks: it must be above 0 and at most 1", share)
	}
	out := &Sample{Share: share, Seed: seed}
	m := &sampler{Sample: out, partial: b, passes: map[*ssa.Op]int{}, last: map[*ssa.Op]*plan.Step{}}
	for step := range p.AllSteps() {
		if step.Launch != nil {
			m.passes[step.Op]++
			m.last[step.Op] = step
		}
	}
	s.sample = m
	defer func() { s.sample = nil }()
	_, report, err := s.Run(inputs)
	var failed *StepError
	var fault *sim.Fault
	switch {
	case errors.Is(err, errFound):
		err = nil
	case errors.As(err, &fault) && errors.As(err, &failed):
		o := failed.Step.Op
		out.Node = &NodeResult{Node: stepName(failed.Step), Source: p.Source(o), Kernel: []string{failed.Step.Kernel.Name}, Difference: &bound.Difference{}, Fault: failed.Err.Error()}
		err = nil
	}
	out.Report = report
	return out, err
}

// blocks chooses those of a launch that run, nil for all, and says why these are all although fewer were asked for.
func (m *sampler) blocks(s *plan.Step, k Kernel, total int64) (blocks []int64, reason string) {
	m.count++
	n := min(int64(math.Ceil(m.Share*float64(total))), total)
	if n == total {
		return nil, ""
	}
	switch passes := m.passes[s.Op]; {
	case len(s.Op.Blocks) > 0:
		return nil, "it copies what a loop gives"
	case passes > 1:
		return nil, fmt.Sprintf("it is one of %d passes", passes)
	}
	if reason = m.Depends(k); reason != "" {
		return nil, reason
	}
	// Floyd's choice of n of total numbers
	r := rand.New(rand.NewPCG(m.Seed, m.count))
	chosen := map[int64]bool{}
	for i := total - n; i < total; i++ {
		x := r.Int64N(i + 1)
		if chosen[x] {
			x = i
		}
		chosen[x] = true
		blocks = append(blocks, x)
	}
	slices.Sort(blocks)
	return blocks, ""
}

// sampled is a launch of which a part runs.
func (r *run) sampled(s *plan.Step, rep *StepReport, args []Arg) error {
	m, k := r.sample, r.kernels[s.Kernel.Name]
	total := int64(rep.Grid[0]) * int64(rep.Grid[1]) * int64(rep.Grid[2])
	blocks, reason := m.blocks(s, k, total)
	ran := total
	if blocks != nil {
		ran = int64(len(blocks))
	}
	m.Blocks += total
	m.Ran += ran
	if reason != "" {
		m.Whole = append(m.Whole, WholeLaunch{plan.NodeName(s.Op), s.Kernel.Name, total, reason})
	}
	stats, wrote, err := m.LaunchSome(k, rep.Grid, args, blocks)
	rep.Stats = stats
	if err != nil {
		return err
	}
	if m.last[s.Op] != s || len(s.Op.Blocks) > 0 { // what a loop gives is compared in its body
		return nil
	}
	parts := s.Parts
	if parts == nil {
		parts = []*plan.Step{s}
	}
	for _, part := range parts {
		if err := r.comparePart(s, part, wrote, blocks != nil); err != nil {
			return err
		}
	}
	return nil
}

// comparePart compares what a part of a launch, or all of it, gave with what the interpreter gives, which then takes its place. wrote tells what has been written, if only some blocks
// ran.
func (r *run) comparePart(s, part *plan.Step, wrote func(arg, offset int) bool, some bool) error {
	m, o := r.sample, part.Op
	want, err := r.reference(part)
	if err != nil {
		return err
	}
	compared := false
	for i, v := range o.Results {
		if !v.HasUses() {
			continue
		}
		x, err := r.value(v)
		if err != nil {
			return err
		}
		got, expected := x.Tensor, want[i].value
		n := expected.NumElements()
		m.Elements += n
		if some && got.NumBytes() == expected.NumBytes() {
			mixed := slices.Clone(expected.Bytes())
			size := got.DType.Size()
			arg := written(s, r.Plan.BufferOf(v))
			if arg < 0 {
				return fmt.Errorf("%s is not written by its kernel", v.Name)
			}
			n = 0
			for at := 0; at < len(mixed); at += size {
				if wrote(arg, at) {
					copy(mixed[at:at+size], got.Bytes()[at:])
					n++
				}
			}
			got = tensor.New(got.DType, got.Shape, mixed)
		}
		m.Compared += n
		compared = true
		if d := bound.Measure(got, expected, want[i].allowed); d.Bad() {
			m.Nodes += len(part.Ops)
			m.Node = &NodeResult{Node: stepName(part), Source: r.Plan.Source(o), Kernel: []string{s.Kernel.Name}, Result: i, Difference: d}
			return errFound
		}
		if n := expected.NumBytes(); n > 0 {
			if err := r.Backend.Upload(r.memory[r.Plan.BufferOf(v)], expected.Bytes()); err != nil {
				return err
			}
		}
	}
	if compared {
		m.Nodes += len(part.Ops)
	}
	return nil
}

// written is the number of the parameter through which a kernel writes a buffer, -1 if it does not.
func written(s *plan.Step, f *plan.Buffer) int {
	n := 0
	for i, p := range s.Launch.Kernel.Params {
		if p.Mem == nil {
			continue
		}
		if n++; p.Mem.Writes && s.Args[n-1] == f {
			return i
		}
	}
	return -1
}
