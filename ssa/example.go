package ssa

import (
	"strconv"
	"strings"
)

// Example has the properties that PyTorch prints after the sizes of a tensor: those of the tensor with which the program was
// traced. It is not part of the type: [SameType] ignores it, and passes make types without it. Text can keep it
// ([PrintOptions.Examples]).
type Example struct {
	Strides      []int64 // one for each axis; nil: not stated
	RequiresGrad *bool   // nil: not stated
	Device       string  // such as cpu and cuda:0; empty: not stated
}

// note reads strides=[3, 1], requires_grad=1 or device=cpu into the example of t. It ignores anything else.
func (t *TensorType) note(item string) {
	key, value, _ := strings.Cut(item, "=")
	e := Example{}
	if t.Example != nil {
		e = *t.Example
	}
	switch key {
	case "strides":
		e.Strides = []int64{}
		for _, s := range strings.Split(strings.Trim(value, "[]"), ",") {
			n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
			if err != nil {
				return
			}
			e.Strides = append(e.Strides, n)
		}
	case "requires_grad":
		if value != "0" && value != "1" {
			return
		}
		on := value == "1"
		e.RequiresGrad = &on
	case "device":
		e.Device = value
	default:
		return
	}
	t.Example = &e
}

// typeText returns the text of a type with the examples of its tensors, as in PyTorch's TypeVerbosity::Full.
func typeText(t Type) string {
	switch t := t.(type) {
	case *TensorType:
		return t.withExample()
	case *ListType:
		return typeText(t.Elem) + "[]"
	case *OptionalType:
		return typeText(t.Elem) + "?"
	case *TupleType:
		if t.Name == "" && t.Names == nil {
			elems := make([]string, len(t.Elems))
			for i, e := range t.Elems {
				elems[i] = typeText(e)
			}
			return "(" + strings.Join(elems, ", ") + ")"
		}
	}
	return t.String()
}

func (t *TensorType) withExample() string {
	if t.Example == nil {
		return t.String()
	}
	var items []string
	if t.Ranked {
		for _, d := range t.Dims {
			items = append(items, d.String())
		}
	}
	e := t.Example
	if t.Ranked && len(e.Strides) > 0 && len(e.Strides) == len(t.Dims) {
		strides := make([]string, len(e.Strides))
		for i, n := range e.Strides {
			strides[i] = strconv.FormatInt(n, 10)
		}
		items = append(items, "strides=["+strings.Join(strides, ", ")+"]")
	}
	if e.RequiresGrad != nil {
		items = append(items, "requires_grad="+map[bool]string{false: "0", true: "1"}[*e.RequiresGrad])
	}
	if e.Device != "" {
		items = append(items, "device="+e.Device)
	}
	name := t.DType.String()
	if !t.Ranked {
		name = t.String()
		if len(items) == 0 {
			return name
		}
	}
	return name + "(" + strings.Join(items, ", ") + ")"
}
