package eager

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa"
)

// textCall is a call of an operator whose first argument is a string, x.
type textCall struct {
	k    *machine
	name string
	x    string
	args []Value
}

// textOp computes an operator on strings; the result notHere says that it is not for these arguments.
type textOp func(c *textCall) (Value, error)

// notHere is what a textOp gives for arguments that are another operator's.
type notHere struct{}

// text computes an operator whose first argument is a string. TorchScript counts bytes, not characters.
func (k *machine) text(name string, args []Value) (v Value, done bool, err error) {
	op := textOps[name]
	if op == nil {
		return nil, false, nil
	}
	v, err = op(&textCall{k, name, args[0].(string), args})
	if _, other := v.(notHere); other {
		return nil, false, nil
	}
	return v, true, err
}

// str is argument i, none if it is not given.
func (c *textCall) str(i int, none string) string {
	if i < len(c.args) {
		if s, ok := c.args[i].(string); ok {
			return s
		}
	}
	return none
}

// num is str for ints.
func (c *textCall) num(i int, none int64) int64 {
	if i < len(c.args) {
		if n, ok := c.args[i].(int64); ok {
			return n
		}
	}
	return none
}

func (c *textCall) len() int64 { return int64(len(c.x)) }

// part is x between the arguments i and i+1, start and end, and where it begins; none where these are in the wrong order.
func (c *textCall) part(i int) (s string, at int64, ok bool) {
	n, start, end := c.len(), c.num(i, 0), c.num(i+1, -1)
	if start < 0 {
		start = max(0, n+start)
	}
	if end < 0 {
		end = max(0, n+end+1)
	}
	if end = min(end, n); start >= end {
		return "", 0, false
	}
	return c.x[start:end], start, true
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isUpper(c byte) bool  { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool  { return 'a' <= c && c <= 'z' }
func isLetter(c byte) bool { return isUpper(c) || isLower(c) }

// allOf says whether x has bytes, all of a kind.
func allOf(is func(c byte) bool) textOp {
	return func(c *textCall) (Value, error) {
		for i := range len(c.x) {
			if !is(c.x[i]) {
				return false, nil
			}
		}
		return c.x != "", nil
	}
}

// cased says whether x has bytes of a kind, and none of another.
func cased(is, not func(c byte) bool) textOp {
	return func(c *textCall) (Value, error) {
		found := false
		for i := range len(c.x) {
			if not(c.x[i]) {
				return false, nil
			}
			found = found || is(c.x[i])
		}
		return found, nil
	}
}

// equalText says whether two strings are equal, or different.
func equalText(want bool) textOp {
	return func(c *textCall) (Value, error) {
		if y, ok := c.args[1].(string); ok {
			return (c.x == y) == want, nil
		}
		return notHere{}, nil
	}
}

// ordered compares two strings.
func ordered(name string) textOp {
	return func(c *textCall) (Value, error) {
		if y, ok := c.args[1].(string); ok {
			return orders[name](compare(c.x, y)), nil
		}
		return notHere{}, nil
	}
}

// trimmed takes bytes away at the ends, white space unless others are given.
func trimmed(trim func(s, cut string) string) textOp {
	return func(c *textCall) (Value, error) { return trim(c.x, c.str(1, " \n\t\f\v")), nil }
}

func mapped(f func(s string) string) textOp {
	return func(c *textCall) (Value, error) { return f(c.x), nil }
}

func constantly(v Value) textOp { return func(*textCall) (Value, error) { return v, nil } }

// textOps are the operators on strings. An initializer would refer to itself.
var textOps map[string]textOp

func init() {
	textOps = map[string]textOp{
		"add":                 textAdd,
		"mul":                 textMul,
		"len":                 func(c *textCall) (Value, error) { return c.len(), nil },
		"Int":                 textInt,
		"Float":               textFloat,
		"str":                 mapped(func(s string) string { return s }),
		"ord":                 textOrd,
		"eq":                  equalText(true),
		"ne":                  equalText(false),
		"lt":                  ordered("lt"),
		"le":                  ordered("le"),
		"gt":                  ordered("gt"),
		"ge":                  ordered("ge"),
		"lower":               mapped(strings.ToLower),
		"upper":               mapped(strings.ToUpper),
		"swapcase":            mapped(swapCase),
		"capitalize":          mapped(capitalize),
		"startswith":          textAffix(strings.HasPrefix),
		"endswith":            textAffix(strings.HasSuffix),
		"__contains__":        func(c *textCall) (Value, error) { return strings.Contains(c.x, c.str(1, "")), nil },
		"find":                textFind(strings.Index, false),
		"rfind":               textFind(strings.LastIndex, false),
		"index":               textFind(strings.Index, true),
		"rindex":              textFind(strings.LastIndex, true),
		"count":               textCount,
		"replace":             textReplace,
		"strip":               trimmed(strings.Trim),
		"lstrip":              trimmed(strings.TrimLeft),
		"rstrip":              trimmed(strings.TrimRight),
		"split":               textSplit,
		"splitlines":          textSplitLines,
		"join":                textJoin,
		"zfill":               textZeros,
		"ljust":               textJust,
		"rjust":               textJust,
		"isdigit":             allOf(isDigit),
		"isdecimal":           allOf(isDigit),
		"isnumeric":           allOf(isDigit),
		"isalpha":             allOf(isLetter),
		"isalnum":             allOf(func(c byte) bool { return isLetter(c) || isDigit(c) }),
		"isspace":             allOf(func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }),
		"isupper":             cased(isUpper, isLower),
		"islower":             cased(isLower, isUpper),
		"__getitem__":         textAt,
		"StringIndex":         textAt,
		"slice":               textSlice,
		"list":                func(c *textCall) (Value, error) { return strs(strings.Split(c.x, "")), nil },
		"format":              textFormat,
		"percentFormat":       textFormat,
		"device":              textDevice,
		"_get_autocast_dtype": constantly(int64(15)),
		"get_autocast_dtype":  constantly(int64(15)),
		"is_autocast_enabled": constantly(false),
	}
}

func textAdd(c *textCall) (Value, error) {
	if y, ok := c.args[1].(string); ok {
		return c.k.sized(c.x + y)
	}
	return notHere{}, nil
}

func textMul(c *textCall) (Value, error) {
	times := max(c.num(1, 0), 0)
	if n := c.len(); n > 0 && times > maxElements/n {
		return nil, refuse("budget", "makes a string of %d times %d bytes", times, n)
	}
	return strings.Repeat(c.x, int(times)), nil
}

func textInt(c *textCall) (Value, error) {
	i, err := strconv.ParseInt(strings.TrimSpace(c.x), 10, 64)
	if err != nil {
		return nil, raise("invalid literal for int() with base 10: '%s'", c.x)
	}
	return i, nil
}

func textFloat(c *textCall) (Value, error) {
	f, err := strconv.ParseFloat(strings.TrimSpace(c.x), 64)
	if err != nil {
		return nil, raise("could not convert string to float: '%s'", c.x)
	}
	return f, nil
}

func textOrd(c *textCall) (Value, error) {
	if c.len() != 1 {
		return nil, raise("String for ord() must be 1 character, found %d", c.len())
	}
	return int64(c.x[0]), nil
}

func swapCase(s string) string {
	b := []byte(s)
	for i, c := range b {
		if isLetter(c) {
			b[i] = c ^ 0x20
		}
	}
	return string(b)
}

func capitalize(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + strings.ToLower(s[1:])
}

// textAffix says whether a part of x begins or ends with a string.
func textAffix(has func(s, affix string) bool) textOp {
	return func(c *textCall) (Value, error) {
		p, _, ok := c.part(2)
		if sub := c.str(1, ""); ok {
			return has(p, sub), nil
		} else {
			return sub == "" && c.num(2, 0) <= c.len(), nil
		}
	}
}

// textFind is where a string stands in a part of x: -1, or an exception, if it does not.
func textFind(index func(s, sub string) int, raises bool) textOp {
	return func(c *textCall) (Value, error) {
		if p, at, ok := c.part(2); ok {
			if i := index(p, c.str(1, "")); i >= 0 {
				return at + int64(i), nil
			}
		}
		if raises {
			return nil, raise("ValueError: substring not found")
		}
		return int64(-1), nil
	}
}

func textCount(c *textCall) (Value, error) {
	p, _, ok := c.part(2)
	switch sub := c.str(1, ""); {
	case !ok:
		return int64(0), nil
	case sub == "":
		return int64(len(p)) + 1, nil
	default:
		return int64(strings.Count(p, sub)), nil
	}
}

func textReplace(c *textCall) (Value, error) {
	old, by := c.str(1, ""), c.str(2, "")
	if n := int64(strings.Count(c.x, old)); n > 0 && int64(len(by)) > maxElements/n {
		return nil, refuse("budget", "makes a string of too many bytes")
	}
	return strings.Replace(c.x, old, by, int(max(min(c.num(3, -1), math.MaxInt32), -1))), nil
}

func textSplit(c *textCall) (Value, error) {
	most := int(max(min(c.num(2, -1), math.MaxInt32-1), -1))
	sep, ok := c.args[1].(string)
	switch {
	case ok && sep == "":
		return nil, raise("empty separator")
	case ok && most >= 0:
		return strs(strings.SplitN(c.x, sep, most+1)), nil
	case ok:
		return strs(strings.Split(c.x, sep)), nil
	case most < 0:
		return strs(strings.Fields(c.x)), nil
	}
	return notHere{}, nil
}

func textSplitLines(c *textCall) (Value, error) {
	if keep, _ := c.args[len(c.args)-1].(bool); keep {
		return notHere{}, nil
	}
	parts := strings.Split(strings.ReplaceAll(c.x, "\r\n", "\n"), "\n")
	if parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return strs(parts), nil
}

func textJoin(c *textCall) (Value, error) {
	l, ok := c.args[1].(*List)
	if !ok {
		return notHere{}, nil
	}
	parts := make([]string, len(l.Elems))
	total := int64(0)
	for i, e := range l.Elems {
		parts[i], _ = e.(string)
		total += int64(len(parts[i])) + c.len()
	}
	if total > maxElements {
		return nil, refuse("budget", "makes a string of %d bytes", total)
	}
	return strings.Join(parts, c.x), nil
}

func textZeros(c *textCall) (Value, error) {
	w, x, sign := c.num(1, 0), c.x, ""
	switch {
	case w <= c.len():
		return x, nil
	case w >= 1<<16:
		return notHere{}, nil
	case x != "" && (x[0] == '-' || x[0] == '+'):
		sign, x = x[:1], x[1:]
	}
	return sign + strings.Repeat("0", int(w)-len(sign)-len(x)) + x, nil
}

func textJust(c *textCall) (Value, error) {
	w := c.num(1, 0)
	if w > 1<<16 {
		return nil, refuse("budget", "makes a string of %d bytes", w)
	}
	pad := strings.Repeat(c.str(2, " "), int(max(w-c.len(), 0)))
	if c.name == "ljust" {
		return c.x + pad, nil
	}
	return pad + c.x, nil
}

func textAt(c *textCall) (Value, error) {
	i := c.num(1, 0)
	if i < 0 {
		i += c.len()
	}
	if i < 0 || i >= c.len() {
		return nil, raise("string index out of range")
	}
	return c.x[i : i+1], nil
}

func textSlice(c *textCall) (Value, error) {
	step := c.num(3, 1)
	if step < 1 {
		return nil, refuse("unsupported-args", "a slice of a string with step %d", step)
	}
	lo, hi := bounds(c.len(), c.num(1, 0), c.num(2, math.MaxInt64))
	if step == 1 {
		return c.x[lo:hi], nil
	}
	var b []byte
	for i := lo; i < hi; i += step {
		b = append(b, c.x[i])
	}
	return string(b), nil
}

func textFormat(c *textCall) (Value, error) {
	x := c.x
	for _, e := range c.args[1:] {
		i := strings.Index(x, "{}")
		if c.name == "percentFormat" {
			if i = strings.IndexByte(x, '%'); i >= 0 && i+2 > len(x) {
				i = -1
			}
		}
		if i < 0 {
			break
		}
		if len(x) > maxElements {
			return nil, refuse("budget", "makes a string of %d bytes", len(x))
		}
		x = x[:i] + show(e) + x[i+2:]
	}
	return x, nil
}

func textDevice(c *textCall) (Value, error) {
	if len(c.args) > 1 && c.args[1] != nil {
		return Device(fmt.Sprintf("%s:%d", c.x, c.num(1, 0))), nil
	}
	return Device(c.x), nil
}

// sized is a string, or the refusal of one that is larger than the budget.
func (k *machine) sized(s string) (Value, error) {
	if int64(len(s)) > k.m.Allow(maxElements) {
		return nil, refuse("budget", "makes a string of %d bytes", len(s))
	}
	return s, nil
}

func strs(parts []string) *List {
	l := &List{Elem: ssa.StrType}
	for _, p := range parts {
		l.Elems = append(l.Elems, p)
	}
	return l
}

// maxShown is the number of values that a text shows; of larger containers it shows a part.
const maxShown = 1 << 16

// show prints a value as Python's str does.
func show(v Value) string {
	left := maxShown
	return shown(v, &left)
}

func shown(v Value, left *int) string {
	if *left--; *left < 0 {
		return "..."
	}
	switch v := v.(type) {
	case nil:
		return "None"
	case string:
		return v
	case Device:
		return string(v)
	case bool:
		if v {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e16 {
			return strconv.FormatFloat(v, 'f', 1, 64)
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case *Enum:
		return v.Name
	case *List:
		return "[" + showAll(v.Elems, left) + "]"
	case *Tuple:
		return "(" + showAll(v.Elems, left) + ")"
	}
	return "<" + describe(v) + ">"
}

func showAll(vs []Value, left *int) string {
	var b strings.Builder
	for i, v := range vs {
		if i > 0 {
			b.WriteString(", ")
		}
		if *left < 0 {
			b.WriteString("...")
			break
		}
		if s, quoted := v.(string); quoted {
			b.WriteString("'" + s + "'")
		} else {
			b.WriteString(shown(v, left))
		}
	}
	return b.String()
}
