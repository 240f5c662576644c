package main

import (
	"fmt"
	"slices"
)

// numbers is a list of ints. Variables share it, as in Python.
type numbers struct{ elems []int }

// maxLength bounds the lists of a program.
const maxLength = 8

// place is a statement that changes which object a place of a container has: a swap, a rotation, a key that is set anew. What the place had
// may be known by other names, which in-place operators write to.
func (g *generator) place() *stmt {
	return guarded(func() *stmt {
		r := g.rng
		lists := g.of(func(v any) bool { _, ok := v.(*list); return ok })
		dicts := g.of(func(v any) bool { _, ok := v.(*dict); return ok })
		ints := g.of(func(v any) bool { _, ok := v.(*numbers); return ok })
		switch k := r.IntN(8); {
		case k < 3 && len(lists) > 0:
			return g.changeList(pick(r, lists))
		case k < 5 && len(dicts) > 0:
			return g.changeDict(pick(r, dicts))
		case k < 7 && len(ints) > 0:
			return g.changeNumbers(pick(r, ints))
		}
		v := g.tensor(nil)
		switch r.IntN(3) {
		case 0:
			return g.define(fmt.Sprintf("[%s, %s]", v, v), func(e *env) any { return &list{[]*array{e.arr(v), e.arr(v)}} })
		case 1:
			return g.define(fmt.Sprintf("{\"a\": %s}", v), func(e *env) any {
				return &dict{keys: []string{"a"}, elems: map[string]*array{"a": e.arr(v)}}
			})
		}
		return g.define("[3, 1]", func(*env) any { return &numbers{[]int{3, 1}} })
	})
}

// several is a statement of some lines.
func (g *generator) several(lines []string, run func(*env)) *stmt {
	s := &stmt{lines: func() []string { return lines }, run: run}
	if !g.try(s) {
		return nil
	}
	return s
}

func (g *generator) changeList(l string) *stmt {
	v, a, b := g.tensor(nil), g.name(), g.name()
	change := func(f func(elems []*array, v *array) []*array) func(*env) {
		return func(e *env) {
			x := e.vars[l].(*list)
			if len(x.elems) == 0 {
				reject("no element")
			}
			x.elems = f(slices.Clone(x.elems), e.arr(v))
			if len(x.elems) > maxLength {
				reject("the list grows")
			}
		}
	}
	switch g.rng.IntN(7) {
	case 0:
		return g.several([]string{
			fmt.Sprintf("%s = %s[-1]", a, l), fmt.Sprintf("%s = %s[0]", b, l),
			fmt.Sprintf("_%s = torch._set_item(%s, 0, %s)", a, l, a), fmt.Sprintf("_%s = torch._set_item(%s, -1, %s)", b, l, b),
		}, change(func(es []*array, _ *array) []*array { es[0], es[len(es)-1] = es[len(es)-1], es[0]; return es }))
	case 1:
		return g.several([]string{fmt.Sprintf("torch.reverse(%s)", l)}, change(func(es []*array, _ *array) []*array { slices.Reverse(es); return es }))
	case 2:
		return g.several([]string{fmt.Sprintf("torch.insert(%s, 0, %s)", l, v), fmt.Sprintf("_%s = torch.pop(%s)", a, l)},
			change(func(es []*array, v *array) []*array { return append([]*array{v}, es[:len(es)-1]...) }))
	case 3:
		return g.several([]string{fmt.Sprintf("_%s = torch.append(%s, %s)", b, l, v), fmt.Sprintf("_%s = torch.pop(%s, 0)", a, l)},
			change(func(es []*array, v *array) []*array { return append(es[1:], v) }))
	case 4:
		return g.several([]string{fmt.Sprintf("torch.clear(%s)", l), fmt.Sprintf("_%s = torch.append(%s, %s)", a, l, v)},
			change(func(_ []*array, v *array) []*array { return []*array{v} }))
	case 5:
		return g.several([]string{fmt.Sprintf("torch.extend(%s, [%s])", l, v)}, change(func(es []*array, v *array) []*array { return append(es, v) }))
	}
	return g.several([]string{fmt.Sprintf("%s = torch.mul(%s[0], 2)", a, l), fmt.Sprintf("_%s = torch._set_item(%s, 0, %s)", b, l, a)},
		change(func(es []*array, _ *array) []*array {
			es[0] = binary(es[0], number(i64, 2), promote(es[0].kind, i64), func(x, y float64) float64 { return x * y })
			return es
		}))
}

