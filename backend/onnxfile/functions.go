package onnxfile

import (
	"fmt"
	"os"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/aton-project/aton/backend/onnxfile/check"
	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// Functions are the bodies of operators of custom domains, in operators of ONNX: the local functions of files. A model that
// is written with them carries those that it calls, and so runs wherever ONNX does.
type Functions struct {
	all map[ssa.Kind]*onnxpb.FunctionProto
}

// ReadFunctions reads the local functions of ONNX files; what else the files have does not matter. Two bodies of one
// operator are an error.
func ReadFunctions(paths ...string) (*Functions, error) {
	f := &Functions{all: map[ssa.Kind]*onnxpb.FunctionProto{}}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := f.add(data); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return f, nil
}

func (f *Functions) add(data []byte) error {
	p, graph, err := split(data)
	if err != nil {
		return fmt.Errorf("not an ONNX model: %v", err)
	}
	if len(p.Functions) == 0 {
		return fmt.Errorf("there are no local functions in it; onnx.helper.make_function makes one, and make_model(..., functions=[...]) puts it into a file")
	}
	r := &reader{m: ssa.NewModule(), ext: &externalFiles{}}
	g, inits, err := r.splitGraph(graph)
	if err != nil {
		return fmt.Errorf("not an ONNX model: %v", err)
	}
	whole := check.File{Model: p, Graph: g}
	for _, in := range inits {
		whole.Weights = append(whole.Weights, in.name)
	}
	if err := whole.Check(&diag.Table{}).Err(); err != nil {
		return err
	}
	for _, fn := range p.Functions {
		k := ssa.Kind(fn.GetDomain() + "::" + fn.GetName())
		if k.Namespace() == "" || k.Namespace() == onnx.Namespace || k.Namespace() == "ai.onnx" {
			return fmt.Errorf("function %s is of ONNX's own domain; give it a domain of its own", fn.GetName())
		}
		if f.all[k] != nil {
			return fmt.Errorf("function %s is there twice", k)
		}
		f.all[k] = fn
	}
	return nil
}

// Kinds lists the operators that have a body, in alphabetical order. Nil Functions have none.
func (f *Functions) Kinds() []ssa.Kind {
	if f == nil {
		return nil
	}
	out := make([]ssa.Kind, 0, len(f.all))
	for k := range f.all {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// opsetOf is the version of ONNX's operators that a body is written in.
func opsetOf(f *onnxpb.FunctionProto) int {
	for _, o := range f.OpsetImport {
		if d := o.GetDomain(); d == "" || d == "ai.onnx" {
			return int(o.GetVersion())
		}
	}
	return onnx.ExportOpset
}

// Expand makes a module that computes what one op does on operands of the given types: the body of its function, whose
// operators are at the function's own opset. The types of operands that are absent are nil; the others are the parameters.
func (f *Functions) Expand(o *ssa.Op, operands []ssa.Type) (*ssa.Module, error) {
	fn := f.all[o.Kind]
	if fn == nil {
		return nil, fmt.Errorf("there is no function %s", o.Kind)
	}
	r := &reader{m: ssa.NewModule(onnx.Dialect{}), ext: &externalFiles{}, functions: map[string]*onnxpb.FunctionProto{}, used: map[string]int{}}
	r.m.Opsets = map[string]int{"": opsetOf(fn)}
	for _, each := range f.all {
		r.functions[functionKey(each.GetDomain(), each.GetName(), each.GetOverload())] = each
	}
	main := r.m.NewFunc("main")
	call := &onnxpb.NodeProto{OpType: proto.String(o.Kind.Name()), Domain: proto.String(o.Kind.Namespace())}
	for _, a := range o.Attrs {
		p, err := attribute(a)
		if err != nil {
			return nil, err
		}
		call.Attribute = append(call.Attribute, p)
	}
	args := make([]*ssa.Value, len(operands))
	for i, t := range operands {
		if t != nil {
			args[i] = main.Body.AddParam(r.name(fmt.Sprintf("in%d", i)), t)
		}
	}
	for i := range o.Results {
		call.Output = append(call.Output, fmt.Sprintf("out%d", i))
	}
	s := newScope(nil)
	if err := r.inline(main.Body, s, call, fn, args, 0); err != nil {
		return nil, err
	}
	results := make([]*ssa.Value, len(o.Results))
	for i, name := range call.Output {
		results[i] = s.values[name]
	}
	main.Body.SetReturns(results...)
	return r.m, nil
}

// called finds the functions that a graph calls, and those that these call, in alphabetical order. Domains that they import are in
// use then.
func (b *builder) called(g *onnxpb.GraphProto) []*onnxpb.FunctionProto {
	if b.opts.Functions == nil {
		return nil
	}
	found := map[ssa.Kind]bool{}
	var walk func(nodes []*onnxpb.NodeProto)
	walk = func(nodes []*onnxpb.NodeProto) {
		for _, n := range nodes {
			for _, a := range n.Attribute {
				if a.G != nil {
					walk(a.G.Node)
				}
			}
			k := ssa.Kind(n.GetDomain() + "::" + n.GetOpType())
			fn := b.opts.Functions.all[k]
			if fn == nil || found[k] {
				continue
			}
			found[k] = true
			for _, o := range fn.OpsetImport {
				b.used[o.GetDomain()] = true
			}
			if err := compatible(fn, b.opset); err != nil {
				b.fail("%s: %w; export with --opset %d, or make the function at opset %d", k, err, opsetOf(fn), b.opset)
			}
			walk(fn.Node)
		}
	}
	walk(g.Node)
	delete(b.used, "ai.onnx")
	var out []*onnxpb.FunctionProto
	for _, k := range b.opts.Functions.Kinds() {
		if found[k] {
			out = append(out, proto.CloneOf(b.opts.Functions.all[k]))
		}
	}
	return out
}
