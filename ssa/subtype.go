package ssa

import "slices"

// IsSubtype reports whether a value of type a may stand where b is expected,
// by the rules of TorchScript: int, float and complex are subtypes of Scalar,
// bool is not; lists and dicts are invariant, tuples covariant; T is a subtype
// of Optional[T]; shape and dtype of tensors do not matter. A nil type matches
// anything.
func IsSubtype(a, b Type) bool {
	if a == nil || b == nil || a == b || b == AnyType {
		return true
	}
	if AsTensor(a) != nil && AsTensor(b) != nil {
		return true
	}
	if u, ok := a.(*UnionType); ok {
		for _, e := range u.Elems {
			if !IsSubtype(e, b) {
				return false
			}
		}
		return true
	}
	switch b := b.(type) {
	case Basic:
		switch b {
		case NumberType:
			return a == IntType || a == FloatType || a == ComplexType
		case AnyListType:
			_, ok := a.(*ListType)
			return ok
		case AnyTupleType:
			_, ok := a.(*TupleType)
			return ok
		case AnyEnumType:
			_, ok := a.(*EnumType)
			return ok
		case AnyClassType:
			_, ok := a.(*ClassType)
			return ok
		}
		return false
	case *OptionalType:
		if a == NoneType {
			return true
		}
		if o, ok := a.(*OptionalType); ok {
			a = o.Elem
		}
		return IsSubtype(a, b.Elem)
	case *UnionType:
		if o, ok := a.(*OptionalType); ok {
			return IsSubtype(NoneType, b) && IsSubtype(o.Elem, b)
		}
		for _, e := range b.Elems {
			if IsSubtype(a, e) {
				return true
			}
		}
		return false
	case *TupleType:
		t, ok := a.(*TupleType)
		if !ok || len(t.Elems) != len(b.Elems) {
			return false
		}
		if b.Names != nil && (t.Name != b.Name || t.Names == nil) {
			return false
		}
		for i := range t.Elems {
			if !IsSubtype(t.Elems[i], b.Elems[i]) {
				return false
			}
		}
		return true
	case *ListType:
		t, ok := a.(*ListType)
		return ok && sameKind(t.Elem, b.Elem)
	case *DictType:
		t, ok := a.(*DictType)
		return ok && sameKind(t.Key, b.Key) && sameKind(t.Value, b.Value)
	case *WrapType:
		t, ok := a.(*WrapType)
		return ok && t.Name == b.Name && IsSubtype(t.Elem, b.Elem)
	case *InterfaceType:
		// The front end checks whether a class has the methods.
		_, ok := a.(*ClassType)
		return ok || SameType(a, b)
	}
	return SameType(a, b)
}

// sameKind reports whether two types are equal if all tensor types are considered equal.
func sameKind(a, b Type) bool {
	return IsSubtype(a, b) && IsSubtype(b, a)
}

// UnifyTypes returns the type that includes both a and b. ok is false if there is none.
func UnifyTypes(a, b Type) (t Type, ok bool) {
	if AsTensor(a) != nil && AsTensor(b) != nil {
		if SameType(a, b) {
			return a, true
		}
		return AnyTensor, true
	}
	if IsSubtype(a, b) {
		return b, true
	}
	if IsSubtype(b, a) {
		return a, true
	}
	if a == NoneType {
		return &OptionalType{b}, true
	}
	if b == NoneType {
		return &OptionalType{a}, true
	}
	if o, is := a.(*OptionalType); is {
		if u, ok := UnifyTypes(o.Elem, stripOptional(b)); ok {
			return &OptionalType{u}, true
		}
		return nil, false
	}
	if o, is := b.(*OptionalType); is {
		if u, ok := UnifyTypes(a, o.Elem); ok {
			return &OptionalType{u}, true
		}
		return nil, false
	}
	x, isX := a.(*TupleType)
	y, isY := b.(*TupleType)
	if isX && isY && len(x.Elems) == len(y.Elems) && x.Name == y.Name {
		u := &TupleType{Names: x.Names, Name: x.Name}
		for i := range x.Elems {
			e, ok := UnifyTypes(x.Elems[i], y.Elems[i])
			if !ok {
				return nil, false
			}
			u.Elems = append(u.Elems, e)
		}
		return u, true
	}
	return nil, false
}

func stripOptional(t Type) Type {
	if o, ok := t.(*OptionalType); ok {
		return o.Elem
	}
	return t
}

// TypeVars binds type variables of a schema, in the order in which they were met.
type TypeVars struct {
	names []string
	types []Type
}

// Get returns the type that a variable is bound to, or nil if it is free.
func (v *TypeVars) Get(name string) Type {
	for i, n := range v.names {
		if n == name {
			return v.types[i]
		}
	}
	return nil
}

func (v *TypeVars) bind(name string, t Type) bool {
	for i, n := range v.names {
		if n == name {
			u, ok := UnifyTypes(v.types[i], t)
			if ok {
				v.types[i] = u
			}
			return ok
		}
	}
	v.names = append(v.names, name)
	v.types = append(v.types, t)
	return true
}

