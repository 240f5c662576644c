package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// overlap finds two extents that meet and share memory, and an end that is not that of the highest.
func overlap(es []extent, offsets []int64, total int64) error {
	var end int64
	for i, e := range es {
		if offsets[i] < 0 || offsets[i]%Alignment != 0 {
			return fmt.Errorf("extent %d at %d", i, offsets[i])
		}
		end = max(end, offsets[i]+e.size)
		for j, f := range es[:i] {
			if e.meets(f) && offsets[i] < offsets[j]+f.size && offsets[j] < offsets[i]+e.size {
				return fmt.Errorf("extents %d %v at %d and %d %v at %d overlap", j, f, offsets[j], i, e, offsets[i])
			}
		}
	}
	if end != total {
		return fmt.Errorf("end %d, total %d", end, total)
	}
	return nil
}

// sets are extents of the kinds that plans have, and one of no structure.
var sets = map[string]func(r *rand.Rand, n int) []extent{
	"random": func(r *rand.Rand, n int) (es []extent) {
		for range n {
			a, b := r.IntN(n), r.IntN(n)
			es = append(es, extent{Alignment * (1 + r.Int64N(1000)), min(a, b), max(a, b)})
		}
		return es
	},
	"short": func(r *rand.Rand, n int) (es []extent) {
		for i := range n {
			es = append(es, extent{Alignment << r.IntN(12), i, i + 1 + r.IntN(8)})
		}
		return es
	},
	// each step has a result of its own; some are read much later
	"chain": func(r *rand.Rand, n int) (es []extent) {
		for i := range n {
			last := i + 1
			if r.IntN(6) == 0 {
				last = min(n, i+1+r.IntN(n/2))
			}
			es = append(es, extent{Alignment * (1 + r.Int64N(64)), i, last})
		}
		return es
	},
}

func TestPackRandom(t *testing.T) {
	for _, c := range []struct {
		name       string
		mean, most float64 // of total over liveBytes
	}{{"random", 1.005, 1.03}, {"short", 1, 1}, {"chain", 1.01, 1.08}} {
		var sum, most float64
		count := 0
		for _, n := range []int{2, 3, 5, 10, 30, 100, 300} {
			for seed := range uint64(6) {
				es := sets[c.name](rand.New(rand.NewPCG(seed, uint64(n))), n)
				offsets, total := pack(es)
				if err := overlap(es, offsets, total); err != nil {
					t.Fatalf("%s, %d extents, seed %d: %v", c.name, n, seed, err)
				}
				if again, end := pack(es); end != total || !slices.Equal(offsets, again) {
					t.Errorf("%s, %d extents, seed %d: %d bytes and then %d", c.name, n, seed, total, end)
				}
				ratio := float64(total) / float64(liveBytes(es))
				if ratio < 1 {
					t.Errorf("%s, %d extents, seed %d: %d bytes are less than the bound of %d", c.name, n, seed, total, liveBytes(es))
				}
				sum, most, count = sum+ratio, max(most, ratio), count+1
			}
		}
		t.Logf("%s: bytes over the bound: mean %.4f, greatest %.4f of %d", c.name, sum/float64(count), most, count)
		if mean := sum / float64(count); mean > c.mean || most > c.most {
			t.Errorf("%s: bytes over the bound: mean %.4f, greatest %.4f; expected at most %.3f and %.3f", c.name, mean, most, c.mean, c.most)
		}
	}
}

