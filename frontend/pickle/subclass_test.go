package pickle

import (
	"strings"
	"testing"

	"github.com/aton-project/aton/ssa/tensor"
)

// TestSubclass rebuilds tensors that wrap others. The class is a name, whatever it is; what is no such object is an error.
func TestSubclass(t *testing.T) {
	class, inner := Global{"os", "system"}, &tensor.Tensor{}
	state := &Dict{}
	state.Set("qdata", inner)
	rebuild := Global{"torch._tensor", "_rebuild_from_type_v2"}
	good := Tuple{wrapperSubclass, class, Tuple{class}, state}
	v, ok, err := (&Tensors{}).Call(rebuild, good)
	if s, is := v.(*Subclass); err != nil || !ok || !is || s.Class != class || s.State != state {
		t.Errorf("%v, %v, %v", v, ok, err)
	}
	if v, _, err := (&Tensors{}).Call(rebuild, Tuple{wrapperSubclass, class, Tuple{class}, Tuple{state, nil}}); err != nil || v.(*Subclass).State != state {
		t.Errorf("a state with slots: %v, %v", v, err)
	}
	for _, c := range []struct {
		args Tuple
		want string
	}{
		{Tuple{wrapperSubclass, "Int8Tensor", Tuple{"Int8Tensor"}, state}, "the class is a string"},
		{Tuple{wrapperSubclass, class, Tuple{}, state}, "not those of class os.system"},
		{Tuple{wrapperSubclass, class, Tuple{Global{"torch", "Tensor"}}, state}, "not those of class os.system"},
		{Tuple{wrapperSubclass, class, Tuple{class}}, "has no state"},
		{Tuple{wrapperSubclass, class, Tuple{class}, int64(1)}, "is an int"},
		{Tuple{wrapperSubclass, class, Tuple{class}, Tuple{state, state}}, "is a tuple of 2"},
		{Tuple{rebuild, class, Tuple{class}, state}, "refers to itself"},
	} {
		if _, ok, err := (&Tensors{}).Call(rebuild, c.args); !ok || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v instead of %q", c.args, err, c.want)
		}
	}
}
