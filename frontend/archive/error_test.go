package archive

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/aton-project/aton/frontend/pickle"
)

func TestError(t *testing.T) {
	bad := errors.New("is damaged")
	for _, c := range []struct {
		err  *Error
		want string
	}{
		{&Error{File: "m.pt", Offset: -1, Err: bad}, "m.pt: is damaged"},
		{&Error{File: "m.pt", Record: "data.pkl", Offset: 7, Err: bad}, "m.pt: data.pkl: byte 7: is damaged"},
		{&Error{File: "m.pt", Record: "code/a.py", Line: 3, Offset: 7, Err: bad, Hint: "save it again"}, "m.pt: code/a.py:3: is damaged; save it again"},
		{&Error{File: "m.pt2", Record: "model.json", Offset: -1, Node: "relu", Err: bad}, "m.pt2: model.json: relu: is damaged"},
		{At("m.pt", "data.pkl", &pickle.Error{Offset: 5, Err: bad}), "m.pt: data.pkl: byte 5: is damaged"},
		{At("m.pt", "version", bad), "m.pt: version: is damaged"},
		{At("m.pt", "version", fmt.Errorf("in it: %w", &Error{File: "n.pt", Record: "data", Offset: -1, Err: bad})), "n.pt: data: is damaged"},
	} {
		if got := c.err.Error(); got != c.want || !errors.Is(c.err, bad) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestRecover(t *testing.T) {
	read := func(with any) (err error) {
		defer Recover(&err)
		if with != nil {
			panic(with)
		}
		return nil
	}
	if err := read(nil); err != nil {
		t.Error(err)
	}
	want := &Error{File: "m.pt", Offset: -1, Err: errors.New("is damaged")}
	if err := read(want); err != want {
		t.Error(err)
	}
	defer func() {
		if r := recover(); r != "other" {
			t.Errorf("recovered %v", r)
		}
	}()
	_ = read("other")
	t.Error("another panic does not go on")
}

func TestRemarks(t *testing.T) {
	var got []string
	r := &Remarks{File: "m.pt", Warn: func(s string) { got = append(got, s) }}
	for _, n := range []int{1, 2, 1} {
		r.Warnf("version %d", n)
	}
	if !slices.Equal(got, []string{"m.pt: version 1", "m.pt: version 2"}) {
		t.Errorf("%q", got)
	}
	(&Remarks{}).Warnf("dropped")
}
