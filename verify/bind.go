package verify

import (
	"fmt"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/ssa"
)

// boundSize is the size of a symbol in a data set, with the first axis that determines it.
type boundSize struct {
	size  int64
	input string
	axis  int
}

// bind returns an error if a symbol of the inputs' types has two sizes in a data set.
func bind(params []*ssa.Value, args []interp.Value) error {
	sizes := map[string]boundSize{}
	env := map[string]int64{}
	each := func(f func(p *ssa.Value, axis int, size int64) error) error {
		for i, p := range params {
			t, a := p.Tensor(), args[i].Tensor
			if t == nil || a == nil || len(t.Dims) != len(a.Shape) {
				continue
			}
			for axis, size := range a.Shape {
				if err := f(p, axis, size); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err := each(func(p *ssa.Value, axis int, size int64) error {
		name, ok := p.Tensor().Dims[axis].Name()
		if !ok {
			return nil
		}
		if b, known := sizes[name]; known && b.size != size {
			return fmt.Errorf("%s is %d in input %s (axis %d) and %d in input %s (axis %d); one name is one size: give the two axes two names in --input",
				name, b.size, b.input, b.axis, size, p.Name, axis)
		}
		sizes[name], env[name] = boundSize{size, p.Name, axis}, size
		return nil
	})
	if err != nil {
		return err
	}
	return each(func(p *ssa.Value, axis int, size int64) error {
		d := p.Tensor().Dims[axis]
		if want, ok := d.Eval(env); ok && !d.IsConst() && want != size {
			return fmt.Errorf("input %s has size %d on axis %d, which is declared as %s, here %d", p.Name, size, axis, d, want)
		}
		return nil
	})
}
