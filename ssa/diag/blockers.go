package diag

import "errors"

// Blocker is an operator that blocks a conversion for one reason.
type Blocker struct {
	Operator string `json:"operator"`
	Count    int    `json:"count"`
	// File, Line and Scope (the path of the module) locate its first occurrence in the user's program.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Scope  string `json:"scope,omitempty"`
	ID     string `json:"id"`
	Reason string `json:"reason"`
	Hint   string `json:"hint,omitempty"`
	// Opset is the lowest opset at which it converts, 0 if none is known.
	Opset int `json:"opset,omitempty"`
}

// Blockers groups the errors of a list by operator and reason, in the order of their first occurrence.
func Blockers(err error) []Blocker {
	out := []Blocker{}
	var list *List
	if !errors.As(err, &list) {
		return out
	}
	at := map[[3]string]int{}
	for _, d := range list.Items {
		if d.Severity != Error {
			continue
		}
		key := [3]string{d.Op, d.ID, d.Message}
		i, seen := at[key]
		if !seen {
			i = len(out)
			at[key] = i
			b := Blocker{Operator: d.Op, ID: d.ID, Reason: d.Message, Hint: d.Hint, Opset: d.Opset}
			if list.Table != nil {
				f := list.Table.Place(d.Loc)
				b.File, b.Line, b.Scope = f.File, f.Line, f.Scope
			}
			out = append(out, b)
		}
		out[i].Count++
	}
	return out
}
