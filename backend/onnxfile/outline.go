package onnxfile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"google.golang.org/protobuf/proto"
)

// ModuleFunction is the local function that the calls of a module become. Those of modules that compute the same share one;
// others have numbers behind their names.
type ModuleFunction struct{ Domain, Name string }

// outliner takes the nodes of modules out of a finished graph, into functions. It knows a node's module by its scope. What it
// does is a matter of names: the nodes stay as they are, in an order that their operands allow.
//
// The innermost modules come first, so that the functions of those around them call theirs. All modules of one depth are
// outlined before it is decided which attributes are those of the function.
type outliner struct {
	b       *builder
	of      map[string]ModuleFunction // by path
	scope   map[*onnxpb.NodeProto]string
	names   names // of functions
	groups  map[string][]*function
	all     []*function
	imports map[string]int64
}

// function is a local function in the making.
type function struct {
	proto *onnxpb.FunctionProto
	calls []*onnxpb.NodeProto
	// slots are the attributes of the body that may differ from call to call, with their values in the first call.
	slots []*onnxpb.AttributeProto
	// values has those of each call that waits for a decision; args are the names decided on, "" for attributes that are
	// the same everywhere.
	values [][]*onnxpb.AttributeProto
	args   []string
}

// outline makes functions of the modules that the options name.
func (b *builder) outline(g *onnxpb.GraphProto) []*onnxpb.FunctionProto {
	if len(b.modules) == 0 {
		return nil
	}
	x := &outliner{b: b, of: b.modules, scope: b.scope, names: names{map[string]int{}}, groups: map[string][]*function{}, imports: map[string]int64{}}
	for _, i := range b.imports() {
		x.imports[i.GetDomain()] = i.GetVersion()
	}
	outputs := map[string]bool{}
	for _, o := range g.Output {
		outputs[o.GetName()] = true
	}
	paths := make([][]string, 0)
	for _, path := range slices.SortedFunc(maps.Keys(x.of), func(p, q string) int { return cmp.Or(strings.Count(q, ".")-strings.Count(p, "."), cmp.Compare(p, q)) }) {
		depth := strings.Count(path, ".")
		if n := len(paths); n == 0 || strings.Count(paths[n-1][0], ".") != depth {
			paths = append(paths, nil)
		}
		paths[len(paths)-1] = append(paths[len(paths)-1], path)
	}
	for _, level := range paths {
		made := len(x.all)
		g.Node = x.list(g.Node, outputs, level)
		for _, f := range x.all[made:] {
			f.decide()
		}
	}
	b.dropConstants(g)
	var out []*onnxpb.FunctionProto
	for _, f := range x.all {
		b.used[f.proto.GetDomain()] = true
		out = append(out, f.proto)
	}
	return out
}

// dropConstants removes the constants that only functions have a use for: they hold them themselves.
func (b *builder) dropConstants(g *onnxpb.GraphProto) {
	read := map[string]bool{}
	for _, n := range g.Node {
		reads(n, func(name string) { read[name] = true })
	}
	for _, o := range g.Output {
		read[o.GetName()] = true
	}
	gone := func(name string) bool { return b.unnamed[name] != nil && !read[name] }
	b.inits = slices.DeleteFunc(b.inits, func(in initializer) bool { return gone(in.name) })
	b.weight = slices.DeleteFunc(b.weight, func(v *onnxpb.ValueInfoProto) bool { return gone(v.GetName()) })
	g.Input = slices.DeleteFunc(g.Input, func(v *onnxpb.ValueInfoProto) bool { return gone(v.GetName()) })
}

// reads calls f with the names that a node reads, those that its subgraphs take from around it among them.
func reads(n *onnxpb.NodeProto, f func(name string)) {
	for _, name := range n.Input {
		if name != "" {
			f(name)
		}
	}
	for _, a := range n.Attribute {
		if a.G == nil {
			continue
		}
		own := map[string]bool{}
		for _, in := range a.G.Input {
			own[in.GetName()] = true
		}
		for _, m := range a.G.Node {
			reads(m, func(name string) {
				if !own[name] {
					f(name)
				}
			})
			for _, name := range m.Output {
				own[name] = true
			}
		}
		for _, out := range a.G.Output {
			if !own[out.GetName()] {
				f(out.GetName())
			}
		}
	}
}

