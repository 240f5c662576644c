package eager

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa"
)

// text computes an operator whose first argument is a string. TorchScript counts bytes, not characters.
func (k *machine) text(name string, args []Value) (v Value, done bool, err error) {
	x := args[0].(string)
	str := func(i int, none string) string {
		if i < len(args) {
			if s, ok := args[i].(string); ok {
				return s
			}
		}
		return none
	}
	num := func(i int, none int64) int64 {
		if i < len(args) {
			if n, ok := args[i].(int64); ok {
				return n
			}
		}
		return none
	}
	n := int64(len(x))
	// part is x between the arguments start and end, and where it begins; none where these are in the wrong order.
	part := func(i int) (string, int64, bool) {
		start, end := num(i, 0), num(i+1, -1)
		if start < 0 {
			start = max(0, n+start)
		}
		if end < 0 {
			end = max(0, n+end+1)
		}
		if end = min(end, n); start >= end {
			return "", 0, false
		}
		return x[start:end], start, true
	}
	allOf := func(is func(c byte) bool) (Value, bool, error) {
		for i := range len(x) {
			if !is(x[i]) {
				return false, true, nil
			}
		}
		return x != "", true, nil
	}
	digit := func(c byte) bool { return '0' <= c && c <= '9' }
	upper := func(c byte) bool { return 'A' <= c && c <= 'Z' }
	lower := func(c byte) bool { return 'a' <= c && c <= 'z' }
	cased := func(is, not func(c byte) bool) (Value, bool, error) {
		found := false
		for i := range len(x) {
			if not(x[i]) {
				return false, true, nil
			}
			found = found || is(x[i])
		}
		return found, true, nil
	}
	const space = " \n\t\f\v"
	switch name {
	case "add":
		if y, ok := args[1].(string); ok {
			return k.sized(x + y)
		}
	case "mul":
		times := max(num(1, 0), 0)
		if n > 0 && times > maxElements/n {
			return nil, true, refuse("budget", "makes a string of %d times %d bytes", times, n)
		}
		return strings.Repeat(x, int(times)), true, nil
	case "len":
		return n, true, nil
	case "Int":
		i, err := strconv.ParseInt(strings.TrimSpace(x), 10, 64)
		if err != nil {
			return nil, true, raise("invalid literal for int() with base 10: '%s'", x)
		}
		return i, true, nil
	case "Float":
		f, err := strconv.ParseFloat(strings.TrimSpace(x), 64)
		if err != nil {
			return nil, true, raise("could not convert string to float: '%s'", x)
		}
		return f, true, nil
	case "str":
		return x, true, nil
	case "ord":
		if n != 1 {
			return nil, true, raise("String for ord() must be 1 character, found %d", n)
		}
		return int64(x[0]), true, nil
	case "eq", "ne":
		if y, ok := args[1].(string); ok {
			return (x == y) == (name == "eq"), true, nil
		}
	case "lt", "le", "gt", "ge":
		if y, ok := args[1].(string); ok {
			return orders[name](compare(x, y)), true, nil
		}
	case "lower":
		return strings.ToLower(x), true, nil
	case "upper":
		return strings.ToUpper(x), true, nil
	case "swapcase":
		b := []byte(x)
		for i, c := range b {
			if upper(c) || lower(c) {
				b[i] = c ^ 0x20
			}
		}
		return string(b), true, nil
	case "capitalize":
		if x == "" {
			return x, true, nil
		}
		return strings.ToUpper(x[:1]) + strings.ToLower(x[1:]), true, nil
	case "startswith", "endswith":
		p, _, ok := part(2)
		if sub := str(1, ""); !ok {
			return sub == "" && num(2, 0) <= n, true, nil
		} else if name == "startswith" {
			return strings.HasPrefix(p, sub), true, nil
		} else {
			return strings.HasSuffix(p, sub), true, nil
		}
	case "__contains__":
		return strings.Contains(x, str(1, "")), true, nil
	case "find", "rfind", "index", "rindex":
		p, at, ok := part(2)
		i := -1
		if ok {
			if name == "find" || name == "index" {
				i = strings.Index(p, str(1, ""))
			} else {
				i = strings.LastIndex(p, str(1, ""))
			}
		}
		if i >= 0 {
			return at + int64(i), true, nil
		}
		if name == "index" || name == "rindex" {
			return nil, true, raise("ValueError: substring not found")
		}
		return int64(-1), true, nil
	case "count":
		p, _, ok := part(2)
		if !ok {
			return int64(0), true, nil
		}
		if str(1, "") == "" {
			return int64(len(p)) + 1, true, nil
		}
		return int64(strings.Count(p, str(1, ""))), true, nil
	case "replace":
		most := num(3, -1)
		if c := int64(strings.Count(x, str(1, ""))); c > 0 && int64(len(str(2, ""))) > maxElements/c {
			return nil, true, refuse("budget", "makes a string of too many bytes")
		}
		return strings.Replace(x, str(1, ""), str(2, ""), int(max(min(most, math.MaxInt32), -1))), true, nil
	case "strip":
		return strings.Trim(x, str(1, space)), true, nil
	case "lstrip":
		return strings.TrimLeft(x, str(1, space)), true, nil
	case "rstrip":
		return strings.TrimRight(x, str(1, space)), true, nil
	case "split":
		most := int(max(min(num(2, -1), math.MaxInt32-1), -1))
		if sep, ok := args[1].(string); ok {
			if sep == "" {
				return nil, true, raise("empty separator")
			}
			if most >= 0 {
				return strs(strings.SplitN(x, sep, most+1)), true, nil
			}
			return strs(strings.Split(x, sep)), true, nil
		}
		if most < 0 {
			return strs(strings.Fields(x)), true, nil
		}
	case "splitlines":
		if keep, _ := args[len(args)-1].(bool); !keep {
			parts := strings.Split(strings.ReplaceAll(x, "\r\n", "\n"), "\n")
			if parts[len(parts)-1] == "" {
				parts = parts[:len(parts)-1]
			}
			return strs(parts), true, nil
		}
	case "join":
		if l, ok := args[1].(*List); ok {
			parts := make([]string, len(l.Elems))
			total := int64(0)
			for i, e := range l.Elems {
				parts[i], _ = e.(string)
				total += int64(len(parts[i])) + n
			}
			if total > maxElements {
				return nil, true, refuse("budget", "makes a string of %d bytes", total)
			}
			return strings.Join(parts, x), true, nil
		}
	case "zfill":
		if w := num(1, 0); w > n && w < 1<<16 {
			sign := ""
			if x != "" && (x[0] == '-' || x[0] == '+') {
				sign, x = x[:1], x[1:]
			}
			return sign + strings.Repeat("0", int(w)-len(sign)-len(x)) + x, true, nil
		} else if w <= n {
			return x, true, nil
		}
	case "ljust", "rjust":
		w := num(1, 0)
		if w > 1<<16 {
			return nil, true, refuse("budget", "makes a string of %d bytes", w)
		}
		pad := strings.Repeat(str(2, " "), int(max(w-n, 0)))
		if name == "ljust" {
			return x + pad, true, nil
		}
		return pad + x, true, nil
	case "isdigit", "isdecimal", "isnumeric":
		return allOf(digit)
	case "isalpha":
		return allOf(func(c byte) bool { return upper(c) || lower(c) })
	case "isalnum":
		return allOf(func(c byte) bool { return upper(c) || lower(c) || digit(c) })
	case "isspace":
		return allOf(func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' })
	case "isupper":
		return cased(upper, lower)
	case "islower":
		return cased(lower, upper)
	case "__getitem__", "StringIndex":
		i := num(1, 0)
		if i < 0 {
			i += n
		}
		if i < 0 || i >= n {
			return nil, true, raise("string index out of range")
		}
		return x[i : i+1], true, nil
	case "slice":
		step := num(3, 1)
		if step < 1 {
			return nil, true, refuse("unsupported-args", "a slice of a string with step %d", step)
		}
		lo, hi := bounds(n, num(1, 0), num(2, math.MaxInt64))
		if step == 1 {
			return x[lo:hi], true, nil
		}
		var b []byte
		for i := lo; i < hi; i += step {
			b = append(b, x[i])
		}
		return string(b), true, nil
	case "list":
		return strs(strings.Split(x, "")), true, nil
	case "format", "percentFormat":
		for _, e := range args[1:] {
			i, width := strings.Index(x, "{}"), 2
			if name == "percentFormat" {
				if i = strings.IndexByte(x, '%'); i >= 0 && i+2 > len(x) {
					i = -1
				}
			}
			if i < 0 {
				break
			}
			if len(x) > maxElements {
				return nil, true, refuse("budget", "makes a string of %d bytes", len(x))
			}
			x = x[:i] + show(e) + x[i+width:]
		}
		return x, true, nil
	case "device":
		d := x
		if len(args) > 1 && args[1] != nil {
			d = fmt.Sprintf("%s:%d", x, num(1, 0))
		}
		return Device(d), true, nil
	case "_get_autocast_dtype", "get_autocast_dtype":
		return int64(15), true, nil
	case "is_autocast_enabled":
		return false, true, nil
	}
	return nil, false, nil
}

func (k *machine) sized(s string) (Value, bool, error) {
	if int64(len(s)) > k.m.Allow(maxElements) {
		return nil, true, refuse("budget", "makes a string of %d bytes", len(s))
	}
	return s, true, nil
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
