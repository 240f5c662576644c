package bound

import (
	"math"
	"math/rand/v2"
	"testing"
)

// device adds up products as tensor cores were found to do: in groups, each aligned to its greatest addend, cut to 24 bits, summed exactly and cut again.
func device(products []float64, group int) float64 {
	cut := func(x float64, e int) float64 { return math.Ldexp(math.Trunc(math.Ldexp(x, 24-e)), e-24) }
	sum := 0.0
	for len(products) > 0 {
		n := min(group, len(products))
		addends := append([]float64{sum}, products[:n]...)
		products = products[n:]
		top := math.MinInt
		for _, x := range addends {
			if _, e := math.Frexp(x); x != 0 {
				top = max(top, e)
			}
		}
		sum = 0
		for _, x := range addends {
			sum += cut(x, top)
		}
		_, e := math.Frexp(sum)
		sum = cut(sum, e)
	}
	return sum
}

// The bound holds for groups and orders that devices have, with numbers of one sign too, where what is cut adds up. It is no more than 100 times too large.
func TestMma(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	worst := 0.0
	for _, group := range []int{4, 8, 16} {
		for _, k := range []int{1, 16, 50, 256, 4096} {
			for try := range 50 {
				var products []float64
				exact, size := 0.0, 0.0
				for range k {
					p := float64(r.IntN(2048)) * float64(r.IntN(2048)) * 0x1p-12
					if try%2 == 0 && r.IntN(2) == 0 {
						p = -p
					}
					products = append(products, p)
					exact, size = exact+p, size+math.Abs(p)
				}
				off := math.Abs(device(products, group) - exact)
				if allowed := Mma(int64(k), size); off > allowed {
					t.Errorf("groups of %d, %d products: off by %g, allowed are %g", group, k, off, allowed)
				} else if allowed > 0 {
					worst = max(worst, off/allowed)
				}
			}
		}
	}
	if worst < 0.01 {
		t.Errorf("nothing comes near the bound: at most %g of it", worst)
	}
}
