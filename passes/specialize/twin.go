package specialize

// twin records that two tensor objects are one in some case, as v is x in `v = x if c else y`:
// what changes the shape of one in place may change that of the other.
func (s *spec) twin(a, b *cell) {
	if a == b {
		return
	}
	if s.twins == nil {
		s.twins = map[*cell][]*cell{}
	}
	s.twins[a], s.twins[b] = append(s.twins[a], b), append(s.twins[b], a)
}

// reshape changes the shape of a tensor object in place. Those that may be the
// same object cannot be read any more.
func (s *spec) reshape(c *cell, state any) {
	s.set(c, state)
	seen := map[*cell]bool{c: true}
	var visit func(c *cell)
	visit = func(c *cell) {
		for _, t := range s.twins[c] {
			if seen[t] {
				continue
			}
			seen[t] = true
			if ts, ok := t.content.(*tensorState); ok {
				lost := *ts
				lost.reshaped = "the shape of what may be this tensor was changed in place " + s.where() + "; use the form without _ there"
				s.set(t, &lost)
			}
			visit(t)
		}
	}
	visit(c)
}
