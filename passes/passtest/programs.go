package passtest

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

const constants = `  %none : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=1]()
  %false : bool = prim::Constant[value=0]()
  %m1 : int = prim::Constant[value=-1]()
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %3 : int = prim::Constant[value=3]()
  %4 : int = prim::Constant[value=4]()
  %8 : int = prim::Constant[value=8]()
  %16 : int = prim::Constant[value=16]()
  %half : float = prim::Constant[value=0.5]()
  %cut : int = prim::Constant[value=9223372036854775807]()
`

// kinds of programs: the operators of one unit, where @ is the number of the unit and < the result of the unit before. A
// unit may name what its head defines.
var kinds = map[string]struct {
	params string
	ops    int
	unit   string
}{
	// operators one behind the other
	"chain": {"%x : Float(N, 8, 16)", 4, `
  %a@ : Tensor = aten::relu(<)
  %b@ : Tensor = aten::mul(%a@, %half)
  %c@ : Tensor = aten::sigmoid(%b@)
  %y@ : Tensor = aten::tanh(%c@)`},
	// layers of a residual network of matrix products, views with sizes that are computed, slices and joins
	"layers": {"%x : Float(N, 8, 16), %w : Float(16, 16), %v : Float(16)", 20, `
  %a@ : Tensor = aten::matmul(<, %w)
  %b@ : Tensor = aten::add(%a@, %v, %1)
  %c@ : Tensor = aten::relu(%b@)
  %n@ : int = aten::size(%c@, %0)
  %s@ : int[] = prim::ListConstruct(%n@, %8, %4, %4)
  %d@ : Tensor = aten::view(%c@, %s@)
  %e@ : Tensor = aten::transpose(%d@, %2, %1)
  %f@ : Tensor = aten::mul(%e@, %half)
  %g@ : Tensor = aten::transpose(%f@, %1, %2)
  %m@ : int = aten::size(%g@, %0)
  %t@ : int[] = prim::ListConstruct(%m@, %8, %16)
  %h@ : Tensor = aten::reshape(%g@, %t@)
  %i@ : Tensor = aten::slice(%h@, %1, %0, %4, %1)
  %j@ : Tensor = aten::slice(%h@, %1, %4, %cut, %1)
  %l@ : Tensor[] = prim::ListConstruct(%j@, %i@)
  %k@ : Tensor = aten::cat(%l@, %1)
  %o@ : Tensor = aten::sigmoid(%k@)
  %q@ : Tensor = aten::mul(%o@, %h@)
  %r@ : Tensor = aten::tanh(%q@)
  %y@ : Tensor = aten::add(%r@, <, %1)`},
	// branches on data, with writes in one of them, and small loops
	"branches": {"%x : Float(N, 8, 16)", 14, `
  %s@ : Tensor = aten::sum(<, %none)
  %g@ : Tensor = aten::gt(%s@, %0)
  %p@ : bool = aten::Bool(%g@)
  %a@ : Tensor = prim::If(%p@)
    block0():
      %b@ : Tensor = aten::relu(<)
      %c@ : Tensor = aten::add(%b@, <, %1)
      -> (%c@)
    block1():
      %d@ : Tensor = aten::neg(<)
      -> (%d@)
  %n@ : int = aten::size(%a@, %0)
  %y@ : Tensor = prim::Loop(%n@, %true, %a@)
    block0(%i@ : int, %e@ : Tensor):
      %f@ : Tensor = aten::tanh(%e@)
      %h@ : Tensor = aten::mul(%f@, %half)
      %k@ : Tensor = aten::add(%h@, %x, %1)
      -> (%true, %k@)`},
	// views, views of views, and writes through them
	"writes": {"%x : Float(N, 8, 16)", 14, `
  %z@ : Tensor = aten::clone(<, %none)
  %a@ : Tensor = aten::select(%z@, %1, %3)
  %b@ : Tensor = aten::add_(%a@, %1, %1)
  %c@ : Tensor = aten::slice(%z@, %2, %1, %cut, %2)
  %d@ : Tensor = aten::transpose(%c@, %1, %2)
  %e@ : Tensor = aten::select(%d@, %1, %m1)
  %f@ : Tensor = aten::mul_(%e@, %half)
  %g@ : Tensor = aten::relu_(%z@)
  %h@ : Tensor = aten::narrow(%z@, %1, %0, %4)
  %i@ : Tensor = aten::copy_(%h@, %h@, %false)
  %j@ : Tensor = aten::add(%a@, %a@, %1)
  %k@ : Tensor = aten::unsqueeze(%j@, %1)
  %l@ : Tensor = aten::sub_(%z@, %k@, %1)
  %y@ : Tensor = aten::mul(%z@, %half)`},
	// writes to one tensor all along, which has views from before
	"aliases": {"%x : Float(N, 8, 16)", 6, `
  %a@ : Tensor = aten::select(%x, %1, %3)
  %b@ : Tensor = aten::add_(%a@, %1, %1)
  %c@ : Tensor = aten::slice(%x, %2, %1, %4, %1)
  %d@ : Tensor = aten::mul_(%c@, %half)
  %e@ : Tensor = aten::relu(%a@)
  %y@ : Tensor = aten::add_(%x, %half, %1)`},
	// reads and writes by index, mask and slice
	"indexing": {"%x : Float(N, 8, 16), %i : Long(5)", 16, `
  %a@ : Tensor?[] = prim::ListConstruct(%none, %i)
  %b@ : Tensor = aten::index(<, %a@)
  %c@ : Tensor = aten::gt(<, %0)
  %d@ : Tensor?[] = prim::ListConstruct(%c@)
  %e@ : Tensor = aten::tensor(%half, %none, %none, %false)
  %f@ : Tensor = aten::index_put(<, %d@, %e@, %false)
  %g@ : Tensor?[] = prim::ListConstruct(%none, %none, %i)
  %h@ : Tensor = aten::index(%f@, %g@)
  %k@ : Tensor = aten::sum(%h@, %none)
  %l@ : Tensor = aten::masked_fill(%f@, %c@, %half)
  %m@ : Tensor = aten::index_select(%l@, %1, %i)
  %n@ : Tensor = aten::sum(%m@, %none)
  %o@ : Tensor = aten::index_put(%l@, %a@, %b@, %true)
  %p@ : Tensor = aten::add(%k@, %n@, %1)
  %q@ : Tensor = aten::mul(%o@, %p@)
  %y@ : Tensor = aten::tanh(%q@)`},
	// a dict that grows
	"dicts": {"%x : Float(N, 8, 16)", 4, `
  %k@ : str = prim::Constant[value="k@"]()
   = aten::_set_item(%d, %k@, <)
  %a@ : Tensor = aten::__getitem__(%d, %k@)
  %y@ : Tensor = aten::relu(%a@)`},
	// a list that grows
	"lists": {"%x : Float(N, 8, 16)", 3, `
  %l@ : Tensor[] = aten::append(%l, <)
  %a@ : Tensor = aten::__getitem__(%l, %m1)
  %y@ : Tensor = aten::relu(%a@)`},
	// a tensor that grows
	"joins": {"%x : Float(N, 8, 16)", 2, `
  %l@ : Tensor[] = prim::ListConstruct(<, %x)
  %y@ : Tensor = aten::cat(%l@, %1)`},
	// a view of a view of a view
	"views": {"%x : Float(N, 8, 16)", 1, `
  %y@ : Tensor = aten::transpose(<, %1, %2)`},
}

