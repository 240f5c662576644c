package main

import (
	"fmt"
	"math"
	"slices"
)

// The evaluator of random programs: PyTorch's tensors as strided views of storages, with the operators that the generator
// uses. It shares nothing with aton, which has no memory at all in what it makes. Numbers are such that no operator rounds, so
// that results are equal whatever the order of additions. What PyTorch would refuse, and what it leaves open (writes to elements
// that overlap, strides that depend on the kernel), is invalid and panics; the generator takes another statement then.

// invalid is a statement that has no meaning, or none that can be relied on.
type invalid string

func reject(format string, args ...any) { panic(invalid(fmt.Sprintf(format, args...))) }

// dtype is an element type.
type dtype byte

// The element types: float32, int64, bool.
const (
	f32 dtype = 'f'
	i64 dtype = 'l'
	bol dtype = 'b'
)

// array is a tensor.
type array struct {
	data           *[]float64
	kind           dtype
	shape, strides []int
	offset         int
	loose          bool // the strides are those that a kernel chose
}

// Limits of what a program computes: sizes for speed, numbers so that nothing rounds.
const (
	maxElements = 240
	maxRank     = 5
	maxNumber   = 4096
	fraction    = 64 // numbers are multiples of 1/64
)

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// rowMajor are the strides of a new tensor.
func rowMajor(shape []int) []int {
	s, n := make([]int, len(shape)), 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= max(shape[i], 1)
	}
	return s
}

// fresh makes a tensor with a storage of its own.
func fresh(kind dtype, shape []int, data []float64, from ...*array) *array {
	if len(shape) > maxRank || len(data) > maxElements {
		reject("too large")
	}
	if len(data) != product(shape) {
		panic(fmt.Sprintf("%d elements for %v", len(data), shape))
	}
	for i, v := range data {
		if kind == bol {
			if v != 0 {
				data[i] = 1
			}
			continue
		}
		if math.IsNaN(v) || math.Abs(v) > maxNumber || v*fraction != math.Trunc(v*fraction) || kind == i64 && v != math.Trunc(v) {
			reject("%g is no number of the program", v)
		}
		data[i] = v + 0 // no sign of zero
	}
	a := &array{data: &data, kind: kind, shape: slices.Clone(shape), strides: rowMajor(shape)}
	a.loose = slices.ContainsFunc(from, func(b *array) bool { return !b.contiguous() || b.loose })
	return a
}

func number(kind dtype, v float64) *array { return fresh(kind, nil, []float64{v}) }

func (a *array) rank() int { return len(a.shape) }

// contiguous reports that the elements lie in order.
func (a *array) contiguous() bool {
	if product(a.shape) == 0 {
		return true
	}
	n := 1
	for i := len(a.shape) - 1; i >= 0; i-- {
		if a.shape[i] != 1 && a.strides[i] != n {
			return false
		}
		n *= a.shape[i]
	}
	return true
}

// places are those of the elements in the storage, in order.
func (a *array) places() []int {
	out := make([]int, 0, product(a.shape))
	var walk func(axis, at int)
	walk = func(axis, at int) {
		if axis == len(a.shape) {
			out = append(out, at)
			return
		}
		for i := range a.shape[axis] {
			walk(axis+1, at+i*a.strides[axis])
		}
	}
	walk(0, a.offset)
	return out
}

func (a *array) values() []float64 {
	p := a.places()
	out := make([]float64, len(p))
	for i, at := range p {
		out[i] = (*a.data)[at]
	}
	return out
}

// write stores elements; operands are those that the values were computed of.
func (a *array) write(v []float64, operands ...*array) {
	p := a.places()
	sorted := slices.Clone(p)
	slices.Sort(sorted)
	if len(slices.Compact(sorted)) != len(p) {
		reject("elements of the tensor overlap")
	}
	for _, b := range operands {
		if b.data != a.data {
			continue
		}
		q := b.places()
		if !slices.Equal(p, q) && slices.ContainsFunc(q, func(at int) bool { return slices.Contains(p, at) }) {
			reject("the operand overlaps what is written")
		}
	}
	checked := fresh(a.kind, a.shape, slices.Clone(v))
	for i, at := range p {
		(*a.data)[at] = (*checked.data)[i]
	}
}