// list outlines the modules of some paths from the nodes of a graph, and of the graphs in it. needed are the values that the
// graph gives.
func (x *outliner) list(nodes []*onnxpb.NodeProto, needed map[string]bool, paths []string) []*onnxpb.NodeProto {
	for _, n := range nodes {
		for _, a := range n.Attribute {
			if a.G != nil {
				inner := map[string]bool{}
				for _, o := range a.G.Output {
					inner[o.GetName()] = true
				}
				a.G.Node = x.list(a.G.Node, inner, paths)
			}
		}
	}
	depth := strings.Count(paths[0], ".")
	left := map[string]int{} // nodes of the modules that are still to be outlined
	for _, p := range paths {
		left[p] = 0
	}
	users := map[string][]*onnxpb.NodeProto{}
	for _, n := range nodes {
		if p := prefix(x.scope[n], depth); p != "" {
			if _, wanted := left[p]; wanted {
				left[p]++
			}
		}
		reads(n, func(name string) { users[name] = append(users[name], n) })
	}
	l := &level{x: x, depth: depth, users: users, needed: needed, gone: map[*onnxpb.NodeProto]bool{}}
	// What stands between the nodes of a module is looked at again: other modules may begin there.
	todo := slices.Clone(nodes)
	slices.Reverse(todo)
	pop := func() *onnxpb.NodeProto {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		return n
	}
	out := make([]*onnxpb.NodeProto, 0, len(nodes))
	for len(todo) > 0 {
		n := pop()
		p := prefix(x.scope[n], depth)
		if left[p] == 0 {
			out = append(out, n)
			continue
		}
		window := []*onnxpb.NodeProto{n}
		for left[p]--; left[p] > 0; {
			n := pop()
			window = append(window, n)
			if prefix(x.scope[n], depth) == p {
				left[p]--
			}
		}
		done := l.module(window, p)
		for i := len(done) - 1; i >= 0; i-- {
			todo = append(todo, done[i])
		}
	}
	return out
}

// level is the work on the modules of one depth in the nodes of one graph.
type level struct {
	x      *outliner
	depth  int
	users  map[string][]*onnxpb.NodeProto
	needed map[string]bool
	gone   map[*onnxpb.NodeProto]bool // into functions
}

// prefix is the first depth+1 parts of a path, "" for a shorter one.
func prefix(path string, depth int) string {
	for i := range len(path) {
		if path[i] == '.' {
			if depth == 0 {
				return path[:i]
			}
			depth--
		}
	}
	if depth == 0 {
		return path
	}
	return ""
}

// module takes the nodes of one module, the first and the last of a window among them, out of it. What stands between them
// goes before the call, or behind it where it reads what the module computes; where the module reads that again, it was
// called twice, and so is the function.
func (l *level) module(window []*onnxpb.NodeProto, path string) []*onnxpb.NodeProto {
	var out, part, after []*onnxpb.NodeProto
	given, behind := map[string]bool{}, map[string]bool{} // by part, by after
	for _, n := range window {
		switch {
		case prefix(l.x.scope[n], l.depth) == path:
			if readsAny(n, behind) {
				out = append(append(out, l.outlined(part, path)...), after...)
				part, after = nil, nil
				clear(given)
				clear(behind)
			}
			part = append(part, n)
			note(given, n)
		case readsAny(n, given, behind):
			after = append(after, n)
			note(behind, n)
		default:
			out = append(out, n)
		}
	}
	return append(append(out, l.outlined(part, path)...), after...)
}

// readsAny reports that a node reads a name of one of the sets.
func readsAny(n *onnxpb.NodeProto, sets ...map[string]bool) (found bool) {
	reads(n, func(name string) {
		for _, s := range sets {
			found = found || s[name]
		}
	})
	return found
}

// note adds what a node computes to a set.
func note(set map[string]bool, n *onnxpb.NodeProto) {
	for _, name := range n.Output {
		if name != "" {
			set[name] = true
		}
	}
}

// outlined is the call that takes the place of some nodes; they stay if nothing reads what they compute.
func (l *level) outlined(part []*onnxpb.NodeProto, path string) []*onnxpb.NodeProto {
	in := map[*onnxpb.NodeProto]bool{}
	for _, n := range part {
		in[n] = true
	}
	var results []string
	for _, n := range part {
		for _, name := range n.Output {
			if name != "" && (l.needed[name] || slices.ContainsFunc(l.users[name], func(n *onnxpb.NodeProto) bool { return !in[n] && !l.gone[n] })) {
				results = append(results, name)
			}
		}
	}
	if len(results) == 0 {
		return part
	}
	call := l.x.call(path, part, results)
	for n := range in {
		l.gone[n] = true
	}
	for _, name := range call.Input {
		l.users[name] = append(l.users[name], call)
	}
	return []*onnxpb.NodeProto{call}
}

