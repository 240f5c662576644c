// Package device runs models on a GPU, or on the simulator of one, and compares what the kernels compute with the reference interpreter.
package device

import (
	"errors"
	"fmt"
	"slices"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/codegen/gpu/sim"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/verify"
)

// Result is the result of running a module on a device.
type Result struct {
	Device string `json:"device"`
	// Outputs compares the device's results with the recorded outputs, or with the interpreter's if none are
	// recorded.
	Outputs []verify.Compared `json:"outputs"`
	// Nodes is the number of nodes without constants and sizes (the plan has sizes as expressions); Share is the percentage of them that kernels compute.
	Nodes    int     `json:"nodes"`
	Share    float64 `json:"share"`
	Launches int     `json:"launches"`
	Host     int     `json:"host_steps"`
	Seconds  float64 `json:"seconds"`
	// LaneInstructions is the simulator's count of instructions, one for each lane.
	LaneInstructions int64 `json:"lane_instructions,omitempty"`
	// Compared is the number of nodes that were compared with the interpreter one by one.
	Compared int `json:"nodes_compared,omitempty"`
	// Sample is set if only some blocks of each kernel ran. There are no Outputs then.
	Sample *exec.Sample `json:"sample,omitempty"`
	// Node is the first node whose kernel is wrong. It is looked for if an output is wrong.
	Node *exec.NodeResult `json:"node,omitempty"`
}

// Options configures [Verify]. Backend is required; the zero values of the other fields suit most callers.
type Options struct {
	Backend exec.Backend
	// Fusion says which nodes share a kernel. The default is fuse.Light.
	Fusion fuse.Mode
	// TF32 rounds the factors of large products and convolutions of float32 to tf32, for tensor cores. The bounds of nodes allow for it.
	TF32 bool
	// Nodes compares every node with the interpreter, not only when an output is wrong.
	Nodes bool
	// Sample, if not 0, is the fraction of the blocks of each kernel that runs, at most 1; Seed selects them. What the blocks write
	// is compared with the interpreter's results for the nodes of the kernel: see exec.CheckSample.
	Sample float64
	Seed   uint64
	// Session, if not nil, is called with each session before it runs. Tests use it to plant faults.
	Session func(*exec.Session)
}

// Verify runs a module of ONNX operators on a device and compares its outputs with those of the data set, or with the
// interpreter's if the data set has none. If they differ, it runs each node by itself and reports the first one whose kernel
// disagrees with the interpreter.
func Verify(v verify.Verifier, m *ssa.Module, data verify.DataSet, o Options) (*Result, error) {
	if o.Fusion == "" {
		o.Fusion = fuse.Light
	}
	args, err := verify.Arguments(m, data)
	if err != nil {
		return nil, err
	}
	if o.Sample != 0 {
		return sampleOn(m, args, o)
	}
	p, err := plan.NewWith(m, plan.Options{Fusion: o.Fusion, Hint: likely(m, args), TF32: o.TF32})
	if err != nil {
		return nil, err
	}
	r := deviceReport(p, o)
	session := exec.NewSession(p, o.Backend)
	if o.Session != nil {
		o.Session(session)
	}
	values, report, runErr := session.Run(args)
	if err := session.Close(); err != nil {
		return nil, err
	}
	if errors.Is(runErr, sim.ErrBudget) {
		return nil, runErr
	}
	// after the device: what that refuses because it is too much would take the interpreter for ever
	want := data.Outputs
	if len(want) == 0 {
		if want, err = v.Run(m, data); err != nil {
			return nil, err
		}
	}
	wrong := runErr != nil
	if runErr == nil {
		r.Launches, r.Seconds, r.LaneInstructions = report.Launches, report.Elapsed.Seconds(), report.LaneInstructions
		got := verify.Leaves(values)
		if len(got) != len(want) {
			return nil, fmt.Errorf("the model gives %d outputs, data set %s has %d", len(got), data.Name, len(want))
		}
		for i := range want {
			c := v.Tolerance.Compare(want[i].Name, got[i], want[i].Tensor)
			wrong = wrong || c.Wrong != ""
			r.Outputs = append(r.Outputs, c)
		}
	}
	if wrong || o.Nodes {
		nodes, err := compareNodes(m, args, o)
		if err != nil {
			return r, err
		}
		r.Compared = len(nodes)
		if n := len(nodes); n > 0 && nodes[n-1].Bad() {
			r.Node = &nodes[n-1]
		}
	}
	if runErr != nil && r.Node == nil {
		return r, runErr
	}
	return r, nil
}

// sampleOn runs some of the blocks of each kernel.
func sampleOn(m *ssa.Module, args []interp.Value, o Options) (*Result, error) {
	p, err := plan.NewWith(m, plan.Options{Fusion: o.Fusion, Hint: likely(m, args), TF32: o.TF32})
	if err != nil {
		return nil, err
	}
	r := deviceReport(p, o)
	session := exec.NewSession(p, o.Backend)
	if o.Session != nil {
		o.Session(session)
	}
	r.Sample, err = exec.CheckSample(p, session, args, o.Sample, o.Seed)
	if cerr := session.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	r.Outputs, r.Node = []verify.Compared{}, r.Sample.Node
	if t := r.Sample.Report; t != nil {
		r.Launches, r.Seconds, r.LaneInstructions = t.Launches, t.Elapsed.Seconds(), t.LaneInstructions
	}
	return r, nil
}

// deviceReport returns the facts that follow from the plan alone.
func deviceReport(p *plan.Plan, o Options) *Result {
	counts, share := p.Coverage()
	return &Result{Device: o.Backend.Name(), Nodes: len(p.Nodes) - counts[plan.Constant] - counts[plan.Sizes], Share: 100 * share, Host: counts[plan.Host]}
}

// likely returns the sizes that the symbols in the inputs' types have for these arguments.
func likely(m *ssa.Module, args []interp.Value) map[string]int64 {
	env := map[string]int64{}
	for i, p := range m.Main().Body.Params {
		t, x := p.Tensor(), args[i].Tensor
		if t == nil || x == nil || len(t.Dims) != len(x.Shape) {
			continue
		}
		for k, d := range t.Dims {
			if name, ok := d.Name(); ok {
				env[name] = x.Shape[k]
			}
		}
	}
	return env
}

// compareNodes runs each node by itself, on the operands that the device computed, up to the first wrong one.
func compareNodes(m *ssa.Module, args []interp.Value, o Options) ([]exec.NodeResult, error) {
	p, err := plan.NewWith(m, plan.Options{Fusion: fuse.None, Hint: likely(m, args), TF32: o.TF32})
	if err != nil {
		return nil, err
	}
	session := exec.NewSession(p, o.Backend)
	if o.Session != nil {
		o.Session(session)
	}
	nodes, err := exec.CheckNodes(p, session, args, true)
	if cerr := session.Close(); err == nil {
		err = cerr
	}
	return nodes, err
}

// Minimize looks for the smallest part of a module that a device computes wrongly by itself: see [verify.Verifier.Minimize].
func Minimize(v verify.Verifier, m *ssa.Module, data verify.DataSet, o Options) (*verify.Piece, error) {
	o.Nodes = false
	return v.Minimize(m, data, func(p *verify.Piece) bool {
		r, err := Verify(v, p.Module, verify.DataSet{Name: "piece", Inputs: p.Data.Inputs}, o)
		if r == nil {
			return false // no plan: the device computes nothing
		}
		return err != nil || r.Node != nil || slices.ContainsFunc(r.Outputs, func(c verify.Compared) bool { return c.Wrong != "" })
	})
}
