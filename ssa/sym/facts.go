package sym

// Fact is what is known of a symbol besides its name, which is all that the text of an expression says.
type Fact struct {
	Name string
	Min  int64
	Max  *Expr    // an upper bound; nil if there is none
	Free []string // the symbols that a summary depends on
}

// Symbol makes the symbol of the fact.
func (f Fact) Symbol() Expr {
	a := &atom{key: f.Name, min: f.Min, max: f.Max}
	if f.Free != nil {
		a.op, a.free = summary, f.Free
	}
	return fromAtom(*a)
}

// Plain reports that the fact is what [Parse] assumes of a name: a size of which nothing is known.
func (f Fact) Plain() bool { return f.Min == 0 && f.Max == nil && f.Free == nil }

// Facts calls f for each symbol and each summary of the expression, and of the bounds of symbols before the symbols.
func (e Expr) Facts(f func(Fact)) {
	if e.p == nil {
		return
	}
	for _, t := range e.p.terms {
		for _, a := range t.atoms {
			if a.op == "" || a.op == summary {
				if a.op == "" && a.max != nil {
					a.max.Facts(f)
				}
				fact := Fact{Name: a.key, Min: a.min, Free: a.free}
				if a.op == "" {
					fact.Max = a.max
				}
				f(fact)
			}
			for _, x := range a.args {
				x.Facts(f)
			}
		}
	}
}
