package verify

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// Piece is a part of a model as a model of its own, with the inputs that it has there.
type Piece struct {
	Module *ssa.Module
	// Data has the inputs, and the outputs that the reference interpreter computes for them.
	Data DataSet
	// Nodes is the number of operators without constants, and First names the first one.
	Nodes int
	First string
}

// Write writes the piece to a folder in the form of ONNX's test cases: model.onnx, and test_data_set_0 with input_0.pb, output_0.pb, ...
func (p *Piece) Write(folder string) error {
	data := filepath.Join(folder, "test_data_set_0")
	if err := os.MkdirAll(data, 0o777); err != nil {
		return err
	}
	// files of an earlier piece would count as additional inputs
	for _, pattern := range []string{"input_*.pb", "output_*.pb"} {
		old, err := filepath.Glob(filepath.Join(data, pattern))
		if err != nil {
			return err
		}
		for _, f := range old {
			if err := os.Remove(f); err != nil {
				return err
			}
		}
	}
	for kind, tensors := range map[string][]Named{"input": p.Data.Inputs, "output": p.Data.Outputs} {
		for i, t := range tensors {
			if err := onnxfile.WriteTensor(filepath.Join(data, fmt.Sprintf("%s_%d.pb", kind, i)), t.Name, t.Tensor); err != nil {
				return err
			}
		}
	}
	return onnxfile.Write(filepath.Join(folder, "model.onnx"), p.Module, onnxfile.Options{})
}

// runValues has the values of a module's main block in a run of the interpreter.
type runValues map[*ssa.Value]interp.Value

// values runs a module and keeps the values that its main block computes.
func (v Verifier) values(m *ssa.Module, data DataSet) (runValues, error) {
	args, err := Arguments(m, data)
	if err != nil {
		return nil, err
	}
	f := m.Main()
	values := runValues{}
	for i, p := range f.Body.Params {
		values[p] = args[i]
	}
	in := v.interpreter()
	in.Observe = func(o *ssa.Op, _, out []interp.Value) error {
		if o.Block() == f.Body {
			for i, r := range o.Results {
				if i < len(out) {
					values[r] = out[i]
				}
			}
		}
		return nil
	}
	_, err = in.RunFunc(f, args)
	return values, err
}

// Minimize looks for the smallest part of a module that is wrong by itself, given the values of the interpreter as inputs. It tries parts
// of one operator, two, four and so on, and shrinks the first wrong one from both ends. It returns nil if there is none. Parts that take
// or return sequences are not tried.
func (v Verifier) Minimize(m *ssa.Module, data DataSet, wrong func(*Piece) bool) (*Piece, error) {
	values, err := v.values(m, data)
	if err != nil {
		return nil, err
	}
	return smallest(m, values, wrong), nil
}

// smallest looks for the smallest range of operators of the main block that is wrong.
func smallest(m *ssa.Module, values runValues, wrong func(p *Piece) bool) *Piece {
	var ops []*ssa.Op
	for o := range m.Main().Body.Ops() {
		if len(o.Results) > 0 && onnx.ConstOf(o.Results[0]) == nil {
			ops = append(ops, o)
		}
	}
	try := func(from, to int) *Piece {
		p := cut(m, ops[from:to], values)
		if p == nil || !wrong(p) {
			return nil
		}
		return p
	}
	for width := 1; width < 2*len(ops); width *= 2 {
		for from := 0; from < len(ops); from += max(width/2, 1) {
			to := min(from+width, len(ops))
			found := try(from, to)
			if found == nil {
				continue
			}
			for to-from > 1 {
				if p := try(from+1, to); p != nil {
					found, from = p, from+1
				} else if p := try(from, to-1); p != nil {
					found, to = p, to-1
				} else {
					break
				}
			}
			return found
		}
	}
	return nil
}

// cut makes a module of some operators of the main block, in their order. Values that they take from elsewhere become inputs of
// the recorded sizes, or constants. It returns nil if a sequence would be an input or an output, or if there would be no output.
func cut(m *ssa.Module, ops []*ssa.Op, values runValues) *Piece {
	p := &Piece{Module: ssa.NewModule(m.Dialects...), Data: DataSet{Name: "0"}, Nodes: len(ops)}
	p.Module.Opsets = maps.Clone(m.Opsets)
	if p.Module.Opsets == nil {
		p.Module.Opsets = map[string]int{}
	}
	if p.Module.Opsets[""] == 0 {
		p.Module.Opsets[""] = onnx.Newest
	}
	body := p.Module.NewFunc("main").Body
	copies := make([]*ssa.Value, m.Main().NumValues())
	loc := func(l diag.Loc) diag.Loc {
		f := m.Locs.Frame(l)
		f.Caller = 0
		return p.Module.Locs.Add(f)
	}
	names := map[string]bool{}
	name := func(wanted string) string {
		for n := wanted; ; n += "_" {
			if n != "" && !names[n] {
				names[n] = true
				return n
			}
			if n == "" {
				n = "value"
			}
		}
	}
	inside := map[*ssa.Op]bool{}
	// outer makes the value that an operator takes from elsewhere
	outer := func(v *ssa.Value) bool {
		if v == nil || copies[v.ID] != nil {
			return true
		}
		if t := onnx.ConstOf(v); t != nil && v.Def() != nil {
			c := body.Append("onnx::Constant", loc(v.Def().Loc), nil, v.Type)
			c.SetAttr("value", ssa.TensorValue(t))
			copies[v.ID] = c.Results[0]
			return true
		}
		t := values[v].Tensor
		if t == nil {
			return false
		}
		in := name(v.Name)
		copies[v.ID] = body.AddParam(in, ssa.TensorOf(t))
		p.Data.Inputs = append(p.Data.Inputs, Named{in, t})
		return true
	}
	for _, o := range ops {
		inside[o] = true
		for _, v := range append(o.Operands(), interp.Captured(o)...) {
			if !outer(v) {
				return nil
			}
		}
		o.CopyTo(body, copies, loc, name)
	}
	p.First = nodeOf(m, ops[0])
	var outputs []*ssa.Value
	for _, o := range ops {
		for _, r := range o.Results {
			used := false
			needed := !r.HasUses()
			for u := range r.Uses() {
				at := u.Op()
				for at != nil && at.Block() != m.Main().Body {
					at = at.Block().Owner() // a captured value counts as an operand of the operator that owns the body
				}
				used = true
				needed = needed || at == nil || !inside[at]
			}
			t := values[r].Tensor
			if t != nil {
				copies[r.ID].Type = ssa.TensorOf(t)
			}
			switch {
			case !needed:
				continue
			case t == nil && !used:
				continue // an optional result that is absent
			case t == nil:
				return nil
			}
			outputs = append(outputs, copies[r.ID])
			p.Data.Outputs = append(p.Data.Outputs, Named{copies[r.ID].Name, t})
		}
	}
	if len(outputs) == 0 {
		return nil
	}
	for i, v := range outputs {
		if v.Name == "" {
			v.Name = name(fmt.Sprintf("output.%d", i))
			p.Data.Outputs[i].Name = v.Name
		}
	}
	body.SetReturns(outputs...)
	return p
}

// nodeOf describes an operator: its kind, its first result and the line of the program.
func nodeOf(m *ssa.Module, o *ssa.Op) string {
	s := string(o.Kind)
	if len(o.Results) > 0 && o.Results[0].Name != "" {
		s += " " + o.Results[0].Name
	}
	if at := m.Locs.String(o.Loc); at != "" {
		s = at + ": " + s
	}
	return s
}
