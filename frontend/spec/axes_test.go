package spec

import "testing"

func TestParseAll(t *testing.T) {
	in, err := ParseAll([]string{"x:f32[2,3]", "n:int"}, map[string]map[string]string{"x": {"0": "N"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(in) != 2 || in[0].String() != "x:f32[N,3]" || in[1].String() != "n:int" {
		t.Errorf("%v", in)
	}
	for _, axis := range []string{"2", "-1", "first"} {
		if _, err := ParseAll([]string{"x:f32[2,3]"}, map[string]map[string]string{"x": {axis: "N"}}); err == nil {
			t.Errorf("axis %s is accepted", axis)
		}
	}
}
