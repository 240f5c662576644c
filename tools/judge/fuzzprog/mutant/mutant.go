// Package mutant changes programs in small ways, without knowing what they mean: the text of code and graphs, the operations
// of pickles, the JSON of exported programs, the fields of ONNX models, and what is stated of inputs. The same generator of
// random numbers gives the same mutant.
package mutant

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
)

// Values that are at an edge somewhere.
var (
	hostileInts   = []int64{0, 1, -1, 2, 3, 7, 16, -2, 100, -100, 1 << 31, 1 << 40, 1 << 62, math.MaxInt64, math.MinInt64}
	hostileFloats = []float64{0, -1, 0.5, 1e30, math.NaN(), math.Inf(1), math.Inf(-1)}
	hostileNames  = []string{"", "x", "y", "a", "Relu", "If", "Loop", "Reshape", "Slice", "Constant", "linear", "nonexistent", "\x00", "::"}
)

// few is how many changes a mutant has: mostly one, so that most of them get far.
func few(rng *rand.Rand) int { return 1 + rng.IntN(2)*rng.IntN(3) }

// token is a word, a number, a string, a run of spaces, or any other sign of code or of graph text.
var token = regexp.MustCompile(`[A-Za-z_%][A-Za-z0-9_.:]*|-?[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?|"[^"\n]*"|[ \t]+|.|\n`)

// Text changes code or graph text. Words are other words of the program or of the list.
func Text(text string, words []string, rng *rand.Rand) string {
	for range few(rng) {
		if rng.IntN(3) == 0 {
			text = lines(text, rng)
		} else {
			text = tokens(text, words, rng)
		}
	}
	return text
}

// lines drops, repeats, swaps or moves lines.
func lines(text string, rng *rand.Rand) string {
	l := strings.SplitAfter(text, "\n")
	i, j := rng.IntN(len(l)), rng.IntN(len(l))
	switch rng.IntN(4) {
	case 0:
		l = slices.Delete(l, i, i+1)
	case 1:
		l = slices.Insert(l, i, l[j])
	case 2:
		l[i], l[j] = l[j], l[i]
	default: // the result of exchanging neighbours is valid more often
		if i > 0 {
			l[i], l[i-1] = l[i-1], l[i]
		}
	}
	return strings.Join(l, "")
}

// tokens changes one token.
func tokens(text string, words []string, rng *rand.Rand) string {
	t := token.FindAllString(text, -1)
	if len(t) == 0 {
		return text
	}
	i := rng.IntN(len(t))
	for range 8 { // spaces and brackets say little
		if c := t[i][0]; c == '_' || c == '%' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			break
		}
		i = rng.IntN(len(t))
	}
	other := t[rng.IntN(len(t))]
	switch c := t[i][0]; {
	case rng.IntN(12) == 0:
		t[i] = ""
	case rng.IntN(12) == 0:
		t[i] += " " + other
	case c >= '0' && c <= '9' || c == '-' && len(t[i]) > 1:
		t[i] = number(rng)
	case c == '"':
		t[i] = fmt.Sprintf("%q", hostileNames[rng.IntN(len(hostileNames))])
	case strings.ContainsAny(t[i], ".:") && len(words) > 0 && rng.IntN(2) == 0:
		t[i] = words[rng.IntN(len(words))]
	default: // a word for a word, a sign for a sign
		for range 20 {
			if word(t[i]) == word(other) {
				break
			}
			other = t[rng.IntN(len(t))]
		}
		t[i] = other
	}
	return strings.Join(t, "")
}