// Match binds the type variables of formal to parts of actual. It reports false
// if the structure differs where formal has variables; without variables it
// always succeeds and leaves the test to [IsSubtype].
func (v *TypeVars) Match(formal, actual Type) bool {
	if !HasTypeVars(formal) || actual == nil {
		return true
	}
	switch f := formal.(type) {
	case *VarType:
		if AsTensor(actual) != nil {
			actual = AnyTensor
		}
		return v.bind(f.Name, actual)
	case *ListType:
		if a, ok := actual.(*ListType); ok {
			return v.Match(f.Elem, a.Elem)
		}
		if a, ok := actual.(*TupleType); ok && len(a.Elems) > 0 {
			u := a.Elems[0]
			for _, e := range a.Elems[1:] {
				if u, ok = UnifyTypes(u, e); !ok {
					return false
				}
			}
			return v.Match(f.Elem, u)
		}
		return false
	case *OptionalType:
		if a, ok := actual.(*OptionalType); ok {
			return v.Match(f.Elem, a.Elem)
		}
		if actual == NoneType {
			return true
		}
		return v.Match(f.Elem, actual)
	case *DictType:
		a, ok := actual.(*DictType)
		return ok && v.Match(f.Key, a.Key) && v.Match(f.Value, a.Value)
	case *WrapType:
		a, ok := actual.(*WrapType)
		return ok && a.Name == f.Name && v.Match(f.Elem, a.Elem)
	case *TupleType:
		a, ok := actual.(*TupleType)
		if !ok || len(a.Elems) != len(f.Elems) {
			return false
		}
		for i := range f.Elems {
			if !v.Match(f.Elems[i], a.Elems[i]) {
				return false
			}
		}
	}
	return true
}

// Apply replaces bound variables in t. It returns nil if one is free.
func (v *TypeVars) Apply(t Type) Type {
	if !HasTypeVars(t) {
		return t
	}
	switch t := t.(type) {
	case *VarType:
		return v.Get(t.Name)
	case *ListType:
		if e := v.Apply(t.Elem); e != nil {
			return &ListType{e}
		}
	case *OptionalType:
		if e := v.Apply(t.Elem); e != nil {
			return &OptionalType{e}
		}
	case *WrapType:
		if e := v.Apply(t.Elem); e != nil {
			return &WrapType{t.Name, e}
		}
	case *DictType:
		k, e := v.Apply(t.Key), v.Apply(t.Value)
		if k != nil && e != nil {
			return &DictType{k, e}
		}
	case *TupleType:
		u := &TupleType{Names: t.Names, Name: t.Name}
		for _, e := range t.Elems {
			a := v.Apply(e)
			if a == nil {
				return nil
			}
			u.Elems = append(u.Elems, a)
		}
		return u
	}
	return nil
}

// HasTypeVars reports whether a type contains variables of a schema.
func HasTypeVars(t Type) bool {
	switch t := t.(type) {
	case *VarType:
		return true
	case *ListType:
		return HasTypeVars(t.Elem)
	case *OptionalType:
		return HasTypeVars(t.Elem)
	case *WrapType:
		return HasTypeVars(t.Elem)
	case *DictType:
		return HasTypeVars(t.Key) || HasTypeVars(t.Value)
	case *TupleType:
		for _, e := range t.Elems {
			if HasTypeVars(e) {
				return true
			}
		}
	}
	return false
}

// MatchSchema finds the overload of a printed operator: graphs show all arguments,
// already converted, but not the overload. It returns the first overload with the
// right number of arguments that accepts the operands' types, or nil. A nil type
// matches anything. If nothing else fits, a list of tensors matches a list of optional
// tensors and the reverse: a graph need not say which elements are None.
func MatchSchema(overloads []*Schema, operands []Type) *Schema {
	if s := matchSchema(overloads, operands); s != nil {
		return s
	}
	other := slices.Clone(operands)
	for i, t := range other {
		l, ok := t.(*ListType)
		if !ok {
			continue
		}
		if AsTensor(l.Elem) != nil {
			other[i] = &ListType{&OptionalType{l.Elem}}
		} else if o, ok := l.Elem.(*OptionalType); ok && AsTensor(o.Elem) != nil {
			other[i] = &ListType{o.Elem}
		}
	}
	return matchSchema(overloads, other)
}

func matchSchema(overloads []*Schema, operands []Type) *Schema {
	for _, s := range overloads {
		if len(s.Args) != len(operands) && !(s.Vararg && len(operands) >= len(s.Args)) {
			continue
		}
		var vars TypeVars
		ok := true
		for i := range s.Args {
			formal := s.Args[i].Type
			if packs(formal, operands[i]) {
				continue
			}
			if !vars.Match(formal, operands[i]) {
				ok = false
				break
			}
			if u := vars.Apply(formal); u != nil {
				formal = u
			} else if !isOptional(formal) { // T? accepts None with T free
				formal = nil
			}
			if _, opt := formal.(*OptionalType); opt && operands[i] == NoneType {
				continue
			}
			if !IsSubtype(operands[i], formal) {
				ok = false
				break
			}
		}
		if ok {
			return s
		}
	}
	return nil
}

// packs reports whether a tuple stands for an object of a C++ class, as it does after its state is read (passes/specialize).
func packs(formal, operand Type) bool {
	c, ok := formal.(*ClassType)
	_, tuple := operand.(*TupleType)
	return ok && tuple && IsCustomClass(c.Name)
}

func isOptional(t Type) bool {
	_, ok := t.(*OptionalType)
	return ok
}
