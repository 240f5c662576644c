// Package pyast parses the Python subset that TorchScript archives are written
// in, and the expressions of hand-written TorchScript.
package pyast

// Expr is an expression. At is its byte offset in the source.
type Expr interface{ At() int }

// Pos is the byte offset of a node.
type Pos int

// At gives the offset.
func (p Pos) At() int { return int(p) }

// The expressions.
type (
	// Name is an identifier, True, False and None included.
	Name struct {
		Pos
		ID string
	}
	// Num is a number as it is written; Imag marks a trailing j.
	Num struct {
		Pos
		Text string
		Imag bool
	}
	// Str is a string with its escapes resolved.
	Str struct {
		Pos
		Value string
	}
	// Attr is X.Name.
	Attr struct {
		Pos
		X    Expr
		Name string
	}
	// Call is Fn(Args). Paren is the offset of the opening parenthesis.
	Call struct {
		Pos
		Fn    Expr
		Args  []Arg
		Paren int
	}
	// Arg is an argument of a call, Name empty for a positional one.
	Arg struct {
		Name  string
		Value Expr
	}
	// Index is X[Items].
	Index struct {
		Pos
		X     Expr
		Items []Expr
	}
	// Slice is Lo:Hi:Step in an Index; each may be nil.
	Slice struct {
		Pos
		Lo, Hi, Step Expr
	}
	// Tuple is a tuple display.
	Tuple struct {
		Pos
		Elems []Expr
	}
	// List is a list display.
	List struct {
		Pos
		Elems []Expr
	}
	// Dict is a dict display.
	Dict struct {
		Pos
		Keys, Values []Expr
	}
	// Unary is Op X: "-", "+", "~", "not".
	Unary struct {
		Pos
		Op string
		X  Expr
	}
	// Binary is X Op Y, comparisons, "and" and "or" included.
	Binary struct {
		Pos
		Op   string
		X, Y Expr
	}
	// Cond is X if If else Else.
	Cond struct {
		Pos
		If, Then, Else Expr
	}
)

// Stmt is a statement.
type Stmt interface{ At() int }

// The statements.
type (
	// Assign is Targets = Value, or Target: Type = Value. Unpack marks a trailing
	// comma on the left, by which archives mark the unpacking of one value.
	Assign struct {
		Pos
		Targets []Expr
		Unpack  bool
		Type    Expr
		Value   Expr
		Op      string // of an augmented assignment: "+" for +=
	}
	// ExprStmt is an expression as a statement.
	ExprStmt struct {
		Pos
		X Expr
	}
	// Return is return X; X may be nil.
	Return struct {
		Pos
		X Expr
	}
	// Pass is pass.
	Pass struct{ Pos }
	// If is if/else; elif is nested.
	If struct {
		Pos
		Cond       Expr
		Then, Else []Stmt
	}
	// For is for Target in Iter.
	For struct {
		Pos
		Target Expr
		Iter   Expr
		Body   []Stmt
	}
	// While is while Cond.
	While struct {
		Pos
		Cond Expr
		Body []Stmt
	}
	// With is with X as Name; Name may be empty.
	With struct {
		Pos
		X    Expr
		Name string
		Body []Stmt
	}
	// Def is a function.
	Def struct {
		Pos
		Name   string
		Params []Param
		Ret    Expr
		Body   []Stmt
	}
	// Param is a parameter of a function; a lone * has the name "*".
	Param struct {
		Pos
		Name    string
		Type    Expr
		Default Expr
	}
	// Class is a class.
	Class struct {
		Pos
		Name string
		Base string
		Body []Stmt
	}
	// Other is a statement that is recognised but not part of archives: break, raise ...
	Other struct {
		Pos
		What string
	}
)

// File is a parsed source file.
type File struct {
	Body []Stmt
}