func (a *array) axis(d int) int {
	n := max(a.rank(), 1)
	if d < -n || d >= n {
		reject("no axis %d", d)
	}
	return (d + n) % n
}

// sized is the axis of a tensor that has axes.
func (a *array) sized(d int) int {
	if a.rank() == 0 {
		reject("a number has no axes")
	}
	return a.axis(d)
}

// view is another view of the same storage.
func (a *array) view(shape, strides []int, offset int) *array {
	if len(shape) > maxRank || product(shape) > maxElements {
		reject("too large")
	}
	return &array{data: a.data, kind: a.kind, shape: shape, strides: strides, offset: offset, loose: a.loose}
}

func (a *array) pick(d, k int) *array {
	d = a.sized(d)
	if k < -a.shape[d] || k >= a.shape[d] {
		reject("no index %d", k)
	}
	k = (k + a.shape[d]) % a.shape[d]
	return a.view(slices.Delete(slices.Clone(a.shape), d, d+1), slices.Delete(slices.Clone(a.strides), d, d+1), a.offset+k*a.strides[d])
}

func (a *array) slice(d, from, to, step int) *array {
	d = a.sized(d)
	n := a.shape[d]
	bound := func(k int) int {
		if k < 0 {
			k += n
		}
		return min(max(k, 0), n)
	}
	from, to = bound(from), bound(to)
	to = max(from, to)
	shape, strides := slices.Clone(a.shape), slices.Clone(a.strides)
	shape[d] = (to - from + step - 1) / step
	strides[d] *= step
	return a.view(shape, strides, a.offset+from*a.strides[d])
}

func (a *array) permute(order []int) *array {
	shape, strides := make([]int, len(order)), make([]int, len(order))
	for i, k := range order {
		shape[i], strides[i] = a.shape[k], a.strides[k]
	}
	return a.view(shape, strides, a.offset)
}

func (a *array) transpose(d, e int) *array {
	if a.rank() == 0 {
		return a.view(nil, nil, a.offset)
	}
	d, e = a.axis(d), a.axis(e)
	order := count(a.rank())
	order[d], order[e] = e, d
	return a.permute(order)
}

func count(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func (a *array) unsqueeze(d int) *array {
	n := a.rank() + 1
	if d < -n || d >= n {
		reject("no axis %d", d)
	}
	d = (d + n) % n
	stride := 1
	if d < a.rank() {
		stride = a.shape[d] * a.strides[d]
	}
	return a.view(slices.Insert(slices.Clone(a.shape), d, 1), slices.Insert(slices.Clone(a.strides), d, stride), a.offset)
}

func (a *array) squeeze(axes []int) *array {
	var shape, strides []int
	for i := range a.shape {
		if a.shape[i] != 1 || !slices.Contains(axes, i) {
			shape, strides = append(shape, a.shape[i]), append(strides, a.strides[i])
		}
	}
	return a.view(shape, strides, a.offset)
}

// expand broadcasts to a shape; -1 keeps an axis.
func (a *array) expand(shape []int) *array {
	more := len(shape) - a.rank()
	if more < 0 {
		reject("fewer axes")
	}
	out, strides := slices.Clone(shape), make([]int, len(shape))
	for i := range shape {
		switch {
		case i < more && shape[i] < 0:
			reject("-1 for a new axis")
		case i < more:
		case shape[i] == -1 || shape[i] == a.shape[i-more]:
			out[i], strides[i] = a.shape[i-more], a.strides[i-more]
		case a.shape[i-more] != 1:
			reject("%v does not become %v", a.shape, shape)
		}
	}
	return a.view(out, strides, a.offset)
}

// reshape is a view of what lies in order.
func (a *array) reshape(shape []int) *array {
	if !a.contiguous() || a.loose {
		reject("whether this is a view depends on the strides")
	}
	shape = slices.Clone(shape)
	n, open := 1, -1
	for i, d := range shape {
		if d == -1 {
			if open >= 0 {
				reject("two sizes are open")
			}
			open = i
			continue
		}
		n *= d
	}
	if open >= 0 {
		if n == 0 || product(a.shape)%n != 0 {
			reject("%v does not become %v", a.shape, shape)
		}
		shape[open] = product(a.shape) / n
	}
	if product(shape) != product(a.shape) {
		reject("%v does not become %v", a.shape, shape)
	}
	return a.view(shape, rowMajor(shape), a.offset)
}

func (a *array) diagonal() *array {
	if a.rank() < 2 {
		reject("no diagonal")
	}
	n := a.rank()
	return a.view(append(slices.Clone(a.shape[2:]), min(a.shape[0], a.shape[1])), append(slices.Clone(a.strides[2:n:n]), a.strides[0]+a.strides[1]), a.offset)
}

// inOrder is contiguous().
func (a *array) inOrder() *array {
	if a.loose {
		reject("whether this is a copy depends on the strides")
	}
	if a.contiguous() {
		return a
	}
	return fresh(a.kind, a.shape, a.values())
}

func (a *array) to(kind dtype) *array {
	if kind == a.kind {
		return a
	}
	return fresh(kind, a.shape, as(kind, a.values()), a)
}

// as converts numbers to an element type.
func as(kind dtype, v []float64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		switch {
		case kind == i64:
			out[i] = math.Trunc(x)
		case kind == bol && x != 0:
			out[i] = 1
		case kind == f32:
			out[i] = x
		}
	}
	return out
}

