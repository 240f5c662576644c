package ssa

import (
	"strconv"
	"strings"
)

// BareName is a name without the number that PyTorch puts behind it to make the names of a graph unique: x for x.1.
func BareName(name string) string {
	if i := strings.LastIndexByte(name, '.'); i > 0 && i+1 < len(name) && strings.Trim(name[i+1:], "0123456789") == "" {
		return name[:i]
	}
	return name
}

// Names gives out names that no other value of a function has. Its zero value is ready for a function without values.
type Names struct {
	// next counts, for a name that is taken, the numbers that were tried behind it.
	next map[string]int
}

// NamesOf makes the list of the names that the values of a function have.
func NamesOf(f *Func) *Names {
	n := &Names{}
	take := func(vs []*Value) {
		for _, v := range vs {
			n.Take(v.Name)
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

// Taken reports that a value has the name.
func (n *Names) Taken(name string) bool { return n.next[name] != 0 }

// Take notes that a value has the name. The empty name is nobody's.
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

// Free gives a name back.
func (n *Names) Free(name string) { delete(n.next, name) }

// Unique gives the name that is wanted, or the first of name.1, name.2 ... that is free, and takes it. However often one
// name is asked for, each answer costs the same. The empty name stays empty.
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
