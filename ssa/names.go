package ssa

import "strconv"

// Names gives out names that no other value of a function has.
type Names struct {
	// next counts, for a name that is taken, the numbers that were tried behind it.
	next map[string]int
}

// NamesOf makes the list of the names that the values of a function have.
func NamesOf(f *Func) *Names {
	n := &Names{next: map[string]int{}}
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

// Take notes that a value has the name. The empty name is nobody's.
func (n *Names) Take(name string) {
	if name != "" && n.next[name] == 0 {
		n.next[name] = 1
	}
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
		n.next[want] = 1
		return want
	}
	for ; ; k++ {
		if s := want + "." + strconv.Itoa(k); n.next[s] == 0 {
			n.next[s], n.next[want] = 1, k+1
			return s
		}
	}
}