func broadcast(shapes ...[]int) []int {
	n := 0
	for _, s := range shapes {
		n = max(n, len(s))
	}
	out := make([]int, n)
	for i := range out {
		out[i] = 1
		for _, s := range shapes {
			k := i - (n - len(s))
			if k < 0 || s[k] == 1 {
				continue
			}
			if out[i] != 1 && out[i] != s[k] {
				reject("%v do not broadcast", shapes)
			}
			out[i] = s[k]
		}
	}
	return out
}

func promote(a, b dtype) dtype {
	switch {
	case a == f32 || b == f32:
		return f32
	case a == i64 || b == i64:
		return i64
	}
	return bol
}

// binary applies a function to elements.
func binary(a, b *array, kind dtype, f func(x, y float64) float64) *array {
	shape := broadcast(a.shape, b.shape)
	x, y := a.expand(shape).values(), b.expand(shape).values()
	for i := range x {
		x[i] = f(x[i], y[i])
	}
	return fresh(kind, shape, x, a, b)
}

func unary(a *array, f func(float64) float64) *array {
	v := a.values()
	for i := range v {
		v[i] = f(v[i])
	}
	return fresh(a.kind, a.shape, v, a)
}

func choose(c, a, b *array) *array {
	shape := broadcast(c.shape, a.shape, b.shape)
	m, x, y := c.expand(shape).values(), a.expand(shape).values(), b.expand(shape).values()
	for i := range x {
		if m[i] == 0 {
			x[i] = y[i]
		}
	}
	return fresh(promote(a.kind, b.kind), shape, x, c, a, b)
}

// lanes gives the elements along an axis, for each of the others.
func (a *array) lanes(d int) (rest []int, lanes [][]float64) {
	if a.rank() == 0 {
		return nil, [][]float64{a.values()}
	}
	order := append(slices.Delete(count(a.rank()), d, d+1), d)
	p := a.permute(order)
	v, n := p.values(), a.shape[d]
	rest = p.shape[:len(p.shape)-1]
	for i := range product(rest) {
		lanes = append(lanes, v[i*n:(i+1)*n])
	}
	return rest, lanes
}

// reduce folds an axis.
func reduce(a *array, d int, keep bool, kind dtype, f func([]float64) float64) *array {
	d = a.axis(d)
	rest, lanes := a.lanes(d)
	out := make([]float64, len(lanes))
	for i, l := range lanes {
		out[i] = f(l)
	}
	r := fresh(kind, rest, out, a)
	if keep && a.rank() > 0 {
		r = r.unsqueeze(d)
	}
	return r
}

