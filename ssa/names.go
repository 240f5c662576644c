package ssa

import (
	"strconv"
	"strings"
)

// BareName returns a name without the number that PyTorch appends to make the names of a graph unique: x for x.1.
func BareName(name string) string {
	if i := strings.LastIndexByte(name, '.'); i > 0 && i+1 < len(name) && strings.Trim(name[i+1:], "0123456789") == "" {
		return name[:i]
	}
	return name
}

// Names is the set of names in a function, and makes new ones. The zero value is an empty set.
type Names struct {
	// next is, for each taken name, the next number to append.
	next map[string]int
}

// NamesOf returns the set of the names of a function's values.
func NamesOf(f *Func) *Names {
	n := &Names{next: make(map[string]int, f.Body.Len())}
	take := func(vs []*Value) {
		for _, v := range vs {
			if v.Name != "" {
				n.next[v.Name] = 1
			}
		}
	}
	take(f.Body.Params)
	for o := range f.Body.AllOps() {
		take(o.Results)
		for _, b := range o.Blocks {
			take(b.Params)
		}
	}
	return n
}

// Taken reports whether a value has the name.
func (n *Names) Taken(name string) bool { return n.next[name] != 0 }

// Take adds a name. It ignores the empty name.
func (n *Names) Take(name string) {
	if name != "" && !n.Taken(name) {
		n.set(name, 1)
	}
}

func (n *Names) set(name string, k int) {
	if n.next == nil {
		n.next = map[string]int{}
	}
	n.next[name] = k
}

// Free removes a name.
func (n *Names) Free(name string) { delete(n.next, name) }

// Unique returns the name, or the first of name.1, name.2, ... that is not taken, and adds it. It takes constant time, however
// often a name is asked for. The empty name stays empty.
func (n *Names) Unique(want string) string {
	if want == "" {
		return ""
	}
	k := n.next[want]
	if k == 0 {
		n.set(want, 1)
		return want
	}
	for ; ; k++ {
		if s := want + "." + strconv.Itoa(k); !n.Taken(s) {
			n.next[s], n.next[want] = 1, k+1
			return s
		}
	}
}
