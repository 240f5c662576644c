package aton

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/codegen/gpu/sim"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// OnDevice is what running a module on a device found.
type OnDevice struct {
	Device string `json:"device"`
	// Outputs are the device's results beside what is expected: the recorded ones, or where there are none the
	// interpreter's.
	Outputs []Compared `json:"outputs"`
	// Nodes are counted without constants and without sizes, which the plan knows as expressions; Share is the part of them that kernels compute, in percent.
	Nodes    int     `json:"nodes"`
	Share    float64 `json:"share"`
	Launches int     `json:"launches"`
	Host     int     `json:"host_steps"`
	Seconds  float64 `json:"seconds"`
	// LaneInstructions are what the simulator counts.
	LaneInstructions int64 `json:"lane_instructions,omitempty"`
	// Compared is how many nodes were compared with the interpreter one by one.
	Compared int `json:"nodes_compared,omitempty"`
	// Sample is set if only a part of the blocks of each kernel ran: there are no outputs then.
	Sample *exec.Sample `json:"sample,omitempty"`
	// Node is the first node whose kernel is wrong, looked for when an output is.
	Node *exec.NodeResult `json:"node,omitempty"`
}

// DeviceOptions say how VerifyOn runs a module. The zero value of the others is what most callers want.
type DeviceOptions struct {
	Backend exec.Backend
	// Fusion is fuse.Light unless it is set.
	Fusion fuse.Mode
	// TF32 rounds the factors of large products and convolutions of float32 to tf32, for tensor cores; nodes are compared by a bound that allows for it.
	TF32 bool
	// Nodes compares every node with the interpreter, not only when an output is wrong.
	Nodes bool
	// Sample, if it is not 0, is the part of the blocks of each kernel that runs, at most 1; Seed says which ones. What the blocks write
	// is compared with what the interpreter gives for the nodes of the kernel: see exec.CheckSample.
	Sample float64
	Seed   uint64
	// Session, if set, sees the sessions before they run: tests plant faults with it.
	Session func(*exec.Session)
}

