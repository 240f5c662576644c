//go:build unix

package all

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
)

// program writes a graph of about n operators: layers of a residual network of matrix products, views with sizes that are
// computed, casts, slices and joins, with weights of their own and shared ones.
func program(n int) string {
	var b strings.Builder
	b.WriteString(`graph(%x : Float(N, 8, 16), %w : Float(16, 16), %v : Float(16)):
  %none : NoneType = prim::Constant()
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %4 : int = prim::Constant[value=4]()
  %8 : int = prim::Constant[value=8]()
  %16 : int = prim::Constant[value=16]()
  %half : float = prim::Constant[value=0.5]()
  %cut : int = prim::Constant[value=9223372036854775807]()
`)
	const each = 20
	cur := "x"
	for i := range max(n/each, 1) {
		p := func(format string, args ...any) {
			fmt.Fprintf(&b, "  "+strings.ReplaceAll(format, "@", strconv.Itoa(i)+"_")+"\n", args...)
		}
		p("%%a@ : Tensor = aten::matmul(%%%s, %%w)", cur)
		p("%%b@ : Tensor = aten::add(%%a@, %%v, %%1)")
		p("%%c@ : Tensor = aten::relu(%%b@)")
		p("%%n@ : int = aten::size(%%c@, %%0)")
		p("%%s@ : int[] = prim::ListConstruct(%%n@, %%8, %%4, %%4)")
		p("%%d@ : Tensor = aten::view(%%c@, %%s@)")
		p("%%e@ : Tensor = aten::transpose(%%d@, %%2, %%1)")
		p("%%f@ : Tensor = aten::mul(%%e@, %%half)")
		p("%%g@ : Tensor = aten::transpose(%%f@, %%1, %%2)")
		p("%%m@ : int = aten::size(%%g@, %%0)")
		p("%%t@ : int[] = prim::ListConstruct(%%m@, %%8, %%16)")
		p("%%h@ : Tensor = aten::reshape(%%g@, %%t@)")
		p("%%i@ : Tensor = aten::slice(%%h@, %%1, %%0, %%4, %%1)")
		p("%%j@ : Tensor = aten::slice(%%h@, %%1, %%4, %%cut, %%1)")
		p("%%l@ : Tensor[] = prim::ListConstruct(%%j@, %%i@)")
		p("%%k@ : Tensor = aten::cat(%%l@, %%1)")
		p("%%o@ : Tensor = aten::sigmoid(%%k@)")
		p("%%q@ : Tensor = aten::mul(%%o@, %%h@)")
		p("%%r@ : Tensor = aten::tanh(%%q@)")
		p("%%y@ : Tensor = aten::add(%%r@, %%%s, %%1)", cur)
		cur = fmt.Sprintf("y%d_", i)
	}
	fmt.Fprintf(&b, "  return (%%%s)\n", cur)
	return b.String()
}

func load(tb testing.TB, text string) *ssa.Module {
	tb.Helper()
	m, err := ssa.Parse(text, "bench", Dialects()...)
	if err != nil {
		tb.Fatal(err)
	}
	aten.BindSchemas(m)
	return m
}

// BenchmarkExport runs the default pipeline on graphs of 1,000 to 100,000 operators: ns/op-in-graph must not grow.
func BenchmarkExport(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			text := program(n)
			p, err := Set.Parse("export")
			if err != nil {
				b.Fatal(err)
			}
			for range b.N {
				b.StopTimer()
				m := load(b, text)
				b.StartTimer()
				if _, err := p.Run(m, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
		})
	}
}

// cpu is the processor time of this process: other programs on the machine do not count.
func cpu() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// TestLinear demands that a graph of ten times the size takes at most twenty times as long. With ATON_LINEAR=1 it goes
// up to a million operators and prints the time of each pass.
func TestLinear(t *testing.T) {
	sizes := []int{2_000, 20_000}
	if os.Getenv("ATON_LINEAR") != "" {
		sizes = []int{1_000, 10_000, 100_000, 1_000_000}
	}
	p, err := Set.Parse("export")
	if err != nil {
		t.Fatal(err)
	}
	var took []time.Duration
	for _, n := range sizes {
		m := load(t, program(n))
		runtime.GC()
		timing := &passes.Timing{}
		began := cpu()
		if _, err := p.Run(m, &passes.Runner{Observers: []passes.Observer{timing.Observer()}}); err != nil {
			t.Fatal(err)
		}
		took = append(took, cpu()-began)
		if os.Getenv("ATON_LINEAR") != "" {
			var b strings.Builder
			timing.Report(&b)
			t.Logf("%d operators: %v\n%s", n, took[len(took)-1].Round(time.Millisecond), b.String())
		}
	}
	for i := 1; i < len(took); i++ {
		// small runs are mostly noise
		if took[i] > 20*max(took[i-1], 20*time.Millisecond) {
			t.Errorf("%d operators take %v, %d take %v", sizes[i-1], took[i-1], sizes[i], took[i])
		}
	}
}