// call makes a call of the function of some nodes, which it finds or makes.
func (x *outliner) call(path string, nodes []*onnxpb.NodeProto, results []string) *onnxpb.NodeProto {
	name := x.b.nodes.unique("/" + strings.ReplaceAll(path, ".", "/"))
	call := &onnxpb.NodeProto{Name: &name, Output: results}
	x.scope[call] = path
	body := &body{x: x, to: map[string]string{}, count: map[string]int{}}
	body.define(nodes)
	for _, n := range nodes {
		reads(n, body.operand)
	}
	slices.SortStableFunc(body.inputs, func(p, q string) int { return body.isWeight(p) - body.isWeight(q) }) // data first
	for i, in := range body.inputs {
		body.to[in] = fmt.Sprintf("in%d", i)
		body.kinds += fmt.Sprint(body.isWeight(in))
	}
	call.Input = body.inputs
	f := &function{proto: &onnxpb.FunctionProto{}}
	f.proto.Node = append(f.proto.Node, body.constants...)
	for _, n := range nodes {
		f.proto.Node = append(f.proto.Node, body.node(n))
	}
	for i := range body.inputs {
		f.proto.Input = append(f.proto.Input, fmt.Sprintf("in%d", i))
	}
	for _, name := range results {
		f.proto.Output = append(f.proto.Output, body.to[name])
	}
	of := x.of[path]
	f.findSlots()
	key := of.Domain + "\x00" + of.Name + "\x00" + body.kinds + "\x00" + f.key()
	for _, have := range x.groups[key] {
		if have.take(call, f.slots) {
			call.Domain, call.OpType = have.proto.Domain, have.proto.Name
			return call
		}
	}
	f.take(call, f.slots)
	x.groups[key] = append(x.groups[key], f)
	x.all = append(x.all, f)
	f.finish(x, of, path, body)
	call.Domain, call.OpType = f.proto.Domain, f.proto.Name
	return call
}

// body renames what is in the nodes of a function, alike for modules that compute the same.
type body struct {
	x         *outliner
	to        map[string]string
	count     map[string]int // of values by the operator that computes them
	inputs    []string
	kinds     string // which of the inputs are weights
	constants []*onnxpb.NodeProto
}

func (b *body) isWeight(name string) int {
	if b.x.b.isInit[name] {
		return 1
	}
	return 0
}

// define names what nodes compute, in their subgraphs too.
func (b *body) define(nodes []*onnxpb.NodeProto) {
	fresh := func(name, kind string) {
		if name != "" {
			b.to[name] = fmt.Sprintf("%s_%d", kind, b.count[kind])
			b.count[kind]++
		}
	}
	for _, n := range nodes {
		for _, a := range n.Attribute {
			if a.G != nil {
				for _, in := range a.G.Input {
					fresh(in.GetName(), "Input")
				}
				b.define(a.G.Node)
			}
		}
		for _, name := range n.Output {
			fresh(name, n.GetOpType())
		}
	}
}

// operand notes a name that a node reads. What comes from outside is an input; a small constant of the program's own is
// made again inside.
func (b *body) operand(name string) {
	if _, known := b.to[name]; known {
		return
	}
	if t := b.x.b.unnamed[name]; t != nil && t.NumBytes() < externalThreshold {
		a, err := attribute(ssa.Attr{Name: "value", Value: ssa.TensorValue(t)})
		if err == nil {
			b.to[name] = fmt.Sprintf("Constant_%d", b.count["Constant"])
			b.count["Constant"]++
			b.constants = append(b.constants, &onnxpb.NodeProto{OpType: proto.String("Constant"), Output: []string{b.to[name]}, Attribute: []*onnxpb.AttributeProto{a}})
			return
		}
	}
	b.to[name] = "" // until their order is known
	b.inputs = append(b.inputs, name)
}

// node copies a node, with the names of the function.
func (b *body) node(n *onnxpb.NodeProto) *onnxpb.NodeProto {
	c := proto.Clone(n).(*onnxpb.NodeProto)
	b.rename(c)
	return c
}

func (b *body) rename(n *onnxpb.NodeProto) {
	n.Name, n.DocString, n.MetadataProps = nil, nil, nil
	for _, list := range [][]string{n.Input, n.Output} {
		for i, name := range list {
			if name != "" {
				list[i] = b.to[name]
			}
		}
	}
	for _, a := range n.Attribute {
		if a.G == nil {
			continue
		}
		a.G.Name = proto.String("body")
		for _, v := range slices.Concat(a.G.Input, a.G.Output) {
			v.Name = proto.String(b.to[v.GetName()])
		}
		for _, m := range a.G.Node {
			b.rename(m)
		}
	}
}

// findSlots lists the attributes that may be those of the function: numbers, texts and lists of them, but not of constants.
func (f *function) findSlots() {
	for _, n := range f.proto.Node {
		if n.GetOpType() == "Constant" && n.GetDomain() == "" {
			continue
		}
		for _, a := range n.Attribute {
			switch a.GetType() {
			case onnxpb.AttributeProto_INT, onnxpb.AttributeProto_FLOAT, onnxpb.AttributeProto_STRING, onnxpb.AttributeProto_INTS, onnxpb.AttributeProto_FLOATS,
				onnxpb.AttributeProto_STRINGS:
				f.slots = append(f.slots, a)
			}
		}
	}
}

