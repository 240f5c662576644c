package eager

import (
	"fmt"
	"testing"
)

// Operators on strings give what Python gives.
func TestText(t *testing.T) {
	type args = []Value
	for _, c := range []struct {
		name string
		args args
		want string
	}{
		{"eq", args{"ab", "ab"}, "true"},
		{"ne", args{"ab", "ab"}, "false"},
		{"lt", args{"ab", "b"}, "true"},
		{"mul", args{"ab", int64(3)}, "ababab"},
		{"startswith", args{"abc", "b", int64(1)}, "true"},
		{"startswith", args{"abc", "", int64(4)}, "false"},
		{"endswith", args{"abc", "bc"}, "true"},
		{"find", args{"abcb", "b", int64(2)}, "3"},
		{"rfind", args{"abcb", "x"}, "-1"},
		{"count", args{"aaa", ""}, "4"},
		{"replace", args{"aaa", "a", "b", int64(2)}, "bba"},
		{"strip", args{" ab\n"}, "ab"},
		{"lstrip", args{"xxab", "x"}, "ab"},
		{"zfill", args{"-7", int64(4)}, "-007"},
		{"ljust", args{"ab", int64(4), "."}, "ab.."},
		{"rjust", args{"ab", int64(3)}, " ab"},
		{"swapcase", args{"aB1"}, "Ab1"},
		{"capitalize", args{"aBC"}, "Abc"},
		{"isalnum", args{"a1"}, "true"},
		{"isalpha", args{""}, "false"},
		{"isupper", args{"A1"}, "true"},
		{"islower", args{"1"}, "false"},
		{"isspace", args{" \t"}, "true"},
		{"__getitem__", args{"abc", int64(-1)}, "c"},
		{"slice", args{"abcdef", int64(1), int64(5), int64(2)}, "bd"},
		{"len", args{"abc"}, "3"},
		{"ord", args{"a"}, "97"},
		{"Int", args{" 12 "}, "12"},
		{"Float", args{"0.5"}, "0.5"},
		{"format", args{"{} and {}", int64(1), "x"}, "1 and x"},
		{"percentFormat", args{"%d%%", int64(7)}, "7%%"},
	} {
		v, done, err := (&machine{}).text(c.name, c.args)
		if got := fmt.Sprint(v); err != nil || !done || got != c.want {
			t.Errorf("%s%q: %s, %v, %v, want %s", c.name, c.args, got, done, err, c.want)
		}
	}
	for _, c := range []struct {
		name string
		args args
	}{{"Int", args{"x"}}, {"ord", args{"ab"}}, {"index", args{"ab", "x"}}, {"__getitem__", args{"ab", int64(2)}}, {"split", args{"ab", ""}}, {"mul", args{"ab", int64(1 << 62)}}} {
		if v, done, err := (&machine{}).text(c.name, c.args); err == nil || !done {
			t.Errorf("%s%q: %v, %v", c.name, c.args, v, done)
		}
	}
	if _, done, _ := (&machine{}).text("eq", args{"a", int64(1)}); done {
		t.Error("a string and a number are compared as strings")
	}
}