// scan replaces each lane of an axis by another one.
func scan(a *array, d int, kind dtype, f func([]float64) []float64) *array {
	d = a.axis(d)
	rest, lanes := a.lanes(d)
	var all []float64
	n := -1
	for _, l := range lanes {
		l = f(slices.Clone(l))
		n = len(l)
		all = append(all, l...)
	}
	if a.rank() == 0 {
		return fresh(kind, nil, all, a)
	}
	if n < 0 {
		reject("no lanes")
	}
	moved := fresh(kind, append(slices.Clone(rest), n), all)
	order := slices.Insert(count(a.rank()-1), d, a.rank()-1)
	p := moved.permute(order)
	return fresh(kind, p.shape, p.values(), a)
}

func sum(l []float64) float64 {
	t := 0.0
	for _, v := range l {
		t += v
	}
	return t
}

func extreme(f func(a, b float64) float64) func([]float64) float64 {
	return func(l []float64) float64 {
		if len(l) == 0 {
			reject("nothing has no greatest element")
		}
		t := l[0]
		for _, v := range l {
			t = f(t, v)
		}
		return t
	}
}

func cat(list []*array, d int) *array {
	if len(list) == 0 {
		reject("nothing to join")
	}
	first := list[0]
	d = first.sized(d)
	kind, n := first.kind, 0
	for _, a := range list {
		if a.rank() != first.rank() {
			reject("ranks differ")
		}
		for i := range a.shape {
			if i != d && a.shape[i] != first.shape[i] {
				reject("shapes differ")
			}
		}
		kind = promote(kind, a.kind)
		n += a.shape[d]
	}
	shape := slices.Clone(first.shape)
	shape[d] = n
	if product(shape) > maxElements {
		reject("too large")
	}
	out := fresh(kind, shape, make([]float64, product(shape)), list...)
	at := 0
	for _, a := range list {
		part := out.slice(d, at, at+a.shape[d], 1)
		v := a.values()
		for i, p := range part.places() {
			(*out.data)[p] = v[i]
		}
		at += a.shape[d]
	}
	return out
}

func stack(list []*array, d int) *array {
	if len(list) == 0 {
		reject("nothing to join")
	}
	var parts []*array
	for _, a := range list {
		if !slices.Equal(a.shape, list[0].shape) {
			reject("shapes differ")
		}
		p := a.unsqueeze(d)
		p.loose = a.loose || !a.contiguous()
		parts = append(parts, p)
	}
	if d < 0 {
		d += list[0].rank() + 1
	}
	return cat(parts, d)
}

// indices are the elements of an index tensor, which lie in an axis of n.
func indices(idx *array, n int) []int {
	if idx.kind != i64 || idx.rank() != 1 {
		reject("no indices")
	}
	var out []int
	for _, v := range idx.values() {
		k := int(v)
		if k < 0 || k >= n { // negative ones are not for all operators
			reject("no index %d", k)
		}
		out = append(out, k)
	}
	return out
}

func indexSelect(a *array, d int, idx *array) *array {
	d = a.sized(d)
	at := indices(idx, a.shape[d])
	return scan(a, d, a.kind, func(l []float64) []float64 {
		out := make([]float64, len(at))
		for i, k := range at {
			out[i] = l[k]
		}
		return out
	})
}

func matmul(a, b *array) *array {
	if a.rank() != 2 || b.rank() != 2 || a.kind != b.kind || a.kind == bol || a.shape[1] != b.shape[0] {
		reject("no matrices that fit")
	}
	n, k, m := a.shape[0], a.shape[1], b.shape[1]
	x, y := a.values(), b.values()
	out := make([]float64, n*m)
	for i := range n {
		for j := range m {
			for l := range k {
				out[i*m+j] += x[i*k+l] * y[l*m+j]
			}
		}
	}
	return fresh(a.kind, []int{n, m}, out, a, b)
}

// triangle keeps the elements on one side of the diagonal.
func triangle(a *array, lower bool) *array {
	if a.rank() < 2 {
		reject("no matrix")
	}
	n, m := a.shape[a.rank()-2], a.shape[a.rank()-1]
	v := a.values()
	for i := range v {
		r, c := i/m%n, i%m
		if lower && c > r || !lower && c < r {
			v[i] = 0
		}
	}
	return fresh(a.kind, a.shape, v, a)
}
