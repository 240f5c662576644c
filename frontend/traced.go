package frontend

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// tellTraced says that all sizes are those of the example that was traced, and how to make the batch dynamic.
func tellTraced(examples []ssa.Input, note func(string)) {
	var fixed, free []string
	var batch sym.Expr
	for _, in := range examples {
		if in.Const != nil {
			continue
		}
		t := specType(in)
		fixed = append(fixed, spec.Input{Name: in.Name, Type: t}.String())
		if x := t.Tensor; t.Kind == spec.Tensor && len(x.Dims) > 0 && (len(free) == 0 || x.Dims[0].Equal(batch)) {
			batch = x.Dims[0]
			t.Tensor = ssa.Tensor(x.DType, append([]sym.Expr{sym.Symbol("N", 0)}, x.Dims[1:]...)...)
			free = append(free, "--input '"+spec.Input{Name: in.Name, Type: t}.String()+"'")
		}
	}
	if len(fixed) == 0 {
		return
	}
	message := "inputs are those that were traced, all sizes fixed: " + strings.Join(fixed, ", ")
	if len(free) > 0 {
		message += "; for a dynamic batch add " + strings.Join(free, " ")
	}
	note(message)
}

// specType is the type of an input as the user would write it.
func specType(in ssa.Input) spec.Type {
	for _, k := range [...]spec.Kind{spec.List, spec.Tuple, spec.Dict} {
		if in.Container != k.String() {
			continue
		}
		t := spec.Type{Kind: k}
		for i, e := range in.Elems {
			t.Elems = append(t.Elems, specType(e))
			if k == spec.Dict {
				t.Keys = append(t.Keys, keyText(in.Keys[i]))
			}
		}
		return t
	}
	if t := ssa.AsTensor(in.Type); t != nil {
		return spec.Type{Kind: spec.Tensor, Tensor: t}
	}
	kinds := map[ssa.Type]spec.Kind{ssa.IntType: spec.Int, ssa.FloatType: spec.Float, ssa.BoolType: spec.Bool, ssa.StrType: spec.Str}
	t := in.Type
	if in.Const != nil {
		t = in.Const.Type()
	}
	if k, ok := kinds[t]; ok {
		return spec.Type{Kind: k, Const: in.Const}
	}
	return spec.Type{Kind: spec.None}
}

// keyText is the key of a dict as the user would write it.
func keyText(k ssa.Literal) string {
	if k.Kind == ssa.StrLit {
		return k.Str()
	}
	return k.String()
}

// recordTraced notes the sizes that named axes had in the example that was traced. One name for axes that had
// different sizes is an error: the trace would not fit either of them.
func recordTraced(m *ssa.Module, examples []ssa.Input) error {
	byName := map[string]ssa.Input{}
	for _, in := range examples {
		byName[in.Name] = in
	}
	where := map[string]string{}
	for _, in := range m.Inputs {
		t, e := ssa.AsTensor(in.Type), ssa.AsTensor(byName[in.Name].Type)
		if t == nil || e == nil || len(t.Dims) != len(e.Dims) {
			continue
		}
		for i, d := range t.Dims {
			name, ok := d.Name()
			size, known := e.Dims[i].Int()
			if !ok || !known {
				continue
			}
			place := fmt.Sprintf("%d in input %s (axis %d)", size, in.Name, i)
			if old, twice := m.Recorded[name]; twice && old != size {
				return fmt.Errorf("%s is one size, but when the model was traced it was %s and %s; give the two axes two names in --input", name, where[name], place)
			}
			if m.Recorded == nil {
				m.Recorded = map[string]int64{}
			}
			if where[name] == "" {
				m.Recorded[name], where[name] = size, place
			}
		}
	}
	return nil
}
