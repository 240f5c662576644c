package panics

import "fmt"

// Error is a mistake in the input.
type Error struct{ Text string }

// stop is what a walk panics with.
type stop struct{} // want stop:"thrown"

type other struct{}

// Parse reads a text.
func Parse(text string) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Error:
			err = fmt.Errorf("%s", r.Text)
		default:
			panic(r)
		}
	}()
	deep(text)
	return nil
}

func deep(text string) {
	switch text {
	case "a":
		panic(&Error{text})
	case "b":
		panic(stop{})
	case "c":
		panic(
			other{}) // want `nobody recovers a panic with other`
	case "d":
		panic(
			"text " + text) // want `nobody recovers a panic with string`
	}
}

func named() {
	panic("never") // the table is complete
}

// Must panics if the number is negative.
func Must(n int) {
	if n < 0 {
		panic(n)
	}
}

var handler = func() {
	defer func() {
		if r := recover(); r != nil {
			panic(r)
		}
	}()
	func() {
		panic(other{})
	}()
}