func TestPackKnown(t *testing.T) {
	const a = Alignment
	for _, c := range []struct {
		name  string
		es    []extent
		total int64 // the least possible
	}{
		{"none", nil, 0},
		{"empty", []extent{{0, 0, 3}, {0, 1, 2}}, 0},
		{"one", []extent{{3 * a, 0, 3}}, 3 * a},
		{"one after another", []extent{{a, 0, 1}, {2 * a, 2, 3}, {3 * a, 4, 4}}, 3 * a},
		{"ends meet", []extent{{a, 0, 1}, {2 * a, 1, 2}}, 3 * a},
		{"staircase", []extent{{a, 0, 4}, {2 * a, 0, 2}, {3 * a, 1, 5}, {2 * a, 3, 7}, {4 * a, 5, 8}, {a, 2, 6}}, 10 * a},
		// by first use, short ones among long ones leave holes in between
		{"comb", []extent{{a, 0, 0}, {a, 0, 9}, {a, 0, 0}, {a, 0, 9}, {a, 0, 0}, {a, 0, 9}, {3 * a, 1, 9}}, 6 * a},
		{"pyramid", []extent{{a, 0, 9}, {2 * a, 1, 8}, {3 * a, 2, 7}, {4 * a, 3, 6}, {5 * a, 4, 5}}, 15 * a},
	} {
		offsets, total := pack(c.es)
		if err := overlap(c.es, offsets, total); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if total != c.total || liveBytes(c.es) > total {
			t.Errorf("%s: %d bytes of alignment, expected %d; bound %d", c.name, total/a, c.total/a, liveBytes(c.es)/a)
		}
	}
}

// greedy is the result of the largest first alone, each at the lowest place.
func greedy(es []extent) int64 {
	p := &packer{es: es, best: make([]int64, len(es)), offsets: make([]int64, len(es))}
	order := make([]int, len(es))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(es[b].size - es[a].size) })
	p.place(order, firstFit)
	return p.total
}

func TestPackBeatsGreedy(t *testing.T) {
	better := 0
	for name, set := range sets {
		for seed := range uint64(10) {
			es := set(rand.New(rand.NewPCG(seed, 7)), 60)
			_, total := pack(es)
			switch g := greedy(es); {
			case total > g:
				t.Errorf("%s, seed %d: %d bytes, the largest first %d", name, seed, total, g)
			case total < g:
				better++
			}
		}
	}
	if better < 10 {
		t.Errorf("better than the largest first in %d of 30 sets", better)
	}
}

func TestPackWork(t *testing.T) {
	for _, n := range []int{mostImproved, 2 * mostImproved} {
		es := sets["chain"](rand.New(rand.NewPCG(1, 1)), n)
		start := time.Now()
		offsets, total := pack(es)
		t.Logf("%d extents: %.4f of the bound, %v", n, float64(total)/float64(liveBytes(es)), time.Since(start))
		if err := overlap(es, offsets, total); err != nil {
			t.Error(err)
		}
		p := &packer{es: es, bound: -1, best: make([]int64, n), offsets: make([]int64, n)}
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		p.improve(order, firstFit, 2*mostTries)
		if most := int64(mostVisits) + int64(n)*int64(n); p.visits > most || p.tries > mostTries {
			t.Errorf("%d extents: %d visits in %d tries, at most %d in %d", n, p.visits, p.tries, most, mostTries)
		}
	}
}

// Values of regions have no place in the arena, and weights and inputs have memory of their own.
func TestAllocateKinds(t *testing.T) {
	p := &Plan{}
	for i, kind := range []BufferKind{Input, Temp, Local, Weight, Output, Temp} {
		p.Buffers = append(p.Buffers, &Buffer{ID: i, Kind: kind, First: 0, Last: 2})
	}
	sizes := []int64{999, 100, 0, 999, 300, 0}
	offsets, total := p.Allocate(sizes)
	if total != 3*Alignment || p.LiveBytes(sizes) != total {
		t.Errorf("%d bytes, bound %d, expected %d", total, p.LiveBytes(sizes), 3*Alignment)
	}
	for i, at := range offsets {
		if placed := at >= 0; placed != slices.Contains([]int{1, 4, 5}, i) {
			t.Errorf("buffer %d of kind %s at %d", i, p.Buffers[i].Kind, at)
		}
	}
}

func BenchmarkPack(b *testing.B) {
	for _, n := range []int{100, 1000} {
		for _, name := range []string{"random", "short", "chain"} {
			es := sets[name](rand.New(rand.NewPCG(1, 1)), n)
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				var total int64
				for b.Loop() {
					_, total = pack(es)
				}
				b.ReportMetric(float64(total)/float64(liveBytes(es)), "of-bound")
				b.ReportMetric(float64(greedy(es))/float64(liveBytes(es)), "greedy-of-bound")
			})
		}
	}
}
