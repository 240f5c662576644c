package python

import (
	"math"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa"
)

// texts are the operators whose first argument is a string. TorchScript counts
// the bytes of a string, not its characters.
var texts = map[string]func(x string, a arguments) (ssa.Literal, error){
	"add": func(x string, a arguments) (ssa.Literal, error) {
		return bounded(len(x)+len(a.str(1)), 1, func() string { return x + a.str(1) })
	},
	"mul": func(x string, a arguments) (ssa.Literal, error) {
		n := max(a.int(1, 0), 0)
		return bounded(len(x), n, func() string { return strings.Repeat(x, int(n)) })
	},
	"len": func(x string, a arguments) (ssa.Literal, error) { return ssa.Int(int64(len(x))), nil },
	"Int": func(x string, a arguments) (ssa.Literal, error) {
		n, err := strconv.ParseInt(strings.TrimSpace(x), 10, 64)
		return ssa.Int(n), unknownIf(err != nil)
	},
	"Float": func(x string, a arguments) (ssa.Literal, error) {
		f, err := strconv.ParseFloat(strings.TrimSpace(x), 64)
		return ssa.Float(f), unknownIf(err != nil)
	},
	"str": func(x string, a arguments) (ssa.Literal, error) { return a[0], nil },
	"ord": func(x string, a arguments) (ssa.Literal, error) {
		for _, r := range x {
			return ssa.Int(int64(r)), nil
		}
		return ssa.None, ErrUnknown
	},
	"lt":    inOrder(func(c int) bool { return c < 0 }),
	"le":    inOrder(func(c int) bool { return c <= 0 }),
	"gt":    inOrder(func(c int) bool { return c > 0 }),
	"ge":    inOrder(func(c int) bool { return c >= 0 }),
	"lower": func(x string, a arguments) (ssa.Literal, error) { return ssa.Str(strings.ToLower(x)), nil },
	"upper": func(x string, a arguments) (ssa.Literal, error) { return ssa.Str(strings.ToUpper(x)), nil },
	"capitalize": func(x string, a arguments) (ssa.Literal, error) {
		if x == "" {
			return a[0], nil
		}
		return ssa.Str(strings.ToUpper(x[:1]) + strings.ToLower(x[1:])), nil
	},
	"startswith":   whole(2, func(x string, a arguments) ssa.Literal { return ssa.Bool(strings.HasPrefix(x, a.str(1))) }),
	"endswith":     whole(2, func(x string, a arguments) ssa.Literal { return ssa.Bool(strings.HasSuffix(x, a.str(1))) }),
	"__contains__": func(x string, a arguments) (ssa.Literal, error) { return ssa.Bool(strings.Contains(x, a.str(1))), nil },
	"find":         place(strings.Index),
	"rfind":        place(strings.LastIndex),
	"count":        whole(2, func(x string, a arguments) ssa.Literal { return ssa.Int(int64(strings.Count(x, a.str(1)))) }),
	"replace": func(x string, a arguments) (ssa.Literal, error) {
		if a.int(3, -1) != -1 {
			return ssa.None, ErrUnknown
		}
		return bounded(len(a.str(2))+1, int64(strings.Count(x, a.str(1))), func() string { return strings.ReplaceAll(x, a.str(1), a.str(2)) })
	},
	"strip":  stripped(strings.Trim),
	"lstrip": stripped(strings.TrimLeft),
	"rstrip": stripped(strings.TrimRight),
	"split": func(x string, a arguments) (ssa.Literal, error) {
		if a.int(2, -1) != -1 {
			return ssa.None, ErrUnknown
		}
		if a.str(1) == "" {
			return ssa.Strs(strings.Fields(x)...), nil
		}
		return ssa.Strs(strings.Split(x, a.str(1))...), nil
	},
	"join": func(x string, a arguments) (ssa.Literal, error) {
		if len(a) != 2 {
			return ssa.None, ErrUnknown
		}
		var parts []string
		for _, e := range a[1].Elems {
			parts = append(parts, e.Str())
		}
		return bounded(len(x)+1, int64(len(parts)), func() string { return strings.Join(parts, x) })
	},
	"isdigit":   allBytes(isDigit),
	"isdecimal": allBytes(isDigit),
	"isnumeric": allBytes(isDigit),
	"isalpha":   allBytes(isLetter),
	"isalnum":   allBytes(func(c byte) bool { return isDigit(c) || isLetter(c) }),
	"isspace":   allBytes(func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }),
	"isupper":   cased(isUpper, isLower),
	"islower":   cased(isLower, isUpper),
	"__getitem__": func(x string, a arguments) (ssa.Literal, error) {
		i := a.int(1, 0)
		if i < 0 {
			i += int64(len(x))
		}
		if i < 0 || i >= int64(len(x)) {
			return ssa.None, &Exception{"string index out of range"}
		}
		return ssa.Str(x[i : i+1]), nil
	},
	"slice": func(x string, a arguments) (ssa.Literal, error) {
		if a.int(3, 1) != 1 {
			return ssa.None, ErrUnknown
		}
		lo, hi := Bounds(int64(len(x)), a.int(1, 0), a.int(2, math.MaxInt64))
		return ssa.Str(x[lo:hi]), nil
	},
	"format":        filled("{}", 2),
	"percentFormat": filled("%", 2),
}