// key is the same for functions that differ in the values of slots only.
func (f *function) key() string {
	blank := proto.Clone(f.proto).(*onnxpb.FunctionProto)
	g := &function{proto: blank}
	g.findSlots()
	for _, a := range g.slots {
		*a = onnxpb.AttributeProto{Name: a.Name, Type: a.Type}
	}
	b, err := marshal(blank)
	if err != nil {
		return "" // what has no encoding is told when the file is written
	}
	return string(b)
}

// take makes the call one of the function, if it can be: once it is decided which attributes are the function's, the others
// must be the same.
func (f *function) take(call *onnxpb.NodeProto, slots []*onnxpb.AttributeProto) bool {
	if f.args == nil {
		f.calls = append(f.calls, call)
		f.values = append(f.values, slots)
		return true
	}
	for i, a := range slots {
		if f.args[i] == "" && !proto.Equal(a, f.slots[i]) {
			return false
		}
	}
	f.give(call, slots)
	return true
}

// give sets the attributes of a call.
func (f *function) give(call *onnxpb.NodeProto, slots []*onnxpb.AttributeProto) {
	for i, a := range slots {
		if f.args[i] != "" {
			v := proto.Clone(a).(*onnxpb.AttributeProto)
			v.Name = proto.String(f.args[i])
			call.Attribute = append(call.Attribute, v)
		}
	}
}

// decide makes attributes of the function of those in which its calls differ.
func (f *function) decide() {
	f.args = make([]string, len(f.slots))
	taken := names{map[string]int{}}
	refs := make([]*onnxpb.AttributeProto, len(f.slots))
	for i, a := range f.slots {
		if slices.ContainsFunc(f.values, func(v []*onnxpb.AttributeProto) bool { return !proto.Equal(v[i], a) }) {
			f.args[i] = taken.unique(a.GetName())
			f.proto.Attribute = append(f.proto.Attribute, f.args[i])
			refs[i] = &onnxpb.AttributeProto{Name: a.Name, Type: a.Type, RefAttrName: &f.args[i]}
		}
	}
	for i, call := range f.calls {
		f.give(call, f.values[i])
	}
	k := 0
	for _, n := range f.proto.Node {
		if n.GetOpType() == "Constant" && n.GetDomain() == "" {
			continue
		}
		for j, a := range n.Attribute {
			if k < len(f.slots) && (f.values[0][k] == a) {
				if refs[k] != nil {
					n.Attribute[j] = refs[k]
				}
				k++
			}
		}
	}
	f.values = nil
}

// finish names the function, its inputs and nodes, after the module that it was made for first.
func (f *function) finish(x *outliner, of ModuleFunction, path string, b *body) {
	p := f.proto
	if _, taken := x.b.m.Opsets[of.Domain]; taken || of.Domain == "" || of.Domain == onnx.Namespace || strings.HasPrefix(of.Domain, "ai.onnx") {
		of.Domain += ".modules"
	}
	name := strings.TrimPrefix(x.names.unique(of.Domain+"\x00"+of.Name), of.Domain+"\x00")
	p.Domain, p.Name = &of.Domain, &name
	nice := names{map[string]int{}}
	for _, n := range p.Node {
		for _, out := range n.Output {
			nice.unique(out)
		}
	}
	to := map[string]string{}
	for i, in := range b.inputs {
		want := "input"
		if rest, ok := strings.CutPrefix(in, path+"."); ok && b.isWeight(in) == 1 {
			want = rest
		} else if b.isWeight(in) == 1 {
			want = "weight"
		}
		to[fmt.Sprintf("in%d", i)] = nice.unique(want)
	}
	called := func(name string) string { return cmp.Or(to[name], name) }
	for i, in := range p.Input {
		p.Input[i] = called(in)
	}
	for i, out := range p.Output {
		p.Output[i] = called(out)
	}
	domains := map[string]bool{}
	var rename func(nodes []*onnxpb.NodeProto)
	rename = func(nodes []*onnxpb.NodeProto) {
		for _, n := range nodes {
			domains[n.GetDomain()] = true
			for i, in := range n.Input {
				n.Input[i] = called(in)
			}
			for _, a := range n.Attribute {
				if a.G != nil {
					for _, out := range a.G.Output {
						out.Name = proto.String(called(out.GetName()))
					}
					rename(a.G.Node)
				}
			}
		}
	}
	rename(p.Node)
	for _, d := range slices.Sorted(maps.Keys(domains)) {
		version, ok := x.imports[d]
		if !ok {
			version = 1
		}
		p.OpsetImport = append(p.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: proto.String(d), Version: &version})
	}
	p.DocString = proto.String("the module " + path)
}
