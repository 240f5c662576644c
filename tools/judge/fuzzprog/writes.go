package main

import "github.com/aton-project/aton/ssa/tensor"

// writing is a statement that writes to a tensor.
func (g *generator) writing() *stmt {
	r := g.rng
	v := g.tensor(isNumber)
	if v == "i" {
		return nil
	}
	t := g.tensorOf(v)
	n := max(len(t.Shape), 1)
	d := r.IntN(2*n) - n
	switch r.IntN(14) {
	case 0, 1, 2:
		return g.effect("torch.%s_(%s, %s)", pick(r, arithmetics), v, g.operand(t.DType))
	case 3, 4:
		op := pick(r, elementwises)
		return g.effect("torch.%s_(%s%s)", op.name, v, op.more)
	case 5:
		return g.effect("torch.fill_(%s, %d)", v, r.IntN(7)-3)
	case 6:
		return g.effect("torch.zero_(%s)", v)
	case 7, 8:
		return g.effect("torch.copy_(%s, %s)", v, g.tensor(nil))
	case 9:
		m := g.tensor(isBool)
		if m == "" {
			return nil
		}
		return g.effect("torch.masked_fill_(%s, %s, %d)", v, m, r.IntN(5)-2)
	case 10:
		return g.effect("torch.cumsum_(%s, %d)", v, d)
	case 11:
		return g.effect("torch.index_fill_(%s, %d, i, %d)", v, d, r.IntN(5)-2)
	case 12:
		return g.effect("torch.index_put_(%s, annotate(List[Optional[Tensor]], [torch.gt(%s, 0)]), torch.tensor(%d, dtype=%d))", v, v, r.IntN(5)-2,
			map[tensor.DType]int{tensor.Float32: 6, tensor.Int64: 4}[t.DType])
	}
	return g.effect("torch.tril_(%s)", v)
}
