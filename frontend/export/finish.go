package export

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// results makes what main returns: the user's outputs, without those that are None or text.
func (im *importer) results(sc *scope) {
	p := im.p
	var leaves []leaf
	if p.outTree != "" {
		var err error
		if leaves, err = p.outputLeaves(); err != nil {
			im.warn("the tree of the outputs is not understood: %v", err)
		}
	}
	taken := map[string]bool{}
	for _, v := range im.f.Body.Params {
		taken[v.Name] = true
	}
	var vals []*ssa.Value
	var names, written []string
	var documented []string
	at := 0
	for i := range p.outputs {
		out := &p.outputs[i]
		switch out.kind {
		case userOutput, lossOutput:
		case bufferMutation, parameterMutation:
			written = append(written, out.target)
			continue
		case inputMutation:
			im.warn("the program writes to its input %s; the ONNX model does not", out.target)
			continue
		default:
			if out.kind == gradient {
				im.warn("gradients among the outputs are left out: the program is a training step")
			}
			continue
		}
		path := ""
		if at < len(leaves) {
			path = leaves[at].path
		}
		at++
		a := &out.arg
		if out.kind == lossOutput {
			a = &p.graph.outputs[i]
		}
		switch a.tag {
		case tagNone:
			documented = append(documented, "None")
			continue
		case tagString:
			im.warn("output %s is the constant %q and is left out", path, a.s)
			documented = append(documented, ssa.Quote(a.s))
			continue
		}
		v := im.value(sc, a, nil)
		name := a.s
		if !a.isName() {
			name = "output"
			if path != "" {
				name += "_" + strings.ReplaceAll(path, ".", "_")
			}
		}
		for n, k := name, 1; taken[name]; k++ {
			name = fmt.Sprintf("%s_%d", n, k)
		}
		taken[name] = true
		vals, names, documented = append(vals, v), append(names, name), append(documented, name)
	}
	for len(leaves) > len(documented) {
		leaves = leaves[:len(documented)]
	}
	im.f.Body.SetReturns(vals...)
	im.f.OutputNames = names
	if len(written) > 0 {
		slices.Sort(written)
		im.warn("the program updates its state (%s); the ONNX model does not keep it from run to run", short(written))
	}
	plain := true // a tuple, or a lone value
	for i, l := range leaves {
		plain = plain && (l.path == "" || l.path == fmt.Sprint(i))
	}
	if len(leaves) == len(documented) && !plain {
		im.m.SetMetadata("pkg.torch.export.out_tree", metadataTree(leaves, documented))
	}
}

// short lists a few names.
func short(names []string) string {
	if len(names) > 4 {
		return strings.Join(names[:4], ", ") + fmt.Sprintf(" and %d more", len(names)-4)
	}
	return strings.Join(names, ", ")
}

// document keeps what the program demands of its inputs in the metadata.
func (im *importer) document() {
	var paths []leaf
	var names []string
	for _, l := range im.leaves {
		name := l.name
		if l.value != nil && l.value.expr == "" {
			im.warn("input %s is always %d in this program, whatever is passed", l.name, l.value.n)
		}
		if l.fixed != nil {
			lit, _ := im.literal(l.fixed, nil)
			name = lit.String()
			im.warnConstant(l, name)
		}
		paths, names = append(paths, l.leaf), append(names, name)
	}
	plain := true
	for i, l := range paths {
		plain = plain && l.path == names[i]
	}
	if im.p.inTree != "" && !plain {
		im.m.SetMetadata("pkg.torch.export.in_tree", metadataTree(paths, names))
	}
	if s := im.ranges(); s != "" {
		im.m.SetMetadata("pkg.torch.export.ExportedProgram.range_constraints", s)
	}
	var conditions, serious []string
	for _, c := range im.guards.rest {
		conditions = append(conditions, c.text)
		if c.e.op != "!=" { // those tell apart the kernels that ran
			serious = append(serious, c.text)
		}
	}
	if len(conditions) > 0 {
		im.m.SetMetadata("pkg.torch.export.guards", strings.Join(conditions, "\n"))
	}
	if len(serious) > 0 {
		im.warn("the program holds for inputs with %s", short(serious))
	}
	if len(im.asserts) > 0 {
		im.m.SetMetadata("pkg.torch.export.assertions", strings.Join(im.asserts, "\n"))
	}
}

