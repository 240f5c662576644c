package docs

// Right is named.
func Right() {}

// Another is the name of something else. // want `the comment on Wrong begins with "Another"; it should begin with the name`
func Wrong() {}

// says nothing about the name // want `the comment on Method begins with "says"`
func (T) Method() {}

// A T is an article and a name.
type T struct{}

// Wright is a typo. // want `the comment on U begins with "Wright"`
type U struct{}

// V's comment has a possessive.
var V int

// First and Second are named together.
var First, Second int

// Kinds of things: a group's comment is free.
const (
	// One is named.
	One = 1
	// Four is not Two. // want `the comment on Two begins with "Four"`
	Two   = 2
	Three = 3 // not a doc comment
)

// whatever one likes
func unexported() {}

// Right was copied. // want `the comment on copied begins with the name of something else, Right`
func copied() {}

func NoComment() {} // want `NoComment is exported and has no comment`

func (T) String() string { return "" }

func (t hidden) Method() {}

type hidden struct{}

type Bare struct{} // what a line says is a comment

var Loose int /* a comment too */

type /* want `Silent is exported and has no comment` */ Silent int

// Deprecated: use Right.
func Old() {}

//go:noinline
func Directive() {}
