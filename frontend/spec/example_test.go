package spec_test

import (
	"fmt"

	"github.com/aton-project/aton/frontend/spec"
)

// A spec says what an archive does not: the type of an input, its dynamic axes, the value of a constant.
func ExampleParse() {
	for _, text := range []string{"x:f32[N,3,224,224]", "n:int=3", "pair:(f32[2],none)", "i32[T]", "x:f33[2]"} {
		in, err := spec.Parse(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%q %v\n", in.Name, in.Type)
	}
	// Output:
	// "x" f32[N,3,224,224]
	// "n" int=3
	// "pair" tuple(f32[2],none)
	// "" i32[T]
	// input x: unknown type "f33": tensors are f32[...], f64 f16 bf16 i64 i32 i16 i8 u8 bool; others int float bool str none list() tuple() dict()
}