// Kinds are the kinds of programs that Program writes.
func Kinds() []string {
	var out []string
	for k := range kinds {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// heads are the operators in front of the units, for the kinds that have some.
var heads = map[string]string{
	"dicts": `
  %d : Dict(str, Tensor) = prim::DictConstruct()`,
	"lists": `
  %l : Tensor[] = prim::ListConstruct()`,
}

// Program writes a program of a kind of about n operators, as graph text, for
// tests and benchmarks of what passes cost.
func Program(kind string, n int) (string, error) {
	k, ok := kinds[kind]
	if !ok {
		return "", fmt.Errorf("no kind %q of programs (there are: %s)", kind, strings.Join(Kinds(), ", "))
	}
	var b strings.Builder
	b.WriteString("graph(" + k.params + "):\n" + constants)
	if head := heads[kind]; head != "" {
		b.WriteString(strings.TrimPrefix(head, "\n") + "\n")
	}
	cur := "%x"
	for i := range max(n/k.ops, 1) {
		id := strconv.Itoa(i) + "_"
		b.WriteString(strings.TrimPrefix(strings.NewReplacer("@", id, "<", cur).Replace(k.unit), "\n"))
		b.WriteByte('\n')
		cur = "%y" + id
	}
	fmt.Fprintf(&b, "  return (%s)\n", cur)
	return b.String(), nil
}
