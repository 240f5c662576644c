package export

import (
	"fmt"
	"strings"

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
			im.Warnf("the tree of the outputs is not understood: %v", err)
		}
	}
	taken := map[string]bool{}
	for _, v := range im.f.Body.Params {
		taken[v.Name] = true
	}
	var vals []*ssa.Value
	var names []string
	var written []*outputSpec
	var documented []string
	at := 0
	for i := range p.outputs {
		out := &p.outputs[i]
		switch out.kind {
		case userOutput, lossOutput:
		case bufferMutation, parameterMutation, inputMutation:
			written = append(written, out)
			continue
		default:
			if out.kind == gradient {
				im.Warnf("gradients among the outputs are left out: the program is a training step")
			}
			continue
		}
		path, keyed := "", false
		if at < len(leaves) {
			path, keyed = leaves[at].path, leaves[at].keyed()
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
			im.Warnf("output %s is the constant %q and is left out", path, a.s)
			documented = append(documented, ssa.Quote(a.s))
			continue
		}
		v := im.value(sc, a, nil)
		name := a.s
		if keyed {
			name = path
		} else if !a.isName() {
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
	for _, out := range written {
		if to := im.state[out.target]; to != nil && out.arg.isName() {
			im.emit(sc, sc.b, "aten::copy_", "", to.Type, to, im.value(sc, &out.arg, nil), im.constant(ssa.Bool(false)))
		} else { // a tensor subclass
			im.Warnf("the program updates its state (%s); the ONNX model does not keep it from run to run", out.target)
		}
	}
	im.f.Body.SetReturns(vals...)
	im.f.OutputNames = names
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
			im.Warnf("input %s is always %d in this program, whatever is passed", l.name, l.value.n)
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
		im.Warnf("the program holds for inputs with %s", short(serious))
	}
	if s := im.assertions(); s != "" {
		im.m.SetMetadata("pkg.torch.export.assertions", s)
	}
}

func (im *importer) warnConstant(l userLeaf, value string) {
	if l.fixed.tag != tagNone {
		im.Warnf("input %s is %s in this program and no input of the ONNX model", l.name, value)
	}
}

// ranges lists the bounds of the symbols that occur in the inputs, by what the user calls them.
func (im *importer) ranges() string {
	var order []string
	lows, highs := map[string]int64{}, map[string]int64{}
	seen := map[string]bool{}
	for _, n := range im.free {
		e := im.syms.resolve(sym.Symbol(symbolName(n), 0))
		text := e.String()
		lo, ok1 := im.syms.mins[n]
		hi, ok2 := im.syms.maxes[n]
		if e.IsConst() || !ok1 && !ok2 {
			continue
		}
		if !seen[text] {
			seen[text] = true
			order = append(order, text)
		}
		if old, ok := lows[text]; ok1 && (!ok || lo > old) {
			lows[text] = lo
		}
		if old, ok := highs[text]; ok2 && (!ok || hi < old) {
			highs[text] = hi
		}
	}
	var b strings.Builder
	for _, text := range order {
		lo, ok1 := lows[text]
		hi, ok2 := highs[text]
		switch {
		case ok1 && ok2:
			fmt.Fprintf(&b, "%d <= %s <= %d\n", lo, text, hi)
		case ok1:
			fmt.Fprintf(&b, "%d <= %s\n", lo, text)
		default:
			fmt.Fprintf(&b, "%s <= %d\n", text, hi)
		}
	}
	return b.String()
}
