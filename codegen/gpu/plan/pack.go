package plan

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// extent is memory that is needed from one step to another, both included.
type extent struct {
	size        int64
	first, last int
}

func (e extent) meets(f extent) bool { return e.first <= f.last && f.first <= e.last }

// Bounds of the work of pack. A visit is a look at one extent while another one is placed: 1<<26 of them take about 0.1 s.
const (
	mostTries  = 2000
	mostVisits = 1 << 26
	// more extents than these are placed in the first orders only
	mostImproved = 5000
)

// liveBytes is the greatest sum of the sizes of extents that are needed in the same step: no placement needs less.
func liveBytes(es []extent) int64 {
	type change struct {
		step  int
		bytes int64
	}
	var changes []change
	for _, e := range es {
		changes = append(changes, change{e.first, e.size}, change{e.last + 1, -e.size})
	}
	// what ends before a step is gone when the step begins
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.bytes, b.bytes)) })
	var live, most int64
	for _, c := range changes {
		live += c.bytes
		most = max(most, live)
	}
	return most
}

// crowds is for each extent the greatest sum of sizes of a step in which it is needed.
func crowds(es []extent) []int64 {
	end := 0
	for _, e := range es {
		end = max(end, e.last)
	}
	live := make([]int64, end+2)
	for _, e := range es {
		live[e.first] += e.size
		live[e.last+1] -= e.size
	}
	for i := range end {
		live[i+1] += live[i]
	}
	out := make([]int64, len(es))
	for k, e := range es {
		out[k] = slices.Max(live[e.first : e.last+1])
	}
	return out
}

// pack finds offsets at which extents that meet do not overlap, and the end of the highest. The problem is dynamic storage
// allocation, which is NP-hard: several orders are placed one extent after another, and the best ones are then improved by bringing
// extents that are too high forward. It stops at liveBytes, which cannot be beaten. The work is bounded by mostTries and mostVisits,
// beyond the first order, and the result is the same each time.
func pack(es []extent) (offsets []int64, total int64) {
	n := len(es)
	p := &packer{es: es, bound: liveBytes(es), best: make([]int64, n), offsets: make([]int64, n)}
	crowd := crowds(es)
	life := func(i int) int { return es[i].last - es[i].first + 1 }
	area := func(i int) int64 { return es[i].size * int64(life(i)) }
	keys := []func(a, b int) int{
		func(a, b int) int { return 0 }, // by size alone
		func(a, b int) int { return cmp.Compare(area(b), area(a)) },
		func(a, b int) int { return cmp.Compare(life(b), life(a)) },
		func(a, b int) int { return cmp.Compare(es[a].first, es[b].first) },
		func(a, b int) int { return cmp.Compare(es[b].last, es[a].last) },
		func(a, b int) int { return cmp.Compare(crowd[b], crowd[a]) },
		func(a, b int) int { return cmp.Or(cmp.Compare(crowd[b], crowd[a]), cmp.Compare(life(b), life(a))) },
	}
	type start struct {
		order []int
		fit   fitting
		end   int64
	}
	var starts []start
	if n <= mostImproved {
		order := valleys(es)
		p.place(order, firstFit)
		starts = append(starts, start{order, firstFit, p.end})
	}
	for _, key := range keys {
		order := make([]int, 0, n)
		for i := range es {
			order = append(order, i)
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Or(key(a, b), cmp.Compare(es[b].size, es[a].size)) })
		for _, f := range []fitting{firstFit, bestFit} {
			if p.done() {
				return p.best, p.total
			}
			p.place(order, f)
			starts = append(starts, start{order, f, p.end})
		}
	}
	if n > mostImproved {
		return p.best, p.total
	}
	slices.SortStableFunc(starts, func(a, b start) int { return cmp.Compare(a.end, b.end) })
	for k, s := range starts[:4] {
		left := int64(mostTries - p.tries)
		if each := p.visits / int64(p.tries); each > 0 {
			left = min(left, (mostVisits-p.visits)/each)
		}
		p.improve(s.order, s.fit, int(left)/(4-k))
	}
	return p.best, p.total
}

