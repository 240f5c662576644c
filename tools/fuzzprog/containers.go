package main

import "fmt"

// container is a statement with a list or a dict of tensors.
func (g *generator) container() *stmt {
	return guarded(func() *stmt {
		r := g.rng
		v, w := g.tensor(nil), g.tensor(nil)
		lists := g.of(func(v any) bool { _, ok := v.(*list); return ok })
		dicts := g.of(func(v any) bool { _, ok := v.(*dict); return ok })
		if len(lists) > 0 && r.IntN(3) > 0 {
			l := pick(r, lists)
			at, k := g.index(-1, 1)
			elem := func(e *env) *array {
				elems, k := e.vars[l].(*list).elems, k(e)
				if k < -len(elems) || k >= len(elems) {
					reject("no element %d", k)
				}
				return elems[(k+len(elems))%len(elems)]
			}
			switch r.IntN(6) {
			case 0:
				return g.effect(fmt.Sprintf("torch.append(%s, %s)", l, v), func(e *env) {
					x := e.vars[l].(*list)
					if len(x.elems) > 8 {
						reject("the list grows")
					}
					x.elems = append(x.elems, e.arr(v))
				})
			case 1:
				return g.effect(fmt.Sprintf("torch._set_item(%s, %s, %s)", l, at, v), func(e *env) {
					elem(e)
					x := e.vars[l].(*list)
					x.elems[(k(e)+len(x.elems))%len(x.elems)] = e.arr(v)
				})
			case 2:
				return g.define(fmt.Sprintf("torch.cat(%s, 0)", l), func(e *env) any { return cat(e.vars[l].(*list).elems, 0) })
			case 3:
				return g.define(fmt.Sprintf("torch.len(%s)", l), func(e *env) any { return len(e.vars[l].(*list).elems) })
			}
			return g.define(fmt.Sprintf("%s[%s]", l, at), func(e *env) any { return elem(e) })
		}
		if len(dicts) > 0 && r.IntN(2) == 0 {
			d, k := pick(r, dicts), pick(r, []string{"a", "b", "c"})
			if r.IntN(2) == 0 {
				return g.effect(fmt.Sprintf("torch._set_item(%s, %q, %s)", d, k, v), func(e *env) {
					x := e.vars[d].(*dict)
					if x.elems[k] == nil {
						x.keys = append(x.keys, k)
					}
					x.elems[k] = e.arr(v)
				})
			}
			return g.define(fmt.Sprintf("%s[%q]", d, k), func(e *env) any {
				a := e.vars[d].(*dict).elems[k]
				if a == nil {
					reject("no key")
				}
				return a
			})
		}
		switch r.IntN(4) {
		case 0:
			return g.define(fmt.Sprintf("{\"a\": %s, \"b\": %s}", v, w), func(e *env) any {
				return &dict{keys: []string{"a", "b"}, elems: map[string]*array{"a": e.arr(v), "b": e.arr(w)}}
			})
		case 1:
			return g.define(fmt.Sprintf("torch.unbind(%s, 0)", v), func(e *env) any {
				a, l := e.arr(v), &list{}
				a.sized(0)
				for i := range a.shape[0] {
					l.elems = append(l.elems, a.pick(0, i))
				}
				return l
			})
		case 2:
			return g.define(fmt.Sprintf("torch.split(%s, 2, 0)", v), func(e *env) any {
				a, l := e.arr(v), &list{}
				a.sized(0)
				for i := 0; i == 0 || i < a.shape[0]; i += 2 {
					l.elems = append(l.elems, a.slice(0, i, i+2, 1))
				}
				return l
			})
		}
		return g.define(fmt.Sprintf("[%s, %s]", v, w), func(e *env) any { return &list{[]*array{e.arr(v), e.arr(w)}} })
	})
}
