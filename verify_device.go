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

// OnDevice is the result of running a module on a device.
type OnDevice struct {
	Device string `json:"device"`
	// Outputs compares the device's results with the recorded outputs, or with the interpreter's if none are
	// recorded.
	Outputs []Compared `json:"outputs"`
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

// DeviceOptions configures VerifyOn. Backend is required; the zero values of the other fields suit most callers.
type DeviceOptions struct {
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

// VerifyOn runs a module of ONNX operators on a device and compares its outputs with those of the data set, or with the
// interpreter's if the data set has none. If they differ, it runs each node by itself and reports the first one whose kernel
// disagrees with the interpreter.
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

// sampleOn runs some of the blocks of each kernel.
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

// deviceReport returns the facts that follow from the plan alone.
func deviceReport(p *plan.Plan, o DeviceOptions) *OnDevice {
	counts, share := p.Coverage()
	return &OnDevice{Device: o.Backend.Name(), Nodes: len(p.Nodes) - counts[plan.Constant] - counts[plan.Sizes], Share: 100 * share, Host: counts[plan.Host]}
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

// arguments returns the inputs of a data set in the order of the model's inputs.
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
	byDefault := len(data.Inputs) < takes // inputs with a default value are left out
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

// leaves returns the tensors in values, depth first.
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

// maxMadeUp is the greatest number of random elements of an input.
const maxMadeUp = 1 << 24

// RandomOptions configures random inputs. The same options give the same numbers.
type RandomOptions struct {
	Seed uint64
	// Sizes has the sizes of dynamic axes, by name. Other axes have the size 2, 1, 3 or 0, depending on the seed, or the least size that
	// the module allows if that is greater.
	Sizes map[string]int64
}

// RandomData makes inputs for a module whose input types are known: normally distributed floats, integers from 0 to 9, and for a
// Python float mostly an edge case, such as 0, an infinity or NaN.
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

// edges has floats for which implementations of operators on numbers tend to differ.
var edges = []float64{0, 1, -1, 0.1, 0.5, 2, -3, 1e-3, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN()}
