package ssa

// Effects returns the effects that an operator's declaration implies: arguments
// that are written, memory that is read through tensors and containers, and results
// that are new memory. Randomness and messages are not declared; dialects add them.
func (s *Schema) Effects() Effect {
	e := Pure
	for i := range s.Args {
		if s.Args[i].Writes {
			e |= Writes
		}
		if IsMutable(s.Args[i].Type) {
			e |= Reads
		}
	}
	for i := range s.Returns {
		if s.Returns[i].Alias == "" && IsMutable(s.Returns[i].Type) {
			e |= Fresh
		}
	}
	if s.Vararg {
		e |= Reads
	}
	return e
}

// IsMutable reports whether values of the type can be changed in place, or contain such values.
func IsMutable(t Type) bool {
	switch t := t.(type) {
	case *TensorType, *ListType, *DictType, *VarType, *WrapType, *ClassType:
		return true
	case *OptionalType:
		return IsMutable(t.Elem)
	case *TupleType:
		for _, e := range t.Elems {
			if IsMutable(e) {
				return true
			}
		}
	case *UnionType:
		for _, e := range t.Elems {
			if IsMutable(e) {
				return true
			}
		}
	case Basic:
		return t == AnyType || t == AnyListType
	}
	return false
}
