package archive

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aton-project/aton/frontend/pickle"
)

// Error is a problem with a file that a front end reads. Deep in a file, a front end panics with it; see Recover.
type Error struct {
	File   string
	Record string // empty if the file as a whole is meant
	Line   int    // of a source, from 1 on; 0 if unknown
	Offset int64  // byte of the record, or of the file where the container itself is wrong; -1 if unknown
	Node   string // the call at fault, if any
	Err    error
	Hint   string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Record != "" {
		b.WriteString(": " + e.Record)
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	} else if e.Offset >= 0 {
		fmt.Fprintf(&b, ": byte %d", e.Offset)
	}
	if e.Node != "" {
		b.WriteString(": " + e.Node)
	}
	b.WriteString(": " + e.Err.Error())
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// Unwrap gives what went wrong, without the place.
func (e *Error) Unwrap() error { return e.Err }

// At makes an error of one about a record, with the place that a reader below tells.
func At(file, record string, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	var p *pickle.Error
	if errors.As(err, &p) {
		return &Error{File: file, Record: record, Offset: int64(p.Offset), Err: p.Err}
	}
	return &Error{File: file, Record: record, Offset: -1, Err: err}
}

// Recover gives the *Error that a reader has panicked with, and goes on with any other panic. It is to be deferred.
func Recover(err *error) {
	if r := recover(); r != nil {
		e, ok := r.(*Error)
		if !ok {
			panic(r)
		}
		*err = e
	}
}

// Remarks tells each remark on a file once.
type Remarks struct {
	File string
	Warn func(message string) // nil drops them
	told map[string]bool
}

// Warnf makes a remark.
func (r *Remarks) Warnf(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if r.Warn == nil || r.told[s] {
		return
	}
	if r.told == nil {
		r.told = map[string]bool{}
	}
	r.told[s] = true
	r.Warn(r.File + ": " + s)
}
