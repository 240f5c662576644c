package spec

import (
	"fmt"
	"strconv"

	"github.com/aton-project/aton/ssa/sym"
)

// ParseAll parses specs and gives dynamic axes their names: axes holds, by input and axis, what torch.onnx.export takes
// as dynamic_axes. Inputs that are no tensors have none.
func ParseAll(specs []string, axes map[string]map[string]string) ([]Input, error) {
	var out []Input
	for _, s := range specs {
		in, err := Parse(s)
		if err != nil {
			return nil, err
		}
		if in.Type.Kind == Tensor && in.Type.Tensor.Ranked {
			for axis, name := range axes[in.Name] {
				k, err := strconv.Atoi(axis)
				if err != nil || k < 0 || k >= len(in.Type.Tensor.Dims) {
					return nil, fmt.Errorf("dynamic axis %q of %s", axis, s)
				}
				in.Type.Tensor.Dims[k] = sym.Symbol(name, 0)
			}
		}
		out = append(out, in)
	}
	return out, nil
}
