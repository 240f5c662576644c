package main

import "fmt"

// place is a statement that changes which object a place of a container has: a swap, a rotation, a key that is set anew. What the place had
// may be known by other names, which in-place operators write to.
func (g *generator) place() *stmt {
	r := g.rng
	lists, dicts, numbers := g.lists(), g.dicts(), g.numbers()
	switch k := r.IntN(8); {
	case k < 3 && len(lists) > 0:
		return g.changeList(pick(r, lists))
	case k < 5 && len(dicts) > 0:
		return g.changeDict(pick(r, dicts))
	case k < 7 && len(numbers) > 0:
		return g.changeNumbers(pick(r, numbers))
	}
	v := g.tensor(nil)
	switch r.IntN(3) {
	case 0:
		return g.define("[%s, %s]", v, v)
	case 1:
		return g.define("{\"a\": %s}", v)
	}
	return g.define("[3, 1]")
}

func (g *generator) changeList(l string) *stmt {
	v, a, b := g.tensor(nil), g.name(), g.name()
	switch g.rng.IntN(7) {
	case 0:
		return g.several(fmt.Sprintf("%s = %s[-1]", a, l), fmt.Sprintf("%s = %s[0]", b, l),
			fmt.Sprintf("_%s = torch._set_item(%s, 0, %s)", a, l, a), fmt.Sprintf("_%s = torch._set_item(%s, -1, %s)", b, l, b))
	case 1:
		return g.several(fmt.Sprintf("torch.reverse(%s)", l))
	case 2:
		return g.several(fmt.Sprintf("torch.insert(%s, 0, %s)", l, v), fmt.Sprintf("_%s = torch.pop(%s)", a, l))
	case 3:
		return g.several(fmt.Sprintf("_%s = torch.append(%s, %s)", b, l, v), fmt.Sprintf("_%s = torch.pop(%s, 0)", a, l))
	case 4:
		return g.several(fmt.Sprintf("torch.clear(%s)", l), fmt.Sprintf("_%s = torch.append(%s, %s)", a, l, v))
	case 5:
		return g.several(fmt.Sprintf("torch.extend(%s, [%s])", l, v))
	}
	return g.several(fmt.Sprintf("%s = torch.mul(%s[0], 2)", a, l), fmt.Sprintf("_%s = torch._set_item(%s, 0, %s)", b, l, a))
}

func (g *generator) changeDict(d string) *stmt {
	v, a := g.tensor(nil), g.name()
	k := pick(g.rng, []string{"a", "b"})
	switch g.rng.IntN(4) {
	case 0:
		return g.several(fmt.Sprintf("torch.update(%s, {%q: %s})", d, k, v))
	case 1: // the key goes to the end
		return g.several(fmt.Sprintf("%s = torch.pop(%s, %q)", a, d, k), fmt.Sprintf("torch._set_item(%s, %q, %s)", d, k, a))
	case 2:
		return g.several(fmt.Sprintf("_%s = torch.setdefault(%s, %q, %s)", a, d, k, v))
	}
	return g.several(fmt.Sprintf("%s = torch.mul(%s[%q], 2)", a, d, k), fmt.Sprintf("torch._set_item(%s, %q, %s)", d, k, a))
}

func (g *generator) changeNumbers(l string) *stmt {
	k := g.index(0, 5)
	switch g.rng.IntN(5) {
	case 0:
		return g.effect("torch.append(%s, %s)", l, k)
	case 1:
		return g.effect("torch._set_item(%s, 0, %s)", l, k)
	case 2: // another name for it
		return g.define("%s", l)
	case 3: // another list
		return g.define("torch.add(%s, [7])", l)
	}
	return g.define("torch.tensor(%s)", l)
}
