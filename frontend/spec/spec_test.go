package spec

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]struct{ spelled, typ string }{
		"x:f32[N,3,224,224]":                     {"", "Float(N, 3, 224, 224)"},
		"x: bool[ 2 , N ]":                       {"x:bool[2,N]", "Bool(2, N)"},
		"x:f32[2*N,N + 1,min(N,4)]":              {"x:f32[2*N,N + 1,min(4, N)]", "Float(2*N, N + 1, min(4, N))"},
		"x:f16[?,3,?]":                           {"x:f16[x_0,3,x_1]", "Half(x_0, 3, x_1)"},
		"x:bf16[]":                               {"", "BFloat16()"},
		"x:float32[N]":                           {"x:f32[N]", "Float(N)"},
		"x:torch.bfloat16[2]":                    {"x:bf16[2]", "BFloat16(2)"},
		"x:uint8[2]":                             {"x:u8[2]", "Byte(2)"},
		"x:int64[]":                              {"x:i64[]", "Long()"},
		"x:complex64[2]":                         {"x:c64[2]", "ComplexFloat(2)"},
		"x:float8_e5m2[2]":                       {"x:f8e5m2[2]", "Float8_e5m2(2)"},
		"x:i64[...]":                             {"", "LongTensor"},
		"x:u8[0]":                                {"", "Byte(0)"},
		"n:int":                                  {"", "int"},
		"n:int=-3":                               {"", "int"},
		"f:float=1e-05":                          {"", "float"},
		"f:float=inf":                            {"f:float=+Inf", "float"},
		"b:bool":                                 {"", "bool"},
		"b:bool=True":                            {"b:bool=true", "bool"},
		`s:str="a\"b,c)"`:                        {"", "str"},
		"y:none":                                 {"", "NoneType"},
		"l:list(f32[2,3],f32[4])":                {"", "Tensor[]"},
		"f32[2,N]":                               {"", "Float(2, N)"},
		"[f32[2], i64[...]]":                     {"list(f32[2],i64[...])", "Tensor[]"},
		"int=3":                                  {"", "int"},
		"l:list(int,int)":                        {"", "int[]"},
		"l:[f32[2,3], f32[4]]":                   {"l:list(f32[2,3],f32[4])", "Tensor[]"},
		"l:[f32[N,3],...]":                       {"l:list(f32[N,3],...)", "Float(N, 3)[]"},
		"l:[]":                                   {"l:list()", "Tensor[]"},
		"p:(f32[2],)":                            {"p:tuple(f32[2])", "(Float(2))"},
		"p:(f32[2],[int,int])":                   {"p:tuple(f32[2],list(int,int))", "(Float(2), int[])"},
		`d:{"a": f32[2], b=f32[2]}`:              {"d:dict(a=f32[2],b=f32[2])", "Dict(str, Float(2))"},
		`{'a': f32[2], 'it\'s': f32[2]}`:         {`dict(a=f32[2],"it's"=f32[2])`, "Dict(str, Float(2))"},
		`s:str='mean'`:                           {`s:str="mean"`, "str"},
		"l:list(f32[2],none)":                    {"", "Float(2)?[]"},
		"l:list()":                               {"", "Tensor[]"},
		"l:list(f32[N,3],...)":                   {"", "Float(N, 3)[]"},
		"l:list(f32[?,min(N,4)] , ... )":         {"l:list(f32[?,min(4, N)],...)", "Float(vary0, min(4, N))[]"},
		"l:list(int,...)":                        {"", "int[]"},
		"p:tuple(list(f32[2],...),int)":          {"", "(Float(2)[], int)"},
		"d:dict(-1=f32[2],7=f32[2],0.5=int)":     {"", "Dict(str, Any)"},
		"p:tuple(f32[2],tuple(int,str=\"x\"))":   {"", "(Float(2), (int, str))"},
		`d:dict(a=f32[2],"b c"=f32[2])`:          {"", "Dict(str, Float(2))"},
		"inputs.0:dict(a=list(i32[1]), b=none )": {"inputs.0:dict(a=list(i32[1]),b=none)", "Dict(str, Int(1)[]?)"},
	} {
		in, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if want.spelled == "" {
			want.spelled = text
		}
		if got := in.String(); got != want.spelled {
			t.Errorf("%s: is spelled %s", text, got)
		}
		if got := in.Type.SSA().String(); got != want.typ {
			t.Errorf("%s: is of type %s, want %s", text, got, want.typ)
		}
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"x":                                "it is NAME:TYPE",
		":f32[2]":                          "it is NAME:TYPE",
		"x y:f32[2]":                       "no name",
		"x:":                               "a type is missing",
		"x:f33[2]":                         `input x: unknown type "f33"`,
		"x:f32":                            "f32 needs a shape",
		"x:f32[2":                          "no closing ']'",
		"x:f32[2,]":                        `"" is no size`,
		"x:f32[-1]":                        "a size is negative; a name such as N, or ?, stands for any size",
		"x:float[2]":                       "write f32[...] or f64[...] for a tensor",
		"x:int[2]":                         "write i64[...] or i32[...] for a tensor",
		"x:float33[2]":                     `unknown type "float33"`,
		"x:intel[2]":                       `unknown type "intel"`,
		"x:f32[2.5]":                       "is no size",
		"x:f32[2]]":                        "behind the type",
		"n:int=x":                          `"x" is no value of type int`,
		"n:int=99999999999999999999":       "no value of type int",
		"f:float=1e999":                    "no value of type float",
		"b:bool=2":                         "no value of type bool",
		"s:str=mean":                       "in quotes",
		"l:list":                           "list needs its elements",
		"l:list(int":                       "',' or ')' is missing",
		"l:[int":                           "',' or ']' is missing",
		"l:[int)":                          "',' or ']' is missing",
		"l:list(...)":                      `unknown type "..."`,
		"l:list(f32[2],int,...)":           "has one type",
		"l:list(list(int),...)":            "not of list(int)",
		"l:list(int=3,...)":                "not of int=3",
		"l:list(f32[2],...":                `unknown type "..."`,
		"d:dict(int)":                      "'=' is missing behind the key",
		"d:dict(=int)":                     "a key is missing",
		"d:dict(a=int,a=int)":              "comes twice",
		"x:" + strings.Repeat("list(", 60): "nested too deeply",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %s, got %v", text, want, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"x:f32[N,3*N,?]", "x:i64[...]", `d:dict(a=list(f32[2],none),"b"=tuple(int=3,str="x"))`, "f:float=1e-5", "b:bool=true"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		in, err := Parse(s)
		if err != nil {
			return
		}
		_ = in.Type.SSA()
		again, err := Parse(in.String())
		if err != nil {
			t.Fatalf("%q is spelled %q, which gives %v", s, in, err)
		}
		if again.String() != in.String() {
			t.Fatalf("%q is spelled %q, then %q", s, in, again)
		}
	})
}