// VerifyOn runs a module of the ONNX dialect on a device and compares its outputs with those of the data set, or, if it has
// none, with the interpreter's. If they differ, each node is run alone, and the first whose kernel gives something else
// than the interpreter is named.
func (v Verifier) VerifyOn(m *ssa.Module, data DataSet, o DeviceOptions) (*OnDevice, error) {
	if o.Fusion == "" {
		o.Fusion = fuse.Light
	}
	args, err := arguments(m, data)
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
	want := data.Outputs
	if len(want) == 0 {
		values, err := v.interpreter().RunFunc(m.Main(), args)
		if err != nil {
			return nil, err
		}
		for i, t := range leaves(values) {
			want = append(want, Named{outputName(m, i), t})
		}
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
	wrong := runErr != nil
	if runErr == nil {
		r.Launches, r.Seconds, r.LaneInstructions = report.Launches, report.Elapsed.Seconds(), report.LaneInstructions
		got := leaves(values)
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

// sampleOn runs a part of the blocks of each kernel.
func sampleOn(m *ssa.Module, args []interp.Value, o DeviceOptions) (*OnDevice, error) {
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
	r.Outputs, r.Node = []Compared{}, r.Sample.Node
	if t := r.Sample.Report; t != nil {
		r.Launches, r.Seconds, r.LaneInstructions = t.Launches, t.Elapsed.Seconds(), t.LaneInstructions
	}
	return r, nil
}

// deviceReport is what the plan alone tells.
func deviceReport(p *plan.Plan, o DeviceOptions) *OnDevice {
	counts, share := p.Coverage()
	return &OnDevice{Device: o.Backend.Name(), Nodes: len(p.Nodes) - counts[plan.Constant] - counts[plan.Sizes], Share: 100 * share, Host: counts[plan.Host]}
}

// likely are the sizes of the symbols in the inputs' types.
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

// compareNodes runs each node alone, on the operands that the device computed for it, up to the first wrong one.
func compareNodes(m *ssa.Module, args []interp.Value, o DeviceOptions) ([]exec.NodeResult, error) {
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

// arguments brings the inputs of a data set to the order of the model's.
func arguments(m *ssa.Module, data DataSet) ([]interp.Value, error) {
	f := m.Main()
	if f == nil {
		return nil, fmt.Errorf("the module has no function")
	}
	byName := map[string]*tensor.Tensor{}
	maps.Copy(byName, m.Defaults)
	maps.Copy(byName, m.Weights)
	for _, in := range data.Inputs {
		byName[in.Name] = in.Tensor
	}
	named := true
	for _, p := range f.Body.Params {
		named = named && byName[p.Name] != nil
	}
	takes := len(f.Body.Params) - len(m.Weights)
	byDefault := len(data.Inputs) < takes // the inputs that have a default value are left out
	if !named && len(data.Inputs) < takes-len(m.Defaults) {
		return nil, fmt.Errorf("data set %s has %d inputs, the model takes %d", data.Name, len(data.Inputs), len(f.Body.Params))
	}
	args := make([]interp.Value, len(f.Body.Params))
	next := 0
	for i, p := range f.Body.Params {
		if lt, ok := p.Type.(*ssa.ListType); ok && ssa.AsTensor(lt.Elem) != nil {
			return nil, fmt.Errorf("input %s is a sequence: the files of data sets have no such thing", p.Name)
		}
		if named || m.Weights[p.Name] != nil || byDefault && m.Defaults[p.Name] != nil {
			args[i] = interp.Of(byName[p.Name])
			continue
		}
		args[i] = interp.Of(data.Inputs[next].Tensor)
		next++
	}
	return args, bind(f.Body.Params, args)
}

// leaves are the tensors in values, depth first.
func leaves(values []interp.Value) []*tensor.Tensor {
	var out []*tensor.Tensor
	for _, v := range values {
		if v.IsList {
			out = append(out, v.List...)
		} else if v.Tensor != nil {
			out = append(out, v.Tensor)
		}
	}
	return out
}

func outputName(m *ssa.Module, i int) string {
	f := m.Main()
	if i < len(f.OutputNames) {
		return f.OutputNames[i]
	}
	if i < f.Body.NumReturns() && f.Body.Return(i) != nil {
		return f.Body.Return(i).Name
	}
	return fmt.Sprintf("output_%d", i)
}

// maxMadeUp is how many elements of an input are made up.
const maxMadeUp = 1 << 24

// RandomOptions say what random inputs are like. The same options make the same numbers.
type RandomOptions struct {
	Seed uint64
	// Sizes are those of dynamic axes, by name. Others have size 2 with the seed 0, then 1, 3 and 0, and so on from there, or the least that
	// the module can have where that is more.
	Sizes map[string]int64
}

// RandomData makes inputs for a module whose input types are known: floats of a normal distribution, integers of 0 to 9, and for a
// Python float mostly a number at an edge, such as 0, an infinity or NaN.
func RandomData(m *ssa.Module, o RandomOptions) (DataSet, error) {
	set := DataSet{Name: "random"}
	if o.Seed > 0 {
		set.Name = fmt.Sprintf("random %d", o.Seed)
	}
	inputs, err := inputTypes(m)
	if err != nil {
		return set, err
	}
	r := rand.New(rand.NewPCG(1+o.Seed, 2))
	for _, p := range inputs {
		if t := m.Defaults[p.Name]; t != nil {
			set.Inputs = append(set.Inputs, Named{Name: p.Name, Tensor: t})
			continue
		}
		t := ssa.AsTensor(p.Type)
		if t == nil || !t.Ranked || t.DType == tensor.Undefined {
			return set, fmt.Errorf("input %s is %s: give its type with --input, or data", p.Name, p.Type)
		}
		if !t.DType.HoldsNumbers() {
			return set, fmt.Errorf("input %s is %s, of which no elements can be made up: give data", p.Name, t)
		}
		env := o.sizesOf(m, t.Dims)
		shape, n, most := []int64{}, int64(1), m.Allow(maxMadeUp)
		for _, d := range t.Dims {
			s, ok := d.Eval(env)
			if !ok || s < 0 || s > most || n > most/max(s, 1) {
				return set, fmt.Errorf("input %s of type %s has more than the %d elements that are made up: give data, or --budget 10 for ten times as many", p.Name, t, most)
			}
			shape = append(shape, s)
			n *= s
		}
		v := make([]float64, n)
		for i := range v {
			switch {
			case t.DType == tensor.Float64 && len(shape) == 0 && r.IntN(4) > 0:
				v[i] = edges[r.IntN(len(edges))]
			case t.DType.IsFloat():
				v[i] = r.NormFloat64()
			case t.DType == tensor.Bool:
				v[i] = float64(r.IntN(2))
			default:
				v[i] = float64(r.IntN(10))
			}
		}
		set.Inputs = append(set.Inputs, Named{p.Name, tensor.FromFloats(t.DType, shape, v)})
	}
	return set, nil
}

// edges are the floats at which operators on numbers differ most.
var edges = []float64{0, 1, -1, 0.1, 0.5, 2, -3, 1e-3, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN()}