func word(s string) bool {
	return s != "" && (s[0] == '_' || s[0] == '%' || s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z')
}

func number(rng *rand.Rand) string {
	if rng.IntN(6) == 0 {
		return fmt.Sprintf("%g", []float64{0, -1, 0.5, 1e30, 1e-30}[rng.IntN(5)])
	}
	return fmt.Sprint(hostileInts[rng.IntN(len(hostileInts))])
}

// Number changes one number of code or graph text. Text without numbers is as it was.
func Number(text string, rng *rand.Rand) string {
	t := token.FindAllString(text, -1)
	var at []int
	for i, w := range t {
		if c := w[len(w)-1]; c >= '0' && c <= '9' && !word(w) {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return text
	}
	t[at[rng.IntN(len(at))]] = number(rng)
	return strings.Join(t, "")
}

// Words lists the names of operators in code or graph text.
func Words(text string) []string {
	var out []string
	for _, t := range token.FindAllString(text, -1) {
		if word(t) && (strings.HasPrefix(t, "torch.") || strings.HasPrefix(t, "ops.") || strings.Contains(t, "::")) {
			out = append(out, t)
		}
	}
	return out
}

// JSON changes nodes of a JSON text. Text that is none is as it was.
func JSON(text []byte, rng *rand.Rand) []byte {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // sizes are beyond what floats hold
	var root any
	if d.Decode(&root) != nil {
		return text
	}
	for range few(rng) {
		var all []place
		places(root, func(v any) { root = v }, func() {}, &all)
		p, other := all[rng.IntN(len(all))], all[rng.IntN(len(all))]
		switch rng.IntN(5) {
		case 0:
			p.drop()
		case 1: // anything in its place
			p.set(clone(other.value))
		case 2: // the same kind in its place
			for range 30 {
				if fmt.Sprintf("%T", p.value) == fmt.Sprintf("%T", other.value) {
					break
				}
				other = all[rng.IntN(len(all))]
			}
			p.set(clone(other.value))
		default:
			p.set(scalar(p.value, rng))
		}
	}
	out, err := json.Marshal(root)
	if err != nil {
		return text
	}
	return out
}

// place is a node of JSON, and how it is replaced and dropped.
type place struct {
	value any
	set   func(any)
	drop  func()
}

func places(v any, set func(any), drop func(), to *[]place) {
	*to = append(*to, place{v, set, drop})
	switch v := v.(type) {
	case []any:
		for i := range v {
			places(v[i], func(x any) { v[i] = x }, func() { set(slices.Delete(slices.Clone(v), i, i+1)) }, to)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			places(v[k], func(x any) { v[k] = x }, func() { delete(v, k) }, to)
		}
	}
}

func clone(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = clone(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = clone(x)
		}
		return out
	}
	return v
}

// scalar is a value of the kind of the old one mostly.
func scalar(was any, rng *rand.Rand) any {
	switch was := was.(type) {
	case json.Number:
		return json.Number(fmt.Sprint(hostileInts[rng.IntN(len(hostileInts))]))
	case string:
		return hostileNames[rng.IntN(len(hostileNames))]
	case bool:
		return !was
	}
	return []any{nil, true, "", json.Number("-1"), []any{}, map[string]any{}}[rng.IntN(6)]
}

// types are those of a statement of an input.
var types = []string{"f32", "i64", "i32", "bool", "f64", "f16", "bf16", "u8", "c64", "str", "int", "float", "i8"}

// Spec changes the statement of an input, such as x:f32[N,3].
func Spec(s string, rng *rand.Rand) string {
	name, rest, ok := strings.Cut(s, ":")
	kind, shape, sized := strings.Cut(strings.TrimSuffix(rest, "]"), "[")
	if !ok || !sized || strings.ContainsAny(shape, "([") {
		return tokens(s, types, rng)
	}
	dims := strings.FieldsFunc(shape, func(r rune) bool { return r == ',' })
	size := []string{"0", "1", "2", "5", "N", "M", "N", "4611686018427387904", "100", "-1"}[rng.IntN(10)]
	switch k := rng.IntN(5); {
	case k == 0:
		kind = types[rng.IntN(len(types))]
	case k == 1 && len(dims) > 0:
		dims = dims[1:]
	case k == 2 || len(dims) == 0:
		dims = slices.Insert(dims, rng.IntN(len(dims)+1), size)
	default:
		dims[rng.IntN(len(dims))] = size
	}
	return name + ":" + kind + "[" + strings.Join(dims, ",") + "]"
}