// TorchScript asks and counts bytes, of which those beyond ASCII have no kind (register_prim_ops.cpp).

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isUpper(c byte) bool  { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool  { return 'a' <= c && c <= 'z' }
func isLetter(c byte) bool { return isUpper(c) || isLower(c) }

// allBytes asks of a string that is not empty whether all bytes are of a kind.
func allBytes(kind func(byte) bool) func(string, arguments) (ssa.Literal, error) {
	return func(x string, _ arguments) (ssa.Literal, error) {
		for i := range len(x) {
			if !kind(x[i]) {
				return ssa.Bool(false), nil
			}
		}
		return ssa.Bool(x != ""), nil
	}
}

// cased asks whether there are letters of one case, and none of the other.
func cased(kind, other func(byte) bool) func(string, arguments) (ssa.Literal, error) {
	return func(x string, _ arguments) (ssa.Literal, error) {
		found := false
		for i := range len(x) {
			if other(x[i]) {
				return ssa.Bool(false), nil
			}
			found = found || kind(x[i])
		}
		return ssa.Bool(found), nil
	}
}

// place finds a string between a start and an end, of which negative ones count from the end; there is none in an empty part.
func place(index func(x, part string) int) func(string, arguments) (ssa.Literal, error) {
	return func(x string, a arguments) (ssa.Literal, error) {
		n := int64(len(x))
		start, end := a.int(2, 0), a.int(3, -1)
		if start < 0 {
			start = max(0, n+start)
		}
		if end < 0 {
			end = max(0, n+end+1)
		}
		if end = min(end, n); start < end {
			if i := index(x[start:end], a.str(1)); i >= 0 {
				return ssa.Int(start + int64(i)), nil
			}
		}
		return ssa.Int(-1), nil
	}
}

// whole is a function of a string whose start and end, at argument i, are those of the string.
func whole(i int, f func(string, arguments) ssa.Literal) func(string, arguments) (ssa.Literal, error) {
	return func(x string, a arguments) (ssa.Literal, error) {
		if a.int(i, 0) != 0 || a.int(i+1, -1) != -1 {
			return ssa.None, ErrUnknown
		}
		return f(x, a), nil
	}
}

// bounded makes a string of times n bytes, and what it is made of besides, unless that is too much.
func bounded(n int, times int64, text func() string) (ssa.Literal, error) {
	if n > 0 && times > maxText/int64(n) {
		return ssa.None, ErrTooLarge
	}
	return ssa.Str(text()), nil
}

// arguments are those of an operator on strings, the string first.
type arguments []ssa.Literal

func (a arguments) str(i int) string {
	if i < len(a) && a[i].Kind == ssa.StrLit {
		return a[i].Str()
	}
	return ""
}

func (a arguments) int(i int, none int64) int64 {
	if i < len(a) && a[i].Kind == ssa.IntLit {
		return a[i].Int()
	}
	return none
}

func unknownIf(bad bool) error {
	if bad {
		return ErrUnknown
	}
	return nil
}

func inOrder(holds func(c int) bool) func(string, arguments) (ssa.Literal, error) {
	return func(x string, a arguments) (ssa.Literal, error) {
		return ssa.Bool(holds(strings.Compare(x, a.str(1)))), nil
	}
}

func stripped(strip func(s, set string) string) func(string, arguments) (ssa.Literal, error) {
	return func(x string, a arguments) (ssa.Literal, error) {
		set := a.str(1)
		if set == "" {
			set = " \n\t\f\v\r"
		}
		return ssa.Str(strip(x, set)), nil
	}
}

// filled puts the arguments in the places of a format, in order. Places have a
// length of n bytes: "{}", or "%" and a letter.
func filled(place string, n int) func(string, arguments) (ssa.Literal, error) {
	return func(x string, a arguments) (ssa.Literal, error) {
		for _, e := range a[1:] {
			i := strings.Index(x, place)
			if i < 0 || i+n > len(x) {
				break
			}
			x = x[:i] + Str(e) + x[i+n:]
		}
		return ssa.Str(x), nil
	}
}

// text computes an operator whose first argument is a string.
func text(name string, a []ssa.Literal) (ssa.Literal, error) {
	f := texts[name]
	if f == nil || len(a) == 0 || a[0].Kind != ssa.StrLit {
		return ssa.None, ErrUnknown
	}
	return f(a[0].Str(), a)
}

// Str prints a constant as Python's str does.
func Str(l ssa.Literal) string {
	switch l.Kind {
	case ssa.StrLit, ssa.DeviceLit, ssa.EnumLit:
		return l.Str()
	case ssa.BoolLit:
		if l.Bool() {
			return "True"
		}
		return "False"
	case ssa.FloatLit:
		f := l.Float()
		if f == math.Trunc(f) && math.Abs(f) < 1e16 {
			return strconv.FormatFloat(f, 'f', 1, 64)
		}
		return strconv.FormatFloat(f, 'g', -1, 64)
	case ssa.ListLit, ssa.TupleLit:
		parts := make([]string, len(l.Elems))
		for i, e := range l.Elems {
			parts[i] = Str(e)
			if e.Kind == ssa.StrLit {
				parts[i] = "'" + parts[i] + "'"
			}
		}
		if l.Kind == ssa.TupleLit {
			return "(" + strings.Join(parts, ", ") + ")"
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return l.String()
}

// Bounds clamps the bounds of a slice of step 1 to a length of n: 0 <= lo <= hi <= n.
func Bounds(n, lo, hi int64) (int64, int64) {
	if lo < 0 {
		lo = max(lo+n, 0)
	}
	if hi < 0 {
		hi = max(hi+n, 0)
	}
	lo, hi = min(lo, n), min(hi, n)
	return lo, max(lo, hi)
}
