package journal

import "testing"

func TestWriteShowsAtOnce(t *testing.T) {
	var j Journal
	c := j.New("old")
	j.Set(c, "new")
	if got := c.Content(); got != "new" {
		t.Errorf("content %v, want new", got)
	}
}

// A branch of an If: its writes are taken back, and come as changes to be joined with those of the other branch.
func TestRewindTakesWritesBackAndTellsThem(t *testing.T) {
	var j Journal
	a, b := j.New(1), j.New(2)
	j.Set(a, 10)
	at := j.Mark()
	j.Set(a, 11)
	j.Set(a, 12)
	inside := j.New(3)
	j.Set(inside, 4)
	changes := j.Rewind(at)
	if a.Content() != 10 || b.Content() != 2 {
		t.Errorf("contents %v and %v, want 10 and 2", a.Content(), b.Content())
	}
	if changes.Of(a) != 12 || changes.Of(b) != 2 || changes.Of(inside) != 4 {
		t.Errorf("at the end of the path: %v, %v, %v; want 12, 2, 4", changes.Of(a), changes.Of(b), changes.Of(inside))
	}
	if _, changed := changes[b]; changed {
		t.Error("a cell that was only read is among the changes")
	}
}

func TestMarksNest(t *testing.T) {
	var j Journal
	c := j.New(0)
	outer := j.Mark()
	j.Set(c, 1)
	inner := j.Mark()
	j.Set(c, 2)
	j.Rewind(inner)
	if c.Content() != 1 {
		t.Errorf("behind the inner path: %v, want 1", c.Content())
	}
	if ch := j.Rewind(outer); ch.Of(c) != 1 || c.Content() != 0 {
		t.Errorf("behind the outer path: %v, and %v in the path; want 0 and 1", c.Content(), ch.Of(c))
	}
}

// What is learned of memory holds of the target program, in which both branches are. An attempt that comes to nothing is not in it.
func TestRewindKeepsFactsAndRollbackForgetsThem(t *testing.T) {
	for _, rollback := range []bool{false, true} {
		var j Journal
		c := j.New(0)
		at := j.Mark()
		known := true
		j.Learn(func() { known = false })
		j.Set(c, 1)
		if rollback {
			j.Rollback(at)
		} else {
			j.Rewind(at)
		}
		if known == rollback {
			t.Errorf("rollback %v: the fact is known: %v", rollback, known)
		}
		if c.Content() != 0 {
			t.Errorf("rollback %v: content %v, want 0", rollback, c.Content())
		}
	}
}

func TestFactsAreForgottenBackwards(t *testing.T) {
	var j Journal
	at := j.Mark()
	n := 0
	for i := 1; i <= 3; i++ {
		was := n
		n = i
		j.Learn(func() { n = was })
	}
	j.Rollback(at)
	if n != 0 {
		t.Errorf("n is %d, want 0", n)
	}
}

// Weights are made when they are first read, which may be within an attempt; they were there before, and so were their relations.
func TestStateOfTheModuleIsOlderThanAllMarks(t *testing.T) {
	var j Journal
	j.New(nil)
	at := j.Mark()
	var c *Cell
	known := true
	j.AsBefore(func() {
		c = j.New("weight")
		j.Learn(func() { known = false })
	})
	if c.ID() > at.Last {
		t.Errorf("the cell of a weight is numbered %d, behind the mark at %d", c.ID(), at.Last)
	}
	if fresh := j.New(nil); fresh.ID() <= at.Last {
		t.Errorf("a cell of the program is numbered %d, before the mark at %d", fresh.ID(), at.Last)
	}
	j.Rollback(at)
	if !known {
		t.Error("what is known of weights was forgotten")
	}
}

func TestUnder(t *testing.T) {
	var j Journal
	c := j.New("outside")
	at := j.Mark()
	j.Set(c, "inside")
	changes := j.Rewind(at)
	changes.Under(func() {
		if c.Content() != "inside" {
			t.Errorf("under the changes: %v", c.Content())
		}
	})
	if c.Content() != "outside" {
		t.Errorf("behind them: %v", c.Content())
	}
}

func TestOrderedIsByAge(t *testing.T) {
	var j Journal
	cells := Changes{}
	var want []*Cell
	for range 20 {
		c := j.New(nil)
		cells[c] = nil
		want = append(want, c)
	}
	for i, c := range Ordered(cells) {
		if c != want[i] {
			t.Fatalf("place %d has the cell numbered %d", i, c.ID())
		}
	}
	if c := Loose(7); c.Content() != 7 {
		t.Errorf("a loose cell holds %v", c.Content())
	}
}
