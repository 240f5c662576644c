package passes

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// JoinList writes names as the value of an option: a,b. A name with a comma or a quote in it, and an empty one, is quoted as in Go.
func JoinList(names []string) string {
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = quoteName(n, ",\"")
	}
	return strings.Join(parts, ",")
}

// SplitList reads what JoinList writes. An empty text is an empty list.
func SplitList(text string) ([]string, error) {
	var names []string
	for text != "" {
		name, rest, err := cutName(text, ",")
		if err != nil {
			return nil, err
		}
		if names = append(names, name); rest == "" {
			break
		}
		if text = rest[1:]; text == "" {
			return nil, fmt.Errorf("a name is missing behind the last comma")
		}
	}
	return names, nil
}

// JoinPairs writes a map as the value of an option: a=b,c=d, by the order of the keys.
func JoinPairs(pairs map[string]string) string {
	parts := make([]string, 0, len(pairs))
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		parts = append(parts, quoteName(k, ",\"=")+"="+quoteName(pairs[k], ",\"="))
	}
	return strings.Join(parts, ",")
}

// SplitPairs reads what JoinPairs writes.
func SplitPairs(text string) (map[string]string, error) {
	pairs := map[string]string{}
	for text != "" {
		key, rest, err := cutName(text, "=,")
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(rest, "=") {
			return nil, fmt.Errorf("%q: '=' is missing", text)
		}
		value, rest, err := cutName(rest[1:], ",")
		if err != nil {
			return nil, err
		}
		if _, twice := pairs[key]; twice {
			return nil, fmt.Errorf("%q comes twice", key)
		}
		pairs[key] = value
		text = strings.TrimPrefix(rest, ",")
	}
	return pairs, nil
}

func quoteName(name, special string) string {
	if name == "" || strings.ContainsAny(name, special) {
		return strconv.Quote(name)
	}
	return name
}

// cutName takes a name, quoted or up to one of the ends, from the front of a text.
func cutName(text, ends string) (name, rest string, err error) {
	if strings.HasPrefix(text, `"`) {
		quoted, err := strconv.QuotedPrefix(text)
		if err != nil {
			return "", "", fmt.Errorf("%q: no closing '\"'", text)
		}
		name, err = strconv.Unquote(quoted)
		rest = text[len(quoted):]
		if err == nil && rest != "" && !strings.ContainsAny(rest[:1], ends) {
			err = fmt.Errorf("%q: unexpected %q", text, rest)
		}
		return name, rest, err
	}
	if i := strings.IndexAny(text, ends); i >= 0 {
		return text[:i], text[i:], nil
	}
	return text, "", nil
}
