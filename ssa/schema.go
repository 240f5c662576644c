package ssa

// Schema is the declaration of one overload of an operator, as PyTorch registers it.
type Schema struct {
	Name      string // aten::add
	Overload  string // Tensor
	Args      []SchemaArg
	Returns   []SchemaArg
	Vararg    bool // "..." in the arguments
	VarReturn bool // "..." as the return
	text      string
}

// SchemaArg is an argument or a return of a schema.
type SchemaArg struct {
	Name string
	Type Type
	// Size is N for a fixed-size list T[N], else 0.
	Size       int
	KwOnly     bool
	HasDefault bool
	Default    Literal
	// Alias is the alias set: "a" in Tensor(a!), "*" for a wildcard, empty for none.
	Alias string
	// AliasAfter is the set after "->", as in (a -> *).
	AliasAfter string
	// Writes marks Tensor(a!): the operator writes to the argument.
	Writes bool
}

// String returns the schema as PyTorch prints it.
func (s *Schema) String() string { return s.text }

// SetText records the line that the schema was read from.
func (s *Schema) SetText(t string) { s.text = t }

// FullName returns name.overload, or the name alone for the default overload.
func (s *Schema) FullName() string {
	if s.Overload == "" {
		return s.Name
	}
	return s.Name + "." + s.Overload
}

// Arg returns the index of the argument with this name, or -1. It may be called on nil, an unknown schema.
func (s *Schema) Arg(name string) int {
	if s == nil {
		return -1
	}
	for i := range s.Args {
		if s.Args[i].Name == name {
			return i
		}
	}
	return -1
}

// Mutates reports whether the operator writes to any of its arguments.
func (s *Schema) Mutates() bool {
	for i := range s.Args {
		if s.Args[i].Writes {
			return true
		}
	}
	return false
}