func (g *generator) changeDict(d string) *stmt {
	v, a := g.tensor(nil), g.name()
	k := pick(g.rng, []string{"a", "b"})
	change := func(f func(x *dict, v *array)) func(*env) {
		return func(e *env) { f(e.vars[d].(*dict), e.arr(v)) }
	}
	set := func(x *dict, k string, v *array) {
		if x.elems[k] == nil {
			x.keys = append(x.keys, k)
		}
		x.elems[k] = v
	}
	has := func(x *dict) {
		if x.elems[k] == nil {
			reject("no key")
		}
	}
	switch g.rng.IntN(4) {
	case 0:
		return g.several([]string{fmt.Sprintf("torch.update(%s, {%q: %s})", d, k, v)}, change(func(x *dict, v *array) { set(x, k, v) }))
	case 1: // the key goes to the end
		return g.several([]string{fmt.Sprintf("%s = torch.pop(%s, %q)", a, d, k), fmt.Sprintf("torch._set_item(%s, %q, %s)", d, k, a)},
			change(func(x *dict, _ *array) {
				has(x)
				x.keys = append(slices.DeleteFunc(x.keys, func(o string) bool { return o == k }), k)
			}))
	case 2:
		return g.several([]string{fmt.Sprintf("_%s = torch.setdefault(%s, %q, %s)", a, d, k, v)}, change(func(x *dict, v *array) {
			if x.elems[k] == nil {
				set(x, k, v)
			}
		}))
	}
	return g.several([]string{fmt.Sprintf("%s = torch.mul(%s[%q], 2)", a, d, k), fmt.Sprintf("torch._set_item(%s, %q, %s)", d, k, a)},
		change(func(x *dict, _ *array) {
			has(x)
			e := x.elems[k]
			set(x, k, binary(e, number(i64, 2), promote(e.kind, i64), func(x, y float64) float64 { return x * y }))
		}))
}

func (g *generator) changeNumbers(l string) *stmt {
	a := g.name()
	text, k := g.index(0, 5)
	change := func(f func(elems []int, k int) []int) func(*env) {
		return func(e *env) {
			x, n := e.vars[l].(*numbers), k(e)
			if x.elems = f(slices.Clone(x.elems), n); len(x.elems) > maxLength || len(x.elems) == 0 || n > 100 {
				reject("the list grows")
			}
		}
	}
	switch g.rng.IntN(5) {
	case 0:
		return g.several([]string{fmt.Sprintf("_%s = torch.append(%s, %s)", a, l, text)}, change(func(es []int, k int) []int { return append(es, k) }))
	case 1:
		return g.several([]string{fmt.Sprintf("_%s = torch._set_item(%s, 0, %s)", a, l, text)}, change(func(es []int, k int) []int { es[0] = k; return es }))
	case 2: // another name for it
		return g.define(l, func(e *env) any { return e.vars[l] })
	case 3: // another list
		return g.define(fmt.Sprintf("torch.add(%s, [7])", l), func(e *env) any {
			es := e.vars[l].(*numbers).elems
			if len(es) >= maxLength {
				reject("the list grows")
			}
			return &numbers{append(slices.Clone(es), 7)}
		})
	}
	return g.define(fmt.Sprintf("torch.tensor(%s)", l), func(e *env) any {
		es := e.vars[l].(*numbers).elems
		v := make([]float64, len(es))
		for i, n := range es {
			v[i] = float64(n)
		}
		return fresh(i64, []int{len(v)}, v)
	})
}
