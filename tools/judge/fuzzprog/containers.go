package main

// container is a statement with a list or a dict of tensors.
func (g *generator) container() *stmt {
	r := g.rng
	v, w := g.tensor(nil), g.tensor(nil)
	if lists := g.lists(); len(lists) > 0 && r.IntN(3) > 0 {
		l, at := pick(r, lists), g.index(-1, 1)
		switch r.IntN(6) {
		case 0:
			return g.effect("torch.append(%s, %s)", l, v)
		case 1:
			return g.effect("torch._set_item(%s, %s, %s)", l, at, v)
		case 2:
			return g.define("torch.cat(%s, 0)", l)
		case 3:
			return g.define("torch.len(%s)", l)
		}
		return g.define("%s[%s]", l, at)
	}
	if dicts := g.dicts(); len(dicts) > 0 && r.IntN(2) == 0 {
		d, k := pick(r, dicts), pick(r, []string{"a", "b", "c"})
		if r.IntN(2) == 0 {
			return g.effect("torch._set_item(%s, %q, %s)", d, k, v)
		}
		return g.define("%s[%q]", d, k)
	}
	switch r.IntN(4) {
	case 0:
		return g.define("{\"a\": %s, \"b\": %s}", v, w)
	case 1:
		return g.define("torch.unbind(%s, 0)", v)
	case 2:
		return g.define("torch.split(%s, 2, 0)", v)
	}
	return g.define("[%s, %s]", v, w)
}