// valleys is an order from the bottom up, as in Sekiyama et al., Profile-guided memory optimization for deep neural networks
// (arXiv:1804.10001): the outline of what is placed has a lowest stretch of steps, on which the extent of the longest life
// among those that fit between its walls is put; if none fits, the stretch rises to its lower wall.
func valleys(es []extent) []int {
	type stretch struct {
		first, last int
		height      int64
	}
	var todo, order []int
	end := 0
	for i, e := range es {
		if e.size == 0 {
			order = append(order, i)
			continue
		}
		todo = append(todo, i)
		end = max(end, e.last)
	}
	life := func(i int) int { return es[i].last - es[i].first }
	slices.SortStableFunc(todo, func(a, b int) int { return cmp.Or(cmp.Compare(life(b), life(a)), cmp.Compare(es[b].size, es[a].size)) })
	line := []stretch{{0, end, 0}}
	for len(todo) > 0 {
		low := 0
		for k, s := range line {
			if s.height < line[low].height {
				low = k
			}
		}
		s := line[low]
		at := slices.IndexFunc(todo, func(i int) bool { return s.first <= es[i].first && es[i].last <= s.last })
		if at < 0 {
			switch {
			case low == 0:
				line[low].height = line[1].height
			case low == len(line)-1:
				line[low].height = line[low-1].height
			default:
				line[low].height = min(line[low-1].height, line[low+1].height)
			}
			if low+1 < len(line) && line[low+1].height == line[low].height {
				line[low].last = line[low+1].last
				line = slices.Delete(line, low+1, low+2)
			}
			if low > 0 && line[low-1].height == line[low].height {
				line[low-1].last = line[low].last
				line = slices.Delete(line, low, low+1)
			}
			continue
		}
		i := todo[at]
		todo = slices.Delete(todo, at, at+1)
		order = append(order, i)
		parts := []stretch{{es[i].first, es[i].last, s.height + es[i].size}}
		if s.first < es[i].first {
			parts = slices.Insert(parts, 0, stretch{s.first, es[i].first - 1, s.height})
		}
		if es[i].last < s.last {
			parts = append(parts, stretch{es[i].last + 1, s.last, s.height})
		}
		line = slices.Replace(line, low, low+1, parts...)
	}
	return order
}

type fitting bool

const (
	firstFit fitting = false // the lowest gap
	bestFit  fitting = true  // the smallest gap, the lowest of equal ones
)

type packer struct {
	es      []extent
	bound   int64
	best    []int64 // offsets of the smallest placement, whose end is total
	total   int64
	offsets []int64 // of the placement that is tried, whose end is end
	end     int64
	placed  []int // in the order of their offsets
	tries   int
	visits  int64
}

func (p *packer) done() bool {
	return p.total == p.bound || p.tries >= mostTries || p.visits >= mostVisits
}

// place puts the extents in their places one after another, and keeps the result if it is the smallest so far.
func (p *packer) place(order []int, fit fitting) bool {
	p.placed, p.end = p.placed[:0], 0
	for _, i := range order {
		e := p.es[i]
		if e.size == 0 {
			p.offsets[i] = 0
			continue
		}
		var at int64 // the end of those below that meet e
		gap, found := int64(-1), int64(0)
		for _, j := range p.placed {
			f := p.es[j]
			if !e.meets(f) {
				continue
			}
			if free := p.offsets[j] - at; free >= e.size && (gap < 0 || free < gap) {
				gap, found = free, at
				if fit == firstFit || free == e.size {
					break
				}
			}
			at = max(at, p.offsets[j]+f.size)
		}
		p.visits += int64(len(p.placed))
		if gap >= 0 {
			at = found
		}
		p.offsets[i] = at
		p.end = max(p.end, at+e.size)
		k, _ := slices.BinarySearchFunc(p.placed, at+1, func(j int, at int64) int { return cmp.Compare(p.offsets[j], at) })
		p.placed = slices.Insert(p.placed, k, i)
	}
	p.tries++
	if p.tries > 1 && p.end >= p.total {
		return false
	}
	copy(p.best, p.offsets)
	p.total = p.end
	return true
}

// improve goes from order to order. An extent that ends above the bound was placed too late: one of them moves to a place before its
// own, or all of them a few places forward; now and then any two change places. An order that is not worse is where the next one starts.
func (p *packer) improve(order []int, fit fitting, tries int) {
	random := rand.New(rand.NewPCG(1, uint64(len(order))))
	order = slices.Clone(order)
	p.place(order, fit)
	end, last := p.end, slices.Clone(p.offsets)
	next, over := slices.Clone(order), []int(nil)
	for range tries {
		if p.done() {
			return
		}
		copy(next, order)
		over = over[:0] // places in the order
		for k, i := range order {
			if k > 0 && last[i]+p.es[i].size > p.bound {
				over = append(over, k)
			}
		}
		forward := func(k, to int) {
			i := next[k]
			copy(next[to+1:k+1], next[to:k])
			next[to] = i
		}
		switch kind := random.IntN(8); {
		case len(over) > 0 && kind < 4:
			k := over[random.IntN(len(over))]
			forward(k, random.IntN(k))
		case len(over) > 0 && kind < 7:
			by := 1 + random.IntN(len(order))
			for _, k := range over {
				forward(k, max(k-by, 0))
			}
		default:
			a, b := random.IntN(len(next)), random.IntN(len(next))
			next[a], next[b] = next[b], next[a]
		}
		p.place(next, fit)
		if p.end <= end {
			order, next, end = next, order, p.end
			copy(last, p.offsets)
		}
	}
}
