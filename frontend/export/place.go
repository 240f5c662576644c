package export

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aton-project/aton/frontend/spec"
)

// placed is what the user says of one leaf of the inputs.
type placed struct {
	leaf int
	t    spec.Type
}

// place finds the leaves that specs mean: by the name of the value (hx_0), by the path (hx.0), or, for a
// container, by the name of the argument (hx). Specs of other names go by position, with a remark, if there are
// as many as arguments left.
func (im *importer) place(specs []spec.Input) []placed {
	var out []placed
	taken := make([]bool, len(im.leaves))
	var strangers []spec.Input
	for _, in := range specs {
		group := im.group(in.Name)
		if len(group) == 0 {
			group = im.renamed(in.Name)
		}
		if len(group) == 0 {
			if in.Type.Kind != spec.None && len(in.Type.Elems)+len(in.Type.Keys) > 0 || in.Type.Kind <= spec.Str {
				strangers = append(strangers, in) // an absent argument that is None or empty has no leaf
			}
			continue
		}
		for _, p := range im.spread(in.Name, in.Type, group) {
			taken[p.leaf] = true
			out = append(out, p)
		}
	}
	if len(strangers) == 0 {
		return out
	}
	return append(out, im.byPosition(strangers, taken)...)
}

// part is a leaf with the way to it from what a spec means.
type part struct {
	leaf int
	way  []string
}

// renamed is the leaf that has that name in the file only.
func (im *importer) renamed(name string) []part {
	if old := spec.OldName(im.opts.Names, name); old != name {
		return im.group(old)
	}
	k := 0
	for i := range im.leaves {
		l := &im.leaves[i]
		if l.fixed != nil || im.param(l.name) == nil {
			continue
		}
		if k < len(im.opts.InputNames) && im.opts.InputNames[k] == name {
			return []part{{i, nil}}
		}
		k++
	}
	return nil
}

// group lists the leaves that a name means.
func (im *importer) group(name string) []part {
	for i := range im.leaves {
		if l := &im.leaves[i]; l.name == name || l.path == name {
			return []part{{i, nil}}
		}
	}
	var out []part
	for i := range im.leaves {
		l := &im.leaves[i]
		rest, ok := strings.CutPrefix(l.path, name+".")
		if !ok && l.path == "" { // a file without a tree: only the names of the values are left
			rest, ok = strings.CutPrefix(l.name, name+"_")
			rest = strings.ReplaceAll(rest, "_", ".")
		}
		if !ok { // *args: the arguments are xs_0, xs_1
			if rest, ok = strings.CutPrefix(l.path, name+"_"); ok {
				number, _, _ := strings.Cut(rest, ".")
				_, err := strconv.Atoi(number)
				ok = err == nil
			}
		}
		if ok {
			out = append(out, part{i, strings.Split(rest, ".")})
		}
	}
	return out
}

// spread gives the elements of a container to the leaves.
func (im *importer) spread(name string, t spec.Type, group []part) []placed {
	switch t.Kind {
	case spec.List, spec.Tuple, spec.Dict:
	default:
		if len(group) == 1 && len(group[0].way) == 0 {
			return []placed{{group[0].leaf, t}}
		}
		im.fail("", "state it as a container, or its parts by name", "input %s is made of parts in this program (%s)", name, im.nameAll(group))
	}
	var keys []string
	byKey := map[string][]part{}
	for _, p := range group {
		if len(p.way) == 0 {
			im.fail("", "", "input %s is no %s in this program", name, t.Kind)
		}
		k := p.way[0]
		if byKey[k] == nil {
			keys = append(keys, k)
		}
		byKey[k] = append(byKey[k], part{p.leaf, p.way[1:]})
	}
	if len(keys) != len(t.Elems) {
		im.fail("", "", "input %s has %d parts in this program (%s), not %d", name, len(keys), im.nameAll(group), len(t.Elems))
	}
	var out []placed
	for i, e := range t.Elems {
		k := keys[i]
		if t.Kind == spec.Dict {
			if k = t.Keys[i]; byKey[k] == nil {
				im.fail("", "", "input %s has no part %q in this program (it has: %s)", name, k, strings.Join(keys, ", "))
			}
		}
		out = append(out, im.spread(name+"."+k, e, byKey[k])...)
	}
	return out
}

func (im *importer) nameAll(group []part) string {
	names := make([]string, len(group))
	for i, p := range group {
		names[i] = im.leaves[p.leaf].name
	}
	return short(names)
}

// byPosition matches specs whose names the program does not have with what is left of its inputs.
func (im *importer) byPosition(specs []spec.Input, taken []bool) []placed {
	type argument struct {
		name  string
		parts []part
		built bool // all of it is constant
	}
	var args []argument
	var inputs []int // leaves that are inputs
	for i := range im.leaves {
		l := &im.leaves[i]
		if taken[i] {
			continue
		}
		if l.fixed == nil {
			inputs = append(inputs, i)
		}
		name, way := l.name, []string(nil)
		if len(l.steps) > 0 {
			name = fmt.Sprint(l.steps[0])
			for _, s := range l.steps[1:] {
				way = append(way, fmt.Sprint(s))
			}
		}
		if n := len(args); n == 0 || args[n-1].name != name {
			args = append(args, argument{name: name, built: true})
		}
		a := &args[len(args)-1]
		a.parts = append(a.parts, part{i, way})
		a.built = a.built && l.fixed != nil
	}
	remark := func(in spec.Input, name string) {
		if in.Name == "" { // the user meant the place
			return
		}
		im.Warnf("the program has no input %q; the spec is taken for %s", in.Name, name)
	}
	var out []placed
	try := func(keep func(*argument) bool) bool {
		var kept []argument
		for i := range args {
			if keep(&args[i]) {
				kept = append(kept, args[i])
			}
		}
		if len(kept) != len(specs) {
			return false
		}
		for i, in := range specs {
			remark(in, kept[i].name)
			out = append(out, im.spread(kept[i].name, in.Type, kept[i].parts)...)
		}
		return true
	}
	if try(func(a *argument) bool { return true }) || try(func(a *argument) bool { return !a.built }) {
		return out
	}
	if len(inputs) == len(specs) {
		for i, in := range specs {
			l := &im.leaves[inputs[i]]
			remark(in, l.name)
			out = append(out, im.spread(l.name, in.Type, []part{{inputs[i], nil}})...)
		}
		return out
	}
	var have []string
	for _, v := range im.f.Body.Params {
		have = append(have, v.Name)
	}
	if specs[0].Name == "" {
		im.fail("", "", "%d types of inputs fit no order of those of the program (it has: %s); give them names, as in x:f32[N,3]", len(specs), strings.Join(have, ", "))
	}
	im.fail("", "", "the program has no input %q (it has: %s)", specs[0].Name, strings.Join(have, ", "))
	return nil
}