func (im *importer) warnConstant(l userLeaf, value string) {
	if l.fixed.tag != tagNone {
		im.warn("input %s is %s in this program and no input of the ONNX model", l.name, value)
	}
}

// ranges lists the bounds of the symbols that occur in the inputs.
func (im *importer) ranges() string {
	var b strings.Builder
	seen := map[string]bool{}
	for _, p := range im.f.Body.Params {
		t := p.Tensor()
		if t == nil {
			continue
		}
		for _, d := range t.Dims {
			d.Symbols(func(n string) {
				if seen[n] {
					return
				}
				seen[n] = true
				lo, ok1 := im.syms.mins[n]
				hi, ok2 := im.syms.maxes[n]
				switch {
				case ok1 && ok2:
					fmt.Fprintf(&b, "%d <= %s <= %d\n", lo, n, hi)
				case ok1:
					fmt.Fprintf(&b, "%d <= %s\n", lo, n)
				case ok2:
					fmt.Fprintf(&b, "%s <= %d\n", n, hi)
				}
			})
		}
	}
	return b.String()
}

// narrow applies what the user says of the inputs, which must fit what the program says.
func (im *importer) narrow() {
	if len(im.opts.Inputs) == 0 {
		return
	}
	params := im.f.Body.Params
	bound := map[string]sym.Expr{}
	for _, in := range im.opts.Inputs {
		var p *ssa.Value
		var have []string
		for _, v := range params {
			have = append(have, v.Name)
			if v.Name == in.Name {
				p = v
			}
		}
		if p == nil {
			if im.constantInput(in) {
				continue
			}
			im.fail("", "", "the program has no input %q (it has: %s)", in.Name, strings.Join(have, ", "))
		}
		im.narrowOne(p, in, bound)
	}
	if len(bound) == 0 {
		return
	}
	subst := func(e sym.Expr) sym.Expr {
		return e.Subst(func(n string) (sym.Expr, bool) { v, ok := bound[n]; return v, ok })
	}
	for _, p := range params {
		if t := p.Tensor(); t != nil && t.Ranked {
			dims := make([]sym.Expr, len(t.Dims))
			for i, d := range t.Dims {
				dims[i] = subst(d)
			}
			p.Type = ssa.Tensor(t.DType, dims...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(bound)) {
		im.syms.learn(name, bound[name])
	}
	im.syms.path = im.guards.resolve
	for _, c := range im.guards.rest {
		if len(c.e.args) != 2 {
			continue
		}
		a, ok1 := im.syms.eval(c.e.args[0])
		b, ok2 := im.syms.eval(c.e.args[1])
		if !ok1 || !ok2 {
			continue
		}
		if holds, known := compare(c.e.op, subst(im.syms.resolve(a)), subst(im.syms.resolve(b))); known && !holds {
			im.fail("", "export the program again with an example of these sizes", "the inputs must satisfy %s, and those given do not", c.text)
		}
	}
	im.syms.path = nil
}

// constantInput checks a value given for an input that was built in.
func (im *importer) constantInput(in spec.Input) bool {
	for _, l := range im.leaves {
		if l.name != in.Name || l.fixed == nil {
			continue
		}
		have, _ := im.literal(l.fixed, nil)
		want := ssa.None
		switch {
		case in.Type.Const != nil:
			want = *in.Type.Const
		case in.Type.Kind != spec.None:
			im.fail("", "leave it out", "input %s is the constant %s in this program", in.Name, have)
		}
		if !want.Equal(have) && !(want.IsNumber() && have.IsNumber() && want.Float() == have.Float()) {
			im.fail("", "export the program again with the other value", "input %s is %s in this program, not %s", in.Name, have, want)
		}
		return true
	}
	return false
}

func (im *importer) narrowOne(p *ssa.Value, in spec.Input, bound map[string]sym.Expr) {
	t := p.Tensor()
	if t == nil {
		im.narrowNumber(p, in, bound)
		return
	}
	u := in.Type.Tensor
	if in.Type.Kind != spec.Tensor || u == nil {
		im.fail("", "", "input %s is a tensor in this program", p.Name)
	}
	if u.DType != t.DType {
		im.fail("", "", "input %s is %v in this program, not %v", p.Name, t.DType, u.DType)
	}
	if !u.Ranked {
		return
	}
	if len(u.Dims) != len(t.Dims) {
		im.fail("", "", "input %s has %d axes in this program, not %d", p.Name, len(t.Dims), len(u.Dims))
	}
	for i, want := range u.Dims {
		have := t.Dims[i].Subst(func(n string) (sym.Expr, bool) { v, ok := bound[n]; return v, ok })
		if have.Equal(want) {
			continue
		}
		n, isNumber := want.Int()
		if have.IsConst() {
			if isNumber {
				im.fail("", "export the program again with that axis dynamic", "axis %d of input %s is %s in this program, not %d", i, p.Name, have, n)
			}
			im.fail("", "export the program again with dynamic_shapes", "axis %d of input %s is always %s in this program", i, p.Name, have)
		}
		if name, ok := have.Name(); ok {
			if isNumber {
				lo, hasLo := im.syms.mins[name]
				hi, hasHi := im.syms.maxes[name]
				if hasLo && lo > trustedMin && n < lo || hasHi && n > hi {
					im.fail("", "", "axis %d of input %s must be %s in this program, not %d", i, p.Name, within(lo, hasLo, hi, hasHi), n)
				}
			}
			bind(bound, name, want)
			continue
		}
		if !isNumber {
			continue // a derived size has no name of its own
		}
		solved := false
		have.Symbols(func(name string) {
			if solved {
				return
			}
			if v, ok := inverse(have, name, n); ok {
				bind(bound, name, sym.Const(v))
				solved = true
			}
		})
		if !solved {
			im.fail("", "", "axis %d of input %s is %s in this program, which cannot be %d", i, p.Name, have, n)
		}
	}
}

// narrowNumber builds the value of a number in.
func (im *importer) narrowNumber(p *ssa.Value, in spec.Input, bound map[string]sym.Expr) {
	c := in.Type.Const
	if c == nil {
		return
	}
	im.m.Inputs = append(im.m.Inputs, ssa.Input{Name: p.Name, Type: p.Type, Const: c})
	if p.Type != ssa.IntType || c.Kind != ssa.IntLit || len(p.Sym) != 1 {
		return
	}
	for _, l := range im.leaves {
		if l.name != p.Name || l.value == nil {
			continue
		}
		if l.value.expr == "" && l.value.n != c.Int() {
			im.fail("", "export the program again with the other value", "input %s is %d in this program, not %d", p.Name, l.value.n, c.Int())
		}
		name := symbolOf(l.value.expr)
		lo, hasLo := im.syms.mins[name]
		hi, hasHi := im.syms.maxes[name]
		if hasLo && lo > trustedMin && c.Int() < lo || hasHi && c.Int() > hi {
			im.fail("", "", "input %s must be %s in this program, not %d", p.Name, within(lo, hasLo, hi, hasHi), c.Int())
		}
	}
	if name, ok := p.Sym[0].Name(); ok {
		bind(bound, name, sym.Const(c.Int()))
	}
}

// bind replaces a symbol, in what is bound already too.
func bind(bound map[string]sym.Expr, name string, e sym.Expr) {
	for k, v := range bound {
		bound[k] = v.Subst(func(n string) (sym.Expr, bool) { return e, n == name })
	}
	bound[name] = e
}

func within(lo int64, hasLo bool, hi int64, hasHi bool) string {
	switch {
	case hasLo && hasHi:
		return fmt.Sprintf("%d to %d", lo, hi)
	case hasLo:
		return fmt.Sprintf("at least %d", lo)
	}
	return fmt.Sprintf("at most %d", hi)
}

// inverse finds the value of a symbol at which the linear expression e is n.
func inverse(e sym.Expr, name string, n int64) (int64, bool) {
	at := func(v int64) (int64, bool) {
		return e.Subst(func(s string) (sym.Expr, bool) { return sym.Const(v), s == name }).Int()
	}
	a, ok0 := at(0)
	b, ok1 := at(1)
	if !ok0 || !ok1 || a == b || (n-a)%(b-a) != 0 {
		return 0, false
	}
	v := (n - a) / (b - a)
	got, ok := at(v)
	return v, ok && got == n
}
